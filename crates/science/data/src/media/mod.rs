//! Images and texts as files: do they decode, are they of one kind, has each its partner and its label.
//!
//! [`look_at`] reads every file of a folder once, on all cores, one file a core at a time. What it keeps of a file is
//! some bytes, so that memory does not grow with the size of the files. Those that are decoded at the same time take at
//! most [`Limits::media_bytes_max`](trackway_tables::limits::Limits) together; one that alone needs more is reported as not checked.

mod check;
mod decode;
#[cfg(feature = "media")]
mod images;
#[cfg(not(feature = "media"))]
#[path = "images_absent.rs"]
mod images;
mod labels;
mod near;
mod pairs;
pub mod probe;
mod reading;
#[cfg(feature = "media")]
mod stored;
#[cfg(test)]
#[cfg(feature = "media")]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use trackway_formats::runfile::DataSpec;
use trackway_tables::files::select;
use trackway_tables::pass::PassObserver;
use trackway_tables::{DataError, ReadContext};

pub use check::{MediaRequest, check};
pub use near::{ImageOverlap, SharedImage, find_image_overlap};
pub use trackway_results::media::{MediaChecks, MediaCount, SizeCount};

/// Files that are read before the next ones are begun and the caller may cancel it.
const BATCH: usize = 256;

/// What is known of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct MediaFile {
    /// Relative to the folder, with `/`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub content: Content,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// An image that was decoded to its last pixel.
    Image(ImageFacts),
    /// A text: UTF-8, not empty.
    Text,
    /// An image or a text that cannot be read, and why.
    Broken(String),
    /// An image that was not decoded, and why: its format or its size.
    NotChecked(String),
    /// Anything else, by its extension.
    Other(String),
}

/// What is kept of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFacts {
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// How a pixel is stored in the file, whatever a decoder makes of it: `gray8`, `rgb8`, `rgba16`, `cmyk8`, `palette8` …
    pub mode: &'static str,
    /// The channels of a stored pixel, of a palette's index 1; 0 where that is not known.
    pub channels: u8,
    /// The EXIF orientation, 1 to 8: how an image is to be turned and mirrored. 1: not at all, or there is none.
    pub orientation: u8,
    /// The format that its bytes have, such as `png`.
    pub format: &'static str,
    /// The format that its name promises, where that is another one.
    pub misnamed: bool,
    /// Whether all pixels are equal.
    pub is_constant: bool,
    /// Different pixel values with the pixels that have them, where there are few (as in masks).
    pub values: Option<BTreeMap<u32, u64>>,
    /// Of the pixels at edges, those in thousand that are a step between their neighbours: hardly any in a mask, most in
    /// one that was interpolated. 0 where `values` is `None`.
    pub soft_edges: u32,
    /// A fingerprint of size and decoded pixels.
    pub pixels: u64,
    /// What it looks like.
    pub look: ImageLook,
}

/// What an image looks like, for finding others that look alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLook {
    /// Whether it gets brighter from each of 8 × 8 places to the next on the right (dHash).
    pub hash: u64,
    /// Its brightness in 8 × 8 places.
    pub places: [u8; 64],
}

/// How many of the files are of what kind.
#[must_use]
pub fn count_of(files: &[MediaFile]) -> MediaCount {
    let mut count = MediaCount { files: files.len() as u64, ..MediaCount::default() };
    for file in files {
        match file.content {
            Content::Image(_) => count.images += 1,
            Content::Text => count.texts += 1,
            Content::Broken(_) => count.broken += 1,
            Content::NotChecked(_) => count.not_checked += 1,
            Content::Other(_) => count.others += 1,
        }
    }
    count
}

/// Whether a file's name is that of an image, of a format that can be decoded here or not.
fn is_image_name(path: &Path) -> bool {
    decode::kind_of(path).is_some_and(|kind| kind != decode::Kind::Text)
}

/// Whether most files below `paths` are images, by their names.
///
/// # Errors
/// [`DataError`]: a path that names nothing, a folder that cannot be read.
pub fn are_images(
    base: &Path,
    set: &str,
    paths: &[String],
    context: &ReadContext,
) -> Result<bool, DataError> {
    let (mut files, mut images) = (0, 0);
    for path in paths {
        let spec = DataSpec { path: path.clone(), ..DataSpec::default() };
        let selection = select(set, &spec, base, context)?;
        files += selection.files.len();
        images += selection.files.iter().filter(|file| is_image_name(file)).count();
    }
    Ok(images * 2 > files)
}

/// Reads every file below `paths` (folders, globs, files). They come sorted by path.
///
/// # Errors
/// [`DataError`]: a path that names nothing, a folder that cannot be read, the reading cancelled. A *file* that cannot be
/// read is a finding.
pub fn look_at(
    base: &Path,
    set: &str,
    paths: &[String],
    context: &ReadContext,
    watch: &PassObserver<'_>,
) -> Result<Vec<MediaFile>, DataError> {
    let mut files = Vec::new();
    for path in paths {
        let spec = DataSpec { path: path.clone(), ..DataSpec::default() };
        let selection = select(set, &spec, base, context)?;
        files.extend(selection.files.into_iter().map(|file| (relative(&file, &selection.root), file)));
    }
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |about| about.len());
    let total_bytes = files.iter().map(|(_, path)| size(path)).sum();
    let mut seen: Vec<MediaFile> = Vec::with_capacity(files.len());
    let mut done_bytes = 0;
    for batch in files.chunks(BATCH) {
        if watch.cancelled.load(Ordering::Relaxed) {
            return Err(DataError::Cancelled { set: set.to_owned() });
        }
        let read = batch.par_iter().map(|(name, path)| MediaFile {
            name: name.clone(),
            path: path.clone(),
            content: decode::content(path, context),
        });
        seen.par_extend(read);
        done_bytes += batch.iter().map(|(_, path)| size(path)).sum::<u64>();
        (watch.progress)(done_bytes, total_bytes);
    }
    Ok(seen)
}

fn relative(file: &Path, root: &Path) -> String {
    let below = file.strip_prefix(root).unwrap_or(file);
    below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
