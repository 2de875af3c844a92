use serde_json::Value as Json;
use trackway_core::registry::{GateVerdict, ModelChange, ModelStage};
use trackway_core::{AttemptId, RunId, Step, Timestamp};

use crate::value::record;

record!(
    /// The current state of a model. Derived from `model_changes`, and written together with the newest of them.
    ModelRow, "models", key ["model"], {
        /// Its name.
        model: String,
        /// When its first version was registered.
        created_at: Timestamp,
        /// The number of its newest change; a writer must have seen this one.
        change_number: u64,
        /// Number of versions.
        version_count: u32,
        /// The version in production.
        production_version: Option<u32>,
        /// Since when.
        production_since: Option<Timestamp>,
        /// The stage of each version, by its number.
        stages_json: Json,
        /// The version that each alias points to.
        aliases_json: Json,
        /// What a promotion to production required besides evaluation and gates at its newest change.
        policy_json: Json,
        /// The project it belongs to: that of the run of its first version; null: not known.
        project: Option<String>,
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
        /// The part of the data it was trained on, such as `100%`.
        rung: String,
        /// The step of the checkpoint.
        step: Option<Step>,
        /// Where the checkpoint is in the run's checkpoints.
        object_prefix: String,
        /// SHA-256 of the checkpoint's manifest, which names every file with its hash.
        checkpoint_manifest_sha256: String,
        /// Bytes of its files.
        size_bytes: u64,
        /// SHA-256 of the lineage in this row.
        lineage_sha256: String,
        /// The run's config.
        config_sha256: String,
        /// The commit of the code.
        code_commit: Option<String>,
        /// SHA-256 of the environment's packages or lock file.
        environment_sha256: Option<String>,
        /// The container image's digest.
        container_digest: Option<String>,
        /// The content hash of each data set, by name.
        data_json: Json,
        /// The signature of the model: `inputs` and `outputs`.
        signature_json: Option<Json>,
        /// A description by a person.
        description: Option<String>,
        /// When it was registered.
        registered_at: Timestamp,
        /// The person that registered it; null: the login is unknown.
        registered_by: Option<String>,
        /// The lowest version with the same weights, for a duplicate registered by an older Trackway; null: none.
        duplicate_of: Option<u32>,
    }
);

record!(
    /// One change of a model. Append-only; the state of the model at any time follows from these rows alone.
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
        /// The stage it moved to.
        stage: Option<ModelStage>,
        /// The alias that was set or dropped.
        alias: Option<String>,
        /// The previous version: in production, or of the alias.
        was_version: Option<u32>,
        /// The gates that allowed it.
        gate_receipt_id: Option<String>,
        /// The ids of the approvals that allowed it.
        approvals_json: Option<Json>,
        /// The new policy.
        policy_json: Option<Json>,
        /// The person that did it; null: the login is unknown.
        person: Option<String>,
        /// The reason given by that person.
        why: Option<String>,
    }
);

record!(
    /// The verdict of gates on an evaluation. Append-only; its id is the digest of the verdicts and of their inputs.
    GateReceiptRow, "gate_receipts", key ["gate_receipt_id"], {
        /// SHA-256 of evaluation, weights, baseline, rules, verdicts and evidence.
        gate_receipt_id: String,
        /// The evaluation they were applied to.
        evaluation_id: String,
        /// The run whose checkpoint it evaluated.
        run_id: RunId,
        /// SHA-256 of the checkpoint's manifest.
        checkpoint_manifest_sha256: String,
        /// The evaluation of the baseline; null: there was none, or no gate compares with one.
        baseline_evaluation_id: Option<String>,
        /// SHA-256 of the manifest of the weights it evaluated.
        baseline_manifest_sha256: Option<String>,
        /// Whether any gate compares with a baseline.
        compares: bool,
        /// The worst verdict of the gates.
        verdict: GateVerdict,
        /// Each gate with its verdict, interval and reason.
        gates_json: Json,
        /// The values they were applied to.
        evidence_json: Json,
        /// When.
        judged_at: Timestamp,
        /// The person that requested it; null: the login is unknown.
        person: Option<String>,
    }
);

record!(
    /// The verdict of a gate on a known-bad model. Append-only; a gate that never gave `fail` to one allows no
    /// promotion.
    GateTestRow, "gate_tests", key ["gate_test_id"], {
        /// Derived from rule, fixture and time.
        gate_test_id: String,
        /// The gate.
        rule: String,
        /// The name of the bad model's evidence.
        fixture: String,
        /// SHA-256 of that evidence.
        fixture_sha256: String,
        /// The verdict of the gate.
        verdict: GateVerdict,
        /// Why.
        why: String,
        /// When.
        at: Timestamp,
    }
);

record!(
    /// The approval of a version with the evidence it had at that time. Append-only.
    ApprovalRow, "approvals", key ["approval_id"], {
        /// Derived from model, version, digest, approver and time.
        approval_id: String,
        /// The model.
        model: String,
        /// The version.
        version: u32,
        /// SHA-256 of model, version, weights and gate receipt: other evidence needs another approval.
        digest: String,
        /// The gate receipt that was approved.
        gate_receipt_id: String,
        /// The approver.
        approver: String,
        /// When.
        at: Timestamp,
        /// When it ends.
        expires_at: Timestamp,
        /// The reason given by that person.
        why: Option<String>,
    }
);
