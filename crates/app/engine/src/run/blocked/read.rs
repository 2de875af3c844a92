//! Gathers what an attempt that its data stopped was launched on, and what another one would be. What that means is decided in `decide.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::Value;
use trackway_core::Timestamp;
use trackway_data::DataManifest;
use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::runfile::Plan;
use trackway_ledger::{AttemptRow, RunRow};

use super::super::job::{Job, RunSource};
use super::decide::{Evidence, FolderFileState, LaunchedOn, SeenFile, paths_in, uncommitted_files};
use super::run_times::RunTimes;
use crate::Context;
use crate::capture::sources::PATCH_FILE;
use crate::capture::{
    Capture, Folder, Git, NamedFile, changed_between, differ_in_comments, is_python, patch_between,
    patched_files,
};
use crate::error::AppError;
use crate::json_file;

/// What replaces a secret in what is stored.
const REDACTED: &str = "[redacted";
/// Most files of code that are searched for the names of others, and the most of each.
const CODE_FILES_MAX: usize = 200;
const CODE_BYTES_MAX: u64 = 1 << 20;

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
    let times = RunTimes::in_folder(context, folder)?;
    let code = code_texts(next);
    let is_unused = |path: &Path| is_unused(path, &code);
    let of_folder = |found: &Folder| folder_files(found, folder, (&compared_alone, &times), &is_unused);
    let kept: Option<Capture> =
        json_file::read_if_sound(&AttemptLayout::new(Path::new(&last.log_directory)).capture_json());
    // Of another repository, or of none, git compared other files.
    let is_same_tree = kept.as_ref().is_some_and(|kept| kept.git.root == next.capture.git.root);
    let folder_of = |capture: &Capture| capture.folder.as_ref().filter(|_| is_same_tree).map(of_folder);
    let folder_then = kept.as_ref().and_then(folder_of);
    Ok(Evidence {
        then: LaunchedOn { folder_files: folder_then, ..then(context, (run, last), kept.as_ref())? },
        now: LaunchedOn { folder_files: folder_of(next.capture), ..now(context, next) },
        is_same_code: is_same_code(context, last, next),
        same_code_files: same_code_files(context, (kept.as_ref(), folder), next),
        unused_files: unused_files(&next.capture.git, &is_unused),
        committed_files: committed_files(last, &next.capture.git),
        run_file: run_file_in_repository(next),
        ended_at: last.ended_at,
        seen_files: seen_files(last, next),
    })
}

/// The plan of a job as its run file has it now; none where it cannot be compared.
pub fn plan_now(context: &Context, job: &Job) -> Option<Plan> {
    let path = job.run_file.clone()?;
    // Of an override with a secret only its place is kept.
    if job.overrides.iter().any(|one| one.contains(REDACTED)) {
        return None;
    }
    let source = RunSource::File { path, overrides: job.overrides.clone() };
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

/// The other files of the folders, by their paths from the working directory.
fn folder_files(
    found: &Folder,
    folder: &Path,
    (compared_alone, times): (&BTreeSet<PathBuf>, &RunTimes),
    is_unused: &dyn Fn(&Path) -> bool,
) -> BTreeMap<String, FolderFileState> {
    let files = found.files.iter().filter(|file| !compared_alone.contains(&file.path));
    let state = |file: &crate::capture::FolderFile| {
        let at = file.modified_at.map(Timestamp::as_micros);
        let size = file.size_bytes;
        let bytes = file.code_blake3.as_ref().or(file.blake3.as_ref()).cloned();
        let bytes = bytes.unwrap_or_else(|| format!("{size} bytes of {at:?}"));
        let is_output = file.modified_at.is_some_and(|at| times.has(at));
        FolderFileState { bytes, is_output, is_unused: is_unused(&file.path) }
    };
    files.map(|file| (shown(&file.path, folder), state(file))).collect()
}

/// Whether the script is the same but for comments.
fn is_same_code(context: &Context, last: &AttemptRow, next: &Next<'_>) -> bool {
    let Some(script) = &next.capture.script else { return false };
    let before = last.script_blake3.as_ref().map(|blake3| context.home.layout.file_source(blake3));
    let before = before.and_then(|path| std::fs::read_to_string(path).ok());
    let texts = before.zip(std::fs::read_to_string(&script.path).ok());
    is_python(&script.path.to_string_lossy())
        && texts.is_some_and(|(before, now)| differ_in_comments(&before, &now))
}

/// The files of the command that are the same code as then, but for comments.
fn same_code_files(
    context: &Context,
    (kept, folder): (Option<&Capture>, &Path),
    next: &Next<'_>,
) -> BTreeSet<String> {
    let before = kept.map(|kept| hashes_of(&kept.named_files, folder)).unwrap_or_default();
    let is_same = |file: &&NamedFile| {
        let name = shown(&file.path, folder);
        let then = before.get(&name).filter(|_| is_python(&name));
        let then = then.map(|blake3| context.home.layout.file_source(blake3));
        let texts = then.and_then(|path| std::fs::read_to_string(path).ok());
        let texts = texts.zip(std::fs::read_to_string(&file.path).ok());
        texts.is_some_and(|(then, now)| differ_in_comments(&then, &now))
    };
    next.capture.named_files.iter().filter(is_same).map(|file| shown(&file.path, folder)).collect()
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
    let small = |path: &PathBuf| path.metadata().is_ok_and(|it| it.is_file() && it.len() <= CODE_BYTES_MAX);
    let texts = script.into_iter().chain(beside).filter(small);
    texts.filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?))).collect()
}

