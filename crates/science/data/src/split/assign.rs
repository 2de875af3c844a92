//! Parts, folds and rungs of every row of a table, and the proof that they are as requested.

use std::collections::{BTreeMap, HashMap};

use trackway_formats::subset::{subset_of, unit_of};
use trackway_results::split::{SplitMethod, SplitProof};

use super::by_time::cut_by_time;
use super::folds::{GroupClasses, stratified_group_folds};
use super::parts::{FOLD_COUNT_MAX, Part, Shares, SplitError, by_hash_within_classes};
use super::rows::SplitRows;

/// The requested split.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitPlan {
    pub method: SplitMethod,
    /// The parts; without them all rows are one.
    pub shares: Option<Shares>,
    /// Folds of the first part, 2 at least; `None`: none.
    pub folds: Option<usize>,
    /// Fractions of the rungs, ascending, each above 0 and at most 1; empty: none.
    pub rungs: Vec<f64>,
    /// Another seed gives another split.
    pub seed: u64,
}

/// Where every row goes; in the order of [`SplitRows`].
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The part; `None` for a row that has no time.
    pub parts: Vec<Option<Part>>,
    /// The fold; `None` outside of the first part. Empty if no folds were requested.
    pub folds: Vec<Option<Part>>,
    /// The smallest rung that a row belongs to; it belongs to all larger ones too. Empty if none were requested.
    pub rungs: Vec<Option<f64>>,
}

/// Folds of which parts are composed if groups and classes must both hold: more than these gain nothing.
const SMALL_FOLDS_MAX: usize = FOLD_COUNT_MAX;

/// How far a part's fraction may be off for a number of folds to be enough.
const SHARE_TOLERANCE: f64 = 0.005;

impl SplitPlan {
    /// Assigns the rows.
    ///
    /// # Errors
    /// [`SplitError`]: fewer groups or timestamps than parts or folds.
    pub fn assign(&self, rows: &SplitRows) -> Result<Assignment, SplitError> {
        let all: Vec<usize> = (0..rows.keys.len()).collect();
        let parts = match &self.shares {
            None => vec![Some(0); all.len()],
            Some(shares) => self.share_out(rows, &all, shares, "split")?,
        };
        let mut folds = Vec::new();
        if let Some(count) = self.folds {
            let first: Vec<usize> = all.iter().copied().filter(|row| parts[*row] == Some(0)).collect();
            folds = vec![None; all.len()];
            for (row, fold) in first.iter().zip(self.fold(rows, &first, count)?) {
                folds[*row] = fold;
            }
        }
        let rung = |row: usize| {
            let key = self.unit_key(rows, row).to_le_bytes();
            self.rungs.iter().copied().find(|share| subset_of(self.seed, &key, *share))
        };
        let rungs = if self.rungs.is_empty() { Vec::new() } else { all.into_iter().map(rung).collect() };
        Ok(Assignment { parts, folds, rungs })
    }

    /// What stays together: the row, or its group.
    fn unit_key(&self, rows: &SplitRows, row: usize) -> u64 {
        match self.method {
            SplitMethod::Group | SplitMethod::StratifiedGroup => rows.groups[row],
            _ => rows.keys[row],
        }
    }

    fn share_out(
        &self,
        rows: &SplitRows,
        chosen: &[usize],
        shares: &Shares,
        purpose: &str,
    ) -> Result<Vec<Option<Part>>, SplitError> {
        let unit = |row: usize| unit_of(self.seed, purpose, &self.unit_key(rows, row).to_le_bytes());
        Ok(match self.method {
            SplitMethod::Hash | SplitMethod::Group => {
                chosen.iter().map(|row| Some(shares.part_at(unit(*row)))).collect()
            }
            SplitMethod::Stratified => {
                let units: Vec<f64> = chosen.iter().map(|row| unit(*row)).collect();
                let classes: Vec<u32> = chosen.iter().map(|row| rows.classes[*row]).collect();
                by_hash_within_classes(shares, &units, &classes).into_iter().map(Some).collect()
            }
            SplitMethod::StratifiedGroup => {
                let groups =
                    groups_of(rows, chosen, |group| unit_of(self.seed, purpose, &group.to_le_bytes()));
                let parts = groups_into_parts(&groups, shares)?;
                chosen.iter().map(|row| Some(parts[&rows.groups[*row]])).collect()
            }
            SplitMethod::Time => {
                let mut moments: Vec<i64> = chosen.iter().filter_map(|row| rows.moments[*row]).collect();
                let cuts = cut_by_time(shares, &mut moments, 0).ok_or(SplitError::Moments)?;
                let part = |moment: i64| cuts.iter().position(|cut| (cut.from..=cut.to).contains(&moment));
                chosen.iter().map(|row| Some(part(rows.moments[*row]?)? as Part)).collect()
            }
        })
    }

