//! Ledgers of earlier versions with rows, and what must be in them after they were brought forward.

use trackway_core::{LaunchKind, RunId, Timestamp};

use crate::backend::{FIRST_VERSION, SCHEMA_VERSION, SUBJECTS_VERSION, script_of, without_lists};
use crate::ledger::Ledger;
use crate::records::{Subject, SubjectKind};

const RUN: &str = "run_00000000000000000000000001";
const TRAIN: &str = "att_00000000000000000000000001";
const PROVE: &str = "att_00000000000000000000000002";
const PRICED: &str = "att_00000000000000000000000003";

/// Rows of version 23, which the versions before 26 take as they are; `AT(1)` is a time.
const ROWS: &str = "
INSERT INTO runs (run_id, name, state, config_sha256, created_at, attempt_count, gpu_seconds, wall_seconds, config_json)
VALUES ('run_00000000000000000000000001', 'old', 'running', 'c', AT(1), 2, 0.0, 0.0, '{}');
INSERT INTO training_attempts (attempt_id, run_id, attempt_number, kind, rung, state, config_sha256, launcher, working_directory, log_directory, command, config_json, cost_usd, termination_reason, sealed_at, receipt_sha256)
VALUES ('att_00000000000000000000000001', 'run_00000000000000000000000001', 1, 'train', '100%', 'sealed', 'c', 'local', '/w', '/l', '[\"x\"]', '{}', 0.3333333333333333, 'completed', AT(9), 'r'),
('att_00000000000000000000000003', 'run_00000000000000000000000001', 2, 'train', '100%', 'sealed', 'c', 'local', '/w', '/l', '[\"x\"]', '{}', 0.5, 'completed', AT(9), 'r');
INSERT INTO launches (attempt_id, run_id, attempt_number, kind, rung, state, config_sha256, launcher, working_directory, log_directory, command, config_json)
VALUES ('att_00000000000000000000000002', 'run_00000000000000000000000001', 1, 'prove', '100%', 'running', 'c', 'local', '/w', '/l', '[\"x\"]', '{}');
INSERT INTO costs (attempt_id, run_id, item, quantity, unit, usd)
VALUES ('att_00000000000000000000000001', 'run_00000000000000000000000001', 'gpu', 360.0004, 'gpu_seconds', 0.3333333333333333),
('att_00000000000000000000000001', 'run_00000000000000000000000001', 'cpu', 0.25, 'cpu_seconds', NULL);
INSERT INTO events (event_id, run_id, attempt_id, at, kind, step, message, fields_json, source)
VALUES ('e1', 'run_00000000000000000000000001', NULL, AT(3), 'note', NULL, 'first', NULL, 'supervisor'),
('e2', 'run_00000000000000000000000001', 'att_00000000000000000000000001', AT(4), 'final', 7, 'second', '{}', 'sdk');
INSERT INTO supervisor_leases (run_id, epoch, holder, instance, boot_id, lock_id, expires_at)
VALUES ('run_00000000000000000000000001', 5, 'node-1', 'i', 'b', 'l', AT(6));
INSERT INTO models (model, created_at, change_number, version_count, stages_json, aliases_json, policy_json)
VALUES ('income', AT(2), 1, 1, '{}', '{}', '{}');
INSERT INTO data_snapshots (data_sha256, name, path, file_count, size_bytes, first_seen_at)
VALUES ('d1', 'train', 'a.csv', 1, 2, AT(1));
";

/// Rows of version 26, which knew no copies of notices: one that waits, and one that arrived.
const NOTICES: &str = "
INSERT INTO notices (notice_id, subject_kind, subject_id, at, about, document_json)
VALUES ('run_00000000000000000000000001:end:2', 'run', 'run_00000000000000000000000001', AT(7), 'end', '{\"text\":\"it ended\"}'),
('run_00000000000000000000000001:end:1', 'run', 'run_00000000000000000000000001', AT(6), 'end', '{}');
INSERT INTO outbox (notice_id, state, tries, next_try_at, last_failure)
VALUES ('run_00000000000000000000000001:end:2', 'waiting', 1, AT(8), 'it answered with status 503'),
('run_00000000000000000000000001:end:1', 'delivered', 1, AT(7), NULL);
";

/// The versions that a ledger is brought forward from.
#[must_use]
pub fn earlier_versions() -> std::ops::Range<i64> {
    FIRST_VERSION..SCHEMA_VERSION
}

