//! TensorBoard's event files of a script that writes them: their scalars become a flight record of origin
//! `tensorboard`.
//!
//! A separate thread looks below the working directory, so that a slow disk never stops the draining of the script's
//! outputs. An event file is the attempt's when the time in its name (every writer puts it there) is after the attempt
//! began and its process, where the name holds one, is not a living process of another attempt.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use trackway_core::{MetricStep, Step, Timestamp};
use trackway_formats::EventKind;
use trackway_formats::record::EARLY_STEP;
use trackway_formats::tensorboard::{
    Damage, EventFolders, EventItem, EventReader, OF_SESSION, Scalar, is_time_stamp,
};
use trackway_recorder::Origin;
use trackway_redact::Redactor;

use super::below::{
    BelowRecord, FILES_MAX, LAST_LOOK, READ_BYTES, each_file_below, look_until_end, may_have_results,
};
use crate::process::{all_processes, descendants};
use crate::shim::side::{Records, SideThread};

/// Clocks of hosts and the whole seconds in file names may be so far apart.
const EARLY_SECONDS: i64 = 2;
/// The mark in the name of every event file; the time of its making in seconds follows.
const MARK: &str = "tfevents.";
/// At most so many metrics of one event file are remembered for a restart.
const NAMES_MAX: usize = 1024;
/// Of so many metrics and parameters it is remembered which folder they are of.
const OWNERS_MAX: usize = 20_000;
/// Of one file so many damaged parts are named one by one; the others are counted.
const DAMAGE_NAMED_MAX: u64 = 3;

/// Begins to follow the event files of one attempt. What is left is how many values were found in all.
pub(in crate::shim) fn follow(
    working_directory: PathBuf,
    started_at: Timestamp,
    records: Records,
) -> Option<SideThread<u64>> {
    let follower = Follower::new(working_directory, started_at, records);
    SideThread::begin("event-files", LAST_LOOK, |stopped| follower.run(stopped))
}

struct Follower {
    record: BelowRecord,
    started_seconds: i64,
    redactor: Arc<Redactor>,
    files: BTreeMap<PathBuf, Followed>,
    /// Event files of other processes.
    foreign: BTreeSet<PathBuf>,
    /// How many event files are too many, at the last look.
    beyond: usize,
    /// Whether a look ended before it had seen every folder.
    is_cut: bool,
    folders: EventFolders,
    /// The folder of each metric.
    owners: HashMap<String, PathBuf>,
    /// The folder of each parameter.
    parameters: HashMap<String, PathBuf>,
}

#[derive(Default)]
struct Followed {
    reader: EventReader,
    read_bytes: u64,
    /// Precedes every name; empty, or ends in a slash.
    prefix: String,
    /// Whether its folder is named by a time, as those of `add_hparams` are.
    is_of_session: bool,
    /// The metrics that were found.
    names: BTreeSet<String>,
    damage_count: u64,
    /// Values whose names look like secrets.
    secret_count: u64,
    /// Why it could not be read at the last look.
    error: Option<String>,
}

impl Follower {
    fn new(root: PathBuf, started_at: Timestamp, records: Records) -> Self {
        Self {
            record: BelowRecord::new(root, records, Origin::TensorBoard),
            started_seconds: started_at.as_micros().div_euclid(1_000_000),
            redactor: Redactor::of_this_process(),
            files: BTreeMap::new(),
            foreign: BTreeSet::new(),
            beyond: 0,
            is_cut: false,
            folders: EventFolders::default(),
            owners: HashMap::new(),
            parameters: HashMap::new(),
        }
    }

    fn run(mut self, stopped: &Receiver<()>) -> u64 {
        let clock = self.record.clock();
        look_until_end(stopped, &*clock, |_| self.look());
        self.end()
    }

    fn look(&mut self) {
        self.find_files();
        let mut files: Vec<(PathBuf, Followed)> = std::mem::take(&mut self.files).into_iter().collect();
        // The folder of a writer precedes those in it: of equal names its own stay as they are.
        files.sort_by_key(|(path, _)| path.components().count());
        for (path, followed) in &mut files {
            // A file that cannot be read now is tried again at the next look.
            followed.error = self.read_more(path, followed).err().and_then(|error| {
                // The script may delete what it wrote.
                (error.kind() != ErrorKind::NotFound).then(|| error.to_string())
            });
        }
        self.files = files.into_iter().collect();
    }

