//! Detectors of problems in a running run: values in, findings out, in the order in which values
//! come. Pure and bounded: a metric costs constant memory, and there are at most [`METRICS_MAX`] of them.
//!
//! Each detector has a file, whose header explains why a healthy run does not trigger it. All but `hang` look at
//! values; `hang` gets the time since the last value. An episode is reported once: its detector can fire again when the
//! run was healthy for a while.

mod anomaly;
mod batches;
mod gradient;
mod learning_rate;
mod loss;
mod loss_scale;
mod machine;
mod metric_detectors;
mod non_finite;
mod plateau;
mod rank;
mod ranks;
mod role;
mod rules;
mod series;
#[cfg(test)]
mod tests;
mod validation;

use std::collections::{BTreeMap, HashMap};

use trackway_core::Step;
use trackway_core::detect::{Detector, Firing};
use trackway_formats::record::RESIDENT_BYTES;

use crate::advice::lines::joined;
use crate::advice::symptoms::symptom_of_detector;
use crate::curves::reinforcement::is_of_reinforcement;
use anomaly::{Anomaly, DetectorChange, Sample};
pub use batches::cursor::{DataCursor, DataPlace};
use batches::seen_before::SeenBefore;
pub use machine::resident::MemorySample;
use machine::resident::ResidentCreep;
use metric_detectors::{LossKind, MetricDetectors};
use rank::Rank;
use ranks::{Agreement, Stragglers};
use role::{Role, role_of};
pub use rules::{Rule, Rules};

/// Metrics that are watched at most, over all ranks; the rest is counted by [`Detectors::not_watched`].
pub const METRICS_MAX: usize = 16_384;
/// Ranks that are watched at most.
pub const RANKS_MAX: usize = 4096;
/// What data-parallel ranks have in common after each step.
const COMPARED: [Role; 4] = [Role::GradientNorm, Role::UpdateRatio, Role::LearningRate, Role::LossScale];
/// Findings of one detector that begin within so many steps of each other, on several metrics or ranks, are one.
const SAME_EPISODE_STEPS: Step = 100;

/// A metric of a rank, as [`Detectors::watch`] gave it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchId(u32);

impl WatchId {
    const NONE: Self = Self(u32::MAX);
}

/// All detectors over one run.
#[derive(Debug, Default)]
pub struct Detectors {
    rules: Rules,
    memory_limit_bytes: Option<f64>,
    resident: ResidentCreep,
    by_name: HashMap<(u32, Box<str>), WatchId>,
    watched: Vec<MetricDetectors>,
    ranks: Vec<Rank>,
    rank_places: HashMap<u32, usize>,
    not_watched: u64,
    stragglers: Stragglers,
    seen_before: SeenBefore,
    agreements: [Agreement; COMPARED.len()],
    episodes: [Episodes; Detector::ALL.len()],
    /// Of each detector the last finding.
    last_found: BTreeMap<Detector, Firing>,
    /// The first and the greatest step of the training so far.
    steps: Option<(Step, Step)>,
    /// Nothing of the attempt that began was seen yet.
    begins: bool,
    /// A metric says that its losses need not fall.
    is_of_reinforcement: bool,
}

/// A look of a detector at a value of a metric of a rank.
struct DetectorLook {
    detector: Detector,
    rank: u32,
    metric: Option<String>,
    sample: Sample,
}

/// The episodes of one detector that are not over.
#[derive(Debug, Clone, Copy, Default)]
struct Episodes {
    open: u32,
    last_step: Step,
}

impl Detectors {
    /// Detectors with these settings.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Sets the memory of the device, so that the step at which it will be full can be predicted.
    pub fn set_memory_limit(&mut self, bytes: f64) {
        self.memory_limit_bytes = Some(bytes);
    }

    /// Metrics that are not watched because there are too many of them, or of ranks.
    #[must_use]
    pub const fn not_watched(&self) -> u64 {
        self.not_watched
    }

