//! Samples of the machine by the shim: in the record while the script runs, in the receipt afterwards, and never taken
//! for values of the script.

use crate::harness::{Answer, Home, answer, eventually};

/// Keeps 100 MB, works on one core and writes to the disk for `SECONDS`; reports one step and what it waited for.
const SCRIPT: &str = r#"
import json, os, time
kept = bytearray(os.urandom(100_000_000))
print(json.dumps({"step": 1, "loss": 0.5, "step_seconds": 2.0, "batch_wait_seconds": 0.5}), flush=True)
end = time.time() + float(os.environ["SECONDS"])
with open("written.bin", "wb") as file:
    while time.time() < end:
        sum(kept[:100_000])
        file.write(kept[:1_000_000])
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
"#;

fn run_file(home: &Home, seconds: f64, more: &str) -> String {
    home.write("work.py", SCRIPT);
    let text = format!(
        "[run]\nname = \"work\"\ncommand = [\"python3\", \"work.py\"]\nenvironment = {{ SECONDS = \"{seconds}\" }}\n{more}"
    );
    home.write("work.toml", &text).to_str().unwrap().to_owned()
}

/// Proves that the processes of an attempt and their machine are sampled, shown while it runs, in its receipt, and
/// separate from what the script measured.
#[test]
fn the_machine_is_sampled() {
    let home = Home::new();
    let file = run_file(&home, 3.6, "");
    let supervisor = home.spawn(&["run", "--json", "--skip-preflight", "--why", "a test", &file]);
    eventually("a sample in `watch`", || {
        let looked = home.trackway(&["watch", "last", "--once", "--json"]);
        let view: serde_json::Value = serde_json::from_str(&looked.stdout).ok()?;
        let bytes = view["machine"]["system/rss_bytes"].as_f64()?;
        (bytes > 100e6).then_some(())
    });
    let page = home.trackway(&["watch", "last", "--once"]).stdout;
    assert!(page.contains("\n  machine    ") && page.contains(" cores · "), "{page}");
    let done: Answer = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);

    let of = |name: &str| {
        let asked = format!(
            "select count(*) as n, max(value) as most, min(elapsed_seconds) as first, max(elapsed_seconds) as last \
             from telemetry where name = 'system/{name}'"
        );
        home.sql(&asked).remove(0)
    };
    let cores = of("cpu_cores");
    assert!(cores["n"].as_u64().unwrap() >= 2 && cores["most"].as_f64().unwrap() > 0.05, "{cores}");
    assert!(cores["first"].as_u64().unwrap() >= 1 && cores["last"].as_u64().unwrap() >= 2, "{cores}");
    assert!(of("rss_bytes")["most"].as_f64().unwrap() > 100e6);
    assert!(of("machine_cpu_share")["most"].as_f64().unwrap() <= 1.0);
    assert!(of("disk_free_bytes")["most"].as_f64().unwrap() > 0.0);
    for table in ["metrics", "effective_metrics"] {
        let sampled = home.sql(&format!("select distinct name from {table} order by name"));
        let names: Vec<&str> = sampled.iter().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(names, ["batch_wait_seconds", "loss", "step_seconds"], "{table}");
    }
    let attempt = home.sql("select first_step, last_step from training_attempts").remove(0);
    assert_eq!((&attempt["first_step"], &attempt["last_step"]), (&1.into(), &1.into()));

    let document = home.json(&["explain", "last"]);
    let machine = &document["machine"];
    assert!(machine["sample_count"].as_u64().unwrap() >= 2, "{machine}");
    assert_eq!(machine["work"]["work_fraction"], 0.75);
    assert_eq!(document["metrics"].as_array().unwrap().len(), 3, "{document}");
    let page = home.trackway(&["explain", "last"]).stdout;
    for expected in
        ["\nMachine\n  work        75 % of the loop's time was work", "\n  processor   ", "\n  memory      "]
    {
        assert!(page.contains(expected), "{page}");
    }
    let found = home.json(&["runs", "--where", "\"max.system/rss_bytes\" > 100000000"]);
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
}

/// Proves that samples of the machine are not a sign of life: a script that makes no progress is found hanging although
/// they continue.
#[test]
fn samples_are_no_sign_of_life() {
    let home = Home::new();
    let file = run_file(
        &home,
        60.0,
        "[supervise]\nhang_after = \"3s\"\nstart_within = \"60s\"\ngrace = \"1s\"\n[retry]\nhang = { attempts = 0 }\n",
    );
    let done = home.trackway(&["run", "--skip-preflight", "--why", "a test", &file]);
    assert_ne!(done.code, 0, "{}", done.stderr);
    let ended = home.sql("select termination_reason from training_attempts order by attempt_number");
    assert_eq!(ended[0]["termination_reason"], "hang", "{ended:?}");
}
