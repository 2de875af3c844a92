//! What a resume really did, as its first steps show it: hours before the end, when the seal says it.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use trackway_core::{Step, Timestamp};
use trackway_formats::layout::AttemptLayout;
use trackway_formats::printed::PrintedCourse;
use trackway_formats::runfile::OnWrongResume;
use trackway_ledger::AttemptRow;

use super::live_record::{CheckpointRead, RecordFacts};

/// What is read comes into the record a little after it was, on a busy machine after the first step.
pub const LATE_SECONDS: f64 = 2.0;
/// A script that prints every tenth step, and was one printed step further than is known of its checkpoint, begins so many distances after that.
const DISTANCES: u64 = 2;
/// The first steps that show how a script begins.
const FIRST_STEPS: usize = 3;
/// So many steps, and so many seconds of them, show that a script which read its checkpoint began again: before, it may print something else.
const PATIENT_STEPS: usize = 5;
const PATIENT_SECONDS: f64 = 5.0;
/// Steps that come so many times faster than those after the checkpoint are printed from a history.
const AT_ONCE: f64 = 10.0;
/// So much of a log is searched for counts.
const LOG_BYTES_MAX: u64 = 64 << 10;

/// A step and when it was made.
pub type Made = (Step, Timestamp);

/// What the attempts before show of the steps of the training.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Before {
    /// The step with which the first of them began.
    pub first: Option<Step>,
    /// The last step of all of them.
    pub reached: Option<Step>,
    /// Printed steps fell back to the first one, and no epoch says why: a first step may be that of a later epoch.
    pub falls_back: bool,
    /// The distance of two steps may be another number than that of the checkpoints: epochs were counted, or batches are skipped.
    pub is_inexact: bool,
}

impl Before {
    /// `attempts`: those before the row.
    pub fn of(attempts: &[AttemptRow], row: &AttemptRow, course: &PrintedCourse) -> Self {
        Self {
            first: attempts.iter().find_map(|attempt| attempt.first_step),
            reached: attempts.iter().filter_map(|attempt| attempt.last_step).max(),
            falls_back: course.falls_back(),
            is_inexact: course.falls_back() || course.begins_again() || row.skip_batches.is_some(),
        }
    }
}

/// The logs of the attempts, for the totals that are printed beside steps: `step 1/59`.
#[derive(Debug, Clone, Default)]
pub struct Logs {
    own: PathBuf,
    earlier: Vec<PathBuf>,
}

impl Logs {
    /// `attempts`: those before the row.
    pub fn of(attempts: &[AttemptRow], row: &AttemptRow) -> Self {
        let folder = |attempt: &AttemptRow| PathBuf::from(&attempt.log_directory);
        Self { own: folder(row), earlier: attempts.iter().map(folder).collect() }
    }

    /// Whether the printed totals say that the steps are not those of the whole training.
    pub fn count_otherwise(&self, planned: Step, steps: &[Made]) -> bool {
        let highest = steps.iter().map(|(step, _)| *step).max().unwrap_or(0);
        let earlier: BTreeSet<u64> = self.earlier.iter().flat_map(|folder| printed_totals(folder)).collect();
        counts_otherwise(&printed_totals(&self.own), &earlier, planned, highest)
    }
}

/// Whether a total is that of an epoch, by the step of the checkpoint at the end of one, or of the steps that were left.
fn counts_otherwise(own: &BTreeSet<u64>, earlier: &BTreeSet<u64>, planned: Step, highest: Step) -> bool {
    let mut totals = own.iter().filter(|total| **total >= highest);
    totals.any(|total| planned.is_multiple_of(*total) || earlier.contains(&total.saturating_add(planned)))
}

/// The totals at the beginning of what an attempt printed. A log that cannot be read has none.
fn printed_totals(folder: &Path) -> BTreeSet<u64> {
    let mut bytes = Vec::new();
    if let Ok(log) = std::fs::File::open(AttemptLayout::new(folder).stdout_log()) {
        let _ = log.take(LOG_BYTES_MAX).read_to_end(&mut bytes);
    }
    totals_in(&String::from_utf8_lossy(&bytes))
}

fn totals_in(text: &str) -> BTreeSet<u64> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let counts = text.match_indices('/').filter_map(|(at, _)| {
        let (before, after) = (text[..at].trim_end(), text[at + 1..].trim_start());
        let done: u64 = before[before.trim_end_matches(is_digit).len()..].parse().ok()?;
        let total: u64 = after[..after.len() - after.trim_start_matches(is_digit).len()].parse().ok()?;
        (total > 1 && done <= total).then_some(total)
    });
    counts.collect()
}

