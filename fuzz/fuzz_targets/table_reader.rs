//! Whatever the bytes, a CSV, JSON lines or text file is read with every row accounted for, or refused; the same however
//! often it is read.
#![no_main]

use std::io;
use std::path::Path;
use std::sync::Arc;

use trackway_tables::limits::Limits;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::profile::Profile;
use trackway_tables::read::{ByteSource, RemoteFile, RemoteFiles, Source};
use trackway_tables::{DataSpec, DecimalMark, ReadContext};

use libfuzzer_sys::fuzz_target;

/// The same bytes under any URL.
struct InMemory(Arc<Vec<u8>>);

impl ByteSource for InMemory {
    fn size_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = (offset as usize).min(self.0.len());
        let length = buffer.len().min(self.0.len() - from);
        buffer[..length].copy_from_slice(&self.0[from..from + length]);
        Ok(length)
    }
}

impl RemoteFiles for InMemory {
    fn list(&self, _folder_url: &str) -> io::Result<Vec<RemoteFile>> {
        Ok(Vec::new())
    }

    fn head(&self, url: &str) -> io::Result<Option<RemoteFile>> {
        let size_bytes = self.0.len() as u64;
        Ok(Some(RemoteFile { url: url.into(), size_bytes, version: String::new() }))
    }

    fn open(&self, _url: &str) -> io::Result<Arc<dyn ByteSource>> {
        Ok(Arc::new(Self(Arc::clone(&self.0))))
    }
}

fn read(spec: &DataSpec, context: &ReadContext) -> Option<String> {
    let mut source = Source::open(Path::new(""), "fuzz", spec, context).ok()?;
    let (profile, coverage) = Profile::of(&mut source, None, &UNWATCHED).ok()?;
    assert_eq!(profile.rows, coverage.rows_read);
    assert_eq!(coverage.rejects.iter().map(|rejects| rejects.count).sum::<u64>(), coverage.rows_rejected);
    for column in &profile.columns {
        assert_eq!(column.rows, coverage.rows_read);
        assert!(column.null_count + column.faults.misfits <= column.rows);
    }
    let stored = serde_json::to_string(&profile).expect("a profile is plain data");
    assert_eq!(
        serde_json::to_string(&Profile::from_json(&stored).expect("what was stored")).unwrap(),
        stored
    );
    Some(stored)
}

fuzz_target!(|input: &[u8]| {
    let Some((format, bytes)) = input.split_first() else { return };
    let context = ReadContext::new(Limits::default(), Some(Arc::new(InMemory(Arc::new(bytes.to_vec())))));
    let path = ["fuzz://a.csv", "fuzz://a.jsonl", "fuzz://a.txt"][usize::from(*format) % 3];
    let options = *format / 3;
    let spec = DataSpec {
        path: path.into(),
        comment: (options & 1 != 0).then_some('#'),
        skip_lines: u64::from(options >> 1 & 3),
        trailing_separator: options & 8 != 0,
        decimal: (options & 16 != 0).then_some(DecimalMark::Comma),
        ..DataSpec::default()
    };
    assert_eq!(read(&spec, &context), read(&spec, &context));
});