    /// Names what is left of the files, and ends the record in order. How many values were found.
    fn end(&mut self) -> u64 {
        for (path, mut followed) in std::mem::take(&mut self.files) {
            let mut left = Vec::new();
            followed.reader.finish(|item| left.push(item));
            left.into_iter().for_each(|item| self.write(&path, &mut followed, item));
            for why in left_out(&followed) {
                self.record.skip(&path, &why, &[]);
            }
        }
        self.record.finish("event files", self.beyond, self.is_cut)
    }

    fn find_files(&mut self) {
        let (found, is_cut) = event_files_below(&self.record.root, self.started_seconds - EARLY_SECONDS);
        self.is_cut |= is_cut;
        self.beyond = 0;
        let mut own = Vec::new();
        for (path, way) in found {
            if self.files.contains_key(&path) || self.foreign.contains(&path) {
                continue;
            }
            if self.files.len() + own.len() >= FILES_MAX {
                self.beyond += 1;
            } else if is_foreign(&path) {
                self.foreign.insert(path);
            } else {
                own.push((path, way));
            }
        }
        let ways: Vec<Vec<String>> = own.iter().map(|(_, way)| way.clone()).collect();
        for (path, way) in own {
            // Of folders that were found together, one that others are in is named before them.
            let is_outer = |outer: &&Vec<String>| outer.len() < way.len() && way.starts_with(outer);
            let mut outer: Vec<&Vec<String>> = ways.iter().filter(is_outer).collect();
            outer.sort_by_key(|outer| outer.len());
            for outer in outer {
                self.folders.prefix_of(outer);
            }
            let prefix = self.folders.prefix_of(&way);
            let is_of_session = way.last().is_some_and(|name| is_time_stamp(name));
            self.files.insert(path, Followed { prefix, is_of_session, ..Followed::default() });
        }
    }

    fn read_more(&mut self, path: &Path, followed: &mut Followed) -> std::io::Result<()> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(followed.read_bytes))?;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let count = file.by_ref().take(READ_BYTES).read_to_end(&mut bytes)?;
            if count == 0 {
                return Ok(());
            }
            followed.read_bytes += count as u64;
            let mut items = Vec::new();
            followed.reader.push(&bytes, |item| items.push(item));
            items.into_iter().for_each(|item| self.write(path, followed, item));
        }
    }

    fn write(&mut self, path: &Path, followed: &mut Followed, item: EventItem) {
        match item {
            EventItem::Scalar(scalar) => self.write_scalar(path, followed, &scalar),
            EventItem::Restart { step } => self.write_restart(followed, step),
            EventItem::Parameter { name, value } => {
                let value = self.redactor.value(&name, &value).into_owned();
                let name = self.parameter_name(path, followed, name);
                let name = self.redactor.text(&name).into_owned();
                self.record.writer().param(&name, &value);
            }
            EventItem::Damage(damage) => self.write_damage(path, followed, &damage),
            EventItem::Object(_) => {}
        }
    }

    fn write_scalar(&mut self, path: &Path, followed: &mut Followed, scalar: &Scalar) {
        let folder = path.parent().unwrap_or(path);
        let mut name = format!("{}{}", followed.prefix, scalar.tag);
        let is_of_other = |owner: &PathBuf| followed.is_of_session && owner != folder;
        if self.owners.get(&name).is_some_and(is_of_other) {
            name = format!("{}{OF_SESSION}{}", followed.prefix, scalar.tag);
        }
        if self.redactor.text(&name) != name {
            followed.secret_count += 1;
            return;
        }
        if self.owners.len() < OWNERS_MAX && !self.owners.contains_key(&name) {
            self.owners.insert(name.clone(), folder.to_owned());
        }
        self.record.values += 1;
        let at = Timestamp::from_micros((scalar.wall_seconds * 1e6) as i64);
        self.record.writer().metrics_at_any_step(at, scalar.step, &[(&name, scalar.value)]);
        if followed.names.len() < NAMES_MAX {
            followed.names.insert(name);
        }
    }

    /// A parameter is one of the run: only where another folder has one of that name does its folder precede it.
    fn parameter_name(&mut self, path: &Path, followed: &Followed, name: String) -> String {
        let folder = path.parent().unwrap_or(path);
        match self.parameters.get(&name) {
            Some(owner) if owner != folder => format!("{}{name}", followed.prefix),
            Some(_) => name,
            None => {
                if self.parameters.len() < OWNERS_MAX {
                    self.parameters.insert(name.clone(), folder.to_owned());
                }
                name
            }
        }
    }

    fn write_restart(&mut self, followed: &Followed, step: MetricStep) {
        let names = serde_json::json!(followed.names).to_string();
        let (early, step) = (step.to_string(), Step::try_from(step).ok());
        let fields = [("prefix", followed.prefix.as_str()), ("names", &names), (EARLY_STEP, &early)];
        let fields = if step.is_some() { &fields[..2] } else { &fields[..] };
        self.record.writer().event(EventKind::TensorboardRestart.as_str(), step, fields);
    }

    fn write_damage(&mut self, path: &Path, followed: &mut Followed, damage: &Damage) {
        followed.damage_count += 1;
        if followed.damage_count <= DAMAGE_NAMED_MAX {
            let (offset, bytes) = (damage.offset.to_string(), damage.bytes.to_string());
            let place = [("damage", damage.kind.as_str()), ("offset", &offset), ("bytes", &bytes)];
            self.record.skip(path, &damage.to_string(), &place);
        }
    }
}

