//! Between the ledger's rows and tower's ladder: where a run is on it, how a stage is judged, what its row says.

mod row;
pub(crate) mod warm_start;

use trackway_core::{LaunchKind, Stage, TerminationReason};
use trackway_formats::promotion::Rule;
use trackway_ledger::{AttemptRow, AttemptState, MetricSummaryRow, RunRow};
use trackway_tower::decide::NextStage;
use trackway_tower::stages::{
    Judgement, MetricValues, StageEnd, StageMetrics, judge, judge_without_rule, next_stage, previous_stage,
};

use crate::App;
use crate::error::{AppError, ErrorKind};
use crate::stored::stored_plan;

pub(crate) use row::stage_row;

/// The ladder of a run; one stage, all of the data, where the run file names none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ladder {
    stages: Vec<Stage>,
    promote: Option<String>,
    warm_start: bool,
    /// Whether the run file has one.
    pub named: bool,
}

/// What became of a stage whose attempt has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judged {
    pub judgement: Judgement,
    /// The stage it leads to where it is promoted.
    pub next: Stage,
}

impl Ladder {
    /// The ladder of a run, from the ledger's copy of its plan. Rehearsals and proofs use all of the data.
    pub(crate) fn of(run: &RunRow) -> Result<Self, AppError> {
        let section = stored_plan(run)?.and_then(|plan| plan.stages);
        let Some(section) = section.filter(|_| run.kind == LaunchKind::Train) else {
            return Ok(Self::whole());
        };
        let stages: Vec<Stage> = section.ladder.into_iter().filter_map(Stage::new).collect();
        if stages.is_empty() {
            return Ok(Self::whole());
        }
        Ok(Self { stages, promote: section.promote, warm_start: section.warm_start, named: true })
    }

    fn whole() -> Self {
        Self { stages: vec![Stage::FULL], promote: None, warm_start: false, named: false }
    }

    /// The stage that a run begins with.
    pub(crate) fn first(&self) -> Stage {
        self.stages.first().copied().unwrap_or(Stage::FULL)
    }

    /// The stage whose weights this one begins with.
    fn warm_start_of(&self, stage: Stage) -> Option<Stage> {
        previous_stage(&self.stages, stage).filter(|_| self.warm_start)
    }

    /// Counted from 1.
    fn place(&self, stage: Stage) -> usize {
        self.stages.iter().filter(|below| **below <= stage).count()
    }
}

/// The stage of an attempt.
pub(crate) fn stage_of(attempt: &AttemptRow) -> Stage {
    attempt.stage.parse().unwrap_or(Stage::FULL)
}

impl Judged {
    /// Where the run goes, for the decision.
    pub(crate) fn next_stage(&self) -> Option<NextStage> {
        let (stage, why) = (self.next.to_string(), self.judgement.why.clone());
        self.judgement.promoted.then_some(NextStage { stage, why })
    }

    /// Why it goes nowhere, for the verdict.
    pub(crate) fn refusal(&self) -> Option<String> {
        (!self.judgement.promoted).then(|| self.judgement.why.clone())
    }
}

impl App {
    /// Where a run is on its ladder: the stage of its last attempt.
    pub(crate) fn stage_now(&self, run: &RunRow) -> Result<Stage, AppError> {
        match self.attempts_of_kind(run.run_id, run.kind)?.last() {
            Some(last) => Ok(stage_of(last)),
            None => Ok(Ladder::of(run)?.first()),
        }
    }

