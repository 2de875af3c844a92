//! `trackway verify`.

use trackway_api::home::verify::VerifyReport;
use trackway_engine::Context;
use trackway_flows::home::verify::{Depth, verify};

use crate::args::VerifyArgs;
use crate::commands::live::CountSpinner;
use crate::exit::{Exit, INTEGRITY};
use crate::printer::{Printer, Tone};
use crate::signals;
use crate::units::duration;

pub fn verify_command(context: &Context, args: &VerifyArgs, printer: Printer) -> Exit {
    signals::interruptible(&context.request.cancel);
    let run = match args.all {
        true => None,
        false => Some(context.resolve_run(&args.run)?),
    };
    let spinner = CountSpinner::new();
    let report = verify(context, run, Depth::Files, &|kind, count| spinner.at(kind.plural(), count))?;
    spinner.finish();
    printer.answer(&report, || show(&report, printer));
    Ok(if report.holds { 0 } else { INTEGRITY })
}

fn show(report: &VerifyReport, printer: Printer) {
    let counted = |count: u64| if count == 0 { "–".to_owned() } else { count.to_string() };
    let rows = report.kinds.iter().map(|kind| {
        vec![
            kind.kind.plural().to_owned(),
            counted(kind.hold_count),
            counted(kind.differ_count),
            counted(kind.open_count),
            counted(kind.unknown_count),
        ]
    });
    printer.table(&["of", "hold", "differ", "not sealed", "not here"], rows.collect());
    for differs in &report.differs {
        let kind = printer.tone(Tone::Bad, differs.kind.as_str());
        let of_run = differs.run_id.map(|run_id| format!(" of {run_id}")).unwrap_or_default();
        printer.line(kind + format!(" {}{of_run}: {}", differs.id, differs.why));
    }
    let listed = report.differs.len() as u64;
    let all: u64 = report.kinds.iter().map(|kind| kind.differ_count).sum();
    if all > listed {
        printer.note(format!("{} more are not listed", all - listed));
    }
    let verified: Vec<String> = report
        .kinds
        .iter()
        .filter(|kind| kind.hold_count > 0)
        .map(|kind| format!("{} ({})", kind.kind.plural(), kind.hold_count))
        .collect();
    printer.note(format!("verified in {}: {}", duration(report.seconds), verified.join(", ")));
    printer.note(format!("not covered: {}", report.not_covered.join("; ")));
    printer.note(match report.holds {
        true => "nothing of what was verified differs from what was sealed or kept".to_owned(),
        false => {
            format!(
                "{all} differ from what was sealed or kept: compare the ledger and the folder with a copy"
            )
        }
    });
}
