//! What the earlier attempts of a run are shown to have written: only that is moved before a resume.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use trackway_formats::writers::{ShownBy, WritersRecord};

use super::own::{is_same, own_files};
use crate::commit::committed::Commits;
use crate::commit::families::Families;
use crate::find::candidate::{Candidate, born_ns};
use crate::find::patterns::Patterns;
use crate::writers::owner::{Company, Owner, Writers};
use crate::writers::sightings::{WriterEvidence, WrittenFile, company_in, lived_until};

/// Why a state that no record has is not the run's.
const NOT_RECORDED: &str = "no attempt of this run was seen to write it";

/// One attempt that has ended, and what was seen of the writers beside it.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// When it began, in nanoseconds since 1970.
    pub from_ns: i64,
    /// Its last sign of life: what was written later, another wrote.
    pub alive_until_ns: i64,
    /// What its shim recorded.
    pub record: WritersRecord,
}

impl Past {
    /// What its record says of files that were not committed while it ran.
    #[must_use]
    pub fn seen(&self, files: &[WrittenFile]) -> WriterEvidence {
        let lived_until_ns = lived_until(&self.record, self.alive_until_ns);
        let mut recorded = self.record.own.iter().flat_map(|own| &own.files);
        let is_own = recorded.any(|own| {
            files.iter().any(|file| {
                (file.id, file.born_ns) == ((own.device, own.inode), own.born_ns)
                    && file.modified_ns <= lived_until_ns
            })
        });
        let open = Writers { own: is_own, ..Writers::default() };
        let moments = files.iter().flat_map(|file| [file.modified_ns, file.changed_ns]);
        let company = match self.company(moments) {
            // It is not looked at the machine again, and what was not seen then was not seen.
            Company::Alone | Company::NotYet => Company::NotKnown(NOT_RECORDED.into()),
            known => known,
        };
        WriterEvidence { kernel: Writers::default(), open, company, less: None }
    }

    /// Whether it was alone when something with these times was written, in nanoseconds since 1970.
    fn company(&self, moments: impl Iterator<Item = i64> + Clone) -> Company {
        company_in(&self.record, (self.from_ns, self.alive_until_ns), moments)
    }

    /// What it recorded of this state of a path.
    #[must_use]
    pub fn own(&self, candidate: &Candidate, shown: &str) -> Option<ShownBy> {
        let known = self.record.own.iter().find(|own| own.path == shown)?;
        let there = own_files(candidate);
        let lived_until_ns = lived_until(&self.record, self.alive_until_ns);
        let is_known = |file| known.files.iter().any(|own| is_same(own, file, lived_until_ns));
        // Of several files each is one for itself.
        let is_own = match candidate.beside.is_empty() {
            true => there.iter().any(is_known),
            false => there.iter().all(is_known),
        };
        is_own.then_some(known.by)
    }
}

/// The earlier attempts of a run, and what it committed.
#[derive(Debug, Clone, Default)]
pub struct History {
    attempts: Vec<Arc<Past>>,
    commits: Commits,
    families: Families,
}

impl History {
    /// `attempts`: oldest first. `checkpoint_roots`: where the run commits, of every rung.
    #[must_use]
    pub fn new<'r>(attempts: Vec<Arc<Past>>, checkpoint_roots: impl IntoIterator<Item = &'r Path>) -> Self {
        let commits = Commits::of_all(checkpoint_roots);
        Self { attempts, families: commits.families(), commits }
    }

    /// What a state lacks that those which were committed have: `path` is that of its first file, as receipts show it.
    pub(crate) fn missing_of(&self, path: &str, beside: &[String]) -> Option<String> {
        self.families.missing(path, beside)
    }

    /// Whose a candidate is. What the run committed is its own; else what was recorded while an attempt ran.
    #[must_use]
    pub fn owner_of(&self, candidate: &Candidate, patterns: &Patterns) -> Owner {
        let shown = patterns.shown(&candidate.path);
        if self.commits.of_candidate(candidate, patterns).is_some() {
            return Owner::Own { by: ShownBy::Report };
        }
        if let Some(by) = self.attempts.iter().rev().find_map(|past| past.own(candidate, &shown)) {
            return Owner::Own { by };
        }
        Owner::Unknown { why: NOT_RECORDED.into() }
    }

    /// Whether an attempt made a folder without files for its next checkpoint: it was alone then, and its other
    /// checkpoints there have such a name.
    #[must_use]
    pub(crate) fn made_folder(&self, path: &Path, patterns: &Patterns) -> bool {
        let is_alike = self.has_others_like(&patterns.shown(path));
        let Some(born_ns) = born_ns(path).filter(|_| is_alike) else { return false };
        let past = self.attempts.iter().rev().find(|past| past.from_ns <= born_ns);
        past.is_some_and(|past| past.company([born_ns].into_iter()) == Company::Alone)
    }

    /// Whether other checkpoints of the run have such a name, with other numbers.
    pub(crate) fn has_others_like(&self, shown: &str) -> bool {
        self.own_paths().iter().any(|own| own != shown && name_of(own) == name_of(shown))
    }

    fn own_paths(&self) -> BTreeSet<String> {
        let own = self.attempts.iter().flat_map(|past| &past.record.own).map(|own| own.path.clone());
        own.chain(self.commits.paths()).collect()
    }
}

