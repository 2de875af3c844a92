//! Fills a ledger with attempts that look like a year of a busy team: `fill_ledger LOCATION COUNT [NOW_SECONDS]`.
//! The same arguments give the same rows; without `NOW_SECONDS` the last attempt began now.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for benchmarks")]

use std::process::Command;

use serde_json::json;
use trackway_core::name::{Name, NameKind};
use trackway_core::{
    AttemptId, Confidence, LaunchKind, Rng, RunId, SequentialIds, SplitMix64, TerminationReason, Timestamp,
};
use trackway_ledger::{AttemptRow, AttemptState, Ledger, RunRow};

const FAMILIES: [&str; 5] = ["reasoning", "tabular", "vision", "speech", "ranking"];
/// Attempts of a run.
const PER_RUN: u32 = 10;
/// Over which the attempts are spread.
const SPAN_SECONDS: f64 = 365.0 * 86_400.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (location, count) = (&arguments[0], arguments[1].parse::<u32>().unwrap());
    let now = Timestamp::from_micros(
        arguments.get(2).map_or_else(now_seconds, |text| text.parse().unwrap()) * 1_000_000,
    );
    let ledger = Ledger::open(location).unwrap();
    let (ids, mut rng) = (SequentialIds::default(), SplitMix64::new(17));
    // What a real plan and real evidence weigh: about 1.5 KB a row.
    let config = json!({ "command": ["python", "train.py"], "notes": "x".repeat(800), "lr": 0.001 });
    let evidence = json!([{ "line_number": 4711, "text": "y".repeat(300) }]);
    for first in (0..count).step_by(PER_RUN as usize) {
        let family = FAMILIES[rng.next_u64() as usize % FAMILIES.len()];
        let made = now.plus_seconds(-SPAN_SECONDS * (1.0 - f64::from(first) / f64::from(count)));
        let mut run = RunRow::planned(
            RunId::new(&ids),
            &Name::renamed(NameKind::Run, &format!("job-{}", first % 97)),
            "c0ffee",
            config.clone(),
            made,
        );
        run.model_family = Some(family.into());
        let attempts: Vec<AttemptRow> = (1..=PER_RUN.min(count - first))
            .map(|number| attempt(&ids, &mut rng, &run, number, &evidence))
            .collect();
        ledger.insert_run_with_attempts(&run, &attempts).unwrap();
    }
    println!("{count} attempts in {location}");
}

fn attempt(
    ids: &SequentialIds,
    rng: &mut SplitMix64,
    run: &RunRow,
    number: u32,
    evidence: &serde_json::Value,
) -> AttemptRow {
    let mut attempt = AttemptRow::planned(AttemptId::new(ids), number, LaunchKind::Train, run);
    let reasons = TerminationReason::ALL;
    let seconds = 60.0 + rng.next_unit() * 36_000.0;
    attempt.state = AttemptState::Sealed;
    attempt.receipt_sha256 = Some("0".repeat(64));
    attempt.started_at = Some(run.created_at.plus_seconds(f64::from(number)));
    attempt.ended_at = Some(run.created_at.plus_seconds(f64::from(number) + seconds));
    attempt.sealed_at = attempt.ended_at;
    attempt.wall_seconds = Some(seconds);
    attempt.gpu_seconds = Some(seconds * 8.0);
    attempt.termination_reason = Some(reasons[rng.next_u64() as usize % reasons.len()]);
    attempt.termination_rule = Some("signature.some_rule".into());
    attempt.termination_confidence = Some(Confidence::Likely);
    attempt.termination_evidence = Some(evidence.clone());
    attempt.hosts = Some("node-17".into());
    attempt.last_step = Some(rng.next_u64() % 100_000);
    attempt.command = vec!["python".into(), "train.py".into()];
    attempt
}

/// The clock of the machine, through `date`: libraries and examples have no clock.
fn now_seconds() -> i64 {
    let output = Command::new("date").arg("+%s").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}
