//! Objects and dicts over several lines, as `json.dumps(…, indent=2)` and `pprint` print them: their lines are put
//! together and read as one. Where nothing in one is measured, or it is none or does not end, each line is read by itself.

use super::lexical::named::LineValues;
use super::lexical::names::{self, Meaning};
use super::lexical::prefix;
use super::message::dict_at_end;
use super::{
    LeftOutKind, Printed, PrintedMetrics, ReaderState, lines, objects, python, read_logged, read_message,
};

/// So many bytes are kept at most.
const BYTES_MAX: usize = super::LINE_BYTES_MAX;
/// The beginning of an ordered dict.
const PAIRS: &str = "([(";

/// The lines of an object that has not ended.
#[derive(Debug, Default)]
pub(super) struct OpenObject {
    /// Each with its number.
    lines: Vec<(u64, Vec<u8>)>,
    bytes: usize,
    /// So many brackets are open.
    depth: usize,
}

/// What a line is for an open object.
enum Taken {
    Part,
    /// The object ends with it.
    End,
    Other,
    /// The object would have too many lines or bytes with it.
    TooLong,
}

impl OpenObject {
    /// Whether no object is open.
    pub fn is_closed(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a line may be of an object over several lines.
    #[inline]
    pub fn may_have(&self, line: &[u8]) -> bool {
        !self.is_closed() || may_end_open(line)
    }

    /// Takes a line. One that ends with a carriage return and a newline has an empty one behind it, which does not count.
    fn take(&mut self, number: u64, line: &[u8]) -> Taken {
        if line.is_empty() && self.lines.last().is_some_and(|(last, _)| *last == number) {
            return Taken::Part;
        }
        let text = line.trim_ascii();
        let begin = match self.is_closed() {
            true => beginning_of(text),
            false => may_be_within(line).then_some(0),
        };
        let Some(begin) = begin else { return Taken::Other };
        let Some(depth) = depth_behind(self.depth, &text[begin..]) else { return Taken::Other };
        // Of a list with one object in each line, each line is read at once.
        let is_of_list = self.lines.len() == 1 && self.depth == 1 && text.starts_with(b"{") && depth == 1;
        if (self.is_closed() && depth == 0) || (is_of_list && self.lines[0].1.trim_ascii() == b"[") {
            return Taken::Other;
        }
        if self.lines.len() >= super::OBJECT_LINES_MAX || self.bytes + line.len() > BYTES_MAX {
            return Taken::TooLong;
        }
        self.depth = depth;
        self.bytes += line.len();
        self.lines.push((number, line.to_owned()));
        if depth == 0 { Taken::End } else { Taken::Part }
    }

    /// Its lines as one, indented as its first one is.
    fn joined(&self) -> String {
        let mut joined = String::with_capacity(self.bytes);
        for (_, line) in &self.lines {
            let line = String::from_utf8_lossy(line);
            let is_first = joined.is_empty();
            let text = if is_first { line.trim_end() } else { line.trim() };
            let touches = joined.ends_with(['{', '[', '(']) || text.starts_with(['}', ']', ')']);
            if !(is_first || touches) {
                joined.push(' ');
            }
            joined += text;
        }
        joined
    }

    /// Whether a line in it has a measure, by the name before its colon.
    fn has_measure(&self) -> bool {
        let is_measure = |line: &[u8]| {
            let line = String::from_utf8_lossy(line);
            let Some((name, value)) = line.split_once(':') else { return false };
            let name = name.trim_matches([' ', '\t', '"', '\'', '{']).to_lowercase();
            names::meaning_of(&name) == Meaning::Measure && lines::has_digit(value.as_bytes())
        };
        self.lines.iter().any(|(_, line)| is_measure(line))
    }
}

/// Whether a line may begin an object that does not end in it.
#[inline]
pub(super) fn may_begin(line: &[u8]) -> bool {
    may_end_open(line) && beginning_of(line.trim_ascii()).is_some()
}

/// Whether a line ends as one may in which an object is left open.
#[inline]
fn may_end_open(line: &[u8]) -> bool {
    matches!(line.last(), Some(b'{' | b'[' | b',' | b' '))
}

/// Where in a line the object begins that does not end in it, if one may.
fn beginning_of(text: &[u8]) -> Option<usize> {
    let brace = memchr::memchr(b'{', text);
    match text.last()? {
        b'{' => brace,
        b'[' => (text == b"[").then_some(0),
        b',' => {
            let list = brace.and_then(|at| at.checked_sub(1)).filter(|at| text[*at] == b'[');
            list.or(brace).or_else(|| memchr::memmem::find(text, PAIRS.as_bytes()))
        }
        _ => None,
    }
}

/// Whether a line may be within an object: it is indented, or begins with a bracket or a quote.
fn may_be_within(line: &[u8]) -> bool {
    let first = line.first().filter(|_| !line.trim_ascii().is_empty());
    first.is_some_and(|first| matches!(first, b' ' | b'\t' | b'}' | b']' | b')' | b'{' | b'"' | b'\''))
}

/// How many brackets are open behind a line. Nothing: it closes more than are open, or ends within a text.
fn depth_behind(mut depth: usize, text: &[u8]) -> Option<usize> {
    let (mut quote, mut is_escaped) = (None, false);
    for byte in text {
        match (quote, byte) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), b'\\') => is_escaped = true,
            (Some(open), byte) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'{' | b'[' | b'(') => depth += 1,
            (None, b'}' | b']' | b')') => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    quote.is_none().then_some(depth)
}

