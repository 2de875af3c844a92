use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::bulk::pinned::{Driver, Registration};

/// What direct I/O wants of addresses, offsets and lengths.
pub(crate) const BLOCK_BYTES: usize = trackway_store::DIRECT_ALIGNMENT_BYTES;
/// The size of a huge page on the machines that have them; a mapping begins on one and is touched in steps of one.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Memory improved in one step.
const IMPROVED_BYTES: usize = 16 << 20;
/// Joins small pages to huge ones (Linux 6.1).
const MADV_COLLAPSE: libc::c_int = 25;

/// Anonymous memory from the operating system: zeroed, page-aligned, given back when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    mapped_bytes: usize,
    /// The first address on a huge page.
    start: NonNull<u8>,
    size_bytes: usize,
    /// The only process that has it, when forked children are kept out.
    private_to: Option<u32>,
    /// How far from the front the addresses have memory, it was touched, and its pages were joined.
    usable_bytes: AtomicUsize,
    touched_bytes: AtomicUsize,
    joined_bytes: AtomicUsize,
    /// What a GPU may write to at the speed of the bus.
    pinned: Mutex<Option<Registration>>,
}

// SAFETY: a mapping is memory and nothing else; its owners decide which code may touch which bytes.
unsafe impl Send for Mapping {}
// SAFETY: as above; its own methods only read its fields or give advice to the kernel.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory that can be used at once. It has small pages, because the first touch of short-lived memory is faster
    /// with them. A virtual machine may have given all its huge pages back to its host and has to get each again
    /// (measured: four to five times slower than small pages that were in use just before).
    pub fn usable(size_bytes: usize) -> io::Result<Self> {
        Self::map(size_bytes, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// Addresses without memory, for [`Mapping::make_usable`]. Forked children do not get them: copying on write would
    /// cost the next save a page fault per page, and a second copy of the state.
    pub fn addresses(size_bytes: usize) -> io::Result<Self> {
        let mut mapping = Self::map(size_bytes, libc::PROT_NONE)?;
        mapping.advise(0, size_bytes, libc::MADV_DONTFORK);
        mapping.private_to = Some(std::process::id());
        Ok(mapping)
    }

    fn map(size_bytes: usize, protection: libc::c_int) -> io::Result<Self> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let mapped_bytes = size_bytes.max(1).checked_add(HUGE_PAGE_BYTES).ok_or_else(too_large)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping touches no memory that exists.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), mapped_bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or_else(too_large)?;
        let skipped = base.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `skipped` is below HUGE_PAGE_BYTES, and the mapping is longer than that.
        let start = unsafe { base.add(skipped) };
        let [usable_bytes, touched_bytes, joined_bytes] = [const { AtomicUsize::new(0) }; 3];
        let private_to = None;
        Ok(Self {
            base,
            mapped_bytes,
            start,
            size_bytes,
            private_to,
            usable_bytes,
            touched_bytes,
            joined_bytes,
            pinned: Mutex::new(None),
        })
    }

    /// Its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Gives memory to the first so many addresses, if they have none; the memory is allocated when it is touched.
    pub fn make_usable(&self, size_bytes: usize) -> io::Result<()> {
        assert!(size_bytes <= self.size_bytes, "within the mapping");
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is in this mapping; making it readable and writable takes nothing from other code.
        let result = unsafe { libc::mprotect(self.start.as_ptr().cast(), size_bytes, protection) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        self.usable_bytes.fetch_max(size_bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Pins the first so many usable bytes for a GPU, if the process uses one. Pinned memory is never swapped out. False: it is not
    /// pinned, and copies from a device are slower.
    pub fn pin(&self, size_bytes: usize) -> bool {
        self.pin_with(Driver::of_process(), size_bytes)
    }

    pub(super) fn pin_with(&self, driver: Option<Driver>, size_bytes: usize) -> bool {
        assert!(size_bytes <= self.usable_bytes.load(Ordering::Relaxed), "within the usable memory");
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        if pinned.as_ref().is_some_and(|known| known.size_bytes() >= size_bytes) {
            return true;
        }
        let Some(driver) = driver else { return false };
        // One copy must not meet two registrations: a larger one takes the place of the one before.
        if let Some(known) = pinned.take()
            && !known.end()
        {
            return false;
        }
        // SAFETY: the memory is usable, and stays until `drop` ends the registration.
        *pinned = unsafe { Registration::new(driver, self.start.as_ptr(), size_bytes) };
        pinned.is_some()
    }

    /// Makes the usable memory better by a step, without changing what is in it and while others use it: first touches
    /// it ahead of them, then joins small pages to huge ones, with which memory is hashed, copied and written faster
    /// (measured: by a third). `false`: there is nothing left to do. For one thread at a time.
    ///
    /// Huge pages from the start would be simpler, and make the first save wait for them: see [`Mapping::usable`].
    pub fn improve(&self) -> bool {
        // Kernels before 5.14 and 6.1 refuse; then the memory stays as it is.
        let steps = [(&self.touched_bytes, libc::MADV_POPULATE_WRITE), (&self.joined_bytes, MADV_COLLAPSE)];
        let usable_bytes = self.usable_bytes.load(Ordering::Relaxed);
        for (done_bytes, advice) in steps {
            let from = done_bytes.load(Ordering::Relaxed);
            let to = usable_bytes.min(from + IMPROVED_BYTES);
            if from < to {
                self.advise(from, to - from, advice);
                done_bytes.store(to, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Advice that the kernel may refuse.
    fn advise(&self, from: usize, size_bytes: usize, advice: libc::c_int) {
        assert!(from + size_bytes <= self.size_bytes, "within the mapping");
        // SAFETY: the range is in this mapping, and no advice given here changes its contents.
        let _ = unsafe { libc::madvise(self.start.add(from).as_ptr().cast(), size_bytes, advice) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A forked child does not have the mapping: other memory may be at its addresses there.
        if self.private_to.is_none_or(|process| process == std::process::id()) {
            let pinned = self.pinned.get_mut().unwrap_or_else(PoisonError::into_inner).take();
            if pinned.is_some_and(|pinned| !pinned.end()) {
                return; // The driver may still write there.
            }
            // SAFETY: the mapping is ours, whole, and nothing borrows from it any more.
            let _ = unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
        }
    }
}

/// A buffer in whole blocks, aligned for direct I/O, zeroed.
#[derive(Debug)]
pub(crate) struct Buffer(Mapping);

impl Buffer {
    /// One with room for so many bytes.
    pub fn new(size_bytes: usize) -> io::Result<Self> {
        Mapping::usable(size_bytes.next_multiple_of(BLOCK_BYTES).max(BLOCK_BYTES)).map(Self)
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable for its whole length and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.0.start().as_ptr(), self.0.size_bytes()) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.0.start().as_ptr(), self.0.size_bytes()) }
    }
}
