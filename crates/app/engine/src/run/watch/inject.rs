//! Faults that a user requests with `--inject`, to rehearse a recovery.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

use trackway_core::Step;
use trackway_formats::Variable;

/// What is done to the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL to the script's process group: like a machine that vanishes.
    Kill,
    /// SIGTERM to the script's process group: a preemption notice.
    Terminate,
}

/// When it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectionTime {
    /// The first time the attempt reports this step or a later one.
    Step(Step),
    /// In the first save of this step or a later one, when its files are written and its commit is not. The recorder
    /// holds the save there until the fault comes.
    Save(Step),
    /// The first time the attempt reports `step` or a later one while `committed`, or a later one, is committed: for a
    /// proof, which resumes from there.
    StepAfterCommit {
        /// The step it reports.
        step: Step,
        committed: Step,
    },
}

/// A fault and its time. It happens once in a run, in its first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injection {
    /// What is done.
    pub fault: Fault,
    /// When it is done.
    pub moment: InjectionTime,
}

/// Why a string is not an injection.
#[derive(Debug, thiserror::Error)]
#[error(
    "invalid fault `{0}`: expected `kill@step=N`, `kill@save=N`, `term@step=N` or `term@save=N`, such as `kill@step=120`"
)]
pub struct InjectionError(String);

impl Injection {
    /// What must be set in the attempt's environment for it.
    pub(crate) fn environment(&self) -> Option<(String, OsString)> {
        match self.moment {
            InjectionTime::Save(step) => {
                Some((Variable::HoldInSave.as_str().into(), step.to_string().into()))
            }
            InjectionTime::Step(_) | InjectionTime::StepAfterCommit { .. } => None,
        }
    }
}

impl FromStr for Injection {
    type Err = InjectionError;

    fn from_str(text: &str) -> Result<Self, InjectionError> {
        let error = || InjectionError(text.into());
        let (name, step) = text.split_once('=').ok_or_else(error)?;
        let step = step.parse().map_err(|_| error())?;
        let (fault, moment) = match name {
            "kill@step" => (Fault::Kill, InjectionTime::Step(step)),
            "kill@save" => (Fault::Kill, InjectionTime::Save(step)),
            "term@step" => (Fault::Terminate, InjectionTime::Step(step)),
            "term@save" => (Fault::Terminate, InjectionTime::Save(step)),
            _ => return Err(error()),
        };
        Ok(Self { fault, moment })
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = match self.fault {
            Fault::Kill => "kill",
            Fault::Terminate => "term",
        };
        match self.moment {
            InjectionTime::Step(step) | InjectionTime::StepAfterCommit { step, .. } => {
                write!(formatter, "{fault}@step={step}")
            }
            InjectionTime::Save(step) => write!(formatter, "{fault}@save={step}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a fault is read back as written, and that the error for a wrong one shows the right form.
    #[test]
    fn injections_round_trip_and_refuse_other_text() {
        for (text, fault, moment) in [
            ("kill@step=120", Fault::Kill, InjectionTime::Step(120)),
            ("term@save=300", Fault::Terminate, InjectionTime::Save(300)),
        ] {
            let injection: Injection = text.parse().unwrap();
            assert_eq!(injection, Injection { fault, moment });
            assert_eq!(injection.to_string(), text);
        }
        for wrong in ["", "kill", "kill@step=", "kill@step=-1", "burn@step=3", "kill@120", "kill@night=3"] {
            assert!(wrong.parse::<Injection>().unwrap_err().to_string().contains("kill@step=N"), "{wrong}");
        }
    }
}
