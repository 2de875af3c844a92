//! A post-mortem as Markdown. What is null in the document is *not known* in the text.

use std::fmt::{Formatter, Result as Written};

use trackway_api::checkpoints::Checkpoint;
use trackway_api::home::verify::SealedKind;
use trackway_api::runs::explain::{Diff, ExplainedDataSet, RetryDecision, TimelineEvent, exit_status};
use trackway_api::runs::postmortem::{
    FailedAttempt, InputVersion, InputVersions, Postmortem, PostmortemAction, Spent, StoredIntegrity,
    VersionOfAttempts,
};
use trackway_core::text::{bytes, counted, duration, metric, short_digest, timestamp};
use trackway_flows::markdown::{Code, Markdown, Put, md};

/// Lines of the timeline; the rest is in the JSON.
const TIMELINE_MAX: usize = 60;
/// Attempts whose cause is described.
const FAILURES_MAX: usize = 12;
/// Differences and changes that are listed.
const LISTED_MAX: usize = 20;

/// The text of a post-mortem.
#[must_use]
pub fn markdown(found: &Postmortem) -> String {
    let mut text = Markdown::default();
    head(&mut text, found);
    if let Some(diff) = &found.inputs.since_last_good {
        md!(text, "\n## What changed\n");
        difference(&mut text, diff);
    }
    impact(&mut text, found);
    timeline(&mut text, &found.timeline);
    causes(&mut text, found);
    tried(&mut text, &found.tried);
    versions(&mut text, &found.inputs);
    integrity(&mut text, found);
    actions(&mut text, &found.actions);
    text.into_string()
}

/// A piece, or that it is not known.
struct OrUnknown<T>(Option<T>);

/// That nothing is known.
const UNKNOWN: OrUnknown<&str> = OrUnknown(None);

impl<T: Put> Put for OrUnknown<T> {
    fn put(&self, formatter: &mut Formatter<'_>) -> Written {
        match &self.0 {
            Some(piece) => piece.put(formatter),
            None => formatter.write_str("*not known*"),
        }
    }
}

/// A sentence, in which backticks begin and end code.
struct Sentence<'s>(&'s str);

impl Put for Sentence<'_> {
    fn put(&self, formatter: &mut Formatter<'_>) -> Written {
        let parts: Vec<&str> = self.0.split('`').collect();
        let is_balanced =
            parts.len() % 2 == 1 && parts.iter().skip(1).step_by(2).all(|code| !code.is_empty());
        if !is_balanced {
            return self.0.put(formatter);
        }
        for (place, part) in parts.iter().enumerate() {
            match place % 2 {
                0 => part.put(formatter)?,
                _ => Code(part).put(formatter)?,
            }
        }
        Ok(())
    }
}

/// A section of the documents.
struct Section<'s>(&'s str);

impl Put for Section<'_> {
    fn put(&self, formatter: &mut Formatter<'_>) -> Written {
        let is_path = |letter: char| letter.is_ascii_alphanumeric() || "/._-#".contains(letter);
        if !self.0.chars().all(is_path) {
            return Code(self.0).put(formatter);
        }
        write!(formatter, "[`{0}`]({0})", self.0)
    }
}

fn number(count: Option<u64>) -> OrUnknown<String> {
    OrUnknown(count.map(|count| count.to_string()))
}

fn head(text: &mut Markdown, found: &Postmortem) {
    let run = &found.run;
    md!(text, "# Post-mortem: {}\n\n| | |\n|---|---|\n", run.name);
    md!(text, "| run | {} |\n", Code(&run.run_id.to_string()));
    md!(text, "| state | {} |\n", run.state.to_string());
    md!(text, "| owner | {} |\n", OrUnknown(run.owner.as_deref()));
    md!(text, "| team | {} |\n", OrUnknown(run.team.as_deref()));
    md!(text, "| config | {} |\n", Code(short_digest(&run.config_sha256)));
    md!(text, "| created | {} UTC |\n", timestamp(run.created_at));
    md!(text, "| evidence read | {} UTC |\n", timestamp(found.made_at));
    md!(
        text,
        "\nEverything here comes from receipts, logs, checkpoints and metrics. *Not known* means that no evidence shows it.\n"
    );
    md!(text, "\n## Summary\n\n");
    for sentence in &found.summary {
        md!(text, "- {}\n", Sentence(sentence));
    }
}

