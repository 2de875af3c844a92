use std::path::Path;

use trackway_api::data::DiffAnswer;
use trackway_engine::home::Home;
use trackway_flows::data::ReadContext;
use trackway_flows::data::snapshot::{SHORT_ID_LENGTH, diff as compare};

use super::{drift, reading, request, snapshot};
use crate::args::DiffArgs;
use crate::exit::Exit;
use crate::printer::{Printer, Tone};
use crate::units::{bytes, counted};

/// Files of one kind that are shown; `--json` has all.
const SHOWN_FILES: usize = 20;

pub fn diff(home: &Home, args: &DiffArgs, read: &ReadContext, printer: Printer) -> Exit {
    let side = |word: &String| request(std::slice::from_ref(word), &args.reading, read);
    let sides = (&side(&args.before), &side(&args.after));
    let label = args.label.as_deref();
    let answer = reading(printer, |observer| compare(home, Path::new(""), sides, label, observer))?;
    printer.answer(&answer, || print(printer, &answer));
    Ok(0)
}

fn print(printer: Printer, answer: &DiffAnswer) {
    let diff = &answer.diff;
    let short = |id: &str| id[..SHORT_ID_LENGTH].to_owned();
    if diff.same {
        printer.line(format!("the same data: {}", short(&answer.before)));
        return;
    }
    let side = |index: usize| {
        let rows = snapshot::rows(diff.rows[index], diff.rows_rejected[index]);
        format!("{}{rows}", bytes(diff.size_bytes[index]))
    };
    printer.line(format!("before {}: {}", short(&answer.before), side(0)));
    printer.line(format!("after  {}: {}", short(&answer.after), side(1)));
    let moved: Vec<String> =
        diff.files.moved.iter().map(|moved| format!("{} → {}", moved.from, moved.to)).collect();
    printer.line("");
    printer.line(format!("unchanged: {}", counted(diff.files.unchanged, "file")));
    files(printer, "changed", &diff.files.changed);
    files(printer, "moved", &moved);
    files(printer, "added", &diff.files.added);
    files(printer, "removed", &diff.files.removed);
    for change in &diff.schema {
        let what = match (change.before, change.after) {
            (Some(_), None) => "was removed".to_owned(),
            (None, Some(kind)) => format!("was added, with type {}", format!("{kind:?}").to_lowercase()),
            (before, after) => format!("changed its type from {before:?} to {after:?}")
                .replace("Some(", "")
                .replace(')', "")
                .to_lowercase(),
        };
        let line = format!("column `{}` {what}", change.column);
        printer.point(Tone::Warning, line);
    }
    if let Some(report) = &answer.drift {
        printer.line("");
        drift::print(printer, report);
    }
}

fn files(printer: Printer, what: &str, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    printer.line(format!("{} {what}:", paths.len()));
    paths.iter().take(SHOWN_FILES).for_each(|path| printer.line(format!("  {}", path)));
    if paths.len() > SHOWN_FILES {
        printer.line(format!("  … and {} more (`--json` has all)", paths.len() - SHOWN_FILES));
    }
}
