//! What the readers of files of metrics take from here: names and JSON objects are read as those that are printed are.

use serde_json::{Map, Value};
use trackway_core::MetricStep;

use super::lexical::names::{self, Meaning};
use super::objects;

/// Whether a name is that of a usual measure of training.
pub(crate) fn is_measure(name: &str) -> bool {
    names::meaning_of(&name.to_lowercase().replace(' ', "_")) == Meaning::Measure
}

/// The prefix of all values that are of a part of the data: `validation` is `val`.
pub(crate) fn part_prefix(word: &str) -> Option<&'static str> {
    names::whose_line(word)
}

/// Gives a name a prefix, if it lacks it.
pub(crate) fn with_prefix(prefix: &str, name: &str) -> String {
    names::prefixed(prefix, name)
}

/// The fields of a JSON object, also with the `NaN` and `Infinity` of Python.
pub(crate) fn json_fields(text: &str) -> Option<Map<String, Value>> {
    objects::fields_of(text)
}

/// The step that such fields have, and their numbers.
pub(crate) fn step_and_numbers(fields: Map<String, Value>) -> (Option<MetricStep>, Vec<(String, f64)>) {
    let named = objects::numbers_of(fields);
    let step = named.step.map(|step| step.try_into().unwrap_or(MetricStep::MAX));
    (step.or(named.early_step), named.values)
}
