//! Shell completions and man pages, generated from the description of the command line.

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

pub fn completions(args: &CompletionsArgs, printer: Printer) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "trackway", &mut script);
    printer.file(&script);
    0
}

pub fn man(args: &ManArgs, printer: Printer) -> Exit {
    let folder = args.out.display();
    let written =
        std::fs::create_dir_all(&args.out).and_then(|()| clap_mangen::generate_to(Cli::command(), &args.out));
    written.map_err(|error| {
        let what = format!("cannot write man pages to `{folder}`");
        Failure::usage(what, "name a folder that can be written").because(error)
    })?;
    printer.note(format!("man pages are in `{folder}`: man -l {}", args.out.join("trackway.1").display()));
    Ok(0)
}
