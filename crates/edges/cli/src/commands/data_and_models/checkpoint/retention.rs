use trackway_api::checkpoints::{CheckpointCollection, CheckpointOrigin, CheckpointPin, CollectedPlace};
use trackway_flows::checkpoints::model_pin::model_of_pin;
use trackway_flows::checkpoints::{Checkpoints, Garbage, KeepChanges};

use super::which;
use crate::args::{GcArgs, PinArgs};
use crate::exit::{Exit, FAULT, Failure, parse_time};
use crate::printer::Printer;
use crate::units::bytes;

pub fn pin(checkpoints: &Checkpoints, args: &PinArgs, printer: Printer) -> Exit {
    if model_of_pin(&args.name).is_some() {
        let message = format!("`{}` reads as a pin of the registry", args.name);
        return Err(Failure::usage(
            message,
            "choose another name; `trackway registry register` pins by itself",
        ));
    }
    let which = which(&args.step)?;
    let until = args.until.as_deref().map(|until| parse_time(until, "`2027-01-31T12:00:00Z`")).transpose()?;
    let lasting = args.lasting.as_ref().map(|lasting| checkpoints.now().plus_seconds(lasting.0));
    let pinned = checkpoints.pin(&args.name, which, &args.why, lasting.or(until))?;
    report_pin(&pinned, "holds", printer);
    Ok(0)
}

pub fn unpin(checkpoints: &Checkpoints, name: &str, force: bool, printer: Printer) -> Exit {
    if let Some(model) = model_of_pin(name).filter(|_| !force) {
        let message = format!("`{name}` keeps the files of a registered version of model `{model}`");
        return Err(Failure::usage(
            message,
            format!("see where the version is: trackway registry show {model}"),
        )
        .hint("--force unpins it anyway; retention may then delete the files"));
    }
    let pinned = checkpoints.unpin(name)?;
    report_pin(&CheckpointPin { until: None, ..pinned }, "no longer holds", printer);
    Ok(0)
}

fn report_pin(pinned: &CheckpointPin, holds: &str, printer: Printer) {
    printer.answer(pinned, || {
        let step = pinned.step.map_or_else(|| "a checkpoint".into(), |step| format!("step {step}"));
        let until = pinned.until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
        printer.note(format!("the pin `{}` {holds} {step} (entry {}){until}", pinned.name, pinned.number));
    });
}

pub fn collect(checkpoints: &Checkpoints, args: &GcArgs, printer: Printer) -> Exit {
    let garbage = Garbage {
        keep: KeepChanges {
            last: args.keep_last,
            every_steps: args.keep_every,
            best: args.keep_best.clone(),
        },
        older_than_seconds: args.older_than.0,
        dry_run: args.deletion.is_dry_run(),
    };
    let done = checkpoints.collect(&garbage)?;
    printer.answer(&done, || show(&done, printer));
    Ok(if done.places.iter().any(|place| place.error.is_some()) { FAULT } else { 0 })
}

fn show(done: &CheckpointCollection, printer: Printer) {
    for place in &done.places {
        match place.origin {
            CheckpointOrigin::Local => show_disk(place, done, printer),
            CheckpointOrigin::Remote => show_remote(place, done.dry_run, printer),
        }
    }
}

fn show_disk(disk: &CollectedPlace, done: &CheckpointCollection, printer: Printer) {
    print(fates(disk, done.dry_run), printer);
    for step in &disk.suspects {
        printer.note(format!("step {step} does not verify and is suspect from now on"));
    }
    printer.note(format!("kept by rule: {}", done.policy));
    let freed = bytes(disk.freed_bytes.unwrap_or(0));
    let nothing = disk.retire.is_empty() && disk.orphans.is_empty();
    printer.note(&match (&disk.refused, done.dry_run) {
        (Some(why), _) => format!("nothing is deleted: {why}"),
        _ if nothing => "nothing to delete".into(),
        (None, true) => format!("{freed} would be freed; delete with --yes"),
        (None, false) => format!("{freed} freed"),
    });
}

fn show_remote(remote: &CollectedPlace, dry_run: bool, printer: Printer) {
    let location = &remote.location;
    if let Some(error) = &remote.error {
        printer.note(format!("nothing is deleted at the remote {location}: {error}"));
        return;
    }
    printer.line("");
    printer.line(format!("at {location}"));
    print(fates(remote, dry_run), printer);
    for step in &remote.suspects {
        printer.note(format!("step {step} is not whole at the remote and is suspect from now on"));
    }
    let removed = remote.removed_objects.unwrap_or(0);
    printer.note(&match &remote.refused {
        Some(why) => format!("nothing is deleted at the remote: {why}"),
        None if remote.retire.is_empty() && removed == 0 => "nothing to delete at the remote".into(),
        None if dry_run => "delete with --yes what would go at the remote".into(),
        None => format!("{removed} objects were deleted at the remote"),
    });
}

/// What stays and what goes, by the number in the log.
fn fates(place: &CollectedPlace, dry_run: bool) -> Vec<(u64, Vec<String>)> {
    let goes = if dry_run { "would go" } else { "is deleted" };
    let row = |number: u64, step: u64, fate: &str, size_bytes: Option<u64>, why: String| {
        let size = size_bytes.map(bytes).unwrap_or_default();
        (number, vec![step.to_string(), fate.to_owned(), size, why])
    };
    let keep = place.keep.iter();
    let keep = keep.map(|it| row(it.number, it.step, "stays", it.size_bytes, it.reasons.join(", ")));
    let retire = place.retire.iter();
    let retire =
        retire.map(|it| row(it.number, it.step, goes, it.size_bytes, it.why.as_str().replace('_', " ")));
    let orphans = place.orphans.iter();
    let orphans = orphans.map(|it| row(it.number, it.step, goes, None, "not part of any checkpoint".into()));
    keep.chain(retire).chain(orphans).collect()
}

fn print(mut rows: Vec<(u64, Vec<String>)>, printer: Printer) {
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    printer.table(&["step", "fate", "size", "why"], rows.into_iter().map(|(_, cells)| cells).collect());
}
