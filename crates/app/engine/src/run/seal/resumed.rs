//! What an attempt continued from: what the script said when it resumed through Trackway, else which of the checkpoints
//! that it writes itself it read (`checkpoint_opened` of the shim).

use std::sync::Arc;

use serde_json::json;
use trackway_core::{Clock as _, Step, Timestamp};
use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::record::{CheckpointChange, CheckpointFrame};
use trackway_launch::shim::{printed_course, steps_are};
use trackway_launch::{Adopt, FolderChannel, StoredLaunch};
use trackway_ledger::{AttemptRow, EventRow};
use trackway_records::ClosedRecords;

use crate::Context;
use crate::run::record::earlier;
use crate::run::record::live_record::LiveRecord;
use crate::run::record::resume_watch::{
    EarlierSteps, LATE_SECONDS, Logs, Start, StepTime, of_training, start_of,
};

/// What the shim saw of one checkpoint that was there when the script was started.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckpointOpening {
    path: String,
    /// The step that it is of, where that is known.
    step: Option<Step>,
    /// The manifest that it was committed with, if it was.
    manifest: Option<String>,
    /// Whether the attempt was to continue from it.
    planned: bool,
    /// Whether the attempt read it.
    read: bool,
    /// Whether it is not known who read it.
    is_unclear: bool,
    at: Timestamp,
}

/// What a script continued from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Resumed {
    AsPlanned,
    /// Another checkpoint.
    Other {
        path: String,
        step: Option<Step>,
        manifest: Option<String>,
    },
    /// None: it read none of those that were there.
    Nothing,
    /// It read one and began before the step of that.
    BeganAgain,
    /// It was not seen.
    NotKnown,
}

/// What a script that records with Trackway resumed from counts, not what it was expected to resume from.
pub(super) fn note_resumed_by_sdk(row: &mut AttemptRow, closed: &ClosedRecords) {
    let has_sdk = closed.segments.iter().any(|segment| segment.origin.as_deref() == Some("sdk"));
    let resumed = frame_of_resume(closed);
    // It may record with Trackway and write its checkpoints itself.
    let has_own = closed.events.iter().any(|event| EventKind::CheckpointOpened.is(&event.kind));
    if has_sdk && (resumed.is_some() || !has_own) {
        row.resumed_from_step = resumed.map(|frame| frame.step);
        row.resumed_from_manifest_sha256 = resumed.map(|frame| frame.manifest_sha256.clone());
    }
}

fn frame_of_resume(closed: &ClosedRecords) -> Option<&CheckpointFrame> {
    closed.checkpoints.iter().find(|frame| frame.state == CheckpointChange::Resumed)
}

