//! Several dicts in one line, as of a history: `[{'epoch': 1, 'loss': 0.5}, {'epoch': 2, 'loss': 0.25}]`.

use std::collections::HashSet;

use super::lexical::commas::Comma;
use super::lexical::named::Named;
use super::lexical::names::Meaning;
use super::lexical::prefix;
use super::{LeftOutKind, Printed, PrintedMetrics, Reading, objects, python, text};

/// What the dicts of a line are together.
enum Dicts {
    /// Each has measures and a place that no other has.
    Placed(Vec<Named>),
    /// None has a place, and no name is in two of them.
    One(Box<Named>),
    /// So many have measures, and nothing shows what each of them is of.
    Unread(u64),
}

impl Dicts {
    /// `is_alone`: the line has nothing else.
    fn of(dicts: Vec<Named>, is_alone: bool) -> Self {
        let measured = dicts.iter().filter(|dict| dict.meaning() == Some(Meaning::Measure)).count();
        let mut places = HashSet::new();
        let has_place = |dict: &Named| dict.step.or(dict.epoch).is_some();
        let has_other_place = |dict: &Named| has_place(dict) && places.insert((dict.epoch, dict.step));
        if is_alone && measured == dicts.len() && dicts.iter().all(has_other_place) {
            return Self::Placed(dicts);
        }
        let mut names = HashSet::new();
        let all = || dicts.iter().flat_map(|dict| &dict.values);
        let is_one = !dicts.iter().any(Named::has_place) && all().all(|(name, _)| names.insert(name));
        match is_alone && is_one {
            true => Self::One(Box::new(Named { values: all().cloned().collect(), ..Named::default() })),
            false => Self::Unread(measured as u64),
        }
    }
}

/// Gives the values of a dict the names of the part of the data that the text before it says, if it does:
/// `OOD test: {'acc': 0.7}`.
pub(super) fn take_part_before(named: &mut Named, before: &str) -> bool {
    if let Some(part) = text::part_of_distribution(before) {
        objects::take_titled(named, part);
        return true;
    }
    let is_measured = named.has_place() || named.meaning() == Some(Meaning::Measure);
    let part = text::part_before(before).or_else(|| text::part_of_line(before).filter(|_| is_measured));
    part.inspect(|part| objects::take_part(named, part)).is_some()
}

/// What a line says before its dicts, if that has values: `step 5: loss 0.5, groups: [{'lr': 0.1}, {'lr': 0.01}]`.
pub(super) fn said_before(before: &str, known: Option<Comma>) -> Option<Named> {
    text::read_text(before, known).filter(|named| !named.values.is_empty())
}

impl Reading {
    /// Takes a line that has several dicts. Whether it does, and nothing else in it is left to be read.
    pub(super) fn take_dicts(
        &mut self,
        output: Printed,
        line: &str,
        found: &mut dyn FnMut(&PrintedMetrics),
    ) -> bool {
        let message = prefix::message_of(line);
        let Some((before, dicts)) = python::read_last_dicts(message) else { return false };
        if let Some(mut ended) = self.tables[output as usize].ended_box(message) {
            self.steps.line(&mut ended, found);
        }
        let dicts = dicts.into_iter().map(objects::numbers_of).collect();
        match Dicts::of(dicts, before.trim().is_empty()) {
            Dicts::Placed(dicts) => {
                for dict in dicts {
                    self.end_title(output, &dict);
                    self.values(dict, found);
                }
            }
            Dicts::One(mut dict) => {
                if let Some(part) = self.part[output as usize].as_mut().filter(|part| part.is_titled()) {
                    part.see_row();
                    objects::take_titled(&mut dict, part.prefix);
                }
                self.values(*dict, found);
            }
            Dicts::Unread(count) => {
                self.leave_out(LeftOutKind::UnreadRows, count);
                return said_before(before, self.commas[output as usize].comma()).is_none();
            }
        }
        true
    }
}
