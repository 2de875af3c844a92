//! The regular expressions of the rules. Most processes read the few lines of one end, so an expression is compiled
//! when it is first used, and at first without what makes searches fast: that is most of the work.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use regex_automata::meta::{Config, Regex};
use regex_automata::util::{captures, syntax};

/// The text of a pattern: one of these.
macro_rules! any_of {
    ($first:expr $(, $more:expr)* $(,)?) => {
        concat!($first $(, "|", $more)*)
    };
}

/// A frame in one of these functions.
macro_rules! in_function {
    ($first:expr $(, $more:expr)* $(,)?) => {
        concat!(r"\bin (", $first $(, "|", $more)*, r")\b")
    };
}

/// A path through one of these folders.
macro_rules! in_folder {
    ($first:expr $(, $more:expr)* $(,)?) => {
        concat!(r"[/\\](", $first $(, "|", $more)*, r")[/\\]")
    };
}

/// A path of one of these files of Python code.
macro_rules! in_file {
    ($first:expr $(, $more:expr)* $(,)?) => {
        concat!(r"[/\\](", $first $(, "|", $more)*, r")\.py")
    };
}

/// Code that calls one of these.
macro_rules! calls {
    ($first:expr $(, $more:expr)* $(,)?) => {
        concat!(r"\b(", $first $(, "|", $more)*, r")\(")
    };
}

pub(crate) use {any_of, calls, in_file, in_folder, in_function};

/// Bytes that an expression searches before it is compiled again, to search as fast as it can.
const FEW_BYTES: usize = 16 * 1024;

/// An expression over bytes, of which the classes are those of ASCII, compiled when it is first used.
pub(crate) struct Pattern {
    source: Source,
    /// Whether upper and lower case are the same letters; parts in `(?-i:…)` are as they are written.
    ignores_case: bool,
    searched_bytes: AtomicUsize,
    small: OnceLock<Regex>,
    fast: OnceLock<Regex>,
}

enum Source {
    Fixed(&'static str),
    Made(fn() -> String),
}

/// The groups of a match.
pub(crate) struct MatchGroups<'h> {
    searched: &'h [u8],
    groups: captures::Captures,
}

impl<'h> MatchGroups<'h> {
    /// Where the group is; 0 is the whole match.
    pub(crate) fn range(&self, group: usize) -> Option<Range<usize>> {
        self.groups.get_group(group).map(|span| span.range())
    }

    /// The bytes of the group.
    pub(crate) fn get(&self, group: usize) -> Option<&'h [u8]> {
        Some(&self.searched[self.range(group)?])
    }

    /// The text of the group.
    pub(crate) fn text(&self, group: usize) -> Option<&'h str> {
        std::str::from_utf8(self.get(group)?).ok()
    }

    /// Where the group of this name is.
    pub(crate) fn range_of(&self, name: &str) -> Option<Range<usize>> {
        self.groups.get_group_by_name(name).map(|span| span.range())
    }

    /// The text of the group of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&'h str> {
        let found = self.groups.get_group_by_name(name)?;
        std::str::from_utf8(&self.searched[found.range()]).ok()
    }
}

impl Pattern {
    /// Without regard to case.
    pub(crate) const fn new(text: &'static str) -> Self {
        Self::of(Source::Fixed(text), true)
    }

    /// The same, of parts.
    pub(crate) const fn made(make: fn() -> String) -> Self {
        Self::of(Source::Made(make), true)
    }

    /// As it is written.
    pub(crate) const fn exact(text: &'static str) -> Self {
        Self::of(Source::Fixed(text), false)
    }

    /// The same, of parts.
    pub(crate) const fn exact_made(make: fn() -> String) -> Self {
        Self::of(Source::Made(make), false)
    }

    const fn of(source: Source, ignores_case: bool) -> Self {
        let searched_bytes = AtomicUsize::new(0);
        Self { source, ignores_case, searched_bytes, small: OnceLock::new(), fast: OnceLock::new() }
    }

