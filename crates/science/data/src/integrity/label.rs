//! `data.label`: is there something to learn, and do both sides of a split write it alike?

use std::collections::{BTreeMap, HashSet};

use trackway_core::checks::{CheckResult, Finding, Severity};
use trackway_tables::ColumnType;
use trackway_tables::limits::EXAMPLES_MAX;
use trackway_tables::profile::{ColumnProfile, ValueCount};

use super::{LISTED, TableEvidence, about, answer, first_few, percent};
use crate::drift::only_spelling;
use crate::model::{CLASS_NUMBERS_MAX, CLASSES_MAX};
use crate::values::unicode_form::form_shown;

const NAME: &str = "data.label";

/// A class with fewer rows than this cannot be divided into ten folds, nor its rate be estimated.
const CLASS_ROWS_MIN: u64 = 10;

/// Checks the label of a table and, where given, compares it with that of the other side.
#[must_use]
pub fn label(evidence: &TableEvidence, against: Option<&TableEvidence>) -> CheckResult {
    let Some(name) = &evidence.label else {
        return CheckResult::not_applicable(NAME, "no label was named");
    };
    let Some(column) = evidence.profile.column(name) else {
        return CheckResult::not_run(NAME, format!("there is no column `{name}`"));
    };
    let mut findings = Vec::new();
    findings.extend(missing(evidence, column));
    let classes = classes(column);
    if let Some(classes) = &classes {
        findings.extend(sizes(column, classes));
    }
    let other = against.and_then(|against| against.profile.column(name));
    if let Some(other) = other {
        findings.extend(other_side(column, other, classes.as_deref()));
    } else if against.is_some() {
        findings.push(Finding::new(
            "label.not_compared",
            Severity::Note,
            format!("the other side has no column `{name}`; it was not compared"),
        ));
    }
    let kind = match classes {
        Some(classes) => crate::counted(classes.len() as u64, "class"),
        None => "it is continuous, or has too many values for classes".to_owned(),
    };
    answer(NAME, column.rows, findings, format!("`{name}`: {kind} in {}", crate::counted(column.rows, "row")))
}

/// Its values, where they are classes and all known.
fn classes(column: &ColumnProfile) -> Option<Vec<ValueCount>> {
    if !column.values_are_exact() {
        return None;
    }
    let values = column.top_values(usize::MAX);
    let max = match column.kind {
        ColumnType::Text | ColumnType::Bool | ColumnType::Mixed => CLASSES_MAX,
        ColumnType::Int => CLASS_NUMBERS_MAX,
        // A float label of whole numbers may be either; few values mean classes.
        ColumnType::Float if column.summary().order.is_some() => 3,
        _ => return None,
    };
    (values.len() <= max).then_some(values)
}

fn missing(evidence: &TableEvidence, column: &ColumnProfile) -> Vec<Finding> {
    // `data.rows` reports that there are no rows.
    if column.rows == 0 {
        return Vec::new();
    }
    let nothing = column.null_count + column.faults.misfits;
    let found = |kind: &str, severity, message: String, action: &str| {
        about(kind, severity, &column.name, message, action)
    };
    let mut findings = Vec::new();
    if nothing + column.nan_count() == column.rows {
        let message = format!("the label `{}` is missing in all {} rows", column.name, column.rows);
        let action = "name the right column, or join the labels first";
        return vec![found("label.all_null", Severity::Block, message, action)];
    }
    if nothing > 0 {
        let share = percent(nothing as f64 / column.rows as f64);
        let message = format!("the label `{}` is missing in {nothing} rows ({share})", column.name);
        let action = "drop these rows: nothing can be learned from them";
        findings.push(found("label.missing", Severity::Warn, message, action).count(nothing));
    }
    let not_finite = column.nan_count() + column.summary().infinite_count;
    if not_finite > 0 {
        let index = evidence.profile.columns.iter().position(|it| it.name == column.name);
        let facts = &evidence.facts.columns[index.expect("the column is one of the profile's")];
        let places = facts.nan.examples.iter().chain(&facts.infinite.examples).take(EXAMPLES_MAX);
        let message = format!("the label `{}` is NaN or infinite in {not_finite} rows", column.name);
        let action = "drop these rows: one in a batch makes the loss NaN";
        findings.push(
            found("label.nan", Severity::Block, message, action)
                .count(not_finite)
                .examples(places.map(|place| evidence.example(*place, None))),
        );
    }
    findings
}

