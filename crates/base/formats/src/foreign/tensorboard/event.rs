//! One event: `Event { wall_time = 1, step = 2, graph_def = 4, summary = 5, session_log = 7, meta_graph_def = 9 }` of
//! `tensorflow/core/util/event.proto`.

use trackway_core::{MetricStep, closed_list};

use super::damage::Damage;
use super::protobuf::{Fields, Value};

/// `SessionLog.SessionStatus.START`.
const STATUS_START: i64 = 1;
/// The tag under which the hyperparameter plugin stores what a run was started with.
const HPARAMS_START_TAG: &str = "_hparams_/session_start_info";
/// The plugin that stores hyperparameters: its values are read, or are about what the plugin shows.
const HPARAMS_PLUGIN: &str = "hparams";
/// Data types of `tensorflow/core/framework/types.proto`.
const DT_FLOAT: i64 = 1;
const DT_DOUBLE: i64 = 2;
const DT_INT32: i64 = 3;
const DT_UINT8: i64 = 4;
const DT_INT16: i64 = 5;
const DT_INT8: i64 = 6;
const DT_STRING: i64 = 7;
const DT_INT64: i64 = 9;
const DT_BOOL: i64 = 10;
const DT_BFLOAT16: i64 = 14;
const DT_UINT16: i64 = 17;
const DT_HALF: i64 = 19;
const DT_UINT32: i64 = 22;
const DT_UINT64: i64 = 23;
/// Longer tags and parameters are not taken.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// A longer tag of a damaged record is not one.
const SEEMING_TAG_BYTES_MAX: usize = 256;

closed_list!(
    /// Something in an event file that is not a scalar.
    ObjectKind, "kind of object", {
        /// An image.
        Image = "image",
        /// A histogram.
        Histogram = "histogram",
        /// A piece of audio.
        Audio = "audio",
        /// A text.
        Text = "text",
        /// A graph of operations.
        Graph = "graph",
        /// A tensor of several numbers, or a value without a tag.
        Tensor = "tensor",
        /// A hyperparameter that is a list or an object, or too long.
        Parameter = "parameter",
    }
);

/// One value of one tag.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    pub tag: String,
    /// The step; writers may give one below 0.
    pub step: MetricStep,
    /// When it was written: seconds since 1970 UTC by the writer's clock.
    pub wall_seconds: f64,
    pub value: f64,
}

/// An item of an event file.
#[derive(Debug, Clone, PartialEq)]
pub enum EventItem {
    /// A value.
    Scalar(Scalar),
    /// The program was started again at this step: earlier points of it and of later steps do not count.
    Restart { step: MetricStep },
    /// A hyperparameter.
    Parameter { name: String, value: String },
    /// Something that is not a scalar and is not read.
    Object(ObjectKind),
    /// A part of the file that could not be read.
    Damage(Damage),
}

/// Reports what is in an event. False: it is not a whole one, and what was readable of it was reported.
pub(super) fn read_event(event: &[u8], found: &mut impl FnMut(EventItem)) -> bool {
    let (mut wall_seconds, mut step, mut summary, mut session_log) = (0.0, 0, None, None);
    let mut fields = Fields::of(event);
    for (number, value) in fields.by_ref() {
        match number {
            1 => wall_seconds = value.double().unwrap_or(0.0),
            2 => step = value.int().unwrap_or(0),
            4 | 9 => found(EventItem::Object(ObjectKind::Graph)),
            5 => summary = value.bytes(),
            7 => session_log = value.bytes(),
            _ => {}
        }
    }
    let mut is_whole = fields.rest().is_empty();
    let status = |log: &[u8]| Fields::of(log).any(|field| field == (1, Value::Varint(STATUS_START as u64)));
    if session_log.is_some_and(status) {
        found(EventItem::Restart { step });
    }
    let mut values = Fields::of(summary.unwrap_or_default());
    for (number, value) in values.by_ref() {
        if let (1, Some(value)) = (number, value.bytes()) {
            is_whole &= read_value(value, step, wall_seconds, found);
        }
    }
    is_whole && values.rest().is_empty()
}

/// The tag of its first value and the step that a damaged event seems to have.
pub(super) fn seems(event: &[u8]) -> (Option<String>, Option<MetricStep>) {
    let tag = Fields::first(event, 5).and_then(Value::bytes);
    let tag = tag.and_then(|summary| Fields::first(summary, 1)).and_then(Value::bytes);
    let tag = tag.and_then(|value| Fields::first(value, 1)).and_then(Value::bytes);
    let tag = tag.and_then(|tag| std::str::from_utf8(tag).ok()).filter(|tag| {
        !tag.is_empty() && tag.len() <= SEEMING_TAG_BYTES_MAX && !tag.contains(char::is_control)
    });
    (tag.map(str::to_owned), Fields::first(event, 2).and_then(Value::int))
}

/// What a value of a summary holds.
#[derive(Default)]
struct SummaryValue<'a> {
    tag: String,
    number: Option<f64>,
    /// What it is where it is not a scalar.
    object: Option<ObjectKind>,
    metadata: &'a [u8],
}

