use std::collections::BTreeMap;

use proptest::prelude::*;
use trackway_core::{LaunchKind, RetryOutlook, Step};

use super::*;

fn ended(reason: Reason, committed: Option<Step>) -> PastAttempt {
    PastAttempt {
        kind: LaunchKind::Train,
        rung: "100%".into(),
        reason,
        confidence: Confidence::Likely,
        retry_outlook: None,
        fingerprint: format!("{reason}: same text"),
        exception: None,
        last_committed_step: committed,
        resumed_from_step: None,
        last_step: committed,
        gpu_seconds: 3600.0,
        cost_usd: 2.0,
        seconds: 3600.0,
        plan_index: None,
        plan_reason: None,
        in_force: PlanEntry::default(),
        data_manifest: "v1".into(),
        hosts: Vec::new(),
    }
}

fn plan(entries: &[(&str, &str)]) -> Vec<PlanEntry> {
    entries
        .iter()
        .map(|(key, value)| PlanEntry {
            set: BTreeMap::from([((*key).into(), (*value).into())]),
            ..PlanEntry::default()
        })
        .collect()
}

/// The policy as it is without refills: every budget is for the whole life of the run.
fn fixed(policy: RetryPolicy) -> RetryPolicy {
    let fixed = |budget: AttemptBudget| AttemptBudget { refill_hours: None, ..budget };
    RetryPolicy {
        preempted: fixed(policy.preempted),
        infrastructure: fixed(policy.infrastructure),
        hang: fixed(policy.hang),
        timeout: fixed(policy.timeout),
        unknown: fixed(policy.unknown),
        ..policy
    }
}

fn history(attempts: &[PastAttempt]) -> History {
    History {
        attempts: attempts.to_vec(),
        data_manifest_now: "v1".into(),
        next_rung: None,
        roll_back: None,
        beside: Spent::default(),
    }
}

fn after(attempts: &[PastAttempt], policy: &RetryPolicy) -> Decision {
    decide(&history(attempts), policy, 0.5)
}

/// Proves which rule answers which end, over the first attempts of a run with the default policy.
#[test]
fn every_reason_meets_its_rule() {
    let rows = [
        (Reason::Completed, DecisionRule::Finished),
        (Reason::EarlyStopped, DecisionRule::Finished),
        (Reason::Cancelled, DecisionRule::OperatorCancelled),
        (Reason::Superseded, DecisionRule::OperatorSuperseded),
        (Reason::Fenced, DecisionRule::FencedByNewerAttempt),
        (Reason::RungRejected, DecisionRule::RungRefused),
        (Reason::BudgetExhausted, DecisionRule::BudgetExhausted),
        (Reason::Preempted, DecisionRule::Preempted),
        (Reason::NodeFailure, DecisionRule::TransientFault),
        (Reason::NetworkError, DecisionRule::TransientFault),
        (Reason::StorageError, DecisionRule::TransientFault),
        (Reason::Hang, DecisionRule::Hang),
        (Reason::Timeout, DecisionRule::Timeout),
        (Reason::Unknown, DecisionRule::UnknownReason),
        (Reason::DeviceOom, DecisionRule::NoPlanLeft),
        (Reason::HostOom, DecisionRule::NoPlanLeft),
        (Reason::NumericDivergence, DecisionRule::NoPlanLeft),
        (Reason::Unhealthy, DecisionRule::SameEndExpected),
        (Reason::DataError, DecisionRule::DataUnchanged),
        (Reason::SchemaDrift, DecisionRule::DataUnchanged),
        // Only a launch of the evaluator ends so: `the_evaluator_has_a_budget_of_retries`.
        (Reason::EvaluatorError, DecisionRule::UnknownReason),
        (Reason::CodeError, DecisionRule::SameEndExpected),
        (Reason::CheckpointError, DecisionRule::SameEndExpected),
    ];
    assert_eq!(rows.len(), Reason::ALL.len());
    for (reason, rule) in rows {
        let decision = after(&[ended(reason, Some(10))], &RetryPolicy::default());
        assert_eq!(decision.rule(), rule, "{reason}: {decision:?}");
    }
}

/// Proves that what a detector ended is launched again only if its reason has a budget.
#[test]
fn an_unhealthy_attempt_is_repeated_by_its_own_budget_only() {
    let budget = RetryPolicy::default().hang;
    let policy = RetryPolicy { by_reason: [(Reason::Unhealthy, budget)].into(), ..Default::default() };
    let decision = after(&[ended(Reason::Unhealthy, Some(10))], &policy);
    assert_eq!(decision.rule(), DecisionRule::OwnBudget, "{decision:?}");
}

