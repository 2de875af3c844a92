//! The statistics of a profile, for people and for other programs.

use trackway_results::profile::{
    ColumnSummary, Histogram, LengthSummary, PatternSummary, Quantile, Value, ValueCount,
};
use trackway_results::reading::{CellFaults, ColumnType};

use super::column::ColumnProfile;
use super::distinct::DISTINCT_STANDARD_ERROR;
use super::number::{NumberForm, NumberProfile};
use super::quantiles::QUANTILE_RANK_ERROR;
use super::shown::{hidden, shown};
use crate::personal::masked_cell;

/// How many of the most frequent values a summary shows.
pub const TOP_VALUES: usize = 10;

/// How many bins a summary's histogram has.
pub const HISTOGRAM_BINS: usize = 20;

/// The fractions at which a summary gives quantiles.
pub const QUANTILE_SHARES: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

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
