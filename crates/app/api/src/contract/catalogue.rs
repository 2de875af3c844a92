//! Every document that a command prints with `--json`.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

#[cfg(debug_assertions)]
use crate::contract::derived::Derived;
use crate::contract::schemas;
pub use crate::contract::schemas::Shape;
use crate::home::{doctor, gc, import, notification, settings, sql, tick, verify};
use crate::models::{cross_validation, evaluations, gates, registry};
use crate::runs::{
    attempts, compare, diagnosis, explain, export, init, logs, postmortem, preflight, rehearsal, reproduce,
    watch,
};
use crate::{Document, checkpoints, data, models, runs};

/// The schemas of all documents, and the definitions of their types once: generated, and compared by a test.
const SCHEMAS: &str = include_str!("../../../../../docs/schemas.json");

/// A document of the contract.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name: what `trackway schema` takes, and the name of its golden file.
    pub name: &'static str,
    /// The commands that print it. An option behind a command, such as `memory --devices`, means: with this option.
    pub commands: &'static [&'static str],
    /// How it is printed.
    pub shape: Shape,
    /// What a reader should know beside its fields: exit codes first.
    pub remarks: &'static str,
    /// What its type says of it.
    #[cfg(debug_assertions)]
    pub derived: Derived,
}

/// `docs/schemas.json`.
#[derive(Debug, Deserialize)]
struct Schemas {
    /// The schema of each document without its definitions; of an item, or a line, if there are several.
    documents: Map<String, Value>,
    /// The schemas of the types that they refer to.
    #[serde(rename = "$defs")]
    definitions: Map<String, Value>,
}

impl Entry {
    #[cfg(debug_assertions)]
    const fn new<D: Document + schemars::JsonSchema + DeserializeOwned>(
        name: &'static str,
        commands: &'static [&'static str],
        shape: Shape,
        remarks: &'static str,
    ) -> Self {
        Self { name, commands, shape, remarks, derived: Derived::of::<D>() }
    }

    #[cfg(not(debug_assertions))]
    const fn new<D: Document + DeserializeOwned>(
        name: &'static str,
        commands: &'static [&'static str],
        shape: Shape,
        remarks: &'static str,
    ) -> Self {
        Self { name, commands, shape, remarks }
    }

    /// The JSON Schema (draft 2020-12) of what is printed; of one line if every line is an object.
    ///
    /// # Errors
    /// When the file that the binary was built with has no such document: a fault of the build.
    pub fn schema(&self) -> Result<Map<String, Value>, serde_json::Error> {
        let mut all: Schemas = serde_json::from_str(SCHEMAS)?;
        let Some(Value::Object(item)) = all.documents.remove(self.name) else {
            return Err(serde::de::Error::custom(format!("no schema of `{}`", self.name)));
        };
        let definitions = reachable(&item, &all.definitions);
        let mut whole = match self.shape {
            Shape::Array => {
                Map::from_iter([("type".into(), json!("array")), ("items".into(), Value::Object(item))])
            }
            Shape::One | Shape::Lines => item,
        };
        whole.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        if !definitions.is_empty() {
            whole.insert("$defs".into(), Value::Object(definitions));
        }
        Ok(whole)
    }
}

