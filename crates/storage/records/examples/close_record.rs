//! Writes the record of an attempt with so many values and closes it: `close_record FOLDER POINTS`. Shows how long it
//! took and the most memory that the process had; more than 300 MiB is a failure.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measuring program: it needs the clock and a place to print"
)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use trackway_core::name::{Name, NameKind};
use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds, Timestamp};
use trackway_formats::layout::HomeLayout;
use trackway_formats::record::{Encoder, Origin, SEGMENT_EXTENSION, SegmentHeader};
use trackway_formats::runfile::RunSection;
use trackway_ledger::{AttemptRow, RunRow};
use trackway_records::{LiveRecords, close_records};

/// Values of a step.
const NAMES: [&str; 10] =
    ["loss", "val_loss", "lr", "accuracy", "grad_norm", "tokens", "speed", "recall", "precision", "f1"];
/// A segment is ended at this size, as the recorder ends its own.
const SEGMENT_BYTES: usize = 64 << 20;
/// What the process may have in memory at most.
const PEAK_MIB_MAX: u64 = 300;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (home, points) = (Path::new(&arguments[0]), arguments[1].parse::<u64>().unwrap());
    let (ids, at) = (SequentialIds::default(), Timestamp::from_micros(1));
    let run = RunRow::planned(RunId::new(&ids), &Name::renamed(NameKind::Run, "many"), "c", json!({}), at);
    let attempt = AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run);
    let segment_bytes = write_segments(home, &attempt, points / NAMES.len() as u64);
    let before_mib = peak_mib();

    let began = Instant::now();
    let live = LiveRecords::of(home).summaries(std::slice::from_ref(&attempt)).unwrap();
    let live_seconds = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let closed = close_records(home, &attempt, &RunSection::default(), &BTreeSet::new()).unwrap();
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!((closed.point_count, live.len()), (points, closed.summaries.len()));
    let (parquet, peak_mib) = (fs::metadata(closed.parquet_path.unwrap()).unwrap().len(), peak_mib());
    println!(
        "{points} points: {} MiB of segments, {} MiB of Parquet; live {live_seconds:.1} s, closed {seconds:.1} s; peak {peak_mib} MiB (before: {before_mib} MiB)",
        segment_bytes >> 20,
        parquet >> 20
    );
    assert!(peak_mib < PEAK_MIB_MAX, "more than {PEAK_MIB_MAX} MiB");
}

/// Writes `steps` steps, and returns how many bytes that were.
fn write_segments(home: &Path, attempt: &AttemptRow, steps: u64) -> u64 {
    let folder = HomeLayout::new(home).attempt(attempt.attempt_id).records();
    fs::create_dir_all(&folder).unwrap();
    let (mut step, mut written) = (0, 0);
    for number in 0.. {
        if step == steps {
            break;
        }
        let mut file = File::create(folder.join(format!("{number:06}.{SEGMENT_EXTENSION}"))).unwrap();
        let (mut encoder, mut bytes, mut size) = (Encoder::new(), Vec::new(), 0);
        encoder.begin(&mut bytes, &header(attempt, number));
        while step < steps && size < SEGMENT_BYTES {
            let values: [(&str, f64); NAMES.len()] =
                std::array::from_fn(|place| (NAMES[place], (step as f64 + place as f64).sin()));
            encoder.metrics(&mut bytes, Timestamp::from_micros(step as i64 * 1000), step, &values);
            step += 1;
            if bytes.len() > 1 << 20 {
                file.write_all(&bytes).unwrap();
                size += bytes.len();
                bytes.clear();
            }
        }
        file.write_all(&bytes).unwrap();
        written += (size + bytes.len()) as u64;
    }
    written
}

fn header(attempt: &AttemptRow, number: u32) -> SegmentHeader {
    SegmentHeader {
        at: Timestamp::from_micros(1),
        origin: Origin::Sdk,
        pid: 1,
        segment_sequence: number,
        boot_id: String::new(),
        run_id: attempt.run_id.to_string(),
        attempt_id: attempt.attempt_id.to_string(),
        writer: "close_record".into(),
    }
}

/// The most memory that this process had so far, in MiB.
fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}
