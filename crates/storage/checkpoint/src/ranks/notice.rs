use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, Step};
use trackway_files::{OwnedFolder, make_folders, write_own};

use crate::group::VOTES_FOLDER;

/// The most notices that are read at a time; the rest come with the next look.
const MAX_READ: usize = 64;
/// The largest notice that is read.
const MAX_NOTICE_BYTES: u64 = 4_096;
/// What a rank leaves for rank 0 when it is asked to stop and rank 0 may not know.
const STOP_REQUEST: &str = "stop-request";

/// A decision of rank 0 that the others cannot take by themselves, because it depends on the time or on a request. All
/// follow it at the end of the same step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The step, which no rank has finished when rank 0 sends this.
    pub step: Step,
    /// Whether to save at its end.
    pub save: bool,
    /// Whether to end there.
    pub stop: bool,
    /// The reason, as the recorder names it.
    pub reason: String,
}

/// Where rank 0 announces steps to the others: `ROOT/votes/notices-ATTEMPT-ROUND/00000001.json` and so on.
///
/// A look costs one failed `open(2)`, so that a training loop can afford it at each step. Nothing is synced and nothing
/// is promised: a rank that learns of a step too late does not save it, so that the checkpoint is given up.
#[derive(Debug, Clone)]
pub struct Notices {
    folder: PathBuf,
    next: u64,
}

impl Notices {
    /// Those of one start of the ranks of an attempt.
    #[must_use]
    pub fn new(root: &Path, attempt_id: AttemptId, round: u32) -> Self {
        Self { folder: root.join(VOTES_FOLDER).join(format!("notices-{attempt_id}-{round}")), next: 1 }
    }

    /// Removes earlier notices.
    pub fn clear(&self) {
        // What cannot be removed is of steps that are over.
        let root = self.folder.ancestors().nth(2).unwrap_or(&self.folder);
        let _ = OwnedFolder::holding(root, &[VOTES_FOLDER]).and_then(|root| root.remove(&self.folder));
    }

    /// The notices since the last call, in order.
    pub fn look(&mut self) -> Vec<Notice> {
        let mut found = Vec::new();
        while found.len() < MAX_READ
            && let Ok(bytes) = self.read(self.next)
        {
            self.next += 1;
            // What cannot be read is as if it came too late.
            found.extend(serde_json::from_slice::<Notice>(&bytes).ok());
        }
        found
    }

    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        use io::Read as _;
        let mut bytes = Vec::new();
        fs::File::open(self.path(number))?.take(MAX_NOTICE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Announces a step; only rank 0 does. A notice appears as a whole.
    pub fn announce(&mut self, notice: &Notice) -> io::Result<()> {
        let aside = self.folder.join("incoming");
        let bytes = serde_json::to_vec(notice).map_err(io::Error::other)?;
        make_folders(&self.folder)?;
        write_own(&aside, &bytes)?;
        // By a rename: a rank that looks now finds all of it or nothing.
        fs::rename(&aside, self.path(self.next))?;
        self.next += 1;
        Ok(())
    }

    /// Lets rank 0 know that this rank has to stop.
    pub fn request_stop(&self) -> io::Result<()> {
        make_folders(&self.folder)?;
        write_own(&self.folder.join(STOP_REQUEST), &[])
    }

    /// Whether a rank has to stop.
    #[must_use]
    pub fn stop_requested(&self) -> bool {
        self.folder.join(STOP_REQUEST).exists()
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:08}.json"))
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::SequentialIds;

    use super::*;

    /// Proves that every rank reads each notice once, whenever it looks, that files which are not notices are skipped,
    /// and that other attempts and rounds have separate ones.
    #[test]
    fn notices_are_read_once_each() {
        let folder = tempfile::tempdir().unwrap();
        let attempt_id = AttemptId::new(&SequentialIds::default());
        let notice = |step| Notice { step, save: true, stop: false, reason: "asked".into() };
        let mut announcer = Notices::new(folder.path(), attempt_id, 0);
        let mut early = announcer.clone();
        assert_eq!(early.look(), []);
        announcer.announce(&notice(5)).unwrap();
        assert_eq!(early.look(), [notice(5)]);
        announcer.announce(&notice(7)).unwrap();
        fs::write(announcer.path(3), b"{").unwrap();
        announcer.next += 1;
        announcer.announce(&notice(9)).unwrap();
        assert_eq!(early.look(), [notice(7), notice(9)]);
        assert_eq!(early.look(), []);
        assert_eq!(Notices::new(folder.path(), attempt_id, 0).look().len(), 3);
        assert_eq!(Notices::new(folder.path(), attempt_id, 1).look(), []);
        assert!(!announcer.stop_requested());
        early.request_stop().unwrap();
        assert!(announcer.stop_requested());
        announcer.clear();
        assert!(!announcer.stop_requested() && Notices::new(folder.path(), attempt_id, 0).look().is_empty());
    }
}
