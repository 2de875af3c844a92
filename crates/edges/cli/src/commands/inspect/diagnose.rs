//! `trackway diagnose`.

use trackway_core::DiagnosisVerdict;
use trackway_engine::Context;
use trackway_flows::runs::diagnose;
use trackway_flows::runs::diagnose::DiagnoseRequest;

use super::explain::diagnosis::diagnosis;
use crate::args::DiagnoseArgs;
use crate::commands::live::supervised;
use crate::exit::{Exit, NOT_COMPLETED};
use crate::printer::Printer;
use crate::units::duration;

pub fn diagnose(context: &Context, args: &DiagnoseArgs, printer: Printer) -> Exit {
    let subject = context.resolve(&args.subject)?;
    let request = DiagnoseRequest {
        kind: args.kind,
        steps: args.steps,
        from_step: args.from_step,
        timeout_seconds: args.timeout.0,
        hang_after_seconds: args.hang_after.0,
    };
    let found = supervised(context, printer, |live| diagnose::diagnose(context, subject, &request, live))?;
    printer.answer(&found, || {
        diagnosis(printer, &found);
        printer.note(format!(
            "1 launch in {}; stored as evidence of {}",
            duration(found.wall_seconds),
            found.attempt_id
        ));
    });
    Ok(if found.verdict == DiagnosisVerdict::Found { 0 } else { NOT_COMPLETED })
}
