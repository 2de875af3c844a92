//! Finds candidates in a text.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::Value;

use trackway_core::text::shortened;
use trackway_redact::Redactor;

use super::PersonalKind;
use super::kind::PersonalMatch;
use super::{account, address, national};

/// Secrets are recognised by their shapes alone.
static SECRETS: LazyLock<Redactor> = LazyLock::new(Redactor::of_shapes);

/// Calls `found` for everything in a text that has the form of personal data. One pass; texts without `@` and with
/// fewer than six digits cost a few nanoseconds.
pub fn scan_text<'t>(text: &'t str, found: &mut dyn FnMut(PersonalMatch<'t>)) {
    let bytes = text.as_bytes();
    if memchr::memchr(b'@', bytes).is_some() {
        address::emails(text, found);
    }
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let colons = memchr::memchr_iter(b':', bytes).count();
    if digits < DIGITS_MIN && colons < 2 {
        return;
    }
    for token in tokens(text) {
        let judged = [
            account::iban(token),
            account::payment_card(token),
            national::national_id(token),
            address::ip_address(token),
            address::phone(token),
        ];
        // One text is one thing: the first kind whose check it passes, or else the first whose form it has.
        let best =
            judged.iter().flatten().find(|(_, valid)| *valid).or_else(|| judged.iter().flatten().next());
        if let Some((kind, valid)) = best {
            found(PersonalMatch { kind: *kind, text: token, valid: *valid });
        }
    }
}

/// Fewer digits than these hold nothing but an e-mail address: a British insurance number has six. (`1.2.3.4` is an
/// address too; so short ones are more often versions.)
const DIGITS_MIN: usize = 6;

/// The longest text that is checked as one: an IBAN in groups of four has 42.
const TOKEN_BYTES_MAX: usize = 48;

/// Stretches that may be a number with separators: letters and digits, joined by single blanks, dots, dashes, slashes,
/// colons or brackets between digits. Words without digits part them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(|char: char| char.is_ascii_alphanumeric() || "+(:".contains(char))?;
            let after = &rest[start..];
            let len = token_len(after.as_bytes());
            rest = &after[len.max(1)..];
            let token = after[..len].trim_end_matches(|char: char| !char.is_ascii_alphanumeric());
            if token.len() <= TOKEN_BYTES_MAX && token.bytes().any(|byte| byte.is_ascii_digit()) {
                return Some(token);
            }
        }
    })
}

/// The length of a token: words with digits continue over one separator into the next word with digits.
fn token_len(bytes: &[u8]) -> usize {
    let mut end = word_end(bytes, 0);
    loop {
        let gap = separators(&bytes[end..]);
        let next = word_end(bytes, end + gap);
        let word = &bytes[end + gap..next];
        let numeric = |word: &[u8]| word.iter().any(u8::is_ascii_digit);
        let bank = |word: &[u8]| word.len() == 4 && word.iter().all(u8::is_ascii_uppercase);
        let continues = numeric(word) || (bank(word) && begins_as_iban(bytes));
        if gap == 0 || !continues || !numeric(&bytes[..end]) {
            // A leading bracket or plus belongs to what follows it.
            let only_lead = end == 0 && gap == 0;
            return if only_lead { 1.min(bytes.len()) } else { end };
        }
        end = next;
    }
}

/// Whether it begins with a country and two digits: the bank's name may follow in letters.
fn begins_as_iban(bytes: &[u8]) -> bool {
    bytes.len() > 4
        && bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes[2..4].iter().all(u8::is_ascii_digit)
}

fn word_end(bytes: &[u8], from: usize) -> usize {
    let lead = bytes[from..].iter().take_while(|byte| b"+(:".contains(byte)).count();
    let word = bytes[from + lead..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if word == 0 && lead == 0 { from } else { from + lead + word }
}

/// One separator, or a pair that belongs together: after or before a bracket, or the gap of an IPv6 address. Other
/// pairs separate: `row 7:  +49 …` and `+49 …: 0.5`.
fn separators(bytes: &[u8]) -> usize {
    match bytes {
        [b')', b' ' | b'-' | b'.' | b'/', ..] | [b' ' | b'-' | b'.' | b'/', b'(', ..] | [b':', b':', ..] => 2,
        [b' ' | b'.' | b'-' | b'/' | b':' | b')' | b'(', ..] => 1,
        _ => 0,
    }
}

/// A JSON document with all personal data and secrets in its strings hidden; its layout and numbers stay as they are.
#[must_use]
pub fn masked_json(document: &str) -> String {
    let mut hidden = String::with_capacity(document.len());
    let mut rest = document;
    while let Some(start) = rest.find('"') {
        let end = literal_end(&rest[start..]);
        let (before, literal) = (&rest[..start], &rest[start..start + end]);
        rest = &rest[start + end..];
        hidden.push_str(before);
        let text: Option<String> = serde_json::from_str(literal).ok();
        match text.as_deref().map(masked) {
            Some(Cow::Owned(masked)) => hidden.push_str(&Value::from(masked).to_string()),
            _ => hidden.push_str(literal),
        }
    }
    hidden.push_str(rest);
    hidden
}

/// The same for a value: what is to be hidden in its strings and in the names of its members is.
#[must_use]
pub fn masked_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(masked(&text).into_owned()),
        Value::Array(members) => members.into_iter().map(masked_value).collect(),
        Value::Object(members) => {
            let hidden = |(name, member): (String, Value)| (masked(&name).into_owned(), masked_value(member));
            members.into_iter().map(hidden).collect()
        }
        other => other,
    }
}

/// Where the text literal that `json` begins with ends.
fn literal_end(json: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in json.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}

/// A text with all personal data and secrets in it hidden, for whatever is shown; itself if it holds none.
#[must_use]
pub fn masked(text: &str) -> Cow<'_, str> {
    match SECRETS.text(text) {
        Cow::Borrowed(text) => without_personal(text),
        Cow::Owned(text) => Cow::Owned(without_personal(&text).into_owned()),
    }
}

/// The same for a value of a column; of a column that holds secrets every value is hidden.
#[must_use]
pub fn masked_cell(column: &str, text: &str) -> String {
    SECRETS.cell(column, &masked(text)).into_owned()
}

fn without_personal(text: &str) -> Cow<'_, str> {
    let mut hidden = Cow::Borrowed(text);
    scan_text(text, &mut |found| {
        if found.valid {
            hidden = Cow::Owned(hidden.replace(found.text, &mask(&found)));
        }
    });
    hidden
}

/// The first letters of a text, and `…` where there are more. Personal data is hidden first: cut, it could not be recognised.
#[must_use]
pub fn masked_cut(text: &str, letters_max: usize) -> String {
    shortened(&masked(text), letters_max)
}

/// The text with all but its ends hidden: `a…@e…m`, `41…11`.
#[must_use]
pub fn mask(found: &PersonalMatch<'_>) -> String {
    let hidden = |text: &str, shown: usize| {
        let chars: Vec<char> = text.chars().collect();
        let first: String = chars.iter().take(shown).collect();
        let last: String = chars[chars.len().saturating_sub(shown)..].iter().collect();
        if chars.len() > 2 * shown { format!("{first}…{last}") } else { "…".to_owned() }
    };
    match (found.kind, found.text.rsplit_once('@')) {
        (PersonalKind::Email, Some((name, domain))) => {
            format!("{}…@{}", name.chars().take(1).collect::<String>(), hidden(domain, 1))
        }
        _ => hidden(found.text, 2),
    }
}
