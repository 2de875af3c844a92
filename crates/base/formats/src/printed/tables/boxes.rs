//! Boxes of names and values: `| ep_rew_mean | 22.7 |` of Stable-Baselines, between bars, drawn bars or blanks.

use super::super::lexical::names;
use super::super::lexical::part_name::PartName;
use super::super::lexical::tokens::number_of;
use super::super::{NAME_BYTES_MAX, VALUES_MAX};
use super::columns::{Column, NAME_WORDS_MAX};

/// The rows of a box that name its step, the best first.
const STEP_ROWS: [&str; 15] = [
    "total_timesteps", "num_timesteps", "timestepssofar", "totalenvinteracts", "totalenvsteps",
    "num_env_steps_sampled", "timesteps_total", "training_iteration", "global_step", "step", "steps",
    "iterations", "iteration", "itr", "epoch",
];
/// A rule above a box is at least so long.
const RULE_BYTES_MIN: usize = 8;
/// A box that is being read.
#[derive(Debug, Default)]
pub(super) struct Boxed {
    pub group: String,
    /// It has no bars: names and values are below a rule of two parts.
    pub is_plain: bool,
    /// Its bars are drawn. Like one without bars it need not have a step.
    pub is_drawn: bool,
    /// The part of the data in the title above it. It need not have a step either.
    pub title: Option<PartName>,
    /// Its heading says that it shows settings.
    pub is_of_settings: bool,
    pub values: Vec<(String, f64)>,
    /// How good the row is that names the step, and the step.
    pub step: Option<(usize, u64)>,
}

impl Boxed {
    pub fn take(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.group = name.trim_end_matches('/').to_owned();
            return;
        }
        let column = Column::of_row(name);
        let Some(number) = column.value(value).filter(|_| !self.is_of_settings) else { return };
        let name = column.name.as_str();
        let last = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        if let Some(place) = STEP_ROWS.iter().position(|row| *row == last) {
            if self.step.is_none_or(|(known, _)| place < known) && number >= 0.0 {
                self.step = Some((place, number as u64));
            }
            return;
        }
        if self.group.is_empty() && !names::may_be_metric(&last) {
            return;
        }
        let name = match self.group.is_empty() {
            true => name.to_owned(),
            false => format!("{}/{name}", self.group),
        };
        if self.values.len() < VALUES_MAX && name.len() <= NAME_BYTES_MAX {
            self.values.push((name, number));
        }
    }
}

/// `|    ep_rew_mean     | 22.7     |`; the value of a group's heading is empty.
pub(super) fn row_of_box(line: &str) -> Option<(&str, &str)> {
    let inside = line.strip_prefix('|')?.strip_suffix('|')?;
    let (name, value) = inside.split_once('|')?;
    let (name, value) = (name.trim(), value.trim());
    let fits = !value.contains('|') && !name.is_empty() && !name.contains(' ');
    fits.then_some((name, value))
}

/// `| episode_len_mean            195.2 |`, as between drawn bars.
pub(super) fn row_of_spaced(line: &str) -> Option<(&str, &str)> {
    let inside = line.strip_prefix('|')?.strip_suffix('|')?.trim();
    let (name, value) = inside.split_once("  ")?;
    let value = value.trim_start();
    let is_name = name.starts_with(char::is_alphabetic) && !name.contains([' ', ':', '=', '|']);
    (is_name && !value.contains([' ', '|'])).then_some((name, value))
}

/// `| Trial PPO_00000 config |`
pub(super) fn heads_settings(line: &str) -> bool {
    let inside = line.trim_matches('|').trim();
    let last = inside.rsplit(' ').next().unwrap_or(inside);
    !inside.contains(['|', ':', '=']) && names::names_settings(&last.to_lowercase())
}

/// `Evaluation/AverageReturn   22.5`; a name may have several words.
pub(super) fn row_of_plain(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.trim_end().rsplit_once([' ', '\t'])?;
    let is_name = name.starts_with(char::is_alphabetic)
        && name.len() <= NAME_BYTES_MAX
        && !name.contains([':', '=', '|', ',']);
    number_of(value).filter(|_| is_name)?;
    let words: Vec<&str> = name.split_whitespace().take(NAME_WORDS_MAX + 1).collect();
    (words.len() <= NAME_WORDS_MAX).then(|| (words.join("_"), value))
}

/// `---------------  --------`
pub(super) fn is_rule_of_plain(line: &str) -> bool {
    let mut parts = line.split_ascii_whitespace();
    let is_part = |part: Option<&str>| part.is_some_and(|part| part.bytes().all(|letter| letter == b'-'));
    line.len() >= RULE_BYTES_MIN && is_part(parts.next()) && is_part(parts.next()) && parts.next().is_none()
}

/// `---------------------`
pub(super) fn is_rule_of_box(line: &str) -> bool {
    line.len() >= RULE_BYTES_MIN && line.bytes().all(|letter| letter == b'-')
}
