//! Rows that are boxes in images.

use std::collections::BTreeMap;

use trackway_data::model::{Frame, MISSING_CODE};

use super::{Content, RowItems, column, numbers, values_of, whole_rows};
use crate::Columns;
use crate::error::{AssessError, Result};
use crate::metrics::boxes::{Boxes, Corners, ImageBoxes, ScoredBox};
use crate::metrics::images::{by_image, class_codes};

/// What a row can be.
const LABEL: &str = "label";
const PREDICTION: &str = "prediction";

/// The images of a table.
pub(super) fn boxes(frame: &Frame, columns: &Columns) -> Result<RowItems> {
    let name = |column: &Option<String>, role| column.clone().ok_or(AssessError::NoColumnFor(role));
    let (image, class) = (name(&columns.image, "image")?, name(&columns.class, "class")?);
    let (kind, score) = (name(&columns.kind, "kind")?, name(&columns.score, "score")?);
    let corners = [
        name(&columns.x_min, "x_min")?,
        name(&columns.y_min, "y_min")?,
        name(&columns.x_max, "x_max")?,
        name(&columns.y_max, "y_max")?,
    ];
    let mut needed = vec![image.as_str(), class.as_str(), kind.as_str()];
    needed.extend(corners.iter().map(String::as_str));
    let (kinds, kind_codes) = values_of(column(frame, &kind)?);
    if let Some(other) = kinds.iter().find(|name| *name != LABEL && *name != PREDICTION) {
        return Err(AssessError::NotAKind { column: kind, value: other.clone() });
    }
    let is_label = |row: u32| kinds[kind_codes[row as usize] as usize] == LABEL;
    let scores = numbers(frame, &score)?;
    // A prediction without a score has no place in the order.
    let mut rows = whole_rows(frame, &needed)?;
    rows.retain(|row| is_label(*row) || scores[*row as usize].is_finite());
    let values = [
        numbers(frame, &corners[0])?,
        numbers(frame, &corners[1])?,
        numbers(frame, &corners[2])?,
        numbers(frame, &corners[3])?,
    ];
    let of_row = |row: u32| values.map(|values| values[row as usize]);
    let is_turned = |[left, top, right, bottom]: Corners| right < left || bottom < top;
    if let Some(row) = rows.iter().find(|row| is_turned(of_row(**row))) {
        let [left, top, right, bottom] = of_row(*row);
        return Err(AssessError::OutOfRange(format!(
            "the box in row {} ends before it begins: x from {left} to {right}, y from {top} to {bottom}; `{}` and `{}` are \
             its right and its lower end, not its width and height",
            row + 1,
            corners[2],
            corners[3]
        )));
    }
    let (classes, codes) = class_codes(frame, &class, &rows)?;
    let images = by_image(frame, Some(&image), &rows)?;
    let one = |rows: &Vec<u32>| {
        let mut by_class: BTreeMap<u32, (Vec<Corners>, Vec<ScoredBox>)> = BTreeMap::new();
        for row in rows {
            debug_assert_ne!(codes[*row as usize], MISSING_CODE);
            let (labels, predictions) = by_class.entry(codes[*row as usize]).or_default();
            match is_label(*row) {
                true => labels.push(of_row(*row)),
                false => predictions.push((scores[*row as usize], of_row(*row))),
            }
        }
        let mut found = ImageBoxes::default();
        by_class
            .into_iter()
            .for_each(|(class, (labels, predictions))| found.add(class, &labels, predictions));
        found
    };
    let first = images.iter().map(|rows| rows[0]).collect();
    let images = images.iter().map(one).collect();
    let found = RowItems::rows(frame, rows, Content::Boxes(Boxes { classes, images }));
    Ok(RowItems { row_of_item: first, ..found })
}
