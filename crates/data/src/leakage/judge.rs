//! What an overlap means for a run.

use trackway_core::checks::{Example, Finding, Severity};

use super::overlap::{GroupOverlap, Overlap, Roles, RowOverlap, TimeOverlap};
use crate::read::Source;

/// From this share of the test rows on, shared rows make the test worthless. (Deepchecks lets 5 % pass.)
const SHARED_SHARE_BLOCKS: f64 = 0.01;

/// So many times the share that equal rows within the training side explain is still chance.
const CHANCE_FACTOR: f64 = 2.0;

impl Overlap {
    /// What a person should know, worst first. `train` and `test` are the sources that were read.
    #[must_use]
    pub fn findings(&self, roles: &Roles, train: &Source, test: &Source) -> Vec<Finding> {
        let mut findings = Vec::new();
        findings.extend(shared_rows(&self.rows, roles, train, test));
        findings.extend(conflicting_labels(&self.rows, roles));
        if let (Some(groups), Some(column)) = (&self.groups, &roles.group) {
            findings.extend(shared_groups(groups, column));
        }
        match (&self.time, &roles.time) {
            (Some(time), Some(column)) => findings.extend(shared_time(time, column)),
            (None, Some(column)) => {
                let message = format!(
                    "`{column}` is neither a time nor a number on both sides: the order was not checked"
                );
                findings.push(Finding::new("leakage.time", Severity::Block, message).about(column));
            }
            _ => {}
        }
        let left_out = |why: &String| {
            Finding::new("leakage.not_compared", Severity::Note, format!("{why}; it was not compared"))
        };
        findings.extend(self.not_compared.iter().map(left_out));
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings
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
        ..Finding::new("leakage.rows", severity, message)
            .action("remove duplicates before the split, or split by the hash of the row")
    })
}

fn conflicting_labels(rows: &RowOverlap, roles: &Roles) -> Option<Finding> {
    let label = roles.label.as_ref()?;
    let conflicting = rows.shared_rows - rows.shared_with_label;
    (conflicting > 0).then(|| Finding {
        count: Some(conflicting),
        ..Finding::new(
            "leakage.conflicting_labels",
            Severity::Warn,
            format!(
                "{conflicting} test rows have equal features but another `{label}` among the training rows"
            ),
        )
        .about(label)
        .action("look whether both sides write the label alike, else whether the features can tell it at all")
    })
}

fn shared_groups(groups: &GroupOverlap, column: &str) -> Option<Finding> {
    (groups.shared_groups > 0).then(|| Finding {
        count: Some(groups.shared_groups),
        ..Finding::new(
            "leakage.groups",
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
        ..Finding::new("leakage.time", if only_equal { Severity::Warn } else { Severity::Block }, message)
            .about(column)
            .action("split by time: what is tested must be later than what was learnt")
    })
}
