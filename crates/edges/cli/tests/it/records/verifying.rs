//! What `verify` proves, what `rebuild` and `reproduce` make of it, and output that cannot be written.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::evaluations::{GOOD, evaluate, trained};
use crate::harness::{Answer, Home, answer, files_below};
use crate::records::evidence::{drop_rules, ledger};

/// Changes the ledger as its owner may, past its rules.
fn change(home: &Home, table: &str, statements: &[&str]) {
    let database = ledger(home);
    drop_rules(&database, table);
    database.pragma_update(None, "foreign_keys", false).unwrap();
    for sql in statements {
        assert!(database.execute(sql, []).unwrap() > 0, "{sql}");
    }
}

fn verified(home: &Home) -> (i32, Value) {
    let answer = home.trackway(&["verify", "--all", "--json"]);
    let report = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.stderr));
    (answer.code, report)
}

fn differing(report: &Value) -> Vec<&str> {
    let mut kinds: Vec<&str> =
        report["differs"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    kinds
}

/// A home with a checkpoint, an evaluation and a version of a model.
fn whole() -> Home {
    let home = trained(GOOD, "");
    assert_eq!(evaluate(&home, &[]).0, 0);
    let registered = home.trackway(&["registry", "register", "m", "--run", "last"]);
    assert_eq!(registered.code, 0, "{}", registered.stderr);
    let (code, report) = verified(&home);
    assert_eq!((code, &report["holds"]), (0, &json!(true)), "{report}");
    home
}

/// The first file whose path contains this.
fn file_of(home: &Home, part: &str) -> PathBuf {
    let mut files = files_below(&home.state());
    files.sort();
    files.into_iter().find(|path| path.to_string_lossy().contains(part)).unwrap_or_else(|| panic!("{part}"))
}

/// Proves that each changed and each deleted file that has a hash is found and named, and that what is not covered is named.
#[test]
fn every_file_with_a_hash_is_looked_at() {
    let home = whole();
    let not_covered = verified(&home).1["not_covered"].to_string();
    for what in [
        "`subject_events`: events that",
        "`leases`: everything",
        "of which no copy is kept",
        "`data/manifest-cache.json`: a cache",
    ] {
        assert!(not_covered.contains(what), "{what}: {not_covered}");
    }
    let files = [
        ("weights.bin", "weights"),
        ("evaluations/outputs", "outputs"),
        ("sources/file-", "source"),
        ("exit.json", "files"),
        ("stdout.log", "files"),
        ("capture.json", "files"),
        (".twfr", "files"),
        (".parquet", "files"),
    ];
    for (part, kind) in files {
        let part = if part == ".parquet" { "home/records/att_" } else { part };
        let file = file_of(&home, part);
        let before = std::fs::read(&file).unwrap();
        std::fs::write(&file, [&before[..], b"x"].concat()).unwrap();
        let (code, report) = verified(&home);
        assert_eq!((code, differing(&report).contains(&kind)), (7, true), "{part}: {report}");
        std::fs::remove_file(&file).unwrap();
        let (code, report) = verified(&home);
        assert_eq!((code, differing(&report).contains(&kind)), (7, true), "{part}: {report}");
        std::fs::write(&file, before).unwrap();
    }
    let folded = home.trackway(&["verify", "--all"]);
    assert!(
        folded.stderr.contains("not covered, or not completely: ") && !folded.stdout.contains("not covered")
    );
    let shown = home.trackway(&["verify", "--all", "-v"]);
    assert_eq!(shown.code, 0, "{}{}", shown.stdout, shown.stderr);
    for words in ["verified in", "nothing of what was verified"] {
        assert!(shown.stderr.contains(words), "{words}: {}", shown.stderr);
    }
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = words(&shown.stdout);
    for what in verified(&home).1["not_covered"].as_array().unwrap() {
        let what = what.as_str().unwrap();
        let gap = what.strip_prefix("table `").and_then(|rest| rest.split_once("`: "));
        let (name, gap) = gap.unwrap_or(("", what));
        assert!(all.contains(name) && all.contains(&words(gap)), "{what}: {}", shown.stdout);
    }
    for line in shown.stdout.lines().chain(shown.stderr.lines()) {
        assert!(line.chars().count() <= 120, "{line}");
    }
    std::fs::rename(home.state().join("checkpoints"), home.path().join("away")).unwrap();
    let (code, report) = verified(&home);
    assert_eq!((code, differing(&report).contains(&"manifest")), (7, true), "{report}");
}

/// Proves that an entry of a log of checkpoints that is gone or damaged is found: readers see nothing after it.
#[test]
fn a_log_that_ends_too_early_is_found() {
    let home = trained(GOOD, "");
    for entry in ["log/00000001.json", "log/00000002.json"] {
        let file = file_of(&home, entry);
        let before = std::fs::read(&file).unwrap();
        let mut flipped = before.clone();
        flipped[before.len() / 2] ^= 1;
        std::fs::write(&file, flipped).unwrap();
        let (code, report) = verified(&home);
        assert!(code == 7 && report["differs"].to_string().contains("log entry"), "{entry}: {report}");
        std::fs::remove_file(&file).unwrap();
        let (code, report) = verified(&home);
        assert!(code == 7 && report["differs"].to_string().contains("is missing"), "{entry}: {report}");
        std::fs::write(&file, before).unwrap();
    }
    assert_eq!(verified(&home).0, 0);
}

/// Proves that what `trackway gc` deleted is not missing.
#[test]
fn what_was_deleted_on_purpose_is_not_missing() {
    let home = trained(GOOD, "");
    assert_eq!(evaluate(&home, &[]).0, 0);
    let deleted = home.trackway(&["gc", "--run", "last", "--checkpoints", "--yes"]);
    assert_eq!(deleted.code, 0, "{}{}", deleted.stdout, deleted.stderr);
    assert!(files_below(&home.state()).iter().all(|path| !path.ends_with("exit.json")));
    let (code, report) = verified(&home);
    assert_eq!((code, differing(&report)), (0, vec![]), "{report}");
}

/// Proves that changed and deleted rows of which the home keeps a copy are found, outside of digests too.
#[test]
fn every_kept_row_is_looked_at() {
    let home = whole();
    let database = home.state().join("ledger.db");
    ledger(&home).query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).unwrap();
    let pristine = std::fs::read(&database).unwrap();
    let changes: [(&str, &str, &str); 10] = [
        ("models", "update models set change_number = change_number + 1", "its newest change"),
        ("model_changes", "update model_changes set why = 'another reason'", "`why`"),
        ("models", "update models set created_at = 5", "`created_at`"),
        ("model_versions", "update model_versions set step = 1", "`step`"),
        ("training_attempts", "update training_attempts set sealed_at = sealed_at + 1", "`sealed_at`"),
        ("runs", "update runs set seed = 99", "`seed`"),
        ("subject_events", "delete from subject_events where attempt_id is not null", "is not in the ledger"),
        ("evaluations", "delete from evaluations", "is not in the ledger"),
        ("checkpoints", "delete from checkpoints", "the log of its root"),
        ("models", "delete from models", "is not in the ledger"),
    ];
    for (table, sql, why) in changes {
        change(&home, table, &[sql]);
        let (code, report) = verified(&home);
        assert!(code == 7 && report["differs"].to_string().contains(why), "{sql}: {report}");
        for part in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(home.state().join(format!("ledger.db{part}")));
        }
        std::fs::write(&database, &pristine).unwrap();
    }
    assert_eq!(verified(&home).0, 0);
}

