//! States that are in several files of one folder, such as `model-10.pt` and `optim-10.pt`: by names that differ only
//! in a word for the part which each file holds.

use std::collections::BTreeMap;

use trackway_formats::path_text::without_escapes;

use crate::names;

/// What a file holds of a state that is in several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The model, or a file whose name has no word for a part.
    Model,
    /// Averaged weights of the model.
    Average,
    /// The state of the optimizer.
    Optimizer,
    /// The state of the learning-rate schedule.
    Scheduler,
    /// The state of a gradient scaler.
    Scaler,
    /// States of random numbers.
    Rng,
    /// The position in the data.
    DataCursor,
}

/// Words of names, and the part that each says.
const WORDS: [(Part, &[&str]); 7] = [
    (Part::Model, &["model", "weights", "net", "network", "params"]),
    (Part::Average, &["ema"]),
    (Part::Optimizer, &["optimizer", "optim", "opt", "optimizers"]),
    (Part::Scheduler, &["scheduler", "sched", "schedule"]),
    (Part::Scaler, &["scaler"]),
    (Part::Rng, &["rng"]),
    (Part::DataCursor, &["sampler", "dataloader"]),
];
/// Words that say nothing of the part, and may be in the name of one part only.
const SILENT: [&str; 9] =
    ["ckpt", "checkpoint", "state", "states", "dict", "lr", "grad", "random", "training"];
/// Ends of names of files that may hold a part.
const EXTENSIONS: [&str; 10] =
    ["pt", "pth", "ckpt", "bin", "safetensors", "tar", "pkl", "pickle", "msgpack", "npz"];

/// The part that a name says, and what else is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartName {
    pub part: Part,
    /// Whether a word of the name says so; a name without one may be that of the model.
    pub is_named: bool,
    /// Its other words and its numbers: those of one state agree.
    pub rest: String,
}

/// Names of files that hold one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileGroup {
    /// The name of the one with the weights.
    pub model: String,
    /// The other files, sorted.
    pub beside: Vec<String>,
}

