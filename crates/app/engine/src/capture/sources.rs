//! Keeps what an attempt was made from beside its commit: the changes that were not committed, its script and run file, its packages.
//! Without it a receipt has hashes of things that are lost. Each is stored once, under its hash, without secrets.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use trackway_core::AttemptId;
use trackway_files::{TempFile, TempFolder, if_there, make_folders, read_regular, write_own};
use trackway_formats::layout::HomeLayout;
use trackway_formats::sha256_hex;
use trackway_redact::{Redactor, has_secret_name, unkeepable};

use super::git::patch::{self, KEPT_FILE_BYTES_MAX};
use super::settings::plain::{PLAIN_BYTES_MAX, has_settings, is_plain, is_settings};
use super::{Capture, EnvironmentLock, Folder, Git, NamedFile, Untracked};

/// The most of all files of settings and code of its folders that is kept for an attempt, beside what is kept already.
const KEPT_FOLDER_BYTES_MAX: u64 = 4 << 20;
/// Most of them that are stored for one attempt.
const KEPT_FOLDER_FILES_MAX: usize = 200;
/// The most of all untracked files of an attempt that is kept.
pub const KEPT_UNTRACKED_BYTES_MAX: u64 = 32 << 20;

/// The changes of tracked files, in the folder of changes.
pub const PATCH_FILE: &str = "changes.patch";
/// The untracked files, below it.
pub const UNTRACKED_FOLDER: &str = "untracked";

/// What of the changes is not in the folder, a line each.
const LEFT_OUT_FILE: &str = "left-out.txt";

/// How what is said of the list of packages begins.
const PACKAGES: &str = "the packages";

/// BLAKE3 of each file in the folder, by its path there.
pub const KEPT_LIST_FILE: &str = "kept.json";

/// What an attempt was made from: `sources/ATTEMPT.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AttemptSource {
    /// The commit that was checked out.
    pub commit: Option<String>,
    pub branch: Option<String>,
    /// The root of the repository.
    pub root: Option<PathBuf>,
    /// Where it was cloned from.
    pub origin: Option<String>,
    /// BLAKE3 of the changes that were not committed; `sources/changes-…` has them.
    pub changes_blake3: Option<String>,
    /// BLAKE3 of the list of what is kept of them.
    #[serde(default)]
    pub changes_list_blake3: Option<String>,
    /// The script and the run file; `sources/file-…` has them.
    pub files: Vec<SourceFile>,
    /// The other files that the command names, by hash; of files of settings and code `sources/file-…` has the bytes.
    #[serde(default)]
    pub named_files: Vec<NamedFile>,
    /// SHA-256 of the packages, without secrets; `sources/environment-…` has them.
    pub environment_sha256: Option<String>,
    /// The interpreter, or the lock file.
    pub environment_path: Option<PathBuf>,
    pub python_version: Option<String>,
    /// What is not kept, and why.
    pub left_out: Vec<String>,
}

/// A file that an attempt was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Where it was.
    pub path: PathBuf,
    /// BLAKE3 of its bytes.
    pub blake3: String,
}

/// What of the kept sources of an attempt differs from what was kept: the file, and a sentence. What an older version kept without a list
/// is checked as far as its names have hashes.
#[must_use]
pub fn differences(home: &HomeLayout, source: &AttemptSource) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    if let Some(blake3) = &source.changes_blake3 {
        let folder = home.changes_source(blake3);
        if let Some(expected) = source.changes_list_blake3.as_deref() {
            found.extend(differing_changes(&folder, expected));
        }
    }
    for file in &source.files {
        found.extend(differing(&home.file_source(&file.blake3), &|bytes| hash(bytes) == file.blake3));
    }
    for file in source.named_files.iter().filter(|file| may_have_settings(file)) {
        let Some(blake3) = &file.blake3 else { continue };
        // Not all of them could be kept.
        let kept = Some(home.file_source(blake3)).filter(|path| path.exists());
        found.extend(kept.and_then(|path| differing(&path, &|bytes| hash(bytes) == *blake3)));
    }
    let was_kept = !source.left_out.iter().any(|what| what.starts_with(PACKAGES));
    if let Some(sha256) = source.environment_sha256.as_ref().filter(|_| was_kept) {
        found.extend(differing(&home.environment_source(sha256), &|bytes| sha256_hex(bytes) == *sha256));
    }
    found
}

