//! The text of a run file with comments: what is known is set, what is optional is after `#`. Pure.

use std::collections::BTreeMap;

use super::draft::{Draft, framework_title, prefers_gpu, recording_line};

/// The beginning of every run file. A line that can be used has no space after its `#`.
const HEAD: &str = "\
# Written by `trackway init`. Start the run with `trackway run` and the name of this file; `trackway preflight` only checks it.
# Lines with `#` and no space are optional: remove the `#` to use one. docs/run-file.md describes every key.
";

/// What is optional in every run file.
const OPTIONAL: &str = "\
# What is retried, and how often.
#[retry]
#infrastructure = { attempts = 5, backoff = \"10s..5m\" }
#preempted = { attempts = 50 }

# When an attempt has run too long, or makes no progress.
#[supervise]
#timeout = \"12h\"
#hang_after = \"30m\"

# What happens when a detector fires; by default it is noted.
#[detect]
#non_finite = \"stop\"

# When more training does not help.
#[early_stop]
#patience = 5
#metric = \"val_loss\"

# What is checked before the launch, beside what is cheap.
#[preflight]
#one_batch = true

# How a checkpoint is evaluated after the run, and what it must reach.
#[evaluate]
#command = [\"python3\", \"evaluate.py\"]
#gates = [\"accuracy >= 0.8\"]

# The people responsible for the run.
#[owner]
#team = \"research\"
";

/// The text of a run file.
#[must_use]
pub fn text(draft: &Draft) -> String {
    let command: Vec<String> = draft.command.iter().map(|word| quoted(word)).collect();
    let mut text = format!(
        "{HEAD}\n[run]\nname    = {}\ncommand = [{}]\n# The script gets it as TRACKWAY_SEED.\n#seed = 17\n",
        quoted(&draft.name),
        command.join(", ")
    );
    text += &given(draft);
    if !draft.is_in_git {
        text += "# This folder is not in a git repository: the receipt will name no commit.\n";
    }
    if !draft.uses_trackway {
        text += &recording(draft);
    }
    text += &data(draft);
    text += &resources(draft);
    text += &checkpoints(draft);
    text += "\n";
    text += OPTIONAL;
    text
}

/// What a recorded run was given beside its command.
fn given(draft: &Draft) -> String {
    let Some(recorded) = &draft.recorded else { return String::new() };
    let mut text = String::new();
    if let Some(folder) = &recorded.working_directory {
        text += &format!("working_directory = {}\n", quoted(folder));
    }
    for (key, values) in [
        ("environment", &recorded.environment),
        ("parameters", &recorded.parameters),
        ("tags", &recorded.tags),
    ] {
        if !values.is_empty() {
            text += &format!("{key} = {{ {} }}\n", pairs(values));
        }
    }
    match text.is_empty() {
        true => format!("# This is the command of {}.\n", recorded.run_id),
        false => format!("# This is what {} was given.\n{text}", recorded.run_id),
    }
}

fn pairs(values: &BTreeMap<String, String>) -> String {
    let pairs = values.iter().map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)));
    pairs.collect::<Vec<_>>().join(", ")
}

fn recording(draft: &Draft) -> String {
    let found =
        framework_title(draft.framework).map(|title| format!("{title} is imported. ")).unwrap_or_default();
    format!(
        "\n# {found}What the script prints is recorded; after `import trackway` this records more (docs/python.md):\n#     {}\n",
        recording_line(draft.framework)
    )
}

fn data(draft: &Draft) -> String {
    const USE: &str = "\n# Data is hashed, checked before the launch, and named in the receipt.\n";
    const LABEL: &str = "#label = \"the column to predict\"\n";
    if draft.data.is_empty() {
        return format!("{USE}#[data.train]\n#path = \"data/train.csv\"\n{LABEL}");
    }
    let sections = draft.data.iter().map(|set| {
        let label = set.label.as_ref().map(|label| format!("label = {}\n", quoted(label)));
        let label = label.unwrap_or_else(|| LABEL.to_owned());
        format!("[data.{}]\npath = {}\n{label}", set.name, quoted(&set.path))
    });
    USE.to_owned() + &sections.collect::<Vec<_>>().join("\n")
}

