//! Commands about data: no run, no home.

mod profile;

use crate::args::DataCommand;
use crate::exit::Failure;
use crate::printer::Printer;

pub fn data(command: &DataCommand, printer: Printer) -> Result<u8, Failure> {
    match command {
        DataCommand::Profile(args) => profile::profile(args, printer),
    }
}