/// Proves that a kept copy that is damaged or has other numbers is found, and one which is gone.
#[test]
fn kept_copies_are_looked_at() {
    let home = whole();
    for (part, from, to) in [
        ("ledger/receipt-", "\"last_value\":\"0.", "\"last_value\":\"7."),
        ("ledger/receipt-", "\"version\"", "version"),
        ("ledger/evaluation-", "\"rows_used\":4", "\"rows_used\":3"),
        ("registry/", "\"registered_by\":\"tester\"", "\"registered_by\":\"somebody\""),
    ] {
        let (file, before) = files_below(&home.state())
            .into_iter()
            .filter(|path| path.to_string_lossy().contains(part))
            .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
            .find(|(_, text)| text.contains(from))
            .unwrap_or_else(|| panic!("{part} with {from}"));
        std::fs::write(&file, before.replace(from, to)).unwrap();
        let (code, report) = verified(&home);
        assert_eq!((code, differing(&report)), (7, vec!["kept"]), "{part}: {report}");
        std::fs::write(&file, before).unwrap();
    }
    for part in ["ledger/receipt-", "ledger/evaluation-", "ledger/attempt-", "ledger/run.json"] {
        let file = file_of(&home, part);
        let before = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let (code, report) = verified(&home);
        assert_eq!((code, differing(&report)), (7, vec!["kept"]), "{part}: {report}");
        std::fs::write(&file, before).unwrap();
    }
    assert_eq!(verified(&home).0, 0);
}

