//! What a reference on a command line means: the only place where references become runs, attempts and evaluations
//! (docs/names.md). All other code uses ids.

use trackway_core::name::{LAST, attempt_of_run};
use trackway_core::{AttemptId, RunId, Timestamp};

use super::find::RunFilter;
use crate::error::{LedgerError, nearest};
use crate::ledger::Ledger;
use crate::records::{AttemptRow, EvaluationRow, LAUNCHES, RunRow};
use crate::value::{Record, Table, Value};
use crate::writing::evaluations::GATE_TEST_ORIGIN;

/// Most runs whose names are looked through for a near one.
const NAMES_LOOKED_AT_MAX: usize = 1000;
/// Most meanings that are listed when a reference has several.
const MEANINGS_MAX: usize = 5;
/// The fewest characters that are taken for a part of an id: with fewer, common names would match ids by coincidence.
const PART_MIN: usize = 6;
/// The fewest letters that are taken for a part of an evaluation's id: evaluations have no names.
const EVALUATION_PART_MIN: usize = 4;

/// The meaning of a reference.
#[derive(Debug, Clone, PartialEq)]
pub enum RunOrAttempt {
    Run(Box<RunRow>),
    Attempt(Box<AttemptRow>),
}

impl RunOrAttempt {
    /// The run, or the one that the attempt is of.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        match self {
            Self::Run(run) => run.run_id,
            Self::Attempt(attempt) => attempt.run_id,
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Run(run) => format!("run `{}` ({})", run.name, run.run_id),
            Self::Attempt(attempt) => format!("attempt {}", attempt.attempt_id),
        }
    }
}

impl Ledger {
    /// The meaning of a reference, in this order: `last`, the newest run; a whole id; `RUN/NUMBER`, an attempt of a
    /// run; and else a run's name (the newest of that name), the beginning of an id with its prefix, or a part of an id
    /// of 6 letters or more. Of the last three, exactly one must fit. Newest is never a run dated after `now` unless
    /// there is no other: its clock was wrong.
    ///
    /// # Errors
    /// [`LedgerError::NotFound`] with the nearest name; [`LedgerError::Ambiguous`] with all that fit.
    pub fn resolve(&self, word: &str, now: Timestamp) -> Result<RunOrAttempt, LedgerError> {
        if word == LAST {
            let newest = self.newest_run(None, now)?;
            return newest
                .map(run)
                .ok_or_else(|| LedgerError::not_found("run", word, " (it holds no run yet)"));
        }
        if let Ok(run_id) = word.parse() {
            return self.run(run_id)?.map(run).ok_or_else(|| LedgerError::not_found("run", word, ""));
        }
        if let Ok(attempt_id) = word.parse() {
            return self
                .attempt(attempt_id)?
                .map(attempt)
                .ok_or_else(|| LedgerError::not_found("attempt", word, ""));
        }
        if let Some((of, number)) = attempt_of_run(word) {
            let RunOrAttempt::Run(run) = self.resolve(of, now)? else {
                return Err(LedgerError::not_found("run", of, ""));
            };
            let mut attempts = self.attempts_of_kind(run.run_id, run.kind)?.into_iter();
            let found = attempts.find(|attempt| attempt.attempt_number == number);
            return found.map(attempt).ok_or_else(|| LedgerError::not_found("attempt", word, ""));
        }
        let mut fitting = self.fitting(word, now)?;
        match fitting.len() {
            0 if word.starts_with(AttemptId::PREFIX) => Err(LedgerError::not_found("attempt", word, "")),
            0 => Err(self.no_run(word)?),
            1 => Ok(fitting.swap_remove(0)),
            _ => Err(ambiguous(word, fitting.iter().map(RunOrAttempt::in_words).collect())),
        }
    }

    /// Runs and attempts that have the reference as their name or as a part of their id.
    fn fitting(&self, word: &str, now: Timestamp) -> Result<Vec<RunOrAttempt>, LedgerError> {
        let named = self.newest_run(Some(word), now)?;
        let is_known = |row: &RunRow| named.as_ref().is_some_and(|named| named.run_id == row.run_id);
        let mut by_id: Vec<RunRow> = self.by_part(RunRow::TABLE, "run_id", RunId::PREFIX, word)?;
        by_id.retain(|row| !is_known(row));
        let mut fitting: Vec<RunOrAttempt> = named.into_iter().chain(by_id).map(run).collect();
        for table in [AttemptRow::TABLE, LAUNCHES] {
            let attempts = self.by_part(table, "attempt_id", AttemptId::PREFIX, word)?;
            fitting.extend(attempts.into_iter().map(attempt));
        }
        Ok(fitting)
    }

    /// The newest training run, of a name where one is given.
    fn newest_run(&self, name: Option<&str>, now: Timestamp) -> Result<Option<RunRow>, LedgerError> {
        let any = RunFilter { name: name.map(String::from), limit: Some(1), ..RunFilter::default() };
        let by_now = RunFilter { created_before: Some(just_after(now)), ..any.clone() };
        match self.list_runs(&by_now)?.pop() {
            Some(run) => Ok(Some(run)),
            None => Ok(self.list_runs(&any)?.pop()),
        }
    }

