//! A run that failed and was retried, with every part of its explanation and of its post-mortem.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use trackway_api::runs::explain::Explanation;
use trackway_api::runs::postmortem::Postmortem;

use crate::samples;

fn parsed<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("a document of this type")
}

const RUN: &str = "run_01jz0000000000000000000001";
const ATTEMPTS: [&str; 2] = ["att_01jz0000000000000000000002", "att_01jz0000000000000000000003"];
const START: &str = "1970-01-01T00:00:00Z";
const END: &str = "1970-01-01T00:01:30Z";

fn run(text: &str) -> Value {
    json!({ "run_id": RUN, "name": text, "state": "failed", "model_family": text, "owner": text, "team": text,
            "config_sha256": text, "data_sha256": text, "seed": 17, "created_at": START,
            "note": text, "hidden_at": null, "amendments": [] })
}

fn termination(text: &str) -> Value {
    json!({ "reason": "host_oom", "cause": text, "runbook": "docs/termination-reasons.md#host_oom", "rule": text, "confidence": "likely",
            "domain": "workload", "retry_outlook": "retry_changed", "fingerprint": text,
            "evidence": [{ "source": "log", "stream": "stderr", "line_number": 7, "text": text }, { "source": text, "stream": null, "line_number": null, "text": text }],
            "secondary": [{ "reason": "code_error", "rule": text, "text": text, "runbook": "docs/termination-reasons.md#code_error" }] })
}

fn amendment(text: &str) -> Value {
    json!({ "amendment_id": text, "attempt_id": ATTEMPTS[1], "at": END, "author": text, "field": text, "old_text": null, "new_text": text, "why": text })
}

fn diff(text: &str) -> Value {
    let change = json!({ "kind": "setting", "key": text, "before": text, "after": null });
    let edited = json!({ "kind": "script", "key": text, "before": text, "after": text, "lines": { "added": 3, "removed": 1 }, "fits_because": text });
    json!({ "against": text, "label": text, "changes": [change, edited], "unknown": [{ "kind": "code", "why": text }] })
}

/// With a change of each form.
pub fn difference(text: &str) -> trackway_api::runs::explain::Diff {
    parsed(diff(text))
}

fn attempt(number: usize, text: &str) -> Value {
    let from = (number == 2).then_some(20);
    let changes = if number == 2 { diff(text)["changes"].clone() } else { json!([]) };
    json!({ "attempt_id": ATTEMPTS[number - 1], "attempt_number": number, "rung": text, "started_at": START, "ended_at": END,
            "termination_reason": "host_oom", "cause": text, "runbook": "docs/termination-reasons.md#host_oom", "resumed_from_step": from,
            "last_step": 35, "last_committed_step": 20, "lost_steps": 15, "changes": changes, "wall_seconds": 90.0, "rule": text,
            "recovery_seconds": 3.0, "new_committed_steps": 20, "gpu_seconds": 180.0, "gpu_hours_per_committed_step": 0.0025, "cost_usd": 0.1 })
}

fn detection(text: &str) -> Value {
    json!({ "attempt_id": ATTEMPTS[1], "at": END, "detector": "memory_creep", "severity": "critical", "policy": "note", "rank": 1,
            "first_step": 5, "step": 30, "metric": text, "value": 9.0, "threshold": 4.0, "batch_digest": 7, "last_committed_step": 20,
            "evidence": text, "cause": text, "advice": text, "first_batch": 5, "last_batch": 30, "data_epoch": 1, "stacks_path": text,
            "rolled_back": text, "stacks": [text] })
}

fn diagnosis(text: &str) -> Value {
    json!({ "diagnosis_run_id": RUN, "launch_id": ATTEMPTS[0], "attempt_id": ATTEMPTS[1], "run_id": RUN, "kind": "numeric", "why": text,
            "verdict": "found", "finding": text, "from_step": 20, "until_step": 50, "step": 30, "batch": 29, "facts": { "numeric": [] },
            "files": [text], "at": END, "wall_seconds": 4.0, "gpu_seconds": 0.0, "cost_usd": null })
}

fn checkpoint(text: &str) -> Value {
    json!({ "number": 4, "run_id": RUN, "attempt_id": ATTEMPTS[1], "step": 20, "epoch": 1, "object_prefix": text, "folder": text,
            "manifest_sha256": text, "state": "committed", "where": "local", "reason": text, "size_bytes": 2048, "shared_bytes": 0,
            "state_digest": text, "parent": null, "at": START, "age_seconds": 4.0, "verified": null, "why": text, "on_branch": true,
            "uploaded_to": null, "uploaded_at": null, "remote_number": null, "pins": [text], "kept_because": [text] })
}

