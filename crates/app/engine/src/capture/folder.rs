//! The small files of code, settings and data below the script's folders that git does not compare: all of them without
//! a repository, those that it ignores in one. A script may read any of them, whether or not the command names it.
//!
//! They are listed, each with its state, before the script starts, and may be read beside it: what has another state
//! once it was read, or was rewritten meanwhile, is not what the script started with, and is named.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;
use trackway_files::open_regular;
use trackway_redact::{Redactor, has_secret_name};

use super::comments::{code_blake3, is_python};
use super::named_files::modified_at;
use super::script::script_of;
use super::settings::plain::{extension_is, has_settings};
use super::{CaptureInputs, Git};

/// Most files that are listed.
const FILES_MAX: usize = 2000;
/// A larger file is listed without its hash.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// So many bytes of all files are hashed: more would hold the launch up.
const HASHED_BYTES_MAX: u64 = 64 << 20;
/// So many bytes of code are read without their comments.
const CODE_BYTES_MAX: u64 = 2 << 20;
/// A deeper folder is not looked at.
const DEPTH_MAX: usize = 6;
/// A folder with more entries is one of single samples, and not looked at.
const ENTRIES_MAX: usize = 4000;
/// Most folders that are looked at.
const FOLDERS_MAX: usize = 500;
/// A longer first line is not taken for a header.
const HEADER_BYTES_MAX: usize = 512;
/// Most folders that are named because they were not looked at.
const LEFT_OUT_MAX: usize = 64;
/// Folders of packages, caches and logs.
const LEFT_OUT_FOLDERS: [&str; 6] =
    ["node_modules", "__pycache__", "site-packages", "wandb", "mlruns", "lightning_logs"];
/// What the names of files end with that are looked at: code, settings, texts and tables.
const LOOKED_AT: [&str; 30] = [
    "py", "pyx", "ipynb", "sh", "bash", "json", "yaml", "yml", "toml", "ini", "cfg", "conf", "properties",
    "jsonnet", "csv", "tsv", "jsonl", "ndjson", "txt", "parquet", "arrow", "feather", "npy", "xml", "dat",
    "data", "tab", "jinja", "sql", "gz",
];
/// What the names of tables of lines end with.
const TABLES: [&str; 4] = ["csv", "tsv", "jsonl", "ndjson"];
/// Those of them that begin with the names of their columns.
const TABLES_WITH_HEADER: [&str; 2] = ["csv", "tsv"];

/// What is below the folders of a script, beside what git compares.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Folder {
    /// The files, by path.
    pub files: Vec<FolderFile>,
    /// How many files and folders were seen and not looked at: models, images and the like, and what is past a bound.
    pub not_looked_at: u64,
    /// Those that were written or removed after they were listed and before they were read: of them no hash is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<PathBuf>,
    /// Folders that were not looked at, or not to their end: whether a file was in them is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<PathBuf>,
    /// The files of settings and code, of which the bytes are kept.
    #[serde(skip)]
    pub to_keep: BTreeSet<PathBuf>,
    /// What is still to be read of the files.
    #[serde(skip)]
    pub unread: Vec<UnreadFile>,
}

/// A file that was listed and is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadFile {
    /// Where it is in the list.
    place: usize,
    state: State,
    /// Whether it is read without its comments too.
    is_code: bool,
}

/// What differs once a file was written, or another one has its name. The time of the last change cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    id: (u64, u64),
    size_bytes: u64,
    changed_at: (i64, i64),
}

impl State {
    fn of(found: &Metadata) -> Self {
        let (id, changed_at) = ((found.dev(), found.ino()), (found.ctime(), found.ctime_nsec()));
        Self { id, size_bytes: found.len(), changed_at }
    }
}

impl Folder {
    /// Reads what was listed.
    pub fn read(&mut self, redactor: &Redactor) {
        for UnreadFile { place, state, is_code } in std::mem::take(&mut self.unread) {
            let file = &mut self.files[place];
            match read_in_state(&file.path, state) {
                Ok(Some(bytes)) => {
                    file.take(&bytes, is_code, redactor);
                    if has_settings(&file.path, &bytes) {
                        self.to_keep.insert(file.path.clone());
                    }
                }
                Ok(None) => self.changed.push(file.path.clone()),
                // It stays without a hash, as one that is too large.
                Err(_) => {}
            }
        }
    }
}

