//! What is known of a home's ledger before it is trusted: whether it opens, and whether attempts are there that it does not hold.

use trackway_api::doctor::LedgerState;
use trackway_core::AttemptId;
use trackway_ledger::{ErrorKind as LedgerErrorKind, Ledger, LedgerError};

use crate::error::{AppError, ErrorKind};
use crate::home::Home;

/// How the name of a ledger that is being rebuilt ends.
pub const REBUILDING_SUFFIX: &str = ".rebuilding";

/// Whether the home has attempts that an empty ledger lacks.
///
/// # Errors
/// [`ErrorKind::Integrity`] when the ledger's own file is missing or empty.
pub(crate) fn orphans_without_ledger(home: &Home) -> Result<bool, AppError> {
    if !has_attempts(home) || is_second_ledger(home) {
        return Ok(false);
    }
    match home.ledger_file().map(|path| std::fs::metadata(&path).map_or(0, |metadata| metadata.len())) {
        Some(0) => Err(lost_ledger(home, "is missing or empty")),
        _ => Ok(true),
    }
}

/// A ledger elsewhere, beside one that is in its place.
fn is_second_ledger(home: &Home) -> bool {
    let own = home.layout.ledger_db();
    home.ledger_file().is_none_or(|path| path != own)
        && std::fs::metadata(own).is_ok_and(|metadata| metadata.len() > 0)
}

/// That attempts are there and their ledger is not.
pub(crate) fn lost_ledger(home: &Home, how: &str) -> AppError {
    let count = attempt_folders(home).len();
    let message = format!(
        "the ledger `{}` {how}, and `{}` holds {count} {}",
        shown_location(home, None),
        home.layout.attempts().display(),
        if count == 1 { "attempt" } else { "attempts" }
    );
    AppError::new(ErrorKind::Integrity, message)
        .hint("rebuild it from the files: trackway doctor rebuild")
        .hint("diagnose it with: trackway doctor")
}

/// The attempts whose folders are in the home.
pub fn attempt_folders(home: &Home) -> Vec<AttemptId> {
    let entries = std::fs::read_dir(home.layout.attempts()).into_iter().flatten().flatten();
    let mut found: Vec<AttemptId> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    found.sort_by_key(ToString::to_string);
    found
}

/// Every command calls this: it does not list them all.
fn has_attempts(home: &Home) -> bool {
    let entries = std::fs::read_dir(home.layout.attempts()).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .any(|name| name.parse::<AttemptId>().is_ok())
}

/// Opens what there is of a ledger, and makes none.
pub fn open(home: &Home, has_attempts: bool) -> (LedgerState, Option<Ledger>, Option<String>) {
    if home
        .ledger_file()
        .is_some_and(|path| std::fs::metadata(path).map_or(0, |metadata| metadata.len()) == 0)
    {
        return match has_attempts && !is_second_ledger(home) {
            true => (LedgerState::Missing, None, Some("there is no ledger, but there are attempts".into())),
            false => (LedgerState::Sound, None, None),
        };
    }
    let checked = Ledger::open(&home.ledger_location()).and_then(|ledger| {
        ledger.check_integrity()?;
        let empty = ledger.is_empty()?;
        Ok((ledger, empty))
    });
    match checked {
        Ok((ledger, true)) if has_attempts && !is_second_ledger(home) => {
            (LedgerState::Empty, Some(ledger), Some("it contains no run, but there are attempts".into()))
        }
        Ok((ledger, _)) => (LedgerState::Sound, Some(ledger), None),
        Err(error) => (state_of(home, &error), None, Some(error.to_string())),
    }
}

fn state_of(home: &Home, error: &LedgerError) -> LedgerState {
    match error.kind() {
        LedgerErrorKind::Locked | LedgerErrorKind::Unavailable | LedgerErrorKind::Newer => {
            LedgerState::Unreachable
        }
        _ if home.ledger_file().is_none() => LedgerState::Unreachable,
        _ => LedgerState::Damaged,
    }
}

/// Where a ledger is, without a password, for people.
pub fn shown_location(home: &Home, ledger: Option<&Ledger>) -> String {
    ledger.map_or_else(|| home.shown_ledger(), Ledger::location)
}