    /// Begins to watch a metric of a rank; the same one again gives the same answer. What no detector looks at costs
    /// nothing.
    pub fn watch(&mut self, rank: u32, metric: &str) -> WatchId {
        self.is_of_reinforcement |= is_of_reinforcement(metric);
        let Some(role) = role_of(metric) else { return WatchId::NONE };
        if let Some(watch) = self.by_name.get(&(rank, Box::from(metric))) {
            return *watch;
        }
        let full = self.watched.len() >= METRICS_MAX;
        let Some(place) = self.place_of(rank).filter(|_| !full) else {
            self.not_watched += 1;
            return WatchId::NONE;
        };
        let watch = WatchId(self.watched.len() as u32);
        self.watched.push(MetricDetectors::new(role, metric, place));
        self.by_name.insert((rank, metric.into()), watch);
        let known = &mut self.ranks[place];
        match role {
            Role::Loss(likely) if known.main_loss.is_none_or(|(other, _)| likely > other) => {
                known.main_loss = Some((likely, watch.0));
            }
            Role::LossScale => known.scaled = true,
            Role::StepSeconds => known.has_step_seconds = true,
            _ => {}
        }
        watch
    }

    /// Forgets what was seen of a metric, of all ranks: its values come from another writer from now on.
    pub fn forget_metric(&mut self, metric: &str) {
        for watched in self.watched.iter_mut().filter(|watched| &*watched.metric == metric) {
            *watched = MetricDetectors::new(watched.role, metric, watched.place);
        }
    }

    fn place_of(&mut self, rank: u32) -> Option<usize> {
        if let Some(place) = self.rank_places.get(&rank) {
            return Some(*place);
        }
        if self.ranks.len() >= RANKS_MAX {
            return None;
        }
        self.ranks.push(Rank::new(rank));
        self.rank_places.insert(rank, self.ranks.len() - 1);
        Some(self.ranks.len() - 1)
    }

    /// Takes one value. `at_seconds` is when it was recorded, on any clock that all values share; findings are added to
    /// `firings`.
    pub fn take(
        &mut self,
        watch: WatchId,
        step: Step,
        value: f64,
        at_seconds: f64,
        firings: &mut Vec<Firing>,
    ) {
        if self.watched.len() <= watch.0 as usize {
            return;
        }
        self.note_training(watch, step, value);
        self.note_step(step);
        let falls = !self.is_of_reinforcement;
        let watched = &mut self.watched[watch.0 as usize];
        let rank = &mut self.ranks[watched.place];
        if rank.hang.alive(step, at_seconds) {
            close(&mut self.episodes, Detector::Hang);
        }
        let sample = Sample { step, value };
        let main = rank.main_loss.is_some_and(|(_, main)| main == watch.0);
        let loss = LossKind { is_main: main, falls };
        let changes = watched.take(&self.rules, sample, rank, loss, self.memory_limit_bytes);
        for (detector, change) in changes {
            self.apply_change(self.look(detector, watch, sample), change, firings);
        }
        self.look_for_repetition(watch, sample, firings);
        self.compare(watch, sample, firings);
    }

    /// Takes a sample of the memory of the run's processes.
    pub fn take_memory(&mut self, sample: MemorySample, firings: &mut Vec<Firing>) {
        let rule = self.rules.of(Detector::MemoryCreep);
        let Some(found) = rule.enabled.then(|| self.resident.take(rule, sample)).flatten() else { return };
        let sample = Sample { step: sample.step, value: sample.resident_bytes };
        let metric = Some(RESIDENT_BYTES.to_owned());
        self.fire(DetectorLook { detector: Detector::MemoryCreep, rank: 0, metric, sample }, found, firings);
    }

    /// An attempt that begins where the training once began, or before half of what was trained, trains another model than
    /// the one whose levels are known.
    fn note_step(&mut self, step: Step) {
        if std::mem::take(&mut self.begins)
            && self.steps.is_some_and(|(first, last)| step <= first || step < last / 2)
        {
            self.forget();
        }
        self.steps = Some(self.steps.map_or((step, step), |(first, last)| (first.min(step), last.max(step))));
    }

