//! Tests of the whole crate: agreement with other tools, coverage of intervals, and notes.

mod agreement;
mod classes;
mod coverage;
mod experiments;
mod fairness;
mod images;
mod totals;
mod undefined;

use trackway_data::model::{Cells, Frame, FrameColumn};
use trackway_tables::ColumnType;

pub(crate) fn numbers(name: &str, values: impl IntoIterator<Item = f64>) -> FrameColumn {
    let cells = Cells::Numbers(values.into_iter().collect());
    FrameColumn { name: name.to_owned(), kind: ColumnType::Float, cells }
}

/// A column of strings; an empty one is missing.
pub(crate) fn texts<'t>(name: &str, values: impl IntoIterator<Item = &'t str>) -> FrameColumn {
    let values = values.into_iter().map(|text| Some(text).filter(|text| !text.is_empty()));
    FrameColumn { name: name.to_owned(), kind: ColumnType::Text, cells: Cells::of_texts(values) }
}

pub(crate) fn frame(columns: Vec<FrameColumn>) -> Frame {
    Frame::of_columns(columns)
}
