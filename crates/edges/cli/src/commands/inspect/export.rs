use trackway_engine::Context;
use trackway_flows::runs::export;

use crate::args::RunExportArgs;
use crate::commands::data_and_models::data::reading;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::units::{bytes, counted};

pub fn export(context: &Context, args: &RunExportArgs, printer: Printer) -> Exit {
    let run = context.resolve_run(&args.run)?;
    let written =
        reading(printer, |observer| export::export(context, run, &args.out, args.format, observer))?;
    printer.answer(&written, || {
        let rows = written.files.iter().map(|file| {
            vec![file.path.clone(), counted(file.rows, "row"), bytes(file.size_bytes), file.sha256.clone()]
        });
        printer.table(&["file", "rows", "size", "sha256"], rows.collect());
        printer.note(format!(
            "wrote {} to `{}`",
            counted(written.files.len() as u64, "file"),
            written.folder
        ));
    });
    Ok(0)
}
