//! Whatever the bytes, the reader gives each of them out once: as part of a frame or as damage, in pieces or at once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trackway_formats::record::{Frame, Item, SegmentReader, read_segment};

fuzz_target!(|input: (&[u8], u8)| {
    let (bytes, piece_bytes) = input;
    let Ok(whole) = read_segment(bytes) else {
        return;
    };
    let passed: u64 = whole.damage.iter().map(|damage| damage.skipped_bytes).sum();
    assert!(passed <= bytes.len() as u64);
    let mut reader = SegmentReader::new();
    let mut frames = 0;
    for piece in bytes.chunks(usize::from(piece_bytes) + 1) {
        reader.push(piece);
        frames += drain(&mut reader);
    }
    reader.finish();
    frames += drain(&mut reader);
    assert_eq!(frames, whole.frames.len() + header_frames(bytes));
    assert_eq!(reader.offset(), bytes.len() as u64);
});

fn drain(reader: &mut SegmentReader) -> usize {
    let items = std::iter::from_fn(|| reader.next_item().ok().flatten());
    items.filter(|item| matches!(item, Item::Frame(_))).count()
}

/// Header frames, which [`read_segment`] keeps apart.
fn header_frames(bytes: &[u8]) -> usize {
    let mut reader = SegmentReader::new();
    reader.push(bytes);
    reader.finish();
    let items = std::iter::from_fn(|| reader.next_item().ok().flatten());
    let header = |item: &Item| match item {
        Item::Frame(located) => matches!(located.frame, Frame::Header(_)),
        Item::Damage(_) => false,
    };
    items.filter(header).count()
}
