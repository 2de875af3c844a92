//! Late facts beside a sealed receipt. The receipt never changes: an amendment has the value it had, the value as it is known now,
//! who wrote it and why.

use trackway_api::runs::explain::Amendment;
use trackway_core::{AttemptId, Clock as _, Ids as _, TerminationReason, Timestamp};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::layout::RowCopy;
use trackway_ledger::{AmendmentRow, AttemptRow, ColumnKind, KeptRows};

/// Columns that name what the receipt is about: another value would make it the receipt of something else.
const IDENTITY: [&str; 4] = ["attempt_id", "run_id", "kind", "receipt_sha256"];

/// What to write.
#[derive(Debug, Clone)]
pub struct AmendRequest {
    /// The column of the receipt.
    pub field: String,
    /// The value as it is known now; `None`: it is not known.
    pub value: Option<String>,
    pub why: String,
}

/// Writes a late fact about a sealed attempt.
///
/// # Errors
/// [`ErrorKind::NotFound`]; [`ErrorKind::Usage`] for a column that receipts do not have, that names the attempt, or that has this value;
/// [`ErrorKind::Blocked`] when it is not sealed yet.
pub fn amend(
    context: &Context,
    attempt_id: AttemptId,
    request: &AmendRequest,
) -> Result<Amendment, AppError> {
    let row = context.ledger_read(|ledger| ledger.attempt(attempt_id))?.ok_or_else(|| {
        AppError::new(ErrorKind::NotFound, format!("attempt {attempt_id} is not in the ledger"))
    })?;
    if row.sealed_at.is_none() {
        let message = format!("attempt {attempt_id} is not sealed: its receipt still changes by itself");
        return Err(AppError::new(ErrorKind::Blocked, message).hint("amend it when it has ended"));
    }
    check_value(&request.field, request.value.as_deref())?;
    if request.why.trim().is_empty() {
        return Err(AppError::new(ErrorKind::Usage, "an amendment needs a reason: --why"));
    }
    let old_text = row.text_of(&request.field);
    let new_text = request.value.as_deref().map(|value| context.redactor.text(value).to_string());
    if old_text == new_text {
        let shown = old_text.as_deref().unwrap_or("null");
        return Err(AppError::new(
            ErrorKind::Usage,
            format!("`{}` is `{shown}` in the receipt already", request.field),
        ));
    }
    let amendment = AmendmentRow {
        amendment_id: format!("amd_{:032x}", context.ids.next_ulid()),
        attempt_id,
        run_id: row.run_id,
        at: context.clock.now(),
        author: context.request.actor.name_or_unknown(),
        field: request.field.clone(),
        old_text,
        new_text,
        why: context.redactor.text(&request.why).to_string(),
    };
    context.ledger_write(|ledger| ledger.amend(&amendment))?;
    let copy = RowCopy::Amendment(&amendment.amendment_id);
    context.keep(row.run_id, copy, &KeptRows::of([&amendment]));
    Ok(wire(amendment))
}

/// The late facts about an attempt, oldest first.
pub fn amendments_of(context: &Context, attempt_id: AttemptId) -> Result<Vec<Amendment>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.amendments_of(attempt_id))?;
    Ok(rows.into_iter().map(wire).collect())
}

/// Whether a column can be amended, and with this value.
fn check_value(field: &str, value: Option<&str>) -> Result<(), AppError> {
    let columns: Vec<_> = AttemptRow::columns().filter(|(name, _)| !IDENTITY.contains(name)).collect();
    let Some((_, kind)) = columns.iter().find(|(name, _)| *name == field) else {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let message = format!("`{field}` is not a column of a receipt that can be amended");
        return Err(AppError::new(ErrorKind::Usage, message).hint(format!("columns: {}", names.join(", "))));
    };
    let Some(value) = value else { return Ok(()) };
    let expected = match kind {
        _ if field == "termination_reason" && value.parse::<TerminationReason>().is_err() => {
            "a termination reason (docs/termination-reasons.md)"
        }
        ColumnKind::Integer if value.parse::<i64>().is_err() => "a whole number",
        ColumnKind::Real if value.parse::<f64>().ok().is_none_or(|number| !number.is_finite()) => "a number",
        ColumnKind::Boolean if value.parse::<bool>().is_err() => "`true` or `false`",
        ColumnKind::Timestamp if value.parse::<Timestamp>().is_err() => "a time such as 2027-01-31T12:00:00Z",
        _ => return Ok(()),
    };
    Err(AppError::new(ErrorKind::Usage, format!("`{field}` is {expected}, not `{value}`")))
}

fn wire(row: AmendmentRow) -> Amendment {
    let AmendmentRow { amendment_id, attempt_id, at, author, field, old_text, new_text, why, .. } = row;
    Amendment { amendment_id, attempt_id, at, author, field, old_text, new_text, why }
}
