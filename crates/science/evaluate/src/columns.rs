//! Detects which column has which role, where it was not given: by the usual names.

use std::collections::BTreeMap;

use trackway_data::model::{CLASS_NUMBERS_MAX, Cells, Frame, FrameColumn};
use trackway_results::assessment::{Columns, Task};

use crate::error::{AssessError, Result};
use crate::metrics::CLASSES_MAX;
use crate::metrics::rows::values_of;
use crate::spellings::agreement;

/// Names of columns, the usual one first. Letters' case does not matter.
const LABEL: &[&str] = &["label", "target", "y_true", "truth", "actual"];
const PREDICTION: &[&str] =
    &["prediction", "predicted", "pred", "y_pred", "predicted_class", "predicted_label"];
const SCORE: &[&str] =
    &["score", "probability", "y_score", "y_prob", "prob", "proba", "y_proba", "predicted_probability"];
const CLASS_SCORE: &[&str] = &["score_", "probability_", "prob_", "proba_"];
/// Further names of what a model said of a row; they give a column no role.
const SAID: &[&str] = &[
    "predictions", "preds", "y_hat", "yhat", "scores", "probabilities", "probs", "pred_proba", "pred_prob",
    "prediction_probability", "prediction_score", "predicted_score", "confidence", "logit", "logits",
];
/// The same, of several columns: `pred_a`, `logit_1`.
const SAID_OF_CLASS: &[&str] =
    &["pred_", "prediction_", "predicted_", "y_pred_", "y_prob_", "y_proba_", "logit_"];
/// Names of how right that was; with [`LOSS`].
const JUDGED: &[&str] = &[
    "correct", "is_correct", "error", "is_error", "abs_error", "absolute_error", "squared_error", "residual",
    "residuals",
];
const QUANTILE: &str = "quantile_";
const ID: &[&str] = &["id", "example_id", "sample_id", "task_id"];
const LOSS: &[&str] = &["loss", "nll"];
const TOKENS: &[&str] = &["tokens", "token_count"];
const BYTES: &[&str] = &["bytes", "byte_count"];
const CORRECT: &[&str] = &["correct", "passed"];
const REFERENCE: &[&str] = &["reference"];
const HYPOTHESIS: &[&str] = &["hypothesis"];
const QUERY: &[&str] = &["query", "query_id", "qid"];
const RELEVANCE: &[&str] = &["relevance"];
const RANK: &[&str] = &["rank"];
const TREATMENT: &str = "treatment";
const TRUE_POSITIVE: &[&str] = &["true_positive", "tp"];
const FALSE_POSITIVE: &[&str] = &["false_positive", "fp"];
const FALSE_NEGATIVE: &[&str] = &["false_negative", "fn"];
const IMAGE: &[&str] = &["image", "image_id"];
const CLASS: &[&str] = &["class", "category"];
const KIND: &[&str] = &["kind"];

/// Whether a column with this name is what a model predicted of a row (a prediction, a score, one for each class, a
/// quantile), or how right that was (a loss, an error, `correct`).
#[must_use]
pub fn names_a_prediction(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    [PREDICTION, SCORE, SAID, LOSS, JUDGED].into_iter().flatten().any(|usual| lower == *usual)
        || [CLASS_SCORE, SAID_OF_CLASS].into_iter().flatten().any(|prefix| lower.starts_with(prefix))
        || name.strip_prefix(QUANTILE).is_some_and(is_share)
}

/// The column of a role, and the names that such columns usually have.
type Role<'c> = (&'c mut Option<String>, &'static [&'static str]);

