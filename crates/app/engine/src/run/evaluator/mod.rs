//! The code of the evaluator: the files that its command names, the local modules that these import, and those that were seen
//! opened while it ran.

mod local_imports;
mod python_text;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value as Json, json};
use trackway_api::models::evaluations::CodeFile;
use trackway_formats::EventKind;
use trackway_formats::runfile::Plan;
use trackway_formats::sha256_hex;
use trackway_formats::shell::words;
use trackway_ledger::EventRow;

use super::Job;
use crate::capture::is_python;
use crate::error::{AppError, ErrorKind};
use crate::file_digest::file_sha256;
use local_imports::local_files;
use python_text::python_path;

/// What the built-in evaluator calls itself.
pub const BUILT_IN: &str = "trackway eval score";
/// Its version.
pub const BUILT_IN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The variable that names folders of Python's modules.
const PYTHON_PATH: &str = "PYTHONPATH";

/// A longer shell script is data.
const SHELL_BYTES_MAX: u64 = 1 << 20;

/// An evaluator and its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluator {
    /// The script's name, or the program's.
    pub name: String,
    /// SHA-256 over the names and hashes of its files; none where no file is known.
    pub digest: Option<String>,
    /// Its files: in the order of the command, then what they import, by path, then the settings that these name.
    pub files: Vec<CodeFile>,
}

/// What evaluates the checkpoints of a run, as its run file has it.
#[derive(Debug, Clone, Copy)]
pub enum EvaluatorCode<'c> {
    Command {
        /// Its argument vector.
        argv: &'c [String],
        /// The same without secrets: a name is taken from what may be stored.
        stored: &'c [String],
    },
    /// The scorer of the built-in evaluator, whose name contains the version of the rest.
    Scorer(&'c str),
}

/// Looks at the files that an evaluator's command names, but for `data`, which it reads, and at the local modules that its scripts
/// import, with the settings that these name. If it names none, the program itself is the code. `job` has its working directory.
pub fn evaluator(job: &Job, code: EvaluatorCode<'_>, data: &[PathBuf]) -> Result<Evaluator, AppError> {
    let (name, argv) = match code {
        EvaluatorCode::Scorer(scorer) => (format!("{BUILT_IN} {BUILT_IN_VERSION}"), words(scorer)),
        EvaluatorCode::Command { argv, stored } => (Plan::for_command(stored).run.name, argv.to_vec()),
    };
    let folder = job.working_directory();
    let mut files: Vec<CodeFile> = Vec::new();
    for named in named_files(&argv) {
        let path = folder.join(&named);
        let known = files.iter().any(|file| file.path == named);
        if !known && path.is_file() && !is_data(&path, data) {
            files.push(code_file(&named, &path)?);
        }
    }
    let lines = shell_lines(&argv, &files, &folder);
    let named = files.iter().map(|file| file.path.as_str()).chain(shell_words(&lines));
    let scripts = named.filter(|name| is_python(name)).map(|name| folder.join(name));
    let scripts: Vec<PathBuf> = scripts.filter(|path| path.is_file()).collect();
    let local = local_files(&scripts, &folder, &searched(job, &argv, &lines, &folder));
    for path in local.modules.into_iter().chain(local.settings) {
        let named = shown(&path, &folder);
        if !is_data(&path, data) && files.iter().all(|file| file.path != named) {
            files.push(code_file(&named, &path)?);
        }
    }
    if files.is_empty() {
        let name = argv.first().map_or("", String::as_str);
        let program = job.search_path().iter().map(|entry| entry.join(name)).find(|path| path.is_file());
        files.extend(program.map(|path| code_file(name, &path)).transpose()?);
    }
    Ok(Evaluator { name, digest: digest_of(&files), files })
}

/// What a shell is given to run: lines of the command (`sh -c LINE`), and its scripts.
fn shell_lines(argv: &[String], files: &[CodeFile], folder: &Path) -> Vec<String> {
    let is_script = |file: &&CodeFile| file.path.ends_with(".sh") && file.size_bytes <= SHELL_BYTES_MAX;
    // What is not text has no words.
    let text = |file: &CodeFile| std::fs::read_to_string(folder.join(&file.path)).ok();
    let lines = argv.iter().filter(|word| word.contains(' ')).cloned();
    lines.chain(files.iter().filter(is_script).filter_map(text)).collect()
}

fn shell_words(lines: &[String]) -> impl Iterator<Item = &str> {
    let words = lines.iter().flat_map(|line| line.split_whitespace());
    words.map(|word| word.trim_matches(['"', '\'', ';', '(', ')']))
}

