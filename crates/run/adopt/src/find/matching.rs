//! Paths with `*`, `?` and `[…]`: which paths there are that one names, and whether two can name the same.
//!
//! A byte that is part of no character counts as one character, in a pattern as [`trackway_formats::path_text`] has it:
//! `ckpt-\xff.pt` is named by itself and by `ckpt-?.pt`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};
use trackway_formats::path_text::path_of;

/// `*` does not match a `/`, and a name that begins with a full stop only by one.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
/// Most entries of folders that are compared with the patterns of a run in one look.
const ENTRIES_MAX: usize = 100_000;
/// Folders below each other that `**` enters.
const DEPTH_MAX: usize = 32;
/// Characters that no name has, for bytes that are part of none: of the last private plane.
const LONE_BYTES: u32 = 0x10_F700;

/// A path with wildcards, absolute.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    /// As it was written.
    pub text: String,
    base: PathBuf,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    Plain(OsString),
    Wild(Pattern),
    /// `**`: any number of folders.
    Deep,
}

impl PathPattern {
    /// # Errors
    /// What is wrong with it.
    pub fn new(working_directory: &Path, text: &str) -> Result<Self, String> {
        Pattern::new(text).map_err(|fault| fault.msg.to_owned())?;
        let base = if text.starts_with('/') { Path::new("/") } else { working_directory };
        let part = |name: &str| match name {
            "**" => Ok(Part::Deep),
            _ if name.contains(['*', '?', '[']) => {
                let pattern = Pattern::new(&characters(path_of(name).as_os_str()));
                pattern.map(Part::Wild).map_err(|fault| fault.msg.to_owned())
            }
            _ => Ok(Part::Plain(path_of(name).into_os_string())),
        };
        let names = text.split('/').filter(|name| !matches!(*name, "" | "."));
        Ok(Self {
            text: text.to_owned(),
            base: base.to_owned(),
            parts: names.map(part).collect::<Result<_, _>>()?,
        })
    }

    /// The folder before the first wildcard.
    pub fn folder(&self) -> PathBuf {
        let plain = self.parts.iter().map_while(|part| match part {
            Part::Plain(name) => Some(name),
            _ => None,
        });
        let all_plain = self.parts.iter().all(|part| matches!(part, Part::Plain(_)));
        let names: Vec<&OsString> = plain.collect();
        let folders = if all_plain { names.len().saturating_sub(1) } else { names.len() };
        names[..folders].iter().fold(self.base.clone(), |folder, name| folder.join(name))
    }

    /// The paths that there are. `left`: how many entries of folders may still be compared.
    pub fn paths(&self, left: &mut usize) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.base, &self.parts, 0, left, &mut found);
        found
    }

    /// Whether both may name the same path, or one of them a folder that holds what the other names; links hide neither.
    pub fn meets(&self, other: &Self) -> bool {
        let others = other.forms();
        self.forms().iter().any(|own| others.iter().any(|form| meet(&own.all_parts(), &form.all_parts())))
    }

    /// As it was written, by where the folders before its first wildcard really are, and, of a pattern without one, by
    /// where its file really is: a script may write through a link or replace it.
    fn forms(&self) -> [Self; 3] {
        let plain = self.parts.iter().take_while(|part| matches!(part, Part::Plain(_))).count();
        let folders = if plain == self.parts.len() { plain.saturating_sub(1) } else { plain };
        [self.clone(), self.really(folders), self.really(plain)]
    }

    /// The same pattern with the real path of its first parts, which have no wildcard.
    fn really(&self, count: usize) -> Self {
        let (plain, rest) = self.parts.split_at(count);
        let path = plain.iter().fold(self.base.clone(), |path, part| match part {
            Part::Plain(name) => path.join(name),
            Part::Wild(_) | Part::Deep => path,
        });
        Self { text: self.text.clone(), base: real_path(&path), parts: rest.to_vec() }
    }

    /// With the folders before it, and without `..`.
    fn all_parts(&self) -> Vec<Part> {
        let base = self.base.components().filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(Part::Plain(name.to_owned())),
            std::path::Component::ParentDir => Some(Part::Plain("..".into())),
            _ => None,
        });
        let mut all: Vec<Part> = Vec::new();
        for part in base.chain(self.parts.iter().cloned()) {
            match part {
                Part::Plain(name) if name == ".." => drop(all.pop()),
                part => all.push(part),
            }
        }
        all
    }
}

/// Where a path really is: without links as far as it exists, and the rest of it as it is.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let real = |there: &Path| Some(there.canonicalize().ok()?.join(path.strip_prefix(there).ok()?));
    path.ancestors().find_map(real).unwrap_or_else(|| path.to_owned())
}

/// The most entries that the patterns of one run may be compared with.
pub(crate) fn entries_max() -> usize {
    ENTRIES_MAX
}

