//! The columns of a table: their names without units and signs, and the numbers in their cells.

use std::borrow::Cow;

use super::super::NAME_BYTES_MAX;
use super::super::lexical::commas;
use super::super::lexical::names::{self, Meaning};
use super::super::lexical::tokens::{number_of, share_of};

/// A name of a row without bars has so many words at most.
pub(super) const NAME_WORDS_MAX: usize = 5;

/// What brackets in a name are.
const BRACKETS: [char; 4] = ['(', ')', '[', ']'];
/// Arrows behind a name say which values are better: `FID ↓`.
const ARROWS: [char; 4] = ['↑', '↓', '⬆', '⬇'];
/// Units of measures, which say nothing more about them: `loss (nats)`.
const UNITS_OF_MEASURES: [&str; 7] = ["nat", "nats", "bit", "bits", "db", "px", "pixels"];
/// What is between a mean and its deviation.
const DEVIATION: [&str; 2] = ["±", "+/-"];

/// A column of a table, or a row of a list of results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Column {
    pub name: String,
    /// Its heading has a percent sign: `acc (%)`.
    is_percent: bool,
}

impl Column {
    /// The column that a cell heads. `LOSS NER` is `loss_ner`, `time (s)` is `time_s`, `loss (nats)` is `loss`,
    /// `F1 (macro)` is `macro_f1`; YOLO's `Box(P`, `R` and `mAP50-95)` are what they mean.
    pub fn of(cell: &str) -> Self {
        let cell = cell.to_lowercase();
        match cell.as_str() {
            "box(p" => Self::of_name("precision"),
            "r" => Self::of_name("recall"),
            _ => Self::of_row(&cell),
        }
    }

    /// The same of a row of a box, whose name keeps its letters.
    pub fn of_row(cell: &str) -> Self {
        let Headed { name, explanation, is_percent } = Headed::of(cell);
        let name = joined(name);
        let name = match explanation {
            Some(explanation) => explained(name, &explanation.to_lowercase()),
            None => name,
        };
        Self { name, is_percent }
    }

    /// The column of the upper of two lines of a heading with the lower one: `| Mini-batch |` above `| Accuracy |`.
    pub fn above(self, lower: &Self) -> Self {
        let name = match lower.name.is_empty() {
            true => self.name,
            false => format!("{}_{}", self.name, lower.name),
        };
        Self { name, is_percent: self.is_percent || lower.is_percent }
    }

    fn of_name(name: &str) -> Self {
        Self { name: name.to_owned(), is_percent: false }
    }

    /// The number in a cell of the column. Percentages of shares are fractions.
    pub fn value(&self, cell: &str) -> Option<f64> {
        let cell = bare(cell);
        if !cell.starts_with(|letter: char| letter.is_ascii_digit() || "+-.nNiI".contains(letter)) {
            return None;
        }
        let pointed = commas::pointed(&cell);
        let number = match self.is_percent && !pointed.ends_with('%') {
            true => Cow::Owned(format!("{pointed}%")),
            false => pointed,
        };
        share_of(&number).filter(|_| names::is_share(&self.name)).or_else(|| number_of(&number))
    }
}

/// A name and what is in brackets at its end.
struct Headed<'c> {
    name: &'c str,
    explanation: Option<&'c str>,
    is_percent: bool,
}

impl<'c> Headed<'c> {
    fn of(cell: &'c str) -> Self {
        let (name, is_percent) = without_signs(cell);
        let parts = name.strip_suffix([')', ']']).and_then(|inside| inside.rsplit_once(['(', '[']));
        let parts = parts.filter(|(name, _)| !name.trim().is_empty() && !name.contains(BRACKETS));
        let Some((name, explanation)) = parts else {
            return Self { name, explanation: None, is_percent };
        };
        let (explanation, is_in_percent) = without_signs(explanation);
        let (name, is_before) = without_signs(name);
        let explanation = Some(explanation).filter(|words| !matches!(*words, "" | "in"));
        let is_percent = is_percent || is_in_percent || is_before;
        Self { name: name.trim_end_matches('_'), explanation, is_percent }
    }
}

/// A text without the percent sign and the arrows at its end, and whether it had such a sign.
fn without_signs(text: &str) -> (&str, bool) {
    let is_sign = |letter: char| letter.is_whitespace() || letter == '%' || ARROWS.contains(&letter);
    let name = text.trim_end_matches(is_sign);
    let signs = &text[name.len()..];
    let name = if signs.trim().is_empty() { name } else { name.trim_end_matches('_') };
    (name.trim_start(), signs.contains('%'))
}

