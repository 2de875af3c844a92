//! The whole search: against every slice there is, and by simulation where the truth is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use trackway_core::{Rng, SplitMix64};
use trackway_data::model::{Cells, Frame, FrameColumn};
use trackway_tables::ColumnType;

use super::lattice::{Aim, LEVEL_BYTES_MAX, best_slices};
use super::score::Scoring;
use super::table::Table;
use super::*;
use crate::search::features::Feature;

static NEVER: AtomicBool = AtomicBool::new(false);

fn quiet() -> SearchObserver<'static> {
    SearchObserver { progress: &|_, _, _| {}, cancelled: &NEVER }
}

fn texts(name: &str, values: impl Iterator<Item = u64>) -> FrameColumn {
    let values: Vec<String> = values.map(|value| format!("v{value}")).collect();
    let cells = Cells::of_texts(values.iter().map(|value| Some(value.as_str())));
    FrameColumn { name: name.to_owned(), kind: ColumnType::Text, cells }
}

fn numbers(name: &str, values: Vec<f64>) -> FrameColumn {
    FrameColumn { name: name.to_owned(), kind: ColumnType::Float, cells: Cells::Numbers(values) }
}

fn roles() -> Roles {
    Roles {
        error: ErrorSource::Column("error".to_owned()),
        baseline: None,
        group: None,
        features: Vec::new(),
        skip: Vec::new(),
        categorical: Vec::new(),
    }
}

fn without_holdout(min_support: u32, top: usize, max_level: usize, alpha: f64) -> Settings {
    Settings { top, max_level, alpha, min_support: Some(min_support), holdout: None, ..Settings::default() }
}

/// A table of codes, row by row.
#[derive(Debug, Clone)]
struct Small {
    codes: Vec<Vec<u64>>,
    errors: Vec<f64>,
}

impl Small {
    fn frame(&self) -> Frame {
        let features = self.codes.iter().enumerate();
        let mut columns: Vec<FrameColumn> =
            features.map(|(index, codes)| texts(&format!("f{index}"), codes.iter().copied())).collect();
        columns.push(numbers("error", self.errors.clone()));
        Frame::of_columns(columns)
    }

    fn rows_of(&self, slice: &BTreeMap<usize, u64>) -> Vec<usize> {
        let is_in = |row: &usize| slice.iter().all(|(feature, code)| self.codes[*feature][*row] == *code);
        (0..self.errors.len()).filter(is_in).collect()
    }

    /// Every slice there is, by score, straight from the definition.
    fn all_slices(&self, settings: &Settings) -> Vec<(f64, usize, BTreeMap<usize, u64>)> {
        let rows = self.errors.len();
        let average = self.errors.iter().sum::<f64>() / rows as f64;
        let mut slices: BTreeMap<BTreeMap<usize, u64>, (usize, f64)> = BTreeMap::new();
        for row in 0..rows {
            for chosen in 1u32..1 << self.codes.len() {
                if chosen.count_ones() as usize <= settings.max_level {
                    let of = (0..self.codes.len()).filter(|feature| chosen >> feature & 1 == 1);
                    let slice = of.map(|feature| (feature, self.codes[feature][row])).collect();
                    let entry = slices.entry(slice).or_default();
                    *entry = (entry.0 + 1, entry.1 + self.errors[row]);
                }
            }
        }
        let score = |size: usize, error: f64| {
            settings.alpha * (error / size as f64 / average - 1.0)
                - (1.0 - settings.alpha) * (rows as f64 / size as f64 - 1.0)
        };
        let mut scored: Vec<_> = slices
            .into_iter()
            .filter(|(_, (size, _))| *size >= settings.min_support.unwrap() as usize)
            .map(|(slice, (size, error))| (score(size, error), size, slice))
            .filter(|(score, _, _)| *score > 1e-9)
            .collect();
        scored.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.2.len().cmp(&other.2.len())));
        scored
    }
}

