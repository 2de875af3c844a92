use std::convert::Infallible;

use crate::bulk::parallel::{cores, try_for_each};

/// Bytes that one thread copies at a time.
const PIECE_BYTES: usize = 16 << 20;
/// Fewer bytes than this are copied faster than threads start.
const PARALLEL_BYTES_MIN: usize = 64 << 20;
/// One core cannot fill the memory's bandwidth; a few can.
const MAX_THREADS: usize = 4;

/// Copies each source over its target, which has the same length.
pub(crate) fn copy_all(copies: Vec<(&[u8], &mut [u8])>) {
    let total_bytes: usize = copies.iter().map(|(from, _)| from.len()).sum();
    let threads = if total_bytes < PARALLEL_BYTES_MIN { 1 } else { cores().min(MAX_THREADS) };
    let pieces = copies.into_iter().flat_map(|(from, to)| {
        assert_eq!(from.len(), to.len(), "a copy has the length of its source");
        from.chunks(PIECE_BYTES).zip(to.chunks_mut(PIECE_BYTES))
    });
    let done: Result<(), Infallible> = try_for_each(
        threads,
        pieces,
        || Ok(()),
        |(), (from, to)| {
            to.copy_from_slice(from);
            Ok(())
        },
    );
    done.unwrap_or_else(|never| match never {});
}
