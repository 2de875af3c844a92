//! Which step printed values belong to.
//!
//! A line that names its step has it. Bars and counts such as `Step [100/600]` go through the same steps again in each
//! epoch; [`Track`] makes one growing step of them: from the epoch where it is named, or by adding up what went before. Steps without a
//! total that begin again are [`PrintedCourse`]'s.
//! A line that names none has the last known step of the script. While a bar is drawn such a line waits for the next
//! drawing, which shows where it was printed: bars are drawn ten times a second at most. Behind a drawing, on its line,
//! it has the step of that one.

use std::mem::take;

use super::bar::{Bar, Purpose};
use super::course::{Counted, Counts, PrintedCourse};
use super::lexical::named::{Beside, Named};
use super::lexical::names::{self, Meaning};
use super::{PrintedMetrics, VALUES_MAX};

/// So many different bars and counts are distinguished; the one that was seen longest ago is forgotten.
const TRACKS_MAX: usize = 16;
/// So many lines without a step wait for the next drawing.
const HELD_MAX: usize = 64;
/// So many steps apart are ranks that print side by side, at most.
const RANKS_APART: u64 = 3;
/// So many values of one measure, behind a bar that is at its end, are those of a training that the bar does not show.
const REPEATED: usize = 3;
/// So many lines with values show that a script names its steps in them.
const NAMING_LINES: u8 = 2;
/// Parts of the description of a bar that goes through the training although lines name their steps.
const OF_TRAINING: [&str; 4] = ["train", "epoch", "step", "iter"];
/// The name of the counts in lines: `[100/600]`.
const A_COUNT: &str = "a count";
/// Parts of names whose values change once an epoch and are drawn at every step: they count when they change.
const SELDOM: [&str; 5] = ["val", "valid", "validation", "test", "eval"];

/// Whether a value of this name changes once an epoch: of an evaluation, or the mean of an epoch as Lightning shows it, `train_loss_epoch`.
fn changes_seldom(name: &str) -> bool {
    let parts = || name.split(['_', '/', '.', '-']);
    let is_mean_of_epoch = parts().count() > 1 && parts().next_back() == Some("epoch");
    is_mean_of_epoch || parts().any(|part| SELDOM.contains(&part))
}

/// Whether all values of a line change once an epoch.
fn is_of_evaluation(named: &Named) -> bool {
    named.values.iter().all(|(name, _)| changes_seldom(name))
}

/// Adds the values that a cut drawing lacks.
fn complete(values: &mut Vec<(String, f64)>, before: Vec<(String, f64)>) {
    let room = VALUES_MAX.saturating_sub(values.len());
    let is_missing = |(name, _): &(String, f64)| values.iter().all(|(shown, _)| shown != name);
    let missing: Vec<(String, f64)> = before.into_iter().filter(is_missing).take(room).collect();
    values.extend(missing);
}

/// Makes values a copy of others, which most often have the same names.
fn copy_values(from: &[(String, f64)], into: &mut Vec<(String, f64)>) {
    if !from.iter().map(|(name, _)| name).eq(into.iter().map(|(name, _)| name)) {
        return from.clone_into(into);
    }
    into.iter_mut().zip(from).for_each(|((_, into), (_, from))| *into = *from);
}

/// A bar of an evaluation has the part of the data in its name and in those of its values.
fn judging_bar(bar: &Bar, whose: &str) -> Bar {
    let mut bar = bar.clone();
    bar.name.push_str(whose);
    // A sanity check is of no part of the data.
    let is_part = names::whose_line(whose).is_some();
    for (name, _) in &mut bar.values {
        if !(name.contains(whose) || (is_part && names::has_part_of_data(name))) {
            *name = format!("{whose}_{name}");
        }
    }
    bar
}

/// The name and the total of a bar or a count.
type Key<'a> = (&'a str, Option<u64>);

fn lent((name, total): &(String, Option<u64>)) -> Key<'_> {
    (name, *total)
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

