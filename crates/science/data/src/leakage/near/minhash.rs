//! MinHash of texts: 14 bands of 8 minima over pieces of words, as FineWeb's datatrove uses them. Two texts of which
//! 80 % of the pieces are common have a band in common with a probability of 0.92, those of which half are, with 0.05.
//! Candidates are compared by the pieces with the smallest hashes: all of them in texts of up to 132 words.
//!
//! A piece has five words, and fewer in a text of fewer than 99: a changed word is in as many pieces as a piece has words, and these are
//! most of the pieces of a short text. With a twentieth of the words in a piece two changed words leave 80 % of them common in a text of 19
//! words or more, and one does in a shorter one. A piece that a text has again is another one: without that one changed
//! word would count more, the more often a text repeats its words. Of texts of fewer than 39 words, whose pieces are
//! single words, the order counts too. Two texts are compared by pieces of one size, that of the text which is looked
//! up.

use std::sync::LazyLock;

use trackway_core::{Rng, SplitMix64};
use trackway_formats::hash::hash_bytes;

use super::index::mix;

/// Words of a piece at most.
const PIECE_WORDS_MAX: usize = 5;

/// Words of a text for each word of its pieces.
const WORDS_OF_PIECE_WORD: usize = 20;

/// Texts of which fewer words are common than this cannot be near.
const LENGTH_SHARE_MIN: f64 = 0.8;

/// Shorter texts have too few pieces.
pub(in crate::leakage) const WORDS_MIN: usize = 10;

/// Bands of a text.
pub(in crate::leakage) const BANDS: usize = 14;

/// Minima of a band.
const MINIMA: usize = 8;

/// Pieces that are kept to compare texts by: the standard error of their common fraction is 0.035 at 0.8.
const PIECES_KEPT: usize = 128;

/// Multipliers (odd) and summands, one pair for each minimum.
static HASHES: LazyLock<([u64; BANDS * MINIMA], [u64; BANDS * MINIMA])> = LazyLock::new(|| {
    let mut rng = SplitMix64::new(0x7472_6163_6b77_6179);
    let mut next = || std::array::from_fn(|_| rng.next_u64() | 1);
    (next(), next())
});

/// What is kept of a text.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::leakage) struct Print {
    /// A key for each band.
    pub(in crate::leakage) bands: [u64; BANDS],
    /// The smallest hashes of its pieces, ascending; a repeated piece has another hash each time.
    pieces: Vec<u32>,
    /// The words of a text whose pieces are single words, which say nothing about their order; else empty.
    ordered: Vec<u32>,
}

/// The words of a text, hashed: without their case and what separates them.
pub(in crate::leakage) struct Words(Vec<u64>);

impl Words {
    /// `None` for a text of fewer than [`WORDS_MIN`].
    pub(in crate::leakage) fn of(text: &str) -> Option<Self> {
        let mut letters = String::new();
        let words: Vec<u64> = text
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| {
                letters.clear();
                letters.extend(word.chars().flat_map(char::to_lowercase));
                hash_bytes(letters.as_bytes())
            })
            .collect();
        (words.len() >= WORDS_MIN).then_some(Self(words))
    }

    /// What is kept of it where it is looked up.
    pub(in crate::leakage) fn print(&self) -> Print {
        self.print_of(piece_words(self.0.len()))
    }

    /// What it is compared by with each text that can be near to it: their pieces have different sizes if they are longer or shorter.
    pub(in crate::leakage) fn prints(&self) -> impl Iterator<Item = Print> + '_ {
        let words = self.0.len() as f64;
        let (shortest, longest) = (words * LENGTH_SHARE_MIN, words / LENGTH_SHARE_MIN);
        let sizes = piece_words(shortest.ceil() as usize)..=piece_words(longest as usize);
        sizes.map(|size| self.print_of(size))
    }

    fn print_of(&self, piece_words: usize) -> Print {
        let mut pieces: Vec<u64> = self
            .0
            .windows(piece_words)
            .map(|piece| piece.iter().fold(piece_words as u64, |key, word| mix(key, *word)))
            .collect();
        number_repeats(&mut pieces);
        let bands = bands(&pieces);
        let mut kept: Vec<u32> = pieces.iter().map(|piece| (piece >> 32) as u32).collect();
        kept.dedup();
        kept.truncate(PIECES_KEPT);
        let is_of_words = piece_words == 1;
        let ordered = self.0.iter().filter(|_| is_of_words).map(|word| (word >> 32) as u32).collect();
        Print { bands, pieces: kept, ordered }
    }
}

/// How many words the pieces of a text of so many have.
fn piece_words(words: usize) -> usize {
    ((words + 1) / WORDS_OF_PIECE_WORD).clamp(1, PIECE_WORDS_MAX)
}