/// The bytes of a file that is in this state, before and after they are read; `None`: it is not.
fn read_in_state(path: &Path, state: State) -> io::Result<Option<Vec<u8>>> {
    let mut file = match open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::with_capacity(usize::try_from(state.size_bytes).unwrap_or(0));
    // It may grow while it is read.
    file.by_ref().take(state.size_bytes + 1).read_to_end(&mut bytes)?;
    Ok((State::of(&file.metadata()?) == state).then_some(bytes))
}

/// A file in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderFile {
    pub path: PathBuf,
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// When it was written.
    pub modified_at: Option<Timestamp>,
    /// BLAKE3 of its bytes; none if it is too large or cannot be read.
    pub blake3: Option<String>,
    /// BLAKE3 of code of Python without its comments, blank lines and docstrings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_blake3: Option<String>,
    /// How many lines a table has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// The names of its columns, where the first line has them and no secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

impl FolderFile {
    fn take(&mut self, bytes: &[u8], is_code: bool, redactor: &Redactor) {
        let code = std::str::from_utf8(bytes).ok().filter(|_| is_code);
        let text = Some(bytes).filter(|_| extension_is(&self.path, &TABLES));
        let header = text.filter(|_| extension_is(&self.path, &TABLES_WITH_HEADER));
        self.blake3 = Some(blake3::hash(bytes).to_hex().to_string());
        self.code_blake3 = code.map(code_blake3);
        self.lines = text.map(lines_of);
        self.header = header.and_then(header_of).filter(|line| redactor.text(line) == *line);
    }
}

/// Lists the files, and reads none. `None`: the script starts in no folder of a project.
pub(super) fn list(inputs: &CaptureInputs<'_>, git: &Git) -> Option<Folder> {
    let (roots, left_out) = roots(inputs);
    if roots.is_empty() {
        return None;
    }
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut walk = Walk {
        excluded: inputs.exclude.iter().map(|folder| canonical(folder)).collect(),
        excluded_files: inputs.exclude.iter().filter_map(|path| file_id(path)).collect(),
        seen: (roots.len() > 1).then(HashSet::new),
        left_bytes: HASHED_BYTES_MAX,
        left_code_bytes: CODE_BYTES_MAX,
        left_folders: FOLDERS_MAX,
        found: Vec::new(),
        not_looked_at: 0,
        left_out: left_out.clone(),
    };
    for root in &roots {
        walk.root(root, git);
    }
    let mut folder = walk.listed();
    if folder.left_out.len() > LEFT_OUT_MAX {
        folder.left_out = [left_out, roots].concat();
    }
    Some(folder)
}

/// The working directory and the script's folder: where they may be a project, and where they are not.
fn roots(inputs: &CaptureInputs<'_>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let script = script_of(inputs.argv, inputs.working_directory);
    let of_script = script.as_deref().and_then(Path::parent).filter(|folder| folder.is_dir());
    let home = inputs.environment.get("HOME").map(PathBuf::from);
    let is_shared = |folder: &Path| {
        folder.parent().is_none()
            || home.as_deref() == Some(folder)
            || folder == Path::new("/tmp")
            || folder == Path::new("/root")
            || folder.ancestors().any(is_of_packages)
    };
    let mut roots: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut left_out = Vec::new();
    for folder in [Some(inputs.working_directory), of_script].into_iter().flatten() {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        if is_shared(&real) {
            left_out.push(folder.to_owned());
        } else if !roots.iter().any(|(root, _)| real.starts_with(root)) {
            roots.push((real, folder.to_owned()));
        }
    }
    (roots.into_iter().map(|(_, folder)| folder).collect(), left_out)
}

/// Whether packages are installed in the folder.
#[must_use]
pub fn is_of_packages(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    LEFT_OUT_FOLDERS.contains(&&*name) || folder.join("pyvenv.cfg").exists()
}

/// Device and inode of a file; none of a folder.
fn file_id(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().filter(|found| found.is_file()).map(|found| (found.dev(), found.ino()))
}

struct Walk {
    excluded: Vec<PathBuf>,
    /// Device and inode of each.
    excluded_files: Vec<(u64, u64)>,
    /// What was looked at, where one root may be below another; below one root nothing is met twice.
    seen: Option<HashSet<PathBuf>>,
    left_bytes: u64,
    left_code_bytes: u64,
    left_folders: usize,
    /// The files, and of those that are to be read their states and whether they are code.
    found: Vec<(FolderFile, Option<(State, bool)>)>,
    not_looked_at: u64,
    left_out: Vec<PathBuf>,
}

