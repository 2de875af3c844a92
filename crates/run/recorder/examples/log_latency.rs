//! Measures a call of `Recorder::log` with one metric and with ten against their floor: one bare `write(2)` of as many
//! bytes.
//!
//! `cargo run --release -p trackway-recorder --example log_latency`

#![allow(clippy::disallowed_methods, reason = "it deletes what it made")]

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use trackway_recorder::Recorder;

const CALLS: usize = 200_000;
const NAMES: [&str; 10] = [
    "loss", "lr", "grad_norm", "accuracy", "tokens", "throughput", "memory", "temperature", "weight_norm",
    "entropy",
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "target/log-latency".into()));
    std::fs::create_dir_all(&folder)?;
    // SAFETY: nothing else runs in this process yet.
    unsafe { std::env::set_var("TRACKWAY_RECORD", &folder) };
    let mut out = std::io::stdout().lock();
    for count in [1, NAMES.len()] {
        let (bytes, timings) = compare(&folder, &NAMES[..count])?;
        writeln!(out, "{CALLS} calls with {count} metrics, {bytes} bytes each")?;
        for (name, nanos) in timings {
            let at = |share: f64| nanos[((nanos.len() - 1) as f64 * share) as usize];
            let mean = nanos.iter().sum::<u64>() / nanos.len() as u64;
            writeln!(
                out,
                "{name:9} mean {mean:6} ns   p50 {:6} ns   p99 {:6} ns   p99.9 {:7} ns",
                at(0.5),
                at(0.99),
                at(0.999)
            )?;
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// What was measured, and the nanoseconds of each call, sorted.
type Timings = [(&'static str, Vec<u64>); 2];

/// Bytes of a call, and the nanoseconds of each call and of each bare write.
fn compare(folder: &Path, names: &[&str]) -> Result<(usize, Timings), Box<dyn Error>> {
    let run = Recorder::attach();
    let before = bytes_in(folder)?;
    let mut values: Vec<_> = names.iter().map(|name| (*name, 0.0)).collect();
    let log = measure(|call| {
        values.iter_mut().for_each(|(_, value)| *value = call as f64);
        run.log(call as u64, &values);
    });
    let frame_bytes = (bytes_in(folder)? - before) as usize / CALLS;
    run.finish();
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join("floor"))?;
    let bytes = vec![7; frame_bytes];
    let mut short_writes = 0;
    let floor =
        measure(|_| short_writes += usize::from(!file.write(&bytes).is_ok_and(|count| count == bytes.len())));
    if short_writes > 0 {
        return Err(format!("{short_writes} writes of the floor came back short").into());
    }
    Ok((frame_bytes, [("log", log), ("write(2)", floor)]))
}

/// Nanoseconds of each call, sorted.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]
fn measure(mut call: impl FnMut(usize)) -> Vec<u64> {
    let mut nanos = Vec::with_capacity(CALLS);
    for number in 0..CALLS {
        let started = std::time::Instant::now();
        call(number);
        nanos.push(started.elapsed().as_nanos() as u64);
    }
    nanos.sort_unstable();
    nanos
}

fn bytes_in(folder: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}
