//! What a training process reports in a rehearsal, a launch of kind `one_batch` or `overfit`: the values that the
//! recorders write and Trackway reads (docs/formats/rehearsal.md).
//!
//! It reports them in events of the flight record. One, [`EventKind::RehearsalHandshake`], shows that rehearsals are
//! supported at all. Events of kind [`EventKind::RehearsalFacts`] hold one [`Fact`] each, as JSON; the last one about a
//! topic counts. Nothing here is a conclusion: numbers and names only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::EventKind;

/// The metric under which a recorder writes the loss of a step that it saw by itself.
pub const SEEN_LOSS: &str = "trackway/rehearsal/loss";
/// The value of `honours` of a recorder that supports both kinds.
pub const HONOURED_KINDS: &str = "one_batch,overfit";
/// Names in one [`Group`] at most; a model may have thousands of tensors.
pub const GROUP_NAMES_MAX: usize = 16;

/// Losses of the two networks of a GAN, as PyTorch's tutorial names them.
const OF_PLAYERS: [&str; 2] = ["loss_d", "loss_g"];

/// How likely a metric of this name is the training loss: 0 is none, and the highest one is taken.
#[must_use]
pub fn loss_rank(name: &str) -> u8 {
    let held_out = ["val", "eval", "test", "dev"].iter().any(|word| name.starts_with(word));
    match name {
        "loss" => 4,
        SEEN_LOSS => 3,
        _ if held_out => 0,
        "train_loss" | "training_loss" | "train/loss" => 2,
        _ if name.ends_with("loss") || OF_PLAYERS.iter().any(|one| name.eq_ignore_ascii_case(one)) => 1,
        _ => 0,
    }
}

/// One topic that a training process speaks about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", content = "facts", rename_all = "snake_case")]
pub enum Fact {
    /// How batches are loaded.
    Loader(Loader),
    /// The batches that are repeated.
    Batches(Batches),
    /// The modules that were trained.
    Model(Model),
    /// What entered the model at its first call.
    Inputs(Vec<TensorFacts>),
    /// The loss function, where its call was seen.
    LossFunction(LossFunction),
    /// Gradients and updates.
    Updates(Updates),
    /// Settings that show in the process.
    Settings(Settings),
    /// Memory and time.
    Resources(Resources),
    Saved(StateDigests),
    /// The state that a second launch began with.
    Resumed(StateDigests),
    /// Whether an evaluation was seen.
    Evaluation(Evaluation),
    /// The loss on uninformative inputs.
    Probe(Probe),
}

/// Everything a launch reported. `None`: not reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RehearsalFacts {
    /// What the recorder calls itself, such as `python 0.1.0`; none: it honours no rehearsals.
    pub sdk: Option<String>,
    /// See [`Fact::Loader`].
    pub loader: Option<Loader>,
    /// See [`Fact::Batches`].
    pub batches: Option<Batches>,
    /// See [`Fact::Model`].
    pub model: Option<Model>,
    /// See [`Fact::Inputs`].
    pub inputs: Vec<TensorFacts>,
    /// See [`Fact::LossFunction`].
    pub loss_function: Option<LossFunction>,
    /// See [`Fact::Updates`].
    pub updates: Option<Updates>,
    /// See [`Fact::Settings`].
    pub settings: Option<Settings>,
    /// See [`Fact::Resources`].
    pub resources: Option<Resources>,
    /// See [`Fact::Saved`].
    pub saved: Option<StateDigests>,
    /// See [`Fact::Resumed`].
    pub resumed: Option<StateDigests>,
    /// See [`Fact::Evaluation`].
    pub evaluation: Option<Evaluation>,
    /// See [`Fact::Probe`].
    pub probe: Option<Probe>,
    /// Topics that could not be read: of a newer recorder, or damaged.
    pub unreadable: Vec<String>,
}

