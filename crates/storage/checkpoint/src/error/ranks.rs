use trackway_core::Step;

use super::kind::ErrorKind;

/// The most ranks that a message names one by one.
const MAX_NAMED_RANKS: usize = 16;

/// Why ranks that save or resume together did not agree.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RankError {
    /// The environment does not give the rank of this process.
    #[error("`{variable}` is `{value}`: {expected}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// Its value; empty when it is not set.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
    /// Ranks that never did what all others wait for.
    #[error("{} did not {what} within {seconds} s", named(ranks))]
    Silent {
        /// The ranks that did not vote.
        ranks: Vec<u32>,
        /// What they did not do.
        what: String,
        /// How long they were waited for.
        seconds: f64,
    },
    /// The save was given up; every checkpoint committed earlier is untouched.
    #[error("the checkpoint of step {step} was given up: {why}")]
    Abandoned {
        /// Its step.
        step: Step,
        /// Why, with the ranks.
        why: String,
    },
    /// The ranks were started again within the attempt, and this process is of the earlier start.
    #[error(
        "round {found_round} of this attempt has begun, but this process belongs to round {round}; it must stop"
    )]
    Overtaken {
        /// The round of this process.
        round: u32,
        /// The round that was found.
        found_round: u32,
    },
    /// A rank was restarted alone: the others continued training.
    #[error(
        "step {step} was committed since this round began: a rank cannot join after that; start all ranks again, with a higher `TORCHELASTIC_RESTART_COUNT`, or as a new attempt"
    )]
    RoundIsOver {
        /// What was committed.
        step: Step,
    },
    /// Rank 0 was started with another number of ranks.
    #[error("rank 0 trains with {expected} ranks, but the world size of this process is {found}")]
    WorldSize {
        /// By rank 0.
        expected: u32,
        /// By this process.
        found: u32,
    },
    /// The prefix of a file's name is not this rank's.
    #[error(
        "rank {rank} cannot write a file named `{name}`: its files begin with `rank-{rank:04}-`; rank 0 may also write files of any other name but `votes`"
    )]
    FileName {
        /// The rank.
        rank: u32,
        /// The name.
        name: String,
    },
    /// A vote of this rank exists already, and it is not this process's.
    #[error("another process voted as rank {rank} on step {step}")]
    VotedAlready {
        /// The rank.
        rank: u32,
        /// What was voted on.
        step: Step,
    },
    /// A vote whose bytes are not those that were written.
    #[error("the vote `{name}` cannot be used: {why}")]
    DamagedVote {
        /// Its name in the root.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

impl RankError {
    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Silent { .. } | Self::Abandoned { .. } => ErrorKind::Retry,
            Self::Overtaken { .. } | Self::VotedAlready { .. } => ErrorKind::Fenced,
            Self::Environment { .. }
            | Self::RoundIsOver { .. }
            | Self::WorldSize { .. }
            | Self::FileName { .. } => ErrorKind::Input,
            Self::DamagedVote { .. } => ErrorKind::Integrity,
        }
    }
}

/// `rank 3`, or `ranks 1, 2 and 7`.
pub(crate) fn named(ranks: &[u32]) -> String {
    let mut names: Vec<_> = ranks.iter().take(MAX_NAMED_RANKS).map(u32::to_string).collect();
    if ranks.len() > MAX_NAMED_RANKS {
        names.push(format!("{} more", ranks.len() - MAX_NAMED_RANKS));
    }
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("ranks {} and {last}", others.join(", ")),
        _ => format!("rank {}", names.concat()),
    }
}
