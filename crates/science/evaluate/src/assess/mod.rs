//! All that a table of predictions shows, in one call.

mod blind_spots;
mod classes;
mod curves;
mod notes;
pub(super) mod spec;
pub mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use trackway_data::model::Frame;
use trackway_results::assessment::{Assessment, Average, Columns, Fairness, Task};

use crate::columns::{complete_columns, task_of, without_missing};
use crate::comparison::{Terms, compare, pair};
pub use crate::error::AssessError;
use crate::error::Result;
use crate::fairness::fairness;
use crate::metrics::resample::Resampling;
use crate::metrics::rows::coverage::Needs;
use crate::metrics::rows::items::items;
use crate::metrics::rows::{Content, Items, KnownClasses};
use crate::metrics::scoring::Scoring;
use crate::metrics::{Judge, measure};
use crate::residuals::residuals_of;
use crate::search::SearchObserver;
use crate::slices::slices;
use blind_spots::blind_spots_of;
use classes::{class_metrics, confusion};
use curves::curves;
use notes::notes;
pub use spec::Spec;

/// The baseline's table.
#[derive(Debug, Clone, Copy)]
pub struct Baseline<'b> {
    /// Its rows; columns have the same names as the candidate's.
    pub frame: &'b Frame,
    /// The column by which rows find each other; their order where absent.
    pub id: Option<&'b str>,
}

/// Evaluates a table.
///
/// # Errors
/// [`AssessError`]: columns that are not there or of no task, numbers out of range, a baseline without a row in common.
pub fn assess(frame: &Frame, spec: &Spec, baseline: Option<Baseline<'_>>) -> Result<Assessment> {
    let watch = SearchObserver { progress: &|_, _, _| {}, cancelled: &AtomicBool::new(false) };
    assess_watched(frame, spec, baseline, &watch)
}

/// The same; the search for blind spots, which may take long, is observed. One that is cancelled is left out, with a note.
///
/// # Errors
/// As [`assess`].
pub fn assess_watched(
    frame: &Frame,
    spec: &Spec,
    baseline: Option<Baseline<'_>>,
    watch: &SearchObserver<'_>,
) -> Result<Assessment> {
    check(spec, frame)?;
    let columns = complete_columns(spec.columns.clone(), frame)?;
    let task = match spec.task {
        Some(task) => task,
        None => task_of(&columns, frame)?,
    };
    // A feature that is named like a treatment is still one.
    let roles = Columns { treatment: None, ..columns.clone() };
    let columns = columns.for_task(task);
    let (items, judge) = (items_of(frame, task, &columns, spec)?, judge_of(spec));
    let scoring = Scoring::of(&items, spec.recall);
    let mut metrics = measure(&scoring, judge);
    items.rows.cover(&mut metrics, spec.missing, |_| true);
    let main_metric = main_metric(spec, task, &metrics)?;
    let fairness = |column: &String| fairness(frame, &items, column, spec.limits.support_min, judge);
    let fairness: Vec<Fairness> = spec.fairness.iter().map(fairness).collect::<Result<_, _>>()?;
    let comparison = baseline.map(|baseline| {
        let pairs = pairs(frame, &items, (task, &columns), spec, baseline)?;
        let terms = Terms {
            judge,
            margin: spec.margin,
            main_metric: &main_metric,
            support_min: spec.limits.support_min,
        };
        Ok(compare(&pairs, &spec.slices, terms))
    });
    let rows = items.rows.judged();
    let mut notes = notes(frame, (&items, &scoring), &columns, (spec, task), (&metrics, &fairness));
    let blind_spots = spec.blind_spots.then(|| blind_spots_of(frame, &items, &roles, spec.seed, watch));
    let blind_spots = blind_spots.and_then(|found| {
        found.map_err(|why| notes.push(format!("blind spots were not searched: {why}"))).ok()
    });
    Ok(Assessment {
        task,
        rows,
        rows_seen: frame.rows_seen(),
        rows_skipped: frame.rows() as u64 - rows,
        rows_unanswered: items.rows.unanswered(),
        coverage: items.rows.coverage(Needs::Answers, spec.missing, |_| true),
        tasks: spec.tasks.as_ref().map(|tasks| tasks.coverage.clone()),
        inconclusive: inconclusive(&items, &metrics),
        groups: items.groups.as_ref().map(|(_, groups)| *groups as u64),
        confidence: spec.confidence,
        resamples: spec.resamples,
        seed: spec.seed,
        positive_class: items.positive_class(),
        matched_classes: items.matched_classes().to_vec(),
        average: average(&items),
        classes: class_metrics(&items, spec.confidence, spec.missing),
        confusion: confusion(&items),
        curves: curves(&items, &scoring, spec.confidence),
        residuals: residuals_of(frame, &items, &roles, spec.confidence),
        slices: slices(&items, &spec.slices, &main_metric, spec.limits, (&metrics, judge)),
        comparison: comparison.transpose()?,
        blind_spots,
        notes,
        fairness,
        metrics,
        main_metric,
        columns,
    })
}

/// What is assessed, in the order of its scores.
fn items_of(frame: &Frame, task: Task, columns: &Columns, spec: &Spec) -> Result<Items> {
    if spec.costs.is_some() && task != Task::Classification {
        return Err(AssessError::CostsWithoutClasses(task));
    }
    let known = KnownClasses { positive: spec.positive.as_deref(), names: &[], costs: spec.costs.as_ref() };
    let mut items = items(frame, task, columns, known)?;
    if let Some(tasks) = &spec.tasks {
        Arc::make_mut(&mut items.rows).with_tasks(&tasks.not_a_task, tasks.coverage.unanswered());
    }
    Ok(in_order_of_scores(items))
}