    /// A loss that is back where it began while the steps begin again is that of another training of the script.
    fn note_training(&mut self, watch: WatchId, step: Step, value: f64) {
        let watched = &mut self.watched[watch.0 as usize];
        let is_of_first_rank = matches!(watched.role, Role::Loss(_)) && watched.place == 0;
        if is_of_first_rank && watched.again.take(step, value) {
            self.forget();
            self.watched[watch.0 as usize].again.take(step, value);
        }
    }

    /// What the batches of all ranks show.
    fn look_for_repetition(&mut self, watch: WatchId, sample: Sample, firings: &mut Vec<Firing>) {
        let rule = self.rules.of(Detector::SeenBefore);
        let watched = &self.watched[watch.0 as usize];
        if !rule.enabled || !sample.value.is_finite() {
            return;
        }
        let change = match watched.role {
            Role::BatchDigest => self.seen_before.digest(rule, sample),
            _ if watched.is_progressive => self.seen_before.progressive(rule, sample.step),
            _ => return,
        };
        if let Some(change) = change {
            self.apply_change(self.look(Detector::SeenBefore, watch, sample), change, firings);
        }
    }

    /// What only all ranks together show.
    fn compare(&mut self, watch: WatchId, sample: Sample, firings: &mut Vec<Firing>) {
        let watched = &self.watched[watch.0 as usize];
        if self.ranks.len() < 2 || !sample.value.is_finite() {
            return;
        }
        let rank = self.ranks[watched.place].rank;
        match watched.role {
            Role::StepSeconds => {
                let rule = self.rules.of(Detector::Straggler);
                if !rule.enabled {
                    return;
                }
                for (rank, change) in self.stragglers.take(rule, rank, sample) {
                    let look = self.look(Detector::Straggler, watch, sample);
                    self.apply_change(DetectorLook { rank, ..look }, change, firings);
                }
            }
            role => {
                let Some(place) = COMPARED.iter().position(|compared| *compared == role) else { return };
                let rule = self.rules.of(Detector::RankDivergence);
                if let Some(change) =
                    rule.enabled.then(|| self.agreements[place].take(rule, rank, sample)).flatten()
                {
                    self.apply_change(self.look(Detector::RankDivergence, watch, sample), change, firings);
                }
            }
        }
    }

    /// Reports that nothing new came for `quiet_seconds`, on a clock that does not jump. Call it about once a second.
    pub fn tick(&mut self, quiet_seconds: f64, firings: &mut Vec<Firing>) {
        let rule = self.rules.of(Detector::Hang);
        if !rule.enabled {
            return;
        }
        let newest = self.ranks.iter().filter_map(|rank| rank.hang.last_seconds()).fold(f64::MIN, f64::max);
        for place in 0..self.ranks.len() {
            let rank = &mut self.ranks[place];
            let behind = rank.hang.last_seconds().map_or(0.0, |last| (newest - last).max(0.0));
            let (number, found) = (rank.rank, rank.hang.tick(rule, quiet_seconds + behind));
            if let Some((step, seconds, found)) = found {
                let sample = Sample { step, value: seconds };
                let look = DetectorLook { detector: Detector::Hang, rank: number, metric: None, sample };
                self.fire(look, found, firings);
            }
        }
    }

    /// The last finding of each detector whose episode is not over.
    #[must_use]
    pub fn standing(&self) -> Vec<Firing> {
        let is_open = |detector: Detector| self.episodes[detector as usize].open > 0;
        self.last_found.values().filter(|firing| is_open(firing.detector)).cloned().collect()
    }

