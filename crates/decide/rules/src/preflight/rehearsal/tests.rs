use trackway_core::LaunchKind;
use trackway_core::checks::{CheckResult, Verdict};
use trackway_formats::rehearsal::{
    Batches, Group, Labels, Loader, LossFunction, Model, RehearsalFacts, Reload, Resources, Settings,
    StateDigests, TensorFacts, Updates,
};

use super::*;
use crate::decide::PlanEntry;
use crate::preflight::memory::Precision;

fn group(tensors: u64, elements: u64) -> Group {
    Group { tensors, elements, names: (0..tensors.min(4)).map(|number| format!("layer{number}")).collect() }
}

/// A loss that falls from `first` towards `last`, and stays there.
fn curve(first: f64, last: f64, steps: u64) -> Vec<(Step, f64)> {
    (1..=steps).map(|step| (step, last + (first - last) * 0.9_f64.powf((step - 1) as f64))).collect()
}

fn healthy_facts() -> RehearsalFacts {
    let labels = Labels { count: 64, distinct: 10, best_constant_loss: Some(2.0), ..Labels::default() };
    let digests = |model: &str| StateDigests {
        step: 100,
        models: [("Net 1".to_owned(), model.to_owned())].into(),
        optimizers: [("AdamW 1".to_owned(), "o".to_owned())].into(),
        components: vec!["model".into(), "optimizer".into()],
    };
    RehearsalFacts {
        sdk: Some("python 0.1.0".into()),
        loader: Some(Loader { batch_count: Some(100), workers: Some(4), ..Loader::default() }),
        batches: Some(Batches { taken: 1, looked_at: 3, distinct: 3, ..Batches::default() }),
        model: Some(Model { parameters: group(10, 1000), ..Model::default() }),
        inputs: vec![TensorFacts {
            name: "0".into(),
            dtype: "float32".into(),
            shape: vec![64, 20],
            mean: Some(0.1),
            stddev: Some(1.0),
            min: Some(-3.0),
            max: Some(3.0),
            ..TensorFacts::default()
        }],
        loss_function: Some(LossFunction {
            name: "cross_entropy".into(),
            reduction: "mean".into(),
            classes: Some(10),
            terms: 64,
            labels,
            first_value: Some(2.3),
            ..LossFunction::default()
        }),
        updates: Some(Updates {
            backward_count: 100,
            optimizer_steps: 100,
            optimized: group(10, 1000),
            gradient_norm: Some(1.0),
            norm_at_update: Some(1.0),
            update_ratio: Some(0.01),
            learning_rate: Some(1e-3),
            ..Updates::default()
        }),
        saved: Some(digests("m")),
        resumed: Some(digests("m")),
        ..RehearsalFacts::default()
    }
}

fn healthy() -> RehearsalEvidence {
    let launch = LaunchEvidence {
        facts: healthy_facts(),
        losses: [("loss".to_owned(), curve(2.3, 0.1, 100))].into(),
        validated: true,
        last_step: Some(100),
        committed_step: Some(100),
        resumed_from_step: None,
        ending: Ending { in_order: true, ..Ending::default() },
    };
    let resumed = LaunchEvidence { resumed_from_step: Some(100), ..launch.clone() };
    RehearsalEvidence {
        cut_short: false,
        kind: LaunchKind::OneBatch,
        batch_count: 1,
        learned: launch,
        tried: Vec::new(),
        resumed: Some(resumed),
        evaluator: None,
        target_share: TARGET_SHARE,
        target_loss: None,
    }
}

fn diagnosis(result: &CheckResult) -> Option<&str> {
    result.findings.iter().find_map(|finding| finding.column.as_deref())
}

/// Proves that a rehearsal which ended after its first launch says what was not tried, and nothing about an evaluation beside it.
#[test]
fn what_was_left_out_is_named() {
    let mut evidence = RehearsalEvidence { cut_short: true, resumed: None, ..healthy() };
    evidence.learned.validated = false;
    let notes = |evidence: &RehearsalEvidence| -> Vec<bool> {
        let found = judge(evidence).findings.into_iter().filter(|finding| finding.severity == Severity::Note);
        found.map(|finding| finding.message.contains("were not tried")).collect()
    };
    assert_eq!(notes(&evidence), [true]);
    evidence.cut_short = false;
    assert_eq!(notes(&evidence), [false]);
}

