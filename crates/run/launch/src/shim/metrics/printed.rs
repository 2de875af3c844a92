//! The flight record of a script that writes none: metrics and settings that it prints, in segments with origin `stdout`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use trackway_core::{MetricStep, Step, Timestamp};
use trackway_formats::metric_files::{EPOCH, Point};
use trackway_formats::printed::{
    LeftOut, LeftOutKind, Printed, PrintedFound, PrintedMetrics, PrintedReader, PrintedRun,
};
use trackway_formats::record::{Frame, Item, SEGMENT_EXTENSION, SegmentReader};
use trackway_recorder::{Origin, SegmentWriter};
use trackway_redact::Redactor;

use super::course::KeptCourse;
use crate::shim::checkpoints::adopting::ReachedSteps;
use crate::shim::side::Records;

/// So many times, at each of the first outputs, it checks whether the script writes a record itself: most record a
/// value right before they print it.
const LOOKS_AT_FIRST: u32 = 64;
/// How often it is looked from then on.
const LOOK_EVERY_MICROS: i64 = 1_000_000;
/// So much of a segment is looked at: a metric is named right before its first value.
const LOOK_BYTES_MAX: u64 = 64 * 1024;
/// So many names are remembered with whether they are suspicious; then all are looked at again.
const KNOWN_NAMES_MAX: usize = 4096;
/// So many of the last records that name an epoch are remembered.
const LAST_RECORDS_MAX: usize = 64;
/// So many values of the same names are written at once.
const TOGETHER_MAX: usize = 8192;
/// Names of values that the recorder measures by itself begin so.
const OWN_NAMES: &str = "trackway/";

/// How many values of each name were printed, and the last records with an epoch, as another thread sees it.
#[derive(Debug, Clone, Default)]
pub(in crate::shim) struct PrintedCounts(Arc<Mutex<PrintedSoFar>>);

/// What was printed so far.
#[derive(Debug, Default)]
pub(super) struct PrintedSoFar {
    /// Where the count of each name is.
    places: HashMap<String, usize>,
    counts: Vec<PrintedCount>,
    last_records: VecDeque<Point>,
}

/// How many values of one name were printed.
#[derive(Debug, Clone, Copy)]
struct PrintedCount {
    values: u64,
    /// Values that are another one than the value before.
    changes: u64,
    last: u64,
}

impl PrintedCounts {
    /// Of these names the count of the one that was printed most often.
    pub fn most_of<'n>(&self, names: impl Iterator<Item = &'n str>) -> u64 {
        let so_far = self.lock();
        names.filter_map(|name| so_far.count(name)).map(|count| count.values).max().unwrap_or(0)
    }

    /// How many values of this name were printed that are another one than the value before.
    pub fn changes_of(&self, name: &str) -> u64 {
        self.lock().count(name).map_or(0, |count| count.changes)
    }

    /// The last records that named an epoch, in order.
    pub fn last_records(&self) -> Vec<Point> {
        self.lock().last_records.iter().cloned().collect()
    }

    /// These values were printed together.
    #[cfg(test)]
    pub fn add_record(&self, step: u64, values: &[(&str, f64)]) {
        let mut so_far = self.lock();
        let places: Vec<_> = values.iter().map(|(name, _)| so_far.place_of(name)).collect();
        so_far.add(values, &places);
        if is_record(values) {
            so_far.add_record(step as MetricStep, values);
        }
    }

    /// Others wait for what is done with it: no longer than a piece of output is read.
    fn lock(&self) -> MutexGuard<'_, PrintedSoFar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrintedSoFar {
    /// Where the values of a name are counted; nothing if there are too many names.
    fn place_of(&mut self, name: &str) -> Option<usize> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        let place = self.counts.len();
        if place >= KNOWN_NAMES_MAX {
            return None;
        }
        self.places.insert(name.to_owned(), place);
        self.counts.push(PrintedCount { values: 0, changes: 0, last: 0 });
        Some(place)
    }

    /// These values were printed; each is counted at its place.
    fn add(&mut self, values: &[(impl AsRef<str>, f64)], places: &[Option<usize>]) {
        for ((_, value), place) in values.iter().zip(places) {
            let Some(count) = place.and_then(|place| self.counts.get_mut(place)) else { continue };
            let last = value.to_bits();
            count.changes += u64::from(count.values == 0 || count.last != last);
            count.values += 1;
            count.last = last;
        }
    }

    /// Values of the same names were printed, again and again; each name is counted at its place.
    fn add_run(&mut self, values: &[f64], places: &[Option<usize>]) {
        for (at, place) in places.iter().enumerate() {
            let Some(count) = place.and_then(|place| self.counts.get_mut(place)) else { continue };
            let mut last = if count.values == 0 { None } else { Some(count.last) };
            let (mut number, mut changes) = (0, 0);
            for value in values.iter().skip(at).step_by(places.len()) {
                let bits = Some(value.to_bits());
                changes += u64::from(last != bits);
                number += 1;
                last = bits;
            }
            count.values += number;
            count.changes += changes;
            count.last = last.unwrap_or(0);
        }
    }

    /// These values were printed together, and the epoch is one of them.
    fn add_record(&mut self, step: MetricStep, values: &[(impl AsRef<str>, f64)]) {
        let is_full = self.last_records.len() >= LAST_RECORDS_MAX;
        let oldest = if is_full { self.last_records.pop_front() } else { None };
        // Most records have the names of those before.
        let known = oldest.map(|oldest| oldest.values).unwrap_or_default();
        let are_known = known.len() == values.len()
            && known.iter().zip(values).all(|((known, _), (name, _))| name.as_ref() == known);
        let values = match are_known {
            true => known.into_iter().zip(values).map(|((name, _), (_, value))| (name, *value)).collect(),
            false => values.iter().map(|(name, value)| (name.as_ref().to_owned(), *value)).collect(),
        };
        self.last_records.push_back(Point { step, values });
    }

    fn count(&self, name: &str) -> Option<PrintedCount> {
        let place = self.places.get(name).or_else(|| self.places.get(&name.to_lowercase()))?;
        self.counts.get(*place).copied()
    }
}

