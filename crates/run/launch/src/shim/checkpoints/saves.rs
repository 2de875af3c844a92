//! What shows that a save is finished before its files do: the script reports it in its flight record
//! (`checkpoint_written`), or the kernel a rename (inotify).

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use trackway_adopt::Saves;
use trackway_core::Timestamp;
use trackway_formats::EventKind;
use trackway_formats::path_text::path_of;
use trackway_formats::record::{Event, Frame, Item, Origin, SegmentReader};

/// Most bytes read of one segment in one look.
const LOOK_BYTES_MAX: usize = 1 << 20;
/// Most segments that are followed: one a process.
const SEGMENTS_MAX: usize = 256;
/// Most folders in which renames are seen.
const FOLDERS_MAX: usize = 256;

/// Follows both.
#[derive(Debug)]
pub(super) struct FinishedSaves {
    records: PathBuf,
    segments: BTreeMap<OsString, Segment>,
    inotify: Option<Inotify>,
    watched: HashMap<WatchDescriptor, PathBuf>,
    saves: Saves,
}

/// One segment of the flight record.
#[derive(Debug, Default)]
struct Segment {
    reader: SegmentReader,
    read_bytes: u64,
    /// Not written by the script itself, or not readable.
    is_done: bool,
}

impl FinishedSaves {
    pub fn new(records: PathBuf) -> Self {
        // Without it no rename is seen, and the files themselves have to show that they are complete.
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok();
        Self { records, segments: BTreeMap::new(), inotify, watched: HashMap::new(), saves: Saves::default() }
    }

    /// Watches these folders too, if they are there.
    pub fn watch(&mut self, folders: impl IntoIterator<Item = PathBuf>) {
        let Some(inotify) = &self.inotify else { return };
        for folder in folders {
            if self.watched.len() < FOLDERS_MAX
                && !self.watched.values().any(|known| *known == folder)
                && let Ok(descriptor) = inotify.add_watch(&folder, AddWatchFlags::IN_MOVED_TO)
            {
                self.watched.insert(descriptor, folder);
            }
        }
    }

    /// What is known by now.
    pub fn look(&mut self, now: Timestamp) -> &Saves {
        self.take_renames(now);
        for entry in fs::read_dir(&self.records).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if self.segments.len() < SEGMENTS_MAX || self.segments.contains_key(&name) {
                let segment = self.segments.entry(name).or_default();
                segment.events(&entry.path(), |event| take_report(&mut self.saves, event));
            }
        }
        &self.saves
    }

    fn take_renames(&mut self, now: Timestamp) {
        let events = self.inotify.as_ref().and_then(|inotify| inotify.read_events().ok());
        for event in events.into_iter().flatten() {
            if let (Some(folder), Some(name)) = (self.watched.get(&event.wd), event.name) {
                self.saves.rename(folder.join(name), now.as_nanos());
            }
        }
    }
}

impl Segment {
    /// Reads on, and gives out the events of the script.
    fn events(&mut self, path: &Path, mut take: impl FnMut(&Event)) {
        if self.is_done {
            return;
        }
        let mut bytes = vec![0; LOOK_BYTES_MAX];
        let read = File::open(path).and_then(|file| file.read_at(&mut bytes, self.read_bytes)).unwrap_or(0);
        self.read_bytes += read as u64;
        self.reader.push(&bytes[..read]);
        loop {
            match self.reader.next_item() {
                Ok(Some(Item::Frame(located))) => match located.frame {
                    Frame::Header(header) if header.origin != Origin::Sdk => self.is_done = true,
                    Frame::Event(event) => take(&event),
                    _ => {}
                },
                Ok(Some(Item::Damage(_))) => {}
                Ok(None) => return,
                Err(_) => self.is_done = true,
            }
            if self.is_done {
                return;
            }
        }
    }
}

fn take_report(saves: &mut Saves, event: &Event) {
    let path = event.fields.iter().find(|(name, _)| name == "path").map(|(_, path)| path_of(path));
    if let Some(path) = path.filter(|path| EventKind::CheckpointWritten.is(&event.kind) && path.is_absolute())
    {
        saves.report(path, event.at.as_nanos(), event.step);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trackway_core::ManualClock;
    use trackway_recorder::{SegmentInfo, SegmentWriter};

    use super::*;

    /// Proves that what the script reports is taken from its segment while that grows, and not from others, and that a rename into a
    /// watched folder is seen.
    #[test]
    fn reports_and_renames_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("records");
        let at = Timestamp::from_micros(1_795_244_400_000_000);
        let segment = |origin| {
            let info = SegmentInfo { run_id: "r".into(), attempt_id: "a".into(), origin };
            SegmentWriter::create(&records, info, Arc::new(ManualClock::at(at)))
        };
        let report = |segment: &mut SegmentWriter, path: &str| {
            segment.event(EventKind::CheckpointWritten.as_str(), Some(7), &[("path", path)]);
        };
        let (mut script, mut other) = (segment(Origin::Sdk), segment(Origin::Telemetry));
        let mut saves = FinishedSaves::new(records.clone());
        saves.watch([folder.path().to_owned(), folder.path().join("absent")]);
        let mut expected = Saves::default();
        report(&mut other, "/out/no");
        report(&mut script, "/out/a");
        report(&mut script, "relative");
        report(&mut script, "/out/\\xff");
        expected.report(path_of("/out/\\xff"), at.as_nanos(), Some(7));
        expected.report("/out/a".into(), at.as_nanos(), Some(7));
        assert_eq!(format!("{:?}", saves.look(at)), format!("{expected:?}"));
        report(&mut script, "/out/b");
        fs::write(folder.path().join(".c.tmp"), "c").unwrap();
        fs::rename(folder.path().join(".c.tmp"), folder.path().join("c")).unwrap();
        expected.report("/out/b".into(), at.as_nanos(), Some(7));
        expected.rename(folder.path().join("c"), at.as_nanos());
        assert_eq!(format!("{:?}", saves.look(at)), format!("{expected:?}"));
    }
}
