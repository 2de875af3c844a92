//! What an overlap means for a run.

use trackway_core::checks::{CheckResult, Example, Finding, Severity};
use trackway_tables::read::Source;

use super::columns::Roles;
use super::duplicates::Duplicates;
use super::expected::{ExpectedOverlap, explains};
use super::overlap::{GroupOverlap, RowOverlap, TimeOverlap};
use super::{
    ALL_ROWS, CONFLICTS, GROUPS, IDENTIFIERS, Leakage, NEAR, NO_ROWS, ROWS, SAME_FILE, TARGET, TIME,
    preprocessing,
};
use crate::leakage::shared::{Explanation, Shared};
use crate::values::identifier;

/// From this fraction of a side's rows on, conflicting labels are more than the usual noise.
const CONFLICTING_SHARE_WARNS: f64 = 0.05;

/// That every test row is a training row is certain when its probability by coincidence is less than 2⁻⁴⁰.
const CERTAIN_BITS: f64 = 40.0;

impl Leakage {
    /// What each check that was wanted answers, in the order of [`super::CHECKS`]. `train` and `test` are the sources
    /// that were read.
    #[must_use]
    pub fn results(&self, roles: &Roles, train: &Source, test: &Source) -> Vec<CheckResult> {
        let label = roles.label.as_deref();
        // Every one of these checks compares two sides.
        let rows = self.overlap.train.rows_read.min(self.overlap.test.rows_read);
        let answer = |name: &&str| match *name {
            ROWS => self.rows(rows, roles, train, test),
            GROUPS => self.groups(rows, roles),
            TIME => self.time(rows, roles),
            CONFLICTS => self.conflicts(rows, roles),
            NEAR => match &self.near {
                Some(near) => near.result(rows, train, test),
                None => CheckResult::not_run(NEAR, "it was not checked"),
            },
            TARGET => match (&self.target, label) {
                (Some(target), Some(label)) => target.result(rows, label),
                (_, None) => CheckResult::not_applicable(TARGET, "no column is named as the label"),
                (None, Some(label)) => CheckResult::not_applicable(
                    TARGET,
                    format!(
                        "`{label}` has fewer than two values, or is known in fewer than 50 training rows"
                    ),
                ),
            },
            IDENTIFIERS => self.identifiers.result(rows, label, roles.group.as_deref()),
            _ => preprocessing::result(rows, &self.fitted, self.fitted_looked_at),
        };
        self.wanted.iter().map(answer).collect()
    }

    fn rows(&self, rows: u64, roles: &Roles, train: &Source, test: &Source) -> CheckResult {
        let left_out = |why: &String| {
            Finding::new("leakage.not_compared", Severity::Note, format!("{why}; it was not compared"))
        };
        let overlap = &self.overlap;
        let sides = (overlap.train.rows_read, self.expected.unwrap_or_default());
        let shared = shared_rows(&overlap.rows, sides, roles, (train, test));
        let mut findings: Vec<Finding> = shared.into_iter().collect();
        let sides = [("training", overlap.train.rows_read), ("test", overlap.test.rows_read)];
        findings.extend(sides.into_iter().filter(|(_, rows)| *rows == 0).map(|(side, _)| {
            Finding::new(NO_ROWS, Severity::Block, format!("the {side} side has no rows"))
                .action("check whether its export or a filter failed")
        }));
        findings.extend(
            self.same_files.first().map(|(one, other)| same_files(self.same_files.len(), one, other)),
        );
        findings.extend(overlap.not_compared.iter().map(left_out));
        let why =
            format!("{} test rows among {} training rows", overlap.test.rows_read, overlap.train.rows_read);
        CheckResult::of_rows(ROWS, rows, findings).because(why)
    }

    fn groups(&self, rows: u64, roles: &Roles) -> CheckResult {
        match (&self.overlap.groups, &roles.group) {
            (Some(groups), Some(column)) => {
                let findings = shared_groups(groups, column).into_iter().collect();
                let why = format!("{} values of `{column}` on the test side", groups.test_groups);
                CheckResult::of_rows(GROUPS, rows, findings).because(why)
            }
            _ => CheckResult::not_applicable(GROUPS, "no column is named as the group"),
        }
    }

