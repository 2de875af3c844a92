//! Leaves processors and disks to the training.

use std::time::Duration;

/// `IOPRIO_WHO_PROCESS` of `ioprio_set`: with 0 the calling thread.
const WHO_PROCESS: libc::c_int = 1;
/// The idle class, in the bits where the kernel has the class.
const IDLE_CLASS: libc::c_int = 3 << 13;
/// Lets the calling thread run, read and write only when nothing else wants to: of a busy processor it gets 0.3 %, where the least urgent
/// niceness gets 1.5 %. A kernel that refuses leaves it as it is. There is no way back without privileges.
pub fn yield_to_others() {
    // The kernel's `sched_param`: musl has another structure, and a function that only refuses.
    let no_priority: libc::c_int = 0;
    // SAFETY: the first call takes integers only, the second one an integer that it reads. Of both 0 is the calling thread.
    unsafe {
        libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, IDLE_CLASS);
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const no_priority);
    }
}

/// How long processors have worked for the calling thread.
#[must_use]
pub fn processor_time() -> Duration {
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the structure that it gets; it stays zero where it fails.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut used) };
    Duration::new(u64::try_from(used.tv_sec).unwrap_or(0), u32::try_from(used.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the thread which yields is in the idle class, and no other one. Skipped with a printed line where the kernel refuses.
    #[test]
    fn only_the_thread_that_yields_is_idle() {
        // SAFETY: it takes an integer; 0 is the calling thread.
        let class = || unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
        let before = class();
        let yielded = std::thread::spawn(move || {
            yield_to_others();
            class()
        });
        match yielded.join().unwrap() {
            idle if idle == i64::from(libc::SCHED_IDLE) => assert_eq!(class(), before),
            class => trackway_skip::skip!("the kernel leaves the thread in class {class}"),
        }
    }
}
