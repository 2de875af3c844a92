use proptest::prelude::*;
use trackway_formats::subset::{subset_of, unit_of};
use trackway_tables::ReadContext;
use trackway_tables::read::Place;

use super::*;

const THREE: [(&str, f64); 3] = [("train", 0.8), ("validation", 0.1), ("test", 0.1)];

fn key(row: usize) -> [u8; 8] {
    (row as u64).to_le_bytes()
}

fn by_hash(shares: &Shares, seed: u64, key: &[u8]) -> Part {
    shares.part_at(unit_of(seed, "split", key))
}

fn sizes(parts: &[Part]) -> Vec<usize> {
    let count = usize::from(*parts.iter().max().unwrap()) + 1;
    (0..count).map(|part| parts.iter().filter(|it| usize::from(**it) == part).count()).collect()
}

/// Proves that the subsets of the rungs contain one another and have the requested sizes, and that a row's place in
/// them is independent of its part.
#[test]
fn subsets_are_nested() {
    let shares = Shares::new(&THREE).unwrap();
    let subset = |fraction: f64| {
        (0..100_000).filter(move |row| subset_of(17, &key(*row), fraction)).collect::<Vec<_>>()
    };
    let (one, ten) = (subset(0.01), subset(0.1));
    assert!(one.iter().all(|row| ten.binary_search(row).is_ok()));
    assert_eq!(subset(1.0).len(), 100_000);
    assert!((900..1_100).contains(&one.len()) && (9_600..10_400).contains(&ten.len()));
    let train = one.iter().filter(|row| by_hash(&shares, 17, &key(**row)) == 0).count() as f64;
    assert!((0.76..0.84).contains(&(train / one.len() as f64)));
}

/// Proves that a split by hash is the same in every order, changes with the seed, and has the requested fractions. The
/// first parts are pinned: a change of the hash would move rows between the parts of users.
#[test]
fn by_hash_is_deterministic() {
    let shares = Shares::new(&THREE).unwrap();
    let split = |seed: u64| (0..20_000).map(|row| by_hash(&shares, seed, &key(row))).collect::<Vec<_>>();
    assert_eq!(split(1), split(1));
    assert_ne!(split(1), split(2));
    let found = sizes(&split(1));
    assert!((15_800..16_200).contains(&found[0]) && (1_850..2_150).contains(&found[1]), "{found:?}");
    assert_eq!(split(1)[..24], PINNED);
}

/// Proves that within classes the fractions are met to the row, and that equal rows stay together.
#[test]
fn within_classes_to_the_row() {
    let shares = Shares::new(&THREE).unwrap();
    let classes: Vec<u32> = (0..1_100).map(|row| u32::from(row >= 1_000)).collect();
    let units: Vec<f64> = (0..1_100).map(|row| unit_of(3, "split", &key(row))).collect();
    let parts = by_hash_within_classes(&shares, &units, &classes);
    assert_eq!(sizes(&parts[..1_000]), [800, 100, 100]);
    assert_eq!(sizes(&parts[1_000..]), [80, 10, 10]);
    let copies = by_hash_within_classes(&shares, &[0.5; 10], &[0; 10]);
    assert_eq!(sizes(&copies), [10]);
}

/// Proves that folds keep groups whole and divide a rare class as evenly as the groups permit.
#[test]
fn folds_of_groups() {
    let group = |index: usize| {
        let (size, rare) = ((index * 7919) % 23 + 1, if index.is_multiple_of(10) { 5 } else { 0 });
        GroupClasses { rows: vec![size as u64, rare], unit: unit_of(1, "fold", &key(index)) }
    };
    let groups: Vec<_> = (0..200).map(group).collect();
    let folds = stratified_group_folds(&groups, 5).unwrap();
    let of_class = |fold: Part, class: usize| -> u64 {
        folds.iter().zip(&groups).filter(|(it, _)| **it == fold).map(|(_, group)| group.rows[class]).sum()
    };
    let rare: Vec<_> = (0..5).map(|fold| of_class(fold, 1)).collect();
    assert_eq!(rare, [20; 5]);
    let common: Vec<_> = (0..5).map(|fold| of_class(fold, 0)).collect();
    assert!(common.iter().max().unwrap() - common.iter().min().unwrap() <= 30, "{common:?}");
    let error = stratified_group_folds(&groups[..3], 5).unwrap_err().to_string();
    assert_eq!(error, "5 folds of 3 groups: choose 2 to 100 folds, and no more than there are groups");
}

