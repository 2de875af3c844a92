//! The script that a command starts, as far as its words show it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CaptureInputs;
use super::named_files::blake3_of;

/// What the names of scripts end with.
const SCRIPT_EXTENSIONS: [&str; 2] = ["py", "sh"];

/// The script of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    pub path: PathBuf,
    /// BLAKE3 of its bytes; none if it cannot be read as a regular file or is too large.
    pub blake3: Option<String>,
}

pub(super) fn capture(inputs: &CaptureInputs<'_>) -> Option<Script> {
    let path = script_of(inputs.argv, inputs.working_directory)?;
    let blake3 = blake3_of(&path);
    Some(Script { path, blake3 })
}

/// The script of a command that starts in `folder`: the module after `-m` if that folder has it, else the first word
/// that names a Python or shell file, which need not exist. None: the command names none.
#[must_use]
pub fn script_of(command: &[String], folder: &Path) -> Option<PathBuf> {
    let module = command.iter().position(|word| word == "-m").and_then(|place| command.get(place + 1));
    let of_module = module.and_then(|module| {
        let path = folder.join(module.replace('.', "/"));
        [path.with_extension("py"), path.join("__main__.py")].into_iter().find(|path| path.is_file())
    });
    let is_script = |word: &&String| {
        let extension = Path::new(word.as_str()).extension().and_then(|extension| extension.to_str());
        let is_name = !word.starts_with('-') && !word.contains("://") && !word.contains(char::is_whitespace);
        is_name && extension.is_some_and(|extension| SCRIPT_EXTENSIONS.contains(&extension))
    };
    of_module.or_else(|| command.iter().find(is_script).map(|word| folder.join(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the script is found behind interpreters and launchers, and that other words are none.
    #[test]
    fn the_script_of_a_command() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("job")).unwrap();
        std::fs::write(folder.path().join("job/train.py"), "").unwrap();
        let script = |command: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            let path = script_of(&words, folder.path())?;
            Some(path.strip_prefix(folder.path()).unwrap().to_string_lossy().into_owned())
        };
        for (command, found) in [
            ("python -u train.py --config a.yaml", Some("train.py")),
            ("torchrun --nproc-per-node 2 job/train.py b.py", Some("job/train.py")),
            ("python -m torch.distributed.run plain.py", Some("plain.py")),
            ("python -m job.train --lr 1", Some("job/train.py")),
            ("bash go.sh", Some("go.sh")),
            ("python -m job.other", None),
            ("./train --data s3://bucket/x.py", None),
        ] {
            assert_eq!(script(command).as_deref(), found, "{command}");
        }
        let code = ["sh", "-c", "cd job && python train.py"].map(str::to_owned);
        assert_eq!(script_of(&code, folder.path()), None, "code is not a name");
        assert_eq!(script("./launch --script=job/train.py"), None);
    }
}
