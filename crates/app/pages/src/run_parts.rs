//! What the pages about a run have in common: timeline, cause, checkpoints, decisions, differences.

use maud::{Markup, html};
use trackway_api::checkpoints::{Checkpoint, CheckpointState};
use trackway_api::runs::RunState;
use trackway_api::runs::compare::ComparedCurve;
use trackway_api::runs::detections::Detection;
use trackway_api::runs::diagnosis::AttemptDiagnosis;
use trackway_api::runs::explain::{
    Amendment, Change, Diff, ExplainedDataSet, RetryDecision, Termination, TimelineEvent, UnknownChange,
};
use trackway_core::Confidence;
use trackway_core::detect::DetectionSeverity;
use trackway_core::text::{bytes, counted, duration, short_digest, timestamp};

use crate::chart::Chart;
use crate::parts::{card, columns, table};
use crate::runbook::link;

/// Lines of a timeline that are shown at once; the others are folded.
const TIMELINE_MAX: usize = 80;
/// Differences that are shown.
const CHANGES_MAX: usize = 60;

/// A step, or a dash.
pub fn step(step: Option<u64>) -> String {
    step.map_or_else(|| "–".to_owned(), |step| step.to_string())
}

/// Money, or a dash.
pub fn usd(usd: Option<f64>) -> String {
    usd.map_or_else(|| "–".to_owned(), |usd| format!("{usd:.2} USD"))
}

/// What is not known is said so.
pub fn known(text: Option<&str>) -> Markup {
    html! { @if let Some(text) = text { (text) } @else { span.dim { "not known" } } }
}

/// A table of names, and what is known of each.
pub fn facts(rows: &[(&str, Option<String>)]) -> Markup {
    table(&[], rows.iter().map(|(name, value)| html! { td { (name) } td { (known(value.as_deref())) } }))
}

/// A table of data sets; `rows` shows how many rows one has.
pub fn data_sets(sets: &[ExplainedDataSet], rows: fn(Option<u64>) -> Markup) -> Markup {
    table(
        &columns("Data set | Hash | Files: | Rows: | Size:"),
        sets.iter().map(|set| {
            html! {
                td { (set.name) } td { code { (short_digest(&set.data_sha256)) } } td.n { (set.file_count) }
                td.n { (rows(set.rows)) } td.n { (bytes(set.size_bytes)) }
            }
        }),
    )
}

/// A sentence, in which backticks begin and end code.
pub fn sentence(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        @if parts.len().is_multiple_of(2) { (text) } @else {
            @for (place, part) in parts.into_iter().enumerate() {
                @if place % 2 == 0 { (part) } @else { code { (part) } }
            }
        }
    }
}

/// Whether a curve says how far and how fast a training goes rather than what it learns: it is not drawn as large as a loss.
pub fn is_of_progress(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    let is_count = matches!(last, "epoch" | "runtime" | "total_flos" | "global_step" | "step_seconds");
    is_count || ["_runtime", "_per_second", "_flos"].iter().any(|end| last.ends_with(end))
}

/// Curves of which only some are drawn at once: cards of the first ones, those of the others folded under their name.
pub fn curve_cards(
    shown: &[&ComparedCurve],
    folded: &[(&[&ComparedCurve], &str)],
    draw: impl Fn(&ComparedCurve) -> Chart,
) -> Markup {
    let cards = |curves: &[&ComparedCurve]| {
        html! {
            div.grid.curves {
                @for curve in curves { (card(&html! { (curve.name) }, &html! { (draw(curve)) })) }
            }
        }
    };
    html! {
        @if !shown.is_empty() { (cards(shown)) }
        @for (curves, what) in folded {
            @if !curves.is_empty() {
                details { summary { (counted(curves.len() as u64, "curve")) " of " (what) } (cards(curves)) }
            }
        }
    }
}

/// The colour of a state.
pub fn state_class(state: RunState) -> &'static str {
    match state {
        RunState::Completed => "pass",
        RunState::Running | RunState::Planned | RunState::Waiting => "warn",
        RunState::Failed | RunState::Stopped | RunState::Blocked => "block",
    }
}

