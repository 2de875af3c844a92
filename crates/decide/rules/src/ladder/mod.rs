//! The ladder of rungs: which one follows, and whether a run may go there.
//!
//! The rule of the run file decides about a rung by its metrics. Everything that a rule names must have been recorded:
//! a metric that was not logged meets nothing, because the next rung would cost ten times as much and show as little.
//! On the first rung there is no rung before: what is compared with `previous` is taken as met there, if the rung
//! recorded the metric.

mod proof;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trackway_core::Rung;
use trackway_formats::promotion::{Operand, Rule, Which};
use trackway_formats::rule::{Expression, Operator, RuleComparison};

pub use proof::{RungCut, RungProof, prove};

/// What the metrics of a rung were, by name.
pub type RungMetrics = BTreeMap<String, MetricValues>;

/// The values of a metric that a rule may use. `None`: it was not a number.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct MetricValues {
    /// The last one.
    pub last: Option<f64>,
    /// The least finite one.
    pub least: Option<f64>,
    /// The greatest finite one.
    pub greatest: Option<f64>,
}

/// A rung that ended, and the one before it.
#[derive(Debug, Clone, PartialEq)]
pub struct RungEnd {
    pub rung: Rung,
    /// What it recorded.
    pub metrics: RungMetrics,
    /// The rung before and what that recorded; `None` for the first.
    pub previous: Option<(Rung, RungMetrics)>,
}

/// The decision of a rule about a rung.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Whether the run may go to the next rung.
    pub promoted: bool,
    /// What is known of the rows it trained on.
    pub proof: RungProof,
    /// The rule; `None`: coming to the end is enough.
    pub rule: Option<String>,
    pub comparisons: Vec<ComparisonOutcome>,
    /// The values it used, as the rule names them; `None`: not recorded, or not a number.
    pub values: BTreeMap<String, Option<f64>>,
    /// An explanation with the numbers.
    pub why: String,
}

/// One comparison of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonOutcome {
    /// As it is in the rule.
    pub text: String,
    /// Whether it holds.
    pub met: bool,
    /// An explanation.
    pub why: String,
}

/// The rung after this one.
#[must_use]
pub fn next_rung(ladder: &[Rung], rung: Rung) -> Option<Rung> {
    ladder.iter().copied().find(|next| *next > rung)
}

/// The rung before this one.
#[must_use]
pub fn previous_rung(ladder: &[Rung], rung: Rung) -> Option<Rung> {
    ladder.iter().rev().copied().find(|before| *before < rung)
}

/// Decides about a rung by a rule, and by what is known of its rows.
#[must_use]
pub fn judge(text: &str, rule: &Rule, end: &RungEnd, proof: RungProof) -> Judgement {
    let compared: Vec<ComparisonOutcome> = rule.comparisons().iter().map(|it| compare(it, end)).collect();
    let promoted = rule.condition.verdict(&mut compared.iter().map(|it| it.met)).unwrap_or(false);
    let values = rule
        .comparisons()
        .into_iter()
        .flat_map(|it| it.operands())
        .map(|operand| (operand.to_string(), value_of(operand, end).ok().flatten()));
    let reasons: Vec<&str> = compared.iter().map(|compared| compared.why.as_str()).collect();
    let said = if promoted { "is met" } else { "is not met" };
    let judged = Judgement {
        promoted,
        proof,
        rule: Some(text.to_owned()),
        values: values.collect(),
        why: format!("at {} of the data `{text}` {said}: {}", end.rung, reasons.join("; ")),
        comparisons: compared,
    };
    judged.if_proved()
}

/// The decision if the run file has no rule.
#[must_use]
pub fn judge_without_rule(rung: Rung, proof: RungProof) -> Judgement {
    let judged = Judgement {
        promoted: true,
        proof,
        rule: None,
        comparisons: Vec::new(),
        values: BTreeMap::new(),
        why: format!("{rung} of the data is finished, but the run file has no promotion rule"),
    };
    judged.if_proved()
}

impl Judgement {
    /// A rung whose rows are not known is not promoted, however good its metrics are. Rows that the script held out are named.
    fn if_proved(self) -> Self {
        match &self.proof {
            RungProof::NotProved { why } => {
                let why = format!("not proved: {why}; {}", self.why);
                Self { promoted: false, why, ..self }
            }
            RungProof::Proved { rows_total, rows_of_data: Some(counted), .. } => {
                let why = format!("{}; of {rows_total} of the {counted} rows of the training data", self.why);
                Self { why, ..self }
            }
            RungProof::Proved { .. } => self,
        }
    }
}

fn compare(comparison: &RuleComparison<Operand>, end: &RungEnd) -> ComparisonOutcome {
    let result = |met, why: String| ComparisonOutcome { text: comparison.text.clone(), met, why };
    let operands = comparison.operands();
    let missing = operands.iter().find_map(|operand| value_of(operand, end).err());
    if let Some(why) = missing {
        return result(false, why);
    }
    if end.previous.is_none() && operands.iter().any(|operand| operand.previous) {
        return result(true, format!("{} is the first rung, with nothing before it to compare", end.rung));
    }
    let (left, right) = (worked_out(&comparison.left, end), worked_out(&comparison.right, end));
    let (Some(left), Some(right)) = (left, right) else {
        let not_a_number = operands.iter().find(|operand| value_of(operand, end) == Ok(None));
        let named = not_a_number.map_or("a side of it".into(), |operand| format!("`{operand}`"));
        return result(false, format!("{named} is not a finite number"));
    };
    let met = comparison.relation.holds(left, right);
    let verdict = if met { "holds" } else { "does not hold" };
    let values: Vec<String> = operands
        .iter()
        .map(|operand| format!("{operand} is {}", shown(value_of(operand, end).ok().flatten())))
        .collect();
    let sides = format!("{} {} {}", shown(Some(left)), comparison.relation, shown(Some(right)));
    result(met, format!("{}, and {sides} {verdict}", values.join(", ")))
}

/// The value; `None` if it is not a number, or on the first rung if there is nothing before. An error names what was
/// not recorded.
fn value_of(operand: &Operand, end: &RungEnd) -> Result<Option<f64>, String> {
    let (rung, metrics) = match (&end.previous, operand.previous) {
        (None, true) => return Ok(None),
        (Some((rung, metrics)), true) => (*rung, metrics),
        (_, false) => (end.rung, &end.metrics),
    };
    let Some(values) = metrics.get(&operand.metric) else {
        return Err(format!("`{}` was not logged at {rung}", operand.metric));
    };
    let value = match operand.which {
        Which::Last => values.last,
        Which::Least => values.least,
        Which::Greatest => values.greatest,
    };
    Ok(value.filter(|value| value.is_finite()))
}

/// `None` if a value is not a number or the result is not finite.
fn worked_out(expression: &Expression<Operand>, end: &RungEnd) -> Option<f64> {
    let number = match expression {
        Expression::Number(number) => *number,
        Expression::Value(operand) => value_of(operand, end).ok()??,
        Expression::Negative(inner) => -worked_out(inner, end)?,
        Expression::Binary(left, operator, right) => {
            let (left, right) = (worked_out(left, end)?, worked_out(right, end)?);
            match operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left * right,
                Operator::Divide => left / right,
            }
        }
    };
    number.is_finite().then_some(number)
}

/// Six digits that count.
fn shown(value: Option<f64>) -> String {
    let rounded = value.and_then(|value| format!("{value:.5e}").parse::<f64>().ok());
    rounded.map_or_else(|| "not a number".into(), |value| value.to_string())
}

#[cfg(test)]
mod tests;
