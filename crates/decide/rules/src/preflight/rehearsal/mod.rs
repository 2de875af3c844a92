//! Whether a model learns one batch, or a few, on the user's own script: from what the launch recorded
//! to a verdict with a diagnosis. A hundred samples that cannot be overfitted mean that the code is wrong.
//!
//! `learning` measures how far the loss fell, against the best constant prediction; `causes` holds the symptoms that
//! explain why not. Thresholds are named constants beside the rules that use them.

mod causes;
mod config;
mod learning;
mod memory;
mod resuming;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use trackway_core::checks::{CheckResult, Finding, NoRows, Severity};
use trackway_core::{Confidence, LaunchKind, Step, closed_list};
use trackway_formats::rehearsal::RehearsalFacts;

pub use config::{Measured, config_of, measured};
pub use learning::{BEATEN_SHARE, Learned, Learning, STEPS_MIN, TARGET_SHARE};
pub use memory::{TriedEntry, next_entry};

closed_list!(
    /// What is wrong with a training script; the `column` of a finding.
    Diagnosis, "diagnosis", {
        /// No parameter requires a gradient.
        NothingTrainable = "nothing_trainable",
        /// No loss is ever differentiated.
        NoBackward = "no_backward",
        /// The optimizer never makes a step.
        OptimizerNeverSteps = "optimizer_never_steps",
        /// The optimizer has the parameters of another model.
        OptimizerOfOtherParameters = "optimizer_of_other_parameters",
        /// Parameters that the optimizer was not given.
        NotInOptimizer = "not_in_optimizer",
        /// Parameters that the loss does not depend on: detached, or unused.
        DetachedFromLoss = "detached_from_loss",
        /// Parameters whose gradients are 0: dead units, or a masked loss.
        ZeroGradients = "zero_gradients",
        /// Parameters that do not change although they should.
        UnmovedParameters = "unmoved_parameters",
        /// Layers that require no gradient.
        FrozenLayers = "frozen_layers",
        /// Gradients are not set to 0 between updates.
        GradientsNotZeroed = "gradients_not_zeroed",
        /// Gradients are cut to almost nothing.
        GradientsClippedAway = "gradients_clipped_away",
        /// An update changes the parameters too much.
        LearningRateTooHigh = "learning_rate_too_high",
        /// An update changes the parameters too little.
        LearningRateTooLow = "learning_rate_too_low",
        /// NaN or infinite values in the batch.
        NanInBatch = "nan_in_batch",
        /// Every input is the same.
        ConstantInput = "constant_input",
        /// Inputs are far from zero mean and unit deviation.
        InputNotNormalised = "input_not_normalised",
        /// The loader gives one and the same batch.
        SameBatch = "same_batch",
        /// The same items come with other labels each time.
        LabelsShuffled = "labels_shuffled",
        /// Inputs and labels are of different items.
        LabelsUnpaired = "labels_unpaired",
        /// Labels below 0 or beyond the last class: often off by one.
        LabelsOutOfRange = "labels_out_of_range",
        /// Labels of a dtype that the loss function cannot use.
        LabelDtype = "label_dtype",
        /// What is to be predicted is the input itself.
        LabelsAreInputs = "labels_are_inputs",
        /// Probabilities where scores are expected.
        SoftmaxTwice = "softmax_twice",
        /// Scores where log-probabilities are expected.
        NoLogSoftmax = "no_log_softmax",
        /// Prediction and truth have different shapes.
        ShapesDiffer = "shapes_differ",
        /// The loss is a sum over the batch.
        LossSummed = "loss_summed",
        /// The model trains in evaluation mode.
        EvaluationMode = "evaluation_mode",
        /// Dropout leaves out so much that a batch cannot be learned.
        Dropout = "dropout",
        /// The script ended by an error.
        Crashed = "crashed",
        /// It is out of memory as configured, and fits with an entry of the retry plan.
        OutOfMemory = "out_of_memory",
        /// No checkpoint was committed.
        NotSaved = "not_saved",
        /// A second launch did not continue from the checkpoint.
        NotResumed = "not_resumed",
        /// The model of a second launch is not the one that was saved.
        ModelNotRestored = "model_not_restored",
        /// The optimizer of a second launch is not the one that was saved.
        OptimizerNotRestored = "optimizer_not_restored",
        /// The loss begins far from where an untrained model begins.
        InitialLoss = "initial_loss",
    }
);

