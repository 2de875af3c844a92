use trackway_core::MetricStep;

use super::commas::Comma;
use super::names::{self, Meaning};
use super::part_name::PartName;
use super::tokens::Token;

/// What a line names.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::printed) struct LineValues {
    pub step: Option<u64>,
    /// The step or the epoch, if it is below 0: of values from before the training.
    pub early_step: Option<MetricStep>,
    /// The step is of the whole training, by its name.
    pub counts_training: bool,
    /// The step is a round that is done, counted from 0: after round 0 one is.
    pub is_done_round: bool,
    /// The highest of several numbers that may be the step.
    pub highest_step: Option<u64>,
    pub epoch: Option<u64>,
    /// An epoch such as 0.58; no step is the same.
    pub part_of_epoch: Option<f64>,
    /// The epoch is written as one of so many, and so counted from 1.
    pub epoch_counted_from_one: bool,
    /// How far the epoch is.
    pub position: Option<u64>,
    /// How many positions an epoch has.
    pub total: Option<u64>,
    /// The episode, which is the step where nothing else is.
    pub episode: Option<u64>,
    /// The position is that of a batch, by its name.
    pub counts_batches: bool,
    /// The position is one in the epoch, by the form of the line: `Epoch: [0] [20/1000]`.
    pub is_place_in_epoch: bool,
    /// It counts how far an evaluation is, by the form of the line: `Test: [10/16]`.
    pub counts_evaluation: bool,
    /// It is a drawing of a bar of Rich, or below one: its values are drawn repeatedly.
    pub is_drawn: bool,
    /// It is a line of text with a place and a measure: those that are indented below it may continue it.
    pub may_be_continued: bool,
    pub values: Vec<(String, f64)>,
    /// How many further values the line has that are too many, or whose names are too long.
    pub surplus: u64,
    /// The word before the name of each value, or nothing; only of text.
    pub words_before: Vec<String>,
    /// Which of the values have names of several words without a measure at their end: they count only where the line
    /// says where the script is.
    pub phrases: Vec<usize>,
    /// Values of settings that are shown as such, wherever they are printed: `best params {'C': 1}`.
    pub settings: Vec<(String, f64)>,
    /// What the line shows of commas in numbers.
    pub comma: Option<Comma>,
    /// How many steps the training will make.
    pub total_steps: Option<u64>,
    /// A step of several words or in the plural, which alone may as well be a number of steps.
    pub plural_step: bool,
    /// What few lines have.
    pub beside: Option<Box<Beside>>,
    /// Only its form suggests that it has results: it counts where the training has begun.
    pub is_supposed: bool,
}

/// What few lines have beside their values.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::printed) enum Beside {
    /// A name in brackets and a number in brackets behind it, which is the step or that of a process: `[lfw][2000]XNorm: 21.5`.
    Head { name: String, number: u64 },
    /// The number of the episode of an evaluation, whose values have it as their step: `eval_episode=2, episodic_return=166`.
    Episode { part: &'static str, number: u64 },
    /// Means of an evaluation so far, in brackets behind values, which have these places; and how far it is:
    /// `Test: [39/39] Loss: 6.0 (5.5)`.
    Means { done: u64, total: u64, values: Vec<(usize, f64)> },
}

impl LineValues {
    pub fn take_step(&mut self, whole: Option<u64>, of: Option<u64>) {
        match of {
            Some(of) if self.position.is_none() => (self.position, self.total) = (whole, Some(of)),
            Some(_) => {}
            None => self.step = self.step.or(whole),
        }
    }

    /// How many steps are done by the step that is printed.
    pub fn done_steps(&self) -> Option<u64> {
        self.step.map(|step| step.saturating_add(u64::from(self.is_done_round)))
    }

    /// An object with what the text in it says: of equal names the object has the value, and so it is of the step.
    pub fn with_said(mut self, mut said: Self) -> Self {
        said.values.retain(|(name, _)| self.values.iter().all(|(known, _)| known != name));
        self.values.append(&mut said.values);
        self.settings.append(&mut said.settings);
        self.surplus += said.surplus;
        self.epoch = self.epoch.or(said.epoch);
        self.part_of_epoch = self.part_of_epoch.or(said.part_of_epoch);
        if self.step.is_some() || self.early_step.is_some() || !said.has_place() {
            return self;
        }
        let Self { values, settings, surplus, epoch, part_of_epoch, .. } = self;
        Self { values, settings, surplus, epoch, part_of_epoch, words_before: Vec::new(), ..said }
    }

