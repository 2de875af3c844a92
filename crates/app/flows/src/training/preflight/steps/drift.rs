//! `data.drift`: each set beside its reference, or beside the data of the last good run, and the evaluation sets beside the
//! training set.

use std::sync::PoisonError;

use trackway_api::runs::preflight::{DriftComparison, DriftReference};
use trackway_core::checks::{CheckResult, Finding, Severity};
use trackway_data::drift::{ColumnDrift, DriftReport, KnownColumns, SchemaChange, compare_known};
use trackway_engine::error::AppError;
use trackway_tables::profile::Profile;

use super::data::{Readings, evidence, fewest, label_of};
use super::{Looker, Work};
use crate::data::drift::profile_of;
use crate::data::snapshot::aligned;
use crate::data::table::TableRequest;
use crate::training::preflight::last_good::{LastGood, last_good};
use crate::training::preflight::sets::DataSet;

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
struct DriftComparisons {
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
    let mut compared = DriftComparisons::default();
    let mut readings = Readings::new(work, looker, 0);
    for (set, _) in work.sets.tables() {
        match &set.spec.reference {
            Some(path) => {
                let request = TableRequest { paths: vec![path.clone()], ..set.request() };
                let there = readings.next(0, |observer| {
                    profile_of(&work.context.home, &work.job.base, &request, "reference", observer)
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
fn with_last_good(work: &Work<'_>, set: &DataSet, compared: &mut DriftComparisons) -> Result<(), AppError> {
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

impl DriftComparisons {
    fn add(
        &mut self,
        work: &Work<'_>,
        set: &DataSet,
        reference: Reference,
        there: &Profile,
    ) -> Result<(), AppError> {
        let here = evidence(work, set)?;
        let label = label_of(work, set);
        let spec = &set.spec;
        let known = KnownColumns {
            label: label.as_deref(),
            time: spec.time.as_deref(),
            group: spec.group.as_deref(),
            skip: &spec.ignore,
        };
        let report = match there.masked_with == here.profile.masked_with {
            true => compare_known(there, &here.profile, known),
            false => {
                let (there, here) = aligned(&work.context.home, there.clone(), here.profile.clone())?;
                compare_known(&there, &here, known)
            }
        };
        self.fewest_rows = fewest(self.fewest_rows, [there.rows, here.profile.rows]);
        self.findings.extend(drifted(&set.name, &reference, &report));
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
        let sum =
            |of: fn(&DriftReport) -> usize| self.comparisons.iter().map(|it| of(&it.report)).sum::<usize>();
        let (columns, apart) = (sum(|it| it.columns.len()), sum(|it| it.set_apart.len()));
        let and_apart = if apart > 0 { format!(", {apart} set apart") } else { String::new() };
        let compared = std::iter::once(format!("{columns} columns compared{and_apart}"));
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

/// How bad a changed column is: as in `trackway data drift`. A training set and a test set are given different columns on purpose, such
/// as no label.
pub fn severity_of(change: &SchemaChange, what: DriftReference) -> Severity {
    match what {
        DriftReference::Reference | DriftReference::LastGoodRun if change.blocks() => Severity::Block,
        _ => Severity::Warn,
    }
}

/// The same of a column that drifted: one without a value any more is as good as gone.
pub fn severity_of_drift(column: &ColumnDrift, what: DriftReference) -> Severity {
    match what {
        DriftReference::Reference | DriftReference::LastGoodRun if column.is_emptied() => Severity::Block,
        _ => Severity::Warn,
    }
}

/// What decided that a column drifted: each of its tests that did, and none that did not.
fn decided_by(column: &ColumnDrift) -> String {
    let values = column.values_drifted().then(|| {
        let test = column.test.as_str().replace('_', " ");
        let (statistic, threshold, p) = (column.statistic, column.threshold, column.adjusted_p_value);
        format!("{test} {statistic:.3}, threshold {threshold:.3}, adjusted p {p:.1e}")
    });
    let missing = column.missing;
    let lacks = missing.drifted.then(|| {
        let (now, before) = (missing.current_fraction * 100.0, missing.reference_fraction * 100.0);
        format!(
            "{now:.1} % of its values are missing, {before:.1} % there, adjusted p {:.1e}",
            missing.adjusted_p_value
        )
    });
    let unknown = column.unknown.filter(|unknown| unknown.drifted).map(|unknown| {
        let about = if unknown.is_exact { "" } else { "about " };
        let (found, expected) = (unknown.fraction * 100.0, unknown.expected_fraction * 100.0);
        format!("{about}{found:.1} % of the values are unknown there, {expected:.1} % expected")
    });
    // Where the values decided, they are among those.
    let only_labels = values.is_none() && unknown.is_none() && column.has_unknown_labels();
    let labels = only_labels.then(|| format!("labels that are unknown there: {}", column.new_value_count));
    [values, unknown, lacks, labels].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn drifted(set: &str, reference: &Reference, report: &DriftReport) -> Vec<Finding> {
    let (check, against) = (NAME, &reference.shown);
    let changed = report.schema_changes.iter().map(|change| {
        let what = match (change.reference, change.current) {
            (Some(_), None) => format!("`{set}` lacks the column `{}` of {against}", change.name),
            (None, _) => format!("`{set}` has a column `{}` that is not in {against}", change.name),
            (Some(before), Some(now)) => {
                format!("`{}` is {now} in `{set}` and {before} in {against}", change.name)
            }
        };
        let action = "fix the columns before training; of a change on purpose say so: `--skip data.drift --why REASON`";
        Finding::new(check, severity_of(change, reference.what), what).about(&change.name).action(action)
    });
    let shifted = report.columns.iter().filter(|column| column.drifted).map(|column| {
        let message = format!(
            "`{}` of `{set}` is not distributed as in {against}: {}",
            column.name,
            decided_by(column)
        );
        let action =
            "check whether the meaning or source of the data changed, or whether the split is by time";
        let severity = severity_of_drift(column, reference.what);
        Finding::new(check, severity, message).about(&column.name).action(action)
    });
    let mut findings: Vec<Finding> = changed.chain(shifted).collect();
    // What is not listed must not be what blocks.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
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
    use trackway_core::checks::Verdict;
    use trackway_data::drift::{Distances, DriftTest, MissingDrift, Role};
    use trackway_tables::ColumnType;
    use trackway_tables::profile::{Value, ValueCount};

    use super::*;

    fn changed(reference: Option<ColumnType>, current: Option<ColumnType>) -> DriftReport {
        DriftReport {
            verdict: Verdict::Block,
            reference_rows: 9,
            current_rows: 9,
            reference_rows_sampled: None,
            current_rows_sampled: None,
            columns: Vec::new(),
            set_apart: Vec::new(),
            blocked_by: Vec::new(),
            schema_changes: vec![SchemaChange { name: "x2".into(), reference, current }],
            drifted_features: 0,
            label_drifted: None,
            joint: None,
        }
    }

    /// Proves that a column that is gone or of another type blocks where `trackway data drift` does, and that a new column and the
    /// columns that only the training set has warn.
    #[test]
    fn a_lost_column_blocks() {
        let of = |what, report: &DriftReport| {
            let (name, shown) = ("there".to_owned(), "its reference".to_owned());
            let found = drifted("train", &Reference { what, name, run: None, shown }, report);
            (found[0].severity, found[0].message.clone())
        };
        let (float, text) = (Some(ColumnType::Float), Some(ColumnType::Text));
        let lost = changed(float, None);
        assert!(lost.blocks());
        let message = "`train` lacks the column `x2` of its reference".to_owned();
        assert_eq!(of(DriftReference::LastGoodRun, &lost), (Severity::Block, message.clone()));
        assert_eq!(of(DriftReference::Reference, &lost).0, Severity::Block);
        assert_eq!(of(DriftReference::TrainingSet, &lost), (Severity::Warn, message));
        let message = "`x2` is text in `train` and float in its reference".to_owned();
        assert_eq!(of(DriftReference::LastGoodRun, &changed(float, text)), (Severity::Block, message));
        assert_eq!(of(DriftReference::LastGoodRun, &changed(None, float)).0, Severity::Warn);
    }

    /// Proves that the sentence about a column names each test that decided, and none that did not.
    #[test]
    fn a_drift_names_what_decided() {
        let column = |statistic: f64, missing_drifted: bool, new_values: Vec<ValueCount>| ColumnDrift {
            name: "y".into(),
            role: Role::Label,
            test: DriftTest::CramersV,
            statistic,
            threshold: 0.1,
            noise: 0.0,
            p_value: 0.001,
            adjusted_p_value: 0.001,
            drifted: true,
            distances: Distances::default(),
            missing: MissingDrift {
                reference_fraction: 0.13,
                current_fraction: 0.0,
                p_value: 1e-9,
                adjusted_p_value: 1e-9,
                drifted: missing_drifted,
            },
            unknown: None,
            new_value_count: new_values.len() as u64,
            new_values,
            removed_value_count: 0,
            removed_values: Vec::new(),
            only_spelling: false,
        };
        let values = "cramers v 0.300, threshold 0.100, adjusted p 1.0e-3";
        let missing = "0.0 % of its values are missing, 13.0 % there, adjusted p 1.0e-9";
        let new = || vec![ValueCount { value: Value::Int(7), count: 3 }];
        assert_eq!(decided_by(&column(0.3, false, Vec::new())), values);
        assert_eq!(decided_by(&column(0.039, true, Vec::new())), missing);
        assert_eq!(decided_by(&column(0.3, false, new())), values);
        assert_eq!(decided_by(&column(0.039, false, new())), "labels that are unknown there: 1");
        assert_eq!(decided_by(&column(0.3, true, Vec::new())), format!("{values}; {missing}"));
    }

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
