//! Which runs may lose their logs and records. A pure decision; the receipts in the ledger are never touched.

use trackway_core::Timestamp;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// When it ended; none while it may still continue.
    pub ended_at: Option<Timestamp>,
    /// Why it must not be touched, such as a pinned checkpoint.
    pub held_by: Option<String>,
}

/// The rule. Every condition that is given must allow a run to go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetentionRule {
    /// It ended at least so many seconds ago.
    pub older_than_seconds: Option<f64>,
    /// It is not among so many that ended last.
    pub keep_last: Option<usize>,
}

/// What becomes of a run's logs and records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// They stay, for this reason.
    Stays(String),
    /// They go.
    Goes,
}

/// The fate of each run, in their order.
#[must_use]
pub fn fates(runs: &[RunFacts], rule: &RetentionRule, now: Timestamp) -> Vec<Fate> {
    let mut ends: Vec<Timestamp> = runs.iter().filter_map(|run| run.ended_at).collect();
    ends.sort_unstable_by(|left, right| right.cmp(left));
    let among_last = |ended: Timestamp| match rule.keep_last {
        // Runs that ended at the same time as the last kept one are kept, too.
        Some(count) => count > 0 && ends.get(count - 1).is_none_or(|last| ended >= *last),
        None => false,
    };
    let fate = |run: &RunFacts| {
        let Some(ended) = run.ended_at else { return Fate::Stays("it has not ended".into()) };
        if let Some(holder) = &run.held_by {
            return Fate::Stays(holder.clone());
        }
        if among_last(ended) {
            return Fate::Stays("one of the last".into());
        }
        match rule.older_than_seconds {
            Some(seconds) if now.seconds_since(ended) < seconds => Fate::Stays("too young".into()),
            _ => Fate::Goes,
        }
    };
    runs.iter().map(fate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(seconds: i64) -> RunFacts {
        RunFacts { ended_at: Some(Timestamp::from_micros(seconds * 1_000_000)), held_by: None }
    }

    fn going(runs: &[RunFacts], rule: &RetentionRule) -> Vec<bool> {
        let now = Timestamp::from_micros(100_000_000);
        fates(runs, rule, now).iter().map(|fate| *fate == Fate::Goes).collect()
    }

    /// Proves that both conditions must allow it, and that what lives or is held never goes.
    #[test]
    fn only_what_every_condition_allows_goes() {
        let held = RunFacts { held_by: Some("pinned".into()), ..ended(1) };
        let live = RunFacts { ended_at: None, held_by: None };
        let runs = [ended(10), ended(50), ended(95), held, live];
        let rule = |older, keep_last| RetentionRule { older_than_seconds: older, keep_last };
        assert_eq!(going(&runs, &rule(Some(20.0), None)), [true, true, false, false, false]);
        assert_eq!(going(&runs, &rule(Some(20.0), Some(2))), [true, false, false, false, false]);
        assert_eq!(going(&runs, &rule(None, Some(1))), [true, true, false, false, false]);
        assert_eq!(going(&runs, &rule(None, Some(0))), [true, true, true, false, false]);
    }
}