/// Proves that a receipt which was deleted does not hide a log that was changed, also where the attempt's folder was
/// deleted with it, and that it is none where `trackway gc` deleted the files.
#[test]
fn a_deleted_receipt_hides_nothing() {
    let home = Home::new();
    home.run_script(&["--skip-preflight", "--why", "a test"], "echo 'step 1 loss 0.5'");
    std::fs::remove_file(file_of(&home, "ledger/receipt-")).unwrap();
    let log = file_of(&home, "stdout.log");
    std::fs::write(&log, "forged").unwrap();
    let (code, report) = verified(&home);
    assert_eq!((code, differing(&report)), (7, vec!["kept"]), "{report}");
    assert!(report["differs"][0]["why"].as_str().unwrap().contains("it is missing"), "{report}");
    let (folder, away) = (log.parent().unwrap(), home.path().join("away"));
    std::fs::rename(folder, &away).unwrap();
    assert_eq!(verified(&home).0, 7, "nothing shows that it was deleted on purpose");
    std::fs::rename(&away, folder).unwrap();
    let deleted = home.trackway(&["gc", "--run", "last", "--yes"]);
    assert_eq!(deleted.code, 0, "{}{}", deleted.stdout, deleted.stderr);
    let (code, report) = verified(&home);
    let kept = report["kinds"].as_array().unwrap().iter().find(|kind| kind["kind"] == "kept").unwrap();
    assert_eq!((code, &kept["unknown_count"]), (0, &json!(1)), "{report}");
}

/// Proves that a receipt which was not kept before a kill is a difference that names its repair, that the repair says
/// nothing of the files of the attempt, and that a ledger which is made from it has the digest that was sealed.
#[test]
fn a_receipt_that_was_not_kept_is_kept_by_the_repair() {
    let home = Home::new();
    home.run_script(&["--skip-preflight", "--why", "a test"], "echo 'step 1 loss 0.5'");
    let sealed = "select attempt_id, receipt_sha256, sealed_at, exit_code from training_attempts";
    let ends = "select run_id, state, attempt_count from runs";
    let before = (home.sql(sealed), home.sql(ends));
    // What a kill between the seal and the copy leaves.
    std::fs::remove_file(file_of(&home, "ledger/receipt-")).unwrap();
    let (code, report) = verified(&home);
    let why = report["differs"][0]["why"].as_str().unwrap();
    assert!(code == 7 && why.contains("`trackway doctor rebuild`"), "{report}");
    let rebuilt = home.json(&["doctor", "rebuild"]);
    assert!(rebuilt["missing"].to_string().contains("the hashes of its files at the seal"), "{rebuilt}");
    let (code, report) = verified(&home);
    let files = report["kinds"].as_array().unwrap().iter().find(|kind| kind["kind"] == "files").unwrap();
    assert_eq!((code, &files["hold_count"], &files["unknown_count"]), (0, &json!(0), &json!(1)), "{report}");
    for part in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(home.state().join(format!("ledger.db{part}")));
    }
    let rebuilt = home.json(&["doctor", "rebuild"]);
    assert_eq!((&rebuilt["receipt_count"], &rebuilt["failed"]), (&json!(1), &json!([])), "{rebuilt}");
    assert_eq!((home.sql(sealed), home.sql(ends)), before);
}

