//! Requests of a user or the system to a working use case: to stop, to end at once, or to continue without its terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use nix::sys::signal::Signal;

/// Requests to end what is being done. Clones share their state. Safe to call from a signal handler.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    requests: Arc<Requests>,
    is_stopped: Arc<AtomicBool>,
    is_ended: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Requests {
    stops: AtomicU32,
    last_signal: AtomicI32,
    is_detached: AtomicBool,
}

impl Cancel {
    /// Requests an end, because of a signal: once stops gracefully, twice kills.
    pub fn stop(&self, signal: i32) {
        self.requests.last_signal.store(signal, Ordering::SeqCst);
        self.requests.stops.fetch_add(1, Ordering::SeqCst);
        self.is_stopped.store(true, Ordering::SeqCst);
    }

    /// Requests that whatever is only read ends at once, unfinished; where something was launched, it is a stop too.
    pub fn end(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
        self.requests.stops.fetch_add(1, Ordering::SeqCst);
        self.is_stopped.store(true, Ordering::SeqCst);
    }

    /// Requests that a supervisor leave its script running: the terminal is gone.
    pub fn detach(&self) {
        self.requests.is_detached.store(true, Ordering::SeqCst);
    }

    /// How often an end was requested: 1 stops gracefully, 2 kills.
    #[must_use]
    pub fn stop_requests(&self) -> u32 {
        self.requests.stops.load(Ordering::SeqCst)
    }

    /// The name of the last signal.
    #[must_use]
    pub fn last_signal(&self) -> &'static str {
        let last = self.requests.last_signal.load(Ordering::SeqCst);
        Signal::try_from(last).map_or("a signal", Signal::as_str)
    }

    /// Whether the last request was Ctrl-C.
    #[must_use]
    pub fn is_interrupt(&self) -> bool {
        self.requests.last_signal.load(Ordering::SeqCst) == Signal::SIGINT as i32
    }

    /// Whether a supervisor has to leave its script running.
    #[must_use]
    pub fn is_detached(&self) -> bool {
        self.requests.is_detached.load(Ordering::SeqCst)
    }

    /// Whether reads have to end unfinished.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::SeqCst)
    }

    /// True from the first request for an end on.
    #[must_use]
    pub fn end_flag(&self) -> &Arc<AtomicBool> {
        &self.is_ended
    }

    /// True from the first request to stop or to end on.
    #[must_use]
    pub fn is_stopped(&self) -> &Arc<AtomicBool> {
        &self.is_stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a request reaches every clone and no other token: two runs of one process are stopped one by one.
    #[test]
    fn a_request_reaches_its_own_use_case_alone() {
        let (one, other) = (Cancel::default(), Cancel::default());
        let seen = one.clone();
        one.stop(Signal::SIGTERM as i32);
        one.detach();
        assert_eq!((seen.stop_requests(), seen.last_signal(), seen.is_detached()), (1, "SIGTERM", true));
        assert!(seen.is_stopped().load(Ordering::SeqCst));
        assert_eq!((other.stop_requests(), other.last_signal(), other.is_detached()), (0, "a signal", false));
        assert!(!other.is_stopped().load(Ordering::SeqCst));
    }

    /// Proves that an end is a stop too, and a stop is not an end.
    #[test]
    fn an_end_is_a_stop() {
        let cancel = Cancel::default();
        cancel.stop(Signal::SIGTERM as i32);
        assert!(!cancel.is_ended());
        cancel.end();
        assert_eq!((cancel.is_ended(), cancel.stop_requests()), (true, 2));
    }
}