fn small() -> impl Strategy<Value = Small> {
    (2usize..6, 12usize..80, any::<bool>()).prop_flat_map(|(features, rows, is_binary)| {
        let codes = prop::collection::vec(prop::collection::vec(0u64..4, rows), features);
        let error = if is_binary {
            prop::collection::vec((0u8..2).prop_map(f64::from), rows).boxed()
        } else {
            prop::collection::vec((0u32..50).prop_map(|it| f64::from(it) / 7.0), rows).boxed()
        };
        (codes, error).prop_map(|(codes, errors)| Small { codes, errors })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Proves that the search finds the very slices that trying out all of them finds, of errors of both kinds, any
    /// depth and support; and the same again when it begins with its own earlier answer, or one of other errors.
    #[test]
    fn as_good_as_trying_all(
        small in small(),
        (min_support, top, max_level) in (1u32..8, 1usize..8, 1usize..6),
        alpha in 0.2f64..=1.0,
    ) {
        prop_assume!(small.errors.iter().sum::<f64>() > 0.0);
        let settings = without_holdout(min_support, top, max_level, alpha);
        let answer = find(small.frame(), &roles(), &settings, None, &quiet()).unwrap();
        let all = small.all_slices(&settings);
        prop_assert_eq!(answer.slices.len(), all.len().min(top));
        let truth: BTreeMap<_, _> = all.iter().map(|(score, size, slice)| (slice.clone(), (*score, *size))).collect();
        for (slice, (score, _, _)) in answer.slices.iter().zip(&all) {
            prop_assert!((slice.score - score).abs() < 1e-9, "{} is not {}", slice.score, score);
            let value = |text: &Option<String>| text.as_deref().unwrap()[1..].parse().unwrap();
            let own = slice.predicate.iter().map(|(name, text)| (name[1..].parse().unwrap(), value(text))).collect();
            let (own_score, size) = truth.get::<BTreeMap<usize, u64>>(&own).unwrap();
            prop_assert_eq!(slice.size as usize, *size);
            prop_assert!((slice.score - own_score).abs() < 1e-9);
        }
        let reread = |answer: &Answer| serde_json::from_str(&serde_json::to_string(answer).unwrap()).unwrap();
        let again = find(small.frame(), &roles(), &settings, Some(&reread(&answer)), &quiet()).unwrap();
        prop_assert!(again.slices.iter().zip(&answer.slices).all(|(one, other)| one.predicate == other.predicate));
        prop_assert!(again.evaluated <= answer.evaluated && again.resolved.is_empty());

        // Of slices with the same rows the first: the best of each set of rows there is.
        let distinct = Settings { is_distinct: true, ..settings.clone() };
        let answer_distinct = find(small.frame(), &roles(), &distinct, None, &quiet()).unwrap();
        let mut seen = BTreeSet::new();
        let firsts = all.iter().filter(|(_, _, slice)| seen.insert(small.rows_of(slice))).take(top);
        let firsts: Vec<(f64, usize)> = firsts.map(|(score, _, slice)| (*score, slice.len())).collect();
        prop_assert_eq!(answer_distinct.slices.len(), firsts.len());
        for (slice, (score, width)) in answer_distinct.slices.iter().zip(&firsts) {
            prop_assert!((slice.score - score).abs() < 1e-9, "{} is not {}", slice.score, score);
            prop_assert_eq!(slice.predicate.len(), *width);
        }

        let mut other = small.clone();
        other.errors.rotate_left(5);
        let fresh = find(other.frame(), &roles(), &settings, None, &quiet()).unwrap();
        let seeded = find(other.frame(), &roles(), &settings, Some(&reread(&answer)), &quiet()).unwrap();
        let predicates = |answer: &Answer| answer.slices.iter().map(|it| it.predicate.clone()).collect::<Vec<_>>();
        prop_assert_eq!(predicates(&fresh), predicates(&seeded));
    }
}

/// Proves that slices which name the same rows, or 95 % of them, are one finding with the others as its other descriptions, that as many
/// findings come as are wanted, and that an earlier answer by another description is found again.
#[test]
fn the_same_rows_are_one_finding() {
    let mut draw = random(21);
    let rows = 4_000;
    let codes: Vec<u64> = (0..rows).map(|_| draw(4)).collect();
    // A copy, one that differs in a hundredth of the rows, and two other columns.
    let nearly: Vec<u64> = codes.iter().map(|code| if draw(100) == 0 { draw(4) } else { *code }).collect();
    let others: [Vec<u64>; 2] = [0, 1].map(|_| (0..rows).map(|_| draw(4)).collect());
    let errors = (0..rows as usize).map(|row| {
        let worse = [(codes[row] == 1, 400), (others[0][row] == 2, 250)];
        let most =
            worse.iter().filter(|(is, _)| *is).map(|(_, probability)| *probability).max().unwrap_or(50);
        f64::from(u8::from(draw(1000) < most))
    });
    let errors: Vec<f64> = errors.collect();
    let [third, fourth] = others;
    let small = Small { codes: vec![codes.clone(), codes, nearly, third, fourth], errors };
    let settings = Settings { merges_alike: true, top: 2, max_level: 1, ..Settings::default() };
    let answer = find(small.frame(), &roles(), &settings, None, &quiet()).unwrap();
    assert_eq!(answer.slices.len(), 2);
    let first = &answer.slices[0];
    let described = |slice: &ErrorSlice, name: &str| {
        let by = |predicate: &Predicate| predicate.len() == 1 && predicate.contains_key(name);
        by(&slice.predicate) || slice.also_described_by.iter().any(|it| by(&it.predicate))
    };
    assert!(["f0", "f1", "f2"].iter().all(|name| described(first, name)), "{first:?}");
    assert!(first.also_described_by.iter().all(|it| it.overlap >= ALIKE_MIN && it.size > 0));
    assert!(described(&answer.slices[1], "f3"), "{:?}", answer.slices);
    let every = Settings { merges_alike: false, ..settings.clone() };
    let every = find(small.frame(), &roles(), &every, None, &quiet()).unwrap();
    assert!(every.slices.iter().all(|slice| slice.also_described_by.is_empty()));
    let earlier: EarlierAnswer = serde_json::from_str(&serde_json::to_string(&every).unwrap()).unwrap();
    let again = find(small.frame(), &roles(), &settings, Some(&earlier), &quiet()).unwrap();
    assert_eq!(again.slices[0].predicate, first.predicate);
    assert!(again.resolved.is_empty() && again.slices[0].change == Some(SliceChange::Same), "{again:?}");
}

fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut rng = SplitMix64::new(seed);
    move |below| rng.next_u64() % below
}

fn random_table(seed: u64, rows: usize, features: usize, values: u64) -> Small {
    let mut draw = random(seed);
    let codes = (0..features).map(|_| (0..rows).map(|_| draw(values)).collect()).collect();
    let errors = (0..rows).map(|_| f64::from(u8::from(draw(100) < 25))).collect();
    Small { codes, errors }
}

/// Proves that the bound counts rows and not one-hot columns: of 60 rows with 299 columns the best slices are found,
/// where the bound of the public implementations leaves them out (it took l > n for n).
#[test]
fn more_columns_than_rows() {
    let mut draw = random(11);
    let codes: Vec<Vec<u64>> = (0..13).map(|_| (0..60).map(|_| draw(23)).collect()).collect();
    let errors: Vec<f64> = (0..60).map(|_| f64::from(u8::from(draw(3) == 0))).collect();
    let small = Small { codes, errors };
    let one_hot: usize = small.codes.iter().map(|codes| codes.iter().collect::<BTreeSet<_>>().len()).sum();
    assert!(one_hot > 200, "{one_hot}");
    let settings = without_holdout(2, 4, 3, 0.95);
    let answer = find(small.frame(), &roles(), &settings, None, &quiet()).unwrap();
    let all = small.all_slices(&settings);
    assert_eq!(answer.slices.len(), 4);
    for (slice, (score, _, _)) in answer.slices.iter().zip(all) {
        assert!((slice.score - score).abs() < 1e-9, "{} is not {score}", slice.score);
    }
}

/// Proves that equal scores are always ordered alike: the fewer predicates first, then the earlier columns, and that a
/// slice of the same rows with more predicates comes later.
#[test]
fn ties() {
    // Two columns are equal, and a third is constant.
    let codes: Vec<u64> = (0..64).map(|row| row % 4).collect();
    let errors = (0..64).map(|row| f64::from(u8::from(row % 4 == 1))).collect();
    let small = Small { codes: vec![codes.clone(), codes, vec![0; 64]], errors };
    let answer = find(small.frame(), &roles(), &without_holdout(4, 5, 3, 0.9), None, &quiet()).unwrap();
    let names = |slice: &ErrorSlice| slice.predicate.keys().cloned().collect::<Vec<_>>().join(" ");
    let order: Vec<String> = answer.slices.iter().map(names).collect();
    assert_eq!(order, ["f0", "f1", "f0 f1", "f0 f2", "f1 f2"]);
    assert!(answer.slices.windows(2).all(|pair| pair[0].score == pair[1].score));
    let same: Vec<Option<usize>> = answer.slices.iter().map(|slice| slice.same_rows_as).collect();
    assert_eq!(same, [None, Some(0), Some(0), Some(0), Some(0)]);
}

/// Proves that answer and account are the same on one thread and on many.
#[test]
fn any_number_of_threads() {
    let small = random_table(5, 3000, 8, 3);
    let settings = Settings { min_support: Some(10), max_level: 4, alpha: 0.99, ..Settings::default() };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| find(small.frame(), &roles(), &settings, None, &quiet()).unwrap())
    };
    let one = on(1);
    assert_eq!(one, on(4));
    assert_eq!(one.levels.len(), 4);
    assert!(one.levels.iter().all(|level| level.candidates == level.evaluated + level.pruned));
}

