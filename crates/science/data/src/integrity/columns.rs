//! `data.columns`: is every column informative, in one type and one spelling?

use std::collections::BTreeMap;

use trackway_core::checks::{CheckResult, Finding, Severity};
use trackway_tables::ColumnType;
use trackway_tables::limits::EXAMPLES_MAX;
use trackway_tables::profile::{ColumnProfile, ValueCount};

use super::facts::{ColumnFacts, TextKind};
use super::zeros::{Zeros, zeros_apart};
use super::{TableEvidence, about, answer, listed, masked, percent};
use crate::model::CLASSES_MAX;
use crate::values::unicode_form::{composed, form_shown};

const NAME: &str = "data.columns";

/// Fewer rows are too little evidence about a column: two rows of five columns agree by coincidence.
const ROWS_MIN: u64 = 20;

/// A type that so many values of a text column have is its intended one.
const MAIN_KIND_SHARE: f64 = 0.5;

/// Two types beside strings, each of at least this fraction, are a mixture (Deepchecks' rare types begin at 1 % too).
const SIDE_KIND_SHARE: f64 = 0.01;

/// From this fraction of different values on a string identifies its row.
const NEAR_UNIQUE_SHARE: f64 = 0.95;

/// A category has at most this fraction of different values; in names and free text, two spellings are two things.
const CATEGORY_SHARE: f64 = 0.1;

/// A copy of the label is certain when its probability by coincidence is less than 2⁻⁴⁰.
const CERTAIN_BITS: f64 = 40.0;

const MIXED_ACTION: &str = "list the strings that mark missing values in `missing`, or use one type";

/// Checks the columns of a table.
#[must_use]
pub fn columns(evidence: &TableEvidence) -> CheckResult {
    let columns: Vec<_> = evidence.profile.columns.iter().zip(&evidence.facts.columns).collect();
    let mut findings = Vec::new();
    if (1..ROWS_MIN).contains(&evidence.profile.rows) {
        let why = format!("too few rows to check columns: {}", evidence.profile.rows);
        return CheckResult::not_applicable(NAME, why);
    }
    let no_rows: &[_] = &[];
    let looked_at = if evidence.profile.rows == 0 { no_rows } else { &columns };
    for (profile, facts) in looked_at {
        findings.extend(constant(evidence, profile));
        findings.extend(misfits(evidence, profile));
        findings.extend(mixed(evidence, profile, facts));
        findings.extend(spellings(profile, evidence.is_label(&profile.name)));
        findings.extend(placeholders(profile, facts));
        findings.extend(near_unique(evidence, profile));
    }
    findings.extend(zeros(looked_at));
    findings.extend(evidence.renamed.iter().map(renamed));
    findings.extend(duplicates(evidence, looked_at));
    answer(
        NAME,
        evidence.profile.rows,
        findings,
        format!(
            "{} of {}",
            crate::counted(columns.len() as u64, "column"),
            crate::counted(evidence.profile.rows, "row")
        ),
    )
}

/// A column that the header calls like an earlier one.
fn renamed((given, name): &(String, String)) -> Finding {
    let message = format!("the file names several columns `{given}`: one of them is read as `{name}`");
    let action = "give each column a name, or name them with --column-names (`columns` in a run file)";
    about("columns.repeated_name", Severity::Warn, name, message, action)
}

fn constant(evidence: &TableEvidence, column: &ColumnProfile) -> Option<Finding> {
    // The label has a separate check.
    if evidence.is_label(&column.name) {
        return None;
    }
    let summary = column.summary();
    if column.value_count() == column.nan_count() {
        let message = format!("`{}` has no value in any of {} rows", column.name, column.rows);
        let action = "drop the column, or find out why it is empty";
        return Some(about("columns.all_null", Severity::Warn, &column.name, message, action));
    }
    let is_constant = summary.distinct_is_exact && summary.distinct_estimate == 1 && column.nan_count() == 0;
    (is_constant && column.null_count == 0).then(|| {
        let value = summary.top_values.first().map(|it| it.value.to_string()).unwrap_or_default();
        let message =
            format!("`{}` is `{value}` in all {} rows: the column is constant", column.name, column.rows);
        about("columns.constant", Severity::Warn, &column.name, message, "drop the column")
    })
}

