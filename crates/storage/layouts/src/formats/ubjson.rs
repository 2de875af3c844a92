//! Universal Binary JSON, as XGBoost writes it, walked to exactly its end.

use crate::limits::{MAX_NESTING, MAX_TEXT_BYTES};
use crate::source::{Fault, Reader};

/// An open container: its remaining items if it has a count, and how many there were.
struct UbjsonContainer {
    object: bool,
    remaining: Option<u64>,
    items: u64,
}

/// Walks one document to the end of the reader. Reports the keys above each array, and the number of its items.
pub(crate) fn walk(reader: &mut Reader, report: &mut dyn FnMut(&[String], u64)) -> Result<(), Fault> {
    let mut open: Vec<UbjsonContainer> = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    loop {
        // Close what ends here, then read the key of the next item.
        while let Some(innermost) = open.last() {
            let ended = match innermost.remaining {
                Some(remaining) => remaining == 0,
                None => {
                    let close = if innermost.object { b'}' } else { b']' };
                    let ends = reader.peek()? == Some(close);
                    if ends {
                        reader.skip(1)?;
                    }
                    ends
                }
            };
            if !ended {
                break;
            }
            if !innermost.object {
                report(&keys, innermost.items);
            }
            open.pop();
            finish_item(&mut open, &mut keys);
        }
        if open.is_empty() && reader.position() > 0 {
            let left = reader.remaining();
            return if left == 0 {
                Ok(())
            } else {
                Err(Fault::malformed(format!("{left} bytes follow the end of its document")))
            };
        }
        if open.last().is_some_and(|innermost| innermost.object) {
            let length = length(reader)?;
            let key = text(reader, length)?;
            keys.push(key);
        }
        match reader.byte()? {
            kind @ (b'{' | b'[') => match container(reader, kind == b'{')? {
                Container::Typed(items) => {
                    report(&keys, items);
                    finish_item(&mut open, &mut keys);
                }
                Container::Open(_) if open.len() == MAX_NESTING => {
                    return Err(Fault::Beyond(format!("it nests more than {MAX_NESTING} deep")));
                }
                Container::Open(container) => open.push(container),
            },
            b'S' | b'H' => {
                let length = length(reader)?;
                reader.skip(length)?;
                finish_item(&mut open, &mut keys);
            }
            b'N' if open.last().is_some_and(|innermost| !innermost.object) => {}
            kind => {
                reader.skip(size(kind).ok_or_else(|| wrong(reader, kind))?)?;
                finish_item(&mut open, &mut keys);
            }
        }
    }
}

/// Counts the item that has just ended in the container that it is in.
fn finish_item(open: &mut [UbjsonContainer], keys: &mut Vec<String>) {
    if let Some(innermost) = open.last_mut() {
        innermost.items += 1;
        innermost.remaining = innermost.remaining.map(|remaining| remaining.saturating_sub(1));
        if innermost.object {
            keys.pop();
        }
    }
}

enum Container {
    /// An array of numbers without markers, which was skipped.
    Typed(u64),
    Open(UbjsonContainer),
}

fn container(reader: &mut Reader, object: bool) -> Result<Container, Fault> {
    let opened = |remaining| Container::Open(UbjsonContainer { object, remaining, items: 0 });
    match reader.peek()? {
        Some(b'$') if !object => {
            reader.skip(1)?;
            let kind = reader.byte()?;
            if reader.byte()? != b'#' {
                return Err(Fault::malformed("it has an array with a type and no count"));
            }
            let count = length(reader)?;
            let width =
                size(kind).ok_or_else(|| Fault::Beyond("it has an array of containers".to_owned()))?;
            reader.skip(count.checked_mul(width).ok_or(Fault::Ends)?)?;
            Ok(Container::Typed(count))
        }
        Some(b'$') => Err(Fault::Beyond("it has an object with a type".to_owned())),
        Some(b'#') => {
            reader.skip(1)?;
            Ok(opened(Some(length(reader)?)))
        }
        _ => Ok(opened(None)),
    }
}

/// The bytes of a value of this kind after its marker.
fn size(kind: u8) -> Option<u64> {
    match kind {
        b'Z' | b'T' | b'F' => Some(0),
        b'i' | b'U' | b'C' => Some(1),
        b'I' => Some(2),
        b'l' | b'd' => Some(4),
        b'L' | b'D' => Some(8),
        _ => None,
    }
}

fn length(reader: &mut Reader) -> Result<u64, Fault> {
    let value = match reader.byte()? {
        b'i' => i64::from(i8::from_be_bytes(reader.array()?)),
        b'U' => i64::from(reader.byte()?),
        b'I' => i64::from(i16::from_be_bytes(reader.array()?)),
        b'l' => i64::from(i32::from_be_bytes(reader.array()?)),
        b'L' => i64::from_be_bytes(reader.array()?),
        other => return Err(wrong(reader, other)),
    };
    u64::try_from(value).map_err(|_| Fault::malformed("it has a negative length"))
}

fn text(reader: &mut Reader, length: u64) -> Result<String, Fault> {
    let kept = length.min(MAX_TEXT_BYTES as u64);
    let bytes = reader.take(kept)?;
    reader.skip(length - kept)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn wrong(reader: &Reader, marker: u8) -> Fault {
    Fault::malformed(format!("byte 0x{marker:02x} at {} is not a marker of UBJSON", reader.position() - 1))
}
