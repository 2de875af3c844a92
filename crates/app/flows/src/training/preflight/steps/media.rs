//! Folders of images and texts: whether each file can be read, and has its mask and its label.

use trackway_core::checks::CheckResult;
use trackway_data::media::{MediaRequest, check};
use trackway_engine::error::AppError;

use super::data::{Readings, of_sets, together};
use super::{Looker, Work};
use crate::data::table::data_error;
use crate::training::preflight::facts::PlanFacts;
use crate::training::preflight::sets::{Content, DataSet};

/// What is checked, in the order in which it is shown.
pub const CHECKS: [&str; 8] = [
    "media.decode", "media.sizes", "media.modes", "media.constant", "media.duplicates", "media.pairs",
    "media.masks", "media.labels",
];

pub fn has_media(facts: &PlanFacts<'_>) -> Result<(), String> {
    if facts.sets.iter().any(|set| set.is_media) {
        return Ok(());
    }
    Err("no data set is a folder of images, or has `masks` or `labels`".into())
}

/// Reads every file of each such set once.
pub fn media(work: &Work<'_>, looker: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    let mut readings = Readings::new(work, looker, 0);
    let mut answers = Vec::new();
    for set in work.sets.all().iter().filter(|set| matches!(set.content, Content::Media)) {
        let found = readings
            .next(0, |observer| check(&work.job.base, &request(set), &set.read_context, &observer.watch()));
        let found = found.map_err(data_error)?;
        answers.extend(found.checks.into_iter().map(|check| of_sets(check, set, work)));
    }
    Ok(CHECKS.into_iter().map(|name| together(name, &answers)).collect())
}

fn request(set: &DataSet) -> MediaRequest {
    MediaRequest {
        paths: vec![set.spec.path.clone()],
        masks: set.spec.masks.clone(),
        labels: set.spec.labels.clone(),
    }
}
