//! A first schema, from a profile: what certainly should stay so as rules, what may be coincidence as comments.

use std::fmt::Write;

use trackway_tables::ColumnType;
use trackway_tables::personal::masked_cell;
use trackway_tables::profile::{ColumnProfile, ColumnSummary, Profile, Value};

use super::SCHEMA_VERSION;

/// A text with at most so many different values is a category.
const CATEGORY_VALUES_MAX: u64 = 50;
/// Each of them must have come so often, on average.
const ROWS_PER_VALUE_MIN: u64 = 20;
/// From so many rows on, one shape of all strings, or nothing but rising numbers, is taken for a rule.
const ROWS_FOR_A_RULE: u64 = 100;

/// The schema that a profile suggests, as TOML with comments. It holds for the data it was made from.
///
/// Rules are: types, that columns are there, missing values (none if there were none, else up to half as many again),
/// numbers that never were negative, values of categories, shapes of codes, numbers that only rise. Everything else
/// that was seen is in comments, which a user can turn into rules.
#[must_use]
pub fn infer(profile: &Profile) -> String {
    let mut text = format!(
        "# Schema inferred from {}. Edit it, then check data with: trackway data validate PATHS --schema THIS_FILE\n\
         # severity of a rule: note, warn (the default) or block.\n\
         version = {SCHEMA_VERSION}\n\n[table]\nrows_min = {}\n# rows_max = {}\nrejected_share_max = {}\n\
         # time = \"…\"               # the timestamp column\n# fresh_within_hours = 24\n\
         other_columns = \"warn\"     # columns that are not in this file: warn, allow or block\n",
        crate::counted(profile.rows, "row"),
        profile.rows / 2,
        profile.rows.saturating_mul(2),
        share_above(profile.rows_rejected, profile.rows + profile.rows_rejected),
    );
    profile.columns.iter().for_each(|column| write_column(&mut text, column));
    text.push_str("\n# Conditions on each row, in SQL:\n# [[rule]]\n# sql = \"ends_at >= starts_at\"\n# severity = \"block\"\n");
    text
}

fn write_column(text: &mut String, column: &ColumnProfile) {
    let summary = column.summary();
    let mut line = |written: String| {
        text.push_str(&written);
        text.push('\n');
    };
    line(format!("\n[[column]]\nname = {}\ntype = \"{}\"", quoted(&summary.name), word(summary.kind)));
    if summary.rows == 0 {
        return;
    }
    let nothing = summary.null_count + summary.nan_count;
    line(format!("null_share_max = {}", share_above(nothing, summary.rows)));
    write_range(&summary, &mut line);
    write_values(column, &summary, &mut line);
    write_order(column, &summary, &mut line);
    if let Some(lengths) = &summary.lengths {
        line(format!("# length_min = {}\n# length_max = {}", lengths.min, lengths.max));
    }
}

fn write_range(summary: &ColumnSummary, line: &mut impl FnMut(String)) {
    let ordered = matches!(summary.kind, ColumnType::Int | ColumnType::Float | ColumnType::Timestamp);
    let (Some(min), Some(max), true) = (&summary.min, &summary.max, ordered) else { return };
    let bound = |value: &Value| match value {
        Value::Text(time) => quoted(time),
        Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    };
    let finite = |value: &Value| !matches!(value, Value::Float(number) if !number.is_finite());
    let never_negative =
        summary.negative_count == 0 && matches!(summary.kind, ColumnType::Int | ColumnType::Float);
    if never_negative {
        line("min = 0".into());
    } else if finite(min) {
        line(format!("# min = {}", bound(min)));
    }
    if finite(max) {
        line(format!("# max = {}", bound(max)));
    }
}

fn write_values(column: &ColumnProfile, summary: &ColumnSummary, line: &mut impl FnMut(String)) {
    let text = matches!(summary.kind, ColumnType::Text | ColumnType::Bool);
    let few = summary.distinct_is_exact && (1..=CATEGORY_VALUES_MAX).contains(&summary.distinct_estimate);
    if text && few && column.value_count() >= summary.distinct_estimate * ROWS_PER_VALUE_MIN {
        let values = column.top_values(CATEGORY_VALUES_MAX as usize);
        let is_hidden = |text: &str| masked_cell(&column.name, text) != text;
        if values.iter().any(|it| is_hidden(&it.value.to_string())) {
            return line("# values are not listed: they contain personal data or secrets".into());
        }
        let shown = values.iter().map(|it| match &it.value {
            Value::Text(text) => quoted(text),
            other => other.to_string(),
        });
        return line(format!("values = [{}]", shown.collect::<Vec<_>>().join(", ")));
    }
    let Some(patterns) = &summary.patterns else { return };
    if let [only] = patterns.top.as_slice()
        && only.count == patterns.rows
        && column.value_count() >= ROWS_FOR_A_RULE
        && let Some(regex) = regex_of(&only.value.to_string())
    {
        // Shapes may come from a sample, and then they prove nothing.
        let every = patterns.rows == column.value_count();
        line(format!("{}regex = {}", if every { "" } else { "# " }, quoted(&regex)));
    }
}

fn write_order(column: &ColumnProfile, summary: &ColumnSummary, line: &mut impl FnMut(String)) {
    let Some(order) = summary.order else { return };
    let rises_only = order.falls == 0 && column.value_count() >= ROWS_FOR_A_RULE && order.rises > 0;
    match (rises_only, order.ties) {
        (true, 0) => line("unique = true\n# increasing = true".into()),
        (true, _) => line("# increasing = true".into()),
        _ => {}
    }
}

/// A shape (`A` capitals, `a` other letters, `9` digits, `+` more of the same) as a regex. `None` for shapes with
/// letters beyond ASCII or too plain to be useful.
fn regex_of(shape: &str) -> Option<String> {
    if !shape.is_ascii() || !shape.contains('9') || shape.chars().all(|char| "9+".contains(char)) {
        return None;
    }
    let mut regex = String::new();
    for char in shape.chars() {
        match char {
            'A' => regex.push_str("[A-Z]"),
            'a' => regex.push_str("[a-z]"),
            '9' => regex.push_str("[0-9]"),
            '+' => regex.push('+'),
            other => regex.push_str(&regex::escape(&other.to_string())),
        }
    }
    Some(regex)
}

/// Nothing where there was nothing; else half as many again, rounded up to a thousandth.
fn share_above(count: u64, rows: u64) -> f64 {
    let share = count as f64 / rows.max(1) as f64;
    ((share * 1500.0).ceil() / 1000.0).min(1.0)
}

fn word(kind: ColumnType) -> String {
    serde_json::to_value(kind).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// As a TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if char.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(char));
            }
            char => quoted.push(char),
        }
    }
    quoted + "\""
}
