//! Metrics of a script without Trackway's SDK: what it prints while it trains.
//!
//! Read are JSON objects and Python dicts, one per line; progress bars of tqdm, Lightning and Keras, which draw over
//! themselves; and free text such as `step 100: loss 0.5, lr=1e-3`. [`PrintedReader`] takes both outputs as they come
//! and gives values with their steps. `docs/tracking.md` documents what is taken and what is not.
//!
//! Nothing is taken that only looks like a metric: free text counts when it names a step or a usual measure of
//! training. No bytes make it panic, and all it holds is bounded.

mod bar;
mod columns;
mod course;
mod dicts;
mod fields;
mod forms;
mod left_out;
mod lexical;
mod lines;
mod objects;
#[cfg(test)]
mod programs;
mod python;
mod settings;
mod steps;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod tools;
mod yaml;

use bar::{Bar, Purpose};
pub use course::PrintedCourse;
pub(crate) use fields::{is_measure, json_fields, part_prefix, step_and_numbers, with_prefix};
use forms::known::{self, KnownForms, Learnt};
use forms::last::LastForms;
use forms::quiet::QuietForms;
use forms::run::Collected;
use left_out::LeftOutCounts;
pub use left_out::{LeftOut, LeftOutKind};
use lexical::commas::{self, Comma, SeenCommas};
use lexical::named::Named;
use lexical::names::{self, Meaning};
use lexical::part_name::PartName;
use lexical::prefix;
pub(crate) use lines::Lines;
use settings::{OpenCall, Settings};
use steps::Steps;
use tables::{Tables, Taken};
use text::Title;
use yaml::YamlBlock;

/// A longer line has no metrics.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// A shorter line names nothing.
const LINE_BYTES_MIN: usize = 3;
/// A heading of parts of the data is not longer, with what a logger puts before it.
const PARTS_BYTES_MAX: usize = 400;
/// A title with a rule below it is not longer.
const UNDERLINED_BYTES_MAX: usize = 100;
/// At most so many values are taken from one line.
const VALUES_MAX: usize = 256;
/// Longer names are no metrics.
const NAME_BYTES_MAX: usize = 200;

/// Which of a process's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    /// Standard output.
    Stdout,
    /// Standard error: Python's logging and tqdm write there.
    Stderr,
}

/// Values of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct PrintedMetrics {
    /// The step that was printed with them or, without one, the last known step of the script.
    pub step: u64,
    /// Names and values, in the order of printing; of JSON objects in the order of the names.
    pub values: Vec<(String, f64)>,
    /// The step counts something else than the training goes through, such as the episodes of an evaluation.
    pub counts_apart: bool,
    /// Of one reader, all that have this number have the same names in the same order. Nothing: that is not known.
    pub names: Option<u32>,
}

impl PrintedMetrics {
    fn of(step: u64, values: Vec<(String, f64)>) -> Self {
        Self { step, values, counts_apart: false, names: None }
    }
}

/// Values of the same names at one step after the other.
#[derive(Debug, Clone, Copy)]
pub struct PrintedRun<'r> {
    /// Of one reader, all that have this number have the same names in the same order.
    pub number: u32,
    pub names: &'r [String],
    /// The steps, as they would be those of [`PrintedMetrics`].
    pub steps: &'r [u64],
    /// The values of the first step, in the order of the names, then those of the next.
    pub values: &'r [f64],
}

impl PrintedRun<'_> {
    /// Gives the values of one step after the other.
    pub fn each(&self, mut found: impl FnMut(&PrintedMetrics)) {
        let values = self.names.iter().map(|name| (name.clone(), 0.0)).collect();
        let mut metrics = PrintedMetrics { names: Some(self.number), ..PrintedMetrics::of(0, values) };
        for (step, values) in self.steps.iter().zip(self.values.chunks_exact(self.names.len().max(1))) {
            metrics.step = *step;
            metrics.values.iter_mut().zip(values).for_each(|((_, value), read)| *value = *read);
            found(&metrics);
        }
    }
}