/// Finds by its usual names each column that is not given, among those that are not given for another role.
fn fill<const N: usize>(roles: [Role<'_>; N], frame: &Frame, taken: &[String]) {
    for (role, names) in roles.into_iter().filter(|(role, _)| role.is_none()) {
        *role = names.iter().find_map(|name| {
            let found = frame.columns().iter().find(|column| column.name.eq_ignore_ascii_case(name))?;
            (!taken.contains(&found.name)).then(|| found.name.clone())
        });
    }
}

/// These columns, and by their names those that are not given. Columns that were given must be there.
///
/// # Errors
/// A column that was given is not there.
pub fn complete_columns(mut columns: Columns, frame: &Frame) -> Result<Columns> {
    if let Some(missing) = columns.given().find(|name| frame.index_of(name).is_none()) {
        return Err(AssessError::no_column(frame, missing));
    }
    if let Some(label) = &columns.label
        && [&columns.prediction, &columns.score].into_iter().flatten().any(|name| name == label)
    {
        return Err(AssessError::SameColumn(label.clone()));
    }
    let taken: Vec<String> = columns.given().map(str::to_owned).collect();
    fill(roles_of_rows(&mut columns), frame, &taken);
    let of_images = [&columns.true_positive, &columns.image, &columns.kind].into_iter().any(Option::is_some);
    let is_named = || has_all(frame, &PIXELS) || has_all(frame, &BOXES);
    if of_images || (columns.prediction.is_none() && is_named()) {
        fill(roles_of_images(&mut columns), frame, &taken);
        // What both sides of a comparison have in common is the image, not the box.
        columns.id = columns.image.clone().or(columns.id);
    } else if columns.treatment.is_none()
        && columns.label.is_some()
        && columns.score.is_some()
        && columns.prediction.is_none()
    {
        columns.treatment = treatment(frame).filter(|name| !taken.contains(name));
    }
    if columns.class_scores.is_empty() {
        columns.class_scores = class_scores(frame, columns.label.as_deref());
    }
    for column in frame.columns() {
        if let Some(share) = column.name.strip_prefix(QUANTILE).filter(|share| is_share(share)) {
            columns.quantiles.entry(share.to_owned()).or_insert_with(|| column.name.clone());
        }
    }
    Ok(columns)
}

/// What columns of one row for each sample can be, with their usual names.
fn roles_of_rows(columns: &mut Columns) -> [Role<'_>; 13] {
    [
        (&mut columns.label, LABEL),
        (&mut columns.prediction, PREDICTION),
        (&mut columns.score, SCORE),
        (&mut columns.id, ID),
        (&mut columns.loss, LOSS),
        (&mut columns.tokens, TOKENS),
        (&mut columns.bytes, BYTES),
        (&mut columns.correct, CORRECT),
        (&mut columns.reference, REFERENCE),
        (&mut columns.hypothesis, HYPOTHESIS),
        (&mut columns.query, QUERY),
        (&mut columns.relevance, RELEVANCE),
        (&mut columns.rank, RANK),
    ]
}

/// The same of counted pixels and of boxes.
fn roles_of_images(columns: &mut Columns) -> [Role<'_>; 10] {
    [
        (&mut columns.true_positive, TRUE_POSITIVE),
        (&mut columns.false_positive, FALSE_POSITIVE),
        (&mut columns.false_negative, FALSE_NEGATIVE),
        (&mut columns.image, IMAGE),
        (&mut columns.class, CLASS),
        (&mut columns.kind, KIND),
        (&mut columns.x_min, &["x_min"]),
        (&mut columns.y_min, &["y_min"]),
        (&mut columns.x_max, &["x_max"]),
        (&mut columns.y_max, &["y_max"]),
    ]
}

/// Without scores, quantiles and bytes that a table lacks: what else it lacks is an error.
pub(crate) fn without_missing(mut columns: Columns, frame: &Frame) -> Columns {
    let is_there = |name: &String| frame.index_of(name).is_some();
    if !columns.class_scores.values().all(is_there) {
        columns.class_scores.clear();
    }
    columns.quantiles.retain(|_, name| is_there(name));
    let has_documents = columns.relevance.is_some();
    for role in [&mut columns.score, &mut columns.bytes] {
        *role = role.take().filter(|name| has_documents || is_there(name));
    }
    columns
}

/// The task that these columns are of.
///
/// # Errors
/// They are of none.
pub(crate) fn task_of(of: &Columns, frame: &Frame) -> Result<Task> {
    if of.reference.is_some() && of.hypothesis.is_some() {
        return Ok(Task::Transcription);
    }
    if of.query.is_some() && of.relevance.is_some() {
        return Ok(Task::Ranking);
    }
    if [&of.true_positive, &of.false_positive, &of.false_negative].into_iter().all(Option::is_some) {
        return Ok(Task::Segmentation);
    }
    if [&of.kind, &of.x_min, &of.y_min, &of.x_max, &of.y_max].into_iter().all(Option::is_some) {
        return Ok(Task::ObjectDetection);
    }
    if of.treatment.is_some() {
        return Ok(Task::Uplift);
    }
    if of.label.is_none() || (of.prediction.is_none() && of.score.is_none() && of.class_scores.is_empty()) {
        let is_language = of.loss.is_some() || of.correct.is_some();
        return if is_language { Ok(Task::LanguageModel) } else { Err(AssessError::NoTask) };
    }
    let columns = [&of.label, &of.prediction].into_iter().flatten();
    let cells: Vec<&Cells> =
        columns.filter_map(|name| Some(&frame.columns()[frame.index_of(name)?].cells)).collect();
    let is_class = |cells: &&Cells| match cells {
        Cells::Categories { names, .. } => names.len() <= CLASSES_MAX,
        Cells::Numbers(values) => are_classes(values),
    };
    let are_texts = cells.iter().all(|cells| matches!(cells, Cells::Categories { .. }));
    match (cells.iter().all(is_class), are_texts) {
        (true, _) => Ok(Task::Classification),
        (false, true) => Ok(Task::LanguageModel),
        (false, false) => Ok(Task::Regression),
    }
}

/// The roles of which a table of pixels, or of boxes, has all.
const PIXELS: [&[&str]; 3] = [TRUE_POSITIVE, FALSE_POSITIVE, FALSE_NEGATIVE];
const BOXES: [&[&str]; 7] = [IMAGE, CLASS, KIND, &["x_min"], &["y_min"], &["x_max"], &["y_max"]];

/// Whether each of these roles has a column of one of its usual names.
fn has_all(frame: &Frame, roles: &[&[&str]]) -> bool {
    let has = |name: &&str| frame.columns().iter().any(|column| column.name.eq_ignore_ascii_case(name));
    roles.iter().all(|names| names.iter().any(has))
}

/// A column that is named like a treatment and is 0 or 1 in every row: a feature of the same name is not taken for one
/// so easily.
fn treatment(frame: &Frame) -> Option<String> {
    let is_named = |column: &&FrameColumn| column.name.eq_ignore_ascii_case(TREATMENT);
    let column = frame.columns().iter().find(is_named)?;
    let Cells::Numbers(values) = &column.cells else { return None };
    let is_arm = |value: &f64| value.is_nan() || *value == 0.0 || *value == 1.0;
    values.iter().all(is_arm).then(|| column.name.clone())
}

/// The columns that are named like a score of a class, if every class of the label has one: a column such as
/// `score_old` is none.
fn class_scores(frame: &Frame, label: Option<&str>) -> BTreeMap<String, String> {
    let Some(label) = label.and_then(|label| frame.index_of(label)) else { return BTreeMap::new() };
    let named = |column: &FrameColumn| {
        let class = CLASS_SCORE.iter().find_map(|prefix| column.name.strip_prefix(prefix))?;
        Some((class.to_owned(), column.name.clone()))
    };
    let found: BTreeMap<String, String> = frame.columns().iter().filter_map(named).collect();
    let (classes, _) = values_of(&frame.columns()[label]);
    if classes.iter().all(|class| found.contains_key(class)) {
        return found;
    }
    // The scores may be named as the predictions have the classes: `score_1` for `true`.
    let named: Vec<String> = found.keys().cloned().collect();
    let agreed = agreement(&classes, &named);
    let of_class = |(class, column): (String, String)| Some((agreed.label_of(&class)?.to_owned(), column));
    let found: BTreeMap<String, String> = found.into_iter().filter_map(of_class).collect();
    if classes.iter().all(|class| found.contains_key(class)) { found } else { BTreeMap::new() }
}

fn is_share(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|share| share > 0.0 && share < 1.0)
}

/// Whole numbers of few different values.
fn are_classes(values: &[f64]) -> bool {
    let mut different: Vec<f64> = Vec::new();
    for value in values.iter().filter(|value| !value.is_nan()) {
        if value.fract() != 0.0 {
            return false;
        }
        if !different.contains(value) {
            different.push(*value);
        }
        if different.len() > CLASS_NUMBERS_MAX {
            return false;
        }
    }
    true
}
