//! What to do next, as sentences with commands. Pure: facts in, only commands that work in that state out.

use trackway_api::checkpoints::CheckpointStanding;
use trackway_api::runs::explain::ExplainedHealth;
use trackway_core::{AttemptId, DiagnosisKind, Health, LaunchKind, RunId, Step, TerminationReason};
use trackway_engine::run::may_resume;
use trackway_flows::runs::diagnose::promise;
use trackway_ledger::RunState;
use trackway_rules::health::advice;
use trackway_rules::{Line, Need, RankedLine, Sign, before_resume, next_actions, option_to_continue, ranked};

pub use super::unended::Unended;

/// Findings about which advice is given.
const DOUBTS_MAX: usize = 2;
/// A failure after more steps is not met in a rehearsal, which makes a few.
const REHEARSED_STEPS_MAX: Step = 10;

/// How a run continues whose command held a secret.
pub(super) const AGAIN: &str =
    "its command held a secret, which is not stored: start the run again with its full command";

/// A launch that was refused.
#[derive(Debug, Clone)]
pub struct RefusedLaunch {
    pub why: String,
    /// What a person does about it; may be empty.
    pub repair: String,
}

/// What is known of an attempt and its run.
#[derive(Debug, Clone)]
pub struct NextFacts {
    pub run_id: RunId,
    /// The run that its advice is about: of an evaluation the evaluated one.
    pub subject_run_id: RunId,
    /// The attempt that is explained.
    pub attempt_id: AttemptId,
    pub state: RunState,
    /// What the launch was for.
    pub kind: LaunchKind,
    /// Why it ended, as its advice is given; none while it runs.
    pub reason: Option<TerminationReason>,
    /// The rule that decided why it ended.
    pub rule: Option<String>,
    /// Whether another attempt followed it.
    pub is_followed: bool,
    /// Why none followed it, where its launch was refused.
    pub refused: Option<RefusedLaunch>,
    /// The step that a resume would continue from.
    pub committed_step: Option<Step>,
    /// The last step that it reported.
    pub last_step: Option<Step>,
    /// What is known of it by now, where it has no receipt.
    pub unended: Option<Unended>,
    /// Whether its script asks Trackway whether to save: then a stop waits for a checkpoint.
    pub asks_to_save: bool,
    /// What speaks for one cause or another, with what was seen.
    pub signs: Vec<(Sign, String)>,
    /// Where its data are, as a word of a command.
    pub data_path: Option<String>,
    /// Its run file, as a word of a command.
    pub run_file: Option<String>,
    /// Whether it may have had several ranks.
    pub may_have_ranks: bool,
    /// Whether its script recorded with Trackway's package: another one cannot be rehearsed.
    pub uses_sdk: bool,
    /// Whether the script read no checkpoint when it was last to continue from one.
    pub reads_none: bool,
    /// The arguments by which the script would continue, as its text declares them; empty: it declares none.
    pub resume_arguments: Vec<String>,
    /// Whether the plan has `[evaluate]`.
    pub has_evaluate: bool,
    /// Whether its newest checkpoint has a completed evaluation.
    pub is_evaluated: bool,
    /// The evaluation of the newest weights, where it failed or does not pass its gates.
    pub unmet_evaluation: Option<String>,
    /// The last good run of the name before it.
    pub last_good: Option<RunId>,
    /// The health of the attempt.
    pub health: Option<ExplainedHealth>,
    /// What another launch would show the cause of.
    pub diagnosis: Option<DiagnosisKind>,
    /// What changed since the last good run and fits the failure.
    pub first_look: Option<String>,
    /// How a run that diverged continues from before it did.
    pub way_back: Option<String>,
    /// What speaks against that all is well though it may have ended well.
    pub warnings: Vec<String>,
    /// Whether the data of the run and of the last good one were written down: then they can be compared.
    pub has_snapshots: bool,
    /// Whether nothing that is compared changed since the last good run.
    pub nothing_changed: bool,
    /// Whether an attempt of the run continued from a checkpoint: then its script reads them.
    pub reads_checkpoints: bool,
    /// Whether the run can have a run file and has none.
    pub lacks_run_file: bool,
    /// Whether its command held a secret and is in no run file: then it cannot be launched again from what is stored.
    pub needs_full_command: bool,
    /// What to do instead, where a resume is refused since a budget of the run is spent.
    pub instead_of_resume: Option<String>,
    /// Whether it waits and no process supervises it: nothing happens before it is resumed.
    pub is_unsupervised: bool,
}

