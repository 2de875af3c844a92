//! What fits into a segment, which the limit of the system on the size of a file may keep small. A frame is in one segment as a whole.

use nix::sys::resource::{Resource, getrlimit};
use trackway_formats::frames::{FRAME_OVERHEAD_BYTES, MAX_NAME_BYTES};
use trackway_formats::record::{Encoder, MAX_METRICS_PER_FRAME};

/// A segment is closed and another begun at this size, so that long runs have closed segments to convert.
pub const MAX_SEGMENT_BYTES: u64 = 64 << 20;

/// A frame takes at most this part of a segment, which has a header as well.
const FRAMES_PER_SEGMENT_MIN: u64 = 4;
/// What one value takes in a frame beside its definition.
const VALUE_BYTES: usize = 12;
/// What each step and each value takes in a series.
const SERIES_NUMBER_BYTES: usize = 8;

/// How large a segment may become. Writing past `RLIMIT_FSIZE` would raise SIGXFSZ, which kills the process.
pub(crate) fn max_segment_bytes() -> u64 {
    let limit = getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(soft, _)| soft);
    limit.min(MAX_SEGMENT_BYTES)
}

/// The bytes of a frame that fits into a segment of this size, whatever its header has.
pub(crate) fn frame_room(segment_bytes: u64) -> usize {
    (segment_bytes / FRAMES_PER_SEGMENT_MIN) as usize
}

/// How many of these values, one at least, are written in one frame.
pub(crate) fn values_of_frame(values: &[(impl AsRef<str>, f64)], room: usize) -> usize {
    let mut bytes = 0;
    let mut fits = |name: &str| {
        bytes += definition_bytes(name) + VALUE_BYTES;
        bytes <= room
    };
    values.iter().take(MAX_METRICS_PER_FRAME).take_while(|(name, _)| fits(name.as_ref())).count().max(1)
}

/// How many steps of these metrics are written in one frame; none where not even their names fit.
pub(crate) fn steps_of_series(names: &[String], room: usize) -> Option<usize> {
    let count = names.len();
    let names_bytes: usize = names.iter().map(|name| definition_bytes(name)).sum();
    let steps = room.checked_sub(names_bytes)? / ((1 + count) * SERIES_NUMBER_BYTES);
    let fits = (1..=MAX_METRICS_PER_FRAME).contains(&count) && steps > 0;
    fits.then(|| steps.min(Encoder::steps_of_series(count)))
}

fn definition_bytes(name: &str) -> usize {
    const BESIDE_NAME: usize = FRAME_OVERHEAD_BYTES + 8;
    name.len().min(MAX_NAME_BYTES) + BESIDE_NAME
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that little room takes fewer values and steps and never less than one value, and that enough room takes all.
    #[test]
    fn little_room_takes_less() {
        let values: Vec<(String, f64)> = (0..100).map(|at| (format!("metric_{at:03}"), 0.5)).collect();
        let names: Vec<String> = values.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(values_of_frame(&values, frame_room(MAX_SEGMENT_BYTES)), 100);
        let few = values_of_frame(&values, 512);
        assert!((5..30).contains(&few), "{few}");
        assert_eq!(values_of_frame(&values, 0), 1);
        assert_eq!(steps_of_series(&names, 512), None);
        assert_eq!(steps_of_series(&[], usize::MAX), None);
        let of_one = |room| steps_of_series(&names[..1], room);
        assert_eq!(of_one(frame_room(MAX_SEGMENT_BYTES)), Some(Encoder::steps_of_series(1)));
        assert!(of_one(512).is_some_and(|steps| (10..32).contains(&steps)));
    }
}
