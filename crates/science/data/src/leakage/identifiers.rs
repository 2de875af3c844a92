//! Identifiers: columns that name a row instead of describing it.
//!
//! A column of whole numbers or texts is one when all values of the sample are different *and* its name, the form of
//! its values or their order shows it. (Numbers that merely never repeat may be measurements.) A sample of `n` rows
//! without a repetition means that there are at least about `n²/2` different values, so it represents the table.

use serde::{Deserialize, Serialize};
use trackway_core::checks::{CheckResult, Finding, Severity};

use super::columns::Columns;
use super::power::each_bits;
use super::preprocessing::range;
use super::sample::{Content, Sample, Values};
use super::target::TargetPower;
use crate::hashed::Keys;
use crate::infer::ColumnType;

/// With fewer rows, everything differs.
const ROWS_MIN: usize = 50;

/// The largest fraction of rows that lack the value or repeat one.
const ODD_SHARE_MAX: f64 = 0.001;

/// Whole numbers that fill their range at least to this part were counted out.
const DENSE: f64 = 0.25;

/// An identifier that predicts the label so well carries it.
const POWER_WARNS: f64 = 0.1;

/// Letters of the shortest text that is taken for a hash.
const HASH_LETTERS_MIN: usize = 16;

/// Why a column is taken for an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentifierEvidence {
    /// Its name.
    Name,
    /// UUIDs, hashes, or strings of one form with consecutive digits.
    Form,
    /// Whole numbers without large gaps.
    Dense,
    /// It rises (or falls) from row to row.
    Ordered,
}

/// A column that names rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identifier {
    /// The column.
    pub column: String,
    /// The evidence for it.
    pub evidence: Vec<IdentifierEvidence>,
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
            identifiers.found.push(Identifier { column: name.clone(), evidence, power });
        }
    }
    identifiers
}

/// How many rows have a value, and how many different ones there are.
fn counts(values: &Values) -> (usize, usize) {
    let mut different = Keys::default();
    let mut known = 0;
    each_bits(values, |_, bits| {
        known += 1;
        // Bits of numbers are no hashes; the product spreads them over the high bits that a set looks at.
        different.insert(bits.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32));
    });
    (known, different.len())
}

fn is_unique(values: &Values) -> bool {
    let (known, different) = counts(values);
    let rows = values.content.len() as f64;
    (rows - different as f64) / rows <= ODD_SHARE_MAX && known - different <= (rows * ODD_SHARE_MAX) as usize
}

/// Whether there are enough different values for groups worth keeping together.
fn is_varied(values: &Values) -> bool {
    let (known, different) = counts(values);
    different >= 10 && different < known
}

fn evidence(named: bool, values: &Values, rows_seen: u64) -> Vec<IdentifierEvidence> {
    let mut evidence = Vec::new();
    if named {
        evidence.push(IdentifierEvidence::Name);
    }
    match &values.content {
        Content::Codes(_) => evidence.extend(has_form(&values.texts).then_some(IdentifierEvidence::Form)),
        Content::Numbers(numbers) => {
            let known: Vec<f64> = numbers.iter().copied().filter(|number| !number.is_nan()).collect();
            let (low, high) = range(&known);
            evidence.extend(
                (rows_seen as f64 / (high - low + 1.0) >= DENSE).then_some(IdentifierEvidence::Dense),
            );
            let ordered =
                known.is_sorted_by(|one, next| one < next) || known.is_sorted_by(|one, next| one > next);
            evidence.extend(ordered.then_some(IdentifierEvidence::Ordered));
        }
    }
    evidence
}

/// Parts of a name: `userId`, `user_id` and `User ID` have the same.
fn is_identifier_name(name: &str) -> bool {
    const WORDS: [&str; 9] = ["id", "ids", "uuid", "guid", "key", "hash", "index", "rowid", "identifier"];
    if name.is_empty() || name.starts_with("Unnamed: ") || name.starts_with("__index_level_") {
        return true;
    }
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().expect("there is a first").extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.iter().any(|word| WORDS.contains(&word.as_str()))
}

/// Whether all strings are UUIDs, hashes, or of one form: the same letters at the same places, and digits between them.
fn has_form(texts: &[String]) -> bool {
    let is_hash = |text: &String| {
        let digits = text.chars().filter(|letter| *letter != '-').count();
        digits >= HASH_LETTERS_MIN
            && text.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit())
            && text.chars().any(|letter| letter.is_ascii_digit())
    };
    let form = |text: &String| -> String {
        text.chars().map(|letter| if letter.is_ascii_digit() { '9' } else { letter }).collect()
    };
    let of_one_form = |first: &String| {
        let first = form(first);
        first.contains('9') && !first.contains(' ') && texts.iter().all(|text| form(text) == first)
    };
    !texts.is_empty() && (texts.iter().all(is_hash) || texts.first().is_some_and(of_one_form))
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
                    .action(format!("if its rows belong together, check with `--group {column}`"))
            }));
        }
        CheckResult::of_rows(NAME, rows, findings).because(format!("{} training rows", self.rows))
    }
}

impl Identifier {
    fn finding(&self, label: Option<&str>) -> Finding {
        let column = &self.column;
        let because: Vec<&str> = self
            .evidence
            .iter()
            .map(|evidence| match evidence {
                IdentifierEvidence::Name => "its name",
                IdentifierEvidence::Form => "the form of its values",
                IdentifierEvidence::Dense => "numbers without gaps",
                IdentifierEvidence::Ordered => "its order",
            })
            .collect();
        let names = format!(
            "`{column}` looks like an identifier: every row has a different value ({})",
            because.join(", ")
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