/// The step that a resume continues from: where the newest checkpoint is unsafe, the newest one that is safe.
pub(super) fn continues_from(committed: Option<Step>, standing: &CheckpointStanding) -> Option<Step> {
    if standing.newest_is_unsafe { standing.safe_step } else { committed }
}

/// What to do, most useful first.
#[must_use]
pub fn next(facts: &NextFacts) -> Vec<String> {
    let NextFacts { run_id, attempt_id, kind, .. } = *facts;
    let Some(reason) = facts.reason else { return while_it_runs(facts) };
    let refused = refused(facts, reason);
    let is_refused = !refused.is_empty();
    let mut actions = refused;
    if facts.is_followed {
        actions.push(format!("see its result: trackway explain {run_id}"));
    }
    if facts.state == RunState::Waiting && kind == LaunchKind::Train {
        actions.extend(while_it_waits(run_id, facts.is_unsupervised));
    } else if facts.is_unsupervised && kind == LaunchKind::Train {
        // It left its queue and was not launched before its supervisor was killed: a stop finds nothing to end.
        actions.extend(while_it_waits(run_id, true).into_iter().take(1));
    }
    if let Some(kind) = facts.diagnosis {
        actions.push(format!("{}: trackway diagnose {attempt_id}", promise(kind, facts.may_have_ranks)));
    }
    let first_look_at = actions.len();
    actions.extend(facts.first_look.clone());
    let doubts = doubts(facts, reason);
    let warned = facts.warnings.iter().filter(|_| reason.is_success());
    let warned: Vec<String> = warned
        .map(|warning| format!("see whether this was meant, for its result rests on it: {warning}"))
        .collect();
    let is_doubted = !doubts.is_empty() || !warned.is_empty();
    actions.extend(warned);
    actions.extend(doubts);
    match facts.unmet_evaluation.as_ref().filter(|_| reason.is_success()) {
        Some(id) => {
            actions.push(format!("its evaluation failed, or a gate does not pass: trackway eval show {id}"));
        }
        None if is_doubted => {}
        None => {
            let lines = fitting(next_actions(reason, facts.rule.as_deref()), facts).into_iter();
            let (direct, others): (Vec<RankedLine<'_>>, Vec<RankedLine<'_>>) =
                lines.partition(|it| it.sign.is_some_and(|(sign, _)| sign.is_direct()));
            actions.extend(others.iter().map(|it| filled(it, facts)));
            // What was seen itself comes before a change that may have led to it.
            let direct: Vec<String> = direct.iter().map(|it| filled(it, facts)).collect();
            actions.splice(first_look_at..first_look_at, direct);
        }
    }
    if reason.is_success() && facts.state == RunState::Completed && kind == LaunchKind::Train {
        actions.extend(after_success(facts));
    }
    actions.extend(resume(facts, reason).filter(|_| !is_refused));
    actions.extend(facts.way_back.clone());
    if facts.lacks_run_file && facts.state.is_final() {
        actions.push(format!("for retries and checks, write its run file: trackway init --from {run_id}"));
    }
    let instead = if facts.needs_full_command { Some(AGAIN) } else { facts.instead_of_resume.as_deref() };
    match instead {
        Some(instead) => without_resume(actions, facts, reason, instead),
        None => actions,
    }
}

