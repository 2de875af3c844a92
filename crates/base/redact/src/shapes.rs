//! The shapes of `shapes.toml`: literal text with classes of letters between, matched by hand around the literal that
//! was found.

use serde::Deserialize;

use super::value;
use crate::racy::Racy;

/// The data file, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Data {
    pub names: NameData,
    pub files: FileData,
    pub shape: Vec<ShapeData>,
    /// Read by the tests.
    #[cfg_attr(not(test), allow(dead_code, reason = "examples for the tests"))]
    pub named: Vec<NamedData>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NameData {
    pub strong: Vec<String>,
    pub prose: Vec<String>,
    pub parts: Vec<String>,
    pub held: Vec<String>,
    pub weak: Vec<String>,
    pub whole: Vec<String>,
}

/// Files that are left out whole.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileData {
    pub parts: Vec<String>,
    pub ends: Vec<String>,
    pub names: Vec<String>,
    pub keys: Vec<String>,
    pub compressed: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShapeData {
    pub id: String,
    pub like: Vec<String>,
    #[serde(default)]
    pub need: Option<Need>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), allow(dead_code, reason = "examples for the tests"))]
pub(super) struct NamedData {
    pub like: String,
    pub names: Vec<String>,
}

/// What the rest of a shape must have beside its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Need {
    /// Letters and digits.
    Mixed,
    /// Capitals, other letters and digits.
    Random,
    /// Letters and digits, and not several short words with hyphens between them.
    Unhyphened,
}

impl Need {
    fn is_met(self, bytes: &[u8]) -> bool {
        match self {
            Self::Mixed => value::mixed(bytes),
            Self::Random => value::mixed_case(bytes),
            Self::Unhyphened => value::mixed(bytes) && !value::hyphened(bytes),
        }
    }
}

pub(super) static DATA: Racy<Data> =
    Racy::new(|| toml::from_str(include_str!("shapes.toml")).expect("the file is read by the tests"));

/// A class of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Digit,
    Hex,
    UpperDigit,
    LowerDigit,
    Base62,
    Word,
    Base64,
    UrlBase64,
    Dotted,
    Path,
}

impl Class {
    fn named(name: &str) -> Self {
        match name {
            "digit" => Self::Digit,
            "hex" => Self::Hex,
            "upnum" => Self::UpperDigit,
            "lownum" => Self::LowerDigit,
            "base62" => Self::Base62,
            "word" => Self::Word,
            "b64" => Self::Base64,
            "b64u" => Self::UrlBase64,
            "dotted" => Self::Dotted,
            "path" => Self::Path,
            other => panic!("`{other}` is not a class of shapes.toml"),
        }
    }

    pub fn has(self, byte: u8) -> bool {
        match self {
            Self::Digit => byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::UpperDigit => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::LowerDigit => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            Self::Base62 => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::UrlBase64 => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Path => Self::Dotted.has(byte) || matches!(byte, b'@' | b'/'),
        }
    }
}

/// Of a secret whose beginning is shorter a rest in the next line is not looked for.
const REST_LITERAL_BYTES_MIN: usize = 4;
/// A shorter word is not the rest of a secret.
const REST_BYTES_MIN: usize = 8;
/// A longer secret is whole.
const WHOLE_BYTES_MIN: usize = 36;

/// A piece of a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(Vec<u8>),
    Class { class: Class, min: usize, max: usize },
}

/// One shape of secret.
#[derive(Debug)]
pub(super) struct Shape {
    /// The kind shown in `[redacted:kind]`.
    pub kind: &'static str,
    pub pieces: Vec<Piece>,
    /// Which piece is looked for.
    anchor: usize,
    need: Option<Need>,
}

pub(super) static SHAPES: Racy<Vec<Shape>> = Racy::new(|| {
    let all = DATA.shape.iter();
    all.flat_map(|data| data.like.iter().map(|like| Shape::new(&data.id, like, data.need))).collect()
});

impl Shape {
    fn new(kind: &'static str, like: &str, need: Option<Need>) -> Self {
        let pieces = pieces(like);
        // The first text where the shape begins with one: a class before a text may swallow it when it is read
        // backwards. A digit alone is in every second line, though, and a class of one length swallows nothing.
        let length = |piece: &Piece| if let Piece::Literal(text) = piece { text.len() } else { 0 };
        let anchor = match &pieces[..] {
            [Piece::Literal(digit), Piece::Class { min, max, .. }, Piece::Literal(_), ..]
                if digit.len() == 1 && min == max =>
            {
                2
            }
            [Piece::Literal(_), ..] => 0,
            _ => (0..pieces.len()).max_by_key(|at| length(&pieces[*at])).unwrap_or(0),
        };
        Self { kind, pieces, anchor, need }
    }

    /// The literal text to look for.
    pub fn anchor(&self) -> &[u8] {
        match &self.pieces[self.anchor] {
            Piece::Literal(text) => text,
            Piece::Class { .. } => panic!("a shape without literal text cannot be looked for"),
        }
    }

