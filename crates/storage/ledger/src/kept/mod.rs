//! Rows as files: what a home keeps of its receipts beside the ledger, so that a ledger that was lost can be made again
//! with the same digests.
//!
//! Rows pass the door for text before they are kept, as they do before a database gets them. A value is written by the
//! kind of its column: text, JSON, reals and timestamps so that they are read bit for bit.

mod restoring;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use trackway_core::{AttemptId, RunId, Timestamp};

use self::restoring::Restoring;
use crate::backend::{Backend, column_list};
use crate::changes::note_changes;
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::receipts::seal::AttemptSeal;
use crate::receipts::verify::{Proof, Stays, proof_of};
use crate::records::{
    AttemptDataRow, AttemptRow, DataSnapshotRow, DetectionRow, EvaluationRow, LAUNCHES, ModelChangeRow,
    ModelRow, ModelVersionRow, NoticeRow, OutboxRow, RunDataRow, RunRow, Subject, SubjectKind, TABLES, VIEWS,
};
use crate::text::StoredText;
use crate::value::{Column, ColumnKind, Field as _, Record, Table, Value};
use crate::writing::evaluations::EvaluationEnd;

/// The version of the files.
const VERSION: u32 = 1;

/// Rows of several tables, as a file holds them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptRows {
    version: u32,
    rows: Vec<KeptRow>,
    /// BLAKE3 of the files of a sealed attempt, by their paths below the home.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, String>,
    /// Whether a receipt was kept at some time after it was sealed, from the rows of a ledger: it has no hashes of files then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    later: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeptRow {
    table: String,
    values: Map<String, Json>,
}

/// An attempt in a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAttempt {
    pub attempt_id: AttemptId,
    pub run_id: RunId,
    /// Its folder, as it was when it was launched.
    pub log_directory: String,
    /// Whether its receipt is sealed.
    pub sealed: bool,
}

/// What restoring kept rows did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoredRows {
    /// Whether a row was added, or one that the ledger had from before got what is newer.
    pub added: bool,
    /// Rows that the ledger has otherwise, a sentence each. They stay as the ledger has them.
    pub differs: Vec<String>,
}

impl Default for KeptRows {
    fn default() -> Self {
        Self { version: VERSION, rows: Vec::new(), files: BTreeMap::new(), later: false }
    }
}

impl KeptRows {
    /// Rows of one table.
    #[must_use]
    pub fn of<'r, R: Record + 'r>(rows: impl IntoIterator<Item = &'r R>) -> Self {
        Self::default().and(rows)
    }

    /// These rows and those of another table.
    #[must_use]
    pub fn and<'r, R: Record + 'r>(mut self, rows: impl IntoIterator<Item = &'r R>) -> Self {
        self.rows.extend(rows.into_iter().map(|row| kept_row(row.table(), row.values())));
        self
    }

    /// These rows, and with them the hashes of files by their paths below the home.
    #[must_use]
    pub fn with_files(self, files: BTreeMap<String, String>) -> Self {
        Self { files, ..self }
    }

    /// BLAKE3 of the files of a sealed attempt, by their paths below the home.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Whether a receipt was kept at some time after it was sealed: what the attempt's files were then is not known.
    #[must_use]
    pub fn is_later(&self) -> bool {
        self.later
    }

    /// A new run with the data sets it reads.
    #[must_use]
    pub fn of_run(run: &RunRow, data: &[RunDataRow], snapshots: &[DataSnapshotRow]) -> Self {
        Self::of(snapshots).and([run]).and(data)
    }

    /// An attempt that was launched, with the data sets that it reads.
    #[must_use]
    pub fn of_launch(attempt: &AttemptRow, data: &[AttemptDataRow], snapshots: &[DataSnapshotRow]) -> Self {
        Self::of(snapshots).and([attempt]).and(data)
    }

    fn of_receipt(seal: &AttemptSeal, sealed_at: Timestamp, detections: &[DetectionRow]) -> Self {
        Self::of([&seal.sealed_attempt(sealed_at)])
            .and(&seal.run)
            .and(&seal.metric_summaries)
            .and(&seal.parameters)
            .and(&seal.tags)
            .and(&seal.artifacts)
            .and(&seal.segments)
            .and(&seal.costs)
            .and(&seal.events)
            .and(&seal.checkpoints)
            .and(&seal.rung)
            .and(&seal.decision)
            .and(detections)
    }

    /// A notice and how far its delivery is.
    #[must_use]
    pub fn of_notice(notice: &NoticeRow, delivery: &OutboxRow) -> Self {
        Self::of([notice]).and([delivery])
    }

