//! What opens a run that its data blocked: a digest of what it would be launched on that is not what stopped it, or a file that its evidence
//! names and that was written since. Documents open nothing, and neither do settings: a resume keeps those of its run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::Value;
use trackway_core::TerminationReason;
use trackway_core::text::quoted_list;
use trackway_data::DataManifest;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::runfile::Plan;
use trackway_formats::{EventKind, sha256_hex};
use trackway_ledger::{AttemptRow, RunRow};

use super::job::{Job, RunSource, data_sha256};
use super::prepare::{Opened, contract_sha256, resolve_data};
use crate::Context;
use crate::capture::sources::PATCH_FILE;
use crate::capture::{Capture, Git, NamedFile, changed_between};
use crate::error::{AppError, ErrorKind};
use crate::json_file;
use crate::reporter::Reporter;

/// Letters of a digest that are shown.
const DIGEST_LETTERS: usize = 12;
/// Files and settings that a sentence names.
const NAMED_MAX: usize = 6;
/// What replaces a secret in what is stored.
const REDACTED: &str = "[redacted";

/// A digest of what an attempt starts from: then and now.
struct Digest {
    what: &'static str,
    then: Option<String>,
    now: Option<String>,
    /// The files that differ and may change a run, where all that differ are known.
    files: Option<Vec<String>>,
}

/// What is looked at for a blocked run.
struct Blocked<'b> {
    context: &'b Context,
    run: &'b RunRow,
    job: &'b Job,
    /// The attempt that blocked it.
    last: &'b AttemptRow,
    /// What that attempt started from, where it is kept.
    then: Option<&'b Capture>,
    /// What another one would start from.
    now: &'b Capture,
}

/// Why a run cannot be resumed.
pub(super) fn not_resumable(run: &RunRow, why: &str) -> AppError {
    AppError::new(ErrorKind::Usage, format!("run `{}` cannot be resumed: it is {}{why}", run.name, run.state))
        .hint(format!("see why with: trackway explain {}", run.run_id))
}

/// Whether the data is what stopped an attempt.
pub(super) const fn is_of_data(reason: TerminationReason) -> bool {
    matches!(reason, TerminationReason::DataError | TerminationReason::SchemaDrift)
}

/// What changed since the last attempt of a blocked run.
///
/// # Errors
/// [`crate::error::ErrorKind::Usage`] with the digests where nothing did, and for a run that something else blocked.
pub(super) fn opened(
    context: &Context,
    (run, job, capture): (&RunRow, &Job, &Capture),
    reporter: &dyn Reporter,
) -> Result<Opened, AppError> {
    let last = context.attempts_of(run.run_id)?.pop();
    let stopped = |attempt: AttemptRow| {
        let reason = attempt.termination_reason.filter(|reason| is_of_data(*reason))?;
        Some((attempt, reason))
    };
    let Some((last, reason)) = last.and_then(stopped) else { return Err(not_resumable(run, "")) };
    let manifests = resolve_data(context, job, reporter)?;
    let data_sha256 = data_sha256(&manifests);
    let files = AttemptLayout::new(Path::new(&last.log_directory));
    let then: Option<Capture> = json_file::read_if_sound(&files.capture_json());
    let blocked = Blocked { context, run, job, last: &last, then: then.as_ref(), now: capture };
    let digests = blocked.digests(data_sha256.clone())?;
    let mut changed: Vec<String> = digests.iter().filter_map(Digest::change).collect();
    if changed.is_empty() {
        let written = blocked.written_since(&manifests);
        changed.extend(written.iter().map(|file| format!("`{file}` (written after it ended)")));
    }
    let settings = blocked.changed_settings();
    if changed.is_empty() {
        return Err(blocked.unchanged(reason, &digests, &settings));
    }
    let kept = match settings.is_empty() {
        true => String::new(),
        false => format!("; it keeps its settings, and the run file has others: {}", named(&settings)),
    };
    let sentence = format!("changed since it ended in `{reason}`: {}{kept}", changed.join(", "));
    Ok(Opened { sentence, data_sha256 })
}

