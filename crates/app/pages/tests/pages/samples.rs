//! Small answers whose every text is the same, so that each page can be made of harmless and of hostile texts.

use serde_json::{Value, json};
use trackway_api::models::ProbeReport;
use trackway_api::models::evaluations::{
    CodeFile, EvaluationReceipt, EvaluationState, Evaluator, EvaluatorLaunch, Judge, RawOutputs, TaskSet,
    TestSetResult,
};
use trackway_api::runs::RunState;
use trackway_api::runs::compare::{
    ComparedCurve, ComparedMetric, ComparedNumber, ComparedRun, ComparedValue, CurveSummary, RunComparison,
};
use trackway_api::runs::preflight::{ColumnChart, PreflightReport, Quote, Scale, Series, SetQuote, Skipped};
use trackway_core::checks::{CheckResult, Example, Finding, NoRows, Severity, Verdict};
use trackway_core::registry::GateVerdict;
use trackway_core::{TerminationReason, Timestamp};
use trackway_evaluate::debug::{
    Curve, Dependence, GradientCheck, Importance, Perturbation, PerturbationKind, ProbeAnswer, Sensitivity,
    Slope, SmallStep,
};
use trackway_evaluate::{Assessment, Estimate};
use trackway_rules::preflight::cost::CostPlan;
use trackway_rules::preflight::imbalance::imbalance;

use crate::run_samples;
use trackway_pages::{About, Page};

/// Made at the epoch, without masking.
pub fn about() -> About {
    About { made_at: Timestamp::from_micros(0), version: "0.0.0".into(), masks: false }
}

/// Every page, in its fullest state.
pub fn pages(text: &str) -> [(&'static str, Page); 7] {
    let about = about();
    [
        ("metrics", trackway_pages::metrics(text, &assessment(text), &about)),
        ("probe", trackway_pages::probe(text, &probe(text), &about)),
        ("preflight", trackway_pages::preflight(&preflight(text), &about)),
        ("comparison", trackway_pages::comparison(&comparison(text), &about)),
        ("evaluation", trackway_pages::evaluation(&evaluation(text), &about)),
        ("explanation", trackway_pages::explanation(&run_samples::explanation(text), &about)),
        ("postmortem", trackway_pages::postmortem(&run_samples::postmortem(text), &about)),
    ]
}

fn estimate_json(value: f64, support: u64) -> Value {
    let (low, high) = (value - 0.1, value + 0.1);
    json!({ "value": value, "low": low, "high": high, "support": support, "method": "bootstrap",
            "coverage": { "rows_used": support, "rows_expected": 100 } })
}

fn parsed<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("a document of this type")
}

fn estimate(value: f64) -> Estimate {
    serde_json::from_value(estimate_json(value, 100)).expect("an estimate")
}

/// With every section.
pub fn assessment(text: &str) -> Assessment {
    let metrics = json!({ "accuracy": estimate_json(0.8, 100), "latency": estimate_json(12.5, 90) });
    let compared = json!({ "baseline": 0.7, "candidate": 0.8, "difference": estimate_json(0.1, 100), "verdict": "inconclusive",
                           "margin": 0.01, "settles_at": 900 });
    let slice = json!({ "name": text, "predicate": text, "support": 30, "verdict": "worse", "why": text, "metrics": metrics,
                        "difference": estimate_json(-0.2, 30), "adjusted_p_value": 0.00001 });
    let bin = |values: Option<&str>| json!({ "values": values, "mean": estimate_json(0.2, 50), "low": -0.4, "high": 0.6 });
    let depends = json!({ "explained": 0.25, "adjusted_p_value": 0.002 });
    let curve = json!({ "feature": text, "bins": [bin(Some(text)), bin(None)], "mean_depends": depends, "spread_depends": depends });
    let group = json!({ "name": text, "support": 3, "inconclusive": true, "why": text, "metrics": metrics });
    let point = |x: f64, y: f64| json!({ "x": x, "y": y });
    let found = json!({ "predicate": { text: text, "age": null }, "size": 40, "average_error": 0.6, "score": 1.5,
                        "held_out": { "size": 38, "average_error": estimate_json(0.5, 38) }, "p_value": 0.0001,
                        "adjusted_p_value": 0.001, "verdict": "confirmed" });
    let roc = [point(0.0, 0.0), point(0.2, 0.7), point(1.0, 1.0)];
    serde_json::from_value(json!({
        "task": "classification", "columns": {}, "rows": 100, "rows_seen": 100, "rows_skipped": 0, "groups": 7,
        "inconclusive": { text: text }, "confidence": 0.95, "resamples": 100, "seed": 1, "main_metric": "accuracy",
        "metrics": metrics,
        "classes": [{ "name": text, "support": 60, "metrics": { "precision": estimate_json(0.7, 60) } }],
        "confusion": { "classes": [text, "no"], "counts": [[50, 10], [10, 30]] },
        "curves": {
            "calibration": [{ "from": 0.0, "to": 0.5, "predicted": 0.3, "observed": estimate_json(0.4, 40) }],
            "roc": roc, "precision_recall": roc,
        },
        "residuals": { "of": "value", "rows": 100, "mean": estimate_json(0.0, 100), "by_prediction": curve,
                       "by_feature": [curve], "points": [point(1.0, -0.5), point(2.0, 0.5)], "features": 1 },
        "blind_spots": { "loss": "zero_one", "error": estimate_json(0.2, 100), "min_support": 32, "max_level": 3,
                         "searched": { "rows": 50, "average_error": 0.2 },
                         "held_out": { "rows": 50, "average_error": 0.2 }, "is_complete": true, "slices": [found] },
        "slices": [slice],
        "fairness": [{ "column": text, "measures": metrics, "groups": [group], "rows_without_group": 1 }],
        "comparison": {
            "pairing": { "id": text, "pairs": 90, "only_baseline": 1, "only_candidate": 2, "repeated_ids": 3, "different_labels": 4 },
            "metrics": { "accuracy": compared },
            "mcnemar": { "only_baseline_right": 4, "only_candidate_right": 9, "p_value": 0.1, "exact": true },
            "slices": [{ "name": text, "support": 30, "compared": compared, "adjusted_p_value": 0.5 }],
        },
        "notes": [text],
    }))
    .expect("an assessment")
}

