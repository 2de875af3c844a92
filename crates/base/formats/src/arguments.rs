//! The parameters of a run that are known before it begins: those given to Trackway (`--param`, `[run] parameters`), and those
//! that a command gives its script: `python train.py --lr 0.1 --amp model.depth=3`.
//!
//! Only the words behind the script count: options of interpreters and launchers (`torchrun --nproc-per-node 2`) are no
//! parameters of a training. Nothing is looked up on a disk.

use std::collections::BTreeMap;
use std::path::Path;

/// So many parameters of a command are taken at most, and so many parameters and tags may be given.
pub const PARAMETERS_MAX: usize = 256;
/// The origin of a parameter of the script's command line.
pub const ORIGIN_COMMAND_LINE: &str = "command line";
/// The origin of a parameter that was given to Trackway.
pub const ORIGIN_GIVEN: &str = "given";
/// A given value is not longer.
const GIVEN_BYTES_MAX: usize = 4096;
/// A longer name is none.
const NAME_BYTES_MAX: usize = 64;
/// A longer value is cut.
const VALUE_BYTES_MAX: usize = 256;
/// The value of an option that has none.
const TRUE: &str = "true";
/// Programs that start a script which their arguments name.
const STARTERS: [&str; 57] = [
    "Rscript", "accelerate", "apptainer", "bash", "chrt", "composer", "conda", "coverage", "deepspeed",
    "dumb-init", "env", "firejail", "gdb", "gosu", "horovodrun", "ionice", "ipython", "julia", "kernprof",
    "memray", "micromamba", "mpiexec", "mpirun", "ncu", "nice", "node", "nohup", "nsys", "numactl", "perf",
    "pipenv", "poetry", "prlimit", "py-spy", "pypy", "pypy3", "rr", "scalene", "setsid", "sh", "singularity",
    "srun", "stdbuf", "strace", "sudo", "systemd-run", "taskset", "time", "timeout", "tini", "torchrun",
    "unbuffer", "uv", "valgrind", "viztracer", "xvfb-run", "zsh",
];
/// What the names of scripts end with.
const SCRIPTS: [&str; 6] = ["py", "sh", "R", "jl", "ipynb", "js"];
/// Modules that start another script or module.
const STARTING_MODULES: [&str; 6] = ["torch.", "accelerate.", "deepspeed", "coverage", "cProfile", "debugpy"];
/// Names of the number of steps that a training is to make.
pub const TOTAL_STEPS: [&str; 8] = [
    "steps", "total_steps", "max_steps", "max_iters", "train_iters", "num_iterations", "num_train_steps",
    "max_train_steps",
];

/// A parameter that is known before its script says anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    pub value: String,
    /// [`ORIGIN_COMMAND_LINE`] or [`ORIGIN_GIVEN`].
    pub origin: &'static str,
}

/// The parameters of a command and those that were given beside it, which take precedence.
#[must_use]
pub fn declared(command: &[String], given: &BTreeMap<String, String>) -> Vec<Declared> {
    let of_command = parameters_of(command).into_iter().filter(|(name, _)| !given.contains_key(name));
    let of_command = of_command.map(|(name, value)| Declared { name, value, origin: ORIGIN_COMMAND_LINE });
    let given = given.iter().take(PARAMETERS_MAX);
    let given = given.map(|(name, value)| (name.clone(), value.clone()));
    of_command.chain(given.map(|(name, value)| Declared { name, value, origin: ORIGIN_GIVEN })).collect()
}

/// Reads `NAME=VALUE` of a given parameter or tag. Booleans are written in lower case, as in TOML and JSON.
///
/// # Errors
/// What is wrong with it, as a sentence.
pub fn given_pair(text: &str) -> Result<(String, String), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("`{text}` has no `=`: write NAME=VALUE"));
    };
    check_given(name, value)?;
    Ok((name.to_owned(), given_value(value)))
}

/// Whether a parameter or a tag may have this name and this value.
///
/// # Errors
/// What is wrong with it, as a sentence.
pub fn check_given(name: &str, value: &str) -> Result<(), String> {
    if name_of(name).is_none() {
        return Err(format!(
            "invalid name `{name}`: it begins with a letter or `_`, contains letters, digits, `.`, `_`, `-` and `/`, and is at most \
             {NAME_BYTES_MAX} bytes long"
        ));
    }
    if value.len() > GIVEN_BYTES_MAX {
        return Err(format!(
            "the value of `{name}` has {} bytes: {GIVEN_BYTES_MAX} is the limit",
            value.len()
        ));
    }
    Ok(())
}

fn given_value(value: &str) -> String {
    match value {
        "True" | "TRUE" => "true".into(),
        "False" | "FALSE" => "false".into(),
        _ => value.to_owned(),
    }
}

