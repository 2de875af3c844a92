use trackway_core::DiagnosisVerdict;
use trackway_formats::record::RankEnd;

use super::*;

fn subject(reason: TerminationReason, seen: &[(Detector, Step)]) -> Subject {
    let seen = seen
        .iter()
        .map(|(detector, first_step)| DetectedSymptom { detector: *detector, first_step: *first_step });
    Subject { reason: Some(reason), last_step: Some(90), seen: seen.collect() }
}

/// Proves which kind each symptom leads to, at which step, and that what a person wants takes precedence.
#[test]
fn the_symptom_decides_the_kind() {
    let cases = [
        (TerminationReason::NumericDivergence, &[][..], Some((DiagnosisKind::Numeric, 90))),
        (
            TerminationReason::NumericDivergence,
            &[(Detector::LossSpike, 70)][..],
            Some((DiagnosisKind::Numeric, 70)),
        ),
        (TerminationReason::Hang, &[(Detector::Hang, 88)][..], Some((DiagnosisKind::Hang, 88))),
        (
            TerminationReason::Unhealthy,
            &[(Detector::DataStarvation, 30)][..],
            Some((DiagnosisKind::Throughput, 30)),
        ),
        (
            TerminationReason::Completed,
            &[(Detector::ThroughputDrop, 20), (Detector::NonFinite, 60)][..],
            Some((DiagnosisKind::Numeric, 60)),
        ),
        (TerminationReason::CodeError, &[][..], None),
        (TerminationReason::Unhealthy, &[(Detector::MemoryCreep, 30)][..], None),
    ];
    for (reason, seen, expected) in cases {
        let found = symptom(&subject(reason, seen), None).ok();
        let found = found.map(|found| (found.kind, found.step.unwrap()));
        assert_eq!(found, expected, "{reason} {seen:?}");
    }
    let nothing = symptom(&subject(TerminationReason::CodeError, &[]), None).unwrap_err();
    assert_eq!(nothing.instead, ["read the deciding line and the frame above it"]);
    assert!(nothing.why.contains("`code_error`"), "{}", nothing.why);
    let wanted =
        symptom(&subject(TerminationReason::CodeError, &[]), Some(DiagnosisKind::Throughput)).unwrap();
    assert_eq!((wanted.kind, wanted.why.as_str()), (DiagnosisKind::Throughput, "requested"));
}

/// Proves that a numeric diagnosis starts before the step of the symptom, that its end is past it, and that a person's steps count.
#[test]
fn the_plan_begins_before_the_symptom() {
    let at = |kind, step| Symptom { kind, step, last_step: Some(130), why: String::new() };
    let numeric = at(DiagnosisKind::Numeric, Some(100));
    let plan_of = |symptom: &Symptom, steps, from| plan(symptom, &[40, 80, 100, 120], steps, from).unwrap();
    let expected = Plan { from_step: Some(80), observe_from_step: 81, until_step: 120 };
    assert_eq!(plan_of(&numeric, None, None), expected);
    let early = Plan { from_step: Some(40), observe_from_step: 50, until_step: 120 };
    assert_eq!(plan_of(&numeric, None, Some(45)), early);
    assert_eq!(plan_of(&numeric, Some(7), None), Plan { until_step: 87, ..expected });
    assert!(plan(&numeric, &[40], None, Some(30)).unwrap_err().contains("step 30"));
    let from_nothing = plan(&numeric, &[], None, None).unwrap();
    assert_eq!(from_nothing, Plan { from_step: None, observe_from_step: 50, until_step: 120 });
    let hang = plan_of(&at(DiagnosisKind::Hang, Some(100)), None, None);
    assert_eq!(hang, Plan { from_step: Some(100), observe_from_step: 101, until_step: 121 });
    let slow = plan_of(&at(DiagnosisKind::Throughput, None), None, None);
    assert_eq!(slow, Plan { from_step: Some(120), observe_from_step: 121, until_step: 170 });
    let at_the_end = plan_of(&at(DiagnosisKind::Throughput, Some(130)), None, None);
    assert_eq!(at_the_end, Plan { from_step: Some(80), observe_from_step: 81, until_step: 130 });
}

const NUMERIC: &str = r#"{"rank": 0, "step": 23, "batch": 22, "place": "forward", "value": "NaN", "layer": "layers.2", "layer_type": "Scale",
    "operation": "log", "source": "train.py:14 in forward", "inputs": [{"min": -0.25, "max": 3.0, "mean": 0.5, "nan_count": 0}],
    "gradient": {"parameter": "layers.2.gain", "nonfinite": 3, "of": 8}}"#;

