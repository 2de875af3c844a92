//! The dialect of a CSV file: separator, header and names, from its beginning.

use std::collections::BTreeMap;

use csv_core::{ReadRecordResult, ReaderBuilder};

use super::cells::to_text;
use super::split::{Dialect, RowEnd, Splitter};
use crate::types::infer::{Form, form_of};

/// How much of the file decides the separator.
pub(crate) const SAMPLE_BYTES: usize = 64 << 10;

/// How many rows of the sample are compared.
const SAMPLE_ROWS: usize = 200;

/// So many of the rows have to agree where the first one has no separator.
const MOST: f64 = 0.5;

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
pub(crate) fn first_row(first: &[Vec<u8>], user_names: &[String]) -> FirstRow {
    if !user_names.is_empty() {
        let is_repeated = first.len() == user_names.len()
            && first.iter().zip(user_names).all(|(field, name)| field == name.as_bytes());
        return if is_repeated { FirstRow::Header } else { FirstRow::Data };
    }
    let words: Vec<&[u8]> = first.iter().map(Vec::as_slice).filter(|field| !field.is_empty()).collect();
    if words.is_empty() || words.iter().any(|field| form_of(field) != Form::Text) {
        return FirstRow::Data;
    }
    let different: std::collections::BTreeSet<&[u8]> = words.iter().copied().collect();
    if different.len() == words.len() { FirstRow::Header } else { FirstRow::Words }
}

/// Years that name columns.
const YEARS: std::ops::RangeInclusive<u64> = 1800..=2100;

/// Whether a row numbers columns: years at equal distances beside words or an empty field, as statistics have them
/// (`country,2019,2020`), or 0, 1, 2 behind an empty field, as data frames without names are written.
pub(crate) fn numbers_columns(fields: &[Vec<u8>]) -> bool {
    let filled = fields.iter().filter(|field| !field.is_empty());
    let (numbers, words): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) =
        filled.partition(|field| form_of(field) == Form::Whole);
    let number = |field: &&Vec<u8>| std::str::from_utf8(field).ok()?.parse::<u64>().ok();
    let numbers: Vec<u64> = numbers.iter().filter_map(number).collect();
    let (Some([first, second]), true) =
        (numbers.first_chunk(), words.iter().all(|word| form_of(word) == Form::Text))
    else {
        return false;
    };
    let is_even =
        second > first && numbers.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(second - first));
    let are_years =
        (!words.is_empty() || fields[0].is_empty()) && numbers.iter().all(|number| YEARS.contains(number));
    let are_places = fields[0].is_empty() && (*first, *second) == (0, 1);
    is_even && (are_years || are_places)
}

pub(crate) fn column_names(first: &[Vec<u8>], is_header: bool) -> Vec<String> {
    let name = |(index, field): (usize, &Vec<u8>)| match is_header {
        true if !field.is_empty() => to_text(field).into_owned(),
        _ => format!("column_{}", index + 1),
    };
    first.iter().enumerate().map(name).collect()
}

/// The separator that gives most rows of the sample the same number of fields, more than one; a comma if none does.
pub(crate) fn detect_delimiter(sample: &[u8], comment: Option<u8>) -> u8 {
    let sample = beginning(sample);
    let score = |delimiter: &u8| {
        let counts = field_counts(sample, *delimiter, comment);
        let first = counts.first().copied().unwrap_or(0);
        let agreeing = counts.iter().filter(|count| **count == first).count();
        if first < 2 { (0, 0) } else { (agreeing * 100 / counts.len().max(1), first) }
    };
    let best = DELIMITERS.iter().rev().max_by_key(|delimiter| score(delimiter)).copied();
    let best = best.filter(|delimiter| score(delimiter) > (0, 0));
    best.or_else(|| delimiter_below(sample, comment)).unwrap_or(b',')
}

