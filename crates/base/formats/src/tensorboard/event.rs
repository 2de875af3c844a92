//! One event: `Event { wall_time = 1, step = 2, summary = 5, session_log = 7 }` of `tensorflow/core/util/event.proto`.

use super::protobuf::{Fields, Value};

/// `SessionLog.SessionStatus.START`.
const STATUS_START: i64 = 1;
/// The tag under which the hyperparameter plugin stores what a run was started with.
const HPARAMS_START_TAG: &str = "_hparams_/session_start_info";
/// Data types of `tensorflow/core/framework/types.proto`.
const DT_FLOAT: i64 = 1;
const DT_DOUBLE: i64 = 2;
const DT_INT32: i64 = 3;
const DT_INT64: i64 = 9;
const DT_BFLOAT16: i64 = 14;
const DT_HALF: i64 = 19;
/// Longer tags and parameters are not taken.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// One value of one tag.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    /// The tag.
    pub tag: String,
    /// The step; a negative one is 0.
    pub step: u64,
    /// When it was written: seconds since 1970 UTC by the writer's clock.
    pub wall_seconds: f64,
    /// The value.
    pub value: f64,
}

/// An item of an event file.
#[derive(Debug, Clone, PartialEq)]
pub enum EventItem {
    /// A value.
    Scalar(Scalar),
    /// The program was started again at this step: earlier points of it and of later steps do not count.
    Restart {
        /// The step.
        step: u64,
        /// When: seconds since 1970 UTC.
        wall_seconds: f64,
    },
    /// A hyperparameter.
    Parameter {
        /// Its name.
        name: String,
        /// Its value as a string.
        value: String,
    },
}

/// Reports what is in an event.
pub(super) fn read_event(event: &[u8], found: &mut impl FnMut(EventItem)) {
    let (mut wall_seconds, mut step, mut summary, mut session_log) = (0.0, 0i64, None, None);
    for (number, value) in Fields::of(event) {
        match number {
            1 => wall_seconds = value.double().unwrap_or(0.0),
            2 => step = value.int().unwrap_or(0),
            5 => summary = value.bytes(),
            7 => session_log = value.bytes(),
            _ => {}
        }
    }
    let step = u64::try_from(step).unwrap_or(0);
    let status = |log: &[u8]| Fields::of(log).any(|field| field == (1, Value::Varint(STATUS_START as u64)));
    if session_log.is_some_and(status) {
        found(EventItem::Restart { step, wall_seconds });
    }
    for (number, value) in Fields::of(summary.unwrap_or_default()) {
        if let (1, Some(value)) = (number, value.bytes()) {
            read_value(value, step, wall_seconds, found);
        }
    }
}

/// `Summary.Value { tag = 1, simple_value = 2, tensor = 8, metadata = 9 }`.
fn read_value(value: &[u8], step: u64, wall_seconds: f64, found: &mut impl FnMut(EventItem)) {
    let (mut tag, mut number, mut metadata) = (String::new(), None, None);
    for (field, value) in Fields::of(value) {
        match field {
            1 => tag = value.text().unwrap_or_default(),
            2 => number = value.float().map(f64::from),
            8 => number = value.bytes().and_then(scalar_of),
            9 => metadata = value.bytes(),
            _ => {}
        }
    }
    if tag == HPARAMS_START_TAG {
        return read_parameters(metadata.unwrap_or_default(), found);
    }
    let number = number.filter(|_| !tag.is_empty() && tag.len() <= TEXT_BYTES_MAX);
    if let Some(value) = number.filter(|value| !is_placeholder(&tag, step, *value)) {
        found(EventItem::Scalar(Scalar { tag, step, wall_seconds, value }));
    }
}

/// Lightning writes this value once under this tag, so that hyperparameters are shown, where its script gives none.
pub(super) fn is_placeholder(tag: &str, step: u64, value: f64) -> bool {
    tag == "hp_metric" && step == 0 && value == -1.0
}

