//! CSV in one streaming pass: rows, column names and types, and what is wrong with single rows.
//!
//! The first [`SAMPLE_BYTES`] decide separator and header; then everything, the sample included, is parsed by the
//! same machine. Blanks around fields are dropped, a quoted line break is part of its row, a byte order mark is
//! skipped, empty lines are no rows.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use trackway_formats::runfile::DataSpec;

use crate::infer::{Column, ColumnType, trim, type_of};
use crate::manifest::{Example, FindingKind, Findings};
use crate::scan::{Content, MAX_RECORD_BYTES, Parser};

/// How much of the file decides its dialect.
pub(crate) const SAMPLE_BYTES: usize = 64 << 10;

/// How many rows of the sample are compared.
const SAMPLE_ROWS: usize = 200;

/// Separators that are tried, the most usual first.
const DELIMITERS: &[u8] = b",\t;|";

/// Parses a CSV file. Construct with [`CsvParser::new`], feed, finish.
pub(crate) struct CsvParser {
    columns: Vec<String>,
    delimiter: Option<u8>,
    missing: Vec<Vec<u8>>,
    sample: Vec<u8>,
    body: Option<Body>,
}

impl CsvParser {
    pub(crate) fn new(spec: &DataSpec) -> Self {
        Self {
            columns: spec.columns.clone(),
            delimiter: spec.delimiter.and_then(|letter| u8::try_from(letter).ok()),
            missing: spec.missing.iter().map(|text| trim(text.as_bytes()).to_vec()).collect(),
            sample: Vec::new(),
            body: None,
        }
    }

    /// Decides the dialect and parses what has come so far.
    fn begin(&mut self) -> Result<&mut Body, String> {
        let sample = std::mem::take(&mut self.sample);
        if let Some(at) = memchr::memchr(0, &sample) {
            let line = memchr::memchr_iter(b'\n', &sample[..at]).count() + 1;
            return Err(format!("line {line} holds a NUL byte, so it is no text file (UTF-16 or binary?)"));
        }
        let delimiter =
            self.delimiter.unwrap_or_else(|| detect_delimiter(&sample[..sample.len().min(SAMPLE_BYTES)]));
        let mut body =
            Body::new(delimiter, std::mem::take(&mut self.columns), std::mem::take(&mut self.missing));
        body.feed(&sample)?;
        Ok(self.body.insert(body))
    }
}

