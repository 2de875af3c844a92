//! Which step printed values belong to.
//!
//! A line that names its step has it. Bars and counts such as `Step [100/600]` go through the same steps again in each
//! epoch; [`Track`] makes one growing step of them: from the epoch where it is named, or by adding up what went before. Steps without a
//! total that begin again are [`PrintedCourse`]'s.
//! A line that names none has the last known step of the script. While a bar is drawn such a line waits for the next
//! drawing, which shows where it was printed: bars are drawn ten times a second at most. Behind a drawing, on its line,
//! it has the step of that one.

mod bars;
mod course;
mod track;

use std::mem::take;

use trackway_core::MetricStep;

use course::Counts;
pub use course::PrintedCourse;
use track::{Track, changes_seldom};

use super::lexical::named::{Beside, LineValues};
use super::lexical::names::{self, Meaning};
use super::{PrintedMetrics, VALUES_MAX};

/// So many lines without a step wait for the next drawing.
const HELD_MAX: usize = 64;
/// So many steps apart are ranks that print side by side, at most.
const RANKS_APART: u64 = 3;
/// So many values of one measure, behind a bar that is at its end, are those of a training that the bar does not show.
const REPEATED: usize = 3;
/// So many lines with values show that a script names its steps in them.
const NAMING_LINES: u8 = 2;
/// The name of the counts in lines: `[100/600]`.
const A_COUNT: &str = "a count";

/// Whether all values of a line change once an epoch.
fn is_of_evaluation(named: &LineValues) -> bool {
    named.values.iter().all(|(name, _)| changes_seldom(name))
}

/// Takes values into a report that said them before, for another reader: other names are beside the very same value of
/// a measure. What is said again may have more digits.
fn take_same_report(said: &mut [(String, f64)], values: &mut Vec<(String, f64)>) {
    let is_new = |(name, _): &(String, f64)| said.iter().all(|(known, _)| known != name);
    let is_same = |(name, value): &(String, f64)| {
        let is_equal = |(known, was): &(String, f64)| known == name && was.to_bits() == value.to_bits();
        let is_measure = || names::meaning_of(&name.to_lowercase()) == Meaning::Measure;
        *value != 0.0 && said.iter().any(is_equal) && is_measure()
    };
    if !values.iter().any(is_new) || !values.iter().any(is_same) {
        return;
    }
    for (name, value) in said {
        if let Some(at) = values.iter().position(|(known, _)| known == name) {
            *value = values.remove(at).1;
        }
    }
}

/// No training reaches a step beyond this one, not even if tokens are counted: a line with such a step has no metrics.
const STEP_MAX: u64 = 1_000_000_000_000_000;

/// How the steps of further lines of one form are found, as long as no other line is read between them that has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Further {
    /// They name their steps.
    WithSteps { counts: Counts, is_judging: bool },
    /// They are records that have parts of epochs and the names of the record before.
    Records,
    /// As of lines by themselves.
    Lines,
}

/// The first and the highest of printed numbers.
#[derive(Debug, Default)]
struct Range(Option<(u64, u64)>);

impl Range {
    /// Takes the next one. Whether the numbers begin again; ranks that print side by side are a few steps apart.
    fn falls_at(&mut self, number: u64) -> bool {
        let (first, highest) = self.0.unwrap_or((number, number));
        self.0 = Some((first.min(number), highest.max(number)));
        number <= first && highest > first.saturating_add(RANKS_APART)
    }
}

