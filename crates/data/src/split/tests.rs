use proptest::prelude::*;

use super::*;

const THREE: [(&str, f64); 3] = [("train", 0.8), ("validation", 0.1), ("test", 0.1)];

fn key(row: usize) -> [u8; 8] {
    (row as u64).to_le_bytes()
}

fn sizes(parts: &[Part]) -> Vec<usize> {
    let count = usize::from(*parts.iter().max().unwrap()) + 1;
    (0..count).map(|part| parts.iter().filter(|it| usize::from(**it) == part).count()).collect()
}

/// Proves that the subsets of the stages hold one another and have the sizes asked for, and that a row's place in them
/// says nothing about its part.
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

/// Proves that a split by hash is the same in every order, changes with the seed, and has the shares asked for. The
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

/// Proves that within classes the shares are met to the row, and that equal rows stay together.
#[test]
fn within_classes_to_the_row() {
    let shares = Shares::new(&THREE).unwrap();
    let classes: Vec<u32> = (0..1_100).map(|row| u32::from(row >= 1_000)).collect();
    let units: Vec<f64> = (0..1_100).map(|row| unit_of(3, "split", &key(row))).collect();
    let parts = by_hash_within_classes(&shares, &units, &classes);
    assert_eq!(sizes(&parts[..1_000]), [800, 100, 100]);
    assert_eq!(sizes(&parts[1_000..]), [80, 10, 10]);
    let twins = by_hash_within_classes(&shares, &[0.5; 10], &[0; 10]);
    assert_eq!(sizes(&twins), [10]);
}

/// Proves that folds keep groups whole and share out a rare class as evenly as the groups let them.
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

/// Proves that a cut by time parts no equal moments, leaves the embargo out, and refuses an empty part.
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

/// Proves that a key on two sides is found, with its rows.
#[test]
fn overlaps_are_found() {
    assert_eq!(prove_disjoint(&[0, 1, 0, 1], [7, 8, 7, 8]), Ok(()));
    assert_eq!(prove_disjoint(&[0, 1, 0, 1], [7, 8, 9, 7]), Err(Overlap { first_row: 0, second_row: 3 }));
}

/// Proves that impossible shares are refused with what is wrong.
#[test]
fn impossible_shares() {
    let said = |parts: &[(&str, f64)]| Shares::new(parts).unwrap_err().to_string();
    assert_eq!(said(&[("train", 1.0)]), "a split has 2 to 255 parts, not 1");
    assert_eq!(
        said(&[("train", 1.0), ("test", 0.1)]),
        "`train` has a share of 1; a share lies between 0 and 1"
    );
    assert_eq!(said(&[("train", 0.5), ("test", 0.1)]), "the shares sum to 0.6, not to 1");
    assert_eq!(said(&[("train", 0.5), ("train", 0.5)]), "two parts are called `train`");
    assert!(Shares::new(&[("a", 0.3333), ("b", 0.3333), ("c", 0.3333)]).is_ok());
}

proptest! {
    /// Proves that groups split by hash never lie on two sides, and that every row has a part.
    #[test]
    fn groups_stay_whole(seed: u64, groups in prop::collection::vec(0u64..30, 1..300)) {
        let shares = Shares::new(&THREE).unwrap();
        let parts: Vec<_> = groups.iter().map(|group| by_hash(&shares, seed, &group.to_le_bytes())).collect();
        prop_assert!(parts.iter().all(|part| *part < 3));
        prop_assert_eq!(prove_disjoint(&parts, groups), Ok(()));
    }
}

const PINNED: [Part; 24] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 1, 0, 0, 0, 2, 0];
