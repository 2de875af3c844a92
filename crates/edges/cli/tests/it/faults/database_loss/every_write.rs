//! A server that goes away in the middle of each write of the whole path: from the launch to a roll back in the
//! registry.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::RETRIES;
use super::proxy::{ConnectionCut, CutPoint, Proxy};
use crate::evaluations::{GOOD, write_job};
use crate::harness::Home;
use crate::models::registry::EASY;
use crate::postgres_cluster::PostgresCluster;

/// How many writes are cut, spread over all of them; a large number: every one.
const PLACES: &str = "TRACKWAY_TEST_WRITE_CUTS";
const PLACES_DEFAULT: usize = 4;

/// Rows by table.
type Rows = BTreeMap<String, i64>;

/// A first attempt dies, the second commits three checkpoints, a detector notes a NaN, an evaluation is made; then two
/// versions reach production, and the first comes back.
fn whole_path(url: &str, number: usize) {
    let home = Home::new();
    write_job(
        &home,
        GOOD,
        &format!("[data.train]\npath = \"train.csv\"\n[retry]\n{RETRIES}"),
        "after = true\ntask_set = \"tasks-v3.jsonl\"\ngates = [\"grade >= 0.3\"]\n[detect]\nnon_finite = \"note\"\n",
    );
    let name = format!("job-{number}");
    let job = std::fs::read_to_string(home.path().join("job.toml")).unwrap();
    let job = job
        .replace("\"judged\"", &format!("\"{name}\""))
        .replace("command = [\"/", "command = [\"sh\", \"job.sh\", \"/");
    home.write("job.toml", &job);
    home.write("train.csv", &format!("a,b\n1,2\n3,{number}\n"));
    home.write(
        "job.sh",
        "if [ ! -e again ]; then touch again; kill -9 $$; fi\necho '{\"step\": 1, \"loss\": NaN}'\nsleep 1\necho '{\"step\": 2, \"loss\": 0.5}'\n\"$@\"\n",
    );
    let model = format!("model-{number}");
    home.write("policy.toml", &format!("{EASY}baseline = \"optional\"\n"));
    let commands: [&[&str]; 10] = [
        &["run", "job.toml"],
        &["eval", "run", "job.toml", "--checkpoint", "2"],
        &["gates", "fixture", "last", "--set", "grade=-0.9", "--name", "bad", "--out", "bad.json"],
        &["gates", "test", "job.toml", "--bad", "bad.json"],
        &["registry", "register", &model, "--run", &name],
        &["registry", "register", &model, "--run", &name, "--step", "2"],
        &["registry", "policy", &model, "--file", "policy.toml"],
        &["registry", "promote", &model, "1", "--to", "production", "--why", "first"],
        &["registry", "promote", &model, "2", "--to", "production", "--why", "better"],
        &["registry", "rollback", &model, "--why", "worse"],
    ];
    for command in commands {
        let answer = home.trackway(&[&["--ledger", url], command].concat());
        assert_eq!(answer.code, 0, "job {number}, {command:?}: {} {}", answer.stdout, answer.stderr);
    }
}

fn rows(cluster: &PostgresCluster) -> Rows {
    let tables = cluster.psql("select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'");
    // How often the machine was sampled is a matter of seconds, and so is which states of an attempt and which checkpoints were seen
    // one by one.
    let counted = |table: &str| match table {
        "metric_summaries" => " where name not like 'system/%'",
        "record_segments" => " where origin is distinct from 'telemetry'",
        "changes" => " where kind not in ('training_attempts', 'launches', 'checkpoints')",
        _ => "",
    };
    let counts =
        tables.iter().map(|table| format!("select '{table}', count(*) from {table}{}", counted(table)));
    let counts = cluster.psql(&counts.collect::<Vec<_>>().join(" union all "));
    let split = |line: &String| {
        let (table, count) = line.split_once('|').unwrap();
        (table.to_owned(), count.parse().unwrap())
    };
    counts.iter().map(split).collect()
}

