//! Whether what a script left behind when it ended well still works: whether it prints, records or computes.

use std::path::Path;

use nix::unistd::{SysconfVar, sysconf};
use trackway_recorder::Origin;

/// So much time on processors since the last sign of work is the next one, in seconds: a process that waits takes far less.
const CPU_SECONDS: u64 = 1;

/// What an attempt has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shim) struct Done {
    /// By all of its processes.
    pub printed_bytes: u64,
    /// By Trackway's recorder in them.
    pub recorded_bytes: u64,
    /// By those that are left.
    pub cpu_ticks: u64,
}

/// When what is left was last seen to work.
#[derive(Debug)]
pub(in crate::shim) struct Work {
    cpu_ticks_min: u64,
    /// As it was at the last sign.
    seen: Option<Done>,
    worked_at: Option<i64>,
}

impl Work {
    pub fn of_this_machine() -> Self {
        let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten();
        Self::counted_in(ticks.and_then(|ticks| u64::try_from(ticks).ok()).unwrap_or(100))
    }

    fn counted_in(ticks_per_second: u64) -> Self {
        Self { cpu_ticks_min: CPU_SECONDS * ticks_per_second, seen: None, worked_at: None }
    }

    /// Takes what was done until `now`. Returns when it was last seen to work; none: not since the first look.
    pub fn take(&mut self, now: i64, done: Done) -> Option<i64> {
        let before = self.seen.get_or_insert(done);
        // A process that ended takes its time with it.
        before.cpu_ticks = before.cpu_ticks.min(done.cpu_ticks);
        let has_worked = done.printed_bytes > before.printed_bytes
            || done.recorded_bytes > before.recorded_bytes
            || done.cpu_ticks - before.cpu_ticks >= self.cpu_ticks_min;
        if has_worked {
            *before = done;
            self.worked_at = Some(now);
        }
        self.worked_at
    }
}

/// The bytes that Trackway's recorder wrote in the processes of the script.
pub(in crate::shim) fn recorded_bytes(records: &Path) -> u64 {
    let of_script = format!("-{}-", Origin::Sdk.as_str());
    let entries = std::fs::read_dir(records).into_iter().flatten().flatten();
    let own = entries.filter(|entry| entry.file_name().to_string_lossy().contains(&of_script));
    own.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that output, records and time on processors are signs of work, that a process which waits gives none, and
    /// that the end of one hides no work of another.
    #[test]
    fn work_is_what_prints_records_or_computes() {
        let done =
            |printed_bytes, recorded_bytes, cpu_ticks| Done { printed_bytes, recorded_bytes, cpu_ticks };
        let mut work = Work::counted_in(100);
        let looks = [
            (done(5, 5, 500), None),
            (done(5, 5, 599), None),
            (done(5, 5, 600), Some(2)),
            (done(6, 5, 600), Some(3)),
            (done(6, 6, 600), Some(4)),
            (done(6, 6, 40), Some(4)),
            (done(6, 6, 139), Some(4)),
            (done(6, 6, 140), Some(7)),
        ];
        for (now, (done, worked_at)) in looks.into_iter().enumerate() {
            assert_eq!(work.take(now as i64, done), worked_at, "at {now}");
        }
    }

    /// Proves that of the segments only those of the script count: the shim records for itself as long as the attempt lives.
    #[test]
    fn only_the_scripts_records_count() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(recorded_bytes(&folder.path().join("none")), 0);
        for name in ["0000000000000001-7-sdk-000000.twfr", "0000000000000001-8-telemetry-000000.twfr"] {
            std::fs::write(folder.path().join(name), "1234").unwrap();
        }
        assert_eq!(recorded_bytes(folder.path()), 4);
    }
}
