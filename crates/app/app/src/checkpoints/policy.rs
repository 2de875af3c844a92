//! What retention keeps: the run file's `checkpoint.keep`, and what a command line changes of it.

use trackway_checkpoint::{Best, MAX_ONLY_COPIES, MIN_KEPT, Retention};
use trackway_formats::runfile::{CheckpointSection, Goal};

use super::Checkpoints;
use crate::error::{AppError, ErrorKind};
use crate::stored::stored_plan;

/// What a command line says instead of the run file.
#[derive(Debug, Clone, Default)]
pub struct KeepChanges {
    /// So many of the newest.
    pub last: Option<u32>,
    /// The first at or behind every multiple of so many steps.
    pub every_steps: Option<u64>,
    /// The best by a metric: `val_loss`, `min val_loss` or `max accuracy`.
    pub best: Option<String>,
}

/// The environment variables that tell an attempt what to keep; none when the run file keeps everything.
pub fn keep_variables(section: &CheckpointSection) -> Vec<(String, String)> {
    let best = section.keep_best.as_ref().map(|best| {
        let goal = if best.goal == Goal::Max { "max" } else { "min" };
        format!("{goal} {}", best.metric)
    });
    let variables = [
        ("TRACKWAY_CHECKPOINT_KEEP_LAST", section.keep_last.map(|last| last.to_string())),
        ("TRACKWAY_CHECKPOINT_KEEP_EVERY_STEPS", section.keep_every_steps.map(|steps| steps.to_string())),
        ("TRACKWAY_CHECKPOINT_KEEP_BEST", best),
    ];
    variables.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// What the run file keeps. Without a word about it everything that a resume could come to stays.
pub fn policy_of(section: &CheckpointSection) -> Retention {
    let best = section.keep_best.as_ref().map(|best| Best {
        metric: best.metric.clone(),
        more_is_better: best.goal == Goal::Max,
        count: 1,
    });
    let says_nothing = section.keep_last.is_none() && section.keep_every_steps.is_none() && best.is_none();
    let last = section.keep_last.map_or(MIN_KEPT, |last| last as usize);
    Retention {
        last: if says_nothing { usize::MAX } else { last },
        every_steps: section.keep_every_steps,
        best,
        only_uploaded: section.remote.is_some(),
    }
}

impl Checkpoints {
    /// The run file's policy with what is said instead.
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

/// What a policy keeps, in words.
pub fn in_words(policy: &Retention) -> String {
    if policy.last == usize::MAX {
        return "everything that a resume could come to".into();
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

    fn section(keep: &str) -> CheckpointSection {
        let text = format!("[run]\nname = \"r\"\ncommand = [\"true\"]\n[checkpoint]\n{keep}\n");
        trackway_formats::runfile::parse(&text, "test.toml", &[]).unwrap().checkpoint
    }

    /// Proves that the run file's words reach the attempt and the housekeeper alike, and that silence keeps all.
    #[test]
    fn the_run_file_decides_what_stays() {
        let spoken = section("keep = { last = 3, every = 500, best = \"max accuracy\" }");
        let variables = keep_variables(&spoken);
        let values: Vec<&str> = variables.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["3", "500", "max accuracy"]);
        let policy = policy_of(&spoken);
        assert_eq!((policy.last, policy.every_steps), (3, Some(500)));
        assert_eq!(policy.best, Best::parse("max accuracy"));
        assert_eq!(policy_of(&section("keep = { best = \"loss\" }")).last, MIN_KEPT);
        assert_eq!(policy_of(&section("")).last, usize::MAX);
        assert!(keep_variables(&section("")).is_empty());
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
