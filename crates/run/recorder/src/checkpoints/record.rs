//! What the flight record gets of saves and resumes.

use std::sync::atomic::Ordering;

use trackway_checkpoint::{CheckpointError, Commit, ErrorKind, LoadedCheckpoint};
use trackway_core::{Step, with_fields_of};
use trackway_formats::record::{CheckpointChange, CheckpointFrame, ControlOutcome};
use trackway_formats::{EventKind, SaveReason};

use crate::checkpoints::together::is_given_up;
use crate::process::ProcessSlot;
use crate::process::inner::Inner;
use crate::process::pending::CheckpointRequest;

impl Inner {
    pub(crate) fn record_save(
        &self,
        slot: &ProcessSlot,
        step: Step,
        reason: SaveReason,
        asked: &[CheckpointRequest],
        saved: Result<&Commit, &CheckpointError>,
    ) {
        let outcome = match saved {
            Ok(commit) => {
                if self.leads() {
                    slot.segment.get().checkpoint(&self.committed_frame(commit));
                    record_reason(slot, step, reason, asked);
                }
                slot.reported.given_up.store(false, Ordering::Relaxed);
                ControlOutcome::Done
            }
            Err(error) if is_given_up(error) => {
                self.record_given_up(slot, step, error);
                ControlOutcome::Refused
            }
            Err(error) => {
                self.record_failure(slot, EventKind::CheckpointFailed, Some(step), error);
                ControlOutcome::Refused
            }
        };
        for asked in asked {
            slot.segment.get().control_ack(asked.id, outcome, Some(step));
        }
    }

    fn committed_frame(&self, commit: &Commit) -> CheckpointFrame {
        with_fields_of!(
            CheckpointFrame,
            &commit,
            [step, epoch, object_prefix, manifest_sha256, size_bytes, seconds],
            at: self.clock.now(),
            state: CheckpointChange::Committed,
        )
    }

    pub(crate) fn record_resume(
        &self,
        slot: &ProcessSlot,
        loaded: Result<Option<&LoadedCheckpoint>, &CheckpointError>,
        started_micros: i64,
    ) {
        match loaded {
            Ok(None) => {}
            Ok(Some(loaded)) if !self.leads() => self.go_on_from(slot, loaded.step),
            Ok(Some(loaded)) => {
                for fallback in &loaded.fallbacks {
                    slot.record_event(
                        EventKind::CheckpointFallback,
                        fallback.step,
                        &[("why", &fallback.why)],
                    );
                }
                let seconds = (self.clock.monotonic_micros() - started_micros) as f64 / 1e6;
                slot.segment.get().checkpoint(&CheckpointFrame {
                    at: self.clock.now(),
                    step: loaded.step,
                    epoch: loaded.info.epoch,
                    state: CheckpointChange::Resumed,
                    object_prefix: loaded.info.object_prefix.clone(),
                    manifest_sha256: loaded.info.manifest_sha256.clone().unwrap_or_default(),
                    size_bytes: loaded.manifest.size_bytes(),
                    seconds,
                });
                self.go_on_from(slot, loaded.step);
            }
            Err(error) => self.record_failure(slot, EventKind::ResumeFailed, None, error),
        }
    }

    fn go_on_from(&self, slot: &ProcessSlot, step: Step) {
        self.remember_checkpoint(slot, step);
        if let Some(mut board) = slot.board() {
            board.resumed_from(step);
        }
    }

    pub(crate) fn record_failure(
        &self,
        slot: &ProcessSlot,
        kind: EventKind,
        step: Option<Step>,
        error: &CheckpointError,
    ) {
        slot.segment.get().event(kind.as_str(), step, &[("why", &error.to_string())]);
        if error.kind() == ErrorKind::Fenced {
            slot.fenced.store(true, Ordering::Relaxed);
            slot.stop_asked.store(true, Ordering::Relaxed);
        }
    }
}

fn record_reason(slot: &ProcessSlot, step: Step, reason: SaveReason, asked: &[CheckpointRequest]) {
    let why: Vec<&str> = asked.iter().map(|asked| &*asked.why).filter(|why| !why.is_empty()).collect();
    let why = why.join("; ");
    let fields = [("reason", reason.as_str()), ("why", &*why)];
    let fields = if why.is_empty() { &fields[..1] } else { &fields[..] };
    slot.record_event(EventKind::CheckpointReason, Some(step), fields);
}
