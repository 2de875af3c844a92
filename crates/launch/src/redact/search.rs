//! Finds secrets in bytes: one pass of an automaton over all trigger words and literal values, then a rule's regex on
//! the lines where its trigger stood.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::bytes::Regex;

use super::rules::RULES;

/// Where a secret stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub start: usize,
    pub end: usize,
    pub kind: &'static str,
    /// The block has begun and its end was not in the bytes: it goes on after `end`.
    pub open: bool,
    /// Smaller means more telling, for the name of merged spans.
    rank: usize,
}

/// The shape of the first line of a private key in PEM armour (RFC 7468 and the older OpenSSL and PGP forms).
const PEM_BEGIN: &str = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----";
const PEM_END: &str = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----";
const PEM_TRIGGER: &str = "-----begin ";
const PEM_KIND: &str = "private-key";
const LITERAL_KIND: &str = "environment";

/// Automata over more pattern bytes than this stay compact instead of fast.
const DENSE_PATTERN_BYTES_MAX: usize = 16 * 1024;

pub(super) fn pem_begin() -> &'static Regex {
    static REGEX: OnceLock<Regex> = OnceLock::new();
    REGEX.get_or_init(|| Regex::new(PEM_BEGIN).expect("a fixed pattern, compiled by the tests"))
}

pub(super) fn pem_end() -> &'static Regex {
    static REGEX: OnceLock<Regex> = OnceLock::new();
    REGEX.get_or_init(|| Regex::new(PEM_END).expect("a fixed pattern, compiled by the tests"))
}

#[derive(Debug, Clone, Copy)]
enum Meaning {
    Rule(usize),
    Pem,
    Literal(usize),
}

struct Automaton {
    words: AhoCorasick,
    meanings: Vec<Meaning>,
}

pub(super) struct Search {
    literals: Vec<Vec<u8>>,
    automaton: OnceLock<Automaton>,
}

impl Search {
    pub fn new(literals: Vec<Vec<u8>>) -> Self {
        Self { literals, automaton: OnceLock::new() }
    }

    pub fn literals(&self) -> &[Vec<u8>] {
        &self.literals
    }

    /// Whether a closer look is worth it. Most text says no.
    pub fn may_contain(&self, bytes: &[u8]) -> bool {
        !bytes.is_empty() && self.automaton().words.is_match(bytes)
    }

    /// Every secret, in order, none overlapping another.
    pub fn spans(&self, bytes: &[u8]) -> Vec<Span> {
        if bytes.is_empty() {
            return Vec::new();
        }
        let automaton = self.automaton();
        let mut found = Vec::new();
        let mut tried: [Option<usize>; RULES.len()] = [None; RULES.len()];
        for hit in automaton.words.find_overlapping_iter(bytes) {
            match automaton.meanings[hit.pattern().as_usize()] {
                Meaning::Literal(index) => {
                    // The automaton ignores case; a literal does not.
                    if bytes[hit.start()..hit.end()] == self.literals[index][..] {
                        found.push(span(hit.start(), hit.end(), LITERAL_KIND, RULES.len() + 1));
                    }
                }
                Meaning::Pem => found.extend(pem_block(bytes, hit.start())),
                Meaning::Rule(index) => {
                    if tried[index].is_none_or(|line_end| hit.start() >= line_end) {
                        let line = line_around(bytes, hit.start());
                        tried[index] = Some(line.end);
                        rule_spans(index, bytes, line, &mut found);
                    }
                }
            }
        }
        merge(found)
    }

    fn automaton(&self) -> &Automaton {
        self.automaton.get_or_init(|| {
            let mut words: Vec<&[u8]> = Vec::new();
            let mut meanings = Vec::new();
            for (index, rule) in RULES.iter().enumerate() {
                for trigger in rule.triggers {
                    words.push(trigger.as_bytes());
                    meanings.push(Meaning::Rule(index));
                }
            }
            words.push(PEM_TRIGGER.as_bytes());
            meanings.push(Meaning::Pem);
            for (index, literal) in self.literals.iter().enumerate() {
                words.push(literal);
                meanings.push(Meaning::Literal(index));
            }
            let dense = words.iter().map(|word| word.len()).sum::<usize>() <= DENSE_PATTERN_BYTES_MAX;
            let kind = if dense { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
            let words = AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::Standard)
                .kind(Some(kind))
                .build(words)
                .expect("at most 512 literals of 1 KiB stay far below the automaton's 2^31 states");
            Automaton { words, meanings }
        })
    }
}

fn span(start: usize, end: usize, kind: &'static str, rank: usize) -> Span {
    Span { start, end, kind, open: false, rank }
}

fn line_around(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline);
    start..end
}

fn rule_spans(index: usize, bytes: &[u8], line: std::ops::Range<usize>, found: &mut Vec<Span>) {
    let rule = &RULES[index];
    for captures in rule.regex().captures_iter(&bytes[line.clone()]) {
        let secret = captures.iter().skip(1).flatten().next().or_else(|| captures.get(0));
        if let Some(secret) = secret.filter(|secret| (rule.accept)(secret.as_bytes())) {
            found.push(span(line.start + secret.start(), line.start + secret.end(), rule.kind, index));
        }
    }
}

/// The block that begins at `at`; open when its end is not there.
fn pem_block(bytes: &[u8], at: usize) -> Option<Span> {
    let begin = pem_begin().find_at(bytes, at).filter(|begin| begin.start() == at)?;
    let end = pem_end().find_at(bytes, begin.end()).map(|end| end.end());
    Some(Span { start: at, end: end.unwrap_or(begin.end()), kind: PEM_KIND, open: end.is_none(), rank: 0 })
}

fn merge(mut found: Vec<Span>) -> Vec<Span> {
    found.sort_unstable_by_key(|span| (span.start, span.rank));
    let mut merged: Vec<Span> = Vec::with_capacity(found.len());
    for span in found {
        match merged.last_mut().filter(|last| span.start < last.end) {
            Some(last) => {
                last.open = if span.end > last.end { span.open } else { last.open && span.end < last.end };
                last.end = last.end.max(span.end);
                if span.rank < last.rank {
                    (last.kind, last.rank) = (span.kind, span.rank);
                }
            }
            None => merged.push(span),
        }
    }
    merged
}
