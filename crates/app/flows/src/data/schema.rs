//! What data must be like: inferred, then checked.

use std::path::Path;

use trackway_api::data::{FindingsAnswer, InferredSchema};
use trackway_data::schema::{Reference, RowRule, Schema, SqlRule, Surroundings, check, infer as write};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_sql::RowPredicate;
use trackway_tables::profile::Profile;
use trackway_tables::read::Source;

use super::table::{ReadObserver, TableRequest, data_error};

/// Reads data once and writes down, as TOML, what it is like. The answer is not in a file yet.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for data that is not a table.
pub fn infer(
    base: &Path,
    table: &TableRequest,
    observer: &ReadObserver<'_>,
) -> Result<InferredSchema, AppError> {
    let mut source = table.open(base, "data")?;
    let (profile, coverage) = Profile::of(&mut source, None, &observer.watch()).map_err(data_error)?;
    Ok(InferredSchema {
        toml: write(&profile),
        path: None,
        rows: coverage.rows_read,
        rows_rejected: coverage.rows_rejected,
        reading: source.reading(),
    })
}

/// Checks every row of data against a schema file. Columns of another environment than `environment` are not required.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for a schema that makes no sense, or
/// data that is not a table.
pub fn validate(
    base: &Path,
    table: &TableRequest,
    (schema_path, environment): (&Path, Option<&str>),
    observer: &ReadObserver<'_>,
) -> Result<FindingsAnswer, AppError> {
    let schema = read_schema(base, schema_path)?;
    let source = table.open(base, "data")?;
    let path = base.join(schema_path);
    obey(&source, &schema, (path.parent().unwrap_or(base), environment), observer)
}

/// The run file's requirements on a data set.
pub(crate) struct Rules<'r> {
    /// A schema file.
    pub(crate) schema: Option<&'r str>,
    /// Conditions on rows.
    pub(crate) sql: &'r [String],
}

/// Checks every row of a source against a run file's rules, as training data. Paths start at `base`.
///
/// # Errors
/// As [`validate`].
pub(crate) fn validate_with(
    base: &Path,
    source: &Source,
    rules: &Rules<'_>,
    observer: &ReadObserver<'_>,
) -> Result<FindingsAnswer, AppError> {
    let (mut schema, there) = match rules.schema {
        None => (Schema::of_rows(), base.to_path_buf()),
        Some(path) => {
            let file = base.join(path);
            (read_schema(base, Path::new(path))?, file.parent().unwrap_or(base).to_path_buf())
        }
    };
    schema.rules.extend(rules.sql.iter().map(|sql| SqlRule { sql: sql.clone(), name: None, severity: None }));
    obey(source, &schema, (&there, Some("train")), observer)
}

pub(super) fn read_schema(base: &Path, schema_path: &Path) -> Result<Schema, AppError> {
    let path = base.join(schema_path);
    let text =
        std::fs::read_to_string(&path).map_err(|error| AppError::file("read the schema in", &path, error))?;
    let wrong = || AppError::new(ErrorKind::Usage, format!("`{}`", schema_path.display()));
    Schema::from_toml(&text).map_err(|error| wrong().because(error))
}

/// References of the schema start at `there`.
fn obey(
    source: &Source,
    schema: &Schema,
    (there, environment): (&Path, Option<&str>),
    observer: &ReadObserver<'_>,
) -> Result<FindingsAnswer, AppError> {
    let surroundings = Surroundings {
        now_micros: observer.clock.now().as_micros(),
        environment,
        compile: &compile,
        open: &|to: &Reference| {
            let paths = std::slice::from_ref(&to.path);
            Source::open_paths(there, &to.path, &Default::default(), paths, source.context())
        },
    };
    let checked = check(source, schema, &surroundings, &observer.watch()).map_err(data_error)?;
    let mut findings = checked.findings;
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let mut not_run = checked.not_run;
    match (checked.coverage.rows_read, checked.coverage.rows_rejected) {
        (0, 0) => not_run.push("there are no rows to check".to_owned()),
        (0, rejected) => not_run.push(format!("none of {rejected} rows could be read")),
        _ => {}
    }
    Ok(FindingsAnswer {
        findings,
        not_run,
        rows: checked.coverage.rows_read,
        rows_rejected: checked.coverage.rows_rejected,
        rules_checked: Some(checked.rules_checked),
        reading: checked.reading,
    })
}

pub(super) fn compile(rule: &SqlRule) -> Result<Box<dyn RowRule>, String> {
    Ok(Box::new(Predicate(RowPredicate::new(&rule.sql))))
}

struct Predicate(RowPredicate);

impl RowRule for Predicate {
    fn holds(&self, batch: &arrow::array::RecordBatch) -> Result<arrow::array::BooleanArray, String> {
        self.0.holds(batch)
    }
}
