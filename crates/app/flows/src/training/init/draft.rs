//! From the contents of a project to its run file. Pure: nothing is read here.

use std::collections::BTreeMap;
use std::path::Path;

use trackway_api::runs::init::{FoundDataSet, Framework, NewRunFile};
use trackway_core::name::{Name, NameKind};
use trackway_core::{RunId, with_fields_of};

use super::label::label_of;
use super::resume::resume_arguments;
use crate::training::script::imported_packages;

/// What is known of a project before it has a run file. Paths are relative to the folder of the run file.
#[derive(Debug, Clone, Default)]
pub struct ProjectEvidence {
    pub folder_name: String,
    /// The script, where one was named or found.
    pub script: Option<Script>,
    /// Arguments of the script.
    pub arguments: Vec<String>,
    /// Data files among the arguments, and those that the script names.
    pub named_data: Vec<String>,
    /// Data files in the folder, and in its folder `data`.
    pub data_files: Vec<String>,
    /// The columns of these files, where they are tables.
    pub columns: BTreeMap<String, Vec<String>>,
    /// NVIDIA GPUs of this machine.
    pub gpu_count: u32,
    /// Whether the folder is in a git repository.
    pub is_in_git: bool,
    /// The run whose command it is, where it ran before.
    pub recorded: Option<RecordedRun>,
}

/// What a recorded run was given, and the checkpoints that it was seen to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRun {
    pub run_id: RunId,
    pub name: String,
    pub command: Vec<String>,
    /// Where it ran, as the run file writes it; none: in the run file's folder.
    pub working_directory: Option<String>,
    /// Variables that it had and that decide what a training computes.
    pub environment: BTreeMap<String, String>,
    /// Parameters that were given with `--param`.
    pub parameters: BTreeMap<String, String>,
    /// Tags that were given with `--tag`.
    pub tags: BTreeMap<String, String>,
    /// Patterns of the checkpoints that it wrote itself.
    pub adopt: Vec<String>,
}

/// A script that trains.
#[derive(Debug, Clone)]
pub struct Script {
    pub path: String,
    /// Its text; what is not UTF-8 in it is replaced.
    pub text: String,
}

/// The contents of a run file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The name of the run.
    pub name: String,
    /// The command; empty where no script was found.
    pub command: Vec<String>,
    /// The framework that the script imports.
    pub framework: Framework,
    /// Whether the script imports the package `trackway`, and so may save checkpoints.
    pub uses_trackway: bool,
    pub data: Vec<FoundDataSet>,
    /// NVIDIA GPUs of this machine.
    pub gpu_count: u32,
    /// Whether the folder is in a git repository.
    pub is_in_git: bool,
    /// Arguments that make the script continue from a checkpoint, with `{path}` for it; empty: its text declares no such option.
    pub resume_arguments: Vec<String>,
    /// The run that it repeats.
    pub recorded: Option<RecordedRun>,
}

impl Draft {
    /// The document of the run file that was written to `path`.
    #[must_use]
    pub fn written_to(self, path: String) -> NewRunFile {
        let (from_run, environment, adopt) = match self.recorded {
            Some(recorded) => (Some(recorded.run_id), recorded.environment, recorded.adopt),
            None => (None, BTreeMap::new(), Vec::new()),
        };
        with_fields_of!(
            NewRunFile,
            self,
            [name, command, framework, uses_trackway, data, gpu_count, is_in_git, resume_arguments],
            path,
            from_run,
            environment,
            adopt,
        )
    }
}

/// The name of a framework; none for `plain`.
#[must_use]
pub const fn framework_title(framework: Framework) -> Option<&'static str> {
    Some(match framework {
        Framework::Lightning => "Lightning",
        Framework::Transformers => "Transformers",
        Framework::Keras => "Keras",
        Framework::Jax => "JAX",
        Framework::Torch => "PyTorch",
        Framework::XgBoost => "XGBoost",
        Framework::LightGbm => "LightGBM",
        Framework::Sklearn => "scikit-learn",
        Framework::Plain => return None,
    })
}

/// The packages whose import shows it.
const fn packages_of(framework: Framework) -> &'static [&'static str] {
    match framework {
        Framework::Lightning => &["lightning", "pytorch_lightning"],
        Framework::Transformers => &["transformers"],
        Framework::Keras => &["keras", "tensorflow"],
        Framework::Jax => &["jax", "flax", "optax"],
        Framework::Torch => &["torch", "accelerate", "deepspeed"],
        Framework::XgBoost => &["xgboost"],
        Framework::LightGbm => &["lightgbm"],
        Framework::Sklearn => &["sklearn"],
        Framework::Plain => &[],
    }
}

