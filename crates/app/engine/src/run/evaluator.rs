//! The code of the evaluator: the files that its command names.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use trackway_api::evaluations::CodeFile;
use trackway_formats::runfile::Plan;
use trackway_formats::sha256_hex;
use trackway_formats::shell::words;

use super::Job;
use crate::error::{AppError, ErrorKind};
use crate::file_digest::file_sha256;

/// What the built-in evaluator calls itself.
pub const BUILT_IN: &str = "trackway eval score";
/// Its version.
pub const BUILT_IN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// An evaluator and its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluator {
    /// The script's name, or the program's.
    pub name: String,
    /// SHA-256 over the names and hashes of its files; none where no file is known.
    pub digest: Option<String>,
    /// Its files, in the order of the command.
    pub files: Vec<CodeFile>,
}

/// What evaluates the checkpoints of a run, as its run file has it.
#[derive(Debug, Clone, Copy)]
pub enum EvaluatorCode<'c> {
    /// The command.
    Command {
        /// Its argument vector.
        argv: &'c [String],
        /// The same without secrets: a name is taken from what may be stored.
        stored: &'c [String],
    },
    /// The scorer of the built-in evaluator, whose name contains the version of the rest.
    Scorer(&'c str),
}

/// Looks at the files that an evaluator's command names, but for `data`, which it reads. If it names none, the program itself is
/// the code. `job` has its working directory.
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
    if files.is_empty() {
        let name = argv.first().map_or("", String::as_str);
        let program = job.search_path().iter().map(|entry| entry.join(name)).find(|path| path.is_file());
        files.extend(program.map(|path| code_file(name, &path)).transpose()?);
    }
    let lines: Vec<String> = files.iter().map(|file| format!("{}  {}\n", file.sha256, file.path)).collect();
    let digest = (!lines.is_empty()).then(|| sha256_hex(lines.concat().as_bytes()));
    Ok(Evaluator { name, digest, files })
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
        Err(error) => json!([{ "digest": null, "why": error.message }]),
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
        let message = format!("the evaluator's `{}` cannot be read: {error}", path.display());
        AppError::new(ErrorKind::Usage, message)
    })?;
    Ok(CodeFile { path: named.to_owned(), sha256, size_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

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