fn differing(path: &Path, is_kept: &dyn Fn(&[u8]) -> bool) -> Option<(PathBuf, String)> {
    let why = match read_regular(path) {
        Ok(bytes) if is_kept(&bytes) => return None,
        Ok(_) => "it has other bytes than were kept".to_owned(),
        Err(error) => format!("it cannot be read: {error}"),
    };
    Some((path.to_owned(), why))
}

fn differing_changes(folder: &Path, list_blake3: &str) -> Vec<(PathBuf, String)> {
    let list = folder.join(KEPT_LIST_FILE);
    if let Some(found) = differing(&list, &|bytes| hash(bytes) == list_blake3) {
        return vec![found];
    }
    let read = read_regular(&list).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let kept: BTreeMap<String, String> = read.unwrap_or_default();
    kept.iter()
        .filter_map(|(path, blake3)| differing(&folder.join(path), &|bytes| hash(bytes) == *blake3))
        .collect()
}

/// Keeps it. What cannot be kept is named in the list, and holds no launch up.
pub fn keep(
    home: &HomeLayout,
    redactor: &Redactor,
    attempt_id: AttemptId,
    capture: &Capture,
    run_file: Option<&Path>,
) -> io::Result<()> {
    make_folders(&home.sources())?;
    let Git { commit, branch, root, origin, dirty_diff_blake3, left_out, .. } = &capture.git;
    let lock = &capture.environment_lock;
    let mut source = AttemptSource {
        commit: commit.clone(),
        branch: branch.clone(),
        root: root.as_ref().map(PathBuf::from),
        origin: origin.clone(),
        changes_blake3: dirty_diff_blake3.clone(),
        environment_sha256: lock.sha256.clone(),
        environment_path: lock.path.as_ref().map(PathBuf::from),
        python_version: lock.python_version.clone(),
        left_out: left_out.clone(),
        ..AttemptSource::default()
    };
    if let Some(blake3) = dirty_diff_blake3 {
        let kept = keep_changes(home, redactor, blake3, &capture.git, &mut source);
        note(&mut source.left_out, "the changes that were not committed", kept);
    }
    let script = capture.script.as_ref().map(|script| script.path.as_path());
    for path in script.into_iter().chain(run_file) {
        match keep_file(home, redactor, path) {
            Ok(blake3) => source.files.push(SourceFile { path: path.to_owned(), blake3 }),
            Err(why) => source.left_out.push(format!("`{}`: {why}", path.display())),
        }
    }
    let is_kept = |path: &Path| source.files.iter().any(|file| file.path == path);
    source.named_files = capture.named_files.iter().filter(|file| !is_kept(&file.path)).cloned().collect();
    for file in source.named_files.iter().filter(|file| is_of_settings(&file.path, file.size_bytes)) {
        // Its hash is listed whether or not it can be kept: the bytes only show what changed in it.
        drop(keep_file(home, redactor, &file.path));
    }
    capture.folder.iter().for_each(|folder| keep_folder(home, redactor, folder));
    if let Some(sha256) = &lock.sha256 {
        let kept = keep_environment(&home.environment_source(sha256), lock);
        if lock.kept.as_ref().is_some_and(|kept| kept.has_secrets) {
            source.left_out.push("secrets in the list of packages".into());
        }
        note(&mut source.left_out, PACKAGES, kept);
    }
    let mut document = serde_json::to_value(&source)?;
    redactor.json(&mut document);
    write_own(&home.attempt_source(attempt_id), &serde_json::to_vec_pretty(&document)?)
}

/// Keeps the settings and the code of the folders. They only show what changed, so that one which cannot be kept is not said.
pub fn keep_folder(home: &HomeLayout, redactor: &Redactor, folder: &Folder) {
    let (mut left_bytes, mut left_files) = (KEPT_FOLDER_BYTES_MAX, KEPT_FOLDER_FILES_MAX);
    for file in folder.files.iter().filter(|file| folder.to_keep.contains(&file.path)) {
        let is_new = file.blake3.as_ref().is_some_and(|blake3| !home.file_source(blake3).exists());
        if !is_new || file.size_bytes > left_bytes {
            continue;
        }
        left_bytes -= file.size_bytes;
        left_files -= 1;
        drop(keep_file_with(home, redactor, &file.path, TempFile::write_cache));
        if left_files == 0 {
            return;
        }
    }
}