/// Proves that the rows which a failed evaluation left are looked at, although no receipt names them.
#[test]
fn outputs_of_a_failed_evaluation_are_looked_at() {
    let home = trained(GOOD, "");
    let (code, failed) = evaluate(&home, &["--set", "evaluate.slices.women=\"sexx = 'female'\""]);
    assert_eq!((code, &failed["state"]), (4, &json!("failed")), "{failed}");
    let (code, report) = verified(&home);
    assert_eq!((code, differing(&report)), (0, vec![]), "{report}");
    let file = file_of(&home, "evaluations/outputs");
    let before = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&before[..], b"x"].concat()).unwrap();
    let (code, report) = verified(&home);
    assert_eq!((code, differing(&report)), (7, vec!["outputs"]), "{report}");
}

/// Proves that a snapshot of data whose manifest was edited is found wherever it is verified, and is not restored.
#[test]
fn an_edited_snapshot_is_found() {
    let home = Home::new();
    home.run_script(&["--skip-preflight", "--why", "a test"], "true");
    home.write("data.csv", "x,y\n1,2\n3,4\n");
    home.json(&["data", "snapshot", "data.csv", "--name", "train", "--keep-bytes"]);
    let (code, report) = verified(&home);
    assert_eq!((code, differing(&report)), (0, vec![]), "{report}");
    let manifest = file_of(&home, "/manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"data.csv\"", "\"other.csv\"")).unwrap();
    let (code, report) = verified(&home);
    assert_eq!((code, differing(&report)), (7, vec!["snapshot"]), "{report}");
    for arguments in [&["verify", "train"][..], &["restore", "train", "--out", "out"]] {
        let refused = home.trackway(&[&["data", "snapshot"], arguments].concat());
        assert_eq!(refused.code, 7, "{arguments:?}: {}{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("do not hash to its id"), "{arguments:?}: {}", refused.stderr);
    }
    assert!(!home.path().join("out").exists());
}

/// Proves that a value which cannot be read is named and hides nothing else.
#[test]
fn an_unreadable_value_does_not_end_it() {
    let home = Home::new();
    for _ in 0..3 {
        home.run_script(&["--skip-preflight", "--why", "a test"], "true");
    }
    let attempts: Vec<String> = home
        .sql("select attempt_id from training_attempts order by attempt_id")
        .iter()
        .map(|row| row["attempt_id"].as_str().unwrap().to_owned())
        .collect();
    let unreadable =
        format!("update training_attempts set placement_json = '{{' where attempt_id = '{}'", attempts[0]);
    let changed = format!("update training_attempts set cost_usd = 9 where attempt_id = '{}'", attempts[1]);
    change(&home, "training_attempts", &[&unreadable, &changed]);
    let (code, report) = verified(&home);
    assert_eq!(code, 7, "{report}");
    let receipts: Vec<&Value> =
        report["differs"].as_array().unwrap().iter().filter(|one| one["kind"] == "receipt").collect();
    let ids: Vec<&str> = receipts.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, attempts[..2].iter().map(String::as_str).collect::<Vec<_>>(), "{report}");
    assert!(receipts[0]["why"].as_str().unwrap().contains("cannot be read"), "{report}");
    assert_eq!(report["kinds"][0]["hold_count"], 1, "{report}");
}

/// Proves the same of each column of a model and its changes that may be written so that it is not understood.
#[test]
fn an_unreadable_model_hides_nothing() {
    let home = whole();
    change(&home, "training_attempts", &["update training_attempts set cost_usd = 9"]);
    let database = ledger(&home);
    database.pragma_update(None, "ignore_check_constraints", true).unwrap();
    let set = |table: &str, sql: &str| {
        drop_rules(&database, table);
        database.execute(&format!("update {table} set {sql}"), []).unwrap();
    };
    let of_changes =
        ["kind", "stage", "approvals_json", "policy_json"].map(|column| ("model_changes", column));
    let of_models = ["policy_json", "stages_json", "aliases_json"].map(|column| ("models", column));
    for (table, column) in of_models.into_iter().chain(of_changes) {
        database.execute(&format!("create table kept as select * from {table}"), []).unwrap();
        set(table, &format!("{column} = '{{'"));
        let (code, report) = verified(&home);
        set(table, &format!("{column} = (select {column} from kept)"));
        database.execute("drop table kept", []).unwrap();
        let differs = report["differs"].as_array().unwrap();
        assert_eq!(code, 7, "{column}: {report}");
        assert!(
            differs.iter().any(|one| one["why"].as_str().unwrap().contains(column)),
            "{column}: {report}"
        );
        assert!(differing(&report).contains(&"receipt"), "{column}: {report}");
    }
}

