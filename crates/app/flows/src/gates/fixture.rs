//! Known-bad models: a gate that never blocked one may be unable to.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;
use trackway_core::Clock as _;
use trackway_core::registry::GateVerdict;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::runfile::canonical_json;
use trackway_formats::sha256_hex;
use trackway_ledger::{EvaluationRow, GateTestRow, KeptRows};
use trackway_tower::gate::{GateEvidence, judge};

use super::{completed, read_gates};
use crate::gates::{self, is_armed};

/// A larger file is not a fixture.
const FIXTURE_BYTES_MAX: u64 = 16 << 20;

/// The evidence of a known-bad model, as it is in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// What is bad about it.
    pub name: String,
    /// Its numbers.
    pub evidence: GateEvidence,
}

/// The verdict of one gate about one known-bad model.
#[derive(Debug, Clone, Serialize)]
pub struct GateTest {
    /// The gate.
    pub rule: String,
    /// The bad model.
    pub fixture: String,
    /// The verdict.
    pub verdict: GateVerdict,
    /// Why.
    pub why: String,
}

/// The answer to `trackway gates test`. Field names are its JSON contract.
#[derive(Debug, Clone, Serialize)]
pub struct GateTests {
    /// Every gate with every bad model.
    pub tests: Vec<GateTest>,
    /// Gates that failed one of them, now or in their last test with another.
    pub armed: Vec<String>,
    /// Gates that never did.
    pub unarmed: Vec<String>,
}

impl Fixture {
    /// Reads a fixture.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], or [`ErrorKind::Usage`] with the place of what is wrong.
    pub fn read(path: &Path) -> Result<Self, AppError> {
        let shown = path.display();
        let size = std::fs::metadata(path).map_err(|error| {
            AppError::new(ErrorKind::NotFound, format!("the fixture `{shown}` cannot be read: {error}"))
        })?;
        if size.len() > FIXTURE_BYTES_MAX {
            return Err(AppError::new(ErrorKind::Usage, format!("`{shown}` is too large to be a fixture")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| AppError::file("read", path, &error))?;
        serde_json::from_str(&text).map_err(|error| {
            AppError::new(ErrorKind::Usage, format!("invalid fixture `{shown}`: {error}"))
                .hint("create one with: trackway gates fixture EVALUATION --out FILE --set accuracy=0.5")
        })
    }

    /// With some of its numbers replaced by others, without an interval that was theirs.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a number that the evidence does not have.
    pub fn with(mut self, changes: &[(String, f64)]) -> Result<Self, AppError> {
        for (name, value) in changes {
            let Some(measured) = self.evidence.numbers.get_mut(name) else {
                let known: Vec<&str> = self.evidence.numbers.keys().map(String::as_str).take(20).collect();
                let message = format!("the evidence has no `{name}`");
                return Err(
                    AppError::new(ErrorKind::NotFound, message).hint(format!("it has {}", known.join(", ")))
                );
            };
            *measured = measured.moved_to(*value);
            if let Some(difference) = self.evidence.differences.get_mut(name) {
                let baseline = self.evidence.baseline.as_ref().and_then(|numbers| numbers.get(name)?.value());
                if let Some(baseline) = baseline {
                    *difference = difference.moved_to(value - baseline);
                }
            }
            self.evidence.inconclusive.remove(name);
        }
        Ok(self)
    }

    fn sha256(&self) -> String {
        sha256_hex(canonical_json(&json!(self.evidence)).as_bytes())
    }
}

/// The evidence of an evaluation, as a fixture. Where it was compared with nothing, it is its own baseline: what is made worse
/// afterwards is worse than that.
///
/// # Errors
/// [`ErrorKind::NotFound`]; [`ErrorKind::Usage`] when it did not complete.
pub fn fixture_of(
    context: &Context,
    evaluation: EvaluationRow,
    name: Option<&str>,
) -> Result<Fixture, AppError> {
    let row = completed(evaluation)?;
    let baseline = gates::baseline_made_with(context, &row)?;
    let (evidence, _) = gates::evidence_of(context, &row, Some(baseline.as_ref().unwrap_or(&row)))?;
    let named = name.map_or_else(|| format!("evaluation {}", row.evaluation_id), String::from);
    Ok(Fixture { name: named, evidence })
}

/// Tests gates against known-bad models, and records the verdicts.
///
/// # Errors
/// [`ErrorKind::Usage`]: a gate that cannot be read.
pub fn test_gates(context: &Context, rules: &[String], fixtures: &[Fixture]) -> Result<GateTests, AppError> {
    let gates = read_gates(rules)?;
    let at = context.clock.now();
    let (mut tests, mut rows) = (Vec::new(), Vec::new());
    for (rule, gate) in rules.iter().zip(&gates) {
        for fixture in fixtures {
            let judged = judge(rule, gate, &fixture.evidence);
            let fixture_sha256 = fixture.sha256();
            let id = sha256_hex(format!("{rule}\n{fixture_sha256}\n{}", at.as_micros()).as_bytes());
            rows.push(GateTestRow {
                gate_test_id: id[..26].to_owned(),
                rule: rule.clone(),
                fixture: fixture.name.clone(),
                fixture_sha256,
                verdict: judged.verdict,
                why: judged.why.clone(),
                at,
            });
            let (fixture, verdict, why) = (fixture.name.clone(), judged.verdict, judged.why);
            tests.push(GateTest { rule: rule.clone(), fixture, verdict, why });
        }
    }
    context.ledger_write(|ledger| ledger.insert_gate_tests(&rows))?;
    if let Some(first) = rows.first() {
        context
            .keep_in_registry(&format!("gate-tests-{}", first.gate_test_id), &KeptRows::of_gate_tests(&rows));
    }
    let unarmed = unarmed(context, rules)?;
    let armed = rules.iter().filter(|rule| !unarmed.contains(rule)).cloned().collect();
    Ok(GateTests { tests, armed, unarmed })
}

/// Which of these never blocked a bad model.
pub(super) fn unarmed(context: &Context, rules: &[String]) -> Result<Vec<String>, AppError> {
    let mut unarmed = Vec::new();
    for rule in rules {
        if !is_armed(&context.ledger_read(|ledger| ledger.gate_tests_of_rule(rule))?) {
            unarmed.push(rule.clone());
        }
    }
    Ok(unarmed)
}
