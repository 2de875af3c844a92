//! Writes a folder that rebuilds an attempt: its checkout, its changes, its packages, its data by hash, its command and its seed; and
//! says what cannot be rebuilt. Compares the result with the attempt.

mod check;
mod data;
mod script;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trackway_api::runs::reproduce::{RebuiltPart, Reproduction};
use trackway_core::{AttemptId, LaunchKind, RunId};
use trackway_engine::Context;
use trackway_engine::capture::sources::{self, AttemptSource, PATCH_FILE, UNTRACKED_FOLDER};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::StoredJob;
use trackway_files::TempFile;
use trackway_ledger::AttemptRow;

use self::data::{CommandFile, DataFile};
use self::script::Script;
use crate::data::table::ReadObserver;
use crate::outputs::refuse_filled;

pub use self::check::check;

/// What the reproduction is compared with.
const EXPECTED_FILE: &str = "expected.json";

/// What an attempt ended with.
#[derive(Debug, Serialize, Deserialize)]
struct ExpectedResult {
    attempt_id: AttemptId,
    run_id: RunId,
    /// Step and digest of the training state, of the run's commits in the attempt's rung.
    states: Vec<(u64, String)>,
    /// The last value of each metric that the script recorded.
    metrics: Vec<(String, f64)>,
    /// The hash of the list of its packages; `None`: it is not known.
    #[serde(default)]
    environment_lock_sha256: Option<String>,
}

/// Everything that is known of what the attempt was made from.
struct Evidence<'e> {
    attempt: &'e AttemptRow,
    source: AttemptSource,
    job: StoredJob,
    data: Vec<DataFile>,
    named: Vec<CommandFile>,
}

/// Writes the folder `out`, which must be new or empty.
///
/// # Errors
/// [`ErrorKind::NotFound`]; [`ErrorKind::Usage`] for a folder that holds something and for a launch of another kind than training;
/// [`ErrorKind::Integrity`] for kept sources that are not what was kept; [`ErrorKind::Cancelled`] while the data is read; when it cannot be
/// written.
pub fn reproduce(
    context: &Context,
    attempt_id: AttemptId,
    out: &Path,
    observer: &ReadObserver<'_>,
) -> Result<Reproduction, AppError> {
    let attempt = context.ledger_read(|ledger| ledger.attempt(attempt_id))?.ok_or_else(|| {
        AppError::new(ErrorKind::NotFound, format!("attempt {attempt_id} is not in the ledger"))
    })?;
    if attempt.kind != LaunchKind::Train {
        let message = format!("{attempt_id} is a launch of kind `{}`, and not a training", attempt.kind);
        return Err(AppError::new(ErrorKind::Usage, message));
    }
    refuse_filled(out)?;
    let (source, job) = (source_of(context, attempt_id)?, job_of(context, attempt.run_id)?);
    let data = data::files(context, &attempt, observer)?;
    let named = data::named_files(&source, &job.base, &data);
    let doubt = context.sets_read(&context.run_by_id(attempt.run_id)?, Some(&attempt))?.doubt;
    let evidence = Evidence { attempt: &attempt, source, job, data, named };
    let out = std::path::absolute(out).map_err(|error| AppError::file("find", out, error))?;
    let mut script = Script::of(&evidence);
    let files = &context.home.layout;
    copy_sources(&evidence, files, &out, &mut script)?;
    script.note_differences(&evidence);
    script.missing.extend(doubt.map(|doubt| format!("the data: {doubt}")));
    let expected = check::expected(context, &attempt)?;
    let expected = serde_json::to_vec_pretty(&expected)
        .map_err(|error| AppError::fault("what is expected cannot be written as JSON", error))?;
    write(&out.join(EXPECTED_FILE), &expected)?;
    write(&out.join("reproduce.sh"), script.text().as_bytes())?;
    make_executable(&out.join("reproduce.sh"))?;
    let readme = script.readme(&evidence);
    write(&out.join("README.md"), readme.as_bytes())?;
    let Script { rebuilt, missing, .. } = script;
    let folder = out.to_string_lossy().into_owned();
    Ok(Reproduction { attempt_id, run_id: attempt.run_id, folder, rebuilt, missing })
}

