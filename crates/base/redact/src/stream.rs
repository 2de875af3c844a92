//! Redaction of bytes that arrive in pieces, in bounded memory.
//!
//! Whole lines go through at once. Of an unfinished line the last word is held back, because it may be the first half
//! of a secret; so is a private key's block until its end. What was passed of the unfinished line stays as context, so
//! that `password = ` and its value are seen together even when they arrive apart.

use super::search::{Search, Span, pem_end};
use super::tables::waiting;
use super::{armour, names, tables, value};

/// An unfinished word longer than this is passed; no secret without a recognisable beginning is longer.
pub const HELD_BYTES_MAX: usize = 4096;
/// An unfinished line is passed by itself, but for its last word, when it is longer than this.
const PARTIAL_BYTES_MAX: usize = 32 * 1024;
/// How much of the unfinished line is kept as context.
const CONTEXT_BYTES: usize = 256;
/// No first line of a private key's block is longer.
const ARMOUR_BYTES_MAX: usize = 80;
/// A private key's block that did not end after this many bytes is not a block.
const BLOCK_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Swallow {
    Nothing,
    /// The rest of a word whose beginning was a secret.
    Word,
    /// The lines of a private key.
    Block(Block),
}

/// Where in a private key's block the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    /// So many bytes may still belong to it.
    left: usize,
    /// The print of what is beside the key in the line of its beginning: what a logger puts there.
    beside: u64,
    place: Place,
}

/// The part of a block that its last line belonged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The rest of the line of its beginning comes next, of which a part of the key may have been taken already.
    Begin { has_key: bool },
    /// Headers, and one line of nothing.
    Head { has_header: bool, had_blank: bool },
    /// Lines of so many words, of which this one is the key.
    Body { words: usize, key: usize },
    /// A line shorter than the others: nothing but a checksum and the end may follow.
    Tail { words: usize, key: usize },
}

/// Takes secrets out of a stream of bytes. All other bytes come out unaltered and in order.
pub struct StreamRedactor<'a> {
    search: &'a Search,
    /// Context (already passed), then what is held back: an unfinished line, and the one before it if this one may have
    /// its value.
    line: Vec<u8>,
    context_bytes: usize,
    swallow: Swallow,
    /// Whether the end of the context is of a secret whose mark was written.
    is_marked: bool,
    /// What is behind the first line of a block that may be none.
    behind_begin: Vec<u8>,
}

impl std::fmt::Debug for StreamRedactor<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StreamRedactor").field("held_bytes", &self.held_bytes()).finish()
    }
}

impl<'a> StreamRedactor<'a> {
    pub(super) fn new(search: &'a Search) -> Self {
        Self {
            search,
            line: Vec::new(),
            context_bytes: 0,
            swallow: Swallow::Nothing,
            is_marked: false,
            behind_begin: Vec::new(),
        }
    }

