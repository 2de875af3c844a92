//! What was seen of a column's values while types were decided.

use std::borrow::Cow;
use std::collections::BTreeMap;

use trackway_statistics::binomial_p_value;

use crate::types::ColumnType;
use crate::types::infer::{Decision, Form, Style, TextReason, decide};

/// How many values of which form a column has; decides the column's type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    counts: BTreeMap<Form, u64>,
    /// The first line with a value of each form, of the lines whose numbers are known.
    lines: BTreeMap<Form, u64>,
    /// The first different strings among the values, one more than are named.
    words: Vec<String>,
}

/// Strings among numbers of which so few are different are all named.
pub(super) const WORDS_NAMED: usize = 3;

/// The fraction of strings up to which a column of numbers, timestamps or booleans stays one, with the strings as
/// misfits.
const MAX_DIRT_SHARE: f64 = 0.05;

/// How many strings a column of numbers, timestamps or booleans may contain and stay one, with the strings as misfits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StringLimit {
    /// One value in twenty.
    #[default]
    Fraction,
    /// As many as a table of this size may contain if one value in twenty is a string: 1 of 5, 2 of 10.
    Sample,
}

/// A column has more strings than one in twenty if so many would be in less than this fraction of its samples.
const SIGNIFICANCE: f64 = 0.05;

impl StringLimit {
    fn allows(self, texts: u64, total: u64) -> bool {
        texts as f64 <= total as f64 * MAX_DIRT_SHARE
            || self == Self::Sample
                && texts < total - texts
                && binomial_p_value(total, texts, MAX_DIRT_SHARE) >= SIGNIFICANCE
    }
}

/// So many numbers of a column show that its commas are those of decimals.
const COMMA_NUMBERS_MIN: u64 = 5;

/// The numbers of a column that have a comma.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Commas {
    pub(super) count: u64,
    /// The first known line with one.
    pub(super) line: Option<u64>,
    /// Whether each may be one of thousands.
    pub(super) are_unclear: bool,
}

/// The strings of a column that is text because of them, although most of its values have a narrower type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strings<'t> {
    /// The type of most values.
    pub(super) mostly: ColumnType,
    pub(super) values: u64,
    pub(super) count: u64,
    /// The first known line with one.
    pub(super) line: Option<u64>,
    /// The first different ones: all, unless there are more than [`WORDS_NAMED`].
    pub(super) words: &'t [String],
}

/// Values in a row that have one form: they are counted at once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SameForms {
    form: Option<Form>,
    count: u64,
    line: Option<u64>,
}

impl SameForms {
    /// One value more, on this line, if its number is known.
    #[inline]
    pub(super) fn see(&mut self, form: Form, line: Option<u64>, tally: &mut Tally) {
        if self.form != Some(form) {
            self.give(tally);
            *self = Self { form: Some(form), count: 0, line };
        }
        self.count += 1;
    }

    pub(super) fn give(&self, tally: &mut Tally) {
        if let Some(form) = self.form {
            tally.see(form, self.count, self.line);
        }
    }
}

impl Tally {
    /// That of a column whose form the file declares.
    pub(super) fn certain(form: Option<Form>) -> Self {
        let mut tally = Self::default();
        form.into_iter().for_each(|form| tally.add(form, u64::from(u32::MAX)));
        tally
    }

    pub(crate) fn add(&mut self, form: Form, count: u64) {
        if count > 0 {
            *self.counts.entry(form).or_default() += count;
        }
    }

    /// Values, the first of them on this line, if its number is known.
    pub(super) fn see(&mut self, form: Form, count: u64, line: Option<u64>) {
        self.add(form, count);
        if let Some(line) = line {
            self.lines.entry(form).or_insert(line);
        }
    }

