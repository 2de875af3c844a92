//! The log of tests: a list of notes, each with the state that its writer had seen.

use serde::{Deserialize, Serialize};

use crate::log::{Claim, Fold, Item};

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// An epoch is taken.
    Claim(Claim),
    /// A note of a writer.
    Said {
        /// The writer.
        writer: u64,
        /// Its how-manieth note.
        sequence: u64,
        /// The epoch it has, when it has one.
        epoch: Option<u64>,
        /// The newest number that its writer had read.
        seen: u64,
    },
    /// All before it.
    Summary {
        /// The state.
        notebook: Notebook,
    },
    /// Something else.
    #[serde(other)]
    Unknown,
}

/// A note and its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedNote {
    /// Its number.
    pub number: u64,
    /// The writer.
    pub writer: u64,
    /// Its how-manieth note.
    pub sequence: u64,
}

/// All notes of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notebook {
    /// In the order of their numbers.
    pub said: Vec<NumberedNote>,
    /// Numbers without content.
    pub damaged: Vec<u64>,
    /// The newest claim.
    pub claim: Option<Claim>,
    /// The newest number.
    pub tail: u64,
    /// What no log may hold: notes decided without the entries before them.
    pub faults: Vec<String>,
}

impl Notebook {
    /// Whether a writer's note exists.
    #[must_use]
    pub fn has(&self, writer: u64, sequence: u64) -> bool {
        self.said.iter().any(|said| (said.writer, said.sequence) == (writer, sequence))
    }

    /// The next note of a writer, unless it exists already.
    #[must_use]
    pub fn note(&self, writer: u64, sequence: u64, epoch: Option<u64>) -> Option<Note> {
        let seen = self.tail;
        (!self.has(writer, sequence)).then_some(Note::Said { writer, sequence, epoch, seen })
    }

    fn take_note(&mut self, number: u64, note: Note) {
        match note {
            Note::Claim(claim) => {
                if self.claim.as_ref().is_some_and(|before| before.epoch >= claim.epoch) {
                    self.faults.push(format!("entry {number} claims epoch {} again", claim.epoch));
                }
                self.claim = Some(claim);
            }
            Note::Said { writer, sequence, epoch, seen } => {
                if seen != number - 1 {
                    self.faults.push(format!("entry {number} was decided after {seen}"));
                }
                let held = self.claim.as_ref().map(|claim| claim.epoch);
                if epoch.is_some() && epoch < held {
                    self.faults.push(format!("entry {number} is of epoch {epoch:?} behind {held:?}"));
                }
                if self.has(writer, sequence) {
                    self.faults.push(format!("entry {number} says {writer}.{sequence} again"));
                }
                self.said.push(NumberedNote { number, writer, sequence });
            }
            Note::Summary { .. } | Note::Unknown => {}
        }
    }
}

impl Fold for Notebook {
    type Body = Note;

    fn take(&mut self, item: Item<Note>) {
        let number = item.number();
        match item {
            Item::Entry(entry) => self.take_note(number, entry.body),
            Item::Damaged { number, .. } => self.damaged.push(number),
        }
        self.tail = number;
    }

    fn claim(&self) -> Option<Claim> {
        self.claim.clone()
    }

    fn summary(&self) -> Note {
        Note::Summary { notebook: self.clone() }
    }

    fn restore(body: &Note) -> Option<Self> {
        match body {
            Note::Summary { notebook } => Some(notebook.clone()),
            _ => None,
        }
    }

    fn summary_items(&self) -> u64 {
        self.said.len() as u64
    }
}
