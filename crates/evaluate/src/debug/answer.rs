//! What is asked of a model, and what comes out.

use serde::Serialize;

use crate::Estimate;
use crate::search::Loss;

/// What can be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbePart {
    /// What the model loses without a feature.
    Importance,
    /// What it predicts on average for each value of a feature.
    Dependence,
    /// What it makes of missing, mistyped and scaled values.
    Perturbations,
    /// The smallest change of a row that changes the decision.
    Counterfactuals,
}

impl ProbePart {
    /// In the order in which they are asked.
    pub const ALL: [Self; 4] =
        [Self::Importance, Self::Dependence, Self::Perturbations, Self::Counterfactuals];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Importance => "importance",
            Self::Dependence => "dependence",
            Self::Perturbations => "perturbations",
            Self::Counterfactuals => "counterfactuals",
        }
    }
}

/// How much is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeSettings {
    /// What to find out.
    pub parts: Vec<ProbePart>,
    /// Shuffles of each feature for its importance.
    pub repeats: usize,
    /// Values of each feature at which predictions are averaged.
    pub grid: usize,
    /// Rows whose own curve is in the answer.
    pub curves: usize,
    /// Rows for which the smallest change is searched.
    pub counterfactuals: usize,
    /// Features that may be changed at a time.
    pub changes_max: usize,
    /// Decides shuffles, typos and chosen rows.
    pub seed: u64,
}

impl Default for ProbeSettings {
    fn default() -> Self {
        Self {
            parts: ProbePart::ALL.to_vec(),
            repeats: 5,
            grid: 20,
            curves: 20,
            counterfactuals: 20,
            changes_max: 3,
            seed: 0,
        }
    }
}

/// What was found out.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ProbeAnswer {
    /// Rows that were asked about as they are.
    pub rows: u64,
    /// How far off predictions are computed; `None` where nothing is known to be true.
    pub loss: Option<Loss>,
    /// The mean error of the rows as they are.
    pub error: Option<Estimate>,
    /// Features by importance, the highest first; needs what is true.
    pub importance: Vec<Importance>,
    /// Curves of each feature.
    pub dependence: Vec<Dependence>,
    /// What changed values do.
    pub perturbations: Vec<Perturbation>,
    /// Smallest changes of rows; `None` where the model decides nothing, but predicts amounts.
    pub counterfactuals: Option<Vec<Counterfactual>>,
    /// Rows that the model was asked about in all.
    pub scored_rows: u64,
}

/// What a model loses without a feature: its values shuffled between rows (Breiman 2001).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Importance {
    /// The column.
    pub feature: String,
    /// By how much the mean error rises; the interval is over rows, each the mean of its repeats.
    pub increase: Estimate,
    /// The rise in each repeat.
    pub repeats: Vec<f64>,
}

/// What is predicted on average with every row's feature set to a value (Friedman 2001), and for single rows (Goldstein et
/// al. 2015).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dependence {
    /// The column.
    pub feature: String,
    /// The values, as they are shown.
    pub values: Vec<String>,
    /// One for a model that predicts numbers; for each class its share.
    pub curves: Vec<Curve>,
}

/// A curve over the values of a feature.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// The class; `None` for numbers.
    pub class: Option<String>,
    /// The mean over all rows.
    pub mean: Vec<f64>,
    /// The 10 % quantile over rows; of classes empty.
    pub low: Vec<f64>,
    /// The 90 % quantile.
    pub high: Vec<f64>,
    /// Some rows' own curves.
    pub rows: Vec<Vec<f64>>,
}

/// How values were changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PerturbationKind {
    /// Every value missing.
    Missing,
    /// Two neighbouring letters of each text changed over.
    Typo,
    /// Numbers ten times as large.
    TimesTen,
    /// Numbers a tenth.
    OverTen,
    /// Values handed to other rows.
    Shuffle,
}

/// What changed values of a feature do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Perturbation {
    /// The column.
    pub feature: String,
    /// How it was changed.
    pub kind: PerturbationKind,
    /// The share of rows that are decided otherwise; `None` where nothing is decided.
    pub flipped: Option<Estimate>,
    /// The mean change of a predicted number, without its sign; `None` for classes.
    pub shift: Option<f64>,
    /// By how much the mean error rises; `None` where nothing is known to be true.
    pub increase: Option<Estimate>,
    /// Why the model did not answer such rows. Others are not concerned.
    pub refused: Option<String>,
}

/// The smallest change of a row that was found to change the decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counterfactual {
    /// The row, from 0 in what was drawn.
    pub row: usize,
    /// What was predicted.
    pub before: String,
    /// What is predicted with the changes; `None` where no change was found.
    pub after: Option<String>,
    /// Each change: column, value before, value after.
    pub changes: Vec<(String, Option<String>, Option<String>)>,
    /// The size of the changes: for a number the share of rows between both values, for a text 1.
    pub distance: f64,
}
