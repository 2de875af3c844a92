//! Between the ledger's rows and the ladder's rules: where a run is on it, how its rule decides about a rung, and the row
//! of a rung.

mod evidence;
mod opened;
mod past;
mod row;
pub mod warm_start;

use std::collections::BTreeMap;

use trackway_core::{LaunchKind, Rung, TerminationReason};
use trackway_formats::promotion::Rule;
use trackway_formats::runfile::{DataRole, DataSpec};
use trackway_ledger::{AttemptRow, EventRow, MetricSummaryRow, RunRow};
use trackway_rules::decide::NextRung;
use trackway_rules::ladder::{
    Judgement, RungEnd, judge, judge_without_rule, next_rung, previous_rung, prove,
};

use crate::Context;
use crate::attempt::attempt_data::SetsRead;
use crate::error::{AppError, ErrorKind};
use crate::ledger::rows::rung_of;
use crate::ledger::stored::stored_plan;
pub(crate) use evidence::cuts_in;
pub(crate) use opened::OpenedData;
use past::past_of_rung;
pub(crate) use row::rung_row;

/// The ladder of a run; one rung, all of the data, where the run file names none.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    rungs: Vec<Rung>,
    promote: Option<String>,
    warm_start: bool,
    /// Whether the run file has one.
    pub named: bool,
}

/// What became of a rung whose attempt has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RungOutcome {
    pub judgement: Judgement,
    /// The rung it leads to where it is promoted.
    pub next: Rung,
}

impl Ladder {
    /// The ladder of a run, from the ledger's copy of its plan. Rehearsals and proofs use all of the data.
    pub fn of(run: &RunRow) -> Result<Self, AppError> {
        let section = stored_plan(run)?.and_then(|plan| plan.ladder);
        let Some(section) = section.filter(|_| run.kind == LaunchKind::Train) else {
            return Ok(Self::whole());
        };
        let rungs: Vec<Rung> = section.rungs.into_iter().filter_map(Rung::new).collect();
        if rungs.is_empty() {
            return Ok(Self::whole());
        }
        Ok(Self { rungs, promote: section.promote, warm_start: section.warm_start, named: true })
    }

    fn whole() -> Self {
        Self { rungs: vec![Rung::FULL], promote: None, warm_start: false, named: false }
    }

    /// The rung that a run begins with.
    pub(crate) fn first(&self) -> Rung {
        self.rungs.first().copied().unwrap_or(Rung::FULL)
    }

    /// The rung whose weights this one begins with.
    fn warm_start_of(&self, rung: Rung) -> Option<Rung> {
        previous_rung(&self.rungs, rung).filter(|_| self.warm_start)
    }

    /// Counted from 1.
    fn place(&self, rung: Rung) -> usize {
        self.rungs.iter().filter(|below| **below <= rung).count()
    }
}

impl RungOutcome {
    /// Where the run goes, for the decision.
    pub(crate) fn next_rung(&self) -> Option<NextRung> {
        let (rung, why) = (self.next.to_string(), self.judgement.why.clone());
        self.judgement.promoted.then_some(NextRung { rung, why })
    }

    /// The same, and nothing is launched from it.
    pub(crate) fn refused(self, why: &str) -> Self {
        let why = format!("{}; {why}", self.judgement.why);
        Self { judgement: Judgement { promoted: false, why, ..self.judgement }, ..self }
    }

    /// Why it goes nowhere, for the verdict.
    pub(crate) fn refusal(&self) -> Option<String> {
        (!self.judgement.promoted).then(|| self.judgement.why.clone())
    }
}

/// Where a run is on its ladder: the rung of its last attempt.
pub fn rung_now(context: &Context, run: &RunRow) -> Result<Rung, AppError> {
    match context.last_attempt_of_kind(run.run_id, run.kind)? {
        Some(last) => Ok(rung_of(&last)),
        None => Ok(Ladder::of(run)?.first()),
    }
}

/// The data sets of a run, from the ledger's copy of its plan.
pub(crate) fn data_of(run: &RunRow) -> Result<BTreeMap<String, DataSpec>, AppError> {
    Ok(stored_plan(run)?.map(|plan| plan.data).unwrap_or_default())
}

/// Decides about the rung of an attempt that ended, by its metrics and the rows that were counted; whether it ended well is
/// another matter. `None` at the end of the ladder. `summaries` and `events` are those of this attempt.
pub(crate) fn judge_rung(
    context: &Context,
    run: &RunRow,
    row: &AttemptRow,
    summaries: &[MetricSummaryRow],
    events: &[EventRow],
) -> Result<Option<RungOutcome>, AppError> {
    let ladder = Ladder::of(run)?;
    let rung = rung_of(row);
    let Some(next) = next_rung(&ladder.rungs, rung).filter(|_| row.kind == LaunchKind::Train) else {
        return Ok(None);
    };
    let mut now = past_of_rung(context, row, rung)?;
    now.take(context, row, (summaries, events));
    let not_opened = now.evidence.opened.training_not_opened(&data_of(run)?);
    let proof = prove(rung, &now.evidence.cuts, &not_opened, rows_of_training(context, run, row)?);
    let Some(text) = &ladder.promote else {
        return Ok(Some(RungOutcome { judgement: judge_without_rule(rung, proof), next }));
    };
    // It was read when the run file was; only a damaged ledger holds one that cannot be.
    let rule = Rule::parse(text).map_err(|error| {
        AppError::new(ErrorKind::Fault, format!("the promotion rule of the stored plan {}", error.message))
    })?;
    let of_rung = |before| Ok::<_, AppError>((before, past_of_rung(context, row, before)?.metrics));
    let previous = previous_rung(&ladder.rungs, rung).map(of_rung).transpose()?;
    let judgement = judge(text, &rule, &RungEnd { rung, metrics: now.metrics, previous }, proof);
    Ok(Some(RungOutcome { judgement, next }))
}

/// The rows of all training data of an attempt; none where those of one set were not counted, or are not known.
fn rows_of_training(context: &Context, run: &RunRow, attempt: &AttemptRow) -> Result<Option<u64>, AppError> {
    let SetsRead { sets, doubt } = context.sets_read(run, Some(attempt))?;
    if doubt.is_some() {
        return Ok(None);
    }
    let training = sets.iter().filter(|(set, _)| set.role.as_deref() == Some(DataRole::Train.as_str()));
    let rows = training.map(|(_, snapshot)| snapshot.rows).collect::<Option<Vec<u64>>>();
    Ok(rows.filter(|rows| !rows.is_empty()).map(|rows| rows.iter().sum()))
}

/// Whether an attempt completed its rung.
fn ended_well(row: &AttemptRow) -> bool {
    row.termination_reason
        .is_some_and(|reason| reason.is_success() || reason == TerminationReason::RungRejected)
}