/// What is known at the end of a file that was not all recorded.
fn left_out(followed: &Followed) -> Vec<String> {
    let damaged = followed.damage_count.saturating_sub(DAMAGE_NAMED_MAX);
    let damaged = (damaged > 0).then(|| format!("{damaged} more damaged parts of it are left out"));
    let secret = (followed.secret_count > 0)
        .then(|| format!("{} values are left out: their names look like secrets", followed.secret_count));
    let unread = followed.error.as_ref().map(|error| format!("it cannot be read: {error}"));
    [damaged, secret, unread].into_iter().flatten().collect()
}

/// The event files below a folder that were begun at `since_seconds` or later, the oldest first, with the names of the
/// folders down to each; and whether there are more entries than are looked at.
fn event_files_below(root: &Path, since_seconds: i64) -> (Vec<(PathBuf, Vec<String>)>, bool) {
    let mut found = Vec::new();
    let is_searched = |_: &std::fs::DirEntry, name: &str| may_have_results(name);
    let is_cut = each_file_below(root, is_searched, |entry, way, name| {
        let begun = begun_seconds(name).filter(|begun| *begun >= since_seconds);
        found.extend(begun.map(|begun| (begun, entry.path(), way.to_owned())));
    });
    found.sort();
    (found.into_iter().map(|(_, path, way)| (path, way)).collect(), is_cut)
}

/// The time in `events.out.tfevents.1795323178.host.23623.2`.
fn begun_seconds(name: &str) -> Option<i64> {
    let (_, behind) = name.split_once(MARK)?;
    behind.split('.').next()?.parse().ok()
}

/// The process in such a name, where the writer puts one.
fn writer_pid(name: &str) -> Option<i32> {
    let (_, behind) = name.split_once(MARK)?;
    let mut parts: Vec<&str> = behind.split('.').filter(|part| *part != "v2").collect();
    let count = parts.pop()?;
    let pid = parts.pop()?;
    // Time and host precede them.
    (parts.len() >= 2 && count.parse::<u32>().is_ok()).then(|| pid.parse().ok()).flatten()
}

/// Whether a living process wrote it that is not below this one.
fn is_foreign(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (Some(pid), Ok(processes)) = (writer_pid(&name), all_processes()) else { return false };
    let own = descendants(std::process::id() as i32, &processes);
    processes.iter().any(|process| process.pid == pid) && !own.iter().any(|process| process.pid == pid)
}

#[cfg(test)]
mod tests {
    use trackway_formats::record::Frame;

    use super::*;

    /// Proves how names of event files are parsed, of torch, TensorFlow 2 and tensorboardX.
    #[test]
    fn names_of_event_files() {
        for (name, pid) in [
            ("events.out.tfevents.1795323178.vm.example.23623.2", Some(23623)),
            ("events.out.tfevents.1795323178.vm.23623.0.v2", Some(23623)),
            ("events.out.tfevents.1795323179.vm", None),
            ("events.out.tfevents.1795323179.10.0.0.7", Some(0)),
        ] {
            assert!(begun_seconds(name).is_some_and(|seconds| seconds >= 1_795_323_178), "{name}");
            assert_eq!(writer_pid(name), pid, "{name}");
        }
        assert_eq!(begun_seconds("events.txt"), None);
    }

