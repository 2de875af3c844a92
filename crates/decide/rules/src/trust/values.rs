//! What the values in a checkpoint say, beside the losses.

use trackway_core::{Step, UnsafeEvidence};

use super::{JudgedStep, LossRecord, NON_FINITE};

/// The name of the look at the values in a checkpoint.
pub const TENSORS: &str = "tensors";
/// A smaller part of a checkpoint than one in so many is not taken for weights.
const WEIGHTS_PART: u64 = 50;

/// A tensor with values that are not finite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostTensor {
    /// Which of the files of the checkpoint it is in.
    pub file: usize,
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

    /// Whether a tensor is as large a part as weights are, and lost as they are: figures that a script keeps beside its
    /// weights may be NaN too.
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
    /// The same step in the count of the losses, and whether the checkpoint counts as they do.
    pub judged: JudgedStep,
    /// Whether the losses are of the attempt that wrote it.
    pub is_own: bool,
    pub tensors: ReadTensors,
}

/// Why a checkpoint is unsafe by the losses; none: it is not. Losses that were not finite say nothing where the values in it are.
#[must_use]
pub fn judge(judged: JudgedStep, losses: &LossRecord, tensors: &ReadTensors) -> Option<UnsafeEvidence> {
    losses.by_losses(judged, tensors.are_finite())
}

/// Why the first of these checkpoints, newest first, is unsafe by its values; none: it is not. Values that are not
/// finite may be those of a buffer, which may hold any bits, or of a figure that the script keeps: they speak against
/// it where the losses did before, where most tensors have them, or where a large tensor was finite in an older one and
/// has no number left.
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

impl LossRecord {
    /// Whether only losses that are not finite speak against a checkpoint, so that the values in it may show that the
    /// updates were left out.
    #[must_use]
    pub fn may_be_cleared(&self, judged: JudgedStep) -> bool {
        self.against(judged).all(|(_, curve, episode)| curve.is_cleared_by_values(episode, judged))
    }

    /// The same while more is recorded: a loss that is finite again may be as good as before soon.
    #[must_use]
    pub fn may_yet_be_cleared(&self, judged: JudgedStep) -> bool {
        self.against(judged).all(|(_, curve, episode)| {
            let is_finite_again = episode.found_by == NON_FINITE && curve.since.0 > 0;
            is_finite_again || curve.is_cleared_by_values(episode, judged)
        })
    }