/// Proves that a ledger made again from the files of a home verifies, and that one which lacks nothing is left as it is.
#[test]
fn a_rebuilt_home_verifies() {
    let home = whole();
    let rebuilt = home.trackway(&["doctor", "rebuild"]);
    assert_eq!(rebuilt.code, 0, "{}{}", rebuilt.stdout, rebuilt.stderr);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::rename(
            home.state().join(format!("ledger.db{suffix}")),
            home.path().join(format!("old{suffix}")),
        );
    }
    let rebuilt = home.trackway(&["doctor", "rebuild"]);
    assert_eq!(rebuilt.code, 0, "{}{}", rebuilt.stdout, rebuilt.stderr);
    let (code, report) = verified(&home);
    assert_eq!((code, differing(&report)), (0, vec![]), "{report}");
}

/// Proves that nothing is rebuilt from sources that are not what was kept.
#[test]
fn changed_sources_are_not_reproduced() {
    let home = Home::new();
    home.write(".gitignore", "/home\n/settings\n/out*\n");
    home.write("t.sh", "true\n");
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=Ana", "-c", "user.email=ana@example.org"];
        let done =
            Command::new("git").args(identity).args(arguments).current_dir(home.path()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "x"]);
    home.write("t.sh", "true # changed\n");
    home.write("new.txt", "untracked\n");
    let ran = home.trackway(&["run", "--skip-preflight", "--why", "a test", "--", "sh", "t.sh"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let reproduced = |out: &str| home.trackway(&["reproduce", "last", "--out", out]);
    let first = reproduced("out1");
    assert_eq!(first.code, 0, "{}", first.stderr);
    for (place, part) in ["changes.patch", "untracked/new.txt", "sources/file-"].iter().enumerate() {
        let file = files_below(&home.state())
            .into_iter()
            .find(|path| path.to_string_lossy().contains(part))
            .unwrap();
        let before = std::fs::read(&file).unwrap();
        std::fs::write(&file, [&before[..], b"x"].concat()).unwrap();
        let refused = reproduced(&format!("out-{place}"));
        assert_eq!(refused.code, 7, "{part}: {}", refused.stderr);
        assert!(refused.stderr.contains("is not what was kept"), "{}", refused.stderr);
        std::fs::write(&file, before).unwrap();
    }
    assert_eq!(reproduced("out2").code, 0);
}

/// Proves that an answer which cannot be written is an error of every command, and that a closed pipe is none.
#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let home = Home::new();
    home.run_script(&["--skip-preflight", "--why", "a test"], "echo line");
    let commands: [&[&str]; 10] = [
        &["sql", "select * from runs"],
        &["runs"],
        &["logs", "last"],
        &["explain", "last"],
        &["--json", "explain", "last"],
        &["schema"],
        &["postmortem", "last"],
        &["attempts"],
        &["config"],
        &["--help"],
    ];
    for arguments in commands {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let unwritten: Answer = answer(home.command(arguments).stdout(Stdio::from(full)).output().unwrap());
        assert_eq!(unwritten.code, 1, "{arguments:?}: {}", unwritten.stderr);
        assert!(unwritten.stderr.contains("the output is not whole"), "{arguments:?}: {}", unwritten.stderr);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed: Answer = answer(home.command(arguments).stdout(Stdio::from(writer)).output().unwrap());
        assert_eq!(
            (closed.code, closed.stderr.contains("error")),
            (0, false),
            "{arguments:?}: {}",
            closed.stderr
        );
    }
}
