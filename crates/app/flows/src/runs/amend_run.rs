//! What a run is called and how lists show it: its name, note and tags, and whether it is hidden. That may change at any time; the
//! receipts of its attempts do not, and each change stays beside the run.

use std::collections::BTreeMap;

use trackway_api::runs::AmendedRun;
use trackway_core::name::Name;
use trackway_core::{Clock as _, Ids as _, RunId};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::rows::run_amendment;
use trackway_formats::layout::RowCopy;
use trackway_ledger::{KeptRows, RunAmendmentRow, RunField, RunRow};

/// Bytes of a note, at most.
pub const NOTE_BYTES_MAX: usize = 16 << 10;

/// What to change; what is empty stays as it is.
#[derive(Debug, Clone, Default)]
pub struct RunChanges {
    pub name: Option<Name>,
    /// Its note; an empty one removes it.
    pub note: Option<String>,
    /// Tags to set.
    pub tags: BTreeMap<String, String>,
    /// Tags to remove.
    pub untag: Vec<String>,
    /// Whether lists leave it out.
    pub hidden: Option<bool>,
    pub why: Option<String>,
}

/// Changes a run. What is so already is not changed again.
///
/// # Errors
/// [`ErrorKind::NotFound`]; [`ErrorKind::Usage`] for a tag to remove that the run does not have, and for a note that is too long.
pub fn amend_run(context: &Context, run_id: RunId, changes: &RunChanges) -> Result<AmendedRun, AppError> {
    let run = context.run_by_id(run_id)?;
    let tags = tags_of(context, &run)?;
    let mut rows = Vec::new();
    for (field, tag, old_text, new_text) in differences(context, &run, &tags, changes)? {
        rows.push(RunAmendmentRow {
            amendment_id: format!("amd_{:032x}", context.ids.next_ulid()),
            run_id,
            at: context.clock.now(),
            author: context.request.actor.name_or_unknown(),
            field,
            tag,
            old_text,
            new_text,
            why: changes.why.as_deref().map(|why| context.redactor.text(why).into_owned()),
        });
    }
    let run = match rows.first() {
        None => run,
        Some(first) => {
            let changed = context.ledger_write(|ledger| ledger.amend_run(run_id, &rows))?;
            let copy = RowCopy::AmendedRun(&first.amendment_id);
            context.keep(run_id, copy, &KeptRows::of(&rows));
            changed
        }
    };
    Ok(AmendedRun {
        run_id,
        tags: tags_of(context, &run)?,
        name: run.name,
        note: run.note,
        hidden_at: run.hidden_at,
        changes: rows.into_iter().map(run_amendment).collect(),
    })
}

/// A change: the field, the name of the tag, what it was, and what it is from now on.
type Difference = (RunField, Option<String>, Option<String>, Option<String>);

/// What differs from how the run is now.
fn differences(
    context: &Context,
    run: &RunRow,
    tags: &BTreeMap<String, String>,
    changes: &RunChanges,
) -> Result<Vec<Difference>, AppError> {
    let mut found: Vec<Difference> = Vec::new();
    if let Some(name) = &changes.name {
        let name = context.redactor.text(name.as_str()).into_owned();
        found.push((RunField::Name, None, Some(run.name.clone()), Some(name)));
    }
    if let Some(note) = &changes.note {
        if note.len() > NOTE_BYTES_MAX {
            let message = format!("the note has {} bytes: {NOTE_BYTES_MAX} is the limit", note.len());
            return Err(AppError::new(ErrorKind::Usage, message).hint("note where the text is instead"));
        }
        let note = Some(context.redactor.text(note.trim()).into_owned()).filter(|note| !note.is_empty());
        found.push((RunField::Note, None, run.note.clone(), note));
    }
    for (name, value) in &changes.tags {
        let value = context.redactor.value(name, value).into_owned();
        found.push((RunField::Tag, Some(name.clone()), tags.get(name).cloned(), Some(value)));
    }
    for name in &changes.untag {
        let Some(value) = tags.get(name) else {
            let known: Vec<&str> = tags.keys().map(String::as_str).collect();
            let message = format!("run `{}` has no tag `{name}`", run.name);
            return Err(AppError::new(ErrorKind::Usage, message).hint(match known.is_empty() {
                true => "it has no tags".into(),
                false => format!("its tags: {}", known.join(", ")),
            }));
        };
        found.push((RunField::Tag, Some(name.clone()), Some(value.clone()), None));
    }
    if let Some(hidden) = changes.hidden {
        let word = |is: bool| is.then(|| "true".to_owned());
        found.push((RunField::Hidden, None, word(run.hidden_at.is_some()), word(hidden)));
    }
    found.retain(|(_, _, old, new)| old != new);
    Ok(found)
}

fn tags_of(context: &Context, run: &RunRow) -> Result<BTreeMap<String, String>, AppError> {
    Ok(context.tags_of_runs(std::slice::from_ref(run))?.remove(&run.run_id).unwrap_or_default())
}
