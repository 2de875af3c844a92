//! Finds many words in bytes, in any case. Three bytes of the text make a key, and a small table says of a key whether
//! a word begins with it: nearly all places of a log end there, in a table that stays in the nearest cache. What is
//! left is compared word by word.

/// How many pairs there are: two bytes as they are folded.
const PAIRS: usize = FOLDED * FOLDED;
/// A key is a pair and five bits of the third byte.
const THIRDS: usize = 32;
/// A shorter word has as many keys as there are bytes that may follow it.
const KEY_BYTES: usize = 3;
/// What a byte may become in a key.
const FOLDED: usize = 64;

/// Of each byte what it is in a key: letters in any case, digits and the signs of secrets are different ones.
static FOLD: [u8; 256] = folds();

const fn folds() -> [u8; 256] {
    const SIGNS: &[u8] = b"_-/.:=\" ',\n%\\\r@+";
    let mut folds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        folds[byte] = match byte as u8 {
            letter @ (b'a'..=b'z' | b'A'..=b'Z') => letter & 31,
            digit @ b'0'..=b'9' => 27 + (digit - b'0'),
            other => 53 + other % 11,
        };
        byte += 1;
    }
    let mut sign = 0;
    while sign < SIGNS.len() {
        folds[SIGNS[sign] as usize] = 37 + sign as u8;
        sign += 1;
    }
    folds
}

const fn pair_of(first: u8, second: u8) -> usize {
    first as usize + second as usize * FOLDED
}

const fn key_of(pair: usize, third: u8) -> usize {
    pair * THIRDS + third as usize % THIRDS
}

/// A set of words, numbered in their order.
pub(crate) struct Words {
    /// All words, one behind the other.
    bytes: Vec<u8>,
    /// Where each word ends.
    ends: Vec<usize>,
    /// Of each pair one bit for each key with which a word begins.
    begun: Box<[u32; PAIRS]>,
    /// How many such keys are before those of each pair.
    before: Box<[u32; PAIRS]>,
    keys: Vec<Key>,
    /// The words of each key, in the order of the keys.
    by_key: Vec<u32>,
    /// Words shorter than a key, once more: they may be the last bytes of a text.
    short: Vec<u32>,
}

/// What is known of the words that begin with a key.
#[derive(Default)]
struct Key {
    /// Which bytes may follow it, by what they are in a key, and which may follow those: one bit for each.
    next: [u64; 2],
    /// Where its words end in [`Words::by_key`]; they begin where those of the key before it end.
    end: usize,
}

impl Words {
    pub fn new(words: Vec<Vec<u8>>) -> Self {
        let mut begun = Box::new([0u32; PAIRS]);
        let (mut keyed, mut short) = (Vec::new(), Vec::new());
        for (number, word) in (0u32..).zip(&words) {
            // What the missing bytes of a short word are does not count.
            let folds = |at: usize| {
                word.get(at)
                    .map_or(0..FOLDED as u8, |byte| FOLD[usize::from(*byte)]..FOLD[usize::from(*byte)] + 1)
            };
            // Nothing is nowhere.
            if word.is_empty() {
                continue;
            }
            for pair in folds(0).flat_map(|first| folds(1).map(move |second| pair_of(first, second))) {
                keyed.extend(folds(2).map(|third| (key_of(pair, third), number)));
            }
            if word.len() < KEY_BYTES {
                short.push(number);
            }
        }
        keyed.sort_unstable();
        keyed.dedup();
        let mut keys: Vec<Key> = Vec::new();
        for (place, (key, number)) in keyed.iter().enumerate() {
            if begun[key / THIRDS] >> (key % THIRDS) & 1 == 0 {
                begun[key / THIRDS] |= 1 << (key % THIRDS);
                keys.push(Key::default());
            }
            let Some(of_key) = keys.last_mut() else { continue };
            let word = &words[*number as usize];
            for (ahead, next) in of_key.next.iter_mut().enumerate() {
                *next |= word.get(KEY_BYTES + ahead).map_or(u64::MAX, |byte| 1 << FOLD[usize::from(*byte)]);
            }
            of_key.end = place + 1;
        }
        let mut before = Box::new([0u32; PAIRS]);
        for at in 1..before.len() {
            before[at] = before[at - 1] + begun[at - 1].count_ones();
        }
        let by_key = keyed.into_iter().map(|(_, number)| number).collect();
        let ends = words.iter().scan(0, |end, word| {
            *end += word.len();
            Some(*end)
        });
        Self { ends: ends.collect(), bytes: words.concat(), begun, before, keys, by_key, short }
    }