/// Proves that a level which would take too much memory ends the search, and that the result reports it.
#[test]
fn memory_is_bounded() {
    let small = random_table(6, 2000, 8, 4);
    let frame = small.frame().into_columns();
    let features: Vec<Feature> =
        frame.into_iter().take(8).map(|column| Feature::of(column, &Binning::None, 5)).collect();
    let rows: Vec<u32> = (0..2000).collect();
    let table = Table::new(&features, &rows, small.errors.clone(), 5).unwrap();
    let average_error = small.errors.iter().sum::<f64>() / 2000.0;
    let scoring = Scoring { alpha: 0.99, min_support: 5, rows: 2000.0, average_error };
    let search = |level_bytes_max: usize| {
        let aim = Aim { wanted: 3, is_distinct: false, level_max: 4, level_bytes_max };
        best_slices(&table, &scoring, aim, Vec::new(), &quiet()).unwrap()
    };
    let (cut, whole) = (search(1000), search(LEVEL_BYTES_MAX));
    assert!(!cut.complete && cut.levels.len() == 2, "{:?}", cut.levels);
    assert!(whole.complete && whole.levels.len() == 4, "{:?}", whole.levels);
}

/// Proves that a search ends when it is cancelled, and that settings and tables that make no sense are refused.
#[test]
fn refusals() {
    let small = random_table(7, 500, 4, 3);
    let find_with = |settings: Settings, cancelled: bool| {
        let cancelled = AtomicBool::new(cancelled);
        find(
            small.frame(),
            &roles(),
            &settings,
            None,
            &SearchObserver { progress: &|_, _, _| {}, cancelled: &cancelled },
        )
    };
    assert!(matches!(find_with(Settings::default(), true), Err(SearchError::Cancelled)));
    let settings = |change: fn(&mut Settings)| {
        let mut settings = Settings::default();
        change(&mut settings);
        settings
    };
    for wrong in [
        settings(|it| it.alpha = 0.0),
        settings(|it| it.alpha = f64::NAN),
        settings(|it| it.top = 0),
        settings(|it| it.holdout = Some(1.0)),
        settings(|it| it.false_discovery_rate = 0.0),
    ] {
        assert!(matches!(find_with(wrong, false), Err(SearchError::Setting { .. })));
    }
    let too_many = settings(|it| it.min_support = Some(400));
    assert!(matches!(find_with(too_many, false), Err(SearchError::TooFewRows { .. })));
    let mut negative = small.clone();
    negative.errors[3] = -1.0;
    let error = find(negative.frame(), &roles(), &Settings::default(), None, &quiet()).unwrap_err();
    assert!(error.to_string().contains("has the error -1 in row 4"), "{error}");
}