impl RehearsalFacts {
    /// Takes one fact over; a later one about the same topic replaces an earlier one.
    pub fn take(&mut self, fact: Fact) {
        match fact {
            Fact::Loader(it) => self.loader = Some(it),
            Fact::Batches(it) => self.batches = Some(it),
            Fact::Model(it) => self.model = Some(it),
            Fact::Inputs(it) => self.inputs = it,
            Fact::LossFunction(it) => self.loss_function = Some(it),
            Fact::Updates(it) => self.updates = Some(it),
            Fact::Settings(it) => self.settings = Some(it),
            Fact::Resources(it) => self.resources = Some(it),
            Fact::Saved(it) => self.saved = Some(it),
            Fact::Resumed(it) => self.resumed = Some(it),
            Fact::Evaluation(it) => self.evaluation = Some(it),
            Fact::Probe(it) => self.probe = Some(it),
        }
    }

    /// Takes an event of the record over, if it is one of a rehearsal.
    pub fn take_event(&mut self, kind: &str, fields: &[(String, String)]) {
        let field = |name: &str| fields.iter().find(|(found, _)| found == name).map(|(_, value)| &**value);
        match kind.parse() {
            Ok(EventKind::RehearsalHandshake) => {
                let (sdk, version) = (field("sdk").unwrap_or("?"), field("version").unwrap_or("?"));
                self.sdk = Some(format!("{sdk} {version}"));
            }
            Ok(EventKind::RehearsalFacts) => {
                let (about, facts) = (field("about").unwrap_or_default(), field("facts").unwrap_or_default());
                match parse(about, facts) {
                    Some(fact) => self.take(fact),
                    None => self.unreadable.push(about.into()),
                }
            }
            _ => {}
        }
    }
}

fn parse(about: &str, facts: &str) -> Option<Fact> {
    let facts: serde_json::Value = serde_json::from_str(facts).ok()?;
    serde_json::from_value(serde_json::json!({ "about": about, "facts": facts })).ok()
}

/// How batches are loaded: the settings of PyTorch's `DataLoader`, where it is one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Loader {
    pub class: String,
    /// Items of a batch.
    pub batch_size: Option<u64>,
    /// Batches of an epoch.
    pub batch_count: Option<u64>,
    /// Processes that load.
    pub workers: Option<u32>,
    /// Processors that this process may use.
    pub cpus: Option<u32>,
    /// Whether batches are put into memory that a device can read by itself.
    pub pin_memory: Option<bool>,
    /// Batches that each worker prepares ahead.
    pub prefetch: Option<u32>,
    /// Whether workers live through epochs.
    pub persistent_workers: Option<bool>,
    /// Whether the order is shuffled again in each epoch.
    pub shuffles: Option<bool>,
}

/// The batches that a rehearsal repeats.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Batches {
    /// How many are repeated.
    pub taken: u64,
    /// How many were compared.
    pub looked_at: u64,
    /// How many of these differ.
    pub distinct: u64,
    /// The tensors of the first batch.
    pub tensors: Vec<TensorFacts>,
    /// The same items loaded twice.
    pub reload: Option<Reload>,
}

/// What happened when the same items were loaded twice. Counts are of rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reload {
    /// Items that were loaded twice.
    pub checked: u64,
    /// Whose inputs differ: usually an augmentation.
    pub inputs_changed: u64,
    /// Whose labels differ.
    pub labels_changed: u64,
    /// That the batch pairs with another label than the data set does.
    pub unpaired: u64,
}

/// Statistics of a tensor. NaN and infinities are counted, and are in none of the other numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TensorFacts {
    /// Its place in the batch, such as `0` or `pixel_values`.
    pub name: String,
    /// Its dtype, such as `float32`.
    pub dtype: String,
    pub shape: Vec<u64>,
    pub mean: Option<f64>,
    /// Standard deviation.
    pub stddev: Option<f64>,
    /// Least value.
    pub min: Option<f64>,
    /// Greatest value.
    pub max: Option<f64>,
    /// Values that are not a number.
    pub nan_count: u64,
    /// Values that are infinite.
    pub infinite_count: u64,
}

