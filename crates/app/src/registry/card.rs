//! The model card: Markdown behind the YAML front matter that model hubs read (`model-index` with results, data by revision).

use std::fmt::Write as _;

use serde_json::{Value, json};
use trackway_ledger::{ApprovalRow, EvaluationRow, GateReceiptRow, ModelVersionRow, RunRow};
use trackway_tower::gate::{Evidence, Measured};

use super::Model;
use super::dossier::judged;
use crate::App;
use crate::error::AppError;

/// Slices and measures that a card shows at most.
const NUMBERS_MAX: usize = 200;

/// Everything a card tells.
pub(super) struct Facts {
    version: ModelVersionRow,
    run: RunRow,
    evaluation: Option<EvaluationRow>,
    gates: Option<GateReceiptRow>,
    approvals: Vec<ApprovalRow>,
}

impl App {
    pub(super) fn facts_of_card(&self, model: &Model, version: &ModelVersionRow) -> Result<Facts, AppError> {
        let evidence = self.evidence(model, version, None)?;
        let run = self.find_run(&version.run_id.to_string())?;
        let digest = &evidence.dossier.approval_digest;
        let approvals = evidence.approvals.into_iter().filter(|row| row.digest == *digest).collect();
        let (evaluation, gates) = (evidence.evaluation, evidence.gates);
        Ok(Facts { version: version.clone(), run, evaluation, gates, approvals })
    }

    /// The model card of a version.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::NotFound`].
    pub fn model_card(&self, name: &str, version: &str) -> Result<String, AppError> {
        let model = self.model(name)?;
        let version = model.named(version)?;
        Ok(card(&self.facts_of_card(&model, version)?))
    }
}

/// Writes a card.
pub(super) fn card(facts: &Facts) -> String {
    let Facts { version, run, .. } = facts;
    let mut text = front_matter(facts);
    let _ = writeln!(text, "\n# {} {}\n", version.model, version.version);
    if let Some(description) = &version.description {
        let _ = writeln!(text, "{description}\n");
    }
    text += "## Where it comes from\n\n| | |\n|---|---|\n";
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "| {name} | {} |", cell(&value));
        }
    };
    let code = |value: &str| format!("`{value}`");
    line("run", Some(format!("{} ({})", run.name, code(&run.run_id.to_string()))));
    line("attempt", version.attempt_id.map(|id| code(&id.to_string())));
    line("step", version.step.map(|step| step.to_string()));
    line("trained on", Some(format!("{} of the data", version.stage)));
    line("weights", Some(format!("manifest {}", code(&version.checkpoint_manifest_sha256))));
    line("size", Some(format!("{} bytes", version.size_bytes)));
    line("config", Some(code(&version.config_sha256)));
    line("code", version.code_commit.as_deref().map(code));
    line("environment", version.environment_sha256.as_deref().map(code));
    line("container", version.container_digest.as_deref().map(code));
    for (name, digest) in version.data_json.as_object().into_iter().flatten() {
        line(&format!("data `{name}`"), digest.as_str().map(code));
    }
    line(
        "registered",
        Some(format!("{} by {}", version.registered_at.to_rfc3339(), who(version.registered_by.as_deref()))),
    );
    text += &evaluation(facts);
    text += &signature(version.signature_json.as_ref());
    text
}

fn front_matter(facts: &Facts) -> String {
    let Facts { version, run, evaluation, .. } = facts;
    let metrics =
        numbers(facts).into_iter().filter(|(name, measured)| !name.contains('.') && !measured.exact);
    let results: Vec<Value> = metrics
        .filter_map(|(name, measured)| Some(json!({ "type": name, "name": name, "value": measured.value? })))
        .collect();
    let task_set = evaluation.as_ref().and_then(|row| row.task_set_sha256.clone());
    let dataset = json!({
        "name": evaluation.as_ref().and_then(|row| row.task_set_version.clone()).unwrap_or_else(|| "evaluation data".into()),
        "type": "custom",
        "revision": task_set,
    });
    let task = run.model_family.clone().unwrap_or_else(|| "other".into());
    let index = json!([{
        "name": version.model,
        "results": [{ "task": { "type": task }, "dataset": dataset, "metrics": results }],
    }]);
    let tags = json!(["trackway", format!("manifest-sha256:{}", version.checkpoint_manifest_sha256)]);
    // JSON is YAML: a value on one line needs no other quoting.
    let index = if results.is_empty() { String::new() } else { format!("model-index: {index}\n") };
    format!("---\ntags: {tags}\n{index}---\n")
}

fn evaluation(facts: &Facts) -> String {
    let Some(row) = &facts.evaluation else {
        return "\n## Evaluation\n\nNobody evaluated these weights.\n".into();
    };
    let mut text = format!("\n## Evaluation\n\n`{}` by {}", row.evaluation_id, row.evaluator_name);
    if let Some(digest) = &row.evaluator_digest {
        let _ = write!(text, " (`{digest}`)");
    }
    if let Some(task_set) = &row.task_set_version {
        let _ = write!(text, " on {task_set}");
    }
    text += ".\n\n| number | value | interval | rows |\n|---|---|---|---|\n";
    for (name, measured) in numbers(facts).into_iter().take(NUMBERS_MAX) {
        let interval = measured.low.zip(measured.high).map(|(low, high)| format!("{low:.4} … {high:.4}"));
        let value = measured.value.map_or("not finite".into(), |value| format!("{value:.4}"));
        let rows = measured.support.map(|rows| rows.to_string()).unwrap_or_default();
        let _ = writeln!(text, "| {} | {value} | {} | {rows} |", cell(&name), interval.unwrap_or_default());
    }
    if let Some(gates) = &facts.gates {
        let _ = writeln!(text, "\n## Gates: {}\n\n| gate | verdict | why |\n|---|---|---|", gates.verdict);
        for gate in judged(gates) {
            let _ = writeln!(text, "| `{}` | {} | {} |", cell(&gate.rule), gate.verdict, cell(&gate.why));
        }
        let _ = writeln!(text, "\nReceipt `{}`.", gates.gate_receipt_id);
    }
    for row in &facts.approvals {
        let why = row.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let _ = writeln!(text, "\nApproved by {} until {}{why}.", row.approver, row.expires_at.to_rfc3339());
    }
    text
}

/// The numbers that gates were judged by.
fn numbers(facts: &Facts) -> Vec<(String, Measured)> {
    let evidence = facts.gates.as_ref().map(|gates| gates.evidence_json.clone());
    let evidence: Evidence = evidence.and_then(|json| serde_json::from_value(json).ok()).unwrap_or_default();
    evidence.numbers.into_iter().collect()
}

fn signature(signature: Option<&Value>) -> String {
    let Some(signature) = signature else { return String::new() };
    let mut text = String::from("\n## Signature\n\n| | name | type |\n|---|---|---|\n");
    for part in ["inputs", "outputs"] {
        for entry in signature.get(part).and_then(Value::as_array).into_iter().flatten() {
            let of = |key: &str| {
                entry.get(key).map(|value| value.as_str().map_or(value.to_string(), String::from))
            };
            let (name, kind) = (of("name").unwrap_or_default(), of("type").unwrap_or_default());
            let _ = writeln!(text, "| {part} | {} | {} |", cell(&name), cell(&kind));
        }
    }
    text
}

fn who(person: Option<&str>) -> &str {
    person.unwrap_or("somebody")
}

/// A text that does not end the cell it stands in.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
