//! Whether a data set still has the distribution of another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::checks::Verdict;
use trackway_core::closed_list;
use trackway_core::text::counted;
use trackway_statistics::Interval;

use crate::profile::ValueCount;
use crate::reading::ColumnType;

/// From this fraction of drifted features on, the data as a whole has drifted (Evidently takes the same).
pub const DRIFTED_SHARE_BLOCKS: f64 = 0.5;

/// The largest fraction of false alarms among the alarms.
pub const FALSE_DISCOVERY_RATE: f64 = 0.01;

/// Two data sets compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriftReport {
    /// `block`: a model of the reference does not fit the current data; `warn`: something drifted; `pass`: nothing did.
    pub verdict: Verdict,
    pub reference_rows: u64,
    /// Rows of the current data.
    pub current_rows: u64,
    /// Rows of the reference whose numbers were compared, where it was a sample.
    #[serde(default)]
    pub reference_rows_sampled: Option<u64>,
    /// Rows of the current data whose numbers were compared, where it was a sample.
    #[serde(default)]
    pub current_rows_sampled: Option<u64>,
    /// Columns of both sides that were compared, in the reference's order; the label is among them with its role.
    pub columns: Vec<ColumnDrift>,
    /// Columns of both sides that were not compared, with the reason.
    #[serde(default)]
    pub set_apart: Vec<SetApart>,
    /// Columns that only one side has, or whose type changed, other than between whole numbers and numbers.
    pub schema_changes: Vec<SchemaChange>,
    /// What blocks, a sentence for each kind; empty if nothing does.
    #[serde(default)]
    pub blocked_by: Vec<String>,
    pub drifted_features: usize,
    /// Whether the label drifted; `None` without one on both sides.
    pub label_drifted: Option<bool>,
    /// Whether a model separates the rows of the sides; `None` if that was not requested: it needs rows of both.
    #[serde(default)]
    pub joint: Option<JointDrift>,
}

impl DriftReport {
    /// With the answer of a model that separates the rows of the sides.
    #[must_use]
    pub fn with_joint(self, joint: JointDrift) -> Self {
        Self { joint: Some(joint), ..self }.judged()
    }

    /// With the verdict that its columns, and the model that separates the rows, give.
    #[must_use]
    pub fn judged(self) -> Self {
        let joint = self.joint.as_ref().is_some_and(|joint| joint.drifted);
        let is_changed = !self.schema_changes.is_empty() || self.columns.iter().any(|column| column.drifted);
        let blocked_by = self.what_blocks();
        let verdict = match blocked_by.is_empty() {
            false => Verdict::Block,
            true if joint || is_changed => Verdict::Warn,
            true => Verdict::Pass,
        };
        Self { verdict, blocked_by, ..self }
    }

    /// Whether a model of the reference does not fit the current data: a column that it has is gone, of another type or without
    /// a value, its label has other values, or at least [`DRIFTED_SHARE_BLOCKS`] of its features drifted.
    #[must_use]
    pub fn blocks(&self) -> bool {
        !self.what_blocks().is_empty()
    }

    /// The compared columns that are features.
    #[must_use]
    pub fn feature_count(&self) -> usize {
        self.columns.iter().filter(|column| column.role == Role::Feature).count()
    }

    /// How many of the features drifted, such as `2 of 3 features drifted`.
    #[must_use]
    pub fn drifted_of_features(&self) -> String {
        format!("{} of {} drifted", self.drifted_features, counted(self.feature_count() as u64, "feature"))
    }