    /// How many bytes wait for the rest of their line.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.line.len() - self.context_bytes
    }

    /// Takes the next bytes and appends to `clean` what may be stored.
    pub fn push(&mut self, bytes: &[u8], clean: &mut Vec<u8>) {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            bytes = match self.swallow {
                Swallow::Nothing => self.take(bytes, clean),
                Swallow::Word => self.swallow_word(bytes),
                Swallow::Block(block) => self.swallow_block(bytes, block, clean),
            };
        }
        if self.swallow == Swallow::Nothing && self.held_bytes() > PARTIAL_BYTES_MAX {
            self.flush(clean);
        }
    }

    /// Takes all bytes at once, so that a line end in binary data divides nothing, and appends what may be stored.
    pub(super) fn whole(mut self, bytes: &[u8], clean: &mut Vec<u8>) {
        self.line.extend_from_slice(bytes);
        self.finish(clean);
    }

    /// Passes the unfinished line but for its last word. For lines that stay unfinished: prompts, progress bars.
    pub fn flush(&mut self, clean: &mut Vec<u8>) {
        if self.held_bytes() == 0 || matches!(self.swallow, Swallow::Block(_)) {
            return;
        }
        let cut = self.safe_cut();
        if cut > self.context_bytes {
            let line = std::mem::take(&mut self.line);
            let (end, rest) = self.emit(&line, self.context_bytes, cut, clean);
            self.keep(&line, end);
            if let Some(rest) = rest {
                self.reenter(&line[rest..], clean);
            }
        }
    }

    /// Lets everything through. Nothing comes after it.
    pub fn finish(&mut self, clean: &mut Vec<u8>) {
        if let Swallow::Block(block) = self.swallow {
            let rest = self.take_line();
            self.swallow = Swallow::Nothing;
            if block.after(&rest).is_none_or(|block| block.may_be_none()) {
                let behind_begin = std::mem::take(&mut self.behind_begin);
                self.push(&behind_begin, clean);
                self.push(&rest, clean);
            }
        }
        let line = self.take_line_with_context();
        let (_, rest) = self.emit(&line.0, line.1, line.0.len(), clean);
        if let Some(rest) = rest.filter(|rest| *rest < line.0.len()) {
            self.reenter(&line.0[rest..], clean);
            self.finish(clean);
        }
    }

    /// Emits the whole lines in `bytes`, keeps the rest, and gives back what a swallowed block must look at first.
    fn take<'b>(&mut self, bytes: &'b [u8], clean: &mut Vec<u8>) -> &'b [u8] {
        let Some(newline) = memchr::memrchr(b'\n', bytes) else {
            self.line.extend_from_slice(bytes);
            return &[];
        };
        let (whole, rest) = bytes.split_at(newline + 1);
        if self.line.is_empty() {
            let (_, reenter) = self.emit(whole, 0, whole.len(), clean);
            return reenter.map_or_else(|| self.start_line(whole, rest), |at| &bytes[at..]);
        }
        let (mut line, context_bytes) = self.take_line_with_context();
        let before = line.len();
        line.extend_from_slice(whole);
        let (_, reenter) = self.emit(&line, context_bytes, line.len(), clean);
        match reenter {
            // The block's beginning may be in what was held; only new bytes are returned.
            Some(at) if at < before => {
                let held = line[at..before].to_vec();
                self.reenter(&held, clean);
                bytes
            }
            Some(at) => &bytes[at - before..],
            None => self.start_line(&line, rest),
        }
    }

    /// Begins the next line. Lines before it that end with the name of a value stay as context: the value may be below.
    fn start_line<'b>(&mut self, whole: &[u8], rest: &[u8]) -> &'b [u8] {
        let from = waiting::from(whole, opens);
        self.line.extend_from_slice(&whole[from..]);
        self.context_bytes = whole.len() - from;
        self.line.extend_from_slice(rest);
        &[]
    }

    /// Writes `line[from..cut]` without its secrets. Gives back where the line really was cut (a secret is never cut)
    /// and, when a private key's block continues, where the bytes begin that belong to it.
    fn emit(&mut self, line: &[u8], from: usize, cut: usize, clean: &mut Vec<u8>) -> (usize, Option<usize>) {
        let mut at = from;
        let is_marked = std::mem::take(&mut self.is_marked);
        for Span { start, end, kind, open, .. } in self.search.spans(line) {
            if end <= at || start >= cut.max(at) {
                continue;
            }
            clean.extend_from_slice(&line[at..start.max(at)]);
            if start >= from || !is_marked {
                clean.extend_from_slice(b"[redacted:");
                clean.extend_from_slice(kind.as_bytes());
                clean.push(b']');
            }
            at = end;
            let is_first = line[..end].ends_with(b"-----");
            if open && armour::may_continue(rest_of_line(line, end), is_first) {
                self.swallow = Swallow::Block(Block::begin(&line[..start], !is_first));
                return (end, Some(end));
            }
        }
        let end = at.max(cut);
        clean.extend_from_slice(&line[at..end]);
        if at == line.len() && at > from && line.last() != Some(&b'\n') {
            self.swallow = Swallow::Word;
        }
        (end, None)
    }

    /// Pushes bytes that were held before the bytes now being pushed.
    fn reenter(&mut self, held: &[u8], clean: &mut Vec<u8>) {
        self.line.clear();
        self.context_bytes = 0;
        let held = held.to_vec();
        self.push(&held, clean);
    }

    /// Keeps a little of `line[..end]` as context and all of `line[end..]` as held back.
    fn keep(&mut self, line: &[u8], end: usize) {
        let context_from = end.saturating_sub(CONTEXT_BYTES);
        self.line = line[context_from..].to_vec();
        self.context_bytes = end - context_from;
    }

    fn take_line(&mut self) -> Vec<u8> {
        self.take_line_with_context().0
    }

    fn take_line_with_context(&mut self) -> (Vec<u8>, usize) {
        (std::mem::take(&mut self.line), std::mem::take(&mut self.context_bytes))
    }

    /// Up to where the unfinished line cannot be part of a secret that is still arriving.
    fn safe_cut(&self) -> usize {
        let word = self.line.iter().rposition(u8::is_ascii_whitespace).map_or(0, |blank| blank + 1);
        let literal =
            self.search.literals().iter().filter_map(|literal| unfinished_literal(&self.line, literal));
        let wanted = literal.chain(unfinished_armour(&self.line)).chain([word]).min().unwrap_or(word);
        wanted.max(self.line.len().saturating_sub(HELD_BYTES_MAX)).max(self.context_bytes)
    }

    fn swallow_word<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let end = bytes.iter().position(|byte| byte.is_ascii_whitespace() || b"\"'`,;".contains(byte));
        match end {
            Some(end) => {
                self.swallow = Swallow::Nothing;
                self.remember(&bytes[..end]);
                &bytes[end..]
            }
            None => {
                self.remember(bytes);
                &[]
            }
        }
    }

    /// Keeps what was swallowed as context: the first line of a key may be in it.
    fn remember(&mut self, swallowed: &[u8]) {
        self.line.extend_from_slice(swallowed);
        self.line.drain(..self.line.len().saturating_sub(CONTEXT_BYTES));
        self.context_bytes = self.line.len();
        self.is_marked = true;
    }

    /// Drops the lines of a private key, up to its last line or the first line that cannot belong to it.
    fn swallow_block<'b>(&mut self, bytes: &'b [u8], block: Block, clean: &mut Vec<u8>) -> &'b [u8] {
        let newline = memchr::memchr(b'\n', bytes);
        let (part, rest) = bytes.split_at(newline.map_or(bytes.len(), |newline| newline + 1));
        self.line.extend_from_slice(part);
        if newline.is_none() && self.line.len() <= HELD_BYTES_MAX && pem_end().find(&self.line).is_none() {
            return rest;
        }
        let line = self.take_line();
        if let Some(end) = pem_end().find(&line) {
            self.swallow = Swallow::Nothing;
            self.behind_begin.clear();
            let after = line[end.end()..].to_vec();
            self.push(&after, clean);
        } else if let Some(next) = block.after(&line) {
            self.swallow = Swallow::Block(next);
            match next.may_be_none() {
                true => self.behind_begin.extend_from_slice(&line),
                false => self.behind_begin.clear(),
            }
        } else {
            self.swallow = Swallow::Nothing;
            match std::mem::take(&mut self.behind_begin) {
                nothing if nothing.is_empty() && block.left < BLOCK_BYTES_MAX => clean.push(b'\n'),
                behind_begin => self.push(&behind_begin, clean),
            }
            self.push(&line, clean);
        }
        rest
    }
}

