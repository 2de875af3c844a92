//! Identifiers: columns that name a row instead of describing it.
//!
//! A column of whole numbers or texts is one when all values of the sample are different *and* its name, the form of
//! its values or their order shows it: see [`crate::values::identifier`].

use serde::{Deserialize, Serialize};
use trackway_core::checks::{CheckResult, Finding, Severity};
use trackway_tables::ColumnType;

use super::columns::Columns;
use super::sample::Sample;
use super::target::TargetPower;
pub use crate::values::identifier::IdentifierEvidence;
use crate::values::identifier::{
    ROWS_MIN, because, evidence, filled, is_identifier_name, is_unique, is_varied,
};

/// An identifier that predicts the label so well carries it.
const POWER_WARNS: f64 = 0.1;

/// A column that names rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identifier {
    pub column: String,
    /// The evidence for it.
    pub evidence: Vec<IdentifierEvidence>,
    /// The fraction of the whole numbers between its smallest and its largest value that it has; `None` for texts.
    pub filled: Option<f64>,
    /// How well it predicts the label; `None` where no label is known.
    pub power: Option<f64>,
}

/// What was found about identifiers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Identifiers {
    /// Columns with another value in every row.
    pub found: Vec<Identifier>,
    /// Columns that are named like an identifier but repeat: they may be groups.
    pub groups: Vec<String>,
    /// Rows looked at.
    pub rows: usize,
}

/// Columns that were named as the group or the time are what they are.
pub(super) fn find(columns: &Columns, train: &Sample, power: Option<&TargetPower>) -> Identifiers {
    let mut identifiers = Identifiers { rows: train.len(), ..Identifiers::default() };
    if train.len() < ROWS_MIN {
        return identifiers;
    }
    for (name, values) in columns.features.iter().zip(&train.features) {
        let has_role = columns.group.as_ref() == Some(name) || columns.time.as_ref() == Some(name);
        if has_role || !matches!(values.kind, ColumnType::Int | ColumnType::Text) {
            continue;
        }
        let named = is_identifier_name(name);
        if !is_unique(values) {
            identifiers.groups.extend((named && is_varied(values)).then(|| name.clone()));
            continue;
        }
        let evidence = evidence(named, values, train.rows_seen);
        if !evidence.is_empty() {
            let power = power.and_then(|power| power.of(name));
            let filled = filled(values, train.rows_seen);
            identifiers.found.push(Identifier { column: name.clone(), evidence, filled, power });
        }
    }
    identifiers
}

impl Identifiers {
    /// `leakage.identifiers`. `rows` are those of the smaller side.
    #[must_use]
    pub fn result(&self, rows: u64, label: Option<&str>, group: Option<&str>) -> CheckResult {
        const NAME: &str = "leakage.identifiers";
        if self.rows < ROWS_MIN {
            return CheckResult::not_applicable(NAME, format!("too few rows to check: {}", self.rows));
        }
        let mut findings: Vec<Finding> = self.found.iter().map(|it| it.finding(label)).collect();
        // What was named as the group is looked at by `leakage.groups`.
        if group.is_none() {
            findings.extend(self.groups.iter().map(|column| {
                let message =
                    format!("`{column}` is named like an identifier and repeats: it may be a group");
                Finding::new(NAME, Severity::Note, message)
                    .about(column)
                    .action(format!("if its rows belong together, check with `--group-by {column}`"))
            }));
        }
        CheckResult::of_rows(NAME, rows, findings).because(format!("{} training rows", self.rows))
    }
}

impl Identifier {
    fn finding(&self, label: Option<&str>) -> Finding {
        let column = &self.column;
        let names = format!(
            "`{column}` looks like an identifier: every row has a different value ({})",
            because(&self.evidence, self.filled)
        );
        let (severity, message) = match (self.power, label) {
            (Some(power), Some(label)) if power >= POWER_WARNS => (
                Severity::Warn,
                format!(
                    "{names}, and its order predicts `{label}` with power {power:.2}: it carries the label"
                ),
            ),
            _ => (Severity::Note, format!("{names}: a model can only memorize it")),
        };
        Finding::new("leakage.identifiers", severity, message)
            .about(column)
            .action("do not use it as a feature")
    }
}
