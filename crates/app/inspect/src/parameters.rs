//! The parameters of an attempt.

use trackway_api::runs::explain::AttemptParameter;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_formats::arguments::declared;
use trackway_formats::runfile::RunSection;
use trackway_ledger::{AttemptRow, AttemptState};

/// The parameters of the command, those given beside it and those that the script reported; of an attempt that is not
/// sealed only the former two.
pub(crate) fn parameters_of(
    context: &Context,
    attempt: &AttemptRow,
) -> Result<Vec<AttemptParameter>, AppError> {
    if attempt.state != AttemptState::Sealed {
        let given = RunSection::of_stored(&context.run_by_id(attempt.run_id)?.config_json).parameters;
        let declared = declared(&attempt.command, &given).into_iter();
        let row = |it: trackway_formats::arguments::Declared| AttemptParameter {
            name: it.name,
            value: it.value,
            origin: Some(it.origin.into()),
        };
        return Ok(declared.map(row).collect());
    }
    let rows = context.ledger_read(|ledger| ledger.parameters_of(attempt.attempt_id))?.into_iter();
    Ok(rows.map(|row| AttemptParameter { name: row.name, value: row.value, origin: row.origin }).collect())
}
