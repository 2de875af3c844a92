//! Where a checkpoint comes from that the script wrote itself: `origin.json` beside its files
//! (`docs/formats/checkpoint-manifest.md`).
//!
//! File names of a checkpoint have no folders and few characters; those of frameworks have both. The origin says which file was
//! which, so that the same tree can be made again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::checkpoint_manifest::{MANIFEST_FILE_NAME, MAX_FILE_NAME_BYTES, MAX_MANIFEST_BYTES, Manifest};
use super::writers::ShownBy;
use crate::text::path_text::{has_escapes, text_of};

/// The file's name in a checkpoint.
pub const ORIGIN_FILE_NAME: &str = "origin.json";
/// The highest version that is read.
pub const ORIGIN_VERSION: u32 = 3;
/// The version of what is one file or folder.
const VERSION_OF_ONE: u32 = 1;
/// The version of what is several files.
const VERSION_OF_SEVERAL: u32 = 2;
/// The first version whose paths have escapes ([`crate::text::path_text`]).
const VERSION_WITH_ESCAPES: u32 = 3;

/// Where a checkpoint was, and what its files were called there. Paths are as [`crate::text::path_text`] has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointOrigin {
    /// The first version that can say it ([`version_of`]).
    pub version: u32,
    /// How it is laid out, such as `transformers_trainer`.
    pub layout: String,
    /// The folder or file: relative to the working directory of the script, else absolute.
    pub path: String,
    /// Whether `path` is a folder.
    pub is_folder: bool,
    /// Where its step comes from: `content`, `report`, `name`, `tracker` or `progress` (the last step that was recorded before it).
    pub step_origin: String,
    /// What showed that the attempt wrote it; none in what earlier versions committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<ShownBy>,
    /// The last step that the script can have recorded or printed when it was written: up to 16 ms later, since what is
    /// printed is read a little later. The two may count different things, such as updates and epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached_step: Option<u64>,
    pub files: Vec<OriginFile>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginFile {
    /// Its name in the checkpoint.
    pub name: String,
    /// Its path below the folder, with `/`; empty for a checkpoint that is one file, and of a file beside it its name.
    pub path: String,
    /// When it was last written to, in nanoseconds since 1970: with its size it shows whether the file that is there is
    /// the one that was copied.
    pub modified_ns: i64,
}

/// Whether the script wrote a checkpoint itself: its origin is among its files.
#[must_use]
pub fn is_adopted(manifest: &Manifest) -> bool {
    manifest.files.iter().any(|file| file.name == ORIGIN_FILE_NAME)
}

impl CheckpointOrigin {
    /// Reads an origin.
    ///
    /// # Errors
    /// Why it is none: too large, not the JSON it must be, of a later version, or with a path that leaves the folder.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(format!("it has {} bytes; at most {MAX_MANIFEST_BYTES} are read", bytes.len()));
        }
        let mut origin: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("it is not valid: {error}"))?;
        if origin.version > ORIGIN_VERSION {
            return Err(format!(
                "it has version {}; this program reads up to {ORIGIN_VERSION}",
                origin.version
            ));
        }
        if origin.version < VERSION_WITH_ESCAPES {
            // What looks like an escape is none there.
            let files = origin.files.iter_mut().map(|file| &mut file.path);
            files.chain([&mut origin.path]).for_each(|path| *path = text_of(&path));
        }
        match origin.files.iter().find(|file| !is_below(&file.path, origin.is_folder)) {
            Some(file) => Err(format!("`{}` is not a path below the checkpoint", file.path.escape_debug())),
            None => Ok(origin),
        }
    }

    /// What the script calls a file of the checkpoint: its path below the folder, or the name of the one file.
    #[must_use]
    pub fn name_of(&self, stored: &str) -> Option<&str> {
        let file = self.files.iter().find(|file| file.name == stored)?;
        match self.is_folder {
            true => Some(&file.path),
            false if !file.path.is_empty() => Some(&file.path),
            false => self.path.rsplit('/').next().filter(|name| !matches!(*name, "" | "." | "..")),
        }
    }

    /// The names of the files beside the one at its path.
    #[must_use]
    pub fn beside(&self) -> Vec<String> {
        let beside = self.files.iter().filter(|file| !self.is_folder && !file.path.is_empty());
        beside.map(|file| file.path.clone()).collect()
    }

    /// The bytes to store.
    ///
    /// # Panics
    /// Never: an origin is plain data.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("an origin is plain data");
        bytes.push(b'\n');
        bytes
    }
}

/// The first version that can say which files these are: those beside another are of the second, and names with escapes of the third.
#[must_use]
pub fn version_of(path: &str, is_folder: bool, files: &[OriginFile]) -> u32 {
    let mut paths = files.iter().map(|file| file.path.as_str()).chain([path]);
    if paths.any(has_escapes) {
        return VERSION_WITH_ESCAPES;
    }
    let is_one = is_folder || files.iter().all(|file| file.path.is_empty());
    if is_one { VERSION_OF_ONE } else { VERSION_OF_SEVERAL }
}

/// Whether joining it to a folder stays below that folder.
fn is_below(path: &str, is_folder: bool) -> bool {
    if !is_folder && (path.is_empty() || path.contains('/')) {
        return path.is_empty();
    }
    !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | "..")) && !path.contains('\0')
}

