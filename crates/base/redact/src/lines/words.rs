//! Finds many words in bytes, in any case. Three bytes of the text make a key, and a small table says of a key whether
//! a word begins with it: nearly all places of a log end there, in a table that stays in the nearest cache. What is
//! left is compared word by word. Most lines of a long output differ from an earlier one in digits only: where no word
//! begins in such a line whatever its digits are, it is compared with the earlier one and not searched.

use once_cell::race::OnceBox;

/// How many pairs there are: two bytes as they are folded.
const PAIRS: usize = FOLDED * FOLDED;
/// A key is a pair and five bits of the third byte.
const THIRDS: usize = 32;
/// A shorter word has as many keys as there are bytes that may follow it.
const KEY_BYTES: usize = 3;
/// What a byte may become in a key.
const FOLDED: usize = 64;
/// A shorter text is searched at once.
const LINES_BYTES_MIN: usize = 1024;
/// A line is compared with an earlier one of its length; so many lengths are distinguished.
const LENGTHS: usize = 64;
/// So many bytes are compared together; a shorter line is always searched.
const TOGETHER: usize = 16;
/// A longer line is always searched.
const LINE_BYTES_MAX: usize = 4096;

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
    /// What a word has in its first line, with zeros for all digits: a line with zeros for its digits that has none of these
    /// has none of the words whatever its digits are.
    without_digits: OnceBox<Words>,
}

/// An earlier line of a text, with the newline or the carriage return at its end.
#[derive(Clone, Copy, Default)]
struct EarlierLine {
    begin: usize,
    length: usize,
    /// Whether no word begins in it whatever its digits are. `None`: no other line was like it.
    is_clear: Option<bool>,
}

/// What is known of the words that begin with a key.
#[derive(Default)]
struct Key {
    /// Which bytes may follow it, by what they are in a key, and which may follow those: one bit for each.
    next: [u64; 2],
    /// Where its words end in [`Words::by_key`]; they begin where those of the key before it end.
    end: usize,
}

impl EarlierLine {
    /// Whether so many bytes from a place on differ from it in digits only.
    #[inline]
    fn is_again(&self, length: usize, bytes: &[u8], begin: usize) -> bool {
        length == self.length && is_alike(&bytes[begin..], &bytes[self.begin..], length)
    }
}

impl Words {
    pub fn new(words: &[&[u8]]) -> Self {
        let mut begun = Box::new([0u32; PAIRS]);
        // A key and the number of a word with it, in one number: these are sorted at each start.
        let (mut keyed, mut short) = (Vec::new(), Vec::new());
        for (number, word) in (0u32..).zip(words) {
            // What the missing bytes of a short word are does not count.
            let folds = |at: usize| {
                let all = if at + 1 < KEY_BYTES { FOLDED } else { THIRDS };
                word.get(at)
                    .map_or(0..all as u8, |byte| FOLD[usize::from(*byte)]..FOLD[usize::from(*byte)] + 1)
            };
            // Nothing is nowhere.
            if word.is_empty() {
                continue;
            }
            for pair in folds(0).flat_map(|first| folds(1).map(move |second| pair_of(first, second))) {
                keyed.extend(
                    folds(2).map(|third| (key_of(pair, third) as u64) << u32::BITS | u64::from(number)),
                );
            }
            if word.len() < KEY_BYTES {
                short.push(number);
            }
        }
        keyed.sort_unstable();
        keyed.dedup();
        let mut keys: Vec<Key> = Vec::new();
        for (place, keyed) in keyed.iter().enumerate() {
            let (key, number) = ((keyed >> u32::BITS) as usize, *keyed as u32);
            if begun[key / THIRDS] >> (key % THIRDS) & 1 == 0 {
                begun[key / THIRDS] |= 1 << (key % THIRDS);
                keys.push(Key::default());
            }
            let Some(of_key) = keys.last_mut() else { continue };
            let word = words[number as usize];
            for (ahead, next) in of_key.next.iter_mut().enumerate() {
                *next |= word.get(KEY_BYTES + ahead).map_or(u64::MAX, |byte| 1 << FOLD[usize::from(*byte)]);
            }
            of_key.end = place + 1;
        }
        let mut before = Box::new([0u32; PAIRS]);
        for at in 1..before.len() {
            before[at] = before[at - 1] + begun[at - 1].count_ones();
        }
        let by_key = keyed.into_iter().map(|keyed| keyed as u32).collect();
        let ends = words.iter().scan(0, |end, word| {
            *end += word.len();
            Some(*end)
        });
        let (ends, bytes, without_digits) = (ends.collect(), words.concat(), OnceBox::new());
        Self { ends, bytes, begun, before, keys, by_key, short, without_digits }
    }

