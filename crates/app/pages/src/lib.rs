//! Answers as HTML pages, for the command line and for a server: pure functions from an answer to a [`Page`].
//!
//! A page is one file that needs nothing else: no script, no font, no network. Markup is written with `maud`, which escapes texts;
//! [`Page`] is made in one place, which also takes out of the whole page every character that changes how text is displayed.

mod chart;
mod comparison;
mod evaluation;
mod explanation;
mod frame;
mod metrics;
mod parts;
mod postmortem;
mod preflight;
mod probe;
mod residuals;
mod run_parts;
mod runbook;

pub use comparison::{comparison, figures, labels};
pub use evaluation::evaluation;
pub use explanation::explanation;
pub use frame::{About, Page};
pub use metrics::metrics;
pub use postmortem::postmortem;
pub use preflight::preflight;
pub use probe::probe;