/// Proves that preemptions spend no failure budget: after twenty of them, a node failure is the first of its kind.
#[test]
fn preemptions_are_free() {
    let mut attempts: Vec<_> = (1..=20).map(|step| ended(Reason::Preempted, Some(step * 100))).collect();
    attempts.push(ended(Reason::NodeFailure, Some(2100)));
    let Decision::Retry { budget, resume, .. } = after(&attempts, &RetryPolicy::default()) else {
        panic!("a first node failure is retried")
    };
    assert_eq!((budget.name.as_str(), budget.spent, resume), ("infrastructure", 1.0, true));
}

/// Proves that out of memory walks the plan once, keeps what is in force for later retries, and then stops.
#[test]
fn a_plan_is_used_in_order_and_once() {
    let policy =
        RetryPolicy { device_oom: plan(&[("BATCH", "16"), ("ACT_CKPT", "1")]), ..Default::default() };
    let mut attempts = vec![ended(Reason::DeviceOom, None)];
    for expected in [0, 1] {
        let Decision::Retry { in_force, plan_index, rule, .. } = after(&attempts, &policy) else {
            panic!("entry {expected} is left")
        };
        assert_eq!((rule, plan_index), (DecisionRule::ChangedPlan, Some(expected)));
        let mut next = ended(Reason::DeviceOom, None);
        (next.in_force, next.plan_index, next.plan_reason) = (in_force, plan_index, Some(Reason::DeviceOom));
        attempts.push(next);
    }
    assert_eq!(after(&attempts, &policy).rule(), DecisionRule::NoPlanLeft);
    attempts.last_mut().unwrap().reason = Reason::NetworkError;
    let Decision::Retry { in_force, .. } = after(&attempts, &policy) else {
        panic!("a network error is retried")
    };
    assert_eq!(in_force.set.len(), 2, "both entries stay in force");
}

/// Proves that a data error stays shut until the manifest changes, and does not reopen for data seen before.
#[test]
fn data_errors_wait_for_other_data() {
    let mut history = History {
        attempts: vec![ended(Reason::DataError, None)],
        data_manifest_now: "v2".into(),
        next_rung: None,
        roll_back: None,
        beside: Spent::default(),
    };
    assert_eq!(decide(&history, &RetryPolicy::default(), 0.0).rule(), DecisionRule::DataChanged);
    history.attempts.push(PastAttempt { data_manifest: "v2".into(), ..ended(Reason::SchemaDrift, None) });
    history.data_manifest_now = "v1".into();
    assert_eq!(decide(&history, &RetryPolicy::default(), 0.0).rule(), DecisionRule::DataSeenBefore);
}

/// Proves that a crash loop stops with budget left, that a newly committed step breaks it, and that preemptions have a
/// separate bound.
#[test]
fn a_crash_loop_stops_and_progress_breaks_it() {
    let policy = RetryPolicy::default();
    assert_eq!(after(&vec![ended(Reason::Hang, Some(50)); 4], &policy).rule(), DecisionRule::CrashLoop);
    let mut attempts = vec![ended(Reason::NetworkError, Some(50)); 6];
    assert_eq!(after(&attempts[..5], &policy).rule(), DecisionRule::TransientFault);
    assert_eq!(after(&attempts, &policy).rule(), DecisionRule::CrashLoop);
    attempts[5].last_committed_step = Some(600);
    assert_eq!(after(&attempts, &policy).rule(), DecisionRule::TransientFault);
    let preempted = vec![ended(Reason::Preempted, None); 9];
    assert_eq!(after(&preempted, &policy).rule(), DecisionRule::Preempted);
    let preempted = vec![ended(Reason::Preempted, None); 10];
    assert_eq!(after(&preempted, &policy).rule(), DecisionRule::CrashLoop);
}

/// Proves which ends count as alike without progress: the same reason, or the same text, under the same settings; failures and
/// preemptions each by themselves.
#[test]
fn ends_that_look_alike_are_counted() {
    let text = |reason, text: &str| PastAttempt { fingerprint: text.into(), ..ended(reason, None) };
    let alike = |attempts: &[PastAttempt]| {
        let last = attempts.last().unwrap();
        history(attempts).trailing_without_progress(last)
    };
    let (hang, node, network) = (Reason::Hang, Reason::NodeFailure, Reason::NetworkError);
    let preempted = || text(Reason::Preempted, "reclaimed");
    assert_eq!(alike(&[text(hang, "a"), preempted(), text(hang, "a")]), 2);
    assert_eq!(alike(&[preempted(), text(hang, "a"), preempted()]), 2);
    assert_eq!(alike(&[text(hang, "a"), text(hang, "b")]), 2, "the same reason");
    assert_eq!(alike(&[text(node, "a"), text(network, "a")]), 2, "the same text");
    assert_eq!(alike(&[text(node, "a"), text(network, "b")]), 1);
    assert_eq!(alike(&[text(node, ""), text(network, "")]), 1, "without a text they are not alike");
    let in_force =
        PlanEntry { set: BTreeMap::from([("BATCH".to_owned(), "8".to_owned())]), ..PlanEntry::default() };
    assert_eq!(alike(&[text(hang, "a"), PastAttempt { in_force, ..text(hang, "a") }]), 1, "other settings");
}