/// What is found in an output.
#[derive(Debug, Clone, Copy)]
pub enum PrintedFound<'r> {
    /// Values of one step.
    One(&'r PrintedMetrics),
    /// Values of several lines of one form.
    Run(PrintedRun<'r>),
}

/// A line of a client of Weights & Biases repeats what was logged, at no step.
const REPEATING: &str = "wandb:";

/// Reads both outputs of a script as they come.
#[derive(Debug, Default)]
pub struct PrintedReader {
    outputs: [Lines; 2],
    reading: Reading,
}

/// What was understood so far.
#[derive(Debug, Default)]
struct Reading {
    steps: Steps,
    tables: [Tables; 2],
    settings: Settings,
    yaml: [YamlBlock; 2],
    calls: [OpenCall; 2],
    forms: LastForms,
    quiet: QuietForms,
    known: KnownForms,
    commas: [SeenCommas; 2],
    /// The last line said where the script is and nothing else, or is indented below one that did.
    is_below_heading: [bool; 2],
    /// The last line was a drawing of a bar of Rich, or is indented below one.
    is_below_drawing: [bool; 2],
    lists: [List; 2],
    /// The last line had a place and measures, or is indented below one that did: so much was that one indented.
    continued: [Option<usize>; 2],
    /// So much is the line indented that is being read.
    indent: usize,
    rows: [lines::Rows; 2],
    evaluated: [Evaluated; 2],
    /// The part of the data that a heading names for the indented lines below it.
    part: [Option<Part>; 2],
    /// The last line, if a rule below it may make it a title.
    above: [Vec<u8>; 2],
    only_json: bool,
    /// Which line is being read.
    place: Option<(Printed, u64)>,
    left_out: LeftOutCounts,
    collected: Collected,
}

/// The part of the data that a heading names.
#[derive(Debug)]
struct Part {
    prefix: PartName,
    /// So much is the heading indented.
    indent: usize,
    extent: Extent,
}

/// Which lines are below a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The next line shows it: a rule below it makes it a title.
    Unclear { has_colon: bool },
    /// Those that are indented further.
    Indented,
    /// All with values up to the next empty one, of a title up to the first empty one behind a value; the first of them
    /// may say where the script is. `has_text`: something else came before the first value.
    Block { has_values: bool, is_titled: bool, has_text: bool },
}

impl Part {
    /// What is below a title.
    fn titled(prefix: PartName, line: &[u8]) -> Self {
        let extent = Extent::Block { has_values: false, is_titled: true, has_text: false };
        Self { prefix, indent: lines::indent_of(line), extent }
    }

    /// A line is not below the heading any more that is not indented further and no item of a list, no comment and not
    /// empty. Where the first one is right below a colon and not indented, or a rule, only an empty one ends it.
    fn ends_at(&mut self, line: &[u8]) -> bool {
        let is_below =
            lines::indent_of(line) > self.indent || lines::indent_of_item(line) >= Some(self.indent);
        let is_empty = line.trim_ascii().is_empty();
        if let Extent::Unclear { has_colon } = self.extent {
            let is_titled = text::is_rule(line);
            self.extent = match is_titled || (has_colon && !is_below && !is_empty) {
                true => Extent::Block { has_values: false, is_titled, has_text: false },
                false => Extent::Indented,
            };
        }
        match self.extent {
            Extent::Block { has_values, is_titled, .. } => is_empty && (has_values || !is_titled),
            _ => !is_below && !matches!(line.first(), None | Some(b'#')),
        }
    }

    fn is_titled(&self) -> bool {
        matches!(self.extent, Extent::Block { is_titled: true, .. })
    }

    /// Whether it reaches beyond a drawing of a bar: a title does beyond one that shows how far an evaluation is, not
    /// beyond one that names its place.
    fn reaches_beyond(&mut self, bar: &Bar) -> bool {
        let Extent::Block { has_values, is_titled, has_text } = &mut self.extent else { return true };
        *has_text = true;
        let is_silent = bar.values.is_empty() && bar.epoch.is_none() && bar.step.is_none();
        *is_titled && !*has_values && is_silent
    }

