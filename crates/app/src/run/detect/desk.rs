//! Writes detections into the ledger while the attempt goes on. A ledger that is busy is tried again at the next look.

use std::collections::{HashSet, VecDeque};

use trackway_core::{Clock as _, Step};
use trackway_ledger::{AttemptRow, DetectionRow};

use super::Finding;
use crate::App;

/// Detections of one attempt that are written at most: more of them tell nothing new.
const DETECTIONS_MAX: usize = 1000;

/// The detections of one attempt.
pub struct Desk<'a> {
    app: &'a App,
    row: &'a AttemptRow,
    known: HashSet<String>,
    waiting: VecDeque<DetectionRow>,
    told_failure: bool,
}

impl<'a> Desk<'a> {
    /// Begins with what is written of the attempt already: a supervisor that takes it up reads its record from the
    /// beginning, and finds all of that again.
    pub fn open(app: &'a App, row: &'a AttemptRow) -> Self {
        let known = app
            .ledger_read(|ledger| ledger.detections_of_attempt(row.attempt_id))
            .unwrap_or_default()
            .into_iter()
            .map(|detection| detection.detection_id)
            .collect();
        Self { app, row, known, waiting: VecDeque::new(), told_failure: false }
    }

    /// Takes a finding; false when it is written already, or there are too many of them.
    pub fn take(&mut self, finding: &Finding, last_committed_step: Option<Step>) -> bool {
        let firing = &finding.firing;
        let detection_id =
            format!("{}:{}:{}:{}", self.row.attempt_id, firing.detector, firing.rank, firing.step);
        if self.known.len() >= DETECTIONS_MAX || !self.known.insert(detection_id.clone()) {
            return false;
        }
        self.waiting.push_back(DetectionRow {
            detection_id,
            run_id: self.row.run_id,
            attempt_id: self.row.attempt_id,
            at: self.app.clock.now(),
            detector: firing.detector,
            severity: firing.severity,
            policy: finding.policy,
            rank: firing.rank,
            first_step: firing.first_step,
            step: firing.step,
            metric: firing.metric.clone(),
            value: Some(firing.value).filter(|value| value.is_finite()),
            threshold: firing.threshold,
            batch_digest: firing.batch_digest,
            last_committed_step,
            evidence: firing.evidence.clone(),
            cause: firing.cause.clone(),
            advice: firing.advice.clone(),
        });
        true
    }

    /// Writes what waits; answers with what is in the way, the first time.
    pub fn write(&mut self) -> Option<String> {
        while let Some(detection) = self.waiting.front() {
            match self.app.ledger_write(|ledger| ledger.insert_detection(detection)) {
                Ok(_) => self.waiting.pop_front(),
                Err(error) if self.told_failure => {
                    let _ = error;
                    return None;
                }
                Err(error) => {
                    self.told_failure = true;
                    return Some(format!("what detectors found is not in the ledger for now: {error}"));
                }
            };
        }
        None
    }
}
