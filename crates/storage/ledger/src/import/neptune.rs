//! Neptune: the Parquet files of neptune-exporter, one run in each, a row for every attribute or point of a series.
//!
//! Source: `neptune_exporter/model.py`. Steps are decimals; times are milliseconds.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMillisecondType};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use trackway_core::boundary::contained;

use super::{ForeignEnd, ForeignPoint, ForeignRun, ForeignStore, at_millis, files_below};
use crate::error::LedgerError;

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let mut store = ForeignStore::default();
    let mut runs: BTreeMap<String, ForeignRun> = BTreeMap::new();
    for file in files_below(path, &|name| name.ends_with(".parquet"))? {
        let read = contained(|| read_part(&file, &mut runs).map_err(|error| error.to_string()));
        if let Err(why) = read.unwrap_or_else(|panic| Err(format!("decoding it failed: {panic}"))) {
            store.passed.push((file, why));
        }
    }
    store.runs = runs.into_values().map(ForeignRun::with_times_of_points).collect();
    Ok(store)
}

fn read_part(path: &Path, runs: &mut BTreeMap<String, ForeignRun>) -> Result<(), Box<dyn Error>> {
    for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?.build()? {
        let batch = batch?;
        let rows = Rows::of(&batch)?;
        (0..batch.num_rows()).for_each(|row| rows.take(row, runs));
    }
    Ok(())
}

/// The columns of a batch that are read, in plain types.
struct Rows {
    texts: BTreeMap<&'static str, ArrayRef>,
    step: ArrayRef,
    at: ArrayRef,
    float: ArrayRef,
    set: Option<ArrayRef>,
}

impl Rows {
    fn of(batch: &RecordBatch) -> Result<Self, Box<dyn Error>> {
        let column = |name: &str, kind: DataType| -> Result<ArrayRef, Box<dyn Error>> {
            let missing = || format!("the column `{name}` is missing");
            Ok(cast(batch.column_by_name(name).ok_or_else(missing)?, &kind)?)
        };
        let names = [
            "project_id", "run_id", "attribute_path", "attribute_type", "int_value", "string_value",
            "bool_value", "datetime_value",
        ];
        let texts = names.into_iter().map(|name| Ok((name, column(name, DataType::Utf8)?)));
        Ok(Self {
            texts: texts.collect::<Result<_, Box<dyn Error>>>()?,
            step: column("step", DataType::Int64)?,
            at: column("timestamp", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())))?,
            float: column("float_value", DataType::Float64)?,
            set: batch.column_by_name("string_set_value").cloned(),
        })
    }

    fn text(&self, name: &str, row: usize) -> Option<String> {
        let column = self.texts.get(name)?.as_string::<i32>();
        column.is_valid(row).then(|| column.value(row).to_owned())
    }

    fn take(&self, row: usize, runs: &mut BTreeMap<String, ForeignRun>) {
        let text = |name: &str| self.text(name, row);
        let (Some(project), Some(id), Some(path)) =
            (text("project_id"), text("run_id"), text("attribute_path"))
        else {
            return;
        };
        let key = format!("{project}/{id}");
        let run = runs.entry(key.clone()).or_insert_with(|| ForeignRun {
            key,
            name: id,
            group: Some(project),
            ..ForeignRun::default()
        });
        let float = self.float.as_primitive::<Float64Type>();
        let float = float.is_valid(row).then(|| float.value(row));
        match (text("attribute_type").as_deref(), float) {
            (Some("float_series"), Some(value)) => {
                let step = self.step.as_primitive::<Int64Type>();
                let step = if step.is_valid(row) { u64::try_from(step.value(row)).unwrap_or(0) } else { 0 };
                let at = self.at.as_primitive::<TimestampMillisecondType>();
                let at = at_millis(if at.is_valid(row) { at.value(row) } else { 0 });
                run.metrics.entry(path).or_default().push(ForeignPoint { step, at, value });
            }
            (Some("float"), Some(value)) => take_attribute(run, path, value.to_string()),
            (Some(kind @ ("int" | "string" | "bool" | "datetime")), _) => {
                if let Some(value) = text(&format!("{kind}_value")) {
                    take_attribute(run, path, value);
                }
            }
            (Some("string_set"), _) if path == "sys/tags" => run.tags.extend(self.labels(row)),
            _ => {}
        }
    }

    fn labels(&self, row: usize) -> Vec<(String, String)> {
        let list = self.set.as_ref().and_then(|set| set.as_list_opt::<i32>());
        let Some(list) = list.filter(|list| list.is_valid(row)) else { return Vec::new() };
        let labels = list.value(row);
        let Some(labels) = labels.as_string_opt::<i32>() else { return Vec::new() };
        labels.iter().flatten().map(|label| (label.to_owned(), "true".to_owned())).collect()
    }
}

/// `sys/…` is Neptune's own; everything else is the user's.
fn take_attribute(run: &mut ForeignRun, path: String, value: String) {
    match path.as_str() {
        "sys/name" => run.name = value,
        "sys/owner" => run.owner = Some(value),
        "sys/hostname" => run.host = Some(value),
        "sys/creation_time" => run.started_at = value.parse().ok(),
        "sys/modification_time" => run.ended_at = value.parse().ok(),
        "sys/failed" if value == "true" => run.end = ForeignEnd::Failed,
        "sys/failed" => run.end = ForeignEnd::Completed,
        "source_code/git" => run.git_commit = Some(value),
        _ if path.starts_with("sys/") => {}
        _ => run.parameters.push((path, value)),
    }
}
