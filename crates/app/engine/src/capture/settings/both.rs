//! What two maps have of each key.

use std::collections::{BTreeMap, BTreeSet};

/// Each key that one of the maps has, in order, with its values in both.
pub fn both<'m, K: Ord, V>(
    before: &'m BTreeMap<K, V>,
    after: &'m BTreeMap<K, V>,
) -> impl Iterator<Item = (&'m K, Option<&'m V>, Option<&'m V>)> {
    let keys: BTreeSet<&K> = before.keys().chain(after.keys()).collect();
    keys.into_iter().map(|key| (key, before.get(key), after.get(key)))
}
