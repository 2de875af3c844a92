//! What a reader owes for damaged, truncated and arbitrary bytes.

use proptest::prelude::*;
use trackway_core::Timestamp;

use super::*;
use crate::frames::{HEADER_BYTES, MAX_NAME_BYTES, MAX_TEXT_BYTES, Tail};

fn header() -> SegmentHeader {
    SegmentHeader {
        at: Timestamp::from_micros(5),
        origin: Origin::Stdout,
        pid: 1,
        segment_sequence: 0,
        boot_id: String::new(),
        run_id: "run".into(),
        attempt_id: "attempt".into(),
        writer: "test".into(),
    }
}

/// A segment with frames of many sizes, and where each frame begins and ends.
fn segment(steps: u64) -> (Vec<u8>, Vec<Located>) {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    let at = header().at;
    encoder.begin(&mut out, &header());
    for step in 0..steps {
        let (loss, rate) = (step as f64 * 0.5, f64::INFINITY);
        encoder.metrics(&mut out, at, step, &[("loss", loss), ("rate", rate)]);
        let text = "x".repeat((step as usize * 37) % 300);
        encoder.param(&mut out, &Param { at, name: format!("p{step}"), value: text });
    }
    encoder.close(&mut out, &Close { at, dropped_frames: 0 });
    let frames = frames_of(&out);
    (out, frames)
}

fn items_of(bytes: &[u8]) -> Vec<Item> {
    let mut reader = SegmentReader::new();
    reader.push(bytes);
    reader.finish();
    std::iter::from_fn(|| reader.next_item().unwrap()).collect()
}

fn frames_of(bytes: &[u8]) -> Vec<Located> {
    let frame = |item| match item {
        Item::Frame(located) => Some(located),
        Item::Damage(_) => None,
    };
    items_of(bytes).into_iter().filter_map(frame).collect()
}

/// The offset after a frame: where the next one begins, or the end of the file.
fn end_of(frames: &[Located], index: usize, file_bytes: usize) -> usize {
    frames.get(index + 1).map_or(file_bytes, |next| next.offset as usize)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Proves that damage of any length anywhere costs exactly the frames it overlaps, and that its place is reported.
    #[test]
    fn damage_costs_only_the_frames_it_overlaps(
        start in 0usize..6_000, length in 1usize..200, noise in 1u8..=255,
    ) {
        let (mut bytes, frames) = segment(30);
        let start = start % bytes.len();
        let end = (start + length).min(bytes.len());
        for (position, byte) in bytes[start..end].iter_mut().enumerate() {
            // Never 0, so that every byte of the range differs.
            *byte ^= noise.rotate_left(position as u32 % 8);
        }
        let untouched: Vec<_> = (0..frames.len())
            .filter(|index| {
                end_of(&frames, *index, bytes.len()) <= start || frames[*index].offset as usize >= end
            })
            .map(|index| frames[index].clone())
            .collect();
        prop_assert_eq!(frames_of(&bytes), untouched);
        let is_reported = items_of(&bytes).iter().any(|item| matches!(item, Item::Damage(damage)
            if damage.offset as usize <= start && start < (damage.offset + damage.skipped_bytes) as usize));
        prop_assert!(is_reported, "the damage at {} is not reported", start);
    }

    /// Proves that a segment cut anywhere gives every whole frame before the cut, and that an unfinished tail is
    /// distinguished from a clean end.
    #[test]
    fn a_cut_costs_only_the_frame_it_goes_through(cut in 0usize..6_000) {
        let (bytes, frames) = segment(30);
        let cut = cut % bytes.len();
        let whole = (0..frames.len()).filter(|index| end_of(&frames, *index, bytes.len()) <= cut).count();
        prop_assert_eq!(frames_of(&bytes[..cut]), frames[..whole].to_vec());
        let mut reader = SegmentReader::new();
        reader.push(&bytes[..cut]);
        while reader.next_item().unwrap().is_some() {}
        let boundary = frames.iter().any(|frame| frame.offset as usize == cut) || cut == 0;
        prop_assert_eq!(reader.tail() == Tail::Clean, boundary);
    }

    /// Proves that it does not matter in which pieces a growing file is read.
    #[test]
    fn pieces_of_any_size_give_the_same_frames(piece in 1usize..700) {
        let (bytes, frames) = segment(30);
        let mut reader = SegmentReader::new();
        let mut found = Vec::new();
        for chunk in bytes.chunks(piece) {
            reader.push(chunk);
            while let Some(item) = reader.next_item().unwrap() {
                prop_assert!(matches!(item, Item::Frame(_)), "no damage is in this file");
                if let Item::Frame(located) = item { found.push(located); }
            }
        }
        prop_assert_eq!(found, frames);
    }

    /// Proves that no bytes make the reader panic, loop, or lose count of what it passed.
    #[test]
    fn arbitrary_bytes_are_read_to_their_end(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xf5), Just(0x54), Just(0x57), Just(0xfa)], 0..600),
    ) {
        let mut reader = SegmentReader::new();
        reader.push(&bytes);
        reader.finish();
        while let Ok(Some(_)) = reader.next_item() {}
        prop_assert_eq!(reader.offset(), bytes.len() as u64);
    }
}

