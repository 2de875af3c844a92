//! `trackway gates …`

use std::path::Path;

use trackway_api::models::gates::{GateFixture, GateReceipt, GateTests};
use trackway_core::registry::GateVerdict;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_flows::checkpoints::CheckpointRef;
use trackway_flows::evaluation::evaluate::{self, EvaluateRequest, EvaluationSubject};
use trackway_flows::evaluation::gates;
use trackway_flows::evaluation::gates::{JudgeRequest, TestSetGates, TestedGates};
use trackway_flows::evaluation::known_bad;
use trackway_flows::outputs;
use trackway_formats::runfile::{MAIN_TEST_SET, PlanPatch};
use trackway_rules::gate::{how_to_verify, how_to_verify_by_hand};

use crate::args::{FixtureArgs, GatesCommand, GatesTestArgs, JudgeArgs};
use crate::commands::checks::gate_tone;
use crate::commands::live::supervised;
use crate::exit::{Exit, Failure, INSUFFICIENT};
use crate::page::write;
use crate::printer::{Printer, StyledLine, Tone, row};
use crate::units::counted;

/// The known-bad models that are made: the predictions of an evaluation shuffled, the first checkpoint of a run.
const SHUFFLED: &str = "shuffled";
const FIRST: &str = "first";

pub fn gates(context: &Context, command: &GatesCommand, printer: Printer) -> Exit {
    match command {
        GatesCommand::Judge(args) => judge(context, args, printer),
        GatesCommand::Test(args) => test(context, args, printer),
        GatesCommand::Fixture(args) => fixture(context, args, printer),
    }
}

fn judge(context: &Context, args: &JudgeArgs, printer: Printer) -> Exit {
    let request = JudgeRequest {
        evaluation: context.resolve_evaluation(&args.evaluation)?,
        rules: args.rules.clone(),
        baseline: args.baseline.clone(),
    };
    let receipt = gates::judge_gates(context, &request)?;
    printer.answer(&receipt, || print_receipt(printer, &receipt));
    Ok(code(receipt.verdict))
}

/// The exit code of a verdict over all gates.
pub fn code(verdict: GateVerdict) -> u8 {
    if verdict == GateVerdict::Pass { 0 } else { INSUFFICIENT }
}

pub fn print_receipt(printer: Printer, receipt: &GateReceipt) {
    let rows = receipt.gates.iter().map(|gate| row![&gate.rule, verdict(printer, gate.verdict), &gate.why]);
    printer.table(&["gate", "verdict", "why"], rows.collect());
    printer.note(format!(
        "all gates of {}: {} (receipt {})",
        receipt.evaluation_id,
        receipt.verdict,
        &receipt.gate_receipt_id[..12]
    ));
    receipt.notes.iter().for_each(|note| printer.note(note));
    unverified(printer, &receipt.unverified);
    if !receipt.unverified.is_empty() {
        printer.note(format!("test them: {}", how_to_verify(&receipt.unverified, &receipt.evaluation_id)));
    }
}

fn unverified(printer: Printer, rules: &[String]) {
    for rule in rules {
        printer.note(format!(
            "`{rule}` is not verified: it never rejected a known-bad model, and promotions need a gate that did"
        ));
    }
}

fn verdict(printer: Printer, verdict: GateVerdict) -> StyledLine {
    printer.tone(gate_tone(verdict), verdict.as_str())
}

fn test(context: &Context, args: &GatesTestArgs, printer: Printer) -> Exit {
    let gates = match &args.file {
        Some(file) => gates::gates_of_file(context, file)?,
        None => vec![TestSetGates { test_set: None, rules: args.rules.clone() }],
    };
    let mut tested = Vec::new();
    for TestSetGates { test_set, rules } in gates {
        let bad = |text: &String| known_bad(context, args, (text, test_set.as_deref()), printer);
        let fixtures = args.bad.iter().map(bad).collect::<Result<_, _>>()?;
        tested.push(TestedGates { rules, fixtures });
    }
    let tests = gates::test_gates(context, &tested)?;
    printer.answer(&tests, || print_tests(printer, &tests));
    Ok(if tests.unverified.is_empty() { 0 } else { INSUFFICIENT })
}

