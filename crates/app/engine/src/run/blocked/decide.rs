//! What changed since the data stopped an attempt: a digest of what another one would be launched on, or a file that
//! the evidence names and that was written since. Documents and the run file are no change. Pure: evidence in, parts of
//! sentences out.

use std::collections::{BTreeMap, BTreeSet};

use trackway_core::text::{first_quoted, short_digest};
use trackway_core::{TerminationReason, Timestamp};
use trackway_formats::runfile::Plan;
use trackway_formats::sha256_hex;

use super::documents::is_document;
use crate::capture::{Git, PatchedFile, both, given_leaves, is_python, patched_files};

/// Files and settings that a sentence names.
const NAMED_MAX: usize = 6;

/// What the digest of the files is called that neither the command names nor git compares.
const OF_FOLDER: &str = "files of its folder";

/// What an attempt is launched on.
#[derive(Debug, Clone, Default)]
pub struct LaunchedOn {
    /// The hash of all data.
    pub data_sha256: Option<String>,
    /// The hash of what the data is checked against.
    pub contract_sha256: Option<String>,
    /// The commit that is checked out.
    pub commit: Option<String>,
    /// The hash of what is not committed.
    pub uncommitted_blake3: Option<String>,
    /// The hash of the script.
    pub script_blake3: Option<String>,
    /// What is not committed, by the paths of the files; none where not all of them are known.
    pub uncommitted_files: Option<BTreeMap<String, String>>,
    /// The hashes of the files of the command, by their paths from the working directory; none where they are not kept.
    pub named_files: Option<BTreeMap<String, String>>,
    /// What says which bytes the other files of its folders have, by the same paths; none where they are not known.
    pub folder_files: Option<BTreeMap<String, FolderFileState>>,
}

/// A file of the folders of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderFileState {
    /// What says which bytes it has.
    pub bytes: String,
    /// Whether only its size and its time do, since it is too large to be hashed.
    pub is_dated: bool,
    /// The same of its code, without comments.
    pub code: Option<String>,
    /// Whether it may be the output of an attempt.
    pub is_output: bool,
    /// Whether it is code or a text that nothing names.
    pub is_unused: bool,
}

impl FolderFileState {
    /// Whether it differs for more than comments.
    fn is_other(&self, now: &Self) -> bool {
        self.bytes != now.bytes && (self.code.is_none() || self.code != now.code)
    }
}

/// What is known of an attempt that its data stopped and of what another one would be launched on.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// What the attempt was launched on.
    pub then: LaunchedOn,
    /// What another one would be.
    pub now: LaunchedOn,
    /// The files that differ between the commits; none where they are not known.
    pub committed_files: Option<Vec<String>>,
    /// The run file as the paths above are written, where it is in the repository.
    pub run_file: Option<String>,
    /// When the attempt ended.
    pub ended_at: Option<Timestamp>,
    /// The files that the evidence of its end names.
    pub seen_files: Vec<SeenFile>,
    /// Whether the script has the same code as then, but for comments.
    pub is_same_code: bool,
    /// The files of the command that are no repair: the same code but for comments, or what its script wrote.
    pub idle_files: BTreeSet<String>,
    /// The same of the repository, as the paths of what is not committed are written.
    pub idle_in_git: BTreeSet<String>,
    /// What is not committed and changes nothing unless it was there then: code and texts that nothing names, and other comments.
    pub unused_files: BTreeSet<String>,
    /// Of the files that are no repair, those that were written while an attempt ran.
    pub outputs: BTreeSet<String>,
}

/// A file that the evidence of an end names.
#[derive(Debug, Clone)]
pub struct SeenFile {
    /// Its path, from the working directory.
    pub path: String,
    pub written_at: Timestamp,
    /// Whether one of the digests is over it.
    pub is_hashed: bool,
}

/// What changed and what did not, as parts of a sentence.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub changed: Vec<String>,
    /// The digests that did not.
    pub same: Vec<String>,
}

