//! Images that look alike: between two sides, or within one.
//!
//! Candidates differ in at most 13 of the 64 bits of their hashes; then at least one of 7 parts of it differs in at most
//! one bit, and is looked up. A candidate is near when its brightness, seen from afar, is near too, at 8 × 8 places: on
//! average within 6 of 256 steps, and within 2 if more than 6 bits differ or few are set. (Resizing an image with fine texture flips the
//! bits of places that are about equally bright, and changes their brightness little.) Images without contrast look like
//! each other and are left out. Rotated, mirrored and cropped copies are not found.

use serde::{Deserialize, Serialize};
use trackway_core::checks::{CheckResult, Example, Finding, Severity};
use trackway_tables::limits::EXAMPLES_MAX;

use super::{Content, ImageFacts, ImageLook, MediaFile};
use crate::leakage::shared::{Explanation, Shared};

/// Bits of the hashes that may differ.
const BITS_MAX: u32 = 13;

/// Parts of a hash. Where no more bits differ, one part differs in at most one bit: they are fewer than two for each.
const PARTS: u32 = BITS_MAX / 2 + 1;

/// Mean difference of brightness that may be, in steps of 256, where few bits differ.
const STEPS_MAX: u32 = 6;

/// So many bits are few.
const FEW_BITS: u32 = 6;

/// A hash with fewer bits set is one of many even areas: it says little.
const PLAIN_BITS: u32 = 8;

/// Mean difference of brightness that may be where more bits differ, or hashes say little.
const FEW_STEPS: u32 = 2;

/// Images whose brightness varies less than this between the places have no look.
const CONTRAST_MIN: u8 = 16;

/// Images of the first side that are looked up in the rest of it.
const CONTROL_MAX: usize = 4096;

/// Images that two sides have in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImageOverlap {
    /// Images of the test side.
    pub test_images: u64,
    /// Those whose pixels are those of an image of the training side.
    pub equal_images: u64,
    /// Others that look like an image of the training side.
    pub near_images: u64,
    /// Images without contrast, which were not compared by their looks.
    pub flat_images: u64,
    /// Images of the training side that were looked up in the rest of it.
    pub control_images: u64,
    /// Those with an equal one there.
    pub control_equal_images: u64,
    /// Those that look like another one there.
    pub control_near_images: u64,
    /// The first equal pairs, in the order of the test side.
    pub equal: Vec<SharedImage>,
    /// The first near pairs.
    pub near: Vec<SharedImage>,
}

/// An image on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedImage {
    /// The file of the test side.
    pub test: String,
    /// The file of the training side.
    pub train: String,
    /// Bits in which the hashes differ.
    pub bits: u32,
}

/// Images by the parts of their hashes.
struct Index<'i> {
    images: Vec<(usize, &'i ImageFacts)>,
    /// For each part: where each value begins in `rows`.
    parts: Vec<(Vec<u32>, Vec<u32>)>,
}

fn images(files: &[MediaFile]) -> Vec<(usize, &ImageFacts)> {
    let image = |(index, file)| match file {
        &MediaFile { content: Content::Image(ref facts), .. } => Some((index, facts)),
        _ => None,
    };
    files.iter().enumerate().filter_map(image).collect()
}

fn bits_of_part(part: u32) -> (u32, u32) {
    let start = part * u64::BITS / PARTS;
    (start, (part + 1) * u64::BITS / PARTS - start)
}

fn value_of(hash: u64, part: u32) -> usize {
    let (start, bits) = bits_of_part(part);
    (hash >> start) as usize & ((1 << bits) - 1)
}

impl ImageLook {
    fn has_contrast(&self) -> bool {
        let (low, high) = (self.places.iter().min(), self.places.iter().max());
        high.zip(low).is_some_and(|(high, low)| high - low >= CONTRAST_MIN)
    }

