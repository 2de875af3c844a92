//! Reads the text of a line: by the first form it fits.

use super::above::{Extent, List, Part};
use super::continue_below;
use crate::printed::bar::{self, Bar, Purpose};
use crate::printed::lexical::commas;
use crate::printed::lexical::named::LineValues;
use crate::printed::lexical::names::Meaning;
use crate::printed::lexical::prefix;
use crate::printed::tables::Taken;
use crate::printed::tables::columns::value_behind_brackets;
use crate::printed::{
    LeftOutKind, Printed, PrintedMetrics, REPEATING, ReaderState, objects, python, read_logged, read_message,
    text,
};

impl ReaderState {
    /// Reads the text of a line. Whether it says something.
    pub(in crate::printed) fn line(
        &mut self,
        output: Printed,
        line: &str,
        found: &mut dyn FnMut(&PrintedMetrics),
    ) -> bool {
        let is_object = line.starts_with('{');
        let read = if self.only_json { objects::read_object } else { read_logged };
        if let Some(object) = Some(line).filter(|_| is_object).and_then(read) {
            self.end_title(output, &object);
            self.values(object, found);
            return true;
        }
        if self.only_json {
            // Nothing else was printed to be read.
            return false;
        }
        if is_object {
            let dict = python::read_dict(line).map(objects::numbers_of);
            if let Some(mut dict) = dict.filter(LineValues::has_values) {
                self.end_title(output, &dict);
                let part = self.part[output as usize].as_mut().filter(|part| part.is_titled());
                if let Some(part) = part {
                    part.see_row();
                    objects::take_titled(&mut dict, part.prefix);
                }
                self.values(dict, found);
            }
            return true;
        }
        if line.starts_with(REPEATING) {
            return false;
        }
        self.take_dicts(output, line, found) || self.for_people(output, line, found)
    }

    /// Sees an object or a row: one that says where the script is ends what is below a title.
    pub(in crate::printed) fn end_title(&mut self, output: Printed, named: &LineValues) {
        let at = output as usize;
        self.part[at] = self.part[at].take().filter(|part| !part.is_titled() || !named.has_place());
    }

    fn for_people(&mut self, output: Printed, line: &str, found: &mut dyn FnMut(&PrintedMetrics)) -> bool {
        let message = prefix::message_of(line);
        if let Some(mut ended) = self.tables[output as usize].ended_box(message) {
            self.steps.line(&mut ended, found);
        }
        self.take_bar(output, line, found)
            || bar::is_cut_short(line)
            || self.take_row(output, message, found)
            || self.take_epoch(output, line, found)
            || (!self.steps.has_begun() && self.settings.take_assignment(message))
            || self.take_text(output, message, found)
    }

    fn take_bar(&mut self, output: Printed, line: &str, found: &mut dyn FnMut(&PrintedMetrics)) -> bool {
        let Some((bar, rest)) = bar::read_bar(line) else { return false };
        let part = &mut self.part[output as usize];
        if part.as_mut().is_some_and(|part| !part.reaches_beyond(&bar)) {
            *part = None;
        }
        self.bar(output, bar, found);
        // Another program's line may follow a bar that did not end its line.
        if !rest.is_empty() {
            self.steps.behind_drawing(true);
            self.line(output, rest, found);
            self.steps.behind_drawing(false);
        }
        true
    }

    /// A bar, which may have a row of a table as its description.
    fn bar(&mut self, output: Printed, mut bar: Bar, found: &mut dyn FnMut(&PrintedMetrics)) {
        match self.tables[output as usize].take(&bar.description) {
            Taken::No => {}
            Taken::Part => bar.purpose = Purpose::Other,
            Taken::Values(row) => {
                bar.epoch = row.epoch.map(|epoch| (epoch, row.epoch_counted_from_one));
                bar.values = row.values;
                bar.purpose = Purpose::Training;
                bar.name = "table".into();
            }
        }
        let purpose = self.steps.purpose_below(self.evaluated[output as usize].heading, &bar);
        self.steps.bar(&bar, purpose, None, found);
    }

