//! Each class by itself, and all of them against each other.

use trackway_core::MissingPredictions;
use trackway_results::assessment::{ClassMetrics, Confusion};
use trackway_statistics::wilson;

use crate::metrics::class_ratios;
use crate::metrics::pixels::Pixels;
use crate::metrics::rows::{Classes, Content, Items};
use crate::{Estimate, Interval};

/// Precision, recall and F1 of each class that has a label or a prediction. Empty without classes.
pub(crate) fn class_metrics(items: &Items, confidence: f64, policy: MissingPredictions) -> Vec<ClassMetrics> {
    let rows = match &items.content {
        Content::Classes(rows) => rows,
        Content::Pixels(pixels) => return of_pixels(pixels, items, confidence, policy),
        _ => return Vec::new(),
    };
    let (cells, counts) = matrix(rows);
    let classes = rows.names.len();
    let floats: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
    let of = |class: usize| {
        let estimates = class_ratios(classes, class).into_iter().filter_map(|ratio| {
            let estimate = ratio.estimate(&cells, &floats, items.units(), confidence)?;
            Some((ratio.name, estimate))
        });
        let support = counts[class * (classes + 1)..(class + 1) * (classes + 1)].iter().sum();
        let mut metrics = estimates.collect();
        items.rows.cover(&mut metrics, policy, |_| true);
        ClassMetrics { name: rows.names[class].clone(), support, metrics }
    };
    (0..classes).map(of).collect()
}

/// Precision, recall, F1 (Dice) and intersection over union of the pixels of each class.
fn of_pixels(
    pixels: &Pixels,
    items: &Items,
    confidence: f64,
    policy: MissingPredictions,
) -> Vec<ClassMetrics> {
    let of = |(class, name): (u32, &String)| {
        let estimates = pixels.ratios_of_class(class).into_iter().filter_map(|ratio| {
            let estimate = ratio.estimate(&[], &[], items.units(), confidence)?;
            let Interval { low, high } = estimate.interval;
            let images = estimate.support as f64;
            // Images that are all alike: each counts as one.
            let interval = match low == high {
                true => wilson(estimate.value * images, images, confidence),
                false => estimate.interval.within(0.0, 1.0),
            };
            Some((ratio.name, Estimate { interval, ..estimate }))
        });
        let mut metrics = estimates.collect();
        items.rows.cover(&mut metrics, policy, |_| true);
        ClassMetrics { name: name.clone(), support: pixels.support_of_class(class), metrics }
    };
    (0..).zip(pixels.classes.iter().flat_map(|classes| classes.iter())).map(of).collect()
}

/// Rows by label and prediction; `None` without classes.
pub(crate) fn confusion(items: &Items) -> Option<Confusion> {
    let Content::Classes(rows) = &items.content else { return None };
    let (classes, counts) = (rows.names.len(), matrix(rows).1);
    let of_labels = || counts.chunks(classes + 1);
    Some(Confusion {
        classes: rows.names.to_vec(),
        counts: of_labels().map(|row| row[..classes].to_vec()).collect(),
        unanswered: of_labels().map(|row| row[classes]).collect(),
    })
}

fn matrix(rows: &Classes) -> (Vec<u32>, Vec<u64>) {
    let cells = rows.cells();
    let mut counts = vec![0; rows.names.len() * (rows.names.len() + 1)];
    cells.iter().for_each(|cell| counts[*cell as usize] += 1);
    (cells, counts)
}
