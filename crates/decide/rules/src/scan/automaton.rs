//! The automaton that finds the literals of all phrases in one pass. `build/automaton.rs` lays out its trie, from which
//! a process makes the table of transitions in less than a millisecond.

/// How many parts of a block are walked at once. Four hide the latency of the transition table's cache misses.
const LANES: usize = 4;
/// In a transition: its state has literals.
const HAS_LITERALS: u16 = 1 << 15;
/// In a transition: its state.
const STATE: u16 = HAS_LITERALS - 1;
/// The row of a state has a power of two of transitions.
const ROW_BITS: u32 = CLASS_COUNT.next_power_of_two().trailing_zeros();

include!(concat!(env!("OUT_DIR"), "/automaton.rs"));

const _: () = assert!(CHILD_COUNTS.len() <= STATE as usize + 1, "the states fit into a transition");

/// A literal that ends at `end` (exclusive) in the block.
#[derive(Debug, Clone, Copy)]
pub(super) struct LiteralMatch {
    pub(super) end: usize,
    /// The number of the phrase that it is a part of.
    pub(super) owner: u16,
}

pub(super) struct Automaton {
    /// By state and class of the next byte.
    transitions: Vec<u16>,
    /// By state: the state of its longest proper suffix.
    suffixes: Vec<u16>,
}

impl Automaton {
    pub(super) fn new() -> Self {
        let mut automaton = Self {
            transitions: vec![0; CHILD_COUNTS.len() << ROW_BITS],
            suffixes: vec![0; CHILD_COUNTS.len()],
        };
        let mut child = 0;
        for (state, count) in CHILD_COUNTS.iter().enumerate() {
            let suffix = usize::from(automaton.suffixes[state] & STATE);
            automaton
                .transitions
                .copy_within(suffix << ROW_BITS..(suffix + 1) << ROW_BITS, state << ROW_BITS);
            for edge in &EDGES[child..child + usize::from(*count)] {
                child += 1;
                let transition = &mut automaton.transitions[(state << ROW_BITS) + usize::from(*edge)];
                // What the row of the suffix has there. A child of the root has no suffix but the root.
                automaton.suffixes[child] = if state == 0 { 0 } else { *transition };
                let has_literals =
                    !owners_of(child).is_empty() || automaton.suffixes[child] & HAS_LITERALS != 0;
                *transition = child as u16 | if has_literals { HAS_LITERALS } else { 0 };
            }
        }
        automaton
    }

    /// Appends every literal of `lowered`, in order of position within each lane and lanes in order.
    pub(super) fn find(&self, lowered: &[u8], found: &mut Vec<LiteralMatch>) {
        let lane_bytes = lowered.len() / LANES;
        if lane_bytes <= LONGEST_BYTES {
            self.walk(&mut 0, lowered, 0, found);
            return;
        }
        let overlap = LONGEST_BYTES - 1;
        let start = |lane: usize| if lane == 0 { 0 } else { lane * lane_bytes - overlap };
        let mut lane_found: [Vec<LiteralMatch>; LANES] = Default::default();
        let mut states = [0; LANES];
        let lanes: [&[u8]; LANES] =
            std::array::from_fn(|lane| &lowered[start(lane)..start(lane) + lane_bytes]);
        #[allow(clippy::needless_range_loop)] // one position in all lanes at once is the point
        for position in 0..lane_bytes {
            for lane in 0..LANES {
                states[lane] = self.next(states[lane], lanes[lane][position]);
                if states[lane] & HAS_LITERALS != 0 {
                    self.record(states[lane], start(lane) + position + 1, &mut lane_found[lane]);
                }
            }
        }
        for (lane, list) in lane_found.into_iter().enumerate() {
            found.extend(list);
            let end = if lane + 1 == LANES { lowered.len() } else { start(lane + 1) + overlap };
            let walked = start(lane) + lane_bytes;
            self.walk(&mut states[lane], &lowered[walked..end], walked, found);
        }
    }

    fn walk(&self, state: &mut u16, bytes: &[u8], base: usize, found: &mut Vec<LiteralMatch>) {
        for (position, byte) in bytes.iter().enumerate() {
            *state = self.next(*state, *byte);
            if *state & HAS_LITERALS != 0 {
                self.record(*state, base + position + 1, found);
            }
        }
    }

    fn next(&self, state: u16, byte: u8) -> u16 {
        self.transitions[(usize::from(state & STATE) << ROW_BITS) + usize::from(CLASS_OF[usize::from(byte)])]
    }

    #[cold]
    fn record(&self, state: u16, end: usize, found: &mut Vec<LiteralMatch>) {
        let mut state = state;
        while state & HAS_LITERALS != 0 {
            let owners = owners_of(usize::from(state & STATE));
            found.extend(owners.iter().map(|owner| LiteralMatch { end, owner: *owner }));
            state = self.suffixes[usize::from(state & STATE)];
        }
    }
}

/// The phrases of which the text of the state is a literal.
fn owners_of(state: usize) -> &'static [u16] {
    let start = if state == 0 { 0 } else { OWNER_ENDS[state - 1] };
    &OWNERS[usize::from(start)..usize::from(OWNER_ENDS[state])]
}