/// Whether it is code of Python whose name is in no other code: what is new and imported has its name in a file.
fn is_unused(path: &Path, code: &[(PathBuf, String)]) -> bool {
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let name = match part(path.file_stem()) {
        name if name == "__init__" => part(path.parent().and_then(Path::file_name)),
        name => name,
    };
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let names = |text: &str| text.split(|letter| !is_letter(letter)).any(|word| word == name);
    let is_named = code.iter().any(|(other, text)| other != path && names(text));
    is_python(&path.to_string_lossy()) && !code.is_empty() && !is_named
}

/// Those of the files that are not tracked.
fn unused_files(git: &Git, is_unused: &dyn Fn(&Path) -> bool) -> BTreeSet<String> {
    let Some(root) = git.root.as_deref().map(Path::new) else { return BTreeSet::new() };
    let files = git.untracked.iter().map(|file| file.path.clone());
    files.filter(|path| is_unused(&root.join(path))).collect()
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
    let python: Vec<&str> =
        paths.iter().map(String::as_str).filter(|path| is_python(path)).take(CODE_FILES_MAX).collect();
    let patch = patch_between(Path::new(root), before, after, &python).unwrap_or_default();
    let patched = patched_files(&patch);
    paths.retain(|path| !(is_python(path) && patched.get(path).is_some_and(|file| file.is_of_comments())));
    Some(paths)
}

/// The path of the run file from the root of the repository, without links.
fn run_file_in_repository(next: &Next<'_>) -> Option<String> {
    let root = Path::new(next.capture.git.root.as_deref()?).canonicalize().ok()?;
    let run_file = next.job.run_file.as_ref()?.canonicalize().ok()?;
    Some(run_file.strip_prefix(root).ok()?.to_string_lossy().into_owned())
}

/// The files that the evidence of an end names.
fn seen_files(last: &AttemptRow, next: &Next<'_>) -> Vec<SeenFile> {
    let folder = Path::new(&last.working_directory);
    let items = last.termination_evidence.as_ref().and_then(Value::as_array);
    let texts = items.into_iter().flatten().filter_map(|item| item.get("text").and_then(Value::as_str));
    let paths: BTreeSet<PathBuf> = texts.flat_map(paths_in).map(|word| folder.join(word)).collect();
    let written = paths.into_iter().filter_map(|path| Some((written_at(&path)?, path)));
    let written: Vec<(Timestamp, PathBuf)> = written.collect();
    // There may be many files of data.
    let hashed = if written.is_empty() { BTreeSet::new() } else { hashed(next) };
    let seen = |(written_at, path): (Timestamp, PathBuf)| {
        let is_hashed = path.canonicalize().is_ok_and(|path| hashed.contains(&path));
        SeenFile { path: shown(&path, folder), written_at, is_hashed }
    };
    written.into_iter().map(seen).collect()
}

/// What the digests are over, without links.
fn hashed(next: &Next<'_>) -> BTreeSet<PathBuf> {
    let Next { job, capture, manifests, .. } = next;
    let data = manifests.iter().flat_map(|set| &set.files).map(|file| job.base.join(&file.path));
    let named = capture.named_files.iter().filter(|file| file.blake3.is_some());
    let script = capture.script.iter().map(|script| script.path.clone());
    let all = data.chain(named.map(|file| file.path.clone())).chain(script);
    all.chain(job.run_file.clone()).filter_map(|path| path.canonicalize().ok()).collect()
}

/// When a file was written; none if it is not there.
fn written_at(path: &Path) -> Option<Timestamp> {
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let since_1970 = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_1970.as_micros()).ok().map(Timestamp::from_micros)
}