impl PartName {
    /// What the name of a file says; none if it is not that of a part, or of several.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        if names::temporary(name).is_some() || name.starts_with('.') {
            return None;
        }
        let lower = name.to_lowercase();
        let mut stem = lower.as_str();
        while let Some((before, extension)) = stem.rsplit_once('.')
            && EXTENSIONS.contains(&extension)
        {
            stem = before;
        }
        let part_of = |word: &str| WORDS.iter().find(|(_, words)| words.contains(&word)).map(|it| it.0);
        let has_extension = stem.len() < lower.len();
        let ends_in_part = stem.rsplit_once('.').is_some_and(|(_, end)| part_of(end).is_some());
        if !has_extension && !ends_in_part {
            return None;
        }
        let words = words(stem);
        let mut said: Vec<Part> = words.iter().filter_map(|word| part_of(word)).collect();
        // `model_ema` is an average, and `model_optimizer` has both.
        let is_model = said.contains(&Part::Model);
        said.retain(|part| *part != Part::Model);
        said.sort_unstable();
        said.dedup();
        let part = match (said.as_slice(), is_model) {
            ([], _) => Part::Model,
            ([Part::Average], _) => Part::Average,
            ([part], false) => *part,
            _ => return None,
        };
        let is_rest = |word: &&String| part_of(word).is_none() && !SILENT.contains(&word.as_str());
        let rest: Vec<&str> = words.iter().filter(is_rest).map(String::as_str).collect();
        Some(Self { part, is_named: is_model || part != Part::Model, rest: rest.join(" ") })
    }

    /// The same for every state of a training: without the numbers.
    #[must_use]
    pub fn family(&self) -> String {
        let is_number = |word: &str| word.starts_with(|char: char| char.is_ascii_digit());
        let words = self.rest.split(' ').map(|word| if is_number(word) { "#" } else { word });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Letters together, and digits together. Escapes of [`trackway_formats::path_text`] are separate words.
fn words(stem: &str) -> Vec<String> {
    #[derive(PartialEq)]
    enum Of {
        Letters,
        Digits,
        Escapes,
    }
    let kind = |(letter, plain): (char, char)| match letter {
        _ if letter != plain => Some(Of::Escapes),
        '0'..='9' => Some(Of::Digits),
        _ => letter.is_alphanumeric().then_some(Of::Letters),
    };
    let plain = without_escapes(stem);
    names::grouped(stem.chars().zip(plain.chars()).map(|both| (both.0, kind(both))))
}

/// Which of the files of one folder hold one state: one file of a model, and at least one of what else a training needs.
#[must_use]
pub fn together<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<FileGroup> {
    let mut states: BTreeMap<String, Vec<(&str, PartName)>> = BTreeMap::new();
    for name in names {
        if let Some(part) = PartName::of(name) {
            states.entry(part.rest.clone()).or_default().push((name, part));
        }
    }
    states.into_values().filter_map(one_state).collect()
}

fn one_state(files: Vec<(&str, PartName)>) -> Option<FileGroup> {
    let models: Vec<&(&str, PartName)> = files.iter().filter(|(_, it)| it.part == Part::Model).collect();
    let named: Vec<&&(&str, PartName)> = models.iter().filter(|(_, it)| it.is_named).collect();
    let model = match (named.as_slice(), models.as_slice()) {
        ([(model, _)], _) | ([], [(model, _)]) => *model,
        _ => return None,
    };
    let beside = files.iter().filter(|(_, it)| it.part != Part::Model);
    let has_more = beside.clone().any(|(_, it)| it.part != Part::Average);
    let mut beside: Vec<String> = beside.map(|(name, _)| (*name).to_owned()).collect();
    beside.sort();
    has_more.then(|| FileGroup { model: model.to_owned(), beside })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Vec<String> {
        let shown = |it: FileGroup| format!("{} + {}", it.model, it.beside.join(" "));
        together(names.iter().copied()).into_iter().map(shown).collect()
    }

    /// Proves that bytes of names that are part of no character are neither words nor numbers, and that they must agree.
    #[test]
    fn escapes_are_words_of_their_own() {
        assert_eq!(
            found(&["model-\\xe9-10.pt", "\\xe9optim-10.pt", "optim-\\xe8-10.pt"]),
            ["model-\\xe9-10.pt + \\xe9optim-10.pt"]
        );
        let family = |name| PartName::of(name).unwrap().family();
        assert_eq!(family("model-\\x89-10.pt"), family("model-\\x89-20.pt"));
        assert_ne!(family("model-\\x89-10.pt"), family("model-\\x88-10.pt"));
    }

    /// Proves that files whose names differ only in the word for a part are one state, whatever the word, its place and
    /// the extension are, and that of other steps, folders of words and temporary files none is one.
    #[test]
    fn names_that_differ_in_a_part_are_one_state() {
        for (names, expected) in [
            (&["model-10.pt", "optim-10.pt"][..], "model-10.pt + optim-10.pt"),
            (&["ckpt-10.pt", "ckpt-10.optim"], "ckpt-10.pt + ckpt-10.optim"),
            (&["model.safetensors", "optimizer.pt"], "model.safetensors + optimizer.pt"),
            (&["epoch3_model.pth.tar", "epoch3_opt.pth.tar"], "epoch3_model.pth.tar + epoch3_opt.pth.tar"),
            (
                &[
                    "model-10.pt", "model_ema-10.pt", "optimizer-10.pt", "lr_scheduler-10.pt",
                    "grad_scaler-10.pt",
                ],
                "model-10.pt + grad_scaler-10.pt lr_scheduler-10.pt model_ema-10.pt optimizer-10.pt",
            ),
            (&["checkpoint_10.pt", "optimizer_state_10.pt"], "checkpoint_10.pt + optimizer_state_10.pt"),
            (&["ckpt-10.pt", "model-10.pt", "optim-10.pt"], "model-10.pt + optim-10.pt"),
            (&["best_model.pt", "best_optimizer.pt", "last.pt"], "best_model.pt + best_optimizer.pt"),
        ] {
            assert_eq!(found(names), [expected]);
        }
        for names in [
            &["model-10.pt", "optim-20.pt"][..],
            &["model-10.pt", "model_ema-10.pt"],
            &["model-10.pt"],
            &["optim-10.pt", "scheduler-10.pt"],
            &["ckpt-10.pt", "checkpoint-10.bin", "optim-10.pt"],
            &["model-10.pt", "optim-10.pt.tmp"],
            &["model-10.pt", "model_optim_rng-10.pt"],
            &["model.json", "optimizer.json"],
            &["best.pt", "last_optim.pt"],
        ] {
            assert_eq!(found(names), [""; 0], "{names:?}");
        }
    }

    /// Proves that the states of a training are of one family, and those of two names are not.
    #[test]
    fn a_family_has_no_numbers() {
        let family = |name: &str| PartName::of(name).unwrap().family();
        assert_eq!(family("model-10.pt"), family("optim-20.pt"));
        assert_eq!(family("a_model-10.pt"), "a #");
        assert_ne!(family("model-10.pt"), family("model-final.pt"));
    }
}