/// A name in one word: blanks and brackets become one underscore, and none at its ends.
fn joined(name: &str) -> String {
    let is_between = |letter: char| letter.is_whitespace() || BRACKETS.contains(&letter);
    match name.contains(is_between) {
        true => name.split(is_between).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_"),
        false => name.to_owned(),
    }
}

/// A name with what the brackets behind it say, in small letters: the way in which a measure was taken, the part of the data, or its unit.
fn explained(name: String, explanation: &str) -> String {
    if names::is_variant(explanation) {
        return names::with_variant(explanation, &name);
    }
    if let Some(part) = names::part_of_data(explanation) {
        return names::prefixed(part.unwrap_or("train"), &name);
    }
    let is_measure = names::meaning_of(&name.to_lowercase()) == Meaning::Measure;
    match is_measure && UNITS_OF_MEASURES.contains(&explanation) {
        true => name,
        false => format!("{name}_{}", joined(explanation)),
    }
}

/// What of a cell is its number: not the marks of the best one, a deviation, an interval or decibels: `**0.62**`,
/// `0.62 ± 0.01`, `0.62 [0.6, 0.64]`, `30.5 dB`.
fn bare(cell: &str) -> Cow<'_, str> {
    let cell = cell.trim_matches(|sign: char| matches!(sign, '*' | '_' | '`') || sign.is_whitespace());
    let deviation = DEVIATION.iter().find_map(|sign| cell.split_once(sign));
    let (number, behind) = deviation.or_else(|| interval_behind(cell)).unwrap_or((cell, ""));
    let number = number.trim_end();
    let number = number.strip_suffix("dB").or(number.strip_suffix("db")).unwrap_or(number).trim_end();
    // The sign counts for both: `61 ± 2 %`.
    match behind.trim_end().ends_with('%') && !number.ends_with('%') {
        true => Cow::Owned(format!("{number}%")),
        false => Cow::Borrowed(number),
    }
}

/// A cell whose number has others in brackets behind it.
fn interval_behind(cell: &str) -> Option<(&str, &str)> {
    let (number, behind) = cell.split_once([' ', '\u{a0}'])?;
    let behind = behind.trim_start();
    let inside = behind.strip_prefix('[').and_then(|inside| inside.strip_suffix(']'));
    let inside = inside.or_else(|| behind.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')))?;
    let is_of_numbers = |letter: char| letter.is_ascii_digit() || " .,;-+%".contains(letter);
    let has_digit = inside.contains(|letter: char| letter.is_ascii_digit());
    (has_digit && inside.chars().all(is_of_numbers)).then_some((number, ""))
}

/// A row in which percent signs and deviations touch their numbers: where blanks are between cells, none are in one.
pub(super) fn with_signs_at_numbers(row: &str) -> Cow<'_, str> {
    if !row.contains(['%', '±']) {
        return Cow::Borrowed(row);
    }
    let (mut joined, mut is_behind_sign) = (String::with_capacity(row.len()), false);
    for letter in row.chars() {
        if is_behind_sign && letter.is_whitespace() {
            continue;
        }
        let before = joined.trim_end();
        let is_number = before.ends_with(|letter: char| letter.is_ascii_digit() || letter == '%');
        if matches!(letter, '%' | '±') && is_number {
            joined.truncate(before.len());
        }
        is_behind_sign = letter == '±' && is_number;
        joined.push(letter);
    }
    Cow::Owned(joined)
}

/// The value of a line that has nothing but a name with brackets at its end and a number: `time (s): 3.5`.
pub(in crate::printed) fn value_behind_brackets(line: &str) -> Option<(String, f64)> {
    let (head, cell) = line.rsplit_once([':', '='])?;
    let head = head.trim();
    let is_name = head.starts_with(char::is_alphabetic)
        && head.ends_with([')', ']'])
        && head.len() <= NAME_BYTES_MAX / 2
        && !head.contains([':', '=', '|', ','])
        && head.split_whitespace().count() <= NAME_WORDS_MAX;
    let column = Some(head).filter(|_| is_name).map(|head| Column::of_row(&head.to_lowercase()))?;
    let value = column.value(&with_signs_at_numbers(cell.trim()))?;
    Some((names::plain(column.name), value)).filter(|(name, _)| names::may_be_metric(name))
}

