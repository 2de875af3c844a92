//! Whether the attempt's processes wrote a file.

use std::path::Path;

use trackway_adopt::{Evidence, Owner, WrittenFile, owner};

use crate::shim::checkpoints::writers::WriterView;

/// What shows who wrote.
pub(super) enum Proof {
    /// Nothing else writes there.
    Place,
    Seen(WriterView),
    Nothing,
}

/// What is known of the writers of one file.
#[derive(Debug, Default)]
pub(super) struct Ownership {
    shown_by: Option<&'static str>,
    is_others: bool,
    why: Option<String>,
    /// Its state at the look before: of one that is written all the time, the last write is not judged yet.
    before: Option<WrittenFile>,
}

impl Ownership {
    /// Looks again. Whether the attempt wrote it, and nothing else did.
    pub fn look(&mut self, proof: &Proof, path: &Path) -> bool {
        let sight = match proof {
            Proof::Place => {
                self.shown_by = Some("place");
                return true;
            }
            Proof::Nothing => return false,
            Proof::Seen(sight) => sight,
        };
        let now = WrittenFile::at(path);
        for file in self.before.iter().chain(&now) {
            match owner_of(sight, *file) {
                Some(Owner::Own { by }) => self.shown_by = Some(by.as_str()),
                Some(other) => {
                    self.is_others |= matches!(other, Owner::Other { .. });
                    self.why = other.reason();
                }
                None => {}
            }
        }
        self.before = now;
        self.shown_by.is_some() && !self.is_others
    }

    pub fn shown_by(&self) -> &'static str {
        self.shown_by.unwrap_or_default()
    }

    /// Why it is not read; none if it is.
    pub fn reason(&self) -> Option<&str> {
        let is_read = self.shown_by.is_some() && !self.is_others;
        self.why.as_deref().filter(|_| !is_read)
    }
}

/// The same decision as about checkpoints, but of a file that grows: how much of it the attempt wrote does not count.
fn owner_of(sight: &WriterView, file: WrittenFile) -> Option<Owner> {
    let seen = sight.of(file);
    owner(&Evidence {
        reported: false,
        kernel: seen.kernel,
        open: seen.open,
        company: seen.company,
        less: None,
        beyond: None,
        is_named: false,
    })
}
