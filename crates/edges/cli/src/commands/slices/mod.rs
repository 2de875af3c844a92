//! Commands about slices of an evaluation table.

mod find;

use crate::args::SlicesCommand;
use crate::exit::Failure;
use crate::printer::Printer;
pub use find::{loss, shown};
use trackway_flows::data::ReadContext;

pub fn slices(command: &SlicesCommand, read: &ReadContext, printer: Printer) -> Result<u8, Failure> {
    match command {
        SlicesCommand::Find(args) => find::find(args, read, printer),
    }
}
