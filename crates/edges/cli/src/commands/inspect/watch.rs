use std::time::Duration;

use trackway_api::runs::watch::{LiveCurve, RunSample, waiting_sentence};
use trackway_core::detect::DetectionSeverity;
use trackway_engine::Context;
use trackway_inspect::watch;
use trackway_ledger::AttemptState;

use super::explain::machine;
use super::progressive;
use crate::args::WatchArgs;
use crate::exit::Exit;
use crate::printer::{Printer, StyledLine, Tone, stdout_is_terminal};
use crate::sparkline::sparkline;
use crate::units::{duration, metric};

const LOOK_EVERY: Duration = Duration::from_secs(1);
const CURVE_WIDTH: usize = 48;
/// The names of the other lines are no longer.
const NAME_WIDTH: usize = 10;

pub fn watch(context: &Context, args: &WatchArgs, printer: Printer) -> Exit {
    let mut watcher = watch::watch(context, context.resolve_run(&args.run)?)?;
    let redraw = stdout_is_terminal() && !printer.is_json() && !args.once;
    loop {
        let view = watcher.look()?;
        if printer.is_json() {
            printer.record(&view);
        } else {
            if redraw {
                printer.clear_screen();
            }
            show(&view, printer);
        }
        if args.once || view.ended || view.unsupervised {
            return Ok(0);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Where the run is on its ladder, and how it came there.
fn rungs(view: &RunSample, printer: Printer) {
    let Some(rung) = view.rung.as_ref().filter(|_| view.has_ladder) else { return };
    printer.line(format!("  rung       {rung} of the data"));
    for judged in &view.rungs {
        let why = judged.why.as_deref().map(|why| format!(": {}", why)).unwrap_or_default();
        printer.line(format!("             {} {}{why}", judged.rung, judged.verdict));
    }
}

/// `running for 12.3 s`
fn lives(state: Option<AttemptState>, running_seconds: Option<f64>) -> String {
    let has_ended = matches!(state, None | Some(AttemptState::Ended | AttemptState::Sealed));
    match (state, running_seconds.map(duration)) {
        (_, Some(took)) if has_ended => format!("ended after {took}"),
        (_, None) if has_ended => "ended before it was started".into(),
        (Some(state), Some(took)) => format!("{state} for {took}"),
        (state, _) => state.map_or_else(|| "ended".into(), |state| state.to_string()),
    }
}

fn show(view: &RunSample, printer: Printer) {
    let project = view.project.as_ref().map(|project| format!(" · project {project}")).unwrap_or_default();
    let head = format!(" · {} · {}{project}", view.run_id, view.state);
    printer.line(printer.tone(Tone::Bold, &view.name) + head);
    let supervision = (view.unsupervised, view.resume_refused.as_deref());
    if let Some(text) = waiting_sentence(view.run_id, view.queue.as_ref(), supervision) {
        printer.line(format!("  {text}"));
    }
    let Some(number) = view.attempt_number else {
        printer.line("  no attempt yet");
        return;
    };
    printer.line(format!("  attempt    {number}, {}", lives(view.attempt_state, view.running_seconds)));
    rungs(view, printer);
    let progress = &view.progress;
    let step = progress.step.map_or_else(|| "none reported yet".into(), |step| step.to_string());
    let of = view.total_steps.map(|total| format!(" of {total}")).unwrap_or_default();
    let rate = progress.steps_per_second.map(|rate| format!(", {rate:.1} steps/s")).unwrap_or_default();
    let left = view.eta_seconds.map(|seconds| format!(", {} left", duration(seconds))).unwrap_or_default();
    printer.line(format!("  step       {step}{of}{rate}{left}"));
    let value_of = |curve: &LiveCurve| {
        curve.values.last().map_or_else(String::new, |value| metric(value.unwrap_or(f64::NAN)))
    };
    let widths = |part: &dyn Fn(&LiveCurve) -> usize| view.curves.iter().map(part).max().unwrap_or(0);
    let name_width = widths(&|curve| curve.name.chars().count()).max(NAME_WIDTH);
    let value_width = widths(&|curve| value_of(curve).chars().count());
    for curve in &view.curves {
        let (name, value) = (&curve.name, value_of(curve));
        let values: Vec<f64> = curve.values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        let line = format!("  {name:<name_width$} {value:<value_width$} {}", sparkline(&values, CURVE_WIDTH));
        printer.line(line.trim_end());
    }
    for (place, line) in view.progressive.iter().flat_map(progressive::lines).enumerate() {
        printer.line(format!("  {:<11}{line}", if place == 0 { "unseen" } else { "" }));
    }
    if let Some(text) = machine::now(&view.machine).filter(|_| !view.ended) {
        printer.line(format!("  machine    {text}"));
    }
    let committed = progress.last_committed_step.map_or_else(|| "none".into(), |step| step.to_string());
    printer.line(format!("  committed  {committed}"));
    for found in &view.detections {
        let tone = if found.severity == DetectionSeverity::Critical { Tone::Bad } else { Tone::Warning };
        let name = printer.tone(tone, found.detector.as_str());
        let seen = format!(" at step {}: {}", found.step, found.evidence);
        printer.line(StyledLine::from("  found      ") + name + seen);
        if let Some(rolled_back) = &found.rolled_back {
            printer.line(format!("  done       {rolled_back}"));
        }
    }
    if let Some(remote) = &view.remote {
        printer.line(format!("  remote     {}", remote.sentence()));
    }
    if let Some(heartbeat_at) = progress.heartbeat_at {
        printer.line(format!("  heartbeat  {heartbeat_at}"));
    }
    for budget in &view.budgets {
        let limit = budget.limit.map_or_else(|| "no limit".into(), |limit| format!("of {limit}"));
        printer.line(format!("  budget     {}: {} {limit} spent", budget.name, budget.spent));
    }
}
