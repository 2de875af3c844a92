//! Looks at whole curves of scores, of which more is better. Each says above it why a healthy run does not show it.

use trackway_core::text::number;
use trackway_core::{Health, HealthFinding};
use trackway_formats::record::is_rounded_zero;

use super::curve::Curve;
use super::looks::{Ends, finding};
use super::names::training_measure;

/// The name of the look that finds a score which had been high and fell for good.
pub(super) const WENT_BACK_NAME: &str = "score_went_back";
/// The name of the look that finds scores which never change.
pub(super) const UNMOVING: &str = "score_never_moved";
/// Values at the end that are low, and values of the best part; there must be so many such parts.
const VALUES_MIN: u64 = 10;
const PARTS_MIN: u64 = 2;
/// Scores below this are too coarse.
const SCORE_MIN: f64 = 0.1;
/// Standard errors by which the end must be below the best part, which is the best of many.
const ERRORS: f64 = 5.0;
/// The fraction of the best level that was lost: at least, that is suspect by itself, and that leaves next to nothing.
const FELL: f64 = 0.15;
const FELL_FAR: f64 = 0.25;
const LOST: f64 = 0.4;
/// The part of the way back to the first value that is suspect, and that is all of it.
const WENT_BACK: f64 = 0.5;
const BACK: f64 = 0.9;
/// The fraction of the best level by which a score must have risen before it can go back, or shows that something was learned.
const ROSE: f64 = 0.1;
/// Values of a score that never moves.
const UNMOVING_VALUES_MIN: u64 = 20;
/// A score from which on it need not move.
const PERFECT: f64 = 0.99;

/// A score that fell from its best level and stays there to the end, by means of many values: noise does not move a
/// mean so far, a fit by heart costs less, and a warm restart comes back. Broken where it is back at its first value,
/// or has lost a large part of itself.
pub(super) fn went_back(name: &str, curve: &Curve) -> Option<HealthFinding> {
    let ends = Ends::of(curve, (VALUES_MIN, PARTS_MIN), Curve::greatest_of)?;
    let (Ends { best, end, newest }, (_, first)) = (ends, curve.first?);
    let (fall, rise) = (best.mean - end.mean, best.mean - first);
    let level = best.mean - WENT_BACK * fall;
    let error = ERRORS * ends.error();
    if best.mean < SCORE_MIN || fall <= error.max(FELL * best.mean) || newest.mean >= level {
        return None;
    }
    let way = if rise > ROSE * best.mean { fall / rise } else { 0.0 };
    let health = if way >= BACK || fall >= LOST * best.mean {
        Health::Broken
    } else if way >= WENT_BACK || fall >= FELL_FAR * best.mean {
        Health::Suspect
    } else {
        return None;
    };
    let evidence = ends.sentence((name, curve), first);
    Some(finding(WENT_BACK_NAME, health, curve.since(|mean| mean < level), evidence))
}

/// Scores that never change at all, that of the training among them: those of a model that answers the same to every
/// input. One that learns moves, unless it is next to perfect at once, or too small for what is printed of it.
pub(super) fn unmoving(scores: &[(&str, &Curve)]) -> Option<HealthFinding> {
    let seen: Vec<_> = scores.iter().filter(|(_, curve)| curve.count() >= UNMOVING_VALUES_MIN).collect();
    let still = |curve: &Curve| {
        let (least, greatest) = curve.range?;
        let may_move = is_rounded_zero(least) || (PERFECT..=1.0).contains(&least) || least >= 100.0 * PERFECT;
        (least == greatest && !may_move).then_some(least)
    };
    if !seen.iter().all(|(_, curve)| still(curve).is_some()) {
        return None;
    }
    let (name, curve) = seen.into_iter().find(|(name, _)| training_measure(name).is_some())?;
    let evidence = format!(
        "`{name}` is {} at each of {} values, to step {}{}: it never changed",
        number(still(curve)?),
        curve.count(),
        curve.last?.0,
        curve.which()
    );
    Some(finding(UNMOVING, Health::Suspect, curve.first.map(|(step, _)| step), evidence))
}

/// Whether a score ends higher than it began.
pub(super) fn rose(curve: &Curve) -> bool {
    let end = curve.last_values(VALUES_MIN.min(curve.count())).mean;
    curve.first.is_some_and(|(_, first)| end - first > ROSE * end.abs())
}
