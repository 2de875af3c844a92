//! Where rows and fields begin and end.

use std::fs;

use crate::ReadContext;
use crate::pass::{PassObserver, UNWATCHED, scan};
use crate::read::text::blocks::{BlockReader, RecordEnd};
use crate::read::text::split::{Dialect, LinesLeftOut, RowEnd, Splitter};
use proptest::prelude::*;

use super::*;

/// All rows of a text as fields, and their lines.
fn split(text: &[u8], first_line: u64) -> Vec<(u64, Vec<Vec<u8>>)> {
    let dialect = Dialect { delimiter: b',', has_backslashes: false, comment: None };
    split_as(dialect, text, first_line)
}

fn split_as(dialect: Dialect, text: &[u8], first_line: u64) -> Vec<(u64, Vec<Vec<u8>>)> {
    let mut splitter = Splitter::new(text, dialect, first_line, crate::limits::DEFAULT.columns_max);
    let mut rows = Vec::new();
    loop {
        let mut spans = Vec::new();
        match splitter.next_row(&mut spans) {
            RowEnd::Row { line } => {
                rows.push((
                    line,
                    spans.iter().map(|span| span.get(text, &mut Vec::new()).to_vec()).collect(),
                ));
            }
            RowEnd::OpenQuote { line } => rows.push((line, Vec::new())),
            RowEnd::End => return rows,
        }
    }
}

/// The lines of a text that are not rows.
fn left_out(dialect: Dialect, text: &[u8]) -> LinesLeftOut {
    let mut splitter = Splitter::new(text, dialect, 1, crate::limits::DEFAULT.columns_max);
    while splitter.next_row(&mut Vec::new()) != RowEnd::End {}
    splitter.left_out()
}

/// The rows as the library used for the manifest reads them; `None` if a quote is left open.
fn reference(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut reader = csv_core::Reader::new();
    let (mut record, mut ends) = (vec![0; text.len() + 8], vec![0; text.len() + 8]);
    let mut rows = Vec::new();
    let mut rest = text;
    loop {
        let (result, read, _, count) = reader.read_record(rest, &mut record, &mut ends);
        rest = &rest[read..];
        match result {
            csv_core::ReadRecordResult::Record => {
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let fields =
                    starts.zip(&ends[..count]).map(|(from, to)| record[from..*to].trim_ascii().to_vec());
                rows.push(fields.collect());
            }
            csv_core::ReadRecordResult::InputEmpty => {
                // An empty input marks the end, which flushes the last row.
                let (result, _, _, count) = reader.read_record(&[], &mut record[..], &mut ends[..]);
                if matches!(result, csv_core::ReadRecordResult::Record) {
                    rows.push(vec![Vec::new(); count]);
                }
                return rows;
            }
            _ => return rows,
        }
    }
}

/// Proves that a file that grows while it is scanned is refused: a count would be of no state of it.
#[test]
fn a_file_that_changes_while_it_is_scanned_is_refused() {
    let folder = folder(&[("a.csv", b"x\n1\n")]);
    let path = folder.path().join("a.csv");
    let grow = |_, _| fs::write(&path, b"x\n1\n2\n").unwrap();
    let watch = PassObserver { progress: &grow, ..*UNWATCHED };
    let spec = DataSpec { path: "a.csv".into(), ..DataSpec::default() };
    let mut source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
    let error = scan(&mut source, &|_| Rows::default(), &watch).err().unwrap();
    assert!(matches!(error, DataError::Changed { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that the cuts of blocks change no field, no line number and no count of what is left out, on texts dense
    /// in quotes and line ends.
    #[test]
    fn where_blocks_are_cut_changes_nothing(
        letters in prop::collection::vec(prop::sample::select(b"ab1,,,\"\"\n\n\r \xFF\\#".to_vec()), 0..120),
        block_bytes in 1usize..60,
        has_backslashes in any::<bool>(),
        comment in prop::option::of(Just(b'#')),
    ) {
        let dialect = Dialect { delimiter: b',', has_backslashes, comment };
        struct Memory(Vec<u8>);
        impl ByteSource for Memory {
            fn size_bytes(&self) -> u64 {
                self.0.len() as u64
            }
            fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
                let rest = self.0.get(offset as usize..).unwrap_or_default();
                let length = rest.len().min(buffer.len());
                buffer[..length].copy_from_slice(&rest[..length]);
                Ok(length)
            }
        }
        let source: Arc<dyn ByteSource> = Arc::new(Memory(letters.clone()));
        let mut reader = BlockReader::open(source, RecordEnd::Csv(dialect), block_bytes).unwrap();
        let (mut cut, mut empty, mut comments) = (Vec::new(), 0, 0);
        while let Some(block) = reader.next(vec![7; 3]).unwrap() {
            cut.extend(split_as(dialect, &block.text, block.first_line));
            let left_out = left_out(dialect, &block.text);
            (empty, comments) = (empty + left_out.empty.0, comments + left_out.comments.0);
        }
        prop_assert_eq!(cut, split_as(dialect, &letters, 1));
        let whole = left_out(dialect, &letters);
        prop_assert_eq!((empty, comments), (whole.empty.0, whole.comments.0));
    }

    /// Proves that fields are those that the library used for the manifest finds, so that both count the same rows. Two
    /// things differ on purpose and are kept out: blanks before a quote, and a quote that is never closed.
    #[test]
    fn fields_are_those_of_the_reference_reader(text in "[ab1,\n\r]{0,20}(\"([ab,\n]|\"\"){0,5}\"[,\n][ab1,\n]{0,8}){0,4}") {
        let text = format!("\n{text}\n");
        prop_assume!(split(text.as_bytes(), 1).iter().all(|(_, fields)| !fields.is_empty()));
        let ours: Vec<_> = split(text.as_bytes(), 1).into_iter().map(|(_, fields)| fields).collect();
        prop_assert_eq!(ours, reference(text.as_bytes()));
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that no bytes make a reader panic, and that rows read and rejected are all the rows there are.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), format in 0usize..3) {
        let name = ["a.csv", "a.jsonl", "a.txt"][format];
        let folder = folder(&[(name, &bytes)]);
        let spec = DataSpec { path: name.into(), ..DataSpec::default() };
        if let Ok((_, coverage, source)) = read_all(folder.path(), &spec) {
            prop_assert!(coverage.rows_read + coverage.rows_rejected > 0 || source.columns().is_empty() || format == 0);
        }
    }
}
