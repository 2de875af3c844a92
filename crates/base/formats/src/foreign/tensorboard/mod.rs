//! TensorBoard's event files, as far as they hold scalars and hyperparameters.
//!
//! [`EventReader`] takes a file as it grows. Scalars are read in both forms that writers use: `simple_value`, and a
//! tensor of one number (TensorFlow 2, and Keras through it). Images, graphs, histograms and texts are named and not read. A
//! `SessionLog` of status START means that the program was restarted at its step: TensorBoard drops every point of that
//! step or later that was written before, and so must readers of [`EventItem::Restart`].
//!
//! Damage ends nothing: a record with a wrong checksum is left out and named, and what follows it is read. Where a length cannot be
//! trusted, the next record is searched for.

mod damage;
mod event;
mod folders;
mod frames;
pub mod protobuf;
#[cfg(test)]
mod tests;

pub use damage::{Damage, DamageKind};
pub use event::{EventItem, ObjectKind, Scalar};
pub use folders::{EventFolders, OF_SESSION, is_time_stamp};
pub use frames::FRAME_BYTES_MAX;
use frames::{Framed, frame, next_header};

/// A record larger than this is passed without being held, and named.
const HELD_BYTES_MAX: usize = 8 << 20;
/// So often a record is searched for in what is left at the end of a file.
const SEARCHES_MAX: usize = 100;

/// Reads one event file, pushed in pieces.
#[derive(Debug, Default)]
pub struct EventReader {
    held: Vec<u8>,
    /// Where the first of the held bytes is in the file.
    held_at: u64,
    /// Bytes of a large record that are still to come and are not held.
    to_pass: usize,
    /// Where the search for the next record began, while none is found.
    lost_at: Option<u64>,
}

impl EventReader {
    /// Takes the next bytes of the file; calls `found` for what is in every whole record, and for every one that is damaged.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(EventItem)) {
        let passed = self.to_pass.min(bytes.len());
        self.to_pass -= passed;
        self.held_at += passed as u64;
        self.held.extend_from_slice(&bytes[passed..]);
        self.take(&mut found);
    }

    /// The file ends here: names what is left of it.
    pub fn finish(&mut self, mut found: impl FnMut(EventItem)) {
        // A record that was cut off may be followed by whole ones, of a later writer.
        for _ in 0..SEARCHES_MAX {
            if self.to_pass > 0 || self.lost_at.is_some() || self.held.len() <= 1 {
                break;
            }
            let Ok(place) = next_header(&self.held[1..]) else { break };
            let lost = Damage::new(DamageKind::NoRecord, self.held_at, place as u64 + 1);
            found(EventItem::Damage(lost));
            self.drop_held(place + 1);
            self.take(&mut found);
        }
        let end = self.held_at + self.held.len() as u64;
        let left = match self.lost_at {
            Some(from) => Some(Damage::new(DamageKind::NoRecord, from, end - from)),
            None if self.held.is_empty() => None,
            None => Some(Damage::new(DamageKind::Incomplete, self.held_at, end - self.held_at)),
        };
        left.into_iter().for_each(|damage| found(EventItem::Damage(damage)));
        *self = Self { held_at: end, ..Self::default() };
    }

    /// Takes what is whole off the held bytes.
    fn take(&mut self, found: &mut impl FnMut(EventItem)) {
        let mut at = 0;
        while let Some(next) = self.take_next(at, found) {
            at = next;
        }
        self.drop_held(at);
    }

    fn drop_held(&mut self, count: usize) {
        self.held.drain(..count);
        self.held_at += count as u64;
    }

    /// Takes what begins at this place of the held bytes, and gives the place after it; none until there are more bytes.
    fn take_next(&mut self, at: usize, found: &mut impl FnMut(EventItem)) -> Option<usize> {
        let (bytes, place) = (&self.held[at..], self.held_at + at as u64);
        if bytes.is_empty() {
            return None;
        }
        if let Some(from) = self.lost_at {
            return match next_header(bytes) {
                Ok(passed) => {
                    let lost = Damage::new(DamageKind::NoRecord, from, place + passed as u64 - from);
                    found(EventItem::Damage(lost));
                    self.lost_at = None;
                    Some(at + passed)
                }
                Err(passed) => (passed > 0).then_some(at + passed),
            };
        }
        match frame(bytes) {
            Framed::Frame(_, total) | Framed::Changed(_, total) | Framed::Incomplete(total)
                if total > HELD_BYTES_MAX =>
            {
                found(EventItem::Damage(Damage::new(DamageKind::TooLarge, place, total as u64)));
                let here = total.min(bytes.len());
                self.to_pass = total - here;
                Some(at + here)
            }
            Framed::Frame(payload, total) => {
                if !event::read_event(payload, found) {
                    found(EventItem::Damage(damaged(DamageKind::NotAnEvent, place, total, payload)));
                }
                Some(at + total)
            }
            Framed::Changed(payload, total) => {
                found(EventItem::Damage(damaged(DamageKind::Checksum, place, total, payload)));
                Some(at + total)
            }
            Framed::Incomplete(_) => None,
            Framed::NoFrame => {
                self.lost_at = Some(place);
                Some(at)
            }
        }
    }
}

/// A damaged record with the tag and the step that it seems to have.
fn damaged(kind: DamageKind, offset: u64, bytes: usize, payload: &[u8]) -> Damage {
    let (tag, step) = event::seems(payload);
    Damage { tag, step, ..Damage::new(kind, offset, bytes as u64) }
}
