//! A source of bytes that notes what could not be read: an error of a disk or a missing permission says nothing about what is in a file.

use std::cell::RefCell;
use std::io;

use trackway_layouts::Source;

/// The same bytes as the source below it.
pub(crate) struct Noting<'s> {
    below: &'s dyn Source,
    fault: RefCell<Option<String>>,
}

impl<'s> Noting<'s> {
    pub fn new(below: &'s dyn Source) -> Self {
        Self { below, fault: RefCell::default() }
    }

    /// The first file that could not be read, and why.
    pub fn fault(self) -> Option<String> {
        self.fault.into_inner()
    }
}

impl Source for Noting<'_> {
    fn read_at(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let read = self.below.read_at(path, offset, length);
        // A file that is gone, or is none, is what the files are like, and not a fault of reading them.
        let says_nothing = |error: &&io::Error| {
            !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput
            )
        };
        if let Some(error) = read.as_ref().err().filter(says_nothing) {
            self.fault.borrow_mut().get_or_insert_with(|| format!("cannot read `{path}`: {error}"));
        }
        read
    }
}
