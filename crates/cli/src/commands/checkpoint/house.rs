use trackway_app::checkpoints::{Checkpoints, Collection, Garbage, KeepChanges, Pinned};
use trackway_core::Timestamp;

use super::{seconds, which};
use crate::args::{GcArgs, PinArgs};
use crate::exit::Failure;
use crate::printer::Printer;
use crate::units::bytes;

pub fn pin(checkpoints: &Checkpoints, args: &PinArgs, printer: Printer) -> Result<u8, Failure> {
    let which = which(&args.step)?;
    let pinned = match (&args.until, &args.lasting) {
        (Some(until), _) => checkpoints.pin(&args.name, which, &args.why, Some(moment(until)?)),
        (None, Some(lasting)) => checkpoints.pin_for(&args.name, which, &args.why, seconds(lasting)?),
        (None, None) => checkpoints.pin(&args.name, which, &args.why, None),
    }?;
    tell(&pinned, "holds", printer);
    Ok(0)
}

pub fn unpin(checkpoints: &Checkpoints, name: &str, printer: Printer) -> Result<u8, Failure> {
    let pinned = checkpoints.unpin(name)?;
    tell(&Pinned { until: None, ..pinned }, "no longer holds", printer);
    Ok(0)
}

fn moment(text: &str) -> Result<Timestamp, Failure> {
    text.parse()
        .map_err(|_| Failure::usage(format!("`{text}` is no moment"), "such as `2027-01-31T12:00:00Z`"))
}

fn tell(pinned: &Pinned, holds: &str, printer: Printer) {
    if printer.is_json() {
        printer.document(pinned);
        return;
    }
    let step = pinned.step.map(|step| format!("step {step}")).unwrap_or_else(|| "a checkpoint".into());
    let until = pinned.until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
    printer.note(&format!("the pin `{}` {holds} {step} (entry {}){until}", pinned.name, pinned.number));
}

pub fn collect(checkpoints: &Checkpoints, args: &GcArgs, printer: Printer) -> Result<u8, Failure> {
    let garbage = Garbage {
        keep: KeepChanges {
            last: args.keep_last,
            every_steps: args.keep_every,
            best: args.keep_best.clone(),
        },
        older_than_seconds: seconds(&args.older_than)?,
        dry_run: !args.yes,
    };
    let done = checkpoints.collect(&garbage)?;
    if printer.is_json() {
        printer.document(&done);
    } else {
        show(&done, printer);
    }
    Ok(0)
}

fn show(done: &Collection, printer: Printer) {
    let size = |size_bytes: Option<u64>| size_bytes.map(bytes).unwrap_or_default();
    let mut rows: Vec<(u64, Vec<String>)> = Vec::new();
    for kept in &done.keep {
        let cells =
            vec![kept.step.to_string(), "stays".into(), size(kept.size_bytes), kept.reasons.join(", ")];
        rows.push((kept.number, cells));
    }
    let goes = if done.dry_run { "would go" } else { "is deleted" };
    for retired in &done.retire {
        let why = retired.why.replace('_', " ");
        rows.push((
            retired.number,
            vec![retired.step.to_string(), goes.into(), size(retired.size_bytes), why],
        ));
    }
    for orphan in &done.orphans {
        let why = "left over, never a checkpoint or one no more".into();
        rows.push((orphan.number, vec![orphan.step.to_string(), goes.into(), String::new(), why]));
    }
    rows.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    printer.table(&["step", "fate", "size", "why"], rows.into_iter().map(|(_, cells)| cells).collect());
    for step in &done.suspects {
        printer.note(&format!("step {step} does not verify and is suspect from now on"));
    }
    tell_sum(done, printer);
}

fn tell_sum(done: &Collection, printer: Printer) {
    printer.note(&format!("kept by rule: {}", done.policy));
    let freed = bytes(done.freed_bytes);
    let nothing = done.retire.is_empty() && done.orphans.is_empty();
    printer.note(&match (&done.refused, done.dry_run) {
        (Some(why), _) => format!("nothing is deleted: {why}"),
        _ if nothing => "there is nothing to delete".into(),
        (None, true) => format!("{freed} would be free again; delete with --yes"),
        (None, false) => format!("{freed} are free again"),
    });
}
