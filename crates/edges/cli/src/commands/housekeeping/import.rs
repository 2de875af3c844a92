use trackway_api::home::import::{ImportReport, SkippedPath};
use trackway_engine::Context;
use trackway_flows::home::import;

use crate::args::ImportArgs;
use crate::exit::{BLOCKED, Exit};
use crate::printer::Printer;
use crate::units::counted;

/// The kind of what is neither a number nor a parameter nor a tag.
const OBJECT: &str = "object";
/// So many of what was left out and of what was changed are shown.
const SHOWN_MAX: usize = 20;

pub fn import(context: &Context, args: &ImportArgs, printer: Printer) -> Exit {
    let report = import::import(context, args.tool, (&args.path, args.strict), |run| {
        let done = if run.is_new { "imported" } else { "known already:" };
        printer.note(format!(
            "{done} {} as {} ({})",
            run.name,
            run.run_id,
            counted(run.point_count, "value")
        ));
        if let Some(own) = &run.renamed_from {
            printer.note(format!("the run is named `{}`, because `{own}` is reserved", run.name));
        }
    })?;
    printer.answer(&report, || print(&report, printer));
    // A store of which nothing could be read is not imported.
    let is_nothing = report.runs.is_empty() && !report.skipped.is_empty();
    Ok(if report.is_refused || is_nothing { BLOCKED } else { 0 })
}

fn print(report: &ImportReport, printer: Printer) {
    for (done, list) in [("changed", &report.changed), ("skipped", &report.skipped)] {
        sentences(done, list).into_iter().for_each(|sentence| printer.note(sentence));
    }
    if report.is_refused {
        printer.note("nothing was imported: without --strict it is, except for what is named above");
    }
    printer.line(format!(
        "{} imported, {} known already",
        counted(report.imported_count, "run"),
        report.known_count
    ));
}

fn sentences(done: &str, list: &[SkippedPath]) -> Vec<String> {
    let place = |path: &str| if path.is_empty() { String::new() } else { format!(" {path}") };
    let number = |it: &SkippedPath| match it.count {
        1 => String::new(),
        // Their sentence has a number of each kind.
        _ if it.kind == OBJECT => String::new(),
        count => format!(" ({count})"),
    };
    let sentence = |it: &SkippedPath| format!("{done}{}: {}{}", place(&it.path), it.why, number(it));
    let more = list.len().saturating_sub(SHOWN_MAX);
    let more = (more > 0).then(|| format!("{done}: {more} more, which --json lists"));
    list.iter().take(SHOWN_MAX).map(sentence).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each is a sentence with its place and number, and that a long list is cut and the rest counted.
    #[test]
    fn omissions_are_sentences() {
        let omission = |path: &str, count| SkippedPath {
            kind: "value".into(),
            path: path.into(),
            count,
            why: "`value` is NULL".into(),
        };
        let shown = sentences("skipped", &[omission("mlflow.db", 3), omission("", 1)]);
        assert_eq!(shown, ["skipped mlflow.db: `value` is NULL (3)", "skipped: `value` is NULL"]);
        let why = "not: histogram (19), text (2)".to_owned();
        let objects = SkippedPath { kind: OBJECT.into(), path: String::new(), count: 21, why };
        assert_eq!(sentences("skipped", &[objects]), ["skipped: not: histogram (19), text (2)"]);
        let many: Vec<SkippedPath> = (0..SHOWN_MAX + 2).map(|_| omission("a", 1)).collect();
        let shown = sentences("skipped", &many);
        assert_eq!((shown.len(), &*shown[SHOWN_MAX]), (SHOWN_MAX + 1, "skipped: 2 more, which --json lists"));
    }
}
