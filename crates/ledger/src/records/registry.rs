use serde_json::Value as Json;
use trackway_core::registry::{GateVerdict, ModelChange, ModelStage};
use trackway_core::{AttemptId, RunId, Step, Timestamp};

use crate::value::record;

record!(
    /// A model as it stands now. Worked out from `model_changes`, and written together with the newest of them.
    ModelRow, "models", key ["model"], {
        /// Its name.
        model: String,
        /// When its first version was registered.
        created_at: Timestamp,
        /// The number of its newest change; whoever changes it must have seen this one.
        change_number: u64,
        /// How many versions it has.
        version_count: u32,
        /// The version in production.
        production_version: Option<u32>,
        /// Since when.
        production_since: Option<Timestamp>,
        /// The stage of each version, by its number.
        stages_json: Json,
        /// The version that each alias points to.
        aliases_json: Json,
        /// What a promotion to production asks for beside evaluation and gates.
        policy_json: Json,
    }
);

record!(
    /// A version of a model: exactly these weights, and where they came from. Never changes.
    ModelVersionRow, "model_versions", key ["model", "version"], {
        /// The model.
        model: String,
        /// Its number, from 1.
        version: u32,
        /// The run that trained it.
        run_id: RunId,
        /// The attempt that wrote the checkpoint.
        attempt_id: Option<AttemptId>,
        /// The stage of the data it was trained on.
        stage: String,
        /// The step of the checkpoint.
        step: Option<Step>,
        /// Where the checkpoint is in the run's checkpoints.
        object_prefix: String,
        /// SHA-256 of the checkpoint's manifest, which names every file with its hash.
        checkpoint_manifest_sha256: String,
        /// Bytes of its files.
        size_bytes: u64,
        /// SHA-256 of everything this row says of its making.
        lineage_sha256: String,
        /// The run's config.
        config_sha256: String,
        /// The commit of the code.
        code_commit: Option<String>,
        /// The packages and the interpreter.
        environment_sha256: Option<String>,
        /// The container.
        container_digest: Option<String>,
        /// The content hash of each data set, by name.
        data_json: Json,
        /// What the model takes and gives: `inputs` and `outputs`.
        signature_json: Option<Json>,
        /// What a person says of it.
        description: Option<String>,
        /// When it was registered.
        registered_at: Timestamp,
        /// Who did; null: the login is not known.
        registered_by: Option<String>,
    }
);

record!(
    /// One change of a model, append-only. Where the model stands, or stood at any moment, follows from these rows alone.
    ModelChangeRow, "model_changes", key ["model", "number"], {
        /// The model.
        model: String,
        /// Its place in the history of the model, from 1, without gaps.
        number: u64,
        /// When.
        at: Timestamp,
        /// register, promote, roll_back, set_alias, drop_alias or policy.
        kind: ModelChange,
        /// The version it is about.
        version: Option<u32>,
        /// The stage it came to.
        stage: Option<ModelStage>,
        /// The alias that was set or dropped.
        alias: Option<String>,
        /// The version that was there before: in production, or behind the alias.
        was_version: Option<u32>,
        /// The gates that allowed it.
        gate_receipt_id: Option<String>,
        /// The ids of the approvals that allowed it.
        approvals_json: Option<Json>,
        /// The policy from here on.
        policy_json: Option<Json>,
        /// Who did it; null: the login is not known.
        person: Option<String>,
        /// Why, in that person's words.
        why: Option<String>,
    }
);

record!(
    /// What gates said of an evaluation. Append-only; its id is the digest of what they said and of what they were told.
    GateReceiptRow, "gate_receipts", key ["gate_receipt_id"], {
        /// SHA-256 of evaluation, weights, baseline, rules, verdicts and evidence.
        gate_receipt_id: String,
        /// The evaluation they were judged by.
        evaluation_id: String,
        /// The run whose checkpoint it judged.
        run_id: RunId,
        /// SHA-256 of the checkpoint's manifest.
        checkpoint_manifest_sha256: String,
        /// The evaluation of the baseline; null: there was none to compare with, or no gate compares.
        baseline_evaluation_id: Option<String>,
        /// SHA-256 of the manifest of the weights it judged.
        baseline_manifest_sha256: Option<String>,
        /// Whether any gate compares with a baseline.
        compares: bool,
        /// The worst of the gates.
        verdict: GateVerdict,
        /// Each gate with its verdict, interval and reason.
        gates_json: Json,
        /// The numbers they were judged by.
        evidence_json: Json,
        /// When.
        judged_at: Timestamp,
        /// Who asked; null: the login is not known.
        person: Option<String>,
    }
);

record!(
    /// What a gate said of a model that is known to be bad. Append-only; a gate that never said `fail` of one allows no promotion.
    GateTestRow, "gate_tests", key ["gate_test_id"], {
        /// Made of rule, fixture and time.
        gate_test_id: String,
        /// The gate.
        rule: String,
        /// The name of the bad model's evidence.
        fixture: String,
        /// SHA-256 of that evidence.
        fixture_sha256: String,
        /// What the gate said.
        verdict: GateVerdict,
        /// Why.
        why: String,
        /// When.
        at: Timestamp,
    }
);

record!(
    /// Somebody's approval of a version with the evidence it had then. Append-only.
    ApprovalRow, "approvals", key ["approval_id"], {
        /// Made of model, version, digest, approver and time.
        approval_id: String,
        /// The model.
        model: String,
        /// The version.
        version: u32,
        /// SHA-256 of model, version, weights and gate receipt: of other evidence it is no approval.
        digest: String,
        /// The gate receipt that was approved.
        gate_receipt_id: String,
        /// Who.
        approver: String,
        /// When.
        at: Timestamp,
        /// When it ends.
        expires_at: Timestamp,
        /// Why, in that person's words.
        why: Option<String>,
    }
);