/// The statements that make a ledger of an earlier version with rows, for either database.
#[must_use]
pub fn filled(version: i64, is_postgres: bool) -> String {
    let mut script = String::from("CREATE TABLE schema_version (version bigint NOT NULL);\n");
    for earlier in FIRST_VERSION..=version {
        if earlier == SUBJECTS_VERSION {
            script.push_str(&with_times(ROWS, is_postgres));
        }
        script.push_str(&format!("INSERT INTO schema_version VALUES ({earlier});\n"));
        script.push_str(&script_of(earlier, is_postgres));
    }
    if version < SUBJECTS_VERSION {
        return script + &with_times(ROWS, is_postgres);
    }
    script.push_str(&with_times(NOTICES, is_postgres));
    // Later ones have no closed lists, and PostgreSQL none that version 25 could replace.
    let is_of_list = |line: &&str| line.contains(" CONSTRAINT drift_results_verdict_check");
    let script: String =
        script.lines().filter(|line| !is_of_list(line)).flat_map(|line| [line, "\n"]).collect();
    without_lists(&script)
}

/// `AT(7)` is 7 microseconds after 1970, as each database writes it.
fn with_times(rows: &str, is_postgres: bool) -> String {
    (0..10).fold(rows.to_owned(), |rows, micros| {
        let time = match is_postgres {
            true => format!("timestamptz '1970-01-01 00:00:00.00000{micros}+00'"),
            false => micros.to_string(),
        };
        rows.replace(&format!("AT({micros})"), &time)
    })
}

/// What was in a ledger that was filled and brought forward is there, and what follows from it.
///
/// # Panics
/// When something was lost.
pub fn nothing_is_lost(ledger: &Ledger) {
    let at = Timestamp::from_micros;
    let run_id: RunId = RUN.parse().unwrap();
    let run = ledger.run(run_id).unwrap().unwrap();
    assert_eq!((run.name.as_str(), run.attempt_count, run.created_at), ("old", 2, at(1)));
    assert_eq!((run.project, run.criticality), (None, None));
    let attempt = ledger.attempt(TRAIN.parse().unwrap()).unwrap().unwrap();
    assert_eq!((attempt.sealed_at, attempt.queued_seconds), (Some(at(9)), None));
    assert_eq!(ledger.attempts_of_kind(run_id, LaunchKind::Prove).unwrap()[0].attempt_id.to_string(), PROVE);
    let events = ledger.events_of_run(run_id).unwrap();
    let said: Vec<&str> = events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!((said, events[1].step, events[1].at), (vec!["first", "second"], Some(7), at(4)));
    assert_eq!(ledger.events_of_attempt(attempt.attempt_id).unwrap(), events[1..]);
    assert_eq!(super::numbers(ledger, "SELECT epoch FROM supervisor_leases"), [5]);
    assert_eq!(ledger.model("income").unwrap().unwrap().created_at, at(2));
    assert_eq!(ledger.data_snapshot("d1").unwrap().unwrap().size_bytes, 2);
    charges_follow(ledger);
    // Of version 26; the earlier ones had none.
    let waiting = ledger.waiting_notices("", 10).unwrap();
    assert!(waiting.iter().all(|(notice, row)| notice.run_id() == Some(run_id) && row.tries == 1));
    // The first change of the new version.
    assert_eq!(ledger.newest_change().unwrap(), 0);
    ledger.change_run(run_id, |run| run.attempt_count = 3).unwrap();
    assert_eq!(ledger.newest_change().unwrap(), 1);
    let model = Subject::new(SubjectKind::Model, "income");
    assert!(ledger.events_of_subject(&model).unwrap().is_empty());
}

/// The charges that the migration wrote are those that sealing writes.
fn charges_follow(ledger: &Ledger) {
    for attempt in [TRAIN, PRICED] {
        let attempt_id = attempt.parse().unwrap();
        let row = ledger.attempt(attempt_id).unwrap().unwrap();
        let sealed_at = row.sealed_at.unwrap();
        let seal = ledger.seals_of(vec![row]).unwrap().remove(0);
        let mut expected = crate::receipts::charges::charges_of(&seal.attempt, &seal.costs, sealed_at, None);
        expected.sort_by(|one, other| one.item.cmp(&other.item));
        assert_eq!(ledger.charges_of_attempt(attempt_id).unwrap(), expected);
        assert!(!expected.is_empty());
    }
}
