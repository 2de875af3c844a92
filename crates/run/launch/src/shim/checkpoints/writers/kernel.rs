//! The kernel's own answer to who wrote (fanotify): for root only.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use nix::fcntl::AT_FDCWD;
use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
use trackway_adopt::{How, Sightings, Who};
use trackway_core::Clock;

use super::Region;
use super::births::Births;
use super::family::{Family, Kin};

/// Every file that is closed after it was open for writing, on the file systems of the region.
#[derive(Debug)]
pub(super) struct Kernel {
    group: Fanotify,
    births: Option<Births>,
}

impl Kernel {
    /// None where the kernel refuses, as it does all users but root. `sees_births`: the attempt's processes are started below this one.
    pub fn open(region: &Region, sees_births: bool) -> Option<Self> {
        let flags = InitFlags::FAN_CLASS_NOTIF | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
        let events = EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC | EventFFlags::O_LARGEFILE;
        let group = Fanotify::init(flags, events).ok()?;
        for folder in &region.folders {
            let there = folder.ancestors().find(|folder| folder.exists())?;
            let add = |how| {
                group.mark(MarkFlags::FAN_MARK_ADD | how, MaskFlags::FAN_CLOSE_WRITE, AT_FDCWD, Some(there))
            };
            add(MarkFlags::FAN_MARK_FILESYSTEM).or_else(|_| add(MarkFlags::FAN_MARK_MOUNT)).ok()?;
        }
        Some(Self { group, births: sees_births.then(Births::open).flatten() })
    }

    /// Notes who wrote in the region since the last call. Whether another one than Trackway did.
    pub fn take(
        &mut self,
        region: &Region,
        family: &mut Family,
        seen: &mut Sightings,
        clock: &dyn Clock,
    ) -> bool {
        let Self { group, births } = self;
        let mut is_new = false;
        births.iter_mut().for_each(Births::take);
        while let Ok(events) = group.read_events() {
            if events.is_empty() {
                break;
            }
            for event in events {
                // A queue that was full has lost some: nothing is known of them then.
                let Some(fd) = event.fd() else { continue };
                let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
                let Ok(found) = fd.try_clone_to_owned().map(File::from).and_then(|file| file.metadata())
                else {
                    continue;
                };
                // By another name it may be elsewhere.
                if !path.is_ok_and(|path: PathBuf| region.holds(&path)) && found.nlink() < 2 {
                    continue;
                }
                let pid = event.pid();
                let kin = match family.kin(pid) {
                    None => births.as_mut().and_then(|births| births.kin(pid, family)),
                    known => known,
                };
                let who = match kin {
                    Some(Kin::Own) => Who::Own,
                    Some(Kin::Trackway) => continue,
                    Some(Kin::Ancestor) => {
                        Who::Other(format!("process {}, which started the run,", event.pid()))
                    }
                    Some(Kin::Stranger(who)) => Who::Other(who),
                    None => Who::Unknown,
                };
                is_new = true;
                // After the write, however long the events before it took.
                seen.saw(How::Kernel, (found.dev(), found.ino()), who, clock.now().as_nanos());
            }
        }
        is_new
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::Ordering;

    use trackway_adopt::WrittenFile;
    use trackway_system::SystemClock;

    use super::super::family::MainProcess;
    use super::*;

    /// Proves, where the kernel names writers, that a write by a name elsewhere counts for a file that has another
    /// name, as a hard link in the region is, and not for one that has none.
    #[test]
    fn a_write_by_another_name_counts() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (out, elsewhere) = (base.join("out"), base.join("elsewhere"));
        for folder in [&out, &elsewhere] {
            fs::create_dir(folder).unwrap();
        }
        for name in ["linked", "alone"] {
            fs::write(elsewhere.join(name), "old").unwrap();
        }
        fs::hard_link(elsewhere.join("linked"), out.join("step-1")).unwrap();
        let region = Region { folders: vec![out], home: "/absent".into() };
        let Some(mut kernel) = Kernel::open(&region, false) else {
            trackway_skip::skip!("the kernel names writers to root alone");
            return;
        };
        let main = MainProcess::default();
        let mut family = Family::of_this_process("att_x".into(), None, MainProcess::clone(&main));
        let mut seen = Sightings::since(0, None);
        let writes = "echo new > elsewhere/linked; echo new > elsewhere/alone";
        let mut child = Command::new("sh").args(["-c", writes]).current_dir(&base).spawn().unwrap();
        main.store(child.id() as i32, Ordering::SeqCst);
        assert!(child.wait().unwrap().success());
        kernel.take(&region, &mut family, &mut seen, &SystemClock);
        let was_seen = |name: &str| {
            let found = fs::metadata(elsewhere.join(name)).unwrap();
            let id = (found.dev(), found.ino());
            let file = WrittenFile {
                id,
                born_ns: None,
                modified_ns: 0,
                changed_ns: 0,
                user: 0,
                bytes: 0,
                since_ns: 0,
            };
            seen.of(&[file], 0, false).kernel.own
        };
        assert_eq!((was_seen("linked"), was_seen("alone")), (true, false));
    }
}
