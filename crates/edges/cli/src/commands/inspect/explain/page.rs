//! The explanation as a page of text: most important first, one fact a line.

use trackway_api::checkpoints::{Checkpoint, CheckpointState};
use trackway_api::runs::detections::Detection;
use trackway_api::runs::explain::{
    Amendment, AttemptArtifact, AttemptPlacement, AttemptSummary, Diff, ExplainedAttempt, ExplainedHealth,
    Explanation, RecordedCheck, ResumeProofSummary, RetryDecision, SameInputsRun, Termination, TimelineEvent,
    exit_status,
};
use trackway_api::runs::progressive::ProgressiveEstimate;
use trackway_api::runs::{RunAmendment, RungSummary};
use trackway_core::checks::Verdict;
use trackway_core::detect::DetectionSeverity;
use trackway_core::{Health, TerminationReason};
use trackway_ledger::RunState;

use super::results::{cost, evaluations, left_out, metrics, versions};
use super::{cadence, diagnosis, inputs, machine, parameters};
use crate::commands::checks::counted_verdicts;
use crate::commands::inspect::{amend, progressive};
use crate::commands::sections::{fact, facts, lines, listed, more, newest, optional, section};
use crate::printer::{Printer, StyledLine, Tone};
use crate::units::{bytes, counted, duration, metric, short_hash};

/// Most lines of the timeline that are shown; `--json` has all of them.
const TIMELINE_LINES_MAX: usize = 40;
/// Most changes of a difference that are shown.
const CHANGES_MAX: usize = 24;
const ARTIFACTS_MAX: usize = 12;
/// Most detections that are shown.
const DETECTIONS_MAX: usize = 12;
/// Most processes whose stacks are shown.
const STACKS_MAX: usize = 16;

pub fn print(printer: Printer, page: &Explanation) {
    heading(printer, page);
    page.since_last_good.iter().for_each(|diff| difference(printer, diff, "since_last_good.changes"));
    if let Some(attempt) = &page.attempt {
        why(printer, page, attempt);
        attempts(printer, page);
        listed(printer, "Rungs", &page.rungs, rungs);
        listed(printer, "Amended since", &attempt.amendments, amendments);
        tried(printer, page, attempt);
    }
    listed(printer, "Pre-flight", &page.preflight, preflight);
    page.parent_diff.iter().for_each(|diff| difference(printer, diff, "parent_diff.changes"));
    listed(
        printer,
        same_inputs_title(&page.same_inputs, page.run.data_sha256.is_some()),
        &page.same_inputs,
        same_inputs,
    );
    listed(printer, "Found while it ran", &page.detections, detections);
    listed(printer, "Diagnosed", &page.diagnoses, diagnosis::diagnoses);
    timeline(printer, &page.timeline);
    if page.attempt.is_some() {
        checkpoints(printer, page);
        remote(printer, page);
        resume_proof(printer, page);
        page.cadence.iter().for_each(|advice| cadence::cadence(printer, advice));
        listed(printer, "Decisions", &page.retries, decisions);
        facts(printer, "Parameters", parameters::lines(&page.parameters));
        listed(printer, "Metrics", &page.metrics, metrics);
        listed(printer, "Left out", &page.reading, left_out);
        unseen(printer, page.progressive.as_ref());
        facts(printer, "Machine", machine::lines(&page.machine));
        facts(printer, "Tags", page.tags.iter().map(|tag| (tag.name.clone(), tag.value.clone())).collect());
        listed(printer, "Artifacts", &page.artifacts, artifacts);
        listed(printer, "Evaluations", &page.evaluations, evaluations);
        listed(printer, "Registered", &page.versions, versions);
        cost(printer, page);
    }
    listed(printer, "Last lines", &page.last_lines, last_lines);
    next(printer, &page.next_actions);
}

/// Ten lines: cause, evidence, checkpoint, what changed, cost, what to do.
pub fn print_short(printer: Printer, page: &Explanation) {
    for line in &page.short {
        printer.line(format!("{:<12}{}", line.name, line.text));
    }
}

