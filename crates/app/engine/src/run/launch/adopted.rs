//! Before a launch of a script that writes its own checkpoints: the one to continue from is where the script looks for it, and nothing
//! torn is in its way.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;

use serde_json::json;
use trackway_adopt::{
    Adopter, AdopterSpec, Cleared, Clearing, Facts, MovedAside, Patterns, RestoreError, RestoredCheckpoint,
    Saves,
};
use trackway_checkpoint::LoadedCheckpoint;
use trackway_core::text::counted;
use trackway_core::{Clock as _, LaunchKind};
use trackway_formats::EventKind;
use trackway_formats::path_text::{path_of, text_of, without_escapes};
use trackway_formats::runfile::CheckpointSection;
use trackway_launch::{Adopt, ContinuesFrom, StoredLaunch};
use trackway_ledger::{AttemptRow, EventRow};

use super::adopted_history::{history_of, past_of, steps_of};
use crate::Context;
use crate::checkpoints::view;
use crate::error::{AppError, ErrorKind};
use crate::reporter::Reporter;
use crate::run::prepare::adopt_patterns::{adopt_of, patterns_of_job};
use crate::run::prepare::begin::Prepared;
use crate::run::trust;

/// Most paths and patterns that a person is shown at the end of an attempt.
const SHOWN_MAX: usize = 3;

/// What a launch gets so that its checkpoints are adopted, and so that it continues from one.
#[derive(Debug, Clone, Default)]
pub(super) struct Adoption {
    /// Which checkpoints that the script writes itself are committed.
    pub adopt: Adopt,
    pub continues_from: Option<ContinuesFrom>,
    /// Words that are added to the command.
    pub args: Vec<OsString>,
    /// Variables that are added to the environment.
    pub environment: BTreeMap<String, OsString>,
    /// What was done, to be recorded once the attempt is in the ledger.
    events: Vec<EventRow>,
}

impl Adoption {
    /// Writes down what was done for an attempt that the ledger has now.
    ///
    /// # Errors
    /// When the ledger fails.
    pub fn record(&self, context: &Context) -> Result<(), AppError> {
        self.events
            .iter()
            .try_for_each(|event| context.ledger_write(|ledger| ledger.append_event(event)).map(|_| ()))
    }

    /// Lets the script find `target`, which is where `restored` says.
    fn continues_from(
        &mut self,
        context: &Context,
        prepared: &Prepared,
        row: &AttemptRow,
        target: &LoadedCheckpoint,
        restored: &RestoredCheckpoint,
        patterns: &Patterns,
    ) {
        let path = patterns.shown(&restored.path);
        let how = if restored.written { "was written again to" } else { "is whole at" };
        let message = format!("the checkpoint of step {} {how} `{path}`", target.step);
        let fields = json!({ "path": path, "manifest_sha256": target.info.manifest_sha256 });
        let put_back = event(context, row, EventKind::CheckpointPutBack, &path, message, fields);
        self.events.push(EventRow { step: Some(target.step), ..put_back });
        if let Some(resume) = &prepared.job.plan.checkpoint.resume {
            (self.args, self.environment) = resume.at(&path_of(&path));
        }
        self.continues_from = Some(ContinuesFrom { number: target.info.number, path });
    }

    fn cleared(&mut self, context: &Context, row: &AttemptRow, cleared: &Cleared, reporter: &dyn Reporter) {
        cleared.moved.iter().for_each(|one| self.moved(context, row, one, reporter));
        for (path, why) in cleared.unread.iter().take(SHOWN_MAX) {
            reporter.note(format!("`{path}` could not be looked into and is left as it is: {why}"));
        }
    }

    fn moved(&mut self, context: &Context, row: &AttemptRow, moved: &MovedAside, reporter: &dyn Reporter) {
        let MovedAside { path, to, why } = moved;
        let to = text_of(to.strip_prefix(context.home.layout.folder()).unwrap_or(to));
        let text =
            format!("`{path}` was moved to `{to}`, so that the script does not continue from it: {why}");
        let fields = json!({ "path": path, "to": to, "why": why });
        self.events.push(event(context, row, EventKind::CheckpointMovedAside, path, text.clone(), fields));
        reporter.note(text);
    }
}

