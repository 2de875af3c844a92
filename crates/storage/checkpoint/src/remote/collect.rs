//! Deleting at the remote: `retire` in its log first, then, file by file, what no checkpoint that stays reaches.

use std::collections::BTreeSet;

use trackway_core::Timestamp;
use trackway_formats::checkpoint_manifest::{MANIFEST_FILE_NAME, Manifest};
use trackway_store::Writer;

use super::replica::{Replica, key, keys_of};
use crate::error::{CheckpointError, Result};
use crate::history::History;
use crate::history::entry::{Body, CommitBody};
use crate::housekeeping::keeper::Verdict;
use crate::retention::{Age, MIN_KEPT, Retention, RetentionPlan, plan, plan_along};

/// What a collection of garbage at the remote did, or would do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemoteCollected {
    /// What stays and what goes, by numbers of the remote's log.
    pub plan: RetentionPlan,
    /// Objects that were removed.
    pub removed_objects: u64,
    /// Commits whose objects turned out not to be whole, and that were marked suspect.
    pub suspects: Vec<u64>,
    /// Why nothing was retired.
    pub refused: Option<String>,
}

impl Replica {
    /// Deletes at the remote what `policy` does not keep, and finishes what an earlier collection began. `None`: keeps
    /// everything. With `older_than_seconds`, suspect checkpoints and dead branches that are older go too. `dry_run`
    /// only returns what would be deleted.
    ///
    /// Nothing goes unless [`MIN_KEPT`] of those that stay have all of their objects.
    ///
    /// # Errors
    /// [`CheckpointError::Store`]: call again; what was retired and not yet removed is removed then.
    pub fn collect(
        &mut self,
        policy: Option<&Retention>,
        older_than_seconds: Option<f64>,
        dry_run: bool,
    ) -> Result<RemoteCollected> {
        self.log.refresh()?;
        let now = self.clock.now();
        let age = older_than_seconds.map(|older_than_seconds| Age { now, older_than_seconds });
        let mut done = RemoteCollected::default();
        let Some(policy) = policy else {
            if !dry_run {
                done.removed_objects = self.sweep()?;
            }
            return Ok(done);
        };
        done.plan = remote_plan(self.remote(), policy, now, age);
        if dry_run {
            return Ok(done);
        }
        while !done.plan.retire.is_empty() {
            match self.enough_stay(&done.plan)? {
                Verdict::Enough => {
                    done.plan = self.retire(policy, now, age)?;
                    if done.plan.retire.is_empty() {
                        done.refused = Some("the log changed in the meantime; collect again".into());
                    }
                    break;
                }
                Verdict::TooFew => {
                    done.refused =
                        Some(format!("fewer than {MIN_KEPT} of the remaining checkpoints are intact there"));
                    done.plan.retire.clear();
                }
                Verdict::Damaged { number, why } => {
                    // Not one that another process retired while its objects were looked for.
                    if self.mark_suspect(number, &why)? {
                        done.suspects.push(number);
                    }
                    done.plan = remote_plan(self.remote(), policy, now, age);
                }
            }
        }
        done.removed_objects = self.sweep()?;
        Ok(done)
    }

    /// Decided again in knowledge of every entry before it: a pin that was added meanwhile is seen.
    fn retire(&mut self, policy: &Retention, now: Timestamp, age: Option<Age>) -> Result<RetentionPlan> {
        let mut retired = RetentionPlan::default();
        let seen_whole = &self.seen_whole;
        self.log.append(Writer::Housekeeper, |history: &History| {
            retired = remote_plan(history, policy, now, age);
            let whole = uploaded_chain(history);
            let kept = |number: &&u64| retired.keep.contains_key(number) && seen_whole.contains(number);
            if whole.iter().filter(kept).count() < MIN_KEPT {
                retired.retire.clear();
            }
            let commits: Vec<u64> = retired.retire.keys().copied().collect();
            let body = (!commits.is_empty()).then(|| Body::Retire { commits, swept: Vec::new() });
            Ok::<_, CheckpointError>(body)
        })?;
        Ok(retired)
    }

    /// Whether enough of what stays has all of its objects, looking at sizes, newest first.
    fn enough_stay(&mut self, plan: &RetentionPlan) -> Result<Verdict> {
        let mut found = 0;
        let kept = uploaded_chain(self.remote()).into_iter().filter(|number| plan.keep.contains_key(number));
        for number in kept.take(MIN_KEPT).collect::<Vec<_>>() {
            // Looked at once by a process: each look takes a request for every file.
            if !self.seen_whole.contains(&number) {
                if let Some(why) = self.missing_there(number)? {
                    return Ok(Verdict::Damaged { number, why });
                }
                self.seen_whole.insert(number);
            }
            found += 1;
        }
        Ok(if found == MIN_KEPT { Verdict::Enough } else { Verdict::TooFew })
    }

