//! The streaming part: blocks, line numbers, bounds.

use std::collections::HashMap;
use std::ops::Range;

use super::automaton::LiteralMatch;
use super::compiled::CompiledSignatures;
use trackway_core::TerminationReason;

use super::ending;
use super::escapes::Plain;
use super::evidence::{Handling, Hit, LogEvidence, Phase};
use super::line;
use super::traceback::TracebackState;
use crate::signatures::{self, Role, RuleName, Signature, early_stop, markers, numeric};

/// Hits kept from the start of each signature's series; its latest hit is kept as well.
pub const FIRST_HITS_PER_SIGNATURE: usize = 4;
/// Lines kept as strings from the end of the stream.
pub const LAST_LINES: usize = 40;
/// Bytes scanned at a time: small enough that block and lower-cased copy stay in the second-level cache.
const BLOCK_BYTES: usize = 128 * 1024;
/// A line longer than a block is scanned in pieces that overlap by this much.
const PIECE_OVERLAP_BYTES: usize = 512;
/// Bytes kept from the end of the stream for [`LogEvidence::last_lines`].
const TAIL_BYTES: usize = 16 * 1024;
/// A line such as "skipping batch" refers to the hits this close before it.
const HANDLED_REACH_LINES: u64 = 6;
/// "Exception ignored in" speaks of an exception whose traceback is no longer than this.
const IGNORED_REACH_LINES: u64 = 20;
/// How far before the header of a traceback a result and a count of the work are searched.
const LOOK_BACK_BYTES: usize = 4 * 1024;
/// What the header of a traceback has.
const HEADER: &[u8] = b"raceback (most recent";
/// Headers before which a result is searched: a log may be full of them.
const LOOKS_BACK_MAX: u32 = 64;
/// That many progress lines after a hit mean that the run continued.
const PROGRESS_LINES_AFTER: usize = 2;

/// Scans a log that arrives in pieces of any size. Memory is bounded whatever the log holds.
#[derive(Debug, Default)]
pub struct LogScanner {
    pending: Vec<u8>,
    lowered: Vec<u8>,
    found: Vec<LiteralMatch>,
    tail: Vec<u8>,
    /// Newlines before `pending`.
    lines_before: u64,
    /// Bytes before `pending`.
    bytes_before: u64,
    byte_count: u64,
    series: HashMap<RuleName, Series>,
    hits: Vec<(u64, Hit)>,
    sequence: u64,
    traceback: TracebackState,
    /// Whether a result of the work was seen before the header of a traceback, and how often it was searched there.
    worked: bool,
    looks_back: u32,
    /// The lines before the latest header with a count before it.
    counted: Vec<String>,
    /// Where the interpreter printed that it ignores the exception that follows.
    ignores_from: Option<u64>,
    /// The line of the exception that it ignored.
    ignored_at: u64,
    /// The last frame of the finalizer whose exception was seen.
    finalized_frame: u64,
    /// The last line that reports a resume of the run.
    resumed_at: u64,
}

/// Where a line is.
#[derive(Clone, Copy)]
struct Place<'a> {
    line_number: u64,
    byte_offset: u64,
    /// What is before it in its block.
    before: &'a [u8],
    /// What is behind it in its block.
    behind: &'a [u8],
}

#[derive(Debug, Default)]
struct Series {
    kept: usize,
    last: Option<(u64, Hit)>,
    last_offset: u64,
}

impl LogScanner {
    /// A scanner at the start of a stream. What finds the signatures is made once per process, on first use.
    #[must_use]
    pub fn new() -> Self {
        Self { pending: Vec::with_capacity(BLOCK_BYTES), ..Self::default() }
    }

    /// Scans a whole log at once.
    #[must_use]
    pub fn scan(bytes: &[u8]) -> LogEvidence {
        let mut scanner = Self::new();
        scanner.feed(bytes);
        scanner.finish()
    }

