//! A person decides about an unsafe checkpoint: uses it all the same, or finds that it is not unsafe. The reason is recorded.

use serde_json::json;
use trackway_core::{CheckpointState, CheckpointUse, Clock as _, Step};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::EventKind;
use trackway_ledger::EventRow;
use trackway_redact::Redactor;

use super::remote_view::{PlacedCheckpoint, Remote};
use super::{Checkpoints, Chosen};

impl Checkpoints {
    /// Records that a person used an unsafe checkpoint, and why; for one that is not unsafe nothing.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn note_accepted(
        &self,
        context: &Context,
        chosen: &Chosen,
        purpose: CheckpointUse,
        why: Option<&str>,
    ) -> Result<(), AppError> {
        let Some(why) = why.filter(|_| chosen.state == CheckpointState::Unsafe) else { return Ok(()) };
        let what = format!("{purpose} although it is unsafe");
        self.note(context, chosen.step, &format!("{purpose}:{}", chosen.manifest_sha256), (&what, why))
    }

    /// Marks that a checkpoint is not unsafe any more, at the remote too; of one step, or the newest that is unsafe.
    /// Nothing marks it again.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when none is unsafe; when the remote does not answer: then the mark stays.
    pub fn clear_unsafe(&self, context: &Context, step: Option<Step>, why: &str) -> Result<Step, AppError> {
        let why = Redactor::of_this_process().text(why).into_owned();
        let actor = &context.request.actor;
        let by = actor.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let remote = self.demand_remote()?.map_or(Remote::None, Remote::Answers);
        let placed = self.placed(self.view()?.list(), &remote, false);
        let is_meant = |one: &&PlacedCheckpoint| {
            one.info.state == CheckpointState::Unsafe && step.is_none_or(|step| one.info.step == step)
        };
        let found = placed.iter().filter(is_meant).max_by_key(|one| (one.info.epoch, one.info.number));
        let Some(PlacedCheckpoint { info, .. }) = found else {
            let which = step.map(|step| format!(" of step {step}")).unwrap_or_default();
            let message = format!("{} has no unsafe checkpoint{which}", self.title());
            return Err(AppError::new(ErrorKind::NotFound, message)
                .hint(format!("see which there are with: trackway checkpoint ls {}", self.subject)));
        };
        let reason = format!("{by}{why}");
        let cleared = match remote {
            Remote::Answers(mut there) => there.replica.clear_unsafe(&info.object_prefix, &reason),
            _ => self.housekeeper()?.clear_unsafe(info.number, &reason),
        };
        cleared.map_err(|error| self.error(error))?;
        self.note(context, info.step, &format!("clear:{}", info.object_prefix), ("clear", &why))?;
        Ok(info.step)
    }

    fn note(
        &self,
        context: &Context,
        step: Step,
        key: &str,
        (what, why): (&str, &str),
    ) -> Result<(), AppError> {
        let Some(run) = &self.run else { return Ok(()) };
        let why = context.redactor.text(why);
        let person = context.request.actor.name.as_deref();
        let by = person.map(|name| format!(" by {name}")).unwrap_or_default();
        let message = format!("unsafe checkpoint of step {step}, {what}{by}: {why}");
        let now = context.clock.now();
        let event = EventRow {
            event_id: format!(
                "{}:{}:{key}:{}",
                run.row.run_id,
                EventKind::CheckpointAccepted,
                now.to_rfc3339()
            ),
            step: Some(step),
            fields_json: Some(json!({ "use": what, "why": why, "person": person })),
            ..EventRow::of_run(run.row.run_id, EventKind::CheckpointAccepted, now, message)
        };
        context.ledger_write(|ledger| ledger.append_event(&event)).map(|_| ())
    }
}