/// What was found in what the script printed.
#[derive(Debug, Default)]
pub(in crate::shim) struct FoundMetrics {
    /// How many values were recorded.
    pub values: u64,
    /// What was not.
    pub left_out: Vec<LeftOut>,
}

/// Reads metrics and settings from both outputs and appends them to segments, the first of which begins with the first
/// of them.
pub(in crate::shim) struct OutputMetrics {
    reader: PrintedReader,
    taker: Taker,
    printed: PrintedCounts,
    kept: KeptCourse,
    /// When to check again; `None` once the script is known to record metrics.
    look_at: Option<i64>,
    looks: u32,
}

/// Takes what was read.
struct Taker {
    redactor: Arc<Redactor>,
    names: KnownNames,
    /// What is written together.
    together: Series,
    steps: ReachedSteps,
    records: Records,
    writer: Option<SegmentWriter>,
    /// The steps of the piece that is being read, in order.
    reached: Vec<Step>,
    values: u64,
    secret_values: u64,
}

/// Values of the same names, at one step after the other, that were read and not written.
#[derive(Default)]
struct Series {
    number: Option<u32>,
    names: Vec<String>,
    steps: Vec<Step>,
    values: Vec<f64>,
}

/// What is known of names.
#[derive(Default)]
struct KnownNames {
    /// Of each name whether its values may be secret by it.
    suspicious: HashMap<String, bool>,
    /// By the number of names that are together.
    together: HashMap<u32, Together>,
}

/// Names that are printed together.
#[derive(Clone, Default)]
struct Together {
    /// The values of one may be secret by its name.
    has_suspicious: bool,
    /// They are more than one, and the epoch is one of them.
    is_record: bool,
    /// One is there twice: the values of its count come in turns.
    has_twice: bool,
    /// Where each is counted.
    places: Vec<Option<usize>>,
}

impl OutputMetrics {
    /// Nothing is written before the first metric.
    pub fn new(
        (steps, printed): (ReachedSteps, PrintedCounts),
        kept: KeptCourse,
        records: Records,
        redactor: Arc<Redactor>,
    ) -> Self {
        let mut reader = PrintedReader::default();
        reader.count_on(kept.course());
        let taker = Taker {
            redactor,
            names: KnownNames::default(),
            together: Series::default(),
            steps,
            records,
            writer: None,
            reached: Vec::new(),
            values: 0,
            secret_values: 0,
        };
        Self { reader, taker, printed, kept, look_at: Some(i64::MIN), looks: 0 }
    }

    /// Takes what the script printed, at this time or later.
    pub fn push(&mut self, output: Printed, printed: &[u8], at: Timestamp) {
        self.look_for_recorder();
        self.read(at, |reader, found| reader.push_runs(output, printed, found));
        self.kept.keep(self.reader.course(), self.taker.records.clock.monotonic_micros());
    }