    /// Calls `found` with the place and the number of each word in the text, also of those that overlap; the places grow.
    pub fn find_all(&self, bytes: &[u8], mut found: impl FnMut(usize, usize)) {
        let fold = |at: usize| bytes.get(at).map_or(0, |byte| FOLD[usize::from(*byte)]);
        let mut pair = pair_of(fold(0), fold(1));
        for (at, third) in bytes.iter().skip(KEY_BYTES - 1).enumerate() {
            let third = FOLD[usize::from(*third)];
            if self.begun[pair % PAIRS] >> (usize::from(third) % THIRDS) & 1 == 1 {
                self.compare_begun(key_of(pair, third), at, bytes, &mut found);
            }
            // The second byte and the third one.
            pair = pair / FOLDED + usize::from(third) * FOLDED;
        }
        // Where no third byte is, only words shorter than a key have room.
        let last = bytes.len().saturating_sub(KEY_BYTES - 1)..bytes.len();
        last.for_each(|at| self.compare(&self.short, at, bytes, &mut found));
    }

    /// Compares the words that begin with a key, unless the bytes behind it are of none. Not in the loop over all
    /// places, which is fast as long as it is small.
    #[inline(never)]
    fn compare_begun(&self, key: usize, at: usize, bytes: &[u8], found: &mut impl FnMut(usize, usize)) {
        let below = self.begun[key / THIRDS] & ((1 << (key % THIRDS)) - 1);
        let rank = (self.before[key / THIRDS] + below.count_ones()) as usize;
        let Key { next, end } = &self.keys[rank];
        // Behind the end of the text only words that are as short as the key are left, which any byte may follow.
        let may_follow = |(ahead, next): (usize, &u64)| {
            let byte = bytes.get(at + KEY_BYTES + ahead).copied().unwrap_or_default();
            next >> FOLD[usize::from(byte)] & 1 == 1
        };
        if next.iter().enumerate().all(may_follow) {
            let begin = rank.checked_sub(1).map_or(0, |before| self.keys[before].end);
            self.compare(&self.by_key[begin..*end], at, bytes, found);
        }
    }

    fn compare(&self, numbers: &[u32], at: usize, bytes: &[u8], found: &mut impl FnMut(usize, usize)) {
        for number in numbers {
            let number = *number as usize;
            let word =
                &self.bytes[number.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[number]];
            let Some(text) = bytes.get(at..at + word.len()) else { continue };
            // Words with a key in common most often differ in their ends.
            let ends = text.last().zip(word.last());
            if ends.is_some_and(|(left, right)| left.eq_ignore_ascii_case(right))
                && text.eq_ignore_ascii_case(word)
            {
                found(at, number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that every word is found at every place and nothing else is, whatever the bytes are: as a search that
    /// compares each word with each place.
    #[test]
    fn all_words_are_found() {
        let words = [
            "", "2", "1/", "a", "sk-", "SK", "api_key", "api key", "\u{e9}t\u{e9}", "aaa", "aa",
            "-----begin ",
        ];
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let finder = Words::new(words.clone());
        let mut state = 7u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..4_000 {
            let mut text = Vec::new();
            while text.len() < round % 40 {
                match random(3) {
                    0 => text.extend_from_slice(&words[random(words.len())]),
                    1 => text.push(random(256) as u8),
                    _ => text.push(b"aAkKsS-_12/ \n"[random(13)]),
                }
            }
            let mut found = Vec::new();
            finder.find_all(&text, |at, number| found.push((at, number)));
            assert!(found.is_sorted_by_key(|(at, _)| *at));
            found.sort_unstable();
            let is_at = |at: usize, word: &[u8]| {
                !word.is_empty()
                    && text.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
            };
            let expected: Vec<(usize, usize)> = (0..text.len())
                .flat_map(|at| (0..words.len()).map(move |number| (at, number)))
                .filter(|(at, number)| is_at(*at, &words[*number]))
                .collect();
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(&text));
        }
    }
}
