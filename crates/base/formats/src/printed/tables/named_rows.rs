//! Tables whose rows have names: of models, methods, data sets, classes or folds, `| resnet | 0.62 |` below
//! `| model | acc |`.
//!
//! They are read where the heading says what the rows are, or has measures only, as pandas and scikit-learn's reports
//! have, and where each cell below a measure is a number or says that there is none. The name of the row precedes those of
//! its columns: `resnet/acc`. A row between bars that is not read is counted: such a table shows what was measured.

use std::borrow::Cow;
use std::collections::HashSet;

use super::super::lexical::commas;
use super::super::lexical::named::LineValues;
use super::super::lexical::names::{self, Meaning};
use super::super::lexical::tokens::number_of;
use super::super::text::part_of_distribution;
use super::super::{NAME_BYTES_MAX, VALUES_MAX};
use super::cells::{COLUMNS_MAX, is_drawn_rule, is_rule, number_equal};
use super::columns::{Column, NAME_WORDS_MAX, with_units_at_names};
use super::headings::{Heading, Layout, cells_between, heads_values, is_measure, is_place, rows_beside};
use super::results::is_result;
use super::{HEADING_BYTES_MAX, LABELS_MAX};

/// Names of so many rows are remembered: a later row of the same name is of something else.
const ROWS_MAX: usize = 4_096;
/// What pandas names the first row of a description of data, which shows no results.
const FIRST_OF_DESCRIPTION: &str = "count";
/// Cells that say that there is no value.
const MISSING: [&str; 12] = ["", "-", "--", "---", "–", "—", "nan", "n/a", "na", "none", "null", "<na>"];

/// What a line is for an open table of named rows.
#[derive(Debug, PartialEq)]
pub(super) enum Row {
    /// No part of it.
    No,
    /// A rule, or a row without values.
    Part,
    /// A row that is not read.
    Unread,
    Values(Box<LineValues>),
    /// The table has this column for the place of its rows, which are no named ones.
    Places(Vec<Column>),
}

/// An open table of named rows.
#[derive(Debug)]
pub(super) struct NamedRows {
    /// What the rows are: `fold`. A row with a number as its name has it, too: `fold_1`.
    kind: String,
    columns: Vec<Column>,
    layout: Layout,
    has_bars: bool,
    /// So many cells precede the name of a row: pandas' index between bars.
    before_name: usize,
    /// So many rows are beside one another in a line, as Detectron2 prints classes: `| class | AP | class | AP |`.
    beside: usize,
    /// Rows have two names, and the first one is not repeated: an index of pandas.
    is_sparse: bool,
    /// It describes data: pandas' `count`, `mean`, `std`.
    describes_data: bool,
    seen: HashSet<String>,
    /// So many rows beside others were not read since they were last taken.
    pub unread: u64,
    /// The name in the row above.
    last: String,
    /// So many lines were seen since the heading, and so many rows.
    lines: u32,
    rows: u32,
}

impl NamedRows {
    /// The table that a heading begins.
    pub fn headed(line: &str) -> Option<Self> {
        let has_bars = line.starts_with('|') && line.ends_with('|') && line.len() > 1;
        let may_be = has_bars || (!line.contains('|') && (line.contains("  ") || line.contains('\t')));
        if !may_be || line.len() > HEADING_BYTES_MAX || line.contains([':', '=', '"']) {
            return None;
        }
        let line = &*with_units_at_names(line);
        let cells = cells_between(line, has_bars);
        let is_kind = |cell: &str| names::heads_rows(&cell.to_lowercase());
        let has_index = has_bars && matches!(&cells[..], ["", kind, _, ..] if is_kind(kind));
        let before_name = usize::from(has_index);
        let beside = if has_bars { rows_beside(cells.get(before_name..)?) } else { 1 };
        let heading =
            Heading::of(&cells[before_name..before_name + (cells.len() - before_name) / beside], has_bars)?;
        let (mut columns, layout) = heading.columns()?;
        let is_report = heading.is_report();
        number_equal(&mut columns);
        Some(Self {
            kind: if is_report { "class".into() } else { heading.kind },
            columns,
            layout,
            has_bars,
            before_name,
            beside,
            is_sparse: false,
            describes_data: false,
            seen: HashSet::new(),
            unread: 0,
            last: String::new(),
            lines: 0,
            rows: 0,
        })
    }

