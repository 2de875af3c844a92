//! Writes detections into the ledger while the attempt runs. A ledger that is busy or away is tried again at the next
//! turn.

use std::collections::{HashSet, VecDeque};

use trackway_core::{Clock as _, with_fields_of};
use trackway_formats::record::is_machine_metric;
use trackway_ledger::{AttemptRow, DetectionRow};

use super::DetectorFinding;
use crate::Context;
use crate::run::record::live_record::RecordFacts;

/// Detections of one attempt that are written at most: more of them are not informative.
const DETECTIONS_MAX: usize = 1000;

/// The detections of one attempt.
pub struct DetectionLog<'a> {
    context: &'a Context,
    row: &'a AttemptRow,
    known: HashSet<String>,
    waiting: VecDeque<DetectionRow>,
    failure_reported: bool,
}

impl<'a> DetectionLog<'a> {
    /// Begins with what is written of the attempt already: a supervisor that reattaches to it reads its record from the
    /// beginning, and finds all of that again. For an attempt that was just launched, nothing is.
    pub fn open(context: &'a Context, row: &'a AttemptRow, attached: bool) -> Self {
        let written = match attached {
            true => context.ledger_read(|ledger| ledger.detections_of_attempt(row.attempt_id)),
            false => Ok(Vec::new()),
        };
        let known = written.unwrap_or_default().into_iter().map(|detection| detection.detection_id).collect();
        Self { context, row, known, waiting: VecDeque::new(), failure_reported: false }
    }

    /// Whether a finding is to be taken: it is not written yet, and there are not too many of them.
    pub fn wants(&self, finding: &DetectorFinding) -> bool {
        self.known.len() < DETECTIONS_MAX && !self.known.contains(&self.id_of(finding))
    }

    /// The machine is found out of order once in an attempt: the step of its samples depends on when they are read.
    fn id_of(&self, finding: &DetectorFinding) -> String {
        let firing = &finding.firing;
        let of_machine = firing.metric.as_deref().is_some_and(is_machine_metric);
        let place = if of_machine { "machine".to_owned() } else { firing.step.to_string() };
        format!("{}:{}:{}:{place}", self.row.attempt_id, firing.detector, firing.rank)
    }

    /// Takes a finding with what the record shows beside it, and where the stacks are that were taken.
    pub fn take(&mut self, finding: &DetectorFinding, facts: &RecordFacts, stacks_path: Option<String>) {
        let firing = &finding.firing;
        let (first_place, last_place) = (facts.cursor.at(firing.first_step), facts.cursor.at(firing.step));
        let detection_id = self.id_of(finding);
        self.known.insert(detection_id.clone());
        self.waiting.push_back(with_fields_of!(
            DetectionRow,
            &firing,
            [
                detector, severity, rank, first_step, step, metric, threshold, batch_digest, evidence, cause,
                advice,
            ],
            detection_id,
            run_id: self.row.run_id,
            attempt_id: self.row.attempt_id,
            at: self.context.clock.now(),
            policy: finding.policy,
            value: Some(firing.value).filter(|value| value.is_finite()),
            last_committed_step: facts.last_committed_step,
            first_batch: first_place.map(|place| place.batch),
            last_batch: last_place.map(|place| place.batch),
            data_epoch: first_place.and_then(|place| place.epoch),
            stacks_path,
        ));
    }

    /// Writes what is left when the attempt has ended, and waits for a ledger that is away.
    pub fn finish(&mut self) {
        let context = self.context;
        // What is refused was reported when it was tried first.
        while let Some(detection) = self.waiting.pop_front() {
            let _ = context.ledger_write(|ledger| ledger.insert_detection(&detection));
        }
    }

    /// Writes what waits; answers with what is in the way, the first time.
    pub fn write(&mut self) -> Option<String> {
        while let Some(detection) = self.waiting.front() {
            match self.context.ledger_write_now(|ledger| ledger.insert_detection(detection)) {
                Ok(_) => self.waiting.pop_front(),
                Err(_) if self.failure_reported => return None,
                Err(error) => {
                    self.failure_reported = true;
                    return Some(format!("detections are not in the ledger for now: {error}"));
                }
            };
        }
        None
    }
}
