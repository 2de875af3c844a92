//! Between the ledger's rows and the rules' decisions: builds the history and the policy, asks the rules, and writes the
//! decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use trackway_core::{AttemptId, Clock as _, Confidence, LaunchKind, Rng as _, SplitMix64, TerminationReason};
use trackway_ledger::{AttemptRow, AttemptState, Decision as DecisionWord, RetryRow, RollBackRow, RunState};
use trackway_rules::classify::{EvidenceItem, thrown};
use trackway_rules::decide::{DecisionRule, FinalState, PlanEntry};
use trackway_rules::{Decision, History, PastAttempt, RetryPolicy};

use super::changes::Changes;
use super::roll_back;
use crate::Context;
use crate::budgets::{retry_policy, spent_beside};
use crate::error::AppError;
use crate::reporter::Unheard;
use crate::run::blocked::is_of_data;
use crate::run::job::data_sha256;
use crate::run::job::planned_job;
use crate::run::ladder::RungOutcome;
use crate::run::prepare::begin::resolve_data;

/// A decision, ready to be stored.
pub struct Decided {
    pub retry: RetryRow,
    /// The state of the run after it.
    pub run_state: RunState,
}

/// Decides what follows an attempt that ended: `row` is its receipt, sealed or about to be, and `judged` the decision
/// about its rung.
pub fn decide(
    context: &Context,
    row: &AttemptRow,
    judged: Option<&RungOutcome>,
) -> Result<Decided, AppError> {
    let is_training = row.kind == LaunchKind::Train;
    if !is_training && row.kind != LaunchKind::Evaluate {
        return Ok(answer(context, row, rehearsed(row), None));
    }
    // The ledger's copy of the plan, so that a damaged file of the home cannot keep a receipt from being sealed.
    let run = context.run_by_id(row.run_id)?;
    let policy = match retry_policy(&run) {
        Ok(policy) => policy,
        Err(error) => return Ok(answer(context, row, without_plan(&error), None)),
    };
    // What spreads the retries of runs that failed together, in `[0, 1)`.
    let jitter = SplitMix64::new(context.ids.next_ulid() as u64).next_unit();
    if !is_training {
        // The evaluator is launched again as it is, within its budgets; nothing else of the run is touched.
        let decision = ruled(context, row, (&policy, jitter), |history| history)?;
        return Ok(answer(context, row, decision, None));
    }
    let due = roll_back::due(context, row)?;
    let next_rung = judged.and_then(RungOutcome::next_rung);
    let roll_back = due.as_ref().map(|(_, facts)| facts.clone());
    let decision =
        ruled(context, row, (&policy, jitter), |history| History { next_rung, roll_back, ..history })?;
    let decision = if run.run_file_path.is_some() { decision } else { once(decision) };
    Ok(answer(context, row, decision, due))
}

/// No budget and no retry: the caller of a rehearsal decides what follows.
fn rehearsed(row: &AttemptRow) -> Decision {
    let success = row.termination_reason.is_some_and(TerminationReason::is_success);
    let why = format!("a launch of kind `{}` is not repeated by itself", row.kind.as_str());
    stop(DecisionRule::RehearsalEnded, why, if success { FinalState::Completed } else { FinalState::Failed })
}

/// An end that no budget decided.
fn stop(rule: DecisionRule, why: String, final_state: FinalState) -> Decision {
    Decision::Stop { rule, why, budget: None, final_state }
}

