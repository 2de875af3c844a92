//! Gathers what an attempt that its data stopped was launched on, and what another one would be. What that means is decided in `decide.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use serde_json::Value;
use trackway_core::Timestamp;
use trackway_data::DataManifest;
use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::runfile::Plan;
use trackway_ledger::{AttemptRow, RunRow};

use super::super::job::{Job, REDACTED, RunSource};
use super::decide::{
    Evidence, FolderFileState, LaunchedOn, SeenFile, differing, paths_in, uncommitted_files,
};
use super::named::Naming;
use super::run_times::RunTimes;
use crate::Context;
use crate::capture::named_files::modified_at;
use crate::capture::sources::{PATCH_FILE, UNTRACKED_FOLDER};
use crate::capture::{
    Capture, Folder, Git, NamedFile, Untracked, both, changed_between, code_of, extension_is, is_of_output,
    is_of_packages, is_python, is_same_code, patched_files, whole_patch,
};
use crate::error::AppError;
use crate::json_file;

/// Most files of code that are searched for the names of others, and the most of each.
const CODE_FILES_MAX: usize = 200;
const CODE_BYTES_MAX: u64 = 1 << 20;
/// Most folders that are searched for code and settings which name a new file, and how deep.
const NAMING_FOLDERS_MAX: usize = 200;
const NAMING_DEPTH_MAX: usize = 3;
/// What the names of other files end with that name files.
const NAMING: [&str; 10] =
    ["toml", "yaml", "yml", "ini", "cfg", "conf", "properties", "sh", "bash", "jsonnet"];

/// What another attempt would be launched on.
pub struct Next<'n> {
    /// What is launched.
    pub job: &'n Job,
    /// Its surroundings.
    pub capture: &'n Capture,
    /// The data sets.
    pub manifests: &'n [DataManifest],
    /// The hash of all of them.
    pub data_sha256: Option<String>,
    /// The hash of what they are checked against.
    pub contract_sha256: Option<String>,
}

/// What is known of an attempt that its data stopped, and of the next one.
///
/// # Errors
/// When the ledger cannot be read.
pub fn evidence_of(
    context: &Context,
    (run, last): (&RunRow, &AttemptRow),
    next: &Next<'_>,
) -> Result<Evidence, AppError> {
    let folder = Path::new(&last.working_directory);
    let compared_alone = compared_alone(next);
    let script = next.capture.script.as_ref().map(|script| script.path.as_path());
    let times = RunTimes::in_folder(context, folder, script)?;
    let code = code_texts(next);
    let naming = naming(last, next);
    let is_unused = |path: &Path| is_unused(path, &code, &naming);
    let kept: Option<Capture> =
        json_file::read_if_sound(&AttemptLayout::new(Path::new(&last.log_directory)).capture_json());
    let output = |path: &Path| is_output(path, (kept.as_ref(), next.capture), &times, &naming);
    // Of another repository, or of none, git compared other files.
    let is_same_tree = kept.as_ref().is_some_and(|kept| kept.git.root == next.capture.git.root);
    let listed_then = kept.as_ref().and_then(|kept| kept.folder.as_ref());
    let then_paths: BTreeSet<&Path> =
        listed_then.iter().flat_map(|folder| &folder.files).map(|file| file.path.as_path()).collect();
    // To search all texts for the name of every file would take long, and only of a new one it matters.
    let is_new_unused = |path: &Path| !then_paths.contains(path) && is_unused(path);
    let folder_of = |capture: &Capture| {
        let found = capture.folder.as_ref().filter(|_| is_same_tree)?;
        let is_left_out = |path: &Path| compared_alone.contains(path) || output(path);
        Some(folder_files(found, folder, (&is_left_out, &is_new_unused), &times))
    };
    let folder_then = kept.as_ref().and_then(folder_of);
    let is_same_script = script.is_some_and(|path| is_code_of(context, last.script_blake3.as_ref(), path));
    let same_code = same_code_files(context, (kept.as_ref(), folder), next);
    let written = written_files(kept.as_ref(), next.capture, &times);
    let untracked = written_untracked(kept.as_ref(), &next.capture.git, &times);
    let same_untracked = same_untracked(context, kept.as_ref(), &next.capture.git);
    let in_git =
        same_code.iter().chain(&written).map(PathBuf::as_path).chain(script.filter(|_| is_same_script));
    let in_git = in_git.filter_map(|path| in_repository(&next.capture.git, path));
    let names = |paths: &BTreeSet<PathBuf>| -> BTreeSet<String> {
        paths.iter().map(|path| shown(path, folder)).collect()
    };
    let then = LaunchedOn { folder_files: folder_then, ..then(context, (run, last), kept.as_ref())? };
    let now = LaunchedOn { folder_files: folder_of(next.capture), ..now(context, next) };
    let committed_files = committed_files(last, &next.capture.git);
    let redirected = in_git_of((&then, &now), committed_files.as_deref(), &next.capture.git, &output);
    let idle_in_git = in_git.chain(untracked.iter().cloned()).chain(same_untracked);
    let mut seen_files = seen_files(last, (kept.as_ref(), is_same_tree), next);
    seen_files.retain(|file| !output(&folder.join(&file.path)));
    Ok(Evidence {
        then,
        now,
        is_same_code: is_same_script,
        idle_in_git: idle_in_git.chain(redirected.iter().cloned()).collect(),
        outputs: names(&written).into_iter().chain(untracked).chain(redirected).collect(),
        idle_files: names(&same_code.into_iter().chain(written).collect()),
        unused_files: unused_files(&next.capture.git, &is_unused),
        committed_files,
        run_file: run_file_in_repository(next),
        ended_at: last.ended_at,
        seen_files,
    })
}

