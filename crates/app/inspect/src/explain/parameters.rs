//! The parameters of an attempt.

use trackway_api::explain::AttemptParameter;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_formats::arguments;
use trackway_ledger::{AttemptRow, AttemptState};

/// The parameters of the command and those that the script reported; of an attempt that is not sealed only the former.
pub(crate) fn parameters_of(
    context: &Context,
    attempt: &AttemptRow,
) -> Result<Vec<(String, String)>, AppError> {
    if attempt.state != AttemptState::Sealed {
        return Ok(arguments::parameters_of(&attempt.command));
    }
    let rows = context.ledger_read(|ledger| ledger.parameters_of(attempt.attempt_id))?;
    Ok(rows.into_iter().map(|row| (row.name, row.value)).collect())
}

pub(super) fn card(context: &Context, attempt: &AttemptRow) -> Result<Vec<AttemptParameter>, AppError> {
    let parameters = parameters_of(context, attempt)?.into_iter();
    Ok(parameters.map(|(name, value)| AttemptParameter { name, value }).collect())
}