fn retired(text: &str) -> Value {
    let mut retired = checkpoint(text);
    (retired["state"], retired["step"]) = (json!("retired"), json!(10));
    retired
}

fn event(text: &str) -> Value {
    json!({ "at": START, "attempt_number": 1, "kind": text, "step": 3, "text": text })
}

fn decision(text: &str) -> Value {
    json!({ "after_attempt_number": 1, "decision": "retry", "rule": text, "why": text, "delay_seconds": 30.0, "budget_name": text,
            "budget_spent": 1.0, "budget_limit": 2.0, "changes": { "set": { text: text } } })
}

fn sets(text: &str) -> Value {
    json!([{ "name": text, "data_sha256": text, "file_count": 2, "rows": 100, "size_bytes": 4096 }])
}

fn proof(text: &str) -> Value {
    json!({ "proof_id": "prf_01jz0000000000000000000009", "verdict": "different", "why": text, "at": START, "steps": 100,
            "killed_at_step": 50, "resumed_from_step": 40, "changed_since": [text] })
}

fn fall_back(text: &str) -> Value {
    json!({ "from_step": 30, "to_step": 20, "why": text, "steps": 10, "seconds": 20.0, "gpu_hours": 0.01 })
}

/// With every section.
pub fn explanation(text: &str) -> Explanation {
    let value = json!({ "name": text, "mean": 1.0, "min": 0.5, "max": 2.0, "last": null });
    let mut found: Explanation = parsed(json!({
        "run": run(text),
        "attempt": {
            "attempt_id": ATTEMPTS[1], "attempt_number": 2, "rung": text, "parent_attempt_id": ATTEMPTS[0], "state": "sealed",
            "command": [text], "working_directory": text, "git_commit": text, "git_dirty": true, "environment_lock_sha256": text,
            "environment_lock_source": text, "container_digest": text, "started_at": START, "ended_at": END, "resumed_from_step": 20,
            "resumed_from_manifest_sha256": text, "last_step": 35, "last_committed_step": 20, "exit_code": null, "signal": 9, "folder": text,
            "inputs": { "seed": 17, "seed_seen": 18, "rung_rows": 10, "rung_rows_total": 100, "skip_batches": text, "skipped_batch_count": 3,
                        "warm_start_run_id": null, "warm_start_rung": text, "warm_start_step": 9, "warm_start_manifest_sha256": text },
            "evaluators": [{ "name": text, "digest": text, "why": null }], "amendments": [amendment(text)],
        },
        "attempts": [attempt(1, text), attempt(2, text)],
        "rungs": [{ "run_id": RUN, "rung": text, "fraction": 0.1, "place": 1, "verdict": "promoted", "attempt_count": 2, "last_attempt_id": ATTEMPTS[1],
                    "last_step": 35, "wall_seconds": 90.0, "gpu_seconds": 90.0, "cost_usd": 0.5, "warm_start_step": null, "rule": text, "why": text,
                    "values_json": null, "metrics_json": null, "rows": 10, "rows_total": 100 }],
        "since_last_good": diff(text), "parent_diff": diff(text), "data": { "sets": sets(text) },
        "preflight": [{ "name": text, "verdict": "warn", "blocks": true, "seconds": 1.0, "why": text, "skipped_why": text, "findings": [] },
                      { "name": text, "verdict": "pass", "blocks": false, "seconds": 1.0, "why": null, "skipped_why": null, "findings": [] }],
        "detections": [detection(text)], "diagnoses": [diagnosis(text)],
        "placement": { "launcher": text, "job_id": text, "hosts": text, "devices": text, "queue": text, "cpu_count": 4, "memory_bytes": 1024 },
        "timeline": [event(text)], "termination": termination(text), "checkpoints": [checkpoint(text), retired(text)],
        "no_checkpoint_why": null, "remote": null,
        "save_requests": { "asked": 60, "is_complete": true, "from_step": 1, "cadence": text, "not_due": 57, "no_time": 0, "busy": 1 },
        "fall_back": fall_back(text), "resume_step": 20, "resume_proof": proof(text), "cadence": null,
        "retries": [decision(text)], "evaluations": [], "versions": [],
        "metrics": [{ "name": text, "count": 3, "first": 1.0, "last": null, "min": 0.5, "max": 2.0, "non_finite_count": 1 }],
        "curves": [{ "name": text, "steps_per_point": 1, "series": [[[0, 4.0], [10, 2.0], [20, null], [30, 0.5]]] },
                   { "name": format!("system/{text}"), "steps_per_point": 1, "series": [[[0, 1.0], [30, 2.0]]] }],
        "progressive": null,
        "machine": { "sample_count": 9, "values": [value], "work": { "loop_seconds": 9.0, "work_fraction": 0.7, "batch_wait_fraction": 0.2, "checkpoint_stall_fraction": 0.1 } },
        "parameters": [{ "name": text, "value": text }], "tags": [{ "name": text, "value": text }], "artifacts": [],
        "same_inputs": [{ "run_id": RUN, "state": "completed", "differing_metrics": [[text, 1.0, 2.0]], "compared_count": 2, "other_inputs": ["script"] }],
        "cost": { "wall_seconds": 90.0, "gpu_seconds": 180.0, "cpu_seconds": 80.0, "cost_usd": 0.1, "run_cost_usd": 0.2, "run_gpu_seconds": 360.0,
                  "run_wall_seconds": 180.0, "beside": { "runs": 2, "wall_seconds": 30.0, "gpu_seconds": 0.0, "cost_usd": null }, "lost_steps": 15 },
        "last_lines": [text], "next_actions": [text],
        "reading": [{ "kind": "drawn_over", "message": text, "count": 2, "file": text, "row": null, "column": null }],
    }));
    found.evaluations.push(samples::evaluation(text));
    found
}

