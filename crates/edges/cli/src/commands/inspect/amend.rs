//! `trackway amend`: late facts beside a receipt, and what a run is called and how lists show it.

use trackway_api::runs::{AmendedRun, RunAmendment, RunField};
use trackway_core::name::NameKind;
use trackway_engine::Context;
use trackway_engine::good_runs::BLESSED;
use trackway_flows::runs::amend::{self, AmendRequest};
use trackway_flows::runs::amend_run::{self, RunChanges};

use crate::args::{AmendArgs, AmendRunArgs, BlessArgs};
use crate::commands::{given, given_name};
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

pub fn amend(context: &Context, args: &AmendArgs, printer: Printer) -> Exit {
    let context = &context.acting_as(args.by.as_deref());
    match (&args.field, &args.why) {
        (Some(field), Some(why)) => {
            let value = args.value.clone().filter(|_| !args.unknown);
            let request = AmendRequest { field: field.clone(), value, why: why.clone() };
            amend_attempt(context, &args.subject, &request, printer)
        }
        _ => {
            let changes = RunChanges { why: args.why.clone(), ..changes(&args.run)? };
            let changed = amend_run::amend_run(context, context.resolve_run(&args.subject)?, &changes)?;
            printer.answer(&changed, || show_run(&changed, printer));
            Ok(0)
        }
    }
}

/// Vouches for a run: it counts as good whatever its health is.
pub fn bless(context: &Context, args: &BlessArgs, printer: Printer) -> Exit {
    if args.why.trim().is_empty() {
        return Err(Failure::usage("--why is empty", "say why the run is good, for those who read it later"));
    }
    let context = &context.acting_as(args.by.as_deref());
    let changes =
        RunChanges { tags: [(BLESSED.to_owned(), args.why.clone())].into(), ..RunChanges::default() };
    let changed = amend_run::amend_run(context, context.resolve_run(&args.run)?, &changes)?;
    printer.answer(&changed, || show_run(&changed, printer));
    Ok(0)
}

fn amend_attempt(context: &Context, subject: &str, request: &AmendRequest, printer: Printer) -> Exit {
    let attempt = context.resolve_attempt(subject)?;
    let amendment = amend::amend(context, attempt, request)?;
    printer.answer(&amendment, || {
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "not known".into());
        let (old, new) = (shown(&amendment.old_text), shown(&amendment.new_text));
        printer
            .note(format!("amended {attempt}: {} {old} → {new}; the receipt is as it was", amendment.field));
    });
    Ok(0)
}

fn changes(args: &AmendRunArgs) -> Result<RunChanges, Failure> {
    Ok(RunChanges {
        name: args.name.as_deref().map(|name| given_name(NameKind::Run, name)).transpose()?,
        note: args.note.clone(),
        tags: given("--tag", &args.tags)?,
        untag: args.untag.clone(),
        hidden: (args.hide || args.unhide).then_some(args.hide),
        ..RunChanges::default()
    })
}

fn show_run(run: &AmendedRun, printer: Printer) {
    if run.changes.is_empty() {
        printer.note(format!("`{}` is so already: nothing was changed", run.name));
    }
    for change in &run.changes {
        printer.note(format!("{}: {}", run.run_id, sentence(change)));
    }
}

pub(super) fn sentence(change: &RunAmendment) -> String {
    let shown = |text: &Option<String>| text.as_ref().map_or("none".into(), |text| format!("`{text}`"));
    let (old, new) = (shown(&change.old_text), shown(&change.new_text));
    match (change.field, &change.tag) {
        (RunField::Tag, Some(tag)) => format!("tag {tag}: {old} → {new}"),
        (RunField::Hidden, _) if change.new_text.is_some() => "hidden: lists leave it out".into(),
        (RunField::Hidden, _) => "no longer hidden".into(),
        (field, _) => format!("{field}: {old} → {new}"),
    }
}
