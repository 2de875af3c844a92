//! Whether a home and its ledger agree: attempts without rows, rows without folders, receipts that changed, what was
//! set aside, what a killed command left. Nothing is changed.

use std::collections::HashSet;
use std::path::Path;

use trackway_api::home::doctor::{HomeDiagnosis, HomeFinding, HomeFindingKind, LedgerState};
use trackway_core::AttemptId;
use trackway_engine::deferred_seals;
use trackway_engine::error::AppError;
use trackway_engine::home::Home;
use trackway_engine::ledger_state::{
    REBUILDING_SUFFIX, attempt_folders, open, shown_location, supervisor_hints,
};
use trackway_ledger::{KnownAttempt, Ledger, LedgerError};

/// Findings of one kind that are listed; the rest is counted.
pub const LISTED_MAX: usize = 100;

/// Examines a home and its ledger.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`] without a home; when it cannot be read.
pub fn examine(home: &Home) -> Result<HomeDiagnosis, AppError> {
    home.check_folder()?;
    home.check_ledger_scheme()?;
    let folders = attempt_folders(home);
    let (ledger_state, ledger, why) = open(home, !folders.is_empty());
    let mut findings: Vec<HomeFinding> = why
        .map(|why| HomeFinding {
            kind: HomeFindingKind::Ledger,
            subject: shown_location(home, ledger.as_ref()),
            why,
        })
        .into_iter()
        .collect();
    if let Some(ledger) = ledger.as_ref().filter(|_| ledger_state == LedgerState::Sound) {
        findings.extend(compare(home, ledger, &folders)?);
    }
    findings.extend(deferred_seals::of_home(home).into_iter().map(|aside| HomeFinding {
        kind: HomeFindingKind::SetAside,
        why: format!("tried {} times, again from {}: {}", aside.try_count, aside.next_try_at, aside.why),
        subject: aside.id,
    }));
    findings.extend(leftovers(home));
    let healthy = findings.iter().all(|finding| finding.kind == HomeFindingKind::Leftover);
    let hints = match ledger_state {
        LedgerState::Sound => hints(&findings),
        // It is not made again: its finding, the first one, says what to do.
        LedgerState::Unreachable => hints(findings.get(1..).unwrap_or_default()),
        // They come first: a ledger is not made again while they have the old one open.
        _ => supervisor_hints(home).into_iter().chain(hints(&findings)).collect(),
    };
    let found = findings.len();
    let findings = listed(findings);
    Ok(HomeDiagnosis {
        home: home.folder().display().to_string(),
        ledger: shown_location(home, ledger.as_ref()),
        ledger_state,
        attempt_folder_count: folders.len() as u64,
        unlisted_count: (found - findings.len()) as u64,
        findings,
        healthy,
        hints,
    })
}

fn compare(home: &Home, ledger: &Ledger, folders: &[AttemptId]) -> Result<Vec<HomeFinding>, LedgerError> {
    let known = ledger.known_attempts()?;
    let known_ids: HashSet<AttemptId> = known.iter().map(|attempt| attempt.attempt_id).collect();
    let mut findings: Vec<HomeFinding> = folders
        .iter()
        .filter(|id| !known_ids.contains(id))
        .map(|id| HomeFinding {
            kind: HomeFindingKind::UnknownAttempt,
            subject: id.to_string(),
            why: "its folder exists, but it is not in the ledger".into(),
        })
        .collect();
    let own = known.iter().filter(|attempt| {
        Path::new(&attempt.log_directory) == home.layout.attempt(attempt.attempt_id).folder()
    });
    let own: Vec<&KnownAttempt> = own.collect();
    let mut changed = HashSet::new();
    ledger.check_receipts(None, &mut |receipt| match receipt {
        Ok(receipt) if receipt.holds == Some(false) => changed.extend([receipt.attempt_id]),
        Ok(_) => {}
        Err(row) => changed.extend(row.id.parse::<AttemptId>()),
    })?;
    for attempt in own {
        findings.extend(finding_of(home, ledger, attempt, &changed)?);
    }
    Ok(findings)
}

/// A sealed attempt needs no folder: `trackway gc` deletes it.
fn finding_of(
    home: &Home,
    ledger: &Ledger,
    attempt: &KnownAttempt,
    changed: &HashSet<AttemptId>,
) -> Result<Option<HomeFinding>, LedgerError> {
    let subject = attempt.attempt_id.to_string();
    if !attempt.sealed {
        let files = home.layout.attempt(attempt.attempt_id);
        let was_launched =
            ledger.attempt(attempt.attempt_id)?.is_some_and(|row| row.placement_json.is_some());
        return Ok((was_launched && !files.folder().exists()).then(|| HomeFinding {
            kind: HomeFindingKind::LostFolder,
            subject,
            why: "it is not sealed, but its folder is missing".into(),
        }));
    }
    Ok(changed.contains(&attempt.attempt_id).then(|| HomeFinding {
        kind: HomeFindingKind::ChangedReceipt,
        subject,
        why: "its receipt has another digest than it was sealed with".into(),
    }))
}

/// Halves of files and of ledgers that a killed command left.
fn leftovers(home: &Home) -> Vec<HomeFinding> {
    let folders = [home.folder().to_owned(), home.layout.records()];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let mut found: Vec<HomeFinding> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".part") || name.contains(REBUILDING_SUFFIX)
        })
        .map(|path| HomeFinding {
            kind: HomeFindingKind::Leftover,
            subject: home.layout.below(&path),
            why: "a command that was killed left it; it may be deleted".into(),
        })
        .collect();
    found.sort_by(|one, other| one.subject.cmp(&other.subject));
    found
}

fn listed(mut findings: Vec<HomeFinding>) -> Vec<HomeFinding> {
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

fn hints(findings: &[HomeFinding]) -> Vec<String> {
    let has = |kind| findings.iter().any(|finding| finding.kind == kind);
    let mut hints = Vec::new();
    if has(HomeFindingKind::Ledger) || has(HomeFindingKind::UnknownAttempt) {
        hints.push("restore it from the files: trackway doctor rebuild".into());
    }
    if has(HomeFindingKind::SetAside) {
        hints.push("try an attempt again at once: trackway resume RUN".into());
    }
    if has(HomeFindingKind::ChangedReceipt) {
        hints.push("the ledger was changed by another program: compare with a copy".into());
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each hint is given once, for what it helps with, and that other findings have none.
    #[test]
    fn hints_follow_from_findings() {
        let hinted = |kinds: &[HomeFindingKind]| {
            let finding = |kind: &HomeFindingKind| {
                let (subject, why) = ("subject".to_owned(), "why".to_owned());
                HomeFinding { kind: *kind, subject, why }
            };
            hints(&kinds.iter().map(finding).collect::<Vec<_>>())
        };
        assert_eq!(hinted(&[HomeFindingKind::Leftover, HomeFindingKind::LostFolder]), [""; 0]);
        let rebuild = "restore it from the files: trackway doctor rebuild";
        assert_eq!(hinted(&[HomeFindingKind::Ledger, HomeFindingKind::UnknownAttempt]), [rebuild]);
        let both = hinted(&[HomeFindingKind::ChangedReceipt, HomeFindingKind::SetAside]);
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both[0].contains("trackway resume RUN") && both[1].contains("another program"), "{both:?}");
    }
}
