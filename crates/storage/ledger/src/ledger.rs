//! Opening a ledger, and writing to it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trackway_core::{AttemptId, LaunchKind, RunId, Step, Timestamp};
use trackway_redact::Redactor;

use crate::backend::{Backend, Bounds, Connect, Connection, Pool, PostgresBackend, SqliteBackend};
use crate::changes::{insert_event, must_know, note_change};
use crate::clauses::Clauses;
use crate::error::{ErrorKind, LedgerError};
use crate::leases::{Leases, check_epoch};
use crate::records::{
    AmendmentRow, AttemptDataRow, AttemptRow, AttemptState, CheckpointRow, DataSnapshotFileRow,
    DataSnapshotRow, DetectionRow, DiagnosisRow, DriftResultRow, EventRow, LAUNCHES, PreflightCheckRow,
    ResumeProofRow, RetryRow, RollBackRow, RunDataRow, RunRow, Subject, SubjectEventRow, SubjectKind,
};
use crate::text::TextFilter;
use crate::value::{ColumnKind, Field, Record, Table, Value};

/// How long a writer waits for others, of which there are as many as runs that start at once, unless [`OpenOptions`] sets it.
pub const BUSY_TIMEOUT_MILLIS: u64 = 60_000;

/// How often a connection that is lost while a ledger is opened is made again.
const OPEN_TRIES: u32 = 25;
/// The pause between two of these.
const OPEN_PAUSE: Duration = Duration::from_millis(200);

/// How to open a ledger.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// How long a writer waits for another one before it gives up with [`LedgerError::Locked`].
    pub busy_timeout_millis: u64,
    /// Takes the secrets out of every text before it is stored.
    pub redactor: Arc<Redactor>,
    /// Connections to PostgreSQL while threads work at once, 1 or more. SQLite has one.
    pub connections_max: usize,
    /// Connections to PostgreSQL that stay open while idle, 1 or more. Each of many supervisors should have one; a
    /// server that answers all day, several.
    pub idle_connections_max: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            busy_timeout_millis: BUSY_TIMEOUT_MILLIS,
            redactor: Redactor::of_this_process(),
            connections_max: 4,
            idle_connections_max: 1,
        }
    }
}

/// An open ledger. Clones share its connections and the leases they were granted.
#[derive(Debug, Clone)]
pub struct Ledger {
    pool: Arc<Pool>,
    pub(crate) leases: Leases,
}

impl Ledger {
    /// Opens the ledger at a path of a SQLite file (made when absent) or a `postgres://` URL, and migrates it to the
    /// version of this program.
    ///
    /// # Errors
    /// [`LedgerError::Open`], [`LedgerError::Newer`], [`LedgerError::Locked`].
    pub fn open(location: &str) -> Result<Self, LedgerError> {
        Self::open_with(location, &OpenOptions::default())
    }

    /// Like [`Ledger::open`], with options.
    ///
    /// # Errors
    /// As [`Ledger::open`].
    pub fn open_with(location: &str, options: &OpenOptions) -> Result<Self, LedgerError> {
        let is_postgres = location.starts_with("postgres://") || location.starts_with("postgresql://");
        let door = TextFilter::new(Arc::clone(&options.redactor));
        let (at, millis) = (location.to_owned(), options.busy_timeout_millis);
        let connect: Connect = Box::new(move || {
            if is_postgres {
                return PostgresBackend::open(&at, millis, door.clone()).map(Backend::Postgres);
            }
            let path = at.strip_prefix("sqlite://").unwrap_or(&at);
            SqliteBackend::open(Path::new(path), millis, door.clone()).map(Backend::Sqlite)
        });
        let bounds = Bounds {
            open_max: if is_postgres { options.connections_max.max(1) } else { 1 },
            idle_max: options.idle_connections_max.max(1),
        };
        let mut backend = connect()?;
        let over =
            |backend| Self { pool: Arc::new(Pool::new(backend, connect, bounds)), leases: Leases::default() };
        for _ in 1..OPEN_TRIES {
            match backend.migrate() {
                Err(error) if error.kind() == ErrorKind::Unavailable => std::thread::sleep(OPEN_PAUSE),
                done => return done.map(|()| over(backend)),
            }
        }
        backend.migrate()?;
        Ok(over(backend))
    }

    /// The file or URL, without a password.
    #[must_use]
    pub fn location(&self) -> String {
        self.backend().location().to_owned()
    }

