//! Passes the script's output on while it is written.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use trackway_launch::AttemptFiles;

use crate::report::{Reporter, Stream};

/// Bytes passed on in one piece.
const PIECE_BYTES: usize = 64 << 10;
/// Most bytes of one stream passed on in one turn, so that the supervisor keeps looking at other things.
const TURN_BYTES_MAX: usize = 16 << 20;

/// Follows both logs of an attempt.
pub struct Echo {
    streams: Vec<(Stream, std::path::PathBuf, Option<File>)>,
    from_end: bool,
}

impl Echo {
    /// From the beginning, or only what comes from now on.
    #[must_use]
    pub fn new(files: &AttemptFiles, from_end: bool) -> Self {
        let streams =
            vec![(Stream::Stdout, files.stdout_log(), None), (Stream::Stderr, files.stderr_log(), None)];
        Self { streams, from_end }
    }

    /// Passes on what was written since the last turn. True when there may be more at once.
    ///
    /// A log that cannot be read is passed over: the log itself is what counts, this is only its echo.
    pub fn turn(&mut self, reporter: &dyn Reporter) -> bool {
        let from_end = self.from_end;
        let mut more = false;
        for (stream, path, file) in &mut self.streams {
            if file.is_none() {
                *file = File::open(&*path).ok().inspect(|mut opened| {
                    if from_end {
                        let _ = opened.seek(SeekFrom::End(0));
                    }
                });
            }
            if let Some(file) = file {
                more |= pass_on(file, *stream, reporter);
            }
        }
        more
    }
}

fn pass_on(file: &mut File, stream: Stream, reporter: &dyn Reporter) -> bool {
    let mut piece = vec![0; PIECE_BYTES];
    let mut passed = 0;
    while passed < TURN_BYTES_MAX {
        match file.read(&mut piece) {
            Ok(0) | Err(_) => return false,
            Ok(count) => {
                reporter.output(stream, &piece[..count]);
                passed += count;
            }
        }
    }
    true
}
