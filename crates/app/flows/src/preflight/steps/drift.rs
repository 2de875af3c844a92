//! `data.drift`: each set beside its reference, or beside the data of the last good run, and the evaluation sets beside the
//! training set.

use std::sync::PoisonError;

use trackway_api::preflight::{DriftComparison, DriftReference};
use trackway_core::checks::{CheckResult, Finding, Severity};
use trackway_data::drift::{DriftReport, compare};
use trackway_data::profile::Profile;
use trackway_engine::error::AppError;

use super::data::{Readings, evidence, fewest, label_of};
use super::{Looker, Work};
use crate::data::drift::profile_of;
use crate::data::snapshot::aligned;
use crate::data::table::TableRequest;
use crate::preflight::last_good::{LastGood, last_good};
use crate::preflight::sets::DataSet;

const NAME: &str = "data.drift";
/// The finding about the number of rows.
const VOLUME: &str = "data.volume";
/// Findings of one comparison that are reported one by one.
const DRIFTS_LISTED_MAX: usize = 20;
/// Fewer rows than this fraction of those of the last good run warn: half of the data is lost.
const ROWS_FRACTION_MIN: f64 = 0.5;
/// More rows than this multiple of those of the last good run warn: 200 % more.
const ROWS_FRACTION_MAX: f64 = 3.0;

/// What a set is compared with.
struct Reference {
    what: DriftReference,
    /// Its path, or its name in the run.
    name: String,
    /// The run that it was the data of.
    run: Option<trackway_core::RunId>,
    /// How a finding names it.
    shown: String,
}

/// All comparisons so far.
#[derive(Default)]
struct Compared {
    findings: Vec<Finding>,
    comparisons: Vec<DriftComparison>,
    fewest_rows: Option<u64>,
    /// Why sets were not compared with an earlier run.
    without: Vec<String>,
    /// Earlier runs, as they are shown.
    with: Vec<String>,
}

/// Compares each set with its reference or with the data of the last good run, and the evaluation sets with the training
/// set.
pub fn drift(work: &Work<'_>, looker: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    let mut compared = Compared::default();
    let mut readings = Readings::new(work, looker, 0);
    for (set, _) in work.sets.tables() {
        match &set.spec.reference {
            Some(path) => {
                let request = TableRequest { paths: vec![path.clone()], ..set.request() };
                let there = readings.next(0, |onlooker| {
                    profile_of(&work.context.home, &work.job.base, &request, "reference", onlooker)
                })?;
                let (name, shown) = (path.clone(), "its reference".to_owned());
                compared.add(
                    work,
                    set,
                    Reference { what: DriftReference::Reference, name, run: None, shown },
                    &there,
                )?;
            }
            None => with_last_good(work, set, &mut compared)?,
        }
    }
    for (train, other) in work.sets.pairs() {
        let there = evidence(work, train)?;
        let (name, shown) = (train.name.clone(), format!("`{}`", train.name));
        let reference = Reference { what: DriftReference::TrainingSet, name, run: None, shown };
        compared.add(work, other, reference, &there.profile)?;
    }
    Ok(vec![compared.answer(work)])
}

/// Compares a set that names no reference with what the last good run of the same name had in its place.
fn with_last_good(work: &Work<'_>, set: &DataSet, compared: &mut Compared) -> Result<(), AppError> {
    let label = label_of(work, set);
    let run_name = &work.job.plan.run.name;
    match last_good(work.context, run_name, (&set.name, set.role), label.as_deref())? {
        LastGood::Found { run_id, set_name, profile } => {
            let shown = format!("`{set_name}` of the last good run of `{run_name}` ({run_id})");
            compared.with.push(format!("`{}` with {shown}", set.name));
            let here = evidence(work, set)?;
            let rows = (profile.rows, here.profile.rows);
            compared.findings.extend(volume(&set.name, &format!("the last good run ({run_id})"), rows));
            let what = DriftReference::LastGoodRun;
            compared.add(work, set, Reference { what, name: set_name, run: Some(run_id), shown }, &profile)
        }
        LastGood::None { why } => {
            if !compared.without.contains(&why) {
                compared.without.push(why);
            }
            Ok(())
        }
    }
}

