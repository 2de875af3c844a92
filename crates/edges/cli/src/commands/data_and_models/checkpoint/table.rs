use trackway_api::checkpoints::Checkpoint;

use crate::printer::Printer;
use crate::units::{bytes, duration, short_hash};

/// Columns with a value for at least one checkpoint are shown, the others are not.
type Column = (&'static str, fn(&Checkpoint) -> String);

const COLUMNS: [Column; 13] = [
    ("step", |entry| entry.step.to_string()),
    ("state", |entry| entry.state.as_str().into()),
    ("verified", |entry| verified(entry).into()),
    ("size", |entry| entry.size_bytes.map(bytes).unwrap_or_default()),
    ("shared", |entry| entry.shared_bytes.filter(|shared| *shared > 0).map(bytes).unwrap_or_default()),
    ("lacks", lacks),
    ("where", |entry| entry.place.to_string()),
    ("age", |entry| entry.age_seconds.map(duration).unwrap_or_default()),
    ("reason", |entry| entry.reason.clone().unwrap_or_default()),
    ("pins", pins),
    ("epoch", |entry| entry.epoch.to_string()),
    ("manifest", |entry| entry.manifest_sha256.as_deref().map(short_hash).unwrap_or("–").into()),
    ("under", |entry| entry.folder.clone()),
];

/// What a resume from it has to start over.
fn lacks(entry: &Checkpoint) -> String {
    let missing = entry.missing.iter().flatten().map(|kind| kind.as_str().replace('_', " "));
    missing.collect::<Vec<_>>().join(", ")
}

/// `best, eval (ended)`: one that ended holds nothing any more, until it is taken away.
fn pins(entry: &Checkpoint) -> String {
    let cell = |name: &String| match entry.ended_pins.contains(name) {
        true => format!("{name} (ended)"),
        false => name.clone(),
    };
    entry.pins.iter().map(cell).collect::<Vec<_>>().join(", ")
}

fn verified(entry: &Checkpoint) -> &'static str {
    match entry.verified {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "",
    }
}

pub fn print(entries: &[Checkpoint], printer: Printer) {
    if entries.is_empty() {
        return;
    }
    let shown: Vec<&Column> =
        COLUMNS.iter().filter(|(_, cell)| entries.iter().any(|entry| !cell(entry).is_empty())).collect();
    let header: Vec<&str> = shown.iter().map(|(name, _)| *name).collect();
    let rows = entries.iter().map(|entry| shown.iter().map(|(_, cell)| cell(entry)).collect());
    printer.table(&header, rows.collect());
}
