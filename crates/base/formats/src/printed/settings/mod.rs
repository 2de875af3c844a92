//! Settings that a script shows before it trains: blocks of `name = value` and of YAML, a dict of its arguments, the number of steps.

pub(super) mod yaml;

use super::lexical::named::LineValues;
use super::lexical::names::{self, Meaning};
use crate::record::unmarked;

/// So many settings are taken at most.
pub(super) const SETTINGS_MAX: usize = 128;
/// A longer name or value is none.
pub(super) const SETTING_BYTES_MAX: (usize, usize) = (64, 200);
/// So many lines in a row show that they are settings.
const BLOCK_LINES: usize = 3;
/// The name under which the number of steps is known.
const TOTAL_STEPS: &str = "total_steps";

/// What was shown so far.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// Lines that may be the beginning of a block.
    pending: Vec<(String, String)>,
    in_block: bool,
    new: Vec<(String, String)>,
    known: Vec<String>,
    left_out: u64,
}

impl Settings {
    /// Those that were not taken before.
    pub fn take(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.new)
    }

    /// How many were not taken, since they are too many or too long.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The number of steps that the training will make.
    pub fn take_total(&mut self, total: u64) {
        self.put(TOTAL_STEPS.into(), total.to_string());
    }

    /// Values that were shown together.
    pub fn take_values(&mut self, values: &[(String, f64)]) {
        for (name, value) in values {
            self.put(name.clone(), unmarked(*value).to_string());
        }
    }

    /// Takes a line that assigns a value to a name and nothing else; false if it is none or has a measure.
    pub fn take_assignment(&mut self, line: &str) -> bool {
        let Some((name, value)) = assignment(line) else {
            if !line.starts_with('#') {
                self.interrupt();
            }
            return false;
        };
        if names::meaning_of(&name.to_lowercase()) == Meaning::Measure {
            return false;
        }
        self.pending.push((name.into(), value.into()));
        self.in_block |= self.pending.len() >= BLOCK_LINES;
        if self.in_block {
            for (name, value) in std::mem::take(&mut self.pending) {
                self.put(name, value);
            }
        }
        true
    }

    /// Another line came: a block that was open has ended.
    pub fn interrupt(&mut self) {
        self.pending.clear();
        self.in_block = false;
    }

    /// Takes one, unless it was taken before, also under the name that it has in a line that alone has the form of a metric:
    /// `learning_rate` for `lr`.
    pub fn put_named(&mut self, name: String, value: String) {
        if !self.known.contains(&names::plain(name.clone())) {
            self.put(name, value);
        }
    }

    fn put(&mut self, name: String, value: String) {
        let (name_max, value_max) = SETTING_BYTES_MAX;
        let fits = name.len() <= name_max && value.len() <= value_max && self.known.len() < SETTINGS_MAX;
        match self.known.contains(&name) {
            true => {}
            false if fits => {
                self.known.push(name.clone());
                self.new.push((name, value));
            }
            false => self.left_out += 1,
        }
    }
}

/// Calls in a configuration as Python shows it, over several lines: `optimizer = dict(` and the indented lines below it.
#[derive(Debug, Default)]
pub(super) struct OpenCall {
    is_open: bool,
}

impl OpenCall {
    /// Whether no call is open.
    pub fn is_closed(&self) -> bool {
        !self.is_open
    }

    /// Takes a line; whether it is below the beginning of a call.
    pub fn has(&mut self, line: &[u8]) -> bool {
        let text = line.trim_ascii();
        let is_closing = text.iter().all(|byte| matches!(byte, b')' | b']' | b'}' | b','));
        let is_below = self.is_open && matches!(line.first(), Some(b' ' | b'\t' | b')'));
        let opens = !is_below && text.ends_with(b"dict(") && line.first() != Some(&b' ');
        let ends = is_below && is_closing && line.first() == Some(&b')');
        self.is_open = opens || (is_below && !ends);
        is_below
    }
}

/// `learning_rate = 1e-3 # with a comment`
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_name = name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
        && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-'));
    let value = value.split(" #").next().unwrap_or_default().trim();
    let quote = value.chars().next().filter(|letter| matches!(letter, '\'' | '"'));
    let value = match quote {
        Some(quote) => value[1..].strip_suffix(quote).filter(|inside| !inside.contains(quote))?,
        None if value.contains(['=', ' ', ',', '(', '{', '[']) => return None,
        None => value,
    };
    (is_name && !value.is_empty()).then_some((name, value))
}

impl LineValues {
    /// Whether it only repeats settings: no place, no measure, and at least one usual setting.
    pub fn is_echo(&self) -> bool {
        let is_setting = |(name, _): &(String, f64)| names::is_setting(&name.to_lowercase());
        !self.has_place() && self.meaning() < Some(Meaning::Measure) && self.values.iter().any(is_setting)
    }
}