fn impact(text: &mut Markdown, found: &Postmortem) {
    let impact = &found.impact;
    md!(text, "\n### Impact\n\n");
    let (failed, all) = (impact.failed_count.to_string(), impact.attempt_count.to_string());
    md!(text, "- Attempts that did not succeed: {} of {}\n", failed, all);
    if impact.failed_count > 0 {
        md!(text, "- Lost steps: {}", number(impact.lost_steps));
        if impact.lost_steps.is_some() && impact.lost_unknown_count > 0 {
            md!(text, " or more: *not known* of {}", counted(impact.lost_unknown_count, "attempt"));
        }
        md!(
            text,
            "\n- Time to recovery, from each failure to the next first step: {}",
            OrUnknown(impact.recovery_seconds.map(duration))
        );
        if impact.recovery_seconds.is_some() && impact.unrecovered_count > 0 {
            md!(text, "; no step followed {}", counted(impact.unrecovered_count, "failure"));
        }
        md!(text, "\n");
    }
    if impact.attempt_count == 0 {
        return;
    }
    let has_failures = impact.failed_count > 0;
    match has_failures {
        true => md!(
            text,
            "\n| | all attempts | not successful | of it for known lost steps, in proportion |\n|---|---|---|---|\n"
        ),
        false => md!(text, "\n| | all attempts |\n|---|---|\n"),
    }
    let mut row = |name: &str, value: fn(&Spent) -> Option<f64>, shown: fn(f64) -> String| {
        let [all, failed, lost] =
            [&impact.run, &impact.failed, &impact.lost].map(|spent| OrUnknown(value(spent).map(shown)));
        md!(text, "| {} | {} |", name, all);
        if has_failures {
            md!(text, " {} | {} |", failed, lost);
        }
        md!(text, "\n");
    };
    row("wall time", |spent| spent.wall_hours, |hours| duration(hours * 3600.0));
    row("GPU hours", |spent| spent.gpu_hours, metric);
    row("money", |spent| spent.usd, |usd| format!("{usd:.2} USD"));
}

fn timeline(text: &mut Markdown, events: &[TimelineEvent]) {
    md!(text, "\n## Timeline (UTC)\n\n");
    if events.is_empty() {
        return md!(text, "{}\n", UNKNOWN);
    }
    md!(text, "| time | attempt | what |\n|---|---|---|\n");
    let hidden = events.len().saturating_sub(TIMELINE_MAX);
    let head = if hidden > 0 { TIMELINE_MAX / 2 } else { events.len() };
    for (place, event) in events.iter().enumerate() {
        if hidden > 0 && place == head {
            md!(text, "| … | | {} more in the JSON |\n", hidden.to_string());
        }
        if (head..head + hidden).contains(&place) {
            continue;
        }
        let attempt = event.attempt_number.map(|number| number.to_string());
        md!(text, "| {} | {} | {} |\n", timestamp(event.at), attempt, Sentence(&event.text));
    }
}

fn causes(text: &mut Markdown, found: &Postmortem) {
    let failures = &found.failures;
    md!(text, "\n## Cause\n");
    if !found.blocked_by.is_empty() {
        md!(text, "\nPre-flight forbade the launch:\n\n");
    }
    for what in &found.blocked_by {
        md!(text, "- {}\n", Sentence(what));
    }
    if failures.is_empty() && found.blocked_by.is_empty() {
        md!(text, "\nNo attempt ended without success.\n");
    }
    for failure in failures.iter().take(FAILURES_MAX) {
        cause(text, failure);
    }
    let left_out = failures.len().saturating_sub(FAILURES_MAX);
    if left_out > 0 {
        md!(text, "\n{} in the JSON.\n", counted(left_out as u64, "more attempt"));
    }
}

