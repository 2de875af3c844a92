//! What one request owns, beside what its process shares with others: what ends it, who makes it, and where its notices go.

use std::fmt;

use trackway_system::Cancel;

use super::notices::Notices;
use crate::error::{AppError, ErrorKind};

/// One call of a use case: a command, a page, a call of a program.
#[derive(Debug, Clone)]
pub struct Request {
    /// What ends it. An end stops its reads with [`ErrorKind::Cancelled`]; a stop ends what it launched in order.
    pub cancel: Cancel,
    /// Who makes it: recorded with what it changes.
    pub actor: Actor,
    /// What it reports while it lasts.
    pub notices: Notices,
}

impl Request {
    /// A request of the user of this process, which nothing ends yet and no reader follows.
    #[must_use]
    pub fn of_local_user() -> Self {
        Self { cancel: Cancel::default(), actor: Actor::local_user(None), notices: Notices::default() }
    }

    /// Whether it may continue.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] after its end was requested.
    pub fn check_cancelled(&self) -> Result<(), AppError> {
        match self.cancel.is_ended() {
            true => Err(AppError::new(ErrorKind::Cancelled, "interrupted")),
            false => Ok(()),
        }
    }
}

/// How it is known who makes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The login of this process, or a name that its user gave: nothing proves it.
    LocalUser,
}

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The name, as records have it; none if the system has no login for this process.
    pub name: Option<String>,
    /// How it is known.
    pub proof: Proof,
}

impl Actor {
    /// The user of this process: by the name that was given, else by the login.
    #[must_use]
    pub fn local_user(named: Option<&str>) -> Self {
        Self { name: named.map(str::to_owned).or_else(login), proof: Proof::LocalUser }
    }

    /// The name for a record that needs one.
    #[must_use]
    pub fn name_or_unknown(&self) -> String {
        self.name.clone().unwrap_or_else(|| "unknown".into())
    }
}

/// `local user anna, not proved`
impl fmt::Display for Actor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.proof {
            Proof::LocalUser => write!(out, "local user {}, not proved", self.name_or_unknown()),
        }
    }
}

/// The login of this process; none if the system has none.
fn login() -> Option<String> {
    let named = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let of_process =
        || nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|user| user.name);
    named.into_iter().find(|name| !name.trim().is_empty()).or_else(of_process)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a given name takes precedence over the login, and that an actor is shown with how it is known.
    #[test]
    fn an_actor_is_named_with_its_proof() {
        let anna = Actor::local_user(Some("anna"));
        assert_eq!(anna.name.as_deref(), Some("anna"));
        assert_eq!(anna.to_string(), "local user anna, not proved");
        let nameless = Actor { name: None, proof: Proof::LocalUser };
        assert_eq!(nameless.to_string(), "local user unknown, not proved");
        assert_eq!(Actor::local_user(None).name, login());
    }

    /// Proves that only an end cancels: a stop ends what was launched, which is read and written until then.
    #[test]
    fn a_stop_does_not_cancel() {
        let request = Request::of_local_user();
        request.cancel.stop(15);
        request.check_cancelled().unwrap();
        request.cancel.end();
        assert_eq!(request.check_cancelled().unwrap_err().kind, ErrorKind::Cancelled);
    }
}
