//! One run, explained: how it ended and why, what it cost, what to do, and what happened on the way.

use maud::{Markup, html};
use trackway_api::checkpoints::CheckpointState;
use trackway_api::models::evaluations::EvaluationReceipt;
use trackway_api::runs::RungSummary;
use trackway_api::runs::compare::ComparedCurve;
use trackway_api::runs::detections::Detection;
use trackway_api::runs::explain::{
    AttemptInputs, AttemptParameter, AttemptSummary, AttemptTag, ExplainedAttempt, Explanation,
    MachineSummary, MetricSummary, RecordedCheck, SameInputsRun,
};
use trackway_core::text::{bytes, counted, duration, metric, short_digest};

use crate::chart::{Axis, Chart, Dot, Mark, Size, Tone, Unit, legend};
use crate::frame::{About, Page, page};
use crate::parts::{columns, section, table};
use crate::run_parts::{
    cause, changes, checkpoints, curve_cards, data_sets, decisions, detections, diagnoses, difference, facts,
    is_of_progress, known, sentence, state_class, step, timeline, unknown, usd,
};
use crate::runbook::{link, paths_of, sections};

/// Names of what is read from the machine, not recorded by the script, begin so.
const MACHINE_NAMES: &str = "system/";
/// Names of what Trackway measures about itself begin so.
const OWN_NAMES: &str = "trackway/";
/// Metrics of an evaluation that are shown in a line.
const EVALUATION_METRICS_MAX: usize = 6;

/// The page.
#[must_use]
pub fn explanation(found: &Explanation, about: &About) -> Page {
    let body = html! {
        @if let Some(diff) = &found.since_last_good { (section("What changed", &difference(diff))) }
        @if !found.attempts.is_empty() { (section("Attempts", &attempts(found))) }
        (curves(found))
        @if let Some(termination) = &found.termination {
            @let late = found.attempt.as_ref().map(|attempt| attempt.amendments.as_slice()).unwrap_or_default();
            (section("Cause", &cause(termination, late)))
        }
        @if !found.detections.is_empty() { (section("Found while it ran", &detections(&found.detections))) }
        @if !found.diagnoses.is_empty() { (section("Diagnosed", &diagnoses(&found.diagnoses))) }
        @let events = found.events();
        @if !events.is_empty() { (section("Timeline", &timeline(&events))) }
        @if !found.retries.is_empty() { (section("What was decided", &decisions(&found.retries))) }
        @if found.attempt.is_some() { (section("Checkpoints", &stored(found))) }
        (section("Inputs", &inputs(found)))
        @if !found.rungs.is_empty() { (section("Rungs", &rungs(&found.rungs))) }
        @if !found.evaluations.is_empty() { (section("Evaluations", &evaluations(&found.evaluations))) }
        @if !found.metrics.is_empty() { (section("Metrics", &metrics(&found.metrics))) }
        @if !found.reading.is_empty() {
            (section("Left out", &html! { @for note in &found.reading { p { (sentence(&note.message)) } } }))
        }
        @if !found.parameters.is_empty() { (section("Parameters", &parameters(&found.parameters))) }
        @if !found.tags.is_empty() { (section("Tags", &tags(&found.tags))) }
        @if found.machine.sample_count > 0 || found.placement.is_some() { (section("Machine", &machine(found))) }
        @if !found.preflight.is_empty() { (section("Pre-flight", &preflight(&found.preflight))) }
        (sections(runbook_paths(found)))
        @if !found.last_lines.is_empty() {
            (section("Last lines", &html! { @for line in &found.last_lines { p { code { (line) } } } }))
        }
    };
    page(&format!("Run {}", found.run.name), about, &lead(found), &body)
}

fn runbook_paths(found: &Explanation) -> impl Iterator<Item = &str> {
    let causes = found.termination.iter().flat_map(paths_of);
    causes.chain(found.attempts.iter().filter_map(|attempt| attempt.runbook.as_deref()))
}

