//! What `git diff` printed, file by file. It is made without renames, so that both sides name the same file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use trackway_api::runs::explain::LineCount;

use crate::capture::comments::{differ_in_comments, is_same_code};

/// Begins the difference of a file.
const BEGINNING: &str = "diff --git ";
/// Begins the content of a file that git takes for binary.
pub(super) const BINARY: &str = "GIT binary patch\n";

/// What a diff says of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchedFile {
    pub text: String,
    /// Its lines that were added and removed; none for a binary file.
    pub lines: LineCount,
}

impl PatchedFile {
    /// A file that became a link has two sections.
    fn add(&mut self, section: &str) {
        for line in hunk_lines(section) {
            match line.as_bytes().first() {
                Some(b'+') => self.lines.added += 1,
                Some(b'-') => self.lines.removed += 1,
                _ => {}
            }
        }
        self.text.push_str(section);
    }

    /// What distinguishes it from another difference of the same file. Of a binary file this is the head, which has the
    /// hashes of both contents: the rest is not always kept.
    #[must_use]
    pub fn identity(&self) -> String {
        let mut is_content = false;
        let is_identity = |line: &&str| {
            is_content = (is_content && !line.starts_with(BEGINNING)) || line.starts_with(BINARY);
            !is_content
        };
        self.text.split_inclusive('\n').filter(is_identity).collect()
    }

    /// What it did to the file: `+1 −1`, `deleted`.
    #[must_use]
    pub fn shown(&self) -> String {
        // Lines of content have a mark before them.
        let has = |beginning: &str| self.text.lines().any(|line| line.starts_with(beginning));
        match (has("deleted file mode "), has("new file mode ")) {
            (true, false) => "deleted".into(),
            (false, true) => "new file".into(),
            _ if self.lines == LineCount::default() => "other bytes or another mode".into(),
            _ => self.lines.to_string(),
        }
    }

    /// Whether it changes nothing but comments and blank lines of Python.
    #[must_use]
    pub fn is_of_comments(&self) -> bool {
        let (before, after) = self.sides();
        self.lines != LineCount::default() && differ_in_comments(&before, &after)
    }

    /// The same with docstrings, where it has all lines of the file.
    #[must_use]
    pub fn is_same_code(&self) -> bool {
        let (before, after) = self.sides();
        self.lines != LineCount::default() && is_same_code(&before, &after)
    }

    /// The lines around its changes, as they are in the commit and as they are now.
    #[must_use]
    pub fn sides(&self) -> (String, String) {
        let (mut before, mut after) = (String::new(), String::new());
        for line in hunk_lines(&self.text) {
            let (mark, content) = (line.as_bytes().first(), line.get(1..).unwrap_or_default());
            if matches!(mark, Some(b' ' | b'-')) {
                before.push_str(content);
                before.push('\n');
            }
            if matches!(mark, Some(b' ' | b'+')) {
                after.push_str(content);
                after.push('\n');
            }
        }
        (before, after)
    }
}

/// What a difference has of the file in the commit, and what it makes of it, by the numbers of the lines there.
#[derive(Default)]
struct Edits<'p> {
    base: BTreeMap<u64, &'p str>,
    removed: BTreeSet<u64>,
    /// Behind the line of this number.
    added: BTreeMap<u64, Vec<&'p str>>,
}

impl<'p> Edits<'p> {
    fn of(file: &'p PatchedFile) -> Self {
        let mut found = Self::default();
        // The number of the next line; none outside of a hunk.
        let mut next = None;
        for line in file.text.lines() {
            if let Some(head) = line.strip_prefix("@@ -") {
                next = first_line(head);
                continue;
            }
            let Some(number) = next.filter(|_| !line.starts_with(BEGINNING)) else {
                next = None;
                continue;
            };
            let content = line.get(1..).unwrap_or_default();
            match line.as_bytes().first() {
                Some(b'+') => found.added.entry(number - 1).or_default().push(content),
                Some(mark @ (b'-' | b' ')) => {
                    found.base.insert(number, content);
                    if *mark == b'-' {
                        found.removed.insert(number);
                    }
                    next = Some(number + 1);
                }
                _ => {}
            }
        }
        found
    }

    /// What it makes of these lines of the commit.
    fn made_of(&self, base: &BTreeMap<u64, &str>) -> String {
        let numbers: BTreeSet<u64> = base.keys().chain(self.added.keys()).copied().collect();
        let mut lines: Vec<&str> = Vec::new();
        for number in numbers {
            lines.extend(base.get(&number).filter(|_| !self.removed.contains(&number)));
            lines.extend(self.added.get(&number).into_iter().flatten());
        }
        lines.into_iter().flat_map(|line| [line, "\n"]).collect()
    }
}

/// The number of the first line of `12,3 +12,4 @@`; of an empty one, of the line behind it.
fn first_line(head: &str) -> Option<u64> {
    let range = head.split(' ').next()?;
    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
    let start: u64 = start.parse().ok()?;
    Some(if count == "0" { start + 1 } else { start })
}