/// A name in a checkpoint for each path, in their order. The same paths have the same names, so that files which stay the same are shared
/// between checkpoints.
#[must_use]
pub fn stored_names<'p>(paths: impl IntoIterator<Item = &'p str>) -> Vec<String> {
    let mut used: BTreeSet<String> = [MANIFEST_FILE_NAME, ORIGIN_FILE_NAME].map(str::to_owned).into();
    let name = |path: &str| {
        let plain = plain_name(path);
        let mut name = plain.clone();
        let mut number = 2;
        while !used.insert(name.clone()) {
            name = format!("{number}-{plain}");
            number += 1;
        }
        name
    };
    paths.into_iter().map(name).collect()
}

/// Only characters that a name may have, and room for a number before it. Of a long one the end counts: there the extension is.
fn plain_name(path: &str) -> String {
    const LONGEST: usize = MAX_FILE_NAME_BYTES - 8;
    let allowed = |char: char| match char {
        '/' => '-',
        _ if char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-') => char,
        _ => '_',
    };
    let name: String = path.chars().map(allowed).collect();
    let name = &name[name.len().saturating_sub(LONGEST)..];
    match name.starts_with('.') || name.is_empty() {
        true => format!("_{name}"),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::checkpoint_manifest::check_file_name;

    /// Proves that every path gets another legal name, that names of a checkpoint's own files are never taken, and that names do
    /// not depend on later paths.
    #[test]
    fn every_path_has_a_name_of_its_own() {
        let long = format!("{}/model.safetensors", "x".repeat(300));
        let paths = [
            "model.safetensors", "a/b.pt", "a-b.pt", ".metadata", "manifest.json", "origin.json", "ö ä.bin",
            "", &long,
        ];
        let names = stored_names(paths);
        let unique: BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), paths.len(), "{names:?}");
        for name in &names {
            check_file_name(name).unwrap();
        }
        assert_eq!(names[..4], ["model.safetensors", "a-b.pt", "2-a-b.pt", "_.metadata"]);
        assert_eq!(names[4..6], ["2-manifest.json", "2-origin.json"]);
        assert!(names[8].ends_with("model.safetensors"));
        assert_eq!(stored_names(paths.into_iter().take(3)), names[..3]);
    }

    /// Proves that an origin is the same after it was written and read, and that one whose files would be outside of its folder, or
    /// of a later version, is refused.
    #[test]
    fn an_origin_is_read_or_refused() {
        let origin = |path: &str, is_folder: bool| CheckpointOrigin {
            version: ORIGIN_VERSION,
            layout: "transformers_trainer".into(),
            path: "out/checkpoint-40".into(),
            is_folder,
            step_origin: "content".into(),
            shown_by: Some(ShownBy::Kernel),
            reached_step: None,
            files: vec![OriginFile { name: "model".into(), path: path.into(), modified_ns: 0 }],
        };
        for (path, is_folder) in
            [("model.safetensors", true), ("global_step40/zero.pt", true), ("", false), ("optim.pt", false)]
        {
            let origin = origin(path, is_folder);
            assert_eq!(CheckpointOrigin::from_bytes(&origin.to_bytes()), Ok(origin));
        }
        for (path, is_folder) in [
            ("../x", true),
            ("/etc/passwd", true),
            ("a//b", true),
            ("", true),
            (".", true),
            ("a/b", false),
            ("..", false),
        ] {
            let refused = CheckpointOrigin::from_bytes(&origin(path, is_folder).to_bytes());
            assert!(refused.as_ref().is_err_and(|why| why.contains("below")), "{path}: {refused:?}");
        }
        let later = CheckpointOrigin { version: ORIGIN_VERSION + 1, ..origin("a", true) };
        assert!(CheckpointOrigin::from_bytes(&later.to_bytes()).is_err_and(|why| why.contains("version")));
    }

    /// Proves that only names that need an escape need the version which has them, and that what looks like one in an
    /// earlier version is the name that it was.
    #[test]
    fn earlier_versions_have_no_escapes() {
        let file = |path: &str| OriginFile { name: "a".into(), path: path.into(), modified_ns: 0 };
        for (path, is_folder, below, version) in [
            ("out/ckpt.pt", false, "", 1),
            ("out/ckpt-10", true, "a\\b.pt", 1),
            ("model.pt", false, "optim.pt", 2),
            ("out/\\xff", true, "a.pt", 3),
            ("out/a", true, "\\xff/a.pt", 3),
        ] {
            assert_eq!(version_of(path, is_folder, &[file(below)]), version, "{path} {below}");
        }
        let origin = |version| CheckpointOrigin {
            version,
            layout: "unknown".into(),
            path: "out/\\xff".into(),
            is_folder: true,
            step_origin: "name".into(),
            shown_by: None,
            reached_step: None,
            files: vec![file("\\xe9.pt")],
        };
        for (version, path, below) in [(1, "out/\\x5cxff", "\\x5cxe9.pt"), (3, "out/\\xff", "\\xe9.pt")] {
            let read = CheckpointOrigin::from_bytes(&origin(version).to_bytes()).unwrap();
            assert_eq!((read.path.as_str(), read.files[0].path.as_str()), (path, below));
        }
    }
}