    /// The notice among them, with its delivery; none: they are of something else.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when a row is not what its table holds.
    pub fn notice(&self) -> Result<Option<(NoticeRow, OutboxRow)>, LedgerError> {
        let (notice, delivery): (Option<NoticeRow>, Option<OutboxRow>) =
            (self.rows_of()?.pop(), self.rows_of()?.pop());
        Ok(notice.zip(delivery))
    }

    fn of_evaluation(end: &EvaluationEnd) -> Self {
        let receipt_sha256 = Some(end.receipt_sha256());
        Self::of([&EvaluationRow { receipt_sha256, ..end.evaluation.clone() }])
            .and(&end.metrics)
            .and(&end.slices)
            .and(&end.gate_receipt)
    }

    /// A change of a model, the state of the model after it, and the version it registers.
    #[must_use]
    pub fn of_change(
        change: &ModelChangeRow,
        standing: &ModelRow,
        version: Option<&ModelVersionRow>,
    ) -> Self {
        Self::of([change]).and([standing]).and(version)
    }

    fn all<R: Record>(&self, table: &Table) -> Result<Vec<R>, LedgerError> {
        let rows = self.rows.iter().filter(|row| row.table == table.name);
        rows.map(|row| R::from_values(row.values_of(table)?).map_err(|why| damaged(table, &why))).collect()
    }

    /// The attempts, sealed or not.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when a row is not what its table holds.
    pub fn attempts(&self) -> Result<Vec<AttemptRow>, LedgerError> {
        let mut found = self.all(AttemptRow::TABLE)?;
        found.extend(self.all::<AttemptRow>(LAUNCHES)?);
        Ok(found)
    }

    fn seal_of(&self, attempt: &AttemptRow) -> Result<AttemptSeal, LedgerError> {
        Ok(AttemptSeal {
            metric_summaries: self.rows_of()?,
            parameters: self.rows_of()?,
            tags: self.rows_of()?,
            artifacts: self.rows_of()?,
            segments: self.rows_of()?,
            costs: self.rows_of()?,
            events: self.rows_of()?,
            checkpoints: self.rows_of()?,
            run: self.rows_of()?.pop(),
            rung: self.rows_of()?.pop(),
            ..AttemptSeal::of(attempt.clone())
        })
    }

    fn rows_of<R: Record>(&self) -> Result<Vec<R>, LedgerError> {
        self.all(R::TABLE)
    }

    /// What the rows are about, as far as they name a run, a model or another subject, each once, with the first table of each.
    fn changed(&self) -> Result<Vec<(&'static Table, Subject)>, LedgerError> {
        let mut found: Vec<(&'static Table, Subject)> = Vec::new();
        for row in &self.rows {
            let table = table_named(&row.table)?;
            let word = |column: &str| row.values.get(column).and_then(Json::as_str);
            let kind = word("subject_kind").and_then(|kind| kind.parse().ok());
            let named = [
                ("run_id", Some(SubjectKind::Run)),
                ("model", Some(SubjectKind::Model)),
                ("subject_id", kind),
            ];
            let subject =
                named.into_iter().find_map(|(column, kind)| Some(Subject::new(kind?, word(column)?)));
            let is_new = |subject: &Subject| found.iter().all(|(_, known)| known != subject);
            found.extend(subject.filter(is_new).map(|subject| (table, subject)));
        }
        Ok(found)
    }

    fn end_of(&self, ended: &EvaluationRow) -> Result<EvaluationEnd, LedgerError> {
        Ok(EvaluationEnd {
            evaluation: EvaluationRow { receipt_sha256: None, ..ended.clone() },
            metrics: self.rows_of()?,
            slices: self.rows_of()?,
            gate_receipt: None,
        })
    }

    /// The receipts among them that do not have the digest they were sealed with.
    fn other_digests(&self) -> Result<Vec<String>, LedgerError> {
        let mut found = Vec::new();
        for attempt in self.attempts()?.iter().filter(|attempt| attempt.receipt_sha256.is_some()) {
            if Some(self.seal_of(attempt)?.receipt_sha256()) != attempt.receipt_sha256 {
                found.push(format!(
                    "the kept receipt of {} has another digest than was sealed",
                    attempt.attempt_id
                ));
            }
        }
        for ended in self.rows_of::<EvaluationRow>()?.iter().filter(|row| row.receipt_sha256.is_some()) {
            if Some(self.end_of(ended)?.receipt_sha256()) != ended.receipt_sha256 {
                found.push(format!(
                    "the kept receipt of {} has another digest than was sealed",
                    ended.evaluation_id
                ));
            }
        }
        Ok(found)
    }
}

impl Ledger {
    /// The rows as this ledger holds them: without secrets, and with strings that both databases accept.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when a row is not what its table holds.
    pub fn kept(&self, rows: &KeptRows) -> Result<KeptRows, LedgerError> {
        let backend = self.backend();
        let through = |row: &KeptRow| -> Result<KeptRow, LedgerError> {
            let table = table_named(&row.table)?;
            let stored = backend.door().row(table, row.values_of(table)?).into_iter();
            let values = stored.map(|value| value.map(StoredText::into_string)).collect();
            Ok(kept_row(table, values))
        };
        let (files, later) = (rows.files.clone(), rows.later);
        let rows = rows.rows.iter().map(through).collect::<Result<_, _>>()?;
        Ok(KeptRows { version: VERSION, rows, files, later })
    }

