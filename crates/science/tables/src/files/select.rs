//! From the path of a data set to its files, sorted.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use trackway_formats::runfile::{DataSpec, nearest};

use crate::error::DataError;
use crate::files::context::ReadContext;

/// The most files a data set may consist of.
pub const MAX_FILES: usize = 1_000_000;

/// The files of a data set, sorted by path, and the folder that their identity is relative to.
pub struct Selection {
    /// The folder, the glob's fixed part, or the single file's folder. Paths relative to it enter `data_sha256`,
    /// so that moved data stays the same data.
    pub root: PathBuf,
    pub files: Vec<PathBuf>,
}

/// Finds the files of a data set. Hidden files and folders (names that begin with a dot) of a folder are skipped;
/// symbolic links are followed, each folder once, and to folders outside of this one only where
/// [`Limits::follow_links`](crate::limits::Limits) is set.
///
/// # Errors
/// [`DataError`] without any file, with more than [`MAX_FILES`], or for a folder that cannot be listed.
pub fn select(
    set: &str,
    spec: &DataSpec,
    base: &Path,
    context: &ReadContext,
) -> Result<Selection, DataError> {
    if spec.path.contains("://") {
        return objects(set, spec, context);
    }
    let path = base.join(&spec.path);
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => folder(set, spec, path, context.limits().follow_links),
        Ok(metadata) if metadata.is_file() => {
            let root = path.parent().unwrap_or(Path::new("")).to_owned();
            Ok(Selection { root, files: vec![path] })
        }
        Ok(_) => {
            let what = "a device, socket or pipe";
            Err(DataError::NotAFile { set: set.into(), path: spec.path.clone(), what })
        }
        Err(_) if spec.path.contains(['*', '?', '[']) => glob_files(set, spec, base),
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            Err(missing(set, spec, &path))
        }
        Err(source) => Err(DataError::Unreadable { set: set.into(), path, source }),
    }
}

/// The error for a path that names nothing, with the name most like the first part that is missing.
fn missing(set: &str, spec: &DataSpec, path: &Path) -> DataError {
    let is_lost = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
    let lost = path.ancestors().take_while(is_lost).last().unwrap_or(path);
    let name = lost.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // The parent of a bare name is the empty path, which means the current folder.
    let parent =
        lost.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let siblings: Vec<String> = parent
        .and_then(|parent| fs::read_dir(parent).ok())
        .into_iter()
        .flatten()
        .take(MAX_FILES)
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let nearest = nearest(&name, siblings.iter().map(String::as_str)).map(str::to_owned);
    DataError::Missing { set: set.into(), path: spec.path.clone(), nearest }
}

fn glob_files(set: &str, spec: &DataSpec, base: &Path) -> Result<Selection, DataError> {
    let bad = |source| DataError::BadGlob { set: set.into(), pattern: spec.path.clone(), source };
    // The base may itself hold the pattern's special characters.
    let base_text = base.to_str().ok_or_else(|| bad("the folder's name is not UTF-8".into()))?;
    let absolute = Path::new(&spec.path).is_absolute();
    // An empty base means the current folder; with a slash after it, it would be the root.
    let pattern = if absolute || base_text.is_empty() {
        spec.path.clone()
    } else {
        format!("{}/{}", glob::Pattern::escape(base_text), spec.path)
    };
    let mut files = Vec::new();
    for found in glob::glob(&pattern).map_err(|error| bad(error.into()))? {
        let path = found.map_err(|error| {
            let path = error.path().to_owned();
            DataError::Unreadable { set: set.into(), path, source: error.into() }
        })?;
        if path.is_file() {
            files.push(path);
        }
        check_count(set, spec, files.len())?;
    }
    if files.is_empty() {
        return Err(DataError::EmptyGlob { set: set.into(), pattern: spec.path.clone() });
    }
    files.sort();
    let fixed: PathBuf = Path::new(&spec.path)
        .components()
        .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']))
        .collect();
    Ok(Selection { root: base.join(fixed), files })
}

