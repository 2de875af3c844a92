//! Which filters of a query a scan can use. A scan may give more rows than asked for, never fewer: DataFusion
//! filters once more.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use trackway_core::Timestamp;

use crate::value::{Column, ColumnKind, Value};

/// Most words of an `IN (…)` that are handed to the database.
const IN_LIST_MAX: usize = 100;

/// A filter in the words of both databases.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filter {
    /// The column.
    pub(super) column: &'static str,
    /// What is asked of it.
    pub(super) test: Test,
}

/// What a filter asks of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// `column op value`, with `=`, `<`, `<=`, `>` or `>=`.
    Compare(Comparison, Value),
    /// One of these texts.
    In(Vec<String>),
    /// Whether it is null.
    IsNull(bool),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn from_operator(operator: Operator) -> Option<Self> {
        Some(match operator {
            Operator::Eq => Self::Equal,
            Operator::Lt => Self::Less,
            Operator::LtEq => Self::LessOrEqual,
            Operator::Gt => Self::Greater,
            Operator::GtEq => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// The same comparison with its sides exchanged.
    fn swapped(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }

    pub(super) const fn sql(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl Filter {
    /// The filter that an expression stands for, when a scan can use it.
    pub(super) fn from_expression(expression: &Expr, columns: &[Column]) -> Option<Self> {
        match expression {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let comparison = Comparison::from_operator(*op)?;
                Self::compare(left, comparison, right, columns)
                    .or_else(|| Self::compare(right, comparison.swapped(), left, columns))
            }
            Expr::IsNull(inner) => Self::is_null(inner, true, columns),
            Expr::IsNotNull(inner) => Self::is_null(inner, false, columns),
            Expr::InList(list) => Self::in_list(list, columns),
            Expr::Column(_) => Self::boolean(expression, true, columns),
            Expr::Not(inner) => Self::boolean(inner, false, columns),
            _ => None,
        }
    }

    fn compare(column: &Expr, comparison: Comparison, literal: &Expr, columns: &[Column]) -> Option<Self> {
        let column = column_of(column, columns)?;
        let Expr::Literal(scalar, _) = literal else { return None };
        let (comparison, value) = match column.kind {
            // The order of texts depends on a database's collation; equality does not.
            ColumnKind::Text | ColumnKind::Word if comparison == Comparison::Equal => {
                (comparison, Value::Text(text_of(scalar)?))
            }
            ColumnKind::Integer => (comparison, Value::Integer(integer_of(scalar)?)),
            ColumnKind::Real => (comparison, Value::Real(real_of(scalar)?)),
            ColumnKind::Timestamp => widened(comparison, nanos_of(scalar)?)?,
            _ => return None,
        };
        Some(Self { column: column.name, test: Test::Compare(comparison, value) })
    }

    fn is_null(inner: &Expr, null: bool, columns: &[Column]) -> Option<Self> {
        let column = column_of(inner, columns)?;
        Some(Self { column: column.name, test: Test::IsNull(null) })
    }

    fn boolean(inner: &Expr, truth: bool, columns: &[Column]) -> Option<Self> {
        let column = column_of(inner, columns).filter(|column| column.kind == ColumnKind::Boolean)?;
        let test = Test::Compare(Comparison::Equal, Value::Boolean(truth));
        Some(Self { column: column.name, test })
    }

    fn in_list(list: &InList, columns: &[Column]) -> Option<Self> {
        let column = column_of(&list.expr, columns)
            .filter(|column| matches!(column.kind, ColumnKind::Text | ColumnKind::Word))?;
        if list.negated || list.list.len() > IN_LIST_MAX {
            return None;
        }
        let texts: Option<Vec<String>> = list
            .list
            .iter()
            .map(|item| match item {
                Expr::Literal(scalar, _) => text_of(scalar),
                _ => None,
            })
            .collect();
        Some(Self { column: column.name, test: Test::In(texts?) })
    }
}

/// The column an expression is, behind the casts with which DataFusion makes both sides alike.
fn column_of<'c>(expression: &Expr, columns: &'c [Column]) -> Option<&'c Column> {
    match expression {
        Expr::Column(named) => columns.iter().find(|column| column.name == named.name),
        Expr::Cast(cast) if matches!(cast.expr.as_ref(), Expr::Column(_)) => {
            // Only casts that keep the order: of a timestamp to another unit.
            column_of(&cast.expr, columns).filter(|column| column.kind == ColumnKind::Timestamp)
        }
        _ => None,
    }
}

fn text_of(scalar: &ScalarValue) -> Option<String> {
    match scalar {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => text.clone(),
        _ => None,
    }
}

fn integer_of(scalar: &ScalarValue) -> Option<i64> {
    match scalar {
        ScalarValue::Int64(number) => *number,
        ScalarValue::Int32(number) => number.map(i64::from),
        _ => None,
    }
}

fn real_of(scalar: &ScalarValue) -> Option<f64> {
    match scalar {
        ScalarValue::Float64(number) => number.filter(|number| number.is_finite()),
        _ => None,
    }
}

/// Nanoseconds since 1970, wide enough for any unit.
fn nanos_of(scalar: &ScalarValue) -> Option<i128> {
    match scalar {
        ScalarValue::TimestampNanosecond(number, _) => number.map(i128::from),
        ScalarValue::TimestampMicrosecond(number, _) => number.map(|number| i128::from(number) * 1_000),
        ScalarValue::TimestampMillisecond(number, _) => number.map(|number| i128::from(number) * 1_000_000),
        ScalarValue::TimestampSecond(number, _) => number.map(|number| i128::from(number) * 1_000_000_000),
        _ => None,
    }
}

/// A comparison with a moment between two microseconds, widened to whole ones.
fn widened(comparison: Comparison, nanos: i128) -> Option<(Comparison, Value)> {
    let below = nanos.div_euclid(1000);
    let above = below + i128::from(nanos.rem_euclid(1000) != 0);
    let (comparison, micros) = match comparison {
        Comparison::Equal if below == above => (Comparison::Equal, below),
        Comparison::Equal => return None,
        Comparison::Less | Comparison::LessOrEqual => (Comparison::LessOrEqual, above),
        Comparison::Greater | Comparison::GreaterOrEqual => (Comparison::GreaterOrEqual, below),
    };
    Some((comparison, Value::Timestamp(Timestamp::from_micros(i64::try_from(micros).ok()?))))
}

/// The `WHERE` clause of filters, empty without any, and its parameters.
pub(super) fn where_clause(filters: &[Filter]) -> (String, Vec<Value>) {
    let (mut parts, mut parameters) = (Vec::new(), Vec::new());
    for Filter { column, test } in filters {
        match test {
            Test::Compare(comparison, value) => {
                parts.push(format!("{column} {} ?", comparison.sql()));
                parameters.push(value.clone());
            }
            Test::In(texts) => {
                parts.push(format!("{column} IN ({})", vec!["?"; texts.len()].join(", ")));
                parameters.extend(texts.iter().cloned().map(Value::Text));
            }
            Test::IsNull(true) => parts.push(format!("{column} IS NULL")),
            Test::IsNull(false) => parts.push(format!("{column} IS NOT NULL")),
        }
    }
    match parts.is_empty() {
        true => (String::new(), parameters),
        false => (format!(" WHERE {}", parts.join(" AND ")), parameters),
    }
}
