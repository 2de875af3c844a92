//! The operations of a pickle, measured and skipped. None is carried out: no object is made, no name is looked up.
//!
//! What is known without loading: whether the stream ends with its STOP, whether its operations take no more from the stack
//! than was put there, and which strings and integers are written in it, at the top of a dictionary or inside.

use std::collections::HashMap;

use crate::limits::{MAX_MARKS, MAX_MEMO, MAX_TEXT_BYTES};
use crate::source::{Fault, Reader};

/// A string or integer of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Literal<'a> {
    Text(&'a str),
    /// The name of a class or function, without its module.
    Global(&'a str),
    Integer(i64),
    Other,
}

/// Where a literal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A key of the outermost dictionary.
    TopKey,
    /// A value of the outermost dictionary.
    TopValue,
    Inside,
}

/// A pickle that was walked up to its STOP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WalkedPickle {
    /// Whether arrays of joblib follow within the stream, whose bytes are no operations.
    pub joblib_arrays: bool,
}

const ARRAY_WRAPPERS: [&str; 2] = ["NumpyArrayWrapper", "NDArrayWrapper"];

/// Walks one pickle, from the reader's position up to its STOP, and reports its literals in order.
pub(crate) fn walk(
    reader: &mut Reader,
    report: &mut dyn FnMut(Place, Literal),
) -> Result<WalkedPickle, (Fault, WalkedPickle)> {
    let mut walk = Walk {
        reader,
        report,
        marks: Vec::new(),
        height: 0,
        memo: HashMap::new(),
        memoized: 0,
        last_text: None,
        walked: WalkedPickle::default(),
    };
    loop {
        match walk.step() {
            Ok(false) => {}
            Ok(true) => return Ok(walk.walked),
            Err(fault) => return Err((fault, walk.walked)),
        }
    }
}

/// The protocol and the length of a frame, as far as they can be wrong.
fn check_frame(operation: u8, reader: &mut Reader) -> Result<(), Fault> {
    if operation == 0x80 {
        let protocol = reader.byte()?;
        if protocol > 5 {
            return Err(Fault::Beyond(format!("its pickle has protocol {protocol}")));
        }
    } else if unsigned(reader, 8)? > reader.remaining() {
        return Err(Fault::Ends);
    }
    Ok(())
}

/// How many bytes follow the operation: a constant, or a number before them.
fn length_of(operation: u8, reader: &mut Reader) -> Result<u64, Fault> {
    match operation {
        0x82 => Ok(1),
        0x83 => Ok(2),
        0x84 => Ok(4),
        b'G' => Ok(8),
        b'C' | b'U' | 0x8c => unsigned(reader, 1),
        0x8d | 0x8e | 0x96 => unsigned(reader, 8),
        _ => unsigned(reader, 4),
    }
}

/// An unsigned little-endian number of 1, 4 or 8 bytes.
fn unsigned(reader: &mut Reader, width: u8) -> Result<u64, Fault> {
    Ok(match width {
        1 => u64::from(reader.byte()?),
        4 => u64::from(u32::from_le_bytes(reader.array()?)),
        _ => u64::from_le_bytes(reader.array()?),
    })
}

struct Walk<'r, 's, 'c> {
    reader: &'r mut Reader<'s>,
    report: &'c mut dyn FnMut(Place, Literal),
    /// The height of the stack under each open mark.
    marks: Vec<u64>,
    height: u64,
    memo: HashMap<u64, MemoValue>,
    memoized: u64,
    /// What is on top of the stack, for an operation that keeps it.
    last_text: Option<MemoValue>,
    walked: WalkedPickle,
}

/// What later operations can refer to.
#[derive(Clone)]
enum MemoValue {
    Text(String),
    Global(String),
}

