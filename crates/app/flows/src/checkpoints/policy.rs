//! What retention keeps: the run file's `checkpoint.keep`, and what a command line changes of it.

use trackway_adopt::kept_by_default;
use trackway_checkpoint::{Best, CheckpointView, KeepReason, MAX_ONLY_COPIES, MIN_KEPT, Retention};
use trackway_engine::checkpoints::policy_of;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::stored::stored_plan;

use super::Checkpoints;

/// The rules by which a run deletes its checkpoints while it trains.
pub(super) struct InForce {
    pub policy: Retention,
    /// Whether they are the default for copies of what the script writes itself.
    pub of_copies: bool,
}

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

    /// What the run keeps of the checkpoints in this log.
    pub(super) fn policy_in_force(&self, view: &CheckpointView) -> Result<InForce, AppError> {
        let policy = self.policy(&KeepChanges::default())?;
        // Of a folder without a run it is not known what was configured.
        let is_silent = policy.last == usize::MAX && self.run.is_some();
        Ok(match is_silent.then(|| kept_by_default(view)).flatten() {
            Some(policy) => InForce { policy, of_copies: true },
            None => InForce { policy, of_copies: false },
        })
    }
}

impl InForce {
    /// Why a checkpoint stays.
    pub fn reason_in_words(&self, reason: &KeepReason) -> String {
        match reason {
            KeepReason::Last if self.of_copies => format!(
                "one of the {} newest copies, the default without `checkpoint.keep`",
                self.policy.last
            ),
            _ => reason_in_words(reason, &self.policy),
        }
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

/// Why a checkpoint stays, by a policy.
pub(super) fn reason_in_words(reason: &KeepReason, policy: &Retention) -> String {
    match reason {
        KeepReason::Last if policy.last == usize::MAX => "everything is kept".into(),
        KeepReason::Last => format!("one of the {} newest", policy.last.max(MIN_KEPT)),
        KeepReason::Every => {
            format!("the first at or after a multiple of {} steps", policy.every_steps.unwrap_or(0))
        }
        KeepReason::Best => policy.best.as_ref().map_or_else(|| "the best".into(), best_in_words),
        KeepReason::BestUnknown => policy.best.as_ref().map_or_else(String::new, |best| {
            format!("no checkpoint has a value of `{}`, so that the best is not known", best.metric)
        }),
        KeepReason::Pinned(name) => format!("pinned as `{name}`"),
        KeepReason::PerhapsPinned => "an entry of the log is lost, and may have pinned it".into(),
        KeepReason::NotUploaded => "not at the remote yet".into(),
        KeepReason::Spaced => "older, for the case that the newest turn out to be unsafe".into(),
        KeepReason::Unsettled => "a newer attempt has not committed yet, and may need it".into(),
        KeepReason::Unsafe => {
            "unsafe, and one of the newest that are: a person may decide that it is not".into()
        }
        KeepReason::Recent => "no resume uses it, so it is deleted when it is old enough".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the default for copies is named as what it is, that a configured rule is not called a default, and that other reasons
    /// are those of every policy.
    #[test]
    fn the_default_for_copies_is_named() {
        let two = Retention::default();
        let words = |of_copies, reason: &KeepReason| {
            InForce { policy: two.clone(), of_copies }.reason_in_words(reason)
        };
        let default = words(true, &KeepReason::Last);
        assert_eq!(default, "one of the 2 newest copies, the default without `checkpoint.keep`");
        assert_eq!(words(false, &KeepReason::Last), "one of the 2 newest");
        assert_eq!(words(true, &KeepReason::Recent), words(false, &KeepReason::Recent));
        let all = InForce { policy: Retention { last: usize::MAX, ..two }, of_copies: false };
        assert_eq!(all.reason_in_words(&KeepReason::Last), "everything is kept");
    }

    /// Proves that a metric is read as the run file reads it and that anything else is refused.
    #[test]
    fn a_metric_is_read_or_refused() {
        assert_eq!(read_best("min  val_loss").unwrap(), Best::parse("val_loss").unwrap());
        assert!(
            read_best("").is_err() && read_best("most val_loss").is_err() && read_best("max a b").is_err()
        );
    }
}
