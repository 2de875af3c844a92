//! JSON objects, one per line, and what counts of an object's fields.

use serde_json::{Map, Value};
use trackway_core::MetricStep;

use super::lexical::named::LineValues;
use super::lexical::named_value::with_named_value;
use super::lexical::names;
use super::lexical::part_name::PartName;
use super::{NAME_BYTES_MAX, VALUES_MAX};

/// The fields that name the step of a line, the best first.
const STEP_FIELDS: [&str; 9] =
    ["global_step", "step", "_step", "iteration", "iter", "num_updates", "update", "round", "episode"];
/// Those of them that count the steps of the training; the others may as well count those of an epoch.
const OF_TRAINING: [&str; 2] = ["global_step", "num_updates"];
/// Parameters of estimators that no training measures, as searches print their best ones.
const ESTIMATOR_PARAMETERS: [&str; 20] = [
    "C", "colsample_bytree", "hidden_size", "l1_ratio", "l2_regularization", "max_depth", "max_features",
    "max_iter", "max_leaf_nodes", "min_child_weight", "min_samples_leaf", "min_samples_split",
    "n_components", "n_estimators", "n_layers", "n_neighbors", "num_layers", "num_leaves", "reg_alpha",
    "reg_lambda",
];
/// The fields with the text of a logger, the best first.
const MESSAGE_FIELDS: [&str; 3] = ["message", "msg", "event"];
/// The fields that say of which part of the data the numbers are: `{"mode": "val", "loss": 0.5}`, `{"_type": "train_epoch", "loss": 0.5}`.
const PART_FIELDS: [&str; 8] = ["mode", "phase", "split", "stage", "subset", "set", "type", "_type"];
/// Words for a count of a part of the data, in such a field.
const OF_COUNTS: [&str; 4] = ["epoch", "iter", "step", "batch"];
/// The name of a value has so many parts of nested objects at most: `eval/acc/mean` has three.
pub(super) const PARTS_MAX: usize = 6;
/// What the names of objects in Loguru's about a line begin with: nothing in them is measured.
const OF_LOGURU: &str = "record/";
/// The field that names the epoch; it is a metric as well.
const EPOCH_FIELD: &str = "epoch";

/// Whether a field names the step.
pub(super) fn is_step(name: &str) -> bool {
    STEP_FIELDS.contains(&name)
}

/// The numbers of a line that is a JSON object; `None` when it is none or holds none.
pub(super) fn read_object(line: &str) -> Option<LineValues> {
    Some(numbers_of(fields_of(line)?)).filter(LineValues::has_values)
}

/// The text that a logger writes into an object: `{"level": "INFO", "message": "step 20 loss 0.05"}`. Loguru has it in `record`.
pub(super) fn message_of(fields: &Map<String, Value>) -> Option<&str> {
    fn text_in(fields: &Map<String, Value>) -> Option<&str> {
        MESSAGE_FIELDS.iter().find_map(|name| fields.get(*name)?.as_str())
    }
    let text = text_in(fields).or_else(|| text_in(fields.get("record")?.as_object()?))?;
    text.trim().lines().next()
}

/// The fields of an object, with what only Python writes as a number.
pub(super) fn fields_of(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).or_else(|_| serde_json::from_slice(&quote_non_finite(text.as_bytes()))).ok()
}

/// The numbers among an object's fields, nested ones with a slash, with the step that names it best.
pub(super) fn numbers_of(fields: Map<String, Value>) -> LineValues {
    let fields = with_named_value(fields);
    let step_field = STEP_FIELDS.iter().copied().find(|name| step_of(&fields, name).is_some());
    let (mut values, mut surplus) = (Vec::new(), 0);
    for (name, value) in &fields {
        if Some(name.as_str()) != step_field && (name != "step" || step_field.is_none()) {
            surplus += push_nested(name, value, 1, &mut values);
        }
    }
    let counted = |name: &str| step_of(&fields, name)?.try_into().ok();
    let early = |name: &str| step_of(&fields, name).filter(|step| *step < 0);
    let step: Option<u64> = step_field.and_then(counted);
    let counts_training = step_field.is_some_and(|name| OF_TRAINING.contains(&name));
    let part_of_epoch = fields.get(EPOCH_FIELD).and_then(Value::as_f64).filter(|epoch| is_part(*epoch));
    let epoch_of_all = count_of(&fields, EPOCH_FIELD);
    let epoch = counted(EPOCH_FIELD).or(epoch_of_all.map(|(epoch, _)| epoch));
    let count = STEP_FIELDS.iter().find_map(|name| count_of(&fields, name)).filter(|_| step.is_none());
    let mut named = LineValues {
        step,
        early_step: step_field.and_then(early).or_else(|| early(EPOCH_FIELD)),
        counts_training,
        epoch: epoch.filter(|_| part_of_epoch.is_none()),
        epoch_counted_from_one: epoch_of_all.is_some(),
        position: count.map(|(done, _)| done),
        total: count.map(|(_, total)| total),
        part_of_epoch,
        values,
        surplus,
        ..LineValues::default()
    };
    if let Some(part) = PART_FIELDS.iter().find_map(|name| part_in(fields.get(*name)?.as_str()?)) {
        take_part(&mut named, &part);
    }
    if is_of_estimator(&named) { named.into_settings() } else { named }
}

