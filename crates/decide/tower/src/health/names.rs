//! What a metric is by its name, for the looks at whole curves.

use trackway_formats::rehearsal::loss_rank;

const HELD_OUT: [&str; 7] = ["val", "valid", "validation", "eval", "test", "dev", "holdout"];
/// Measures, other than an accuracy, of which more is better.
const SCORES: [&str; 20] = [
    "f1", "f1_score", "f1_macro", "f1_micro", "macro_f1", "micro_f1", "auc", "auroc", "roc_auc", "bleu",
    "map", "r2", "r2_score", "top5", "acc5", "iou", "miou", "dice", "mean_iou", "dice_score",
];
/// Parts of names of losses that are not a cross-entropy: their level says nothing about classes.
const OF_NUMBERS: [&str; 20] = [
    "mse", "rmse", "msle", "mae", "mape", "smape", "l1", "l2", "huber", "regression", "recon",
    "reconstruction", "rec", "hinge", "triplet", "contrastive", "denoising", "diffusion", "noise", "smooth",
];
/// Parts of names of the part of a loss that is learned, where another part of it is given more weight step by step.
const PART_OF_LOSS: [&str; 5] = ["recon", "reconstruction", "rec", "nll", "distortion"];

fn has_part(name: &str, of: &[&str]) -> bool {
    name.to_ascii_lowercase().split(['_', '/', '-', '.', ' ']).any(|part| of.contains(&part))
}

/// The measure of a metric on held-out data: `val_accuracy` is one of `accuracy`.
pub(super) fn held_out_measure(name: &str) -> Option<&str> {
    let (word, measure) = name.split_once(['_', '/', '-'])?;
    HELD_OUT.contains(&word).then_some(measure)
}

/// The measure of a metric on training data.
pub(super) fn training_measure(name: &str) -> Option<&str> {
    match name.split_once(['_', '/', '-']) {
        Some(("train" | "training", measure)) => Some(measure),
        Some((word, _)) if HELD_OUT.contains(&word) => None,
        _ => Some(name),
    }
}

fn measure(name: &str) -> &str {
    held_out_measure(name).or_else(|| training_measure(name)).unwrap_or(name)
}

pub(super) fn is_loss(name: &str) -> bool {
    loss_rank(name) > 0 || held_out_measure(name).is_some_and(|measure| measure.ends_with("loss"))
}

pub(super) fn is_accuracy(name: &str) -> bool {
    matches!(measure(name), "accuracy" | "acc" | "balanced_accuracy" | "top1" | "acc1")
}

/// Whether more of it is better: an accuracy, or another score.
pub(super) fn is_score(name: &str) -> bool {
    is_accuracy(name) || SCORES.contains(&&*measure(name).to_ascii_lowercase())
}

pub(super) fn is_learning_rate(name: &str) -> bool {
    matches!(training_measure(name), Some("learning_rate" | "lr"))
}

/// Whether the level of a loss may be that of a guess among classes.
pub(super) fn may_be_of_classes(name: &str) -> bool {
    !has_part(name, &OF_NUMBERS)
}

pub(super) fn is_part_of_loss(name: &str) -> bool {
    held_out_measure(name).is_none() && has_part(name, &PART_OF_LOSS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what names of metrics say.
    #[test]
    fn names_say_what_a_metric_is() {
        for (name, accuracy, score) in [
            ("val_acc", true, true),
            ("train/accuracy", true, true),
            ("test_F1", false, true),
            ("mAP", false, true),
            ("eval_roc_auc", false, true),
            ("loss", false, false),
            ("map_seconds", false, false),
        ] {
            assert_eq!((is_accuracy(name), is_score(name)), (accuracy, score), "{name}");
        }
        for (name, expected) in [
            ("loss", true),
            ("ce_loss", true),
            ("mse_loss", false),
            ("L1_loss", false),
            ("recon-loss", false),
        ] {
            assert_eq!(may_be_of_classes(name), expected, "{name}");
        }
        assert!(is_learning_rate("lr") && is_learning_rate("train/learning_rate"));
        assert!(is_part_of_loss("recon") && !is_part_of_loss("val_recon") && !is_part_of_loss("record"));
    }
}