/// How a launch ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ending {
    /// It completed, or ended because it was asked to.
    pub in_order: bool,
    /// Why it ended otherwise, with the most specific line, for a user.
    pub words: String,
    /// It was ended because its time was up.
    pub timed_out: bool,
}

/// What one launch left.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaunchEvidence {
    /// The reported facts.
    pub facts: RehearsalFacts,
    /// The values of every metric that may be the training loss, by name.
    pub losses: BTreeMap<String, Vec<(Step, f64)>>,
    /// Whether a metric of held-out data was recorded.
    pub validated: bool,
    /// The last step it reported.
    pub last_step: Option<Step>,
    /// The last step it committed.
    pub committed_step: Option<Step>,
    pub resumed_from_step: Option<Step>,
    pub ending: Ending,
}

/// What a rehearsal left.
#[derive(Debug, Clone, PartialEq)]
pub struct RehearsalEvidence {
    /// [`LaunchKind::OneBatch`] or [`LaunchKind::Overfit`].
    pub kind: LaunchKind,
    /// Batches that were to be repeated.
    pub batch_count: u64,
    /// The launch that learned: the last one, if it was tried again.
    pub learned: LaunchEvidence,
    /// The entries of the retry plan that it was tried again with, in order.
    pub tried: Vec<TriedEntry>,
    /// The launch that resumed; none where none was made.
    pub resumed: Option<LaunchEvidence>,
    /// The evaluator's launch on the checkpoint; none where none was made.
    pub evaluator: Option<EvaluatorTrial>,
    /// Whether these two were left out, since the first launch shows what blocks.
    pub cut_short: bool,
    /// The loss must fall to this fraction of the best constant prediction's; see [`TARGET_SHARE`].
    pub target_share: f64,
    /// The same as a loss; it takes precedence over the fraction.
    pub target_loss: Option<f64>,
}

/// How the evaluator of the run file did with the checkpoint of a rehearsal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvaluatorTrial {
    /// It ended well, and its output can be read.
    Answered,
    /// It failed, or its output cannot be read, and why.
    Failed(String),
    /// It was ended after so many seconds.
    TimedOut(u64),
}

/// The name of a rehearsal's check.
#[must_use]
pub const fn check_name(kind: LaunchKind) -> &'static str {
    match kind {
        LaunchKind::Overfit => "rehearsal.overfit",
        _ => "rehearsal.one_batch",
    }
}

/// What a cause does to the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// Certain waste: the run must not start.
    Blocks,
    /// It blocks when nothing was learned, and when it is certain also when the target was not reached; else it warns.
    Explains,
    /// It only warns.
    Warns,
    /// It is only reported.
    Tells,
}

/// Something that is wrong, and what to do.
#[derive(Debug, Clone, PartialEq)]
struct Cause {
    diagnosis: Diagnosis,
    confidence: Confidence,
    weight: Weight,
    message: String,
    action: &'static str,
}

impl Cause {
    fn finding(&self, check: &str, learning: &Learning) -> Finding {
        let failed = match learning.learned {
            Learned::NotFinite | Learned::NotAtAll => self.confidence != Confidence::Guess,
            Learned::Partly => self.confidence == Confidence::Certain,
            Learned::ToTarget | Learned::Unknown => false,
        };
        let severity = match self.weight {
            Weight::Blocks => Severity::Block,
            Weight::Explains if failed => Severity::Block,
            Weight::Explains | Weight::Warns => Severity::Warn,
            Weight::Tells => Severity::Note,
        };
        let message = format!("{} ({})", self.message, self.confidence);
        Finding::new(check, severity, message).about(self.diagnosis.as_str()).action(self.action)
    }
}