    /// Whether the heading says what the rows are or has bars.
    pub fn is_headed(&self) -> bool {
        self.has_bars || !self.kind.is_empty() || self.layout != Layout::Measures
    }

    /// Reads a line below the heading.
    pub fn take(&mut self, line: &str) -> Row {
        self.lines += 1;
        if is_rule(line) || is_drawn_rule(line) {
            return Row::Part;
        }
        match self.has_bars {
            true => self.between_bars(line),
            false => self.between_blanks(line),
        }
    }

    fn between_bars(&mut self, line: &str) -> Row {
        if !(line.starts_with('|') && line.ends_with('|')) {
            return Row::No;
        }
        let cells = cells_between(line, true);
        let width = 1 + self.columns.len();
        let is_row = cells.len() == self.before_name + width * self.beside;
        let is_word = |cell: &&str| cell.contains(char::is_alphabetic) && !is_missing(cell);
        // `| aAcc | mIoU | mAcc |` below the rows of the classes
        let heads_results =
            cells.iter().all(is_word) && cells.iter().any(|cell| is_measure(&Column::of(cell)));
        if !is_row || heads_results || Self::headed(line).is_some() {
            return Row::No;
        }
        self.rows += 1;
        let mut values = Vec::new();
        for cells in cells[self.before_name..].chunks_exact(width) {
            match self.row(cells[0], &cells[1..]) {
                Row::Values(mut named) if self.beside > 1 => values.append(&mut named.values),
                Row::Part if self.beside > 1 => {}
                Row::Unread if self.beside > 1 => self.unread += 1,
                row => return row,
            }
        }
        if values.is_empty() { Row::Part } else { Row::Values(Box::new(of_values(values))) }
    }

    fn between_blanks(&mut self, line: &str) -> Row {
        let words: Vec<&str> = line.split_whitespace().take(COLUMNS_MAX + NAME_WORDS_MAX + 2).collect();
        if let ([word], 1, true) = (&words[..], self.lines, self.kind.is_empty()) {
            return self.name_of_index(word);
        }
        if self.lines == 1 && self.takes_index_of_two(&words) {
            return Row::Part;
        }
        // `vit  cifar  0.62`
        let is_tabular = cells_between(line, false).len() > self.columns.len();
        let is_name = |column: &Column, cell: &str| {
            is_tabular && names::heads_rows(&column.name) && cell.starts_with(char::is_alphabetic)
        };
        let is_cell = |column: &Column, cell: &&str| {
            column.value(cell).is_some() || is_missing(cell) || is_name(column, cell)
        };
        let count = words.len().saturating_sub(self.columns.len());
        let (label, cells) = words.split_at(count);
        let last = [std::mem::take(&mut self.last)];
        let last = last.each_ref().map(String::as_str);
        let is_repeated = self.is_sparse && words.len() == self.columns.len();
        let label = if is_repeated { &last[..] } else { label };
        let fits = !label.is_empty()
            && !self.columns.is_empty()
            && self.columns.iter().zip(cells).all(|(column, cell)| is_cell(column, cell));
        if !fits {
            return self.measure_of_report(&words);
        }
        let label = self.without_index(label);
        self.last = label.join(" ");
        let gap = line.trim_end().strip_suffix(cells[cells.len() - 1]).unwrap_or_default();
        let has_gap = gap.ends_with("  ") || gap.ends_with('\t');
        let is_decimal = |cell: &&str| commas::pointed(cell).contains(['.', '%']);
        let has_decimals = cells.iter().any(is_decimal) || cells.iter().all(|cell| is_missing(cell));
        let is_sentence = label
            .iter()
            .map(|word| word.to_lowercase())
            .any(|word| names::is_linking(&word) || names::place_of(&[word.as_str()], &word).is_some());
        let is_certain = self.layout == Layout::List || ((cells.len() > 1 || has_gap) && has_decimals);
        if label.len() > NAME_WORDS_MAX || is_sentence || !is_certain {
            return Row::No;
        }
        if has_further_numbers(line, label) {
            return Row::Unread;
        }
        if self.rows == 0 && self.kind.is_empty() && self.layout == Layout::Measures {
            self.describes_data = label == [FIRST_OF_DESCRIPTION];
        }
        self.rows += 1;
        self.row(&label.join(" "), cells)
    }