/// Where the script is.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// The one seen last is last.
    tracks: Vec<Track>,
    /// The name and total of the bar that shows the script's position.
    leader: Option<(String, Option<u64>)>,
    at: Option<u64>,
    /// The step below 0 that a line named, up to the next line that says where the script is.
    early: Option<MetricStep>,
    /// Steps that begin again in each epoch, and records that have parts of epochs.
    course: PrintedCourse,
    /// The steps that are printed without an epoch.
    range: Range,
    /// The epochs that are the steps of their values.
    epochs: Range,
    /// The number of the first epoch, from the attempt before.
    known_first: Option<u64>,
    /// Records with parts of epochs are counted: nothing says a step.
    counts_records: bool,
    /// The names of the values of the record counted last.
    record_names: Vec<String>,
    /// The epoch that was named last.
    epoch: Option<u64>,
    /// The script has shown a place or a measure: what it prints from now on is about its training.
    has_begun: bool,
    /// Something finer than epochs has been seen.
    is_finer_than_epochs: bool,
    /// The first round that was printed when it was done. R's package of XGBoost counts rounds from 1.
    first_round: Option<u64>,
    /// Values have steps that are finer than epochs. Until then the epoch in a line counts, not how far a bar is that shows no values.
    has_finer_values: bool,
    /// Epochs are the steps although a bar is drawn: one without values does not lead.
    leads_by_epochs: bool,
    /// The leader's bar is not at its end: it will be redrawn.
    leader_is_drawn: bool,
    /// The first of the two numbers of a batch is the epoch.
    batches_have_epochs: bool,
    /// What is read is behind a drawing, on its line.
    is_behind_drawing: bool,
    /// So many lines with values had steps; no more are counted than are needed.
    naming_lines: u8,
    /// The last line, if it was behind a drawing: the next one may be the same report.
    behind: Option<PrintedMetrics>,
    /// What bars of Rich show of names whose values change once an epoch.
    drawn: Vec<(String, f64)>,
    held: Vec<Vec<(String, f64)>>,
    /// The leader's bar was redrawn after lines behind its end: they belong to it.
    leader_returns: bool,
    /// A bar of an evaluation was drawn since the leader's.
    has_judged: bool,
    /// Keras has begun an epoch and not drawn its bar yet.
    epoch_begun: bool,
    keras_total: Option<u64>,
}

impl Steps {
    /// `Batch 3/0`, as WeNet counts, is the first batch of epoch 3: nothing is one of none. From then on all batches
    /// with a number before them are read so.
    fn part_batches(&mut self, named: &mut LineValues) {
        if !named.counts_batches || named.epoch.is_some() {
            return;
        }
        self.batches_have_epochs |= named.total == Some(0);
        if self.batches_have_epochs && named.total.is_some() {
            (named.epoch, named.position, named.total) = (named.position, named.total, None);
        }
    }

    /// Values behind `[lfw][2000]` are of that part of the data if the number is the step. A process may write its
    /// number there: then only measures count.
    fn name_by_head(&self, named: &mut LineValues) {
        let Some(Beside::Head { name: head, number }) = named.beside.as_deref() else { return };
        if self.at == Some(*number) {
            let head = format!("{head}/");
            named.values.iter_mut().for_each(|(name, _)| name.insert_str(0, &head));
        } else if named.meaning() != Some(Meaning::Measure) {
            named.values.clear();
        }
    }

    /// A line with values.
    pub fn line(&mut self, named: &mut LineValues, found: &mut dyn FnMut(&PrintedMetrics)) {
        self.part_batches(named);
        if named.beside.is_some() {
            self.name_by_head(named);
        }
        if let Some(round) = named.step.filter(|_| named.is_done_round) {
            named.is_done_round = *self.first_round.get_or_insert(round) != 1;
        }
        let episode = match named.beside.as_deref() {
            Some(Beside::Episode { number, .. }) if named.step.is_none() => Some(*number),
            _ => None,
        };
        let numbers = [named.step, named.highest_step, named.epoch, named.position, episode];
        if numbers.into_iter().flatten().any(|number| number > STEP_MAX) {
            return;
        }
        if let Some(step) = episode {
            let metrics = PrintedMetrics::of(step, take(&mut named.values));
            return found(&PrintedMetrics { counts_apart: true, ..metrics });
        }
        self.has_begun = self.has_begun || named.has_place() || named.meaning() == Some(Meaning::Measure);
        if self.is_early(named) {
            return self.early_line(named, found);
        }
        self.see_epoch(named);
        if named.is_drawn {
            self.drop_repeated(&mut named.values);
        }
        if let Some(mut said) = self.behind.take() {
            take_same_report(&mut said.values, &mut named.values);
            found(&said);
        }
        if self.is_second_count(named) {
            named.take_part(Some("eval"));
        }
        if named.step.is_none() && named.position.is_none() {
            self.find_training_bar(named);
        }
        match self.step_of(named) {
            Some(step) => {
                self.release(step, found);
                self.is_at(step);
                if !named.values.is_empty() {
                    self.naming_lines = NAMING_LINES.min(self.naming_lines + 1);
                    found(&PrintedMetrics::of(step, take(&mut named.values)));
                }
            }
            None if named.values.is_empty() => {}
            None => self.line_without_step(named, found),
        }
    }

    /// Whether a line is of a time before the training: it names a step below 0, or names none behind one that does.
    fn is_early(&mut self, named: &LineValues) -> bool {
        if named.has_place() {
            self.early = named.early_step.filter(|_| named.step.is_none() && named.is_early());
        }
        self.early.is_some()
    }

