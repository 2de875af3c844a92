//! How uneven the classes of a label are, and what to do about it.

use serde::{Deserialize, Serialize};

/// The largest class this many times the smallest: nothing has to be done below.
pub const RATIO_MILD: f64 = 3.0;
/// Weights or sampling are advised from here on.
pub const RATIO_UNEVEN: f64 = 10.0;
/// From here on weights of thousands would drown everything else.
pub const RATIO_EXTREME: f64 = 100.0;
/// A class of fewer rows cannot be learned or measured.
pub const ROWS_MIN: u64 = 10;
/// How fast new rows of a class stop adding information: the value that Cui et al. found best on long-tailed data.
pub const BETA: f64 = 0.9999;
/// The focusing parameter of the focal loss in its paper.
pub const FOCAL_GAMMA: f64 = 2.0;

/// One class, as measured and as it should be weighed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClassBalance {
    pub name: String,
    /// Rows that bear it.
    pub rows: u64,
    /// Its fraction of all rows, 0 to 1.
    pub fraction: f64,
    /// How many rows it is worth, new rows overlapping old ones: (1 − βⁿ) / (1 − β) (Cui et al. 2019, arXiv 1901.05555).
    pub effective_rows: f64,
    /// Weight in the loss: rows / (classes × rows of the class), as scikit-learn's `class_weight="balanced"`.
    pub balanced_weight: f64,
    /// Weight in the loss by effective rows, the weights of all classes adding up to their number (the same paper).
    pub effective_weight: f64,
    /// Probability with which each of its rows is drawn so that classes come equally often; over all rows they add up
    /// to 1.
    pub sampling_probability: f64,
}

/// The classes of a label together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ImbalanceReport {
    /// Classes, the largest first.
    pub classes: Vec<ClassBalance>,
    /// Rows with a label.
    pub rows: u64,
    /// Rows of the largest class for one of the smallest.
    pub ratio: f64,
    /// Entropy of the fractions over that of even ones: 1 is even, 0 is one class.
    pub evenness: f64,
    /// What a model reaches that always answers the largest class.
    pub majority_accuracy: f64,
    /// How bad it is.
    pub level: Level,
    /// What to do, most useful first; empty when nothing is.
    pub advice: Vec<String>,
}

/// How uneven classes are.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[schemars(rename = "ImbalanceLevel")]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Below 3 to 1.
    Even,
    /// Below 10 to 1.
    Mild,
    /// Below 100 to 1.
    Uneven,
    /// Beyond.
    Extreme,
}

/// Measures classes by their rows. Classes without rows are left out: they are a matter of the schema. `None` without
/// rows.
#[must_use]
pub fn imbalance(counts: &[(String, u64)]) -> Option<ImbalanceReport> {
    let mut present: Vec<&(String, u64)> = counts.iter().filter(|(_, rows)| *rows > 0).collect();
    present.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let (largest, smallest) = (present.first()?.1, present.last()?.1);
    let rows: u64 = present.iter().map(|(_, rows)| rows).sum();
    let classes = balances(&present, rows);
    let ratio = largest as f64 / smallest as f64;
    let level = level(ratio);
    let mut report = ImbalanceReport {
        rows,
        ratio,
        evenness: evenness(&classes),
        majority_accuracy: largest as f64 / rows as f64,
        level,
        advice: Vec::new(),
        classes,
    };
    report.advice = advice(&report);
    Some(report)
}

fn balances(present: &[&(String, u64)], rows: u64) -> Vec<ClassBalance> {
    let count = present.len() as f64;
    let inverse: f64 = present.iter().map(|(_, rows)| 1.0 / effective_rows(*rows)).sum();
    let balance = |(name, class_rows): &(String, u64)| ClassBalance {
        name: name.clone(),
        rows: *class_rows,
        fraction: *class_rows as f64 / rows as f64,
        effective_rows: effective_rows(*class_rows),
        balanced_weight: rows as f64 / (count * *class_rows as f64),
        effective_weight: count / effective_rows(*class_rows) / inverse,
        sampling_probability: 1.0 / (count * *class_rows as f64),
    };
    present.iter().map(|class| balance(class)).collect()
}

fn effective_rows(rows: u64) -> f64 {
    // `1 − βⁿ` by way of logarithms: exact for one row, and for more than fit 32 bits.
    -(rows as f64 * BETA.ln()).exp_m1() / (1.0 - BETA)
}

/// Pielou's evenness: Shannon entropy over its largest value. One class alone is not even.
fn evenness(classes: &[ClassBalance]) -> f64 {
    if classes.len() < 2 {
        return 0.0;
    }
    let entropy: f64 = classes.iter().map(|class| -class.fraction * class.fraction.ln()).sum();
    entropy / (classes.len() as f64).ln()
}