/// The definitions that a schema refers to, and those that these refer to.
fn reachable(schema: &Map<String, Value>, definitions: &Map<String, Value>) -> Map<String, Value> {
    let mut found = Map::new();
    let mut left: Vec<&Value> = schema.values().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => left.extend(members.values()),
            Value::Array(items) => left.extend(items),
            Value::String(text) => {
                let definition =
                    text.strip_prefix("#/$defs/").and_then(|name| definitions.get_key_value(name));
                if let Some((name, schema)) = definition
                    && found.insert(name.clone(), schema.clone()).is_none()
                {
                    left.push(schema);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

impl From<&Entry> for schemas::ListedDocument {
    fn from(entry: &Entry) -> Self {
        Self {
            name: entry.name.into(),
            commands: entry.commands.iter().map(|command| (*command).into()).collect(),
            shape: entry.shape,
            remarks: entry.remarks.into(),
        }
    }
}

/// Lists documents, and makes each type a [`Document`]: `of` where it is listed first, `again` where it is listed another time.
macro_rules! documents {
    (@implement of $type:ty) => { impl Document for $type {} };
    (@implement again $type:ty) => {};
    ($($name:literal: $shape:ident $of:ident $type:ty, by [$($command:literal),+ $(,)?] $(, $remarks:literal)?;)*) => {
        $(documents!(@implement $of $type);)*

        /// Every document, in the order of `docs/json.md`.
        pub const DOCUMENTS: &[Entry] = &[
            $(Entry::new::<$type>($name, &[$($command),+], Shape::$shape, concat!($($remarks)?)),)*
        ];
    };
}

documents! {
    "run": One of runs::RunReport, by ["run", "resume"],
        "Exit codes: 3 refused before a launch, 4 the run or its evaluation did not complete, 5 a gate, a rung or `--fail-on` is not met.";
    "run-detached": One of runs::DetachedRun, by ["run --detach", "resume --detach"],
        "If nothing was launched: the document and the exit code of `run`.";
    "runs": Array of runs::Run, by ["runs"];
    "attempts": Array of attempts::Attempt, by ["attempts"];
    "watch": Lines of watch::RunSample, by ["watch"];
    "explain": One of explain::Explanation, by ["explain"];
    "diagnose": One of diagnosis::AttemptDiagnosis, by ["diagnose"],
        "Exit code 4 unless `verdict` is `found`; 3 without a document if nothing is to be launched.";
    "postmortem": One of postmortem::Postmortem, by ["postmortem"];
    "amend": One of explain::Amendment, by ["amend"];
    "amend-run": One of runs::AmendedRun,
        by ["amend --name", "amend --note", "amend --tag", "amend --untag", "amend --hide", "amend --unhide", "runs bless"];
    "verify": One of verify::VerifyReport, by ["verify"], "Exit code 7 unless `holds`.";
    "reproduce": One of reproduce::Reproduction, by ["reproduce"];
    "reproduce-check": One of reproduce::ReproductionCheck, by ["reproduce --check"],
        "Exit code 7 if `verdict` is `different`, 4 if it is `cannot_tell`.";
    "compare": One of compare::RunComparison, by ["compare"];
    "export": One of export::RunExport, by ["export"];
    "logs": Lines of logs::LogRecord, by ["logs"];
    "stop": One of runs::StopRequested, by ["stop"];
    "rollback": One of runs::RolledBack, by ["rollback"];
    "notify": One of notification::Notification, by ["config notify"],
        "What is sent to a webhook, as it is sent. Exit code 1 if the webhook did not take it.";
    "sql": Array of sql::QueryRow, by ["sql"];
    "init": One of init::NewRunFile, by ["init"];
    "import": One of import::ImportReport, by ["import"],
        "Exit code 3 if `is_refused`, or if nothing was imported or known and something is in `skipped`.";
    "classify": One of trackway_rules::TerminationVerdict, by ["classify"];
    "config": One of settings::EffectiveSettings, by ["config"];
    "schema": Array of schemas::ListedDocument, by ["schema"];
    "schema-of": One of schemas::DocumentSchema, by ["schema DOCUMENT"];
    "gc": One of gc::GcReport, by ["gc"], "Exit code 3 if a run named with `--run` is in `kept`.";
    "tick": One of tick::TickReport, by ["tick"], "Exit code 1 if a duty failed.";
    "doctor": One of doctor::HomeDiagnosis, by ["doctor"], "Exit code 7 unless `healthy`.";
    "ledger-rebuild": One of doctor::RebuiltLedger, by ["doctor rebuild"], "Exit code 7 if something failed.";
    "preflight": One of preflight::PreflightReport, by ["preflight"], "Exit code 3 if `verdict` is `block`.";
    "rehearse": One of rehearsal::RehearsalReport, by ["rehearse"],
        "Exit code 3 if `verdict` is `block` or `not_run`.";
    "cross-validate": One of cross_validation::CrossValidation, by ["eval cross-validate"],
        "Exit code 4 if a fold did not train or was not evaluated.";
    "prove": One of rehearsal::Proof, by ["prove"], "Exit code 7 if `verdict` is `different`, 4 if nothing was proved.";
    "evaluation": One of evaluations::EvaluationReceipt, by ["eval run", "eval show"],
        "Exit code 4 if the evaluator failed, 5 if a gate does not pass.";
    "evaluations": Array of evaluations::ListedEvaluation, by ["eval ls"];
    "evaluations-imported": Array of evaluations::ImportedEvaluation, by ["eval import"];
    "gates-judge": One of gates::GateReceipt, by ["gates judge"], "Exit code 5 unless `verdict` is `pass`.";
    "gates-test": One of gates::GateTests, by ["gates test"], "Exit code 5 if a gate is in `unverified`.";
    "gates-fixture": One of gates::GateFixture, by ["gates fixture"];
    "models": Array of registry::Model, by ["registry ls"];
    "model": One of registry::ModelDetails, by ["registry show"];
    "registry-register": One of registry::Registration, by ["registry register"];
    "registry-change": One of registry::ModelChanged, by ["registry promote", "registry rollback", "registry alias"],
        "Exit code 5 with `refusals`, 7 if `--expect` does not match or the model was changed concurrently.";
    "registry-approve": One of registry::Approved, by ["registry approve"];
    "registry-policy": One of trackway_rules::registry::Policy, by ["registry policy"];
    "registry-history": Array of registry::ModelChangeEntry, by ["registry history"];
    "registry-at": One of registry::ModelAt, by ["registry history --at"];
    "registry-export": One of registry::Deployed, by ["registry export"];
    "registry-card": One of registry::ModelCard, by ["registry card"];
    "checkpoints": One of checkpoints::CheckpointListing, by ["checkpoint ls", "checkpoint verify", "checkpoint clear"],
        "Exit code 6 if nothing was committed, 7 if a checkpoint does not verify.";
    "checkpoint-explain": One of checkpoints::CheckpointExplanation, by ["checkpoint explain"],
        "Exit code 7 if the manifest cannot be read.";
    "checkpoint-resume-target": One of checkpoints::ResumeTarget, by ["checkpoint resume-target"],
        "Exit code 1 if the remote does not answer.";
    "checkpoint-pin": One of checkpoints::CheckpointPin, by ["checkpoint pin", "checkpoint unpin"];
    "checkpoint-gc": One of checkpoints::CheckpointCollection, by ["checkpoint gc"],
        "Exit code 1 if the remote could not be collected.";
    "checkpoint-doctor": One of checkpoints::CheckpointDiagnosis, by ["checkpoint doctor"],
        "Exit code 7 with a finding of severity `error`, 6 if nothing was committed.";
    "checkpoint-now": One of checkpoints::CheckpointRequested, by ["checkpoint now"],
        "Exit code 4 unless `outcome` is `done`.";
    "data-profile": One of data::ProfileAnswer, by ["data profile"],
        "`file` in a place is an index into `files`; `row` is a line from 1, in Parquet files a row.";
    "data-infer": One of data::InferredSchema, by ["data infer"];
    "data-validate": One of data::FindingsAnswer, by ["data validate"],
        "Exit code 3 if a finding blocks or a requested check is in `not_run`.";
    "data-check": One of data::CheckAnswer, by ["data check"], "Exit code 3 if `verdict` is `block`.";
    "data-leakage": One of data::LeakageAnswer, by ["data leakage"], "Exit codes as for `data validate`.";
    "data-images": One of data::ImagesAnswer, by ["data images"], "Exit codes as for `data validate`.";
    "data-drift": One of trackway_results::drift::DriftReport, by ["data drift"],
        "Exit code 3 if `verdict` is `block`; with `--fail-on warn` also if it is `warn`.";
    "data-snapshot": One of data::SnapshotAnswer, by ["data snapshot"];
    "data-snapshot-restore": One of data::SnapshotRestored, by ["data snapshot restore"],
        "Exit code 7 if kept bytes are missing or different.";
    "data-snapshot-verify": One of data::SnapshotVerified, by ["data snapshot verify"],
        "Exit code 7 unless `intact`.";
    "data-snapshot-push": One of data::SnapshotPushed, by ["data snapshot push"];
    "data-snapshot-pull": One of data::SnapshotPulled, by ["data snapshot pull"],
        "Exit code 7 if bytes at the URL are missing or different.";
    "data-snapshot-expire": One of data::SnapshotExpired, by ["data snapshot expire", "data snapshot gc"];
    "data-snapshots": One of data::SnapshotList, by ["data ls"];
    "data-diff": One of data::DiffAnswer, by ["data diff"];
    "data-clean": One of data::CleanAnswer, by ["data clean"],
        "`rows` = `rows_written` + `duplicates_dropped` + `rows_quarantined`, always.";
    "data-as-of": One of data::AsOfAnswer, by ["data as-of"];
    "data-skew": One of trackway_results::join::SkewReport, by ["data skew"],
        "Exit code 3 if a column is `skewed`, or `rows_compared` is 0.";
    "data-split": One of data::SplitAnswer, by ["data split"], "Exit code 3 if `proved` is false.";
    "metrics": One of trackway_results::assessment::Assessment, by ["eval metrics"],
        "A metric that cannot be computed is absent (docs/metrics.md).";
    "slices": One of models::SlicesReport, by ["eval slices"];
    "score": One of models::ScoreReport, by ["eval score"];
    "probe": One of models::ProbeReport, by ["eval probe"];
    "memory": One of models::MemoryAnswer, by ["memory"];
    "memory-devices": Array of trackway_rules::preflight::memory::Device, by ["memory --devices"];
}
