//! Whether a model meets a gate: a rule over numbers that have intervals.
//!
//! A comparison `left >= right` is decided by the interval of `left − right`: it passes if the whole interval is on the
//! right side of zero, fails if the whole interval is on the other side, and is inconclusive otherwise. The interval is
//! computed so:
//!
//! - A number and the same number of the baseline depend on one another where both were computed on the same rows. As far as a
//!   comparison is about `x − baseline(x)`, the interval of the paired difference is taken and not those of the two numbers.
//! - What is left is combined by interval arithmetic, which is right for one number and never too narrow for more (as
//!   if all of them were off in the same direction).
//!
//! A number that covers only some of its rows decides nothing, nor does one whose coverage is unknown. A number without
//! an interval decides nothing, unless it is exact (a size, a cost) or the gate uses `value(…)`. A missing measurement
//! is inconclusive too: silence does not pass. Only if there is no baseline at all, because no model was promoted yet,
//! is a comparison with it met.

mod known;
mod linear;
mod measured;
#[cfg(test)]
mod tests;
pub mod worn;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trackway_core::registry::GateVerdict;
use trackway_formats::gate::{BLIND_SPOT, Gate, LATENCIES, Number, Over, PROBE, SLICE};
use trackway_formats::rule::{Relation, RuleComparison};
use trackway_statistics::Interval;

pub use known::{KnownNumbers, unknown_numbers};
use linear::Range;
pub use measured::Measured;

/// Numbers by name: `accuracy`, `slice.women.recall`, `fairness.equal_opportunity`, `size_bytes`.
pub type Numbers = BTreeMap<String, Measured>;

/// The evidence for a gate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GateEvidence {
    /// Of the model.
    pub numbers: Numbers,
    /// Of the model to compare with. `None`: there is no such model yet; empty: none was named.
    #[serde(default)]
    pub baseline: Option<Numbers>,
    /// Model − baseline, of numbers computed on the same rows.
    #[serde(default)]
    pub differences: Numbers,
    /// Numbers of the model that decide nothing, and why, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inconclusive: BTreeMap<String, String>,
    /// Why no number over rows of the model decides anything; facts do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<String>,
}

/// A gate that was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedGate {
    /// As it is in the run file.
    pub rule: String,
    pub verdict: GateVerdict,
    pub comparisons: Vec<JudgedComparison>,
    /// An explanation with the numbers.
    pub why: String,
}

/// One comparison of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedComparison {
    /// As it is in the rule.
    pub text: String,
    pub verdict: GateVerdict,
    /// By how much the left side is above the right one.
    pub margin: Option<f64>,
    /// The interval of that, as `low` and `high`.
    #[serde(flatten)]
    pub interval: Interval,
    /// About how many rows would settle it, at this margin; only where it is inconclusive for the width of the interval.
    pub settles_at: Option<u64>,
    /// An explanation with the numbers.
    pub why: String,
}

/// Decides a gate, which reads `rule`.
#[must_use]
pub fn judge(rule: &str, gate: &Gate, evidence: &GateEvidence) -> JudgedGate {
    let comparisons: Vec<JudgedComparison> =
        gate.comparisons().into_iter().map(|comparison| compare(comparison, evidence)).collect();
    let verdict = gate.condition.verdict(&mut comparisons.iter().map(|it| it.verdict));
    let verdict = verdict.unwrap_or(GateVerdict::Inconclusive);
    let why: Vec<&str> = comparisons.iter().map(|it| it.why.as_str()).collect();
    JudgedGate { rule: rule.to_owned(), verdict, why: why.join("; "), comparisons }
}

/// The verdict over all gates: the worst of them. No gate at all passes nothing.
#[must_use]
pub fn overall(gates: &[JudgedGate]) -> GateVerdict {
    gates.iter().map(|gate| gate.verdict).min().unwrap_or(GateVerdict::Inconclusive)
}