/// Corrects what the row says of the resume by the files that were read. The event says where that is not what was planned.
///
/// Nothing is corrected for a script whose checkpoints are not adopted, or that resumed through Trackway.
pub(super) fn note_resumed(
    context: &Context,
    files: &AttemptLayout,
    row: &mut AttemptRow,
    closed: &ClosedRecords,
) -> Option<EventRow> {
    let launch = StoredLaunch::read(files.folder()).ok().flatten()?;
    if launch.adopt == Adopt::Nothing || frame_of_resume(closed).is_some() {
        return None;
    }
    let planned = row.resumed_from_step;
    let earlier = earlier::before(context, row).unwrap_or_default();
    let run = context.home.layout.run(row.run_id);
    let known = EarlierSteps::of(&earlier, row, &printed_course(&run));
    let read_now = seen(&opened_in(&closed.events), closed.first_step_at);
    let logs = Logs::of(&earlier, row);
    let seen = match contradicted(read_now, planned, row.first_step, (known, &logs), || first_steps(files)) {
        // A first step after the planned one is a continuation, though nothing saw the file.
        Resumed::NotKnown if row.first_step.zip(planned).is_some_and(|(first, planned)| first > planned) => {
            Resumed::AsPlanned
        }
        seen => seen,
    };
    match &seen {
        Resumed::AsPlanned => {}
        Resumed::Other { step, manifest, .. } => {
            (row.resumed_from_step, row.resumed_from_manifest_sha256) = (*step, manifest.clone());
        }
        Resumed::Nothing | Resumed::BeganAgain | Resumed::NotKnown => {
            (row.resumed_from_step, row.resumed_from_manifest_sha256) = (None, None);
        }
    }
    // Where the steps of the attempts before were counted through, the first one of another attempt says nothing.
    let starts = Starts { first: row.first_step.filter(|_| !known.falls_back), earlier: known.first };
    let sentence = sentence(&seen, planned, starts).or_else(|| unexplained_start(&seen, starts))?;
    let highest = [known.reached, planned, row.last_step].into_iter().flatten().max();
    let sentence = match steps_are(&run, highest) {
        Some(are) => format!("{sentence} ({are})"),
        None => sentence,
    };
    let path = if let Resumed::Other { path, .. } = &seen { Some(path) } else { None };
    let at = closed.first_step_at.or(row.ended_at).unwrap_or_else(|| context.clock.now());
    let fields_json =
        Some(json!({ "path": path, "planned_step": planned, "read": read(&seen, planned, starts) }));
    Some(EventRow {
        step: row.resumed_from_step,
        fields_json,
        ..EventRow::of_attempt(row, EventKind::CheckpointOtherResume, at, sentence)
    })
}

/// The first steps, in the order in which they were made.
fn first_steps(files: &AttemptLayout) -> Vec<StepTime> {
    let mut record = LiveRecord::of(Arc::new(FolderChannel::new(files.folder())));
    record.look();
    record.facts.first_steps
}

/// What is read is continued from only while the first steps do not contradict it: a script that could not load it
/// begins again. `first`: the lowest step, with the rounds before those that XGBoost prints.
fn contradicted(
    seen: Resumed,
    planned: Option<Step>,
    first: Option<Step>,
    (before, logs): (EarlierSteps, &Logs),
    first_steps: impl FnOnce() -> Vec<StepTime>,
) -> Resumed {
    let step = match &seen {
        Resumed::AsPlanned => planned,
        Resumed::Other { step, .. } => *step,
        Resumed::Nothing | Resumed::BeganAgain | Resumed::NotKnown => None,
    };
    let Some((step, _)) = step.zip(first).filter(|(step, first)| first < step) else { return seen };
    let made = of_training(&first_steps(), step, (before, logs));
    match start_of(&made, step, (before, logs)) {
        Start::Continued => seen,
        Start::Again(_) => Resumed::BeganAgain,
        Start::Unclear => Resumed::NotKnown,
    }
}

fn opened_in(events: &[EventRow]) -> Vec<CheckpointOpening> {
    let opened =
        events.iter().filter(|event| EventKind::CheckpointOpened.is(&event.kind)).filter_map(|event| {
            Some(CheckpointOpening {
                path: event.field("path")?.to_owned(),
                step: event.step,
                manifest: event.field("manifest_sha256").map(str::to_owned),
                planned: event.field("planned") == Some("yes"),
                read: event.field("by") == Some("attempt"),
                is_unclear: event.field("by") == Some("unknown"),
                at: event.at,
            })
        });
    opened.collect()
}

/// What is read well after the first step does not count: a script may load its best model at the end.
fn seen(opened: &[CheckpointOpening], first_step_at: Option<Timestamp>) -> Resumed {
    let in_time = |one: &&CheckpointOpening| {
        first_step_at.is_none_or(|first| one.at.seconds_since(first) <= LATE_SECONDS)
    };
    let read: Vec<&CheckpointOpening> = opened.iter().filter(|one| one.read).filter(in_time).collect();
    if read.iter().any(|one| one.planned) {
        return Resumed::AsPlanned;
    }
    match read.last() {
        Some(other) => {
            Resumed::Other { path: other.path.clone(), step: other.step, manifest: other.manifest.clone() }
        }
        // The script may have been the one that read it.
        None if opened.iter().filter(in_time).any(|one| one.is_unclear) => Resumed::NotKnown,
        None if opened.iter().any(|one| one.planned) => Resumed::Nothing,
        None => Resumed::NotKnown,
    }
}