fn cause(text: &mut Markdown, failure: &FailedAttempt) {
    let termination = &failure.termination;
    let reason = termination.reason.to_string();
    md!(text, "\n### Attempt {}: {}\n\n", failure.attempt_number.to_string(), reason);
    md!(text, "{}.\n\n| | |\n|---|---|\n", Sentence(termination.cause.trim_end_matches('.')));
    let confidence = termination.confidence.map(|confidence| confidence.to_string());
    md!(text, "| reason | {}, confidence {}, ", Code(&reason), OrUnknown(confidence));
    md!(text, "rule {} |\n", OrUnknown(termination.rule.as_deref().map(Code)));
    md!(text, "| domain | {} |\n", OrUnknown(termination.domain.map(|domain| domain.to_string())));
    let outlook = termination.retry_outlook.map(|outlook| outlook.as_str().replace('_', " "));
    md!(text, "| retry outlook | {} |\n", OrUnknown(outlook));
    md!(text, "| runbook | {} |\n", Section(&termination.runbook));
    let attempt = failure.attempt_id.to_string();
    md!(text, "| attempt | {}, on {} |\n", Code(&attempt), OrUnknown(failure.hosts.as_deref()));
    let [began, ended] = [failure.started_at, failure.ended_at].map(|at| OrUnknown(at.map(timestamp)));
    md!(text, "| began, ended | {}, {} UTC |\n", began, ended);
    md!(text, "| status | {} |\n", OrUnknown(exit_status(failure.exit_code, failure.signal)));
    md!(text, "| steps | last {}, ", number(failure.last_step));
    md!(text, "committed {}, lost {} |\n", number(failure.last_committed_step), number(failure.lost_steps));
    let [peak, all] = [failure.peak_rss_bytes, failure.host_memory_bytes].map(|it| OrUnknown(it.map(bytes)));
    md!(text, "| memory | peak {} of {} |\n", peak, all);
    md!(text, "\n**Evidence**\n\n");
    if termination.evidence.is_empty() {
        md!(text, "- {}: no evidence was recorded\n", UNKNOWN);
    }
    for item in &termination.evidence {
        md!(text, "- {}: {}\n", item.place(), Sentence(&item.text));
    }
    counters(text, failure);
    if !failure.detections.is_empty() {
        md!(text, "\n**What detectors found in it**\n\n");
    }
    for found in failure.detections.iter().take(LISTED_MAX) {
        let (severity, step) = (found.severity.to_string(), found.step.to_string());
        md!(text, "- {} ({}) at step {}: ", Code(found.detector.as_str()), severity, step);
        md!(text, "{}. ", Sentence(&found.evidence));
        md!(text, "Likely: {}\n", Sentence(&found.cause));
    }
    if !failure.diagnoses.is_empty() {
        md!(text, "\n**What diagnoses showed**\n\n");
    }
    for found in failure.diagnoses.iter().take(LISTED_MAX) {
        let (verdict, run) = (found.verdict.as_str().replace('_', " "), found.diagnosis_run_id.to_string());
        md!(text, "- {} ({}), run {}: ", Code(found.kind.as_str()), verdict, Code(&run));
        md!(text, "{}\n", Sentence(&found.finding));
    }
}

/// What speaks against the reason: other reasons, a confidence below certain, late facts.
fn counters(text: &mut Markdown, failure: &FailedAttempt) {
    md!(text, "\n**What counters it**\n\n");
    let termination = &failure.termination;
    for other in &termination.secondary {
        md!(text, "- {} is possible too ", Code(other.reason.as_str()));
        md!(text, "(rule {}): {}", Code(&other.rule), Sentence(&other.text));
        md!(text, "{}\n", other.runbook.as_deref().map(|section| (" → ".to_owned(), Section(section))));
    }
    for late in &failure.amendments {
        let (old, new) = (OrUnknown(late.old_text.as_deref()), OrUnknown(late.new_text.as_deref()));
        md!(text, "- Amended since: {} {} → {}, ", Code(&late.field), old, new);
        md!(text, "because {} ({}, {} UTC)\n", late.why, late.author, timestamp(late.at));
    }
    match termination.confidence.map(|confidence| confidence.as_str()) {
        Some("certain") if termination.secondary.is_empty() && failure.amendments.is_empty() => {
            md!(text, "- Nothing: the evidence admits no other reading.\n");
        }
        Some("certain") => {}
        Some(word) => md!(text, "- The confidence is {}: the evidence admits another reading.\n", word),
        None => md!(text, "- The confidence is {}.\n", UNKNOWN),
    }
}

fn tried(text: &mut Markdown, decisions: &[RetryDecision]) {
    md!(text, "\n## What was tried\n\n");
    if decisions.is_empty() {
        return md!(text, "No decision was recorded.\n");
    }
    md!(
        text,
        "| after attempt | decision | why | rule | budget | wait | changes |\n|---|---|---|---|---|---|---|\n"
    );
    for decision in decisions {
        let budget = decision.budget().map(|(name, spent)| format!("{name}: {spent}"));
        let after = OrUnknown(decision.after_attempt_number.map(|it| it.to_string()));
        md!(text, "| {} | {} ", after, decision.decision.to_string());
        md!(text, "| {} | {} | {} ", Sentence(&decision.why), Code(&decision.rule), budget);
        md!(text, "| {} | {} |\n", decision.delay_seconds.map(duration), decision.changed_settings());
    }
}