/// Cells of a column of numbers, timestamps or booleans that are something else.
fn misfits(evidence: &TableEvidence, column: &ColumnProfile) -> Option<Finding> {
    let count = column.faults.misfits;
    (count > 0).then(|| {
        let share = percent(count as f64 / column.rows as f64);
        let kind = column.kind;
        let first =
            column.faults.examples.first().map(|fault| {
                format!("; the first is `{}` in row {}", masked(&fault.detail), fault.place.row)
            });
        let first = first.unwrap_or_default();
        let message = format!(
            "`{}` has {} ({share}) of another type than {kind}, ignored{first}",
            column.name,
            crate::counted(count, "cell")
        );
        about("columns.mixed_types", Severity::Warn, &column.name, message, MIXED_ACTION)
            .count(count)
            .examples(column.faults.examples.iter().map(|fault| evidence.fault_example(fault)))
    })
}

/// Numbers and dates among strings.
fn mixed(evidence: &TableEvidence, column: &ColumnProfile, facts: &ColumnFacts) -> Option<Finding> {
    let total: u64 = facts.kinds.iter().map(|kind| kind.count).sum();
    let share = |kind: TextKind| facts.kinds[kind as usize].count as f64 / total.max(1) as f64;
    let main = TextKind::ALL.into_iter().max_by(|one, other| share(*one).total_cmp(&share(*other)))?;
    let sides: Vec<TextKind> =
        TextKind::ALL.into_iter().filter(|kind| *kind != main && share(*kind) > 0.0).collect();
    let plain = [TextKind::Number, TextKind::Truth, TextKind::Time];
    let several = plain.iter().filter(|kind| share(**kind) >= SIDE_KIND_SHARE).count() > 1;
    let spoilt = main != TextKind::Word && share(main) >= MAIN_KIND_SHARE;
    if total < ROWS_MIN || sides.is_empty() || !(spoilt || several) {
        return None;
    }
    let described = |kind: &TextKind| format!("{} {}", facts.kinds[*kind as usize].count, kind.plural());
    let parts: Vec<String> = sides.iter().map(described).collect();
    let odd = sides.iter().flat_map(|kind| &facts.kinds[*kind as usize].examples).min_by_key(|it| it.0);
    let first = odd.map(|(place, text)| format!("; the first is `{text}` in row {}", place.row));
    let first = first.filter(|_| spoilt).unwrap_or_default();
    let message = format!(
        "`{}` contains {} {} and {}: it is read as strings{first}",
        column.name,
        facts.kinds[main as usize].count,
        main.plural(),
        parts.join(", ")
    );
    let of_kind = |kind: &TextKind| facts.kinds[*kind as usize].examples.iter().take(2);
    let places = sides.iter().flat_map(of_kind).take(EXAMPLES_MAX);
    Some(
        about("columns.mixed_types", Severity::Warn, &column.name, message, MIXED_ACTION)
            .count(sides.iter().map(|kind| facts.kinds[*kind as usize].count).sum())
            .examples(places.map(|(place, text)| evidence.example(*place, Some(text.clone())))),
    )
}

