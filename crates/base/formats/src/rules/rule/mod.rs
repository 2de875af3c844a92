//! The common grammar of rules over numbers: comparisons (`<` `<=` `>` `>=` `==` `!=`) of sums, differences, products
//! and quotients, combined with `and` and `or`; a name that is not an identifier is in backticks. The [`Operand`] of
//! each purpose is what represents a number: [`crate::rules::promotion`], [`crate::rules::gate`].
//!
//! Text in, rule or one mistake with its place out. Rules are evaluated elsewhere.

mod lexer;
mod parser;

use std::fmt;
use std::hash::Hash;
use std::ops::Range;

pub(crate) use lexer::quoted_name;
pub use parser::Parser;

/// A longer text is not a rule.
pub const MAX_RULE_BYTES: usize = 1_000;

/// What represents a number in the rules of one purpose.
pub trait Operand: Clone + PartialEq + Eq + Hash + Ord + fmt::Display + Sized {
    /// The keyword that alone means the one other value of a comparison, of something else: `previous`, `baseline`.
    const OTHER: &'static str;
    /// A name for hints.
    const EXAMPLE: &'static str;

    /// Reads one, whose first token is a name.
    ///
    /// # Errors
    /// What is wrong, and where.
    fn parse(words: &mut Parser) -> Result<Self, RuleError>;

    /// The same value, of [what `OTHER` means](Self::OTHER).
    #[must_use]
    fn of_other(self) -> Self;

    /// Whether it is of that.
    fn is_of_other(&self) -> bool;
}

/// A rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule<O> {
    /// When it is met.
    pub condition: Condition<O>,
}

/// What holds or does not.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition<O> {
    All(Vec<Self>),
    /// One of them at least.
    Any(Vec<Self>),
    /// Two numbers compared.
    Compare(RuleComparison<O>),
}

/// Two numbers compared.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleComparison<O> {
    /// The left side.
    pub left: Expression<O>,
    /// How they are compared.
    pub relation: Relation,
    /// The right side.
    pub right: Expression<O>,
    /// As it is in the rule.
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
pub enum Expression<O> {
    /// A number as written.
    Number(f64),
    /// A value of a metric.
    Value(O),
    /// With the other sign.
    Negative(Box<Self>),
    /// Two combined numbers.
    Binary(Box<Self>, Operator, Box<Self>),
}

/// How two numbers are combined.
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

impl<O: Operand> Rule<O> {
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
    pub fn comparisons(&self) -> Vec<&RuleComparison<O>> {
        let mut found = Vec::new();
        self.condition.visit(&mut |comparison| found.push(comparison));
        found
    }
}

impl<O> Condition<O> {
    fn visit<'c>(&'c self, take: &mut impl FnMut(&'c RuleComparison<O>)) {
        match self {
            Self::Compare(comparison) => take(comparison),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.visit(take)),
        }
    }

    /// Its result, from the results of its comparisons in their order: the least of those that must all hold, the
    /// greatest of those of which one must.
    pub fn verdict<V: Ord>(&self, judged: &mut impl Iterator<Item = V>) -> Option<V> {
        match self {
            Self::Compare(_) => judged.next(),
            Self::All(parts) => parts.iter().filter_map(|part| part.verdict(judged)).min(),
            Self::Any(parts) => parts.iter().filter_map(|part| part.verdict(judged)).max(),
        }
    }
}

impl<O: Operand> RuleComparison<O> {
    /// The values it is about, each once, from left to right.
    #[must_use]
    pub fn operands(&self) -> Vec<&O> {
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

impl<O> Expression<O> {
    fn visit<'e>(&'e self, take: &mut impl FnMut(&'e O)) {
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