/// Whether the bytes of the file may be kept.
fn may_have_settings(file: &NamedFile) -> bool {
    is_settings(&file.path, file.size_bytes) || is_plain(&file.path)
}

/// Whether the bytes of the file are kept: settings or code, or a text that has nothing but settings in it.
fn is_of_settings(path: &Path, size_bytes: u64) -> bool {
    let may_be_plain = is_plain(path) && size_bytes <= PLAIN_BYTES_MAX;
    is_settings(path, size_bytes)
        || may_be_plain && read_regular(path).is_ok_and(|bytes| has_settings(path, &bytes))
}

fn note(left_out: &mut Vec<String>, what: &str, kept: io::Result<()>) {
    if let Err(error) = kept {
        left_out.push(format!("{what}: {error}"));
    }
}

fn keep_changes(
    home: &HomeLayout,
    redactor: &Redactor,
    blake3: &str,
    git: &Git,
    source: &mut AttemptSource,
) -> io::Result<()> {
    let target = home.changes_source(blake3);
    if !target.is_dir() {
        match write_changes(&target, redactor, git) {
            // Another launch from the same tree was faster.
            Err(_) if target.is_dir() => {}
            written => written?,
        }
    }
    let text = std::fs::read_to_string(target.join(LEFT_OUT_FILE))?;
    source.left_out.extend(text.lines().map(str::to_owned));
    // A folder of an older version has none.
    source.changes_list_blake3 =
        if_there(read_regular(&target.join(KEPT_LIST_FILE)))?.map(|list| hash(&list));
    Ok(())
}

fn write_changes(target: &Path, redactor: &Redactor, git: &Git) -> io::Result<()> {
    let folder = TempFolder::beside(target)?;
    let (mut left_out, mut kept) = (Vec::new(), BTreeMap::new());
    let root = Path::new(git.root.as_deref().unwrap_or_default());
    match &git.diff {
        Some(diff) => {
            let patch = patch::without_secrets(redactor, diff, root);
            write_own(&folder.path().join(PATCH_FILE), &patch.bytes)?;
            kept.insert(PATCH_FILE.to_owned(), hash(&patch.bytes));
            left_out.extend(patch.left_out);
        }
        None if git.diff_bytes.is_some_and(|bytes| bytes > 0) => {
            left_out.push(format!(
                "changes of tracked files of more than {} bytes",
                super::git::working_tree::KEPT_DIFF_BYTES_MAX
            ));
        }
        None => {}
    }
    let unlisted = git.untracked_count.saturating_sub(git.untracked.len() as u64);
    if unlisted > 0 {
        left_out.push(format!("{unlisted} more untracked files"));
    }
    let mut budget_bytes = KEPT_UNTRACKED_BYTES_MAX;
    for file in &git.untracked {
        let to = folder.path().join(UNTRACKED_FOLDER).join(&file.path);
        match keep_untracked(redactor, (&root.join(&file.path), &to), file, &mut budget_bytes) {
            Ok((blake3, has_secrets)) => {
                if has_secrets {
                    left_out.push(format!("`{}`: kept without the secrets in it", file.path));
                }
                kept.insert(format!("{UNTRACKED_FOLDER}/{}", file.path), blake3);
            }
            Err(why) => left_out.push(format!("`{}`: {why}", file.path)),
        }
    }
    let left_out = redactor.text(&left_out.join("\n")).into_owned();
    write_own(&folder.path().join(LEFT_OUT_FILE), left_out.as_bytes())?;
    write_own(&folder.path().join(KEPT_LIST_FILE), &serde_json::to_vec_pretty(&kept)?)?;
    folder.persist(target)
}

