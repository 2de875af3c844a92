//! `data.values`: what no model can use, what could not be read, and what is unknown to the other side of a split.

use std::collections::HashSet;

use trackway_core::checks::{CheckResult, Finding, NoRows, Severity};
use trackway_tables::merge::CountedExamples;
use trackway_tables::profile::ColumnProfile;
use trackway_tables::read::{Place, RejectKind};
use trackway_tables::{ColumnType, DataError};

use super::facts::ColumnFacts;
use super::{TableEvidence, about, answer, first_few, masked, percent};

const NAME: &str = "data.values";

/// So many standard deviations more unknown rows than expected are significant.
const DEVIATIONS: f64 = 4.0;

/// Checks the cells of a table, and those of `against`, the data that a model trained here will meet.
#[must_use]
pub fn values(evidence: &TableEvidence, against: Option<&TableEvidence>) -> CheckResult {
    let mut findings = Vec::new();
    for side in [Some(evidence), against].into_iter().flatten() {
        findings.extend(rejected(side));
        findings.extend(recoded(side));
        for (column, facts) in side.profile.columns.iter().zip(&side.facts.columns) {
            findings.extend(not_finite(side, column, facts));
        }
    }
    let mut looked_at = crate::counted(evidence.profile.columns.len() as u64, "column");
    if let Some(against) = against {
        let (found, compared) = unknown_values(evidence, against);
        findings.extend(found);
        let columns = crate::counted(compared as u64, "string column");
        looked_at.push_str(&format!("; {columns} compared with the other data set"));
    }
    answer(NAME, evidence.profile.rows, findings, looked_at)
}

/// The answer where a file is damaged: nothing else can be checked.
#[must_use]
pub fn unreadable(error: &DataError) -> Option<CheckResult> {
    let damaged =
        matches!(error, DataError::Corrupt { .. } | DataError::Unreadable { .. } | DataError::Changed { .. });
    damaged.then(|| {
        let finding = Finding::new("values.unreadable", Severity::Block, error.to_string())
            .action("get the file again from its source, and compare sizes or checksums");
        CheckResult::about(NAME, NoRows::Unreadable, vec![finding])
    })
}

fn rejected(evidence: &TableEvidence) -> Vec<Finding> {
    let coverage = &evidence.coverage;
    let rows = coverage.rows_read + coverage.rows_rejected;
    let finding = |rejects: &trackway_tables::read::Rejects| {
        let what = match rejects.kind {
            RejectKind::Ragged => "have another number of fields than columns",
            RejectKind::OpenQuote => "have an unclosed quote",
            RejectKind::BadJson => "are not JSON objects",
        };
        Finding::new(
            "values.rejected",
            Severity::Warn,
            format!("{} of {rows} rows {what}: they are not read", rejects.count),
        )
        .action("fix the rows; many programs silently drop or shift such rows")
        .count(rejects.count)
        .examples(rejects.examples.iter().map(|fault| evidence.fault_example(fault)))
    };
    coverage.rejects.iter().map(finding).collect()
}

fn recoded(evidence: &TableEvidence) -> Option<Finding> {
    let coverage = &evidence.coverage;
    let place = coverage.first_recoded?;
    Some(
        Finding::new(
            "values.not_utf8",
            Severity::Warn,
            format!(
                "{} with bytes that are not valid UTF-8, read as Windows-1252",
                crate::counted(coverage.rows_recoded, "row")
            ),
        )
        .action("write the files in UTF-8")
        .count(coverage.rows_recoded)
        .examples(vec![evidence.example(place, None)]),
    )
}

/// NaN and infinities: one of them in a batch makes the loss NaN.
fn not_finite(evidence: &TableEvidence, column: &ColumnProfile, facts: &ColumnFacts) -> Vec<Finding> {
    // The label has a separate check.
    if evidence.is_label(&column.name) {
        return Vec::new();
    }
    let infinite = column.summary().infinite_count;
    let found = [
        ("values.nan", "NaN", column.nan_count(), &facts.nan),
        ("values.infinite", "infinite", infinite, &facts.infinite),
    ];
    let finding = |(kind, what, count, facts): &(&str, &str, u64, &CountedExamples<Place>)| {
        let share = percent(*count as f64 / column.rows.max(1) as f64);
        let message = format!("`{}` is {what} in {count} of {} rows ({share})", column.name, column.rows);
        let action = "fill them in, drop the rows, or make them missing: one in a batch makes the loss NaN";
        let examples = facts.examples.iter().map(|place| evidence.example(*place, Some((*what).to_owned())));
        about(kind, Severity::Block, &column.name, message, action).count(*count).examples(examples)
    };
    found.iter().filter(|(_, _, count, _)| *count > 0).map(finding).collect()
}

/// Categories of the other side that this side does not have, and how many columns were compared.
///
/// Rare values are always missed by some sample: about as many rows of new data have an unknown value as values occur
/// once here (I. Good and A. Turing, 1953). Only more than that is a warning.
fn unknown_values(evidence: &TableEvidence, against: &TableEvidence) -> (Vec<Finding>, usize) {
    let mut findings = Vec::new();
    let mut compared = 0;
    for column in &evidence.profile.columns {
        let other = against.profile.column(&column.name);
        let is_text = |column: &ColumnProfile| column.kind == ColumnType::Text && column.values_are_exact();
        let Some(other) = other.filter(|other| is_text(other) && is_text(column)) else { continue };
        if evidence.is_label(&column.name) {
            continue;
        }
        compared += 1;
        findings.extend(unknown(column, other));
    }
    (findings, compared)
}

fn unknown(column: &ColumnProfile, other: &ColumnProfile) -> Option<Finding> {
    let values = column.top_values(usize::MAX);
    let known: HashSet<String> = values.iter().map(|it| it.value.to_string()).collect();
    let unknown =
        other.top_values(usize::MAX).into_iter().filter(|it| !known.contains(&it.value.to_string()));
    let unknown: Vec<_> = unknown.collect();
    let rows: u64 = unknown.iter().map(|it| it.count).sum();
    if rows == 0 {
        return None;
    }
    let once = values.iter().filter(|it| it.count == 1).count() as f64;
    let share = once / column.value_count().max(1) as f64;
    let expected = share * other.value_count() as f64;
    // A value that occurs on the other side alone comes in as many rows as it likes: its count is noise too.
    let largest = unknown.iter().map(|it| it.count).max().unwrap_or(0) as f64;
    let limit = expected + DEVIATIONS * (expected.max(1.0)).sqrt();
    let is_rare = rows as f64 <= limit && largest <= limit;
    let name = |it: &trackway_tables::profile::ValueCount| {
        format!("`{}` ({})", masked(&it.value.to_string()), it.count)
    };
    let because = match is_rare {
        true => format!("; about {expected:.0} are expected in new data"),
        false => String::new(),
    };
    let message = format!(
        "{rows} rows of the other side ({}) have a `{}` that no row here has: {}{because}",
        percent(rows as f64 / other.value_count().max(1) as f64),
        column.name,
        first_few(&unknown, name)
    );
    let severity = if is_rare { Severity::Note } else { Severity::Warn };
    let action = "give the model a category for unknown values, or find out why the values differ";
    Some(about("values.unknown", severity, &column.name, message, action).count(rows))
}
