//! What a person sees of checks before a run: pre-flight, rehearsals and proofs of resume.

use super::{assert_screens, home, screen, shown};
use crate::checks::{preflight, prove, rehearsals};
use crate::harness::{Answer, Home};

/// Steps of a pre-flight end in any order: the lines of stderr are sorted.
fn sorted(home: &Home, arguments: &[&str]) -> String {
    let answer = home.trackway(arguments);
    let mut lines: Vec<&str> = answer.stderr.lines().collect();
    lines.sort_unstable();
    let stderr = lines.iter().map(|line| format!("{line}\n")).collect();
    shown(home, &Answer { stderr, ..answer })
}

/// Proves what `preflight` shows of a run that may start, of one with warnings, of one that may not, and that checks that did not
/// apply are listed only with `--all`.
#[test]
fn preflights_are_shown() {
    let home = home();
    preflight::run_file(&home, "");
    insta::assert_snapshot!("preflight_pass", sorted(&home, &["preflight", "run.toml"]));
    insta::assert_snapshot!("preflight_pass_all", sorted(&home, &["preflight", "run.toml", "--all"]));
    let skip = ["preflight", "run.toml", "--skip", "data.drift", "--why", "the split is by time"];
    insta::assert_snapshot!("preflight_skip", sorted(&home, &skip));
    insta::assert_snapshot!("preflight_only", sorted(&home, &["preflight", "run.toml", "--only", "leakage"]));
    let train = std::fs::read_to_string(home.path().join("train.csv")).unwrap();
    let some: String = train.lines().skip(1).take(10).map(|line| format!("{line}\n")).collect();
    let test = std::fs::read_to_string(home.path().join("test.csv")).unwrap();
    home.write("test.csv", &format!("{test}{some}"));
    insta::assert_snapshot!("preflight_warn", sorted(&home, &["preflight", "run.toml"]));
    insta::assert_snapshot!("run_with_warnings", sorted(&home, &["run", "run.toml"]));
    home.write("test.csv", &test.replace(",yes\n", ",yes.\n").replace(",no\n", ",no.\n"));
    insta::assert_snapshot!("preflight_block", sorted(&home, &["preflight", "run.toml"]));
    insta::assert_snapshot!("run_blocked", sorted(&home, &["run", "run.toml"]));
    insta::assert_snapshot!("explain_blocked", screen(&home, &["explain", "last"]));
}

/// Proves what `rehearse` shows of a script that learns its first batch, of ones that do not, and of one that cannot be rehearsed.
#[test]
fn rehearsals_are_shown() {
    let home = home();
    for flaw in ["none", "labels_off_by_one", "never_updates", "crashes"] {
        let file = rehearsals::toy_run_file(&home, flaw);
        insta::assert_snapshot!(format!("rehearse_{flaw}"), screen(&home, &["rehearse", &file]));
    }
    home.write("mute.toml", "[run]\nname = \"mute\"\ncommand = [\"true\"]\n");
    insta::assert_snapshot!("rehearse_mute", screen(&home, &["rehearse", "mute.toml"]));
}

/// Proves what `prove` shows of a resume that is exact, of one that forgets its optimizer, and where nothing was proved.
#[test]
fn proofs_are_shown() {
    let home = home();
    for flaw in ["none", "forgets_optimizer", "never_resumes"] {
        let file = prove::toy_run_file(&home, flaw);
        insta::assert_snapshot!(format!("prove_{flaw}"), screen(&home, &["prove", &file, "--steps", "24"]));
    }
    assert_screens(&home, &[("prove_no_file", &["prove", "none.toml", "--steps", "24"])]);
}
