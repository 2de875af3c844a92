//! Joint drift: whether a domain classifier can separate the rows of two data sets, even if no single column has
//! changed (D. Lopez-Paz and M. Oquab, "Revisiting classifier two-sample tests", 2017).

use trackway_core::{Rng, SplitMix64};
use trackway_results::drift::{ColumnImportance, JointDrift};
use trackway_statistics::student_t_p_value;
use trackway_tables::DataError;
use trackway_tables::pass::PassObserver;
use trackway_tables::read::Source;

use super::{KnownColumns, apart};
use crate::model::{
    AreaUnderCurve, BINS_MAX, Binned, Booster, BoosterSettings, Cells, FoldSettings, Frame, MISSING_CODE,
    Target, folds, out_of_fold, roc_auc,
};
use crate::values::identifier;

/// The most rows of each side; of larger ones a uniform sample.
const ROWS_MAX: usize = 20_000;

/// The least area under the curve that matters (Evidently's domain classifier requires 0.55 too).
const AREA_MIN: f64 = 0.55;

/// The largest probability of a false alarm.
const FALSE_ALARM_RATE: f64 = 0.01;

/// How often the sides are permuted to estimate the null distribution.
const PERMUTATIONS: usize = 10;

/// The same seed gives the same answer.
const SEED: u64 = 0;

/// A column that separates the sides by itself, with this area under the curve, is the whole explanation: a time, an id
/// that counts up. It would hide the effect of other columns.
const TRIVIAL_AREA: f64 = 0.98;

/// Fewer rows of a side are too few to learn from.
const ROWS_MIN: usize = 100;

/// Columns with less importance than this are not reported.
const IMPORTANCE_MIN: f64 = 0.05;

/// Standard errors of a 95 % interval.
const NORMAL_95: f64 = 1.959_963_985;

/// Why the sides cannot be compared jointly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JointError {
    /// The data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("multivariate drift cannot be tested: {0}")]
    TooLittle(String),
}

/// Compares rows of two data sets. The label is left out: its shift is reported separately. So is a column that names rows on both
/// sides, and one that is known to say something else than what a row is like.
///
/// # Errors
/// [`JointError`]: data that cannot be read, too few rows, no common column.
pub fn joint_drift(
    reference: &mut Source,
    current: &mut Source,
    known: KnownColumns<'_>,
    watch: &PassObserver<'_>,
) -> Result<JointDrift, JointError> {
    let sample =
        |source: &mut Source| Frame::sample(source, None, (ROWS_MAX, SEED), watch).map(|(frame, _)| frame);
    let roles: Vec<&str> = known.label.into_iter().collect();
    let mut identifiers = identifier::candidates(reference, &roles);
    let of_current = identifier::candidates(current, &roles);
    identifiers.retain(|name| of_current.contains(name));
    let (before, after) = (sample(reference)?, sample(current)?);
    joint_drift_of(&before, &after, known, &identifiers)
}

/// As [`joint_drift`], of rows at hand. `identifiers`: columns that name a row; they are left out too.
///
/// # Errors
/// [`JointError::TooLittle`].
pub fn joint_drift_of(
    before: &Frame,
    after: &Frame,
    known: KnownColumns<'_>,
    identifiers: &[String],
) -> Result<JointDrift, JointError> {
    if before.rows().min(after.rows()) < ROWS_MIN {
        let rows = format!("{} and {} rows; both sides need {ROWS_MIN}", before.rows(), after.rows());
        return Err(JointError::TooLittle(rows));
    }
    let both = before.stacked(after);
    let is_current: Vec<bool> = (0..both.rows()).map(|row| row >= before.rows()).collect();
    let mut left_out = both.left_out().to_vec();
    let mut columns = Vec::new();
    for (index, column) in both.columns().iter().enumerate() {
        if known.label == Some(column.name.as_str()) || known.skip.contains(&column.name) {
            continue;
        }
        if let Some(apart) = apart::known(&column.name, known) {
            left_out.push(format!("`{}` is {}", apart.name, apart.why));
            continue;
        }
        if identifiers.contains(&column.name) {
            left_out.push(format!("`{}` is different in each row", column.name));
            continue;
        }
        match alone(&column.cells, &is_current) {
            area if area >= TRIVIAL_AREA => {
                left_out.push(format!("`{}` alone separates the data sets (AUC {area:.3})", column.name));
            }
            _ => columns.push(index),
        }
    }
    if columns.is_empty() {
        return Err(JointError::TooLittle("no column is left to compare".into()));
    }
    let sides = Sides { binned: Binned::of(&both), frame: &both, columns };
    let area = sides.area(&is_current)?;
    let p_value = (area.value >= AREA_MIN).then(|| sides.p_value(&is_current, area)).transpose()?;
    let drifted = p_value.is_some_and(|p_value| p_value <= FALSE_ALARM_RATE);
    let interval = area.interval(NORMAL_95);
    Ok(JointDrift {
        area: area.value,
        interval,
        p_value,
        drifted,
        columns: if drifted { sides.importance(&is_current) } else { Vec::new() },
        skipped: left_out,
        reference_rows: before.rows() as u64,
        current_rows: after.rows() as u64,
    })
}