/// What happened, oldest first.
pub fn timeline(events: &[TimelineEvent]) -> Markup {
    let rows = |events: &[TimelineEvent]| {
        table(
            &columns("Time (UTC) | Attempt: | What"),
            events.iter().map(|event| {
                html! {
                    td.word { (timestamp(event.at)) }
                    td.n { (event.attempt_number.map(|number| number.to_string()).unwrap_or_default()) }
                    td { (sentence(&event.text)) }
                }
            }),
        )
    };
    let hidden = events.len().saturating_sub(TIMELINE_MAX);
    let (first, rest) = events.split_at(if hidden > 0 { TIMELINE_MAX / 2 } else { events.len() });
    let (middle, last) = rest.split_at(hidden);
    html! {
        (rows(first))
        @if hidden > 0 {
            details { summary { (counted(hidden as u64, "more event")) } (rows(middle)) }
            (rows(last))
        }
    }
}

/// Why an attempt ended: what shows it, and what speaks against it.
pub fn cause(termination: &Termination, amendments: &[Amendment]) -> Markup {
    let word = |text: Option<&str>| text.map(|text| text.replace('_', " "));
    let confidence = termination.confidence.map(|confidence| confidence.as_str());
    html! {
        p { b { (sentence(&termination.cause)) } }
        p {
            code { (termination.reason.as_str()) } ", confidence " (known(confidence)) ", rule "
            @if let Some(rule) = &termination.rule { code { (rule) } } @else { (known(None)) }
            ", domain " (known(termination.domain.map(|domain| domain.as_str())))
            ", retry outlook " (known(word(termination.retry_outlook.map(|it| it.as_str())).as_deref()))
        }
        p { "Runbook: " (link(&termination.runbook)) }
        h3 { "Evidence" }
        @if termination.evidence.is_empty() { p { (known(None)) ": no evidence was recorded" } }
        @for item in &termination.evidence { p { span.dim { (item.place()) ":" } " " code { (item.text) } } }
        h3 { "What counters it" }
        @for other in &termination.secondary {
            p {
                code { (other.reason.as_str()) } " is possible too (rule " code { (other.rule) } "): " code { (other.text) }
                @if let Some(runbook) = &other.runbook { " " (link(runbook)) }
            }
        }
        @for late in amendments {
            p {
                "Amended since: " code { (late.field) } " " (known(late.old_text.as_deref())) " → " (known(late.new_text.as_deref()))
                ", because " (late.why) " (" (late.author) ", " (timestamp(late.at)) ")"
            }
        }
        @match termination.confidence {
            Some(Confidence::Certain) => {
                @if termination.secondary.is_empty() && amendments.is_empty() {
                    p { "Nothing: the evidence admits no other reading" }
                }
            }
            Some(other) => p { "The confidence is " (other.as_str()) ": the evidence admits another reading" },
            None => p { "The confidence is " (known(None)) },
        }
    }
}

/// What detectors found, the likely cause, what to do and what was done.
pub fn detections(found: &[Detection]) -> Markup {
    html! {
        @for one in found {
            @let class = if one.severity == DetectionSeverity::Critical { "block" } else { "warn" };
            div class=(format!("finding {class}")) {
                p {
                    b { (one.detector.as_str()) } " at step " (one.step)
                    @if one.first_step < one.step { " (from step " (one.first_step) " on)" }
                    @if one.rank > 0 { ", rank " (one.rank) }
                    ": " (sentence(&one.evidence)) " " span.dim { (timestamp(one.at)) }
                }
                p.dim { "Likely: " (sentence(&one.cause)) }
                p { "→ " (sentence(&one.advice)) }
                @if let Some(done) = &one.rolled_back { p { "Done: " (done) } }
                @for line in &one.stacks { p.dim { code { (line) } } }
            }
        }
    }
}

/// What diagnoses showed.
pub fn diagnoses(all: &[AttemptDiagnosis]) -> Markup {
    html! {
        @for one in all {
            div.finding {
                p {
                    b { (one.kind.as_str()) } ", " (one.verdict.as_str().replace('_', " ")) ": " (sentence(&one.finding)) " "
                    span.dim { (timestamp(one.at)) }
                }
                p.dim { "Symptom: " (sentence(&one.why)) ". Run " code { (one.diagnosis_run_id.to_string()) } }
                @for file in &one.files { p.dim { code { (file) } } }
            }
        }
    }
}

