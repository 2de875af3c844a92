//! The wire format of Protocol Buffers, as far as reading a message field by field needs it.
//!
//! Source: the encoding guide of Protocol Buffers. A field is a varint key (number × 8 + wire type) and a value.

/// One value as it is in the bytes; only the schema gives its meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Wire type 0: integers, booleans, enums.
    Varint(u64),
    /// Wire type 1: `double`, `fixed64`.
    Fixed64(u64),
    /// Wire type 2: strings, bytes, messages, packed numbers.
    Bytes(&'a [u8]),
    /// Wire type 5: `float`, `fixed32`.
    Fixed32(u32),
}

impl<'a> Value<'a> {
    /// A `double`.
    #[must_use]
    pub fn double(self) -> Option<f64> {
        if let Value::Fixed64(bits) = self { Some(f64::from_bits(bits)) } else { None }
    }

    /// A `float`.
    #[must_use]
    pub fn float(self) -> Option<f32> {
        if let Value::Fixed32(bits) = self { Some(f32::from_bits(bits)) } else { None }
    }

    /// An `int64`, `int32`, `bool` or enum.
    #[must_use]
    pub fn int(self) -> Option<i64> {
        if let Value::Varint(bits) = self { Some(bits as i64) } else { None }
    }

    /// A message, or bytes.
    #[must_use]
    pub fn bytes(self) -> Option<&'a [u8]> {
        if let Value::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// A string; invalid UTF-8 in it is replaced.
    #[must_use]
    pub fn text(self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// The fields of a message in their order: number and value. Ends before the first byte that fits nothing, so a torn
/// message gives the complete fields.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of these bytes.
    #[must_use]
    pub fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The first field of that number in a message.
    #[must_use]
    pub fn first(message: &'a [u8], number: u32) -> Option<Value<'a>> {
        Self::of(message).find(|(found, _)| *found == number).map(|(_, value)| value)
    }

    /// The bytes that were not read: empty once a whole message was.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
        let (taken, behind) = rest.split_at_checked(count)?;
        *rest = behind;
        Some(taken)
    }

    fn read(rest: &mut &'a [u8]) -> Option<(u32, Value<'a>)> {
        let key = varint(rest)?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
        let value = match key & 7 {
            0 => Value::Varint(varint(rest)?),
            1 => Value::Fixed64(u64::from_le_bytes(Self::take(rest, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(rest)?).ok()?;
                Value::Bytes(Self::take(rest, length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(Self::take(rest, 4)?.try_into().ok()?)),
            // Groups (3 and 4) are out of use since before the formats read here.
            _ => return None,
        };
        Some((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.rest;
        let field = Self::read(&mut rest)?;
        self.rest = rest;
        Some(field)
    }
}

/// Takes a varint off the beginning: seven bits a byte, the lowest first.
pub fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (place, byte) in rest.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * place).min(63);
        if byte & 0x80 == 0 {
            *rest = &rest[place + 1..];
            return Some(value);
        }
    }
    None
}