/// What is waited for after a launch that is to continue from a checkpoint.
#[derive(Debug, Clone)]
pub struct ResumeWatch {
    /// The step that it is to continue from.
    planned: Step,
    before: Before,
    logs: Logs,
    /// What follows where it does not.
    policy: OnWrongResume,
    is_settled: bool,
}

/// Whether the attempt read the checkpoint that it was to continue from, before its first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// It did.
    Planned,
    /// Something read it, or another one.
    Unclear,
    /// It was not seen to be read.
    NotSeen,
}

impl Read {
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
    pub fn of(planned: Option<Step>, before: Before, logs: Logs, policy: OnWrongResume) -> Option<Self> {
        planned.map(|planned| Self { planned, before, logs, policy, is_settled: false })
    }

    /// Whether the attempt is to be ended where it did not continue.
    pub fn stops(&self) -> bool {
        self.policy == OnWrongResume::Stop
    }

    /// What to say, once: the script did not continue from its checkpoint.
    pub fn take(&mut self, facts: &RecordFacts, now: Timestamp) -> Option<String> {
        let (_, first_at) = *facts.first_steps.first()?;
        let counts_again = facts.reads.iter().any(|read| read.planned && read.counts_again);
        if self.is_settled || facts.resumed || counts_again || now.seconds_since(first_at) < LATE_SECONDS {
            return None;
        }
        let made = &facts.first_steps;
        let (text, is_settled) = match Read::of(&facts.reads, self.planned, first_at) {
            Read::NotSeen => {
                let steps = first_of(made);
                (self.unread(&steps), steps.len() == FIRST_STEPS)
            }
            read if is_patient(made) => (self.read(made, read), true),
            Read::Planned | Read::Unclear => (None, false),
        };
        self.is_settled = text.is_some() || is_settled;
        text
    }

    /// The checkpoint may have been read, and the steps contradict it.
    fn read(&self, made: &[Made], read: Read) -> Option<String> {
        let planned = self.planned;
        let first = began_again(made, planned, self.before)?;
        if self.logs.count_otherwise(planned, made) {
            return None;
        }
        Some(match read {
            Read::Planned => format!(
                "the script read the checkpoint of step {planned} and began again with step {first}: it did not continue from it"
            ),
            Read::Unclear | Read::NotSeen => trained_again(first, planned),
        })
    }

    /// Nothing was seen to read the checkpoint, and the steps do not follow its step.
    fn unread(&self, steps: &[Step]) -> Option<String> {
        let planned = self.planned;
        let first = beginning(steps, planned)?;
        if first <= planned {
            return Some(trained_again(first, planned));
        }
        self.is_far(first, steps).then(|| {
            format!(
                "the script began with step {first} and did not read the checkpoint of step {planned}: it continued from something else"
            )
        })
    }

