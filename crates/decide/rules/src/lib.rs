//! Pure decisions: what an end was ([`classify()`]), what comes next ([`decide()`]), what a person should do
//! ([`next_actions`]), how often to save ([`advise`]), what is judged before a launch ([`preflight`]: the memory a run needs,
//! whether its settings are sound, its classes even, and whether it learns one batch), what goes wrong while it trains ([`detect`]),
//! which launch shows the cause ([`diagnosis`]),
//! whether more training is worth it ([`early_stop`]), and whether a rung is good enough for the next ([`ladder`]). No
//! clock, no I/O, no randomness: time and jitter come in as arguments, so the same functions run live, in tests and in
//! simulation.

mod pattern;
pub mod scan;
pub mod signatures;

pub use scan::{Handling, Hit, LogEvidence, LogScanner, MAX_TEXT_BYTES, Phase};

mod advice;
pub mod checkpoints;
pub mod classify;
mod curves;
pub mod decide;
pub mod detect;
pub mod diagnosis;
pub mod early_stop;
pub mod gate;
pub mod health;
pub mod ladder;
pub mod preflight;
pub mod registry;
pub mod retention;
pub mod trust;

pub use advice::lines::{Line, Need, RankedLine, SeenSigns, Sign, joined, likely, ranked};
pub use advice::next_step::{RunShown, next_step, option_to_continue};
pub use advice::runbook::{before_resume, meaning, next_actions, runbook_section};
pub use advice::symptoms::{Symptom, symptom_of_detector};
pub use checkpoints::cadence::{CadenceAdvice, advise};
pub use checkpoints::load_crash::{LoadAttempt, LoadCrash, LoadCrashes};
pub use classify::{TerminationEvidence, TerminationVerdict, classify};
pub use decide::{Decision, History, PastAttempt, RetryPolicy, decide};