fn compare(comparison: &RuleComparison<Number>, evidence: &GateEvidence) -> JudgedComparison {
    let judged = |verdict, why| JudgedComparison {
        text: comparison.text.clone(),
        verdict,
        margin: None,
        interval: Interval::UNKNOWN,
        settles_at: None,
        why,
    };
    let operands = comparison.operands();
    if evidence.baseline.is_none() && operands.iter().any(|number| number.baseline) {
        let own = operands.iter().filter(|number| !number.baseline);
        return match own.map(|number| look_up(number, evidence)).find_map(Result::err) {
            Some(why) => judged(GateVerdict::Inconclusive, why),
            None => judged(GateVerdict::Pass, "there is no model to compare with yet".into()),
        };
    }
    let found: Result<Vec<OperandValue>, String> =
        operands.iter().map(|number| look_up(number, evidence)).collect();
    let found = match found {
        Ok(found) => found,
        Err(why) => return judged(GateVerdict::Inconclusive, why),
    };
    let Some(range) = linear::difference(comparison, evidence, &operands, &found) else {
        return judged(GateVerdict::Inconclusive, "it is not a finite number".into());
    };
    let verdict = judged_by(comparison.relation, range);
    let support = found.iter().filter_map(|found| found.support).min();
    let settles_at = (verdict == GateVerdict::Inconclusive)
        .then(|| support.and_then(|rows| rows_needed(range, rows)))
        .flatten();
    let numbers: Vec<String> =
        operands.iter().zip(&found).map(|(number, found)| format!("{number} is {}", found.shown())).collect();
    JudgedComparison {
        text: comparison.text.clone(),
        verdict,
        margin: Some(range.value),
        interval: range.interval,
        settles_at,
        why: format!("{}; {}", numbers.join(", "), in_words(range, comparison.relation, settles_at)),
    }
}

/// A number of a comparison, as the evidence has it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OperandValue {
    range: Range,
    support: Option<u64>,
}

impl OperandValue {
    fn shown(&self) -> String {
        let Range { value, interval: Interval { low, high } } = self.range;
        if low == high {
            return digits(value);
        }
        format!("{} ({} … {})", digits(value), digits(low), digits(high))
    }
}

/// The number, or why there is none that decides anything.
fn look_up(number: &Number, evidence: &GateEvidence) -> Result<OperandValue, String> {
    let numbers = if number.baseline { evidence.baseline.as_ref() } else { Some(&evidence.numbers) };
    let numbers = numbers.ok_or("there is no model to compare with yet")?;
    if numbers.is_empty() && number.baseline {
        return Err("no baseline was named to compare with".into());
    }
    if let Some(why) = evidence.inconclusive.get(&number.name).filter(|_| !number.baseline) {
        return Err(format!("`{}` cannot be judged: {why}", number.name));
    }
    match number.over {
        Over::One => match numbers.get(&number.name) {
            Some(measured) => decided(measured, number, &number.name, evidence),
            None => Err(unmeasured(number, &number.name, numbers)),
        },
        Over::Least | Over::Greatest => extreme(number, numbers, evidence),
    }
}

/// The least or greatest of all slices, of all blind spots or of all probes: of both ends of the intervals too.
fn extreme(number: &Number, numbers: &Numbers, evidence: &GateEvidence) -> Result<OperandValue, String> {
    let over = [SLICE, BLIND_SPOT, PROBE].into_iter().find(|it| number.name.starts_with(it)).unwrap_or(SLICE);
    let metric = number.name.strip_prefix(over).unwrap_or(&number.name);
    let of_slice = |name: &str| {
        let slice = name.strip_prefix(over).and_then(|name| name.strip_suffix(metric));
        slice.and_then(|slice| slice.strip_suffix('.')).is_some_and(|slice| !slice.is_empty())
    };
    // What was not measured may be the most extreme of all.
    let mut unmeasured = evidence.inconclusive.iter().filter(|_| !number.baseline);
    if let Some((name, why)) = unmeasured.find(|(name, _)| of_slice(name)) {
        return Err(format!("`{name}` cannot be judged: {why}"));
    }
    let slices: Vec<(&String, &Measured)> = numbers.iter().filter(|(name, _)| of_slice(name)).collect();
    if slices.is_empty() {
        return Err(match over {
            BLIND_SPOT => "no blind spots were searched (`evaluate.blind_spots`)".into(),
            PROBE => format!("no probe measured `{metric}` (`evaluate.probe_rows`)"),
            _ => format!("no slice has `{metric}`"),
        });
    }
    let found: Vec<OperandValue> = slices
        .into_iter()
        .map(|(name, measured)| decided(measured, number, name, evidence))
        .collect::<Result<_, _>>()?;
    let pick = |of: fn(&Range) -> f64| {
        let values = found.iter().map(|found| of(&found.range));
        if number.over == Over::Least {
            values.fold(f64::INFINITY, f64::min)
        } else {
            values.fold(f64::NEG_INFINITY, f64::max)
        }
    };
    let interval = Interval { low: pick(|it| it.interval.low), high: pick(|it| it.interval.high) };
    let range = Range { value: pick(|it| it.value), interval };
    Ok(OperandValue { range, support: found.iter().filter_map(|found| found.support).min() })
}