fn answer(context: &Context, row: &AttemptRow, decision: Decision, due: Option<roll_back::Due>) -> Decided {
    let rule = decision.rule();
    let (mut word, mut delay, mut changes) = (DecisionWord::Stop, None, None);
    let (why, budget, run_state) = match decision {
        Decision::Retry { why, delay_seconds, in_force, plan_index, budget, exclude_hosts, .. } => {
            let plan_reason = plan_index.and(row.termination_reason);
            let in_force = redacted(context, in_force);
            let roll_back = roll_back::decided(rule, due);
            let rung = None;
            changes = Some(Changes { in_force, plan_index, plan_reason, roll_back, rung, exclude_hosts });
            (word, delay) = (DecisionWord::Retry, Some(delay_seconds));
            (why, Some(budget), RunState::Waiting)
        }
        Decision::NextRung { why, rung, in_force, .. } => {
            let in_force = redacted(context, in_force);
            changes = Some(Changes { in_force, rung: Some(rung), ..Changes::default() });
            word = DecisionWord::Promote;
            (why, None, RunState::Waiting)
        }
        Decision::RetryEvaluator { why, budget, delay_seconds, .. } => {
            (word, delay) = (DecisionWord::Retry, Some(delay_seconds));
            (why, Some(budget), RunState::Waiting)
        }
        Decision::Stop { why, budget, final_state, .. } => {
            let state = match final_state {
                FinalState::Completed => RunState::Completed,
                FinalState::Failed | FinalState::BudgetExhausted => RunState::Failed,
                FinalState::Blocked => RunState::Blocked,
                FinalState::Cancelled => RunState::Stopped,
            };
            (why, budget, state)
        }
    };
    let retry = RetryRow {
        attempt_id: row.attempt_id,
        run_id: row.run_id,
        at: context.clock.now(),
        decision: word,
        rule: rule.as_str().into(),
        why,
        delay_seconds: delay,
        budget_name: budget.as_ref().map(|budget| budget.name.clone()),
        budget_spent: budget.as_ref().map(|budget| budget.spent),
        budget_limit: budget.as_ref().map(|budget| budget.limit),
        changes_json: changes.and_then(|changes| serde_json::to_value(changes).ok()),
        next_attempt_id: None,
    };
    Decided { retry, run_state }
}

/// What is in force as it is stored: without secrets.
fn redacted(context: &Context, in_force: PlanEntry) -> PlanEntry {
    PlanEntry { set: context.redactor.settings(&in_force.set), ..in_force }
}

/// What the rules decide from what the run has been through, and from what `more` adds to that.
fn ruled(
    context: &Context,
    row: &AttemptRow,
    (policy, jitter): (&RetryPolicy, f64),
    more: impl FnOnce(History) -> History,
) -> Result<Decision, AppError> {
    let mut past = SealedAttempts::known(context, row);
    past.complete(context, row)?;
    let left = roll_back::rows(context, row.run_id)?;
    let SealedAttempts { ids, mut attempts, final_count } = past;
    // What was left counts otherwise for each decision.
    let as_sealed = (!left.is_empty()).then(|| attempts.clone());
    left.iter().for_each(|left| leave(&mut attempts, &ids, left));
    let data_manifest_now = data_now(context, row)?.unwrap_or_default();
    let beside = spent_beside(context, row.run_id)?;
    let history = more(History { attempts, data_manifest_now, beside, next_rung: None, roll_back: None });
    let decision = trackway_rules::decide(&history, policy, jitter);
    let attempts = as_sealed.unwrap_or(history.attempts);
    SealedAttempts { ids, attempts, final_count }.keep(context, row);
    Ok(decision)
}

/// Attempts of a run, and what decisions need of them.
type KnownPast = (Vec<AttemptId>, Vec<PastAttempt>);

/// The sealed attempts of a run, oldest first.
struct SealedAttempts {
    ids: Vec<AttemptId>,
    attempts: Vec<PastAttempt>,
    /// How many of the first do not change: their receipts are sealed without a gap, and their launchers answered.
    final_count: usize,
}

impl SealedAttempts {
    /// What this process knows of the attempts before one. It is another one's to complete until it is kept again.
    fn known(context: &Context, row: &AttemptRow) -> Self {
        let (known, _) = context.folds.take::<KnownPast>((row.run_id, row.kind), row.attempt_number);
        let (ids, attempts) = Arc::unwrap_or_clone(known);
        Self { final_count: ids.len(), ids, attempts }
    }