    /// A sealed receipt as it is kept, with the decision that followed and what detectors found.
    ///
    /// # Errors
    /// As [`Ledger::kept`].
    pub fn kept_receipt(
        &self,
        seal: &AttemptSeal,
        sealed_at: Timestamp,
        detections: &[DetectionRow],
    ) -> Result<KeptRows, LedgerError> {
        let seal = seal.as_stored(&self.backend())?;
        // They follow from the receipt: one that is kept without them loses nothing.
        let charges = self.charges_of_attempt(seal.attempt.attempt_id).unwrap_or_default();
        self.kept(&KeptRows::of_receipt(&seal, sealed_at, detections).and(&charges))
    }

    /// A receipt that was sealed and not kept, from the rows as they are now; `None`: there is none. Its digest shows
    /// that the rows which are sealed with it are those of the seal. What changes of a run is there for its last
    /// attempt.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when the rows have another digest than was sealed; as [`Ledger::kept`].
    pub fn kept_later(&self, attempt_id: AttemptId) -> Result<Option<KeptRows>, LedgerError> {
        let attempt = self.attempt(attempt_id)?;
        let Some((attempt, sealed_at)) = attempt.and_then(|row| row.sealed_at.map(|at| (row, at))) else {
            return Ok(None);
        };
        let (run_id, number, sealed) =
            (attempt.run_id, attempt.attempt_number, attempt.receipt_sha256.clone());
        let Some(mut seal) = self.seals_of(vec![attempt])?.pop() else { return Ok(None) };
        // Before it is kept: a copy of changed rows would pass for what was sealed.
        if Some(seal.receipt_sha256()) != sealed {
            let why = format!("the rows of {attempt_id} have another digest than was sealed");
            return Err(self.backend().refuse("keeping a receipt", why));
        }
        seal.events = self.events_of_attempt(attempt_id)?;
        seal.checkpoints = self.checkpoints_of_run(run_id)?;
        seal.checkpoints.retain(|row| row.attempt_id == attempt_id);
        seal.run = self.run(run_id)?.filter(|run| run.attempt_count <= number);
        seal.rung = self.rungs_of_run(run_id)?.into_iter().find(|row| row.last_attempt_id == attempt_id);
        seal.decision = self.retries_after(&[attempt_id])?.pop();
        let detections = self.detections_of_attempt(attempt_id)?;
        let charges = self.charges_of_attempt(attempt_id)?;
        let rows = KeptRows::of_receipt(&seal, sealed_at, &detections).and(&charges);
        self.kept(&KeptRows { later: true, ..rows }).map(Some)
    }

    /// An evaluation that ended, as it is kept.
    ///
    /// # Errors
    /// As [`Ledger::kept`].
    pub fn kept_evaluation(&self, end: &EvaluationEnd) -> Result<KeptRows, LedgerError> {
        let end = end.as_stored(&self.backend())?;
        self.kept(&KeptRows::of_evaluation(&end))
    }

    /// Puts kept rows back, durably. What the ledger has already stays as it is: the same row again changes nothing, and of another row
    /// under its key the answer says so. Where there is an error, nothing was put back.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when a receipt does not have the digest that it was sealed with, or a row is damaged.
    pub fn restore(&self, kept: &KeptRows) -> Result<RestoredRows, LedgerError> {
        if kept.version > VERSION {
            return Err(LedgerError::Query(format!(
                "rows of version {} are newer than this program",
                kept.version
            )));
        }
        self.backend().transaction(true, |backend| {
            let mut restoring = Restoring { backend, kept, restored: RestoredRows::default() };
            restoring.all()?;
            let restored = restoring.restored;
            if restored.added {
                note_changes(backend, &kept.changed()?)?;
            }
            Ok(restored)
        })
    }