/// State, reason, cause, cost, and what to do next.
fn lead(found: &Explanation) -> Markup {
    let run = &found.run;
    let may_still_begin = !run.state.is_final();
    html! {
        p {
            span class=(format!("badge {}", state_class(run.state))) { (run.state.as_str()) } " "
            @match (&found.termination, &found.attempt) {
                (Some(it), Some(attempt)) => {
                    "Attempt " (attempt.attempt_number) " of " (found.attempts.len()) " ended as "
                    code { (it.reason.as_str()) }
                    @if let Some(confidence) = it.confidence { " (" (confidence.as_str()) ")" }
                }
                (None, Some(attempt)) => { "Attempt " (attempt.attempt_number) " has not ended" }
                (_, None) if may_still_begin => { "It was not launched yet" }
                (_, None) => { "It was never launched" }
            }
        }
        @if let Some(waiting) = run.waiting() { p { b { (sentence(&waiting)) } } }
        @if let Some(note) = &run.note { p { (note) } }
        @if let Some(it) = &found.termination { p { b { (sentence(&it.cause)) } " " (link(&it.runbook)) } }
        @if let Some(health) = &found.health {
            p { "Health: " b { (health.word()) } }
            @for line in found.health_lines() { p.dim { (sentence(&line)) } }
        }
        p { (cost(found)) }
        @for action in &found.next_actions { p { "→ " (sentence(action)) } }
        p.dim {
            code { (run.run_id.to_string()) } ", config " code { (short_digest(&run.config_sha256)) }
            ", owner " (known(run.owner.as_deref()))
            @if let Some(team) = &run.team { " (" (team) ")" }
        }
    }
}

fn cost(found: &Explanation) -> String {
    let cost = &found.cost;
    let count = counted(found.attempts.len() as u64, "attempt");
    let mut parts = vec![format!("{count}, {}", duration(cost.run_wall_seconds))];
    if cost.run_gpu_seconds > 0.0 {
        parts.push(format!("{} GPU hours", metric(cost.run_gpu_seconds / 3600.0)));
    }
    parts.extend(cost.run_cost_usd.map(|usd| format!("{usd:.2} USD")));
    parts.extend(cost.beside.as_ref().map(|beside| {
        let usd = beside.cost_usd.map(|usd| format!(" for {usd:.2} USD")).unwrap_or_default();
        format!("{} more in evaluations, diagnoses and rehearsals{usd}", duration(beside.wall_seconds))
    }));
    let lost: u64 = found.attempts.iter().filter_map(|attempt| attempt.lost_steps).sum();
    if lost > 0 {
        let is_unknown = |attempt: &AttemptSummary| {
            attempt.termination_reason.is_some_and(|reason| !reason.is_success())
                && attempt.lost_steps.is_none()
        };
        let at_least = if found.attempts.iter().any(is_unknown) { "at least " } else { "" };
        parts.push(format!("{at_least}{} lost", counted(lost, "step")));
    }
    format!("Cost: {}", parts.join(", "))
}

fn attempts(found: &Explanation) -> Markup {
    let columns = columns(
        "#: | Rung | Ended as | From step: | Last step: | Committed: | Lost: | Took: | Back after: | GPU time: | Cost:",
    );
    let cells = |attempt: &AttemptSummary| {
        html! {
            td.n { (attempt.attempt_number) }
            td { (attempt.rung) }
            td {
                code { (attempt.ended_as()) }
                @if let Some(cause) = &attempt.cause { " " (sentence(cause)) }
                @if let Some(runbook) = &attempt.runbook { " " (link(runbook)) }
            }
            td.n { (step(attempt.resumed_from_step)) }
            td.n { (step(attempt.last_step)) }
            td.n { (step(attempt.last_committed_step)) }
            td.n { (step(attempt.lost_steps)) }
            td.n { (attempt.wall_seconds.map(duration).unwrap_or_default()) }
            td.n { (attempt.recovery_seconds.map(duration).unwrap_or_default()) }
            td.n { (attempt.gpu_seconds.filter(|it| *it > 0.0).map(duration).unwrap_or_else(|| "–".into())) }
            td.n { (usd(attempt.cost_usd)) }
        }
    };
    table(&columns, found.attempts.iter().map(cells))
}

/// The curves, losses first; those of progress and of the machine are folded.
fn curves(found: &Explanation) -> Markup {
    let mut all: Vec<&ComparedCurve> = found.curves.iter().filter(|curve| curve.has_line()).collect();
    all.sort_by_key(|curve| (curve.name != "loss", !curve.name.contains("loss")));
    let (machine, own): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|curve| curve.name.starts_with(MACHINE_NAMES));
    let (progress, own): (Vec<_>, Vec<_>) = own.into_iter().partition(|curve| is_of_progress(&curve.name));
    let marks = Marks::of(found);
    let folded = [(progress.as_slice(), "progress and speed"), (machine.as_slice(), "the machine")];
    html! {
        @if [&own, &progress, &machine].into_iter().any(|curves| !curves.is_empty()) {
            (section("Curves", &html! {
                (legend(marks.names()))
                (curve_cards(&own, &folded, |curve| chart(curve, &marks)))
            }))
        }
    }
}

