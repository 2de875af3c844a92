//! One place per command: call the use case, print its answer, choose the exit code.

pub mod amend;
pub mod checkpoint;
mod checks;
pub mod classify;
pub mod compare;
pub mod config;
pub mod cross_validate;
pub mod data;
pub mod detach;
pub mod diagnose;
pub mod doctor;
pub mod evaluate;
mod explain_cadence;
mod explain_diagnosis;
mod explain_inputs;
mod explain_machine;
mod explain_page;
mod explain_parameters;
pub mod export;
pub mod gates;
pub mod gc;
pub mod import;
pub mod init;
pub mod list;
mod live;
pub mod logs;
pub mod memory;
pub mod metrics;
pub mod notify;
pub mod postmortem;
pub mod preflight;
mod probe;
mod progressive;
pub mod prove;
pub mod registry;
pub mod rehearse;
pub mod reproduce;
mod residuals;
pub mod resume_all;
pub mod run;
pub mod schema;
mod score;
mod sections;
pub mod shell;
pub mod slices;
pub mod sql;
mod terminal;
pub mod verify;
pub mod watch;

use trackway_api::runs::RollbackState;
use trackway_core::name::{Name, Named};
use trackway_engine::Context;
use trackway_engine::RollBackRequest;
use trackway_engine::roll_back;
use trackway_engine::stop;
use trackway_flows::outputs;
use trackway_inspect::explain;
use trackway_launch::ProcessIdentity;
use trackway_launch::outside::stand_in;

use crate::args::{AwaitArgs, ExplainArgs, RunRollbackArgs, ShimArgs, StopArgs};
use crate::exit::{Exit, Failure};
use crate::page::save;
use crate::printer::Printer;
pub use probe::probe;
pub use score::score;

/// A name that a person gives to something new.
fn given_name(named: Named, word: &str) -> Result<Name, Failure> {
    Name::new(named, word).map_err(|error| Failure::usage(error.to_string(), error.hint()))
}

pub fn explain(context: &Context, args: &ExplainArgs, printer: Printer) -> Exit {
    let subject = context.resolve(&args.subject)?;
    outputs::refuse_outputs(context, args.html.as_deref())?;
    let found = match &args.html {
        Some(path) => {
            let found = explain::explain_with_curves(context, subject)?;
            save(path, "explanation", printer, |about| trackway_pages::explanation(&found, about))?;
            found
        }
        None => explain::explain(context, subject)?,
    };
    if printer.is_json() {
        printer.document(&found);
    } else if args.html.is_none() {
        match args.short {
            true => explain_page::print_short(printer, &found),
            false => explain_page::print(printer, &found),
        }
    }
    Ok(0)
}

pub fn stop(context: &Context, args: &StopArgs, printer: Printer) -> Exit {
    let asked = stop::stop(context, context.resolve_run(&args.run)?, args.kill, &args.why)?;
    printer
        .answer(&asked, || printer.note(format!("requested stop of run {} ({})", asked.run_id, asked.mode)));
    Ok(0)
}

pub fn roll_back(context: &Context, args: &RunRollbackArgs, printer: Printer) -> Exit {
    let request = RollBackRequest {
        to_step: args.to_step,
        skip: args.skip_batches,
        why: args.why.clone(),
        person: trackway_engine::person::person(),
    };
    let answer = roll_back::roll_back(context, context.resolve_run(&args.run)?, &request)?;
    printer.answer(&answer, || {
        printer.note(&answer.summary);
        printer.note(&match answer.state {
            RollbackState::Asked => {
                format!("ended attempt {}; its supervisor continues from there", answer.attempt_id)
            }
            RollbackState::Done => format!("continue with: trackway resume {}", answer.run_id),
        });
    });
    Ok(0)
}

/// The shim prints nothing: its exit code shows only whether it could do its work.
pub fn shim(args: &ShimArgs) -> u8 {
    u8::try_from(trackway_launch::shim::run(&args.folder, &args.argv)).unwrap_or(1)
}

/// Waits for a process that Trackway did not launch, in its place.
pub fn await_process(args: &AwaitArgs) -> u8 {
    let process = ProcessIdentity { pid: args.pid, start_ticks: args.start_ticks };
    stand_in(process, &args.folder).unwrap_or(1)
}