/// Makes the checkpoint of `row` what the script will find; `loaded`: that one, if it was verified just now. In the first attempt of a run
/// nothing of the user's is touched.
pub(super) fn prepare(
    context: &Context,
    prepared: &Prepared,
    previous: Option<&AttemptRow>,
    (row, loaded): (&AttemptRow, Option<LoadedCheckpoint>),
    reporter: &dyn Reporter,
) -> Result<Adoption, AppError> {
    let Some(patterns) = patterns_of(context, prepared, row.kind)? else { return Ok(Adoption::default()) };
    let mut adoption = Adoption { adopt: adopt_of(&prepared.job.plan.checkpoint), ..Adoption::default() };
    let Some(previous) = previous else { return Ok(adoption) };
    let quarantine = context.home.layout.attempt(row.attempt_id).quarantine();
    let history = history_of(context, row)?;
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
    let begins_again = match row.resumed_from_step {
        None => trust::begins_again(
            &view(&context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung))?.skipped(),
        ),
        Some(_) => None,
    };
    let target = match loaded {
        None => fetched(context, row)?,
        loaded => loaded,
    };
    let cleared = match (target, previous.rung == row.rung) {
        (Some(target), _) => match clearing.put_back(&target) {
            // It was saved through Trackway: the script loads it.
            Err(RestoreError::NotAdopted) => return Ok(adoption),
            restored => {
                let restored = restored.map_err(failed)?;
                adoption.continues_from(context, prepared, row, &target, &restored, &patterns);
                restored.cleared
            }
        },
        // The script would continue from it.
        (None, true) if begins_again.is_some() => clearing
            .clear_all("no committed checkpoint is safe, and the training begins again")
            .map_err(failed)?,
        (None, true) => clearing.clear_torn().map_err(failed)?,
        (None, false) => clearing.clear_all("it is of the rung before").map_err(failed)?,
    };
    adoption.cleared(context, row, &cleared, reporter);
    Ok(adoption)
}

fn patterns_of(
    context: &Context,
    prepared: &Prepared,
    kind: LaunchKind,
) -> Result<Option<Patterns>, AppError> {
    if kind == LaunchKind::Train { patterns_of_job(context, &prepared.job) } else { Ok(None) }
}

/// The checkpoint that the attempt is to continue from, verified, where it came from a remote.
fn fetched(context: &Context, row: &AttemptRow) -> Result<Option<LoadedCheckpoint>, AppError> {
    let Some(manifest) = &row.resumed_from_manifest_sha256 else { return Ok(None) };
    let view = view(&context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung))?;
    let found = view.list().into_iter().rev().find(|info| info.manifest_sha256.as_ref() == Some(manifest));
    found
        .map(|info| view.load(info.number))
        .transpose()
        .map_err(|error| AppError::new(ErrorKind::Integrity, "not launched").because(error))
}

/// Reports what became of the checkpoints that an attempt wrote itself: what was not committed, and, where nothing was
/// configured, how to make what was found permanent.
pub(in crate::run) fn report(section: &CheckpointSection, events: &[EventRow], reporter: &dyn Reporter) {
    let of_kind = |kind: EventKind| events.iter().filter(move |event| kind.is(&event.kind));
    let refused: BTreeSet<String> = of_kind(EventKind::CheckpointNotAdopted)
        .map(|event| {
            let (path, why) = (event.field("path").unwrap_or(""), event.field("why").unwrap_or(""));
            format!("`{path}` was not committed as a checkpoint: {why}")
        })
        .collect();
    refused.into_iter().take(SHOWN_MAX).for_each(|text| reporter.note(text));
    report_not_own(&of_kind(EventKind::CheckpointCandidate).collect::<Vec<_>>(), reporter);
    let adopted: Vec<&EventRow> = of_kind(EventKind::CheckpointAdopted).collect();
    let Some((newest, at)) = adopted.last().and_then(|event| Some((event.step?, event.field("path")?)))
    else {
        return;
    };
    if section.adopt.is_some() {
        return;
    }
    let patterns = adopted_patterns(events);
    let patterns: Vec<String> = patterns.iter().take(SHOWN_MAX).map(|it| json!(it).to_string()).collect();
    let count = adopted.len() as u64;
    reporter.note(format!(
        "{} that the script wrote itself {} committed, the newest of step {newest} from `{at}`; to say so in a run file: [checkpoint] adopt = [{}]",
        counted(count, "checkpoint"),
        if count == 1 { "was" } else { "were" },
        patterns.join(", ")
    ));
}

