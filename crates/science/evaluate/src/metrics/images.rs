//! Tables with several rows of each image.

use std::collections::HashMap;
use std::sync::Arc;

use trackway_data::model::{Frame, MISSING_CODE};

use super::table::{column, values_of};
use crate::error::{AssessError, Result};
use crate::limits::CLASSES_MAX;

/// The names of classes by their codes.
pub(crate) type NamedClasses = Arc<[String]>;

/// The rows of each image, in the order in which the images appear; each row alone without a column of images.
pub(super) fn by_image(frame: &Frame, image: Option<&str>, rows: &[u32]) -> Result<Vec<Vec<u32>>> {
    let Some(image) = image else { return Ok(rows.iter().map(|row| vec![*row]).collect()) };
    let (_, codes) = values_of(column(frame, image)?);
    let mut place: HashMap<u32, usize> = HashMap::new();
    let mut images: Vec<Vec<u32>> = Vec::new();
    for row in rows {
        let at = *place.entry(codes[*row as usize]).or_insert_with(|| {
            images.push(Vec::new());
            images.len() - 1
        });
        images[at].push(*row);
    }
    Ok(images)
}

/// The classes of these rows, sorted, and for each row of the table the code of its class.
pub(super) fn class_codes(frame: &Frame, class: &str, rows: &[u32]) -> Result<(NamedClasses, Vec<u32>)> {
    let (names, codes) = values_of(column(frame, class)?);
    let mut is_used = vec![false; names.len()];
    rows.iter().for_each(|row| is_used[codes[*row as usize] as usize] = true);
    let mut used: Vec<(String, u32)> =
        names.into_iter().zip(0..).filter(|(_, code)| is_used[*code as usize]).collect();
    if used.len() > CLASSES_MAX {
        return Err(AssessError::TooManyClasses { column: class.to_owned(), classes: used.len() });
    }
    used.sort();
    let mut places = vec![MISSING_CODE; is_used.len()];
    (0..).zip(&used).for_each(|(place, (_, code))| places[*code as usize] = place);
    let codes =
        codes.iter().map(|code| places.get(*code as usize).copied().unwrap_or(MISSING_CODE)).collect();
    Ok((used.into_iter().map(|(name, _)| name).collect(), codes))
}
