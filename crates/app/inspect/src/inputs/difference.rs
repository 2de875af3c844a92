//! What changed between the inputs of two attempts. Pure: evidence in, changes and what is not known out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use trackway_api::changes::AS_COMMITTED;
use trackway_api::explain::{Change, InputKind, LineCount, UnknownChange};
use trackway_core::Timestamp;
use trackway_core::text::{counted, quoted_list};
use trackway_engine::capture::{
    EnvironmentLock, FolderFile, Git, PatchedFile, leaves, patched_files, states,
};
use trackway_engine::run::variables::may_change_training;

use super::configuration::settings;
use super::lines::line_difference;
use super::{Captured, DataSet, HASHED, Inputs};

/// Characters of a hash that are shown.
const HASH_LETTERS: usize = 12;
/// What replaces a secret in what is stored.
const REDACTED: &str = "[redacted";
/// Files that a sentence names.
const NAMED_MAX: usize = 6;
/// Files of a commit whose lines are looked at, and the most lines of each.
const PATCHED_MAX: usize = 64;
const PATCHED_LINES_MAX: u64 = 400;

/// The bytes that are kept of what was hashed.
pub(super) trait Kept {
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
    /// Whether an attempt ran then, so that a file which was written then may be its output.
    fn was_running(&self, at: Timestamp) -> bool;
}

/// What differs, and what is not known.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub changes: Vec<Change>,
    pub unknown: Vec<UnknownChange>,
    /// Files that differ and were written while an attempt ran.
    outputs: Vec<String>,
}

/// What `after` has that `before` had not, and the other way round.
pub(super) fn difference(before: &Inputs, after: &Inputs, kept: &dyn Kept) -> Difference {
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
    found
}