/// The line of a script of this framework that records its training (docs/python.md).
pub(super) const fn recording_line(framework: Framework) -> &'static str {
    match framework {
        Framework::Lightning => "Trainer(callbacks=[trackway.callbacks.LightningCallback()])",
        Framework::Transformers => "Trainer(..., callbacks=[trackway.callbacks.TransformersCallback()])",
        Framework::Keras => "model.fit(..., callbacks=[trackway.callbacks.KerasCallback()])",
        Framework::Jax => "watch = trackway.callbacks.JaxLoop(trackway.attach())",
        Framework::Torch => "watch = trackway.callbacks.TorchLoop(trackway.attach(), optimizer)",
        Framework::XgBoost => "xgboost.train(..., callbacks=[trackway.callbacks.XGBoostCallback()])",
        Framework::LightGbm => "lightgbm.train(..., callbacks=[trackway.callbacks.LightGBMCallback()])",
        Framework::Sklearn => "estimator.set_callbacks(trackway.callbacks.SklearnCallback())",
        Framework::Plain => "trackway.attach().log(step, loss=loss)",
    }
}

/// Whether the framework trains on an available GPU by default.
pub(super) const fn prefers_gpu(framework: Framework) -> bool {
    matches!(
        framework,
        Framework::Lightning | Framework::Transformers | Framework::Keras | Framework::Jax | Framework::Torch
    )
}

/// The contents of a run file for a project.
#[must_use]
pub fn draft(evidence: &ProjectEvidence) -> Draft {
    let packages: Vec<&str> =
        evidence.script.iter().flat_map(|script| imported_packages(&script.text)).collect();
    let shows = |framework: &Framework| packages_of(*framework).iter().any(|one| packages.contains(one));
    let (name, command) = match &evidence.recorded {
        Some(recorded) => (&recorded.name, recorded.command.clone()),
        None => (
            &evidence.folder_name,
            evidence.script.iter().flat_map(|script| command(script, &evidence.arguments)).collect(),
        ),
    };
    let mut data = match evidence.named_data.is_empty() {
        true => certain_data_sets(&evidence.data_files),
        false => data_sets(&evidence.named_data),
    };
    let text = evidence.script.as_ref().map_or("", |script| script.text.as_str());
    for set in &mut data {
        set.label = evidence.columns.get(&set.path).and_then(|columns| label_of(columns, &command, text));
    }
    Draft {
        name: Name::renamed(NameKind::Run, name).into(),
        command,
        framework: Framework::ALL.iter().copied().find(shows).unwrap_or(Framework::Plain),
        uses_trackway: packages.contains(&"trackway"),
        data,
        gpu_count: evidence.gpu_count,
        is_in_git: evidence.is_in_git,
        resume_arguments: resume_arguments(text).unwrap_or_default(),
        recorded: evidence.recorded.clone(),
    }
}

/// How a script is started: a Python file by its interpreter, a shell script by a shell, anything else as a program.
fn command(script: &Script, arguments: &[String]) -> Vec<String> {
    let path = script.path.clone();
    let mut command = match Path::new(&path).extension().and_then(|extension| extension.to_str()) {
        Some("py") => vec!["python3".to_owned(), path],
        Some("sh") => vec!["sh".to_owned(), path],
        _ if path.contains('/') => vec![path],
        _ => vec![format!("./{path}")],
    };
    command.extend_from_slice(arguments);
    command
}

/// Data sets of these files: each has the name of its role, or that of its file. A single one without a role is `train`.
#[must_use]
pub fn data_sets(paths: &[String]) -> Vec<FoundDataSet> {
    let mut sets: Vec<FoundDataSet> = Vec::new();
    for path in paths {
        let wanted = match role(path) {
            Some(role) => role.to_owned(),
            None if paths.len() == 1 => "train".to_owned(),
            None => plain_stem(path),
        };
        let is_free = |name: &String| sets.iter().all(|set| set.name != *name);
        let numbered = (2..).map(|number| format!("{wanted}-{number}"));
        let name = std::iter::once(wanted.clone()).chain(numbered).find(is_free).unwrap_or_default();
        sets.push(FoundDataSet { name, path: path.clone(), label: None });
    }
    sets
}

/// Of files that only happen to be there: those that are the only one of their role, or the only file.
fn certain_data_sets(paths: &[String]) -> Vec<FoundDataSet> {
    if paths.len() == 1 {
        return data_sets(paths);
    }
    let is_only = |path: &&String| {
        let of_role = role(path);
        of_role.is_some() && paths.iter().filter(|other| role(other) == of_role).count() == 1
    };
    data_sets(&paths.iter().filter(is_only).cloned().collect::<Vec<_>>())
}

/// The role that a file's name shows.
fn role(path: &str) -> Option<&'static str> {
    let stem = stem(path).to_lowercase();
    let mut words = stem.split(|letter: char| !letter.is_alphanumeric());
    words.find_map(|word| match word {
        "train" | "training" => Some("train"),
        "validation" | "valid" | "val" | "dev" => Some("validation"),
        "test" => Some("test"),
        _ => None,
    })
}

