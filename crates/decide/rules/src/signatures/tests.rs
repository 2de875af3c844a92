#[path = "../../build/literals.rs"]
mod literals;

use std::collections::BTreeSet;

use super::*;
use crate::pattern::Pattern;
use crate::scan::{Handling, Hit, LogScanner};

/// What the tables have beside the phrases of one signature.
struct Examples {
    /// For each phrase, a line in which it is what is found of the signature.
    phrases: &'static [&'static str],
    /// For each exception, a line that only it rules out.
    unless: &'static [&'static str],
    /// Lines like those that match, which do not.
    near: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/examples.rs"));

/// A signature whose expressions are compiled.
struct TestSignature {
    source: &'static Signature,
    phrases: Vec<Pattern>,
    unless: Vec<Pattern>,
}

impl TestSignature {
    fn new(source: &'static Signature) -> Self {
        let unless = source.unless.iter().map(|exception| Pattern::new(exception.phrase));
        let phrases = source.phrases.iter().map(|phrase| Pattern::new(phrase));
        Self { source, phrases: phrases.collect(), unless: unless.collect() }
    }

    /// The number of the phrase that is found first in the line.
    fn found(&self, line: &str) -> Option<usize> {
        let starts = self.phrases.iter().map(|phrase| phrase.find(line.as_bytes()));
        let starts = starts.enumerate().filter_map(|(number, range)| Some((range?.start, number)));
        starts.min().map(|(_, number)| number)
    }

    /// The numbers of the exceptions that rule the line out.
    fn exceptions(&self, line: &str) -> Vec<usize> {
        let lowered = line.to_ascii_lowercase();
        let of_number = |number: &usize| {
            self.source.unless[*number].may_be_in(lowered.as_bytes()) && self.unless[*number].is_match(line)
        };
        (0..self.unless.len()).filter(of_number).collect()
    }
}

fn each() -> impl Iterator<Item = (TestSignature, &'static Examples)> {
    all().map(TestSignature::new).zip(&EXAMPLES)
}

fn is_hit(signature: &Signature, line: &str) -> bool {
    LogScanner::scan(line.as_bytes()).hits.iter().any(|hit| hit.signature == signature.name)
}

/// Whether the scan takes the line for what it is of: a hit, or the mark on what is near it.
fn is_found(signature: &Signature, line: &str) -> bool {
    if signature.role != Role::Handled {
        return is_hit(signature, line);
    }
    let error = "ValueError: row 3";
    let (before, after) = match signature.name {
        markers::EXCEPTION_IGNORED => ("epoch 1", error),
        markers::RESUMED => ("slurmstepd: error: Detected 1 oom_kill event in StepId=41.batch", PROGRESS),
        _ => (error, "epoch 1"),
    };
    let is_marked = |line: &str| {
        let log = format!("{before}\n{line}\n{after}\n");
        let evidence = LogScanner::scan(log.as_bytes());
        let marked =
            |hit: &Hit| [before, after].contains(&hit.text.as_str()) && hit.handling == Handling::Handled;
        evidence.hits.iter().any(marked)
    };
    is_marked(line) && !is_marked("epoch 2")
}

/// Lines of a run that continues.
const PROGRESS: &str = "step 1 loss 0.5\nstep 2 loss 0.4";

/// Proves that every phrase has an example in which it, and no other phrase of its signature, is found first, which
/// nothing rules out, and which the scan of a log finds: so none is dead.
#[test]
fn every_phrase_has_an_example() {
    let mut wrong = Vec::new();
    for (signature, examples) in each() {
        let source = signature.source;
        assert_eq!(source.phrases.len(), examples.phrases.len(), "{}", source.name);
        for (number, line) in examples.phrases.iter().enumerate() {
            let decides = signature.found(line) == Some(number) && signature.exceptions(line).is_empty();
            if !decides || !is_found(source, line) {
                wrong.push(format!("{}: `{}` in `{line}`", source.name, source.phrases[number]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Proves that every exception has an example that the signature would match without it, and that no other exception rules out.
#[test]
fn every_exception_has_an_example() {
    let mut wrong = Vec::new();
    for (signature, examples) in each() {
        let source = signature.source;
        assert_eq!(source.unless.len(), examples.unless.len(), "{}", source.name);
        for (number, line) in examples.unless.iter().enumerate() {
            if signature.found(line).is_none() || signature.exceptions(line) != [number] {
                wrong.push(format!("{}: `{}` in `{line}`", source.name, source.unless[number].phrase));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Proves that lines like those that match do not, at least one for each signature.
#[test]
fn near_misses_do_not_match() {
    for (signature, examples) in all().zip(&EXAMPLES) {
        assert!(!examples.near.is_empty(), "{}", signature.name);
        for line in examples.near.iter().chain(examples.unless) {
            assert!(!is_found(signature, line), "{}: `{line}`", signature.name);
        }
    }
}

/// Proves that the names of the rows are unique.
#[test]
fn names_are_unique() {
    let mut seen = BTreeSet::new();
    for signature in all() {
        assert!(seen.insert(signature.name), "`{}` is there twice", signature.name);
    }
}

/// Proves that the rows that decisions name are in the tables.
#[test]
fn named_rows_are_in_the_tables() {
    let names = include_str!("named.rs").split(" = \"").skip(1).filter_map(|rest| rest.split('"').next());
    for name in names {
        assert!(all().any(|signature| signature.name.as_str() == name), "`{name}`");
    }
}

/// Proves that the literals derived from an expression are in every match, through options, branches and gaps.
#[test]
fn literals_are_required_by_their_expression() {
    let text = |pattern: &str| {
        let literals = literals::required(pattern)?;
        Some(literals.into_iter().map(|one| String::from_utf8(one).unwrap()).collect::<Vec<_>>())
    };
    assert_eq!(text(r"\bDisk (quota|is full)\b").unwrap(), ["disk is ", "disk quo"]);
    assert_eq!(text(r"loss[^\n]{0,40} diverged").unwrap(), [" diverge"]);
    assert_eq!(text(r"no spaces? left").unwrap(), ["no space"]);
    assert_eq!(text(r"errno \d+|EIO").unwrap(), ["eio", "errno "]);
    assert_eq!(text(r"\d+ ?\w*"), None);
}
