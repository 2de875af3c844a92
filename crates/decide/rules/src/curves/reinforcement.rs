//! Whether a script learns by reinforcement, by the names of its metrics: its losses need not fall while it learns.

/// Parts of names of what only reinforcement learning records.
const EARNED: [&str; 5] = ["reward", "rewards", "return", "returns", "rew"];
/// Parts of names of rewards that a loss on pairs of answers, which does fall, records beside it.
const PREFERRED: [&str; 4] = ["chosen", "rejected", "margins", "accuracies"];

/// Whether a metric of this name says so.
pub(crate) fn is_of_reinforcement(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has = |of: &[&str]| name.split(['_', '/', '-', '.', ' ']).any(|part| of.contains(&part));
    has(&EARNED) && !has(&PREFERRED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which names say that a script learns by reinforcement, and that those of a loss on pairs of answers, and
    /// of episodes of another kind, do not.
    #[test]
    fn names_of_what_is_earned() {
        for (name, expected) in [
            ("reward", true),
            ("ep_rew_mean", true),
            ("rollout/mean_return", true),
            ("rewards/chosen", false),
            ("rewards/margins", false),
            ("episode", false),
            ("returned_rows", false),
            ("loss", false),
        ] {
            assert_eq!(is_of_reinforcement(name), expected, "{name}");
        }
    }
}
