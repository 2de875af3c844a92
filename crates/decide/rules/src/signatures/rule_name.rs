//! Names of the rows of the signature tables.

use std::fmt;

use trackway_core::serialized_as_text;

/// The name of a row of the signature tables. There are only those that the tables have: a row adds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleName(pub(super) &'static str);

impl RuleName {
    /// The name as it is in the ledger and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.0)
    }
}

serialized_as_text!(RuleName);
