//! Looks at whole curves when an attempt has ended: what no detector sees while it runs, since it takes the beginning
//! and the end. Each says above it why a healthy run does not show it.

use trackway_core::text::number;
use trackway_core::{Health, HealthFinding};

use super::curve::{Curve, FAR_ABOVE, Part};
use super::level::{Body, is_never_below, starts_above};
use crate::trust::{LOSS_EXPLODED, LOSS_WENT_BACK};

/// Values that a look at a whole curve needs.
pub(super) const VALUES_MIN: u64 = 20;
/// The fraction of a curve that is its beginning, and its end.
const BEGINNING: f64 = 0.2;
const END: f64 = 0.5;
/// A loss that fell by a smaller fraction than this did not fall; with its noise, by less than [`AT_MOST`].
const FLAT: f64 = 0.01;
const AT_MOST: f64 = 0.03;
/// Times the first loss that it was in between, if it ends as high as it began.
const EXPLODED_BETWEEN: f64 = 1000.0;
/// Times the rest of a loss that its first value is above it where it had exploded before, and the fraction by which
/// one falls that learns after that.
const BEGAN_ABOVE: f64 = 1e6;
const BEGAN_FALLS: f64 = 0.1;
/// Values of a loss that show that it exploded.
const EXPLODED_VALUES_MIN: u64 = 5;
/// The fraction of a loss at the beginning by which it must have fallen before it can go back, and that many standard errors.
const LEARNED: f64 = 0.3;
const LEARNED_ERRORS: f64 = 4.0;
/// The part of the way from the best level to the beginning on which a loss that ends there went back.
const WENT_BACK: f64 = 0.5;
/// The last part of a curve that is compared with its best one: this fraction, or so many values if that is more; of a
/// loss there must be so many parts.
const LAST_PART: f64 = 0.05;
const PARTS_MIN: u64 = 3;
/// By how much accuracy in training is above that on held-out data.
const GAP: f64 = 0.15;
/// Times the training loss that a validation loss is.
const LOSS_GAP: f64 = 100.0;
/// Times the last loss of every earlier good run.
const UNLIKE: f64 = 3.0;

/// Where an earlier good run of the name ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierEnd {
    pub run: String,
    /// The last step at which it recorded the metric.
    pub last_step: u64,
    /// The value there.
    pub last_value: f64,
}

pub(super) fn finding(
    found_by: &str,
    health: Health,
    first_step: Option<u64>,
    evidence: String,
) -> HealthFinding {
    HealthFinding { found_by: found_by.into(), health, first_step, evidence }
}

/// Beginning and end of a loss that did not fall, noise included; none: it fell, or the noise is too large to say.
pub(super) fn flat(curve: &Curve) -> Option<(Part, Part)> {
    if curve.count() < VALUES_MIN {
        return None;
    }
    let (begin, end) = (curve.head(BEGINNING), curve.tail(END));
    let (fall, scale) = (begin.mean - end.mean, begin.mean.abs());
    let error = begin.error().hypot(end.error());
    let is_flat = scale > 0.0 && fall < FLAT * scale && fall + 2.0 * error < AT_MOST * scale;
    let (spread, margin) = (end.spread(), AT_MOST * scale);
    let learned_at_once = starts_above(curve, end.mean, spread) > margin;
    let is_level = !learned_at_once && is_never_below(curve, begin.mean - margin, spread);
    (is_flat && is_level).then_some((begin, end))
}

/// A loss that stays where it began. A fine-tuned model may begin where it ends, so it is a warning.
pub(super) fn unlearned(name: &str, curve: &Curve) -> Option<HealthFinding> {
    let (begin, end) = flat(curve)?;
    let evidence = format!(
        "`{name}` began at {} and is {} at the end, over {} values to step {}{}",
        number(begin.mean),
        number(end.mean),
        curve.count(),
        end.last_step,
        curve.which()
    );
    Some(finding("plateau", Health::Suspect, curve.first.map(|(step, _)| step), evidence))
}

/// A loss that is far above its first value at the end, or that was and ends as high as it began. Losses that are negative at some step, as
/// those of policies, are left out, and so is one that begins next to nothing.
pub(super) fn exploded(name: &str, curve: &Curve) -> Option<HealthFinding> {
    let ((_, first), (least, greatest)) = (curve.first?, curve.range?);
    let end = curve.tail(0.1);
    if curve.count() < EXPLODED_VALUES_MIN || least < 0.0 || first <= 0.0 {
        return None;
    }
    let is_above = end.mean > FAR_ABOVE * first;
    let is_no_better = greatest > EXPLODED_BETWEEN * first && end.mean > 0.9 * first;
    if !is_above && !is_no_better {
        return None;
    }
    let evidence = format!(
        "`{name}` began at {}, was {} at most and is {} at the end{}",
        number(first),
        number(greatest),
        number(end.mean),
        curve.which()
    );
    Some(finding(LOSS_EXPLODED, Health::Broken, curve.rose.map(|(step, _)| step), evidence))
}

