//! What the HTML reports share: the look, and text that cannot become markup.

pub mod assessment;
mod plot;
pub mod probe;
mod residuals;

use std::path::Path;

use crate::exit::Failure;
use crate::printer::Printer;

/// The look of a report, in light and dark. No script, no font, no network.
pub const STYLE: &str = include_str!("html/style.css");
/// Series that have a colour of their own.
pub const COLOURS: usize = 4;

/// The colour of a series.
pub fn colour(index: usize) -> String {
    format!("var(--c{})", index % COLOURS)
}

/// The beginning of a page.
pub fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{}</title><style>{STYLE}</style></head><body>\n",
        escape(title)
    )
}

/// Writes a page, and says where it is.
pub fn save(path: &Path, page: &str, what: &str, printer: Printer) -> Result<(), Failure> {
    std::fs::write(path, page)
        .map_err(|error| Failure::fault(format!("cannot write `{}`: {error}", path.display())))?;
    printer.note(&format!("the {what} is in {}", path.display()));
    Ok(())
}

/// A piece of the page; writing to a text cannot fail.
macro_rules! put {
    ($page:expr, $($what:tt)*) => {
        write!($page, $($what)*).expect("a String takes every write")
    };
}
pub(crate) use put;

/// Text as HTML: what a file holds must not become part of the page.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what data holds is shown as text and never becomes markup.
    #[test]
    fn data_is_no_markup() {
        assert_eq!(escape("<=50K & \"x\"\n"), "&lt;=50K &amp; &quot;x&quot;\u{fffd}");
    }
}
