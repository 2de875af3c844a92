//! The flight record of a rehearsal, read from its files. Nothing of it is redacted here, so nothing of it may be
//! stored or shown before it was evaluated.

use std::path::Path;

use trackway_formats::record::{Frame, Origin, SEGMENT_EXTENSION, Segment, read_segment};
use trackway_formats::rehearsal::loss_rank;
use trackway_rules::preflight::rehearsal::LaunchEvidence;

/// Segments read at most: a rehearsal has one for each process.
const SEGMENTS_MAX: usize = 256;
/// Bytes of one segment read at most.
const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// Values kept of one metric at most.
const VALUES_MAX: usize = 100_000;
/// Beginnings of the names of metrics of held-out data.
const HELD_OUT: [&str; 4] = ["val", "eval", "test", "dev"];

/// The contents of the segments below `folder`. What cannot be read is skipped: the evaluation then misses it.
pub fn read(folder: &Path) -> LaunchEvidence {
    let mut evidence = LaunchEvidence::default();
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == SEGMENT_EXTENSION))
        .take(SEGMENTS_MAX)
        .collect();
    paths.sort();
    for path in paths {
        let small = std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= SEGMENT_BYTES_MAX);
        let bytes = if small { std::fs::read(&path).unwrap_or_default() } else { Vec::new() };
        if let Ok(segment) = read_segment(&bytes) {
            take(&mut evidence, &segment);
        }
    }
    evidence
}

fn take(evidence: &mut LaunchEvidence, segment: &Segment) {
    let by_sdk = segment.header.as_ref().is_some_and(|header| header.origin == Origin::Sdk);
    for located in segment.frames.iter().filter(|_| by_sdk) {
        if let Frame::Event(event) = &located.frame {
            evidence.facts.take_event(&event.kind, &event.fields);
        }
    }
    for point in segment.metric_points() {
        evidence.validated |= HELD_OUT.iter().any(|word| point.name.starts_with(word));
        if loss_rank(&point.name) == 0 {
            continue;
        }
        let values = evidence.losses.entry(point.name.into_owned()).or_default();
        if values.len() < VALUES_MAX {
            values.push((point.step, point.value));
        }
    }
}
