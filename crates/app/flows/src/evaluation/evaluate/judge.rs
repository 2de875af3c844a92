//! From what the evaluator left to the numbers of the receipt.

use serde_json::{Value as Json, json};
use trackway_core::{RowCoverage, UnmatchedTasks};
use trackway_data::model::Frame;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::assess::tasks::{Matching, match_tasks};
use trackway_evaluate::debug::ProbeAnswer;
use trackway_evaluate::import::reported::ReportedMetrics;
use trackway_evaluate::metrics::is_over_all_rows;
use trackway_evaluate::search::{ERROR_METRIC, SearchObserver, shown_predicate};
use trackway_evaluate::{
    AssessError, Assessment, Baseline, Columns, ComparisonVerdict, Estimate, Metrics, Slice, SliceLimits,
    Spec, Task, assess_watched,
};
use trackway_formats::gate::BLIND_SPOT;
use trackway_formats::runfile::{EvaluateSection, SliceSection};
use trackway_ledger::{EvaluationEnd, EvaluationMetricRow, EvaluationRow, EvaluationSliceRow};
use trackway_tables::personal::{masked, masked_value};

use super::outputs::Outputs;
use super::task_set::Tasks;
use crate::evaluation::assess::{NamedPredicate, slices};
use crate::evaluation::baseline::{self, PROBES, TASKS_UNMATCHED, probed, spec_of};

/// The name of a slice whose rows only the evaluator has.
const REPORTED: &str = "reported by the evaluator";
/// Why such a slice has no verdict.
const NOT_COMPARED: &str = "its rows are not in the outputs, so it was not compared with the rest";
/// Two numbers of one metric that differ by more than this part are not the same.
const SAME_WITHIN: f64 = 1e-6;

/// The numbers of an evaluation.
#[derive(Debug, Default)]
pub struct EvaluationNumbers {
    metrics: Metrics,
    slices: Vec<Slice>,
    /// What was computed from the rows.
    assessment: Option<Assessment>,
    /// Why the rows were not matched with the task set, where there is one.
    unmatched: Option<String>,
    /// What changed inputs do to the predictions.
    probes: Option<ProbeAnswer>,
    /// Notes for a reader.
    pub notes: Vec<String>,
}

/// How the rows are to be evaluated.
pub struct Terms<'a> {
    pub section: &'a EvaluateSection,
    pub seed: u64,
    /// For an import, whose rows contain what is right.
    pub task: Option<Task>,
    /// The task set.
    pub tasks: &'a Tasks,
    pub baseline: Option<&'a EvaluationRow>,
    /// Called while blind spots are searched.
    pub searching: &'a Searching<'a>,
}

/// Called with the number of predicates of a slice, the candidates done and those there are of this number.
pub type Searching<'s> = dyn Fn(usize, u64, u64) + Sync + 's;
/// Observes nothing.
pub const UNOBSERVED: &Searching<'static> = &|_, _, _| {};

impl EvaluationNumbers {
    /// Evaluates: computed from the rows if there are some, else as the evaluator reported.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a slice, a column or a task that was requested and is not possible; when the baseline's
    /// rows cannot be read.
    pub fn of(context: &Context, outputs: &Outputs, terms: &Terms<'_>) -> Result<Self, AppError> {
        let mut judged = match &outputs.predictions {
            Some(predictions) => Self::of_rows(context, &predictions.frame, terms)?,
            None => Self::default(),
        };
        let (count, unreadable) = match terms.tasks {
            Tasks::None => (None, None),
            Tasks::Table(tasks) => (Some(tasks.rows() as u64), None),
            Tasks::Unreadable(why) => (None, Some(why.clone())),
        };
        judged.take_reported(&outputs.metrics, count);
        judged.probes.clone_from(&outputs.probes);
        // The last words of a model that did not answer.
        for it in judged.probes.iter_mut().flat_map(|probes| &mut probes.perturbations) {
            it.refused = it.refused.take().map(|why| context.redactor.text(&why).into_owned());
        }
        judged.unmatched = judged.unmatched.or(unreadable);
        judged.note_unmatched(terms.section.unmatched_tasks);
        Ok(judged)
    }