impl Walk {
    /// What was found, by path.
    fn listed(mut self) -> Folder {
        self.found.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
        let mut folder =
            Folder { not_looked_at: self.not_looked_at, left_out: self.left_out, ..Folder::default() };
        for (place, (file, to_read)) in self.found.into_iter().enumerate() {
            folder.files.push(file);
            folder.unread.extend(to_read.map(|(state, is_code)| UnreadFile { place, state, is_code }));
        }
        folder
    }

    /// All of it, or what git ignores in it.
    fn root(&mut self, root: &Path, git: &Git) {
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let of_git = git.root.as_deref().map(Path::new).filter(|of_git| real.starts_with(of_git));
        let Some(of_git) = of_git else { return self.below(vec![root.to_owned()]) };
        let mut folders = Vec::new();
        for path in git.ignored.iter().map(|path| of_git.join(path)) {
            if real.starts_with(&path) {
                return self.below(vec![root.to_owned()]);
            }
            let Ok(inner) = path.strip_prefix(&real) else { continue };
            let is_hidden = |part: &std::ffi::OsStr| part.to_string_lossy().starts_with('.');
            let path = root.join(inner);
            match path.symlink_metadata() {
                _ if inner.iter().any(is_hidden) => {}
                Ok(found) if found.is_dir() && self.is_entered(&path) => folders.push(path),
                Ok(found) if found.is_dir() => self.leave_out_unless_never_seen(&path),
                Ok(found) => self.look(path, (!found.is_symlink()).then_some(found.ino())),
                Err(_) => {}
            }
        }
        folders.sort();
        self.below(folders);
    }

    /// The nearest folders first, so that many samples in a deep one take nothing from the others.
    fn below(&mut self, folders: Vec<PathBuf>) {
        let mut waiting: VecDeque<(PathBuf, usize)> = folders.into_iter().map(|path| (path, 0)).collect();
        while let Some((folder, depth)) = waiting.pop_front() {
            let entries =
                if self.left_folders == 0 || depth > DEPTH_MAX { None } else { entries_of(&folder) };
            let Some(entries) = entries else {
                self.not_looked_at += 1;
                self.leave_out(&folder);
                continue;
            };
            self.left_folders -= 1;
            for (path, kind) in entries {
                match kind {
                    Entry::Folder if self.is_entered(&path) => waiting.push_back((path, depth + 1)),
                    Entry::File(inode) => self.look(path, inode),
                    Entry::Folder => self.leave_out_unless_never_seen(&path),
                    Entry::LinkedFolder => {
                        self.not_looked_at += 1;
                        self.leave_out_unless_never_seen(&path);
                    }
                    Entry::Other => {}
                }
            }
        }
    }

    fn is_entered(&self, folder: &Path) -> bool {
        let is_excluded = || folder.canonicalize().is_ok_and(|real| self.excluded.contains(&real));
        !is_hidden(folder) && !is_of_packages(folder) && !is_excluded()
    }

    fn leave_out(&mut self, folder: &Path) {
        if self.may_be_left_out(folder) && folder.to_str().is_some() {
            self.left_out.push(folder.to_owned());
        }
    }

    /// Whether it is not named yet, and there is room for its name.
    fn may_be_left_out(&self, folder: &Path) -> bool {
        self.left_out.len() <= LEFT_OUT_MAX && self.left_out.last().is_none_or(|last| last != folder)
    }

    /// A folder whose name alone keeps it from being looked at has no files in any list.
    fn leave_out_unless_never_seen(&mut self, folder: &Path) {
        if may_be_entered(folder.file_name().unwrap_or_default()) {
            self.leave_out(folder);
        }
    }

