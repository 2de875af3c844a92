//! Which rank is not where the others wait: from the stacks of all processes and from lines of a collective library.

use std::collections::BTreeMap;

use trackway_core::{Step, text};
use trackway_formats::record::RankEnd;

use super::collectives::{Collectives, disagreement};
use super::rank_names::named_ranks;

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

/// What a diagnosis of a hang shows: which ranks are missing, and what a collective library reported. What ranks recorded of their
/// operations says more than where their stacks are: a rank also waits where the host only reads a result.
#[must_use]
pub fn hang_finding(
    stacks: &[RankStack],
    collectives: &[Collectives],
    warnings: &[String],
    step: Option<Step>,
) -> String {
    let after = step.map(|step| format!(" after step {step}")).unwrap_or_default();
    let mut sentence = match disagreement(collectives) {
        Some(found) => {
            format!("no progress{after}: {}{}", found.sentence, places(stacks, &found.missing, "; "))
        }
        None if stacks.is_empty() => format!("no progress{after}; where the processes are could not be seen"),
        None => format!("no progress{after}: {}", missing_ranks(stacks, &BTreeMap::new())),
    };
    for warning in warnings.iter().take(WARNINGS_MAX) {
        sentence.push_str("; the log: ");
        sentence.push_str(warning);
    }
    sentence
}

/// Where these ranks are, as the end of a sentence.
fn places(stacks: &[RankStack], ranks: &[u32], before: &str) -> String {
    let of_them = |stack: &&RankStack| stack.rank.is_some_and(|rank| ranks.contains(&rank));
    let there: Vec<&RankStack> = stacks.iter().filter(of_them).collect();
    if there.is_empty() { String::new() } else { format!("{before}{}", lines(&there)) }
}

/// Which ranks take part in an operation of all ranks and which do not, or else which ones are behind, and where those are.
/// `last_steps`: the last step that each rank recorded.
#[must_use]
pub fn missing_ranks(stacks: &[RankStack], last_steps: &BTreeMap<u32, Step>) -> String {
    let waiting: Vec<&RankStack> = stacks.iter().filter(|stack| stack.collective().is_some()).collect();
    let missing: Vec<&RankStack> = stacks
        .iter()
        .filter(|stack| stack.rank.is_some() && stack.collective().is_none() && !stack.frames.is_empty())
        .collect();
    let operation = waiting.first().and_then(|stack| stack.collective()).unwrap_or_default();
    if !waiting.is_empty() && !missing.is_empty() {
        let ranks: Vec<u32> = missing.iter().filter_map(|stack| stack.rank).collect();
        return format!(
            "{} in `{operation}`, and {} did not join: {}",
            waits(waiting.len()),
            named_ranks(&ranks, last_steps),
            lines(&missing)
        );
    }
    if let Some((ranks, named)) = behind(last_steps) {
        return format!("{named}{}", places(stacks, &ranks, ": "));
    }
    if !waiting.is_empty() {
        return format!(
            "every process that can be seen here waits in `{operation}`; a rank on another machine or one that has ended is missing, or \
             the ranks wait in different operations: {}",
            lines(&waiting)
        );
    }
    format!("where the processes are: {}", lines(&stacks.iter().collect::<Vec<_>>()))
}

/// The ranks that a collective's own time-out left behind: those that raised nothing while as many others or more gave up waiting, or else
/// those whose last step is the smallest; none where neither distinguishes them.
#[must_use]
pub fn silent_ranks(ranks: &[RankEnd]) -> Option<String> {
    let mut last_steps: BTreeMap<u32, Step> = BTreeMap::new();
    for rank in ranks {
        let last = last_steps.entry(rank.rank).or_default();
        *last = rank.last_step.unwrap_or(0).max(*last);
    }
    let has_raised = |rank: &u32| ranks.iter().any(|end| end.rank == *rank && end.raised);
    let (raised, silent): (Vec<u32>, Vec<u32>) = last_steps.keys().copied().partition(has_raised);
    if !silent.is_empty() && silent.len() <= raised.len() {
        let gave_up = text::counted(raised.len() as u64, "rank");
        return Some(format!(
            "{gave_up} gave up waiting, and {} did not join",
            named_ranks(&silent, &last_steps)
        ));
    }
    behind(&last_steps).map(|(_, named)| named)
}

/// The ranks whose last step is the smallest, and what is said of them; none where all have the same.
fn behind(last_steps: &BTreeMap<u32, Step>) -> Option<(Vec<u32>, String)> {
    let (least, farthest) = (*last_steps.values().min()?, *last_steps.values().max()?);
    if least == farthest {
        return None;
    }
    let of_least = last_steps.iter().filter(|(_, step)| **step == least);
    let ranks: Vec<u32> = of_least.map(|(rank, _)| *rank).collect();
    let verb = if ranks.len() == 1 { "is" } else { "are" };
    let named = named_ranks(&ranks, last_steps);
    Some((ranks, format!("{named} {verb} behind the others, which recorded step {farthest}")))
}

fn lines(of: &[&RankStack]) -> String {
    let mut named: Vec<String> = of.iter().take(PROCESSES_MAX).filter_map(|stack| stack.sentence()).collect();
    if of.len() > PROCESSES_MAX {
        named.push(format!("and {} more", of.len() - PROCESSES_MAX));
    }
    named.join("; ")
}

fn waits(count: usize) -> String {
    if count == 1 { "1 process waits".into() } else { format!("{count} processes wait") }
}