/// The lines of two states of a file around what either changed, each given by its difference from the same commit;
/// none is the file as committed. `None`: the differences are not of the same file.
#[must_use]
pub fn states(then: Option<&PatchedFile>, now: Option<&PatchedFile>) -> Option<(String, String)> {
    let (then, now) = (then.map(Edits::of).unwrap_or_default(), now.map(Edits::of).unwrap_or_default());
    let is_same = |(number, line): (&u64, &&str)| now.base.get(number).is_none_or(|other| other == line);
    if !then.base.iter().all(is_same) {
        return None;
    }
    let mut base = then.base.clone();
    base.extend(&now.base);
    Some((then.made_of(&base), now.made_of(&base)))
}

/// The lines of content, each behind its mark.
fn hunk_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut is_in_hunk = false;
    text.lines().filter(move |line| {
        let is_head = line.starts_with("@@ ");
        is_in_hunk = is_head || (is_in_hunk && !line.starts_with(BEGINNING));
        is_in_hunk && !is_head
    })
}

/// The files of a diff, by path.
#[must_use]
pub fn patched_files(diff: &[u8]) -> BTreeMap<String, PatchedFile> {
    let mut found: BTreeMap<String, PatchedFile> = BTreeMap::new();
    for section in sections(diff) {
        let Some(paths) = paths_of(section) else { continue };
        let path = path_in(paths).unwrap_or_else(|| paths.to_vec());
        let file = found.entry(String::from_utf8_lossy(&path).into_owned()).or_default();
        file.add(&String::from_utf8_lossy(section));
    }
    found
}

/// The difference of each file.
pub(super) fn sections(diff: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = diff;
    std::iter::from_fn(move || {
        let from = rest.len().min(1);
        let is_beginning = |at: &usize| rest[*at..].starts_with(BEGINNING.as_bytes());
        let newlines = memchr::memchr_iter(b'\n', rest).map(|newline| newline + 1);
        let end = newlines.filter(|at| *at >= from).find(is_beginning).unwrap_or(rest.len());
        let (section, more) = rest.split_at(end);
        rest = more;
        (!section.is_empty()).then_some(section)
    })
}

/// The path of a section. `None`: it cannot be read.
pub(super) fn path_of(section: &[u8]) -> Option<PathBuf> {
    Some(PathBuf::from(OsString::from_vec(path_in(paths_of(section)?)?)))
}

/// `a/PATH b/PATH` of a section; `None`: it does not begin as one.
fn paths_of(section: &[u8]) -> Option<&[u8]> {
    section.strip_prefix(BEGINNING.as_bytes())?.split(|byte| *byte == b'\n').next()
}

/// `PATH` of `a/PATH b/PATH`. It may have blanks: what is between the two sides is in the middle.
fn path_in(paths: &[u8]) -> Option<Vec<u8>> {
    let half = paths.len().checked_sub(1)? / 2;
    let (one, other) = (unquoted(paths.get(..half)?)?, unquoted(paths.get(half + 1..)?)?);
    let (one, other) = (one.strip_prefix(b"a/")?, other.strip_prefix(b"b/")?);
    (one == other).then(|| one.to_vec())
}

/// A path without the quotes that git puts around it where it has bytes to be escaped.
fn unquoted(written: &[u8]) -> Option<Vec<u8>> {
    let Some(quoted) = written.strip_prefix(b"\"") else { return Some(written.to_vec()) };
    let mut rest = quoted.strip_suffix(b"\"")?;
    let mut path = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        if *first == b'\\' {
            let (byte, escape_bytes) = escaped(after)?;
            path.push(byte);
            rest = &after[escape_bytes..];
        } else {
            path.push(*first);
            rest = after;
        }
    }
    Some(path)
}

