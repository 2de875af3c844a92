//! What changed between the inputs of two attempts. Pure: evidence in, changes and what is not known out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use trackway_api::changes::AS_COMMITTED;
use trackway_api::explain::{Change, InputKind, LineCount, UnknownChange};
use trackway_engine::capture::{EnvironmentLock, Git};
use trackway_engine::run::variables::may_change_training;

use super::configuration::settings;
use super::leaves::leaves;
use super::lines::line_difference;
use super::patch::{PatchedFile, sections};
use super::{Captured, DataSet, HASHED, Inputs};

/// Characters of a hash that are shown.
const HASH_LETTERS: usize = 12;
/// What replaces a secret in what is stored.
const REDACTED: &str = "[redacted";
/// The bytes that are kept of what was hashed.
pub(super) trait Kept {
    /// The text of a file by its BLAKE3; `None`: it is not kept, or no text.
    fn file(&self, blake3: &str) -> Option<String>;
    /// The uncommitted changes of tracked files by the BLAKE3 of all changes; `None`: they are not kept.
    fn patch(&self, blake3: &str) -> Option<String>;
    /// The files that differ between two commits of the repository at `root`.
    fn between(
        &self,
        root: &str,
        before: &str,
        after: &str,
    ) -> Result<Vec<(String, Option<LineCount>)>, String>;
}

/// What differs, and what is not known.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub changes: Vec<Change>,
    pub unknown: Vec<UnknownChange>,
}

/// What `after` has that `before` had not, and the other way round.
pub(super) fn difference(before: &Inputs, after: &Inputs, kept: &dyn Kept) -> Difference {
    let mut found = Difference::default();
    match (&before.captured, &after.captured) {
        (Ok(then), Ok(now)) => {
            let files = found.files((before, then), (after, now), kept);
            found.settings(&before.config, &after.config);
            found.code((&then.capture.git, &now.capture.git), &files, kept);
            found.data(before, after);
            found.packages(&then.capture.environment_lock, &now.capture.environment_lock);
            found.variables(&then.variables, &now.variables);
        }
        (Err(why), _) | (_, Err(why)) => {
            found.settings(&before.config, &after.config);
            found.data(before, after);
            found.not_known(InputKind::Code, format!("script, files, code, packages and variables: {why}"));
        }
    }
    found.parameters(&before.parameters, &after.parameters);
    // A run that was never launched was on no machine.
    if before.rung.is_some() && after.rung.is_some() {
        found.value(InputKind::Image, "container image", (&before.image, &after.image));
        found.value(InputKind::Machine, "hosts", (&before.hosts, &after.hosts));
        found.value(InputKind::Machine, "devices", (&before.devices, &after.devices));
        found.value(InputKind::Rung, "rung", (&before.rung, &after.rung));
    }
    if found.unknown.is_empty()
        && let Ok(now) = &after.captured
    {
        found.not_known(InputKind::Code, not_looked_at(now, &after.working_directory));
    }
    found.changes.sort_by_key(|change| change.kind);
    found
}

/// What no comparison of a repository sees. It is said where nothing else is missing: a script may read such files, so that no
/// difference is never all that can be said.
fn not_looked_at(now: &Captured, working_directory: &Path) -> String {
    let outside = python_folders_outside(now, working_directory);
    let named: Vec<String> = outside.iter().map(|folder| format!("`{}`", folder.display())).collect();
    let named = match named.is_empty() {
        true => String::new(),
        false => format!(" (PYTHONPATH: {})", named.join(", ")),
    };
    format!("files outside the repository{named}, ignored by git, or of installed packages: not looked at")
}

/// The folders of PYTHONPATH that are not in the repository.
fn python_folders_outside(now: &Captured, working_directory: &Path) -> Vec<PathBuf> {
    let listed = now.variables.get("PYTHONPATH").filter(|value| !value.starts_with(HASHED));
    // A root is named without links: where the working directory is named through one, nothing can be said of a path.
    let root = now.capture.git.root.as_deref().filter(|root| working_directory.starts_with(root));
    let Some((listed, root)) = listed.zip(root) else { return Vec::new() };
    let folders = listed.split(':').filter(|folder| !folder.is_empty());
    let folders = folders.map(|folder| without_parents(&working_directory.join(folder)));
    folders.filter(|folder| !folder.starts_with(root)).collect()
}

