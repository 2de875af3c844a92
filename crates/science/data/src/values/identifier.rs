//! Columns that name a row instead of describing it.
//!
//! A sample of `n` rows without a repetition means that there are at least about `n²/2` different values, so it
//! represents the table. Whole numbers that merely never repeat may be measurements, so a name, a form or an order has
//! to show what they are ([`evidence`]).
//!
//! **Which rows are equal** is another question ([`candidates`]): with a customer's number in it no row equals another
//! one. So row equality leaves out every column of whole numbers or single words with another value in each row; whole
//! numbers only if they are identifiers by the evidence above or are spread evenly over their range, as drawn numbers
//! are and prices are not. Decimal numbers, times and texts of several words are content and always count.

use serde::{Deserialize, Serialize};
use trackway_tables::ColumnType;
use trackway_tables::pass::head;
use trackway_tables::read::Source;

use crate::values::hashed::Keys;
use crate::values::sampled::{Content, Values, each_bits};

/// With fewer rows, everything differs.
pub(crate) const ROWS_MIN: usize = 50;

/// The largest fraction of rows that lack the value or repeat one.
const ODD_SHARE_MAX: f64 = 0.001;

/// Whole numbers that fill their range at least to this part were counted out.
pub(crate) const DENSE: f64 = 0.25;

/// Letters of the shortest text that is taken for a hash.
pub(crate) const HASH_LETTERS_MIN: usize = 16;

/// Longer words are content: a sequence, an encoded file.
const WORD_LETTERS_MAX: usize = 63;

/// Rows of a table's beginning that are looked at before it is read.
const HEAD_ROWS: usize = 8192;

/// The most columns that are looked at there; of more, those with the name of an identifier come first.
const HEAD_COLUMNS_MAX: usize = 256;

/// The most columns that row equality leaves out.
const CANDIDATES_MAX: usize = 16;

/// With fewer numbers, piled-up ones look like evenly spread ones.
const EVEN_ROWS_MIN: usize = 200;

/// How far evenly spread numbers stray from the straight line, times the root of their count (Kolmogorov, 99.9 %).
const EVEN_DISTANCE_MAX: f64 = 1.95;

/// Why a column is taken for an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentifierEvidence {
    Name,
    /// UUIDs, hashes, or strings of one form with consecutive digits.
    Form,
    /// Whole numbers without large gaps.
    Dense,
    /// It rises (or falls) from row to row.
    Ordered,
}

/// How many rows have a value, and how many different ones there are.
fn counts(values: &Values) -> (usize, usize) {
    let mut different = Keys::default();
    let mut known = 0;
    each_bits(values, |_, bits| {
        known += 1;
        // Bits of numbers are no hashes; the product spreads them over the high bits that a set looks at.
        different.insert(bits.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32));
    });
    (known, different.len())
}

/// Whether so many of `rows` that lack a value or repeat one are few enough.
pub(crate) fn are_few(odd: u64, rows: u64) -> bool {
    odd as f64 <= rows as f64 * ODD_SHARE_MAX
}

pub(crate) fn is_unique(values: &Values) -> bool {
    let (_, different) = counts(values);
    let rows = values.content.len();
    are_few((rows - different) as u64, rows as u64)
}

/// Whether there are enough different values for groups worth keeping together.
pub(crate) fn is_varied(values: &Values) -> bool {
    let (known, different) = counts(values);
    different >= 10 && different < known
}

fn known_numbers(values: &Values) -> Option<Vec<f64>> {
    match &values.content {
        Content::Numbers(numbers) => Some(numbers.iter().copied().filter(|it| !it.is_nan()).collect()),
        Content::Codes(_) => None,
    }
}

/// The fraction of the whole numbers in their range that the values of a table of so many rows are.
pub(crate) fn filled(values: &Values, rows_seen: u64) -> Option<f64> {
    let known = known_numbers(values)?;
    let low = known.iter().copied().reduce(f64::min)?;
    let high = known.iter().copied().reduce(f64::max)?;
    Some((rows_seen as f64 / (high - low + 1.0)).min(1.0))
}

/// What shows that a column without repetitions is an identifier.
pub(crate) fn evidence(named: bool, values: &Values, rows_seen: u64) -> Vec<IdentifierEvidence> {
    let mut evidence = Vec::new();
    if named {
        evidence.push(IdentifierEvidence::Name);
    }
    match known_numbers(values) {
        None => evidence.extend(has_form(&values.texts).then_some(IdentifierEvidence::Form)),
        Some(known) => {
            let filled = filled(values, rows_seen).unwrap_or_default();
            evidence.extend((filled >= DENSE).then_some(IdentifierEvidence::Dense));
            let ordered =
                known.is_sorted_by(|one, next| one < next) || known.is_sorted_by(|one, next| one > next);
            evidence.extend(ordered.then_some(IdentifierEvidence::Ordered));
        }
    }
    evidence
}

/// Parts of a name: `userId`, `user_id` and `User ID` have the same.
pub(crate) fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

pub(crate) fn is_identifier_name(name: &str) -> bool {
    const WORDS: [&str; 9] = ["id", "ids", "uuid", "guid", "key", "hash", "index", "rowid", "identifier"];
    name.is_empty()
        || name.starts_with("Unnamed: ")
        || name.starts_with("__index_level_")
        || words_of(name).iter().any(|word| WORDS.contains(&word.as_str()))
}

