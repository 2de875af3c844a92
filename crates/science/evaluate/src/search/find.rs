//! From a table to its worst slices: roles of columns, the search, and the check on held-out rows.

use rayon::prelude::*;
use trackway_data::model::{Frame, FrameColumn};
use trackway_results::search::{
    AlikeSlice, Answer, ErrorSlice, FeatureAccount, Loss, Predicate, Side, SliceChange, SliceVerdict,
};
use trackway_statistics::benjamini_hochberg;

use super::alike::{Finding, Other, findings};
use super::best::{Others, ScoredSlice};
use super::compare::{compare, same_slice};
use super::earlier::EarlierAnswer;
use super::errors::{ErrorSource, no_column};
use super::features::{Binning, Feature};
use super::held_out::{HeldOut, parted};
use super::lattice::{Aim, LEVEL_BYTES_MAX, Outcome, best_slices};
use super::score::{Scoring, Stats};
use super::table::{Item, Rows, Table};
use super::{SearchError, SearchObserver};

/// The fewest rows of a slice by default: so many, or this fraction of the rows searched (the paper's choice).
const MIN_SUPPORT: u32 = 32;
const MIN_SUPPORT_SHARE: f64 = 0.01;

/// So many slices are searched for each finding that is wanted, and so many where these are fewer findings.
const SLICES_OF_A_FINDING: [usize; 2] = [8, 64];

/// What columns are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    /// Where errors come from.
    pub error: ErrorSource,
    /// The baseline's error, or prediction where errors are computed: slices are searched where it is better.
    pub baseline: Option<String>,
    /// Rows with the same value belong together: to one side, and as one in every test.
    pub group: Option<String>,
    /// What slices are made of; every column without another role where empty.
    pub features: Vec<String>,
    /// Columns that are no features.
    pub skip: Vec<String>,
    /// Columns of numbers that are not put into bins.
    pub categorical: Vec<String>,
}

/// How to search.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How many slices.
    pub top: usize,
    /// Whether of slices with the same rows only the one with the fewest predicates counts.
    pub is_distinct: bool,
    /// Whether slices that name the same rows, or nearly, are one finding.
    pub merges_alike: bool,
    /// The most predicates of a slice.
    pub max_level: usize,
    /// The weight of error against size, above 0 and at most 1.
    pub alpha: f64,
    /// The fewest searched rows of a slice; a hundredth of them, and at least 32, where `None`.
    pub min_support: Option<u32>,
    /// Bins of a column of numbers.
    pub bins: usize,
    /// The fraction of rows that are held out to measure slices; without it there are no p-values.
    pub holdout: Option<f64>,
    /// The fraction of false ones that is allowed among confirmed slices.
    pub false_discovery_rate: f64,
    /// Decides which rows are held out.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            top: 10,
            is_distinct: false,
            merges_alike: false,
            max_level: 3,
            alpha: 0.95,
            min_support: None,
            bins: 10,
            holdout: Some(0.5),
            false_discovery_rate: 0.05,
            seed: 0,
        }
    }
}

impl Settings {
    fn check(&self) -> Result<(), SearchError> {
        let wrong = |what: String| Err(SearchError::Setting { what });
        if !(self.alpha > 0.0 && self.alpha <= 1.0) {
            return wrong(format!("alpha is {}, and must be above 0 and at most 1", self.alpha));
        }
        if self.top == 0 || self.max_level == 0 || self.bins == 0 || self.min_support == Some(0) {
            return wrong(
                "the number of slices, levels, bins and supporting rows must be at least 1".to_owned(),
            );
        }
        if self.holdout.is_some_and(|share| !(share > 0.0 && share < 1.0)) {
            return wrong("the fraction of rows held out must be above 0 and below 1".to_owned());
        }
        if !(self.false_discovery_rate > 0.0 && self.false_discovery_rate < 1.0) {
            return wrong("the false discovery rate must be above 0 and below 1".to_owned());
        }
        Ok(())
    }
}

