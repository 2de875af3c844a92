//! What the parser of queries says, for a person: without its types, with the place, of a query also with the line and a caret.

use std::borrow::Borrow;

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

/// Most letters of a line that are shown.
const SHOWN: usize = 120;

/// Line and column, from 1; none: the parser does not say where it is.
type Place = Option<(usize, usize)>;

/// A mistake in a query with its line and a caret below it. None: the error is another one.
pub(super) fn with_caret(error: &DataFusionError, sql: &str) -> Option<String> {
    let DataFusionError::SQL(parser, _) = error.find_root() else { return None };
    let (what, place) = read(parser, sql);
    let Some((line, column)) = place else { return Some(what) };
    let text = sql.lines().nth(line - 1).unwrap_or_default();
    // Of a long line what is around the place.
    let first = column.saturating_sub(SHOWN / 2);
    let shown = || text.chars().skip(first).take(SHOWN);
    let indent: String = shown()
        .take(column - 1 - first.min(column - 1))
        .map(|letter| if letter == '\t' { '\t' } else { ' ' })
        .collect();
    let text: String = shown().collect();
    Some(format!("{what}, at line {line}, column {column}\n  {text}\n  {indent}^"))
}

/// A mistake in a condition, in one line.
pub(crate) fn of_condition(parser: &ParserError, sql: &str) -> String {
    let (what, place) = read(parser, sql);
    let what = what.lines().map(str::trim).collect::<Vec<&str>>().join(" ");
    what + &place.map(|(line, column)| place_in_condition(line, column)).unwrap_or_default()
}

/// Where it is in a condition, which has one line as a rule.
pub(crate) fn place_in_condition(line: usize, column: usize) -> String {
    match line {
        1 => format!(", at column {column}"),
        _ => format!(", at line {line}, column {column}"),
    }
}

/// Any error about a condition, in one line.
pub(super) fn in_one_line(error: &DataFusionError, sql: &str) -> String {
    match error.find_root() {
        DataFusionError::SQL(parser, _) => of_condition(parser, sql),
        root => plain(root),
    }
}

/// An error of the engine in one line, without the kinds that it gives to its errors.
pub(super) fn plain(error: impl Borrow<DataFusionError>) -> String {
    let text = error.borrow().strip_backtrace();
    let kinds = ["Error during planning: ", "This feature is not implemented: "];
    let text = kinds.iter().find_map(|kind| text.strip_prefix(kind)).unwrap_or(&text);
    match text.contains("single SQL statement") {
        true => "it has several statements; give one".into(),
        false => text.lines().map(str::trim).collect::<Vec<&str>>().join(" "),
    }
}

/// `Expected: an expression, found: FROM at Line: 1, Column: 8`. The end of a text is said without its place.
fn read(parser: &ParserError, sql: &str) -> (String, Place) {
    let said = match parser {
        ParserError::TokenizerError(said) | ParserError::ParserError(said) => said.as_str(),
        ParserError::RecursionLimitExceeded => "it is nested too deep",
    };
    let (what, place) =
        said.rsplit_once(" at Line: ").map_or((said, None), |(what, at)| (what, place_of(at)));
    match what.strip_prefix("Expected: ").and_then(|it| it.split_once(", found: ")) {
        Some((expected, "EOF")) if place.is_none() => {
            (format!("expected {expected}, found the end"), Some(end_of(sql)))
        }
        Some((expected, found)) => (format!("expected {expected}, found `{found}`"), place),
        None => (what.to_owned(), place),
    }
}

/// `1, Column: 8`
fn place_of(text: &str) -> Place {
    let (line, column) = text.split_once(", Column: ")?;
    Some((line.parse().ok()?, column.parse().ok()?)).filter(|(line, column)| *line > 0 && *column > 0)
}

fn end_of(sql: &str) -> (usize, usize) {
    let sql = sql.trim_end();
    let last = sql.lines().next_back().unwrap_or_default();
    (sql.lines().count().max(1), last.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(parser: ParserError) -> DataFusionError {
        DataFusionError::SQL(Box::new(parser), None)
    }

    /// Proves that a mistake is said with its line and a caret, at the end where something is missing there, and that no name
    /// of a type of the parser is shown.
    #[test]
    fn a_mistake_has_its_place() {
        let parser = |said: &str| error(ParserError::ParserError(said.into()));
        for (sql, said, expected) in [
            (
                "select FROM runs",
                "Expected: an expression, found: FROM at Line: 1, Column: 8",
                "expected an expression, found `FROM`, at line 1, column 8\n  select FROM runs\n         ^",
            ),
            (
                "select *\n\tfrm runs",
                "Expected: end of statement, found: frm at Line: 2, Column: 2",
                "expected end of statement, found `frm`, at line 2, column 2\n  \tfrm runs\n  \t^",
            ),
            (
                "select 1 +\n",
                "Expected: an expression, found: EOF",
                "expected an expression, found the end, at line 1, column 11\n  select 1 +\n            ^",
            ),
            ("select 1", "Cannot do that", "Cannot do that"),
        ] {
            assert_eq!(with_caret(&parser(said), sql).unwrap(), expected);
        }
        let torn = ParserError::TokenizerError("Unterminated string literal at Line: 1, Column: 8".into());
        assert_eq!(in_one_line(&error(torn), "name = 'x"), "Unterminated string literal, at column 8");
        let planned = DataFusionError::Plan("Invalid function 'f'.\nDid you mean 'g'?".into());
        assert_eq!(with_caret(&planned, "select f()"), None);
        assert_eq!(in_one_line(&planned, "f()"), "Invalid function 'f'. Did you mean 'g'?");
        let several = DataFusionError::NotImplemented(
            "The context currently only supports a single SQL statement".into(),
        );
        assert_eq!(plain(&several), "it has several statements; give one");
    }
}
