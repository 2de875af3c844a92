use regex::bytes::{Regex, RegexBuilder};

/// Compiles a table's pattern: ASCII, case-insensitive.
pub(super) fn regex(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .case_insensitive(true)
        .unicode(false)
        .build()
        .expect("every pattern of the tables compiles: a test builds them all")
}
