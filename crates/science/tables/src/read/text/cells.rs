//! Strings into typed cells.

use std::borrow::Cow;

/// Strings that usually mean a missing value, besides the empty one. Used if the run file names none.
pub const USUAL_MISSING: &[&str] = &["?", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "nil"];

/// The strings that mean a missing value. The empty string always does.
#[derive(Debug, Clone)]
pub(crate) struct Missing {
    texts: Vec<String>,
    first_bytes: [bool; 256],
    longest: usize,
}

impl Missing {
    pub(crate) fn new(texts: &[String]) -> Self {
        let given = texts.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let mut texts: Vec<String> = given.collect();
        if texts.is_empty() {
            texts = USUAL_MISSING.iter().map(|text| (*text).to_owned()).collect();
        }
        let mut first_bytes = [false; 256];
        for text in &texts {
            first_bytes[usize::from(text.as_bytes()[0])] = true;
        }
        let longest = texts.iter().map(String::len).max().unwrap_or(0);
        texts.insert(0, String::new());
        Self { texts, first_bytes, longest }
    }

    /// The empty string alone.
    pub(crate) fn empty() -> Self {
        Self { texts: vec![String::new()], first_bytes: [false; 256], longest: 0 }
    }

    /// The index of the string in [`Missing::texts`] if it means a missing value.
    #[inline]
    pub(crate) fn find(&self, value: &[u8]) -> Option<usize> {
        let Some(first) = value.first() else { return Some(0) };
        if value.len() > self.longest || !self.first_bytes[usize::from(*first)] {
            return None;
        }
        self.texts.iter().position(|text| text.as_bytes() == value)
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }
}

pub(crate) fn parse_bool(value: &[u8]) -> Option<bool> {
    if value.eq_ignore_ascii_case(b"true") {
        Some(true)
    } else if value.eq_ignore_ascii_case(b"false") {
        Some(false)
    } else {
        None
    }
}

/// Bytes as a string: UTF-8, else letter by letter as Windows-1252, which Latin-1 files are in practice.
pub(crate) fn to_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| windows_1252(*byte)).collect()),
    }
}

/// 0x80 to 0x9F of Windows-1252; zeros are bytes without a letter, kept as the control characters they are in Latin-1.
const WINDOWS_1252: [u16; 32] = [
    0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,
    0x017D, 0, 0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A,
    0x0153, 0, 0x017E, 0x0178,
];

fn windows_1252(byte: u8) -> char {
    let special = byte.checked_sub(0x80).and_then(|index| WINDOWS_1252.get(usize::from(index)));
    let code = special.copied().filter(|code| *code != 0).unwrap_or(u16::from(byte));
    char::from_u32(u32::from(code)).expect("no surrogate is in the table")
}
