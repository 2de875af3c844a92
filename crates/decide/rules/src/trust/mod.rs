//! Which checkpoints are unsafe: what they hold is most likely lost, though their bytes are whole. Losses, findings and the values in a
//! checkpoint in, a decision with its evidence out.
//!
//! A NaN in a loss is in the weights after the next update, and every later checkpoint has it. One exception: with a
//! loss scale, an update whose gradients overflow is left out, and the scale is lowered. A loss that went back to where
//! an untrained model has it, and stays there, says the same of finite weights: by its level over some steps, so that
//! noise does not hide it. Both are over when the loss was good again for many recorded steps in a row.
//!
//! Training does not heal weights that are not finite. So values in a checkpoint that are all finite say that the
//! update after a NaN was left out, if the loss was as good as before again; and a loss is computed before the update
//! of its step: a checkpoint is of what the loss of the next step shows.
//!
//! Some trainers print 0 or the last mean in place of a NaN, and the norm of the gradients shows it alone. A scale that
//! is not recorded may explain a norm that is not finite: one opens the question, which the values in a checkpoint
//! answer, and many in a row say the same as the loss.

mod values;

use std::collections::{BTreeMap, VecDeque};

use trackway_core::detect::Detector;
use trackway_core::{Step, UnsafeEvidence};
use trackway_formats::rehearsal::loss_rank;

use crate::curves::began_again::BeganAgain;
use crate::curves::loss_level::{LossLevel, falls_while_learning};
use crate::curves::reinforcement::is_of_reinforcement;

pub use self::values::{LostTensor, ReadCheckpoint, ReadTensors, TENSORS, judge, judge_values};

/// Recorded steps in a row with a good loss after which a checkpoint is safe again, unless the run file sets it.
pub const SAFE_AFTER: u32 = 50;
/// Updates in a row that a loss scale may leave out: from 2¹⁶, the usual beginning, down to 2⁶.
const OVERFLOWS_ALLOWED: u32 = 10;
/// Recorded steps after the finding of a detector within which the level of the loss follows its jump.
const JUMP_REACH: u32 = 20;
/// Losses that are followed at most, over all ranks and names.
const LOSSES_MAX: usize = 8192;
/// Good values before an episode by which its level is known, and the part of them that is at most that level: a loss
/// grows before it is NaN.
const LEVEL_VALUES: usize = 20;
const LEVEL_PART: f64 = 0.75;
/// Good values after a NaN by whose mean the loss is as good as before.
const RECOVERED_VALUES: u32 = 3;
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
    pub first_step: Step,
    /// The loss there.
    pub value: f64,
    /// What found it: the name of a detector, or of a look at the whole curve.
    pub found_by: &'static str,
    /// From this step on checkpoints are safe again; none: it lasts.
    pub over_at: Option<Step>,
    /// The last step of it with a value that is not finite, and how many there are.
    last_bad: Step,
    bad_values: u32,
    /// The level of the loss before it; none: it is not known.
    before: Option<f64>,
    /// Whether the loss was recorded at each step, so that the first one is of what the step before left.
    is_dense: bool,
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

    /// Whether its first loss was computed from what a checkpoint of this step holds.
    fn begins_after(&self, judged: JudgedStep) -> bool {
        self.is_dense && judged.is_own_count && judged.step.checked_add(1) == Some(self.first_step)
    }
}

/// By which step a checkpoint is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedStep {
    /// The step, in the count of the losses.
    pub step: Step,
    /// Whether the checkpoint counts the same.
    pub is_own_count: bool,
}

impl JudgedStep {
    /// A checkpoint that counts as the losses do.
    #[must_use]
    pub const fn own(step: Step) -> Self {
        Self { step, is_own_count: true }
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
    /// The last good values.
    recent: VecDeque<f64>,
    /// How many good values came since the last bad one, and their mean.
    since: (u32, f64),
    /// How many bad values came since the last good one, and the step of the last.
    bad: (u32, Step),
    /// The last step, and the first of the row of steps without a gap that it is of.
    steps: Option<(Step, Step)>,
    /// Whether another training of the script began with its last value.
    again: BeganAgain,
}

/// The losses of a training, of all ranks, as far as they show which checkpoints are unsafe. Bounded.
#[derive(Debug, Clone, Default)]
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
    /// A metric says that the losses need not fall.
    is_of_reinforcement: bool,
    /// The last step at which a loss was recorded.
    last_step: Option<Step>,
    /// Values that were found not finite in the checkpoints from this step on.
    lost_values: Option<(Step, UnsafeEvidence)>,
}

