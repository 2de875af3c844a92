//! The files that the output of this process goes to: `trackway run … > train.log`,
//! `trackway run … 2>&1 | tee train.log`. They are no input of what it launches, whatever is written to them and when.

use std::collections::BTreeSet;
use std::fs::{File, read_link};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::CaptureInputs;
use super::git::working_tree::repository_root;
use super::script::script_of;
use super::settings::plain::extension_is;

/// So many pipes are followed: `… | grep -v x | tee train.log` has two.
const PIPES_MAX: usize = 4;
/// What is read of a process is at the beginning of its line.
const STAT_BYTES_MAX: usize = 1024;
/// Where the kernel lists the files that this process has open.
const OWN_FILES: &str = "/proc/self/fd";

/// What the names of files end with that the output of a command is written to.
const OF_OUTPUT: [&str; 5] = ["txt", "log", "json", "out", "err"];

/// Whether the output of a command may be written to a file of such a name.
#[must_use]
pub fn is_of_output(path: &Path) -> bool {
    path.extension().is_none() || extension_is(path, &OF_OUTPUT)
}

/// A file or a pipe that a process has open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenFile {
    /// Its path, or the name of the pipe.
    target: PathBuf,
    is_read: bool,
    is_written: bool,
    /// Whether it is a file that is still at its path.
    is_file: bool,
}

/// The files below the folders of the command, and in its repository, that standard output and error go to, or that are
/// written by a process of the same session which reads one of the two through a pipe. Their paths are without links.
pub(super) fn capture(inputs: &CaptureInputs<'_>) -> Vec<PathBuf> {
    let script = script_of(inputs.argv, inputs.working_directory);
    let of_script = script.as_deref().and_then(Path::parent).and_then(|folder| folder.canonicalize().ok());
    let folder = inputs.working_directory.canonicalize().ok();
    let roots: Vec<PathBuf> =
        [of_script, folder, repository_root(inputs.working_directory)].into_iter().flatten().collect();
    let mut found = of_process();
    found.retain(|path| roots.iter().any(|root| path.starts_with(root)));
    found
}

fn of_process() -> Vec<PathBuf> {
    let own: Vec<OpenFile> =
        ["1", "2"].iter().filter_map(|fd| open(&Path::new(OWN_FILES).join(fd))).collect();
    let is_piped = own.iter().any(|it| is_pipe(&it.target));
    written(&own, &if is_piped { others_of_session() } else { Vec::new() })
}

/// The files that the output goes to, by what it is written to and what the other processes have open.
fn written(own: &[OpenFile], others: &[Vec<OpenFile>]) -> Vec<PathBuf> {
    let files_of = |all: &[OpenFile]| -> Vec<PathBuf> {
        all.iter().filter(|it| it.is_written && it.is_file).map(|it| it.target.clone()).collect()
    };
    let pipes_of = |all: &[OpenFile]| -> BTreeSet<PathBuf> {
        all.iter().filter(|it| it.is_written && is_pipe(&it.target)).map(|it| it.target.clone()).collect()
    };
    let mut found: BTreeSet<PathBuf> = files_of(own).into_iter().collect();
    let mut pipes = pipes_of(own);
    for _ in 0..PIPES_MAX {
        let reads = |all: &&Vec<OpenFile>| all.iter().any(|it| it.is_read && pipes.contains(&it.target));
        let readers: Vec<&Vec<OpenFile>> = others.iter().filter(reads).collect();
        // A program that launches runs may read their output and write other files too.
        let files = readers.iter().flat_map(|all| files_of(all)).filter(|path| is_of_output(path));
        found.extend(files);
        pipes = readers.iter().flat_map(|all| pipes_of(all)).collect();
    }
    // What is stored is text.
    found.into_iter().filter(|path| path.to_str().is_some()).collect()
}

fn is_pipe(target: &Path) -> bool {
    target.to_str().is_some_and(|name| name.starts_with("pipe:["))
}

