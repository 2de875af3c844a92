use std::ops::Deref;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

/// A pattern of a table: ASCII, case-insensitive, compiled when it is first used.
pub(super) struct Pattern {
    text: &'static str,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    pub(super) const fn new(text: &'static str) -> Self {
        Self { text, compiled: OnceLock::new() }
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.compiled.get_or_init(|| {
            RegexBuilder::new(self.text)
                .case_insensitive(true)
                .unicode(false)
                .build()
                .expect("every pattern of the tables compiles: a test builds them all")
        })
    }
}
