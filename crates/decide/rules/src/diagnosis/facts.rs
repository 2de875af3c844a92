//! What a script records in a diagnosis (`docs/diagnosis.md`). Every field may be absent: absent means not known.

use serde::Deserialize;
use serde_json::Value;
use trackway_core::Step;

use super::collectives::Collectives;

/// Facts of one launch that are read at most: a few topics of each rank.
const FACTS_MAX: usize = 4096;

/// A tensor in numbers. Statistics are of its finite values.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TensorFacts {
    /// Its place, such as `0` or `inputs.pixel_values`.
    pub name: Option<String>,
    /// The type of its values.
    pub dtype: Option<String>,
    pub shape: Option<Vec<u64>>,
    /// The smallest value.
    pub min: Option<f64>,
    /// The largest value.
    pub max: Option<f64>,
    pub mean: Option<f64>,
    /// Values that are NaN.
    pub nan_count: Option<u64>,
    /// Values that are infinite.
    pub infinite_count: Option<u64>,
}

/// The gradients of a step with a NaN or an infinity.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct FirstGradient {
    /// The parameter whose gradient was the first, in the order of the backward pass.
    pub parameter: Option<String>,
    /// The first operation of the backward pass that returned one.
    pub operation: Option<String>,
    /// The layer of that operation.
    pub layer: Option<String>,
    /// Parameters with such a gradient.
    pub nonfinite: Option<u64>,
    /// Parameters with a gradient.
    pub of: Option<u64>,
}

/// The first NaN or infinite value that was seen.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Numeric {
    pub rank: u32,
    pub step: Option<Step>,
    /// The batch, counted from 0 over all passes through the data.
    pub batch: Option<u64>,
    /// `input`, `forward`, `loss`, `backward`, `update` or `parameter`.
    pub place: Option<String>,
    /// `NaN` or `infinite value`.
    pub value: Option<String>,
    pub layer: Option<String>,
    /// Its class.
    pub layer_type: Option<String>,
    pub operation: Option<String>,
    /// The line of the script.
    pub source: Option<String>,
    /// The parameter, of an update.
    pub parameter: Option<String>,
    /// Parameters of the layer that were not finite already.
    pub bad_parameters: Vec<String>,
    /// What went into the layer or the operation.
    pub inputs: Vec<TensorFacts>,
    /// The gradients of that step.
    pub gradient: Option<FirstGradient>,
    /// The batch in numbers.
    pub batch_tensors: Vec<TensorFacts>,
}

/// The parameter whose gradient grew the most.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Growth {
    pub rank: u32,
    pub step: Option<Step>,
    pub batch: Option<u64>,
    pub parameter: Option<String>,
    /// The norm of its gradient.
    pub norm: Option<f64>,
    /// The median of its norms before.
    pub usual: Option<f64>,
    /// The batch in numbers.
    pub batch_tensors: Vec<TensorFacts>,
}

/// A part of the time.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Share {
    /// What it was spent on.
    pub name: String,
    /// As a fraction of the observed time.
    pub fraction: f64,
}

/// What the time of a step was spent on.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Throughput {
    pub rank: u32,
    /// Steps that were observed.
    pub steps: u64,
    /// Median seconds of a step.
    pub step_seconds: Option<f64>,
    /// `torch.profiler`, `py-spy` or `samples`.
    pub by: Option<String>,
    /// The parts of a step, largest first.
    pub parts: Vec<Share>,
    /// The operations or lines that took most, largest first.
    pub top: Vec<Share>,
    /// The artifact with the trace.
    pub trace: Option<String>,
    /// What could not be seen, and why.
    pub why: Option<String>,
}

/// All facts of a launch, of each topic and rank the last ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// What was observed at all: a framework, such as `torch`.
    pub observed: Option<String>,
    /// First values that are not finite, one for each rank that saw one.
    pub numeric: Vec<Numeric>,
    /// Gradients that grew, one for each rank.
    pub growth: Vec<Growth>,
    /// What time was spent on, one for each rank.
    pub throughput: Vec<Throughput>,
    /// The operations of all ranks that each rank entered, where it made no progress.
    pub collectives: Vec<Collectives>,
    /// What could not be observed.
    pub blind: Vec<String>,
}

impl Facts {
    /// Takes an event of the kind `diagnosis_facts`. What cannot be read is left out.
    pub fn take(&mut self, about: &str, facts: &str) {
        let of_ranks =
            self.numeric.len() + self.growth.len() + self.throughput.len() + self.collectives.len();
        if of_ranks > FACTS_MAX {
            return;
        }
        match about {
            "observed" => {
                let facts: Value = serde_json::from_str(facts).unwrap_or_default();
                self.observed = facts.get("framework").and_then(Value::as_str).map(str::to_owned);
            }
            "numeric" => replace(&mut self.numeric, facts, |one: &Numeric| one.rank),
            "growth" => replace(&mut self.growth, facts, |one: &Growth| one.rank),
            "throughput" => replace(&mut self.throughput, facts, |one: &Throughput| one.rank),
            "collectives" => replace(&mut self.collectives, facts, |one: &Collectives| one.rank),
            _ => {}
        }
    }
}

/// The newer facts of a rank take the place of those before.
fn replace<T: for<'de> Deserialize<'de>>(all: &mut Vec<T>, facts: &str, rank: impl Fn(&T) -> u32) {
    if let Ok(new) = serde_json::from_str::<T>(facts) {
        all.retain(|old| rank(old) != rank(&new));
        all.push(new);
    }
}