fn walk(folder: &Path, parts: &[Part], depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    let Some((part, rest)) = parts.split_first() else {
        if folder.symlink_metadata().is_ok() {
            found.push(folder.to_owned());
        }
        return;
    };
    match part {
        Part::Plain(name) => walk(&folder.join(name), rest, depth, left, found),
        Part::Wild(pattern) => {
            for name in names(folder, left) {
                let at = folder.join(&name);
                if matches(pattern, &name) && (rest.is_empty() || at.is_dir()) {
                    walk(&at, rest, depth, left, found);
                }
            }
        }
        Part::Deep => {
            walk(folder, rest, depth, left, found);
            for name in names(folder, left) {
                let at = folder.join(&name);
                let is_hidden = name.as_encoded_bytes().starts_with(b".");
                if depth < DEPTH_MAX && !is_hidden && at.is_dir() && !at.is_symlink() {
                    walk(&at, parts, depth + 1, left, found);
                }
            }
        }
    }
}

fn names(folder: &Path, left: &mut usize) -> Vec<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(*left);
    let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    *left -= names.len();
    names
}

fn matches(pattern: &Pattern, name: &OsStr) -> bool {
    pattern.matches_with(&characters(name), OPTIONS)
}

/// A name with one character for each byte that is part of none.
fn characters(name: &OsStr) -> String {
    let mut found = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        found.push_str(chunk.valid());
        let lone = chunk.invalid().iter();
        found.extend(lone.filter_map(|byte| char::from_u32(LONE_BYTES + u32::from(*byte))));
    }
    found
}

fn meet(one: &[Part], other: &[Part]) -> bool {
    match (one.split_first(), other.split_first()) {
        // What is left is below a folder that the shorter one names.
        (None, _) | (_, None) => true,
        (Some((Part::Deep, rest)), Some((_, others))) => meet(rest, other) || meet(one, others),
        (Some((_, rest)), Some((Part::Deep, others))) => meet(one, others) || meet(rest, other),
        (Some((part, rest)), Some((second, others))) => names_meet(part, second) && meet(rest, others),
    }
}

fn names_meet(one: &Part, other: &Part) -> bool {
    match (one, other) {
        (Part::Plain(name), Part::Plain(second)) => name == second,
        (Part::Plain(name), Part::Wild(pattern)) | (Part::Wild(pattern), Part::Plain(name)) => {
            matches(pattern, name)
        }
        (Part::Wild(one), Part::Wild(other)) => wild_meet(&tokens(one.as_str()), &tokens(other.as_str())),
        _ => true,
    }
}

/// A character of a pattern, or a placeholder.
#[derive(Debug, Clone)]
enum Token {
    Char(char),
    /// `?`, or a class: as a pattern of one character.
    One(Option<Pattern>),
    Many,
}

fn tokens(pattern: &str) -> Vec<Token> {
    let (mut tokens, mut rest) = (Vec::new(), pattern);
    while let Some(char) = rest.chars().next() {
        let mut length = char.len_utf8();
        tokens.push(match char {
            '*' => Token::Many,
            '?' => Token::One(None),
            '[' => {
                // A `]` that comes first belongs to the class.
                let first = 1 + usize::from(rest[1..].starts_with('!'));
                let end = rest.get(first + 1..).and_then(|tail| tail.find(']')).map(|at| first + 1 + at);
                length = end.map_or(rest.len(), |end| end + 1);
                Token::One(Pattern::new(&rest[..length]).ok())
            }
            char => Token::Char(char),
        });
        rest = &rest[length..];
    }
    tokens
}

fn wild_meet(one: &[Token], other: &[Token]) -> bool {
    match (one.split_first(), other.split_first()) {
        (None, None) => true,
        (None, Some(_)) => other.iter().all(|token| matches!(token, Token::Many)),
        (Some(_), None) => one.iter().all(|token| matches!(token, Token::Many)),
        (Some((Token::Many, rest)), Some((_, others))) => wild_meet(rest, other) || wild_meet(one, others),
        (Some((_, rest)), Some((Token::Many, others))) => wild_meet(one, others) || wild_meet(rest, other),
        (Some((token, rest)), Some((second, others))) => chars_meet(token, second) && wild_meet(rest, others),
    }
}