/// Proves that a cut by time separates no equal timestamps, leaves the embargo out, and refuses an empty part.
#[test]
fn cuts_by_time() {
    let shares = Shares::new(&THREE).unwrap();
    let mut moments: Vec<i64> = (0..1_000).map(|row| i64::from(row) / 50).collect();
    let cuts = cut_by_time(&shares, &mut moments, 0).unwrap();
    let found: Vec<_> = cuts.iter().map(|cut| (cut.from, cut.to)).collect();
    assert_eq!(found, [(0, 15), (16, 17), (18, 19)]);
    let cuts = cut_by_time(&shares, &mut moments, 1).unwrap();
    assert_eq!((cuts[1].from, cuts[2].from), (17, 19));
    assert_eq!(cut_by_time(&shares, &mut moments, 2), None);
    assert_eq!(cut_by_time(&shares, &mut [5; 100], 0), None);
    assert_eq!(cut_by_time(&shares, &mut [], 0), None);
}

/// Proves that impossible fractions are refused with what is wrong.
#[test]
fn impossible_shares() {
    let said = |parts: &[(&str, f64)]| Shares::new(parts).unwrap_err().to_string();
    assert_eq!(said(&[("train", 1.0)]), "a split has 2 to 255 parts, not 1");
    assert_eq!(
        said(&[("train", 1.0), ("test", 0.1)]),
        "`train` has a fraction of 1; it must be between 0 and 1"
    );
    assert_eq!(said(&[("train", 0.5), ("test", 0.1)]), "the fractions sum to 0.6, not to 1");
    assert_eq!(said(&[("train", 0.5), ("train", 0.5)]), "two parts are called `train`");
    Shares::new(&[("a", 0.3333), ("b", 0.3333), ("c", 0.3333)]).map(drop).unwrap();
}

proptest! {
    /// Proves that groups split by hash never are on two sides, and that every row has a part.
    #[test]
    fn groups_stay_whole(seed: u64, groups in prop::collection::vec(0u64..30, 1..300)) {
        let shares = Shares::new(&THREE).unwrap();
        let parts: Vec<_> = groups.iter().map(|group| by_hash(&shares, seed, &group.to_le_bytes())).collect();
        prop_assert!(parts.iter().all(|part| *part < 3));
        let mut part_of = std::collections::HashMap::new();
        for (group, part) in groups.iter().zip(&parts) {
            prop_assert_eq!(part_of.entry(group).or_insert(part), &part);
        }
    }
}

const PINNED: [Part; 24] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 1, 0, 0, 0, 2, 0];

/// Rows of 40 users, two of each three of class 0, at ascending times; each tenth row twice.
fn rows() -> SplitRows {
    let of = |row: usize| row - usize::from(row % 10 == 9);
    SplitRows {
        places: (0..2_000).map(|row| Place { file: 0, row: row as u64 + 2 }).collect(),
        keys: (0..2_000).map(|row| unit_of(5, "key", &key(of(row))).to_bits()).collect(),
        groups: (0..2_000).map(|row| (row / 50) as u64 * 7).collect(),
        classes: (0..2_000).map(|row| u32::from(of(row) % 3 == 0)).collect(),
        class_names: vec!["no".into(), "yes".into()],
        moments: (0..2_000).map(|row| (row != 7).then_some(row as i64 / 4)).collect(),
    }
}

fn plan(method: SplitMethod) -> SplitPlan {
    SplitPlan {
        method,
        shares: Some(Shares::new(&THREE).unwrap()),
        folds: Some(4),
        rungs: vec![0.01, 0.1, 1.0],
        seed: 17,
    }
}

