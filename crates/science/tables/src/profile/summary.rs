//! A profile's statistics as plain data, for people and for other programs.

use serde::{Deserialize, Serialize};

use super::column::ColumnProfile;
use super::distinct::DISTINCT_STANDARD_ERROR;
use super::label::Association;
use super::number::{NumberForm, NumberProfile, Order};
use super::quantiles::QUANTILE_RANK_ERROR;
use super::shown::{Value, ValueCount, hidden, shown};
use crate::personal::masked_cell;
use crate::read::CellFaults;
use crate::types::infer::ColumnType;

/// How many of the most frequent values a summary shows.
pub const TOP_VALUES: usize = 10;

/// How many bins a summary's histogram has.
pub const HISTOGRAM_BINS: usize = 20;

/// The fractions at which a summary gives quantiles.
pub const QUANTILE_SHARES: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

/// A quantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Quantile {
    /// The fraction of values that are not larger, 0 to 1.
    pub fraction: f64,
    pub value: Value,
}

/// Counts between edges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Histogram {
    /// One more than the bins, ascending, all bins equally wide. Times are microseconds since 1970.
    pub edges: Vec<f64>,
    /// Values per bin, from the quantile sketch.
    pub counts: Vec<u64>,
}

/// Lengths of strings, in characters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LengthSummary {
    /// The shortest.
    pub min: u64,
    pub mean: f64,
    /// Half are not longer.
    pub median: u64,
    /// 99 % are not longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
    /// Strings without a character.
    pub empty: u64,
}

/// Shapes of strings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PatternSummary {
    /// The most frequent shapes: `A` an upper-case letter, `a` another one, `9` a digit, `+` more of the same.
    pub top: Vec<ValueCount>,
    /// How many strings were looked at; a sample if fewer than there are.
    pub rows: u64,
}

/// The statistics of one column. What a type does not have is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ColumnSummary {
    /// The column's name.
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ColumnType,
    pub rows: u64,
    /// Cells without a value.
    pub null_count: u64,
    /// Misfits, strings for missing values, rows of files without the column.
    pub faults: CellFaults,
    /// Different values; 0 where they are not counted: of bytes, lists and objects.
    pub distinct_estimate: u64,
    /// Whether that number, and every count of `top_values`, is exact; not where values were rounded or are not counted.
    pub distinct_is_exact: bool,
    /// Standard error of the number, as a fraction of it; 0 if exact.
    pub distinct_error: f64,
    /// The smallest value; of timestamps, ISO 8601; of strings the first by alphabet, if all are known.
    pub min: Option<Value>,
    /// The largest value.
    pub max: Option<Value>,
    /// Mean of the finite values; of booleans the fraction of `true`.
    pub mean: Option<f64>,
    /// Sample standard deviation.
    pub stddev: Option<f64>,
    pub skewness: Option<f64>,
    /// Kurtosis less 3.
    pub excess_kurtosis: Option<f64>,
    /// Quantiles at 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95 and 0.99.
    pub quantiles: Vec<Quantile>,
    /// By how much a quantile's fraction may be off, in 99 of 100 cases.
    pub quantile_rank_error: f64,
    /// Values between the smallest and the largest.
    pub histogram: Option<Histogram>,
    /// The most frequent values, at most 10.
    pub top_values: Vec<ValueCount>,
    /// By how much their counts may be too low; 0 where exact.
    pub count_error: u64,
    /// Numbers that are NaN.
    pub nan_count: u64,
    pub infinite_count: u64,
    pub zero_count: u64,
    /// Numbers below zero.
    pub negative_count: u64,
    /// Whether values ascend or descend in row order (equal neighbours allowed); of numbers and times.
    pub order: Option<Order>,
    /// Lengths of strings.
    pub lengths: Option<LengthSummary>,
    /// Shapes of strings.
    pub patterns: Option<PatternSummary>,
    /// The association of the column with the label.
    pub label_association: Option<Association>,
    /// Bytes in memory.
    pub size_bytes: u64,
}