/// The path without `..`.
fn without_parents(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            found.pop();
        } else {
            found.push(part);
        }
    }
    found
}

/// A tracked file whose difference from the commit is another one. A file without such a difference is as committed, and not absent.
fn patched(name: &str, then: Option<&PatchedFile>, now: Option<&PatchedFile>) -> Change {
    let shown = |file: Option<&PatchedFile>| file.map_or_else(|| AS_COMMITTED.to_owned(), PatchedFile::shown);
    let (before, mut after) = (shown(then), shown(now));
    if before == after {
        after = format!("another {after}");
    }
    let change = Change::new(InputKind::Uncommitted, name, Some(before), Some(after));
    let Some(now) = now.filter(|file| then.is_none() && file.shown() == file.lines.to_string()) else {
        return change;
    };
    let (in_commit, here) = now.sides();
    let shown_lines = line_difference(&in_commit, &here).map(|lines| lines.shown).unwrap_or_default();
    Change { lines: Some(now.lines), shown_lines, ..change }
}

impl Difference {
    fn not_known(&mut self, kind: InputKind, why: impl Into<String>) {
        self.unknown.push(UnknownChange { kind, why: why.into() });
    }

    fn change(
        &mut self,
        kind: InputKind,
        key: impl Into<String>,
        before: Option<String>,
        after: Option<String>,
    ) {
        self.changes.push(Change::new(kind, key, before, after));
    }

    fn value(&mut self, kind: InputKind, key: &str, (before, after): (&Option<String>, &Option<String>)) {
        if before != after {
            self.change(kind, key, before.clone(), after.clone());
        }
    }

    /// Every key of which the values differ. Of a secret only its place is kept, so that another one looks the same.
    fn keys(
        &mut self,
        kind: InputKind,
        prefix: &str,
        before: &BTreeMap<String, String>,
        after: &BTreeMap<String, String>,
    ) {
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let mut secret: Vec<&str> = Vec::new();
        for name in names {
            let (then, now) = (before.get(name), after.get(name));
            if then != now {
                self.change(kind, format!("{prefix}{name}"), then.cloned(), now.cloned());
            } else if then.is_some_and(|value| value.contains(REDACTED)) {
                secret.push(name);
            }
        }
        if !secret.is_empty() {
            self.not_known(kind, format!("{prefix}{}: secrets are not kept", secret.join(", ")));
        }
    }

    fn settings(&mut self, before: &Value, after: &Value) {
        self.keys(InputKind::Setting, "", &leaves(before), &leaves(after));
    }

    /// The script and the files that the commands name. Returns their paths.
    fn files(
        &mut self,
        (before, then): (&Inputs, &Captured),
        (after, now): (&Inputs, &Captured),
        kept: &dyn Kept,
    ) -> BTreeSet<PathBuf> {
        let (then_files, now_files) = (versions(before, then), versions(after, now));
        let names: BTreeSet<&String> = then_files.keys().chain(now_files.keys()).collect();
        for name in names {
            match (then_files.get(name), now_files.get(name)) {
                (Some(then), Some(now)) => self.file(name, then, now, kept),
                (then, now) => {
                    let kind = then.or(now).map_or(InputKind::File, |version| version.kind);
                    self.change(kind, name, then.map(FileVersion::shown), now.map(FileVersion::shown));
                }
            }
        }
        if then.capture.script.is_none() && now.capture.script.is_none() {
            self.not_known(
                InputKind::Script,
                "what the command starts: it names no script, and programs are not hashed",
            );
        }
        let data = [before, after].into_iter().flat_map(Inputs::data_paths);
        then_files
            .into_values()
            .chain(now_files.into_values())
            .map(|version| version.path)
            .chain(data)
            .collect()
    }

