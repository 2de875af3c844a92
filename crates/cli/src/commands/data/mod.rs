//! Commands about data: no run, no home.

mod check;
mod drift;
mod findings;
mod leakage;
mod profile;
mod schema;

use std::sync::atomic::AtomicBool;

use trackway_app::data::table::{Onlooker, TableRequest};

use crate::args::{DataCommand, ReadingArgs, TableArgs};
use crate::commands::live::BytesBar;
use crate::exit::Failure;
use crate::printer::Printer;

pub fn data(command: &DataCommand, printer: Printer) -> Result<u8, Failure> {
    match command {
        DataCommand::Profile(args) => profile::profile(args, printer),
        DataCommand::Infer(args) => schema::infer(args, printer),
        DataCommand::Validate(args) => schema::validate(args, printer),
        DataCommand::Check(args) => check::check(args, printer),
        DataCommand::Drift(args) => drift::drift(args, printer),
        DataCommand::Leakage(args) => leakage::leakage(args, printer),
    }
}

fn table(args: &TableArgs) -> TableRequest {
    request(&args.paths, &args.reading)
}

fn request(paths: &[String], reading: &ReadingArgs) -> TableRequest {
    TableRequest {
        paths: paths.to_vec(),
        format: None,
        columns: reading.columns.clone(),
        delimiter: reading.delimiter,
        missing: reading.missing.clone(),
    }
}

/// Calls `read` with a progress bar that looks on.
fn reading<T>(read: impl FnOnce(&Onlooker<'_>) -> T) -> T {
    let bar = BytesBar::new("reading");
    let never = AtomicBool::new(false);
    read(&Onlooker {
        progress: &|done_bytes, total_bytes| bar.at(done_bytes, total_bytes),
        cancelled: &never,
    })
}
