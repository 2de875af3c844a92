//! The text of a run file with comments: what is known is set, what is optional is after `#`. Pure.

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
    let sections =
        draft.data.iter().map(|set| format!("[data.{}]\npath = {}\n{LABEL}", set.name, quoted(&set.path)));
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
    use trackway_api::init::{FoundDataSet, Framework};
    use trackway_formats::runfile;

    use super::*;

    fn of(framework: Framework) -> Draft {
        let set = |name: &str| FoundDataSet { name: name.into(), path: format!("data/{name}.csv") };
        Draft {
            name: "income".into(),
            command: vec!["python3".into(), "train.py".into(), "--lr".into(), "0.1".into()],
            framework,
            uses_trackway: false,
            data: vec![set("train"), set("test")],
            gpu_count: 2,
            is_in_git: true,
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
                    let draft = Draft { uses_trackway, data, is_in_git: uses_trackway, ..of(framework) };
                    for text in [text(&draft), with_options(&text(&draft))] {
                        let file = runfile::parse(&text, "trackway.toml", &[]);
                        let file = file.unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
                        assert_eq!((&file.run.name, &file.run.command), (&draft.name, &draft.command));
                        assert!(file.unsupported().is_empty(), "{text}");
                    }
                }
            }
        }
    }

    /// Proves what is set for a script that saves checkpoints on a machine with GPUs, and for one that does neither.
    #[test]
    fn what_is_known_is_set() {
        let parsed = |draft: &Draft| runfile::parse(&text(draft), "trackway.toml", &[]).unwrap();
        let torch = parsed(&Draft { uses_trackway: true, ..of(Framework::Torch) });
        assert_eq!((torch.resources.gpus, torch.checkpoint.keep_last), (1, Some(3)));
        assert_eq!(torch.data["test"].path, "data/test.csv");
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
            data: vec![FoundDataSet { name: "train".into(), path: word.into() }],
            ..of(Framework::Plain)
        };
        let file = runfile::parse(&text(&draft), "trackway.toml", &[]).unwrap();
        assert_eq!((file.run.name.as_str(), file.run.command[1].as_str()), (word, word));
        assert_eq!(file.data["train"].path, word);
    }
}
