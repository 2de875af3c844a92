//! Points to draw.

use trackway_results::assessment::{CURVE_POINTS_MAX, CalibrationBin, Curves, Point};

use crate::metrics::ratio::Ratio;
use crate::metrics::rows::{Content, Items};
use crate::metrics::scoring::Scoring;
use crate::metrics::{CALIBRATION_BINS, bin_of};

/// Of two classes with scores; nothing for anything else.
pub(crate) fn curves(items: &Items, scoring: &Scoring, confidence: f64) -> Curves {
    let Content::Classes(rows) = &items.content else { return Curves::default() };
    let (Some(ranked), Some(scores), Some(positive)) = (scoring.ranked.first(), &rows.score, rows.positive)
    else {
        return Curves::default();
    };
    let steps = ranked.steps();
    let Some(&(positives, negatives)) = steps.last() else { return Curves::default() };
    let share = |count: u64, of: u64| if of > 0 { count as f64 / of as f64 } else { 0.0 };
    let mut roc = vec![Point { x: 0.0, y: 0.0 }];
    roc.extend(steps.iter().map(|step| Point { x: share(step.1, negatives), y: share(step.0, positives) }));
    let precision =
        |step: &(u64, u64)| Point { x: share(step.0, positives), y: share(step.0, step.0 + step.1) };
    let calibration = match rows.are_probabilities {
        true => calibration(items, scores, |item| rows.label[item] == positive, confidence),
        false => Vec::new(),
    };
    Curves {
        calibration,
        roc: thinned(roc),
        precision_recall: thinned(steps.iter().map(precision).collect()),
    }
}

/// At most [`CURVE_POINTS_MAX`] points, the ends among them, as evenly along the curve as its points allow.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    if points.len() <= CURVE_POINTS_MAX {
        return points;
    }
    let apart = |pair: &[Point]| (pair[0].x - pair[1].x).abs() + (pair[0].y - pair[1].y).abs();
    let length: f64 = points.windows(2).map(apart).sum();
    let step = length / (CURVE_POINTS_MAX - 2) as f64;
    let (mut kept, mut gone, mut next) = (vec![points[0]], 0.0, step);
    for pair in points.windows(2) {
        gone += apart(pair);
        if gone >= next && kept.len() < CURVE_POINTS_MAX - 1 {
            kept.push(pair[1]);
            next = gone + step;
        }
    }
    kept.extend(points.last().filter(|last| kept.last() != Some(last)));
    kept
}

/// The bins that have rows.
fn calibration(
    items: &Items,
    scores: &[f64],
    is_positive: impl Fn(usize) -> bool,
    confidence: f64,
) -> Vec<CalibrationBin> {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); CALIBRATION_BINS];
    scores
        .iter()
        .zip(0..)
        .filter(|(score, _)| !score.is_nan())
        .for_each(|(score, item)| members[bin_of(*score)].push(item));
    let width = 1.0 / CALIBRATION_BINS as f64;
    let bin = |(bin, members): (usize, &Vec<u32>)| {
        let hits = members.iter().map(|item| f64::from(u8::from(is_positive(*item as usize)))).collect();
        let ratio = Ratio::share("observed", hits);
        let predicted = members.iter().map(|item| scores[*item as usize]).sum::<f64>() / members.len() as f64;
        let part = items.subset(members);
        let observed = ratio.estimate(&[], &[], part.units(), confidence)?;
        let from = bin as f64 * width;
        Some(CalibrationBin { from, to: from + width, predicted, observed })
    };
    members.iter().enumerate().filter(|(_, members)| !members.is_empty()).filter_map(bin).collect()
}
