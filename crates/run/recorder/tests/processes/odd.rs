//! Values, names, steps and folders that are invalid, and that users will give.

use std::process::Command;

use trackway_recorder::Recorder;

use crate::{Attempt, ROLE_ARGUMENTS, segments_in};

pub fn read_only() {
    let run = Recorder::attach();
    for step in 1..=10_000 {
        run.log(step, &[("loss", 1.0)]);
    }
    run.event("epoch_finished", None, &[]);
    run.tag("team", "search");
    run.artifact("program", &std::env::current_exe().unwrap(), None);
    assert!(!run.should_stop());
    run.finish();
}

/// Proves that a record folder that cannot be written to, or that is not a folder, costs the record and nothing else. A
/// read-only mount is skipped with a printed line where mount namespaces are not allowed.
#[test]
fn a_folder_that_cannot_be_written_to_stops_nothing() {
    let attempt = Attempt::new();
    let program = std::env::current_exe().unwrap();
    let no_folder = attempt.records().join("file");
    std::fs::write(&no_folder, "not a folder").unwrap();
    let mut command = attempt.command(&program, "read_only");
    let output = command.args(ROLE_ARGUMENTS).env("TRACKWAY_RECORD", &no_folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mount = "mount -t tmpfs -o ro none \"$TRACKWAY_RECORD\"";
    let records = attempt.records();
    let may =
        Command::new("unshare").args(["-rm", "sh", "-c", mount]).env("TRACKWAY_RECORD", &records).output();
    if !may.is_ok_and(|output| output.status.success()) {
        trackway_skip::skip!("no mount namespace for a test of a read-only folder");
        return;
    }
    let output = attempt
        .command(std::path::Path::new("unshare"), "read_only")
        .args(["-rm", "sh", "-c", &format!("{mount} && exec \"$@\""), "sh"])
        .arg(program)
        .args(ROLE_ARGUMENTS)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read(&no_folder).unwrap(), b"not a folder");
}

/// Proves that every bit of a value, every step in the order it came and every name of UTF-8 is kept, names cut at 256
/// bytes.
#[test]
fn odd_values_names_and_steps_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let values = [
        f64::NAN,
        f64::from_bits(0xfff8_dead_beef_0001),
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
    ];
    let steps = [5, u64::MAX, 0, 5, 4, 3, 1 << 63, 2];
    let long = "ü".repeat(200);
    let names = ["", "a\0b", "line\nend", "\u{202e}right", "😀/loss", "' or 1=1 --", " ", long.as_str()];
    let info = trackway_recorder::SegmentInfo {
        run_id: String::new(),
        attempt_id: String::new(),
        origin: trackway_recorder::Origin::Sdk,
    };
    let clock = std::sync::Arc::new(trackway_system::SystemClock);
    let mut writer = trackway_recorder::SegmentWriter::create(folder.path(), info, clock);
    for ((value, step), name) in values.iter().zip(steps).zip(names) {
        writer.metrics(step, &[(name, *value)]);
    }
    writer.finish();
    let [segment] = <[_; 1]>::try_from(segments_in(folder.path())).unwrap();
    let found: Vec<_> = segment
        .metric_points()
        .map(|point| (point.name.into_owned(), point.step, point.value.to_bits()))
        .collect();
    let cut = "ü".repeat(128);
    let expected: Vec<_> = (0..values.len())
        .map(|at| {
            let name = if names[at] == long { cut.clone() } else { names[at].to_owned() };
            (name, steps[at], values[at].to_bits())
        })
        .collect();
    assert_eq!(found, expected);
    assert!(segment.damage.is_empty());
}