    /// Sees a line without values.
    fn see_text(&mut self) {
        if let Extent::Block { has_text, .. } = &mut self.extent {
            *has_text = true;
        }
    }

    /// Sees a row of a table with values.
    fn see_row(&mut self) {
        if let Extent::Block { has_values, .. } = &mut self.extent {
            *has_values = true;
        }
    }

    /// Sees what a line says. One with a place is of the training again; the first one of a block, without values, is not, nor
    /// is one that says nothing below a title; behind such a line a place is of the training in any case. Of results below
    /// a title some may not be read, which end none of the others.
    fn goes_on(mut self, named: Option<&Named>) -> Option<Self> {
        let has_place = named.is_some_and(Named::has_place);
        let Extent::Block { has_values, is_titled, has_text } = &mut self.extent else {
            return Some(self).filter(|_| !has_place);
        };
        // `Loaded 1000 images` below a title
        if *is_titled && named.is_none() {
            *has_text = true;
            return Some(self);
        }
        let says = named.is_some_and(|named| named.has_values());
        let is_first = has_place && !says && !*has_values && !*has_text;
        *has_values = true;
        Some(self).filter(|_| is_first || (says && !has_place))
    }
}

/// A list of values, one in a line: `  * acc = 0.5`.
#[derive(Debug, Default)]
struct List {
    /// The line that is being read is an item, indented by so much.
    item: Option<usize>,
    /// So much are the items right above indented, of which one has a measure: those below it have values of any name.
    measured: Option<usize>,
}

impl List {
    fn begin_line(&mut self, line: &[u8]) {
        self.item = lines::indent_of_item(line);
        self.measured = self.measured.filter(|_| self.measured == self.item);
    }

    fn see(&mut self, named: &Named) {
        if self.item.is_some() && named.meaning() == Some(Meaning::Measure) {
            self.measured = self.item;
        }
    }
}

/// What lines that count how far an evaluation is have as values, `Test: [10/16] loss: 0.5`, up to the next other line.
#[derive(Debug, Default)]
struct Evaluated {
    names: Vec<String>,
    /// The names in the last line that says where the training is.
    trained: Vec<String>,
    /// The part of the data of an evaluation that a line says begins, up to the next line that says where the script is.
    heading: Option<&'static str>,
}

impl Evaluated {
    /// Whether the next line that does not say where the script is may have the names of an evaluation above it.
    fn may_name(&self) -> bool {
        self.heading.is_some() || !self.names.is_empty()
    }

    /// Sees a line. One that does not say where the script is and has only values of the counts above it sums the
    /// evaluation up. It has their part of the data where the training has values of the same names:
    /// `Averaged stats: loss: 0.5`. So has one below `Evaluating top_k_accuracy ...`.
    fn see(&mut self, named: &mut Named) {
        if named.counts_evaluation {
            named.take_results();
            return remember_names(&mut self.names, named);
        }
        if named.has_place() {
            (self.names, self.heading) = (Vec::new(), None);
            return remember_names(&mut self.trained, named);
        }
        let known = std::mem::take(&mut self.names);
        if self.heading.is_some() && named.values.iter().all(|(name, _)| self.trained.contains(name)) {
            return named.take_part(self.heading);
        }
        let Some(part) = known.first().and_then(|name| names::part_before(name)) else { return };
        let is_evaluated = |(name, _): &(String, f64)| known.contains(&format!("{part}_{name}"));
        let is_trained = |(name, _): &(String, f64)| self.trained.contains(name);
        let is_of_summary = |value: &(String, f64)| is_evaluated(value) || !is_trained(value);
        let is_both = |value: &(String, f64)| is_evaluated(value) && is_trained(value);
        if named.values.iter().all(is_of_summary) && named.values.iter().any(is_both) {
            named.take_part(Some(part));
        }
    }
}

/// Takes the names of a line's values. Most lines have those of the line before: their number and ends show it.
fn remember_names(names: &mut Vec<String>, named: &Named) {
    let (Some((first, _)), Some((last, _))) = (named.values.first(), named.values.last()) else { return };
    let is_known =
        names.len() == named.values.len() && names.first() == Some(first) && names.last() == Some(last);
    if !is_known {
        *names = named.values.iter().map(|(name, _)| name.clone()).collect();
    }
}

