use trackway_api::home::tick::{DutyOutcome, TickReport, TickedDuty};
use trackway_core::text::duration;
use trackway_engine::Context;
use trackway_flows::home::tick;

use crate::args::TickArgs;
use crate::exit::{Exit, FAULT};
use crate::printer::Printer;

/// Does what is due.
pub fn tick(context: &Context, args: &TickArgs, printer: Printer) -> Exit {
    let report = tick::tick(context, args.dry_run)?;
    printer.answer(&report, || show(&report, printer));
    Ok(if report.has_failed() { FAULT } else { 0 })
}

fn show(report: &TickReport, printer: Printer) {
    let rows = report.duties.iter().map(|duty| {
        let next = duty.next_seconds.map(duration).unwrap_or_default();
        let outcome = duty.outcome.as_str().replace('_', " ");
        vec![duty.name.to_string(), outcome, count(duty), next, reason(duty)]
    });
    printer.table(&["duty", "outcome", "count", "next in", "why"], rows.collect());
    for line in report.duties.iter().flat_map(|duty| &duty.lines) {
        printer.note(line);
    }
}

/// How many things it was done for, or would be; nothing where it was not looked for any.
fn count(duty: &TickedDuty) -> String {
    match duty.outcome {
        DutyOutcome::Done | DutyOutcome::Due => duty.lines.len().to_string(),
        DutyOutcome::NotDue | DutyOutcome::Held | DutyOutcome::Failed => String::new(),
    }
}

/// Why a duty failed or was not done, and why nothing came of one that was.
fn reason(duty: &TickedDuty) -> String {
    match (duty.outcome, &duty.why) {
        (DutyOutcome::Held, Some(holder)) => format!("it is done by {holder}"),
        (_, Some(why)) => why.clone(),
        (DutyOutcome::NotDue, None) => {
            format!("it is done every {}", duration(duty.name.every_seconds() as f64))
        }
        (DutyOutcome::Done | DutyOutcome::Due, None) if duty.lines.is_empty() => {
            "there was nothing to do".into()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use trackway_api::home::tick::DutyName;

    use super::*;

    /// Proves what the table says of each outcome: how many things, and why none.
    #[test]
    fn each_duty_has_a_count_and_a_reason() {
        let duty = |outcome, lines: &[&str], why: Option<&str>| TickedDuty {
            name: DutyName::Pins,
            outcome,
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            why: why.map(str::to_owned),
            next_seconds: None,
        };
        for (duty, expected) in [
            (duty(DutyOutcome::Done, &["a", "b"], None), ("2", "")),
            (duty(DutyOutcome::Due, &[], None), ("0", "there was nothing to do")),
            (duty(DutyOutcome::NotDue, &[], None), ("", "it is done every 5 min 00 s")),
            (duty(DutyOutcome::Held, &[], Some("`node-1`")), ("", "it is done by `node-1`")),
            (duty(DutyOutcome::Failed, &[], Some("the disk is full")), ("", "the disk is full")),
        ] {
            assert_eq!((count(&duty).as_str(), reason(&duty).as_str()), expected);
        }
    }
}
