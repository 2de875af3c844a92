//! Memory that a GPU writes to at the speed of the bus: registered with the driver of CUDA, if the process has loaded it.
//!
//! Into other memory the driver copies through a small buffer, at about a quarter of that speed. A registration must end before its
//! memory does: the driver would still write to the old pages, whatever is at their addresses by then.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

/// Nothing went wrong.
const SUCCESS: c_int = 0;
/// The driver is ending with the process, and all registrations with it.
const DEINITIALIZED: c_int = 4;
/// Registered for every context of the process.
const PORTABLE: c_uint = 1;

/// `cuMemHostRegister`: address, size and flags.
type Register = unsafe extern "C" fn(*mut c_void, usize, c_uint) -> c_int;
/// A function of an address or a context.
type OfPointer = unsafe extern "C" fn(*mut c_void) -> c_int;
/// A function that writes a context.
type GivesContext = unsafe extern "C" fn(*mut *mut c_void) -> c_int;

/// Functions of the driver, as `cuda.h` declares them. Their names and signatures do not change within a version suffix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Driver {
    pub register: Register,
    pub unregister: OfPointer,
    pub current_context: GivesContext,
    pub push_context: OfPointer,
    pub pop_context: GivesContext,
}

impl Driver {
    /// That of this process; none if it did not load one.
    pub fn of_process() -> Option<Self> {
        // SAFETY: a library is only looked up, not loaded. It stays for as long as the process: the reference that is counted here
        // is not given back.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if library.is_null() {
            return None;
        }
        let find = |name: &std::ffi::CStr| {
            // SAFETY: the library is loaded, and the name ends with a NUL.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        let [register, unregister, current, push, pop] = [
            find(c"cuMemHostRegister_v2")?,
            find(c"cuMemHostUnregister")?,
            find(c"cuCtxGetCurrent")?,
            find(c"cuCtxPushCurrent_v2")?,
            find(c"cuCtxPopCurrent_v2")?,
        ];
        // SAFETY: the types are those of `cuda.h` for these names.
        unsafe {
            Some(Self {
                register: std::mem::transmute::<*mut c_void, Register>(register),
                unregister: std::mem::transmute::<*mut c_void, OfPointer>(unregister),
                current_context: std::mem::transmute::<*mut c_void, GivesContext>(current),
                push_context: std::mem::transmute::<*mut c_void, OfPointer>(push),
                pop_context: std::mem::transmute::<*mut c_void, GivesContext>(pop),
            })
        }
    }
}

/// A range of memory that is registered.
#[derive(Debug)]
pub(crate) struct Registration {
    driver: Driver,
    context: *mut c_void,
    start: *mut c_void,
    size_bytes: usize,
}

// SAFETY: addresses, and functions that may be called from every thread.
unsafe impl Send for Registration {}

impl Registration {
    /// Registers memory; none if this thread uses no device, or the driver refuses.
    ///
    /// # Safety
    /// The memory must be mapped and writable until [`Registration::end`] was called.
    pub unsafe fn new(driver: Driver, start: *mut u8, size_bytes: usize) -> Option<Self> {
        let (start, mut context) = (start.cast::<c_void>(), ptr::null_mut());
        // SAFETY: the driver writes a context.
        let known = unsafe { (driver.current_context)(&raw mut context) } == SUCCESS && !context.is_null();
        // SAFETY: the caller's promise.
        let registered = known && unsafe { (driver.register)(start, size_bytes, PORTABLE) } == SUCCESS;
        registered.then_some(Self { driver, context, start, size_bytes })
    }