    /// A value of text.
    pub fn take_value(&mut self, name: String, value: f64, word_before: &str) {
        self.values.push((name, value));
        self.words_before.push(word_before.to_owned());
    }

    /// A number that may be the step as well as another one in the line.
    pub fn take_further_step(&mut self, whole: Option<u64>) {
        self.highest_step = self.highest_step.max(whole);
    }

    /// The step of the training, named so: it is better than any other.
    pub fn take_step_of_training(&mut self, whole: Option<u64>) {
        if whole.is_some() && !self.counts_training {
            (self.step, self.counts_training, self.plural_step) = (whole, true, false);
        }
    }

    /// A value whose name is a phrase: `Gen Loss Total : 1.25`.
    pub fn take_phrase(&mut self, name: String, value: f64) {
        self.phrases.push(self.values.len());
        self.take_value(name, value, "");
    }

    /// The mean so far, in brackets behind the last value.
    pub fn take_mean(&mut self, mean: f64) {
        let Some(at) = self.values.len().checked_sub(1) else { return };
        match self.beside.as_deref_mut() {
            Some(Beside::Means { values, .. }) => values.push((at, mean)),
            Some(Beside::Head { .. } | Beside::Episode { .. }) => {}
            None => {
                self.beside = Some(Box::new(Beside::Means { done: 0, total: 0, values: vec![(at, mean)] }))
            }
        }
    }

    /// How far the evaluation is that the line counts; means of anything else say nothing.
    pub fn place_means(&mut self, place: Option<(u64, u64)>) {
        match (self.beside.as_deref_mut(), place) {
            (Some(Beside::Means { done, total, .. }), Some(place)) => (*done, *total) = place,
            (Some(Beside::Means { .. }), None) => self.beside = None,
            _ => {}
        }
    }

    /// At the end of an evaluation the means are its results.
    pub fn take_results(&mut self) {
        let Some(Beside::Means { done, total, values }) = self.beside.as_deref() else { return };
        for (at, mean) in values.iter().filter(|_| done >= total) {
            if let Some((_, value)) = self.values.get_mut(*at) {
                *value = *mean;
            }
        }
    }

    /// Leaves values whose names are phrases out, unless the line says where the script is.
    pub fn check_phrases(&mut self) {
        let phrases = std::mem::take(&mut self.phrases);
        if self.has_place() {
            return;
        }
        for at in phrases.into_iter().rev() {
            self.values.remove(at);
            self.words_before.remove(at);
        }
    }

    /// Gives all values the prefix of the part of the data that they are of.
    pub fn take_part(&mut self, part: Option<&str>) {
        let Some(part) = part.filter(|_| !self.values.is_empty()) else { return };
        (self.position, self.total) = (None, None);
        for (name, _) in &mut self.values {
            *name = names::prefixed(part, name);
        }
    }

    /// The same of the part that a title names.
    pub fn take_titled(&mut self, part: Option<PartName>) {
        let Some(part) = part.filter(|_| !self.values.is_empty()) else { return };
        (self.position, self.total) = (None, None);
        for (name, _) in &mut self.values {
            *name = part.name_of(name);
        }
    }

    /// Whether all values are those of an evaluation.
    pub fn is_judging(&self) -> bool {
        let is_of_evaluation = |(name, _): &(String, f64)| {
            ["val_", "test_", "eval_"].iter().any(|prefix| name.starts_with(prefix))
        };
        !self.values.is_empty() && self.values.iter().all(is_of_evaluation)
    }

    /// Makes values of one name two where the words before them differ: `left loss 1, right loss 2`.
    pub fn part_equal_names(&mut self) {
        let names: Vec<String> = self.values.iter().map(|(name, _)| name.clone()).collect();
        let is_shared = |at: usize| {
            names.iter().zip(&self.words_before).enumerate().any(|(other, (name, word))| {
                other != at && *name == names[at] && *word != self.words_before[at]
            })
        };
        let shared: Vec<usize> =
            (0..self.words_before.len().min(names.len())).filter(|at| is_shared(*at)).collect();
        for at in shared.into_iter().filter(|at| !self.words_before[*at].is_empty()) {
            self.values[at].0 = names::plain(format!("{}_{}", self.words_before[at], names[at]));
        }
    }

