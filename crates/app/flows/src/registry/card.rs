//! The model card: Markdown after the YAML front matter that model hubs read (`model-index` with results, data by
//! revision).

use serde_json::{Value, json};
use trackway_core::Health;
use trackway_core::text::metric;
use trackway_core::visible::escaped_json;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::stored::read_stored;
use trackway_formats::gate::{BLIND_SPOT, PROBE};
use trackway_ledger::{ApprovalRow, EvaluationRow, GateReceiptRow, ModelVersionRow, RunRow};
use trackway_rules::gate::{GateEvidence, JudgedGate, Measured};

use super::Model;
use super::evidence::judged;
use crate::markdown::{Code, Markdown, Paragraphs, Put, md};
use crate::registry::{self, evidence};

/// Slices and measures that a card shows at most.
const NUMBERS_MAX: usize = 200;

/// Everything on a card.
pub(super) struct CardFacts {
    version: ModelVersionRow,
    run: RunRow,
    evaluation: Option<EvaluationRow>,
    gates: Option<GateReceiptRow>,
    judged: Vec<JudgedGate>,
    numbers: Vec<(String, Measured)>,
    approvals: Vec<ApprovalRow>,
    health: Option<Health>,
    /// What speaks against its weights.
    pub(super) warnings: Vec<String>,
}

pub(super) fn facts_of_card(
    context: &Context,
    model: &Model,
    version: &ModelVersionRow,
) -> Result<CardFacts, AppError> {
    let evidence = evidence::evidence(context, model, version, None)?;
    let run = context.run_by_id(version.run_id)?;
    let digest = &evidence.facts.approval_digest;
    let approvals = evidence.approvals.into_iter().filter(|row| row.digest == *digest).collect();
    let health = evidence.facts.attempt.as_ref().and_then(|attempt| attempt.health);
    let warnings = evidence.facts.warnings();
    let (evaluation, gates) = (evidence.evaluation, evidence.gates);
    let judged = gates.as_ref().map(judged).transpose()?.unwrap_or_default();
    let numbers = gates.as_ref().map(numbers).transpose()?.unwrap_or_default();
    let version = version.clone();
    Ok(CardFacts { version, run, evaluation, gates, judged, numbers, approvals, health, warnings })
}

/// The model card of a version.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`].
pub fn model_card(context: &Context, name: &str, version: &str) -> Result<String, AppError> {
    let model = registry::model(context, name)?;
    let version = model.named(version)?;
    Ok(card(&facts_of_card(context, &model, version)?))
}

/// Writes a card.
pub(super) fn card(facts: &CardFacts) -> String {
    let mut text = Markdown::default();
    front_matter(&mut text, facts);
    md!(text, "\n# {} {}\n\n", facts.version.model, facts.version.version.to_string());
    if let Some(description) = &facts.version.description {
        md!(text, "{}\n\n", Paragraphs(description));
    } else {
        md!(text, "What it is for was not described (`trackway registry register --description`).\n\n");
    }
    origin(&mut text, facts);
    evaluation(&mut text, facts);
    signature(&mut text, facts.version.signature_json.as_ref());
    text.into_string()
}

fn origin(text: &mut Markdown, CardFacts { version, run, health, warnings, .. }: &CardFacts) {
    md!(text, "## Where it comes from\n\n| | |\n|---|---|\n");
    fn line(text: &mut Markdown, name: impl Put, value: impl Put) {
        md!(text, "| {} | {} |\n", name, value);
    }
    fn code(text: &mut Markdown, name: impl Put, value: Option<&str>) {
        value.into_iter().for_each(|value| line(text, &name, Code(value)));
    }
    md!(text, "| run | {} ({}) |\n", run.name, Code(&run.run_id.to_string()));
    for (name, value) in [("owner", &run.owner), ("team", &run.team)] {
        value.iter().for_each(|value| line(text, name, value.as_str()));
    }
    code(text, "attempt", version.attempt_id.map(|id| id.to_string()).as_deref());
    version.step.iter().for_each(|step| line(text, "step", step.to_string()));
    health.iter().for_each(|health| line(text, "health", health.as_str()));
    warnings.iter().for_each(|warning| line(text, "warning", warning.as_str()));
    line(text, "trained on", format!("{} of the data", version.rung));
    line(text, "weights", ("manifest ", Code(&version.checkpoint_manifest_sha256)));
    line(text, "size", format!("{} bytes", version.size_bytes));
    code(text, "config", Some(&version.config_sha256));
    code(text, "code", version.code_commit.as_deref());
    code(text, "environment", version.environment_sha256.as_deref());
    code(text, "container", version.container_digest.as_deref());
    for (name, digest) in version.data_json.as_object().into_iter().flatten() {
        code(text, ("data ", Code(name)), digest.as_str());
    }
    let by = format!("{} by {}", version.registered_at.to_rfc3339(), who(version.registered_by.as_deref()));
    line(text, "registered", by);
}

