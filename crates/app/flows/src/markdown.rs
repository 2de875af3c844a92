//! Markdown of which every piece of data is text: only literals of this program are markup.

use std::fmt::{Display, Formatter, Result, Write as _};

use trackway_core::visible::visible;

/// A document that [`md!`] adds to.
#[derive(Debug, Default)]
pub struct Markdown(String);

impl Markdown {
    /// Only for [`md!`], which ensures that the arguments are [`Piece`]s.
    pub fn append(&mut self, pieces: std::fmt::Arguments<'_>) {
        self.0.write_fmt(pieces).expect("a String takes every write");
    }

    /// The document.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

/// What can be put into a document, and how it appears there.
pub trait Put {
    /// Writes it.
    ///
    /// # Errors
    /// As the formatter.
    fn put(&self, formatter: &mut Formatter<'_>) -> Result;
}

/// One line of text within a paragraph or a cell.
impl Put for str {
    fn put(&self, formatter: &mut Formatter<'_>) -> Result {
        let line = visible(&self.replace(['\n', '\r'], " ")).into_owned();
        let mut before = ' ';
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            let is_within_word =
                before.is_alphanumeric() && letters.peek().is_some_and(|next| next.is_alphanumeric());
            let is_markup = match letter {
                '_' => !is_within_word,
                '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '#' | '$' => true,
                _ => false,
            };
            if is_markup {
                formatter.write_char('\\')?;
            }
            formatter.write_char(letter)?;
            before = letter;
        }
        Ok(())
    }
}

impl Put for String {
    fn put(&self, formatter: &mut Formatter<'_>) -> Result {
        self.as_str().put(formatter)
    }
}

/// Paragraphs of text: an empty line begins a new one, and no line begins a list, a heading, a rule or code.
pub struct Paragraphs<'a>(pub &'a str);

impl Put for Paragraphs<'_> {
    fn put(&self, formatter: &mut Formatter<'_>) -> Result {
        for (number, line) in self.0.lines().map(str::trim).enumerate() {
            if number > 0 {
                formatter.write_char('\n')?;
            }
            // What makes a list, a rule or the underline of a heading at the beginning of a line: `-`, `+`, `=`, `1.`,
            // `1)`.
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let (before, rest) = line.split_at(digits);
            formatter.write_str(before)?;
            let marks: &[char] = if digits == 0 { &['-', '+', '=', ':'] } else { &['.', ')'] };
            if rest.starts_with(marks) {
                formatter.write_char('\\')?;
            }
            rest.put(formatter)?;
        }
        Ok(())
    }
}

/// A text in the letters of code.
pub struct Code<'a>(pub &'a str);

impl Put for Code<'_> {
    fn put(&self, formatter: &mut Formatter<'_>) -> Result {
        let line = visible(&self.0.replace(['\n', '\r'], " ")).replace('|', "\\|");
        let longest = line.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
        let fence = "`".repeat(longest + 1);
        let gap = if longest > 0 { " " } else { "" };
        write!(formatter, "{fence}{gap}{line}{gap}{fence}")
    }
}

/// Pieces one after the other.
impl<A: Put, B: Put> Put for (A, B) {
    fn put(&self, formatter: &mut Formatter<'_>) -> Result {
        self.0.put(formatter)?;
        self.1.put(formatter)
    }
}

impl<T: Put + ?Sized> Put for &T {
    fn put(&self, formatter: &mut Formatter<'_>) -> Result {
        (*self).put(formatter)
    }
}

impl<T: Put> Put for Option<T> {
    fn put(&self, formatter: &mut Formatter<'_>) -> Result {
        self.iter().try_for_each(|piece| piece.put(formatter))
    }
}

/// An argument of [`md!`].
pub struct Piece<'a, T: ?Sized>(pub &'a T);

impl<T: Put + ?Sized> Display for Piece<'_, T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        self.0.put(formatter)
    }
}

/// Adds to a document. The literal is markup, and what is put into its places is text; a place cannot name a variable
/// (`{name}`), because it would get around that. `concat!` is what makes the compiler refuse it.
#[macro_export]
#[doc(hidden)]
macro_rules! md {
    ($document:expr, $markup:literal $(, $piece:expr)* $(,)?) => {
        $document.append(format_args!(concat!($markup), $($crate::markdown::Piece(&$piece)),*))
    };
}
pub use crate::md;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(piece: impl Put) -> String {
        let mut document = Markdown::default();
        md!(document, "{}", piece);
        document.into_string()
    }

    /// Proves that data makes no tag, no emphasis, no cell and no line, and that a plain name stays as it is.
    #[test]
    fn data_is_no_markup() {
        assert_eq!(shown("<b>*x*|`y`\n---"), "\\<b\\>\\*x\\*\\|\\`y\\` ---");
        assert_eq!(shown("roc_auc of __init__ in fraud-v1.2"), "roc_auc of \\_\\_init\\_\\_ in fraud-v1.2");
    }

    /// Proves that lines of a description begin nothing.
    #[test]
    fn lines_begin_nothing() {
        let text = "A model.\n---\n\n    <script>\n1. one\n- two\n# three\n> four\n===";
        let expected = "A model.\n\\---\n\n\\<script\\>\n1\\. one\n\\- two\n\\# three\n\\> four\n\\===";
        assert_eq!(shown(Paragraphs(text)), expected);
    }

    /// Proves that code does not end before its end.
    #[test]
    fn code_holds_backticks() {
        assert_eq!(shown(Code("a|b")), "`a\\|b`");
        assert_eq!(shown(Code("a``b\nc")), "``` a``b c ```");
    }
}
