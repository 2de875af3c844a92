use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::bulk::mapping::{BLOCK_BYTES, HUGE_PAGE_BYTES, Mapping};
use crate::bulk::memory::{available_bytes, machine_bytes};

/// The smallest stretch of addresses that is still worth reserving.
const MIN_ADDRESS_BYTES: usize = 64 << 20;

/// Memory in which one save is drafted after the other. It grows to the largest save and stays: its addresses do not
/// change while it grows, and its pages are touched once.
#[derive(Debug)]
pub(crate) struct Arena {
    mapping: Arc<Mapping>,
    usable_bytes: usize,
    used_bytes: usize,
}

/// A part of the arena that other code fills: a copy from a device, or another language.
///
/// Valid until its [`crate::bulk::Draft`] is submitted or dropped; nothing may be written there afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pointer: NonNull<u8>,
    size_bytes: usize,
}

// SAFETY: an address and a length; the code that writes there has to keep the contract above.
unsafe impl Send for Region {}

impl Region {
    pub(crate) fn new(pointer: NonNull<u8>, size_bytes: usize) -> Self {
        Self { pointer, size_bytes }
    }

    /// Its first byte.
    #[must_use]
    pub fn pointer(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    /// Its length.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

impl Arena {
    /// One without memory yet, with addresses for as much as this machine has.
    pub fn new() -> io::Result<Self> {
        let mut size_bytes = machine_bytes().max(MIN_ADDRESS_BYTES).next_multiple_of(HUGE_PAGE_BYTES);
        let mapping = loop {
            match Mapping::addresses(size_bytes) {
                // A limit on addresses (`ulimit -v`) may leave less.
                Err(_) if size_bytes / 2 >= MIN_ADDRESS_BYTES => size_bytes /= 2,
                result => break result?,
            }
        };
        Ok(Self { mapping: Arc::new(mapping), usable_bytes: 0, used_bytes: 0 })
    }

    /// Makes room for so many bytes in all, without touching them.
    ///
    /// # Errors
    /// `OutOfMemory` when the machine has not so much.
    pub fn grow(&mut self, size_bytes: usize) -> io::Result<()> {
        let wanted = size_bytes.checked_next_multiple_of(HUGE_PAGE_BYTES).unwrap_or(usize::MAX);
        if wanted <= self.usable_bytes {
            return Ok(());
        }
        if wanted > self.mapping.size_bytes()
            || available_bytes().is_some_and(|left| wanted - self.usable_bytes > left)
        {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.mapping.make_usable(wanted)?;
        self.usable_bytes = wanted;
        Ok(())
    }

    /// Makes room for so many bytes in all, and pins it for a GPU. False: it is not pinned.
    ///
    /// # Errors
    /// As [`Arena::grow`].
    pub fn pin(&mut self, size_bytes: usize) -> io::Result<bool> {
        self.grow(size_bytes)?;
        Ok(self.mapping.pin(self.usable_bytes))
    }

    /// Takes the next so many bytes, in whole blocks; returns where they begin.
    ///
    /// # Errors
    /// As [`Arena::grow`].
    pub fn take(&mut self, size_bytes: usize) -> io::Result<usize> {
        let begin = self.used_bytes;
        let end = size_bytes
            .checked_next_multiple_of(BLOCK_BYTES)
            .and_then(|size| begin.checked_add(size))
            .ok_or(io::ErrorKind::OutOfMemory)?;
        self.grow(end)?;
        self.used_bytes = end;
        // The padding of a direct write after the last byte must not be an older save's.
        self.bytes_mut(begin + size_bytes, end - begin - size_bytes).fill(0);
        Ok(begin)
    }

    /// Gives all of it back at once: everything taken is over.
    pub fn clear(&mut self) {
        self.used_bytes = 0;
    }

    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// What was taken, or a part of it.
    pub fn bytes(&self, begin: usize, size_bytes: usize) -> &[u8] {
        let pointer = self.pointer(begin, size_bytes);
        // SAFETY: the range was taken, so it is readable; it is borrowed with `self`.
        unsafe { std::slice::from_raw_parts(pointer.as_ptr(), size_bytes) }
    }

    pub fn bytes_mut(&mut self, begin: usize, size_bytes: usize) -> &mut [u8] {
        let pointer = self.pointer(begin, size_bytes);
        // SAFETY: as in `bytes`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), size_bytes) }
    }

    pub fn region(&self, begin: usize, size_bytes: usize) -> Region {
        Region::new(self.pointer(begin, size_bytes), size_bytes)
    }

    fn pointer(&self, begin: usize, size_bytes: usize) -> NonNull<u8> {
        assert!(
            begin.checked_add(size_bytes).is_some_and(|end| end <= self.used_bytes),
            "within what was taken"
        );
        // SAFETY: the range ends within the mapping.
        unsafe { self.mapping.start().add(begin) }
    }

    /// The memory, so that another thread can improve it.
    pub fn mapping(&self) -> Arc<Mapping> {
        self.mapping.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what was taken stays where it is while the arena grows, is cut on blocks, that nothing of an older
    /// save is left after the last byte, and that too much is an error.
    #[test]
    fn an_arena_grows_in_place_and_is_reused() {
        let mut arena = Arena::new().unwrap();
        let first = arena.take(5_000).unwrap();
        arena.bytes_mut(first, 8_192).fill(9);
        let region = arena.region(first, 5_000);
        let second = arena.take(10 << 20).unwrap();
        assert_eq!((first, second), (0, 8_192));
        assert_eq!(arena.region(first, 5_000), region);
        assert_eq!(region.pointer().align_offset(BLOCK_BYTES), 0);
        assert_eq!(arena.bytes(first, 5_000), [9; 5_000]);

        arena.clear();
        assert_eq!(arena.take(6_000).unwrap(), 0);
        assert_eq!(arena.bytes(0, 8_192)[6_000..], [0; 2_192]);
        assert_eq!(arena.take(usize::MAX - 10_000).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(arena.take(1 << 45).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }
}
