//! What the attempts of a run started from, and whether it changed between them.

use trackway_api::runs::postmortem::{InputVersion, VersionOfAttempts};
use trackway_ledger::AttemptRow;

/// A kind of input, and where a receipt has it.
type Input = (&'static str, fn(&AttemptRow) -> Option<String>);

const INPUTS: [Input; 9] = [
    ("all data sets", |attempt| attempt.data_sha256.clone()),
    ("settings", |attempt| Some(attempt.config_sha256.clone())),
    ("code commit", |attempt| attempt.git_commit.clone()),
    ("code changes", |attempt| attempt.git_diff_blake3.clone()),
    ("script", |attempt| attempt.script_blake3.clone()),
    ("packages", |attempt| attempt.environment_lock_sha256.clone()),
    ("image", |attempt| attempt.container_digest.clone()),
    ("seed", |attempt| attempt.seed.map(|seed| seed.to_string())),
    ("hosts", |attempt| attempt.hosts.clone()),
];

/// Each kind of input over all attempts.
pub(super) fn inputs(attempts: &[&AttemptRow]) -> Vec<InputVersion> {
    INPUTS.iter().map(|(what, value)| versions(what, attempts, *value)).collect()
}

fn versions(what: &str, attempts: &[&AttemptRow], value: fn(&AttemptRow) -> Option<String>) -> InputVersion {
    let mut versions: Vec<VersionOfAttempts> = Vec::new();
    for attempt in attempts {
        let value = value(attempt);
        match versions.iter_mut().find(|version| version.value == value) {
            Some(version) => version.attempts.push(attempt.attempt_number),
            None => versions.push(VersionOfAttempts { value, attempts: vec![attempt.attempt_number] }),
        }
    }
    let is_recorded = versions.iter().all(|version| version.value.is_some()) && !versions.is_empty();
    let known = versions.iter().filter(|version| version.value.is_some()).count();
    InputVersion {
        what: what.to_owned(),
        // Two known versions differ, whatever the others were.
        changed: if known > 1 { Some(true) } else { is_recorded.then_some(false) },
        versions,
    }
}
