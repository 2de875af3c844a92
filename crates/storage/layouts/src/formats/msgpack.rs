//! MessagePack, walked to exactly its end.
//!
//! `rmp-serde` is not used: it reads every value into memory, and here a value is a tensor of gigabytes that is
//! skipped. Of `rmp` only the names of the markers would be left.

use crate::limits::{MAX_NESTING, MAX_TEXT_BYTES};
use crate::source::{Fault, Reader};

/// An open map or array. A map of n entries has 2·n items, keys and values in turn.
struct MsgpackContainer {
    map: bool,
    remaining: u64,
}

enum Item {
    Integer(i64),
    Text(String),
    Open(MsgpackContainer),
    Other,
}

/// Walks one map to the end of the reader. Reports the keys at its top, with their values where these are integers.
pub(crate) fn walk(reader: &mut Reader, report: &mut dyn FnMut(&str, Option<i64>)) -> Result<(), Fault> {
    let Item::Open(outermost @ MsgpackContainer { map: true, .. }) = item(reader)? else {
        return Err(Fault::malformed("it is not a map of MessagePack"));
    };
    let mut open = vec![outermost];
    let mut key: Option<String> = None;
    while let Some(innermost) = open.last_mut() {
        if innermost.remaining == 0 {
            open.pop();
            continue;
        }
        innermost.remaining -= 1;
        let is_key = innermost.map && innermost.remaining % 2 == 1;
        let at_top = open.len() == 1;
        let item = item(reader)?;
        if at_top {
            match (&item, is_key) {
                (Item::Text(text), true) => key = Some(text.clone()),
                (Item::Integer(value), false) => report(&key.take().unwrap_or_default(), Some(*value)),
                (_, false) => report(&key.take().unwrap_or_default(), None),
                (_, true) => key = None,
            }
        }
        if let Item::Open(container) = item {
            if open.len() == MAX_NESTING {
                return Err(Fault::Beyond(format!("it nests more than {MAX_NESTING} deep")));
            }
            open.push(container);
        }
    }
    match reader.remaining() {
        0 => Ok(()),
        left => Err(Fault::malformed(format!("{left} bytes follow the end of its map"))),
    }
}

fn item(reader: &mut Reader) -> Result<Item, Fault> {
    let skipped = |reader: &mut Reader, length: u64| reader.skip(length).map(|()| Item::Other);
    let open = |map: bool, count: u64| {
        Item::Open(MsgpackContainer { map, remaining: if map { count * 2 } else { count } })
    };
    let byte = reader.byte()?;
    Ok(match byte {
        0x00..=0x7f => Item::Integer(i64::from(byte)),
        0x80..=0x8f => open(true, u64::from(byte & 0x0f)),
        0x90..=0x9f => open(false, u64::from(byte & 0x0f)),
        0xa0..=0xbf => text(reader, u64::from(byte & 0x1f))?,
        0xc0 | 0xc2 | 0xc3 => Item::Other,
        0xc1 => return Err(Fault::malformed("it has a byte that MessagePack never uses")),
        0xc4..=0xc6 => {
            let length = sized(reader, byte - 0xc4)?;
            skipped(reader, length)?
        }
        // Extensions: a length, a type, then the bytes.
        0xc7..=0xc9 => {
            let length = sized(reader, byte - 0xc7)?;
            skipped(reader, length + 1)?
        }
        0xca => skipped(reader, 4)?,
        0xcb => skipped(reader, 8)?,
        0xcc => Item::Integer(i64::from(reader.byte()?)),
        0xcd => Item::Integer(i64::from(u16::from_be_bytes(reader.array()?))),
        0xce => Item::Integer(i64::from(u32::from_be_bytes(reader.array()?))),
        0xcf => i64::try_from(u64::from_be_bytes(reader.array()?)).map_or(Item::Other, Item::Integer),
        0xd0 => Item::Integer(i64::from(i8::from_be_bytes(reader.array()?))),
        0xd1 => Item::Integer(i64::from(i16::from_be_bytes(reader.array()?))),
        0xd2 => Item::Integer(i64::from(i32::from_be_bytes(reader.array()?))),
        0xd3 => Item::Integer(i64::from_be_bytes(reader.array()?)),
        0xd4..=0xd8 => skipped(reader, 1 + (1 << (byte - 0xd4)))?,
        0xd9..=0xdb => {
            let length = sized(reader, byte - 0xd9)?;
            text(reader, length)?
        }
        0xdc | 0xdd => open(false, sized(reader, byte - 0xdb)?),
        0xde | 0xdf => open(true, sized(reader, byte - 0xdd)?),
        0xe0..=0xff => Item::Integer(i64::from(byte.cast_signed())),
    })
}

/// A length of one, two or four bytes.
fn sized(reader: &mut Reader, width: u8) -> Result<u64, Fault> {
    Ok(match width {
        0 => u64::from(reader.byte()?),
        1 => u64::from(u16::from_be_bytes(reader.array()?)),
        _ => u64::from(u32::from_be_bytes(reader.array()?)),
    })
}

fn text(reader: &mut Reader, length: u64) -> Result<Item, Fault> {
    if length > MAX_TEXT_BYTES as u64 {
        reader.skip(length)?;
        return Ok(Item::Other);
    }
    Ok(Item::Text(String::from_utf8_lossy(&reader.take(length)?).into_owned()))
}
