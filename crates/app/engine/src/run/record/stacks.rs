//! The stacks of an attempt that makes no progress: taken once by the launcher, kept as a file of its folder, reported
//! in a line.

use std::collections::BTreeMap;

use trackway_core::Step;
use trackway_formats::layout::AttemptLayout;
use trackway_launch::{Launcher, Placement, ProcessStack, StackDump};
use trackway_rules::diagnosis::{RankStack, missing_ranks};

use crate::json_file::read_if_sound;

/// Dumps of one attempt that are kept.
const DUMPS_MAX: usize = 20;
/// Frames of a process in which its operation is looked for.
const FRAMES_MAX: usize = 24;

/// A dump that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stacks {
    /// The file, from the attempt's folder.
    pub path: String,
    /// Which ranks are missing, and where they are.
    pub summary: String,
}

/// Takes the stacks of all processes of an attempt and stores them in its folder. `last_steps`: of each rank.
///
/// # Errors
/// Why there are none: the training continues without.
pub fn take(
    launcher: &dyn Launcher,
    placement: &Placement,
    attempt: &AttemptLayout,
    last_steps: &BTreeMap<u32, Step>,
) -> Result<Stacks, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the stacks could not be taken: {error}");
    let path = (1..=DUMPS_MAX)
        .map(|number| attempt.stack_dump(number))
        .find(|path| !path.exists())
        .ok_or_else(|| failed(&format!("there are {DUMPS_MAX} dumps of this attempt already")))?;
    let dump = launcher.stacks(placement).map_err(|error| failed(&error))?;
    if dump.processes.is_empty() {
        return Err(failed(&"no process of the attempt can be seen"));
    }
    let bytes = serde_json::to_vec_pretty(&dump).map_err(|error| failed(&error))?;
    std::fs::create_dir_all(attempt.stacks())
        .and_then(|()| std::fs::write(&path, bytes))
        .map_err(|error| failed(&error))?;
    Ok(Stacks { path: attempt.below(&path), summary: missing_ranks(&rank_stacks(&dump), last_steps) })
}

/// The dump that a detection names, a line for each process; none where it is gone with the attempt's other files.
pub fn lines(attempt: &AttemptLayout, path: &str) -> Vec<String> {
    let dump: StackDump = read_if_sound(&attempt.folder().join(path)).unwrap_or_default();
    dump.processes.iter().map(ProcessStack::in_one_line).collect()
}

/// The processes of a dump: the first one of each rank, since workers of a data loader inherit the rank.
#[must_use]
pub fn rank_stacks(dump: &StackDump) -> Vec<RankStack> {
    let mut stacks: Vec<RankStack> = Vec::new();
    for process in &dump.processes {
        let is_known = process.rank.is_some() && stacks.iter().any(|stack| stack.rank == process.rank);
        if !is_known {
            stacks.push(rank_stack(process));
        }
    }
    stacks
}

fn rank_stack(process: &ProcessStack) -> RankStack {
    let main = process.program.iter().find(|thread| thread.current).or(process.program.first());
    let frames = main.into_iter().flat_map(|thread| thread.frames.iter().take(FRAMES_MAX));
    RankStack {
        rank: process.rank,
        name: process.name.clone(),
        frames: frames.map(|frame| (frame.file.clone(), frame.function.clone())).collect(),
        line: process.in_one_line(),
    }
}
