use std::path::Path;

use trackway_api::data::{SnapshotAnswer, StoredSnapshot};
use trackway_core::name::Named;
use trackway_engine::Context;
use trackway_engine::home::Home;
use trackway_flows::data;
use trackway_flows::data::snapshot::{SHORT_ID_LENGTH, SnapshotRequest, list as read};

use super::{reading, table};
use crate::args::SnapshotArgs;
use crate::commands::given_name;
use crate::exit::Failure;
use crate::printer::{Printer, Tone};
use crate::units::{bytes, counted, timestamp};

pub fn snapshot(context: &Context, args: &SnapshotArgs, printer: Printer) -> Result<u8, Failure> {
    let name = args.name.as_deref().map(|name| given_name(Named::Snapshot, name)).transpose()?;
    let request =
        SnapshotRequest { table: table(&args.table, &context.read_context), label: args.label.clone(), name };
    let answer =
        reading(printer, |onlooker| data::snapshot_data(context, Path::new(""), &request, onlooker))?;
    if printer.is_json() {
        printer.document(&answer);
    } else {
        print(printer, &answer);
    }
    Ok(0)
}

fn print(printer: Printer, answer: &SnapshotAnswer) {
    let named = answer.name.as_ref().map_or_else(String::new, |name| format!(", named `{name}`"));
    let known = if answer.is_new { "" } else { ", which exists already" };
    printer.line(format!("snapshot {}{named}{known}", answer.data_sha256));
    printer.line(format!(
        "{} ({} read), {}{}",
        counted(answer.files, "file"),
        answer.files_read,
        bytes(answer.size_bytes),
        rows(answer.rows, answer.rows_rejected),
    ));
    for note in &answer.notes {
        printer.point(Tone::Warning, note);
    }
}

/// `, N rows` and, where there are any, those that could not be read.
pub(super) fn rows(rows: Option<u64>, rejected: u64) -> String {
    let rejected = if rejected > 0 { format!(", {rejected} rejected") } else { String::new() };
    rows.map_or_else(String::new, |rows| format!(", {}{rejected}", counted(rows, "row")))
}

pub fn list(home: &Home, printer: Printer) -> Result<u8, Failure> {
    let list = read(home)?;
    if printer.is_json() {
        printer.document(&list);
        return Ok(0);
    }
    if list.snapshots.is_empty() && list.damaged.is_empty() {
        printer.line("no snapshots; make one with: trackway data snapshot PATH --name NAME");
        return Ok(0);
    }
    let header = ["snapshot", "names", "named at", "files", "size", "rows"];
    printer.table(&header, list.snapshots.iter().map(cells).collect());
    for damaged in &list.damaged {
        printer.point(Tone::Bad, damaged);
    }
    Ok(0)
}

fn cells(snapshot: &StoredSnapshot) -> Vec<String> {
    vec![
        snapshot.data_sha256[..SHORT_ID_LENGTH].to_owned(),
        snapshot.names.join(", "),
        snapshot.named_at.map(timestamp).unwrap_or_default(),
        snapshot.files.to_string(),
        bytes(snapshot.size_bytes),
        snapshot.rows.map(|rows| rows.to_string()).unwrap_or_default(),
    ]
}
