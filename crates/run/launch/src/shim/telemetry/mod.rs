//! What the attempt and its machine do, once a second: a flight record of origin `telemetry`, on the clock of the
//! script's own record. The step of a sample is the whole seconds since the attempt began.
//!
//! A separate thread takes the samples, so that a driver or a `/proc` that hangs stops nothing else. It runs in the
//! shim, because samples must continue without a supervisor and be taken where the script is.

mod gpus;
mod procfs;
mod reading;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use trackway_recorder::{Origin, SegmentWriter};

use super::side::{Records, SideThread};
use gpus::Gpus;
use reading::{MachineSample, values};

/// How often a sample is taken. The first one is only the base of the second's rates.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// A sample that takes long is followed by a wait this many times as long, so that sampling takes 2 % of a core at
/// most.
const REST_PER_SAMPLE: u32 = 50;
/// The longest the end of the attempt waits for the sample that is being taken.
const LAST_SAMPLE: Duration = Duration::from_secs(2);

/// Begins to take samples of one attempt.
pub(super) fn begin(directory: PathBuf, devices: Vec<String>, records: Records) -> Option<SideThread> {
    let sampler = Sampler { directory, devices, records };
    SideThread::begin("telemetry", LAST_SAMPLE, move |stopped| sampler.run(stopped))
}

struct Sampler {
    directory: PathBuf,
    devices: Vec<String>,
    records: Records,
}

impl Sampler {
    fn run(&self, stopped: &Receiver<()>) {
        let began_micros = self.records.clock.monotonic_micros();
        let mut before = self.read();
        let mut writer: Option<SegmentWriter> = None;
        let mut gpus: Option<Gpus> = None;
        let mut rest = SAMPLE_EVERY;
        while stopped.recv_timeout(rest) == Err(RecvTimeoutError::Timeout) {
            // An attempt that ends within a second does not pay for the driver's session.
            let gpus = gpus.get_or_insert_with(|| Gpus::of(&self.devices));
            let asked_micros = self.records.clock.monotonic_micros();
            let now = self.read();
            let mut sampled = values(&before, &now);
            sampled.extend(gpus.values(&now.pids()));
            let named: Vec<(&str, f64)> =
                sampled.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            let writer = writer.get_or_insert_with(|| self.records.writer(Origin::Telemetry));
            let elapsed_micros = (now.at_micros - began_micros).max(0);
            writer.metrics(u64::try_from(elapsed_micros / 1_000_000).unwrap_or(0), &named);
            before = now;
            let took = u64::try_from(self.records.clock.monotonic_micros() - asked_micros).unwrap_or(0);
            rest = SAMPLE_EVERY.max(Duration::from_micros(took) * REST_PER_SAMPLE);
        }
        if let Some(writer) = &mut writer {
            writer.finish();
        }
    }

    fn read(&self) -> MachineSample {
        procfs::read(&self.directory, self.records.clock.monotonic_micros())
    }
}
