//! The use cases of Trackway in plain data: the only place where launchers, records, ledger and decisions meet.
//! Nothing here knows a command line or a web request, and nothing here prints.

pub mod actions;
pub mod assess;
pub mod capture;
pub mod checkpoints;
pub mod classify;
pub mod compare;
pub mod control;
pub mod data;
pub mod doctor;
pub mod error;
pub mod evaluate;
pub mod explain;
mod find;
pub mod gates;
pub mod gc;
pub mod home;
pub mod import;
pub mod init;
mod kept;
mod launchers;
pub mod logs;
pub mod memory;
pub mod model_pin;
mod names;
pub mod outputs;
pub mod patience;
pub mod preflight;
pub mod probe;
pub mod progressive;
pub mod prove;
mod query;
pub mod rebuild;
mod reconcile;
pub mod registry;
pub mod rehearsal;
pub mod report;
mod roll_back;
pub mod run;
mod save_reason;
pub mod score;
mod scoring;
mod seal;
pub mod set_aside;
pub mod slices;
mod stop;
mod stored;
mod usage;
pub mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use trackway_launch::{Launcher, LocalLauncher};
use trackway_ledger::Ledger;
use trackway_redact::Redactor;
use trackway_system::{Cancel, SystemClock, SystemIds};

use crate::error::{AppError, ErrorKind};
use crate::home::Home;
use crate::launchers::Launchers;
use crate::patience::{Patience, ledger_error};

pub use roll_back::{RollBackRequest, RolledBack};
pub use stop::StopAsked;

/// The rung of a run that uses all of its data.
pub const FULL_RUNG: &str = "100%";

/// Everything a use case needs.
pub struct App {
    /// Where the state is.
    pub home: Home,
    ledger: Ledger,
    patience: Patience,
    launchers: Launchers,
    /// This program, which runs `__shim` and `score`.
    binary: PathBuf,
    redactor: Arc<Redactor>,
    clock: SystemClock,
    ids: SystemIds,
    cancel: Cancel,
}

impl App {
    /// What ends its use cases.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Opens a home and its ledger. With `create`, both are made when they are not there yet.
    ///
    /// `binary` is the program that runs `__shim` and `score`: normally this very program.
    ///
    /// # Errors
    /// [`error::ErrorKind::NotFound`] without a home and without `create`; [`error::ErrorKind::Integrity`] when attempts are
    /// there and their ledger is not; when the ledger cannot be opened.
    pub fn open(home: Home, binary: PathBuf, create: bool) -> Result<Self, AppError> {
        let folder = home.folder();
        if create {
            home.make()?;
        } else if !folder.is_dir() && !home.has_ledger_elsewhere() {
            let message = format!("there is no Trackway home at `{}`", folder.display());
            return Err(AppError::new(ErrorKind::NotFound, message)
                .hint("name it with --home or TRACKWAY_HOME, or make one with `trackway run`"));
        }
        home.check_ledger_scheme()?;
        let orphans = doctor::orphans_without_ledger(&home)?;
        let ledger = Ledger::open(&home.ledger_location()).map_err(|error| ledger_error(&error))?;
        let local: Arc<dyn Launcher> = Arc::new(LocalLauncher::new(binary.clone()));
        let app = Self {
            home,
            ledger,
            patience: Patience::default(),
            launchers: Launchers::new([local]),
            binary,
            redactor: Redactor::of_this_process(),
            clock: SystemClock,
            ids: SystemIds,
            cancel: Cancel::default(),
        };
        if orphans && app.ledger_read(Ledger::is_empty)? {
            return Err(doctor::lost_ledger(&app.home, "holds no run"));
        }
        Ok(app)
    }
}
