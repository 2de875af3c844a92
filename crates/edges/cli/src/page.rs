//! Writes pages to files.

use std::path::Path;

use trackway_core::Clock as _;
use trackway_pages::{About, Page};
use trackway_system::SystemClock;

use crate::exit::Failure;
use crate::printer::Printer;

/// Makes a page, writes it, and reports where it is.
pub fn save(
    path: &Path,
    what: &str,
    printer: Printer,
    page: impl FnOnce(&About) -> Page,
) -> Result<(), Failure> {
    let about = About {
        made_at: SystemClock.now(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        masks: printer.masks(),
    };
    save_text(path, what, printer, page(&about).as_str())
}

/// Writes a text, and reports where it is.
pub fn save_text(path: &Path, what: &str, printer: Printer, text: &str) -> Result<(), Failure> {
    write(path, text)?;
    printer.note(format!("the {what} is in {}", path.display()));
    Ok(())
}

/// Writes a file of the user.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .and_then(|()| trackway_files::give_to_user(path))
        .map_err(|error| Failure::fault(format!("cannot write `{}`", path.display())).because(error))
}