    /// Whether it can only be read, because this user may not write the file or its folder.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.backend().is_read_only()
    }

    /// A connection. A panic elsewhere cannot leave it half-way: a transaction that was dropped is rolled back by
    /// the next `BEGIN` failing loudly, not by wrong data.
    pub fn backend(&self) -> Connection<'_> {
        self.pool.connection()
    }

    /// Does all of `work`, a write about a subject, or nothing of it: nothing when this handle lost the subject's lease.
    /// `durable` as for a transaction.
    pub(crate) fn write_about<T>(
        &self,
        subject: impl Into<Subject>,
        durable: bool,
        work: impl FnOnce(&mut Backend) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let subject = subject.into();
        let epoch = self.leases.epoch(&subject);
        self.backend().transaction(durable, |backend| {
            // Within the transaction, which locks the lease: it cannot change hands before the write is committed.
            if let Some(epoch) = epoch {
                check_epoch(backend, &subject, epoch)?;
            }
            work(backend)
        })
    }

    /// Stores a new run and the data sets it reads. The same again changes nothing. It does not wait for the disk: the
    /// lease that a supervisor takes before the run is acknowledged does ([`Ledger::acquire_lease`]), and for all
    /// before it.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another run has its id.
    pub fn insert_run(&self, run: &RunRow, data: &[RunDataRow]) -> Result<(), LedgerError> {
        self.backend().transaction(false, |backend| {
            let is_new = backend.insert_once(run)?;
            data.iter().try_for_each(|row| backend.insert_once(row).map(drop))?;
            noted(backend, is_new, RunRow::TABLE, run.run_id).map(drop)
        })
    }

    /// Changes a run as it is stored now, durably, and gives it as it is then. Config, seed, kind and the time of its
    /// creation stay as they are, whatever `change` does; it may be called again after a fault, on the row as it is
    /// then.
    ///
    /// # Errors
    /// [`LedgerError::NotFound`] when there is no such run; [`LedgerError::Integrity`] when its state and its end
    /// do not fit; [`LedgerError::Superseded`] when this handle lost the run's lease.
    pub fn change_run(&self, run_id: RunId, change: impl Fn(&mut RunRow)) -> Result<RunRow, LedgerError> {
        self.change_run_when(run_id, true, change)
    }

    /// The same without waiting for the disk: for what a durable write follows at once, or what the seal of the attempt
    /// computes again. Until then a power cut may undo it.
    ///
    /// # Errors
    /// As [`Ledger::change_run`].
    pub fn change_run_soon(
        &self,
        run_id: RunId,
        change: impl Fn(&mut RunRow),
    ) -> Result<RunRow, LedgerError> {
        self.change_run_when(run_id, false, change)
    }

    fn change_run_when(
        &self,
        run_id: RunId,
        durable: bool,
        change: impl Fn(&mut RunRow),
    ) -> Result<RunRow, LedgerError> {
        self.write_about(run_id, durable, |backend| {
            // Locked from the read to the write: two changes at once would lose one.
            let mut run = locked_run(backend, run_id)?.ok_or_else(|| not_found("run", run_id))?;
            change(&mut run);
            update_run(backend, &run)?;
            run.revision += 1;
            note_change(backend, RunRow::TABLE, run_id)?;
            Ok(run)
        })
    }

    /// Stores a new attempt, durably, in the table of its kind. The same again changes nothing.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another attempt has its id or its number, or its run does not exist.
    pub fn insert_attempt(&self, attempt: &AttemptRow) -> Result<(), LedgerError> {
        self.insert_launch(attempt, &[])
    }

    /// Stores a new attempt and the data sets that it is launched on, durably. The same again changes nothing.
    ///
    /// # Errors
    /// As [`Ledger::insert_attempt`].
    pub fn insert_launch(&self, attempt: &AttemptRow, data: &[AttemptDataRow]) -> Result<(), LedgerError> {
        self.write_about(attempt.run_id, true, |backend| {
            let is_new = backend.insert_once(attempt)?;
            data.iter().try_for_each(|row| backend.insert_once(row).map(drop))?;
            noted(backend, is_new, attempt.table(), attempt.run_id).map(drop)
        })
    }

    /// Stores a run and attempts of it in one go, durably: what an import needs.
    ///
    /// # Errors
    /// As [`Ledger::insert_run`] and [`Ledger::insert_attempt`]; nothing is stored then.
    pub fn insert_run_with_attempts(&self, run: &RunRow, attempts: &[AttemptRow]) -> Result<(), LedgerError> {
        self.backend().transaction(true, |backend| {
            backend.insert(run)?;
            backend.insert_all(attempts)?;
            note_change(backend, RunRow::TABLE, run.run_id)
        })
    }

    /// Writes every column of an attempt that is not sealed.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when it is sealed; [`LedgerError::NotFound`] when it does not exist.
    pub fn update_attempt(&self, attempt: &AttemptRow) -> Result<(), LedgerError> {
        let updated = self.write_about(attempt.run_id, false, |backend| {
            let updated = backend.update(attempt, &["run_id", "kind"])?;
            noted(backend, updated, attempt.table(), attempt.run_id)
        })?;
        if updated { Ok(()) } else { Err(not_found("attempt", attempt.attempt_id)) }
    }

    /// Notes how far a live attempt is; `None` leaves a column as it is. A sealed attempt stays as it is, too: its
    /// receipt is more accurate. True when something was written.
    pub fn touch_attempt(
        &self,
        run_id: RunId,
        (attempt_id, kind): (AttemptId, LaunchKind),
        progress: &AttemptProgress,
    ) -> Result<bool, LedgerError> {
        let mut sets = Clauses::default()
            .and("state = ?", progress.state.as_ref())
            .and("job_id = ?", progress.job_id.as_ref())
            .and("hosts = ?", progress.hosts.as_ref())
            .and("devices = ?", progress.devices.as_ref())
            .and("submitted_at = ?", progress.submitted_at.as_ref())
            .and("started_at = ?", progress.started_at.as_ref())
            .and("queued_seconds = ?", progress.queued_seconds.as_ref())
            .and("engine_instance = ?", progress.engine_instance.as_ref())
            .and("first_step = ?", progress.first_step.as_ref())
            .and("last_step = ?", progress.last_step.as_ref())
            .and("last_committed_step = ?", progress.last_committed_step.as_ref())
            .and("heartbeat_at = ?", progress.heartbeat_at.as_ref());
        if sets.parts.is_empty() {
            return Ok(false);
        }
        let table = AttemptRow::table_of(kind).name;
        let sql = format!(
            "UPDATE {table} SET {} WHERE attempt_id = ? AND sealed_at IS NULL",
            sets.parts.join(", ")
        );
        sets.values.push(attempt_id.to_value());
        // How far it is changes all the time: who follows it reads its record.
        let moves = progress.state.is_some();
        self.write_about(run_id, false, |backend| {
            let touched = backend.execute("noting progress", &sql, &sets.values)? == 1;
            noted(backend, touched && moves, AttemptRow::table_of(kind), run_id)?;
            Ok(touched)
        })
    }

    /// Adds an event. Adding the same event again changes nothing. True when it was new.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another event has its id, or its run does not exist.
    pub fn append_event(&self, event: &EventRow) -> Result<bool, LedgerError> {
        self.write_about(event.run_id, false, |backend| {
            let is_new = insert_event(backend, event)?;
            noted(backend, is_new, SubjectEventRow::TABLE, event.run_id)
        })
    }

    /// Adds a decision. Adding the same one again changes nothing.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another decision was made after that attempt.
    pub fn insert_retry(&self, retry: &RetryRow) -> Result<bool, LedgerError> {
        self.write_about(retry.run_id, true, |backend| insert_noted(backend, retry, retry.run_id))
    }

    /// Notes which attempt followed a decision; possible once. The same one again changes nothing.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another one is noted already.
    pub fn set_next_attempt(
        &self,
        run_id: RunId,
        after: AttemptId,
        next: AttemptId,
    ) -> Result<(), LedgerError> {
        // The same one again matches no row; another one meets the rule of the table, which refuses it.
        let sql = "UPDATE retries SET next_attempt_id = ? WHERE attempt_id = ? AND (next_attempt_id IS NULL OR next_attempt_id <> ?)";
        let values = [next.to_value(), after.to_value(), next.to_value()];
        self.write_about(run_id, false, |backend| {
            backend.execute("noting the next attempt", sql, &values).map(|_| ())
        })
    }

    /// Adds a late fact beside a receipt.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another amendment has its id.
    pub fn amend(&self, amendment: &AmendmentRow) -> Result<bool, LedgerError> {
        self.backend().transaction(true, |backend| insert_noted(backend, amendment, amendment.run_id))
    }

    /// Stores the content of a data set, unless it is known already. True when it was new.
    pub fn insert_data_snapshot(
        &self,
        snapshot: &DataSnapshotRow,
        files: &[DataSnapshotFileRow],
    ) -> Result<bool, LedgerError> {
        self.backend().transaction(false, |backend| {
            // Looked up first: the same content seen again under another name or at another time changes nothing.
            let added = backend.stored(snapshot)?.is_none() && backend.insert_if_absent(snapshot)?;
            // A ledger that was made again has the snapshot without the list of its files.
            if added || !has_files(backend, &snapshot.data_sha256)? {
                files.iter().try_for_each(|file| backend.insert_if_absent(file).map(drop))?;
            }
            let subject = Subject::new(SubjectKind::Data, snapshot.data_sha256.as_str());
            noted(backend, added, DataSnapshotRow::TABLE, subject)
        })
    }

    /// Mirrors the state of checkpoints from their log.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when a checkpoint would change its identity.
    pub fn upsert_checkpoints(&self, checkpoints: &[CheckpointRow]) -> Result<(), LedgerError> {
        // Run by run: each has a lease, which is checked with its write.
        checkpoints.chunk_by(|one, next| one.run_id == next.run_id).try_for_each(|of_run| {
            self.write_about(of_run[0].run_id, false, |backend| {
                let mut changed = false;
                for row in of_run {
                    changed |= upsert_checkpoint(backend, row)?;
                }
                noted(backend, changed, CheckpointRow::TABLE, of_run[0].run_id).map(drop)
            })
        })
    }

    /// Adds a resume proof. Adding the same one again changes nothing. True when it was new.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another proof has its id, or one of its runs does not exist.
    pub fn insert_resume_proof(&self, proof: &ResumeProofRow) -> Result<bool, LedgerError> {
        self.backend().transaction(true, |backend| insert_noted(backend, proof, proof.control_run_id))
    }

    /// Adds a diagnosis of an attempt. Adding the same one again changes nothing. True when it was new.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another diagnosis has its id, or the run does not exist.
    pub fn insert_diagnosis(&self, diagnosis: &DiagnosisRow) -> Result<bool, LedgerError> {
        self.backend().transaction(true, |backend| insert_noted(backend, diagnosis, diagnosis.run_id))
    }

    /// Adds what was checked before a run was launched. Adding the same again changes nothing.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when the run has a different result of a check already, or the run does not exist.
    pub fn insert_preflight_checks(&self, checks: &[PreflightCheckRow]) -> Result<(), LedgerError> {
        self.backend().transaction(true, |backend| {
            let mut is_new = false;
            for check in checks {
                is_new |= backend.insert_once(check)?;
            }
            let run_id = checks.first().map(|check| check.run_id);
            run_id.map_or(Ok(()), |run_id| noted(backend, is_new, PreflightCheckRow::TABLE, run_id).map(drop))
        })
    }

    /// Adds how far the columns of a run's data were from what they were compared with. Adding the same again changes
    /// nothing.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when the run has a different result of a column already, or the run does not exist.
    pub fn insert_drift_results(&self, results: &[DriftResultRow]) -> Result<(), LedgerError> {
        self.backend().transaction(true, |backend| {
            let mut is_new = false;
            for result in results {
                is_new |= backend.insert_once(result)?;
            }
            let run_id = results.first().map(|result| result.run_id);
            run_id.map_or(Ok(()), |run_id| noted(backend, is_new, DriftResultRow::TABLE, run_id).map(drop))
        })
    }

    /// Adds what a detector found. Adding the same one again changes nothing. True when it was new.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another one has its id, or the run does not exist.
    pub fn insert_detection(&self, detection: &DetectionRow) -> Result<bool, LedgerError> {
        self.write_about(detection.run_id, true, |backend| insert_noted(backend, detection, detection.run_id))
    }

    /// Writes down that a run went back. The same row again changes nothing and answers `false`.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another one has its id, or the run does not exist.
    pub fn insert_roll_back(&self, roll_back: &RollBackRow) -> Result<bool, LedgerError> {
        self.write_about(roll_back.run_id, true, |backend| insert_noted(backend, roll_back, roll_back.run_id))
    }

    /// Adds an event of any subject. Adding the same event again changes nothing. True when it was new.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another event has its id, or its subject does not exist.
    pub fn append_subject_event(&self, event: &SubjectEventRow) -> Result<bool, LedgerError> {
        let subject = event.subject();
        self.write_about(subject.clone(), false, |backend| {
            must_know(backend, &subject, "adding an event")?;
            insert_noted(backend, event, subject)
        })
    }

    /// What happened to a subject, oldest first.
    pub fn events_of_subject(&self, subject: &Subject) -> Result<Vec<SubjectEventRow>, LedgerError> {
        let tail = "WHERE subject_kind = ? AND subject_id = ? ORDER BY at, event_id";
        self.backend().select(tail, &[subject.kind.to_value(), Value::from(subject.id.as_str())])
    }

    /// A run by its id.
    pub fn run(&self, run_id: RunId) -> Result<Option<RunRow>, LedgerError> {
        Ok(self.backend().select("WHERE run_id = ?", &[run_id.to_value()])?.pop())
    }

    /// The runs of which a checkpoint is pinned, as far as the ledger mirrors that.
    pub fn runs_with_pins(&self) -> Result<Vec<RunId>, LedgerError> {
        let (mut backend, doing) = (self.backend(), "listing pinned checkpoints");
        let sql = "SELECT DISTINCT run_id FROM checkpoints WHERE pins IS NOT NULL ORDER BY run_id";
        let found = backend.rows(doing, sql, &[], &[ColumnKind::Text])?;
        let runs = found.into_iter().flatten().map(RunId::from_value);
        runs.collect::<Result<_, _>>().map_err(backend.fault(doing))
    }

    /// An attempt of any kind by its id.
    pub fn attempt(&self, attempt_id: AttemptId) -> Result<Option<AttemptRow>, LedgerError> {
        let mut backend = self.backend();
        for table in [AttemptRow::TABLE, LAUNCHES] {
            let found = backend.select_from(table, "WHERE attempt_id = ?", &[attempt_id.to_value()])?.pop();
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// How far a live attempt is. Fields that are `None` stay as they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptProgress {
    /// Its state; never sealed (that is [`Ledger::seal_attempt`]'s).
    pub state: Option<AttemptState>,
    /// The scheduler's job id, or the process id.
    pub job_id: Option<String>,
    /// The machines it got.
    pub hosts: Option<String>,
    /// The accelerators it got.
    pub devices: Option<String>,
    /// When its engine took it into its queue.
    pub submitted_at: Option<Timestamp>,
    /// When it left that queue.
    pub started_at: Option<Timestamp>,
    /// Seconds that it was in that queue.
    pub queued_seconds: Option<f64>,
    /// The engine's name for this start of it.
    pub engine_instance: Option<String>,
    /// The first step it reported.
    pub first_step: Option<Step>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    pub last_committed_step: Option<Step>,
    /// When the training process was last heard of.
    pub heartbeat_at: Option<Timestamp>,
}

/// The columns of a run that never change.
const KEPT_OF_RUNS: [&str; 5] = ["config_sha256", "config_json", "created_at", "seed", "kind"];

/// Writes a run as it was read and changed, unless another change came between: then its revision is another one.
pub(crate) fn update_run(backend: &mut Backend, run: &RunRow) -> Result<(), LedgerError> {
    let next = RunRow { revision: run.revision + 1, ..run.clone() };
    let unchanged = ("revision", Value::from(i64::try_from(run.revision).unwrap_or(i64::MAX)));
    if backend.update_where(&next, &KEPT_OF_RUNS, Some(unchanged))? {
        return Ok(());
    }
    Err(match backend.stored(run)? {
        None => not_found("run", run.run_id),
        Some(_) => LedgerError::Changed { run_id: run.run_id.to_string() },
    })
}

/// Writes a checkpoint, unless it is there just so. True when something was written.
pub(crate) fn upsert_checkpoint(backend: &mut Backend, row: &CheckpointRow) -> Result<bool, LedgerError> {
    if backend.stored(row)?.as_ref() == Some(&backend.as_stored(row)?) {
        return Ok(false);
    }
    backend.upsert(row, &["attempt_id", "step", "epoch"])?;
    Ok(true)
}

/// Notes a change, if there was one, and says whether there was.
pub(crate) fn noted(
    backend: &mut Backend,
    changed: bool,
    table: &Table,
    subject: impl Into<Subject>,
) -> Result<bool, LedgerError> {
    if changed {
        note_change(backend, table, subject)?;
    }
    Ok(changed)
}

/// Adds a row about a subject once, and notes it where it is new.
pub(crate) fn insert_noted<R: Record>(
    backend: &mut Backend,
    row: &R,
    subject: impl Into<Subject>,
) -> Result<bool, LedgerError> {
    let is_new = backend.insert_once(row)?;
    noted(backend, is_new, row.table(), subject)
}

/// A run, which no other transaction changes before this one ends.
pub(crate) fn locked_run(backend: &mut Backend, run_id: RunId) -> Result<Option<RunRow>, LedgerError> {
    backend.select_locked(&[("run_id", run_id.to_value())], "FOR NO KEY UPDATE")
}

/// Whether the list of the files of a data set is known.
fn has_files(backend: &mut Backend, data_sha256: &str) -> Result<bool, LedgerError> {
    let tail = "WHERE data_sha256 = ? LIMIT 1";
    let found: Vec<DataSnapshotFileRow> = backend.select(tail, &[Value::from(data_sha256)])?;
    Ok(!found.is_empty())
}

fn not_found(what: &'static str, id: impl ToString) -> LedgerError {
    LedgerError::not_found(what, id, "")
}