/// The parameters in a command, in its order, each name once with its last value. Dashes in names become underscores, as
/// they do in the script; an option without a value is `true`.
#[must_use]
pub fn parameters_of(command: &[String]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut rest = behind_script(command);
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        if word == "--" {
            break;
        }
        let Some((name, value)) = assigned(word) else { continue };
        let value = match value {
            Some(value) => value.to_owned(),
            None => {
                let count = values_behind(rest);
                let values = rest[..count].join(" ");
                rest = &rest[count..];
                if count == 0 { TRUE.to_owned() } else { values }
            }
        };
        put(&mut found, name, value);
    }
    found
}

/// The number of steps that a command sets.
#[must_use]
pub fn total_steps_of(command: &[String]) -> Option<u64> {
    let parameters = parameters_of(command);
    let total = |(name, value): &(String, String)| {
        TOTAL_STEPS.contains(&name.as_str()).then(|| value.parse().ok()).flatten().filter(|steps| *steps > 0)
    };
    parameters.iter().find_map(total)
}

fn put(found: &mut Vec<(String, String)>, name: String, mut value: String) {
    if value.len() > VALUE_BYTES_MAX {
        value.truncate(value.floor_char_boundary(VALUE_BYTES_MAX));
        value.push('…');
    }
    match found.iter().position(|(known, _)| *known == name) {
        Some(place) => found[place].1 = value,
        None if found.len() < PARAMETERS_MAX => found.push((name, value)),
        None => {}
    }
}

/// The name that a word gives, and its value if the word has one.
fn assigned(word: &str) -> Option<(String, Option<&str>)> {
    if let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        return Some((name_of(name)?.replace('-', "_"), value));
    }
    // Hydra also writes `+a.b=1` and `++a.b=1`.
    let (name, value) = word.trim_start_matches('+').split_once('=')?;
    Some((name_of(name)?.to_owned(), Some(value)))
}

fn name_of(text: &str) -> Option<&str> {
    let fits = text.len() <= NAME_BYTES_MAX
        && text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    let plain = |letter: char| letter.is_alphanumeric() || "_.-/".contains(letter);
    (fits && text.chars().all(plain)).then_some(text)
}

/// How many of the next words are the value of an option: one, or all numbers in a row.
fn values_behind(rest: &[String]) -> usize {
    let is_number = |word: &String| word.parse::<f64>().is_ok();
    let numbers = rest.iter().take_while(|word| is_number(word)).count();
    let is_value =
        |word: &String| !word.starts_with('-') && !assigned(word).is_some_and(|(name, _)| name.contains('.'));
    if numbers > 0 { numbers } else { rest.first().map_or(0, |word| usize::from(is_value(word))) }
}

/// The words behind the script or program that a command starts; none if it is unknown which of them that is.
fn behind_script(command: &[String]) -> &[String] {
    let Some((program, arguments)) = command.split_first() else { return &[] };
    if !is_starter(program) {
        return match arguments.iter().position(|word| is_starter(word)) {
            // A wrapper that is not known: `wrapper -o out python train.py`.
            Some(place) if starts_something(&arguments[place + 1..]) => behind_script(&arguments[place..]),
            _ => arguments,
        };
    }
    let mut place = 0;
    while let Some(word) = arguments.get(place) {
        let next = arguments.get(place + 1);
        match word.as_str() {
            "-c" => return arguments.get(place + 2..).unwrap_or_default(),
            "-m" | "--module" if !next.is_some_and(|module| is_starting(module)) => {
                return arguments.get(place + 2..).unwrap_or_default();
            }
            _ if is_script(word) => return &arguments[place + 1..],
            _ => place += 1,
        }
    }
    &[]
}

fn is_starter(program: &str) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("python") || STARTERS.contains(&&*name)
}

/// Whether the words behind an interpreter name what it starts.
fn starts_something(arguments: &[String]) -> bool {
    arguments.iter().any(|word| is_script(word))
        || arguments.first().is_some_and(|word| word == "-m" || word == "-c")
}

fn is_starting(module: &str) -> bool {
    STARTING_MODULES.iter().any(|known| module.starts_with(known))
}

