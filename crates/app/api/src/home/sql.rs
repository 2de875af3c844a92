//! Answers to queries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A row of an answer: the value of each column of the query, by name. Numbers that are not finite are null.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct QueryRow(pub Map<String, Value>);