impl Blocked<'_> {
    fn digests(&self, data_now: Option<String>) -> Result<Vec<Digest>, AppError> {
        let events = self.context.ledger_read(|ledger| ledger.events_of_run(self.run.run_id))?;
        // What the data was checked against when it was checked last.
        let again = events.iter().rfind(|event| EventKind::PreflightRepeated.is(&event.kind));
        let contract = match again {
            Some(event) => event.field("contract_sha256").map(str::to_owned),
            None => self.run.data_contract_sha256.clone(),
        };
        let (last, git) = (self.last, &self.now.git);
        let script = self.now.script.as_ref().and_then(|script| script.blake3.clone());
        let of = |what, then: &Option<String>, now| Digest { what, then: then.clone(), now, files: None };
        let mut digests = vec![
            of("data", &last.data_sha256, data_now),
            of("schema and rules", &contract, contract_sha256(self.job)),
            Digest { files: self.committed_since(), ..of("commit", &last.git_commit, git.commit.clone()) },
            Digest {
                files: self.edited_since(),
                ..of("uncommitted changes", &last.git_diff_blake3, git.dirty_diff_blake3.clone())
            },
            of("script", &last.script_blake3, script),
        ];
        if let Some(then) = self.then {
            let (before, after) = (&then.named_files, &self.now.named_files);
            digests.push(Digest {
                files: Some(self.differing(before, after)),
                ..of("files of the command", &digest_of(before), digest_of(after))
            });
        }
        Ok(digests)
    }

    /// The files that differ between the commits; none where they are not known.
    fn committed_since(&self) -> Option<Vec<String>> {
        let (root, before) = (self.now.git.root.as_deref()?, self.last.git_commit.as_deref()?);
        let files = changed_between(Path::new(root), before, self.now.git.commit.as_deref()?).ok()?;
        Some(self.that_matter(files.into_iter().map(|file| file.path)))
    }

    /// The files whose difference from their commit is another one; none where they are not known.
    fn edited_since(&self) -> Option<Vec<String>> {
        let then = &self.then?.git;
        let kept = match (&then.dirty_diff_blake3, then.diff_bytes.unwrap_or(0)) {
            (Some(blake3), 1..) => {
                let folder = self.context.home.layout.changes_source(blake3);
                Some(std::fs::read(folder.join(PATCH_FILE)).ok()?)
            }
            _ => None,
        };
        let before = dirty(then, kept.as_deref())?;
        // What is kept has no secrets.
        let diff = self.now.git.diff.as_ref().map(|diff| self.context.redactor.bytes(diff));
        let after = dirty(&self.now.git, diff.as_deref())?;
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let differing = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
        Some(self.that_matter(differing.cloned()))
    }

    /// Without documents, and without the run file: its settings are compared by themselves.
    fn that_matter(&self, files: impl Iterator<Item = String>) -> Vec<String> {
        let root = Path::new(self.now.git.root.as_deref().unwrap_or_default());
        let run_file = self.job.run_file.as_ref().and_then(|path| path.canonicalize().ok());
        let is_run_file = |file: &str| run_file.is_some() && root.join(file).canonicalize().ok() == run_file;
        files.filter(|file| !is_document(file) && !is_run_file(file)).collect()
    }

    /// The files of the command of which the bytes differ, from the working directory.
    fn differing(&self, before: &[NamedFile], after: &[NamedFile]) -> Vec<String> {
        let by_path = |files: &[NamedFile]| -> BTreeMap<PathBuf, String> {
            let hashed = files.iter().filter_map(|file| Some((file.path.clone(), file.blake3.clone()?)));
            hashed.collect()
        };
        let (before, after) = (by_path(before), by_path(after));
        let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
        let differing = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
        differing.map(|path| self.shown(path)).collect()
    }

    fn shown(&self, path: &Path) -> String {
        let folder = Path::new(&self.last.working_directory);
        path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// The files that the evidence names, that no digest is over, and that were written after the attempt.
    fn written_since(&self, manifests: &[DataManifest]) -> Vec<String> {
        let (Some(evidence), Some(ended)) = (&self.last.termination_evidence, self.last.ended_at) else {
            return Vec::new();
        };
        let folder = Path::new(&self.last.working_directory);
        let hashed = self.hashed(manifests);
        let is_new = |path: &PathBuf| {
            let is_hashed = path.canonicalize().is_ok_and(|path| hashed.contains(&path));
            !is_hashed && written_at_micros(path).is_some_and(|written| written > ended.as_micros())
        };
        let texts = evidence.as_array().into_iter().flatten();
        let texts = texts.filter_map(|item| item.get("text").and_then(Value::as_str));
        let paths: BTreeSet<PathBuf> = texts.flat_map(paths_in).map(|word| folder.join(word)).collect();
        paths.into_iter().filter(is_new).map(|path| self.shown(&path)).collect()
    }

    /// What the digests are over, without links.
    fn hashed(&self, manifests: &[DataManifest]) -> BTreeSet<PathBuf> {
        let data = manifests.iter().flat_map(|set| &set.files).map(|file| self.job.base.join(&file.path));
        let named = self.now.named_files.iter().filter(|file| file.blake3.is_some());
        let script = self.now.script.iter().map(|script| script.path.clone());
        let all = data.chain(named.map(|file| file.path.clone())).chain(script);
        all.chain(self.job.run_file.clone()).filter_map(|path| path.canonicalize().ok()).collect()
    }

    /// The settings of the run file that are not those of the run any more; empty where they cannot be compared.
    fn changed_settings(&self) -> Vec<String> {
        let Some(path) = self.job.run_file.clone() else { return Vec::new() };
        // Of an override with a secret only its place is kept.
        if self.job.overrides.iter().any(|one| one.contains(REDACTED)) {
            return Vec::new();
        }
        let source = RunSource::File { path, overrides: self.job.overrides.clone() };
        let Ok(now) = Job::read(&source, &self.context.redactor) else { return Vec::new() };
        differing_settings(&self.job.stored_plan, &now.stored_plan)
    }

    /// The refusal of a run that would be launched on what stopped it.
    fn unchanged(&self, reason: TerminationReason, digests: &[Digest], settings: &[String]) -> AppError {
        let same: Vec<String> = digests.iter().filter_map(Digest::same).collect();
        let kept = match settings.is_empty() {
            true => String::new(),
            false => {
                format!(
                    "; a resume keeps the settings of its run, and the run file has others: {}",
                    named(settings)
                )
            }
        };
        let why = format!(
            ", since it ended in `{reason}` and what it would be launched on did not change: {}{kept}",
            same.join(", ")
        );
        let error =
            not_resumable(self.run, &why).hint("repair the data, its schema or the code, then resume it");
        match self.job.run_file.as_ref().filter(|_| !settings.is_empty()) {
            Some(path) => error.hint(format!(
                "start a run with the new settings: trackway run {} --retry-data-error",
                path.display()
            )),
            None => error,
        }
    }
}