    /// From the rows alone.
    ///
    /// # Errors
    /// As [`EvaluationNumbers::of`].
    pub fn of_rows(context: &Context, frame: &Frame, terms: &Terms<'_>) -> Result<Self, AppError> {
        let section = terms.section;
        let refused = |error: AssessError| AppError::of(ErrorKind::Usage, error);
        let usual = spec_of(section, frame, terms.task, terms.seed).map_err(refused)?;
        let spec = Spec {
            slices: slices(frame, &asked_slices(section, usual.limits))?,
            fairness: section.fairness.clone(),
            missing: section.missing,
            blind_spots: section.blind_spots.unwrap_or(true),
            ..usual
        };
        let (tasks, unmatched) = match terms.tasks {
            Tasks::Table(tasks) => match match_tasks(tasks, frame, &spec.columns).map_err(refused)? {
                Matching::Found(found) => (Some(found), None),
                Matching::Impossible(why) => (None, Some(why)),
            },
            Tasks::None | Tasks::Unreadable(_) => (None, None),
        };
        let spec = Spec { tasks, ..spec };
        let rows_there =
            terms.baseline.map(|row| baseline::kept_rows(context, row, terms.seed)).transpose()?;
        let sides = rows_there.as_ref().map(|rows| Baseline { frame: rows, id: spec.columns.id.as_deref() });
        let mut notes = Vec::new();
        let watch =
            SearchObserver { progress: terms.searching, cancelled: context.request.cancel.is_stopped() };
        let assessed = match assess_watched(frame, &spec, sides, &watch) {
            // That the sides cannot be put side by side takes nothing from the numbers of this one.
            Err(error) if sides.is_some() => {
                notes.push(format!("not compared with the baseline: {error}"));
                assess_watched(frame, &spec, None, &watch)
            }
            assessed => assessed,
        };
        match assessed {
            Ok(assessment) => Ok(Self {
                metrics: assessment.metrics.clone(),
                slices: assessment.slices.clone(),
                notes: [notes, assessment.notes.clone()].concat(),
                assessment: Some(assessment),
                unmatched,
                probes: None,
            }),
            // Columns that have nothing in common were taken for each other's: no number of such rows means anything.
            Err(error) if asks_for_numbers(section) || matches!(error, AssessError::NoCommonClass { .. }) => {
                Err(refused(error))
            }
            Err(error) => {
                notes.push(format!("nothing was computed from the rows: {error}"));
                Ok(Self { notes, unmatched, ..Self::default() })
            }
        }
    }

    fn note_unmatched(&mut self, policy: UnmatchedTasks) {
        let Some(why) = &self.unmatched else { return };
        let consequence = match policy {
            UnmatchedTasks::Inconclusive => {
                "no number over rows decides a gate (`evaluate.unmatched_tasks = \"accepted\"` relies on the evaluator)"
            }
            UnmatchedTasks::Accepted => "the evaluator is relied on (`evaluate.unmatched_tasks`)",
        };
        self.notes.push(format!("whether each task was answered was not checked: {why}; {consequence}"));
    }

    /// What was reported, and nothing computed.
    pub fn reported(reported: &ReportedMetrics) -> Self {
        let mut judged = Self::default();
        judged.take_reported(reported, None);
        judged
    }

    /// Adds what the evaluator reports and the rows do not have; of two numbers the computed one counts. A metric over
    /// all rows has to cover every task.
    fn take_reported(&mut self, reported: &ReportedMetrics, tasks: Option<u64>) {
        let rows = self.assessment.as_ref().map(|assessment| assessment.coverage.rows_expected);
        let expected = tasks.max(rows);
        for (name, estimate) in &reported.metrics {
            match self.metrics.get(name) {
                Some(own) if differ(own.value, estimate.value) => self.notes.push(format!(
                    "`{name}`: {} reported by the evaluator, {} computed from the rows and used",
                    estimate.value, own.value
                )),
                Some(_) => {}
                None => drop(self.metrics.insert(name.clone(), covering(name, *estimate, expected))),
            }
        }
        for (name, metrics) in &reported.slices {
            if self.slices.iter().all(|slice| slice.name != *name) {
                self.slices.push(reported_slice(name, metrics));
            }
        }
    }

    /// The rows of the ledger, in which personal data in values and predicates is masked.
    pub fn end(self, row: EvaluationRow) -> EvaluationEnd {
        let id = &row.evaluation_id;
        let mut metrics = metric_rows(id, "", &self.metrics);
        for slice in &self.slices {
            metrics.extend(metric_rows(id, &slice.name, &slice.metrics));
        }
        let slices = self.slices.iter().map(|slice| EvaluationSliceRow {
            evaluation_id: id.clone(),
            slice: slice.name.clone(),
            predicate: masked(&slice.predicate).into_owned(),
            support: slice.support,
            verdict: Some(slice.verdict.as_str().into()),
        });
        let mut slices: Vec<EvaluationSliceRow> = slices.collect();
        let assessment = self.assessment.as_ref();
        if let Some(found) = assessment.and_then(|it| it.blind_spots.as_ref()) {
            for (number, slice) in (1..).zip(&found.slices) {
                let name = format!("{BLIND_SPOT}{number}");
                let error = slice.held_out.as_ref().and_then(|it| it.average_error);
                let error: Metrics =
                    error.map(|error| (ERROR_METRIC.to_owned(), error)).into_iter().collect();
                metrics.extend(metric_rows(id, &name, &error));
                slices.push(EvaluationSliceRow {
                    evaluation_id: id.clone(),
                    slice: name,
                    predicate: masked(&shown_predicate(&slice.predicate)).into_owned(),
                    support: slice.size,
                    verdict: Some(slice.verdict.as_str().into()),
                });
            }
        }
        for (name, measured) in self.probes.iter().flat_map(probed) {
            metrics.extend(metric_rows(id, &name, &measured));
        }
        let comparison = assessment.and_then(|it| it.comparison.as_ref());
        let evaluation = EvaluationRow {
            metrics_json: Some(json!(self.metrics)),
            slices_json: Some(masked_value(json!(self.slices))),
            fairness_json: assessment.map(|it| masked_value(json!(it.fairness))),
            comparison_json: comparison.map(|it| masked_value(json!(it))),
            assessment_json: with_parts(
                assessment.map(rest_of),
                [
                    (TASKS_UNMATCHED, self.unmatched.as_deref().map(Json::from)),
                    (PROBES, self.probes.as_ref().map(|probes| masked_value(json!(probes)))),
                ],
            ),
            ..row.clone()
        };
        EvaluationEnd { evaluation, metrics, slices, gate_receipt: None }
    }