/// What is marked on every curve, by step.
struct Marks {
    retries: Vec<u64>,
    detections: Vec<u64>,
    checkpoints: Vec<u64>,
}

impl Marks {
    fn of(found: &Explanation) -> Self {
        let rung = found.attempt.as_ref().map(|attempt| attempt.rung.as_str());
        let here: Vec<&AttemptSummary> =
            found.attempts.iter().filter(|attempt| Some(attempt.rung.as_str()) == rung).collect();
        let is_here = |one: &&Detection| here.iter().any(|line| line.attempt_id == one.attempt_id);
        let is_kept = |state: CheckpointState| {
            matches!(state, CheckpointState::Committed | CheckpointState::Superseded)
        };
        let of_rung = |id| here.iter().any(|line| line.attempt_id == id);
        let stored = found.checkpoints.iter().filter(|one| is_kept(one.state) && of_rung(one.attempt_id));
        Self {
            retries: here.iter().skip(1).map(|line| line.resumed_from_step.unwrap_or(0)).collect(),
            detections: found.detections.iter().filter(is_here).map(|one| one.step).collect(),
            checkpoints: stored.map(|one| one.step).collect(),
        }
    }

    fn names(&self) -> Vec<(Tone, &'static str)> {
        let mut names = vec![(Tone::Series(0), "the run, without steps that a resume made void")];
        for (steps, tone, name) in [
            (&self.retries, Tone::Reference, "a later attempt continued here"),
            (&self.detections, Tone::Limit, "a detector fired"),
            (&self.checkpoints, Tone::Series(2), "a checkpoint"),
        ] {
            if !steps.is_empty() {
                names.push((tone, name));
            }
        }
        names
    }
}

fn chart(curve: &ComparedCurve, marks: &Marks) -> Chart {
    let points = || curve.series.iter().flatten();
    let marked = [&marks.retries, &marks.detections, &marks.checkpoints].into_iter().flatten().copied();
    let marked = marked.map(|step| step as i64);
    let last_step = points().map(|(step, _)| *step).chain(marked).max().unwrap_or(0).max(1);
    let first_step = points().map(|(step, _)| *step).min().unwrap_or(0).min(0);
    let x = Axis::linear("step", (first_step as f64, last_step as f64), Unit::Number);
    let y = Axis::over("", points().filter_map(|(_, value)| *value));
    let bottom = y.ends().0;
    let mut chart = Chart::new(&format!("{} by step", curve.name), Size::WIDE, x, y);
    for (steps, tone, name) in
        [(&marks.retries, Tone::Reference, "attempt"), (&marks.detections, Tone::Limit, "detection")]
    {
        for step in steps {
            chart = chart.with(&format!("{name} at step {step}"), tone, Mark::Upright(*step as f64));
        }
    }
    for series in &curve.series {
        let line = series.iter().map(|(step, value)| (*step as f64, *value)).collect();
        chart = chart.with(&curve.name, Tone::Series(0), Mark::Line(line));
    }
    let dot = |step: &u64| Dot {
        x: *step as f64,
        y: bottom,
        radius: 3.0,
        note: format!("checkpoint of step {step}"),
    };
    chart.with("", Tone::Series(2), Mark::Points(marks.checkpoints.iter().map(dot).collect()))
}

fn stored(found: &Explanation) -> Markup {
    let deleted = found.checkpoints.iter().filter(|one| one.state == CheckpointState::Retired).count() as u64;
    let resumed = found.attempt.as_ref().and_then(|attempt| attempt.resumed_from_step);
    html! {
        @if found.checkpoints.is_empty() {
            p { "None: a resume would start from the beginning" }
            @if let Some(why) = &found.no_checkpoint_why { p { (sentence(why)) } }
        } @else { (checkpoints(&found.checkpoints, found.resume_step)) }
        @if deleted > 0 { p.dim { (counted(deleted, "checkpoint")) " deleted by retention" } }
        @if let Some(requests) = found.save_requests.as_ref().filter(|_| found.no_checkpoint_why.is_none()) {
            p.dim { (sentence(&requests.sentence())) }
        }
        @if let Some(step) = resumed { p { "This attempt continued from step " (step) } }
        @if let Some(back) = &found.fall_back {
            p.warn { "It fell back from step " (back.from_step) " to step " (back.to_step) ": " (back.cost.sentence()) }
        }
        @if let Some(remote) = &found.remote { p { "Remote: " (remote.sentence()) } }
        @if let Some(proof) = &found.resume_proof {
            p { "Resume proof: " (proof.verdict.as_str()) @if let Some(why) = &proof.why { ", " (why) } }
        } @else if !found.checkpoints.is_empty() { p.dim { "Whether a resume is exact was never proved" } }
    }
}