/// Whether the output of a supervisor went to the file: of one of this run or of the same script, or of another one
/// where nothing of this run names it.
fn is_output(
    path: &Path,
    (then, now): (Option<&Capture>, &Capture),
    times: &RunTimes,
    naming: &Naming,
) -> bool {
    let is_of_others = || times.is_output_of_others(path) && is_of_output(path) && !naming.has(path);
    times.is_output(then.into_iter().chain([now]), path) || is_of_others()
}

/// The files that differ in the repository and that the output of a supervisor went to, by their paths from its root.
fn in_git_of(
    (then, now): (&LaunchedOn, &LaunchedOn),
    committed: Option<&[String]>,
    git: &Git,
    is_output: &dyn Fn(&Path) -> bool,
) -> BTreeSet<String> {
    let Some(root) = git.root.as_deref().map(Path::new) else { return BTreeSet::new() };
    let edited = then.uncommitted_files.as_ref().zip(now.uncommitted_files.as_ref());
    let edited = edited.map(|(then, now)| differing(then, now)).unwrap_or_default();
    let all = edited.into_iter().chain(committed.unwrap_or_default().iter().cloned());
    all.filter(|path| is_output(&root.join(path))).collect()
}

/// The plan of a job as its run file has it now; none where it cannot be compared.
pub fn plan_now(context: &Context, job: &Job) -> Option<Plan> {
    let path = job.run_file.clone()?;
    // Of a change with a secret only its key is kept.
    if job.patch.contains_text(REDACTED) {
        return None;
    }
    let source = RunSource::File { path, patch: job.patch.clone() };
    Some(Job::read(&source, &context.redactor).ok()?.stored_plan)
}

fn then(
    context: &Context,
    (run, last): (&RunRow, &AttemptRow),
    kept: Option<&Capture>,
) -> Result<LaunchedOn, AppError> {
    let folder = Path::new(&last.working_directory);
    Ok(LaunchedOn {
        data_sha256: last.data_sha256.clone(),
        contract_sha256: contract_then(context, run)?,
        commit: last.git_commit.clone(),
        uncommitted_blake3: last.git_diff_blake3.clone(),
        script_blake3: last.script_blake3.clone(),
        uncommitted_files: kept.as_ref().and_then(|kept| uncommitted_then(context, &kept.git)),
        named_files: kept.as_ref().map(|kept| hashes_of(&kept.named_files, folder)),
        folder_files: None,
    })
}

/// What the data was checked against when it was checked last.
fn contract_then(context: &Context, run: &RunRow) -> Result<Option<String>, AppError> {
    let events = context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?;
    let again = events.iter().rfind(|event| EventKind::PreflightRepeated.is(&event.kind));
    Ok(match again {
        Some(event) => event.field("contract_sha256").map(str::to_owned),
        None => run.data_contract_sha256.clone(),
    })
}

fn uncommitted_then(context: &Context, git: &Git) -> Option<BTreeMap<String, String>> {
    let patch = match (&git.dirty_diff_blake3, git.diff_bytes.unwrap_or(0)) {
        (Some(blake3), 1..) => {
            let folder = context.home.layout.changes_source(blake3);
            Some(std::fs::read(folder.join(PATCH_FILE)).ok()?)
        }
        _ => None,
    };
    uncommitted_files(git, patch.as_deref())
}

