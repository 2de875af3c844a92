//! What the test data has in common with the training data, and how well features predict the label.

use std::path::Path;

use trackway_api::data::{FindingsAnswer, LeakageAnswer};
use trackway_core::checks::{CheckResult, Verdict};
use trackway_data::leakage::examine;
pub use trackway_data::leakage::{CHECKS, Roles};
use trackway_engine::error::{AppError, ErrorKind};

use super::images;
use super::table::{Finding, ReadObserver, TableRequest, data_error};

/// Which checks run: all but what is left out, or only those that are named, without `leakage.` or with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these; all when empty.
    pub only: Vec<String>,
    /// Not these.
    pub skip: Vec<String>,
}

/// Reads both sides, and reports what they have in common and how well features predict the label. Of images, equal and
/// similar ones are looked for.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for data that cannot be read as a table or
/// lacks a column that was named, and for a check that does not exist.
pub fn leakage(
    base: &Path,
    (train, test): (&TableRequest, &TableRequest),
    roles: &Roles,
    selection: &Selection,
    observer: &ReadObserver<'_>,
) -> Result<LeakageAnswer, AppError> {
    selection.validate()?;
    if let Some((known, read, lost)) = images::leakage(base, train, test, observer)? {
        let of_images = |name: &str| {
            let found = known.iter().find(|check| check.name == name).cloned();
            found.unwrap_or_else(|| CheckResult::not_applicable(name, "images have no columns"))
        };
        let wanted = CHECKS.into_iter().filter(|name| selection.wants(name));
        let checks: Vec<CheckResult> = wanted.map(of_images).collect();
        return Ok(LeakageAnswer { found: findings_of(&checks, &|_| true, read, lost), checks });
    }
    let (mut train, mut test) = (train.open(base, "train")?, test.open(base, "test")?);
    let is_wanted = |name: &str| selection.wants(name);
    let leakage = examine(&mut train, &mut test, roles, &is_wanted, &observer.watch()).map_err(data_error)?;
    let checks = leakage.results(roles, &train, &test);
    let has_no_rows = leakage.overlap.train.rows_read.min(leakage.overlap.test.rows_read) == 0;
    let was_asked_for = |name: &str| {
        let by_role = name == "leakage.time" && roles.time.is_some();
        has_no_rows || by_role || selection.only.iter().any(|named| full_name(named) == name)
    };
    let overlap = &leakage.overlap;
    let rows = overlap.train.rows_read + overlap.test.rows_read;
    let rows_rejected = overlap.train.rows_rejected + overlap.test.rows_rejected;
    let found = FindingsAnswer {
        reading: [train.reading(), test.reading()].concat(),
        ..findings_of(&checks, &was_asked_for, rows, rows_rejected)
    };
    Ok(LeakageAnswer { found, checks })
}

/// Everything that several checks found. Of those that could not run, the ones that were requested are listed: they block.
pub(super) fn findings_of(
    checks: &[CheckResult],
    was_asked_for: &dyn Fn(&str) -> bool,
    rows: u64,
    rows_rejected: u64,
) -> FindingsAnswer {
    let mut findings: Vec<Finding> = checks.iter().flat_map(|check| check.findings.clone()).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let not_run =
        checks.iter().filter(|check| check.verdict == Verdict::NotRun && was_asked_for(&check.name));
    let not_run =
        not_run.map(|it| format!("{}: {}", it.name, it.why.as_deref().unwrap_or_default())).collect();
    FindingsAnswer { findings, not_run, rows, rows_rejected, rules_checked: None, reading: Vec::new() }
}

impl Selection {
    fn wants(&self, name: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|named| full_name(named) == name);
        (self.only.is_empty() || is_named(&self.only)) && !is_named(&self.skip)
    }

    fn validate(&self) -> Result<(), AppError> {
        let mut names = self.only.iter().chain(&self.skip);
        match names.find(|name| !CHECKS.contains(&full_name(name).as_str())) {
            None => Ok(()),
            Some(unknown) => {
                let known = CHECKS.map(|name| name.trim_start_matches("leakage."));
                let message = format!("no check is called `{unknown}`; there are {}", known.join(", "));
                Err(AppError::new(ErrorKind::Usage, message))
            }
        }
    }
}

fn full_name(name: &str) -> String {
    if name.starts_with("leakage.") { name.to_owned() } else { format!("leakage.{name}") }
}
