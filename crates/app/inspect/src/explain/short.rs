//! The explanation in ten lines, for a person who is woken at night. Pure.

use trackway_api::checkpoints::CheckpointStanding;
use trackway_api::runs::explain::{
    Change, Diff, ExplainedHealth, ExplainedRun, Explanation, RecordedCheck, ShortLine, Termination,
};
use trackway_core::checks::Severity;
use trackway_core::text::{counted, duration, shortened};
use trackway_core::{Health, Step, TerminationReason};
use trackway_ledger::RunState;
use trackway_rules::trust::TENSORS;

use super::next::AGAIN;
use super::signs::{is_said_by_files, with_places};

/// Changes that are named.
const CHANGES_MAX: usize = 3;
/// Lines of a file that are shown of each, and how much of one.
const CHANGED_LINES_MAX: usize = 3;
const CHANGED_LINE_CHARS_MAX: usize = 80;
/// Findings that are named.
const FINDINGS_MAX: usize = 3;
/// Steps that are proposed.
const NEXT_MAX: usize = 3;
/// Longest line, in characters; and that of a line which shows code.
const LINE_CHARS_MAX: usize = 240;
const CODE_LINE_CHARS_MAX: usize = 480;
/// How much is shown of the frame that raised what decided.
const FRAME_CHARS_MAX: usize = 160;
/// How evidence begins that is an exception which the deciding one hides.
const HIDES: [&str; 2] = ["while handling ", "because of "];
/// How a run that has ended is continued.
const RESUME: &str = "trackway resume ";

/// What the short form says that is not on the page.
#[derive(Default)]
pub(super) struct ShortFacts<'a> {
    pub warnings: &'a [String],
    /// What its steps are, such as epochs.
    pub steps: Option<&'a str>,
    /// What is known of an attempt that has not ended.
    pub unended: Option<String>,
}

/// The page with its short form.
pub(super) fn with_short(page: Explanation, facts: &ShortFacts<'_>) -> Explanation {
    let short = short(&page, facts);
    Explanation { short, ..page }
}

fn short(page: &Explanation, facts: &ShortFacts<'_>) -> Vec<ShortLine> {
    let ShortFacts { warnings, steps, unended } = facts;
    let mut lines = vec![line("run", &run(page, *steps)), line("cause", &cause(page, unended.as_deref()))];
    let evidence = match &page.termination {
        Some(termination) => evidence(termination),
        None if page.attempt.is_none() => forbade(&page.preflight),
        None => None,
    };
    lines.extend(evidence.map(|text| line("evidence", &text)));
    lines.extend(warnings.iter().map(|warning| line("warning", warning)));
    lines.extend(page.health.as_ref().map(|health| line("health", &healthy(health, page.health_lines()))));
    lines.push(line("checkpoint", &checkpoint(page)));
    lines.push(line("changed", &changed(page.since_last_good.as_ref())));
    lines.push(line("cost", &cost(page)));
    lines.extend(next(&page.next_actions).into_iter().map(|action| line("next", action)));
    lines
}

fn line(name: &str, text: &str) -> ShortLine {
    let has_code = matches!(name, "evidence" | "changed");
    let max = if has_code { CODE_LINE_CHARS_MAX } else { LINE_CHARS_MAX };
    ShortLine { name: name.to_owned(), text: shortened(text, max).replace('\n', " ") }
}

fn run(page: &Explanation, steps: Option<&str>) -> String {
    let attempt = page.attempt.as_ref();
    let reason = page.termination.as_ref().map(|termination| termination.reason);
    let state = match short_wait(&page.run) {
        Some(wait) => format!("{} ({wait})", page.run.state),
        None => state(page.run.state, reason, attempt.is_some()),
    };
    let mut parts = vec![format!("{} {}: {state}", page.run.name, page.run.run_id)];
    parts.extend(attempt.map(|attempt| format!("attempt {}", attempt.attempt_number)));
    let doubted = page.health.as_ref().filter(|health| !Health::is_good(health.health));
    parts.extend(doubted.map(ExplainedHealth::word));
    parts.extend(attempt.and_then(|attempt| attempt.last_step).map(|step| last_step(step, steps)));
    parts.join(", ")
}

/// How the run waits, without what the action says that continues it.
fn short_wait(run: &ExplainedRun) -> Option<String> {
    match (run.unsupervised, &run.queue) {
        (true, _) => Some("no process supervises it".into()),
        (false, Some(queue)) => Some(queue.place_in_line()),
        (false, None) => None,
    }
}