fn now(context: &Context, next: &Next<'_>) -> LaunchedOn {
    let Capture { git, script, named_files, .. } = next.capture;
    // What is kept has no secrets.
    let diff = git.diff.as_ref().map(|diff| context.redactor.bytes(diff));
    LaunchedOn {
        data_sha256: next.data_sha256.clone(),
        contract_sha256: next.contract_sha256.clone(),
        commit: git.commit.clone(),
        uncommitted_blake3: git.dirty_diff_blake3.clone(),
        script_blake3: script.as_ref().and_then(|script| script.blake3.clone()),
        uncommitted_files: uncommitted_files(git, diff.as_deref()),
        named_files: Some(hashes_of(named_files, &next.job.working_directory())),
        folder_files: None,
    }
}

/// What other digests are over, and the run file, of which the settings are compared by themselves.
fn compared_alone(next: &Next<'_>) -> BTreeSet<PathBuf> {
    let Next { job, capture, manifests, .. } = next;
    let data = manifests.iter().flat_map(|set| &set.files).map(|file| job.base.join(&file.path));
    let named = capture.named_files.iter().map(|file| file.path.clone());
    let script = capture.script.iter().map(|script| script.path.clone());
    let all: Vec<PathBuf> = data.chain(named).chain(script).chain(job.run_file.clone()).collect();
    let real = all.iter().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
    all.into_iter().chain(real).collect()
}

/// Whether a path is one of these.
type IsPath<'a> = &'a dyn Fn(&Path) -> bool;

/// The other files of the folders, by their paths from the working directory.
fn folder_files(
    found: &Folder,
    folder: &Path,
    (is_left_out, is_unused): (IsPath<'_>, IsPath<'_>),
    times: &RunTimes,
) -> BTreeMap<String, FolderFileState> {
    let files = found.files.iter().filter(|file| !is_left_out(&file.path));
    let state = |file: &crate::capture::FolderFile| {
        let at = file.modified_at.map(Timestamp::as_micros);
        let size = file.size_bytes;
        let bytes = file.blake3.clone().unwrap_or_else(|| format!("{size} bytes of {at:?}"));
        let is_output = file.modified_at.is_some_and(|at| times.has(at));
        FolderFileState {
            bytes,
            is_dated: file.blake3.is_none(),
            code: file.code_blake3.clone(),
            is_output,
            is_unused: is_unused(&file.path),
        }
    };
    files.map(|file| (shown(&file.path, folder), state(file))).collect()
}

/// Whether the file has the same code as the one with this hash, but for comments.
fn is_code_of(context: &Context, then_blake3: Option<&String>, path: &Path) -> bool {
    let kept = then_blake3.filter(|_| is_python(&path.to_string_lossy()));
    let kept = kept.map(|blake3| context.home.layout.file_source(blake3));
    let texts = kept.and_then(|kept| std::fs::read_to_string(kept).ok());
    let texts = texts.zip(std::fs::read_to_string(path).ok());
    texts.is_some_and(|(then, now)| is_same_code(&then, &now))
}

/// The files of the command that are the same code as then, but for comments.
fn same_code_files(
    context: &Context,
    (kept, folder): (Option<&Capture>, &Path),
    next: &Next<'_>,
) -> BTreeSet<PathBuf> {
    let before = kept.map(|kept| hashes_of(&kept.named_files, folder)).unwrap_or_default();
    let is_same = |file: &&NamedFile| is_code_of(context, before.get(&shown(&file.path, folder)), &file.path);
    next.capture.named_files.iter().filter(is_same).map(|file| file.path.clone()).collect()
}

/// The files of the command of which each version was written while its script ran: a repair has one that was not.
fn written_files(kept: Option<&Capture>, now: &Capture, times: &RunTimes) -> BTreeSet<PathBuf> {
    let by_path = |files: &[NamedFile]| -> BTreeMap<PathBuf, NamedFile> {
        files.iter().map(|file| (file.path.clone(), file.clone())).collect()
    };
    let then = kept.map(|kept| by_path(&kept.named_files)).unwrap_or_default();
    let now = by_path(&now.named_files);
    let bytes = |file: Option<&NamedFile>| file.and_then(|file| file.blake3.clone());
    let is_written = |file: &NamedFile| file.modified_at.is_some_and(|at| times.has_of_script(at));
    let outputs = both(&then, &now).filter(|(_, then, now)| {
        bytes(*then) != bytes(*now) && then.iter().chain(now).copied().all(is_written)
    });
    outputs.map(|(path, ..)| path.clone()).collect()
}