/// Proves that every method keeps its promise on rows that come twice, in groups and at equal times, that parts have
/// about the requested fractions, that folds cover the first part, and that another seed gives another split.
#[test]
fn every_method_keeps_its_promise() {
    let rows = rows();
    for (method, tolerance) in [
        (SplitMethod::Hash, 0.03),
        (SplitMethod::Group, 0.15),
        (SplitMethod::Stratified, 0.002),
        (SplitMethod::StratifiedGroup, 0.05),
        (SplitMethod::Time, 0.01),
    ] {
        let plan = plan(method);
        let assignment = plan.assign(&rows).unwrap();
        let proof = plan.prove(&rows, &assignment);
        assert!(proof.holds(method), "{method:?}: {proof:?}");
        let share =
            |part: Part| assignment.parts.iter().filter(|it| **it == Some(part)).count() as f64 / 2_000.0;
        assert!((share(0) - 0.8).abs() <= tolerance, "{method:?}: {}", share(0));
        let in_first = |row: usize| assignment.parts[row] == Some(0);
        assert!((0..2_000).all(|row| assignment.folds[row].is_some() == in_first(row)), "{method:?}");
        assert_eq!(assignment.folds.iter().flatten().max(), Some(&3));
        assert!(assignment.rungs.iter().all(|rung| rung.is_some()));
        assert_eq!(assignment, plan.assign(&rows).unwrap());
        let other = SplitPlan { seed: 18, ..plan.clone() }.assign(&rows).unwrap();
        assert!(other.rungs != assignment.rungs, "{method:?}");
        assert_eq!(proof.rows_without_part, u64::from(method == SplitMethod::Time));
    }
}

/// Proves that the proof finds what is wrong: a row, a group or a timestamp on two sides, a fold, a rung that is not a
/// subset.
#[test]
fn the_proof_finds_what_is_wrong() {
    let rows = rows();
    let broken = |method: SplitMethod, spoil: fn(&mut Assignment)| {
        let plan = plan(method);
        let mut assignment = plan.assign(&rows).unwrap();
        spoil(&mut assignment);
        let proof = plan.prove(&rows, &assignment);
        assert!(!proof.holds(method), "{method:?}: {proof:?}");
    };
    broken(SplitMethod::Hash, |it| it.parts[9] = Some(u8::from(it.parts[8] == Some(0))));
    broken(SplitMethod::Stratified, |it| it.parts[9] = Some(u8::from(it.parts[8] == Some(0))));
    broken(SplitMethod::Group, |it| it.parts[3] = Some(u8::from(it.parts[4] == Some(0))));
    broken(SplitMethod::StratifiedGroup, |it| it.parts[3] = Some(u8::from(it.parts[4] == Some(0))));
    broken(SplitMethod::Time, |it| it.parts[3] = Some(2));
    broken(SplitMethod::Hash, |it| it.rungs[0] = None);
    broken(SplitMethod::Group, |it| {
        let row = it.folds.iter().position(|fold| fold.is_some()).unwrap();
        it.folds[row] = it.folds[row].map(|fold| (fold + 1) % 4);
    });
}

/// Proves that the rows of a table, in several files and formats, come with their places, keys, classes and timestamps,
/// and that a key column replaces the row.
#[test]
fn a_table_becomes_rows_to_split() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "id,plan,day\n1,b,2026-01-02\n2,a,\nbad\n").unwrap();
    std::fs::write(folder.path().join("b.csv"), "id,plan,day\n2,,2026-01-01\n").unwrap();
    let spec = trackway_tables::DataSpec { path: "*.csv".into(), ..trackway_tables::DataSpec::default() };
    let mut source =
        trackway_tables::read::Source::open(folder.path(), "data", &spec, &ReadContext::default()).unwrap();
    let named = |name: &str| Some(name.to_owned());
    let columns = SplitColumns { key: named("id"), label: named("plan"), group: None, time: named("day") };
    let (rows, coverage) = read_rows(&mut source, &columns, &trackway_tables::pass::UNWATCHED).unwrap();
    let places: Vec<_> = rows.places.iter().map(|place| (place.file, place.row)).collect();
    assert_eq!(places, [(0, 2), (0, 3), (1, 2)]);
    assert_eq!((rows.keys[1], rows.class_names.join("|")), (rows.keys[2], "|a|b".to_owned()));
    assert_eq!(rows.classes, [2, 1, 0]);
    let day = 86_400_000_000;
    assert_eq!(rows.moments[0].unwrap() - rows.moments[2].unwrap(), day);
    assert_eq!((rows.moments[1], coverage.rows_rejected), (None, 1));
    let wrong = SplitColumns { time: named("plan"), ..SplitColumns::default() };
    let error = read_rows(&mut source, &wrong, &trackway_tables::pass::UNWATCHED).unwrap_err().to_string();
    assert!(error.contains("contains neither timestamps nor whole numbers"), "{error}");
}
