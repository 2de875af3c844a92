use std::io;
use std::ptr::NonNull;

/// What direct I/O wants of addresses, offsets and lengths.
pub(crate) const BLOCK_BYTES: usize = trackway_store::DIRECT_ALIGNMENT_BYTES;
/// The size of a huge page on the machines that have them; a mapping begins on one and is touched in steps of one.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

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
}

// SAFETY: a mapping is memory and nothing else; who may touch which bytes is settled by its owners.
unsafe impl Send for Mapping {}
// SAFETY: as above; its own methods only read its fields or give advice to the kernel.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory that can be used at once. In small pages: what lives shortly is touched faster so. A virtual machine may
    /// have given its whole huge pages back to its host, and has to get each again (measured: four to five times
    /// slower than small pages, which were in use a moment ago).
    pub fn usable(size_bytes: usize) -> io::Result<Self> {
        Self::map(size_bytes, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// Addresses without memory behind them, for [`Mapping::make_usable`]. Forked children do not get them: copying
    /// on write would cost the next save a page fault per page, and a second copy of the state.
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
        Ok(Self { base, mapped_bytes, start, size_bytes, private_to: None })
    }

    /// Its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Puts memory behind some of the addresses; the memory comes when it is touched. In huge pages: what lives long is
    /// hashed, copied and written faster so (measured: by a third).
    pub fn make_usable(&self, from: usize, to: usize) -> io::Result<()> {
        assert!(from <= to && to <= self.size_bytes, "within the mapping");
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range lies in this mapping; making it readable and writable takes nothing from anybody.
        let result = unsafe { libc::mprotect(self.start.add(from).as_ptr().cast(), to - from, protection) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        self.advise(from, to - from, libc::MADV_HUGEPAGE);
        Ok(())
    }

    /// Touches memory ahead of its first use, without changing it; safe while others use it. Does nothing on kernels
    /// that cannot (before 5.14).
    pub fn touch(&self, from: usize, to: usize) {
        self.advise(from, to - from, libc::MADV_POPULATE_WRITE);
    }

    /// Advice that the kernel may refuse.
    fn advise(&self, from: usize, size_bytes: usize, advice: libc::c_int) {
        assert!(from + size_bytes <= self.size_bytes, "within the mapping");
        // SAFETY: the range lies in this mapping, and no advice given here changes what is in it.
        let _ = unsafe { libc::madvise(self.start.add(from).as_ptr().cast(), size_bytes, advice) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A forked child does not have the mapping: there the addresses may be somebody else's by now.
        if self.private_to.is_none_or(|process| process == std::process::id()) {
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
        // SAFETY: the mapping is readable, as long as said, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.0.start().as_ptr(), self.0.size_bytes()) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.0.start().as_ptr(), self.0.size_bytes()) }
    }
}
