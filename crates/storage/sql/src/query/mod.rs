//! `trackway sql`: one SELECT over every table of the ledger and over the metrics, live and closed.
//!
//! DataFusion plans and runs the query; the ledger's tables and the flight records are scanned with the columns and
//! the simple filters that the query needs. Only what the query names is looked at.

mod arrow_rows;
mod filters;
mod metrics;
pub(crate) mod mistake;
mod origins;
mod predicate;
mod restarts;
mod session;
mod tables;

use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use arrow::record_batch::RecordBatch;
use datafusion::common::{SchemaError, TableReference};
use datafusion::config::Dialect;
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{DataFrame, SQLOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use trackway_ledger::scan::nearest;
use trackway_ledger::{Ledger, LedgerError, TABLES, VIEWS};

use self::metrics::{EFFECTIVE_METRICS, METRICS, MetricsTable, Rows, TELEMETRY};
pub use self::metrics::{TakeBatch, visit_metrics};
pub use self::predicate::RowPredicate;
use self::session::session;
use self::tables::LedgerTable;
use crate::answer::Answer;
use crate::limits::{QueryLimits, is_cancelled};

/// Names that an error proposes in place of one that is not there.
const MEANT_MAX: usize = 3;

/// Answers one SELECT (also `EXPLAIN`, `DESCRIBE` and `SHOW TABLES`). `home` is the folder with `records/` and
/// `attempts/`, which `metrics` and `effective_metrics` read. Integers are of 64 bits, and wrap around where they overflow.
///
/// The limits do not bound everything: a function may make a value of any size, and a query may run for ever. Callers
/// that run queries of others call this in a process that can be ended, as `trackway sql` does.
///
/// # Errors
/// [`LedgerError::Query`] when the query is wrong, names what is not there, would write, or needs more memory.
pub fn sql_within(
    ledger: &Ledger,
    home: &Path,
    query: &str,
    limits: &QueryLimits,
) -> Result<Answer, LedgerError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| LedgerError::Query(format!("cannot start the query engine: {error}")))?;
    runtime.block_on(answer(ledger, home, query, limits))
}

async fn answer(
    ledger: &Ledger,
    home: &Path,
    query: &str,
    limits: &QueryLimits,
) -> Result<Answer, LedgerError> {
    // One partition: the tables are read in one go, and starting threads costs more than it saves.
    let config = SessionConfig::new().with_target_partitions(1).with_information_schema(true);
    let mut runtime = RuntimeEnvBuilder::new().with_memory_limit(limits.memory_bytes, 1.0);
    if let Some(folder) = &limits.spill_folder {
        runtime = runtime.with_temp_file_path(folder);
    }
    let runtime = runtime.build_arc().map_err(|error| query_error(&error))?;
    let context = session(config, runtime);
    let parsed = context.state().sql_to_statement(query, &Dialect::PostgreSQL);
    let statement = parsed.map_err(|error| match mistake::with_caret(&error, query) {
        Some(mistake) => LedgerError::Query(format!("the query failed: {mistake}")),
        None => query_error(&error),
    })?;
    refuse_writes(&statement)?;
    register(&context, ledger, home, &statement, limits)?;
    let plan = context.state().statement_to_plan(statement).await.map_err(|error| query_error(&error))?;
    let read_only =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    read_only.verify_plan(&plan).map_err(|_| read_only_error("a statement that writes"))?;
    let frame = context.execute_logical_plan(plan).await.map_err(|error| query_error(&error))?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = collected(frame, limits).await?;
    Ok(Answer::new(schema, batches))
}

/// The rows of a query. The engine yields between batches: there it ends when it is cancelled.
async fn collected(frame: DataFrame, limits: &QueryLimits) -> Result<Vec<RecordBatch>, LedgerError> {
    let mut collecting = pin!(frame.collect());
    poll_fn(|task| match is_cancelled(limits.cancelled.as_deref()) {
        true => Poll::Ready(Err(LedgerError::Query("interrupted".into()))),
        false => collecting.as_mut().poll(task).map_err(|error| query_error(&error)),
    })
    .await
}

fn refuse_writes(statement: &Statement) -> Result<(), LedgerError> {
    let inner = match statement {
        Statement::Statement(inner) => inner,
        Statement::Explain(explain) => return refuse_writes(&explain.statement),
        other => return Err(read_only_error(&first_word(&other.to_string()))),
    };
    match inner.as_ref() {
        ast::Statement::Query(_)
        | ast::Statement::ExplainTable { .. }
        | ast::Statement::ShowTables { .. }
        | ast::Statement::ShowColumns { .. } => Ok(()),
        other => Err(read_only_error(&first_word(&other.to_string()))),
    }
}

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or("the statement").to_uppercase()
}

