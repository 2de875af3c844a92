//! Classes that labels and predictions write differently.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A predicted class, and the label that it was matched with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatchedClass {
    /// As it is predicted.
    pub prediction: String,
    /// As the label has it.
    pub label: String,
}