    fn what_blocks(&self) -> Vec<String> {
        let lost = self.schema_changes.iter().filter(|change| change.blocks());
        let (gone, changed): (Vec<_>, Vec<_>) = lost.partition(|change| change.current.is_none());
        let emptied = self.columns.iter().filter(|column| column.is_emptied()).count();
        let of = |count: usize, one: &str, more: &str| {
            let verb = if count == 1 { one } else { more };
            (count > 0).then(|| format!("{} {verb}", counted(count as u64, "column")))
        };
        let label = self.columns.iter().find(|column| column.role == Role::Label);
        let other_labels = label.filter(|label| label.drifted && label.has_unknown_labels());
        let have_drifted = self.drifted_features > 0
            && self.drifted_features as f64 >= self.feature_count() as f64 * DRIFTED_SHARE_BLOCKS;
        let sentences = [
            of(gone.len(), "is gone", "are gone"),
            of(changed.len(), "changed its type", "changed their type"),
            of(emptied, "lost all its values", "lost all their values"),
            other_labels.map(|_| "the label has values that the reference does not have".to_owned()),
            have_drifted.then(|| self.drifted_of_features()),
        ];
        sentences.into_iter().flatten().collect()
    }
}

/// A column that is not the same column any more: missing on a side, or of another type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "IncomparableColumn")]
pub struct SchemaChange {
    /// The column.
    pub name: String,
    /// Its type in the reference; `None` where it is not there.
    pub reference: Option<ColumnType>,
    /// Its type in the current data; `None` where it is not there.
    pub current: Option<ColumnType>,
}

impl SchemaChange {
    /// Whether what was made for the reference does not fit any more: a column that it has is gone or of another type.
    #[must_use]
    pub fn blocks(&self) -> bool {
        self.reference.is_some()
    }
}

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ColumnRole")]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// An input of the model.
    Feature,
    /// What is predicted.
    Label,
}

/// One column of both data sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnDrift {
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The distance that decides.
    pub test: DriftTest,
    /// That distance.
    pub statistic: f64,
    /// What it must exceed.
    pub threshold: f64,
    /// What two samples of the reference of these sizes stay below in 99 of 100 cases.
    pub noise: f64,
    /// Of both sides having one distribution (Kolmogorov–Smirnov for numbers, chi-square for categories).
    pub p_value: f64,
    /// Corrected for the number of tests.
    pub adjusted_p_value: f64,
    /// Whether the values, or the fraction of missing ones, drifted, or too many values are unknown to the reference.
    pub drifted: bool,
    pub distances: Distances,
    /// Missing values.
    pub missing: MissingDrift,
    /// Rows whose value the reference does not have; of columns that are compared value by value.
    #[serde(default)]
    pub unknown: Option<UnknownValues>,
    /// How many values the reference does not have; only where every value of it is known.
    #[serde(default)]
    pub new_value_count: u64,
    /// The most frequent of them, at most 10.
    pub new_values: Vec<ValueCount>,
    /// How many values the current data no longer has.
    #[serde(default)]
    pub removed_value_count: u64,
    /// The most frequent of them, at most 10.
    pub removed_values: Vec<ValueCount>,
    /// Whether each new value is a gone one written differently (case, blanks, a full stop): a matter of encoding.
    pub only_spelling: bool,
}

impl ColumnDrift {
    /// Whether the distance of its values matters and is significant.
    #[must_use]
    pub fn values_drifted(&self) -> bool {
        self.test != DriftTest::MissingFraction
            && self.adjusted_p_value <= FALSE_DISCOVERY_RATE
            && self.statistic > self.threshold
    }

    /// Whether more rows than expected have a value that the reference does not have.
    #[must_use]
    pub fn unknown_drifted(&self) -> bool {
        self.unknown.is_some_and(|unknown| unknown.drifted)
    }

    /// Whether it had values and has none any more.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.test == DriftTest::MissingFraction
            && self.missing.drifted
            && self.missing.current_fraction > self.missing.reference_fraction
    }

    /// Whether it is a label with values that the reference does not have.
    #[must_use]
    pub fn has_unknown_labels(&self) -> bool {
        self.role == Role::Label && !self.new_values.is_empty()
    }
}

