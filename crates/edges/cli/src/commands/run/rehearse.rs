use trackway_api::runs::rehearsal::RehearsalReport;
use trackway_engine::Context;
use trackway_engine::run::RunSource;
use trackway_flows::training::rehearsal;
use trackway_flows::training::rehearsal::{LaunchKind, RehearsalSettings, RehearseRequest, Verdict};

use crate::args::{RehearsalKind, RehearseArgs};
use crate::commands::checks::{headline, print_action};
use crate::commands::live::{note_launches, supervised};
use crate::commands::patch_of;
use crate::exit::{BLOCKED, Exit, Failure};
use crate::printer::{Printer, Tone};

pub fn rehearse(context: &Context, args: &RehearseArgs, printer: Printer) -> Exit {
    let request = request(args)?;
    let answer = supervised(context, printer, |live| rehearsal::rehearse(context, &request, live))?;
    printer.answer(&answer, || print(printer, &answer));
    Ok(match answer.result.verdict {
        Verdict::Pass | Verdict::Warn | Verdict::NotApplicable => 0,
        Verdict::Block | Verdict::NotRun => BLOCKED,
    })
}

fn request(args: &RehearseArgs) -> Result<RehearseRequest, Failure> {
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
    let source = RunSource::File { path: args.file.clone(), patch: patch_of(&args.overrides)? };
    Ok(RehearseRequest { source, kind, settings })
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
