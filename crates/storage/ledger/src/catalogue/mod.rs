//! The catalogue as a document: `docs/ledger.md` is made from it.

pub(super) mod schema;

use std::fmt::Write;

use crate::records::{TABLES, VIEWS};
use crate::value::Column;
use schema::{METRIC_COLUMNS, TELEMETRY_COLUMNS};

const INTRODUCTION: &str = include_str!("introduction.md");

/// The text of `docs/ledger.md`.
#[must_use]
pub fn document() -> String {
    let mut text = INTRODUCTION.trim_end().to_owned();
    for table in TABLES.iter().chain(VIEWS) {
        let key = table.key.join("`, `");
        let _ = write!(text, "\n\n### `{}`\n{} Key: `{key}`.\n\n", table.name, table.doc.trim());
        if table.name == "launches" {
            text.push_str("The columns are those of `training_attempts`.");
        } else {
            text.push_str(columns(table.columns).trim_end());
        }
    }
    text.push_str("\n\n### `metrics`, `effective_metrics`\nRead from `records/*.parquet` and from segments that are not closed yet; only `trackway sql` has them. `effective_metrics` leaves out the steps that a later attempt of the same run, kind and rung trained again, points that a writer of event files withdrew, and of a metric that an attempt recorded by several ways all but the best: `sdk` (and `import`) before `tensorboard` before `files` before `stdout`.\n\n");
    text.push_str(&columns(METRIC_COLUMNS));
    text.push_str("\n### `telemetry`\nResource usage of the attempt's processes and their machine, sampled once a second; read like `metrics`. [Telemetry](telemetry.md) lists the values.\n\n");
    text.push_str(&columns(TELEMETRY_COLUMNS));
    text
}

fn columns(columns: &[Column]) -> String {
    let mut text = String::from("| column | type | null | meaning |\n|---|---|---|---|\n");
    for column in columns {
        let null = if column.nullable { "yes" } else { "" };
        let _ = writeln!(
            text,
            "| `{}` | {} | {null} | {} |",
            column.name,
            column.kind.title(),
            column.doc.trim()
        );
    }
    text
}
