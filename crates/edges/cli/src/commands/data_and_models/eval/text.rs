//! A receipt as text: the most important first.

use trackway_api::models::evaluations::{
    Compared, Estimate, EvaluationReceipt, FailureKind, Failures, Metrics, ProbeAnswer, TestSetResult,
};
use trackway_core::TerminationReason;
use trackway_ledger::EvaluationState;
use trackway_rules::gate::JudgedGate;

use crate::commands::checks::gate_tone;
use crate::commands::data_and_models::eval::metrics::text::blind_spots;
use crate::commands::sections::{listed, section};
use crate::printer::{Printer, Tone, cut, row};
use crate::units::{between, counted, metric, short_hash};

/// Failures that are shown; `--json` has all of the sample.
const SHOWN_FAILURES_MAX: usize = 5;
/// Probes of each kind that are shown.
const SHOWN_PROBES_MAX: usize = 5;
/// Characters of a failure's cells.
const FAILURE_CHARS_MAX: usize = 160;

/// One receipt for a person.
pub fn print(printer: Printer, receipt: &EvaluationReceipt) {
    let tone = match receipt.state {
        EvaluationState::Completed => Tone::Good,
        EvaluationState::Running => Tone::Warning,
        EvaluationState::Failed => Tone::Bad,
    };
    let state = printer.tone(tone, receipt.state.as_str());
    printer.line(printer.tone(Tone::Bold, &receipt.evaluation_id) + " " + state);
    if let Some(failure) = &receipt.failure {
        printer.line(format!("  {}", failure));
    }
    identity(printer, receipt);
    estimates(printer, "Metrics", vec![(String::new(), &receipt.metrics)]);
    let slices = receipt.slices.iter();
    let named = slices.map(|slice| {
        (format!("{} ({})", slice.label(), slice.verdict.as_str().replace('_', " ")), &slice.metrics)
    });
    estimates(printer, "Slices", named.collect());
    if let Some(found) = receipt.assessment.as_ref().and_then(|it| it.blind_spots.as_ref()) {
        section(printer, "Blind spots");
        blind_spots(printer, found);
    }
    receipt.probes.iter().for_each(|found| probes(printer, found));
    let fairness = receipt.fairness.iter().map(|one| (one.column.clone(), &one.measures));
    estimates(printer, "Fairness", fairness.collect());
    comparison(printer, receipt);
    listed(printer, "Gates", &receipt.gates, gates);
    listed(printer, "Further test sets", &receipt.test_sets, test_sets);
    receipt.sampled_failures.iter().for_each(|sample| failures(printer, sample));
    listed(printer, "Notes", &receipt.notes, |printer, notes| {
        notes.iter().for_each(|note| printer.line(format!("  - {note}")));
    });
}

fn gates(printer: Printer, gates: &[JudgedGate]) {
    let row = |gate: &JudgedGate| {
        let verdict = printer.tone(gate_tone(gate.verdict), gate.verdict.as_str());
        row![format!("  {}", gate.rule), verdict, &gate.why]
    };
    printer.table(&["  gate", "verdict", "why"], gates.iter().map(row).collect());
}

fn fact(printer: Printer, name: &str, text: &str) {
    printer.line(format!("  {name:<12} {}", text));
}

/// What is bound to what.
fn identity(printer: Printer, receipt: &EvaluationReceipt) {
    let step = receipt.step.map(|step| format!("step {step} of ")).unwrap_or_default();
    fact(printer, "weights", &format!("{step}`{}` ({})", receipt.name, receipt.run_id));
    fact(printer, "manifest", &receipt.checkpoint_manifest_sha256);
    let digest = receipt.evaluator.digest.as_deref().map(|digest| format!(", sha256:{}", short_hash(digest)));
    let tool = match receipt.origin.as_str() {
        "trackway" => String::new(),
        _ if receipt.is_gate_test() => ", of a known-bad model for a gate test".to_owned(),
        tool => format!(", from {tool}"),
    };
    fact(printer, "evaluator", &format!("{}{}{tool}", receipt.evaluator.name, digest.unwrap_or_default()));
    if let Some(name) = &receipt.test_set {
        fact(printer, "test set", name);
    }
    if let Some(set) = &receipt.task_set {
        let path = set.path.as_deref().unwrap_or("tasks");
        let version = set.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let hash = set.sha256.as_deref().map(short_hash).unwrap_or("–");
        let used = match set.use_count {
            0 => String::new(),
            1 => ", used for the first time".into(),
            count => format!(", used {count} times, for {}", counted(set.checkpoint_count, "checkpoint")),
        };
        fact(printer, "tasks", &format!("{path}{version}, sha256:{hash}{used}"));
        if let Some(worn) = &set.worn {
            printer.point(Tone::Warning, worn);
        }
    }
    if let Some(decoding) = &receipt.decoding {
        fact(printer, "decoding", &serde_json::json!(decoding).to_string());
    }
    if let Some(judge) = &receipt.judge {
        let rubric = judge.rubric.as_deref().map(|rubric| format!(", rubric {rubric}")).unwrap_or_default();
        fact(printer, "judge", &format!("{}{rubric}", judge.model.as_deref().unwrap_or("–")));
    }
    if let Some(raw) = &receipt.raw_outputs {
        let rows = raw.rows.map(|rows| format!("{} in ", counted(rows, "row"))).unwrap_or_default();
        fact(printer, "outputs", &format!("{rows}{}", raw.path));
    }
    if receipt.launches.len() > 1 {
        let ends = receipt.launches.iter().filter_map(|launch| launch.termination_reason);
        let ends: Vec<&str> = ends.map(TerminationReason::as_str).collect();
        fact(printer, "launches", &ends.join(", then "));
    }
}