/// Proves that a script that does everything right passes, and that the result names what was looked at.
#[test]
fn a_healthy_script_passes() {
    let result = judge(&healthy());
    assert_eq!((result.verdict, result.findings.len()), (Verdict::Pass, 0), "{:#?}", result.findings);
    let why = "one batch: loss 2.300 → 0.100 in 100 steps, target 1.000; 10 of 10 parameters moved; \
               resumed from the checkpoint of step 100";
    assert_eq!(result.why.as_deref(), Some(why));
}

/// Proves that an evaluator that fails on the checkpoint blocks although the batch was learned, that one which answers counts as
/// the evaluation that ran, and that one which was ended is a note.
#[test]
fn the_evaluator_is_part_of_the_rehearsal() {
    let tried = |trial: EvaluatorTrial| {
        let mut evidence = RehearsalEvidence { evaluator: Some(trial), ..healthy() };
        evidence.learned.validated = false;
        let resumed = evidence.resumed.as_mut().unwrap();
        resumed.validated = false;
        judge(&evidence)
    };
    let answered = tried(EvaluatorTrial::Answered);
    assert_eq!((answered.verdict, answered.findings.len()), (Verdict::Pass, 0), "{:#?}", answered.findings);
    let failed = tried(EvaluatorTrial::Failed("it ended as `code_error`".into()));
    assert_eq!((failed.verdict, diagnosis(&failed)), (Verdict::Block, Some("evaluator_failed")));
    let slow = tried(EvaluatorTrial::TimedOut(600));
    assert_eq!((slow.verdict, slow.findings[0].severity), (Verdict::Pass, Severity::Note));
}

/// Proves that a script that fits with an entry of the retry plan only warns and names the variables, and that one that fails with
/// every entry blocks.
#[test]
fn out_of_memory_with_a_plan_that_fits_warns() {
    let entry = |index: usize, batch: &str| TriedEntry {
        reason: trackway_core::TerminationReason::DeviceOom,
        index,
        entries: 2,
        in_force: PlanEntry { set: [("BATCH".to_owned(), batch.to_owned())].into(), ..PlanEntry::default() },
    };
    let fits = RehearsalEvidence { tried: vec![entry(0, "32"), entry(1, "16")], ..healthy() };
    let result = judge(&fits);
    assert_eq!((result.verdict, diagnosis(&result)), (Verdict::Warn, Some("out_of_memory")));
    let message = &result.findings[0].message;
    assert!(message.contains("with entry 2 of `[retry] device_oom` it fits: BATCH=16"), "{message}");
    let mut fails = fits;
    fails.learned.ending =
        Ending { in_order: false, words: "ended as `device_oom`".into(), ..Ending::default() };
    let result = judge(&fails);
    assert_eq!((result.verdict, diagnosis(&result)), (Verdict::Block, Some("crashed")));
    let message = &result.findings[0].message;
    assert!(message.contains(", also with entry 2 of 2 of `[retry] device_oom`"), "{message}");
}

