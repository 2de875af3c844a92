//! A configuration that a script prints as YAML before it trains, as those of Hydra do: `print(OmegaConf.to_yaml(config))`.
//!
//! One line does not show what it is: `loss: 0.5` may be a measure. A block counts once it has sections and either a usual setting or three
//! lines that are no measures; without sections it needs both, and a measure ends it. An empty line ends it in any case.

use super::super::lexical::names::{self, Meaning};
use super::super::lexical::prefix;
use super::super::lines::without_steering;
use super::Settings;
use crate::text::yaml::unquoted;

/// So many lines that are no measures show that a block is a configuration.
const BLOCK_LINES: usize = 3;
/// A section that is deeper ends the block.
const DEPTH_MAX: usize = 16;
/// A block with more lines before it counts, or with more names without indentation, is none.
const LINES_MAX: usize = 256;
/// Names that say where a training is.
const OF_PLACES: [&str; 6] = ["batch", "epoch", "iter", "iteration", "round", "step"];

/// What was printed of a block on one output.
#[derive(Debug, Default)]
pub(in crate::printed) struct YamlBlock {
    /// The sections that are open: how far each is indented, and its name.
    open: Vec<(usize, String)>,
    /// The names without indentation; YAML has each of them once.
    top: Vec<String>,
    /// A list that is being read, or a section that has no line yet.
    list: Option<(String, Vec<String>)>,
    pending: Vec<(String, String)>,
    plain_lines: usize,
    has_setting: bool,
    has_measure: bool,
    is_nested: bool,
}

/// A line of a mapping or of a list.
enum Part<'l> {
    Named(&'l str, Option<&'l str>),
    Item(&'l str),
}

impl YamlBlock {
    /// No block is open.
    pub fn is_at_rest(&self) -> bool {
        self.top.is_empty()
    }

    /// Takes a line; true if it is of a configuration and nothing else.
    pub fn take(&mut self, line: &[u8], settings: &mut Settings) -> bool {
        // Without a colon a line begins no block.
        if self.top.is_empty() && memchr::memchr(b':', line).is_none() {
            return false;
        }
        let text = without_steering(String::from_utf8_lossy(line));
        let text = if self.top.is_empty() { message(&text) } else { &text };
        let body = text.trim_start_matches(' ');
        let is_of_block = match part(body.trim_end()) {
            Some(Part::Item(value)) => self.item(value),
            Some(Part::Named(name, value)) => self.named(text.len() - body.len(), name, value),
            None => false,
        };
        if !is_of_block {
            self.end_list();
        }
        let counts = self.counts();
        if counts {
            self.pending.drain(..).for_each(|(name, value)| settings.put_named(name, value));
        }
        if !is_of_block {
            *self = Self::default();
        }
        is_of_block && counts
    }

    fn counts(&self) -> bool {
        let many = self.plain_lines >= BLOCK_LINES;
        match self.is_nested {
            true => many || self.has_setting,
            false => many && self.has_setting && !self.has_measure,
        }
    }

    fn named(&mut self, indent: usize, name: &str, value: Option<&str>) -> bool {
        self.end_list();
        while self.open.pop_if(|(outer, _)| *outer >= indent).is_some() {}
        let lowercase = name.to_lowercase();
        let is_number = value.is_some_and(|value| value.parse::<f64>().is_ok());
        let is_measure = is_number && names::meaning_of(&lowercase) == Meaning::Measure;
        if indent == 0 {
            let is_taken = self.top.iter().any(|known| known == name);
            let is_place = is_number && OF_PLACES.contains(&name);
            if is_taken || is_place || is_measure && !self.is_nested && self.counts() {
                return false;
            }
            self.top.push(name.to_owned());
        } else if self.open.is_empty() {
            return false;
        }
        self.is_nested |= indent > 0;
        self.has_measure |= is_measure;
        self.plain_lines += usize::from(!is_measure);
        self.has_setting |= names::is_setting(&lowercase);
        let path: String = self.open.iter().map(|(_, outer)| format!("{outer}.")).collect();
        match value {
            Some(value) => self.pending.push((path + name, unquoted(value).to_owned())),
            None => {
                self.list = Some((path + name, Vec::new()));
                self.open.push((indent, name.to_owned()));
            }
        }
        self.open.len() <= DEPTH_MAX && self.pending.len().max(self.top.len()) <= LINES_MAX
    }