    /// Ends the segment in order.
    pub fn finish(mut self) -> FoundMetrics {
        self.read(self.taker.records.clock.now(), |reader, found| {
            reader.finish(|metrics| found(PrintedFound::One(metrics)));
        });
        self.kept.keep(self.reader.course(), i64::MAX);
        if let Some(writer) = &mut self.taker.writer {
            writer.finish();
        }
        FoundMetrics { values: self.taker.values, left_out: self.left_out() }
    }

    fn read(
        &mut self,
        at: Timestamp,
        read: impl FnOnce(&mut PrintedReader, &mut dyn FnMut(PrintedFound<'_>)),
    ) {
        let Self { reader, taker, printed, .. } = self;
        if let Some(writer) = &mut taker.writer {
            writer.hold();
        }
        {
            let mut counts = printed.lock();
            read(reader, &mut |found| match found {
                PrintedFound::One(metrics) => taker.take(metrics, at, &mut counts),
                PrintedFound::Run(run) => taker.take_run(run, at, &mut counts),
            });
        }
        taker.write_together(at);
        taker.take_settings(reader.take_settings());
        taker.end_piece(at);
    }

    fn left_out(&self) -> Vec<LeftOut> {
        let dropped = self.taker.writer.as_ref().map_or(0, SegmentWriter::unnamed_drops);
        let counts =
            [(LeftOutKind::SecretValues, self.taker.secret_values), (LeftOutKind::DroppedFrames, dropped)];
        let left_out = |(kind, count)| LeftOut { kind, output: None, count, line: None };
        let of_taker = counts.into_iter().filter(|(_, count)| *count > 0).map(left_out);
        self.reader.left_out().into_iter().chain(of_taker).collect()
    }

    /// A script that records metrics prints them as well, rounded and for people: only objects count from then on.
    fn look_for_recorder(&mut self) {
        let now = self.taker.records.clock.monotonic_micros();
        let is_time = |at| now >= at || self.looks < LOOKS_AT_FIRST;
        if !self.look_at.is_some_and(is_time) {
            return;
        }
        self.looks += 1;
        self.look_at = Some(now + LOOK_EVERY_MICROS);
        if records_metrics(&self.taker.records.folder) {
            self.look_at = None;
            self.reader.read_only_json();
        }
    }
}

impl Taker {
    /// Values of many lines of one form. Where one may be a secret, or a name is there twice, each line is looked at.
    fn take_run(&mut self, run: PrintedRun<'_>, at: Timestamp, counts: &mut PrintedSoFar) {
        let known = self.names.together.get(&run.number);
        let is_plain = |known: &&Together| {
            !known.has_suspicious && !known.has_twice && !self.redactor.has_secret_number(run.values)
        };
        let Some(known) = known.filter(is_plain) else {
            return run.each(|metrics| self.take(metrics, at, counts));
        };
        counts.add_run(run.values, &known.places);
        if known.is_record {
            let first = run.steps.len().saturating_sub(LAST_RECORDS_MAX);
            let values = run.values.chunks_exact(run.names.len().max(1));
            for (step, values) in run.steps.iter().zip(values).skip(first) {
                let values: Vec<(&String, f64)> = run.names.iter().zip(values.iter().copied()).collect();
                counts.add_record((*step).try_into().unwrap_or(MetricStep::MAX), &values);
            }
        }
        if self.together.number != Some(run.number) {
            self.write_together(at);
            self.together.number = Some(run.number);
            run.names.clone_into(&mut self.together.names);
        }
        self.values += run.values.len() as u64;
        self.reached.extend_from_slice(run.steps);
        self.together.steps.extend_from_slice(run.steps);
        self.together.values.extend_from_slice(run.values);
        self.write_full(at);
    }

    /// Values of one step. What comes often has a number for its names, of which all is known.
    fn take(&mut self, metrics: &PrintedMetrics, at: Timestamp, counts: &mut PrintedSoFar) {
        let known = metrics.names.and_then(|number| self.names.together.get(&number));
        let looked;
        let together = match known {
            Some(known) => known,
            None => {
                looked = self.names.look_at(metrics, &self.redactor, counts);
                &looked
            }
        };
        let is_secret = |(name, value): &(String, f64)| is_secret(&self.redactor, name, *value);
        let (step, values) = (metrics.step, &metrics.values);
        let has_secret =
            together.has_suspicious || values.iter().any(|(_, value)| self.redactor.is_number_secret(*value));
        if !has_secret {
            counts.add(values, &together.places);
            if together.is_record {
                counts.add_record(step, values);
            }
            return self.write(at, metrics, values);
        }
        let is_public: Vec<bool> = values.iter().map(|value| !is_secret(value)).collect();
        let public = || is_public.iter().enumerate().filter(|(_, is_public)| **is_public).map(|(at, _)| at);
        let places: Vec<_> = public().map(|at| together.places[at]).collect();
        let public: Vec<(&str, f64)> = public().map(|at| (&*values[at].0, values[at].1)).collect();
        self.secret_values += (values.len() - public.len()) as u64;
        if !public.is_empty() {
            counts.add(&public, &places);
            if is_record(&public) {
                counts.add_record(step, &public);
            }
            self.write(at, metrics, &public);
        }
    }

    /// Those of the values that may be written. All values of names that have a number are written with others of the same.
    fn write(&mut self, at: Timestamp, metrics: &PrintedMetrics, values: &[(impl AsRef<str>, f64)]) {
        self.values += values.len() as u64;
        let Ok(step) = Step::try_from(metrics.step) else {
            let values: Vec<(&str, f64)> =
                values.iter().map(|(name, value)| (name.as_ref(), *value)).collect();
            self.write_together(at);
            return self.writer().metrics_at_any_step(at, metrics.step, &values);
        };
        self.reached.extend(Some(step).filter(|_| !metrics.counts_apart));
        let number = metrics.names.filter(|_| values.len() == metrics.values.len());
        if number.is_none() || number != self.together.number {
            self.write_together(at);
            self.together.number = number;
            self.together.names.clear();
            if number.is_none() {
                return self.writer().metrics_at(at, step, values);
            }
            self.together.names.extend(values.iter().map(|(name, _)| name.as_ref().to_owned()));
        }
        self.together.steps.push(step);
        self.together.values.extend(values.iter().map(|(_, value)| *value));
        self.write_full(at);
    }

    /// Writes what is together once it is much.
    fn write_full(&mut self, at: Timestamp) {
        if self.together.values.len() >= TOGETHER_MAX {
            self.write_together(at);
        }
    }

    /// Writes what is together.
    fn write_together(&mut self, at: Timestamp) {
        if self.together.steps.is_empty() {
            return;
        }
        let mut together = std::mem::take(&mut self.together);
        self.writer().series_at(at, &together.names, &together.steps, &together.values);
        together.steps.clear();
        together.values.clear();
        self.together = together;
    }

    fn take_settings(&mut self, settings: Vec<(String, String)>) {
        for (name, value) in settings {
            self.writer().param(&name, &value);
        }
    }

    /// What was read of a piece of output is written.
    fn end_piece(&mut self, at: Timestamp) {
        self.steps.all_reached(at, &self.reached);
        self.reached.clear();
        if let Some(writer) = &mut self.writer {
            writer.write_held();
        }
    }

    fn writer(&mut self) -> &mut SegmentWriter {
        self.writer.get_or_insert_with(|| {
            let mut writer = self.records.writer(Origin::Stdout);
            writer.hold();
            writer
        })
    }
}

impl KnownNames {
    /// Looks at names, and remembers them if they have a number.
    fn look_at(
        &mut self,
        metrics: &PrintedMetrics,
        redactor: &Redactor,
        counts: &mut PrintedSoFar,
    ) -> Together {
        let names = || metrics.values.iter().map(|(name, _)| &**name);
        let suspicious = names().map(|name| self.is_suspicious(name, redactor));
        let has_suspicious = suspicious.fold(false, |any, one| any | one);
        let places: Vec<Option<usize>> = names().map(|name| counts.place_of(name)).collect();
        let is_again = |at: usize| places[at].is_some() && places[..at].contains(&places[at]);
        let has_twice = metrics.names.is_some() && (1..places.len()).any(is_again);
        let together = Together { has_suspicious, is_record: is_record(&metrics.values), has_twice, places };
        if let Some(number) = metrics.names {
            if self.together.len() >= KNOWN_NAMES_MAX {
                self.together.clear();
            }
            self.together.insert(number, together.clone());
        }
        together
    }

    fn is_suspicious(&mut self, name: &str, redactor: &Redactor) -> bool {
        if let Some(known) = self.suspicious.get(name) {
            return *known;
        }
        if self.suspicious.len() >= KNOWN_NAMES_MAX {
            self.suspicious.clear();
        }
        let is_suspicious = redactor.is_name_suspicious(name);
        self.suspicious.insert(name.to_owned(), is_suspicious);
        is_suspicious
    }
}

/// Whether values are a record with the epoch that it is of.
fn is_record(values: &[(impl AsRef<str>, f64)]) -> bool {
    values.len() > 1 && values.iter().any(|(name, _)| name.as_ref() == EPOCH)
}

/// A line was read before redaction: what it prints beside a metric may be `password=12345678`.
fn is_secret(redactor: &Redactor, name: &str, value: f64) -> bool {
    if !redactor.is_name_suspicious(name) {
        return redactor.is_number_secret(value);
    }
    let text = value.to_string();
    redactor.text(name) != name || redactor.value(name, &text) != text
}

/// Whether a recorder in the training process has named a metric.
pub(super) fn records_metrics(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .filter(|path| path.extension().is_some_and(|extension| extension == SEGMENT_EXTENSION))
        .any(|path| names_metrics(&path).unwrap_or(false))
}

fn names_metrics(segment: &Path) -> std::io::Result<bool> {
    let mut bytes = Vec::new();
    File::open(segment)?.take(LOOK_BYTES_MAX).read_to_end(&mut bytes)?;
    let mut reader = SegmentReader::new();
    reader.push(&bytes);
    let mut by_recorder = false;
    while let Ok(Some(item)) = reader.next_item() {
        let Item::Frame(located) = item else { continue };
        match located.frame {
            Frame::Header(header) => by_recorder = header.origin == Origin::Sdk,
            Frame::NameDefinition(name) if by_recorder && !name.name.starts_with(OWN_NAMES) => {
                return Ok(true);
            }
            _ => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use trackway_core::ManualClock;
    use trackway_formats::record::read_segment;

    use super::*;

    /// The points by name and bit for bit, how many values were taken and left out, how often the loss was printed and changed, and the
    /// last records.
    type Recorded = (Vec<(MetricStep, String, u64)>, u64, u64, [u64; 2], Vec<Point>);

    /// What is recorded of these pieces of output.
    fn recorded(pieces: &[&str]) -> Recorded {
        let folder = tempfile::tempdir().unwrap();
        let records = Records {
            folder: folder.path().join("record"),
            run_id: "run".into(),
            attempt_id: "attempt".into(),
            clock: Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000))),
        };
        let kept = KeptCourse::read(folder.path().join("kept.json"), Path::new("c/train-100%"));
        let redactor = Arc::new(Redactor::from_environment([("API_TOKEN", "48151623")]));
        let counts = PrintedCounts::default();
        let mut metrics =
            OutputMetrics::new((ReachedSteps::default(), counts.clone()), kept, records.clone(), redactor);
        for piece in pieces {
            metrics.push(Printed::Stdout, piece.as_bytes(), Timestamp::from_micros(2_000_000));
        }
        let found = metrics.finish();
        let secret = found.left_out.iter().map(|left_out| left_out.count).sum();
        let mut points = Vec::new();
        for entry in std::fs::read_dir(&records.folder).unwrap() {
            let segment = read_segment(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
            let these = segment.metric_points_of_any_step();
            points.extend(
                these.map(|point| (point.step, point.name.clone().into_owned(), point.value.to_bits())),
            );
        }
        let of_loss = [counts.most_of(["loss"].into_iter()), counts.changes_of("loss")];
        (points, found.values, secret, of_loss, counts.last_records())
    }

    /// Proves that a value at a printed step below 0 is recorded at that step, in its place among the others.
    #[test]
    fn steps_below_zero_are_recorded() {
        let (points, values, ..) = recorded(&["step -1 loss 0.5\nstep 0 loss 0.25\nstep 1 loss 0.125\n"]);
        let steps: Vec<MetricStep> = points.iter().map(|(step, ..)| *step).collect();
        assert_eq!((steps, values), (vec![-1, 0, 1], 3));
    }

    /// Proves that lines which are read many at once are recorded and counted as those that come one by one, also where each has two values
    /// of one name, and that a secret number among them is not recorded.
    #[test]
    fn lines_at_once_are_recorded_as_each() {
        let steps = (100..400).map(|step| match step {
            250 => "step 250 loss 48151623\n".to_owned(),
            _ => format!("step {step} loss {}\n", 10_000_000 + step / 2),
        });
        let records = (100..300).map(|at| format!("{{'loss': 0.{at}, 'epoch': 1.{at}}}\n"));
        let twice = (100..300).map(|step| format!("step {step} loss 0.5 loss 0.{step}\n"));
        let texts = [(steps.collect::<String>(), 1), (records.collect(), 0), (twice.collect(), 0)];
        for (text, secret) in texts {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let (at_once, each) = (recorded(&[&text]), recorded(&lines));
            assert_eq!(at_once, each);
            assert_eq!((at_once.2, at_once.1 + secret), (secret, at_once.0.len() as u64 + secret));
            assert!(at_once.0.len() > 290 && at_once.3[0] > 190, "{}", at_once.0.len());
            assert!(at_once.0.iter().all(|(.., bits)| *bits != 48_151_623_f64.to_bits()));
        }
    }
}
