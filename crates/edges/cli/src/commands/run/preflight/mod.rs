//! `trackway preflight`, and what `trackway run` shows of it.

mod live;
mod text;

use std::sync::Arc;

use trackway_api::runs::preflight::{PreflightReport, Skipped};
use trackway_engine::Context;
use trackway_engine::run::RunSource;
use trackway_flows::outputs::refuse_inputs;
use trackway_flows::training::preflight;
use trackway_flows::training::preflight::{PreflightRequest, Selection, Verdict};

use self::live::StepLines;
use crate::args::{PreflightArgs, SkipArgs};
use crate::commands::live::published;
use crate::commands::patch_of;
use crate::exit::{BLOCKED, Exit, Failure, NOT_COMPLETED};
use crate::page::save;
use crate::printer::Printer;
use crate::signals;

pub fn preflight(context: &Context, args: &PreflightArgs, printer: Printer) -> Exit {
    refuse_inputs(args.html.as_deref(), std::slice::from_ref(&args.file))?;
    signals::supervise(&context.request.cancel);
    let source = RunSource::File { path: args.file.clone(), patch: patch_of(&args.overrides)? };
    let selection = Selection { only: args.only.clone(), ..selection(&args.skip)? };
    let lines = Arc::new(StepLines::new(printer));
    let request = PreflightRequest { source, selection };
    let report = published(context, &lines, |reporter| preflight::preflight(context, &request, reporter));
    lines.finish();
    let report = report?;
    if let Some(path) = &args.html {
        save(path, "report", printer, |about| trackway_pages::preflight(&report, about))?;
    }
    printer.answer(&report, || text::print(printer, &report, args.all));
    Ok(exit_code(&report))
}

/// What is left out, and why.
pub fn selection(args: &SkipArgs) -> Result<Selection, Failure> {
    let why = match (&args.why, args.skip.is_empty()) {
        (Some(why), _) if !why.trim().is_empty() => why.clone(),
        (None, true) => return Ok(Selection::default()),
        _ => {
            return Err(Failure::usage(
                "--skip needs a reason",
                "give it with --why; it is recorded in the receipt",
            ));
        }
    };
    let skipped = |check: &String| Skipped { check: check.clone(), why: why.clone() };
    Ok(Selection { skip: args.skip.iter().map(skipped).collect(), ..Selection::default() })
}

fn exit_code(report: &PreflightReport) -> u8 {
    match report.verdict {
        Verdict::Block => BLOCKED,
        _ if report.stopped => NOT_COMPLETED,
        _ => 0,
    }
}
