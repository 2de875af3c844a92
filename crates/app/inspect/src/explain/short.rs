//! The explanation in ten lines, for a person who is woken at night. Pure.

use trackway_api::explain::{Explanation, ShortLine};
use trackway_core::text::{counted, duration};

/// Changes that are named.
const CHANGES_MAX: usize = 3;
/// Steps that are proposed.
const NEXT_MAX: usize = 3;
/// Longest line, in characters.
const LINE_CHARS_MAX: usize = 240;

/// The page with its short form.
pub(super) fn with_short(page: Explanation) -> Explanation {
    let short = short(&page);
    Explanation { short, ..page }
}

fn short(page: &Explanation) -> Vec<ShortLine> {
    let mut lines = Vec::new();
    let mut line = |name: &str, text: String| {
        let cut = text.chars().count() > LINE_CHARS_MAX;
        let mut text: String = text.chars().take(LINE_CHARS_MAX).collect();
        if cut {
            text.push('…');
        }
        lines.push(ShortLine { name: name.to_owned(), text: text.replace('\n', " ") });
    };
    let number = page.attempt.as_ref().map(|attempt| format!(", attempt {}", attempt.attempt_number));
    line(
        "run",
        format!("{} {}: {}{}", page.run.name, page.run.run_id, page.run.state, number.unwrap_or_default()),
    );
    line("cause", cause(page));
    if let Some(evidence) = page.termination.as_ref().and_then(|termination| termination.evidence.first()) {
        line("evidence", format!("{}: {}", evidence.place(), evidence.text));
    }
    if let Some(health) = &page.health {
        let found = health.lines().into_iter().next().map(|found| format!(": {found}")).unwrap_or_default();
        line("health", format!("{}{found}", health.word()));
    }
    line("checkpoint", checkpoint(page));
    line("changed", changed(page));
    if page.attempt.is_some() {
        line("cost", cost(page));
    }
    for action in page.next_actions.iter().take(NEXT_MAX) {
        line("next", action.clone());
    }
    lines
}

fn cause(page: &Explanation) -> String {
    let Some(termination) = &page.termination else {
        let blocking: Vec<&str> =
            page.preflight.iter().filter(|check| check.blocks).map(|check| check.name.as_str()).collect();
        return match (page.attempt.is_some(), blocking.is_empty()) {
            (true, _) => "it has not ended".into(),
            (false, true) => "it was never launched".into(),
            (false, false) => {
                format!("it was never launched: pre-flight blocked it ({})", blocking.join(", "))
            }
        };
    };
    let confidence = termination.confidence.map_or("not known", |confidence| confidence.as_str());
    let meaning =
        termination.cause.split_once(": ").map_or(termination.cause.as_str(), |(meaning, _)| meaning);
    format!("{} ({confidence}): {meaning}", termination.reason)
}

fn checkpoint(page: &Explanation) -> String {
    match (page.resume_step, &page.no_checkpoint_why) {
        (Some(step), _) => format!("a resume continues from step {step}"),
        (None, Some(why)) => format!("none: {why}"),
        (None, None) => "none: a resume would start at step 0".into(),
    }
}

fn changed(page: &Explanation) -> String {
    let Some(diff) = &page.since_last_good else {
        return "there is no good run of this name before it".into();
    };
    let mut parts: Vec<String> =
        diff.changes.iter().take(CHANGES_MAX).map(|change| change.sentence()).collect();
    if parts.is_empty() {
        parts.push(diff.without_changes().into());
    }
    let more = diff.changes.len().saturating_sub(CHANGES_MAX);
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    match diff.unknown.as_slice() {
        [] => {}
        [one] => parts.push(format!("not known: {}", one.why)),
        several => parts.push(format!("{} not known", counted(several.len() as u64, "thing"))),
    }
    parts.join("; ")
}

fn cost(page: &Explanation) -> String {
    let cost = &page.cost;
    let mut parts = vec![duration(cost.run_wall_seconds)];
    if cost.run_gpu_seconds > 0.0 {
        parts.push(format!("{:.2} GPU hours", cost.run_gpu_seconds / 3600.0));
    }
    parts.extend(cost.run_cost_usd.map(|usd| format!("{usd:.2} USD")));
    parts.extend(cost.lost_steps.map(|lost| format!("{} lost", counted(lost, "step"))));
    parts.join(", ")
}
