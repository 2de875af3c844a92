//! What the frames of a Python traceback were doing.

use super::evidence::{OwnFrame, Phase, TracebackEnd};
use super::frame;
use super::line::MAX_TEXT_BYTES;
use super::phases::{CALLS, DECODERS, NO_PHASE, OWN_CALLS, OWN_PHASES, PHASES};
use crate::pattern::Pattern;

// How far before a traceback its announcement is.
const ANNOUNCED_LINES: u64 = 2;

/// A frame further back than this belongs to another traceback. Interleaved ranks and quoted code fit in between.
const SAME_TRACEBACK_LINES: u64 = 14;

/// What is printed before a traceback that does not end the main program.
static ASIDE: Pattern =
    Pattern::new(r"exception in thread |never retrieved|--- logging error ---|^\W*process \S+-\d+:\s*$");

static FRAME: Pattern = Pattern::new(
    r#"file ["'][^"'\n]+["'], line \d+|, line \d+, in \S+|\.p(y|yx|xi)\S* in \S+|file \S+:\d+, in \w+|^\W*[^\x00-\x7f]+ \S+\.py:\d+ in\b"#,
);

/// A frame that nothing else looks like: with its code it alone is of a traceback.
static WHOLE_FRAME: Pattern = Pattern::new(
    r#"^[^A-Za-z"'@#]*(\[rank\d+\]:|\([^)]*\))?\s*file ("[^"\n]+", line \d+|\S+\.py:\d+), in \S"#,
);

/// A statement that raises an exception, or that asserts.
static RAISE: Pattern = Pattern::new(r"(?-i:(?:^|[:;] ?)(?:raise ([A-Za-z_][\w.]*)|assert\b))");

/// Classes that mean what the machine, the network or a device reported, also where a script raises them; the last word of their names.
static REPORTS: Pattern = Pattern::new(
    r"(?-i:^(OSError|IOError|EnvironmentError|\w*MemoryError|PermissionError|File\w+Error|(IsA|NotA)DirectoryError|BlockingIOError|\w*Connect\w*Error|BrokenPipeError|TimeoutError|InterruptedError|SystemExit|KeyboardInterrupt)$)",
);

/// What is printed before a class by which a network reports.
static NETWORK_MODULE: Pattern = Pattern::new(
    r"(?-i:(^|[^\w.])(socket|ssl|http\.client|urllib\.error|urllib3|requests|httpx|httpcore|aiohttp|botocore|grpc)\.(\w+\.)*$)",
);

/// Classes of values, keys and types: what they say is of what the script was given, in whatever words.
static OF_VALUES: Pattern = Pattern::new(
    r"(?-i:^(ValueError|KeyError|TypeError|IndexError|LookupError|AssertionError|AttributeError|NameError|NotImplementedError)$)",
);

/// An exception that a statement of the user raised itself.
pub(super) struct ByHand<'a> {
    /// The code of the statement.
    pub(super) code: &'a str,
    /// Whether its class says that it is of values, whatever its words are.
    pub(super) is_of_values: bool,
}

/// Follows the tracebacks of a stream, one frame line at a time.
#[derive(Debug, Default)]
pub(super) struct TracebackState {
    current: Option<TracebackEnd>,
    /// Whether its header was seen, a second frame, or one with its code: a line of a warning looks like a frame.
    is_certain: bool,
    /// Its innermost frame in code of the user.
    own_frame: Option<OwnFrame>,
    /// Whether its last frame is not in code of the user.
    is_installed: bool,
    /// Whether a library that decodes data is below the code of the user.
    is_decoding: bool,
    /// The last line that announces a traceback beside the main program.
    aside_at: Option<u64>,
}

impl TracebackState {
    /// Takes in a line that holds one of the literals of tracebacks (`markers.toml`), with what is behind it.
    pub(super) fn see(&mut self, line: &[u8], line_number: u64, behind: &[u8]) {
        if ASIDE.is_match(line) {
            self.aside_at = Some(line_number);
            return;
        }
        let is_frame = FRAME.is_match(line);
        let code_of = self.current.as_mut().filter(|open| !is_frame && line_number == open.line_number + 1);
        if let Some(open) = code_of {
            add_phases(&mut open.phases, &CALLS, line);
            if !self.is_installed {
                add_phases(&mut open.phases, &OWN_CALLS, line);
            }
            return;
        }
        if !is_frame && !line.to_ascii_lowercase().windows(9).any(|word| word == b"traceback") {
            return;
        }
        let starts_over = !is_frame
            || self.current.as_ref().is_none_or(|open| line_number > open.line_number + SAME_TRACEBACK_LINES);
        if starts_over {
            let is_announced = self.aside_at.is_some_and(|at| line_number - at <= ANNOUNCED_LINES);
            let is_chained = self
                .current
                .as_ref()
                .is_some_and(|last| last.is_aside && line_number - last.line_number <= SAME_TRACEBACK_LINES);
            let is_aside = is_announced || is_chained;
            self.current =
                Some(TracebackEnd { line_number, text: String::new(), phases: Vec::new(), is_aside });
            self.own_frame = None;
            self.is_decoding = false;
        }
        self.is_installed = frame::is_installed(line);
        if is_frame {
            self.own_frame = frame::own_frame(line, line_number, behind).or(self.own_frame.take());
            self.is_decoding = DECODERS.is_match(line) || (self.is_decoding && self.is_installed);
        }
        self.is_certain = !is_frame || !starts_over || (WHOLE_FRAME.is_match(line) && has_code(behind));
        if let Some(open) = &mut self.current {
            open.line_number = line_number;
            let end = line.len().min(MAX_TEXT_BYTES);
            open.text = String::from_utf8_lossy(&line[..end]).trim().to_owned();
            if !NO_PHASE.is_match(line) {
                add_phases(&mut open.phases, &PHASES, line);
                if !self.is_installed {
                    add_phases(&mut open.phases, &OWN_PHASES, line);
                }
            }
        }
    }