/// Names the numbers of a dict whose names are numbers, as of classes, by the measure right before it:
/// `accuracy: {0: 0.5, 1: 0.75}`. Without one they are none of the training: `atomic energies: {1: -13.5}`.
pub(super) fn name_classes(named: &mut LineValues, before: &str) {
    let is_number = |(name, _): &(String, f64)| name.bytes().all(|byte| byte.is_ascii_digit());
    if !named.values.iter().all(is_number) {
        return;
    }
    let small = before.to_lowercase();
    let measure = small.rsplit(' ').next().filter(|word| names::meaning_of(word) == names::Meaning::Measure);
    match measure {
        Some(measure) => named.values.iter_mut().for_each(|(name, _)| *name = format!("{measure}_{name}")),
        None => named.values.clear(),
    }
}

/// A count with its total in a text: `"iter": "10/40"`.
fn count_of(fields: &Map<String, Value>, name: &str) -> Option<(u64, u64)> {
    let (done, total) = fields.get(name)?.as_str()?.split_once('/')?;
    Some((done.trim().parse().ok()?, total.trim().parse().ok()?))
}

/// The prefix of numbers of the part of the data that a text names: `val`, `validation`, `train_epoch`. The numbers of
/// a training have none, unless they are those of a whole epoch, and those of an evaluation that it counts keep that
/// apart from its result: `val_iter`.
fn part_in(text: &str) -> Option<String> {
    let (word, count) = text.split_once('_').unwrap_or((text, ""));
    let part = names::part_of_data(word).filter(|_| count.is_empty() || OF_COUNTS.contains(&count))?;
    match (part, count) {
        (None, "epoch") => Some("train_epoch".into()),
        (None, _) => None,
        (Some(part), "" | "epoch") => Some(part.into()),
        (Some(part), count) => Some(format!("{part}_{count}")),
    }
}

/// Gives the numbers of an object the prefix of the part of the data that they are of; the epoch is the script's.
pub(super) fn take_part(named: &mut LineValues, part: &str) {
    rename(named, |name| names::prefixed(part, name));
}

/// The same of the part that a title names.
pub(super) fn take_titled(named: &mut LineValues, part: PartName) {
    rename(named, |name| part.name_of(name));
}

fn rename(named: &mut LineValues, renamed: impl Fn(&str) -> String) {
    (named.position, named.total) = (None, None);
    for (name, _) in named.values.iter_mut().filter(|(name, _)| name != EPOCH_FIELD) {
        *name = renamed(name);
    }
}

/// Whether the numbers are parameters of a pipeline or an estimator and nothing that was measured:
/// `{'clf__C': 1, 'clf__max_iter': 500}`, `{'C': 10, 'gamma': 0.1}`.
fn is_of_estimator(named: &LineValues) -> bool {
    let is_parameter = |(name, _): &(String, f64)| {
        names::is_of_pipeline(name) || ESTIMATOR_PARAMETERS.contains(&name.as_str())
    };
    !named.has_place()
        && named.values.iter().any(is_parameter)
        && named.meaning() < Some(names::Meaning::Measure)
}

/// Whether an epoch is one such as 0.58.
pub(super) fn is_part(epoch: f64) -> bool {
    epoch > 0.0 && epoch.is_finite() && epoch.fract() != 0.0
}

/// A number as a JSON value; what JSON cannot express is marked.
pub(super) fn number(number: f64) -> Value {
    serde_json::Number::from_f64(number)
        .map_or_else(|| Value::String(format!("{NON_FINITE_MARK}{number}")), Value::Number)
}

/// Takes the numbers of a field, also of objects in it, `parts` deep. How many do not fit or are too deep.
fn push_nested(name: &str, value: &Value, parts: usize, values: &mut Vec<(String, f64)>) -> u64 {
    let Value::Object(inner) = value else { return push_number(name, value, values) };
    if name.starts_with(OF_LOGURU) {
        return 0;
    }
    let nested = |(part, value): (&String, &Value)| match parts < PARTS_MAX {
        true => push_nested(&format!("{name}/{part}"), value, parts + 1, values),
        false => numbers_in(value),
    };
    inner.iter().map(nested).sum()
}