impl TensorFacts {
    /// Of numbers that a program has in memory; `shape` is theirs.
    #[must_use]
    pub fn of(name: &str, values: &[f32], shape: &[u64]) -> Self {
        let finite = || values.iter().filter(|value| value.is_finite()).map(|value| f64::from(*value));
        let count = finite().count() as f64;
        let mean = finite().sum::<f64>() / count;
        let variance = finite().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let known = |value: f64| Some(value).filter(|value| value.is_finite());
        Self {
            name: name.into(),
            dtype: "float32".into(),
            shape: shape.to_vec(),
            mean: known(mean),
            stddev: known(variance.sqrt()),
            min: known(finite().fold(f64::INFINITY, f64::min)),
            max: known(finite().fold(f64::NEG_INFINITY, f64::max)),
            nan_count: values.iter().filter(|value| value.is_nan()).count() as u64,
            infinite_count: values.iter().filter(|value| value.is_infinite()).count() as u64,
        }
    }

    /// Whether its values are floating-point numbers.
    #[must_use]
    pub fn is_float(&self) -> bool {
        self.dtype.contains("float")
    }

    /// How many values it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Some of a model's tensors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    pub tensors: u64,
    /// How many numbers they hold together.
    pub elements: u64,
    /// The names of the first [`GROUP_NAMES_MAX`].
    pub names: Vec<String>,
}

impl LossFunction {
    /// The mean cross-entropy over class numbers, whose first value was `first_value`.
    #[must_use]
    pub fn cross_entropy(classes: u64, labels: &[u32], first_value: f64) -> Self {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        labels.iter().for_each(|label| *counts.entry(*label).or_default() += 1);
        let shares = counts.values().map(|count| *count as f64 / labels.len() as f64);
        let entropy = -shares.map(|share| share * share.ln()).sum::<f64>();
        Self {
            name: "cross_entropy".into(),
            reduction: "mean".into(),
            classes: Some(classes),
            terms: labels.len() as u64,
            labels: Labels {
                dtype: "uint32".into(),
                count: labels.len() as u64,
                distinct: counts.len() as u64,
                min: counts.first_key_value().map(|(label, _)| f64::from(*label)),
                max: counts.last_key_value().map(|(label, _)| f64::from(*label)),
                best_constant_loss: (!labels.is_empty()).then_some(entropy),
            },
            first_value: Some(first_value).filter(|value| value.is_finite()),
            out_of_range: labels.iter().filter(|label| u64::from(**label) >= classes).count() as u64,
            ..Self::default()
        }
    }
}

impl Group {
    /// Adds a tensor.
    pub fn add(&mut self, name: &str, elements: u64) {
        self.tensors += 1;
        self.elements += elements;
        if self.names.len() < GROUP_NAMES_MAX {
            self.names.push(name.into());
        }
    }
}

/// The modules that were trained.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Model {
    pub classes: Vec<String>,
    pub parameters: Group,
    /// Those that require no gradient.
    pub frozen: Group,
    /// The greatest fraction that a dropout in it leaves out.
    pub dropout: f64,
    /// Modules that act differently in evaluation: dropout and batch norm.
    pub switching_modules: u64,
    /// How many of these were in evaluation mode while a loss was differentiated.
    pub switched_off: u64,
    /// Whether the model itself was in evaluation mode then.
    pub in_evaluation_mode: bool,
    /// Whether the first thing done to its input is a normalisation.
    pub normalises_first: bool,
}

/// How the true values of a batch are spread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Labels {
    pub dtype: String,
    /// How many there are in the repeated batches.
    pub count: u64,
    /// Different ones.
    pub distinct: u64,
    pub min: Option<f64>,
    /// Greatest.
    pub max: Option<f64>,
    /// The loss of the best answer that does not look at the input: the entropy of class labels in nats, the variance
    /// for a squared error, the mean distance to the median for an absolute one.
    pub best_constant_loss: Option<f64>,
}

