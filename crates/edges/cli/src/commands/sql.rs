use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::alarm;
use trackway_api::sql::QueryRow;
use trackway_engine::Context;
use trackway_flows::outputs;
use trackway_flows::query;
use trackway_formats::Variable;
use trackway_sql::{Answer, QueryLimits};

use crate::args::SqlArgs;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;
use crate::units::counted;

/// Set in the process that answers: the folder it may spill to.
const WORKER_VARIABLE: &str = Variable::SqlSpillFolder.as_str();

/// What a process needs beside the memory of its query.
const BASE_MIB: u64 = 256;

/// The folder to spill to, where this process is the one that answers.
pub fn worker_folder() -> Option<PathBuf> {
    std::env::var_os(WORKER_VARIABLE).map(PathBuf::from)
}

/// Runs the query in a separate process, which may use so much memory and time: a query's memory cannot be bounded from
/// within, and an end of that process is an error here.
pub fn supervise(args: &SqlArgs) -> Exit {
    let spill = tempfile::Builder::new().prefix("trackway-sql-").tempdir()?;
    let worker = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(WORKER_VARIABLE, spill.path())
        // The abort is reported below; its stack does not help a user.
        .env("RUST_BACKTRACE", "0")
        .status()?;
    let Some(signal) = worker.signal().and_then(|number| Signal::try_from(number).ok()) else {
        return Ok(worker.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
    };
    let SqlArgs { timeout, memory_limit, .. } = args;
    Err(match signal {
        Signal::SIGALRM => Failure::usage(
            format!("the query took longer than {timeout} s"),
            "simplify the query, or raise --timeout SECONDS",
        ),
        // An allocation that the system refuses, and a stack that is used up, both abort.
        Signal::SIGABRT | Signal::SIGSEGV | Signal::SIGKILL => Failure::usage(
            format!(
                "the query needs far more memory than the {memory_limit} MiB it may use, or is nested too deep"
            ),
            "select less data, or raise --memory-limit MIB",
        ),
        other => Failure::fault(format!("the query was ended by {other}")),
    })
}

/// Answers within the limits, in the process that is there for it.
pub fn answer(context: &Context, args: &SqlArgs, spill_folder: PathBuf, printer: Printer) -> Exit {
    outputs::refuse_outputs(context, args.parquet.as_deref())?;
    let most = (u64::from(args.memory_limit) * 2 + BASE_MIB) << 20;
    setrlimit(Resource::RLIMIT_DATA, most, most).map_err(std::io::Error::from)?;
    // Whatever the query does, the system ends this process then.
    alarm::set(args.timeout);
    let limits =
        QueryLimits { memory_bytes: (args.memory_limit as usize) << 20, spill_folder: Some(spill_folder) };
    let answer = query::sql(context, &args.query, &limits)?;
    if let Some(path) = &args.parquet {
        let rows = query::write_parquet(context, &answer, path)?;
        printer.note(format!("wrote {} to `{}`", counted(rows as u64, "row"), path.display()));
    } else if printer.is_json() {
        let rows: Vec<QueryRow> = query::json_rows(context, &answer)?.into_iter().map(QueryRow).collect();
        printer.document(&rows);
    } else if args.csv {
        let mut bytes = Vec::new();
        answer.write_csv(&mut bytes)?;
        printer.file(&bytes);
    } else {
        table(context, &answer, printer)?;
    }
    Ok(0)
}

fn table(context: &Context, answer: &Answer, printer: Printer) -> Result<(), Failure> {
    let columns = answer.columns();
    let header: Vec<&str> = columns.iter().map(String::as_str).collect();
    let rows = query::text_rows(context, answer)?;
    let count = rows.len();
    printer.table(&header, rows);
    printer.note(counted(count as u64, "row"));
    Ok(())
}