/// Every file that is not as it was committed, with what says how; none where not all of them are known.
fn dirty(git: &Git, patch: Option<&[u8]>) -> Option<BTreeMap<String, String>> {
    let lists_all = git.untracked_count == git.untracked.len() as u64;
    let is_missing = patch.is_none() && git.diff_bytes.unwrap_or(0) > 0;
    if !lists_all || is_missing || !git.left_out.is_empty() || git.why_missing.is_some() {
        return None;
    }
    let mut found = sections(patch.unwrap_or_default());
    let untracked = git.untracked.iter().map(|file| (file.path.clone(), file.blake3.clone()));
    found.extend(untracked.map(|(path, blake3)| (path, blake3.unwrap_or_default())));
    Some(found)
}

/// The difference of each file, by its path. Of a binary file only its head counts, which has the hashes of both contents.
fn sections(diff: &[u8]) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let (mut path, mut is_content) = (None, false);
    for line in String::from_utf8_lossy(diff).split_inclusive('\n') {
        // Lines of content have a mark before them.
        if let Some(paths) = line.strip_prefix("diff --git ") {
            let paths = paths.trim_end();
            let half = paths.get(..paths.len() / 2).unwrap_or(paths).trim_matches('"');
            path = Some(half.strip_prefix("a/").unwrap_or(half).to_owned());
            is_content = false;
        }
        is_content |= line.starts_with("GIT binary patch");
        if let Some(path) = path.clone().filter(|_| !is_content) {
            found.entry(path).or_default().push_str(line);
        }
    }
    found
}

/// Names of documents, without what they end with.
const DOCUMENTS: [&str; 14] = [
    "readme", "license", "licence", "copying", "notice", "changelog", "authors", "contributing",
    "codeowners", ".gitignore", ".gitattributes", ".editorconfig", ".mailmap", ".dockerignore",
];

/// Whether a file cannot change what a run does: people and git read it.
fn is_document(path: &str) -> bool {
    let path = PathBuf::from(path.to_lowercase());
    let text =
        |part: Option<&std::ffi::OsStr>| part.and_then(|part| part.to_str()).unwrap_or_default().to_owned();
    let (stem, extension) = (text(path.file_stem()), text(path.extension()));
    let is_in_docs = path.parent().is_some_and(|folder| {
        folder.components().any(|part| matches!(part.as_os_str().to_str(), Some("doc" | "docs")))
    });
    match extension.as_str() {
        "md" | "rst" | "adoc" => true,
        "txt" => is_in_docs || DOCUMENTS.contains(&stem.as_str()),
        "" => DOCUMENTS.contains(&stem.as_str()),
        _ => false,
    }
}