    /// How much of the memory is registered.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Ends it, from any thread. False: the driver refused, and the memory must stay as long as the process.
    pub fn end(self) -> bool {
        let Self { driver, context, start, .. } = self;
        // SAFETY: the context was current when the range was registered; if it is gone the driver says so. What is pushed is popped.
        unsafe {
            let pushed = (driver.push_context)(context) == SUCCESS;
            let ended = (driver.unregister)(start);
            if pushed {
                let mut popped = ptr::null_mut();
                (driver.pop_context)(&raw mut popped);
            }
            matches!(ended, SUCCESS | DEINITIALIZED)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::bulk::mapping::{HUGE_PAGE_BYTES, Mapping};

    static CALLS: Mutex<Vec<(&str, usize)>> = Mutex::new(Vec::new());
    static REGISTERED_BYTES: AtomicUsize = AtomicUsize::new(0);
    /// Of an end that the driver refuses.
    const REFUSED_BYTES: usize = 3 * HUGE_PAGE_BYTES;

    fn note(what: &'static str, size: usize) -> c_int {
        CALLS.lock().unwrap().push((what, size));
        SUCCESS
    }

    unsafe extern "C" fn register(start: *mut c_void, size_bytes: usize, _: c_uint) -> c_int {
        // SAFETY: the memory is mapped; that it can be written to is what is shown.
        unsafe { start.cast::<u8>().add(size_bytes - 1).write(7) };
        REGISTERED_BYTES.store(size_bytes, Ordering::Relaxed);
        note("register", size_bytes)
    }

    unsafe extern "C" fn unregister(start: *mut c_void) -> c_int {
        let last = REGISTERED_BYTES.load(Ordering::Relaxed);
        // SAFETY: the memory must still be mapped; else this is where the test ends.
        assert_eq!(unsafe { start.cast::<u8>().add(last - 1).read() }, 7);
        note("unregister", last);
        if last == REFUSED_BYTES { 1 } else { SUCCESS }
    }

    unsafe extern "C" fn current_context(context: *mut *mut c_void) -> c_int {
        // SAFETY: the caller's variable.
        unsafe { context.write(ptr::dangling_mut()) };
        SUCCESS
    }

    unsafe extern "C" fn no_context(context: *mut *mut c_void) -> c_int {
        // SAFETY: the caller's variable.
        unsafe { context.write(ptr::null_mut()) };
        SUCCESS
    }

    unsafe extern "C" fn push_context(_: *mut c_void) -> c_int {
        note("push", 0)
    }

    unsafe extern "C" fn pop_context(_: *mut *mut c_void) -> c_int {
        note("pop", 0)
    }

    fn is_mapped(address: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().any(|line| {
            let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let number = |text: &str| usize::from_str_radix(text, 16).unwrap();
            (number(from)..number(to)).contains(&address)
        })
    }

    /// Proves that a range is registered once, as a whole when it has grown, that its registration ends while its
    /// memory is there, that memory whose registration does not end is not given back, and that without a device
    /// nothing is registered.
    #[test]
    fn a_registration_ends_before_its_memory() {
        let driver = Driver { register, unregister, current_context, push_context, pop_context };
        let calls = || std::mem::take(&mut *CALLS.lock().unwrap());
        let mapping = || {
            let mapping = Mapping::addresses(8 * HUGE_PAGE_BYTES).unwrap();
            mapping.make_usable(4 * HUGE_PAGE_BYTES).unwrap();
            mapping
        };
        let (one, two) = (HUGE_PAGE_BYTES, 2 * HUGE_PAGE_BYTES);
        let pinned = mapping();
        assert!(pinned.pin_with(Some(driver), one) && pinned.pin_with(Some(driver), one));
        assert_eq!(calls(), [("register", one)]);
        assert!(pinned.pin_with(Some(driver), two));
        assert_eq!(calls(), [("push", 0), ("unregister", one), ("pop", 0), ("register", two)]);
        let at = pinned.start().as_ptr() as usize;
        drop(pinned);
        assert_eq!(calls(), [("push", 0), ("unregister", two), ("pop", 0)]);
        assert!(!is_mapped(at));

        let kept = mapping();
        assert!(kept.pin_with(Some(driver), REFUSED_BYTES));
        let at = kept.start().as_ptr() as usize;
        drop(kept);
        assert!(is_mapped(at));
        calls();

        let other = mapping();
        let without_device = Driver { current_context: no_context, ..driver };
        assert!(!other.pin_with(None, one) && !other.pin_with(Some(without_device), one));
        assert_eq!(calls(), []);
    }

    /// Proves that a process without CUDA has no driver.
    #[test]
    fn a_process_without_cuda_has_no_driver() {
        assert!(Driver::of_process().is_none());
    }
}
