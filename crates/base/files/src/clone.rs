use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// Lets `to`, which is empty, share the blocks of `from` until one of both is written to (a reflink). False where the file
/// system cannot, or both are on different ones: then nothing was done.
///
/// # Errors
/// When the disk refuses for another reason.
pub fn clone_file(from: &File, to: &File) -> io::Result<bool> {
    // SAFETY: both descriptors are open for as long as the call takes.
    let result = unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONE, from.as_raw_fd()) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    let cannot = [libc::EOPNOTSUPP, libc::EXDEV, libc::EINVAL, libc::ENOTTY, libc::ENOSYS, libc::EPERM];
    match error.raw_os_error() {
        Some(code) if cannot.contains(&code) => Ok(false),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Proves that a clone has the bytes of its source and keeps them when the source is written to, and that a file system
    /// that cannot clone leaves the target empty.
    #[test]
    fn a_clone_is_a_copy_of_its_own() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        std::fs::write(at("from"), "before").unwrap();
        let to = File::create(at("to")).unwrap();
        let is_cloned = clone_file(&File::open(at("from")).unwrap(), &to).unwrap();
        File::options().write(true).open(at("from")).unwrap().write_all(b"after!").unwrap();
        assert_eq!(std::fs::read_to_string(at("to")).unwrap(), if is_cloned { "before" } else { "" });
    }
}