    /// Adds those that are not known yet, and `row` as the last one.
    fn complete(&mut self, context: &Context, row: &AttemptRow) -> Result<(), AppError> {
        let first = u32::try_from(self.ids.len()).unwrap_or(u32::MAX).saturating_add(1);
        let of = (row.run_id, row.kind);
        let mut new =
            context.ledger_read(|ledger| ledger.attempts_numbered(of, first..row.attempt_number))?;
        new.retain(|attempt| attempt.state == AttemptState::Sealed);
        let before = self.ids.len() + new.len();
        new.push(row.clone());
        let parents: Vec<AttemptId> = new.iter().filter_map(|attempt| attempt.parent_attempt_id).collect();
        let retries = context.ledger_read(|ledger| ledger.retries_after(&parents))?;
        let retries: BTreeMap<AttemptId, RetryRow> =
            retries.into_iter().map(|retry| (retry.attempt_id, retry)).collect();
        let mut choices = HostChoices { context, found: BTreeMap::new() };
        for attempt in &new {
            let parent = attempt.parent_attempt_id.and_then(|parent| retries.get(&parent));
            let changes = parent.map(Changes::of).transpose()?.unwrap_or_default();
            let of_rung = self.attempts.iter().rev().find(|past| past.rung == attempt.rung);
            let committed =
                of_rung.and_then(|past| past.last_committed_step).max(attempt.last_committed_step);
            let hosts = choices.hosts_of(attempt);
            let place = self.ids.len();
            // The last one is not sealed yet.
            let is_final = place < before && hosts.is_some() && attempt.attempt_number as usize == place + 1;
            if is_final && self.final_count == place {
                self.final_count += 1;
            }
            let hosts = hosts.unwrap_or_default();
            self.attempts.push(PastAttempt { hosts, ..past_attempt(attempt, changes, committed) });
            self.ids.push(attempt.attempt_id);
        }
        Ok(())
    }

    /// Keeps what the next decision of this process does not read again.
    fn keep(mut self, context: &Context, row: &AttemptRow) {
        self.ids.truncate(self.final_count);
        self.attempts.truncate(self.final_count);
        let next = u32::try_from(self.final_count).unwrap_or(u32::MAX).saturating_add(1);
        let known: KnownPast = (self.ids, self.attempts);
        context.folds.keep((row.run_id, row.kind), (Arc::new(known), next));
    }
}

/// Which engines choose the machines of their attempts. Each is looked at once for a decision.
struct HostChoices<'c> {
    context: &'c Context,
    /// By the kind of the engine and its name; none: it does not answer now.
    found: BTreeMap<(&'static str, Option<&'c str>), Option<bool>>,
}

impl HostChoices<'_> {
    /// The machines an attempt ran on, where its launcher could have put it on others. None where that is not known now.
    fn hosts_of(&mut self, attempt: &AttemptRow) -> Option<Vec<String>> {
        let hosts = attempt.hosts.as_deref().unwrap_or_default();
        let hosts = hosts.split(',').filter(|host| !host.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        if hosts.is_empty() {
            return Some(hosts);
        }
        let context = self.context;
        let launcher = context.launchers.of_attempt(attempt).ok()?;
        let has_choice = *self
            .found
            .entry((launcher.name(), launcher.engine()))
            .or_insert_with(|| Some(context.offer_from(launcher).ok()?.chooses_hosts()));
        Some(if has_choice? { hosts } else { Vec::new() })
    }
}

/// The hash of the data as a next attempt would read it: looked at again where the data stopped this one, which may be repaired already.
fn data_now(context: &Context, row: &AttemptRow) -> Result<Option<String>, AppError> {
    let is_looked_at = row.kind == LaunchKind::Train
        && row.termination_reason.is_some_and(is_of_data)
        && row.data_sha256.is_some();
    if !is_looked_at {
        return Ok(row.data_sha256.clone());
    }
    let run = context.run_by_id(row.run_id)?;
    let resolved = planned_job(context, &run).and_then(|job| resolve_data(context, &job, &Unheard));
    // What cannot be read now is not known to have changed.
    Ok(resolved.map_or_else(|_| row.data_sha256.clone(), |manifests| data_sha256(&manifests)))
}

/// What was committed after the place that the run went back to no longer counts as progress; what comes after the
/// rollback does.
fn leave(past: &mut [PastAttempt], ids: &[AttemptId], left: &RollBackRow) {
    for (past, attempt_id) in past.iter_mut().zip(ids) {
        if past.rung == left.rung {
            past.last_committed_step = past.last_committed_step.min(left.to_step);
        }
        if *attempt_id == left.attempt_id {
            break;
        }
    }
}

