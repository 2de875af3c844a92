//! What an attempt was given: its data, its parameters, what evaluates it, and what was checked before its launch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::checks::{Finding, Verdict};
use trackway_core::text::counted;
use trackway_core::{RunId, Step};

/// What an attempt was given and what shows that it took it. What a script was given does not show what it did: null means that
/// nothing shows it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct AttemptInputs {
    /// The seed of the run file.
    pub seed: Option<u64>,
    /// The seed that the script says it took.
    pub seed_seen: Option<u64>,
    /// Rows that it kept in its rung, as counted.
    pub rung_rows: Option<u64>,
    /// Rows they were kept from.
    pub rung_rows_total: Option<u64>,
    /// Batches it was to skip after a roll back, as half-open ranges.
    pub skip_batches: Option<String>,
    pub skipped_batch_count: Option<u64>,
    /// The run whose weights it started with; null: its own.
    pub warm_start_run_id: Option<RunId>,
    /// The rung whose weights it started with.
    pub warm_start_rung: Option<String>,
    /// Their step in that rung.
    pub warm_start_step: Option<Step>,
    /// SHA-256 of that checkpoint's manifest.
    pub warm_start_manifest_sha256: Option<String>,
    /// Data sets that were opened while it ran.
    #[serde(default)]
    pub data_opened: Vec<String>,
    /// Data sets whose files were watched and never opened: it did not read them. Sets in neither list could not be watched.
    #[serde(default)]
    pub data_not_opened: Vec<String>,
    /// Samples of one update of the weights, over all ranks, as its callback counted them.
    #[serde(default)]
    pub effective_batch: Option<u64>,
}

impl AttemptInputs {
    /// The weights that it began with, if it began with some.
    #[must_use]
    pub fn weights(&self) -> Option<String> {
        let (step, rung) = self.warm_start_step.zip(self.warm_start_rung.as_ref())?;
        let run = self.warm_start_run_id.map(|run_id| format!(" of {run_id}")).unwrap_or_default();
        Some(format!("weights of step {step} of {rung}{run}"))
    }

    /// The seed, and whether the script took it.
    #[must_use]
    pub fn seed_as_taken(&self) -> Option<String> {
        self.seed.map(|seed| match self.seed_seen {
            None => format!("{seed}; nothing shows that the script took it"),
            Some(seen) if seen == seed => format!("{seed}, taken by the script"),
            Some(seen) => format!("{seed}, but the script took {seen}"),
        })
    }

    /// The batches to skip, and how many the script skipped.
    #[must_use]
    pub fn batches_skipped(&self) -> Option<String> {
        self.skip_batches.as_ref().map(|ranges| match self.skipped_batch_count {
            None => format!("{ranges}; nothing shows that the script skipped them"),
            Some(count) => format!("{ranges}; {} skipped", counted(count, "batch")),
        })
    }
}

/// An evaluator, as it was when an attempt began.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EvaluatorVersion {
    /// Its name; null if its files could not be read.
    #[serde(default)]
    pub name: Option<String>,
    /// SHA-256 over its files; null if none is known.
    #[serde(default)]
    pub digest: Option<String>,
    /// Why its files could not be read; null if they could.
    #[serde(default)]
    pub why: Option<String>,
}

/// The data of an attempt; of a run that was never launched, its own.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedData {
    /// The data sets by name.
    pub sets: Vec<ExplainedDataSet>,
    /// Why the sets may not be those that the attempt read; null: they are.
    #[serde(default)]
    pub doubt: Option<String>,
}

/// A data set.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedDataSet {
    /// Its name in the run file.
    pub name: String,
    /// The hash of its content.
    pub data_sha256: String,
    pub file_count: u64,
    /// Number of its rows, if the format has rows.
    pub rows: Option<u64>,
    pub size_bytes: u64,
}

/// A parameter.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttemptParameter {
    pub name: String,
    /// Its last value.
    pub value: String,
    /// `command line` (an argument of the command), `given` (`--param`, or `[run] parameters`), or the writer of the record: `sdk`,
    /// `tensorboard`, `files`, `stdout`, `import`. Null: not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A tag.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttemptTag {
    pub name: String,
    /// Its last value.
    pub value: String,
}

/// A pre-flight check as the receipt has it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordedCheck {
    pub name: String,
    pub verdict: Verdict,
    /// Whether it forbade the launch.
    pub blocks: bool,
    /// Seconds that it took.
    pub seconds: Option<f64>,
    /// Why it did not run or does not apply; if it passed, what it checked.
    pub why: Option<String>,
    /// Why it was skipped, as given by the person who skipped it.
    pub skipped_why: Option<String>,
    /// What it found, worst first.
    pub findings: Vec<Finding>,
}

impl RecordedCheck {
    /// Whether nothing of it has to be looked at.
    #[must_use]
    pub fn passes(&self) -> bool {
        !self.blocks && matches!(self.verdict, Verdict::Pass | Verdict::NotApplicable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a script is said to have taken a seed, or to have skipped batches, only where it said so.
    #[test]
    fn what_a_script_took_is_not_claimed() {
        let seed =
            |seed, seed_seen| AttemptInputs { seed, seed_seen, ..AttemptInputs::default() }.seed_as_taken();
        assert_eq!(seed(None, Some(7)), None);
        assert_eq!(seed(Some(7), None).as_deref(), Some("7; nothing shows that the script took it"));
        assert_eq!(seed(Some(7), Some(7)).as_deref(), Some("7, taken by the script"));
        assert_eq!(seed(Some(7), Some(8)).as_deref(), Some("7, but the script took 8"));
        let skipped = |skipped_batch_count| {
            let skip_batches = Some("5..9".to_owned());
            let inputs = AttemptInputs { skip_batches, skipped_batch_count, ..AttemptInputs::default() };
            inputs.batches_skipped()
        };
        assert_eq!(skipped(None).as_deref(), Some("5..9; nothing shows that the script skipped them"));
        assert_eq!(skipped(Some(0)).as_deref(), Some("5..9; 0 batches skipped"));
        assert_eq!(skipped(Some(1)).as_deref(), Some("5..9; 1 batch skipped"));
        assert_eq!(AttemptInputs::default().batches_skipped(), None);
    }

    /// Proves that a check which did not run does not pass, nor one that forbade the launch.
    #[test]
    fn only_what_was_checked_passes() {
        let passes = |verdict, blocks| {
            let check = RecordedCheck {
                name: "data.rows".into(),
                verdict,
                blocks,
                seconds: None,
                why: None,
                skipped_why: None,
                findings: Vec::new(),
            };
            check.passes()
        };
        assert!(passes(Verdict::Pass, false) && passes(Verdict::NotApplicable, false));
        for verdict in [Verdict::Warn, Verdict::NotRun, Verdict::Block] {
            assert!(!passes(verdict, false), "{verdict}");
        }
        assert!(!passes(Verdict::Pass, true));
    }
}
