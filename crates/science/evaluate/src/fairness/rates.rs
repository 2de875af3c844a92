//! The rates of a group that measures of fairness compare.

use crate::Metrics;
use crate::error::{AssessError, Result};
use crate::metrics::cell_table;
use crate::metrics::ratio::{Link, Ratio};
use crate::metrics::rows::{Amounts, Classes, Content, Items};

pub(super) const SELECTION: &str = "selection_rate";
pub(super) const TRUE_POSITIVE: &str = "true_positive_rate";
pub(super) const FALSE_POSITIVE: &str = "false_positive_rate";
const BIAS: &str = "calibration_bias";
pub(super) const MEAN_ERROR: &str = "mae";
pub(super) const MEAN_PREDICTION: &str = "mean_prediction";

/// What is predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Two classes, of which this one is positive.
    Binary(usize),
    /// Three or more classes: each against all others.
    Classes(Vec<String>),
    /// Numbers.
    Values,
}

/// A measure of the largest difference or the least ratio between two groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measure {
    pub name: &'static str,
    /// The rates that it is over, of which the worst counts; with the class of the rate if there are several.
    pub rates: Vec<(String, Option<String>)>,
    pub is_ratio: bool,
}

impl Kind {
    /// # Errors
    /// Neither classes nor numbers are predicted.
    pub(super) fn of(items: &Items) -> Result<Self> {
        match &items.content {
            Content::Classes(rows) => Ok(match rows.positive {
                Some(positive) => Self::Binary(positive as usize),
                None => Self::Classes(rows.names.to_vec()),
            }),
            Content::Amounts(_) => Ok(Self::Values),
            Content::Sums(_) | Content::Experiment(_) | Content::Pixels(_) | Content::Boxes(_) => {
                Err(AssessError::NotFairly)
            }
        }
    }

    /// How many rates of each pair of groups a measure compares: each is one more test.
    pub(super) fn tests_of_pair(&self) -> usize {
        match self {
            Self::Binary(_) | Self::Values => 1,
            Self::Classes(names) => names.len(),
        }
    }

    /// All measures of such predictions.
    pub(super) fn measures(&self) -> Vec<Measure> {
        let of = |name, is_ratio, rates: &[&str]| Measure {
            name,
            rates: match self {
                Self::Classes(classes) => classes
                    .iter()
                    .flat_map(|class| rates.iter().map(|rate| (of_class(rate, class), Some(class.clone()))))
                    .collect(),
                Self::Binary(_) | Self::Values => {
                    rates.iter().map(|rate| ((*rate).to_owned(), None)).collect()
                }
            },
            is_ratio,
        };
        if *self == Self::Values {
            return vec![
                of("mean_error_parity", false, &[MEAN_ERROR]),
                of("mean_prediction_parity", false, &[MEAN_PREDICTION]),
            ];
        }
        let mut measures = vec![
            of("demographic_parity", false, &[SELECTION]),
            of("equal_opportunity", false, &[TRUE_POSITIVE]),
            of("equalized_odds", false, &[TRUE_POSITIVE, FALSE_POSITIVE]),
            of("demographic_parity_ratio", true, &[SELECTION]),
            of("equal_opportunity_ratio", true, &[TRUE_POSITIVE]),
            of("equalized_odds_ratio", true, &[TRUE_POSITIVE, FALSE_POSITIVE]),
        ];
        if let Self::Binary(_) = self {
            measures.insert(3, of("calibration", false, &[BIAS]));
        }
        measures
    }

    /// The rates of a group that can be computed.
    pub(super) fn rates(&self, items: &Items, confidence: f64) -> Metrics {
        let estimates = |ratios: Vec<Ratio>, cells: &[u32], kinds: usize| {
            let mut counts = vec![0.0; kinds];
            cells.iter().for_each(|cell| counts[*cell as usize] += 1.0);
            let estimate = |ratio: Ratio| {
                let estimate = ratio.estimate(cells, &counts, items.units(), confidence)?;
                Some((ratio.name, estimate))
            };
            ratios.into_iter().filter_map(estimate).collect::<Metrics>()
        };
        match (&items.content, self) {
            (Content::Classes(rows), Self::Binary(positive)) => {
                let kinds = rows.names.len() * (rows.names.len() + 1);
                estimates(of_positive(rows, *positive), &rows.cells(), kinds)
            }
            (Content::Classes(rows), _) => {
                let of = |(class, name): (u32, &String)| {
                    let (ratios, cells) = of_one_class(rows, class, name);
                    estimates(ratios, &cells, 4)
                };
                (0..).zip(rows.names.iter()).flat_map(of).collect()
            }
            (Content::Amounts(rows), _) => estimates(of_values(rows), &[], 0),
            _ => Metrics::new(),
        }
    }
}

/// The name of the rate of one class against all others.
pub(super) fn of_class(rate: &str, class: &str) -> String {
    format!("{rate}_{class}")
}

fn of_positive(rows: &Classes, positive: usize) -> Vec<Ratio> {
    let classes = rows.names.len();
    let table = |is: &dyn Fn(usize, Option<usize>) -> bool| cell_table(classes, is);
    // Without a prediction a row is wrong, whatever its label.
    let is_selected =
        |label: bool| table(&|l, p| (l == positive) == label && p.map_or(l != positive, |p| p == positive));
    let labelled = |label: bool| table(&|l, _| (l == positive) == label);
    let (all, selected) = (table(&|_, _| true), table(&|_, p| p == Some(positive)));
    let mut ratios = vec![
        Ratio::cells(SELECTION, selected, all, Link::Itself),
        Ratio::cells(TRUE_POSITIVE, is_selected(true), labelled(true), Link::Itself),
        Ratio::cells(FALSE_POSITIVE, is_selected(false), labelled(false), Link::Itself),
    ];
    if let (Some(scores), true) = (&rows.score, rows.are_probabilities) {
        let gap = |(score, label): (&f64, &u32)| score - f64::from(u8::from(*label as usize == positive));
        ratios.push(Ratio::mean_of_known(BIAS, scores.iter().zip(&rows.label).map(gap).collect()));
    }
    ratios
}

/// One class against all others: for each row whether its label (2) and its prediction (1) are of the class.
fn of_one_class(rows: &Classes, class: u32, name: &str) -> (Vec<Ratio>, Vec<u32>) {
    let kind =
        |(label, prediction): (&u32, &u32)| 2 * u32::from(*label == class) + u32::from(*prediction == class);
    let cells = rows.label.iter().zip(&rows.prediction).map(kind).collect();
    let ratio = |rate, counted: [f64; 4], of: [f64; 4]| {
        Ratio::cells(&of_class(rate, name), counted.to_vec(), of.to_vec(), Link::Itself)
    };
    let ratios = vec![
        ratio(SELECTION, [0.0, 1.0, 0.0, 1.0], [1.0; 4]),
        ratio(TRUE_POSITIVE, [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]),
        ratio(FALSE_POSITIVE, [0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]),
    ];
    (ratios, cells)
}

fn of_values(rows: &Amounts) -> Vec<Ratio> {
    let excess = || rows.label.iter().zip(&rows.prediction).map(|(label, prediction)| prediction - label);
    vec![
        Ratio::mean(MEAN_ERROR, excess().map(f64::abs).collect(), Link::Itself),
        Ratio::mean(MEAN_PREDICTION, rows.prediction.clone(), Link::Itself),
        Ratio::mean("bias", excess().collect(), Link::Itself),
    ]
}
