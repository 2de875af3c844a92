//! In which form each column of a source is written, so that a value comes out as it was in the files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Field, Schema};

use super::{TableFormat, schema_of};
use crate::read::{Chunk, Source};
use crate::types::ColumnType;

/// Marks strings that are JSON values, in the metadata of a field.
pub(super) const JSON_VALUES: &str = "json_values";

/// Marks strings that are what a JSON file has: also numbers that JSON does not have.
pub(super) const OWN_JSON: &str = "own_json";

/// The forms of a source's columns in an output.
pub struct Forms {
    forms: Vec<Form>,
    kinds: Vec<ColumnType>,
    /// Whether a missing value of a file is null, and not the string that means it: JSON has one for it, separated values do not.
    has_nulls: Vec<bool>,
}

enum Form {
    /// In the type that the Parquet files have.
    Stored(DataType),
    /// As the strings of a text file.
    Strings,
    /// As the JSON values that the strings of a text file are.
    JsonValues,
    /// As the JSON values of the file.
    OwnJson,
    /// In the type that it was read as.
    Typed,
}

impl Forms {
    /// `source` keeps its originals: [`Source::with_originals`].
    #[must_use]
    pub fn of(source: &Source, format: TableFormat) -> Self {
        let columns = source.columns();
        let form = |name: &str, kind: ColumnType| match (source.stored_type(name), format) {
            (Some(stored), _) => Form::Stored(stored),
            (None, TableFormat::Parquet) => Form::Typed,
            (None, TableFormat::Separated(_) | TableFormat::Headless(_)) => Form::Strings,
            (None, TableFormat::JsonLines) if source.is_json() => Form::OwnJson,
            (None, TableFormat::JsonLines) => match kind {
                ColumnType::Int | ColumnType::Bool | ColumnType::Null => Form::Typed,
                // JSON has decimal points only.
                ColumnType::Float if source.has_decimal_comma() => Form::Typed,
                ColumnType::Float | ColumnType::List | ColumnType::Object => Form::JsonValues,
                _ => Form::Strings,
            },
        };
        Self {
            forms: columns.iter().map(|column| form(&column.name, column.kind)).collect(),
            kinds: columns.iter().map(|column| column.kind).collect(),
            has_nulls: source
                .files()
                .iter()
                .map(|file| format == TableFormat::JsonLines && file.dialect().is_some())
                .collect(),
        }
    }

    /// The same with decimal points in every number: for a table that gets further columns of numbers.
    #[must_use]
    pub fn with_points(mut self, source: &Source) -> Self {
        if source.has_decimal_comma() {
            for (form, kind) in self.forms.iter_mut().zip(&self.kinds) {
                if matches!(form, Form::Strings) && matches!(kind, ColumnType::Int | ColumnType::Float) {
                    *form = Form::Typed;
                }
            }
        }
        self
    }

    /// Every column in the type that it was read as.
    #[must_use]
    pub fn typed(source: &Source) -> Self {
        let kinds: Vec<ColumnType> = source.columns().iter().map(|column| column.kind).collect();
        let has_nulls = vec![false; source.files().len()];
        Self { forms: kinds.iter().map(|_| Form::Typed).collect(), kinds, has_nulls }
    }

    /// The cells that are written.
    ///
    /// # Panics
    /// Never: the columns are those of one chunk.
    #[must_use]
    pub fn cells(&self, chunk: &Chunk) -> RecordBatch {
        let (typed, originals) = (&chunk.batch, chunk.originals());
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (index, form) in self.forms.iter().enumerate() {
            let from = if matches!(form, Form::Typed) { typed } else { originals };
            fields.push(Arc::clone(&from.schema_ref().fields()[index]));
            let array = from.column(index);
            arrays.push(match form {
                Form::Strings | Form::JsonValues if self.has_nulls[chunk.file] => {
                    with_nulls_of(array, typed.column(index))
                }
                Form::OwnJson => json_texts(array, chunk.marks.strings.get(index)),
                _ => Arc::clone(array),
            });
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of the same rows")
    }

    /// One schema for all cells, from the first of them.
    #[must_use]
    pub fn schema(&self, cells: &RecordBatch) -> Arc<Schema> {
        let typed = schema_of(cells, &self.kinds);
        let marked = |field: &Field, mark: &str| {
            Field::new(field.name(), DataType::Utf8, true)
                .with_metadata(HashMap::from([(mark.to_owned(), String::new())]))
        };
        let field = |(field, form): (&Arc<Field>, &Form)| match form {
            Form::Typed => Field::clone(field),
            Form::Stored(stored) => Field::new(field.name(), stored.clone(), true),
            Form::Strings => Field::new(field.name(), DataType::Utf8, true),
            Form::JsonValues => marked(field, JSON_VALUES),
            Form::OwnJson => marked(field, OWN_JSON),
        };
        Arc::new(Schema::new(typed.fields().iter().zip(&self.forms).map(field).collect::<Vec<_>>()))
    }
}

/// The cells of a JSON file as JSON again.
fn json_texts(array: &ArrayRef, are_strings: Option<&BooleanArray>) -> ArrayRef {
    let (Some(texts), Some(are_strings)) = (array.as_string_opt::<i32>(), are_strings) else {
        return Arc::clone(array);
    };
    let json = |(text, is_string): (Option<&str>, Option<bool>)| {
        text.map(|text| match is_string {
            Some(true) => serde_json::Value::from(text).to_string(),
            _ => text.to_owned(),
        })
    };
    Arc::new(texts.iter().zip(are_strings.iter()).map(json).collect::<StringArray>())
}

/// A column with nulls where the same column as it was read has them.
fn with_nulls_of(array: &ArrayRef, typed: &ArrayRef) -> ArrayRef {
    let Some(nulls) = typed.logical_nulls().filter(|_| *array.data_type() != DataType::Null) else {
        return Arc::clone(array);
    };
    let is_null = BooleanArray::new(!nulls.inner(), None);
    nullif(array, &is_null).expect("columns of the same rows")
}
