//! One column's rules, ready to be applied to arrays.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use regex::Regex;
use trackway_tables::ColumnType;
use trackway_tables::read::Texts;

use super::bounds::Exact;
use super::{Allowed, ColumnRules, SchemaError};

/// What a cell may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Broken {
    BelowMin,
    AboveMax,
    NotAllowed,
    NoMatch,
    TooShort,
    TooLong,
    Decreasing,
}

impl Broken {
    /// The name of the check and its message.
    pub(crate) fn check_and_message(self) -> (&'static str, &'static str) {
        match self {
            Self::BelowMin => ("min", "below the smallest value allowed"),
            Self::AboveMax => ("max", "above the largest value allowed"),
            Self::NotAllowed => ("values", "not among the values allowed"),
            Self::NoMatch => ("regex", "not of the required form"),
            Self::TooShort => ("length_min", "too short"),
            Self::TooLong => ("length_max", "too long"),
            Self::Decreasing => ("increasing", "below the value before it"),
        }
    }
}

/// Rules of a column, looked up and compiled once.
pub(crate) struct CompiledRules {
    min: Option<Exact>,
    max: Option<Exact>,
    values: HashSet<String>,
    numbers: Vec<Exact>,
    regex: Option<Regex>,
    length_min: u64,
    length_max: u64,
    /// Whether single strings or numbers have rules.
    asks: bool,
    pub(super) increasing: bool,
}

impl CompiledRules {
    pub(crate) fn of(rules: &ColumnRules) -> Result<Self, SchemaError> {
        let wrong = |message: String| SchemaError::Rule { column: rules.name.clone(), message };
        let bound = |bound: &Option<super::Bound>| {
            bound.as_ref().map(|it| it.value(rules.kind)).transpose().map_err(wrong)
        };
        let (min, max) = (bound(&rules.min)?, bound(&rules.max)?);
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            return Err(wrong("min is above max: no value is between them".into()));
        }
        if let Some(share) = rules.null_share_max.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(wrong(format!("null_share_max is {share}; it must be between 0 and 1")));
        }
        let is_text = rules.kind == ColumnType::Text;
        if !is_text && (rules.regex.is_some() || rules.length_min.is_some() || rules.length_max.is_some()) {
            return Err(wrong(format!(
                "regex and lengths are for strings, but the column is {}",
                rules.kind
            )));
        }
        let regex = rules.regex.as_ref().map(|text| Regex::new(&format!("^(?:{text})$"))).transpose();
        let compiled = Self {
            min,
            max,
            values: rules.values.iter().map(text_of).collect(),
            numbers: rules.values.iter().filter_map(number_of).collect(),
            regex: regex.map_err(|error| wrong(format!("the regex cannot be used: {error}")))?,
            length_min: rules.length_min.unwrap_or(0),
            length_max: rules.length_max.unwrap_or(u64::MAX),
            increasing: rules.increasing,
            asks: false,
        };
        if compiled.numbers.len() < rules.values.len()
            && matches!(rules.kind, ColumnType::Int | ColumnType::Float)
        {
            return Err(wrong("values contains strings, but the column is numeric".into()));
        }
        let asks = min.is_some() || max.is_some() || !rules.values.is_empty() || compiled.regex.is_some();
        Ok(Self { asks: asks || rules.length_min.is_some() || rules.length_max.is_some(), ..compiled })
    }

    /// Calls `broken` for every cell that breaks a rule. A missing cell breaks none.
    pub(crate) fn apply(&self, column: &ArrayRef, broken: &mut dyn FnMut(usize, Broken)) {
        if !self.asks {
            return;
        }
        if let Some(texts) = Texts::of(column) {
            return self.apply_to_texts(&texts, column.len(), broken);
        }
        if let Some(truths) = column.as_boolean_opt() {
            let holds = [false, true].map(|truth| self.values.contains(&truth.to_string()));
            let wrong = (0..truths.len())
                .filter(|row| truths.is_valid(*row) && !holds[usize::from(truths.value(*row))]);
            return wrong.for_each(|row| broken(row, Broken::NotAllowed));
        }
        each_number(column, &mut |row, value| {
            if self.min.is_some_and(|min| value < min) {
                broken(row, Broken::BelowMin);
            } else if self.max.is_some_and(|max| value > max) {
                broken(row, Broken::AboveMax);
            } else if !self.numbers.is_empty() && !value.is_nan() && !self.numbers.contains(&value) {
                broken(row, Broken::NotAllowed);
            }
        });
    }

    fn apply_to_texts(&self, texts: &Texts<'_>, rows: usize, broken: &mut dyn FnMut(usize, Broken)) {
        match texts {
            Texts::Plain(_) => {
                let judged = (0..rows).filter_map(|row| Some((row, self.judge(texts.get(row)?)?)));
                judged.for_each(|(row, it)| broken(row, it));
            }
            // Each distinct string is checked once.
            Texts::Dictionary(keys, distinct) => {
                let verdicts: Vec<_> =
                    distinct.iter().map(|text| text.and_then(|text| self.judge(text))).collect();
                if verdicts.iter().all(Option::is_none) {
                    return;
                }
                for row in (0..rows).filter(|row| keys.is_valid(*row)) {
                    if let Some(it) = verdicts[keys.keys().value(row) as usize] {
                        broken(row, it);
                    }
                }
            }
        }
    }

    fn judge(&self, text: &str) -> Option<Broken> {
        if !self.values.is_empty() && !self.values.contains(text) {
            return Some(Broken::NotAllowed);
        }
        if self.length_min > 0 || self.length_max < u64::MAX {
            let length = text.chars().count() as u64;
            if length < self.length_min {
                return Some(Broken::TooShort);
            }
            if length > self.length_max {
                return Some(Broken::TooLong);
            }
        }
        self.regex.as_ref().filter(|regex| !regex.is_match(text)).map(|_| Broken::NoMatch)
    }
}

