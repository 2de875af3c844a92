//! `trackway verify`.

use trackway_api::home::verify::{VerifiedKind, VerifyReport};
use trackway_engine::Context;
use trackway_flows::home::verify::{Depth, LISTED_MAX, verify};

use crate::args::VerifyArgs;
use crate::commands::live::CountSpinner;
use crate::exit::{Exit, INTEGRITY};
use crate::printer::{Printer, Tone};
use crate::signals;
use crate::units::{counted, duration};

pub fn verify_command(context: &Context, args: &VerifyArgs, printer: Printer) -> Exit {
    signals::interruptible(&context.request.cancel);
    let run = match args.all {
        true => None,
        false => Some(context.resolve_run(&args.run)?),
    };
    let spinner = CountSpinner::new();
    let report = verify(context, run, Depth::Files, &|kind, count| spinner.at(kind.plural(), count))?;
    spinner.finish();
    printer.answer(&report, || show(&report, args.verbose, printer));
    Ok(if report.holds { 0 } else { INTEGRITY })
}

fn show(report: &VerifyReport, is_verbose: bool, printer: Printer) {
    let kinds = report.kinds.iter().map(row).collect();
    printer.table(&["of", "hold", "differ", "not sealed", "not here"], kinds);
    for differs in &report.differs {
        let kind = printer.tone(Tone::Bad, differs.kind.as_str());
        let of_run = differs.run_id.map(|run_id| format!(" of {run_id}")).unwrap_or_default();
        printer.line(kind + format!(" {}{of_run}", differs.id));
        printer.paragraph(INDENT, &differs.why);
    }
    let all: u64 = report.kinds.iter().map(|kind| kind.differ_count).sum();
    if report.differs.len() == LISTED_MAX {
        printer.note(format!("only the first {LISTED_MAX} differences are listed"));
    }
    let gaps = gaps(&report.not_covered);
    match is_verbose {
        true => show_gaps(gaps, printer),
        false => gaps.counted().into_iter().for_each(|line| printer.note(line)),
    }
    printer.note(format!("verified in {}", duration(report.seconds)));
    printer.note(match report.holds {
        true => "nothing of what was verified differs from what was sealed or kept".to_owned(),
        false => {
            format!(
                "{all} differ from what was sealed or kept: compare the ledger and the folder with a copy"
            )
        }
    });
}

fn show_gaps(Gaps { tables, others }: Gaps<'_>, printer: Printer) {
    if !tables.is_empty() {
        printer.line("");
        let row = |(gap, names): (&str, Vec<&str>)| vec![names.join(", "), gap.to_owned()];
        printer.table_with_prose(&["not covered of", "what"], tables.into_iter().map(row).collect());
    }
    if !others.is_empty() {
        printer.line("");
        printer.line(printer.tone(Tone::Bold, "not covered either"));
        others.into_iter().for_each(|other| printer.paragraph(INDENT, other));
    }
}

/// Columns before what is said of a line above.
const INDENT: usize = 2;

fn row(kind: &VerifiedKind) -> Vec<String> {
    let counted = |count: u64| if count == 0 { "–".to_owned() } else { count.to_string() };
    vec![
        kind.kind.plural().to_owned(),
        counted(kind.hold_count),
        counted(kind.differ_count),
        counted(kind.open_count),
        counted(kind.unknown_count),
    ]
}

/// What is not covered, for a person.
struct Gaps<'r> {
    /// What is not covered of tables, with their names; those of which it is the same together.
    tables: Vec<(&'r str, Vec<&'r str>)>,
    /// The rest.
    others: Vec<&'r str>,
}

impl Gaps<'_> {
    /// How much is not covered, in a line; none where everything is.
    fn counted(&self) -> Option<String> {
        let table_count: usize = self.tables.iter().map(|(_, names)| names.len()).sum();
        let parts = [(table_count, "table"), (self.others.len(), "other thing")];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, noun)| counted(count as u64, noun))
            .collect();
        let what = parts.join(" and ");
        (!parts.is_empty()).then(|| format!("not covered, or not completely: {what} (listed with --verbose)"))
    }
}

fn gaps(not_covered: &[String]) -> Gaps<'_> {
    let mut gaps = Gaps { tables: Vec::new(), others: Vec::new() };
    for said in not_covered {
        let of_table = said.strip_prefix("table `").and_then(|rest| rest.split_once("`: "));
        let Some((name, gap)) = of_table else {
            gaps.others.push(said);
            continue;
        };
        match gaps.tables.iter_mut().find(|(known, _)| *known == gap) {
            Some((_, names)) => names.push(name),
            None => gaps.tables.push((gap, vec![name])),
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that tables with the same gap are in one row, in their order, that nothing of what is not covered is left out, and that a
    /// line counts them.
    #[test]
    fn gaps_of_tables_are_together() {
        let said =
            ["table `leases`: all", "rows of none", "table `rungs`: the verdict", "table `duties`: all"];
        let said: Vec<String> = said.map(str::to_owned).to_vec();
        let found = gaps(&said);
        let counted = "not covered, or not completely: 3 tables and 1 other thing (listed with --verbose)";
        assert_eq!(found.counted().as_deref(), Some(counted));
        assert_eq!(gaps(&[]).counted(), None);
        let Gaps { tables, others } = found;
        assert_eq!(tables, [("all", vec!["leases", "duties"]), ("the verdict", vec!["rungs"])]);
        assert_eq!(others, ["rows of none"]);
    }
}