    fn early_line(&mut self, named: &mut LineValues, found: &mut dyn FnMut(&PrintedMetrics)) {
        let Some(step) = self.early.filter(|_| !named.values.is_empty()) else { return };
        found(&PrintedMetrics { step, values: take(&mut named.values), ..PrintedMetrics::default() });
    }

    fn line_without_step(&mut self, named: &mut LineValues, found: &mut dyn FnMut(&PrintedMetrics)) {
        if self.counts_by_epoch(named) {
            self.leave_bar(found);
            self.leads_by_epochs = true;
            let step = self.epoch_as_step(named.epoch.or(self.epoch).unwrap_or(0));
            self.at = Some(step);
            found(&PrintedMetrics::of(step, take(&mut named.values)));
        } else if self.waits_for_drawing() && !(self.has_judged && is_of_evaluation(named)) {
            self.has_finer_values = true;
            if let Some(said) = self.held.last_mut() {
                take_same_report(said, &mut named.values);
            }
            self.held.push(take(&mut named.values));
        } else if self.may_leave_bar(named) && self.held.len() < HELD_MAX {
            self.held.push(take(&mut named.values));
            if self.repeats() {
                self.leave_bar(found);
            }
        } else {
            let step = self.step_without_place(named);
            self.release(step, found);
            let metrics = PrintedMetrics::of(step, take(&mut named.values));
            match self.is_behind_drawing {
                true => self.behind = Some(metrics),
                false => found(&metrics),
            }
        }
    }

    /// The step of a line that is like those before it: nothing waits for it, and its values are taken as they are.
    /// Nothing if it has to be taken as a whole line.
    pub fn plain_line(&mut self, named: &LineValues) -> Option<u64> {
        let numbers = [named.step, named.epoch, named.position];
        let is_too_high = || numbers.into_iter().flatten().any(|number| number > STEP_MAX);
        if self.has_open() || is_too_high() || self.is_second_count(named) {
            return None;
        }
        self.see_epoch(named);
        if named.step.or(named.position).is_none() {
            return self.is_without_bars(named).then(|| self.step_without_place(named));
        }
        let step = Some(named).filter(|_| self.naming_lines == NAMING_LINES);
        let step = step.and_then(|named| self.step_of(named))?;
        self.is_at(step);
        Some(step)
    }

    /// Whether a line is not by itself: another one waits for it, or says its step.
    fn has_open(&self) -> bool {
        self.behind.is_some() || !self.held.is_empty() || self.early.is_some()
    }

    fn see_epoch(&mut self, named: &LineValues) {
        if let Some(epoch) = named.epoch {
            self.course.see_epoch(epoch, named.epoch_counted_from_one);
        }
        self.epoch = named.epoch.or(self.epoch);
    }

    /// How the steps of lines are found that differ from this one in their numbers only; nothing if each has to be read by itself.
    pub fn further(&self, named: &LineValues) -> Option<Further> {
        if self.has_open() {
            return None;
        }
        let is_done = named.is_done_round || named.highest_step.is_some();
        if named.step.is_some() && self.naming_lines == NAMING_LINES && !is_done {
            let counts = if named.counts_training { Counts::Training } else { Counts::Unclear };
            return Some(Further::WithSteps { counts, is_judging: named.is_judging() });
        }
        let is_record = self.counts_records && named.part_of_epoch.is_some() && !named.values.is_empty();
        let is_placed = named.step.or(named.position).or(named.epoch).is_some();
        let has_names = || {
            let mut names =
                named.values.iter().map(|(name, _)| name).filter(|name| *name != "epoch").peekable();
            names.peek().is_some() && self.record_names.iter().eq(names)
        };
        if is_record && !is_placed && has_names() && self.is_without_bars(named) {
            return Some(Further::Records);
        }
        Some(Further::Lines)
    }

    /// The step of such a line; nothing, and nothing is changed, if it has to be read by itself.
    #[inline]
    pub fn further_step(&mut self, further: Further, named: &LineValues) -> Option<u64> {
        match (further, named.step) {
            (Further::WithSteps { counts, is_judging }, Some(step)) => {
                let is_too_high = |number: u64| number > STEP_MAX;
                if is_too_high(step)
                    || named.epoch.is_some_and(is_too_high)
                    || named.position.is_some_and(is_too_high)
                {
                    return None;
                }
                self.see_epoch(named);
                let step = self.named_step(step, None, counts, is_judging);
                self.is_at(step);
                Some(step)
            }
            (Further::Records, _) => {
                let record = self.course.next_record(named.part_of_epoch?, self.at)?;
                self.at = self.at.max(Some(record));
                Some(record)
            }
            _ => self.plain_line(named),
        }
    }

