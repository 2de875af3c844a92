//! What is assigned to the name of a secret, whatever the language: the literals of the expression behind `=`, `:` or
//! `<-`, with a type before it or without, over several lines where a bracket, a mark or the indent says so.

use std::ops::Range;

use crate::value::{generated, unlike_a_word};

/// So many bytes behind a name are read.
const READ_BYTES: usize = 1024;
/// A type before a value is not longer.
const TYPE_BYTES_MAX: usize = 64;
/// Marks between a name and what assigns: quotes, brackets, emphasis.
const CLOSERS_MAX: usize = 8;
/// A shorter literal is not a secret.
const VALUE_BYTES_MIN: usize = 4;
/// So many literals of one expression are looked at.
const VALUES_MAX: usize = 32;

/// What assigns; of those with the same beginning the longest first.
const OPERATORS: [&[u8]; 13] =
    [b"||=", b"=>", b":=", b"?=", b"+=", b"<-", b"==", b"=", b":", b"<<<", b"<<-", b"<<~", b"<<"];
/// Words and marks behind which an expression continues.
const CONTINUING: [&[u8]; 8] = [b"or", b"||", b"??", b"+", b"\\", b".", b"&", b"?:"];
/// Commands that print what is behind them.
const PRINTING: [&[u8]; 2] = [b"echo", b"printf"];

/// The literals that are assigned to the name which ends at `name_end`. `is_strong`: whatever is written there as a
/// literal is a secret; otherwise only what was generated.
pub(crate) fn values(text: &[u8], name_end: usize, is_strong: bool) -> Vec<Range<usize>> {
    let end = text.len().min(name_end.saturating_add(READ_BYTES));
    let mut reader = Reader {
        text: &text[..end],
        at: name_end,
        indent: indent_at(text, name_end),
        is_strong,
        depth: 0,
        found: Vec::new(),
    };
    if let Some(operator) = reader.operator() {
        reader.expression(operator);
    }
    reader.found
}

/// How many blanks are before the first word of the line with this place.
fn indent_at(text: &[u8], at: usize) -> usize {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
    blanks(&text[start..])
}

fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count()
}

