//! Finds the folders that are no live checkpoint's: begun and never committed, retired and not deleted, foreign.

use trackway_formats::checkpoint_manifest::MANIFEST_FILE_NAME;

use super::finding::{Remedy, RootFinding};
use super::survey::{Folder, Survey, entry_path};
use crate::history::{BeginRecord, CommitRecord};

/// Folders that are no live checkpoint's.
pub(super) fn left_over(survey: &Survey) -> Vec<RootFinding> {
    let mut findings = Vec::new();
    for (number, record) in survey.history.begun() {
        let body = &record.body;
        let Some(folder) = survey.folders.get(&body.object_prefix).filter(|_| !record.swept) else {
            findings.extend(begun_without_folder(survey, number, record));
            continue;
        };
        let size_bytes: u64 = folder.files.values().sum();
        let what = format!("step {} was begun by {} (epoch {})", body.step, body.attempt_id, body.epoch);
        let finding = if survey.history.is_abandoned(record) {
            let message = format!("{what} and never committed: {size_bytes} bytes are left over");
            RootFinding::warning("begun_not_committed", &body.object_prefix, message)
                .remedy(Remedy::CollectGarbage)
        } else {
            let message = format!("{what} and is not committed yet{}{}", whole_in(folder), log_end(survey));
            RootFinding::note("begun_not_committed", &body.object_prefix, message)
        };
        findings.push(finding.of_begin(number, body));
    }
    for (number, record) in survey.history.commits().filter(|(_, record)| record.retired) {
        findings.extend(not_deleted(survey, number, record));
    }
    let moved: Vec<&str> = missing(survey).filter_map(|folder| survey.moved(folder)).collect();
    let orphans = survey.orphans().filter(|(prefix, _)| !moved.contains(&prefix.as_str()));
    findings.extend(orphans.map(|(prefix, folder)| orphan(survey, prefix, folder)));
    findings
}

/// Where the folders of committed checkpoints should be, and are not.
fn missing(survey: &Survey) -> impl Iterator<Item = &str> {
    let live = survey.history.commits().filter(|(_, record)| !record.retired);
    live.map(|(_, record)| record.folder()).filter(|folder| !survey.folders.contains_key(*folder))
}

fn whole_in(folder: &Folder) -> &'static str {
    if folder.files.contains_key(MANIFEST_FILE_NAME) { ", although its manifest is written" } else { "" }
}

/// The last entry may have been lost: nothing else shows its absence.
fn log_end(survey: &Survey) -> String {
    format!("; the log ends before `{}`", entry_path(survey.tail + 1))
}

fn begun_without_folder(survey: &Survey, number: u64, record: &BeginRecord) -> Option<RootFinding> {
    let body = &record.body;
    if record.swept || survey.history.is_abandoned(record) {
        return None;
    }
    let what = format!("step {} was begun by {} (epoch {})", body.step, body.attempt_id, body.epoch);
    let message = format!("{what}, is not committed yet, and has no folder{}", log_end(survey));
    Some(RootFinding::note("begun_not_committed", &body.object_prefix, message).of_begin(number, body))
}

fn not_deleted(survey: &Survey, number: u64, record: &CommitRecord) -> Option<RootFinding> {
    let body = &record.body;
    let folder = survey.folders.get(record.folder())?;
    if folder.files.is_empty() || survey.history.prefix_is_live(record.folder()) {
        return None;
    }
    let size_bytes: u64 = folder.files.values().sum();
    let message = format!("step {} was retired, and {size_bytes} bytes of it are not deleted yet", body.step);
    let finding = RootFinding::warning("retired_not_deleted", record.folder(), message);
    Some(finding.remedy(Remedy::CollectGarbage).of_commit(number, body))
}

fn orphan(survey: &Survey, prefix: &str, folder: &Folder) -> RootFinding {
    let size_bytes: u64 = folder.files.values().sum();
    // Where entries are lost, it may have been one of theirs.
    let lost = !survey.history.damaged().is_empty() || survey.last_number() > survey.tail || !survey.has_log;
    let message = if lost {
        format!(
            "no readable log entry names this folder ({size_bytes} bytes); a lost entry may have named it"
        )
    } else {
        format!("no log entry names this folder ({size_bytes} bytes): not written by Trackway")
    };
    let remedy = if lost { Remedy::Keep } else { Remedy::Remove { path: prefix.into() } };
    RootFinding::warning("orphan_folder", prefix, message).remedy(remedy)
}
