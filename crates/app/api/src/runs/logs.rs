//! The output of an attempt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_rules::classify::Stream;

/// A line that a script printed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LogRecord {
    /// When it was read, RFC 3339; null if that was not recorded.
    pub at: Option<String>,
    /// The stream it was printed to.
    pub stream: Stream,
    /// The line, without its end.
    pub text: String,
}