fn last_step(step: Step, steps: Option<&str>) -> String {
    let are = steps.map(|are| format!(" ({are})")).unwrap_or_default();
    format!("last step {step}{are}")
}

/// The state, and of a blocked run what it waits for: it is not retried by itself, and a resume is refused until then.
fn state(state: RunState, reason: Option<TerminationReason>, was_launched: bool) -> String {
    let until = match (state, reason) {
        (RunState::Blocked, _) if !was_launched => "not launched until what pre-flight found is repaired",
        (RunState::Blocked, Some(TerminationReason::RungRejected)) => {
            "its next rung is not launched, as this one did not meet the rule"
        }
        (RunState::Blocked, Some(TerminationReason::EvaluatorError)) => {
            "the evaluation is not repeated by itself any more"
        }
        (RunState::Blocked, _) => "not retried until its data, its code or a file of its command changes",
        _ => return state.to_string(),
    };
    format!("{state} ({until})")
}

/// The deciding evidence, with the frame of the user's code that raised it.
fn evidence(termination: &Termination) -> Option<String> {
    let decided = termination.evidence.first()?;
    let seen = shortened(&format!("{}: {}", decided.place(), decided.text), LINE_CHARS_MAX);
    let of_frame = |text: &str| shortened(text, FRAME_CHARS_MAX);
    let frame = termination.raised_at().map(|frame| format!(", {}", of_frame(&frame.text)));
    let hidden = termination.evidence.iter().find(|item| HIDES.iter().any(|how| item.text.starts_with(how)));
    let hidden = hidden.map(|item| format!("; {}", of_frame(&item.text)));
    Some([Some(seen), frame, hidden].into_iter().flatten().collect())
}

/// What pre-flight found that forbade the launch.
fn forbade(preflight: &[RecordedCheck]) -> Option<String> {
    let check = preflight.iter().find(|check| check.blocks)?;
    let found = check.findings.iter().find(|finding| finding.severity == Severity::Block);
    let said = found.map(with_places).or_else(|| check.why.clone())?;
    Some(format!("{}: {said}", check.name))
}

/// The health with its first finding as a sentence, and the names of the others.
fn healthy(health: &ExplainedHealth, lines: Vec<String>) -> String {
    let mut parts: Vec<String> = lines.into_iter().take(1).collect();
    let others = health.report.findings.iter().skip(1).take(FINDINGS_MAX - 1);
    let others: Vec<&str> = others.map(|found| found.found_by.as_str()).collect();
    if !others.is_empty() {
        parts.push(format!("also {}", others.join(", ")));
    }
    if parts.is_empty() { health.word() } else { format!("{}: {}", health.word(), parts.join("; ")) }
}

/// The first actions, in their order. How to continue is always one of them.
fn next(actions: &[String]) -> Vec<&str> {
    let resume = actions.iter().position(|action| action.contains(RESUME) || action.contains(AGAIN));
    let is_beyond = resume.is_some_and(|place| place >= NEXT_MAX);
    let first = actions.iter().take(NEXT_MAX - usize::from(is_beyond));
    let last = resume.filter(|_| is_beyond).and_then(|place| actions.get(place));
    first.chain(last).map(String::as_str).collect()
}

fn cause(page: &Explanation, unended: Option<&str>) -> String {
    let Some(termination) = &page.termination else {
        let blocking: Vec<&str> =
            page.preflight.iter().filter(|check| check.blocks).map(|check| check.name.as_str()).collect();
        return match (page.attempt.is_some(), blocking.is_empty()) {
            (true, _) => unended.unwrap_or("it has not ended").to_owned(),
            (false, true) if page.run.state == RunState::Stopped => {
                "it was never launched: it was stopped before".into()
            }
            (false, true) if !page.run.state.is_final() => not_yet(&page.run),
            (false, true) => "it was never launched".into(),
            (false, false) => {
                format!("it was never launched: pre-flight blocked it ({})", blocking.join(", "))
            }
        };
    };
    let confidence = termination.confidence.map_or("not known", |confidence| confidence.as_str());
    if let Some(doubt) = page.health.as_ref().and_then(|health| doubt(termination.reason, health)) {
        return format!("{} ({confidence}), {doubt}", termination.reason);
    }
    let meaning =
        termination.cause.split_once(": ").map_or(termination.cause.as_str(), |(meaning, _)| meaning);
    format!("{} ({confidence}): {meaning}", termination.reason)
}

