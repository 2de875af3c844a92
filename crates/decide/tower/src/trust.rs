//! Which checkpoints are unsafe: what they hold is most likely lost, though their bytes are whole. Losses, findings and the values in a
//! checkpoint in, a decision with its evidence out.
//!
//! A NaN in a loss is in the weights after the next update, and every later checkpoint has it. One exception: with a loss scale, an update whose
//! gradients overflow is left out, and the scale is lowered. A loss that went back to where an untrained model has it, and stays there, says the same
//! of finite weights: by its level over some steps, so that noise does not hide it. Both are over when the loss was good again for many recorded
//! steps in a row.
//!
//! Some trainers print 0 or the last mean in place of a NaN, and the norm of the gradients shows it alone. A scale that is not recorded may explain
//! a norm that is not finite: one opens the question, which the values in a checkpoint answer, and many in a row say the same as the loss.

use std::collections::BTreeMap;

use trackway_core::detect::Detector;
use trackway_core::{Step, UnsafeEvidence};
use trackway_formats::rehearsal::loss_rank;

use crate::loss_level::{LossLevel, falls_while_learning};

/// Recorded steps in a row with a good loss after which a checkpoint is safe again, unless the run file sets it.
pub const SAFE_AFTER: u32 = 50;
/// Updates in a row that a loss scale may leave out: from 2¹⁶, the usual beginning, down to 2⁶.
const OVERFLOWS_ALLOWED: u32 = 10;
/// Recorded steps after the finding of a detector within which the level of the loss follows its jump.
const JUMP_REACH: u32 = 20;
/// Losses that are followed at most, over all ranks and names.
const LOSSES_MAX: usize = 8192;
/// Episodes of one loss that are kept; later ones count as a part of the last.
const EPISODES_MAX: usize = 1000;

/// The name of the look at the whole curve that finds a model which guesses.
pub const CHANCE_LEVEL: &str = "chance_level";
/// The name of the look that finds a loss which exploded and did not come back.
pub const LOSS_EXPLODED: &str = "loss_exploded";
/// The name of the look that finds a loss which had fallen, went back towards where it began and stays there to the end.
pub const LOSS_WENT_BACK: &str = "loss_went_back";
const NON_FINITE: &str = Detector::NonFinite.as_str();

/// When a loss was not to be trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    /// Its first step.
    pub first_step: Step,
    /// The loss there.
    pub value: f64,
    /// What found it: the name of a detector, or of a look at the whole curve.
    pub found_by: &'static str,
    /// From this step on checkpoints are safe again; none: it lasts.
    pub over_at: Option<Step>,
}

impl Episode {
    /// Whether a checkpoint of this step is of it.
    const fn holds(&self, step: Step) -> bool {
        let is_over = match self.over_at {
            Some(over_at) => step >= over_at,
            None => false,
        };
        self.first_step <= step && !is_over
    }
}

/// Losses that are not finite while it is not known whether the update was left out.
#[derive(Debug, Clone, Copy)]
struct Pending {
    first_step: Step,
    last_step: Step,
    value: f64,
}

/// One loss of one rank.
#[derive(Debug, Clone, Default)]
struct LossCurve {
    episodes: Vec<Episode>,
    good_in_a_row: u32,
    pending: Option<Pending>,
    /// Updates in a row that were left out, and the first of them.
    left_out: u32,
    left_out_since: Option<(Step, f64)>,
    /// Its level, where it begins with that of an untrained model and falls while the model learns.
    level: Option<LossLevel>,
    /// What found that it jumped, and how many values ago.
    jumped: Option<(Detector, u32)>,
}

