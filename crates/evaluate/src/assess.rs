//! All that a table of predictions shows, in one call.

use trackway_data::model::Frame;

use crate::assessment::{Assessment, Average, Columns, Pairing, Task};
use crate::classes::{class_metrics, confusion};
use crate::comparison::{Terms, compare, pair};
use crate::curves::curves;
use crate::fairness::{FAIRNESS_GROUPS_MAX, fairness};
use crate::metrics::resample::Resampling;
use crate::metrics::rows::{Content, Items, KnownClasses, items};
use crate::metrics::scoring::Scoring;
use crate::metrics::{CLASSES_MAX, Judge, NDCG_PLACES, measure};
use crate::residuals::residuals_of;
use crate::slices::{SliceLimits, SliceRows, slices};

/// What is asked of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Columns that are known; the others are found by their names.
    pub columns: Columns,
    /// Guessed from the columns where absent.
    pub task: Option<Task>,
    /// The positive one of two classes; the last one where absent.
    pub positive: Option<String>,
    /// How sure intervals are.
    pub confidence: f64,
    /// How often rows are drawn again.
    pub resamples: u32,
    /// What the draws begin with.
    pub seed: u64,
    /// Draw rows again even where a formula gives the interval.
    pub always_resample: bool,
    /// The share of positives at which `precision_at_recall` is taken.
    pub recall: f64,
    /// The metric by which slices are judged; the task's own where absent.
    pub main_metric: Option<String>,
    /// Parts of the rows.
    pub slices: Vec<SliceRows>,
    /// Columns whose values are groups to be treated alike.
    pub fairness: Vec<String>,
    /// When a slice or group is too small.
    pub limits: SliceLimits,
    /// A difference from the baseline below this does not matter.
    pub margin: Option<f64>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            columns: Columns::default(),
            task: None,
            positive: None,
            confidence: 0.95,
            resamples: 1_000,
            seed: 0,
            always_resample: false,
            recall: 0.9,
            main_metric: None,
            slices: Vec::new(),
            fairness: Vec::new(),
            limits: SliceLimits::default(),
            margin: None,
        }
    }
}

/// The baseline's table.
#[derive(Debug, Clone, Copy)]
pub struct Baseline<'b> {
    /// Its rows; columns have the same names as the candidate's.
    pub frame: &'b Frame,
    /// The column by which rows find each other; their order where absent.
    pub id: Option<&'b str>,
}

/// Why a table cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssessError {
    /// Not in the table.
    #[error("there is no column `{name}`; there are {known}")]
    NoColumn {
        /// What was asked for.
        name: String,
        /// The columns that there are.
        known: String,
    },
    /// Nothing is known to hold this.
    #[error("no column is known to hold the {0}: name it (`--{0} COLUMN`)")]
    NoColumnFor(&'static str),
    /// Texts where numbers are needed.
    #[error("`{0}` holds texts where numbers are needed")]
    NoNumbers(String),
    /// Columns of no task.
    #[error(
        "the table shows no label with a prediction or score, no loss, no reference with a hypothesis, and no query with a \
         relevance: name the columns (`--label`, `--prediction`, `--score` …)"
    )]
    NoTask,
    /// More than [`CLASSES_MAX`].
    #[error(
        "`{column}` has {classes} classes, more than {CLASSES_MAX}: is it an amount (`--task regression`) or a text?"
    )]
    TooManyClasses {
        /// The label's column.
        column: String,
        /// How many.
        classes: usize,
    },
    /// A positive class that is not there.
    #[error("`{column}` has no class `{class}`; there are {classes}")]
    NoClass {
        /// What was asked for.
        class: String,
        /// The label's column.
        column: String,
        /// What there is.
        classes: String,
    },
    /// A positive class of many.
    #[error("a positive class needs two classes, and there are {0}")]
    NotTwoClasses(usize),
    /// Scores of some classes.
    #[error("there are scores of other classes, and none of `{0}`")]
    NoScoreOf(String),
    /// Every row lacks something.
    #[error("no row has all that is needed: a label, and a prediction or score")]
    NoRows,
    /// Fairness of something else than two classes.
    #[error("fairness is told of predictions of two classes only")]
    NotFairly,
    /// More than [`FAIRNESS_GROUPS_MAX`].
    #[error(
        "`{column}` has {groups} values, more than the {FAIRNESS_GROUPS_MAX} groups that can be compared"
    )]
    TooManyGroups {
        /// The column.
        column: String,
        /// How many.
        groups: usize,
    },
    /// A metric that this table does not give.
    #[error("there is no metric `{name}` here; there are {known}")]
    NoMetric {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Sides that cannot be paired by order.
    #[error(
        "the baseline has {baseline} rows and the candidate {candidate}: name the column that pairs them (`--id COLUMN`)"
    )]
    DifferentRows {
        /// Rows there.
        baseline: u64,
        /// Rows here.
        candidate: u64,
    },
    /// Nothing in common.
    #[error(
        "no row of the baseline is a row of the candidate: {} ids only there, {} only here, {} repeated or missing, {} with \
         another label", .0.only_baseline, .0.only_candidate, .0.repeated_ids, .0.different_labels
    )]
    NoPairs(Box<Pairing>),
    /// A number out of range.
    #[error("{0}")]
    OutOfRange(String),
}