/// Why a run that was never launched may still be.
fn not_yet(run: &ExplainedRun) -> String {
    let why = match (run.unsupervised, &run.queue) {
        (true, Some(queue)) => {
            format!(": the process that waited for it in queue {} is gone", queue.name)
        }
        (true, None) => ": the process that supervised it is gone".to_owned(),
        (false, _) => String::new(),
    };
    format!("it was not launched yet{why}")
}

/// What is wrong with a training that ended well: its health, with what was found first. The end alone would read as if all were well.
fn doubt(reason: TerminationReason, health: &ExplainedHealth) -> Option<String> {
    if !reason.is_success() || Health::is_good(health.health) || health.blessed_because.is_some() {
        return None;
    }
    let found = health.report.findings.first().map(|found| {
        let from = found.first_step.map(|step| format!(" from step {step} on")).unwrap_or_default();
        let what = match found.found_by.as_str() {
            TENSORS => "weights that are not finite".to_owned(),
            name => name.replace('_', " "),
        };
        format!(": {what}{from}")
    });
    Some(format!("but {}{}", health.word(), found.unwrap_or_default()))
}

fn checkpoint(page: &Explanation) -> String {
    match (page.resume_step, &page.no_checkpoint_why) {
        (Some(step), _) => format!("a resume continues from step {step}{}", unsafe_newest(&page.standing)),
        (None, Some(why)) => format!("none: {why}"),
        (None, None) => format!("none: a resume would start at step 0{}", unsafe_newest(&page.standing)),
    }
}

/// That the newest checkpoint is unsafe, and that none is safe where that is so.
fn unsafe_newest(standing: &CheckpointStanding) -> String {
    match (standing.newest_step.filter(|_| standing.newest_is_unsafe), standing.safe_step) {
        (Some(step), Some(_)) => format!("; the newest, of step {step}, is unsafe"),
        (Some(step), None) => format!(", since the newest, of step {step}, is unsafe and none is safe"),
        (None, _) => String::new(),
    }
}

fn changed(diff: Option<&Diff>) -> String {
    let Some(diff) = diff else {
        return "there is no good run of this name before it".into();
    };
    let changes: Vec<&Change> =
        diff.changes.iter().filter(|change| !is_said_by_files(change, &diff.changes)).collect();
    let mut parts: Vec<String> =
        changes.iter().take(CHANGES_MAX).map(|change| with_its_lines(change)).collect();
    if parts.is_empty() {
        parts.push(diff.without_changes().into());
    }
    let more = changes.len().saturating_sub(CHANGES_MAX);
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    match diff.unknown.as_slice() {
        [] => {}
        [one] => parts.push(format!("not known: {}", one.why)),
        several => parts.push(format!("{} not known", counted(several.len() as u64, "thing"))),
    }
    format!("since {}: {}", diff.against, parts.join("; "))
}

/// What changed, with lines that differ where they are few.
fn with_its_lines(change: &Change) -> String {
    let shown = change.shown_lines.iter().filter_map(|line| {
        let (sign, text) = line.split_at_checked(1)?;
        let text = text.trim();
        let shown = shortened(&format!("{sign}{text}"), CHANGED_LINE_CHARS_MAX);
        (!text.is_empty()).then(|| format!("`{shown}`"))
    });
    let parts: Vec<String> =
        std::iter::once(change.sentence()).chain(shown.take(CHANGED_LINES_MAX)).collect();
    parts.join(", ")
}