fn versions(text: &mut Markdown, inputs: &InputVersions) {
    md!(text, "\n## Data versions\n\n");
    sets(text, &inputs.sets);
    if inputs.inputs.iter().all(|input| input.versions.is_empty()) {
        return md!(text, "\nNo attempt was launched.\n");
    }
    md!(text, "\n| input | changed between attempts | versions |\n|---|---|---|\n");
    for input in &inputs.inputs {
        let attempts: usize = input.versions.iter().map(|version| version.attempts.len()).sum();
        md!(text, "| {} | ", input.what);
        match input.changed {
            _ if attempts == 1 => md!(text, "one attempt"),
            Some(true) => md!(text, "**yes**"),
            Some(false) => md!(text, "no"),
            None => md!(text, "{}", UNKNOWN),
        }
        md!(text, " | ");
        version_list(text, input);
        md!(text, " |\n");
    }
}

/// A seed may have as many digits as a hash: only long values are shortened.
fn version(value: &str) -> &str {
    if value.len() >= 40 { short_digest(value) } else { value }
}

fn version_list(text: &mut Markdown, input: &InputVersion) {
    let all = input.versions.len() == 1;
    for (place, VersionOfAttempts { value, attempts }) in input.versions.iter().enumerate() {
        if place > 0 {
            md!(text, "; ");
        }
        md!(text, "{}", OrUnknown(value.as_deref().map(|value| Code(version(value)))));
        if !all {
            let numbers: Vec<String> = attempts.iter().map(u32::to_string).collect();
            md!(text, " (attempt {})", numbers.join(", "));
        }
    }
}

fn sets(text: &mut Markdown, sets: &[ExplainedDataSet]) {
    if sets.is_empty() {
        return md!(
            text,
            "{}: the run file names no data set, so nothing recorded what was read.\n",
            UNKNOWN
        );
    }
    md!(text, "| data set | hash | files | rows | size |\n|---|---|---|---|---|\n");
    for set in sets {
        md!(text, "| {} | {} ", set.name, Code(short_digest(&set.data_sha256)));
        md!(text, "| {} | {} | {} |\n", set.file_count.to_string(), number(set.rows), bytes(set.size_bytes));
    }
}

fn difference(text: &mut Markdown, diff: &Diff) {
    md!(text, "\nChanged since {} ({}):\n\n", diff.label, Code(&diff.against));
    if diff.changes.is_empty() {
        md!(text, "- {}\n", diff.without_changes());
    }
    for change in diff.changes.iter().take(LISTED_MAX) {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        md!(text, "- {} {}: ", change.kind.as_str(), Code(&change.key));
        match &change.lines {
            Some(lines) => {
                md!(text, "{}", lines.to_string());
                for line in &change.shown_lines {
                    md!(text, ", {}", Code(line));
                }
            }
            None => md!(text, "{} → {}", Code(&side(&change.before)), Code(&side(&change.after))),
        }
        if let Some(why) = &change.fits_because {
            md!(text, " ({})", why);
        }
        md!(text, "\n");
    }
    let left_out = diff.changes.len().saturating_sub(LISTED_MAX);
    if left_out > 0 {
        md!(text, "- {} more in the JSON\n", left_out.to_string());
    }
    for unknown in &diff.unknown {
        md!(text, "- not known: {}\n", unknown.why);
    }
}