/// A loss whose first values are so far above all others that none is of a model which begins, and which does not fall
/// from then on: it had exploded before it was first recorded. What learns at once from such a value is right at once,
/// or falls on.
pub(super) fn began_exploded(name: &str, curve: &Curve) -> Option<HealthFinding> {
    let ((step, first), (least, _), body) = (curve.first?, curve.range?, Body::of(curve));
    let (begin, end) = (body.begin.mean, body.end.mean);
    let falls = body.fall() > (BEGAN_FALLS * begin).max(LEARNED_ERRORS / 2.0 * body.error());
    if curve.count() < VALUES_MIN || least <= 0.0 || first <= BEGAN_ABOVE * begin || falls {
        return None;
    }
    let evidence = format!(
        "`{name}` began at {}, and is {} at the end without a fall since its next values, over {} values{}",
        number(first),
        number(end),
        curve.count(),
        curve.which()
    );
    Some(finding(LOSS_EXPLODED, Health::Suspect, Some(step), evidence))
}

/// Whether a curve ends lower than it began, for certain.
pub(super) fn fell(curve: &Curve) -> bool {
    let (begin, end) = (curve.start, curve.last_values(curve.start.count));
    let fall = begin.mean - end.mean;
    // What falls has a wide beginning.
    let error = LEARNED_ERRORS / 2.0 * begin.error().hypot(end.error());
    let is_long = curve.count() >= 2 * begin.count;
    is_long && begin.mean > 0.0 && fall > (LEARNED * begin.mean).max(error)
}

/// A loss that fell and ends more than half of the way back to where it began, by means of many values: a spike is over
/// by the end, a warm restart comes back, and noise does not move a mean so far. Whether it is all the way back, so
/// that checkpoints are unsafe, is for the record of losses.
pub(super) fn went_back(name: &str, curve: &Curve) -> Option<HealthFinding> {
    let ends = Ends::of(curve, (VALUES_MIN, PARTS_MIN), Curve::least_of)?;
    let (begin, Ends { best, end, newest }) = (curve.start, ends);
    let fall = begin.mean - best.mean;
    let error = LEARNED_ERRORS * begin.error().hypot(best.error());
    let has_learned = begin.mean > 0.0 && fall > (LEARNED * begin.mean).max(error);
    let level = best.mean + WENT_BACK * fall;
    let is_back = end.mean - 2.0 * end.error() > level && newest.mean > level;
    let evidence = ends.sentence((name, curve), begin.mean);
    let first_step = curve.since(|mean| mean > level);
    (has_learned && is_back).then(|| finding(LOSS_WENT_BACK, Health::Suspect, first_step, evidence))
}

/// The best values in a row of a curve, the last ones, and the newest half of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub best: Part,
    pub end: Part,
    pub newest: Part,
}

impl Ends {
    /// `values` of each at least, in a curve that has so many times as many.
    pub fn of(
        curve: &Curve,
        (values, parts): (u64, u64),
        best_of: impl Fn(&Curve, u64) -> Option<Part>,
    ) -> Option<Self> {
        let values = values.max((curve.count() as f64 * LAST_PART) as u64);
        let best = best_of(curve, values).filter(|_| curve.count() >= parts * values)?;
        Some(Self { best, end: curve.last_values(values), newest: curve.last_values(values.div_ceil(2)) })
    }

    /// The standard error of how far the end is from the best, as if values had the same noise in both: those of a low
    /// accuracy seem to have less.
    pub fn error(&self) -> f64 {
        let spread = self.best.spread_with(&self.end);
        spread * (1.0 / self.best.count as f64 + 1.0 / self.end.count as f64).sqrt()
    }

    /// What a curve did between its beginning and its end.
    pub fn sentence(&self, (name, curve): (&str, &Curve), began: f64) -> String {
        let Self { best, end, .. } = self;
        format!(
            "`{name}` began at {}; by means of values in a row it was {} over the best {}, to step {}, and is {} over the last {}, to step {}{}",
            number(began),
            number(best.mean),
            best.count,
            best.last_step,
            number(end.mean),
            end.count,
            end.last_step,
            curve.which()
        )
    }
}

/// Training far better than held-out data: a model that knows its examples by heart.
pub(super) fn gap(
    (train, held_out): ((&str, &Curve), (&str, &Curve)),
    is_loss: bool,
) -> Option<HealthFinding> {
    let ((train_name, train), (held_out_name, held_out)) = (train, held_out);
    let (train, (step, held_out)) = (train.last?.1, held_out.last?);
    let is_far = match is_loss {
        true => train > 0.0 && held_out > LOSS_GAP * train,
        false => (0.0..=1.0).contains(&held_out) && train <= 1.0 && train - held_out >= GAP,
    };
    is_far.then(|| {
        let evidence = format!(
            "`{train_name}` is {} and `{held_out_name}` {} at the end",
            number(train),
            number(held_out)
        );
        finding("generalization_gap", Health::Suspect, Some(step), evidence)
    })
}

/// A loss far above that of every earlier good run of the name, after as many steps.
pub(super) fn unlike_earlier(name: &str, curve: &Curve, earlier: &[EarlierEnd]) -> Option<HealthFinding> {
    let (step, _) = curve.last?;
    let end = curve.tail(0.1).mean;
    let as_long: Vec<&EarlierEnd> = earlier
        .iter()
        .filter(|one| one.last_value > 0.0 && step * 10 >= one.last_step * 9 && end > 0.0)
        .collect();
    let highest = as_long.into_iter().max_by(|one, other| one.last_value.total_cmp(&other.last_value))?;
    (end > UNLIKE * highest.last_value).then(|| {
        let evidence = format!(
            "`{name}` is {} at step {step}, and was {} at step {} of {}",
            number(end),
            number(highest.last_value),
            highest.last_step,
            highest.run
        );
        finding("unlike_earlier_runs", Health::Suspect, None, evidence)
    })
}