impl Walk<'_, '_, '_> {
    /// One operation; true at the STOP.
    fn step(&mut self) -> Result<bool, Fault> {
        let operation = self.reader.byte()?;
        if !matches!(operation, b'q' | b'r' | b'p' | 0x94) {
            self.last_text = None;
        }
        match operation {
            b'.' => return self.stop().map(|()| true),
            0x80 | 0x95 => check_frame(operation, self.reader)?,
            b'(' => self.mark()?,
            b'0' if self.marks.last() == Some(&self.height) => {
                self.marks.pop();
            }
            b'0' | b'a' | b'b' => self.pop(1)?,
            b's' => self.pop(2)?,
            b'1' | b'e' | b'u' | 0x90 => self.close()?,
            b't' | b'l' | b'd' | 0x91 | b'o' => {
                self.close()?;
                self.push(Literal::Other);
            }
            b'i' => {
                self.line()?;
                self.line()?;
                self.close()?;
                self.push(Literal::Other);
            }
            0x85 | b'Q' => self.combine(1)?,
            0x86 | 0x93 | b'R' | 0x81 => self.combine(2)?,
            0x87 | 0x92 => self.combine(3)?,
            b'2' | b'N' | 0x88 | 0x89 | b']' | b')' | b'}' | 0x8f | 0x97 => self.push(Literal::Other),
            0x98 => {}
            b'q' | b'r' | b'p' | 0x94 => {
                let at = self.memo_place(operation)?;
                self.keep(at);
            }
            b'h' | b'j' | b'g' => {
                let at = self.memo_place(operation)?;
                self.recall(at);
            }
            b'J' | b'K' | b'M' | b'I' | b'L' | 0x8a => {
                let literal = self.integer(operation)?;
                self.push(literal);
            }
            b'G' | b'C' | b'T' | b'B' | 0x82 | 0x83 | 0x84 | 0x8b | 0x8e | 0x96 => {
                let length = length_of(operation, self.reader)?;
                self.opaque(length)?;
            }
            b'U' | b'X' | 0x8c | 0x8d => {
                let length = length_of(operation, self.reader)?;
                self.text(length)?;
            }
            b'c' => {
                self.line()?;
                let name = self.line()?;
                self.note_wrapper(&name);
                self.push(Literal::Global(&name));
                self.last_text = Some(MemoValue::Global(name));
            }
            b'F' | b'S' | b'V' | b'P' => {
                self.line()?;
                self.push(Literal::Other);
            }
            other => {
                let at = self.reader.position() - 1;
                return Err(Fault::malformed(format!(
                    "byte 0x{other:02x} at {at} of its pickle is not an operation"
                )));
            }
        }
        Ok(false)
    }

    fn stop(&self) -> Result<(), Fault> {
        if self.height == 1 && self.marks.is_empty() {
            Ok(())
        } else {
            Err(Fault::malformed("its pickle stops with an unfinished object"))
        }
    }

    fn mark(&mut self) -> Result<(), Fault> {
        if self.marks.len() == MAX_MARKS {
            return Err(Fault::Beyond(format!("its pickle nests more than {MAX_MARKS} deep")));
        }
        self.marks.push(self.height);
        Ok(())
    }

    /// The place of the memo that a PUT or a GET names.
    fn memo_place(&mut self, operation: u8) -> Result<u64, Fault> {
        let wrong = |name: &str| Fault::malformed(format!("its pickle has a wrong {name}"));
        match operation {
            0x94 => Ok(self.memoized),
            b'p' => self.line()?.parse().map_err(|_| wrong("PUT")),
            b'g' => self.line()?.parse().map_err(|_| wrong("GET")),
            b'q' | b'h' => unsigned(self.reader, 1),
            _ => unsigned(self.reader, 4),
        }
    }

    fn integer(&mut self, operation: u8) -> Result<Literal<'static>, Fault> {
        Ok(Literal::Integer(match operation {
            b'J' => i64::from(i32::from_le_bytes(self.reader.array()?)),
            b'K' => i64::from(self.reader.byte()?),
            b'M' => i64::from(u16::from_le_bytes(self.reader.array()?)),
            0x8a => {
                let length = u64::from(self.reader.byte()?);
                return Ok(long(&self.reader.take(length)?));
            }
            _ => {
                let line = self.line()?;
                return Ok(line.trim_end_matches('L').parse().map_or(Literal::Other, Literal::Integer));
            }
        }))
    }

    fn pop(&mut self, count: u64) -> Result<(), Fault> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.height < floor + count {
            return Err(Fault::malformed("an operation of its pickle takes more than there is"));
        }
        self.height -= count;
        Ok(())
    }

    /// Takes everything down to the last mark.
    fn close(&mut self) -> Result<(), Fault> {
        let needs_mark = || Fault::malformed("an operation of its pickle needs a mark");
        self.height = self.marks.pop().ok_or_else(needs_mark)?;
        Ok(())
    }

    fn combine(&mut self, count: u64) -> Result<(), Fault> {
        self.pop(count)?;
        self.push(Literal::Other);
        Ok(())
    }

    fn push(&mut self, literal: Literal) {
        // The outermost dictionary is at height 1; its entries come after a mark, or a single one without.
        let at_top = self.marks.is_empty() || self.marks.as_slice() == [1];
        let place = match (at_top && self.height >= 1, self.height % 2) {
            (true, 1) => Place::TopKey,
            (true, _) => Place::TopValue,
            (false, _) => Place::Inside,
        };
        self.height += 1;
        (self.report)(place, literal);
    }

    fn opaque(&mut self, length: u64) -> Result<(), Fault> {
        self.reader.skip(length)?;
        self.push(Literal::Other);
        Ok(())
    }

    fn text(&mut self, length: u64) -> Result<(), Fault> {
        if length > MAX_TEXT_BYTES as u64 {
            return self.opaque(length);
        }
        let text = String::from_utf8_lossy(&self.reader.take(length)?).into_owned();
        self.note_wrapper(&text);
        self.push(Literal::Text(&text));
        self.last_text = Some(MemoValue::Text(text));
        Ok(())
    }

    fn note_wrapper(&mut self, name: &str) {
        self.walked.joblib_arrays |= ARRAY_WRAPPERS.contains(&name);
    }

    fn keep(&mut self, at: u64) {
        self.memoized += 1;
        if let Some(text) = self.last_text.take()
            && self.memo.len() < MAX_MEMO
        {
            self.memo.insert(at, text);
        }
    }

    fn recall(&mut self, at: u64) {
        match self.memo.get(&at).cloned() {
            Some(MemoValue::Text(text)) => self.push(Literal::Text(&text)),
            Some(MemoValue::Global(name)) => self.push(Literal::Global(&name)),
            None => self.push(Literal::Other),
        }
    }

    fn line(&mut self) -> Result<String, Fault> {
        let mut line = Vec::new();
        loop {
            match self.reader.byte()? {
                b'\n' => return Ok(String::from_utf8_lossy(&line).into_owned()),
                _ if line.len() == MAX_TEXT_BYTES => {
                    return Err(Fault::malformed("its pickle has a line that is too long"));
                }
                byte => line.push(byte),
            }
        }
    }
}

