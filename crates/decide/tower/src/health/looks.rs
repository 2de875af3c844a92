//! Looks at whole curves when an attempt has ended: what no detector sees while it runs, since it takes the beginning and the end. Each says
//! above it why a healthy run does not show it.

use trackway_core::text::number;
use trackway_core::{Health, HealthFinding};

use super::curve::{Curve, FAR_ABOVE, Part};
use super::names::may_be_of_classes;
use crate::trust::{CHANCE_LEVEL, LOSS_EXPLODED, LOSS_WENT_BACK};

/// Values that a look at a whole curve needs.
const VALUES_MIN: u64 = 20;
/// The fraction of a curve that is its beginning, and its end.
const BEGINNING: f64 = 0.2;
const END: f64 = 0.5;
/// A loss that fell by a smaller fraction than this did not fall; with its noise, by less than [`AT_MOST`].
const FLAT: f64 = 0.01;
const AT_MOST: f64 = 0.03;
/// Classes among which a guess is recognized by the loss alone: with more of them ln C is near to any loss.
const CLASSES_MAX: u32 = 20;
/// How near a loss is to that of a guess.
const NEAR_GUESS: f64 = 0.015;
/// Times the accuracy of a guess from which a model does not guess.
const BETTER_THAN_GUESS: f64 = 1.3;
/// Values of an accuracy that are looked at.
const ACCURACIES_MIN: u64 = 5;
/// Times the first loss that it was in between, if it ends as high as it began.
const EXPLODED_BETWEEN: f64 = 1000.0;
/// Values of a loss that show that it exploded.
const EXPLODED_VALUES_MIN: u64 = 5;
/// Times the first loss that one is at most that begins again at another level, and the part of its first value there below which it has fallen since.
const ANOTHER_LEVEL: f64 = 1000.0;
const FELL_SINCE: f64 = 0.7;
/// The fraction of a loss at the beginning by which it must have fallen before it can go back, and that many standard errors.
const LEARNED: f64 = 0.3;
const LEARNED_ERRORS: f64 = 4.0;
/// The part of the way from the best level to the beginning on which a loss that ends there went back.
const WENT_BACK: f64 = 0.5;
/// The last part of the curve that is looked at for it: this fraction, [`VALUES_MIN`] at least, and there must be that many such parts.
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
    /// The run.
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
fn flat(curve: &Curve) -> Option<(Part, Part)> {
    if curve.count() < VALUES_MIN {
        return None;
    }
    let (begin, end) = (curve.head(BEGINNING), curve.tail(END));
    let (fall, scale) = (begin.mean - end.mean, begin.mean.abs());
    let error = begin.error().hypot(end.error());
    let is_flat = scale > 0.0 && fall < FLAT * scale && fall + 2.0 * error < AT_MOST * scale;
    (is_flat && curve.least_block() > begin.mean - AT_MOST * scale).then_some((begin, end))
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

/// A model that guesses: the loss stays at ln C from the beginning, and no accuracy that was recorded is better than 1/C; or the accuracy itself
/// stays at 1/C. A model that learns leaves both within its first steps, and one that had learned does not begin there.
pub(super) fn chance_level(
    (name, loss): (&str, &Curve),
    accuracies: &[(&str, &Curve)],
) -> Option<HealthFinding> {
    let seen: Vec<(&str, Part)> = accuracies
        .iter()
        .filter(|(_, curve)| curve.count() >= ACCURACIES_MIN)
        .map(|(name, curve)| (*name, curve.tail(END)))
        .collect();
    let (_, end) = flat(loss).filter(|_| may_be_of_classes(name))?;
    let by_loss = (2..=CLASSES_MAX).find(|classes| {
        let guess = f64::from(*classes).ln();
        (end.mean - guess).abs() < NEAR_GUESS * guess
            && seen.iter().all(|(_, part)| part.mean < BETTER_THAN_GUESS / f64::from(*classes))
    })?;
    let beside = seen.first().map(|(name, part)| format!("; `{name}` is {}", number(part.mean)));
    Some(finding(
        CHANCE_LEVEL,
        Health::Broken,
        loss.first.map(|(step, _)| step),
        format!(
            "`{name}` stays at {}, and a guess among {by_loss} classes has {}{}{}",
            number(end.mean),
            number(f64::from(by_loss).ln()),
            beside.unwrap_or_default(),
            loss.which()
        ),
    ))
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
    let began = format!(
        "`{name}` began at {}, was {} at most and is {} at the end{}",
        number(first),
        number(greatest),
        number(end.mean),
        curve.which()
    );
    let (health, evidence) = match another_level(curve) {
        Some((step, value)) => (
            Health::Suspect,
            format!(
                "{began}; it rose to {} at once, at step {step}, and has fallen since: it may be another loss",
                number(value)
            ),
        ),
        None => (Health::Broken, began),
    };
    Some(finding(LOSS_EXPLODED, health, curve.rose.map(|(step, _)| step), evidence))
}

/// Where a loss rose far at once, from as low as it ever began, and from where it has only fallen since: as where a script trains another model. A loss
/// that explodes is higher still, or rises on.
pub(super) fn another_level(curve: &Curve) -> Option<(u64, f64)> {
    let ((_, first), (_, greatest), (step, value)) = (curve.first?, curve.range?, curve.rose?);
    let rose_at_once = curve.before_rise? <= first && greatest <= value && value < ANOTHER_LEVEL * first;
    let (end, newest) = (curve.tail(0.2).mean, curve.tail(0.1).mean);
    (rose_at_once && newest <= end && end < FELL_SINCE * value).then_some((step, value))
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

/// A loss that fell and ends more than half of the way back to where it began, by means of many values: a spike is over by the end, a warm restart
/// comes back, and noise does not move a mean so far. Whether it is all the way back, so that checkpoints are unsafe, is for the record of losses.
pub(super) fn went_back(name: &str, curve: &Curve) -> Option<HealthFinding> {
    let values = VALUES_MIN.max((curve.count() as f64 * LAST_PART) as u64);
    let best = curve.least_of(values).filter(|_| curve.count() >= PARTS_MIN * values)?;
    let (begin, end, newest) = (curve.start, curve.last_values(values), curve.last_values(values / 2));
    let fall = begin.mean - best.mean;
    let error = LEARNED_ERRORS * begin.error().hypot(best.error());
    let has_learned = begin.mean > 0.0 && fall > (LEARNED * begin.mean).max(error);
    let level = best.mean + WENT_BACK * fall;
    let is_back = end.mean - 2.0 * end.error() > level && newest.mean > level;
    (has_learned && is_back).then(|| {
        let evidence = format!(
            "`{name}`, by means of values in a row: {} over the first {}, {} over the best {}, to step {}, and {} over the last {}, to step {}{}",
            number(begin.mean),
            begin.count,
            number(best.mean),
            best.count,
            best.last_step,
            number(end.mean),
            end.count,
            end.last_step,
            curve.which()
        );
        finding(LOSS_WENT_BACK, Health::Suspect, curve.above_since(level), evidence)
    })
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
