use trackway_engine::Context;
use trackway_flows::import;
use trackway_ledger::ForeignTool;

use crate::args::ImportArgs;
use crate::exit::Failure;
use crate::printer::Printer;

pub fn import(context: &Context, args: &ImportArgs, printer: Printer) -> Result<u8, Failure> {
    let tool = ForeignTool::ALL
        .into_iter()
        .find(|tool| tool.as_str() == args.tool)
        .expect("the argument parser admits no other value");
    let report = import::import(context, tool, &args.path, |run| {
        let done = if run.is_new { "imported" } else { "known:  " };
        printer.note(format!("{done} {} as {} ({} values)", run.name, run.run_id, run.point_count));
        if let Some(own) = &run.renamed_from {
            printer.note(format!("`{own}` has another meaning here: the run is named `{}`", run.name));
        }
    })?;
    if printer.is_json() {
        printer.document(&report);
        return Ok(0);
    }
    for skipped in &report.skipped {
        printer.note(format!("skipped {}: {}", skipped.path, skipped.why));
    }
    printer.line(format!("{} imported, {} already known", report.imported_count, report.known_count));
    Ok(0)
}
