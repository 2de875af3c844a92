//! How the process of one rank ended, as far as its segment shows it.

use serde::{Deserialize, Serialize};
use trackway_core::Step;

use super::{Frame, Segment};
use crate::EventKind;

/// The last that is known of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankEnd {
    pub rank: u32,
    /// The last step that it recorded.
    pub last_step: Option<Step>,
    /// Whether an uncaught exception ended it.
    pub raised: bool,
}

impl Segment {
    /// The rank of the process that wrote it, if it reported one, and how it ended.
    #[must_use]
    pub fn rank_end(&self) -> Option<RankEnd> {
        let events = || {
            self.frames.iter().filter_map(|located| match &located.frame {
                Frame::Event(event) => Some(event),
                _ => None,
            })
        };
        let rank = events().find(|event| EventKind::Rank.is(&event.kind))?.field("rank")?.parse().ok()?;
        let steps = self.frames.iter().filter_map(|located| match &located.frame {
            Frame::Metrics(metrics) => Some(metrics.step),
            Frame::Heartbeat(heartbeat) => Some(heartbeat.step),
            _ => None,
        });
        let raised = events().any(|event| EventKind::Exception.is(&event.kind));
        Some(RankEnd { rank, last_step: steps.max(), raised })
    }
}
