//! What a metric is by its name, for the looks at whole curves.

use trackway_formats::rehearsal::loss_rank;

const HELD_OUT: [&str; 7] = ["val", "valid", "validation", "eval", "test", "dev", "holdout"];
/// Measures, other than an accuracy, of which more is better.
const SCORES: [&str; 21] = [
    "f1", "f1_score", "f1_macro", "f1_micro", "macro_f1", "micro_f1", "auc", "auroc", "roc_auc", "bleu",
    "map", "r2", "r2_score", "acc5", "iou", "miou", "dice", "mean_iou", "dice_score", "ndcg", "mrr",
];
/// What the name of an accuracy ends with: `student_acc`.
const ACCURACIES: [&str; 4] = ["accuracy", "acc", "top1", "acc1"];
/// What a score is called that counts the first answers of a ranking: `recall@1`, `ndcg_at_5`.
const RANKED: [&str; 16] = [
    "recall", "precision", "hits", "hit", "hitrate", "hr", "ndcg", "map", "mrr", "acc", "accuracy", "top",
    "pass", "success", "r", "p",
];
/// Parts of names that do not say how good the model is now: `grad_acc` is a number of steps, `teacher_acc` another model's.
const NOT_NOW: [&str; 15] = [
    "grad", "gradient", "gradients", "accum", "steps", "batch", "best", "max", "min", "target", "loss",
    "err", "error", "teacher", "baseline",
];
/// Parts of names of losses that are not a cross-entropy: their level says nothing about classes.
const OF_NUMBERS: [&str; 20] = [
    "mse", "rmse", "msle", "mae", "mape", "smape", "l1", "l2", "huber", "regression", "recon",
    "reconstruction", "rec", "hinge", "triplet", "contrastive", "denoising", "diffusion", "noise", "smooth",
];
/// Parts of names of the part of a loss that is learned, where another part of it is given more weight step by step.
const PART_OF_LOSS: [&str; 5] = ["recon", "reconstruction", "rec", "nll", "distortion"];

fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split(['_', '/', '-', '.', ' '])
}

fn has_part(name: &str, of: &[&str]) -> bool {
    parts(&name.to_ascii_lowercase()).any(|part| of.contains(&part))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// How many of the first answers count, of which one must be right: 5 of `top5`, `top5_acc` and `top-5`.
fn first_answers(measure: &str) -> Option<&str> {
    let next = parts(measure).skip(1).chain([""]);
    parts(measure).zip(next).find_map(|(part, next)| {
        let count = part.strip_prefix("top")?;
        Some(if count.is_empty() { next } else { count }).filter(|count| is_number(count))
    })
}

/// Whether it is a score of a ranking: `recall@1`, `image_recall_at_10`.
fn is_of_ranking(measure: &str) -> bool {
    let ranked = measure.split_once('@').or_else(|| measure.split_once("_at_"));
    let name_of = |name: &str| parts(name).last().is_some_and(|last| RANKED.contains(&last));
    ranked.is_some_and(|(name, count)| is_number(count) && (name_of(name) || name.ends_with("hit_rate")))
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

/// Whether it is the fraction of answers that are right.
pub(super) fn is_accuracy(name: &str) -> bool {
    let measure = measure(name);
    let is_of_one = first_answers(measure).is_none_or(|count| count == "1");
    is_of_one
        && parts(measure).last().is_some_and(|last| ACCURACIES.contains(&last))
        && !parts(measure).any(|part| NOT_NOW.contains(&part))
}

/// Whether more of it is better: an accuracy, or another score.
pub(super) fn is_score(name: &str) -> bool {
    let measure = measure(name).to_ascii_lowercase();
    let is_of_answers = first_answers(&measure).is_some() && !has_part(&measure, &NOT_NOW);
    is_accuracy(name) || SCORES.contains(&&*measure) || is_of_ranking(&measure) || is_of_answers
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
            ("student_acc", true, true),
            ("val_student_acc", true, true),
            ("val_top1", true, true),
            ("balanced_accuracy", true, true),
            ("top5", false, true),
            ("val/top-5", false, true),
            ("top5_acc", false, true),
            ("acc@5", false, true),
            ("recall@1", false, true),
            ("val_recall@10", false, true),
            ("image_recall_at_10", false, true),
            ("hits@10", false, true),
            ("test-ndcg@5", false, true),
            ("hit_rate@10", false, true),
            ("mrr", false, true),
            ("loss", false, false),
            ("map_seconds", false, false),
            ("grad_acc", false, false),
            ("best_acc", false, false),
            ("top5_error", false, false),
            ("topic", false, false),
            ("top_norm", false, false),
            ("teacher_acc", false, false),
            ("top_1_acc", true, true),
            ("recall", false, false),
            ("loss@1", false, false),
            ("recall@k", false, false),
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
