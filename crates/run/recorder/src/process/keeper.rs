//! The thread that copies artifacts in the background.

use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use trackway_core::Step;

/// When so many wait to be copied, a further one is not kept, which an event reports.
pub const ARTIFACTS_WAITING_MAX: usize = 256;

/// A file or folder that waits to be copied.
pub(crate) struct Job {
    pub name: String,
    pub path: PathBuf,
    /// Open since the call, so that the file may be deleted or replaced afterwards; none of a folder.
    pub file: Option<File>,
    pub step: Option<Step>,
}

/// The thread that copies, and the way to it.
pub(crate) struct Keeper {
    jobs: SyncSender<Job>,
    /// Disconnected when the thread is through.
    done: Receiver<()>,
}

impl Keeper {
    /// Starts the thread; `keep` copies one file or folder.
    pub fn start(mut keep: impl FnMut(Job) + Send + 'static) -> Result<Self, String> {
        let (jobs, waiting) = sync_channel::<Job>(ARTIFACTS_WAITING_MAX);
        let (through, done) = sync_channel(0);
        let work = move || {
            waiting.iter().for_each(&mut keep);
            drop(through);
        };
        let spawned = std::thread::Builder::new().name("trackway-artifacts".into()).spawn(work);
        spawned.map(|_| Self { jobs, done }).map_err(|error| error.to_string())
    }

    /// Hands over what is to be copied; else why it is not.
    pub fn take(&self, job: Job) -> Result<(), String> {
        self.jobs.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => {
                format!("{ARTIFACTS_WAITING_MAX} artifacts are already waiting to be copied")
            }
            TrySendError::Disconnected(_) => "the thread that copies artifacts has ended".to_owned(),
        })
    }

    /// Takes no more, and waits for those that were taken. False: not all are copied after that time.
    pub fn close(self, at_most: Duration) -> bool {
        drop(self.jobs);
        self.done.recv_timeout(at_most) != Err(std::sync::mpsc::RecvTimeoutError::Timeout)
    }
}
