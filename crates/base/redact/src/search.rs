//! Finds secrets in bytes: one pass for all beginnings, triggers and literal values, then a closer
//! look at each match. The same again on the views of lines with escapes.

use std::borrow::Cow;
use std::cmp::Ordering;

use once_cell::race::OnceBox;
use regex::bytes::Regex;

use super::armour;
use super::lines::unprefixed::Unprefixed;
use super::lines::view::{INVISIBLE, SEARCHED, View, first_escape};
use super::lines::words::Words;
use super::rules::RULES;
use super::rules::assigned;
use super::rules::ordinary;
use super::rules::rule::ReadExtent;
use super::shapes::SHAPES;
use super::tables;
use super::tables::grid;
use crate::racy::Racy;

/// Where a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub start: usize,
    pub end: usize,
    pub kind: &'static str,
    /// The block has begun and its end was not in the bytes: it continues after `end`.
    pub open: bool,
    /// Smaller means more specific, for the name of merged spans.
    rank: usize,
}

/// The shape of the first line of a private key in PEM armour (RFC 7468 and the older OpenSSL and PGP forms).
/// PuTTY's files have another first and last line.
/// In a URL a blank has other spellings.
const PEM_BEGIN: &str = r"-----BEGIN(?:[ +]|%20)(?:[A-Z0-9 +]|%20){0,40}PRIVATE(?:[ +]|%20)KEY(?:(?:[ +]|%20)BLOCK)?-----|Private-Lines: [0-9]{1,4}";
const PEM_END: &str = r"-----END(?:[ +]|%20)(?:[A-Z0-9 +]|%20){0,40}PRIVATE(?:[ +]|%20)KEY(?:(?:[ +]|%20)BLOCK)?-----|Private-MAC: [0-9a-fA-F]{40,64}";
const PEM_TRIGGERS: [&str; 4] = ["-----begin ", "-----begin+", "-----begin%20", "private-lines: "];
const PEM_KIND: &str = "private-key";
/// What is known by the name before it.
const NAMED_KIND: &str = "secret";
const LITERAL_KIND: &str = "environment";

pub(super) fn pem_begin() -> &'static Regex {
    static REGEX: OnceBox<Regex> = OnceBox::new();
    REGEX.get_or_init(|| Box::new(Regex::new(PEM_BEGIN).expect("a fixed pattern, compiled by the tests")))
}

pub(super) fn pem_end() -> &'static Regex {
    static REGEX: OnceBox<Regex> = OnceBox::new();
    REGEX.get_or_init(|| Box::new(Regex::new(PEM_END).expect("a fixed pattern, compiled by the tests")))
}

#[derive(Debug, Clone, Copy)]
enum Meaning {
    Shape(usize),
    Rule(usize),
    Pem,
    Literal(usize),
    Invisible,
}

/// What a search through bytes collects.
#[derive(Default)]
struct FoundSpans {
    spans: Vec<Span>,
    /// Where characters are that are not seen.
    invisible: Vec<usize>,
    /// Of each rule that was tried where the line ends that it was tried on.
    tried: Vec<(usize, usize)>,
}

/// What is looked for whatever the literals are, in order, and of each word what it means: several rules have a word in
/// common.
struct Fixed {
    words: Vec<Cow<'static, [u8]>>,
    meanings: Vec<Meaning>,
    /// Where the meanings of each word end.
    ends: Vec<usize>,
}

/// Made once for all searches of a process: of thousands of triggers, in the time of a short run.
static FIXED: Racy<Fixed> = Racy::new(|| {
    let shapes = SHAPES.iter().enumerate().map(|(index, shape)| (shape.anchor(), Meaning::Shape(index)));
    let rules = RULES.iter().enumerate().flat_map(|(index, rule)| {
        rule.triggers.iter().map(move |trigger| (trigger.as_bytes(), Meaning::Rule(index)))
    });
    let invisible = INVISIBLE.into_iter().take(SEARCHED).map(|character| (character, Meaning::Invisible));
    let blocks = PEM_TRIGGERS.into_iter().map(|trigger| (trigger.as_bytes(), Meaning::Pem));
    let all = shapes.chain(rules).chain(invisible).chain(blocks);
    let mut all: Vec<_> = all.map(|(word, meaning)| (in_lower_case(word), meaning)).collect();
    all.sort_by(|(left, _), (right, _)| left.cmp(right));
    let (mut words, mut meanings, mut ends) = (Vec::new(), Vec::with_capacity(all.len()), Vec::new());
    for same in all.chunk_by(|(left, _), (right, _)| left == right) {
        words.push(same[0].0.clone());
        meanings.extend(same.iter().map(|(_, meaning)| *meaning));
        ends.push(meanings.len());
    }
    Fixed { words, meanings, ends }
});

