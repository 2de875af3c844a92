//! A streaming scanner: one pass, bounded memory, every signature at once.
//!
//! Two filters: (1) one Aho–Corasick automaton over the lower-cased block finds the literals of all phrases, walked
//! in several lanes at once so that the processor overlaps their cache misses; (2) on the lines it points at, the
//! regular expressions of just those phrases confirm on the original bytes. A few frames' worth of traceback state
//! is carried along, so that a hit knows what the failing code was doing.

mod automaton;
mod compiled;
mod ending;
mod escapes;
mod evidence;
mod frame;
mod line;
mod phases;
mod scanner;
#[cfg(test)]
mod tests;
mod traceback;

pub use ending::{LastWords, Moment, StreamEnding};
pub(crate) use ending::{falls_short, is_counted};
pub use evidence::{Handling, Hit, LogEvidence, OwnFrame, Phase, TracebackEnd};
pub(crate) use frame::is_installed;
pub use line::MAX_TEXT_BYTES;
pub use scanner::{FIRST_HITS_PER_SIGNATURE, LAST_LINES, LogScanner};
