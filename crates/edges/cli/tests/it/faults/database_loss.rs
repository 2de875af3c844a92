//! The ledger or its server goes away: nothing is lost, no retry is spent, and other runs are not disturbed.

mod every_write;
mod proxy;

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::harness::{Home, UNTIL_GO, answer, eventually, files_below, signal};
use crate::postgres_cluster::PostgresCluster;
use proxy::{ConnectionCut, CutPoint, Proxy};

/// A run whose supervisor is killed and whose script ends well, with a metric to close.
fn lost_run(home: &Home, name: &str) {
    let script = format!("echo $$ > pid; {UNTIL_GO}; echo '{{\"step\": 1, \"loss\": 2}}'");
    for file in ["go", "pid"] {
        let _ = std::fs::remove_file(home.path().join(file));
    }
    let ended = |home: &Home| {
        files_below(&home.state().join("attempts")).iter().filter(|path| path.ends_with("exit.json")).count()
    };
    let ended_before = ended(home);
    let mut supervisor = home.spawn(&["run", "--name", name, "--", "sh", "-c", &script]);
    eventually("the script", || home.path().join("pid").exists().then_some(()));
    signal(&supervisor, Signal::SIGKILL);
    supervisor.wait().unwrap();
    home.go();
    eventually("its end", || (ended(home) > ended_before).then_some(()));
}

/// Proves that an attempt that cannot be sealed is set aside: other commands print nothing about it, `doctor` names it
/// with the reason, tries are counted and spaced, and once the cause is gone it is sealed.
#[test]
fn what_cannot_be_sealed_disturbs_no_command() {
    let home = Home::new();
    assert_eq!(home.trackway(&["run", "--name", "first", "--", "true"]).code, 0);
    lost_run(&home, "lost");
    // Its metrics cannot be closed into their file.
    let mut attempts: Vec<String> = std::fs::read_dir(home.state().join("attempts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    attempts.sort();
    let in_the_way = home.state().join("records").join(format!("{}.parquet", attempts[1]));
    std::fs::create_dir_all(in_the_way.join("folder")).unwrap();
    for arguments in [&["runs"][..], &["explain", "first"], &["run", "--", "true"], &["runs"]] {
        let answer = home.trackway(arguments);
        assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.stderr);
        for word in ["sealed", "could not", "parquet"] {
            assert!(!answer.stderr.contains(word), "{arguments:?}: {}", answer.stderr);
        }
    }
    let diagnosis = home.json(&["doctor"]);
    let found = diagnosis["findings"].as_array().unwrap();
    assert_eq!((found.len(), found[0]["kind"].as_str()), (1, Some("set_aside")), "{diagnosis}");
    assert!(found[0]["why"].as_str().unwrap().contains("tried 1 times"), "{diagnosis}");
    assert_eq!((home.trackway(&["doctor"]).code, diagnosis["healthy"].as_bool()), (7, Some(false)));
    std::fs::remove_dir_all(&in_the_way).unwrap();
    let resumed = home.trackway(&["resume", "lost"]);
    assert!(resumed.stderr.contains("completed"), "{}", resumed.stderr);
    assert_eq!(home.trackway(&["runs"]).code, 0);
    assert_eq!(home.json(&["doctor"])["healthy"], true);
    assert_eq!(home.sql("select * from training_attempts where sealed_at is null").len(), 0);
}

/// Proves that a ledger that is missing, of no bytes, or without a run beside attempts is an error that names the way
/// out, and never an empty answer.
#[test]
fn a_ledger_that_vanished_is_an_error() {
    let home = Home::new();
    assert_eq!(home.trackway(&["run", "--", "true"]).code, 0);
    let ledger = home.state().join("ledger.db");
    let lose =
        || ["", "-wal", "-shm"].map(|part| std::fs::remove_file(format!("{}{part}", ledger.display())));
    let schema_only = Home::new();
    assert_eq!(schema_only.trackway(&["run", "--", "no-such-program-here"]).code, 2);
    for (state, case) in [("missing", 0), ("missing", 1), ("empty", 2)] {
        let _ = lose();
        match case {
            0 => {}
            1 => std::fs::write(&ledger, "").unwrap(),
            _ => drop(std::fs::copy(schema_only.state().join("ledger.db"), &ledger).unwrap()),
        }
        for arguments in [&["runs"][..], &["explain", "last"], &["run", "--", "true"], &["sql", "select 1"]] {
            let answer = home.trackway(arguments);
            assert_eq!(answer.code, 7, "{state} {arguments:?}: {} {}", answer.stdout, answer.stderr);
            assert!(answer.stderr.contains("trackway doctor rebuild"), "{}", answer.stderr);
        }
        let diagnosis = home.json(&["doctor"]);
        assert_eq!(diagnosis["ledger_state"], state, "{diagnosis}");
        assert_eq!(diagnosis["attempt_folder_count"], 1);
        assert_eq!(case == 0, !ledger.exists(), "a ledger was made by looking");
    }
    assert_eq!(home.trackway(&["--ledger", "other.db", "runs"]).code, 0, "a second ledger may be new");
}

/// Proves that a connection that is cut before or after the server has done what it was sent, in the middle of each
/// kind of write of a run, loses nothing, doubles nothing and costs no retry.
#[test]
fn postgres_connections_that_are_cut_cost_nothing() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    let proxy = Proxy::start(cluster.port());
    let home = Home::new();
    home.write("job.sh", "echo '{\"step\": 1, \"loss\": 1}'; [ -z \"$LONG\" ] || sleep 2.5\n");
    let file = home.write("r.toml", "[run]\nname = \"r\"\ncommand = [\"sh\", \"job.sh\"]\n");
    let writes = [
        "INSERT INTO runs",
        "INSERT INTO training_attempts",
        "UPDATE runs",
        "INSERT INTO metric_summaries",
        "INSERT INTO retries",
        "COMMIT",
    ];
    let mut cut_count = 0;
    for text in writes {
        for cut in [ConnectionCut::before(CutPoint::Text(text)), ConnectionCut::after(CutPoint::Text(text))] {
            proxy.cut_next(cut);
            let answer = home.trackway(&["--ledger", &proxy.url(), "run", "--json", file.to_str().unwrap()]);
            assert_eq!(answer.code, 0, "{text}: {}", answer.stderr);
            let run: Value = serde_json::from_str(&answer.stdout).unwrap();
            assert_eq!(run["attempts"].as_array().map(Vec::len), Some(1), "{text}: {run}");
            cut_count += 1;
        }
    }
    assert_eq!(proxy.cut_count(), cut_count, "the connection was not cut");
    let sealed =
        cluster.psql("select count(*), count(sealed_at), count(distinct run_id) from training_attempts");
    assert_eq!(sealed, [format!("{cut_count}|{cut_count}|{cut_count}")]);
    assert_eq!(cluster.psql("select distinct state from runs"), ["completed"]);
    assert_eq!(cluster.psql("select count(*) from metric_summaries"), [cut_count.to_string()]);
}