    pub(crate) fn is_match(&self, searched: impl AsRef<[u8]>) -> bool {
        let searched = searched.as_ref();
        self.regex(searched).is_match(searched)
    }

    pub(crate) fn find(&self, searched: &[u8]) -> Option<Range<usize>> {
        self.regex(searched).find(searched).map(|found| found.range())
    }

    pub(crate) fn find_iter(&self, searched: &str) -> impl Iterator<Item = Range<usize>> {
        self.regex(searched.as_bytes()).find_iter(searched).map(|found| found.range())
    }

    pub(crate) fn captures<'h, T: AsRef<[u8]> + ?Sized>(&self, searched: &'h T) -> Option<MatchGroups<'h>> {
        self.captures_iter(searched).next()
    }

    pub(crate) fn captures_iter<'h, T: AsRef<[u8]> + ?Sized>(
        &self,
        searched: &'h T,
    ) -> impl Iterator<Item = MatchGroups<'h>> {
        let searched = searched.as_ref();
        self.regex(searched).captures_iter(searched).map(move |groups| MatchGroups { searched, groups })
    }

    /// The text with `by` in place of every match.
    pub(crate) fn replaced<'t>(&self, text: &'t str, by: &str) -> Cow<'t, str> {
        let mut whole = String::new();
        let mut end = 0;
        for found in self.find_iter(text) {
            whole.push_str(text.get(end..found.start).unwrap_or_default());
            whole.push_str(by);
            end = found.end;
        }
        if end == 0 && whole.is_empty() {
            return Cow::Borrowed(text);
        }
        whole.push_str(text.get(end..).unwrap_or_default());
        Cow::Owned(whole)
    }

    fn regex(&self, searched: &[u8]) -> &Regex {
        if let Some(fast) = self.fast.get() {
            return fast;
        }
        let before = self.searched_bytes.fetch_add(searched.len(), Ordering::Relaxed);
        if before < FEW_BYTES {
            let small = Config::new().hybrid(false).onepass(false).auto_prefilter(false);
            return self.small.get_or_init(|| self.compiled(small));
        }
        self.fast.get_or_init(|| self.compiled(Config::new()))
    }

    fn compiled(&self, config: Config) -> Regex {
        let syntax = syntax::Config::new().case_insensitive(self.ignores_case).unicode(false).utf8(false);
        let text = match self.source {
            Source::Fixed(text) => Cow::Borrowed(text),
            Source::Made(make) => Cow::Owned(make()),
        };
        Regex::builder()
            .configure(config.utf8_empty(false))
            .syntax(syntax)
            .build(&text)
            .expect("every expression compiles: the tests compile those of the tables, and use the others")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an expression finds the same before and after it is compiled again for long logs, with its groups,
    /// and that case counts only where it is said to.
    #[test]
    fn a_pattern_that_is_compiled_again_finds_the_same() {
        let long = "no space left on device ".repeat(FEW_BYTES / 16);
        let ignoring = Pattern::new(r"(?P<what>Space|(?-i:Disk)) (left|full)");
        let exact = Pattern::exact(r"(?P<what>Space|(?-i:Disk)) (left|full)");
        for _ in 0..2 {
            assert_eq!(ignoring.find(b"no SPACE LEFT"), Some(3..13));
            let found = ignoring.captures("no SPACE LEFT").unwrap();
            assert_eq!(
                (found.named("what"), found.text(2), found.range(2)),
                (Some("SPACE"), Some("LEFT"), Some(9..13))
            );
            assert!(ignoring.is_match("Disk full") && !ignoring.is_match("disk full"));
            assert!(exact.is_match("Space left") && !exact.is_match("space left"));
            assert_eq!(ignoring.replaced("a space left b", "#"), "a # b");
            assert_eq!(ignoring.replaced("é", "#"), "é");
            assert!(
                ignoring.is_match(&long) && !exact.is_match(&long),
                "from here on both are compiled again"
            );
        }
        assert!(ignoring.fast.get().is_some() && exact.fast.get().is_some());
    }
}
