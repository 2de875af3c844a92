//! Separated values into fields: 64 bytes at a time become a mask of the bytes that mean something.
//!
//! The rules are those of RFC 4180, read generously: a quote opens a quoted field only as the field's first non-blank
//! byte; `""` within quotes is a quote, and in a file that escapes quotes with a backslash `\"` too; what follows the
//! closing quote up to the separator belongs to the field, and the row is known to be malformed; a line ends at `\n`,
//! `\r\n` or `\r`; empty lines are not rows, and neither are comments.

/// The one quote letter.
pub(crate) const QUOTE: u8 = b'"';

/// What separates, escapes and comments in a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    /// Whether a backslash before a quote makes it a letter of the field.
    pub(crate) has_backslashes: bool,
    /// A line that begins with this byte is left out.
    pub(crate) comment: Option<u8>,
}

/// Marks the length of a field that differs from its bytes: escaped quotes, or text after the quotes.
const ESCAPED: u32 = 1 << 31;

/// Marks the length of a field within quotes, whose blanks belong to it.
const QUOTED: u32 = 1 << 30;

/// Marks the length of a field in which backslashes escape quotes.
const BACKSLASHES: u32 = 1 << 29;

/// The place of a field in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    start: u32,
    length: u32,
}

impl Span {
    #[inline]
    fn new(start: usize, end: usize, flags: u32) -> Self {
        let position = |at: usize| u32::try_from(at).expect("blocks are shorter than 4 GiB");
        Self { start: position(start), length: position(end - start) | flags }
    }

    /// The field's bytes, without the blanks around them. `scratch` holds them if quotes had to be resolved.
    #[inline]
    pub(crate) fn get<'t>(self, text: &'t [u8], scratch: &'t mut Vec<u8>) -> &'t [u8] {
        if self.length & ESCAPED == 0 {
            return trim(self.raw(text));
        }
        unescape(self.raw(text), self.length & BACKSLASHES != 0, scratch);
        scratch.trim_ascii()
    }

    /// The field's bytes as a text: with its blanks where it is within quotes; else without, and whether there were any.
    #[inline]
    pub(crate) fn text<'t>(self, text: &'t [u8], scratch: &'t mut Vec<u8>) -> (&'t [u8], bool) {
        let is_quoted = self.is_quoted();
        if self.length & ESCAPED == 0 {
            let raw = self.raw(text);
            let field = if is_quoted { raw } else { trim(raw) };
            return (field, field.len() != raw.len());
        }
        unescape(self.raw(text), self.length & BACKSLASHES != 0, scratch);
        (if is_quoted { scratch.as_slice() } else { scratch.trim_ascii() }, false)
    }

    /// The field's bytes where they are not those of its text: with blanks around it, or text behind its closing quote.
    pub(crate) fn otherwise_written(self, text: &[u8]) -> Option<&[u8]> {
        let raw = self.raw(text);
        let is_malformed = self.length & ESCAPED != 0;
        (!self.is_quoted() && (is_malformed || trim(raw).len() != raw.len())).then_some(raw)
    }

    /// Whether it is within quotes, and nothing else is in it.
    pub(crate) fn is_quoted(self) -> bool {
        self.length & QUOTED != 0
    }

    fn raw(self, text: &[u8]) -> &[u8] {
        let (start, length) =
            (self.start as usize, (self.length & !(ESCAPED | QUOTED | BACKSLASHES)) as usize);
        &text[start..start + length]
    }

    /// Whether nothing is between the separators.
    pub(crate) fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// As `trim_ascii`; most fields have nothing to trim, or one blank in front.
#[inline]
fn trim(field: &[u8]) -> &[u8] {
    let is_bare = |field: &[u8]| {
        field.first().is_some_and(|byte| *byte > b' ') && field.last().is_some_and(|byte| *byte > b' ')
    };
    match field {
        field if is_bare(field) => field,
        [b' ', behind @ ..] if is_bare(behind) => behind,
        _ => field.trim_ascii(),
    }
}