    fn file(&mut self, name: &str, then: &FileVersion, now: &FileVersion, kept: &dyn Kept) {
        let (Some(then_blake3), Some(now_blake3)) = (&then.blake3, &now.blake3) else {
            match then.size_bytes == now.size_bytes || then.size_bytes.is_none() || now.size_bytes.is_none() {
                true => self.not_known(
                    now.kind,
                    format!("`{name}`: it was not hashed, since it is large or could not be read"),
                ),
                false => self.change(now.kind, name, Some(then.shown()), Some(now.shown())),
            }
            return;
        };
        if then_blake3 == now_blake3 {
            return;
        }
        let mut lines = None;
        match (kept.file(then_blake3), kept.file(now_blake3)) {
            (Some(before), Some(after)) => {
                if let Some((before, after)) = settings(&then.path, &before).zip(settings(&now.path, &after))
                    && before != after
                {
                    return self.keys(now.kind, &format!("{name}: "), &before, &after);
                }
                lines = line_difference(&before, &after);
            }
            (before, after) => {
                let whose = match (before, after) {
                    (None, None) => "its bytes are not kept",
                    (None, _) => "its bytes of then are not kept",
                    _ => "its bytes of now are not kept",
                };
                self.not_known(now.kind, format!("what changed in `{name}`: {whose}"));
            }
        }
        let (before, after) = (Some(then.shown()), Some(now.shown()));
        self.changes.push(Change {
            lines: lines.as_ref().map(|lines| lines.count),
            shown_lines: lines.map(|lines| lines.shown).unwrap_or_default(),
            ..Change::new(now.kind, name, before, after)
        });
    }

    /// The commits and what is not committed. `compared`: files that were compared by themselves.
    fn code(&mut self, (then, now): (&Git, &Git), compared: &BTreeSet<PathBuf>, kept: &dyn Kept) {
        if then.root.is_none() || now.root.is_none() {
            if then.commit.is_some() || now.commit.is_some() {
                self.change(InputKind::Commit, "commit", then.commit.clone(), now.commit.clone());
            }
            let why = now.why_missing.as_ref().or(then.why_missing.as_ref());
            let why = why.map_or("not in a git repository", String::as_str);
            return self.not_known(InputKind::Code, format!("code that the script imports: {why}"));
        }
        let root = now.root.as_deref().unwrap_or_default();
        let is_compared = |git: &Git, path: &str| {
            compared.contains(&Path::new(git.root.as_deref().unwrap_or_default()).join(path))
        };
        if then.commit != now.commit {
            let short = |commit: &Option<String>| commit.as_deref().map(short);
            let (before, after) = (short(&then.commit), short(&now.commit));
            self.change(InputKind::Commit, "commit", before.clone(), after.clone());
            if let (Some(from), Some(to)) = (&then.commit, &now.commit) {
                match kept.between(root, from, to) {
                    Ok(files) => {
                        let files = files.into_iter().filter(|(path, _)| !is_compared(now, path));
                        self.changes.extend(files.map(|(key, lines)| Change {
                            lines,
                            ..Change::new(InputKind::Code, key, before.clone(), after.clone())
                        }));
                    }
                    Err(why) => {
                        self.not_known(InputKind::Code, format!("what changed between the commits: {why}"))
                    }
                }
            }
        }
        for git in [then, now] {
            let missing = git.why_missing.iter().chain(&git.left_out);
            let missing: Vec<&str> = missing.map(String::as_str).collect();
            if !missing.is_empty() {
                self.not_known(
                    InputKind::Uncommitted,
                    format!("what is not committed: {}", missing.join("; ")),
                );
                break;
            }
        }
        if then.dirty_diff_blake3 != now.dirty_diff_blake3 {
            self.uncommitted((then, now), &is_compared, kept);
        }
    }

