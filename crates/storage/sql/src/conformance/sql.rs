//! Questions in SQL: the answers do not depend on what a backend filters by itself.

use std::path::Path;

use serde_json::{Value as Json, json};
use trackway_core::{LaunchKind, TerminationReason, Timestamp};
use trackway_ledger::conformance::rows::{ended, new_attempt, stored_run};
use trackway_ledger::{ErrorKind, Ledger};

use crate::sql;

/// GPU hours of a week by reason: runs here and in `psql`, letter for letter.
pub const WEEKLY_REASONS: &str = "select termination_reason, count(*) as attempts, sum(gpu_seconds) / 3600 as gpu_hours from training_attempts where model_family = 'reasoning' and started_at >= now() - interval '7 days' group by termination_reason order by gpu_hours desc;";

fn rows(ledger: &Ledger, home: &Path, question: &str) -> Vec<Json> {
    let answer = sql(ledger, home, question).unwrap_or_else(|error| panic!("{question}: {error}"));
    answer.json_rows().unwrap().into_iter().map(Json::Object).collect()
}

/// Five attempts of a run named `sql`, ten seconds apart, the last one without a start.
fn store_attempts(ledger: &Ledger, now: Timestamp) {
    let run = stored_run(ledger, "sql");
    let reasons = [TerminationReason::Preempted, TerminationReason::HostOom, TerminationReason::Preempted];
    for number in 1..=5 {
        let mut attempt = ended(new_attempt(&run, number, LaunchKind::Train));
        attempt.model_family = Some("sql".into());
        attempt.termination_reason = reasons.get(number as usize - 1).copied();
        attempt.started_at = (number < 5).then(|| now.plus_seconds(f64::from(number) * 10.0));
        attempt.gpu_seconds = Some(f64::from(number) * 3600.0);
        attempt.git_dirty = Some(number % 2 == 0);
        attempt.exit_code = Some(i32::try_from(number).unwrap() - 3);
        ledger.insert_attempt(&attempt).unwrap();
    }
}

pub(super) fn questions_are_answered(ledger: &Ledger, home: &Path) {
    let start = Timestamp::from_micros(1_700_000_000_000_000);
    store_attempts(ledger, start);
    let count = |filter: &str| {
        let question =
            format!("select count(*) as n from training_attempts where model_family = 'sql' and {filter}");
        rows(ledger, home, &question)[0]["n"].as_i64().unwrap()
    };
    for (filter, expected) in [
        ("started_at > timestamp '2023-11-14T22:13:40Z'", 2),
        ("started_at >= '2023-11-14T22:13:40Z'", 3),
        ("started_at < '2023-11-14T22:13:40.000001Z'", 2),
        ("'2023-11-14T22:13:40Z' >= started_at", 2),
        ("started_at = '2023-11-14T22:13:40Z'", 1),
        ("started_at is null", 1),
        ("started_at is not null and exit_code < 0", 2),
        ("termination_reason in ('preempted', 'hang')", 2),
        ("termination_reason not in ('preempted')", 1),
        ("termination_reason is null", 2),
        ("git_dirty", 2),
        ("not git_dirty", 3),
        ("gpu_seconds >= 7200.0 and gpu_seconds < 14400", 2),
        ("exit_code = 0 or exit_code = 1", 2),
        ("lower(termination_reason) like 'host%'", 1),
        ("attempt_number between 2 and 4", 3),
        ("rung > '1'", 5),
        ("owner = 'nemo'", 0),
    ] {
        assert_eq!(count(filter), expected, "{filter}");
    }
    let reasons = "with a as (select * from training_attempts where model_family = 'sql') select termination_reason, sum(gpu_seconds) / 3600 as hours, max(started_at) as last from a group by 1 order by hours desc limit 2";
    let expected = json!([
        { "termination_reason": null, "hours": 9.0, "last": "2023-11-14T22:14:00.000Z" },
        { "termination_reason": "preempted", "hours": 4.0, "last": "2023-11-14T22:13:50.000Z" }
    ]);
    assert_eq!(Json::Array(rows(ledger, home, reasons)), expected);
    let joined = "select r.name, count(*) as n from runs r join training_attempts a on a.run_id = r.run_id where a.model_family = 'sql' group by 1";
    assert_eq!(rows(ledger, home, joined), [json!({ "name": "sql", "n": 5 })]);
    for table in trackway_ledger::TABLES {
        rows(ledger, home, &format!("select * from {} limit 3", table.name));
    }
    assert!(rows(ledger, home, "show tables").len() > trackway_ledger::TABLES.len());
    assert_eq!(rows(ledger, home, "select 1 + 1 as two"), [json!({ "two": 2 })]);
    rows(ledger, home, WEEKLY_REASONS);
}

/// What is wrong with a question, and that nothing writes.
pub(super) fn mistakes_are_reported(ledger: &Ledger, home: &Path) {
    for (question, expected) in [
        (
            "select terminaton_reason from training_attempts",
            "no column `terminaton_reason`: did you mean `termination_reason`?",
        ),
        ("select * from training_attempt", "no table `training_attempt`: did you mean `training_attempts`?"),
        (
            "select * from attempts",
            "no table `attempts`: did you mean `training_attempts` or `amended_attempts`? (`show tables` lists all)",
        ),
        ("select * from event", "no table `event`: did you mean `events` or `subject_events`?"),
        ("select reason from training_attempts", "no column `reason`: did you mean `termination_reason`?"),
        ("select * from qqq", "no table `qqq`: there are runs,"),
        ("delete from events", "`DELETE` is refused"),
        ("insert into events select * from events", "`INSERT` is refused"),
        ("create table t as select 1", "`CREATE` is refused"),
        ("copy events to 'x.csv'", "`COPY` is refused"),
        ("drop table events", "`DROP` is refused"),
        ("explain analyze delete from events", "`DELETE` is refused"),
        ("create external table t stored as csv location '/etc/passwd'", "is refused"),
        ("select * into t from events", "is refused"),
        ("set datafusion.execution.batch_size = 1", "`SET` is refused"),
        (
            "selec 1",
            "the query failed: expected an SQL statement, found `selec`, at line 1, column 1\n  selec 1\n  ^",
        ),
        ("select 1; select 2", "the query failed"),
        ("", "the query failed"),
    ] {
        let error = sql(ledger, home, question).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{question}");
        assert!(error.to_string().contains(expected), "{question}: {error}");
    }
}

/// What the suite of the ledger stored of evaluations: a view that counts, and empty columns.
pub(super) fn evaluations_are_tables(ledger: &Ledger, home: &Path) {
    let question = "select use_count, task_set_version from test_sets where task_set_sha256 = 'content'";
    assert_eq!(rows(ledger, home, question), [json!({ "use_count": 2, "task_set_version": "v3" })]);
    let question = "select slice, rows_used, rows_expected from evaluation_metrics where evaluation_id = 'evl_covered' order by slice";
    let whole = json!({ "slice": "", "rows_used": 20, "rows_expected": 30 });
    let unknown = json!({ "slice": "women", "rows_used": null, "rows_expected": null });
    assert_eq!(rows(ledger, home, question), [whole, unknown]);
}
