//! What of a run the ledger has no room for: names and texts that are too long, names that are given twice, and more of them than it keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sha2::{Digest, Sha256};
use trackway_core::text::hex;
use trackway_formats::frames::{MAX_NAME_BYTES, MAX_TEXT_BYTES};
use trackway_formats::record::METRIC_NAMES_MAX;

use super::{ForeignRun, OmissionKind};
use crate::receipts::seal::NAMED_ROWS_MAX;

/// Digits of the hash that ends a name which is cut: two long names with the same beginning stay two.
const HASH_DIGITS: usize = 8;

/// Makes a run fit, and notes what is left out and what is changed. `store` is where it is from.
pub(super) fn fit(run: &mut ForeignRun, store: &Path) {
    let whole = |name: &str| format!("{} of the run `{}`", name, run.name);
    let (metrics, parameters, tags) = (whole("metrics"), whole("parameters"), whole("tags"));

    let long = fit_metrics(&mut run.metrics);
    run.changed.add(OmissionKind::Metric, store, long_names(&metrics), long);
    let beyond = over(run.metrics.len(), METRIC_NAMES_MAX);
    let why = format!("{metrics}: of more than {METRIC_NAMES_MAX} the others have values and no summary");
    run.skipped.add(OmissionKind::Metric, store, why, beyond);

    for (pairs, kind, what, name_bytes) in [
        (&mut run.parameters, OmissionKind::Parameter, &parameters, MAX_NAME_BYTES),
        (&mut run.tags, OmissionKind::Tag, &tags, MAX_TEXT_BYTES),
    ] {
        let found = fit_pairs(pairs, name_bytes);
        run.changed.add(kind, store, long_names(what), found.long_names);
        let why = format!("{what}: values longer than {MAX_TEXT_BYTES} bytes are cut");
        run.changed.add(kind, store, why, found.long_values);
        let why = format!("{what}: of a name that is given twice the last value counts");
        run.skipped.add(kind, store, why, found.repeated);
        let why = format!("{what}: of more than {NAMED_ROWS_MAX} the others are only in the record");
        run.skipped.add(kind, store, why, over(pairs.len(), NAMED_ROWS_MAX));
    }
}

fn long_names(what: &str) -> String {
    format!("{what}: names that are too long are cut, and end in a hash")
}

fn over(count: usize, max: usize) -> u64 {
    count.saturating_sub(max) as u64
}

/// Shortens names of metrics; how many.
fn fit_metrics<T>(metrics: &mut BTreeMap<String, Vec<T>>) -> u64 {
    let long: Vec<String> = metrics.keys().filter(|name| name.len() > MAX_NAME_BYTES).cloned().collect();
    for name in &long {
        let points = metrics.remove(name).unwrap_or_default();
        metrics.entry(short(name, MAX_NAME_BYTES)).or_default().extend(points);
    }
    long.len() as u64
}

/// What is changed of pairs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fitted {
    long_names: u64,
    long_values: u64,
    repeated: u64,
}

fn fit_pairs(pairs: &mut Vec<(String, String)>, name_bytes: usize) -> Fitted {
    let mut found = Fitted::default();
    for (name, value) in pairs.iter_mut() {
        if name.len() > name_bytes {
            *name = short(name, name_bytes);
            found.long_names += 1;
        }
        if value.len() > MAX_TEXT_BYTES {
            value.truncate(value.floor_char_boundary(MAX_TEXT_BYTES));
            found.long_values += 1;
        }
    }
    let before = pairs.len();
    let mut seen = BTreeSet::new();
    pairs.reverse();
    pairs.retain(|(name, _)| seen.insert(name.clone()));
    pairs.reverse();
    found.repeated = (before - pairs.len()) as u64;
    found
}

/// A name that is too long: its beginning and a hash of all of it.
fn short(name: &str, max_bytes: usize) -> String {
    let hash: String = hex(&Sha256::digest(name)).chars().take(HASH_DIGITS).collect();
    let kept = name.floor_char_boundary(max_bytes - HASH_DIGITS - 1);
    format!("{}~{hash}", &name[..kept])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{ForeignPoint, at_millis};

    fn pairs(given: &[(&str, &str)]) -> Vec<(String, String)> {
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn listed(run: &ForeignRun) -> Vec<(OmissionKind, u64)> {
        let all = [run.skipped.list(), run.changed.list()].concat();
        all.into_iter().map(|it| (it.kind, it.count)).collect()
    }

    /// Proves that two long names with the same beginning stay two metrics, that both are counted, and that a run that fits is not changed.
    #[test]
    fn long_names_stay_apart() {
        let point = |value| vec![ForeignPoint { step: 0, at: at_millis(0), value }];
        let (one, other) = ("é".repeat(200) + "1", "é".repeat(200) + "2");
        let metrics = [("loss".to_owned(), point(0.0)), (one, point(1.0)), (other, point(2.0))];
        let mut run = ForeignRun { metrics: BTreeMap::from(metrics), ..ForeignRun::default() };
        fit(&mut run, Path::new("store"));
        assert_eq!(run.metrics.len(), 3);
        assert!(run.metrics.keys().all(|name| name.len() <= MAX_NAME_BYTES));
        assert_eq!(listed(&run), [(OmissionKind::Metric, 2)]);
        let fitted = run.clone();
        fit(&mut run, Path::new("store"));
        assert_eq!(run, fitted);
    }

    /// Proves that of a name given twice the last value counts, that a long value is cut at a character, and that more
    /// than the ledger keeps are counted.
    #[test]
    fn pairs_fit() {
        let long = "é".repeat(MAX_TEXT_BYTES);
        let tags = (0..NAMED_ROWS_MAX + 2).map(|number| (number.to_string(), String::new()));
        let mut run = ForeignRun {
            parameters: pairs(&[("lr", "0.1"), ("depth", "3"), ("lr", "0.2"), ("text", &long)]),
            tags: tags.collect(),
            ..ForeignRun::default()
        };
        fit(&mut run, Path::new("store"));
        assert_eq!(run.parameters[..2], pairs(&[("depth", "3"), ("lr", "0.2")]));
        assert_eq!(run.parameters[2].1.len(), MAX_TEXT_BYTES);
        let expected = [(OmissionKind::Parameter, 1), (OmissionKind::Tag, 2), (OmissionKind::Parameter, 1)];
        assert_eq!(listed(&run), expected);
    }
}
