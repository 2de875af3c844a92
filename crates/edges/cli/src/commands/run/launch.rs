use std::collections::BTreeMap;

use trackway_api::runs::{RunOutcome, RunReport};
use trackway_core::name::NameKind;
use trackway_core::{Health, RunId};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::{Injection, RunSource};
use trackway_flows::training::preflight::PreflightReporter;
use trackway_flows::training::train::{self, RunRequest};
use trackway_formats::runfile::{ChangeOrigin, PlanChange};
use trackway_ledger::RunState;

use super::detach;
use super::preflight::selection;
use super::terminal;
use crate::args::{FailOnHealth, ResumeArgs, RunArgs};
use crate::commands::data_and_models::eval::{
    exit_code as evaluation_code, few_metrics, gate_summary, unmet_lines,
};
use crate::commands::live;
use crate::commands::{given, given_name, patch_of};
use crate::exit::{BLOCKED, Exit, Failure, INSUFFICIENT, NOT_COMPLETED};
use crate::printer::Printer;
use crate::units::{counted, duration};

/// The request, from the arguments.
pub fn request(args: &RunArgs) -> Result<RunRequest, Failure> {
    let injection = args
        .inject
        .as_deref()
        .map(str::parse::<Injection>)
        .transpose()
        .map_err(|error| AppError::of(ErrorKind::Usage, error))?;
    if args.file.is_none() && !args.overrides.is_empty() {
        return Err(Failure::usage(
            "`--set` needs a run file",
            "write a run file, or set variables with `env`",
        ));
    }
    if args.file.is_some() && args.name.is_some() {
        return Err(Failure::usage(
            "`--name` is for commands without a run file",
            "use `--set run.name=NAME`",
        ));
    }
    let name = args.name.as_deref().map(|name| given_name(NameKind::Run, name)).transpose()?;
    let parameters = given("--param", &args.parameters)?;
    let tags = given("--tag", &args.tags)?;
    let source = match &args.file {
        Some(path) => {
            let mut patch = patch_of(&args.overrides)?;
            patch.extend(entries("parameters", &parameters).chain(entries("tags", &tags)));
            RunSource::File { path: path.clone(), patch }
        }
        None => RunSource::Command { argv: args.argv.clone(), name, parameters, tags },
    };
    let mut selection = selection(&args.skip)?;
    if args.skip_preflight {
        selection.skip_all.clone_from(&args.skip.why);
    }
    Ok(RunRequest {
        source,
        injection,
        retry_data_error: args.retry_data_error,
        selection,
        queue: args.queue.clone(),
        group: None,
    })
}

/// The pairs as entries of a table in `[run]`.
fn entries(table: &str, pairs: &BTreeMap<String, String>) -> impl Iterator<Item = PlanChange> {
    pairs.iter().map(move |(name, value)| {
        PlanChange::new(["run", table, name].into(), value.as_str(), ChangeOrigin::CommandLine)
    })
}

pub fn run(context: &Context, request: RunRequest, args: &RunArgs, printer: Printer) -> Exit {
    let (report, printer) = supervised(context, None, (args.detached, args.no_tty), printer, |reporter| {
        train::run(context, request, reporter)
    });
    report_end(&report?, (args.exit_with_child, args.fail_on), printer)
}

/// Does the work of a supervisor, with a terminal or without.
fn supervised<T>(
    context: &Context,
    run: Option<RunId>,
    (detached, no_tty): (bool, bool),
    printer: Printer,
    work: impl FnOnce(&dyn PreflightReporter) -> T,
) -> (T, Printer) {
    if detached {
        let named = run.and_then(|run| context.run_by_id(run).ok()).map(|run| (run.run_id, run.name));
        return detach::supervise(context, named, printer, work);
    }
    let terminal = terminal::streams(printer, no_tty);
    (live::supervised_in(terminal, context, printer, |live| work(live)), printer)
}

pub fn resume(context: &Context, args: &ResumeArgs, printer: Printer) -> Exit {
    let named = args.run.as_deref().unwrap_or("last");
    let run = context.resolve_run(named)?;
    let modes = (args.detached, args.no_tty);
    let (report, printer) = supervised(context, Some(run), modes, printer, |reporter| {
        train::resume(context, run, args.accepts.why().as_deref(), reporter)
    });
    report_end(&report?, (false, args.fail_on), printer)
}

fn report_end(
    report: &RunReport,
    (exit_with_child, fail_on): (bool, Option<FailOnHealth>),
    printer: Printer,
) -> Exit {
    printer.answer(report, || print(report, printer));
    let is_refused = report.outcome.state == RunState::Completed && fails(fail_on, report.outcome.health);
    Ok(if is_refused { INSUFFICIENT } else { exit_code(report, exit_with_child) })
}

fn print(report: &RunReport, printer: Printer) {
    let outcome = &report.outcome;
    if outcome.state == RunState::Running {
        return;
    }
    let seconds: f64 = outcome.attempts.iter().filter_map(|attempt| attempt.wall_seconds).sum();
    let count = counted(outcome.attempts.len() as u64, "attempt");
    let text = match outcome.attempts.len() {
        0 => format!("`{}` {}: nothing was launched", outcome.name, outcome.state),
        _ => format!("`{}` {} after {count} in {}", outcome.name, outcome.state, duration(seconds)),
    };
    printer.note(&text);
    if let Some(evaluation) = &report.evaluation {
        let summary = evaluation.failure.clone().unwrap_or_else(|| few_metrics(evaluation));
        let id = &evaluation.evaluation_id;
        printer.note(format!("evaluation {}: {summary} (trackway eval show {id})", evaluation.state));
        gate_summary(evaluation).into_iter().for_each(|gates| printer.note(gates));
        unmet_lines(evaluation).iter().for_each(|unmet| printer.note(format!("  {unmet}")));
    }
    let doubtful = outcome.health.filter(|health| !Health::is_good(Some(*health)));
    if let (Some(health), true) = (doubtful, outcome.state == RunState::Completed) {
        printer.note(format!("its health is {health}: see why with: trackway explain {}", outcome.run_id));
    }
    if outcome.state != RunState::Completed {
        printer.note(format!("see why with: trackway explain {}", outcome.run_id));
    }
    report.next.iter().flat_map(|next| &next.lines).for_each(|line| printer.note(line));
}

/// Whether a run of this health is a failure for its starter.
fn fails(fail_on: Option<FailOnHealth>, health: Option<Health>) -> bool {
    match fail_on {
        None => false,
        Some(FailOnHealth::Broken) => health == Some(Health::Broken),
        Some(FailOnHealth::Suspect) => !Health::is_good(health),
        Some(FailOnHealth::Unknown) => health != Some(Health::Ok),
    }
}

/// What shells add to a signal's number.
const SIGNAL_BASE: i32 = 128;

fn exit_code(report: &RunReport, exit_with_child: bool) -> u8 {
    let outcome: &RunOutcome = &report.outcome;
    let last = outcome.attempts.last().filter(|_| exit_with_child);
    let of_child = last.and_then(|last| last.exit_code.or(last.signal.map(|signal| SIGNAL_BASE + signal)));
    match of_child {
        Some(code) => u8::try_from(code).unwrap_or(NOT_COMPLETED),
        None if outcome.state == RunState::Completed => report.evaluation.as_ref().map_or(0, evaluation_code),
        None if outcome.state == RunState::Blocked && outcome.attempts.is_empty() => BLOCKED,
        None if outcome.rungs.iter().any(|rung| rung.verdict.refuses()) => INSUFFICIENT,
        None => NOT_COMPLETED,
    }
}
