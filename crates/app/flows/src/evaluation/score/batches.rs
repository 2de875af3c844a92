//! Rows in their order through the scoring command, batch by batch.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use trackway_api::models::PredictionKind;
use trackway_core::Clock;
use trackway_data::model::{Cells, FrameColumn};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::debug::Unscored;
use trackway_evaluate::latency::BatchTime;
use trackway_evaluate::spellings::{agreement, in_several_forms, shown};
use trackway_tables::ColumnType;
use trackway_tables::pass::{Pass, PassObserver, default_units_in_flight, scan};
use trackway_tables::read::{Chunk, Source};
use trackway_tables::write::{Forms, TableFile, TableFormat, fitted, schema_of};

use super::answers::Answers;
use super::labels::CLASSES_MAX;
use super::outputs::write_error;
use super::request::{ModelInput, ScoreRequest};
use crate::data::table::data_error;
use crate::evaluation::scoring::{PATIENCE_SECONDS, Scorer, ScoringCommand};

/// What is scored, and where progress is reported.
pub(super) struct Asking<'a> {
    pub base: &'a Path,
    pub request: &'a ScoreRequest,
    pub given: &'a ModelInput,
    /// All classes of the label, where it has classes and the model says which.
    pub label_classes: Option<Vec<String>>,
    /// Whether the label is a number: then numbers may be a regression's.
    pub label_is_number: bool,
    pub table: (&'a Path, TableFormat),
    /// Rows that are scored.
    pub rows_max: u64,
    pub cancelled: &'a AtomicBool,
    /// Measures how long each batch takes.
    pub clock: &'a dyn Clock,
    pub on_rows: &'a (dyn Fn(u64, u64) + Sync),
}

/// What was answered.
pub(super) struct ScoredBatches {
    pub rows: u64,
    pub times: Vec<BatchTime>,
    pub kind: PredictionKind,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Reads `source` once more and has every row scored. Units of it are read ahead, as many as may be in flight; the
/// model scores one batch at a time.
pub(super) fn answer_all(
    source: Source,
    asking: &Asking<'_>,
    answers: Answers,
) -> Result<ScoredBatches, AppError> {
    let columns = source.columns().to_vec();
    // With a guess, a wider type would begin the scan, and the questions, again.
    let mut source = source.with_columns(columns).map_err(data_error)?.with_originals();
    let forms = Forms::of(&source, asking.table.1).with_points(&source);
    let enough = AtomicBool::new(false);
    let scorer_of_batches = BatchScorer {
        asking,
        forms: &forms,
        answers,
        batches: None,
        scorer: None,
        file: None,
        taken: 0,
        done: ScoredBatches { rows: 0, times: Vec::new(), kind: PredictionKind::Numbers, notes: Vec::new() },
        said: BTreeSet::new(),
        failure: None,
        enough: &enough,
    };
    let scorer_of_batches = Mutex::new(scorer_of_batches);
    let watch =
        PassObserver { progress: &|_, _| {}, cancelled: &enough, units_in_flight: default_units_in_flight() };
    let scanned = scan(
        &mut source,
        &|_: &Source| Rows { waiting: Vec::new(), forms: &forms, scorer_of_batches: &scorer_of_batches },
        &watch,
    )
    .map(drop);
    let scorer_of_batches = scorer_of_batches.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (scorer_of_batches.failure, scanned) {
        (Some(error), _) => Err(error),
        (None, Err(error)) if !enough.load(Ordering::Relaxed) => Err(data_error(error)),
        (None, _) => BatchScorer { failure: None, ..scorer_of_batches }.finish(),
    }
}

/// The rows of a unit, until it is its turn.
struct Rows<'d, 'a> {
    /// As they are read, for the model, and as they are written.
    waiting: Vec<[RecordBatch; 2]>,
    forms: &'d Forms,
    scorer_of_batches: &'d Mutex<BatchScorer<'a>>,
}

impl Pass for Rows<'_, '_> {
    fn observe(&mut self, chunk: &Chunk) {
        self.waiting.push([chunk.batch.clone(), self.forms.cells(chunk)]);
    }