/// The folders of its `PYTHONPATH`: of its command (`env PYTHONPATH=lib python …`), of what that gives a shell, and of its environment.
fn searched(job: &Job, argv: &[String], lines: &[String], folder: &Path) -> Vec<PathBuf> {
    let words = argv.iter().map(String::as_str).chain(shell_words(lines));
    let given = words.filter_map(|word| word.strip_prefix(PYTHON_PATH)?.strip_prefix('='));
    let mut entries: Vec<PathBuf> = Vec::new();
    for list in given {
        entries.extend(std::env::split_paths(list.trim_matches(['"', '\''])));
    }
    entries.extend(job.folders_in(PYTHON_PATH));
    python_path(entries.into_iter(), folder)
}

/// SHA-256 over the names and hashes of files; none of no files.
#[must_use]
pub fn digest_of(files: &[CodeFile]) -> Option<String> {
    let lines: Vec<String> = files.iter().map(|file| format!("{}  {}\n", file.sha256, file.path)).collect();
    (!lines.is_empty()).then(|| sha256_hex(lines.concat().as_bytes()))
}

/// The source files that were opened while an evaluator ran, by its events: what the texts of its scripts do not show is seen there.
#[must_use]
pub fn opened_code(events: &[EventRow]) -> Vec<CodeFile> {
    let mut opened: BTreeMap<&str, CodeFile> = BTreeMap::new();
    for event in events.iter().filter(|event| EventKind::CodeOpened.is(&event.kind)) {
        let (Some(path), Some(sha256)) = (event.field("path"), event.field("sha256")) else { continue };
        let size_bytes = event.field("size_bytes").and_then(|size| size.parse().ok()).unwrap_or(0);
        let file = CodeFile { path: path.to_owned(), sha256: sha256.to_owned(), size_bytes };
        // What was read first is what ran.
        opened.entry(path).or_insert(file);
    }
    opened.into_values().collect()
}

/// The known files of an evaluator with those that were seen opened: what was opened is what ran. Also the paths of known files that
/// had other bytes then.
#[must_use]
pub fn with_opened(known: Vec<CodeFile>, opened: Vec<CodeFile>) -> (Vec<CodeFile>, Vec<String>) {
    let (mut files, mut changed) = (known, Vec::new());
    for file in opened {
        match files.iter_mut().find(|known| is_same_path(&known.path, &file.path)) {
            Some(known) if known.sha256 == file.sha256 => {}
            Some(known) => {
                changed.push(known.path.clone());
                *known = CodeFile { path: known.path.clone(), ..file };
            }
            None => files.push(file),
        }
    }
    (files, changed)
}

/// Whether two names of a file are one: `./eval.py` is `eval.py`, and so is `/job/eval.py`, of which only the folder is not known.
fn is_same_path(one: &str, other: &str) -> bool {
    let plain = |path: &str| -> PathBuf {
        let is_step = |part: &Component<'_>| matches!(part, Component::CurDir | Component::ParentDir);
        Path::new(path).components().filter(|part| !is_step(part)).collect()
    };
    let (one, other) = (plain(one), plain(other));
    match (one.is_absolute(), other.is_absolute()) {
        (true, false) => one.ends_with(&other),
        (false, true) => other.ends_with(&one),
        _ => one == other,
    }
}

/// A path below the folder without it.
fn shown(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}

/// Names and digests of what will evaluate the checkpoints of `job`, as they are now; none where its run file names nothing. A file
/// that cannot be read has a name and no digest: the evaluation itself will report it.
pub(crate) fn evaluator_versions(job: &Job) -> Option<Json> {
    let section = job.plan.evaluate.as_ref()?;
    let stored = job.stored_plan.evaluate.as_ref().map_or(&[][..], |stored| &stored.command);
    let code = match &section.scorer {
        Some(scorer) => EvaluatorCode::Scorer(scorer),
        None if section.command.is_empty() => return None,
        None => EvaluatorCode::Command { argv: &section.command, stored },
    };
    let sets = job.plan.data.values().map(|set| &set.path);
    let named = sets.chain(&section.task_set).chain(&section.rows);
    let data: Vec<PathBuf> = named.map(|path| job.base.join(path)).collect();
    Some(match evaluator(job, code, &data) {
        Ok(found) => json!([{ "name": found.name, "digest": found.digest }]),
        Err(error) => json!([{ "digest": null, "why": error.to_string() }]),
    })
}

