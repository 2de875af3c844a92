//! Rows that count the pixels of images.

use trackway_data::model::{Frame, MISSING_CODE};

use super::{Content, RowItems, numbers, whole_rows};
use crate::Columns;
use crate::error::{AssessError, Result};
use crate::metrics::images::{by_image, class_codes};
use crate::metrics::pixels::{ClassPixels, Pixels};

/// The images of a table; without a column of images each row is one.
pub(super) fn pixels(frame: &Frame, columns: &Columns) -> Result<RowItems> {
    let name = |column: &Option<String>, role| column.clone().ok_or(AssessError::NoColumnFor(role));
    let counts = [
        name(&columns.true_positive, "true_positive")?,
        name(&columns.false_positive, "false_positive")?,
        name(&columns.false_negative, "false_negative")?,
    ];
    let others = [&columns.image, &columns.class].into_iter().flatten();
    let needed: Vec<&str> = counts.iter().chain(others).map(String::as_str).collect();
    let rows = whole_rows(frame, &needed)?;
    let values = [numbers(frame, &counts[0])?, numbers(frame, &counts[1])?, numbers(frame, &counts[2])?];
    for (name, values) in counts.iter().zip(values) {
        if let Some(row) = rows.iter().find(|row| values[**row as usize] < 0.0) {
            return Err(AssessError::OutOfRange(format!(
                "`{name}` is {} in row {}: it counts pixels and must not be negative",
                values[*row as usize],
                row + 1
            )));
        }
    }
    let (classes, codes) = match &columns.class {
        Some(class) => {
            let (classes, codes) = class_codes(frame, class, &rows)?;
            (Some(classes), codes)
        }
        None => (None, vec![MISSING_CODE; frame.rows()]),
    };
    let images = by_image(frame, columns.image.as_deref(), &rows)?;
    let of_row = |row: &u32| {
        let row = *row as usize;
        let [true_positive, false_positive, false_negative] = values.map(|values| values[row]);
        let class = if classes.is_some() { codes[row] } else { 0 };
        ClassPixels { class, true_positive, false_positive, false_negative }
    };
    let first = images.iter().map(|rows| rows[0]).collect();
    let images = images.iter().map(|rows| rows.iter().map(of_row).collect()).collect();
    let found = RowItems::rows(frame, rows, Content::Pixels(Pixels { classes, images }));
    Ok(RowItems { row_of_item: first, ..found })
}
