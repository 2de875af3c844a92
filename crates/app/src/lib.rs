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
pub mod error;
pub mod evaluate;
pub mod explain;
mod find;
pub mod gates;
pub mod gc;
pub mod home;
pub mod import;
pub mod logs;
pub mod memory;
pub mod preflight;
pub mod probe;
pub mod progressive;
pub mod prove;
mod query;
mod reconcile;
pub mod registry;
pub mod rehearsal;
pub mod report;
mod roll_back;
pub mod run;
pub mod score;
mod scoring;
mod seal;
pub mod slices;
mod stop;
pub mod watch;

use std::path::PathBuf;

use trackway_launch::{LocalLauncher, Redactor};
use trackway_ledger::{Ledger, LedgerError};
use trackway_recorder::{SystemClock, SystemIds};

use crate::error::{AppError, ErrorKind};
use crate::home::Home;

pub use roll_back::{RollBackRequest, RolledBack};
pub use stop::StopAsked;

/// The stage of a run that uses all of its data.
pub const FULL_STAGE: &str = "100%";

/// Everything a use case needs.
pub struct App {
    /// Where the state is.
    pub home: Home,
    ledger: Ledger,
    launcher: LocalLauncher,
    redactor: Redactor,
    clock: SystemClock,
    ids: SystemIds,
}

impl App {
    /// Opens a home and its ledger. With `create`, both are made when they are not there yet.
    ///
    /// `shim_binary` is the program that runs `__shim`: normally this very program.
    ///
    /// # Errors
    /// [`error::ErrorKind::NotFound`] without a home and without `create`; when the ledger cannot be opened.
    pub fn open(home: Home, shim_binary: PathBuf, create: bool) -> Result<Self, AppError> {
        let folder = home.folder();
        if create {
            std::fs::create_dir_all(folder)
                .map_err(|error| AppError::file("make the home", folder, &error))?;
        } else if !folder.is_dir() && !home.has_ledger_elsewhere() {
            let message = format!("there is no Trackway home at `{}`", folder.display());
            return Err(AppError::new(ErrorKind::NotFound, message)
                .hint("name it with --home or TRACKWAY_HOME, or make one with `trackway run`"));
        }
        home.check_ledger_scheme()?;
        let ledger = Ledger::open(&home.ledger_location()).map_err(|error| ledger_error(&error))?;
        Ok(Self {
            home,
            ledger,
            launcher: LocalLauncher::new(shim_binary),
            redactor: Redactor::from_own_environment(),
            clock: SystemClock,
            ids: SystemIds,
        })
    }

    fn ledger_read<T>(&self, read: impl FnOnce(&Ledger) -> Result<T, LedgerError>) -> Result<T, AppError> {
        read(&self.ledger).map_err(|error| ledger_error(&error))
    }

    fn ledger_write<T>(&self, write: impl FnOnce(&Ledger) -> Result<T, LedgerError>) -> Result<T, AppError> {
        write(&self.ledger).map_err(|error| ledger_error(&error))
    }
}

fn ledger_error(error: &LedgerError) -> AppError {
    let kind = match error.kind() {
        trackway_ledger::ErrorKind::NotFound => ErrorKind::NotFound,
        trackway_ledger::ErrorKind::Usage => ErrorKind::Usage,
        trackway_ledger::ErrorKind::Integrity => ErrorKind::Integrity,
        trackway_ledger::ErrorKind::Locked => ErrorKind::Locked,
        trackway_ledger::ErrorKind::Newer | trackway_ledger::ErrorKind::Fault => ErrorKind::Fault,
    };
    AppError::new(kind, error.to_string())
}
