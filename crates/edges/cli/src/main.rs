//! The `trackway` binary: reads the command line, calls a use case, prints the answer.

mod args;
mod commands;
mod exit;
mod page;
mod printer;
mod settings;
mod signals;
mod sparkline;
mod units;

use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::unistd::{Uid, User, geteuid};
use trackway_engine::home::Home;
use trackway_engine::{Context, Dependencies, QueueLimits, Request};
use trackway_flows::home::reconcile;

use args::{
    Cli, Command, ConfigCommand, DoctorCommand, EvalCommand, ReproduceArgs, RunArgs, RunsAction, SqlArgs,
};
use exit::{Exit, Failure};
use printer::Printer;
use settings::{FoundFile, Settings};

fn main() -> ExitCode {
    trackway_files::restrict_umask();
    signals::outlive_full_files();
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let printer = Printer::new(false);
            printer.usage_error(&error.to_string());
            if error.kind() == clap::error::ErrorKind::InvalidUtf8 {
                printer.note("a shell can name such a file by a pattern: trackway run -- sh -c 'python train.py data-*.csv'");
            }
            return ExitCode::from(exit::USAGE);
        }
        Err(help) => {
            if printer::stdout_is_terminal() {
                help.exit();
            }
            let printer = Printer::new(false);
            printer.file(help.render().to_string().as_bytes());
            return if printer::failed_write().is_some() {
                failed(&unwritten(), printer)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    if let Command::Shim(shim) = &cli.command {
        return ExitCode::from(commands::shim(shim));
    }
    if let Command::Await(process) = &cli.command {
        return ExitCode::from(commands::await_process(process));
    }
    let masks = cli.command.shows_values() && !cli.global.show_values;
    let printer = Printer::new(cli.global.json).masking(masks);
    let run_file = run_file(&cli.command);
    let (home, ledger) = (cli.global.home.as_deref(), cli.global.ledger.as_deref());
    let ended = settings::find(home, ledger, run_file.as_deref());
    let (settings, files) = match ended {
        Ok(found) => found,
        Err(failure) => return failed(&failure, printer),
    };
    let printer = printer.coloured(settings.color.value);
    // A panic has been printed by the time it comes here. Its exit code is the one of Trackway's own faults.
    let ended = catch_unwind(AssertUnwindSafe(|| execute(&cli, &settings, &files, printer)));
    let ended = ended.unwrap_or_else(|_| {
        Err(Failure::fault("Trackway failed at the place above; please report it with this command"))
    });
    match ended {
        Ok(0) if printer::failed_write().is_some() => failed(&unwritten(), printer),
        Ok(code) => ExitCode::from(code),
        Err(failure) => failed(&failure, printer),
    }
}

/// The run file beside which a command finds or makes its home.
fn run_file(command: &Command) -> Option<PathBuf> {
    match command {
        Command::Run(it) => it.file.clone(),
        Command::Preflight(it) => Some(it.file.clone()),
        Command::Prove(it) => Some(it.file.clone()),
        Command::Rehearse(it) => Some(it.file.clone()),
        Command::Eval(eval) => match &**eval {
            EvalCommand::Run(it) => commands::data_and_models::eval::run_file(it),
            EvalCommand::CrossValidate(it) => Some(it.file.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn unwritten() -> Failure {
    let why = printer::failed_write().unwrap_or("unknown");
    Failure::fault("the output is not whole: cannot write to stdout").because(why)
}

fn failed(failure: &Failure, printer: Printer) -> ExitCode {
    printer.error(&failure.error);
    signals::file_limit_hint(&failure.error.to_string()).into_iter().for_each(|hint| printer.hint(&hint));
    ExitCode::from(failure.code())
}

fn execute(cli: &Cli, settings: &Settings, files: &[FoundFile], printer: Printer) -> Exit {
    note_refused(files, printer);
    let home = || open(settings, None, false, printer);
    // For a command that may be the first one: the home of the run file, created if it does not exist.
    let new_home = |run_file: Option<&Path>| open(settings, run_file, true, printer);
    let read = &settings.read_context();
    match &cli.command {
        Command::Init(init) => commands::run::init::init(init, home, printer),
        Command::Classify(classify) => commands::inspect::classify::classify(classify, printer),
        Command::Data(data) => commands::data_and_models::data::data(
            data,
            &settings.home(None),
            || new_home(None),
            read,
            printer,
        ),
        Command::Memory(memory) => commands::run::memory::memory(memory, printer),
        Command::Run(run) => start_run(run, settings, printer),
        Command::Checkpoint(checkpoint) => {
            commands::data_and_models::checkpoint::checkpoint(&home, checkpoint, printer)
        }
        Command::Import(import) => commands::housekeeping::import::import(&new_home(None)?, import, printer),
        Command::Preflight(it) => {
            commands::run::preflight::preflight(&new_home(Some(&it.file))?, it, printer)
        }
        Command::Prove(it) => commands::run::prove::prove(&new_home(Some(&it.file))?, it, printer),
        Command::Doctor(doctor) => {
            note_other_owner(settings, None, printer);
            match doctor.command {
                None => commands::housekeeping::doctor::doctor(&settings.home(None), printer),
                Some(DoctorCommand::Rebuild) => commands::housekeeping::doctor::rebuild(
                    &settings.home(None),
                    std::env::current_exe()?,
                    printer,
                ),
            }
        }
        Command::Eval(eval) => evaluate(eval, settings, printer),
        Command::Rehearse(it) => commands::run::rehearse::rehearse(&new_home(Some(&it.file))?, it, printer),
        Command::Sql(sql) => query(sql, settings, printer),
        Command::Resume(resume) if resume.all => {
            commands::run::resume_all::resume_all(&home()?, std::env::args_os().skip(1), printer)
        }
        Command::Resume(resume) if resume.detach => {
            commands::run::detach::start(std::env::args_os().skip(1), printer)
        }
        Command::Resume(resume) => commands::run::launch::resume(&home()?, resume, printer),
        Command::Runs(list) => match &list.action {
            Some(RunsAction::Bless(bless)) => commands::inspect::amend::bless(&home()?, bless, printer),
            None => commands::inspect::list::runs(&home()?, list, printer),
        },
        Command::Compare(compare) => commands::inspect::compare::compare(&home()?, compare, printer),
        Command::Export(export) => commands::inspect::export::export(&home()?, export, printer),
        Command::Schema(schema) => commands::housekeeping::schema::schema(schema, printer),
        Command::Config(config) => match &config.command {
            None => Ok(commands::housekeeping::config::config(settings, files, printer)),
            Some(ConfigCommand::Notify(notify)) => {
                let setting = settings.webhook.as_ref().map(|webhook| webhook.value.as_str());
                commands::housekeeping::notify::notify(notify, setting, printer)
            }
            Some(ConfigCommand::Completions(completions)) => {
                Ok(commands::housekeeping::shell::completions(completions, printer))
            }
            Some(ConfigCommand::Man(man)) => commands::housekeeping::shell::man(man, printer),
        },
        Command::Tick(it) => {
            note_other_owner(settings, None, printer);
            // What ended is sealed by a duty of the tick, so that a dry run seals nothing.
            let context = open_home(settings.home(None), settings, false, printer)?;
            commands::housekeeping::tick::tick(&context, it, printer)
        }
        Command::Gc(gc) => commands::housekeeping::gc::gc(&home()?, gc, printer),
        Command::Attempts(list) => commands::inspect::list::attempts(&home()?, list, printer),
        Command::Logs(logs) => commands::inspect::logs::logs(&home()?, logs, printer),
        Command::Watch(watch) => commands::inspect::watch::watch(&home()?, watch, printer),
        Command::Diagnose(diagnose) => commands::inspect::diagnose::diagnose(&home()?, diagnose, printer),
        Command::Explain(explain) => commands::inspect::explain::explain(&home()?, explain, printer),
        Command::Postmortem(postmortem) => {
            commands::inspect::postmortem::postmortem(&home()?, postmortem, printer)
        }
        Command::Verify(verify) => commands::inspect::verify::verify_command(&home()?, verify, printer),
        Command::Reproduce(reproduce) => reproduce_attempt(reproduce, settings, printer),
        Command::Amend(amend) => commands::inspect::amend::amend(&home()?, amend, printer),
        Command::Stop(stop) => commands::run::stop::stop(&home()?, stop, printer),
        Command::Rollback(rollback) => commands::run::rollback::roll_back(&home()?, rollback, printer),
        Command::Gates(gates) => commands::data_and_models::gates::gates(&home()?, gates, printer),
        Command::Registry(registry) => {
            commands::data_and_models::registry::registry(&home()?, registry, printer)
        }
        Command::Shim(shim) => Ok(commands::shim(shim)),
        Command::Await(process) => Ok(commands::await_process(process)),
    }
}

fn evaluate(command: &EvalCommand, settings: &Settings, printer: Printer) -> Exit {
    let home = |run_file: Option<&Path>| open(settings, run_file, false, printer);
    let read = &settings.read_context();
    match command {
        EvalCommand::Run(it) => commands::data_and_models::eval::run(
            &home(commands::data_and_models::eval::run_file(it).as_deref())?,
            it,
            printer,
        ),
        EvalCommand::Ls(it) => commands::data_and_models::eval::list(&home(None)?, it, printer),
        EvalCommand::Show(it) => commands::data_and_models::eval::show(&home(None)?, it, printer),
        EvalCommand::Import(it) => commands::data_and_models::eval::import(&home(None)?, it, printer),
        EvalCommand::CrossValidate(it) => {
            let context = open(settings, Some(&it.file), true, printer)?;
            commands::data_and_models::eval::cross_validate::cross_validate(&context, it, printer)
        }
        EvalCommand::Metrics(it) => commands::data_and_models::eval::metrics::metrics(it, read, printer),
        EvalCommand::Slices(it) => commands::data_and_models::eval::slices::slices(it, read, printer),
        EvalCommand::Score(it) => commands::data_and_models::eval::score(it, read, printer),
        EvalCommand::Probe(it) => commands::data_and_models::eval::probe(it, read, printer),
    }
}

/// Reports settings files that are not used. A process that runs a query does not report this itself.
fn note_refused(files: &[FoundFile], printer: Printer) {
    let refused = files.iter().filter(|_| commands::inspect::sql::worker_folder().is_none());
    for (file, why) in refused.filter_map(|file| Some((file, file.refused()?))) {
        printer.note(format!("the settings file `{}` is not used: {why}", file.path.display()));
    }
}

fn start_run(run: &RunArgs, settings: &Settings, printer: Printer) -> Exit {
    // What is wrong with the command line is said here, once.
    let request = commands::run::launch::request(run)?;
    if run.detach {
        let answer = commands::run::detach::start(std::env::args_os().skip(1), printer);
        report_home(settings, settings.home(run.file.as_deref()).folder(), printer);
        return answer;
    }
    let context = open(settings, run.file.as_deref(), true, printer)?;
    let answer = commands::run::launch::run(&context, request, run, printer);
    report_home(settings, context.home.folder(), printer);
    answer
}

fn query(sql: &SqlArgs, settings: &Settings, printer: Printer) -> Exit {
    match commands::inspect::sql::worker_folder() {
        // The parent process has sealed what there was to seal.
        Some(spill) => commands::inspect::sql::answer(
            &open_home(settings.home(None), settings, false, printer)?,
            sql,
            spill,
            printer,
        ),
        None => {
            open(settings, None, false, printer)?;
            commands::inspect::sql::supervise(sql)
        }
    }
}

fn reproduce_attempt(reproduce: &ReproduceArgs, settings: &Settings, printer: Printer) -> Exit {
    if let Some(folder) = &reproduce.check {
        let home = Home::new(commands::inspect::reproduce::home_of(folder), None);
        return commands::inspect::reproduce::compare(
            &open_home(home, settings, false, printer)?,
            folder,
            printer,
        );
    }
    let out = reproduce.out.as_deref().unwrap_or(Path::new("reproduction"));
    let context = open(settings, None, false, printer)?;
    commands::inspect::reproduce::write(&context, &reproduce.attempt, out, printer)
}

/// Opens the home, and first of all seals what ended without a supervisor.
fn open(
    settings: &Settings,
    run_file: Option<&Path>,
    create: bool,
    printer: Printer,
) -> Result<Context, Failure> {
    note_other_owner(settings, run_file, printer);
    let context = open_home(settings.home(run_file), settings, create, printer)?;
    for line in reconcile::reconcile(&context)?.lines {
        printer.note(&line);
    }
    Ok(context)
}

/// Says whose home it is, where root found that of another user: nothing else shows whose files it reads and writes.
fn note_other_owner(settings: &Settings, run_file: Option<&Path>, printer: Printer) {
    if settings.home.is_some() {
        return;
    }
    let home = settings.home(run_file);
    let Ok(found) = home.folder().metadata() else { return };
    let Some(owner) = settings::other_owner(geteuid().as_raw(), found.uid()) else { return };
    let known = User::from_uid(Uid::from_raw(owner)).ok().flatten();
    let name = known.map_or_else(|| format!("user {owner}"), |user| format!("`{}`", user.name));
    printer.note(format!(
        "root works in the home of {name}, `{}`: name it with --home if that is meant, or another one",
        home.folder().display()
    ));
}

/// Opens this home, wherever the settings have another one.
fn open_home(home: Home, settings: &Settings, create: bool, printer: Printer) -> Result<Context, Failure> {
    let binary = std::env::current_exe()?;
    let engines = settings.engines.iter().map(|(engine, setting)| (engine, &setting.value.settings));
    let mut dependencies = Dependencies::of_this_machine(binary).with_engines(engines);
    dependencies.read_context = settings.read_context();
    dependencies.webhook = settings.webhook.as_ref().map(|webhook| webhook.value.clone());
    let at_most = settings.queues.iter().map(|(queue, at_most)| (queue.clone(), at_most.value));
    let here = std::env::current_dir().unwrap_or_default();
    let home_folder = home.folder().to_owned();
    let now = move || settings::queues_now(&here, &home_folder, &|name: &str| std::env::var_os(name));
    dependencies.queues = QueueLimits::new(at_most.collect(), now);
    let request = Request::of_local_user();
    request.notices.listen(Some(commands::printed_by(printer)));
    Ok(Context::open_with(home, dependencies, request, create)?)
}

/// Other commands look for the home from here upwards; where they would not find this one, its path is shown.
fn report_home(settings: &Settings, home: &Path, printer: Printer) {
    let found = std::path::absolute(settings.home_folder(None)).unwrap_or_default();
    if found != home {
        printer.note(format!("from here, other commands find this run with --home {}", home.display()));
    }
}
