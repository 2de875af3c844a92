//! The `trackway` binary: reads the command line, calls a use case, prints the answer.

mod args;
mod commands;
mod exit;
mod html;
mod printer;
mod sparkline;
mod units;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser as _;
use trackway_app::App;
use trackway_app::home::Home;

use args::{Cli, Command, GlobalArgs};
use exit::Failure;
use printer::Printer;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Shim(shim) = &cli.command {
        return ExitCode::from(commands::shim(shim));
    }
    trackway_app::data::read_urls();
    let printer = Printer::new(cli.global.json);
    match execute(&cli, printer) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            printer.error(&failure.message, &failure.hints);
            ExitCode::from(failure.code)
        }
    }
}

fn execute(cli: &Cli, printer: Printer) -> Result<u8, Failure> {
    match &cli.command {
        Command::Classify(classify) => commands::classify::classify(classify, printer),
        Command::Data(data) => {
            let home = Home::new(home_folder(&cli.global, None), cli.global.ledger.clone());
            commands::data::data(data, &home, || open(&cli.global, None, true, printer), printer)
        }
        Command::Probe(probe) => commands::probe(probe, printer),
        Command::Score(score) => commands::score(score, printer),
        Command::Slices(slices) => commands::slices::slices(slices, printer),
        Command::Memory(memory) => commands::memory::memory(memory, printer),
        Command::Metrics(metrics) => commands::metrics::metrics(metrics, printer),
        Command::Run(run) => {
            let request = commands::run::request(run)?;
            let app = open(&cli.global, run.file.as_deref(), true, printer)?;
            let answer = commands::run::run(&app, request, run.exit_with_child, printer);
            tell_home(&cli.global, app.home.folder(), printer);
            answer
        }
        Command::Checkpoint(checkpoint) => {
            let open = || open(&cli.global, None, false, printer);
            commands::checkpoint::checkpoint(&open, checkpoint, printer)
        }
        Command::Import(import) => {
            let app = open(&cli.global, None, true, printer)?;
            commands::import::import(&app, import, printer)
        }
        Command::Preflight(preflight) => {
            let app = open(&cli.global, Some(&preflight.file), true, printer)?;
            commands::preflight::preflight(&app, preflight, printer)
        }
        Command::Prove(prove) => {
            let app = open(&cli.global, Some(&prove.file), true, printer)?;
            commands::prove::prove(&app, prove, printer)
        }
        Command::Evaluate(evaluate) => {
            let file = commands::evaluate::file_of(evaluate);
            let app = open(&cli.global, file.as_deref(), false, printer)?;
            commands::evaluate::evaluate(&app, evaluate, printer)
        }
        Command::Rehearse(rehearse) => {
            let app = open(&cli.global, Some(&rehearse.file), true, printer)?;
            commands::rehearse::rehearse(&app, rehearse, printer)
        }
        other => {
            let app = open(&cli.global, None, false, printer)?;
            on_home(&app, other, printer)
        }
    }
}

fn on_home(app: &App, command: &Command, printer: Printer) -> Result<u8, Failure> {
    match command {
        Command::Resume(resume) => commands::run::resume(app, resume, printer),
        Command::Runs(list) => commands::list::runs(app, list, printer),
        Command::Compare(compare) => commands::compare::compare(app, compare, printer),
        Command::Gc(gc) => commands::gc::gc(app, gc, printer),
        Command::Attempts(list) => commands::list::attempts(app, list, printer),
        Command::Logs(logs) => commands::logs::logs(app, logs, printer),
        Command::Watch(watch) => commands::watch::watch(app, watch, printer),
        Command::Explain(explain) => commands::explain(app, explain, printer),
        Command::Stop(stop) => commands::stop(app, stop, printer),
        Command::RollBack(roll_back) => commands::roll_back(app, roll_back, printer),
        Command::Sql(sql) => commands::sql::sql(app, sql, printer),
        Command::Gates(gates) => commands::gates::gates(app, gates, printer),
        Command::Registry(registry) => commands::registry::registry(app, registry, printer),
        Command::Evaluations(list) => commands::evaluate::evaluations(app, list, printer),
        Command::Evaluation(evaluation) => commands::evaluate::evaluation(app, evaluation, printer),
        Command::Run(_)
        | Command::Preflight(_)
        | Command::Prove(_)
        | Command::Rehearse(_)
        | Command::Evaluate(_)
        | Command::Classify(_)
        | Command::Import(_)
        | Command::Memory(_)
        | Command::Metrics(_)
        | Command::Checkpoint(_)
        | Command::Data(_)
        | Command::Probe(_)
        | Command::Score(_)
        | Command::Slices(_)
        | Command::Shim(_) => Ok(0),
    }
}

/// Opens the home, and first of all seals what ended while nobody watched.
fn open(
    global: &GlobalArgs,
    run_file: Option<&Path>,
    create: bool,
    printer: Printer,
) -> Result<App, Failure> {
    let home = Home::new(home_folder(global, run_file), global.ledger.clone());
    let binary = std::env::current_exe()?;
    let app = App::open(home, binary, create)?;
    for told in app.reconcile()? {
        printer.note(&told);
    }
    Ok(app)
}

/// Other commands look for the home from here upwards; where they would not find this one, its name is told.
fn tell_home(global: &GlobalArgs, home: &Path, printer: Printer) {
    let found = std::path::absolute(home_folder(global, None)).unwrap_or_default();
    if found != home {
        printer.note(&format!("from here, other commands find this run with --home {}", home.display()));
    }
}

/// `--home`, else `.trackway` beside the run file, else the nearest `.trackway` from here upwards, else here.
fn home_folder(global: &GlobalArgs, run_file: Option<&Path>) -> PathBuf {
    const NAME: &str = ".trackway";
    if let Some(home) = &global.home {
        return home.clone();
    }
    if let Some(run_file) = run_file {
        return run_file.parent().unwrap_or(Path::new("")).join(NAME);
    }
    let here = std::env::current_dir().unwrap_or_default();
    let found = here.ancestors().map(|folder| folder.join(NAME)).find(|candidate| candidate.is_dir());
    found.unwrap_or_else(|| here.join(NAME))
}