/// The same of an attempt that has not ended.
fn while_it_runs(facts: &NextFacts) -> Vec<String> {
    let run_id = facts.run_id;
    let is_refused = facts.needs_full_command || facts.instead_of_resume.is_some();
    let may = may_resume(facts.kind, facts.state, None) && !is_refused;
    match (facts.state, &facts.unended) {
        (RunState::Running, Some(unended)) => unended.actions(run_id, facts.asks_to_save, may),
        (RunState::Planned | RunState::Waiting, _) => {
            let [first, end] = while_it_waits(run_id, facts.is_unsupervised);
            let first = match facts.is_unsupervised && !may {
                false => Some(first),
                true if facts.needs_full_command => Some(AGAIN.to_owned()),
                true => facts.instead_of_resume.clone(),
            };
            // Of one that is planned nothing lives yet that a stop would end.
            let end = (facts.state == RunState::Waiting).then_some(end);
            first.into_iter().chain(end).collect()
        }
        _ => vec![format!("see how it ended: trackway explain {run_id}")],
    }
}

/// What a person does about a run that waits: its supervisor, where it has one, continues it, and a resume is refused.
pub(super) fn while_it_waits(run_id: RunId, is_unsupervised: bool) -> [String; 2] {
    let first = match is_unsupervised {
        true => format!("no process supervises it; let it continue: trackway resume {run_id}"),
        false => format!("it continues by itself; follow it: trackway watch {run_id}"),
    };
    [first, format!("end it: trackway stop {run_id}")]
}

/// The actions about a run of which a resume is refused: in the place of those that would need it, what is done instead.
fn without_resume(
    mut actions: Vec<String>,
    facts: &NextFacts,
    reason: TerminationReason,
    instead: &str,
) -> Vec<String> {
    let needs_command = |action: &String| {
        let is_advice = action.starts_with("resume ") || action.starts_with("or resume");
        is_advice || action.contains("trackway resume ") || action.contains("trackway init --from ")
    };
    actions.retain(|action| !needs_command(action));
    let is_over = facts.state.is_final() && !reason.is_success();
    let would_resume = is_over && may_resume(facts.kind, facts.state, Some(reason));
    if would_resume || facts.is_unsupervised {
        actions.push(instead.into());
    }
    actions
}

/// Whether what a line of the runbook needs is there.
pub(super) fn is_there(need: Need, facts: &NextFacts) -> bool {
    match need {
        Need::Checkpoint => facts.committed_step.is_some(),
        Need::Rehearsal => {
            let is_late = facts.last_step.is_some_and(|step| step > REHEARSED_STEPS_MAX);
            facts.uses_sdk && !is_late && facts.run_file.is_some()
        }
        Need::Ranks => facts.may_have_ranks,
        Need::Snapshots => facts.has_snapshots,
        Need::Data => facts.data_path.is_some(),
    }
}

/// The lines of the runbook that fit what is known, those with evidence first.
fn fitting<'f>(lines: &[Line], facts: &'f NextFacts) -> Vec<RankedLine<'f>> {
    ranked(lines, &facts.signs, |need| is_there(need, facts))
}

/// A line about this run, with its files.
fn filled(ranked: &RankedLine<'_>, facts: &NextFacts) -> String {
    let fill = |text: String, (name, path): (&str, &Option<String>)| match path {
        Some(path) => text.replace(&format!(" {name}`"), &format!(" {path}`")),
        None => text,
    };
    let line = with_run(&ranked.to_string(), facts.subject_run_id);
    [("FILE", &facts.run_file), ("DATA", &facts.data_path)].into_iter().fold(line, fill)
}

/// Why the attempt after it was not launched, and how the run continues all the same.
fn refused(facts: &NextFacts, reason: TerminationReason) -> Vec<String> {
    let may = may_resume(facts.kind, facts.state, Some(reason)) && facts.state.is_final();
    let refused = facts.refused.as_ref().filter(|_| may);
    let actions =
        |refused| refused_actions("its next attempt", refused, facts.run_id, !facts.needs_full_command);
    refused.map(actions).unwrap_or_default()
}

