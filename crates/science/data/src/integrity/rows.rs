//! `data.rows`: do rows repeat more than expected; are some empty?

use trackway_core::checks::{CheckResult, Finding, Severity};
use trackway_core::{Rng, SplitMix64};
use trackway_tables::profile::ColumnProfile;

use super::{TableEvidence, answer, percent};
use crate::values::identifier;

const NAME: &str = "data.rows";

/// From this fraction of repeated rows on a user should look (Deepchecks lets 5 % pass).
const REPEATED_SHARE_WARNS: f64 = 0.01;

/// Up to so many times the fraction that independent columns would show is expected.
const EXPECTED_FACTOR: f64 = 2.0;

/// Files without rows that a finding names.
const FILES_NAMED_MAX: usize = 5;

/// Random rows that estimate how many repeats to expect.
const SAMPLED_ROWS: usize = 1_000;

/// Checks the rows of a table.
#[must_use]
pub fn rows(evidence: &TableEvidence) -> CheckResult {
    let mut findings = Vec::new();
    findings.extend(none(evidence));
    findings.extend(repeated(evidence));
    findings.extend(empty(evidence));
    findings.extend(empty_files(evidence));
    answer(NAME, evidence.profile.rows, findings, crate::counted(evidence.profile.rows, "row"))
}

fn none(evidence: &TableEvidence) -> Option<Finding> {
    (evidence.profile.rows == 0).then(|| {
        let message = "the table has no rows: it can be used neither for training nor for testing";
        Finding::new("rows.none", Severity::Block, message)
            .action("check whether the export or a filter failed")
    })
}

fn repeated(evidence: &TableEvidence) -> Option<Finding> {
    let repeats = evidence.repeats();
    let rows = evidence.profile.rows as f64;
    if repeats.by_features == 0 {
        return None;
    }
    let share = repeats.by_features as f64 / rows;
    let expected = expected_fraction(evidence, &repeats.without);
    let explained = share <= expected * EXPECTED_FACTOR;
    let severity = if share >= REPEATED_SHARE_WARNS && !explained { Severity::Warn } else { Severity::Note };
    let about = if repeats.exact { "" } else { "about " };
    let label = match &evidence.label {
        Some(label) => format!(
            " by their features, {} of them with the same `{label}`",
            repeats.with_label.min(repeats.by_features)
        ),
        None => String::new(),
    };
    let because = match explained {
        true => {
            format!("; {} are expected with independent columns, so this means little", percent(expected))
        }
        false => format!("; about {} are expected with independent columns", percent(expected)),
    };
    let message = format!(
        "{about}{} of {} rows ({}) repeat an earlier one{label}{}{because}",
        repeats.by_features,
        evidence.profile.rows,
        percent(share),
        identifier::without(&repeats.without)
    );
    let files = &evidence.files;
    let example = |(row, first): &(trackway_tables::read::Place, trackway_tables::read::Place)| {
        let first_file = files.get(first.file).map_or("?", String::as_str);
        evidence.example(*row, Some(format!("= {first_file} {}", first.row)))
    };
    Some(
        Finding::new("rows.repeated", severity, message)
            .action("find out whether they are genuine; otherwise remove them before splitting")
            .count(repeats.by_features)
            .examples(repeats.examples.iter().map(example)),
    )
}

/// The fraction of rows that would repeat an earlier one if the columns were independent of each other: random rows are
/// made from the columns' frequencies, each with the probability that an earlier row equals it.
fn expected_fraction(evidence: &TableEvidence, without: &[String]) -> f64 {
    let counts = |column: &&ColumnProfile| {
        let left_out = [&evidence.ignored, without].into_iter().flatten().any(|name| *name == column.name);
        !left_out && !evidence.is_label(&column.name)
    };
    let columns: Vec<Vec<(f64, f64)>> =
        evidence.profile.columns.iter().filter(counts).map(frequencies).collect();
    let rows = evidence.profile.rows as f64;
    let mut rng = SplitMix64::new(0);
    let mut repeating = 0.0;
    for _ in 0..SAMPLED_ROWS {
        let likelihood: f64 = columns.iter().map(|column| drawn(column, rng.next_unit())).product();
        // The mean over the places in the table of the probability that one of the rows before is equal: 1 - (1 - (1 -
        // p)^n) / (n p), with (1 - p)^n as e^(-np).
        let expected = rows * likelihood;
        repeating += if expected > 1e-6 { 1.0 - (-(-expected).exp_m1()) / expected } else { expected / 2.0 };
    }
    repeating / SAMPLED_ROWS as f64
}

/// For each value of a column its fraction of the rows, and its fraction of all *other* rows: what occurs once is not
/// expected again. Missing is a value. Of a column with many values, the rare ones are taken as equally frequent.
fn frequencies(column: &ColumnProfile) -> Vec<(f64, f64)> {
    let rows = column.rows as f64;
    let mut counts: Vec<f64> = column.top_values(usize::MAX).iter().map(|value| value.count as f64).collect();
    counts.push((column.null_count + column.nan_count() + column.faults.misfits) as f64);
    let untold_rows = rows - counts.iter().sum::<f64>();
    let untold = column.summary().distinct_estimate as f64 - (counts.len() as f64 - 1.0);
    let mut shares: Vec<(f64, f64)> =
        counts.into_iter().map(|count| (count / rows, ((count - 1.0) / (rows - 1.0)).max(0.0))).collect();
    if untold_rows > 0.0 {
        let each = untold_rows / untold.max(1.0);
        shares.push((untold_rows / rows, ((each - 1.0) / (rows - 1.0)).max(0.0)));
    }
    shares
}

/// How often the value that a number in `[0, 1)` falls on occurs in other rows.
fn drawn(shares: &[(f64, f64)], mut unit: f64) -> f64 {
    let found = shares.iter().find(|(share, _)| {
        unit -= share;
        unit < 0.0
    });
    found.map_or(0.0, |(_, others)| *others)
}

/// Files of a table of several from which no row came. A table without any row is [`none`].
fn empty_files(evidence: &TableEvidence) -> Option<Finding> {
    let names = evidence.files.iter().enumerate();
    let empty: Vec<&String> = names
        .filter(|(index, _)| !evidence.coverage.file_rows.contains_key(index))
        .map(|(_, name)| name)
        .collect();
    if evidence.profile.rows == 0 || empty.is_empty() {
        return None;
    }
    let named: Vec<String> = empty.iter().take(FILES_NAMED_MAX).map(|name| format!("`{name}`")).collect();
    let more = if empty.len() > named.len() { ", …" } else { "" };
    let message = format!(
        "no row was read from {} of {} files: {}{more}",
        empty.len(),
        evidence.files.len(),
        named.join(", ")
    );
    let action = "find out what was lost, or remove them";
    Some(Finding::new("rows.empty_files", Severity::Warn, message).action(action).count(empty.len() as u64))
}

fn empty(evidence: &TableEvidence) -> Option<Finding> {
    let count = evidence.facts.empty.count;
    (count > 0).then(|| {
        Finding::new(
            "rows.empty",
            Severity::Warn,
            format!("{count} of {} rows have no value in any column", evidence.profile.rows),
        )
        .action("remove them, or find out what was lost")
        .count(count)
        .examples(evidence.facts.empty.examples.iter().map(|place| evidence.example(*place, None)))
    })
}
