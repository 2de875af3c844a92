//! The ledger's tables for DataFusion: columns and filters are left to the database.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use trackway_ledger::scan::{Backend, Column, ColumnKind, Table, Value};
use trackway_ledger::{Ledger, LedgerError};
use trackway_records::schema_of;

use super::arrow_rows::{Batches, RowError};
use super::filters::where_clause;
use crate::filter::{Filter, Tested};

#[derive(Debug)]
pub(super) struct LedgerTable {
    ledger: Ledger,
    table: &'static Table,
}

impl LedgerTable {
    pub(super) fn new(ledger: Ledger, table: &'static Table) -> Self {
        Self { ledger, table }
    }
}

#[async_trait]
impl TableProvider for LedgerTable {
    fn schema(&self) -> SchemaRef {
        schema_of(self.table.columns)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(pushed_down(filters, self.table.columns))
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = projected(self.table.columns, projection);
        let (filter, parameters) = where_clause(&usable(filters, self.table.columns));
        let limit = limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        // Without any column only the number of rows is requested, as in `count(*)`.
        let list = if names.is_empty() { "1".into() } else { names.join(", ") };
        let sql = format!("SELECT {list} FROM {}{filter}{limit}", self.table.name);
        let read = || read(&mut self.ledger.backend(), &sql, &parameters, &columns);
        scanned("ledger", schema_of(&columns), read)
    }
}

/// The plan of a scan that gives these batches.
pub(super) fn scanned(
    what: &str,
    schema: SchemaRef,
    read: impl FnOnce() -> Result<Vec<RecordBatch>, LedgerError> + Send,
) -> Result<Arc<dyn ExecutionPlan>> {
    // The client of PostgreSQL starts a runtime, which must not start inside of ours.
    let batches = std::thread::scope(|scope| scope.spawn(read).join())
        .map_err(|_| DataFusionError::Execution(format!("reading the {what} panicked")))?
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
    Ok(MemorySourceConfig::try_new_exec(&[batches], schema, None)?)
}

/// What DataFusion shall do with each filter: again, when the scan uses it; alone, when it cannot.
pub(super) fn pushed_down(filters: &[&Expr], columns: &[Column]) -> Vec<TableProviderFilterPushDown> {
    let columns = tested(columns);
    let verdict = |filter: &&Expr| match Filter::from_expression(filter, &columns) {
        Some(_) => TableProviderFilterPushDown::Inexact,
        None => TableProviderFilterPushDown::Unsupported,
    };
    filters.iter().map(verdict).collect()
}

/// The filters a scan can use.
pub(super) fn usable(filters: &[Expr], columns: &[Column]) -> Vec<Filter<'static>> {
    let columns = tested(columns);
    filters.iter().filter_map(|filter| Filter::from_expression(filter, &columns)).collect()
}

fn tested(columns: &[Column]) -> Vec<Tested<'static>> {
    columns.iter().map(|column| (column.name, column.kind)).collect()
}

/// The requested columns.
pub(super) fn projected(columns: &[Column], projection: Option<&Vec<usize>>) -> Vec<Column> {
    match projection {
        Some(indexes) => indexes.iter().map(|&index| columns[index]).collect(),
        None => columns.to_vec(),
    }
}

fn read(
    backend: &mut Backend,
    sql: &str,
    parameters: &[Value],
    columns: &[Column],
) -> Result<Vec<RecordBatch>, LedgerError> {
    let mut batches = Batches::new(columns);
    let arrow_failed = |error: arrow::error::ArrowError| LedgerError::Query(error.to_string());
    match backend {
        Backend::Sqlite(sqlite) => {
            sqlite.visit(sql, parameters, &mut |row| batches.take_sqlite(row)).map_err(
                |error| match error {
                    RowError::Sqlite(source) => sqlite.failed("reading", &source),
                    RowError::Arrow(source) => arrow_failed(source),
                },
            )?;
        }
        Backend::Postgres(_) => {
            let kinds: Vec<ColumnKind> = columns.iter().map(|column| column.kind).collect();
            backend.query("reading", sql, parameters, &kinds, &mut |values| {
                batches.take(&values).map_err(arrow_failed)
            })?;
        }
    }
    batches.finish().map_err(arrow_failed)
}
