//! Tables: a heading and rows below it (spaCy, fastai, scikit-learn, YOLO, CSV), and boxes of names and values
//! (Stable-Baselines).

mod boxes;
mod cells;
pub(super) mod columns;
mod headings;
mod named_rows;
mod parts;
mod results;

use std::borrow::Cow;

use boxes::{
    Boxed, heads_settings, is_rule_of_box, is_rule_of_plain, row_of_box, row_of_plain, row_of_spaced,
};
use cells::{
    COLUMNS_MAX, EPOCH_COLUMNS, STEP_COLUMNS, Separator, cells_of, cells_with_lists, columns_of,
    has_value_behind_name, is_drawn_rule, is_rule, list_of, number_equal, separator_of, with_plain_bars,
};
use headings::is_average_precision;
pub(super) use headings::may_head_named_rows;
use named_rows::{NamedRows, Row, is_row_of_measure};
pub(super) use parts::ends_with_part;
use parts::{parts_in, row_of_parts};
use results::{heads_list_of_results, is_of_classes, is_row_of_anything, results_of_line, row_of_results};

use super::lexical::commas;
use super::lexical::named::LineValues;
use super::lexical::names::{self, Meaning};
use super::lexical::part_name::PartName;
use super::lexical::tokens::number_of;
use columns::{Column, with_signs_at_numbers, with_units_at_names};

/// So many columns of statistics has the table of an evolution, as DEAP prints it: `gen  nevals  avg  std  min  max`.
const STATISTICS_MIN: usize = 2;
/// A heading is not longer.
const HEADING_BYTES_MAX: usize = 400;
/// `mAP50-95` has digits; a line with more is a row.
const HEADING_DIGITS_MAX: usize = 12;
/// What YOLO's mean over several overlaps ends with.
pub(super) const YOLO_OVERLAPS: &str = "@.5:.95";
/// So many cells before the numbers of a row may be words.
const LABELS_MAX: usize = 3;
/// The cell of a value that was not measured yet, as Transformers print it.
const WITHOUT_VALUE: &str = "No log";
/// A cell of a heading whose words may be columns has so many at most.
const CELL_WORDS_MAX: usize = 3;
/// After so many other lines a table has ended.
const OTHERS_MAX: u32 = 500;

/// The tables of one output.
#[derive(Debug, Default)]
pub(super) struct Tables {
    columns: Vec<Column>,
    /// The words of the heading, where these are others: one blank may as well be between two columns.
    words: Vec<Column>,
    separator: Separator,
    /// The columns that had a sign such as `+`, and those that had a number or a word, as bits.
    signs: u32,
    numbers: u32,
    /// The upper of two lines of a heading: the next one has the rest of the names.
    upper: Vec<Column>,
    others: u32,
    boxed: Option<Boxed>,
    /// The last line was a rule, which a box may be below.
    is_below_rule: bool,
    /// It was a rule of two parts, which a box without bars may be below.
    is_below_columns: bool,
    /// The columns of a heading between bars that has measures and no place: a row of numbers may be below it.
    results: Vec<Column>,
    /// The part of the data in the title above: a list of results without a heading may be below it, `| acc | 0.62 |`.
    title: Option<PartName>,
    /// What the last line said that results follow of: `Evaluation results for bbox:`.
    results_of: Option<String>,
    /// The prefixes of the columns of a heading that has parts of the data only.
    parts: Vec<&'static str>,
    /// A table whose rows have names.
    named_rows: Option<NamedRows>,
    /// So many rows of tables of results were not read since this was taken.
    unread: u64,
}

/// What a line is for the tables.
#[derive(Debug, PartialEq)]
pub(super) enum Taken {
    /// No part of a table.
    No,
    /// A heading, a rule, a row of a box, or a row without values.
    Part,
    /// A row with values.
    Values(Box<LineValues>),
}

impl Tables {
    /// No table is open.
    pub fn is_at_rest(&self) -> bool {
        let is_below = self.is_below_rule || self.is_below_columns || self.results_of.is_some();
        self.columns.is_empty()
            && self.boxed.is_none()
            && !is_below
            && self.results.is_empty()
            && self.parts.is_empty()
            && self.named_rows.is_none()
    }

    /// How many rows of tables of results were not read, each counted once.
    pub fn take_unread(&mut self) -> u64 {
        std::mem::take(&mut self.unread)
    }

    /// Sees a line that may be a heading of parts of the data.
    pub fn see_parts(&mut self, message: &str) -> bool {
        let parts = parts_in(&with_plain_bars(message));
        let is_heading = !parts.is_empty();
        if is_heading {
            self.parts = parts;
        }
        is_heading
    }

