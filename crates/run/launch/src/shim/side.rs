//! The threads beside the one that drains the script's outputs: a slow disk or a driver that hangs stops none but its own.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use trackway_core::Clock;
use trackway_recorder::{Origin, SegmentInfo, SegmentWriter};

/// Where the shim records what it sees of the attempt.
#[derive(Debug, Clone)]
pub(super) struct Records {
    pub folder: PathBuf,
    pub run_id: String,
    pub attempt_id: String,
    pub clock: Arc<dyn Clock>,
}

impl Records {
    /// Segments of this origin.
    pub fn writer(&self, origin: Origin) -> SegmentWriter {
        let info = SegmentInfo { run_id: self.run_id.clone(), attempt_id: self.attempt_id.clone(), origin };
        SegmentWriter::create(&self.folder, info, Arc::clone(&self.clock))
    }
}

/// A thread that works until the attempt ends.
#[derive(Debug)]
pub(super) struct SideThread<T = ()> {
    /// Closed to end the work.
    stop: Sender<()>,
    done: Receiver<T>,
    wait_max: Duration,
}

impl<T: Send + 'static> SideThread<T> {
    /// Begins to work. `None` when no thread can be had: the script continues without. `wait_max`: the longest the end of the
    /// attempt waits for the end of the work.
    pub fn begin(
        name: &str,
        wait_max: Duration,
        work: impl FnOnce(&Receiver<()>) -> T + Send + 'static,
    ) -> Option<Self> {
        let (stop, stopped) = channel();
        let (tell, done) = channel();
        let work = move || {
            // The receiver is gone when the end of the work took too long.
            tell.send(work(&stopped)).ok();
        };
        std::thread::Builder::new().name(name.into()).spawn(work).ok()?;
        Some(Self { stop, done, wait_max })
    }

    /// Ends the work, and gives back what it left. Work that does not end in time is left behind.
    pub fn finish(self) -> Option<T> {
        drop(self.stop);
        self.done.recv_timeout(self.wait_max).ok()
    }
}

/// A thread that waits for the kernel until the attempt ends.
#[derive(Debug)]
pub(super) struct WaitingThread {
    /// Closed to end the wait.
    stop: UnixStream,
    thread: SideThread,
}

impl WaitingThread {
    /// Begins to wait; what `wait` is given can be read once the attempt has ended. `None` when no thread can be had: then nothing is known.
    pub fn begin(
        name: &str,
        wait_max: Duration,
        wait: impl FnOnce(&UnixStream) + Send + 'static,
    ) -> Option<Self> {
        let (stop, stopped) = UnixStream::pair().ok()?;
        let thread = SideThread::begin(name, wait_max, move |_| wait(&stopped))?;
        Some(Self { stop, thread })
    }

    /// Ends the wait, and takes in what was reported until now.
    pub fn finish(self) {
        drop(self.stop);
        self.thread.finish();
    }
}