fn integrity(text: &mut Markdown, found: &Postmortem) {
    let StoredIntegrity { verified, checkpoints, .. } = &found.integrity;
    md!(text, "\n## Artifact integrity\n\n");
    let differing: u64 = verified.kinds.iter().map(|kind| kind.differ_count).sum();
    match differing {
        _ if verified.kinds.is_empty() => md!(text, "{}: nothing is stored of the run.\n", UNKNOWN),
        0 => md!(text, "Nothing differs from what was sealed.\n"),
        1 => md!(text, "**1 digest differs from what was sealed.**\n"),
        count => md!(text, "**{} digests differ from what was sealed.**\n", count.to_string()),
    }
    if !verified.kinds.is_empty() {
        md!(
            text,
            "\n| digests of | hold | differ | not sealed yet | cannot be read here |\n|---|---|---|---|---|\n"
        );
    }
    for kind in &verified.kinds {
        let [hold, differ, open, unknown] =
            [kind.hold_count, kind.differ_count, kind.open_count, kind.unknown_count]
                .map(|it| it.to_string());
        md!(text, "| {} | {} | {} | {} | {} |\n", kind.kind.plural(), hold, differ, open, unknown);
    }
    if !verified.differs.is_empty() {
        md!(text, "\n");
    }
    for differs in verified.differs.iter().take(LISTED_MAX) {
        md!(text, "- {} {}: {}\n", differs.kind.to_string(), Code(&differs.id), Sentence(&differs.why));
    }
    stored_checkpoints(text, found);
    if !checkpoints.is_empty() {
        md!(
            text,
            "\nThis verifies manifests; `trackway checkpoint verify {}` also reads every byte.\n",
            found.run.run_id.to_string()
        );
    }
}

fn stored_checkpoints(text: &mut Markdown, found: &Postmortem) {
    let stored = &found.integrity;
    if stored.checkpoints.is_empty() {
        let why = stored.no_checkpoint_why.as_deref();
        return md!(text, "\nThere is no checkpoint. Why: {}\n", OrUnknown(why.map(Sentence)));
    }
    md!(
        text,
        "\n| checkpoint of step | state | verified | size | where | manifest | saved because |\n|---|---|---|---|---|---|---|\n"
    );
    for one in &stored.checkpoints {
        checkpoint(text, one, stored);
    }
    if stored.deleted_count > 0 {
        md!(text, "\n{} deleted by retention.\n", counted(stored.deleted_count, "checkpoint"));
    }
    match stored.resume_step {
        Some(step) if found.last_attempt_diverged() => md!(
            text,
            "\nA resume would continue from step {}, which the training that diverged saved: if a checkpoint from before is left, the \
             command that continues from it is among the actions. ",
            step.to_string()
        ),
        Some(step) => md!(text, "\nA resume would continue from step {}. ", step.to_string()),
        None => md!(text, "\nA resume would start from the beginning. "),
    }
    match &stored.resume_proof {
        None => md!(text, "Whether a resume is exact is {}: it was never proved.\n", UNKNOWN),
        Some(proof) => {
            md!(text, "Proof of {} UTC: {}", timestamp(proof.at), proof.verdict.to_string());
            md!(text, "{}.\n", proof.why.as_ref().map(|why| format!(", {why}")));
        }
    }
    if let Some(back) = &stored.fall_back {
        md!(text, "\nThe last attempt fell back from step {} ", back.from_step.to_string());
        md!(text, "to step {}: {}; {}.\n", back.to_step.to_string(), back.why, back.cost.sentence());
    }
}

fn checkpoint(text: &mut Markdown, one: &Checkpoint, stored: &StoredIntegrity) {
    let differs = stored.verified.differs.iter().any(|differs| differs.id == one.object_prefix);
    // Which of them cannot be read here is not known.
    let are_manifests_verified =
        stored.verified.kinds.iter().any(|it| it.kind == SealedKind::Manifest && it.unknown_count == 0);
    md!(text, "| {} | {} | ", one.step.to_string(), one.state.as_str());
    match one.verified {
        _ if differs => md!(text, "**no**"),
        Some(true) => md!(text, "every byte"),
        Some(false) => md!(text, "**no**"),
        None if one.manifest_sha256.is_some() && are_manifests_verified => md!(text, "manifest"),
        None => md!(text, "{}", UNKNOWN),
    }
    md!(text, " | {} | {} ", OrUnknown(one.size_bytes.map(bytes)), one.place.to_string());
    md!(
        text,
        "| {} ",
        OrUnknown(one.manifest_sha256.as_deref().map(|manifest| Code(short_digest(manifest))))
    );
    md!(text, "| {} |\n", OrUnknown(one.reason.as_deref()));
}

fn actions(text: &mut Markdown, actions: &[PostmortemAction]) {
    md!(text, "\n## Actions\n\n");
    if actions.is_empty() {
        md!(text, "None: no attempt ended without success.\n");
    }
    for action in actions {
        md!(text, "- [ ] {}", Sentence(&action.text));
        if let Some(section) = &action.runbook {
            md!(text, " ({})", Section(section));
        }
        md!(text, " — owner: ________ · due: ________\n");
    }
}