/// Proves that an evaluator is launched again up to its limit, that a training never is from that budget, and that a refilled budget is
/// reported as such.
#[test]
fn the_evaluator_has_a_budget_of_retries() {
    let policy = RetryPolicy::default();
    let failed = || PastAttempt { kind: LaunchKind::Evaluate, ..ended(Reason::EvaluatorError, None) };
    assert_eq!(after(&vec![failed(); 3], &policy).rule(), DecisionRule::EvaluatorAlone);
    assert_eq!(after(&vec![failed(); 4], &policy).rule(), DecisionRule::EvaluatorBudgetSpent);
    let wrong = PastAttempt { retry_outlook: Some(RetryOutlook::DoNotRetry), ..failed() };
    assert_eq!(after(&[wrong], &policy).rule(), DecisionRule::EvaluatorSameEnd);
    let training = ended(Reason::EvaluatorError, Some(10));
    assert_eq!(after(&[training], &policy).rule(), DecisionRule::UnknownReason);
    let why = |attempts: &[PastAttempt]| match after(attempts, &policy) {
        Decision::Retry { why, .. } => why,
        other => panic!("{other:?}"),
    };
    let lost = |step| ended(Reason::NodeFailure, Some(step));
    assert!(why(&[lost(10)]).contains("retry 1 of 5"), "{}", why(&[lost(10)]));
    let refilled = why(&[lost(10), lost(20)]);
    assert!(refilled.contains("retry 2; 1 of 5 in use after"), "{refilled}");
}

/// Proves that an exception which a second launch raises again is not launched a third time, whatever the budgets, and why; and that
/// another message, a newer step, other settings or other data are another try; numbers, addresses and paths in a message are none.
#[test]
fn the_same_exception_is_launched_once_more() {
    let budget = AttemptBudget { attempts: 9, ..RetryPolicy::default().hang };
    let policy = RetryPolicy { unknown: budget, crash_loop_attempts: 9, ..RetryPolicy::default() };
    let thrown = |text: &str| PastAttempt {
        exception: Some(text.into()),
        fingerprint: crate::classify::fingerprint(Reason::CodeError, text),
        last_step: Some(7),
        confidence: Confidence::Guess,
        ..ended(Reason::CodeError, None)
    };
    let key = || thrown("KeyError: 'target'");
    assert!(after(&[key()], &policy).launches());
    let preempted = PastAttempt { last_step: Some(3), ..ended(Reason::Preempted, None) };
    for attempts in [vec![key(), key()], vec![key(), preempted, key()]] {
        let Decision::Stop { rule, why, final_state, .. } = after(&attempts, &policy) else {
            panic!("launched")
        };
        assert_eq!((rule, final_state), (DecisionRule::SameEndExpected, FinalState::Failed));
        assert!(why.starts_with("`KeyError: 'target'` ended two launches in a row at step 7"), "{why}");
    }
    for (one, other) in [
        ("RuntimeError: <A object at 0x7f3a5c0d>", "RuntimeError: <A object at 0x7ffa12e0>"),
        ("ValueError: at 1795244400.25, pid 71", "ValueError: at 1795244477.5, pid 1234"),
        ("ValueError: bad 7f3a1c2d4e50", "ValueError: bad 7e9b00c2d4f0"),
        ("Boom: no /tmp/tmpab12cd/model.pt", "Boom: no /tmp/tmpq_x9yz/model.pt"),
        ("Boom: id 4f3a1c2d-0a1b-4c2d-8e4f-0a1b2c3d4e5f", "Boom: id aa00bb11-ffee-4ddc-9bba-112233445566"),
    ] {
        assert_eq!(
            after(&[thrown(one), thrown(other)], &policy).rule(),
            DecisionRule::SameEndExpected,
            "{one}"
        );
    }
    let in_force = plan(&[("BATCH", "8")]).remove(0);
    for other in [
        thrown("KeyError: 'label'"),
        PastAttempt { last_step: Some(8), ..key() },
        PastAttempt { last_committed_step: Some(5), ..key() },
        PastAttempt { in_force, ..key() },
        PastAttempt { data_manifest: "v2".into(), ..key() },
    ] {
        assert!(after(&[key(), other.clone()], &policy).launches(), "{other:?}");
    }
    let judged = || PastAttempt {
        kind: LaunchKind::Evaluate,
        reason: Reason::EvaluatorError,
        last_step: None,
        ..thrown("ValueError: 3 classes")
    };
    assert_eq!(after(&[judged()], &policy).rule(), DecisionRule::EvaluatorAlone);
    assert_eq!(after(&[judged(), judged()], &policy).rule(), DecisionRule::EvaluatorSameEnd);
}

