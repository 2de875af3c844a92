//! What the test data shares with the training data.

use std::path::Path;

use trackway_data::leakage::find_overlap;

pub use trackway_data::leakage::Roles;

use super::table::{FindingsAnswer, Onlooker, TableRequest, data_error};
use crate::error::AppError;

/// Reads both sides once and says what they share.
///
/// # Errors
/// [`crate::error::ErrorKind::NotFound`] for a path that names nothing; [`crate::error::ErrorKind::Usage`] for data that
/// cannot be read as a table or lacks a column that was named.
pub fn leakage(
    base: &Path,
    (train, test): (&TableRequest, &TableRequest),
    roles: &Roles,
    onlooker: &Onlooker<'_>,
) -> Result<FindingsAnswer, AppError> {
    let (mut train, mut test) = (train.open(base, "train")?, test.open(base, "test")?);
    let overlap = find_overlap(&mut train, &mut test, roles, &onlooker.watch()).map_err(data_error)?;
    Ok(FindingsAnswer {
        findings: overlap.findings(roles, &train, &test),
        not_run: Vec::new(),
        rows: overlap.train.rows_read + overlap.test.rows_read,
        rows_rejected: overlap.train.rows_rejected + overlap.test.rows_rejected,
        rules_checked: None,
    })
}