fn heading(printer: Printer, page: &Explanation) {
    let run = &page.run;
    let owner = match (&run.owner, &run.team) {
        (Some(owner), Some(team)) => format!(" · {owner} ({team})"),
        (Some(owner), None) => format!(" · {owner}"),
        (None, Some(team)) => format!(" · {team}"),
        (None, None) => String::new(),
    };
    let tone = if run.unsupervised { Tone::Bad } else { state_tone(run.state) };
    let title = printer.tone(Tone::Bold, &run.name);
    let hidden = if run.hidden_at.is_some() { " · hidden" } else { "" };
    let state = printer.tone(tone, run.state.as_str());
    printer.line(title + format!(" · {}{owner} · ", run.run_id) + state + hidden);
    lines(printer, run.waiting());
    lines(printer, run.note.iter().flat_map(|note| note.lines()));
    listed(printer, "Changed by hand", &run.amendments, run_amendments);
}

/// Changes of the run's name, note and tags, and of whether lists show it.
fn run_amendments(printer: Printer, changes: &[RunAmendment]) {
    for change in changes {
        let why = change.why.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
        printer.line(format!("  {} ({}, {}{why})", amend::sentence(change), change.author, change.at));
    }
}

fn state_tone(state: RunState) -> Tone {
    match state {
        RunState::Completed => Tone::Good,
        RunState::Running | RunState::Planned | RunState::Waiting => Tone::Warning,
        RunState::Failed | RunState::Stopped | RunState::Blocked => Tone::Bad,
    }
}

/// What was checked before the launch: a line when all is well, else what was found.
fn preflight(printer: Printer, checks: &[RecordedCheck]) {
    let seconds: f64 = checks.iter().filter_map(|check| check.seconds).fold(0.0, f64::max);
    let verdicts: Vec<Verdict> = checks.iter().map(|check| check.verdict).collect();
    let skipped = checks.iter().filter(|check| check.skipped_why.is_some()).count();
    let checked = format!("{}; the longest took {}", counted_verdicts(&verdicts, skipped), duration(seconds));
    fact(printer, "checked", &checked);
    for check in checks.iter().filter(|check| !check.passes()) {
        let tone = if check.blocks { Tone::Bad } else { Tone::Warning };
        let word = if check.blocks { "block" } else { check.verdict.as_str() };
        let word = printer.tone(tone, word.replace('_', " "));
        let findings: Vec<&str> = check.findings.iter().map(|finding| finding.message.as_str()).collect();
        let said = match (&check.skipped_why, findings.as_slice()) {
            (Some(why), _) => format!("skipped: {why}"),
            (None, []) => check.why.clone().unwrap_or_default(),
            (None, [only]) => (*only).to_owned(),
            (None, [first, rest @ ..]) => format!("{first} (and {} more)", rest.len()),
        };
        printer.line(StyledLine::from("  ") + word + format!(" {}: {said}", check.name));
    }
}

/// What detectors found, the likely cause and what to do; the last ones.
fn detections(printer: Printer, found: &[Detection]) {
    for detection in newest(printer, found, DETECTIONS_MAX, "detections") {
        let tone = if detection.severity == DetectionSeverity::Critical { Tone::Bad } else { Tone::Warning };
        let name = printer.tone(tone, detection.detector.as_str());
        let rank = if detection.rank > 0 { format!(", rank {}", detection.rank) } else { String::new() };
        let from = match detection.first_step {
            first if first < detection.step => format!(" (from step {first} on)"),
            _ => String::new(),
        };
        let seen = format!(" at step {}{from}{rank}: {}", detection.step, detection.evidence);
        printer.line(StyledLine::from("  ") + name + seen);
        printer.line(format!("    likely: {}", detection.cause));
        printer.line(format!("    try: {}", detection.advice));
        let batch = detection.batch_digest.map(|digest| format!("batch {digest:x}"));
        let committed =
            detection.last_committed_step.map(|step| format!("last commit before it: step {step}"));
        let beside: Vec<String> = data_of(detection).into_iter().chain(batch).chain(committed).collect();
        if !beside.is_empty() {
            printer.line(format!("    {}", beside.join("; ")));
        }
        if let Some(rolled_back) = &detection.rolled_back {
            printer.line(format!("    done: {rolled_back}"));
        }
        stacks(printer, detection);
    }
}

/// The range of the data, such as `batches 120 to 131 of epoch 2`.
fn data_of(detection: &Detection) -> Option<String> {
    let first = detection.first_batch?;
    let batches = match detection.last_batch {
        Some(last) if last > first => format!("batches {first} to {last}"),
        _ => format!("batch {first}"),
    };
    let epoch = detection.data_epoch.map(|epoch| format!(", epoch {epoch}")).unwrap_or_default();
    Some(format!("data: {batches}{epoch}"))
}