fn launched(reason: TerminationReason, last_step: Step, topics: &[(&str, &str)]) -> DiagnosisLaunch {
    let mut facts = Facts::default();
    facts.take("observed", r#"{"framework": "torch"}"#);
    topics.iter().for_each(|(about, text)| facts.take(about, text));
    DiagnosisLaunch {
        reason: Some(reason),
        evidence: "exit code 1".into(),
        last_step: Some(last_step),
        has_sdk: true,
        facts,
        ..DiagnosisLaunch::default()
    }
}

fn judged(kind: DiagnosisKind, launched: &DiagnosisLaunch) -> Finding {
    let symptom = Symptom { kind, step: Some(23), last_step: Some(90), why: String::new() };
    finding(&symptom, &Plan { from_step: Some(20), observe_from_step: 21, until_step: 43 }, launched)
}

/// Proves that the sentence names layer, operation, line, step, batch, input and gradient, and that the earliest rank counts.
#[test]
fn the_first_nan_is_named() {
    let later = NUMERIC.replace("\"rank\": 0, \"step\": 23", "\"rank\": 1, \"step\": 24");
    let both = [("numeric", later.as_str()), ("numeric", NUMERIC)];
    let found = judged(DiagnosisKind::Numeric, &launched(TerminationReason::Completed, 24, &both));
    assert_eq!((found.verdict, found.step, found.batch), (DiagnosisVerdict::Found, Some(23), Some(22)));
    assert_eq!(
        found.sentence,
        "the first NaN is the output of `log` in layer `layers.2` (Scale) at train.py:14 in forward, in step 23 on batch 22; \
         its input: -0.25 to 3, mean 0.5, 0 NaN; the first gradient that is not finite is that of `layers.2.gain` (3 of 8 parameters)"
    );
}

/// Proves that every tensor of a batch is described, with its place and its name, and that a long list is cut.
#[test]
fn each_tensor_of_the_batch_is_described() {
    let with = |tensors: &str| {
        let text = NUMERIC.replace("\"gradient\"", &format!("\"batch_tensors\": [{tensors}], \"gradient\""));
        let launched = launched(TerminationReason::Completed, 24, &[("numeric", text.as_str())]);
        judged(DiagnosisKind::Numeric, &launched).sentence
    };
    let plain = r#"{"name": "0", "min": 0.0, "max": 1.0, "mean": 0.5, "nan_count": 0}"#;
    let extreme = r#"{"name": "depth", "min": -1.0, "max": 4e9, "mean": 7.0, "nan_count": 0}"#;
    let sentence = with(&format!("{plain}, {extreme}"));
    let expected =
        "; the batch: tensor 1: 0 to 1, mean 0.5, 0 NaN, tensor 2 (`depth`): -1 to 4.00e9, mean 7, 0 NaN";
    assert!(sentence.ends_with(expected), "{sentence}");
    assert!(with(plain).ends_with("; the batch: 0 to 1, mean 0.5, 0 NaN"));
    let many = with(&[plain; 10].join(", "));
    assert!(many.contains("tensor 8: ") && many.ends_with(", 2 more"), "{many}");
}

/// Proves that without an observation the verdict says why: it did not come again, could not be seen, or the launch ended before.
#[test]
fn without_an_observation_the_verdict_says_why() {
    let verdict = |launched: &DiagnosisLaunch| judged(DiagnosisKind::Numeric, launched).verdict;
    let complete = launched(TerminationReason::Completed, 43, &[]);
    assert_eq!(verdict(&complete), DiagnosisVerdict::NotReproduced);
    assert_eq!(verdict(&launched(TerminationReason::CodeError, 21, &[])), DiagnosisVerdict::Incomplete);
    let slow = judged(DiagnosisKind::Throughput, &launched(TerminationReason::Completed, 43, &[]));
    assert_eq!(slow.verdict, DiagnosisVerdict::Incomplete);
    let silent = DiagnosisLaunch { has_sdk: false, ..complete.clone() };
    assert_eq!(verdict(&silent), DiagnosisVerdict::NotObserved);
    let other = DiagnosisLaunch { facts: Facts::default(), ..complete.clone() };
    assert_eq!(verdict(&other), DiagnosisVerdict::NotObserved);
    assert_eq!(verdict(&DiagnosisLaunch { stopped: true, ..complete }), DiagnosisVerdict::Incomplete);
    let growth = r#"{"step": 23, "batch": 22, "parameter": "head.weight", "norm": 80.0, "usual": 2.0}"#;
    let grown =
        judged(DiagnosisKind::Numeric, &launched(TerminationReason::Completed, 43, &[("growth", growth)]));
    assert_eq!(grown.verdict, DiagnosisVerdict::Found);
    assert!(grown.sentence.contains("`head.weight` grew to 40"), "{}", grown.sentence);
}

/// Proves that the slowest rank is described with the parts of its step, largest first as recorded.
#[test]
fn the_parts_of_a_step_are_named() {
    let slow = r#"{"rank": 1, "steps": 10, "step_seconds": 0.12, "by": "torch.profiler", "parts": [{"name": "data loading", "fraction": 0.83},
        {"name": "backward", "fraction": 0.1}, {"name": "optimizer", "fraction": 0.001}], "top": [{"name": "aten::mm", "fraction": 0.06}]}"#;
    let fast = r#"{"rank": 0, "steps": 10, "step_seconds": 0.02}"#;
    let both = [("throughput", slow), ("throughput", fast)];
    let found = judged(DiagnosisKind::Throughput, &launched(TerminationReason::Completed, 43, &both));
    assert_eq!(
        found.sentence,
        "a step takes 0.12 s on rank 1, median of 10: data loading 83 %, backward 10 %; most in aten::mm 6 % (by torch.profiler)"
    );
}

