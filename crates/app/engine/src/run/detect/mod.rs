//! The detectors over the live record of a run: their input, the policies of the run file for their findings; and
//! whether more training is worth it. `detection_log` writes the findings down; the supervisor carries the policies out.

mod detection_log;
mod majority;
pub(super) mod replay;
mod report;
mod stopping;

use std::collections::HashMap;

use trackway_core::Rung;
use trackway_core::detect::{DetectionPolicy, DetectionSeverity, Detector, Firing};
use trackway_formats::record::NameId;
use trackway_formats::runfile::{DetectSection, Plan};
use trackway_rules::detect::{Detectors, METRICS_MAX, Rules, WatchId};
use trackway_rules::preflight::memory::Device;

use self::stopping::Stopping;
use super::record::effective_batch::BatchWatch;
use super::record::live_record::{RecordUpdate, RecordedValues};
use crate::attempt::actions::ActionKind;
pub use detection_log::DetectionLog;
pub use report::detections_of;

/// Names of segments whose watches are remembered; beyond, they are looked up again.
const WATCHES_MAX: usize = 65_536;

/// The detectors of one run, over all of its attempts.
#[derive(Debug)]
pub struct Detecting {
    detectors: Detectors,
    rung: Rung,
    section: DetectSection,
    /// Whether the run has a run file: a command without one was launched to be watched, not to be ended.
    has_run_file: bool,
    watches: HashMap<(usize, NameId), WatchId>,
    unwatched_reported: bool,
    firings: Vec<Firing>,
    stopping: Stopping,
    batch: BatchWatch,
}

/// What was found, and what is done about it.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectorFinding {
    /// What was found.
    pub firing: Firing,
    /// The policy of the run file.
    pub policy: DetectionPolicy,
}

impl DetectorFinding {
    /// In one line, for a user and for the reason of a stop.
    #[must_use]
    pub fn sentence(&self) -> String {
        let firing = &self.firing;
        format!("`{}` at step {}: {}", firing.detector, firing.step, firing.evidence)
    }

    /// What a stop because of it is called.
    #[must_use]
    pub const fn stop_kind(&self) -> ActionKind {
        match self.firing.detector {
            Detector::Hang => ActionKind::HangKill,
            Detector::NonFinite
            | Detector::GradientExplosion
            | Detector::GradientVanishing
            | Detector::LossSpike
            | Detector::LossShift
            | Detector::LearningRate
            | Detector::LossScaleCollapse
            | Detector::RankDivergence => ActionKind::DivergenceStop,
            Detector::DeadInput
            | Detector::SeenBefore
            | Detector::DataStarvation
            | Detector::ThroughputDrop
            | Detector::Straggler
            | Detector::MemoryCreep => ActionKind::UnhealthyStop,
            Detector::Plateau | Detector::ValidationDivergence => ActionKind::EarlyStop,
        }
    }

    /// Whether a stop must not save: the state is most likely full of NaN, and a checkpoint of it would be resumed from.
    #[must_use]
    pub fn spoils_checkpoints(&self) -> bool {
        self.firing.detector == Detector::NonFinite
    }
}

impl Detecting {
    /// The detectors as the plan of a run sets them, at this rung.
    #[must_use]
    pub fn new(plan: &Plan, rung: Rung, has_run_file: bool) -> Self {
        let mut detecting = Self {
            detectors: Detectors::new(rules_of(&plan.detect)),
            rung,
            section: plan.detect.clone(),
            has_run_file,
            watches: HashMap::new(),
            unwatched_reported: false,
            firings: Vec::new(),
            stopping: Stopping::new(plan.early_stop.as_ref()),
            batch: BatchWatch::default(),
        };
        detecting.runs_on(plan.resources.gpu.as_deref());
        detecting
    }

    /// The kind of GPU, whose memory is a limit if it is known.
    pub fn runs_on(&mut self, gpu: Option<&str>) {
        if let Some(device) = gpu.and_then(Device::named) {
            self.detectors.set_memory_limit(device.usable_bytes() as f64);
        }
    }

    /// An attempt begins: its segments are numbered from the beginning again. On another rung the training is another
    /// one: its loss begins high again, which is not a problem. `batch`: number and effective batch of the attempt before.
    pub fn begins_again(&mut self, rung: Rung, batch: Option<(u32, u64)>) {
        self.batch = BatchWatch::new(batch);
        self.watches.clear();
        self.stopping.begins_again(rung != self.rung);
        if rung == self.rung {
            self.detectors.begins_again();
        } else {
            self.rung = rung;
            self.detectors = self.detectors.restarted();
        }
    }

    /// Takes what was recorded.
    pub fn take(&mut self, sight: RecordUpdate<'_>) {
        match sight {
            RecordUpdate::Values(seen) => self.take_values(seen),
            RecordUpdate::Memory(sample) => self.detectors.take_memory(sample, &mut self.firings),
        }
    }

    fn take_values(&mut self, seen: &RecordedValues<'_>) {
        seen.replaced.iter().for_each(|name| self.detectors.forget_metric(name));
        if self.watches.len() > WATCHES_MAX {
            self.watches.clear();
        }
        let at_seconds = seen.metrics.at.as_micros() as f64 / 1e6;
        for (id, value) in &seen.metrics.values {
            let watch = *self.watches.entry((seen.segment, *id)).or_insert_with(|| {
                let name = seen.names.name_or_placeholder(*id);
                self.detectors.watch(seen.rank, &name)
            });
            if self.batch.waits() {
                self.batch.take(seen.rank, &seen.names.name_or_placeholder(*id), *value);
            }
            self.detectors.take(watch, seen.metrics.step, *value, at_seconds, &mut self.firings);
        }
        if self.firings.iter().any(|firing| firing.detector == Detector::SeenBefore) {
            self.stopping.batches_came_again();
        }
        self.stopping.take(seen);
    }

