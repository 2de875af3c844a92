use std::fmt;

use trackway_core::{MetricStep, Step, Timestamp};

use crate::EventKind;

/// A list of values with the numbers that frames have, and one for the numbers of later versions.
macro_rules! coded_list {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal, $word:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
            /// A number of a later version.
            Other(u8),
        }

        impl $name {
            pub(super) const fn code(self) -> u8 {
                match self { $(Self::$variant => $code,)+ Self::Other(code) => code }
            }

            pub(super) const fn from_code(code: u8) -> Self {
                match code { $($code => Self::$variant,)+ other => Self::Other(other) }
            }

            /// The value used in tables and JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ Self::Other(_) => "unknown" }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::Other(code) => write!(formatter, "unknown ({code})"),
                    known => formatter.pad(known.as_str()),
                }
            }
        }
    };
}

coded_list! {
    /// The writer of a segment.
    pub enum Origin {
        /// The recorder inside the training process.
        Sdk = 1, "sdk";
        /// The shim, from what the script printed.
        Stdout = 2, "stdout";
        /// The shim, from TensorBoard event files that the script wrote.
        TensorBoard = 3, "tensorboard";
        /// An import from another tool's store.
        Import = 4, "import";
        /// The shim, from the counters of the kernel and the device driver.
        Telemetry = 5, "telemetry";
        /// The shim, from files of metrics and settings that frameworks wrote.
        Files = 6, "files";
    }
}

/// The first frame of a segment: which process wrote it, for which attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentHeader {
    /// When the segment was begun.
    pub at: Timestamp,
    /// The writer.
    pub origin: Origin,
    /// The process that wrote it.
    pub pid: u32,
    /// 0 for the first segment of a process, then counted up; orders the segments of one process.
    pub segment_sequence: u32,
    /// The kernel's boot id; empty when it cannot be read. Pids mean nothing over two boots.
    pub boot_id: String,
    /// The run, as `TRACKWAY_RUN` names it.
    pub run_id: String,
    /// The attempt, as `TRACKWAY_ATTEMPT` names it.
    pub attempt_id: String,
    /// Name and version of the program that wrote it.
    pub writer: String,
}

/// The number of a metric name within one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// Binds a number to a metric name for the rest of the segment. Writers repeat it now and then, so that a torn
/// definition does not leave later values nameless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameDefinition {
    /// The number.
    pub id: NameId,
    pub name: String,
}

/// Values of metrics at one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    /// When they were logged, by the wall clock, which may go backwards: the order of frames is the truth.
    pub at: Timestamp,
    /// The step they belong to.
    pub step: Step,
    /// The values, bit for bit: NaN and infinities are kept.
    pub values: Vec<(NameId, f64)>,
}

/// Values of metrics at a step below 0: from before the training, as other tools record them. They are no sign of its progress.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlyMetrics {
    /// When they were logged.
    pub at: Timestamp,
    /// The step they belong to, below 0.
    pub step: MetricStep,
    /// The values, bit for bit.
    pub values: Vec<(NameId, f64)>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub at: Timestamp,
    /// The step it belongs to, if any.
    pub step: Option<Step>,
    /// What happened, in snake_case.
    pub kind: String,
    /// Details.
    pub fields: Vec<(String, String)>,
}

/// A parameter of the run, as the script sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// When it was reported.
    pub at: Timestamp,
    pub name: String,
    pub value: String,
}

/// The process is alive and at this step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    pub at: Timestamp,
    /// Where it is.
    pub step: Step,
}

coded_list! {
    /// The state of a checkpoint in a frame. The log of the checkpoint root is authoritative; this is its echo.
    pub enum CheckpointChange {
        /// Bytes may exist; no reader uses them.
        Writing = 1, "writing";
        /// Complete and verified by its manifest.
        Committed = 2, "committed";
        /// The run resumed from this checkpoint.
        Resumed = 3, "resumed";
        /// It did not verify and was skipped.
        Suspect = 4, "suspect";
    }
}

impl CheckpointChange {
    /// What it becomes in the history of an attempt.
    #[must_use]
    pub const fn event_kind(self) -> EventKind {
        match self {
            Self::Writing => EventKind::CheckpointWriting,
            Self::Committed => EventKind::CheckpointCommitted,
            Self::Resumed => EventKind::CheckpointResumed,
            Self::Suspect => EventKind::CheckpointSuspect,
            Self::Other(_) => EventKind::CheckpointUnknown,
        }
    }
}

/// What the training process did with a checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointFrame {
    pub at: Timestamp,
    /// The step the checkpoint holds.
    pub step: Step,
    /// The epoch of the writer.
    pub epoch: u64,
    /// What happened to it.
    pub state: CheckpointChange,
    /// Where its files are, below the checkpoint root.
    pub object_prefix: String,
    /// The SHA-256 of its manifest, in lower-case hex.
    pub manifest_sha256: String,
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// How long writing and committing (or verifying) took.
    pub seconds: f64,
}

coded_list! {
    /// What became of a command of the control file.
    pub enum ControlOutcome {
        /// Seen, and going to be obeyed.
        Accepted = 1, "accepted";
        /// Obeyed.
        Done = 2, "done";
        /// Not obeyed.
        Refused = 3, "refused";
        /// The recorder does not support the command.
        UnknownCommand = 4, "unknown_command";
    }
}

/// The answer to a command of the control file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlAck {
    pub at: Timestamp,
    /// The command's id in the control file.
    pub id: u64,
    /// What became of it.
    pub outcome: ControlOutcome,
    /// The step at which it was obeyed, if any.
    pub step: Option<Step>,
}

/// The last frame of a segment that was ended in order. A segment without one was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close {
    pub at: Timestamp,
    /// Frames that could not be written (full disk) and are lost, over the whole life of the process.
    pub dropped_frames: u64,
}

/// One frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// Which process wrote the segment.
    Header(SegmentHeader),
    /// A metric name.
    NameDefinition(NameDefinition),
    /// Values of metrics.
    Metrics(Metrics),
    /// Values of metrics at a step below 0.
    EarlyMetrics(EarlyMetrics),
    /// Something that happened.
    Event(Event),
    /// A parameter of the run.
    Param(Param),
    /// A sign of life.
    Heartbeat(Heartbeat),
    Checkpoint(CheckpointFrame),
    /// The answer to a command.
    ControlAck(ControlAck),
    /// The end, in order.
    Close(Close),
    /// A frame of a later version: its type and its payload's length. Skipped, not an error.
    Unknown {
        /// The number of its type.
        frame_type: u8,
        /// The length of its payload.
        payload_bytes: usize,
    },
}