/// Names what is found where the script has its checkpoints and is not shown to be the script's, each path once.
fn report_not_own(events: &[&EventRow], reporter: &dyn Reporter) {
    let by_path: BTreeMap<&str, &str> =
        events.iter().filter_map(|event| Some((event.field("path")?, event.field("why")?))).collect();
    for (path, why) in by_path.iter().take(SHOWN_MAX) {
        reporter.note(format!("`{path}` was not committed and stays where it is: {why}"));
    }
    if let Some(more) = by_path.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        reporter.note(format!("{more} more like that: see `checkpoint_candidate` in `trackway explain`"));
    }
}

/// The values of `checkpoint.adopt` that name every checkpoint that these events say was adopted.
#[must_use]
pub fn adopted_patterns(events: &[EventRow]) -> Vec<String> {
    let adopted = events.iter().filter(|event| EventKind::CheckpointAdopted.is(&event.kind));
    let paths: Vec<String> = adopted.flat_map(paths_of).collect();
    naming(&paths.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The path of a checkpoint that was adopted, and those of the files beside it that hold the rest of its state.
fn paths_of(event: &EventRow) -> Vec<String> {
    let Some(path) = event.field("path") else { return Vec::new() };
    let folder = path.rfind('/').map_or("", |at| &path[..=at]);
    let beside = event.field("beside").into_iter().flat_map(|names| names.split('/'));
    [path.to_owned()].into_iter().chain(beside.map(|name| format!("{folder}{name}"))).collect()
}

/// Before a number that grows while a script trains.
const COUNTED: [&str; 5] = ["epoch", "step", "steps", "iter", "iteration"];

/// Whether the number behind this text counts what was trained: `epoch=3`, `step_40`.
fn is_counted(text: &str) -> bool {
    let name = text.trim_end_matches(['=', '-', '_']).to_ascii_lowercase();
    let word = name.rsplit(|char: char| !char.is_ascii_alphabetic()).next().unwrap_or_default();
    COUNTED.contains(&word)
}

/// Patterns for these paths, in order. Of paths that differ only in numbers, each number that differs becomes `*`, and
/// the last one and what counts steps or epochs in any case: `out/checkpoint-40` is one of `out/checkpoint-*`.
fn naming(paths: &[&str]) -> Vec<String> {
    let mut alike: BTreeMap<Vec<&str>, Vec<Vec<&str>>> = BTreeMap::new();
    for path in paths {
        let (texts, numbers) = texts_and_numbers(path);
        alike.entry(texts).or_default().push(numbers);
    }
    let patterns = alike.iter().map(|(texts, numbers)| {
        let last = numbers[0].len().saturating_sub(1);
        let differs = |place: usize| numbers.iter().any(|one| one[place] != numbers[0][place]);
        let part = |(place, number): (usize, &&str)| {
            let is_open = place == last || differs(place) || is_counted(texts[place]);
            format!("{}{}", texts[place], if is_open { "*" } else { *number })
        };
        numbers[0].iter().enumerate().map(part).collect::<String>() + texts[numbers[0].len()]
    });
    patterns.collect::<BTreeSet<String>>().into_iter().collect()
}

/// The numbers in a path, and the text before each of them and after the last: one text more than numbers. Those of escapes are none.
fn texts_and_numbers(path: &str) -> (Vec<&str>, Vec<&str>) {
    let is_digit = |char: char| char.is_ascii_digit();
    let (mut texts, mut numbers, mut from) = (Vec::new(), Vec::new(), 0);
    let plain = without_escapes(path);
    while let Some(length) = plain[from..].find(is_digit) {
        let start = from + length;
        let end = plain[start..].find(|char| !is_digit(char)).map_or(path.len(), |length| start + length);
        texts.push(&path[from..start]);
        numbers.push(&path[start..end]);
        from = end;
    }
    texts.push(&path[from..]);
    (texts, numbers)
}

/// Commits what an attempt wrote whose shim ended before it, as after a power failure: nothing else followed it.
///
/// Nothing is done for an attempt that has an exit record.
pub(super) fn adopt_what_is_left(
    context: &Context,
    prepared: &Prepared,
    previous: &AttemptRow,
    reporter: &dyn Reporter,
) -> Result<(), AppError> {
    let files = context.home.layout.attempt(previous.attempt_id);
    let (Some(started_at), Some(epoch)) = (previous.started_at, previous.epoch) else { return Ok(()) };
    if files.exit_json().exists() {
        return Ok(());
    }
    let Some(patterns) = patterns_of(context, prepared, previous.kind)? else { return Ok(()) };
    let spec = AdopterSpec {
        patterns,
        checkpoint_root: context.home.layout.checkpoint_root(previous.run_id, previous.kind, &previous.rung),
        run_id: previous.run_id,
        attempt_id: previous.attempt_id,
        epoch,
        parent: StoredLaunch::read(files.folder())
            .ok()
            .flatten()
            .and_then(|launch| launch.details.continues_from)
            .map(|from| from.number),
        // Its processes have ended: no file has to be quiet for a time first.
        quiet_ns: 0,
    };
    let past = past_of(context, previous.attempt_id, previous.started_at);
    let steps = steps_of(&files);
    let reached = |modified_ns| match steps.is_empty() {
        true => previous.last_step,
        false => steps.before_written(modified_ns),
    };
    let mut adopter =
        Adopter::of_ended(spec, started_at.as_nanos(), Arc::clone(&context.clock), Arc::clone(&context.ids));
    let facts = Facts {
        at_ns: 0,
        saves: &Saves::default(),
        step_when_written: &reached,
        step_slack: steps.slack(),
        writers: &|files, _| past.seen(files),
        writers_ended: true,
        is_open_for_writing: &|_| Some(false),
        is_interrupted: &|| false,
    };
    let look = adopter.look(&facts);
    for adopted in &look.adopted {
        reporter.note(format!(
            "the checkpoint of step {} in `{}` was committed now: the attempt ended before it could be",
            adopted.commit.step, adopted.path
        ));
    }
    Ok(())
}

fn event(
    context: &Context,
    row: &AttemptRow,
    kind: EventKind,
    path: &str,
    message: String,
    fields: serde_json::Value,
) -> EventRow {
    EventRow {
        event_id: format!("{}:{kind}:{path}", row.attempt_id),
        fields_json: Some(fields),
        ..EventRow::of_attempt(row, kind, context.clock.now(), message)
    }
}

fn failed(error: RestoreError) -> AppError {
    let (kind, hint) = match &error {
        RestoreError::Occupied { path, .. } => (
            ErrorKind::Blocked,
            format!("move `{path}` away, and resume the run again; the committed checkpoint is kept"),
        ),
        _ => (
            ErrorKind::Fault,
            "free the disk, or start a new run; the committed checkpoint is kept".to_owned(),
        ),
    };
    AppError::new(kind, "the checkpoint to continue from could not be put back").because(error).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that numbers that differ between checkpoints become the open part of a pattern, the last one also of a
    /// single checkpoint, and that a path without a number names itself.
    #[test]
    fn numbers_that_differ_are_open() {
        let cases: [(&[&str], &[&str]); 11] = [
            (&["out/checkpoint-40"], &["out/checkpoint-*"]),
            (&["v2/epoch=3-step=120.ckpt"], &["v2/epoch=*-step=*.ckpt"]),
            (&["v2/model_Epoch_3_acc_81.pt"], &["v2/model_Epoch_*_acc_*.pt"]),
            (&["seed3/resnet50-e7.pt"], &["seed3/resnet50-e*.pt"]),
            (&["v2/epoch=3-step=120.ckpt", "v2/epoch=4-step=160.ckpt"], &["v2/epoch=*-step=*.ckpt"]),
            (&["ckpt.pt"], &["ckpt.pt"]),
            (&["ckpt.pt", "last.pt"], &["ckpt.pt", "last.pt"]),
            (&["7"], &["*"]),
            (&["a-\\x89-10.pt", "a-\\x89-20.pt"], &["a-\\x89-*.pt"]),
            (&["a1/b2", "a3/b2"], &["a*/b*"]),
            (&[], &[]),
        ];
        for (paths, patterns) in cases {
            assert_eq!(naming(paths), patterns);
        }
    }
}
