//! Object detection: boxes of labels and of predictions in images, as COCO evaluates them (T.-Y. Lin et al. 2014;
//! pycocotools): all sizes, at most [`DETECTIONS_MAX`] predictions of a class in an image, no crowds.
//!
//! In each image the predictions of a class, by falling score, are each matched with the label of the class that they
//! overlap most, if it is not matched yet and the intersection over union is at least the threshold. The average
//! precision of a class is the mean over 101 recalls (0, 0.01 … 1) of the best precision at such a recall or a higher one,
//! 0 if no recall is as high. Matches do not depend on other images, so they are made once; a resample repeats whole images.

use super::images::NamedClasses;

/// Predictions of a class in an image beyond this number, by falling score, are not counted.
pub const DETECTIONS_MAX: usize = 100;

const THRESHOLDS: usize = 10;
const RECALLS: usize = 101;
/// Places of the thresholds 0.50 and 0.75.
const AT_50: usize = 0;
const AT_75: usize = 5;

/// The boxes of a table's images.
#[derive(Debug, Clone)]
pub(crate) struct Boxes {
    pub classes: NamedClasses,
    pub images: Vec<ImageBoxes>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ImageBoxes {
    /// For each class with labels how many.
    labels: Vec<(u32, u32)>,
    /// For each class its predictions, by falling score.
    detections: Vec<Detection>,
    /// The label boxes themselves, sorted: the same on both sides of a comparison.
    label_boxes: Vec<(u32, [u64; 4])>,
}

#[derive(Debug, Clone, Copy)]
struct Detection {
    class: u32,
    score: f64,
    /// A bit for each threshold, 1 if it matches a label.
    matched: u16,
}

/// Which mean of average precisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeanPrecision {
    /// Over classes and all thresholds.
    All,
    /// Over classes at a threshold of 0.50.
    At50,
    At75,
}

/// A box: left, top, right, bottom.
pub(super) type Corners = [f64; 4];

/// A predicted box with its score.
pub(super) type ScoredBox = (f64, Corners);

/// As NumPy's `linspace(0.5, 0.95, 10)`.
fn threshold(place: usize) -> f64 {
    if place + 1 == THRESHOLDS { 0.95 } else { place as f64 * ((0.95 - 0.5) / 9.0) + 0.5 }
}

impl ImageBoxes {
    /// The boxes of one class.
    pub(super) fn add(&mut self, class: u32, labels: &[Corners], mut predictions: Vec<ScoredBox>) {
        if !labels.is_empty() {
            self.labels.push((class, labels.len() as u32));
        }
        self.label_boxes.extend(labels.iter().map(|corners| (class, corners.map(f64::to_bits))));
        self.label_boxes.sort_unstable();
        // Predictions with the same score stay in the order of the table.
        predictions.sort_by(|one, other| other.0.total_cmp(&one.0));
        predictions.truncate(DETECTIONS_MAX);
        let overlaps: Vec<Vec<f64>> = predictions
            .iter()
            .map(|(_, box_)| labels.iter().map(|label| intersection_over_union(*box_, *label)).collect())
            .collect();
        let mut matched = vec![0u16; predictions.len()];
        for place in 0..THRESHOLDS {
            let mut is_taken = vec![false; labels.len()];
            for (overlaps, matched) in overlaps.iter().zip(&mut matched) {
                let mut best = (threshold(place), None);
                for (label, overlap) in overlaps.iter().enumerate() {
                    if !is_taken[label] && *overlap >= best.0 {
                        best = (*overlap, Some(label));
                    }
                }
                if let Some(label) = best.1 {
                    is_taken[label] = true;
                    *matched |= 1 << place;
                }
            }
        }
        let detections = predictions.iter().zip(matched);
        self.detections.extend(detections.map(|((score, _), matched)| Detection {
            class,
            score: *score,
            matched,
        }));
    }
}

fn intersection_over_union(one: Corners, other: Corners) -> f64 {
    let width = one[2].min(other[2]) - one[0].max(other[0]);
    let height = one[3].min(other[3]) - one[1].max(other[1]);
    if width <= 0.0 || height <= 0.0 {
        return 0.0;
    }
    let area = |corners: Corners| (corners[2] - corners[0]) * (corners[3] - corners[1]);
    width * height / (area(one) + area(other) - width * height)
}

impl Boxes {
    pub(super) fn subset(&self, items: &[u32]) -> Self {
        let images = items.iter().map(|item| self.images[*item as usize].clone()).collect();
        Self { classes: self.classes.clone(), images }
    }

