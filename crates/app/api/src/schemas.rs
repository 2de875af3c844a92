//! The contract about itself: documents and their schemas.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::catalogue::{Entry, Shape};

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

impl From<&Entry> for ListedDocument {
    fn from(entry: &Entry) -> Self {
        Self {
            name: entry.name.into(),
            commands: entry.commands.iter().map(|command| (*command).into()).collect(),
            shape: entry.shape,
            remarks: entry.remarks.into(),
        }
    }
}

/// The JSON Schema (draft 2020-12) of a document.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DocumentSchema(pub Map<String, Value>);