fn stack(rank: u32, frames: &[(&str, &str)]) -> RankStack {
    let owned = frames.iter().map(|(file, function)| ((*file).to_owned(), (*function).to_owned())).collect();
    RankStack {
        rank: Some(rank),
        name: "python3".into(),
        frames: owned,
        line: format!("rank {rank} in {}", frames[0].1),
    }
}

/// Proves that a rank that did not join is named with its last step, that without an operation the one that is behind is, also if its
/// process cannot be seen, and that none is where all are at the same step.
#[test]
fn the_rank_that_is_behind_is_named_with_its_last_step() {
    let inside = stack(0, &[("/x/torch/distributed/distributed_c10d.py", "all_reduce")]);
    let sleeping = |rank| stack(rank, &[("/x/train.py", "load")]);
    let steps = |of: &[(u32, u64)]| of.iter().copied().collect::<std::collections::BTreeMap<_, _>>();
    assert_eq!(
        missing_ranks(&[inside.clone(), sleeping(1)], &steps(&[(0, 11), (1, 11)])),
        "1 process waits in `all_reduce`, and rank 1 (last step 11) did not join: rank 1 in load"
    );
    assert_eq!(
        missing_ranks(&[sleeping(0), sleeping(1)], &steps(&[(0, 12), (1, 11)])),
        "rank 1 (last step 11) is behind the others, which recorded step 12: rank 1 in load"
    );
    assert_eq!(
        missing_ranks(&[inside], &steps(&[(0, 90), (5, 88), (6, 88)])),
        "ranks 5 (last step 88), 6 (last step 88) are behind the others, which recorded step 90"
    );
    let same = missing_ranks(&[sleeping(0), sleeping(1)], &steps(&[(0, 12), (1, 12)]));
    assert_eq!(same, "where the processes are: rank 0 in load; rank 1 in load");
}

/// Proves that after a collective's own time-out the rank that raised nothing is named, with its last step over all its segments; without
/// exceptions the one that is behind; and none where most are silent or nothing differs.
#[test]
fn the_silent_rank_is_named() {
    let end = |rank, last_step, raised| RankEnd { rank, last_step: Some(last_step), raised };
    assert_eq!(
        silent_ranks(&[end(0, 11, true), end(1, 3, false), end(1, 11, false)]).unwrap(),
        "1 rank gave up waiting, and rank 1 (last step 11) did not join"
    );
    assert_eq!(
        silent_ranks(&[end(0, 9, false), end(1, 7, false)]).unwrap(),
        "rank 1 (last step 7) is behind the others, which recorded step 9"
    );
    assert_eq!(silent_ranks(&[end(0, 9, true), end(1, 9, false), end(2, 9, false)]), None);
    assert_eq!(silent_ranks(&[end(0, 9, true), end(1, 9, true)]), None);
    assert_eq!(silent_ranks(&[]), None);
}