/// A little-endian integer of two's complement, if it fits.
fn long(bytes: &[u8]) -> Literal<'static> {
    if bytes.len() > 8 {
        return Literal::Other;
    }
    let fill = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let mut padded = [fill; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    Literal::Integer(i64::from_le_bytes(padded))
}

/// What `torch.save` wrote before it wrote zip archives: five pickles, then the storages.
pub(crate) const TORCH_LEGACY_MAGIC: [u8; 15] =
    [0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e];

/// Checks a file that is one pickle, or that begins with one.
pub(crate) fn check(reader: &mut Reader, legacy_torch: bool) -> Result<(), Fault> {
    if legacy_torch {
        for _ in 0..5 {
            walk(reader, &mut |_, _| {}).map_err(|(fault, _)| fault)?;
        }
        return Err(Fault::Beyond("its storages after the pickles have no end mark".to_owned()));
    }
    let size = reader.len();
    match walk(reader, &mut |_, _| {}) {
        Ok(_) if reader.remaining() == 0 => Ok(()),
        Ok(WalkedPickle { joblib_arrays: false }) => {
            Err(Fault::malformed(format!("{} bytes follow the end of its pickle", reader.remaining())))
        }
        // The bytes of the first array were taken for operations; only the last operation can be looked at.
        Ok(_) | Err((Fault::Ends | Fault::Malformed(_), WalkedPickle { joblib_arrays: true })) => {
            if reader.piece(size - 1, 1)? == b"." {
                Err(Fault::Beyond("the bytes of its arrays are not measured".to_owned()))
            } else {
                Err(Fault::Ends)
            }
        }
        Err((fault, _)) => Err(fault),
    }
}