fn read_only_error(what: &str) -> LedgerError {
    LedgerError::Query(format!(
        "`{what}` is refused: this command only reads the ledger; use SELECT (`SHOW TABLES` lists the tables)"
    ))
}

/// Registers the tables that the query names, and all of them when it lists tables.
fn register(
    context: &SessionContext,
    ledger: &Ledger,
    home: &Path,
    statement: &Statement,
    limits: &QueryLimits,
) -> Result<(), LedgerError> {
    let metrics =
        |rows: Rows| Arc::new(MetricsTable::new(ledger.clone(), home, rows).until(limits.cancelled.clone()));
    let references =
        context.state().resolve_table_references(statement).map_err(|error| query_error(&error))?;
    let asks_what_there_is = references.is_empty()
        || references.iter().any(|reference| reference.schema() == Some("information_schema"));
    let names: Vec<String> = match asks_what_there_is {
        true => known_names().map(String::from).collect(),
        false => references.iter().map(|reference| reference.table().to_owned()).collect(),
    };
    for name in names {
        let provider: Arc<dyn datafusion::catalog::TableProvider> = match name.as_str() {
            METRICS => metrics(Rows::All),
            EFFECTIVE_METRICS => metrics(Rows::Effective),
            TELEMETRY => metrics(Rows::Telemetry),
            name => match TABLES.iter().chain(VIEWS).find(|table| table.name == name) {
                Some(table) => Arc::new(LedgerTable::new(ledger.clone(), table)),
                None => return Err(none_called("table", name, known_names(), " (`show tables` lists all)")),
            },
        };
        let reference = TableReference::bare(name);
        context.register_table(reference, provider).map_err(|error| query_error(&error))?;
    }
    Ok(())
}

fn known_names() -> impl Iterator<Item = &'static str> + Clone {
    TABLES.iter().chain(VIEWS).map(|table| table.name).chain([METRICS, EFFECTIVE_METRICS, TELEMETRY])
}

/// That nothing has this name, with the names that may be meant and then `more`, or else all names.
fn none_called<'n>(
    kind: &str,
    name: &str,
    names: impl Iterator<Item = &'n str> + Clone,
    more: &str,
) -> LedgerError {
    let meant: Vec<String> = meant(name, names.clone()).iter().map(|name| format!("`{name}`")).collect();
    if names.clone().next().is_none() {
        return LedgerError::Query(format!("no {kind} `{name}` can be used there"));
    }
    let hint = match meant.is_empty() {
        true => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
        false => format!("did you mean {}?{more}", meant.join(" or ")),
    };
    LedgerError::Query(format!("no {kind} `{name}`: {hint}"))
}

/// The names that may be meant: of one word those that end in it, those with fewer words first; else the one most like it.
fn meant<'n>(name: &str, names: impl Iterator<Item = &'n str> + Clone) -> Vec<&'n str> {
    let last_word = |name: &str| {
        let word = name.rsplit('_').next().unwrap_or(name);
        word.trim_end_matches('s').to_lowercase()
    };
    let has_it = |known: &&str| !name.contains('_') && last_word(known) == last_word(name);
    let mut meant: Vec<&str> = names.clone().filter(has_it).collect();
    meant.sort_by_key(|known| known.matches('_').count());
    meant.truncate(MEANT_MAX);
    if meant.is_empty() {
        meant.extend(nearest(name, names));
    }
    meant
}

/// The error of the query engine in one line, with what to do.
fn query_error(error: &DataFusionError) -> LedgerError {
    if let DataFusionError::External(external) = error.find_root()
        && let Some(own) = external.downcast_ref::<LedgerError>()
    {
        return LedgerError::Query(own.to_string());
    }
    let text = match error.find_root() {
        DataFusionError::ResourcesExhausted(what) => {
            return LedgerError::Query(format!(
                "the query needs more memory than --memory-limit allows: {what}"
            ));
        }
        DataFusionError::SchemaError(schema_error, _) => match schema_error.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let names = valid_fields.iter().map(|column| column.name.as_str());
                return none_called("column", &field.name, names, "");
            }
            other => other.to_string(),
        },
        root => mistake::plain(root),
    };
    LedgerError::Query(format!("the query failed: {text}"))
}
