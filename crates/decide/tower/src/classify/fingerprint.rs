//! "The same cause again": a text without what changes from run to run.

use std::sync::LazyLock;

use regex::Regex;
use trackway_core::TerminationReason;

/// The longest fingerprint.
const MAX_FINGERPRINT_BYTES: usize = 160;

static PREFIX: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\s*(\[[^\]]*\]:?|\([^)]*pid[^)]*\)|\d{4}-\d\d-\d\d[T ][\d:.,]+Z?|\w+@?\w*: (?:INFO|ERROR|WARNING):?|\|))+\s*")
        .expect("a fixed pattern")
});
static CHANGING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|(?:[A-Za-z]:)?(?:[/\\][\w.@+~-]+){2,}[/\\]?|\b[0-9a-f]{8,}\b|\d+(?:[.,:]\d+)*"#,
    )
    .expect("a fixed pattern")
});

/// The reason and the deciding line, with paths, addresses, hashes and numbers replaced by `#`.
#[must_use]
pub fn fingerprint(reason: TerminationReason, text: &str) -> String {
    let bare = PREFIX.replace(text.trim(), "");
    let steady = CHANGING.replace_all(&bare, "#");
    let mut steady = steady.split_whitespace().collect::<Vec<_>>().join(" ");
    steady.truncate(steady.floor_char_boundary(MAX_FINGERPRINT_BYTES));
    format!("{reason}: {steady}")
}
