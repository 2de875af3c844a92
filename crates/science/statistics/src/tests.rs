//! Expected values were computed with SciPy 1.16 and scikit-learn 1.7, once.

use proptest::prelude::*;
use trackway_core::SplitMix64;

use super::*;

const REFERENCE: [f64; 4] = [10.0, 20.0, 30.0, 40.0];
const CURRENT: [f64; 4] = [15.0, 15.0, 50.0, 20.0];

fn close(found: f64, expected: f64, tolerance: f64) {
    let within = (found - expected).abs() <= tolerance * expected.abs().max(1e-300);
    assert!(within, "found {found}, expected {expected}");
}

fn sample(values: &[f64]) -> WeightedSample {
    WeightedSample::new(values.iter().map(|value| (*value, 1.0)))
}

/// Proves that distances over cells are those of SciPy, and NaN where there is nothing to compare.
#[test]
fn distances_over_cells() {
    close(jensen_shannon(&REFERENCE, &CURRENT), 0.221_255_283_554_629_56, 1e-12);
    close(jensen_shannon(&[1.0, 0.0], &[0.0, 1.0]), 1.0, 1e-12);
    close(population_stability_index(&REFERENCE, &CURRENT), 0.275_451_919_893_184_5, 1e-12);
    close(l_infinity(&REFERENCE, &CURRENT), 0.2, 1e-12);
    assert!(population_stability_index(&[1.0, 0.0], &[0.0, 1.0]).is_finite());
    for distance in [jensen_shannon, population_stability_index, l_infinity] {
        assert!(distance(&[], &[]).is_nan() && distance(&[0.0, 0.0], &[1.0, 2.0]).is_nan());
    }
}

/// Proves that distances of weighted samples are those of SciPy, ties and weights included.
#[test]
fn distances_of_samples() {
    let (one, other) =
        (sample(&[8.0, 1.0, 2.0, 2.0, 3.0, 5.0]), sample(&[2.0, 3.0, 3.0, 4.0, 9.0, 9.0, 10.0]));
    close(one.kolmogorov_smirnov(&other), 0.428_571_428_571_428_55, 1e-12);
    close(one.wasserstein(&other), 2.214_285_714_285_714_2, 1e-12);
    let weighted = WeightedSample::new([(0.0, 3.0), (1.0, 1.0), (3.0, 2.0), (f64::NAN, 9.0), (4.0, 0.0)]);
    let heavier = WeightedSample::new([(5.0, 1.0), (6.0, 1.0), (8.0, 4.0)]);
    close(weighted.wasserstein(&heavier), 6.0, 1e-12);
    assert!(sample(&[]).kolmogorov_smirnov(&one).is_nan() && sample(&[]).wasserstein(&one).is_nan());
}

