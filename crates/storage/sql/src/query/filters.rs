//! Which filters of a query a scan can use. A scan may give more rows than match, never fewer: DataFusion filters once
//! more.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use trackway_core::Timestamp;
use trackway_ledger::scan::{ColumnKind, Value};

use crate::filter::{Filter, FilterOperator, Test, Tested};

/// Most values of an `IN (…)` that are passed to the database.
const IN_LIST_MAX: usize = 100;

impl FilterOperator {
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
}

impl Test {
    /// The strings of which the column must be one; `None` when it tests something else.
    pub(super) fn texts(&self) -> Option<Vec<String>> {
        match self {
            Self::Compare(FilterOperator::Equal, Value::Text(text)) => Some(vec![text.clone()]),
            Self::In(texts) => Some(texts.clone()),
            _ => None,
        }
    }
}

impl<'c> Filter<'c> {
    /// The filter of an expression, when a scan can use it.
    pub(crate) fn from_expression(expression: &Expr, columns: &[Tested<'c>]) -> Option<Self> {
        match expression {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                Self::either(left, right, columns)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let comparison = FilterOperator::from_operator(*op)?;
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

    /// Short lists of strings arrive as `column = 'a' OR column = 'b'`.
    fn either(left: &Expr, right: &Expr, columns: &[Tested<'c>]) -> Option<Self> {
        let (left, right) = (Self::from_expression(left, columns)?, Self::from_expression(right, columns)?);
        if left.column != right.column {
            return None;
        }
        let mut texts = left.test.texts()?;
        texts.extend(right.test.texts()?);
        (texts.len() <= IN_LIST_MAX).then_some(Self { column: left.column, test: Test::In(texts) })
    }

    fn compare(
        column: &Expr,
        comparison: FilterOperator,
        literal: &Expr,
        columns: &[Tested<'c>],
    ) -> Option<Self> {
        let (column, kind) = column_of(column, columns)?;
        let Expr::Literal(scalar, _) = literal else { return None };
        let (comparison, value) = match kind {
            // The order of strings depends on a database's collation; equality does not.
            ColumnKind::Text | ColumnKind::Word if comparison == FilterOperator::Equal => {
                (comparison, Value::Text(text_of(scalar)?))
            }
            ColumnKind::Integer => (comparison, Value::Integer(integer_of(scalar)?)),
            ColumnKind::Real => {
                let number = real_of(scalar)?;
                (beside_zero(comparison, number), Value::Real(number))
            }
            ColumnKind::Timestamp => widened(comparison, nanos_of(scalar)?)?,
            _ => return None,
        };
        Some(Self { column, test: Test::Compare(comparison, value) })
    }

    fn is_null(inner: &Expr, null: bool, columns: &[Tested<'c>]) -> Option<Self> {
        let (column, _) = column_of(inner, columns)?;
        Some(Self { column, test: Test::IsNull(null) })
    }

    fn boolean(inner: &Expr, truth: bool, columns: &[Tested<'c>]) -> Option<Self> {
        let (column, _) = column_of(inner, columns).filter(|(_, kind)| *kind == ColumnKind::Boolean)?;
        let test = Test::Compare(FilterOperator::Equal, Value::Boolean(truth));
        Some(Self { column, test })
    }

    fn in_list(list: &InList, columns: &[Tested<'c>]) -> Option<Self> {
        let (column, _) = column_of(&list.expr, columns)
            .filter(|(_, kind)| matches!(kind, ColumnKind::Text | ColumnKind::Word))?;
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
        Some(Self { column, test: Test::In(texts?) })
    }
}

/// The column of an expression, without the casts with which DataFusion makes both sides alike.
fn column_of<'c>(expression: &Expr, columns: &[Tested<'c>]) -> Option<Tested<'c>> {
    match expression {
        Expr::Column(named) => columns.iter().find(|(name, _)| *name == named.name).copied(),
        Expr::Cast(cast) if matches!(cast.expr.as_ref(), Expr::Column(_)) => {
            // Only casts that keep the order: of a timestamp to another unit.
            column_of(&cast.expr, columns).filter(|(_, kind)| *kind == ColumnKind::Timestamp)
        }
        _ => None,
    }
}

/// DataFusion orders -0 before 0; for a database they are equal.
fn beside_zero(comparison: FilterOperator, number: f64) -> FilterOperator {
    match comparison {
        FilterOperator::Less if number == 0.0 => FilterOperator::LessOrEqual,
        FilterOperator::Greater if number == 0.0 => FilterOperator::GreaterOrEqual,
        comparison => comparison,
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

/// A comparison with a time between two microseconds, widened to whole ones.
fn widened(comparison: FilterOperator, nanos: i128) -> Option<(FilterOperator, Value)> {
    let below = nanos.div_euclid(1000);
    let above = below + i128::from(nanos.rem_euclid(1000) != 0);
    let (comparison, micros) = match comparison {
        FilterOperator::Equal if below == above => (FilterOperator::Equal, below),
        FilterOperator::Equal => return None,
        FilterOperator::Less | FilterOperator::LessOrEqual => (FilterOperator::LessOrEqual, above),
        FilterOperator::Greater | FilterOperator::GreaterOrEqual => (FilterOperator::GreaterOrEqual, below),
    };
    Some((comparison, Value::Timestamp(Timestamp::from_micros(i64::try_from(micros).ok()?))))
}

/// The `WHERE` clause of filters, empty without any, and its parameters.
pub(super) fn where_clause(filters: &[Filter<'_>]) -> (String, Vec<Value>) {
    let mut parameters = Vec::new();
    let parts: Vec<String> =
        filters.iter().map(|filter| filter.test.sql(filter.column, &mut parameters)).collect();
    match parts.is_empty() {
        true => (String::new(), parameters),
        false => (format!(" WHERE {}", parts.join(" AND ")), parameters),
    }
}
