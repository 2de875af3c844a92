//! Several dicts in one line, as of a history: `[{'epoch': 1, 'loss': 0.5}, {'epoch': 2, 'loss': 0.25}]`.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use trackway_core::MetricStep;

use super::lexical::named::LineValues;
use super::lexical::names::{self, Meaning};
use super::lexical::prefix;
use super::message::said_before;
use super::{LeftOutKind, Printed, PrintedFound, PrintedMetrics, ReaderState, metric_step, objects, python};

/// The values of so many names are remembered, and so many of each.
const NAMES_MAX: usize = 256;
const POINTS_MAX: usize = 512;
/// Values with fewer decimals are taken as rounded to so many: `0.50` is read as 0.5.
const DECIMALS_MIN: usize = 2;

/// The last values that were printed of each name, with their steps. What is found is seen where it is given out.
#[derive(Debug, Default)]
pub(super) struct SeenValues(Mutex<HashMap<String, VecDeque<(MetricStep, f64)>>>);

/// What was printed before of a value in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrintedBefore {
    /// The value.
    Same,
    /// Another one, or that is not remembered.
    Other,
    Nothing,
}

impl SeenValues {
    pub fn see(&self, found: &PrintedFound<'_>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut see = |name: &str, points: &mut dyn Iterator<Item = (MetricStep, f64)>| {
            if seen.len() < NAMES_MAX && !seen.contains_key(name) {
                seen.insert(name.to_owned(), VecDeque::new());
            }
            let Some(known) = seen.get_mut(name) else { return };
            for point in points {
                known.truncate(POINTS_MAX - 1);
                known.push_front(point);
            }
        };
        match found {
            PrintedFound::One(metrics) => {
                for (name, value) in &metrics.values {
                    see(name, &mut std::iter::once((metrics.step, *value)));
                }
            }
            PrintedFound::Run(run) => {
                let last = run.steps.len().saturating_sub(POINTS_MAX);
                for (at, name) in run.names.iter().enumerate() {
                    let values = run.values.iter().skip(at).step_by(run.names.len());
                    let steps = run.steps.iter().map(|step| metric_step(*step));
                    see(name, &mut steps.zip(values.copied()).skip(last));
                }
            }
        }
    }

    /// What was printed of a name at a step, or anywhere, also under the name that it has in text.
    fn before(&self, name: &str, value: f64, step: Option<MetricStep>) -> PrintedBefore {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = [name, &names::plain(name.to_lowercase())].map(|name| seen.get(name));
        let points = || known.into_iter().flatten().flatten();
        let here = || points().filter(|(at, _)| step.is_none_or(|step| *at == step));
        if here().any(|(_, known)| is_same(*known, value)) {
            return PrintedBefore::Same;
        }
        let is_forgotten = match points().next() {
            Some(_) => known.into_iter().flatten().any(|points| points.len() >= POINTS_MAX),
            None => seen.len() >= NAMES_MAX,
        };
        if here().next().is_some() || is_forgotten { PrintedBefore::Other } else { PrintedBefore::Nothing }
    }
}

/// Whether two values are one, as far as both were printed.
fn is_same(a: f64, b: f64) -> bool {
    let (apart, is_equal) = ((a - b).abs(), a == b || (a.is_nan() && b.is_nan()));
    if is_equal || apart.is_nan() || apart > 0.1 {
        return is_equal;
    }
    let decimals = |value: f64| value.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let decimals = decimals(a).min(decimals(b)).max(DECIMALS_MIN);
    apart <= 0.501 * 0.1_f64.powi(decimals as i32)
}

/// What the dicts of a line are together.
enum Dicts {
    /// Each has measures and a place that no other has.
    Placed(Vec<LineValues>),
    /// None has a place, and no name is in two of them.
    One(Box<LineValues>),
    /// So many have measures, and nothing shows what each of them is of.
    Unread(u64),
}

impl Dicts {
    /// `is_alone`: the line has nothing else.
    fn of(dicts: Vec<LineValues>, is_alone: bool) -> Self {
        let measured = dicts.iter().filter(|dict| dict.meaning() == Some(Meaning::Measure)).count();
        let mut places = HashSet::new();
        let has_place = |dict: &LineValues| dict.step.or(dict.epoch).is_some();
        let has_other_place = |dict: &LineValues| has_place(dict) && places.insert((dict.epoch, dict.step));
        if is_alone && measured == dicts.len() && dicts.iter().all(has_other_place) {
            return Self::Placed(dicts);
        }
        let mut names = HashSet::new();
        let all = || dicts.iter().flat_map(|dict| &dict.values);
        let is_one = !dicts.iter().any(LineValues::has_place) && all().all(|(name, _)| names.insert(name));
        match is_alone && is_one {
            true => {
                Self::One(Box::new(LineValues { values: all().cloned().collect(), ..LineValues::default() }))
            }
            false => Self::Unread(measured as u64),
        }
    }
}

impl ReaderState {
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
                    match self.has_passed(&dict) {
                        true => self.take_passed(dict, found),
                        false => self.values(dict, found),
                    }
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

    /// Whether the training has been where a dict of a history is.
    fn has_passed(&self, dict: &LineValues) -> bool {
        let place = dict.step.or(dict.epoch);
        place.is_some_and(|place| self.steps.has_reached(place))
    }

    /// Takes a dict of a history whose place the training has passed: what was printed there already is not recorded
    /// again, and the training stays where it is. A further value is at its place if that is a step; else nothing shows
    /// at which step it is. A row with such a value, or with another one than was printed there, is counted.
    fn take_passed(&mut self, dict: LineValues, found: &mut dyn FnMut(&PrintedMetrics)) {
        let course = self.steps.course();
        let step = match dict.step {
            Some(step) => Some(step).filter(|_| !course.begins_again()),
            None => dict.epoch.filter(|epoch| course.steps_are(Some(*epoch)).is_some()),
        };
        let step = step.map(metric_step);
        let (mut values, mut is_unread) = (Vec::new(), false);
        for (name, value) in dict.values.into_iter().filter(|(name, _)| name != "epoch") {
            match self.seen.before(&name, value, step) {
                PrintedBefore::Same => {}
                PrintedBefore::Nothing if step.is_some() => values.push((name, value)),
                PrintedBefore::Nothing | PrintedBefore::Other => is_unread = true,
            }
        }
        self.leave_out(LeftOutKind::UnreadRows, u64::from(is_unread));
        if let Some(step) = step.filter(|_| !values.is_empty()) {
            found(&PrintedMetrics { step, values, counts_apart: true, ..PrintedMetrics::default() });
        }
    }
}