    /// Gives a measure the word before its name, where another one in the line has one: `Actor Loss: 0.5 | Unsupervised Loss: 0.25`,
    /// `Test Instance Accuracy: 0.5, Class Accuracy: 0.25`.
    pub fn name_lone_measures(&mut self, tokens: &[Token<'_>]) {
        let begins = |word: &str| {
            let is_it = |at: usize| tokens[at].word() == Some(word);
            (0..tokens.len()).any(|at| is_it(at) && (at == 0 || matches!(tokens[at - 1], Token::Other(_))))
        };
        for at in 0..self.values.len().min(self.words_before.len()) {
            let (name, word) = (&self.values[at].0, &self.words_before[at]);
            if !names::may_begin_name(word) || names::meaning_of(name) != Meaning::Measure {
                continue;
            }
            let is_other = |(other, _): &(String, f64)| {
                let part = other.strip_suffix(name.as_str()).and_then(|part| part.strip_suffix('_'));
                part.is_some_and(|part| !names::says_whose(part))
            };
            let is_alone = self.values.iter().filter(|(other, _)| other == name).count() == 1;
            if is_alone && (name == "loss" || begins(word)) && self.values.iter().any(is_other) {
                self.values[at].0 = names::plain(format!("{word}_{name}"));
            }
        }
    }

    /// A value that is only named the best is the one of the measure before it: `psnr: 28.4 Best: 29.5`. CatBoost's is
    /// beside the one of the test.
    pub fn name_best(&mut self) {
        for at in (1..self.values.len()).filter(|_| !self.is_done_round) {
            if self.values[at].0 == names::BEST {
                self.values[at].0 = names::prefixed(names::BEST, &self.values[at - 1].0);
            }
        }
    }

    /// Values behind the best one of a line that begins with it are the best ones, too, unless the line has the measure a second time:
    /// `Best Instance Accuracy: 0.75, Class Accuracy: 0.5`.
    pub fn name_best_of(&mut self, tokens: &[Token<'_>]) {
        let heads_best = matches!(tokens, [Token::Word(names::BEST), Token::Word(first), ..] if !names::names_settings(first));
        // `best metric, acc: 0.5` has its head in its names.
        let heads_best =
            heads_best && tokens.iter().find(|token| token.word().is_none()) != Some(&Token::Other(','));
        let says_now =
            |token: &Token<'_>| matches!(token, Token::Word("current" | "cur" | "last" | "now" | "this"));
        if !heads_best || tokens.iter().any(says_now) {
            return;
        }
        let measure = |at: usize| self.values[at].0.trim_start_matches("best_");
        if (1..self.values.len()).all(|at| (0..at).all(|before| measure(before) != measure(at))) {
            let is_measure =
                |name: &str| names::meaning_of(name) == Meaning::Measure && !names::is_of_optimizer(name);
            for (name, _) in self.values.iter_mut().filter(|(name, _)| is_measure(name)) {
                *name = names::prefixed(names::BEST, name);
            }
        }
    }

    /// Whether it says where the script is.
    pub fn has_place(&self) -> bool {
        let has_step = self.step.is_some() || self.position.is_some();
        has_step || self.epoch.is_some() || self.part_of_epoch.is_some() || self.is_early()
    }

    /// Whether it is at a step below 0. Beside settings such a number is one of them: `{'lr': 0.1, 'epoch': -1}`.
    pub fn is_early(&self) -> bool {
        let is_heading_or_measured = || self.values.is_empty() || self.meaning() == Some(Meaning::Measure);
        self.early_step.is_some() && is_heading_or_measured()
    }

    /// Leaves a step below 0 out of a line without values unless it is a heading: `epoch: -1` is a setting.
    pub fn check_early(&mut self, is_heading: bool) {
        self.early_step = self.early_step.filter(|_| is_heading);
    }

    /// Makes settings of all values, which are at no place of the training then.
    pub fn into_settings(mut self) -> Self {
        let mut settings = std::mem::take(&mut self.settings);
        settings.append(&mut self.values);
        Self { settings, total_steps: self.total_steps, ..Self::default() }
    }

    /// Whether it has values of metrics or of settings.
    pub fn has_values(&self) -> bool {
        !self.values.is_empty() || !self.settings.is_empty()
    }

    /// What the name with the strongest meaning means.
    pub fn meaning(&self) -> Option<Meaning> {
        self.values.iter().map(|(name, _)| names::meaning_of(&name.to_lowercase())).max()
    }
}