/// The losses of a training, of all ranks, as far as they show which checkpoints are unsafe. Bounded.
#[derive(Debug, Clone)]
pub struct LossRecord {
    safe_after: u32,
    /// Whether the first values are those of an untrained model.
    from_the_beginning: bool,
    /// By rank and name.
    curves: BTreeMap<(u32, String), LossCurve>,
    /// Norms of the gradients, by rank and name.
    gradients: BTreeMap<(u32, String), LossCurve>,
    /// The first step whose gradients were not finite.
    gradient_doubt: Option<Step>,
    /// By rank: the loss scale with its step, and whether it fell there.
    scales: BTreeMap<u32, (Step, f64, bool)>,
    best_rank: u8,
    /// The last step at which a loss was recorded.
    last_step: Option<Step>,
}

impl LossRecord {
    /// Nothing was recorded yet. `from_the_beginning`: the training begins with nothing learned.
    #[must_use]
    pub fn new(safe_after: u32, from_the_beginning: bool) -> Self {
        Self {
            safe_after,
            from_the_beginning,
            curves: BTreeMap::new(),
            gradients: BTreeMap::new(),
            gradient_doubt: None,
            scales: BTreeMap::new(),
            best_rank: 0,
            last_step: None,
        }
    }

    /// Takes a value of a metric; what is neither a training loss nor a loss scale is left aside. Of several losses only those count whose names
    /// are the likeliest.
    pub fn take(&mut self, rank: u32, metric: &str, step: Step, value: f64) {
        if is_loss_scale(metric) {
            return self.take_scale(rank, step, value);
        }
        if is_gradient_norm(metric) {
            return self.take_gradient(rank, metric, step, value);
        }
        let likely = loss_rank(metric);
        if likely == 0 || likely < self.best_rank {
            return;
        }
        if likely > self.best_rank {
            self.best_rank = likely;
            self.curves.clear();
        }
        self.last_step = self.last_step.max(Some(step));
        let key = (rank, metric.to_owned());
        if !self.curves.contains_key(&key) && self.curves.len() >= LOSSES_MAX {
            return;
        }
        let scale = self.scales.get(&rank).copied();
        let from_the_beginning = self.from_the_beginning;
        let curve = self.curves.entry(key).or_insert_with(|| LossCurve {
            level: (from_the_beginning && falls_while_learning(metric)).then(LossLevel::default),
            ..LossCurve::default()
        });
        curve.take(step, value, scale, self.safe_after);
    }

    fn take_gradient(&mut self, rank: u32, metric: &str, step: Step, value: f64) {
        let key = (rank, metric.to_owned());
        if !self.gradients.contains_key(&key) && self.gradients.len() >= LOSSES_MAX {
            return;
        }
        if !value.is_finite() {
            self.gradient_doubt.get_or_insert(step);
        }
        self.gradients.entry(key).or_default().take_norm(step, value, self.safe_after);
    }

    /// The training diverged by what is not recorded, such as a line of its log: the values in its checkpoints decide.
    pub fn doubt(&mut self) {
        self.gradient_doubt.get_or_insert(0);
    }

    /// Forgets a metric, of all ranks: its values come from another writer from now on.
    pub fn forget(&mut self, metric: &str) {
        self.curves.retain(|(_, name), _| name != metric);
        self.gradients.retain(|(_, name), _| name != metric);
    }

    fn take_scale(&mut self, rank: u32, step: Step, value: f64) {
        let before = self.scales.get(&rank).copied();
        let fell = before.is_some_and(|(_, before, _)| value < before);
        self.scales.insert(rank, (step, value, fell));
        for ((_, _), curve) in
            self.curves.range_mut((rank, String::new())..(rank.saturating_add(1), String::new()))
        {
            curve.learn_scale(step, fell);
        }
    }

    /// Takes a finding of a detector: a loss that jumped, and is now where an untrained model has it.
    pub fn take_finding(&mut self, detector: Detector) {
        if matches!(detector, Detector::LossSpike | Detector::LossShift) {
            self.curves.values_mut().for_each(|curve| curve.jump(detector));
        }
    }

    /// Takes what a look at the whole curve found: from this step to the end the loss was not to be trusted.
    pub fn take_look(&mut self, found_by: &'static str, first_step: Step, value: f64) {
        self.curves.values_mut().for_each(|curve| curve.open(first_step, value, found_by));
    }