impl AssessError {
    pub(crate) fn no_column(frame: &Frame, name: &str) -> Self {
        let known: Vec<&str> = frame.columns().iter().map(|column| column.name.as_str()).collect();
        Self::NoColumn { name: name.to_owned(), known: known.join(", ") }
    }
}

/// Judges a table.
///
/// # Errors
/// [`AssessError`]: columns that are not there or of no task, numbers out of range, a baseline without a row in common.
pub fn assess(frame: &Frame, spec: &Spec, baseline: Option<Baseline<'_>>) -> Result<Assessment, AssessError> {
    check(spec, frame)?;
    let columns = spec.columns.clone().complete(frame)?;
    let task = match spec.task {
        Some(task) => task,
        None => columns.task(frame)?,
    };
    let roles = columns.clone();
    let columns = columns.for_task(task);
    let known = KnownClasses { positive: spec.positive.as_deref(), names: &[] };
    let items = items(frame, task, &columns, known)?;
    let judge = Judge {
        resampling: Resampling { resamples: spec.resamples, seed: spec.seed, confidence: spec.confidence },
        recall: spec.recall,
        always_resample: spec.always_resample,
    };
    let items = in_order_of_scores(items);
    let scoring = Scoring::of(&items, spec.recall);
    let metrics = measure(&scoring, judge);
    let main_metric = main_metric(spec, task, &metrics)?;
    let fairness = |column: &String| fairness(frame, &items, column, spec.limits.support_min, judge);
    let fairness = spec.fairness.iter().map(fairness).collect::<Result<_, _>>()?;
    let comparison = baseline.map(|baseline| {
        let pairs = pairs(frame, &items, (task, &columns), spec, baseline)?;
        let slices: Vec<(&str, &[bool])> =
            spec.slices.iter().map(|slice| (slice.name.as_str(), slice.rows.as_slice())).collect();
        let terms = Terms {
            judge,
            margin: spec.margin,
            main_metric: &main_metric,
            support_min: spec.limits.support_min,
        };
        Ok(compare(&pairs, &slices, terms))
    });
    let rows = judged_rows(frame, &items, &columns, task);
    Ok(Assessment {
        task,
        rows,
        rows_seen: frame.rows_seen(),
        rows_left_out: frame.rows() as u64 - rows,
        groups: items.groups.as_ref().map(|(_, groups)| *groups as u64),
        confidence: spec.confidence,
        resamples: spec.resamples,
        seed: spec.seed,
        positive_class: positive_class(&items),
        average: average(&items),
        classes: class_metrics(&items, spec.confidence),
        confusion: confusion(&items),
        curves: curves(&items, &scoring, spec.confidence),
        residuals: residuals_of(frame, &items, &roles, spec.confidence),
        slices: slices(&items, &spec.slices, &main_metric, spec.limits, (&metrics, judge)),
        fairness,
        comparison: comparison.transpose()?,
        notes: notes(frame, (&items, &scoring), &columns, spec, task, &metrics),
        metrics,
        main_metric,
        columns,
    })
}