fn level(ratio: f64) -> Level {
    if ratio < RATIO_MILD {
        Level::Even
    } else if ratio < RATIO_UNEVEN {
        Level::Mild
    } else if ratio < RATIO_EXTREME {
        Level::Uneven
    } else {
        Level::Extreme
    }
}

fn advice(report: &ImbalanceReport) -> Vec<String> {
    let mut advice = Vec::new();
    if report.classes.len() == 1 {
        return vec!["the label has only one class: there is nothing to learn".into()];
    }
    let rare: Vec<&str> = report
        .classes
        .iter()
        .filter(|class| class.rows < ROWS_MIN)
        .map(|class| class.name.as_str())
        .collect();
    if !rare.is_empty() {
        advice.push(format!(
            "classes of fewer than {ROWS_MIN} rows can be neither learned nor measured ({}): collect more, or merge them",
            rare.join(", ")
        ));
    }
    if report.level >= Level::Mild {
        advice.push(format!(
            "use recall and precision per class: always predicting `{}` has an accuracy of {:.1} %",
            report.classes[0].name,
            report.majority_accuracy * 100.0
        ));
        advice.push("stratify splits, so that every part has every class".into());
    }
    match report.level {
        Level::Even | Level::Mild => {}
        Level::Uneven => advice.push("weigh the loss by class: `balanced_weight`".into()),
        Level::Extreme => {
            advice.push(
                "weigh the loss by effective rows (`effective_weight`): balanced weights are too steep"
                    .into(),
            );
            advice.push(format!(
                "or use the focal loss with γ = {FOCAL_GAMMA} and those weights as α (Lin et al. 2017, arXiv 1708.02002)"
            ));
            advice.push(
                "or draw rows by `sampling_probability`, which repeats rare rows: watch them for overfitting"
                    .into(),
            );
        }
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(counts: &[u64]) -> ImbalanceReport {
        let named: Vec<(String, u64)> =
            counts.iter().enumerate().map(|(number, rows)| (format!("class {number}"), *rows)).collect();
        imbalance(&named).unwrap()
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
    }

    /// Proves the balanced weights that scikit-learn 1.7 computes: `compute_class_weight("balanced", …)` over labels
    /// with 90, 10; 37155, 11687 (Adult); and 50, 30, 20 rows.
    #[test]
    fn weights_are_those_of_scikit_learn() {
        for (counts, weights) in [
            (vec![90, 10], vec![0.555_555_555_555_555_6, 5.0]),
            (vec![37_155, 11_687], vec![0.657_273_583_636_118_9, 2.089_586_720_287_499]),
            (
                vec![50, 30, 20],
                vec![0.666_666_666_666_666_6, 1.111_111_111_111_111_2, 1.666_666_666_666_666_7],
            ),
        ] {
            for (class, weight) in report(&counts).classes.iter().zip(weights) {
                assert!(close(class.balanced_weight, weight), "{class:?}");
            }
        }
    }

    /// Proves effective rows at their ends: one row is worth one, and no class is worth more than 1 / (1 − β);
    /// weights add up to the number of classes, sampling makes classes equal.
    #[test]
    fn effective_rows_saturate() {
        assert!(close(effective_rows(1), 1.0));
        assert!(close(effective_rows(u64::MAX), 10_000.0));
        assert!(close(effective_rows(5_000), (1.0 - 0.9999_f64.powi(5_000)) / 0.0001));
        let report = report(&[100_000, 1_000, 100]);
        let sum: f64 = report.classes.iter().map(|class| class.effective_weight).sum();
        assert!(close(sum, 3.0));
        for class in &report.classes {
            assert!(close(class.sampling_probability * class.rows as f64, 1.0 / 3.0));
        }
    }

    /// Proves levels at their borders, evenness at its ends, and that advice grows with the level.
    #[test]
    fn levels_have_their_borders() {
        for (counts, level) in [
            (&[100, 100][..], Level::Even),
            (&[299, 100], Level::Even),
            (&[300, 100], Level::Mild),
            (&[1_000, 100], Level::Uneven),
            (&[10_000, 100], Level::Extreme),
        ] {
            assert_eq!(report(counts).level, level, "{counts:?}");
        }
        assert!(close(report(&[7, 7, 7]).evenness, 1.0) && report(&[10]).evenness == 0.0);
        assert!(report(&[100, 90]).advice.is_empty());
        assert!(report(&[10_000, 100]).advice.iter().any(|line| line.contains("focal loss")));
        assert!(report(&[100, 90, 3]).advice[0].contains("class 2"));
        assert!(report(&[100]).advice[0].contains("only one class"));
        assert_eq!(imbalance(&[("empty".into(), 0)]), None);
    }
}
