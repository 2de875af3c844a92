//! Passes the script's output on while it is written.

use std::sync::Arc;

use trackway_launch::{AttemptChannel, GrowingFile, Terminal};

use crate::reporter::{Reporter, Stream};

/// Bytes passed on in one piece.
const PIECE_BYTES: u64 = 256 << 10;
/// Most bytes of one stream passed on in one turn, so that the supervisor keeps looking at other things.
const TURN_BYTES_MAX: usize = 16 << 20;

/// Follows both logs of an attempt.
pub struct Echo {
    channel: Arc<dyn AttemptChannel>,
    /// The streams, and up to where they were passed on; none: what is there now is skipped.
    streams: Vec<(Stream, Option<u64>)>,
}

impl Echo {
    /// From the beginning, or only what comes from now on; without what a terminal shows.
    #[must_use]
    pub fn new(channel: Arc<dyn AttemptChannel>, from_end: bool, terminal: Option<&Terminal>) -> Self {
        let offset = (!from_end).then_some(0);
        let streams = [Stream::Stdout, Stream::Stderr].into_iter();
        let streams = streams.filter(|stream| !terminal.is_some_and(|terminal| terminal.shows(*stream)));
        Self { channel, streams: streams.map(|stream| (stream, offset)).collect() }
    }

    /// Passes on what was written since the last turn. True when there may be more at once.
    ///
    /// A log that cannot be read is skipped: the log itself is what counts, this is only its echo.
    pub fn turn(&mut self, reporter: &dyn Reporter) -> bool {
        let mut more = false;
        for (stream, passed_on) in &mut self.streams {
            let file = GrowingFile::Log(*stream);
            let Some(mut offset) = passed_on.or_else(|| self.channel.size_bytes(file).ok()) else { continue };
            let mut turn_bytes = 0;
            while turn_bytes < TURN_BYTES_MAX {
                match self.channel.read(file, offset, PIECE_BYTES) {
                    Ok(piece) if !piece.is_empty() => {
                        reporter.output(*stream, &piece);
                        offset += piece.len() as u64;
                        turn_bytes += piece.len();
                    }
                    _ => break,
                }
            }
            more |= turn_bytes >= TURN_BYTES_MAX;
            *passed_on = Some(offset);
        }
        more
    }
}
