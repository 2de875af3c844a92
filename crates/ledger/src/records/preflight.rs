use serde_json::Value as Json;
use trackway_core::checks::Verdict;
use trackway_core::{RunId, Timestamp};

use crate::value::record;

record!(
    /// What one check answered before a run was launched. Append-only; a run without rows was launched without pre-flight.
    PreflightCheckRow, "preflight_checks", key ["run_id", "check_name"], {
        /// The run.
        run_id: RunId,
        /// The check, such as `data.label`.
        check_name: String,
        /// Its place in the report, counted from 1.
        place: u32,
        /// pass, warn, block, not_run or not_applicable.
        verdict: Verdict,
        /// Whether it forbids the launch: it blocks, or was required and could not run.
        blocks: bool,
        /// How long it took.
        seconds: Option<f64>,
        /// Why it did not run or does not apply; what it looked at, where it passed.
        why: Option<String>,
        /// Why it was left out, in the words of whoever left it out.
        skipped_why: Option<String>,
        /// How many things it found, notes included.
        finding_count: u32,
        /// What it found, worst first, as in `trackway preflight --json`.
        findings_json: Option<Json>,
        /// When it was recorded.
        at: Timestamp,
    }
);