/// A loss function that was called in training.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LossFunction {
    /// Its name, such as `cross_entropy`.
    pub name: String,
    /// `mean`, `sum` or `none`.
    pub reduction: String,
    /// Classes that it predicts.
    pub classes: Option<u64>,
    /// Values that a sum goes over.
    pub terms: u64,
    /// The true values.
    pub labels: Labels,
    /// Its first value, as a mean over the terms.
    pub first_value: Option<f64>,
    /// What the loss cannot go below: label smoothing.
    pub floor: f64,
    /// Whether the loss that was differentiated is the sum over all terms.
    pub differentiated_sum: bool,
    /// Whether what must be scores are probabilities already.
    pub given_probabilities: bool,
    /// Whether what must be log-probabilities is something else.
    pub given_no_log_probabilities: bool,
    /// Whether prediction and truth have different shapes, which are broadcast.
    pub shapes_differ: bool,
    /// The shapes of prediction and truth.
    pub shapes: Vec<Vec<u64>>,
    /// Labels below 0 or beyond the last class.
    pub out_of_range: u64,
    /// How often the labels of a repeated batch came in another order than at first, or than the batch has them.
    pub reordered: u64,
    /// How often they were other ones than at first.
    pub changed: u64,
    /// Whether the labels are what entered the model.
    pub labels_are_inputs: bool,
    /// Whether the dtype of the labels is one that the function cannot mean, such as floats for classes.
    pub wrong_dtype: bool,
}

/// Gradients and updates. Groups are of parameters that require a gradient.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Updates {
    /// How often a loss was differentiated.
    pub backward_count: u64,
    /// How often an optimizer made a step.
    pub optimizer_steps: u64,
    /// The classes of the optimizers.
    pub optimizers: Vec<String>,
    /// Parameters that optimizers change.
    pub optimized: Group,
    /// Parameters of the model that no optimizer has.
    pub not_in_optimizer: Group,
    /// Parameters that an optimizer has, and that belong to no model that was called.
    pub foreign: Group,
    /// Parameters that never got a gradient.
    pub without_gradient: Group,
    /// Parameters whose gradients were always 0.
    pub zero_gradient: Group,
    /// Parameters whose gradients were NaN or infinite.
    pub nonfinite_gradient: Group,
    /// Parameters that never changed.
    pub unmoved: Group,
    /// Steps of an optimizer whose gradients still held those of the step before.
    pub stale_gradients: u64,
    /// The norm of all gradients at the first update, as differentiated.
    pub gradient_norm: Option<f64>,
    /// The same when the optimizer took them: less when they were clipped.
    pub norm_at_update: Option<f64>,
    /// The greatest change of one update against the size of the parameters, both as norms over all of them.
    pub update_ratio: Option<f64>,
    pub first_learning_rate: Option<f64>,
    /// The greatest learning rate.
    pub learning_rate: Option<f64>,
    /// Whether the loss had no graph to differentiate.
    pub loss_without_graph: bool,
}

/// Settings that show in the process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The type of the matrix products: `fp32`, `bf16`, `fp16`.
    pub precision: Option<String>,
    /// Whether a gradient scaler was used.
    pub grad_scaler: Option<bool>,
    /// Whether a scheduler changes the learning rate.
    pub scheduler: Option<bool>,
    /// The norm that gradients were cut to, where they were.
    pub clip_norm: Option<f64>,
    /// Devices that parameters are on.
    pub devices: Option<u32>,
    /// The steps that the script means to make.
    pub total_steps: Option<u64>,
    /// Whether the model is compiled (`torch.compile`).
    pub compiled: Option<bool>,
    /// Seconds of compiling up to the end of the first step.
    pub compile_seconds: Option<f64>,
    /// Seconds of compiling after it.
    pub recompile_seconds: Option<f64>,
}

/// Memory and time of one process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// The most memory of the host it held.
    pub peak_rss_bytes: Option<u64>,
    /// The most that tensors took of a device.
    pub peak_device_bytes: Option<u64>,
    /// The most that the allocator held of a device.
    pub peak_device_reserved_bytes: Option<u64>,
    /// Seconds of a step, as the median without the first ones.
    pub step_seconds: Option<f64>,
    /// Seconds until the first batch was there.
    pub first_batch_seconds: Option<f64>,
    /// Seconds until each further batch was there, as the mean.
    pub batch_seconds: Option<f64>,
}

/// A training state, as digests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateDigests {
    /// The step after which it was measured.
    pub step: u64,
    /// Of each module, by name.
    pub models: BTreeMap<String, String>,
    pub optimizers: BTreeMap<String, String>,
    /// The components that the script names.
    pub components: Vec<String>,
}

/// Whether an evaluation was seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evaluation {
    /// Calls of a model in evaluation mode without gradients.
    pub calls: u64,
}

