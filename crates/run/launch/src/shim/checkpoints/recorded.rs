//! The steps that the script records with Trackway's package: what its processes append to their segments is read while they run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use trackway_core::{Step, Timestamp};
use trackway_formats::record::{Frame, Item, NameId, SEGMENT_EXTENSION, SegmentReader, is_internal_metric};
use trackway_recorder::Origin;

/// At most so many segments are followed.
const SEGMENTS_MAX: usize = 1024;
/// One read takes at most this much.
const READ_BYTES: u64 = 1 << 20;

/// Follows the segments that the recorder writes in the processes of the script.
pub(super) struct RecordedSteps {
    folder: PathBuf,
    /// A part of the names of those segments.
    of_script: String,
    segments: BTreeMap<PathBuf, Followed>,
}

#[derive(Default)]
struct Followed {
    reader: SegmentReader,
    read_bytes: u64,
    /// Names of what the recorder measures by itself, at times that are not those of the steps.
    internal: BTreeSet<NameId>,
}

impl RecordedSteps {
    /// Nothing is read yet.
    pub fn new(folder: PathBuf) -> Self {
        let of_script = format!("-{}-", Origin::Sdk.as_str());
        Self { folder, of_script, segments: BTreeMap::new() }
    }

    /// Gives the steps at which metrics were recorded since the last call, in the order of their times.
    pub fn read(&mut self, mut reached: impl FnMut(Timestamp, Step)) {
        self.find();
        let mut found = Vec::new();
        for (path, followed) in &mut self.segments {
            // What cannot be read now is tried again at the next call.
            followed.read(path, &mut found).ok();
        }
        found.sort_unstable();
        found.into_iter().for_each(|(at, step)| reached(at, step));
    }

    fn find(&mut self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_segment = path.extension().is_some_and(|extension| extension == SEGMENT_EXTENSION);
            if is_segment
                && self.segments.len() < SEGMENTS_MAX
                && entry.file_name().to_string_lossy().contains(&self.of_script)
            {
                self.segments.entry(path).or_default();
            }
        }
    }
}

impl Followed {
    fn read(&mut self, path: &Path, found: &mut Vec<(Timestamp, Step)>) -> io::Result<()> {
        if fs::metadata(path)?.len() <= self.read_bytes {
            return Ok(());
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.read_bytes))?;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let count = file.by_ref().take(READ_BYTES).read_to_end(&mut bytes)?;
            if count == 0 {
                return Ok(());
            }
            self.read_bytes += count as u64;
            self.reader.push(&bytes);
            self.take(found);
        }
    }

    fn take(&mut self, found: &mut Vec<(Timestamp, Step)>) {
        while let Ok(Some(item)) = self.reader.next_item() {
            let Item::Frame(located) = item else { continue };
            match located.frame {
                Frame::NameDefinition(name) if is_internal_metric(&name.name) => {
                    self.internal.insert(name.id);
                }
                Frame::Metrics(metrics)
                    if metrics.values.iter().any(|(id, _)| !self.internal.contains(id)) =>
                {
                    found.push((metrics.at, metrics.step));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trackway_core::{Clock as _, ManualClock};
    use trackway_recorder::{SegmentInfo, SegmentWriter};

    use super::*;

    /// Proves that each step which the script recorded is found once, with its time, while its processes still write; that those of several
    /// processes are in the order of their times; and that what the recorder or the shim measures is none.
    #[test]
    fn steps_are_read_while_they_are_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000)));
        let writer = |origin| {
            let info = SegmentInfo { run_id: "run".to_owned(), attempt_id: "attempt".to_owned(), origin };
            SegmentWriter::create(folder.path(), info, Arc::<ManualClock>::clone(&clock))
        };
        let mut recorded = RecordedSteps::new(folder.path().to_owned());
        let mut steps = || {
            let mut steps = Vec::new();
            recorded.read(|at, step| steps.push((at.as_micros(), step)));
            steps
        };
        assert_eq!(steps(), []);
        let [mut one, mut other] = [writer(Origin::Sdk), writer(Origin::Sdk)];
        let mut of_shim = writer(Origin::Telemetry);
        for step in 1..=3 {
            clock.advance_micros(10);
            of_shim.metrics(7, &[("loss", 1.0)]);
            if step == 2 { &mut other } else { &mut one }.metrics(step, &[("loss", 1.0)]);
        }
        one.metrics(9, &[("trackway/checkpoint_bytes", 1.0)]);
        let began = clock.now().as_micros() - 30;
        assert_eq!(steps(), [(began + 10, 1), (began + 20, 2), (began + 30, 3)]);
        assert_eq!(steps(), []);
        one.metrics(4, &[("loss", 1.0), ("trackway/checkpoint_bytes", 1.0)]);
        assert_eq!(steps(), [(began + 30, 4)]);
    }
}