fn resources(draft: &Draft) -> String {
    const PRICE: &str = "#usd_per_gpu_hour = 2.0\n";
    const USE: &str = "\n# What an attempt uses, and what it costs.\n";
    match draft.gpu_count {
        count if count > 0 && prefers_gpu(draft.framework) => {
            format!("{USE}[resources]\ngpus = 1 # of {count} in this machine\n{PRICE}")
        }
        _ => format!("{USE}#[resources]\n#gpus = 1\n{PRICE}"),
    }
}

fn checkpoints(draft: &Draft) -> String {
    let adopt = draft.recorded.iter().flat_map(|recorded| &recorded.adopt).map(|path| quoted(path));
    let adopt = adopt.collect::<Vec<_>>().join(", ");
    if !adopt.is_empty() {
        let resume = match draft.resume_arguments.as_slice() {
            [] => "#resume = { args = [\"--resume\", \"{path}\"] }".to_owned(),
            found => {
                let words: Vec<String> = found.iter().map(|word| quoted(word)).collect();
                format!(
                    "resume = {{ args = [{}] }} # the script's own option, given to it when it continues",
                    words.join(", ")
                )
            }
        };
        return format!(
            "\n# Checkpoints that the script writes itself: a retry continues from the newest that is whole if the script looks for it or is given its path.\n\
             [checkpoint]\nadopt = [{adopt}]\n{resume}\n#keep = {{ last = 3 }}\n"
        );
    }
    let mark = if draft.uses_trackway { "" } else { "#" };
    format!(
        "\n# When the script saves a checkpoint that a retry resumes from, and which are kept.\n\
         {mark}[checkpoint]\n{mark}every = {{ minutes = 15 }}\n{mark}keep = {{ last = 3 }}\n"
    )
}

