//! The commits, and what is not committed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use trackway_api::runs::changes::AS_COMMITTED;
use trackway_api::runs::explain::{Change, InputKind, LineCount};
use trackway_core::text::first_quoted;
use trackway_engine::capture::{Git, PatchedFile, Untracked, both, is_of_output, patched_files, states};

use super::{ContentSource, Difference, NAMED_MAX, have_folders, short};
use crate::inputs::CapturedInputs;
use crate::inputs::configuration::settings;
use crate::inputs::lines::line_difference;

/// Files of a commit whose lines are looked at, and the most lines of each.
const PATCHED_MAX: usize = 64;
const PATCHED_LINES_MAX: u64 = 400;

/// A tracked file whose difference from the commit is another one. A file without such a difference is as committed, and not absent.
pub(super) fn patched(
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

/// The files that may be tracked in one of the two states and not in the other, by path from the root; `None`: not known.
pub(super) fn changed_in_git(
    (then, now): (&Git, &Git),
    kept: &dyn ContentSource,
) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    if then.commit != now.commit {
        let root = now.root.as_deref()?;
        let files = kept.between(root, then.commit.as_deref()?, now.commit.as_deref()?).ok()?;
        names.extend(files.into_iter().map(|(path, _)| path));
    }
    let is_same = then.commit == now.commit && then.dirty_diff_blake3 == now.dirty_diff_blake3;
    for git in [then, now].into_iter().filter(|git| !is_same && git.diff_bytes.unwrap_or(0) > 0) {
        names.extend(patched_files(&kept.patch(git.dirty_diff_blake3.as_deref()?)?).into_keys());
    }
    Some(names)
}

/// Whether the file says what git ignores.
fn is_of_ignores(path: &str) -> bool {
    Path::new(path).file_name().is_some_and(|name| name == ".gitignore")
}

/// Whether git may ignore other files than before.
fn ignores_others(untracked: [&BTreeMap<String, Untracked>; 2], in_git: &BTreeSet<String>) -> bool {
    let [before, after] = untracked;
    let blake3 = |file: Option<&Untracked>| file.map(|file| file.blake3.clone());
    in_git.iter().any(|path| is_of_ignores(path))
        || both(before, after).any(|(path, then, now)| is_of_ignores(path) && blake3(then) != blake3(now))
}

