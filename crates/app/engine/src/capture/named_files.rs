//! The files that the words of a command name, such as `--train data/adult.csv`: by hash, since no commit need have them.

use std::fs::Metadata;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;
use trackway_files::open_regular;

use super::CaptureInputs;

/// So many bytes of all files are hashed, the first ones first: more would hold the launch up.
pub const HASHED_BYTES_MAX: u64 = 64 << 20;
/// Most files that are looked at.
const FILES_MAX: usize = 32;

/// A file that the command names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    /// Its path, from the working directory of the command.
    pub path: PathBuf,
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// BLAKE3 of its bytes; none if it is too large ([`HASHED_BYTES_MAX`]) or cannot be read.
    pub blake3: Option<String>,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<Timestamp>,
}

/// The files that exist before the launch, in the order of the command; not its first word, which is the program.
pub(super) fn capture(inputs: &CaptureInputs<'_>) -> Vec<NamedFile> {
    let mut paths = paths_of(inputs.argv.get(1..).unwrap_or_default(), inputs.working_directory);
    paths.retain(|path| path.is_file());
    paths.truncate(FILES_MAX);
    let mut left_bytes = HASHED_BYTES_MAX;
    paths.into_iter().map(|path| look(path, &mut left_bytes)).collect()
}

/// What may be a path: words, and what follows `=` in them.
fn paths_of(words: &[String], folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for word in words {
        let value = word.split_once('=').map(|(_, value)| value);
        let own = (!word.starts_with('-')).then_some(word.as_str());
        for text in own.into_iter().chain(value).filter(|text| !text.is_empty() && !text.contains("://")) {
            let path = folder.join(text);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}

fn look(path: PathBuf, left_bytes: &mut u64) -> NamedFile {
    let found = path.metadata().ok();
    let size_bytes = found.as_ref().map_or(0, Metadata::len);
    let left = left_bytes.checked_sub(size_bytes);
    let blake3 = left.and_then(|_| blake3_of(&path));
    *left_bytes = left.unwrap_or(*left_bytes);
    NamedFile { path, size_bytes, blake3, modified_at: found.as_ref().and_then(modified_at) }
}

/// When a file was written.
#[must_use]
pub fn modified_at(found: &Metadata) -> Option<Timestamp> {
    let since_1970 = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_1970.as_micros()).ok().map(Timestamp::from_micros)
}

/// `None`: it cannot be read as a regular file, or has become too large.
#[must_use]
pub fn blake3_of(path: &Path) -> Option<String> {
    let mut file = open_regular(path).ok()?.take(HASHED_BYTES_MAX + 1);
    let mut hasher = blake3::Hasher::new();
    let size = std::io::copy(&mut file, &mut hasher).ok()?;
    (size <= HASHED_BYTES_MAX).then(|| hasher.finalize().to_hex().to_string())
}

/// BLAKE3 of a regular file, however large.
///
/// # Errors
/// When it cannot be read.
pub fn blake3_of_whole(path: &Path) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut open_regular(path)?, &mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a file is hashed while there is room for it, and that one without room leaves it to those after it.
    #[test]
    fn what_is_hashed_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut left_bytes = 10;
        let hashed: Vec<bool> = [6, 5, 4, 1]
            .map(|size| {
                let path = folder.path().join(size.to_string());
                std::fs::write(&path, vec![0; size]).unwrap();
                look(path, &mut left_bytes).blake3.is_some()
            })
            .into();
        assert_eq!((hashed, left_bytes), (vec![true, false, true, false], 0));
    }

    /// Proves that words and values after `=` are taken for paths once each, and that options and URLs are not.
    #[test]
    fn the_paths_of_a_command() {
        let words = [
            "train.py", "--train", "a.csv", "--test=b.csv", "data=c.csv", "-v", "s3://x/y", "a.csv",
            "--empty=",
        ];
        let paths = paths_of(&words.map(str::to_owned), Path::new("/w"));
        let expected = ["/w/train.py", "/w/a.csv", "/w/b.csv", "/w/data=c.csv", "/w/c.csv"];
        assert_eq!(paths, expected.map(PathBuf::from));
    }
}