/// Tables of numbers with their intervals, one line each.
fn estimates(printer: Printer, title: &str, of: Vec<(String, &Metrics)>) {
    let mut rows = Vec::new();
    for (slice, metrics) in of {
        for (name, estimate) in metrics {
            rows.push(vec![
                format!("  {slice}"),
                name.clone(),
                metric(estimate.value),
                between(estimate.interval.bounds(), "…"),
                rows_behind(estimate),
            ]);
        }
    }
    if rows.is_empty() {
        return;
    }
    section(printer, title);
    let first = if rows.iter().all(|row| row[0].trim().is_empty()) { "" } else { "  slice" };
    printer.table(&[first, "metric", "value", "interval", "rows"], rows);
}

/// The rows behind a number; `10 of 1000` if it does not cover all that it should.
fn rows_behind(estimate: &Estimate) -> String {
    let coverage = estimate.coverage;
    match (coverage.is_partial(), estimate.support) {
        (true, _) => format!("{} of {}", coverage.rows_used, coverage.rows_expected),
        (false, 0) => String::new(),
        (false, rows) => rows.to_string(),
    }
}

/// Each metric on both sides, with the verdict.
fn comparison(printer: Printer, receipt: &EvaluationReceipt) {
    let compared = receipt.baseline_evaluation_id.as_ref().zip(receipt.comparison.as_ref());
    let Some((baseline, comparison)) = compared else { return };
    section(printer, &format!("Compared with {baseline}"));
    let row = |name: String, compared: &Compared| {
        let number = |value: Option<f64>| value.map(metric).unwrap_or_default();
        let difference = &compared.difference;
        vec![
            format!("  {name}"),
            metric(compared.baseline),
            metric(compared.candidate),
            metric(difference.value),
            format!(
                "{} … {}",
                number(difference.interval.known_low()),
                number(difference.interval.known_high())
            ),
            compared.verdict.as_str().replace('_', " "),
        ]
    };
    let metrics = comparison.metrics.iter().map(|(name, compared)| row(name.clone(), compared));
    let slices =
        comparison.slices.iter().map(|slice| row(format!("slice {}", slice.label()), &slice.compared));
    let rows = metrics.chain(slices).collect();
    printer.table(&["  metric", "baseline", "candidate", "difference", "interval", "verdict"], rows);
}

/// What the model relies on, and what changes the most decisions.
fn probes(printer: Printer, found: &ProbeAnswer) {
    section(printer, &format!("Probes ({} drawn)", counted(found.rows, "row")));
    let importance = found.importance.iter().take(SHOWN_PROBES_MAX);
    let importance = importance.map(|it| (&it.feature, "error without it".to_owned(), it.increase));
    let mut flipped: Vec<_> = found.perturbations.iter().filter_map(|it| Some((it, it.flipped?))).collect();
    flipped.sort_by(|(_, one), (_, other)| other.value.total_cmp(&one.value));
    let flipped = flipped.into_iter().take(SHOWN_PROBES_MAX);
    let flipped =
        flipped.map(|(it, share)| (&it.feature, format!("decisions changed if {}", it.kind.label()), share));
    let row = |(feature, what, share): (&String, String, Estimate)| {
        row![format!("  {feature}"), what, metric(share.value), between(share.interval.bounds(), "…")]
    };
    let rows: Vec<_> = importance.chain(flipped).map(row).collect();
    if !rows.is_empty() {
        printer.table(&["  feature", "what", "value", "interval"], rows);
    }
    let refused: Vec<_> = found.perturbations.iter().filter(|it| it.refused.is_some()).collect();
    for it in refused.iter().take(SHOWN_PROBES_MAX) {
        let why = cut(it.refused.as_deref().unwrap_or_default(), FAILURE_CHARS_MAX);
        printer.line(format!(
            "  the model does not answer rows with `{}` {}: {why}",
            it.feature,
            it.kind.sent()
        ));
    }
}

/// One line for each further test set.
fn test_sets(printer: Printer, sets: &[TestSetResult]) {
    let line = |set: &TestSetResult| {
        let main = set.main_metric.as_ref().and_then(|name| Some((name, set.metrics.get(name)?)));
        let (tone, verdict) = match (set.state, set.verdict) {
            (Some(EvaluationState::Completed), Some(verdict)) => (gate_tone(verdict), verdict.as_str()),
            (Some(EvaluationState::Completed), None) => (Tone::Dim, "no gates"),
            (Some(state), _) => (Tone::Bad, state.as_str()),
            (None, _) => (Tone::Warning, "not evaluated"),
        };
        row![
            format!("  {}", set.name),
            set.evaluation_id.clone().unwrap_or_default(),
            set.rows.map(|rows| rows.to_string()).unwrap_or_default(),
            main.map(|(name, it)| format!("{name} {}{}", metric(it.value), it.of_some_rows()))
                .unwrap_or_default(),
            printer.tone(tone, verdict)
        ]
    };
    printer.table(&["  test set", "evaluation", "rows", "metric", "gates"], sets.iter().map(line).collect());
}

fn failures(printer: Printer, failures: &Failures) {
    if failures.sample.is_empty() {
        return;
    }
    let what = match failures.kind {
        FailureKind::Farthest => "with the largest errors",
        FailureKind::Wrong => "wrong",
    };
    let (wrong, rows) = (failures.wrong, failures.rows);
    section(printer, &format!("Failures ({wrong} of {rows} rows {what}; a sample)"));
    for failure in failures.sample.iter().take(SHOWN_FAILURES_MAX) {
        let cells = cut(&serde_json::json!(failure.cells).to_string(), FAILURE_CHARS_MAX);
        printer.line(format!("  row {}: {cells}", failure.row));
    }
}