/// A string of TOML. The escapes of JSON are among those of TOML, which also wants DEL escaped.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use trackway_api::runs::init::{FoundDataSet, Framework};
    use trackway_core::RunId;
    use trackway_formats::runfile;

    use super::*;
    use crate::training::init::draft::RecordedRun;

    fn of(framework: Framework) -> Draft {
        let label = |name: &str| (name == "test").then(|| "income".to_owned());
        let set = |name: &str| FoundDataSet {
            name: name.into(),
            path: format!("data/{name}.csv"),
            label: label(name),
        };
        Draft {
            name: "income".into(),
            command: vec!["python3".into(), "train.py".into(), "--lr".into(), "0.1".into()],
            framework,
            uses_trackway: false,
            data: vec![set("train"), set("test")],
            gpu_count: 2,
            is_in_git: true,
            resume_arguments: Vec::new(),
            recorded: None,
        }
    }

    /// A run that was given something of everything, with `word` in it.
    fn recorded(word: &str) -> RecordedRun {
        let pair = |name: &str| [(name.to_owned(), word.to_owned())].into();
        RecordedRun {
            run_id: "run_01jz0000000000000000000000".parse::<RunId>().unwrap(),
            name: "income".into(),
            command: vec!["true".into()],
            working_directory: Some("jobs".into()),
            environment: pair("OMP_NUM_THREADS"),
            parameters: pair("model.depth"),
            tags: pair("team"),
            adopt: vec!["out/checkpoint-*".into(), word.into()],
        }
    }

    /// The text with everything that is optional in use.
    fn with_options(text: &str) -> String {
        let used = |line: &str| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => rest.to_owned(),
            _ => line.to_owned(),
        };
        text.lines().map(|line| used(line) + "\n").collect()
    }

    /// Proves that the text for every framework is a run file, as it is and with every optional line in use.
    #[test]
    fn every_text_is_a_run_file() {
        for framework in Framework::ALL.iter().copied() {
            for uses_trackway in [false, true] {
                for data in [Vec::new(), of(framework).data] {
                    let recorded = (uses_trackway != data.is_empty()).then(|| recorded("4"));
                    let is_in_git = uses_trackway;
                    let draft = Draft { uses_trackway, data, is_in_git, recorded, ..of(framework) };
                    for text in [text(&draft), with_options(&text(&draft))] {
                        let file = runfile::parse(&text, "trackway.toml", &[]);
                        let file = file.unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
                        assert_eq!(
                            (&file.plan.run.name, &file.plan.run.command),
                            (&draft.name, &draft.command)
                        );
                        assert!(file.unsupported().is_empty(), "{text}");
                    }
                }
            }
        }
    }

    /// Proves what is set for a script that saves checkpoints on a machine with GPUs, and for one that does neither.
    #[test]
    fn what_is_known_is_set() {
        let parsed = |draft: &Draft| runfile::parse(&text(draft), "trackway.toml", &[]).unwrap().plan;
        let torch = parsed(&Draft { uses_trackway: true, ..of(Framework::Torch) });
        assert_eq!((torch.resources.gpus, torch.checkpoint.keep_last), (1, Some(3)));
        assert_eq!(torch.data["test"].path, "data/test.csv");
        assert_eq!(
            (&torch.data["train"].label, torch.data["test"].label.as_deref()),
            (&None, Some("income"))
        );
        let trees = parsed(&of(Framework::XgBoost));
        assert_eq!((trees.resources.gpus, trees.checkpoint.keep_last), (0, None));
    }

    /// Proves that a name, an argument and a path with quotes, line ends and control characters stay what they are.
    #[test]
    fn hostile_words_stay_words() {
        let word = "a\"b\\c\nd\u{7f}\u{1b}é";
        let draft = Draft {
            name: word.into(),
            command: vec!["sh".into(), word.into()],
            data: vec![FoundDataSet { name: "train".into(), path: word.into(), label: Some(word.into()) }],
            recorded: Some(recorded(word)),
            ..of(Framework::Plain)
        };
        let file = runfile::parse(&text(&draft), "trackway.toml", &[]).unwrap().plan;
        assert_eq!((file.run.name.as_str(), file.run.command[1].as_str()), (word, word));
        assert_eq!(
            (file.data["train"].path.as_str(), file.data["train"].label.as_deref()),
            (word, Some(word))
        );
        assert_eq!(file.run.environment["OMP_NUM_THREADS"], word);
    }

    /// Proves that the run file of a recorded run has what it was given, and the checkpoints that it wrote.
    #[test]
    fn what_a_run_was_given_is_set() {
        let draft = Draft { recorded: Some(recorded("4")), ..of(Framework::Torch) };
        let file = runfile::parse(&text(&draft), "trackway.toml", &[]).unwrap().plan;
        assert_eq!(file.run.working_directory.as_deref(), Some("jobs"));
        assert_eq!(file.run.environment, [("OMP_NUM_THREADS".to_owned(), "4".to_owned())].into());
        assert_eq!(file.run.parameters, [("model.depth".to_owned(), "4".to_owned())].into());
        assert_eq!(file.run.tags, [("team".to_owned(), "4".to_owned())].into());
        assert_eq!(file.checkpoint.adopt.as_deref().unwrap(), ["out/checkpoint-*", "4"]);
        assert_eq!(file.checkpoint.every_seconds, None);
        let (working_directory, none) = (None, BTreeMap::new());
        let [environment, parameters, tags] = [none.clone(), none.clone(), none];
        let bare = RecordedRun { working_directory, environment, parameters, tags, ..recorded("4") };
        let text = text(&Draft { recorded: Some(bare), ..of(Framework::Torch) });
        assert!(text.contains("# This is the command of run_") && !text.contains("was given"), "{text}");
    }
}