/// The field that begins with the text after an opening quote: quotes doubled or escaped up to the closing one, then as is.
fn unescape(raw: &[u8], has_backslashes: bool, field: &mut Vec<u8>) {
    field.clear();
    let mut rest = raw;
    while let Some(at) = memchr::memchr(QUOTE, rest) {
        let slashes = if has_backslashes { backslashes_before(rest, at) } else { 0 };
        // Each pair of them is one backslash, and one that is left escapes the quote.
        field.extend_from_slice(&rest[..at - slashes.div_ceil(2)]);
        let doubled = slashes % 2 == 0 && rest.get(at + 1) == Some(&QUOTE);
        let is_letter = doubled || slashes % 2 == 1;
        if is_letter {
            field.push(QUOTE);
        }
        rest = &rest[at + 1 + usize::from(doubled)..];
        if !is_letter {
            break;
        }
    }
    field.extend_from_slice(rest);
}

/// How many backslashes come directly before a place.
fn backslashes_before(text: &[u8], at: usize) -> usize {
    text[..at].iter().rev().take_while(|byte| **byte == b'\\').count()
}

/// Whether the quote at `at`, which is outside of quotes, is the first non-blank byte of its field.
pub(crate) fn opens_quote(text: &[u8], at: usize, delimiter: u8) -> bool {
    let before = text[..at].iter().rev().find(|byte| !matches!(byte, b' ' | b'\t') || **byte == delimiter);
    before.is_none_or(|byte| *byte == delimiter || matches!(byte, b'\n' | b'\r'))
}

/// The position of the quote that closes what was opened before `from`.
pub(crate) fn quote_end(text: &[u8], mut from: usize, has_backslashes: bool) -> Option<usize> {
    loop {
        let quote = from + memchr::memchr(QUOTE, text.get(from..)?)?;
        if has_backslashes && backslashes_before(&text[from..], quote - from) % 2 == 1 {
            from = quote + 1;
        } else if text.get(quote + 1) == Some(&QUOTE) {
            from = quote + 2;
        } else {
            return Some(quote);
        }
    }
}

/// A count and its first line, with more of it from a line on.
fn more((known, first): (u64, u64), count: u64, line: u64) -> (u64, u64) {
    (known + count, if known == 0 { line } else { first })
}

/// Lines that end in a text: at `\n`, `\r\n`, or a `\r` alone.
pub(crate) fn count_lines(text: &[u8]) -> u64 {
    let feeds = memchr::memchr_iter(b'\n', text).count();
    let lone = memchr::memchr_iter(b'\r', text).filter(|at| text.get(at + 1) != Some(&b'\n')).count();
    (feeds + lone) as u64
}

/// How a row ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowEnd {
    /// Properly; with the line on which the row began.
    Row { line: u64 },
    /// The text ended within quotes.
    OpenQuote { line: u64 },
    /// There is no further row.
    End,
}

/// The end of a quoted part of a field.
#[derive(Debug, Clone, Copy)]
struct Quoted {
    /// Its closing quote.
    end: usize,
    /// Whether it holds a quote, or a backslash before one.
    escaped: bool,
}

/// Walks over the rows of a text that begins where a record begins and ends where one ends.
pub(crate) struct Splitter<'t> {
    text: &'t [u8],
    dialect: Dialect,
    /// Bytes that mean something, in the 64 from `base` on, not yet visited.
    mask: u64,
    base: usize,
    position: usize,
    line: u64,
    fields_max: usize,
    /// Whether the last row has text behind a closing quote.
    is_malformed: bool,
    left_out: LinesLeftOut,
}

/// Lines before rows that are not rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LinesLeftOut {
    /// How many have nothing in them, and the first.
    pub(crate) empty: (u64, u64),
    /// How many are comments, and the first.
    pub(crate) comments: (u64, u64),
}

impl<'t> Splitter<'t> {
    /// Of a row with more than `fields_max` fields, one more than that is given.
    pub(crate) fn new(text: &'t [u8], dialect: Dialect, first_line: u64, fields_max: usize) -> Self {
        let mut splitter = Self {
            text,
            dialect,
            mask: 0,
            base: 0,
            position: 0,
            line: first_line,
            fields_max,
            is_malformed: false,
            left_out: LinesLeftOut::default(),
        };
        splitter.mask = splitter.mask_from(0);
        splitter
    }

