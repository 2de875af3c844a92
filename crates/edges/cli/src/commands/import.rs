use trackway_engine::Context;
use trackway_flows::import;

use crate::args::ImportArgs;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::units::counted;

pub fn import(context: &Context, args: &ImportArgs, printer: Printer) -> Exit {
    let report = import::import(context, args.tool, &args.path, |run| {
        let done = if run.is_new { "imported" } else { "known already:" };
        printer.note(format!(
            "{done} {} as {} ({})",
            run.name,
            run.run_id,
            counted(run.point_count, "value")
        ));
        if let Some(own) = &run.renamed_from {
            printer.note(format!("the run is named `{}`, because `{own}` is reserved", run.name));
        }
    })?;
    printer.answer(&report, || {
        for skipped in &report.skipped {
            printer.note(format!("skipped {}: {}", skipped.path, skipped.why));
        }
        printer.line(format!(
            "{} imported, {} known already",
            counted(report.imported_count as u64, "run"),
            report.known_count
        ));
    });
    Ok(0)
}
