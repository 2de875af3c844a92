//! The reader against files of real writers and against TensorBoard's own reading of them, and against any bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

type Curves = BTreeMap<String, Vec<(u64, Option<f64>)>>;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/tensorboard")
}

/// The event files of a folder by name, which begins with the time of their making.
fn files_of(folder: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(vectors().join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn items(bytes: &[u8], piece: usize) -> Vec<EventItem> {
    let (mut reader, mut found) = (EventReader::default(), Vec::new());
    bytes.chunks(piece).for_each(|piece| reader.push(piece, |item| found.push(item)));
    assert!(!reader.is_damaged() && reader.incomplete_bytes() == 0);
    found
}

fn curves_of(folder: &str) -> Curves {
    let mut curves = Curves::new();
    for item in files_of(folder).iter().flat_map(|bytes| items(bytes, 7)) {
        match item {
            EventItem::Scalar(scalar) => {
                let value = Some(scalar.value).filter(|value| !value.is_nan());
                curves.entry(scalar.tag).or_default().push((scalar.step, value));
            }
            EventItem::Restart { step, .. } => {
                curves.values_mut().for_each(|points| points.retain(|(at, _)| *at < step));
            }
            EventItem::Parameter { .. } => {}
        }
    }
    curves
}

/// Proves that the curves are those that TensorBoard itself reads, of three writers, in both forms, restarts obeyed.
#[test]
fn curves_are_tensorboards() {
    let wanted = std::fs::read_to_string(vectors().join("scalars.json")).unwrap();
    let wanted: BTreeMap<String, Curves> = serde_json::from_str(&wanted).unwrap();
    assert_eq!(wanted.len(), 3);
    for (folder, expected) in wanted {
        assert_eq!(curves_of(&folder), expected, "{folder}");
    }
}

/// Proves that only Lightning's placeholder is left out: another value, step or tag is a metric.
#[test]
fn a_placeholder_is_no_metric() {
    use super::event::is_placeholder;
    assert!(is_placeholder("hp_metric", 0, -1.0));
    let others = [("hp_metric", 0, 0.5), ("hp_metric", 3, -1.0), ("loss", 0, -1.0)];
    assert!(others.iter().all(|(tag, step, value)| !is_placeholder(tag, *step, *value)));
}

/// Proves that hyperparameters come with their values as strings, and a restart with its step.
#[test]
fn parameters_and_restarts() {
    let mut parameters: Vec<(String, String)> = files_of("torch")
        .iter()
        .flat_map(|bytes| items(bytes, usize::MAX))
        .filter_map(|item| match item {
            EventItem::Parameter { name, value } => Some((name, value)),
            _ => None,
        })
        .collect();
    parameters.sort();
    let expected = [("batch", "32"), ("lr", "0.1"), ("nesterov", "1"), ("optimizer", "sgd")];
    assert_eq!(parameters, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let restarts =
        files_of("restarted").into_iter().flat_map(|bytes| items(&bytes, usize::MAX)).filter_map(|item| {
            match item {
                EventItem::Restart { step, wall_seconds } => Some((step, wall_seconds > 1.7e9)),
                _ => None,
            }
        });
    assert_eq!(restarts.collect::<Vec<_>>(), [(4, true)]);
}

/// Proves that a file that is cut off gives everything whole before the cut, and that a changed byte ends the reading.
#[test]
fn torn_and_damaged_files() {
    let bytes = files_of("tensorboardx").remove(0);
    let whole = items(&bytes, usize::MAX).len();
    let mut reader = EventReader::default();
    let mut found = 0;
    reader.push(&bytes[..bytes.len() - 1], |_| found += 1);
    assert_eq!((found, reader.is_damaged()), (whole - 1, false));
    reader.push(&bytes[bytes.len() - 1..], |_| found += 1);
    assert_eq!(found, whole);

    let mut bytes = bytes;
    let last = bytes.len() - 6;
    bytes[last] ^= 1;
    let (mut reader, mut found) = (EventReader::default(), 0);
    reader.push(&bytes, |_| found += 1);
    assert_eq!((found, reader.is_damaged()), (whole - 1, true));
}

/// Proves that a giant event is passed without being held, and that the next one counts.
#[test]
fn giant_events_are_not_held() {
    let framed = |payload: &[u8]| {
        let check = |bytes: &[u8]| {
            crc_fast::crc32_iscsi(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
        };
        let length = (payload.len() as u64).to_le_bytes();
        [&length[..], &check(&length), payload, &check(payload)].concat()
    };
    let mut bytes = framed(&vec![0; 3 << 20]);
    bytes.extend(files_of("tensorboardx").remove(0));
    let (mut reader, mut found, mut held) = (EventReader::default(), 0, 0);
    for piece in bytes.chunks(10_000) {
        reader.push(piece, |_| found += 1);
        held = held.max(reader.incomplete_bytes());
    }
    assert_eq!((found, reader.is_damaged()), (3, false));
    assert!(held <= HELD_BYTES_MAX, "{held}");
}

proptest! {
    /// Proves that no bytes make the reader panic, framed or not.
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2048), piece in 1usize..50) {
        let mut reader = EventReader::default();
        bytes.chunks(piece).for_each(|piece| reader.push(piece, |_| {}));
        super::event::read_event(&bytes, &mut |_| {});
    }

    /// Proves the same for real events with some bytes changed.
    #[test]
    fn changed_events_are_survived(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let bytes = files_of("torch").remove(0);
        let mut at = 0;
        while let Framed::Frame(payload, total) = frame(&bytes[at..]) {
            let mut payload = payload.to_vec();
            for (place, byte) in &changes {
                let place = place.index(payload.len());
                payload[place] = *byte;
            }
            super::event::read_event(&payload, &mut |_| {});
            at += total;
        }
    }
}