impl Block {
    /// The block whose first line comes after these bytes.
    fn begin(before: &[u8], has_key: bool) -> Self {
        let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        Self {
            left: BLOCK_BYTES_MAX,
            beside: armour::print(0, armour::words(line)),
            place: Place::Begin { has_key },
        }
    }

    /// Whether nothing of a key was seen yet: it may be a mere mention of one.
    fn may_be_none(self) -> bool {
        matches!(self.place, Place::Begin { has_key: false } | Place::Head { has_header: false, .. })
    }

    /// The block after this line; `None`: the line cannot belong to it.
    fn after(self, line: &[u8]) -> Option<Self> {
        let left = self.left.checked_sub(line.len())?;
        let words: Vec<&[u8]> = armour::words(line).collect();
        let is_at = |at: usize, test: fn(&[u8]) -> bool| words.get(at).is_some_and(|word| test(word));
        let body = words.iter().position(|word| armour::is_key(word));
        let is_alone = words.len() == 1 && !matches!(self.place, Place::Begin { .. });
        let body = body.or_else(|| (is_alone && is_at(0, armour::is_end_of_key)).then_some(0));
        let body = body.map(|key| Place::Body { words: words.len(), key });
        let is_checksum = |at: usize| words.get(at).is_some_and(|word| word.starts_with(b"="));
        let mut beside = self.beside;
        let head = |has_header| Place::Head { has_header, had_blank: false };
        let place = match (self.place, body) {
            (Place::Begin { .. }, _) if armour::has_header(line) => head(true),
            (Place::Begin { has_key }, None) => {
                beside = armour::print(beside, words.iter().copied());
                head(has_key)
            }
            (Place::Head { .. }, _) if armour::has_header(line) => head(true),
            (Place::Begin { .. } | Place::Head { .. } | Place::Body { .. }, Some(body)) => body,
            (place, None) if words.is_empty() => place,
            (Place::Head { has_header, had_blank: false }, None)
                if armour::print(0, words.iter().copied()) == beside =>
            {
                Place::Head { has_header, had_blank: true }
            }
            (Place::Body { words: count, key }, None)
                if words.len() == count && is_at(key, armour::is_end_of_key) =>
            {
                Place::Tail { words: count, key }
            }
            (Place::Tail { words: count, key }, _) if words.len() == count && is_checksum(key) => self.place,
            _ => return None,
        };
        Some(Self { left, beside, place })
    }
}