/// Whatever a kill is taken for, it is tried again at once.
const RETRIES: &str = "infrastructure = { attempts = 100, backoff = \"0s\" }\nunknown = { attempts = 100, backoff = \"0s\" }\npreempted = { attempts = 100, backoff = \"0s\" }\nnode_failure = { attempts = 100, backoff = \"0s\" }\n";

/// Proves that a server that restarts, and one that is away while an attempt ends, cost no retry: the script continues,
/// detectors included, and the supervisor seals and retries when the server is back. `TRACKWAY_TEST_OUTAGE_SECONDS`
/// sets how long.
#[test]
fn postgres_restarts_cost_no_retry() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    let url = cluster.url();
    let home = Home::new();
    let script = format!(
        "echo $$ > pid; {UNTIL_GO}; if [ -e again ]; then sleep 1; exit 0; fi; touch again; kill -9 $$"
    );
    let text = format!("[run]\nname = \"r\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[retry]\n{RETRIES}");
    let file = home.write("r.toml", &text);
    let supervisor = home.spawn(&["--ledger", &url, "run", "--json", file.to_str().unwrap()]);
    eventually("the script", || home.path().join("pid").exists().then_some(()));
    cluster
        .psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'trackway'");
    cluster.stop();
    // The attempt ends meanwhile.
    home.go();
    std::thread::sleep(Duration::from_secs(number("TRACKWAY_TEST_OUTAGE_SECONDS", 3)));
    cluster.start();
    let answer = answer(supervisor.wait_with_output().unwrap());
    assert!(answer.stderr.contains("available again"), "{}", answer.stderr);
    let attempts = cluster.psql("select count(*), count(sealed_at) from training_attempts");
    let run: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((answer.code, run["state"].as_str()), (0, Some("completed")), "{run} {}", answer.stderr);
    assert_eq!(attempts, ["2|2"], "{}", answer.stderr);
}

/// Proves that Ctrl-C during an outage stops the script at once and that the next command seals what is left.
#[test]
fn postgres_away_ctrl_c_still_works() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    let url = cluster.url();
    let home = Home::new();
    let script = "trap 'touch stopped; exit 0' INT; echo $$ > pid; while :; do sleep 0.05; done";
    let supervisor = home.spawn(&["--ledger", &url, "run", "--", "sh", "-c", script]);
    eventually("the script", || home.path().join("pid").exists().then_some(()));
    eventually("the attempt in the ledger", || {
        let running = cluster.psql("select count(*) from training_attempts where state = 'running'");
        (running == ["1"] && home.path().join("pid").exists()).then_some(())
    });
    cluster.stop();
    std::thread::sleep(Duration::from_millis(2500));
    signal(&supervisor, Signal::SIGINT);
    let answer = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    eventually("the script's end", || home.path().join("stopped").exists().then_some(()));
    assert!(answer.stderr.contains("nothing is lost"), "{}", answer.stderr);
    cluster.start();
    assert_eq!(home.trackway(&["--ledger", &url, "runs"]).code, 0);
    assert_eq!(cluster.psql("select termination_reason, state from training_attempts"), ["cancelled|sealed"]);
}