    /// Sees that the next line is below a title of results of this part of the data.
    pub fn begin_below_title(&mut self, part: PartName) {
        self.title = Some(part);
    }

    /// Sees that the next line is not below a title.
    pub fn end_title(&mut self) {
        self.title = None;
    }

    /// Whether a row of a box below a title was taken.
    pub fn is_in_titled_box(&self) -> bool {
        self.boxed.as_ref().is_some_and(|boxed| boxed.title.is_some())
    }

    /// The values of a measure for each part of the data, `accuracy  |  0.75  |  0.5`, below a heading that has them.
    pub fn take_row_of_parts(&mut self, message: &str) -> Option<LineValues> {
        let message = with_plain_bars(message);
        let message = &*with_signs_at_numbers(&message);
        if self.parts.is_empty()
            || is_rule(message)
            || is_drawn_rule(message)
            || !parts_in(message).is_empty()
        {
            return None;
        }
        let named = row_of_parts(&self.parts, message);
        if named.is_none() {
            self.parts.clear();
        }
        named
    }

    /// The box that has ended before this line, if one has.
    pub fn ended_box(&mut self, line: &str) -> Option<LineValues> {
        let boxed = self.boxed.as_ref()?;
        let is_row = match boxed.is_plain {
            true => row_of_plain(line).is_some(),
            false => {
                let plain = with_plain_bars(line);
                let plain = with_signs_at_numbers(&plain);
                row_of_box(&plain).is_some() || (boxed.is_drawn && row_of_spaced(&plain).is_some())
            }
        };
        if is_row { None } else { self.finish() }
    }

    /// The box that the output ended in.
    pub fn finish(&mut self) -> Option<LineValues> {
        let boxed = self.boxed.take()?;
        let step = boxed.step.map(|(_, step)| step);
        let mut named = LineValues { step, values: boxed.values, ..LineValues::default() };
        let has_unknown_step = boxed.is_plain || boxed.is_drawn || boxed.title.is_some();
        let is_measured = step.is_some() || (has_unknown_step && named.meaning() == Some(Meaning::Measure));
        named.take_titled(boxed.title);
        (is_measured && !named.values.is_empty()).then_some(named)
    }

    /// Reads a line.
    pub fn take(&mut self, line: &str) -> Taken {
        let is_below_rule = std::mem::replace(&mut self.is_below_rule, is_rule_of_box(line));
        let is_below_columns = std::mem::replace(&mut self.is_below_columns, is_rule_of_plain(line));
        let results_of = self.results_of.take();
        let drawn = with_plain_bars(line);
        let is_drawn = matches!(drawn, Cow::Owned(_));
        let line = &*with_signs_at_numbers(&drawn);
        if let Some(taken) = self.take_named_row(line) {
            return taken;
        }
        if self.boxed.is_none() && self.heads_named_rows(line) {
            return Taken::Part;
        }
        if self.take_boxed(line, is_drawn, is_below_rule, is_below_columns) {
            return Taken::Part;
        }
        if !self.upper.is_empty() && (is_rule(line) || self.lower_heading(line)) {
            return Taken::Part;
        }
        if !self.columns.is_empty() {
            if let Some(named) = self.row(line) {
                self.others = 0;
                return taken_of(named);
            }
            if is_rule(line) {
                return Taken::Part;
            }
        }
        if self.title.is_some() && !is_rule(line) && !is_drawn_rule(line) {
            self.title = None;
            self.begin_list(line);
        }
        if let Some(taken) = self.take_result(line) {
            return taken;
        }
        if self.leaves_out(line) || self.heading(line) {
            let group = results_of.unwrap_or_default();
            self.results.iter_mut().for_each(|column| column.name.insert_str(0, &group));
            return Taken::Part;
        }
        self.results_of = results_of_line(line);
        // One with a number may name the step: `Iteration 500: validation results for bbox:`.
        if self.results_of.is_some() && !line.contains(|letter: char| letter.is_ascii_digit()) {
            return Taken::Part;
        }
        self.others += 1;
        if self.others > OTHERS_MAX || self.ends_at(line) {
            self.columns.clear();
        }
        Taken::No
    }

