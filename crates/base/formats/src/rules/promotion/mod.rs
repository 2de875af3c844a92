//! The rule that promotes a run from one rung of its ladder to the next, such as `val_loss < 0.95 * previous`.
//!
//! A rule ([`crate::rules::rule`]) in which a name is the last value of that metric in the rung; `last(name)` means the same;
//! `best(name)` is its least value and `best(max name)` its greatest. `previous` is what the metric of the same
//! comparison was in the rung before; `previous(…)` names it.

#[cfg(test)]
mod tests;

use std::fmt;

use super::rule::{self, Parser, RuleError, quoted_name};

/// The rule of a ladder.
pub type Rule = rule::Rule<Operand>;

const KEYWORDS: &[&str] = &["previous", "best", "last", "max", "min"];

/// A value of a metric.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operand {
    pub metric: String,
    /// Which of its values.
    pub which: Which,
    /// Of the rung before, and not of the present one.
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

impl rule::Operand for Operand {
    const OTHER: &'static str = "previous";
    const EXAMPLE: &'static str = "val_loss";

    /// `name`, `last(name)`, `best(name)`, `best(max name)`, `best(min name)`.
    fn parse(words: &mut Parser) -> Result<Self, RuleError> {
        let value = |metric, which| Self { metric, which, previous: false };
        match words.call().as_deref() {
            None => Ok(value(words.metric(KEYWORDS)?, Which::Last)),
            Some("last") => words.argument(|words| Ok(value(words.metric(KEYWORDS)?, Which::Last))),
            Some("best") => words.argument(|words| {
                let which = if words.take_word("max") { Which::Greatest } else { Which::Least };
                if which == Which::Least {
                    words.take_word("min");
                }
                Ok(value(words.metric(KEYWORDS)?, which))
            }),
            Some(word) => Err(words
                .wrong(&format!("calls `{word}(…)`, which does not exist"))
                .hint("there are `last(metric)`, `best(metric)`, `best(max metric)` and `previous(metric)`")),
        }
    }

    fn of_other(self) -> Self {
        Self { previous: true, ..self }
    }

    fn is_of_other(&self) -> bool {
        self.previous
    }
}

/// As a rule names it, such as `previous(best(max accuracy))`.
impl fmt::Display for Operand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metric = quoted_name(&self.metric, KEYWORDS);
        let value = match self.which {
            Which::Last => metric,
            Which::Least => format!("best({metric})"),
            Which::Greatest => format!("best(max {metric})"),
        };
        if self.previous { write!(formatter, "previous({value})") } else { formatter.write_str(&value) }
    }
}