    fn uncommitted(
        &mut self,
        (then, now): (&Git, &Git),
        is_compared: &dyn Fn(&Git, &str) -> bool,
        kept: &dyn Kept,
    ) {
        let files_of = |git: &Git| -> Option<BTreeMap<String, PatchedFile>> {
            let Some(blake3) = &git.dirty_diff_blake3 else { return Some(BTreeMap::new()) };
            let found = sections(&kept.patch(blake3)?);
            let is_all = git.diff_bytes.unwrap_or(0) == 0 || !found.is_empty();
            is_all.then_some(found)
        };
        match (files_of(then), files_of(now)) {
            (Some(before), Some(after)) => {
                let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                for name in names {
                    let (then_file, now_file) = (before.get(name), after.get(name));
                    if then_file.map(|it| &it.text) != now_file.map(|it| &it.text) && !is_compared(now, name)
                    {
                        self.changes.push(patched(name, then_file, now_file));
                    }
                }
            }
            _ => {
                self.not_known(
                    InputKind::Uncommitted,
                    "the changes of tracked files that are not committed: they are not kept",
                );
            }
        }
        let untracked = |git: &Git| -> BTreeMap<String, Option<String>> {
            let files = git.untracked.iter().filter(|file| !is_compared(git, &file.path));
            files.map(|file| (file.path.clone(), file.blake3.clone())).collect()
        };
        let (before, after) = (untracked(then), untracked(now));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names.into_iter().filter(|name| before.get(*name) != after.get(*name)) {
            let shown = |blake3: Option<&Option<String>>| {
                blake3.map(|blake3| blake3.as_deref().map_or("not hashed".to_owned(), short))
            };
            let key = format!("{name} (untracked)");
            self.change(InputKind::Uncommitted, key, shown(before.get(name)), shown(after.get(name)));
        }
        if now.untracked_count.max(then.untracked_count)
            > now.untracked.len().max(then.untracked.len()) as u64
        {
            self.not_known(InputKind::Uncommitted, "untracked files beyond those that are listed");
        }
    }

    fn data(&mut self, before: &Inputs, after: &Inputs) {
        let (then, now) = match (&before.data, &after.data) {
            (Ok(then), Ok(now)) => (then, now),
            (Err(why), _) | (_, Err(why)) => {
                let hash = |inputs: &Inputs| inputs.data_sha256.as_deref().map(short);
                self.value(InputKind::Data, "all data sets", (&hash(before), &hash(after)));
                return self.not_known(InputKind::Data, format!("what changed in the data: {why}"));
            }
        };
        let by_name = |sets: &[DataSet]| -> BTreeMap<String, DataSet> {
            sets.iter().map(|set| (set.name.clone(), set.clone())).collect()
        };
        let (then, now) = (by_name(then), by_name(now));
        let names: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
        for name in names {
            let (then, now) = (then.get(name), now.get(name));
            if then.map(|set| &set.sha256) == now.map(|set| &set.sha256) {
                continue;
            }
            self.change(InputKind::Data, name, then.map(DataSet::shown), now.map(DataSet::shown));
            let (Some(then), Some(now)) = (then, now) else { continue };
            let files: BTreeSet<&String> = then.files.keys().chain(now.files.keys()).collect();
            for path in files {
                let (before, after) = (then.files.get(path), now.files.get(path));
                if before.map(|file| &file.blake3) != after.map(|file| &file.blake3) {
                    let key = format!("{name}: {path}");
                    self.change(
                        InputKind::Data,
                        key,
                        before.map(|file| file.shown()),
                        after.map(|file| file.shown()),
                    );
                }
            }
            let of = |set: &DataSet| set.schema.as_ref().map(leaves).unwrap_or_default();
            self.keys(InputKind::Data, &format!("{name}: schema."), &of(then), &of(now));
        }
    }

    fn packages(&mut self, then: &EnvironmentLock, now: &EnvironmentLock) {
        let kind = InputKind::Package;
        let (Some(then_sha256), Some(now_sha256)) = (&then.sha256, &now.sha256) else {
            if then.sha256.is_some() || now.sha256.is_some() {
                let shown = |lock: &EnvironmentLock| lock.sha256.as_deref().map(short);
                self.change(kind, "packages", shown(then), shown(now));
            }
            let why = now.why_missing.as_ref().or(then.why_missing.as_ref());
            let why = why.map_or("they are not known", String::as_str);
            return self.not_known(kind, format!("packages: {why}"));
        };
        if then_sha256 == now_sha256 {
            return;
        }
        self.value(kind, "python", (&then.python_version, &now.python_version));
        match (&then.text, &now.text) {
            (Some(before), Some(after)) => self.keys(kind, "", &packages(before), &packages(after)),
            _ => {
                self.change(kind, "packages", Some(short(then_sha256)), Some(short(now_sha256)));
                self.not_known(kind, "which packages changed: their list is not kept");
            }
        }
    }

    fn variables(&mut self, then: &BTreeMap<String, String>, now: &BTreeMap<String, String>) {
        // Attempts of older versions have no hashes.
        let is_hashed = |value: &String| value.starts_with(HASHED);
        let have_hashes = then.values().any(is_hashed) && now.values().any(is_hashed);
        let of_training = |all: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            all.iter()
                .filter(|(name, value)| may_change_training(name) && (have_hashes || !is_hashed(value)))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        self.keys(InputKind::Variable, "", &of_training(then), &of_training(now));
    }

