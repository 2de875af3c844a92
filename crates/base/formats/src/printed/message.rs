//! What the text of a line says, with what is in it: dicts, objects, results of tools.

use serde_json::{Map, Value};

use super::lexical::commas::Comma;
use super::lexical::named::LineValues;
use super::lexical::names::Meaning;
use super::lexical::prefix;
use super::{lines, objects, python, text, tools};

/// A line of a client of Weights & Biases repeats what was logged, at no step.
pub(super) const REPEATING: &str = "wandb:";

/// A message, at whose end may be a dict: `epoch 0: {'accuracy': 0.85}`. `known`: what a comma in a number is, by the lines before.
pub(super) fn read_message(message: &str, known: Option<Comma>) -> Option<LineValues> {
    if let Some(special) = tools::read_trial(message)
        .or_else(|| tools::read_coco(message))
        .or_else(|| tools::read_sentence(message))
    {
        return Some(special);
    }
    if let Some((before, _)) = python::read_last_dicts(message) {
        return said_before(before, known);
    }
    let Some((before, dict)) = dict_at_end(message) else {
        return read_search(message, known).or_else(|| text::read_text(message, known));
    };
    let before = before.trim_end_matches([' ', ':', '-', '|', '=']);
    let mut named = objects::numbers_of(dict);
    objects::name_classes(&mut named, before);
    let is_of_settings = text::heads_settings(before, named.meaning() == Some(Meaning::Measure));
    let place = text::read_before_dict(before);
    if is_of_settings {
        let settings = named.into_settings().settings;
        return Some(LineValues { settings, ..place.unwrap_or_default() }).filter(LineValues::has_values);
    }
    if let Some(place) = place {
        if place.meaning() == Some(Meaning::Measure) {
            let is_new = |(name, _): &(String, f64)| named.values.iter().all(|(known, _)| known != name);
            let before: Vec<(String, f64)> =
                place.values.iter().filter(|value| is_new(value)).cloned().collect();
            named.values.splice(0..0, before);
        }
        named.counts_training |= named.step.is_none() && place.counts_training;
        named.step = named.step.or(place.step);
        named.early_step = named.early_step.or(place.early_step);
        named.epoch = named.epoch.or(place.epoch);
    }
    let has_part = take_part_before(&mut named, before);
    let is_about_training = has_part || named.has_place() || named.meaning() == Some(Meaning::Measure);
    let has_decimals = named.values.iter().any(|(_, value)| value.fract() != 0.0);
    Some(named).filter(|named| named.has_values() && (is_about_training || has_decimals))
}

/// The dict, object or collection at the end of a message, and what is before it.
pub(super) fn dict_at_end(message: &str) -> Option<(&str, Map<String, Value>)> {
    let at_end = message.find('{').filter(|_| message.ends_with('}'));
    let dict = at_end.and_then(|at| Some((&message[..at], python::read_dict(&message[at..])?)));
    dict.or_else(|| python::read_last_collection(message))
}

/// An object with its numbers, and with what the text of a logger in it says.
pub(super) fn read_logged(line: &str) -> Option<LineValues> {
    let fields = objects::fields_of(line)?;
    let text = objects::message_of(&fields).map(prefix::message_of);
    let said = text.filter(|text| !text.starts_with('{')).and_then(|text| read_message(text, None));
    let said = said.filter(|said| !said.is_supposed);
    let named = objects::numbers_of(fields);
    Some(named.with_said(said.unwrap_or_default())).filter(LineValues::has_values)
}

/// The result of a search, whose best parameters are a dict before its score: `best params: {'C': 10} best score: 0.91`.
fn read_search(message: &str, known: Option<Comma>) -> Option<LineValues> {
    let at = message.find('{')?;
    if !text::heads_settings(&message[..at], true) {
        return None;
    }
    let (dict, behind) = python::read_first_dict(&message[at..])?;
    let settings = objects::numbers_of(dict).into_settings().settings;
    let measured = text::read_text(behind.trim_start_matches([' ', ',', ';', '-', '|']), known);
    Some(LineValues { settings, ..measured.unwrap_or_default() }).filter(LineValues::has_values)
}

/// Whether a line of text has values.
pub(super) fn has_values(line: &[u8]) -> bool {
    let line = lines::readable(line).unwrap_or_default();
    read_message(prefix::message_of(&line), None).is_some_and(|named| named.has_values())
}

/// Gives the values of a dict the names of the part of the data that the text before it says, if it does:
/// `OOD test: {'acc': 0.7}`.
fn take_part_before(named: &mut LineValues, before: &str) -> bool {
    if let Some(part) = text::part_of_distribution(before) {
        objects::take_titled(named, part);
        return true;
    }
    let is_measured = named.has_place() || named.meaning() == Some(Meaning::Measure);
    let part = text::part_before(before).or_else(|| text::part_of_line(before).filter(|_| is_measured));
    part.inspect(|part| objects::take_part(named, part)).is_some()
}

/// What a line says before its dicts, if that has values: `step 5: loss 0.5, groups: [{'lr': 0.1}, {'lr': 0.01}]`.
pub(super) fn said_before(before: &str, known: Option<Comma>) -> Option<LineValues> {
    text::read_text(before, known).filter(|named| !named.values.is_empty())
}
