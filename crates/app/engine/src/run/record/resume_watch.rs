//! What a resume really did, as its first steps show it: hours before the end, when the seal says it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use trackway_core::{Step, Timestamp};
use trackway_formats::layout::AttemptLayout;
use trackway_formats::printed::{Printed, PrintedCourse, PrintedReader};
use trackway_formats::runfile::OnWrongResume;
use trackway_ledger::AttemptRow;

use super::earlier::EarlierAttempts;
use super::live_record::{CheckpointRead, RecordFacts};

/// What is read comes into the record a little after it was, on a busy machine after the first step.
pub const LATE_SECONDS: f64 = 2.0;
/// A script that prints every tenth step, and was one printed step further than is known of its checkpoint, begins so
/// many distances after that.
const DISTANCES: u64 = 2;
/// The first steps that show how a script begins.
const FIRST_STEPS: usize = 3;
/// So many steps, and so many seconds of them, show that a script which read its checkpoint began again: before, it may
/// print something else.
const PATIENT_STEPS: usize = 5;
const PATIENT_SECONDS: f64 = 5.0;
/// Steps that come so many times faster than those after the checkpoint are printed from a history.
const AT_ONCE: f64 = 10.0;
/// So much of a log is searched for counts and for the forms of its lines.
const LOG_BYTES_MAX: u64 = 64 << 10;
/// The last attempts whose logs are searched for the forms of lines.
const ATTEMPTS_MAX: usize = 4;
/// Values that are written as words.
const NOT_FINITE: [&str; 3] = ["nan", "inf", "infinity"];

/// A step and when it was made.
pub type StepTime = (Step, Timestamp);

/// What the attempts before show of the steps of the training.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EarlierSteps {
    /// The step with which the first of them began.
    pub first: Option<Step>,
    /// The last step of all of them.
    pub reached: Option<Step>,
    /// Printed steps fell back to the first one, and no epoch says why: a first step may be that of a later epoch.
    pub falls_back: bool,
    /// The distance of two steps may be another number than that of the checkpoints: epochs were counted, or batches are skipped.
    pub is_inexact: bool,
}

impl EarlierSteps {
    /// `earlier`: what the attempts before the row show.
    pub fn of(earlier: &EarlierAttempts, row: &AttemptRow, course: &PrintedCourse) -> Self {
        Self {
            first: earlier.first_step,
            reached: earlier.last_step,
            falls_back: course.falls_back(),
            is_inexact: course.falls_back() || course.begins_again() || row.skip_batches.is_some(),
        }
    }
}

/// The logs of the attempts, for the totals that are printed beside steps, `step 1/59`, and for the forms of the lines that have them.
#[derive(Debug, Clone, Default)]
pub struct Logs {
    own: PathBuf,
    earlier: Vec<PathBuf>,
    /// The forms of the lines of the training, once they were looked for.
    forms: OnceLock<BTreeSet<String>>,
}

impl Logs {
    /// `earlier`: what the attempts before the row show.
    pub fn of(earlier: &EarlierAttempts, row: &AttemptRow) -> Self {
        let earlier = earlier.logs().cloned().collect();
        Self { own: PathBuf::from(&row.log_directory), earlier, forms: OnceLock::new() }
    }

    /// What the totals that are printed beside the steps are of.
    fn totals_are(&self, planned: Step, steps: &[StepTime]) -> Total {
        let highest = steps.iter().map(|(step, _)| *step).max().unwrap_or(0);
        let earlier: BTreeSet<u64> = self.earlier.iter().flat_map(|folder| printed_totals(folder)).collect();
        total_of(&printed_totals(&self.own), &earlier, planned, highest)
    }

    /// Whether the attempt counts from `first` to the total to which an attempt before had counted up to the step `of`.
    fn count_again(&self, first: Step, of: Step) -> bool {
        let own = outputs(&self.own).map(|log| counts_in(&beginning_of(&log))).concat();
        let last = self.earlier.iter().rev().take(ATTEMPTS_MAX);
        last.flat_map(|folder| outputs(folder))
            .any(|log| counts_again(&own, &counts_in(&end_of(&log)), first, of))
    }