fn in_lower_case(word: &[u8]) -> Cow<'_, [u8]> {
    match word.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(word.to_ascii_lowercase()),
        false => Cow::Borrowed(word),
    }
}

impl Fixed {
    /// What a word means; `None`: it is behind the fixed ones.
    fn meanings_of(&self, word: usize) -> Option<&[Meaning]> {
        let end = *self.ends.get(word)?;
        let begin = word.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.meanings[begin..end])
    }

    /// Whether a word may be something at a place of a line whatever the digits of the line are.
    fn may_be(&self, word: usize, line: &[u8], at: usize) -> bool {
        let may_be = |meaning: &Meaning| match meaning {
            Meaning::Shape(index) => SHAPES[*index].may_be(line, at),
            _ => true,
        };
        self.meanings_of(word).is_none_or(|meanings| meanings.iter().any(may_be))
    }
}

pub(super) struct Search {
    literals: Vec<Vec<u8>>,
    /// A literal may be part of a number as it is printed.
    has_numeric_literal: bool,
    /// The fixed words, and the literals behind them.
    words: OnceBox<Words>,
}

impl Search {
    pub fn new(literals: Vec<Vec<u8>>) -> Self {
        let is_of_number = |byte: &u8| byte.is_ascii_digit() || b".+-eEinfNa".contains(byte);
        let has_numeric_literal = literals.iter().any(|literal| literal.iter().all(is_of_number));
        Self { literals, has_numeric_literal, words: OnceBox::new() }
    }

    /// Whether a literal may be part of a number as it is printed.
    pub fn has_numeric_literal(&self) -> bool {
        self.has_numeric_literal
    }

    pub fn literals(&self) -> &[Vec<u8>] {
        &self.literals
    }

    /// Makes what is otherwise made at the first search.
    pub fn prepare(&self) {
        self.words();
    }

    /// Every secret, in order, none overlapping another.
    pub fn spans(&self, bytes: &[u8]) -> Vec<Span> {
        if bytes.is_empty() {
            return Vec::new();
        }
        let FoundSpans { mut spans, invisible, .. } = self.scan(bytes);
        let mut at = 0;
        while let Some(escape) = first_escape(&bytes[at..]) {
            let line = line_around(bytes, at + escape);
            self.scan_views(&bytes[line.clone()], line.start, &mut spans);
            at = line.end;
        }
        self.scan_invisible(bytes, &invisible, &mut spans);
        merge(spans)
    }

    /// Secrets in lines with characters that are not seen and without other escapes.
    fn scan_invisible(&self, bytes: &[u8], places: &[usize], found: &mut Vec<Span>) {
        let mut done = 0;
        for at in places.iter().copied() {
            if at >= done {
                let line = line_around(bytes, at);
                done = line.end;
                if first_escape(&bytes[line.clone()]).is_none() {
                    self.scan_views(&bytes[line.clone()], line.start, found);
                }
            }
        }
    }

    /// Secrets in the views of a line that begins at `offset`.
    fn scan_views(&self, line: &[u8], offset: usize, found: &mut Vec<Span>) {
        for view in View::of(line) {
            let seen = self.scan(&view.bytes).spans;
            // A block that continues is found in the line as it is.
            found.extend(seen.into_iter().filter(|span| !span.open && span.start < span.end).map(|span| {
                let (start, end) = view.in_line(span.start, span.end);
                Span { start: offset + start, end: offset + end, ..span }
            }));
        }
    }

    fn scan(&self, bytes: &[u8]) -> FoundSpans {
        let fixed = &*FIXED;
        let mut found = FoundSpans::default();
        let may_be = |word: usize, line: &[u8], at: usize| fixed.may_be(word, line, at);
        self.words().find_all(bytes, may_be, |at, word| match fixed.meanings_of(word) {
            Some(meanings) => {
                meanings.iter().for_each(|meaning| self.look(*meaning, bytes, at, &mut found));
            }
            None => self.look(Meaning::Literal(word - fixed.words.len()), bytes, at, &mut found),
        });
        found
    }

