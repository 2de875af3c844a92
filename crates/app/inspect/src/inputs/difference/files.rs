//! The script, and the files that the commands name or that their folders have.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use trackway_api::runs::explain::{Change, InputKind};
use trackway_core::Timestamp;
use trackway_core::text::{counted, first_quoted};
use trackway_engine::capture::{FolderFile, Git, both, is_of_output, is_python, is_same_code, may_be_listed};

use super::code::changed_in_git;
use super::{ContentSource, Difference, NAMED_MAX, have_folders, short, without_parents};
use crate::inputs::configuration::settings;
use crate::inputs::lines::line_difference;
use crate::inputs::{CapturedInputs, Inputs};

impl Difference {
    /// The script and the files that the commands name. Returns their paths.
    pub(super) fn files(
        &mut self,
        (before, then): (&Inputs, &CapturedInputs),
        (after, now): (&Inputs, &CapturedInputs),
        kept: &dyn ContentSource,
    ) -> BTreeSet<PathBuf> {
        let with_folder = have_folders(then, now);
        let unsure = self.not_captured([then, now], &after.working_directory, kept);
        let sides = Sides::of(before, after, with_folder);
        let (then_files, now_files) = (sides.versions(before, then), sides.versions(after, now));
        let mut not_compared: BTreeSet<PathBuf> = BTreeSet::new();
        let mut data_of_one: Vec<String> = Vec::new();
        let gits = (&then.capture.git, &now.capture.git);
        let in_git: OnceCell<Option<BTreeSet<String>>> = OnceCell::new();
        for (name, then_file, now_file) in both(&then_files, &now_files) {
            let versions = [then_file, now_file];
            let is_output =
                |file: &FileVersion| kept.times().is_output([&then.capture, &now.capture], &file.path);
            let is_unsure = |file: &FileVersion| file.of_folder.is_some() && unsure.contains(&file.path);
            let is_left_out = |file: &FileVersion| is_output(file) || is_unsure(file);
            if is_same(versions) || versions.into_iter().flatten().any(is_left_out) {
                continue;
            }
            match (then_file, now_file) {
                (Some(then), Some(now)) => self.file(name, then, now, kept),
                (then_file, now_file) => {
                    let Some(one) = then_file.or(now_file) else { continue };
                    let other = if then_file.is_some() { (after, now) } else { (before, then) };
                    let other_git = &other.1.capture.git;
                    if one.is_output(kept) || one.is_untracked_in(other_git) {
                        continue;
                    }
                    if sides.is_data(one, name) {
                        data_of_one.push(name.to_owned());
                        continue;
                    }
                    let in_git = || in_git.get_or_init(|| changed_in_git(gits, kept)).as_ref();
                    if !sides.is_known_absent(one, name, other) || one.may_be_tracked(gits.1, in_git) {
                        // Git may know more of it.
                        not_compared.insert(one.path.clone());
                        continue;
                    }
                    let shown = |file: Option<&FileVersion>| file.map(FileVersion::shown);
                    let change = Change::new(one.kind, name, shown(then_file), shown(now_file));
                    let is_new_of_folder = then_file.is_none() && one.of_folder.is_some();
                    self.add(change, is_new_of_folder && is_of_output(Path::new(name)));
                }
            }
        }
        self.data_of_one(&data_of_one);
        if then.capture.script.is_none() && now.capture.script.is_none() {
            self.not_known(
                InputKind::Script,
                "what the command starts: it names no script, and programs are not hashed",
            );
        }
        let data = [before, after].into_iter().flat_map(Inputs::data_paths);
        then_files
            .into_values()
            .chain(now_files.into_values())
            .map(|version| version.path)
            .filter(|path| !not_compared.contains(path))
            .chain(data)
            .collect()
    }

    /// Says of these names that only one of the attempts has them as data.
    fn data_of_one(&mut self, names: &[String]) {
        if names.is_empty() {
            return;
        }
        let named = first_quoted(names, NAMED_MAX);
        self.not_known(
            InputKind::File,
            format!("what changed in {named}: only one of the two has it as data"),
        );
    }

