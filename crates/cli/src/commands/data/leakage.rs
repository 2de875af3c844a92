use std::path::Path;

use trackway_app::data::leakage::{Roles, leakage as find};

use super::{findings, reading, request};
use crate::args::LeakageArgs;
use crate::exit::Failure;
use crate::printer::Printer;

pub fn leakage(args: &LeakageArgs, printer: Printer) -> Result<u8, Failure> {
    let sides = (&request(&args.train, &args.reading), &request(&args.test, &args.reading));
    let roles = Roles { label: args.label.clone(), group: args.group.clone(), time: args.time.clone() };
    let answer = reading(|onlooker| find(Path::new(""), sides, &roles, onlooker))?;
    Ok(findings::show(printer, &answer))
}
