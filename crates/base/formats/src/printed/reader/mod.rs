//! Reads one line after the other: by what was understood so far, and by what it says.

pub(super) mod above;
mod line;

use above::{Extent, Part};

use super::bar::{self, Bar, Purpose};
use super::forms::known::{LearntForm, LineContent, copy_of};
use super::forms::quiet::Form;
use super::lexical::commas;
use super::lexical::named::LineValues;
use super::lexical::names;
use super::lexical::part_name::PartName;
use super::lexical::prefix;
use super::message::has_values;
use super::text::{self, Title};
use super::{LeftOutKind, NAME_BYTES_MAX, Printed, PrintedMetrics, ReaderState, lines, tables};

/// A shorter line names nothing.
const LINE_BYTES_MIN: usize = 3;
/// A heading of parts of the data is not longer, with what a logger puts before it.
const PARTS_BYTES_MAX: usize = 400;
/// A title with a rule below it is not longer.
const UNDERLINED_BYTES_MAX: usize = 100;

impl ReaderState {
    /// A line as it was printed, with its number.
    pub(super) fn numbered(
        &mut self,
        place: (Printed, u64),
        line: &[u8],
        found: &mut dyn FnMut(&PrintedMetrics),
    ) {
        let settings = self.settings.left_out();
        if !(self.objects[place.0 as usize].may_have(line) && self.take_of_object(place, line, found)) {
            self.place = Some(place);
            self.raw(place.0, line, found);
        }
        self.leave_out(LeftOutKind::SurplusSettings, self.settings.left_out() - settings);
    }

    /// So many values or settings of the line that is being read are not taken.
    pub(super) fn leave_out(&mut self, kind: LeftOutKind, count: u64) {
        if let Some(place) = self.place {
            self.left_out.add(kind, count, place);
        }
    }

    /// A line as it was printed. Of one of a known form only the numbers are read.
    pub(super) fn raw(&mut self, output: Printed, line: &[u8], found: &mut dyn FnMut(&PrintedMetrics)) {
        let at = output as usize;
        self.begin_line(output, line);
        let is_at_rest = !self.only_json && self.is_at_rest(output);
        let form = Some(line).filter(|_| is_at_rest).and_then(|line| self.forms.form_of(line));
        let form = form.map(|form| if self.is_below_heading[at] { form.of_row() } else { form });
        let quiet = form.filter(|form| form.may_be_quiet).map(|form| form.hash);
        if is_at_rest && (line.len() < LINE_BYTES_MIN || quiet.is_some_and(|form| self.quiet.has(form))) {
            return self.settings.interrupt();
        }
        if !form.is_some_and(|form| self.known_line(output, form, line, found)) {
            self.whole_line(output, line, quiet, found);
        }
    }

    /// Sees what the lines above say of this one.
    fn begin_line(&mut self, output: Printed, line: &[u8]) {
        let at = output as usize;
        if self.is_below_heading[at] {
            self.is_below_heading[at] = self.rows[at].has(line);
        }
        self.is_below_drawing[at] &= matches!(line.first(), None | Some(b' ' | b'\t'));
        self.lists[at].begin_line(line);
        self.continued[at] = self.continued[at].filter(|indent| lines::indent_of(line) > *indent);
        let part = &mut self.part[at];
        if text::heads_best_values(line) {
            let indent = lines::indent_of(line);
            *part = Some(Part { prefix: names::BEST.into(), indent, extent: Extent::Indented });
        } else if part.as_mut().is_some_and(|part| part.ends_at(line)) {
            *part = None;
        } else if let Some(part) = part.as_ref().filter(|part| part.is_titled() && text::is_rule(line)) {
            self.tables[at].begin_below_title(part.prefix);
        }
        if !self.above[at].is_empty() || text::is_of_box(line) {
            self.see_below_line(output, line);
        }
    }

