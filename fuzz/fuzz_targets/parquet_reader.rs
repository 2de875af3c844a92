//! Whatever the bytes, a Parquet file is read with every row accounted for, or refused: damage that makes the decoder panic
//! is an error about the file. (libFuzzer's own panic hook ends the process before a panic is contained, so it is set aside.)
#![no_main]

use std::fs;
use std::path::Path;

use trackway_tables::ReadContext;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::profile::Profile;
use trackway_tables::read::Source;
use trackway_tables::{DataError, DataSpec};

use libfuzzer_sys::fuzz_target;

/// The smallest file: magic bytes, an empty footer's length.
const LENGTH_MIN: usize = 12;

fuzz_target!(
    init: {
        let _ = std::panic::take_hook();
    },
    |input: &[u8]| {
        if input.len() < LENGTH_MIN {
            return;
        }
        let path = std::env::temp_dir().join(format!("trackway-fuzz-{}.parquet", std::process::id()));
        fs::write(&path, input).unwrap();
        let spec = DataSpec { path: path.to_string_lossy().into_owned(), ..DataSpec::default() };
        let read = Source::open(Path::new(""), "fuzz", &spec, &ReadContext::default())
            .and_then(|mut source| Profile::of(&mut source, None, &UNWATCHED));
        match read {
            Ok((profile, coverage)) => assert_eq!(profile.rows, coverage.rows_read),
            Err(DataError::Fault { panic, .. }) => {
                eprintln!("{panic}");
                std::process::abort();
            }
            Err(_) => {}
        }
    }
);