/// Why `what` was not launched, and what to do about it. `may_resume`: its run can be resumed then.
pub(super) fn refused_actions(
    what: &str,
    refused: &RefusedLaunch,
    run_id: RunId,
    may_resume: bool,
) -> Vec<String> {
    let RefusedLaunch { why, repair } = refused;
    let resume = format!("to resume it: trackway resume {run_id}");
    let then = match repair.as_str() {
        repair if !may_resume && repair.contains("trackway resume") => String::new(),
        repair if !may_resume => repair.to_owned(),
        "" => resume,
        repair if repair.contains("trackway resume") => repair.to_owned(),
        repair => format!("{repair}; {resume}"),
    };
    [format!("{what} was not launched: {why}"), then]
        .into_iter()
        .filter(|action| !action.is_empty())
        .collect()
}

/// What to do about a training that ended well and whose health is suspect or broken: its findings come before anything else.
fn doubts(facts: &NextFacts, reason: TerminationReason) -> Vec<String> {
    let doubted = facts.health.as_ref().filter(|health| {
        reason.is_success() && !Health::is_good(health.health) && health.blessed_because.is_none()
    });
    let Some(ExplainedHealth { health: Some(health), report, .. }) = doubted else { return Vec::new() };
    let mut actions: Vec<String> = report
        .findings
        .iter()
        .take(DOUBTS_MAX)
        .map(|found| format!("it is {health} by `{}`: {}", found.found_by, advised(&found.found_by, facts)))
        .collect();
    actions
        .push(format!("if it is good all the same, say so: trackway runs bless {} --why TEXT", facts.run_id));
    actions
}

/// What to try about a finding. What is known to be the same need not be looked at.
fn advised(found_by: &str, facts: &NextFacts) -> String {
    match found_by {
        "unlike_earlier_runs" if facts.nothing_changed => {
            "nothing that is compared changed since the last good run: look at what is not, such as the seed of the script and other random numbers".into()
        }
        other => {
            let lines = fitting(advice(other), facts);
            lines.iter().map(|it| filled(it, facts)).collect::<Vec<String>>().join("; ")
        }
    }
}

/// The advice of the runbook about this run.
pub(crate) fn with_run(line: &str, run_id: RunId) -> String {
    line.replace(" RUN`", &format!(" {run_id}`"))
}

fn after_success(facts: &NextFacts) -> Vec<String> {
    let NextFacts { run_id, .. } = *facts;
    let may_evaluate = facts.has_evaluate && facts.committed_step.is_some() && !facts.is_evaluated;
    let may_evaluate = may_evaluate && facts.unmet_evaluation.is_none();
    let evaluate = may_evaluate.then(|| format!("evaluate its checkpoint: trackway eval run {run_id}"));
    let compare = facts
        .last_good
        .map(|good| format!("compare it with the run before: trackway compare {good} {run_id}"));
    evaluate.into_iter().chain(compare).collect()
}

/// How to continue a run that has ended before its work was done, where something is left to continue from. The last checkpoint of a
/// training that diverged is one of what it became, and `way_back` names one from before.
fn resume(facts: &NextFacts, reason: TerminationReason) -> Option<String> {
    let run_id = facts.run_id;
    let may = may_resume(facts.kind, facts.state, Some(reason)) && facts.state.is_final();
    if !may || reason.is_success() || reason == TerminationReason::NumericDivergence {
        return None;
    }
    let is_of_data = matches!(reason, TerminationReason::DataError | TerminationReason::SchemaDrift);
    let first = match is_of_data {
        true => "when the data, its schema or the code is repaired, ",
        false if is_mistake(facts, reason) => "after the fix, ",
        false => before_resume(reason, facts.rule.as_deref()).unwrap_or_default(),
    };
    match (facts.committed_step, facts.reads_none) {
        (Some(step), true) => Some(format!(
            "{first}{}, since it read no checkpoint; else it begins again, though step {step} is committed: trackway resume {run_id}",
            option_to_continue(&facts.resume_arguments)
        )),
        (Some(step), false) => {
            let may_not_read = !(facts.uses_sdk || facts.reads_checkpoints);
            let condition = if may_not_read { ", if the script reads it" } else { "" };
            Some(format!(
                "{first}to continue from the checkpoint of step {step}{condition}: trackway resume {run_id}"
            ))
        }
        // Nothing else continues what a person stopped.
        (None, _) if is_of_data || facts.state == RunState::Stopped => {
            Some(format!("{first}to launch it again: trackway resume {run_id}"))
        }
        (None, _) => None,
    }
}

