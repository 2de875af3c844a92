//! Known-bad models: a gate that never blocked one may be unable to.

use std::path::Path;

use serde_json::json;
use trackway_api::models::gates::{GateFixture, GateTest, GateTests};
use trackway_core::Clock as _;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::runfile::canonical_json;
use trackway_formats::sha256_hex;
use trackway_ledger::{EvaluationRow, GateTestRow, KeptRows};
use trackway_rules::gate::judge;

use super::{completed, read_gates};
use crate::evaluation::gates::{self, is_verified};

/// A larger file is not a fixture.
const FIXTURE_BYTES_MAX: u64 = 16 << 20;

/// Reads a fixture.
///
/// # Errors
/// [`ErrorKind::NotFound`], or [`ErrorKind::Usage`] with the place of what is wrong.
pub fn read_fixture(path: &Path) -> Result<GateFixture, AppError> {
    let shown = path.display();
    let size = std::fs::metadata(path).map_err(|error| {
        AppError::new(ErrorKind::NotFound, format!("the fixture `{shown}` cannot be read")).because(error)
    })?;
    if size.len() > FIXTURE_BYTES_MAX {
        return Err(AppError::new(ErrorKind::Usage, format!("`{shown}` is too large to be a fixture")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| AppError::file("read", path, error))?;
    serde_json::from_str(&text).map_err(|error| {
        AppError::new(ErrorKind::Usage, format!("invalid fixture `{shown}`"))
            .because(error)
            .hint("create one with: trackway gates fixture EVALUATION --out FILE --set accuracy=0.5")
    })
}

/// A fixture with some of its numbers replaced by others, without an interval that was theirs.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a number that the evidence does not have.
pub fn changed_fixture(mut fixture: GateFixture, changes: &[(String, f64)]) -> Result<GateFixture, AppError> {
    for (name, value) in changes {
        let Some(measured) = fixture.evidence.numbers.get_mut(name) else {
            let known: Vec<&str> = fixture.evidence.numbers.keys().map(String::as_str).take(20).collect();
            let message = format!("the evidence has no `{name}`");
            return Err(
                AppError::new(ErrorKind::NotFound, message).hint(format!("it has {}", known.join(", ")))
            );
        };
        *measured = measured.moved_to(*value);
        if let Some(difference) = fixture.evidence.differences.get_mut(name) {
            let baseline = fixture.evidence.baseline.as_ref().and_then(|numbers| numbers.get(name)?.value());
            if let Some(baseline) = baseline {
                *difference = difference.moved_to(value - baseline);
            }
        }
        fixture.evidence.inconclusive.remove(name);
    }
    Ok(fixture)
}

fn fixture_sha256(fixture: &GateFixture) -> String {
    sha256_hex(canonical_json(&json!(fixture.evidence)).as_bytes())
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
) -> Result<GateFixture, AppError> {
    let row = completed(evaluation)?;
    let baseline = gates::baseline_made_with(context, &row)?;
    let (evidence, _) = gates::evidence_of(context, &row, Some(baseline.as_ref().unwrap_or(&row)))?;
    let named = name.map_or_else(|| format!("evaluation {}", row.evaluation_id), String::from);
    Ok(GateFixture { name: named, evidence })
}

/// Gates, and the known-bad models that each of them must reject.
#[derive(Debug)]
pub struct TestedGates {
    pub rules: Vec<String>,
    /// The models.
    pub fixtures: Vec<GateFixture>,
}

/// Tests gates against known-bad models, and records the verdicts.
///
/// # Errors
/// [`ErrorKind::Usage`]: a gate that cannot be read.
pub fn test_gates(context: &Context, tested: &[TestedGates]) -> Result<GateTests, AppError> {
    let at = context.clock.now();
    let (mut tests, mut rows, mut rules) = (Vec::new(), Vec::new(), Vec::new());
    for TestedGates { rules: of_these, fixtures } in tested {
        for (rule, gate) in of_these.iter().zip(&read_gates(of_these)?) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
            for fixture in fixtures {
                let judged = judge(rule, gate, &fixture.evidence);
                let digest = fixture_sha256(fixture);
                let id = sha256_hex(format!("{rule}\n{digest}\n{}", at.as_micros()).as_bytes());
                rows.push(GateTestRow {
                    gate_test_id: id[..26].to_owned(),
                    rule: rule.clone(),
                    fixture: fixture.name.clone(),
                    fixture_sha256: digest,
                    verdict: judged.verdict,
                    why: judged.why.clone(),
                    at,
                });
                let (fixture, verdict, why) = (fixture.name.clone(), judged.verdict, judged.why);
                tests.push(GateTest { rule: rule.clone(), fixture, verdict, why });
            }
        }
    }
    context.ledger_write(|ledger| ledger.insert_gate_tests(&rows))?;
    if let Some(first) = rows.first() {
        context.keep_in_registry(&format!("gate-tests-{}", first.gate_test_id), &KeptRows::of(&rows));
    }
    let unverified = unverified(context, &rules)?;
    let verified = rules.into_iter().filter(|rule| !unverified.contains(rule)).collect();
    Ok(GateTests { tests, verified, unverified })
}

/// Which of these never blocked a bad model.
pub(super) fn unverified(context: &Context, rules: &[String]) -> Result<Vec<String>, AppError> {
    let mut unverified = Vec::new();
    for rule in rules {
        if !is_verified(&context.ledger_read(|ledger| ledger.gate_tests_of_rule(rule))?) {
            unverified.push(rule.clone());
        }
    }
    Ok(unverified)
}