fn check(spec: &Spec, frame: &Frame) -> Result<(), AssessError> {
    let wrong = |what: String| Err(AssessError::OutOfRange(what));
    if !(spec.confidence > 0.5 && spec.confidence < 1.0) {
        return wrong(format!("a confidence lies between 0.5 and 1, and not at {}", spec.confidence));
    }
    if !(spec.recall > 0.0 && spec.recall <= 1.0) {
        return wrong(format!("a recall lies between 0 and 1, and not at {}", spec.recall));
    }
    if !(RESAMPLES_MIN..=RESAMPLES_MAX).contains(&spec.resamples) {
        return wrong(format!(
            "rows are drawn {RESAMPLES_MIN} to {RESAMPLES_MAX} times, and not {}",
            spec.resamples
        ));
    }
    match spec.slices.iter().find(|slice| slice.rows.len() != frame.rows()) {
        Some(slice) => wrong(format!(
            "slice `{}` tells of {} rows, and the table has {}",
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

fn main_metric(spec: &Spec, task: Task, metrics: &crate::Metrics) -> Result<String, AssessError> {
    if let Some(name) = &spec.main_metric {
        let known = || metrics.keys().cloned().collect::<Vec<_>>().join(", ");
        return match metrics.contains_key(name) {
            true => Ok(name.clone()),
            false => Err(AssessError::NoMetric { name: name.clone(), known: known() }),
        };
    }
    let preferred: &[&str] = match task {
        Task::Classification => &["accuracy"],
        Task::Regression => &["mae"],
        Task::LanguageModel => &["exact_match", "pass_at_1", "loss"],
        Task::Transcription => &["wer"],
        Task::Ranking => &["ndcg"],
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
) -> Result<crate::comparison::Pairs, AssessError> {
    // What only one side has is not compared.
    let columns_there = columns.clone().without_missing(baseline.frame);
    let there = items(baseline.frame, task, &columns_there, KnownClasses::default())?;
    let names = |items: &Items| match &items.content {
        Content::Classes(rows) => rows.names.to_vec(),
        _ => Vec::new(),
    };
    let (mut all, own) = (names(candidate), names(&there));
    if all == own {
        let there = match spec.positive.as_deref() {
            Some(positive) => {
                let known = KnownClasses { positive: Some(positive), names: &[] };
                items(baseline.frame, task, &columns_there, known)?
            }
            None => there,
        };
        return pair((baseline.frame, &there), (frame, candidate), baseline.id);
    }
    all.extend(own);
    all.sort();
    all.dedup();
    let positive = spec.positive.as_deref().filter(|_| all.len() <= 2);
    let known = KnownClasses { positive, names: &all };
    let (there, here) =
        (items(baseline.frame, task, &columns_there, known)?, items(frame, task, columns, known)?);
    pair((baseline.frame, &there), (frame, &in_order_of_scores(here)), baseline.id)
}

/// Rows of the table that are in some item.
fn judged_rows(frame: &Frame, items: &Items, columns: &Columns, task: Task) -> u64 {
    let is_many = task == Task::Ranking || (columns.correct.is_some() && columns.id.is_some());
    if !is_many {
        return items.len() as u64;
    }
    let needed = [&columns.query, &columns.relevance, &columns.correct, &columns.id];
    let order = columns.rank.as_ref().or(columns.score.as_ref()).filter(|_| task == Task::Ranking);
    let needed = match task {
        Task::Ranking => &needed[..2],
        _ => &needed[2..],
    };
    let indexes: Vec<usize> = needed
        .iter()
        .filter_map(|name| name.as_ref())
        .chain(order)
        .filter_map(|name| frame.index_of(name))
        .collect();
    let is_whole = |row: &usize| indexes.iter().all(|index| !frame.columns()[*index].cells.is_missing(*row));
    (0..frame.rows()).filter(is_whole).count() as u64
}

fn positive_class(items: &Items) -> Option<String> {
    let Content::Classes(rows) = &items.content else { return None };
    rows.positive.map(|positive| rows.names[positive as usize].clone())
}

fn average(items: &Items) -> Option<Average> {
    let Content::Classes(rows) = &items.content else { return None };
    Some(if rows.positive.is_some() { Average::Binary } else { Average::Macro })
}

/// What was guessed, left out, or could not be computed.
fn notes(
    frame: &Frame,
    (items, scoring): (&Items, &Scoring),
    columns: &Columns,
    spec: &Spec,
    task: Task,
    metrics: &crate::Metrics,
) -> Vec<String> {
    let mut notes = Vec::new();
    if spec.task.is_none() {
        notes.push(format!("judged as {}, by its columns", task.as_str().replace('_', " ")));
    }
    if (frame.rows() as u64) < frame.rows_seen() {
        notes.push(format!(
            "{} of {} rows were drawn and judged: all of them would not fit into memory",
            frame.rows(),
            frame.rows_seen()
        ));
    }
    let left_out = frame.rows() as u64 - judged_rows(frame, items, columns, task);
    if left_out > 0 {
        notes.push(format!("{left_out} rows lack a value that is needed, and are in no number"));
    }
    if let Content::Classes(rows) = &items.content {
        if let (Some(positive), None) = (positive_class(items), &spec.positive) {
            notes.push(format!("`{positive}` counts as positive; --positive CLASS names another one"));
        }
        if columns.prediction.is_none() {
            let how = match (&rows.score, rows.are_probabilities) {
                (Some(_), true) => "the positive class from a probability of 0.5 on",
                (Some(_), false) => "the positive class from a score of 0 on",
                (None, _) => "the class with the highest score",
            };
            notes.push(format!("no column holds predictions: {how} was taken"));
        }
        if !rows.are_probabilities && (rows.score.is_some() || !rows.class_scores.is_empty()) {
            notes.push("scores are no probabilities: no log_loss, brier and ece".to_owned());
        }
        if rows.score.is_none() && rows.class_scores.is_empty() {
            let what = if columns.score.is_some() {
                "one score cannot rank more than two classes"
            } else {
                "no scores"
            };
            notes.push(format!("{what}: no roc_auc, average_precision, log_loss, brier and ece"));
        }
    }
    for metric in scoring.metrics.iter().filter(|metric| !metrics.contains_key(&metric.name)) {
        notes.push(format!("{} cannot be computed: nothing to divide by, or no finite number", metric.name));
    }
    if metrics.contains_key("precision_at_recall") {
        notes.push(format!(
            "precision_at_recall is the best precision with a recall of at least {}",
            spec.recall
        ));
    }
    if metrics.contains_key("ndcg") {
        notes.push(format!("ndcg counts the first {NDCG_PLACES} places"));
    }
    if let Some((_, groups)) = &items.groups
        && *groups < GROUPS_FEW
    {
        notes.push(format!(
            "intervals from {groups} groups are rough: from {GROUPS_FEW} on they hold what they say"
        ));
    }
    notes
}

/// With fewer groups, intervals that draw groups are too narrow.
const GROUPS_FEW: usize = 20;