    /// Rows whose id begins with the reference, if it has the prefix, or else contains it.
    fn by_part<R: Record>(
        &self,
        table: &Table,
        column: &str,
        prefix: &str,
        word: &str,
    ) -> Result<Vec<R>, LedgerError> {
        let beginning = word.strip_prefix(prefix);
        let part = beginning.unwrap_or(word).to_lowercase();
        let is_enough = if beginning.is_some() { !part.is_empty() } else { part.len() >= PART_MIN };
        // Ids hold letters and digits only; anything else would be a pattern of `LIKE`.
        if !is_enough || !part.chars().all(|letter| letter.is_ascii_alphanumeric()) {
            return Ok(Vec::new());
        }
        let pattern =
            if beginning.is_some() { format!("{prefix}{part}%") } else { format!("{prefix}%{part}%") };
        let tail = format!("WHERE {column} LIKE ? ORDER BY {column} DESC LIMIT {}", MEANINGS_MAX + 1);
        self.backend().select_from(table, &tail, &[Value::Text(pattern)])
    }

    fn no_run(&self, word: &str) -> Result<LedgerError, LedgerError> {
        let runs = self.list_runs(&RunFilter { limit: Some(NAMES_LOOKED_AT_MAX), ..RunFilter::default() })?;
        let hint = match nearest(word, runs.iter().map(|run| run.name.as_str())) {
            Some(near) => format!("; did you mean `{near}`?"),
            None if runs.is_empty() => " (it holds no run yet)".into(),
            None => "; `trackway runs` lists them".into(),
        };
        Ok(LedgerError::not_found("run", word, &hint))
    }

    /// The evaluation of a reference: `last`, the newest that is not dated after `now` and was not made to test gates;
    /// an id; or a unique part of one, of 4 letters or more.
    ///
    /// # Errors
    /// As [`Ledger::resolve`].
    pub fn resolve_evaluation(&self, word: &str, now: Timestamp) -> Result<EvaluationRow, LedgerError> {
        if word == LAST {
            if let Some(newest) = self.newest_evaluation(now)? {
                return Ok(newest);
            }
            let hint = match self.newest_evaluations(1)?.is_empty() {
                true => "; there are no evaluations yet",
                false => "; those that exist were made to test gates",
            };
            return Err(LedgerError::not_found("evaluation", word, hint));
        }
        if let Some(evaluation) = self.evaluation(word)? {
            return Ok(evaluation);
        }
        let unknown = || LedgerError::not_found("evaluation", word, "; `trackway eval ls` lists them");
        let part = word.to_lowercase();
        let is_plain = part.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !is_plain || part.len() < EVALUATION_PART_MIN {
            return Err(unknown());
        }
        // `_` is any character of `LIKE`; what it finds too much is left out.
        let tail =
            format!("WHERE evaluation_id LIKE ? ORDER BY evaluation_id DESC LIMIT {}", MEANINGS_MAX + 1);
        let mut found: Vec<EvaluationRow> =
            self.backend().select(&tail, &[Value::Text(format!("%{part}%"))])?;
        found.retain(|row| row.evaluation_id.contains(&part));
        match found.len() {
            0 => Err(unknown()),
            1 => Ok(found.swap_remove(0)),
            _ => Err(ambiguous(
                word,
                found.iter().map(|row| format!("evaluation {}", row.evaluation_id)).collect(),
            )),
        }
    }

    fn newest_evaluation(&self, now: Timestamp) -> Result<Option<EvaluationRow>, LedgerError> {
        let newest = |further: &str, values: &[Value]| -> Result<Option<EvaluationRow>, LedgerError> {
            let tail =
                format!("WHERE origin <> ?{further} ORDER BY started_at DESC, evaluation_id DESC LIMIT 1");
            let values = [&[Value::from(GATE_TEST_ORIGIN)], values].concat();
            Ok(self.backend().select(&tail, &values)?.pop())
        };
        // The connection is returned before the next question: SQLite has one.
        match newest(" AND started_at <= ?", &[Value::Timestamp(now)])? {
            Some(evaluation) => Ok(Some(evaluation)),
            None => newest("", &[]),
        }
    }
}

fn run(row: RunRow) -> RunOrAttempt {
    RunOrAttempt::Run(Box::new(row))
}

fn attempt(row: AttemptRow) -> RunOrAttempt {
    RunOrAttempt::Attempt(Box::new(row))
}

/// `created_before` excludes its exact time.
fn just_after(now: Timestamp) -> Timestamp {
    Timestamp::from_micros(now.as_micros().saturating_add(1))
}

fn ambiguous(word: &str, mut meanings: Vec<String>) -> LedgerError {
    let more = meanings.len() > MEANINGS_MAX;
    meanings.truncate(MEANINGS_MAX);
    LedgerError::Ambiguous { word: word.into(), meanings, more }
}