    /// Takes a row of a box, which may be the first one below a rule or between drawn bars; false if the line is none.
    fn take_boxed(
        &mut self,
        line: &str,
        is_drawn: bool,
        is_below_rule: bool,
        is_below_columns: bool,
    ) -> bool {
        if let Some((name, value)) = row_of_box(line)
            && (self.boxed.is_some()
                || value.is_empty()
                || is_below_rule
                || self.is_row_of_drawn(is_drawn, name, value))
        {
            let title = self.title.take();
            self.boxed.get_or_insert(Boxed { is_drawn, title, ..Boxed::default() }).take(name, value);
            return true;
        }
        if is_drawn && self.columns.is_empty() && self.take_spaced(line) {
            return true;
        }
        if self.boxed.as_ref().map_or(is_below_columns, |boxed| boxed.is_plain)
            && let Some((name, value)) = row_of_plain(line)
        {
            self.boxed.get_or_insert(Boxed { is_plain: true, ..Boxed::default() }).take(&name, value);
            return true;
        }
        false
    }

    /// What a line is for the table of results that is open. Nothing: for none, and the table has ended.
    fn take_result(&mut self, line: &str) -> Option<Taken> {
        if self.results.is_empty() {
            return None;
        }
        if is_rule(line) || is_drawn_rule(line) {
            return Some(Taken::Part);
        }
        let columns = std::mem::take(&mut self.results);
        if let Some((named, may_go_on)) = row_of_results(&columns, line) {
            self.results = if may_go_on { columns } else { Vec::new() };
            return Some(taken_of(named));
        }
        let is_unread = is_row_of_anything(&columns, line);
        if is_unread {
            self.unread += 1;
            self.results = columns;
        }
        is_unread.then_some(Taken::Part)
    }

    /// What a line is for the table of named rows that is open. Nothing: for none, and the table has ended.
    fn take_named_row(&mut self, line: &str) -> Option<Taken> {
        let rows = self.named_rows.as_mut()?;
        let row = rows.take(line);
        self.unread += std::mem::take(&mut rows.unread);
        match row {
            Row::No => {
                self.named_rows = None;
                return None;
            }
            Row::Part => {}
            Row::Unread => self.unread += 1,
            Row::Values(named) => return Some(Taken::Values(named)),
            Row::Places(columns) => {
                self.named_rows = None;
                self.begin(columns, Vec::new(), Separator::Blanks);
            }
        }
        Some(Taken::Part)
    }

    /// Whether a line is the heading of a table of named rows. Within a table with steps only one is that says what its
    /// rows are.
    fn heads_named_rows(&mut self, line: &str) -> bool {
        let is_within = !self.columns.is_empty() && self.others == 0;
        let table = NamedRows::headed(line).filter(|table| !is_within || table.is_headed());
        let is_heading = table.is_some();
        if is_heading {
            (self.named_rows, self.title) = (table, None);
            (self.columns, self.results) = (Vec::new(), Vec::new());
        }
        is_heading
    }

    /// Leaves out a row of a measure that nothing shows the columns of. Whether a line is one.
    fn leaves_out(&mut self, line: &str) -> bool {
        let is_row = self.parts.is_empty() && is_row_of_measure(line);
        self.unread += u64::from(is_row);
        is_row
    }

    /// Begins a list of results that has no heading, if the line is a row of one.
    fn begin_list(&mut self, line: &str) {
        let columns = ["metric", "value"].map(Column::of);
        let is_row = row_of_results(&columns, line).is_some_and(|(named, _)| !named.values.is_empty());
        if is_row && self.results.is_empty() {
            self.columns.clear();
            self.results = columns.into();
        }
    }

    /// Takes a row of a box that has blanks between names and values, or the heading of one with settings:
    /// `│ lr     0.5 │`; false if the line is none.
    fn take_spaced(&mut self, line: &str) -> bool {
        if let Some((name, value)) = row_of_spaced(line)
            && (self.boxed.is_some() || Column::of_row(name).value(value).is_some())
        {
            let title = self.title.take();
            self.boxed.get_or_insert(Boxed { is_drawn: true, title, ..Boxed::default() }).take(name, value);
            return true;
        }
        let is_of_settings = heads_settings(line);
        if is_of_settings && self.boxed.is_none() {
            self.boxed = Some(Boxed { is_drawn: true, is_of_settings, ..Boxed::default() });
        }
        is_of_settings
    }