/// What may be paths in a line of evidence.
fn paths_in(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |at: char| at.is_whitespace() || "\"'`()[]{},;:=<>".contains(at);
    let words = text.split(is_between).map(|word| word.trim_end_matches('.'));
    words.filter(|word| word.contains(['.', '/']))
}

/// When a file was written, in microseconds since 1970.
fn written_at_micros(path: &Path) -> Option<i64> {
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let since_1970 = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_1970.as_micros()).ok()
}

/// The keys of the settings that differ, with dots between the levels.
fn differing_settings(before: &Plan, after: &Plan) -> Vec<String> {
    let leaves_of = |plan: &Plan| {
        let mut found = BTreeMap::new();
        leaves("", &serde_json::to_value(plan).unwrap_or_default(), &mut found);
        found
    };
    let (before, after) = (leaves_of(before), leaves_of(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    keys.into_iter().filter(|key| before.get(*key) != after.get(*key)).cloned().collect()
}

/// Every value except tables, under its key; a list is one value.
fn leaves(key: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let inner = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                leaves(&inner, value, found);
            }
        }
        Value::Null => {}
        value => drop(found.insert(key.to_owned(), value.to_string())),
    }
}

/// Of the files whose bytes were hashed.
fn digest_of(files: &[NamedFile]) -> Option<String> {
    let lines =
        files.iter().filter_map(|file| Some(format!("{} {}\n", file.path.display(), file.blake3.as_ref()?)));
    let text: String = lines.collect();
    (!text.is_empty()).then(|| sha256_hex(text.as_bytes()))
}

impl Digest {
    fn change(&self) -> Option<String> {
        let shown = |digest: &Option<String>| digest.as_deref().map_or("none", short).to_owned();
        let matters = self.files.as_ref().is_none_or(|files| !files.is_empty());
        let files = self.files.as_ref().map(|files| format!(": {}", named(files))).unwrap_or_default();
        (self.then != self.now && matters)
            .then(|| format!("{} ({} → {}{files})", self.what, shown(&self.then), shown(&self.now)))
    }

    fn same(&self) -> Option<String> {
        let now = self.now.as_deref()?;
        match self.then == self.now {
            true => Some(format!("{} {}", self.what, short(now))),
            false => Some(format!("{} but for documents and the run file", self.what)),
        }
    }
}

/// The first of the names, and how many there are more.
fn named(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", quoted_list(names.iter().take(NAMED_MAX)))
}

fn short(digest: &str) -> &str {
    digest.get(..DIGEST_LETTERS).unwrap_or(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which files open no blocked run: documents and what git reads, and nothing that a script may read.
    #[test]
    fn documents_open_nothing() {
        for path in
            ["README", "README.md", "docs/notes.txt", "LICENSE.txt", "a/.gitignore", "doc/x.rst", "Docs/a.md"]
        {
            assert!(is_document(path), "{path}");
        }
        for path in ["t.py", "prompts.txt", "docs/conf.py", "config.yaml", "docs.txt", "readme.json", "data"]
        {
            assert!(!is_document(path), "{path}");
        }
    }

    /// Proves that the difference is read file by file, that only the head of a binary file counts, and that it is not known where something was left
    /// out of it.
    #[test]
    fn what_is_not_committed_is_read_file_by_file() {
        let diff = "diff --git a/t.py b/t.py\nindex 1..2 100644\n@@ -1 +1 @@\n-a\n+b\n\
                    diff --git a/m.bin b/m.bin\nindex 3..4 100644\nGIT binary patch\nliteral 1\nabc\n\nliteral 2\n";
        let found = sections(diff.as_bytes());
        assert_eq!(found.keys().collect::<Vec<_>>(), ["m.bin", "t.py"]);
        assert!(
            found["t.py"].ends_with("-a\n+b\n") && found["m.bin"].ends_with("index 3..4 100644\n"),
            "{found:?}"
        );
        let git = Git { diff_bytes: Some(9), ..Git::default() };
        assert_eq!(dirty(&git, Some(diff.as_bytes())).map(|files| files.len()), Some(2));
        assert_eq!(dirty(&git, None), None);
        assert_eq!(dirty(&Git { left_out: vec!["x".into()], ..Git::default() }, None), None);
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

    /// Proves that settings are compared key by key, and that a list is one value.
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
