//! When the script printed what is read now: on a machine whose processors are all in use, some time before it is read.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use trackway_core::Timestamp;

/// Two numbers and a third one that is not read, of at most twenty digits each.
const SCHEDSTAT_BYTES: usize = 64;

/// How long the thread that reads the outputs waited for a processor.
#[derive(Debug)]
pub(in crate::shim) struct Waking {
    /// None where the kernel does not say.
    schedstat: Option<File>,
    waited_ns: u64,
    /// The outputs were read until then, in microseconds of the monotonic clock.
    read_until: i64,
}

impl Waking {
    /// For the thread that calls it.
    pub fn of_this_thread() -> Self {
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        let mut waking = Self { schedstat, waited_ns: 0, read_until: i64::MIN };
        waking.waited_ns = waking.waited_in_all().unwrap_or(0);
        waking
    }

    /// The earliest time at which what is read now was printed; to be asked once before each read.
    pub fn printed_from(&mut self, now: Timestamp, now_micros: i64) -> Timestamp {
        let waited_ns = self.waited_in_all().unwrap_or(self.waited_ns);
        let waited_micros = waited_ns.saturating_sub(self.waited_ns) / 1000;
        self.waited_ns = waited_ns;
        let late = late_micros(waited_micros, now_micros, self.read_until);
        self.read_until = now_micros;
        Timestamp::from_micros(now.as_micros().saturating_sub(late))
    }

    fn waited_in_all(&self) -> Option<u64> {
        let mut bytes = [0; SCHEDSTAT_BYTES];
        let length = self.schedstat.as_ref()?.read_at(&mut bytes, 0).ok()?;
        std::str::from_utf8(&bytes[..length]).ok()?.split_whitespace().nth(1)?.parse().ok()
    }
}

/// So much earlier than now it can have been printed: as long as the thread waited, but not before the last read, which
/// found nothing of it.
fn late_micros(waited_micros: u64, now_micros: i64, read_until: i64) -> i64 {
    let waited = i64::try_from(waited_micros).unwrap_or(i64::MAX);
    waited.min(now_micros.saturating_sub(read_until)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what is read late counts as printed when the thread began to wait for a processor, but never before the read before it.
    #[test]
    fn a_late_read_is_not_a_late_print() {
        for (waited, now, read_until, late) in [
            (0, 1_000, 0, 0),
            (300, 1_000, 0, 300),
            (300, 1_000, 900, 100),
            (300, 1_000, 1_000, 0),
            (300, 1_000, 2_000, 0),
            (u64::MAX, 1_000, i64::MIN, i64::MAX),
        ] {
            assert_eq!(late_micros(waited, now, read_until), late, "{waited} {now} {read_until}");
        }
    }

    /// Proves that waits are counted once each, and that the time is never after now.
    #[test]
    fn waits_are_counted_once() {
        let mut waking = Waking::of_this_thread();
        let now = Timestamp::from_micros(5_000_000);
        waking.printed_from(now, 1_000);
        assert_eq!(waking.printed_from(now, 1_000), now, "nothing can be printed between reads at one time");
        let without = Waking { schedstat: None, waited_ns: 7, read_until: 0 }.printed_from(now, 1_000);
        assert_eq!(without, now, "a kernel that says nothing");
    }
}