fn source_of(context: &Context, attempt_id: AttemptId) -> Result<AttemptSource, AppError> {
    let path = context.home.layout.attempt_source(attempt_id);
    let text = std::fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let message = format!(
                "what attempt {attempt_id} was made from was not kept: there is no `{}`",
                path.display()
            );
            AppError::new(ErrorKind::NotFound, message)
                .hint("attempts of another machine are reproduced there; older versions kept hashes only")
        }
        _ => AppError::file("read", &path, error),
    })?;
    serde_json::from_slice(&text)
        .map_err(|error| AppError::fault(format!("`{}` is damaged", path.display()), error))
}

fn job_of(context: &Context, run_id: RunId) -> Result<StoredJob, AppError> {
    let path = context.home.layout.run(run_id).plan_json();
    let text = std::fs::read(&path).map_err(|error| AppError::file("read", &path, error))?;
    serde_json::from_slice(&text)
        .map_err(|error| AppError::fault(format!("`{}` is damaged", path.display()), error))
}

/// Copies what was kept: patch, untracked files, scripts, packages.
fn copy_sources(
    evidence: &Evidence<'_>,
    home: &trackway_formats::layout::HomeLayout,
    out: &Path,
    script: &mut Script,
) -> Result<(), AppError> {
    if let Some((path, why)) = sources::differences(home, &evidence.source).first() {
        let message = format!("`{}` is not what was kept: {why}; nothing was written", path.display());
        return Err(AppError::new(ErrorKind::Integrity, message).hint(
            "put back a copy of the home's `sources`, and see what else differs with: trackway verify --all",
        ));
    }
    std::fs::create_dir_all(out).map_err(|error| AppError::file("make", out, error))?;
    if let Some(blake3) = &evidence.source.changes_blake3 {
        let kept = home.changes_source(blake3);
        match kept.is_dir() {
            true => {
                script.has_patch = copy_if_there(&kept.join(PATCH_FILE), &out.join(PATCH_FILE))?;
                let untracked = kept.join(UNTRACKED_FOLDER);
                script.has_untracked = untracked.is_dir();
                if script.has_untracked {
                    copy_tree(&untracked, &out.join(UNTRACKED_FOLDER))?;
                }
                script.rebuilt.push(part("changes", format!("what was not committed, BLAKE3 {blake3}")));
            }
            false => script.missing.push("the changes that were not committed: they were not kept".into()),
        }
    }
    for (place, file) in evidence.source.files.iter().enumerate() {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let copy = PathBuf::from("files").join(format!("{place}-{name}"));
        if copy_if_there(&home.file_source(&file.blake3), &out.join(&copy))? {
            script.files.push((file.path.clone(), copy));
        } else {
            script.missing.push(format!("`{}`: it was not kept", file.path.display()));
        }
    }
    if let Some(sha256) = &evidence.source.environment_sha256 {
        script.has_packages = copy_if_there(&home.environment_source(sha256), &out.join("packages.txt"))?;
    }
    Ok(())
}

fn part(what: impl Into<String>, from: impl Into<String>) -> RebuiltPart {
    RebuiltPart { what: what.into(), from: from.into() }
}

fn copy_if_there(from: &Path, to: &Path) -> Result<bool, AppError> {
    if !from.is_file() {
        return Ok(false);
    }
    let folder = to.parent().unwrap_or(to);
    std::fs::create_dir_all(folder).map_err(|error| AppError::file("make", folder, error))?;
    std::fs::copy(from, to).map_err(|error| AppError::file("copy to", to, error))?;
    Ok(true)
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), AppError> {
    let entries = std::fs::read_dir(from).map_err(|error| AppError::file("list", from, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| AppError::file("list", from, error))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy_tree(&path, &target)?,
            false => drop(copy_if_there(&path, &target)?),
        }
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), AppError> {
    TempFile::write(path, bytes).map_err(|error| AppError::file("write", path, error))
}

fn make_executable(path: &Path) -> Result<(), AppError> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| AppError::file("make executable", path, error))
}
