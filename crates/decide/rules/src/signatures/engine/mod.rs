//! What the states of an engine mean, as data: one table for each engine.

mod clouds;
mod kubernetes;
mod ray;
mod slurm;

use trackway_core::TerminationReason as Reason;

use super::RuleName;

/// A state of an engine, or the reason it gives.
#[derive(Debug, Clone, Copy)]
pub struct EngineSignature {
    /// A stable name, `engine.state`; it is the rule's name in a verdict.
    pub rule: RuleName,
    /// What the state means.
    pub reason: Reason,
    /// Whether the state admits no other reading.
    pub conclusive: bool,
    /// Whether another signature that matches too says more.
    pub general: bool,
    /// The state has one of these words: its letters and digits, in upper case.
    pub words: &'static [&'static str],
}

impl EngineSignature {
    /// A state that admits one reading only.
    const fn certain(rule: &'static str, reason: Reason, words: &'static [&'static str]) -> Self {
        Self { rule: RuleName(rule), reason, conclusive: true, general: false, words }
    }

    /// A state that may mean something else too.
    const fn likely(rule: &'static str, reason: Reason, words: &'static [&'static str]) -> Self {
        Self { conclusive: false, ..Self::certain(rule, reason, words) }
    }

    /// A state that other words beside it make more precise.
    const fn general(rule: &'static str, reason: Reason, words: &'static [&'static str]) -> Self {
        Self { general: true, ..Self::likely(rule, reason, words) }
    }

    /// Of several that match, the one with the lowest rank is read.
    fn rank(&self, word_length: usize) -> (bool, usize, std::cmp::Reverse<usize>) {
        let place = STRONGEST_FIRST.iter().position(|reason| *reason == self.reason);
        (self.general, place.unwrap_or(STRONGEST_FIRST.len()), std::cmp::Reverse(word_length))
    }
}

/// What outranks what, where an engine gives several words: a job that was cancelled because memory ran out was out of memory.
const STRONGEST_FIRST: [Reason; 8] = [
    Reason::HostOom,
    Reason::StorageError,
    Reason::NodeFailure,
    Reason::Preempted,
    Reason::Timeout,
    Reason::BudgetExhausted,
    Reason::Cancelled,
    Reason::CodeError,
];

/// Every engine with its table. The words of an engine that is not here are looked up in all of them.
const ENGINES: &[(&str, &[EngineSignature])] = &[
    ("slurm", slurm::STATES),
    ("kubernetes", kubernetes::STATES),
    ("ray", ray::STATES),
    ("clouds", clouds::STATES),
];

/// Every state that means something, by engine.
pub fn all() -> impl Iterator<Item = (&'static str, &'static EngineSignature)> {
    ENGINES.iter().flat_map(|(engine, states)| states.iter().map(move |state| (*engine, state)))
}

/// What the words of an engine mean; none where they only say that the job failed or ended.
#[must_use]
pub fn meaning(engine: &str, texts: &[&str]) -> Option<&'static EngineSignature> {
    let texts: Vec<String> = texts.iter().map(|text| squeezed(text)).collect();
    let is_known = ENGINES.iter().any(|(name, _)| *name == engine);
    let states = all().filter(|(of, _)| !is_known || *of == engine).map(|(_, state)| state);
    let matching = states.filter_map(|state| {
        let words = state.words.iter().filter(|word| texts.iter().any(|text| text.contains(**word)));
        Some((state, words.map(|word| word.len()).max()?))
    });
    matching.min_by_key(|(state, word_length)| state.rank(*word_length)).map(|(state, _)| state)
}

fn squeezed(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect()
}
