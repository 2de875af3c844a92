//! What the handles of a recorder have in common, and what follows from its settings and its clock alone.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use trackway_checkpoint::{Notices, RankGroup};
use trackway_core::{Clock, Ids};
use trackway_formats::record::Origin;

use crate::process::board::Board;
use crate::process::control::ControlReader;
use crate::process::{ProcessSlot, SlotChain};
use crate::segment_writer::{SegmentInfo, SegmentWriter};
use crate::settings::Settings;
use crate::signal::Arrival;

pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) sigterm: &'static Arrival,
    pub(crate) slots: SlotChain,
}

impl Inner {
    /// What this process owns of the recorder; made on first use, again in a forked child.
    pub(crate) fn slot(&self) -> &ProcessSlot {
        self.slots.find_or_add(|| {
            let folder = self.settings.record_folder.as_deref().unwrap_or(Path::new("."));
            let info = SegmentInfo {
                run_id: self.settings.run.clone(),
                attempt_id: self.settings.attempt.clone(),
                origin: Origin::Sdk,
            };
            let segment = SegmentWriter::create(folder, info, Arc::clone(&self.clock));
            let board = self.notices().map(Board::new);
            let obeys = self.leads() || board.is_none();
            let reader = self.settings.control_file.clone().filter(|_| obeys).map(ControlReader::new);
            ProcessSlot::new(segment, reader, board, (folder, self.clock.monotonic_micros()))
        })
    }

    /// Which of several ranks this is; `None`: there is one process.
    pub(crate) fn group(&self) -> Option<RankGroup> {
        self.settings.group.as_ref().and_then(|group| group.as_ref().ok().copied())
    }

    /// Whether this process speaks for all: it alone obeys the control file and records what all have in common.
    pub(crate) fn leads(&self) -> bool {
        self.group().is_none_or(RankGroup::coordinates)
    }

    /// Where ranks that use one checkpoint root read the decisions of rank 0.
    pub(crate) fn notices(&self) -> Option<Notices> {
        let settings = &self.settings;
        let root = settings.checkpoint_root.as_deref()?;
        Some(Notices::new(root, settings.attempt_id()?, self.group()?.round()))
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(crate) fn now_micros(&self) -> i64 {
        self.clock.monotonic_micros()
    }

    pub(crate) fn seconds_since(&self, micros: i64) -> f64 {
        (self.now_micros() - micros) as f64 / 1e6
    }

    /// From the last save (or the resume, or the start) to that time.
    pub(crate) fn seconds_since_last_save(&self, slot: &ProcessSlot, began_micros: i64) -> f64 {
        (began_micros - slot.last_saved_micros.load(Ordering::Relaxed)).max(0) as f64 / 1e6
    }
}