/// Longest a job of the chaos takes to end once nothing disturbs it any more.
const JOB_PATIENCE: Duration = Duration::from_secs(120);

/// A number of the environment.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A number that a seed gives, for the chaos.
fn drawn(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

/// Proves that jobs whose supervisor, shim, script and database are killed in random order end with one sealed receipt
/// for each attempt and in the exact final state. `TRACKWAY_CHAOS_JOBS` sets how many jobs, `TRACKWAY_CHAOS_SEED` where
/// they begin.
#[test]
fn postgres_chaos_ends_with_one_receipt_per_attempt() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    let (jobs, mut seed) = (number("TRACKWAY_CHAOS_JOBS", 6), number("TRACKWAY_CHAOS_SEED", 14));
    println!("chaos: {jobs} jobs, seed {seed}");
    let url = cluster.url();
    let (mut kills, mut outages) = (0, 0);
    assert_eq!(Home::new().trackway(&["--ledger", &url, "runs"]).code, 0, "the ledger is made");
    for job in 0..jobs {
        let home = Home::new();
        // It counts to 30 over all its attempts, and prints its position before it continues.
        let script = "n=$(cat count 2>/dev/null || echo 0); echo $$ > pid; while [ $n -lt 30 ]; do n=$((n+1)); echo $n > part; mv part count; sleep 0.1; done";
        let text = format!(
            "[run]\nname = \"job-{job}\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[retry]\n{RETRIES}"
        );
        let file = home.write("r.toml", &text);
        let run = format!("job-{job}");
        let state_of = || cluster.psql(&format!("select state from runs where name = '{run}'"));
        // A command that was killed before its run was in the ledger is repeated, as a user would.
        let supervise = || match state_of().is_empty() {
            true => home.spawn(&["--ledger", &url, "run", file.to_str().unwrap()]),
            false => home.spawn(&["--ledger", &url, "resume", &run]),
        };
        let mut supervisor = supervise();
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(200 + drawn(&mut seed, 400)));
            match drawn(&mut seed, 4) {
                0 => {
                    let _ = supervisor.kill();
                    kills += 1;
                }
                1 => kills += kill_named(&home, "__shim"),
                2 => kills += kill_script(&home),
                _ => {
                    cluster.stop();
                    std::thread::sleep(Duration::from_millis(drawn(&mut seed, 1200)));
                    cluster.start();
                    outages += 1;
                }
            }
            if supervisor.try_wait().unwrap().is_some() {
                supervisor = supervise();
            }
        }
        // A launch that a kill cut short may still start for half a minute: until then it is not declared dead.
        let began = std::time::Instant::now();
        while state_of() != ["completed"] {
            if began.elapsed() > JOB_PATIENCE {
                let _ = supervisor.kill();
                let said = answer(supervisor.wait_with_output().unwrap());
                let doctor = home.trackway(&["--ledger", &url, "doctor"]).stdout;
                let attempts = cluster.psql(&format!(
                    "select a.* from training_attempts a join runs r using (run_id) where r.name = '{run}'"
                ));
                panic!("{run} did not end: {} {doctor} {attempts:#?}", said.stderr);
            }
            if supervisor.try_wait().unwrap().is_some() {
                supervisor = supervise();
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        let _ = supervisor.wait();
        assert_eq!(std::fs::read_to_string(home.path().join("count")).unwrap().trim(), "30");
        assert_eq!(home.trackway(&["--ledger", &url, "doctor"]).code, 0);
    }
    let attempts = cluster.psql("select count(*) from training_attempts");
    println!("chaos: {kills} kills, {outages} outages, {} attempts", attempts[0]);
    assert_eq!(cluster.psql("select count(*) from training_attempts where sealed_at is null"), ["0"]);
    assert_eq!(cluster.psql("select count(distinct attempt_id) from training_attempts"), attempts);
    assert_eq!(cluster.psql("select count(*) from runs where state = 'completed'"), [jobs.to_string()]);
    let gaps = "select run_id from training_attempts group by run_id having max(attempt_number) <> count(*)";
    assert!(cluster.psql(gaps).is_empty());
}

/// Kills the processes of a home whose command line contains a string.
fn kill_named(home: &Home, word: &str) -> u32 {
    let state = home.state().to_string_lossy().into_owned();
    let mut count = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        if line.contains(word) && line.contains(&state) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL);
            count += 1;
        }
    }
    count
}

fn kill_script(home: &Home) -> u32 {
    let pid = std::fs::read_to_string(home.path().join("pid")).ok().and_then(|text| text.trim().parse().ok());
    let Some(pid) = pid else { return 0 };
    // The number may be another process's by now; it must be a child of this home's shim.
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    if !String::from_utf8_lossy(&environment).contains(&*home.state().to_string_lossy()) {
        return 0;
    }
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL);
    1
}
