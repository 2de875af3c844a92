//! Which values a column has, how often each, and how many different ones: exact for few, bounded for many.
//!
//! Up to [`MAX_VALUES`] different values are counted exactly. With more, the counter of J. Misra and D. Gries, "Finding
//! repeated elements" (1982), takes over: when the table is full, the median count is subtracted from every value and
//! those without a count left are dropped. A count is then too low by at most [`ValueCounts::error`], and every value
//! that occurs more often than that is in the table. From then on different values are counted by
//! [HyperLogLog](super::distinct), which is first fed with all values of the table: all there were.

use serde::{Deserialize, Serialize};
use trackway_formats::hash::{hash_bytes, hash_float, hash_number};

use super::distinct::Distinct;

/// The most different values that are counted exactly.
pub const MAX_VALUES: usize = 1536;

/// The most values that are stored of a column with more than that.
const MAX_STORED_INEXACT: usize = 512;

/// The longest piece of a text that is kept, in bytes. The whole text is hashed.
pub const MAX_KEPT_BYTES: usize = 96;

/// A value as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Whole numbers, timestamps and booleans by their 64 bits.
    Numbers(Vec<u64>),
    /// Floats by their 64 bits.
    Floats(Vec<u64>),
    /// Strings one after the other in an arena; a key is where one begins and how long it is.
    Texts { spans: Vec<(u32, u32)>, arena: Vec<u8> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueCounts {
    /// Open addressing by hash; 0 is an empty slot.
    hashes: Vec<u64>,
    counts: Vec<u64>,
    keys: Keys,
    used: usize,
    error: u64,
    distinct: Option<Distinct>,
}

const FIRST_SLOTS: usize = 32;
const MAX_SLOTS: usize = 2048;

impl ValueCounts {
    pub(crate) fn of_numbers() -> Self {
        Self::empty(Keys::Numbers(vec![0; FIRST_SLOTS]))
    }

    pub(crate) fn of_floats() -> Self {
        Self::empty(Keys::Floats(vec![0; FIRST_SLOTS]))
    }

    pub(crate) fn of_texts() -> Self {
        Self::empty(Keys::Texts { spans: vec![(0, 0); FIRST_SLOTS], arena: Vec::new() })
    }

    fn empty(keys: Keys) -> Self {
        Self {
            hashes: vec![0; FIRST_SLOTS],
            counts: vec![0; FIRST_SLOTS],
            keys,
            used: 0,
            error: 0,
            distinct: None,
        }
    }

    /// Whether every value is in the table with its true count.
    pub(crate) fn is_exact(&self) -> bool {
        self.distinct.is_none()
    }

    /// By how much a count may be too low.
    pub(crate) fn error(&self) -> u64 {
        self.error
    }

    /// Different values: exact, or the estimate.
    pub(crate) fn distinct(&self) -> f64 {
        self.distinct.as_ref().map_or(self.used as f64, Distinct::estimate)
    }

    #[inline]
    pub(crate) fn add_number(&mut self, number: u64, count: u64) {
        let is_float = matches!(self.keys, Keys::Floats(_));
        let hash = if is_float { hash_float(number) } else { hash_number(number) };
        if let Some(slot) = self.count_hash(hash.max(1), count) {
            if let Keys::Numbers(numbers) | Keys::Floats(numbers) = &mut self.keys {
                numbers[slot] = number;
            }
            self.after_insert();
        }
    }

    #[inline]
    pub(crate) fn add_text(&mut self, text: &[u8], count: u64) {
        self.add_hashed_text(hash_bytes(text).max(1), text, count);
    }

    #[inline]
    fn add_hashed_text(&mut self, hash: u64, text: &[u8], count: u64) {
        if let Some(slot) = self.count_hash(hash, count) {
            if let Keys::Texts { spans, arena } = &mut self.keys {
                // One byte more shows that there was more.
                let kept = &text[..text.len().min(MAX_KEPT_BYTES + 1)];
                spans[slot] = (arena.len() as u32, kept.len() as u32);
                arena.extend_from_slice(kept);
            }
            self.after_insert();
        }
    }

    /// Counts a value; the slot of its key if it is new.
    #[inline]
    fn count_hash(&mut self, hash: u64, count: u64) -> Option<usize> {
        if let Some(distinct) = &mut self.distinct {
            distinct.add(hash);
        }
        let mask = self.hashes.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let known = self.hashes[slot];
            if known == hash {
                self.counts[slot] += count;
                return None;
            }
            if known == 0 {
                self.hashes[slot] = hash;
                self.counts[slot] = count;
                self.used += 1;
                return Some(slot);
            }
            slot = (slot + 1) & mask;
        }
    }

    #[inline]
    fn after_insert(&mut self) {
        let slots = self.hashes.len();
        if self.used * 4 > slots * 3 {
            if slots < MAX_SLOTS { self.rebuild(slots * 2, 0) } else { self.shed() }
        }
    }

    /// The table is full: from now on it is not exact.
    #[cold]
    fn shed(&mut self) {
        self.stop_being_exact();
        let mut counts: Vec<u64> = self.occupied().map(|slot| self.counts[slot]).collect();
        let middle = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(middle);
        let median = *median;
        self.error += median;
        self.rebuild(MAX_SLOTS, median);
    }

    /// Keeps what is stored of a column: of very many values the most frequent ones.
    pub(crate) fn shorten(&mut self) {
        if !self.is_exact() {
            self.keep_most_frequent(MAX_STORED_INEXACT);
        }
    }

    /// The same for a column of a very wide table, in as little memory as that takes: `values_max` values, and twice as
    /// many where these are all there are. What is left is counted as before.
    pub(crate) fn finish(&mut self, values_max: usize) {
        let exact_max = if values_max < MAX_STORED_INEXACT { 2 * values_max } else { MAX_VALUES };
        if self.used > exact_max {
            self.stop_being_exact();
        }
        if !self.is_exact() {
            self.keep_most_frequent(values_max.min(MAX_STORED_INEXACT));
        }
        let slots = (self.used * 4 / 3 + 1).next_power_of_two().max(FIRST_SLOTS);
        if slots < self.hashes.len() {
            self.rebuild(slots, 0);
        }
        if let Keys::Texts { arena, .. } = &mut self.keys {
            arena.shrink_to_fit();
        }
        if let Some(distinct) = &mut self.distinct {
            distinct.pack();
        }
    }

    fn keep_most_frequent(&mut self, values_max: usize) {
        if self.used <= values_max {
            return;
        }
        let mut counts: Vec<u64> = self.occupied().map(|slot| self.counts[slot]).collect();
        let rank = counts.len() - values_max - 1;
        let (_, least, _) = counts.select_nth_unstable(rank);
        let least = *least;
        self.error += least;
        self.rebuild(2 * values_max.next_power_of_two(), least);
    }

    fn stop_being_exact(&mut self) {
        if self.distinct.is_none() {
            let mut distinct = Distinct::default();
            self.occupied().for_each(|slot| distinct.add(self.hashes[slot]));
            self.distinct = Some(distinct);
        }
    }

    fn occupied(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.hashes.len()).filter(|slot| self.hashes[*slot] != 0)
    }

    /// Moves to a table of `slots`, with `less` taken from every count.
    fn rebuild(&mut self, slots: usize, less: u64) {
        let old_hashes = std::mem::replace(&mut self.hashes, vec![0; slots]);
        let old_counts = std::mem::replace(&mut self.counts, vec![0; slots]);
        let empty = match &self.keys {
            Keys::Numbers(_) => Keys::Numbers(vec![0; slots]),
            Keys::Floats(_) => Keys::Floats(vec![0; slots]),
            Keys::Texts { .. } => Keys::Texts { spans: vec![(0, 0); slots], arena: Vec::new() },
        };
        let old_keys = std::mem::replace(&mut self.keys, empty);
        self.used = 0;
        for (slot, (hash, count)) in old_hashes.into_iter().zip(old_counts).enumerate() {
            if hash == 0 || count <= less {
                continue;
            }
            let mask = slots - 1;
            let mut to = hash as usize & mask;
            while self.hashes[to] != 0 {
                to = (to + 1) & mask;
            }
            self.hashes[to] = hash;
            self.counts[to] = count - less;
            self.used += 1;
            match (&mut self.keys, &old_keys) {
                (Keys::Numbers(numbers), Keys::Numbers(old)) | (Keys::Floats(numbers), Keys::Floats(old)) => {
                    numbers[to] = old[slot];
                }
                (Keys::Texts { spans, arena }, Keys::Texts { spans: old, arena: old_arena }) => {
                    let (start, length) = old[slot];
                    spans[to] = (arena.len() as u32, length);
                    arena.extend_from_slice(&old_arena[start as usize..(start + length) as usize]);
                }
                _ => unreachable!("a rebuilt table has keys of the same kind"),
            }
        }
    }

    /// The table with whole numbers as floats. Hashes stay.
    pub(crate) fn into_floats(mut self, to_float: impl Fn(u64) -> f64) -> Self {
        if let Keys::Numbers(numbers) = self.keys {
            self.keys = Keys::Floats(numbers.into_iter().map(|number| to_float(number).to_bits()).collect());
        }
        self
    }

    /// The table with numbers as the strings they are shown as.
    pub(crate) fn into_texts(self, to_text: impl Fn(u64) -> String) -> Self {
        if matches!(self.keys, Keys::Texts { .. }) {
            return self;
        }
        let mut texts = Self::of_texts();
        for (number, count) in self.numbers() {
            texts.add_text(to_text(number).as_bytes(), count);
        }
        Self { error: self.error, distinct: self.distinct, ..texts }
    }

    /// Changes strings with their hashes; equal ones are counted together. Where not all values are known, how many different there are
    /// stays, and a later merge may count a changed value of an exact table once more.
    pub(crate) fn change_texts(&mut self, mut change: impl FnMut(&str, u64) -> Option<(u64, String)>) {
        if !self.is_texts() {
            return;
        }
        let mut changed = Self::of_texts();
        let mut is_changed = false;
        for slot in self.occupied() {
            let (hash, count) = (self.hashes[slot], self.counts[slot]);
            let bytes = self.text_at(slot);
            match change(&shown(bytes), hash) {
                Some((hash, text)) => {
                    is_changed = true;
                    changed.add_hashed_text(hash, text.as_bytes(), count);
                }
                None => changed.add_hashed_text(hash, bytes, count),
            }
        }
        if is_changed {
            *self = Self { error: self.error, distinct: self.distinct.take(), ..changed };
        }
    }

    fn text_at(&self, slot: usize) -> &[u8] {
        match &self.keys {
            Keys::Texts { spans, arena } => {
                let (start, length) = spans[slot];
                &arena[start as usize..(start + length) as usize]
            }
            Keys::Numbers(_) | Keys::Floats(_) => &[],
        }
    }

    pub(crate) fn is_texts(&self) -> bool {
        matches!(self.keys, Keys::Texts { .. })
    }

    /// Adds another table's counts. Exact if both are and the values of both together are few enough.
    ///
    /// # Panics
    /// If the keys of the tables are of different kinds.
    pub(crate) fn merge(&mut self, later: Self) {
        assert_eq!(
            std::mem::discriminant(&self.keys),
            std::mem::discriminant(&later.keys),
            "one kind of keys"
        );
        if let Some(distinct) = &later.distinct {
            self.stop_being_exact();
            self.distinct.get_or_insert_default().merge(distinct);
        }
        self.error += later.error;
        for slot in later.occupied() {
            let (hash, count) = (later.hashes[slot], later.counts[slot]);
            match &later.keys {
                Keys::Numbers(numbers) | Keys::Floats(numbers) => self.add_number(numbers[slot], count),
                Keys::Texts { spans, arena } => {
                    let (start, length) = spans[slot];
                    self.add_hashed_text(hash, &arena[start as usize..(start + length) as usize], count);
                }
            }
        }
    }

    /// Numbers with their counts, most frequent first, equal counts by value; empty for strings.
    pub(crate) fn numbers(&self) -> Vec<(u64, u64)> {
        let (Keys::Numbers(numbers) | Keys::Floats(numbers)) = &self.keys else { return Vec::new() };
        let mut all: Vec<_> = self.occupied().map(|slot| (numbers[slot], self.counts[slot])).collect();
        all.sort_unstable_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
        all
    }

    /// Strings with their counts, most frequent first, equal counts by value; empty for numbers. A string longer than
    /// [`MAX_KEPT_BYTES`] ends in `…`.
    pub(crate) fn texts(&self) -> Vec<(String, u64)> {
        let mut all: Vec<_> = self.stored_texts().map(|(_, text, count)| (text, count)).collect();
        all.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        all
    }

    fn stored_texts(&self) -> impl Iterator<Item = (u64, String, u64)> + '_ {
        let slots = self.occupied().filter(|_| self.is_texts());
        slots.map(|slot| (self.hashes[slot], shown(self.text_at(slot)), self.counts[slot]))
    }
}

