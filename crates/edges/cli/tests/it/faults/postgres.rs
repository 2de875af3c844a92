//! The same home with its ledger in PostgreSQL, by URL.

use serde_json::Value;

use crate::harness::Home;
use crate::postgres_cluster::PostgresCluster;
use crate::records::receipts::WEEKLY_REASONS;

/// Proves that a run leaves the same receipt in PostgreSQL, that the query of a week's reasons gives exactly the same result through
/// `trackway sql` and in psql, and that the sealed receipt holds there as well.
#[test]
fn a_run_leaves_its_receipt_in_postgresql() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    let home = Home::new();
    home.has_gpus(1);
    let url = cluster.url();
    home.write(
        "r.toml",
        "[run]\nname = \"r\"\nmodel_family = \"reasoning\"\ncommand = [\"sh\", \"-c\", \"echo '{\\\"step\\\": 1, \\\"loss\\\": 2}'\"]\n[resources]\ngpus = 1\n",
    );
    let answer = home.trackway(&["--ledger", &url, "run", "r.toml"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let rows = home.json(&["--ledger", &url, "sql", WEEKLY_REASONS]);
    let row: &Value = &rows[0];
    let there = cluster.psql(WEEKLY_REASONS);
    let cells: Vec<&str> = there[0].split('|').collect();
    assert_eq!(
        (row["termination_reason"].as_str(), row["attempts"].as_u64()),
        (Some(cells[0]), cells[1].parse().ok())
    );
    assert!((row["gpu_hours"].as_f64().unwrap() - cells[2].parse::<f64>().unwrap()).abs() < 1e-9);
    let metrics = home.json(&["--ledger", &url, "sql", "select value from metrics"]);
    assert_eq!(metrics[0]["value"], 2.0);
    assert_eq!(home.trackway(&["--ledger", &url, "explain", "last"]).code, 0);
    let change = "do $$ begin update training_attempts set exit_code = 9; raise exception 'allowed'; \
        exception when others then if sqlerrm = 'allowed' then raise; end if; end $$";
    cluster.psql(change);
    assert_eq!(cluster.psql("select exit_code from training_attempts"), ["0"]);
    assert!(!home.state().join("ledger.db").exists(), "a SQLite ledger was made beside it");
}
