use trackway_api::home::tick::TickReport;
use trackway_core::text::duration;
use trackway_engine::Context;
use trackway_flows::home::tick;

use crate::args::TickArgs;
use crate::exit::{Exit, FAULT};
use crate::printer::Printer;

/// Does what is due.
pub fn tick(context: &Context, args: &TickArgs, printer: Printer) -> Exit {
    let report = tick::tick(context, args.dry_run)?;
    printer.answer(&report, || show(&report, printer));
    Ok(if report.has_failed() { FAULT } else { 0 })
}

fn show(report: &TickReport, printer: Printer) {
    let rows = report.duties.iter().map(|duty| {
        let next = duty.next_seconds.map(duration).unwrap_or_default();
        let outcome = duty.outcome.as_str().replace('_', " ");
        vec![duty.name.to_string(), outcome, next, duty.why.clone().unwrap_or_default()]
    });
    printer.table(&["duty", "outcome", "next in", "why"], rows.collect());
    for line in report.duties.iter().flat_map(|duty| &duty.lines) {
        printer.note(line);
    }
}
