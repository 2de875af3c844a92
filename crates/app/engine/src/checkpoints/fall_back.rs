//! What stepping back to an older checkpoint costs: steps that are trained again, and what those take.

use trackway_api::checkpoints::FallBackCost;
use trackway_checkpoint::{CheckpointInfo, LoadedCheckpoint};
use trackway_core::Step;
use trackway_ledger::AttemptRow;

/// How long a step takes, measured over the attempts of a run that ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    seconds_per_step: f64,
    gpu_seconds_per_step: f64,
}

impl Pace {
    /// None before an attempt ended that made a step, and where checkpoints count something else than the steps that
    /// are recorded, such as updates beside epochs.
    pub fn measured<'a>(attempts: impl IntoIterator<Item = &'a AttemptRow>) -> Option<Self> {
        let mut sums = PaceSums::default();
        attempts.into_iter().for_each(|attempt| sums.take(attempt));
        sums.pace()
    }
}

/// What a pace is measured by: the attempts of a run, added up one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct PaceSums {
    steps: Step,
    seconds: f64,
    gpu_seconds: f64,
    /// Checkpoints count something else than the steps that are recorded, such as updates beside epochs.
    counts_otherwise: bool,
}

impl PaceSums {
    /// Adds an attempt. Start-up counts with the steps: it comes again too.
    pub fn take(&mut self, attempt: &AttemptRow) {
        let (Some(last), Some(wall_seconds)) = (attempt.last_step, attempt.wall_seconds) else { return };
        let committed = attempt.last_committed_step;
        self.counts_otherwise |= committed.is_some_and(|committed| committed > last.saturating_mul(2));
        let made = last.saturating_sub(attempt.resumed_from_step.unwrap_or(0));
        if made > 0 {
            self.steps = self.steps.saturating_add(made);
            self.seconds += wall_seconds;
            self.gpu_seconds += attempt.gpu_seconds.unwrap_or(0.0);
        }
    }

    /// The pace of those that were added.
    pub fn pace(&self) -> Option<Pace> {
        let steps = self.steps as f64;
        (self.steps > 0 && !self.counts_otherwise).then(|| Pace {
            seconds_per_step: self.seconds / steps,
            gpu_seconds_per_step: self.gpu_seconds / steps,
        })
    }
}

/// What training so many steps again takes.
#[must_use]
pub fn fall_back_cost(steps: Step, pace: Option<Pace>) -> FallBackCost {
    let times = |per_step: f64| per_step * steps as f64;
    FallBackCost {
        steps,
        seconds: pace.map(|pace| times(pace.seconds_per_step)),
        gpu_hours: pace.map(|pace| times(pace.gpu_seconds_per_step) / 3600.0),
    }
}

/// The message before the launch of an attempt that steps back.
pub fn notice(loaded: &LoadedCheckpoint, pace: Option<Pace>) -> Option<String> {
    let newest = loaded.fallbacks.first()?;
    let what = newest.step.map_or_else(|| "a newer checkpoint".into(), |step| format!("step {step}"));
    let cost = fall_back_cost(loaded.lost_steps, pace).sentence();
    Some(format!("falling back to step {}, because {what} is skipped ({}): {cost}", loaded.step, newest.why))
}

/// What an attempt skipped when it resumed, as the log has it now: the newest step that was suspect, why, and the steps
/// between.
pub fn skipped_newer<'a>(
    infos: &'a [CheckpointInfo],
    attempt: &AttemptRow,
) -> Option<(&'a CheckpointInfo, Step)> {
    let manifest = attempt.resumed_from_manifest_sha256.as_ref()?;
    let taken = infos.iter().find(|info| info.manifest_sha256.as_ref() == Some(manifest))?;
    let passed = infos.iter().filter(|info| {
        let before = attempt.epoch.is_none_or(|epoch| info.epoch < epoch);
        let committed = info.manifest_sha256.is_some() && info.why.is_some();
        before && committed && info.number > taken.number && info.step > taken.step
    });
    passed.max_by_key(|info| info.step).map(|info| (info, info.step - taken.step))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds, Timestamp};
    use trackway_ledger::RunRow;

    use super::*;

    /// Proves that the pace is measured over steps that count the same as the checkpoints, and that nothing is said where they do not.
    #[test]
    fn a_pace_is_one_of_the_same_steps() {
        let ids = SequentialIds::default();
        let name = Name::renamed(NameKind::Run, "r");
        let run = RunRow::planned(RunId::new(&ids), &name, "", Value::Null, Timestamp::from_micros(0));
        let mut attempt = AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run);
        (attempt.last_step, attempt.wall_seconds, attempt.last_committed_step) =
            (Some(10), Some(20.0), Some(10));
        assert_eq!(Pace::measured([&attempt]).map(|pace| pace.seconds_per_step), Some(2.0));
        attempt.last_committed_step = Some(700);
        assert_eq!(Pace::measured([&attempt]), None, "epochs beside updates");
    }
}
