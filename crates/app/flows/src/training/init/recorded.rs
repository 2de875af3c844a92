//! What a recorded run shows of the run file that would repeat it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use trackway_core::{LaunchKind, RunId, Timestamp};
use trackway_engine::Context;
use trackway_engine::capture::named_files::modified_at;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::adopted_patterns;
use trackway_engine::stored::stored_plan;
use trackway_formats::runfile::RunSection;
use trackway_ledger::{AttemptRow, RunRow};

use super::draft::{ProjectEvidence, RecordedRun};
use super::resume::resume_arguments;
use super::{Places, beside, folder_for, paths_of, project, read_by, read_script, with_columns};

/// Variables of its environment that decide what a training computes, and on what.
const VARIABLES: [&str; 14] = [
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "HF_HUB_OFFLINE",
    "JAX_ENABLE_X64",
    "JAX_PLATFORMS",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTHONHASHSEED",
    "PYTHONPATH",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TF_DETERMINISTIC_OPS",
    "XLA_FLAGS",
];
/// How a value begins that was a secret and is not stored.
const REDACTED: &str = "[redacted:";

/// The request of `trackway init --from`.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub run: RunId,
    /// The run file to write.
    pub output: PathBuf,
    /// Whether a file of that name is replaced.
    pub replace: bool,
}

/// Looks at a run that was started without a run file, and at what its command names. Nothing is changed.
///
/// # Errors
/// [`ErrorKind::Usage`] for a run file that exists and is not to be replaced, for a run that was started with a run
/// file or by another tool, and for one whose command, parameters or tags had a secret.
pub fn survey_run(context: &Context, request: &RecordedRequest) -> Result<ProjectEvidence, AppError> {
    let folder = folder_for(&request.output, request.replace)?;
    let evidence = evidence_of(context, &context.run_by_id(request.run)?, Some(&folder))?;
    Ok(with_columns(evidence, &folder))
}

/// What a run shows for a run file in `folder`, or where it ran.
///
/// # Errors
/// As [`survey_run`].
pub(crate) fn evidence_of(
    context: &Context,
    run: &RunRow,
    folder: Option<&Path>,
) -> Result<ProjectEvidence, AppError> {
    let plan = bare_plan(run)?;
    let last = context.attempts_of_kind(run.run_id, run.kind)?.pop();
    let ran_in = last.as_ref().map(|attempt| PathBuf::from(&attempt.working_directory));
    let folder = folder.or(ran_in.as_deref()).unwrap_or(Path::new("/")).to_owned();
    let working_directory = ran_in.unwrap_or_else(|| folder.clone());
    let events = context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?;
    let recorded = RecordedRun {
        run_id: run.run_id,
        name: run.name.clone(),
        command: plan.command.clone(),
        working_directory: (working_directory != folder).then(|| beside(&working_directory, &folder)),
        environment: last.as_ref().map(|attempt| environment_of(context, attempt)).unwrap_or_default(),
        parameters: plan.parameters,
        tags: plan.tags,
        adopt: adopted_patterns(&events),
    };
    let (script, arguments) = script_of(&plan.command, &working_directory);
    let script = script.and_then(|script| read_script(&script, &folder).ok());
    let places = Places { run_file: &folder, arguments: &working_directory, script: &working_directory };
    let mut evidence = project(&places, script, arguments, &|path| is_older(path, run.started_at));
    let text = evidence.script.as_ref().map_or("", |script| script.text.as_str());
    evidence.data_files = named_by(text, arguments, std::mem::take(&mut evidence.data_files));
    Ok(ProjectEvidence { recorded: Some(recorded), ..evidence })
}

/// Of the data files that are there, those whose name the script or its arguments have: the others need not be what the run read.
fn named_by(script: &str, arguments: &[String], mut files: Vec<String>) -> Vec<String> {
    let words = read_by(script).chain(paths_of(arguments));
    let names: BTreeSet<&OsStr> = words.filter_map(|word| Path::new(word).file_name()).collect();
    files.retain(|path| Path::new(path).file_name().is_some_and(|name| names.contains(name)));
    files
}

/// The arguments that make the script of a command continue from a checkpoint, as its text declares them now; empty:
/// none, or it is not here.
#[must_use]
pub fn resume_arguments_of(command: &[String], working_directory: &Path) -> Vec<String> {
    let (script, _) = script_of(command, working_directory);
    let script = script.and_then(|script| read_script(&script, working_directory).ok());
    script.and_then(|script| resume_arguments(&script.text)).unwrap_or_default()
}

/// The plan of a run that has no run file.
fn bare_plan(run: &RunRow) -> Result<RunSection, AppError> {
    let usage = |message: String, hint: &str| Err(AppError::new(ErrorKind::Usage, message).hint(hint));
    let name = &run.name;
    if let Some(file) = &run.run_file_path {
        return usage(format!("run `{name}` was started with the run file `{file}`"), "copy that file");
    }
    let Some(plan) = stored_plan(run)?.filter(|_| run.kind == LaunchKind::Train) else {
        let message = format!("run `{name}` is not a training that Trackway started");
        return usage(message, "write a run file with `trackway init SCRIPT`");
    };
    if let Some(what) = what_had_secret(&plan.run) {
        let message =
            format!("{what} of run `{name}` had a secret, which is not stored: a run file would lack it");
        return usage(message, "write one with `trackway init SCRIPT`, and put the secret into a variable");
    }
    Ok(plan.run)
}

