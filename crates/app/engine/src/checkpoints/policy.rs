//! What the run file's `checkpoint.keep` means for an attempt and for retention.

use trackway_checkpoint::{Best, MIN_KEPT, Retention};
use trackway_formats::Variable;
use trackway_formats::runfile::{CheckpointSection, Goal};

/// The environment variables with the retention of an attempt; none when the run file keeps everything.
pub fn keep_variables(section: &CheckpointSection) -> Vec<(String, String)> {
    let best = section.keep_best.as_ref().map(|best| {
        let goal = if best.goal == Goal::Max { "max" } else { "min" };
        format!("{goal} {}", best.metric)
    });
    let variables = [
        (Variable::CheckpointKeepLast, section.keep_last.map(|last| last.to_string())),
        (Variable::CheckpointKeepEverySteps, section.keep_every_steps.map(|steps| steps.to_string())),
        (Variable::CheckpointKeepBest, best),
    ];
    variables.into_iter().filter_map(|(name, value)| Some((name.as_str().to_owned(), value?))).collect()
}

/// The retention of the run file. Without one everything that a resume could reach stays.
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
        spaced: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(keep: &str) -> CheckpointSection {
        let text = format!("[run]\nname = \"r\"\ncommand = [\"true\"]\n[checkpoint]\n{keep}\n");
        trackway_formats::runfile::parse(&text, "test.toml", &[]).unwrap().plan.checkpoint
    }

    /// Proves that the run file's settings reach the attempt and retention alike, and that no settings keep all.
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
}
