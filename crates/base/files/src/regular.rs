use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Opens a regular file for reading, and never waits: a pipe or a device under that name is an error.
///
/// # Errors
/// `InvalidInput` for what is not a regular file, with its kind; when the disk refuses.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Without the flag, opening a pipe waits for a writer, for ever.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)?;
    let kind = file.metadata()?.file_type();
    let name = match () {
        () if kind.is_file() => return Ok(file),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name}, not a regular file")))
}

/// Reads a regular file whole.
///
/// # Errors
/// As [`open_regular`].
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The result for a file or folder; `None`: it does not exist.
///
/// # Errors
/// Every other error.
pub fn if_there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Reads a file from `offset` on until `bytes` are full or it ends, and returns how many it read. After a read that is
/// not a multiple of `block_bytes` it has ended.
///
/// # Errors
/// When the disk refuses.
pub fn read_full(file: &File, offset: u64, bytes: &mut [u8], block_bytes: usize) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() && done.is_multiple_of(block_bytes) {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a pipe, a folder, a device, a dangling link and a loop are errors at once, and that a file and a
    /// link to one are not.
    #[test]
    fn only_a_regular_file_is_opened() {
        use std::os::unix::ffi::OsStrExt as _;
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let pipe = std::ffi::CString::new(at("pipe").as_os_str().as_bytes()).unwrap();
        // SAFETY: the text ends with NUL and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        for (link, to) in [("loop", "loop"), ("dangling", "nothing"), ("link", "file")] {
            std::os::unix::fs::symlink(to, at(link)).unwrap();
        }
        std::fs::write(at("file"), "x").unwrap();
        assert_eq!([at("file"), at("link")].map(|path| read_regular(&path).unwrap()), [b"x", b"x"]);
        for (path, why) in [
            (at("pipe"), "a named pipe"),
            (home.path().to_owned(), "a folder"),
            ("/dev/null".into(), "a device"),
            (at("loop"), "symbolic links"),
            (at("dangling"), "No such file"),
        ] {
            let error = open_regular(&path).unwrap_err().to_string();
            assert!(error.contains(why), "{}: {error}", path.display());
            let error = read_regular(&path).unwrap_err().to_string();
            assert!(error.contains(why), "{}: {error}", path.display());
        }
    }
}
