use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Bytes that Python may read and write through the buffer protocol: a file that was read, or the place in a stage
/// where a tensor is to be copied. `memoryview(region)`, `torch.frombuffer` and `numpy.frombuffer` make no copy.
#[pyclass(frozen, module = "trackway._trackway")]
pub struct Region {
    /// Keeps the bytes where they are.
    memory: Arc<Memory>,
    offset: usize,
    len_bytes: usize,
}

/// A block of bytes that is written through raw pointers: by `memcpy` while it is staged, by Python through views.
pub struct Memory {
    pointer: *mut u8,
    len_bytes: usize,
    exports: AtomicUsize,
}

// SAFETY: the block is owned, never moved and never resized. Who writes to which part of it and when is the promise of
// the Python layer, as for every writable buffer.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn from_vec(bytes: Vec<u8>) -> Arc<Self> {
        let boxed = bytes.into_boxed_slice();
        let len_bytes = boxed.len();
        let pointer = Box::into_raw(boxed).cast();
        Arc::new(Self { pointer, len_bytes, exports: AtomicUsize::new(0) })
    }

    /// Copies `len_bytes` bytes from `address` to `offset`.
    ///
    /// # Safety
    /// `address` must be readable for `len_bytes` bytes and lie outside this block.
    pub unsafe fn copy_in(&self, offset: usize, address: usize, len_bytes: usize) {
        assert!(offset + len_bytes <= self.len_bytes, "the layout has room for each of its tensors");
        // SAFETY: the target is inside the block (checked), the source is the caller's promise.
        unsafe { ptr::copy_nonoverlapping(address as *const u8, self.pointer.add(offset), len_bytes) };
    }

    /// Views that Python still holds.
    pub fn export_count(&self) -> usize {
        self.exports.load(Ordering::Acquire)
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the block is valid for as long as `self`; callers see to it that no view is written to meanwhile.
        unsafe { std::slice::from_raw_parts(self.pointer, self.len_bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let slice = ptr::slice_from_raw_parts_mut(self.pointer, self.len_bytes);
        // SAFETY: the block came from a box of this length, and nobody refers to it any more.
        drop(unsafe { Box::from_raw(slice) });
    }
}

impl Region {
    pub fn new(memory: Arc<Memory>, offset: usize, len_bytes: usize) -> Self {
        assert!(offset + len_bytes <= memory.len_bytes, "a region lies inside its memory");
        Self { memory, offset, len_bytes }
    }

    pub fn whole(bytes: Vec<u8>) -> Self {
        let len_bytes = bytes.len();
        Self::new(Memory::from_vec(bytes), 0, len_bytes)
    }
}

const BYTE_FORMAT: &CStr = c"B";

#[pymethods]
impl Region {
    fn __len__(&self) -> usize {
        self.len_bytes
    }

    /// # Safety
    /// Called by the interpreter, with a view that it owns.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        let region = slf.get();
        // SAFETY: the offset lies inside the block.
        let start = unsafe { region.memory.pointer.add(region.offset) };
        let format = if flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT {
            BYTE_FORMAT.as_ptr().cast_mut()
        } else {
            ptr::null_mut()
        };
        region.memory.exports.fetch_add(1, Ordering::AcqRel);
        // SAFETY: the interpreter hands a valid view; the object stored in it keeps the bytes where they are until
        // the view is released. Shape and strides point into the view itself, as PyBuffer_FillInfo does it.
        unsafe {
            (*view).buf = start.cast::<c_void>();
            (*view).len = region.len_bytes as isize;
            (*view).readonly = 0;
            (*view).itemsize = 1;
            (*view).format = format;
            (*view).ndim = 1;
            (*view).shape = &raw mut (*view).len;
            (*view).strides = &raw mut (*view).itemsize;
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }

    /// # Safety
    /// Called by the interpreter, once for each view it was given.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.memory.exports.fetch_sub(1, Ordering::AcqRel);
    }
}