/// Proves that an attempt stored by an older version, without a rung, was of all data.
#[test]
fn an_older_attempt_was_of_all_data() {
    let mut stored = serde_json::to_value(ended(Reason::Hang, None)).unwrap();
    stored.as_object_mut().unwrap().remove("rung");
    assert_eq!(serde_json::from_value::<PastAttempt>(stored).unwrap().rung, "100%");
}

/// Proves that money stops a run that every other budget would continue.
#[test]
fn money_and_gpu_time_are_the_outer_bound() {
    let attempts = vec![ended(Reason::Preempted, Some(1)), ended(Reason::Preempted, Some(2))];
    let policy = RetryPolicy { max_usd: Some(4.0), ..Default::default() };
    assert_eq!(after(&attempts, &policy).rule(), DecisionRule::MoneySpent);
    let gpu_hours = |hours| RetryPolicy { max_gpu_hours: Some(hours), ..Default::default() };
    assert_eq!(after(&attempts, &gpu_hours(2.0)).rule(), DecisionRule::GpuTimeSpent);
    assert_eq!(after(&attempts, &gpu_hours(2.5)).rule(), DecisionRule::Preempted);
}

/// Proves that the delay doubles up to its bound and that jitter moves it by at most half.
#[test]
fn backoff_doubles_within_bounds() {
    let budget = RetryPolicy::default().infrastructure;
    assert_eq!([1, 2, 3, 20].map(|retry| budget.delay_seconds(retry, 0.0)), [5.0, 10.0, 20.0, 150.0]);
    assert_eq!(budget.delay_seconds(u32::MAX, 0.999_999).round(), 300.0);
}

proptest! {
    /// Proves that whatever ends follow one another, with or without progress, the run stops by itself within the
    /// sum of its budgets, and never spends more of a budget than its limit.
    #[test]
    fn every_run_terminates_within_its_budgets(
        ends in proptest::collection::vec((0..Reason::ALL.len(), any::<bool>(), 0..3usize), 300),
        jitter in 0.0..1.0f64,
    ) {
        let policy = fixed(RetryPolicy {
            device_oom: plan(&[("A", "1"), ("B", "1")]),
            host_oom: plan(&[("C", "1")]),
            ..Default::default()
        });
        let limit = 1 + 50 + 5 + 2 + 10 + 1 + 3 + 3;
        let mut history = History { attempts: vec![], data_manifest_now: "v1".into(), next_rung: None, roll_back: None, beside: Spent::default() };
        let (mut in_force, mut taken, mut committed) = (PlanEntry::default(), None, 0);
        let mut stopped = false;
        for (reason, progress, confidence) in ends {
            committed += u64::from(progress);
            let mut attempt = ended(Reason::ALL[reason], Some(committed));
            attempt.confidence = Confidence::ALL[confidence];
            attempt.in_force = std::mem::take(&mut in_force);
            if let Some((index, why)) = std::mem::take(&mut taken) {
                (attempt.plan_index, attempt.plan_reason) = (Some(index), Some(why));
            }
            let reason = attempt.reason;
            history.attempts.push(attempt);
            match decide(&history, &policy, jitter) {
                Decision::Stop { .. } => { stopped = true; break; }
                Decision::Retry { in_force: next, plan_index, budget, delay_seconds, .. } => {
                    prop_assert!(budget.spent <= budget.limit);
                    prop_assert!((0.0..=300.0).contains(&delay_seconds));
                    in_force = next;
                    taken = plan_index.map(|index| (index, reason));
                }
                Decision::RetryEvaluator { budget, .. } => prop_assert!(budget.spent <= budget.limit),
                Decision::NextRung { .. } => prop_assert!(false, "there is no ladder"),
            }
        }
        prop_assert!(stopped && history.attempts.len() <= limit, "{} attempts", history.attempts.len());
    }
}

