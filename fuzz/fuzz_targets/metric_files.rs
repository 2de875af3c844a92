//! Whatever is in a file of metrics or settings, in pieces or at once, its readers find the same, and no more than is there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trackway_formats::metric_files::{Form, LogReader, read_overrides, read_settings, read_state};

fuzz_target!(|input: (&[u8], u8)| {
    let (bytes, piece_bytes) = input;
    for form in [Form::Table, Form::Lines] {
        let whole = read(form, bytes, bytes.len().max(1));
        assert_eq!(whole, read(form, bytes, usize::from(piece_bytes) + 1));
        assert!(whole.len() <= bytes.len());
    }
    let text = String::from_utf8_lossy(bytes);
    assert!(read_state(&text).map_or(0, |entries| entries.len()) <= text.len());
    assert!(read_settings(&text).named.len() + read_overrides(&text).named.len() <= 512);
});

fn read(form: Form, bytes: &[u8], piece_bytes: usize) -> Vec<(i64, Vec<(String, u64)>)> {
    let (mut reader, mut found) = (LogReader::new(form), Vec::new());
    let mut take = |point: trackway_formats::metric_files::Point| {
        let values = point.values.into_iter().map(|(name, value)| (name, value.to_bits())).collect();
        found.push((point.step, values));
    };
    bytes.chunks(piece_bytes).for_each(|piece| reader.push(piece, &mut take));
    reader.finish(&mut take);
    found
}