/// Where each process was when the run made no progress.
fn stacks(printer: Printer, detection: &Detection) {
    let Some(path) = &detection.stacks_path else { return };
    printer.line(format!("    stacks, whole in `{path}` of the attempt's folder:"));
    for line in detection.stacks.iter().take(STACKS_MAX) {
        printer.line(format!("      {}", line));
    }
    let left_out = detection.stacks.len().saturating_sub(STACKS_MAX);
    if left_out > 0 {
        printer.line(format!("      … {left_out} more lines"));
    }
}

fn why(printer: Printer, page: &Explanation, attempt: &ExplainedAttempt) {
    let of = page.attempts.len();
    let rung =
        if page.rungs.is_empty() { String::new() } else { format!(" · {} of the data", attempt.rung) };
    section(printer, &format!("Attempt {} of {of} · {}{rung}", attempt.attempt_number, attempt.attempt_id));
    match &page.termination {
        Some(termination) => ended(printer, termination),
        None => {
            let known = page.short.get(1).map_or("it has not ended", |line| line.text.as_str());
            fact(printer, "state", format!("{} ({known})", attempt.state));
        }
    }
    optional(printer, "status", exit_status(attempt.exit_code, attempt.signal));
    page.health.iter().for_each(|health| healthy(printer, health, page.health_lines()));
}

/// Whether what it computed is worth something, and what that rests on.
fn healthy(printer: Printer, health: &ExplainedHealth, lines: Vec<String>) {
    let tone = match health.health {
        Some(Health::Ok) => Tone::Good,
        Some(Health::Broken) => Tone::Bad,
        _ => Tone::Warning,
    };
    fact(printer, "health", printer.tone(tone, health.word()));
    for line in lines {
        fact(printer, "", line);
    }
}

fn ended(printer: Printer, termination: &Termination) {
    let tone = if termination.reason == TerminationReason::Completed { Tone::Good } else { Tone::Bad };
    let reason = printer.tone(tone, termination.reason.as_str());
    let confidence = termination.confidence.map_or("unknown", |confidence| confidence.as_str());
    let domain = termination.domain.map_or("unknown", |domain| domain.as_str());
    let outlook = termination.retry_outlook.map_or("unknown", |outlook| outlook.as_str()).replace('_', " ");
    let rule = termination.rule.as_deref().unwrap_or("unknown");
    fact(printer, "ended", reason + format!(" ({confidence}, rule `{rule}`)"));
    fact(printer, "runbook", &termination.runbook);
    fact(printer, "domain", format!("{domain}; retry outlook: {outlook}"));
    for item in &termination.evidence {
        fact(printer, "evidence", format!("{}: {}", item.place(), item.text));
    }
    for item in &termination.secondary {
        let runbook = item.runbook.as_ref().map(|runbook| format!(" ({runbook})")).unwrap_or_default();
        fact(printer, "also seen", format!("{}: {}{runbook}", item.reason, item.text));
    }
}

fn step(step: Option<u64>) -> String {
    step.map_or_else(|| "–".into(), |step| step.to_string())
}

fn attempts(printer: Printer, page: &Explanation) {
    if page.attempts.len() < 2 {
        return;
    }
    section(printer, "Attempts");
    let has_rungs = !page.rungs.is_empty();
    let has = |value: fn(&AttemptSummary) -> bool| page.attempts.iter().any(value);
    let has_recovery = has(|attempt| attempt.recovery_seconds.is_some());
    let has_gpus = has(|attempt| attempt.gpu_seconds.is_some_and(|seconds| seconds > 0.0));
    let mut titles = vec!["  #", "ended", "rule", "from step", "last step", "committed", "new steps", "took"];
    titles.extend(has_recovery.then_some("back after"));
    titles.extend(has_gpus.then_some(["GPU time", "GPU h/step", "cost"]).into_iter().flatten());
    titles.extend(has_rungs.then_some("rung"));
    let cells = |attempt: &AttemptSummary| {
        let mut cells = vec![
            format!("  {}", attempt.attempt_number),
            attempt.ended_as().into(),
            attempt.rule.clone().unwrap_or_default(),
            step(attempt.resumed_from_step),
            step(attempt.last_step),
            step(attempt.last_committed_step),
            step(attempt.new_committed_steps),
            attempt.wall_seconds.map(duration).unwrap_or_default(),
        ];
        cells.extend(has_recovery.then(|| attempt.recovery_seconds.map(duration).unwrap_or_default()));
        cells.extend(has_gpus.then(|| spent(attempt)).into_iter().flatten());
        cells.extend(has_rungs.then(|| attempt.rung.clone()));
        cells
    };
    printer.table(&titles, page.attempts.iter().map(cells).collect());
}