fn is_script(word: &str) -> bool {
    let extension = Path::new(word).extension().and_then(|extension| extension.to_str());
    let is_file = extension.is_some_and(|extension| SCRIPTS.contains(&extension));
    let is_name = !word.starts_with('-') && !word.contains("://") && !word.contains(char::is_whitespace);
    is_name && (is_file || word.starts_with("./"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the options of programs before the script are none of its parameters, also of programs that are not known.
    #[test]
    fn options_of_wrappers_are_no_parameters() {
        for command in [
            "stdbuf -oL python train.py --lr 0.1",
            "xvfb-run -a python train.py --lr 0.1",
            "nsys profile -o out python train.py --lr 0.1",
            "own-wrapper --mode=fast python3.12 -m train --lr 0.1",
            "own-wrapper -n 4 torchrun --nproc-per-node 2 train.py --lr 0.1",
            "strace -f -o log ./train --lr 0.1",
        ] {
            assert_eq!(read(command), "lr=0.1", "{command}");
        }
        assert_eq!(read("./train --engine python --lr 0.1"), "engine=python · lr=0.1");
    }

    fn read(command: &str) -> String {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let pairs = parameters_of(&words);
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" · ")
    }

    /// Proves which words of a command are parameters of its script, behind interpreters and launchers.
    #[test]
    fn arguments_become_parameters() {
        for (command, expected) in [
            ("python train.py --lr 0.1 --batch-size=64 -x 3", "lr=0.1 · batch_size=64 · x=3"),
            ("python -u train.py --amp --no-cuda --seed -1", "amp=true · no_cuda=true · seed=-1"),
            ("python train.py --amp --layers 64 64 --out a/b", "amp=true · layers=64 64 · out=a/b"),
            (
                "python3.11 train.py model.depth=3 +opt.lr=1e-3 ++a=b c/d=e",
                "model.depth=3 · opt.lr=1e-3 · a=b · c/d=e",
            ),
            ("python train.py --multirun model.lr=0.1", "multirun=true · model.lr=0.1"),
            ("torchrun --nproc-per-node 2 job/train.py --lr 1 --lr 2", "lr=2"),
            ("python -m torch.distributed.run --nproc 2 train.py --lr 1", "lr=1"),
            ("python -m job.train --lr 1", "lr=1"),
            ("accelerate launch --num_processes 4 train.py --lr 1", "lr=1"),
            ("env A=1 python train.py --lr 1", "lr=1"),
            ("srun -n 2 ./train --lr 1", "lr=1"),
            ("./train --lr 1 data.csv", "lr=1"),
            ("llm --lr=1 -- --no 1", "lr=1"),
            ("python train.py https://x/?a=b /data/a=b 3 --3d", ""),
            ("bash go.sh --lr 1", "lr=1"),
            ("srun train --lr 1", ""),
            ("sh", ""),
            ("", ""),
        ] {
            assert_eq!(read(command), expected, "{command}");
        }
        let code = ["sh", "-c", "python train.py --lr 0.1"].map(str::to_owned);
        assert!(parameters_of(&code).is_empty());
    }

    /// Proves that a given parameter takes the place of the command's, and that each has its origin.
    #[test]
    fn given_parameters_take_precedence() {
        let words: Vec<String> = "train --lr 0.1 --depth 3".split(' ').map(str::to_owned).collect();
        let given = [("lr".to_owned(), "0.2".to_owned())].into();
        let found: Vec<(String, String, &str)> =
            declared(&words, &given).into_iter().map(|it| (it.name, it.value, it.origin)).collect();
        let expected = [("depth", "3", ORIGIN_COMMAND_LINE), ("lr", "0.2", ORIGIN_GIVEN)];
        assert_eq!(found, expected.map(|(name, value, origin)| (name.into(), value.into(), origin)));
    }

    /// Proves which pairs may be given, and that the error names what is wrong.
    #[test]
    fn given_pairs_are_checked() {
        let pair = |text: &str| given_pair(text).map(|(name, value)| format!("{name}: {value}"));
        assert_eq!(pair("optim/lr=3e-4").unwrap(), "optim/lr: 3e-4");
        assert_eq!(pair("amp=True").unwrap(), "amp: true");
        assert_eq!(pair("note=a=b").unwrap(), "note: a=b");
        for (text, expected) in [("lr", "no `=`"), ("=1", "invalid name ``"), ("a b=1", "invalid name `a b`")]
        {
            assert!(pair(text).unwrap_err().contains(expected), "{text}");
        }
        let long = pair(&format!("a={}", "x".repeat(GIVEN_BYTES_MAX + 1))).unwrap_err();
        assert!(long.ends_with(&format!("{GIVEN_BYTES_MAX} is the limit")), "{long}");
    }

    /// Proves that many and long arguments take bounded room, and that the total of steps is found.
    #[test]
    fn arguments_are_bounded() {
        let mut command = vec!["./train".to_owned()];
        command.extend((0..1000).map(|number| format!("--a{number}={}", "ä".repeat(1000))));
        let parameters = parameters_of(&command);
        assert_eq!(parameters.len(), PARAMETERS_MAX);
        assert!(parameters.iter().all(|(_, value)| value.len() <= VALUE_BYTES_MAX + 3));
        let words = |command: &str| command.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(total_steps_of(&words("python a.py --lr 1 --max-steps 600")), Some(600));
        assert_eq!(total_steps_of(&words("python a.py --max_steps -1")), None);
    }
}