    /// Calls `found` with the place and the number of each word in the text, also of those that overlap; the places grow. Words that are
    /// nothing where they are need not be found: `may_be` says of the number of a word, a line and the place in it whether the word may be
    /// something there whatever the digits of the line are.
    pub fn find_all(
        &self,
        bytes: &[u8],
        may_be: impl Fn(usize, &[u8], usize) -> bool,
        mut found: impl FnMut(usize, usize),
    ) {
        let mut searched = 0;
        if bytes.len() >= LINES_BYTES_MIN {
            self.each_clear_line(bytes, may_be, |begin, end| {
                self.find_in(searched..begin, bytes, &mut found);
                searched = end;
            });
        }
        self.find_in(searched..bytes.len(), bytes, &mut found);
        // Where no third byte is, only words shorter than a key have room.
        let last = bytes.len().saturating_sub(KEY_BYTES - 1)..bytes.len();
        last.for_each(|at| self.compare(&self.short, at, bytes, &mut found));
    }

    /// Finds the words that begin at these places and have a third byte.
    fn find_in(&self, places: std::ops::Range<usize>, bytes: &[u8], found: &mut impl FnMut(usize, usize)) {
        if places.is_empty() {
            return;
        }
        let fold = |at: usize| bytes.get(at).map_or(0, |byte| FOLD[usize::from(*byte)]);
        let mut pair = pair_of(fold(places.start), fold(places.start + 1));
        let thirds = bytes.get(places.start + KEY_BYTES - 1..).unwrap_or_default();
        for (at, third) in places.zip(thirds) {
            let third = FOLD[usize::from(*third)];
            if self.begun[pair % PAIRS] >> (usize::from(third) % THIRDS) & 1 == 1 {
                self.compare_begun(key_of(pair, third), at, bytes, found);
            }
            // The second byte and the third one.
            pair = pair / FOLDED + usize::from(third) * FOLDED;
        }
    }

    /// Calls `found` with the begin and the end of each line that is like an earlier one but for its digits, and in which no
    /// word begins whatever these are.
    fn each_clear_line(
        &self,
        bytes: &[u8],
        may_be: impl Fn(usize, &[u8], usize) -> bool,
        mut found: impl FnMut(usize, usize),
    ) {
        let mut lines = [EarlierLine::default(); LENGTHS];
        let (mut begin, mut length) = (0, 0);
        while begin < bytes.len() {
            // Most lines have the length of the one before. An earlier line has no end but at its end.
            let mut is_again = lines[length % LENGTHS].is_again(length, bytes, begin);
            if !is_again {
                let Some(last) = memchr::memchr2(b'\n', b'\r', &bytes[begin..]) else { return };
                length = last + 1;
                is_again = lines[length % LENGTHS].is_again(length, bytes, begin);
            }
            let (earlier, end) = (&mut lines[length % LENGTHS], begin + length);
            if !is_again {
                *earlier =
                    EarlierLine { begin, length, is_clear: (length > LINE_BYTES_MAX).then_some(false) };
            } else if *earlier.is_clear.get_or_insert_with(|| self.is_clear(&bytes[begin..end], &may_be)) {
                found(begin, end);
            }
            begin = end;
        }
    }

    /// Whether no word begins in a line, with its end, whatever its digits are.
    fn is_clear(&self, line: &[u8], may_be: impl Fn(usize, &[u8], usize) -> bool) -> bool {
        let words = self.without_digits.get_or_init(|| {
            let words = (0..self.ends.len()).map(|number| {
                let word = self.word(number);
                let end = memchr::memchr2(b'\n', b'\r', word).map_or(word.len(), |last| last + 1);
                with_zeros(&word[..end])
            });
            let words: Vec<Vec<u8>> = words.collect();
            Box::new(Self::new(&words.iter().map(Vec::as_slice).collect::<Vec<_>>()))
        });
        let line = with_zeros(line);
        let mut is_clear = true;
        let mut found = |at, word| is_clear &= !may_be(word, &line, at);
        words.find_in(0..line.len(), &line, &mut found);
        let last = line.len().saturating_sub(KEY_BYTES - 1)..line.len();
        last.for_each(|at| words.compare(&words.short, at, &line, &mut found));
        is_clear
    }

    fn word(&self, number: usize) -> &[u8] {
        &self.bytes[number.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[number]]
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
            let word = self.word(number);
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

/// The text with a zero for each digit.
fn with_zeros(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte }).collect()
}