/// What no comparison sees. It is said where nothing else is missing: a script may read such files, so that no difference is never all that
/// can be said.
fn not_looked_at((then, now): (&Captured, &Captured), working_directory: &Path) -> String {
    let outside = python_folders_outside(now, working_directory);
    let named: Vec<String> = outside.iter().map(|folder| format!("`{}`", folder.display())).collect();
    let named = match named.is_empty() {
        true => String::new(),
        false => format!(" (PYTHONPATH: {})", named.join(", ")),
    };
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
fn have_folders(then: &Captured, now: &Captured) -> bool {
    let (then, now) = (&then.capture, &now.capture);
    then.folder.is_some() && now.folder.is_some() && then.git.root == now.git.root
}

fn written_meanwhile(files: &[String]) -> String {
    let more = files.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = quoted_list(files.iter().take(NAMED_MAX));
    format!("whether a run wrote it: {named}{more} differs, and was written while an attempt ran")
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
fn patched(
    name: &str,
    (then, now): (Option<&PatchedFile>, Option<&PatchedFile>),
    is_same_commit: bool,
) -> Change {
    let shown = |file: Option<&PatchedFile>| file.map_or_else(|| AS_COMMITTED.to_owned(), PatchedFile::shown);
    let (before, mut after) = (shown(then), shown(now));
    if before == after {
        after = format!("another {after}");
    }
    let change = Change::new(InputKind::Uncommitted, name, Some(before), Some(after));
    if let (true, Some(then), Some(now)) = (is_same_commit, then, now)
        && let Some((before, after)) = states(Some(then), Some(now))
        && let Some(lines) = line_difference(&before, &after).filter(|it| it.count != LineCount::default())
    {
        return Change { lines: Some(lines.count), shown_lines: lines.shown, ..change };
    }
    let Some(now) = now.filter(|file| then.is_none() && file.shown() == file.lines.to_string()) else {
        return change;
    };
    Change { lines: Some(now.lines), shown_lines: lines_of(now), ..change }
}

/// The lines that a difference adds and removes, where they are few.
fn lines_of(file: &PatchedFile) -> Vec<String> {
    let (before, after) = file.sides();
    line_difference(&before, &after).map(|lines| lines.shown).unwrap_or_default()
}

/// The files of which the lines may be shown.
fn with_few_lines(files: &[(String, Option<LineCount>)]) -> Vec<&str> {
    let is_small = |lines: &LineCount| lines.added + lines.removed <= PATCHED_LINES_MAX;
    let small = files.iter().filter(|(_, lines)| lines.as_ref().is_some_and(is_small));
    small.map(|(path, _)| path.as_str()).take(PATCHED_MAX).collect()
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
        // A key without a value is as one that is not there.
        let given = |config: &Value| {
            let mut found = leaves(config);
            found.retain(|_, value| value != "null");
            found
        };
        self.keys(InputKind::Setting, "", &given(before), &given(after));
    }

    /// The script and the files that the commands name. Returns their paths.
    fn files(
        &mut self,
        (before, then): (&Inputs, &Captured),
        (after, now): (&Inputs, &Captured),
        kept: &dyn Kept,
    ) -> BTreeSet<PathBuf> {
        let with_folder = have_folders(then, now);
        let (then_files, now_files) =
            (versions(before, then, with_folder), versions(after, now, with_folder));
        let names: BTreeSet<&String> = then_files.keys().chain(now_files.keys()).collect();
        for name in names {
            match (then_files.get(name), now_files.get(name)) {
                (Some(then), Some(now)) => self.file(name, then, now, kept),
                (then_file, now_file) => {
                    let Some(one) = then_file.or(now_file) else { continue };
                    let other_git = if then_file.is_some() { &now.capture.git } else { &then.capture.git };
                    if one.is_output(kept) || one.is_untracked_in(other_git) {
                        continue;
                    }
                    let shown = |file: Option<&FileVersion>| file.map(FileVersion::shown);
                    self.change(one.kind, name, shown(then_file), shown(now_file));
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
            if then.is_untouched(now) {
                return;
            }
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
        if now.is_output(kept) {
            return self.outputs.push(name.to_owned());
        }
        if let Some((then, now)) = then.table().zip(now.table()) {
            return self.table(name, then, now);
        }
        let are_kept = then.of_folder.is_none() || now.of_folder.is_none();
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
            (before, after) if are_kept => {
                let whose = match (before, after) {
                    (None, None) => "its bytes are not kept",
                    (None, _) => "its bytes of then are not kept",
                    _ => "its bytes of now are not kept",
                };
                self.not_known(now.kind, format!("what changed in `{name}`: {whose}"));
            }
            _ => {}
        }
        let (before, after) = (Some(then.shown()), Some(now.shown()));
        self.changes.push(Change {
            lines: lines.as_ref().map(|lines| lines.count),
            shown_lines: lines.map(|lines| lines.shown).unwrap_or_default(),
            ..Change::new(now.kind, name, before, after)
        });
    }

    /// A table that only its lines and its columns are known of.
    fn table(&mut self, name: &str, then: &FolderFile, now: &FolderFile) {
        let has_other_header = then.header != now.header;
        if has_other_header {
            let key = format!("{name}: header");
            self.change(InputKind::File, key, then.header.clone(), now.header.clone());
        }
        let (before, after) = match (then.lines, now.lines) {
            (Some(then), Some(now)) if then != now => (then.to_string(), counted(now, "line")),
            _ if has_other_header => return,
            _ => (table_shown(then), table_shown(now)),
        };
        self.change(InputKind::File, name, Some(before), Some(after));
    }

    /// The commits and what is not committed. `compared`: files that were compared by themselves.
    fn code(&mut self, (then, now): (&Captured, &Captured), compared: &BTreeSet<PathBuf>, kept: &dyn Kept) {
        let has_folders = have_folders(then, now);
        let (then, now) = (&then.capture.git, &now.capture.git);
        if then.root.is_none() || now.root.is_none() {
            if then.commit.is_some() || now.commit.is_some() {
                self.change(InputKind::Commit, "commit", then.commit.clone(), now.commit.clone());
            }
            if has_folders {
                return;
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
                        let files: Vec<(String, Option<LineCount>)> =
                            files.into_iter().filter(|(path, _)| !is_compared(now, path)).collect();
                        let patches = kept.patch_between(root, from, to, &with_few_lines(&files));
                        self.changes.extend(files.into_iter().map(|(key, lines)| Change {
                            lines,
                            shown_lines: patches.get(&key).map(lines_of).unwrap_or_default(),
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
            let found = patched_files(&kept.patch(blake3)?);
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
                        let is_same_commit = then.commit == now.commit;
                        self.changes.push(patched(name, (then_file, now_file), is_same_commit));
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
            let has_lists = then.has_list() && now.has_list();
            if !has_lists {
                let why = format!("which files of `{name}` changed: their list was lost with the ledger");
                self.not_known(InputKind::Data, why);
            }
            let paths: BTreeSet<&String> = then.files.keys().chain(now.files.keys()).collect();
            for path in paths.into_iter().filter(|_| has_lists) {
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
    /// What more is known of a file that only its folder has.
    of_folder: Option<FolderFile>,
}

impl FileVersion {
    fn table(&self) -> Option<&FolderFile> {
        self.of_folder.as_ref().filter(|file| file.lines.is_some())
    }

    /// Whether an attempt may have written it. What the command names it reads.
    fn is_output(&self, kept: &dyn Kept) -> bool {
        let written = self.of_folder.as_ref().and_then(|file| file.modified_at);
        written.is_some_and(|at| kept.was_running(at))
    }

    /// Whether it was not written since, as far as size and time show it.
    fn is_untouched(&self, now: &Self) -> bool {
        let of = |file: &FolderFile| (file.size_bytes, file.modified_at);
        self.of_folder.as_ref().zip(now.of_folder.as_ref()).is_some_and(|(then, now)| of(then) == of(now))
    }

    /// Whether git compares the file there, and not its folder.
    fn is_untracked_in(&self, git: &Git) -> bool {
        let root = git.root.as_deref().map(Path::new);
        let inner = root.and_then(|root| self.path.strip_prefix(root).ok());
        let is_listed = |inner: &Path| git.untracked.iter().any(|file| Path::new(&file.path) == inner);
        self.of_folder.is_some() && inner.is_some_and(is_listed)
    }

    fn shown(&self) -> String {
        if let Some(table) = self.table() {
            return table_shown(table);
        }
        match (&self.blake3, self.size_bytes) {
            (Some(blake3), _) => short(blake3),
            (None, Some(bytes)) => format!("{bytes} bytes"),
            (None, None) => "not hashed".into(),
        }
    }
}

/// `12 lines, 0123456789ab`.
fn table_shown(file: &FolderFile) -> String {
    let lines = file.lines.map(|lines| counted(lines, "line"));
    let hash = file.blake3.as_deref().map(short);
    lines.into_iter().chain(hash).collect::<Vec<_>>().join(", ")
}

/// The script, the files that a command names and, `with_folder`, those of its folders, without those of its data and the run file, by their
/// paths from the working directory.
fn versions(inputs: &Inputs, captured: &Captured, with_folder: bool) -> BTreeMap<String, FileVersion> {
    let script = captured.capture.script.iter().map(|script| FileVersion {
        kind: InputKind::Script,
        path: script.path.clone(),
        blake3: script.blake3.clone(),
        size_bytes: None,
        of_folder: None,
    });
    let named = captured.capture.named_files.iter().map(|file| FileVersion {
        kind: InputKind::File,
        path: file.path.clone(),
        blake3: file.blake3.clone(),
        size_bytes: Some(file.size_bytes),
        of_folder: None,
    });
    let folder = captured.capture.folder.iter().filter(|_| with_folder);
    let of_folder = folder.flat_map(|folder| &folder.files).map(|file| FileVersion {
        kind: InputKind::File,
        path: file.path.clone(),
        blake3: file.blake3.clone(),
        size_bytes: Some(file.size_bytes),
        of_folder: Some(file.clone()),
    });
    let data: BTreeSet<PathBuf> = inputs.data_paths().collect();
    let mut found = BTreeMap::new();
    for version in script.chain(named).chain(of_folder) {
        if data.contains(&version.path) || inputs.run_file.as_deref() == Some(&version.path) {
            continue;
        }
        let name = version.path.strip_prefix(&inputs.working_directory).unwrap_or(&version.path);
        // `./t.py` is `t.py`.
        let name: PathBuf = name.components().filter(|part| *part != Component::CurDir).collect();
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
    use trackway_engine::capture::{Capture, Folder};

    use super::super::DataFile;
    use super::*;

    struct Nothing;

    impl Kept for Nothing {
        fn file(&self, _: &str) -> Option<String> {
            None
        }

        fn patch(&self, _: &str) -> Option<Vec<u8>> {
            None
        }

        fn between(&self, _: &str, _: &str, _: &str) -> Result<Vec<(String, Option<LineCount>)>, String> {
            Err("it is gone".into())
        }

        fn patch_between(&self, _: &str, _: &str, _: &str, _: &[&str]) -> BTreeMap<String, PatchedFile> {
            BTreeMap::new()
        }

        fn was_running(&self, at: Timestamp) -> bool {
            at.as_micros() == 5
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
            file_count: 0,
            files: BTreeMap::new(),
        }
    }

    /// Proves that a data set whose list of files was lost has the number of its files, and that none of them is called gone or new.
    #[test]
    fn a_lost_list_of_files_is_not_an_empty_one() {
        let file = DataFile { blake3: "1234".into(), rows: Some(6), size_bytes: 10 };
        let lost = DataSet { file_count: 3, ..set(4, "a") };
        let known =
            DataSet { file_count: 1, files: BTreeMap::from([("d.csv".to_owned(), file)]), ..set(6, "b") };
        for (before, after) in [(lost.clone(), known.clone()), (known, lost)] {
            let (before, after) = (inputs(json!({}), Ok(vec![before])), inputs(json!({}), Ok(vec![after])));
            let found = difference(&before, &after, &Nothing);
            let changes: Vec<String> = found.changes.iter().map(Change::sentence).collect();
            assert_eq!(changes.len(), 1, "{changes:?}");
            assert!(changes[0].contains("in 3 files") && changes[0].contains("in 1 file,"), "{changes:?}");
            assert!(found.unknown.iter().any(|it| it.why.starts_with("which files of `train` changed")));
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
        let found = patched_files(diff.as_bytes());
        let file = |name: &str| found.get(name);
        let edited = patched("c.yaml", (None, file("c.yaml")), true);
        assert_eq!(
            (edited.sentence().as_str(), edited.one_line()),
            ("c.yaml: +1 −1", Some(("lr: 0.1", "lr: 0,1")))
        );
        assert_eq!(patched("gone", (None, file("gone")), true).sentence(), "gone: deleted");
        assert_eq!(patched("gone", (file("gone"), None), true).sentence(), "gone: deleted → as committed");
        let other = patched("c.yaml", (file("c.yaml"), file("c.yaml")), true).sentence();
        assert_eq!(other, "c.yaml: +1 −1 → another +1 −1");
        let next = patched_files(diff.replace("+lr: 0,1", "+lr: 0.5").as_bytes());
        let edited = patched("c.yaml", (file("c.yaml"), next.get("c.yaml")), true);
        assert_eq!(edited.shown_lines, ["-lr: 0,1", "+lr: 0.5"], "between the two states");
        let edited = patched("c.yaml", (file("c.yaml"), next.get("c.yaml")), false);
        assert!(edited.shown_lines.is_empty(), "of two commits the states are not known");
    }

    /// Proves that what git does not see is said, with the folders of PYTHONPATH that are outside the repository, and no others.
    #[test]
    fn what_no_comparison_sees_is_said() {
        let of = |folder: &str, python_path: &str| {
            let git = Git { root: Some("/w".into()), ..Git::default() };
            let mut captured = captured(git, None);
            captured.variables = BTreeMap::from([("PYTHONPATH".to_owned(), python_path.to_owned())]);
            not_looked_at((&captured, &captured), Path::new(folder))
        };
        let rest = ", ignored by git, or of installed packages: not looked at";
        let outside = "files outside the repository";
        let named = of("/w/part", "/w/lib:/lib/x::../y:../../z");
        assert_eq!(named, format!("{outside} (PYTHONPATH: `/lib/x`, `/z`){rest}"));
        for inside in ["", "/w/lib", "lib", "(a value with hash 12)"] {
            assert_eq!(of("/w/part", inside), format!("{outside}{rest}"), "{inside}");
        }
        assert_eq!(of("/linked/part", "/linked/lib"), format!("{outside}{rest}"));
        let bare = captured(Git::default(), Some(Folder { files: Vec::new(), not_looked_at: 2 }));
        assert_eq!(
            not_looked_at((&bare, &bare), Path::new("/w")),
            "files outside the folders of the command and its script, 2 files of other kinds or too large in its folders, \
             or of installed packages: not looked at"
        );
    }

    /// What was captured of a command without a script.
    fn captured(git: Git, folder: Option<Folder>) -> Captured {
        let capture = Capture {
            git,
            script: None,
            named_files: Vec::new(),
            folder,
            environment_lock: EnvironmentLock::default(),
            container: Default::default(),
            host: Default::default(),
            gpus: Default::default(),
            owner_default: None,
        };
        Captured { capture, variables: BTreeMap::new() }
    }

    /// Proves that files which the command does not name are compared: a table by its columns and lines, another file by its bytes, one that came or
    /// went; that an output of a run is none of them; and that nothing is said of an older capture.
    #[test]
    fn the_files_of_the_folder_are_compared() {
        let file = |name: &str, blake3: &str, modified: i64| FolderFile {
            path: Path::new("/w").join(name),
            size_bytes: 9,
            modified_at: Some(Timestamp::from_micros(modified)),
            blake3: Some(blake3.into()),
            code_blake3: None,
            lines: None,
            header: None,
        };
        let table = |name: &str, blake3: &str, lines: u64, header: &str| FolderFile {
            lines: Some(lines),
            header: Some(header.into()),
            ..file(name, blake3, 1)
        };
        let of = |files: Vec<FolderFile>| {
            let mut found = inputs(Value::Null, Ok(Vec::new()));
            found.captured = Ok(captured(Git::default(), Some(Folder { files, not_looked_at: 0 })));
            found
        };
        let before = of(vec![
            table("a.csv", "1", 3, "x,y"),
            table("b.csv", "1", 3, "x,y"),
            table("c.csv", "1", 3, "x,y"),
            file("conf.bin", "1", 1),
            file("gone.txt", "1", 1),
            file("old.txt", "1", 5),
            file("state.json", "1", 1),
        ]);
        let after = of(vec![
            table("a.csv", "2", 3, "xx,y"),
            table("b.csv", "2", 4, "x,y"),
            table("c.csv", "2", 3, "x,y"),
            file("conf.bin", "2", 1),
            file("new.txt", "1", 1),
            file("out.txt", "1", 5),
            file("state.json", "2", 5),
        ]);
        let found = difference(&before, &after, &Nothing);
        let changes: Vec<String> = found.changes.iter().map(Change::sentence).collect();
        assert_eq!(
            changes,
            [
                "a.csv: header: x,y → xx,y",
                "b.csv: 3 → 4 lines",
                "c.csv: 3 lines, 1 → 3 lines, 2",
                "conf.bin: 1 → 2",
                "gone.txt: 1 → (absent)",
                "new.txt: (absent) → 1"
            ]
        );
        let unknown: Vec<&str> = found.unknown.iter().map(|it| it.why.as_str()).collect();
        let output = "whether a run wrote it: `state.json` differs, and was written while an attempt ran";
        assert!(unknown.contains(&output), "{unknown:?}");
        let mut older = before.clone();
        older.captured = Ok(captured(Git::default(), None));
        assert!(difference(&older, &after, &Nothing).changes.is_empty());
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
            let of = |git: &Git| captured(git.clone(), None);
            found.code((&of(then), &of(now)), &BTreeSet::new(), &Nothing);
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