/// With every section.
pub fn probe(text: &str) -> ProbeReport {
    let name = || text.to_owned();
    let curve = |class: Option<String>| Curve {
        class,
        mean: vec![0.2, 0.6],
        low: vec![0.1, 0.4],
        high: vec![0.3, 0.8],
        rows: vec![vec![0.0, 0.9]],
    };
    let dependence = |values: [&str; 2], class: Option<String>| Dependence {
        feature: name(),
        values: values.map(str::to_owned).to_vec(),
        curves: vec![curve(class)],
    };
    let perturbation = |refused: Option<String>| Perturbation {
        feature: name(),
        kind: PerturbationKind::TimesTen,
        flipped: refused.is_none().then(|| estimate(0.3)),
        shift: None,
        increase: Some(estimate(0.2)),
        refused,
    };
    let step = SmallStep {
        deviations: 0.1,
        flipped: Some(estimate(0.2)),
        flipped_at_random: None,
        shift: 0.01,
        shift_at_random: 0.002,
        increase: None,
    };
    let found = ProbeAnswer {
        rows: 100,
        error: Some(estimate(0.4)),
        residuals: assessment(text).residuals,
        importance: vec![Importance { feature: name(), increase: estimate(0.05), repeats: vec![0.05] }],
        dependence: vec![dependence(["1", "2.5"], None), dependence([text, "b"], Some(name()))],
        perturbations: vec![perturbation(None), perturbation(Some(name()))],
        sensitivity: Some(Sensitivity {
            slopes: vec![Slope { feature: name(), per_deviation: estimate(0.3) }],
            steps: vec![step],
            check: GradientCheck { rows: 10, relative_error: 0.5, features: vec![name()] },
        }),
        scored_rows: 1,
        ..ProbeAnswer::default()
    };
    ProbeReport { found, rows_read: 200, seconds: 1.0 }
}

/// With every section.
pub fn preflight(text: &str) -> PreflightReport {
    let name = || text.to_owned();
    let example = Example { file: Some(name()), row: Some(3), value: Some(name()) };
    let finding = Finding {
        examples: vec![example],
        ..Finding::new("data.nulls", Severity::Block, name()).action(name())
    };
    let series = |set: &str, shares: &[f64]| Series {
        set: set.to_owned(),
        missing_share: 0.25,
        distinct: 40,
        shares: shares.to_vec(),
    };
    let chart = |scale: Scale, shares: &[f64]| ColumnChart {
        name: name(),
        is_label: true,
        scale,
        series: vec![series(text, shares), series("test", shares)],
    };
    let cost = CostPlan {
        gpus: 2.0,
        usd_per_gpu_hour: 3.0,
        hours: 4.0,
        stored_gb: 10.0,
        usd_per_stored_gb: 0.1,
        moved_gb: 0.0,
        usd_per_moved_gb: 0.0,
    };
    PreflightReport {
        rehearsals: Vec::new(),
        name: name(),
        verdict: Verdict::Block,
        stopped: false,
        checks: vec![
            CheckResult::of_rows("data.nulls", 100, vec![finding]),
            CheckResult::about("config.seed", NoRows::Settings, vec![]),
        ],
        skipped: vec![Skipped { check: "data.drift".into(), why: name() }],
        required: vec![],
        quote: Quote {
            bytes: 2048,
            seconds: 0.1,
            sets: vec![SetQuote { name: name(), file_count: 1, size_bytes: 2048 }],
        },
        seconds: 0.5,
        cost: Some(cost.estimate()),
        drift: Vec::new(),
        imbalance: imbalance(&[(name(), 900), ("rare".into(), 10)]),
        memory: Some(super::memory_report()),
        charts: vec![
            chart(Scale::Range(0.0, 40.0), &[0.1, 0.6, 0.3]),
            chart(Scale::Values(vec![name(), "b".into()]), &[0.5, 0.3, 0.2]),
            chart(Scale::Texts, &[]),
        ],
    }
}

