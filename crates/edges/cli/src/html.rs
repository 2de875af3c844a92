//! What the HTML reports have in common: the look, and [`Html`], in which text cannot become markup.

pub mod assessment;
mod plot;
pub mod probe;
mod residuals;

use std::borrow::Cow;
use std::fmt::{Display, Formatter, Write as _};
use std::path::Path;

use trackway_core::visible::{REPLACEMENT, steers_display};
use trackway_flows::data::masked;

use crate::exit::Failure;
use crate::printer::Printer;

/// The look of a report, in light and dark. No script, no font, no network.
pub const STYLE: &str = include_str!("html/style.css");
/// Series with a distinct colour.
pub const COLOURS: usize = 4;

/// The colour of a series.
pub fn colour(index: usize) -> String {
    format!("var(--c{})", index % COLOURS)
}

/// Adds to a page. The first literal is markup, and what is put into its places is text; a place cannot name a
/// variable (`{name}`), because it would get around that. `concat!` is what makes the compiler refuse it.
macro_rules! put {
    ($page:expr, $markup:literal $(, $piece:expr)* $(,)?) => {
        $page.append(format_args!(concat!($markup), $($crate::html::Piece(&$piece)),*))
    };
}
pub(crate) use put;

/// A piece of a page; see [`put!`].
macro_rules! html {
    ($markup:literal $(, $piece:expr)* $(,)?) => {{
        let mut piece = $crate::html::Html::default();
        $crate::html::put!(piece, $markup $(, $piece)*);
        piece
    }};
}
pub(crate) use html;

/// Markup of which every piece of data is text: only literals of this program are tags. [`html!`] makes it, [`put!`]
/// adds to it.
#[derive(Debug, Clone, Default)]
pub struct Html(String);

impl Html {
    /// Markup that is known when this program is compiled.
    pub fn push_str(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// Only for [`put!`], which ensures that the arguments are [`Piece`]s.
    pub fn append(&mut self, pieces: std::fmt::Arguments<'_>) {
        self.0.write_fmt(pieces).expect("a String takes every write");
    }

    /// Pieces with a separator between them.
    pub fn joined(pieces: impl IntoIterator<Item = Self>, separator: &'static str) -> Self {
        let pieces: Vec<String> = pieces.into_iter().map(|piece| piece.0).collect();
        Self(pieces.join(separator))
    }

    /// The same page with personal data hidden in its text.
    fn masked(&self) -> Self {
        let mut page = String::with_capacity(self.0.len());
        for (number, part) in self.0.split('<').enumerate() {
            // A tag ends with the first `>`: in data both letters are escaped.
            let tag = if number == 0 { 0 } else { part.find('>').map_or(part.len(), |end| end + 1) };
            let (tag, text) = part.split_at(tag);
            page.push_str(if number == 0 { "" } else { "<" });
            page.push_str(tag);
            match masked(&unescaped(text)) {
                Cow::Borrowed(_) => page.push_str(text),
                Cow::Owned(hidden) => page.push_str(html!("{}", hidden).as_str()),
            }
        }
        Self(page)
    }

    /// The markup.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What [`Put`] made of a text, back.
fn unescaped(text: &str) -> String {
    let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    marks.iter().fold(text.to_owned(), |text, (mark, letter)| text.replace(mark, letter))
}

/// What can be put into a page, and how it appears there.
pub trait Put {
    /// Writes it as markup.
    fn put(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result;
}

impl Put for Html {
    fn put(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Put for str {
    fn put(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        for letter in self.chars() {
            match letter {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                letter if steers_display(letter) => formatter.write_char(REPLACEMENT)?,
                letter => formatter.write_char(letter)?,
            }
        }
        Ok(())
    }
}

impl Put for String {
    fn put(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        self.as_str().put(formatter)
    }
}

impl Put for serde_json::Value {
    fn put(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        self.to_string().put(formatter)
    }
}

impl<T: Put + ?Sized> Put for &T {
    fn put(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        (*self).put(formatter)
    }
}

impl<T: Put> Put for Option<T> {
    fn put(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        self.iter().try_for_each(|piece| piece.put(formatter))
    }
}

macro_rules! put_numbers {
    ($($number:ty)*) => {$(
        impl Put for $number {
            fn put(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
                Display::fmt(self, formatter)
            }
        }
    )*};
}
put_numbers!(f64 u32 u64 usize);

/// An argument of [`put!`] and [`html!`].
pub struct Piece<'a, T: ?Sized>(pub &'a T);

impl<T: Put + ?Sized> Display for Piece<'_, T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.put(formatter)
    }
}

/// The beginning of a page.
pub fn head(title: &str) -> Html {
    let mut page = html!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{}</title><style>",
        title
    );
    page.push_str(STYLE);
    page.push_str("</style></head><body>\n");
    page
}

/// Writes a page, and reports where it is.
pub fn save(path: &Path, page: &Html, what: &str, printer: Printer) -> Result<(), Failure> {
    let masked = printer.masks().then(|| page.masked());
    std::fs::write(path, masked.as_ref().unwrap_or(page).as_str())
        .and_then(|()| trackway_files::give_to_user(path))
        .map_err(|error| Failure::fault(format!("cannot write `{}`: {error}", path.display())))?;
    printer.note(format!("the {what} is in {}", path.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that data is shown as text and never becomes markup, and that markup stays.
    #[test]
    fn data_is_no_markup() {
        let inner = html!("<b>{}</b>", "<=50K & \"x\"\n\u{202e}");
        let page = html!("<p>{} {:.1} {}</p>", inner, 0.25, None::<Html>);
        assert_eq!(
            html!("<p class=\"a@example.org\">{}</p>", "<ana@example.org>").masked().as_str(),
            "<p class=\"a@example.org\">&lt;a…@e…g&gt;</p>"
        );
        assert_eq!(page.as_str(), "<p><b>&lt;=50K &amp; &quot;x&quot;\u{fffd}\u{fffd}</b> 0.2 </p>");
    }
}