fn numbers_in(value: &Value) -> u64 {
    match value {
        Value::Object(inner) => inner.values().map(numbers_in).sum(),
        value => u64::from(value.is_number()),
    }
}

/// How many numbers do not fit.
fn push_number(name: &str, value: &Value, values: &mut Vec<(String, f64)>) -> u64 {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => non_finite(text),
        _ => None,
    };
    let Some(number) = number.filter(|_| names::may_be_field(name)) else { return 0 };
    let fits = values.len() < VALUES_MAX && name.len() <= NAME_BYTES_MAX;
    if fits {
        values.push((name.to_owned(), number));
    }
    u64::from(!fits)
}

/// The step that a field has. One that is too high for all is the highest; one below 0 is from before the training.
fn step_of(fields: &Map<String, Value>, name: &str) -> Option<MetricStep> {
    let value = fields.get(name)?;
    // Python sometimes writes a whole step as a float (100.0).
    let is_step = |step: &f64| step.abs() < 9e15 && (*step >= 0.0 || step.fract() == 0.0);
    let of_float = || value.as_f64().filter(is_step).map(|step| step as MetricStep);
    let too_high = value.as_u64().map(|_| MetricStep::MAX);
    value.as_i64().or(too_high).or_else(of_float)
}

/// Marks a number that JSON cannot write and Python does. Its blank distinguishes it from what scripts print.
const NON_FINITE_MARK: &str = "\0 ";
/// How Python writes such a number, and what replaces it in JSON.
const NON_FINITE: [(&str, &str); 3] =
    [("-Infinity", "\"\\u0000 -inf\""), ("Infinity", "\"\\u0000 inf\""), ("NaN", "\"\\u0000 NaN\"")];

fn non_finite(text: &str) -> Option<f64> {
    text.strip_prefix(NON_FINITE_MARK)?.parse().ok().filter(|number: &f64| !number.is_finite())
}

/// Makes Python's `NaN` and `Infinity` readable: a diverged loss is the last metric that may be lost.
fn quote_non_finite(line: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(line.len() + 32);
    let (mut in_string, mut escaped, mut at) = (false, false, 0);
    while at < line.len() {
        let word = NON_FINITE.iter().find(|(word, _)| !in_string && line[at..].starts_with(word.as_bytes()));
        if let Some((word, replacement)) = word {
            quoted.extend_from_slice(replacement.as_bytes());
            at += word.len();
            continue;
        }
        let byte = line[at];
        in_string ^= byte == b'"' && !escaped;
        escaped = in_string && byte == b'\\' && !escaped;
        quoted.push(byte);
        at += 1;
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that numbers come out by name, nested ones with a slash, with the step that the line names best.
    #[test]
    fn numbers_become_metrics() {
        let read = |line| read_object(line).map(|named| (named.step, named.epoch, named.values));
        let values = |values: &[(&str, f64)]| {
            values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let found = read(r#"{"step": 3, "loss": 0.5, "ok": true, "name": "x", "eval": {"acc": 1}}"#);
        assert_eq!(found, Some((Some(3), None, values(&[("eval/acc", 1.0), ("loss", 0.5)]))));
        let found = read(r#"{"epoch": 2, "loss": 1}"#);
        assert_eq!(found, Some((None, Some(2), values(&[("epoch", 2.0), ("loss", 1.0)]))));
        let found = read(r#"{"global_step": 100.0, "epoch": 1.5}"#);
        assert_eq!(found, Some((Some(100), None, values(&[("epoch", 1.5)]))));
        assert_eq!(read("{broken"), None);
        assert_eq!(read(r#"{"step": 3, "text": "0.5"}"#), None);
    }

    /// Proves that a diverged loss is a metric, although JSON cannot express it.
    #[test]
    fn nan_and_infinity_are_kept() {
        let line =
            read_object(r#"{"step": 1, "loss": NaN, "low": -Infinity, "note": "NaN \" NaN"}"#).unwrap();
        assert!(line.values[0].1.is_nan());
        assert_eq!(line.values[1], ("low".to_owned(), f64::NEG_INFINITY));
        assert_eq!(line.values.len(), 2);
    }

    /// Proves that giant objects cost bounded memory.
    #[test]
    fn giant_objects_are_cut() {
        let many: String = (0..1_000).map(|index| format!("\"m{index}\":1,")).collect();
        assert_eq!(read_object(&format!("{{{many}\"z\":1}}")).unwrap().values.len(), VALUES_MAX);
    }
}
