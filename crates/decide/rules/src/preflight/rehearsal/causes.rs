//! The symptom table: which facts of a rehearsal explain why a batch was, or was not, learned.

use Confidence::{Certain, Guess, Likely};
use trackway_core::Confidence;
use trackway_core::text::quoted_list;
use trackway_formats::rehearsal::{Group, RehearsalFacts, TensorFacts, Updates};

use super::learning::number;
use super::memory::in_vain;
use super::{Cause, Diagnosis, Learned, Learning, RehearsalEvidence, Weight};

/// Parameters without effect block from this fraction of the model on; fewer are often intended, such as an unused
/// head.
const IDLE_SHARE_BLOCKS: f64 = 0.1;
/// From this fraction on, layers without gradients have a warning.
const FROZEN_SHARE_WARNS: f64 = 0.5;
/// An update that changes the parameters by more than this fraction of their size is too large; about a thousandth is
/// usual, a few hundredths at the beginning.
const UPDATE_RATIO_HIGH: f64 = 0.3;
/// Parameters that change by more than all they are while the loss rises by half: there is no doubt. Small parameters
/// alone, as at the beginning, prove nothing.
const UPDATE_RATIO_CERTAIN: f64 = 1.0;
const RISE_CERTAIN: f64 = 1.5;
/// An update by less than this fraction of their size would take years.
const UPDATE_RATIO_LOW: f64 = 1e-5;
/// Gradients of which less than this fraction is left, and less than this norm, were clipped away. To clip large ones
/// to a norm of 1 is usual.
const CLIPPED_SHARE: f64 = 1e-3;
const CLIPPED_NORM: f64 = 1e-2;
/// Means and deviations of inputs beyond this are not normalised ones: pixels of 0 to 255 are beyond it.
const INPUT_SIZE_MAX: f64 = 30.0;
/// Inputs with deviations below this hardly differ.
const INPUT_SIZE_MIN: f64 = 1e-3;
/// From this fraction on, dropout alone can keep a batch from being learned.
const DROPOUT_HIGH: f64 = 0.5;
/// A loss that rises so many times over its beginning was thrown about.
const SPIKE: f64 = 10.0;
/// The first loss of an untrained classifier is ln C; these are added to it and multiplied with it before it is high.
const INITIAL_LOSS_ADDED: f64 = 0.5;
const INITIAL_LOSS_FACTOR: f64 = 1.5;

/// What a rule looks at.
#[derive(Clone, Copy)]
struct RuleInput<'a> {
    evidence: &'a RehearsalEvidence,
    /// Of the launch that was to learn.
    facts: &'a RehearsalFacts,
    learning: &'a Learning,
}

