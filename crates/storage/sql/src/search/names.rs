//! The names in a condition: found, and replaced by their columns.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Value as Literal, visit_expressions_mut};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use trackway_ledger::LedgerError;

use crate::named::ConditionName;
use crate::query::mistake::{of_condition, place_in_condition};

/// A condition such as `val_loss < 0.3 and tag.team = 'x'`, in parts.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    expression: Expr,
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// [`LedgerError::Query`] with what is wrong and an example.
    pub fn parse(text: &str) -> Result<Self, LedgerError> {
        let wrong = |why: String| {
            LedgerError::Query(format!(
                "invalid condition `{text}`: {why}; write it like `val_loss < 0.3 and param.optimizer = 'adam'`"
            ))
        };
        let dialect = GenericDialect {};
        let not_read = |error: ParserError| wrong(of_condition(&error, text));
        let mut parser = Parser::new(&dialect).try_with_sql(text).map_err(not_read)?;
        let expression = parser.parse_expr().map_err(not_read)?;
        let rest = parser.peek_token();
        match rest.token {
            datafusion::sql::sqlparser::tokenizer::Token::EOF => Ok(Self { expression }),
            token => {
                let start = rest.span.start;
                let place = place_in_condition(start.line as usize, start.column as usize);
                Err(wrong(format!("unexpected `{token}`{place}")))
            }
        }
    }

    /// Every name, in order, each once.
    pub fn names(&mut self) -> Vec<ConditionName> {
        let mut names: Vec<ConditionName> = Vec::new();
        self.each_name(|named| {
            if !names.contains(&named) {
                names.push(named);
            }
            None
        });
        names
    }

    /// The condition with each name as one quoted name, or as a string literal where `is_text` returns true.
    pub fn to_sql(&self, is_text: impl Fn(&ConditionName) -> bool) -> String {
        let mut condition = self.clone();
        condition.each_name(|named| {
            Some(match is_text(&named) {
                true => Expr::value(Literal::SingleQuotedString(named.name)),
                false => Expr::Identifier(Ident::with_quote('"', named.name)),
            })
        });
        condition.expression.to_string()
    }

    fn each_name(&mut self, mut replaced: impl FnMut(ConditionName) -> Option<Expr>) {
        let _ = visit_expressions_mut(&mut self.expression, |expression| {
            let parts: &[Ident] = match &*expression {
                Expr::Identifier(ident) => std::slice::from_ref(ident),
                Expr::CompoundIdentifier(parts) => parts,
                _ => return ControlFlow::<()>::Continue(()),
            };
            let words: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            let in_double_quotes = parts.len() == 1 && parts[0].quote_style == Some('"');
            if let Some(new) = replaced(ConditionName { name: words.join("."), in_double_quotes }) {
                *expression = new;
            }
            ControlFlow::Continue(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that names are found in every corner of a condition, and that double quotes may mean a text.
    #[test]
    fn names_are_found_and_replaced() {
        let mut condition = Condition::parse(
            "val_loss < 0.3 and (tag.team = \"x\" or not `train/loss` between 1 and param.lr) and name like 'a%'",
        )
        .unwrap();
        let names: Vec<String> = condition.names().into_iter().map(|named| named.name).collect();
        assert_eq!(names, ["val_loss", "tag.team", "x", "train/loss", "param.lr", "name"]);
        assert_eq!(
            condition.to_sql(|named| named.in_double_quotes && named.name == "x"),
            "\"val_loss\" < 0.3 AND (\"tag.team\" = 'x' OR NOT \"train/loss\" BETWEEN 1 AND \"param.lr\") AND \"name\" LIKE 'a%'"
        );
    }

    /// Proves that an invalid condition is refused with an example.
    #[test]
    fn what_is_no_condition() {
        for text in ["", "val_loss <", "val_loss < 1; drop table runs", "a b"] {
            let reported = Condition::parse(text).unwrap_err().to_string();
            assert!(reported.contains("write it like"), "{text}: {reported}");
        }
    }
}
