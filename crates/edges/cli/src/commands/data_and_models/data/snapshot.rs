use std::path::Path;

use trackway_api::data::{SnapshotAnswer, SnapshotVerified, StoredSnapshot};
use trackway_core::name::NameKind;
use trackway_engine::Context;
use trackway_engine::home::Home;
use trackway_flows::data;
use trackway_flows::data::ReadContext;
use trackway_flows::data::snapshot::{
    SHORT_ID_LENGTH, SnapshotRequest, expire, list as read, restore, verify,
};

use trackway_flows::data::snapshot_remote::{expire_at, pull, push, verify_at};

use super::{print_reading, reading, table};
use crate::args::{DeletionArgs, SnapshotArgs, SnapshotCommand};
use crate::commands::given_name;
use crate::exit::{Exit, Failure, INTEGRITY};
use crate::printer::{Printer, Tone};
use crate::units::{bytes, counted, timestamp};

pub fn snapshot(context: &Context, args: &SnapshotArgs, read: &ReadContext, printer: Printer) -> Exit {
    let name = args.name.as_deref().map(|name| given_name(NameKind::Snapshot, name)).transpose()?;
    let request = SnapshotRequest {
        table: table(&args.table, &context.read_context.strict(read.is_strict())),
        label: args.label.clone(),
        name,
        keep_bytes: args.keep_bytes,
    };
    let answer =
        reading(printer, |observer| data::snapshot_data(context, Path::new(""), &request, observer))?;
    printer.answer(&answer, || print(printer, &answer));
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
    if let Some(kept) = &answer.bytes {
        let cloned = match kept.files_cloned {
            0 => String::new(),
            count => format!(", {} of them shared with the originals (reflink)", counted(count, "file")),
        };
        let added = counted(kept.files_added, "file");
        printer.line(format!("bytes kept: {added} added ({}){cloned}", bytes(kept.bytes_added)));
    }
    printer.points(Tone::Warning, &answer.notes);
    print_reading(printer, &answer.reading);
}

/// What is done with bytes that are kept.
pub fn kept(
    home: &Home,
    open: &dyn Fn() -> Result<Context, Failure>,
    command: &SnapshotCommand,
    printer: Printer,
) -> Exit {
    match command {
        SnapshotCommand::Restore { snapshot, out: folder } => {
            let answer = reading(printer, |observer| restore(home, snapshot, folder, observer))?;
            printer.answer(&answer, || {
                let files = counted(answer.files, "file");
                let size = bytes(answer.size_bytes);
                printer.line(format!("restored {files} ({size}) to {}, each verified", folder.display()));
            });
            Ok(0)
        }
        SnapshotCommand::Push { snapshot, url } => {
            let context = open()?;
            let answer = reading(printer, |observer| push(&context, snapshot, url, observer))?;
            printer.answer(&answer, || {
                let (all, sent) = (counted(answer.files, "file"), counted(answer.files_sent, "file"));
                let id = &answer.data_sha256[..SHORT_ID_LENGTH];
                printer.line(format!(
                    "snapshot {id} ({all}, {}) is at {}: {sent} ({}) sent",
                    bytes(answer.size_bytes),
                    answer.url,
                    bytes(answer.bytes_sent)
                ));
            });
            Ok(0)
        }
        SnapshotCommand::Pull { snapshot, url } => {
            let context = open()?;
            let answer = reading(printer, |observer| pull(&context, snapshot, url, observer))?;
            printer.answer(&answer, || {
                let (all, fetched) = (counted(answer.files, "file"), counted(answer.files_fetched, "file"));
                let id = &answer.data_sha256[..SHORT_ID_LENGTH];
                printer.line(format!(
                    "snapshot {id} ({all}, {}) is here: {fetched} ({}) fetched, each verified",
                    bytes(answer.size_bytes),
                    bytes(answer.bytes_fetched)
                ));
            });
            Ok(0)
        }
        SnapshotCommand::Verify { snapshot, url } => {
            let answer = reading(printer, |observer| match url {
                Some(url) => verify_at(snapshot, url, observer),
                None => verify(home, snapshot, observer),
            })?;
            printer.answer(&answer, || print_verified(printer, &answer));
            Ok(if answer.intact { 0 } else { INTEGRITY })
        }
        SnapshotCommand::Expire { snapshots, url, deletion } => {
            expired(home, snapshots, url.as_deref(), deletion, printer)
        }
        SnapshotCommand::Gc { deletion } => expired(home, &[], None, deletion, printer),
    }
}

fn print_verified(printer: Printer, answer: &SnapshotVerified) {
    for fault in &answer.faults {
        printer.point(Tone::Bad, format!("`{}`: kept bytes are {}", fault.path, fault.problem));
    }
    let (files, read) = (counted(answer.files, "file"), bytes(answer.bytes_read));
    printer.line(match answer.faults.len() {
        0 => format!("{files} ({read}): every byte is what was kept"),
        count => format!("{} of {files} not what was kept", count),
    });
}

fn expired(
    home: &Home,
    snapshots: &[String],
    url: Option<&str>,
    deletion: &DeletionArgs,
    printer: Printer,
) -> Exit {
    let answer = match url {
        Some(url) => expire_at(snapshots, url, deletion.is_dry_run())?,
        None => expire(home, snapshots, deletion.is_dry_run())?,
    };
    printer.answer(&answer, || {
        let (files, size) = (counted(answer.files, "file"), bytes(answer.freed_bytes));
        printer.line(match (answer.files, answer.dry_run) {
            (0, _) => "no kept bytes to delete".to_owned(),
            (_, true) => format!("{files} ({size}) would be deleted; repeat with --yes to delete"),
            (_, false) => format!("{files} ({size}) deleted"),
        });
    });
    Ok(0)
}

/// `, N rows` and, where there are any, those that could not be read.
pub(super) fn rows(rows: Option<u64>, rejected: u64) -> String {
    let rejected = if rejected > 0 { format!(", {rejected} rejected") } else { String::new() };
    rows.map_or_else(String::new, |rows| format!(", {}{rejected}", counted(rows, "row")))
}

pub fn list(home: &Home, printer: Printer) -> Exit {
    let list = read(home)?;
    if printer.is_json() {
        printer.document(&list);
        return Ok(0);
    }
    if list.snapshots.is_empty() && list.damaged.is_empty() {
        printer.line("no snapshots; make one with: trackway data snapshot PATH --name NAME");
        return Ok(0);
    }
    let header = ["snapshot", "names", "named at", "files", "size", "rows", "bytes"];
    printer.table(&header, list.snapshots.iter().map(cells).collect());
    printer.points(Tone::Bad, &list.damaged);
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
        if snapshot.has_bytes { "kept".to_owned() } else { String::new() },
    ]
}
