//! Which lines of code are comments.

use std::ffi::OsStr;
use std::path::Path;

/// What the names of code of Python end with.
const PYTHON: [&str; 2] = ["py", "pyx"];
/// The marks of texts over several lines.
const TRIPLE_QUOTES: [&str; 2] = ["\"\"\"", "'''"];

/// Whether the name is that of code of Python.
#[must_use]
pub fn is_python(path: &str) -> bool {
    Path::new(path).extension().and_then(OsStr::to_str).is_some_and(|one| PYTHON.contains(&one))
}

/// Whether two texts of Python differ in comments and blank lines only. A `#` inside of a text over several lines is none.
#[must_use]
pub fn differ_in_comments(before: &str, after: &str) -> bool {
    code_lines(before).eq(code_lines(after))
}

/// BLAKE3 of Python without comments and blank lines.
pub(super) fn code_blake3(text: &str) -> String {
    let code = code_lines(text).flat_map(|line| [line, "\n"]).collect::<String>();
    blake3::hash(code.as_bytes()).to_hex().to_string()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that comments and blank lines are no code, and that lines with a `#` in a text over several lines and code before a comment are.
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
}