    /// Nothing more is recorded: what could still have been explained is not.
    pub fn finish(&mut self) {
        self.curves.values_mut().for_each(LossCurve::finish);
    }

    /// Losses, and norms of gradients.
    fn all(&self) -> impl Iterator<Item = (&(u32, String), &LossCurve)> {
        self.curves.iter().chain(&self.gradients)
    }

    /// Whether any loss was ever not to be trusted.
    #[must_use]
    pub fn has_episodes(&self) -> bool {
        self.all().any(|(_, curve)| !curve.episodes.is_empty())
    }

    /// The step by which a checkpoint is judged, in the count of the losses. `reached`: the last one that was recorded when it was written, which decides
    /// where the checkpoint counts something else: updates of several printed batches, or of a printed epoch.
    #[must_use]
    pub fn judged_step(&self, step: Step, reached: Option<Step>) -> Step {
        let counts_otherwise = |reached: Step| {
            step.saturating_mul(2) < reached || self.last_step.is_some_and(|last| step > last)
        };
        reached.filter(|reached| counts_otherwise(*reached)).unwrap_or(step)
    }

    /// Whether a loss was not to be trusted at this step or before, or gradients were not finite, whatever came later.
    #[must_use]
    pub fn was_bad_by(&self, step: Step) -> bool {
        self.gradient_doubt.is_some_and(|first_step| first_step <= step)
            || self.all().flat_map(|(_, curve)| &curve.episodes).any(|episode| episode.first_step <= step)
    }

    /// Why a checkpoint of this step is unsafe, by the losses; none: it is not.
    #[must_use]
    pub fn unsafe_at(&self, step: Step) -> Option<UnsafeEvidence> {
        let found = self.all().filter_map(|((rank, name), curve)| {
            let episode = curve.episodes.iter().find(|episode| episode.holds(step))?;
            Some((episode, *rank, name))
        });
        let (episode, rank, name) = found.min_by_key(|(episode, rank, _)| (episode.first_step, *rank))?;
        let on_rank = if rank == 0 { String::new() } else { format!(" on rank {rank}") };
        let seen = match episode.found_by {
            NON_FINITE => format!("is {}", episode.value),
            _ => format!("is {:.4}, no better than without training,", episode.value),
        };
        let why = format!(
            "`{name}`{on_rank} {seen} from step {} on, and was not good again for {} recorded steps in a row",
            episode.first_step, self.safe_after
        );
        Some(UnsafeEvidence {
            why,
            found_by: episode.found_by.into(),
            first_step: Some(episode.first_step),
            value: Some(episode.value.to_string()),
            of: Some(name.clone()),
        })
    }
}

/// What the values in a checkpoint show, as far as they can be read without loading it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadTensors {
    /// The first tensor with a value that is NaN or infinite, and that value.
    pub non_finite: Option<(String, String)>,
}

/// Why a checkpoint is unsafe; none: it is not. The loss decides; after it was good again, the values in the checkpoint do, as far as they can be read.
/// Alone they show nothing: a buffer may hold any bits, and a loss that was finite throughout says that the model works.
#[must_use]
pub fn judge(step: Step, losses: &LossRecord, tensors: &ReadTensors) -> Option<UnsafeEvidence> {
    let by_loss = losses.unsafe_at(step);
    by_loss.or_else(|| {
        let (tensor, value) = tensors.non_finite.clone().filter(|_| losses.was_bad_by(step))?;
        Some(UnsafeEvidence {
            why: format!(
                "losses or gradients before it were not finite, and its tensor `{tensor}` holds {value}"
            ),
            found_by: "tensors".into(),
            first_step: None,
            value: Some(value),
            of: Some(tensor),
        })
    })
}

fn is_loss_scale(metric: &str) -> bool {
    let bare = metric.strip_prefix("train/").or_else(|| metric.strip_prefix("train_")).unwrap_or(metric);
    bare == "loss_scale"
}

