use trackway_core::Timestamp;

/// What is left of a payload that is read field by field.
///
/// A field is `None` where the payload is too short for it, or has text that is not UTF-8. Bytes after the known fields are left unread, so
/// that later versions may add some.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of a payload.
    #[must_use]
    pub fn of(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    /// How many bytes are left: before anything is reserved for a count, it is compared with them.
    #[must_use]
    pub fn bytes_left(&self) -> usize {
        self.0.len()
    }

    fn take<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (head, rest) = self.0.split_first_chunk::<COUNT>()?;
        self.0 = rest;
        Some(*head)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|bytes| bytes[0])
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// Bit for bit.
    pub fn f64(&mut self) -> Option<f64> {
        self.take().map(f64::from_le_bytes)
    }

    /// Microseconds since 1970 UTC.
    pub fn time(&mut self) -> Option<Timestamp> {
        self.take().map(|bytes| Timestamp::from_micros(i64::from_le_bytes(bytes)))
    }

    /// A string behind a `u16` of its length.
    pub fn name(&mut self) -> Option<String> {
        let length = self.u16()? as usize;
        self.string(length)
    }

    /// A string behind a `u32` of its length.
    pub fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        self.string(length)
    }

    fn string(&mut self, length: usize) -> Option<String> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(head).ok().map(str::to_owned)
    }
}