/// Which of a table's columns are read.
#[must_use]
pub fn columns_needed<'c>(roles: &'c Roles, columns: &[&'c str]) -> Vec<&'c str> {
    let features: Vec<&str> = match roles.features.is_empty() {
        true => columns.iter().copied().filter(|name| !roles.skip.iter().any(|skip| skip == name)).collect(),
        false => roles.features.iter().map(String::as_str).collect(),
    };
    let mut needed = roles.error.columns();
    needed.extend(roles.baseline.as_deref().into_iter().chain(roles.group.as_deref()));
    for feature in features {
        if !needed.contains(&feature) {
            needed.push(feature);
        }
    }
    needed
}

/// Searches the table's blind spots. The same table, roles and settings give the same answer, on any number of threads;
/// an `earlier` answer makes it faster, and is compared with, but does not change which slices are found as long as its
/// bins are those of this table.
///
/// # Errors
/// [`SearchError`]: columns or settings that make no sense, too few rows, too many values, cancelled.
pub fn find(
    frame: Frame,
    roles: &Roles,
    settings: &Settings,
    earlier: Option<&EarlierAnswer>,
    watch: &SearchObserver<'_>,
) -> Result<Answer, SearchError> {
    settings.check()?;
    let errors = RowErrors::of(&frame, roles)?;
    let agreement = roles.error.agreement(&frame);
    let parts = Parts::of(&frame, roles, settings, &errors)?;
    let min_support = settings.min_support.unwrap_or_else(|| parts.usual_support());
    if parts.searched.len() < min_support as usize {
        return Err(SearchError::TooFewRows { rows: parts.searched.len(), min_support });
    }
    let features = features(frame, roles, settings, earlier, min_support)?;
    let of_searched: Vec<f64> = parts.searched.iter().map(|row| errors.searched[*row as usize]).collect();
    let rows = parts.searched.len() as f64;
    let average_error = of_searched.iter().sum::<f64>() / rows;
    let table = Table::new(&features, &parts.searched, of_searched, min_support)?;
    let scoring = Scoring { alpha: settings.alpha, min_support, rows, average_error };
    let matched_classes = agreement.matched;

    let held_out = settings.holdout.map(|_| HeldOut {
        rows: &parts.held_out,
        values: &errors.measured,
        groups: parts.groups.as_deref(),
        is_paired: roles.baseline.is_some(),
        seed: settings.seed,
    });
    let assessment = Assessment { features: &features, table: &table, scoring: &scoring, held_out };
    let known = earlier.map_or_else(Vec::new, |earlier| assessment.known(earlier, settings));
    let known_scores: Vec<f64> = known.iter().map(|known| known.score).collect();
    let outcome = match average_error > 0.0 {
        true => searched(&table, &scoring, settings, &known_scores, watch)?,
        false => Outcome { best: Vec::new(), others: Others::default(), levels: Vec::new(), complete: true },
    };
    let mut slices = match settings.merges_alike {
        true => assessment.merged(&findings(&table, &outcome.best, &outcome.others, settings.top)),
        false => assessment.slices(&outcome),
    };
    judge(&mut slices, settings.false_discovery_rate);
    let resolved =
        earlier.map(|earlier| assessment.compare(&mut slices, &known, earlier)).unwrap_or_default();
    Ok(Answer {
        searched: Side { rows: parts.searched.len() as u64, average_error },
        held_out: settings.holdout.map(|_| errors.side(&parts.held_out)),
        rows_without_error: (errors.measured.len() - errors.rows.len()) as u64,
        loss: errors.loss,
        matched_classes,
        is_paired: roles.baseline.is_some(),
        alpha: settings.alpha,
        min_support,
        max_level: settings.max_level,
        false_discovery_rate: settings.false_discovery_rate,
        seed: settings.seed,
        features: accounts(&features, &table),
        evaluated: outcome.levels.iter().map(|level| level.evaluated).sum(),
        pruned: outcome.levels.iter().map(|level| level.pruned).sum(),
        levels: outcome.levels,
        is_complete: outcome.complete,
        slices,
        resolved,
    })
}

/// The best slices; of those that name the same rows so many that there are as many findings as wanted, if there are.
fn searched(
    table: &Table,
    scoring: &Scoring,
    settings: &Settings,
    known: &[f64],
    watch: &SearchObserver<'_>,
) -> Result<Outcome, SearchError> {
    let best = |wanted: usize| {
        let aim = Aim {
            wanted,
            is_distinct: settings.is_distinct || settings.merges_alike,
            level_max: settings.max_level,
            level_bytes_max: LEVEL_BYTES_MAX,
        };
        best_slices(table, scoring, aim, known.to_vec(), watch)
    };
    if !settings.merges_alike {
        return best(settings.top);
    }
    let [first, more] = SLICES_OF_A_FINDING.map(|slices| settings.top.saturating_mul(slices));
    let outcome = best(first)?;
    let found = findings(table, &outcome.best, &outcome.others, settings.top).len();
    let is_enough = found >= settings.top || outcome.best.len() < first;
    if is_enough { Ok(outcome) } else { best(more) }
}

/// The rows with a known error, parted.
struct Parts {
    /// Rows in which slices are searched.
    searched: Vec<u32>,
    /// Rows with which they are measured.
    held_out: Vec<u32>,
    /// The group of each row of the table.
    groups: Option<Vec<u64>>,
}

impl Parts {
    fn of(
        frame: &Frame,
        roles: &Roles,
        settings: &Settings,
        errors: &RowErrors,
    ) -> Result<Self, SearchError> {
        let index = |name: &str| frame.index_of(name).ok_or_else(|| no_column(frame, name));
        let group = roles.group.as_deref().map(index).transpose()?;
        let groups = group.map(|index| frame.group_keys(index));
        let (searched, held_out) = match settings.holdout {
            Some(fraction) => parted(&errors.rows, groups.as_deref(), fraction, settings.seed),
            None => (errors.rows.clone(), Vec::new()),
        };
        Ok(Self { searched, held_out, groups })
    }

    fn usual_support(&self) -> u32 {
        ((self.searched.len() as f64 * MIN_SUPPORT_SHARE).ceil() as u32).max(MIN_SUPPORT)
    }
}

fn accounts(features: &[Feature], table: &Table) -> Vec<FeatureAccount> {
    let account = |(index, feature): (usize, &Feature)| FeatureAccount {
        name: feature.name.clone(),
        edges: feature.edges().map(<[f64]>::to_vec),
        values: table.items().iter().filter(|item| item.feature == index).count(),
    };
    features.iter().enumerate().map(account).collect()
}

struct RowErrors {
    /// What slices are scored by, never negative.
    searched: Vec<f64>,
    /// What held-out rows are measured by: the same, or the difference from the baseline.
    measured: Vec<f64>,
    /// Rows whose error is known.
    rows: Vec<u32>,
    loss: Option<Loss>,
}

impl RowErrors {
    fn of(frame: &Frame, roles: &Roles) -> Result<Self, SearchError> {
        let (errors, loss) = roles.error.of_rows(frame)?;
        let (searched, measured) = match &roles.baseline {
            None => (errors.clone(), errors),
            Some(column) => {
                let (baseline, _) = roles.error.of_baseline(column, loss).of_rows(frame)?;
                let differences: Vec<f64> =
                    errors.iter().zip(&baseline).map(|(own, other)| own - other).collect();
                let worse = |it: &f64| if *it > 0.0 { *it } else { 0.0 };
                (differences.iter().map(worse).collect(), differences)
            }
        };
        let rows = (0..measured.len() as u32).filter(|row| !measured[*row as usize].is_nan()).collect();
        Ok(Self { searched, measured, rows, loss })
    }

    /// These rows with their mean measured error.
    fn side(&self, rows: &[u32]) -> Side {
        let sum: f64 = rows.iter().map(|row| self.measured[*row as usize]).sum();
        Side { rows: rows.len() as u64, average_error: sum / rows.len().max(1) as f64 }
    }
}

fn features(
    frame: Frame,
    roles: &Roles,
    settings: &Settings,
    earlier: Option<&EarlierAnswer>,
    min_support: u32,
) -> Result<Vec<Feature>, SearchError> {
    for name in roles.features.iter().chain(&roles.categorical) {
        frame.index_of(name).ok_or_else(|| no_column(&frame, name))?;
    }
    let mut others = roles.error.columns();
    others.extend(roles.baseline.as_deref().into_iter().chain(roles.group.as_deref()));
    let is_named = |names: &[String], column: &FrameColumn| names.contains(&column.name);
    let is_feature = |column: &FrameColumn| {
        let is_wanted = roles.features.is_empty() || is_named(&roles.features, column);
        is_wanted && !is_named(&roles.skip, column) && !others.contains(&column.name.as_str())
    };
    let edges = |name: &str| {
        let known = earlier.and_then(|earlier| earlier.features.iter().find(|feature| feature.name == name));
        known.and_then(|feature| feature.edges.clone()).filter(|edges| !edges.is_empty())
    };
    let feature = |column: FrameColumn| {
        let binning = match edges(&column.name) {
            _ if is_named(&roles.categorical, &column) => Binning::None,
            Some(edges) => Binning::Edges(edges),
            None => Binning::Quantiles(settings.bins),
        };
        Feature::of(column, &binning, min_support)
    };
    let columns: Vec<FrameColumn> = frame.into_columns().into_iter().filter(is_feature).collect();
    if columns.is_empty() {
        return Err(SearchError::Setting { what: "there is no column to make slices of".to_owned() });
    }
    Ok(columns.into_par_iter().map(feature).collect())
}

struct Assessment<'a> {
    features: &'a [Feature],
    table: &'a Table,
    scoring: &'a Scoring,
    held_out: Option<HeldOut<'a>>,
}