impl Evidence {
    /// What changed since the attempt.
    pub fn compared(&self) -> Comparison {
        let digests = self.digests();
        let (other, same): (Vec<&Digest>, Vec<&Digest>) =
            digests.iter().partition(|digest| digest.is_other());
        let mut changed: Vec<String> = other.into_iter().map(Digest::change).collect();
        if changed.is_empty() {
            let said = |path: &str| {
                format!("`{path}` (written after it ended; whether its bytes changed is not known)")
            };
            changed.extend(self.written_since().map(said));
        }
        let same = same.into_iter().filter_map(Digest::same).chain(self.written_meanwhile());
        Comparison { changed, same: same.collect() }
    }

    /// What may be the output of a run, as a part of a sentence.
    fn written_meanwhile(&self) -> Option<String> {
        let none = BTreeMap::new();
        let then = self.then.folder_files.as_ref().unwrap_or(&none);
        let now = self.now.folder_files.as_ref().unwrap_or(&none);
        let is_written = |(path, file): &(&String, &FolderFileState)| {
            file.is_output && then.get(*path).is_some_and(|then| then.is_other(file))
        };
        let of_folder = now.iter().filter(is_written).map(|(path, _)| path);
        let all: BTreeSet<&String> = self.outputs.iter().chain(of_folder).collect();
        let names: Vec<String> = all.into_iter().cloned().collect();
        (!names.is_empty()).then(|| format!("written while an attempt ran: {}", named(&names)))
    }

    fn digests(&self) -> Vec<Digest> {
        let (then, now) = (&self.then, &self.now);
        let of = |what, then: &Option<String>, now: &Option<String>| Digest {
            what,
            then: then.clone(),
            now: now.clone(),
            files: None,
            dated: Vec::new(),
        };
        let mut digests = vec![
            of("data", &then.data_sha256, &now.data_sha256),
            of("schema and rules", &then.contract_sha256, &now.contract_sha256),
            Digest { files: self.committed_since(), ..of("commit", &then.commit, &now.commit) },
            Digest {
                files: self.edited_since(),
                ..of("uncommitted changes", &then.uncommitted_blake3, &now.uncommitted_blake3)
            },
            Digest {
                files: self.is_same_code.then(Vec::new),
                ..of("script", &then.script_blake3, &now.script_blake3)
            },
        ];
        if let (Some(before), Some(after)) = (&then.named_files, &now.named_files) {
            let mut files = differing(before, after);
            files.retain(|file| !self.idle_files.contains(file));
            digests.push(Digest {
                files: Some(files),
                ..of("files of the command", &digest_of(before), &digest_of(after))
            });
        }
        if let (Some(before), Some(after)) = (&then.folder_files, &now.folder_files) {
            let files = self.that_matter(differing_files(before, after));
            let is_dated = |path: &&String| {
                let sides = [before.get(*path), after.get(*path)];
                sides.iter().all(|file| file.is_some_and(|file| file.is_dated))
            };
            digests.push(Digest {
                dated: files.iter().filter(is_dated).cloned().collect(),
                files: Some(files),
                ..of(OF_FOLDER, &digest_of(&bytes_of(before)), &digest_of(&bytes_of(after)))
            });
        }
        digests
    }

    /// The files that differ between the commits; none where they are not known.
    fn committed_since(&self) -> Option<Vec<String>> {
        let mut files = self.committed_files.clone()?;
        files.retain(|file| !self.idle_in_git.contains(file));
        Some(self.that_matter(files))
    }

    /// The files whose difference from their commit is another one; none where they are not known.
    fn edited_since(&self) -> Option<Vec<String>> {
        let (before, after) = (self.then.uncommitted_files.as_ref()?, self.now.uncommitted_files.as_ref()?);
        let mut files = differing(before, after);
        let is_unused = |file: &String| !before.contains_key(file) && self.unused_files.contains(file);
        files.retain(|file| !is_unused(file) && !self.idle_in_git.contains(file));
        Some(self.that_matter(files))
    }