/// A bar or a count that begins again in each epoch.
#[derive(Debug, Default)]
struct Track {
    name: String,
    total: Option<u64>,
    /// The number of the first epoch: 0 or 1, as far as the script has shown.
    first_epoch: Option<u64>,
    /// Steps of the epochs before.
    before: u64,
    /// The epoch that was drawn last.
    epoch: Option<u64>,
    /// The epoch of the heading above the last count.
    heading: Option<u64>,
    /// The epoch that this bar began with after one of another length, and the steps before it.
    origin: Option<(u64, u64)>,
    done: u64,
    /// Whether it begins again with each epoch that is named.
    counted: Counted,
    has_values: bool,
    /// It is a bar that goes through steps, as far as its drawings show.
    may_train: bool,
    /// It has been at its end.
    has_ended: bool,
    /// The results of an evaluation were printed where it is.
    evaluates: bool,
    /// Measures of the training were printed while it was drawn.
    has_trained: bool,
    /// Values that do not count any more: the next ones, which have the same names, are written over them.
    room: Vec<(String, f64)>,
    /// The newest drawing; it counts when the bar moves on, because values are drawn late.
    pending: Option<PrintedMetrics>,
    /// The width of the terminal cuts it: it may lack values that are shown at other places.
    pending_is_cut: bool,
    /// The last step that a drawing named, and the growing step of its place.
    named: Option<(u64, u64)>,
    /// The values reported last, with those before them that a cut drawing may lack.
    reported: Vec<(String, f64)>,
    reported_step: Option<u64>,
}