    fn merge(&mut self, later: Self) {
        let mut scorer_of_batches = self.scorer_of_batches.lock().unwrap_or_else(PoisonError::into_inner);
        later.waiting.iter().for_each(|rows| scorer_of_batches.take(rows));
    }
}

struct BatchScorer<'a> {
    asking: &'a Asking<'a>,
    /// How the columns of the table are written: each value as it is in the files.
    forms: &'a Forms,
    answers: Answers,
    /// Cut rows into batches, as they are read and as they are written; there from the first row on.
    batches: Option<[BatchCoalescer; 2]>,
    scorer: Option<Scorer<'a>>,
    /// There from the first answer on.
    file: Option<(TableFile, Arc<Schema>)>,
    taken: u64,
    done: ScoredBatches,
    /// Classes that were predicted, as far as they are looked at.
    said: BTreeSet<String>,
    failure: Option<AppError>,
    /// Set to end the reading.
    enough: &'a AtomicBool,
}

impl BatchScorer<'_> {
    fn take(&mut self, rows: &[RecordBatch; 2]) {
        if !self.enough.load(Ordering::Relaxed) {
            self.failure = self.try_take(rows).err();
            if self.failure.is_some() || self.taken == self.asking.rows_max {
                self.enough.store(true, Ordering::Relaxed);
            }
        }
    }

    fn try_take(&mut self, [read, written]: &[RecordBatch; 2]) -> Result<(), AppError> {
        let left = self.asking.rows_max - self.taken;
        let row_count = usize::try_from(left).unwrap_or(usize::MAX).min(read.num_rows());
        self.taken += row_count as u64;
        let batches = self.batches.get_or_insert_with(|| {
            let kinds: Vec<ColumnType> = self.asking.given.columns.iter().map(|it| it.kind).collect();
            [schema_of(read, &kinds), self.forms.schema(written)]
                .map(|schema| BatchCoalescer::new(schema, self.asking.request.batch_rows))
        });
        for (rows, batches) in [read, written].into_iter().zip(batches) {
            let rows = fitted(&rows.slice(0, row_count), &batches.schema()).map_err(unfit)?;
            batches.push_batch(rows).map_err(unfit)?;
        }
        self.ask_all()
    }

    fn finish(mut self) -> Result<ScoredBatches, AppError> {
        for batches in self.batches.iter_mut().flatten() {
            batches.finish_buffered_batch().map_err(unfit)?;
        }
        self.ask_all()?;
        self.compare_classes()?;
        let (file, _) = self.file.expect("there is a row, and so an answer");
        file.finish().map_err(write_error)?;
        Ok(self.done)
    }

    /// Whether labels and predictions have classes in common: else the table would be one of which no number means anything.
    fn compare_classes(&mut self) -> Result<(), AppError> {
        let Some(labels) = &self.asking.label_classes else { return Ok(()) };
        if self.said.len() > CLASSES_MAX {
            return Ok(());
        }
        let predictions: Vec<String> = self.said.iter().cloned().collect();
        let found = agreement(labels, &predictions);
        if found.is_disjoint {
            let label = self.asking.request.label.as_deref().unwrap_or_default();
            let (labels, predictions) = (shown(labels), shown(&predictions));
            let message = format!(
                "the label `{label}` and what the model predicts have no class in common: labels {labels}; predictions {predictions}"
            );
            let action = "let the model answer with the label's classes, or with the probability of the one that --positive names";
            // Numbers may be scores of a class, which only a reader knows.
            if self.done.kind == PredictionKind::Classes {
                return Err(AppError::new(ErrorKind::Usage, message).hint(action));
            }
            self.done.notes.push(format!("{message}; {action}"));
            return Ok(());
        }
        self.done.notes.extend(found.notes());
        self.done.notes.extend(in_several_forms(labels));
        Ok(())
    }

    /// Adds the classes of a batch of answers.
    fn hear(&mut self, answered: &Cells) {
        let is_of_classes = matches!(answered, Cells::Categories { .. }) || !self.asking.label_is_number;
        if self.asking.label_classes.is_none() || !is_of_classes || self.said.len() > CLASSES_MAX {
            return;
        }
        match answered {
            Cells::Categories { names, .. } => self.said.extend(names.iter().cloned()),
            Cells::Numbers(numbers) => {
                self.said.extend(numbers.iter().take(CLASSES_MAX + 1).map(f64::to_string));
            }
        }
    }

    fn ask_all(&mut self) -> Result<(), AppError> {
        while let Some([read, written]) = self.batches.as_mut().and_then(next_of_both) {
            self.ask(&read, &written)?;
        }
        Ok(())
    }

    /// Gets predictions of rows, and writes them beside the same rows in the form of the file.
    fn ask(&mut self, batch: &RecordBatch, written: &RecordBatch) -> Result<(), AppError> {
        let Asking { base, request, given, cancelled, .. } = *self.asking;
        if cancelled.load(Ordering::Relaxed) {
            return Err(self.unanswered(Unscored::Cancelled, batch.num_rows()));
        }
        let column = |index: &usize| FrameColumn::of(&given.columns[*index], batch.column(*index));
        let features: Vec<FrameColumn> = given.indexes.iter().filter_map(column).collect();
        let asked = ScoringCommand {
            command: &request.command,
            format: request.format,
            gradients: false,
            patience_seconds: PATIENCE_SECONDS,
            keeps_errors: false,
        };
        let scorer = self.scorer.get_or_insert_with(|| Scorer::new(base, asked, &features, cancelled));
        let began_micros = self.asking.clock.monotonic_micros();
        let answered = scorer.score(&features);
        let seconds = (self.asking.clock.monotonic_micros() - began_micros) as f64 / 1e6;
        let answered = answered.map_err(|why| self.unanswered(why, batch.num_rows()))?;
        self.hear(&answered);
        let label = request.label.as_ref().and_then(|label| batch.column_by_name(label));
        let label = label.map_or(DataType::Utf8, |label| label.data_type().clone());
        let said = self.answers.columns(&answered, &label);
        let said = said.map_err(|why| self.unscored(ErrorKind::Usage, &why, batch.num_rows()))?;
        self.done.kind = self.answers.kind(&answered);
        self.done.times.push(BatchTime { rows: batch.num_rows(), seconds });
        let named = written.schema();
        let fields = said.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false));
        let fields: Vec<Field> =
            named.fields().iter().map(|field| field.as_ref().clone()).chain(fields).collect();
        let columns = written.columns().iter().cloned().chain(said.into_iter().map(|(_, array)| array));
        let (file, schema) = match &mut self.file {
            Some(file) => file,
            None => {
                let (path, format) = self.asking.table;
                let schema = Arc::new(Schema::new(fields));
                let file = TableFile::create(path, format, &schema).map_err(write_error)?;
                self.file.insert((file, schema))
            }
        };
        let rows = RecordBatch::try_new(Arc::clone(schema), columns.collect()).map_err(unfit)?;
        file.write(&rows).map_err(write_error)?;
        self.done.rows += batch.num_rows() as u64;
        (self.asking.on_rows)(self.done.rows, self.asking.rows_max);
        Ok(())
    }

    fn unanswered(&self, why: Unscored, rows: usize) -> AppError {
        match why {
            Unscored::Cancelled => AppError::new(ErrorKind::Cancelled, "interrupted"),
            Unscored::Refused(why) if rows > 1 => self
                .unscored(ErrorKind::Usage, &format!("refused: {why}"), rows)
                .hint("`--batch-rows 1` finds the row"),
            Unscored::Refused(why) => self.unscored(ErrorKind::Usage, &format!("refused: {why}"), rows),
            // Another try may succeed.
            Unscored::Failed(why) => self.unscored(ErrorKind::Fault, &format!("did not answer: {why}"), rows),
        }
    }

    /// `why` continues "rows 1 to 256: the model".
    fn unscored(&self, kind: ErrorKind, why: &str, rows: usize) -> AppError {
        let (first, last) = (self.done.rows + 1, self.done.rows + rows as u64);
        let place = if first == last { format!("row {first}") } else { format!("rows {first} to {last}") };
        AppError::new(kind, format!("{place}: the model {why}"))
            .hint("docs/scoring.md describes what a scoring command must do")
    }
}

/// The next batch of each: they are of the same rows, since both are cut after as many.
fn next_of_both([read, written]: &mut [BatchCoalescer; 2]) -> Option<[RecordBatch; 2]> {
    Some([read.next_completed_batch()?, written.next_completed_batch()?])
}

fn unfit(error: ArrowError) -> AppError {
    AppError::new(ErrorKind::Usage, "the rows do not fit their columns").because(error)
}