    /// Takes a part of a table.
    fn take_row(&mut self, output: Printed, message: &str, found: &mut dyn FnMut(&PrintedMetrics)) -> bool {
        let at = output as usize;
        if self.part[at].is_none() {
            self.tables[at].end_title();
        }
        let taken = self.tables[at].take(message);
        let unread = self.tables[at].take_unread();
        self.leave_out(LeftOutKind::UnreadRows, unread);
        match taken {
            Taken::No => {}
            Taken::Part => {
                if self.tables[at].is_in_titled_box() {
                    self.part[at].iter_mut().for_each(Part::see_row);
                }
                return true;
            }
            Taken::Values(mut named) => {
                if named.step.or(named.epoch).is_some() {
                    self.end_title(output, &named);
                }
                let part = self.part[at].as_ref().map(|part| part.prefix);
                match named.position.is_some() {
                    true => named.take_part(part.map(|part| format!("{}_batch", &*part)).as_deref()),
                    false => named.take_titled(part),
                }
                self.part[at].iter_mut().for_each(Part::see_row);
                self.values(*named, found);
                return true;
            }
        }
        let row = self.tables[at].take_row_of_parts(message);
        let row = row.filter(|row| self.steps.has_begun() || row.meaning() == Some(Meaning::Measure));
        row.map(|row| self.values(row, found)).is_some()
    }

    /// Takes the line that Keras prints before the bars of an epoch.
    fn take_epoch(&mut self, output: Printed, line: &str, found: &mut dyn FnMut(&PrintedMetrics)) -> bool {
        let at = output as usize;
        let Some(epoch) = bar::epoch_of_line(line) else { return false };
        self.evaluated[at].heading = None;
        let place = LineValues { epoch: Some(epoch), ..LineValues::default() };
        self.part[at] = self.part[at].take().and_then(|part| match part.extent {
            Extent::Block { .. } => part.remains(Some(&place)),
            _ => Some(part),
        });
        self.steps.epoch_begins(epoch, found);
        true
    }

    fn take_text(&mut self, output: Printed, message: &str, found: &mut dyn FnMut(&PrintedMetrics)) -> bool {
        let at = output as usize;
        let Some(mut named) = self.named_in(output, message) else { return false };
        if named.is_supposed && !self.steps.has_begun() {
            return true;
        }
        named.take_titled(self.part[at].as_ref().map(|part| part.prefix));
        self.evaluated[at].see(&mut named);
        continue_below(&mut self.continued[at], &named, self.indent);
        self.is_below_drawing[at] |= named.is_drawn;
        named.is_drawn = self.is_below_drawing[at];
        if let Some(comma) = named.comma.filter(|_| !named.values.is_empty()) {
            self.commas[at].see(comma);
        }
        self.is_below_heading[at] |= named.has_place() && !named.has_values();
        if self.steps.has_begun() || !named.is_echo() {
            self.lists[at].see(&named);
        }
        self.values(named, found);
        true
    }

    /// What a text names, also as one that continues the lines above it.
    fn named_in(&mut self, output: Printed, message: &str) -> Option<LineValues> {
        let at = output as usize;
        let known = self.commas[at].comma();
        let List { item, measured } = &self.lists[at];
        let is_item = measured.is_some() || (item.is_some() && self.is_below_heading[at]);
        let below = Some(message).filter(|_| self.is_below_heading[at] || is_item);
        let named = below.and_then(|line| text::read_below_heading(line, is_item, known));
        let continued = Some(message).filter(|_| self.continued[at].is_some());
        let named = named.or_else(|| continued.and_then(|line| text::read_continued(line, known)));
        let named = named.or_else(|| read_message(message, known));
        if known.is_none() {
            self.leave_out(LeftOutKind::UnclearCommas, commas::unclear_values(message));
        }
        let is_titled = self.part[at].as_ref().is_some_and(Part::is_titled);
        let below_title = Some(message).filter(|_| is_titled && named.is_none());
        let named = named.or_else(|| {
            let values = vec![below_title.and_then(value_behind_brackets)?];
            Some(LineValues { values, ..LineValues::default() })
        });
        if !(is_titled && (message.trim().is_empty() || text::is_rule(message.as_bytes()))) {
            self.part[at] = self.part[at].take().and_then(|part| part.remains(named.as_ref()));
        }
        named
    }
}