/// BLAKE3 of what was kept, and whether there were secrets in the file; `Err`: why it is not kept.
fn keep_untracked(
    redactor: &Redactor,
    (from, to): (&Path, &Path),
    file: &Untracked,
    budget_bytes: &mut u64,
) -> Result<(String, bool), String> {
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    let inside = to.components().all(|part| part != Component::ParentDir);
    let blake3 = file.blake3.as_deref().filter(|_| inside).ok_or("it was not read")?;
    let is_not_kept = |why: &str| format!("not kept, since {why}; BLAKE3 {blake3}");
    if has_secret_name(&name) {
        return Err(is_not_kept("its name is that of a file with secrets"));
    }
    if redactor.text(&file.path) != file.path {
        return Err(is_not_kept("there is a secret in its name"));
    }
    let size = from.symlink_metadata().map_err(|error| error.to_string())?.len();
    if size > KEPT_FILE_BYTES_MAX || size > *budget_bytes {
        return Err("too large to be kept".into());
    }
    let bytes = read_regular(from).map_err(|error| error.to_string())?;
    if hash(&bytes) != blake3 {
        return Err("it changed while it was kept".into());
    }
    if let Some(why) = unkeepable(&name, &bytes) {
        return Err(is_not_kept(why));
    }
    *budget_bytes -= size;
    let kept = redactor.bytes(&bytes);
    let folder = to.parent().unwrap_or(to);
    make_folders(folder).and_then(|()| write_own(to, &kept)).map_err(|error| error.to_string())?;
    Ok((hash(&kept), *kept != bytes[..]))
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn keep_file(home: &HomeLayout, redactor: &Redactor, path: &Path) -> Result<String, String> {
    keep_file_with(home, redactor, path, TempFile::write)
}

fn keep_file_with(
    home: &HomeLayout,
    redactor: &Redactor,
    path: &Path,
    write: impl Fn(&Path, &[u8]) -> io::Result<()>,
) -> Result<String, String> {
    let size = path.metadata().map_err(|error| error.to_string())?.len();
    if size > KEPT_FILE_BYTES_MAX {
        return Err("too large to be kept".into());
    }
    let bytes = read_regular(path).map_err(|error| error.to_string())?;
    if let Some(why) = unkeepable("", &bytes) {
        return Err(format!("not kept, since {why}"));
    }
    if *redactor.bytes(&bytes) != bytes[..] {
        return Err("not kept, since there are secrets in it".into());
    }
    let blake3 = hash(&bytes);
    let target = home.file_source(&blake3);
    if !target.exists() {
        write(&target, &bytes).map_err(|error| error.to_string())?;
    }
    Ok(blake3)
}

/// The packages, as bytes that have the hash.
fn keep_environment(target: &Path, lock: &EnvironmentLock) -> io::Result<()> {
    match &lock.kept {
        Some(kept) if !target.exists() => TempFile::write(target, &kept.bytes),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each kind of kept source is compared with its hash, changed or gone, and that what could not be kept is not missing.
    #[test]
    fn what_differs_from_what_was_kept() {
        let folder = tempfile::tempdir().unwrap();
        let home = HomeLayout::new(folder.path());
        let write = |path: &Path, bytes: &[u8]| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        let changes = home.changes_source("c0");
        let list = serde_json::to_vec(&BTreeMap::from([(PATCH_FILE, hash(b"patch"))])).unwrap();
        let named = |bytes: &[u8]| NamedFile {
            path: PathBuf::from("settings.yaml"),
            size_bytes: bytes.len() as u64,
            blake3: Some(hash(bytes)),
            modified_at: None,
        };
        let source = AttemptSource {
            changes_blake3: Some("c0".into()),
            changes_list_blake3: Some(hash(&list)),
            files: vec![SourceFile { path: PathBuf::from("t.py"), blake3: hash(b"script") }],
            named_files: vec![named(b"settings"), named(b"not kept")],
            environment_sha256: Some(sha256_hex(b"packages")),
            ..AttemptSource::default()
        };
        let files = [
            (changes.join(KEPT_LIST_FILE), list),
            (changes.join(PATCH_FILE), b"patch".to_vec()),
            (home.file_source(&hash(b"script")), b"script".to_vec()),
            (home.file_source(&hash(b"settings")), b"settings".to_vec()),
            (home.environment_source(&sha256_hex(b"packages")), b"packages".to_vec()),
        ];
        files.iter().for_each(|(path, bytes)| write(path, bytes));
        assert_eq!(differences(&home, &source), []);
        for (path, bytes) in &files {
            write(path, b"other bytes");
            let found = differences(&home, &source);
            assert_eq!((found.len(), &found[0].0), (1, path), "{found:?}");
            write(path, bytes);
        }
        std::fs::rename(&files[4].0, folder.path().join("away")).unwrap();
        assert_eq!(differences(&home, &source).len(), 1);
        let left_out = vec![format!("{PACKAGES}: too large to be kept")];
        assert_eq!(differences(&home, &AttemptSource { left_out, ..source }), []);
    }
}