/// What may be a file: arguments, what follows a `=` in them, and the module after `-m`.
fn named_files(argv: &[String]) -> Vec<String> {
    let mut named = Vec::new();
    for (place, argument) in argv.iter().enumerate() {
        if place == 0 && !argument.contains('/') {
            continue;
        }
        if place > 0 && argv[place - 1] == "-m" {
            let module = argument.replace('.', "/");
            named.extend([
                format!("{module}.py"),
                format!("{module}/__main__.py"),
                format!("{module}/__init__.py"),
            ]);
        }
        named.push(argument.clone());
        named.extend(argument.split_once('=').map(|(_, value)| value.to_owned()));
    }
    named.retain(|name| !name.is_empty());
    named
}

fn is_data(path: &Path, data: &[PathBuf]) -> bool {
    let same = |one: &Path| one.canonicalize().unwrap_or_else(|_| one.to_owned());
    let path = same(path);
    data.iter().any(|data| path.starts_with(same(data)))
}

fn code_file(named: &str, path: &Path) -> Result<CodeFile, AppError> {
    let (sha256, size_bytes) = file_sha256(path).map_err(|error| {
        let message = format!("the evaluator's `{}` cannot be read", path.display());
        AppError::new(ErrorKind::Usage, message).because(error)
    })?;
    Ok(CodeFile { path: named.to_owned(), sha256, size_bytes })
}

#[cfg(test)]
mod tests {
    use trackway_core::{RunId, SequentialIds, Timestamp};

    use super::*;

    fn file(path: &str, sha256: &str) -> CodeFile {
        CodeFile { path: path.into(), sha256: sha256.into(), size_bytes: 3 }
    }

    /// Proves that what was opened belongs to the code, once, with the bytes that were read first, and that other events do not.
    #[test]
    fn what_was_opened_is_code() {
        let event = |kind: &str, path: &str, sha256: &str| EventRow {
            event_id: String::new(),
            run_id: RunId::new(&SequentialIds::default()),
            attempt_id: None,
            at: Timestamp::from_micros(0),
            kind: kind.into(),
            step: None,
            message: String::new(),
            fields_json: Some(json!({ "path": path, "sha256": sha256, "size_bytes": "3" })),
            source: "launcher".into(),
        };
        let events = [
            event("code_opened", "plug.py", "aa"),
            event("code_opened", "plug.py", "bb"),
            event("checkpoint_opened", "ck.pt", "cc"),
            event("code_opened", "eval.py", "dd"),
        ];
        let opened = opened_code(&events);
        assert_eq!(opened, [file("eval.py", "dd"), file("plug.py", "aa")]);
        let (files, changed) = with_opened(vec![file("./eval.py", "ee")], opened.clone());
        assert_eq!(
            (files.as_slice(), changed),
            ([file("./eval.py", "dd"), file("plug.py", "aa")].as_slice(), vec!["./eval.py".into()])
        );
        let (same, changed) = with_opened(files.clone(), opened);
        assert_eq!((&same, changed.len()), (&files, 0));
        assert_ne!(digest_of(&files), digest_of(&files[..1]));
        let same = [("/job/eval.py", "eval.py"), ("../lib/a.py", "/x/lib/a.py"), ("eval.py", "eval.py")];
        assert!(same.iter().all(|(one, other)| is_same_path(one, other)));
        assert!(!is_same_path("job/eval.py", "eval.py") && !is_same_path("/a/eval.py", "/b/eval.py"));
    }

    /// Proves that the lines of a shell are its scripts and the arguments with blanks, and that their words are without quotes.
    #[test]
    fn what_a_shell_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("eval.sh");
        std::fs::write(&script, "PYTHONPATH='../lib' python3 \"judge.py\";\n").unwrap();
        let argv = ["sh", "-c", "python a.py"].map(str::to_owned);
        let lines = shell_lines(&argv, &[file("eval.sh", "aa"), file("gone.sh", "aa")], folder.path());
        let words: Vec<&str> = shell_words(&lines).collect();
        assert_eq!(words, ["python", "a.py", "PYTHONPATH='../lib", "python3", "judge.py"]);
    }

    /// Proves that arguments, values of options and modules may be files, and that a program from the PATH is none.
    #[test]
    fn what_a_command_names() {
        let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            named_files(&argv(&["python", "eval.py", "--config=a.toml"])),
            ["eval.py", "--config=a.toml", "a.toml"]
        );
        assert_eq!(named_files(&argv(&["./judge", ""])), ["./judge"]);
        let module = named_files(&argv(&["python", "-m", "eval.main"]));
        assert!(module.contains(&"eval/main.py".to_owned()), "{module:?}");
    }
}