impl ReaderState {
    /// Takes a line that is of an object over several lines; false if it is of none.
    pub(super) fn take_of_object(
        &mut self,
        place: (Printed, u64),
        line: &[u8],
        found: &mut dyn FnMut(&PrintedMetrics),
    ) -> bool {
        let (output, number) = place;
        let object = &mut self.objects[output as usize];
        let was_open = !object.is_closed();
        match object.take(number, line) {
            Taken::Part => return true,
            Taken::End => {
                self.read_object(output, found);
                return true;
            }
            Taken::TooLong => self.leave_long(output, found),
            Taken::Other => self.leave_object(output, found),
        }
        was_open && self.take_of_object(place, line, found)
    }

    /// Reads an object that has ended.
    fn read_object(&mut self, output: Printed, found: &mut dyn FnMut(&PrintedMetrics)) {
        let joined = self.objects[output as usize].joined();
        if !self.is_measured(&joined) {
            return self.leave_object(output, found);
        }
        let object = std::mem::take(&mut self.objects[output as usize]);
        self.place = object.lines.first().map(|(number, _)| (output, *number));
        self.raw(output, joined.as_bytes(), found);
    }

    /// Whether a text has an object with a measure; any other one, as a configuration, is read line by line.
    fn is_measured(&self, joined: &str) -> bool {
        let text = joined.trim();
        let has_begun = self.steps.has_begun();
        let is_measured = |named: LineValues| {
            let is_of_training = has_begun || named.has_place() || !has_setting(&named);
            named.meaning() == Some(Meaning::Measure) && is_of_training
        };
        if self.only_json {
            return objects::read_object(text).is_some_and(|named| named.has_values());
        }
        if text.starts_with('{') {
            let dict = || python::read_dict(text).map(objects::numbers_of);
            return read_logged(text).or_else(dict).is_some_and(is_measured);
        }
        let message = prefix::message_of(text);
        match python::read_last_dicts(message) {
            Some((_, dicts)) => dicts.into_iter().map(objects::numbers_of).any(is_measured),
            None => dict_at_end(message).and_then(|_| read_message(message, None)).is_some_and(is_measured),
        }
    }

    /// Reads each line of what may be an object by itself.
    pub(super) fn leave_object(&mut self, output: Printed, found: &mut dyn FnMut(&PrintedMetrics)) {
        let object = std::mem::take(&mut self.objects[output as usize]);
        for (number, line) in object.lines {
            self.place = Some((output, number));
            self.raw(output, &line, found);
        }
    }

    /// The same of one with too many lines or bytes, which is counted if it has a measure and none is found so.
    fn leave_long(&mut self, output: Printed, found: &mut dyn FnMut(&PrintedMetrics)) {
        let object = &self.objects[output as usize];
        let (first, mut is_unread) = (object.lines.first().map(|(number, _)| *number), object.has_measure());
        self.leave_object(output, &mut |metrics| {
            is_unread = false;
            found(metrics);
        });
        if let Some(first) = first {
            self.left_out.add(LeftOutKind::LongLines, u64::from(is_unread), (output, first));
        }
    }
}

/// Whether a value has the name of a usual setting, also in an object.
fn has_setting(named: &LineValues) -> bool {
    let is_setting = |part: &str| names::is_setting(&part.to_lowercase());
    named.values.iter().any(|(name, _)| name.split('/').any(is_setting))
}
