use trackway_api::home::gc::GcReport;
use trackway_engine::Context;
use trackway_flows::home::gc;
use trackway_flows::home::gc::GcRequest;
use trackway_rules::retention::RetentionRule;

use crate::args::RunsGcArgs;
use crate::exit::{BLOCKED, Exit};
use crate::printer::Printer;
use crate::units::bytes;

pub fn gc(context: &Context, args: &RunsGcArgs, printer: Printer) -> Exit {
    let runs = args.runs.iter().map(|run| context.resolve_run(run)).collect::<Result<_, _>>()?;
    let request = GcRequest {
        runs,
        checkpoints: args.checkpoints,
        quarantine: args.quarantine,
        condition: args.condition.clone(),
        rule: RetentionRule {
            older_than_seconds: args.older_than.map(|age| age.0),
            keep_last: args.keep_last,
        },
        dry_run: args.deletion.is_dry_run(),
    };
    let cleared = gc::gc(context, &request)?;
    printer.answer(&cleared, || show(&cleared, printer));
    // A run that was named and is kept was not deleted as it should have been.
    Ok(if args.runs.is_empty() || cleared.kept.is_empty() { 0 } else { BLOCKED })
}

fn show(cleared: &GcReport, printer: Printer) {
    let goes = if cleared.dry_run { "would be deleted" } else { "deleted" };
    let gone = cleared.gone.iter().map(|run| {
        vec![run.run_id.to_string(), run.name.clone(), goes.into(), bytes(run.size_bytes), String::new()]
    });
    let kept = cleared.kept.iter().map(|run| {
        vec![run.run_id.to_string(), run.name.clone(), "kept".into(), String::new(), run.why.clone()]
    });
    let set_aside = cleared.set_aside.iter().map(|one| {
        let (fate, why) = match one.goes {
            true => (goes, format!("moved out of the script's way before a resume: `{}`", one.path)),
            false => {
                ("kept", format!("moved out of the script's way: `{}`; --quarantined deletes it", one.path))
            }
        };
        vec![one.run_id.to_string(), one.name.clone(), fate.into(), bytes(one.size_bytes), why]
    });
    let leftovers = cleared.leftovers.iter().map(|one| {
        vec![String::new(), one.path.clone(), goes.into(), bytes(one.size_bytes), one.why.clone()]
    });
    let rows: Vec<Vec<String>> = gone.chain(set_aside).chain(kept).chain(leftovers).collect();
    if !rows.is_empty() {
        printer.table_with_prose(&["run", "name", "logs and records", "size", "why"], rows);
    }
    let freed = bytes(cleared.freed_bytes);
    printer.note(&match (
        cleared.gone.is_empty()
            && cleared.leftovers.is_empty()
            && !cleared.set_aside.iter().any(|one| one.goes),
        cleared.dry_run,
    ) {
        (true, _) => "nothing to delete".into(),
        (false, true) => format!("{freed} would be freed; nothing was deleted: repeat with --yes to delete"),
        (false, false) => format!("{freed} freed; receipts are kept"),
    });
}
