use serde_json::Value as Json;
use trackway_core::checks::Verdict;
use trackway_core::{RunId, Timestamp};

use crate::value::record;

record!(
    /// The result of one check before a run was launched. Append-only; a run without rows was launched without
    /// pre-flight.
    PreflightCheckRow, "preflight_checks", key ["run_id", "check_name"], {
        /// The run.
        run_id: RunId,
        /// The check, such as `data.label`.
        check_name: String,
        /// Its place in the report, counted from 1.
        place: u32,
        /// pass, warn, block, not_run or not_applicable.
        verdict: Verdict,
        /// Whether it prevents the launch: it blocks, or was required and could not run.
        blocks: bool,
        /// How long it took.
        seconds: Option<f64>,
        /// Why it did not run or does not apply; if it passed, what it checked.
        why: Option<String>,
        /// Why it was skipped, as given by the person that skipped it.
        skipped_why: Option<String>,
        /// Number of findings, including notes.
        finding_count: u32,
        /// Its findings, worst first, as in `trackway preflight --json`.
        findings_json: Option<Json>,
        /// When it was recorded.
        at: Timestamp,
    }
);

record!(
    /// How far one column of a data set was from what it was compared with before a run was launched. Append-only.
    DriftResultRow, "drift_results", key ["run_id", "data_set", "compared_with", "column_name"], {
        /// The run.
        run_id: RunId,
        /// The data set's name in the run file.
        data_set: String,
        /// What it was compared with: reference (of the run file), last_good_run or training_set.
        compared_with: String,
        /// The column.
        column_name: String,
        /// The path of the reference, or the name of the data set there.
        reference: String,
        /// The run whose data was the reference; null for other references.
        reference_run_id: Option<RunId>,
        /// Rows of the reference.
        reference_rows: u64,
        /// Rows of the data set.
        rows: u64,
        /// feature or label.
        role: String,
        /// The distance that decides, such as kolmogorov_smirnov; null if the column cannot be compared.
        test: Option<String>,
        /// That distance.
        statistic: Option<f64>,
        /// What it must exceed to count as drift.
        threshold: Option<f64>,
        /// The p-value, corrected for the number of columns.
        p_value: Option<f64>,
        /// Fraction of missing values now, minus the fraction in the reference.
        missing_change: Option<f64>,
        /// block if the reference or the last good run has the column and it is gone or of another type; warn if it
        /// drifted, is new, or differs so from the training set; otherwise pass.
        verdict: Verdict,
        /// Why a column that cannot be compared warns.
        why: Option<String>,
        /// When it was recorded.
        at: Timestamp,
    }
);