/// The first steps that were recorded: of the attempt, and of the first one on its rung.
#[derive(Clone, Copy)]
struct Starts {
    first: Option<Step>,
    earlier: Option<Step>,
}

impl Starts {
    /// Both, where the attempt began later than the first one did. A script that records every hundredth step begins with step 100
    /// whether it continued or not.
    fn later(self) -> Option<(Step, Step)> {
        self.first.zip(self.earlier).filter(|(first, earlier)| first > earlier)
    }
}

/// The same as a word: `unnamed` is a file that no pattern names, `unknown` what was not seen.
fn read(seen: &Resumed, planned: Option<Step>, starts: Starts) -> &'static str {
    match seen {
        Resumed::AsPlanned => "planned",
        Resumed::Other { .. } => "other",
        Resumed::Nothing if starts.later().is_some_and(|(first, _)| Some(first) > planned) => "unnamed",
        Resumed::Nothing => "none",
        Resumed::BeganAgain => "began_again",
        Resumed::NotKnown => "unknown",
    }
}

/// What the event says; none where it is as planned, or where the attempt made no step that would show the difference.
fn sentence(seen: &Resumed, planned: Option<Step>, starts: Starts) -> Option<String> {
    let of_step = |step: &Option<Step>| step.map(|step| format!(" of step {step}")).unwrap_or_default();
    match (seen, planned) {
        // The same save under another name, such as Lightning's `last.ckpt`.
        (Resumed::Other { step, manifest: Some(_), .. }, Some(_)) if *step == planned => None,
        (Resumed::Other { path, step, .. }, Some(planned)) => Some(format!(
            "the script continued from `{path}`{}, and not from the checkpoint of step {planned}",
            of_step(step)
        )),
        (Resumed::Other { path, step, .. }, None) => Some(format!(
            "the script continued from `{path}`{}, which was there before it was started: this run did not make it",
            of_step(step)
        )),
        (Resumed::Nothing, Some(planned)) => Some(match (starts.first, starts.later()) {
            (Some(first), _) if first <= planned => format!(
                "the script read none of its checkpoints: it began with step {first}, and not after step {planned}"
            ),
            (Some(first), Some(_)) => format!(
                "the script read none of its checkpoints and began with step {first}: it continued from a file that `checkpoint.adopt` does not name, and that was not verified"
            ),
            _ => format!("the script read none of its checkpoints; it was to continue from step {planned}"),
        }),
        (Resumed::BeganAgain, planned) => {
            let of = planned.map(|step| format!(" of step {step}")).unwrap_or_default();
            starts.first.map(|first| {
                format!("the script read the checkpoint{of} and began again with step {first}: it did not continue from it")
            })
        }
        (Resumed::NotKnown, Some(planned)) => {
            Some(format!("whether the script continued from step {planned} is not known"))
        }
        _ => None,
    }
}