fn front_matter(text: &mut Markdown, facts: &CardFacts) {
    let CardFacts { version, run, evaluation, .. } = facts;
    let metrics =
        facts.numbers.iter().filter(|(name, measured)| !name.contains('.') && measured.coverage().is_some());
    let results: Vec<Value> = metrics
        .filter_map(|(name, measured)| {
            Some(json!({ "type": name, "name": name, "value": measured.value()? }))
        })
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
    md!(text, "---\ntags: {}\n", Yaml(&tags));
    if !results.is_empty() {
        md!(text, "model-index: {}\n", Yaml(&index));
    }
    md!(text, "---\n");
}

/// JSON is YAML: a value on one line needs no other quoting. What begins a tag or an entity of HTML is escaped, since a
/// page that does not read front matter shows it as text of the document.
struct Yaml<'a>(&'a Value);

impl Put for Yaml<'_> {
    fn put(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let json = escaped_json(self.0.to_string());
        let escaped = json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
        formatter.write_str(&escaped)
    }
}

fn evaluation(text: &mut Markdown, facts: &CardFacts) {
    let Some(row) = &facts.evaluation else {
        return md!(text, "\n## Evaluation\n\nThere is no evaluation of these weights.\n");
    };
    md!(text, "\n## Evaluation\n\n{} by {}", Code(&row.evaluation_id.to_string()), row.evaluator_name);
    if let Some(digest) = &row.evaluator_digest {
        md!(text, " ({})", Code(digest));
    }
    if let Some(task_set) = &row.task_set_version {
        md!(text, " on {}", task_set);
    }
    md!(text, ".\n");
    let mut left = NUMBERS_MAX;
    for (title, prefix) in GROUPS {
        let of_group = facts.numbers.iter().filter(|(name, _)| group_of(name) == prefix);
        let rows: Vec<&(String, Measured)> = of_group.take(left).collect();
        left -= rows.len();
        numbers_table(text, title, &rows);
    }
    if let Some(gates) = &facts.gates {
        let verdict = gates.verdict.to_string();
        md!(text, "\n## Gates: {}\n\n| gate | verdict | why |\n|---|---|---|\n", verdict);
        for gate in &facts.judged {
            md!(text, "| {} | {} | {} |\n", Code(&gate.rule), gate.verdict.to_string(), gate.why);
        }
        md!(text, "\nReceipt {}.\n", Code(&gates.gate_receipt_id));
    }
    for row in &facts.approvals {
        let why = row.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        md!(text, "\nApproved by {} until {}{}.\n", row.approver, row.expires_at.to_rfc3339(), why);
    }
}

/// The titles of the numbers on a card, in their order, and how the names of each begin.
const GROUPS: [(&str, &str); 5] = [
    ("", ""),
    ("Slices", "slice."),
    ("Fairness", "fairness."),
    ("Blind spots", BLIND_SPOT),
    ("Probes", PROBE),
];

/// How the names of the numbers begin among which one is shown.
fn group_of(name: &str) -> &'static str {
    GROUPS
        .iter()
        .map(|(_, prefix)| *prefix)
        .filter(|prefix| name.starts_with(prefix))
        .max_by_key(|it| it.len())
        .unwrap_or("")
}

fn numbers_table(text: &mut Markdown, title: &str, rows: &[&(String, Measured)]) {
    if rows.is_empty() {
        return;
    }
    if !title.is_empty() {
        md!(text, "\n### {}\n", title);
    }
    md!(text, "\n| number | value | interval | rows |\n|---|---|---|---|\n");
    for (name, measured) in rows {
        let bounds = measured.interval().and_then(|it| it.bounds());
        let interval = bounds.map(|(low, high)| format!("{} … {}", metric(low), metric(high)));
        let value = match measured.value() {
            None => "not finite".into(),
            Some(value) if measured.coverage().is_none() => value.to_string(),
            Some(value) => metric(value),
        };
        let coverage = measured.coverage().unwrap_or_default();
        let rows = measured.support().map(|rows| coverage.words(rows)).unwrap_or_default();
        md!(text, "| {} | {} | {} | {} |\n", name, value, interval.unwrap_or_default(), rows);
    }
}

/// The numbers that the gates used.
fn numbers(gates: &GateReceiptRow) -> Result<Vec<(String, Measured)>, AppError> {
    let evidence: GateEvidence = read_stored(&gates.evidence_json, "gate_receipts.evidence_json", || {
        format!("gate receipt {}", gates.gate_receipt_id)
    })?;
    Ok(evidence.numbers.into_iter().collect())
}

fn signature(text: &mut Markdown, signature: Option<&Value>) {
    let Some(signature) = signature else { return };
    md!(text, "\n## Signature\n\n| | name | type |\n|---|---|---|\n");
    for part in ["inputs", "outputs"] {
        for entry in signature.get(part).and_then(Value::as_array).into_iter().flatten() {
            let of = |key: &str| {
                entry.get(key).map(|value| value.as_str().map_or(value.to_string(), String::from))
            };
            let (name, kind) = (of("name").unwrap_or_default(), of("type").unwrap_or_default());
            md!(text, "| {} | {} | {} |\n", part, name, kind);
        }
    }
}

fn who(person: Option<&str>) -> &str {
    person.unwrap_or("an unknown user")
}
