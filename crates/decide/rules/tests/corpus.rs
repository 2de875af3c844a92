//! Labelled log tails: those that live beside the repository, when they are there, and those of `logs/`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "what tests share prints and unwraps as they do"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use trackway_core::{Confidence, LaunchKind, TerminationReason};
use trackway_rules::classify::{Stream, StreamLog};
use trackway_rules::{LogScanner, TerminationEvidence, TerminationVerdict, classify};

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
    answer_to(tail, &tail.log_tail)
}

/// The answer where only this much of the log is there.
fn answer_to(tail: &Tail, log: &str) -> TerminationVerdict {
    let mut evidence = TerminationEvidence::new(LaunchKind::Train);
    evidence.exit_code = tail.exit_code;
    evidence.signal = tail.signal.as_deref().and_then(signal_number);
    evidence.logs.push(StreamLog { stream: Stream::Stderr, log: LogScanner::scan(log.as_bytes()) });
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

/// How many last lines of a log are missing, of how many.
type LogCut = (&'static str, fn(usize) -> usize);

const CUTS: [LogCut; 4] = [("none", |_| 0), ("1", |_| 1), ("3", |_| 3), ("half", |lines| lines / 2)];
/// At least this fraction of the tails in `logs/` must get the exact label where so much is missing. Most of them have
/// less than ten lines, of which one names the cause: of the others nothing is left.
const EXACT_MIN: [f64; 4] = [0.98, 0.86, 0.56, 0.74];

/// The fraction of exact labels after each cut. Prints it with that of accepted answers and what is wrong and certain,
/// and fails at the latter, but for exit code 0: a log that does not show why the script ended early does not take it
/// back.
fn score_cuts(tails: &[Tail]) -> Vec<f64> {
    let mut exact_of_cuts = Vec::new();
    for (name, missing) in CUTS {
        let (mut exact, mut accepted, mut wrong) = (0, 0, Vec::new());
        for tail in tails {
            let lines: Vec<_> = tail.log_tail.lines().collect();
            let kept = lines.len().saturating_sub(missing(lines.len()));
            let verdict = answer_to(tail, &(lines[..kept].join("\n") + "\n"));
            let right = tail.accept.iter().any(|reason| reason == verdict.reason.as_str());
            exact += usize::from(verdict.reason.as_str() == tail.label);
            accepted += usize::from(right);
            if !right && verdict.confidence == Confidence::Certain {
                wrong.push((&tail.id, tail.exit_code));
            }
        }
        let of_all = |count: usize| count as f64 / tails.len() as f64;
        println!(
            "{} tails, last lines missing: {name}: exactly the label {:.3}, accepted {:.3}, wrong at certain: {wrong:?}",
            tails.len(),
            of_all(exact),
            of_all(accepted)
        );
        assert!(wrong.iter().all(|(_, exit_code)| *exit_code == Some(0)), "missing {name}: {wrong:?}");
        exact_of_cuts.push(of_all(exact));
    }
    exact_of_cuts
}

/// Proves how much is still understood of logs without their last line, their last three and half of their lines, and
/// that nothing wrong is certain.
#[test]
fn cut_logs_are_understood_as_far_as_they_go() {
    let exact = score_cuts(&parsed(include_str!("logs/weak_categories.jsonl")));
    assert!(exact.iter().zip(EXACT_MIN).all(|(exact, least)| *exact >= least), "{exact:?}");
    match std::fs::read_to_string(corpus_path()) {
        Ok(text) => drop(score_cuts(&parsed(&text))),
        Err(error) => trackway_skip::skip!("no labelled tails: {error}"),
    }
}
