//! Files in which frameworks write metrics and settings themselves, such as Lightning's `metrics.csv`: their values
//! become a flight record of origin `files`.
//!
//! A separate thread looks below the working directory. A file is read once it was seen that the attempt's processes
//! wrote it, by the same evidence as of checkpoints ([`trackway_adopt::owner`]); what it is, and which of its values
//! are new, is decided by [`trackway_formats::metric_files`].

mod find;
mod growing;
mod own;
mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};

use nix::unistd::Pid;
use trackway_core::Timestamp;
use trackway_core::boundary::contained;
use trackway_formats::metric_files::{
    Axis, Form, Judge, LogFacts, Point, Replay, Settings, StateHistory, Verdict, is_log_by_name,
    is_place_of_logs, printed_behind, read_overrides, read_settings, read_state,
};

use super::below::{FILES_MAX, LAST_LOOK, look_until_end};
use super::printed::{PrintedCounts, records_metrics};
use crate::shim::checkpoints::writers::{EndedProcesses, MainProcess, WriterView, Writers};
use crate::shim::side::{Records, SideThread};
use crate::{Isolation, StoredLaunch};
use find::{MetricFile, files_below};
use growing::{GrowingLog, KnownContent, Row, text_of};
use own::{Ownership, Proof};
use record::Record;

/// Of so many files it is remembered that they are none of these.
const OTHERS_MAX: usize = 20_000;
/// A longer state of a trainer is not read.
const STATE_BYTES_MAX: u64 = 16 << 20;
/// A longer configuration is not read.
const SETTINGS_BYTES_MAX: u64 = 256 << 10;
/// Of files that are not the attempt's own, so many are named one by one.
const NAMED_MAX: usize = 3;

/// The thread that looks, and what sees who writes if nothing else does.
pub(in crate::shim) struct MetricFiles {
    thread: SideThread<u64>,
    /// Closed once the checkpoints are judged, by what is also evidence of these files.
    judged: Sender<()>,
    writers: Option<Writers>,
    main: MainProcess,
}

/// What was there before the attempt began, and is not of it.
#[derive(Default)]
pub(in crate::shim) struct WhatWasThere {
    logs: HashMap<PathBuf, KnownContent>,
    /// What states had, by the folder whose values it is.
    histories: HashMap<PathBuf, StateHistory>,
}

impl WhatWasThere {
    /// To be called before the script starts. A file that is not as expected must not keep it from that.
    pub fn of(launch: &StoredLaunch) -> Self {
        let mut there = Self::default();
        contained(|| there.note(&root_of(launch), launch.home())).ok();
        there
    }

    fn note(&mut self, root: &Path, home: &Path) {
        let (found, _) = files_below(root, home);
        let (states, logs): (Vec<MetricFile>, Vec<MetricFile>) = found
            .into_iter()
            .filter(|one| one.form == Form::State || one.form.is_log())
            .partition(|one| one.form == Form::State);
        for found in states.into_iter().take(FILES_MAX) {
            let entries = text_of(&found.path, STATE_BYTES_MAX).ok().and_then(|text| read_state(&text));
            let history = self.histories.entry(found.folder_of_values(root)).or_default();
            entries.iter().for_each(|entries| history.was_there(entries));
        }
        for (number, found) in logs.into_iter().enumerate() {
            // Of more files than may be logs only the length is noted.
            let known = if number < FILES_MAX {
                KnownContent::of(&found.path, found.bytes)
            } else {
                KnownContent::of_length(found.bytes)
            };
            self.logs.insert(found.path, known);
        }
    }
}

/// The folder below which the script writes.
fn root_of(launch: &StoredLaunch) -> PathBuf {
    launch.isolation.as_ref().map_or_else(|| launch.working_directory.clone(), Isolation::upper)
}

