//! Commands about slices of an evaluation table.

mod find;

pub use find::loss;

use crate::args::SlicesCommand;
use crate::exit::Failure;
use crate::printer::Printer;

pub fn slices(command: &SlicesCommand, printer: Printer) -> Result<u8, Failure> {
    match command {
        SlicesCommand::Find(args) => find::find(args, printer),
    }
}