    /// Whether the row that was given last has text behind a closing quote.
    pub(crate) fn is_malformed(&self) -> bool {
        self.is_malformed
    }

    /// Lines that were walked over and are not rows.
    pub(crate) fn left_out(&self) -> LinesLeftOut {
        self.left_out
    }

    /// How far it has walked.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Appends the spans of the next row's fields, and of more fields than a table has columns the first ones only.
    /// `MAX_RECORD_BYTES` keeps every position within 32 bits.
    pub(crate) fn next_row(&mut self, spans: &mut Vec<Span>) -> RowEnd {
        self.skip_to_row();
        if self.position >= self.text.len() {
            return RowEnd::End;
        }
        self.is_malformed = false;
        let line = self.line;
        let mut start = self.position;
        let mut behind_quotes = None;
        let full = spans.len() + self.fields_max;
        loop {
            let at = self.next_special();
            let byte = self.text.get(at).copied();
            if byte == Some(QUOTE) {
                let is_letter = behind_quotes.is_some()
                    || !self.text[start..at].iter().all(|byte| matches!(byte, b' ' | b'\t'));
                if is_letter {
                    continue;
                }
                let Some(quoted) = self.skip_quoted(at + 1) else {
                    self.position = self.text.len();
                    return RowEnd::OpenQuote { line };
                };
                start = at + 1;
                behind_quotes = Some(quoted);
                continue;
            }
            let span = self.span(start, at, behind_quotes.take());
            if spans.len() <= full {
                spans.push(span);
            }
            start = at + 1;
            if byte != Some(self.dialect.delimiter) {
                let is_first_half = byte == Some(b'\r') && self.text.get(start) == Some(&b'\n');
                self.line += u64::from(byte.is_some() && !is_first_half);
                self.position = start.min(self.text.len());
                return RowEnd::Row { line };
            }
        }
    }

    /// Walks to the quote that closes what was opened before `from`.
    fn skip_quoted(&mut self, mut from: usize) -> Option<Quoted> {
        let mut escaped = false;
        loop {
            let at = self.next_special();
            let next_is = |byte| self.text.get(at + 1) == Some(&byte);
            match self.text.get(at)? {
                &QUOTE => {
                    let slashes = match self.dialect.has_backslashes {
                        true => backslashes_before(&self.text[from..], at - from),
                        false => 0,
                    };
                    escaped |= slashes > 0;
                    if slashes % 2 == 1 {
                        from = at + 1;
                    } else if next_is(QUOTE) {
                        escaped = true;
                        from = at + 2;
                        self.next_special();
                    } else {
                        return Some(Quoted { end: at, escaped });
                    }
                }
                b'\n' => self.line += 1,
                b'\r' if !next_is(b'\n') => self.line += 1,
                _ => {}
            }
        }
    }

    #[inline]
    fn span(&mut self, start: usize, end: usize, quoted: Option<Quoted>) -> Span {
        match quoted {
            None => Span::new(start, end, 0),
            Some(quoted) if quoted.end + 1 == end && !quoted.escaped => Span::new(start, quoted.end, QUOTED),
            Some(quoted) => self.unusual_span(start, end, quoted),
        }
    }

    fn unusual_span(&mut self, start: usize, end: usize, quoted: Quoted) -> Span {
        let (end, flags) = match self.text[quoted.end + 1..end].trim_ascii().is_empty() {
            true if quoted.escaped => (quoted.end + 1, QUOTED | ESCAPED),
            true => (quoted.end, QUOTED),
            false => {
                self.is_malformed = true;
                (end, ESCAPED)
            }
        };
        let backslashes = if self.dialect.has_backslashes && flags & ESCAPED != 0 { BACKSLASHES } else { 0 };
        Span::new(start, end, flags | backslashes)
    }