    /// `inode`: its own; none of a link.
    fn look(&mut self, path: PathBuf, inode: Option<u64>) {
        if is_hidden(&path) || self.seen.as_mut().is_some_and(|seen| !seen.insert(path.clone())) {
            return;
        }
        let (folder, has_room) = (path.parent().unwrap_or(&path), self.found.len() < FILES_MAX);
        // Behind the end of the list one name of a folder is looked at: there are thousands. Those that are not UTF-8 have no place in it.
        let is_asked = has_room || self.may_be_left_out(folder);
        let may_be_listed = is_asked && path.to_str().is_some() && is_looked_at(&path);
        let is_listed = has_room && may_be_listed;
        if may_be_listed && !is_listed {
            self.leave_out(folder);
        }
        let may_be_excluded =
            self.excluded_files.iter().any(|(_, excluded)| inode.is_none_or(|it| it == *excluded));
        // Of thousands of images nothing but the names is read.
        if !is_listed && !may_be_excluded {
            self.not_looked_at += 1;
            return;
        }
        let Ok(found) = path.metadata() else { return };
        if self.excluded_files.contains(&(found.dev(), found.ino())) {
            return;
        }
        if !is_listed {
            self.not_looked_at += 1;
            return;
        }
        let size_bytes = found.len();
        let is_read = size_bytes <= FILE_BYTES_MAX.min(self.left_bytes) && found.is_file();
        self.left_bytes -= if is_read { size_bytes } else { 0 };
        let is_code = is_read && is_python(&path.to_string_lossy()) && size_bytes <= self.left_code_bytes;
        self.left_code_bytes -= if is_code { size_bytes } else { 0 };
        let modified_at = modified_at(&found);
        let (blake3, code_blake3, lines, header) = (None, None, None, None);
        let file = FolderFile { path, size_bytes, modified_at, blake3, code_blake3, lines, header };
        self.found.push((file, is_read.then(|| (State::of(&found), is_code))));
    }
}

enum Entry {
    /// With its inode; none of a link to one.
    File(Option<u64>),
    Folder,
    LinkedFolder,
    Other,
}

impl Entry {
    fn of(entry: &DirEntry) -> std::io::Result<Self> {
        Ok(match entry.file_type()? {
            kind if kind.is_file() => Self::File(Some(entry.ino())),
            kind if kind.is_dir() => Self::Folder,
            kind if kind.is_symlink() => match entry.path().metadata() {
                Ok(target) if target.is_file() => Self::File(None),
                Ok(target) if target.is_dir() => Self::LinkedFolder,
                _ => Self::Other,
            },
            _ => Self::Other,
        })
    }
}

/// In the order of their names; `None`: too many, or the folder cannot be read.
fn entries_of(folder: &Path) -> Option<Vec<(PathBuf, Entry)>> {
    let mut found: Vec<(OsString, Entry)> = Vec::new();
    for entry in std::fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        found.push((entry.file_name(), Entry::of(&entry).ok()?));
        if found.len() > ENTRIES_MAX {
            return None;
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Some(found.into_iter().map(|(name, entry)| (folder.join(name), entry)).collect())
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// Whether the name of a folder does not keep it from being looked at.
fn may_be_entered(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !name.starts_with('.') && !LEFT_OUT_FOLDERS.contains(&&*name)
}

/// Whether a file is listed where it exists, by its path from the folder that is looked at.
#[must_use]
pub fn may_be_listed(inner: &Path) -> bool {
    let mut folders = inner.parent().into_iter().flat_map(Path::iter);
    folders.all(may_be_entered) && !is_hidden(inner) && is_looked_at(inner)
}

/// Whether a script may read it as settings, as a table, or as code. A file without an extension may be a table.
fn is_looked_at(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (path.extension().is_none() || extension_is(path, &LOOKED_AT)) && !has_secret_name(&name)
}

fn lines_of(bytes: &[u8]) -> u64 {
    let newlines = memchr::memchr_iter(b'\n', bytes).count() as u64;
    newlines + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
}

/// The first line, where no field of it is a number: else it is a row.
fn header_of(bytes: &[u8]) -> Option<String> {
    let line = bytes.split(|byte| *byte == b'\n').next().filter(|line| line.len() <= HEADER_BYTES_MAX)?;
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let is_row = line.split([',', ';', '\t']).any(|field| field.trim().parse::<f64>().is_ok());
    (!line.is_empty() && !is_row).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that names of columns are a header and a row of numbers is none, and that lines are counted with one that has no end.
    #[test]
    fn the_head_of_a_table() {
        assert_eq!(header_of(b"x,y\n1,2\n").as_deref(), Some("x,y"));
        assert_eq!(header_of(b"a;b\r\n").as_deref(), Some("a;b"));
        for none in [&b"1,2\n"[..], b"", b"a,1\n", b"\xff\n"] {
            assert_eq!(header_of(none), None);
        }
        assert_eq!([&b""[..], b"a", b"a\n", b"a\nb"].map(lines_of), [0, 1, 1, 2]);
    }
}
