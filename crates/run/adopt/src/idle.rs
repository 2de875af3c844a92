//! Leaves processors and disks to the training.

/// `IOPRIO_WHO_PROCESS` of `ioprio_set`: with 0 the calling thread.
const WHO_PROCESS: libc::c_int = 1;
/// The idle class, in the bits where the kernel has the class.
const IDLE_CLASS: libc::c_int = 3 << 13;
/// The least urgent of all niceness values.
const LEAST_URGENT: libc::c_int = 19;

/// Lets the calling thread run, read and write only when nothing else wants to. A kernel that refuses leaves it as it is.
pub fn yield_to_others() {
    // SAFETY: both calls take integers only. On Linux a niceness is that of a thread: 0 is the calling one.
    unsafe {
        libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, IDLE_CLASS);
        libc::setpriority(libc::PRIO_PROCESS, 0, LEAST_URGENT);
    }
}