/// Sorts pieces and makes each repetition of one a piece that differs: the second `the` of a text is its own.
fn number_repeats(pieces: &mut Vec<u64>) {
    pieces.sort_unstable();
    let (mut last, mut repeats) = (None, 0);
    for piece in pieces.iter_mut() {
        repeats = if last == Some(*piece) { repeats + 1 } else { 0 };
        last = Some(*piece);
        if repeats > 0 {
            *piece = mix(*piece, repeats);
        }
    }
    pieces.sort_unstable();
    pieces.dedup();
}

impl Print {
    /// The fraction of pieces of either text that both have, and of single words of those that both have in the same order.
    pub(in crate::leakage) fn similarity(&self, other: &Self) -> f64 {
        let of_pieces = self.common_pieces(other);
        let longest = self.ordered.len().max(other.ordered.len());
        match longest {
            0 => of_pieces,
            _ => of_pieces.min(common_in_order(&self.ordered, &other.ordered) as f64 / longest as f64),
        }
    }

    /// The fraction of pieces of either text that both have (Jaccard): of the smallest pieces of both together.
    fn common_pieces(&self, other: &Self) -> f64 {
        let most = match self.pieces.len().max(other.pieces.len()) < PIECES_KEPT {
            true => usize::MAX,
            false => PIECES_KEPT,
        };
        let (mut one, mut two) = (self.pieces.iter().peekable(), other.pieces.iter().peekable());
        let (mut all, mut common) = (0, 0);
        while all < most {
            match (one.peek(), two.peek()) {
                (None, None) => break,
                (Some(a), Some(b)) if a == b => {
                    common += 1;
                    one.next();
                    two.next();
                }
                (Some(a), Some(b)) if a > b => drop(two.next()),
                (None, Some(_)) => drop(two.next()),
                _ => drop(one.next()),
            }
            all += 1;
        }
        f64::from(common) / all.max(1) as f64
    }

    pub(in crate::leakage) fn size_bytes(&self) -> usize {
        size_of::<Self>() + (self.pieces.len() + self.ordered.len()) * size_of::<u32>()
    }
}

/// The length of the longest common subsequence.
fn common_in_order(one: &[u32], other: &[u32]) -> usize {
    let mut lengths = vec![0; other.len() + 1];
    for word in one {
        let mut diagonal = 0;
        for (at, same) in other.iter().enumerate() {
            let above = lengths[at + 1];
            lengths[at + 1] = if word == same { diagonal + 1 } else { above.max(lengths[at]) };
            diagonal = above;
        }
    }
    lengths[other.len()]
}

fn bands(pieces: &[u64]) -> [u64; BANDS] {
    let (factors, summands) = &*HASHES;
    let mut minima = [u32::MAX; BANDS * MINIMA];
    for piece in pieces {
        for (minimum, (factor, summand)) in minima.iter_mut().zip(factors.iter().zip(summands)) {
            let hash = (piece.wrapping_mul(*factor).wrapping_add(*summand) >> 32) as u32;
            *minimum = (*minimum).min(hash);
        }
    }
    std::array::from_fn(|band| {
        let own = &minima[band * MINIMA..(band + 1) * MINIMA];
        own.iter().fold(band as u64, |key, minimum| mix(key, u64::from(*minimum)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(one: &str, other: &str) -> f64 {
        let looked_up = Words::of(one).unwrap().print();
        Words::of(other).unwrap().prints().map(|print| looked_up.similarity(&print)).fold(0.0, f64::max)
    }

    /// A text of so many words that repeats a few of them often, as sentences do.
    fn repeating(words: usize) -> Vec<String> {
        let word =
            |at: usize| if at.is_multiple_of(2) { format!("w{}", at % 3) } else { format!("rare{at}") };
        (0..words).map(word).collect()
    }

    /// Proves that one changed word leaves a text near to itself, and two do from 19 words on, though the text repeats its words.
    #[test]
    fn changed_words_leave_a_text_near() {
        for words in [10, 12, 15, 18, 19, 20, 29, 38, 39, 40, 58, 59, 80, 98, 99, 130] {
            let text = repeating(words);
            for place in [0, 1, words / 2, words - 1] {
                let mut changed = text.clone();
                changed[place] = "other".into();
                assert!(
                    similarity(&text.join(" "), &changed.join(" ")) >= 0.8,
                    "{words} words, place {place}"
                );
                if words >= 19 {
                    changed[(place + words / 2) % words] = "further".into();
                    let both = similarity(&text.join(" "), &changed.join(" "));
                    assert!(both >= 0.8, "{words} words, two from place {place}: {both}");
                }
            }
        }
    }

    /// Proves that the same words in another order, and as many other words among frequent ones, are not near.
    #[test]
    fn other_texts_are_not_near() {
        let text = repeating(30);
        let reversed: Vec<String> = text.iter().rev().cloned().collect();
        let others: Vec<String> = text.iter().map(|word| word.replace("rare", "new")).collect();
        for other in [reversed, others] {
            assert!(similarity(&text.join(" "), &other.join(" ")) < 0.8, "{other:?}");
        }
    }
}