/// Strings that differ only in case, blanks, `-`, `_` and their Unicode form. The values of a label are classes, however few rows they
/// have.
fn spellings(column: &ColumnProfile, is_label: bool) -> Option<Finding> {
    let values = column.top_values(usize::MAX);
    let is_category = match is_label {
        true => values.len() <= CLASSES_MAX,
        false => values.len() as f64 <= column.value_count() as f64 * CATEGORY_SHARE,
    };
    if !matches!(column.kind, ColumnType::Text | ColumnType::Mixed)
        || !column.values_are_exact()
        || !is_category
    {
        return None;
    }
    let mut by_plain: BTreeMap<String, Vec<&ValueCount>> = BTreeMap::new();
    for value in &values {
        by_plain.entry(plain(&value.value.to_string())).or_default().push(value);
    }
    // One letter in both cases may be two codes, but hardly two classes.
    let variants: Vec<_> = by_plain
        .into_iter()
        .filter(|(plain, values)| values.len() > 1 && (is_label || plain.chars().count() > 1))
        .collect();
    let (_, first) = variants.first()?;
    let shown: Vec<String> =
        first.iter().map(|it| format!("`{}` ({})", shown_form(&it.value.to_string()), it.count)).collect();
    // All but the most frequent spelling of each.
    let count = variants.iter().flat_map(|(_, values)| &values[1..]).map(|it| it.count).sum();
    let more = match variants.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more such values"),
    };
    let message = format!("`{}` writes one value in several ways: {}{more}", column.name, shown.join(", "));
    let action = "write one way: to a model they are different values";
    Some(about("columns.spellings", Severity::Warn, &column.name, message, action).count(count))
}

fn shown_form(text: &str) -> String {
    masked(&form_shown(text))
}

fn plain(text: &str) -> String {
    composed(text).to_lowercase().split(|char: char| char.is_whitespace() || "-_".contains(char)).collect()
}

fn placeholders(column: &ColumnProfile, facts: &ColumnFacts) -> Option<Finding> {
    let distinct = column.summary().distinct_estimate;
    let is_time = column.kind == ColumnType::Timestamp;
    let found = facts.placeholders.found(column.value_count(), distinct, is_time);
    let rows: u64 = found.iter().map(|(_, rows)| rows).sum();
    let name = |value: i64| match is_time {
        true => arrow::temporal_conversions::timestamp_us_to_datetime(value)
            .map_or_else(|| value.to_string(), |time| time.date().to_string()),
        false => value.to_string(),
    };
    let names: Vec<String> = found.iter().map(|(value, _)| name(*value)).collect();
    (!found.is_empty()).then(|| {
        let message = format!(
            "`{}` is {} in {rows} of {} rows ({}), far from all other values: it looks like a placeholder for a missing value",
            column.name,
            listed(&names),
            column.value_count(),
            percent(rows as f64 / column.value_count() as f64)
        );
        let action = "add it to `missing`, or the model treats it as a number";
        about("columns.placeholder", Severity::Warn, &column.name, message, action).count(rows)
    })
}

/// Zeros that were not measured: a warning where columns share them, else a note.
fn zeros(columns: &[(&ColumnProfile, &ColumnFacts)]) -> Vec<Finding> {
    let apart = columns.iter().filter_map(|(profile, facts)| Some((*profile, *facts, zeros_apart(profile)?)));
    let apart: Vec<(&ColumnProfile, &ColumnFacts, Zeros)> = apart.collect();
    let finding = |(column, facts, zeros): &(&ColumnProfile, &ColumnFacts, Zeros)| {
        let shares = |other: &&(&ColumnProfile, &ColumnFacts, Zeros)| {
            other.0.name != column.name && facts.zeros.are_shared_with(&other.1.zeros, other.2.share)
        };
        let others: Vec<String> = apart.iter().filter(shares).map(|other| other.0.name.clone()).collect();
        let (severity, with) = match others.is_empty() {
            true => (Severity::Note, ": it may mean that the value is missing".to_owned()),
            false => {
                let names = listed(&others);
                (
                    Severity::Warn,
                    format!(
                        ", often in the same rows as {names}: it looks like a placeholder for a missing value"
                    ),
                )
            }
        };
        let message = format!(
            "`{}` is 0 in {} of {} rows ({}), apart from all other values (the next is {}){with}",
            column.name,
            zeros.rows,
            column.value_count(),
            percent(zeros.share),
            zeros.next
        );
        let action = "if it was not measured, make it missing, or the model treats it as a number";
        about("columns.zeros", severity, &column.name, message, action).count(zeros.rows)
    };
    apart.iter().map(finding).collect()
}

