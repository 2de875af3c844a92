//! Notes for a reader of an assessment.

use trackway_core::MissingPredictions;
use trackway_data::model::Frame;
use trackway_results::assessment::{Columns, Fairness, Metrics, Task};

use super::spec::Spec;
use crate::metrics::rows::{Classes, Content, Items, values_of};
use crate::metrics::scoring::Scoring;
use crate::metrics::{DETECTIONS_MAX, NDCG_PLACES};
use crate::spellings::{folded, in_several_forms};

/// With fewer groups, intervals that draw groups are too narrow.
const GROUPS_FEW: usize = 20;

/// Rows that lack something, and tasks that are not answered as they should be.
fn gaps(frame: &Frame, items: &Items, spec: &Spec) -> Vec<String> {
    let left_out = frame.rows() as u64 - items.rows.judged();
    let (unanswered, unscored) = (items.rows.unanswered(), items.rows.unscored());
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!("{} no label or no other value that is needed, and {} in no number: gates over them are inconclusive", have(left_out), are(left_out)));
    }
    if unanswered > 0 {
        let counted = match spec.missing {
            MissingPredictions::Wrong => ": counted as wrong",
            MissingPredictions::Inconclusive => ": gates over them are inconclusive",
        };
        notes.push(format!("{} no prediction{counted}", have(unanswered)));
    }
    if unscored > 0 {
        notes.push(format!(
            "{} no finite score: gates over metrics of scores are inconclusive",
            have(unscored)
        ));
    }
    if let Some(tasks) = spec.tasks.as_ref().filter(|tasks| !tasks.coverage.is_complete()) {
        notes.push(format!("the evaluation is incomplete: {}", tasks.coverage.sentence()));
    }
    notes
}

fn have(rows: u64) -> String {
    if rows == 1 { "1 row has".to_owned() } else { format!("{rows} rows have") }
}

fn are(rows: u64) -> &'static str {
    if rows == 1 { "is" } else { "are" }
}

/// What was guessed, left out, or could not be computed.
pub fn notes(
    frame: &Frame,
    (items, scoring): (&Items, &Scoring),
    columns: &Columns,
    (spec, task): (&Spec, Task),
    (metrics, fairness): (&Metrics, &[Fairness]),
) -> Vec<String> {
    let mut notes = Vec::new();
    if spec.task.is_none() {
        notes.push(format!("task detected from the columns: {}", task.as_str().replace('_', " ")));
    }
    if (frame.rows() as u64) < frame.rows_seen() {
        notes.push(format!(
            "a random sample of {} of {} rows was evaluated: all rows do not fit into memory",
            frame.rows(),
            frame.rows_seen()
        ));
    }
    notes.extend(gaps(frame, items, spec));
    let (count, is_one) = (frame.left_out().len(), frame.left_out().len() == 1);
    if count > 0 {
        let (columns, are) = if is_one { ("column", "is") } else { ("columns", "are") };
        notes.push(format!("{count} {columns} {are} left out: {}", frame.left_out().join("; ")));
    }
    if task == Task::LanguageModel {
        notes.extend(nearly_exact(frame, columns));
    }
    if let Content::Classes(rows) = &items.content {
        notes.extend(of_classes(rows, items, columns, spec));
    }
    for metric in scoring.metrics.iter().filter(|metric| !metrics.contains_key(&metric.name)) {
        notes.push(format!("{} cannot be computed: division by zero, or not a finite number", metric.name));
    }
    notes.extend(of_definitions(items, spec, metrics));
    for fairness in fairness {
        for (measure, class) in &fairness.worst_classes {
            notes.push(format!("{measure} by `{}` differs most for the class `{class}`", fairness.column));
        }
    }
    if let Some((_, groups)) = &items.groups
        && *groups < GROUPS_FEW
    {
        notes.push(format!(
            "intervals from {groups} groups are approximate: they are reliable from {GROUPS_FEW} groups on"
        ));
    }
    notes
}

/// Texts that differ from what was expected in case, Unicode form, blanks around them or the form of a number only.
fn nearly_exact(frame: &Frame, columns: &Columns) -> Option<String> {
    let (label, prediction) = columns.label.as_deref().zip(columns.prediction.as_deref())?;
    let texts = |name: &str| Some(values_of(&frame.columns()[frame.index_of(name)?]));
    let ((names, codes), (own_names, own_codes)) = (texts(label)?, texts(prediction)?);
    let nearly = |(code, own): (&u32, &u32)| {
        let pair = names.get(*code as usize).zip(own_names.get(*own as usize));
        pair.is_some_and(|(label, own)| label != own && folded(label) == folded(own))
    };
    let count = codes.iter().zip(&own_codes).filter(|pair| nearly(*pair)).count() as u64;
    let differ =
        if count == 1 { "1 prediction differs".to_owned() } else { format!("{count} predictions differ") };
    (count > 0).then(|| {
        let are = are(count);
        format!("{differ} from what is expected in case, Unicode form, surrounding blanks or zeros behind a point only, and {are} counted as wrong")
    })
}

/// What classes were guessed from, and which of their metrics cannot be computed.
fn of_classes(rows: &Classes, items: &Items, columns: &Columns, spec: &Spec) -> Vec<String> {
    let mut notes = rows.agreement.notes();
    notes.extend(in_several_forms(&rows.names));
    if let (Some(positive), None) = (items.positive_class(), &spec.positive) {
        notes.push(format!("`{positive}` counts as positive; --positive CLASS names another one"));
    }
    if columns.prediction.is_none() {
        let how = match (&rows.score, rows.are_probabilities) {
            (Some(_), true) => "the positive class from a probability of 0.5 on",
            (Some(_), false) => "the positive class from a score of 0 on",
            (None, _) => "the class with the highest score",
        };
        notes.push(format!("there is no prediction column: {how} was used"));
    }
    if !rows.are_probabilities && (rows.score.is_some() || !rows.class_scores.is_empty()) {
        notes.push("scores are not probabilities: no log_loss, brier and ece".to_owned());
    }
    if rows.score.is_none() && rows.class_scores.is_empty() {
        let what =
            if columns.score.is_some() { "one score cannot rank more than two classes" } else { "no scores" };
        notes.push(format!("{what}: no roc_auc, average_precision, log_loss, brier and ece"));
    }
    notes
}

/// How metrics are defined that have several definitions.
fn of_definitions(items: &Items, spec: &Spec, metrics: &Metrics) -> Vec<String> {
    let mut notes = Vec::new();
    if metrics.contains_key("precision_at_recall") {
        notes.push(format!(
            "precision_at_recall is the best precision with a recall of at least {}",
            spec.recall
        ));
    }
    if metrics.contains_key("ndcg") {
        notes.push(format!("ndcg counts the first {NDCG_PLACES} places"));
    }
    match &items.content {
        Content::Experiment(rows) if !rows.is_binary() => {
            notes.push("outcomes are not 0 or 1: no qini and auuc".to_owned());
        }
        Content::Boxes(_) => notes.push(format!(
            "map is as COCO defines it: all sizes, at most {DETECTIONS_MAX} predictions of a class in an image, no crowds"
        )),
        _ => {}
    }
    notes
}