    fn time(&self, rows: u64, roles: &Roles) -> CheckResult {
        match (&self.overlap.time, &roles.time) {
            (Some(time), Some(column)) => {
                let findings = shared_time(time, column).into_iter().collect();
                let why = format!("{} test rows with a time", time.test_rows_timed);
                CheckResult::of_rows(TIME, rows, findings).because(why)
            }
            (None, Some(column)) if rows > 0 => {
                let message = format!(
                    "`{column}` is neither a time nor a number on both sides: the order was not checked"
                );
                let finding = Finding::new(TIME, Severity::Block, message).about(column);
                let finding = finding.action("name the column of the time, or convert it");
                CheckResult::not_run(TIME, "the order was not checked").with_findings(vec![finding])
            }
            (None, Some(_)) => CheckResult::not_run(TIME, "a side has no rows"),
            (_, None) => CheckResult::not_applicable(TIME, "no column is named as the time"),
        }
    }

    fn conflicts(&self, rows: u64, roles: &Roles) -> CheckResult {
        let Some(label) = &roles.label else {
            return CheckResult::not_applicable(CONFLICTS, "no column is named as the label");
        };
        let shared = &self.overlap.rows;
        let expected = self.expected.unwrap_or_default();
        let mut findings: Vec<Finding> =
            conflicting_labels(shared, label, expected.conflicting).into_iter().collect();
        for (side, duplicates, expected) in [
            ("training", &shared.train_duplicates, expected.conflicting_in_train),
            ("test", &shared.test_duplicates, expected.conflicting_in_test),
        ] {
            findings.extend(conflicts_within(duplicates, &shared.without, (label, side), expected));
        }
        CheckResult::of_rows(CONFLICTS, rows, findings)
    }
}

fn same_files(count: usize, train: &str, test: &str) -> Finding {
    let message = match count {
        1 => format!("the test file `{test}` is identical to the training file `{train}`"),
        count => {
            format!("{count} test files are identical to training files, such as `{test}` and `{train}`")
        }
    };
    Finding::new(SAME_FILE, Severity::Block, message)
        .count(count as u64)
        .action("use a test set that was held out from training")
}

/// Whether a random split of such data would hardly ever put every row of the test side among those of the training side:
/// a row is there with the probability that one of the training side has a duplicate in it.
fn is_no_coincidence(rows: &RowOverlap, train_rows: u64) -> bool {
    let train_rows = train_rows as f64;
    let expected = (rows.train_duplicates.share * train_rows + 1.0) / (train_rows + 2.0);
    rows.test_rows as f64 * -expected.log2() >= CERTAIN_BITS
}

/// What independent columns explain, in a message.
fn coincidence(expected: f64, fraction: f64) -> String {
    match explains(expected, fraction) {
        true => {
            let expected = expected * 100.0;
            format!("; {expected:.2} % are expected with independent columns, so this means little")
        }
        false => String::new(),
    }
}