    /// The steps that are not only those of lines of another form than the attempts before printed when they reached
    /// the step `of`. Without such lines all of them.
    fn of_training(&self, made: &[StepTime], of: Step) -> Vec<StepTime> {
        let forms = self.forms.get_or_init(|| {
            let last = self.earlier.iter().rev().take(ATTEMPTS_MAX);
            last.flat_map(|folder| outputs(folder)).flat_map(|log| forms_from(&end_of(&log), of)).collect()
        });
        if forms.is_empty() {
            return made.to_vec();
        }
        let lines: Vec<Line> =
            outputs(&self.own).iter().flat_map(|log| lines_in(&beginning_of(log))).collect();
        let others = steps_of_other_forms(&lines, forms);
        made.iter().copied().filter(|(step, _)| !others.contains(step)).collect()
    }
}

/// The steps of the training among those that were made: an evaluation that counts its own batches prints another line for them.
pub fn of_training(made: &[StepTime], of: Step, (before, logs): (EarlierSteps, &Logs)) -> Vec<StepTime> {
    // Where steps begin again in each epoch, the log alone does not say which they are.
    if before.is_inexact || made.is_empty() { made.to_vec() } else { logs.of_training(made, of) }
}

/// The form of a printed line that gives values, and the step of these.
type Line = (String, Step);

/// The forms of those lines that are at the step `of` or after it.
fn forms_from(text: &str, of: Step) -> BTreeSet<String> {
    lines_in(text).into_iter().filter(|(_, step)| *step >= of).map(|(form, _)| form).collect()
}

/// The steps that have lines, and none of these forms.
fn steps_of_other_forms(lines: &[Line], forms: &BTreeSet<String>) -> BTreeSet<Step> {
    let (known, other): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|(form, _)| forms.contains(form));
    let known: BTreeSet<Step> = known.into_iter().map(|(_, step)| *step).collect();
    other.into_iter().map(|(_, step)| *step).filter(|step| !known.contains(step)).collect()
}

fn lines_in(text: &str) -> Vec<Line> {
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    for line in text.split_inclusive('\n') {
        let mut steps = Vec::new();
        reader.push(Printed::Stdout, line.as_bytes(), |metrics| {
            steps.extend(Step::try_from(metrics.step).ok())
        });
        if !steps.is_empty() {
            let form = form_of(line);
            found.extend(steps.into_iter().map(|step| (form.clone(), step)));
        }
    }
    found
}

/// A line without its numbers: `[eval] step # loss #`.
fn form_of(line: &str) -> String {
    let mut form = String::new();
    let mut rest = line.trim();
    while let Some(letter) = rest.chars().next() {
        let is_sign = matches!(letter, '+' | '-')
            && !form.ends_with(|last: char| last.is_alphanumeric() || last == '#');
        let (end, shown) = if letter.is_ascii_digit() {
            (end_of_number(rest), "#")
        } else if letter.is_alphabetic() {
            let end = rest.find(|letter: char| !letter.is_alphabetic()).unwrap_or(rest.len());
            let is_value = NOT_FINITE.iter().any(|word| rest[..end].eq_ignore_ascii_case(word));
            (end, if is_value { "#" } else { &rest[..end] })
        } else if letter.is_whitespace() {
            (rest.len() - rest.trim_start().len(), " ")
        } else {
            let end = letter.len_utf8();
            (end, if is_sign { "" } else { &rest[..end] })
        };
        form.push_str(shown);
        rest = &rest[end..];
    }
    form
}

/// A number with its decimals, its power and its unit; of a time all of its parts.
fn end_of_number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_power = |at: usize| matches!(bytes[at], b'+' | b'-') && matches!(bytes[at - 1], b'e' | b'E');
    let belongs = |at: usize| bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'.' | b':' | b'%');
    (1..bytes.len()).find(|at| !belongs(*at) && !is_power(*at)).unwrap_or(bytes.len())
}

/// The logs of both outputs of an attempt.
fn outputs(folder: &Path) -> [PathBuf; 2] {
    let files = AttemptLayout::new(folder);
    [files.stdout_log(), files.stderr_log()]
}

/// What a printed total is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Total {
    /// The whole training, or there is none.
    Training,
    /// An epoch, by the step of the checkpoint at the end of one.
    Epoch,
    /// The steps that were left.
    Rest,
}

fn total_of(own: &BTreeSet<u64>, earlier: &BTreeSet<u64>, planned: Step, highest: Step) -> Total {
    let totals = || own.iter().filter(|total| **total >= highest);
    if totals().any(|total| earlier.contains(&total.saturating_add(planned))) {
        return Total::Rest;
    }
    if totals().any(|total| planned.is_multiple_of(*total)) { Total::Epoch } else { Total::Training }
}

