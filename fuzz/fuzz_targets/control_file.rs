//! Whatever the bytes, and however they are cut into pieces, the control file is read alike and without a panic. What is read is read
//! alike when it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trackway_core::Timestamp;
use trackway_formats::control::{Line, LineReader, WHY_BYTES_MAX, line, next_id};

fuzz_target!(|bytes: &[u8]| {
    let lines = LineReader::default().read(bytes);
    assert!((lines.len() as u64) < next_id(bytes));
    let size = bytes.first().map_or(1, |first| usize::from(*first).max(1));
    let mut reader = LineReader::default();
    let pieces: Vec<Line> = bytes.chunks(size).flat_map(|piece| reader.read(piece)).collect();
    assert_eq!(pieces, lines);
    for read in lines {
        let Line::Request { id, command, why } = &read else { continue };
        if why.len() <= WHY_BYTES_MAX {
            let written = line(*id, Timestamp::from_micros(0), *command, why);
            assert_eq!(LineReader::default().read(written.as_bytes()), [read]);
        }
    }
});
