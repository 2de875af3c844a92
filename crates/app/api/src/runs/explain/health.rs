//! The health of an attempt, with what it rests on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::detect::{DetectionSeverity, Detector};
use trackway_core::{Health, HealthReport, Step};

use crate::runs::detections::Detection;

/// The health of an attempt, with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedHealth {
    /// Its health; null: its receipt is older than that.
    pub health: Option<Health>,
    /// What it rests on.
    pub report: HealthReport,
    /// Why a person vouches for the run all the same.
    pub blessed_because: Option<String>,
}

impl ExplainedHealth {
    /// `broken`, `unknown (older receipt)`.
    #[must_use]
    pub fn word(&self) -> String {
        match (self.health, &self.blessed_because) {
            (None, _) => "unknown (older receipt)".into(),
            (Some(health), Some(_)) if !Health::is_good(Some(health)) => format!("{health}, but blessed"),
            (Some(health), _) => health.to_string(),
        }
    }

    /// What it rests on, as lines: its findings, else what was looked at, with what detectors found in the attempt; and what is missing.
    #[must_use]
    pub fn lines(&self, detected: &[&Detection]) -> Vec<String> {
        let from = |step: Option<Step>| step.map(|step| format!(" from step {step} on")).unwrap_or_default();
        let HealthReport { findings, looked_at, missing } = &self.report;
        let mut lines: Vec<String> = findings
            .iter()
            .map(|found| format!("{}{}: {}", found.found_by, from(found.first_step), found.evidence))
            .collect();
        if findings.is_empty() && !looked_at.is_empty() {
            let found = passing(detected).unwrap_or_else(|| "nothing was found".to_owned());
            lines.push(format!("{found}; looked at: {}", looked_at.join(", ")));
        }
        lines.extend(missing.iter().cloned());
        lines.extend(self.blessed_because.iter().map(|why| format!("blessed: {why}")));
        lines
    }
}

/// What detectors found that is not held against an attempt, the first ones; none without any that a person should look at.
fn passing(detected: &[&Detection]) -> Option<String> {
    /// So many are named.
    const NAMED_MAX: usize = 2;
    let found: Vec<&&Detection> =
        detected.iter().filter(|found| found.severity != DetectionSeverity::Note).collect();
    let mut named: Vec<String> = found
        .iter()
        .take(NAMED_MAX)
        .map(|found| match found.detector {
            // Values that are not finite at the end would be findings.
            Detector::NonFinite => format!("{}, and it recovered", found.evidence),
            _ => format!("{}, which does not count at its end", found.evidence),
        })
        .collect();
    let more = found.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        named.push(format!("{more} more that do not count at its end"));
    }
    (!named.is_empty()).then(|| named.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_core::HealthFinding;

    use super::*;

    fn detection(detector: &str, severity: &str, evidence: &str) -> Detection {
        serde_json::from_value(json!({
            "attempt_id": "att_01jz0000000000000000000002", "at": "2026-01-01T00:00:00Z", "detector": detector,
            "severity": severity, "policy": "note", "rank": 0, "first_step": 3, "step": 12, "threshold": 0.0,
            "evidence": evidence, "cause": "", "advice": "", "stacks": [],
        }))
        .expect("a detection")
    }

    /// Proves that a health without findings names what detectors found all the same, but for notes, and says that
    /// nothing was found only where nothing was.
    #[test]
    fn what_recovered_is_not_nothing() {
        let looked_at = vec!["loss".to_owned()];
        let report = HealthReport { looked_at, ..HealthReport::default() };
        let ok = ExplainedHealth { health: Some(Health::Ok), report, blessed_because: None };
        assert_eq!(ok.lines(&[]), ["nothing was found; looked at: loss"]);
        let nan = detection("non_finite", "critical", "10 values in a row are NaN");
        let spike = detection("loss_spike", "warn", "it rose");
        let note = detection("loss_spike", "note", "it rose a little");
        assert_eq!(ok.lines(&[&note]), ["nothing was found; looked at: loss"]);
        assert_eq!(
            ok.lines(&[&nan, &spike, &spike]),
            ["10 values in a row are NaN, and it recovered; it rose, which does not count at its end; \
              1 more that do not count at its end; looked at: loss"]
        );
        let mut broken = ok;
        broken.report.findings = vec![HealthFinding {
            found_by: "non_finite".into(),
            health: Health::Broken,
            first_step: None,
            evidence: "it is NaN".into(),
        }];
        assert_eq!(broken.lines(&[&nan]), ["non_finite: it is NaN"]);
    }
}
