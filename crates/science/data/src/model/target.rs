//! What is predicted.

use std::collections::HashMap;

use super::frame::{Cells, Frame, MISSING_CODE};

/// The most classes of a target.
pub const CLASSES_MAX: usize = 64;

/// Whole numbers of at most so many different values are classes, not a continuous target.
pub const CLASS_NUMBERS_MAX: usize = 20;

/// For each row what is to be predicted.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// One of several classes.
    Classes {
        /// For each row an index into `names`; [`MISSING_CODE`] where it is missing.
        of_row: Vec<u32>,
        /// The classes, sorted.
        names: Vec<String>,
    },
    /// A continuous target; NaN if missing.
    Numbers(Vec<f64>),
}

/// Why a column cannot be predicted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("there is no column `{0}` of numbers or strings")]
    NoColumn(String),
    /// More than [`CLASSES_MAX`] strings.
    #[error("`{column}` has {classes} classes, more than the {CLASSES_MAX} that the quick model supports")]
    TooManyClasses { column: String, classes: usize },
    #[error("`{0}` has fewer than two values")]
    Constant(String),
}

impl Target {
    /// A column as a target: strings, booleans and whole numbers of at most [`CLASS_NUMBERS_MAX`] values are classes,
    /// other numbers are continuous.
    pub fn of(frame: &Frame, column: &str) -> Result<Self, TargetError> {
        let index = frame.index_of(column).ok_or_else(|| TargetError::NoColumn(column.to_owned()))?;
        let target = match &frame.columns()[index].cells {
            Cells::Categories { codes, names } => classes_of_texts(codes, names),
            Cells::Numbers(values) => {
                classes_of_numbers(values).unwrap_or_else(|| Self::Numbers(values.clone()))
            }
        };
        match &target {
            Self::Classes { names, .. } if names.len() > CLASSES_MAX => {
                Err(TargetError::TooManyClasses { column: column.to_owned(), classes: names.len() })
            }
            Self::Classes { names, .. } if names.len() < 2 => Err(TargetError::Constant(column.to_owned())),
            _ => Ok(target),
        }
    }

    /// Rows whose target is known: a model can learn from them alone.
    #[must_use]
    pub fn known_rows(&self) -> Vec<u32> {
        let known = |row: &u32| match self {
            Self::Classes { of_row, .. } => of_row[*row as usize] != MISSING_CODE,
            Self::Numbers(values) => values[*row as usize].is_finite(),
        };
        (0..self.rows() as u32).filter(known).collect()
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Classes { of_row, .. } => of_row.len(),
            Self::Numbers(values) => values.len(),
        }
    }

    /// Rows of each class; empty for a continuous target.
    #[must_use]
    pub fn class_rows(&self) -> Vec<u64> {
        let Self::Classes { of_row, names } = self else { return Vec::new() };
        let mut rows = vec![0; names.len()];
        for class in of_row.iter().filter(|class| **class != MISSING_CODE) {
            rows[*class as usize] += 1;
        }
        rows
    }
}

fn classes_of_texts(codes: &[u32], names: &[String]) -> Target {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|one, other| names[*one].cmp(&names[*other]));
    let mut class = vec![0; names.len()];
    order.iter().enumerate().for_each(|(rank, index)| class[*index] = rank as u32);
    let of_row =
        codes.iter().map(|code| class.get(*code as usize).copied().unwrap_or(MISSING_CODE)).collect();
    Target::Classes { of_row, names: order.into_iter().map(|index| names[index].clone()).collect() }
}

/// `None` for a continuous target.
fn classes_of_numbers(values: &[f64]) -> Option<Target> {
    let mut different: Vec<f64> = Vec::new();
    for value in values.iter().filter(|value| !value.is_nan()) {
        if value.fract() != 0.0 || !value.is_finite() {
            return None;
        }
        if !different.contains(value) {
            different.push(*value);
        }
        if different.len() > CLASS_NUMBERS_MAX {
            return None;
        }
    }
    different.sort_by(f64::total_cmp);
    let class: HashMap<u64, u32> =
        different.iter().enumerate().map(|(class, value)| ((value + 0.0).to_bits(), class as u32)).collect();
    let of_row =
        values.iter().map(|value| class.get(&(value + 0.0).to_bits()).copied().unwrap_or(MISSING_CODE));
    let of_row = of_row.collect();
    Some(Target::Classes { of_row, names: different.iter().map(f64::to_string).collect() })
}
