use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::alarm;
use trackway_api::home::sql::QueryRow;
use trackway_engine::Context;
use trackway_flows::outputs;
use trackway_flows::query;
use trackway_formats::Variable;
use trackway_sql::{Answer, QueryLimits};

use crate::args::{Seconds, SqlArgs};
use crate::exit::{Exit, Failure};
use crate::printer::Printer;
use crate::units::{bytes, counted};

/// Set in the process that answers: the folder it may spill to.
const WORKER_VARIABLE: &str = Variable::SqlSpillFolder.as_str();

/// What a process needs beside the memory of its query.
const BASE_BYTES: u64 = 256 << 20;
/// Least memory with which a query can be answered.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

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
            format!("the query took longer than {timeout}"),
            "simplify the query, or raise --timeout",
        ),
        // An allocation that the system refuses, and a stack that is used up, both abort.
        Signal::SIGABRT | Signal::SIGSEGV | Signal::SIGKILL => Failure::usage(
            format!(
                "the query needs far more memory than the {} it may use, or is nested too deep",
                bytes(memory_limit.0)
            ),
            "select less data, or raise --memory-limit",
        ),
        other => Failure::fault(format!("the query was ended by {other}")),
    })
}

/// Answers within the limits, in the process that is there for it.
pub fn answer(context: &Context, args: &SqlArgs, spill_folder: PathBuf, printer: Printer) -> Exit {
    outputs::refuse_outputs(context, args.out.as_deref())?;
    let memory_bytes = args.memory_limit.0;
    if memory_bytes < MEMORY_BYTES_MIN {
        let message = format!("--memory-limit is {}", bytes(memory_bytes));
        return Err(Failure::usage(message, format!("give at least {}", bytes(MEMORY_BYTES_MIN))));
    }
    let most = memory_bytes.saturating_mul(2).saturating_add(BASE_BYTES);
    setrlimit(Resource::RLIMIT_DATA, most, most).map_err(std::io::Error::from)?;
    // Whatever the query does, the system ends this process then.
    alarm::set(alarm_seconds(args.timeout));
    let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    let limits = QueryLimits { memory_bytes, spill_folder: Some(spill_folder), ..QueryLimits::default() };
    let answer = query::sql(context, &args.query, &limits)?;
    if let Some(path) = &args.out {
        let rows = query::write_parquet(context, &answer, path)?;
        printer.note(format!("wrote {} to `{}`", counted(rows as u64, "row"), path.display()));
    } else if printer.is_json() {
        let rows: Vec<QueryRow> = query::json_rows(context, &answer)?.into_iter().map(QueryRow).collect();
        printer.document(&rows);
    } else if args.csv {
        let mut csv = Vec::new();
        answer.write_csv(&mut csv)?;
        printer.file(&csv);
    } else {
        table(context, &answer, printer)?;
    }
    Ok(0)
}

/// Whole seconds for the alarm of the system, at least one: 0 would set none.
fn alarm_seconds(timeout: Seconds) -> u32 {
    timeout.0.ceil().clamp(1.0, f64::from(u32::MAX)) as u32
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
