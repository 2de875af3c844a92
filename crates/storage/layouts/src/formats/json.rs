//! JSON, walked without a tree: any size, bounded memory. `NaN` and `Infinity` are accepted, since Python writes them.

use crate::limits::{MAX_NESTING, MAX_TEXT_BYTES};
use crate::source::{Fault, Reader};

/// The longest number or word.
const LONGEST_SCALAR: usize = 64;
/// Numbers below more keys than these are checked and not converted.
const MAX_NUMBER_DEPTH: usize = 3;

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Integer(i64),
    /// A number that is not an integer of 64 bits.
    Fraction(f64),
    Text(String),
    /// The end of an array of this many items.
    Array(u64),
    /// Anything else, and the end of an object.
    Other,
}

/// Walks one document to the end of the reader. Reports every value with the keys above it; what is in an array has the
/// array's keys.
pub(crate) fn walk(reader: &mut Reader, report: &mut dyn FnMut(&[String], Value)) -> Result<(), Fault> {
    let mut walk = Walk { reader, report, keys: Vec::new() };
    walk.document()
}

/// An open container, and the number of its items so far.
struct JsonContainer {
    array: bool,
    items: u64,
}

struct Walk<'r, 's, 'c> {
    reader: &'r mut Reader<'s>,
    report: &'c mut dyn FnMut(&[String], Value),
    keys: Vec<String>,
}

impl Walk<'_, '_, '_> {
    fn document(&mut self) -> Result<(), Fault> {
        let mut open: Vec<JsonContainer> = Vec::new();
        loop {
            // A value begins here.
            let byte = self.token()?;
            let finished = match byte {
                b'{' | b'[' => {
                    if open.len() == MAX_NESTING {
                        return Err(Fault::Beyond(format!("its JSON nests more than {MAX_NESTING} deep")));
                    }
                    let array = byte == b'[';
                    let close = if array { b']' } else { b'}' };
                    if self.next_is(close)? {
                        Some(if array { Value::Array(0) } else { Value::Other })
                    } else {
                        open.push(JsonContainer { array, items: 0 });
                        if !array {
                            self.key()?;
                        }
                        None
                    }
                }
                b'"' => Some(Value::Text(self.string()?)),
                _ => Some(self.scalar(byte)?),
            };
            let Some(mut value) = finished else { continue };
            // Close what ends here, until another item follows.
            loop {
                (self.report)(&self.keys, value);
                let Some(innermost) = open.last_mut() else {
                    return if self.next_token()?.is_none() {
                        Ok(())
                    } else {
                        Err(self.reader.wrong("has more than one JSON document"))
                    };
                };
                innermost.items += 1;
                let (array, items) = (innermost.array, innermost.items);
                if !array {
                    self.keys.pop();
                }
                match (self.token()?, array) {
                    (b',', true) => break,
                    (b',', false) => {
                        self.key()?;
                        break;
                    }
                    (b']', true) => value = Value::Array(items),
                    (b'}', false) => value = Value::Other,
                    _ => return Err(self.reader.wrong("is not JSON")),
                }
                open.pop();
            }
        }
    }

    fn key(&mut self) -> Result<(), Fault> {
        if self.token()? != b'"' {
            return Err(self.reader.wrong("is not JSON"));
        }
        let key = self.string()?;
        self.keys.push(key);
        if self.token()? == b':' { Ok(()) } else { Err(self.reader.wrong("is not JSON")) }
    }

    /// The rest of a string; of a long one only its begin.
    fn string(&mut self) -> Result<String, Fault> {
        let mut text = Vec::new();
        loop {
            let byte = match self.reader.byte()? {
                b'"' => return Ok(String::from_utf8_lossy(&text).into_owned()),
                b'\\' => match self.reader.byte()? {
                    b'u' => {
                        let code = self.reader.array::<4>()?;
                        if !code.iter().all(u8::is_ascii_hexdigit) {
                            return Err(self.reader.wrong("has a wrong escape"));
                        }
                        b'?'
                    }
                    escape @ (b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => escape,
                    _ => return Err(self.reader.wrong("has a wrong escape")),
                },
                0..=0x1f => return Err(self.reader.wrong("has a control character in a string")),
                byte => byte,
            };
            if text.len() < MAX_TEXT_BYTES {
                text.push(byte);
            }
        }
    }

    /// A number or word. Numbers in arrays, of which a model has millions, are not converted.
    fn scalar(&mut self, first: u8) -> Result<Value, Fault> {
        let mut word = [0_u8; LONGEST_SCALAR];
        word[0] = first;
        let mut length = 1;
        while let Some(byte) = self.reader.peek()? {
            if !byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'-' | b'.') {
                break;
            }
            *word.get_mut(length).ok_or_else(|| self.reader.wrong("is not JSON"))? = byte;
            length += 1;
            self.reader.skip(1)?;
        }
        let word = &word[..length];
        if matches!(word, b"true" | b"false" | b"null" | b"NaN" | b"Infinity" | b"-Infinity") {
            return Ok(Value::Other);
        }
        if !is_number(word) {
            return Err(self.reader.wrong("is not JSON"));
        }
        if self.keys.len() > MAX_NUMBER_DEPTH {
            return Ok(Value::Other);
        }
        let text = std::str::from_utf8(word).unwrap_or_default();
        Ok(match (text.parse(), text.parse()) {
            (Ok(integer), _) => Value::Integer(integer),
            (_, Ok(fraction)) => Value::Fraction(fraction),
            _ => Value::Other,
        })
    }

    /// The next byte that is not a space, if there is one; it is not taken.
    fn ahead(&mut self) -> Result<Option<u8>, Fault> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.reader.peek()? {
            self.reader.skip(1)?;
        }
        self.reader.peek()
    }

    /// The same, taken.
    fn next_token(&mut self) -> Result<Option<u8>, Fault> {
        let byte = self.ahead()?;
        self.reader.skip(u64::from(byte.is_some()))?;
        Ok(byte)
    }

    fn token(&mut self) -> Result<u8, Fault> {
        self.next_token()?.ok_or(Fault::Ends)
    }

    /// Takes the next token if it is this one.
    fn next_is(&mut self, wanted: u8) -> Result<bool, Fault> {
        let is_next = self.ahead()?.ok_or(Fault::Ends)? == wanted;
        self.reader.skip(u64::from(is_next))?;
        Ok(is_next)
    }
}

impl Reader<'_> {
    fn wrong(&self, what: &str) -> Fault {
        Fault::malformed(format!("{what}, at byte {}", self.position()))
    }
}

/// Whether the bytes are a number of JSON; zeros before it are accepted.
fn is_number(word: &[u8]) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let word = word.strip_prefix(b"-").unwrap_or(word);
    let whole = digits(word);
    let mut rest = &word[whole..];
    if let Some(after) = rest.strip_prefix(b".") {
        let fraction = digits(after);
        if fraction == 0 {
            return false;
        }
        rest = &after[fraction..];
    }
    if let [b'e' | b'E', after @ ..] = rest {
        let after = after.strip_prefix(b"-").or_else(|| after.strip_prefix(b"+")).unwrap_or(after);
        return whole > 0 && !after.is_empty() && digits(after) == after.len();
    }
    whole > 0 && rest.is_empty()
}
