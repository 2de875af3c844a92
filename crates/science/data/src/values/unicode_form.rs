//! One text in several Unicode forms: `é` is one letter, or `e` with an accent behind it. They look the same and are different strings.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// The text in composed letters (NFC): it is the same for texts that differ in their Unicode form only.
#[must_use]
pub fn composed(text: &str) -> Cow<'_, str> {
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        IsNormalized::No | IsNormalized::Maybe => Cow::Owned(text.nfc().collect()),
    }
}

/// The text as a message shows it: where it is not in composed letters those beyond ASCII are escaped, so that a reader sees its form.
#[must_use]
pub fn form_shown(text: &str) -> Cow<'_, str> {
    if composed(text) == text {
        return Cow::Borrowed(text);
    }
    let shown = |letter: char| match letter.is_ascii() {
        true => letter.to_string(),
        false => letter.escape_unicode().to_string(),
    };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that two forms of a text become one, that a form which looks like another one is shown, and that other
    /// letters stay what they are.
    #[test]
    fn forms_of_a_text() {
        assert_eq!(composed("cafe\u{301}"), "caf\u{e9}");
        assert_eq!(form_shown("cafe\u{301}"), "cafe\\u{301}");
        for text in ["caf\u{e9}", "cafe", "", "ﬁ", "東京"] {
            assert_eq!((composed(text), form_shown(text)), (text.into(), text.into()));
        }
    }
}