fn chars_meet(one: &Token, other: &Token) -> bool {
    let in_class = |class: &Option<Pattern>, char: char| {
        class.as_ref().is_none_or(|class| class.matches(char.encode_utf8(&mut [0; 4])))
    };
    match (one, other) {
        (Token::Char(char), Token::Char(second)) => char == second,
        (Token::Char(char), Token::One(class)) | (Token::One(class), Token::Char(char)) => {
            in_class(class, *char)
        }
        (Token::One(one), Token::One(other)) => {
            one.is_none()
                || other.is_none()
                || (' '..='~').any(|char| in_class(one, char) && in_class(other, char))
        }
        _ => true,
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use trackway_formats::path_text::text_of;

    use super::*;

    /// Proves that patterns find what is there, names that are not UTF-8 included, and neither hidden ones nor what is beyond the bound.
    #[test]
    fn patterns_find_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &[u8]| folder.path().join(OsStr::from_bytes(name));
        fs::create_dir_all(at(b"out/a")).unwrap();
        for name in
            [&b"out/a/ckpt-1.pt"[..], b"out/a/ckpt-x.pt", b"out/.ckpt-2.pt", b"out/ckpt-\xff.pt", b"x.pt"]
        {
            fs::write(at(name), "x").unwrap();
        }
        let found = |text: &str, left: usize| {
            let pattern = PathPattern::new(folder.path(), text).unwrap();
            let mut left = left;
            let mut paths = pattern.paths(&mut left);
            paths.sort();
            let shown = |path: &PathBuf| text_of(path.strip_prefix(folder.path()).unwrap());
            paths.iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(found("out/*/ckpt-[0-9].pt", 99), ["out/a/ckpt-1.pt"]);
        for pattern in
            ["out/ckpt-*", "out/ckpt-?.pt", "out/ckpt-\\xff.pt", "out/c*\\xff.pt", "o*/ckpt-[\\xfe\\xff].pt"]
        {
            assert_eq!(found(pattern, 99), ["out/ckpt-\\xff.pt"], "{pattern}");
        }
        assert_eq!(found("out/*-\\xfe.pt", 99), [""; 0]);
        assert_eq!(found("**/*.pt", 99).len(), 4);
        assert_eq!(found("./x.pt", 99), ["x.pt"]);
        assert_eq!(found("y.pt", 99), [""; 0]);
        assert_eq!(found("out/*", 0), [""; 0], "nothing may be compared any more");
        for (text, expected) in [("out/*/x", "out"), ("x.pt", ""), ("a/b.pt", "a"), ("*", "")] {
            let pattern = PathPattern::new(folder.path(), text).unwrap();
            assert_eq!(pattern.folder(), folder.path().join(expected), "{text}");
        }
    }

    /// Proves that two patterns meet exactly where a path can be named by both, or is below what one names.
    #[test]
    fn patterns_meet_where_one_path_fits_both() {
        for (one, other, expected) in [
            ("ck.pkl", "ck.pkl", true),
            ("ck.pkl", "ck2.pkl", false),
            ("out/a/*", "out/b/*", false),
            ("out/*/ckpt-*.pt", "out/*/ckpt-*.pt", true),
            ("out/a*", "out/*b", true),
            ("out/a*", "out/b*", false),
            ("out/[ab]*", "out/[bc]*", true),
            ("out/[a]*", "out/[!a]*", false),
            ("out/?", "out/ab", false),
            ("**/x.pt", "a/b/x.pt", true),
            ("out/*", "out/b/ckpt-1.pt", true),
            ("a/../b.pt", "b.pt", true),
            ("/elsewhere/*", "*", false),
            ("*1*2", "12*", true),
            ("a\\xff/*", "a?/b", true),
            ("a\\xff/*", "a\\xfe/b", false),
        ] {
            let pattern = |text| PathPattern::new(Path::new("/work"), text).unwrap();
            assert_eq!(pattern(one).meets(&pattern(other)), expected, "{one} {other}");
            assert_eq!(pattern(other).meets(&pattern(one)), expected, "{other} {one}");
        }
    }

    /// Proves that a link hides neither that two patterns name the same folder or file, nor that they name different
    /// ones, also where the end of the path does not exist yet.
    #[test]
    fn links_do_not_hide_that_patterns_meet() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("out/a")).unwrap();
        fs::create_dir_all(at("elsewhere")).unwrap();
        fs::write(at("elsewhere/x.pt"), "x").unwrap();
        for (target, link) in [("out", "link"), ("elsewhere", "out/b"), ("elsewhere/x.pt", "out/last.pt")] {
            std::os::unix::fs::symlink(at(target), at(link)).unwrap();
        }
        for (one, other, expected) in [
            ("link/*.pkl", "out/*.pkl", true),
            ("link/a/ck.pkl", "out/*/ck.pkl", true),
            ("link/new/*", "out/new/*", true),
            ("link/a/*", "out/c/*", false),
            ("out/b/*.pt", "elsewhere/*.pt", true),
            ("link/b/../y.pt", "y.pt", true),
            ("out/last.pt", "elsewhere/x.pt", true),
            ("link/last.pt", "out/*.pt", true),
            ("link/last.pt", "elsewhere/y.pt", false),
        ] {
            let pattern = |text| PathPattern::new(folder.path(), text).unwrap();
            assert_eq!(pattern(one).meets(&pattern(other)), expected, "{one} {other}");
            assert_eq!(pattern(other).meets(&pattern(one)), expected, "{other} {one}");
        }
    }
}
