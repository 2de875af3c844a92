use std::path::Path;

use trackway_engine::home::Home;
use trackway_flows::data::ReadContext;
use trackway_flows::data::check::Verdict;
use trackway_flows::data::drift::{
    ColumnDrift, DriftReport, DriftRequest, DriftTest, JointDrift, Role, UNKNOWN_FRACTION_MIN,
    drift as compare,
};
use trackway_flows::data::profile::ValueCount;

use super::{reading, request};
use crate::args::{DriftArgs, FailOn};
use crate::commands::checks::verdict;
use crate::exit::{BLOCKED, Exit};
use crate::printer::{Printer, StyledLine, Tone, row};
use crate::units::{counted, p_value, shortened};

/// New or gone values that are listed, and letters of one of them.
const VALUES_MAX: usize = 3;
const VALUE_LETTERS_MAX: usize = 32;

pub fn drift(home: &Home, args: &DriftArgs, read: &ReadContext, printer: Printer) -> Exit {
    let sides =
        (&request(&args.reference, &args.reading, read), &request(&args.current, &args.reading, read));
    let asked = DriftRequest {
        label: args.label.as_deref(),
        skip: &args.skip,
        joint: args.joint,
        all_rows: args.all_rows,
    };
    let report = reading(printer, |observer| compare(home, Path::new(""), sides, asked, observer))?;
    printer.answer(&report, || print(printer, &report));
    let fails = match args.fail_on {
        FailOn::Block => report.verdict == Verdict::Block,
        FailOn::Warn => report.verdict != Verdict::Pass,
    };
    Ok(if fails { BLOCKED } else { 0 })
}

pub(super) fn print(printer: Printer, report: &DriftReport) {
    let mut columns: Vec<&ColumnDrift> = report.columns.iter().collect();
    columns.sort_by_key(|column| !column.drifted);
    let header = [
        "column", "result", "test", "distance", "threshold", "noise", "p (corrected)", "missing before → now",
    ];
    printer.table(&header, columns.iter().map(|column| cells(printer, column)).collect());
    printer.line("");
    printer.points(Tone::Warning, columns.iter().filter_map(|column| unknown(column)));
    printer.points(Tone::Warning, columns.iter().filter_map(|column| values(column)));
    for change in &report.schema_changes {
        let what = match (change.reference, change.current) {
            (Some(_), None) => "was removed".to_owned(),
            (None, Some(_)) => "was added".to_owned(),
            (Some(before), Some(now)) => format!("had the type {before} and is {now} now"),
            (None, None) => continue,
        };
        let line = format!("`{}` {what}", change.name);
        printer.point(Tone::Warning, line);
    }
    for apart in &report.set_apart {
        printer.line(format!("set apart: `{}`: {}", apart.name, apart.why));
    }
    if let Some(joint) = &report.joint {
        print_joint(printer, joint);
    }
    printer.line(verdict(printer, report.verdict) + summary(report));
    if report.reference_rows_sampled.or(report.current_rows_sampled).is_some() {
        printer.line(format!(
            "numbers: {} of the rows before and {} of those now were compared; --all-rows compares all",
            report.reference_rows_sampled.unwrap_or(report.reference_rows),
            report.current_rows_sampled.unwrap_or(report.current_rows)
        ));
    }
}

/// What follows the verdict: what blocks, else how many features drifted.
fn summary(report: &DriftReport) -> String {
    let label = match report.label_drifted {
        Some(true) => "; the label drifted too",
        Some(false) => "; the label did not drift",
        None => "",
    };
    let jointly = report.joint.as_ref().is_some_and(|joint| joint.drifted);
    let joint = if jointly { " by itself, their joint distribution did" } else { "" };
    let of_features = report.drifted_of_features();
    let mut parts = report.blocked_by.clone();
    if parts.is_empty() {
        parts.push(format!("{of_features}{joint}{label}"));
    } else if report.drifted_features > 0 && !parts.contains(&of_features) {
        parts.push(of_features);
    }
    let rows = counted(report.reference_rows, "row");
    format!(": {} ({rows} before, {} now)", parts.join(", "), report.current_rows)
}

/// How many rows have a value that the reference does not have, where that is drift.
fn unknown(column: &ColumnDrift) -> Option<String> {
    let unknown = column.unknown.filter(|unknown| unknown.drifted)?;
    let about = if unknown.is_exact { "" } else { "about " };
    Some(format!(
        "`{}`: {about}{:.0} % of the current values are unknown to the reference, {:.0} % expected",
        column.name,
        unknown.fraction * 100.0,
        unknown.expected_fraction * 100.0
    ))
}

fn print_joint(printer: Printer, joint: &JointDrift) {
    let apart = format!(
        "{:.3} (95 %: {:.3} to {:.3}; 0.5 without drift)",
        joint.area, joint.interval.low, joint.interval.high
    );
    if joint.drifted {
        let share = |it: &trackway_flows::data::drift::ColumnImportance| {
            format!("`{}` ({:.0} %)", it.name, it.importance * 100.0)
        };
        let columns: Vec<String> = joint.columns.iter().map(share).collect();
        let line =
            format!("a domain classifier separates the rows with AUC {apart}, by {}", columns.join(", "));
        printer.line(printer.tone(Tone::Bad, "joint drift") + " " + line);
    } else {
        printer
            .line(format!("no multivariate drift: a domain classifier separates the rows with AUC {apart}"));
    }
    for why in &joint.skipped {
        printer.point(Tone::Warning, format!("left out: {why}"));
    }
}