    /// Takes in the next bytes; a line may be split anywhere.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        self.byte_count += bytes.len() as u64;
        while !bytes.is_empty() {
            let taken = bytes.len().min(BLOCK_BYTES.saturating_sub(self.pending.len()).max(1));
            self.pending.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.pending.len() >= BLOCK_BYTES {
                self.scan_pending();
            }
        }
    }

    /// Ends the stream.
    #[must_use]
    pub fn finish(mut self) -> LogEvidence {
        let rest = self.pending.len();
        self.scan_block(rest);
        let open_line = u64::from(self.pending.last().is_some_and(|byte| *byte != b'\n'));
        let line_count = self.lines_before + newlines(&self.pending) + open_line;
        let pending = std::mem::take(&mut self.pending);
        self.keep_tail(&pending);
        let last_lines = last_lines(&self.tail);
        let mut hits = self.hits;
        hits.extend(self.series.into_values().filter_map(|series| series.last));
        hits.sort_by_key(|(sequence, hit)| (hit.line_number, *sequence));
        let mut hits: Vec<Hit> = hits.into_iter().map(|(_, hit)| hit).collect();
        let is_counted = last_lines.iter().any(|line| ending::has_count(line.as_bytes()));
        let lines_before_traceback = if is_counted { Vec::new() } else { self.counted };
        let first_kept = line_count + 1 - (last_lines.len() as u64).min(line_count + 1);
        mark_passed(&mut hits, first_kept, &last_lines, self.resumed_at);
        LogEvidence {
            hits,
            last_traceback: self.traceback.finish(),
            worked_before_traceback: self.worked,
            lines_before_traceback,
            line_count,
            byte_count: self.byte_count,
            ending: ending::read(&last_lines, first_kept).placed(&self.tail, self.byte_count),
            last_lines,
        }
    }

    /// Scans up to the last whole line; a line that fills the block is scanned as it is, in overlapping pieces.
    fn scan_pending(&mut self) {
        let (end, next) = match memchr::memrchr(b'\n', &self.pending) {
            Some(newline) => (newline + 1, newline + 1),
            None => (self.pending.len(), self.pending.len() - PIECE_OVERLAP_BYTES),
        };
        self.scan_block(end);
        self.lines_before += newlines(&self.pending[..next]);
        self.bytes_before += next as u64;
        let mut pending = std::mem::take(&mut self.pending);
        self.keep_tail(&pending[..next]);
        pending.copy_within(next.., 0);
        pending.truncate(pending.len() - next);
        self.pending = pending;
    }

    fn scan_block(&mut self, end: usize) {
        if end == 0 {
            return; // a script that prints nothing does not pay for the tables
        }
        let block = std::mem::take(&mut self.pending);
        let mut lowered = std::mem::take(&mut self.lowered);
        let mut found = std::mem::take(&mut self.found);
        let plain = Plain::of(&block[..end]);
        lowered.clear();
        lowered.extend(plain.bytes().iter().map(u8::to_ascii_lowercase));
        found.clear();
        CompiledSignatures::get().find_literals(&lowered, &mut found);
        self.visit_lines(&plain, &found);
        (self.pending, self.lowered, self.found) = (block, lowered, found);
    }

    fn visit_lines(&mut self, plain: &Plain<'_>, found: &[LiteralMatch]) {
        let block = plain.bytes();
        let mut line_number = self.lines_before + 1;
        let mut counted_to = 0;
        let mut rest = found;
        let mut owners = Vec::new();
        while let Some(first) = rest.first() {
            let (start, end) = line::bounds(block, first.end - 1);
            let in_line = rest.iter().take_while(|literal| literal.end <= end.max(first.end)).count();
            owners.clear();
            owners.extend(rest[..in_line].iter().map(|literal| literal.owner));
            owners.sort_unstable();
            owners.dedup();
            line_number += newlines(&block[counted_to..start]);
            counted_to = start;
            let byte_offset = self.bytes_before + plain.offset_of(start) as u64;
            let place = Place { line_number, byte_offset, before: &block[..start], behind: &block[end..] };
            self.visit_line(&block[start..end], place, &owners);
            rest = &rest[in_line..];
        }
    }

    /// Reads a line with literals of these phrases, in order. What is of tracebacks comes after all phrases.
    fn visit_line(&mut self, line: &[u8], place: Place<'_>, owners: &[u16]) {
        // A line's frame is known before its hits.
        if owners.last().is_some_and(|last| signatures::number_of(*last).is_none()) {
            self.traceback.see(line, place.line_number, place.behind);
            self.look_back(line, place.before);
        }
        for phrases in
            owners.chunk_by(|one, next| signatures::number_of(*one) == signatures::number_of(*next))
        {
            let Some(number) = signatures::number_of(phrases[0]) else { continue };
            if let Some(matched) = CompiledSignatures::get().confirm(number, phrases, line) {
                self.take_hit(number, line, place, &matched);
            }
        }
    }

    /// Searches a result and a count of the work before the header of a traceback.
    fn look_back(&mut self, line: &[u8], before: &[u8]) {
        if memchr::memmem::find(line, HEADER).is_none() {
            return;
        }
        let near = &before[before.len().saturating_sub(LOOK_BACK_BYTES)..];
        // What is before another header was searched there.
        let unseen = memchr::memmem::rfind(near, HEADER).map_or(near, |header| &near[header..]);
        if ending::has_count(unseen) {
            self.counted = last_lines(unseen);
        }
        if !self.worked && self.looks_back < LOOKS_BACK_MAX {
            self.looks_back += 1;
            self.worked = ending::has_results(near);
        }
    }

    fn take_hit(
        &mut self,
        index: u16,
        line: &[u8],
        Place { line_number, byte_offset, behind, .. }: Place<'_>,
        matched: &Range<usize>,
    ) {
        let signature = CompiledSignatures::get().signature(index);
        let matched_at = matched.start;
        if signature.role == Role::Handled {
            self.take_marker(signature.name, line, line_number);
            return;
        }
        let is_below_frame = line_number == self.traceback.last_frame() + 1 && line::is_indented(line);
        let is_no_report = line::is_quoted_code(line)
            || line::is_frame(line)
            || is_below_frame
            || (signature.name != early_stop::COUNTER && line::is_setting(line, matched));
        if is_no_report && !matches!(signature.role, Role::Chain) {
            return;
        }
        let phases = self.traceback.phases_at(line_number).unwrap_or_default();
        let is_thrown = matches!(signature.role, Role::Exception | Role::Cause)
            && signature.reason != TerminationReason::Cancelled;
        let is_quiet = signature.role == Role::Hint && phases.contains(&Phase::Finalizer);
        let handling = if is_quiet
            || is_thrown && (self.is_ignored(line_number) | self.is_finalizers(line_number, &phases))
        {
            Handling::Handled
        } else {
            handling(signature, line, matched)
        };
        let is_raised = matches!(signature.role, Role::Exception | Role::Cause);
        let raised_at = is_raised.then(|| self.traceback.own_frame_at(line_number)).flatten();
        let has_words = |code: &str| CompiledSignatures::get().has_words(index, code.as_bytes());
        let by_hand = self.traceback.raised_by_hand(line_number, line);
        let is_by_hand = by_hand.is_some_and(|by_hand| by_hand.is_of_values || has_words(by_hand.code));
        let position = byte_offset + matched_at as u64;
        let series = self.series.entry(signature.name).or_default();
        if series.kept > 0 && position <= series.last_offset {
            return; // the overlap of two pieces of one endless line
        }
        series.last_offset = position;
        let hit = Hit {
            signature: signature.name,
            reason: signature.reason,
            role: signature.role,
            conclusive: signature.conclusive && !line::only_mentions(line, matched_at),
            line_number,
            byte_offset,
            text: line::text_around(line, matched_at),
            continued: line::continued(line, behind),
            handling,
            phases,
            raised_at,
            is_by_hand,
            at: None,
        };
        self.sequence += 1;
        if series.kept < FIRST_HITS_PER_SIGNATURE {
            series.kept += 1;
            self.hits.push((self.sequence, hit));
        } else {
            series.last = Some((self.sequence, hit));
        }
    }

    fn take_marker(&mut self, name: RuleName, line: &[u8], line_number: u64) {
        match name {
            markers::EXCEPTION_IGNORED => self.ignores_from = Some(line_number),
            markers::RESUMED => {
                self.resumed_at = line_number;
                self.mark_handled(line_number);
            }
            _ if line::says_retries_are_over(line) => {}
            _ => self.mark_handled(line_number),
        }
    }

    /// Whether this is the exception that the interpreter announced to ignore, a traceback's length before.
    fn is_ignored(&mut self, line_number: u64) -> bool {
        let announced = self.ignores_from.take_if(|from| *from < line_number);
        if announced.is_some_and(|from| line_number - from <= IGNORED_REACH_LINES) {
            self.ignored_at = line_number;
        }
        self.ignored_at == line_number
    }

    /// Whether this is the exception of a finalizer's traceback: the first one after its last frame.
    fn is_finalizers(&mut self, line_number: u64, phases: &[Phase]) -> bool {
        if !phases.contains(&Phase::Finalizer) {
            return false;
        }
        let frame = self.traceback.last_frame();
        if self.finalized_frame != frame {
            self.finalized_frame = frame;
            self.ignored_at = line_number;
        }
        self.ignored_at == line_number
    }

    fn mark_handled(&mut self, line_number: u64) {
        let lasts = self.series.values_mut().filter_map(|series| series.last.as_mut());
        let near = self.hits.iter_mut().chain(lasts).map(|(_, hit)| hit).filter(|hit| {
            // The marker on the same line was read when the hit was taken.
            hit.line_number < line_number
                && line_number - hit.line_number <= HANDLED_REACH_LINES
                && !matches!(hit.role, Role::Verdict | Role::Completion)
        });
        for hit in near {
            hit.handling = Handling::Handled;
        }
    }

    fn keep_tail(&mut self, bytes: &[u8]) {
        let newest = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let kept_before = self.tail.len().min(TAIL_BYTES - newest.len());
        let cut = self.tail.len() - kept_before;
        self.tail.copy_within(cut.., 0);
        self.tail.truncate(kept_before);
        self.tail.extend_from_slice(newest);
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

fn handling(signature: &Signature, line: &[u8], matched: &Range<usize>) -> Handling {
    match signature.role {
        Role::Verdict | Role::Cause | Role::Exception | Role::Consequence
            if line::is_hedged(line, matched) =>
        {
            Handling::Supposed
        }
        Role::Completion if line::is_hedged(line, matched) => Handling::Supposed,
        Role::Verdict | Role::Chain | Role::Handled | Role::Hint | Role::Consequence | Role::Completion => {
            Handling::Open
        }
        Role::Cause | Role::Exception if line::says_handled(line) => Handling::Handled,
        // Programs log a stop on purpose as information, not as an error.
        Role::Cause if signature.reason == TerminationReason::EarlyStopped => Handling::Open,
        Role::Cause | Role::Exception if line::is_below_error(line, matched.start) => Handling::Warned,
        Role::Cause | Role::Exception => Handling::Open,
    }
}

fn last_lines(tail: &[u8]) -> Vec<String> {
    let plain = Plain::of(tail);
    let text = plain.bytes().strip_suffix(b"\n").unwrap_or(plain.bytes());
    let mut lines: Vec<String> = text
        .rsplit(|byte| *byte == b'\n')
        .take(LAST_LINES)
        .map(|line| {
            let shown = memchr::memrchr(b'\r', line.strip_suffix(b"\r").unwrap_or(line))
                .map_or(line, |at| &line[at + 1..]);
            let cut = &shown[..shown.len().min(line::MAX_TEXT_BYTES)];
            String::from_utf8_lossy(cut).trim_end().to_owned()
        })
        .collect();
    lines.reverse();
    lines
}

/// An error after which the log reports more progress did not end the run. A verdict may come with a grace period in
/// which progress continues, so it counts as handled only when the run was resumed after it.
fn mark_passed(hits: &mut [Hit], first_kept: u64, last_lines: &[String], resumed_at: u64) {
    let progress: Vec<u64> = last_lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line::is_progress(line))
        .map(|(index, _)| first_kept + index as u64)
        .collect();
    let may_pass = |hit: &&mut Hit| match hit.role {
        Role::Cause | Role::Exception | Role::Completion => true,
        Role::Verdict => hit.line_number < resumed_at,
        _ => false,
    };
    for hit in hits.iter_mut().filter(may_pass) {
        if progress.iter().filter(|number| **number > hit.line_number).count() >= PROGRESS_LINES_AFTER {
            hit.handling = Handling::Handled;
        }
    }
    let last_sound = last_lines.iter().rposition(|line| ending::is_sound(line.as_bytes()));
    let recovered_at = last_sound.map_or(0, |index| first_kept + index as u64);
    for hit in hits.iter_mut().filter(|hit| is_skipped_update(hit) && hit.line_number < recovered_at) {
        hit.handling = Handling::Handled;
    }
}

/// Whether a scaler skips an update there and tries the next one: a gradient is not finite, the loss is.
fn is_skipped_update(hit: &Hit) -> bool {
    match hit.signature {
        numeric::OVERFLOW_SEEN => true,
        numeric::NAN_PRINTED => ending::is_lost_gradient(hit.text.as_bytes()),
        _ => false,
    }
}
