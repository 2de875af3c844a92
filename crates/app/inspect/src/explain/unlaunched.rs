//! The page of a run that was never launched.

use trackway_api::checkpoints::CheckpointStanding;
use trackway_api::runs::explain::{AttemptCost, Explanation, MachineSummary, RecordedCheck};
use trackway_core::checks::{Finding, Severity};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::may_resume;
use trackway_engine::run::queue::{Waiting, waiting};
use trackway_flows::training::preflight::{OFFER, recorded};
use trackway_formats::EventKind;
use trackway_formats::shell::quoted;
use trackway_ledger::{EventRow, RunRow, RunState};

use super::cards::{data_card, run_card, since_last_good};
use super::evidence::{needs_full_command, newest_refusal};
use super::next::{self, RefusedLaunch};
use super::timeline;

/// A run that was never launched: it waits for a place in its queue, lost its supervisor or was stopped while it did,
/// pre-flight forbade it, or it ended before for a reason of which nothing more may be kept.
pub(super) fn page_without_attempt(context: &Context, run: &RunRow) -> Result<Explanation, AppError> {
    let preflight = recorded(context, run.run_id)?;
    let events = context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?;
    let waiting = waiting(context, run)?;
    let waits = waiting.queue.is_some() || waiting.unsupervised;
    if preflight.is_empty() && !waits && !run.state.is_final() {
        let message = format!("run `{}` has no attempt to explain", run.name);
        return Err(AppError::new(ErrorKind::NotFound, message));
    }
    let has_secret = needs_full_command(context, run.run_id);
    let actions = match left_queue(run, &events) {
        _ if waits => waiting_actions(run, &waiting, has_secret),
        Some(queue) => vec![rejoin_action(run, queue, has_secret)],
        None => unlaunched_actions(run, &preflight),
    };
    Ok(Explanation {
        next_actions: match refusal(run, &waiting, &events) {
            Some(refused) => after_refusal(run, &waiting, (&refused, has_secret), actions),
            None => actions,
        },
        run: run_card(context, run, waiting)?,
        short: Vec::new(),
        since_last_good: since_last_good(context, run, None)?,
        attempt: None,
        attempts: Vec::new(),
        rungs: Vec::new(),
        parent_diff: None,
        data: data_card(context, run, None)?,
        preflight,
        detections: Vec::new(),
        diagnoses: Vec::new(),
        placement: None,
        timeline: timeline::timeline(&[], &events, &[], None),
        termination: None,
        health: None,
        no_checkpoint_why: None,
        save_requests: None,
        reading: Vec::new(),
        checkpoints: Vec::new(),
        remote: None,
        fall_back: None,
        resume_step: None,
        standing: CheckpointStanding::default(),
        resume_proof: None,
        cadence: None,
        retries: Vec::new(),
        evaluations: Vec::new(),
        versions: Vec::new(),
        metrics: Vec::new(),
        curves: Vec::new(),
        progressive: None,
        machine: MachineSummary::default(),
        parameters: Vec::new(),
        tags: Vec::new(),
        artifacts: Vec::new(),
        same_inputs: Vec::new(),
        cost: AttemptCost::default(),
        last_lines: Vec::new(),
    })
}

/// Why nothing of a run was launched that has failed, or that nothing supervises. None: it was not refused, or was stopped since then.
fn refusal(run: &RunRow, waiting: &Waiting, events: &[EventRow]) -> Option<RefusedLaunch> {
    let is_left = run.state.is_final() || waiting.unsupervised;
    let (at, refused) = newest_refusal(events).filter(|_| is_left)?;
    let is_later = |event: &EventRow| EventKind::QueueLeft.is(&event.kind) && event.at > at;
    (!events.iter().any(is_later)).then_some(refused)
}

/// The refusal with what to do about it, and then the other actions. `has_secret`: its command has one, and is not stored.
fn after_refusal(
    run: &RunRow,
    waiting: &Waiting,
    (refused, has_secret): (&RefusedLaunch, bool),
    others: Vec<String>,
) -> Vec<String> {
    let is_open = may_resume(run.kind, run.state, None) && waiting.resume_refused.is_none();
    let mut actions = next::refused_actions("it", refused, run.run_id, is_open && !has_secret);
    actions.extend((is_open && has_secret).then(|| next::AGAIN.to_owned()));
    // How it continues is said once.
    let is_other = |action: &String| action != next::AGAIN && !action.contains("trackway resume ");
    actions.extend(others.into_iter().filter(is_other));
    actions
}

/// What a person does about a run that was not launched yet. `has_secret`: its command has one, and is not stored.
fn waiting_actions(run: &RunRow, waiting: &Waiting, has_secret: bool) -> Vec<String> {
    let [first, end] = next::while_it_waits(run.run_id, waiting.unsupervised);
    let first = if waiting.unsupervised && has_secret { next::AGAIN.to_owned() } else { first };
    let first = waiting.resume_refused.is_none().then_some(first);
    let end = (run.state == RunState::Waiting).then_some(end);
    first.into_iter().chain(end).collect()
}

/// The queue of a run that was never launched, since it was stopped while it waited there.
fn left_queue<'e>(run: &RunRow, events: &'e [EventRow]) -> Option<&'e str> {
    let joined = events.iter().filter(|event| EventKind::QueueJoined.is(&event.kind));
    let last = joined.max_by_key(|event| event.at).filter(|_| run.state == RunState::Stopped)?;
    last.field("queue")
}

/// How a run waits again that was stopped while it waited. `has_secret`: its command has one, and is not stored.
fn rejoin_action(run: &RunRow, queue: &str, has_secret: bool) -> String {
    match has_secret {
        true => next::AGAIN.to_owned(),
        false => format!("let it wait in queue {queue} again: trackway resume {}", run.run_id),
    }
}

/// What to do about each finding that forbade the launch, worst first.
fn unlaunched_actions(run: &RunRow, preflight: &[RecordedCheck]) -> Vec<String> {
    let blocking = preflight.iter().filter(|check| check.blocks);
    let findings = blocking.clone().flat_map(|check| &check.findings);
    let is_block = |finding: &&Finding| finding.severity == Severity::Block;
    let mut actions: Vec<String> =
        findings.filter(is_block).filter_map(|finding| finding.action.clone()).collect();
    let names: Vec<&str> = blocking.map(|check| check.name.as_str()).collect();
    if let Some(first) = names.first() {
        let (before, behind) = match &run.run_file_path {
            Some(path) => (quoted(path), ""),
            None => (format!("--name {}", quoted(&run.name)), " -- COMMAND"),
        };
        // A launch refuses what its launcher does not give, whatever is skipped.
        actions.push(match names.contains(&OFFER) {
            true => format!("then start it: trackway run {before}{behind}"),
            false => format!("or launch anyway: trackway run {before} --skip {first} --why REASON{behind}"),
        });
    }
    actions
}