fn cells(printer: Printer, column: &ColumnDrift) -> Vec<StyledLine> {
    let only_missing = column.missing.drifted && !column.values_drifted() && !column.unknown_drifted();
    let state = match (column.drifted, column.role) {
        (true, Role::Feature) if only_missing => printer.tone(Tone::Bad, "missing values drifted"),
        (true, Role::Feature) => printer.tone(Tone::Bad, "drifted"),
        (true, Role::Label) if only_missing => printer.tone(Tone::Bad, "missing labels drifted"),
        (true, Role::Label) => printer.tone(Tone::Bad, "label drifted"),
        (false, Role::Label) => StyledLine::from("label"),
        (false, Role::Feature) => StyledLine::default(),
    };
    // What decided is shown: the distance of the values, or that too many of them are unknown.
    let of_unknown = column.unknown.filter(|unknown| unknown.drifted && !column.values_drifted());
    let (test, numbers, p) = match of_unknown {
        Some(unknown) => {
            let expected = unknown.expected_fraction;
            (
                "unknown values",
                [unknown.fraction, expected + UNKNOWN_FRACTION_MIN, expected],
                unknown.adjusted_p_value,
            )
        }
        None => {
            let numbers = [column.statistic, column.threshold, column.noise];
            (test_name(column.test), numbers, Some(column.adjusted_p_value))
        }
    };
    let [distance, threshold, noise] = numbers.map(|number| format!("{number:.3}"));
    row![
        &column.name,
        state,
        test,
        distance,
        threshold,
        noise,
        p.map_or_else(|| "–".to_owned(), p_value),
        format!(
            "{:.1} % → {:.1} %",
            column.missing.reference_fraction * 100.0,
            column.missing.current_fraction * 100.0
        ),
    ]
}

fn test_name(test: DriftTest) -> &'static str {
    match test {
        DriftTest::KolmogorovSmirnov => "Kolmogorov–Smirnov",
        DriftTest::Wasserstein => "Wasserstein",
        DriftTest::CramersV => "Cramér's V",
        DriftTest::JensenShannon => "Jensen–Shannon",
        DriftTest::LInfinity => "largest change of a fraction",
        DriftTest::MissingFraction => "missing values only",
    }
}

/// New and gone values in a sentence: a few of them, and of a text its beginning.
fn values(column: &ColumnDrift) -> Option<String> {
    if come_and_go(column.drifted || column.only_spelling, column.new_value_count, column.removed_value_count)
    {
        return None;
    }
    let (new, gone) = (texts(&column.new_values), texts(&column.removed_values));
    let (in_new, in_gone) = (missing_in(&new, &gone), missing_in(&gone, &new));
    if !new.is_empty() && in_new.is_empty() && in_gone.is_empty() {
        return Some(format!(
            "`{}` has {} and no longer {} others, which look the same as shown",
            column.name,
            counted(column.new_value_count, "new value"),
            column.removed_value_count
        ));
    }
    let new = listed(&in_new, column.new_value_count);
    let gone = listed(&in_gone, column.removed_value_count);
    let spelling = if column.only_spelling { ": the same values, written differently" } else { "" };
    match (new.is_empty(), gone.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("`{}` has new values: {new}", column.name)),
        (true, false) => Some(format!("`{}` no longer has {gone}", column.name)),
        (false, false) => {
            Some(format!("`{}` has new values {new} and no longer {gone}{spelling}", column.name))
        }
    }
}

/// Whether many values came and many went though that changed nothing: rare values do so between any two samples.
fn come_and_go(has_changed: bool, new: u64, gone: u64) -> bool {
    !has_changed && new.min(gone) > VALUES_MAX as u64
}

/// Values as they are shown, each text once: masked, several are one.
fn texts(values: &[ValueCount]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for value in values {
        let text = format!("`{}`", shortened(&value.value.to_string(), VALUE_LETTERS_MAX));
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// The texts that the other side does not show as well: a mask on both sides names nothing that is new.
fn missing_in<'t>(texts: &'t [String], other: &[String]) -> Vec<&'t str> {
    texts.iter().filter(|text| !other.contains(text)).map(String::as_str).collect()
}

/// A few of so many values.
fn listed(texts: &[&str], count: u64) -> String {
    let shown = &texts[..texts.len().min(VALUES_MAX)];
    match (shown.is_empty(), (count as usize).saturating_sub(shown.len())) {
        (_, 0) => shown.join(", "),
        (true, more) => more.to_string(),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use trackway_flows::data::profile::Value;

    use super::*;

    fn of(values: &[&str]) -> Vec<ValueCount> {
        let value = |text: &&str| ValueCount { value: Value::Text((*text).to_owned()), count: 1 };
        values.iter().map(value).collect()
    }

    /// Proves that many rare values which come and go are listed only of a column that changed, and few always.
    #[test]
    fn rare_values_come_and_go() {
        assert!(come_and_go(false, 255, 588));
        assert!(!come_and_go(true, 255, 588) && !come_and_go(false, 1, 46) && !come_and_go(false, 3, 3));
    }

    /// Proves that a text which both sides show is not listed as new or gone, and that of what is left a few are.
    #[test]
    fn masks_of_both_sides_are_not_listed() {
        let (new, gone) =
            (texts(&of(&["+1…02", "+1…02", "+1…07"])), texts(&of(&["+1…02", "a", "b", "c", "d"])));
        assert_eq!(missing_in(&new, &gone), ["`+1…07`"]);
        assert_eq!(listed(&missing_in(&gone, &new), 9), "`a`, `b`, `c` and 6 more");
        assert_eq!(listed(&missing_in(&new, &new), 3), "3");
    }
}
