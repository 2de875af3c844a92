//! What is requested of a process: by the control file, and by variables that hold it at a step.

use std::sync::atomic::Ordering;
use std::time::Duration;

use trackway_core::Step;
use trackway_formats::EventKind;
use trackway_formats::control::{Command, Line};
use trackway_formats::record::ControlOutcome;

use crate::process::control::ControlReader;
use crate::process::inner::Inner;
use crate::process::pending::CheckpointRequest;
use crate::process::{ProcessSlot, once};

/// The control file is looked at so often at most.
pub const CONTROL_POLL_MICROS: i64 = 100_000;

/// How long `TRACKWAY_HOLD_AT_STEP` and `TRACKWAY_HOLD_IN_SAVE` hold at most, so that the process does not hang if it
/// is not killed.
pub const HOLD_SECONDS_MAX: u64 = 60;
const HOLD_TURN: Duration = Duration::from_millis(20);

impl Inner {
    /// Reads the control file when it is time to, and takes over its requests.
    pub(crate) fn poll_control(&self) -> &ProcessSlot {
        let slot = self.slot();
        let now = self.clock.monotonic_micros();
        let polled_at = slot.polled_at_micros.load(Ordering::Relaxed);
        let due = now.saturating_sub(polled_at) >= CONTROL_POLL_MICROS;
        let mine = due
            && slot
                .polled_at_micros
                .compare_exchange(polled_at, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if mine {
            self.read_control(slot);
        }
        self.notice_sigterm(slot);
        slot
    }

    fn read_control(&self, slot: &ProcessSlot) {
        let mut control = slot.control.get();
        let lines = control.reader.as_mut().map(ControlReader::poll).unwrap_or_default();
        for line in lines {
            match line {
                Line::Request { id, command: Command::Stop, .. } => {
                    control.stops.push(id);
                    slot.segment.get().control_ack(id, ControlOutcome::Accepted, None);
                    slot.stop_asked.store(true, Ordering::Relaxed);
                    slot.stop_wants_checkpoint.store(true, Ordering::Relaxed);
                }
                Line::Request { id, command: Command::CheckpointNow(_), .. }
                    if self.settings.checkpoint_root.is_none() =>
                {
                    slot.segment.get().control_ack(id, ControlOutcome::Refused, None);
                }
                Line::Request { id, command: Command::CheckpointNow(reason), why } => {
                    slot.segment.get().control_ack(id, ControlOutcome::Accepted, None);
                    control.checkpoints.push(CheckpointRequest { id, reason, why });
                    slot.checkpoint_asked.store(true, Ordering::Relaxed);
                }
                Line::Unknown { id } => {
                    slot.segment.get().control_ack(id, ControlOutcome::UnknownCommand, None)
                }
                Line::Unreadable { why } => {
                    slot.record_event(EventKind::ControlLineUnreadable, None, &[("why", &why)]);
                }
            }
        }
    }

    /// Holds the loop at the step of `TRACKWAY_HOLD_AT_STEP`, once, until it is killed, asked to stop, or time is up.
    /// Checkpoints in the background continue meanwhile.
    pub(crate) fn hold_if_requested(&self, slot: &ProcessSlot) {
        let step = slot.seen_step();
        let here = self.settings.hold_at_step.is_some_and(|at| step >= at);
        if !here || !once(&slot.reported.held) {
            return;
        }
        // The process that waits for this step reads it in the record.
        slot.segment.get().heartbeat(step);
        self.hold();
    }

    /// Holds a save whose files are written and which is not committed yet, at the step of `TRACKWAY_HOLD_IN_SAVE`,
    /// once.
    pub(crate) fn hold_in_save_if_requested(&self, slot: &ProcessSlot, step: Step) {
        let here = self.settings.hold_in_save.is_some_and(|at| step >= at);
        if here && once(&slot.reported.held_in_save) {
            slot.record_event(EventKind::HeldInSave, Some(step), &[]);
            self.hold();
        }
    }

    fn hold(&self) {
        for _ in 0..HOLD_SECONDS_MAX * 1_000 / HOLD_TURN.as_millis() as u64 {
            if self.sigterm.at_micros().is_some() {
                return;
            }
            std::thread::sleep(HOLD_TURN);
        }
    }
}
