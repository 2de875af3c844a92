//! Whether a home and its ledger know the same: attempts without rows, rows without folders, receipts that changed, what was set
//! aside, what a killed command left. Nothing is changed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use trackway_core::AttemptId;
use trackway_ledger::{ErrorKind as LedgerErrorKind, KnownAttempt, Ledger, LedgerError};

use crate::error::{AppError, ErrorKind};
use crate::home::Home;
use crate::patience::ledger_error;
use crate::set_aside;

/// Findings of one kind that are listed; the rest is counted.
pub const LISTED_MAX: usize = 100;
/// How the name of a ledger that is being rebuilt ends.
pub(crate) const REBUILDING_SUFFIX: &str = ".rebuilding";

/// How the ledger of a home is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerState {
    /// It can be read and knows runs, or there is nothing it should know.
    Sound,
    /// There is none, and attempts are there.
    Missing,
    /// It holds no run, and attempts are there.
    Empty,
    /// It cannot be read.
    Damaged,
    /// Its server does not answer, another process holds it, or a newer program made it: nothing is known of it.
    Unreachable,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The ledger itself.
    Ledger,
    /// An attempt's folder that the ledger does not know.
    UnknownAttempt,
    /// An attempt that is not sealed and whose folder is gone.
    LostFolder,
    /// A sealed receipt that has another digest than it was sealed with.
    ChangedReceipt,
    /// An attempt or an evaluation that cannot be sealed now.
    SetAside,
    /// What a command left that was killed. Nothing is wrong with it.
    Leftover,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// The attempt, the evaluation, or the path below the home.
    pub subject: String,
    /// What is wrong.
    pub why: String,
}

/// What `trackway doctor` says. Field names are the contract of `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// The home.
    pub home: PathBuf,
    /// The ledger, without a password.
    pub ledger: String,
    /// How it is.
    pub ledger_state: LedgerState,
    /// Folders of attempts in the home.
    pub attempt_folder_count: usize,
    /// What was found, by kind; at most [`LISTED_MAX`] of each.
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub unlisted_count: usize,
    /// Whether nothing is wrong; leftovers are not.
    pub healthy: bool,
    /// What to do.
    pub hints: Vec<String>,
}

/// Examines a home and its ledger.
///
/// # Errors
/// [`ErrorKind::NotFound`] without a home.
pub fn examine(home: &Home) -> Result<Diagnosis, AppError> {
    if !home.folder().is_dir() && !home.has_ledger_elsewhere() {
        let message = format!("there is no Trackway home at `{}`", home.folder().display());
        return Err(AppError::new(ErrorKind::NotFound, message).hint("name it with --home or TRACKWAY_HOME"));
    }
    home.check_ledger_scheme()?;
    let folders = attempt_folders(home);
    let (ledger_state, ledger, why) = open(home, !folders.is_empty());
    let mut findings: Vec<Finding> = why
        .map(|why| Finding { kind: FindingKind::Ledger, subject: shown_location(home, ledger.as_ref()), why })
        .into_iter()
        .collect();
    if let Some(ledger) = ledger.as_ref().filter(|_| ledger_state == LedgerState::Sound) {
        findings.extend(compare(home, ledger, &folders).map_err(|error| ledger_error(&error))?);
    }
    findings.extend(set_aside::of_home(home).into_iter().map(|aside| Finding {
        kind: FindingKind::SetAside,
        why: format!("tried {} times, again from {}: {}", aside.try_count, aside.next_try_at, aside.why),
        subject: aside.id,
    }));
    findings.extend(leftovers(home));
    let healthy = findings.iter().all(|finding| finding.kind == FindingKind::Leftover);
    let hints = hints(&findings);
    let found = findings.len();
    let findings = listed(findings);
    Ok(Diagnosis {
        home: home.folder().to_owned(),
        ledger: shown_location(home, ledger.as_ref()),
        ledger_state,
        attempt_folder_count: folders.len(),
        unlisted_count: found - findings.len(),
        findings,
        healthy,
        hints,
    })
}

/// Whether attempts are in the home of which an empty ledger would know nothing.
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
    let own = home.folder().join("ledger.db");
    home.ledger_file().is_none_or(|path| path != own)
        && std::fs::metadata(own).is_ok_and(|metadata| metadata.len() > 0)
}