/// Proves that a name whose definition is torn is found again, because writers repeat definitions, and that values
/// until then are kept under a placeholder in a live reader and under the name in a whole one.
#[test]
fn torn_definitions_are_repeated() {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    for step in 0..5_000 {
        encoder.metrics(&mut out, Timestamp::from_micros(0), step, &[("loss", 1.0)]);
    }
    // The first definition is the first frame: break its text.
    out[HEADER_BYTES + 7] ^= 1;
    let segment = read_segment(&out).unwrap();
    assert_eq!(segment.damage.len(), 1);
    assert_eq!(segment.lost_frames, 1);
    let points: Vec<_> = segment.metric_points().collect();
    assert_eq!(points.len(), 5_000);
    assert!(points.iter().all(|point| point.name == "loss"));
    assert_eq!(NameTable::default().name_or_placeholder(NameId(3)), "unnamed_3");
}

/// Proves that a zero that was printed with decimals comes out as 0, and that one of the training process comes out bit for bit.
#[test]
fn a_printed_zero_comes_out_without_its_mark() {
    for (origin, bits) in [(Origin::Stdout, 0.0_f64.to_bits()), (Origin::Sdk, ROUNDED_ZERO.to_bits())] {
        let (mut encoder, mut out) = (Encoder::new(), Vec::new());
        encoder.begin(&mut out, &SegmentHeader { origin, ..header() });
        encoder.metrics(&mut out, Timestamp::from_micros(0), 1, &[("lr", ROUNDED_ZERO)]);
        let segment = read_segment(&out).unwrap();
        let values: Vec<u64> = segment.metric_points().map(|point| point.value.to_bits()).collect();
        assert_eq!(values, [bits], "{origin:?}");
        let Frame::Metrics(metrics) = &segment.frames.last().unwrap().frame else { panic!("{segment:?}") };
        assert!(is_rounded_zero(metrics.values[0].1), "the mark is in the record");
    }
}

/// Proves that strings over the bounds are cut at a character and events that do not fit lose fields, not the frame.
#[test]
fn oversized_content_is_cut_not_refused() {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    let at = Timestamp::from_micros(0);
    let long = "ä".repeat(MAX_TEXT_BYTES);
    let fields: Vec<_> = (0..9).map(|index| (format!("f{index}"), long.clone())).collect();
    encoder.event(&mut out, &Event { at, step: None, kind: long.clone(), fields });
    encoder.param(&mut out, &Param { at, name: long.clone(), value: long.clone() });
    let many: Vec<_> = (0..MAX_METRICS_PER_FRAME + 1).map(|_| ("m", 1.0)).collect();
    encoder.metrics(&mut out, at, 1, &many);
    let frames = frames_of(&out);
    let Frame::Event(event) = &frames[0].frame else { panic!("{:?}", frames[0]) };
    assert_eq!((event.kind.len(), event.fields.len()), (MAX_NAME_BYTES, 3));
    let Frame::Param(param) = &frames[1].frame else { panic!("{:?}", frames[1]) };
    assert_eq!((param.name.len(), param.value.len()), (MAX_NAME_BYTES, MAX_TEXT_BYTES));
    assert_eq!(read_segment(&out).unwrap().metric_points().count(), many.len());
}

