use trackway_core::checks::{Finding, Severity};
use trackway_core::{Rung, text};

use super::{Answer, TrainingConfig, blocked, not_applicable, passed, warned};
use crate::preflight::memory::Precision;

/// Norms that gradients are usually cut to.
const CLIP_NORM_MIN: f64 = 0.1;
const CLIP_NORM_MAX: f64 = 10.0;
/// A warm-up longer than this fraction of all steps wastes them.
const WARMUP_SHARE_MAX: f64 = 0.2;
/// Runs of fewer steps need no warm-up.
const WARMUP_STEPS_MIN_TOTAL: u64 = 200;
/// Work that may be lost at a time on devices that can be taken away: checkpoints every 15 to 30 minutes.
const SPOT_INTERVAL_SECONDS_MAX: f64 = 1800.0;
/// The same on others.
const INTERVAL_SECONDS_MAX: f64 = 3.0 * 3600.0;

/// Without a seed the difference of two runs of the same config and data may be random.
pub(super) fn seed(name: &str, config: &TrainingConfig) -> Answer {
    match config.seed {
        Some(seed) => passed(name, format!("the seed is {seed}")),
        None => warned(
            name,
            "run.seed",
            "`run.seed` is not set: the run is not reproducible",
            "set `seed` in `[run]`, and seed Python, NumPy and the framework with it",
        ),
    }
}

/// Full precision halves the speed and doubles activations; fp16 needs a loss scale.
pub(super) fn precision(name: &str, config: &TrainingConfig) -> Answer {
    if config.without_gpu() {
        return not_applicable(name, "the run has no GPU");
    }
    match (config.precision, config.loss_scaling) {
        (None, _) => Err("`training.precision` is not set"),
        (Some(Precision::Fp32), _) => warned(
            name,
            "precision",
            "everything is computed in fp32: about half the speed and twice the activation memory",
            "use bf16 if the GPU supports it, otherwise fp16 with loss scaling",
        ),
        (Some(Precision::Fp16), Some(false)) => blocked(
            name,
            "precision",
            "fp16 without loss scaling: small gradients underflow to 0",
            "use a gradient scaler or bf16",
        ),
        (Some(Precision::Fp16), None) => Err("`training.loss_scaling` is not set"),
        (Some(other), _) => passed(name, format!("matrix products are computed in {other}")),
    }
}

/// One bad batch can undo days when gradients are not cut.
pub(super) fn gradient_clipping(name: &str, config: &TrainingConfig) -> Answer {
    let norm = config.gradient_clip_norm.ok_or("`training.gradient_clip_norm` is not set")?;
    if norm.is_nan() || norm <= 0.0 {
        return warned(
            name,
            "gradient_clip_norm",
            "gradients are not clipped: one bad batch can undo the run",
            "clip the norm to 1.0",
        );
    }
    if (CLIP_NORM_MIN..=CLIP_NORM_MAX).contains(&norm) {
        return passed(name, format!("gradients are clipped to a norm of {norm}"));
    }
    let message =
        format!("gradients are clipped to a norm of {norm}; {CLIP_NORM_MIN} to {CLIP_NORM_MAX} is usual");
    warned(name, "gradient_clip_norm", message, "check the measured norms, or use 1.0")
}

/// Early steps with a full learning rate throw pretrained or fresh weights about.
pub(super) fn warmup(name: &str, config: &TrainingConfig) -> Answer {
    let warmup = config.warmup_steps.ok_or("`training.warmup_steps` is not set")?;
    let finding = |message: String, action| warned(name, "warmup_steps", message, action);
    match (warmup, config.total_steps) {
        (0, Some(total)) if total < WARMUP_STEPS_MIN_TOTAL => {
            not_applicable(name, format!("{total} steps are too few for a warm-up"))
        }
        (0, _) => finding("there is no learning rate warm-up".into(), "warm up over 1 to 5 % of the steps"),
        (warmup, Some(total)) if warmup >= total => blocked(
            name,
            "warmup_steps",
            format!(
                "the warm-up of {warmup} steps is not shorter than the run of {total}: the full learning rate is never reached"
            ),
            "warm up over 1 to 5 % of the steps",
        ),
        (warmup, Some(total)) if warmup as f64 > WARMUP_SHARE_MAX * total as f64 => {
            finding(format!("the warm-up takes {warmup} of {total} steps"), "1 to 5 % of the steps are usual")
        }
        (warmup, _) => passed(name, format!("the learning rate warms up over {warmup} steps")),
    }
}

