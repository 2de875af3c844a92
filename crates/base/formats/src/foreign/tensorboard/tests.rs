//! The reader against files of real writers and against TensorBoard's own reading of them, and against any bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use trackway_core::{Rng as _, SplitMix64};

use super::*;

type Curves = BTreeMap<String, Vec<(i64, Option<f64>)>>;

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
    reader.finish(|item| found.push(item));
    found
}

/// The items that are not damage, and the damage.
fn apart(items: Vec<EventItem>) -> (Vec<EventItem>, Vec<Damage>) {
    let (mut whole, mut damage) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            EventItem::Damage(found) => damage.push(found),
            item => whole.push(item),
        }
    }
    (whole, damage)
}

fn check(bytes: &[u8]) -> [u8; 4] {
    crc_fast::crc32_iscsi(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn framed(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    [&length[..], &check(&length), payload, &check(payload)].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A field of bytes.
fn field(number: u64, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// The payload of an event with one value.
fn event(step: i64, value: &[u8]) -> Vec<u8> {
    let time = [&[1 << 3 | 1][..], &1.7e9f64.to_le_bytes()].concat();
    [time, varint(2 << 3), varint(step as u64), field(5, &field(1, value))].concat()
}

fn scalar(tag: &str, step: i64, value: f32) -> Vec<u8> {
    event(step, &[field(1, tag.as_bytes()), vec![2 << 3 | 5], value.to_le_bytes().to_vec()].concat())
}

/// A file with `loss` at these steps, and where each of its records begins.
fn losses(steps: std::ops::Range<i64>) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    for step in steps {
        places.push(bytes.len());
        bytes.extend(framed(&scalar("loss", step, step as f32)));
    }
    (bytes, places)
}

fn steps_of(items: &[EventItem]) -> Vec<i64> {
    let steps = items.iter().filter_map(|item| match item {
        EventItem::Scalar(scalar) => Some(scalar.step),
        _ => None,
    });
    steps.collect()
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
            EventItem::Damage(damage) => panic!("{damage}"),
            EventItem::Parameter { .. } | EventItem::Object(_) => {}
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
                EventItem::Restart { step } => Some(step),
                _ => None,
            }
        });
    assert_eq!(restarts.collect::<Vec<_>>(), [4]);
}

/// Proves that a file which is cut off anywhere gives every whole record before the cut, names the rest at its end, and gives it once the
/// file has grown.
#[test]
fn a_file_that_is_cut_off() {
    let bytes = files_of("tensorboardx").remove(0);
    let whole = items(&bytes, usize::MAX).len();
    let mut reader = EventReader::default();
    let mut found = 0;
    reader.push(&bytes[..bytes.len() - 1], |_| found += 1);
    assert_eq!(found, whole - 1);
    reader.push(&bytes[bytes.len() - 1..], |_| found += 1);
    reader.finish(|_| found += 1);
    assert_eq!(found, whole);

    let (bytes, places) = losses(0..3);
    for end in places[2] + 1..bytes.len() {
        let (whole, damage) = apart(items(&bytes[..end], 5));
        assert_eq!(steps_of(&whole), [0, 1]);
        let [left] = &damage[..] else { panic!("{damage:?}") };
        assert_eq!((left.kind, left.offset), (DamageKind::Incomplete, places[2] as u64));
        assert_eq!(left.bytes as usize, end - places[2]);
    }
}

