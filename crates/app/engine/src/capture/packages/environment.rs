//! The packages that will run, as one sorted text and its hash.

use std::borrow::Cow;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use trackway_formats::sha256_hex;
use trackway_redact::Redactor;

use super::interpreter::{Runtime, runtime};
use crate::capture::CaptureInputs;
use crate::capture::command::output;

/// How long the interpreter may take to list its packages.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest list that is read.
const MAX_LIST_BYTES: u64 = 16 << 20;
/// The largest lock file that is hashed.
const MAX_LOCK_BYTES: u64 = 64 << 20;

/// Lists `name==version`, one per line, after a line with the version of Python.
///
/// Installed projects are found by the names of their `.dist-info` and `.egg-info` folders on the import path
/// (packaging.python.org, "Recording installed projects"); `importlib.metadata` reads the few whose folder name lacks
/// the version. That is some twenty times faster than reading every METADATA file. `-I` keeps the script's folder from
/// shadowing the standard library; what the script will see besides (PYTHONPATH, the user's site) is added by hand. The
/// first entry of the path wins, as it does for imports.
const LIST_PACKAGES: &str = r#"
import os, re, sys
path = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p] + sys.path
if sys.prefix == sys.base_prefix and not os.environ.get("PYTHONNOUSERSITE"):
    try:
        import site
        path.append(site.getusersitepackages())
    except Exception:
        pass
found = {}
for folder in path:
    try:
        names = os.listdir(folder)
    except OSError:
        continue
    for entry in names:
        if not entry.endswith((".dist-info", ".egg-info")):
            continue
        stem = entry.rsplit(".", 1)[0]
        name, _, version = stem.partition("-")
        version = re.sub(r"-py\d+(\.\d+)?.*$", "", version)
        if not version:
            try:
                from importlib.metadata import Distribution
                from pathlib import Path
                metadata = Distribution.at(Path(folder) / entry).metadata
                name, version = metadata["Name"], metadata["Version"]
            except Exception:
                version = "unknown"
        found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), version)
print(sys.version.split()[0])
for name in sorted(found):
    print(f"{name}=={found[name]}")
"#;

/// What kind of list the lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// The packages of a Python interpreter.
    PythonPackages,
    CargoLock,
    UvLock,
}

/// The packages that will run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EnvironmentLock {
    /// What kind of list it is.
    pub kind: Option<LockKind>,
    /// SHA-256 of Python's version and the list, or of the lock file's bytes; secrets are taken out first.
    pub sha256: Option<String>,
    /// How many packages; known for Python and Cargo.
    pub package_count: Option<u64>,
    pub python_version: Option<String>,
    /// The interpreter or the lock file.
    pub path: Option<String>,
    /// `name==version` per line, sorted by name; absent for lock files, which git keeps.
    pub text: Option<String>,
    /// Why nothing is known.
    pub why_missing: Option<String>,
    /// The bytes that have the hash.
    #[serde(skip)]
    pub kept: Option<KeptPackages>,
}

/// A list of packages or a lock file, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPackages {
    pub bytes: Vec<u8>,
    /// Whether there were secrets in it.
    pub has_secrets: bool,
}

impl KeptPackages {
    fn of(redactor: &Redactor, bytes: Vec<u8>) -> Self {
        match redactor.bytes(&bytes) {
            Cow::Owned(clean) => Self { bytes: clean, has_secrets: true },
            Cow::Borrowed(_) => Self { bytes, has_secrets: false },
        }
    }
}

impl EnvironmentLock {
    pub(crate) fn missing(why: impl Into<String>) -> Self {
        Self { why_missing: Some(why.into()), ..Self::default() }
    }
}

pub(in crate::capture) fn capture(inputs: &CaptureInputs<'_>) -> EnvironmentLock {
    let captured = match runtime(inputs) {
        Runtime::Python(python) => python_packages(&python, inputs),
        Runtime::Cargo(lock) => lock_file(&lock, LockKind::CargoLock, inputs),
        Runtime::Lock(lock) => lock_file(&lock, LockKind::UvLock, inputs),
        Runtime::Unknown(why) => Err(why),
    };
    captured.unwrap_or_else(EnvironmentLock::missing)
}