/// What a cadence is worth without a look at the script.
fn if_asked(config: &TrainingConfig) -> &'static str {
    match config.asks_for_checkpoints {
        Some(_) => "",
        None => "; whether the script requests them is not known",
    }
}

/// Whatever is not committed is lost with the machine, and is missing where the next rung starts from it.
pub(super) fn checkpointing(name: &str, config: &TrainingConfig) -> Answer {
    let Some(unsaved) = unsaved_rung(name, config) else { return cadence(name, config) };
    let result = cadence(name, config)?;
    let findings = result.findings.iter().cloned().chain([unsaved]).collect();
    Ok(result.with_findings(findings))
}

/// The first rung that ends before a checkpoint is due, by the steps that its fraction of the data takes.
fn unsaved_rung(name: &str, config: &TrainingConfig) -> Option<Finding> {
    let (ladder, total_steps) = (config.ladder.as_ref()?, config.total_steps?);
    let by_time =
        || Some((config.checkpoint_interval_seconds? / config.measured.step_seconds?).ceil() as u64);
    let due = ladder.every_steps.or_else(by_time)?;
    let steps = |fraction: &f64| (total_steps as f64 * fraction) as u64;
    // Nothing starts from the last rung.
    let (_, starts) = ladder.fractions.split_last()?;
    let fraction = *starts.iter().find(|fraction| steps(fraction) < due)?;
    let severity = if ladder.warm_start { Severity::Block } else { Severity::Warn };
    let follows = match ladder.warm_start {
        true => "`ladder.warm_start` finds nothing to start the next one from",
        false => "after a failure it starts from its beginning",
    };
    let (rung, steps) = (Rung::new(fraction)?, steps(&fraction));
    let message = format!(
        "the rung of {rung} is about {steps} steps, and a checkpoint is due after {due}: it saves nothing, and {follows}"
    );
    let action =
        format!("set `checkpoint.every` to at most {} steps, or begin with a larger rung", steps.max(1));
    Some(Finding::new(name, severity, message).about("checkpoint.every").action(action))
}

fn cadence(name: &str, config: &TrainingConfig) -> Answer {
    let preemptible = config.preemptible == Some(true);
    match (config.checkpointing, config.checkpoint_interval_seconds) {
        (None, _) => Err("`checkpoint.every` is not set"),
        (Some(false), _) if preemptible => blocked(
            name,
            "checkpoint.every",
            "no checkpoints on preemptible machines: the run may never finish",
            "save every 15 to 30 minutes: `every = { minutes = 15 }` in `[checkpoint]`",
        ),
        (Some(false), _) => warned(
            name,
            "checkpoint.every",
            "no checkpoints are written: after any failure the run starts from the beginning",
            "set `every` in `[checkpoint]`",
        ),
        (Some(true), _) if config.asks_for_checkpoints == Some(false) => warned(
            name,
            "checkpoint.every",
            "the script does not import `trackway`: unless one of its modules does, no checkpoint is saved",
            "call `run.checkpoint(step)` at the end of each step, or use a callback of `trackway.callbacks`",
        ),
        (Some(true), None) => passed(
            name,
            format!("checkpoints are due by steps; the interval in time is not known{}", if_asked(config)),
        ),
        (Some(true), Some(seconds)) => {
            let most = if preemptible { SPOT_INTERVAL_SECONDS_MAX } else { INTERVAL_SECONDS_MAX };
            let minutes = seconds / 60.0;
            if seconds <= most {
                return passed(
                    name,
                    format!("checkpoints are due every {}{}", interval_text(seconds), if_asked(config)),
                );
            }
            let message = format!(
                "a failure loses up to {minutes:.0} minutes of work; at most {:.0} are recommended",
                most / 60.0
            );
            let action = "`trackway explain` of an earlier run shows the best interval";
            warned(name, "checkpoint.every", message, action)
        }
    }
}

/// An interval in whole minutes, or what is below one.
fn interval_text(seconds: f64) -> String {
    if seconds < 60.0 { text::duration(seconds) } else { format!("{:.0} minutes", seconds / 60.0) }
}
