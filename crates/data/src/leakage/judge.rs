//! What an overlap means for a run.

use trackway_core::checks::{CheckResult, Example, Finding, Severity};

use super::overlap::{GroupOverlap, Roles, RowOverlap, TimeOverlap};
use super::twins::Twins;
use super::{CONFLICTS, GROUPS, IDENTIFIERS, Leakage, NEAR, ROWS, TARGET, TIME, preprocessing};
use crate::read::Source;

/// From this share of the test rows on, shared rows make the test worthless. (Deepchecks lets 5 % pass.)
const SHARED_SHARE_BLOCKS: f64 = 0.01;

/// From this share of a side's rows on, conflicting labels are more than the usual noise.
const CONFLICTING_SHARE_WARNS: f64 = 0.05;

/// So many times the share that equal rows within the training side explain is still chance.
const CHANCE_FACTOR: f64 = 2.0;

impl Leakage {
    /// What each check that was wanted answers, in the order of [`super::CHECKS`]. `train` and `test` are the sources
    /// that were read.
    #[must_use]
    pub fn results(&self, roles: &Roles, train: &Source, test: &Source) -> Vec<CheckResult> {
        let label = roles.label.as_deref();
        let answer = |name: &&str| match *name {
            ROWS => self.rows(roles, train, test),
            GROUPS => self.groups(roles),
            TIME => self.time(roles),
            CONFLICTS => self.conflicts(roles),
            NEAR => match &self.near {
                Some(near) => near.result(train, test),
                None => CheckResult::not_run(NEAR, "it was not looked for"),
            },
            TARGET => match (&self.target, label) {
                (Some(target), Some(label)) => target.result(label),
                (_, None) => CheckResult::not_applicable(TARGET, "no column is named as the label"),
                (None, Some(label)) => CheckResult::not_applicable(
                    TARGET,
                    format!(
                        "`{label}` has fewer than two values, or is known in fewer than 50 training rows"
                    ),
                ),
            },
            IDENTIFIERS => self.identifiers.result(label, roles.group.as_deref()),
            _ => preprocessing::result(&self.fitted, self.fitted_looked_at),
        };
        self.wanted.iter().map(answer).collect()
    }

    fn rows(&self, roles: &Roles, train: &Source, test: &Source) -> CheckResult {
        let left_out = |why: &String| {
            Finding::new("leakage.not_compared", Severity::Note, format!("{why}; it was not compared"))
        };
        let overlap = &self.overlap;
        let mut findings: Vec<Finding> = shared_rows(&overlap.rows, roles, train, test).into_iter().collect();
        findings.extend(overlap.not_compared.iter().map(left_out));
        let why =
            format!("{} test rows among {} training rows", overlap.test.rows_read, overlap.train.rows_read);
        CheckResult { why: Some(why), ..CheckResult::of(ROWS, findings) }
    }

    fn groups(&self, roles: &Roles) -> CheckResult {
        match (&self.overlap.groups, &roles.group) {
            (Some(groups), Some(column)) => CheckResult {
                why: Some(format!("{} values of `{column}` on the test side", groups.test_groups)),
                ..CheckResult::of(GROUPS, shared_groups(groups, column).into_iter().collect())
            },
            _ => CheckResult::not_applicable(GROUPS, "no column is named as the group"),
        }
    }

    fn time(&self, roles: &Roles) -> CheckResult {
        match (&self.overlap.time, &roles.time) {
            (Some(time), Some(column)) => CheckResult {
                why: Some(format!("{} test rows with a time", time.test_rows_timed)),
                ..CheckResult::of(TIME, shared_time(time, column).into_iter().collect())
            },
            (None, Some(column)) => CheckResult::not_run(
                TIME,
                format!("`{column}` is neither a time nor a number on both sides: the order was not checked"),
            ),
            (_, None) => CheckResult::not_applicable(TIME, "no column is named as the time"),
        }
    }

