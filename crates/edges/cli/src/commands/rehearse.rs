use trackway_api::rehearsal::RehearsalReport;
use trackway_engine::Context;
use trackway_engine::run::RunSource;
use trackway_flows::rehearsal;
use trackway_flows::rehearsal::{LaunchKind, RehearsalSettings, RehearseRequest, Verdict};

use super::checks::{headline, print_action};
use super::live::{note_launches, supervised};
use crate::args::{RehearsalKind, RehearseArgs};
use crate::exit::{BLOCKED, Exit};
use crate::printer::{Printer, Tone};

pub fn rehearse(context: &Context, args: &RehearseArgs, printer: Printer) -> Exit {
    let answer = supervised(context, printer, |live| rehearsal::rehearse(context, &request(args), live))?;
    printer.answer(&answer, || print(printer, &answer));
    Ok(match answer.result.verdict {
        Verdict::Pass | Verdict::Warn | Verdict::NotApplicable => 0,
        Verdict::Block | Verdict::NotRun => BLOCKED,
    })
}

fn request(args: &RehearseArgs) -> RehearseRequest {
    let (kind, settings) = match args.kind {
        RehearsalKind::OneBatch => (LaunchKind::OneBatch, RehearsalSettings::one_batch()),
        RehearsalKind::Overfit => (LaunchKind::Overfit, RehearsalSettings::overfit(args.batches)),
    };
    let settings = RehearsalSettings {
        steps_max: args.steps.unwrap_or(settings.steps_max),
        timeout_seconds: args.timeout.0,
        handshake_seconds: args.handshake_timeout.0,
        target_loss: args.target_loss,
        ..settings
    };
    let source = RunSource::File { path: args.file.clone(), overrides: args.overrides.clone() };
    RehearseRequest { source, kind, settings }
}

fn print(printer: Printer, answer: &RehearsalReport) {
    for finding in &answer.result.findings {
        let line = headline(printer, finding);
        printer.line(match finding.column.as_deref() {
            Some(diagnosis) => line + "  " + printer.tone(Tone::Dim, diagnosis),
            None => line,
        });
        print_action(printer, finding);
    }
    let tone = match answer.result.verdict {
        Verdict::Pass => Tone::Good,
        Verdict::Block | Verdict::NotRun => Tone::Bad,
        Verdict::Warn | Verdict::NotApplicable => Tone::Warning,
    };
    let verdict = printer.tone(tone, answer.result.verdict.as_str());
    let why = answer.result.why.as_deref().unwrap_or_default();
    printer.line(verdict + ": " + why);
    note_launches(printer, answer.launches.len(), answer.wall_seconds);
}