/// What of a recorded run had a secret, which is not stored: its command, a parameter or a tag. With one of them no run
/// file can be written of it.
#[must_use]
pub fn what_had_secret(run: &RunSection) -> Option<&'static str> {
    let is_redacted = |text: &String| text.contains(REDACTED);
    if run.command.iter().any(is_redacted) {
        Some("the command")
    } else if run.parameters.values().any(is_redacted) {
        Some("a parameter")
    } else if run.tags.values().any(is_redacted) {
        Some("a tag")
    } else {
        None
    }
}

/// The variables that an attempt had and that decide what it computes.
fn environment_of(context: &Context, attempt: &AttemptRow) -> BTreeMap<String, String> {
    let path = context.home.layout.attempt(attempt.attempt_id).capture_json();
    let capture =
        std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let value = |name: &&str| {
        let value = capture.as_ref()?.get("environment")?.get(*name)?.as_str()?;
        (!value.contains(REDACTED)).then(|| ((*name).to_owned(), value.to_owned()))
    };
    VARIABLES.iter().filter_map(value).collect()
}

/// The script of a command, and the words behind it: its first word that is a file with the ending of a script, else
/// its first that is a file.
fn script_of<'c>(command: &'c [String], folder: &Path) -> (Option<PathBuf>, &'c [String]) {
    let is_file = |word: &String| folder.join(word).is_file();
    let has_ending = |word: &String| [".py", ".sh", ".R", ".jl"].iter().any(|ending| word.ends_with(ending));
    let script = command.iter().position(|word| has_ending(word) && is_file(word));
    match script.or_else(|| command.iter().position(is_file)) {
        Some(place) => (Some(folder.join(&command[place])), &command[place + 1..]),
        None => (None, command.get(1..).unwrap_or_default()),
    }
}

/// Whether a file was there before `then`: what a run wrote is not what it read.
fn is_older(path: &Path, then: Option<Timestamp>) -> bool {
    let modified = path.metadata().ok().as_ref().and_then(modified_at);
    modified.is_some_and(|modified| then.is_none_or(|then| modified < then))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a secret is seen in the command, in a parameter and in a tag, and that ordinary values are none.
    #[test]
    fn a_secret_is_seen_wherever_a_run_had_it() {
        let with = |command: &str, parameter: &str, tag: &str| {
            let one = |value: &str| BTreeMap::from([("x".to_owned(), value.to_owned())]);
            what_had_secret(&RunSection {
                command: vec![command.to_owned()],
                parameters: one(parameter),
                tags: one(tag),
                ..RunSection::default()
            })
        };
        let hidden = "[redacted:named]";
        assert_eq!(with("true", "user_id", "3"), None);
        assert_eq!(with(hidden, hidden, "3"), Some("the command"));
        assert_eq!(with("true", hidden, "3"), Some("a parameter"));
        assert_eq!(with("true", "user_id", hidden), Some("a tag"));
    }

    /// Proves that the script of a command is a word that is a file, one with the ending of a script before others,
    /// with the arguments behind it.
    #[test]
    fn the_script_of_a_command_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.py"), "").unwrap();
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, has_script, behind) in [
            ("torchrun --nproc-per-node 2 train.py --lr 1", true, "--lr 1"),
            ("/bin/sh train.py --lr 1", true, "--lr 1"),
            ("/bin/sh -c true", true, "-c true"),
            ("python -m job.train --lr 1", false, "-m job.train --lr 1"),
        ] {
            let command = words(line);
            let (script, arguments) = script_of(&command, folder.path());
            assert_eq!((script.is_some(), arguments), (has_script, &words(behind)[..]), "{line}");
        }
    }

    /// Proves that of the data files which are there those count whose name is in the script or in the arguments, and that no other does.
    #[test]
    fn only_data_that_is_named_is_that_of_a_run() {
        let files =
            ["data/train.csv", "data/val.csv", "report.csv", "scored.csv"].map(str::to_owned).to_vec();
        let script = "a = open(os.path.join(folder, 'train.csv'))\nb.to_csv('scored.csv')\n";
        let arguments = ["--val", "val.csv"].map(str::to_owned);
        assert_eq!(named_by(script, &arguments, files.clone()), ["data/train.csv", "data/val.csv"]);
        assert!(named_by("import torch\n", &[], files).is_empty());
    }

    /// Proves that a file that was changed since the run began is not one that it read.
    #[test]
    fn what_a_run_wrote_is_not_what_it_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let modified = modified_at(&file.path().metadata().unwrap()).unwrap().as_micros();
        let at = |micros: i64| Some(Timestamp::from_micros(micros));
        assert!(is_older(file.path(), at(modified + 2_000_000)) && is_older(file.path(), None));
        assert!(!is_older(file.path(), at(modified - 1)));
        assert!(!is_older(Path::new("/absent"), None));
    }
}