fn decided(
    measured: &Measured,
    number: &Number,
    name: &str,
    evidence: &GateEvidence,
) -> Result<OperandValue, String> {
    let whose = if number.baseline { " of the baseline" } else { "" };
    let Some(value) = measured.value().filter(|value| value.is_finite()) else {
        return Err(format!("`{name}`{whose} is not a finite number"));
    };
    let Some(coverage) = measured.coverage() else {
        return Ok(OperandValue { range: Range::point(value), support: None });
    };
    if let Some(why) = evidence.unmatched.as_ref().filter(|_| !number.baseline) {
        return Err(format!("`{name}` cannot be judged: {why}"));
    }
    if coverage.is_partial() {
        return Err(format!(
            "`{name}`{whose} covers only {} of {} rows",
            coverage.rows_used, coverage.rows_expected
        ));
    }
    let range = match measured.interval() {
        _ if number.alone => Range::point(value),
        None => {
            let how = match LATENCIES.contains(&name) {
                true => "an interval needs more batches: evaluate more rows",
                false => "record the rows behind it",
            };
            return Err(format!(
                "`{name}`{whose} is {} without an interval, so it cannot be judged; {how}, or use `value({name})`",
                digits(value)
            ));
        }
        Some(_) if !coverage.is_known() => {
            return Err(format!(
                "`{name}`{whose} does not state how many rows it covers; record the rows behind it, or its `support`"
            ));
        }
        Some(interval) => Range { value, interval },
    };
    Ok(OperandValue { range, support: measured.support() })
}

/// The facts of a model and how fast it answers: whatever it predicts, they stay.
const FACTS: [&str; 8] = [
    "size_bytes", "weights_bytes", "training_seconds", "gpu_seconds", "cost_usd", "latency_seconds",
    "latency_p95_seconds", "rows_per_second",
];

/// The commands that test gates: against a model that knows nothing, the predictions of an evaluation shuffled; and
/// those over a fact of the model against one where it is twice or half what they allow.
#[must_use]
pub fn how_to_verify(rules: &[String], evaluation_id: &str) -> String {
    let is_of_fact = |rule: &&String| fact_of(rule).is_some();
    let (of_facts, of_predictions): (Vec<&String>, Vec<&String>) = rules.iter().partition(is_of_fact);
    let owned = |rules: Vec<&String>| rules.into_iter().cloned().collect::<Vec<_>>();
    let mut commands = Vec::new();
    if !of_predictions.is_empty() {
        commands.push(test_command(&owned(of_predictions), &format!("shuffled:{evaluation_id}")));
    }
    if !of_facts.is_empty() {
        let sets: BTreeSet<String> = of_facts
            .iter()
            .filter_map(|rule| Some(format!("--set {} ", worse(rule, fact_of(rule)?))))
            .collect();
        let sets: String = sets.into_iter().collect();
        commands.push(format!(
            "trackway gates fixture {evaluation_id} --name 'a bad model' {sets}--out bad.json"
        ));
        commands.push(test_command(&owned(of_facts), "bad.json"));
    }
    commands.join("; ")
}

