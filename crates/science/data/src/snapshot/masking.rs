//! Profiles as they are stored: values that are personal data or secrets are masked, and stay comparable by a keyed hash.
//!
//! A masked value is what is left of it and a mark made with the key of the home: equal values have equal marks, and without the key
//! no guess can be tested. Profiles that were masked with different keys are compared without marks.

use std::collections::HashMap;
use std::sync::Arc;

use trackway_formats::hash::hash_bytes;
use trackway_redact::Redactor;
use trackway_tables::personal::masked;
use trackway_tables::profile::{ColumnProfile, MAX_KEPT_BYTES, Profile};

use crate::integrity::names_of_persons;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// A word that was cut is masked from this length on: it may be the beginning of a secret that can only be recognised whole.
const CUT_WORD_BYTES_MIN: usize = 24;
/// Letters of a mark; each is one of sixteen.
const MARK_LETTERS: usize = 12;
/// Between what is left of a value and its mark.
const MARK: &str = " #";
/// Where something is hidden.
const HIDDEN: char = '…';

/// Masks values.
#[derive(Debug, Clone)]
pub struct Mask {
    key: Key,
    redactor: Arc<Redactor>,
}

/// Never shown.
#[derive(Clone)]
struct Key([u8; KEY_BYTES]);

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key(hidden)")
    }
}

/// The hashes of masked values, old and new.
type Rehashed = HashMap<u64, u64>;

impl Mask {
    /// With this key; the redactor finds secrets.
    #[must_use]
    pub fn new(key: [u8; KEY_BYTES], redactor: Arc<Redactor>) -> Self {
        Self { key: Key(key), redactor }
    }

    /// Says whether a named value is the same as another one, and nothing else about it.
    #[must_use]
    pub fn digest(&self, name: &str, value: &str) -> String {
        let text = format!("{name}={value}");
        blake3::keyed_hash(&self.key.0, text.as_bytes()).to_hex()[..16].to_owned()
    }

    /// Masks the values of strings that are personal data or secrets, and of columns that hold names of persons all. A profile that is
    /// masked already stays as it is.
    pub fn apply(&self, profile: &mut Profile) {
        if profile.masked_with.is_some() {
            return;
        }
        let names = names_of_persons(&profile.columns);
        let rehashed: Vec<Rehashed> = profile
            .columns
            .iter_mut()
            .enumerate()
            .map(|(index, column)| mask_column(column, self, names.contains(&index)))
            .collect();
        let of_label =
            profile.label.as_ref().and_then(|label| profile.columns.iter().position(|it| it.name == *label));
        let none = Rehashed::new();
        let classes = of_label.map_or(&none, |index| &rehashed[index]);
        for (column, texts) in profile.columns.iter_mut().zip(&rehashed) {
            column.rehash_label(texts, classes);
        }
        profile.masked_with = Some(self.name());
    }

    /// The same profile, masked.
    #[must_use]
    pub fn masked(&self, mut profile: Profile) -> Profile {
        self.apply(&mut profile);
        profile
    }

    /// Makes two profiles comparable: where one is masked, both are, and marks of different keys are taken off.
    pub fn align(&self, one: &mut Profile, other: &mut Profile) {
        if one.masked_with == other.masked_with {
            return;
        }
        self.apply(one);
        self.apply(other);
        if one.masked_with != other.masked_with {
            take_marks_off(one);
            take_marks_off(other);
        }
    }

    /// Distinguishes keys, and says nothing about them.
    pub(crate) fn name(&self) -> String {
        blake3::keyed_hash(&self.key.0, b"the name of the key").to_hex()[..16].to_owned()
    }

    /// The value of a column as it is stored; `None`: as it is. A value that was cut ends in `…`.
    fn text(&self, column: &str, text: &str, hash: u64) -> Option<String> {
        // The sign of the cut belongs to no secret.
        let whole = cut(text).unwrap_or(text);
        let mut left = self.redactor.cell(column, &masked(whole)).into_owned();
        let last_word = left.split_whitespace().last().map_or(0, str::len);
        if cut(text).is_some() && last_word >= CUT_WORD_BYTES_MIN {
            let blank = left.trim_end().char_indices().rev().find(|(_, letter)| letter.is_whitespace());
            let kept = blank.map_or(0, |(at, letter)| at + letter.len_utf8());
            left.truncate(kept);
            left.push(HIDDEN);
        }
        (left != whole).then(|| self.marked(&left, hash))
    }

