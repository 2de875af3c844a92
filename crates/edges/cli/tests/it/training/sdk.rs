//! What a training script reports through the recorder, as it is in the receipt.

use serde_json::json;
use trackway_recorder::{Recorder, record_panics};

use crate::harness::Home;

const ROLE: &str = "SDK_TEST_ROLE";

/// Proves nothing by itself: it is the training script of the tests below, which launch this very binary.
#[test]
fn script() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let run = Recorder::attach();
    record_panics(&run);
    run.tag("team", "vision");
    run.tag("team", "search");
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("plot.svg");
    for step in 1..=3 {
        run.progressive(step, 1.0 / step as f64);
        std::fs::write(&plot, format!("plot {}", step.min(2))).unwrap();
        run.artifact("plot.svg", &plot, Some(step));
        std::fs::remove_file(&plot).unwrap();
    }
    match role.as_str() {
        "panics" => panic!("row {} has no label", 7),
        "killed" => {
            (4..=5_000).for_each(|step| run.log(step, &[("loss", step as f64)]));
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        _ => run.finish(),
    }
}

fn launch(home: &Home, role: &str) {
    let binary = home.program();
    let text = format!(
        "[run]\nname = \"{role}\"\ncommand = [\"{}\", \"training::sdk::script\", \"--exact\", \"--nocapture\"]\n\
         environment = {{ {ROLE} = \"{role}\" }}\n[retry]\nunknown = {{ attempts = 0 }}\n",
        binary.display()
    );
    home.write(&format!("{role}.toml"), &text);
    let answer = home.trackway(&["run", &format!("{role}.toml")]);
    assert!(answer.stderr.contains("attempt 1"), "{}", answer.stderr);
}

/// Proves that tags, artifacts and the progressive loss of a script are in its receipt, once for each content, with the
/// bytes where the receipt points; that `explain` shows them, `runs` finds them, and `gc` spares them.
#[test]
fn tags_and_artifacts_are_in_the_receipt() {
    let home = Home::new();
    launch(&home, "told");
    assert_eq!(home.sql("select name, value from tags"), [json!({"name": "team", "value": "search"})]);
    let kept = home.sql("select attempt_id, name, blake3, size_bytes, step from artifacts order by step");
    assert_eq!(kept.len(), 2, "{kept:?}");
    let found = home.json(&["runs", "--where", "tag.team = 'search'", "--columns", "tag.team"]);
    assert_eq!(found[0]["name"], "told", "{found}");
    let unknown = home.trackway(&["runs", "--where", "tag.teams = 'search'"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("did you mean `tag.team`?"), "{}", unknown.stderr);
    let losses = home.sql("select value from metrics where name = 'progressive_loss' order by step");
    assert_eq!(losses.len(), 3);
    let cleared = home.json(&["gc", "--older-than", "0s", "--yes"]);
    assert!(cleared["freed_bytes"].as_u64().unwrap() > 0, "{cleared}");
    for (row, step) in kept.iter().zip([1, 3]) {
        assert_eq!(
            (&row["name"], &row["size_bytes"], &row["step"]),
            (&json!("plot.svg"), &json!(6), &json!(step))
        );
        let place = format!(
            "attempts/{}/artifacts/{}",
            row["attempt_id"].as_str().unwrap(),
            row["blake3"].as_str().unwrap()
        );
        let expected = format!("plot {}", if step == 1 { 1 } else { 2 });
        assert_eq!(std::fs::read_to_string(home.state().join(place)).unwrap(), expected);
    }
    let page = home.trackway(&["explain", "told"]).stdout;
    assert!(page.contains("\nTags\n  team        search\n"), "{page}");
    assert!(page.contains("\nArtifacts\n  plot.svg · 6 B · "), "{page}");
    let document = home.json(&["explain", "told"]);
    assert_eq!(document["tags"], json!([{"name": "team", "value": "search"}]));
    assert_eq!(document["artifacts"][1]["step"], 3);
}

/// Proves that a panic is an event with message, place and digest, the same digest in another run of the same script.
#[test]
fn a_panic_is_an_event() {
    let home = Home::new();
    launch(&home, "panics");
    launch(&home, "panics");
    let exceptions = home.sql("select message, fields_json from events where kind = 'exception'");
    assert_eq!(exceptions.len(), 2, "{exceptions:?}");
    assert_eq!(exceptions[0]["message"], exceptions[1]["message"]);
    let message = exceptions[0]["message"].as_str().unwrap();
    assert!(message.starts_with("panic: row 7 has no label ["), "{message}");
    assert!(exceptions[0]["fields_json"].as_str().unwrap().contains("sdk.rs:"), "{exceptions:?}");
}

/// Proves that every point whose call returned is in the ledger although the script was killed right after the last.
#[test]
fn a_killed_script_loses_no_point() {
    let home = Home::new();
    launch(&home, "killed");
    let found = home.sql(
        "select count(*) as points, min(step) as first, max(step) as last from metrics where name = 'loss'",
    );
    assert_eq!(found, [json!({"points": 4997, "first": 4, "last": 5000})]);
}
