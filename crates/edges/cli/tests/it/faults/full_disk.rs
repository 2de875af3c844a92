//! Homes on a disk of 8 MiB that a script fills. Each needs a mount namespace.

use std::process::Command;

use crate::harness::{Answer, BINARY, Home, answer};

/// Fills the disk to the end, prints two values, and fails.
const FILLS: &str = "cat /dev/zero > \"$TRACKWAY_HOME/filler\" 2> /dev/null; echo 'step 1 loss 0.5'; echo 'step 2 loss 0.25'; exit 3";

/// Runs a shell script with a home on a small disk, in which `$1` is the binary and `$2` a script that fills it; none where no disk may be
/// mounted.
fn on_small_disk(home: &Home, script: &str) -> Option<Answer> {
    std::fs::create_dir(home.state()).unwrap();
    let mount = "mount -t tmpfs -o size=8m,mode=700 none \"$TRACKWAY_HOME\" || exit 99\necho mounted\n\"$1\" run -- true 2> first || exit 1\n";
    let plain = home.command(&[]);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &format!("{mount}{script}"), "sh"]);
    command.args([BINARY, FILLS]).current_dir(home.path()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = command.output().ok().map(answer).filter(|answer| answer.stdout.contains("mounted"));
    if answer.is_none() {
        trackway_skip::skip!("this system allows no mount in a user namespace");
    }
    answer
}

/// Proves that printed values which a full disk did not keep are counted wherever their absence shows: at the end of the run, in `explain`,
/// its JSON, the events and the health; that a strict reading of the log fails; and that no one says that nothing was printed.
#[test]
fn what_a_full_disk_did_not_keep_is_said() {
    let home = Home::new();
    let script = "\"$1\" run -- sh -c \"sleep 1; $2\"; rm \"$TRACKWAY_HOME/filler\"\n\
         \"$1\" explain last > explained; \"$1\" explain last --json > explained.json\n\
         \"$1\" logs last --strict; echo \"strict $?\"";
    let Some(answered) = on_small_disk(&home, script) else { return };
    let lost = "2 values that were printed, or read from files, could not be kept";
    assert!(answered.stdout.contains("strict 3"), "{}{}", answered.stdout, answered.stderr);
    assert!(answered.stderr.contains(&format!("trackway: {lost}")), "{}", answered.stderr);
    assert!(!answered.stderr.contains("found no metrics"), "{}", answered.stderr);
    let explained = std::fs::read_to_string(home.path().join("explained")).unwrap();
    assert!(explained.contains(&format!("no loss and no accuracy is in the record: {lost}")), "{explained}");
    assert!(!explained.contains("recorded or printed"), "{explained}");
    let json = std::fs::read(home.path().join("explained.json")).unwrap();
    let page: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let kinds: Vec<_> = page["reading"].as_array().unwrap().iter().map(|note| &note["kind"]).collect();
    assert!(
        ["lost_values", "dropped_frames"].iter().all(|kind| kinds.iter().any(|it| *it == kind)),
        "{kinds:?}"
    );
}

/// Proves that what was launched on a disk with little room has its exit record in short, and that `trackway runs` writes down how it ended
/// once there is room again, as the error of its launch says.
#[test]
fn runs_seals_once_there_is_room() {
    let home = Home::new();
    // The launch may end before its script: the ledger has no room either.
    let script = "cat /dev/zero > \"$TRACKWAY_HOME/less\"; truncate -s -400K \"$TRACKWAY_HOME/less\"\n\
         \"$1\" run -- sh -c \"sleep 1; $2\"; for _ in $(seq 100); do sleep 0.1; find \"$TRACKWAY_HOME\" -name exit.json.reserved | grep -q . || break; done\n\
         rm \"$TRACKWAY_HOME/filler\" \"$TRACKWAY_HOME/less\"\n\
         \"$1\" runs; \"$1\" explain last";
    let Some(answered) = on_small_disk(&home, script) else { return };
    assert!(!answered.stdout.contains("not_recorded"), "{}{}", answered.stdout, answered.stderr);
    assert!(answered.stdout.contains("status      exit code 3"), "{}{}", answered.stdout, answered.stderr);
}
