//! The change feed: what was written, numbered in the order of the commits.
//!
//! A change is noted by the transaction that makes it, as the last thing it does. In SQLite one transaction writes at a time. In
//! PostgreSQL those that note a change do so one after the other: a number of a sequence may be committed after a larger one, and a
//! reader that has the larger one would never see it.

use trackway_core::RunId;

use crate::backend::{Backend, now};
use crate::error::LedgerError;
use crate::records::{EventRow, Subject, SubjectEventRow, SubjectKind};
use crate::value::{ColumnKind, Field as _, Table, Value};

/// Any number will do for the advisory lock, as long as it is Trackway's own: `chang` in ASCII.
const POSTGRES_LOCK: i64 = 0x63_68_61_6e_67;

/// Notes that a row of a table was added or changed.
pub(crate) fn note_change(
    backend: &mut Backend,
    table: &Table,
    subject: impl Into<Subject>,
) -> Result<(), LedgerError> {
    note_changes(backend, &[(table, subject.into())])
}

/// Notes several changes.
pub(crate) fn note_changes(backend: &mut Backend, changes: &[(&Table, Subject)]) -> Result<(), LedgerError> {
    let doing = "noting a change";
    if !changes.is_empty() && matches!(backend, Backend::Postgres(_)) {
        // Held until the commit, so that numbers appear in their order.
        let sql = format!("SELECT pg_advisory_xact_lock({POSTGRES_LOCK})::text");
        backend.rows(doing, &sql, &[], &[ColumnKind::Text])?;
    }
    for (table, subject) in changes {
        // After the lock: the times of the feed grow with its numbers.
        let at = now(backend)?;
        let project = known_subject(backend, subject)?.flatten();
        let sql = "INSERT INTO changes (number, at, kind, subject_kind, subject_id, project) VALUES ((SELECT coalesce(max(number), 0) + 1 FROM changes), ?, ?, ?, ?, ?)";
        let values = [
            at.into(),
            Value::from(table.name),
            subject.kind.to_value(),
            Value::from(subject.id.as_str()),
            project.to_value(),
        ];
        backend.execute(doing, sql, &values)?;
    }
    Ok(())
}

/// The project of a subject that the ledger knows or has no table for; `None`: it should know it, and does not.
pub(crate) fn known_subject(
    backend: &mut Backend,
    subject: &Subject,
) -> Result<Option<Option<String>>, LedgerError> {
    let sql = match subject.kind {
        SubjectKind::Run => "SELECT project FROM runs WHERE run_id = ?",
        SubjectKind::Model => "SELECT project FROM models WHERE model = ?",
        SubjectKind::Data => "SELECT project FROM data_snapshots WHERE data_sha256 = ?",
        SubjectKind::Monitor | SubjectKind::Trigger | SubjectKind::Budget | SubjectKind::Engine => {
            return Ok(Some(None));
        }
    };
    let doing = "reading a project";
    let found = backend.rows(doing, sql, &[Value::from(subject.id.as_str())], &[ColumnKind::Text])?;
    let project = |value: Value| Option::<String>::from_value(value).map_err(backend.fault(doing));
    found.into_iter().flatten().next().map(project).transpose()
}

/// Refuses a write about a subject that is not there.
pub(crate) fn must_know(backend: &mut Backend, subject: &Subject, doing: &str) -> Result<(), LedgerError> {
    match known_subject(backend, subject)? {
        Some(_) => Ok(()),
        None => Err(backend.refuse(doing, format!("there is no {subject}"))),
    }
}

/// The project of a run.
pub(crate) fn project_of_run(backend: &mut Backend, run_id: RunId) -> Result<Option<String>, LedgerError> {
    Ok(known_subject(backend, &run_id.into())?.flatten())
}

/// Adds what happened to a subject, once.
pub(crate) fn insert_event(backend: &mut Backend, event: &EventRow) -> Result<bool, LedgerError> {
    let row = SubjectEventRow::from(event);
    // Events name subjects of several tables: no foreign key refuses one that is not there.
    must_know(backend, &row.subject(), "adding an event")?;
    backend.insert_once(&row)
}