impl Parser for CsvParser {
    fn feed(&mut self, chunk: &[u8]) -> Result<(), String> {
        if let Some(body) = &mut self.body {
            return body.feed(chunk);
        }
        self.sample.extend_from_slice(chunk);
        if self.sample.len() >= SAMPLE_BYTES {
            self.begin()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Content, String> {
        if self.body.is_none() {
            self.begin()?;
        }
        let mut body = self.body.ok_or("nothing was read")?;
        body.feed(&[])?;
        body.into_content()
    }
}

/// The rows themselves, once the dialect is known.
struct Body {
    reader: Reader,
    delimiter: u8,
    /// Unescaped bytes of the row being read, and where its fields end.
    record: Vec<u8>,
    record_length: usize,
    ends: Vec<usize>,
    ends_length: usize,
    lines: Lines,
    names: Vec<String>,
    named_by_user: bool,
    header: Option<bool>,
    missing: Vec<Vec<u8>>,
    kinds: Vec<ColumnType>,
    rows: u64,
    findings: Findings,
}

impl Body {
    fn new(delimiter: u8, names: Vec<String>, missing: Vec<Vec<u8>>) -> Self {
        Self {
            reader: ReaderBuilder::new().delimiter(delimiter).build(),
            delimiter,
            record: vec![0; 4096],
            record_length: 0,
            ends: vec![0; 64],
            ends_length: 0,
            lines: Lines::default(),
            named_by_user: !names.is_empty(),
            kinds: vec![ColumnType::Null; names.len()],
            names,
            header: None,
            missing,
            rows: 0,
            findings: Findings::default(),
        }
    }

    /// Parses a chunk; an empty one means the end of the file.
    fn feed(&mut self, chunk: &[u8]) -> Result<(), String> {
        let at_end = chunk.is_empty();
        let mut row_start = 0;
        let mut position = 0;
        loop {
            let (result, read, written, ended) = self.reader.read_record(
                &chunk[position..],
                &mut self.record[self.record_length..],
                &mut self.ends[self.ends_length..],
            );
            position += read;
            self.record_length += written;
            self.ends_length += ended;
            match result {
                ReadRecordResult::InputEmpty if at_end => {}
                ReadRecordResult::InputEmpty | ReadRecordResult::End => break,
                ReadRecordResult::OutputFull => {
                    let line = self.lines.of_row(chunk, row_start);
                    self.grow_record(line)?;
                }
                ReadRecordResult::OutputEndsFull => {
                    let longer = self.ends.len() * 2;
                    self.ends.resize(longer, 0);
                }
                ReadRecordResult::Record => {
                    self.take_row(chunk, row_start)?;
                    self.lines.carried = None;
                    self.record_length = 0;
                    self.ends_length = 0;
                    row_start = position;
                }
            }
        }
        self.lines.end_chunk(chunk, row_start);
        Ok(())
    }

    fn grow_record(&mut self, line: u64) -> Result<(), String> {
        if self.record.len() >= MAX_RECORD_BYTES {
            let max = MAX_RECORD_BYTES >> 20;
            return Err(format!(
                "the row that begins in line {line} is longer than {max} MiB; is a quote left open?"
            ));
        }
        let longer = self.record.len() * 2;
        self.record.resize(longer, 0);
        Ok(())
    }

    fn take_row(&mut self, chunk: &[u8], row_start: usize) -> Result<(), String> {
        let text = &self.record[..self.record_length];
        let ends = &self.ends[..self.ends_length];
        if self.header.is_none() {
            let first: Vec<&[u8]> = fields(text, ends).collect();
            let is_header = is_header(&first, if self.named_by_user { &self.names } else { &[] });
            self.header = Some(is_header);
            if !self.named_by_user {
                self.names = column_names(&first, is_header);
                self.kinds = vec![ColumnType::Null; self.names.len()];
            } else if first.len() != self.names.len() {
                return Err(format!("{COLUMN_COUNT}{}", first.len()));
            }
            if is_header {
                return Ok(());
            }
        }
        self.rows += 1;
        let line = || self.lines.of_row(chunk, row_start);
        if ends.len() != self.kinds.len() {
            let detail = || format!("{} fields instead of {}", ends.len(), self.kinds.len());
            self.findings.add(FindingKind::RaggedRow, || Example { line: line(), detail: detail() });
        }
        if let Err(error) = std::str::from_utf8(text) {
            let detail = || undecodable(text, ends, error.valid_up_to());
            self.findings.add(FindingKind::NotUtf8, || Example { line: line(), detail: detail() });
        }
        for (kind, field) in self.kinds.iter_mut().zip(fields(text, ends)) {
            if *kind != ColumnType::Text {
                let value = trim(field);
                if !value.is_empty() && !self.missing.iter().any(|missing| missing == value) {
                    *kind = kind.with_text(value);
                }
            }
        }
        Ok(())
    }

    fn into_content(self) -> Result<Content, String> {
        if self.header.is_none() {
            return Err("it is empty: there is neither a header nor a row".into());
        }
        let columns = self.names.into_iter().zip(self.kinds).map(|(name, kind)| Column { name, kind });
        Ok(Content {
            rows: Some(self.rows),
            schema: Some(columns.collect()),
            header: self.header,
            delimiter: Some(char::from(self.delimiter)),
            findings: self.findings.into_list(),
        })
    }
}

/// A first row is a header when it repeats the user's names, or when the user gave none and it holds only
/// different words: a row of data holds a number, a date or a repetition sooner or later. (A blank is legal:
/// data frames write their index under one.)
pub(crate) fn is_header(first: &[&[u8]], user_names: &[String]) -> bool {
    if !user_names.is_empty() {
        return first.len() == user_names.len()
            && first.iter().zip(user_names).all(|(field, name)| trim(field) == name.as_bytes());
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut words = first.iter().map(|field| trim(field)).filter(|field| !field.is_empty()).peekable();
    words.peek().is_some() && words.all(|field| type_of(field) == ColumnType::Text && seen.insert(field))
}

/// Finds the line on which a row begins. Lines are counted once per chunk, and for the few rows that are shown.
struct Lines {
    /// The line of the current chunk's first byte.
    chunk_line: u64,
    /// The line of a row that began in an earlier chunk.
    carried: Option<u64>,
}

impl Default for Lines {
    fn default() -> Self {
        Self { chunk_line: 1, carried: None }
    }
}

impl Lines {
    /// The line of the row whose bytes begin at `row_start` of the chunk, empty lines and the second half of a
    /// CRLF before it passed over.
    fn of_row(&self, chunk: &[u8], row_start: usize) -> u64 {
        if let Some(line) = self.carried {
            return line;
        }
        let blank = chunk[row_start..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.chunk_line + count_newlines(&chunk[..row_start + blank])
    }

    fn end_chunk(&mut self, chunk: &[u8], row_start: usize) {
        if self.carried.is_none() && chunk[row_start..].iter().any(|byte| !matches!(byte, b'\r' | b'\n')) {
            self.carried = Some(self.of_row(chunk, row_start));
        }
        self.chunk_line += count_newlines(chunk);
    }
}

fn count_newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Begins the error text of a file whose first row does not fit `columns`; the number of fields follows.
pub(crate) const COLUMN_COUNT: &str = "column count: ";

fn fields<'r>(record: &'r [u8], ends: &'r [usize]) -> impl Iterator<Item = &'r [u8]> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, end)| &record[start..*end])
}

/// Says where the undecodable byte is. The row itself is not shown: a manifest is stored, and data may be private.
fn undecodable(record: &[u8], ends: &[usize], at: usize) -> String {
    let field = ends.iter().take_while(|end| **end <= at).count() + 1;
    format!("byte 0x{:02X} in field {field}", record.get(at).copied().unwrap_or(0))
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
            _ => break,
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng, SplitMix64};

