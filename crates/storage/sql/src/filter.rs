//! Filters of rows in the SQL of both databases.

use trackway_ledger::scan::{ColumnKind, Value, marks};

/// A filter that both databases understand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter<'c> {
    pub(crate) column: &'c str,
    pub(crate) test: Test,
}

/// A column that filters may test: its name and what it holds.
pub(crate) type Tested<'c> = (&'c str, ColumnKind);

/// A test of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    /// `column op value`, with `=`, `<`, `<=`, `>` or `>=`.
    Compare(FilterOperator, Value),
    /// One of these strings.
    In(Vec<String>),
    /// Whether it is null.
    IsNull(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterOperator {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl FilterOperator {
    const fn sql(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl Test {
    /// The test of a column in SQL; its values are added to `parameters`.
    pub(crate) fn sql(&self, column: &str, parameters: &mut Vec<Value>) -> String {
        match self {
            Self::Compare(comparison, value) => {
                parameters.push(value.clone());
                format!("{column} {} ?", comparison.sql())
            }
            Self::In(texts) => {
                parameters.extend(texts.iter().cloned().map(Value::Text));
                format!("{column} IN ({})", marks(texts.len()))
            }
            Self::IsNull(true) => format!("{column} IS NULL"),
            Self::IsNull(false) => format!("{column} IS NOT NULL"),
        }
    }
}