    /// The line below the heading of pandas that names the index: `model`, or where the rows are: `epoch`.
    fn name_of_index(&mut self, word: &str) -> Row {
        let column = Column::of(word);
        if is_place(&column) {
            return Row::Places(std::iter::once(column).chain(std::mem::take(&mut self.columns)).collect());
        }
        if !names::heads_rows(&column.name) {
            return Row::No;
        }
        self.kind = column.name;
        Row::Part
    }

    /// Whether the line below the heading of pandas has two names of the index: `model seed`. The second one heads a column.
    fn takes_index_of_two(&mut self, words: &[&str]) -> bool {
        let &[first, second] = words else { return false };
        let [first, second] = [first, second].map(Column::of);
        let is_index =
            self.kind.is_empty() && names::heads_rows(&first.name) && names::heads_rows(&second.name);
        if is_index {
            self.kind = first.name;
            self.columns.insert(0, second);
            self.is_sparse = true;
        }
        is_index
    }

    /// The words of a row without the number that pandas counts it by.
    fn without_index<'w>(&self, label: &'w [&'w str]) -> &'w [&'w str] {
        match label {
            [index, rest @ ..] if !rest.is_empty() && index.parse() == Ok(self.rows) => rest,
            _ => label,
        }
    }

    /// A row of a report that has one measure and lacks the cells of the others: `accuracy       0.62     100`.
    fn measure_of_report(&self, words: &[&str]) -> Row {
        let [name, cells @ ..] = words else { return Row::No };
        let column = Column::of(name);
        let fits = self.columns.len() > cells.len() && is_measure(&column) && self.layout == Layout::Measures;
        match cells.first().and_then(|cell| column.value(cell)).filter(|_| fits && cells.len() <= 2) {
            Some(value) => Row::Values(Box::new(of_values(vec![(names::plain(column.name), value)]))),
            None => Row::No,
        }
    }

    /// A row with this name and these cells.
    fn row(&mut self, label: &str, cells: &[&str]) -> Row {
        let label = without_marks(label);
        if self.describes_data {
            return Row::Part;
        }
        match self.layout {
            Layout::Measures => self.row_of_measures(label, cells),
            Layout::Pairs { metric, value, error } => self.pair(label, cells, (metric, value, error)),
            Layout::Transposed => self.row_of_measure(label, cells),
            Layout::List => match cells.first().and_then(|cell| listed(label, cell)) {
                Some(value) => Row::Values(Box::new(of_values(vec![value]))),
                None => Row::Part,
            },
        }
    }

    fn row_of_measures(&mut self, label: &str, cells: &[&str]) -> Row {
        let Some(values) = self.values_of(cells) else { return Row::Unread };
        if values.is_empty() {
            return Row::Part;
        }
        if let Some(part) = part_of_distribution(label) {
            let mut named = of_values(values);
            named.take_titled(Some(part));
            return Row::Values(Box::new(named));
        }
        if let Some(part) = names::part_of_data(label) {
            let mut named = of_values(values);
            named.take_part(part.or(Some("train")));
            return Row::Values(Box::new(named));
        }
        // `| mAP |  |  | 0.62 |`: the mean of the classes.
        let own = Column::of(label);
        if let [(_, value)] = values[..]
            && is_measure(&own)
            && self.columns.len() > 1
            && !self.columns.contains(&own)
        {
            return Row::Values(Box::new(of_values(vec![(names::plain(own.name), value)])));
        }
        if label.eq_ignore_ascii_case("all") && matches!(&*self.kind, "class" | "classes") {
            return Row::Values(Box::new(of_values(values)));
        }
        let words = self.words_before_measures(cells);
        let words: Vec<&str> = words.iter().map(|word| &**word).collect();
        let Some(name) = self.name_of(label, &words) else { return Row::Unread };
        let of_row = values.into_iter().map(|(column, value)| (format!("{name}/{column}"), value));
        let values: Vec<_> = of_row.filter(|(name, _)| name.len() <= NAME_BYTES_MAX).collect();
        if values.is_empty() || !self.see(&name) {
            return Row::Unread;
        }
        Row::Values(Box::new(of_values(values)))
    }

    /// A row that has the values of one measure, in a column for each model or fold: `resnet/loss`. Beside a column of
    /// values the others say more about these: `loss`, `loss_std`.
    fn row_of_measure(&mut self, label: &str, cells: &[&str]) -> Row {
        let measure = Column::of(label);
        if !is_measure(&measure) || !self.see(&measure.name) {
            return Row::Unread;
        }
        let has_values = self.columns.iter().any(|column| heads_values(&column.name));
        let name = names::plain(measure.name.clone());
        let mut values = Vec::new();
        for (column, cell) in self.columns.iter().zip(cells) {
            match measure.value(cell).filter(|value| !value.is_nan()) {
                Some(value) if heads_values(&column.name) => values.push((name.clone(), value)),
                Some(value) if has_values => values.push((format!("{name}_{}", column.name), value)),
                Some(value) => values.push((name_below(&column.name, &name), value)),
                None if is_missing(cell) => {}
                None => return Row::Unread,
            }
        }
        values.retain(|(name, _)| name.len() <= NAME_BYTES_MAX);
        if values.is_empty() { Row::Part } else { Row::Values(Box::new(of_values(values))) }
    }

    /// The values of a row. None: a cell below a measure has something else.
    fn values_of(&self, cells: &[&str]) -> Option<Vec<(String, f64)>> {
        let mut values = Vec::new();
        for (column, cell) in self.columns.iter().zip(cells) {
            let is_measured = is_measure(column);
            let value = column.value(cell).filter(|value| !value.is_nan());
            let counts = value.is_some_and(|_| !commas::pointed(cell).contains(['.', '%', 'e']));
            let is_value = value.is_some() && (is_measured || !counts) && names::may_be_metric(&column.name);
            match value.filter(|_| is_value && !column.name.is_empty()) {
                Some(value) if values.len() < VALUES_MAX => {
                    values.push((names::plain(column.name.clone()), value));
                }
                None if is_measured && !is_missing(cell) => return None,
                _ => {}
            }
        }
        Some(values)
    }

    /// The words in the cells between the name of the row and its first measure, `| resnet | cifar | 0.62 |`, with the
    /// numbers of what rows are named by: `seed_1` of `| resnet | 1 | 0.62 |`.
    fn words_before_measures<'c>(&self, cells: &[&'c str]) -> Vec<Cow<'c, str>> {
        let named = |(column, cell): (&Column, &&'c str)| {
            let is_number = !cell.is_empty() && cell.bytes().all(|letter| letter.is_ascii_digit());
            let numbered =
                (is_number && names::heads_rows(&column.name)).then(|| format!("{}_{cell}", column.name));
            numbered.map(Cow::Owned).or_else(|| is_word(cell).then_some(Cow::Borrowed(*cell)))
        };
        let columns = self.columns.iter().take_while(|column| !is_measure(column));
        columns.zip(cells).filter_map(named).take(LABELS_MAX - 1).collect()
    }

    /// The name of a row, in small letters: `logistic_regression`, `fold_1`.
    fn name_of(&self, label: &str, further: &[&str]) -> Option<String> {
        let is_number = !label.is_empty() && label.bytes().all(|letter| letter.is_ascii_digit());
        let first = match is_number && !self.kind.is_empty() {
            true => format!("{}_{label}", self.kind),
            false => label.to_owned(),
        };
        let mut name = String::new();
        for part in std::iter::once(&*first).chain(further.iter().copied()) {
            let words: Vec<String> = part.split_whitespace().map(str::to_lowercase).collect();
            let is_place = words.iter().any(|word| names::place_of(&[word.as_str()], word).is_some());
            let is_name = part.starts_with(char::is_alphanumeric)
                && part.contains(char::is_alphabetic)
                && words.len() <= NAME_WORDS_MAX
                && !part.contains([':', '=', '|', ',', '"']);
            if !is_name || (is_place && !is_number) {
                return None;
            }
            if !name.is_empty() {
                name.push('/');
            }
            name += &words.join("_");
        }
        let is_column = self.kind.is_empty() && self.columns.iter().any(|column| column.name == name);
        Some(name).filter(|name| name.len() <= NAME_BYTES_MAX / 2 && !is_column)
    }

    /// Sees the name of a row. False: there is one of the same name, or there are too many.
    fn see(&mut self, name: &str) -> bool {
        self.seen.len() < ROWS_MAX && self.seen.insert(name.to_owned())
    }

    /// A row with the name of a measure and its value. An empty name is that of the row above.
    fn pair(
        &mut self,
        label: &str,
        cells: &[&str],
        (metric, value, error): (usize, usize, Option<usize>),
    ) -> Row {
        if !label.is_empty() {
            self.last = label.trim_start_matches(['-', ' ']).to_owned();
        }
        let words = words_in(&cells[..metric]);
        let measure = Column::of(cells[metric]);
        let found = self.name_of(&self.last, &words).zip(measure.value(cells[value]));
        let Some((name, number)) = found.filter(|_| !measure.name.is_empty()) else { return Row::Unread };
        let name = format!("{name}/{}", names::plain(measure.name.clone()));
        if name.len() > NAME_BYTES_MAX / 2 || !self.see(&name) {
            return Row::Unread;
        }
        let error = error.and_then(|error| measure.value(cells[error]));
        let error = error.map(|error| (format!("{name}_stderr"), error));
        Row::Values(Box::new(of_values(std::iter::once((name, number)).chain(error).collect())))
    }
}

