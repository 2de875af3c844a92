use std::path::Path;

use trackway_flows::data::ReadContext;
use trackway_flows::data::leakage::{Roles, Selection, leakage as find};

use super::{findings, reading, request};
use crate::args::LeakageArgs;
use crate::exit::Exit;
use crate::printer::Printer;

pub fn leakage(args: &LeakageArgs, read: &ReadContext, printer: Printer) -> Exit {
    let sides = (&request(&args.train, &args.reading, read), &request(&args.test, &args.reading, read));
    let roles = Roles {
        label: args.label.clone(),
        group: args.group.clone(),
        time: args.time.clone(),
        ignored: args.ignore.clone(),
    };
    let selection = Selection { only: args.only.clone(), skip: args.skip.clone() };
    let answer = reading(printer, |observer| find(Path::new(""), sides, &roles, &selection, observer))?;
    printer.answer(&answer, || {
        findings::table(printer, &answer.checks);
        findings::print(printer, &answer.found);
    });
    Ok(findings::code(&answer.found))
}