    fn conflicts(&self, roles: &Roles) -> CheckResult {
        let Some(label) = &roles.label else {
            return CheckResult::not_applicable(CONFLICTS, "no column is named as the label");
        };
        let rows = &self.overlap.rows;
        let mut findings: Vec<Finding> = conflicting_labels(rows, label).into_iter().collect();
        findings.extend(conflicts_within(&rows.train_twins, label, "training"));
        findings.extend(conflicts_within(&rows.test_twins, label, "test"));
        CheckResult::of(CONFLICTS, findings)
    }
}

fn shared_rows(rows: &RowOverlap, roles: &Roles, train: &Source, test: &Source) -> Option<Finding> {
    if rows.shared_rows == 0 {
        return None;
    }
    let share = rows.shared_rows as f64 / rows.test_rows as f64;
    let by_chance = rows.train_twins.share;
    let explained = share <= by_chance * CHANCE_FACTOR;
    let severity = match share >= SHARED_SHARE_BLOCKS {
        true if !explained => Severity::Block,
        _ => Severity::Warn,
    };
    let label = if roles.label.is_some() { ", the label aside" } else { "" };
    let chance = match explained {
        true => format!(
            "; {:.2} % of the training rows have a twin too, so any random split of this data shares about as many",
            by_chance * 100.0
        ),
        false => format!("; by chance it would be about {:.2} %", by_chance * 100.0),
    };
    let message = format!(
        "{} of {} test rows ({:.2} %) stand among the training rows{label}{chance}",
        rows.shared_rows,
        rows.test_rows,
        share * 100.0
    );
    let example = |it: &super::SharedRow| Example {
        file: Some(test.files()[it.test.file].path.clone()),
        row: Some(it.test.row),
        value: Some(format!("= {} {}", train.files()[it.train.file].path, it.train.row)),
    };
    Some(Finding {
        count: Some(rows.shared_rows),
        examples: rows.examples.iter().map(example).collect(),
        ..Finding::new(ROWS, severity, message)
            .action("remove duplicates before the split, or split by the hash of the row")
    })
}

fn conflicting_labels(rows: &RowOverlap, label: &str) -> Option<Finding> {
    let conflicting = rows.shared_rows - rows.shared_with_label;
    (conflicting > 0).then(|| Finding {
        count: Some(conflicting),
        ..Finding::new(
            CONFLICTS,
            Severity::Warn,
            format!(
                "{conflicting} test rows have equal features but another `{label}` among the training rows"
            ),
        )
        .about(label)
        .action("look whether both sides write the label alike, else whether the features can tell it at all")
    })
}

/// Equal features with different labels within a side: no model is right on all of these.
fn conflicts_within(twins: &Twins, label: &str, side: &str) -> Option<Finding> {
    let share = twins.conflicting_share;
    let severity = if share >= CONFLICTING_SHARE_WARNS { Severity::Warn } else { Severity::Note };
    (share > 0.0).then(|| Finding {
        count: Some((share * twins.rows as f64).round() as u64),
        ..Finding::new(
            CONFLICTS,
            severity,
            format!(
                "{}{:.2} % of the {side} rows have equal features as another one, but another `{label}`",
                if twins.exact { "" } else { "about " },
                share * 100.0
            ),
        )
        .about(label)
        .action("no model can be right on all of them: look at the labels, or add the feature that tells them apart")
    })
}

fn shared_groups(groups: &GroupOverlap, column: &str) -> Option<Finding> {
    (groups.shared_groups > 0).then(|| Finding {
        count: Some(groups.shared_groups),
        ..Finding::new(
            GROUPS,
            Severity::Block,
            format!(
                "{} of {} values of `{column}` on the test side are on the training side too, with {} test rows",
                groups.shared_groups, groups.test_groups, groups.test_rows_in_shared
            ),
        )
        .about(column)
        .action("split by the group")
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
        if only_equal { ", all of them at the very same moment" } else { "" }
    );
    Some(Finding {
        count: Some(time.test_rows_not_after),
        ..Finding::new(TIME, if only_equal { Severity::Warn } else { Severity::Block }, message)
            .about(column)
            .action("split by time: what is tested must be later than what was learnt")
    })
}
