/// Why tensors cannot be stored, or bytes are no tensors.
#[derive(Debug, thiserror::Error)]
pub enum TensorError {
    #[error("the header of the tensor file is not valid: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("{rule}")]
    Rule { rule: String },
}

impl TensorError {
    pub(crate) fn rule(rule: impl Into<String>) -> Self {
        Self::Rule { rule: rule.into() }
    }
}
