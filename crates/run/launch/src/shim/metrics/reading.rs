//! Reads the metrics of the outputs in a separate thread, so that a script which prints much waits for the logs only.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use trackway_core::Timestamp;
use trackway_formats::printed::Printed;

use super::printed::{FoundMetrics, OutputMetrics};

/// So many pieces of output, each one read of a pipe (256 KiB at most), wait; then the outputs wait, too. A burst of 32
/// MiB is as fast as the logs.
const PIECES_MAX: usize = 128;

/// So many pieces that were read are kept for the next ones. The system gives and takes back rooms of their size page by page.
const ROOMS_MAX: usize = 8;

/// What was printed, and when at the earliest.
pub(in crate::shim) struct Piece {
    output: Printed,
    bytes: Vec<u8>,
    at: Timestamp,
}

/// Where the metrics are read.
pub(in crate::shim) enum OutputReading {
    Beside {
        pieces: SyncSender<Piece>,
        rooms: Receiver<Vec<u8>>,
        thread: JoinHandle<FoundMetrics>,
    },
    /// No thread can be had.
    Here(Box<OutputMetrics>),
}

impl OutputReading {
    pub fn begin(make: impl Fn() -> OutputMetrics + Send + Clone + 'static) -> Self {
        let (pieces, waiting) = sync_channel(PIECES_MAX);
        let (left, rooms) = sync_channel(ROOMS_MAX);
        let make_there = make.clone();
        let work = move || read_all(make_there(), &waiting, &left);
        match std::thread::Builder::new().name("metrics".into()).spawn(work) {
            Ok(thread) => Self::Beside { pieces, rooms, thread },
            Err(_) => Self::Here(Box::new(make())),
        }
    }

    /// Takes what the script printed, in the order in which it was read.
    pub fn push(&mut self, output: Printed, bytes: &[u8], at: Timestamp) {
        match self {
            Self::Beside { pieces, rooms, .. } => {
                let mut room = rooms.try_recv().unwrap_or_default();
                room.clear();
                room.extend_from_slice(bytes);
                // A thread that is gone reads nothing more; the logs continue.
                drop(pieces.send(Piece { output, bytes: room, at }));
            }
            Self::Here(metrics) => metrics.push(output, bytes, at),
        }
    }

    /// Reads what waits and ends the record in order.
    pub fn finish(self) -> FoundMetrics {
        match self {
            Self::Beside { pieces, thread, .. } => {
                drop(pieces);
                thread.join().unwrap_or_default()
            }
            Self::Here(metrics) => metrics.finish(),
        }
    }
}

fn read_all(
    mut metrics: OutputMetrics,
    pieces: &Receiver<Piece>,
    rooms: &SyncSender<Vec<u8>>,
) -> FoundMetrics {
    for Piece { output, bytes, at } in pieces {
        metrics.push(output, &bytes, at);
        // Where enough are kept it is given back.
        rooms.try_send(bytes).ok();
    }
    metrics.finish()
}
