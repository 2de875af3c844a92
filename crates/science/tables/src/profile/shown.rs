//! Values as they are shown.

use trackway_results::profile::Value;

use super::number::NumberForm;
use crate::personal::{masked, masked_cell};

/// A value of a column as it may be shown: personal data and secrets in it are hidden.
#[must_use]
pub fn hidden(column: &str, value: Value) -> Value {
    match value {
        Value::Text(text) => Value::Text(masked_cell(column, &text)),
        // As long as a payment card's.
        Value::Int(number) if number >= 1_000_000_000_000 => match masked(&number.to_string()) {
            std::borrow::Cow::Borrowed(_) => value,
            std::borrow::Cow::Owned(text) => Value::Text(text),
        },
        other => other,
    }
}

/// The value that 64 bits encode; without a form, a boolean.
pub(super) fn shown(form: Option<NumberForm>, bits: u64) -> Value {
    let Some(form) = form else { return Value::Bool(bits == 1) };
    match form {
        NumberForm::Int => Value::Int(bits.cast_signed()),
        NumberForm::Unsigned => Value::Unsigned(bits),
        // JSON has no number for infinity.
        NumberForm::Float if !f64::from_bits(bits).is_finite() => {
            Value::Text(f64::from_bits(bits).to_string())
        }
        NumberForm::Float => Value::Float(f64::from_bits(bits)),
        NumberForm::Time => Value::Text(time(bits.cast_signed())),
    }
}

/// Microseconds since 1970 as ISO 8601; a date alone at midnight.
fn time(micros: i64) -> String {
    let text = arrow::temporal_conversions::timestamp_us_to_datetime(micros).map(|time| time.to_string());
    let text = text.unwrap_or_else(|| format!("{micros} µs"));
    text.strip_suffix(" 00:00:00").map_or_else(|| text.replacen(' ', "T", 1) + "Z", str::to_owned)
}