    /// The labels of an image: the same on both sides of a comparison.
    pub(crate) fn label_of(&self, item: usize) -> Vec<(&str, [u64; 4])> {
        let name = |class: u32| self.classes[class as usize].as_str();
        self.images[item].label_boxes.iter().map(|(class, corners)| (name(*class), *corners)).collect()
    }

    /// Whether there is a label and a prediction.
    pub(crate) fn has_both(&self) -> bool {
        self.images.iter().any(|image| !image.labels.is_empty())
            && self.images.iter().any(|image| !image.detections.is_empty())
    }
}

/// The predictions of all images, sorted once.
#[derive(Debug, Clone)]
pub(crate) struct Precisions(Vec<OneClass>);

#[derive(Debug, Clone, Default)]
struct OneClass {
    /// Image and number of labels.
    labels: Vec<(u32, u32)>,
    /// By falling score: image and matches.
    detections: Vec<(u32, u16)>,
}

impl Precisions {
    pub(super) fn new(boxes: &Boxes) -> Self {
        let mut classes = vec![OneClass::default(); boxes.classes.len()];
        let mut detections: Vec<Vec<(u32, Detection)>> = vec![Vec::new(); boxes.classes.len()];
        for (item, image) in (0..).zip(&boxes.images) {
            for (class, count) in &image.labels {
                classes[*class as usize].labels.push((item, *count));
            }
            image.detections.iter().for_each(|it| detections[it.class as usize].push((item, *it)));
        }
        for (class, mut detections) in classes.iter_mut().zip(detections) {
            detections.sort_by(|one, other| other.1.score.total_cmp(&one.1.score));
            class.detections = detections.into_iter().map(|(item, it)| (item, it.matched)).collect();
        }
        Self(classes)
    }

    /// The mean average precision at each threshold, over the classes that have labels, of images that were sampled so
    /// often. NaN without labels.
    pub(super) fn means(&self, weights: &[u8]) -> [f64; THRESHOLDS] {
        let (mut sums, mut count) = ([0.0; THRESHOLDS], 0.0);
        for precisions in self.0.iter().filter_map(|class| class.average_precisions(weights)) {
            sums.iter_mut().zip(precisions).for_each(|(sum, precision)| *sum += precision);
            count += 1.0;
        }
        sums.map(|sum| sum / count)
    }
}

impl MeanPrecision {
    pub(super) fn of(self, means: &[f64; THRESHOLDS]) -> f64 {
        match self {
            Self::All => means.iter().sum::<f64>() / THRESHOLDS as f64,
            Self::At50 => means[AT_50],
            Self::At75 => means[AT_75],
        }
    }
}

impl OneClass {
    /// At each threshold; `None` without labels.
    fn average_precisions(&self, weights: &[u8]) -> Option<[f64; THRESHOLDS]> {
        let weight = |item: &u32| u64::from(weights[*item as usize]);
        let labels: u64 = self.labels.iter().map(|(item, count)| weight(item) * u64::from(*count)).sum();
        if labels == 0 {
            return None;
        }
        // At each match so far: matches and all predictions.
        let mut points: [Vec<(u64, u64)>; THRESHOLDS] = Default::default();
        let (mut matches, mut seen) = ([0u64; THRESHOLDS], 0);
        for (item, matched) in self.detections.iter().filter(|(item, _)| weight(item) > 0) {
            seen += weight(item);
            for (place, points) in
                points.iter_mut().enumerate().filter(|(place, _)| matched >> place & 1 == 1)
            {
                matches[place] += weight(item);
                points.push((matches[place], seen));
            }
        }
        Some(points.map(|points| average_precision(&points, labels)))
    }
}

/// The mean of the interpolated precision over the recalls.
fn average_precision(points: &[(u64, u64)], labels: u64) -> f64 {
    let mut sum = 0.0;
    let mut recall = RECALLS;
    let mut best = 0f64;
    // From the last match backwards: each recall takes the best precision from its first match on.
    for (place, (matches, seen)) in points.iter().enumerate().rev() {
        best = best.max(*matches as f64 / *seen as f64);
        let before = if place == 0 { f64::NEG_INFINITY } else { points[place - 1].0 as f64 / labels as f64 };
        let own = *matches as f64 / labels as f64;
        while recall > 0 && (recall - 1) as f64 * 0.01 > before {
            sum += if (recall - 1) as f64 * 0.01 <= own { best } else { 0.0 };
            recall -= 1;
        }
    }
    sum / RECALLS as f64
}