/// A kept text. A piece of a longer one may end within a letter, which is then left out.
fn shown(bytes: &[u8]) -> String {
    let kept = &bytes[..bytes.len().min(MAX_KEPT_BYTES)];
    let whole = match std::str::from_utf8(kept) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&kept[..error.valid_up_to()]).expect("valid up to here"),
    };
    if bytes.len() > MAX_KEPT_BYTES { format!("{whole}…") } else { whole.to_owned() }
}

/// As stored, most frequent values first. Hashes of strings are stored because a long string is not.
#[derive(Serialize, Deserialize)]
struct StoredCounts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    numbers: Option<Vec<(u64, u64)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floats: Option<Vec<(u64, u64)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    texts: Option<Vec<(u64, String, u64)>>,
    error: u64,
    distinct: Option<Distinct>,
}

impl Serialize for ValueCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut kept = self.clone();
        kept.shorten();
        let mut texts: Vec<_> = kept.stored_texts().collect();
        texts.sort_unstable_by(|one, other| other.2.cmp(&one.2).then(one.0.cmp(&other.0)));
        StoredCounts {
            numbers: matches!(kept.keys, Keys::Numbers(_)).then(|| kept.numbers()),
            floats: matches!(kept.keys, Keys::Floats(_)).then(|| kept.numbers()),
            texts: kept.is_texts().then_some(texts),
            error: kept.error,
            distinct: kept.distinct,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ValueCounts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredCounts::deserialize(deserializer)?;
        let (mut counts, numbers, texts) = match stored {
            StoredCounts { numbers: Some(numbers), floats: None, texts: None, .. } => {
                (Self::of_numbers(), numbers, vec![])
            }
            StoredCounts { numbers: None, floats: Some(floats), texts: None, .. } => {
                (Self::of_floats(), floats, vec![])
            }
            StoredCounts { numbers: None, floats: None, texts: Some(texts), .. } => {
                (Self::of_texts(), vec![], texts)
            }
            _ => return Err(serde::de::Error::custom("values are numbers, floats or strings, one of these")),
        };
        if numbers.len().max(texts.len()) > MAX_VALUES {
            return Err(serde::de::Error::custom(format!("more than {MAX_VALUES} values")));
        }
        for (number, count) in numbers {
            counts.add_number(number, count);
        }
        for (hash, text, count) in texts {
            let kept = text.strip_suffix('…').filter(|kept| kept.len() + 4 > MAX_KEPT_BYTES);
            let mut bytes = kept.unwrap_or(&text).as_bytes().to_vec();
            if kept.is_some() {
                // The bytes of a letter cut in two are gone; others, which are no letters, keep the length.
                bytes.resize(MAX_KEPT_BYTES + 1, 0xFF);
            }
            counts.add_hashed_text(hash.max(1), &bytes, count);
        }
        counts.error = stored.error;
        counts.distinct = stored.distinct;
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn counted(values: &[u64]) -> ValueCounts {
        let mut counts = ValueCounts::of_numbers();
        values.iter().for_each(|value| counts.add_number(*value, 1));
        counts
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Proves the promise of the counts for any values and any cut into parts: exact while values are few, and
        /// otherwise too low by no more than the stated error, with every more frequent value in the table.
        #[test]
        fn counts_are_exact_or_off_by_no_more_than_stated(
            many in 1u64..5000, count in 0usize..8000, cut in 0usize..8000, seed in any::<u64>(),
        ) {
            let value = |index: usize| {
                let random = hash_number(seed ^ index as u64);
                if random.is_multiple_of(3) { random % 7 } else { random % many }
            };
            let values: Vec<u64> = (0..count).map(value).collect();
            let mut truth: HashMap<u64, u64> = HashMap::new();
            values.iter().for_each(|value| *truth.entry(*value).or_default() += 1);
            let cut = cut.min(count);
            let mut merged = counted(&values[..cut]);
            merged.merge(counted(&values[cut..]));
            let back: ValueCounts = serde_json::from_str(&serde_json::to_string(&merged).unwrap()).unwrap();
            for counts in [counted(&values), merged, back] {
                prop_assert_eq!(counts.is_exact(), truth.len() <= MAX_VALUES);
                let found: HashMap<u64, u64> = counts.numbers().into_iter().collect();
                if counts.is_exact() {
                    prop_assert_eq!(&found, &truth);
                    prop_assert_eq!(counts.distinct(), truth.len() as f64);
                }
                for (value, count) in &truth {
                    let shown = found.get(value).copied().unwrap_or(0);
                    prop_assert!(shown <= *count && *count <= shown + counts.error(), "{value}: {shown} of {count}");
                }
                prop_assert!((counts.distinct() - truth.len() as f64).abs() <= 0.05 * truth.len() as f64);
            }
        }
    }

    /// Proves that strings are counted by the whole string but kept short, and come back from storage to be merged.
    #[test]
    fn long_texts_are_counted_whole_and_kept_short() {
        let long = |end: &str| format!("{}é{end}", "x".repeat(MAX_KEPT_BYTES - 1));
        let mut counts = ValueCounts::of_texts();
        counts.add_text(long("a").as_bytes(), 2);
        counts.add_text(long("b").as_bytes(), 3);
        counts.add_text(b"short", 1);
        let mut back: ValueCounts = serde_json::from_str(&serde_json::to_string(&counts).unwrap()).unwrap();
        back.merge(counts);
        let texts = back.texts();
        assert_eq!(texts.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [6, 4, 2]);
        assert!(texts[0].0.ends_with("x…") && texts[2].0 == "short", "{texts:?}");
    }
}
