//! Out-of-fold predictions.

use std::collections::HashMap;

use rayon::prelude::*;

use super::bins::Binned;
use super::booster::{Booster, BoosterSettings, Predictions};
use super::frame::MISSING_CODE;
use super::target::Target;
use crate::split::{GroupClasses, Part, SplitError, stratified_group_folds};
use crate::values::hashed::AlreadyHashed;
use crate::values::hashed::scrambled;

/// How rows are parted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldSettings {
    pub count: usize,
    /// The same seed gives the same folds.
    pub seed: u64,
}

impl Default for FoldSettings {
    fn default() -> Self {
        Self { count: 5, seed: 0 }
    }
}

/// The fold of each row: rows of one key are together, and each fold has about the same fraction of every class.
///
/// # Errors
/// [`SplitError::Folds`]: fewer keys than folds, or a number of folds that makes no sense.
pub fn folds(keys: &[u64], target: &Target, settings: FoldSettings) -> Result<Vec<Part>, SplitError> {
    assert_eq!(keys.len(), target.rows(), "every row has a key");
    let classes = target.class_rows().len().max(1);
    let mut index: HashMap<u64, usize, AlreadyHashed> = HashMap::default();
    let mut groups: Vec<GroupClasses> = Vec::new();
    let mut group_of = Vec::with_capacity(keys.len());
    for (row, key) in keys.iter().enumerate() {
        let group = *index.entry(*key).or_insert_with(|| {
            let hash = scrambled(scrambled(settings.seed) ^ key);
            groups.push(GroupClasses { rows: vec![0; classes], unit: hash as f64 / u64::MAX as f64 });
            groups.len() - 1
        });
        match target {
            Target::Classes { of_row, .. } if of_row[row] == MISSING_CODE => {}
            Target::Classes { of_row, .. } => groups[group].rows[of_row[row] as usize] += 1,
            Target::Numbers(_) => groups[group].rows[0] += 1,
        }
        group_of.push(group);
    }
    let fold_of = stratified_group_folds(&groups, settings.count)?;
    Ok(group_of.into_iter().map(|group| fold_of[group]).collect())
}

/// Predicts every row by a model trained on the other folds. Rows without a target are predicted too, and never used
/// for training. As many values for each row as [`Predictions`] have.
#[must_use]
pub fn out_of_fold(
    binned: &Binned,
    columns: &[usize],
    target: &Target,
    folds: &[Part],
    settings: &BoosterSettings,
) -> Predictions {
    let count = folds.iter().max().map_or(0, |last| last + 1);
    let known = target.known_rows();
    let predict = |fold: Part| {
        let learn: Vec<u32> = known.iter().copied().filter(|row| folds[*row as usize] != fold).collect();
        let rows: Vec<u32> = (0..folds.len() as u32).filter(|row| folds[*row as usize] == fold).collect();
        let predictions = Booster::fit(binned, columns, target, &learn, settings).predict(binned, &rows);
        (rows, predictions)
    };
    let parts: Vec<_> = (0..count).into_par_iter().map(predict).collect();
    let outputs = parts.first().map_or(1, |(_, predictions)| predictions.outputs);
    let mut values = vec![0.0; folds.len() * outputs];
    for (rows, predictions) in parts {
        for (index, row) in rows.iter().enumerate() {
            let start = *row as usize * outputs;
            values[start..start + outputs].copy_from_slice(predictions.row(index));
        }
    }
    Predictions { outputs, values }
}