/// Proves that a roll back that is due goes before the other rules, spends its own budget, and gives way to a person, a
/// fence and money; and that without a place to go back to the run stops.
#[test]
fn roll_backs_have_their_own_budget() {
    use crate::checkpoints::roll_back::Back;
    let decided = |reason, spent, by_person, back: Result<Back, String>, policy: &RetryPolicy| {
        let roll_back = Some(RollBack { by_person, spent, why: "a spike".into(), back });
        let last = PastAttempt { cost_usd: 10.0, ..ended(reason, None) };
        let history = History {
            attempts: vec![last],
            data_manifest_now: "v1".into(),
            next_rung: None,
            roll_back,
            beside: Spent::default(),
        };
        decide(&history, policy, 0.0)
    };
    let policy = RetryPolicy::default();
    let back = || Ok(Back { to_step: Some(40), skip: Some("30..50".parse().unwrap()) });
    let retry = decided(Reason::NumericDivergence, 2, false, back(), &policy);
    let Decision::Retry { rule, why, budget, delay_seconds, .. } = &retry else { panic!("{retry:?}") };
    assert_eq!(
        (*rule, budget.spent, budget.limit, *delay_seconds),
        (DecisionRule::RollBackDetector, 3.0, 3.0, 0.0)
    );
    assert_eq!(why, "rolls back to the checkpoint of step 40 and skips the batches 30..50: a spike");
    let rule = |reason, spent, by_person, back, policy: &RetryPolicy| {
        decided(reason, spent, by_person, back, policy).rule()
    };
    assert_eq!(rule(Reason::NumericDivergence, 3, false, back(), &policy), DecisionRule::RollBackBudget);
    assert_eq!(rule(Reason::Unhealthy, 2, false, back(), &policy), DecisionRule::RollBackDetector);
    assert_eq!(rule(Reason::Superseded, 3, true, back(), &policy), DecisionRule::RollBackPerson);
    assert_eq!(rule(Reason::Hang, 0, false, Err("none".into()), &policy), DecisionRule::RollBackNoPlace);
    assert_eq!(rule(Reason::Cancelled, 0, false, back(), &policy), DecisionRule::OperatorCancelled);
    assert_eq!(rule(Reason::Fenced, 0, false, back(), &policy), DecisionRule::FencedByNewerAttempt);
    assert_eq!(rule(Reason::Completed, 0, false, back(), &policy), DecisionRule::Finished);
    let poor = RetryPolicy { max_usd: Some(5.0), ..RetryPolicy::default() };
    assert_eq!(rule(Reason::NumericDivergence, 0, false, back(), &poor), DecisionRule::MoneySpent);
}

/// Proves that a rung that ended leads to the next one with what is in force, unless the money is spent; and that
/// failures and checkpoints of the rung before count in no crash loop of this one.
#[test]
fn a_finished_rung_leads_to_the_next() {
    let mut last = PastAttempt { rung: "1%".into(), ..ended(Reason::Completed, Some(900)) };
    last.in_force.set.insert("BATCH".into(), "16".into());
    let next = NextRung { rung: "10%".into(), why: "it is good".into() };
    let history = History {
        attempts: vec![last.clone()],
        data_manifest_now: "v1".into(),
        beside: Spent::default(),
        next_rung: Some(next),
        roll_back: None,
    };
    let Decision::NextRung { rung, in_force, .. } = decide(&history, &RetryPolicy::default(), 0.5) else {
        panic!("a rung follows")
    };
    assert_eq!((rung.as_str(), in_force.set["BATCH"].as_str()), ("10%", "16"));
    let poor = RetryPolicy { max_usd: Some(2.0), ..RetryPolicy::default() };
    assert_eq!(decide(&history, &poor, 0.5).rule(), DecisionRule::MoneySpent);

    let at_ten = |committed| PastAttempt { rung: "10%".into(), ..ended(Reason::Preempted, committed) };
    let few = RetryPolicy { preempted_without_commit_max: 2, ..RetryPolicy::default() };
    let mut attempts = vec![PastAttempt { rung: "1%".into(), ..ended(Reason::Preempted, Some(900)) }, last];
    attempts.extend([at_ten(Some(10)), at_ten(Some(20))]);
    assert_eq!(after(&attempts, &few).rule(), DecisionRule::Preempted);
    attempts.extend([at_ten(Some(20)), at_ten(Some(20))]);
    assert_eq!(after(&attempts, &few).rule(), DecisionRule::CrashLoop);
}