impl Compared {
    fn add(
        &mut self,
        work: &Work<'_>,
        set: &DataSet,
        reference: Reference,
        there: &Profile,
    ) -> Result<(), AppError> {
        let here = evidence(work, set)?;
        let label = label_of(work, set);
        let report = match there.masked_with == here.profile.masked_with {
            true => compare(there, &here.profile, label.as_deref()),
            false => {
                let (there, here) = aligned(&work.context.home, there.clone(), here.profile.clone())?;
                compare(&there, &here, label.as_deref())
            }
        };
        self.fewest_rows = fewest(self.fewest_rows, [there.rows, here.profile.rows]);
        self.findings.extend(drifted(NAME, &set.name, &reference.shown, &report));
        self.comparisons.push(DriftComparison {
            data_set: set.name.clone(),
            compared_with: reference.what,
            reference: reference.name,
            reference_run_id: reference.run,
            report,
        });
        Ok(())
    }

    fn answer(self, work: &Work<'_>) -> CheckResult {
        if self.comparisons.is_empty() {
            let why = format!("no data set has a `reference`; {}", self.without.join("; "));
            return CheckResult::not_applicable(NAME, why);
        }
        let columns: usize = self.comparisons.iter().map(|it| it.report.columns.len()).sum();
        let compared = std::iter::once(format!("{columns} columns compared"));
        let why: Vec<String> = compared.chain(self.with).chain(self.without).collect();
        let answer = CheckResult::of_rows(NAME, self.fewest_rows.unwrap_or(0), self.findings);
        *work.shared.drift.lock().unwrap_or_else(PoisonError::into_inner) = self.comparisons;
        answer.because(why.join("; "))
    }
}

/// Whether the data lost or gained so many rows since a run that something else than time explains it.
fn volume(set: &str, run: &str, (before, now): (u64, u64)) -> Option<Finding> {
    let fraction = now as f64 / before.max(1) as f64;
    if before == 0 || (ROWS_FRACTION_MIN..=ROWS_FRACTION_MAX).contains(&fraction) {
        return None;
    }
    let message =
        format!("`{set}` has {now} rows, {before} in {run}: {:+.0} %", fraction.mul_add(100.0, -100.0));
    let action = "check whether an export or a filter failed, or whether rows were loaded twice";
    Some(Finding::new(VOLUME, Severity::Warn, message).action(action))
}

fn drifted(check: &str, set: &str, against: &str, report: &DriftReport) -> Vec<Finding> {
    let changed = report.schema_changes.iter().map(|change| {
        let what = match (change.reference, change.current) {
            (Some(_), None) => format!("`{set}` lacks the column `{}` of {against}", change.name),
            (None, _) => format!("`{set}` has a column `{}` that is not in {against}", change.name),
            (Some(before), Some(now)) => {
                format!("`{}` is {now} in `{set}` and {before} in {against}", change.name)
            }
        };
        Finding::new(check, Severity::Warn, what)
            .about(&change.name)
            .action("fix the columns before training")
    });
    let shifted = report.columns.iter().filter(|column| column.drifted).map(|column| {
        let message = format!(
            "`{}` of `{set}` is not distributed as in {against}: {} {:.3}, threshold {:.3}, adjusted p {:.1e}",
            column.name,
            column.test.as_str().replace('_', " "),
            column.statistic,
            column.threshold,
            column.adjusted_p_value
        );
        let action = "check whether the meaning or source of the data changed, or whether the split is by time";
        Finding::new(check, Severity::Warn, message).about(&column.name).action(action)
    });
    let mut findings: Vec<Finding> = changed.chain(shifted).collect();
    let hidden = findings.len().saturating_sub(DRIFTS_LISTED_MAX);
    findings.truncate(DRIFTS_LISTED_MAX);
    if hidden > 0 {
        let message = format!("{hidden} more columns of `{set}` differ from {against}");
        findings.push(
            Finding::new(check, Severity::Warn, message).action("`trackway data drift` lists all of them"),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a set that lost more than half of its rows, or has more than three times as many, is reported, and that
    /// neither the bounds themselves nor an empty reference are.
    #[test]
    fn rows_that_come_or_go_are_reported() {
        let found = |before, now| volume("train", "run r", (before, now)).map(|it| it.message);
        assert_eq!(found(1_000, 400).unwrap(), "`train` has 400 rows, 1000 in run r: -60 %");
        assert_eq!(found(1_000, 3_001).unwrap(), "`train` has 3001 rows, 1000 in run r: +200 %");
        assert_eq!(
            [found(1_000, 500), found(1_000, 3_000), found(1_000, 1_000), found(0, 9)],
            [const { None }; 4]
        );
    }
}