/// Whether it fails again where it failed, since its code is wrong. A signal may have come from a machine as well.
fn is_mistake(facts: &NextFacts, reason: TerminationReason) -> bool {
    let is_signal = |rule: &str| rule.starts_with("process.") || rule == "code.crash";
    reason == TerminationReason::CodeError && !facts.rule.as_deref().is_some_and(is_signal)
}

/// The commands in a sentence: words after `trackway`, to the end of the code or of the line.
#[must_use]
pub fn commands(action: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (place, _) in action.match_indices("trackway ") {
        let is_word = place == 0 || action[..place].ends_with([' ', '`']);
        let is_code = action[..place].ends_with('`');
        let rest = &action[place..];
        let end = if is_code { rest.find('`') } else { rest.find([';', ',']) };
        let text = rest[..end.unwrap_or(rest.len())].split(" && ").next().unwrap_or_default();
        if is_word {
            found.push(text.split_whitespace().map(str::to_owned).collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use trackway_formats::EventKind;
    use trackway_ledger::{AttemptState, EventRow};

    use super::super::evidence::newest_refusal;
    use super::*;

    fn facts(reason: TerminationReason) -> NextFacts {
        let run_id: RunId = "run_01jz0000000000000000000001".parse().unwrap();
        NextFacts {
            run_id,
            subject_run_id: run_id,
            attempt_id: "att_01jz0000000000000000000001".parse().unwrap(),
            state: RunState::Failed,
            kind: LaunchKind::Train,
            reason: Some(reason),
            rule: None,
            is_followed: false,
            refused: None,
            committed_step: Some(40),
            last_step: Some(49),
            unended: None,
            asks_to_save: false,
            signs: Vec::new(),
            data_path: Some("d.csv".into()),
            run_file: Some("r.toml".into()),
            may_have_ranks: false,
            uses_sdk: true,
            reads_none: false,
            resume_arguments: Vec::new(),
            has_evaluate: false,
            is_evaluated: false,
            unmet_evaluation: None,
            last_good: None,
            health: None,
            diagnosis: None,
            first_look: None,
            way_back: None,
            warnings: Vec::new(),
            has_snapshots: true,
            nothing_changed: false,
            reads_checkpoints: false,
            lacks_run_file: false,
            needs_full_command: false,
            instead_of_resume: None,
            is_unsupervised: false,
        }
    }

    /// Proves that a run which waits is resumed only where no process supervises it, since the resume is refused otherwise, and that it is
    /// followed where one does; where its command held a secret, that it is started again takes the place of the resume.
    #[test]
    fn a_run_that_waits_is_resumed_only_without_a_supervisor() {
        let of = |is_unsupervised, needs_full_command| {
            let state = RunState::Waiting;
            let failed = facts(TerminationReason::NetworkError);
            next(&NextFacts { state, is_unsupervised, needs_full_command, ..failed })
        };
        let says = |actions: &[String], word: &str| actions.iter().any(|action| action.contains(word));
        let followed = of(false, false);
        assert!(says(&followed, "trackway watch") && !says(&followed, "trackway resume"), "{followed:?}");
        let left = of(true, false);
        assert!(!says(&left, "trackway watch") && says(&left, "trackway resume"), "{left:?}");
        assert!(says(&followed, "trackway stop") && says(&left, "trackway stop"));
        assert!(says(&of(true, true), AGAIN) && !says(&of(true, true), "trackway resume"));
        assert!(!says(&of(false, true), AGAIN));
    }

    /// Proves that a run whose supervisor was killed between its wait in a queue and its launch is resumed, and that no
    /// stop is proposed for it: there is nothing to end.
    #[test]
    fn a_planned_run_without_a_supervisor_is_resumed() {
        let failed = facts(TerminationReason::NetworkError);
        let actions = next(&NextFacts { state: RunState::Planned, is_unsupervised: true, ..failed });
        let begins = |words: &str| actions.iter().any(|action| action.starts_with(words));
        assert!(begins("no process supervises it; let it continue: trackway resume"), "{actions:?}");
        assert!(!begins("end it"), "{actions:?}");
    }

    /// Proves that an evaluation is proposed of a checkpoint that has none, and of no other.
    #[test]
    fn an_evaluated_checkpoint_is_not_proposed_again() {
        let proposes = |is_evaluated| {
            let done = facts(TerminationReason::Completed);
            let done = NextFacts { state: RunState::Completed, has_evaluate: true, is_evaluated, ..done };
            next(&done).iter().any(|action| action.contains("evaluate its checkpoint"))
        };
        assert!(proposes(false) && !proposes(true));
    }

    /// Proves that of a run whose budget is spent no resume is proposed, however it ended, but once what is done
    /// instead; of one that ended well nothing of that.
    #[test]
    fn a_spent_run_is_not_resumed() {
        let instead = "with a higher `retry.max_hours`, start a new run: trackway run r.toml";
        let of = |reason, state, instead: Option<&str>| {
            let way_back = "to continue: trackway rollback r --to-step 20 && trackway resume r".to_owned();
            let is_diverged = reason == TerminationReason::NumericDivergence;
            next(&NextFacts {
                state,
                way_back: is_diverged.then_some(way_back),
                instead_of_resume: instead.map(str::to_owned),
                ..facts(reason)
            })
        };
        let resumes = |actions: &[String]| actions.iter().any(|action| action.contains("trackway resume"));
        for reason in [
            TerminationReason::BudgetExhausted,
            TerminationReason::NumericDivergence,
            TerminationReason::Preempted,
        ] {
            assert!(resumes(&of(reason, RunState::Failed, None)), "{reason}");
            let actions = of(reason, RunState::Failed, Some(instead));
            assert!(!resumes(&actions), "{actions:?}");
            assert_eq!(actions.iter().filter(|action| action.contains(instead)).count(), 1, "{actions:?}");
        }
        let done = of(TerminationReason::Completed, RunState::Completed, Some(instead));
        assert!(!done.iter().any(|action| action.contains(instead)), "{done:?}");
    }

    /// Proves that a refusal is said once, also one of an earlier version whose text says itself that nothing was launched,
    /// and that no resume is proposed where none is possible.
    #[test]
    fn not_launched_is_said_once() {
        let run_id = facts(TerminationReason::CodeError).run_id;
        let resume = format!("to resume it: trackway resume {run_id}");
        for why in ["not launched: no data", "no data"] {
            let event = EventRow::of_run(run_id, EventKind::LaunchRefused, run_id.created_at(), why.into());
            let (_, refused) = newest_refusal(&[event]).unwrap();
            let actions = |may_resume| refused_actions("it", &refused, run_id, may_resume);
            assert_eq!(actions(true), ["it was not launched: no data", resume.as_str()]);
            assert_eq!(actions(false), ["it was not launched: no data"]);
        }
    }

    /// Proves that of a run whose command held a secret neither a resume nor a run file of it is proposed, but that it
    /// is started again, once; and that one which ended well need not be.
    #[test]
    fn a_command_with_a_secret_is_given_again() {
        let of = |reason, state, needs_full_command| {
            let refused = RefusedLaunch { why: "`c.pkl` is in the way".into(), repair: "move it".into() };
            next(&NextFacts {
                state,
                refused: (reason == TerminationReason::StorageError).then_some(refused),
                way_back: (reason == TerminationReason::NumericDivergence)
                    .then(|| "to continue: trackway rollback r --to-step 20 && trackway resume r".into()),
                lacks_run_file: true,
                needs_full_command,
                ..facts(reason)
            })
        };
        let count = |actions: &[String], word: &str| actions.iter().filter(|it| it.contains(word)).count();
        for reason in [
            TerminationReason::CodeError,
            TerminationReason::StorageError,
            TerminationReason::NumericDivergence,
            TerminationReason::Timeout,
        ] {
            let before = of(reason, RunState::Failed, false);
            assert!(count(&before, "trackway resume") > 0 && count(&before, "full command") == 0);
            let actions = of(reason, RunState::Failed, true);
            assert_eq!(count(&actions, "full command"), 1, "{actions:?}");
            for word in ["trackway resume", "trackway init", "resume from", "or resume"] {
                assert_eq!(count(&actions, word), 0, "{actions:?}");
            }
        }
        assert_eq!(count(&of(TerminationReason::StorageError, RunState::Failed, true), "move it"), 1);
        let done = of(TerminationReason::Completed, RunState::Completed, true);
        assert_eq!(count(&done, "full command") + count(&done, "trackway init"), 0, "{done:?}");
    }

    /// Proves that a resume of a script that was never seen to read a checkpoint depends on that it does, and that data
    /// are compared only where both were written down.
    #[test]
    fn nothing_is_promised_that_was_not_seen() {
        let resume = |uses_sdk, reads_checkpoints| {
            let failed = facts(TerminationReason::NetworkError);
            let actions = next(&NextFacts { uses_sdk, reads_checkpoints, ..failed });
            actions
                .iter()
                .any(|action| action.contains("of step 40, if the script reads it: trackway resume"))
        };
        assert_eq!([resume(false, false), resume(true, false), resume(false, true)], [true, false, false]);
        for has_snapshots in [true, false] {
            let drifted = NextFacts { has_snapshots, ..facts(TerminationReason::SchemaDrift) };
            let says = next(&drifted).iter().any(|action| action.contains("compare the schema"));
            assert_eq!(says, has_snapshots);
        }
    }

    /// Proves that a run which ended well and is warned of is not said to need nothing, and that what is known to be
    /// the same is not to be looked at.
    #[test]
    fn a_warning_needs_an_action() {
        let done = NextFacts { state: RunState::Completed, ..facts(TerminationReason::Completed) };
        let says = |facts: &NextFacts, word: &str| next(facts).iter().any(|action| action.contains(word));
        assert!(says(&done, "no action is needed"));
        let warned = NextFacts { warnings: vec!["it read another".into()], ..done.clone() };
        assert!(!says(&warned, "no action is needed") && says(&warned, ": it read another"));
        let unsettled = NextFacts { rule: Some("process.exit_0_after_traceback".into()), ..done.clone() };
        assert!(!says(&unsettled, "no action is needed") && says(&unsettled, "a traceback was printed"));
        assert_eq!(advised("unlike_earlier_runs", &done), "see what changed since the last good run");
        let same = NextFacts { nothing_changed: true, ..done };
        assert!(advised("unlike_earlier_runs", &same).starts_with("nothing that is compared changed"));
    }

    /// Proves that nothing is proposed whose precondition is missing, and that names of files take the place of what
    /// would have to be filled in.
    #[test]
    fn advice_has_what_it_needs() {
        let says = |facts: &NextFacts, word: &str| next(facts).iter().any(|action| action.contains(word));
        let diverged = facts(TerminationReason::NumericDivergence);
        assert!(says(&diverged, "resume from a checkpoint"));
        assert!(!says(&NextFacts { committed_step: None, ..diverged }, "checkpoint"));
        let late = NextFacts { committed_step: None, ..facts(TerminationReason::Timeout) };
        assert!(says(&late, "raise the time limit") && !says(&late, "resume"));
        let stopped = NextFacts { state: RunState::Stopped, ..late.clone() };
        assert!(says(&stopped, "to launch it again: trackway resume"));
        let of_data = facts(TerminationReason::DataError);
        assert!(says(&of_data, "`trackway data check d.csv`"));
        assert!(!says(&NextFacts { data_path: None, ..of_data }, "trackway data check"));
        let unended = Some(Unended {
            state: AttemptState::Running,
            set_aside: None,
            ending: None,
            is_supervised: true,
        });
        let hung = facts(TerminationReason::Hang);
        let running = NextFacts { state: RunState::Running, reason: None, unended, ..hung };
        assert!(!says(&running, "after a checkpoint") && says(&running, "end it: trackway stop"));
        assert!(says(
            &NextFacts { asks_to_save: true, ..running },
            "end it after a checkpoint: trackway stop"
        ));
    }

    /// Proves that what was seen itself comes first, then what changed, then what to do about causes without evidence.
    #[test]
    fn evidence_comes_first() {
        let seen = (Sign::DataNotFinite, "`x` is NaN in d.csv row 20".to_owned());
        let diverged = NextFacts {
            signs: vec![seen],
            first_look: Some("look first at what changed".into()),
            ..facts(TerminationReason::NumericDivergence)
        };
        let actions = next(&diverged);
        assert!(actions[0].starts_with("check the inputs"), "{actions:?}");
        assert!(actions[0].ends_with("(`x` is NaN in d.csv row 20)"), "{actions:?}");
        assert!(
            actions[1].starts_with("look first") && actions[2].starts_with("learning rate"),
            "{actions:?}"
        );
    }

    /// Proves that a failure by code is continued after the fix, one by storage or memory when that is changed, and
    /// that one by a signal or by the network need not wait.
    #[test]
    fn code_is_fixed_before_a_resume() {
        let resume = |reason, rule: Option<&str>| {
            let actions = next(&NextFacts { rule: rule.map(str::to_owned), ..facts(reason) });
            actions.into_iter().find(|action| action.contains("trackway resume")).unwrap()
        };
        let of_code = resume(TerminationReason::CodeError, Some("code.exception"));
        assert!(
            of_code.starts_with("after the fix, to continue from the checkpoint of step 40"),
            "{of_code}"
        );
        for (reason, rule) in [
            (TerminationReason::CodeError, Some("process.segmentation_fault")),
            (TerminationReason::NetworkError, None),
        ] {
            assert!(resume(reason, rule).starts_with("to continue from"), "{rule:?}");
        }
        let of_disk = resume(TerminationReason::StorageError, Some("storage.no_space"));
        assert!(
            of_disk.starts_with("when space is freed or the quota raised, to continue from the checkpoint"),
            "{of_disk}"
        );
        let of_memory = resume(TerminationReason::HostOom, None);
        assert!(of_memory.starts_with("when more memory is given or less is needed, to "), "{of_memory}");
    }

    /// Proves that a resume is said to continue from the newest safe checkpoint.
    #[test]
    fn a_resume_continues_from_what_is_safe() {
        let standing = |newest_is_unsafe, safe_step| CheckpointStanding {
            newest_step: Some(60),
            newest_is_unsafe,
            safe_step,
            ..CheckpointStanding::default()
        };
        assert_eq!(continues_from(Some(60), &standing(false, Some(60))), Some(60));
        assert_eq!(continues_from(Some(60), &standing(true, Some(40))), Some(40));
        assert_eq!(continues_from(Some(60), &standing(true, None)), None);
    }

    /// Proves that a rehearsal is proposed only for a failure at the first steps of a script that can be rehearsed, and
    /// what is said of ranks only where there may be several.
    #[test]
    fn advice_fits_what_is_known() {
        let says = |facts: &NextFacts, word: &str| next(facts).iter().any(|action| action.contains(word));
        let failed = facts(TerminationReason::CodeError);
        for (last_step, expected) in [(None, true), (Some(3), true), (Some(49), false)] {
            let failed = NextFacts { last_step, ..failed.clone() };
            assert_eq!(says(&failed, "trackway rehearse"), expected, "{last_step:?}");
            let without = NextFacts { uses_sdk: false, ..failed };
            assert!(!says(&without, "trackway rehearse") && says(&without, "the frame above it"));
        }
        let hung = NextFacts { diagnosis: Some(DiagnosisKind::Hang), ..facts(TerminationReason::Hang) };
        assert!(!says(&hung, "rank") && says(&hung, "find where it waits: trackway diagnose"));
        let several = NextFacts { may_have_ranks: true, ..hung };
        assert!(says(&several, "of several ranks") && says(&several, "the rank that did not join"));
    }
}