/// A run that commits every ten minutes and fails at random times (exponential, mean `mtbf_hours`), five minutes of
/// each attempt for the start. Gives the hours that were committed when it ended, its attempts, and the rule that ended
/// it.
fn simulated(
    policy: &RetryPolicy,
    mtbf_hours: f64,
    goal_hours: f64,
    seed: u64,
) -> (f64, usize, DecisionRule) {
    const COMMIT_SECONDS: f64 = 600.0;
    const START_SECONDS: f64 = 300.0;
    let mut rng = trackway_core::SplitMix64::new(seed);
    let mut history = History {
        attempts: vec![],
        data_manifest_now: "v1".into(),
        next_rung: None,
        roll_back: None,
        beside: Spent::default(),
    };
    let mut committed: Step = 0;
    loop {
        let lives_seconds = -mtbf_hours * 3600.0 * (1.0 - trackway_core::Rng::next_unit(&mut rng)).ln();
        let left_seconds = goal_hours * 3600.0 - committed as f64 * COMMIT_SECONDS;
        let is_done = lives_seconds - START_SECONDS >= left_seconds;
        let trained_seconds = (lives_seconds - START_SECONDS).clamp(0.0, left_seconds);
        let resumed = (committed > 0).then_some(committed);
        committed += (trained_seconds / COMMIT_SECONDS) as Step;
        let reason = if is_done { Reason::Completed } else { Reason::NodeFailure };
        history.attempts.push(PastAttempt {
            // No two failures of a machine look alike here: a crash loop is another rule's business.
            fingerprint: format!("node {}", history.attempts.len()),
            resumed_from_step: resumed,
            last_step: Some(committed),
            seconds: START_SECONDS + trained_seconds,
            ..ended(reason, (committed > 0).then_some(committed))
        });
        let decision = decide(&history, policy, 0.5);
        if !decision.launches() {
            return (committed as f64 * COMMIT_SECONDS / 3600.0, history.attempts.len(), decision.rule());
        }
    }
}

/// Proves that a run of 54 days that fails every 3.09 hours (Llama 3 405B: 419 interruptions,
/// <https://arxiv.org/abs/2407.21783>) completes with the default budgets, and that without refills it would stop
/// within two days.
#[test]
fn a_run_of_weeks_outlives_its_failures() {
    const GOAL_HOURS: f64 = 54.0 * 24.0;
    let (mut completed, mut attempts, mut ends) = (0, 0, BTreeMap::<DecisionRule, u32>::new());
    for seed in 0..100 {
        let (hours, launched, rule) = simulated(&RetryPolicy::default(), 3.09, GOAL_HOURS, seed);
        completed += usize::from(rule == DecisionRule::Finished && hours >= GOAL_HOURS - 1.0);
        attempts += launched;
        *ends.entry(rule).or_default() += 1;
        let (hours, launched, rule) = simulated(&fixed(RetryPolicy::default()), 3.09, GOAL_HOURS, seed);
        assert_eq!((rule, launched), (DecisionRule::AttemptsSpent, 6), "seed {seed}");
        assert!(hours < 48.0, "seed {seed}: {hours}");
    }
    println!(
        "with refills {completed} of 100 runs complete, after {} attempts on average: {ends:?}",
        attempts / 100
    );
    assert!(completed >= 95, "{completed} of 100: {ends:?}");
}

/// Proves that refills do not keep a run alive that fails faster than it commits: at a failure every 20 minutes it
/// stops within a few hours, and without any commit after the first retries.
#[test]
fn refills_do_not_feed_a_storm() {
    for seed in 0..100 {
        let (hours, _, rule) = simulated(&RetryPolicy::default(), 1.0 / 3.0, 1_000.0, seed);
        assert!(
            matches!(rule, DecisionRule::AttemptsSpent | DecisionRule::CrashLoop) && hours < 24.0,
            "seed {seed}: {rule} {hours}"
        );
        let (hours, attempts, _) = simulated(&RetryPolicy::default(), 0.01, 1_000.0, seed);
        assert!(hours == 0.0 && attempts <= 6, "seed {seed}: {hours} {attempts}");
    }
}

/// Proves that a whole retry is needed, that only newly committed steps give any back, and never more than there were.
#[test]
fn only_committed_training_refills() {
    let policy = RetryPolicy {
        infrastructure: AttemptBudget {
            attempts: 2,
            refill_hours: Some(1.0),
            ..RetryPolicy::default().infrastructure
        },
        ..Default::default()
    };
    let failed = |number: u32, resumed: Option<Step>, committed: Option<Step>, hours: f64| PastAttempt {
        resumed_from_step: resumed,
        fingerprint: format!("node {number}"),
        seconds: hours * 3600.0,
        ..ended(Reason::NodeFailure, committed)
    };
    let spent = |attempts: &[PastAttempt]| match after(attempts, &policy) {
        Decision::Retry { budget, .. } => Ok(budget.spent),
        Decision::Stop { rule, .. } => Err(rule),
        other => panic!("{other:?}"),
    };
    let first = failed(1, None, Some(100), 10.0);
    assert_eq!(spent(std::slice::from_ref(&first)), Ok(1.0), "ten hours fill what was full");
    let half = failed(2, Some(100), Some(150), 0.5);
    assert_eq!(spent(&[first.clone(), half.clone()]), Ok(2.0));
    // Half an hour gave half a retry back, and the next one needs a whole one.
    assert_eq!(
        spent(&[first.clone(), half.clone(), failed(3, Some(150), Some(151), 0.1)]),
        Err(DecisionRule::AttemptsSpent)
    );
    assert_eq!(spent(&[first.clone(), half.clone(), failed(3, Some(150), Some(250), 1.0)]), Ok(2.0));
    // Steps that were committed before, however long they took, give nothing.
    let again = PastAttempt { last_step: Some(150), ..failed(3, Some(100), Some(150), 50.0) };
    assert_eq!(spent(&[first, half, again]), Err(DecisionRule::AttemptsSpent));
}

