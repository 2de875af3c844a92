//! Whether a table is fit for training: constant and duplicate columns, mixed types, spellings, placeholders, repeated
//! rows, values that no model can use, labels, personal data, and the groups in it.
//!
//! [`TableEvidence::gather`] reads the table once, in bounded memory; the checks are functions of that evidence and answer
//! in [`CheckResult`]s:
//!
//! | check | question |
//! |---|---|
//! | [`columns`] `data.columns` | is every column informative, in one type and one spelling? |
//! | [`rows`] `data.rows` | do rows repeat more than expected; are some empty? |
//! | [`values`] `data.values` | NaN, infinities, rejected rows, values unknown to the other side |
//! | [`label`] `data.label` | is there something to learn, and do both sides write it alike? |
//! | [`personal`] `data.personal` | unapproved personal data |
//! | [`label_noise`] `data.label_noise` | which labels does an out-of-fold model contradict? |
//! | [`representation`] `data.representation` | which groups are in the data, and does the label's rate differ between them? |
//!
//! They warn unless what they found is certain waste of a run (nothing to learn, NaN in a feature, labels that
//! disagree, files that cannot be read) or personal data without a sign-off.

mod columns;
mod confident;
mod facts;
mod groups;
mod label;
mod noise;
mod people;
mod personal;
mod placeholders;
mod repeats;
mod representation;
mod rows;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trials;
mod values;
mod wide;
mod zeros;

use trackway_core::checks::{CheckResult, Example, Finding, Severity};
use trackway_tables::DataError;
use trackway_tables::pass::{PassObserver, scan};
use trackway_tables::profile::wide::is_wide;
use trackway_tables::profile::{ColumnProfile, Profile, Profiler};
use trackway_tables::read::{Coverage, Fault, Place, Source};

use crate::leakage::DuplicateCounts;
use crate::values::identifier;
pub use columns::columns;
pub use confident::{LabelErrors, SuspectRow, label_errors};
use facts::TableFacts;
pub use groups::GROUPS_MAX;
pub use label::label;
pub use noise::{NOISE_ROWS_MAX, SUSPECTS_MAX, label_noise, label_noise_from};
pub(crate) use people::names_of_persons;
pub use personal::{SignOffFileError, personal, personal_columns, sign_offs_from_toml};
use repeats::RowKinds;
pub use repeats::{REPEATED_KEYS_MAX, Repeats};
pub use representation::representation;
pub use rows::rows;
pub use trackway_results::integrity::{Group, LabelNoise, PersonalColumn, Suspect};
pub use values::{unreadable, values};

/// Where fewer rows are distinct by the other columns, equality without identifiers means nothing.
const DISTINCT_SHARE_MIN: f64 = 0.5;

/// How many names, values or groups a sentence lists.
const LISTED: usize = 5;

/// Everything from one reading of a table that these checks need.
pub struct TableEvidence {
    /// Statistics of each column.
    pub profile: Profile,
    /// What was read and what was not.
    pub coverage: Coverage,
    label: Option<String>,
    ignored: Vec<String>,
    identifiers: Vec<String>,
    files: Vec<String>,
    /// Columns that share their name with an earlier one, as the header has them and as they are called.
    renamed: Vec<(String, String)>,
    facts: TableFacts,
}

/// What columns of a table are. Each is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableRoles {
    /// What is predicted.
    pub label: Option<String>,
    /// Columns that define groups, such as age bands.
    pub group_by: Vec<String>,
    /// Columns that do not count when rows are compared.
    pub ignored: Vec<String>,
}

/// How a table is read.
#[derive(Debug, Clone, Copy)]
struct ColumnRoles<'r> {
    roles: &'r TableRoles,
    /// Columns that name rows, which do not count when rows are compared: see [`crate::values::identifier`].
    identifiers: &'r [String],
}

impl ColumnRoles<'_> {
    fn label(&self) -> Option<&str> {
        self.roles.label.as_deref()
    }
}

impl TableEvidence {
    /// Reads a table once; again only where a column that named the rows of its beginning does not name the others.
    ///
    /// # Errors
    /// [`DataError`]: no such column, a file that cannot be read, the scan cancelled.
    pub fn gather(
        source: &mut Source,
        roles: &TableRoles,
        watch: &PassObserver<'_>,
    ) -> Result<Self, DataError> {
        let named = roles.label.iter().map(|name| (name, "label"));
        let named = named.chain(roles.group_by.iter().map(|name| (name, "group")));
        for (name, role) in named.chain(roles.ignored.iter().map(|name| (name, "ignored"))) {
            source.index_of(name, role)?;
        }
        let known: Vec<&str> = roles.label.iter().chain(&roles.ignored).map(String::as_str).collect();
        let mut identifiers = identifier::candidates(source, &known);
        loop {
            let reading = ColumnRoles { roles, identifiers: &identifiers };
            let read = match is_wide(source, watch) {
                true => wide::gather(source, reading, watch)?,
                false => at_once(source, reading, watch)?,
            };
            let evidence = Self::of(source, reading, read);
            let refuted = evidence.refuted();
            if refuted.is_empty() {
                return Ok(evidence);
            }
            identifiers.retain(|name| !refuted.contains(name));
        }
    }