    /// Without documents, and without the run file: its settings are compared by themselves.
    fn that_matter(&self, mut files: Vec<String>) -> Vec<String> {
        files.retain(|file| !is_document(file) && self.run_file.as_ref() != Some(file));
        files
    }

    /// The files that the evidence names, that no digest is over, and that were written after the attempt.
    fn written_since(&self) -> impl Iterator<Item = &str> {
        let ended_at = self.ended_at;
        let is_new = move |file: &&SeenFile| ended_at.is_some_and(|ended| file.written_at > ended);
        self.seen_files.iter().filter(is_new).filter(|file| !file.is_hashed).map(|file| file.path.as_str())
    }
}

impl Comparison {
    /// What opens a blocked run. `settings`: those that the run file has otherwise now.
    pub fn opening(&self, reason: TerminationReason, settings: &[String]) -> String {
        let kept = other_settings("it keeps its settings", settings);
        format!("changed since it ended in `{reason}`: {}{kept}", self.changed.join(", "))
    }

    /// Why a blocked run is not opened: a part of a sentence.
    pub fn refusal(&self, reason: TerminationReason, settings: &[String]) -> String {
        let kept = other_settings("a resume keeps the settings of its run", settings);
        format!(
            ", since it ended in `{reason}` and what it would be launched on did not change: {}{kept}",
            self.same.join(", ")
        )
    }
}

fn other_settings(which: &str, settings: &[String]) -> String {
    match settings.is_empty() {
        true => String::new(),
        false => format!("; {which}, and the run file has others: {}", named(settings)),
    }
}

/// A digest of what an attempt starts from: then and now.
struct Digest {
    what: &'static str,
    then: Option<String>,
    now: Option<String>,
    /// The files that differ and may change a run, where all that differ are known.
    files: Option<Vec<String>>,
    /// Those of them that only their size or their time says to differ.
    dated: Vec<String>,
}

impl Digest {
    /// Whether it differs for more than a document or the run file.
    fn is_other(&self) -> bool {
        self.then != self.now && self.files.as_ref().is_none_or(|files| !files.is_empty())
    }

    fn change(&self) -> String {
        let shown = |digest: &Option<String>| digest.as_deref().map_or("none", short_digest).to_owned();
        let files = self.files.as_ref().map(|files| format!(": {}", named(files))).unwrap_or_default();
        let dated = match self.dated.as_slice() {
            [] => String::new(),
            dated => format!(
                "; whether the bytes of {} changed is not known, only when they were written",
                named(dated)
            ),
        };
        format!("{} ({} → {}{files}{dated})", self.what, shown(&self.then), shown(&self.now))
    }

    fn same(&self) -> Option<String> {
        let now = self.now.as_deref()?;
        match self.then == self.now {
            true => Some(format!("{} {}", self.what, short_digest(now))),
            false if self.what == OF_FOLDER => {
                Some(format!("{} but for documents, comments, outputs and unused code", self.what))
            }
            false => Some(format!("{} but for documents, comments and the run file", self.what)),
        }
    }
}

/// Every file that is not as it was committed, with what says how; none where not all of them are known.
pub fn uncommitted_files(git: &Git, patch: Option<&[u8]>) -> Option<BTreeMap<String, String>> {
    let lists_all = git.untracked_count == git.untracked.len() as u64;
    let is_missing = patch.is_none() && git.diff_bytes.unwrap_or(0) > 0;
    // Of a file without its hash the time says which one it is.
    let without_hash = git.untracked.iter().filter(|file| file.blake3.is_none());
    let dated = without_hash.filter(|file| file.modified_at.is_some()).count();
    if !lists_all || is_missing || git.left_out.len() != dated || git.why_missing.is_some() {
        return None;
    }
    let tracked = patched_files(patch.unwrap_or_default());
    let is_read = |(path, file): &(String, PatchedFile)| !(is_python(path) && file.is_of_comments());
    let tracked = tracked.into_iter().filter(is_read).map(|(path, file)| (path, file.identity()));
    let untracked = git.untracked.iter().map(|file| (file.path.clone(), file.identity()));
    Some(tracked.chain(untracked).collect())
}

