//! Segmentation: pixels of each image, counted by the evaluator, by class where there are several.

use super::images::NamedClasses;
use super::ratio::{Link, Ratio};

/// The pixels of a table's images.
#[derive(Debug, Clone)]
pub(crate) struct Pixels {
    /// Of the rows; absent if rows have no class.
    pub classes: Option<NamedClasses>,
    pub images: Vec<Vec<ClassPixels>>,
}

/// Pixels of one class in one image, in numbers of pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClassPixels {
    /// 0 if rows have no class.
    pub class: u32,
    pub true_positive: f64,
    pub false_positive: f64,
    pub false_negative: f64,
}

impl ClassPixels {
    fn union(&self) -> f64 {
        self.true_positive + self.false_positive + self.false_negative
    }

    fn labelled(&self) -> f64 {
        self.true_positive + self.false_negative
    }
}

impl Pixels {
    pub(super) fn subset(&self, items: &[u32]) -> Self {
        let images = items.iter().map(|item| self.images[*item as usize].clone()).collect();
        Self { classes: self.classes.clone(), images }
    }

    /// The labelled pixels of an image by class: the same on both sides of a comparison.
    pub(crate) fn label_of(&self, item: usize) -> Vec<(String, u64)> {
        let name =
            |class: u32| self.classes.as_ref().map_or("", |classes| &classes[class as usize]).to_owned();
        let mut labels: Vec<(String, u64)> = self.images[item]
            .iter()
            .filter(|pixels| pixels.labelled() > 0.0)
            .map(|pixels| (name(pixels.class), pixels.labelled().to_bits()))
            .collect();
        labels.sort();
        labels
    }

    /// Over all pixels of all classes.
    pub(super) fn ratios(&self) -> [Ratio; 2] {
        let sums = |of: fn(&ClassPixels) -> f64| -> Vec<f64> {
            self.images.iter().map(|image| image.iter().map(of).sum()).collect()
        };
        let (hits, unions) = (sums(|it| it.true_positive), sums(ClassPixels::union));
        let dice = Ratio::of_sums("dice", hits.clone(), unions.clone());
        [Ratio::of_sums("iou", hits, unions), Ratio { link: Link::Dice, ..dice }]
    }

    /// Of one class by itself: over its pixels in all images.
    pub(crate) fn ratios_of_class(&self, class: u32) -> [Ratio; 4] {
        let sums = |of: fn(&ClassPixels) -> f64| -> Vec<f64> {
            let own = |image: &Vec<ClassPixels>| image.iter().filter(|it| it.class == class).map(of).sum();
            self.images.iter().map(own).collect()
        };
        let (hits, unions) = (sums(|it| it.true_positive), sums(ClassPixels::union));
        let predicted = sums(|it| it.true_positive + it.false_positive);
        let f1 = Ratio::of_sums("f1", hits.clone(), unions.clone());
        [
            Ratio::of_sums("precision", hits.clone(), predicted),
            Ratio::of_sums("recall", hits.clone(), sums(ClassPixels::labelled)),
            Ratio { link: Link::Dice, ..f1 },
            Ratio::of_sums("iou", hits, unions),
        ]
    }

    /// Images whose label has the class.
    pub(crate) fn support_of_class(&self, class: u32) -> u64 {
        let has = |image: &&Vec<ClassPixels>| image.iter().any(|it| it.class == class && it.labelled() > 0.0);
        self.images.iter().filter(has).count() as u64
    }

    /// The mean over classes of the intersection over union, each class over the pixels of all images that were sampled
    /// so often. Classes without pixels are not in it.
    pub(super) fn mean_iou(&self, weights: &[u8]) -> f64 {
        let mut sums = vec![(0.0, 0.0); self.classes.as_ref().map_or(1, |classes| classes.len())];
        for (image, weight) in self.images.iter().zip(weights).filter(|(_, weight)| **weight > 0) {
            for pixels in image {
                let (hits, union) = &mut sums[pixels.class as usize];
                *hits += f64::from(*weight) * pixels.true_positive;
                *union += f64::from(*weight) * pixels.union();
            }
        }
        let known = sums.iter().filter(|(_, union)| *union > 0.0);
        let (sum, count) =
            known.fold((0.0, 0.0), |(sum, count), (hits, union)| (sum + hits / union, count + 1.0));
        sum / count
    }
}
