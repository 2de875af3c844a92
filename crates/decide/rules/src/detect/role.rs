//! What a metric is, by its name.

use trackway_formats::rehearsal::loss_rank;

/// The role of a metric for the detectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A training loss; the one with the highest number is the main one.
    Loss(u8),
    ValidationLoss,
    GradientNorm,
    /// The gradient norm of a part of the model: `grad_norm/encoder`.
    PartGradientNorm,
    NonfiniteGradients,
    LearningRate,
    UpdateRatio,
    LossScale,
    BatchDigest,
    /// Of what the model is given, without the labels.
    InputDigest,
    BatchWaitSeconds,
    StepSeconds,
    SamplesPerSecond,
    MemoryBytes,
    /// Only whether it is finite matters: norms of weights and activations.
    Norm,
}

/// The role of a metric; none: no detector looks at it.
pub(super) fn role_of(name: &str) -> Option<Role> {
    let bare = name.strip_prefix("train/").or_else(|| name.strip_prefix("train_")).unwrap_or(name);
    let held_out = ["val", "eval", "dev"].iter().any(|word| name.starts_with(word));
    match bare {
        "grad_norm" | "gradient_norm" | "global_grad_norm" => Some(Role::GradientNorm),
        "nonfinite_gradients" => Some(Role::NonfiniteGradients),
        "learning_rate" | "lr" => Some(Role::LearningRate),
        "update_ratio" => Some(Role::UpdateRatio),
        "loss_scale" => Some(Role::LossScale),
        "batch_digest" => Some(Role::BatchDigest),
        "input_digest" => Some(Role::InputDigest),
        "batch_wait_seconds" => Some(Role::BatchWaitSeconds),
        "step_seconds" => Some(Role::StepSeconds),
        "samples_per_second" => Some(Role::SamplesPerSecond),
        "memory_allocated_bytes" => Some(Role::MemoryBytes),
        _ if bare.starts_with("grad_norm/") => Some(Role::PartGradientNorm),
        _ if held_out && name.ends_with("loss") => Some(Role::ValidationLoss),
        _ if loss_rank(name) > 0 => Some(Role::Loss(loss_rank(name))),
        _ if name.ends_with("_norm") => Some(Role::Norm),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the agreed names, and the usual other ones, are understood, and that a test loss is not watched.
    #[test]
    fn names_tell_roles() {
        let table = [
            ("loss", Some(Role::Loss(4))),
            ("train_loss", Some(Role::Loss(2))),
            ("train/loss", Some(Role::Loss(2))),
            ("progressive_loss", Some(Role::Loss(1))),
            ("val_loss", Some(Role::ValidationLoss)),
            ("eval_loss", Some(Role::ValidationLoss)),
            ("test_loss", None),
            ("train/grad_norm", Some(Role::GradientNorm)),
            ("grad_norm/layer.0", Some(Role::PartGradientNorm)),
            ("lr", Some(Role::LearningRate)),
            ("weight_norm", Some(Role::Norm)),
            ("accuracy", None),
        ];
        for (name, role) in table {
            assert_eq!(role_of(name), role, "{name}");
        }
    }
}
