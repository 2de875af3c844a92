//! What retention keeps: the run file's `checkpoint.keep`, and what a command line changes of it.

use trackway_checkpoint::{Best, MAX_ONLY_COPIES, MIN_KEPT, Retention};
use trackway_engine::checkpoints::policy_of;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::stored::stored_plan;

use super::Checkpoints;

/// What a command line sets instead of the run file.
#[derive(Debug, Clone, Default)]
pub struct KeepChanges {
    /// So many of the newest.
    pub last: Option<u32>,
    /// The first at or after every multiple of so many steps.
    pub every_steps: Option<u64>,
    /// The best by a metric: `val_loss`, `min val_loss` or `max accuracy`.
    pub best: Option<String>,
}

impl Checkpoints {
    /// The run file's policy with these changes.
    pub(super) fn policy(&self, changes: &KeepChanges) -> Result<Retention, AppError> {
        let plan = self.run.as_ref().map(|run| stored_plan(&run.row)).transpose()?.flatten();
        let mut policy = policy_of(&plan.map(|plan| plan.checkpoint).unwrap_or_default());
        let best = changes.best.as_deref().map(read_best).transpose()?;
        let says_more = changes.every_steps.is_some() || best.is_some();
        match changes.last {
            Some(last) => policy.last = last as usize,
            None if says_more && policy.last == usize::MAX => policy.last = MIN_KEPT,
            None => {}
        }
        policy.every_steps = changes.every_steps.or(policy.every_steps);
        policy.best = best.or(policy.best);
        Ok(policy)
    }
}

fn read_best(text: &str) -> Result<Best, AppError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let sound = matches!(words.as_slice(), [_] | ["min" | "max", _]);
    Best::parse(&words.join(" ")).filter(|_| sound).ok_or_else(|| {
        AppError::new(ErrorKind::Usage, format!("`{text}` names no metric"))
            .hint("write `val_loss`, `min val_loss` or `max accuracy`")
    })
}

/// A description of what a policy keeps.
pub fn in_words(policy: &Retention) -> String {
    if policy.last == usize::MAX {
        return "everything that a resume could reach".into();
    }
    let mut kept = vec![format!("the {} newest", policy.last.max(MIN_KEPT))];
    kept.extend(policy.every_steps.map(|steps| format!("one every {steps} steps")));
    kept.extend(policy.best.as_ref().map(best_in_words));
    let unsent = format!("up to {MAX_ONLY_COPIES} that are not at the remote yet");
    kept.extend(policy.only_uploaded.then_some(unsent));
    kept.push("what is pinned".into());
    kept.join(", ")
}

pub fn best_in_words(best: &Best) -> String {
    format!("the best by `{}` ({} is better)", best.metric, if best.more_is_better { "more" } else { "less" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a metric is read as the run file reads it and that anything else is refused.
    #[test]
    fn a_metric_is_read_or_refused() {
        assert_eq!(read_best("min  val_loss").unwrap(), Best::parse("val_loss").unwrap());
        assert!(
            read_best("").is_err() && read_best("most val_loss").is_err() && read_best("max a b").is_err()
        );
    }
}
