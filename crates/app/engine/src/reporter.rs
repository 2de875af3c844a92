//! Reports of the use cases while they work. The edges decide how to show them.

use trackway_api::runs::watch::QueuedRun;
use trackway_core::detect::{DetectionSeverity, Detector};
use trackway_core::{AttemptId, RunId, Step, Timestamp};
pub use trackway_launch::{Stream, TerminalStreams};

/// What a user who watches a run wants to know at once.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// The plan is made and stored.
    RunStarted {
        run_id: RunId,
        name: String,
        /// SHA-256 of what decides the result.
        config_sha256: String,
    },
    /// An attempt was handed to the launcher.
    AttemptStarted {
        attempt_id: AttemptId,
        /// Counted from 1 in the run.
        attempt_number: u32,
        /// The rung of the data, where the run file has a ladder.
        rung: Option<String>,
        /// The committed step it continues from.
        resumed_from_step: Option<Step>,
        /// A description of the weights it begins with, if they are of the rung before.
        warm_start: Option<String>,
    },
    /// An attempt's receipt is sealed.
    AttemptEnded {
        attempt_id: AttemptId,
        /// Counted from 1 in the run.
        attempt_number: u32,
        /// The termination reason.
        reason: String,
        /// The rule that named it.
        rule: String,
        /// The most specific line of evidence.
        evidence: String,
    },
    /// What follows from the end of an attempt.
    Decided {
        /// The rule's name.
        rule: String,
        /// An explanation.
        why: String,
        /// Seconds to wait before the next attempt; none when the run stops.
        delay_seconds: Option<f64>,
    },
    /// A detector found something.
    Detected {
        detector: Detector,
        /// How bad it is.
        severity: DetectionSeverity,
        /// The step at which it began: what worsens has the same.
        first_step: Step,
        /// The step at which it was sure.
        step: Step,
        /// What was seen, and the likely cause.
        text: String,
    },
    /// Something is not as it should be, and work continues.
    Warning {
        /// A sentence about it.
        text: String,
    },
    /// How far the live attempt is.
    Progress(Progress),
    /// The run waits for a place in its queue. Repeated while it waits.
    Queued(QueuedRun),
    /// Anything else worth a line.
    Note {
        /// The message.
        text: String,
    },
}

/// How far the live attempt is.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Progress {
    /// The last step seen in the flight record.
    pub step: Option<Step>,
    /// Steps per second over the last window.
    pub steps_per_second: Option<f64>,
    /// The metric named `loss` (or the first one seen) and its last value.
    pub loss: Option<(String, f64)>,
    /// The last step with a committed checkpoint.
    pub last_committed_step: Option<Step>,
    /// When the training process was last heard of.
    pub heartbeat_at: Option<Timestamp>,
}

/// Where the use cases report to. Every method may be called often and must return quickly. What an implementation
/// leaves out is not shown.
pub trait Reporter: Sync {
    /// Something happened.
    fn notice(&self, notice: &Notice);
    /// Anything else worth a line.
    fn note(&self, text: String) {
        self.notice(&Notice::Note { text });
    }
    /// The streams of the script that are terminals, since a person watches it here.
    fn terminal(&self) -> TerminalStreams {
        TerminalStreams::default()
    }
    /// The script printed something: after redaction, or as it is in a terminal.
    fn output(&self, _stream: Stream, _bytes: &[u8]) {}
    /// The live attempt moved on.
    fn progress(&self, _progress: &Progress) {}
    /// Data files are being read: bytes done of bytes in all.
    fn reading_data(&self, _done_bytes: u64, _total_bytes: u64) {}
    /// Blind spots are being searched: the number of predicates of a slice, candidates done of candidates in all.
    fn searching(&self, _predicates: usize, _done: u64, _total: u64) {}
    /// A checkpoint is on its way to the remote at the end of a run: bytes that arrived of bytes in all.
    fn uploading(&self, _done_bytes: u64, _total_bytes: u64) {}
    /// A checkpoint is being fetched from the remote: bytes that arrived of bytes in all.
    fn fetching(&self, _done_bytes: u64, _total_bytes: u64) {}
}

/// Reports nowhere.
pub struct Unheard;

impl Reporter for Unheard {
    fn notice(&self, _: &Notice) {}
}

/// Lets notes and progress through, and keeps the output of launches for `trackway logs`: for what launches several.
pub struct NotesOnly<'a>(pub &'a dyn Reporter);

impl Reporter for NotesOnly<'_> {
    fn notice(&self, notice: &Notice) {
        if let Notice::Note { .. } | Notice::Warning { .. } | Notice::Detected { .. } = notice {
            self.0.notice(notice);
        }
    }

    fn progress(&self, progress: &Progress) {
        self.0.progress(progress);
    }

    fn reading_data(&self, done_bytes: u64, total_bytes: u64) {
        self.0.reading_data(done_bytes, total_bytes);
    }

    fn searching(&self, predicates: usize, done: u64, total: u64) {
        self.0.searching(predicates, done, total);
    }
}