/// A path without its digits.
fn name_of(path: &str) -> String {
    path.chars().filter(|char| !char.is_ascii_digit()).collect()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use trackway_formats::writers::{OwnCheckpoint, WRITERS_VERSION};

    use super::*;

    fn now_ns() -> i64 {
        let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
        i64::try_from(now.as_nanos()).unwrap()
    }

    /// A folder, its patterns, and an attempt that lives for an hour around now.
    fn world() -> (tempfile::TempDir, Patterns, Past) {
        let folder = tempfile::tempdir().unwrap();
        let patterns = Patterns::new(folder.path(), &["out/*".into()], Path::new("/absent")).unwrap();
        fs::create_dir(folder.path().join("out")).unwrap();
        let record = WritersRecord {
            version: WRITERS_VERSION,
            looked_until_ns: Some(i64::MAX),
            own: vec![],
            others: vec![],
        };
        let hour = 3_600_000_000_000;
        (folder, patterns, Past { from_ns: now_ns() - hour, alive_until_ns: i64::MAX, record })
    }

    /// Proves that what an attempt recorded is its own also after more was written to the same file, and that neither
    /// another file at the same path is nor what no attempt recorded.
    #[test]
    fn only_what_was_recorded_is_own() {
        let (folder, patterns, mut past) = world();
        let path = folder.path().join("out/ckpt.pt");
        let owner = |past: &Past| {
            let candidate = Candidate::at(&path).unwrap().unwrap();
            let is_own = past.seen(&candidate.written()).open.own;
            let owner = History::new(vec![Arc::new(past.clone())], None).owner_of(&candidate, &patterns);
            assert_eq!(is_own, owner.is_seen());
            owner
        };
        fs::write(&path, "state").unwrap();
        assert!(matches!(owner(&past), Owner::Unknown { .. }));
        let files = own_files(&Candidate::at(&path).unwrap().unwrap());
        past.record.own = vec![OwnCheckpoint { path: "out/ckpt.pt".into(), by: ShownBy::Open, files }];
        assert_eq!(owner(&past), Owner::Own { by: ShownBy::Open });
        fs::write(&path, "torn").unwrap();
        assert_eq!(owner(&past), Owner::Own { by: ShownBy::Open }, "the same file");
        let other = folder.path().join("other");
        fs::write(&other, "of another").unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(matches!(owner(&past), Owner::Unknown { .. }), "another file");
    }

    /// Proves that a file which was written to in place after the attempt had ended is another's, though it is the same
    /// file, and that a claim does not make it the run's.
    #[test]
    fn what_is_written_after_the_end_is_anothers() {
        let (folder, patterns, mut past) = world();
        let path = folder.path().join("out/ckpt.pt");
        fs::write(&path, "state").unwrap();
        let candidate = || Candidate::at(&path).unwrap().unwrap();
        let own =
            OwnCheckpoint { path: "out/ckpt.pt".into(), by: ShownBy::Open, files: own_files(&candidate()) };
        past.record = WritersRecord { looked_until_ns: Some(now_ns()), own: vec![own], ..past.record };
        past.alive_until_ns = now_ns();
        let is_own = |past: &Past| {
            let history = History::new(vec![Arc::new(past.clone())], None);
            history.owner_of(&candidate(), &patterns).is_seen() && past.seen(&candidate().written()).open.own
        };
        assert!(is_own(&past));
        std::thread::sleep(std::time::Duration::from_millis(150));
        fs::write(&path, "of another").unwrap();
        assert!(!is_own(&past));
        assert_eq!(past.seen(&candidate().written()).company, Company::Ended);
    }

    /// Proves that an empty folder is the run's only if it is named like its checkpoints and was made while it was alone.
    #[test]
    fn an_empty_folder_is_own_by_its_name() {
        let (folder, patterns, mut past) = world();
        let own = |path: &str| OwnCheckpoint { path: path.into(), by: ShownBy::Open, files: vec![] };
        past.record.own = vec![own("out/checkpoint-10")];
        let made = |name: &str, past: &Past| {
            let path: PathBuf = folder.path().join("out").join(name);
            fs::create_dir_all(&path).unwrap();
            History::new(vec![Arc::new(past.clone())], None).made_folder(&path, &patterns)
        };
        assert!(made("checkpoint-20", &past));
        assert!(!made("tb", &past));
        let before = Past { from_ns: i64::MAX - 1, ..past };
        assert!(!made("checkpoint-20", &before));
    }
}