    /// Those that both scripts recorded: one that failed early recorded fewer.
    fn parameters(&mut self, then: &BTreeMap<String, String>, now: &BTreeMap<String, String>) {
        for (name, after) in now {
            if let Some(before) = then.get(name).filter(|before| *before != after) {
                self.change(InputKind::Parameter, name, Some(before.clone()), Some(after.clone()));
            }
        }
    }
}

/// A file at a launch.
struct FileVersion {
    kind: InputKind,
    path: PathBuf,
    blake3: Option<String>,
    size_bytes: Option<u64>,
}

impl FileVersion {
    fn shown(&self) -> String {
        match (&self.blake3, self.size_bytes) {
            (Some(blake3), _) => short(blake3),
            (None, Some(bytes)) => format!("{bytes} bytes"),
            (None, None) => "not hashed".into(),
        }
    }
}

/// The script and the files that a command names, without those of its data and the run file, by their paths from the working directory.
fn versions(inputs: &Inputs, captured: &Captured) -> BTreeMap<String, FileVersion> {
    let script = captured.capture.script.iter().map(|script| FileVersion {
        kind: InputKind::Script,
        path: script.path.clone(),
        blake3: script.blake3.clone(),
        size_bytes: None,
    });
    let named = captured.capture.named_files.iter().map(|file| FileVersion {
        kind: InputKind::File,
        path: file.path.clone(),
        blake3: file.blake3.clone(),
        size_bytes: Some(file.size_bytes),
    });
    let data: BTreeSet<PathBuf> = inputs.data_paths().collect();
    let mut found = BTreeMap::new();
    for version in script.chain(named) {
        if data.contains(&version.path) || inputs.run_file.as_deref() == Some(&version.path) {
            continue;
        }
        let name = version.path.strip_prefix(&inputs.working_directory).unwrap_or(&version.path);
        found.entry(name.to_string_lossy().into_owned()).or_insert(version);
    }
    found
}

fn packages(listed: &str) -> BTreeMap<String, String> {
    let named = listed.lines().filter_map(|line| line.split_once("=="));
    named.map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
}

