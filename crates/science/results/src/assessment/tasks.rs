//! How rows answer a task set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How rows answer a task set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCoverage {
    /// The column of ids by which rows and tasks were matched; absent where only their numbers and labels were.
    pub id: Option<String>,
    /// Tasks of the set.
    pub tasks: u64,
    /// Tasks that are answered as they should be: once, with the label of the set.
    pub answered: u64,
    /// Tasks that no row answers.
    pub missing: u64,
    /// Rows that answer no task of the set.
    pub extra: u64,
    /// Rows that answer a task again.
    pub repeated: u64,
    /// Rows whose label is not that of the set.
    pub different_labels: u64,
    /// Ids that the set itself has more than once.
    pub repeated_tasks: u64,
    /// Some of them, as sentences.
    pub examples: Vec<String>,
}

impl TaskCoverage {
    /// Whether each task is answered once, with its label, and nothing else is.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.tasks > 0
            && self.missing + self.extra + self.repeated + self.different_labels + self.repeated_tasks == 0
    }

    /// Tasks without an answer; if the set's ids are not unique, also those that cannot be distinguished.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.missing + self.repeated_tasks
    }

    /// What is wrong, as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let kinds = [
            (self.missing, "not answered"),
            (self.extra, "answered and not in it"),
            (self.repeated, "answered again"),
            (self.different_labels, "with another label"),
            (self.repeated_tasks, "in it more than once"),
        ];
        let found: Vec<String> = kinds
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let examples = match self.examples.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.examples.join("; ")),
        };
        format!("the task set has {} tasks: {}{examples}", self.tasks, found.join(", "))
    }
}