/// The byte that is written behind a backslash, and how many bytes that takes: a letter as in C, or three octal digits.
fn escaped(text: &[u8]) -> Option<(u8, usize)> {
    let letter = match text {
        [b'a', ..] => 0x07,
        [b'b', ..] => 0x08,
        [b't', ..] => b'\t',
        [b'n', ..] => b'\n',
        [b'v', ..] => 0x0b,
        [b'f', ..] => 0x0c,
        [b'r', ..] => b'\r',
        [letter @ (b'"' | b'\\'), ..] => *letter,
        [first @ b'0'..=b'3', second @ b'0'..=b'7', third @ b'0'..=b'7', ..] => {
            let digit = |byte: &u8| byte - b'0';
            return Some((digit(first) * 64 + digit(second) * 8 + digit(third), 3));
        }
        _ => return None,
    };
    Some((letter, 1))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;

    use super::*;

    /// Proves that files are distinguished by their paths, with their lines, and that headers are no lines.
    #[test]
    fn a_diff_is_read_file_by_file() {
        let diff = "diff --git a/t.py b/t.py\nindex 1..2 100644\n--- a/t.py\n+++ b/t.py\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n\
                    diff --git a/a b.bin b/a b.bin\nBinary files differ\n";
        let found = patched_files(diff.as_bytes());
        let lines = |path: &str| (found[path].lines.added, found[path].lines.removed);
        assert_eq!(found.len(), 2);
        assert_eq!((lines("t.py"), lines("a b.bin")), ((2, 1), (0, 0)));
        assert!(patched_files(b"").is_empty());
    }

    /// Proves that two uncommitted states of a file are compared with each other, also where one changed lines that the other left alone.
    #[test]
    fn two_states_of_a_file() {
        let file = |hunks: &str| {
            let diff = format!("diff --git a/t b/t\n--- a/t\n+++ b/t\n{hunks}");
            patched_files(diff.as_bytes()).remove("t").unwrap()
        };
        let then = file("@@ -1,2 +1,3 @@\n+top\n one\n two\n");
        let now = file("@@ -1,2 +1,3 @@\n+top\n one\n two\n@@ -9,2 +10,2 @@\n nine\n-ten\n+TEN\n");
        let text = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        assert_eq!(
            states(Some(&then), Some(&now)),
            Some((text(&["top", "one", "two", "nine", "ten"]), text(&["top", "one", "two", "nine", "TEN"])))
        );
        assert_eq!(states(Some(&then), None), Some((text(&["top", "one", "two"]), text(&["one", "two"]))));
        let other = file("@@ -1 +1 @@\n-uno\n+due\n");
        assert_eq!(states(Some(&then), Some(&other)), None);
    }

    /// Proves that a deleted, a new and a changed file are called so, also where no lines say it, and that the lines of
    /// both sides are read.
    #[test]
    fn what_was_done_to_a_file_is_said() {
        let diff = "diff --git a/t.py b/t.py\nindex 1..2 100644\n--- a/t.py\n+++ b/t.py\n@@ -1,2 +1,2 @@\n a\n-lr = 1\n+lr = 2\n\
                    diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\
                    diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+deleted file mode 1\n\
                    diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n";
        let found = patched_files(diff.as_bytes());
        let shown = |path: &str| found[path].shown();
        assert_eq!(["t.py", "gone", "new"].map(shown), ["+1 −1", "deleted", "new file"]);
        assert_eq!(shown("run.sh"), "other bytes or another mode");
        assert_eq!(found["t.py"].sides(), ("a\nlr = 1\n".into(), "a\nlr = 2\n".into()));
    }

    /// Proves that a file which became a link is one file with the lines of both sections.
    #[test]
    fn two_sections_of_a_path_are_one_file() {
        let diff = "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\
                    diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+t.py\n";
        let found = patched_files(diff.as_bytes());
        assert_eq!((found.len(), found["x"].shown()), (1, "+1 −1".to_owned()));
        assert_eq!(found["x"].sides(), ("1\n".into(), "t.py\n".into()));
        assert_eq!(found["x"].identity(), diff);
    }

    /// Proves that of a binary file only its head counts for which difference it is, and of a text all.
    #[test]
    fn the_content_of_a_binary_file_is_not_its_identity() {
        let head = "diff --git a/m.bin b/m.bin\nindex 3..4 100644\n";
        let text = "diff --git a/t.py b/t.py\nindex 1..2 100644\n@@ -1 +1 @@\n-a\n+b\n";
        let diff = format!("{head}GIT binary patch\nliteral 1\nabc\n\nliteral 2\n\n{text}");
        let found = patched_files(diff.as_bytes());
        assert_eq!((found["m.bin"].identity().as_str(), found["t.py"].identity().as_str()), (head, text));
    }

    /// Proves that a path is read as git writes it: with blanks, with ` b/`, and with escapes behind quotes, also one that is not UTF-8.
    #[test]
    fn paths_are_read_as_git_writes_them() {
        let of = |paths: &str| path_of(format!("diff --git {paths}\nindex 1..2 100644\n").as_bytes());
        for (paths, expected) in [
            ("a/t.py b/t.py", "t.py"),
            ("a/a b.bin b/a b.bin", "a b.bin"),
            ("a/d b/y b b/d b/y b", "d b/y b"),
            ("a/ä.txt b/ä.txt", "ä.txt"),
            (r#""a/\303\244.txt" "b/\303\244.txt""#, "ä.txt"),
            (r#""a/tab\tquote\"back\\slash" "b/tab\tquote\"back\\slash""#, "tab\tquote\"back\\slash"),
        ] {
            assert_eq!(of(paths).as_deref(), Some(Path::new(expected)), "{paths}");
        }
        let latin = of(r#""a/lat\351" "b/lat\351""#);
        assert_eq!(latin.as_deref().map(Path::as_os_str), Some(OsStr::from_bytes(b"lat\xe9")));
        for unreadable in ["", "a/x", "a/x b/y", "a/x a/x", r#""a/\9" "b/\9""#, r#""a/x\" "b/x\""#] {
            assert_eq!(of(unreadable), None, "{unreadable}");
        }
        assert_eq!(path_of(b"index 1..2 100644\n"), None);
    }

    /// Proves that a file whose path cannot be read is not lost.
    #[test]
    fn a_file_without_a_path_is_found() {
        let found = patched_files(b"diff --git a/x b/y\n@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a/x b/y"]);
    }
}