fn python_packages(python: &Path, inputs: &CaptureInputs<'_>) -> Result<EnvironmentLock, String> {
    let mut command = Command::new(python);
    command.args(["-I", "-c", LIST_PACKAGES]).current_dir(inputs.working_directory);
    command.env_clear().envs(inputs.environment).env("PYTHONIOENCODING", "utf-8");
    let listed = output(command, LIMIT, MAX_LIST_BYTES)?;
    let kept = KeptPackages::of(inputs.redactor, listed);
    let listed = String::from_utf8_lossy(&kept.bytes).into_owned();
    let (version, packages) = listed.split_once('\n').ok_or("the interpreter listed nothing")?;
    Ok(EnvironmentLock {
        kind: Some(LockKind::PythonPackages),
        sha256: Some(sha256_hex(&kept.bytes)),
        package_count: Some(packages.lines().count() as u64),
        python_version: Some(version.to_owned()),
        path: Some(python.to_string_lossy().into_owned()),
        text: Some(packages.to_owned()),
        why_missing: None,
        kept: Some(kept),
    })
}

fn lock_file(lock: &Path, kind: LockKind, inputs: &CaptureInputs<'_>) -> Result<EnvironmentLock, String> {
    let unreadable = |error: std::io::Error| format!("`{}` cannot be read: {error}", lock.display());
    if lock.metadata().map_err(unreadable)?.len() > MAX_LOCK_BYTES {
        return Err(format!("`{}` is larger than {MAX_LOCK_BYTES} bytes", lock.display()));
    }
    let bytes = std::fs::read(lock).map_err(unreadable)?;
    Ok(lock_of(bytes, kind, lock.to_string_lossy().into_owned(), inputs.redactor))
}

/// What the bytes of a lock file say.
fn lock_of(bytes: Vec<u8>, kind: LockKind, path: String, redactor: &Redactor) -> EnvironmentLock {
    let kept = KeptPackages::of(redactor, bytes);
    let packages =
        String::from_utf8_lossy(&kept.bytes).lines().filter(|line| line.trim() == "[[package]]").count();
    EnvironmentLock {
        kind: Some(kind),
        sha256: Some(sha256_hex(&kept.bytes)),
        package_count: Some(packages as u64),
        path: Some(path),
        kept: Some(kept),
        ..EnvironmentLock::default()
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng as _, SplitMix64};

    use super::*;

    /// Damaged lock files by default; `TRACKWAY_FUZZ_MUTANTS` sets another number.
    const USUAL_MUTANTS: u64 = 1_000;

    const GOOD: &str = "version = 4\n\n[[package]]\nname = \"adler2\"\nversion = \"2.0.1\"\nsource = \
        \"registry+https://user:pw-of-mirror@crates.example.org/index\"\n\n[[package]]\nname = \"torch\"\nversion = \"2.5\"\n";

    /// Proves that a damaged lock file is kept without a panic: its hash is that of the bytes that are kept, and it has no
    /// more packages than lines.
    #[test]
    fn mutants_of_lock_files_are_kept() {
        let given = std::env::var("TRACKWAY_FUZZ_MUTANTS").ok().and_then(|count| count.parse().ok());
        let mutants: u64 = given.unwrap_or(USUAL_MUTANTS);
        let redactor = Redactor::from_environment(std::iter::empty::<(String, String)>());
        for seed in 0..mutants {
            let mut random = SplitMix64::new(seed);
            let mut bytes = GOOD.as_bytes().to_vec();
            for _ in 0..=random.next_u64() % 3 {
                let at = random.next_u64() as usize % bytes.len();
                match random.next_u64() % 3 {
                    0 => bytes[at] = random.next_u64() as u8,
                    1 => bytes.extend_from_within(at..),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            let lock = lock_of(bytes, LockKind::CargoLock, "Cargo.lock".into(), &redactor);
            let kept = lock.kept.unwrap();
            assert_eq!(lock.sha256, Some(sha256_hex(&kept.bytes)), "mutant {seed}");
            assert!(lock.package_count <= Some(lines), "mutant {seed}");
        }
    }
}
