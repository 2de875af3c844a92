//! What can be known before a run costs anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::checks::{CheckResult, Verdict};
use trackway_core::{RunId, closed_list};
use trackway_results::drift::DriftReport;
use trackway_rules::preflight::cost::CostEstimate;
use trackway_rules::preflight::imbalance::ImbalanceReport;
use trackway_rules::preflight::memory::MemoryReport;

/// The result of all checks before a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreflightReport {
    /// The name of the run file's run.
    pub name: String,
    /// The verdict of all checks together.
    pub verdict: Verdict,
    /// Whether it was stopped before every check was done.
    pub stopped: bool,
    /// Every check, in a fixed order.
    pub checks: Vec<CheckResult>,
    /// Checks that were skipped on request.
    pub skipped: Vec<Skipped>,
    /// Checks that block if they cannot run.
    pub required: Vec<String>,
    /// What the checks were expected to take.
    pub quote: Quote,
    /// What they took.
    pub seconds: f64,
    /// The expected cost of the run; null without price and hours.
    pub cost: Option<CostEstimate>,
    /// Data sets beside what they were compared with, for the ledger (`drift_results`).
    #[serde(skip)]
    pub drift: Vec<DriftComparison>,
    /// The class imbalance of the training set's label; null without classes.
    pub imbalance: Option<ImbalanceReport>,
    /// The device memory that the run needs; null without a model.
    pub memory: Option<MemoryReport>,
    pub rehearsals: Vec<RunId>,
    /// Distributions for pages; `trackway data profile` has the statistics.
    #[serde(skip)]
    pub charts: Vec<ColumnChart>,
}

impl PreflightReport {
    /// The checks that forbid the launch.
    #[must_use]
    pub fn blocked_by(&self) -> Vec<&str> {
        let blocks = |result: &&CheckResult| self.blocks(result);
        self.checks.iter().filter(blocks).map(|result| result.name.as_str()).collect()
    }

    /// Whether this check alone forbids the launch.
    #[must_use]
    pub fn blocks(&self, result: &CheckResult) -> bool {
        let is_required = || self.required.contains(&result.name);
        let was_skipped = || self.skipped.iter().any(|skipped| skipped.check == result.name);
        match result.verdict {
            Verdict::Block => true,
            Verdict::NotRun => is_required() && !was_skipped(),
            Verdict::Pass | Verdict::Warn | Verdict::NotApplicable => false,
        }
    }
}

closed_list!(
    /// What the data of a run is compared with before the launch.
    DriftReference, "reference of a comparison", {
        /// The reference that the run file names.
        Reference = "reference",
        /// The same data set of the last good run of the same name.
        LastGoodRun = "last_good_run",
        /// The training set of the run.
        TrainingSet = "training_set",
    }
);

/// A data set beside what it was compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct DriftComparison {
    /// Its name in the run file.
    pub data_set: String,
    pub compared_with: DriftReference,
    /// The path of the reference, or the name of the data set there.
    pub reference: String,
    /// The run whose data the reference is.
    pub reference_run_id: Option<RunId>,
    /// How they differ.
    pub report: DriftReport,
}

/// A check that was skipped on request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Its name.
    pub check: String,
    /// The reason that was given.
    pub why: String,
}

/// What is going to be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quote {
    /// Bytes of all reads.
    pub bytes: u64,
    /// About how long that takes.
    pub seconds: f64,
    /// The data sets.
    pub sets: Vec<SetQuote>,
}

/// A data set that is going to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetQuote {
    /// Its name in the run file.
    pub name: String,
    pub file_count: usize,
    pub size_bytes: u64,
}

/// One column of all data sets, to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnChart {
    pub name: String,
    /// Whether it is the label.
    pub is_label: bool,
    /// What the bars are for: values, or the ends of the first and the last bin.
    pub scale: Scale,
    /// The data sets, the training set first.
    pub series: Vec<Series>,
}

/// What bars are for.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Equal bins from the first number to the second; outliers are in the outermost.
    Range(f64, f64),
    /// One value a bar.
    Values(Vec<String>),
    /// Too many distinct strings to draw.
    Texts,
}

/// One data set of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The data set.
    pub set: String,
    /// The fraction of its rows without a value.
    pub missing_share: f64,
    /// About how many distinct values it has.
    pub distinct: u64,
    /// The fraction of its values in each bar.
    pub shares: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use trackway_core::checks::{Finding, NoRows, Severity};

    use super::*;

    /// Proves that a check which blocks forbids the launch, and so does a required one that could not run, but not one that
    /// was skipped on request or makes no sense for the run.
    #[test]
    fn a_required_check_that_did_not_run_blocks() {
        let absent = Finding::new("config.seed", Severity::Block, "it is absent");
        let report = PreflightReport {
            name: "r".into(),
            verdict: Verdict::Block,
            stopped: false,
            checks: vec![
                CheckResult::not_run("data.rows", "no table"),
                CheckResult::not_run("data.drift", "no reference"),
                CheckResult::not_run("data.label", "no label"),
                CheckResult::not_applicable("media.decode", "no images"),
                CheckResult::about("config.seed", NoRows::Settings, vec![absent]),
            ],
            skipped: vec![Skipped { check: "data.drift".into(), why: "it is new".into() }],
            required: vec!["data.rows".into(), "data.drift".into(), "media.decode".into()],
            quote: Quote { bytes: 0, seconds: 0.0, sets: Vec::new() },
            seconds: 0.0,
            cost: None,
            drift: Vec::new(),
            imbalance: None,
            memory: None,
            rehearsals: Vec::new(),
            charts: Vec::new(),
        };
        assert_eq!(report.blocked_by(), ["data.rows", "config.seed"]);
    }
}
