//! Rows to look at: a seeded sample of those that are wrong.

use serde_json::Value as Json;
use trackway_core::text::shortened;
use trackway_core::{Rng as _, SplitMix64};
use trackway_data::model::{Cells, Frame, FrameColumn};
pub use trackway_results::failures::{Failure, FailureKind, Failures};
use trackway_tables::ColumnType;

/// Rows of a sample at most.
pub const FAILURES_MAX: usize = 20;
/// Columns of a row that are shown, at most.
pub const FAILURE_COLUMNS_MAX: usize = 40;
/// The longest text of a cell that is shown, in characters.
pub const FAILURE_TEXT_CHARS_MAX: usize = 400;

/// What distinguishes a wrong row from a right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// A column with the result: 0 or false.
    Correct(usize),
    /// Label and prediction are not equal.
    Differs(usize, usize),
    /// Label and prediction are numbers: the rows with the largest errors.
    Far(usize, usize),
}

/// Draws rows that are wrong, the same ones for the same seed.
#[must_use]
pub fn failures(frame: &Frame, wrong: Wrong, seed: u64) -> Failures {
    let columns = frame.columns();
    let mut ranked: Vec<(f64, usize)> = match wrong {
        Wrong::Correct(column) => {
            drawn((0..frame.rows()).filter(|row| is_false(&columns[column], *row)), frame, seed)
        }
        Wrong::Differs(label, prediction) => {
            let differs = |row: &usize| differs(&columns[label], &columns[prediction], *row);
            drawn((0..frame.rows()).filter(differs), frame, seed)
        }
        Wrong::Far(label, prediction) => (0..frame.rows())
            .filter_map(|row| Some((-distance(&columns[label], &columns[prediction], row)?, row)))
            .collect(),
    };
    let count = ranked.len() as u64;
    ranked.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    ranked.truncate(FAILURES_MAX);
    ranked.sort_by_key(|(_, row)| *row);
    let kind = if matches!(wrong, Wrong::Far(..)) { FailureKind::Farthest } else { FailureKind::Wrong };
    Failures {
        kind,
        wrong: count,
        rows: frame.rows() as u64,
        seed,
        sample: ranked.into_iter().map(|(_, row)| shown(frame, row)).collect(),
    }
}

/// Each row with a number that is drawn from the seed and the row's place.
fn drawn(rows: impl Iterator<Item = usize>, frame: &Frame, seed: u64) -> Vec<(f64, usize)> {
    let rank = |row: usize| {
        let place = frame.places()[row];
        SplitMix64::new(seed ^ SplitMix64::new(place.row ^ ((place.file as u64) << 48)).next_u64())
            .next_unit()
    };
    rows.map(|row| (rank(row), row)).collect()
}

fn is_false(column: &FrameColumn, row: usize) -> bool {
    match &column.cells {
        Cells::Numbers(values) => values[row] == 0.0,
        Cells::Categories { codes, names } => {
            let text = names.get(codes[row] as usize).map(|name| name.to_lowercase());
            text.is_some_and(|text| matches!(text.as_str(), "false" | "no" | "i" | "incorrect"))
        }
    }
}

/// Whether both are there and not equal. A text and a number are equal where the text reads as the number.
fn differs(label: &FrameColumn, prediction: &FrameColumn, row: usize) -> bool {
    if label.cells.is_missing(row) || prediction.cells.is_missing(row) {
        return false;
    }
    match (&label.cells, &prediction.cells) {
        (Cells::Numbers(one), Cells::Numbers(other)) => one[row] != other[row],
        (one, other) => text_of(one, row) != text_of(other, row),
    }
}

fn text_of(cells: &Cells, row: usize) -> String {
    match cells {
        Cells::Numbers(values) => values[row].to_string(),
        Cells::Categories { codes, names } => {
            let text = names.get(codes[row] as usize).map_or("", |name| name.trim());
            text.parse::<f64>().map_or_else(|_| text.to_owned(), |number| number.to_string())
        }
    }
}

