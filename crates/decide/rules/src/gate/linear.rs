//! The interval of `left − right`.

use trackway_formats::gate::Number;
use trackway_formats::rule::{Expression, Operand as _, Operator, RuleComparison};
use trackway_statistics::Interval;

use super::{GateEvidence, OperandValue};

/// A number and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub value: f64,
    pub interval: Interval,
}

impl Range {
    pub(super) fn point(value: f64) -> Self {
        Self { value, interval: Interval::point(value) }
    }

    fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, interval: self.interval.plus(other.interval) }
    }

    fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, interval: self.interval.times(factor) }
    }

    fn product(self, other: Self) -> Self {
        Self { value: self.value * other.value, interval: self.interval.product(other.interval) }
    }

    /// `None` where it may be zero.
    fn reciprocal(self) -> Option<Self> {
        Some(Self { value: 1.0 / self.value, interval: self.interval.reciprocal()? })
    }

    fn is_finite(self) -> bool {
        self.value.is_finite() && self.interval.bounds().is_some()
    }
}

/// A sum of numbers with factors, one factor per operand, and a constant.
struct Sum {
    factors: Vec<f64>,
    constant: f64,
}

/// `left − right`; `None` where that is not finite.
pub(super) fn difference(
    comparison: &RuleComparison<Number>,
    evidence: &GateEvidence,
    operands: &[&Number],
    found: &[OperandValue],
) -> Option<Range> {
    let of = |side| sum(side, operands);
    let range = match (of(&comparison.left), of(&comparison.right)) {
        (Some(left), Some(right)) => {
            let factors: Vec<f64> =
                left.factors.iter().zip(&right.factors).map(|(left, right)| left - right).collect();
            let constant = left.constant - right.constant;
            paired(Sum { factors, constant }, evidence, operands, found)
        }
        _ => {
            let left = arithmetic(&comparison.left, operands, found)?;
            left.plus(arithmetic(&comparison.right, operands, found)?.times(-1.0))
        }
    };
    range.is_finite().then_some(range)
}

/// The sum, in which `x − baseline(x)` is taken from what was measured on the same rows.
fn paired(mut sum: Sum, evidence: &GateEvidence, operands: &[&Number], found: &[OperandValue]) -> Range {
    let mut total = Range::point(sum.constant);
    for index in 0..operands.len() {
        let (number, factor) = (operands[index], sum.factors[index]);
        if number.baseline || number.alone {
            continue;
        }
        let other = number.clone().of_other();
        let Some(other) = operands.iter().position(|operand| **operand == other) else { continue };
        let Some(difference) = measured_difference(number, evidence) else { continue };
        let opposite = factor * sum.factors[other] < 0.0;
        let shared = if opposite { factor.abs().min(sum.factors[other].abs()).copysign(factor) } else { 0.0 };
        total = total.plus(difference.times(shared));
        sum.factors[index] -= shared;
        sum.factors[other] += shared;
    }
    let rest = sum.factors.iter().zip(found).filter(|(factor, _)| **factor != 0.0);
    rest.fold(total, |total, (factor, found)| total.plus(found.range.times(*factor)))
}

fn measured_difference(number: &Number, evidence: &GateEvidence) -> Option<Range> {
    let measured = evidence.differences.get(&number.name)?;
    // Pairs of only some rows are no evidence about the others: the two intervals, which cover theirs, decide then.
    measured.coverage().filter(|coverage| coverage.is_complete())?;
    Some(Range { value: measured.value()?, interval: measured.interval()? })
}

/// `None` where numbers are multiplied with one another, or divided by.
fn sum(expression: &Expression<Number>, operands: &[&Number]) -> Option<Sum> {
    let constant = |constant| Sum { factors: vec![0.0; operands.len()], constant };
    Some(match expression {
        Expression::Number(number) => constant(*number),
        Expression::Value(number) => {
            let mut sum = constant(0.0);
            sum.factors[operands.iter().position(|operand| *operand == number)?] = 1.0;
            sum
        }
        Expression::Negative(inner) => scaled(sum(inner, operands)?, -1.0),
        Expression::Binary(left, operator, right) => {
            let (left, right) = (sum(left, operands)?, sum(right, operands)?);
            match operator {
                Operator::Add => added(left, right),
                Operator::Subtract => added(left, scaled(right, -1.0)),
                Operator::Multiply if left.is_constant() => scaled(right, left.constant),
                Operator::Multiply if right.is_constant() => scaled(left, right.constant),
                Operator::Divide if right.is_constant() => scaled(left, 1.0 / right.constant),
                _ => return None,
            }
        }
    })
}

impl Sum {
    fn is_constant(&self) -> bool {
        self.factors.iter().all(|factor| *factor == 0.0)
    }
}

fn scaled(sum: Sum, factor: f64) -> Sum {
    Sum { factors: sum.factors.iter().map(|it| it * factor).collect(), constant: sum.constant * factor }
}

fn added(left: Sum, right: Sum) -> Sum {
    Sum {
        factors: left.factors.iter().zip(&right.factors).map(|(left, right)| left + right).collect(),
        constant: left.constant + right.constant,
    }
}

fn arithmetic(
    expression: &Expression<Number>,
    operands: &[&Number],
    found: &[OperandValue],
) -> Option<Range> {
    let of = |inner| arithmetic(inner, operands, found);
    Some(match expression {
        Expression::Number(number) => Range::point(*number),
        Expression::Value(number) => found[operands.iter().position(|operand| *operand == number)?].range,
        Expression::Negative(inner) => of(inner)?.times(-1.0),
        Expression::Binary(left, operator, right) => {
            let (left, right) = (of(left)?, of(right)?);
            match operator {
                Operator::Add => left.plus(right),
                Operator::Subtract => left.plus(right.times(-1.0)),
                Operator::Multiply => left.product(right),
                Operator::Divide => left.product(right.reciprocal()?),
            }
        }
    })
}