    /// Looks closer at a word that was found.
    fn look(&self, meaning: Meaning, bytes: &[u8], at: usize, found: &mut FoundSpans) {
        match meaning {
            Meaning::Literal(index) => {
                // Words are found in any case; a literal has its own.
                let literal = &self.literals[index];
                if bytes[at..].starts_with(literal) {
                    found.spans.push(span(at, at + literal.len(), LITERAL_KIND, usize::MAX));
                }
            }
            Meaning::Invisible => found.invisible.push(at),
            Meaning::Pem => found.spans.extend(pem_block(bytes, at)),
            Meaning::Shape(index) => {
                let shape = &SHAPES[index];
                if let Some((start, end)) = shape.find(bytes, at) {
                    let found_here = span(start, end, shape.kind, index);
                    found.spans.push(if shape.kind == PEM_KIND {
                        body(bytes, found_here)
                    } else {
                        found_here
                    });
                    let rest = shape.rest(bytes, start, end);
                    found.spans.extend(rest.map(|(start, end)| span(start, end, shape.kind, index)));
                }
            }
            Meaning::Rule(index) => {
                let known = found.tried.iter_mut().find(|(rule, _)| *rule == index);
                if known.as_ref().is_some_and(|(_, line_end)| at < *line_end) {
                    return;
                }
                let line = line_around(bytes, at);
                match known {
                    Some((_, line_end)) => *line_end = line.end,
                    None => found.tried.push((index, line.end)),
                }
                rule_spans(index, bytes, line, at, &mut found.spans);
            }
        }
    }

    fn words(&self) -> &Words {
        self.words.get_or_init(|| {
            let fixed = FIXED.words.iter().map(AsRef::as_ref);
            let words: Vec<&[u8]> = fixed.chain(self.literals.iter().map(Vec::as_slice)).collect();
            Box::new(Words::new(&words))
        })
    }
}

fn span(start: usize, end: usize, kind: &'static str, rank: usize) -> Span {
    Span { start, end, kind, open: false, rank }
}

fn line_around(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline);
    start..end
}

/// A line of which more than this is behind a trigger has its value in itself.
const OPENING_BYTES_MAX: usize = 120;

/// What is assigned to a name is read in so many lines and bytes from that of the name on.
const ASSIGNED_LINES: usize = 16;
const ASSIGNED_BYTES: usize = 1024;

fn rule_spans(index: usize, bytes: &[u8], line: std::ops::Range<usize>, at: usize, found: &mut Vec<Span>) {
    let rule = &RULES[index];
    let rank = SHAPES.len() + index;
    let mut keep = |start: usize, end: usize| {
        if !(rule.accept)(&bytes[start..end]) {
            return;
        }
        let secret = match rule.kind {
            NAMED_KIND => ordinary::secret_part(bytes, start..end),
            _ => Some(start..end),
        };
        found.extend(secret.map(|secret| span(secret.start, secret.end, rule.kind, rank)));
    };
    match rule.reading {
        ReadExtent::Line => {
            for captures in rule.regex().captures_iter(&bytes[line.clone()]) {
                let secret = captures.iter().skip(1).flatten().next().or_else(|| captures.get(0));
                secret
                    .into_iter()
                    .for_each(|secret| keep(line.start + secret.start(), line.start + secret.end()));
            }
        }
        ReadExtent::Lines(count) if line.end - at <= OPENING_BYTES_MAX => {
            // A trigger may begin with a mark that is of the prefix.
            let marks = bytes[at..line.end].iter().take_while(|byte| byte.is_ascii_punctuation()).count();
            let lines = Unprefixed::new(bytes, line, at + marks, count);
            for captures in rule.regex().captures_iter(&lines.bytes) {
                for secret in captures.iter().skip(1).flatten() {
                    keep(lines.place(secret.start()), lines.place(secret.end() - 1) + 1);
                }
            }
        }
        ReadExtent::Lines(_) => {}
        ReadExtent::Bytes(count) => {
            let end = line.start.saturating_add(count).min(bytes.len()).max(line.end);
            for captures in rule.regex().captures_iter(&bytes[line.start..end]) {
                let secrets = captures.iter().skip(1).flatten();
                secrets.for_each(|secret| keep(line.start + secret.start(), line.start + secret.end()));
            }
        }
        ReadExtent::Assigned { is_strong } => {
            let marks = bytes[at..line.end].iter().take_while(|byte| byte.is_ascii_punctuation()).count();
            let read = &bytes[..bytes.len().min(line.end + ASSIGNED_BYTES)];
            let lines = Unprefixed::new(read, line, at + marks, ASSIGNED_LINES);
            let named = rule.regex().captures_iter(&lines.bytes);
            for name in named.filter_map(|captures| captures.get(1)) {
                for value in assigned::values(&lines.bytes, name.end(), is_strong) {
                    keep(lines.place(value.start), lines.place(value.end - 1) + 1);
                }
            }
        }
        ReadExtent::Grid => grid::cells(bytes, line).into_iter().for_each(|cell| keep(cell.start, cell.end)),
        ReadExtent::Column => tables::cells(bytes, line).for_each(|(start, end)| keep(start, end)),
    }
}