/// GPU time, GPU hours for each newly committed step, and money.
fn spent(attempt: &AttemptSummary) -> [String; 3] {
    [
        attempt.gpu_seconds.map(duration).unwrap_or_default(),
        attempt.gpu_hours_per_committed_step.map(metric).unwrap_or_else(|| "–".into()),
        attempt.cost_usd.map(|usd| format!("{usd:.2} USD")).unwrap_or_default(),
    ]
}

/// The rungs of the ladder, what each cost, and why the next one was launched or not.
fn rungs(printer: Printer, rungs: &[RungSummary]) {
    let cells = |rung: &RungSummary| {
        vec![
            format!("  {}", rung.rung),
            rung.verdict.to_string(),
            rung.attempt_count.to_string(),
            step(rung.last_step),
            duration(rung.wall_seconds),
            duration(rung.gpu_seconds),
            rung.cost_usd.map(|usd| format!("{usd:.2} USD")).unwrap_or_default(),
            inputs::rows(rung.rows, rung.rows_total).unwrap_or_else(|| "not counted".into()),
        ]
    };
    let titles = ["  rung", "verdict", "attempts", "last step", "took", "GPU time", "cost", "rows"];
    printer.table(&titles, rungs.iter().map(cells).collect());
    lines(printer, rungs.iter().filter_map(|rung| rung.why.as_deref()));
}

fn amendments(printer: Printer, amendments: &[Amendment]) {
    inputs::amendments(amendments).for_each(|line| printer.line(line));
}

fn tried(printer: Printer, page: &Explanation, attempt: &ExplainedAttempt) {
    section(printer, "What was tried");
    fact(printer, "command", attempt.command.join(" "));
    fact(printer, "in", &attempt.working_directory);
    fact(printer, "config", short_hash(&page.run.config_sha256));
    for (name, known) in inputs::inputs(&attempt.inputs) {
        optional(printer, name, known);
    }
    let dirty = if attempt.git_dirty == Some(true) { ", with changes that are not committed" } else { "" };
    let commit = attempt.git_commit.as_deref().map(|commit| format!("{}{dirty}", short_hash(commit)));
    optional(printer, "git", commit);
    optional(
        printer,
        "environment",
        attempt.environment_lock_sha256.as_deref().map(|hash| {
            let source = attempt.environment_lock_source.as_deref().unwrap_or_default();
            format!("{} {source}", short_hash(hash))
        }),
    );
    optional(printer, "container", attempt.container_digest.clone());
    for evaluator in &attempt.evaluators {
        let digest = evaluator.digest.as_deref().map(short_hash).unwrap_or("no digest");
        let name = evaluator.name.as_deref().or(evaluator.why.as_deref()).unwrap_or("?");
        fact(printer, "evaluator", format!("{digest} {name}"));
    }
    for set in &page.data.sets {
        let rows = set.rows.map(|rows| format!(", {}", counted(rows, "row"))).unwrap_or_default();
        let (files, size) = (counted(set.file_count, "file"), bytes(set.size_bytes));
        let hash = short_hash(&set.data_sha256);
        fact(printer, "data", format!("{}: {files}{rows}, {size}, {hash}", set.name));
    }
    optional(printer, "", page.data.doubt.clone());
    let resumed = attempt.resumed_from_step.map(|step| {
        match attempt.resumed_from_manifest_sha256.as_deref().map(short_hash) {
            Some(manifest) => format!("from step {step} (manifest {manifest})"),
            None => format!("from step {step}, of a checkpoint that is not the run's"),
        }
    });
    optional(printer, "resumed", resumed);
    if let Some(place) = &page.placement {
        placed(printer, place, attempt.has_ended());
    }
    fact(printer, "files", &attempt.folder);
}