    /// The values in a checkpoint are all finite: what only values could show is over, and checkpoints from there on are safe.
    pub fn clear_by_values(&mut self, judged: JudgedStep) {
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
    pub fn take_lost_values(&mut self, judged: JudgedStep, evidence: &UnsafeEvidence) {
        let is_earlier = self.lost_values.as_ref().is_none_or(|(step, _)| judged.step < *step);
        if is_earlier {
            self.lost_values = Some((judged.step, evidence.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::SAFE_AFTER;
    use crate::trust::tests::{NAN, record, unsafe_steps};

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
        ReadCheckpoint { step, judged: JudgedStep::own(step), is_own: true, tensors }
    }

    fn finite_values() -> ReadTensors {
        read(0, &[], 3).tensors
    }

    /// Proves that gradients that are not finite are heard where the trainer hides the loss: many in a row alone, a few
    /// with the values in the checkpoint, and that a short row with finite values, as a search for a scale leaves it,
    /// does no harm.
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
        let found = judge(JudgedStep::own(60), &hidden(46..101), &ReadTensors::default()).unwrap();
        assert_eq!((found.of.as_deref(), found.first_step), (Some("grad_norm"), Some(46)));
        assert_eq!(judge_values(&[read(40, &["buffer"], 9)], &hidden(46..101)), None);
        assert_eq!(judge(JudgedStep::own(60), &hidden(46..50), &ReadTensors::default()), None);
        let evidence = judge_values(&[read(60, &["w"], 9)], &hidden(46..50)).unwrap();
        assert_eq!(evidence.found_by, "tensors");
    }

    /// Proves that a divergence which nothing recorded shows lets the values in a checkpoint of any step decide, and
    /// that finite values are no harm.
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

    /// Proves that the losses count without values, that those of any rank do, and that only the likeliest of several do.
    #[test]
    fn any_rank_counts() {
        let unread = ReadTensors::default();
        let mut losses = record(100, |_| (1.0, None));
        assert_eq!(judge(JudgedStep::own(50), &losses, &unread), None);
        losses.take(3, "loss", 90, NAN);
        let why = judge(JudgedStep::own(95), &losses, &unread).unwrap().why;
        assert!(why.contains("`loss` on rank 3 is NaN from step 90 on"), "{why}");
        let mut named = record(20, |_| (NAN, None));
        named.take(0, "val_loss", 1, NAN);
        named.take(0, "loss", 21, NAN);
        assert!(judge(JudgedStep::own(21), &named, &unread).is_some());
    }

    /// Proves what values that are not finite say: of a buffer, and of figures beside the weights, nothing while the
    /// training goes well, and that the checkpoint is unsafe after losses that were bad, where a large tensor was
    /// finite before, and where most tensors are so.
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

    /// Proves that a checkpoint is judged by the loss of the next step where every step has one, that values which are
    /// finite clear it of a NaN there and of nothing else, and that nothing is said where losses are recorded more
    /// seldom or count something else.
    #[test]
    fn a_checkpoint_is_of_what_the_next_loss_shows() {
        let unread = ReadTensors::default();
        let nan = record(80, |step| (if step > 60 { NAN } else { 1.0 }, None));
        assert!(judge(JudgedStep::own(60), &nan, &unread).is_some());
        assert_eq!(judge(JudgedStep::own(59), &nan, &unread), None);
        assert_eq!(judge(JudgedStep { step: 60, is_own_count: false }, &nan, &unread), None);
        assert!(nan.may_be_cleared(JudgedStep::own(60)) && !nan.may_be_cleared(JudgedStep::own(70)));
        assert!(nan.may_yet_be_cleared(JudgedStep::own(60)) && !nan.may_yet_be_cleared(JudgedStep::own(70)));
        assert_eq!(judge(JudgedStep::own(60), &nan, &finite_values()), None);
        assert!(judge(JudgedStep::own(61), &nan, &finite_values()).is_some());
        let mut sparse = LossRecord::new(SAFE_AFTER, true);
        (1..=8).for_each(|print| sparse.take(0, "loss", print * 10, if print > 6 { NAN } else { 1.0 }));
        assert_eq!(judge(JudgedStep::own(69), &sparse, &unread), None);
        let mut lost =
            record(300, |step| (if step > 150 { 2.3 } else { 2.3 * 0.97_f64.powf(step as f64) }, None));
        lost.finish();
        assert!(judge(JudgedStep::own(150), &lost, &finite_values()).is_some());
        assert_eq!(judge(JudgedStep::own(149), &lost, &unread), None);
    }

    /// Proves that a NaN whose update was left out, as finite values show, is over where the loss was as good as before
    /// again, and that it is not where the loss is higher, not finite to the end, or what speaks against the checkpoint
    /// is another thing; and how it is said.
    #[test]
    fn finite_values_end_an_episode_of_losses_that_are_not() {
        let falls = |step: u64| 1.0 / step as f64;
        let of = |at: &dyn Fn(u64) -> f64| record(90, |step| (at(step), None));
        let mut left_out = of(&|step| if step == 41 { NAN } else { falls(step) });
        assert!(left_out.may_be_cleared(JudgedStep::own(50)));
        let why = judge(JudgedStep::own(50), &left_out, &ReadTensors::default()).unwrap().why;
        assert!(why.starts_with("`loss` is NaN at step 41 (1 value), and"), "{why}");
        assert_eq!(judge(JudgedStep::own(50), &left_out, &finite_values()), None);
        left_out.clear_by_values(JudgedStep::own(50));
        assert_eq!(unsafe_steps(&left_out, &[40, 45, 50, 90]), [45], "later ones need not be read");
        let many = of(&|step| if (40..55).contains(&step) { NAN } else { falls(step) });
        let why = judge(JudgedStep::own(60), &many, &ReadTensors::default()).unwrap().why;
        assert!(why.starts_with("`loss` is NaN from step 40 to 54 (15 values), and"), "{why}");
        assert_eq!(judge(JudgedStep::own(60), &many, &finite_values()), None);
        let higher = of(&|step| {
            if step == 41 {
                NAN
            } else if step > 41 {
                1.0
            } else {
                falls(step)
            }
        });
        assert!(judge(JudgedStep::own(60), &higher, &finite_values()).is_some());
        let lasts = of(&|step| if step >= 41 { NAN } else { falls(step) });
        assert!(judge(JudgedStep::own(60), &lasts, &finite_values()).is_some());
        let finite_again = of(&|step| if step == 89 { NAN } else { falls(step) });
        assert!(
            finite_again.may_yet_be_cleared(JudgedStep::own(90))
                && !finite_again.may_be_cleared(JudgedStep::own(90))
        );
        let once_more = of(&|step| if step == 41 || step == 89 { NAN } else { falls(step) });
        assert!(judge(JudgedStep::own(60), &once_more, &finite_values()).is_some());
    }

    /// Proves that values that were lost count for what was computed from there on, beside the losses.
    #[test]
    fn lost_values_count_beside_losses() {
        let mut losses = LossRecord::new(SAFE_AFTER, true);
        assert_eq!(losses.unsafe_at(100), None);
        let evidence = judge_values(&[read(80, &["w"], 0)], &losses).unwrap();
        losses.take_lost_values(JudgedStep::own(80), &evidence);
        losses.take_lost_values(JudgedStep::own(90), &evidence);
        assert_eq!(unsafe_steps(&losses, &[79, 80, 100]), [80, 100]);
        assert!(!losses.has_episodes());
    }
}