fn inputs(found: &Explanation) -> Markup {
    html! {
        @if let Some(attempt) = &found.attempt { (given(found, attempt)) }
        @for attempt in &found.attempts {
            @if attempt.attempt_number > 1 { (changed(attempt)) }
        }
        @if !found.same_inputs.is_empty() {
            h3 { (same_inputs_title(&found.same_inputs)) }
            @for same in &found.same_inputs {
                p {
                    code { (same.run_id.to_string()) } " " (same.state.as_str()) ": " (same.sentence())
                }
            }
        }
    }
}

/// What is said to be the same: files may differ that no run file names.
fn same_inputs_title(runs: &[SameInputsRun]) -> &'static str {
    match runs.iter().all(SameInputsRun::has_same_files) {
        true => "Other runs with the same config, data and seed",
        false => "Other runs with the same run-file settings",
    }
}

/// What an attempt had that the one before it did not.
fn changed(attempt: &AttemptSummary) -> Markup {
    html! {
        h3 { "Changed before attempt " (attempt.attempt_number) }
        @if attempt.changes.is_empty() && attempt.unknown.is_empty() {
            p.dim { "Nothing: settings, data, code, packages and hosts were the same" }
        } @else { (changes(&attempt.changes)) (unknown(&attempt.unknown)) }
    }
}

fn given(found: &Explanation, attempt: &ExplainedAttempt) -> Markup {
    let dirty = if attempt.git_dirty == Some(true) { ", with changes that are not committed" } else { "" };
    let mut rows: Vec<(&str, Option<String>)> = vec![
        ("command", Some(attempt.command.join(" "))),
        ("working directory", Some(attempt.working_directory.clone())),
        (
            "git commit",
            attempt.git_commit.as_deref().map(|commit| format!("{}{dirty}", short_digest(commit))),
        ),
        ("packages", attempt.environment_lock_sha256.as_deref().map(|lock| short_digest(lock).to_owned())),
        ("container image", attempt.container_digest.clone()),
    ];
    rows.extend(taken(&attempt.inputs));
    html! {
        (facts(&rows))
        h3 { "Data" }
        @if found.data.sets.is_empty() { p.dim { "The run file names no data set" } } @else {
            (data_sets(&found.data.sets, |rows| html! { (step(rows)) }))
        }
        @if let Some(doubt) = &found.data.doubt { p.warn { (sentence(doubt)) } }
    }
}

/// Names in one cell; none if there are none.
fn listed(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(", "))
}

/// What the attempt was given, and what shows that it took it.
fn taken(inputs: &AttemptInputs) -> [(&'static str, Option<String>); 7] {
    let rows = inputs.rung_rows.zip(inputs.rung_rows_total);
    let all_opened = (!inputs.data_opened.is_empty()).then(|| "none".to_owned());
    [
        ("seed", inputs.seed_as_taken()),
        ("data opened", listed(&inputs.data_opened)),
        ("data not opened", listed(&inputs.data_not_opened).or(all_opened)),
        ("samples of an update", inputs.effective_batch.map(|samples| samples.to_string())),
        ("rows of the rung", rows.map(|(rows, total)| format!("{rows} of {total}, as counted"))),
        ("batches to skip", inputs.batches_skipped().or_else(|| Some("none".to_owned()))),
        ("warm start", inputs.weights().or_else(|| Some("none".to_owned()))),
    ]
}

fn rungs(rungs: &[RungSummary]) -> Markup {
    table(
        &columns("Rung | Verdict | Attempts: | Last step: | Took: | GPU time: | Cost: | Rows | Why"),
        rungs.iter().map(|rung| {
            let rows = rung.rows.zip(rung.rows_total);
            html! {
                td { (rung.rung) }
                td.word { (rung.verdict.as_str().replace('_', " ")) }
                td.n { (rung.attempt_count) }
                td.n { (step(rung.last_step)) }
                td.n { (duration(rung.wall_seconds)) }
                td.n { (duration(rung.gpu_seconds)) }
                td.n { (usd(rung.cost_usd)) }
                td { @if let Some((rows, total)) = rows { (rows) " of " (total) } @else { "not counted" } }
                td { (rung.why.as_deref().unwrap_or_default()) }
            }
        }),
    )
}

fn evaluations(evaluations: &[EvaluationReceipt]) -> Markup {
    table(
        &columns("Evaluation | Step: | Evaluator | State | Result"),
        evaluations.iter().map(|evaluation| {
            let few = evaluation.metrics.iter().take(EVALUATION_METRICS_MAX);
            let few: Vec<String> =
                few.map(|(name, it)| format!("{name} {}{}", metric(it.value), it.of_some_rows())).collect();
            html! {
                td { code { (evaluation.evaluation_id) } }
                td.n { (step(evaluation.step)) }
                td { (evaluation.evaluator.name) @if evaluation.is_gate_test() { " (gate test)" } @if let Some(other) = evaluation.other_code(evaluations) { ", " (other) } }
                td.word { (evaluation.state.as_str()) }
                td { (evaluation.failure.clone().unwrap_or_else(|| few.join(", "))) }
            }
        }),
    )
}

fn metrics(metrics: &[MetricSummary]) -> Markup {
    let value = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), metric);
    table(
        &columns("Metric | Points: | First: | Last: | Least: | Greatest: | Not finite:"),
        metrics.iter().filter(|line| !line.name.starts_with(OWN_NAMES)).map(|line| {
            html! {
                td { code { (line.name) } }
                td.n { (line.count) }
                td.n { (value(line.first)) } td.n { (value(line.last)) } td.n { (value(line.min)) } td.n { (value(line.max)) }
                td.n { @if line.non_finite_count > 0 { (line.non_finite_count) } }
            }
        }),
    )
}