/// The number of a tensor without dimensions, or of one element: `TensorProto { dtype = 1, tensor_shape = 2,
/// tensor_content = 4, float_val = 5, double_val = 6, int_val = 7, int64_val = 10, half_val = 13 }`.
fn scalar_of(tensor: &[u8]) -> Option<f64> {
    let (mut kind, mut elements, mut content, mut listed) = (0, 1i64, None, None);
    for (field, value) in Fields::of(tensor) {
        match field {
            1 => kind = value.int()?,
            2 => elements = elements_of(value.bytes()?),
            4 => content = value.bytes(),
            5 => listed = value.float().map(f64::from).or_else(|| first_float(value)),
            6 => listed = value.double().or_else(|| first_double(value)),
            7 | 10 => listed = value.int().or_else(|| first_int(value)).map(|number| number as f64),
            13 => listed = value.int().or_else(|| first_int(value)).map(|bits| half(kind, bits as u16)),
            _ => {}
        }
    }
    let content = content.filter(|content| !content.is_empty());
    let number = match (content, kind) {
        (None, _) => listed,
        (Some(content), DT_FLOAT) => content.try_into().ok().map(f32::from_le_bytes).map(f64::from),
        (Some(content), DT_DOUBLE) => content.try_into().ok().map(f64::from_le_bytes),
        (Some(content), DT_INT32) => content.try_into().ok().map(i32::from_le_bytes).map(f64::from),
        (Some(content), DT_INT64) => content.try_into().ok().map(|bytes| i64::from_le_bytes(bytes) as f64),
        (Some(content), DT_HALF | DT_BFLOAT16) => {
            content.try_into().ok().map(|bytes| half(kind, u16::from_le_bytes(bytes)))
        }
        _ => None,
    };
    number.filter(|_| elements == 1)
}

/// `TensorShapeProto { dim = 2 { size = 1 } }`.
fn elements_of(shape: &[u8]) -> i64 {
    let dimensions =
        Fields::of(shape).filter(|(field, _)| *field == 2).filter_map(|(_, value)| value.bytes());
    let sizes = dimensions.map(|dimension| Fields::first(dimension, 1).and_then(Value::int).unwrap_or(0));
    sizes.fold(1, i64::saturating_mul)
}

fn first_float(packed: Value<'_>) -> Option<f64> {
    packed.bytes()?.first_chunk().map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
}

fn first_double(packed: Value<'_>) -> Option<f64> {
    packed.bytes()?.first_chunk().map(|bytes| f64::from_le_bytes(*bytes))
}

fn first_int(packed: Value<'_>) -> Option<i64> {
    super::protobuf::varint(&mut packed.bytes()?).map(|bits| bits as i64)
}

/// A number of 16 bits: the upper half of a float (bfloat16), or IEEE 754's half precision.
fn half(kind: i64, bits: u16) -> f64 {
    if kind == DT_BFLOAT16 {
        return f64::from(f32::from_bits(u32::from(bits) << 16));
    }
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// `SummaryMetadata { plugin_data = 1 { content = 2: HParamsPluginData { session_start_info = 3 { hparams = 1 } } } }`.
fn read_parameters(metadata: &[u8], found: &mut impl FnMut(EventItem)) {
    let message = |bytes, number| {
        Fields::of(bytes).filter(move |(field, _)| *field == number).filter_map(|(_, value)| value.bytes())
    };
    let entries = message(metadata, 1)
        .flat_map(|plugin| message(plugin, 2))
        .flat_map(|content| message(content, 3))
        .flat_map(|start| message(start, 1));
    for entry in entries {
        let name = Fields::first(entry, 1).and_then(Value::text);
        let value = message(entry, 2).next().and_then(parameter_text);
        if let (Some(name), Some(value)) = (name, value)
            && name.len() <= TEXT_BYTES_MAX
            && value.len() <= TEXT_BYTES_MAX
        {
            found(EventItem::Parameter { name, value });
        }
    }
}

/// `google.protobuf.Value { null = 1, number = 2, string = 3, bool = 4 }`.
fn parameter_text(value: &[u8]) -> Option<String> {
    match Fields::of(value).next()? {
        (2, number) => number.double().map(|number| number.to_string()),
        (3, text) => text.text(),
        (4, truth) => truth.int().map(|truth| (truth != 0).to_string()),
        _ => None,
    }
}
