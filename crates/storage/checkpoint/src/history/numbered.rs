//! Maps by number as lists of pairs: JSON has no numbers for keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub fn serialize<T: Serialize, S: Serializer>(
    map: &BTreeMap<u64, T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(map)
}

pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<u64, T>, D::Error> {
    Ok(Vec::<(u64, T)>::deserialize(deserializer)?.into_iter().collect())
}
