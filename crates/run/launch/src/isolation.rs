//! Launches whose changes to a folder are kept apart from it: rehearsals and proofs of scripts that write checkpoints,
//! logs and caches where the real run will look for them.
//!
//! The script gets a separate mount namespace in which the folder is an overlay: it reads what is there, and what it writes goes to another
//! folder. No privilege is needed where the system lets users make namespaces. Linux only (overlayfs in user namespaces: 5.11).

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::ptr::null;

use nix::libc;
use serde::{Deserialize, Serialize};

/// What is kept apart, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// The folder that stays as it is.
    pub folder: PathBuf,
    /// Where the changes go: an empty folder, or that of an earlier launch whose changes this one is to find.
    pub changes: PathBuf,
    /// A folder below it that is written to all the same: Trackway's own state.
    pub except: Option<PathBuf>,
}

impl Isolation {
    /// Where a file of the folder is that the script wrote.
    #[must_use]
    pub fn upper(&self) -> PathBuf {
        self.changes.join("upper")
    }

    /// Why this system cannot do it; none if it can. Tried with a process that does nothing.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let mut command = Command::new("true");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let tried = self.apply(&mut command).and_then(|()| command.status());
        tried.err().map(|error| format!("an overlay cannot be mounted in a separate namespace ({error})"))
    }

    /// Makes the command start isolated.
    pub(crate) fn apply(&self, command: &mut Command) -> io::Result<()> {
        let mounts = Mounts::of(self)?;
        // SAFETY: `enter` makes system calls with values that were made before, and allocates nothing.
        unsafe { command.pre_exec(move || mounts.enter()) };
        Ok(())
    }
}

/// Everything that the system calls need, made before the process is forked.
struct Mounts {
    folder: CString,
    options: CString,
    except: Option<CString>,
    user_map: Vec<u8>,
    group_map: Vec<u8>,
}

impl Mounts {
    fn of(isolation: &Isolation) -> io::Result<Self> {
        let (upper, work) = (isolation.upper(), isolation.changes.join("work"));
        fs::create_dir_all(&upper)?;
        fs::create_dir_all(&work)?;
        let options = [
            &b"lowerdir="[..],
            plain(&isolation.folder)?,
            b",upperdir=",
            plain(&upper)?,
            b",workdir=",
            plain(&work)?,
            b",userxattr",
        ];
        // SAFETY: both only read the identity of the process.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        Ok(Self {
            folder: CString::new(isolation.folder.as_os_str().as_bytes())?,
            options: CString::new(options.concat())?,
            except: isolation
                .except
                .as_ref()
                .map(|path| CString::new(path.as_os_str().as_bytes()))
                .transpose()?,
            user_map: format!("{user} {user} 1\n").into_bytes(),
            group_map: format!("{group} {group} 1\n").into_bytes(),
        })
    }

    /// Called between fork and exec.
    fn enter(&self) -> io::Result<()> {
        self.unshare()?;
        // SAFETY: every pointer is to a string of this value, or null where the call allows it.
        unsafe {
            check(libc::mount(null(), c"/".as_ptr(), null(), libc::MS_REC | libc::MS_PRIVATE, null()))?;
            let kept = self.except.as_ref().map(|path| tree_of(path)).transpose()?;
            let overlay = c"overlay".as_ptr();
            check(libc::mount(overlay, self.folder.as_ptr(), overlay, 0, self.options.as_ptr().cast()))?;
            if let (Some(tree), Some(path)) = (kept, &self.except) {
                let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
                let at = libc::AT_FDCWD;
                check(
                    libc::syscall(libc::SYS_move_mount, tree, c"".as_ptr(), at, path.as_ptr(), flags) as i32
                )?;
                libc::close(tree);
            }
            // The working directory is still that below the overlay.
            check(libc::chdir(self.folder.as_ptr()))
        }
    }

    /// A mount namespace; who may not make one gets a user namespace too, in which the user is the same.
    fn unshare(&self) -> io::Result<()> {
        // SAFETY: both calls take flags only.
        unsafe {
            if libc::unshare(libc::CLONE_NEWNS) == 0 {
                return Ok(());
            }
            check(libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS))?;
        }
        write_to(c"/proc/self/setgroups", b"deny")?;
        write_to(c"/proc/self/uid_map", &self.user_map)?;
        write_to(c"/proc/self/gid_map", &self.group_map)
    }
}

/// A copy of the mount at a path, to be put elsewhere.
///
/// # Safety
/// As every system call; the path is a string that ends.
unsafe fn tree_of(path: &CString) -> io::Result<i32> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as u32;
    // SAFETY: the pointer is to a string that ends.
    let tree = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) } as i32;
    check(tree)?;
    Ok(tree)
}

fn check(answer: i32) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn write_to(path: &std::ffi::CStr, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the pointers and the length are those of the arguments.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(file)?;
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let failed = (written < 0).then(io::Error::last_os_error);
        libc::close(file);
        failed.map_or(Ok(()), Err)
    }
}

/// A path as the options of a mount can have it.
fn plain(path: &Path) -> io::Result<&[u8]> {
    let bytes = path.as_os_str().as_bytes();
    match bytes.iter().any(|byte| b",:\\\"".contains(byte)) {
        true => Err(io::Error::other(format!("`{}` has one of the characters , : \\ \"", path.display()))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an isolated process reads the folder, that nothing of what it writes, deletes or replaces there
    /// reaches it, that the next one with the same changes finds them, and that the excepted folder is written to.
    #[test]
    fn what_is_written_stays_apart() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        for name in ["state/run", "out"] {
            fs::create_dir_all(work.join(name)).unwrap();
        }
        fs::write(work.join("out/old"), "old").unwrap();
        let isolation = Isolation {
            folder: work.clone(),
            changes: work.join("state/run/changes"),
            except: Some(work.join("state")),
        };
        if let Some(problem) = isolation.problem() {
            trackway_skip::skip!("{problem}");
            return;
        }
        let run = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).current_dir(&work);
            isolation.apply(&mut command).unwrap();
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let script =
            "cat out/old; rm -r out; mkdir out; echo new > out/new; echo kept > state/run/kept; id -u";
        // SAFETY: it only reads the identity of the process.
        let user = unsafe { libc::geteuid() };
        assert_eq!(run(script), format!("old{user}\n"));
        assert_eq!(run("ls out state/run"), "out:\nnew\n\nstate/run:\nchanges\nkept\n");
        assert_eq!(fs::read_to_string(work.join("out/old")).unwrap(), "old");
        assert!(!work.join("out/new").exists());
        assert_eq!(fs::read_to_string(work.join("state/run/kept")).unwrap(), "kept\n");
        assert_eq!(fs::read_to_string(isolation.upper().join("out/new")).unwrap(), "new\n");
    }

    /// Proves that a path which a mount cannot have is refused by name.
    #[test]
    fn a_path_that_cannot_be_mounted_is_named() {
        let isolation =
            Isolation { folder: "/tmp/a,b".into(), changes: std::env::temp_dir().join("none"), except: None };
        assert!(isolation.problem().is_some_and(|why| why.contains("/tmp/a,b")));
    }
}
