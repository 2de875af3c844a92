//! Whatever an event file holds, in pieces or at once, the reader finds the same, and names no damage outside of the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trackway_formats::tensorboard::{EventItem, EventReader};

fuzz_target!(|input: (&[u8], u8)| {
    let (bytes, piece_bytes) = input;
    assert_eq!(read(bytes, bytes.len().max(1)), read(bytes, usize::from(piece_bytes) + 1));
});

fn read(bytes: &[u8], piece_bytes: usize) -> Vec<String> {
    let (mut reader, mut found) = (EventReader::default(), Vec::new());
    for piece in bytes.chunks(piece_bytes) {
        reader.push(piece, |item| found.push(item));
    }
    reader.finish(|item| found.push(item));
    for item in &found {
        if let EventItem::Damage(damage) = item {
            assert!(damage.offset < bytes.len() as u64, "{damage}");
        }
    }
    found.iter().map(|item| format!("{item:?}")).collect()
}
