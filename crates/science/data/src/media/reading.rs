//! Reading files within a budget of memory.

use std::fs;
use std::path::Path;

use trackway_tables::ReadContext;
use trackway_tables::limits::MEDIA_VARIABLE;

use super::Content;

/// The formats that are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Png,
    Jpeg,
    Bmp,
    WebP,
}

/// Why a file has no content to speak of. Smaller than [`Content`].
pub(super) enum Refusal {
    Broken(String),
    NotChecked(String),
}

impl From<Refusal> for Content {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Broken(why) => Self::Broken(why),
            Refusal::NotChecked(why) => Self::NotChecked(why),
        }
    }
}

/// What comes of the bytes of a file, read when memory for them and `more` bytes is left of the budget; or why it is not read.
pub(super) fn read_within<T>(
    path: &Path,
    length: u64,
    more: u64,
    context: &ReadContext,
    look: impl FnOnce(&[u8]) -> T,
) -> Result<T, Refusal> {
    let granted = context.media().take(length.saturating_add(more));
    let _granted = granted.ok_or_else(|| Refusal::NotChecked(too_large(context)))?;
    let bytes = fs::read(path).map_err(|error| Refusal::Broken(error.to_string()))?;
    Ok(look(&bytes))
}

pub(super) fn too_large(context: &ReadContext) -> String {
    let max = context.limits().media_bytes_max >> 20;
    format!("reading it takes more than {max} MiB; raise the limit with {MEDIA_VARIABLE}")
}