/// What a job left: rows that it added to each table, and its states.
fn left(cluster: &PostgresCluster, before: &Rows, number: usize) -> (Rows, Vec<String>) {
    let mut added = rows(cluster);
    for (table, count) in &mut added {
        *count -= before.get(table).copied().unwrap_or(0);
    }
    let states = [
        format!("select state from runs where name = 'job-{number}'"),
        format!(
            "select a.state, a.termination_reason, a.attempt_number, a.last_step from training_attempts a join runs using (run_id) where name = 'job-{number}' order by attempt_number"
        ),
        format!(
            "select e.state from evaluations e join runs using (run_id) where name = 'job-{number}' order by 1"
        ),
        format!("select production_version from models where model = 'model-{number}'"),
    ];
    (added, states.iter().flat_map(|query| cluster.psql(query)).collect())
}

/// The numbers of the writes that are cut, of so many.
fn places(count: usize) -> Vec<usize> {
    let wanted = std::env::var(PLACES).ok().and_then(|text| text.parse().ok()).unwrap_or(PLACES_DEFAULT);
    let wanted = wanted.clamp(1, count);
    (0..wanted).map(|place| place * count / wanted).collect()
}

/// Proves that a connection that is cut before or after the server has done what it was sent leaves the same rows and
/// states as an undisturbed one, wherever in the whole path that is.
#[test]
fn postgres_is_cut_in_the_middle_of_every_write() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    let proxy = Proxy::start(cluster.port());
    // What is made once, like the ledger itself, is made by the first.
    whole_path(&proxy.url(), 0);
    let before = rows(&cluster);
    proxy.cut_next(ConnectionCut::before(CutPoint::Write(usize::MAX)));
    whole_path(&proxy.url(), 1);
    let write_count = proxy.write_count();
    let undisturbed = left(&cluster, &before, 1);
    let mut number = 1;
    for place in places(write_count) {
        for cut in
            [ConnectionCut::before(CutPoint::Write(place)), ConnectionCut::after(CutPoint::Write(place))]
        {
            number += 1;
            let before = rows(&cluster);
            proxy.cut_next(cut);
            whole_path(&proxy.url(), number);
            assert_eq!(left(&cluster, &before, number), undisturbed, "cut at write {place} of {write_count}");
        }
    }
    println!("{} cuts over {write_count} writes", proxy.cut_count());
    assert!(proxy.cut_count() + 4 >= number - 1, "{} cuts for {} jobs", proxy.cut_count(), number - 1);
}

/// Proves that a standby that takes over in the middle of a write is used from then on: the same rows and states as
/// without.
#[test]
fn postgres_fails_over_in_the_middle_of_a_write() {
    let Some(primary) = PostgresCluster::start_if_asked_for() else { return };
    let proxy = Proxy::start(primary.port());
    whole_path(&proxy.url(), 0);
    let before = rows(&primary);
    proxy.cut_next(ConnectionCut::before(CutPoint::Write(usize::MAX)));
    whole_path(&proxy.url(), 1);
    let write_count = proxy.write_count();
    let undisturbed = left(&primary, &before, 1);
    let primary = Arc::new(Mutex::new(primary));
    let mut number = 1;
    for place in places(write_count).into_iter().skip(1).step_by(2) {
        number += 1;
        let before = rows(&primary.lock().unwrap());
        let shared = primary.clone();
        let standby = shared.lock().unwrap().standby();
        let take_over = move || {
            let mut primary = shared.lock().unwrap();
            primary.stop();
            standby.promote();
            *primary = standby;
            primary.port()
        };
        let at = CutPoint::Write(place);
        proxy.cut_next(
            if number % 2 == 0 { ConnectionCut::after(at) } else { ConnectionCut::before(at) }
                .meanwhile(take_over),
        );
        whole_path(&proxy.url(), number);
        let primary = primary.lock().unwrap();
        assert_eq!(
            left(&primary, &before, number),
            undisturbed,
            "failed over at write {place} of {write_count}"
        );
    }
    println!("{} failovers over {write_count} writes", proxy.cut_count());
}