/// The block that begins at `at`; open when its end is not there.
fn pem_block(bytes: &[u8], at: usize) -> Option<Span> {
    let begin = pem_begin().find_at(bytes, at).filter(|begin| begin.start() == at)?;
    let end = pem_end().find_at(bytes, begin.end()).map(|end| end.end());
    let cut = end.unwrap_or_else(|| begin.end() + armour::cut_off(&bytes[begin.end()..]));
    Some(Span { start: at, end: cut, kind: PEM_KIND, open: end.is_none(), rank: 0 })
}

/// The body of a private key without its first line: what follows in its line, and then in the lines below, is of it, too.
fn body(bytes: &[u8], first: Span) -> Span {
    let line = first.end..line_around(bytes, first.end).end;
    Span { end: first.end + armour::cut_off(&bytes[line]), open: true, ..first }
}

fn merge(mut found: Vec<Span>) -> Vec<Span> {
    found.sort_unstable_by_key(|span| (span.start, span.rank));
    let mut merged: Vec<Span> = Vec::with_capacity(found.len());
    for span in found {
        match merged.last_mut().filter(|last| span.start < last.end) {
            Some(last) => {
                // A value with a name that has the beginning of a key ends in its line, and the key does not.
                let has_end = |span: &Span| span.kind == PEM_KIND && !span.open;
                last.open = match span.end.cmp(&last.end) {
                    Ordering::Greater => span.open || last.open && !has_end(&span),
                    Ordering::Less => last.open || span.open && !has_end(last),
                    Ordering::Equal => (last.open || span.open) && !has_end(&span) && !has_end(last),
                };
                last.end = last.end.max(span.end);
                if span.rank < last.rank {
                    (last.kind, last.rank) = (span.kind, span.rank);
                }
            }
            None => merged.push(span),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each trigger of a rule is looked for with its meaning, that a word which several rules have in common
    /// is looked for once, and that literals are found behind the fixed words.
    #[test]
    fn every_trigger_is_looked_for_once() {
        let fixed = &*FIXED;
        assert!(fixed.words.is_sorted_by(|left, right| left < right));
        for (index, rule) in RULES.iter().enumerate() {
            for trigger in rule.triggers.iter() {
                let word = fixed.words.binary_search(&in_lower_case(trigger.as_bytes())).unwrap();
                let is_of_rule = |meaning: &Meaning| matches!(meaning, Meaning::Rule(of) if *of == index);
                assert!(fixed.meanings_of(word).unwrap().iter().any(is_of_rule), "{trigger}");
            }
        }
        assert!(fixed.meanings_of(fixed.words.len()).is_none());
        let search = Search::new(vec![b"correct-horse".to_vec(), b"Battery1".to_vec()]);
        let found = search.spans(b"a correct-horse, battery1, Battery1");
        let places: Vec<_> = found.iter().map(|span| (span.start, span.end, span.kind)).collect();
        assert_eq!(places, [(2, 15, LITERAL_KIND), (27, 35, LITERAL_KIND)]);
    }

    /// Proves that a line which has no more than the literal of a token, whatever its digits are, is not searched again and again, and that
    /// a token is found in lines that are alike but for their digits, where only one of them has the digit that it begins with.
    #[test]
    fn a_token_is_found_in_lines_that_come_again() {
        let search = Search::new(Vec::new());
        for (token, kind) in [
            ("2aB3dEfGhIjKlMnOpQrStUvWx1z_9bCdEfGhIjKlMnOpQrStU", "ngrok-token"),
            ("1/123456789012:0123456789abcdef0123456789abcdef", "asana-token"),
        ] {
            let lines = (0..100).map(|at| match at % 2 {
                0 => format!("{{\"step\": {at:03}, \"grad_norm\": 1.5}}\n"),
                _ if at == 51 => format!("id {token} of {at:02}\n"),
                _ => format!("id {}{} of {at:02}\n", 3 + at % 7, &token[1..]),
            });
            let text: String = lines.collect();
            let found = search.spans(text.as_bytes());
            let found: Vec<_> = found.iter().map(|span| (span.start, span.kind)).collect();
            assert_eq!(found, [(text.find(token).unwrap(), kind)]);
        }
        for line in [
            "{\"step\": 100, \"grad_norm\": 1.5}\n",
            "1/300 from the disk, 0.5 done\n",
            "\rbar 11/300000 0.5%",
        ] {
            let mut found = 0;
            let may_be = |word: usize, line: &[u8], at: usize| FIXED.may_be(word, line, at);
            search.words().find_all(line.repeat(100).as_bytes(), may_be, |_, _| found += 1);
            assert!(found < 5, "{line} {found}");
        }
    }
}
