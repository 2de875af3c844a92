//! One place per command, in folders like the groups of the help: call the use case, print its answer, choose the exit
//! code.

mod checks;
pub mod data_and_models;
pub mod housekeeping;
pub mod inspect;
mod live;
pub mod run;
mod sections;

use std::collections::BTreeMap;

use trackway_core::name::{Name, NameKind};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::arguments::{PARAMETERS_MAX, given_pair};
use trackway_formats::runfile::PlanPatch;
use trackway_launch::ProcessIdentity;
use trackway_launch::outside::stand_in;

pub use self::live::printed_by;
use crate::args::{AwaitArgs, ShimArgs};
use crate::exit::Failure;

/// A name that a person gives to something new.
fn given_name(named: NameKind, word: &str) -> Result<Name, Failure> {
    Name::new(named, word).map_err(|error| {
        let hint = error.hint();
        AppError::of(ErrorKind::Usage, error).hint(hint).into()
    })
}

/// The changes of a run file that `--set` gives.
fn patch_of(overrides: &[String]) -> Result<PlanPatch, Failure> {
    Ok(PlanPatch::of_command_line(overrides).map_err(|errors| AppError::run_file(&errors, ""))?)
}

/// The pairs of a repeated option; of one name the last value counts.
fn given(option: &str, pairs: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| {
        given_pair(text).map_err(|why| {
            Failure::usage(format!("{option}: {why}"), format!("such as `{option} optimizer=adamw`"))
        })
    };
    let found: BTreeMap<String, String> = pairs.iter().map(pair).collect::<Result<_, _>>()?;
    match found.len() > PARAMETERS_MAX {
        true => Err(Failure::usage(
            format!("{option} is given {} times: {PARAMETERS_MAX} is the limit", found.len()),
            "record the others in the script",
        )),
        false => Ok(found),
    }
}

/// The shim prints nothing: its exit code shows only whether it could do its work.
pub fn shim(args: &ShimArgs) -> u8 {
    u8::try_from(trackway_launch::shim::run(&args.folder, &args.argv)).unwrap_or(1)
}

/// Waits for a process that Trackway did not launch, in its place.
pub fn await_process(args: &AwaitArgs) -> u8 {
    let process = ProcessIdentity { pid: args.pid, start_ticks: args.start_ticks };
    stand_in(process, &args.folder).unwrap_or(1)
}