/// The files that git does not track, differ, and that an attempt may have written.
fn written_untracked(kept: Option<&Capture>, now: &Git, times: &RunTimes) -> BTreeSet<String> {
    let by_path = |git: &Git| -> BTreeMap<String, Untracked> {
        git.untracked.iter().map(|file| (file.path.clone(), file.clone())).collect()
    };
    let then = kept.map(|kept| by_path(&kept.git)).unwrap_or_default();
    let now = by_path(now);
    let outputs = both(&then, &now).filter(|(path, then, now)| {
        let is_other = then.map(Untracked::identity) != now.map(Untracked::identity);
        is_other && times.wrote(path, [*then, *now].map(|file| file.map(|file| file.modified_at)))
    });
    outputs.map(|(path, ..)| path.clone()).collect()
}

/// The script and the code beside it.
fn code_texts(next: &Next<'_>) -> Vec<(PathBuf, String)> {
    let working_directory = next.job.working_directory();
    let script = next.capture.script.as_ref().map(|script| script.path.clone());
    let of_script = script.as_deref().and_then(Path::parent).map(Path::to_owned);
    let folders: BTreeSet<PathBuf> = of_script.into_iter().chain([working_directory]).collect();
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let beside = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let beside = beside.filter(|path| is_python(&path.to_string_lossy())).take(CODE_FILES_MAX);
    script.into_iter().chain(beside).filter_map(with_text).collect()
}

/// What may name a new file of text: the code below the folders, the settings in them, the command, its variables and
/// the evidence of the end.
fn naming(last: &AttemptRow, next: &Next<'_>) -> Naming {
    let Next { job, capture, .. } = next;
    let working_directory = job.working_directory();
    let of_script = capture.script.as_ref().and_then(|script| script.path.parent()).map(Path::to_owned);
    let roots: BTreeSet<PathBuf> = of_script.into_iter().chain([working_directory.clone()]).collect();
    let real = roots.iter().filter_map(|root| root.canonicalize().ok());
    let roots: Vec<PathBuf> = roots.iter().cloned().chain(real).collect();
    let command = &job.plan.run.command;
    let values = command.iter().filter_map(|word| word.split_once('=')).map(|(_, value)| value);
    let paths = command.iter().skip(1).map(String::as_str).chain(values).filter(|word| !word.is_empty());
    let folders = paths.map(|word| working_directory.join(word)).filter(|path| path.is_dir());
    let folders: Vec<PathBuf> =
        folders.flat_map(|path| [path.canonicalize().ok(), Some(path)]).flatten().collect();
    let evidence = last.termination_evidence.as_ref().and_then(Value::as_array);
    let evidence = evidence.into_iter().flatten().filter_map(|item| item.get("text").and_then(Value::as_str));
    let words = command.iter().chain(job.plan.run.environment.values()).cloned();
    let changes = job.patch.changes().iter().map(ToString::to_string);
    let words = words.chain(changes).chain(evidence.map(str::to_owned)).collect();
    // What a shell is given as one word is a text.
    let lines = command.iter().filter(|word| word.contains(char::is_whitespace));
    let texts = lines.map(|line| (PathBuf::new(), line.clone())).collect();
    let mut naming = Naming { texts, words, folders, roots };
    let named = capture.script.iter().map(|script| script.path.clone()).chain(job.run_file.clone());
    let (plain, json) = texts_below(&naming.roots, named);
    // Comments and docstrings are for people.
    naming.texts.extend(plain.into_iter().map(|(path, text)| {
        let text = if is_python(&path.to_string_lossy()) { code_of(&text) } else { text };
        (path, text)
    }));
    // A new file of JSON may be an output too, and have the names of others in it.
    let is_read =
        |path: &Path| path.file_name().is_some_and(|name| naming.has_exactly(&name.to_string_lossy()));
    let json: Vec<PathBuf> = json.into_iter().filter(|path| is_read(path)).collect();
    naming.texts.extend(json.into_iter().filter_map(with_text));
    naming
}