/// How the steps of further lines of one form are found, as long as no other line is read between them that has values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Further {
    /// They name their steps.
    Named { counts: Counts, is_judging: bool },
    /// They are records that have parts of epochs and the names of the record before.
    Records,
    /// As of lines by themselves.
    Lines,
    /// They are drawings that move the training's bar on.
    Drawings,
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
    fn part_batches(&mut self, named: &mut Named) {
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
    fn name_by_head(&self, named: &mut Named) {
        let Some(Beside::Head { name: head, number }) = named.beside.as_deref() else { return };
        if self.at == Some(*number) {
            let head = format!("{head}/");
            named.values.iter_mut().for_each(|(name, _)| name.insert_str(0, &head));
        } else if named.meaning() != Some(Meaning::Measure) {
            named.values.clear();
        }
    }

    /// A line with values.
    pub fn line(&mut self, named: &mut Named, found: &mut dyn FnMut(&PrintedMetrics)) {
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
        if let Some(epoch) = named.epoch {
            self.course.see_epoch(epoch, named.epoch_counted_from_one);
        }
        self.epoch = named.epoch.or(self.epoch);
        self.has_begun = self.has_begun || named.has_place() || named.meaning() == Some(Meaning::Measure);
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
            None if self.counts_by_epoch(named) => {
                self.leave_bar(found);
                self.leads_by_epochs = true;
                let step = self.epoch_as_step(named.epoch.or(self.epoch).unwrap_or(0));
                self.at = Some(step);
                found(&PrintedMetrics::of(step, take(&mut named.values)));
            }
            None if self.waits_for_drawing() && !(self.has_judged && is_of_evaluation(named)) => {
                self.has_finer_values = true;
                if let Some(said) = self.held.last_mut() {
                    take_same_report(said, &mut named.values);
                }
                self.held.push(take(&mut named.values));
            }
            None if self.may_leave_bar(named) && self.held.len() < HELD_MAX => {
                self.held.push(take(&mut named.values));
                if self.repeats() {
                    self.leave_bar(found);
                }
            }
            None => {
                let step = self.step_without_place(named);
                self.release(step, found);
                let metrics = PrintedMetrics::of(step, take(&mut named.values));
                match self.is_behind_drawing {
                    true => self.behind = Some(metrics),
                    false => found(&metrics),
                }
            }
        }
    }

    /// The step of a line that is like those before it: nothing waits for it, and its values are taken as they are.
    /// Nothing if it has to be taken as a whole line.
    pub fn plain_line(&mut self, named: &Named) -> Option<u64> {
        let is_open = self.behind.is_none() && self.held.is_empty();
        let numbers = [named.step, named.epoch, named.position];
        let is_too_high = || numbers.into_iter().flatten().any(|number| number > STEP_MAX);
        if !is_open || is_too_high() || self.is_second_count(named) {
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

    fn see_epoch(&mut self, named: &Named) {
        if let Some(epoch) = named.epoch {
            self.course.see_epoch(epoch, named.epoch_counted_from_one);
        }
        self.epoch = named.epoch.or(self.epoch);
    }

    /// How the steps of lines are found that differ from this one in their numbers only; nothing if each has to be read by itself.
    pub fn further(&self, named: &Named) -> Option<Further> {
        if self.behind.is_some() || !self.held.is_empty() {
            return None;
        }
        let is_done = named.is_done_round || named.highest_step.is_some();
        if named.step.is_some() && self.naming_lines == NAMING_LINES && !is_done {
            let counts = if named.counts_training { Counts::Training } else { Counts::Unclear };
            return Some(Further::Named { counts, is_judging: named.is_judging() });
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
    pub fn further_step(&mut self, further: Further, named: &Named) -> Option<u64> {
        match (further, named.step) {
            (Further::Named { counts, is_judging }, Some(step)) => {
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
    fn is_without_bars(&self, named: &Named) -> bool {
        let has_bar = self.leader.is_some() || self.leader_is_drawn || self.is_behind_drawing;
        !has_bar && self.tracks.iter().all(|track| !track.may_train) && !self.counts_by_epoch(named)
    }

    /// The step of a line that names none: without anything finer the epoch is the step; a closing summary belongs to the last step.
    fn step_without_place(&mut self, named: &Named) -> u64 {
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
    fn is_second_count(&self, named: &Named) -> bool {
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
    fn counts_by_epoch(&self, named: &Named) -> bool {
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

    /// Whether a bar that shows no values is drawn beside lines that name their steps: what it goes through is none of them.
    fn is_beside_lines(&self, bar: &Bar) -> bool {
        let is_silent = bar.values.is_empty() && bar.epoch.is_none() && self.leader.is_none();
        let is_of_training = || OF_TRAINING.iter().any(|part| bar.name.contains(part));
        is_silent && self.naming_lines >= NAMING_LINES && !is_of_training()
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
    fn step_of(&mut self, named: &Named) -> Option<u64> {
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
    fn record_of(&mut self, named: &Named) -> Option<u64> {
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
        self.flush_others(None, found);
    }

    /// A drawing of a bar, for this purpose. `names`: the number of the names of its values.
    pub fn bar(
        &mut self,
        bar: &Bar,
        purpose: Purpose,
        names: Option<u32>,
        found: &mut dyn FnMut(&PrintedMetrics),
    ) {
        let epoch = bar.epoch.map(|(epoch, _)| epoch);
        if [Some(bar.done), bar.total, epoch, bar.step].into_iter().flatten().any(|number| number > STEP_MAX)
        {
            return;
        }
        let purpose = if bar.is_keras { self.purpose_of_keras(bar) } else { purpose };
        if let Some(said) = self.behind.take() {
            found(&said);
        }
        match purpose {
            Purpose::Judging(whose) => self.drawing(&judging_bar(bar, whose), purpose, None, found),
            Purpose::Training if self.is_beside_lines(bar) => {
                self.drawing(bar, Purpose::Other, names, found);
            }
            _ => self.drawing(bar, purpose, names, found),
        }
    }

    fn drawing(
        &mut self,
        bar: &Bar,
        purpose: Purpose,
        names: Option<u32>,
        found: &mut dyn FnMut(&PrintedMetrics),
    ) {
        let is_training = purpose == Purpose::Training;
        self.has_begun |= is_training;
        if let Some((epoch, counted_from_one)) = bar.epoch.filter(|_| is_training) {
            self.course.see_epoch(epoch, counted_from_one);
        }
        let total = bar.total.or_else(|| self.total_before(bar).filter(|_| is_training));
        let key = (&*bar.name, total);
        self.flush_others(Some(key), found);
        let at = self.at.unwrap_or(0);
        // A bar over epochs with values of each.
        let counts_epochs =
            purpose == Purpose::Epochs && !self.is_finer_than_epochs && !bar.values.is_empty();
        let origin = self.origin_of(bar, total);
        let track = self.track(key);
        track.origin = origin.or(track.origin);
        let restarted = track.begins_again_at(bar.done);
        // The values of the epoch before, drawn once more.
        let is_repeated = bar.done == 0 && track.shows_already(&bar.values);
        let values = if is_repeated { &[] } else { &bar.values[..] };
        let own_step = track.advance(bar.done, bar.epoch);
        let own_step = track.named_step(bar.step, own_step);
        let step = if is_training || counts_epochs { own_step } else { at };
        track.has_values |= !values.is_empty();
        track.may_train = is_training;
        track.has_ended |= track.is_at_end();
        if restarted || track.pending.as_ref().is_some_and(|pending| pending.step != step) {
            track.tell(found);
        }
        if !values.is_empty() {
            track.draw((step, names), values, bar.is_cut);
        }
        let (has_values, counted) = (track.has_values, track.counted);
        // What was counted through is not known to the next attempt.
        let falls = restarted && bar.epoch.is_none() && !bar.is_keras;
        if is_training {
            self.course.remember(counted);
        }
        self.has_finer_values |= has_values;
        let may_lead = is_training && (has_values || !self.leads_by_epochs);
        self.has_judged |= matches!(purpose, Purpose::Judging(_));
        if may_lead && self.leads(key, has_values) {
            self.has_judged = false;
            self.leader_is_drawn = total.is_none_or(|total| bar.done < total);
            if falls {
                self.course.fell_back();
                self.leader_returns |= !self.held.is_empty();
            }
            self.release(step, found);
            self.at = Some(step);
            self.sees_finer();
        }
    }

    /// Whether drawings that differ from this one in their numbers only do no more than move the bar on that shows where the training is.
    /// `names`: the number of the names of its values.
    pub fn may_move_on(&self, bar: &Bar, names: u32) -> bool {
        let Some((track, others)) = self.tracks.split_last() else { return false };
        let waits = self.behind.is_some() || !self.held.is_empty();
        let are_said = others.iter().all(|other| other.pending.is_none());
        let is_plain = bar.purpose == Purpose::Training && !bar.is_keras && !bar.is_cut && bar.step.is_none();
        let leads = self.leader.as_ref().is_some_and(|leader| track.is(lent(leader)));
        let may_move_on = track.name == bar.name && track.may_move_on(names);
        may_move_on && is_plain && leads && are_said && !waits && !bar.values.is_empty()
    }

    /// Moves the bar on to such a drawing. Where that says the drawing before it, the values become those of that one, and its step is
    /// given back. `None`, and nothing is changed: it has to be read by itself.
    #[inline]
    pub fn move_on(&mut self, bar: &Bar, values: &mut [f64]) -> Option<Option<u64>> {
        let track = self.tracks.last_mut()?;
        let epoch = bar.epoch.map(|(epoch, _)| epoch);
        let is_same =
            bar.total.is_some() && bar.total == track.total && (epoch.is_none() || epoch == track.epoch);
        let is_further = bar.done >= track.done.max(1) && bar.done <= STEP_MAX;
        let before = track.pending.as_ref().map(|pending| pending.step);
        if !is_same || !is_further || track.reported_step == before {
            return None;
        }
        if let Some((epoch, counted_from_one)) = bar.epoch {
            self.course.see_epoch(epoch, counted_from_one);
        }
        let step = track.advance(bar.done, bar.epoch);
        track.has_ended |= track.is_at_end();
        let said = track.redraw(step, values);
        let (counted, is_at_end) = (track.counted, track.is_at_end());
        self.course.remember(counted);
        self.leader_is_drawn = !is_at_end;
        self.has_judged = false;
        self.is_at(step);
        Some(said)
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

    /// The total of a bar that is drawn without one because it is beyond it.
    fn total_before(&self, bar: &Bar) -> Option<u64> {
        let last = self.tracks.last().filter(|track| track.name == bar.name)?;
        last.total.filter(|total| bar.step.is_some() || bar.done >= (*total).max(last.done))
    }

    /// Where the epoch of a bar begins if the one before had another length, as the last one has that a limit of steps cuts.
    fn origin_of(&self, bar: &Bar, total: Option<u64>) -> Option<(u64, u64)> {
        let (epoch, _) = bar.epoch?;
        let last = epoch.checked_sub(1)?;
        let before = self
            .tracks
            .iter()
            .rev()
            .find(|track| track.epoch == Some(last) && track.total != total && track.name == bar.name)?;
        Some((epoch, before.before.saturating_add(before.total?)))
    }

    /// Everything that still waits.
    pub fn finish(&mut self, found: &mut dyn FnMut(&PrintedMetrics)) {
        if let Some(said) = self.behind.take() {
            found(&said);
        }
        self.flush_others(None, found);
        self.release(self.at.unwrap_or(0), found);
    }

    /// `evaluate` draws the same bar as `fit`, but no epoch begins before it.
    fn purpose_of_keras(&mut self, bar: &Bar) -> Purpose {
        if std::mem::take(&mut self.epoch_begun) {
            self.keras_total = bar.total;
            let epoch = self.epoch;
            self.track((&bar.name, bar.total)).begin_epoch(epoch);
            return Purpose::Training;
        }
        let last = self.tracks.iter().find(|track| track.name == bar.name && track.total == bar.total);
        let goes_on = last.is_some_and(|track| bar.done >= track.done) && self.keras_total == bar.total;
        if goes_on { Purpose::Training } else { Purpose::Judging("eval") }
    }

    /// What a bar is drawn for behind a line that says that an evaluation of a part of the data begins: one of the form
    /// of the training's is of it, if it has another length.
    pub fn purpose_below(&self, part: Option<&'static str>, bar: &Bar) -> Purpose {
        let part = part.filter(|_| bar.purpose == Purpose::Training && self.is_beside_leader(bar));
        part.map_or(bar.purpose, Purpose::Judging)
    }

    /// Whether a bar is of the same form as the training's, which shows values, and has another length.
    fn is_beside_leader(&self, bar: &Bar) -> bool {
        let Some(key) = self.leader.as_ref().filter(|_| bar.epoch.is_none()) else { return false };
        let shows_values = || self.tracks.iter().any(|track| track.is(lent(key)) && track.has_values);
        key.0 == bar.name && key.1 != bar.total && shows_values()
    }

    /// The first training bar leads; one that shows values takes over from one that shows none.
    fn leads(&mut self, key: Key<'_>, has_values: bool) -> bool {
        let is_leader = self.leader.as_ref().is_some_and(|leader| lent(leader) == key);
        if !is_leader && (self.leader.is_none() || (has_values && !self.leader_shows_values())) {
            self.leader = Some((key.0.to_owned(), key.1));
            return true;
        }
        is_leader
    }

    fn leader_shows_values(&self) -> bool {
        let leader = self.leader.as_ref().map(lent);
        leader.is_some_and(|leader| self.tracks.iter().any(|track| track.is(leader) && track.has_values))
    }

    /// Whether the bar that leads is at its end and no measures of a training were printed while it was drawn.
    pub fn awaits_bar(&self) -> bool {
        let Some(key) = &self.leader else { return false };
        let is_over = |track: &Track| track.is_at_end() && !track.has_trained && !track.has_values;
        self.tracks.iter().any(|track| is_over(track) && track.is(lent(key)))
    }

    /// A bar over something else may have come first, such as one of an evaluation before the training: it was at its
    /// end before measures of a training were printed. The bar that is drawn when they are leads from then on.
    fn find_training_bar(&mut self, named: &Named) {
        let Some(drawn) = self.tracks.iter().rposition(|track| track.may_train) else { return };
        let is_judged = |name: &str| name.split(['_', '/', '.', '-']).any(|part| SELDOM.contains(&part));
        let names = || named.values.iter().map(|(name, _)| name.to_lowercase());
        let of_training =
            names().any(|name| !is_judged(&name) && names::meaning_of(&name) == Meaning::Measure);
        if !of_training {
            self.tracks[drawn].evaluates |= names().any(|name| is_judged(&name));
            return;
        }
        let Some(key) = &self.leader else { return };
        let Some(first) = self.tracks.iter().position(|track| track.is(lent(key))) else { return };
        let (leader, other) = (&self.tracks[first], &self.tracks[drawn]);
        if !leader.has_ended || (first == drawn && !leader.is_at_end()) {
            self.tracks[first].has_trained = true;
            return;
        }
        // A shorter bar behind it is more likely one of an evaluation behind the training.
        let is_longer = other.total.is_none() || other.total > leader.total || leader.evaluates;
        let is_training = first != drawn && is_longer && !other.is_at_end() && !other.evaluates;
        if is_training && !leader.has_trained && !leader.has_values {
            self.leader = Some((other.name.clone(), other.total));
            self.leader_is_drawn = true;
            self.tracks[drawn].has_trained = true;
        }
    }

    /// Whether the line may be of a training that the bar before it does not show: a bar that ended before the first
    /// measure may be of something else. A closing summary looks the same.
    fn may_leave_bar(&self, named: &Named) -> bool {
        let has_epoch = named.epoch.or(self.epoch).is_some() || named.part_of_epoch.is_some();
        !has_epoch && !self.leader_returns && self.awaits_bar()
    }

    /// Whether lines of the same measure wait: a summary has each once.
    fn repeats(&self) -> bool {
        let is_measured = |name: &str| names::meaning_of(&name.to_lowercase()) == Meaning::Measure;
        let last = self.held.last().and_then(|values| values.iter().find(|(name, _)| is_measured(name)));
        let Some((name, _)) = last else { return false };
        let has_it = |values: &&Vec<(String, f64)>| values.iter().any(|(known, _)| known == name);
        self.held.iter().filter(has_it).count() >= REPEATED
    }

    /// The bar that led is not of the training.
    fn leave_bar(&mut self, found: &mut dyn FnMut(&PrintedMetrics)) {
        (self.leader, self.at, self.is_finer_than_epochs, self.leader_is_drawn) = (None, None, false, false);
        self.release(0, found);
    }

    fn release(&mut self, step: u64, found: &mut dyn FnMut(&PrintedMetrics)) {
        for values in self.held.drain(..) {
            found(&PrintedMetrics::of(step, values));
        }
    }

    fn flush_others(&mut self, but: Option<Key<'_>>, found: &mut dyn FnMut(&PrintedMetrics)) {
        for track in &mut self.tracks {
            if track.pending.is_some() && !but.is_some_and(|key| track.is(key)) {
                track.tell(found);
            }
        }
    }

    /// A bar or a count, which is the one seen last then.
    fn track(&mut self, key: Key<'_>) -> &mut Track {
        match self.tracks.iter().rposition(|track| track.is(key)) {
            Some(at) => self.tracks[at..].rotate_left(1),
            None => {
                let track = self.new_track(key);
                if self.tracks.len() >= TRACKS_MAX {
                    self.tracks.remove(0);
                }
                self.tracks.push(track);
            }
        }
        let last = self.tracks.len() - 1;
        &mut self.tracks[last]
    }

    fn new_track(&self, (name, total): Key<'_>) -> Track {
        // The same bar with another total shows the values of the epochs before, too.
        let before = self.tracks.iter().rfind(|track| track.name == name);
        Track {
            name: name.into(),
            total,
            reported: before.map_or_else(Vec::new, |track| track.reported.clone()),
            first_epoch: self.known_first,
            counted: self.course.counted(total),
            ..Track::default()
        }
    }
}

impl Track {
    fn is(&self, (name, total): Key<'_>) -> bool {
        self.total == total && self.name == name
    }

    fn is_at_end(&self) -> bool {
        self.total.is_some_and(|total| self.done >= total)
    }

    /// The growing step of a count in a line; its total is that of an epoch, however far it was seen. `heading`: the
    /// epoch of the last heading; the count may be at the same place in the next one. `passed`: the epochs before the
    /// first count, by a heading.
    fn count(
        &mut self,
        done: u64,
        epoch: Option<(u64, bool)>,
        heading: Option<u64>,
        passed: Option<u64>,
    ) -> u64 {
        let total = self.total.unwrap_or(0);
        let is_next = self.heading.is_some() && heading > self.heading && done == self.done;
        self.heading = heading;
        if epoch.is_none() && (done < self.done || is_next) {
            (self.before, self.done) = (self.before.saturating_add(total.max(self.done)), 0);
        } else if epoch.is_none()
            && let Some(passed) = passed
        {
            self.before = passed.saturating_mul(total);
        }
        self.advance(done, epoch)
    }

    /// The growing step of a place in an epoch.
    fn advance(&mut self, done: u64, epoch: Option<(u64, bool)>) -> u64 {
        // What continues behind the results does not evaluate. A bar's last drawing may be read behind them.
        self.evaluates &= done <= self.done || self.total.is_some_and(|total| done >= total);
        match (epoch, self.total) {
            (Some((epoch, counted_from_one)), Some(total)) => {
                if epoch == 0 {
                    self.first_epoch = Some(0);
                }
                let first = *self.first_epoch.get_or_insert(u64::from(counted_from_one || epoch == 1));
                let origin = self.origin.filter(|(from, _)| epoch >= *from);
                let begins_again = self.counted.begins_again(epoch, done) || origin.is_some();
                let (first, before) = origin.unwrap_or((first, 0));
                let passed = if begins_again { epoch.saturating_sub(first) } else { 0 };
                self.before = before.saturating_add(passed.saturating_mul(total));
                self.epoch = Some(epoch);
            }
            (Some((epoch, _)), None) => {
                // Without a total each epoch may have the same length: `Epoch #2: 1000it`.
                let is_next = self.epoch.is_some_and(|last| epoch > last) && done <= self.done;
                if is_next || self.begins_again_at(done) {
                    self.begin_again();
                }
                self.epoch = Some(epoch);
            }
            _ if self.begins_again_at(done) => self.begin_again(),
            _ => {}
        }
        self.done = done;
        self.before.saturating_add(done)
    }

    /// The step that a drawing names, `env_step=2500`; of one that names none, as many steps behind the last one that did as the bar moved.
    fn named_step(&mut self, named: Option<u64>, counted: u64) -> u64 {
        // The values of a bar are repeated until others are set.
        let is_same = self.named.is_some_and(|(step, _)| named == Some(step));
        if let Some(step) = named {
            self.named = self.named.filter(|_| is_same).or(Some((step, counted)));
            return step;
        }
        self.named.map_or(counted, |(step, at)| step.saturating_add(counted.saturating_sub(at)))
    }

    /// A bar that falls back by less than half of its way is another one's, of a rank beside it, or an old drawing.
    fn begins_again_at(&self, done: u64) -> bool {
        done < self.done && done <= self.done / 2
    }

    fn begin_again(&mut self) {
        self.before = self.before.saturating_add(self.done);
        self.done = 0;
    }

    /// An epoch counted from 1. After the ones seen, or later in a training that continues; a second training adds its steps to the first.
    fn begin_epoch(&mut self, epoch: Option<u64>) {
        self.begin_again();
        let passed = epoch.unwrap_or(1).saturating_sub(1);
        self.before = self.before.max(passed.saturating_mul(self.total.unwrap_or(0)));
    }

    fn shows_already(&self, values: &[(String, f64)]) -> bool {
        let pending = self.pending.iter().flat_map(|pending| &pending.values);
        let shown = |name: &str| pending.clone().chain(&self.reported).find(|(known, _)| known == name);
        let is_same = |(name, value): &(String, f64)| {
            shown(name).is_some_and(|(_, was)| was.to_bits() == value.to_bits())
        };
        values.iter().all(is_same)
    }

    /// Takes in the newest drawing, with its step and the number of its names. One that is cut lacks values that one
    /// before it, of the same step, may have.
    fn draw(&mut self, (step, names): (u64, Option<u32>), values: &[(String, f64)], is_cut: bool) {
        self.pending_is_cut = is_cut;
        let before = self.pending.take();
        if let Some(before) = before.as_ref().filter(|before| is_cut && before.step == step) {
            let mut values = values.to_vec();
            complete(&mut values, before.values.clone());
            self.pending = Some(PrintedMetrics::of(step, values));
            return;
        }
        let mut drawn = before.map_or_else(|| take(&mut self.room), |before| before.values);
        copy_values(values, &mut drawn);
        self.pending = Some(PrintedMetrics { names, ..PrintedMetrics::of(step, drawn) });
    }

    /// Whether all values of further drawings with names of this number are said as they are.
    fn may_move_on(&self, names: u32) -> bool {
        let drawn = self.pending.as_ref().filter(|pending| pending.names == Some(names));
        drawn.is_some_and(|drawn| {
            let names = || drawn.values.iter().map(|(name, _)| name);
            let are_same = self.reported.iter().map(|(name, _)| name).eq(names());
            let is_plain = self.named.is_none() && self.has_values && self.may_train && !self.pending_is_cut;
            are_same && is_plain && !names().any(|name| changes_seldom(name))
        })
    }

    /// The same as to say the last drawing where it has another step, and to draw the next one with these values; the
    /// step of what is said, whose values they become.
    fn redraw(&mut self, step: u64, values: &mut [f64]) -> Option<u64> {
        let pending = self.pending.as_mut()?;
        let said = Some(std::mem::replace(&mut pending.step, step)).filter(|before| *before != step);
        for ((value, (_, drawn)), (_, reported)) in
            values.iter_mut().zip(&mut pending.values).zip(&mut self.reported)
        {
            std::mem::swap(value, drawn);
            if said.is_some() {
                *reported = *value;
            }
        }
        self.reported_step = said.or(self.reported_step);
        said
    }

    /// Takes in the values of a drawing, and what was reported before it.
    fn report(&mut self, values: Vec<(String, f64)>) {
        let before = std::mem::replace(&mut self.reported, values);
        match self.pending_is_cut {
            true => complete(&mut self.reported, before),
            false => self.room = before,
        }
    }

    /// Says the pending drawing, without what was reported at its step already and without evaluations that did not change.
    fn tell(&mut self, found: &mut dyn FnMut(&PrintedMetrics)) {
        let Some(metrics) = self.pending.take() else { return };
        let same_step = self.reported_step == Some(metrics.step);
        self.reported_step = Some(metrics.step);
        let reported = &self.reported;
        let is_said = |(name, value): &&(String, f64)| {
            let is_known = |(known, was): &(String, f64)| was.to_bits() == value.to_bits() && known == name;
            !(reported.iter().any(is_known) && (same_step || changes_seldom(name)))
        };
        let said = metrics.values.iter().filter(is_said).count();
        if said == metrics.values.len() {
            found(&metrics);
        } else if said > 0 {
            let values = metrics.values.iter().filter(is_said).cloned().collect();
            found(&PrintedMetrics::of(metrics.step, values));
        }
        self.report(metrics.values);
    }
}
