//! The frame of every page, and the one place where markup becomes a [`Page`].

use std::borrow::Cow;

use maud::{Markup, PreEscaped, html};
use trackway_core::Timestamp;
use trackway_core::text::timestamp;
use trackway_core::visible::visible;
use trackway_tables::personal::masked;

use crate::run_parts::sentence;

/// The look of every page, in light and dark, on paper and on phones.
const STYLE: &str = include_str!("style.css");
/// Nothing but the page's own style may be loaded or run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'";

/// What a page says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// When the page was made.
    pub made_at: Timestamp,
    /// The version of Trackway that made it.
    pub version: String,
    /// Hides personal data in the texts of the page.
    pub masks: bool,
}

/// A complete page. Every text in it is a text node: of data, neither markup nor an attribute comes from it. It holds no control
/// character and no directional formatting character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page(String);

impl Page {
    /// The file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Puts a page together: `title` names it, `lead` is what a reader needs first.
pub(crate) fn page(title: &str, about: &About, lead: &Markup, body: &Markup) -> Page {
    let shown = |markup: Markup| {
        let markup = visible(&markup.0).into_owned();
        PreEscaped(if about.masks { masked_markup(&markup) } else { markup })
    };
    let markup = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                (shown(html! { title { (title.replace('`', "")) } }))
                style { (PreEscaped(STYLE)) }
            }
            (shown(html! {
                body {
                    header {
                        h1 { (sentence(title)) }
                        (lead)
                        p.dim { "Made " (timestamp(about.made_at)) " UTC by trackway " (about.version) }
                    }
                    main { (body) }
                }
            }))
        }
        (PreEscaped("\n"))
    };
    Page(markup.into_string())
}

/// The same markup with personal data hidden in its texts.
fn masked_markup(markup: &str) -> String {
    let mut page = String::with_capacity(markup.len());
    for (number, part) in markup.split('<').enumerate() {
        // A tag ends with the first `>`: in data both letters are escaped.
        let tag = if number == 0 { 0 } else { part.find('>').map_or(part.len(), |end| end + 1) };
        let (tag, text) = part.split_at(tag);
        page.push_str(if number == 0 { "" } else { "<" });
        page.push_str(tag);
        match masked(&unescaped(text)) {
            Cow::Borrowed(_) => page.push_str(text),
            Cow::Owned(hidden) => page.push_str(&html! { (hidden) }.0),
        }
    }
    page
}

/// The text from which `maud` made this.
fn unescaped(text: &str) -> String {
    let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    marks.iter().fold(text.to_owned(), |text, (mark, letter)| text.replace(mark, letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that personal data is hidden in texts only, and that other texts and all tags stay as they are.
    #[test]
    fn personal_data_is_hidden_in_texts() {
        let markup = html! { p class="a@example.org" { "<ana@example.org> & 'others'" } b { "x < y" } };
        assert_eq!(
            masked_markup(&markup.0),
            "<p class=\"a@example.org\">&lt;a…@e…g&gt; &amp; 'others'</p><b>x &lt; y</b>"
        );
    }
}