/// `Summary.Value { tag = 1, simple_value = 2, image = 4, histo = 5, audio = 6, tensor = 8, metadata = 9 }`. False: it is not whole.
fn read_value(bytes: &[u8], step: MetricStep, wall_seconds: f64, found: &mut impl FnMut(EventItem)) -> bool {
    let (mut value, mut fields) = (SummaryValue::default(), Fields::of(bytes));
    for (field, content) in fields.by_ref() {
        match field {
            1 => value.tag = content.text().unwrap_or_default(),
            2 => value.number = content.float().map(f64::from),
            4 => value.object = Some(ObjectKind::Image),
            5 => value.object = Some(ObjectKind::Histogram),
            6 => value.object = Some(ObjectKind::Audio),
            8 => {
                let tensor = content.bytes().unwrap_or_default();
                value.number = scalar_of(tensor);
                value.object = value.number.is_none().then(|| kind_of_tensor(tensor));
            }
            9 => value.metadata = content.bytes().unwrap_or_default(),
            _ => {}
        }
    }
    if value.tag == HPARAMS_START_TAG {
        read_parameters(value.metadata, found);
    } else {
        report_value(value, step, wall_seconds, found);
    }
    fields.rest().is_empty()
}

fn report_value(
    value: SummaryValue<'_>,
    step: MetricStep,
    wall_seconds: f64,
    found: &mut impl FnMut(EventItem),
) {
    let SummaryValue { tag, number, object, metadata } = value;
    let plugin = plugin_of(metadata);
    let is_readable = !tag.is_empty() && tag.len() <= TEXT_BYTES_MAX;
    match (number, object) {
        (Some(value), _) if is_readable => {
            if !is_placeholder(&tag, step, value) {
                found(EventItem::Scalar(Scalar { tag, step, wall_seconds, value }));
            }
        }
        (Some(_), _) => found(EventItem::Object(ObjectKind::Tensor)),
        (None, Some(_)) if plugin.as_deref() == Some(HPARAMS_PLUGIN) => {}
        (None, Some(object)) => found(EventItem::Object(kind_of_plugin(plugin.as_deref()).unwrap_or(object))),
        (None, None) => {}
    }
}

/// `SummaryMetadata { plugin_data = 1 { plugin_name = 1 } }`. Writers give it with the first value of a tag.
fn plugin_of(metadata: &[u8]) -> Option<String> {
    Fields::first(Fields::first(metadata, 1)?.bytes()?, 1)?.text()
}

fn kind_of_plugin(plugin: Option<&str>) -> Option<ObjectKind> {
    match plugin? {
        "images" => Some(ObjectKind::Image),
        "histograms" => Some(ObjectKind::Histogram),
        "audio" => Some(ObjectKind::Audio),
        "text" => Some(ObjectKind::Text),
        "graphs" | "graph_run_metadata" | "graph_keras_model" => Some(ObjectKind::Graph),
        _ => None,
    }
}

fn kind_of_tensor(tensor: &[u8]) -> ObjectKind {
    match Fields::first(tensor, 1).and_then(Value::int) {
        Some(DT_STRING) => ObjectKind::Text,
        _ => ObjectKind::Tensor,
    }
}

/// Lightning writes this value once under this tag, so that hyperparameters are shown, where its script gives none.
pub(super) fn is_placeholder(tag: &str, step: MetricStep, value: f64) -> bool {
    tag == "hp_metric" && step == 0 && value == -1.0
}

/// The number of a tensor without dimensions, or of one element: `TensorProto { dtype = 1, tensor_shape = 2,
/// tensor_content = 4, float_val = 5, double_val = 6, int_val = 7, int64_val = 10, bool_val = 11, half_val = 13, uint32_val = 16,
/// uint64_val = 17 }`.
fn scalar_of(tensor: &[u8]) -> Option<f64> {
    let (mut kind, mut elements, mut content, mut listed) = (0, 1i64, None, None);
    for (field, value) in Fields::of(tensor) {
        match field {
            1 => kind = value.int()?,
            2 => elements = elements_of(value.bytes()?),
            4 => content = value.bytes(),
            5 => listed = value.float().map(f64::from).or_else(|| first_float(value)),
            6 => listed = value.double().or_else(|| first_double(value)),
            7 | 10 | 11 | 16 => listed = value.int().or_else(|| first_int(value)).map(|number| number as f64),
            17 => listed = value.int().or_else(|| first_int(value)).map(|number| number as u64 as f64),
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
        (Some(&[byte]), DT_UINT8 | DT_BOOL) => Some(f64::from(byte)),
        (Some(&[byte]), DT_INT8) => Some(f64::from(byte as i8)),
        (Some(content), DT_INT16) => content.try_into().ok().map(i16::from_le_bytes).map(f64::from),
        (Some(content), DT_UINT16) => content.try_into().ok().map(u16::from_le_bytes).map(f64::from),
        (Some(content), DT_UINT32) => content.try_into().ok().map(u32::from_le_bytes).map(f64::from),
        (Some(content), DT_UINT64) => content.try_into().ok().map(|bytes| u64::from_le_bytes(bytes) as f64),
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
        let fits = |text: &String| text.len() <= TEXT_BYTES_MAX;
        found(match (name.filter(fits), value.filter(fits)) {
            (Some(name), Some(value)) => EventItem::Parameter { name, value },
            _ => EventItem::Object(ObjectKind::Parameter),
        });
    }
}

/// `google.protobuf.Value { null = 1, number = 2, string = 3, bool = 4 }`.
fn parameter_text(value: &[u8]) -> Option<String> {
    match Fields::of(value).next()? {
        (1, _) => Some("null".to_owned()),
        (2, number) => number.double().map(|number| number.to_string()),
        (3, text) => text.text(),
        (4, truth) => truth.int().map(|truth| (truth != 0).to_string()),
        _ => None,
    }
}