/// The length of the gradients, as trainers call it.
fn is_gradient_norm(metric: &str) -> bool {
    let bare = metric.strip_prefix("train/").or_else(|| metric.strip_prefix("train_")).unwrap_or(metric);
    matches!(bare, "grad_norm" | "gradient_norm" | "grad_norm_total" | "gnorm")
}

impl LossCurve {
    /// Takes a norm of the gradients. A row of them that are not finite is longer than a search for a loss scale.
    fn take_norm(&mut self, step: Step, value: f64, safe_after: u32) {
        if !value.is_finite() {
            self.good_in_a_row = 0;
            return self.leave_out(step, value);
        }
        (self.left_out, self.left_out_since) = (0, None);
        if let Some(open) = self.episodes.last_mut().filter(|episode| episode.over_at.is_none()) {
            self.good_in_a_row += 1;
            if self.good_in_a_row >= safe_after {
                open.over_at = Some(step);
            }
        }
    }

    fn take(&mut self, step: Step, value: f64, scale: Option<(Step, f64, bool)>, safe_after: u32) {
        if !value.is_finite() {
            return self.take_non_finite(step, value, scale);
        }
        let is_back = self.level.as_mut().is_some_and(|level| level.take(step, value));
        if self.pending.is_none() {
            (self.left_out, self.left_out_since) = (0, None);
        }
        self.open_where_lost();
        self.forget_jump();
        let Some(open) = self.episodes.last_mut().filter(|episode| episode.over_at.is_none()) else { return };
        if open.found_by != NON_FINITE && is_back {
            self.good_in_a_row = 0;
            return;
        }
        self.good_in_a_row += 1;
        if self.good_in_a_row >= safe_after {
            open.over_at = Some(step);
            self.jumped = None;
        }
    }

    fn take_non_finite(&mut self, step: Step, value: f64, scale: Option<(Step, f64, bool)>) {
        self.good_in_a_row = 0;
        if self.is_open() {
            return;
        }
        match scale {
            None => self.open(step, value, NON_FINITE),
            Some((at, _, true)) if at == step => self.leave_out(step, value),
            Some(_) => {
                let pending =
                    self.pending.get_or_insert(Pending { first_step: step, last_step: step, value });
                pending.last_step = step;
            }
        }
    }

    /// Whether the update of a loss that was not finite was left out.
    fn learn_scale(&mut self, step: Step, fell: bool) {
        let Some(pending) = self.pending.filter(|pending| step >= pending.last_step) else { return };
        if fell {
            self.pending = None;
            self.leave_out(pending.first_step, pending.value);
        } else if step > pending.last_step {
            self.pending = None;
            self.open(pending.first_step, pending.value, NON_FINITE);
        }
    }

    /// An update was left out. Too many in a row are no search for a scale.
    fn leave_out(&mut self, step: Step, value: f64) {
        self.left_out += 1;
        let (first_step, first_value) = *self.left_out_since.get_or_insert((step, value));
        if self.left_out > OVERFLOWS_ALLOWED {
            self.open(first_step, first_value, NON_FINITE);
        }
    }

    fn jump(&mut self, detector: Detector) {
        if self.level.as_ref().is_some_and(LossLevel::is_away) {
            self.jumped.get_or_insert((detector, 0));
        }
        self.open_where_lost();
    }

    fn open_where_lost(&mut self) {
        let back = self.level.as_ref().and_then(LossLevel::back_since);
        if let (Some((detector, _)), Some((step, value))) = (self.jumped, back)
            && !self.is_open()
        {
            self.open(step, value, detector.as_str());
        }
    }

    /// A jump that is over, or that was not as high as the beginning, says nothing of what comes later.
    fn forget_jump(&mut self) {
        let is_back = self.level.as_ref().is_some_and(|level| level.back_since().is_some());
        if let Some((_, ago)) = self.jumped.as_mut().filter(|_| !is_back) {
            *ago += 1;
        }
        self.jumped = self.jumped.filter(|(_, ago)| *ago <= JUMP_REACH);
    }