    /// Walks to the next row, over empty lines and comments.
    fn skip_to_row(&mut self) {
        let before = self.position;
        let next_is_feed = self.text.get(before) == Some(&b'\n');
        if next_is_feed && before > 0 && self.text[before - 1] == b'\r' {
            // The second half of the line end of the row before.
            self.position += 1;
            self.line += 1;
        }
        let mut empty_from = self.position;
        loop {
            match self.text.get(self.position) {
                Some(b'\n' | b'\r') => self.position += 1,
                Some(byte) if self.dialect.comment == Some(*byte) => {
                    self.leave_out_empty(empty_from);
                    self.left_out.comments = more(self.left_out.comments, 1, self.line);
                    let rest = &self.text[self.position..];
                    self.position += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                    // The line end belongs to the comment.
                    let end = &self.text[self.position..];
                    self.line += u64::from(!end.is_empty());
                    self.position += if end.starts_with(b"\r\n") { 2 } else { end.len().min(1) };
                    empty_from = self.position;
                }
                Some(_) => {
                    self.leave_out_empty(empty_from);
                    break;
                }
                // Behind the last row they are part of its end.
                None => {
                    self.line += count_lines(&self.text[empty_from..]);
                    break;
                }
            }
        }
        if self.position > before {
            self.move_to(self.position);
        }
    }

    /// Counts the empty lines from a place to the position.
    fn leave_out_empty(&mut self, from: usize) {
        if self.position > from {
            let lines = count_lines(&self.text[from..self.position]);
            self.left_out.empty = more(self.left_out.empty, lines, self.line);
            self.line += lines;
        }
    }

    /// The position of the next byte that means something; the text's length if there is none.
    #[inline]
    fn next_special(&mut self) -> usize {
        while self.mask == 0 {
            self.base += 64;
            if self.base >= self.text.len() {
                return self.text.len();
            }
            self.mask = self.mask_from(self.base);
        }
        let at = self.base + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        at
    }

    fn move_to(&mut self, position: usize) {
        if position - self.base >= 64 {
            self.base = position;
            self.mask = self.mask_from(position);
        } else {
            self.mask &= u64::MAX << (position - self.base);
        }
    }

    #[inline]
    fn mask_from(&self, base: usize) -> u64 {
        match self.text.get(base..base + 64) {
            Some(bytes) => special_bytes(bytes.try_into().expect("64 bytes"), self.dialect.delimiter),
            None => {
                let rest = self.text.get(base..).unwrap_or_default();
                let mut padded = [0; 64];
                padded[..rest.len()].copy_from_slice(rest);
                let beyond = if rest.len() < 64 { u64::MAX << rest.len() } else { 0 };
                special_bytes(&padded, self.dialect.delimiter) & !beyond
            }
        }
    }
}

/// One bit per byte that is the delimiter, a quote or part of a line end.
#[cfg(target_arch = "x86_64")]
#[inline]
fn special_bytes(bytes: &[u8; 64], delimiter: u8) -> u64 {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { special_bytes_sse2(bytes, delimiter) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn special_bytes_sse2(bytes: &[u8; 64], delimiter: u8) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8};
    let half = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let mut mask = 0;
    for lane in 0..4 {
        let data = _mm_set_epi64x(half(lane * 16 + 8), half(lane * 16));
        let equals = |byte: u8| _mm_cmpeq_epi8(data, _mm_set1_epi8(byte.cast_signed()));
        let breaks = _mm_or_si128(equals(b'\n'), equals(b'\r'));
        let special = _mm_or_si128(_mm_or_si128(equals(delimiter), equals(QUOTE)), breaks);
        mask |= u64::from(_mm_movemask_epi8(special).cast_unsigned()) << (lane * 16);
    }
    mask
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn special_bytes(bytes: &[u8; 64], delimiter: u8) -> u64 {
    bytes.iter().enumerate().fold(0, |mask, (index, byte)| {
        let special = *byte == delimiter || matches!(byte, b'\n' | b'\r' | &QUOTE);
        mask | u64::from(special) << index
    })
}