/// What a process has open at this place of its list.
fn open(place: &Path) -> Option<OpenFile> {
    let target = read_link(place).ok()?;
    let mode = place.symlink_metadata().ok()?.permissions().mode();
    let here = place.metadata().ok().filter(|found| found.is_file());
    let there = here.as_ref().and_then(|_| target.metadata().ok());
    let is_file =
        here.zip(there).is_some_and(|(here, there)| (here.dev(), here.ino()) == (there.dev(), there.ino()));
    Some(OpenFile { target, is_read: mode & 0o400 != 0, is_written: mode & 0o200 != 0, is_file })
}

/// What the other processes of this session have open, as far as this one may see it.
fn others_of_session() -> Vec<Vec<OpenFile>> {
    let session = session_of(Path::new("/proc/self"));
    let own = std::process::id().to_string();
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit()) && name != own;
    let others = folders.filter(|entry| entry.file_name().to_str().is_some_and(is_process));
    let of_session = others.map(|entry| entry.path()).filter(|path| session_of(path) == session);
    let opened = |path: PathBuf| -> Vec<OpenFile> {
        let places = std::fs::read_dir(path.join("fd")).into_iter().flatten().flatten();
        places.filter_map(|place| open(&place.path())).collect()
    };
    of_session.map(opened).collect()
}

/// The session of a process; none where it has ended.
fn session_of(process: &Path) -> Option<String> {
    // One read: every process of the machine is looked at.
    let mut line = [0; STAT_BYTES_MAX];
    let length = File::open(process.join("stat")).ok()?.read(&mut line).ok()?;
    let stat = String::from_utf8_lossy(&line[..length]);
    // The name of the program may have blanks and brackets in it: its state, its parent, its group and its session follow it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(3).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn open_at(target: &str, mode: &str) -> OpenFile {
        OpenFile {
            target: target.into(),
            is_read: mode.contains('r'),
            is_written: mode.contains('w'),
            is_file: target.starts_with('/'),
        }
    }

    /// Proves which names of files the output of a command has: no table, no code and no settings but JSON.
    #[test]
    fn outputs_have_names_of_texts() {
        for name in ["out", "log.txt", "run.log", "e.json", "nohup.out", "E.TXT"] {
            assert!(is_of_output(Path::new(name)), "{name}");
        }
        for name in ["a.csv", "a.jsonl", "a.parquet", "m.py", "c.toml", "c.yaml", "a.npy"] {
            assert!(!is_of_output(Path::new(name)), "{name}");
        }
    }

    /// Proves that the output goes to the files behind its redirect and behind its pipes, and neither to what a reader
    /// reads, nor to a table that it writes, nor to the files of a process which reads another pipe.
    #[test]
    fn output_is_followed_to_its_files() {
        let own = [open_at("/w/out.csv", "w"), open_at("pipe:[1]", "w")];
        let grep = vec![open_at("pipe:[1]", "r"), open_at("pipe:[2]", "w"), open_at("/w/words.txt", "r")];
        let tee = vec![open_at("pipe:[2]", "r"), open_at("/w/train.log", "w"), open_at("/w/rows.csv", "w")];
        let other = vec![open_at("pipe:[3]", "r"), open_at("/w/other.log", "w")];
        let found = written(&own, &[other, tee, grep]);
        assert_eq!(found, [PathBuf::from("/w/out.csv"), PathBuf::from("/w/train.log")]);
        assert!(written(&[open_at("/dev/pts/1", "r")], &[]).is_empty());
    }

    /// Proves that an open file is seen as one that is written, also through a link to it, and that one without its path is none.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test deletes its own file")]
    fn what_is_open_is_read_from_the_kernel() {
        use std::os::fd::AsRawFd as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("a.log");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(b"x").unwrap();
        let place = Path::new(OWN_FILES).join(file.as_raw_fd().to_string());
        let found = open(&place).unwrap();
        assert_eq!(found, OpenFile { target: path.clone(), is_read: false, is_written: true, is_file: true });
        std::fs::remove_file(&path).unwrap();
        assert!(!open(&place).unwrap().is_file);
        assert!(session_of(Path::new("/proc/self")).is_some());
    }
}