struct Sides<'s> {
    binned: Binned,
    frame: &'s Frame,
    columns: Vec<usize>,
}

impl Sides<'_> {
    fn target(is_current: &[bool]) -> Target {
        let of_row = is_current.iter().map(|it| u32::from(*it)).collect();
        Target::Classes { of_row, names: vec!["reference".into(), "current".into()] }
    }

    /// The area for held-out rows. A row that is on both sides is in one fold.
    fn area(&self, is_current: &[bool]) -> Result<AreaUnderCurve, JointError> {
        let target = Self::target(is_current);
        let settings = BoosterSettings { seed: SEED, ..BoosterSettings::default() };
        let folds = folds(self.frame.keys(), &target, FoldSettings { seed: SEED, ..FoldSettings::default() })
            .map_err(|error| JointError::TooLittle(error.to_string()))?;
        let said = out_of_fold(&self.binned, &self.columns, &target, &folds, &settings);
        roc_auc(&said.column(1), is_current).ok_or_else(|| JointError::TooLittle("no scores".into()))
    }

    /// The probability of this area if rows are assigned to the sides at random: such areas are about normal, with a
    /// mean and deviation estimated from a few, so Student's t tests one more of them. The deviation is at least the
    /// area's standard error.
    fn p_value(&self, is_current: &[bool], area: AreaUnderCurve) -> Result<f64, JointError> {
        let mut rng = SplitMix64::new(SEED);
        let mut mixed = is_current.to_vec();
        let mut areas = Vec::with_capacity(PERMUTATIONS);
        for _ in 0..PERMUTATIONS {
            shuffle(&mut mixed, &mut rng);
            areas.push(self.area(&mixed)?.value);
        }
        let count = areas.len() as f64;
        let mean = areas.iter().sum::<f64>() / count;
        let variance = areas.iter().map(|area| (area - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let deviation = variance.sqrt().max(area.standard_error) * (1.0 + 1.0 / count).sqrt();
        // Out of fold, a random model is a little below one half; to be above it is not evidence yet.
        Ok(student_t_p_value((area.value - mean.max(0.5)) / deviation, count - 1.0))
    }

    fn importance(&self, is_current: &[bool]) -> Vec<ColumnImportance> {
        let target = Self::target(is_current);
        let rows: Vec<u32> = (0..is_current.len() as u32).collect();
        let settings = BoosterSettings { seed: SEED, ..BoosterSettings::default() };
        let booster = Booster::fit(&self.binned, &self.columns, &target, &rows, &settings);
        let mut shares = booster.importance();
        shares.retain(|(_, share)| *share >= IMPORTANCE_MIN);
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        let named = |(index, share): (usize, f64)| {
            let name = self.frame.columns()[index].name.clone();
            ColumnImportance { name, importance: share }
        };
        shares.into_iter().map(named).collect()
    }
}

/// How well a column separates the sides by itself: numbers by their order, frequent strings by their fractions.
fn alone(cells: &Cells, is_current: &[bool]) -> f64 {
    let scores: Vec<f64> = match cells {
        // Missing cells are neither early nor late.
        Cells::Numbers(values) => {
            let known = values.iter().zip(is_current).filter(|(value, _)| !value.is_nan());
            let (values, sides): (Vec<f64>, Vec<bool>) = known.map(|(value, side)| (*value, *side)).unzip();
            return roc_auc(&values, &sides).map_or(0.5, |area| area.value.max(1.0 - area.value));
        }
        Cells::Categories { names, .. } if names.len() > BINS_MAX => return 0.5,
        Cells::Categories { codes, names } => {
            let mut counts = vec![(0.0, 0.0); names.len() + 1];
            let slot = |code: u32| if code == MISSING_CODE { names.len() } else { code as usize };
            for (code, is_current) in codes.iter().zip(is_current) {
                let count = &mut counts[slot(*code)];
                *(if *is_current { &mut count.1 } else { &mut count.0 }) += 1.0;
            }
            codes.iter().map(|code| counts[slot(*code)]).map(|(one, other)| other / (one + other)).collect()
        }
    };
    roc_auc(&scores, is_current).map_or(0.5, |area| area.value)
}

/// Fisher and Yates.
fn shuffle(values: &mut [bool], rng: &mut dyn Rng) {
    for last in (1..values.len()).rev() {
        values.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
}