impl MetricFiles {
    /// Begins to look; to be called before the script starts. `sight`: what sees who writes. None: no thread can be had.
    pub fn begin(
        launch: &StoredLaunch,
        there: WhatWasThere,
        (started_at, sight): (Timestamp, Option<WriterView>),
        printed: PrintedCounts,
        records: Records,
    ) -> Option<Self> {
        let main = MainProcess::default();
        let writers = (sight.is_none() && launch.isolation.is_none()).then(|| {
            let processes = (Arc::clone(&main), EndedProcesses::default());
            let folder = &launch.working_directory;
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            Writers::begin(launch, vec![folder], processes, Arc::clone(&records.clock))
        });
        let proof = match &launch.isolation {
            // Only what the attempt wrote is there.
            Some(_) => Proof::Place,
            None => {
                sight.or_else(|| writers.as_ref().map(Writers::sight)).map_or(Proof::Nothing, Proof::Seen)
            }
        };
        let places = (root_of(launch), launch.home().to_owned());
        let mut follower = Follower::new(places, there, (started_at, proof), printed, records);
        let (judged, are_judged) = channel();
        follower.checkpoints_are_judged = Some(are_judged);
        // A file that is not as expected must not end the attempt.
        let work = move |stopped: &Receiver<()>| contained(|| follower.run(stopped)).unwrap_or(0);
        let thread = SideThread::begin("metric-files", LAST_LOOK, work)?;
        Some(Self { thread, judged, writers, main })
    }

    /// The script has started.
    pub fn started(&self, main: Pid) {
        self.main.store(main.as_raw(), Ordering::SeqCst);
    }

    /// Lets the folder be searched for the last time beside what the caller does. What sees who writes must have looked
    /// for the last time.
    pub fn end(&mut self) {
        self.writers.iter_mut().for_each(Writers::finish);
        self.thread.end();
    }

    /// Judges and reads what was found for the last time, after the checkpoints. How many values were found in all.
    pub fn finish(mut self) -> u64 {
        self.end();
        drop(self.judged);
        self.thread.finish().unwrap_or(0)
    }
}

/// A file that is followed.
struct Followed {
    found: MetricFile,
    own: Ownership,
    content: Content,
    /// Length and time of its state that was read as a whole.
    read: Option<(u64, i64)>,
    /// Why it was not read at the last look.
    why: Option<String>,
}

enum Content {
    Log(Box<Log>),
    State,
    Settings,
}

/// A table or a file of objects.
struct Log {
    growing: GrowingLog,
    replay: Replay,
    /// None once it is known to be a log.
    judge: Option<Judge>,
    /// Metrics that the script prints more often.
    left: BTreeSet<String>,
}

struct Follower {
    root: PathBuf,
    home: PathBuf,
    started_ns: i64,
    proof: Proof,
    /// Closed once they are, at the end; none where nothing judges them.
    checkpoints_are_judged: Option<Receiver<()>>,
    printed: PrintedCounts,
    folder: PathBuf,
    files: BTreeMap<PathBuf, Followed>,
    /// What was there before the attempt began.
    before: HashMap<PathBuf, KnownContent>,
    /// Files that are no logs, by path and inode.
    others: HashSet<(PathBuf, u64)>,
    /// How many files are too many, at the last look.
    beyond: usize,
    histories: HashMap<PathBuf, StateHistory>,
    /// Of each folder the state that was recorded last, and its last entry.
    last_entries: HashMap<PathBuf, (MetricFile, Point)>,
    record: Record,
    is_cut: bool,
}

impl Follower {
    fn new(
        (root, home): (PathBuf, PathBuf),
        there: WhatWasThere,
        (started_at, proof): (Timestamp, Proof),
        printed: PrintedCounts,
        records: Records,
    ) -> Self {
        Self {
            home,
            started_ns: started_at.as_nanos(),
            proof,
            checkpoints_are_judged: None,
            printed,
            folder: records.folder.clone(),
            files: BTreeMap::new(),
            before: there.logs,
            others: HashSet::new(),
            beyond: 0,
            histories: there.histories,
            last_entries: HashMap::new(),
            record: Record::new(root.clone(), records),
            root,
            is_cut: false,
        }
    }

    fn run(&mut self, stopped: &Receiver<()>) -> u64 {
        let clock = self.record.below.clock();
        look_until_end(stopped, &*clock, |is_last| self.look(is_last));
        self.end()
    }

