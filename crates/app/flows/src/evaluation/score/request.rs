//! What is to be scored, and what of it the model is given.

use trackway_engine::error::{AppError, ErrorKind};
use trackway_tables::read::Source;
use trackway_tables::{Column, ColumnType};

use super::answers::{PREDICTION, SCORE};
use crate::data::table::{TableRequest, data_error};
use crate::evaluation::scoring::{BATCH_ROWS_MAX, BatchFormat};

/// Rows of a batch by default.
pub const BATCH_ROWS: usize = 256;

/// The model and the rows.
#[derive(Debug, Clone, Default)]
pub struct ScoreRequest {
    /// The rows.
    pub table: TableRequest,
    /// A shell command that keeps to docs/scoring.md.
    pub command: String,
    /// How rows are written to it.
    pub format: BatchFormat,
    /// The label column; the model does not get it.
    pub label: Option<String>,
    /// The class of the label whose probability the model returns, if it returns numbers.
    pub positive: Option<String>,
    /// What the model is given, in this order; every column but the label where empty.
    pub features: Vec<String>,
    /// Columns that it is not given.
    pub skip: Vec<String>,
    /// Rows of a batch: 1 to 4096.
    pub batch_rows: usize,
    /// The first rows only.
    pub limit: Option<u64>,
    /// How many rows the model of an evaluation is probed with; if absent, a few where that takes little time.
    pub probe_rows: Option<u64>,
}

impl ScoreRequest {
    /// Mistakes that need no data.
    pub(super) fn check(&self) -> Result<(), AppError> {
        let wrong = |message: &str| Err(AppError::new(ErrorKind::Usage, message));
        if !(1..=BATCH_ROWS_MAX).contains(&self.batch_rows) {
            return wrong(&format!("a batch has 1 to {BATCH_ROWS_MAX} rows"));
        }
        if self.limit == Some(0) {
            return wrong("at least 1 row is scored");
        }
        if self.positive.is_some() && self.label.is_none() {
            return wrong("`--positive` needs `--label`");
        }
        Ok(())
    }

    /// The arguments of `trackway eval score` for this request. Names of columns with a comma cannot be written there.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for such a name.
    pub fn arguments(&self) -> Result<Vec<String>, AppError> {
        let mut arguments = vec!["eval".to_owned(), "score".to_owned()];
        let mut option = |name: &str, value: &str| arguments.push(format!("--{name}={value}"));
        option("command", &self.command);
        option("batch-rows", &self.batch_rows.to_string());
        self.label.iter().for_each(|label| option("label", label));
        self.positive.iter().for_each(|positive| option("positive", positive));
        if self.format == BatchFormat::Arrow {
            option("batch-format", "arrow");
        }
        self.limit.iter().for_each(|limit| option("limit", &limit.to_string()));
        self.probe_rows.iter().for_each(|rows| option("probe-rows", &rows.to_string()));
        let (table, spec) = (&self.table, &self.table.spec);
        for (name, values) in
            [("features", &self.features), ("ignore", &self.skip), ("column-names", &spec.columns)]
        {
            if let Some(value) = values.iter().find(|value| value.contains(',')) {
                let message = format!("the column `{value}` cannot be used: its name contains a comma");
                return Err(AppError::new(ErrorKind::Usage, message).hint("rename it"));
            }
            if !values.is_empty() {
                option(name, &values.join(","));
            }
        }
        spec.header.iter().for_each(|header| option("header", if *header { "yes" } else { "no" }));
        spec.delimiter.iter().for_each(|delimiter| option("delimiter", &delimiter.to_string()));
        spec.comment.iter().for_each(|letter| option("comment", &letter.to_string()));
        if spec.skip_lines > 0 {
            option("skip-lines", &spec.skip_lines.to_string());
        }
        spec.decimal.iter().for_each(|mark| option("decimal", mark.as_str()));
        spec.missing.iter().for_each(|text| option("missing", text));
        let format = spec.format.map(|format| serde_json::json!(format));
        format.iter().filter_map(|it| it.as_str()).for_each(|format| option("read-as", format));
        arguments.extend(spec.trailing_separator.then(|| "--trailing-separator".to_owned()));
        arguments.push("--".to_owned());
        arguments.extend(table.paths.iter().cloned());
        Ok(arguments)
    }
}

/// What of a source the model is given.
pub(super) struct ModelInput {
    /// The columns of the source.
    pub columns: Vec<Column>,
    /// Indexes of those that the model is given, in its order.
    pub indexes: Vec<usize>,
    pub notes: Vec<String>,
}

impl ModelInput {
    pub(super) fn of(source: &Source, request: &ScoreRequest) -> Result<Self, AppError> {
        let columns = source.columns().to_vec();
        let index = |name: &String| source.index_of(name, "feature").map_err(data_error);
        let wrong = |message: String, hint: &str| Err(AppError::new(ErrorKind::Usage, message).hint(hint));
        let label = request.label.iter().map(|name| source.index_of(name, "label").map_err(data_error));
        let label = label.collect::<Result<Vec<_>, _>>()?;
        let skip = request.skip.iter().map(index).collect::<Result<Vec<_>, _>>()?;
        let named = request.features.iter().map(index).collect::<Result<Vec<_>, _>>()?;
        let own = [Some(PREDICTION), request.positive.as_ref().map(|_| SCORE)];
        if let Some(taken) = own.into_iter().flatten().find(|own| columns.iter().any(|it| it.name == **own)) {
            let message = format!("the table has a column `{taken}` already, which would be written");
            return wrong(message, "rename it");
        }
        if let Some(label) = label.iter().find(|label| named.contains(label)) {
            let message = format!("`{}` is the label: it is not passed to the model", columns[*label].name);
            return wrong(message, "take it out of the features");
        }
        let is_usable = |index: &usize| {
            !matches!(columns[*index].kind, ColumnType::Binary | ColumnType::List | ColumnType::Object)
        };
        if let Some(unusable) = named.iter().find(|index| !is_usable(index)) {
            let message =
                format!("`{}` is neither a number, a timestamp nor a string", columns[*unusable].name);
            return wrong(message, "such a column cannot be passed to a model");
        }
        let all: Vec<usize> = if named.is_empty() { (0..columns.len()).collect() } else { named };
        let wanted = all.into_iter().filter(|index| !label.contains(index) && !skip.contains(index));
        let (indexes, left_out): (Vec<usize>, Vec<usize>) = wanted.partition(is_usable);
        if indexes.is_empty() {
            return wrong("no column is left to pass to the model".to_owned(), "skip fewer columns");
        }
        let note = |index: &usize| {
            format!(
                "`{}` is not passed to the model: it is neither a number, a timestamp nor a string",
                columns[*index].name
            )
        };
        let notes = left_out.iter().map(note).collect();
        Ok(Self { columns, indexes, notes })
    }

    /// The names of what the model is given.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.indexes.iter().map(|index| self.columns[*index].name.as_str())
    }
}