/// What may be paths in a line of evidence.
pub fn paths_in(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |at: char| at.is_whitespace() || "\"'`()[]{},;:=<>".contains(at);
    let words = text.split(is_between).map(|word| word.trim_end_matches('.'));
    words.filter(|word| word.contains(['.', '/']))
}

/// The keys of the settings that differ, with dots between the levels.
pub fn differing_settings(before: &Plan, after: &Plan) -> Vec<String> {
    let settings = |plan: &Plan| given_leaves(&serde_json::to_value(plan).unwrap_or_default());
    differing(&settings(before), &settings(after))
}

/// The keys whose values differ.
pub(super) fn differing(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    both(before, after).filter(|(_, then, now)| then != now).map(|(key, ..)| key.clone()).collect()
}

fn bytes_of(files: &BTreeMap<String, FolderFileState>) -> BTreeMap<String, String> {
    files.iter().map(|(path, state)| (path.clone(), state.bytes.clone())).collect()
}

/// The files of a folder that differ: no outputs, and no new code or text that nothing names.
fn differing_files(
    before: &BTreeMap<String, FolderFileState>,
    after: &BTreeMap<String, FolderFileState>,
) -> Vec<String> {
    let other = both(before, after).filter(|(path, then, now)| match (then, now) {
        // A run writes no code that was there before.
        (Some(then), Some(now)) => then.is_other(now) && (!now.is_output || is_python(path)),
        (None, Some(new)) => !new.is_output && !new.is_unused,
        (Some(gone), None) => !gone.is_output,
        (None, None) => false,
    });
    other.map(|(path, ..)| path.clone()).collect()
}

/// Of the files whose bytes were hashed.
fn digest_of(files: &BTreeMap<String, String>) -> Option<String> {
    let text: String = files.iter().map(|(path, blake3)| format!("{path} {blake3}\n")).collect();
    (!text.is_empty()).then(|| sha256_hex(text.as_bytes()))
}