    /// What the rows are taken for.
    pub fn columns(&self) -> Option<(Task, &Columns)> {
        self.assessment.as_ref().map(|assessment| (assessment.task, &assessment.columns))
    }
}

/// The slices that a run file names.
pub(super) fn asked_slices(section: &EvaluateSection, usual: SliceLimits) -> Vec<NamedPredicate> {
    let named = |(name, slice): (&String, &SliceSection)| {
        let has_own = slice.support_min.is_some() || slice.width_max.is_some();
        NamedPredicate {
            name: name.clone(),
            sql: slice.predicate.clone(),
            metric: slice.metric.clone(),
            limits: has_own.then(|| baseline::limits(slice.support_min, slice.width_max, usual)),
        }
    };
    section.slices.iter().map(named).collect()
}

/// Whether the run file requires numbers that only rows with labels can give.
pub(crate) fn asks_for_numbers(section: &EvaluateSection) -> bool {
    let columns = [
        &section.label, &section.positive, &section.prediction, &section.score, &section.group,
        &section.baseline, &section.metric,
    ];
    columns.iter().any(|it| it.is_some()) || !section.slices.is_empty() || !section.fairness.is_empty()
}

fn differ(one: f64, other: f64) -> bool {
    (one - other).abs() > SAME_WITHIN * one.abs().max(other.abs()).max(1.0)
}

/// The parts that have separate columns are left out.
fn rest_of(assessment: &Assessment) -> Json {
    let mut rest = json!(assessment);
    if let Some(members) = rest.as_object_mut() {
        for part in ["metrics", "slices", "fairness", "comparison", "notes"] {
            members.remove(part);
        }
    }
    masked_value(rest)
}

/// The assessment with further members.
fn with_parts(assessment: Option<Json>, parts: [(&str, Option<Json>); 2]) -> Option<Json> {
    parts.into_iter().fold(assessment, |assessment, (name, part)| match part {
        None => assessment,
        Some(part) => {
            let mut assessment = assessment.unwrap_or_else(|| json!({}));
            assessment[name] = part;
            Some(assessment)
        }
    })
}

/// The evaluator's number of a metric over all rows, beside the rows that there should be.
fn covering(name: &str, estimate: Estimate, expected: Option<u64>) -> Estimate {
    let expected = expected.filter(|_| is_over_all_rows(name) && estimate.coverage.is_known());
    let rows_used = estimate.coverage.rows_used;
    let coverage = expected.map(|rows| RowCoverage { rows_used, rows_expected: rows.max(rows_used) });
    Estimate { coverage: coverage.unwrap_or(estimate.coverage), ..estimate }
}

fn reported_slice(name: &str, metrics: &Metrics) -> Slice {
    Slice {
        name: name.to_owned(),
        predicate: REPORTED.into(),
        support: metrics.values().map(|estimate| estimate.support).max().unwrap_or(0),
        verdict: ComparisonVerdict::Inconclusive,
        why: Some(NOT_COMPARED.into()),
        metrics: metrics.clone(),
        difference: None,
        adjusted_p_value: None,
        compared_by: None,
    }
}

fn metric_rows(evaluation_id: &str, slice: &str, metrics: &Metrics) -> Vec<EvaluationMetricRow> {
    let row = |(metric, estimate): (&String, &Estimate)| EvaluationMetricRow {
        evaluation_id: evaluation_id.into(),
        slice: slice.into(),
        metric: metric.clone(),
        value: Some(estimate.value),
        low: estimate.interval.known_low(),
        high: estimate.interval.known_high(),
        support: Some(estimate.support).filter(|support| *support > 0),
        method: estimate.method.to_string(),
        rows_used: Some(estimate.coverage.rows_used).filter(|_| estimate.coverage.is_known()),
        rows_expected: Some(estimate.coverage.rows_expected).filter(|_| estimate.coverage.is_known()),
    };
    metrics.iter().map(row).collect()
}
