//! `trackway reproduce`.

use std::path::Path;

use trackway_api::runs::reproduce::{Reproduction, ReproductionCheck, ReproductionVerdict};
use trackway_engine::Context;
use trackway_flows::runs::reproduce::{check, reproduce};

use crate::commands::data_and_models::data::reading;
use crate::exit::{Exit, INTEGRITY, NOT_COMPLETED};
use crate::printer::{Printer, Tone};
use crate::units::short_hash;

/// The folder of a reproduction in which its home is.
pub fn home_of(folder: &Path) -> std::path::PathBuf {
    folder.join("home")
}

pub fn write(context: &Context, attempt: &str, out: &Path, printer: Printer) -> Exit {
    let attempt = context.resolve_attempt(attempt)?;
    let written = reading(printer, |observer| reproduce(context, attempt, out, observer))?;
    printer.answer(&written, || show(&written, printer));
    Ok(0)
}

fn show(written: &Reproduction, printer: Printer) {
    for part in &written.rebuilt {
        printer.line(printer.tone(Tone::Good, "rebuilt ") + format!(" {}: {}", part.what, part.from));
    }
    for what in &written.missing {
        printer.line(printer.tone(Tone::Warning, "not     ") + format!(" {what}"));
    }
    printer.note(format!("run it with: {}/reproduce.sh", written.folder));
}

pub fn compare(context: &Context, folder: &Path, printer: Printer) -> Exit {
    let run = context.resolve_run("last")?;
    let compared = check(context, folder, run)?;
    printer.answer(&compared, || show_check(&compared, printer));
    Ok(match compared.verdict {
        ReproductionVerdict::Equal => 0,
        ReproductionVerdict::Different => INTEGRITY,
        ReproductionVerdict::CannotTell => NOT_COMPLETED,
    })
}

fn show_check(compared: &ReproductionCheck, printer: Printer) {
    let short = |text: &str| if text.len() > 40 { short_hash(text).to_owned() } else { text.to_owned() };
    let rows = compared.compared.iter().map(|value| {
        let word = match (value.equal, &value.reproduced) {
            (true, _) => "equal",
            (false, Some(_)) => "different",
            (false, None) => "not there",
        };
        let reproduced = value.reproduced.as_deref().map(short).unwrap_or_default();
        vec![value.what.clone(), short(&value.original), reproduced, word.to_owned()]
    });
    printer.table(&["what", "original", "reproduced", ""], rows.collect());
    let verdict = compared.verdict.as_str().replace('_', " ");
    printer.note(format!("{verdict}: attempt {} and run {}", compared.attempt_id, compared.run_id));
}
