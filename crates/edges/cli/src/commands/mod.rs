//! One place per command: call the use case, print its answer, choose the exit code.

pub mod checkpoint;
pub mod classify;
pub mod compare;
pub mod config;
pub mod data;
pub mod doctor;
pub mod evaluate;
mod explain_machine;
mod explain_page;
pub mod gates;
pub mod gc;
pub mod import;
pub mod init;
pub mod list;
mod live;
pub mod logs;
pub mod memory;
pub mod metrics;
pub mod preflight;
mod probe;
mod progressive;
pub mod prove;
pub mod registry;
pub mod rehearse;
mod residuals;
pub mod run;
mod score;
pub mod shell;
pub mod slices;
pub mod sql;
pub mod watch;

pub use probe::probe;
pub use score::score;
use trackway_app::{App, RollBackRequest};
use trackway_core::name::{Name, Named};

use crate::args::{ExplainArgs, RunRollbackArgs, ShimArgs, StopArgs};
use crate::exit::Failure;
use crate::printer::Printer;

/// A name that a person gives to something new.
fn given_name(named: Named, word: &str) -> Result<Name, Failure> {
    Name::new(named, word).map_err(|error| Failure::usage(error.to_string(), error.hint()))
}

pub fn explain(app: &App, args: &ExplainArgs, printer: Printer) -> Result<u8, Failure> {
    let page = app.explain(app.resolve(&args.subject)?)?;
    if printer.is_json() {
        printer.document(&page);
    } else {
        explain_page::print(printer, &page);
    }
    Ok(0)
}

pub fn stop(app: &App, args: &StopArgs, printer: Printer) -> Result<u8, Failure> {
    let asked = app.stop(app.resolve_run(&args.run)?, args.kill, &args.why)?;
    if printer.is_json() {
        printer.document(&asked);
    } else {
        printer.note(format!("asked run {} to stop ({})", asked.run_id, asked.mode));
    }
    Ok(0)
}

pub fn roll_back(app: &App, args: &RunRollbackArgs, printer: Printer) -> Result<u8, Failure> {
    let request = RollBackRequest {
        to_step: args.to_step,
        skip: args.skip_batches,
        why: args.why.clone(),
        person: trackway_app::registry::person(),
    };
    let answer = app.roll_back(app.resolve_run(&args.run)?, &request)?;
    if printer.is_json() {
        printer.document(&answer);
        return Ok(0);
    }
    printer.note(&answer.summary);
    printer.note(&match answer.state {
        "asked" => format!("ended attempt {}; its supervisor continues from there", answer.attempt_id),
        _ => format!("continue with: trackway resume {}", answer.run_id),
    });
    Ok(0)
}

/// The shim speaks to nobody: its exit code says only whether it could do its work.
pub fn shim(args: &ShimArgs) -> u8 {
    u8::try_from(trackway_launch::shim::run(&args.folder, &args.argv)).unwrap_or(1)
}
