//! TensorBoard's event files, as far as they hold scalars and hyperparameters.
//!
//! [`EventReader`] takes a file as it grows. Scalars are read in both forms that writers use: `simple_value`, and a
//! tensor of one number (TensorFlow 2, and Keras through it). Images, graphs, histograms and texts are skipped. A
//! `SessionLog` of status START means that the program was restarted at its step: TensorBoard drops every point of that
//! step or later that was written before, and so must readers of [`EventItem::Restart`].

mod event;
mod frames;
pub mod protobuf;
#[cfg(test)]
mod tests;

pub use event::{EventItem, Scalar};
pub use frames::FRAME_BYTES_MAX;
use frames::{Framed, frame};

/// An event larger than this is passed without being held: no scalar is.
const HELD_BYTES_MAX: usize = 1 << 20;

/// Reads one event file, pushed in pieces.
#[derive(Debug, Default)]
pub struct EventReader {
    held: Vec<u8>,
    /// Bytes of a large event that are still to come and are not held.
    to_pass: usize,
    damaged: bool,
}

impl EventReader {
    /// Takes the next bytes of the file; calls `found` for what is in every whole event.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(EventItem)) {
        let passed = self.to_pass.min(bytes.len());
        self.to_pass -= passed;
        if self.damaged {
            return;
        }
        self.held.extend_from_slice(&bytes[passed..]);
        let mut at = 0;
        while self.to_pass == 0 && !self.damaged {
            match frame(&self.held[at..]) {
                Framed::Frame(payload, total) => {
                    event::read_event(payload, &mut found);
                    at += total;
                }
                Framed::Incomplete(total) if total > HELD_BYTES_MAX => {
                    self.to_pass = total - (self.held.len() - at);
                    at = self.held.len();
                }
                Framed::Incomplete(_) => break,
                Framed::Damaged => self.damaged = true,
            }
        }
        self.held.drain(..at);
        if self.damaged {
            self.held = Vec::new();
        }
    }

    /// Whether something was found that is not an event; nothing after it can be read.
    #[cfg(test)]
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Bytes of an event that is not whole yet.
    #[cfg(test)]
    pub(crate) fn incomplete_bytes(&self) -> usize {
        self.held.len()
    }
}
