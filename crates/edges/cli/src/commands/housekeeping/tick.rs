use trackway_api::home::tick::{DutyCount, DutyOutcome, TickReport, TickedDuty};
use trackway_core::text::duration;
use trackway_engine::Context;
use trackway_flows::home::tick;

use crate::args::TickArgs;
use crate::exit::{Exit, FAULT};
use crate::printer::Printer;
use crate::units::counted;

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
        vec![duty.name.to_string(), outcome, next, said(duty)]
    });
    printer.table_with_prose(&["duty", "outcome", "next in", "what"], rows.collect());
    for line in report.duties.iter().flat_map(|duty| &duty.lines) {
        printer.long_note(line);
    }
}

/// What a duty did, in numbers; or why it did nothing.
fn said(duty: &TickedDuty) -> String {
    let some: Vec<String> =
        duty.counts.iter().filter(|one| one.count > 0).map(|one| count(*one, duty.outcome)).collect();
    match (duty.outcome, &duty.why) {
        (DutyOutcome::Held, Some(holder)) => format!("it is done by {holder}"),
        (_, Some(why)) => why.clone(),
        (DutyOutcome::NotDue, None) => {
            format!("it is done every {}", duration(duty.name.every_seconds() as f64))
        }
        _ if !some.is_empty() => some.join(", "),
        (DutyOutcome::Due, None) => "there is nothing to do".into(),
        (DutyOutcome::Done, None) => "there was nothing to do".into(),
        (DutyOutcome::Held | DutyOutcome::Failed, None) => String::new(),
    }
}

/// `2 attempts sealed`; of a dry run `2 attempts to be sealed`.
fn count(one: DutyCount, outcome: DutyOutcome) -> String {
    let (noun, participle) = one.action.words();
    let to_be = if outcome == DutyOutcome::Due { "to be " } else { "" };
    format!("{} {to_be}{participle}", counted(one.count, noun))
}

#[cfg(test)]
mod tests {
    use trackway_api::home::tick::{DutyAction, DutyName};

    use super::*;

    /// Proves what the table says of each outcome: how many things of which kind, which of them a dry run would do, and
    /// why there are none; and that the number is not that of the sentences.
    #[test]
    fn each_duty_says_what_it_did_or_why_not() {
        let duty = |outcome, count: Option<u64>, why: Option<&str>| TickedDuty {
            name: DutyName::Pins,
            outcome,
            counts: count
                .map(|count| DutyCount { action: DutyAction::PinsRemoved, count })
                .into_iter()
                .collect(),
            lines: vec!["a sentence".into(); 3],
            why: why.map(str::to_owned),
            next_seconds: None,
        };
        for (duty, expected) in [
            (duty(DutyOutcome::Done, Some(1_000), None), "1000 pins removed"),
            (duty(DutyOutcome::Due, Some(1), None), "1 pin to be removed"),
            (duty(DutyOutcome::Done, Some(0), None), "there was nothing to do"),
            (duty(DutyOutcome::Due, Some(0), None), "there is nothing to do"),
            (duty(DutyOutcome::NotDue, None, None), "it is done every 5 min 00 s"),
            (duty(DutyOutcome::Held, None, Some("`node-1`")), "it is done by `node-1`"),
            (duty(DutyOutcome::Failed, None, Some("the disk is full")), "the disk is full"),
        ] {
            assert_eq!(said(&duty), expected);
        }
        let two = [(DutyAction::NoticesTried, 2), (DutyAction::NoticesDelivered, 1)];
        let counts = two.map(|(action, count)| DutyCount { action, count }).to_vec();
        let outbox = TickedDuty { counts, ..duty(DutyOutcome::Done, None, None) };
        assert_eq!(said(&outbox), "2 notices tried, 1 notice delivered");
    }
}
