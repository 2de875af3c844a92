//! The columns of the tables that are read from flight records.

use crate::value::{Column, ColumnKind};

const fn column(name: &'static str, kind: ColumnKind, doc: &'static str) -> Column {
    Column { name, kind, nullable: false, doc }
}

/// The columns of `metrics` and `effective_metrics`.
pub const METRIC_COLUMNS: &[Column] = &[
    column("run_id", ColumnKind::Text, "The run."),
    column("attempt_id", ColumnKind::Text, "The attempt."),
    column("attempt_number", ColumnKind::Integer, "Its number within the run and kind."),
    column("kind", ColumnKind::Text, "What the launch was for."),
    column("rung", ColumnKind::Text, "The rung of the ladder."),
    column("origin", ColumnKind::Text, "What recorded it: sdk, stdout, files, tensorboard or import."),
    column("segment", ColumnKind::Text, "The file name of its segment."),
    column("name", ColumnKind::Text, "The metric."),
    column("step", ColumnKind::Integer, "The step it belongs to."),
    column("value", ColumnKind::Real, "The value, bit for bit: NaN and infinities are kept."),
    column("recorded_at", ColumnKind::Timestamp, "When it was recorded, by the script's clock."),
    column(
        "sequence",
        ColumnKind::Integer,
        "The number of its frame in the segment: the order of recording.",
    ),
];

/// The columns of `telemetry`.
pub const TELEMETRY_COLUMNS: &[Column] = &[
    column("run_id", ColumnKind::Text, "The run."),
    column("attempt_id", ColumnKind::Text, "The attempt."),
    column("attempt_number", ColumnKind::Integer, "Its number within the run and kind."),
    column("kind", ColumnKind::Text, "What the launch was for."),
    column("rung", ColumnKind::Text, "The rung of the ladder."),
    column(
        "name",
        ColumnKind::Text,
        "The name of the value, such as `system/rss_bytes`; `docs/telemetry.md` lists them all.",
    ),
    column("elapsed_seconds", ColumnKind::Integer, "Whole seconds since the attempt began."),
    column("value", ColumnKind::Real, "The value, in the unit that its name ends with."),
    column(
        "recorded_at",
        ColumnKind::Timestamp,
        "When it was sampled, by the clock of the script's machine.",
    ),
];
