//! A condition on rows, in the SQL of [`super::sql`], applied to batches that are in no table.
//!
//! A condition comes from a run file, a rule or a command line, and its answer enters receipts, so it is kept within
//! bounds: it is short and shallow ([`CONDITION_BYTES_MAX`], [`OPERATORS_MAX`], [`NESTING_MAX`]), gives the same answer
//! each time, and holds no function whose result may be far larger than its input ([`GROWING`]). Its time and memory
//! are then in proportion to the rows.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Volatility};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use trackway_core::boundary::contained;

use super::mistake::{in_one_line, plain};
use super::session::session;
use crate::filter::{Filter, Tested};

/// The longest condition, in bytes.
pub const CONDITION_BYTES_MAX: usize = 64 << 10;

/// The most operators, keywords and functions of a condition; members of a list are free.
pub const OPERATORS_MAX: usize = 200;

/// The deepest nesting of brackets.
pub const NESTING_MAX: usize = 50;

/// Functions whose result may be far larger than what they are given.
const GROWING: [&str; 5] = ["repeat", "lpad", "rpad", "replace", "regexp_replace"];

/// Planning needs more stack than a thread may have left.
const PLANNING_STACK_BYTES: usize = 64 << 20;

/// A condition such as `ends_at >= starts_at`. Names are taken as they are written, capitals too.
pub struct RowPredicate {
    sql: String,
    context: SessionContext,
    /// Compiled for the schema of the batch seen last.
    compiled: Mutex<Option<(SchemaRef, Arc<dyn PhysicalExpr>)>>,
}

impl RowPredicate {
    /// A condition; it is understood when the first batch shows which columns there are.
    #[must_use]
    pub fn new(sql: &str) -> Self {
        let config = SessionConfig::new().set_bool("datafusion.sql_parser.enable_ident_normalization", false);
        Self { sql: sql.to_owned(), context: session(config, Arc::default()), compiled: Mutex::new(None) }
    }

    /// Whether each row meets it; null where that depends on a null.
    ///
    /// # Errors
    /// Why it cannot be evaluated: no condition, a column that is not there, types that do not fit.
    pub fn holds(&self, batch: &RecordBatch) -> Result<BooleanArray, String> {
        let expression = self.compiled_for(batch.schema())?;
        let values = expression.evaluate(batch).map_err(plain)?;
        let values = values.into_array(batch.num_rows()).map_err(plain)?;
        Ok(values.as_boolean().clone())
    }

    fn compiled_for(&self, schema: SchemaRef) -> Result<Arc<dyn PhysicalExpr>, String> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, expression)) = compiled.as_ref()
            && *known == schema
        {
            return Ok(Arc::clone(expression));
        }
        let expression = self.compile(&schema)?;
        *compiled = Some((schema, Arc::clone(&expression)));
        Ok(expression)
    }

    /// Filters that every row passes that meets the condition, for a database to apply beforehand. Empty if there are
    /// none, and for a condition that cannot be evaluated.
    pub(crate) fn filters<'c>(&self, schema: &SchemaRef, columns: &[Tested<'c>]) -> Vec<Filter<'c>> {
        let read = || -> Result<Vec<Filter<'c>>, String> {
            let fields = DFSchema::try_from(schema.as_ref().clone()).map_err(plain)?;
            let parsed = self.context.parse_sql_expr(&self.sql, &fields).map_err(plain)?;
            let context = SimplifyContext::builder().with_schema(Arc::new(fields.clone())).build();
            let simplifier = ExprSimplifier::new(context);
            let coerced = simplifier.coerce(parsed, &fields).map_err(plain)?;
            let condition = simplifier.simplify(coerced).map_err(plain)?;
            let parts = split_conjunction(&condition).into_iter();
            Ok(parts.filter_map(|part| Filter::from_expression(part, columns)).collect())
        };
        check_size(&self.sql).and_then(|()| with_planning_stack(read)).unwrap_or_default()
    }

    fn compile(&self, schema: &SchemaRef) -> Result<Arc<dyn PhysicalExpr>, String> {
        check_size(&self.sql)?;
        with_planning_stack(|| self.plan(schema))
    }

    fn plan(&self, schema: &SchemaRef) -> Result<Arc<dyn PhysicalExpr>, String> {
        let columns = DFSchema::try_from(schema.as_ref().clone()).map_err(plain)?;
        let parsed = self.context.parse_sql_expr(&self.sql, &columns);
        let parsed = parsed.map_err(|error| in_one_line(&error, &self.sql))?;
        parsed.apply(|part| check_function(part).map(|()| TreeNodeRecursion::Continue)).map_err(plain)?;
        let expression = self.context.create_physical_expr(parsed, &columns).map_err(plain)?;
        match expression.data_type(schema).map_err(plain)? {
            DataType::Boolean => Ok(expression),
            other => Err(format!("it is not a condition: its value is {other}")),
        }
    }
}

