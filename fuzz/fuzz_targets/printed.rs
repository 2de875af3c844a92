//! Whatever a script prints, in pieces or at once, the reader finds the same metrics, no more than was printed, and
//! with names in proportion to it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trackway_formats::printed::{Printed, PrintedReader};

fuzz_target!(|input: (&[u8], u8)| {
    let (bytes, piece_bytes) = input;
    let whole = read(bytes, bytes.len().max(1));
    assert_eq!(whole, read(bytes, usize::from(piece_bytes) + 1));
    assert!(whole.len() <= bytes.len());
    let name_bytes: usize = whole.iter().flat_map(|(_, values)| values).map(|(name, _)| name.len()).sum();
    assert!(name_bytes <= 512 * bytes.len());
});

fn read(bytes: &[u8], piece_bytes: usize) -> Vec<(i64, Vec<(String, u64)>)> {
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    let reported = |metrics: &trackway_formats::printed::PrintedMetrics| {
        let values = metrics.values.iter().map(|(name, value)| (name.clone(), value.to_bits()));
        (metrics.step, values.collect())
    };
    for piece in bytes.chunks(piece_bytes) {
        reader.push(Printed::Stdout, piece, |metrics| found.push(reported(metrics)));
    }
    reader.finish(|metrics| found.push(reported(metrics)));
    found
}
