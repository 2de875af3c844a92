//! `trackway checkpoint …`

mod doctor_page;
mod retention;
mod table;

use std::path::Path;
use std::sync::Arc;

use trackway_api::checkpoints::{
    CheckpointExplanation, CheckpointListing, RemoteAnswer, RequestOutcome, ResumeTarget,
};
use trackway_engine::Context;
use trackway_flows::checkpoints;
use trackway_flows::checkpoints::{Checkpoints, SaveReason, Which};
use trackway_system::{SystemClock, SystemIds};

use crate::args::{CheckpointCommand, CheckpointSubject};
use crate::commands::live::watch;
use crate::exit::{Exit, FAULT, Failure, INTEGRITY, NOT_COMPLETED, NOT_FOUND};
use crate::printer::Printer;
use crate::units::{bytes, counted};

/// Opens the home, which only those need that name a run.
type OpenHome<'a> = dyn Fn() -> Result<Context, Failure> + 'a;

pub fn checkpoint(open: &OpenHome<'_>, command: &CheckpointCommand, printer: Printer) -> Exit {
    let with = |subject, work: &dyn Fn(&Checkpoints) -> Exit| with(open, subject, work);
    match command {
        CheckpointCommand::Ls { subject, all } => with(subject, &|found| list(found, *all, printer)),
        CheckpointCommand::Verify { subject, remote, step } => {
            with(subject, &|found| verify(found, *step, *remote, printer))
        }
        CheckpointCommand::Explain { subject, step } => {
            with(subject, &|found| explain(&found.explain(which(step)?)?, printer))
        }
        CheckpointCommand::ResumeTarget { subject } => with(subject, &|found| resume_target(found, printer)),
        CheckpointCommand::Pin(pin) => with(&pin.subject, &|found| retention::pin(found, pin, printer)),
        CheckpointCommand::Unpin { name, subject, force } => {
            with(subject, &|found| retention::unpin(found, name, *force, printer))
        }
        CheckpointCommand::Clear { run, step, why } => {
            let context = open()?;
            let found = checkpoints::checkpoints(&context, context.resolve_run(run)?)?;
            let step = found.clear_unsafe(&context, *step, why)?;
            found.mirror(&context)?;
            printer.note(format!("the checkpoint of step {step} is not unsafe any more"));
            list(&found, false, printer)
        }
        CheckpointCommand::Gc(gc) => with(&gc.subject, &|found| retention::collect(found, gc, printer)),
        CheckpointCommand::Doctor { subject } => with(subject, &|found| doctor(found, printer)),
        CheckpointCommand::Now { run, why, anomaly } => now(&open()?, run, *anomaly, why, printer),
    }
}

/// Does something with the checkpoints of a run, whose rows in the ledger then follow their log, or of a folder.
fn with(open: &OpenHome<'_>, subject: &CheckpointSubject, work: &dyn Fn(&Checkpoints) -> Exit) -> Exit {
    let subject = &subject.subject;
    if Checkpoints::is_root(subject) {
        return work(&Checkpoints::at(Path::new(subject), Arc::new(SystemClock), Arc::new(SystemIds))?);
    }
    let context = open()?;
    let found = checkpoints::checkpoints(&context, context.resolve_run(subject)?)?;
    let code = work(&found);
    found.mirror(&context)?;
    code
}

fn which(text: &str) -> Result<Which, Failure> {
    match text {
        "latest" => Ok(Which::Latest),
        number => number
            .parse()
            .map(Which::Step)
            .map_err(|_| Failure::usage(format!("invalid step `{text}`"), "use a number or `latest`")),
    }
}

/// Prints entries, and returns in the exit code whether anything was ever committed.
fn show(listing: &CheckpointListing, printer: Printer) -> u8 {
    let committed = listing.checkpoints.iter().any(|entry| entry.manifest_sha256.is_some());
    printer.answer(listing, || table::print(&listing.checkpoints, printer));
    listing.standing.sentence().into_iter().for_each(|standing| printer.note(standing));
    if let Some(why) = silence(listing.remote.as_ref()) {
        printer.note(format!("{why}; `where` is as this disk's log has it"));
    }
    if committed { 0 } else { NOT_FOUND }
}

/// The message that the remote did not answer, with its error.
fn silence(remote: Option<&RemoteAnswer>) -> Option<String> {
    let RemoteAnswer { location, error, .. } = remote.filter(|remote| !remote.answers)?;
    Some(format!("the remote {location} does not answer: {}", error.as_deref().unwrap_or_default()))
}

