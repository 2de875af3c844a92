use std::io::Write;
use std::process::ExitCode;

use trackway_recorder::Recorder;
use trackway_system::SystemClock;

use crate::{Defaults, Ending, Job, JobError, Options, evaluate, train};

/// What a shell reports for a program ended by SIGTERM (128 + 15). A stopped run is not a completed one, and 0 would
/// mean that to programs without knowledge of the requested stop, such as a scheduler that took the machine away.
const EXIT_STOPPED: u8 = 143;
const EXIT_USAGE: u8 = 2;

/// The `main` of every example job: reads the command line, attaches the recorder, trains, chooses the exit code. With `--evaluate`
/// it evaluates a checkpoint instead.
///
/// 0: all steps done · 1: failed · 2: wrong arguments · 143: stopped on request (SIGTERM or a command of Trackway),
/// after a checkpoint where there is somewhere to put it.
pub fn launch<J: Job>(defaults: Defaults, prepare: impl FnOnce(&Options) -> Result<J, JobError>) -> ExitCode {
    compute_on_one_thread();
    let seed = std::env::var("TRACKWAY_SEED").ok();
    let options = Options::parse(std::env::args().skip(1), seed.as_deref(), defaults);
    match options.and_then(|options| run_job(options, prepare)) {
        Ok(Ending::Completed) => ExitCode::SUCCESS,
        Ok(Ending::Stopped) => ExitCode::from(EXIT_STOPPED),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(if matches!(error, JobError::Usage(_)) { EXIT_USAGE } else { 1 })
        }
    }
}

fn run_job<J: Job>(
    options: Options,
    prepare: impl FnOnce(&Options) -> Result<J, JobError>,
) -> Result<Ending, JobError> {
    if options.evaluate {
        return evaluate(options, prepare).map(|()| Ending::Completed);
    }
    let run = Recorder::attach();
    run.stop_on_sigterm();
    run.took_seed(options.seed);
    let ended =
        prepare(&options).and_then(|job| train(&job, &options, &run, &SystemClock, &mut std::io::stdout()));
    run.finish();
    ended
}

/// candle sizes its thread pool from this variable. One thread makes the order of additions, and so every bit, the
/// same on each launch; matrices this small gain nothing from more.
fn compute_on_one_thread() {
    if std::env::var_os("RAYON_NUM_THREADS").is_none() {
        // SAFETY: called first in `main`, before any thread exists that could read the environment.
        unsafe { std::env::set_var("RAYON_NUM_THREADS", "1") };
    }
}