/// A known-bad model for the gates of a test set: made from the rows of an evaluation on it, evaluated on it now, or read.
fn known_bad(
    context: &Context,
    args: &GatesTestArgs,
    (text, test_set): (&str, Option<&str>),
    printer: Printer,
) -> Result<GateFixture, Failure> {
    let on = |set: Option<&str>| set.map(|name| format!(" on test set `{name}`")).unwrap_or_default();
    if let Some(of) = text.strip_prefix(SHUFFLED) {
        let evaluation = match (of.strip_prefix(':'), &args.file) {
            (Some(named), _) => context.resolve_evaluation(named)?,
            (None, Some(file)) => evaluate::newest_evaluation_of_file(context, file, test_set)?,
            (None, None) => return Err(unnamed_evaluation()),
        };
        let on = on(evaluation.test_set.as_deref());
        let fixture = known_bad::shuffled_fixture(context, evaluation)?;
        return Ok(GateFixture { name: fixture.name + &on, ..fixture });
    }
    let path = Path::new(text);
    if text != FIRST || path.is_file() {
        return Ok(match path.is_file() {
            true => gates::read_fixture(path)?,
            false => gates::fixture_of(context, context.resolve_evaluation(text)?, None)?,
        });
    }
    let file = args.file.clone().ok_or_else(|| {
        Failure::usage(
            "`--bad first` evaluates the first checkpoint of a run file, and none is named",
            "name it",
        )
    })?;
    let request = EvaluateRequest {
        accepts_unsafe: None,
        subject: EvaluationSubject::File(file),
        checkpoint: Some(CheckpointRef::First),
        patch: PlanPatch::default(),
        test_sets: vec![test_set.unwrap_or(MAIN_TEST_SET).to_owned()],
        is_gate_test: true,
    };
    let receipt = supervised(context, printer, |live| evaluate::evaluate(context, &request, live))?;
    let step = receipt.step.map_or_else(String::new, |step| format!("step {step}, evaluation "));
    let name = format!("the first checkpoint: {step}{}{}", receipt.evaluation_id, on(test_set));
    let row = context.resolve_evaluation(&receipt.evaluation_id)?;
    let judged = args
        .file
        .as_deref()
        .and_then(|file| evaluate::newest_evaluation_of_file(context, file, test_set).ok());
    let digest = &receipt.checkpoint_manifest_sha256;
    if let Some(judged) = judged.filter(|judged| judged.checkpoint_manifest_sha256 == *digest) {
        printer.note(format!(
            "{name} has the weights that {} is about: it is not known to be bad",
            judged.evaluation_id
        ));
    }
    Ok(gates::fixture_of(context, row, Some(&name))?)
}

fn unnamed_evaluation() -> Failure {
    Failure::usage(
        "`--bad shuffled` shuffles the predictions of an evaluation, and `--gate` names none",
        "name it, as `--bad shuffled:last`, or name the run file instead of `--gate`",
    )
}

fn print_tests(printer: Printer, tests: &GateTests) {
    let rows = tests.tests.iter().map(|test| {
        let result = match test.verdict {
            GateVerdict::Fail => printer.tone(Tone::Good, "rejected"),
            GateVerdict::Inconclusive => printer.tone(Tone::Warning, "inconclusive"),
            GateVerdict::Pass => printer.tone(Tone::Bad, "accepted"),
        };
        row![&test.rule, &test.fixture, result, &test.why]
    });
    printer.table(&["gate", "known-bad model", "result", "why"], rows.collect());
    printer.note(format!(
        "{} verified, {} not",
        counted(tests.verified.len() as u64, "gate"),
        tests.unverified.len()
    ));
    unverified(printer, &tests.unverified);
    if !tests.unverified.is_empty() {
        printer.note(format!(
            "size, latency and other numbers that no prediction changes are made bad by hand: {}",
            how_to_verify_by_hand(&tests.unverified)
        ));
    }
}

fn fixture(context: &Context, args: &FixtureArgs, printer: Printer) -> Exit {
    outputs::refuse_outputs(context, [args.out.as_path()])?;
    let changes: Vec<(String, f64)> =
        args.changes.iter().map(|text| change(text)).collect::<Result<_, _>>()?;
    let evaluation = context.resolve_evaluation(&args.evaluation)?;
    let fixture = gates::fixture_of(context, evaluation, args.name.as_deref())?;
    let fixture = gates::changed_fixture(fixture, &changes)?;
    let text =
        serde_json::to_string_pretty(&fixture).map_err(|error| AppError::of(ErrorKind::Fault, error))?;
    write(&args.out, &format!("{text}\n"))?;
    printer.answer(&fixture, || {
        printer.note(format!("wrote the evidence of `{}` to {}", fixture.name, args.out.display()))
    });
    Ok(0)
}

fn change(text: &str) -> Result<(String, f64), Failure> {
    let wrong = || {
        Failure::usage(format!("invalid change `{text}`"), "expected NUMBER=VALUE, such as `accuracy=0.5`")
    };
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let value: f64 = value.trim().parse().map_err(|_| wrong())?;
    if value.is_finite() { Ok((name.trim().to_owned(), value)) } else { Err(wrong()) }
}