type Rule = fn(RuleInput<'_>) -> Option<Cause>;

/// Everything that is wrong, the most specific first.
pub(super) fn of(evidence: &RehearsalEvidence, learning: &Learning) -> Vec<Cause> {
    let rules: &[Rule] = &[
        label_dtype,
        labels_out_of_range,
        nothing_trainable,
        loss_without_graph,
        optimizer_of_other_parameters,
        no_backward,
        optimizer_never_steps,
        nan_in_batch,
        labels_shuffled,
        labels_unpaired,
        same_batch,
        labels_are_inputs,
        constant_input,
        softmax_twice,
        no_log_softmax,
        shapes_differ,
        gradients_not_zeroed,
        gradients_clipped_away,
        learning_rate_too_low,
        not_in_optimizer,
        detached_from_loss,
        frozen_layers,
        loss_summed,
        input_not_normalised,
        learning_rate_too_high,
        evaluation_mode,
        zero_gradients,
        unmoved_parameters,
        dropout,
        crashed,
        initial_loss,
    ];
    let seen = RuleInput { evidence, facts: &evidence.learned.facts, learning };
    let mut causes: Vec<Cause> = rules.iter().filter_map(|rule| rule(seen)).collect();
    if causes.iter().all(|cause| cause.weight == Weight::Tells)
        && let Some(guess) = by_the_curve(learning)
    {
        causes.insert(0, guess);
    }
    causes
}

fn cause(
    diagnosis: Diagnosis,
    confidence: Confidence,
    weight: Weight,
    message: impl Into<String>,
    action: &'static str,
) -> Option<Cause> {
    Some(Cause { diagnosis, confidence, weight, message: message.into(), action })
}

/// `3 of 26 parameters (93 % of all elements): a, b, c`.
fn share_in_words(group: &Group, all: &Group) -> String {
    let names = quoted_list(group.names.iter().take(3));
    let more = if group.tensors > 3 { " …" } else { "" };
    let percent = 100.0 * share(group, all);
    format!("{} of {} parameters ({percent:.1} % of all elements): {names}{more}", group.tensors, all.tensors)
}

fn share(group: &Group, all: &Group) -> f64 {
    group.elements as f64 / all.elements.max(1) as f64
}

fn failed(learning: &Learning) -> bool {
    matches!(learning.learned, Learned::NotFinite | Learned::NotAtAll | Learned::Partly)
}

// Labels

fn label_dtype(RuleInput { evidence, facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let function = facts.loss_function.as_ref().filter(|function| function.wrong_dtype)?;
    if evidence.learned.ending.in_order {
        return None;
    }
    let message = format!("`{}` got labels of dtype {} and failed", function.name, function.labels.dtype);
    let action = "class numbers must be int64, and targets of binary and distance losses floats";
    cause(Diagnosis::LabelDtype, Certain, Weight::Blocks, message, action)
}

fn labels_out_of_range(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let function = facts.loss_function.as_ref().filter(|function| function.out_of_range > 0)?;
    let classes = function.classes.unwrap_or(0);
    let labels = &function.labels;
    let range = match (labels.min, labels.max) {
        (Some(min), Some(max)) => format!(" (found {min} to {max})"),
        _ => String::new(),
    };
    let off_by_one = labels.max == Some(classes as f64) && labels.min >= Some(1.0);
    let hint = if off_by_one { ": they count from 1" } else { "" };
    let message = format!(
        "{} labels are not one of the {classes} classes 0 to {}{range}{hint}",
        function.out_of_range,
        classes.saturating_sub(1)
    );
    let action = "count classes from 0, and give the model as many outputs as there are classes";
    cause(Diagnosis::LabelsOutOfRange, Certain, Weight::Blocks, message, action)
}

fn labels_shuffled(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let action = "shuffle items, never labels alone: keep each label with its input";
    if let Some(function) = facts.loss_function.as_ref().filter(|function| function.reordered > 0) {
        let message = format!(
            "the labels of a repeated batch came in a different order {} times, while its inputs did not",
            function.reordered
        );
        return cause(Diagnosis::LabelsShuffled, Certain, Weight::Blocks, message, action);
    }
    let reload = facts.batches.as_ref()?.reload.as_ref().filter(|reload| reload.labels_changed > 0)?;
    let message = format!(
        "{} of {} items had a different label when they were loaded again; the inputs of {} changed",
        reload.labels_changed, reload.checked, reload.inputs_changed
    );
    let (confidence, weight) =
        if reload.inputs_changed == 0 { (Certain, Weight::Blocks) } else { (Likely, Weight::Explains) };
    cause(Diagnosis::LabelsShuffled, confidence, weight, message, action)
}

fn labels_unpaired(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let reload = facts.batches.as_ref()?.reload.as_ref().filter(|reload| reload.unpaired > 0)?;
    let message = format!(
        "{} of {} rows of a batch have another label than their items in the data set",
        reload.unpaired, reload.checked
    );
    let action = "look at the collate function: inputs and labels must keep the same order";
    cause(Diagnosis::LabelsUnpaired, Certain, Weight::Blocks, message, action)
}

fn labels_are_inputs(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    facts.loss_function.as_ref().filter(|function| function.labels_are_inputs)?;
    let message = "the labels are the model input, so copying is enough";
    let action = "shift the targets by one: predict the next token";
    cause(Diagnosis::LabelsAreInputs, Likely, Weight::Warns, message, action)
}

// Batches and inputs

fn same_batch(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let batches = facts.batches.as_ref().filter(|batches| batches.looked_at > 1 && batches.distinct == 1)?;
    if facts.loader.as_ref().is_some_and(|loader| loader.batch_count == Some(1)) {
        return None;
    }
    let message = format!("the first {} batches of the loader are one and the same", batches.looked_at);
    let action = "check the sampler and `__getitem__`: the index must determine the item";
    cause(Diagnosis::SameBatch, Certain, Weight::Blocks, message, action)
}

fn nan_in_batch(RuleInput { facts, learning, .. }: RuleInput<'_>) -> Option<Cause> {
    let in_batch = facts.batches.iter().flat_map(|batches| &batches.tensors);
    let is_bad = |tensor: &&TensorFacts| {
        tensor.nan_count > 0 || (tensor.infinite_count > 0 && learning.learned == Learned::NotFinite)
    };
    let tensor = in_batch.chain(&facts.inputs).find(is_bad)?;
    let message = format!(
        "tensor `{}` of the batch contains {} NaN and {} infinite values",
        tensor.name, tensor.nan_count, tensor.infinite_count
    );
    let action = "find the column and clean it before training: `trackway data profile` counts them";
    let weight = if failed(learning) { Weight::Blocks } else { Weight::Warns };
    cause(Diagnosis::NanInBatch, Certain, weight, message, action)
}

/// What entered the model, or else the floating-point tensors of the batch.
fn entered(facts: &RehearsalFacts) -> Vec<&TensorFacts> {
    if !facts.inputs.is_empty() {
        return facts.inputs.iter().collect();
    }
    let tensors = facts.batches.iter().flat_map(|batches| &batches.tensors);
    tensors.filter(|tensor| tensor.is_float() && tensor.shape.len() > 1).collect()
}

fn constant_input(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let inputs = entered(facts);
    let is_constant =
        |tensor: &&TensorFacts| tensor.len() > 1 && tensor.min.is_some() && tensor.min == tensor.max;
    let first = inputs.first()?;
    if !inputs.iter().all(is_constant) {
        return None;
    }
    let message = format!("every value that enters the model is {}", number(first.min.unwrap_or_default()));
    let action = "look at what loads and normalises the inputs: a scale of 0, or a failed read";
    cause(Diagnosis::ConstantInput, Certain, Weight::Blocks, message, action)
}

fn input_not_normalised(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    if facts.model.as_ref().is_some_and(|model| model.normalises_first) {
        return None;
    }
    let is_off = |tensor: &&&TensorFacts| {
        let (mean, stddev) = (tensor.mean.unwrap_or(0.0).abs(), tensor.stddev.unwrap_or(1.0));
        tensor.is_float() && (mean.max(stddev) > INPUT_SIZE_MAX || mean.max(stddev) < INPUT_SIZE_MIN)
    };
    let inputs = entered(facts);
    let tensor = inputs.iter().find(is_off)?;
    let message = format!(
        "the model input has a mean of {} and a standard deviation of {}",
        number(tensor.mean.unwrap_or_default()),
        number(tensor.stddev.unwrap_or_default())
    );
    let action = "normalise inputs to mean 0 and deviation 1, with the figures of the training part";
    cause(Diagnosis::InputNotNormalised, Likely, Weight::Explains, message, action)
}

// The loss function

fn softmax_twice(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let function = facts.loss_function.as_ref().filter(|function| function.given_probabilities)?;
    let confidence = if function.name == "cross_entropy" { Certain } else { Likely };
    let message = format!("`{}` expects logits, but gets probabilities", function.name);
    let action = "hand the scores of the last layer over, without softmax or sigmoid";
    cause(Diagnosis::SoftmaxTwice, confidence, Weight::Explains, message, action)
}

fn no_log_softmax(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let function = facts.loss_function.as_ref().filter(|function| function.given_no_log_probabilities)?;
    let message = format!("`{}` expects log-probabilities, but gets something else", function.name);
    let action = "put `log_softmax` before it, or use `cross_entropy`";
    cause(Diagnosis::NoLogSoftmax, Certain, Weight::Blocks, message, action)
}

fn shapes_differ(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let function = facts.loss_function.as_ref().filter(|function| function.shapes_differ)?;
    let shapes: Vec<String> = function.shapes.iter().map(|shape| format!("{shape:?}")).collect();
    let message = format!(
        "`{}` broadcasts the shapes {}: it compares every prediction with every target",
        function.name,
        shapes.join(" and ")
    );
    let action = "give both the same shape, as with `squeeze(-1)`";
    cause(Diagnosis::ShapesDiffer, Certain, Weight::Explains, message, action)
}

fn loss_summed(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let function =
        facts.loss_function.as_ref().filter(|function| function.differentiated_sum && function.terms > 1)?;
    let message = format!(
        "the loss is a sum over {} terms: gradients grow with the batch, and the learning rate with them",
        function.terms
    );
    let action = "use the mean, or divide by the number of terms";
    cause(Diagnosis::LossSummed, Certain, Weight::Explains, message, action)
}

fn initial_loss(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let function = facts.loss_function.as_ref()?;
    let expected = match (function.name.as_str(), function.classes) {
        ("cross_entropy" | "nll_loss", Some(classes)) if classes > 1 => (classes as f64).ln(),
        ("binary_cross_entropy" | "binary_cross_entropy_with_logits", _) => std::f64::consts::LN_2,
        _ => return None,
    };
    let first = function.first_value?;
    let (now, usual) = (number(first), number(expected));
    if first > expected * INITIAL_LOSS_FACTOR + INITIAL_LOSS_ADDED {
        let message = format!("the first loss is {now}; an untrained model should have {usual}");
        let action = "look at the scale of the inputs and of the last layer's weights";
        return cause(Diagnosis::InitialLoss, Likely, Weight::Warns, message, action);
    }
    (first < 0.5 * expected).then_some(())?;
    let message = format!("the first loss is {now}, well below the {usual} of an untrained model");
    let action = "correct for a pretrained model; otherwise look for the label among the inputs";
    cause(Diagnosis::InitialLoss, Guess, Weight::Tells, message, action)
}

// Parameters, gradients, updates

fn nothing_trainable(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let model = facts.model.as_ref()?;
    let all = model.parameters.tensors;
    if all == 0 || model.frozen.tensors < all {
        return None;
    }
    let message = format!("all {all} parameters are frozen: none has `requires_grad`");
    let action = "set `requires_grad` where the model should learn";
    cause(Diagnosis::NothingTrainable, Certain, Weight::Blocks, message, action)
}

fn loss_without_graph(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    facts.updates.as_ref().filter(|updates| updates.loss_without_graph)?;
    let message = "the loss depends on no parameter: the graph is cut everywhere";
    let action =
        "look for `detach()`, `.data`, `.item()`, `no_grad` and NumPy between the model and the loss";
    cause(Diagnosis::DetachedFromLoss, Certain, Weight::Blocks, message, action)
}

fn no_backward(RuleInput { evidence, facts, learning }: RuleInput<'_>) -> Option<Cause> {
    let updates = facts.updates.as_ref()?;
    let called = facts.model.as_ref().is_some_and(|model| model.parameters.tensors > 0);
    let learned = learning.learned == Learned::ToTarget || learning.learned == Learned::Partly;
    let began = evidence.learned.last_step > Some(1);
    if updates.backward_count > 0
        || !called
        || learned
        || !began
        || updates.gradient_norm.is_some_and(|norm| norm > 0.0)
    {
        return None;
    }
    let message = "no loss was ever differentiated";
    let action = "call `loss.backward()` before `optimizer.step()`";
    cause(Diagnosis::NoBackward, Certain, Weight::Blocks, message, action)
}

fn optimizer_never_steps(RuleInput { facts, learning, .. }: RuleInput<'_>) -> Option<Cause> {
    let (updates, model) = (facts.updates.as_ref()?, facts.model.as_ref()?);
    let moved = updates.unmoved.tensors
        < model.parameters.tensors - model.frozen.tensors.min(model.parameters.tensors);
    if updates.backward_count < 2
        || updates.optimizer_steps > 0
        || moved
        || learning.learned == Learned::ToTarget
    {
        return None;
    }
    let message = format!("`backward` ran {} times, but no optimizer took a step", updates.backward_count);
    let action = "call `optimizer.step()` after `loss.backward()`";
    cause(Diagnosis::OptimizerNeverSteps, Certain, Weight::Blocks, message, action)
}

fn optimizer_of_other_parameters(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let (updates, model) = (facts.updates.as_ref()?, facts.model.as_ref()?);
    let (optimized, foreign) = (updates.optimized.tensors, updates.foreign.tensors);
    if optimized == 0 || foreign < optimized || model.parameters.tensors == 0 {
        return None;
    }
    let message =
        format!("the optimizer changes {optimized} parameters, and none of them belongs to the model");
    let action =
        "create the optimizer from the parameters of the trained model, after the model is moved or wrapped";
    cause(Diagnosis::OptimizerOfOtherParameters, Certain, Weight::Blocks, message, action)
}

/// A group of idle parameters: blocks when it is a good part of the model.
fn idle(
    diagnosis: Diagnosis,
    group: &Group,
    facts: &RehearsalFacts,
    what: &str,
    action: &'static str,
) -> Option<Cause> {
    let all = &facts.model.as_ref()?.parameters;
    if group.tensors == 0 {
        return None;
    }
    let weight = if share(group, all) >= IDLE_SHARE_BLOCKS { Weight::Blocks } else { Weight::Warns };
    cause(diagnosis, Certain, weight, format!("{what}: {}", share_in_words(group, all)), action)
}

fn not_in_optimizer(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let updates = facts.updates.as_ref()?;
    let action = "pass them to the optimizer, or set `requires_grad` to false if they should stay frozen";
    idle(Diagnosis::NotInOptimizer, &updates.not_in_optimizer, facts, "no optimizer has", action)
}

fn detached_from_loss(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let updates = facts.updates.as_ref()?;
    let action =
        "look for `detach()`, `.data`, `no_grad` and NumPy in the forward pass; remove unused layers";
    idle(Diagnosis::DetachedFromLoss, &updates.without_gradient, facts, "no gradient ever reaches", action)
}

fn zero_gradients(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let updates = facts.updates.as_ref()?;
    let action =
        "look for dead units (a large learning rate, inputs far from 0) and for a loss that is masked";
    let idle =
        idle(Diagnosis::ZeroGradients, &updates.zero_gradient, facts, "gradients are always 0 of", action)?;
    Some(Cause { weight: if idle.weight == Weight::Blocks { Weight::Explains } else { idle.weight }, ..idle })
}

fn unmoved_parameters(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let updates = facts.updates.as_ref()?;
    let explained =
        updates.not_in_optimizer.tensors + updates.without_gradient.tensors + updates.zero_gradient.tensors;
    if updates.optimizer_steps == 0 || updates.unmoved.tensors <= explained {
        return None;
    }
    let action = "look at the learning rate of their group";
    idle(Diagnosis::UnmovedParameters, &updates.unmoved, facts, "never changed", action)
}

fn frozen_layers(RuleInput { facts, learning, .. }: RuleInput<'_>) -> Option<Cause> {
    let model = facts.model.as_ref()?;
    if model.frozen.tensors == 0 {
        return None;
    }
    let part = share(&model.frozen, &model.parameters);
    let message = format!("frozen are {}", share_in_words(&model.frozen, &model.parameters));
    let action = "correct if the frozen part is pretrained; otherwise set `requires_grad`";
    let (confidence, weight) = match failed(learning) {
        true => (Likely, Weight::Explains),
        false if part >= FROZEN_SHARE_WARNS => (Likely, Weight::Warns),
        false => (Certain, Weight::Tells),
    };
    cause(Diagnosis::FrozenLayers, confidence, weight, message, action)
}

fn gradients_not_zeroed(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let updates = facts.updates.as_ref()?;
    let (stale, steps) = (updates.stale_gradients, updates.optimizer_steps);
    if stale == 0 || 2 * stale < steps.saturating_sub(1) {
        return None;
    }
    let message = format!("{stale} of {steps} updates still included gradients of earlier steps");
    let action = "call `optimizer.zero_grad()` once for each `optimizer.step()`";
    cause(Diagnosis::GradientsNotZeroed, Certain, Weight::Blocks, message, action)
}

fn gradients_clipped_away(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let updates = facts.updates.as_ref()?;
    let (norm, left) = clipped_away(updates)?;
    let message = format!("gradients with a norm of {} are cut to {}", number(norm), number(left));
    let action = "clip to a norm of about 1";
    cause(Diagnosis::GradientsClippedAway, Certain, Weight::Explains, message, action)
}

/// The norms of the gradients before and after they were clipped to almost nothing.
fn clipped_away(updates: &Updates) -> Option<(f64, f64)> {
    let (norm, left) = (updates.gradient_norm?, updates.norm_at_update?);
    (left < CLIPPED_SHARE * norm && left < CLIPPED_NORM).then_some((norm, left))
}

fn learning_rate_too_high(RuleInput { facts, learning, .. }: RuleInput<'_>) -> Option<Cause> {
    let ratio = facts.updates.as_ref()?.update_ratio?;
    let thrown = learning.worst > SPIKE * learning.first;
    if ratio < UPDATE_RATIO_HIGH || !(failed(learning) || thrown) {
        return None;
    }
    let message = format!(
        "an update changes the parameters by {} of their size, with a learning rate of {}; the loss rose to {}",
        number(ratio),
        number(facts.updates.as_ref()?.learning_rate.unwrap_or_default()),
        number(learning.worst)
    );
    let rose = failed(learning) && learning.worst > RISE_CERTAIN * learning.first;
    let certain = ratio > UPDATE_RATIO_CERTAIN && (rose || thrown);
    let (confidence, weight) = if certain { (Certain, Weight::Blocks) } else { (Likely, Weight::Explains) };
    let action = "divide the learning rate by 10, and again";
    cause(Diagnosis::LearningRateTooHigh, confidence, weight, message, action)
}

fn learning_rate_too_low(RuleInput { facts, learning, .. }: RuleInput<'_>) -> Option<Cause> {
    let updates = facts.updates.as_ref()?;
    let ratio = updates.update_ratio?;
    let has_gradients = updates.gradient_norm.is_some_and(|norm| norm > 0.0);
    if ratio <= 0.0
        || ratio > UPDATE_RATIO_LOW
        || !failed(learning)
        || clipped_away(updates).is_some()
        || !has_gradients
    {
        return None;
    }
    let message = format!(
        "an update changes the parameters by {} of their size at most, with a learning rate of {}",
        number(ratio),
        number(updates.learning_rate.unwrap_or_default())
    );
    let action = "multiply the learning rate by 10, and again; look at the schedule where it warms up slowly";
    cause(Diagnosis::LearningRateTooLow, Certain, Weight::Explains, message, action)
}

// Modes

fn evaluation_mode(RuleInput { facts, .. }: RuleInput<'_>) -> Option<Cause> {
    let model = facts.model.as_ref().filter(|model| model.switched_off > 0)?;
    let message = format!(
        "{} of {} dropout and batch-norm modules were in evaluation mode while the model trained",
        model.switched_off, model.switching_modules
    );
    let confidence = if model.in_evaluation_mode { Certain } else { Likely };
    let action = "call `model.train()` after each evaluation; right only where they are frozen on purpose";
    cause(Diagnosis::EvaluationMode, confidence, Weight::Warns, message, action)
}

fn dropout(RuleInput { facts, learning, .. }: RuleInput<'_>) -> Option<Cause> {
    let model = facts.model.as_ref().filter(|model| model.dropout >= DROPOUT_HIGH)?;
    if !failed(learning) {
        return None;
    }
    let message = format!("dropout is {:.0} %", 100.0 * model.dropout);
    let action = "rehearse without dropout: the batch should be memorized";
    cause(Diagnosis::Dropout, Guess, Weight::Warns, message, action)
}

fn crashed(RuleInput { evidence, .. }: RuleInput<'_>) -> Option<Cause> {
    let ending = &evidence.learned.ending;
    if ending.in_order || ending.timed_out {
        return None;
    }
    let message = format!("the script {}{}", ending.words, in_vain(&evidence.tried));
    cause(Diagnosis::Crashed, Certain, Weight::Blocks, message, "fix it: the run would end the same way")
}

/// The shape of the loss alone, where nothing else was seen.
fn by_the_curve(learning: &Learning) -> Option<Cause> {
    let (diagnosis, message, action) = match learning.learned {
        Learned::NotFinite => (
            Diagnosis::LearningRateTooHigh,
            "the loss was finite and then was not",
            "divide the learning rate by 10; look for a logarithm or a division of 0",
        ),
        Learned::NotAtAll if learning.is_flat() => (
            Diagnosis::LearningRateTooLow,
            "the loss does not move at all",
            "multiply the learning rate by 10; look for frozen layers and a missing update",
        ),
        Learned::NotAtAll if learning.worst > 2.0 * learning.first => (
            Diagnosis::LearningRateTooHigh,
            "the loss rises and does not recover",
            "divide the learning rate by 10",
        ),
        Learned::NotAtAll => (
            Diagnosis::LabelsShuffled,
            "the loss stays at that of a predictor that ignores the input",
            "check that each label belongs to its input",
        ),
        _ => return None,
    };
    cause(diagnosis, Guess, Weight::Explains, message, action)
}