/// What shows that a column is an identifier, as a sentence has it. `filled`: the fraction of the whole numbers in its
/// range that it has.
pub(crate) fn because(evidence: &[IdentifierEvidence], filled: Option<f64>) -> String {
    let of = |evidence: &IdentifierEvidence| match evidence {
        IdentifierEvidence::Name => "its name".to_owned(),
        IdentifierEvidence::Form => "the form of its values".to_owned(),
        IdentifierEvidence::Dense => match filled.unwrap_or_default() {
            filled if filled >= 1.0 => "numbers without gaps".to_owned(),
            filled => format!("whole numbers, {:.0} % of those in their range", filled * 100.0),
        },
        IdentifierEvidence::Ordered => "its order".to_owned(),
    };
    evidence.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Whether all strings are UUIDs, hashes, or of one form: the same letters at the same places, and digits between them.
pub(crate) fn has_form(texts: &[String]) -> bool {
    let is_hash = |text: &String| {
        let digits = text.chars().filter(|letter| *letter != '-').count();
        digits >= HASH_LETTERS_MIN
            && text.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit())
            && text.chars().any(|letter| letter.is_ascii_digit())
    };
    let form = |text: &String| -> String {
        text.chars().map(|letter| if letter.is_ascii_digit() { '9' } else { letter }).collect()
    };
    let of_one_form = |first: &String| {
        let first = form(first);
        first.contains('9') && !first.contains(' ') && texts.iter().all(|text| form(text) == first)
    };
    !texts.is_empty() && (texts.iter().all(is_hash) || texts.first().is_some_and(of_one_form))
}

/// Whether all strings are single words.
fn are_words(texts: &[String]) -> bool {
    let is_word = |text: &String| {
        text.len() <= WORD_LETTERS_MAX && text.chars().all(|letter| letter.is_ascii_graphic())
    };
    !texts.is_empty() && texts.iter().all(is_word)
}

/// Whether numbers are spread evenly between the smallest and the largest (Kolmogorov's test).
fn are_even(values: &Values) -> bool {
    let Some(mut known) = known_numbers(values).filter(|known| known.len() >= EVEN_ROWS_MIN) else {
        return false;
    };
    known.sort_by(f64::total_cmp);
    let (low, count) = (known[0], known.len() as f64);
    let range = known[known.len() - 1] - low;
    let strays =
        |(index, number): (usize, &f64)| ((number - low) / range - (index as f64 + 0.5) / count).abs();
    let distance = known.iter().enumerate().map(strays).fold(0.0, f64::max);
    range > 0.0 && distance * count.sqrt() <= EVEN_DISTANCE_MAX
}

fn is_candidate(name: &str, values: &Values) -> bool {
    let rows = values.content.len();
    if rows < ROWS_MIN || !is_unique(values) {
        return false;
    }
    match values.kind {
        ColumnType::Text => are_words(&values.texts),
        _ => !evidence(is_identifier_name(name), values, rows as u64).is_empty() || are_even(values),
    }
}

/// What a message on equal rows says of the identifiers that did not count; empty without any.
pub(crate) fn without(columns: &[String]) -> String {
    let names: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => format!(" (without {only}, which is different in each row)"),
        [all @ .., last] => {
            format!(" (without {} and {last}, which are different in each row)", all.join(", "))
        }
    }
}

/// Columns that row equality leaves out, by the table's beginning: the reader of the rest has to see whether their values
/// repeat later ([`are_few`]). Never all columns but those in `roles`: then nothing would be left to compare.
pub(crate) fn candidates(source: &Source, roles: &[&str]) -> Vec<String> {
    let columns = source.columns();
    let has_role = |index: &usize| roles.contains(&columns[*index].name.as_str());
    let compared = (0..columns.len()).filter(|index| !has_role(index)).count();
    let may_be = |index: &usize| matches!(columns[*index].kind, ColumnType::Int | ColumnType::Text);
    let mut looked_at: Vec<usize> =
        (0..columns.len()).filter(may_be).filter(|index| !has_role(index)).collect();
    // The sort is stable: of columns alike the first ones stay.
    looked_at.sort_by_key(|index| !is_identifier_name(&columns[*index].name));
    looked_at.truncate(HEAD_COLUMNS_MAX);
    looked_at.sort_unstable();
    let values = first_values(source, &looked_at);
    let names = looked_at.iter().map(|index| &columns[*index].name);
    let found = names.zip(&values).filter(|(name, values)| is_candidate(name, values));
    let mut found: Vec<String> = found.map(|(name, _)| name.clone()).collect();
    found.truncate(CANDIDATES_MAX);
    if found.len() == compared { Vec::new() } else { found }
}

/// The values of some columns in the first rows; none where these cannot be read, which the reader of the rest reports.
fn first_values(source: &Source, columns: &[usize]) -> Vec<Values> {
    let mut values: Vec<Values> =
        columns.iter().map(|index| Values::new(source.columns()[*index].kind)).collect();
    let is_read = head(source, columns, HEAD_ROWS, |chunk| {
        values.iter_mut().zip(chunk.batch.columns()).for_each(|(values, array)| values.add(array));
    });
    if is_read { values } else { Vec::new() }
}