    /// What of kept rows this ledger lacks or has otherwise, a sentence each. Of rows that change, only what stays counts; rows that are
    /// sealed with an attempt or an evaluation are compared by its digest.
    ///
    /// # Errors
    /// When the ledger cannot be read at all.
    pub fn differences(&self, kept: &KeptRows) -> Result<Vec<String>, LedgerError> {
        let mut found = kept.other_digests()?;
        let mut backend = self.backend();
        for row in &kept.rows {
            let table = table_named(&row.table)?;
            if let Proof::Copies(stays) = proof_of(table) {
                found.extend(difference(&mut backend, table, stays, &row.values_of(table)?)?);
            }
        }
        Ok(found)
    }

    /// Every attempt of any kind, by id.
    pub fn known_attempts(&self) -> Result<Vec<KnownAttempt>, LedgerError> {
        let (mut backend, doing) = (self.backend(), "listing attempts");
        let kinds = [ColumnKind::Text, ColumnKind::Text, ColumnKind::Text, ColumnKind::Timestamp];
        let mut found = Vec::new();
        for table in [AttemptRow::TABLE, LAUNCHES] {
            let columns = "attempt_id, run_id, log_directory, sealed_at";
            let sql = format!("SELECT {columns} FROM {} ORDER BY attempt_id", table.name);
            for row in backend.rows(doing, &sql, &[], &kinds)? {
                found.push(known(row).map_err(backend.fault(doing))?);
            }
        }
        Ok(found)
    }

    /// The ids of all evaluations.
    pub fn evaluation_ids(&self) -> Result<Vec<String>, LedgerError> {
        let sql = "SELECT evaluation_id FROM evaluations ORDER BY evaluation_id";
        texts(&mut self.backend(), "listing evaluations", sql)
    }

    /// Reads the structure of a SQLite file; a server does so by itself.
    ///
    /// # Errors
    /// [`LedgerError::Database`] with the first damage.
    pub fn check_integrity(&self) -> Result<(), LedgerError> {
        let mut backend = self.backend();
        if !matches!(*backend, Backend::Sqlite(_)) {
            return Ok(());
        }
        let doing = "checking its structure";
        let reports = texts(&mut backend, doing, "PRAGMA quick_check(1)")?;
        let damage = reports.into_iter().find(|report| report != "ok");
        damage.map_or(Ok(()), |why| Err(backend.fault(doing)(why)))
    }

    /// How many data sets have files of which the ledger has no list: one that was made again from copies has none.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn data_without_files(&self) -> Result<u64, LedgerError> {
        let listed = "SELECT 1 FROM data_snapshot_files f WHERE f.data_sha256 = s.data_sha256";
        let sql = format!(
            "SELECT data_sha256 FROM data_snapshots s WHERE file_count > 0 AND NOT EXISTS ({listed})"
        );
        Ok(texts(&mut self.backend(), "looking for lists of files", &sql)?.len() as u64)
    }

    /// Whether the ledger holds no run at all.
    pub fn is_empty(&self) -> Result<bool, LedgerError> {
        Ok(texts(&mut self.backend(), "looking for runs", "SELECT run_id FROM runs LIMIT 1")?.is_empty())
    }
}

fn known(values: Vec<Value>) -> Result<KnownAttempt, String> {
    let mut values = values.into_iter();
    let mut next = || values.next().unwrap_or(Value::Null);
    Ok(KnownAttempt {
        attempt_id: AttemptId::from_value(next())?,
        run_id: RunId::from_value(next())?,
        log_directory: Option::from_value(next())?.unwrap_or_default(),
        sealed: next() != Value::Null,
    })
}

/// What of a kept row the ledger lacks or has otherwise.
fn difference(
    backend: &mut Backend,
    table: &Table,
    stays: Stays,
    kept: &[Value],
) -> Result<Option<String>, LedgerError> {
    let keys = keys_of(table, kept);
    let filter: Vec<String> = keys.iter().map(|(column, _)| format!("{} = ?", column.name)).collect();
    let values: Vec<Value> = keys.iter().map(|(_, value)| (*value).clone()).collect();
    let kinds: Vec<ColumnKind> = table.columns.iter().map(|column| column.kind).collect();
    let sql = format!("SELECT {} FROM {} WHERE {}", column_list(table), table.name, filter.join(" AND "));
    let subject = subject_of(table, kept);
    let stored = match backend.rows("comparing kept rows", &sql, &values, &kinds) {
        Ok(stored) => stored.into_iter().next(),
        Err(error) if error.is_about_rows() => return Ok(Some(format!("{subject} cannot be read: {error}"))),
        Err(error) => return Err(error),
    };
    let Some(stored) = stored else { return Ok(Some(format!("{subject} is not in the ledger"))) };
    Ok(changed(table, stays, kept, &stored))
}