/// Adds which bytes differ in anything but digits. Each byte by itself to the end, so that all are compared at once.
#[inline(always)]
fn differing(any: &mut [u8; TOGETHER], text: &[u8; TOGETHER], other: &[u8; TOGETHER]) {
    for ((any, byte), other) in any.iter_mut().zip(text).zip(other) {
        let are_digits = (byte.wrapping_sub(b'0') < 10) & (other.wrapping_sub(b'0') < 10);
        *any |= u8::from((byte != other) & !are_digits);
    }
}

/// Whether the first bytes, so many, are the same but for digits where both have digits.
#[inline]
fn is_alike(text: &[u8], other: &[u8], length: usize) -> bool {
    let (Some(text), Some(other)) = (text.get(..length), other.get(..length)) else { return false };
    let parts = text.as_chunks().0.iter().zip(other.as_chunks().0);
    let ends = text.last_chunk().zip(other.last_chunk());
    // The last bytes are in no whole part, but in one that ends with the text.
    let Some((last, other_last)) = ends else { return false };
    let mut any = [0; TOGETHER];
    differing(&mut any, last, other_last);
    for (text, other) in parts {
        differing(&mut any, text, other);
    }
    u128::from_le_bytes(any) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that in lines that come again with other digits the same words are found as by a search of each line by itself: words with
    /// digits, words that end or continue behind the end of a line, and lines of several lengths.
    #[test]
    fn words_in_lines_that_come_again_are_found() {
        let words = ["k7z", "password\n", "end\nnext", "1\n2", "-9x", "in", "secret 12"];
        let words = words.map(str::as_bytes);
        let finder = Words::new(&words);
        let forms = [
            "step 0000 of the set, all of it\n",
            "k0z of the step 0000, all of it\n",
            "what we have at the end\n",
            "next to that comes the line 0\n",
            "the number behind it is 0\n",
            "00 lines are left to read of all\n",
            "the password\n",
            "a secret 00 that may be one\n",
            "-0x and more of that, 00000\n",
            "short 0\n",
            "bar of 00 %, drawn over itself\r",
            "with another end of it 0\r\n",
        ];
        let mut state = 7u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..300 {
            let mut text = Vec::new();
            let mut form = 0;
            while text.len() < 3_000 + round {
                form = if random(4) == 0 { random(forms.len()) } else { form };
                let digit = |byte: u8, random: &mut dyn FnMut(usize) -> usize| match byte {
                    b'0' => b'0' + random(10) as u8,
                    other => other,
                };
                text.extend(forms[form].bytes().map(|byte| digit(byte, &mut random)));
            }
            text.truncate(3_000 + round);
            let mut found = Vec::new();
            finder.find_all(&text, |_, _, _| true, |at, number| found.push((at, number)));
            assert!(found.is_sorted_by_key(|(at, _)| *at));
            found.sort_unstable();
            let is_at = |at: usize, word: &[u8]| {
                text.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
            };
            let expected: Vec<(usize, usize)> = (0..text.len())
                .flat_map(|at| (0..words.len()).map(move |number| (at, number)))
                .filter(|(at, number)| is_at(*at, words[*number]))
                .collect();
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(&text));
        }
        let mut clear = 0;
        let text = forms[0].repeat(100);
        finder.each_clear_line(text.as_bytes(), |_, _, _| true, |_, _| clear += 1);
        assert_eq!(clear, 99);
    }

    /// Proves that every word is found at every place and nothing else is, whatever the bytes are: as a search that
    /// compares each word with each place.
    #[test]
    fn all_words_are_found() {
        let words = [
            "", "2", "1/", "a", "sk-", "SK", "api_key", "api key", "\u{e9}t\u{e9}", "aaa", "aa",
            "-----begin ",
        ];
        let words = words.map(str::as_bytes);
        let finder = Words::new(&words);
        let mut state = 7u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..4_000 {
            let mut text = Vec::new();
            while text.len() < round % 40 {
                match random(3) {
                    0 => text.extend_from_slice(words[random(words.len())]),
                    1 => text.push(random(256) as u8),
                    _ => text.push(b"aAkKsS-_12/ \n"[random(13)]),
                }
            }
            let mut found = Vec::new();
            finder.find_all(&text, |_, _, _| true, |at, number| found.push((at, number)));
            assert!(found.is_sorted_by_key(|(at, _)| *at));
            found.sort_unstable();
            let is_at = |at: usize, word: &[u8]| {
                !word.is_empty()
                    && text.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
            };
            let expected: Vec<(usize, usize)> = (0..text.len())
                .flat_map(|at| (0..words.len()).map(move |number| (at, number)))
                .filter(|(at, number)| is_at(*at, words[*number]))
                .collect();
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(&text));
        }
    }
}
