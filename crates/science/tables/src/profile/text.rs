//! Lengths and shapes of strings.

use arrow::array::{Array, StringArray};
use serde::{Deserialize, Serialize};

use super::values::ValueCounts;
use crate::read::Texts;

/// Lengths up to this are counted each by itself.
const EXACT_LENGTHS: usize = 64;

/// Buckets per doubling of longer lengths: one is at most 1/16 wide.
const BUCKETS_PER_DOUBLING: usize = 16;

/// Of strings without a dictionary one row in so many is looked at for its pattern.
const PATTERN_STEP: usize = 16;

/// Runs of letters or digits up to this length are spelled out in a pattern; longer ones become `a+`, `A+`, `9+`.
const MAX_SPELLED_RUN: usize = 4;

/// The longest pattern, in letters.
const MAX_PATTERN_LENGTH: usize = 24;

/// Lengths of the strings of a column, in characters (Unicode scalar values).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lengths {
    /// The shortest; `u64::MAX` without strings.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// Sum of all lengths.
    pub total: u64,
    /// How many strings.
    pub count: u64,
    /// Strings per bucket: each length up to 64 has one, then 16 per doubling.
    buckets: Vec<u64>,
}

impl Lengths {
    #[inline]
    fn add(&mut self, length: usize, count: u64) {
        let bucket = bucket_of(length);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += count;
        self.min = if self.count == 0 { length as u64 } else { self.min.min(length as u64) };
        self.max = self.max.max(length as u64);
        self.total += length as u64 * count;
        self.count += count;
    }

    fn merge(&mut self, later: &Self) {
        if later.count == 0 {
            return;
        }
        self.min = if self.count == 0 { later.min } else { self.min.min(later.min) };
        self.max = self.max.max(later.max);
        self.total += later.total;
        self.count += later.count;
        let length = self.buckets.len().max(later.buckets.len());
        self.buckets.resize(length, 0);
        self.buckets.iter_mut().zip(&later.buckets).for_each(|(count, more)| *count += more);
    }

    /// The mean length; `None` without strings.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total as f64 / self.count as f64)
    }

    /// The length below which this fraction of the strings is; exact up to 64, then within 1/16.
    #[must_use]
    pub fn at(&self, share: f64) -> Option<u64> {
        let rank = share * self.count as f64;
        let mut below = 0;
        let bucket = self.buckets.iter().position(|count| {
            below += count;
            below as f64 >= rank && below > 0
        })?;
        Some(lowest_of(bucket).clamp(self.min, self.max))
    }
}

fn bucket_of(length: usize) -> usize {
    if length <= EXACT_LENGTHS {
        return length;
    }
    let doubling = length.ilog2() as usize;
    let within = (length >> (doubling - 4)) & (BUCKETS_PER_DOUBLING - 1);
    EXACT_LENGTHS + 1 + (doubling - 6) * BUCKETS_PER_DOUBLING + within
}

fn lowest_of(bucket: usize) -> u64 {
    if bucket <= EXACT_LENGTHS {
        return bucket as u64;
    }
    let index = bucket - EXACT_LENGTHS - 1;
    let (doubling, within) = (index / BUCKETS_PER_DOUBLING + 6, index % BUCKETS_PER_DOUBLING);
    ((BUCKETS_PER_DOUBLING + within) as u64) << (doubling - 4)
}

/// Shapes and lengths of the strings of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TextProfile {
    pub(crate) lengths: Lengths,
    /// Strings without a character.
    pub(crate) empty: u64,
    /// Patterns of the rows looked at; see [`pattern`].
    pub(crate) patterns: ValueCounts,
    pub(crate) pattern_rows: u64,
}

impl Default for TextProfile {
    fn default() -> Self {
        Self { lengths: Lengths::default(), empty: 0, patterns: ValueCounts::of_texts(), pattern_rows: 0 }
    }
}

impl TextProfile {
    pub(crate) fn observe(&mut self, texts: &Texts<'_>, values: &mut ValueCounts, key_counts: &mut Vec<u64>) {
        match texts {
            Texts::Plain(array) => self.observe_plain(array, values),
            Texts::Dictionary(dictionary, texts) => {
                count_keys(dictionary, texts, key_counts);
                for (text, count) in key_counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                    let text = texts.value(text);
                    values.add_text(text.as_bytes(), *count);
                    self.add_length(text, *count);
                    self.add_pattern(text, *count);
                }
            }
        }
    }

    fn observe_plain(&mut self, array: &StringArray, values: &mut ValueCounts) {
        for (row, text) in array.iter().flatten().enumerate() {
            values.add_text(text.as_bytes(), 1);
            self.add_length(text, 1);
            if row.is_multiple_of(PATTERN_STEP) {
                self.add_pattern(text, 1);
            }
        }
    }

    #[inline]
    fn add_length(&mut self, text: &str, count: u64) {
        let length = if text.is_ascii() { text.len() } else { text.chars().count() };
        self.lengths.add(length, count);
        self.empty += if length == 0 { count } else { 0 };
    }

    fn add_pattern(&mut self, text: &str, count: u64) {
        let mut buffer = [0; MAX_PATTERN_LENGTH * 4 + 4];
        self.patterns.add_text(pattern(text, &mut buffer), count);
        self.pattern_rows += count;
    }

    pub(crate) fn merge(&mut self, later: Self) {
        self.lengths.merge(&later.lengths);
        self.empty += later.empty;
        self.patterns.merge(later.patterns);
        self.pattern_rows += later.pattern_rows;
    }
}

