//! Whether the level of a curve at its end can be compared with that of its beginning. Another phase, a harder task,
//! longer inputs and a queue that fills raise a loss of a training that goes well, and so does a learning rate that is
//! raised until nothing is learned, to find its range.

use trackway_core::Step;
use trackway_core::text::number;

use super::curve::{Curve, FAR_ABOVE, Part};

/// Blocks since the worst one, at least.
const BLOCKS_MIN: usize = 6;
/// Standard errors by which the last third of them is better than the one before.
const ERRORS: f64 = 3.0;
/// The part of the way to the worst block by which it is better, in what learns to the end; or by which all since then
/// is, and the last third than the first.
const LEARNS_ON: f64 = 0.05;
const REGAINED: f64 = 0.4;
const REGAINED_LATE: f64 = 0.15;
/// The fraction of its first values by which a curve improves where it learns, and by which it is away from them where
/// it is not back there.
const LEARNED: f64 = 0.3;
const NEAR_BEGINNING: f64 = 0.1;
/// The part of that way that each rise at equal distances has.
const PLANNED_RISE: f64 = 0.25;
/// Times the first loss that one is at most that rises at once to another level, and the part of its value there below
/// which it has fallen since.
const ANOTHER_LEVEL: f64 = 1000.0;
const FELL_SINCE: f64 = 0.7;
/// Times the first learning rate that the last one is at least where its range is tested, and times the mean of the first half.
const RANGE: f64 = 1000.0;
const RANGE_OF_HALF: f64 = 10.0;
const RATES_MIN: u64 = 20;
/// Values at the end of a curve of held-out data that are next to its best one, by this part of the way from its first
/// one; and how many it has at least.
const BEST_VALUES: u64 = 3;
const NEXT_TO_BEST: f64 = 0.8;
const HELD_OUT_MIN: u64 = 5;
/// The fraction of the larger of its first and its best value by which it must have improved.
const IMPROVED: f64 = 0.1;

/// From which step on a curve improves from a worse level to its end; none: it does not. `falls`: less of it is better.
pub(super) fn learns_again(curve: &Curve, falls: bool) -> Option<Step> {
    let blocks = curve.blocks();
    let sign = if falls { 1.0 } else { -1.0 };
    let levels: Vec<f64> = blocks.iter().map(|block| sign * block.mean).collect();
    let by_level = |one: &usize, other: &usize| levels[*one].total_cmp(&levels[*other]);
    let best = (0..levels.len()).min_by(by_level)?;
    let worst = (best..levels.len()).max_by(by_level)?;
    let way = levels[worst] - levels[best];
    let improves = improves_to_the_end(&blocks[worst..], way, sign) && !is_back(curve, blocks[best].mean);
    let is_other = improves || rises_by_plan(&levels, way) || (falls && rose_at_once(curve));
    is_other.then(|| curve.first_step_of(worst)).flatten()
}

/// Whether a curve that had improved ends where it began: a model that has nothing left comes back there from any spike.
fn is_back(curve: &Curve, best: f64) -> bool {
    let (begin, end) = (curve.start.mean, curve.tail(0.1).mean);
    (begin - best).abs() > LEARNED * begin.abs() && (begin - end).abs() <= NEAR_BEGINNING * begin.abs()
}

/// Why the level of a curve that improves again cannot be judged.
pub(super) fn began_again((name, curve): (&str, &Curve), falls: bool) -> Option<String> {
    let step = learns_again(curve, falls)?;
    let (went, since) = if falls { ("rose", "fallen") } else { ("fell", "risen") };
    Some(format!(
        "`{name}` {went} by step {step} and has {since} since, as where another phase begins, inputs get longer or a queue fills: whether it got worse cannot be said{}",
        curve.which()
    ))
}

/// Whether the blocks since the worst one improve from third to third, by far enough.
fn improves_to_the_end(since: &[Part], way: f64, sign: f64) -> bool {
    let (third, Some(worst)) = (since.len() / 3, since.first()) else { return false };
    if since.len() < BLOCKS_MIN {
        return false;
    }
    let sum = |blocks: &[Part]| blocks.iter().fold(Part::default(), |sum, block| sum.with(*block));
    let (early, middle, late) =
        (sum(&since[..third]), sum(&since[third..2 * third]), sum(&since[2 * third..]));
    let gain = |from: &Part, to: &Part| sign * (from.mean - to.mean);
    let is_certain = gain(&middle, &late) > ERRORS * middle.error().hypot(late.error());
    let learns_on = gain(&middle, &late) >= LEARNS_ON * way;
    let is_regained = gain(worst, &late) >= REGAINED * way && gain(&early, &late) >= REGAINED_LATE * way;
    is_certain && gain(&early, &middle) > 0.0 && (learns_on || is_regained)
}

/// Rises at equal distances from the beginning to the end, each with a fall after it.
fn rises_by_plan(levels: &[f64], way: f64) -> bool {
    let is_rise = |place: &usize| {
        let (before, level, after) = (levels[place - 1], levels[*place], levels[place + 1]);
        level > before && level > after && level - levels[place - 2] > PLANNED_RISE * way
    };
    let places: Vec<usize> = (2..levels.len().saturating_sub(1)).filter(is_rise).collect();
    let Some(first) = places.first().filter(|_| places.len() > 1) else { return false };
    let ends = places.iter().skip(1).copied().chain([levels.len()]);
    places.iter().zip(ends).all(|(place, end)| (end - place).abs_diff(*first) <= (first / 10).max(1))
}

/// Whether a loss rose far at once, from as low as it ever began, and has only fallen since. One that explodes is
/// higher still, or rises further.
fn rose_at_once(curve: &Curve) -> bool {
    let (Some((_, first)), Some((_, greatest)), Some((_, value)), Some(before)) =
        (curve.first, curve.range, curve.rose, curve.before_rise)
    else {
        return false;
    };
    let (end, newest) = (curve.tail(0.2).mean, curve.tail(0.1).mean);
    let is_level = before <= first && greatest <= value && value < ANOTHER_LEVEL * first;
    is_level && newest <= end && end < FELL_SINCE * value && newest > FAR_ABOVE * first
}

/// Whether a curve of held-out data ends next to its best value, and far from its first one.
pub(super) fn ends_at_its_best(curve: &Curve, falls: bool) -> bool {
    let (Some((_, first)), Some((least, greatest))) = (curve.first, curve.range) else { return false };
    let best = if falls { least } else { greatest };
    let (way, improved) = (best - first, curve.last_values(BEST_VALUES).mean - first);
    let is_far = way.abs() > IMPROVED * best.abs().max(first.abs());
    curve.count() >= HELD_OUT_MIN && is_far && improved / way >= NEXT_TO_BEST
}

/// Where a learning rate rises to the end by factors: a warm-up rises by equal steps, and is over before the end.
pub(super) fn tested_range(rate: &Curve) -> Option<String> {
    let ((_, first), (_, last), (_, greatest)) = (rate.first?, rate.last?, rate.range?);
    let rises = rate.blocks().is_sorted_by(|one, next| one.mean <= next.mean);
    let by_factors = first > 0.0 && last >= RANGE * first && last >= RANGE_OF_HALF * rate.head(0.5).mean;
    (rate.count() >= RATES_MIN && rises && by_factors && last >= greatest).then(|| {
        format!(
            "no level of a loss was judged: the learning rate rises from {} to {} by factors, as where its range is tested",
            number(first),
            number(last)
        )
    })
}