/// What of a row in the ledger should have stayed and has another value than was kept.
fn changed(table: &Table, stays: Stays, kept: &[Value], stored: &[Value]) -> Option<String> {
    let mut columns = table.columns.iter().zip(kept.iter().zip(stored));
    let found = columns.find(|(column, (kept_one, stored_one))| {
        kept_one != stored_one && stays.holds_for(table, column.name, kept, stored)
    });
    let (column, _) = found?;
    Some(format!("{} has another `{}` than was kept", subject_of(table, kept), column.name))
}

/// The columns that name a row, with their values.
fn keys_of<'v>(table: &Table, values: &'v [Value]) -> Vec<(&'static Column, &'v Value)> {
    let columns = table.columns.iter().zip(values);
    columns.filter(|(column, _)| table.key.contains(&column.name)).collect()
}

/// A row as sentences name it.
fn subject_of(table: &Table, values: &[Value]) -> String {
    let keys = keys_of(table, values).into_iter();
    let keys = keys.map(|(column, value)| format!("{} {}", column.name, to_json(value.clone())));
    let keys: Vec<String> = keys.collect();
    format!("the row of `{}` with {}", table.name, keys.join(", "))
}

/// What a query of one column finds.
fn texts(backend: &mut Backend, doing: &str, sql: &str) -> Result<Vec<String>, LedgerError> {
    let rows = backend.rows(doing, sql, &[], &[ColumnKind::Text])?;
    Ok(rows.into_iter().flatten().filter_map(|value| String::from_value(value).ok()).collect())
}

impl KeptRow {
    /// The values in the order of the columns.
    fn values_of(&self, table: &Table) -> Result<Vec<Value>, LedgerError> {
        let value = |column: &Column| from_json(self.values.get(column.name), column.kind);
        table.columns.iter().map(value).collect::<Result<_, _>>().map_err(|why| damaged(table, &why))
    }
}

fn kept_row(table: &Table, values: Vec<Value>) -> KeptRow {
    let columns = table.columns.iter().zip(values);
    let values = columns
        .filter(|(_, value)| *value != Value::Null)
        .map(|(column, value)| (column.name.to_owned(), to_json(value)))
        .collect();
    KeptRow { table: table.name.into(), values }
}

fn table_named(name: &str) -> Result<&'static Table, LedgerError> {
    let known = TABLES.iter().chain(VIEWS).find(|table| table.name == name);
    known.copied().ok_or_else(|| LedgerError::Query(format!("`{name}` is not a table of the ledger")))
}

fn damaged(table: &Table, why: &str) -> LedgerError {
    LedgerError::Integrity {
        location: "kept rows".into(),
        doing: format!("reading a row of {}", table.name),
        why: why.into(),
    }
}

fn to_json(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Text(text) => text.into(),
        Value::Integer(number) => number.into(),
        // As a string: not every reader of JSON keeps the last bit.
        Value::Real(number) => format!("{number:?}").into(),
        Value::Boolean(truth) => truth.into(),
        Value::Timestamp(at) => at.as_micros().into(),
    }
}

fn from_json(json: Option<&Json>, kind: ColumnKind) -> Result<Value, String> {
    let unfit = |json: &Json| format!("{json} is not a valid {}", kind.title());
    Ok(match (json, kind) {
        (None | Some(Json::Null), _) => Value::Null,
        (Some(Json::String(text)), ColumnKind::Text | ColumnKind::Json | ColumnKind::Word) => {
            Value::Text(text.clone())
        }
        (Some(json @ Json::String(text)), ColumnKind::Real) => {
            Value::Real(text.parse().map_err(|_| unfit(json))?)
        }
        (Some(Json::Bool(truth)), ColumnKind::Boolean) => Value::Boolean(*truth),
        (Some(json), ColumnKind::Integer) => Value::Integer(json.as_i64().ok_or_else(|| unfit(json))?),
        (Some(json), ColumnKind::Timestamp) => {
            Value::Timestamp(Timestamp::from_micros(json.as_i64().ok_or_else(|| unfit(json))?))
        }
        (Some(json), _) => return Err(unfit(json)),
    })
}
