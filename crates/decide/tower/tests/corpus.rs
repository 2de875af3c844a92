//! The labelled log tails that live beside the repository, when they are there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trackway_core::{Confidence, LaunchKind, TerminationReason};
use trackway_tower::classify::{Stream, StreamLog};
use trackway_tower::{LogScanner, TerminationEvidence, TerminationVerdict, classify};

/// At least this fraction of the tails must get an accepted answer.
const ACCEPTED_SHARE_MIN: f64 = 0.95;

#[derive(serde::Deserialize)]
struct Tail {
    id: String,
    label: String,
    accept: Vec<String>,
    exit_code: Option<i32>,
    signal: Option<String>,
    log_tail: String,
}

fn corpus_path() -> PathBuf {
    let shared = std::env::var_os("TRACKWAY_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    std::env::var_os("TRACKWAY_FAILURES").map_or_else(|| shared.join("failures/dev.jsonl"), PathBuf::from)
}

fn signal_number(name: &str) -> Option<i32> {
    match name {
        "SIGHUP" => Some(1),
        "SIGINT" => Some(2),
        "SIGABRT" => Some(6),
        "SIGBUS" => Some(7),
        "SIGKILL" => Some(9),
        "SIGSEGV" => Some(11),
        "SIGTERM" => Some(15),
        _ => name.parse().ok(),
    }
}

fn answer(tail: &Tail) -> TerminationVerdict {
    let mut evidence = TerminationEvidence::new(LaunchKind::Train);
    evidence.exit_code = tail.exit_code;
    evidence.signal = tail.signal.as_deref().and_then(signal_number);
    evidence.logs.push(StreamLog { stream: Stream::Stderr, log: LogScanner::scan(tail.log_tail.as_bytes()) });
    classify(&evidence)
}

/// Proves on real log tails that the rules find the labelled reason at least 95 times in 100, and that no answer given
/// as certain is wrong. Prints the accepted fraction, that of the exact label, macro-F1 and the fraction of wrong answers given as certain.
#[test]
fn real_log_tails_are_understood() {
    let path = corpus_path();
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: no labelled tails at {}", path.display());
        return;
    };
    let half = std::env::var("TRACKWAY_FAILURES_HALF").ok();
    let tails: Vec<Tail> = text
        .lines()
        .map(|line| serde_json::from_str::<Tail>(line).unwrap())
        .filter(|tail| half.as_ref().is_none_or(|ids| ids.split(',').any(|id| id == tail.id)))
        .collect();
    let mut counts = BTreeMap::<String, [f64; 3]>::new();
    let (mut accepted, mut exact, mut wrong_certain) = (0, 0, Vec::new());
    for tail in &tails {
        let verdict = answer(tail);
        let given = verdict.reason.as_str().to_owned();
        let right = tail.accept.contains(&given);
        accepted += usize::from(right);
        exact += usize::from(given == tail.label);
        if right && given != tail.label {
            println!("{}: {} read as {given} by {}, which is accepted", tail.id, tail.label, verdict.rule);
        }
        if right {
            counts.entry(tail.label.clone()).or_default()[0] += 1.0;
        } else {
            counts.entry(given.clone()).or_default()[1] += 1.0;
            counts.entry(tail.label.clone()).or_default()[2] += 1.0;
            println!(
                "{}: {} read as {given} by {} ({})",
                tail.id, tail.label, verdict.rule, verdict.confidence
            );
            if verdict.confidence == Confidence::Certain {
                wrong_certain.push(tail.id.clone());
            }
        }
        assert!(tail.label.parse::<TerminationReason>().is_ok(), "{}: unknown label", tail.id);
    }
    let f1 = counts.values().map(|[hit, false_hit, missed]| 2.0 * hit / (2.0 * hit + false_hit + missed));
    let macro_f1 = f1.sum::<f64>() / counts.len() as f64;
    let share = accepted as f64 / tails.len() as f64;
    println!(
        "{} tails: accepted {share:.3}, exactly the label {:.3}, macro-F1 {macro_f1:.3}, wrong at certain {:.3}",
        tails.len(),
        exact as f64 / tails.len() as f64,
        wrong_certain.len() as f64 / tails.len() as f64
    );
    if half.is_none() {
        assert!(share >= ACCEPTED_SHARE_MIN, "accepted {share:.3}");
        assert!(wrong_certain.is_empty(), "wrong and certain: {wrong_certain:?}");
    }
}