fn sizes(column: &ColumnProfile, classes: &[ValueCount]) -> Option<Finding> {
    if let [only] = classes {
        let message = format!("the label `{}` is `{}` in every row that has one", column.name, only.value);
        let action = "find the rows of the other classes: with one class there is nothing to learn";
        return Some(about("label.one_class", Severity::Block, &column.name, message, action));
    }
    let small: Vec<&ValueCount> = classes.iter().filter(|class| class.count < CLASS_ROWS_MIN).collect();
    (!small.is_empty()).then(|| {
        let name = |class: &&ValueCount| format!("`{}` ({})", class.value, class.count);
        let message = format!(
            "{} of {} classes of `{}` have fewer than {CLASS_ROWS_MIN} rows: {}",
            small.len(),
            classes.len(),
            column.name,
            first_few(&small, name)
        );
        let action =
            "merge them with others, collect more rows, or drop them: they can be neither learned nor tested";
        about("label.small_class", Severity::Warn, &column.name, message, action)
    })
}

/// Whether the other side's values are ones that this side teaches.
fn other_side(
    column: &ColumnProfile,
    other: &ColumnProfile,
    classes: Option<&[ValueCount]>,
) -> Option<Finding> {
    let name = &column.name;
    let (Some(own), Some(others)) = (classes, values_of(other)) else {
        return kinds_differ(column, other);
    };
    let texts = |values: &[ValueCount]| -> HashSet<String> { values.iter().map(text).collect() };
    let (known, there) = (texts(own), texts(&others));
    let new: Vec<ValueCount> = others.iter().filter(|it| !known.contains(&text(it))).cloned().collect();
    let gone: Vec<ValueCount> = own.iter().filter(|it| !there.contains(&text(it))).cloned().collect();
    if new.is_empty() {
        return None;
    }
    let rows: u64 = new.iter().map(|it| it.count).sum();
    let shown = |values: &[ValueCount]| {
        values
            .iter()
            .take(LISTED)
            .map(|it| format!("`{}`", form_shown(&text(it))))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (message, action) = if only_spelling(&new, &gone) {
        let pairs: Vec<String> = renamed(&new, &gone).into_iter().take(LISTED).collect();
        (
            format!(
                "the two sides write the label `{name}` differently: {} here, {} there, in {rows} of {} rows",
                shown(&gone),
                shown(&new),
                other.rows
            ),
            format!("write {}: no prediction can be right until then", pairs.join(", ")),
        )
    } else {
        (
            format!(
                "{rows} of {} rows of the other side have a label `{name}` that no row here has: {}",
                other.rows,
                shown(&new)
            ),
            "no model can learn a class it is never shown: add rows of it here, or leave it out there"
                .to_owned(),
        )
    };
    Some(about("label.values_differ", Severity::Block, name, message, &action).count(rows))
}

fn values_of(column: &ColumnProfile) -> Option<Vec<ValueCount>> {
    column.values_are_exact().then(|| column.top_values(usize::MAX))
}

/// Numbers on one side, strings on the other.
fn kinds_differ(column: &ColumnProfile, other: &ColumnProfile) -> Option<Finding> {
    let is_number = |kind| matches!(kind, ColumnType::Int | ColumnType::Float);
    let is_empty = [column, other].iter().any(|side| side.kind == ColumnType::Null);
    (!is_empty && is_number(column.kind) != is_number(other.kind)).then(|| {
        let message = format!(
            "the label `{}` is {:?} here and {:?} on the other side",
            column.name, column.kind, other.kind
        );
        let action = "use one spelling";
        about("label.values_differ", Severity::Block, &column.name, message, action)
    })
}

/// A value as it is compared: `2` and `2.0` are one.
fn text(value: &ValueCount) -> String {
    value.value.to_string()
}

/// `X as Y` for each value that is another one written differently.
fn renamed(new: &[ValueCount], gone: &[ValueCount]) -> Vec<String> {
    let plain = crate::drift::plain_spelling;
    let by_plain: BTreeMap<String, String> = gone.iter().map(|it| (plain(it), text(it))).collect();
    let pair = |it: &ValueCount| {
        let gone = by_plain.get(&plain(it))?;
        Some(format!("`{}` as `{}`", form_shown(&text(it)), form_shown(gone)))
    };
    new.iter().filter_map(pair).collect()
}
