use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;
use trackway_formats::layout::AttemptLayout;

use crate::files::read_json;

/// The version of `exit.json` that this crate writes.
pub const EXIT_VERSION: u32 = 1;

/// How an attempt ended, as the shim saw it. Facts only; what they mean is decided elsewhere.
///
/// Exactly one of `exit_code`, `signal` and `spawn_error` is there, unless the shim gave up waiting for a process
/// that SIGKILL does not end (`tree.unkillable` then names it).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExitRecord {
    pub version: u32,
    /// The main process exited by itself with this code. 137 reported by a shell stays 137.
    pub exit_code: Option<i32>,
    /// The main process was ended by this signal.
    pub signal: Option<i32>,
    /// The kernel wrote a core file.
    pub core_dumped: bool,
    /// The script never began.
    pub spawn_error: Option<SpawnError>,
    /// When the shim began, by the wall clock.
    pub started_at: Timestamp,
    /// When the main process ended, by the wall clock. Absent when it never began.
    pub main_ended_at: Option<Timestamp>,
    /// When what the main process left in its session was last seen to work, by the wall clock. Absent when nothing of it did.
    pub left_worked_at: Option<Timestamp>,
    /// When the whole tree had ended, by the wall clock.
    pub ended_at: Timestamp,
    /// Seconds from start to end on a clock that does not jump.
    pub wall_seconds: f64,
    /// The wall clock ended up more than a second away from where the monotonic clock puts it.
    pub clock_jump_seconds: Option<f64>,
    /// The wall clock showed an earlier time at the end than at the start.
    pub clock_went_backwards: bool,
    /// User and system time of every process of the attempt that was waited for.
    pub cpu_seconds: f64,
    /// The largest resident set of any single process of the attempt (never less than the shim's own, a few MiB).
    pub peak_rss_bytes: u64,
    /// How often the kernel's OOM killer struck in the attempt's cgroup meanwhile; `None` where it cannot be read.
    pub oom_kill_delta: Option<u64>,
    /// What torchelastic's `@record` left, without secrets, at most [`ERROR_FILE_BYTES_MAX`] bytes of it.
    pub error_file: Option<String>,
    /// Bytes the script wrote to its standard output, before redaction.
    pub stdout_bytes: u64,
    /// Bytes the script wrote to its standard error, before redaction.
    pub stderr_bytes: u64,
    /// Lines in both logs.
    pub lines: u64,
    /// Bytes that could not be stored because the disk was full for too long.
    pub log_bytes_lost: u64,
    /// Metric values read from what the script printed and from its event files. Those that the record has not were lost.
    pub metric_values: u64,
    /// Events `output_left_out` that the record could not take, by their fields: the disk was full to the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<BTreeMap<String, String>>,
    /// What the shim was asked to do and did, in order (at most [`SIGNALS_MAX`]; later ones are left out).
    pub signals: Vec<SignalSent>,
    /// SIGKILL had to follow, because the grace period ended.
    pub killed_after_grace: bool,
    /// What was left when the main process had ended.
    pub tree: TreeEnd,
    /// The files of the attempt by their paths in its folder, with their bytes, as they were where it ran. Empty where
    /// it wrote them into the folder that is read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, u64>,
}

/// The most of `error.json` that an exit record keeps.
pub const ERROR_FILE_BYTES_MAX: usize = 16 * 1024;
/// The most signals that an exit record lists.
pub const SIGNALS_MAX: usize = 64;
/// The most process names that an exit record lists.
pub const PROCESS_NAMES_MAX: usize = 32;

/// Why the script never began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnError {
    /// The system's error number, when the call failed.
    pub errno: Option<i32>,
    /// What was tried, what went wrong, what to do.
    pub message: String,
}

/// A signal that the shim sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalSent {
    pub at: Timestamp,
    /// The signal's number.
    pub signal: i32,
    pub why: SignalReason,
}

/// Why the shim sent a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalReason {
    /// The shim got it and passed it on.
    Forwarded,
    StopRequested,
    /// The end was requested at once, or for the second time.
    KillRequested,
    /// The grace period had passed.
    GraceEnded,
    /// The main process had ended; this is for its remaining processes.
    Leftover,
}

/// The remaining processes of the main process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeEnd {
    /// How many processes had to be ended with a signal.
    pub leftover_processes_ended: u64,
    /// Their names, at most [`PROCESS_NAMES_MAX`].
    pub names: Vec<String>,
    /// Processes that did not even end by SIGKILL (a hung device or network disk).
    pub unkillable: Vec<String>,
}

impl ExitRecord {
    /// Reads `exit.json`; `None` when the attempt has not ended (or it could not be written).
    ///
    /// # Errors
    /// The file cannot be read or is not an exit record.
    pub fn read(directory: &Path) -> io::Result<Option<Self>> {
        read_json(&AttemptLayout::new(directory).exit_json())
    }

    /// Seconds that count for durations, budgets and cost: to the end of the main process, or to the last work of what it left. Reading
    /// what was printed and ending what only waits are not the script's. All of them where the wall clock jumped, or no such end is known.
    #[must_use]
    pub fn counted_seconds(&self) -> f64 {
        let main_ended_at = self.main_ended_at.filter(|_| self.clock_jump_seconds.is_none());
        let counted_to =
            main_ended_at.map(|at| self.left_worked_at.map_or(at, |worked_at| worked_at.max(at)));
        let after = counted_to.map_or(0.0, |at| self.ended_at.seconds_since(at).max(0.0));
        (self.wall_seconds - after).max(0.0)
    }

    /// Whether a stop was requested while the script ran.
    #[must_use]
    pub fn stop_requested(&self) -> bool {
        let asked = [SignalReason::StopRequested, SignalReason::KillRequested];
        self.signals.iter().any(|sent| asked.contains(&sent.why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what comes after the main process counts only while it works, and that without its end, or with a clock that jumped,
    /// everything does.
    #[test]
    fn the_end_of_the_script_ends_what_counts() {
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000);
        let exit = ExitRecord { ended_at: at(140), wall_seconds: 40.0, ..ExitRecord::default() };
        let counted = |main: Option<i64>, worked: Option<i64>, jump: Option<f64>| {
            let (main_ended_at, left_worked_at) = (main.map(at), worked.map(at));
            ExitRecord { main_ended_at, left_worked_at, clock_jump_seconds: jump, ..exit.clone() }
                .counted_seconds()
        };
        assert_eq!(counted(Some(102), None, None), 2.0);
        assert_eq!(counted(Some(102), Some(130), None), 30.0);
        assert_eq!(counted(None, None, None), 40.0);
        assert_eq!(counted(Some(102), None, Some(3600.0)), 40.0);
        assert_eq!(counted(Some(50), None, None), 0.0);
        assert_eq!(counted(Some(141), None, None), 40.0);
    }
}
