//! Labelled log tails: those that live beside the repository, when they are there, and those of `logs/`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "what tests share prints and unwraps as they do"
)]

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
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared"), PathBuf::from);
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

/// How the answers for a set of tails compare with their labels.
struct Score {
    accepted: f64,
    wrong_certain: Vec<String>,
}

/// Prints what differs, the accepted fraction, that of the exact label, macro-F1 and the fraction of wrong answers given as certain.
fn score(tails: &[Tail]) -> Score {
    let mut counts = BTreeMap::<String, [f64; 3]>::new();
    let (mut accepted, mut exact, mut wrong_certain) = (0, 0, Vec::new());
    for tail in tails {
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
    let accepted = accepted as f64 / tails.len() as f64;
    println!(
        "{} tails: accepted {accepted:.3}, exactly the label {:.3}, macro-F1 {macro_f1:.3}, wrong at certain {:.3}",
        tails.len(),
        exact as f64 / tails.len() as f64,
        wrong_certain.len() as f64 / tails.len() as f64
    );
    Score { accepted, wrong_certain }
}

fn parsed(text: &str) -> Vec<Tail> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Proves on real log tails that the rules find the labelled reason at least 95 times in 100, and that no answer given
/// as certain is wrong.
#[test]
fn real_log_tails_are_understood() {
    let path = corpus_path();
    let Ok(text) = std::fs::read_to_string(&path) else {
        trackway_skip::skip!("no labelled tails at {}", path.display());
        return;
    };
    let half = std::env::var("TRACKWAY_FAILURES_HALF").ok();
    let mut tails = parsed(&text);
    tails.retain(|tail| half.as_ref().is_none_or(|ids| ids.split(',').any(|id| id == tail.id)));
    let score = score(&tails);
    if half.is_none() {
        assert!(score.accepted >= ACCEPTED_SHARE_MIN, "accepted {:.3}", score.accepted);
        assert!(score.wrong_certain.is_empty(), "wrong and certain: {:?}", score.wrong_certain);
    }
}

/// Proves the same on logs that were written before the rules for them: causes inside consequences of others, exit code 0 after a bad
/// end, normal ends without an exit code, failures of evaluators, limits of time, causes inside exceptions, suppositions, several
/// programs in one log, lost devices.
#[test]
fn weak_categories_are_understood() {
    let score = score(&parsed(include_str!("logs/weak_categories.jsonl")));
    assert!(score.accepted >= ACCEPTED_SHARE_MIN, "accepted {:.3}", score.accepted);
    assert!(score.wrong_certain.is_empty(), "wrong and certain: {:?}", score.wrong_certain);
}