    /// Whether the first step is further from the planned one than a script prints, and no further than the attempts before came. One at more than
    /// twice the step of the checkpoint may be another number.
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

/// The step with which a script began that was to continue after step `of`; none as long as the steps do not show it. What is printed before a
/// training continues, such as a validation at step 0, is further from the next step than that from the one after it.
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
fn is_patient(made: &[Made]) -> bool {
    let ends = made.first().zip(made.last());
    let seconds = ends.map_or(0.0, |((_, first), (_, last))| last.seconds_since(*first));
    made.len() >= PATIENT_STEPS && seconds >= PATIENT_SECONDS
}

fn first_of(made: &[Made]) -> Vec<Step> {
    made.iter().take(FIRST_STEPS).map(|(step, _)| *step).collect()
}

/// The longest way from one step to the next one.
fn longest_way(steps: &[Step]) -> Option<u64> {
    let mut steps = steps.to_vec();
    steps.sort_unstable();
    steps.windows(2).map(|two| two[1] - two[0]).max()
}

/// Whether the training continued after steps up to the one `of`: the first one after it does not follow them, or they came all at once, as a history does
/// that is printed again.
fn leaps_over(made: &[Made], of: Step) -> bool {
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

/// The step with which a script began again although it read the checkpoint of step `of`: it begins where a first attempt does, rises from there, and the
/// attempts before came further than the checkpoint. Where they did not, what is recorded may be another number: the epoch, or a step of an epoch at whose
/// end the checkpoint was saved. A script that begins a little before the checkpoint continues.
pub fn began_again(made: &[Made], of: Step, before: Before) -> Option<Step> {
    let steps = first_of(made);
    let first = beginning(&steps, of)?;
    // A script that validates at each start, and prints each tenth step, may have continued.
    let is_seen = first > 0 || steps.get(1).is_some_and(|second| *second < of);
    let is_a_beginning = first < of && first <= before.first.unwrap_or(1).max(1);
    let way = longest_way(&steps).unwrap_or(1);
    let is_further = before.reached.is_none_or(|last| last.saturating_sub(of) >= way && last > of);
    (is_seen && is_a_beginning && is_further && !before.falls_back && !leaps_over(made, of)).then_some(first)
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

    const BEFORE: Before = Before { first: Some(1), reached: Some(55), falls_back: false, is_inexact: false };

    /// What is said of first steps after the checkpoint of step 40.
    fn said(before: Before, steps: &[Step], reads: &[CheckpointRead]) -> Option<String> {
        ResumeWatch::of(Some(40), before, Logs::default(), OnWrongResume::Note)
            .unwrap()
            .take(&facts(steps, reads), at(20))
    }

    /// Proves that a script which did not continue is reported by its first steps: one that reads no checkpoint, one that reads it and begins again, and one
    /// that continues from another file.
    #[test]
    fn first_steps_that_do_not_follow_the_checkpoint_are_reported() {
        let unclear = CheckpointRead { by_attempt: false, ..read(40) };
        let seldom = Before { first: Some(10), ..BEFORE };
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

    /// Proves that a script which continued is not reported: one that validates or prints an older step first, that prints its checkpoint's step once more or
    /// every tenth one, whose steps are other numbers than those of its checkpoints or begin again in each epoch, whose ranks print, that counts the rounds of
    /// XGBoost, or that resumed through Trackway.
    #[test]
    fn a_script_that_continues_is_not_reported() {
        let unclear = CheckpointRead { by_attempt: false, ..read(40) };
        let rounds = CheckpointRead { counts_again: true, ..unclear };
        let epochs = Before { reached: Some(4), ..BEFORE };
        let falls = Before { falls_back: true, is_inexact: true, ..BEFORE };
        let inexact = Before { is_inexact: true, ..BEFORE };
        let at_its_end = Before { reached: Some(40), ..BEFORE };
        let seldom = Before { first: Some(10), ..BEFORE };
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
            (Before { first: Some(20), ..BEFORE }, &[20, 40, 60, 80, 100, 120], &[read(40)]),
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
            (BEFORE, &[0, 1, 2, 3, 4, 5], &[rounds]),
        ] {
            assert_eq!(said(before, steps, reads), None, "{steps:?} {reads:?}");
        }
        let mut watch = ResumeWatch::of(Some(40), BEFORE, Logs::default(), OnWrongResume::Note).unwrap();
        let resumed = RecordFacts { resumed: true, ..facts(&[1, 2], &[]) };
        assert_eq!(watch.take(&resumed, at(20)), None);
    }

    /// Proves that steps which come at once, before a training that continues, are a history, and that those at the pace of the training are not.
    #[test]
    fn a_history_that_is_printed_again_is_no_beginning() {
        let before = Before { first: Some(10), reached: Some(55), ..BEFORE };
        let steps: [Step; 7] = [10, 20, 30, 40, 50, 60, 70];
        let slow: Vec<Made> = (10..).zip(steps).map(|(second, step)| (step, at(second))).collect();
        let history: Vec<Made> =
            slow.iter().map(|(step, made_at)| (*step, if *step <= 40 { at(10) } else { *made_at })).collect();
        assert_eq!(began_again(&slow, 40, before), Some(10));
        assert_eq!(began_again(&history, 40, before), None);
    }

    /// Proves that a total of an epoch, or of the steps that were left, says that steps are counted otherwise, and that one of the whole training, or a
    /// shorter one, does not.
    #[test]
    fn totals_say_what_steps_are_of() {
        let totals = totals_in;
        assert_eq!(totals("[2/25] loss 0.5 step 3 / 60, a/b, 7/3, 1/1, /9"), BTreeSet::from([25, 60]));
        let earlier = totals("step 1/109 loss 3.0");
        for (own, planned, expected) in [
            ("[1/25] loss 0.5", 25, true),
            ("[1/25] loss 0.5", 50, true),
            ("step 1/59 loss 0.5", 50, true),
            ("step 1/109 loss 0.5", 50, false),
            ("epoch 1/5 step 1 loss 0.5", 50, false),
            ("step 1 loss 0.5", 50, false),
        ] {
            assert_eq!(counts_otherwise(&totals(own), &earlier, planned, 9), expected, "{own}");
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
