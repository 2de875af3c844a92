//! The names in a condition.

/// A name as it is written in a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionName {
    /// The name, parts joined by dots.
    pub(crate) name: String,
    /// It is in double quotes, as strings are in other languages.
    pub(crate) in_double_quotes: bool,
}