/// Whether a row has more numbers than columns, which its name would have then: pandas' `mean` and `std` below each of two
/// measures. A whole number right behind a word is of the name: `ResNet 50`.
fn has_further_numbers(line: &str, label: &[&str]) -> bool {
    let is_number = |word: &&str| number_of(&commas::pointed(word)).is_some();
    let is_whole = |word: &&str| word.bytes().all(|letter| letter.is_ascii_digit());
    let further = || label.iter().skip(1).filter(|word| is_number(word));
    further().next().is_some() && (!further().all(is_whole) || !line.contains(&label.join(" ")))
}

/// Whether a line is a row of a measure with two values or more between blanks, below a heading that does not say what
/// they are of, as pandas prints a table whose columns are models: `loss   0.312   0.352`.
pub(super) fn is_row_of_measure(line: &str) -> bool {
    let Some((name, cells)) = line.split_once("  ").or_else(|| line.split_once('\t')) else { return false };
    let is_name = || {
        let column = Column::of(name);
        (is_measure(&column) || names::meaning_of(&column.name) != Meaning::Any)
            && !name.contains(|letter: char| letter.is_whitespace() || "=:|([{,".contains(letter))
    };
    let mut count = 0;
    let is_value = |cell: &str| {
        count += 1;
        cell.contains('.') && number_of(cell.trim_end_matches('%')).is_some()
    };
    cells.split_whitespace().all(is_value) && count > 1 && is_name()
}

