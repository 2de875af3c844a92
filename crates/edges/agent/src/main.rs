//! `trackway-agent`: the shim of an attempt and nothing else, for machines that only run attempts.
//!
//! `trackway-agent __shim FOLDER -- COMMAND…` does what `trackway __shim` does. The binary is static and a few MiB large
//! (`make agent`); it reads no GPUs, since a static binary cannot load the driver's library.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use trackway_launch::{SHIM_COMMAND, shim};

/// The exit code of a wrong command line.
const USAGE: u8 = 2;

/// A valid command line.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    Shim { folder: PathBuf, argv: Vec<OsString> },
    Version,
}

/// Reads the words behind the program's name; `None`: they are wrong.
fn parse(words: &[OsString]) -> Option<Request> {
    match words {
        [word] if word == "--version" || word == "-V" => Some(Request::Version),
        [word, folder, dashes, argv @ ..] if word == SHIM_COMMAND && dashes == "--" && !argv.is_empty() => {
            Some(Request::Shim { folder: folder.into(), argv: argv.to_vec() })
        }
        _ => None,
    }
}

fn main() -> ExitCode {
    trackway_files::restrict_umask();
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match parse(&words) {
        Some(Request::Shim { folder, argv }) => {
            ExitCode::from(u8::try_from(shim::run(&folder, &argv)).unwrap_or(1))
        }
        Some(Request::Version) => {
            let version = env!("CARGO_PKG_VERSION");
            let written = writeln!(std::io::stdout(), "trackway-agent {version}");
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        None => {
            let usage = format!("usage: trackway-agent {SHIM_COMMAND} FOLDER -- COMMAND…");
            writeln!(std::io::stderr(), "{usage}").ok();
            ExitCode::from(USAGE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<Request> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    /// Proves that the command line of the local launcher is understood, options of the script included, and nothing else.
    #[test]
    fn only_the_launchers_command_line_is_understood() {
        let argv = ["train", "--", "--lr", "1"].map(OsString::from).to_vec();
        let expected = Request::Shim { folder: "a".into(), argv };
        assert_eq!(parsed("__shim a -- train -- --lr 1"), Some(expected));
        assert_eq!(parsed("--version"), Some(Request::Version));
        for line in ["", "__shim", "__shim a", "__shim a --", "__shim a train", "run a -- train"] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }
}