/// A table with a bad slice: rows with `f0 = v1` and `f1 = v1` are wrong with another probability than all others.
fn planted(seed: u64, rows: usize, (usual, inside): (u64, u64)) -> Small {
    let mut small = random_table(seed, rows, 5, 4);
    let mut draw = random(seed ^ 0xabc);
    for row in 0..rows {
        let probability = if small.codes[0][row] == 1 && small.codes[1][row] == 1 { inside } else { usual };
        small.errors[row] = f64::from(u8::from(draw(1000) < probability));
    }
    small
}

/// Proves by simulation that on clean data at most one search in twenty confirms anything, for errors of 0 and 1 and
/// for numbers, although its finds look bad on the searched rows.
#[test]
fn clean_data_confirms_nothing() {
    let of = |seed: u64| Settings { seed, alpha: 0.99, min_support: Some(20), ..Settings::default() };
    for is_binary in [true, false] {
        let (mut alarms, mut looked_bad) = (0, 0);
        let tables = 200;
        for seed in 0..tables {
            let mut small = random_table(seed, 1200, 5, 4);
            if !is_binary {
                let mut draw = random(seed ^ 0xdef);
                small.errors.iter_mut().for_each(|error| *error = (draw(1000) as f64 / 500.0).powi(3));
            }
            let answer = find(small.frame(), &roles(), &of(seed), None, &quiet()).unwrap();
            assert!(!answer.slices.is_empty());
            alarms += usize::from(answer.slices.iter().any(|slice| slice.verdict == SliceVerdict::Confirmed));
            looked_bad += usize::from(answer.slices[0].average_error > 1.3 * answer.searched.average_error);
        }
        // 5 % of 200 are 10; three standard deviations above that is 19.
        assert!(alarms <= 19, "{alarms} of {tables} clean tables");
        assert!(looked_bad > 100, "{looked_bad}");
    }
}