impl PrintedReader {
    /// From now on only JSON objects count: the script records its metrics itself, and what it prints for people,
    /// rounded, would duplicate them. Objects were printed to be read.
    pub fn read_only_json(&mut self) {
        self.reading.only_json = true;
    }

    /// How the steps are counted, for the next attempt.
    #[must_use]
    pub fn course(&self) -> PrintedCourse {
        self.reading.steps.course()
    }

    /// Counts on from an earlier attempt; to be called before the first line.
    pub fn count_on(&mut self, from: PrintedCourse) {
        self.reading.steps.count_on(from);
    }

    /// Takes the next bytes of one output; calls `found` for the values in it. Where a script draws a bar on one
    /// output and prints values without a step on the other, the bar's output must be pushed first.
    pub fn push(&mut self, output: Printed, bytes: &[u8], mut found: impl FnMut(&PrintedMetrics)) {
        self.push_runs(output, bytes, &mut |these| match these {
            PrintedFound::One(metrics) => found(metrics),
            PrintedFound::Run(run) => run.each(&mut found),
        });
    }

    /// The same, which gives the values of many lines of one form together.
    pub fn push_runs(&mut self, output: Printed, bytes: &[u8], found: &mut dyn FnMut(PrintedFound<'_>)) {
        let (reading, mut rest) = (&mut self.reading, bytes);
        if reading.steps.awaits_bar() && !reading.only_json {
            let open = self.outputs[1 - output as usize].open();
            reading.look_at(open, &mut |metrics| found(PrintedFound::One(metrics)));
        }
        let lines = &mut self.outputs[output as usize];
        while lines.push_line(&mut rest, |number, line| {
            reading.numbered((output, number), line, &mut |metrics| found(PrintedFound::One(metrics)));
        }) {
            if reading.may_read_on(output) {
                let passed = reading.read_on(output, rest, found);
                lines.pass(passed.newlines);
                rest = &rest[passed.bytes..];
            }
        }
    }

    /// How much of the lines so far was not read, of each kind and output.
    #[must_use]
    pub fn left_out(&self) -> Vec<LeftOut> {
        let mut counts = self.reading.left_out.clone();
        for (output, lines) in [Printed::Stdout, Printed::Stderr].into_iter().zip(&self.outputs) {
            if let Some((count, first)) = lines.long() {
                counts.add(LeftOutKind::LongLines, count, (output, first));
            }
        }
        counts.list()
    }

    /// The settings that the script printed before it began to train, by name, each once; `total_steps` is the number
    /// of steps that it means to make.
    pub fn take_settings(&mut self) -> Vec<(String, String)> {
        self.reading.settings.take()
    }

    /// The last lines may lack their ends.
    pub fn finish(&mut self, mut found: impl FnMut(&PrintedMetrics)) {
        let reading = &mut self.reading;
        for (place, lines) in self.outputs.iter_mut().enumerate() {
            let output = if place == 0 { Printed::Stdout } else { Printed::Stderr };
            lines.finish(|number, line| reading.numbered((output, number), line, &mut found));
            if let Some(mut named) = reading.tables[place].finish().filter(|_| !reading.only_json) {
                reading.steps.line(&mut named, &mut found);
            }
        }
        reading.steps.finish(&mut found);
    }
}

/// Whether a line changed what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Something,
    Nothing,
}

impl Reading {
    /// A line as it was printed, with its number.
    fn numbered(&mut self, place: (Printed, u64), line: &[u8], found: &mut dyn FnMut(&PrintedMetrics)) {
        let settings = self.settings.left_out();
        self.place = Some(place);
        self.raw(place.0, line, found);
        self.leave_out(LeftOutKind::SurplusSettings, self.settings.left_out() - settings);
    }

    /// So many values or settings of the line that is being read are not taken.
    fn leave_out(&mut self, kind: LeftOutKind, count: u64) {
        if let Some(place) = self.place {
            self.left_out.add(kind, count, place);
        }
    }