impl LossRecord {
    /// Nothing was recorded yet. `from_the_beginning`: the training begins with nothing learned.
    #[must_use]
    pub fn new(safe_after: u32, from_the_beginning: bool) -> Self {
        Self { safe_after, from_the_beginning, ..Self::default() }
    }

    /// Takes a value of a metric; what is neither a training loss nor a loss scale is left aside. Of several losses
    /// only those count whose names are the likeliest.
    pub fn take(&mut self, rank: u32, metric: &str, step: Step, value: f64) {
        if is_loss_scale(metric) {
            return self.take_scale(rank, step, value);
        }
        if is_gradient_norm(metric) {
            return self.take_gradient(rank, metric, step, value);
        }
        if is_of_reinforcement(metric) {
            self.is_of_reinforcement = true;
            self.curves.values_mut().for_each(|curve| curve.level = None);
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
        let has_level = self.from_the_beginning && !self.is_of_reinforcement && falls_while_learning(metric);
        let curve = self.curves.entry(key).or_insert_with(|| LossCurve {
            level: has_level.then(LossLevel::default),
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

    /// How a checkpoint of this step is judged. `reached`: the last step that was recorded when it was written, which
    /// decides where the checkpoint counts something else: updates of several printed batches, or of a printed epoch.
    #[must_use]
    pub fn judged(&self, step: Step, reached: Option<Step>) -> JudgedStep {
        let counts_otherwise = |reached: Step| {
            step.saturating_mul(2) < reached || self.last_step.is_some_and(|last| step > last)
        };
        match reached.filter(|reached| counts_otherwise(*reached)) {
            Some(step) => JudgedStep { step, is_own_count: false },
            None => JudgedStep::own(step),
        }
    }

    /// Whether a loss was not to be trusted at this step or before, or gradients were not finite, whatever came later.
    #[must_use]
    pub fn was_bad_by(&self, step: Step) -> bool {
        self.gradient_doubt.is_some_and(|first_step| first_step <= step)
            || self.all().flat_map(|(_, curve)| &curve.episodes).any(|episode| episode.first_step <= step)
    }

    /// The episodes that a checkpoint is of.
    fn against(&self, judged: JudgedStep) -> impl Iterator<Item = (&(u32, String), &LossCurve, &Episode)> {
        let all = self.all().flat_map(|(key, curve)| curve.episodes.iter().map(move |one| (key, curve, one)));
        all.filter(move |(_, _, one)| one.holds(judged.step) || one.begins_after(judged))
    }

    /// Why what was computed at this step is not to be trusted; none: it is.
    #[must_use]
    pub fn unsafe_at(&self, step: Step) -> Option<UnsafeEvidence> {
        // The next loss is not of it.
        let judged = JudgedStep { step, is_own_count: false };
        let lost = || self.lost_values.as_ref().filter(|(first_step, _)| *first_step <= step);
        self.by_losses(judged, false).or_else(|| Some(lost()?.1.clone()))
    }

    /// `are_finite`: whether the values in the checkpoint were all read, and are.
    fn by_losses(&self, judged: JudgedStep, are_finite: bool) -> Option<UnsafeEvidence> {
        let against = self
            .against(judged)
            .filter(|(_, curve, episode)| !(are_finite && curve.is_cleared_by_values(episode, judged)));
        let ((rank, name), curve, episode) =
            against.min_by_key(|((rank, _), _, episode)| (episode.first_step, *rank))?;
        let on_rank = if *rank == 0 { String::new() } else { format!(" on rank {rank}") };
        let why = format!(
            "`{name}`{on_rank} {}, and was not good again for {} recorded steps in a row",
            curve.seen_in(episode),
            self.safe_after
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
            self.is_bad_at(step);
            return self.leave_out(step, value);
        }
        (self.left_out, self.left_out_since) = (0, None);
        self.is_good(value);
        if let Some(open) = self.episodes.last_mut().filter(|episode| episode.over_at.is_none()) {
            self.good_in_a_row += 1;
            if self.good_in_a_row >= safe_after {
                open.over_at = Some(step);
            }
        }
    }

    /// Another training of the script: its steps begin again, and nothing of the one before is in it.
    fn begin_again(&mut self, step: Step) {
        self.level = self.level.take().map(|_| LossLevel::default());
        (self.jumped, self.pending, self.left_out, self.left_out_since) = (None, None, 0, None);
        (self.steps, self.since, self.bad) = (None, (0, 0.0), (0, 0));
        self.recent.clear();
        if let Some(open) = self.episodes.last_mut().filter(|episode| episode.over_at.is_none()) {
            open.over_at = Some(step);
        }
    }

    fn take(&mut self, step: Step, value: f64, scale: Option<(Step, f64, bool)>, safe_after: u32) {
        if self.again.take(step, value) {
            self.begin_again(step);
        }
        let in_a_row = self.steps.filter(|(last, _)| step == *last || Some(step) == last.checked_add(1));
        self.steps = Some((step, in_a_row.map_or(step, |(_, first)| first)));
        if !value.is_finite() {
            return self.take_non_finite(step, value, scale);
        }
        self.is_good(value);
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
        self.is_bad_at(step);
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

    /// A good value, after an episode or before the next one.
    fn is_good(&mut self, value: f64) {
        self.bad.0 = 0;
        let (count, mean) = &mut self.since;
        *count = count.saturating_add(1);
        *mean += (value - *mean) / f64::from(*count);
        if !self.is_open() {
            self.recent.push_back(value);
            if self.recent.len() > LEVEL_VALUES {
                self.recent.pop_front();
            }
        }
    }

    /// A value that is not finite.
    fn is_bad_at(&mut self, step: Step) {
        self.since = (0, 0.0);
        self.bad = (self.bad.0.saturating_add(1), step);
        if let Some(open) = self.episodes.last_mut().filter(|episode| episode.over_at.is_none()) {
            (open.last_bad, open.bad_values) = (step, open.bad_values.saturating_add(1));
        }
    }

    /// The level that most of the last good values do not exceed.
    fn recent_level(&self) -> Option<f64> {
        let mut recent: Vec<f64> = self.recent.iter().copied().collect();
        recent.sort_by(f64::total_cmp);
        let place = (recent.len() as f64 * LEVEL_PART) as usize;
        recent.get(place.min(recent.len().saturating_sub(1))).copied()
    }

    /// Whether finite values in a checkpoint show that it is not of an episode of values that were not finite: the loss
    /// was as good as before again. What was saved before the first of them need not be.
    fn is_cleared_by_values(&self, episode: &Episode, judged: JudgedStep) -> bool {
        let (count, mean) = self.since;
        let is_last = self.episodes.last().is_some_and(|last| std::ptr::eq(last, episode));
        let is_as_before = count >= RECOVERED_VALUES && episode.before.is_some_and(|level| mean <= level);
        episode.found_by == NON_FINITE && (is_last && is_as_before || !episode.holds(judged.step))
    }

    /// What was seen in an episode.
    fn seen_in(&self, episode: &Episode) -> String {
        let Episode { first_step, value, bad_values, last_bad, .. } = episode;
        if episode.found_by != NON_FINITE {
            return format!("is {value:.4}, no better than without training, from step {first_step} on");
        }
        let lasts = episode.over_at.is_none() && self.since.0 == 0;
        match bad_values {
            _ if lasts => format!("is {value} from step {first_step} on"),
            0 | 1 => format!("is {value} at step {first_step} (1 value)"),
            count => format!("is {value} from step {first_step} to {last_bad} ({count} values)"),
        }
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
            let row_from = self.steps.map_or(first_step, |(_, first)| first);
            let is_norm = self.steps.is_none();
            let (bad_values, last_bad) = self.bad;
            self.episodes.push(Episode {
                first_step,
                value,
                found_by,
                over_at: None,
                last_bad,
                bad_values,
                before: if is_norm { Some(f64::INFINITY) } else { self.recent_level() },
                is_dense: row_from < first_step,
            });
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
mod tests;