    /// Reads a line of a known form. False: it has none, and nothing was done.
    fn known_line(
        &mut self,
        output: Printed,
        form: Form,
        line: &[u8],
        found: &mut dyn FnMut(&PrintedMetrics),
    ) -> bool {
        let at = output as usize;
        if !self.steps.has_begun() || self.continued[at].is_some() {
            return false;
        }
        let known = self.known.read(form, line, self.is_below_heading[at]);
        let Some(LearntForm { content, number, is_plain, .. }) = known else { return false };
        let named = match content {
            LineContent::Values(named) => named,
            LineContent::Bar(bar) => {
                let purpose = self.steps.purpose_below(self.evaluated[at].heading, bar);
                self.steps.bar(bar, purpose, *number, found);
                return true;
            }
        };
        // Values of an evaluation have other names than those of the next line of the form.
        let is_plain = *is_plain && (named.has_place() || !self.evaluated[at].may_name());
        let mut copy = (!is_plain).then(|| copy_of(named));
        let named = copy.as_mut().unwrap_or(named);
        self.is_below_drawing[at] = named.is_drawn;
        self.evaluated[at].see(named);
        continue_below(&mut self.continued[at], named, lines::indent_of(line));
        self.lists[at].see(named);
        if let Some(place) = self.place {
            self.left_out.add(LeftOutKind::SurplusValues, named.surplus, place);
        }
        if !is_plain {
            self.steps.line(named, found);
        } else if let Some(step) = self.steps.plain_line(named) {
            let values = std::mem::take(&mut named.values);
            let metrics = PrintedMetrics { names: *number, ..PrintedMetrics::of(step, values) };
            found(&metrics);
            named.values = metrics.values;
        } else {
            self.steps.line(&mut copy_of(named), found);
        }
        true
    }

    /// Reads all of a line. `quiet`: its form, if lines of it that say nothing need not be read any more.
    fn whole_line(
        &mut self,
        output: Printed,
        line: &[u8],
        quiet: Option<u64>,
        found: &mut dyn FnMut(&PrintedMetrics),
    ) {
        let title = self.see_title(output, line);
        let is_title = matches!(title, Some(Title::Part(_)));
        let numbered = match title {
            Some(Title::Numbered(prefix)) => Some(prefix),
            _ => None,
        };
        let is_heading = is_title || numbered.is_some() || self.heads(output, line, lines::has_digit(line));
        let begins = line.trim_ascii_start().first().is_some_and(u8::is_ascii_alphabetic);
        if title.is_none() && begins && line.len() <= UNDERLINED_BYTES_MAX {
            self.above[output as usize].extend_from_slice(line);
        }
        if self.take_setting(output, line, found) {
            return;
        }
        self.indent = lines::indent_of(line);
        let Some(text) = lines::readable(line).filter(|_| !is_title) else {
            if !(is_title || line.trim_ascii().is_empty() || text::is_rule(line)) {
                self.part[output as usize].iter_mut().for_each(Part::see_text);
            }
            return;
        };
        let says_something = self.line(output, &text, found);
        if let Some(prefix) = numbered {
            self.begin_title(output, prefix, line);
        } else if !says_something
            && let Some(form) = quiet.filter(|_| !is_heading && self.is_at_rest(output))
            && !commas::depends_on_others(prefix::message_of(&text))
            && text::part_above_rule(line).is_none()
        {
            self.quiet.add(form);
        }
    }

    /// Takes a line of a configuration, which it may be of only before the training begins; false if it is none.
    fn take_setting(&mut self, output: Printed, line: &[u8], found: &mut dyn FnMut(&PrintedMetrics)) -> bool {
        if self.only_json || self.steps.has_begun() {
            return false;
        }
        if self.calls[output as usize].has(line) {
            let settings = lines::readable(line).and_then(|line| text::read_text(&line, None));
            self.values(settings.unwrap_or_default().into_settings(), found);
            return true;
        }
        self.yaml[output as usize].take(line, &mut self.settings)
    }

    /// Sees a line that may be a title: it begins the lines of a part of the data, which says nothing else, or ends
    /// those of the title above it. One with a number is to be read as well; with a value it is none.
    fn see_title(&mut self, output: Printed, line: &[u8]) -> Option<Title> {
        let (at, title) = (output as usize, text::title_of(line)?);
        match title {
            Title::Part(Some(prefix)) => self.begin_title(output, prefix, line),
            Title::Numbered(_) if has_values(line) => return None,
            Title::Part(None) | Title::Numbered(_) => self.part[at] = None,
            Title::Other => self.part[at] = self.part[at].take().filter(|part| !part.is_titled()),
        }
        Some(title)
    }

    /// The lines below this one are of a part of the data.
    fn begin_title(&mut self, output: Printed, prefix: PartName, line: &[u8]) {
        self.part[output as usize] = Some(Part::titled(prefix, line));
        self.tables[output as usize].begin_below_title(prefix);
    }