fn judge_of(spec: &Spec) -> Judge {
    Judge {
        resampling: Resampling { resamples: spec.resamples, seed: spec.seed, confidence: spec.confidence },
        recall: spec.recall,
        always_resample: spec.always_resample,
        missing: spec.missing,
    }
}

fn check(spec: &Spec, frame: &Frame) -> Result<()> {
    let wrong = |what: String| Err(AssessError::OutOfRange(what));
    if !(spec.confidence > 0.5 && spec.confidence < 1.0) {
        return wrong(format!("the confidence level must be between 0.5 and 1, not {}", spec.confidence));
    }
    if !(spec.recall > 0.0 && spec.recall <= 1.0) {
        return wrong(format!("the recall must be between 0 and 1, not {}", spec.recall));
    }
    if !(RESAMPLES_MIN..=RESAMPLES_MAX).contains(&spec.resamples) {
        return wrong(format!(
            "the number of bootstrap resamples must be {RESAMPLES_MIN} to {RESAMPLES_MAX}, not {}",
            spec.resamples
        ));
    }
    if let Some(tasks) = spec.tasks.as_ref().filter(|tasks| tasks.not_a_task.len() != frame.rows()) {
        return wrong(format!(
            "the task set was matched with {} rows, and the table has {}",
            tasks.not_a_task.len(),
            frame.rows()
        ));
    }
    match spec.slices.iter().find(|slice| slice.rows.len() != frame.rows()) {
        Some(slice) => wrong(format!(
            "slice `{}` covers {} rows, but the table has {}",
            slice.name,
            slice.rows.len(),
            frame.rows()
        )),
        None => Ok(()),
    }
}

/// Fewer draws give no interval, more are a mistake.
pub const RESAMPLES_MIN: u32 = 100;
/// The most draws.
pub const RESAMPLES_MAX: u32 = 100_000;

/// Items by falling score: every draw then reads them from front to back.
fn in_order_of_scores(items: Items) -> Items {
    let Content::Classes(rows) = &items.content else { return items };
    let Some(scores) = &rows.score else { return items };
    let mut order: Vec<u32> = (0..items.len() as u32).collect();
    order.sort_by(|one, other| scores[*other as usize].total_cmp(&scores[*one as usize]));
    items.subset(&order)
}

fn main_metric(spec: &Spec, task: Task, metrics: &crate::Metrics) -> Result<String> {
    let of_slices = spec.slices.iter().filter_map(|slice| slice.metric.as_ref());
    for name in spec.main_metric.iter().chain(of_slices) {
        if !metrics.contains_key(name) {
            let known = metrics.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(AssessError::NoMetric { name: name.clone(), known });
        }
    }
    if let Some(name) = &spec.main_metric {
        return Ok(name.clone());
    }
    let preferred: &[&str] = match task {
        Task::Classification => &["accuracy"],
        Task::Regression => &["mae"],
        Task::LanguageModel => &["exact_match", "pass_at_1", "loss"],
        Task::Transcription => &["wer"],
        Task::Ranking => &["ndcg"],
        Task::Uplift => &["qini", "ate"],
        Task::Segmentation => &["mean_iou", "iou"],
        Task::ObjectDetection => &["map"],
    };
    let found = preferred.iter().find(|name| metrics.contains_key(**name));
    found.map(|name| (*name).to_owned()).ok_or(AssessError::NoRows)
}

/// Both sides with the same classes, paired.
fn pairs(
    frame: &Frame,
    candidate: &Items,
    (task, columns): (Task, &Columns),
    spec: &Spec,
    baseline: Baseline<'_>,
) -> Result<crate::comparison::Pairs> {
    // What only one side has is not compared.
    let columns_there = without_missing(columns.clone(), baseline.frame);
    let there = items(baseline.frame, task, &columns_there, KnownClasses::default())?;
    let names = |items: &Items| match &items.content {
        Content::Classes(rows) => rows.names.to_vec(),
        _ => Vec::new(),
    };
    let (mut all, own) = (names(candidate), names(&there));
    if all == own {
        let there = match (spec.positive.as_deref(), spec.costs.as_ref()) {
            (None, None) => there,
            (positive, costs) => {
                let known = KnownClasses { positive, names: &[], costs };
                items(baseline.frame, task, &columns_there, known)?
            }
        };
        return pair((baseline.frame, &there), (frame, candidate), baseline.id);
    }
    all.extend(own);
    all.sort();
    all.dedup();
    let positive = spec.positive.as_deref().filter(|_| all.len() <= 2);
    let known = KnownClasses { positive, names: &all, costs: spec.costs.as_ref() };
    let (there, here) =
        (items(baseline.frame, task, &columns_there, known)?, items(frame, task, columns, known)?);
    pair((baseline.frame, &there), (frame, &in_order_of_scores(here)), baseline.id)
}

/// Metrics that decide nothing although they can be computed: where all labels are of one class, a model that always answers that class
/// is as good as any.
fn inconclusive(items: &Items, metrics: &crate::Metrics) -> BTreeMap<String, String> {
    let Content::Classes(rows) = &items.content else { return BTreeMap::new() };
    let Some(first) = rows.label.first() else { return BTreeMap::new() };
    if rows.label.iter().any(|label| label != first) {
        return BTreeMap::new();
    }
    let why = format!("every label is `{}`, and a metric of classes needs two", rows.names[*first as usize]);
    let of_two = ["roc_auc", "average_precision", "precision_at_recall"].map(str::to_owned);
    metrics.keys().cloned().chain(of_two).map(|name| (name, why.clone())).collect()
}

fn average(items: &Items) -> Option<Average> {
    let Content::Classes(rows) = &items.content else { return None };
    Some(if rows.positive.is_some() { Average::Binary } else { Average::Macro })
}