impl ColumnProfile {
    /// The statistics.
    #[must_use]
    pub fn summary(&self) -> ColumnSummary {
        let numbers = self.numbers.as_ref();
        let values = self.values.as_ref();
        let is_exact = values.is_none_or(|values| values.is_exact());
        let is_counted = values.is_some() || self.value_count() == 0;
        let distinct = values.map_or(0.0, |values| values.distinct()).round() as u64;
        let moments = numbers.map(|numbers| numbers.moments).filter(|moments| moments.count > 0);
        let bounds = numbers.and_then(|numbers| numbers.bounds.map(|bounds| (numbers.form, bounds)));
        let is_time = numbers.is_some_and(|numbers| numbers.form == NumberForm::Time);
        let (first_text, last_text) = self.text_bounds().unzip();
        let as_shown = |value: Value| hidden(&self.name, value);
        ColumnSummary {
            name: self.name.clone(),
            kind: self.kind,
            rows: self.rows,
            null_count: self.null_count,
            faults: without_personal_data(&self.name, self.faults.clone()),
            // A sketch may estimate more than there can be.
            distinct_estimate: distinct.min(self.value_count()),
            // Values that were rounded to one count as one.
            distinct_is_exact: is_exact && is_counted && self.faults.rounded.is_none(),
            distinct_error: if is_exact { 0.0 } else { DISTINCT_STANDARD_ERROR },
            min: bounds.map(|(form, (low, _))| shown(Some(form), low)).or(first_text).map(as_shown),
            max: bounds.map(|(form, (_, high))| shown(Some(form), high)).or(last_text).map(as_shown),
            mean: moments.filter(|_| !is_time).map(|moments| moments.mean).or_else(|| self.true_share()),
            stddev: moments.filter(|_| !is_time).and_then(|moments| moments.stddev()),
            skewness: moments.and_then(|moments| moments.skewness()),
            excess_kurtosis: moments.and_then(|moments| moments.excess_kurtosis()),
            quantiles: numbers.map(quantiles).unwrap_or_default(),
            quantile_rank_error: self
                .quantile_sketch()
                .map_or(QUANTILE_RANK_ERROR, super::Quantiles::rank_error),
            histogram: numbers.and_then(histogram),
            top_values: shown_values(&self.name, self.top_values(TOP_VALUES)),
            count_error: values.map_or(0, |values| values.error()),
            nan_count: numbers.map_or(0, |numbers| numbers.nan),
            infinite_count: numbers
                .map_or(0, |numbers| numbers.positive_infinite + numbers.negative_infinite),
            zero_count: numbers.map_or(0, |numbers| numbers.zeros),
            negative_count: numbers.map_or(0, |numbers| numbers.negatives),
            order: numbers.map(|numbers| numbers.order),
            lengths: self.lengths(),
            patterns: self.patterns(),
            label_association: self.label.as_ref().and_then(|label| label.association()),
            size_bytes: self.size_bytes,
        }
    }

    /// The most frequent values as they are (personal data too) with their counts, at most `limit`. All of them, with
    /// exact counts, if there are no more than [`super::MAX_VALUES`].
    #[must_use]
    pub fn top_values(&self, limit: usize) -> Vec<ValueCount> {
        let Some(values) = &self.values else { return Vec::new() };
        let form = self.numbers.as_ref().map(|numbers| numbers.form);
        let number = |(bits, count)| {
            let value = shown(form, bits);
            ValueCount { value, count }
        };
        let text = |(text, count)| ValueCount { value: Value::Text(text), count };
        let numbers = values.numbers().into_iter().map(number);
        numbers.chain(values.texts().into_iter().map(text)).take(limit).collect()
    }

    /// The first and the last text by alphabet, if all are known.
    fn text_bounds(&self) -> Option<(Value, Value)> {
        let texts = self.values.as_ref().filter(|values| values.is_exact())?.texts();
        let (first, last) = (texts.iter().min()?, texts.iter().max()?);
        Some((Value::Text(first.0.clone()), Value::Text(last.0.clone())))
    }

    fn true_share(&self) -> Option<f64> {
        let is_bool = self.kind == ColumnType::Bool && self.value_count() > 0;
        let values = self.values.as_ref().filter(|_| is_bool)?.numbers();
        let trues = values.iter().find(|(number, _)| *number == 1).map_or(0, |(_, count)| *count);
        Some(trues as f64 / self.value_count() as f64)
    }

    fn lengths(&self) -> Option<LengthSummary> {
        let texts = self.texts.as_ref()?;
        let lengths = &texts.lengths;
        Some(LengthSummary {
            min: lengths.min,
            mean: lengths.mean()?,
            median: lengths.at(0.5)?,
            p99: lengths.at(0.99)?,
            max: lengths.max,
            empty: texts.empty,
        })
    }

    fn patterns(&self) -> Option<PatternSummary> {
        let texts = self.texts.as_ref()?;
        let count = |(text, count)| ValueCount { value: Value::Text(text), count };
        let top = texts.patterns.texts().into_iter().take(TOP_VALUES).map(count).collect();
        Some(PatternSummary { top, rows: texts.pattern_rows })
    }
}

fn shown_values(column: &str, values: Vec<ValueCount>) -> Vec<ValueCount> {
    values.into_iter().map(|it| ValueCount { value: hidden(column, it.value), ..it }).collect()
}

fn without_personal_data(column: &str, mut faults: CellFaults) -> CellFaults {
    faults.examples.iter_mut().for_each(|fault| fault.detail = masked_cell(column, &fault.detail));
    faults
}

fn quantiles(numbers: &NumberProfile) -> Vec<Quantile> {
    let values = numbers.quantiles.at(&QUANTILE_SHARES).unwrap_or_default();
    let quantile = |(share, value): (&f64, f64)| {
        let value = match numbers.form {
            NumberForm::Time => shown(Some(NumberForm::Time), (value as i64).cast_unsigned()),
            NumberForm::Int if value.abs() < 9e18 => Value::Int(value as i64),
            _ => Value::Float(value),
        };
        Quantile { fraction: *share, value }
    };
    QUANTILE_SHARES.iter().zip(values).map(quantile).collect()
}

fn histogram(numbers: &NumberProfile) -> Option<Histogram> {
    let [low, high] = numbers.quantiles.at(&[0.0, 1.0])?.try_into().ok()?;
    let bins = if low < high { HISTOGRAM_BINS } else { 1 };
    let width = high / bins as f64 - low / bins as f64;
    let mut edges: Vec<f64> = (0..=bins).map(|bin| low + width * bin as f64).collect();
    edges[bins] = high;
    let counts = numbers.quantiles.histogram(&edges);
    Some(Histogram { edges, counts })
}