/// Where the line ends in the beginning of a literal that has blanks in it (others are held back as a word).
fn unfinished_literal(line: &[u8], literal: &[u8]) -> Option<usize> {
    literal.iter().any(u8::is_ascii_whitespace).then_some(())?;
    let from = line.len().saturating_sub(literal.len() - 1);
    (from..line.len()).find(|at| literal.starts_with(&line[*at..]))
}

/// Where the line ends in the beginning of a private key's first line, which has blanks in it.
fn unfinished_armour(line: &[u8]) -> Option<usize> {
    let from = line.len().saturating_sub(ARMOUR_BYTES_MAX);
    (from..line.len()).rfind(|at| line[*at..].starts_with(b"-----BEGIN "))
}

fn rest_of_line(line: &[u8], from: usize) -> &[u8] {
    let newline = memchr::memchr(b'\n', &line[from..]);
    &line[from..newline.map_or(line.len(), |newline| from + newline)]
}

/// Whether a line ends with the name of who logs in: the password may be in the next one.
fn ends_with_login(line: &[u8]) -> bool {
    let mut last = words(line).rev();
    last.next().is_some() && last.next().is_some_and(|word| word.eq_ignore_ascii_case(b"login"))
}

/// Whether the value of what a line ends with may be in the next one.
fn opens(line: &[u8]) -> bool {
    let line = without_end_of_part(line.trim_ascii_end());
    let quotes = [&b"\"\"\""[..], b"'''", b"\\n\",", b"\\n\""];
    matches!(line.last(), Some(b':' | b'|' | b'>' | b'-' | b'(' | b'[' | b'{' | b'\\'))
        || quotes.iter().any(|end| line.ends_with(end))
        || ends_with_login(line)
        || ends_with_cut(line)
        || ends_with_option(line)
        || tables::is_header(line)
}

/// A line without the end of a part of a text: `\n` and the backslash, or the quote and the mark, behind which the next part is.
fn without_end_of_part(line: &[u8]) -> &[u8] {
    const ENDS: [&[u8]; 6] = [b"\\n\\", b"\\n\" +", b"\\n\" \\", b"\\n' +", b"\\n' \\", b"\\n'"];
    ENDS.iter().find_map(|end| line.strip_suffix(*end)).unwrap_or(line)
}

/// Whether a line ends with what may be the beginning of a token that continues in the next one.
fn ends_with_cut(line: &[u8]) -> bool {
    let last = bare(words(line).last().unwrap_or_default());
    (12..36).contains(&last.len())
        && value::mixed(last)
        && last.iter().take(12).any(|byte| matches!(byte, b'_' | b'-'))
}

/// Whether a line ends with an option whose value may be in the next one, as in a list of arguments.
fn ends_with_option(line: &[u8]) -> bool {
    let last = bare(words(line).next_back().unwrap_or_default());
    let is_known = |name: &str| names::says(name) != names::Says::Nothing;
    last.starts_with(b"-") && std::str::from_utf8(last).is_ok_and(is_known)
}

fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// A word without the quotes and brackets around it.
fn bare(word: &[u8]) -> &[u8] {
    let is_around = |byte: &u8| matches!(byte, b'"' | b'\'' | b'{' | b'}' | b'[' | b']' | b',');
    let from = word.iter().position(|byte| !is_around(byte)).unwrap_or(word.len());
    let to = word.iter().rposition(|byte| !is_around(byte)).map_or(from, |at| at + 1);
    &word[from..to]
}
