//! What changed between the inputs of two attempts. Pure: evidence in, changes and what is not known out.

mod code;
mod files;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use trackway_api::runs::explain::{Change, InputKind, LineCount, UnknownChange};
use trackway_core::text::{counted, first_quoted, short_digest};
use trackway_engine::capture::{EnvironmentLock, PatchedFile, both, given_leaves, leaves};
use trackway_engine::run::RunTimes;
use trackway_engine::run::variables::may_change_training;

use super::{CapturedInputs, DataSet, HASHED, Inputs};

/// What replaces a secret in what is stored.
const REDACTED: &str = "[redacted";
/// Files that a sentence names.
const NAMED_MAX: usize = 6;

/// The bytes that are kept of what was hashed.
pub(super) trait ContentSource {
    /// The text of a file by its BLAKE3; `None`: it is not kept, or no text.
    fn file(&self, blake3: &str) -> Option<String>;
    /// The uncommitted changes of tracked files by the BLAKE3 of all changes; `None`: they are not kept.
    fn patch(&self, blake3: &str) -> Option<Vec<u8>>;
    /// The files that differ between two commits of the repository at `root`.
    fn between(
        &self,
        root: &str,
        before: &str,
        after: &str,
    ) -> Result<Vec<(String, Option<LineCount>)>, String>;
    /// The difference of these files between the commits, as far as it is known.
    fn patch_between(
        &self,
        root: &str,
        before: &str,
        after: &str,
        paths: &[&str],
    ) -> BTreeMap<String, PatchedFile>;
    /// When attempts ran, and what their output went to: a file that was written meanwhile may be an output.
    fn times(&self) -> &RunTimes;
    /// The text of a file that git did not track, by the BLAKE3 of all changes; `None`: it is not kept, or no text.
    fn untracked(&self, blake3: &str, path: &str) -> Option<String>;
}

/// What differs, and what is not known.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub changes: Vec<Change>,
    pub unknown: Vec<UnknownChange>,
    /// Files that differ and were written while an attempt ran.
    outputs: Vec<String>,
    /// New files of text that no command names: they are named last, since the output of a command that people kept has such names.
    late: Vec<Change>,
}

/// What `after` has that `before` had not, and the other way round.
pub(super) fn difference(before: &Inputs, after: &Inputs, kept: &dyn ContentSource) -> Difference {
    let mut found = Difference::default();
    match (&before.captured, &after.captured) {
        (Ok(then), Ok(now)) => {
            let files = found.files((before, then), (after, now), kept);
            found.settings(&before.config, &after.config);
            found.code((then, now), &files, kept);
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
    let is_of_files = |it: &UnknownChange| matches!(it.kind, InputKind::Code | InputKind::Uncommitted);
    if !found.unknown.iter().any(is_of_files)
        && let (Ok(then), Ok(now)) = (&before.captured, &after.captured)
    {
        found.not_known(InputKind::Code, not_looked_at((then, now), &after.working_directory));
    }
    if !found.outputs.is_empty() {
        found.not_known(InputKind::File, written_meanwhile(&found.outputs));
    }
    found.changes.sort_by_key(|change| change.kind);
    found.late.sort_by_key(|change| change.kind);
    found.changes.append(&mut found.late);
    found
}

/// What no comparison sees. It is said where nothing else is missing: a script may read such files, so that no difference is never all that
/// can be said.
fn not_looked_at((then, now): (&CapturedInputs, &CapturedInputs), working_directory: &Path) -> String {
    let outside = python_folders_outside(now, working_directory);
    let named: Vec<String> = outside.iter().map(|folder| format!("`{}`", folder.display())).collect();
    let named = if named.is_empty() { String::new() } else { format!(" (PYTHONPATH: {})", named.join(", ")) };
    let has_root = now.capture.git.root.is_some();
    let whole = if has_root { "the repository" } else { "the folders of the command and its script" };
    let folder = now.capture.folder.as_ref().filter(|_| have_folders(then, now));
    let inside = match folder.map(|folder| folder.not_looked_at) {
        None => "ignored by git, ".to_owned(),
        Some(0) => String::new(),
        Some(count) => format!("{} of other kinds or too large in its folders, ", counted(count, "file")),
    };
    format!("files outside {whole}{named}, {inside}or of installed packages: not looked at")
}

/// Whether the files that git does not compare are known of both, and are those of the same tree.
fn have_folders(then: &CapturedInputs, now: &CapturedInputs) -> bool {
    let (then, now) = (&then.capture, &now.capture);
    then.folder.is_some() && now.folder.is_some() && then.git.root == now.git.root
}

fn written_meanwhile(files: &[String]) -> String {
    let named = first_quoted(files, NAMED_MAX);
    format!("whether a run wrote it: {named} differs, and was written while an attempt ran")
}

/// The folders of PYTHONPATH that are not in the repository.
fn python_folders_outside(now: &CapturedInputs, working_directory: &Path) -> Vec<PathBuf> {
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

    /// `is_late`: it is named last.
    fn add(&mut self, change: Change, is_late: bool) {
        if is_late { self.late.push(change) } else { self.changes.push(change) }
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
        let mut secret: Vec<&str> = Vec::new();
        for (name, then, now) in both(before, after) {
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
        self.keys(InputKind::Setting, "", &given_leaves(before), &given_leaves(after));
    }

    fn data(&mut self, before: &Inputs, after: &Inputs) {
        let (then, now) = match (&before.data, &after.data) {
            (Ok(then), Ok(now)) => (then, now),
            (Err(why), _) | (_, Err(why)) => {
                let hash = |inputs: &Inputs| short(inputs.data_sha256.as_ref());
                self.value(InputKind::Data, "all data sets", (&hash(before), &hash(after)));
                return self.not_known(InputKind::Data, format!("what changed in the data: {why}"));
            }
        };
        let by_name = |sets: &[DataSet]| -> BTreeMap<String, DataSet> {
            sets.iter().map(|set| (set.name.clone(), set.clone())).collect()
        };
        let (then, now) = (by_name(then), by_name(now));
        for (name, then, now) in both(&then, &now) {
            if then.map(|set| &set.sha256) == now.map(|set| &set.sha256) {
                continue;
            }
            self.change(InputKind::Data, name, then.map(DataSet::shown), now.map(DataSet::shown));
            let (Some(then), Some(now)) = (then, now) else { continue };
            let has_lists = then.has_list() && now.has_list();
            if !has_lists {
                let why = format!("which files of `{name}` changed: their list was lost with the ledger");
                self.not_known(InputKind::Data, why);
            }
            for (path, before, after) in both(&then.files, &now.files).filter(|_| has_lists) {
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
                let shown = |lock: &EnvironmentLock| short(lock.sha256.as_ref());
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
                self.change(kind, "packages", short(Some(then_sha256)), short(Some(now_sha256)));
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

fn packages(listed: &str) -> BTreeMap<String, String> {
    let named = listed.lines().filter_map(|line| line.split_once("=="));
    named.map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
}

fn short(digest: Option<&String>) -> Option<String> {
    digest.map(|digest| short_digest(digest).to_owned())
}

#[cfg(test)]
mod tests;