fn placed(printer: Printer, place: &AttemptPlacement, has_ended: bool) {
    let job = place.job_id.as_deref().map(|job| format!(", process {job}")).unwrap_or_default();
    let host = place.hosts.as_deref().unwrap_or("?");
    let size = match (place.cpu_count, place.memory_bytes) {
        (Some(cpus), Some(memory)) => format!(" ({cpus} CPUs, {})", bytes(memory)),
        _ => String::new(),
    };
    fact(printer, "where", format!("{} on {host}{size}{job}", place.started_by()));
    optional(printer, "devices", place.devices.clone());
    optional(printer, "queued", place.queued(has_ended));
    optional(printer, "arrived", place.engine.completeness.clone());
}

/// `field`: where its changes are in the JSON.
fn difference(printer: Printer, diff: &Diff, field: &str) {
    section(printer, &format!("Changed since {} ({})", diff.label, diff.against));
    if diff.changes.is_empty() {
        printer.line(format!("  {}", diff.without_changes()));
    }
    for change in diff.changes.iter().take(CHANGES_MAX) {
        let why = change.fits_because.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        fact(printer, change.kind.as_str(), change.sentence() + &why);
        change.shown_lines.iter().for_each(|line| fact(printer, "", line));
    }
    more(printer, diff.changes.len().saturating_sub(CHANGES_MAX), field);
    for unknown in &diff.unknown {
        fact(printer, "not known", &unknown.why);
    }
}

/// What is said to be the same: files may differ that no run file names. Nothing is said of data where no data set is known.
fn same_inputs_title(runs: &[SameInputsRun], is_data_known: bool) -> &'static str {
    match (runs.iter().all(SameInputsRun::has_same_files), is_data_known) {
        (true, true) => "Same config, data and seed",
        (true, false) => "Same config and seed",
        (false, _) => "Same run-file settings",
    }
}

fn same_inputs(printer: Printer, runs: &[SameInputsRun]) {
    for same in runs {
        let tone = if same.differing_metrics.is_empty() { Tone::Dim } else { Tone::Warning };
        let result = printer.tone(tone, format!(": {}", same.sentence()));
        printer.line(StyledLine::from(format!("  {} {}", same.run_id, same.state)) + result);
    }
}

fn timeline(printer: Printer, timeline: &[TimelineEvent]) {
    if timeline.is_empty() {
        return;
    }
    section(printer, "Timeline");
    let hidden = timeline.len().saturating_sub(TIMELINE_LINES_MAX);
    let head = if hidden > 0 { TIMELINE_LINES_MAX / 2 } else { timeline.len() };
    for (place, moment) in timeline.iter().enumerate() {
        if hidden > 0 && place == head {
            printer.line(printer.tone(Tone::Dim, format!("  … {hidden} more (`--json` has all)")));
        }
        if hidden > 0 && (head..head + hidden).contains(&place) {
            continue;
        }
        let at = moment.at.to_rfc3339();
        let clock = at.get(11..23).unwrap_or(&at);
        let attempt = moment.attempt_number.map(|number| format!("#{number}")).unwrap_or_default();
        printer.line(format!("  {clock}  {attempt:<4}{}", moment.text));
    }
}

fn checkpoints(printer: Printer, page: &Explanation) {
    section(printer, "Checkpoints");
    if page.checkpoints.is_empty() {
        printer.line("  none: a resume would start at step 0");
        return lines(printer, &page.no_checkpoint_why);
    }
    let shown: Vec<&Checkpoint> =
        page.checkpoints.iter().filter(|checkpoint| checkpoint.state != CheckpointState::Retired).collect();
    let rows = shown.iter().map(|checkpoint| checkpoint_cells(checkpoint, page.resume_step)).collect();
    printer.table(&["  step", "state", "size", "where", "epoch", "manifest", "kept because"], rows);
    let deleted = page.checkpoints.len() - shown.len();
    if deleted > 0 {
        printer
            .line(printer.tone(Tone::Dim, format!("  … {deleted} deleted by retention (`--json` has all)")));
    }
    let is_marked = |state| matches!(state, CheckpointState::Suspect | CheckpointState::Unsafe);
    for checkpoint in shown.iter().filter(|checkpoint| is_marked(checkpoint.state)) {
        let why = checkpoint.why.as_deref().unwrap_or("no reason is written down");
        printer.line(format!("  step {} is {}: {}", checkpoint.step, checkpoint.state, why));
    }
    lines(printer, page.standing.sentence());
    if let Some(requests) = &page.save_requests {
        printer.line(format!("  {}", requests.sentence()));
    }
    if let Some(back) = &page.fall_back {
        let cost = back.cost.sentence();
        let text =
            format!("this attempt fell back from step {} to step {}: {cost}", back.from_step, back.to_step);
        printer.line(StyledLine::from("  ") + printer.tone(Tone::Warning, text));
    }
}