/// The decision after each attempt.
pub fn decisions(decisions: &[RetryDecision]) -> Markup {
    table(
        &columns("After attempt: | Decision | Why | Rule | Budget | Wait: | Changes"),
        decisions.iter().map(|decision| {
            let budget = decision.budget().map(|(name, spent)| format!("{name}: {spent}"));
            html! {
                td.n { (decision.after_attempt_number.map(|number| number.to_string()).unwrap_or_default()) }
                td.word { (decision.decision.as_str()) }
                td { (sentence(&decision.why)) }
                td { code { (decision.rule) } }
                td { (budget.unwrap_or_default()) }
                td.n { (decision.delay_seconds.map(duration).unwrap_or_default()) }
                td { @if let Some(set) = decision.changed_settings() { code { (set) } } }
            }
        }),
    )
}

/// Checkpoints that retention did not delete; the one that a resume would use is marked.
pub fn checkpoints(all: &[Checkpoint], resume_step: Option<u64>) -> Markup {
    let shown = all.iter().filter(|one| one.state != CheckpointState::Retired);
    table(
        &columns("Step: | State | Size: | Where | Manifest | Saved because | Kept because"),
        shown.map(|one| {
            let resumes = resume_step == Some(one.step) && one.state == CheckpointState::Committed;
            let size = one.size_bytes.map(bytes).unwrap_or_default();
            html! {
                td.n { (one.step) }
                td {
                    (one.state.as_str())
                    @if resumes { " " span.pass { "← a resume continues here" } }
                    @if let Some(why) = &one.why { " " span.warn { (why) } }
                }
                td.n { (size) }
                td { (one.place.as_str()) }
                td { code { (one.manifest_sha256.as_deref().map(short_digest).unwrap_or("–")) } }
                td { (one.reason.as_deref().unwrap_or_default()) }
                td.dim { (one.kept_because.join(", ")) }
            }
        }),
    )
}

/// What changed, from what to what.
pub fn changes(changes: &[Change]) -> Markup {
    table(
        &columns("What | Name | Before | Now | Lines"),
        changes.iter().map(|change| {
            html! {
                td { (change.kind.as_str()) }
                td { code { (change.key) } @if let Some(why) = &change.fits_because { br; span.dim { (why) } } }
                td { (change.before.as_deref().unwrap_or("–")) }
                td { (change.after.as_deref().unwrap_or("–")) }
                td {
                    @if let Some(lines) = &change.lines { (lines.to_string()) }
                    @for line in &change.shown_lines { br; code { (line) } }
                }
            }
        }),
    )
}

/// What differs from something else.
pub fn difference(diff: &Diff) -> Markup {
    let left_out = diff.changes.len().saturating_sub(CHANGES_MAX);
    html! {
        h3 { "Changed since " (diff.label) " " code.dim { (diff.against) } }
        @if diff.changes.is_empty() { p.dim { (sentence(diff.without_changes())) } } @else {
            (changes(&diff.changes[..diff.changes.len() - left_out]))
        }
        @if left_out > 0 { p.dim { (left_out) " more, which " code { "--json" } " has" } }
        (unknown(&diff.unknown))
    }
}

/// What cannot be compared.
pub fn unknown(unknown: &[UnknownChange]) -> Markup {
    html! {
        @for unknown in unknown { p.warn { "Not known: " (unknown.why) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which curves are folded: those that say how far and how fast a training goes, whatever logger named them.
    #[test]
    fn curves_of_progress() {
        for name in
            ["epoch", "train/epoch", "eval_runtime", "train_samples_per_second", "total_flos", "step_seconds"]
        {
            assert!(is_of_progress(name), "{name}");
        }
        for name in ["loss", "eval/loss", "learning_rate", "val_epoch_loss", "runtime_error"] {
            assert!(!is_of_progress(name), "{name}");
        }
    }
}