/// Proves that quantiles and proportions count a value with what is at or below it.
#[test]
fn quantiles_and_proportions() {
    let found = sample(&[1.0, 2.0, 2.0, 3.0]);
    let quantiles = [0.0, 0.25, 0.26, 0.75, 0.76, 1.0].map(|share| found.quantile(share).unwrap());
    assert_eq!(quantiles, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
    assert_eq!(found.proportions(&[1.0, 2.5]), [0.25, 0.5, 0.25]);
    assert_eq!((found.proportion_up_to(0.5), found.proportion_up_to(9.0)), (0.0, 1.0));
    assert_eq!(sample(&[]).quantile(0.5), None);
}

/// Proves that Kolmogorov–Smirnov p-values are near SciPy's `kstwo`, which uses the exact distribution.
#[test]
fn kolmogorov_smirnov_p_values() {
    let cases = [
        (0.1, 100.0, 100.0, 0.662_311, 0.03),
        (0.2, 100.0, 100.0, 0.031_438_8, 0.03),
        (0.05, 1_000.0, 500.0, 0.363_818, 0.01),
        (0.02, 10_000.0, 10_000.0, 0.036_139_4, 0.005),
        (0.03, 10_000.0, 10_000.0, 0.000_241_592, 0.015),
        (0.3, 20.0, 20.0, 0.270_536, 0.05),
    ];
    for (statistic, reference_rows, current_rows, expected, tolerance) in cases {
        close(kolmogorov_smirnov_p_value(statistic, reference_rows, current_rows), expected, tolerance);
    }
    assert_eq!(kolmogorov_smirnov_p_value(0.0, 10.0, 10.0), 1.0);
    assert_eq!(kolmogorov_smirnov_p_value(1.0, 1e6, 1e6), 0.0);
    assert!(kolmogorov_smirnov_p_value(0.5, 0.0, 10.0).is_nan());
}

/// Proves that the chi-square test is SciPy's, far tails included, and refuses a table that cannot be tested.
#[test]
fn chi_square_of_tables() {
    let found = chi_square(&Table::new(&[REFERENCE.to_vec(), CURRENT.to_vec()])).unwrap();
    close(found.statistic, 13.380_952_380_952_383, 1e-12);
    close(found.p_value, 0.003_881_185_336_272_135, 1e-10);
    assert_eq!(found.degrees_of_freedom, 3);
    let with_empty = Table::new(&[vec![300.0, 10.0, 0.0], vec![2.0, 500.0, 0.0], vec![0.0; 3]]);
    let found = chi_square(&with_empty).unwrap();
    close(found.p_value, 9.651_010_147_554_61e-168, 1e-8);
    assert_eq!(found.degrees_of_freedom, 1);
    assert_eq!(chi_square(&Table::new(&[vec![1.0, 2.0]])), None);
    assert_eq!(chi_square(&Table::new(&[])), None);
}

/// Proves the corrected association against a computed value.
#[test]
fn association_of_tables() {
    let table = Table::new(&[vec![30.0, 10.0, 5.0], vec![5.0, 40.0, 10.0], vec![2.0, 8.0, 60.0]]);
    close(table.cramers_v().unwrap(), 0.637_705_194_402_989_9, 1e-12);
    let alike = Table::new(&[vec![50.0, 0.0], vec![0.0, 50.0]]);
    close(alike.cramers_v().unwrap(), 1.0, 0.02);
    assert!(Table::new(&[vec![3.0, 4.0]]).cramers_v().is_none());
}

/// Proves that independent categories, however many, have no association.
#[test]
fn independent_columns_are_not_associated() {
    let mut rng = SplitMix64::new(7);
    let mut rows = vec![vec![0.0; 2]; 200];
    for _ in 0..2_000 {
        let (row, column) = (trackway_core::Rng::next_u64(&mut rng), trackway_core::Rng::next_u64(&mut rng));
        rows[(row % 200) as usize][(column % 2) as usize] += 1.0;
    }
    let found = Table::new(&rows).cramers_v().unwrap();
    assert!(found < 0.1, "{found}");
}

/// Proves that intervals are SciPy's.
#[test]
fn intervals() {
    let cases = [
        (0.0, 10.0, (0.0, 0.277_532_799_862_889_26)),
        (3.0, 10.0, (0.107_791_267_406_301_02, 0.603_221_852_538_854_6)),
        (480.0, 1e3, (0.449_170_794_996_941_24, 0.510_982_275_342_481)),
        (10.0, 10.0, (0.722_467_200_137_110_9, 1.0)),
    ];
    for (successes, trials, score) in cases {
        let found = wilson(successes, trials, 0.95);
        close(found.low, score.0, 1e-9);
        close(found.high, score.1, 1e-9);
    }
    let mean = mean_interval(5.0, 2.0, 10.0, 0.95);
    close(mean.low, 3.569_286_188_023_319_5, 1e-7);
    close(mean.high, 6.430_713_811_976_68, 1e-7);
    assert!(mean_interval(5.0, 2.0, 1.0, 0.95).low.is_infinite());
    assert!(wilson(0.0, 0.0, 0.95).holds(0.5));
}

/// Proves the corrections on published orders, and that NaN is not a test.
#[test]
fn corrections() {
    let found = benjamini_hochberg(&[0.01, 0.04, 0.03, f64::NAN, 0.005, 0.5]);
    for (found, expected) in found.iter().zip([0.025, 0.05, 0.05, f64::NAN, 0.025, 0.5]) {
        assert!((found - expected).abs() < 1e-12 || (found.is_nan() && expected.is_nan()));
    }
    let found = holm(&[0.01, 0.04, 0.03, 0.005]);
    assert!(
        found.iter().zip([0.03, 0.06, 0.06, 0.02]).all(|(found, expected)| (found - expected).abs() < 1e-12)
    );
}

/// Proves that a floor at 99 % is exceeded by about 1 % of fresh pairs of samples, for two distances.
#[test]
fn the_noise_floor_holds_what_it_says() {
    let shares = [0.4, 0.3, 0.2, 0.06, 0.03, 0.01];
    for distance in [jensen_shannon, population_stability_index] {
        let mut rng = SplitMix64::new(11);
        let floor = noise_floor(&shares, 5_000.0, 800.0, distance, (2_000, 0.99), &mut rng);
        let exceeding =
            (0..1_000).filter(|_| noise_floor(&shares, 5_000.0, 800.0, distance, (1, 1.0), &mut rng) > floor);
        let exceeding = exceeding.count();
        assert!((1..30).contains(&exceeding), "{exceeding} of 1000");
    }
}

proptest! {
    /// Proves that distances are zero of a sample to itself, symmetric where they must be, and never negative.
    #[test]
    fn distances_are_distances(one in prop::collection::vec(0.0..1e6f64, 1..20), other in prop::collection::vec(0.0..1e6f64, 1..20)) {
        let (first, second) = (sample(&one), sample(&other));
        prop_assert!(first.kolmogorov_smirnov(&first) == 0.0 && first.wasserstein(&first) == 0.0);
        prop_assert!((first.wasserstein(&second) - second.wasserstein(&first)).abs() < 1e-6);
        prop_assert!((0.0..=1.0 + 1e-12).contains(&first.kolmogorov_smirnov(&second)));
        let cells = one.len().min(other.len());
        let (left, right) = (&one[..cells], &other[..cells]);
        prop_assert!(jensen_shannon(left, left) < 1e-7);
        prop_assert!((jensen_shannon(left, right) - jensen_shannon(right, left)).abs() < 1e-9);
        prop_assert!(population_stability_index(left, right) >= 0.0);
    }
}

/// Proves that paired counts agree with SciPy (`binomtest`, `chi2.sf`), and the interval of a difference with the example of
/// the paper that it comes from.
#[test]
fn pairs_differences_and_ratios() {
    close(mcnemar_p_value(5, 15), 0.041_389_465_332_031_25, 1e-12);
    close(mcnemar_p_value(900, 1_000), 0.023_133_919_510_755_163, 1e-12);
    close(mcnemar_p_value(0, 0), 1.0, 0.0);
    close(normal_p_value(-1.959_963_984_540_054), 0.05, 1e-10);
    // Newcombe 1998, example (a): 56/70 against 48/80, method 10.
    let side = |successes: f64, trials: f64| (successes / trials, wilson(successes, trials, 0.95));
    let difference = difference_interval(side(56.0, 70.0), side(48.0, 80.0));
    close(difference.low, 0.052_4, 1e-3);
    close(difference.high, 0.333_9, 1e-3);
    let ratio = ratio_interval(side(56.0, 70.0), side(48.0, 80.0));
    assert!(ratio.low > 1.0 && ratio.low < 1.2 && ratio.high > 1.5 && ratio.high < 1.8, "{ratio:?}");
    assert!(ratio_interval(side(5.0, 10.0), side(0.0, 10.0)).high.is_infinite());
}

/// Proves that an end that is not known is null in JSON and comes back as infinite, also where it is missing.
#[test]
fn unknown_ends_in_json() {
    let half = Interval::between(Some(0.25), None);
    let json = serde_json::to_string(&half).unwrap();
    assert_eq!(json, r#"{"low":0.25,"high":null}"#);
    assert_eq!(serde_json::from_str::<Interval>(&json).unwrap(), half);
    assert_eq!(serde_json::from_str::<Interval>("{}").unwrap(), Interval::UNKNOWN);
    assert_eq!((half.bounds(), half.known_low(), half.is_known()), (None, Some(0.25), true));
    assert_eq!(Interval::between(Some(f64::NAN), Some(f64::INFINITY)), Interval::UNKNOWN);
    let estimate = Estimate::new(0.5, half, 8, Method::Bootstrap);
    let json = serde_json::to_value(estimate).unwrap();
    assert_eq!((&json["low"], &json["high"]), (&serde_json::json!(0.25), &serde_json::Value::Null));
    assert_eq!(serde_json::from_value::<Estimate>(json).unwrap(), estimate);
    assert_eq!(Estimate::new(0.5, Interval::UNKNOWN, 8, Method::Bootstrap).method, Method::None);
}

/// Proves interval arithmetic at signs that swap the ends, and that nothing is divided by what may be zero.
#[test]
fn arithmetic_of_intervals() {
    let (one, two) = (Interval { low: -1.0, high: 2.0 }, Interval { low: 3.0, high: 4.0 });
    assert_eq!(one.plus(two), Interval { low: 2.0, high: 6.0 });
    assert_eq!(one.times(-2.0), Interval { low: -4.0, high: 2.0 });
    assert_eq!(one.product(two), Interval { low: -4.0, high: 8.0 });
    assert_eq!((one.reciprocal(), two.reciprocal()), (None, Some(Interval { low: 0.25, high: 1.0 / 3.0 })));
    assert_eq!(one.within(0.0, 1.0), Interval { low: 0.0, high: 1.0 });
}

/// Proves the exact interval of a Poisson mean at tabled values (Garwood 1936), and the summaries at numbers by hand.
#[test]
fn poisson_means_and_summaries() {
    for (count, low, high) in
        [(0.0, 0.0, 2.995_732), (1.0, 0.051_293, 4.743_865), (10.0, 5.425_405, 16.962_219)]
    {
        let found = poisson_interval(count, 0.9);
        close(found.low, low, 1e-5);
        close(found.high, high, 1e-5);
    }
    let values = [1.0, 2.0, 3.0, 6.0];
    assert_eq!((mean(&values), median(values), quantile(&values, 0.25)), (3.0, 2.5, 1.75));
    close(variance(&values), 14.0 / 3.0, 1e-12);
    close(population_variance(&values), 3.5, 1e-12);
    assert!(quantile(&[], 0.5).is_nan() && variance(&[1.0]).is_nan());
}
