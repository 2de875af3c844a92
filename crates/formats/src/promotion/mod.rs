//! The rule that promotes a run from one stage of its ladder to the next, such as `val_loss < 0.95 * previous`.
//!
//! Comparisons (`<` `<=` `>` `>=` `==` `!=`) of sums, differences, products and quotients, put together with `and` and
//! `or`. A name is the last value of that metric in the stage; `last(name)` says the same; `best(name)` is its least
//! value and `best(max name)` its greatest. `previous` is what the metric of the same comparison was in the stage before;
//! `previous(…)` names it. A name that is no identifier stands in backticks: `` `val/loss` ``.
//!
//! Text in, rule or one mistake with its place out. What a rule says of numbers is decided elsewhere.

mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

/// A longer text is no rule.
pub const MAX_RULE_BYTES: usize = 1_000;

/// A rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// When it is met.
    pub condition: Condition,
}

/// What holds or does not.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// All of them.
    All(Vec<Self>),
    /// One of them at least.
    Any(Vec<Self>),
    /// Two numbers compared.
    Compare(Comparison),
}

/// Two numbers compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The left side.
    pub left: Expression,
    /// How they are compared.
    pub relation: Relation,
    /// The right side.
    pub right: Expression,
    /// As it stands in the rule.
    pub text: String,
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

/// A number that is worked out.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A number as written.
    Number(f64),
    /// A value of a metric.
    Value(Operand),
    /// With the other sign.
    Negative(Box<Self>),
    /// Two numbers put together.
    Binary(Box<Self>, Operator, Box<Self>),
}

/// How two numbers are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// A value of a metric.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operand {
    /// The metric.
    pub metric: String,
    /// Which of its values.
    pub which: Which,
    /// Of the stage before, and not of the one that is judged.
    pub previous: bool,
}

/// Which value of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Which {
    /// The last one.
    Last,
    /// The least one.
    Least,
    /// The greatest one.
    Greatest,
}

/// A mistake in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// What is wrong.
    pub message: String,
    /// The bytes at fault in the rule's text.
    pub span: Range<usize>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if text.len() > MAX_RULE_BYTES {
            let message = format!("has {} bytes; a rule has at most {MAX_RULE_BYTES}", text.len());
            return Err(RuleError { message, span: 0..text.len(), hint: None });
        }
        parser::parse(text).map(|condition| Self { condition })
    }

    /// Its comparisons, from left to right.
    #[must_use]
    pub fn comparisons(&self) -> Vec<&Comparison> {
        let mut found = Vec::new();
        self.condition.visit(&mut |comparison| found.push(comparison));
        found
    }
}

impl Condition {
    fn visit<'c>(&'c self, take: &mut impl FnMut(&'c Comparison)) {
        match self {
            Self::Compare(comparison) => take(comparison),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.visit(take)),
        }
    }
}

impl Comparison {
    /// The values it is about, each once, from left to right.
    #[must_use]
    pub fn operands(&self) -> Vec<&Operand> {
        let mut found = Vec::new();
        for side in [&self.left, &self.right] {
            side.visit(&mut |operand| {
                if !found.contains(&operand) {
                    found.push(operand);
                }
            });
        }
        found
    }
}

impl Expression {
    fn visit<'e>(&'e self, take: &mut impl FnMut(&'e Operand)) {
        match self {
            Self::Number(_) => {}
            Self::Value(operand) => take(operand),
            Self::Negative(inner) => inner.visit(take),
            Self::Binary(left, _, right) => {
                left.visit(take);
                right.visit(take);
            }
        }
    }
}

impl Relation {
    /// Whether it holds; of a NaN only `!=` does.
    #[must_use]
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
            Self::Equal => left == right,
            Self::NotEqual => left != right,
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        })
    }
}

/// As a rule names it, such as `previous(best(max accuracy))`.
impl fmt::Display for Operand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = lexer::is_plain_name(&self.metric);
        let metric = if plain { self.metric.clone() } else { format!("`{}`", self.metric) };
        let value = match self.which {
            Which::Last => metric,
            Which::Least => format!("best({metric})"),
            Which::Greatest => format!("best(max {metric})"),
        };
        if self.previous { write!(formatter, "previous({value})") } else { formatter.write_str(&value) }
    }
}