    /// Takes a heading in; false if the line is none.
    fn heading(&mut self, line: &str) -> bool {
        let has_numbers = line.bytes().filter(u8::is_ascii_digit).count() > HEADING_DIGITS_MAX;
        if line.len() > HEADING_BYTES_MAX || has_numbers {
            return false;
        }
        // YOLO's mean over several overlaps.
        let line = &*match line.contains(YOLO_OVERLAPS) {
            true => Cow::Owned(line.replace(YOLO_OVERLAPS, "50-95").replace("@.5", "50")),
            false => Cow::Borrowed(line),
        };
        if line.contains([':', '=']) {
            return false;
        }
        let line = &*with_units_at_names(line);
        let line = line.strip_prefix("# ").unwrap_or(line).trim_start();
        let Some(separator) = separator_of(line) else { return false };
        let has_single_blanks =
            separator == Separator::Blanks && !line.contains("  ") && !line.contains('\t');
        let cells = match has_single_blanks {
            true => line.split(' ').take(COLUMNS_MAX + 1).collect(),
            false => cells_of(line, separator, true),
        };
        if !(2..=COLUMNS_MAX).contains(&cells.len()) {
            return false;
        }
        // One blank may be between two columns, `Epoch batch         loss`, as well as in a name.
        let words = match separator {
            Separator::Blanks if cells.iter().all(|cell| cell.split(' ').count() <= CELL_WORDS_MAX) => {
                columns_of(line.split_whitespace().take(COLUMNS_MAX + 1).collect())
            }
            _ => Vec::new(),
        };
        let has_values = cells.iter().any(|cell| has_value_behind_name(cell));
        let has_measure_in_cases = cells.iter().any(|cell| names::has_measure_in_camel_case(cell));
        let columns = columns_of(cells);
        let is_text = |column: &Column| {
            let first = column.name.chars().next();
            first.is_some_and(|letter| letter.is_alphabetic() || letter == '#') && !column.name.contains('"')
        };
        let titles = || columns.iter().map(|column| column.name.as_str());
        let has =
            |known: &[&str]| columns.iter().chain(&words).any(|column| known.contains(&column.name.as_str()));
        let names_parts = has(&EPOCH_COLUMNS) && titles().any(|name| names::part_of_data(name).is_some());
        let places = has(&STEP_COLUMNS) || has(&EPOCH_COLUMNS) || is_of_classes(&columns);
        let is_of_evolution = columns[0].name == "gen"
            && titles().filter(|name| names::is_of_mean(name)).count() >= STATISTICS_MIN;
        let measures = has_measure_in_cases
            || names_parts
            || is_of_evolution
            || (has(&["box"]) && has(&["obj"]))
            || titles().any(|name| names::meaning_of(name) == Meaning::Measure);
        let is_heading = columns.iter().all(is_text) && places && measures;
        let may_be_upper = separator == Separator::Bar && columns.len() > 2 && places && !measures;
        if may_be_upper && columns.iter().all(is_text) {
            self.upper = columns;
            return true;
        }
        let is_between_bars = separator == Separator::Bar && line.starts_with('|') && line.ends_with('|');
        let has_results =
            || measures || titles().any(is_average_precision) || heads_list_of_results(&columns);
        if is_between_bars && !places && !has_values && has_results() && columns.iter().all(is_text) {
            (self.columns, self.results) = (Vec::new(), columns);
            return true;
        }
        if is_heading {
            self.begin(columns, words, separator);
        }
        is_heading
    }

    /// Whether another table begins, whose heading has words between bars and no place: `|  aAcc |  mIoU |  mAcc |`.
    fn ends_at(&self, line: &str) -> bool {
        let is_word = |cell: &str| cell.trim().starts_with(char::is_alphabetic);
        self.separator == Separator::Bar
            && line.starts_with('|')
            && line.trim_matches('|').split('|').all(is_word)
    }

    fn begin(&mut self, mut columns: Vec<Column>, mut words: Vec<Column>, separator: Separator) {
        number_equal(&mut columns);
        number_equal(&mut words);
        (self.columns, self.words, self.separator) = (columns, words, separator);
        (self.others, self.signs, self.numbers) = (0, 0, 0);
    }

    /// Whether a row of two cells between drawn bars has a name and is of no table with a heading.
    fn is_row_of_drawn(&self, is_drawn: bool, name: &str, value: &str) -> bool {
        let is_open = !self.columns.is_empty() || !self.results.is_empty();
        let is_row = is_drawn && !is_open && name.starts_with(char::is_alphabetic);
        is_row && Column::of_row(name).value(value).is_some()
    }

    /// Takes the second line of a heading in: `| Accuracy |` below `| Mini-batch |`; false if the line is none.
    fn lower_heading(&mut self, line: &str) -> bool {
        let upper = std::mem::take(&mut self.upper);
        let is_row = line.len() <= HEADING_BYTES_MAX
            && line.starts_with('|')
            && !line.contains(|letter: char| letter.is_ascii_digit());
        let lower = columns_of(if is_row { cells_of(line, Separator::Bar, true) } else { Vec::new() });
        if lower.len() != upper.len() {
            return false;
        }
        let columns: Vec<Column> =
            upper.into_iter().zip(&lower).map(|(upper, lower)| upper.above(lower)).collect();
        let measures = columns.iter().any(|column| names::meaning_of(&column.name) == Meaning::Measure);
        if measures {
            self.begin(columns, Vec::new(), Separator::Bar);
        }
        measures
    }