/// Proves by simulation that a planted blind spot is found first and confirmed, and that of what is confirmed at most
/// one in twenty is false: a slice is true that truly has more error than the whole.
#[test]
fn planted_slices_are_confirmed() {
    let (mut found, mut confirmed, mut wrong) = (0, 0, 0.0);
    let tables = 60;
    for seed in 0..tables {
        let small = planted(seed, 4000, (150, 450));
        let answer =
            find(small.frame(), &roles(), &Settings { seed, ..Settings::default() }, None, &quiet()).unwrap();
        let is = |slice: &ErrorSlice, name: &str| {
            slice.predicate.get(name).is_some_and(|it| it.as_deref() == Some("v1"))
        };
        let first = &answer.slices[0];
        let is_planted = is(first, "f0") && is(first, "f1");
        found += usize::from(is_planted && first.verdict == SliceVerdict::Confirmed);
        let sure: Vec<&ErrorSlice> =
            answer.slices.iter().filter(|slice| slice.verdict == SliceVerdict::Confirmed).collect();
        // Another value of either column rules the blind spot out.
        let is_false = |slice: &&&ErrorSlice| {
            ["f0", "f1"].iter().any(|name| slice.predicate.contains_key(*name) && !is(slice, name))
                || !["f0", "f1"].iter().any(|name| is(slice, name))
        };
        confirmed += sure.len();
        wrong += sure.iter().filter(is_false).count() as f64 / sure.len().max(1) as f64;
    }
    assert!(found >= 57, "{found} of {tables}");
    assert!(confirmed >= 2 * found, "{confirmed}");
    assert!(wrong / tables as f64 <= 0.05, "{}", wrong / tables as f64);
}

/// Proves that with a baseline the slice where the candidate is worse is found though it is better on the whole, that
/// slices where both are equally bad are not, and that two equal models give no slice.
#[test]
fn worse_than_the_baseline() {
    let small = planted(3, 6000, (100, 500));
    let mut draw = random(99);
    // Both err much where f2 = v0; the baseline errs more than the candidate everywhere but in the planted slice.
    let noisy =
        |row: usize, own: f64| if small.codes[2][row] == 0 && row.is_multiple_of(2) { 1.0 } else { own };
    let candidate: Vec<f64> = (0..6000).map(|row| noisy(row, small.errors[row])).collect();
    let baseline: Vec<f64> = (0..6000).map(|row| noisy(row, f64::from(u8::from(draw(1000) < 200)))).collect();
    let frame = |candidate: &[f64]| {
        let mut columns = small.frame().into_columns();
        columns.pop();
        columns.push(numbers("error", candidate.to_vec()));
        columns.push(numbers("old", baseline.clone()));
        Frame::of_columns(columns)
    };
    let roles = Roles { baseline: Some("old".to_owned()), ..roles() };
    let answer = find(frame(&candidate), &roles, &Settings::default(), None, &quiet()).unwrap();
    let first = &answer.slices[0];
    assert_eq!((first.verdict, first.test), (SliceVerdict::Confirmed, Some(Test::Sign)));
    let predicate: Vec<(&str, Option<&str>)> =
        first.predicate.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    assert_eq!(predicate[..2], [("f0", Some("v1")), ("f1", Some("v1"))]);
    assert!(answer.held_out.unwrap().average_error < 0.0, "{answer:?}");
    let blames_noise = |slice: &&ErrorSlice| slice.predicate.len() == 1 && slice.predicate.contains_key("f2");
    let sure = answer.slices.iter().filter(|slice| slice.verdict == SliceVerdict::Confirmed);
    assert_eq!(sure.filter(blames_noise).count(), 0);
    let same = find(frame(&baseline), &roles, &Settings::default(), None, &quiet()).unwrap();
    assert!(same.slices.is_empty());
}

