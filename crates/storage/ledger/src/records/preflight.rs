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
