//! Text of scripts: whatever a script prints, its receipt is sealed, the same on both kinds of ledger.

use serde_json::json;
use trackway_recorder::{Recorder, record_panics};

use crate::harness::Home;
use crate::postgres_cluster::PostgresCluster;

const ROLE: &str = "TEXT_TEST_ROLE";

/// Proves nothing by itself: it is the training script of the tests below, which launch this very binary.
#[test]
fn script() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let run = Recorder::attach();
    record_panics(&run);
    run.param("p\0", "\0");
    run.param("long", &"é".repeat(2 << 20));
    run.tag("t\0", "a\0b");
    run.tag(&"n".repeat(4_000), &"noise ".repeat(1_000));
    run.event("e\0", Some(1), &[("f\0", "g\0")]);
    run.log(1, &[("m\0", 1.0), ("loss", 0.5)]);
    panic!("row \0 of {}", "x".repeat(100_000));
}

/// Proves that NUL, bytes that are not UTF-8, and strings that no index takes are sealed and shown, and that the next
/// command does not report them.
#[test]
fn hostile_text_is_sealed_in_sqlite() {
    hostile_text_is_sealed(&[]);
}

/// Proves the same of a ledger in PostgreSQL, which cannot hold NUL.
#[test]
fn hostile_text_is_sealed_in_postgresql() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    hostile_text_is_sealed(&["--ledger", &cluster.url()]);
}

fn hostile_text_is_sealed(ledger: &[&str]) {
    let home = Home::new();
    let binary = home.program();
    let shell =
        r#"printf '{"step": 1, "loss\\u0000": 2}\nRuntimeError: CUDA out of memory \0 \377\n' >&2; exit 1"#;
    for (name, command, environment) in [
        (
            "sdk",
            json!([binary, "training::text::script", "--exact", "--nocapture"]),
            format!("environment = {{ {ROLE} = \"1\" }}"),
        ),
        ("shell", json!(["sh", "-c", shell]), String::new()),
    ] {
        let file = format!(
            "[run]\nname = \"{name}\"\ncommand = {command}\n{environment}\n[retry]\nunknown = {{ attempts = 0 }}\n\
             code_error = {{ attempts = 0 }}\n"
        );
        home.write("r.toml", &file);
        let answer = home.trackway(&[ledger, &["run", "r.toml"]].concat());
        assert_eq!(answer.code, 4, "{name}: {}", answer.stderr);
        let next = home.trackway(&[ledger, &["explain", name]].concat());
        assert!(next.code == 0 && !next.stderr.contains("not sealed"), "{name}: {}", next.stderr);
    }
    let count = |query: &str| home.json(&[ledger, &["sql", query]].concat())[0]["n"].clone();
    assert_eq!(count("select count(*) as n from training_attempts where sealed_at is not null"), 2);
    assert_eq!(
        count("select count(*) as n from parameters where name = 'p\u{2400}' and value = '\u{2400}'"),
        1
    );
    assert_eq!(count("select count(*) as n from tags where name = 't\u{2400}' and value = 'a\u{2400}b'"), 1);
    assert_eq!(count("select count(*) as n from tags where name like 'nnn%[cut: %'"), 1);
    assert_eq!(count("select count(*) as n from events where kind = 'e\u{2400}'"), 1);
}
