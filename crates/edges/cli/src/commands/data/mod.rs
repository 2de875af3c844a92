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

use trackway_engine::Context;
use trackway_engine::home::Home;
use trackway_flows::data::ReadContext;
use trackway_flows::data::table::{Onlooker, TableRequest, expected_seconds};
use trackway_flows::slices::SlicesOnlooker;
use trackway_system::SystemClock;

use crate::args::{DataCommand, ReadingArgs, TableArgs};
use crate::commands::live::{BytesBar, CandidatesBar};
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, QUOTE_SECONDS_MIN};
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
            None => snapshot::snapshot(&open()?, args, printer),
        },
        DataCommand::Ls => snapshot::list(home, printer),
        DataCommand::Diff(args) => diff::diff(home, args, read, printer),
        DataCommand::Split(args) => split::split(args, read, printer),
        DataCommand::Clean(args) => clean::clean(args, read, printer),
        DataCommand::AsOf(args) => join::as_of(args, read, printer),
        DataCommand::Skew(args) => join::skew(args, read, printer),
    }
}

pub(super) fn table(args: &TableArgs, read: &ReadContext) -> TableRequest {
    request(&args.paths, &args.reading, read)
}

pub(super) fn request(paths: &[String], reading: &ReadingArgs, read: &ReadContext) -> TableRequest {
    TableRequest {
        paths: paths.to_vec(),
        format: None,
        columns: reading.columns.clone(),
        header: reading.header,
        delimiter: reading.delimiter,
        missing: reading.missing.clone(),
        read_context: read.clone(),
    }
}

/// Calls `read` with a progress bar, and cancels it on the first interrupt. A warning about a long duration comes
/// before it begins.
pub(super) fn reading<T>(printer: Printer, read: impl FnOnce(&Onlooker<'_>) -> T) -> T {
    let (bar, begun) = (BytesBar::new("reading"), Once::new());
    read(&Onlooker {
        progress: &|done_bytes, total_bytes| {
            begun.call_once(|| quote(printer, total_bytes));
            bar.at(done_bytes, total_bytes);
        },
        cancelled: &signals::interruptible(),
        clock: &SystemClock,
    })
}

/// Searches a table for slices, and shows how far reading and search are.
pub(super) fn searching<T>(printer: Printer, search: impl FnOnce(&SlicesOnlooker<'_>) -> T) -> T {
    let bar = CandidatesBar::default();
    let searching = |predicates: usize, done: u64, total: u64| bar.at(predicates, done, total);
    let found = reading(printer, |reading| search(&SlicesOnlooker { reading, searching: &searching }));
    bar.finish();
    found
}

fn quote(printer: Printer, size_bytes: u64) {
    let seconds = expected_seconds(size_bytes);
    if seconds >= QUOTE_SECONDS_MIN {
        printer.note(format!("reading {}, about {}", bytes(size_bytes), duration(seconds)));
    }
}