    fn look(&mut self, is_last: bool) {
        let (found, is_cut) = files_below(&self.root, &self.home);
        if is_last && let Some(judged) = self.checkpoints_are_judged.take() {
            judged.recv().ok();
        }
        self.is_cut |= is_cut;
        self.beyond = 0;
        let started_ns = self.started_ns;
        found.into_iter().filter(|found| found.modified_ns >= started_ns).for_each(|found| self.meet(found));
        let mut files: Vec<(PathBuf, Followed)> = std::mem::take(&mut self.files).into_iter().collect();
        // Of equal forms the folders near the working directory come first; of states the newest one has all.
        let newest_first =
            |one: &Followed| if one.found.form == Form::State { -one.found.modified_ns } else { 0 };
        files.sort_by_key(|(path, one)| (one.found.form, path.components().count(), newest_first(one)));
        files.retain_mut(|(_, followed)| self.look_at(followed, is_last));
        self.files = files.into_iter().collect();
    }

    /// Takes in that a file was changed since the attempt began.
    fn meet(&mut self, found: MetricFile) {
        if self.others.contains(&(found.path.clone(), found.inode)) {
            return;
        }
        if let Some(known) = self.files.get_mut(&found.path) {
            known.found = found;
        } else if self.files.len() >= FILES_MAX {
            self.beyond += 1;
        } else {
            let before = self.before.remove(&found.path).unwrap_or_default();
            let content = match found.form {
                form if form.is_log() => Content::Log(Box::new(Log {
                    growing: GrowingLog::new(form, before),
                    replay: Replay::default(),
                    judge: Some(Judge::new(is_log_by_name(&found.way, &found.name()))),
                    left: BTreeSet::new(),
                })),
                Form::State => Content::State,
                _ => Content::Settings,
            };
            let followed = Followed { own: Ownership::default(), content, read: None, why: None, found };
            self.files.insert(followed.found.path.clone(), followed);
        }
    }

    /// Reads what is new in a file. False: it is none that is followed.
    fn look_at(&mut self, followed: &mut Followed, is_last: bool) -> bool {
        if !followed.own.look(&self.proof, &followed.found.path) {
            return true;
        }
        let Followed { found, own, content, read, why } = followed;
        let state = (found.bytes, found.modified_ns);
        // What is read as a whole is read when it changed, and once more at the end.
        if !found.form.is_log() && *read == Some(state) && !is_last {
            return true;
        }
        *read = Some(state);
        let looked = match content {
            Content::Log(log) => self.look_at_log(found, log, is_last),
            Content::State => self.look_at_state(found, is_last),
            Content::Settings => self.look_at_settings(found),
        };
        *why = looked.unwrap_or_else(|error| Some(format!("it cannot be read: {error}")));
        self.record.shown_by(&found.path, found.form, own.shown_by());
        if let Content::Log(log) = content
            && log.growing.is_other()
        {
            if self.others.len() < OTHERS_MAX {
                self.others.insert((found.path.clone(), found.inode));
            }
            return false;
        }
        true
    }

    /// Why the values of a log are not recorded, if it is known.
    fn look_at_log(
        &mut self,
        found: &MetricFile,
        log: &mut Log,
        is_last: bool,
    ) -> io::Result<Option<String>> {
        let Log { growing, replay, judge, left } = log;
        growing.read(&found.path, is_last, |row| match (row, judge.as_mut()) {
            (Row::Again, judge) => {
                replay.begin_again();
                judge.into_iter().for_each(Judge::begin_again);
            }
            (Row::Before(point), _) => drop(replay.take(point)),
            (Row::New(point), Some(judge)) => judge.take(point),
            (Row::New(point), None) => self.write_new(found, replay, left, point),
        })?;
        let (Some(judging), Some(axis)) = (judge.as_mut(), growing.axis()) else { return Ok(None) };
        judging.end_look();
        let facts = self.facts(judging, axis, is_last);
        match judging.verdict(facts) {
            Verdict::Wait => {
                if facts.is_recorded {
                    judging.begin_again();
                }
                return Ok(None);
            }
            Verdict::Not(why) => return Ok(Some(why.to_owned())),
            Verdict::Read => {}
        }
        *left = judging.left_to_printed(|name| self.printed.changes_of(name));
        let rows = judge.take().map(Judge::into_rows).unwrap_or_default();
        rows.into_iter().for_each(|point| self.write_new(found, replay, left, point));
        Ok(None)
    }

    /// Records what of a row is new, but for metrics that are left to what is printed.
    fn write_new(&mut self, found: &MetricFile, replay: &mut Replay, left: &BTreeSet<String>, point: Point) {
        let Some(mut point) = replay.take(point) else { return };
        point.values.retain(|(name, _)| !left.contains(name));
        if !point.values.is_empty() {
            self.record.write(found, point);
        }
    }

