//! Near-duplicates: rows that are not equal but too similar to be a coincidence.
//!
//! **Tables** ([`rows`]): two rows are near when they agree in at least 80 % of their columns, where numbers agree
//! within 2 % of their column's spread, and when that agreement holds more bits than a random pair would among all the
//! pairs there are. Candidates come from bands: a few columns together that two rows agree in, chosen so that random
//! pairs are rare, tried several times; each candidate is then compared column by column.
//!
//! **Texts** ([`texts`]): texts are near when at least 80 % of their pieces are common: five words each, fewer in short texts, so that one
//! changed word leaves 80 % in a text of any length.
//!
//! The rate in real data (columns depend on one another, texts quote one another) is measured, not assumed: rows of the
//! training side are looked up in the rest of it in the same way. Any random split of the same data would have about as
//! many in common.

pub(super) mod index;
pub(super) mod minhash;
pub(super) mod rows;
pub(super) mod texts;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use trackway_core::checks::{CheckResult, Example, Finding, Severity};
use trackway_tables::limits::EXAMPLES_MAX;
use trackway_tables::read::{Place, Source};

/// Up to so many times the fraction that the training side has within itself is expected.
const EXPECTED_FACTOR: f64 = 2.0;

/// Near pairs of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NearRows {
    /// The text column, or `None` for whole rows.
    pub column: Option<String>,
    /// Test rows that were looked up (equal ones are counted by the rows check, not here).
    pub test_rows: u64,
    /// Test rows there are.
    pub test_rows_all: u64,
    /// Those with a near row on the training side.
    pub near_rows: u64,
    /// Rows of the training side that were looked up in the rest of it.
    pub control_rows: u64,
    /// Those with a near row there.
    pub control_near_rows: u64,
    /// The closest pairs.
    pub examples: Vec<NearPair>,
    /// A description of what was compared.
    pub compared: String,
}

/// Two rows that are near.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NearPair {
    /// Where on the test side.
    pub test: Place,
    /// Where on the training side.
    pub train: Place,
    /// The fraction of columns, or of pieces, that agree.
    pub similarity: f64,
}

/// For each row that is looked up and was found: its similarity to the closest row of the training side, and where that
/// is.
#[derive(Default)]
struct Closest(HashMap<u32, (f64, Place)>);

impl Closest {
    fn add(&mut self, row: u32, similarity: f64, place: Place) {
        let known = self.0.entry(row).or_insert((similarity, place));
        if similarity > known.0 {
            *known = (similarity, place);
        }
    }

    /// Of equally close rows the first one stays, whatever the order of the map.
    fn merge(&mut self, later: Self) {
        later.0.into_iter().for_each(|(row, (similarity, place))| self.add(row, similarity, place));
    }

    /// As an answer. The first `test_rows` of the rows are those of the test side, at these places; the others are the
    /// control's.
    fn found(
        &self,
        (test_rows, test_rows_all, control_rows): (usize, u64, usize),
        compared: String,
        place: impl Fn(usize) -> Place,
    ) -> NearRows {
        let is_test = |row: &u32| (*row as usize) < test_rows;
        let (of_test, of_control): (Vec<_>, Vec<_>) = self.0.iter().partition(|(row, _)| is_test(row));
        let pair = |(row, (similarity, train)): &(&u32, &(f64, Place))| NearPair {
            test: place(**row as usize),
            train: *train,
            similarity: *similarity,
        };
        let mut examples: Vec<NearPair> = of_test.iter().map(pair).collect();
        examples.sort_by(|one, other| {
            other.similarity.total_cmp(&one.similarity).then(one.test.cmp(&other.test))
        });
        examples.truncate(EXAMPLES_MAX);
        NearRows {
            column: None,
            test_rows: test_rows as u64,
            test_rows_all,
            near_rows: of_test.len() as u64,
            control_rows: control_rows as u64,
            control_near_rows: of_control.len() as u64,
            examples,
            compared,
        }
    }
}

/// What was found out about near-duplicates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Near {
    /// Whole rows, and each column of longer texts.
    pub found: Vec<NearRows>,
    /// What could not be compared, with the reason.
    pub not_compared: Vec<String>,
}

impl NearRows {
    fn share(part: u64, whole: u64) -> f64 {
        if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
    }

    fn finding(&self, train: &Source, test: &Source) -> Option<Finding> {
        if self.near_rows == 0 {
            return None;
        }
        let (share, expected) = (
            Self::share(self.near_rows, self.test_rows),
            Self::share(self.control_near_rows, self.control_rows),
        );
        let explained = share <= expected * EXPECTED_FACTOR;
        let what = match &self.column {
            Some(column) => format!("test rows have a `{column}` that is nearly one of"),
            None => "test rows are nearly equal to one of".to_owned(),
        };
        let expectation = match explained {
            true => format!(
                "; so are {:.2} % of the training rows among themselves: a random split would overlap as much",
                expected * 100.0
            ),
            false => format!("; of the training rows among themselves, {:.2} % are", expected * 100.0),
        };
        let message = format!(
            "{} of {} {what} the training rows ({:.2} %){expectation}",
            self.near_rows,
            self.test_rows,
            share * 100.0
        );
        let example = |pair: &NearPair| Example {
            file: Some(test.files()[pair.test.file].path.clone()),
            row: Some(pair.test.row),
            value: Some(format!(
                "≈ {} {} ({:.0} %)",
                train.files()[pair.train.file].path,
                pair.train.row,
                pair.similarity * 100.0
            )),
        };
        let finding = Finding::new("leakage.near_duplicates", Severity::Warn, message)
            .action("keep what was made from one original on one side: split by the original")
            .count(self.near_rows)
            .examples(self.examples.iter().map(example));
        Some(Finding { column: self.column.clone(), ..finding })
    }
}

impl Near {
    /// `leakage.near_duplicates`. `rows` are those of the smaller side; `train` and `test` are the sources that were
    /// read.
    #[must_use]
    pub fn result(&self, rows: u64, train: &Source, test: &Source) -> CheckResult {
        const NAME: &str = "leakage.near_duplicates";
        if self.found.is_empty() {
            return CheckResult::not_applicable(NAME, self.not_compared.join("; "));
        }
        let findings = self.found.iter().filter_map(|it| it.finding(train, test)).collect();
        let looked_up = self.found.iter().map(|it| {
            let part = match it.test_rows < it.test_rows_all {
                true => format!("{} of {} test rows", it.test_rows, it.test_rows_all),
                false => format!("{} test rows", it.test_rows),
            };
            format!("{part} by {}", it.compared)
        });
        let why = looked_up.chain(self.not_compared.iter().cloned()).collect::<Vec<_>>().join("; ");
        CheckResult::of_rows(NAME, rows, findings).because(why)
    }
}