/// Names, values and where each value comes from.
fn parameters(parameters: &[AttemptParameter]) -> Markup {
    let row = |it: &AttemptParameter| {
        html! { td { code { (it.name) } } td { (it.value) } td.dim { (known(it.origin.as_deref())) } }
    };
    table(&columns("Name | Value | Origin"), parameters.iter().map(row))
}

fn tags(tags: &[AttemptTag]) -> Markup {
    table(&[], tags.iter().map(|tag| html! { td { code { (tag.name) } } td { (tag.value) } }))
}

fn machine(found: &Explanation) -> Markup {
    let MachineSummary { sample_count, values, work } = &found.machine;
    let has_ended = found.attempt.as_ref().is_some_and(ExplainedAttempt::has_ended);
    html! {
        @if let Some(place) = &found.placement {
            p {
                (place.started_by()) " on " (known(place.hosts.as_deref()))
                @if let Some(cpus) = place.cpu_count { ", " (cpus) " CPUs" }
                @if let Some(memory) = place.memory_bytes { ", " (bytes(memory)) }
                @if let Some(devices) = &place.devices { ", " (devices) }
                @if let Some(job) = &place.job_id { ", process " (job) }
                @if let Some(queued) = place.queued(has_ended) { ", " (queued) }
                @if let Some(here) = &place.engine.completeness { ", arrived: " (here) }
            }
        }
        @if let Some(work) = work {
            p { (format!(
                "Time of the training loop: {:.0} % work, {:.0} % waiting for batches, {:.0} % stalled for checkpoints",
                100.0 * work.work_fraction, 100.0 * work.batch_wait_fraction, 100.0 * work.checkpoint_stall_fraction
            )) }
        }
        @if *sample_count > 0 {
            details {
                summary { (counted(values.len() as u64, "value")) " from " (counted(*sample_count, "sample")) }
                (table(&columns("Value | Mean: | Least: | Greatest: | Last:"), values.iter().map(|it| {
                    let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| measured(&it.name, value));
                    html! {
                        td { code { (it.name) } }
                        td.n { (shown(it.mean)) } td.n { (shown(it.min)) } td.n { (shown(it.max)) } td.n { (shown(it.last)) }
                    }
                })))
            }
        }
    }
}

/// A value of the machine in its unit.
fn measured(name: &str, value: f64) -> String {
    if name.ends_with("bytes") && value >= 0.0 { bytes(value as u64) } else { metric(value) }
}

/// Checks that need attention; the others are counted.
fn preflight(checks: &[RecordedCheck]) -> Markup {
    let (passed, others): (Vec<&RecordedCheck>, Vec<&RecordedCheck>) =
        checks.iter().partition(|check| check.passes());
    html! {
        p { (counted(passed.len() as u64, "check")) " passed or did not apply" }
        @for check in others {
            @let class = if check.blocks { "block" } else { "warn" };
            div class=(format!("finding {class}")) {
                p { b { (check.name) } " " (check.verdict.as_str().replace('_', " ")) @if check.blocks { ", blocks the launch" } }
                @if let Some(why) = check.skipped_why.as_ref().or(check.why.as_ref()) { p.dim { (sentence(why)) } }
                @for finding in &check.findings {
                    p { (sentence(&finding.message)) }
                    @if let Some(action) = &finding.action { p { "→ " (sentence(action)) } }
                }
            }
        }
    }
}