/// What was read last of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nothing but brackets and marks.
    Nothing,
    /// A literal, a word or a closed bracket: what comes next must say that the expression continues.
    Operand,
    /// A mark that says so.
    Mark,
    /// A comma outside of brackets: a literal may come next.
    Comma,
    /// A command that prints.
    Print,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// Of the line with the name.
    indent: usize,
    is_strong: bool,
    /// Open brackets.
    depth: usize,
    found: Vec<Range<usize>>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Passes what assigns, with a type before it.
    fn operator(&mut self) -> Option<&'static [u8]> {
        let is_closer = |byte: &&u8| b"\\\"'`*_] \t".contains(byte);
        let closers = self.rest().iter().take(CLOSERS_MAX).take_while(is_closer).count();
        // In YAML the name of a pair may be in a line before its value.
        let before =
            self.text[..self.at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let is_question = self.text[before..self.at].trim_ascii_start().starts_with(b"? ");
        self.at += closers;
        if is_question && self.rest().starts_with(b"\n") {
            self.at += 1 + blanks(&self.rest()[1..]);
        }
        let rest = self.rest();
        let operator = OPERATORS.into_iter().find(|operator| rest.starts_with(operator))?;
        if operator.starts_with(b"<<") && operator != b"<<<" {
            return Some(operator);
        }
        self.at += operator.len();
        if operator == b":"
            && let Some(length) = typed(self.rest())
        {
            self.at += length;
            return Some(b"=");
        }
        Some(operator)
    }

    fn expression(&mut self, operator: &[u8]) {
        let mut last = Last::Nothing;
        let mut is_direct = true;
        while self.found.len() < VALUES_MAX {
            self.at += blanks(self.rest());
            let Some(byte) = self.rest().first() else { return };
            match byte {
                b'\n' => match self.next_line(operator, last) {
                    true => self.at += 1,
                    false => return,
                },
                b'#' if last != Last::Operand || self.depth > 0 => self.skip_line(),
                b'(' | b'[' | b'{' => {
                    if let Some(long) = self.long_brackets() {
                        self.keep(long, is_direct);
                        last = Last::Operand;
                        continue;
                    }
                    // What is called or indexed has literals that are most often none.
                    is_direct &= last != Last::Operand;
                    (self.depth, self.at, last) = (
                        self.depth + 1,
                        self.at + 1,
                        match last {
                            Last::Operand => Last::Mark,
                            other => other,
                        },
                    );
                }
                b')' | b']' | b'}' if self.depth > 0 => {
                    (self.depth, self.at, last) = (self.depth - 1, self.at + 1, Last::Operand);
                }
                b',' if self.depth > 0 => (self.at, last) = (self.at + 1, Last::Mark),
                b',' if last == Last::Operand => (self.at, last) = (self.at + 1, Last::Comma),
                b'*' if last == Last::Nothing => self.at += 1,
                b'"' | b'\'' | b'`' => {
                    if last == Last::Comma {
                        is_direct = false;
                    }
                    match self.quoted() {
                        Some(literal) if !self.is_key() => {
                            // Of a concatenation each part is as secret as the first one.
                            self.keep(literal, is_direct);
                            last = Last::Operand;
                        }
                        Some(_) if last == Last::Comma => return,
                        Some(_) => (self.at, last) = (self.at + 1, Last::Mark),
                        None => return,
                    }
                }
                _ => match self.word(operator, last) {
                    Some(next) => {
                        is_direct &= next != Last::Operand;
                        last = next;
                    }
                    None => return,
                },
            }
        }
    }

    /// Whether the expression continues in the next line; of a mapping below its name the lines are read at once.
    fn next_line(&mut self, operator: &[u8], last: Last) -> bool {
        if self.depth > 0 || last == Last::Mark {
            return true;
        }
        if last != Last::Nothing {
            return false;
        }
        if operator == b":" {
            self.block();
            return false;
        }
        // An empty value, unless a text alone is below it and to the right.
        let below = &self.rest()[1..];
        let indent = blanks(below);
        indent > self.indent && matches!(below.get(indent), Some(b'"' | b'\'' | b'`'))
    }

    fn skip_line(&mut self) {
        self.at += memchr::memchr(b'\n', self.rest()).unwrap_or(self.rest().len());
    }

    /// The lines below a name: those further to the right, or one that is alone.
    fn block(&mut self) {
        let mut is_first = true;
        while self.rest().first() == Some(&b'\n') && self.found.len() < VALUES_MAX {
            self.at += 1;
            let start = self.at;
            self.skip_line();
            let line = &self.text[start..self.at];
            let indent = blanks(line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            let is_inside = indent > self.indent || line[indent..].starts_with(b"- ");
            if !is_inside && !is_first {
                return;
            }
            let value = start + indent..start + line.trim_ascii_end().len();
            let value = if is_inside { self.of_line(value) } else { value };
            if generated(&self.text[value.clone()]) {
                self.found.push(value);
            }
            if !is_inside {
                return;
            }
            is_first = false;
        }
    }

    /// The value in a line of a block, behind the mark of an item and a key, without quotes.
    fn of_line(&self, line: Range<usize>) -> Range<usize> {
        let text = &self.text[line.clone()];
        let behind_key = text.windows(2).position(|two| two == b": ").map_or(0, |at| at + 2);
        let from = behind_key.max(if text.starts_with(b"- ") { 2 } else { 0 });
        let is_around = |byte: &u8| matches!(byte, b'"' | b'\'' | b' ' | b',');
        let from = from + text[from..].iter().take_while(|byte| is_around(byte)).count();
        let to = text.iter().rposition(|byte| !is_around(byte)).map_or(from, |at| at + 1);
        line.start + from.min(to)..line.start + to
    }

    /// A text between quotes; what is behind it comes next.
    fn quoted(&mut self) -> Option<Range<usize>> {
        let rest = self.rest();
        let quote = rest[0];
        let marks = if rest.starts_with(&[quote; 3]) { 3 } else { 1 };
        let closing = [quote; 3];
        let mut at = marks;
        while at < rest.len() {
            match rest[at] {
                b'\\' => at += 2,
                b'\n' if marks == 1 && quote != b'`' => return None,
                _ if rest[at..].starts_with(&closing[..marks]) => {
                    let literal = self.at + marks..self.at + at;
                    self.at += at + marks;
                    return Some(trimmed(self.text, literal));
                }
                _ => at += 1,
            }
        }
        None
    }

    /// `[[…]]`, as Lua writes texts.
    fn long_brackets(&mut self) -> Option<Range<usize>> {
        let rest = self.rest().strip_prefix(b"[[")?;
        let end = rest.windows(2).position(|two| two == b"]]")?;
        let literal = self.at + 2..self.at + 2 + end;
        let is_plain = !self.text[literal.clone()].iter().any(|byte| b"\"'`\n,".contains(byte));
        is_plain.then(|| self.at += end + 4)?;
        Some(literal)
    }

    /// Whether the literal that was read is the key of a pair.
    fn is_key(&mut self) -> bool {
        let blanks = blanks(self.rest());
        let behind = &self.rest()[blanks..];
        let is_key = (behind.starts_with(b":") && self.depth > 0)
            || behind.starts_with(b"=>")
            || behind.starts_with(b":\x20");
        if is_key {
            self.at += blanks + usize::from(behind.starts_with(b"=>"));
        }
        is_key
    }

    /// A word, and what it says about what comes next; `None`: the expression ends.
    fn word(&mut self, operator: &[u8], last: Last) -> Option<Last> {
        let rest = self.rest();
        let is_end = |byte: &&u8| !byte.is_ascii_whitespace() && !b"\"'`()[]{},;".contains(byte);
        let length = rest.iter().take_while(is_end).count();
        let (word, start) = (&rest[..length], self.at);
        if length == 0 {
            return None;
        }
        self.at += length;
        let next = self.rest().first();
        if CONTINUING.contains(&word) {
            return Some(Last::Mark);
        }
        if PRINTING.contains(&word) {
            return Some(Last::Print);
        }
        if word.starts_with(b"<<") && word != b"<<<" {
            self.document(word);
            return None;
        }
        // The beginnings of texts, the marks of blocks, tags and anchors of YAML, the beginning of a command's output.
        let is_prefix =
            length <= 2 && word.iter().all(u8::is_ascii_alphabetic) && matches!(next, Some(b'"' | b'\''));
        let is_block = matches!(word[0], b'|' | b'>') && length <= 3;
        let is_tag = matches!(word[0], b'!' | b'&') && operator == b":" && next == Some(&b' ');
        if is_prefix || is_block || is_tag || word == b"$" || word == b"<<<" {
            return Some(last);
        }
        if last == Last::Operand && self.depth == 0 {
            return None;
        }
        // The key of a pair in a flow mapping.
        if self.depth > 0 && (word.ends_with(b":") || word.ends_with(b"=")) {
            return Some(Last::Mark);
        }
        let is_called = matches!(next, Some(b'(' | b'['));
        let is_bare = self.depth == 0 || last == Last::Print || operator == b":";
        if !is_called
            && is_bare
            && matches!(last, Last::Nothing | Last::Mark | Last::Print)
            && last != Last::Comma
        {
            let value = trimmed(self.text, start..start + length);
            if generated(&self.text[value.clone()]) {
                self.found.push(value);
            }
        }
        match (last, self.depth) {
            (Last::Comma, _) => None,
            _ => Some(Last::Operand),
        }
    }

    /// The lines of a document within a command or a program, up to its mark.
    fn document(&mut self, opening: &[u8]) {
        let is_mark = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let mark: Vec<u8> = match opening.iter().any(is_mark) {
            true => opening.iter().copied().filter(is_mark).collect(),
            // Between quotes.
            false => self.quoted().map_or_else(Vec::new, |mark| self.text[mark].to_vec()),
        };
        self.skip_line();
        while self.rest().first() == Some(&b'\n') && self.found.len() < VALUES_MAX {
            self.at += 1;
            let start = self.at;
            self.skip_line();
            let line = trimmed(self.text, start..self.at);
            if self.text[line.clone()] == mark[..] {
                return;
            }
            self.keep(line, true);
        }
    }

    fn keep(&mut self, literal: Range<usize>, is_direct: bool) {
        let value = &self.text[literal.clone()];
        let is_secret = match self.is_strong && is_direct {
            true => value.len() >= VALUE_BYTES_MIN && unlike_a_word(value) && !is_expanded(value),
            false => generated(value),
        };
        if is_secret {
            self.found.push(literal);
        }
    }
}

