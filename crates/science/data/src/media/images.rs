//! Images into what is kept of them.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder as _, ImageError, ImageFormat, ImageReader, Limits};
use trackway_core::boundary::contained;
use trackway_tables::ReadContext;

use super::reading::{Format, Refusal, read_within, too_large};
use super::stored::{channels, decoded_mode, stored_mode};
use super::{Content, ImageFacts, ImageLook};

/// More different pixel values than this are no mask's.
const VALUES_MAX: usize = 256;

/// Places of a look, in each direction.
const SIDE: u32 = 8;

/// Steps of 256 by which a place is brighter than the one before. In even areas less is what saving as JPEG leaves.
const BRIGHTER_MIN: f64 = 2.0;

/// What is decoded, its form in gray, and what the decoder works with: about so many times the pixels.
const COPIES: u64 = 2;

/// Decodes an image once there is memory for it. Its header is read first, which gives the size.
pub(super) fn read(
    path: &Path,
    length: u64,
    promised: Format,
    context: &ReadContext,
) -> Result<Content, Refusal> {
    let promised = match promised {
        Format::Png => ImageFormat::Png,
        Format::Jpeg => ImageFormat::Jpeg,
        Format::Bmp => ImageFormat::Bmp,
        Format::WebP => ImageFormat::WebP,
    };
    let (pixel_bytes, orientation) =
        read_within(path, length, 0, context, |bytes| header(bytes, promised, context))??;
    let needed = pixel_bytes.saturating_mul(COPIES);
    let found = read_within(path, length, needed, context, |bytes| image(bytes, promised, needed, context))?;
    Ok(match found {
        Content::Image(facts) => Content::Image(ImageFacts { orientation, ..facts }),
        other => other,
    })
}

/// The format according to the first bytes; it counts, as it does for every program that opens the file.
fn format_of(bytes: &[u8], promised: ImageFormat) -> ImageFormat {
    image::guess_format(bytes).unwrap_or(promised)
}

fn reader(bytes: &[u8], format: ImageFormat, bytes_max: u64) -> ImageReader<Cursor<&[u8]>> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(bytes_max);
    reader.limits(limits);
    reader
}

/// Runs the decoder, which belongs to others and may panic at damaged files.
fn decoded<T>(context: &ReadContext, step: impl FnOnce() -> Result<T, ImageError>) -> Result<T, Refusal> {
    match contained(step) {
        Err(panic) => Err(Refusal::Broken(format!("decoding it failed: {panic}"))),
        Ok(Err(ImageError::Unsupported(error))) => Err(Refusal::NotChecked(error.to_string())),
        Ok(Err(ImageError::Limits(_))) => Err(Refusal::NotChecked(too_large(context))),
        Ok(Err(error)) => Err(Refusal::Broken(error.to_string())),
        Ok(Ok(value)) => Ok(value),
    }
}

/// How many bytes the pixels will take, from the header, and the EXIF orientation; 1 if none can be read.
fn header(bytes: &[u8], promised: ImageFormat, context: &ReadContext) -> Result<(u64, u8), Refusal> {
    let format = format_of(bytes, promised);
    if format == ImageFormat::Jpeg && !jpeg_ends(bytes) {
        return Err(Refusal::Broken("it is cut off: the end of the JPEG is missing".into()));
    }
    let reader = reader(bytes, format, context.limits().media_bytes_max);
    decoded(context, || {
        let mut decoder = reader.into_decoder()?;
        let orientation = decoder.orientation().map_or(1, Orientation::to_exif);
        Ok((decoder.total_bytes(), orientation))
    })
}

fn image(bytes: &[u8], promised: ImageFormat, bytes_max: u64, context: &ReadContext) -> Content {
    let format = format_of(bytes, promised);
    // A small image may need more than its pixels.
    let reader = reader(bytes, format, bytes_max.max(SMALL_BYTES));
    match decoded(context, || reader.decode()) {
        Ok(image) => Content::Image(facts(bytes, &image, format, promised)),
        Err(refusal) => refusal.into(),
    }
}

/// What any image may take.
const SMALL_BYTES: u64 = 4 << 20;

/// Whether a JPEG has its end marker. Decoders fill what is missing with gray silently, so the marker is looked for
/// after the segments that may hold a whole little JPEG (a preview).
fn jpeg_ends(bytes: &[u8]) -> bool {
    const START_OF_SCAN: u8 = 0xda;
    const END: [u8; 2] = [0xff, 0xd9];
    let mut at = 2;
    while let Some([0xff, marker, high, low]) = bytes.get(at..at + 4) {
        if *marker == START_OF_SCAN {
            // Within the scan every 0xff of the data is followed by a zero.
            return memchr::memmem::find(&bytes[at..], &END).is_some();
        }
        // Fill bytes may precede a marker.
        at += if *marker == 0xff { 1 } else { 2 + usize::from(u16::from_be_bytes([*high, *low])) };
    }
    false
}

