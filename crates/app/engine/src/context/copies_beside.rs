//! Writing copies of rows beside what follows: nothing waits for the disk for what the ledger has already.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SendError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

type Write = Box<dyn FnOnce() + Send>;

/// Copies that are being written, each after those before it.
#[derive(Debug, Default)]
pub(crate) struct CopiesBeside(Mutex<Option<Writing>>);

#[derive(Debug)]
struct Writing {
    /// Closed to end the thread.
    copies: Sender<Write>,
    thread: JoinHandle<()>,
}

impl CopiesBeside {
    /// Begins to write a copy. It is written here where no thread can be had.
    pub fn begin(&self, write: impl FnOnce() + Send + 'static) {
        let write: Write = Box::new(write);
        let mut writing = self.writing();
        if writing.is_none() {
            *writing = Writing::start();
        }
        let refused = match &*writing {
            Some(writing) => writing.copies.send(write).err(),
            None => Some(SendError(write)),
        };
        if let Some(SendError(write)) = refused {
            write();
        }
    }

    /// Waits until all are written.
    pub fn finish(&self) {
        // Held until then: what is begun meanwhile comes after them.
        let mut writing = self.writing();
        if let Some(Writing { copies, thread }) = writing.take() {
            drop(copies);
            let _ = thread.join();
        }
    }

    fn writing(&self) -> MutexGuard<'_, Option<Writing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writing {
    fn start() -> Option<Self> {
        let (copies, to_write) = channel::<Write>();
        // One that panics does not take those behind it away.
        let write_one = |write: Write| drop(catch_unwind(AssertUnwindSafe(write)));
        let write_all = move || to_write.into_iter().for_each(write_one);
        let thread = std::thread::Builder::new().name("copies".into()).spawn(write_all).ok()?;
        Some(Self { copies, thread })
    }
}

impl Drop for CopiesBeside {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::{ThreadId, current};

    use super::*;

    /// Proves that copies are written in their order in another thread, that all are when they were waited for or dropped, and that more
    /// may follow.
    #[test]
    fn copies_are_written_in_their_order() {
        let written: Arc<Mutex<Vec<(u32, ThreadId)>>> = Arc::default();
        let copies = CopiesBeside::default();
        let begin = |number: u32| {
            let written = Arc::clone(&written);
            copies.begin(move || written.lock().unwrap().push((number, current().id())));
        };
        let numbers = || written.lock().unwrap().iter().map(|(number, _)| *number).collect::<Vec<_>>();
        (0..50).for_each(begin);
        copies.finish();
        assert_eq!(numbers(), (0..50).collect::<Vec<_>>());
        begin(50);
        drop(copies);
        assert_eq!(numbers(), (0..=50).collect::<Vec<_>>());
        assert!(written.lock().unwrap().iter().all(|(_, thread)| *thread != current().id()));
    }

    /// Proves that a copy whose writing panics does not take those behind it away.
    #[test]
    fn a_panic_stops_no_other_copy() {
        let written: Arc<Mutex<Vec<u32>>> = Arc::default();
        let copies = CopiesBeside::default();
        copies.begin(|| panic!("a copy that panics"));
        let also = Arc::clone(&written);
        copies.begin(move || also.lock().unwrap().push(1));
        copies.finish();
        assert_eq!(*written.lock().unwrap(), [1]);
    }
}