/// A heading in which units touch their names: one blank may as well be between two columns.
pub(super) fn with_units_at_names(heading: &str) -> Cow<'_, str> {
    if ![" (", " [", " %"].iter().any(|unit| heading.contains(unit)) {
        return Cow::Borrowed(heading);
    }
    let mut joined = String::with_capacity(heading.len());
    for letter in heading.chars() {
        let is_behind_name = joined.ends_with(' ') && !joined.ends_with("  ");
        if matches!(letter, '(' | '[' | '%') && is_behind_name {
            joined.pop();
        }
        joined.push(letter);
    }
    Cow::Owned(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what the cells of headings name: units and other words in brackets are in the name without them, percent
    /// signs and arrows are not.
    #[test]
    fn names_of_columns() {
        for (cell, name) in [
            ("time (s)", "time_s"),
            ("time(s)", "time_s"),
            ("Memory [GB]", "memory_gb"),
            ("tokens/s", "tokens/s"),
            ("LOSS NER", "loss_ner"),
            ("loss (nats)", "loss"),
            ("PSNR (dB) ↑", "psnr"),
            ("FID ↓", "fid"),
            ("acc (%)", "acc"),
            ("Acc % (↑)", "acc"),
            ("acc_%", "acc"),
            ("F1 (macro)", "macro_f1"),
            ("loss (valid)", "val_loss"),
            ("loss (train)", "train_loss"),
            ("reward (mean)", "reward_mean"),
            ("D(G(z))", "d_g_z"),
            ("Box(P", "precision"),
            ("mAP50-95)", "map50-95"),
            ("a (b) c", "a_b_c"),
            ("(s)", "s"),
            ("_step", "_step"),
            ("%", ""),
            ("", ""),
        ] {
            assert_eq!(Column::of(cell).name, name, "{cell}");
        }
        assert_eq!(Column::of_row("rollout/Return (s)").name, "rollout/Return_s");
    }

    /// Proves which number a cell has: a percentage of an accuracy is a fraction wherever its sign is, and marks,
    /// deviations, intervals and decibels are none of it.
    #[test]
    fn numbers_of_cells() {
        let value = |heading: &str, cell: &str| Column::of(heading).value(&with_signs_at_numbers(cell));
        for (heading, cell, expected) in [
            ("acc", "61 %", Some(0.61)),
            ("acc", "61\u{a0}%", Some(0.61)),
            ("acc", "61,5 %", Some(0.615)),
            ("acc (%)", "61.5", Some(0.615)),
            ("acc [%]", "61.5 %", Some(0.615)),
            ("acc", "61 % ± 2 %", Some(0.61)),
            ("acc", "61 ± 2 %", Some(0.61)),
            ("acc (%)", "61 ± 2", Some(0.61)),
            ("mfu (%)", "34.5", Some(34.5)),
            ("mfu", "34.5 %", Some(34.5)),
            ("acc", "0.62 ± 0.01", Some(0.62)),
            ("acc", "0.62 +/- 0.01", Some(0.62)),
            ("acc", "0.62 [0.6, 0.64]", Some(0.62)),
            ("acc", "0.62 (0.01)", Some(0.62)),
            ("acc", "**0.62**", Some(0.62)),
            ("psnr", "30.5 dB", Some(30.5)),
            ("psnr", "-30.5dB", Some(-30.5)),
            ("acc", "12 of 30", None),
            ("acc", "0.62 (best)", None),
            ("acc", "%", None),
            ("acc", "±", None),
            ("acc", "", None),
            ("acc", "n/a", None),
        ] {
            assert_eq!(value(heading, cell), expected, "{heading}: {cell}");
        }
        assert!(value("acc (%)", "nan").is_some_and(f64::is_nan));
    }

    /// Proves which lines have nothing but a name with brackets and its value.
    #[test]
    fn values_behind_brackets() {
        for (line, expected) in [
            ("time (s): 3.5", Some(("time_s", 3.5))),
            ("Memory [GB] = 12", Some(("memory_gb", 12.0))),
            ("time: 3.5", None),
            ("time (s): 3.5 of 7", None),
            ("a, b (s): 3.5", None),
            ("(s): 3.5", None),
            ("size (train): ", None),
        ] {
            let expected = expected.map(|(name, value): (&str, f64)| (name.to_owned(), value));
            assert_eq!(value_behind_brackets(line), expected, "{line}");
        }
    }

    /// Proves that signs and units are joined to the numbers and names they belong to, and that nothing else is moved.
    #[test]
    fn signs_and_units_touch() {
        assert_eq!(with_signs_at_numbers("1  0.5  61 %  3 ± 1"), "1  0.5  61%  3±1");
        assert_eq!(with_signs_at_numbers("a % b ± c"), "a % b ± c");
        assert_eq!(with_units_at_names("epoch  acc (%)  time (s)  f1 %"), "epoch  acc(%)  time(s)  f1%");
        assert_eq!(with_units_at_names("epoch  (s)"), "epoch  (s)");
    }
}