/// The separator of the rows below a first one that has none, such as a title.
fn delimiter_below(sample: &[u8], comment: Option<u8>) -> Option<u8> {
    let agrees = |delimiter: &&u8| {
        let counts = field_counts(sample, **delimiter, comment);
        let last = counts.last().copied().unwrap_or(0);
        let agreeing = counts.iter().filter(|count| **count == last).count();
        last > 1 && counts.len() > 2 && agreeing as f64 >= counts.len() as f64 * MOST
    };
    DELIMITERS.iter().find(agrees).copied()
}

/// A first row may be far longer than a sample needs to be.
fn beginning(sample: &[u8]) -> &[u8] {
    &sample[..sample.len().min(2 * SAMPLE_BYTES)]
}

/// Whether the sample escapes quotes with backslashes: where some are before a quote, no row is malformed with that reading,
/// and far more rows do not fit without it.
pub(crate) fn detect_backslashes(sample: &[u8], dialect: Dialect) -> bool {
    let sample = beginning(sample);
    if memchr::memmem::find(sample, b"\\\"").is_none() {
        return false;
    }
    let odd_rows = |dialect: Dialect| {
        let rows = rows_of(sample, dialect);
        let first = rows.first().map_or(0, |row| row.fields);
        let malformed = rows.iter().filter(|row| row.is_malformed).count();
        (malformed, malformed + rows.iter().filter(|row| !row.is_malformed && row.fields != first).count())
    };
    let (malformed, odd) = odd_rows(Dialect { has_backslashes: true, ..dialect });
    malformed == 0 && odd * 2 < odd_rows(dialect).1
}

/// A row of a sample.
struct SampleRow {
    line: u64,
    fields: usize,
    is_malformed: bool,
    ends_empty: bool,
    /// Fields with something in them.
    filled: usize,
    begins_empty: bool,
    /// The first letter of its first field.
    begins: Option<u8>,
    /// Whether each field is a word.
    is_words: bool,
}

/// The first rows of a sample; one that is cut off at its end is left out.
fn rows_of(sample: &[u8], dialect: Dialect) -> Vec<SampleRow> {
    let mut splitter = Splitter::new(sample, dialect, 1, usize::from(u16::MAX));
    let mut rows = Vec::new();
    let (mut spans, mut scratch) = (Vec::new(), Vec::new());
    while rows.len() < SAMPLE_ROWS {
        spans.clear();
        let RowEnd::Row { line } = splitter.next_row(&mut spans) else { break };
        rows.push(SampleRow {
            line,
            fields: spans.len(),
            is_malformed: splitter.is_malformed(),
            ends_empty: spans.last().is_some_and(|span| span.is_empty()),
            filled: spans.iter().filter(|span| !span.is_empty()).count(),
            begins_empty: spans.first().is_some_and(|span| span.is_empty()),
            begins: spans.first().and_then(|span| span.get(sample, &mut scratch).first().copied()),
            is_words: spans.iter().all(|span| {
                let field = span.get(sample, &mut scratch);
                !field.is_empty() && form_of(field) == Form::Text
            }),
        });
    }
    rows
}

/// So many of the rows behind the first have to agree with each other.
const AGREEING_SHARE: f64 = 0.9;