/// The fact that a gate is over.
fn fact_of(rule: &str) -> Option<&'static str> {
    let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '.';
    let mut words = rule.split(|char: char| !is_word(char));
    words.find_map(|word| FACTS.into_iter().find(|fact| *fact == word))
}

/// A number that the gate must not accept, where it is `NAME OPERATOR NUMBER`.
fn worse(rule: &str, fact: &str) -> String {
    let limit = rule.split_whitespace().last().and_then(|word| word.parse::<f64>().ok());
    let value = match limit {
        Some(limit) if rule.contains('<') => (2.0 * limit).to_string(),
        Some(limit) if rule.contains('>') => (limit / 2.0).to_string(),
        _ => "VALUE".into(),
    };
    format!("{fact}={value}")
}

/// The commands that test gates against a number which shuffled predictions leave as it is.
#[must_use]
pub fn how_to_verify_by_hand(rules: &[String]) -> String {
    let test = test_command(rules, "bad.json");
    format!("trackway gates fixture last --name 'a bad model' --set NUMBER=VALUE --out bad.json; {test}")
}

fn test_command(rules: &[String], bad: &str) -> String {
    let quoted = |rule: &String| format!("--gate '{}' ", rule.replace('\'', "'\\''"));
    let rules: String = rules.iter().map(quoted).collect();
    format!("trackway gates test {rules}--bad {bad}")
}

fn unmeasured(number: &Number, name: &str, numbers: &Numbers) -> String {
    let whose = if number.baseline { "the baseline has no" } else { "there is no" };
    let alike = numbers
        .keys()
        .map(|known| (common_letters(known, name), known))
        .max()
        .filter(|(common, _)| common * 2 > name.len());
    let hint = alike.map(|(_, known)| format!("; did you mean `{known}`?")).unwrap_or_default();
    format!("{whose} metric `{name}`{hint}")
}

/// How many letters two names begin or end with together.
fn common_letters(left: &str, right: &str) -> usize {
    let same = |(left, right): &(u8, u8)| left == right;
    let front = left.bytes().zip(right.bytes()).take_while(same).count();
    let back = left.bytes().rev().zip(right.bytes().rev()).take_while(same).count();
    front.max(back)
}

fn judged_by(relation: Relation, range: Range) -> GateVerdict {
    let certain = |holds: bool, fails: bool| match (holds, fails) {
        (true, _) => GateVerdict::Pass,
        (_, true) => GateVerdict::Fail,
        _ => GateVerdict::Inconclusive,
    };
    let Interval { low, high } = range.interval;
    match relation {
        Relation::GreaterOrEqual => certain(low >= 0.0, high < 0.0),
        Relation::Greater => certain(low > 0.0, high <= 0.0),
        Relation::LessOrEqual => certain(high <= 0.0, low > 0.0),
        Relation::Less => certain(high < 0.0, low >= 0.0),
        Relation::Equal => certain(low == 0.0 && high == 0.0, low > 0.0 || high < 0.0),
        Relation::NotEqual => certain(low > 0.0 || high < 0.0, low == 0.0 && high == 0.0),
    }
}

/// An interval gets narrower with the square root of the rows: so many move its end from where it is to zero.
fn rows_needed(range: Range, rows: u64) -> Option<u64> {
    let end = if range.value > 0.0 { range.interval.low } else { range.interval.high };
    let ratio = (range.value - end) / range.value;
    let needed = (rows as f64 * ratio * ratio).ceil();
    (needed.is_finite() && needed < 1e15).then_some(needed as u64)
}

fn in_words(range: Range, relation: Relation, settles_at: Option<u64>) -> String {
    let Range { value, interval: Interval { low, high } } = range;
    let interval =
        if low == high { String::new() } else { format!(" ({} … {})", digits(low), digits(high)) };
    let settles =
        settles_at.map(|rows| format!("; about {rows} rows would be enough to decide")).unwrap_or_default();
    format!("the difference of both sides is {}{interval}, required {relation} 0{settles}", digits(value))
}

/// Five digits that count.
fn digits(value: f64) -> String {
    let rounded = format!("{value:.4e}").parse::<f64>().unwrap_or(value);
    rounded.to_string()
}
