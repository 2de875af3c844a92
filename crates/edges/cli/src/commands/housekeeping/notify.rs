use trackway_engine::notify::send_test;

use crate::args::NotifyArgs;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

/// Sends a test notification. `setting` is the address of the settings.
pub fn notify(args: &NotifyArgs, setting: Option<&str>, printer: Printer) -> Exit {
    let (sent, done) = send_test(args.file.as_deref(), setting)?;
    if printer.is_json() {
        printer.document(&sent);
    }
    match done {
        Ok(host) => {
            printer.note(format!("{host} has taken a test notification"));
            Ok(0)
        }
        Err(why) => Err(Failure::fault("the test notification was not taken").because(why)),
    }
}