    /// Says what of the files beside the scripts is not known. Returns those of which that is said: nothing is known of
    /// their bytes at the launch.
    fn not_captured(
        &mut self,
        captured: [&CapturedInputs; 2],
        working_directory: &Path,
        kept: &dyn ContentSource,
    ) -> BTreeSet<PathBuf> {
        let incomplete: BTreeSet<&String> =
            captured.iter().filter_map(|one| one.capture.incomplete.as_ref()).collect();
        incomplete.into_iter().for_each(|what| self.not_known(InputKind::File, what.clone()));
        let folders = || captured.into_iter().filter_map(|one| one.capture.folder.as_ref());
        let unsure: BTreeSet<PathBuf> = folders().flat_map(|folder| &folder.changed).cloned().collect();
        // What attempts are known to write is none of what they read. Of any other file that is not known: the
        // attempt may have read it before it wrote it.
        let captures = captured.map(|one| &one.capture);
        let is_output = |path: &Path| kept.times().is_output(captures, path);
        let named: Vec<String> = unsure
            .iter()
            .filter(|path| !is_output(path))
            .map(|path| path.strip_prefix(working_directory).unwrap_or(path).to_string_lossy().into_owned())
            .collect();
        if !named.is_empty() {
            let named = first_quoted(&named, NAMED_MAX);
            let why = format!("what was in {named} when an attempt began: written or removed just then");
            self.not_known(InputKind::File, why);
        }
        unsure.iter().map(|path| without_parents(path)).collect()
    }

    fn file(&mut self, name: &str, then: &FileVersion, now: &FileVersion, kept: &dyn ContentSource) {
        let (Some(then_blake3), Some(now_blake3)) = (&then.blake3, &now.blake3) else {
            if then.is_untouched(now) {
                return;
            }
            match then.size_bytes == now.size_bytes || then.size_bytes.is_none() || now.size_bytes.is_none() {
                true => self.not_known(
                    now.kind,
                    format!("`{name}`: it was not hashed, since it is large or could not be read"),
                ),
                false => self.change(now.kind, name, Some(then.shown()), Some(now.shown())),
            }
            return;
        };
        if then_blake3 == now_blake3 {
            return;
        }
        if now.is_output(kept) && !is_python(name) && (now.of_folder.is_some() || then.is_output(kept)) {
            return self.outputs.push(name.to_owned());
        }
        if let Some((then, now)) = then.table().zip(now.table()) {
            return self.table(name, then, now);
        }
        let are_kept = then.of_folder.is_none() || now.of_folder.is_none();
        let code = |file: &FileVersion| file.of_folder.as_ref()?.code_blake3.clone();
        let mut is_of_comments = code(then).is_some() && code(then) == code(now);
        let mut lines = None;
        match (kept.file(then_blake3), kept.file(now_blake3)) {
            (Some(before), Some(after)) => {
                if let Some((before, after)) = settings(&then.path, &before).zip(settings(&now.path, &after))
                    && before != after
                {
                    return self.keys(now.kind, &format!("{name}: "), &before, &after);
                }
                lines = line_difference(&before, &after);
                is_of_comments = is_python(name) && is_same_code(&before, &after);
            }
            (before, after) if are_kept => {
                let whose = match (before, after) {
                    (None, None) => "its bytes are not kept",
                    (None, _) => "its bytes of then are not kept",
                    _ => "its bytes of now are not kept",
                };
                self.not_known(now.kind, format!("what changed in `{name}`: {whose}"));
            }
            _ => {}
        }
        let (before, after) = (Some(then.shown()), Some(now.shown()));
        self.changes.push(Change {
            lines: lines.as_ref().map(|lines| lines.count),
            shown_lines: lines.map(|lines| lines.shown).unwrap_or_default(),
            is_of_comments,
            ..Change::new(now.kind, name, before, after)
        });
    }

    /// A table that only its lines and its columns are known of.
    fn table(&mut self, name: &str, then: &FolderFile, now: &FolderFile) {
        let has_other_header = then.header != now.header;
        if has_other_header {
            let key = format!("{name}: header");
            self.change(InputKind::File, key, then.header.clone(), now.header.clone());
        }
        let (before, after) = match (then.lines, now.lines) {
            (Some(then), Some(now)) if then != now => (then.to_string(), counted(now, "line")),
            _ if has_other_header => return,
            _ => (table_shown(then), table_shown(now)),
        };
        self.change(InputKind::File, name, Some(before), Some(after));
    }
}

/// Whether the bytes are known and the same.
fn is_same([then, now]: [Option<&FileVersion>; 2]) -> bool {
    let blake3 = |file: Option<&FileVersion>| file.and_then(|file| file.blake3.clone());
    blake3(then).is_some() && blake3(then) == blake3(now)
}

