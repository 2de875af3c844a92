//! What a reader of an assessment should know.

use trackway_data::model::Frame;

use crate::assess::{Spec, judged_rows, positive_class};
use crate::assessment::{Columns, Metrics, Task};
use crate::metrics::NDCG_PLACES;
use crate::metrics::rows::{Content, Items};
use crate::metrics::scoring::Scoring;

/// With fewer groups, intervals that draw groups are too narrow.
const GROUPS_FEW: usize = 20;

/// What was guessed, left out, or could not be computed.
pub fn notes(
    frame: &Frame,
    (items, scoring): (&Items, &Scoring),
    columns: &Columns,
    spec: &Spec,
    task: Task,
    metrics: &Metrics,
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