/// A fault: what it is called, what it changes in the facts, the loss it leads to, and the verdict.
type Fault = (&'static str, fn(&mut RehearsalFacts), (f64, f64), Verdict);

/// Proves that each symptom of the table leads to its diagnosis, with the verdict that it deserves: certain waste
/// blocks, what the batch could be learned with only warns.
#[test]
fn each_symptom_has_its_diagnosis() {
    fn updates(facts: &mut RehearsalFacts) -> &mut Updates {
        facts.updates.as_mut().unwrap()
    }
    fn function(facts: &mut RehearsalFacts) -> &mut LossFunction {
        facts.loss_function.as_mut().unwrap()
    }
    fn model(facts: &mut RehearsalFacts) -> &mut Model {
        facts.model.as_mut().unwrap()
    }
    fn batches(facts: &mut RehearsalFacts) -> &mut Batches {
        facts.batches.as_mut().unwrap()
    }
    let (flat, stuck, learned) = ((2.3, 2.3), (2.3, 2.0), (2.3, 0.1));
    let table: &[Fault] = &[
        ("learning_rate_too_low", |it| updates(it).update_ratio = Some(1e-9), flat, Verdict::Block),
        ("learning_rate_too_high", |it| updates(it).update_ratio = Some(3.0), (2.3, 900.0), Verdict::Block),
        ("frozen_layers", |it| model(it).frozen = group(8, 900), stuck, Verdict::Block),
        ("frozen_layers", |it| model(it).frozen = group(8, 900), (2.3, 1.2), Verdict::Warn),
        ("frozen_layers", |it| model(it).frozen = group(8, 900), learned, Verdict::Warn),
        ("nothing_trainable", |it| model(it).frozen = group(10, 1000), flat, Verdict::Block),
        ("labels_shuffled", |it| function(it).reordered = 99, stuck, Verdict::Block),
        (
            "labels_shuffled",
            |it| batches(it).reload = Some(Reload { checked: 16, labels_changed: 9, ..Reload::default() }),
            learned,
            Verdict::Block,
        ),
        (
            "labels_unpaired",
            |it| batches(it).reload = Some(Reload { checked: 16, unpaired: 9, ..Reload::default() }),
            learned,
            Verdict::Block,
        ),
        ("same_batch", |it| batches(it).distinct = 1, learned, Verdict::Block),
        (
            "input_not_normalised",
            |it| {
                it.inputs[0].stddev = Some(1e4);
                function(it).first_value = Some(9e3);
            },
            (9e3, 8e3),
            Verdict::Block,
        ),
        ("input_not_normalised", |it| it.inputs[0].mean = Some(127.0), learned, Verdict::Warn),
        ("constant_input", |it| it.inputs[0].max = Some(-3.0), stuck, Verdict::Block),
        ("nan_in_batch", |it| it.inputs[0].nan_count = 1, (f64::NAN, f64::NAN), Verdict::Block),
        ("nan_in_batch", |it| it.inputs[0].nan_count = 1, learned, Verdict::Warn),
        ("loss_summed", |it| function(it).differentiated_sum = true, learned, Verdict::Warn),
        ("gradients_not_zeroed", |it| updates(it).stale_gradients = 99, learned, Verdict::Block),
        (
            "optimizer_never_steps",
            |it| {
                *updates(it) =
                    Updates { optimizer_steps: 0, unmoved: group(10, 1000), ..updates(it).clone() };
            },
            flat,
            Verdict::Block,
        ),
        (
            "no_backward",
            |it| {
                *updates(it) = Updates {
                    backward_count: 0,
                    gradient_norm: None,
                    unmoved: group(10, 1000),
                    ..updates(it).clone()
                };
            },
            flat,
            Verdict::Block,
        ),
        ("optimizer_of_other_parameters", |it| updates(it).foreign = group(10, 1000), flat, Verdict::Block),
        ("not_in_optimizer", |it| updates(it).not_in_optimizer = group(4, 400), learned, Verdict::Block),
        ("not_in_optimizer", |it| updates(it).not_in_optimizer = group(1, 5), learned, Verdict::Warn),
        ("detached_from_loss", |it| updates(it).without_gradient = group(4, 400), learned, Verdict::Block),
        ("detached_from_loss", |it| updates(it).loss_without_graph = true, flat, Verdict::Block),
        ("zero_gradients", |it| updates(it).zero_gradient = group(9, 900), stuck, Verdict::Block),
        ("unmoved_parameters", |it| updates(it).unmoved = group(4, 400), learned, Verdict::Block),
        (
            "gradients_clipped_away",
            |it| {
                updates(it).norm_at_update = Some(1e-9);
                updates(it).update_ratio = Some(1e-9);
            },
            flat,
            Verdict::Block,
        ),
        ("softmax_twice", |it| function(it).given_probabilities = true, (2.3, 1.5), Verdict::Block),
        ("softmax_twice", |it| function(it).given_probabilities = true, learned, Verdict::Warn),
        ("no_log_softmax", |it| function(it).given_no_log_probabilities = true, learned, Verdict::Block),
        ("shapes_differ", |it| function(it).shapes_differ = true, stuck, Verdict::Block),
        ("labels_are_inputs", |it| function(it).labels_are_inputs = true, learned, Verdict::Warn),
        (
            "evaluation_mode",
            |it| {
                *model(it) = Model {
                    switching_modules: 2,
                    switched_off: 2,
                    in_evaluation_mode: true,
                    ..model(it).clone()
                };
            },
            learned,
            Verdict::Warn,
        ),
        ("dropout", |it| model(it).dropout = 0.9, (2.3, 1.2), Verdict::Warn),
        ("initial_loss", |it| function(it).first_value = Some(40.0), (40.0, 0.0), Verdict::Warn),
        // Nothing but the loss itself to go by.
        ("learning_rate_too_low", |_| {}, flat, Verdict::Block),
        ("learning_rate_too_high", |_| {}, (2.3, 900.0), Verdict::Block),
        ("learning_rate_too_high", |_| {}, (f64::NAN, f64::NAN), Verdict::Block),
        ("labels_shuffled", |_| {}, stuck, Verdict::Block),
    ];
    for (number, (name, change, (first, last), verdict)) in table.iter().enumerate() {
        let mut evidence = healthy();
        evidence.learned.losses.insert("loss".into(), curve(*first, *last, 100));
        change(&mut evidence.learned.facts);
        let result = judge(&evidence);
        let found = (diagnosis(&result), result.verdict);
        assert_eq!(found, (Some(*name), *verdict), "row {number}: {:#?}", result.findings);
    }
}

/// Proves that a crash is reported with its cause, and before everything else if labels caused it.
#[test]
fn a_crash_has_a_cause() {
    let mut evidence = healthy();
    let words = "ended as `code_error` (IndexError: Target 10 is out of bounds)".to_owned();
    evidence.learned.ending = Ending { in_order: false, words, timed_out: false };
    evidence.learned.losses.clear();
    assert_eq!(diagnosis(&judge(&evidence)), Some("crashed"));
    let function = evidence.learned.facts.loss_function.as_mut().unwrap();
    function.out_of_range = 3;
    function.labels = Labels { min: Some(1.0), max: Some(10.0), ..Labels::default() };
    let result = judge(&evidence);
    assert_eq!(diagnosis(&result), Some("labels_out_of_range"));
    assert!(result.findings[0].message.contains("they count from 1"), "{}", result.findings[0].message);
    evidence.learned.facts.loss_function.as_mut().unwrap().wrong_dtype = true;
    assert_eq!(diagnosis(&judge(&evidence)), Some("label_dtype"));
}

/// Proves that a checkpoint that does not restore everything is reported, each way.
#[test]
fn a_wrong_resume_is_reported() {
    type Change = fn(&mut RehearsalEvidence);
    fn resumed(evidence: &mut RehearsalEvidence) -> &mut LaunchEvidence {
        evidence.resumed.as_mut().unwrap()
    }
    fn state(evidence: &mut RehearsalEvidence) -> &mut StateDigests {
        resumed(evidence).facts.resumed.as_mut().unwrap()
    }
    let table: &[(&str, Change, Verdict)] = &[
        ("not_saved", |it| it.learned.committed_step = None, Verdict::Warn),
        ("not_resumed", |it| resumed(it).resumed_from_step = None, Verdict::Block),
        ("not_resumed", |it| resumed(it).ending = Ending::default(), Verdict::Block),
        ("model_not_restored", |it| *state(it).models.get_mut("Net 1").unwrap() = "x".into(), Verdict::Block),
        (
            "optimizer_not_restored",
            |it| *state(it).optimizers.get_mut("AdamW 1").unwrap() = "x".into(),
            Verdict::Warn,
        ),
        (
            "model_not_restored",
            |it| {
                resumed(it).facts.resumed = None;
                resumed(it).losses.insert("loss".into(), vec![(101, 2.2)]);
            },
            Verdict::Block,
        ),
    ];
    for (name, change, verdict) in table {
        let mut evidence = healthy();
        change(&mut evidence);
        let result = judge(&evidence);
        assert_eq!(
            (diagnosis(&result), result.verdict),
            (Some(*name), *verdict),
            "{name}: {:#?}",
            result.findings
        );
    }
}

/// Proves that a script which takes no batch from Trackway is neither judged by the loss of its training nor blamed for saving nothing
/// in it, and that an evaluator which fails on its checkpoint blocks all the same, as does a loss that is not finite.
#[test]
fn a_loop_over_its_own_batches_is_not_judged() {
    let mut evidence = healthy();
    evidence.learned.facts.batches = None;
    evidence.learned.committed_step = None;
    evidence.resumed = None;
    let result = judge(&evidence);
    assert_eq!((result.verdict, result.findings.len()), (Verdict::NotApplicable, 0));
    evidence.evaluator = Some(EvaluatorTrial::Failed("exit code 1".into()));
    assert_eq!(diagnosis(&judge(&evidence)), Some("evaluator_failed"));
    evidence.evaluator = None;
    evidence.learned.losses = [("loss".to_owned(), curve(2.3, f64::NAN, 100))].into();
    assert_eq!(judge(&evidence).verdict, Verdict::Block);
}

/// Proves that what could not be tried is never a pass: no recorder, batches that were taken past it, no loss, no time.
#[test]
fn what_was_not_tried_is_no_pass() {
    let mut evidence = healthy();
    evidence.learned.facts.sdk = None;
    assert_eq!(judge(&evidence).verdict, Verdict::NotApplicable);

    let mut evidence = healthy();
    evidence.learned.losses.clear();
    evidence.learned.facts = RehearsalFacts { sdk: Some("rust 0.1.0".into()), ..RehearsalFacts::default() };
    evidence.resumed = None;
    assert_eq!(judge(&evidence).verdict, Verdict::NotApplicable);
    evidence.learned.facts.batches = Some(Batches::default());
    assert_eq!(judge(&evidence).verdict, Verdict::NotRun);

    let mut evidence = healthy();
    evidence.learned.losses.insert("loss".into(), curve(2.3, 2.2, 7));
    evidence.learned.ending = Ending { timed_out: true, ..Ending::default() };
    assert_eq!(judge(&evidence).verdict, Verdict::NotRun);
}

/// Proves that the target is measured from the loss of the best constant answer, in the unit of the loss that was
/// recorded, over whole passes, and above what label smoothing leaves.
#[test]
fn the_target_is_measured_from_the_best_constant_answer() {
    let mut evidence = healthy();
    (evidence.kind, evidence.batch_count) = (LaunchKind::Overfit, 2);
    let losses = (1..=60).map(|step| (step, if step % 2 == 0 { 0.2 } else { 64.0 * 3.8 })).collect();
    evidence.learned.losses.insert("loss".into(), losses);
    evidence.learned.facts.loss_function.as_mut().unwrap().first_value = Some(3.8);
    let learning = Learning::of(&evidence);
    assert!((learning.best - (3.8 + 0.2 / 64.0) / 2.0).abs() < 1e-9, "{learning:?}");
    assert_eq!((learning.baseline_known, learning.learned), (true, Learned::NotAtAll));

    let function = evidence.learned.facts.loss_function.as_mut().unwrap();
    function.floor = 1.0;
    assert_eq!(Learning::of(&evidence).target, 1.0 + TARGET_SHARE * (learning.baseline - 1.0));
    evidence.target_loss = Some(1.89);
    assert_eq!(Learning::of(&evidence).learned, Learned::NotAtAll);
    evidence.target_loss = Some(1.91);
    assert_eq!(Learning::of(&evidence).learned, Learned::ToTarget);
}

/// Proves that what a rehearsal measured reaches the checks of settings, and that what it did not report stays unknown.
#[test]
fn measurements_are_handed_on() {
    let mut evidence = healthy();
    let facts = &mut evidence.learned.facts;
    facts.settings =
        Some(Settings { precision: Some("bf16".into()), clip_norm: Some(1.0), ..Settings::default() });
    facts.resources = Some(Resources { step_seconds: Some(0.5), ..Resources::default() });
    let config = config_of(&evidence.learned.facts);
    assert_eq!((config.precision, config.gradient_clip_norm), (Some(Precision::Bf16), Some(1.0)));
    assert_eq!((config.loader.and_then(|loader| loader.workers), config.seed), (Some(4), None));
    let measured = measured(&evidence.learned.facts);
    assert_eq!((measured.step_seconds, measured.peak_rss_bytes), (Some(0.5), None));
}