/// What the event says of an attempt for which no checkpoint was known, and that did not begin where the first one did.
fn unexplained_start(seen: &Resumed, starts: Starts) -> Option<String> {
    let (first, earlier) = starts.later()?;
    (*seen == Resumed::NotKnown).then(|| {
        format!(
            "the script began with step {first}, and the first attempt with step {earlier}: if it continued from a checkpoint that it keeps itself, name it in `checkpoint.adopt`, so that it is committed and verified"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &str, step: Step, planned: bool, read: bool, at: i64) -> CheckpointOpening {
        let at = Timestamp::from_micros(at * 1_000_000);
        let is_unclear = false;
        CheckpointOpening {
            path: path.into(),
            step: Some(step),
            manifest: None,
            planned,
            read,
            is_unclear,
            at,
        }
    }

    /// Proves that the planned checkpoint counts when the attempt read it before the first step, another one when only
    /// that was, that what is read later does not count, and that what any process may have read says nothing.
    #[test]
    fn what_was_read_before_the_first_step_is_the_resume() {
        let first = Some(Timestamp::from_micros(100_000_000));
        let planned = |read, at| opened("out/checkpoint-40", 40, true, read, at);
        let other = |read, at| opened("out/checkpoint-20", 20, false, read, at);
        let unclear = |one: CheckpointOpening| CheckpointOpening { is_unclear: true, ..one };
        let from_other = Resumed::Other { path: "out/checkpoint-20".into(), step: Some(20), manifest: None };
        for (events, expected) in [
            (vec![planned(true, 10), other(false, 500)], Resumed::AsPlanned),
            (vec![planned(true, 101), other(true, 20)], Resumed::AsPlanned),
            (vec![other(true, 20), planned(true, 200)], from_other.clone()),
            (vec![other(true, 20), planned(false, 500)], from_other.clone()),
            (vec![other(true, 20)], from_other.clone()),
            (vec![other(true, 200), planned(false, 500)], Resumed::Nothing),
            (vec![other(true, 200)], Resumed::NotKnown),
            (vec![unclear(planned(false, 10))], Resumed::NotKnown),
            (vec![unclear(planned(false, 10)), planned(true, 11)], Resumed::AsPlanned),
            (vec![unclear(other(false, 10)), planned(true, 11)], Resumed::AsPlanned),
            (vec![unclear(other(false, 200)), planned(false, 500)], Resumed::Nothing),
            (vec![], Resumed::NotKnown),
        ] {
            assert_eq!(seen(&events, first), expected, "{events:?}");
        }
        assert_eq!(seen(&[other(true, 200)], None), from_other, "no step was recorded");
    }

    /// Proves that a script which read what was planned, or of which nothing was planned and nothing seen, is not
    /// reported; every other one is, with both steps.
    #[test]
    fn a_resume_that_differs_is_reported_with_both_steps() {
        let from = |first| Starts { first, earlier: Some(1) };
        let other = Resumed::Other { path: "ckpt.pt".into(), step: Some(20), manifest: None };
        let same_step =
            Resumed::Other { path: "last.ckpt".into(), step: Some(40), manifest: Some("ab".into()) };
        for quiet in [
            sentence(&same_step, Some(40), from(Some(41))),
            sentence(&Resumed::AsPlanned, Some(40), from(Some(41))),
            sentence(&Resumed::NotKnown, None, from(Some(1))),
            sentence(&Resumed::Nothing, None, from(None)),
        ] {
            assert_eq!(quiet, None);
        }
        for (seen, planned, parts) in [
            (&other, Some(40), ["`ckpt.pt` of step 20", "of step 40"]),
            (&other, None, ["`ckpt.pt` of step 20", "before it was started"]),
            (&Resumed::Nothing, Some(40), ["began with step 1", "step 40"]),
            (&Resumed::NotKnown, Some(40), ["is not known", "step 40"]),
        ] {
            let text = sentence(seen, planned, from(Some(1))).unwrap();
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
        let outside = sentence(&Resumed::Nothing, Some(40), from(Some(51))).unwrap();
        assert!(outside.contains("began with step 51") && outside.contains("does not name"), "{outside}");
        assert_eq!(read(&Resumed::Nothing, Some(40), from(Some(51))), "unnamed");
        assert_eq!(read(&Resumed::Nothing, Some(40), from(Some(1))), "none");
        let seldom = Starts { first: Some(50), earlier: Some(50) };
        let unclear = sentence(&Resumed::Nothing, Some(40), seldom).unwrap();
        assert!(
            unclear.ends_with("it was to continue from step 40"),
            "a script that records every 50 steps: {unclear}"
        );
        assert!(
            sentence(&same_step, Some(60), from(Some(41)))
                .unwrap()
                .contains("not from the checkpoint of step 60")
        );
    }

    /// Proves that a script which read its checkpoint and began as the first attempt did not continue from it, that one
    /// which prints the step of its checkpoint once more, or step 0 at each start, did, and that it is not known where
    /// the attempts before came no further than the checkpoint.
    #[test]
    fn a_first_step_before_the_checkpoint_contradicts_the_read() {
        let other = Resumed::Other { path: "ckpt.pt".into(), step: Some(20), manifest: None };
        for (seen, steps, reached, expected) in [
            (Resumed::AsPlanned, &[1, 2][..], Some(25), Resumed::BeganAgain),
            (Resumed::AsPlanned, &[1], Some(25), Resumed::BeganAgain),
            (Resumed::AsPlanned, &[0, 21, 22], Some(25), Resumed::AsPlanned),
            (Resumed::AsPlanned, &[17, 18], Some(25), Resumed::AsPlanned),
            (Resumed::AsPlanned, &[20, 21], Some(25), Resumed::AsPlanned),
            (Resumed::AsPlanned, &[21, 22], Some(25), Resumed::AsPlanned),
            (Resumed::AsPlanned, &[], Some(25), Resumed::AsPlanned),
            (Resumed::AsPlanned, &[1, 2, 3, 21], Some(25), Resumed::AsPlanned),
            (Resumed::AsPlanned, &[1, 2, 3], Some(20), Resumed::NotKnown),
            (other.clone(), &[1, 2, 3], Some(20), Resumed::NotKnown),
            (Resumed::AsPlanned, &[1, 2], Some(3), Resumed::AsPlanned),
            (other.clone(), &[1, 2], Some(25), Resumed::BeganAgain),
            (other.clone(), &[1, 2], None, Resumed::BeganAgain),
            (other.clone(), &[5, 6], None, other.clone()),
            (other.clone(), &[21, 22], Some(25), other),
            (Resumed::Nothing, &[1, 2], Some(25), Resumed::Nothing),
        ] {
            let before = EarlierSteps { first: reached.map(|_| 1), reached, ..EarlierSteps::default() };
            let first = steps.iter().copied().min();
            let made =
                || (1..).zip(steps).map(|(second, step)| (*step, Timestamp::from_micros(second))).collect();
            let found = contradicted(seen.clone(), Some(20), first, (before, &Logs::default()), made);
            assert_eq!(found, expected, "{seen:?} {steps:?} {reached:?}");
        }
        let starts = Starts { first: Some(1), earlier: Some(1) };
        let text = sentence(&Resumed::BeganAgain, Some(20), starts).unwrap();
        assert!(text.contains("of step 20") && text.contains("began again with step 1"), "{text}");
        assert_eq!(read(&Resumed::BeganAgain, Some(20), starts), "began_again");
    }

    /// Proves that a retry which begins later than the first attempt, though no checkpoint of the run is known, is reported, and one that
    /// begins where it did is not.
    #[test]
    fn a_start_that_nothing_explains_is_reported() {
        let text =
            unexplained_start(&Resumed::NotKnown, Starts { first: Some(41), earlier: Some(1) }).unwrap();
        assert!(["step 41", "step 1:", "checkpoint.adopt"].iter().all(|part| text.contains(part)), "{text}");
        for (seen, first, earlier) in [
            (Resumed::NotKnown, Some(1), Some(1)),
            (Resumed::NotKnown, Some(41), None),
            (Resumed::NotKnown, None, Some(1)),
            (Resumed::AsPlanned, Some(41), Some(1)),
        ] {
            assert_eq!(unexplained_start(&seen, Starts { first, earlier }), None);
        }
    }
}
