//! The dialect of a CSV file: separator, header and names, from its beginning.

use csv_core::{ReadRecordResult, ReaderBuilder};

use crate::infer::{ColumnType, trim, type_of};

/// How much of the file decides the separator.
pub(crate) const SAMPLE_BYTES: usize = 64 << 10;

/// How many rows of the sample are compared.
const SAMPLE_ROWS: usize = 200;

/// Separators that are tried, the most usual first.
const DELIMITERS: &[u8] = b",\t;|";

/// What the first row is, by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstRow {
    Header,
    Data,
    /// Words, some of them repeated: a header if a column below one of them holds no words.
    Words,
}

/// A first row is a header when it repeats the user's names, or when the user gave none and it holds only
/// different words: a row of data holds a number, a date or a repetition sooner or later. (A blank is legal:
/// data frames write their index under one.) Of repeated words, the rows below decide.
pub(crate) fn first_row(first: &[&[u8]], user_names: &[String]) -> FirstRow {
    if !user_names.is_empty() {
        let is_repeated = first.len() == user_names.len()
            && first.iter().zip(user_names).all(|(field, name)| trim(field) == name.as_bytes());
        return if is_repeated { FirstRow::Header } else { FirstRow::Data };
    }
    let words: Vec<&[u8]> = first.iter().map(|field| trim(field)).filter(|field| !field.is_empty()).collect();
    if words.is_empty() || words.iter().any(|field| type_of(field) != ColumnType::Text) {
        return FirstRow::Data;
    }
    let different: std::collections::BTreeSet<&[u8]> = words.iter().copied().collect();
    if different.len() == words.len() { FirstRow::Header } else { FirstRow::Words }
}

pub(crate) fn column_names(first: &[&[u8]], is_header: bool) -> Vec<String> {
    let name = |(index, field): (usize, &&[u8])| match is_header {
        true if !trim(field).is_empty() => String::from_utf8_lossy(trim(field)).into_owned(),
        _ => format!("column_{}", index + 1),
    };
    first.iter().enumerate().map(name).collect()
}

/// The separator that gives most rows of the sample the same number of fields, more than one; a comma if none does.
pub(crate) fn detect_delimiter(sample: &[u8]) -> u8 {
    // A first row may be far longer than a sample needs to be.
    let sample = &sample[..sample.len().min(2 * SAMPLE_BYTES)];
    let score = |delimiter: &u8| {
        let counts = field_counts(sample, *delimiter);
        let first = counts.first().copied().unwrap_or(0);
        let agreeing = counts.iter().filter(|count| **count == first).count();
        if first < 2 { (0, 0) } else { (agreeing * 100 / counts.len().max(1), first) }
    };
    let best = DELIMITERS.iter().rev().max_by_key(|delimiter| score(delimiter)).copied();
    best.filter(|delimiter| score(delimiter) > (0, 0)).unwrap_or(b',')
}

/// Fields per row of the sample's first rows.
fn field_counts(sample: &[u8], delimiter: u8) -> Vec<usize> {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
    let mut output = vec![0; sample.len() + 1];
    let mut ends = vec![0; sample.len() + 1];
    let mut counts = Vec::new();
    let mut rest = sample;
    while counts.len() < SAMPLE_ROWS {
        let (result, read, _, count) = reader.read_record(rest, &mut output, &mut ends);
        rest = &rest[read..];
        match result {
            ReadRecordResult::Record => counts.push(count),
            // Of a first row that is longer than the sample, what there is of it.
            _ if counts.is_empty() => {
                counts.push(count + 1);
                break;
            }
            _ => break,
        }
    }
    counts
}