    fn facts(&self, judge: &Judge, axis: Axis, is_last: bool) -> LogFacts {
        LogFacts {
            is_last,
            axis,
            printed: self.printed.most_of(judge.names()),
            is_recorded: axis == Axis::Epochs && records_metrics(&self.folder),
        }
    }

    /// States count as logs of epochs do: what the script prints of the same is finer.
    fn look_at_state(&mut self, found: &MetricFile, is_last: bool) -> io::Result<Option<String>> {
        let Some(entries) = read_state(&text_of(&found.path, STATE_BYTES_MAX)?) else {
            return Ok(Some("its `log_history` cannot be read".to_owned()));
        };
        let history = self.histories.entry(found.folder_of_values(&self.root)).or_default();
        let mut judge = Judge::new(true);
        history.new_of(&entries).iter().for_each(|point| judge.take(point.clone()));
        judge.end_look();
        let facts = self.facts(&judge, Axis::Epochs, is_last);
        match judge.verdict(facts) {
            Verdict::Read => {}
            // What one state of a training shows holds for the next one.
            Verdict::Wait if self.record.has_values_of(found) => {}
            Verdict::Wait => return Ok(None),
            Verdict::Not(why) => return Ok(Some(why.to_owned())),
        }
        let folder = found.folder_of_values(&self.root);
        if let Some(history) = self.histories.get_mut(&folder) {
            history.take(&entries);
        }
        let known = self.last_entries.get(&folder).map(|(_, last)| last.step);
        if let Some(last) = entries.last().filter(|last| known.is_none_or(|step| last.step >= step)) {
            self.last_entries.insert(folder, (found.clone(), last.clone()));
        }
        judge.into_rows().into_iter().for_each(|point| self.record.write(found, point));
        Ok(None)
    }

    fn look_at_settings(&mut self, found: &MetricFile) -> io::Result<Option<String>> {
        let text = text_of(&found.path, SETTINGS_BYTES_MAX)?;
        let Settings { named, left_out } = match found.form {
            Form::Overrides => read_overrides(&text),
            _ => read_settings(&text),
        };
        named.iter().for_each(|(name, value)| self.record.write_setting(found, name, value));
        Ok((left_out > 0).then(|| format!("{left_out} lines or settings of it are left out")))
    }

    /// Records what was printed behind the last entry of a state, such as an evaluation after the last save. Of several
    /// trainings it is not known whose it is.
    fn write_printed_behind(&mut self) {
        let states = std::mem::take(&mut self.last_entries);
        if let [(found, last)] = &states.into_values().collect::<Vec<_>>()[..] {
            let behind = printed_behind(last, &self.printed.last_records());
            behind.into_iter().for_each(|point| self.record.write(found, point));
        }
    }

    /// Names what was read and what is left out, and ends the record in order. How many values were found.
    fn end(&mut self) -> u64 {
        self.write_printed_behind();
        let mut unknown = Vec::new();
        for (path, followed) in std::mem::take(&mut self.files) {
            let Followed { found, own, content, why, .. } = followed;
            let is_place = !found.form.is_log() || is_place_of_logs(&found.way, &found.name());
            if let Some(why) = own.reason().filter(|_| is_place) {
                unknown.push((path.clone(), why.to_owned()));
            }
            if let Some(why) = why {
                self.record.below.skip(&path, &why, &[]);
            }
            if let Content::Log(log) = content
                && log.judge.is_none()
            {
                let left_out = log.growing.left_out(log.replay.beyond());
                left_out.iter().for_each(|why| self.record.below.skip(&path, why, &[]));
            }
        }
        for (path, why) in unknown.iter().take(NAMED_MAX) {
            self.record.below.skip(path, &format!("it is not read: {why}"), &[]);
        }
        let more = unknown.len().saturating_sub(NAMED_MAX);
        if more > 0 {
            let why = format!(
                "{more} more files of metrics are not read: nothing shows that this attempt wrote them"
            );
            self.record.below.skip(&self.root, &why, &[]);
        }
        self.record.finish();
        self.record.below.finish("files that may have metrics", self.beyond, self.is_cut)
    }
}