/// Proves that a record with a wrong checksum is named with its place, tag and step, and that every record after it is read.
#[test]
fn a_wrong_checksum_costs_one_record() {
    let (bytes, places) = losses(0..10);
    for change in [places[4] - 1, places[4] - 4] {
        let mut bytes = bytes.clone();
        bytes[change] ^= 0xff;
        let (whole, damage) = apart(items(&bytes, 9));
        assert_eq!(steps_of(&whole), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
        let [left] = &damage[..] else { panic!("{damage:?}") };
        assert_eq!((left.kind, left.offset), (DamageKind::Checksum, places[3] as u64));
        assert_eq!((left.tag.as_deref(), left.step), (Some("loss"), Some(3)));
        let text = left.to_string();
        assert!(text.contains(&format!("byte {}", places[3])) && text.contains("`loss` at step 3"), "{text}");
    }
    let mut bytes = bytes;
    bytes[places[3] + 12..places[3] + 40].fill(0xff);
    let (whole, damage) = apart(items(&bytes, usize::MAX));
    assert_eq!((whole.len(), damage.len(), damage[0].tag.as_deref()), (9, 1, None));
}

/// Proves that after a length that cannot be trusted, bytes that were lost and bytes that were put in between, the next
/// record is found, and that how many bytes belong to none is named.
#[test]
fn the_next_record_is_searched_for() {
    let (bytes, places) = losses(0..6);
    let mut changed = bytes.clone();
    changed[places[2]] ^= 1;
    let lost = [&bytes[..places[2] + 5], &bytes[places[3]..]].concat();
    let between = [&bytes[..places[3]], &[7; 30], &bytes[places[3]..]].concat();
    let record = places[3] - places[2];
    for (bytes, expected, offset, count) in [
        (&changed, vec![0, 1, 3, 4, 5], places[2], record),
        (&lost, vec![0, 1, 3, 4, 5], places[2], 5),
        (&between, vec![0, 1, 2, 3, 4, 5], places[3], 30),
    ] {
        for piece in [1, 7, usize::MAX] {
            let (whole, damage) = apart(items(bytes, piece));
            assert_eq!(steps_of(&whole), expected);
            assert_eq!(damage, [Damage::new(DamageKind::NoRecord, offset as u64, count as u64)]);
        }
    }
    let (whole, damage) = apart(items(&[&bytes[..], &[0; 100]].concat(), 11));
    assert_eq!(whole.len(), 6);
    assert_eq!(damage, [Damage::new(DamageKind::NoRecord, bytes.len() as u64, 100)]);
    // The end of a record is lost, and the file ends before as many bytes follow.
    let long = framed(&scalar(&"x".repeat(500), 9, 0.5));
    let torn = [&bytes[..], &long[..100], &bytes[..]].concat();
    let (whole, damage) = apart(items(&torn, 64));
    assert_eq!(steps_of(&whole), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
    assert_eq!(damage, [Damage::new(DamageKind::NoRecord, bytes.len() as u64, 100)]);
}

/// Proves that a step below 0 is that step, of values and of a restart.
#[test]
fn steps_below_0_stay() {
    let found = items(&framed(&scalar("loss", -1, 0.9)), usize::MAX);
    assert_eq!(steps_of(&found), [-1]);
    let status = field(7, &[1 << 3, 1]);
    let restart = [varint(2 << 3), varint(-5i64 as u64), status].concat();
    let found = items(&framed(&restart), usize::MAX);
    assert_eq!(found, [EventItem::Restart { step: -5 }]);
}

/// Proves that what is not a scalar is named by its kind, from the field or from the plugin, and that what the plugin of hyperparameters
/// stores for itself is not.
#[test]
fn objects_are_named() {
    let kind = |value: &[u8]| items(&framed(&event(0, value)), usize::MAX);
    let tag = field(1, b"a");
    let plugin = |name: &str| field(9, &field(1, &field(1, name.as_bytes())));
    let strings = [tag.clone(), field(8, &[1 << 3, 7])].concat();
    let image = [tag.clone(), field(4, b"")].concat();
    let tensor = [tag.clone(), field(8, &[1 << 3, 1])].concat();
    let of = |bytes: &[u8], name: &str| kind(&[bytes.to_vec(), plugin(name)].concat());
    assert_eq!(kind(&image), [EventItem::Object(ObjectKind::Image)]);
    assert_eq!(kind(&strings), [EventItem::Object(ObjectKind::Text)]);
    assert_eq!(kind(&tensor), [EventItem::Object(ObjectKind::Tensor)]);
    assert_eq!(of(&tensor, "histograms"), [EventItem::Object(ObjectKind::Histogram)]);
    assert!(of(&tensor, "hparams").is_empty());
    let (mut objects, expected) = (Vec::new(), [ObjectKind::Histogram, ObjectKind::Text]);
    for item in files_of("torch").iter().flat_map(|bytes| items(bytes, usize::MAX)) {
        objects.extend(match item {
            EventItem::Object(kind) => Some(kind),
            _ => None,
        });
    }
    objects.sort();
    assert_eq!(objects, expected);
}

/// Proves that a content whose checksum holds and that ends within a field is named, and that what precedes the end is read.
#[test]
fn a_content_that_is_not_an_event_is_named() {
    let whole = scalar("loss", 2, 0.5);
    let torn = [&whole[..], &[0xff; 11]].concat();
    let (found, damage) = apart(items(&framed(&torn), usize::MAX));
    assert_eq!(steps_of(&found), [2]);
    assert_eq!((damage.len(), damage[0].kind), (1, DamageKind::NotAnEvent));
}

/// Proves that a record that is too large to be held is passed and named, at once and in pieces, and that the next one counts.
#[test]
fn giant_records_are_not_held() {
    let mut bytes = framed(&vec![0; HELD_BYTES_MAX]);
    let giant = Damage::new(DamageKind::TooLarge, 0, bytes.len() as u64);
    bytes.extend(losses(0..3).0);
    for piece in [100_000, usize::MAX] {
        let (whole, damage) = apart(items(&bytes, piece));
        assert_eq!(steps_of(&whole), [0, 1, 2]);
        assert_eq!(damage, std::slice::from_ref(&giant));
    }
    let mut reader = EventReader::default();
    for piece in bytes.chunks(100_000) {
        reader.push(piece, |_| {});
        assert!(reader.held.len() <= 100_000, "{}", reader.held.len());
    }
}

/// How many mutants are read by default; `TRACKWAY_FUZZ_MUTANTS` sets another number.
const USUAL_MUTANTS: u64 = 700;

/// Changes a good file in one to three places: bits, bytes, pieces filled, left out, doubled, and the end. Whether
/// every byte is where it was.
fn mutate(good: &[u8], random: &mut SplitMix64) -> (Vec<u8>, bool) {
    let (mut bytes, mut in_place) = (good.to_vec(), true);
    for _ in 0..=random.next_u64() % 3 {
        if bytes.is_empty() {
            break;
        }
        let at = random.next_u64() as usize % bytes.len();
        let to = (at + 1 + random.next_u64() as usize % 64).min(bytes.len());
        let change = random.next_u64() % 6;
        in_place &= change < 3;
        match change {
            0 => bytes[at] ^= 1 << (random.next_u64() % 8),
            1 => bytes[at] = random.next_u64() as u8,
            2 => bytes[at..to].fill(random.next_u64() as u8),
            3 => drop(bytes.drain(at..to)),
            4 => bytes.extend_from_within(at..to),
            _ => bytes.truncate(at),
        }
    }
    (bytes, in_place)
}

/// Proves that nothing is read of a damaged file that was not written, that what is missing of it is named with a place in the file, and
/// that in pieces the same is found.
#[test]
fn mutants_are_read_or_named() {
    let given = std::env::var("TRACKWAY_FUZZ_MUTANTS").ok().and_then(|count| count.parse().ok());
    let mutants = given.unwrap_or(USUAL_MUTANTS);
    let (own, _) = losses(0..40);
    let good = [own, files_of("torch").remove(0), files_of("tensorboardx").remove(0)];
    for seed in 0..mutants {
        let good = &good[seed as usize % good.len()];
        let written = items(good, usize::MAX);
        let (bytes, in_place) = mutate(good, &mut SplitMix64::new(seed));
        let found = items(&bytes, usize::MAX);
        assert_eq!(format!("{found:?}"), format!("{:?}", items(&bytes, 13)), "mutant {seed}");
        let (whole, damage) = apart(found);
        assert!(damage.iter().all(|it| it.offset < bytes.len() as u64), "mutant {seed}");
        let texts: BTreeSet<String> = written.iter().map(|item| format!("{item:?}")).collect();
        assert!(whole.iter().all(|item| texts.contains(&format!("{item:?}"))), "mutant {seed}");
        assert!(!in_place || whole.len() == written.len() || !damage.is_empty(), "mutant {seed}");
    }
}

proptest! {
    /// Proves that no bytes make the reader panic, framed or not.
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2048), piece in 1usize..50) {
        let mut reader = EventReader::default();
        bytes.chunks(piece).for_each(|piece| reader.push(piece, |_| {}));
        reader.finish(|_| {});
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