fn spent(factor: f64) -> Value {
    json!({ "wall_hours": 0.05 * factor, "gpu_hours": 0.1 * factor, "usd": 0.2 * factor })
}

/// With every section.
pub fn postmortem(text: &str) -> Postmortem {
    let version = |value: Option<&str>, number: u32| json!({ "value": value, "attempts": [number] });
    parsed(json!({
        "run": run(text), "made_at": END, "summary": [text],
        "impact": { "attempt_count": 2, "failed_count": 2, "lost_steps": 30, "lost_unknown_count": 1, "unrecovered_count": 1, "recovery_seconds": 3.0, "run": spent(1.0), "failed": spent(1.0),
                    "lost": { "wall_hours": 0.02, "gpu_hours": 0.04, "usd": null } },
        "timeline": [event(text)], "blocked_by": [text],
        "failures": [{ "attempt_id": ATTEMPTS[1], "attempt_number": 2, "rung": text, "started_at": START, "ended_at": END, "hosts": text,
                       "exit_code": null, "signal": 9, "last_step": 35, "last_committed_step": 20, "lost_steps": 15, "next_attempt_number": null,
                       "recovery_seconds": null, "peak_rss_bytes": 1048576, "host_memory_bytes": null, "spent": spent(0.5),
                       "termination": termination(text), "amendments": [amendment(text)], "detections": [detection(text)],
                       "diagnoses": [diagnosis(text)] }],
        "tried": [decision(text)],
        "inputs": { "sets": sets(text),
                    "inputs": [{ "what": "data", "changed": true, "versions": [version(Some(text), 1), version(None, 2)] },
                               { "what": "seed", "changed": null, "versions": [{ "value": null, "attempts": [1, 2] }] },
                               { "what": "hosts", "changed": false, "versions": [{ "value": text, "attempts": [1, 2] }] }],
                    "since_last_good": diff(text) },
        "integrity": {
            "verified": { "run_id": RUN, "holds": false, "seconds": 0.1,
                          "kinds": [{ "kind": "receipt", "hold_count": 1, "differ_count": 1, "open_count": 0, "unknown_count": 0 }],
                          "differs": [{ "kind": "receipt", "run_id": RUN, "id": text, "why": text }], "not_covered": [text] },
            "checkpoints": [checkpoint(text)], "deleted_count": 1, "no_checkpoint_why": null, "fall_back": fall_back(text), "resume_step": 20,
            "resume_proof": proof(text),
        },
        "actions": [{ "text": text, "reason": "host_oom", "runbook": "docs/termination-reasons.md#host_oom" }, { "text": text, "reason": null, "runbook": null }],
    }))
}
