//! Which lines of code are comments.

use std::ffi::OsStr;
use std::path::Path;

use memchr::{memchr2, memchr3, memmem};

/// What the names of code of Python end with.
const PYTHON: [&str; 2] = ["py", "pyx"];
/// The marks of texts over several lines.
const TRIPLE_QUOTES: [&str; 2] = ["\"\"\"", "'''"];
/// Words of code that reads docstrings: its usage, doctests, and tools and prompts of language models that are made of them.
const READS_DOCSTRINGS: [&str; 10] = [
    "__doc__", "getdoc", "docopt", "doctest", "docstring", "BaseModel", "@tool", "_tool", "get_json_schema",
    "dspy",
];

/// Whether the name is that of code of Python.
#[must_use]
pub fn is_python(path: &str) -> bool {
    Path::new(path).extension().and_then(OsStr::to_str).is_some_and(|one| PYTHON.contains(&one))
}

/// Whether two texts of Python differ in comments and blank lines only. A `#` inside of a text over several lines is none.
pub(super) fn differ_in_comments(before: &str, after: &str) -> bool {
    code_lines(before).eq(code_lines(after))
}

/// Whether two whole files of Python differ in comments, blank lines and docstrings only. Of a part of a file it cannot
/// be said where a docstring begins.
#[must_use]
pub fn is_same_code(before: &str, after: &str) -> bool {
    match (without_docstrings(before), without_docstrings(after)) {
        (Some(before), Some(after)) => differ_in_comments(&before, &after),
        _ => differ_in_comments(before, after),
    }
}

/// A whole file of Python without comments that have a line for themselves, blank lines and docstrings.
#[must_use]
pub fn code_of(text: &str) -> String {
    let without = without_docstrings(text);
    code_lines(without.as_deref().unwrap_or(text)).flat_map(|line| [line, "\n"]).collect()
}

/// BLAKE3 of a whole file of Python without comments, blank lines and docstrings.
pub(super) fn code_blake3(text: &str) -> String {
    blake3::hash(code_of(text).as_bytes()).to_hex().to_string()
}

/// Its lines without comments and blank ones.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut open: Option<&'static str> = None;
    text.lines().map(str::trim_end).filter(move |line| {
        let is_code = open.is_some() || !(line.is_empty() || line.trim_start().starts_with('#'));
        if is_code {
            open = open_text(line, open);
        }
        is_code
    })
}

