//! Pure decisions: what an end was ([`classify()`]), what comes next ([`decide()`]), what a person should do
//! ([`next_actions`]), how often to save ([`advise`]), what memory a run needs ([`memory`]), whether its settings are sound
//! ([`config_checks`]), its classes even ([`imbalance`]), whether it learns one batch ([`rehearsal`]), what goes wrong while it trains ([`detect`]), which launch
//! shows the cause ([`diagnosis`]),
//! whether more training is worth it ([`early_stop`]), and whether a rung is good enough for the next ([`ladder`]). No clock, no I/O, no randomness: time and jitter come in as
//! arguments, so the same functions run live, in tests and in simulation.

mod pattern;
pub mod scan;
pub mod signatures;

pub use scan::{Handling, Hit, LogEvidence, LogScanner, MAX_TEXT_BYTES, Phase};

mod began_again;
pub mod cadence;
pub use cadence::{CadenceAdvice, advise};

pub mod classify;
pub use classify::{TerminationEvidence, TerminationVerdict, classify};

pub mod config_checks;
pub mod cost;
pub mod decide;
pub use decide::{Decision, History, PastAttempt, RetryPolicy, decide};
pub mod detect;
pub mod diagnosis;
pub mod early_stop;
pub mod gate;
pub mod health;
pub mod imbalance;
mod load_crash;
mod loss_level;
pub use load_crash::{LoadAttempt, LoadCrash, load_crash};
pub mod memory;
mod next_step;
pub use next_step::{RunShown, next_step, option_to_continue};
pub mod progressive;
pub mod registry;
pub mod rehearsal;
mod reinforcement;
pub mod retention;
pub mod roll_back;
mod runbook;
pub use runbook::{
    Line, Need, Ranked, SeenSigns, Sign, Symptom, before_resume, joined, likely, meaning, next_actions,
    ranked, runbook_section, symptom_of_detector,
};
pub mod ladder;
pub mod trust;
pub mod worn;