    /// Proves that only new event files are found, and none in hidden folders or among installed programs.
    #[test]
    fn only_new_files_are_found() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a/b", ".hidden", "site-packages"] {
            let folder = root.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("events.out.tfevents.100.h.1.0"), "").unwrap();
            std::fs::write(folder.join("events.out.tfevents.99.h.1.0"), "").unwrap();
        }
        let found = event_files_below(root.path(), 100);
        let (path, way) =
            (root.path().join("a/b/events.out.tfevents.100.h.1.0"), ["a", "b"].map(str::to_owned));
        assert_eq!(found, (vec![(path, way.to_vec())], false));
    }

    fn framed(payload: &[u8]) -> Vec<u8> {
        let check = |bytes: &[u8]| masked_crc32c(bytes).to_le_bytes();
        let length = (payload.len() as u64).to_le_bytes();
        [&length[..], &check(&length), payload, &check(payload)].concat()
    }

    /// Bit by bit: these are few bytes.
    fn masked_crc32c(bytes: &[u8]) -> u32 {
        let mut sum = u32::MAX;
        for byte in bytes {
            sum ^= u32::from(*byte);
            for _ in 0..8 {
                sum = if sum & 1 == 1 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 };
            }
        }
        (!sum).rotate_right(15).wrapping_add(0xa282_ead8)
    }

    /// A field of few bytes.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        assert!(content.len() < 128);
        [&[number << 3 | 2, content.len() as u8][..], content].concat()
    }

    /// A record of a parameter as `add_hparams` writes it.
    fn parameter(name: &str, value: f64) -> Vec<u8> {
        let number = [&[2 << 3 | 1][..], &value.to_le_bytes()].concat();
        let entry = [field(1, name.as_bytes()), field(2, &number)].concat();
        let plugin = [field(1, b"hparams"), field(2, &field(3, &field(1, &entry)))].concat();
        let value = [field(1, b"_hparams_/session_start_info"), field(9, &field(1, &plugin))].concat();
        framed(&field(5, &field(1, &value)))
    }

    /// A record of a value at a step: `Event { step = 2, summary = 5 { value = 1 { tag = 1, simple_value = 2 } } }`.
    fn record(tag: &str, step: i64, value: f32) -> Vec<u8> {
        let value = [&field(1, tag.as_bytes())[..], &[2 << 3 | 5], &value.to_le_bytes()].concat();
        let mut event = vec![2 << 3];
        let mut left = step as u64;
        while left >= 0x80 {
            event.push(left as u8 | 0x80);
            left >>= 7;
        }
        event.push(left as u8);
        event.extend(field(5, &field(1, &value)));
        framed(&event)
    }

    /// What a follower recorded.
    #[derive(Default)]
    struct Recorded {
        values: Vec<(String, i64, f64)>,
        parameters: Vec<(String, String)>,
        skipped: Vec<String>,
    }

    /// What a follower records of a folder in which these files are written before each of its looks.
    fn recorded(looks: &[&[(&str, Vec<u8>)]]) -> Recorded {
        let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let clock = Arc::new(trackway_core::ManualClock::at(Timestamp::from_micros(1_000_000)));
        let (run_id, attempt_id) = ("run".to_owned(), "attempt".to_owned());
        let records = Records { folder: folder.path().to_owned(), run_id, attempt_id, clock };
        let mut follower = Follower::new(root.path().to_owned(), Timestamp::from_micros(0), records);
        for look in looks {
            for (path, bytes) in *look {
                let path = root.path().join(path).join("events.out.tfevents.100.host");
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                let mut file = File::options().append(true).create(true).open(path).unwrap();
                std::io::Write::write_all(&mut file, bytes).unwrap();
            }
            follower.look();
        }
        follower.end();
        let mut recorded = Recorded::default();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            let segment = trackway_formats::record::read_segment(&bytes).unwrap();
            let points = segment.metric_points_of_any_step();
            recorded.values.extend(points.map(|point| (point.name.to_string(), point.step, point.value)));
            for located in &segment.frames {
                match &located.frame {
                    Frame::Param(param) => {
                        recorded.parameters.push((param.name.clone(), param.value.clone()));
                    }
                    Frame::Event(event) if EventKind::EventFileSkipped.is(&event.kind) => {
                        let [path, why] = ["path", "why"].map(|name| event.field(name).unwrap());
                        recorded.skipped.push(format!("{path}: {why}"));
                    }
                    _ => {}
                }
            }
        }
        recorded
    }

    fn names(looks: &[&[(&str, Vec<u8>)]]) -> Vec<String> {
        recorded(looks).values.into_iter().map(|(name, ..)| name).collect()
    }

    /// Proves that the folder of a writer and that which `add_hparams` makes in it name their values alike, whichever
    /// is found first; that a name which both have is not one curve; and that a sub-run has its prefix.
    #[test]
    fn a_folder_in_a_folder() {
        let (outer, inner) = ("runs/ABC", "runs/ABC/1795851751.921718");
        let loss = || record("loss", 0, 1.0);
        let best = || record("hparam/best", 0, 0.5);
        assert_eq!(names(&[&[(inner, best()), (outer, loss())]]), ["loss", "hparam/best"]);
        assert_eq!(names(&[&[(inner, best())], &[(outer, loss())]]), ["hparam/best", "loss"]);
        assert_eq!(names(&[&[(outer, loss())], &[(inner, best())]]), ["loss", "hparam/best"]);
        assert_eq!(names(&[&[(inner, loss()), (outer, loss())]]), ["loss", "hparam/loss"]);
        assert_eq!(names(&[&[("logs/train", loss()), ("logs/val", loss())]]), ["loss", "val/loss"]);
        assert_eq!(names(&[&[("runs/x/Loss_a", loss()), ("runs/x", loss())]]), ["loss", "Loss_a/loss"]);
    }

    /// Proves that the parameters of `add_hparams` are those of the run, and that those of a second folder with the same names stay apart.
    #[test]
    fn parameters_are_of_the_run() {
        let lr = |value| parameter("lr", value);
        let found = recorded(&[&[
            ("runs/a", lr(0.5)),
            ("runs/a/tuned", parameter("depth", 3.0)),
            ("runs/b", lr(0.25)),
        ]]);
        let expected = [("lr", "0.5"), ("b/lr", "0.25"), ("depth", "3")];
        assert_eq!(found.parameters, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    /// Proves that a damaged record is named once with its file and place, that what follows it is recorded, that many
    /// are counted, and that the rest of a file that ends within a record is named at the end.
    #[test]
    fn damage_is_named() {
        let mut file: Vec<u8> = (0..3).flat_map(|step| record("loss", step, 0.5)).collect();
        let (at, damaged) = (file.len(), file.len() - 1);
        file[damaged] ^= 0xff;
        file.extend(record("loss", 3, 0.25));
        file.extend(&record("loss", 4, 0.25)[..20]);
        let Recorded { values, skipped, .. } = recorded(&[&[("runs", file)]]);
        let steps: Vec<i64> = values.iter().map(|(_, step, _)| *step).collect();
        assert_eq!(steps, [0, 1, 3]);
        let start = at - record("loss", 2, 0.5).len();
        let [first, last] = &skipped[..] else { panic!("{skipped:?}") };
        assert!(first.starts_with("runs/events.out.tfevents.100.host: "), "{first}");
        assert!(first.contains(&format!("byte {start} ")) && first.contains("`loss` at step 2"), "{first}");
        assert!(last.contains("its last 20 bytes"), "{last}");

        let mut many: Vec<u8> = Vec::new();
        for step in 0..10 {
            many.extend(record("loss", step, 0.5));
            if let Some(byte) = many.last_mut() {
                *byte ^= 0xff;
            }
        }
        let Recorded { values, skipped, .. } = recorded(&[&[("runs", many)]]);
        assert_eq!((values.len(), skipped.len()), (0, 4));
        assert!(skipped[3].contains("7 more damaged parts"), "{}", skipped[3]);
    }

    /// Proves that a value at a step below 0 is recorded at that step.
    #[test]
    fn steps_below_0_stay() {
        let file = [record("loss", -1, 0.75), record("loss", 0, 0.5)].concat();
        let Recorded { values, .. } = recorded(&[&[("runs", file)]]);
        assert_eq!(values, [("loss".to_owned(), -1, 0.75), ("loss".to_owned(), 0, 0.5)]);
    }
}