/// The mark of the text that is still open behind the line.
fn open_text(line: &str, mut open: Option<&'static str>) -> Option<&'static str> {
    // Most lines have no quote at all.
    if memchr2(b'"', b'\'', line.as_bytes()).is_none() {
        return open;
    }
    let mut rest = line;
    loop {
        let next = match open {
            Some(mark) => rest.find(mark).map(|place| (place, mark)),
            None => TRIPLE_QUOTES.into_iter().filter_map(|mark| Some((rest.find(mark)?, mark))).min(),
        };
        let Some((place, mark)) = next else { return open };
        open = if open.is_some() { None } else { Some(mark) };
        rest = &rest[place + mark.len()..];
    }
}

/// The text without the strings that are a statement: docstrings, and others that do nothing. `None`: code may read
/// them, or the text is not understood. A launch waits until this was read of all code beside it: of most bytes nothing
/// but their class is looked at.
fn without_docstrings(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    if READS_DOCSTRINGS.iter().any(|word| memmem::find(bytes, word.as_bytes()).is_some()) {
        return None;
    }
    let (mut kept, mut kept_to, mut at) = (String::new(), 0, 0);
    let (mut depth, mut is_start) = (0_usize, true);
    while at < bytes.len() {
        if is_start {
            // Outside of brackets: lines without anything end no statement.
            at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if let Some(quote) = plain_quote_at(bytes, at) {
                let end = string_end(bytes, quote)?;
                if ends_statement(&text[end..]) {
                    kept.push_str(&text[kept_to..at]);
                    kept_to = end;
                }
                at = end;
            }
        }
        is_start = false;
        let rest = bytes.get(at..).unwrap_or_default();
        at += rest.iter().position(|byte| STRUCTURE[usize::from(*byte)]).unwrap_or(rest.len());
        match bytes.get(at) {
            Some(b'"' | b'\'') => at = string_end(bytes, at)?,
            Some(b'#') => at += line_bytes(&text[at..]),
            Some(b'\\') => at += 2,
            Some(byte) => {
                match byte {
                    b'(' | b'[' | b'{' => depth += 1,
                    b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
                    _ => is_start = depth == 0,
                }
                at += 1;
            }
            None => {}
        }
    }
    kept.push_str(&text[kept_to..]);
    (depth == 0).then_some(kept)
}

/// Which bytes say something of the structure of a text: those that begin strings and comments, brackets, and the ends of lines.
const STRUCTURE: [bool; 256] = {
    let mut table = [false; 256];
    let (bytes, mut at) = (b"\"'#\\()[]{}\n", 0);
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

/// Where the quote is of a string without values in it that begins here; none if none does.
fn plain_quote_at(bytes: &[u8], start: usize) -> Option<usize> {
    let is_prefix = |byte: &&u8| b"ru".contains(&byte.to_ascii_lowercase());
    let quote = start + bytes.get(start..)?.iter().take(2).take_while(is_prefix).count();
    matches!(bytes.get(quote)?, b'"' | b'\'').then_some(quote)
}

/// The end of the string that begins with this quote. `None`: it has no end.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let quote = *bytes.get(start)?;
    let is_triple = bytes[start..].starts_with(&[quote; 3]);
    let mark = &bytes[start..start + if is_triple { 3 } else { 1 }];
    let mut at = start + mark.len();
    loop {
        let rest = bytes.get(at..)?;
        at += if is_triple { memchr2(quote, b'\\', rest)? } else { memchr3(quote, b'\\', b'\n', rest)? };
        match bytes[at] {
            b'\\' => at += 2,
            b'\n' => return None,
            _ if bytes[at..].starts_with(mark) => return Some(at + mark.len()),
            _ => at += 1,
        }
    }
}

/// Whether nothing but a comment is behind a statement.
fn ends_statement(rest: &str) -> bool {
    let rest = rest[..line_bytes(rest)].trim();
    rest.is_empty() || rest.starts_with('#')
}

/// How long the first line is, without its end.
fn line_bytes(text: &str) -> usize {
    memchr::memchr(b'\n', text.as_bytes()).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that comments and blank lines are no code, and that lines with a `#` in a text over several lines and
    /// code before a comment are.
    #[test]
    fn comments_are_no_code() {
        let text = "import a\nt = '''\n# kept\n'''\nx = 1\n";
        assert!(differ_in_comments(text, &format!("# new\n\n{}", text.replace("x =", "    # more\nx ="))));
        for other in [text.replace("# kept", "# other"), text.replace("x = 1", "x = 1  # why"), String::new()]
        {
            assert!(!differ_in_comments(text, &other), "{other}");
        }
        assert!(is_python("a/t.py") && !is_python("t.sh"));
    }

    /// Code of a module with three docstrings.
    const DOCUMENTED: &str = r##""""One.

Two.
"""
import a
class C:
    r'''DOC ('''  # why

    def f(
        self, b="#",
    ):
        'it\'s'
        return g(
            """ARG""",
        )
SQL = """
SELECT
"""
x = f"{a}"
"##;

    /// The same without them.
    const BARE: &str = r##"import a
class C:
    def f(
        self, b="#",
    ):
        return g(
            """ARG""",
        )
SQL = """
SELECT
"""
x = f"{a}"
"##;

    /// Proves that docstrings of modules, classes and functions are no code, and that strings which are assigned,
    /// passed, continued or made of values are.
    #[test]
    fn docstrings_are_no_code() {
        assert!(is_same_code(DOCUMENTED, BARE));
        assert_eq!(code_blake3(DOCUMENTED), code_blake3(BARE));
        for (from, to) in [("One", "1 # one"), ("Two.\n", ""), ("DOC (", "[ DOC"), ("'it\\'s'", "\"it\"")] {
            assert!(
                DOCUMENTED.contains(from) && is_same_code(DOCUMENTED, &DOCUMENTED.replace(from, to)),
                "{to}"
            );
        }
        let other =
            [("ARG", "arg"), ("SELECT", "select"), ("{a}", "{b}"), ("\"#\"", "\"# \""), ("  # why", " + 1")];
        for (from, to) in other {
            assert!(
                DOCUMENTED.contains(from) && !is_same_code(DOCUMENTED, &DOCUMENTED.replace(from, to)),
                "{to}"
            );
        }
        for code in
            ["x = \\\n'DOC'\n", "f'{DOC()}'\n", "'DOC'.join(b)\n", "'DOC' \\\n'b'\n", "a\n\"\"\"\nDOC = 1\n"]
        {
            assert!(!is_same_code(code, &code.replace("DOC", "OTHER")), "{code}");
        }
    }

    /// Proves that docstrings are code where something reads them.
    #[test]
    fn docstrings_that_are_read_are_code() {
        for reader in ["from docopt import docopt\n", "print(__doc__)\n", "@tool\ndef f(): pass\n"] {
            let of = |usage: &str| format!("\"\"\"Usage: {usage}\"\"\"\n{reader}");
            assert!(!is_same_code(&of("a"), &of("b")) && is_same_code(&of("a"), &of("a")), "{reader}");
        }
    }
}
