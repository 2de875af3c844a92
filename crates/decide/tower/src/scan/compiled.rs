//! The signature tables turned into search machines, once per process.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind, StartKind};

use super::literals;
use super::pattern::Pattern;
use crate::signatures::{self, Signature};

/// How many parts of a block are walked at once. Four hide the latency of the transition table's cache misses.
const LANES: usize = 4;

/// What a literal belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// A frame or header of a Python traceback. First, so that a line's frame is known before its hits.
    Traceback,
    /// The signature of this index.
    Signature(u16),
}

/// A literal that ends at `end` (exclusive) in the block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) end: usize,
    pub(super) owner: Owner,
}

pub(super) struct Compiled {
    signatures: Vec<CompiledSignature>,
    literals: DFA,
    /// By pattern of the automaton.
    owners: Vec<Vec<Owner>>,
    longest_literal_bytes: usize,
}

struct CompiledSignature {
    source: &'static Signature,
    pattern: Pattern,
    unless: Option<Pattern>,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(Compiled::build);

impl Compiled {
    pub(super) fn get() -> &'static Self {
        &COMPILED
    }

    fn build() -> Self {
        let mut by_literal = std::collections::BTreeMap::<Vec<u8>, Vec<Owner>>::new();
        for literal in super::traceback::LITERALS {
            by_literal.entry(literal.as_bytes().to_vec()).or_default().push(Owner::Traceback);
        }
        let sources: Vec<_> = signatures::all().collect();
        for (index, signature) in sources.iter().enumerate() {
            let literals = literals::required(signature.pattern)
                .expect("every pattern of the tables has literals: a test derives them all");
            for literal in literals {
                by_literal.entry(literal).or_default().push(Owner::Signature(index as u16));
            }
        }
        let literals = DFA::builder()
            .match_kind(MatchKind::Standard)
            .start_kind(StartKind::Unanchored)
            .prefilter(false)
            .build(by_literal.keys())
            .expect("the literals are a few thousand bytes, far below the automaton's limits");
        Self {
            literals,
            longest_literal_bytes: by_literal.keys().map(|literal| literal.len()).max().unwrap_or(1),
            owners: by_literal.into_values().collect(),
            signatures: sources
                .into_iter()
                .map(|source| CompiledSignature {
                    source,
                    pattern: Pattern::new(source.pattern),
                    unless: source.unless.map(Pattern::new),
                })
                .collect(),
        }
    }

    pub(super) fn signature(&self, index: u16) -> &'static Signature {
        self.signatures[usize::from(index)].source
    }

    /// Where in `line` the signature confirms; `None` when it does not, or is ruled out.
    pub(super) fn confirm(&self, index: u16, line: &[u8]) -> Option<Range<usize>> {
        let signature = &self.signatures[usize::from(index)];
        let matched = signature.pattern.find(line)?.range();
        let ruled_out = signature.unless.as_ref().is_some_and(|unless| unless.is_match(line));
        (!ruled_out).then_some(matched)
    }

    /// Whether the signature's words are in `code`, where nothing rules them out.
    pub(super) fn has_words(&self, index: u16, code: &[u8]) -> bool {
        self.signatures[usize::from(index)].pattern.is_match(code)
    }

    /// Appends every literal of `lowered`, in order of position within each lane and lanes in order.
    pub(super) fn find_literals(&self, lowered: &[u8], found: &mut Vec<Found>) {
        let lane_bytes = lowered.len() / LANES;
        if lane_bytes <= self.longest_literal_bytes {
            self.walk(&mut self.start_state(), lowered, 0, found);
            return;
        }
        let overlap = self.longest_literal_bytes - 1;
        let start = |lane: usize| if lane == 0 { 0 } else { lane * lane_bytes - overlap };
        let mut lane_found: [Vec<Found>; LANES] = Default::default();
        let mut states = [self.start_state(); LANES];
        let lanes: [&[u8]; LANES] =
            std::array::from_fn(|lane| &lowered[start(lane)..start(lane) + lane_bytes]);
        #[allow(clippy::needless_range_loop)] // one position in all lanes at once is the point
        for position in 0..lane_bytes {
            for lane in 0..LANES {
                let state = self.literals.next_state(Anchored::No, states[lane], lanes[lane][position]);
                states[lane] = state;
                if self.literals.is_special(state) {
                    self.record(state, start(lane) + position + 1, &mut lane_found[lane]);
                }
            }
        }
        for (lane, list) in lane_found.into_iter().enumerate() {
            found.extend(list);
            let end = if lane + 1 == LANES { lowered.len() } else { start(lane + 1) + overlap };
            let mut state = states[lane];
            let walked = start(lane) + lane_bytes;
            self.walk(&mut state, &lowered[walked..end], walked, found);
        }
    }

    fn walk(&self, state: &mut StateID, bytes: &[u8], base: usize, found: &mut Vec<Found>) {
        for (position, byte) in bytes.iter().enumerate() {
            *state = self.literals.next_state(Anchored::No, *state, *byte);
            if self.literals.is_special(*state) {
                self.record(*state, base + position + 1, found);
            }
        }
    }

    fn start_state(&self) -> StateID {
        self.literals.start_state(Anchored::No).expect("the automaton is built with an unanchored start")
    }

    #[cold]
    fn record(&self, state: StateID, end: usize, found: &mut Vec<Found>) {
        if !self.literals.is_match(state) {
            return;
        }
        for index in 0..self.literals.match_len(state) {
            let pattern = self.literals.match_pattern(state, index);
            found.extend(self.owners[pattern.as_usize()].iter().map(|owner| Found { end, owner: *owner }));
        }
    }
}
