//! Which column of a table of predictions holds what.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Task;

/// Which column holds what. Absent: there is none, or the task has no use for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PredictionColumns")]
#[serde(default, deny_unknown_fields)]
pub struct Columns {
    /// The ground truth.
    pub label: Option<String>,
    pub prediction: Option<String>,
    /// The score of the positive class, of a document for ranking or of a box: higher is more likely. For uplift the
    /// predicted effect.
    pub score: Option<String>,
    /// A score for each class, by its name.
    pub class_scores: BTreeMap<String, String>,
    /// Predicted quantiles, by their level (`0.9`: the fraction of values below).
    pub quantiles: BTreeMap<String, String>,
    /// What names a row; of completions, the task that they are for.
    pub id: Option<String>,
    /// Rows with the same value are not independent.
    pub group: Option<String>,
    /// The loss of a row in nats: of a token, or summed over its tokens where there is a column of tokens.
    pub loss: Option<String>,
    /// Tokens of a row.
    pub tokens: Option<String>,
    /// Bytes of a row's text.
    pub bytes: Option<String>,
    /// Whether a completion is right.
    pub correct: Option<String>,
    /// The reference transcript.
    pub reference: Option<String>,
    /// What was heard.
    pub hypothesis: Option<String>,
    /// What is searched for.
    pub query: Option<String>,
    /// How relevant a document is: 0 is not.
    pub relevance: Option<String>,
    /// The place of a document, 1 first.
    pub rank: Option<String>,
    /// Whether a row was treated (1) or not (0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub treatment: Option<String>,
    /// Pixels that are of the class and predicted as it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_positive: Option<String>,
    /// Pixels that are predicted as the class and are not of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_positive: Option<String>,
    /// Pixels that are of the class and not predicted as it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_negative: Option<String>,
    /// The image of a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The class of a box, or of counted pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Whether a box is a `label` or a `prediction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The left end of a box.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_min: Option<String>,
    /// The upper end of a box.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y_min: Option<String>,
    /// The right end of a box.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_max: Option<String>,
    /// The lower end of a box.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y_max: Option<String>,
}

impl Columns {
    /// The names of all columns that are known.
    pub fn given(&self) -> impl Iterator<Item = &str> {
        let roles = [
            &self.label, &self.prediction, &self.score, &self.id, &self.group, &self.loss, &self.tokens,
            &self.bytes, &self.correct, &self.reference, &self.hypothesis, &self.query, &self.relevance,
            &self.rank, &self.treatment, &self.true_positive, &self.false_positive, &self.false_negative,
            &self.image, &self.class, &self.kind, &self.x_min, &self.y_min, &self.x_max, &self.y_max,
        ];
        let roles = roles.into_iter().flatten();
        roles.chain(self.class_scores.values()).chain(self.quantiles.values()).map(String::as_str)
    }

    /// The names of the columns that hold what a model predicted, or how that compares with the label.
    pub fn predicted(&self) -> impl Iterator<Item = &str> {
        let roles = [
            &self.prediction, &self.score, &self.loss, &self.tokens, &self.bytes, &self.correct,
            &self.hypothesis, &self.rank,
        ];
        let roles = roles.into_iter().flatten();
        roles.chain(self.class_scores.values()).chain(self.quantiles.values()).map(String::as_str)
    }

    /// Without what a task has no use for.
    #[must_use]
    pub fn for_task(self, task: Task) -> Self {
        let mut kept = Self { id: self.id, group: self.group, ..Self::default() };
        match task {
            Task::Classification => {
                (kept.label, kept.prediction, kept.score) = (self.label, self.prediction, self.score);
                kept.class_scores = self.class_scores;
            }
            Task::Regression => {
                (kept.label, kept.prediction, kept.quantiles) = (self.label, self.prediction, self.quantiles);
            }
            Task::LanguageModel if self.correct.is_some() => kept.correct = self.correct,
            Task::LanguageModel => {
                if self.label.is_some() && self.prediction.is_some() {
                    (kept.label, kept.prediction) = (self.label, self.prediction);
                }
                (kept.loss, kept.tokens, kept.bytes) = (self.loss, self.tokens, self.bytes);
            }
            Task::Transcription => (kept.reference, kept.hypothesis) = (self.reference, self.hypothesis),
            Task::Ranking => {
                (kept.query, kept.relevance) = (self.query, self.relevance);
                (kept.rank, kept.score) = (self.rank, self.score);
            }
            Task::Uplift => {
                (kept.label, kept.score, kept.treatment) = (self.label, self.score, self.treatment);
            }
            Task::Segmentation => {
                (kept.true_positive, kept.false_positive) = (self.true_positive, self.false_positive);
                kept.false_negative = self.false_negative;
                (kept.image, kept.class) = (self.image, self.class);
            }
            Task::ObjectDetection => {
                (kept.image, kept.class, kept.kind, kept.score) =
                    (self.image, self.class, self.kind, self.score);
                (kept.x_min, kept.y_min, kept.x_max, kept.y_max) =
                    (self.x_min, self.y_min, self.x_max, self.y_max);
            }
        }
        kept
    }
}
