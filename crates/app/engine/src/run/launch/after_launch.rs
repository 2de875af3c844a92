//! An error after a launch: the script was started, so that a person does not start it a second time.

use trackway_launch::{ExitRecord, Observation, Placement};
use trackway_ledger::AttemptRow;

use crate::Context;
use crate::error::AppError;

/// The error of work that follows a launch, with what is known of the script and what to do.
pub fn after_launch(
    context: &Context,
    attempt: &AttemptRow,
    placement: &Placement,
    error: AppError,
) -> AppError {
    let seen = context.observe(placement).ok().map(|seen| seen.state);
    let error = error.within(format!("attempt {} {}", attempt.attempt_id, what_became_of_it(seen.as_ref())));
    match error.kind.is_passing() {
        true => error.hint(format!("later: trackway resume {}", attempt.run_id)),
        false => error.hint(what_to_do(seen.as_ref())),
    }
}

/// What became of a script that was launched, as far as it is seen.
fn what_became_of_it(seen: Option<&Observation>) -> String {
    let end = match seen {
        Some(Observation::Exited(exit)) => end_of(exit),
        Some(Observation::Gone { .. }) => "its script has ended, how is not known".into(),
        Some(Observation::Running(_) | Observation::Pending { .. }) => "it has not ended".into(),
        Some(Observation::CannotTell { .. }) | None => "whether its script has ended is not known".into(),
    };
    format!("was launched ({end}), but not all of it could be written down")
}

fn end_of(exit: &ExitRecord) -> String {
    match (&exit.spawn_error, exit.exit_code, exit.signal) {
        (Some(_), _, _) => "its script did not begin".into(),
        (None, Some(code), _) => format!("its script ended with exit code {code}"),
        (None, None, Some(signal)) => format!("its script was ended by signal {signal}"),
        (None, None, None) => "its script has ended".into(),
    }
}

/// How what is missing is written down without another launch.
fn what_to_do(seen: Option<&Observation>) -> &'static str {
    match seen {
        Some(Observation::Exited(_) | Observation::Gone { .. }) => {
            "do not start it again: where the disk is full, free some space; then `trackway runs` writes down how it ended, and launches nothing"
        }
        _ => {
            "do not start it again: where the disk is full, free some space; `trackway runs` shows whether it runs, and launches nothing"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an error after the launch says that the script was launched and how it ended, as far as that is
    /// known, and that it is not to be started again.
    #[test]
    fn what_was_launched_is_said() {
        let exited = |exit_code, signal| {
            Observation::Exited(Box::new(ExitRecord { exit_code, signal, ..ExitRecord::default() }))
        };
        let gone = Observation::Gone { why: "no process".into(), rebooted: false };
        let pending = Observation::Pending { why: "priority".into() };
        for (seen, expected, next) in [
            (Some(exited(Some(3), None)), "its script ended with exit code 3", "how it ended"),
            (Some(exited(None, Some(9))), "its script was ended by signal 9", "how it ended"),
            (Some(gone), "its script has ended, how is not known", "how it ended"),
            (Some(pending), "it has not ended", "whether it runs"),
            (None, "whether its script has ended is not known", "whether it runs"),
        ] {
            let said = what_became_of_it(seen.as_ref());
            assert!(said.starts_with(&format!("was launched ({expected})")), "{said}");
            let hint = what_to_do(seen.as_ref());
            assert!(hint.starts_with("do not start it again") && hint.contains(next), "{hint}");
        }
    }
}
