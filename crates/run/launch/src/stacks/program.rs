//! What Python's `faulthandler` writes: a heading per thread, then its frames, the innermost first.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FRAMES_MAX, THREADS_MAX};

/// A thread as the program itself sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramThread {
    /// The one that wrote it: a signal to a process is taken by its main thread, where that does not block it.
    pub current: bool,
    /// The innermost first.
    pub frames: Vec<Frame>,
}

/// One frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The path of the source file.
    pub file: String,
    /// The line, where it is known.
    pub line: Option<u64>,
    pub function: String,
}

impl fmt::Display for Frame {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        match self.line {
            Some(line) => write!(out, "{} ({name}:{line})", self.function),
            None => write!(out, "{} ({name})", self.function),
        }
    }
}

/// The threads of one dump. Lines of another form are skipped: a script may write to its file too.
pub(super) fn threads(text: &str) -> Vec<ProgramThread> {
    let mut threads: Vec<ProgramThread> = Vec::new();
    for line in text.lines() {
        let current = line.starts_with("Current thread 0x");
        if current || line.starts_with("Thread 0x") {
            if threads.len() == THREADS_MAX {
                break;
            }
            threads.push(ProgramThread { current, frames: Vec::new() });
        } else if let (Some(thread), Some(frame)) = (threads.last_mut(), frame(line))
            && thread.frames.len() < FRAMES_MAX
        {
            thread.frames.push(frame);
        }
    }
    threads
}

/// `  File "PATH", line N in FUNCTION`; of a frame without a line, `line ???`.
fn frame(line: &str) -> Option<Frame> {
    let rest = line.strip_prefix("  File \"")?;
    let (file, rest) = rest.rsplit_once("\", line ")?;
    let (number, function) = rest.split_once(" in ")?;
    Some(Frame { file: file.into(), line: number.parse().ok(), function: function.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that threads and frames are read, also with odd paths, and that other lines and torn ends do no harm.
    #[test]
    fn what_faulthandler_writes_is_read() {
        let text = "noise\nThread 0x00007f05708cf6c0 (most recent call first):\n  File \"<stdin>\", line 3 in f\n  ...\n\n\
            Current thread 0x00007f0571634b80 [python3] (most recent call first):\n  File \"/a/q\", line 1 in b.py\", line 5 in <module>\n\
            \x20 File \"/a/c.py\", line ??? in g\n  File \"/torn";
        let found = threads(text);
        assert_eq!(found.iter().map(|thread| thread.current).collect::<Vec<_>>(), [false, true]);
        assert_eq!(found[0].frames[0].to_string(), "f (<stdin>:3)");
        let frames = &found[1].frames;
        assert_eq!((frames[0].file.as_str(), frames[0].line), ("/a/q\", line 1 in b.py", Some(5)));
        assert_eq!(frames[1].to_string(), "g (c.py)");
        assert_eq!(frames.len(), 2);
        assert!(threads("").is_empty());
    }

    /// Proves that neither many threads nor deep stacks make a dump large.
    #[test]
    fn a_dump_is_bounded() {
        let thread =
            format!("Thread 0x1 (most recent call first):\n{}", "  File \"a\", line 1 in f\n".repeat(200));
        let found = threads(&thread.repeat(100));
        assert_eq!((found.len(), found[0].frames.len()), (THREADS_MAX, FRAMES_MAX));
    }
}
