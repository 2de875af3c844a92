//! Which checkpoints are unsafe: what they hold is most likely lost, though their bytes are whole. Losses, findings and the values in a
//! checkpoint in, a decision with its evidence out.
//!
//! A NaN in a loss is in the weights after the next update, and every later checkpoint has it. One exception: with a loss scale, an update whose
//! gradients overflow is left out, and the scale is lowered. A loss that went back to where an untrained model has it, and stays there, says the same
//! of finite weights: by its level over some steps, so that noise does not hide it. Both are over when the loss was good again for many recorded
//! steps in a row.
//!
//! Training does not heal weights that are not finite. So values in a checkpoint that are all finite say that the update after a NaN was left out, if
//! the loss was as good as before again; and a loss is computed before the update of its step: a checkpoint is of what the loss of the next step shows.
//!
//! Some trainers print 0 or the last mean in place of a NaN, and the norm of the gradients shows it alone. A scale that is not recorded may explain
//! a norm that is not finite: one opens the question, which the values in a checkpoint answer, and many in a row say the same as the loss.

use std::collections::{BTreeMap, VecDeque};

use trackway_core::detect::Detector;
use trackway_core::{Step, UnsafeEvidence};
use trackway_formats::rehearsal::loss_rank;

use crate::began_again::BeganAgain;
use crate::loss_level::{LossLevel, falls_while_learning};
use crate::reinforcement::is_of_reinforcement;

/// Recorded steps in a row with a good loss after which a checkpoint is safe again, unless the run file sets it.
pub const SAFE_AFTER: u32 = 50;
/// Updates in a row that a loss scale may leave out: from 2¹⁶, the usual beginning, down to 2⁶.
const OVERFLOWS_ALLOWED: u32 = 10;
/// Recorded steps after the finding of a detector within which the level of the loss follows its jump.
const JUMP_REACH: u32 = 20;
/// Losses that are followed at most, over all ranks and names.
const LOSSES_MAX: usize = 8192;
/// Good values before an episode by which its level is known, and the part of them that is at most that level: a loss grows before it is NaN.
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
/// A smaller part of a checkpoint than one in so many is not taken for weights.
const WEIGHTS_PART: u64 = 50;
/// The name of the look at the values in a checkpoint.
pub const TENSORS: &str = "tensors";

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
    fn begins_after(&self, judged: Judged) -> bool {
        self.is_dense && judged.is_own_count && judged.step.checked_add(1) == Some(self.first_step)
    }
}

/// By which step a checkpoint is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// The step, in the count of the losses.
    pub step: Step,
    /// Whether the checkpoint counts the same.
    pub is_own_count: bool,
}