/// The exception of the code that ended an attempt, by its stored evidence.
fn exception_of(attempt: &AttemptRow, reason: TerminationReason) -> Option<String> {
    let evidence = attempt.termination_evidence.clone()?;
    let evidence: Vec<EvidenceItem> = serde_json::from_value(evidence).ok()?;
    thrown(reason, &evidence).map(str::to_owned)
}

fn past_attempt(attempt: &AttemptRow, changes: Changes, committed: Option<u64>) -> PastAttempt {
    let reason = attempt.termination_reason.unwrap_or(TerminationReason::Unknown);
    PastAttempt {
        kind: attempt.kind,
        rung: attempt.rung.clone(),
        reason,
        exception: exception_of(attempt, reason),
        confidence: attempt.termination_confidence.unwrap_or(Confidence::Guess),
        retry_outlook: attempt.retry_outlook,
        fingerprint: attempt.fingerprint.clone().unwrap_or_default(),
        last_committed_step: committed,
        resumed_from_step: attempt.resumed_from_step,
        last_step: attempt.last_step,
        gpu_seconds: attempt.gpu_seconds.unwrap_or(0.0),
        cost_usd: attempt.cost_usd.unwrap_or(0.0),
        seconds: attempt.wall_seconds.unwrap_or(0.0),
        plan_index: changes.plan_index,
        plan_reason: changes.plan_reason,
        in_force: changes.in_force,
        data_manifest: attempt.data_sha256.clone().unwrap_or_default(),
        hosts: Vec::new(),
    }
}

/// Without its limits nothing is retried; the attempt is sealed all the same.
fn without_plan(error: &AppError) -> Decision {
    let why = format!("its retry limits are not known: {error}");
    stop(DecisionRule::UnreadablePlan, why, FinalState::Failed)
}

/// A command without a run file is launched once: repeating it was not requested.
fn once(decision: Decision) -> Decision {
    // A rollback requested by a user already has this meaning.
    if !decision.launches() || decision.rule() == DecisionRule::RollBackPerson {
        return decision;
    }
    let why = "a command without a run file is launched once; with one, `[retry]` configures retries";
    stop(DecisionRule::NoRunFile, why.into(), FinalState::Failed)
}

#[cfg(test)]
mod tests {
    use trackway_ledger::conformance::rows_read;
    use trackway_ledger::{AttemptSeal, RunRow};
    use trackway_rules::decide::BudgetUse;
    use trackway_system::SystemClock;

    use super::*;
    use crate::testing::{SETTLES, World};

    /// A run whose attempts are preempted one after the other, without a process.
    struct Preempted {
        _folder: tempfile::TempDir,
        world: World,
        context: Context,
        run: RunRow,
    }

    impl Preempted {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let world = World::new(folder.path(), SETTLES);
            let context = world.context();
            let retries = "[retry]\npreempted = { attempts = 5000, refill = \"never\" }\n";
            let run_id = world.run(&context, "exit 0", retries).run_id;
            let run = context.run_by_id(run_id).unwrap();
            Self { _folder: folder, world, context, run }
        }

        /// The attempt of this number, which has just ended.
        fn ended(&self, number: u32) -> AttemptRow {
            let row = AttemptRow {
                state: AttemptState::Ended,
                termination_reason: Some(TerminationReason::Preempted),
                last_committed_step: Some(u64::from(number)),
                ..AttemptRow::planned(AttemptId::new(&self.context.ids), number, LaunchKind::Train, &self.run)
            };
            self.context.ledger_write(|ledger| ledger.insert_attempt(&row)).unwrap();
            row
        }