fn stem(path: &str) -> &str {
    Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// The stem of a file as a bare key of TOML.
fn plain_stem(path: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let stem: String = stem(path).chars().map(plain).collect();
    if stem.is_empty() { "data".to_owned() } else { stem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_script(path: &str, text: &str) -> ProjectEvidence {
        let script = Script { path: path.into(), text: text.into() };
        ProjectEvidence { folder_name: "income".into(), script: Some(script), ..ProjectEvidence::default() }
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Proves that the framework is the outermost one that is imported, in every form of an import.
    #[test]
    fn imports_show_the_framework() {
        for (text, framework) in [
            ("import torch\nimport lightning as L\n", Framework::Lightning),
            ("from pytorch_lightning import Trainer", Framework::Lightning),
            ("import torch\nfrom transformers import Trainer\n", Framework::Transformers),
            ("import numpy as np, keras", Framework::Keras),
            ("    import tensorflow.keras as keras", Framework::Keras),
            ("from flax import linen", Framework::Jax),
            ("import torch.nn as nn\n", Framework::Torch),
            ("import os,torch;print()", Framework::Torch),
            ("from accelerate import Accelerator", Framework::Torch),
            ("import xgboost as xgb\nfrom sklearn.metrics import log_loss", Framework::XgBoost),
            ("import lightgbm#", Framework::LightGbm),
            ("from sklearn import svm", Framework::Sklearn),
            ("import torchvision\nfrom .torch import x\n# import jax\nimportant = 1", Framework::Plain),
        ] {
            assert_eq!(draft(&of_script("train.py", text)).framework, framework, "{text}");
        }
        assert!(draft(&of_script("train.py", "import trackway\n")).uses_trackway);
    }

    /// Proves how scripts are started, with their arguments, and that a project without one has no command.
    #[test]
    fn scripts_are_started_by_what_they_are() {
        for (path, command) in [
            ("train.py", vec!["python3", "train.py", "--lr", "0.1"]),
            ("jobs/train.sh", vec!["sh", "jobs/train.sh", "--lr", "0.1"]),
            ("train", vec!["./train", "--lr", "0.1"]),
            ("bin/train", vec!["bin/train", "--lr", "0.1"]),
        ] {
            let evidence = ProjectEvidence { arguments: strings(&["--lr", "0.1"]), ..of_script(path, "") };
            assert_eq!(draft(&evidence).command, command);
        }
        let nothing = draft(&ProjectEvidence::default());
        assert_eq!((nothing.name.as_str(), nothing.command.len()), ("unnamed", 0));
    }

    /// Proves that data that was named is used, and that of other files only those whose role is certain are.
    #[test]
    fn data_is_used_where_it_is_certain() {
        let found = |named: &[&str], files: &[&str]| {
            let evidence = ProjectEvidence {
                named_data: strings(named),
                data_files: strings(files),
                ..of_script("train.py", "")
            };
            let sets = draft(&evidence).data.into_iter().map(|set| format!("{}={}", set.name, set.path));
            sets.collect::<Vec<_>>()
        };
        assert_eq!(found(&["d/corpus.jsonl"], &["train.csv"]), ["train=d/corpus.jsonl"]);
        assert_eq!(
            found(&["a/x-train.csv", "b/x_train.csv", "my data.csv"], &[]),
            ["train=a/x-train.csv", "train-2=b/x_train.csv", "my_data=my data.csv"]
        );
        assert_eq!(
            found(&[], &["data/adult-test.csv", "data/adult-train.csv", "notes.csv"]),
            ["test=data/adult-test.csv", "train=data/adult-train.csv"]
        );
        assert_eq!(found(&[], &["prices.parquet"]), ["train=prices.parquet"]);
        assert!(found(&[], &["train-1.csv", "train-2.csv"]).is_empty(), "two parts of one data set");
        assert!(found(&[], &["a.csv", "b.csv"]).is_empty());
    }

    /// Proves that a data set gets the label that the script or the command shows, if the file has that column.
    #[test]
    fn a_data_set_gets_its_label() {
        let columns = |names: &[&str]| strings(names);
        let evidence = ProjectEvidence {
            named_data: strings(&["train.csv", "test.csv"]),
            columns: [
                ("train.csv".to_owned(), columns(&["age", "income"])),
                ("test.csv".into(), columns(&["age"])),
            ]
            .into(),
            ..of_script("train.py", "y = table['income']")
        };
        let labels: Vec<_> = draft(&evidence).data.into_iter().map(|set| set.label).collect();
        assert_eq!(labels, [Some("income".to_owned()), None]);
    }

    /// Proves that a recorded run keeps its name and its command as they were, whatever is in the folder.
    #[test]
    fn a_recorded_run_keeps_its_command() {
        let recorded = RecordedRun {
            run_id: "run_01jz0000000000000000000000".parse().unwrap(),
            name: "baseline".into(),
            command: strings(&["torchrun", "train.py"]),
            working_directory: None,
            environment: BTreeMap::new(),
            parameters: BTreeMap::new(),
            tags: BTreeMap::new(),
            adopt: strings(&["ckpt.pt"]),
        };
        let evidence = ProjectEvidence { recorded: Some(recorded), ..of_script("train.py", "import torch") };
        let draft = draft(&evidence);
        assert_eq!((draft.name.as_str(), draft.framework), ("baseline", Framework::Torch));
        assert_eq!(draft.command, ["torchrun", "train.py"]);
        let written = draft.written_to("trackway.toml".into());
        assert_eq!((written.adopt, written.from_run.is_some()), (strings(&["ckpt.pt"]), true));
    }
}