fn cost(page: &Explanation) -> String {
    let cost = &page.cost;
    if page.attempt.is_none() {
        return match page.run.state.is_final() {
            true => "none: nothing was launched".into(),
            false => "none so far: nothing was launched".into(),
        };
    }
    let so_far = if cost.running_seconds.is_some() { " so far" } else { "" };
    let mut parts = vec![format!("{}{so_far}", duration(cost.run_wall_seconds))];
    if cost.run_gpu_seconds > 0.0 {
        parts.push(format!("{:.2} GPU hours", cost.run_gpu_seconds / 3600.0));
    }
    parts.extend(cost.run_cost_usd.map(|usd| format!("{usd:.2} USD")));
    parts.extend(cost.run_lost_steps.map(|lost| format!("{} lost", counted(lost, "step"))));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use trackway_api::runs::explain::{InputKind, TerminationEvidence, UnknownChange};
    use trackway_core::{HealthFinding, HealthReport};

    use super::*;

    fn evidence_of(items: &[(&str, &str)]) -> String {
        let item = |(source, text): &(&str, &str)| TerminationEvidence {
            source: (*source).into(),
            stream: Some("stderr".into()),
            line_number: Some(4),
            text: (*text).into(),
        };
        let termination = Termination {
            reason: TerminationReason::CodeError,
            cause: String::new(),
            runbook: String::new(),
            rule: None,
            confidence: None,
            domain: None,
            retry_outlook: None,
            evidence: items.iter().map(item).collect(),
            secondary: Vec::new(),
            fingerprint: None,
        };
        evidence(&termination).unwrap()
    }

    /// Proves that the deciding line is shown with the frame that raised it, that both are cut where they are long, and
    /// that other evidence is not taken for one.
    #[test]
    fn the_frame_is_beside_the_deciding_line() {
        let (error, frame) = (("log", "KeyError: 'x'"), ("log", "at t.py:31 in f: c['x']"));
        assert_eq!(
            evidence_of(&[error, frame]),
            "log, stderr line 4: KeyError: 'x', at t.py:31 in f: c['x']"
        );
        assert_eq!(evidence_of(&[error, ("log", "exit")]), "log, stderr line 4: KeyError: 'x'");
        assert_eq!(evidence_of(&[error, ("wait_status", "at 7")]), "log, stderr line 4: KeyError: 'x'");
        assert_eq!(
            evidence_of(&[error, frame, ("log", "while handling OSError: x")]),
            "log, stderr line 4: KeyError: 'x', at t.py:31 in f: c['x']; while handling OSError: x"
        );
        let long = "x".repeat(1000);
        let shown = line("evidence", &evidence_of(&[("log", &long), ("log", &format!("at {long}"))]));
        assert!(shown.text.contains("…, at xxx") && shown.text.chars().count() <= CODE_LINE_CHARS_MAX);
    }

    /// Proves that the last step is called an epoch only where that is known.
    #[test]
    fn epochs_are_called_so() {
        assert_eq!(last_step(4, None), "last step 4");
        assert_eq!(last_step(4, Some("its steps are epochs")), "last step 4 (its steps are epochs)");
    }

    /// Proves that an unsafe newest checkpoint is called so, beside the safe one before it or alone.
    #[test]
    fn an_unsafe_checkpoint_is_called_so() {
        let of = |newest_is_unsafe, safe_step| {
            let newest_step = Some(60);
            unsafe_newest(&CheckpointStanding {
                newest_step,
                newest_is_unsafe,
                safe_step,
                ..Default::default()
            })
        };
        assert_eq!(of(false, Some(60)), "");
        assert_eq!(of(true, Some(40)), "; the newest, of step 60, is unsafe");
        assert_eq!(of(true, None), ", since the newest, of step 60, is unsafe and none is safe");
    }

    /// Proves that the change names the run that it is since, with up to three lines of each file, and a data set by its files alone.
    #[test]
    fn changes_are_shown_with_their_lines() {
        let (before, after) = (Some("1".to_owned()), Some("2".to_owned()));
        let change = |kind, key: &str, shown: &[&str]| Change {
            shown_lines: shown.iter().map(|line| (*line).to_owned()).collect(),
            ..Change::new(kind, key, before.clone(), after.clone())
        };
        let lines = ["-    pass", "+", "+    if step == 50: f()", "+    g()", "+    h()"];
        let diff = Diff {
            against: "run_a".into(),
            label: "the last good run".into(),
            changes: vec![
                change(InputKind::Script, "t.py", &lines),
                change(InputKind::Data, "train", &[]),
                change(InputKind::Data, "train: d.csv", &[]),
            ],
            unknown: vec![UnknownChange { kind: InputKind::Code, why: "no repository".into() }],
        };
        assert_eq!(
            changed(Some(&diff)),
            "since run_a: t.py: 1 → 2, `-pass`, `+if step == 50: f()`, `+g()`; train: d.csv: 1 → 2; \
             not known: no repository"
        );
        let of_schema = Diff {
            changes: vec![
                change(InputKind::Data, "train", &[]),
                change(InputKind::Data, "train: schema.x", &[]),
            ],
            ..diff
        };
        assert!(changed(Some(&of_schema)).starts_with("since run_a: train: 1 → 2; train: schema.x: 1 → 2"));
        let long = format!("+{}", "é".repeat(100));
        let cut = with_its_lines(&change(InputKind::Script, "t.py", &[long.as_str()]));
        assert_eq!(cut, format!("t.py: 1 → 2, `+{}…`", "é".repeat(CHANGED_LINE_CHARS_MAX - 1)));
        assert_eq!(changed(None), "there is no good run of this name before it");
    }

    /// Proves that how to continue is one of three actions, in the place that it has or else the last, and that there are no more.
    #[test]
    fn how_to_continue_is_always_proposed() {
        let of = |actions: &[&str]| {
            let actions: Vec<String> = actions.iter().map(|action| (*action).to_owned()).collect();
            next(&actions).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of(&["a", "b", "c", "d: trackway resume r", "e"]), ["a", "b", "d: trackway resume r"]);
        let first = ["d: trackway resume r", "a", "b", "c"];
        assert_eq!(of(&first), first[..NEXT_MAX], "the order of the page");
        assert_eq!(of(&["a", "b", "c", "d"]), ["a", "b", "c"]);
        assert!(of(&[]).is_empty());
    }

    /// Proves that a blocked run says what it waits for, by why it is blocked, and that no other state says more than its name.
    #[test]
    fn a_blocked_run_says_what_it_waits_for() {
        use TerminationReason::{DataError, EvaluatorError, RungRejected};
        let of = |reason, was_launched| state(RunState::Blocked, reason, was_launched);
        assert_eq!(
            of(Some(DataError), true),
            "blocked (not retried until its data, its code or a file of its command changes)"
        );
        assert!(of(None, false).starts_with("blocked (not launched until"));
        assert!(of(Some(RungRejected), true).starts_with("blocked (its next rung"));
        assert!(of(Some(EvaluatorError), true).starts_with("blocked (the evaluation"));
        for other in RunState::ALL.iter().filter(|other| **other != RunState::Blocked) {
            assert_eq!(state(*other, Some(DataError), true), other.to_string());
        }
    }

    /// Proves that the cause of a training that ended well and is broken or suspect names what was found, and that
    /// nothing is added to one that is good or that failed.
    #[test]
    fn a_broken_training_did_not_just_complete() {
        let health = |health, found_by: &str, first_step| ExplainedHealth {
            health: Some(health),
            report: HealthReport {
                findings: vec![HealthFinding {
                    found_by: found_by.into(),
                    health,
                    first_step,
                    evidence: "it is so".into(),
                }],
                ..HealthReport::default()
            },
            blessed_because: None,
        };
        let of = |reason, found: &ExplainedHealth| doubt(reason, found).unwrap_or_default();
        let broken = health(Health::Broken, "loss_exploded", Some(40));
        assert_eq!(of(TerminationReason::Completed, &broken), "but broken: loss exploded from step 40 on");
        assert_eq!(of(TerminationReason::CodeError, &broken), "");
        let suspect = health(Health::Suspect, "plateau", None);
        assert_eq!(of(TerminationReason::EarlyStopped, &suspect), "but suspect: plateau");
        let blessed = ExplainedHealth { blessed_because: Some("it is meant so".into()), ..broken.clone() };
        let good = ExplainedHealth { health: Some(Health::Ok), ..broken };
        for fine in [blessed, good] {
            assert_eq!(of(TerminationReason::Completed, &fine), "");
        }
    }

    /// Proves that findings are named, the first with its sentence, and not more than three.
    #[test]
    fn findings_are_named() {
        let health = |names: &[&str]| {
            let finding = |name: &&str| HealthFinding {
                found_by: (*name).into(),
                health: Health::Broken,
                first_step: Some(3),
                evidence: "it is so".into(),
            };
            let found = ExplainedHealth {
                health: Some(Health::Broken),
                report: HealthReport {
                    findings: names.iter().map(finding).collect(),
                    ..HealthReport::default()
                },
                blessed_because: None,
            };
            healthy(&found, found.lines(&[]))
        };
        assert_eq!(health(&[]), "broken");
        assert_eq!(health(&["a"]), "broken: a from step 3 on: it is so");
        assert_eq!(health(&["a", "b", "c", "d"]), "broken: a from step 3 on: it is so; also b, c");
    }
}
