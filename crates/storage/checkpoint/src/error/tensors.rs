/// Why tensors cannot be stored, or bytes are no tensors.
#[derive(Debug, thiserror::Error)]
pub enum TensorError {
    /// Not the JSON that a header must be.
    #[error("the header of the tensor file is not valid: {0}")]
    Syntax(#[from] serde_json::Error),
    /// A rule of the format, or of the call, is broken.
    #[error("{rule}")]
    Rule {
        /// Which, with the value that breaks it.
        rule: String,
    },
}

impl TensorError {
    pub(crate) fn rule(rule: impl Into<String>) -> Self {
        Self::Rule { rule: rule.into() }
    }
}
