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
use super::family::{Family, Kin};

/// Every file that is closed after it was open for writing, on the file systems of the region.
#[derive(Debug)]
pub(super) struct Kernel(Fanotify);

impl Kernel {
    /// None where the kernel refuses, as it does all users but root.
    pub fn open(region: &Region) -> Option<Self> {
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
        Some(Self(group))
    }

    /// Notes who wrote in the region since the last call.
    pub fn take(&self, region: &Region, family: &mut Family, seen: &mut Sightings, clock: &dyn Clock) {
        while let Ok(events) = self.0.read_events() {
            if events.is_empty() {
                return;
            }
            for event in events {
                // A queue that was full has lost some: nothing is known of them then.
                let Some(fd) = event.fd() else { continue };
                let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
                if !path.is_ok_and(|path: PathBuf| region.holds(&path)) {
                    continue;
                }
                let who = match family.kin(event.pid()) {
                    Some(Kin::Own) => Who::Own,
                    Some(Kin::Trackway) => continue,
                    Some(Kin::Ancestor) => {
                        Who::Other(format!("process {}, which started the run,", event.pid()))
                    }
                    Some(Kin::Stranger(who)) => Who::Other(who),
                    None => Who::Unknown,
                };
                if let Ok(file) = fd.try_clone_to_owned().map(File::from)
                    && let Ok(found) = file.metadata()
                {
                    // After the write, however long the events before it took.
                    seen.saw(How::Kernel, (found.dev(), found.ino()), who, clock.now().as_nanos());
                }
            }
        }
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