        fn seal(&self, row: AttemptRow) {
            let seal = AttemptSeal::of(row);
            let now = self.context.clock.now();
            self.context.ledger_write(|ledger| ledger.seal_attempt(&seal, now)).unwrap();
        }
    }

    /// Proves that a decision reads as many rows after many attempts as after a few, and that a process which reads all
    /// of them decides the same.
    #[test]
    fn a_decision_reads_what_is_new() {
        const ATTEMPTS: u32 = 60;
        let of_run = Preempted::new();
        let said = |context: &Context, row: &AttemptRow| {
            let retry = decide(context, row, None).unwrap().retry;
            (retry.decision, retry.rule, retry.why, retry.budget_spent)
        };
        let mut read = Vec::new();
        for number in 2..=ATTEMPTS {
            let row = of_run.ended(number);
            let before = rows_read();
            let known = said(&of_run.context, &row);
            read.push(rows_read() - before);
            assert_eq!(known.3, Some(f64::from(number - 1)), "{known:?}");
            if number == ATTEMPTS {
                let before = rows_read();
                assert_eq!(said(&of_run.world.context(), &row), known);
                assert!(rows_read() - before > u64::from(ATTEMPTS), "another process reads them all");
            }
            of_run.seal(row);
        }
        assert_eq!(read.first(), read.last(), "{read:?}");
    }

    /// Proves that a decision after a thousand attempts takes at most a fifth longer than one after a few, by the medians
    /// of several.
    #[ignore = "measures time; run it alone on a machine at rest"]
    #[test]
    fn a_decision_costs_as_much_after_a_thousand() {
        const MEASURED: usize = 40;
        let of_run = Preempted::new();
        let mut micros = Vec::new();
        for number in 2..1001 {
            let row = of_run.ended(number);
            let before = SystemClock.monotonic_micros();
            decide(&of_run.context, &row, None).unwrap();
            micros.push(SystemClock.monotonic_micros() - before);
            of_run.seal(row);
        }
        let median = |micros: &[i64]| {
            let mut sorted = micros.to_vec();
            sorted.sort_unstable();
            sorted[sorted.len() / 2]
        };
        let (first, last) = (median(&micros[..MEASURED]), median(&micros[micros.len() - MEASURED..]));
        assert!(last as f64 <= first as f64 * 1.2, "{first} µs at first, {last} µs at last");
    }

    /// Proves that a launcher which does not answer changes the decision of that time alone, and is looked at once for it:
    /// before, the next decisions of the process did not know the machines of the attempts either.
    #[test]
    fn a_launcher_that_does_not_answer_is_asked_again() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let run_id = world.run(&context, "exit 0", "[retry]\ninfrastructure = { attempts = 9 }\n").run_id;
        let run = context.run_by_id(run_id).unwrap();
        let decided = |number: u32, host: &str| {
            let row = AttemptRow {
                state: AttemptState::Ended,
                launcher: "local".into(),
                hosts: Some(host.into()),
                termination_reason: Some(TerminationReason::NodeFailure),
                ..AttemptRow::planned(AttemptId::new(&context.ids), number, LaunchKind::Train, &run)
            };
            context.ledger_write(|ledger| ledger.insert_attempt(&row)).unwrap();
            let why = decide(&context, &row, None).unwrap().retry.why;
            let seal = AttemptSeal::of(row);
            context.ledger_write(|ledger| ledger.seal_attempt(&seal, context.clock.now())).unwrap();
            why
        };
        let excluded = "; not on n1, which several failures had in common";
        decided(2, "n1");
        world.engine.hide_offers(2);
        decided(3, "n2");
        let without_answer = decided(4, "n1");
        assert!(!without_answer.contains(excluded), "each decision looks once: {without_answer}");
        let why = decided(5, "n1");
        assert!(why.contains(excluded), "{why}");
    }

    /// Proves that a command without a run file is never launched twice, and that an end stays the end it is.
    #[test]
    fn without_a_run_file_nothing_is_launched_again() {
        let budget = BudgetUse { name: "unknown".into(), spent: 1.0, limit: 1.0 };
        let retry = Decision::RetryEvaluator {
            rule: DecisionRule::EvaluatorAlone,
            why: String::new(),
            delay_seconds: 0.0,
            budget,
        };
        assert_eq!(once(retry).rule(), DecisionRule::NoRunFile);
        let stop = Decision::Stop {
            rule: DecisionRule::Finished,
            why: String::new(),
            budget: None,
            final_state: FinalState::Completed,
        };
        assert_eq!(once(stop.clone()), stop);
    }
}