fn list(checkpoints: &Checkpoints, all: bool, printer: Printer) -> Exit {
    let listing = checkpoints.list(all)?;
    let code = show(&listing, printer);
    if checkpoints.log_is_gone() {
        printer.note("the local checkpoint log is missing, and without it no checkpoint is valid; see `trackway checkpoint doctor`");
    } else if listing.checkpoints.is_empty() {
        printer.note("no checkpoint was ever begun");
    } else if code == NOT_FOUND {
        printer.note("nothing was ever committed");
    }
    let damaged = checkpoints.damaged_entry_count()?;
    if damaged > 0 {
        let entries = counted(damaged as u64, "log entry");
        printer.note(format!("{entries} cannot be read; see `trackway checkpoint doctor`"));
    }
    Ok(code)
}

fn verify(checkpoints: &Checkpoints, step: Option<u64>, remote: bool, printer: Printer) -> Exit {
    let listing = checkpoints.verify(step, remote, &watch("verifying"))?;
    let code = show(&listing, printer);
    let entries = &listing.checkpoints;
    if entries.is_empty() {
        printer.note("nothing was ever committed");
    }
    let broken: Vec<_> = entries.iter().filter(|entry| entry.verified == Some(false)).collect();
    for entry in &broken {
        printer.note(entry.why.as_deref().unwrap_or("it does not verify"));
    }
    let unread = entries.iter().filter(|entry| entry.verified.is_none()).count();
    if unread > 0 {
        let them = if unread == 1 { "1 is".into() } else { format!("{unread} are") };
        printer.note(format!("{them} at the remote only and not read; --remote reads there too"));
    }
    if broken.is_empty() {
        return Ok(code);
    }
    let of = entries.len();
    printer.note(format!(
        "{} of {of} committed checkpoints do not verify; see `trackway checkpoint doctor`",
        broken.len()
    ));
    Ok(INTEGRITY)
}

fn resume_target(checkpoints: &Checkpoints, printer: Printer) -> Exit {
    let target = checkpoints.resume_target(&watch("verifying"))?;
    let silence = silence(target.remote.as_ref());
    printer.answer(&target, || print_target(&target, silence.as_deref(), printer));
    Ok(if silence.is_some() { FAULT } else { 0 })
}

fn print_target(target: &ResumeTarget, silence: Option<&str>, printer: Printer) {
    if let Some(why) = silence {
        printer.note(format!("{why}; nothing can be launched until it does"));
        printer.note("local checkpoints, used if no other attempt has continued the run since:");
    }
    if let Some(newest) = target.lost.last() {
        printer.note(format!(
            "{} local checkpoints up to step {newest} do not belong to the run: another attempt took it over before they \
             reached the remote",
            target.lost.len()
        ));
    }
    for passed in &target.skipped {
        let what = passed.step.map_or_else(|| "a checkpoint".into(), |step| format!("step {step}"));
        printer.note(format!("{what} was skipped: {}", passed.why));
    }
    if target.cost.steps > 0 {
        printer.note(target.cost.sentence());
    }
    table::print(&target.checkpoints, printer);
    target.standing.sentence().into_iter().for_each(|standing| printer.note(standing));
    if target.fetch_bytes > 0 {
        let fetched = bytes(target.fetch_bytes);
        printer.note(format!("{fetched} would be downloaded from the remote and verified"));
    }
}

fn explain(explanation: &CheckpointExplanation, printer: Printer) -> Exit {
    printer.answer(explanation, || {
        for sentence in &explanation.sentences {
            printer.line(sentence);
        }
    });
    Ok(if explanation.manifest_error.is_some() { INTEGRITY } else { 0 })
}

fn doctor(checkpoints: &Checkpoints, printer: Printer) -> Exit {
    let report = checkpoints.doctor(&watch("reading checkpoints"))?;
    printer.answer(&report, || doctor_page::print(&report, printer));
    Ok(match report.committed_count {
        _ if report.has_errors() => INTEGRITY,
        0 => NOT_FOUND,
        _ => 0,
    })
}

fn now(context: &Context, run: &str, anomaly: bool, why: &str, printer: Printer) -> Exit {
    let reason = if anomaly { SaveReason::Anomaly } else { SaveReason::Asked };
    let asked = checkpoints::checkpoint_now(context, context.resolve_run(run)?, reason, why)?;
    printer.answer(&asked, || {
        let step = asked.step.map(|step| format!(" at step {step}")).unwrap_or_default();
        printer.note(format!("request {}: {}{step}", asked.request_id, asked.outcome));
        if asked.outcome == RequestOutcome::NoAnswer {
            printer.note("the script did not respond in time; it must call `checkpoint_due` at every step");
        }
    });
    Ok(if asked.outcome == RequestOutcome::Done { 0 } else { NOT_COMPLETED })
}
