use trackway_flows::checkpoints::CheckpointEntry;

use crate::printer::Printer;
use crate::units::{bytes, duration, short_hash};

/// Columns with a value for at least one checkpoint are shown, the others are not.
type Column = (&'static str, fn(&CheckpointEntry) -> String);

const COLUMNS: [Column; 12] = [
    ("step", |entry| entry.info.step.to_string()),
    ("state", |entry| entry.info.state.as_str().into()),
    ("verified", |entry| verified(entry).into()),
    ("size", |entry| entry.info.size_bytes.map(bytes).unwrap_or_default()),
    ("shared", |entry| entry.shared_bytes.filter(|shared| *shared > 0).map(bytes).unwrap_or_default()),
    ("where", |entry| entry.location.clone()),
    ("age", |entry| entry.age_seconds.map(duration).unwrap_or_default()),
    ("reason", |entry| entry.reason.clone().unwrap_or_default()),
    ("pins", |entry| entry.info.pins.join(", ")),
    ("epoch", |entry| entry.info.epoch.to_string()),
    ("manifest", |entry| entry.info.manifest_sha256.as_deref().map(short_hash).unwrap_or("–").into()),
    ("under", |entry| entry.info.folder.clone()),
];

fn verified(entry: &CheckpointEntry) -> &'static str {
    match entry.verified {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "",
    }
}

pub fn print(entries: &[CheckpointEntry], printer: Printer) {
    if entries.is_empty() {
        return;
    }
    let shown: Vec<&Column> =
        COLUMNS.iter().filter(|(_, cell)| entries.iter().any(|entry| !cell(entry).is_empty())).collect();
    let header: Vec<&str> = shown.iter().map(|(name, _)| *name).collect();
    let rows = entries.iter().map(|entry| shown.iter().map(|(_, cell)| cell(entry)).collect());
    printer.table(&header, rows.collect());
}
