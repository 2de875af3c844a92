//! Which columns of the two sides are compared, and how their rows are read.

use trackway_tables::read::{Chunk, Source};
use trackway_tables::{ColumnType, DataError};

use crate::values::identifier;
use crate::values::rows::RowHashes;
use crate::values::sampled::{ExactNumber, exact_numbers, keys};

/// What columns mean. Each is optional and switches on what needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// What is predicted. Without it, a row counts with all its columns.
    pub label: Option<String>,
    /// What must not be on both sides: a user, a patient, a household.
    pub group: Option<String>,
    /// When a row came about.
    pub time: Option<String>,
    /// Columns that do not count when rows are compared.
    pub ignored: Vec<String>,
}

/// Names of what is compared, in one order for both sides.
pub(super) struct Columns {
    pub(super) features: Vec<String>,
    pub(super) label: Option<String>,
    pub(super) group: Option<String>,
    pub(super) time: Option<String>,
    pub(super) not_compared: Vec<String>,
    /// Features that do not count when rows are compared.
    pub(super) ignored: Vec<String>,
    /// Features that are identifiers: see [`crate::values::identifier`].
    pub(super) identifiers: Vec<String>,
}

/// Indexes of [`Columns`] in one source.
#[derive(Clone)]
pub(super) struct Places {
    pub(super) features: Vec<usize>,
    /// Features that count when rows are compared.
    pub(super) compared: Vec<usize>,
    /// Those of them that are no identifiers; `None` where none is one.
    pub(super) without_identifiers: Option<Vec<usize>>,
    pub(super) identifiers: Vec<usize>,
    pub(super) label: Option<usize>,
    pub(super) group: Option<usize>,
    pub(super) time: Option<usize>,
}

impl Columns {
    pub(super) fn of(train: &Source, test: &Source, roles: &Roles) -> Result<Self, DataError> {
        for source in [train, test] {
            for name in &roles.ignored {
                source.index_of(name, "ignored")?;
            }
            for (name, role) in [(&roles.label, "label"), (&roles.group, "group"), (&roles.time, "time")] {
                if let Some(name) = name {
                    source.index_of(name, role)?;
                }
            }
        }
        let mut features = Vec::new();
        let mut not_compared = Vec::new();
        for column in train.columns().iter().filter(|column| Some(&column.name) != roles.label.as_ref()) {
            match test.columns().iter().find(|other| other.name == column.name) {
                None => not_compared.push(format!("`{}` is not on the test side", column.name)),
                Some(other) if !comparable(column.kind, other.kind) => not_compared.push(format!(
                    "`{}` is {} on one side and {} on the other",
                    column.name, column.kind, other.kind
                )),
                Some(_) => features.push(column.name.clone()),
            }
        }
        let Roles { label, group, time, ignored } = roles.clone();
        if features.iter().all(|name| ignored.contains(name)) && !ignored.is_empty() {
            not_compared.push("every column is ignored".to_owned());
        }
        Ok(Self { features, label, group, time, not_compared, ignored, identifiers: Vec::new() })
    }

    /// Features that may be identifiers, by the beginning of the training side.
    pub(super) fn candidates(&self, train: &Source) -> Vec<String> {
        let roles = [&self.label, &self.time].into_iter().flatten().chain(&self.ignored);
        let is_missing = |name: &&String| !self.features.contains(name);
        let others = train.columns().iter().map(|column| &column.name).filter(is_missing);
        let roles: Vec<&str> = roles.chain(others).map(String::as_str).collect();
        identifier::candidates(train, &roles)
    }

    pub(super) fn places_in(&self, source: &Source) -> Places {
        let find = |name: &String| source.columns().iter().position(|column| column.name == *name);
        let maybe = |name: &Option<String>| name.as_ref().and_then(find);
        let of = |holds: &dyn Fn(&&String) -> bool| -> Vec<usize> {
            self.features.iter().filter(|name| holds(name)).filter_map(find).collect()
        };
        let counts = |name: &&String| !self.ignored.contains(*name);
        let is_identifier = |name: &&String| self.identifiers.contains(*name);
        Places {
            features: of(&|_| true),
            compared: of(&counts),
            without_identifiers: (!self.identifiers.is_empty())
                .then(|| of(&|name| counts(name) && !is_identifier(name))),
            identifiers: of(&is_identifier),
            label: maybe(&self.label),
            group: maybe(&self.group),
            time: maybe(&self.time),
        }
    }
}

/// Whether equal values of the two types have equal fingerprints.
fn comparable(one: ColumnType, other: ColumnType) -> bool {
    let number = |kind| matches!(kind, ColumnType::Int | ColumnType::Float);
    let null = |kind| kind == ColumnType::Null;
    one == other || (number(one) && number(other)) || null(one) || null(other)
}

/// What was read from one chunk: fingerprints of its rows, of the label and the group, and timestamps.
pub(super) struct ChunkKeys {
    pub(super) rows: RowKeys,
    /// The same without the identifiers.
    pub(super) without_identifiers: Option<RowKeys>,
    /// 0 for a row whose label is missing; empty without a label.
    pub(super) labels: Vec<u64>,
    /// 0 for a row without a group.
    pub(super) groups: Vec<u64>,
    /// NaN for a row without a timestamp.
    pub(super) moments: Vec<ExactNumber>,
}

/// Fingerprints of rows without and with the label.
#[derive(Default)]
pub(super) struct RowKeys {
    pub(super) features: Vec<u64>,
    pub(super) with_label: Vec<u64>,
}

impl Places {
    pub(super) fn read(&self, chunk: &Chunk) -> ChunkKeys {
        let column = |index: usize| chunk.batch.column(index);
        ChunkKeys {
            rows: self.row_keys(chunk, &self.compared),
            without_identifiers: self
                .without_identifiers
                .as_ref()
                .map(|columns| self.row_keys(chunk, columns)),
            labels: self.label.map_or_else(Vec::new, |index| keys(column(index))),
            groups: self.group.map_or_else(Vec::new, |index| keys(column(index))),
            moments: self.time.map_or_else(Vec::new, |index| exact_numbers(column(index))),
        }
    }

    fn row_keys(&self, chunk: &Chunk, columns: &[usize]) -> RowKeys {
        let columns = columns.iter().map(|index| chunk.batch.column(*index));
        let mut rows = RowHashes::of(chunk.batch.num_rows(), columns);
        let features = rows.values().to_vec();
        if let Some(label) = self.label {
            rows.add(chunk.batch.column(label));
        }
        RowKeys { features, with_label: rows.values().to_vec() }
    }

    /// Fingerprints of rows by what makes them equal, so that they are not near.
    pub(super) fn equality(&self, chunk: &Chunk) -> RowHashes {
        let columns = self.equal_by().iter().map(|index| chunk.batch.column(*index));
        RowHashes::of(chunk.batch.num_rows(), columns)
    }

    /// Features whose fingerprints make rows equal.
    pub(super) fn equal_by(&self) -> &[usize] {
        self.without_identifiers.as_deref().unwrap_or(&self.compared)
    }
}
