//! Which interpreter, if any, an argument vector will start: pure but for looking at files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::capture::CaptureInputs;

/// What decides the packages that will run.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::capture) enum Runtime {
    /// This Python.
    Python(PathBuf),
    /// A program built by Cargo, with the lock file nearest to it.
    Cargo(PathBuf),
    /// A lock file that pins the packages, when the interpreter itself is unknown.
    Lock(PathBuf),
    /// Neither, and why.
    Unknown(String),
}

/// How often a program may name another one (`env python`, a script with a shebang) before we give up.
const MAX_HOPS: usize = 8;

/// Python programs that start a script in another environment than their own: their packages are not the script's.
const CHOOSERS: &[&str] =
    &["conda", "hatch", "mamba", "micromamba", "nox", "pdm", "pipenv", "pixi", "poetry", "rye", "tox"];

/// Works out what will run.
pub(in crate::capture) fn runtime(inputs: &CaptureInputs<'_>) -> Runtime {
    let mut argv: Vec<String> = inputs.argv.to_vec();
    for _ in 0..MAX_HOPS {
        let Some(program) = argv.first().cloned() else { break };
        let name = base_name(&program).to_owned();
        if name == "env" {
            argv = after_env(&argv[1..]);
            continue;
        }
        if name == "uv" || name == "uvx" {
            return uv(inputs);
        }
        if name == "cargo" {
            return lock_above(inputs.working_directory, "Cargo.lock").map_or_else(
                || Runtime::Unknown("no Cargo.lock above the working directory".into()),
                Runtime::Cargo,
            );
        }
        if CHOOSERS.contains(&name.as_str()) {
            return Runtime::Unknown(format!(
                "`{name}` chooses the interpreter itself; name that interpreter instead"
            ));
        }
        let Some(path) = find_program(&program, inputs) else {
            return Runtime::Unknown(format!("`{program}` was not found"));
        };
        if is_python(&name) {
            return Runtime::Python(path);
        }
        match shebang(&path) {
            Some(interpreter) => argv = interpreter,
            None => return built_by_cargo(&path, &name),
        }
    }
    Runtime::Unknown("the program could not be followed to an interpreter".into())
}

/// `python`, `python3`, `python3.11`, `pypy3` …
fn is_python(name: &str) -> bool {
    ["python", "pypy"].into_iter().any(|stem| {
        name.strip_prefix(stem)
            .is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    })
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The command of `env [-i] [NAME=VALUE]… COMMAND …`.
fn after_env(arguments: &[String]) -> Vec<String> {
    let is_command = |argument: &&String| !argument.starts_with('-') && !argument.contains('=');
    let start = arguments.iter().position(|argument| is_command(&argument)).unwrap_or(arguments.len());
    arguments[start..].to_vec()
}

/// `uv run` uses the project's `.venv`, else the active environment; starting uv could change either.
fn uv(inputs: &CaptureInputs<'_>) -> Runtime {
    let active = inputs.environment.get("VIRTUAL_ENV").map(PathBuf::from);
    let project = inputs.working_directory.ancestors().map(|folder| folder.join(".venv"));
    let python = project.chain(active).map(|folder| folder.join("bin/python")).find(|python| python.exists());
    match (python, lock_above(inputs.working_directory, "uv.lock")) {
        (Some(python), _) => Runtime::Python(python),
        (None, Some(lock)) => Runtime::Lock(lock),
        (None, None) => Runtime::Unknown("uv has neither a `.venv` nor a `uv.lock` here".into()),
    }
}

/// A binary is Cargo's when it is in a `target` folder or beside a lock file above it.
fn built_by_cargo(path: &Path, name: &str) -> Runtime {
    let in_target = path.components().any(|part| part.as_os_str() == "target");
    match lock_above(path.parent().unwrap_or(path), "Cargo.lock") {
        Some(lock) if in_target => Runtime::Cargo(lock),
        _ => Runtime::Unknown(format!("`{name}` is neither Python nor built by Cargo")),
    }
}

fn lock_above(folder: &Path, lock: &str) -> Option<PathBuf> {
    folder.ancestors().map(|ancestor| ancestor.join(lock)).find(|path| path.is_file())
}

/// The program's file: as given if it holds a slash, else from the script's `PATH`.
fn find_program(program: &str, inputs: &CaptureInputs<'_>) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(inputs.working_directory.join(program)).filter(|path| path.is_file());
    }
    let path = inputs.environment.get("PATH")?;
    let folders = path.split(':').map(|folder| inputs.working_directory.join(folder));
    folders.map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// The longest first line that the kernel reads (`BINPRM_BUF_SIZE`), with room for pip's second line.
const SHEBANG_BYTES: u64 = 1024;

/// The interpreter that a script names, as an argument vector. pip writes `#!/bin/sh` and an `exec` of the real
/// interpreter in the second line when the path is too long for the kernel.
fn shebang(path: &Path) -> Option<Vec<String>> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(SHEBANG_BYTES).read_to_end(&mut head).ok()?;
    let text = String::from_utf8_lossy(&head);
    let mut lines = text.lines();
    let first = lines.next()?.strip_prefix("#!")?.trim().to_owned();
    if let Some(exec) = lines.next().and_then(|line| line.strip_prefix("'''exec' ")) {
        return exec.split('"').nth(1).map(|interpreter| vec![interpreter.to_owned()]);
    }
    Some(first.split_whitespace().map(str::to_owned).collect())
}
