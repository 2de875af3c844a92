//! A table without what makes it unfit, with an account of every row.

use std::path::{Path, PathBuf};

use trackway_api::data::{CleanAnswer, ProtectedColumn};
use trackway_data::clean::{CleanError, CleanPlan, Cleaned, HashKey, clean as write};
pub use trackway_data::clean::{Duplicates, Protection};
use trackway_data::integrity::{TableEvidence, TableRoles, personal_columns};
use trackway_data::schema::{Schema, SqlRule};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_tables::read::{MixedColumn, Source, sentences};
use trackway_tables::write::WriteError;

use super::schema::{compile, read_schema};
use super::table::{ReadObserver, TableRequest, data_error};

/// How to clean.
#[derive(Debug, Clone)]
pub struct CleanRequest {
    /// The data.
    pub table: TableRequest,
    /// What rows must be like.
    pub schema: Option<PathBuf>,
    /// Conditions on rows, in SQL.
    pub rules: Vec<String>,
    /// What becomes of duplicates.
    pub duplicates: Duplicates,
    /// What becomes of columns, by name.
    pub protected: Vec<(String, Protection)>,
    /// What becomes of columns in which personal data is found and that are not named.
    pub personal: Option<Protection>,
    /// The bytes of the key of hashed columns.
    pub key: Option<Vec<u8>>,
    /// The cleaned table.
    pub out: PathBuf,
    /// The rows that are set aside; beside the table where absent.
    pub quarantine: Option<PathBuf>,
}

/// Cleans a table.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for data that is not a table, a column or a
/// schema that makes no sense, a key that is missing or too short, and an output that is an input. No output is there then.
pub fn clean(
    base: &Path,
    request: &CleanRequest,
    observer: &ReadObserver<'_>,
) -> Result<CleanAnswer, AppError> {
    let out = base.join(&request.out);
    let quarantine = request.quarantine.as_ref().map_or_else(|| beside(&out), |path| base.join(path));
    if out == quarantine {
        let message = format!("`{}` cannot be both the table and its quarantine", out.display());
        return Err(AppError::new(ErrorKind::Usage, message).hint("name another file with --quarantine"));
    }
    request.table.refuse_outputs(base, [out.as_path(), quarantine.as_path()])?;
    let key = request.key.as_deref().map(HashKey::new).transpose();
    let key = key.map_err(|error| AppError::of(ErrorKind::Usage, error))?;
    let schema = schema_of(base, request)?;
    let source = request.table.open(base, "data")?;
    let (protected, found) = protected(base, request, observer)?;
    let plan = CleanPlan {
        schema: schema.as_ref(),
        compile: &compile,
        duplicates: request.duplicates,
        protected,
        key,
        out: out.clone(),
        quarantine: quarantine.clone(),
    };
    let Cleaned { account, reading } = write(&source, &plan, &observer.watch()).map_err(clean_error)?;
    let mut notes = sentences(reading.iter().filter(|note| !note.kind.is_counted_elsewhere()));
    notes.extend(undecided(&source, schema.as_ref()));
    Ok(CleanAnswer { out, quarantine, account, protected: found, notes, reading })
}

/// Columns whose strings stay in the table, because they are too many for errors, and whose type no schema gives.
fn undecided(source: &Source, schema: Option<&Schema>) -> Vec<String> {
    let has_type =
        |name: &String| schema.is_some_and(|schema| schema.columns.iter().any(|column| column.name == *name));
    let note = |MixedColumn { name, mostly, values, strings }: MixedColumn| {
        format!(
            "`{name}` is text: {strings} of its {values} values are not of type {mostly}; to quarantine them, give its type \
             with --schema (`trackway data infer` writes one)"
        )
    };
    source.mixed_columns().into_iter().filter(|column| !has_type(&column.name)).map(note).collect()
}

/// The schema file and the conditions together; `None` without either.
fn schema_of(base: &Path, request: &CleanRequest) -> Result<Option<Schema>, AppError> {
    if request.schema.is_none() && request.rules.is_empty() {
        return Ok(None);
    }
    let mut schema = match &request.schema {
        Some(path) => read_schema(base, path)?,
        None => Schema::of_rows(),
    };
    let rule = |sql: &String| SqlRule { sql: sql.clone(), name: None, severity: None };
    schema.rules.extend(request.rules.iter().map(rule));
    Ok(Some(schema))
}

/// `clean.csv` has its quarantine in `clean.quarantine.csv`.
fn beside(out: &Path) -> PathBuf {
    match out.extension() {
        Some(extension) => out.with_extension(format!("quarantine.{}", extension.to_string_lossy())),
        None => out.with_extension("quarantine"),
    }
}

/// The columns that are protected, and the same with what was found in them.
type Protected = (Vec<(String, Protection)>, Vec<ProtectedColumn>);

fn protected(
    base: &Path,
    request: &CleanRequest,
    observer: &ReadObserver<'_>,
) -> Result<Protected, AppError> {
    let mut protected = request.protected.clone();
    let named = |(column, how): &(String, Protection)| answer(column, *how, Vec::new());
    let mut answers: Vec<ProtectedColumn> = protected.iter().map(named).collect();
    let Some(how) = request.personal else { return Ok((protected, answers)) };
    let mut source = request.table.open(base, "data")?;
    let evidence = TableEvidence::gather(&mut source, &TableRoles::default(), &observer.watch());
    let evidence = evidence.map_err(data_error)?;
    for found in personal_columns(&evidence, &[], observer.clock.now()) {
        let kind = found.kind.as_str().to_owned();
        match answers.iter_mut().find(|answer| answer.column == found.column) {
            Some(answer) => answer.kinds.push(kind),
            None => {
                answers.push(answer(&found.column, how, vec![kind]));
                protected.push((found.column, how));
            }
        }
    }
    Ok((protected, answers))
}

fn answer(column: &str, how: Protection, kinds: Vec<String>) -> ProtectedColumn {
    let how = match how {
        Protection::Mask => "masked",
        Protection::Hash => "hashed",
        Protection::Drop => "dropped",
    };
    ProtectedColumn { column: column.to_owned(), how: how.to_owned(), kinds }
}

fn clean_error(error: CleanError) -> AppError {
    match error {
        CleanError::Data(error) | CleanError::Write(WriteError::Data(error)) => data_error(error),
        CleanError::Account { .. } | CleanError::Write(WriteError::Disk { .. }) => {
            AppError::of(ErrorKind::Fault, error)
        }
        error => AppError::of(ErrorKind::Usage, error),
    }
}
