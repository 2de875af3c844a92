//! `trackway stop`: requests the end of a run.

use trackway_api::runs::StopMethod;
use trackway_engine::{Context, stop};

use crate::args::StopArgs;
use crate::exit::Exit;
use crate::printer::Printer;

pub fn stop(context: &Context, args: &StopArgs, printer: Printer) -> Exit {
    let asked = stop::stop(context, context.resolve_run(&args.run)?, args.kill, &args.why)?;
    printer.answer(&asked, || {
        printer.note(format!("requested the stop of {}: {}", asked.run_id, what_follows(asked.mode)));
    });
    Ok(0)
}

fn what_follows(mode: StopMethod) -> &'static str {
    match mode {
        StopMethod::Graceful => "it may save a checkpoint and end by itself",
        StopMethod::Kill => "its attempt is killed",
        StopMethod::BeforeNextAttempt => "it waits, and the next attempt does not start",
    }
}
