//! Adding local commits to the remote's log, and uploads that others made to the local log.

use trackway_store::{Claim, Writer};

use super::replica::{Replica, by_prefix};
use crate::error::{CheckpointError, Result};
use crate::history::entry::{Body, CommitBody};
use crate::history::{CommitRecord, History};
use crate::housekeeping::keeper::append;

impl Replica {
    /// Adds every local commit that the remote's log does not have yet, oldest first, and returns how many that were.
    /// Notes in the local log what is at the remote. Doing it again adds nothing.
    ///
    /// # Errors
    /// [`CheckpointError::Fenced`]: a higher epoch was claimed at the remote, and what still waits is lost.
    /// [`CheckpointError::Store`]: what was not added waits.
    pub fn hand_over(&mut self) -> Result<u64> {
        self.refresh()?;
        if self.remote_is_empty() {
            // No epoch was granted there: this thread must not begin the remote's log again.
            return Ok(0);
        }
        let waiting = self.waiting();
        for number in &waiting {
            let Some(body) = self.body_in(self.remote(), *number) else { continue };
            self.commit_remote(&body)?;
        }
        self.note_uploads()?;
        self.note_unsafe()?;
        Ok(waiting.len() as u64)
    }

    /// Marks at the remote what is unsafe according to the local log, or not any more.
    fn note_unsafe(&mut self) -> Result<()> {
        for (number, body) in self.marks_for(self.remote()) {
            self.log.append(Writer::Housekeeper, |history| {
                let is_wanted = history.commit(number).is_some_and(|it| body.changes(it));
                Ok::<_, CheckpointError>(is_wanted.then(|| body.clone()))
            })?;
        }
        Ok(())
    }

    /// What the local log marks unsafe, or not any more, and the remote's log, or what that will be, does not: by its numbers.
    pub(super) fn marks_for(&self, remote: &History) -> Vec<(u64, Body)> {
        let there = by_prefix(remote);
        let mark = |(_, record): (u64, &CommitRecord)| {
            let number = *there.get(record.body.object_prefix.as_str())?;
            let known = remote.commit(number)?;
            Some((number, record.mark_for(number, known)?))
        };
        self.local_history().commits().filter_map(mark).collect()
    }

    /// The same for a caller that does not mind losing what still waits.
    pub(super) fn hand_over_unless_fenced(&mut self) -> Result<()> {
        match self.hand_over() {
            Ok(_) | Err(CheckpointError::Fenced { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Numbers of local commits that the remote's log does not have, oldest first.
    ///
    /// They were handed over in order, so the newest which is there determines where to continue: what is older and not
    /// found there was deleted long ago and left out of a summary, or was lost to a fence and must not come back.
    pub(super) fn waiting(&self) -> Vec<u64> {
        let local = self.local_history();
        let there = by_prefix(self.remote());
        let own = local.commits().filter(|(number, record)| {
            record.number_there.is_none() && *number > local.truth_begins() && !record.swept
        });
        let mut waiting: Vec<u64> = Vec::new();
        for (number, record) in own {
            if there.contains_key(record.body.object_prefix.as_str()) {
                waiting.clear();
            } else {
                waiting.push(number);
            }
        }
        waiting
    }

    /// A local commit as the remote's log has it, or will have it: with the number that its parent has there.
    pub(super) fn body_in(&self, remote: &History, number: u64) -> Option<CommitBody> {
        let body = &self.local_history().commit(number)?.body;
        Some(CommitBody { parent: self.parent_in(remote, body.parent), ..body.clone() })
    }

    /// The number at the remote of a local commit, or of its nearest ancestor that is there.
    fn parent_in(&self, remote: &History, mut parent: Option<u64>) -> Option<u64> {
        let there = by_prefix(remote);
        while let Some(number) = parent {
            let record = self.local_history().commit(number)?;
            let found = there.get(record.body.object_prefix.as_str()).copied();
            if let Some(found) = found.or(record.number_there) {
                return Some(found);
            }
            parent = record.body.parent.filter(|older| *older < number);
        }
        None
    }

    /// Adds a commit in the name of the attempt that made it, unless it is there already.
    fn commit_remote(&mut self, body: &CommitBody) -> Result<()> {
        // In the name of its attempt: if that is fenced there, the entry is refused.
        let claim = Claim { epoch: body.epoch, holder: body.attempt_id.to_string() };
        let there = |history: &History| {
            history.commits().any(|(_, record)| record.body.object_prefix == body.object_prefix)
        };
        let added = self.log.append(Writer::Trainer(&claim), |history| {
            Ok::<_, CheckpointError>((!there(history)).then(|| Body::Commit(body.clone())))
        });
        match added {
            // It was added before the fence, and the answer was lost.
            Err(CheckpointError::Fenced { .. }) if there(self.log.state()) => Ok(()),
            added => added.map(drop),
        }
    }

    /// Notes in the local log which of its commits are at the remote, so that local retention may let them go.
    pub(super) fn note_uploads(&mut self) -> Result<()> {
        let there = by_prefix(self.remote());
        let uploaded = |prefix: &str| {
            let record = self.remote().commit(*there.get(prefix)?)?;
            record.uploaded_to.as_ref().filter(|_| !record.retired)
        };
        let local = self.local_history().commits();
        let due: Vec<(u64, String)> = local
            .filter(|(_, record)| record.uploaded_to.is_none() && !record.retired)
            .filter_map(|(number, record)| Some((number, uploaded(&record.body.object_prefix)?.clone())))
            .collect();
        for (commit, location) in due {
            append(&mut self.view, Writer::Housekeeper, |history| {
                let wanted = history.commit(commit).is_some_and(|it| it.uploaded_to.is_none() && !it.retired);
                wanted.then(|| Body::Uploaded { commit, location: location.clone() })
            })?;
        }
        Ok(())
    }
}