    /// A list of mappings has no parameters; its lines are of the block all the same.
    fn item(&mut self, value: &str) -> bool {
        let is_of_block = !self.open.is_empty();
        if let Some((_, values)) = self.list.as_mut().filter(|(_, values)| values.len() < LINES_MAX) {
            values.push(unquoted(value).to_owned());
        }
        is_of_block
    }

    fn end_list(&mut self) {
        if let Some((name, values)) = self.list.take().filter(|(_, values)| !values.is_empty()) {
            self.pending.push((name, values.join(" ")));
        }
    }
}

/// What the line of a log says, without what loggers put before it: `[2026-01-02 10:02:03,123][__main__][INFO] - model:`.
fn message(line: &str) -> &str {
    let message = prefix::message_of(line);
    let behind = message.strip_prefix('[').and_then(|rest| rest.split_once("] - "));
    behind.map_or(message, |(_, text)| text)
}

fn part(body: &str) -> Option<Part<'_>> {
    if let Some(value) = body.strip_prefix("- ") {
        return Some(Part::Item(value));
    }
    let (name, behind) = body.split_once(':')?;
    let is_name = name.starts_with(|letter: char| letter.is_lowercase() || letter == '_')
        && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-' | '/'));
    let value = behind.strip_prefix(' ').map(str::trim).filter(|value| !value.is_empty());
    (is_name && (behind.is_empty() || value.is_some())).then_some(Part::Named(name, value))
}

#[cfg(test)]
mod tests {
    use super::super::super::{Printed, PrintedReader};

    /// The settings and the metrics of what a script printed.
    fn read(text: &str) -> (String, Vec<String>) {
        let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
        let mut take = |text: &[u8]| {
            reader.push(Printed::Stdout, text, |metrics| {
                let values = metrics.values.iter().map(|(name, value)| format!("{name}={value}"));
                found.push(format!("{}: {}", metrics.step, values.collect::<Vec<_>>().join(" ")));
            });
        };
        take(text.as_bytes());
        let settings = reader.take_settings();
        let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (settings.join(" · "), found)
    }

    const CONFIG: &str = "seed: 1\nmodel:\n  _target_: nets.Resnet\n  depth: 18\n  score: 0.5\noptimizer:\n  lr: 0.001\n  betas:\n  - 0.9\n  - 0.999\n\
                          loss: 'mse'\nval_loss: 0.25\ntags: [a, b]\n";
    const EXPECTED: &str = "seed=1 · model._target_=nets.Resnet · model.depth=18 · model.score=0.5 · optimizer.lr=0.001 · \
                            optimizer.betas=0.9 0.999 · loss=mse · val_loss=0.25 · tags=[a, b]";

    /// Proves that the configuration that a script of Hydra prints becomes parameters with the names of its sections,
    /// also behind the prefix of a logger, that none of it is a metric, and that metrics behind it are.
    #[test]
    fn a_printed_configuration_becomes_parameters() {
        let metrics = "step 10: loss 0.5\n";
        let shown = (EXPECTED.to_owned(), vec!["10: loss=0.5".to_owned()]);
        assert_eq!(read(&format!("{CONFIG}\n{metrics}")), shown);
        assert_eq!(read(&format!("[2026-01-02 10:02:03,123][__main__][INFO] - {CONFIG}\n{metrics}")), shown);
        let flat = "lr: 0.001\nname: resnet\nuse_amp: true\nepoch: 1\nloss: 0.5\n";
        assert_eq!(read(flat).0, "learning_rate=0.001 · name=resnet · use_amp=true");
        assert_eq!(read(flat).1.len(), 1);
    }

    /// Proves that what is printed like YAML and is measured stays a metric.
    #[test]
    fn results_are_no_configuration() {
        for text in [
            "results:\n  samples: 100\n  accuracy: 0.5\n",
            "lr: 0.1\nseconds: 3\nmemory: 400\naccuracy: 0.5\n",
            "accuracy: 0.5\nloss: 0.25\n",
        ] {
            let metrics = read(&format!("{text}\nstep 5: loss 1.0\n")).1;
            assert!(metrics.iter().any(|line| line.contains("accuracy=0.5")), "{text}: {metrics:?}");
        }
    }
}