/// That attempts are there and their ledger is not.
pub(crate) fn lost_ledger(home: &Home, how: &str) -> AppError {
    let count = attempt_folders(home).len();
    let message = format!(
        "the ledger `{}` {how}, and `{}` holds {count} {}",
        shown_location(home, None),
        home.folder().join("attempts").display(),
        if count == 1 { "attempt" } else { "attempts" }
    );
    AppError::new(ErrorKind::Integrity, message)
        .hint("rebuild it from the files: trackway ledger rebuild")
        .hint("diagnose it with: trackway doctor")
}

/// The attempts whose folders are in the home.
pub(crate) fn attempt_folders(home: &Home) -> Vec<AttemptId> {
    let entries = std::fs::read_dir(home.folder().join("attempts")).into_iter().flatten().flatten();
    let mut found: Vec<AttemptId> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    found.sort_by_key(ToString::to_string);
    found
}

/// Every command asks: it does not list them all.
fn has_attempts(home: &Home) -> bool {
    let entries = std::fs::read_dir(home.folder().join("attempts")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .any(|name| name.parse::<AttemptId>().is_ok())
}

/// Opens what there is of a ledger, and makes none.
pub(crate) fn open(home: &Home, has_attempts: bool) -> (LedgerState, Option<Ledger>, Option<String>) {
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

fn compare(home: &Home, ledger: &Ledger, folders: &[AttemptId]) -> Result<Vec<Finding>, LedgerError> {
    let known = ledger.known_attempts()?;
    let known_ids: HashSet<AttemptId> = known.iter().map(|attempt| attempt.attempt_id).collect();
    let mut findings: Vec<Finding> = folders
        .iter()
        .filter(|id| !known_ids.contains(id))
        .map(|id| Finding {
            kind: FindingKind::UnknownAttempt,
            subject: id.to_string(),
            why: "its folder exists, but it is not in the ledger".into(),
        })
        .collect();
    let own = known
        .iter()
        .filter(|attempt| Path::new(&attempt.log_directory) == home.attempt_folder(attempt.attempt_id));
    for attempt in own {
        findings.extend(finding_of(home, ledger, attempt)?);
    }
    Ok(findings)
}

/// A sealed attempt needs no folder: `trackway gc` deletes it.
fn finding_of(home: &Home, ledger: &Ledger, attempt: &KnownAttempt) -> Result<Option<Finding>, LedgerError> {
    let subject = attempt.attempt_id.to_string();
    if !attempt.sealed {
        let folder = home.attempt_folder(attempt.attempt_id);
        let was_launched =
            ledger.attempt(attempt.attempt_id)?.is_some_and(|row| row.placement_json.is_some());
        return Ok((was_launched && !folder.exists()).then(|| Finding {
            kind: FindingKind::LostFolder,
            subject,
            why: "it is not sealed, but its folder is missing".into(),
        }));
    }
    let holds = ledger.verify_receipt(attempt.attempt_id)?;
    Ok((holds == Some(false)).then(|| Finding {
        kind: FindingKind::ChangedReceipt,
        subject,
        why: "its receipt has another digest than it was sealed with".into(),
    }))
}

/// Halves of files and of ledgers that a killed command left.
fn leftovers(home: &Home) -> Vec<Finding> {
    let folders = [home.folder().to_owned(), home.folder().join("records")];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let mut found: Vec<Finding> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".part") || name.contains(REBUILDING_SUFFIX)
        })
        .map(|path| Finding {
            kind: FindingKind::Leftover,
            subject: home.below(&path),
            why: "a command that was killed left it; it may be deleted".into(),
        })
        .collect();
    found.sort_by(|one, other| one.subject.cmp(&other.subject));
    found
}

fn listed(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| finding.kind);
    let (mut kind, mut count) = (None, 0);
    findings.retain(|finding| {
        if kind.replace(finding.kind) != Some(finding.kind) {
            count = 0;
        }
        count += 1;
        count <= LISTED_MAX
    });
    findings
}

fn hints(findings: &[Finding]) -> Vec<String> {
    let has = |kind| findings.iter().any(|finding| finding.kind == kind);
    let mut hints = Vec::new();
    if has(FindingKind::Ledger) || has(FindingKind::UnknownAttempt) {
        hints.push("restore it from the files: trackway ledger rebuild".into());
    }
    if has(FindingKind::SetAside) {
        hints.push("try an attempt again at once: trackway resume RUN".into());
    }
    if has(FindingKind::ChangedReceipt) {
        hints.push("somebody changed the ledger past Trackway: compare with a copy".into());
    }
    hints
}

fn shown_location(home: &Home, ledger: Option<&Ledger>) -> String {
    ledger.map_or_else(|| home.shown_ledger(), Ledger::location)
}