/// Five runs of the same name: a dash for the one whose colour repeats, a gap where a value is not finite.
pub fn comparison(text: &str) -> RunComparison {
    let name = || text.to_owned();
    let run = |number: u8| ComparedRun {
        run_id: format!("run_01jz0000000000000000000{number:03}").parse().expect("an id"),
        name: name(),
        rung: "100%".into(),
        state: RunState::Completed,
        termination_reason: Some(TerminationReason::Completed),
        attempt_count: 2,
        created_at: Timestamp::from_micros(0),
        wall_seconds: 90.0,
        running_seconds: None,
        gpu_seconds: 0.0,
        cost_usd: Some(1.5),
    };
    let figures = CurveSummary {
        point_count: 3,
        last_step: 3,
        last: None,
        min: Some(0.5),
        min_step: Some(1),
        max: Some(400.0),
        max_step: Some(0),
    };
    let row = |differs: bool| ComparedValue {
        name: name(),
        differs,
        values: vec![Some(name()), None, None, None, Some(name())],
    };
    let line =
        |factor: f64| vec![(0, Some(400.0 * factor)), (1, Some(2.0)), (2, None), (3, Some(0.5 * factor))];
    RunComparison {
        changes: vec![crate::run_samples::difference(text)],
        runs: (0..5).map(run).collect(),
        parameters: vec![row(true), row(false)],
        config: vec![row(true)],
        data: vec![row(true)],
        environment: vec![row(false)],
        metrics: vec![ComparedMetric { name: name(), values: vec![Some(figures), None, None, None, None] }],
        evaluations: vec![ComparedNumber { name: name(), values: vec![Some(0.5), None, None, None, None] }],
        curves: vec![ComparedCurve {
            name: name(),
            steps_per_point: 1,
            series: (1..=5).map(|factor| line(f64::from(factor))).collect(),
        }],
    }
}

/// Completed, with an assessment and a gate that fails.
pub fn evaluation(text: &str) -> EvaluationReceipt {
    let name = || text.to_owned();
    let assessed = assessment(text);
    let assessment = parsed(serde_json::to_value(&assessed).expect("JSON"));
    EvaluationReceipt {
        evaluation_id: name(),
        state: EvaluationState::Completed,
        failure: Some(name()),
        run_id: "run_01jz0000000000000000000001".parse().expect("an id"),
        name: name(),
        attempt_id: None,
        step: Some(30),
        checkpoint_manifest_sha256: "ab".repeat(32),
        origin: "trackway".into(),
        evaluator: Evaluator {
            name: name(),
            digest: Some(name()),
            files: vec![CodeFile { path: name(), sha256: name(), size_bytes: 1 }],
            command: Some(vec![name()]),
            environment_lock_sha256: Some(name()),
            container_digest: Some(name()),
        },
        test_set: Some(name()),
        task_set: Some(TaskSet {
            path: Some(name()),
            version: Some(name()),
            sha256: Some(name()),
            use_count: 3,
            checkpoint_count: 2,
            worn: Some(text.to_owned()),
        }),
        decoding: json!({ text: text }).as_object().cloned(),
        judge: Some(Judge { model: Some(name()), rubric: Some(name()) }),
        seed: Some(7),
        raw_outputs: Some(RawOutputs { path: name(), sha256: Some(name()), rows: Some(100) }),
        sampled_failures: parsed(json!({ "kind": "wrong", "wrong": 20, "rows": 100, "seed": 0,
                                  "sample": [{ "row": 4, "cells": { text: text, "n": 3, "none": null } }] })),
        metrics: assessed.metrics,
        slices: assessed.slices,
        fairness: assessed.fairness,
        comparison: assessed.comparison,
        baseline_evaluation_id: Some(name()),
        assessment,
        tasks_unmatched: None,
        probes: Some(probe(text).found),
        test_sets: vec![TestSetResult {
            name: name(),
            evaluation_id: Some(name()),
            state: Some(EvaluationState::Completed),
            rows: Some(40),
            main_metric: Some("accuracy".into()),
            metrics: parsed(json!({})),
            verdict: Some(GateVerdict::Pass),
        }],
        gates: parsed(json!([{ "verdict": "fail", "rule": text, "comparisons": [], "why": text }])),
        launches: vec![EvaluatorLaunch {
            attempt_id: "att_01jz0000000000000000000002".parse().expect("an id"),
            termination_reason: Some(TerminationReason::Completed),
            exit_code: Some(0),
            signal: None,
            wall_seconds: Some(3.0),
        }],
        notes: vec![name()],
        started_at: Timestamp::from_micros(0),
        ended_at: Some(Timestamp::from_micros(90_000_000)),
        receipt_sha256: Some(name()),
    }
}
