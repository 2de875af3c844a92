//! What lines above one say about it: of which part of the data it is, and what it continues.

use crate::printed::bar::Bar;
use crate::printed::lexical::named::LineValues;
use crate::printed::lexical::names::{self, Meaning};
use crate::printed::lexical::part_name::PartName;
use crate::printed::{lines, text};

/// The part of the data that a heading names.
#[derive(Debug)]
pub(in crate::printed) struct Part {
    pub prefix: PartName,
    /// So much is the heading indented.
    pub indent: usize,
    pub extent: Extent,
}

/// Which lines are below a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::printed) enum Extent {
    /// The next line shows it: a rule below it makes it a title.
    Unclear { has_colon: bool },
    /// Those that are indented further.
    Indented,
    /// All with values up to the next empty one, of a title up to the first empty one behind a value; the first of them
    /// may say where the script is. `has_text`: something else came before the first value.
    Block { has_values: bool, is_titled: bool, has_text: bool },
    /// Those of the drawn box whose title it is.
    Box,
}

impl Part {
    /// What is below a title.
    pub fn titled(prefix: PartName, line: &[u8]) -> Self {
        let extent = Extent::Block { has_values: false, is_titled: true, has_text: false };
        Self { prefix, indent: lines::indent_of(line), extent }
    }

    /// What is in a box that has it as its title.
    pub fn of_box(prefix: PartName) -> Self {
        Self { prefix, indent: 0, extent: Extent::Box }
    }

    /// A line is not below the heading any more that is not indented further and no item of a list, no comment and not
    /// empty. Where the first one is right below a colon and not indented, or a rule, only an empty one ends it.
    pub fn ends_at(&mut self, line: &[u8]) -> bool {
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
            Extent::Box => !text::is_of_box(line),
            _ => !is_below && !matches!(line.first(), None | Some(b'#')),
        }
    }

    pub fn is_titled(&self) -> bool {
        matches!(self.extent, Extent::Block { is_titled: true, .. })
    }

    /// Whether it reaches beyond a drawing of a bar: a title does beyond one that shows how far an evaluation is, not
    /// beyond one that names its place.
    pub fn reaches_beyond(&mut self, bar: &Bar) -> bool {
        let Extent::Block { has_values, is_titled, has_text } = &mut self.extent else { return true };
        *has_text = true;
        let is_silent = bar.values.is_empty() && bar.epoch.is_none() && bar.step.is_none();
        *is_titled && !*has_values && is_silent
    }

    /// Sees a line without values.
    pub fn see_text(&mut self) {
        if let Extent::Block { has_text, .. } = &mut self.extent {
            *has_text = true;
        }
    }

    /// Sees a row of a table with values.
    pub fn see_row(&mut self) {
        if let Extent::Block { has_values, .. } = &mut self.extent {
            *has_values = true;
        }
    }

    /// Sees what a line says. One with a place is of the training again; the first one of a block, without values, is not, nor
    /// is one that says nothing below a title; behind such a line a place is of the training in any case. Of results below
    /// a title some may not be read, which end none of the others.
    pub fn remains(mut self, named: Option<&LineValues>) -> Option<Self> {
        let has_place = named.is_some_and(LineValues::has_place);
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
pub(in crate::printed) struct List {
    /// The line that is being read is an item, indented by so much.
    pub item: Option<usize>,
    /// So much are the items right above indented, of which one has a measure: those below it have values of any name.
    pub measured: Option<usize>,
}

impl List {
    pub fn begin_line(&mut self, line: &[u8]) {
        self.item = lines::indent_of_item(line);
        self.measured = self.measured.filter(|_| self.measured == self.item);
    }

    pub fn see(&mut self, named: &LineValues) {
        if self.item.is_some() && named.meaning() == Some(Meaning::Measure) {
            self.measured = self.item;
        }
    }
}

/// What lines that count how far an evaluation is have as values, `Test: [10/16] loss: 0.5`, up to the next other line.
#[derive(Debug, Default)]
pub(in crate::printed) struct Evaluated {
    names: Vec<String>,
    /// The names in the last line that says where the training is.
    trained: Vec<String>,
    /// The part of the data of an evaluation that a line says begins, up to the next line that says where the script is.
    pub heading: Option<&'static str>,
}

impl Evaluated {
    /// Whether the next line that does not say where the script is may have the names of an evaluation above it.
    pub fn may_name(&self) -> bool {
        self.heading.is_some() || !self.names.is_empty()
    }

    /// Sees a line. One that does not say where the script is and has only values of the counts above it sums the
    /// evaluation up. It has their part of the data where the training has values of the same names:
    /// `Averaged stats: loss: 0.5`. So has one below `Evaluating top_k_accuracy ...`.
    pub fn see(&mut self, named: &mut LineValues) {
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
fn remember_names(names: &mut Vec<String>, named: &LineValues) {
    let (Some((first, _)), Some((last, _))) = (named.values.first(), named.values.last()) else { return };
    let is_known =
        names.len() == named.values.len() && names.first() == Some(first) && names.last() == Some(last);
    if !is_known {
        *names = named.values.iter().map(|(name, _)| name.clone()).collect();
    }
}