    /// Whether no bar says where a line is that names no step.
    fn is_without_bars(&self, named: &LineValues) -> bool {
        let has_bar = self.leader.is_some() || self.leader_is_drawn || self.is_behind_drawing;
        !has_bar && self.tracks.iter().all(|track| !track.may_train) && !self.counts_by_epoch(named)
    }

    /// The step of a line that names none: without anything finer the epoch is the step; a closing summary belongs to the last step.
    fn step_without_place(&mut self, named: &LineValues) -> u64 {
        let step = match (self.record_of(named), self.at, self.epoch) {
            (Some(record), ..) => record,
            (None, Some(at), _) if self.is_finer_than_epochs || self.counts_records => {
                self.has_finer_values = true;
                at
            }
            (None, _, Some(epoch)) => self.epoch_as_step(epoch),
            (None, at, None) => at.unwrap_or(0),
        };
        self.at = self.at.max(Some(step));
        step
    }

    /// Whether a count is the shorter one behind a count that is at its end, below the heading of the same epoch: it is of an evaluation.
    fn is_second_count(&self, named: &LineValues) -> bool {
        let place = named.position.zip(named.total).filter(|_| named.epoch.or(named.step).is_none());
        let Some((_, total)) = place.filter(|_| self.epoch.is_some() && !named.is_judging()) else {
            return false;
        };
        let first = self.tracks.iter().rfind(|track| track.name == A_COUNT);
        let is_behind =
            |track: &Track| track.total > Some(total) && track.is_at_end() && track.heading == self.epoch;
        first.is_some_and(is_behind) && named.meaning() == Some(Meaning::Measure)
    }

    /// A line with values has this step.
    fn is_at(&mut self, step: u64) {
        self.at = Some(step);
        self.sees_finer();
        self.has_finer_values = true;
    }

    /// Whether the epoch that a line names is its step although a bar is drawn: nothing has a finer one so far. So is
    /// the one of a heading above it, where the bar is at its end. A record that has the epoch as a value counts the
    /// steps of the bar.
    fn counts_by_epoch(&self, named: &LineValues) -> bool {
        let is_headed = self.epoch.is_some() && self.is_finer_than_epochs && !self.leader_is_drawn;
        let is_named = (named.epoch.is_some() || is_headed) && named.part_of_epoch.is_none();
        let is_record = || named.values.iter().any(|(name, _)| name == "epoch");
        let has_bar = self.is_finer_than_epochs || self.leader_is_drawn;
        let is_open = has_bar && !self.has_finer_values && !self.counts_records;
        is_named && is_open && named.meaning() == Some(Meaning::Measure) && !is_record()
    }

    /// The epoch as the step.
    fn epoch_as_step(&mut self, epoch: u64) -> u64 {
        if self.epochs.falls_at(epoch) {
            self.course.fell_back();
        }
        self.course.epoch_is_step(epoch);
        epoch
    }

    /// Drops what a bar of Rich shows of an evaluation or an epoch and has shown before.
    fn drop_repeated(&mut self, values: &mut Vec<(String, f64)>) {
        values.retain(|(name, value)| {
            let known = self.drawn.iter_mut().find(|(known, _)| known == name);
            if let Some((_, known)) = known {
                return std::mem::replace(known, *value).to_bits() != value.to_bits();
            }
            if changes_seldom(name) && self.drawn.len() < VALUES_MAX {
                self.drawn.push((name.clone(), *value));
            }
            true
        });
    }

    /// The growing step of a printed one. `highest`: the highest of several numbers that may be the step.
    fn named_step(&mut self, step: u64, highest: Option<u64>, counts: Counts, is_judging: bool) -> u64 {
        if self.epoch.is_none() && !is_judging && self.range.falls_at(step) {
            self.course.fell_back();
        }
        let step = highest.map_or(step, |other| other.max(step));
        self.course.step(self.epoch, step, counts, is_judging)
    }