/// Whether nothing is in a text but what is put there when the program runs.
fn is_expanded(value: &[u8]) -> bool {
    let inner = value.strip_prefix(b"$").unwrap_or(value);
    inner.starts_with(b"{") && inner.ends_with(b"}")
}

/// How long a type and the `=` behind it are, behind a name and its colon.
fn typed(bytes: &[u8]) -> Option<usize> {
    let start = blanks(bytes);
    let first = bytes.get(start)?;
    (first.is_ascii_alphabetic() || b"_&".contains(first)).then_some(())?;
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate().skip(start).take(TYPE_BYTES_MAX) {
        match byte {
            b'[' | b'<' => depth += 1,
            b']' | b'>' => depth = depth.checked_sub(1)?,
            b',' if depth > 0 => {}
            b'=' => return (bytes.get(at + 1) != Some(&b'=')).then_some(at + 1),
            b' ' | b'|' | b'.' | b'_' | b'&' | b'\'' | b'?' => {}
            letter if letter.is_ascii_alphanumeric() => {}
            _ => return None,
        }
    }
    None
}

fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let bytes = &text[range.clone()];
    let from = bytes.len() - bytes.trim_ascii_start().len();
    let to = bytes.trim_ascii_end().len().max(from);
    range.start + from..range.start + to
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, name: &str, is_strong: bool) -> Vec<String> {
        let end = text.find(name).unwrap() + name.len();
        let found = values(text.as_bytes(), end, is_strong);
        found.into_iter().map(|value| text[value].to_owned()).collect()
    }

    /// Proves that the literals of an expression are found, over several lines too, and that names, types and calls are none.
    #[test]
    fn literals_of_an_expression_are_found() {
        for text in [
            "pw: str = \"Zq7-tulip\"",
            "pw: Optional[Dict[str, int]] = 'Zq7-tulip')",
            "pw: &str = \"Zq7-tulip\";",
            "pw <- \"Zq7-tulip\"",
            "pw = [[Zq7-tulip]]",
            "pw=\n    \"Zq7-tulip\")",
            "pw = <<EOT\nZq7-tulip\nEOT\nb4-c5-d6",
            "pw = `Zq7-tulip`",
            "? pw\n: \"Zq7-tulip\"",
        ] {
            assert_eq!(found(text, "pw", true), ["Zq7-tulip"], "{text}");
        }
        assert_eq!(found("pw = (\"a1b2\"\n  + 'c3d4')", "pw", true), ["a1b2", "c3d4"]);
        for text in [
            "pw: str) -> bool", "pw = get(\"file-2\")", "pw_count = \"a1b2\"", "pw = {\"min-2\": 3}",
            "pw: \"${X2}\"", "pw = None\n\"a1b2c3\"",
        ] {
            assert_eq!(found(text, "pw", true), Vec::<String>::new(), "{text}");
        }
    }
}