/// The objects that a URL names: one, those a pattern matches, or all below a prefix.
fn objects(set: &str, spec: &DataSpec, context: &ReadContext) -> Result<Selection, DataError> {
    let url = spec.path.trim_end_matches('/');
    let failed = |source| DataError::Unreadable { set: set.into(), path: url.into(), source };
    let storage = context.remote().map_err(failed)?;
    let pattern_at = url.find(['*', '?', '[']);
    if pattern_at.is_none() && storage.head(url).map_err(failed)?.is_some() {
        let root = Path::new(url).parent().unwrap_or(Path::new("")).to_owned();
        return Ok(Selection { root, files: vec![url.into()] });
    }
    let folder = match pattern_at {
        Some(at) => &url[..url[..at].rfind('/').unwrap_or(at)],
        None => url,
    };
    let bad = |error: glob::PatternError| DataError::BadGlob {
        set: set.into(),
        pattern: url.into(),
        source: error.into(),
    };
    let pattern = pattern_at.map(|_| glob::Pattern::new(url)).transpose().map_err(bad)?;
    let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
    let is_wanted = |file: &str| match &pattern {
        Some(pattern) => pattern.matches_with(file, options),
        None => !file[folder.len()..].contains("/.") && !file.ends_with('/'),
    };
    let listed = storage.list(folder).map_err(failed)?;
    let mut files: Vec<PathBuf> =
        listed.into_iter().filter(|file| is_wanted(&file.url)).map(|file| file.url.into()).collect();
    check_count(set, spec, files.len())?;
    if files.is_empty() {
        let (set, path) = (set.into(), spec.path.clone());
        return Err(match pattern {
            Some(_) => DataError::EmptyGlob { set, pattern: path },
            None => DataError::Missing { set, path, nearest: None },
        });
    }
    files.sort();
    Ok(Selection { root: folder.into(), files })
}

fn folder(set: &str, spec: &DataSpec, root: PathBuf, follow_links: bool) -> Result<Selection, DataError> {
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![root.clone()];
    let unreadable = |source| DataError::Unreadable { set: set.into(), path: root.clone(), source };
    let root_folder = root.canonicalize().map_err(unreadable)?;
    while let Some(folder) = waiting.pop() {
        let unreadable = |source| DataError::Unreadable { set: set.into(), path: folder.clone(), source };
        if !seen.insert(folder.canonicalize().map_err(unreadable)?) {
            continue;
        }
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            match fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => {
                    let is_link = entry.file_type().is_ok_and(|it| it.is_symlink());
                    if is_link && !follow_links {
                        check_inside(set, &root_folder, &path)?;
                    }
                    waiting.push(path);
                }
                Ok(metadata) if metadata.is_file() => files.push(path),
                Ok(_) => {}
                // A link that leads nowhere, or to itself, is a file that cannot be read: reading it reports that.
                Err(_) if path.is_symlink() => files.push(path),
                Err(source) => return Err(DataError::Unreadable { set: set.into(), path, source }),
            }
            check_count(set, spec, files.len())?;
        }
    }
    if files.is_empty() {
        return Err(DataError::EmptyFolder { set: set.into(), path: spec.path.clone() });
    }
    files.sort();
    Ok(Selection { root, files })
}

/// A linked folder outside of the data's folder may hold anything, even the whole disk, so it is read only if that is
/// requested.
fn check_inside(set: &str, root: &Path, path: &Path) -> Result<(), DataError> {
    let unreadable = |source| DataError::Unreadable { set: set.into(), path: path.to_owned(), source };
    let target = path.canonicalize().map_err(unreadable)?;
    if target.starts_with(root) {
        return Ok(());
    }
    Err(DataError::LinkOutside { set: set.into(), path: path.to_owned(), target })
}

fn check_count(set: &str, spec: &DataSpec, count: usize) -> Result<(), DataError> {
    if count <= MAX_FILES {
        return Ok(());
    }
    Err(DataError::TooManyFiles { set: set.into(), path: spec.path.clone(), max: MAX_FILES })
}
