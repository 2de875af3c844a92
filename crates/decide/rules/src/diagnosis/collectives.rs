//! Which rank did not enter an operation of all ranks, from the operations that each rank recorded (PyTorch's flight recorder).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::rank_names::named_ranks;

/// Kinds of operations, and shapes of one, that a sentence names.
const NAMED_MAX: usize = 8;
/// Operations whose input has the same size on every rank.
const EQUAL_SIZES: [&str; 3] = ["all_reduce", "broadcast", "reduce"];

/// An operation that a rank entered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// Its number in the group, from 1: the same on every rank.
    pub number: u64,
    /// Its name, such as `all_reduce`.
    pub name: String,
    /// The shapes of its input.
    pub sizes: Vec<Vec<u64>>,
    /// Whether it has ended.
    pub done: bool,
    /// Where the script entered it, as file, line and function.
    pub at: Option<String>,
}

/// The last operations that a rank entered in a group of ranks, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Its name, the same on every rank of it.
    pub name: String,
    /// What it is for, such as `default_pg`.
    pub description: String,
    pub operations: Vec<Operation>,
}

/// The operations of a rank that made no progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Collectives {
    pub rank: u32,
    /// Whether the script had finished its record: what it entered later is not known.
    pub finished: bool,
    pub groups: Vec<Group>,
}

/// Ranks that are not where the others are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Disagreement {
    /// What differs, as a sentence without its end.
    pub(super) sentence: String,
    /// The ranks that did not join; empty where ranks entered different operations.
    pub(super) missing: Vec<u32>,
}

impl Operation {
    /// What must be equal on every rank.
    fn identity(&self) -> (&str, Option<&[Vec<u64>]>) {
        let has_equal_sizes = EQUAL_SIZES.contains(&self.name.as_str());
        (&self.name, has_equal_sizes.then_some(self.sizes.as_slice()))
    }

    /// `all_reduce` of [1024] at train.py:41 in step.
    fn described(&self) -> String {
        let sizes: Vec<String> = self.sizes.iter().take(NAMED_MAX).map(|size| format!("{size:?}")).collect();
        let of = if sizes.is_empty() { String::new() } else { format!(" of {}", sizes.join(", ")) };
        let at = self.at.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
        format!("`{}`{of}{at}", self.name)
    }
}

/// The first operation of a group that is not the same on all ranks that recorded it, or else the one that a rank did not enter while
/// others wait in it; none where neither is seen.
pub(super) fn disagreement(ranks: &[Collectives]) -> Option<Disagreement> {
    let mut groups: BTreeMap<&str, Vec<(u32, &Group)>> = BTreeMap::new();
    for one in ranks {
        for group in &one.groups {
            groups.entry(&group.name).or_default().push((one.rank, group));
        }
    }
    let several: Vec<_> = groups.values().filter(|of| of.len() > 1).collect();
    let found =
        several.iter().find_map(|of| different(of)).or_else(|| several.iter().find_map(|of| behind(of)))?;
    let is_finished = |one: &&Collectives| one.finished && found.missing.contains(&one.rank);
    let finished: Vec<u32> = ranks.iter().filter(is_finished).map(|one| one.rank).collect();
    if finished.is_empty() {
        return Some(found);
    }
    let sentence = format!("{}; {} had called `finish()` by then", found.sentence, named(&finished));
    Some(Disagreement { sentence, ..found })
}

/// The first number at which ranks of a group entered different operations.
fn different(of: &[(u32, &Group)]) -> Option<Disagreement> {
    let mut by_number: BTreeMap<u64, Vec<(u32, &Operation)>> = BTreeMap::new();
    for (rank, group) in of {
        for operation in &group.operations {
            by_number.entry(operation.number).or_default().push((*rank, operation));
        }
    }
    let differs = |entered: &&Vec<(u32, &Operation)>| {
        entered.iter().any(|(_, one)| one.identity() != entered[0].1.identity())
    };
    let (number, entered) = by_number.iter().find(|(_, entered)| differs(entered))?;
    let mut kinds: Vec<(Vec<u32>, &Operation)> = Vec::new();
    for (rank, operation) in entered {
        match kinds.iter_mut().find(|(_, other)| other.identity() == operation.identity()) {
            Some((ranks, _)) => ranks.push(*rank),
            None => kinds.push((vec![*rank], operation)),
        }
    }
    let kinds = kinds.iter().take(NAMED_MAX);
    let sides: Vec<String> =
        kinds.map(|(ranks, one)| format!("{} on {}", one.described(), named(ranks))).collect();
    let sentence = format!(
        "ranks entered different operations as number {number} of {}: {}",
        group_name(of),
        sides.join("; ")
    );
    Some(Disagreement { sentence, missing: Vec::new() })
}

/// The ranks of a group whose last operation is before one in which others wait.
fn behind(of: &[(u32, &Group)]) -> Option<Disagreement> {
    let last = |group: &Group| group.operations.last().map_or(0, |operation| operation.number);
    let least = of.iter().map(|(_, group)| last(group)).min()?;
    let pending = |group: &Group| {
        group.operations.iter().find(|operation| operation.number > least && !operation.done).cloned()
    };
    let waiting: Vec<(u32, Operation)> =
        of.iter().filter_map(|(rank, group)| Some((*rank, pending(group)?))).collect();
    let first = waiting.iter().map(|(_, operation)| operation).min_by_key(|operation| operation.number)?;
    let missing: Vec<u32> =
        of.iter().filter(|(_, group)| last(group) < first.number).map(|(rank, _)| *rank).collect();
    let there: Vec<u32> = waiting.iter().map(|(rank, _)| *rank).collect();
    let waits = if there.len() == 1 { "waits" } else { "wait" };
    let sentence = format!(
        "{} did not enter operation {} of {}, {}, in which {} {waits}; the last one entered there was {least}",
        named(&missing),
        first.number,
        group_name(of),
        first.described(),
        named(&there),
    );
    Some(Disagreement { sentence, missing })
}

fn group_name(of: &[(u32, &Group)]) -> String {
    let group = of[0].1;
    let name = if group.description.is_empty() { &group.name } else { &group.description };
    format!("the group `{name}`")
}

fn named(ranks: &[u32]) -> String {
    named_ranks(ranks, &BTreeMap::new())
}
