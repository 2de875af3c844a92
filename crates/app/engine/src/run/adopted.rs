//! Before a launch of a script that writes its own checkpoints: the one to continue from is where the script looks for it, and nothing
//! torn is in its way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use trackway_adopt::{
    Adopter, AdopterSpec, Clearing, Facts, MovedAside, Patterns, RestoreError, Restored, Saves,
};
use trackway_checkpoint::LoadedCheckpoint;
use trackway_core::text::counted;
use trackway_core::{Clock as _, LaunchKind, Timestamp};
use trackway_formats::EventKind;
use trackway_formats::runfile::CheckpointSection;
use trackway_launch::{Adopt, ContinuesFrom, StoredLaunch};
use trackway_ledger::{AttemptRow, EventRow};

use super::prepare::Prepared;
use super::trust;
use crate::Context;
use crate::checkpoints::view;
use crate::error::{AppError, ErrorKind};
use crate::reporter::Reporter;

/// Most paths and patterns that a person is shown at the end of an attempt.
const SHOWN_MAX: usize = 3;

/// What a launch gets so that its checkpoints are adopted, and so that it continues from one.
#[derive(Debug, Clone, Default)]
pub(super) struct Adoption {
    /// Which checkpoints that the script writes itself are committed.
    pub adopt: Adopt,
    /// What it continues from.
    pub continues_from: Option<ContinuesFrom>,
    /// Words that are added to the command.
    pub args: Vec<String>,
    /// Variables that are added to the environment.
    pub environment: BTreeMap<String, String>,
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
        restored: &Restored,
        patterns: &Patterns,
    ) {
        let path = patterns.shown(&restored.path);
        let how = if restored.written { "was written again to" } else { "is whole at" };
        let message = format!("the checkpoint of step {} {how} `{path}`", target.step);
        let fields = json!({ "path": path, "manifest_sha256": target.info.manifest_sha256 });
        let put_back = event(context, row, EventKind::CheckpointPutBack, &path, message, fields);
        self.events.push(EventRow { step: Some(target.step), ..put_back });
        if let Some(resume) = &prepared.job.plan.checkpoint.resume {
            (self.args, self.environment) = resume.at(&path);
        }
        self.continues_from = Some(ContinuesFrom { number: target.info.number, path });
    }

    fn moved(&mut self, context: &Context, row: &AttemptRow, moved: &MovedAside, reporter: &dyn Reporter) {
        let MovedAside { path, to, why } = moved;
        let to = context.home.layout.below(to);
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
    let begins_again = match row.resumed_from_step {
        None => trust::begins_again(
            &view(&context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung))?.skipped(),
        ),
        Some(_) => None,
    };
    let since_ns = match patterns.is_detecting() || previous.rung != row.rung || begins_again.is_some() {
        true => context.run_by_id(row.run_id)?.started_at.map(Timestamp::as_nanos),
        false => None,
    };
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, since_ns };
    let target = match loaded {
        None => fetched(context, row)?,
        loaded => loaded,
    };
    let moved = match (target, previous.rung == row.rung) {
        (Some(target), _) => match clearing.put_back(&target) {
            // It was saved through Trackway: the script loads it.
            Err(RestoreError::NotAdopted) => return Ok(adoption),
            restored => {
                let restored = restored.map_err(|error| failed(&error))?;
                adoption.continues_from(context, prepared, row, &target, &restored, &patterns);
                restored.moved
            }
        },
        // The script would continue from it.
        (None, true) if begins_again.is_some() => clearing
            .clear_all("it is of a step that is unsafe, and the training begins again")
            .map_err(|error| failed(&error))?,
        (None, true) => clearing.clear_torn().map_err(|error| failed(&error))?,
        (None, false) => clearing.clear_all("it is of the rung before").map_err(|error| failed(&error))?,
    };
    moved.iter().for_each(|one| adoption.moved(context, row, one, reporter));
    Ok(adoption)
}

/// Which checkpoints of the script's own a run adopts. A cadence says that the script saves through Trackway.
pub(super) fn adopt_of(section: &CheckpointSection) -> Adopt {
    match &section.adopt {
        Some(paths) if paths.is_empty() => Adopt::Nothing,
        Some(paths) => Adopt::Paths(paths.clone()),
        None if section.has_cadence() => Adopt::Nothing,
        None => Adopt::Detected,
    }
}

fn patterns_of(
    context: &Context,
    prepared: &Prepared,
    kind: LaunchKind,
) -> Result<Option<Patterns>, AppError> {
    if kind != LaunchKind::Train {
        return Ok(None);
    }
    let adopt = adopt_of(&prepared.job.plan.checkpoint);
    adopt.patterns(&prepared.job.working_directory(), context.home.layout.folder()).map_err(|error| {
        let message =
            format!("`checkpoint.adopt` has `{}`, which is not a pattern: {}", error.pattern, error.why);
        AppError::new(ErrorKind::Usage, message)
    })
}