/// A file at a launch.
struct FileVersion {
    kind: InputKind,
    path: PathBuf,
    blake3: Option<String>,
    size_bytes: Option<u64>,
    modified_at: Option<Timestamp>,
    /// What more is known of a file that only its folder has.
    of_folder: Option<FolderFile>,
}

impl FileVersion {
    fn table(&self) -> Option<&FolderFile> {
        self.of_folder.as_ref().filter(|file| file.lines.is_some())
    }

    /// Whether an attempt may have written it; of what the command names, one of the same script: it may be read too.
    fn is_output(&self, kept: &dyn ContentSource) -> bool {
        self.modified_at.is_some_and(|at| match self.of_folder {
            Some(_) => kept.times().has(at),
            None => kept.times().has_of_script(at),
        })
    }

    /// Whether it was not written since, as far as size and time show it.
    fn is_untouched(&self, now: &Self) -> bool {
        let of = |file: &FolderFile| (file.size_bytes, file.modified_at);
        self.of_folder.as_ref().zip(now.of_folder.as_ref()).is_some_and(|(then, now)| of(then) == of(now))
    }

    /// Whether a file of the folder, which git ignored, is one that git tracks in the other state. `in_git`: what it may
    /// track in one of the two only.
    fn may_be_tracked<'n>(&self, git: &Git, in_git: impl Fn() -> Option<&'n BTreeSet<String>>) -> bool {
        let root = git.root.as_deref().filter(|_| self.of_folder.is_some());
        let inner = root.and_then(|root| self.path.strip_prefix(root).ok());
        let has = |inner: &Path| in_git().is_none_or(|names| names.contains(&*inner.to_string_lossy()));
        inner.is_some_and(has)
    }

    /// Whether git compares the file there, and not its folder.
    fn is_untracked_in(&self, git: &Git) -> bool {
        let root = git.root.as_deref().map(Path::new);
        let inner = root.and_then(|root| self.path.strip_prefix(root).ok());
        let is_listed = |inner: &Path| git.untracked.iter().any(|file| Path::new(&file.path) == inner);
        self.of_folder.is_some() && inner.is_some_and(is_listed)
    }

    fn shown(&self) -> String {
        if let Some(table) = self.table() {
            return table_shown(table);
        }
        let size = || self.size_bytes.map(|bytes| format!("{bytes} bytes"));
        short(self.blake3.as_ref()).or_else(size).unwrap_or_else(|| "not hashed".into())
    }
}

/// `12 lines, 0123456789ab`.
fn table_shown(file: &FolderFile) -> String {
    let lines = file.lines.map(|lines| counted(lines, "line"));
    let hash = short(file.blake3.as_ref());
    lines.into_iter().chain(hash).collect::<Vec<_>>().join(", ")
}

/// How the files of two attempts find each other.
struct Sides {
    /// The folders that names start from.
    bases: [PathBuf; 2],
    /// The names and the paths of their run files, which are compared by their settings.
    run_files: BTreeSet<PathBuf>,
    /// The names and the paths of the files of their data.
    data: BTreeSet<PathBuf>,
    with_folder: bool,
    /// Whether both looked for the same names.
    is_same_command: bool,
}

impl Sides {
    fn of(before: &Inputs, after: &Inputs, with_folder: bool) -> Self {
        let own = [before, after].map(|inputs| without_parents(&inputs.working_directory));
        // Of a folder inside the other one the names are those of the files on disk, else those in copies of one folder.
        let bases = match &own {
            [then, now] if now.starts_with(then) => [then, then].map(PathBuf::clone),
            [then, now] if then.starts_with(now) => [now, now].map(PathBuf::clone),
            _ => own.clone(),
        };
        let command = |inputs: &Inputs| inputs.config.pointer("/run/command").cloned();
        let is_same_command = own == bases && command(before) == command(after);
        let mut run_files = BTreeSet::new();
        let mut data = BTreeSet::new();
        for (inputs, base) in [(before, &bases[0]), (after, &bases[1])] {
            let path_and_name = |path: PathBuf| {
                let path = without_parents(&path);
                let name = path.strip_prefix(base).ok().map(Path::to_owned);
                [Some(path), name].into_iter().flatten()
            };
            run_files.extend(inputs.run_file.clone().into_iter().flat_map(path_and_name));
            data.extend(inputs.data_paths().flat_map(path_and_name));
        }
        Self { run_files, data, bases, with_folder, is_same_command }
    }

