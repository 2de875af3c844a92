//! The signature tables as search machines, once per process.

use std::ops::Range;
use std::sync::LazyLock;

use super::automaton::{Automaton, LiteralMatch};
use crate::pattern::Pattern;
use crate::signatures::{self, Signature};

pub(super) struct CompiledSignatures {
    automaton: Automaton,
    /// By the number of the signature.
    signatures: Vec<CompiledSignature>,
}

struct CompiledSignature {
    source: &'static Signature,
    phrases: Vec<Pattern>,
    unless: Vec<Pattern>,
}

static COMPILED: LazyLock<CompiledSignatures> = LazyLock::new(|| CompiledSignatures {
    automaton: Automaton::new(),
    signatures: signatures::all().map(CompiledSignature::new).collect(),
});

impl CompiledSignatures {
    pub(super) fn get() -> &'static Self {
        &COMPILED
    }

    pub(super) fn signature(&self, number: u16) -> &'static Signature {
        self.signatures[usize::from(number)].source
    }

    /// Appends every literal of `lowered`.
    pub(super) fn find_literals(&self, lowered: &[u8], found: &mut Vec<LiteralMatch>) {
        self.automaton.find(lowered, found);
    }

    /// Where in `line` the first of these phrases of the signature is; `None` when none is, or when the line is ruled out.
    pub(super) fn confirm(&self, number: u16, phrases: &[u16], line: &[u8]) -> Option<Range<usize>> {
        let signature = &self.signatures[usize::from(number)];
        let found = phrases.iter().filter_map(|phrase| signature.phrase(*phrase)?.find(line));
        let matched = found.min_by_key(|range| range.start)?;
        (!signature.rules_out(line)).then_some(matched)
    }

    /// Whether the signature's words are in `code`, where nothing rules them out.
    pub(super) fn has_words(&self, number: u16, code: &[u8]) -> bool {
        let mut found = Vec::new();
        self.find_literals(&code.to_ascii_lowercase(), &mut found);
        let signature = &self.signatures[usize::from(number)];
        let mut phrases = found.iter().filter_map(|literal| signature.phrase(literal.owner));
        phrases.any(|phrase| phrase.is_match(code))
    }
}

impl CompiledSignature {
    fn new(source: &'static Signature) -> Self {
        let unless = source.unless.iter().map(|exception| Pattern::new(exception.phrase));
        Self {
            source,
            phrases: source.phrases.iter().map(|phrase| Pattern::new(phrase)).collect(),
            unless: unless.collect(),
        }
    }

    /// The phrase of this number, if it is one of this signature.
    fn phrase(&self, number: u16) -> Option<&Pattern> {
        self.phrases.get(usize::from(number.checked_sub(self.source.first_phrase)?))
    }

    fn rules_out(&self, line: &[u8]) -> bool {
        let lowered = line.to_ascii_lowercase();
        let mut exceptions = self.source.unless.iter().zip(&self.unless);
        exceptions.any(|(exception, pattern)| exception.may_be_in(&lowered) && pattern.is_match(line))
    }
}
