//! Pages of lists: rows in a fixed order from a place on, and how many come after them.

use trackway_core::{AttemptId, LaunchKind, RunId};

use crate::clauses::Clauses;
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::records::{AttemptRow, EvaluationRow};
use crate::value::{ColumnKind, Field as _, Record, Table};

/// A part of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct RowPage<R> {
    /// In the order of the list.
    pub rows: Vec<R>,
    /// How many rows of the list come after these.
    pub more_count: u64,
}

impl Ledger {
    /// Training attempts that were made before `after`, newest first.
    pub fn attempts_page(
        &self,
        after: Option<AttemptId>,
        limit: u32,
    ) -> Result<RowPage<AttemptRow>, LedgerError> {
        // Ids begin with the time of their making; they also order attempts that never started.
        let clauses = Clauses::default().and("attempt_id < ?", after.as_ref());
        self.page(AttemptRow::TABLE, &clauses, "attempt_id DESC", limit)
    }

    /// The launches of one kind of a run with a number below `before_number`, newest first.
    pub fn attempts_of_run_page(
        &self,
        (run_id, kind): (RunId, LaunchKind),
        before_number: Option<u32>,
        limit: u32,
    ) -> Result<RowPage<AttemptRow>, LedgerError> {
        let clauses = Clauses::default()
            .and("run_id = ?", Some(&run_id))
            .and("kind = ?", Some(&kind))
            .and("attempt_number < ?", before_number.as_ref());
        self.page(AttemptRow::table_of(kind), &clauses, "attempt_number DESC", limit)
    }

    /// Evaluations that come after one, newest first; of one run when one is given.
    pub fn evaluations_page(
        &self,
        run_id: Option<RunId>,
        after: Option<&EvaluationRow>,
        limit: u32,
    ) -> Result<RowPage<EvaluationRow>, LedgerError> {
        let mut clauses = Clauses::default().and("run_id = ?", run_id.as_ref());
        if let Some(after) = after {
            clauses.parts.push("(started_at < ? OR (started_at = ? AND evaluation_id < ?))".into());
            let started_at = after.started_at.to_value();
            clauses.values.extend([started_at.clone(), started_at, after.evaluation_id.to_value()]);
        }
        self.page(EvaluationRow::TABLE, &clauses, "started_at DESC, evaluation_id DESC", limit)
    }

    fn page<R: Record>(
        &self,
        table: &Table,
        clauses: &Clauses,
        order: &str,
        limit: u32,
    ) -> Result<RowPage<R>, LedgerError> {
        let mut backend = self.backend();
        let tail = clauses.tail(order, Some(limit as usize));
        let rows: Vec<R> = backend.select_from(table, &tail, &clauses.values)?;
        if rows.len() < limit as usize {
            return Ok(RowPage { rows, more_count: 0 });
        }
        let filter = match clauses.parts.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", clauses.parts.join(" AND ")),
        };
        let sql = format!("SELECT count(*) FROM {}{filter}", table.name);
        let counted = backend.rows("counting a list", &sql, &clauses.values, &[ColumnKind::Integer])?;
        let all_count = counted.into_iter().flatten().next().and_then(|value| u64::from_value(value).ok());
        let more_count = all_count.unwrap_or(0).saturating_sub(rows.len() as u64);
        Ok(RowPage { rows, more_count })
    }
}