    /// What of a commit is not there as it was sent.
    fn missing_there(&self, number: u64) -> Result<Option<String>> {
        let Some(body) = self.remote().commit(number).map(|record| record.body.clone()) else {
            return Ok(Some("its entry is gone".into()));
        };
        let manifest = match self.remote_manifest(&body)? {
            None => return Ok(Some(format!("`{MANIFEST_FILE_NAME}` is missing at the remote"))),
            Some(Err(defect)) => return Ok(Some(format!("at the remote, {defect}"))),
            Some(Ok(manifest)) => manifest,
        };
        for file in &manifest.files {
            if let Err(defect) = self.size_there(&body, file)? {
                return Ok(Some(format!("at the remote, {defect}")));
            }
        }
        Ok(None)
    }

    /// Removes the objects of retired commits, records it in the log, and returns how many they were.
    fn sweep(&mut self) -> Result<u64> {
        let due: Vec<(u64, CommitBody)> = self
            .remote()
            .commits()
            .filter(|(_, record)| record.retired && !record.swept)
            .map(|(number, record)| (number, record.body.clone()))
            .collect();
        if due.is_empty() {
            return Ok(0);
        }
        let live = self.live_prefixes();
        // After `retire` is in the log: an upload that begins now relies on nothing that goes.
        let reached = self.reached()?;
        let mut removed = 0;
        let mut swept = Vec::new();
        for (number, body) in due {
            removed += self.remove_objects(&body, &live, &reached)?;
            swept.push(number);
        }
        // After the last removal: until then another collection continues it.
        self.log.append(Writer::Housekeeper, |_: &History| {
            Ok::<_, CheckpointError>(Some(Body::Retire { commits: Vec::new(), swept: swept.clone() }))
        })?;
        Ok(removed)
    }

    /// Prefixes below which something may still be sent. All others are those of retired commits, also of those that a
    /// summary leaves out.
    fn live_prefixes(&self) -> BTreeSet<String> {
        let live = self.remote().commits().filter(|(_, record)| !record.retired);
        live.map(|(_, record)| record.body.object_prefix.clone()).collect()
    }

    /// Names of all objects that a commit which is not retired may rely on.
    ///
    /// One without a manifest there was not begun to be sent; when it is, it will see what is retired now.
    fn reached(&self) -> Result<BTreeSet<String>> {
        let mut reached = BTreeSet::new();
        for (_, record) in self.remote().commits().filter(|(_, record)| !record.retired) {
            // What cannot be read as a manifest reaches nothing that could ever be loaded.
            if let Some(Ok(manifest)) = self.remote_manifest(&record.body)? {
                reached.extend(names_of(&record.body, &manifest));
            }
        }
        Ok(reached)
    }

    /// The manifest goes last: until then a crash leaves the list of the rest.
    fn remove_objects(
        &self,
        body: &CommitBody,
        live: &BTreeSet<String>,
        reached: &BTreeSet<String>,
    ) -> Result<u64> {
        let manifest_name = key(&body.object_prefix, MANIFEST_FILE_NAME);
        let Some(manifest) = self.remote_manifest(body)? else { return Ok(0) };
        let names = manifest.map(|manifest| names_of(body, &manifest)).unwrap_or_default();
        let removable = |name: &&String| {
            let prefix = name.rsplit_once('/').map_or("", |(prefix, _)| prefix);
            !live.contains(prefix) && !reached.contains(*name)
        };
        let mut removed = 1;
        for name in names.iter().filter(removable) {
            self.files.remove(name)?;
            removed += 1;
        }
        self.files.remove(&manifest_name)?;
        Ok(removed)
    }
}

/// Every name below which a file of a checkpoint may be.
fn names_of(body: &CommitBody, manifest: &Manifest) -> Vec<String> {
    manifest.files.iter().flat_map(|file| keys_of(&body.object_prefix, file)).collect()
}

/// Commits that a resume could take and whose bytes are there, newest first.
fn uploaded_chain(history: &History) -> Vec<u64> {
    let uploaded = |number: &u64| history.commit(*number).is_some_and(|it| it.uploaded_to.is_some());
    history.live_chain().into_iter().filter(uploaded).collect()
}

/// What the rules keep among all commits, and what they keep among those whose bytes are there: the others may never
/// come.
fn remote_plan(history: &History, policy: &Retention, now: Timestamp, age: Option<Age>) -> RetentionPlan {
    let policy = Retention { only_uploaded: false, ..policy.clone() };
    let mut together = plan(history, &policy, now, age);
    let there = plan_along(history, &policy, now, age, &uploaded_chain(history));
    for (number, reasons) in there.keep {
        together.keep.entry(number).or_default().extend(reasons);
    }
    together.retire.retain(|number, _| !together.keep.contains_key(number));
    together
}