/// The code and settings below the folders and those that are named, with their texts, and the files of JSON.
fn texts_below(
    roots: &[PathBuf],
    named: impl Iterator<Item = PathBuf>,
) -> (Vec<(PathBuf, String)>, Vec<PathBuf>) {
    let (mut plain, mut json) = (BTreeSet::new(), BTreeSet::new());
    let mut waiting: VecDeque<(PathBuf, usize)> = roots.iter().map(|root| (root.clone(), 0)).collect();
    let mut left_folders = NAMING_FOLDERS_MAX;
    while let Some((folder, depth)) = waiting.pop_front() {
        if left_folders == 0 || plain.len() >= CODE_FILES_MAX {
            break;
        }
        left_folders -= 1;
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if name.starts_with('.') {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if depth < NAMING_DEPTH_MAX && !is_of_packages(&path) {
                    waiting.push_back((path, depth + 1));
                }
                continue;
            }
            if extension_is(&path, &["json"]) && json.len() < CODE_FILES_MAX {
                json.insert(path);
            } else if is_python(&name) || extension_is(&path, &NAMING) {
                plain.insert(path);
            }
        }
    }
    plain.extend(named);
    (plain.into_iter().filter_map(with_text).collect(), json.into_iter().collect())
}

/// A small file with its text.
fn with_text(path: PathBuf) -> Option<(PathBuf, String)> {
    path.metadata().ok().filter(|it| it.is_file() && it.len() <= CODE_BYTES_MAX)?;
    let text = std::fs::read_to_string(&path).ok()?;
    Some((path, text))
}

/// Whether nothing names it: code of Python that no other code names (what is new and imported has its name in a file),
/// or what may be the output of a command that people wrote to a file.
fn is_unused(path: &Path, code: &[(PathBuf, String)], naming: &Naming) -> bool {
    if code.is_empty() {
        return false;
    }
    if is_of_output(path) {
        return !naming.has(path);
    }
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let name = match part(path.file_stem()) {
        name if name == "__init__" => part(path.parent().and_then(Path::file_name)),
        name => name,
    };
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let names = |text: &str| text.split(|letter| !is_letter(letter)).any(|word| word == name);
    let is_named = code.iter().any(|(other, text)| other != path && names(text));
    is_python(&path.to_string_lossy()) && !is_named
}

/// Code that git does not track and that is the same as then, but for comments and docstrings.
fn same_untracked(context: &Context, kept: Option<&Capture>, now: &Git) -> BTreeSet<String> {
    let blake3 = kept.and_then(|kept| kept.git.dirty_diff_blake3.as_ref());
    let folders = blake3.map(|blake3| context.home.layout.changes_source(blake3).join(UNTRACKED_FOLDER));
    let Some((then, root)) = folders.zip(now.root.as_deref().map(Path::new)) else { return BTreeSet::new() };
    let is_same = |path: &&String| {
        let texts = [then.as_path(), root].map(|folder| std::fs::read_to_string(folder.join(path.as_str())));
        matches!(&texts, [Ok(then), Ok(now)] if is_same_code(then, now))
    };
    let python = now.untracked.iter().map(|file| &file.path).filter(|path| is_python(path));
    python.take(CODE_FILES_MAX).filter(is_same).cloned().collect()
}

/// Those of the files that are not tracked, and the tracked ones that are as committed but for comments and docstrings.
fn unused_files(git: &Git, is_unused: &dyn Fn(&Path) -> bool) -> BTreeSet<String> {
    let Some(root) = git.root.as_deref().map(Path::new) else { return BTreeSet::new() };
    let files = git.untracked.iter().map(|file| file.path.clone());
    let edited = patched_files(git.diff.as_deref().unwrap_or_default());
    let edited: Vec<&str> = edited.keys().map(String::as_str).collect();
    let documented = git.commit.as_deref().map(|commit| same_code_since(root, (commit, None), &edited));
    files.filter(|path| is_unused(&root.join(path))).chain(documented.unwrap_or_default()).collect()
}

/// Of the files that differ between two commits, or between one and the working tree, code that differs in comments and docstrings only.
fn same_code_since(root: &Path, (before, after): (&str, Option<&str>), paths: &[&str]) -> BTreeSet<String> {
    let python: Vec<&str> =
        paths.iter().copied().filter(|path| is_python(path)).take(CODE_FILES_MAX).collect();
    let patched = patched_files(&whole_patch(root, before, after, &python).unwrap_or_default());
    let same = patched.into_iter().filter(|(path, file)| is_python(path) && file.is_same_code());
    same.map(|(path, _)| path).collect()
}

/// The hashes of files, by their paths from a folder.
fn hashes_of(files: &[NamedFile], folder: &Path) -> BTreeMap<String, String> {
    let hashed = files.iter().filter_map(|file| Some((shown(&file.path, folder), file.blake3.clone()?)));
    hashed.collect()
}

fn shown(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned()
}

