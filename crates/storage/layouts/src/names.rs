//! What names say: steps, epochs, temporaries, and folders that hold no checkpoints.

use trackway_formats::layout::PROJECT_FOLDER;
use trackway_formats::path_text::without_escapes;

/// Words before a number that say it is a step.
const STEP_WORDS: [&str; 12] = [
    "global_step", "globalstep", "steps", "step", "iteration", "iterations", "iters", "iter", "it",
    "updates", "update", "num_updates",
];
/// Words before a number that say it is an epoch.
const EPOCH_WORDS: [&str; 3] = ["epochs", "epoch", "ep"];
/// Words that people give to checkpoints of any tool.
const CHECKPOINT_WORDS: [&str; 13] = [
    "ckpt", "checkpoint", "checkpoints", "weights", "best", "last", "latest", "final", "snapshot", "state",
    "model", "params", "resume",
];
/// Folders of other tools, and of code: no checkpoints of the run are in them.
const OTHER_FOLDERS: [&str; 13] = [
    "wandb", "mlruns", ".git", ".hg", PROJECT_FOLDER, "__pycache__", "node_modules", "site-packages",
    ".venv", ".cache", ".neptune", ".ipynb_checkpoints", ".hydra",
];

/// What the names of images, sounds, films, tables and code end with. No layout reads such a file, alone or in a folder.
const OF_OTHERS: [&str; 33] = [
    "jpg", "jpeg", "png", "gif", "bmp", "webp", "tif", "tiff", "svg", "ppm", "dcm", "wav", "flac", "mp3",
    "ogg", "mp4", "avi", "mkv", "mov", "webm", "csv", "tsv", "jsonl", "ndjson", "parquet", "feather", "py",
    "pyc", "ipynb", "md", "html", "xml", "pdf",
];

/// The last part of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The folder of a path; empty for what is directly in the root.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// `folder/name`, or `name` in the root.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Letters of one kind together; those without a kind are left out.
pub(crate) fn grouped<K: PartialEq>(letters: impl Iterator<Item = (char, Option<K>)>) -> Vec<String> {
    let (mut groups, mut kind) = (Vec::<String>::new(), None);
    for (letter, now) in letters {
        match (now.is_some(), now == kind, groups.last_mut()) {
            (false, ..) => {}
            (true, true, Some(last)) => last.push(letter),
            _ => groups.push(letter.to_string()),
        }
        kind = now;
    }
    groups
}

/// The words and numbers of a name, in lower case: letters with `_` between them, and digits.
fn parts(name: &str) -> Vec<String> {
    let is_digit = |letter: char| match letter {
        '0'..='9' => Some(true),
        'a'..='z' | '_' => Some(false),
        _ => None,
    };
    grouped(without_escapes(name).to_lowercase().chars().map(|letter| (letter, is_digit(letter))))
}

/// The number after one of the words: `step=400`, `step-400`, `step_400`, `step400`.
fn number_after(name: &str, words: &[&str]) -> Option<u64> {
    let parts = parts(name);
    parts.windows(2).find_map(|pair| {
        let word = pair[0].trim_matches('_');
        let matches = words.iter().any(|wanted| {
            word == *wanted || word.strip_suffix(wanted).is_some_and(|before| before.ends_with('_'))
        });
        matches.then(|| pair[1].parse().ok()).flatten()
    })
}

/// The numbers in a name.
pub fn numbers(name: &str) -> impl Iterator<Item = u64> {
    parts(name).into_iter().filter_map(|part| part.parse().ok())
}

/// The step that a name says.
pub(crate) fn step(name: &str) -> Option<u64> {
    number_after(name, &STEP_WORDS)
}

/// The epoch that a name says.
pub(crate) fn epoch(name: &str) -> Option<u64> {
    number_after(name, &EPOCH_WORDS)
}

/// The number after this prefix, if nothing else follows: `checkpoint-20`.
pub(crate) fn number(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Whether the name says that the file is a checkpoint.
pub(crate) fn says_checkpoint(name: &str) -> bool {
    let words = parts(name);
    step(name).is_some()
        || epoch(name).is_some()
        || words.iter().flat_map(|word| word.split('_')).any(|word| CHECKPOINT_WORDS.contains(&word))
}

/// Why a name is that of something unfinished, if it is.
pub(crate) fn temporary(name: &str) -> Option<&'static str> {
    const ENDINGS: [&str; 7] = [".tmp", ".temp", ".part", ".partial", ".incomplete", ".crdownload", ".swp"];
    if name.starts_with(".tmp") {
        return Some("safetensors renames it when it is finished");
    }
    if name.contains(".orbax-checkpoint-tmp") {
        return Some("Orbax renames it when it is finished");
    }
    if number(name, "tmp-checkpoint-").is_some() {
        return Some("the Trainer renames it when it is finished");
    }
    if name == "checkpoint_tmp" {
        return Some("Flax renames it when it is finished");
    }
    let named = ENDINGS.iter().any(|ending| name.ends_with(ending))
        || name.contains(".tmp-")
        || name.contains(".tmp.");
    named.then_some("its name is that of a temporary file")
}

/// Whether the folder is one of another tool, or of code.
pub(crate) fn is_other_folder(name: &str) -> bool {
    OTHER_FOLDERS.contains(&name)
}

/// Whether no layout reads a file of this name: a folder of data may have thousands. A further ending, as of
/// `a.pkl.py`, may say what it is.
pub(crate) fn is_of_others(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    !stem.contains('.') && OF_OTHERS.iter().any(|one| extension.eq_ignore_ascii_case(one))
}