    fn marked(&self, left: &str, hash: u64) -> String {
        let letter = |nibble: u8| char::from(b'a' + nibble);
        let bytes = blake3::keyed_hash(&self.key.0, &hash.to_le_bytes());
        let letters = bytes.as_bytes().iter().flat_map(|byte| [letter(byte >> 4), letter(byte & 15)]);
        let mark: String = letters.take(MARK_LETTERS).collect();
        format!("{left}{MARK}{mark}")
    }

    fn rehash(&self, hash: u64) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&blake3::keyed_hash(&self.key.0, &hash.to_le_bytes()).as_bytes()[24..]);
        u64::from_le_bytes(first).max(1)
    }
}

/// A value that was cut, without the sign of it.
fn cut(text: &str) -> Option<&str> {
    text.strip_suffix(HIDDEN).filter(|kept| kept.len() + 4 > MAX_KEPT_BYTES)
}

/// A masked value without its mark; itself if it has none.
fn without_mark(text: &str) -> &str {
    match text.rsplit_once(MARK) {
        Some((left, mark))
            if mark.len() == MARK_LETTERS && mark.bytes().all(|letter| (b'a'..=b'p').contains(&letter)) =>
        {
            left
        }
        _ => text,
    }
}

fn take_marks_off(profile: &mut Profile) {
    for column in &mut profile.columns {
        column.change_texts(|text, _| {
            let left = without_mark(text);
            (left != text).then(|| (hash_bytes(left.as_bytes()).max(1), left.to_owned()))
        });
    }
}