    fn fold(
        &self,
        rows: &SplitRows,
        chosen: &[usize],
        count: usize,
    ) -> Result<Vec<Option<Part>>, SplitError> {
        if self.method == SplitMethod::StratifiedGroup {
            let groups = groups_of(rows, chosen, |group| unit_of(self.seed, "fold", &group.to_le_bytes()));
            let listed: Vec<GroupClasses> = groups.values().cloned().collect();
            let folds = stratified_group_folds(&listed, count)?;
            let by_group: HashMap<u64, Part> = groups.keys().copied().zip(folds).collect();
            return Ok(chosen.iter().map(|row| Some(by_group[&rows.groups[*row]])).collect());
        }
        if !(2..=FOLD_COUNT_MAX).contains(&count) {
            return Err(SplitError::Folds { folds: count, groups: chosen.len() });
        }
        let names: Vec<String> = (0..count).map(|fold| fold.to_string()).collect();
        let equal: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 1.0 / count as f64)).collect();
        self.share_out(rows, chosen, &Shares::new(&equal)?, "fold")
    }

    /// Looks at an assignment from scratch.
    #[must_use]
    pub fn prove(&self, rows: &SplitRows, assignment: &Assignment) -> SplitProof {
        let kept_whole = match self.method {
            SplitMethod::Group | SplitMethod::StratifiedGroup => &rows.groups,
            _ => &rows.keys,
        };
        let has_groups = !rows.groups.is_empty();
        SplitProof {
            rows_shared: shared(&rows.keys, &assignment.parts),
            groups_shared: has_groups.then(|| shared(&rows.groups, &assignment.parts)),
            folds_shared: self.folds.map(|_| shared(kept_whole, &assignment.folds)),
            times_overlapping: (!rows.moments.is_empty() && self.shares.is_some())
                .then(|| overlapping(&rows.moments, &assignment.parts)),
            rungs_not_nested: (!self.rungs.is_empty()).then(|| self.not_nested(rows, assignment)),
            rows_without_part: assignment.parts.iter().filter(|part| part.is_none()).count() as u64,
        }
    }

    /// Rows that some rung has and a larger one lacks, each rung decided again.
    fn not_nested(&self, rows: &SplitRows, assignment: &Assignment) -> u64 {
        let is_wrong = |row: usize| {
            let key = self.unit_key(rows, row).to_le_bytes();
            let within = self.rungs.iter().map(|share| subset_of(self.seed, &key, *share));
            let first = assignment.rungs[row];
            self.rungs
                .iter()
                .zip(within)
                .any(|(share, is_in)| is_in != first.is_some_and(|first| first <= *share))
        };
        (0..rows.keys.len()).filter(|row| is_wrong(*row)).count() as u64
    }
}

/// The rows of each class in each group.
fn groups_of(rows: &SplitRows, chosen: &[usize], unit: impl Fn(u64) -> f64) -> BTreeMap<u64, GroupClasses> {
    let mut groups: BTreeMap<u64, GroupClasses> = BTreeMap::new();
    for row in chosen {
        let group = rows.groups[*row];
        let classes = groups
            .entry(group)
            .or_insert_with(|| GroupClasses { rows: vec![0; rows.class_names.len()], unit: unit(group) });
        classes.rows[rows.classes[*row] as usize] += 1;
    }
    groups
}

/// Balanced folds, as many as the fractions need, distributed over the parts.
fn groups_into_parts(
    groups: &BTreeMap<u64, GroupClasses>,
    shares: &Shares,
) -> Result<HashMap<u64, Part>, SplitError> {
    let most = SMALL_FOLDS_MAX.min(groups.len());
    let error = |folds: usize| {
        let off = |upper: &f64| (upper * folds as f64 - (upper * folds as f64).round()).abs() / folds as f64;
        shares.upper().iter().map(off).fold(0.0, f64::max)
    };
    let counts = shares.names().len()..=most;
    let enough = counts.clone().find(|folds| error(*folds) <= SHARE_TOLERANCE);
    let best = enough.or_else(|| counts.min_by(|one, other| error(*one).total_cmp(&error(*other))));
    let folds = best.ok_or(SplitError::Folds { folds: shares.names().len(), groups: groups.len() })?;
    let listed: Vec<GroupClasses> = groups.values().cloned().collect();
    let assigned = stratified_group_folds(&listed, folds)?;
    let part = |fold: Part| shares.part_at((f64::from(fold) + 0.5) / folds as f64);
    Ok(groups.keys().copied().zip(assigned.into_iter().map(part)).collect())
}

/// How many different keys are in two parts.
fn shared(keys: &[u64], parts: &[Option<Part>]) -> u64 {
    /// Marks a key that was counted.
    const COUNTED: u16 = u16::MAX;
    let mut seen: HashMap<u64, u16> = HashMap::new();
    let mut count = 0;
    for (key, part) in keys.iter().zip(parts) {
        let Some(part) = part.map(u16::from) else { continue };
        let first = seen.entry(*key).or_insert(part);
        if *first != part && *first != COUNTED {
            *first = COUNTED;
            count += 1;
        }
    }
    count
}

fn overlapping(moments: &[Option<i64>], parts: &[Option<Part>]) -> u64 {
    let mut ranges: BTreeMap<Part, (i64, i64)> = BTreeMap::new();
    for (moment, part) in moments.iter().zip(parts) {
        let (Some(moment), Some(part)) = (moment, part) else { continue };
        let range = ranges.entry(*part).or_insert((*moment, *moment));
        *range = (range.0.min(*moment), range.1.max(*moment));
    }
    let ranges: Vec<(i64, i64)> = ranges.into_values().collect();
    ranges.windows(2).filter(|pair| pair[1].0 <= pair[0].1).count() as u64
}
