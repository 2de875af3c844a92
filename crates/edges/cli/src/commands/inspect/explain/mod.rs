//! `trackway explain`: the page of a run or of an attempt, one module per part of it.

mod cadence;
pub(super) mod diagnosis;
mod inputs;
pub(super) mod machine;
mod page;
mod parameters;
mod results;

use trackway_engine::Context;
use trackway_flows::outputs;
use trackway_inspect::explain;

use crate::args::ExplainArgs;
use crate::exit::Exit;
use crate::page::save;
use crate::printer::Printer;
use crate::signals;

pub fn explain(context: &Context, args: &ExplainArgs, printer: Printer) -> Exit {
    signals::interruptible(&context.request.cancel);
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
            true => page::print_short(printer, &found),
            false => page::print(printer, &found),
        }
    }
    Ok(0)
}
