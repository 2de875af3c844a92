//! The contract about itself: documents and their schemas.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trackway_core::closed_list;

closed_list!(
    /// How a document is printed.
    Shape, "shape of a document", {
        /// One JSON object.
        One = "object",
        /// One JSON array of objects.
        Array = "array",
        /// One JSON object per line (NDJSON).
        Lines = "lines",
    }
);

/// A document that a command prints.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListedDocument {
    /// Its name: what `trackway schema` takes.
    pub name: String,
    /// The commands that print it.
    pub commands: Vec<String>,
    /// How it is printed.
    pub shape: Shape,
    /// Exit codes of the commands, and what else its fields do not say.
    pub remarks: String,
}

/// The JSON Schema (draft 2020-12) of a document.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DocumentSchema(pub Map<String, Value>);