    fn of(source: &Source, reading: ColumnRoles<'_>, (profiler, facts, coverage): TableReading) -> Self {
        let mut profile = profiler.into_profile();
        profile.rows_rejected = coverage.rows_rejected;
        let TableRoles { label, ignored, .. } = reading.roles.clone();
        profile.label = label.clone();
        let files = source.files().iter().map(|file| file.path.clone()).collect();
        let identifiers = reading.identifiers.to_vec();
        let renamed = source.renamed();
        Self { profile, coverage, label, ignored, identifiers, files, renamed, facts }
    }

    /// Of the columns that were taken for identifiers, those whose values repeat.
    fn refuted(&self) -> Vec<String> {
        let columns = self.profile.columns.iter().zip(&self.facts.columns);
        let repeats = |(_, facts): &(&ColumnProfile, &facts::ColumnFacts)| {
            let counts = facts.repeated_values.as_ref().map(DuplicateCounts::duplicates);
            counts.is_some_and(|it| !identifier::are_few(it.surplus_rows, it.rows))
        };
        columns.filter(repeats).map(|(profile, _)| profile.name.clone()).collect()
    }

    /// How many rows there are, by features and with the label, that the table holds already.
    #[must_use]
    pub fn repeats(&self) -> Repeats {
        let rows = self.profile.rows;
        let without = self.facts.without_identifiers.as_ref().map(RowKinds::repeats);
        match without.filter(|found| found.by_features as f64 <= rows as f64 * (1.0 - DISTINCT_SHARE_MIN)) {
            Some(found) => Repeats { without: self.identifiers.clone(), ..found },
            None => self.facts.rows.repeats(),
        }
    }

    /// Rows and label by group, one entry for each value of each `group_by` column and for each combination of them.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        self.facts.groups(&self.profile)
    }

    fn example(&self, place: Place, value: Option<String>) -> Example {
        Example { file: self.files.get(place.file).cloned(), row: Some(place.row), value }
    }

    fn fault_example(&self, fault: &Fault) -> Example {
        self.example(fault.place, Some(masked(&fault.detail)))
    }

    fn is_label(&self, column: &str) -> bool {
        self.label.as_deref() == Some(column)
    }
}

/// What came of reading a table.
type TableReading = (Profiler, TableFacts, Coverage);

/// Reads a table with all its columns at the same time.
fn at_once(
    source: &mut Source,
    reading: ColumnRoles<'_>,
    watch: &PassObserver<'_>,
) -> Result<TableReading, DataError> {
    let thinned = facts::Thinnings::default();
    let make = |source: &Source| (Profiler::new(source, None), TableFacts::new(source, reading, &thinned));
    let ((profiler, facts), coverage) = scan(source, &make, watch)?;
    Ok((profiler, facts, coverage))
}

/// `12.3 %`, with more digits where it is small.
fn percent(share: f64) -> String {
    match share * 100.0 {
        share if share >= 10.0 || share == 0.0 => format!("{share:.1} %"),
        share if share >= 0.1 => format!("{share:.2} %"),
        share => format!("{share:.4} %"),
    }
}

/// ``` `a`, `b` and 3 more```
fn listed(names: &[String]) -> String {
    first_few(names, |name| format!("`{name}`"))
}

/// The first few, as `name` writes them, and how many more there are.
fn first_few<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    trackway_core::text::first_few(all.iter().map(name), LISTED)
}

/// A text that is shown, without what is personal in it.
fn masked(text: &str) -> String {
    trackway_tables::personal::masked(text).into_owned()
}

fn about(kind: &str, severity: Severity, column: &str, message: String, action: &str) -> Finding {
    Finding::new(kind, severity, message).about(column).action(action)
}

/// The result of a check over so many rows: if it found nothing, it reports what it looked at.
fn answer(name: &str, rows: u64, findings: Vec<Finding>, looked_at: String) -> CheckResult {
    CheckResult::of_rows(name, rows, findings).because(looked_at)
}
