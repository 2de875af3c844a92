//! What a build without feature `media` has in place of the decoders.

use std::path::Path;

use trackway_tables::ReadContext;

use super::Content;
use super::reading::{Format, Refusal};

/// An image is not checked, and says why.
pub(super) fn read(
    _path: &Path,
    _length: u64,
    _promised: Format,
    _context: &ReadContext,
) -> Result<Content, Refusal> {
    Err(Refusal::NotChecked("this build decodes no images: build it with feature `media`".into()))
}