    /// Sets how long nothing came, in seconds on a clock that does not jump.
    pub fn tick(&mut self, quiet_seconds: f64) {
        self.detectors.tick(quiet_seconds, &mut self.firings);
    }

    /// What was found and is not over.
    pub fn standing(&self) -> Vec<Firing> {
        self.detectors.standing()
    }

    /// What was found since the last call.
    pub fn findings(&mut self) -> Vec<DetectorFinding> {
        let firings = std::mem::take(&mut self.firings);
        firings.into_iter().map(|firing| DetectorFinding { policy: self.policy(&firing), firing }).collect()
    }

    /// The policy of the run file. By default findings are noted, and a run with a run file ends once its loss is lost.
    fn policy(&self, firing: &Firing) -> DetectionPolicy {
        let is_lost =
            firing.detector == Detector::NonFinite && firing.severity == DetectionSeverity::Critical;
        let default = match is_lost && self.has_run_file {
            true => DetectionPolicy::Stop,
            false => DetectionPolicy::Note,
        };
        self.section.policy_of(firing.detector).unwrap_or(default)
    }

    /// Why more training is worth nothing, once that is so.
    pub fn enough(&mut self) -> Option<String> {
        self.stopping.enough()
    }

    /// That an update of the weights uses another number of samples than before, once.
    pub fn changed_batch(&mut self) -> Option<String> {
        self.batch.complaint()
    }

    /// That some metrics are not watched, once.
    pub fn complaint(&mut self) -> Option<String> {
        let missed = self.detectors.not_watched();
        if missed == 0 || self.unwatched_reported {
            return None;
        }
        self.unwatched_reported = true;
        Some(format!("detectors watch {METRICS_MAX} metrics at most; {missed} or more are not watched"))
    }
}

fn rules_of(section: &DetectSection) -> Rules {
    let mut rules = Rules::default();
    for (detector, settings) in &section.detectors {
        let mut rule = rules.of(*detector);
        rule.enabled = settings.policy != Some(DetectionPolicy::Off);
        rule.threshold = settings.threshold.unwrap_or(rule.threshold);
        rule.patience = settings.patience.unwrap_or(rule.patience);
        rules.set(*detector, rule);
    }
    rules
}

#[cfg(test)]
mod tests {
    use trackway_core::Timestamp;
    use trackway_formats::record::{Metrics, NameDefinition, NameTable};
    use trackway_rules::detect::MemorySample;

    use super::*;

    /// Proves that a loss that continues high is a jump in the rung that had a lower one, and none at the next rung.
    #[test]
    fn the_next_rung_begins_high_without_a_finding() {
        let (low, full) = (Rung::new(0.1).unwrap(), Rung::FULL);
        for (next, found) in [(low, true), (full, false)] {
            let mut detecting = Detecting::new(&Plan::for_command(&["true".into()]), low, false);
            losses(&mut detecting, 0, |step| 0.1 + 0.01 * (step % 7) as f64);
            assert!(detecting.findings().is_empty());
            detecting.begins_again(next, None);
            losses(&mut detecting, 200, |step| 5.0 / (1.0 + step as f64 / 50.0) + 0.01 * (step % 7) as f64);
            assert_eq!(!detecting.findings().is_empty(), found, "{next}");
        }
    }

    /// Proves that a leak in the machine's memory is found from telemetry, with the policy of `memory_creep`, once in an attempt.
    #[test]
    fn a_leak_in_the_memory_of_the_machine_is_found() {
        let mut detecting = Detecting::new(&Plan::for_command(&["true".into()]), Rung::FULL, false);
        for _ in 0..2 {
            detecting.begins_again(Rung::FULL, None);
            for second in 0..200 {
                let grown = second as f64 * 1e8;
                let (resident_bytes, available_bytes) = (1e9 + grown, 2e10 - grown);
                let sample = MemorySample { seconds: second, step: second, resident_bytes, available_bytes };
                detecting.take(RecordUpdate::Memory(sample));
            }
            let [found] = &detecting.findings()[..] else { panic!("one finding") };
            assert_eq!((found.firing.detector, found.policy), (Detector::MemoryCreep, DetectionPolicy::Note));
            assert_eq!(found.firing.metric.as_deref(), Some("system/rss_bytes"));
        }
    }

    fn losses(detecting: &mut Detecting, after_step: u64, loss: impl Fn(u64) -> f64) {
        let mut names = NameTable::default();
        let definition = NameDefinition { id: NameId(0), name: "loss".into() };
        names.learn(&definition);
        for step in 1..=200 {
            let at = Timestamp::from_micros(step as i64 * 1000);
            let metrics = Metrics { at, step: after_step + step, values: vec![(NameId(0), loss(step))] };
            let seen =
                RecordedValues { segment: 0, rank: 0, metrics: &metrics, replaced: &[], names: &names };
            detecting.take(RecordUpdate::Values(&seen));
        }
    }
}