    /// The row of the table that a line is.
    fn row(&mut self, line: &str) -> Option<LineValues> {
        if line.contains('|') && self.separator == Separator::Blanks {
            return None;
        }
        let first = line.trim_start_matches('|').trim_start();
        if !first.starts_with(|letter: char| letter.is_ascii_digit()) && !first.starts_with("all") {
            return self.labelled_row(line);
        }
        let plain = match self.separator == Separator::Blanks && line.contains(WITHOUT_VALUE) {
            true => Cow::Owned(line.replace(WITHOUT_VALUE, "-")),
            false => Cow::Borrowed(line),
        };
        let cells = match plain.contains('[') {
            true => cells_with_lists(&plain),
            false => cells_of(&plain, self.separator, false),
        };
        if cells.len() == self.columns.len() {
            self.see_signs(&cells);
        }
        match [&self.columns, &self.words].into_iter().find(|columns| columns.len() == cells.len()) {
            Some(columns) => self.row_of(columns, cells),
            None => self.row_without_signs(cells),
        }
    }

    /// Sees which cells of a row have a number or a word and which have a sign.
    fn see_signs(&mut self, cells: &[&str]) {
        for (at, cell) in cells.iter().enumerate() {
            let bit = 1u32.checked_shl(at as u32).unwrap_or(0);
            match cell.contains(char::is_alphanumeric) {
                true => self.numbers |= bit,
                false => self.signs |= bit,
            }
        }
    }

    /// A row of numbers that lacks the cells of all columns that had nothing but signs: skorch's `cp` is `+` or empty.
    fn row_without_signs(&self, cells: Vec<&str>) -> Option<LineValues> {
        let signs = self.signs & !self.numbers;
        let lacking = signs.count_ones() as usize;
        let is_row = lacking > 0
            && cells.len() + lacking == self.columns.len()
            && cells.iter().all(|cell| number_of(&commas::pointed(cell)).is_some());
        let is_left = |at: usize| signs >> at & 1 == 0;
        let columns =
            self.columns.iter().enumerate().filter(|(at, _)| is_left(*at)).map(|(_, column)| column);
        if is_row { self.row_of(columns, cells) } else { None }
    }

    /// A row that begins with the part of the data, and whose numbers are below the last columns: `! Validation   3   0.5`.
    fn labelled_row(&self, line: &str) -> Option<LineValues> {
        let cells = cells_of(line, self.separator, false);
        let is_number =
            |cell: &&str| cell.starts_with(|letter: char| letter.is_ascii_digit() || "+-.".contains(letter));
        let labels = cells.iter().take(LABELS_MAX).take_while(|cell| !is_number(cell)).count();
        let part = cells[..labels].iter().find_map(|label| names::part_of_data(label))?;
        let numbers = &cells[labels..];
        let columns = self.columns.get(self.columns.len().checked_sub(numbers.len())?.max(1)..)?;
        let mut named = self.row_of(columns, numbers.to_vec()).filter(|_| columns.len() == numbers.len())?;
        named.take_part(part.or(Some("train")));
        Some(named)
    }

    fn row_of<'c>(
        &self,
        columns: impl IntoIterator<Item = &'c Column>,
        cells: Vec<&str>,
    ) -> Option<LineValues> {
        let mut named = LineValues::default();
        let mut best = usize::MAX;
        for (column, cell) in columns.into_iter().zip(cells) {
            let name = &column.name;
            if let Some(place) = STEP_COLUMNS.iter().position(|known| known == name) {
                if place < best {
                    named.step = cell.parse().ok();
                    best = place;
                }
            } else if EPOCH_COLUMNS.contains(&name.as_str()) {
                let (epoch, of) = cell.split_once('/').map_or((cell, None), |(epoch, of)| (epoch, Some(of)));
                named.epoch = epoch.parse().ok();
                named.epoch_counted_from_one = of.is_some();
            } else if name == "batch" {
                named.position = cell.parse().ok();
            } else if let Some(value) = column.value(cell).filter(|_| names::may_be_metric(name)) {
                named.values.push((names::plain(name.clone()), value));
            } else if let Some(values) = list_of(name, cell) {
                named.values.extend(values);
            }
        }
        let has_place = named.has_place() || is_of_classes(&self.columns);
        has_place.then_some(named)
    }
}

/// What a row is.
fn taken_of(row: LineValues) -> Taken {
    if row.values.is_empty() { Taken::Part } else { Taken::Values(Box::new(row)) }
}
