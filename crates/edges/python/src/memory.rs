use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use trackway_checkpoint::bulk::{self, LoadedFile};

use crate::target::Target;

/// Bytes that Python may read and write through the buffer protocol: a file that was read, or the place in a draft
/// where a tensor is to be copied. `memoryview(region)`, `torch.frombuffer` and `numpy.frombuffer` make no copy.
#[pyclass(frozen, module = "trackway._trackway")]
pub struct Region {
    owner: Owner,
    pointer: *mut u8,
    len_bytes: usize,
}

// SAFETY: the bytes stay where they are while the owner lives and is open. The Python layer guarantees which code
// writes to them and when, as for every writable buffer.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// What keeps the bytes of a region where they are.
enum Owner {
    /// A file, which is its region's alone.
    File { _file: Box<LoadedFile> },
    /// A draft, which takes the bytes away when it is submitted.
    Draft(Arc<Lent>),
}

/// A draft and the regions that it handed out. Lives until the last of them is gone.
pub struct Lent {
    target: Mutex<Option<Target>>,
    view_count: AtomicUsize,
    closed: AtomicBool,
}

impl Lent {
    pub fn new(target: Target) -> Arc<Self> {
        let target = Mutex::new(Some(target));
        Arc::new(Self { target, view_count: AtomicUsize::new(0), closed: AtomicBool::new(false) })
    }

    /// The draft; gone when it was submitted or given up.
    pub fn target(&self) -> MutexGuard<'_, Option<Target>> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the loan. False while a region is viewed: then the draft must stay. Both this and the taking of a view
    /// happen with the GIL held.
    pub fn close(&self) -> bool {
        self.closed.store(true, Ordering::Release);
        self.view_count.load(Ordering::Acquire) == 0
    }
}

impl Region {
    pub fn of_file(file: LoadedFile) -> Self {
        let mut file = Box::new(file);
        let bytes = file.bytes_mut();
        let (pointer, len_bytes) = (bytes.as_mut_ptr(), bytes.len());
        Self { owner: Owner::File { _file: file }, pointer, len_bytes }
    }

    /// A part of a draft.
    pub fn of_draft(draft: Arc<Lent>, region: &bulk::Region) -> Self {
        Self { owner: Owner::Draft(draft), pointer: region.pointer(), len_bytes: region.size_bytes() }
    }

    fn view_begins(&self) -> PyResult<()> {
        let Owner::Draft(lent) = &self.owner else { return Ok(()) };
        if lent.closed.load(Ordering::Acquire) {
            return Err(PyBufferError::new_err("the draft was submitted; it can no longer be written to"));
        }
        lent.view_count.fetch_add(1, Ordering::AcqRel);
        Ok(())
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
        region.view_begins()?;
        let wants_format = flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT;
        // SAFETY: the interpreter hands a valid view; the object stored in it keeps the bytes where they are until
        // the view is released. Shape and strides point into the view itself, as PyBuffer_FillInfo does it.
        unsafe {
            (*view).buf = region.pointer.cast::<c_void>();
            (*view).len = region.len_bytes as isize;
            (*view).readonly = 0;
            (*view).itemsize = 1;
            (*view).format = if wants_format { BYTE_FORMAT.as_ptr().cast_mut() } else { ptr::null_mut() };
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
        if let Owner::Draft(lent) = &self.owner {
            lent.view_count.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