/// The totals at the beginning of what an attempt printed.
fn printed_totals(folder: &Path) -> BTreeSet<u64> {
    totals_in(&beginning_of(&AttemptLayout::new(folder).stdout_log()))
}

/// The beginning of a log; nothing of one that cannot be read.
fn beginning_of(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(log) = File::open(path) {
        let _ = log.take(LOG_BYTES_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The end of a log; nothing of one that cannot be read.
fn end_of(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut log = File::open(path)?;
        let begin = log.metadata()?.len().saturating_sub(LOG_BYTES_MAX);
        log.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        log.take(LOG_BYTES_MAX).read_to_end(&mut bytes).map(|_| bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

fn totals_in(text: &str) -> BTreeSet<u64> {
    counts_by(text, "/").map(|count| count.total).collect()
}

/// A printed count, `Epoch 3/30`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Count {
    word: String,
    done: u64,
    total: u64,
}

/// Those with a sign or a word between their numbers: `Epoch 3/30`, `Epoch 3 of 30`.
fn counts_in(text: &str) -> Vec<Count> {
    let lines = text.split(['\n', '\r']);
    lines.flat_map(|line| counts_by(line, "/").chain(counts_by(line, " of "))).collect()
}

fn counts_by<'t>(text: &'t str, between: &'static str) -> impl Iterator<Item = Count> + 't {
    let is_digit = |letter: char| letter.is_ascii_digit();
    text.match_indices(between).filter_map(move |(at, _)| {
        let (before, after) = (text[..at].trim_end(), text[at + between.len()..].trim_start());
        let name = before.trim_end_matches(is_digit);
        let done: u64 = before[name.len()..].parse().ok()?;
        let total: u64 = after[..after.len() - after.trim_start_matches(is_digit).len()].parse().ok()?;
        let name = name.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        let word = name[name.trim_end_matches(char::is_alphabetic).len()..].to_owned();
        (total > 1 && done <= total).then_some(Count { word, done, total })
    })
}

/// Whether counts of one word and total begin with the step `first` and rise one by one, where those before reached the
/// step `of` and not the total.
fn counts_again(own: &[Count], earlier: &[Count], first: Step, of: Step) -> bool {
    own.iter().filter(|count| count.total > of).any(|count| {
        let is_alike = |other: &&Count| (&other.word, other.total) == (&count.word, count.total);
        let mut counted: Vec<u64> = own.iter().filter(is_alike).map(|count| count.done).collect();
        counted.dedup();
        let rises = counted.windows(2).all(|two| two[0].checked_add(1) == Some(two[1]));
        let reached = earlier.iter().filter(is_alike).map(|count| count.done).max();
        let is_again = counted.len() >= FIRST_STEPS && counted[0] == first && rises;
        is_again && reached.is_some_and(|reached| reached.abs_diff(of) <= 1)
    })
}

/// What is waited for after a launch that is to continue from a checkpoint.
#[derive(Debug, Clone)]
pub struct ResumeWatch {
    /// The step that it is to continue from.
    planned: Step,
    before: EarlierSteps,
    logs: Logs,
    /// What follows where it does not.
    policy: OnWrongResume,
    is_settled: bool,
}

/// Whether the attempt read the checkpoint that it was to continue from, before its first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadOutcome {
    /// It did.
    Planned,
    /// Something read it, or another one.
    Unclear,
    /// It was not seen to be read.
    NotSeen,
}

impl ReadOutcome {
    fn of(reads: &[CheckpointRead], planned: Step, first_at: Timestamp) -> Self {
        let in_time = |read: &&CheckpointRead| read.at.seconds_since(first_at) <= LATE_SECONDS;
        let (own, unclear): (Vec<&CheckpointRead>, Vec<&CheckpointRead>) =
            reads.iter().filter(in_time).partition(|read| read.by_attempt);
        // The same save may have another name, such as Lightning's `last.ckpt`.
        if own.iter().any(|read| read.planned || read.step == Some(planned)) {
            return Self::Planned;
        }
        if own.is_empty() && !unclear.is_empty() { Self::Unclear } else { Self::NotSeen }
    }
}

impl ResumeWatch {
    /// `planned`: the step of the checkpoint; `None`: there is nothing to wait for.
    pub fn of(
        planned: Option<Step>,
        before: EarlierSteps,
        logs: Logs,
        policy: OnWrongResume,
    ) -> Option<Self> {
        planned.map(|planned| Self { planned, before, logs, policy, is_settled: false })
    }

    /// Whether the attempt is to be ended where it did not continue.
    pub fn stops(&self) -> bool {
        self.policy == OnWrongResume::Stop
    }

    /// What to say, once: the script did not continue from its checkpoint.
    pub fn take(&mut self, facts: &RecordFacts, now: Timestamp) -> Option<String> {
        let counts_again = facts.reads.iter().any(|read| read.planned && read.counts_again);
        if self.is_settled || facts.resumed || counts_again {
            return None;
        }
        let made = of_training(&facts.first_steps, self.planned, (self.before, &self.logs));
        let made = made.as_slice();
        let (_, first_at) = *made.first()?;
        if now.seconds_since(first_at) < LATE_SECONDS {
            return None;
        }
        let (text, is_settled) = match ReadOutcome::of(&facts.reads, self.planned, first_at) {
            ReadOutcome::NotSeen => {
                let steps = first_of(made);
                (self.unread(&steps), steps.len() == FIRST_STEPS)
            }
            read if is_patient(made) => (self.read(made, read), true),
            ReadOutcome::Planned | ReadOutcome::Unclear => (None, false),
        };
        self.is_settled = text.is_some() || is_settled;
        text
    }

    /// The checkpoint may have been read, and the steps contradict it.
    fn read(&self, made: &[StepTime], read: ReadOutcome) -> Option<String> {
        let planned = self.planned;
        let Start::Again(first) = start_of(made, planned, (self.before, &self.logs)) else { return None };
        Some(match read {
            ReadOutcome::Planned => format!(
                "the script read the checkpoint of step {planned} and began again with step {first}: it did not continue from it"
            ),
            ReadOutcome::Unclear | ReadOutcome::NotSeen => trained_again(first, planned),
        })
    }

    /// Nothing was seen to read the checkpoint, and the steps do not follow its step.
    fn unread(&self, steps: &[Step]) -> Option<String> {
        let planned = self.planned;
        // Where the steps of the attempts before were counted through, the first one of another attempt says nothing.
        let first = beginning(steps, planned).filter(|_| !self.before.falls_back)?;
        if first <= planned {
            return Some(trained_again(first, planned));
        }
        self.is_far(first, steps).then(|| {
            format!(
                "the script began with step {first} and did not read the checkpoint of step {planned}: it continued from something else"
            )
        })
    }

    /// Whether the first step is further from the planned one than a script prints, and no further than the attempts
    /// before came. One at more than twice the step of the checkpoint may be another number.
    fn is_far(&self, first: Step, steps: &[Step]) -> bool {
        let after: Vec<Step> = steps.iter().copied().filter(|step| *step >= first).collect();
        let Some(distance) = after.windows(2).map(|two| two[1].abs_diff(two[0])).max() else { return false };
        let way = distance.saturating_mul(DISTANCES);
        let reached = self.before.reached.unwrap_or(0).saturating_add(way);
        steps.len() == FIRST_STEPS
            && !self.before.is_inexact
            && first > self.planned.saturating_add(way)
            && first <= self.planned.saturating_mul(2).min(reached)
    }
}

fn trained_again(first: Step, planned: Step) -> String {
    format!(
        "the script began with step {first}, and not after step {planned}, from which it was to continue: what was trained is trained again"
    )
}

/// The step with which a script began that was to continue after step `of`; none as long as the steps do not show it.
/// What is printed before a training continues, such as a validation at step 0, is further from the next step than that
/// from the one after it.
fn beginning(steps: &[Step], of: Step) -> Option<Step> {
    match *steps {
        [first, ..] if first > of => Some(first),
        [first, second, third, ..] if second >= of && second - first > third.abs_diff(second) => Some(second),
        [0] => None,
        [0, second] if second >= of => None,
        [first, second, ..] => Some(first.min(second)),
        [first] => Some(first),
        [] => None,
    }
}

/// Whether there are enough steps for a verdict on a script that read its checkpoint.
fn is_patient(made: &[StepTime]) -> bool {
    let ends = made.first().zip(made.last());
    let seconds = ends.map_or(0.0, |((_, first), (_, last))| last.seconds_since(*first));
    made.len() >= PATIENT_STEPS && seconds >= PATIENT_SECONDS
}

fn first_of(made: &[StepTime]) -> Vec<Step> {
    made.iter().take(FIRST_STEPS).map(|(step, _)| *step).collect()
}

/// The longest way from one step to the next one.
fn longest_way(steps: &[Step]) -> Option<u64> {
    let mut steps = steps.to_vec();
    steps.sort_unstable();
    steps.windows(2).map(|two| two[1] - two[0]).max()
}

/// Whether the training continued after steps up to the one `of`: the first one after it does not follow them, or they
/// came all at once, as a history does that is printed again.
fn leaps_over(made: &[StepTime], of: Step) -> bool {
    let count = made.iter().take_while(|(step, _)| *step <= of).count();
    let (below, above) = made.split_at(count);
    let (Some((first, first_at)), Some((last, last_at))) = (below.first(), below.last()) else {
        return false;
    };
    let Some((next, next_at)) = above.first() else { return false };
    let steps: Vec<Step> = below.iter().map(|(step, _)| *step).collect();
    let highest = steps.iter().copied().max().unwrap_or(*last);
    // One alone has no distance to a next one: a script that records each hundredth step begins with it.
    let Some(way) = longest_way(&steps) else { return *next > first.saturating_mul(DISTANCES) };
    let each = last_at.seconds_since(*first_at) / (below.len() - 1) as f64;
    next - highest > way || each * AT_ONCE < next_at.seconds_since(*last_at)
}

/// How a script started that read a checkpoint, by its first steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Nothing says that it did not continue.
    Continued,
    /// With this step, where a first attempt begins.
    Again(Step),
    /// It may have begun again, or may count only what was left.
    Unclear,
}

/// How a script started that read the checkpoint of step `of`. Where the attempts before came no further than that,
/// what is recorded may be a step of an epoch at whose end the checkpoint was saved, or counted since a resume: only
/// the same total says that it began again. Where they did not come as far, the recorded steps are other numbers than
/// those of checkpoints.
pub fn start_of(made: &[StepTime], of: Step, (before, logs): (EarlierSteps, &Logs)) -> Start {
    let Some(first) = as_at_first(made, of, before) else { return Start::Continued };
    let way = longest_way(&first_of(made)).unwrap_or(1);
    let (is_as_far, is_further) = before.reached.map_or((true, true), |last| {
        (last.saturating_add(way) >= of, last > of && last.saturating_sub(of) >= way)
    });
    if !is_as_far {
        return Start::Continued;
    }
    match logs.totals_are(of, made) {
        Total::Rest => Start::Unclear,
        Total::Epoch => Start::Continued,
        Total::Training if is_further || logs.count_again(first, of) => Start::Again(first),
        Total::Training => Start::Unclear,
    }
}

/// The first step of a script that starts as a first attempt does, and whose steps rise from there; none where they are
/// no history that is printed again. A script that begins a little before the checkpoint continues.
fn as_at_first(made: &[StepTime], of: Step, before: EarlierSteps) -> Option<Step> {
    let steps = first_of(made);
    let first = beginning(&steps, of)?;
    // A script that validates at each start, and prints each tenth step, may have continued.
    let is_seen = first > 0 || steps.get(1).is_some_and(|second| *second < of);
    let is_a_beginning = first < of && first <= before.first.unwrap_or(1).max(1);
    (is_seen && is_a_beginning && !before.falls_back && !leaps_over(made, of)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    /// Steps, one a second, from second 10 on.
    fn facts(steps: &[Step], reads: &[CheckpointRead]) -> RecordFacts {
        let first_steps = (10..).zip(steps).map(|(second, step)| (*step, at(second))).collect();
        RecordFacts { first_steps, reads: reads.to_vec(), ..RecordFacts::default() }
    }

    fn read(step: Step) -> CheckpointRead {
        CheckpointRead {
            planned: step == 40,
            step: Some(step),
            by_attempt: true,
            counts_again: false,
            at: at(9),
        }
    }

    const BEFORE: EarlierSteps =
        EarlierSteps { first: Some(1), reached: Some(55), falls_back: false, is_inexact: false };

    /// The logs of an attempt and of the one before it, in a folder.
    fn logs(own: &str, earlier: &str) -> (tempfile::TempDir, Logs) {
        let folder = tempfile::tempdir().unwrap();
        let attempt = |name: &str, text: &str| {
            let attempt = folder.path().join(name);
            let log = AttemptLayout::new(&attempt).stdout_log();
            std::fs::create_dir_all(log.parent().unwrap()).unwrap();
            std::fs::write(log, text).unwrap();
            attempt
        };
        let (own, earlier) = (attempt("own", own), vec![attempt("earlier", earlier)]);
        (folder, Logs { own, earlier, ..Logs::default() })
    }

    /// What is said of first steps after the checkpoint of step 40.
    fn said(before: EarlierSteps, steps: &[Step], reads: &[CheckpointRead]) -> Option<String> {
        ResumeWatch::of(Some(40), before, Logs::default(), OnWrongResume::Note)
            .unwrap()
            .take(&facts(steps, reads), at(20))
    }

    /// Proves that a script which did not continue is reported by its first steps: one that reads no checkpoint, one
    /// that reads it and begins again, and one that continues from another file.
    #[test]
    fn first_steps_that_do_not_follow_the_checkpoint_are_reported() {
        let unclear = CheckpointRead { by_attempt: false, ..read(40) };
        let seldom = EarlierSteps { first: Some(10), ..BEFORE };
        let (again, reads_it, elsewhere) = ("began with step", "and began again with step", "something else");
        for (before, steps, reads, part) in [
            (BEFORE, &[1][..], &[][..], again),
            (BEFORE, &[1, 2], &[], again),
            (BEFORE, &[0, 1], &[], again),
            (BEFORE, &[1, 50, 100], &[], again),
            (BEFORE, &[21, 22], &[read(20)], again),
            (BEFORE, &[1, 2, 3, 4, 5, 6], &[unclear], again),
            (BEFORE, &[1, 2], &[CheckpointRead { at: at(13), ..read(40) }], again),
            (BEFORE, &[1, 2, 3, 4, 5, 6], &[read(40)], reads_it),
            (BEFORE, &[0, 1, 2, 3, 4, 5], &[read(40)], reads_it),
            (BEFORE, &[2, 1, 3, 4, 5, 6], &[read(40)], reads_it),
            (BEFORE, &[1, 2, 3, 4, 5, 6], &[CheckpointRead { planned: false, ..read(40) }], reads_it),
            (seldom, &[10, 20, 30, 40, 50, 60], &[read(40)], reads_it),
            (BEFORE, &[45, 46, 47], &[], elsewhere),
            (BEFORE, &[45, 46, 47], &[read(20)], elsewhere),
        ] {
            let text = said(before, steps, reads).unwrap_or_else(|| panic!("{steps:?} {reads:?}"));
            assert!(text.contains(part) && text.contains("step 40"), "{steps:?} {reads:?}: {text}");
        }
    }

    /// Proves that a script which continued is not reported: one that validates or prints an older step first, that
    /// prints its checkpoint's step once more or every tenth one, whose steps are other numbers than those of its
    /// checkpoints or begin again in each epoch, whose ranks print, that counts the rounds of XGBoost, or that resumed
    /// through Trackway.
    #[test]
    fn a_script_that_continues_is_not_reported() {
        let unclear = CheckpointRead { by_attempt: false, ..read(40) };
        let rounds = CheckpointRead { counts_again: true, ..unclear };
        let epochs = EarlierSteps { reached: Some(4), ..BEFORE };
        let falls = EarlierSteps { falls_back: true, is_inexact: true, ..BEFORE };
        let inexact = EarlierSteps { is_inexact: true, ..BEFORE };
        let at_its_end = EarlierSteps { reached: Some(40), ..BEFORE };
        let seldom = EarlierSteps { first: Some(10), ..BEFORE };
        for (before, steps, reads) in [
            (BEFORE, &[][..], &[][..]),
            (BEFORE, &[41], &[]),
            (BEFORE, &[0], &[]),
            (BEFORE, &[0, 41], &[]),
            (BEFORE, &[0, 41, 42], &[]),
            (BEFORE, &[30, 41, 42], &[]),
            (BEFORE, &[42, 43, 44], &[]),
            (BEFORE, &[50, 60, 70], &[]),
            (BEFORE, &[50, 51, 60], &[]),
            (BEFORE, &[45, 46], &[]),
            (BEFORE, &[81, 82, 83], &[]),
            (BEFORE, &[60, 61, 62], &[]),
            (inexact, &[45, 46, 47], &[]),
            (BEFORE, &[45, 46, 47], &[unclear]),
            (BEFORE, &[45, 46, 47], &[read(40)]),
            (BEFORE, &[1], &[read(40)]),
            (BEFORE, &[1, 2, 3], &[read(40)]),
            (BEFORE, &[0, 1, 55, 60, 65, 70], &[read(40)]),
            (BEFORE, &[1, 2, 3, 41, 42, 43, 44], &[read(40)]),
            (BEFORE, &[1, 2, 3, 4, 5, 41, 42], &[read(40)]),
            (BEFORE, &[1, 2, 3, 4, 5, 41, 42], &[unclear]),
            (seldom, &[10, 20, 30, 60, 70, 80], &[read(40)]),
            (at_its_end, &[1, 2, 3, 4, 5, 6], &[read(40)]),
            (EarlierSteps { first: Some(20), ..BEFORE }, &[20, 40, 60, 80, 100, 120], &[read(40)]),
            (BEFORE, &[0, 41, 42], &[read(40)]),
            (BEFORE, &[0, 50, 100], &[read(40)]),
            (BEFORE, &[1, 41], &[read(40)]),
            (BEFORE, &[1, 41, 42], &[read(40)]),
            (BEFORE, &[0, 40, 41], &[read(40)]),
            (BEFORE, &[40, 41, 42], &[read(40)]),
            (BEFORE, &[40, 41, 42], &[CheckpointRead { planned: false, ..read(40) }]),
            (BEFORE, &[40, 41, 42], &[unclear]),
            (BEFORE, &[36, 37, 38], &[read(40)]),
            (BEFORE, &[42, 41, 43], &[read(40)]),
            (epochs, &[1, 2, 3, 4, 5, 6], &[read(40)]),
            (falls, &[1, 2, 3, 4, 5, 6], &[read(40)]),
            (falls, &[1, 2, 3, 4, 5, 6], &[unclear]),
            (falls, &[1, 2, 3, 4, 5, 6], &[]),
            (BEFORE, &[0, 1, 2, 3, 4, 5], &[rounds]),
        ] {
            assert_eq!(said(before, steps, reads), None, "{steps:?} {reads:?}");
        }
        let mut watch = ResumeWatch::of(Some(40), BEFORE, Logs::default(), OnWrongResume::Note).unwrap();
        let resumed = RecordFacts { resumed: true, ..facts(&[1, 2], &[]) };
        assert_eq!(watch.take(&resumed, at(20)), None);
    }

    /// Proves that steps which come at once, before a training that continues, are a history, and that those at the
    /// pace of the training are not.
    #[test]
    fn a_history_that_is_printed_again_is_no_beginning() {
        let before = EarlierSteps { first: Some(10), reached: Some(55), ..BEFORE };
        let steps: [Step; 7] = [10, 20, 30, 40, 50, 60, 70];
        let slow: Vec<StepTime> = (10..).zip(steps).map(|(second, step)| (step, at(second))).collect();
        let history: Vec<StepTime> =
            slow.iter().map(|(step, made_at)| (*step, if *step <= 40 { at(10) } else { *made_at })).collect();
        let logs = Logs::default();
        assert_eq!(start_of(&slow, 40, (before, &logs)), Start::Again(10));
        assert_eq!(start_of(&history, 40, (before, &logs)), Start::Continued);
    }

    /// Proves that a total of an epoch, or of the steps that were left, says that steps are counted otherwise, and that
    /// one of the whole training, or a shorter one, does not.
    #[test]
    fn totals_say_what_steps_are_of() {
        let totals = totals_in;
        assert_eq!(totals("[2/25] loss 0.5 step 3 / 60, a/b, 7/3, 1/1, /9"), BTreeSet::from([25, 60]));
        let earlier = totals("step 1/109 loss 3.0");
        for (own, planned, expected) in [
            ("[1/25] loss 0.5", 25, Total::Epoch),
            ("[1/25] loss 0.5", 50, Total::Epoch),
            ("step 1/59 loss 0.5", 50, Total::Rest),
            ("step 1/109 loss 0.5", 50, Total::Training),
            ("epoch 1/5 step 1 loss 0.5", 50, Total::Training),
            ("step 1 loss 0.5", 50, Total::Training),
        ] {
            assert_eq!(total_of(&totals(own), &earlier, planned, 9), expected, "{own}");
        }
    }

    /// Proves that steps which only lines of another form than those of the training before have, such as the batches
    /// of an evaluation before it, are no first steps; that those of a training which begins again are, also beside
    /// them; and that nothing changes where no form is known.
    #[test]
    fn lines_of_another_form_are_not_of_the_training() {
        let training = |from: u64, to: u64| -> String {
            (from..=to)
                .map(|step| format!("step {step} loss {:.2} lr 1e-{}\n", 9.5 / step as f64, step % 9))
                .collect()
        };
        let evaluation: String =
            (1..=7).map(|batch| format!("[eval] step {batch} loss 0.{batch}\n")).collect();
        let (before, continued) = (training(1, 55), evaluation.clone() + &training(41, 43));
        let (again, after_it) = (training(1, 6), evaluation.clone() + &training(1, 6));
        for (earlier, own, steps, is_said) in [
            (&before, &evaluation, &[1, 2, 3, 4, 5, 6][..], false),
            (&before, &continued, &[1, 2, 3, 4, 5, 6, 7, 41, 42, 43], false),
            (&before, &again, &[1, 2, 3, 4, 5, 6], true),
            (&before, &after_it, &[1, 2, 3, 4, 5, 6], true),
            (&before, &String::new(), &[1, 2, 3, 4, 5, 6], true),
            (&evaluation, &evaluation, &[1, 2, 3, 4, 5, 6], true),
        ] {
            let (_folder, logs) = logs(own, earlier);
            let mut watch = ResumeWatch::of(Some(40), BEFORE, logs, OnWrongResume::Stop).unwrap();
            let said = watch.take(&facts(steps, &[read(40)]), at(20));
            assert_eq!(said.is_some(), is_said, "{earlier}{own}: {said:?}");
        }
    }

    /// Proves that a script which counts from the first step to the same total began again, though the attempts before
    /// came no further than the checkpoint; and that it is not known of one which counts to another total, or without
    /// one, and of one that restarted before.
    #[test]
    fn the_same_total_says_that_it_began_again() {
        let epochs = |from: u64, to: u64, of: &str| -> String {
            (from..=to).map(|epoch| format!("Epoch {epoch}{of} - loss: 0.{epoch}\n")).collect()
        };
        let at_its_end = EarlierSteps { reached: Some(40), ..BEFORE };
        let falls = EarlierSteps { falls_back: true, is_inexact: true, ..at_its_end };
        for (before, earlier, own, expected) in [
            (at_its_end, epochs(1, 40, "/90"), epochs(1, 6, "/90"), Start::Again(1)),
            (at_its_end, epochs(1, 40, " of 90:"), epochs(1, 6, " of 90:"), Start::Again(1)),
            (at_its_end, epochs(1, 40, "/90"), epochs(1, 6, "/50"), Start::Unclear),
            (at_its_end, epochs(1, 40, "/90"), epochs(1, 6, "/91"), Start::Unclear),
            (at_its_end, epochs(1, 40, ""), epochs(1, 6, ""), Start::Unclear),
            (at_its_end, epochs(1, 40, "/40"), epochs(1, 6, "/40"), Start::Continued),
            (falls, epochs(1, 40, "/90"), epochs(1, 6, "/90"), Start::Continued),
            (BEFORE, epochs(1, 55, ""), epochs(1, 6, ""), Start::Again(1)),
            (BEFORE, epochs(1, 55, "/90"), epochs(1, 6, "/50"), Start::Unclear),
        ] {
            let (_folder, logs) = logs(&own, &earlier);
            let made = facts(&[1, 2, 3, 4, 5, 6], &[]).first_steps;
            assert_eq!(start_of(&made, 40, (before, &logs)), expected, "{before:?} {earlier}{own}");
        }
    }

    /// Proves that two lines have the same form where only their numbers differ, however these are written.
    #[test]
    fn a_form_has_no_numbers() {
        for (line, form) in [
            ("step 12 loss 0.5 lr 1e-05\n", "step # loss # lr #"),
            ("step 3  loss nan lr -1.5e+00\r\n", "step # loss # lr #"),
            ("[eval] 3/50 loss=-0.5", "[eval] #/# loss=#"),
            ("10:02:03 é top5: 0.91%, 2.5s", "# é top# #, #"),
            ("", ""),
        ] {
            assert_eq!(form_of(line), form, "{line}");
        }
    }

    /// Proves that it is said once, when what was read had time to be recorded.
    #[test]
    fn it_is_said_once_and_not_too_early() {
        let mut watch = ResumeWatch::of(Some(40), BEFORE, Logs::default(), OnWrongResume::Stop).unwrap();
        assert_eq!(watch.take(&facts(&[1, 2], &[]), at(11)), None, "it may not be recorded yet");
        assert!(watch.take(&facts(&[1, 2], &[]), at(12)).is_some() && watch.stops());
        assert_eq!(watch.take(&facts(&[1, 2], &[]), at(13)), None, "once");
        assert!(ResumeWatch::of(None, BEFORE, Logs::default(), OnWrongResume::Stop).is_none());
    }
}
