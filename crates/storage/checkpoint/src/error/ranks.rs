use trackway_core::Step;

use super::kind::ErrorKind;

/// The most ranks that a message names one by one.
const MAX_NAMED_RANKS: usize = 16;

/// Why ranks that save or resume together did not agree.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RankError {
    #[error("`{variable}` is `{value}`: {expected}")]
    Environment { variable: &'static str, value: String, expected: &'static str },
    #[error("{} did not {what} within {seconds} s", named(ranks))]
    Silent { ranks: Vec<u32>, what: String, seconds: f64 },
    #[error("the checkpoint of step {step} was given up: {why}")]
    Abandoned { step: Step, why: String },
    #[error(
        "round {found_round} of this attempt has begun, but this process belongs to round {round}; it must stop"
    )]
    Overtaken { round: u32, found_round: u32 },
    #[error(
        "step {step} was committed since this round began: a rank cannot join after that; start all ranks again, with a higher `TORCHELASTIC_RESTART_COUNT`, or as a new attempt"
    )]
    RoundIsOver { step: Step },
    #[error("rank 0 trains with {expected} ranks, but the world size of this process is {found}")]
    WorldSize { expected: u32, found: u32 },
    #[error(
        "rank {rank} cannot write a file named `{name}`: its files begin with `rank-{rank:04}-`; rank 0 may also write files of any other name but `votes`"
    )]
    FileName { rank: u32, name: String },
    #[error("another process voted as rank {rank} on step {step}")]
    VotedAlready { rank: u32, step: Step },
    #[error("the vote `{name}` cannot be used: {why}")]
    DamagedVote { name: String, why: String },
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
