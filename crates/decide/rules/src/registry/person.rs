//! Whether two names are of one person.

use unicode_normalization::UnicodeNormalization as _;

/// A name without what people type in different ways: case, width and other forms of one letter, spaces around and between words,
/// letters that are not seen. Letters of another alphabet that only look alike are other letters.
#[must_use]
pub fn folded(name: &str) -> String {
    // Some capital letters have no single small one: `ß` and `SS` are the same only by way of the capitals.
    let seen = name.nfkc().filter(|letter| !is_unseen(*letter));
    let cased: String = seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect();
    cased.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Unicode's letters that a display ignores (`Default_Ignorable_Code_Point`), and control characters that separate no words.
fn is_unseen(letter: char) -> bool {
    (letter.is_control() && !letter.is_whitespace())
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that case, spaces, width, ligatures, accents written in two ways and letters that are not seen make no other
    /// person, and that other letters and other words do.
    #[test]
    fn a_person_is_one_however_the_name_is_typed() {
        let same = [
            (
                "zed",
                &[
                    "Zed", "ZED", " zed\t", "z\u{200b}ed", "\u{feff}zed", "z\u{ad}e\u{2060}d", "ｚｅｄ",
                    "zed\n",
                ][..],
            ),
            ("jörg weiß", &["JO\u{308}RG WEISS", "Jörg  Weiß", "jörg\u{a0}weiss", "jörg\u{3000}weiß"]),
            ("office", &["o\u{fb03}ce", "Of\u{fe0f}fice"]),
            ("", &[" ", "\u{200b}", "\u{e0041}", "\u{3164}", "\u{7}"]),
        ];
        for (name, others) in same {
            for other in others {
                assert_eq!(folded(other), folded(name), "{other:?}");
            }
        }
        for (name, other) in [("zed", "z\u{435}d"), ("ann lee", "annlee"), ("ann", "anna"), ("jorg", "jörg")]
        {
            assert_ne!(folded(name), folded(other));
        }
    }
}