    /// The growing step that a line names.
    fn step_of(&mut self, named: &LineValues) -> Option<u64> {
        let (epoch, is_judging) = (named.epoch.or(self.epoch), named.is_judging());
        if let Some(step) = named.done_steps() {
            let counts = if named.counts_training { Counts::Training } else { Counts::Unclear };
            let highest = named.highest_step.filter(|_| named.epoch.is_some() && counts == Counts::Unclear);
            return Some(self.named_step(step, highest, counts, is_judging));
        }
        let done = named.position?;
        if named.total.is_none() && epoch.is_some() {
            return Some(self.course.step(epoch, done, Counts::Epoch, is_judging));
        }
        let passed = self.epoch.map(|epoch| epoch.saturating_sub(self.course.first_epoch.unwrap_or(1)));
        let is_first = self.tracks.iter().all(|track| track.name != A_COUNT);
        let (is_unexplained, heading) = (epoch.is_none() && !is_judging, self.epoch);
        let epoch = named.epoch.map(|epoch| (epoch, named.epoch_counted_from_one));
        let track = self.track((A_COUNT, named.total));
        if named.is_place_in_epoch {
            track.counted.is_of_epoch();
        }
        let falls = done < track.done;
        let step = track.count(done, epoch, heading, passed.filter(|_| is_first));
        let counted = track.counted;
        if falls && is_unexplained {
            self.course.fell_back();
        }
        if !is_judging {
            self.course.remember(counted);
        }
        Some(step)
    }

    /// The number of a record that names a part of an epoch where nothing finer is known, and of those after it.
    fn record_of(&mut self, named: &LineValues) -> Option<u64> {
        self.counts_records |= named.part_of_epoch.is_some() && !self.is_finer_than_epochs;
        let epoch = named.part_of_epoch.or(named.epoch.map(|epoch| epoch as f64));
        let epoch = epoch.filter(|_| self.counts_records)?;
        let names = || named.values.iter().map(|(name, _)| name).filter(|name| *name != "epoch");
        let is_next =
            self.record_names.len() > VALUES_MAX || names().any(|name| self.record_names.contains(name));
        let record = self.course.record(epoch, is_next);
        let begins = self.at != Some(record);
        if begins && self.record_names.iter().eq(names()) {
            return Some(record);
        }
        if begins {
            self.record_names.clear();
        }
        self.record_names.extend(names().cloned());
        Some(record)
    }

    /// How the steps are counted, for the next attempt.
    pub fn course(&self) -> PrintedCourse {
        self.course
    }

    /// Counts on from an earlier attempt.
    pub fn count_on(&mut self, from: PrintedCourse) {
        (self.course, self.known_first) = (from, from.first_epoch);
    }

    /// Whether the training has been at a step.
    pub fn has_reached(&self, step: u64) -> bool {
        self.at.is_some_and(|at| step <= at)
    }

    /// Whether the training has begun, as far as was printed.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Keras and others print that an epoch begins.
    pub fn epoch_begins(&mut self, epoch: u64, found: &mut dyn FnMut(&PrintedMetrics)) {
        self.epoch_begun = true;
        self.has_begun = true;
        self.course.see_epoch(epoch, true);
        self.epoch = Some(epoch).filter(|epoch| *epoch <= STEP_MAX);
        self.report_drawn(found);
    }

    /// What is read next is behind a drawing, on its line, or not any more: the drawing itself shows where it was printed.
    pub fn behind_drawing(&mut self, is_behind: bool) {
        self.is_behind_drawing = is_behind;
    }

    /// Whether the next drawing shows where a line without a step was printed.
    fn waits_for_drawing(&self) -> bool {
        self.leader_is_drawn && !self.is_behind_drawing && self.held.len() < HELD_MAX
    }

    /// A step, or a place in an epoch.
    fn sees_finer(&mut self) {
        self.is_finer_than_epochs = true;
        self.leads_by_epochs = false;
        self.counts_records = false;
        self.course.is_finer();
    }

    /// Everything that still waits.
    pub fn finish(&mut self, found: &mut dyn FnMut(&PrintedMetrics)) {
        if let Some(said) = self.behind.take() {
            found(&said);
        }
        self.report_drawn(found);
        self.release(self.at.unwrap_or(0), found);
    }

    /// Whether lines of the same measure wait: a summary has each once.
    fn repeats(&self) -> bool {
        let is_measured = |name: &str| names::meaning_of(&name.to_lowercase()) == Meaning::Measure;
        let last = self.held.last().and_then(|values| values.iter().find(|(name, _)| is_measured(name)));
        let Some((name, _)) = last else { return false };
        let has_it = |values: &&Vec<(String, f64)>| values.iter().any(|(known, _)| known == name);
        self.held.iter().filter(has_it).count() >= REPEATED
    }

    fn release(&mut self, step: u64, found: &mut dyn FnMut(&PrintedMetrics)) {
        for values in self.held.drain(..) {
            found(&PrintedMetrics::of(step, values));
        }
    }
}