/// How missing values changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingDrift {
    /// Fraction of the reference's rows without a value; NaN counts as none.
    pub reference_fraction: f64,
    /// Fraction of the current rows without a value.
    pub current_fraction: f64,
    /// Of both fractions being the same.
    pub p_value: f64,
    /// Corrected for the number of tests.
    pub adjusted_p_value: f64,
    /// Whether the change matters and is significant.
    pub drifted: bool,
}

closed_list!(
    /// The distance that decides about a column.
    DriftTest, "distance", {
        /// Of two distribution functions.
        KolmogorovSmirnov = "kolmogorov_smirnov",
        /// In standard deviations of the reference.
        Wasserstein = "wasserstein",
        /// From the chi-square statistic.
        CramersV = "cramers_v",
        /// In bits, its root.
        JensenShannon = "jensen_shannon",
        /// The largest change of a value's fraction.
        LInfinity = "l_infinity",
        /// The change of the fraction of missing values: a side has no value.
        MissingFraction = "missing_fraction",
    }
);

/// Every distance that makes sense for the column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distances {
    /// Numbers and times.
    pub kolmogorov_smirnov: Option<f64>,
    /// Numbers and times, in standard deviations of the reference.
    pub wasserstein: Option<f64>,
    /// Categories.
    pub cramers_v: Option<f64>,
    /// Over the values of a category, or ten bins with equal fractions of the reference.
    pub jensen_shannon: Option<f64>,
    /// Over the same.
    pub population_stability_index: Option<f64>,
    /// Over the same.
    pub l_infinity: Option<f64>,
}

/// Rows of the current data with a value that the reference does not have. Missing values are none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownValues {
    /// Rows with such a value.
    pub rows: u64,
    /// Their fraction of the current rows with a value.
    pub fraction: f64,
    /// The fraction that is expected of samples of one distribution: rare values are missing in some of them.
    pub expected_fraction: f64,
    /// Whether every value of both sides is known; else the numbers are about.
    pub is_exact: bool,
    /// At most the probability of so many such rows in samples of one distribution; null where not every value is known.
    pub p_value: Option<f64>,
    /// Corrected for the number of tests.
    pub adjusted_p_value: Option<f64>,
    /// Whether that is so much more than expected that it matters, and significant.
    pub drifted: bool,
}

closed_list!(
    /// Why a column was not compared.
    ApartReason, "reason for setting a column apart", {
        /// It was not to be compared.
        Skipped = "skipped",
        /// It names a row or what rows belong to.
        Identifier = "identifier",
        /// It says when a row came about.
        Time = "time",
        /// Nearly every row has another text.
        FreeText = "free_text",
        /// Neither side has a value.
        NoValues = "no_values",
        /// There is no distance for such values.
        NotComparable = "not_comparable",
    }
);

/// A column of both sides that was not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ColumnSetApart")]
pub struct SetApart {
    /// The column.
    pub name: String,
    pub reason: ApartReason,
    /// The same, with what shows it.
    pub why: String,
}

/// How well a model separates the sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JointDrift {
    /// Area under the ROC curve for held-out rows: 0.5 is random, 1 is certain.
    pub area: f64,
    /// Its 95 % interval (DeLong 1988), as `low` and `high`.
    #[serde(flatten)]
    pub interval: Interval,
    /// The probability of so large an area if the sides are alike, from models of permuted sides; `None` if the area is
    /// too small to matter, and no such models were trained.
    pub p_value: Option<f64>,
    /// Whether the sides differ.
    pub drifted: bool,
    /// The columns that separate them with their fraction of the gain, largest first.
    pub columns: Vec<ColumnImportance>,
    /// Columns that were left out, with the reason.
    pub skipped: Vec<String>,
    /// Rows of the reference that were looked at.
    pub reference_rows: u64,
    /// Rows of the current data that were looked at.
    pub current_rows: u64,
}

/// What a column contributes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnImportance {
    pub name: String,
    /// Its fraction of all gain, 0 to 1.
    pub importance: f64,
}
