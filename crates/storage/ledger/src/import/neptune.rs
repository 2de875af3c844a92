//! Neptune: the Parquet files of neptune-exporter, one run in each, a row for every attribute or point of a series.
//!
//! Source: `neptune_exporter/model.py`. Steps are decimals; times are milliseconds.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimeUnit, TimestampMillisecondType};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use trackway_core::MetricStep;
use trackway_core::boundary::contained;

use super::{
    ForeignEnd, ForeignPoint, ForeignRun, ForeignStore, OmissionKind, at_millis, files_below, note_objects,
};
use crate::error::LedgerError;

/// What the names of Neptune's own attributes begin with.
const OWN: &str = "sys/";

/// What is read of a store.
#[derive(Default)]
struct Reading {
    runs: BTreeMap<String, ForeignRun>,
    /// Values that are no numbers, by their type.
    objects: BTreeMap<String, u64>,
    /// Rows without a project, a run or the name of an attribute.
    nameless: u64,
}

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let found = files_below(path, &|name| name.ends_with(".parquet"))?;
    let mut store = ForeignStore { skipped: found.skipped, ..ForeignStore::default() };
    let mut reading = Reading::default();
    for file in found.files {
        let read = contained(|| read_part(&file, &mut reading).map_err(|error| error.to_string()));
        if let Err(why) = read.unwrap_or_else(|panic| Err(format!("decoding it failed: {panic}"))) {
            store.skipped.add(OmissionKind::File, &file, why, 1);
        }
        let nameless = std::mem::take(&mut reading.nameless);
        let why = "rows that do not name a project, a run and an attribute";
        store.skipped.add(OmissionKind::Value, &file, why, nameless);
    }
    store.runs = reading.runs.into_values().map(ForeignRun::with_times_of_points).collect();
    note_objects(&mut store, path, &reading.objects);
    Ok(store)
}

fn read_part(path: &Path, reading: &mut Reading) -> Result<(), Box<dyn Error>> {
    for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?.build()? {
        let batch = batch?;
        let rows = Rows::of(&batch)?;
        (0..batch.num_rows()).for_each(|row| rows.take(path, row, reading));
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
            step: column("step", DataType::Float64)?,
            at: column("timestamp", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())))?,
            float: column("float_value", DataType::Float64)?,
            set: batch.column_by_name("string_set_value").cloned(),
        })
    }

    fn text(&self, name: &str, row: usize) -> Option<String> {
        let column = self.texts.get(name)?.as_string::<i32>();
        column.is_valid(row).then(|| column.value(row).to_owned())
    }

    fn take(&self, file: &Path, row: usize, reading: &mut Reading) {
        let text = |name: &str| self.text(name, row);
        let (Some(project), Some(id), Some(path)) =
            (text("project_id"), text("run_id"), text("attribute_path"))
        else {
            reading.nameless += 1;
            return;
        };
        let key = format!("{project}/{id}");
        let run = reading.runs.entry(key.clone()).or_insert_with(|| ForeignRun {
            key,
            name: id,
            group: Some(project),
            ..ForeignRun::default()
        });
        let float = self.float.as_primitive::<Float64Type>();
        let float = float.is_valid(row).then(|| float.value(row));
        match (text("attribute_type").as_deref(), float) {
            (Some("float_series"), Some(value)) => {
                let (step, why) = whole_step(number(&self.step, row));
                if let Some(why) = why {
                    run.changed.add(OmissionKind::Value, file, format!("`{path}`: {why}"), 1);
                }
                let at = self.at.as_primitive::<TimestampMillisecondType>();
                let at = at_millis(if at.is_valid(row) { at.value(row) } else { 0 });
                run.metrics.entry(path).or_default().push(ForeignPoint { step, at, value });
            }
            (Some("float"), Some(value)) => take_attribute(run, path, value.to_string()),
            (Some(kind @ ("int" | "string" | "bool" | "datetime")), _) => {
                match text(&format!("{kind}_value")) {
                    Some(value) => take_attribute(run, path, value),
                    None if path.starts_with(OWN) => {}
                    None => {
                        run.skipped.add(OmissionKind::Parameter, file, format!("`{path}` has no value"), 1)
                    }
                }
            }
            (Some("string_set"), _) if path == "sys/tags" => run.tags.extend(self.labels(row)),
            (Some("float_series" | "float"), None) => {
                run.skipped.add(OmissionKind::Value, file, format!("`{path}` has no value"), 1);
            }
            _ if path.starts_with(OWN) => {}
            (kind, _) => *reading.objects.entry(kind.unwrap_or("untyped").to_owned()).or_default() += 1,
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

fn number(column: &ArrayRef, row: usize) -> Option<f64> {
    let column = column.as_primitive::<Float64Type>();
    column.is_valid(row).then(|| column.value(row))
}

/// The step below a decimal one, and what is changed by that.
fn whole_step(step: Option<f64>) -> (MetricStep, Option<&'static str>) {
    match step {
        None => (0, Some("values without a step are at step 0")),
        Some(step) if step.fract() != 0.0 => {
            (step.floor() as MetricStep, Some("decimal steps are rounded down"))
        }
        Some(step) => (step as MetricStep, None),
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
        _ if path.starts_with(OWN) => {}
        _ => run.parameters.push((path, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a decimal step is rounded down, below 0 too, and that this and a missing step are noted.
    #[test]
    fn steps_are_whole() {
        assert_eq!((whole_step(Some(3.0)), whole_step(Some(-1.0))), ((3, None), (-1, None)));
        let steps = [Some(2.5), Some(-0.5), None].map(whole_step);
        assert_eq!(steps.map(|(step, _)| step), [2, -1, 0]);
        assert!(steps.iter().all(|(_, why)| why.is_some()));
    }
}