fn mask_column(column: &mut ColumnProfile, mask: &Mask, is_name: bool) -> Rehashed {
    for fault in &mut column.faults.examples {
        fault.detail = mask.redactor.cell(&column.name, &masked(&fault.detail)).into_owned();
    }
    let mut rehashed = Rehashed::new();
    let name = column.name.clone();
    column.change_texts(|text, hash| {
        let named = || is_name.then(|| mask.marked(&HIDDEN.to_string(), hash));
        let masked = mask.text(&name, text, hash).or_else(named)?;
        let new = mask.rehash(hash);
        rehashed.insert(hash, new);
        Some((new, masked))
    });
    rehashed
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use trackway_tables::pass::UNWATCHED;
    use trackway_tables::read::Source;
    use trackway_tables::{DataSpec, ReadContext};

    use super::*;
    use crate::drift::compare;

    fn profile(folder: &Path, rows: impl Iterator<Item = String>) -> Profile {
        let text = std::iter::once("mail,note,first name,label\n".to_owned()).chain(rows).collect::<String>();
        std::fs::write(folder.join("t.csv"), text).unwrap();
        let spec = DataSpec { path: "t.csv".into(), ..DataSpec::default() };
        let mut source = Source::open(folder, "data", &spec, &ReadContext::default()).unwrap();
        Profile::of(&mut source, Some("label"), &UNWATCHED).unwrap().0
    }

    fn mask(key: u8) -> Mask {
        Mask::new([key; KEY_BYTES], Arc::new(Redactor::of_shapes()))
    }

    fn row(at: usize) -> String {
        let token = format!("gh{}{}{:06}", "p_", "Ab1Cd2".repeat(5), at % 7);
        let names = ["Ana", "Ben", "Cleo", "Dora", "Ed"];
        format!("person{}@corp.example,{token},{},{}\n", at % 20, names[at % 5], at % 2)
    }

    /// Proves that no masked profile holds personal data, a secret or the name of a person, that everything else of it is as before, that
    /// equal values stay equal with one key, and that what was masked with two keys or stored unmasked is compared as well.
    #[test]
    fn stored_values_are_masked_and_stay_comparable() {
        let folder = tempfile::tempdir().unwrap();
        let before = profile(folder.path(), (0..400).map(row));
        let after = profile(folder.path(), (0..300).map(row));
        let other = profile(
            folder.path(),
            (0..400).map(|at| row(at).replace("corp.example", "corp.test").replace("Ab1", "Xy9")),
        );
        let drifted = |one: &Profile, other: &Profile| {
            let report = compare(one, other, Some("label"));
            report
                .columns
                .into_iter()
                .filter(|column| column.drifted)
                .map(|column| column.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(drifted(&before, &after), Vec::<String>::new());
        let text = serde_json::to_string(&mask(1).masked(before.clone())).unwrap();
        for secret in ["person", "corp.example", "Ab1Cd2", "Ana", "Cleo"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        let kept = Profile::from_json(&text).unwrap();
        assert_eq!(kept.columns[0].summary().distinct_estimate, 20);
        let association = |profile: &Profile| profile.columns[1].summary().label_association.unwrap().value;
        assert!((association(&kept) - association(&before)).abs() < 1e-9);
        let mut now = after.clone();
        mask(1).align(&mut now, &mut kept.clone());
        assert_eq!(drifted(&kept, &now), Vec::<String>::new());
        let mut now = other.clone();
        mask(1).align(&mut now, &mut kept.clone());
        assert_eq!(drifted(&kept, &now), ["mail", "note"]);
        let (mut ours, mut theirs) = (mask(1).masked(after), mask(2).masked(before.clone()));
        mask(1).align(&mut ours, &mut theirs);
        assert_eq!(drifted(&theirs, &ours), Vec::<String>::new(), "the marks of two keys are not compared");
    }

    /// Proves that the rest of a word that was cut is hidden, that a key which was cut is none, and that an ordinary value is not hidden.
    #[test]
    fn cut_words_are_hidden() {
        let kept = |text: &str| mask(1).text("note", &format!("{}{HIDDEN}", &text[..MAX_KEPT_BYTES]), 7);
        let hidden = kept(&format!("see {}", "a1".repeat(60))).unwrap();
        assert!(hidden.starts_with("see … #"), "{hidden}");
        let key = kept(&format!("-----BEGIN RSA {} KEY-----\n{}", "PRIVATE", "a1B2".repeat(30))).unwrap();
        assert!(!key.contains("a1B2"), "{key}");
        assert_eq!(kept(&"a word ".repeat(20)), None);
        assert_eq!(mask(1).text("note", "cat", 7), None);
    }

    /// Proves that of a column with the name of a secret no value is stored or shown, words too, and that a sentence
    /// which says a secret and a generated token lose it, while words of a vocabulary stay.
    #[test]
    fn columns_of_secrets_are_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let row = |at: usize| {
            let (key, token) = (format!("q7Rk2ZpL9vXw4TnB8s{at:02}"), format!("Mw5tYc8KeJ2hUf6GbN1{at:02}"));
            format!("tulip{at},word{at},{key},my token is {token},{}\n", at % 2)
        };
        let rows: String = (0..30).map(|at| row(at % 3)).collect();
        let text = format!("password,token,api_key,note,label\n{rows}");
        std::fs::write(folder.path().join("t.csv"), text).unwrap();
        let spec = DataSpec { path: "t.csv".into(), ..DataSpec::default() };
        let mut source = Source::open(folder.path(), "data", &spec, &ReadContext::default()).unwrap();
        let profile = Profile::of(&mut source, Some("label"), &UNWATCHED).unwrap().0;
        let shown: Vec<_> = profile.columns.iter().map(|column| column.summary()).collect();
        let shown = serde_json::to_string(&shown).unwrap();
        assert!(shown.contains("word1") && shown.contains("my token is"), "{shown}");
        let stored = serde_json::to_string(&mask(1).masked(profile)).unwrap();
        for (secret, text) in
            ["tulip", "q7Rk2", "Mw5tY"].into_iter().flat_map(|secret| [(secret, &shown), (secret, &stored)])
        {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}