    fn base_of(&self, inputs: &Inputs) -> &Path {
        let own = without_parents(&inputs.working_directory);
        self.bases.iter().find(|base| own.starts_with(base)).map_or(Path::new(""), PathBuf::as_path)
    }

    /// Whether a file that only one of the two has beside its data is data of the other one.
    fn is_data(&self, one: &FileVersion, name: &str) -> bool {
        self.data.contains(&one.path) || self.data.contains(Path::new(name))
    }

    /// Whether a file that only one of the two has is known to have been absent at the launch of the other: its command
    /// named the same files, or its folders were looked at and git compares no such file.
    fn is_known_absent(
        &self,
        one: &FileVersion,
        name: &str,
        (inputs, captured): (&Inputs, &CapturedInputs),
    ) -> bool {
        if one.of_folder.is_none() && self.is_same_command {
            return true;
        }
        let Some(folder) = captured.capture.folder.as_ref().filter(|_| self.with_folder) else {
            return false;
        };
        let path = without_parents(&self.base_of(inputs).join(name));
        let has = |folder: &PathBuf| path.starts_with(folder);
        let deepest = |folders: &[PathBuf]| {
            folders.iter().filter(|folder| has(folder)).max_by_key(|it| it.components().count()).cloned()
        };
        let script = captured.capture.script.as_ref().and_then(|script| script.path.parent());
        let roots = [Some(inputs.working_directory.as_path()), script].into_iter().flatten();
        let roots: Vec<PathBuf> = roots.map(without_parents).collect();
        let left_out: Vec<PathBuf> = folder.left_out.iter().map(|path| without_parents(path)).collect();
        let Some(root) = deepest(&roots) else { return false };
        if deepest(&left_out).is_some_and(|left_out| left_out.starts_with(&root)) {
            return false;
        }
        let is_of_git = captured.capture.git.root.as_deref().is_some_and(|git| path.starts_with(git));
        let is_looked_for = || !is_of_git && path.strip_prefix(&root).is_ok_and(may_be_listed);
        one.of_folder.is_some() || is_looked_for()
    }

    /// The script, the files that a command names and, `with_folder`, those of its folders, without those of its data
    /// and the run files, by their paths from the base.
    fn versions(&self, inputs: &Inputs, captured: &CapturedInputs) -> BTreeMap<String, FileVersion> {
        let version = |kind, path: &Path, blake3: &Option<String>| FileVersion {
            kind,
            path: path.to_owned(),
            blake3: blake3.clone(),
            size_bytes: None,
            modified_at: None,
            of_folder: None,
        };
        let script = captured.capture.script.iter();
        let script = script.map(|script| version(InputKind::Script, &script.path, &script.blake3));
        let named = captured.capture.named_files.iter().map(|file| FileVersion {
            size_bytes: Some(file.size_bytes),
            modified_at: file.modified_at,
            ..version(InputKind::File, &file.path, &file.blake3)
        });
        let folder = captured.capture.folder.iter().filter(|_| self.with_folder);
        let of_folder = folder.flat_map(|folder| &folder.files).map(|file| FileVersion {
            size_bytes: Some(file.size_bytes),
            modified_at: file.modified_at,
            of_folder: Some(file.clone()),
            ..version(InputKind::File, &file.path, &file.blake3)
        });
        let data: BTreeSet<PathBuf> = inputs.data_paths().map(|path| without_parents(&path)).collect();
        let base = self.base_of(inputs);
        let mut found = BTreeMap::new();
        for mut version in script.chain(named).chain(of_folder) {
            let given = std::mem::take(&mut version.path);
            // `./t.py` is `t.py`, and so is `../w/t.py` in a folder `w`.
            version.path = without_parents(&given);
            let name = version.path.strip_prefix(base).ok();
            let name = name.or_else(|| given.strip_prefix(&inputs.working_directory).ok()).unwrap_or(&given);
            let is_run_file = self.run_files.contains(&version.path) || self.run_files.contains(name);
            if data.contains(&version.path) || is_run_file {
                continue;
            }
            let name: PathBuf = name.components().filter(|part| *part != Component::CurDir).collect();
            found.entry(name.to_string_lossy().into_owned()).or_insert(version);
        }
        found
    }
}
