//! What is known of a home's ledger before it is trusted: whether it opens, and whether attempts are there that it does not hold.

use std::path::Path;

use trackway_api::home::doctor::LedgerState;
use trackway_core::text::counted;
use trackway_core::{AttemptId, RunId};
use trackway_ledger::{ErrorKind as LedgerErrorKind, Ledger, LedgerError};

use crate::error::{AppError, ErrorKind};
use crate::home::Home;
use crate::run_lock::{LockHolder, RunLock};

/// Supervisors that are named; the others are counted.
const SUPERVISORS_NAMED_MAX: usize = 3;
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
    match is_missing(home) {
        true => Err(lost_ledger(home, "is missing or empty")),
        false => Ok(true),
    }
}

/// Whether the ledger is a file that is not there or empty.
fn is_missing(home: &Home) -> bool {
    let size_bytes = |path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    home.ledger_file().is_some_and(|path| size_bytes(path) == 0)
}

/// A ledger elsewhere, beside one that is in its place.
fn is_second_ledger(home: &Home) -> bool {
    let own = home.layout.ledger_db();
    home.ledger_file().is_none_or(|path| path != own)
        && std::fs::metadata(own).is_ok_and(|metadata| metadata.len() > 0)
}

/// That attempts are there and their ledger is not.
pub(crate) fn lost_ledger(home: &Home, how: &str) -> AppError {
    let message = format!(
        "the ledger `{}` {how}, and `{}` holds {}",
        shown_location(home, None),
        home.layout.attempts().display(),
        counted(attempt_folders(home).len() as u64, "attempt")
    );
    let error =
        supervisor_hints(home).into_iter().fold(AppError::new(ErrorKind::Integrity, message), AppError::hint);
    error.hint("rebuild it from the files: trackway doctor rebuild").hint("diagnose it with: trackway doctor")
}

/// What is done about the supervisors of a home before its ledger is made again: they have the old one open.
pub fn supervisor_hints(home: &Home) -> Vec<String> {
    let holders = RunLock::holders(&home.layout, &run_folders(home));
    // It has the locks of all runs, and supervises none.
    if let Some(rebuilds) = holders.iter().find(|holder| holder.rebuilds) {
        return vec![rebuilds.how_to_end()];
    }
    let mut hints: Vec<String> =
        holders.iter().take(SUPERVISORS_NAMED_MAX).map(LockHolder::how_to_end).collect();
    let more = holders.len().saturating_sub(SUPERVISORS_NAMED_MAX);
    if more > 0 {
        hints.push(format!("{} of other runs live too", counted(more as u64, "supervisor")));
    }
    hints
}

/// The attempts whose folders are in the home.
pub fn attempt_folders(home: &Home) -> Vec<AttemptId> {
    let mut found: Vec<AttemptId> = listed_attempts(home).collect();
    found.sort_by_key(ToString::to_string);
    found
}

/// The runs with a folder in the home, oldest first.
pub fn run_folders(home: &Home) -> Vec<RunId> {
    let entries = std::fs::read_dir(home.layout.runs()).into_iter().flatten().flatten();
    let mut found: Vec<RunId> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    found.sort_by_key(ToString::to_string);
    found
}

fn listed_attempts(home: &Home) -> impl Iterator<Item = AttemptId> {
    let entries = std::fs::read_dir(home.layout.attempts()).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Every command calls this: it does not list them all.
fn has_attempts(home: &Home) -> bool {
    listed_attempts(home).next().is_some()
}

/// Opens what there is of a ledger, and makes none.
pub fn open(home: &Home, has_attempts: bool) -> (LedgerState, Option<Ledger>, Option<String>) {
    if is_missing(home) {
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
        _ if home.ledger_file().is_none_or(|path| is_denied(&path)) => LedgerState::Unreachable,
        _ => LedgerState::Damaged,
    }
}

/// Whether this user may not read a file: it may be sound.
fn is_denied(path: &Path) -> bool {
    std::fs::File::open(path).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Where a ledger is, without a password, for people.
pub fn shown_location(home: &Home, ledger: Option<&Ledger>) -> String {
    ledger.map_or_else(|| home.shown_ledger(), Ledger::location)
}
