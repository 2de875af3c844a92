//! What frames owe to any record: no type or payload here is known to the flight record.

use proptest::prelude::*;

use super::layout::header_check;
use super::*;

const MAGIC: &[u8] = b"SOUNDINGS\n";

/// The frame types of the record of these tests: a depth, and a remark.
const DEPTH: u8 = 200;
const REMARK: u8 = 7;

/// A file of frames of two types.
fn soundings(count: u32) -> Vec<u8> {
    let (mut frames, mut out) = (FrameWriter::default(), MAGIC.to_vec());
    for number in 0..count {
        frames.write(&mut out, DEPTH, |payload| {
            payload.put_u16(number as u16);
            payload.put_f64(-f64::from(number) / 3.0);
        });
        frames.write(&mut out, REMARK, |payload| payload.put_text(&"sand ".repeat(number as usize % 9)));
    }
    assert_eq!(frames.frame_count(), 2 * count);
    out
}

/// Frames with their offset, sequence, type and payload, and the damage between them.
type Contents = (Vec<(u64, u32, u8, Vec<u8>)>, Vec<Damage>);

fn contents(bytes: &[u8], piece_bytes: usize) -> Contents {
    let mut reader = FrameReader::new(MAGIC);
    let (mut frames, mut damage) = (Vec::new(), Vec::new());
    let mut drain = |reader: &mut FrameReader| {
        while let Some(found) = reader.next_found() {
            match found {
                FrameOrDamage::Frame(whole) => {
                    frames.push((whole.offset, whole.sequence, whole.frame_type, whole.payload.to_vec()));
                }
                FrameOrDamage::Damage(found) => damage.push(found),
            }
        }
    };
    for piece in bytes.chunks(piece_bytes) {
        reader.push(piece);
        drain(&mut reader);
    }
    reader.finish();
    drain(&mut reader);
    assert_eq!((reader.offset(), reader.tail()), (bytes.len() as u64, Tail::Clean));
    (frames, damage)
}

proptest! {
    /// Proves that a record of any types comes back whole in pieces of any size, and that damage costs only the frames it overlaps.
    #[test]
    fn another_record_has_the_same_frames(piece in 1usize..200, at in 0usize..1_500) {
        let bytes = soundings(20);
        let (whole, none) = contents(&bytes, piece);
        prop_assert_eq!((whole.len(), none), (40, vec![]));
        let types: Vec<(u32, u8)> = whole.iter().map(|frame| (frame.1, frame.2)).collect();
        let written: Vec<(u32, u8)> = (0..40).map(|number| (number, [DEPTH, REMARK][number as usize % 2])).collect();
        prop_assert_eq!(types, written);
        let mut damaged = bytes.clone();
        let at = MAGIC.len() + at % (bytes.len() - MAGIC.len());
        damaged[at] ^= 0x10;
        let (left, damage) = contents(&damaged, piece);
        let lost: Vec<_> = whole.iter().filter(|frame| !left.contains(frame)).collect();
        prop_assert_eq!((lost.len(), damage.len(), left.len()), (1, 1, 39));
        prop_assert_eq!(damage[0].offset, lost[0].0);
    }
}

/// Proves that a flip of any single byte of a frame header is found by the header check alone, so that a live reader
/// never waits for bytes that a damaged length promises.
#[test]
fn a_flipped_header_byte_is_found_at_once() {
    let (mut frames, mut frame) = (FrameWriter::default(), Vec::new());
    frames.write(&mut frame, REMARK, |payload| payload.put_text("mud"));
    for position in 4..HEADER_BYTES {
        for flip in 1..=255u8 {
            let mut header: [u8; HEADER_BYTES] = *frame.first_chunk().unwrap();
            header[position] ^= flip;
            let check = u16::from_le_bytes([header[14], header[15]]);
            assert_ne!(header_check(&header[4..14]), check, "byte {position} ^ {flip}");
        }
    }
}

/// Proves that fields are read as they were written, and that a payload that is too short gives none instead of something else.
#[test]
fn fields_come_back() {
    let (mut frames, mut out) = (FrameWriter::default(), MAGIC.to_vec());
    frames.write(&mut out, REMARK, |payload| {
        payload.put_f64(-0.0);
        payload.put_name("größe");
        let mut left = [3, 2].into_iter();
        payload.put_counted(|payload| left.next().map(|value| payload.put_u8(value)).is_some());
    });
    let (found, _) = contents(&out, out.len());
    let payload = &found[0].3;
    let mut fields = Fields::of(payload);
    assert_eq!(fields.f64().map(f64::to_bits), Some((-0.0_f64).to_bits()));
    assert_eq!((fields.name().as_deref(), fields.u16()), (Some("größe"), Some(2)));
    assert_eq!((fields.u8(), fields.u8(), fields.u8()), (Some(3), Some(2), None));
    assert!(Fields::of(&payload[..7]).f64().is_none() && Fields::of(b"\x05\x00abc").name().is_none());
}