impl Judged {
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
        Self {
            safe_after,
            from_the_beginning,
            curves: BTreeMap::new(),
            gradients: BTreeMap::new(),
            gradient_doubt: None,
            scales: BTreeMap::new(),
            best_rank: 0,
            is_of_reinforcement: false,
            last_step: None,
            lost_values: None,
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

    /// How a checkpoint of this step is judged. `reached`: the last step that was recorded when it was written, which decides where the checkpoint counts
    /// something else: updates of several printed batches, or of a printed epoch.
    #[must_use]
    pub fn judged(&self, step: Step, reached: Option<Step>) -> Judged {
        let counts_otherwise = |reached: Step| {
            step.saturating_mul(2) < reached || self.last_step.is_some_and(|last| step > last)
        };
        match reached.filter(|reached| counts_otherwise(*reached)) {
            Some(step) => Judged { step, is_own_count: false },
            None => Judged::own(step),
        }
    }

    /// Whether a loss was not to be trusted at this step or before, or gradients were not finite, whatever came later.
    #[must_use]
    pub fn was_bad_by(&self, step: Step) -> bool {
        self.gradient_doubt.is_some_and(|first_step| first_step <= step)
            || self.all().flat_map(|(_, curve)| &curve.episodes).any(|episode| episode.first_step <= step)
    }

    /// Whether only losses that are not finite speak against a checkpoint, so that the values in it may show that the updates were left out.
    #[must_use]
    pub fn may_be_cleared(&self, judged: Judged) -> bool {
        self.against(judged).all(|(_, curve, episode)| curve.is_cleared_by_values(episode, judged))
    }

    /// The same while more is recorded: a loss that is finite again may be as good as before soon.
    #[must_use]
    pub fn may_yet_be_cleared(&self, judged: Judged) -> bool {
        self.against(judged).all(|(_, curve, episode)| {
            let is_finite_again = episode.found_by == NON_FINITE && curve.since.0 > 0;
            is_finite_again || curve.is_cleared_by_values(episode, judged)
        })
    }

    /// The values in a checkpoint are all finite: what only values could show is over, and checkpoints from there on are safe.
    pub fn clear_by_values(&mut self, judged: Judged) {
        for curve in self.curves.values_mut().chain(self.gradients.values_mut()) {
            let place = curve.episodes.iter().position(|episode| {
                episode.holds(judged.step) && curve.is_cleared_by_values(episode, judged)
            });
            if let Some(episode) = place.and_then(|place| curve.episodes.get_mut(place)) {
                episode.over_at = Some(judged.step);
            }
        }
    }

    /// The values in the checkpoints from this step on are lost.
    pub fn take_lost_values(&mut self, judged: Judged, evidence: &UnsafeEvidence) {
        let is_earlier = self.lost_values.as_ref().is_none_or(|(step, _)| judged.step < *step);
        if is_earlier {
            self.lost_values = Some((judged.step, evidence.clone()));
        }
    }

    /// The episodes that a checkpoint is of.
    fn against(&self, judged: Judged) -> impl Iterator<Item = (&(u32, String), &LossCurve, &Episode)> {
        let all = self.all().flat_map(|(key, curve)| curve.episodes.iter().map(move |one| (key, curve, one)));
        all.filter(move |(_, _, one)| one.holds(judged.step) || one.begins_after(judged))
    }

    /// Why what was computed at this step is not to be trusted; none: it is.
    #[must_use]
    pub fn unsafe_at(&self, step: Step) -> Option<UnsafeEvidence> {
        // The next loss is not of it.
        let judged = Judged { step, is_own_count: false };
        let lost = || self.lost_values.as_ref().filter(|(first_step, _)| *first_step <= step);
        self.by_losses(judged, false).or_else(|| Some(lost()?.1.clone()))
    }

    /// `are_finite`: whether the values in the checkpoint were all read, and are.
    fn by_losses(&self, judged: Judged, are_finite: bool) -> Option<UnsafeEvidence> {
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

/// A tensor with values that are not finite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostTensor {
    /// Which of the files of the checkpoint it is in.
    pub file: usize,
    /// Its name.
    pub name: String,
    /// The first such value.
    pub value: String,
    /// How large it is.
    pub size_bytes: u64,
    /// Whether half of its numbers and more are NaN: an update with a NaN leaves none finite.
    pub is_mostly_nan: bool,
}

/// What the values in a checkpoint show, as far as they can be read without loading it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadTensors {
    /// How many tensors are finite.
    pub finite: usize,
    /// Those with a value that is NaN or infinite.
    pub non_finite: Vec<LostTensor>,
    /// How large all of them are.
    pub size_bytes: u64,
    /// Whether some could not be read.
    pub is_partial: bool,
}

impl ReadTensors {
    /// Whether all were read, and are finite.
    #[must_use]
    pub fn are_finite(&self) -> bool {
        self.finite > 0 && self.non_finite.is_empty() && !self.is_partial
    }

    /// Whether so many are not finite that it is what was learned, and no buffer.
    fn are_lost(&self) -> bool {
        !self.non_finite.is_empty() && self.non_finite.len() >= self.finite
    }

    /// Whether a tensor is as large a part as weights are, and lost as they are: figures that a script keeps beside its weights may be NaN too.
    fn may_be_weights(&self, tensor: &LostTensor) -> bool {
        tensor.is_mostly_nan && tensor.size_bytes.saturating_mul(WEIGHTS_PART) >= self.size_bytes
    }

    fn has(&self, tensor: &LostTensor) -> bool {
        self.non_finite.iter().any(|other| (other.file, &other.name) == (tensor.file, &tensor.name))
    }
}

/// A checkpoint whose values were read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadCheckpoint {
    /// Its step as it names it.
    pub step: Step,
    /// By which step it is judged.
    pub judged: Judged,
    /// Whether the losses are of the attempt that wrote it.
    pub is_own: bool,
    /// What was read.
    pub tensors: ReadTensors,
}

/// Why a checkpoint is unsafe by the losses; none: it is not. Losses that were not finite say nothing where the values in it are.
#[must_use]
pub fn judge(judged: Judged, losses: &LossRecord, tensors: &ReadTensors) -> Option<UnsafeEvidence> {
    losses.by_losses(judged, tensors.are_finite())
}