    /// Where the secret is whose literal prefix was found at `at`; the characters around it must end there.
    pub fn find(&self, bytes: &[u8], at: usize) -> Option<(usize, usize)> {
        let literal = self.anchor();
        // A shape that begins with a slash is part of an address.
        let begins_inside = self.anchor == 0 && free(literal.first());
        let is_alone = |at: usize| {
            begins_inside || free(at.checked_sub(1).map(|before| &bytes[before])) || is_length(&bytes[..at])
        };
        if !bytes[at..].starts_with(literal) || (self.anchor == 0 && !is_alone(at)) {
            return None;
        }
        let mut start = at;
        for piece in self.pieces[..self.anchor].iter().rev() {
            start = match piece {
                Piece::Literal(text) => bytes[..start].ends_with(text).then(|| start - text.len())?,
                Piece::Class { class, min, max } => {
                    let run =
                        bytes[..start].iter().rev().take(*max).take_while(|byte| class.has(**byte)).count();
                    (run >= *min).then(|| start - run)?
                }
            };
        }
        let mut end = at + literal.len();
        for piece in &self.pieces[self.anchor + 1..] {
            end = match piece {
                Piece::Literal(text) => bytes[end..].starts_with(text).then(|| end + text.len())?,
                Piece::Class { class, min, max } => {
                    let run = bytes[end..].iter().take(*max).take_while(|byte| class.has(**byte)).count();
                    (run >= *min).then(|| end + run)?
                }
            };
        }
        // Behind a text in an older pickle a letter remembers it.
        let is_remembered =
            || start > 0 && bytes[start - 1] == 0 && matches!(bytes.get(end), Some(b'q' | b'r'));
        let alone = is_alone(start) && (self.may_go_on() || free(bytes.get(end)) || is_remembered());
        let looks =
            |need: Need| need.is_met(&bytes[start..at]) || need.is_met(&bytes[at + literal.len()..end]);
        (alone && self.need.is_none_or(looks)).then_some((start, end))
    }

    /// Whether it may be where its literal was found in a line, whatever the digits of the line are: whether the classes
    /// beside the literal have room there. Every class has all digits, and none the end of a line.
    pub fn may_be(&self, line: &[u8], at: usize) -> bool {
        let has_room = |piece: Option<&Piece>, bytes: &mut dyn Iterator<Item = &u8>| match piece {
            Some(Piece::Class { class, min, .. }) => {
                bytes.take(*min).take_while(|byte| class.has(**byte)).count() == *min
            }
            _ => true,
        };
        let before = self.anchor.checked_sub(1).and_then(|before| self.pieces.get(before));
        let behind = line.get(at + self.anchor().len()..);
        has_room(before, &mut line[..at].iter().rev())
            && behind.is_none_or(|bytes| has_room(self.pieces.get(self.anchor + 1), &mut bytes.iter()))
    }

    /// Where the rest is of a secret that was cut at the end of its line, as a terminal or a mail does it: the first word of the next line.
    pub fn rest(&self, bytes: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
        let (Some(Piece::Literal(literal)), Some(Piece::Class { class, min, max })) =
            (self.pieces.first(), self.pieces.last())
        else {
            return None;
        };
        let is_cut = min != max && self.need.is_none() && literal.len() >= REST_LITERAL_BYTES_MIN;
        let next = bytes[end..].strip_prefix(b"\r\n").or_else(|| bytes[end..].strip_prefix(b"\n"))?;
        let from = bytes.len() - next.len() + next.iter().take_while(|byte| b" \t+".contains(byte)).count();
        let run = bytes[from..].iter().take_while(|byte| class.has(**byte)).count();
        let word = &bytes[from..from + run];
        let is_alone =
            bytes.get(from + run).is_none_or(|byte| byte.is_ascii_whitespace() || b"\"',".contains(byte));
        let is_rest =
            end - start < WHOLE_BYTES_MIN && run >= REST_BYTES_MIN && value::mixed(word) && is_alone;
        (is_cut && is_rest).then_some((from, from + run))
    }

    /// Whether a longer text is a secret, too: where only the beginning counts.
    fn may_go_on(&self) -> bool {
        matches!(self.pieces.last(), Some(Piece::Class { min, max, .. }) if min != max)
    }
}

/// Whether the last of these bytes is most likely the length of a text that begins behind it, as in a pickle or in
/// MessagePack: no text is before it.
fn is_length(before: &[u8]) -> bool {
    let [.., other, _] = before else { return false };
    *other >= 0x80 || (*other < b' ' && !other.is_ascii_whitespace())
}

/// Whether a shape may begin or end beside this byte.
fn free(byte: Option<&u8>) -> bool {
    byte.is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

/// `ghp_{base62:36}` as its pieces.
pub(super) fn pieces(like: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = like;
    while let Some((literal, tail)) = rest.split_once('{') {
        let (class, tail) = tail.split_once('}').unwrap_or_else(|| panic!("`{like}` lacks a brace"));
        let (class, length) = class.split_once(':').unwrap_or_else(|| panic!("`{like}` lacks a length"));
        let (min, max) = length.split_once("..").unwrap_or((length, length));
        let number =
            |text: &str| text.parse().unwrap_or_else(|_| panic!("`{like}`: `{text}` is not a number"));
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal.into()));
        }
        pieces.push(Piece::Class { class: Class::named(class), min: number(min), max: number(max) });
        rest = tail;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.into()));
    }
    pieces
}