    use super::*;

    fn read(pieces: &[&[u8]]) -> String {
        let mut body = Body::new(b',', Vec::new(), Vec::new());
        let fed = pieces.iter().filter(|piece| !piece.is_empty()).try_for_each(|piece| body.feed(piece));
        let content = fed.and_then(|()| body.feed(&[])).and_then(|()| body.into_content());
        format!("{content:?}")
    }

    /// Proves on seeded random bytes, dense in quotes and line ends, that nothing panics and that where chunks are
    /// cut changes nothing: not the rows, not the types, not the lines of faulty rows.
    #[test]
    fn where_chunks_are_cut_changes_nothing() {
        const ALPHABET: &[u8] = b"ab1,,,\"\"\n\n\r\n\r \xFF.";
        let mut faulty = 0;
        for seed in 0..3000 {
            let mut random = SplitMix64::new(seed);
            let mut pick = |count: usize| (random.next_u64() % count as u64) as usize;
            let bytes: Vec<u8> = (0..pick(80)).map(|_| ALPHABET[pick(ALPHABET.len())]).collect();
            let whole = read(&[&bytes]);
            faulty += usize::from(whole.contains("RaggedRow"));
            let (one, two) = (pick(bytes.len() + 1), pick(bytes.len() + 1));
            let (first, last) = (one.min(two), one.max(two));
            let cut = read(&[&bytes[..first], &bytes[first..last], &bytes[last..]]);
            assert_eq!(
                whole,
                cut,
                "seed {seed}: {:?} cut at {first} and {last}",
                String::from_utf8_lossy(&bytes)
            );
        }
        assert!(faulty > 1000, "the bytes must make faulty rows often ({faulty})");
    }
}
