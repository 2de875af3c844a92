use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// How many threads this process may keep busy.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Does a piece of work for every item, on this thread and up to `threads - 1` others, in no certain order. Each thread
/// makes itself a tool and keeps it. After a failure no further item is begun; the first failure is returned.
pub(crate) fn try_for_each<T, S, E: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    make_tool: impl Fn() -> Result<S, E> + Sync,
    work: impl Fn(&mut S, T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let items = Mutex::new(items.into_iter());
    let failure = Mutex::new(None);
    let work_on = || {
        let mut tool = make_tool()?;
        while lock(&failure).is_none() {
            let Some(item) = lock(&items).next() else { break };
            work(&mut tool, item)?;
        }
        Ok(())
    };
    let run = || {
        if let Err(error) = work_on() {
            lock(&failure).get_or_insert(error);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // If no thread can be started, the others do the work.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Locks whatever happened to the last holder: what is guarded here is whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