/// The words in cells before the numbers of a row, but for those that say that there is nothing.
fn words_in<'c>(cells: &[&'c str]) -> Vec<&'c str> {
    cells.iter().filter(|cell| is_word(cell)).take(LABELS_MAX - 1).copied().collect()
}

fn is_word(cell: &str) -> bool {
    cell.starts_with(char::is_alphabetic) && !is_missing(cell)
}

/// The name of a row without the marks of a bold one, `**all**`. A sign at its end alone is of the name: `resnet*`.
fn without_marks(label: &str) -> &str {
    let inside =
        |mark: &str| label.strip_prefix(mark)?.strip_suffix(mark).filter(|inside| !inside.is_empty());
    ["***", "**", "*"].iter().find_map(|mark| inside(mark)).unwrap_or(label)
}

/// The name of a measure of a model or fold, or of a part of the data.
fn name_below(column: &str, measure: &str) -> String {
    match names::part_of_data(column) {
        Some(part) => names::prefixed(part.unwrap_or("train"), measure),
        None => format!("{column}/{measure}"),
    }
}

fn is_missing(cell: &str) -> bool {
    MISSING.iter().any(|missing| cell.eq_ignore_ascii_case(missing))
}

/// A row of a list of names and values. A whole number is one only of a measure.
fn listed(name: &str, cell: &str) -> Option<(String, f64)> {
    let own = Column::of(name);
    let is_value = is_result(&own.name, cell) && names::may_be_metric(&own.name);
    let is_name = own.name.starts_with(char::is_alphabetic) && own.name.len() <= NAME_BYTES_MAX;
    let value = own.value(cell).filter(|value| is_value && is_name && !value.is_nan());
    value.map(|value| (names::plain(own.name), value))
}

fn of_values(values: Vec<(String, f64)>) -> LineValues {
    LineValues { values, ..LineValues::default() }
}
