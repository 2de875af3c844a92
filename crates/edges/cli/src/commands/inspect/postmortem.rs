//! `trackway postmortem`: what happened to a run, as Markdown, as a page, or as JSON.

use trackway_engine::Context;
use trackway_flows::outputs;
use trackway_inspect::postmortem;

use crate::args::PostmortemArgs;
use crate::commands::live::CountSpinner;
use crate::exit::Exit;
use crate::page::{save, save_text};
use crate::printer::Printer;

pub fn postmortem(context: &Context, args: &PostmortemArgs, printer: Printer) -> Exit {
    let run = context.resolve_run(&args.run)?;
    outputs::refuse_outputs(context, args.out.as_deref().into_iter().chain(args.html.as_deref()))?;
    let spinner = CountSpinner::new();
    let found = postmortem::postmortem(context, run, &|kind, count| spinner.at(kind.plural(), count))?;
    spinner.finish();
    if let Some(path) = &args.html {
        save(path, "page", printer, |about| trackway_pages::postmortem(&found, about))?;
    }
    if let Some(path) = &args.out {
        save_text(path, "post-mortem", printer, &postmortem::markdown(&found))?;
    }
    if printer.is_json() {
        printer.document(&found);
    } else if args.out.is_none() && args.html.is_none() {
        printer.file(postmortem::markdown(&found).as_bytes());
    }
    Ok(0)
}