    /// The same settings, with nothing seen: for a training that begins from nothing.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self { memory_limit_bytes: self.memory_limit_bytes, ..Self::new(self.rules.clone()) }
    }

    /// Nothing was seen of any metric; those that are watched still are.
    fn forget(&mut self) {
        for watched in &mut self.watched {
            *watched = MetricDetectors::new(watched.role, &watched.metric, watched.place);
        }
        self.ranks.iter_mut().for_each(Rank::forget);
        self.stragglers = Stragglers::default();
        self.seen_before = SeenBefore::default();
        self.agreements = Default::default();
        self.episodes = [Episodes::default(); Detector::ALL.len()];
        self.steps = None;
    }

    /// A new attempt of the run begins: the behaviour of its processes is measured again; that of the model is kept where
    /// the attempt continues its training.
    pub fn begins_again(&mut self) {
        self.begins = true;
        self.stragglers = Stragglers::default();
        self.resident = ResidentCreep::default();
        self.seen_before.begins_again();
        for rank in &mut self.ranks {
            rank.begins_again();
        }
        for watched in &mut self.watched {
            watched.begins_again();
        }
        for detector in [
            Detector::Straggler,
            Detector::Hang,
            Detector::ThroughputDrop,
            Detector::DataStarvation,
            Detector::MemoryCreep,
        ] {
            self.episodes[detector as usize] = Episodes::default();
        }
    }

    fn look(&self, detector: Detector, watch: WatchId, sample: Sample) -> DetectorLook {
        let watched = &self.watched[watch.0 as usize];
        let metric = Some(watched.metric.to_string());
        DetectorLook { detector, rank: self.ranks[watched.place].rank, metric, sample }
    }

    fn apply_change(&mut self, look: DetectorLook, change: DetectorChange, firings: &mut Vec<Firing>) {
        match change {
            DetectorChange::Rearmed => close(&mut self.episodes, look.detector),
            DetectorChange::Fires(found) => self.fire(look, *found, firings),
            DetectorChange::Worsens(found) => self.report(look, *found, firings),
        }
    }

    fn fire(&mut self, look: DetectorLook, found: Anomaly, firings: &mut Vec<Firing>) {
        let episodes = &mut self.episodes[look.detector as usize];
        episodes.open += 1;
        let by_rank = look.detector == Detector::Straggler;
        let known = episodes.open > 1 && look.sample.step.abs_diff(episodes.last_step) <= SAME_EPISODE_STEPS;
        episodes.last_step = look.sample.step;
        if !known || by_rank {
            self.report(look, found, firings);
        }
    }

    fn report(&mut self, look: DetectorLook, found: Anomaly, firings: &mut Vec<Firing>) {
        let DetectorLook { detector, rank, metric, sample } = look;
        let symptom = symptom_of_detector(detector);
        let known = self.rank_places.get(&rank).map(|place| &self.ranks[*place]);
        let numeric = is_numeric(detector);
        let beside = known.filter(|_| numeric).map(Rank::beside).unwrap_or_default();
        let reported_cause = known.filter(|_| numeric).and_then(|rank| rank.reported_cause(found.first_step));
        let firing = Firing {
            detector,
            severity: found.severity,
            rank,
            first_step: found.first_step,
            step: sample.step,
            metric,
            value: found.value.unwrap_or(sample.value),
            threshold: found.threshold,
            batch_digest: known.and_then(|rank| rank.digest_of(found.first_step)),
            evidence: format!("{}{beside}", found.evidence),
            cause: reported_cause.unwrap_or_else(|| joined(symptom.causes)),
            advice: joined(symptom.try_first),
        };
        self.last_found.insert(detector, firing.clone());
        firings.push(firing);
    }
}

fn close(episodes: &mut [Episodes; Detector::ALL.len()], detector: Detector) {
    let open = &mut episodes[detector as usize].open;
    *open = open.saturating_sub(1);
}

/// Whether learning rate and gradient norm help to explain the finding.
const fn is_numeric(detector: Detector) -> bool {
    matches!(
        detector,
        Detector::NonFinite
            | Detector::GradientExplosion
            | Detector::GradientVanishing
            | Detector::LossSpike
            | Detector::LossShift
            | Detector::Plateau
            | Detector::LossScaleCollapse
    )
}
