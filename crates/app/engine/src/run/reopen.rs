//! Reopens a run whose supervisor is gone. What opens one that its data blocked: any digest of what it would be launched on that is not what stopped it.

use std::path::Path;

use trackway_core::{LaunchKind, TerminationReason};
use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::sha256_hex;
use trackway_ledger::{AttemptRow, RunRow, RunState};

use super::isolated_changes::IsolatedChanges;
use super::job::{Job, data_sha256, planned_job};
use super::prepare::{Opened, Prepared, capture_surroundings, contract_sha256, resolve_data, supervised};
use super::remote::RemotePlan;
use super::shared_paths::{Beginning, refuse_shared};
use super::supervision;
use crate::Context;
use crate::capture::{Capture, NamedFile};
use crate::error::{AppError, ErrorKind};
use crate::json_file;
use crate::reporter::Reporter;

/// Letters of a digest that are shown.
const DIGEST_LETTERS: usize = 12;

/// A digest of what an attempt starts from: then and now.
struct Digest {
    what: &'static str,
    then: Option<String>,
    now: Option<String>,
}

/// A run whose supervisor is gone, as it was prepared. What can refuse it is looked at before the lease is taken: a supervisor that
/// was only paused would lose its run to a process that cannot continue it.
pub fn reopen(context: &Context, run: &RunRow, reporter: &dyn Reporter) -> Result<Prepared, AppError> {
    refuse_unless_open(context, run)?;
    let job = planned_job(context, run).map_err(|error| elsewhere(context, run, error))?;
    let beginning = Beginning::one_at_a_time(context);
    refuse_shared(context, &job, Some(run.run_id), reporter)?;
    let supervision = supervised(supervision::supervise_after_others(context, run.run_id)?, run)?;
    drop(beginning);
    // Another command may have sealed its attempt since the row was read.
    let run = context.run_by_id(run.run_id)?;
    refuse_unless_open(context, &run)?;
    let capture = capture_surroundings(context, &job);
    let opened = match run.state {
        RunState::Blocked => Some(opened(context, (&run, &job, &capture), reporter)?),
        _ => None,
    };
    let remote = RemotePlan::of(context, run.run_id, &job.plan.checkpoint);
    let isolated = IsolatedChanges::of(context, run.run_id);
    let (recheck, checked_data_sha256) = (None, None);
    Ok(Prepared { run, job, capture, remote, supervision, isolated, recheck, checked_data_sha256, opened })
}

/// # Errors
/// [`ErrorKind::Usage`] for a run that nothing continues. A stopped or failed one may continue from its last checkpoint, for example
/// after the code was fixed.
fn refuse_unless_open(context: &Context, run: &RunRow) -> Result<(), AppError> {
    if run.kind != LaunchKind::Train {
        let (run_id, kind) = (run.run_id, run.kind.as_str());
        let message = format!("run {run_id} is of kind `{kind}`; only training runs can be resumed");
        return Err(AppError::new(ErrorKind::Usage, message)
            .hint("start a new one: `trackway prove`, `trackway rehearse`, `trackway diagnose`"));
    }
    let last = context.attempts_of(run.run_id)?.pop();
    if may_resume(run.kind, run.state, last.and_then(|last| last.termination_reason)) {
        Ok(())
    } else {
        Err(not_resumable(run, ""))
    }
}

/// The error of a run whose plan this home does not have.
fn elsewhere(context: &Context, run: &RunRow, error: AppError) -> AppError {
    let folder = context.home.layout.run(run.run_id);
    let here = folder.folder().display();
    error.hint(format!(
        "resume it with the home that it was started in: `{here}` has no plan to continue it by"
    ))
}

/// Whether a run may be resumed: a training that has not completed, and that nothing but its data blocked. `last`: why its last attempt ended.
#[must_use]
pub fn may_resume(kind: LaunchKind, state: RunState, last: Option<TerminationReason>) -> bool {
    let is_open = match state {
        RunState::Completed => false,
        RunState::Blocked => last.is_some_and(is_of_data),
        _ => true,
    };
    kind == LaunchKind::Train && is_open
}

/// Why a run cannot be resumed.
fn not_resumable(run: &RunRow, why: &str) -> AppError {
    AppError::new(ErrorKind::Usage, format!("run `{}` cannot be resumed: it is {}{why}", run.name, run.state))
        .hint(format!("see why with: trackway explain {}", run.run_id))
}

/// What changed since the last attempt of a blocked run.
///
/// # Errors
/// [`crate::error::ErrorKind::Usage`] with the digests where nothing did, and for a run that something else blocked.
fn opened(
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
    let data_sha256 = data_sha256(&resolve_data(context, job, reporter)?);
    let digests = digests(context, (run, &last), (job, capture), data_sha256.clone())?;
    let changed: Vec<String> = digests.iter().filter_map(Digest::change).collect();
    if changed.is_empty() {
        let same: Vec<String> = digests.iter().filter_map(Digest::same).collect();
        let why = format!(
            ", since it ended in `{reason}` and what it would be launched on did not change: {}",
            same.join(", ")
        );
        return Err(not_resumable(run, &why).hint("repair the data, its schema or the code, then resume it"));
    }
    let sentence = format!("changed since it ended in `{reason}`: {}", changed.join(", "));
    Ok(Opened { sentence, data_sha256 })
}

/// Whether the data is what stopped an attempt.
pub(super) const fn is_of_data(reason: TerminationReason) -> bool {
    matches!(reason, TerminationReason::DataError | TerminationReason::SchemaDrift)
}

fn digests(
    context: &Context,
    (run, last): (&RunRow, &AttemptRow),
    (job, capture): (&Job, &Capture),
    data_now: Option<String>,
) -> Result<Vec<Digest>, AppError> {
    let events = context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?;
    // What the data was checked against when it was checked last.
    let again = events.iter().rfind(|event| EventKind::PreflightRepeated.is(&event.kind));
    let contract = match again {
        Some(event) => event.field("contract_sha256").map(str::to_owned),
        None => run.data_contract_sha256.clone(),
    };
    let files = AttemptLayout::new(Path::new(&last.log_directory));
    let then: Option<Capture> = json_file::read_if_sound(&files.capture_json());
    let git = &capture.git;
    let script = capture.script.as_ref().and_then(|script| script.blake3.clone());
    let of = |what, then: &Option<String>, now| Digest { what, then: then.clone(), now };
    let mut digests = vec![
        of("data", &last.data_sha256, data_now),
        of("schema and rules", &contract, contract_sha256(job)),
        of("commit", &last.git_commit, git.commit.clone()),
        of("uncommitted changes", &last.git_diff_blake3, git.dirty_diff_blake3.clone()),
        of("script", &last.script_blake3, script),
    ];
    if let Some(then) = then {
        let now = digest_of(&capture.named_files);
        digests.push(Digest { what: "files of the command", then: digest_of(&then.named_files), now });
    }
    Ok(digests)
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
        (self.then != self.now)
            .then(|| format!("{} ({} → {})", self.what, shown(&self.then), shown(&self.now)))
    }

    fn same(&self) -> Option<String> {
        self.now.as_deref().map(|digest| format!("{} {}", self.what, short(digest)))
    }
}

fn short(digest: &str) -> &str {
    digest.get(..DIGEST_LETTERS).unwrap_or(digest)
}
