//! What every use case needs, in one value: what its process shares between requests, and what the request owns.

mod copies_beside;
pub(crate) mod folds;
pub(crate) mod launchers;
pub mod ledger_state;
pub mod notices;
pub(crate) mod patience;
pub mod queue_limits;
pub(crate) mod request;

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use trackway_core::{Clock, Ids};
use trackway_formats::runfile::EngineName;
use trackway_formats::settings::EngineSettings;
use trackway_launch::{Launcher, LocalLauncher};
use trackway_ledger::Ledger;
use trackway_records::LiveRecords;
use trackway_redact::Redactor;
use trackway_system::{SystemClock, SystemIds};
use trackway_tables::ReadContext;

use crate::error::AppError;
use crate::home::Home;
use copies_beside::CopiesBeside;
use folds::Folds;
use launchers::Launchers;
use patience::{Outage, Patience};
use queue_limits::QueueLimits;
use request::{Actor, Request};

/// How long a wait sleeps before it looks for a request to stop.
const WAIT_TURN: Duration = Duration::from_millis(50);

/// What use cases take from the world, so that a test or another host can give them something else.
pub struct Dependencies {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn Ids>,
    /// What attempts are launched with; the plan of a run names which.
    pub launchers: Vec<Arc<dyn Launcher>>,
    /// The program that runs `__shim` and `score`.
    pub binary: PathBuf,
    /// How data is read: the limits, and what reads URLs.
    pub read_context: ReadContext,
    /// The address that notifications are sent to, unless a run file names another one.
    pub webhook: Option<String>,
    /// How many runs of each queue run at once; of others one.
    pub queues: QueueLimits,
}

impl Dependencies {
    /// The clock and the randomness of the operating system, and the local launcher.
    #[must_use]
    pub fn of_this_machine(binary: PathBuf) -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            launchers: vec![Arc::new(LocalLauncher::new(binary.clone()))],
            binary,
            read_context: ReadContext::default(),
            webhook: None,
            queues: QueueLimits::default(),
        }
    }

    /// The same with the engines of the settings.
    #[must_use]
    pub fn with_engines<'e>(
        mut self,
        engines: impl Iterator<Item = (&'e EngineName, &'e EngineSettings)>,
    ) -> Self {
        let local = LocalLauncher::new(self.binary.clone());
        let named = engines.map(|(name, settings)| launchers::local_engine(local.clone(), name, settings));
        self.launchers.extend(named.map(|launcher| Arc::new(launcher) as Arc<dyn Launcher>));
        self
    }
}

/// What the requests of a process share.
pub struct Shared {
    /// Where the state is.
    pub home: Home,
    pub(crate) ledger: Ledger,
    /// The copies of rows that are being written.
    pub(crate) copies: CopiesBeside,
    /// The records of attempts that are not sealed, as far as searches read them.
    pub live_records: LiveRecords,
    pub(crate) outage: Mutex<Outage>,
    /// What is known of the sealed attempts of runs: a receipt does not change, so that what follows reads those since then alone.
    pub(crate) folds: Folds,
    pub(crate) launchers: Launchers,
    /// This program, which runs `__shim` and `score`.
    pub binary: PathBuf,
    /// Removes secrets from everything that is stored.
    pub redactor: Arc<Redactor>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn Ids>,
    /// How data is read.
    pub read_context: ReadContext,
    /// The address that notifications are sent to, unless a run file names another one.
    pub webhook: Option<String>,
    /// How many runs of each queue run at once; of others one.
    pub queues: QueueLimits,
}

/// Everything a use case needs, for one request.
pub struct Context {
    shared: Arc<Shared>,
    /// What this request owns.
    pub request: Request,
    pub(crate) patience: Patience,
}

impl Deref for Context {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Context {
    /// Another request in the same home, beside this one.
    #[must_use]
    pub fn beside(&self, request: Request) -> Self {
        Self { shared: Arc::clone(&self.shared), request, patience: Patience::default() }
    }

    /// This request by the name that its user gave; without one by the same actor.
    #[must_use]
    pub fn acting_as(&self, named: Option<&str>) -> Self {
        let actor = match named {
            Some(_) => Actor::local_user(named),
            None => self.request.actor.clone(),
        };
        self.beside(Request { actor, ..self.request.clone() })
    }

    /// Whether the ledger can only be read.
    #[must_use]
    pub fn ledger_is_read_only(&self) -> bool {
        self.ledger.is_read_only()
    }

    /// Waits; false when a stop was requested meanwhile, by a signal or as `is_asked` shows.
    pub fn wait(&self, seconds: f64, is_asked: impl Fn() -> bool) -> bool {
        let is_stopped = || self.request.cancel.stop_requests() > 0 || is_asked();
        let until = self.clock.monotonic_micros() + (seconds * 1e6) as i64;
        while self.clock.monotonic_micros() < until {
            if is_stopped() {
                return false;
            }
            self.clock.sleep(WAIT_TURN);
        }
        !is_stopped()
    }

    /// Opens a home and its ledger, on this machine's clock and with the local launcher. With `create`, both are made when they are
    /// not there yet.
    ///
    /// `binary` is the program that runs `__shim` and `score`: normally this very program.
    ///
    /// # Errors
    /// As for [`Self::open_with`].
    pub fn open(home: Home, binary: PathBuf, create: bool) -> Result<Self, AppError> {
        Self::open_with(home, Dependencies::of_this_machine(binary), Request::of_local_user(), create)
    }

    /// The same with other dependencies, for a request.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::NotFound`] without a home and without `create`; of kind `Integrity` when attempts are
    /// there and their ledger is not; when the home cannot be read, or the ledger not be opened.
    pub fn open_with(
        home: Home,
        dependencies: Dependencies,
        request: Request,
        create: bool,
    ) -> Result<Self, AppError> {
        if create {
            home.make()?;
        }
        home.check_folder()?;
        home.check_ledger_scheme()?;
        let redactor = Redactor::of_this_process();
        if create {
            // What may write searches its texts for secrets: that is prepared while the ledger is opened.
            let redactor = Arc::clone(&redactor);
            std::thread::Builder::new().name("redactor".into()).spawn(move || redactor.prepare()).ok();
        }
        let orphans = ledger_state::orphans_without_ledger(&home)?;
        let ledger = Ledger::open(&home.ledger_location())?;
        let Dependencies { clock, ids, launchers, binary, read_context, webhook, queues } = dependencies;
        let shared = Shared {
            live_records: LiveRecords::of(home.folder()),
            home,
            ledger,
            copies: CopiesBeside::default(),
            outage: Mutex::default(),
            folds: Folds::default(),
            launchers: Launchers::new(launchers),
            binary,
            redactor,
            clock,
            ids,
            read_context,
            webhook,
            queues,
        };
        let context = Self { shared: Arc::new(shared), request, patience: Patience::default() };
        if orphans && context.ledger_read(Ledger::is_empty)? {
            return Err(ledger_state::lost_ledger(&context.home, "holds no run"));
        }
        Ok(context)
    }
}