impl Difference {
    /// The commits and what is not committed. `compared`: files that were compared by themselves.
    pub(super) fn code(
        &mut self,
        (then, now): (&CapturedInputs, &CapturedInputs),
        compared: &BTreeSet<PathBuf>,
        kept: &dyn ContentSource,
    ) {
        let has_folders = have_folders(then, now);
        let captures = [&then.capture, &now.capture];
        let is_output = |path: &Path| kept.times().is_output(captures, path);
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
            let path = Path::new(git.root.as_deref().unwrap_or_default()).join(path);
            compared.contains(&path) || is_output(&path)
        };
        if then.commit != now.commit {
            let (before, after) = (short(then.commit.as_ref()), short(now.commit.as_ref()));
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
            } else {
                self.not_known(
                    InputKind::Code,
                    "what changed in the repository: only one of the two has a commit",
                );
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

    pub(super) fn uncommitted(
        &mut self,
        (then, now): (&Git, &Git),
        is_compared: &dyn Fn(&Git, &str) -> bool,
        kept: &dyn ContentSource,
    ) {
        let files_of = |git: &Git| -> Option<BTreeMap<String, PatchedFile>> {
            let Some(blake3) = &git.dirty_diff_blake3 else { return Some(BTreeMap::new()) };
            let found = patched_files(&kept.patch(blake3)?);
            let is_all = git.diff_bytes.unwrap_or(0) == 0 || !found.is_empty();
            is_all.then_some(found)
        };
        match (files_of(then), files_of(now)) {
            (Some(before), Some(after)) => {
                for (name, then_file, now_file) in both(&before, &after) {
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
        let untracked = |git: &Git| -> BTreeMap<String, Untracked> {
            let files = git.untracked.iter().filter(|file| !is_compared(git, &file.path));
            files.map(|file| (file.path.clone(), file.clone())).collect()
        };
        let (before, after) = (untracked(then), untracked(now));
        let has_one_side = before.keys().ne(after.keys());
        let in_git = has_one_side.then(|| changed_in_git((then, now), kept)).flatten();
        let ignores = in_git.as_ref().is_some_and(|in_git| ignores_others([&before, &after], in_git));
        let mut perhaps_ignored: Vec<String> = Vec::new();
        for (name, then_file, now_file) in both(&before, &after) {
            if then_file.is_none() || now_file.is_none() {
                let other = if then_file.is_none() { then } else { now };
                let are_all_listed = other.untracked.len() as u64 >= other.untracked_count;
                // What git tracks there is compared with the commits and their changes.
                if !are_all_listed || in_git.as_ref().is_none_or(|in_git| in_git.contains(name)) {
                    continue;
                }
                let written = [then_file, now_file].map(|file| file.map(|file| file.modified_at));
                if ignores && !is_of_ignores(name) && !kept.times().wrote(name, written) {
                    perhaps_ignored.push(name.clone());
                    continue;
                }
            }
            let hashes = then.dirty_diff_blake3.as_deref().zip(now.dirty_diff_blake3.as_deref());
            let texts = || {
                let (then, now) = hashes?;
                kept.untracked(then, name).zip(kept.untracked(now, name))
            };
            self.untracked(name, (then_file, now_file), &texts, kept);
        }
        if !perhaps_ignored.is_empty() {
            let named = first_quoted(&perhaps_ignored, NAMED_MAX);
            let why = format!("whether {named} came, went or is ignored: what git ignores has changed");
            self.not_known(InputKind::Uncommitted, why);
        }
        if now.untracked_count.max(then.untracked_count)
            > now.untracked.len().max(then.untracked.len()) as u64
        {
            self.not_known(InputKind::Uncommitted, "untracked files beyond those that are listed");
        }
    }

    /// What an attempt may have written does not count, as in a folder without a repository. `texts`: of both, where they are kept.
    fn untracked(
        &mut self,
        name: &str,
        (then, now): (Option<&Untracked>, Option<&Untracked>),
        texts: &dyn Fn() -> Option<(String, String)>,
        kept: &dyn ContentSource,
    ) {
        let blake3 = |file: Option<&Untracked>| file.map(|file| file.blake3.clone());
        if blake3(then) == blake3(now) {
            return;
        }
        let are_both = then.is_some() && now.is_some();
        if kept.times().wrote(name, [then, now].map(|file| file.map(|file| file.modified_at))) {
            self.outputs.extend(are_both.then(|| name.to_owned()));
            return;
        }
        let shown = |file: Option<&Untracked>| {
            file.map(|file| short(file.blake3.as_ref()).unwrap_or_else(|| "not hashed".to_owned()))
        };
        let texts = texts().filter(|_| are_both);
        let path = Path::new(name);
        let keys = texts.as_ref().and_then(|(then, now)| settings(path, then).zip(settings(path, now)));
        if let Some((before, after)) = keys.filter(|(before, after)| before != after) {
            return self.keys(InputKind::File, &format!("{name}: "), &before, &after);
        }
        let lines = texts.and_then(|(then, now)| line_difference(&then, &now));
        let lines = lines.filter(|it| it.count != LineCount::default());
        let change = Change {
            lines: lines.as_ref().map(|lines| lines.count),
            shown_lines: lines.map(|lines| lines.shown).unwrap_or_default(),
            ..Change::new(InputKind::Uncommitted, format!("{name} (untracked)"), shown(then), shown(now))
        };
        self.add(change, then.is_none() && is_of_output(path));
    }
}