fn shared_rows(
    rows: &RowOverlap,
    (train_rows, independent): (u64, ExpectedOverlap),
    roles: &Roles,
    (train, test): (&Source, &Source),
) -> Option<Finding> {
    if rows.shared_rows == 0 {
        return None;
    }
    let expected = rows.train_duplicates.share;
    let sides =
        Shared { test: rows.test_rows, shared: rows.shared_rows, train: train_rows, repeated: expected };
    let explanation = sides.explanation();
    let is_coincidence = explains(independent.shared, sides.fraction());
    let severity = match explanation {
        _ if sides.blocks() => Severity::Block,
        // Without identifiers, or with few values in few columns, rows that are not copies may be equal.
        Explanation::Repetition if !rows.without.is_empty() || is_coincidence => Severity::Note,
        _ => Severity::Warn,
    };
    let is_all = severity == Severity::Block
        && rows.shared_rows == rows.test_rows
        && is_no_coincidence(rows, train_rows);
    let label = if roles.label.is_some() { " (ignoring the label)" } else { "" };
    let expectation = match explanation {
        Explanation::Repetition if is_coincidence => coincidence(independent.shared, sides.fraction()),
        Explanation::Repetition => format!(
            "; {:.2} % of the training rows are duplicates themselves, so a random split would overlap about as much",
            expected * 100.0
        ),
        Explanation::Coincidence(probability) => {
            format!("; a random split of so few rows overlaps as much with probability {probability:.2}")
        }
        Explanation::None => format!("; a random split would overlap by about {:.2} %", expected * 100.0),
    };
    let message = format!(
        "{} of {} test rows ({:.2} %) also appear in the training data{label}{}{expectation}",
        rows.shared_rows,
        rows.test_rows,
        sides.fraction() * 100.0,
        identifier::without(&rows.without)
    );
    let example = |it: &super::SharedRow| Example {
        file: Some(test.files()[it.test.file].path.clone()),
        row: Some(it.test.row),
        value: Some(format!("= {} {}", train.files()[it.train.file].path, it.train.row)),
    };
    Some(
        Finding::new(if is_all { ALL_ROWS } else { ROWS }, severity, message)
            .action("remove duplicates before the split, or split by the hash of the row")
            .count(rows.shared_rows)
            .examples(rows.examples.iter().map(example)),
    )
}

fn conflicting_labels(rows: &RowOverlap, label: &str, expected: f64) -> Option<Finding> {
    let conflicting = rows.shared_rows - rows.shared_with_label;
    let fraction = conflicting as f64 / rows.test_rows.max(1) as f64;
    let severity = if explains(expected, fraction) { Severity::Note } else { Severity::Warn };
    (conflicting > 0).then(|| {
        let message = format!(
            "{conflicting} test rows have the same features{} as training rows but a different `{label}`{}",
            identifier::without(&rows.without),
            coincidence(expected, fraction)
        );
        let action = "check that both sides encode the label the same way, then whether the features determine it \
                      at all";
        Finding::new(CONFLICTS, severity, message).about(label).action(action).count(conflicting)
    })
}

/// Equal features with different labels within a side: no model is right on all of these.
fn conflicts_within(
    duplicates: &Duplicates,
    without: &[String],
    (label, side): (&str, &str),
    expected: f64,
) -> Option<Finding> {
    let share = duplicates.conflicting_share;
    let is_much = share >= CONFLICTING_SHARE_WARNS && !explains(expected, share);
    let severity = if is_much { Severity::Warn } else { Severity::Note };
    (share > 0.0).then(|| {
        let message = format!(
            "{}{:.2} % of the {side} rows have the same features{} as another row but a different `{label}`{}",
            if duplicates.exact { "" } else { "about " },
            share * 100.0,
            identifier::without(without),
            coincidence(expected, share)
        );
        let action =
            "no model can be right on all of them: check the labels, or add a feature that separates them";
        let rows = (share * duplicates.rows as f64).round() as u64;
        Finding::new(CONFLICTS, severity, message).about(label).action(action).count(rows)
    })
}

fn shared_groups(groups: &GroupOverlap, column: &str) -> Option<Finding> {
    (groups.shared_groups > 0).then(|| {
        let message = format!(
            "{} of {} values of `{column}` on the test side are on the training side too, with {} test rows",
            groups.shared_groups, groups.test_groups, groups.test_rows_in_shared
        );
        let finding = Finding::new(GROUPS, Severity::Block, message).about(column);
        finding.action("split by the group").count(groups.shared_groups)
    })
}

fn shared_time(time: &TimeOverlap, column: &str) -> Option<Finding> {
    if time.test_rows_not_after == 0 {
        return None;
    }
    let only_equal = time.test_rows_not_after == time.test_rows_equal;
    let message = format!(
        "{} of {} test rows are not after the last training row by `{column}`{}",
        time.test_rows_not_after,
        time.test_rows_timed,
        if only_equal { ", all of them with the same timestamp" } else { "" }
    );
    Some(
        Finding::new(TIME, if only_equal { Severity::Warn } else { Severity::Block }, message)
            .about(column)
            .action("split by time: test rows must be later than training rows")
            .count(time.test_rows_not_after),
    )
}