fn distance(label: &FrameColumn, prediction: &FrameColumn, row: usize) -> Option<f64> {
    let (Cells::Numbers(label), Cells::Numbers(prediction)) = (&label.cells, &prediction.cells) else {
        return None;
    };
    let distance = (label[row] - prediction[row]).abs();
    (!distance.is_nan()).then_some(distance)
}

fn shown(frame: &Frame, row: usize) -> Failure {
    let columns = frame.columns().iter().take(FAILURE_COLUMNS_MAX);
    let cells = columns.map(|column| (column.name.clone(), cell(column, row))).collect();
    Failure { row: frame.places()[row].row, cells }
}

fn cell(column: &FrameColumn, row: usize) -> Json {
    if column.cells.is_missing(row) {
        return Json::Null;
    }
    match &column.cells {
        Cells::Numbers(values) => match column.kind {
            ColumnType::Int => (values[row] as i64).into(),
            ColumnType::Bool => (values[row] != 0.0).into(),
            _ => values[row].into(),
        },
        Cells::Categories { codes, names } => {
            shortened(&names[codes[row] as usize], FAILURE_TEXT_CHARS_MAX).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: ColumnType, cells: Cells) -> FrameColumn {
        FrameColumn { name: name.into(), kind, cells }
    }

    fn texts(name: &str, texts: &[Option<&str>]) -> FrameColumn {
        column(name, ColumnType::Text, Cells::of_texts(texts.iter().copied()))
    }

    /// Proves that only wrong rows are drawn, that the same seed draws the same, that another one draws others, and that the
    /// sample is bounded.
    #[test]
    fn wrong_rows_are_drawn() {
        let label: Vec<f64> = (0..1000).map(|row| f64::from(row % 2)).collect();
        let prediction: Vec<Option<&str>> =
            (0..1000).map(|row| Some(if row % 4 < 2 { "1" } else { "0" })).collect();
        let frame = Frame::of_columns(vec![
            column("label", ColumnType::Int, Cells::Numbers(label)),
            texts("prediction", &prediction),
        ]);
        let one = failures(&frame, Wrong::Differs(0, 1), 7);
        assert_eq!((one.wrong, one.rows, one.sample.len()), (500, 1000, FAILURES_MAX));
        for failure in &one.sample {
            let row = failure.row - 1;
            assert_ne!(row % 2 == 1, row % 4 < 2, "{failure:?}");
            assert_eq!(failure.cells["label"], Json::from(row % 2));
        }
        assert_eq!(failures(&frame, Wrong::Differs(0, 1), 7), one);
        assert_ne!(failures(&frame, Wrong::Differs(0, 1), 8).sample, one.sample);
    }

    /// Proves that regression gives the rows with the largest errors, that missing values are in no failure, that
    /// `correct` is used as it is, and that long strings are cut.
    #[test]
    fn other_ways_to_be_wrong() {
        let numbers = |values: &[f64]| Cells::Numbers(values.to_vec());
        let long = "ä".repeat(1000);
        let frame = Frame::of_columns(vec![
            column("label", ColumnType::Float, numbers(&[1.0, 2.0, f64::NAN, 4.0])),
            column("prediction", ColumnType::Float, numbers(&[1.5, 9.0, 3.0, 4.0])),
            column("correct", ColumnType::Bool, numbers(&[1.0, 0.0, 1.0, f64::NAN])),
            texts("text", &[None, Some(&long), Some("x"), Some("y")]),
        ]);
        let far = failures(&frame, Wrong::Far(0, 1), 0);
        assert_eq!((far.wrong, far.kind, far.sample.len()), (3, FailureKind::Farthest, 3));
        let wrong = failures(&frame, Wrong::Correct(2), 0);
        assert_eq!((wrong.wrong, wrong.sample[0].row), (1, 2));
        let text = wrong.sample[0].cells["text"].as_str().unwrap();
        assert_eq!(text.chars().count(), FAILURE_TEXT_CHARS_MAX + 1);
        assert_eq!(wrong.sample[0].cells["correct"], Json::from(false));
        assert_eq!(failures(&frame, Wrong::Differs(0, 1), 0).wrong, 2);
    }
}