fn short(hash: &str) -> String {
    hash.chars().take(HASH_LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_engine::capture::Capture;

    use super::*;

    struct Nothing;

    impl Kept for Nothing {
        fn file(&self, _: &str) -> Option<String> {
            None
        }

        fn patch(&self, _: &str) -> Option<String> {
            None
        }

        fn between(&self, _: &str, _: &str, _: &str) -> Result<Vec<(String, Option<LineCount>)>, String> {
            Err("it is gone".into())
        }
    }

    fn inputs(config: Value, data: Result<Vec<DataSet>, String>) -> Inputs {
        Inputs {
            config,
            run_file: None,
            working_directory: "/w".into(),
            captured: Err("nothing was captured".into()),
            data,
            data_sha256: None,
            data_base: "/w".into(),
            parameters: BTreeMap::new(),
            image: None,
            hosts: None,
            devices: None,
            rung: None,
        }
    }

    fn set(rows: u64, sha256: &str) -> DataSet {
        DataSet {
            name: "train".into(),
            sha256: sha256.into(),
            rows: Some(rows),
            size_bytes: 10,
            schema: Some(json!({ "a": "integer" })),
            files: BTreeMap::new(),
        }
    }

    /// Proves that settings and data are compared without a capture, that a secret is never called equal, and that what was not captured is
    /// named.
    #[test]
    fn what_is_not_known_is_named() {
        let config = |lr: &str| json!({ "run": { "environment": { "LR": lr, "KEY": "[redacted:named]" } } });
        let (before, after) =
            (inputs(config("1"), Ok(vec![set(4, "a")])), inputs(config("2"), Ok(vec![set(6, "b")])));
        let found = difference(&before, &after, &Nothing);
        let changes: Vec<String> = found.changes.iter().map(Change::sentence).collect();
        assert_eq!(changes[0], "run.environment.LR: \"1\" → \"2\"");
        assert!(changes[1].starts_with("train: 4 rows, ") && changes[1].contains("6 rows"), "{changes:?}");
        let unknown: Vec<&str> = found.unknown.iter().map(|it| it.why.as_str()).collect();
        assert_eq!(
            unknown,
            [
                "run.environment.KEY: secrets are not kept",
                "script, files, code, packages and variables: nothing was captured"
            ]
        );
        let lost = inputs(config("1"), Err("only its hash is known".into()));
        let found = difference(&before, &lost, &Nothing);
        assert!(found.changes.is_empty());
        assert!(found.unknown.iter().any(|it| it.why == "what changed in the data: only its hash is known"));
    }

    /// Proves that a file which only has an uncommitted change since then is not called absent, that one line of it is shown, and that a deleted and a
    /// restored one are called so.
    #[test]
    fn an_uncommitted_change_is_of_a_file_that_was_there() {
        let diff = "diff --git a/c.yaml b/c.yaml\n--- a/c.yaml\n+++ b/c.yaml\n@@ -1 +1 @@\n-lr: 0.1\n+lr: 0,1\n\
                    diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n";
        let found = sections(diff);
        let file = |name: &str| found.get(name);
        let edited = patched("c.yaml", None, file("c.yaml"));
        assert_eq!(
            (edited.sentence().as_str(), edited.one_line()),
            ("c.yaml: +1 −1", Some(("lr: 0.1", "lr: 0,1")))
        );
        assert_eq!(patched("gone", None, file("gone")).sentence(), "gone: deleted");
        assert_eq!(patched("gone", file("gone"), None).sentence(), "gone: deleted → as committed");
        let other = patched("c.yaml", file("c.yaml"), file("c.yaml")).sentence();
        assert_eq!(other, "c.yaml: +1 −1 → another +1 −1");
    }

    /// Proves that what git does not see is said, with the folders of PYTHONPATH that are outside the repository, and no others.
    #[test]
    fn what_no_comparison_sees_is_said() {
        let of = |folder: &str, python_path: &str| {
            let captured = Captured {
                capture: Capture {
                    git: Git { root: Some("/w".into()), ..Git::default() },
                    script: None,
                    named_files: Vec::new(),
                    environment_lock: EnvironmentLock::default(),
                    container: Default::default(),
                    host: Default::default(),
                    gpus: Default::default(),
                    owner_default: None,
                },
                variables: BTreeMap::from([("PYTHONPATH".to_owned(), python_path.to_owned())]),
            };
            not_looked_at(&captured, Path::new(folder))
        };
        let rest = ", ignored by git, or of installed packages: not looked at";
        let outside = "files outside the repository";
        let named = of("/w/part", "/w/lib:/lib/x::../y:../../z");
        assert_eq!(named, format!("{outside} (PYTHONPATH: `/lib/x`, `/z`){rest}"));
        for inside in ["", "/w/lib", "lib", "(a value with hash 12)"] {
            assert_eq!(of("/w/part", inside), format!("{outside}{rest}"), "{inside}");
        }
        assert_eq!(of("/linked/part", "/linked/lib"), format!("{outside}{rest}"));
    }

    /// Proves that commits and changes whose bytes are gone are changes all the same, with what is missing, and that the same tree is equal.
    #[test]
    fn code_whose_bytes_are_gone_has_changed() {
        let git = |commit: &str, dirty: Option<&str>| Git {
            commit: Some(commit.into()),
            root: Some("/w".into()),
            dirty: Some(dirty.is_some()),
            dirty_diff_blake3: dirty.map(str::to_owned),
            diff_bytes: dirty.map(|_| 9),
            ..Git::default()
        };
        let compared = |then: &Git, now: &Git| {
            let mut found = Difference::default();
            found.code((then, now), &BTreeSet::new(), &Nothing);
            let unknown: Vec<String> = found.unknown.into_iter().map(|it| it.why).collect();
            (found.changes.len(), unknown)
        };
        assert_eq!(compared(&git("a", None), &git("a", None)), (0, vec![]));
        assert_eq!(compared(&git("a", Some("x")), &git("a", Some("x"))), (0, vec![]));
        let (count, unknown) = compared(&git("a", None), &git("b", Some("x")));
        assert_eq!(count, 1);
        assert_eq!(
            unknown,
            [
                "what changed between the commits: it is gone",
                "the changes of tracked files that are not committed: they are not kept"
            ]
        );
    }
}
