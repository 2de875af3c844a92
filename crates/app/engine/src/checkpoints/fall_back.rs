//! What stepping back to an older checkpoint costs: steps that are trained again, and what those take.

use serde::Serialize;
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
    /// None before an attempt ended that made a step. Start-up counts with the steps: it comes again too.
    pub fn measured<'a>(attempts: impl IntoIterator<Item = &'a AttemptRow>) -> Option<Self> {
        let (mut steps, mut seconds, mut gpu_seconds) = (0, 0.0, 0.0);
        for attempt in attempts {
            let (Some(last), Some(wall_seconds)) = (attempt.last_step, attempt.wall_seconds) else {
                continue;
            };
            let made = last.saturating_sub(attempt.resumed_from_step.unwrap_or(0));
            if made > 0 {
                steps += made;
                seconds += wall_seconds;
                gpu_seconds += attempt.gpu_seconds.unwrap_or(0.0);
            }
        }
        let steps = steps as f64;
        (steps > 0.0)
            .then(|| Self { seconds_per_step: seconds / steps, gpu_seconds_per_step: gpu_seconds / steps })
    }
}

/// What is trained again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FallBackCost {
    /// Committed steps that are trained again.
    pub steps: Step,
    /// How long that takes; none before it could be measured.
    pub seconds: Option<f64>,
    /// GPUs times hours.
    pub gpu_hours: Option<f64>,
}

impl FallBackCost {
    /// What training so many steps again takes.
    #[must_use]
    pub fn of(steps: Step, pace: Option<Pace>) -> Self {
        let times = |per_step: f64| per_step * steps as f64;
        Self {
            steps,
            seconds: pace.map(|pace| times(pace.seconds_per_step)),
            gpu_hours: pace.map(|pace| times(pace.gpu_seconds_per_step) / 3600.0),
        }
    }

    /// `200 steps are trained again, about 1.7 h and 3.3 GPU-hours`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let steps = if self.steps == 1 { "1 step is".into() } else { format!("{} steps are", self.steps) };
        let mut parts: Vec<String> = self.seconds.map(about).into_iter().collect();
        parts
            .extend(self.gpu_hours.filter(|hours| *hours > 0.0).map(|hours| format!("{hours:.2} GPU-hours")));
        if parts.is_empty() {
            return format!("{steps} trained again");
        }
        format!("{steps} trained again, about {}", parts.join(" and "))
    }
}

fn about(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.1} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// The message before the launch of an attempt that steps back.
pub fn told(loaded: &LoadedCheckpoint, pace: Option<Pace>) -> Option<String> {
    let newest = loaded.fallbacks.first()?;
    let what = newest.step.map_or_else(|| "a newer checkpoint".into(), |step| format!("step {step}"));
    let cost = FallBackCost::of(loaded.lost_steps, pace).in_words();
    Some(format!("falling back to step {}, because {what} is skipped ({}): {cost}", loaded.step, newest.why))
}

/// What an attempt skipped when it resumed, as the log has it now: the newest step that was suspect, why, and the steps
/// between.
pub fn passed_over<'a>(
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
    use super::*;

    /// Proves that a cost is a sentence with what is known, and no more than that.
    #[test]
    fn a_cost_is_told_as_far_as_it_is_known() {
        assert_eq!(FallBackCost::of(1, None).in_words(), "1 step is trained again");
        let pace = Pace { seconds_per_step: 30.0, gpu_seconds_per_step: 60.0 };
        let cost = FallBackCost::of(200, Some(pace));
        assert_eq!(cost.in_words(), "200 steps are trained again, about 1.7 h and 3.33 GPU-hours");
        let pace = Pace { seconds_per_step: 0.01, gpu_seconds_per_step: 0.0 };
        assert_eq!(FallBackCost::of(200, Some(pace)).in_words(), "200 steps are trained again, about 2.0 s");
    }
}