    fn is_open(&self) -> bool {
        self.episodes.last().is_some_and(|episode| episode.over_at.is_none())
    }

    fn open(&mut self, first_step: Step, value: f64, found_by: &'static str) {
        self.good_in_a_row = 0;
        if self.is_open() {
            return;
        }
        if self.episodes.len() < EPISODES_MAX {
            self.episodes.push(Episode { first_step, value, found_by, over_at: None });
        } else if let Some(last) = self.episodes.last_mut() {
            last.over_at = None;
        }
    }

    fn finish(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.open(pending.first_step, pending.value, NON_FINITE);
        }
        if let Some((step, value)) = self.level.as_ref().and_then(LossLevel::back_for_long_since) {
            self.open(step, value, LOSS_WENT_BACK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;
    const NONE: [Step; 0] = [];

    /// Losses of steps 1, 2, …; `f` gives the loss and, if there is one, the loss scale after the step.
    fn record(steps: u64, f: impl Fn(u64) -> (f64, Option<f64>)) -> LossRecord {
        let mut losses = LossRecord::new(SAFE_AFTER, true);
        for step in 1..=steps {
            let (loss, scale) = f(step);
            losses.take(0, "loss", step, loss);
            if let Some(scale) = scale {
                losses.take(0, "loss_scale", step, scale);
            }
        }
        losses
    }

    /// Proves that a checkpoint which counts updates is judged by the batch that was printed when it was written, one that counts updates beside printed
    /// epochs by the epoch, and one that counts the same by its own step, which is known more exactly.
    #[test]
    fn checkpoints_that_count_otherwise_are_judged_by_what_was_printed() {
        let batches = record(100, |step| (if step >= 70 { NAN } else { 1.0 }, None));
        let is_unsafe = |losses: &LossRecord, step, reached| {
            losses.unsafe_at(losses.judged_step(step, reached)).is_some()
        };
        for (step, reached, expected) in [
            (18, Some(72), true),
            (12, Some(48), false),
            (72, Some(70), true),
            (69, Some(70), false),
            (80, None, true),
        ] {
            assert_eq!(is_unsafe(&batches, step, reached), expected, "{step} {reached:?}");
        }
        let epochs = record(9, |epoch| (if epoch >= 5 { NAN } else { 1.0 }, None));
        assert!(!is_unsafe(&epochs, 400, Some(4)) && is_unsafe(&epochs, 500, Some(5)));
    }

    fn unsafe_steps(losses: &LossRecord, steps: &[Step]) -> Vec<Step> {
        steps.iter().copied().filter(|step| losses.unsafe_at(*step).is_some()).collect()
    }

    /// Proves at which steps a checkpoint is unsafe after losses that are not finite: from the first one on, to the end or until the loss was good
    /// for fifty recorded steps in a row, whatever a gradient norm was.
    #[test]
    fn what_follows_a_nan_is_unsafe() {
        let saves: Vec<Step> = (1..=15).map(|save| save * 20).collect();
        let of = |f: &dyn Fn(u64) -> f64| unsafe_steps(&record(300, |step| (f(step), None)), &saves);
        assert_eq!(of(&|step| 1.0 / step as f64), NONE);
        assert_eq!(of(&|step| if step > 50 { NAN } else { 1.0 }).first(), Some(&60));
        assert_eq!(of(&|step| if step > 50 { NAN } else { 1.0 }).len(), 13, "to the end");
        assert_eq!(
            of(&|step| if step == 60 { f64::INFINITY } else { 1.0 }),
            [60, 80, 100],
            "110 is the fiftieth good one"
        );
        assert_eq!(of(&|step| if step == 60 || step == 100 { NAN } else { 1.0 }), [60, 80, 100, 120, 140]);
        let sparse = record(40, |step| (if step == 5 { NAN } else { 1.0 }, None));
        assert_eq!(unsafe_steps(&sparse, &[4, 5, 40, 400]), [5, 40, 400], "too few recorded steps");
        let mut norms = record(100, |_| (1.0, None));
        norms.take(0, "grad_norm", 101, f64::INFINITY);
        assert_eq!(unsafe_steps(&norms, &[101]), NONE);
        let evidence = record(60, |step| (if step > 50 { NAN } else { 1.0 }, None)).unsafe_at(60).unwrap();
        assert_eq!(
            (evidence.first_step, evidence.value.as_deref(), &*evidence.found_by),
            (Some(51), Some("NaN"), "non_finite")
        );
        assert!(evidence.why.contains("`loss` is NaN from step 51 on"), "{}", evidence.why);
    }

    /// Proves that gradients that are not finite are heard where the trainer hides the loss: many in a row alone, a few with the values in the
    /// checkpoint, and that a short row with finite values, as a search for a scale leaves it, does no harm.
    #[test]
    fn gradients_speak_where_the_loss_is_hidden() {
        let hidden = |lost: std::ops::Range<u64>| {
            let mut losses = LossRecord::new(SAFE_AFTER, true);
            for step in 1..=100 {
                let is_lost = lost.contains(&step);
                losses.take(0, "loss", step, if is_lost { 0.0 } else { 1.0 });
                losses.take(0, "grad_norm", step, if is_lost { NAN } else { 2.0 });
            }
            losses
        };
        let nan = ReadTensors { non_finite: Some(("layer.weight".into(), "NaN".into())) };
        let found = judge(60, &hidden(46..101), &ReadTensors::default()).unwrap();
        assert_eq!((found.of.as_deref(), found.first_step), (Some("grad_norm"), Some(46)));
        assert_eq!(judge(40, &hidden(46..101), &nan), None);
        assert_eq!(judge(60, &hidden(46..50), &ReadTensors::default()), None);
        assert_eq!(judge(60, &hidden(46..50), &nan).unwrap().found_by, "tensors");
    }

    /// Proves that an update which a loss scale left out does no harm, whether the scale falls in the same step or the next one, and that a row of
    /// them, or one without a lower scale, is.
    #[test]
    fn a_skipped_step_of_a_scaler_is_no_harm() {
        let at = |lowered_at: u64, nan: std::ops::Range<u64>| {
            record(100, move |step| {
                let halvings = step.saturating_sub(lowered_at - 1).min(nan.end - nan.start);
                (if nan.contains(&step) { NAN } else { 1.0 }, Some(65536.0 / 2f64.powi(halvings as i32)))
            })
        };
        assert_eq!(unsafe_steps(&at(20, 20..21), &[20, 30]), NONE, "in the same step");
        assert_eq!(unsafe_steps(&at(21, 20..21), &[20, 30]), NONE, "in the next one");
        assert_eq!(unsafe_steps(&at(20, 20..29), &[30]), NONE, "nine in a row");
        assert_eq!(unsafe_steps(&at(20, 20..60), &[19, 40, 60]), [40, 60], "forty in a row");
        let mut kept = record(30, |step| (if step == 20 { NAN } else { 1.0 }, Some(1024.0)));
        assert_eq!(unsafe_steps(&kept, &[19, 20, 30]), [20, 30], "the scale stayed");
        kept = LossRecord::new(SAFE_AFTER, true);
        kept.take(0, "loss_scale", 1, 8.0);
        kept.take(0, "loss", 2, NAN);
        assert_eq!(unsafe_steps(&kept, &[2]), NONE, "not known yet");
        kept.finish();
        assert_eq!(unsafe_steps(&kept, &[2]), [2], "nothing explains it");
    }

    /// Proves that a loss which a detector found to have jumped, and which stays where it was before the training, is unsafe from there on until it
    /// was lower for long; and that a higher level, a short jump, or one in a training that was resumed is not.
    #[test]
    fn a_loss_as_without_training_is_unsafe() {
        let curve = |at: fn(u64) -> f64, from_the_beginning: bool| {
            let mut losses = LossRecord::new(SAFE_AFTER, from_the_beginning);
            for step in 1..=300 {
                losses.take(0, "loss", step, at(step));
                if step == 105 {
                    losses.take_finding(Detector::LossShift);
                }
            }
            unsafe_steps(&losses, &[90, 120, 200, 290])
        };
        assert_eq!(curve(|step| if (31..=100).contains(&step) { 0.5 } else { 2.3 }, true), [120, 200, 290]);
        assert_eq!(curve(|step| if (31..=100).contains(&step) { 0.5 } else { 2.3 }, false), NONE);
        assert_eq!(
            curve(
                |step| if (31..=100).contains(&step) { 0.5 } else { 1.5 + 0.8 * f64::from(step <= 30) },
                true
            ),
            NONE
        );
        assert_eq!(
            curve(|step| if (101..=160).contains(&step) || step <= 30 { 2.3 } else { 0.5 }, true),
            [120, 200]
        );
        assert_eq!(
            curve(|step| if (101..=106).contains(&step) || step <= 30 { 2.3 } else { 0.5 }, true),
            NONE
        );
    }

    /// Proves that a loss which goes back to where it began and stays there to the end is unsafe from there on, without a finding of any detector and with
    /// noise, and that one which comes down again, goes back only a part of the way, or need not fall is not.
    #[test]
    fn a_loss_that_is_back_at_the_end_is_unsafe() {
        let curve = |name: &str, from_the_beginning: bool, at: &dyn Fn(u64) -> f64| {
            let mut losses = LossRecord::new(SAFE_AFTER, from_the_beginning);
            for step in 1..=500 {
                // Some of five values in a row are below the level of the beginning.
                losses.take(0, name, step, at(step) * (0.94 + 0.03 * (step * 2 % 5) as f64));
            }
            assert_eq!(unsafe_steps(&losses, &[450]), NONE, "not known yet");
            losses.finish();
            unsafe_steps(&losses, &[300, 301, 450])
        };
        let falls = |step: u64| 2.3 * 0.99_f64.powf(step as f64) + 0.15;
        let lost = |step: u64| if step > 300 { 2.35 } else { falls(step) };
        assert_eq!(curve("loss", true, &lost), [301, 450]);
        assert_eq!(curve("loss", false, &lost), NONE);
        assert_eq!(curve("d_loss", true, &lost), NONE);
        assert_eq!(curve("loss", true, &|step| if step > 300 { 1.3 } else { falls(step) }), NONE);
        let comes_down = |step: u64| if (301..=400).contains(&step) { 2.35 } else { falls(step) };
        assert_eq!(curve("loss", true, &comes_down), NONE);
    }

    /// Proves that the values in a checkpoint count once a loss was bad, and not alone, that the loss counts without values, and that any rank's loss
    /// counts.
    #[test]
    fn values_count_after_a_bad_loss() {
        let (finite, unread) = (record(100, |_| (1.0, None)), ReadTensors::default());
        let lost = ReadTensors { non_finite: Some(("w".into(), "NaN".into())) };
        assert_eq!(judge(50, &finite, &unread), None);
        assert_eq!(judge(50, &finite, &lost), None);
        assert_eq!(judge(50, &LossRecord::new(SAFE_AFTER, true), &lost), None);
        let recovered = record(200, |step| (if step == 20 { NAN } else { 1.0 }, None));
        assert_eq!(judge(150, &recovered, &unread), None);
        assert_eq!(judge(150, &recovered, &lost).unwrap().found_by, "tensors");
        assert_eq!(judge(10, &recovered, &lost), None);
        let mut ranks = finite;
        ranks.take(3, "loss", 90, NAN);
        assert!(judge(95, &ranks, &unread).unwrap().why.contains("`loss` on rank 3 is NaN from step 90 on"));
        let mut named = record(20, |_| (NAN, None));
        named.take(0, "val_loss", 1, NAN);
        named.take(0, "loss", 21, NAN);
        assert!(judge(21, &named, &unread).is_some());
    }
}