fn named(names: &[String]) -> String {
    first_quoted(names, NAMED_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Untracked;

    fn files(of: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
        Some(of.iter().map(|(path, what)| ((*path).to_owned(), (*what).to_owned())).collect())
    }

    /// Of an attempt and another one that would be launched on the same.
    fn unchanged() -> Evidence {
        let launched_on = LaunchedOn {
            data_sha256: Some("d1".into()),
            commit: Some("c1".into()),
            uncommitted_files: files(&[]),
            ..LaunchedOn::default()
        };
        Evidence {
            then: launched_on.clone(),
            now: launched_on,
            run_file: Some("conf/r.toml".into()),
            ..Evidence::default()
        }
    }

    /// Proves that each digest which differs is a change, and that without one the digests which there are are the same.
    #[test]
    fn a_digest_that_differs_is_a_change() {
        let same = unchanged().compared();
        assert_eq!((same.changed.len(), same.same), (0, vec!["data d1".to_owned(), "commit c1".to_owned()]));
        type Edit = fn(&mut LaunchedOn);
        let edits: [(Edit, &str); 4] = [
            (|now| now.data_sha256 = Some("0123456789abcdef".into()), "data (d1 → 0123456789ab)"),
            (|now| now.contract_sha256 = Some("k2".into()), "schema and rules (none → k2)"),
            (|now| now.commit = None, "commit (c1 → none)"),
            (|now| now.script_blake3 = Some("s2".into()), "script (none → s2)"),
        ];
        for (edit, expected) in edits {
            let mut evidence = unchanged();
            edit(&mut evidence.now);
            assert_eq!(evidence.compared().changed, [expected]);
        }
    }

    /// Proves that documents and the run file change neither a commit nor what is not committed, and that another file does, with its name.
    #[test]
    fn documents_and_the_run_file_are_no_change() {
        let mut evidence = unchanged();
        evidence.now.commit = Some("c2".into());
        evidence.committed_files = Some(vec!["docs/a.txt".into()]);
        evidence.now.uncommitted_blake3 = Some("u2".into());
        evidence.now.uncommitted_files = files(&[("README.md", "x"), ("conf/r.toml", "x")]);
        let found = evidence.compared();
        assert!(found.changed.is_empty(), "{found:?}");
        let rest = "but for documents, comments and the run file";
        assert_eq!(
            found.same,
            ["data d1".to_owned(), format!("commit {rest}"), format!("uncommitted changes {rest}")]
        );
        evidence.committed_files = None;
        evidence.now.uncommitted_files = files(&[("README.md", "x"), ("r.toml", "x"), ("t.py", "x")]);
        let found = evidence.compared();
        assert_eq!(
            found.changed,
            ["commit (c1 → c2)", "uncommitted changes (none → u2: `r.toml`, `t.py`)"],
            "of unknown files one may matter"
        );
        assert_eq!(found.same, ["data d1"]);
    }

    /// Proves that a file of the command counts, whatever it is, and that files which are not kept are not compared.
    #[test]
    fn files_of_the_command_count() {
        let mut evidence = unchanged();
        evidence.then.named_files = files(&[("README.md", "1"), ("t.py", "1")]);
        assert!(evidence.compared().changed.is_empty());
        evidence.now.named_files = files(&[("README.md", "2"), ("t.py", "1")]);
        let found = evidence.compared().changed;
        assert!(found.len() == 1 && found[0].starts_with("files of the command ("), "{found:?}");
        assert!(found[0].ends_with(": `README.md`)"), "{found:?}");
    }

    /// Proves that a file of its folder opens it where it changed, came or went, and that an output of a run, a
    /// document and new code or text that nothing names do not; of one that is too large to be hashed it is said that
    /// only its time is known.
    #[test]
    fn files_of_its_folder_count() {
        let file = |bytes: &str| FolderFileState { bytes: bytes.into(), ..FolderFileState::default() };
        let output = |bytes: &str| FolderFileState { is_output: true, ..file(bytes) };
        let unused = |bytes: &str| FolderFileState { is_unused: true, ..file(bytes) };
        let files = |of: &[(&str, FolderFileState)]| {
            Some(
                of.iter()
                    .map(|(path, state)| ((*path).to_owned(), state.clone()))
                    .collect::<BTreeMap<_, _>>(),
            )
        };
        let mut evidence = unchanged();
        evidence.then.folder_files =
            files(&[("data.csv", file("1")), ("log.csv", file("1")), ("old.csv", output("1"))]);
        evidence.now.folder_files = files(&[
            ("data.csv", file("1")),
            ("log.csv", output("2")),
            ("new.txt", output("1")),
            ("plot.py", unused("1")),
            ("out", unused("1")),
            ("README.md", file("1")),
        ]);
        assert!(evidence.compared().changed.is_empty(), "{:?}", evidence.compared());
        evidence.now.folder_files.as_mut().unwrap().insert("data.csv".into(), file("2"));
        let found = evidence.compared().changed;
        assert!(found.len() == 1 && found[0].starts_with("files of its folder ("), "{found:?}");
        assert!(found[0].ends_with(": `data.csv`)"), "{found:?}");
        let large = |bytes: &str| FolderFileState { is_dated: true, ..file(bytes) };
        evidence.then.folder_files = files(&[("big.csv", large("5 MB of 1"))]);
        evidence.now.folder_files = files(&[("big.csv", large("5 MB of 2"))]);
        let found = evidence.compared().changed;
        let said = "; whether the bytes of `big.csv` changed is not known, only when they were written)";
        assert!(found.len() == 1 && found[0].ends_with(said), "{found:?}");
        evidence.now.folder_files = None;
        assert!(evidence.compared().changed.is_empty(), "they are not known");
    }

    /// Proves that neither a comment in the script nor new code that nothing names is a change.
    #[test]
    fn comments_and_unused_code_are_no_change() {
        let mut evidence = unchanged();
        (evidence.now.script_blake3, evidence.is_same_code) = (Some("s2".into()), true);
        evidence.now.uncommitted_blake3 = Some("u2".into());
        evidence.now.uncommitted_files = files(&[("plot.py", "1")]);
        evidence.unused_files = BTreeSet::from(["plot.py".to_owned()]);
        (evidence.then.named_files, evidence.now.named_files) =
            (files(&[("t.py", "s1")]), files(&[("t.py", "s2")]));
        evidence.idle_files = BTreeSet::from(["t.py".to_owned()]);
        assert!(evidence.compared().changed.is_empty(), "{:?}", evidence.compared());
        evidence.unused_files.clear();
        assert_eq!(evidence.compared().changed, ["uncommitted changes (none → u2: `plot.py`)"]);
    }

    /// Proves that what a run wrote does not count, whether the command names it or git lists it, and that it is named behind the digests.
    #[test]
    fn outputs_are_no_change() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let mut evidence = unchanged();
        (evidence.then.named_files, evidence.now.named_files) =
            (files(&[("t.py", "1")]), files(&[("t.py", "1"), ("log", "2")]));
        evidence.now.uncommitted_blake3 = Some("u2".into());
        evidence.now.uncommitted_files = files(&[("sub/log", "2"), ("m.json", "1")]);
        (evidence.idle_files, evidence.idle_in_git) = (names(&["log"]), names(&["sub/log", "m.json"]));
        evidence.outputs = names(&["log"]);
        let found = evidence.compared();
        assert!(found.changed.is_empty(), "{found:?}");
        assert_eq!(found.same.last().unwrap(), "written while an attempt ran: `log`");
        evidence.now.named_files = files(&[("t.py", "2"), ("log", "2")]);
        let found = evidence.compared();
        assert!(found.changed.len() == 1 && found.changed[0].ends_with(": `t.py`)"), "{found:?}");
    }

    /// Proves that code of a folder which a run cannot have written counts, that a comment in it does not, and that an
    /// output which changed is named.
    #[test]
    fn code_of_its_folder_counts() {
        let file = |bytes: &str, code: Option<&str>| FolderFileState {
            bytes: bytes.into(),
            is_dated: false,
            code: code.map(str::to_owned),
            is_output: true,
            is_unused: false,
        };
        let files = |model: FolderFileState, log: &str| {
            Some(BTreeMap::from([("model.py".to_owned(), model), ("log.csv".to_owned(), file(log, None))]))
        };
        let mut evidence = unchanged();
        evidence.then.folder_files = files(file("1", Some("c1")), "1");
        evidence.now.folder_files = files(file("2", Some("c1")), "2");
        let found = evidence.compared();
        assert!(found.changed.is_empty(), "{found:?}");
        assert_eq!(found.same.last().unwrap(), "written while an attempt ran: `log.csv`");
        evidence.now.folder_files = files(file("2", Some("c2")), "2");
        assert!(evidence.compared().changed[0].ends_with(": `model.py`)"), "{:?}", evidence.compared());
    }

    /// Proves that a file which the evidence names counts where it was written after the end and no digest is over it.
    #[test]
    fn what_was_written_since_counts() {
        let at = Timestamp::from_micros;
        let file = |path: &str, written: i64, is_hashed: bool| SeenFile {
            path: path.into(),
            written_at: at(written),
            is_hashed,
        };
        let mut evidence = unchanged();
        evidence.seen_files =
            vec![file("new.csv", 11, false), file("hashed.csv", 11, true), file("old.csv", 10, false)];
        assert!(evidence.compared().changed.is_empty(), "it is not known when it ended");
        evidence.ended_at = Some(at(10));
        let said = "`new.csv` (written after it ended; whether its bytes changed is not known)";
        assert_eq!(evidence.compared().changed, [said]);
        evidence.now.data_sha256 = None;
        assert_eq!(evidence.compared().changed, ["data (d1 → none)"], "the digests are enough");
    }

    /// Proves that both sentences name the settings of the run file that a resume does not take.
    #[test]
    fn sentences_name_other_settings() {
        let found = Comparison { changed: vec!["a".into(), "b".into()], same: vec!["c".into()] };
        let reason = TerminationReason::DataError;
        assert_eq!(found.opening(reason, &[]), "changed since it ended in `data_error`: a, b");
        let settings: Vec<String> = (0..8).map(|key| format!("k{key}")).collect();
        let names = "`k0`, `k1`, `k2`, `k3`, `k4`, `k5` and 2 more";
        assert_eq!(
            found.opening(reason, &settings),
            format!(
                "changed since it ended in `data_error`: a, b; it keeps its settings, and the run file has others: {names}"
            )
        );
        assert_eq!(
            found.refusal(reason, &settings),
            format!(
                ", since it ended in `data_error` and what it would be launched on did not change: c; \
                 a resume keeps the settings of its run, and the run file has others: {names}"
            )
        );
    }

    /// Proves that the difference is read file by file, that only the head of a binary file counts, and that it is not
    /// known where something was left out of it.
    #[test]
    fn what_is_not_committed_is_read_file_by_file() {
        let diff = "diff --git a/t.py b/t.py\nindex 1..2 100644\n@@ -1 +1 @@\n-a\n+b\n\
                    diff --git a/m.bin b/m.bin\nindex 3..4 100644\nGIT binary patch\nliteral 1\nabc\n\nliteral 2\n";
        let git = Git { diff_bytes: Some(9), ..Git::default() };
        let found = uncommitted_files(&git, Some(diff.as_bytes())).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["m.bin", "t.py"]);
        assert!(
            found["t.py"].ends_with("-a\n+b\n") && found["m.bin"].ends_with("index 3..4 100644\n"),
            "{found:?}"
        );
        assert_eq!(uncommitted_files(&git, None), None);
        let mut large = Git { left_out: vec!["x".into()], ..Git::default() };
        assert_eq!(uncommitted_files(&large, None), None);
        let modified_at = Some(Timestamp::from_micros(1));
        large.untracked = vec![Untracked { path: "m.pt".into(), blake3: None, modified_at }];
        large.untracked_count = 1;
        assert!(uncommitted_files(&large, None).unwrap().contains_key("m.pt"), "its time is known");
    }

    /// Proves that paths are found in the line of code and in the message of a traceback.
    #[test]
    fn paths_of_the_evidence() {
        let found = |text: &'static str| paths_in(text).collect::<Vec<_>>();
        assert_eq!(
            found("at t.py:2 in <module>: c = json.load(open(\"c.json\"))"),
            ["t.py", "json.load", "c.json"]
        );
        assert_eq!(found("cannot read '/w/a b/x.csv'."), ["/w/a", "b/x.csv"]);
        assert!(found("Expecting value").is_empty());
    }

    /// Proves that settings are compared key by key, and that a list of words is one value.
    #[test]
    fn settings_are_compared_by_key() {
        let plan = |rate: &str, words: &[&str]| {
            let mut plan =
                Plan::for_command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
            plan.run.name = "x".into();
            plan.run.environment = BTreeMap::from([("LR".to_owned(), rate.to_owned())]);
            plan
        };
        let first = plan("0.1", &["t.py"]);
        assert!(differing_settings(&first, &first).is_empty());
        assert_eq!(differing_settings(&first, &plan("0.2", &["t.py"])), ["run.environment.LR"]);
        assert_eq!(differing_settings(&first, &plan("0.1", &["t.py", "-v"])), ["run.command"]);
    }
}