/// Calls `take` for every number or time that is there, times in microseconds.
pub(super) fn each_number(column: &ArrayRef, take: &mut dyn FnMut(usize, Exact)) {
    macro_rules! each {
        ($kind:ty, $exact:expr) => {{
            let (values, exact) = (column.as_primitive::<$kind>(), $exact);
            match values.nulls().filter(|nulls| nulls.null_count() > 0) {
                None => values.values().iter().enumerate().for_each(|(row, value)| take(row, exact(*value))),
                Some(nulls) => nulls.valid_indices().for_each(|row| take(row, exact(values.value(row)))),
            }
        }};
    }
    match column.data_type() {
        DataType::Int64 => each!(Int64Type, |number: i64| Exact::Whole(number.into())),
        DataType::UInt64 => each!(UInt64Type, |number: u64| Exact::Whole(number.into())),
        DataType::Float64 => each!(Float64Type, Exact::Float),
        DataType::Timestamp(_, _) => {
            each!(TimestampMicrosecondType, |micros: i64| Exact::Whole(micros.into()));
        }
        _ => {}
    }
}

fn text_of(value: &Allowed) -> String {
    match value {
        Allowed::Bool(truth) => truth.to_string(),
        Allowed::Int(number) => number.to_string(),
        Allowed::Unsigned(number) => number.to_string(),
        Allowed::Float(number) => number.to_string(),
        Allowed::Text(text) => text.clone(),
    }
}

fn number_of(value: &Allowed) -> Option<Exact> {
    match value {
        Allowed::Int(number) => Some(Exact::Whole((*number).into())),
        Allowed::Unsigned(number) => Some(Exact::Whole((*number).into())),
        Allowed::Float(number) => Some(Exact::Float(*number)),
        Allowed::Bool(_) | Allowed::Text(_) => None,
    }
}
