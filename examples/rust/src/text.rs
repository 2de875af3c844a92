use std::fs;
use std::path::{Path, PathBuf};

use crate::JobError;

/// Printable ASCII and the line feed, each a symbol; every other character is one more symbol.
pub const SYMBOL_COUNT: usize = 97;
const LINE_FEED: u8 = 95;
const OTHER: u8 = 96;
/// No more text than this is read, so that a careless `--text /` ends.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// Folders deeper than this are passed by.
const FOLDER_DEPTH_MAX: usize = 16;
const EXTENSIONS: [&str; 5] = ["rs", "md", "py", "toml", "txt"];

/// Text as symbols below [`SYMBOL_COUNT`].
#[derive(Debug)]
pub struct Corpus {
    /// One symbol per character, in the order of the files' paths.
    pub symbols: Vec<u8>,
    /// How many bytes of UTF-8 each of them takes.
    pub widths: Vec<u8>,
    /// BLAKE3 of the symbols, in hexadecimal.
    pub blake3: String,
}

impl Corpus {
    /// Reads files as they are, and from folders what ends in `.rs`, `.md`, `.py`, `.toml` or `.txt`, in the order
    /// of their paths. Without `places` it reads the project around the current folder.
    ///
    /// # Errors
    /// [`JobError::Read`] when a file or folder cannot be read.
    pub fn read(places: &[PathBuf]) -> Result<Self, JobError> {
        let project = [project_root()];
        let places = if places.is_empty() { &project } else { places };
        let mut files = Vec::new();
        for place in places {
            if place.is_dir() {
                collect(place, 0, &mut files)?;
            } else {
                files.push(place.clone());
            }
        }
        let (mut symbols, mut widths) = (Vec::new(), Vec::new());
        for path in files {
            let bytes = fs::read(&path).map_err(|source| JobError::Read { path, source })?;
            let text = String::from_utf8_lossy(&bytes);
            symbols.extend(text.chars().map(symbol));
            widths.extend(text.chars().map(|character| character.len_utf8() as u8));
            symbols.truncate(TEXT_BYTES_MAX);
            widths.truncate(TEXT_BYTES_MAX);
        }
        let blake3 = blake3::hash(&symbols).to_hex().to_string();
        Ok(Self { symbols, widths, blake3 })
    }

    /// A description of where [`Corpus::read`] looks.
    #[must_use]
    pub fn describe(places: &[PathBuf]) -> String {
        if places.is_empty() {
            return project_root().display().to_string();
        }
        places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
    }
}

fn symbol(character: char) -> u8 {
    match character {
        ' '..='~' => character as u8 - b' ',
        '\n' => LINE_FEED,
        _ => OTHER,
    }
}

/// The nearest folder upwards that a version control or a lock file marks as a project, else the current one.
fn project_root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let marked = |folder: &&Path| folder.join(".git").exists() || folder.join("Cargo.lock").exists();
    here.ancestors().find(marked).unwrap_or(&here).to_owned()
}

/// Lists text files below a folder, in the order of their names; hidden folders and build outputs are passed by.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), JobError> {
    let refuse = |source| JobError::Read { path: folder.to_owned(), source };
    let mut entries = fs::read_dir(folder)
        .and_then(|entries| {
            entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()
        })
        .map_err(refuse)?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Links are not followed: a link to a folder above would never end.
        if name.starts_with('.') || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            if depth < FOLDER_DEPTH_MAX && name != "target" && name != "__pycache__" {
                collect(&path, depth + 1, files)?;
            }
        } else if path.extension().is_some_and(|ending| EXTENSIONS.iter().any(|known| ending == *known)) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that every character has a symbol below the count, and that printable ones have different ones.
    #[test]
    fn every_character_has_a_symbol() {
        let printable: std::collections::BTreeSet<u8> = (' '..='~').chain(['\n', 'é']).map(symbol).collect();
        assert_eq!(printable.len(), SYMBOL_COUNT);
        assert!(printable.iter().all(|&symbol| usize::from(symbol) < SYMBOL_COUNT));
        assert_eq!(symbol('\u{1f980}'), symbol('é'));
    }

    /// Proves that a folder is read in the order of its paths and without hidden or built files, that a named file is
    /// read whatever its ending, and that a missing one is named.
    #[test]
    fn folders_are_read_in_order_and_missing_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("b.md", "bb");
        put("a/x.rs", "aa");
        put("target/y.rs", "no");
        put(".hidden/z.rs", "no");
        put("c.bin", "cc");
        let read = |name: &str| Corpus::read(&[folder.path().join(name)]);
        let as_text = |corpus: Corpus| corpus.symbols.iter().map(|&s| (s + b' ') as char).collect::<String>();
        assert_eq!(as_text(read("").unwrap()), "aabb");
        assert_eq!(as_text(read("c.bin").unwrap()), "cc");
        assert!(read("gone.txt").unwrap_err().to_string().contains("gone.txt"));
    }
}