impl Assessment<'_> {
    /// The earlier slices that this search would look at too, as they are now.
    fn known(&self, earlier: &EarlierAnswer, settings: &Settings) -> Vec<ScoredSlice> {
        let mut rows = Rows::default();
        let mut known: Vec<ScoredSlice> = Vec::new();
        for slice in &earlier.slices {
            let items =
                self.items(&slice.predicate).filter(|items| (1..=settings.max_level).contains(&items.len()));
            let Some(items) = items else { continue };
            let (stats, fingerprint) = self.table.stats(&items, &mut rows);
            let score = self.scoring.score(f64::from(stats.size), stats.error);
            let counts = stats.size >= self.scoring.min_support && stats.error > 0.0;
            let is_same = |other: &ScoredSlice| {
                let is_distinct = settings.is_distinct || settings.merges_alike;
                other.items == items || is_distinct && other.fingerprint == fingerprint
            };
            if counts && !known.iter().any(is_same) {
                known.push(ScoredSlice { items, stats, score, fingerprint });
            }
        }
        known
    }

    fn items(&self, predicate: &Predicate) -> Option<Vec<u32>> {
        let item = |(name, value): (&String, &Option<String>)| {
            let feature = self.features.iter().position(|feature| feature.name == *name)?;
            let code = self.features[feature].code_of(value.as_deref())?;
            self.table.index_of(Item { feature, code })
        };
        let mut items: Vec<u32> = predicate.iter().map(item).collect::<Option<_>>()?;
        items.sort_unstable();
        Some(items)
    }

    fn slices(&self, outcome: &Outcome) -> Vec<ErrorSlice> {
        let best = &outcome.best;
        let slice = |(index, found): (usize, &ScoredSlice)| {
            let first = best.iter().position(|other| other.fingerprint == found.fingerprint);
            let same_rows_as = first.filter(|first| *first != index);
            ErrorSlice { same_rows_as, ..self.slice(&found.items, found.stats, found.score) }
        };
        best.iter().enumerate().map(slice).collect()
    }

    /// A slice for each finding, with the other descriptions of its rows.
    fn merged(&self, findings: &[Finding<'_>]) -> Vec<ErrorSlice> {
        let other = |other: &Other| AlikeSlice {
            predicate: self.predicate(&other.items),
            size: u64::from(other.size),
            overlap: other.overlap,
        };
        let slice = |found: &Finding<'_>| ErrorSlice {
            also_described_by: found.others.iter().map(other).collect(),
            ..self.slice(&found.slice.items, found.slice.stats, found.slice.score)
        };
        findings.iter().map(slice).collect()
    }

    fn predicate(&self, items: &[u32]) -> Predicate {
        let of = |item: &u32| {
            let Item { feature, code } = self.table.items()[*item as usize];
            let feature = &self.features[feature];
            (feature.name.clone(), feature.shown(code))
        };
        items.iter().map(of).collect()
    }

    /// Compares slices with earlier ones, and returns the earlier ones that were not found again.
    fn compare(
        &self,
        slices: &mut [ErrorSlice],
        known: &[ScoredSlice],
        earlier: &EarlierAnswer,
    ) -> Vec<ErrorSlice> {
        for slice in &mut *slices {
            let before = same_slice(earlier, slice);
            compare(slice, before);
        }
        let mut resolved = Vec::new();
        for known in known {
            let mut now = self.slice(&known.items, known.stats, known.score);
            if !slices.iter().any(|slice| slice.is_described_by(&now.predicate)) {
                let before = same_slice(earlier, &now);
                compare(&mut now, before);
                now.change = Some(SliceChange::Resolved);
                resolved.push(now);
            }
        }
        resolved
    }

    fn slice(&self, items: &[u32], stats: Stats, score: f64) -> ErrorSlice {
        let predicate = self.predicate(items);
        let items: Vec<Item> = items.iter().map(|item| self.table.items()[*item as usize]).collect();
        let is_member =
            |row: u32| items.iter().all(|item| self.features[item.feature].code(row) == item.code);
        let (measured, tested) = self.held_out.as_ref().map(|held_out| held_out.measure(is_member)).unzip();
        let (p_value, test) = tested.flatten().unzip();
        ErrorSlice {
            predicate,
            size: u64::from(stats.size),
            average_error: stats.error / f64::from(stats.size),
            score,
            held_out: measured,
            p_value,
            adjusted_p_value: None,
            test,
            same_rows_as: None,
            also_described_by: Vec::new(),
            verdict: SliceVerdict::Inconclusive,
            change: None,
            earlier_average_error: None,
        }
    }
}

/// Corrects the p-values for their number, and decides which slices are confirmed.
fn judge(slices: &mut [ErrorSlice], false_discovery_rate: f64) {
    let p_values: Vec<f64> = slices.iter().map(|slice| slice.p_value.unwrap_or(f64::NAN)).collect();
    for (slice, adjusted) in slices.iter_mut().zip(benjamini_hochberg(&p_values)) {
        let adjusted = Some(adjusted).filter(|it| !it.is_nan());
        slice.adjusted_p_value = adjusted;
        slice.verdict = match adjusted {
            None => SliceVerdict::Inconclusive,
            Some(p_value) if p_value <= false_discovery_rate => SliceVerdict::Confirmed,
            Some(_) => SliceVerdict::NotConfirmed,
        };
    }
}
