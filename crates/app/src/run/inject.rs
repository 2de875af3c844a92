//! Faults a person asks for with `--inject`, to rehearse a recovery.

use std::fmt;
use std::str::FromStr;

use trackway_core::Step;

/// What is done to the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL to the script's process group: the machine is gone without a word.
    Kill,
    /// SIGTERM to the script's process group: a preemption notice.
    Terminate,
}

/// A fault and the moment it happens: the first time the attempt reports `step` or a later one.
/// It happens once in a run, in its first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injection {
    /// What is done.
    pub fault: Fault,
    /// The step at which it is done.
    pub step: Step,
    /// … and not before this step, or a later one, is committed: for a proof, which resumes from there.
    pub after_commit_of: Option<Step>,
}

/// Why a text is no injection.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no fault: expected `kill@step=N` or `term@step=N`, such as `kill@step=120`")]
pub struct InjectionError(String);

impl FromStr for Injection {
    type Err = InjectionError;

    fn from_str(text: &str) -> Result<Self, InjectionError> {
        let error = || InjectionError(text.into());
        let (fault, step) = text.split_once("@step=").ok_or_else(error)?;
        let fault = match fault {
            "kill" => Fault::Kill,
            "term" => Fault::Terminate,
            _ => return Err(error()),
        };
        Ok(Self { fault, step: step.parse().map_err(|_| error())?, after_commit_of: None })
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = match self.fault {
            Fault::Kill => "kill",
            Fault::Terminate => "term",
        };
        write!(formatter, "{fault}@step={}", self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a fault is read back as written, and that a wrong one is told with the right form.
    #[test]
    fn injections_round_trip_and_refuse_other_text() {
        let injection: Injection = "kill@step=120".parse().unwrap();
        assert_eq!(injection, Injection { fault: Fault::Kill, step: 120, after_commit_of: None });
        assert_eq!(injection.to_string(), "kill@step=120");
        for wrong in ["", "kill", "kill@step=", "kill@step=-1", "burn@step=3", "kill@120"] {
            assert!(wrong.parse::<Injection>().unwrap_err().to_string().contains("kill@step=N"), "{wrong}");
        }
    }
}
