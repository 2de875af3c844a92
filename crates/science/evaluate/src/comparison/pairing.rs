//! Which row of the baseline is which row of the candidate. Nothing is dropped without being counted.

use std::collections::HashMap;

use trackway_data::model::{Frame, MISSING_CODE};

use super::Pairs;
use crate::Pairing;
use crate::error::{AssessError, Result};
use crate::metrics::rows::{Content, Items, values_of};
use crate::metrics::uplift::Experiment;

/// Pairs by the column `id`, or by the position of the row without one; then the tables must have as many rows.
///
/// # Errors
/// No such column, different numbers of rows, no pair at all.
pub(crate) fn pair(
    (baseline_frame, baseline): (&Frame, &Items),
    (candidate_frame, candidate): (&Frame, &Items),
    id: Option<&str>,
) -> Result<Pairs> {
    let mut pairing = Pairing { id: id.map(str::to_owned), ..Pairing::default() };
    let (baseline_keys, candidate_keys) = match id {
        Some(id) => (keys(baseline_frame, baseline, id)?, keys(candidate_frame, candidate, id)?),
        None if baseline_frame.rows() == candidate_frame.rows() => (by_place(baseline), by_place(candidate)),
        None => {
            let rows = (baseline_frame.rows() as u64, candidate_frame.rows() as u64);
            return Err(AssessError::DifferentRows { baseline: rows.0, candidate: rows.1 });
        }
    };
    let (of_baseline, repeated_there) = unique(baseline_keys);
    let (of_candidate, repeated_here) = unique(candidate_keys);
    pairing.repeated_ids = repeated_there + repeated_here;
    let mut matched: Vec<(u32, u32)> =
        of_candidate.iter().filter_map(|(key, item)| Some((*of_baseline.get(key)?, *item))).collect();
    matched.sort_unstable_by_key(|(_, candidate)| *candidate);
    pairing.only_baseline = of_baseline.len() as u64 - matched.len() as u64;
    pairing.only_candidate = of_candidate.len() as u64 - matched.len() as u64;
    let before = matched.len() as u64;
    matched.retain(|(one, other)| same_label(baseline, *one, candidate, *other));
    pairing.different_labels = before - matched.len() as u64;
    pairing.pairs = matched.len() as u64;
    if matched.is_empty() {
        return Err(AssessError::NoPairs(Box::new(pairing)));
    }
    let (baseline_items, candidate_items): (Vec<u32>, Vec<u32>) = matched.into_iter().unzip();
    Ok(Pairs {
        baseline: baseline.subset(&baseline_items),
        candidate: candidate.subset(&candidate_items),
        pairing,
    })
}

/// The text of each item's id; nothing where it is missing.
fn keys(frame: &Frame, items: &Items, id: &str) -> Result<Vec<Option<String>>> {
    let index = frame.index_of(id).ok_or_else(|| AssessError::no_column(frame, id))?;
    let (names, codes) = values_of(&frame.columns()[index]);
    let key = |row: &u32| match codes[*row as usize] {
        MISSING_CODE => None,
        code => Some(names[code as usize].clone()),
    };
    Ok(items.row_of_item.iter().map(key).collect())
}

fn by_place(items: &Items) -> Vec<Option<String>> {
    items.row_of_item.iter().map(|row| Some(row.to_string())).collect()
}

/// Items whose key nothing else has, and how many others there are.
fn unique(keys: Vec<Option<String>>) -> (HashMap<String, u32>, u64) {
    let mut known: HashMap<String, (u32, u64)> = HashMap::new();
    let mut left_out = 0;
    for (item, key) in (0..).zip(keys) {
        match key {
            None => left_out += 1,
            Some(key) => known.entry(key).or_insert((item, 0)).1 += 1,
        }
    }
    left_out += known.values().filter(|(_, times)| *times > 1).map(|(_, times)| times).sum::<u64>();
    let unique = known.into_iter().filter(|(_, (_, times))| *times == 1);
    (unique.map(|(key, (item, _))| (key, item)).collect(), left_out)
}

/// Whether both sides have the same label; tasks without a label never differ.
fn same_label(baseline: &Items, one: u32, candidate: &Items, other: u32) -> bool {
    let (one, other) = (one as usize, other as usize);
    match (&baseline.content, &candidate.content) {
        (Content::Classes(baseline), Content::Classes(candidate)) => {
            baseline.names[baseline.label[one] as usize] == candidate.names[candidate.label[other] as usize]
        }
        (Content::Amounts(baseline), Content::Amounts(candidate)) => {
            baseline.label[one] == candidate.label[other]
        }
        (Content::Experiment(baseline), Content::Experiment(candidate)) => {
            let of = |rows: &Experiment, item: usize| (rows.outcome[item], rows.treated[item]);
            of(baseline, one) == of(candidate, other)
        }
        (Content::Pixels(baseline), Content::Pixels(candidate)) => {
            baseline.label_of(one) == candidate.label_of(other)
        }
        (Content::Boxes(baseline), Content::Boxes(candidate)) => {
            baseline.label_of(one) == candidate.label_of(other)
        }
        _ => true,
    }
}