/// The checkpoint that the attempt is to continue from, verified, where it came from a remote.
fn fetched(context: &Context, row: &AttemptRow) -> Result<Option<LoadedCheckpoint>, AppError> {
    let Some(manifest) = &row.resumed_from_manifest_sha256 else { return Ok(None) };
    let view = view(&context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung))?;
    let found = view.list().into_iter().rev().find(|info| info.manifest_sha256.as_ref() == Some(manifest));
    found
        .map(|info| view.load(info.number))
        .transpose()
        .map_err(|error| AppError::new(ErrorKind::Integrity, format!("not launched: {error}")))
}

/// Reports what became of the checkpoints that an attempt wrote itself: what was not committed, and, where nothing was configured, how to make what
/// was found permanent.
pub(super) fn report(section: &CheckpointSection, events: &[EventRow], reporter: &dyn Reporter) {
    let of_kind = |kind: EventKind| events.iter().filter(move |event| kind.is(&event.kind));
    let refused: BTreeSet<String> = of_kind(EventKind::CheckpointNotAdopted)
        .map(|event| {
            let (path, why) = (event.field("path").unwrap_or(""), event.field("why").unwrap_or(""));
            format!("`{path}` was not committed as a checkpoint: {why}")
        })
        .collect();
    refused.into_iter().take(SHOWN_MAX).for_each(|text| reporter.note(text));
    let adopted: Vec<&EventRow> = of_kind(EventKind::CheckpointAdopted).collect();
    let Some((newest, at)) = adopted.last().and_then(|event| Some((event.step?, event.field("path")?)))
    else {
        return;
    };
    if section.adopt.is_some() {
        return;
    }
    let patterns = adopted_patterns(events);
    let patterns: Vec<String> = patterns.iter().take(SHOWN_MAX).map(|it| format!("\"{it}\"")).collect();
    let count = adopted.len() as u64;
    reporter.note(format!(
        "{} that the script wrote itself {} committed, the newest of step {newest} from `{at}`; to say so in a run file: [checkpoint] adopt = [{}]",
        counted(count, "checkpoint"),
        if count == 1 { "was" } else { "were" },
        patterns.join(", ")
    ));
}

/// The values of `checkpoint.adopt` that name every checkpoint that these events say was adopted.
#[must_use]
pub fn adopted_patterns(events: &[EventRow]) -> Vec<String> {
    let adopted = events.iter().filter(|event| EventKind::CheckpointAdopted.is(&event.kind));
    naming(&adopted.filter_map(|event| event.field("path")).collect::<Vec<_>>())
}

/// Patterns for these paths, in order. Of paths that differ only in numbers, each number that differs becomes `*`, and the last one in any case:
/// `out/checkpoint-40` is one of `out/checkpoint-*`.
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
            let is_open = place == last || differs(place);
            format!("{}{}", texts[place], if is_open { "*" } else { *number })
        };
        numbers[0].iter().enumerate().map(part).collect::<String>() + texts[numbers[0].len()]
    });
    patterns.collect::<BTreeSet<String>>().into_iter().collect()
}

/// The numbers in a path, and the text before each of them and after the last: one text more than numbers.
fn texts_and_numbers(path: &str) -> (Vec<&str>, Vec<&str>) {
    let is_digit = |char: char| char.is_ascii_digit();
    let (mut texts, mut numbers, mut rest) = (Vec::new(), Vec::new(), path);
    while let Some(start) = rest.find(is_digit) {
        let end = rest[start..].find(|char| !is_digit(char)).map_or(rest.len(), |length| start + length);
        texts.push(&rest[..start]);
        numbers.push(&rest[start..end]);
        rest = &rest[end..];
    }
    texts.push(rest);
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
        quiet_ns: 0,
    };
    let mut adopter =
        Adopter::of_ended(spec, started_at.as_nanos(), Arc::clone(&context.clock), Arc::clone(&context.ids));
    let facts = Facts {
        at_ns: 0,
        saves: &Saves::default(),
        step_when_written: &|_| previous.last_step,
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

fn failed(error: &RestoreError) -> AppError {
    AppError::new(ErrorKind::Fault, format!("the checkpoint to continue from could not be put back: {error}"))
        .hint("free the disk, or start a new run; the committed checkpoint is kept")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that numbers that differ between checkpoints become the open part of a pattern, the last one also of a single checkpoint, and that
    /// a path without a number names itself.
    #[test]
    fn numbers_that_differ_are_open() {
        let cases: [(&[&str], &[&str]); 8] = [
            (&["out/checkpoint-40"], &["out/checkpoint-*"]),
            (&["v2/epoch=3-step=120.ckpt"], &["v2/epoch=3-step=*.ckpt"]),
            (&["v2/epoch=3-step=120.ckpt", "v2/epoch=4-step=160.ckpt"], &["v2/epoch=*-step=*.ckpt"]),
            (&["ckpt.pt"], &["ckpt.pt"]),
            (&["ckpt.pt", "last.pt"], &["ckpt.pt", "last.pt"]),
            (&["7"], &["*"]),
            (&["a1/b2", "a3/b2"], &["a*/b*"]),
            (&[], &[]),
        ];
        for (paths, patterns) in cases {
            assert_eq!(naming(paths), patterns);
        }
    }
}
