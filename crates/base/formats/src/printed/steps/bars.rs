//! Drawings of bars: which of them shows where the training is, and the step of what it shows.

use super::super::PrintedMetrics;
use super::super::bar::{Bar, Purpose};
use super::super::lexical::named::LineValues;
use super::super::lexical::names::{self, Meaning};
use super::track::{Key, SELDOM, Track, lent};
use super::{NAMING_LINES, STEP_MAX, Steps};

/// So many different bars and counts are distinguished; the one that was seen longest ago is forgotten.
const TRACKS_MAX: usize = 16;

/// Parts of the description of a bar that goes through the training although lines name their steps.
const OF_TRAINING: [&str; 4] = ["train", "epoch", "step", "iter"];

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

impl Steps {
    /// A drawing of a bar, for this purpose. `names`: the number of the names of its values.
    pub fn bar(
        &mut self,
        bar: &Bar,
        purpose: Purpose,
        names: Option<u32>,
        found: &mut dyn FnMut(&PrintedMetrics),
    ) {
        let epoch = bar.epoch.map(|(epoch, _)| epoch);
        let highest = Some(bar.done).max(bar.total).max(epoch).max(bar.step);
        if highest > Some(STEP_MAX) {
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
        self.early = self.early.filter(|_| !is_training);
        if let Some((epoch, counted_from_one)) = bar.epoch.filter(|_| is_training) {
            self.course.see_epoch(epoch, counted_from_one);
        }
        let total = bar.total.or_else(|| self.total_before(bar).filter(|_| is_training));
        let key = (&*bar.name, total);
        let at = self.at.unwrap_or(0);
        // A bar over epochs with values of each.
        let counts_epochs =
            purpose == Purpose::Epochs && !self.is_finer_than_epochs && !bar.values.is_empty();
        let origin = self.origin_of(bar, total);
        let track = self.drawn_track(key, found);
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
        track.leave(step, restarted, found);
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

    /// Whether a bar that shows no values is drawn beside lines that name their steps: what it goes through is none of them.
    fn is_beside_lines(&self, bar: &Bar) -> bool {
        let is_silent = bar.values.is_empty() && bar.epoch.is_none() && self.leader.is_none();
        let is_of_training = || OF_TRAINING.iter().any(|part| bar.name.contains(part));
        is_silent && self.naming_lines >= NAMING_LINES && !is_of_training()
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

    /// `evaluate` draws the same bar as `fit`, but no epoch begins before it.
    fn purpose_of_keras(&mut self, bar: &Bar) -> Purpose {
        if std::mem::take(&mut self.epoch_begun) {
            self.keras_total = bar.total;
            let epoch = self.epoch;
            self.track((&bar.name, bar.total)).begin_epoch(epoch);
            return Purpose::Training;
        }
        let last = self.tracks.iter().find(|track| track.name == bar.name && track.total == bar.total);
        let continues = last.is_some_and(|track| bar.done >= track.done) && self.keras_total == bar.total;
        if continues { Purpose::Training } else { Purpose::Judging("eval") }
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
    pub(super) fn find_training_bar(&mut self, named: &LineValues) {
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
    pub(super) fn may_leave_bar(&self, named: &LineValues) -> bool {
        let has_epoch = named.epoch.or(self.epoch).is_some() || named.part_of_epoch.is_some();
        !has_epoch && !self.leader_returns && self.awaits_bar()
    }

    /// The bar that led is not of the training.
    pub(super) fn leave_bar(&mut self, found: &mut dyn FnMut(&PrintedMetrics)) {
        (self.leader, self.at, self.is_finer_than_epochs, self.leader_is_drawn) = (None, None, false, false);
        self.release(0, found);
    }

    /// What bars have drawn is reported.
    pub(super) fn report_drawn(&mut self, found: &mut dyn FnMut(&PrintedMetrics)) {
        self.tracks.iter_mut().for_each(|track| track.report(found));
    }

    /// The bar of a drawing, which is the one seen last then. What others have drawn is reported.
    fn drawn_track(&mut self, key: Key<'_>, found: &mut dyn FnMut(&PrintedMetrics)) -> &mut Track {
        let own = self.place_of(key);
        let others = self.tracks.iter_mut().enumerate().filter(|(place, _)| Some(*place) != own);
        others.for_each(|(_, track)| track.report(found));
        self.track_at(own, key)
    }

    /// A bar or a count, which is the one seen last then.
    pub(super) fn track(&mut self, key: Key<'_>) -> &mut Track {
        self.track_at(self.place_of(key), key)
    }

    fn place_of(&self, key: Key<'_>) -> Option<usize> {
        self.tracks.iter().rposition(|track| track.is(key))
    }

    fn track_at(&mut self, place: Option<usize>, key: Key<'_>) -> &mut Track {
        match place {
            Some(place) => self.tracks[place..].rotate_left(1),
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
        let reported = before.map(|track| track.reported.clone()).unwrap_or_default();
        Track::new((name, total), reported, self.known_first, self.course.counted(total))
    }
}