/// Proves that money and GPU time of one reason count the attempts that are retries for it, and no others; and that what
/// evaluations and rehearsals took counts for all together.
#[test]
fn money_of_a_reason_bounds_its_retries() {
    let base = RetryPolicy::default();
    let of = |max_usd, max_gpu_hours| RetryPolicy {
        infrastructure: AttemptBudget { max_usd, max_gpu_hours, ..base.infrastructure },
        ..RetryPolicy::default()
    };
    let costs = |reason, number: u32, usd: f64| PastAttempt {
        cost_usd: usd,
        gpu_seconds: usd * 3600.0,
        fingerprint: format!("{reason} {number}"),
        ..ended(reason, Some(u64::from(number) * 10))
    };
    // The first attempt does not count: it was not a retry. The third followed a preemption.
    let attempts = [
        costs(Reason::NodeFailure, 1, 9.0),
        costs(Reason::Preempted, 2, 2.0),
        costs(Reason::NetworkError, 3, 5.0),
    ];
    let rule = |policy: &RetryPolicy| after(&attempts, policy).rule();
    assert_eq!(rule(&of(Some(2.5), None)), DecisionRule::TransientFault);
    assert_eq!(rule(&of(Some(2.0), None)), DecisionRule::ReasonMoneySpent);
    assert_eq!(rule(&of(None, Some(2.0))), DecisionRule::ReasonGpuTimeSpent);
    assert_eq!(rule(&of(None, Some(2.5))), DecisionRule::TransientFault);
    let Decision::Stop { budget: Some(budget), .. } = after(&attempts, &of(Some(2.0), None)) else {
        panic!()
    };
    assert_eq!((budget.name.as_str(), budget.spent, budget.limit), ("infrastructure.max_usd", 2.0, 2.0));
    let all = RetryPolicy { max_usd: Some(17.0), ..RetryPolicy::default() };
    assert_eq!(rule(&all), DecisionRule::TransientFault);
    let history = History {
        attempts: attempts.to_vec(),
        data_manifest_now: "v1".into(),
        beside: Spent { cost_usd: 1.0, ..Spent::default() },
        next_rung: None,
        roll_back: None,
    };
    assert_eq!(decide(&history, &all, 0.5).rule(), DecisionRule::MoneySpent);
}

/// Proves that wall time bounds a run whatever its other budgets allow.
#[test]
fn wall_time_bounds_all_attempts_together() {
    let policy = RetryPolicy { max_hours: Some(1.5), ..Default::default() };
    assert!(after(&[ended(Reason::Preempted, Some(1))], &policy).launches());
    let decision = after(&[ended(Reason::Preempted, Some(1)), ended(Reason::Preempted, Some(2))], &policy);
    assert_eq!(decision.rule(), DecisionRule::TimeSpent);
}

/// Proves which budgets of all attempts together are spent, with what is said of them, and that of a budget of time a rest may count as
/// spent, while of money every cent counts.
#[test]
fn what_is_spent_is_named_with_its_limit() {
    let policy = RetryPolicy {
        max_usd: Some(3.0),
        max_gpu_hours: Some(4.0),
        max_hours: Some(2.0),
        ..Default::default()
    };
    let spent = |cost_usd, gpu_seconds, seconds, rest_seconds| {
        let spent = Spent { cost_usd, gpu_seconds, seconds };
        let found = policy.spent_budgets(spent, rest_seconds);
        found.map(|found| format!("{}: {found}", found.budget.name)).collect::<Vec<_>>()
    };
    assert!(spent(2.99, 14_399.5, 7_199.5, 0.0).is_empty());
    assert_eq!(
        spent(2.99, 14_399.5, 7_199.5, 1.0),
        ["max_gpu_hours: 4.00 of 4 GPU hours are spent", "max_hours: 2.00 of 2 hours are spent"]
    );
    assert_eq!(
        spent(3.5, 0.0, 9_000.0, 0.0),
        ["max_usd: 3.50 of 3 USD are spent", "max_hours: 2.50 of 2 hours are spent"]
    );
    let unlimited = RetryPolicy::default();
    assert_eq!(unlimited.spent_budgets(Spent { cost_usd: 1e9, ..Spent::default() }, 1.0).count(), 0);
}