/// Runs `plan` on a thread with [`PLANNING_STACK_BYTES`]; a panic of it is an error.
fn with_planning_stack<T: Send>(plan: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    let plan = || contained(plan).map_err(|panic| format!("it cannot be planned: {panic}"))?;
    std::thread::scope(|scope| {
        let planner = std::thread::Builder::new().stack_size(PLANNING_STACK_BYTES);
        let planned = planner.spawn_scoped(scope, plan).map_err(|error| error.to_string())?;
        planned.join().unwrap_or_else(|_| Err("it cannot be planned".into()))
    })
}

/// Bounds a condition before anything walks into it.
fn check_size(sql: &str) -> Result<(), String> {
    if sql.len() > CONDITION_BYTES_MAX {
        return Err(format!("it has {} bytes; a condition has at most {CONDITION_BYTES_MAX}", sql.len()));
    }
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize().map_err(|error| error.to_string())?;
    let (mut operators, mut nesting, mut deepest) = (0, 0usize, 0);
    for token in &tokens {
        match token {
            Token::LParen | Token::LBracket => nesting += 1,
            Token::RParen | Token::RBracket => nesting = nesting.saturating_sub(1),
            Token::Word(word) if word.keyword == Keyword::NoKeyword => {}
            Token::Whitespace(_)
            | Token::Comma
            | Token::Period
            | Token::Number(_, _)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_) => {}
            _ => operators += 1,
        }
        deepest = deepest.max(nesting);
    }
    if operators > OPERATORS_MAX {
        return Err(format!(
            "it has {operators} operators and keywords; a condition has at most {OPERATORS_MAX}"
        ));
    }
    if deepest > NESTING_MAX {
        return Err(format!("its brackets are nested {deepest} deep; a condition has at most {NESTING_MAX}"));
    }
    Ok(())
}

/// Refuses functions that answer otherwise each time, or that may fill the memory.
fn check_function(part: &Expr) -> Result<(), DataFusionError> {
    let Expr::ScalarFunction(call) = part else { return Ok(()) };
    let name = call.func.name();
    let why = if call.func.signature().volatility != Volatility::Immutable {
        format!(
            "`{name}()` is not deterministic, so it cannot be used in a condition: write its value, such as \
             timestamp '2026-01-31'"
        )
    } else if GROWING.contains(&name) {
        format!("`{name}()` may return far more than its input, so it cannot be used in a condition")
    } else {
        return Ok(());
    };
    Err(DataFusionError::Plan(why))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};

    use super::*;

    fn batch() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("Age", Arc::new(Int64Array::from(vec![Some(3), Some(40), None]))),
            ("hours per week", Arc::new(Float64Array::from(vec![10.0, 99.5, 1.0]))),
            ("sex", Arc::new(StringArray::from(vec!["Female", "Male", "Male"]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn held(sql: &str) -> Result<Vec<Option<bool>>, String> {
        RowPredicate::new(sql).holds(&batch()).map(|holds| holds.iter().collect())
    }

    /// Proves conditions over several types, names with capitals and blanks, and nulls.
    #[test]
    fn conditions_of_rows() {
        assert_eq!(held("Age between 17 and 90").unwrap(), [Some(false), Some(true), None]);
        assert_eq!(held("\"hours per week\" <= 99 or sex = 'Male'").unwrap(), [Some(true); 3]);
        assert_eq!(held("Age is not null").unwrap(), [Some(true), Some(true), Some(false)]);
        assert_eq!(held("true").unwrap(), [Some(true); 3]);
    }

    /// Proves that an invalid condition, or one that names a column that does not exist, is refused with the reason.
    #[test]
    fn what_is_no_condition() {
        assert!(held("Age + 1").unwrap_err().starts_with("it is not a condition"));
        assert!(held("agee > 1").unwrap_err().contains("agee"));
        assert!(held("Age >").is_err() && held("").is_err());
    }

    /// Proves that a condition that answers otherwise each time, that may fill the memory, or that is long enough to
    /// exhaust the stack is refused by name, and that a long list is none of these.
    #[test]
    fn conditions_are_bounded() {
        for (sql, why) in [
            ("random() > 0.5", "`random()` is not deterministic"),
            ("uuid() <> sex", "`uuid()` is not deterministic"),
            ("Age <= 40 and now() > timestamp '2026-01-01'", "`now()` is not deterministic"),
            ("repeat(sex, 100000000) <> ''", "`repeat()` may return far more"),
            ("length(lpad(sex, 1000000000)) > 1", "`lpad()` may return far more"),
            (format!("Age{} > 0", "+1".repeat(5000)).as_str(), "it has 5001 operators"),
            (format!("{}Age > 0{}", "(".repeat(60), ")".repeat(60)).as_str(), "nested 60 deep"),
            (format!("sex <> '{}'", "x".repeat(70_000)).as_str(), "a condition has at most 65536"),
        ] {
            let refused = held(sql).unwrap_err();
            assert!(refused.contains(why), "{sql:.40}: {refused}");
        }
        let members: Vec<String> = (0..5000).map(|number| number.to_string()).collect();
        assert_eq!(held(&format!("Age in ({})", members.join(", "))).unwrap()[..2], [Some(true), Some(true)]);
        let chain = format!("Age{} > 0", "+1".repeat(150));
        assert_eq!(held(&chain).unwrap()[..2], [Some(true), Some(true)]);
    }
}
