use trackway_app::App;
use trackway_ledger::ForeignTool;

use crate::args::ImportArgs;
use crate::exit::Failure;
use crate::printer::Printer;

pub fn import(app: &App, args: &ImportArgs, printer: Printer) -> Result<u8, Failure> {
    let tool = ForeignTool::ALL
        .into_iter()
        .find(|tool| tool.as_str() == args.tool)
        .expect("the argument parser admits no other word");
    let report = app.import(tool, &args.path, |run| {
        let done = if run.is_new { "imported" } else { "known:  " };
        printer.note(&format!("{done} {} as {} ({} values)", run.name, run.run_id, run.point_count));
    })?;
    if printer.is_json() {
        printer.document(&report);
        return Ok(0);
    }
    for passed in &report.passed {
        printer.note(&format!("passed over {}: {}", passed.path, passed.why));
    }
    printer.line(&format!("{} imported, {} known before", report.imported_count, report.known_count));
    Ok(0)
}