    /// Sees the line below one that is a title if this is a rule.
    fn see_below_line(&mut self, output: Printed, line: &[u8]) {
        let above = std::mem::take(&mut self.above[output as usize]);
        if let Some(title) = text::title_of_box(line, &above) {
            if let Some(part) = text::part_of_box(title).filter(|_| !has_values(title.as_bytes())) {
                part.iter().for_each(|part| self.tables[output as usize].begin_below_title(*part));
                self.part[output as usize] = part.map(Part::of_box);
            }
        } else if text::is_rule(line)
            && let Some(prefix) = text::part_above_rule(&above).filter(|_| !has_values(&above))
        {
            self.begin_title(output, prefix, line);
        }
    }

    /// Whether a line heads the lines of a part of the data, or says that an evaluation begins.
    fn heads(&mut self, output: Printed, line: &[u8], has_digit: bool) -> bool {
        let at = output as usize;
        if !has_digit && let Some(prefix) = text::part_heading(line) {
            let extent = Extent::Unclear { has_colon: line.trim_ascii_end().ends_with(b":") };
            let indent = lines::indent_of(line);
            self.part[at] = prefix.map(|prefix| Part { prefix, indent, extent });
            return true;
        }
        if text::heads_training_again(line) {
            self.evaluated[at].heading = None;
            return true;
        }
        let evaluated = text::evaluation_heading(line);
        if evaluated.is_some() {
            self.evaluated[at].heading = evaluated;
        }
        evaluated.is_some() || self.heads_parts(at, line)
    }

    /// Whether a line is the heading of a table whose columns are parts of the data.
    fn heads_parts(&mut self, at: usize, line: &[u8]) -> bool {
        let may_be = line.len() <= PARTS_BYTES_MAX && tables::ends_with_part(line) && !self.only_json;
        let text = Some(line).filter(|_| may_be).and_then(|line| std::str::from_utf8(line).ok());
        text.is_some_and(|text| self.tables[at].see_parts(prefix::message_of(text.trim())))
    }

    /// A line of the other output that has no end yet: a bar is drawn before what is printed beside it, and its line
    /// ends with the next drawing.
    pub(super) fn look_at(&mut self, line: &[u8], found: &mut dyn FnMut(&PrintedMetrics)) {
        let line = lines::readable(line).unwrap_or_default();
        let bar = bar::read_bar(&line).filter(|(bar, rest)| rest.is_empty() && !bar.is_keras);
        let is_silent = |bar: &Bar| bar.purpose == Purpose::Training && bar.values.is_empty();
        if let Some((bar, _)) = bar.filter(|(bar, _)| is_silent(bar)) {
            self.steps.bar(&bar, bar.purpose, None, found);
        }
    }

    /// Nothing is open that the next line may belong to, but for a heading that says where the script is.
    fn is_at_rest(&self, output: Printed) -> bool {
        self.continued[output as usize].is_none() && self.has_nothing_open(output)
    }

    /// Whether lines of known forms may be read at once.
    pub(super) fn may_read_on(&self, output: Printed) -> bool {
        let at = output as usize;
        let is_below = self.only_json || self.is_below_heading[at] || !self.above[at].is_empty();
        !is_below && self.has_nothing_open(output)
    }

    /// Nothing is open but for a heading and a line that what is indented below may continue.
    fn has_nothing_open(&self, output: Printed) -> bool {
        let at = output as usize;
        let is_below = self.is_below_drawing[at];
        let is_of_part = self.part[at].is_some() || self.lists[at].measured.is_some();
        // Neither is read any more once the training has begun.
        let is_closed = self.steps.has_begun() || (self.yaml[at].is_at_rest() && self.calls[at].is_closed());
        let is_closed = is_closed && self.objects[at].is_closed();
        self.tables[at].is_at_rest() && is_closed && !is_below && !is_of_part
    }

    /// Values, unless they are settings that are shown before the training begins.
    pub(super) fn values(&mut self, mut named: LineValues, found: &mut dyn FnMut(&PrintedMetrics)) {
        let count = named.values.len();
        named.values.retain(|(name, _)| (1..=NAME_BYTES_MAX).contains(&name.len()));
        named.surplus += (count - named.values.len()) as u64;
        self.leave_out(LeftOutKind::SurplusValues, named.surplus);
        if let Some(total) = named.total_steps {
            self.settings.take_total(total);
        }
        self.settings.take_values(&named.settings);
        if !self.steps.has_begun() && named.is_echo() {
            self.settings.take_values(&named.values);
        } else if named.has_place() || !named.values.is_empty() {
            self.steps.line(&mut named, found);
        }
    }
}

/// Lines that are indented below one with a place and measures continue it.
fn continue_below(continued: &mut Option<usize>, named: &LineValues, indent: usize) {
    *continued = continued.or(Some(indent).filter(|_| named.may_be_continued));
}
