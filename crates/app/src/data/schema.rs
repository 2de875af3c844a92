//! What data must be like: inferred, then checked.

use std::path::Path;

use trackway_core::Clock;
use trackway_data::profile::Profile;
use trackway_data::read::Source;
use trackway_data::schema::{Reference, RowRule, Schema, SqlRule, Surroundings, check, infer as write};
use trackway_ledger::RowPredicate;
use trackway_recorder::SystemClock;

use super::table::{FindingsAnswer, Onlooker, TableRequest, data_error};
use crate::error::{AppError, ErrorKind};

/// Reads data once and writes down, as TOML, what it is like.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for data that is no table.
pub fn infer(base: &Path, table: &TableRequest, onlooker: &Onlooker<'_>) -> Result<String, AppError> {
    let mut source = table.open(base, "data")?;
    let (profile, _) = Profile::of(&mut source, None, &onlooker.watch()).map_err(data_error)?;
    Ok(write(&profile))
}

/// Checks every row of data against a schema file. Columns of another environment than `environment` are not asked for.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for a schema that makes no sense, or data
/// that is no table.
pub fn validate(
    base: &Path,
    table: &TableRequest,
    (schema_path, environment): (&Path, Option<&str>),
    onlooker: &Onlooker<'_>,
) -> Result<FindingsAnswer, AppError> {
    let path = base.join(schema_path);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| AppError::file("read the schema in", &path, &error))?;
    let wrong = |error| AppError::new(ErrorKind::Usage, format!("`{}`: {error}", schema_path.display()));
    let schema = Schema::from_toml(&text).map_err(wrong)?;
    let source = table.open(base, "data")?;
    let there = path.parent().unwrap_or(base);
    let surroundings = Surroundings {
        now_micros: SystemClock.now().as_micros(),
        environment,
        compile: &compile,
        open: &|to: &Reference| {
            Source::open_paths(there, &to.path, &Default::default(), std::slice::from_ref(&to.path))
        },
    };
    let checked = check(&source, &schema, &surroundings, &onlooker.watch()).map_err(data_error)?;
    let mut findings = checked.findings;
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(FindingsAnswer {
        findings,
        not_run: checked.not_run,
        rows: checked.coverage.rows_read,
        rows_rejected: checked.coverage.rows_rejected,
        rules_checked: Some(checked.rules_checked),
    })
}

fn compile(rule: &SqlRule) -> Result<Box<dyn RowRule>, String> {
    Ok(Box::new(Predicate(RowPredicate::new(&rule.sql))))
}

struct Predicate(RowPredicate);

impl RowRule for Predicate {
    fn holds(&self, batch: &arrow::array::RecordBatch) -> Result<arrow::array::BooleanArray, String> {
        self.0.holds(batch)
    }
}