/// The files that differ between the commits; none where they are not known, or where it is the same commit.
fn committed_files(last: &AttemptRow, git: &Git) -> Option<Vec<String>> {
    let (root, before, after) = (git.root.as_deref()?, last.git_commit.as_deref()?, git.commit.as_deref()?);
    if before == after {
        return None;
    }
    let files = changed_between(Path::new(root), before, after).ok()?;
    let mut paths: Vec<String> = files.into_iter().map(|file| file.path).collect();
    let named: Vec<&str> = paths.iter().map(String::as_str).collect();
    let same = same_code_since(Path::new(root), (before, Some(after)), &named);
    paths.retain(|path| !same.contains(path));
    Some(paths)
}

/// The path of the run file from the root of the repository, without links.
fn run_file_in_repository(next: &Next<'_>) -> Option<String> {
    in_repository(&next.capture.git, next.job.run_file.as_deref()?)
}

/// The path of a file from the root of the repository, without links.
fn in_repository(git: &Git, path: &Path) -> Option<String> {
    let root = Path::new(git.root.as_deref()?).canonicalize().ok()?;
    let path = path.canonicalize().ok()?;
    Some(path.strip_prefix(root).ok()?.to_string_lossy().into_owned())
}

/// The files that the evidence of an end names.
fn seen_files(
    last: &AttemptRow,
    (kept, is_same_tree): (Option<&Capture>, bool),
    next: &Next<'_>,
) -> Vec<SeenFile> {
    let folder = Path::new(&last.working_directory);
    let items = last.termination_evidence.as_ref().and_then(Value::as_array);
    let texts = items.into_iter().flatten().filter_map(|item| item.get("text").and_then(Value::as_str));
    let paths: BTreeSet<PathBuf> = texts.flat_map(paths_in).map(|word| folder.join(word)).collect();
    let written = paths.into_iter().filter_map(|path| Some((written_at(&path)?, path)));
    let written: Vec<(Timestamp, PathBuf)> = written.collect();
    // There may be many files of data.
    let hashed = if written.is_empty() { BTreeSet::new() } else { hashed(kept, next) };
    let seen = |(written_at, path): (Timestamp, PathBuf)| {
        let is_hashed = path.canonicalize().is_ok_and(|path| {
            hashed.contains(&path)
                || (is_same_tree
                    && kept.is_some_and(|kept| is_compared_by_git(&path, &kept.git, &next.capture.git)))
        });
        SeenFile { path: shown(&path, folder), written_at, is_hashed }
    };
    written.into_iter().map(seen).collect()
}

/// Whether git compares the bytes of the file, then and now: its path is in the repository and not ignored.
fn is_compared_by_git(path: &Path, then: &Git, now: &Git) -> bool {
    let is_known = |git: &Git| git.dirty.is_some() && git.why_missing.is_none();
    let Some(root) = now.root.as_deref().and_then(|root| Path::new(root).canonicalize().ok()) else {
        return false;
    };
    let Ok(inner) = path.strip_prefix(&root) else { return false };
    let is_ignored = now.ignored.iter().any(|ignored| inner.starts_with(ignored));
    // Of another repository inside git compares the commit only.
    let is_inner = |folder: &Path| folder != root && folder.join(".git").exists();
    let is_of_other = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&root)).any(is_inner);
    is_known(then) && is_known(now) && !is_ignored && !is_of_other
}

/// What the digests are over, without links: also the other files of the folders, where those of then are known.
fn hashed(kept: Option<&Capture>, next: &Next<'_>) -> BTreeSet<PathBuf> {
    let Next { job, capture, manifests, .. } = next;
    let data = manifests.iter().flat_map(|set| &set.files).map(|file| job.base.join(&file.path));
    let named = capture.named_files.iter().filter(|file| file.blake3.is_some());
    let script = capture.script.iter().map(|script| script.path.clone());
    let folder = capture.folder.iter().filter(|_| kept.is_some_and(|kept| kept.folder.is_some()));
    let of_folder = folder.flat_map(|folder| &folder.files).filter(|file| file.blake3.is_some());
    let all = data.chain(named.map(|file| file.path.clone())).chain(script);
    all.chain(of_folder.map(|file| file.path.clone()))
        .chain(job.run_file.clone())
        .filter_map(|path| path.canonicalize().ok())
        .collect()
}

/// When a file was written; none if it is not there.
fn written_at(path: &Path) -> Option<Timestamp> {
    modified_at(&path.metadata().ok().filter(std::fs::Metadata::is_file)?)
}