fn facts(bytes: &[u8], image: &DynamicImage, format: ImageFormat, promised: ImageFormat) -> ImageFacts {
    let values = values(image);
    let soft_edges = if values.is_some() { soft_edges(image) } else { 0 };
    let mode = stored_mode(bytes, format, image.color());
    ImageFacts {
        width: image.width(),
        height: image.height(),
        mode,
        channels: channels(mode),
        orientation: 1,
        format: name(format),
        misnamed: format != promised,
        is_constant: is_constant(image),
        values,
        soft_edges,
        pixels: fingerprint(image),
        look: look(image),
    }
}

fn name(format: ImageFormat) -> &'static str {
    format.extensions_str().first().copied().unwrap_or("other")
}

fn pixel_bytes(image: &DynamicImage) -> usize {
    usize::from(image.color().bytes_per_pixel()).max(1)
}

fn is_constant(image: &DynamicImage) -> bool {
    let mut pixels = image.as_bytes().chunks(pixel_bytes(image));
    pixels.next().is_some_and(|first| pixels.all(|pixel| pixel == first))
}

/// The values of pixels of up to four bytes; `None` for more bytes or too many values.
fn values(image: &DynamicImage) -> Option<BTreeMap<u32, u64>> {
    let size = pixel_bytes(image);
    if size > 4 {
        return None;
    }
    let mut values: BTreeMap<u32, u64> = BTreeMap::new();
    // Neighbours are mostly equal, in masks at least.
    let (mut before, mut run) = (None, 0);
    let mut add = |value: Option<u32>, run: u64| {
        if let Some(value) = value {
            *values.entry(value).or_default() += run;
        }
        values.len()
    };
    for pixel in image.as_bytes().chunks_exact(size) {
        let value = match image.color() {
            ColorType::L16 => u32::from(u16::from_ne_bytes([pixel[0], pixel[1]])),
            _ => pixel.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)),
        };
        if before != Some(value) {
            if add(before, run) > VALUES_MAX {
                return None;
            }
            (before, run) = (Some(value), 0);
        }
        run += 1;
    }
    add(before, run);
    Some(values)
}

/// Steps in thousand edges, along rows and columns of a gray image; 0 where there are hardly any edges.
fn soft_edges(image: &DynamicImage) -> u32 {
    const EDGES_MIN: u64 = 20;
    let DynamicImage::ImageLuma8(gray) = image else { return 0 };
    let (width, height) = (gray.width() as usize, gray.height() as usize);
    let pixels = gray.as_raw();
    let (mut edges, mut steps) = (0u64, 0u64);
    let mut look = |start: usize, step: usize, count: usize| {
        for index in 1..count.saturating_sub(1) {
            let at = start + index * step;
            let (before, own, next) = (pixels[at - step], pixels[at], pixels[at + step]);
            edges += u64::from(own != next);
            steps += u64::from((before < own && own < next) || (before > own && own > next));
        }
    };
    (0..height).for_each(|row| look(row * width, 1, width));
    (0..width).for_each(|column| look(column, width, height));
    if edges < EDGES_MIN { 0 } else { (steps * 1000 / edges) as u32 }
}

fn fingerprint(image: &DynamicImage) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&image.width().to_le_bytes()).update(&image.height().to_le_bytes());
    hasher.update(decoded_mode(image.color()).as_bytes()).update(image.as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Brightness averaged over 8 × 8 places, and over 9 × 8 for the differences.
fn look(image: &DynamicImage) -> ImageLook {
    let gray = image.to_luma8();
    let wide = averages(&gray, SIDE + 1, SIDE);
    let mut hash = 0;
    for row in wide.chunks(SIDE as usize + 1) {
        for pair in row.windows(2) {
            hash = hash << 1 | u64::from(pair[1] - pair[0] > BRIGHTER_MIN);
        }
    }
    let mut places = [0; 64];
    places.iter_mut().zip(averages(&gray, SIDE, SIDE)).for_each(|(to, value)| *to = value.round() as u8);
    ImageLook { hash, places }
}

/// Mean brightness of the cells of a grid. A pixel on the edge of two cells counts to both by the part that is in each,
/// so that the means do not depend on the image's size.
fn averages(gray: &image::GrayImage, columns: u32, rows: u32) -> Vec<f64> {
    let (width, height) = gray.dimensions();
    // Pixels of each cell, with the part of them that is in it.
    let cut = |index: u32, parts: u32, size: u32| -> Vec<(usize, f64)> {
        let (start, end) =
            (f64::from(index * size) / f64::from(parts), f64::from((index + 1) * size) / f64::from(parts));
        let part = |pixel: usize| (pixel as f64 + 1.0).min(end) - (pixel as f64).max(start);
        let pixels = (start as usize..end.ceil() as usize).map(|pixel| (pixel, part(pixel)));
        pixels.filter(|(pixel, part)| *part > 0.0 && *pixel < size as usize).collect()
    };
    let pixels = gray.as_raw();
    let columns: Vec<_> = (0..columns).map(|column| cut(column, columns, width)).collect();
    let mut means = Vec::new();
    for row in (0..rows).map(|row| cut(row, rows, height)) {
        for column in &columns {
            let (mut sum, mut area) = (0.0, 0.0);
            for (y, down) in &row {
                for (x, across) in column {
                    sum += f64::from(pixels[y * width as usize + x]) * down * across;
                    area += down * across;
                }
            }
            means.push(sum / f64::max(area, f64::MIN_POSITIVE));
        }
    }
    means
}