    /// What the traceback that encloses `line_number` was doing; `None` outside of one.
    pub(super) fn phases_at(&self, line_number: u64) -> Option<Vec<Phase>> {
        let open = self.current.as_ref().filter(|open| encloses(open, line_number))?;
        Some(self.phases_of(open))
    }

    fn phases_of(&self, open: &TracebackEnd) -> Vec<Phase> {
        let decodes = self.is_decoding.then_some(Phase::Decode);
        open.phases.iter().copied().chain(decodes).collect()
    }

    /// The innermost frame in code of the user of the traceback that encloses `line_number`.
    pub(super) fn own_frame_at(&self, line_number: u64) -> Option<OwnFrame> {
        self.current.as_ref().filter(|open| encloses(open, line_number))?;
        self.own_frame.clone()
    }

    /// The statement that raised the exception in `line`, if it is in code of the user, without a frame below it, and its class is one that
    /// scripts raise: neither one by which the machine reports nor one of a package.
    pub(super) fn raised_by_hand(&self, line_number: u64, line: &[u8]) -> Option<ByHand<'_>> {
        let open = self.current.as_ref().filter(|open| encloses(open, line_number))?;
        let innermost = self.own_frame.as_ref().filter(|own| own.line_number == open.line_number)?;
        let (_, code) = innermost.text.split_once(": ")?;
        let raised = RAISE.captures(code.as_bytes())?;
        let name = raised.get(1).unwrap_or(b"AssertionError");
        let is_of_package = memchr::memchr_iter(b'.', name).count() > 1;
        let class = name.rsplit(|byte| *byte == b'.').next().unwrap_or(name);
        let is_other = is_of_package || is_report(line, class) || memchr::memmem::find(line, class).is_none();
        (!is_other).then(|| ByHand { code, is_of_values: OF_VALUES.is_match(class) })
    }

    /// The line of the last frame seen; 0 before the first.
    pub(super) fn last_frame(&self) -> u64 {
        self.current.as_ref().map_or(0, |open| open.line_number)
    }

    pub(super) fn finish(self) -> Option<TracebackEnd> {
        let open = self.current.as_ref().filter(|_| self.is_certain)?;
        Some(TracebackEnd { phases: self.phases_of(open), ..open.clone() })
    }
}

/// Whether the class of the exception in `line` means what the machine or a network reported, also where a script
/// raises it: not where Python prints that the script defines it.
fn is_report(line: &[u8], class: &[u8]) -> bool {
    let before: Vec<&[u8]> = memchr::memmem::find_iter(line, class).map(|at| &line[..at]).collect();
    let is_of_network = before.iter().any(|module| NETWORK_MODULE.is_match(module));
    is_of_network || (REPORTS.is_match(class) && !before.iter().any(|module| module.ends_with(b"__main__.")))
}

/// Whether a line of code is below a frame. `behind` begins with the end of the frame's line.
fn has_code(behind: &[u8]) -> bool {
    let next = behind.strip_prefix(b"\r\n").or_else(|| behind.strip_prefix(b"\n")).unwrap_or_default();
    let next = &next[..memchr::memchr2(b'\n', b'\r', next).unwrap_or(next.len())];
    !next.trim_ascii().is_empty() && !FRAME.is_match(next)
}

const fn encloses(traceback: &TracebackEnd, line_number: u64) -> bool {
    line_number <= traceback.line_number + SAME_TRACEBACK_LINES
}

fn add_phases(phases: &mut Vec<Phase>, table: &[(Phase, Pattern)], line: &[u8]) {
    for (phase, pattern) in table {
        if pattern.is_match(line) && !phases.contains(phase) {
            phases.push(*phase);
        }
    }
}
