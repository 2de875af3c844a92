//! The result of a scan.

use serde::{Deserialize, Serialize};
use trackway_core::{TerminationReason, Timestamp};

use super::ending::StreamEnding;
use crate::signatures::{Role, RuleName};

/// What the code that raised an error was doing, from the frames of its traceback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// An evaluation or a metric.
    Evaluate,
    /// Writing a checkpoint.
    SaveCheckpoint,
    /// Reading a checkpoint.
    LoadCheckpoint,
    /// Reading data.
    LoadData,
    /// Reading one sample of a dataset, or joining samples to a batch.
    LoadSample,
    /// Inside a library that decodes files of data, with no code of the user below it.
    Decode,
    /// Looking up what labels of classes or ids of tokens name.
    LookUp,
    /// A library checking the numbers it was given.
    CheckInput,
    /// A table library looking up columns by name.
    SelectColumns,
    /// Talking to a sibling process on the same machine.
    LocalPeer,
    /// Locking memory of the host, from which devices copy.
    PinMemory,
    /// Sending a request over a network, or waiting for its answer.
    Request,
    /// A finalizer, whose exceptions the interpreter prints and ignores.
    Finalizer,
    /// A process starter such as torchrun, which only reports its children.
    Launcher,
}

impl Phase {
    /// Whether a checkpoint was written or read.
    pub(crate) fn are_of_checkpoints(phases: &[Self]) -> bool {
        phases.contains(&Self::SaveCheckpoint) || phases.contains(&Self::LoadCheckpoint)
    }
}

/// Whether the run continued after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handling {
    /// Nothing shows that it was handled.
    Open,
    /// It was logged below error level.
    Warned,
    /// The line names it only as one possibility or as advice.
    Supposed,
    /// The log shows that it was skipped or retried, or progress was printed after it.
    Handled,
}

/// One line that matched one signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The signature's name.
    pub signature: RuleName,
    /// The reason of the signature.
    pub reason: TerminationReason,
    /// What the line means for the end.
    pub role: Role,
    /// Whether the signature admits one reading only and the line reports it instead of only speaking of it.
    pub conclusive: bool,
    /// 1-based.
    pub line_number: u64,
    /// Where the line (or the piece of an endless line) starts, from the start of the stream.
    pub byte_offset: u64,
    /// The line around the match, at most [`MAX_TEXT_BYTES`](crate::MAX_TEXT_BYTES), invalid UTF-8 replaced.
    pub text: String,
    /// The line behind it, if the line ends with a colon: `Error(s) in loading state_dict for Net:`.
    pub continued: Option<String>,
    /// Whether the run continued.
    pub handling: Handling,
    /// What the enclosing frames were doing.
    pub phases: Vec<Phase>,
    /// Where in code of the user an exception or a cause was raised: the innermost such frame of the traceback that encloses it.
    #[serde(default)]
    pub raised_at: Option<OwnFrame>,
    /// Whether the script wrote the words itself: a statement of the user raises the exception, and has them or is of values.
    #[serde(default)]
    pub is_by_hand: bool,
    /// When the line was written, if known.
    pub at: Option<Timestamp>,
}

/// A frame of a traceback in code of the user: neither in the interpreter nor in an installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFrame {
    /// Its line of the log, 1-based.
    pub line_number: u64,
    /// `t.py:31 in train: loss = 'a' + 1`, at most [`MAX_TEXT_BYTES`](crate::MAX_TEXT_BYTES).
    pub text: String,
}

impl Hit {
    /// What is shown as evidence.
    pub(crate) fn shown(&self) -> String {
        match &self.continued {
            Some(next) => format!("{} {next}", self.text),
            None => self.text.clone(),
        }
    }
}

/// The last traceback of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracebackEnd {
    /// The line of its last frame, 1-based.
    pub line_number: u64,
    /// The last frame's text.
    pub text: String,
    /// What its frames were doing.
    pub phases: Vec<Phase>,
    /// Whether it is a thread's, a task's, a logger's or a child's, which does not end the main program.
    #[serde(default)]
    pub is_aside: bool,
}

/// Everything that classification needs from one stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LogEvidence {
    /// In order of appearance; the first few and the last of each signature.
    pub hits: Vec<Hit>,
    /// The last traceback seen, whether or not its exception line was.
    pub last_traceback: Option<TracebackEnd>,
    /// Whether a result of the work was printed shortly before a traceback.
    #[serde(default)]
    pub worked_before_traceback: bool,
    /// The lines before the latest traceback with a count of the work before it, where the last lines have no count.
    #[serde(default)]
    pub lines_before_traceback: Vec<String>,
    /// Line ends seen, plus one for an unfinished last line.
    pub line_count: u64,
    /// Bytes fed.
    pub byte_count: u64,
    /// The last lines as strings.
    pub last_lines: Vec<String>,
    /// What they say about the work.
    #[serde(default)]
    pub ending: StreamEnding,
}

impl LogEvidence {
    /// The last lines of the stream, with those before a traceback that takes them all up.
    pub(crate) fn lines_of_work(&self) -> Vec<&str> {
        self.lines_before_traceback.iter().chain(&self.last_lines).map(String::as_str).collect()
    }

    /// Fills [`Hit::at`] and the times of the last lines from the caller's knowledge of when each byte offset was written.
    pub fn set_times(&mut self, time_of_offset: impl Fn(u64) -> Option<Timestamp>) {
        for hit in &mut self.hits {
            hit.at = time_of_offset(hit.byte_offset);
        }
        for moment in self.ending.moments() {
            moment.at = time_of_offset(moment.byte_offset);
        }
    }
}
