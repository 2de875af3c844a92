//! A condition on rows, in the SQL of [`super::sql`], applied to batches that are in no table.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::prelude::{SessionConfig, SessionContext};

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
        Self {
            sql: sql.to_owned(),
            context: SessionContext::new_with_config(config),
            compiled: Mutex::new(None),
        }
    }

    /// Whether each row meets it; null where that depends on a null.
    ///
    /// # Errors
    /// Why it cannot be evaluated: no condition, a column that is not there, types that do not fit.
    pub fn holds(&self, batch: &RecordBatch) -> Result<BooleanArray, String> {
        let expression = self.compiled_for(batch.schema())?;
        let plain = |error: datafusion::error::DataFusionError| error.strip_backtrace();
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

    fn compile(&self, schema: &SchemaRef) -> Result<Arc<dyn PhysicalExpr>, String> {
        let plain = |error: datafusion::error::DataFusionError| error.strip_backtrace();
        let columns = DFSchema::try_from(schema.as_ref().clone()).map_err(plain)?;
        let parsed = self.context.parse_sql_expr(&self.sql, &columns).map_err(plain)?;
        let expression = self.context.create_physical_expr(parsed, &columns).map_err(plain)?;
        match expression.data_type(schema).map_err(plain)? {
            DataType::Boolean => Ok(expression),
            other => Err(format!("it is no condition: its value is {other}")),
        }
    }
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

    /// Proves that what is no condition, or names what is not there, is refused with the reason.
    #[test]
    fn what_is_no_condition() {
        assert!(held("Age + 1").unwrap_err().starts_with("it is no condition"));
        assert!(held("agee > 1").unwrap_err().contains("agee"));
        assert!(held("Age >").is_err() && held("").is_err());
    }
}
