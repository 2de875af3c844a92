//! "The same cause again": a text without what changes from run to run.

use crate::pattern::Pattern;
use trackway_core::TerminationReason;

/// The longest fingerprint.
const MAX_FINGERPRINT_BYTES: usize = 160;

static PREFIX: Pattern = Pattern::exact(
    r"^(\s*(\[[^\]]*\]:?|\([^)]*pid[^)]*\)|\d{4}-\d\d-\d\d[T ][\d:.,]+Z?|\w+@?\w*: (?:INFO|ERROR|WARNING):?|\|))+\s*",
);
static CHANGING: Pattern = Pattern::exact(
    r#"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|(?:[A-Za-z]:)?(?:[/\\][\w\x80-\xff.@+~-]+){2,}[/\\]?|\b[0-9a-f]{8,}\b|\d+(?:[.,:]\d+)*"#,
);

/// The reason and the deciding line, with paths, addresses, hashes and numbers replaced by `#`.
#[must_use]
pub fn fingerprint(reason: TerminationReason, text: &str) -> String {
    let bare = PREFIX.replaced(text.trim(), "");
    let steady = CHANGING.replaced(&bare, "#");
    let mut steady = steady.split_whitespace().collect::<Vec<_>>().join(" ");
    steady.truncate(steady.floor_char_boundary(MAX_FINGERPRINT_BYTES));
    format!("{reason}: {steady}")
}