/// Why the first of these checkpoints, newest first, is unsafe by its values; none: it is not. Values that are not finite may be those of a buffer, which
/// may hold any bits, or of a figure that the script keeps: they speak against it where the losses did before, where most tensors have them, or where a
/// large tensor was finite in an older one and has no number left.
#[must_use]
pub fn judge_values(newest_first: &[ReadCheckpoint], losses: &LossRecord) -> Option<UnsafeEvidence> {
    let (newest, older) = newest_first.split_first()?;
    let lost = &newest.tensors.non_finite;
    let weights = || lost.iter().filter(|tensor| newest.tensors.may_be_weights(tensor));
    let was_finite =
        older.iter().filter(|one| one.tensors.finite > 0 && !one.tensors.is_partial).find_map(|one| {
            let tensor = weights().find(|tensor| !one.tensors.has(tensor))?;
            Some((tensor, format!("it was finite in the checkpoint of step {}", one.step)))
        });
    let (tensor, because) = was_finite.or_else(|| {
        let because = if losses.was_bad_by(newest.judged.step) {
            "losses or gradients before it were not finite"
        } else if newest.tensors.are_lost() {
            "most of its tensors are so"
        } else {
            return None;
        };
        Some((lost.first()?, because.to_owned()))
    })?;
    Some(UnsafeEvidence {
        why: format!("its tensor `{}` holds {}, and {because}", tensor.name, tensor.value),
        found_by: TENSORS.into(),
        first_step: None,
        value: Some(tensor.value.clone()),
        of: Some(tensor.name.clone()),
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

    /// Whether finite values in a checkpoint show that it is not of an episode of values that were not finite: the loss was as good as before again. What
    /// was saved before the first of them need not be.
    fn is_cleared_by_values(&self, episode: &Episode, judged: Judged) -> bool {
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
            losses.unsafe_at(losses.judged(step, reached).step).is_some()
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
        let found = judge(Judged::own(60), &hidden(46..101), &ReadTensors::default()).unwrap();
        assert_eq!((found.of.as_deref(), found.first_step), (Some("grad_norm"), Some(46)));
        assert_eq!(judge_values(&[read(40, &["buffer"], 9)], &hidden(46..101)), None);
        assert_eq!(judge(Judged::own(60), &hidden(46..50), &ReadTensors::default()), None);
        let evidence = judge_values(&[read(60, &["w"], 9)], &hidden(46..50)).unwrap();
        assert_eq!(evidence.found_by, "tensors");
    }

    /// Proves that a divergence which nothing recorded shows lets the values in a checkpoint of any step decide, and that finite values are no harm.
    #[test]
    fn a_divergence_that_is_not_recorded_lets_the_values_decide() {
        let nan = [read(4, &["layer.weight"], 9)];
        let mut losses = record(9, |_| (1.0, None));
        assert_eq!(judge_values(&nan, &losses), None, "a buffer may hold any bits");
        losses.doubt();
        assert_eq!(judge_values(&nan, &losses).unwrap().found_by, "tensors");
        assert_eq!(judge_values(&[read(4, &[], 9)], &losses), None);
        assert!(!losses.has_episodes());
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

    /// Proves that the beginning of another training in the same script, whose steps begin again, makes no checkpoint unsafe, also after one that was lost,
    /// and that a reward beside the loss says that it need not fall.
    #[test]
    fn another_training_of_the_script_is_judged_by_itself() {
        let grid = |first: fn(u64) -> f64, second: fn(u64) -> f64, beside: &str| {
            let mut losses = LossRecord::new(SAFE_AFTER, true);
            for (step, loss) in
                (1..=80).map(|step| (step, first(step))).chain((1..=80).map(|step| (step, second(step))))
            {
                losses.take(0, beside, step, 1.0);
                losses.take(0, "loss", step, loss);
                losses.take_finding(Detector::LossSpike);
            }
            losses.finish();
            unsafe_steps(&losses, &[40, 80])
        };
        let slow: fn(u64) -> f64 = |step| 6.7 * 0.998_f64.powf(step as f64);
        let fast: fn(u64) -> f64 = |step| 6.7 * 0.8_f64.powf(step as f64);
        assert_eq!(grid(fast, slow, "rows"), NONE);
        assert_eq!(grid(|step| if step > 20 { NAN } else { 3.0 }, slow, "rows"), NONE);
        assert_eq!(grid(fast, |step| if step > 50 { NAN } else { 3.0 }, "rows"), [80]);
        let back: fn(u64) -> f64 = |step| if step > 40 { 6.7 } else { 6.7 * 0.8_f64.powf(step as f64) };
        assert_eq!(grid(slow, back, "rows"), [80]);
        assert_eq!(grid(slow, back, "reward"), NONE);
    }

    /// A checkpoint of which so many tensors are finite, and these are not.
    fn read(step: Step, lost: &[&str], finite: usize) -> ReadCheckpoint {
        let tensor = |name: &&str| LostTensor {
            file: 0,
            name: (*name).into(),
            value: "NaN".into(),
            size_bytes: 100,
            is_mostly_nan: *name != "figures",
        };
        let non_finite = lost.iter().map(tensor).collect();
        let tensors = ReadTensors { finite, non_finite, size_bytes: 1_000, is_partial: false };
        ReadCheckpoint { step, judged: Judged::own(step), is_own: true, tensors }
    }

    /// Proves that the losses count without values, that those of any rank do, and that only the likeliest of several do.
    #[test]
    fn any_rank_counts() {
        let unread = ReadTensors::default();
        let mut losses = record(100, |_| (1.0, None));
        assert_eq!(judge(Judged::own(50), &losses, &unread), None);
        losses.take(3, "loss", 90, NAN);
        let why = judge(Judged::own(95), &losses, &unread).unwrap().why;
        assert!(why.contains("`loss` on rank 3 is NaN from step 90 on"), "{why}");
        let mut named = record(20, |_| (NAN, None));
        named.take(0, "val_loss", 1, NAN);
        named.take(0, "loss", 21, NAN);
        assert!(judge(Judged::own(21), &named, &unread).is_some());
    }

    /// Proves what values that are not finite say: of a buffer, and of figures beside the weights, nothing while the training goes well, and that the
    /// checkpoint is unsafe after losses that were bad, where a large tensor was finite before, and where most tensors are so.
    #[test]
    fn values_that_are_not_finite_are_of_weights_or_of_a_buffer() {
        let finite = record(100, |_| (1.0, None));
        let unsafe_by = |copies: &[ReadCheckpoint], losses: &LossRecord| {
            judge_values(copies, losses).map(|found| found.why.split_once(", and ").unwrap().1.to_owned())
        };
        let buffer = |step| read(step, &["mask"], 9);
        assert_eq!(unsafe_by(&[read(50, &[], 9)], &finite), None);
        assert_eq!(unsafe_by(&[buffer(50)], &finite), None);
        assert_eq!(unsafe_by(&[buffer(100), buffer(90)], &finite), None, "it is so in the one before too");
        assert_eq!(unsafe_by(&[buffer(100)], &LossRecord::new(SAFE_AFTER, true)), None, "no loss at all");
        assert_eq!(unsafe_by(&[read(50, &["figures"], 9), read(40, &[], 9)], &finite), None);
        let mut small = read(50, &["auc"], 9);
        small.tensors.non_finite[0].size_bytes = 4;
        assert_eq!(unsafe_by(&[small, read(40, &[], 9)], &finite), None);
        let was_finite = Some("it was finite in the checkpoint of step 40".into());
        assert_eq!(unsafe_by(&[read(50, &["mask", "w"], 9), buffer(40)], &finite), was_finite);
        assert_eq!(unsafe_by(&[buffer(60), buffer(50), read(40, &[], 9)], &finite), was_finite);
        let mut partly = read(40, &[], 3);
        partly.tensors.is_partial = true;
        assert_eq!(unsafe_by(&[buffer(50), partly], &finite), None);
        let most = Some("most of its tensors are so".into());
        assert_eq!(unsafe_by(&[read(50, &["w", "b"], 1), read(40, &["w", "b"], 1)], &finite), most);
        let recovered = record(200, |step| (if step == 20 { NAN } else { 1.0 }, None));
        let were_bad = Some("losses or gradients before it were not finite".into());
        assert_eq!(unsafe_by(&[buffer(150)], &recovered), were_bad);
        assert_eq!(unsafe_by(&[buffer(10)], &recovered), None);
    }

    fn finite_values() -> ReadTensors {
        read(0, &[], 3).tensors
    }

    /// Proves that a checkpoint is judged by the loss of the next step where every step has one, that values which are finite clear it of a NaN there and
    /// of nothing else, and that nothing is said where losses are recorded more seldom or count something else.
    #[test]
    fn a_checkpoint_is_of_what_the_next_loss_shows() {
        let unread = ReadTensors::default();
        let nan = record(80, |step| (if step > 60 { NAN } else { 1.0 }, None));
        assert!(judge(Judged::own(60), &nan, &unread).is_some());
        assert_eq!(judge(Judged::own(59), &nan, &unread), None);
        assert_eq!(judge(Judged { step: 60, is_own_count: false }, &nan, &unread), None);
        assert!(nan.may_be_cleared(Judged::own(60)) && !nan.may_be_cleared(Judged::own(70)));
        assert!(nan.may_yet_be_cleared(Judged::own(60)) && !nan.may_yet_be_cleared(Judged::own(70)));
        assert_eq!(judge(Judged::own(60), &nan, &finite_values()), None);
        assert!(judge(Judged::own(61), &nan, &finite_values()).is_some());
        let mut sparse = LossRecord::new(SAFE_AFTER, true);
        (1..=8).for_each(|print| sparse.take(0, "loss", print * 10, if print > 6 { NAN } else { 1.0 }));
        assert_eq!(judge(Judged::own(69), &sparse, &unread), None);
        let mut lost =
            record(300, |step| (if step > 150 { 2.3 } else { 2.3 * 0.97_f64.powf(step as f64) }, None));
        lost.finish();
        assert!(judge(Judged::own(150), &lost, &finite_values()).is_some());
        assert_eq!(judge(Judged::own(149), &lost, &unread), None);
    }

    /// Proves that a NaN whose update was left out, as finite values show, is over where the loss was as good as before again, and that it is not where the
    /// loss is higher, not finite to the end, or what speaks against the checkpoint is another thing; and how it is said.
    #[test]
    fn finite_values_end_an_episode_of_losses_that_are_not() {
        let falls = |step: u64| 1.0 / step as f64;
        let of = |at: &dyn Fn(u64) -> f64| record(90, |step| (at(step), None));
        let mut left_out = of(&|step| if step == 41 { NAN } else { falls(step) });
        assert!(left_out.may_be_cleared(Judged::own(50)));
        let why = judge(Judged::own(50), &left_out, &ReadTensors::default()).unwrap().why;
        assert!(why.starts_with("`loss` is NaN at step 41 (1 value), and"), "{why}");
        assert_eq!(judge(Judged::own(50), &left_out, &finite_values()), None);
        left_out.clear_by_values(Judged::own(50));
        assert_eq!(unsafe_steps(&left_out, &[40, 45, 50, 90]), [45], "later ones need not be read");
        let many = of(&|step| if (40..55).contains(&step) { NAN } else { falls(step) });
        let why = judge(Judged::own(60), &many, &ReadTensors::default()).unwrap().why;
        assert!(why.starts_with("`loss` is NaN from step 40 to 54 (15 values), and"), "{why}");
        assert_eq!(judge(Judged::own(60), &many, &finite_values()), None);
        let higher = of(&|step| {
            if step == 41 {
                NAN
            } else if step > 41 {
                1.0
            } else {
                falls(step)
            }
        });
        assert!(judge(Judged::own(60), &higher, &finite_values()).is_some());
        let lasts = of(&|step| if step >= 41 { NAN } else { falls(step) });
        assert!(judge(Judged::own(60), &lasts, &finite_values()).is_some());
        let finite_again = of(&|step| if step == 89 { NAN } else { falls(step) });
        assert!(
            finite_again.may_yet_be_cleared(Judged::own(90)) && !finite_again.may_be_cleared(Judged::own(90))
        );
        let once_more = of(&|step| if step == 41 || step == 89 { NAN } else { falls(step) });
        assert!(judge(Judged::own(60), &once_more, &finite_values()).is_some());
    }

    /// Proves that values that were lost count for what was computed from there on, beside the losses.
    #[test]
    fn lost_values_count_beside_losses() {
        let mut losses = LossRecord::new(SAFE_AFTER, true);
        assert_eq!(losses.unsafe_at(100), None);
        let evidence = judge_values(&[read(80, &["w"], 0)], &losses).unwrap();
        losses.take_lost_values(Judged::own(80), &evidence);
        losses.take_lost_values(Judged::own(90), &evidence);
        assert_eq!(unsafe_steps(&losses, &[79, 80, 100]), [80, 100]);
        assert!(!losses.has_episodes());
    }
}
