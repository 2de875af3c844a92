//! The largest class of the labels that an attempt was trained on, as far as pre-flight counted them.

use trackway_data::snapshot::SnapshotStore;
use trackway_formats::runfile::{DataRole, Plan};
use trackway_ledger::{AttemptRow, RunDataRow, RunRow};
use trackway_rules::health::Majority;
use trackway_tables::ColumnType;
use trackway_tables::profile::ColumnProfile;

use crate::Context;
use crate::error::AppError;

/// Of more values a label is a quantity, not a class.
const CLASSES_MAX: u64 = 100;

/// The largest class of the training data; none where the attempt read other data than is known, or where the classes were not counted.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) fn majority_of(
    context: &Context,
    run: &RunRow,
    row: &AttemptRow,
    plan: &Plan,
) -> Result<Option<Majority>, AppError> {
    let label_of = |set: &RunDataRow| plan.data.get(&set.name)?.label.clone();
    if plan.data.values().all(|set| set.label.is_none()) {
        return Ok(None);
    }
    let read = context.sets_read(run, Some(row))?;
    let is_training = |set: &&RunDataRow| set.role.as_deref() == Some(DataRole::Train.as_str());
    let set = read.sets.iter().map(|(set, _)| set).filter(|_| read.doubt.is_none()).find(is_training);
    let Some((set, label)) = set.and_then(|set| Some((set, label_of(set)?))) else { return Ok(None) };
    let store = SnapshotStore::new(&context.home.layout.data());
    // Where a profile cannot be read nothing is known of the classes.
    let profile = store.profile_of_data(&set.data_sha256, Some(&label)).ok().flatten();
    let fraction = profile.and_then(|profile| largest_fraction(profile.column(&label)?));
    Ok(fraction.map(|fraction| Majority { fraction, of: set.path.clone() }))
}

/// The fraction of the labels that the largest class has; none where values are too many, or are measured rather than named.
fn largest_fraction(column: &ColumnProfile) -> Option<f64> {
    let is_named = matches!(column.kind, ColumnType::Text | ColumnType::Bool | ColumnType::Int);
    let is_counted = column.values_are_exact() && column.summary().distinct_estimate <= CLASSES_MAX;
    let largest = column.top_values(usize::MAX).iter().map(|value| value.count).max()?;
    (is_named && is_counted && largest > 0).then(|| largest as f64 / column.value_count() as f64)
}