/// The option that reads a file whose rows do not fit its first one, in a sentence: the first lines are comments or a title, or
/// each row ends with a separator. `skipped` lines were left out before the sample.
pub(crate) fn advice(sample: &[u8], dialect: Dialect, skipped: u64, has_trailing: bool) -> Option<String> {
    if let Some(separator) = separator_line(sample) {
        let line = skipped + 1;
        return Some(format!(
            "its first line, `sep={separator}`, names the separator and is above the header: read it with --skip-lines {line} \
             (`skip_lines = {line}` in a run file)"
        ));
    }
    let mut rows = rows_of(beginning(sample), dialect);
    for row in rows.iter_mut().filter(|row| has_trailing && row.ends_empty && row.fields > 1) {
        row.fields -= 1;
    }
    let (first, others) = rows.split_first()?;
    if !has_trailing && first.fields > 2 && !others.is_empty() && rows.iter().all(|row| row.ends_empty) {
        return Some(format!(
            "each row ends with a separator, so that there is a last column without a name and without a value: leave it out \
             with {TRAILING_OPTION}"
        ));
    }
    let is_header = |row: &&SampleRow| row.fields == first.fields && row.fields > 1 && row.is_words;
    let below = others.iter().find(is_header).filter(|_| first.filled == 1 && !first.begins_empty);
    if let Some(row) = below {
        let lines = skipped + row.line - 1;
        return Some(format!(
            "in its first row only the first field has something in it, and line {} has words in all: if a title is above the \
             header, read it with --skip-lines {lines} (`skip_lines = {lines}` in a run file)",
            skipped + row.line
        ));
    }
    // Lines that begin as the first one does may be comments, too.
    let begins = sample.first().copied().filter(|byte| COMMENTS.contains(byte) && dialect.comment.is_none());
    let others: Vec<&SampleRow> =
        others.iter().filter(|row| begins.is_none() || row.begins != begins).collect();
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    others.iter().for_each(|row| *counts.entry(row.fields).or_default() += 1);
    let (usual, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    // The lines of a title, or of comments, are among the others.
    let odd = others.iter().take_while(|row| row.fields != usual).count();
    let agrees = count > odd + 1 && count as f64 >= (others.len() - odd) as f64 * AGREEING_SHARE;
    if usual == first.fields {
        return comment_between(&others, usual, skipped).filter(|_| dialect.comment.is_none());
    }
    if !agrees || usual < 2 {
        return None;
    }
    if usual == first.fields + 1 && !has_trailing && others.iter().all(|row| row.ends_empty) {
        return Some(format!("each row but the first ends with a separator: read it with {TRAILING_OPTION}"));
    }
    if let Some(letter) = begins.map(char::from) {
        return Some(format!(
            "its first line begins with `{letter}`, and the lines after it have {usual} fields: if it is a comment, read it \
             with {}",
            comment_option(letter)
        ));
    }
    let row = others.get(odd)?;
    let lines = skipped + row.line - 1;
    Some(format!(
        "its first row has {}, and those from line {} on have {usual}: if a title is above the header, read it with \
         --skip-lines {lines} (`skip_lines = {lines}` in a run file)",
        crate::counted(first.fields as u64, "field"),
        skipped + row.line
    ))
}

/// The option that leaves out lines between rows that begin with a sign of comments and have not the fields of the rows.
fn comment_between(rows: &[&SampleRow], usual: usize, skipped: u64) -> Option<String> {
    let begins = |row: &SampleRow| row.begins.filter(|begins| COMMENTS.contains(begins));
    let row = rows.iter().find(|row| row.fields != usual && begins(row).is_some())?;
    let letter = char::from(begins(row)?);
    Some(format!(
        "its line {} begins with `{letter}` and has not the {} of the others: if it is a comment, read it with {}",
        skipped + row.line,
        crate::counted(usual as u64, "field"),
        comment_option(letter)
    ))
}

/// How lines are left out that begin with this letter.
fn comment_option(letter: char) -> String {
    format!("--comment '{letter}' (`comment = \"{letter}\"` in a run file)")
}

/// The letter that a first line names as the separator, which spreadsheets write: `sep=;`.
fn separator_line(sample: &[u8]) -> Option<char> {
    let end = sample.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
    let line = sample[..end].trim_ascii_end();
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    match line.strip_prefix(b"sep=").or_else(|| line.strip_prefix(b"SEP="))? {
        [separator @ (b',' | b';' | b'|' | b':')] => Some(char::from(*separator)),
        _ => None,
    }
}

/// How a separator at the end of each row is read.
const TRAILING_OPTION: &str = "--trailing-separator (`trailing_separator = true` in a run file)";

/// Letters that comments begin with.
const COMMENTS: &[u8] = b"#%";

/// Fields per row of the sample's first rows.
fn field_counts(sample: &[u8], delimiter: u8, comment: Option<u8>) -> Vec<usize> {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).comment(comment).build();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which rows number the columns: years beside a word, and places behind an empty field; rows of data do not.
    #[test]
    fn rows_that_number_columns_are_known() {
        let numbers = |row: &str| {
            numbers_columns(&row.split(',').map(|field| field.as_bytes().to_vec()).collect::<Vec<_>>())
        };
        for row in ["country,2019,2020", "a,b,1990,2000,2010", ",0,1,2", ",0,1,label", ",2019,2020,2021"] {
            assert!(numbers(row), "{row}");
        }
        for row in [
            "", "a,b", "a,2019", "2019,2020", "a,2020,2019", "a,2019,2020,2022", "a,1,2", "0,1,2", ",1,2",
            "a,2019,2020,1.5",
        ] {
            assert!(!numbers(row), "{row}");
        }
    }

    const COMMAS: Dialect = Dialect { delimiter: b',', has_backslashes: false, comment: None };

    /// Proves that backslashes are taken for escapes only where the file shows it, so that a path which ends with one stays.
    #[test]
    fn backslashes_escape_only_where_the_file_shows_it() {
        for (text, expected) in [
            (&b"a,b\n1,\"say \\\"hi\\\", he said\"\n2,\"x\"\n"[..], true),
            (b"a,b\n1,\"C:\\\"\n2,\"D:\\\"\n", false),
            (b"a,b\n1,\"x\"\n", false),
            (b"a,b\n1,\"say \\\"hi\\\"\"\n2,\"bad\" x\n", false),
            (b"a,b\n1,\"say \\\"hi\\\"\"\n# note\n2,\"\\\"x\\\"\"\n3,\"\\\"\"\n", true),
        ] {
            assert_eq!(detect_backslashes(text, COMMAS), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    /// Proves that each layout whose rows are all refused is named with the option that reads it, and that no other file is.
    #[test]
    fn the_option_that_reads_a_file_is_named() {
        for (text, option) in [
            (&b"# made by x\na,b\n1,2\n3,4\n"[..], Some("--comment '#'")),
            (b"# made by x\n# on monday\na,b\n1,2\n3,4\n", Some("--comment '#'")),
            (b"# made by x\na,b\n1,2\n# note\n3,4\n# note\n", Some("--comment '#'")),
            (b"a,b\n1,2\n# note\n3,4\n", Some("its line 3 begins with `#`")),
            (b"a,b\n1,2\n% note\n3,4\n", Some("--comment '%'")),
            (b"a,b\n#1,2\n#3,4\n", None),
            (b"Report of May\na,b\n1,2\n3,4\n", Some("--skip-lines 1")),
            (b"Report of May\n\na,b\n1,2\n3,4\n", Some("--skip-lines 2")),
            (b"a,b\n1,2,\n3,4,\n", Some("--trailing-separator")),
            (b"a,b,\n1,2,\n3,4,\n", Some("--trailing-separator")),
            (b"sep=,\na,b\n1,2\n", Some("--skip-lines 1")),
            (b"\"sep=,\"\na,b,c\n1,2,3\n4,5,6\n", Some("--skip-lines 1")),
            (b"Report of May,\n,\na,b\n1,2\n3,4\n", Some("--skip-lines 2")),
            (b",b\n1,2\n3,4\n", None),
            (b"sep=all,b\n1,2\n3,4\n", None),
            (b"a,b\n1,2\n3,4\n", None),
            (b"#a,b\n1,2\n3,4\n", None),
            (b"a\n1\n2\n", None),
            (b"a,b\n1\n2,3\n4,5,6\n", None),
            (b"", None),
        ] {
            let found = advice(text, COMMAS, 0, false);
            let holds = match option {
                Some(option) => found.as_ref().is_some_and(|it| it.contains(option)),
                None => found.is_none(),
            };
            assert!(holds, "{}: {found:?}", String::from_utf8_lossy(text));
        }
        for text in [&b"a,b\n1,2,\n3,4,\n"[..], b"a,b,\n1,2,\n3,4,\n"] {
            assert_eq!(advice(text, COMMAS, 0, true), None, "{}", String::from_utf8_lossy(text));
        }
    }
}