    /// Judges the stage of an attempt that ended, as far as its metrics go; whether it ended well is another matter.
    /// `None` at the end of the ladder. `summaries` are those of this attempt.
    pub(crate) fn judge_stage(
        &self,
        run: &RunRow,
        row: &AttemptRow,
        summaries: &[MetricSummaryRow],
    ) -> Result<Option<Judged>, AppError> {
        let ladder = Ladder::of(run)?;
        let stage = stage_of(row);
        let Some(next) = next_stage(&ladder.stages, stage).filter(|_| row.kind == LaunchKind::Train) else {
            return Ok(None);
        };
        let Some(text) = &ladder.promote else {
            return Ok(Some(Judged { judgement: judge_without_rule(stage), next }));
        };
        // It was read when the run file was; only a damaged ledger holds one that cannot be.
        let rule = Rule::parse(text).map_err(|error| {
            AppError::new(
                ErrorKind::Fault,
                format!("the promotion rule of the stored plan {}", error.message),
            )
        })?;
        let previous = match previous_stage(&ladder.stages, stage) {
            Some(before) => Some((before, self.metrics_of_stage(row, before, &[])?)),
            None => None,
        };
        let metrics = self.metrics_of_stage(row, stage, summaries)?;
        let judgement = judge(text, &rule, &StageEnd { stage, metrics, previous });
        Ok(Some(Judged { judgement, next }))
    }

    /// What the sealed attempts of a stage recorded and, after them, `newest`.
    fn metrics_of_stage(
        &self,
        row: &AttemptRow,
        stage: Stage,
        newest: &[MetricSummaryRow],
    ) -> Result<StageMetrics, AppError> {
        let mut metrics = StageMetrics::new();
        for attempt in self.sealed_of_stage(row, stage)? {
            let summaries = self.ledger_read(|ledger| ledger.metric_summaries_of(attempt.attempt_id))?;
            gather(&mut metrics, &summaries);
        }
        gather(&mut metrics, newest);
        Ok(metrics)
    }

    /// The sealed attempts of a stage of the row's run, oldest first, without the row itself.
    fn sealed_of_stage(&self, row: &AttemptRow, stage: Stage) -> Result<Vec<AttemptRow>, AppError> {
        let mut attempts = self.attempts_of(row.run_id)?;
        attempts.retain(|attempt| {
            attempt.state == AttemptState::Sealed
                && stage_of(attempt) == stage
                && attempt.attempt_id != row.attempt_id
        });
        Ok(attempts)
    }
}

/// Adds what a later attempt recorded: its last value counts, and its extremes where they go beyond.
fn gather(metrics: &mut StageMetrics, summaries: &[MetricSummaryRow]) {
    for summary in summaries {
        let values: &mut MetricValues = metrics.entry(summary.name.clone()).or_default();
        values.last = summary.last_value;
        values.least = values.least.into_iter().chain(summary.min_value).min_by(f64::total_cmp);
        values.greatest = values.greatest.into_iter().chain(summary.max_value).max_by(f64::total_cmp);
    }
}

/// Whether an attempt brought its stage to its end.
fn ended_well(row: &AttemptRow) -> bool {
    row.termination_reason
        .is_some_and(|reason| reason.is_success() || reason == TerminationReason::StageRejected)
}

#[cfg(test)]
mod tests {
    use trackway_core::{AttemptId, RunId, SequentialIds};

    use super::*;

    /// Proves that the newest value of a metric counts, also where only an earlier attempt recorded it, and that the
    /// extremes are those of all attempts.
    #[test]
    fn a_stage_is_the_sum_of_its_attempts() {
        let ids = SequentialIds::default();
        let (run_id, attempt_id) = (RunId::new(&ids), AttemptId::new(&ids));
        let summary = |name: &str, last: f64, least: f64, greatest: f64| MetricSummaryRow {
            attempt_id,
            run_id,
            name: name.into(),
            point_count: 3,
            non_finite_count: 0,
            first_step: 1,
            last_step: 3,
            first_value: None,
            last_value: last.is_finite().then_some(last),
            min_value: Some(least),
            max_value: Some(greatest),
            mean_value: None,
        };
        let mut metrics = StageMetrics::new();
        gather(&mut metrics, &[summary("a", 3.0, 1.0, 4.0), summary("b", 7.0, 7.0, 7.0)]);
        gather(&mut metrics, &[summary("a", f64::NAN, 2.0, 9.0)]);
        assert_eq!(metrics["a"], MetricValues { last: None, least: Some(1.0), greatest: Some(9.0) });
        assert_eq!(metrics["b"].last, Some(7.0));
    }
}