    /// What a string among the values is, if it may still be named.
    #[inline]
    pub(super) fn name<'w>(&mut self, form: Form, word: impl FnOnce() -> Cow<'w, str>) {
        if form.is_text() && self.words.len() <= WORDS_NAMED {
            let word = word();
            if !self.words.iter().any(|known| *known == word) {
                self.words.push(word.into_owned());
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        other.words.iter().for_each(|word| self.name(Form::Text, || word.into()));
        other.counts.iter().for_each(|(form, count)| self.add(*form, *count));
        other.lines.iter().for_each(|(form, line)| {
            self.lines.entry(*form).or_insert(*line);
        });
    }

    /// The narrowest type that fits all values, except a few strings.
    pub(crate) fn decide(&self, limit: StringLimit) -> Decision {
        let clean = decide(self.clean_forms());
        let is_dirt = limit.allows(self.texts(), self.total()) && clean.kind != ColumnType::Null;
        if is_dirt { clean } else { decide(self.counts.keys().copied()) }
    }

    /// How values of a type are written here, whatever else the column has.
    pub(super) fn style(&self, kind: ColumnType) -> Style {
        let of_kind = decide(self.clean_forms().filter(|form| match kind {
            ColumnType::Int => form.is_numeric(),
            ColumnType::Timestamp => form.is_date(),
            _ => false,
        }));
        if of_kind.kind == kind { of_kind.style } else { Style::Usual }
    }

    /// What a scan of a column of this type found in it: values that fit, in the forms that are known, and others.
    pub(super) fn after(&self, kind: ColumnType, fitting: u64, others: &BTreeMap<Form, u64>) -> Self {
        let mut counts: BTreeMap<Form, u64> = self.clean_forms().map(|form| (form, 0)).collect();
        if counts.is_empty() {
            counts.extend(Form::of_kind(kind).map(|form| (form, 0)));
        }
        if let Some(first) = counts.values_mut().next() {
            *first = fitting;
        }
        let mut after = Self { counts, lines: self.lines.clone(), words: self.words.clone() };
        others.iter().for_each(|(form, count)| after.add(*form, *count));
        after
    }

    pub(crate) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(crate) fn texts(&self) -> u64 {
        self.seen(&|form| form.is_text()).0
    }

    /// The strings for which the column is text; `None` unless it is text and they are fewer than the other values.
    pub(super) fn strings(&self, limit: StringLimit) -> Option<Strings<'_>> {
        let mostly = decide(self.clean_forms()).kind;
        let (values, (count, line)) = (self.total(), self.seen(&|form| form.is_text()));
        let is_mixed = self.decide(limit).kind == ColumnType::Text
            && mostly != ColumnType::Text
            && count < values - count;
        is_mixed.then_some(Strings { mostly, values, count, line, words: &self.words })
    }

    /// The values for which the column is kept as strings, where that is so: how many were seen, and the first known line.
    pub(super) fn evidence(&self, kept: TextReason) -> (u64, Option<u64>) {
        let is_evidence = |form: &Form| match kept {
            TextReason::Codes => *form == Form::Code,
            TextReason::Digits => {
                matches!(form, Form::Digits | Form::LongWhole | Form::LongNegative | Form::LongUnsigned)
            }
            TextReason::Ambiguous => *form == Form::EitherFirst,
            TextReason::BothOrders => matches!(form, Form::Day | Form::Month),
        };
        self.seen(&is_evidence)
    }

    /// The values by which the order of a column's dates is known.
    pub(super) fn evidence_of_order(&self, style: Style) -> (u64, Option<u64>) {
        let wanted = if style == Style::Day { Form::Day } else { Form::Month };
        self.seen(&|form| *form == wanted)
    }

    /// Of a column whose values are numbers, those with a comma; `None` where more than one value in twenty is another string, where
    /// too few were seen, or where none has one.
    pub(super) fn commas(&self) -> Option<Commas> {
        let (count, line) = self.seen(&|form| form.is_comma());
        let (numbers, _) = self.seen(&|form| form.is_comma() || form.is_whole());
        let total = self.total();
        let are_numbers =
            numbers >= COMMA_NUMBERS_MIN && StringLimit::Fraction.allows(total - numbers, total);
        let are_unclear = !self.counts.contains_key(&Form::DecimalComma);
        (count > 0 && are_numbers).then_some(Commas { count, line, are_unclear })
    }

    fn seen(&self, is_wanted: &dyn Fn(&Form) -> bool) -> (u64, Option<u64>) {
        let count = self.counts.iter().filter(|(form, _)| is_wanted(form)).map(|(_, count)| count).sum();
        (count, self.lines.iter().filter(|(form, _)| is_wanted(form)).map(|(_, line)| *line).min())
    }

    fn clean_forms(&self) -> impl Iterator<Item = Form> + '_ {
        self.counts.keys().copied().filter(|form| !form.is_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(forms: &[(Form, u64)]) -> Tally {
        let mut tally = Tally::default();
        forms.iter().for_each(|(form, count)| tally.add(*form, *count));
        tally
    }

    /// Proves that a few strings among numbers are dirt and one code is not: it decides the whole column.
    #[test]
    fn a_few_strings_are_dirt_and_one_code_is_not() {
        let decided = |forms: &[(Form, u64)]| tally(forms).decide(StringLimit::Fraction);
        assert_eq!(decided(&[(Form::Whole, 99), (Form::Text, 1)]).kind, ColumnType::Int);
        assert_eq!(decided(&[(Form::Whole, 9), (Form::Text, 1)]).kind, ColumnType::Text);
        assert_eq!(decided(&[(Form::Whole, 999_999), (Form::Code, 1)]).kept, Some(TextReason::Codes));
        assert_eq!(
            decided(&[(Form::Whole, 999_999), (Form::Digits, 1), (Form::Text, 1)]).kept,
            Some(TextReason::Digits)
        );
    }

    /// Proves that a column has numbers with a decimal comma where one value in twenty is another string and not where more are, that
    /// whole numbers are among them, and that three digits behind each comma are unclear.
    #[test]
    fn a_decimal_comma_is_evidence_of_a_column() {
        let commas = |forms: &[(Form, u64)]| tally(forms).commas().map(|it| (it.count, it.are_unclear));
        assert_eq!(commas(&[(Form::DecimalComma, 5)]), Some((5, false)));
        assert_eq!(commas(&[(Form::DecimalComma, 4)]), None);
        assert_eq!(commas(&[(Form::DecimalComma, 10), (Form::Whole, 9), (Form::Text, 1)]), Some((10, false)));
        assert_eq!(commas(&[(Form::DecimalComma, 10), (Form::Whole, 8), (Form::Text, 1)]), None);
        assert_eq!(commas(&[(Form::UnclearComma, 9)]), Some((9, true)));
        assert_eq!(commas(&[(Form::UnclearComma, 9), (Form::DecimalComma, 1)]), Some((10, false)));
        assert_eq!(commas(&[(Form::Whole, 9)]), None);
        assert_eq!(
            tally(&[(Form::Whole, 99), (Form::DecimalComma, 1)]).decide(StringLimit::Fraction).kind,
            ColumnType::Int
        );
    }

    /// Proves that what a scan meets later widens what the beginning showed, with the forms of the beginning in it: whole numbers
    /// that floats would round are known although the scan read them as whole numbers.
    #[test]
    fn a_scan_adds_to_what_is_known() {
        let known = tally(&[(Form::LongWhole, 10), (Form::Whole, 90)]);
        let later = BTreeMap::from([(Form::Float, 1)]);
        let after = known.after(ColumnType::Int, 1_000, &later);
        assert_eq!(
            (after.decide(StringLimit::Fraction).kept, after.total()),
            (Some(TextReason::Digits), 1_001)
        );
        let later = BTreeMap::from([(Form::LongUnsigned, 1)]);
        let after = known.after(ColumnType::Int, 1_000, &later).decide(StringLimit::Fraction);
        assert_eq!((after.kind, after.style), (ColumnType::Int, Style::Unsigned));
        let none = Tally::default().after(ColumnType::Float, 5, &BTreeMap::new());
        assert_eq!(none.decide(StringLimit::Fraction).kind, ColumnType::Float);
    }
}
