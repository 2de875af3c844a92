//! A gate: a rule over the evidence of an evaluation that a model must meet, such as `accuracy >= baseline - 0.002`.
//!
//! A rule ([`crate::rules::rule`]) in which a name is a number of the evidence: a metric (`accuracy`), a slice's
//! (`slice.women.recall`), a measure of fairness (`fairness.equal_opportunity`), a fact (`size_bytes`, `cost_usd`).
//! `min(slice.recall)` and `max(slice.recall)` go over all slices, `max(blind_spot.error)` over all blind spots, `max(probe.flipped)` over
//! all probes. `baseline` is the same number of the model to
//! compare with; `baseline(…)` names it. `value(accuracy)` uses the number alone, without its interval.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use trackway_core::registry::GateKind;

use super::rule::{self, Parser, RuleError, quoted_name};

/// A gate.
pub type Gate = rule::Rule<Number>;

const KEYWORDS: &[&str] = &["baseline", "min", "max", "value"];

/// A number of the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Number {
    /// Its name, with dots between its parts; where it goes over slices, the name without a slice's: `slice.recall`.
    pub name: String,
    /// Of which slices.
    pub over: Over,
    /// The number alone: its interval does not count.
    pub alone: bool,
    /// Of the model to compare with.
    pub baseline: bool,
}

/// One number, or the extreme one of all slices, blind spots or probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Over {
    /// The one of this name.
    One,
    /// The least of all slices.
    Least,
    /// The greatest of all slices.
    Greatest,
}

/// What the names of slices begin with.
pub const SLICE: &str = "slice.";
/// What the names of blind spots begin with.
pub const BLIND_SPOT: &str = "blind_spot.";
/// What the names of probes begin with.
pub const PROBE: &str = "probe.";
/// What the names of measures of fairness begin with.
pub const FAIRNESS: &str = "fairness.";

/// What a scoring command takes.
pub const LATENCIES: [&str; 3] = ["latency_seconds", "latency_p95_seconds", "rows_per_second"];
/// How large a checkpoint is; known of any model.
pub const SIZES: [&str; 2] = ["size_bytes", "weights_bytes"];
/// What its training took; known of any model.
pub const COSTS: [&str; 3] = ["training_seconds", "gpu_seconds", "cost_usd"];

/// What a gate is about: one kind for each of its numbers.
#[must_use]
pub fn kinds(gate: &Gate) -> BTreeSet<GateKind> {
    gate.comparisons().iter().flat_map(|comparison| comparison.operands()).map(kind).collect()
}

fn kind(number: &Number) -> GateKind {
    let is_of = |prefix: &str| number.name.starts_with(prefix);
    match number.name.as_str() {
        name if LATENCIES.contains(&name) => GateKind::Latency,
        name if SIZES.contains(&name) => GateKind::Size,
        name if COSTS.contains(&name) => GateKind::Cost,
        _ if is_of(SLICE) => GateKind::Slice,
        _ if is_of(BLIND_SPOT) => GateKind::BlindSpot,
        _ if is_of(PROBE) => GateKind::Robustness,
        _ if is_of(FAIRNESS) => GateKind::Fairness,
        _ => GateKind::Quality,
    }
}

impl rule::Operand for Number {
    const OTHER: &'static str = "baseline";
    const EXAMPLE: &'static str = "accuracy";

    /// `name`, `min(slice.name)`, `max(slice.name)`, `value(…)` of these.
    fn parse(words: &mut Parser) -> Result<Self, RuleError> {
        let one = |name, over| Self { name, over, alone: false, baseline: false };
        match words.call().as_deref() {
            None => Ok(one(words.metric(KEYWORDS)?, Over::One)),
            Some("min") => words.argument(|words| Ok(one(slices(words)?, Over::Least))),
            Some("max") => words.argument(|words| Ok(one(slices(words)?, Over::Greatest))),
            Some("value") => words.argument(|words| Ok(Self { alone: true, ..Self::parse(words)? })),
            Some(word) => Err(words
                .wrong(&format!("calls `{word}(…)`, which does not exist"))
                .hint("there are `min(slice.NAME)`, `max(slice.NAME)`, `value(NAME)` and `baseline(NAME)`")),
        }
    }

    fn of_other(self) -> Self {
        Self { baseline: true, ..self }
    }

    fn is_of_other(&self) -> bool {
        self.baseline
    }
}

fn slices(words: &mut Parser) -> Result<String, RuleError> {
    let wrong = words
        .wrong("goes over all slices, so it needs a slice metric here")
        .hint("write `min(slice.recall)`, `max(blind_spot.error)` or `max(probe.flipped)`");
    let name = words.metric(KEYWORDS)?;
    let is_of = |prefix: &str| name.len() > prefix.len() && name.starts_with(prefix);
    if [SLICE, BLIND_SPOT, PROBE].into_iter().any(is_of) { Ok(name) } else { Err(wrong) }
}

/// As a gate names it, such as `baseline(min(slice.recall))`.
impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = quoted_name(&self.name, KEYWORDS);
        let name = match self.over {
            Over::One => name,
            Over::Least => format!("min({name})"),
            Over::Greatest => format!("max({name})"),
        };
        let name = if self.alone { format!("value({name})") } else { name };
        if self.baseline { write!(formatter, "baseline({name})") } else { formatter.write_str(&name) }
    }
}
