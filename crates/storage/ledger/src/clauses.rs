//! Clauses of a statement that depend on what is given.

use crate::value::{Field, Value};

/// Clauses, and the values of their parameters.
#[derive(Default)]
pub(crate) struct Clauses {
    pub parts: Vec<String>,
    pub values: Vec<Value>,
}

impl Clauses {
    /// One with a parameter, where there is a value for it.
    pub fn and<F: Field>(mut self, part: &str, value: Option<&F>) -> Self {
        if let Some(value) = value {
            self.parts.push(part.into());
            self.values.push(value.to_value());
        }
        self
    }

    /// The same value, or none as well.
    pub fn and_same<F: Field>(mut self, column: &str, value: Option<&F>) -> Self {
        let test = if value.is_some() { "= ?" } else { "IS NULL" };
        self.parts.push(format!("{column} {test}"));
        self.values.extend(value.map(Field::to_value));
        self
    }

    /// What follows the name of a table: rows for which all hold.
    pub fn tail(&self, order: &str, limit: Option<usize>) -> String {
        let filter = match self.parts.is_empty() {
            true => String::new(),
            false => format!("WHERE {} ", self.parts.join(" AND ")),
        };
        let limit = limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        format!("{filter}ORDER BY {order}{limit}")
    }
}
