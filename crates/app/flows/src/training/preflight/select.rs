//! Which checks are wanted, left out, required, and how bad it is what they find: the run file and the command line
//! together.

use std::collections::BTreeMap;

use trackway_api::runs::preflight::Skipped;
use trackway_core::checks::{CheckResult, Finding, Severity, Verdict, overall};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::runfile::{Plan, PreflightSection, nearest};

use super::facts::{NEEDS_MEASUREMENT, NEEDS_SETTINGS, OFFER};

/// What a report says where the check of the launcher was to be skipped or made a warning, and blocks all the same.
pub const NOT_WAIVED: &str = "what the launcher does not give can be neither skipped nor made a warning: request less, or set `engines.NAME.gpus` of the settings where it has more GPUs than are seen";

/// The command line's selection of checks. A name is that of a check, or of a family: `leakage` means `leakage.rows`
/// and the others.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// These only; empty: all.
    pub only: Vec<String>,
    /// Not these, for this reason.
    pub skip: Vec<Skipped>,
    /// None at all, for this reason.
    pub skip_all: Option<String>,
    /// What the command itself leaves out, whatever a person wants.
    pub left_out: Vec<Skipped>,
}

/// The rules by which results are weighed.
pub struct Policy {
    only: Vec<String>,
    skip: Vec<Skipped>,
    required: Vec<String>,
    /// Names of checks and of families, as they were requested.
    asked: Vec<String>,
    severity: BTreeMap<String, Severity>,
    /// Whether the check of the launcher was to be skipped or to have another severity.
    waives_offer: bool,
}

impl Policy {
    /// The run file's rules and the command line's; every name is one of `names` or a family of them.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a name that no check has.
    pub fn of(plan: &Plan, selection: &Selection, names: &[&'static str]) -> Result<Self, AppError> {
        let section = plan.preflight.clone().unwrap_or_default();
        let PreflightSection { require, skip, severity, one_batch, overfit_batches, label_noise, .. } =
            section;
        let requested = skip.into_iter().map(|skip| Skipped { check: skip.check, why: skip.why });
        let skip: Vec<Skipped> = requested.chain(selection.skip.iter().cloned()).collect();
        let all = require.iter().chain(&selection.only).chain(severity.keys());
        for name in all.chain(skip.iter().map(|skip| &skip.check)) {
            known(name, names)?;
        }
        // What the run file requests must not be skipped silently.
        let has_rules = plan.data.values().any(|set| set.schema.is_some() || !set.rules.is_empty());
        let asked = [
            ("data.schema", has_rules),
            ("data.label_noise", label_noise),
            ("rehearsal.one_batch", one_batch == Some(true)),
            ("rehearsal.overfit", overfit_batches.is_some()),
        ];
        let asked = asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(name, _)| name.to_owned());
        let require: Vec<String> = require.into_iter().chain(asked).collect();
        let expand = |wanted: &[String]| -> Vec<String> {
            let is_wanted = |name: &&&str| wanted.iter().any(|wanted| covers(wanted, name));
            names.iter().filter(is_wanted).map(|name| (*name).to_owned()).collect()
        };
        let weakened =
            severity.iter().filter(|(_, severity)| **severity != Severity::Block).map(|(name, _)| name);
        let waives_offer =
            skip.iter().map(|skip| &skip.check).chain(weakened).any(|name| covers(name, OFFER));
        let reason = |name: &&str| {
            // A launch refuses what its launcher does not give, whatever is skipped.
            let wanted = skip.iter().rev().filter(|_| *name != OFFER);
            let found = selection.left_out.iter().chain(wanted).find(|skip| covers(&skip.check, name))?;
            Some(Skipped { check: (*name).to_owned(), why: found.why.clone() })
        };
        Ok(Self {
            only: expand(&selection.only),
            skip: names.iter().filter_map(reason).collect(),
            required: expand(&require),
            asked: require,
            severity,
            waives_offer,
        })
    }

    /// Whether a check is to be done.
    pub fn wants(&self, check: &str) -> bool {
        self.is_shown(check) && self.why_skipped(check).is_none()
    }