/// Proves that rows that come in groups of copies confirm nothing by being many, where the groups are named.
#[test]
fn copies_confirm_nothing() {
    let (mut alone, mut grouped) = (0, 0);
    for seed in 0..40 {
        let small = random_table(seed, 400, 5, 4);
        let copied = |values: &[u64]| values.iter().flat_map(|value| [*value; 10]).collect::<Vec<_>>();
        let copies = Small {
            codes: small.codes.iter().map(|codes| copied(codes)).collect(),
            errors: small.errors.iter().flat_map(|error| [*error; 10]).collect(),
        };
        let mut columns = copies.frame().into_columns();
        columns.push(numbers("who", (0..4000).map(|row| f64::from(row / 10)).collect()));
        let frame = Frame::of_columns(columns);
        let settings = Settings { seed, ..Settings::default() };
        let confirms = |roles: &Roles| {
            let answer = find(frame.clone(), roles, &settings, None, &quiet()).unwrap();
            usize::from(answer.slices.iter().any(|slice| slice.verdict == SliceVerdict::Confirmed))
        };
        alone += confirms(&Roles { skip: vec!["who".to_owned()], ..roles() });
        grouped += confirms(&Roles { group: Some("who".to_owned()), ..roles() });
    }
    assert!(grouped <= 5, "{grouped} of 40");
    assert!(alone > 30, "{alone} of 40");
}

/// Proves how slices are compared with an earlier result: new, worse, gone; and that bins stay the earlier ones.
#[test]
fn since_an_earlier_answer() {
    let table = |probabilities: [u64; 3]| {
        let mut draw = random(4);
        let rows = 8000;
        let (mut codes, mut errors, mut ages) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rows {
            let code = draw(8);
            let probability = probabilities.get(code as usize).copied().unwrap_or(100);
            codes.push(code);
            ages.push(draw(60) as f64);
            errors.push(f64::from(u8::from(draw(1000) < probability)));
        }
        Frame::of_columns(vec![
            texts("f0", codes.into_iter()),
            numbers("age", ages),
            numbers("error", errors),
        ])
    };
    let settings = Settings { top: 2, max_level: 1, ..Settings::default() };
    let before = find(table([400, 300, 100]), &roles(), &settings, None, &quiet()).unwrap();
    let earlier: EarlierAnswer = serde_json::from_str(&serde_json::to_string(&before).unwrap()).unwrap();
    let after = find(table([600, 100, 350]), &roles(), &settings, Some(&earlier), &quiet()).unwrap();
    let changes: Vec<(Option<&str>, Option<SliceChange>)> =
        after.slices.iter().map(|slice| (slice.predicate["f0"].as_deref(), slice.change)).collect();
    assert_eq!(changes, [(Some("v0"), Some(SliceChange::Worse)), (Some("v2"), Some(SliceChange::New))]);
    assert_eq!(after.resolved.len(), 1);
    assert_eq!(
        (after.resolved[0].predicate["f0"].as_deref(), after.resolved[0].change),
        (Some("v1"), Some(SliceChange::Resolved))
    );
    assert!(after.resolved[0].earlier_average_error.unwrap() > 0.2 && after.resolved[0].average_error < 0.15);
    let edges = |answer: &Answer| answer.features.iter().find(|it| it.name == "age").unwrap().edges.clone();
    assert_eq!(edges(&after), edges(&before));
}
