//! A storage whose answers cannot be relied on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trackway_core::{Rng as _, SplitMix64};

use crate::backend::{Backend, Created};
use crate::error::{ErrorKind, StoreError};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendFault {
    /// It does not happen, and the caller does not learn it.
    ErrorBefore,
    /// It happens, and the answer is lost.
    ErrorAfter,
    /// The answer is lost, and it happens later: after so many calls of any caller.
    Late(u64),
    /// A create is answered with "exists" though it did not happen and the object need not exist: S3's answer (409)
    /// while another write of that name is in flight. Other calls are not touched.
    Conflict,
    /// It is refused, and did not happen.
    Refused,
}

/// How many of a thousand calls fail in each way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Odds {
    /// Reads that are not answered. The others are for calls that change something.
    pub read_error: u64,
    /// [`BackendFault::ErrorBefore`].
    pub error_before: u64,
    /// [`BackendFault::ErrorAfter`].
    pub error_after: u64,
    /// [`BackendFault::Late`], by up to 40 calls.
    pub late: u64,
    /// [`BackendFault::Conflict`].
    pub conflict: u64,
}

impl Odds {
    /// Some of everything.
    pub const BAD_DAY: Self =
        Self { read_error: 10, error_before: 50, error_after: 50, late: 30, conflict: 100 };
}

/// The most calls by which a write is late.
const MAX_LATE_CALLS: u64 = 40;

enum Plan {
    /// Calls `from..to` fail, counted from 0.
    Calls { from: u64, to: u64, fault: BackendFault },
    /// Seeded random faults.
    Mixed { rng: SplitMix64, odds: Odds },
}

impl Plan {
    fn fault_of(&mut self, call: u64, reads: bool) -> Option<BackendFault> {
        match self {
            Self::Calls { from, to, fault } => (*from..*to).contains(&call).then_some(*fault),
            Self::Mixed { rng, odds } => {
                let late = BackendFault::Late(1 + rng.next_u64() % MAX_LATE_CALLS);
                let mut draw = rng.next_u64() % 1000;
                if reads {
                    return (draw < odds.read_error).then_some(BackendFault::ErrorBefore);
                }
                let faults = [
                    (odds.error_before, BackendFault::ErrorBefore),
                    (odds.error_after, BackendFault::ErrorAfter),
                    (odds.late, late),
                    (odds.conflict, BackendFault::Conflict),
                ];
                for (odds, fault) in faults {
                    if draw < odds {
                        return Some(fault);
                    }
                    draw -= odds;
                }
                None
            }
        }
    }
}

/// A write whose answer was lost before it happened.
struct LateWrite {
    due_at_call: u64,
    name: String,
    bytes: Vec<u8>,
    replaces: bool,
}

struct State {
    calls: u64,
    struck: u64,
    plan: Plan,
    cut_off: bool,
    late: Vec<LateWrite>,
}

/// A storage with faults. Clones share them, so that several writers may fail together.
#[derive(Clone)]
pub struct FaultBackend {
    inner: Arc<dyn Backend>,
    state: Arc<Mutex<State>>,
}

impl FaultBackend {
    fn new(inner: Arc<dyn Backend>, plan: Plan) -> Self {
        let state = State { calls: 0, struck: 0, plan, cut_off: false, late: Vec::new() };
        Self { inner, state: Arc::new(Mutex::new(state)) }
    }

    /// Call number `call`, counted from 0, fails.
    pub fn at(inner: Arc<dyn Backend>, call: u64, fault: BackendFault) -> Self {
        Self::storm(inner, call..call + 1, fault)
    }

    /// Every call in a range fails.
    pub fn storm(inner: Arc<dyn Backend>, calls: std::ops::Range<u64>, fault: BackendFault) -> Self {
        Self::new(inner, Plan::Calls { from: calls.start, to: calls.end, fault })
    }

    /// Never fails, but for [`FaultBackend::cut_off`]: for counting.
    pub fn sound(inner: Arc<dyn Backend>) -> Self {
        Self::storm(inner, 0..0, BackendFault::ErrorBefore)
    }

    /// Calls fail at random; the same seed fails the same calls.
    pub fn mixed(inner: Arc<dyn Backend>, seed: u64, odds: Odds) -> Self {
        Self::new(inner, Plan::Mixed { rng: SplitMix64::new(seed), odds })
    }

    /// Puts the caller on the wrong side of a partition, or back: no call gets through.
    pub fn cut_off(&self, cut_off: bool) {
        self.state().cut_off = cut_off;
    }

    /// How many calls were made.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// How many calls failed.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.state().struck
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, executes what was late, and returns how this one fails.
    fn next_fault(&self, reads: bool) -> Option<BackendFault> {
        let mut state = self.state();
        let call = state.calls;
        state.calls += 1;
        let (due, late) =
            std::mem::take(&mut state.late).into_iter().partition(|late| late.due_at_call <= call);
        state.late = late;
        let mut fault = state.plan.fault_of(call, reads);
        if state.cut_off {
            fault = Some(BackendFault::ErrorBefore);
        }
        state.struck += u64::from(fault.is_some());
        drop(state);
        self.deliver(due);
        fault
    }

    fn deliver(&self, due: Vec<LateWrite>) {
        for LateWrite { name, bytes, replaces, .. } in due {
            // Its writer is long gone: the outcome is not reported.
            let _ = match replaces {
                true => self.inner.replace(&name, &bytes),
                false => self.inner.create(&name, &bytes).map(drop),
            };
        }
    }

    fn postpone(&self, calls: u64, name: &str, bytes: &[u8], replaces: bool) {
        let mut state = self.state();
        let due_at_call = state.calls + calls;
        state.late.push(LateWrite { due_at_call, name: name.into(), bytes: bytes.into(), replaces });
    }

    /// Does a call, or fails it.
    fn call<T>(
        &self,
        fault: Option<BackendFault>,
        action: &'static str,
        call: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let failed = |kind, why: &'static str| {
            Err(StoreError::Backend { kind, action, location: self.location(), source: why.into() })
        };
        match fault {
            None | Some(BackendFault::Conflict) => call(),
            Some(BackendFault::ErrorBefore | BackendFault::Late(_)) => {
                failed(ErrorKind::Unavailable, "the storage did not answer (injected)")
            }
            Some(BackendFault::ErrorAfter) => {
                let _ = call();
                failed(ErrorKind::Unavailable, "the answer was lost (injected)")
            }
            Some(BackendFault::Refused) => failed(ErrorKind::Refused, "not allowed (injected)"),
        }
    }
}

impl Backend for FaultBackend {
    fn location(&self) -> String {
        self.inner.location()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        let fault = self.next_fault(false);
        match fault {
            Some(BackendFault::Conflict) => return Ok(Created::Exists),
            Some(BackendFault::Late(calls)) => self.postpone(calls, name, bytes, false),
            _ => {}
        }
        self.call(fault, "create", || self.inner.create(name, bytes))
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.call(self.next_fault(true), "read", || self.inner.read(name, max_bytes))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let fault = self.next_fault(false);
        if let Some(BackendFault::Late(calls)) = fault {
            self.postpone(calls, name, bytes, true);
        }
        self.call(fault, "replace", || self.inner.replace(name, bytes))
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.call(self.next_fault(false), "remove", || self.inner.remove(name))
    }
}
