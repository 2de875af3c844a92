//! Lines that determine how to read the lines around them.

use trackway_core::TerminationReason::Unknown;

use super::{Role, RuleName, Signature};

/// Marks the exception that follows.
pub(crate) const EXCEPTION_IGNORED: RuleName = RuleName("marker.exception_ignored");
/// Marks that the run was resumed.
pub(crate) const RESUMED: RuleName = RuleName("marker.resumed");

pub(super) const SIGNATURES: &[Signature] = &[
    Signature::new(
        "marker.handled",
        Unknown,
        Role::Handled,
        r"skipping (this |the |bad |corrupt\w* |batch|sample|step|file|record|image|epoch|row|line|update|broken)|\bretrying\b|will retry|\bretry \d+ ?(/|of)|trying again|\bignor(ing|ed)\b|\bcontinuing\b|falling back|fall ?back to|recovered|reconnected|entering retry|backing off|(resuming|restarting|restored|continuing) (training )?(from|with)|(reducing|halving)[^\n]{0,20}batch",
    )
    // A tracker reports its uploads; what the interpreter ignores at its end is in the lines that follow; TensorFlow counts errors that follow from
    // others.
    .unless(r"^\W*wandb|ignored in\b|derived errors ignored"),
    Signature::new(EXCEPTION_IGNORED.as_str(), Unknown, Role::Handled, r"exception ignored in\b|error in atexit\._run_exitfuncs"),
    Signature::new(
        RESUMED.as_str(),
        Unknown,
        Role::Handled,
        r"(resum|restart|continu)(ing|ed)[^\n]{0,20} (training )?(from|at) [^\n]{0,60}(step|epoch|checkpoint|iter|ckpt)|\battempt #?\d+\W{0,3} (has |is |was )?(started|running|launched|begins|begun)|\b(starting|launching) attempt\b|\brestart(ing|ed) (the )?(job|run|worker group|workers|task|pod)\b|\brelaunch(ing|ed)\b",
    ),
    Signature::new(
        "marker.another_exception",
        Unknown,
        Role::Chain,
        r"during handling of the above exception|direct cause of the following exception|^\W*caused by:",
    ),
];