/// Rows per key of a dictionary.
fn count_keys(
    dictionary: &arrow::array::DictionaryArray<arrow::datatypes::Int32Type>,
    texts: &StringArray,
    counts: &mut Vec<u64>,
) {
    counts.clear();
    counts.resize(texts.len(), 0);
    let keys = dictionary.keys();
    match keys.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => keys.values().iter().for_each(|key| counts[*key as usize] += 1),
        Some(nulls) => nulls.valid_indices().for_each(|row| counts[keys.value(row) as usize] += 1),
    }
    if texts.null_count() > 0 {
        (0..texts.len()).filter(|index| texts.is_null(*index)).for_each(|index| counts[index] = 0);
    }
}

/// The shape of a text: upper-case letters become `A`, other letters `a`, digits `9`, the rest stays. `AB-1234 c` is
/// `AA-9999 a`; runs of more than four become `A+`, `a+`, `9+`; a long shape ends in `…`.
fn pattern<'b>(text: &str, buffer: &'b mut [u8]) -> &'b [u8] {
    let mut length = 0;
    let mut letters = 0;
    let mut run = (' ', 0);
    for letter in text.chars() {
        let class = class_of(letter);
        run = if class == run.0 { (class, run.1 + 1) } else { (class, 1) };
        let is_class = matches!(class, 'A' | 'a' | '9');
        let shown = match run.1 {
            count if !is_class || count <= MAX_SPELLED_RUN => class,
            count if count == MAX_SPELLED_RUN + 1 => {
                // The four letters before are one byte each.
                length -= MAX_SPELLED_RUN - 1;
                letters -= MAX_SPELLED_RUN - 1;
                '+'
            }
            _ => continue,
        };
        if letters == MAX_PATTERN_LENGTH {
            length += '…'.encode_utf8(&mut buffer[length..]).len();
            break;
        }
        length += shown.encode_utf8(&mut buffer[length..]).len();
        letters += 1;
    }
    &buffer[..length]
}

fn class_of(letter: char) -> char {
    match letter {
        'a'..='z' => 'a',
        'A'..='Z' => 'A',
        '0'..='9' => '9',
        letter if letter.is_ascii() => letter,
        letter if letter.is_uppercase() => 'A',
        letter if letter.is_alphabetic() => 'a',
        letter if letter.is_numeric() => '9',
        letter => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that strings of one shape have the same pattern, and that long runs and long strings stay short.
    #[test]
    fn patterns_show_the_shape() {
        for (text, expected) in [
            ("AB-1234 c", "AA-9999 a"),
            ("A9-999", "A9-999"),
            ("Private", "Aa+"),
            ("4111111111111111", "9+"),
            ("jo@example.org", "aa@a+.aaa"),
            ("Ärger", "Aaaaa"),
            ("", ""),
            ("-----------", "-----------"),
            ("a b c d e f g h i j k l m n", "a a a a a a a a a a a a …"),
        ] {
            assert_eq!(std::str::from_utf8(pattern(text, &mut [0; 100])).unwrap(), expected, "{text}");
        }
    }

    /// Proves that every length has its bucket, in order, no wider than a sixteenth, and that quantiles come from them.
    #[test]
    fn lengths_are_exact_or_within_a_sixteenth() {
        let mut last = 0;
        for length in 0..100_000 {
            let bucket = bucket_of(length);
            assert!(bucket == last || bucket == last + 1, "{length}");
            let lowest = lowest_of(bucket) as usize;
            assert!(
                lowest <= length && (length <= EXACT_LENGTHS || (length - lowest) * 16 <= length),
                "{length} {lowest}"
            );
            last = bucket;
        }
        let mut lengths = Lengths::default();
        (1..=100).for_each(|length| lengths.add(length, 1));
        assert_eq!(
            (lengths.at(0.5), lengths.min, lengths.max, lengths.mean()),
            (Some(50), 1, 100, Some(50.5))
        );
    }
}