fn checkpoint_cells(checkpoint: &Checkpoint, resume_step: Option<u64>) -> Vec<String> {
    let real = resume_step == Some(checkpoint.step) && checkpoint.state == CheckpointState::Committed;
    let is_incomplete = checkpoint.missing.as_ref().is_some_and(|missing| !missing.is_empty());
    let incomplete = if is_incomplete { ", incomplete" } else { "" };
    let shared = checkpoint.shared_bytes.filter(|shared| *shared > 0);
    let shared = shared.map(|shared| format!(" ({} shared)", bytes(shared))).unwrap_or_default();
    vec![
        format!("  {}", checkpoint.step),
        format!("{}{incomplete}{}", checkpoint.state.as_str(), if real { " ← resume" } else { "" }),
        checkpoint.size_bytes.map(|size| format!("{}{shared}", bytes(size))).unwrap_or_default(),
        checkpoint.place.to_string(),
        checkpoint.epoch.to_string(),
        checkpoint.manifest_sha256.as_deref().map(short_hash).unwrap_or("–").into(),
        checkpoint.kept_because.join(", "),
    ]
}

/// Where the checkpoints are beside this machine.
fn remote(printer: Printer, page: &Explanation) {
    if let Some(remote) = &page.remote {
        printer.line(format!("  remote: {}, as of {}", remote.sentence(), remote.at));
        lines(printer, remote.dropped_uploads_warning());
    }
}

fn resume_proof(printer: Printer, page: &Explanation) {
    let text = match &page.resume_proof {
        Some(proof) => proved(proof),
        None if page.checkpoints.is_empty() => return,
        None => "never proved exact; prove it with `trackway prove FILE --steps N`".into(),
    };
    fact(printer, "resume", &text);
}

fn proved(proof: &ResumeProofSummary) -> String {
    let at = proof.at.to_rfc3339();
    let changed = match proof.changed_since.as_slice() {
        [] => String::new(),
        changed => format!("; since then changed: {}", changed.join(", ")),
    };
    let steps = |step: Option<u64>| step.map_or_else(|| "?".into(), |step| step.to_string());
    match &proof.why {
        None => format!(
            "proved {} at {at}: {} steps, killed at {}, resumed from {}{changed}",
            proof.verdict,
            proof.steps,
            steps(proof.killed_at_step),
            steps(proof.resumed_from_step)
        ),
        Some(why) => format!("proof of {at}: {}: {why}{changed}", proof.verdict),
    }
}

fn decisions(printer: Printer, retries: &[RetryDecision]) {
    for retry in retries {
        let after =
            retry.after_attempt_number.map(|number| format!("after attempt {number}: ")).unwrap_or_default();
        let budget = retry.budget().map(|(name, spent)| format!("; budget `{name}`: {spent}"));
        let budget = budget.unwrap_or_default();
        printer.line(format!("  {after}{} (rule `{}`){budget}", retry.decision, retry.rule));
        printer.line(format!("    {}", retry.why));
    }
}

fn artifacts(printer: Printer, artifacts: &[AttemptArtifact]) {
    for artifact in artifacts.iter().take(ARTIFACTS_MAX) {
        let step = artifact.step.map(|step| format!(" at step {step}")).unwrap_or_default();
        let (size, hash) = (bytes(artifact.size_bytes), short_hash(&artifact.blake3));
        printer.line(format!("  {} · {size} · {hash}{step}", artifact.name));
    }
    more(printer, artifacts.len().saturating_sub(ARTIFACTS_MAX), "artifacts");
}

/// The loss on data that the model has not seen.
fn unseen(printer: Printer, card: Option<&ProgressiveEstimate>) {
    let Some(card) = card else { return };
    section(printer, "Loss on unseen batches");
    lines(printer, progressive::lines(card));
}

fn last_lines(printer: Printer, last: &[String]) {
    lines(printer, last);
}

fn next(printer: Printer, actions: &[String]) {
    section(printer, "Next");
    for action in actions {
        printer.line(format!("  - {action}"));
    }
}