    /// The bits that differ, where the two look alike.
    fn distance(&self, other: &Self) -> Option<u32> {
        let bits = (self.hash ^ other.hash).count_ones();
        if bits > BITS_MAX {
            return None;
        }
        let steps: u32 =
            self.places.iter().zip(&other.places).map(|(one, two)| u32::from(one.abs_diff(*two))).sum();
        let is_plain = self.hash.count_ones().min(other.hash.count_ones()) < PLAIN_BITS;
        let steps_max = if bits <= FEW_BITS && !is_plain { STEPS_MAX } else { FEW_STEPS };
        (steps <= steps_max * self.places.len() as u32).then_some(bits)
    }
}

impl<'i> Index<'i> {
    fn new(images: Vec<(usize, &'i ImageFacts)>) -> Self {
        let part = |part: u32| {
            let mut starts = vec![0u32; (1 << bits_of_part(part).1) + 1];
            images.iter().for_each(|(_, image)| starts[value_of(image.look.hash, part) + 1] += 1);
            (1..starts.len()).for_each(|index| starts[index] += starts[index - 1]);
            let mut rows: Vec<u32> = (0..images.len() as u32).collect();
            rows.sort_by_key(|row| value_of(images[*row as usize].1.look.hash, part));
            (starts, rows)
        };
        let parts = (0..PARTS).map(part).collect();
        Self { images, parts }
    }

    /// The image that looks most like this one, and the bits that differ; never the image itself.
    fn nearest(&self, look: &ImageLook, own: Option<usize>) -> Option<(usize, u32)> {
        let mut best: Option<(u32, usize)> = None;
        for (part, (starts, rows)) in self.parts.iter().enumerate() {
            let value = value_of(look.hash, part as u32);
            let flipped = (0..bits_of_part(part as u32).1).map(|bit| value ^ (1 << bit));
            let near = std::iter::once(value).chain(flipped);
            let rows = near.flat_map(|value| &rows[starts[value] as usize..starts[value + 1] as usize]);
            for row in rows {
                let (file, image) = &self.images[*row as usize];
                if Some(*file) != own
                    && let Some(bits) = look.distance(&image.look)
                    && best.is_none_or(|best| (bits, *file) < best)
                {
                    best = Some((bits, *file));
                }
            }
        }
        best.map(|(bits, file)| (file, bits))
    }
}

/// Looks every image of the test side up among those of the training side. The same files on both sides are looked at
/// as one: then an image is compared with all others.
#[must_use]
pub fn find_image_overlap(train: &[MediaFile], test: &[MediaFile]) -> ImageOverlap {
    use rayon::prelude::*;

    let is_same = std::ptr::eq(train, test);
    let (train_images, test_images) = (images(train), images(test));
    let mut by_pixels: std::collections::HashMap<u64, Vec<usize>> = std::collections::HashMap::new();
    train_images.iter().for_each(|(file, image)| by_pixels.entry(image.pixels).or_default().push(*file));
    let step = train_images.len().div_ceil(CONTROL_MAX).max(1);
    let control: Vec<_> = train_images.iter().step_by(step).copied().collect();
    let index = Index::new(train_images.into_iter().filter(|(_, image)| image.look.has_contrast()).collect());
    let look_up = |(file, image): &(usize, &ImageFacts), own: Option<usize>| {
        let equal = by_pixels.get(&image.pixels).and_then(|files| files.iter().find(|it| Some(**it) != own));
        match equal {
            Some(train) => ImageMatch::Equal(*file, *train),
            None if !image.look.has_contrast() => ImageMatch::Flat,
            None => index
                .nearest(&image.look, own)
                .map_or(ImageMatch::Nothing, |(train, bits)| ImageMatch::Near(*file, train, bits)),
        }
    };
    let met: Vec<ImageMatch> =
        test_images.par_iter().map(|it| look_up(it, is_same.then_some(it.0))).collect();
    let of_control: Vec<ImageMatch> = control.par_iter().map(|it| look_up(it, Some(it.0))).collect();
    let count =
        |met: &[ImageMatch], holds: fn(&ImageMatch) -> bool| met.iter().filter(|it| holds(it)).count() as u64;
    let shared = |test_file: usize, train_file: usize, bits| SharedImage {
        test: test[test_file].name.clone(),
        train: train[train_file].name.clone(),
        bits,
    };
    let equal = met
        .iter()
        .filter_map(|it| if let ImageMatch::Equal(a, b) = it { Some(shared(*a, *b, 0)) } else { None });
    let near = met
        .iter()
        .filter_map(|it| if let ImageMatch::Near(a, b, c) = it { Some(shared(*a, *b, *c)) } else { None });
    ImageOverlap {
        test_images: test_images.len() as u64,
        equal_images: count(&met, |it| matches!(it, ImageMatch::Equal(..))),
        near_images: count(&met, |it| matches!(it, ImageMatch::Near(..))),
        flat_images: count(&met, |it| matches!(it, ImageMatch::Flat)),
        control_images: control.len() as u64,
        control_equal_images: count(&of_control, |it| matches!(it, ImageMatch::Equal(..))),
        control_near_images: count(&of_control, |it| matches!(it, ImageMatch::Near(..))),
        equal: equal.take(EXAMPLES_MAX).collect(),
        near: near.take(EXAMPLES_MAX).collect(),
    }
}

impl SharedImage {
    pub(super) fn example(&self) -> Example {
        let sign = if self.bits == 0 { "=" } else { "≈" };
        Example { file: Some(self.test.clone()), row: None, value: Some(format!("{sign} {}", self.train)) }
    }
}

impl ImageOverlap {
    /// `leakage.rows` and `leakage.near_duplicates` of images. `not_compared` files could not be read.
    #[must_use]
    pub fn results(&self, not_compared: u64) -> [CheckResult; 2] {
        let result = |name: &str,
                      count: u64,
                      control: u64,
                      pairs: &[SharedImage],
                      what: &str,
                      worst: Severity| {
            let sides = Shared {
                test: self.test_images,
                shared: count,
                train: self.control_images,
                repeated: if self.control_images == 0 {
                    0.0
                } else {
                    control as f64 / self.control_images as f64
                },
            };
            let message = format!(
                "{count} of {} test images {what} a training image ({:.2} %); of the training images among \
                 themselves, {:.2} % do{}",
                self.test_images,
                sides.fraction() * 100.0,
                sides.repeated * 100.0,
                match sides.explanation() {
                    Explanation::Repetition => ": a random split would overlap as much",
                    Explanation::Coincidence(_) | Explanation::None => "",
                }
            );
            let severity = if sides.blocks() { worst } else { Severity::Warn };
            let finding = (count > 0).then(|| {
                Finding::new(name, severity, message)
                    .action("keep an image and everything made from it on one side")
                    .count(count)
                    .examples(pairs.iter().map(SharedImage::example))
            });
            let left_out = (not_compared > 0).then(|| {
                let files = crate::counted(not_compared, "file");
                let message = format!("unreadable and not compared, on both sides together: {files}");
                Finding::new(name, Severity::Warn, message).action("inspect them with `trackway data images`")
            });
            let findings = finding.into_iter().chain(left_out).collect();
            CheckResult::of_rows(name, self.test_images, findings).because(format!(
                "{} test images, {} of them too uniform to compare",
                self.test_images, self.flat_images
            ))
        };
        [
            result(
                "leakage.rows",
                self.equal_images,
                self.control_equal_images,
                &self.equal,
                "have the very pixels of",
                Severity::Block,
            ),
            result(
                "leakage.near_duplicates",
                self.near_images,
                self.control_near_images,
                &self.near,
                "look like",
                Severity::Warn,
            ),
        ]
    }
}

/// What became of an image that was looked up.
enum ImageMatch {
    Equal(usize, usize),
    Near(usize, usize, u32),
    Flat,
    Nothing,
}