    fn is_shown(&self, check: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == check)
    }

    fn why_skipped(&self, check: &str) -> Option<&str> {
        self.skip.iter().find(|skip| skip.check == check).map(|skip| skip.why.as_str())
    }

    /// The checks that were left out, with the reasons.
    pub fn skipped(&self) -> Vec<Skipped> {
        self.skip.iter().filter(|skip| self.is_shown(&skip.check)).cloned().collect()
    }

    /// The checks that block when they cannot run.
    pub fn required(&self) -> Vec<String> {
        self.required.iter().filter(|name| self.is_shown(name)).cloned().collect()
    }

    /// The results that are shown, in the order of the steps, whose checks these are, with the requested severities.
    pub fn judge<'c>(
        &self,
        steps: impl Iterator<Item = &'c [&'static str]>,
        results: Vec<Vec<CheckResult>>,
    ) -> Vec<CheckResult> {
        let mut judged = Vec::new();
        for (checks, results) in steps.zip(results) {
            let shown = results.into_iter().filter(|result| self.wants(&result.name));
            judged.extend(shown.map(|result| self.weigh(result)));
            // A step returns a result for each of its checks, or nothing about it: then it did not run.
            for check in checks.iter().filter(|check| self.wants(check)) {
                if judged.iter().all(|result| result.name != *check) {
                    judged.push(CheckResult::not_run(check, "no result"));
                }
            }
        }
        self.open_what_was_asked(&mut judged);
        let left_out = |skip: &Skipped| CheckResult::not_run(&skip.check, format!("skipped: {}", skip.why));
        judged.extend(self.skipped().iter().map(left_out));
        judged
    }

    /// What was requested and does not apply did not run: a check by its name, or a family of which no check ran.
    fn open_what_was_asked(&self, results: &mut [CheckResult]) {
        for asked in &self.asked {
            let mut own: Vec<_> = results.iter_mut().filter(|it| covers(asked, &it.name)).collect();
            let needs_more = |it: &CheckResult| {
                let ends =
                    |why: &str| [NEEDS_SETTINGS, NEEDS_MEASUREMENT].iter().any(|need| why.ends_with(need));
                it.why.as_deref().is_some_and(ends)
            };
            let none_ran = own.iter().all(|it| it.verdict == Verdict::NotApplicable);
            for result in own.iter_mut().filter(|it| it.verdict == Verdict::NotApplicable) {
                if none_ran || needs_more(result) {
                    result.verdict = Verdict::NotRun;
                }
            }
        }
    }

    /// A result with the severities of the run file.
    fn weigh(&self, result: CheckResult) -> CheckResult {
        if result.findings.is_empty() {
            return result;
        }
        if result.name == OFFER {
            return self.hold_to_offer(result);
        }
        let weighed = |finding: &Finding| self.weigh_finding(&result.name, finding.clone());
        let findings = result.findings.iter().map(weighed).collect();
        let is_open = result.verdict == Verdict::NotRun;
        let weighed = result.with_findings(findings);
        // What is open stays open, whatever was found on the way.
        if is_open { weighed.left_open() } else { weighed }
    }

    /// What the launcher refuses is refused at the launch too: its severities stay.
    fn hold_to_offer(&self, result: CheckResult) -> CheckResult {
        if result.verdict != Verdict::Block || !self.waives_offer {
            return result;
        }
        let mut findings = result.findings.clone();
        findings.push(Finding::new(OFFER, Severity::Note, NOT_WAIVED));
        result.with_findings(findings)
    }

    /// How bad a finding is says the check that made it, the same for every command; the run file may say otherwise.
    fn weigh_finding(&self, check: &str, finding: Finding) -> Finding {
        let severity = match finding.severity {
            Severity::Note => Severity::Note,
            severity => {
                let of_run_file = self.severity_of(&finding.check).or_else(|| self.severity_of(check));
                of_run_file.unwrap_or(severity)
            }
        };
        Finding { severity, ..finding }
    }

    /// The longest name that covers the check decides.
    fn severity_of(&self, check: &str) -> Option<Severity> {
        let covering = self.severity.iter().filter(|(name, _)| covers(name, check));
        covering.max_by_key(|(name, _)| name.len()).map(|(_, severity)| *severity)
    }

    /// The verdict of all together. What was skipped on request does not block, and never passes.
    pub fn verdict(&self, checks: &[CheckResult]) -> Verdict {
        let is_required = |name: &&String| self.is_shown(name) && self.why_skipped(name).is_none();
        let required: Vec<String> = self.required.iter().filter(is_required).cloned().collect();
        overall(checks, &required)
    }
}

/// Whether a name is that of the check or of a family it belongs to.
pub fn covers(name: &str, check: &str) -> bool {
    check == name || check.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

fn known(name: &str, names: &[&'static str]) -> Result<(), AppError> {
    if names.iter().any(|check| covers(name, check)) {
        return Ok(());
    }
    let families = names.iter().filter_map(|check| check.split_once('.')).map(|(family, _)| family);
    let error = AppError::new(ErrorKind::Usage, format!("there is no check `{name}`"));
    Err(match nearest(name, names.iter().copied().chain(families)) {
        Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
        None => error.hint(format!("the checks are {}", names.join(", "))),
    })
}
