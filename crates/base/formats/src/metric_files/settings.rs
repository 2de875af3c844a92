//! Configurations as Hydra and Lightning write them: YAML in blocks, flattened with full stops as the parameters of a command are.

use crate::text::yaml::{Leaves, leaves, unquoted};

/// At most so many are taken of one file.
const SETTINGS_MAX: usize = 256;
/// Longer values are cut.
const VALUE_BYTES_MAX: usize = 256;
/// Longer names are left out.
const NAME_BYTES_MAX: usize = 200;

/// What a file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Names and values.
    pub named: Vec<(String, String)>,
    /// Settings that are too many, and lines that are not read.
    pub left_out: u64,
}

impl Settings {
    fn put(&mut self, name: String, value: &str) {
        if self.named.len() >= SETTINGS_MAX || name.len() > NAME_BYTES_MAX || name.is_empty() {
            self.left_out += 1;
            return;
        }
        let end = value.floor_char_boundary(VALUE_BYTES_MAX);
        self.named.push((name, value[..end].to_owned()));
    }
}

/// Reads a configuration. The values of a list are one value, as in a command; a list of sections has no parameters.
#[must_use]
pub fn read_settings(text: &str) -> Settings {
    let Leaves { found, left_out } = leaves(text);
    let mut settings = Settings { left_out, ..Settings::default() };
    for same in
        found.chunk_by(|(one, _), (other, _)| list_of(one).is_some() && list_of(one) == list_of(other))
    {
        let (way, _) = &same[0];
        let values: Vec<&str> = same.iter().map(|(_, value)| unquoted(value)).collect();
        match list_of(way) {
            None if way.contains('[') => settings.left_out += 1,
            list => settings.put(list.unwrap_or(way).to_owned(), &values.join(" ")),
        }
    }
    settings
}

/// The list that a value is of, `a.b` of `a.b[0]`; none if that is in another list.
fn list_of(way: &str) -> Option<&str> {
    let (list, place) = way.strip_suffix(']')?.split_once('[')?;
    (!list.is_empty() && !place.contains('[')).then_some(list)
}

/// The overrides of a command of Hydra: `- model.depth=3`.
#[must_use]
pub fn read_overrides(text: &str) -> Settings {
    let mut settings = Settings::default();
    for item in text.lines().filter_map(|line| line.trim().strip_prefix("- ")) {
        match unquoted(item).split_once('=') {
            Some((name, value)) => settings.put(name.trim_start_matches('+').to_owned(), value),
            None => settings.left_out += 1,
        }
    }
    settings
}