    /// A line as it was printed. Only before the training begins may it be of a configuration.
    fn raw(&mut self, output: Printed, line: &[u8], found: &mut dyn FnMut(&PrintedMetrics)) {
        let is_indented = matches!(line.first(), None | Some(b' ' | b'\t'));
        if self.is_below_heading[output as usize] {
            self.is_below_heading[output as usize] = self.rows[output as usize].goes_on(line);
        }
        self.is_below_drawing[output as usize] &= is_indented;
        self.lists[output as usize].begin_line(line);
        let continued = self.continued[output as usize].filter(|indent| lines::indent_of(line) > *indent);
        self.continued[output as usize] = continued;
        let part = &mut self.part[output as usize];
        if text::heads_best_values(line) {
            let indent = lines::indent_of(line);
            *part = Some(Part { prefix: names::BEST.into(), indent, extent: Extent::Indented });
        } else if part.as_mut().is_some_and(|part| part.ends_at(line)) {
            *part = None;
        } else if let Some(part) = part.as_ref().filter(|part| part.is_titled() && text::is_rule(line)) {
            self.tables[output as usize].begin_below_title(part.prefix);
        }
        if !self.above[output as usize].is_empty() {
            self.see_below_line(output, line);
        }
        let is_at_rest = !self.only_json && self.is_at_rest(output);
        let is_row = self.is_below_heading[output as usize];
        let form = Some(line).filter(|_| is_at_rest).and_then(|line| self.forms.form_of(line));
        let form = form.map(|form| if is_row { form.of_row() } else { form });
        let quiet = form.filter(|form| form.may_be_quiet).map(|form| form.hash);
        if is_at_rest && (line.len() < LINE_BYTES_MIN || quiet.is_some_and(|form| self.quiet.has(form))) {
            return self.settings.interrupt();
        }
        let may_be_known = self.steps.has_begun() && continued.is_none();
        let known = form.filter(|_| may_be_known).and_then(|form| self.known.read(form, line, is_row));
        if let Some(Learnt { reading, number, is_plain, .. }) = known {
            let named = match reading {
                known::Reading::Values(named) => named,
                known::Reading::Bar(bar) => {
                    let purpose = self.steps.purpose_below(self.evaluated[output as usize].heading, bar);
                    return self.steps.bar(bar, purpose, *number, found);
                }
            };
            let at = output as usize;
            // Values of an evaluation have other names than those of the next line of the form.
            let is_plain = *is_plain && (named.has_place() || !self.evaluated[at].may_name());
            let mut copy = (!is_plain).then(|| known::copy_of(named));
            let named = copy.as_mut().unwrap_or(named);
            self.is_below_drawing[at] = named.is_drawn;
            self.evaluated[at].see(named);
            continue_below(&mut self.continued[at], named, lines::indent_of(line));
            self.lists[at].see(named);
            if named.surplus > 0
                && let Some(place) = self.place
            {
                self.left_out.add(LeftOutKind::SurplusValues, named.surplus, place);
            }
            if !is_plain {
                return self.steps.line(named, found);
            }
            let Some(step) = self.steps.plain_line(named) else {
                return self.steps.line(&mut known::copy_of(named), found);
            };
            let values = std::mem::take(&mut named.values);
            let metrics = PrintedMetrics { names: *number, ..PrintedMetrics::of(step, values) };
            found(&metrics);
            named.values = metrics.values;
            return;
        }
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
        let may_be_setting = !self.only_json && !self.steps.has_begun();
        if may_be_setting && self.calls[output as usize].has(line) {
            let settings = lines::readable(line).and_then(|line| text::read_text(&line, None));
            return self.values(settings.unwrap_or_default().into_settings(), found);
        }
        if may_be_setting && self.yaml[output as usize].take(line, &mut self.settings) {
            return;
        }
        self.indent = lines::indent_of(line);
        let printed = line;
        let Some(line) = lines::readable(line).filter(|_| !is_title) else {
            if !(is_title || printed.trim_ascii().is_empty() || text::is_rule(printed)) {
                self.part[output as usize].iter_mut().for_each(Part::see_text);
            }
            return;
        };
        let said = self.line(output, &line, found);
        if let Some(prefix) = numbered {
            self.begin_title(output, prefix, printed);
        } else if said == Said::Nothing
            && let Some(form) = quiet.filter(|_| !is_heading && self.is_at_rest(output))
            && !commas::depends_on_others(prefix::message_of(&line))
            && text::part_above_rule(printed).is_none()
        {
            self.quiet.add(form);
        }
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
        if text::is_rule(line)
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
    fn look_at(&mut self, line: &[u8], found: &mut dyn FnMut(&PrintedMetrics)) {
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
    fn may_read_on(&self, output: Printed) -> bool {
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
        self.tables[at].is_at_rest() && is_closed && !is_below && !is_of_part
    }

    /// A line is read by the first form it fits.
    fn line(&mut self, output: Printed, line: &str, found: &mut dyn FnMut(&PrintedMetrics)) -> Said {
        let is_object = line.starts_with('{');
        let read = if self.only_json { objects::read_object } else { read_logged };
        if let Some(object) = Some(line).filter(|_| is_object).and_then(read) {
            self.end_title(output, &object);
            self.values(object, found);
            return Said::Something;
        }
        if self.only_json {
            // Nothing else was printed to be read.
            return Said::Nothing;
        }
        if is_object {
            let dict = python::read_dict(line).map(objects::numbers_of);
            if let Some(mut dict) = dict.filter(Named::has_values) {
                self.end_title(output, &dict);
                let part = self.part[output as usize].as_mut().filter(|part| part.is_titled());
                if let Some(part) = part {
                    part.see_row();
                    objects::take_titled(&mut dict, part.prefix);
                }
                self.values(dict, found);
            }
            return Said::Something;
        }
        if line.starts_with(REPEATING) {
            return Said::Nothing;
        }
        if self.take_dicts(output, line, found) {
            return Said::Something;
        }
        self.for_people(output, line, found)
    }

    /// Sees an object or a row: one that says where the script is ends what is below a title.
    fn end_title(&mut self, output: Printed, named: &Named) {
        let at = output as usize;
        self.part[at] = self.part[at].take().filter(|part| !part.is_titled() || !named.has_place());
    }

    fn for_people(&mut self, output: Printed, line: &str, found: &mut dyn FnMut(&PrintedMetrics)) -> Said {
        let at = output as usize;
        let message = prefix::message_of(line);
        let tables = &mut self.tables[at];
        if let Some(mut ended) = tables.ended_box(message) {
            self.steps.line(&mut ended, found);
        }
        if let Some((bar, rest)) = bar::read_bar(line) {
            let part = &mut self.part[at];
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
            return Said::Something;
        }
        if bar::is_cut_short(line) {
            return Said::Something;
        }
        if self.part[at].is_none() {
            tables.end_title();
        }
        let taken = tables.take(message);
        let unread = tables.take_unread();
        self.leave_out(LeftOutKind::UnreadRows, unread);
        let tables = &mut self.tables[at];
        match taken {
            Taken::No => {}
            Taken::Part => {
                if tables.is_in_titled_box() {
                    self.part[at].iter_mut().for_each(Part::see_row);
                }
                return Said::Something;
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
                return Said::Something;
            }
        }
        let row = tables.take_row_of_parts(message);
        if let Some(row) = row.filter(|row| self.steps.has_begun() || row.meaning() == Some(Meaning::Measure))
        {
            self.values(row, found);
            return Said::Something;
        }
        if let Some(epoch) = bar::epoch_of_line(line) {
            self.evaluated[at].heading = None;
            let place = Named { epoch: Some(epoch), ..Named::default() };
            self.part[at] = self.part[at].take().and_then(|part| match part.extent {
                Extent::Block { .. } => part.goes_on(Some(&place)),
                _ => Some(part),
            });
            self.steps.epoch_begins(epoch, found);
            return Said::Something;
        }
        if !self.steps.has_begun() && self.settings.take_assignment(message) {
            return Said::Something;
        }
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
            let values = vec![below_title.and_then(columns::value_behind_brackets)?];
            Some(Named { values, ..Named::default() })
        });
        if !(is_titled && (message.trim().is_empty() || text::is_rule(message.as_bytes()))) {
            self.part[at] = self.part[at].take().and_then(|part| part.goes_on(named.as_ref()));
        }
        let Some(mut named) = named else { return Said::Nothing };
        if named.is_supposed && !self.steps.has_begun() {
            return Said::Something;
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
        Said::Something
    }

    /// Values, unless they are settings that are shown before the training begins.
    fn values(&mut self, mut named: Named, found: &mut dyn FnMut(&PrintedMetrics)) {
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
}

/// Lines that are indented below one with a place and measures continue it.
fn continue_below(continued: &mut Option<usize>, named: &Named, indent: usize) {
    *continued = continued.or(Some(indent).filter(|_| named.may_be_continued));
}

/// Whether a line of text has values.
fn has_values(line: &[u8]) -> bool {
    let line = lines::readable(line).unwrap_or_default();
    read_message(prefix::message_of(&line), None).is_some_and(|named| named.has_values())
}

/// An object with its numbers, and with what the text of a logger in it says.
fn read_logged(line: &str) -> Option<Named> {
    let fields = objects::fields_of(line)?;
    let text = objects::message_of(&fields).map(prefix::message_of);
    let said = text.filter(|text| !text.starts_with('{')).and_then(|text| read_message(text, None));
    let said = said.filter(|said| !said.is_supposed);
    let named = objects::numbers_of(fields);
    Some(named.with_said(said.unwrap_or_default())).filter(Named::has_values)
}

/// The result of a search, whose best parameters are a dict before its score: `best params: {'C': 10} best score: 0.91`.
fn read_search(message: &str, known: Option<Comma>) -> Option<Named> {
    let at = message.find('{')?;
    if !text::heads_settings(&message[..at], true) {
        return None;
    }
    let (dict, behind) = python::read_first_dict(&message[at..])?;
    let settings = objects::numbers_of(dict).into_settings().settings;
    let measured = text::read_text(behind.trim_start_matches([' ', ',', ';', '-', '|']), known);
    Some(Named { settings, ..measured.unwrap_or_default() }).filter(Named::has_values)
}

/// A message, at whose end may be a dict: `epoch 0: {'accuracy': 0.85}`. `known`: what a comma in a number is, by the lines before.
fn read_message(message: &str, known: Option<Comma>) -> Option<Named> {
    if let Some(special) = tools::read_trial(message)
        .or_else(|| tools::read_coco(message))
        .or_else(|| tools::read_sentence(message))
    {
        return Some(special);
    }
    if let Some((before, _)) = python::read_last_dicts(message) {
        return dicts::said_before(before, known);
    }
    let at_end = message.find('{').filter(|_| message.ends_with('}'));
    let dict = at_end.and_then(|at| Some((&message[..at], python::read_dict(&message[at..])?)));
    let dict = dict.or_else(|| python::read_last_collection(message));
    let Some((before, dict)) = dict else {
        return read_search(message, known).or_else(|| text::read_text(message, known));
    };
    let before = before.trim_end_matches([' ', ':', '-', '|', '=']);
    let mut named = objects::numbers_of(dict);
    objects::name_classes(&mut named, before);
    let is_of_settings = text::heads_settings(before, named.meaning() == Some(Meaning::Measure));
    let place = text::read_before_dict(before);
    if is_of_settings {
        let settings = named.into_settings().settings;
        return Some(Named { settings, ..place.unwrap_or_default() }).filter(Named::has_values);
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
        named.epoch = named.epoch.or(place.epoch);
    }
    let has_part = dicts::take_part_before(&mut named, before);
    let is_about_training = has_part || named.has_place() || named.meaning() == Some(Meaning::Measure);
    let has_decimals = named.values.iter().any(|(_, value)| value.fract() != 0.0);
    Some(named).filter(|named| named.has_values() && (is_about_training || has_decimals))
}
