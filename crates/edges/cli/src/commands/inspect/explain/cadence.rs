//! How often to save, as an explanation shows it.

use trackway_api::runs::explain::{Cadence, CadenceAdvice};

use crate::commands::sections::{fact, section};
use crate::printer::Printer;
use crate::units::{counted, duration};

pub(super) fn cadence(printer: Printer, advice: &CadenceAdvice) {
    section(printer, "Checkpoint interval");
    let costs = &advice.costs;
    let slowdown = match costs.slowdown {
        none if none <= 0.0 => String::new(),
        share => format!(", {:.0} % slower meanwhile", share * 100.0),
    };
    let uploaded = costs.upload_lag_seconds.map(|lag| format!(", at the remote {} later", duration(lag)));
    let measured = format!(
        "{}: each stops training for {} and is committed after {}{slowdown}{}; a step takes {}",
        counted(costs.save_count, "save"),
        duration(costs.stall_seconds),
        duration(costs.commit_lag_seconds),
        uploaded.unwrap_or_default(),
        duration(costs.step_seconds)
    );
    fact(printer, "measured", &measured);
    fact(printer, "failures", failures(advice));
    let now = (costs.interval_seconds / costs.step_seconds).round().max(1.0);
    let every = duration(costs.interval_seconds);
    fact(printer, "now", format!("every {now} steps ({every}){}", wasted(&advice.present)));
    if let Some(best) = &advice.recommended {
        let (steps, every) = (best.interval_steps, duration(best.interval_seconds));
        fact(printer, "better", format!("every {steps} steps ({every}){}", wasted(&advice.recommended)));
    }
    if advice.table.is_empty() {
        return;
    }
    let rows = advice.table.iter().map(|line| {
        vec![
            format!("  {}", duration(line.mttf_hours * 3600.0)),
            format!("{} steps ({})", line.interval_steps, duration(line.interval_seconds)),
            format!("{:.2} %", line.waste * 100.0),
        ]
    });
    printer.table(&["  one failure every", "save every", "lost time"], rows.collect());
}

fn failures(advice: &CadenceAdvice) -> String {
    let history = &advice.history;
    let seen =
        format!("{} in {} of comparable training", history.failures, duration(history.observed_seconds));
    let hours = |hours: Option<f64>| hours.map(|hours| duration(hours * 3600.0));
    let low = hours(advice.mttf_hours_low).unwrap_or_else(|| "?".into());
    let range = match hours(advice.mttf_hours_high) {
        Some(high) => format!("between {low} and {high}"),
        None => format!("{low} or more"),
    };
    match hours(advice.mttf_hours) {
        Some(mttf) => format!("{seen}: one every {mttf} ({range}, with 90 % confidence)"),
        None => format!("{seen}: too few for a rate (one every {range}, with 90 % confidence)"),
    }
}

fn wasted(cadence: &Option<Cadence>) -> String {
    let Some(cadence) = cadence else { return String::new() };
    let gpu = match cadence.gpu_hours_per_day {
        none if none <= 0.0 => String::new(),
        hours => format!(", {hours:.2} GPU hours a day"),
    };
    let usd = cadence.usd_per_day.map(|usd| format!(", {usd:.2} USD a day")).unwrap_or_default();
    format!(" wastes {:.2} % of the time{gpu}{usd}", cadence.waste * 100.0)
}
