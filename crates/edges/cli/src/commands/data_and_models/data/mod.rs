//! Commands about data: no run and, but for snapshots, no home.

mod check;
mod clean;
mod diff;
mod drift;
mod findings;
mod images;
mod join;
mod leakage;
mod profile;
mod schema;
mod snapshot;
mod split;

use std::sync::Once;

use trackway_core::with_fields_of;
use trackway_engine::Context;
use trackway_engine::home::Home;
use trackway_flows::data::table::{ReadObserver, TableRequest, expected_seconds};
use trackway_flows::data::{DataSpec, ReadContext, ReadNote, ReadNoteKind, sentences};
use trackway_flows::evaluation::slices::SlicesObserver;
use trackway_system::{Cancel, SystemClock};

use crate::args::{DataCommand, ReadingArgs, TableArgs};
use crate::commands::live::{BytesBar, CandidatesBar};
use crate::exit::{BLOCKED, Exit, Failure};
use crate::printer::{Printer, QUOTE_SECONDS_MIN, Tone};
use crate::signals;
use crate::units::{bytes, duration};

/// `open` makes the home if there is none.
pub fn data(
    command: &DataCommand,
    home: &Home,
    open: impl Fn() -> Result<Context, Failure>,
    read: &ReadContext,
    printer: Printer,
) -> Exit {
    let read = &read.strict(is_strict(command));
    match command {
        DataCommand::Profile(args) => profile::profile(home, args, read, printer),
        DataCommand::Infer(args) => schema::infer(args, read, printer),
        DataCommand::Validate(args) => schema::validate(args, read, printer),
        DataCommand::Check(args) => check::check(args, read, printer),
        DataCommand::Images(args) => images::images(args, read, printer),
        DataCommand::Drift(args) => drift::drift(home, args, read, printer),
        DataCommand::Leakage(args) => leakage::leakage(args, read, printer),
        DataCommand::Snapshot(args) => match &args.command {
            Some(command) => snapshot::kept(home, &open, command, printer),
            None => snapshot::snapshot(&open()?, args, read, printer),
        },
        DataCommand::Ls => snapshot::list(home, printer),
        DataCommand::Diff(args) => diff::diff(home, args, read, printer),
        DataCommand::Split(args) => split::split(args, read, printer),
        DataCommand::Clean(args) => clean::clean(args, read, printer),
        DataCommand::AsOf(args) => join::as_of(args, read, printer),
        DataCommand::Skew(args) => join::skew(args, read, printer),
    }
}

/// Whether what is not read as it is written is an error.
fn is_strict(command: &DataCommand) -> bool {
    match command {
        DataCommand::Profile(args) => args.strict.strict,
        DataCommand::Infer(args) => args.strict.strict,
        DataCommand::Validate(args) => args.strict.strict,
        DataCommand::Check(args) => args.strict.strict,
        DataCommand::Drift(args) => args.strict.strict,
        DataCommand::Leakage(args) => args.strict.strict,
        DataCommand::Snapshot(args) => args.strict.strict,
        DataCommand::Diff(args) => args.strict.strict,
        DataCommand::Split(args) => args.strict.strict,
        DataCommand::Clean(args) => args.strict.strict,
        DataCommand::AsOf(args) => args.strict_reading,
        DataCommand::Skew(args) => args.strict.strict,
        DataCommand::Images(_) | DataCommand::Ls => false,
    }
}

/// The exit code of an answer about a table: a table of which no row could be read is not one.
pub(in crate::commands) fn code(rows: u64, rows_rejected: u64) -> u8 {
    if rows == 0 && rows_rejected > 0 { BLOCKED } else { 0 }
}

/// Notes on reading that are printed; `--json` has all.
const NOTES_SHOWN: usize = 20;

/// What reading did to the files, but for rejected rows, which are counted beside it, and the usual words for missing values.
pub(super) fn print_reading(printer: Printer, notes: &[ReadNote]) {
    let is_shown =
        |note: &&ReadNote| !matches!(note.kind, ReadNoteKind::RejectedRows | ReadNoteKind::MissingTexts);
    let shown = sentences(notes.iter().filter(is_shown));
    printer.points(Tone::Warning, shown.iter().take(NOTES_SHOWN).map(String::as_str));
    if let Some(more) = shown.len().checked_sub(NOTES_SHOWN).filter(|more| *more > 0) {
        printer.line(format!("{more} more notes on reading; --json lists all of them"));
    }
}

pub(in crate::commands) fn table(args: &TableArgs, read: &ReadContext) -> TableRequest {
    request(&args.paths, &args.reading, read)
}

pub(in crate::commands) fn request(
    paths: &[String],
    reading: &ReadingArgs,
    read: &ReadContext,
) -> TableRequest {
    TableRequest {
        paths: paths.to_vec(),
        spec: with_fields_of!(
            DataSpec,
            &reading,
            [columns, header, delimiter, comment, skip_lines, trailing_separator, decimal, missing],
            ..DataSpec::default()
        ),
        read_context: read.clone(),
    }
}

/// Calls `read` with a progress bar, and cancels it on the first interrupt. A warning about a long duration comes
/// before it begins.
pub(in crate::commands) fn reading<T>(printer: Printer, read: impl FnOnce(&ReadObserver<'_>) -> T) -> T {
    let (bar, begun, cancel) = (BytesBar::new("reading"), Once::new(), Cancel::default());
    signals::interruptible(&cancel);
    read(&ReadObserver {
        progress: &|done_bytes, total_bytes| {
            begun.call_once(|| quote(printer, total_bytes));
            bar.at(done_bytes, total_bytes);
        },
        cancelled: cancel.is_stopped(),
        clock: &SystemClock,
    })
}

/// Searches a table for slices, and shows how far reading and search are.
pub(in crate::commands) fn searching<T>(
    printer: Printer,
    search: impl FnOnce(&SlicesObserver<'_>) -> T,
) -> T {
    let bar = CandidatesBar::default();
    let searching = |predicates: usize, done: u64, total: u64| bar.at(predicates, done, total);
    let found = reading(printer, |reading| search(&SlicesObserver { reading, searching: &searching }));
    bar.finish();
    found
}

fn quote(printer: Printer, size_bytes: u64) {
    let seconds = expected_seconds(size_bytes);
    if seconds >= QUOTE_SECONDS_MIN {
        printer.note(format!("reading {}, about {}", bytes(size_bytes), duration(seconds)));
    }
}