/// Evaluates a rehearsal.
///
/// The findings of a check that failed begin with the most certain; the first that has a `column` is the diagnosis, a
/// value of [`Diagnosis`].
#[must_use]
pub fn judge(evidence: &RehearsalEvidence) -> CheckResult {
    let name = check_name(evidence.kind);
    let launch = &evidence.learned;
    if launch.facts.sdk.is_none() && evidence.tried.is_empty() {
        let why = "the script did not announce support for rehearsals: it does not use Trackway's recorder, or uses an older one";
        return CheckResult::not_applicable(name, why);
    }
    let learning = Learning::of(evidence);
    if repeats_nothing(evidence, &learning) {
        let why = "the script attaches to Trackway but does not take its batches from it: iterate over `run.batches(loader)`";
        let failed = evidence.evaluator.as_ref().and_then(|trial| of_evaluator(name, trial));
        return match failed {
            Some(finding) => CheckResult::about(name, NoRows::Launch, vec![finding]).because(why),
            None => CheckResult::not_applicable(name, why),
        };
    }
    let mut causes = causes::of(evidence, &learning);
    causes.extend(resuming::of(evidence, &learning));
    causes.extend(memory::fits_with_plan(evidence));
    if launch.ending.in_order && learning.learned == Learned::Unknown && causes.is_empty() {
        return CheckResult::not_run(name, "no loss was logged: call `run.log(step, loss=…)` at each step");
    }
    if launch.ending.timed_out && learning.learned != Learned::ToTarget && causes.is_empty() {
        let steps = launch.last_step.unwrap_or(0);
        return CheckResult::not_run(
            name,
            format!("timed out after {steps} steps, before the target loss was reached"),
        );
    }
    let mut findings: Vec<Finding> = causes.iter().map(|cause| cause.finding(name, &learning)).collect();
    findings.extend(learning.finding(name));
    findings.extend(evidence.evaluator.as_ref().and_then(|trial| of_evaluator(name, trial)));
    if evidence.cut_short {
        let message = "the resume and the evaluation were not tried: what blocks is to be fixed first";
        findings.push(Finding::new(name, Severity::Note, message));
    } else if !evaluated(evidence) {
        let message =
            format!("no evaluation ran in {} steps, so the evaluation code was not tested", learning.steps);
        let action = "use `run.evaluating(step, every=…)` to decide when to evaluate: a rehearsal then evaluates at once";
        findings.push(Finding::new(name, Severity::Note, message).action(action));
    }
    CheckResult::about(name, NoRows::Launch, findings).because(learning.sentence(evidence))
}

/// What a trial of the evaluator shows: after the training it would fail in the same way.
fn of_evaluator(name: &str, trial: &EvaluatorTrial) -> Option<Finding> {
    match trial {
        EvaluatorTrial::Answered => None,
        EvaluatorTrial::Failed(why) => {
            let message = format!("the evaluator fails on the checkpoint of the rehearsal: {why}");
            let action =
                "run it on any checkpoint until it works: the result of the training is judged by it";
            Some(Finding::new(name, Severity::Block, message).about("evaluator_failed").action(action))
        }
        EvaluatorTrial::TimedOut(seconds) => {
            let message = format!("the evaluator was ended after {seconds} s, so its end was not tested");
            let action = "a smaller task set, or a larger `rehearsal_timeout` in `[preflight]`";
            Some(Finding::new(name, Severity::Note, message).action(action))
        }
    }
}

fn evaluated(evidence: &RehearsalEvidence) -> bool {
    let ran = |launch: &LaunchEvidence| {
        launch.validated || launch.facts.evaluation.as_ref().is_some_and(|evaluation| evaluation.calls > 0)
    };
    evidence.evaluator.is_some() || ran(&evidence.learned) || evidence.resumed.as_ref().is_some_and(ran)
}

/// Whether a script went through its own data to its own end. Its loss and its saves are those of a training then, and show nothing
/// about one batch; what is not finite, and what crashed, does.
fn repeats_nothing(evidence: &RehearsalEvidence, learning: &Learning) -> bool {
    let launch = &evidence.learned;
    launch.facts.batches.is_none()
        && launch.ending.in_order
        && evidence.tried.is_empty()
        && learning.learned != Learned::NotFinite
}
