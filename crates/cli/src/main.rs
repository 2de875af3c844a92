//! The `trackway` binary: reads the command line, calls a use case, prints the answer.

mod args;
mod commands;
mod exit;
mod html;
mod printer;
mod signals;
mod sparkline;
mod units;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use trackway_app::App;
use trackway_app::data::{COLUMNS_VARIABLE, LINKS_VARIABLE, Limits, MEDIA_VARIABLE, PAGE_VARIABLE};
use trackway_app::home::Home;

use args::{Cli, Command, GlobalArgs, LedgerCommand};
use exit::Failure;
use printer::Printer;

fn main() -> ExitCode {
    trackway_files::restrict_umask();
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let printer = Printer::new(false);
            match args::new_spelling(std::env::args_os()) {
                Some((old, new)) => printer.error(
                    &format!("there is no command `trackway {old}`"),
                    &[format!("`trackway {old}` is now `trackway {new}`")],
                ),
                None => printer.usage_error(&error.to_string()),
            }
            return ExitCode::from(exit::USAGE);
        }
        Err(help) => help.exit(),
    };
    if let Command::Shim(shim) = &cli.command {
        return ExitCode::from(commands::shim(shim));
    }
    trackway_app::data::read_urls();
    let masks = cli.command.shows_values() && !cli.global.show_values;
    let printer = Printer::new(cli.global.json).masking(masks);
    // A panic has been printed by the time it comes here. Its exit code is the one of Trackway's own faults.
    let ended = limits().and_then(|limits| {
        trackway_app::data::use_limits(limits);
        catch_unwind(AssertUnwindSafe(|| execute(&cli, printer))).unwrap_or_else(|_| {
            Err(Failure::fault("Trackway failed at the place above; please report it with this command"))
        })
    });
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            printer.error(&failure.message, &failure.hints);
            ExitCode::from(failure.code)
        }
    }
}

/// What is read at most of data, where the environment sets other limits than the defaults.
fn limits() -> Result<Limits, Failure> {
    let number = |variable: &str| match std::env::var(variable) {
        Err(_) => Ok(None),
        Ok(text) => match text.parse::<u32>() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(Failure::usage(
                format!("{variable} is `{text}`"),
                format!("set {variable} to a positive number, or unset it"),
            )),
        },
    };
    let default = trackway_app::data::DEFAULT_LIMITS;
    let mib =
        |variable: &str, default| number(variable).map(|mib| mib.map_or(default, |mib| u64::from(mib) << 20));
    Ok(Limits {
        columns_max: number(COLUMNS_VARIABLE)?.map_or(default.columns_max, |columns| columns as usize),
        media_bytes_max: mib(MEDIA_VARIABLE, default.media_bytes_max)?,
        page_bytes_max: mib(PAGE_VARIABLE, default.page_bytes_max)?,
        follow_links: std::env::var(LINKS_VARIABLE).is_ok_and(|value| value == "1"),
    })
}

fn execute(cli: &Cli, printer: Printer) -> Result<u8, Failure> {
    let home = || open(&cli.global, None, false, printer);
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
        Command::Checkpoint(checkpoint) => commands::checkpoint::checkpoint(&home, checkpoint, printer),
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
        Command::Doctor(_) => {
            let home = Home::new(home_folder(&cli.global, None), cli.global.ledger.clone());
            commands::doctor::doctor(&home, printer)
        }
        Command::Ledger(LedgerCommand::Rebuild(_)) => {
            let home = Home::new(home_folder(&cli.global, None), cli.global.ledger.clone());
            commands::doctor::rebuild(&home, std::env::current_exe()?, printer)
        }
        Command::Eval(eval) => {
            let file = commands::evaluate::file_of(eval);
            let app = open(&cli.global, file.as_deref(), false, printer)?;
            commands::evaluate::evaluate(&app, eval, printer)
        }
        Command::Rehearse(rehearse) => {
            let app = open(&cli.global, Some(&rehearse.file), true, printer)?;
            commands::rehearse::rehearse(&app, rehearse, printer)
        }
        Command::Sql(sql) => match commands::sql::worker_folder() {
            // The process that asked has sealed what there was to seal.
            Some(spill) => {
                commands::sql::answer(&open_home(&cli.global, None, false, printer)?, sql, spill, printer)
            }
            None => {
                home()?;
                commands::sql::supervise(sql)
            }
        },
        Command::Resume(resume) => commands::run::resume(&home()?, resume, printer),
        Command::Runs(list) => commands::list::runs(&home()?, list, printer),
        Command::Compare(compare) => commands::compare::compare(&home()?, compare, printer),
        Command::Gc(gc) => commands::gc::gc(&home()?, gc, printer),
        Command::Attempts(list) => commands::list::attempts(&home()?, list, printer),
        Command::Logs(logs) => commands::logs::logs(&home()?, logs, printer),
        Command::Watch(watch) => commands::watch::watch(&home()?, watch, printer),
        Command::Explain(explain) => commands::explain(&home()?, explain, printer),
        Command::Stop(stop) => commands::stop(&home()?, stop, printer),
        Command::Rollback(rollback) => commands::roll_back(&home()?, rollback, printer),
        Command::Gates(gates) => commands::gates::gates(&home()?, gates, printer),
        Command::Registry(registry) => commands::registry::registry(&home()?, registry, printer),
        Command::Completions(completions) => Ok(commands::shell::completions(completions, printer)),
        Command::Man(man) => commands::shell::man(man, printer),
        Command::Shim(shim) => Ok(commands::shim(shim)),
    }
}

/// Opens the home, and first of all seals what ended while nobody watched.
fn open(
    global: &GlobalArgs,
    run_file: Option<&Path>,
    create: bool,
    printer: Printer,
) -> Result<App, Failure> {
    let app = open_home(global, run_file, create, printer)?;
    for told in app.reconcile()? {
        printer.note(&told);
    }
    Ok(app)
}

fn open_home(
    global: &GlobalArgs,
    run_file: Option<&Path>,
    create: bool,
    printer: Printer,
) -> Result<App, Failure> {
    let home = Home::new(home_folder(global, run_file), global.ledger.clone());
    let binary = std::env::current_exe()?;
    let mut app = App::open(home, binary, create)?;
    app.when_waiting(Box::new(move |text| printer.note(text)));
    Ok(app)
}

/// Other commands look for the home from here upwards; where they would not find this one, its name is told.
fn tell_home(global: &GlobalArgs, home: &Path, printer: Printer) {
    let found = std::path::absolute(home_folder(global, None)).unwrap_or_default();
    if found != home {
        printer.note(format!("from here, other commands find this run with --home {}", home.display()));
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
