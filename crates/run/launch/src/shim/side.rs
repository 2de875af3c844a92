//! The threads beside the one that drains the script's outputs: a slow disk or a driver that hangs stops none but its own.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
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
    stop: Option<Sender<()>>,
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
        Some(Self { stop: Some(stop), done, wait_max })
    }

    /// Lets the work end, and does not wait for that.
    pub fn end(&mut self) {
        self.stop = None;
    }

    /// Ends the work, and gives back what it left. Work that does not end in time is left behind.
    pub fn finish(mut self) -> Option<T> {
        self.end();
        self.done.recv_timeout(self.wait_max).ok()
    }
}

/// What both find. The second one works in another thread meanwhile, where one can be had.
pub(super) fn side_by_side<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    std::thread::scope(|scope| {
        let beside = std::thread::Builder::new().name("beside".into()).spawn_scoped(scope, &second);
        let first = first();
        // What ended in a panic there does so here, too.
        let second = beside.ok().and_then(|beside| beside.join().ok()).unwrap_or_else(&second);
        (first, second)
    })
}

/// Begins work in another thread, to be waited for. It is done here where no thread can be had.
pub(super) fn begin_beside(name: &str, work: impl Fn() + Send + Sync + 'static) -> Option<JoinHandle<()>> {
    let work = Arc::new(work);
    let there = Arc::clone(&work);
    let thread = std::thread::Builder::new().name(name.into()).spawn(move || there());
    thread.inspect_err(|_| work()).ok()
}

/// A thread that waits for the kernel until the attempt ends.
#[derive(Debug)]
pub(super) struct WaitingThread {
    /// Closed to end the wait.
    stop: Option<UnixStream>,
    thread: SideThread,
}

impl WaitingThread {
    /// Begins to wait; what `wait` is given can be read once the attempt has ended. `None` when no thread can be had:
    /// then nothing is known.
    pub fn begin(
        name: &str,
        wait_max: Duration,
        wait: impl FnOnce(&UnixStream) + Send + 'static,
    ) -> Option<Self> {
        let (stop, stopped) = UnixStream::pair().ok()?;
        let thread = SideThread::begin(name, wait_max, move |_| wait(&stopped))?;
        Some(Self { stop: Some(stop), thread })
    }

    /// Lets the wait end, and what was reported until now be taken in beside what the caller does.
    pub fn end(&mut self) {
        self.stop = None;
    }

    /// Ends the wait, and takes in what was reported until now.
    pub fn finish(mut self) {
        self.end();
        self.thread.finish();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Proves that work which may end does so before it is waited for, and leaves what it found.
    #[test]
    fn work_ends_before_it_is_waited_for() {
        let (ended, seen) = channel();
        let work = move |stopped: &Receiver<()>| {
            stopped.recv().ok();
            ended.send(()).ok();
            7
        };
        let mut thread = SideThread::begin("test", Duration::from_secs(60), work).unwrap();
        assert_eq!(seen.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty));
        thread.end();
        seen.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(thread.finish(), Some(7));
    }

    /// Proves that work which was begun beside other work is done once it was waited for.
    #[test]
    fn work_beside_is_done_once_it_was_waited_for() {
        let (done, seen) = std::sync::mpsc::sync_channel(1);
        let thread = begin_beside("test", move || done.send(std::thread::current().id()).unwrap());
        thread.unwrap().join().unwrap();
        assert!(seen.try_recv().is_ok_and(|by| by != std::thread::current().id()));
    }

    /// Proves that two pieces of work are done at the same time, and that what breaks in the other thread is done again in this one.
    #[test]
    fn work_is_done_side_by_side() {
        let both = Barrier::new(2);
        let (first, second) = side_by_side(|| both.wait().is_leader(), || both.wait().is_leader());
        assert!(first != second);
        let here = std::thread::current().id();
        let second = || {
            assert_eq!(std::thread::current().id(), here, "it is another thread");
            5
        };
        assert_eq!(side_by_side(|| 3, second), (3, 5));
    }
}
