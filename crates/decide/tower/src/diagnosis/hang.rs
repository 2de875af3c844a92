//! Which rank is not where the others wait: from the stacks of all processes and from lines of a collective library.

use trackway_core::Step;

/// Lines of a collective library that a finding names.
const WARNINGS_MAX: usize = 3;
/// Processes that a finding names.
const PROCESSES_MAX: usize = 8;
/// Functions in which a process takes part in an operation of all ranks, as names of Python functions.
const COLLECTIVES: [&str; 20] = [
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_reduce_coalesced",
    "all_to_all", "all_to_all_single", "allreduce", "allgather", "barrier", "broadcast",
    "broadcast_object_list", "gather", "monitored_barrier", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "psum", "sync_global_devices",
];
/// Where a function with such a name counts as one.
const LIBRARIES: [&str; 6] = ["distributed", "horovod", "mpi4py", "deepspeed", "jax", "ray"];
/// Parts of lines in which a collective library reports that ranks are not together.
const WARNINGS: [&str; 9] = [
    "NCCL WARN",
    "Watchdog caught collective operation timeout",
    "failed to pass monitoredBarrier",
    "Ranks that have not joined",
    "Detected mismatch between collectives",
    "Timed out waiting",
    "Heartbeat monitor timed out",
    "Connection closed by peer",
    "last enqueued NCCL work",
];

/// A process and its innermost frames first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankStack {
    /// Its rank; `None`: it has none.
    pub rank: Option<u32>,
    /// The process, for people.
    pub name: String,
    /// File and function of each frame of the main thread, innermost first.
    pub frames: Vec<(String, String)>,
    /// All of it in one line.
    pub line: String,
}

impl RankStack {
    /// The operation of all ranks that it takes part in.
    fn collective(&self) -> Option<&str> {
        let is_library = |file: &str| LIBRARIES.iter().any(|library| file.contains(library));
        let of_library = self.frames.iter().filter(|(file, _)| is_library(file));
        let mut named = of_library.map(|(_, function)| function.as_str());
        named.find(|function| COLLECTIVES.contains(function))
    }

    /// Where it is.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        (!self.line.is_empty()).then(|| self.line.clone())
    }
}

/// The lines of an output in which a collective library reports ranks that are not together.
#[must_use]
pub fn collective_warnings<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<String> {
    let is_warning = |line: &&str| WARNINGS.iter().any(|part| line.contains(part));
    lines.filter(is_warning).take(WARNINGS_MAX).map(|line| line.trim().to_owned()).collect()
}

/// Which ranks take part in an operation of all ranks and which do not, and where those are.
#[must_use]
pub fn hang_finding(stacks: &[RankStack], warnings: &[String], step: Option<Step>) -> String {
    let after = step.map(|step| format!(" after step {step}")).unwrap_or_default();
    let waiting: Vec<&RankStack> = stacks.iter().filter(|stack| stack.collective().is_some()).collect();
    let missing: Vec<&RankStack> = stacks
        .iter()
        .filter(|stack| stack.rank.is_some() && stack.collective().is_none() && !stack.frames.is_empty())
        .collect();
    let lines = |of: &[&RankStack]| {
        let mut named: Vec<String> =
            of.iter().take(PROCESSES_MAX).filter_map(|stack| stack.sentence()).collect();
        if of.len() > PROCESSES_MAX {
            named.push(format!("and {} more", of.len() - PROCESSES_MAX));
        }
        named.join("; ")
    };
    let mut sentence = if !waiting.is_empty() && !missing.is_empty() {
        let ranks: Vec<String> =
            missing.iter().filter_map(|stack| stack.rank).map(|rank| rank.to_string()).collect();
        let operation = waiting.first().and_then(|stack| stack.collective()).unwrap_or_default();
        let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
        format!(
            "no progress{after}: {} in `{operation}`, and {noun} {} did not join: {}",
            waits(waiting.len()),
            ranks.join(", "),
            lines(&missing)
        )
    } else if !waiting.is_empty() {
        let operation = waiting.first().and_then(|stack| stack.collective()).unwrap_or_default();
        format!(
            "no progress{after}: every process that can be seen here waits in `{operation}`; a rank on another machine or one that has \
             ended is missing, or the ranks wait in different operations: {}",
            lines(&waiting)
        )
    } else if stacks.is_empty() {
        format!("no progress{after}; where the processes are could not be seen")
    } else {
        format!("no progress{after}; where the processes are: {}", lines(&stacks.iter().collect::<Vec<_>>()))
    };
    for warning in warnings.iter().take(WARNINGS_MAX) {
        sentence.push_str("; the log: ");
        sentence.push_str(warning);
    }
    sentence
}

fn waits(count: usize) -> String {
    if count == 1 { "1 process waits".into() } else { format!("{count} processes wait") }
}