/// A segment of series with their metrics frames one by one, and the same with the series as they are.
fn with_series(parts: &[(usize, usize)]) -> [Vec<u8>; 2] {
    [false, true].map(|is_series| {
        let (mut encoder, mut out, mut step) = (Encoder::new(), Vec::new(), 0);
        encoder.begin(&mut out, &header());
        for (names, steps) in parts {
            let names: Vec<String> = (0..*names).map(|name| format!("m{name}")).collect();
            let steps: Vec<u64> = (0..*steps as u64).map(|at| step + at * 3).collect();
            step += 7;
            let values: Vec<f64> = (0..names.len() * steps.len()).map(|at| at as f64 / 3.0 - 1.0).collect();
            match is_series {
                true => encoder.series(&mut out, header().at, &names, &steps, &values),
                false => steps.iter().zip(values.chunks(names.len())).for_each(|(step, values)| {
                    let values: Vec<_> =
                        names.iter().zip(values).map(|(name, value)| (name, *value)).collect();
                    encoder.metrics(&mut out, header().at, *step, &values);
                }),
            }
        }
        encoder.close(&mut out, &Close { at: header().at, dropped_frames: 0 });
        out
    })
}

proptest! {
    /// Proves that a series gives the frames that its steps would have had one by one, with their sequence numbers, in pieces of any size;
    /// and that one which is damaged costs its steps and nothing else, which are counted as lost.
    #[test]
    fn a_series_is_its_frames(
        parts in proptest::collection::vec((1usize..5, 1usize..60), 1..6), piece in 1usize..300, at in any::<usize>(),
    ) {
        let [apart, series] = with_series(&parts);
        let mut growing = GrowingSegment::default();
        let mut found = Vec::new();
        for piece in series.chunks(piece) {
            found.append(&mut growing.push(piece).unwrap().frames);
        }
        let without_places = |frames: &[Located]| {
            frames.iter().map(|located| (located.sequence, located.frame.clone())).collect::<Vec<_>>()
        };
        let expected = read_segment(&apart).unwrap();
        prop_assert_eq!(without_places(&found), without_places(&expected.frames));
        let whole = read_segment(&series).unwrap();
        prop_assert_eq!((without_places(&whole.frames), whole.lost_frames), (without_places(&expected.frames), 0));
        let mut torn = series.clone();
        let end = whole.frames.last().unwrap().offset as usize;
        let at = HEADER_BYTES + at % (end - HEADER_BYTES);
        torn[at] ^= 1;
        let torn = read_segment(&torn).unwrap();
        let read = u64::from(torn.header.is_some()) + torn.frames.len() as u64 + torn.lost_frames;
        prop_assert_eq!(read, 1 + whole.frames.len() as u64);
        prop_assert!(torn.frames.iter().all(|located| whole.frames.contains(located)));
    }
}

/// Proves that a series without names or steps, or shorter than it says, is malformed, and that the largest fits into a frame.
#[test]
fn malformed_series_are_damage() {
    let payload = |names: u32, steps: u32, bytes: usize| {
        [&[0; 8][..], &names.to_le_bytes(), &steps.to_le_bytes(), &vec![0; bytes]].concat()
    };
    for (names, steps, bytes) in
        [(0, 5, 99), (5, 0, 99), (1, 2, 35), (u32::MAX, u32::MAX, 99), (1, u32::MAX, 99)]
    {
        let mut out = Vec::new();
        crate::frames::FrameWriter::default()
            .write(&mut out, 11, |fields| fields.put(&payload(names, steps, bytes)));
        let [Item::Damage(damage)] = items_of(&out)[..] else { panic!("{names} {steps}") };
        assert_eq!(damage.skipped_bytes, out.len() as u64);
    }
    for names in [1, 2, 300, 3_000, MAX_METRICS_PER_FRAME] {
        let steps = Encoder::steps_of_series(names).max(2);
        if Encoder::steps_of_series(names) > 1 {
            let [_, series] = with_series(&[(names, steps)]);
            assert_eq!(read_segment(&series).unwrap().metric_points().count(), names * steps);
        }
    }
}