/// The loss of a batch with uninformative inputs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probe {
    /// Of the batch as it is.
    pub loss: Option<f64>,
    /// Of the same with zeros as inputs.
    pub zeroed: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(about: &str, facts: &str) -> Vec<(String, String)> {
        vec![("about".into(), about.into()), ("facts".into(), facts.into())]
    }

    /// Proves that facts are read as a script writes them, that the last one about a topic counts, that unknown fields
    /// are skipped, and that unknown topics are reported and not skipped.
    #[test]
    fn facts_are_taken_from_events() {
        let mut facts = RehearsalFacts::default();
        facts.take_event(
            EventKind::RehearsalHandshake.as_str(),
            &[("sdk".into(), "python".into()), ("version".into(), "1.2".into())],
        );
        facts.take_event(EventKind::RehearsalFacts.as_str(), &event("resources", r#"{"step_seconds": 0.5}"#));
        facts.take_event(
            EventKind::RehearsalFacts.as_str(),
            &event("resources", r#"{"step_seconds": 0.25, "newer": 1}"#),
        );
        facts.take_event(
            EventKind::RehearsalFacts.as_str(),
            &event("inputs", r#"[{"name": "0", "dtype": "float32", "shape": [2, 3]}]"#),
        );
        facts.take_event(EventKind::RehearsalFacts.as_str(), &event("weather", "{}"));
        facts.take_event(EventKind::RehearsalFacts.as_str(), &event("loader", "{"));
        facts.take_event("epoch_finished", &[]);
        assert_eq!(facts.sdk.as_deref(), Some("python 1.2"));
        assert_eq!(facts.resources.as_ref().and_then(|it| it.step_seconds), Some(0.25));
        assert_eq!((facts.inputs[0].len(), facts.inputs[0].is_float()), (6, true));
        assert_eq!(facts.unreadable, ["weather", "loader"]);
    }

    /// Proves that every fact survives its JSON.
    #[test]
    fn facts_survive_their_json() {
        let mut group = Group::default();
        (0..20).for_each(|number| group.add(&format!("layer{number}"), 5));
        assert_eq!((group.tensors, group.elements, group.names.len()), (20, 100, GROUP_NAMES_MAX));
        let updates = Updates { unmoved: group, update_ratio: Some(1e-3), ..Updates::default() };
        let facts =
            [Fact::Updates(updates), Fact::Evaluation(Evaluation { calls: 2 }), Fact::Inputs(Vec::new())];
        for fact in facts {
            let value = serde_json::to_value(&fact).unwrap();
            let about = value["about"].as_str().unwrap();
            assert_eq!(parse(about, &value["facts"].to_string()), Some(fact));
        }
    }

    /// Proves the figures that a program computes of its numbers: NaN and infinities counted separately, and the
    /// entropy of labels in nats.
    #[test]
    fn figures_are_those_of_the_numbers() {
        let tensor = TensorFacts::of("0", &[1.0, 3.0, f32::NAN, f32::INFINITY], &[2, 2]);
        assert_eq!(
            (tensor.mean, tensor.stddev, tensor.min, tensor.max),
            (Some(2.0), Some(1.0), Some(1.0), Some(3.0))
        );
        assert_eq!((tensor.nan_count, tensor.infinite_count), (1, 1));
        assert_eq!(TensorFacts::of("0", &[], &[0]).mean, None);
        let function = LossFunction::cross_entropy(3, &[0, 1, 0, 3], 1.1);
        let entropy = function.labels.best_constant_loss.unwrap();
        assert!((entropy - 1.5 * std::f64::consts::LN_2).abs() < 1e-12);
        assert_eq!((function.out_of_range, function.labels.distinct), (1, 3));
    }

    /// Proves which metric is taken as the training loss.
    #[test]
    fn the_training_loss_is_distinguished_from_others() {
        let rising = ["val_loss", "nll_loss", "train_loss", SEEN_LOSS, "loss"];
        assert_eq!(rising.map(loss_rank), [0, 1, 2, 3, 4]);
        assert_eq!(["accuracy", "eval/loss", "test_loss", "loss_scale"].map(loss_rank), [0; 4]);
        assert_eq!(["d_loss", "loss_d", "Loss_G"].map(loss_rank), [1; 3]);
    }
}
