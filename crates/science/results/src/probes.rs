//! How a model uses its inputs: what probes of it found out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::closed_list;
use trackway_statistics::Estimate;

use crate::assessment::Residuals;
use crate::search::Loss;

closed_list!(
    /// What can be found out, in the order in which the probes run.
    ProbePart, "probe", {
        /// Its residuals, by its prediction and by feature.
        Residuals = "residuals",
        /// What the model loses without a feature.
        Importance = "importance",
        /// What it predicts on average for each value of a feature.
        Dependence = "dependence",
        /// Its predictions for missing, mistyped and scaled values.
        Perturbations = "perturbations",
        /// What small steps along its gradients do.
        Sensitivity = "sensitivity",
    }
);

/// What was found out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProbeAnswer {
    /// Rows that were scored unchanged.
    pub rows: u64,
    /// The loss of predictions; `None` without labels.
    pub loss: Option<Loss>,
    /// The mean error of the rows as they are.
    pub error: Option<Estimate>,
    /// Residuals; need labels and at least 60 rows.
    pub residuals: Option<Residuals>,
    /// Features by importance, the highest first; needs labels.
    pub importance: Vec<Importance>,
    /// Curves of each feature.
    pub dependence: Vec<Dependence>,
    /// What changed values do.
    pub perturbations: Vec<Perturbation>,
    /// What small steps do; `None` where the model gives no gradients, or predicts classes.
    pub sensitivity: Option<Sensitivity>,
    /// Why there is no answer about small steps.
    pub no_sensitivity: Option<String>,
    /// Rows that the model scored in all.
    pub scored_rows: u64,
}

/// What a model loses without a feature: its values shuffled between rows (Breiman 2001).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PermutationImportance")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PartialDependence")]
pub struct Dependence {
    /// The column.
    pub feature: String,
    /// The values, as they are shown.
    pub values: Vec<String>,
    /// One for a model that predicts numbers; for each class its fraction.
    pub curves: Vec<Curve>,
}

/// A curve over the values of a feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DependenceCurve")]
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

closed_list!(
    /// How values were changed.
    PerturbationKind, "kind of perturbation", {
        /// Every value missing.
        Missing = "missing",
        /// Two neighbouring letters of each text changed over.
        Typo = "typo",
        /// Numbers ten times as large.
        TimesTen = "times_ten",
        /// Numbers a tenth.
        OverTen = "over_ten",
        /// Values handed to other rows.
        Shuffle = "shuffle",
    }
);

impl PerturbationKind {
    /// What the change is called.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Typo => "typo",
            Self::TimesTen => "× 10",
            Self::OverTen => "÷ 10",
            Self::Shuffle => "shuffled",
        }
    }

    /// What the model was sent, as a sentence about a column says it.
    #[must_use]
    pub fn sent(self) -> &'static str {
        match self {
            Self::Missing => "missing (an empty field)",
            Self::Typo => "mistyped",
            Self::TimesTen => "ten times as large",
            Self::OverTen => "a tenth as large",
            Self::Shuffle => "that of another row",
        }
    }
}

/// What changed values of a feature do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Perturbation {
    /// The column.
    pub feature: String,
    /// How it was changed.
    pub kind: PerturbationKind,
    /// The fraction of rows with another decision; `None` if nothing is decided.
    pub flipped: Option<Estimate>,
    /// The mean change of a predicted number, without its sign; `None` for classes.
    pub shift: Option<f64>,
    /// By how much the mean error rises; `None` without labels.
    pub increase: Option<Estimate>,
    /// Why the model did not answer such rows. Others are not concerned.
    pub refused: Option<String>,
}

/// What small steps along the model's gradients do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sensitivity {
    /// Features by how steep predictions are along them, the steepest first.
    pub slopes: Vec<Slope>,
    /// Steps of each size.
    pub steps: Vec<SmallStep>,
    /// Whether the gradients are those of the predictions.
    pub check: GradientCheck,
}

/// How steep predictions are along a feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GradientSlope")]
pub struct Slope {
    /// The column.
    pub feature: String,
    /// The mean change of the prediction, without its sign, for one standard deviation of the feature.
    pub per_deviation: Estimate,
}

/// All numbers of every row moved by one size, each in the direction of its gradient: towards the other decision; for
/// regression away from the label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SmallStep {
    /// The size, in standard deviations of each feature.
    pub deviations: f64,
    /// The fraction of rows with another decision; `None` if nothing is decided.
    pub flipped: Option<Estimate>,
    /// The same for steps of the same size with random signs.
    pub flipped_at_random: Option<Estimate>,
    /// The mean change of the prediction, without its sign.
    pub shift: f64,
    /// The same for steps with random signs.
    pub shift_at_random: f64,
    /// By how much the mean error rises; `None` without labels.
    pub increase: Option<Estimate>,
}

/// The gradients beside differences of predictions a hundredth of a standard deviation to both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GradientCheck {
    /// Rows that were compared.
    pub rows: u64,
    /// How far apart both are, as a part of the larger one (root mean square).
    pub relative_error: f64,
    /// Features whose gradients are more than a tenth off.
    pub features: Vec<String>,
}