fn near_unique(evidence: &TableEvidence, column: &ColumnProfile) -> Option<Finding> {
    let values = column.value_count();
    let share = column.summary().distinct_estimate as f64 / values.max(1) as f64;
    let is_text = column.kind == ColumnType::Text && !evidence.is_label(&column.name);
    (is_text && values >= ROWS_MIN * 5 && share >= NEAR_UNIQUE_SHARE).then(|| {
        let message = format!(
            "{} of the {values} strings of `{}` occur only once: as a category it can only be memorized",
            percent(share),
            column.name
        );
        let action = "do not use it as a feature, unless it is free text";
        about("columns.near_unique", Severity::Note, &column.name, message, action)
    })
}

/// Columns with equal cells in every row, and columns that are each other recoded.
fn duplicates(evidence: &TableEvidence, columns: &[(&ColumnProfile, &ColumnFacts)]) -> Vec<Finding> {
    let telling = |column: &&(&ColumnProfile, &ColumnFacts)| {
        column.0.summary().distinct_estimate > 1 && column.0.value_count() > 0
    };
    let mut equal: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    let mut recoded: BTreeMap<(usize, u64), Vec<&str>> = BTreeMap::new();
    for (profile, facts) in columns.iter().filter(telling) {
        let duplicates = equal.entry(facts.fingerprint).or_default();
        duplicates.push(&profile.name);
        // Of equal columns one is enough to report recodings of.
        if let Some(recoding) = facts.recoding().filter(|_| duplicates.len() == 1) {
            recoded.entry(recoding).or_default().push(&profile.name);
        }
    }
    let names = |names: Vec<&str>| -> Vec<String> { names.into_iter().map(str::to_owned).collect() };
    let mut findings = Vec::new();
    for duplicates in equal.into_values().filter(|duplicates| duplicates.len() > 1) {
        let duplicates = names(duplicates);
        let is_rounded = columns
            .iter()
            .any(|(profile, _)| duplicates.contains(&profile.name) && !profile.faults.rounded.is_none());
        let as_read = if is_rounded { ", as they were read: some of their values were rounded" } else { "" };
        let message = format!("{} are equal in every row{as_read}", listed(&duplicates));
        let finding = duplicate(evidence, "columns.equal", &duplicates, message);
        let label = columns
            .iter()
            .find(|(profile, _)| evidence.is_label(&profile.name) && duplicates.contains(&profile.name));
        let is_certain = label.is_some_and(|(profile, _)| information_bits(profile) >= CERTAIN_BITS);
        let severity = if is_certain && !is_rounded { Severity::Block } else { Severity::Warn };
        findings.push(Finding { severity, ..finding });
    }
    for duplicates in recoded.into_values().filter(|duplicates| duplicates.len() > 1) {
        let duplicates = names(duplicates);
        let message = format!(
            "{} are recodings of each other: their values correspond one to one",
            listed(&duplicates)
        );
        findings.push(duplicate(evidence, "columns.recoded", &duplicates, message));
    }
    findings
}

/// How many bits the values of a column carry together: two columns that are equal by coincidence have as many bits to
/// agree in. What is not known of rare values counts as nothing.
fn information_bits(column: &ColumnProfile) -> f64 {
    let rows = column.value_count() as f64;
    let bits = |it: &ValueCount| it.count as f64 * (rows / it.count as f64).log2();
    column.top_values(usize::MAX).iter().filter(|it| it.count > 0).map(bits).sum()
}

/// A duplicate of the label leaks the label.
fn duplicate(evidence: &TableEvidence, kind: &str, names: &[String], message: String) -> Finding {
    let (with_label, others): (Vec<_>, Vec<_>) = names.iter().partition(|name| evidence.is_label(name));
    let action = match with_label.is_empty() {
        true => "keep one of them",
        false => "drop all but the label: they reveal it",
    };
    let column = others.last().map_or(names[0].as_str(), |name| name.as_str());
    about(kind, Severity::Warn, column, message, action)
}
