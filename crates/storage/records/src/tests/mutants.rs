//! Damaged segments, made from a good one by a seeded generator: each is closed, with what is missing counted.
//!
//! `TRACKWAY_FUZZ_MUTANTS` sets how many there are; the few of a usual run take some seconds.

use trackway_core::boundary::contained;

use super::*;

/// Mutants by default.
const USUAL_MUTANTS: u64 = 300;

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

/// The points of a record without their names, which damage may hit alone, and whether damage of it was counted.
fn closed_points(recorded: &HomeWithAttempt) -> (Vec<(i64, u64, i64, i64)>, bool) {
    let closed = recorded.close(&RunSection::default());
    let rows = closed.parquet_path.as_deref().map(rows_in).unwrap_or_default();
    assert_eq!(
        rows,
        rows_of(&recorded.open(), Points::Metrics),
        "an open record has the rows of the closed one"
    );
    let counted = |row: &trackway_ledger::RecordSegmentRow| {
        row.torn_bytes > 0 || row.lost_frame_count > 0 || row.unreadable.is_some()
    };
    let points = rows.into_iter().map(|(_, _, _, step, value, at, sequence)| (step, value, at, sequence));
    (points.collect(), closed.segments.iter().any(counted))
}

/// Proves that no damage to a segment makes closing it panic or fail, that nothing is read of it that was not written,
/// and that what is missing of it is counted.
#[test]
fn mutants_of_segments_are_closed() {
    let given = std::env::var("TRACKWAY_FUZZ_MUTANTS").ok().and_then(|count| count.parse().ok());
    let mutants: u64 = given.unwrap_or(USUAL_MUTANTS);
    let recorded = HomeWithAttempt::new();
    let good = recorded.segment(Origin::Sdk, |encoder, bytes| {
        let mut random = SplitMix64::new(7);
        for _ in 0..4 {
            any_frames(&mut random, Origin::Sdk, encoder, bytes);
        }
    });
    recorded.write_bytes("a", &good);
    let (written, is_damaged) = closed_points(&recorded);
    assert!(written.len() > 50 && !is_damaged);
    let known: BTreeSet<_> = written.iter().collect();
    for seed in 0..mutants {
        let (bytes, in_place) = mutate(&good, &mut SplitMix64::new(seed));
        recorded.write_bytes("a", &bytes);
        let (points, is_damaged) =
            contained(|| closed_points(&recorded)).unwrap_or_else(|panic| panic!("mutant {seed}: {panic}"));
        assert!(points.iter().all(|point| known.contains(point)), "mutant {seed}");
        assert!(!in_place || is_damaged || points.len() == written.len(), "mutant {seed}");
    }
}