/// Proves that ranks outside the operation in which the others wait are named, that a script's own function of such a name is not
/// one, and what is said where all wait or none is seen.
#[test]
fn the_rank_that_did_not_join_is_named() {
    let inside = |rank| {
        stack(rank, &[("/x/torch/distributed/distributed_c10d.py", "all_reduce"), ("/x/train.py", "step")])
    };
    let outside = stack(1, &[("/x/train.py", "reduce"), ("/x/train.py", "<module>")]);
    let warnings =
        vec!["[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)".to_owned()];
    let found = hang_finding(&[inside(0), outside, inside(2)], &[], &warnings, Some(88));
    assert_eq!(
        found,
        "no progress after step 88: 2 processes wait in `all_reduce`, and rank 1 did not join: rank 1 in reduce; the log: [Rank 0] \
         Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)"
    );
    assert!(hang_finding(&[inside(0)], &[], &[], None).contains("every process that can be seen here waits"));
    assert!(hang_finding(&[], &[], &[], None).contains("could not be seen"));
    let lines = ["step 3", "x NCCL WARN Cuda failure 'out of memory' ", "epoch 2"];
    assert_eq!(collective_warnings(lines.into_iter()), ["x NCCL WARN Cuda failure 'out of memory'"]);
}

/// A rank with operations of one group: number, name, size and whether it has ended.
fn entered(rank: u32, operations: &[(u64, &str, u64, bool)]) -> String {
    let operations: Vec<serde_json::Value> = operations
        .iter()
        .map(|(number, name, size, done)| {
            serde_json::json!({"number": number, "name": name, "sizes": [[size]], "done": done, "at": format!("train.py:{}", 40 + rank)})
        })
        .collect();
    serde_json::json!({"rank": rank, "groups": [{"name": "0", "description": "default_pg", "operations": operations}]}).to_string()
}

fn hang_of(facts: &[&str]) -> String {
    let facts: Vec<(&str, &str)> = facts.iter().map(|facts| ("collectives", *facts)).collect();
    let mut hung = launched(TerminationReason::Hang, 43, &facts);
    hung.stacks = vec![stack(0, &[("/x/train.py", "item")]), stack(1, &[("/x/train.py", "load")])];
    judged(DiagnosisKind::Hang, &hung).sentence
}

/// Proves that the rank that did not enter an operation is named with where it is, although no stack shows who waits, that the newest
/// facts of a rank count, and that no rank is named for an operation in which none waits.
#[test]
fn the_rank_that_did_not_enter_an_operation_is_named() {
    let (done, pending) = (("all_reduce", 8, true), ("all_reduce", 8, false));
    let at = |number, (name, size, done): (&'static str, u64, bool)| (number, name, size, done);
    let early = entered(1, &[at(60, pending)]);
    let waits = entered(0, &[at(61, done), at(62, done), at(63, pending), at(64, pending)]);
    let away = entered(1, &[at(61, done), at(62, done)]);
    assert_eq!(
        hang_of(&[&early, &waits, &away]),
        "no progress after step 43: rank 1 did not enter operation 63 of the group `default_pg`, `all_reduce` of [8] at train.py:40, in \
         which rank 0 waits; the last one entered there was 62; rank 1 in load"
    );
    let left = away.replacen('{', "{\"finished\": true, ", 1);
    assert!(
        hang_of(&[&waits, &left]).contains("was 62; rank 1 had called `finish()` by then; rank 1 in load")
    );
    let ended = entered(0, &[at(61, done), at(62, done), at(63, done)]);
    assert!(hang_of(&[&ended, &away]).contains("where the processes are"));
    assert!(hang_of(&[&waits]).contains("where the processes are"), "one rank alone shows nothing");
}

/// Proves that ranks which entered different operations under one number are named with both, that sizes count only where they must be
/// equal, and that the first difference is the one that is named.
#[test]
fn different_operations_under_one_number_are_named() {
    let zero =
        entered(0, &[(61, "all_gather", 8, true), (62, "all_reduce", 8, true), (63, "all_reduce", 8, false)]);
    let one =
        entered(1, &[(61, "all_gather", 9, true), (62, "broadcast", 4, true), (63, "barrier", 1, false)]);
    assert_eq!(
        hang_of(&[&zero, &one]),
        "no progress after step 43: ranks entered different operations as number 62 of the group `default_pg`: `all_reduce` of [8] at \
         train.py:40 on rank 0; `broadcast` of [4] at train.py:41 on rank 1"
    );
    let other_size = entered(1, &[(62, "all_reduce", 9, true)]);
    assert!(hang_of(&[&zero, &other_size]).contains("`all_reduce` of [9] at train.py:41 on rank 1"));
}