/// Proves that a machine which two failures had in common is left out while there are others; that machines which
/// cannot be distinguished are treated alike; and that of the only machines a run has had none is left out.
#[test]
fn machines_that_failures_have_in_common_are_left_out() {
    let on = |reason, hosts: &[&str]| PastAttempt {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        ..ended(reason, None)
    };
    let failed = |hosts: &[&str]| on(Reason::NodeFailure, hosts);
    let excluded = |attempts: &[PastAttempt]| {
        let history = History {
            attempts: attempts.to_vec(),
            data_manifest_now: "v1".into(),
            beside: Spent::default(),
            next_rung: None,
            roll_back: None,
        };
        history.suspect_hosts()
    };
    // One machine, or always the same ones: there is nothing to choose from.
    assert!(excluded(&[failed(&["a"]), failed(&["a"])]).is_empty());
    assert!(excluded(&[failed(&["a", "b"]), failed(&["a", "b"]), failed(&["a", "b"])]).is_empty());
    // One failure each is a coincidence.
    assert!(excluded(&[failed(&["a"]), failed(&["b"])]).is_empty());
    // Two with one machine in common.
    assert_eq!(excluded(&[failed(&["a"]), failed(&["b"]), failed(&["a"])]), ["a"]);
    assert_eq!(excluded(&[failed(&["a", "b"]), failed(&["a", "c"])]), ["a"]);
    // `a` and `b` cannot be distinguished: with two spares both are left out, with one neither is.
    let both = [failed(&["a", "b"]), failed(&["a", "b"]), on(Reason::Preempted, &["c", "d"])];
    assert_eq!(excluded(&both), ["a", "b"]);
    let one_spare = [failed(&["a", "b"]), failed(&["a", "b"]), on(Reason::Preempted, &["a", "c"])];
    assert!(excluded(&one_spare).is_empty());
    // An end that is not a failure of machines names none, and what is long ago does not count.
    let code = on(Reason::CodeError, &["a"]);
    assert!(excluded(&[code.clone(), code, failed(&["b"])]).is_empty());
    let mut long_ago = vec![failed(&["a"]); 2];
    long_ago.extend(vec![on(Reason::Preempted, &["b"]); 20]);
    assert!(excluded(&long_ago).is_empty());

    let attempts = [failed(&["a"]), failed(&["b"]), failed(&["a"])];
    let Decision::Retry { exclude_hosts, why, .. } = after(&attempts, &RetryPolicy::default()) else {
        panic!("a node failure is retried")
    };
    assert_eq!(exclude_hosts, ["a"]);
    assert!(why.ends_with("; not on a, which several failures had in common"), "{why}");
}

proptest! {
    /// Proves that however many failures there are on whichever machines, those that the run needs are left to it.
    #[test]
    fn enough_machines_are_always_left(
        ends in proptest::collection::vec((any::<bool>(), proptest::collection::btree_set(0..6_u8, 1..4)), 1..30),
    ) {
        let attempts: Vec<PastAttempt> = ends
            .iter()
            .map(|(failed, hosts)| PastAttempt {
                hosts: hosts.iter().map(|host| format!("node-{host}")).collect(),
                ..ended(if *failed { Reason::NodeFailure } else { Reason::Preempted }, None)
            })
            .collect();
        let known: std::collections::BTreeSet<&String> =
            attempts.iter().flat_map(|attempt| &attempt.hosts).collect();
        let needed = attempts.last().map_or(0, |last| last.hosts.len());
        let known_count = known.len();
        let history = History { attempts: attempts.clone(), data_manifest_now: "v1".into(), next_rung: None, roll_back: None, beside: Spent::default() };
        let excluded = history.suspect_hosts();
        prop_assert!(known_count - excluded.len() >= needed, "{excluded:?} of {known_count}, {needed} needed");
    }
}

/// Proves that the document of termination reasons names every rule of a decision with what it means.
#[test]
fn every_rule_is_documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/termination-reasons.md");
    let text = std::fs::read_to_string(path).unwrap();
    for rule in DecisionRule::ALL {
        assert!(
            text.contains(&format!("| `{rule}` |")),
            "docs/termination-reasons.md has no row for `{rule}`"
        );
    }
}
