//! Checks of what only a rehearsal or an earlier run can measure. Without a measurement they do not run.

use trackway_core::checks::{Finding, Severity};
use trackway_core::text;

use super::{Answer, TrainingConfig, found, not_applicable, passed, warned, warning};

/// Parameters for each training row, or token, from which a model trained from the beginning is likely to memorise its data: image
/// models of standard benchmarks have some 200, language models fewer than 1.
const PARAMETERS_PER_ROW_MAX: f64 = 1_000.0;
/// What `torch.compile` saves of a step at best.
const COMPILE_GAIN_MAX: f64 = 0.3;
/// A run of this many seconds is worth an attempt to compile it.
const COMPILE_SECONDS_MIN: f64 = 3600.0;
/// Compiling again after the first step for longer than this fraction of the first time: shapes change.
const RECOMPILE_FRACTION_MAX: f64 = 0.5;
/// Values of metrics a second that no curve can show.
const VALUES_PER_SECOND_MAX: f64 = 1_000.0;
/// Bytes of output a second, some 400 lines: more than a person can read.
const OUTPUT_BYTES_PER_SECOND_MAX: f64 = 32.0 * 1024.0;
/// The most of the interval between two saves that may be spent on saving.
const SAVE_FRACTION_MAX: f64 = 0.1;

/// What a rehearsal or an earlier run measured. `None`: nothing did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurements {
    /// Parameters that are trained; of a model that is trained from the beginning.
    pub trained_parameters: Option<u64>,
    /// Rows of the training data.
    pub training_rows: Option<u64>,
    /// Tokens of a row, where it has several.
    pub tokens_per_row: Option<u64>,
    /// Whether the run starts from trained weights, or trains adapters of a model that has them.
    pub starts_trained: bool,
    pub step_seconds: Option<f64>,
    /// What compiling takes.
    pub compile: Option<Compile>,
    pub logging: Option<Logging>,
    /// What a save takes.
    pub save: Option<SaveTime>,
    /// Ends from outside.
    pub interruptions: Option<Interruptions>,
    /// Seconds between a request to end and the end.
    pub grace_seconds: Option<f64>,
}

/// What `torch.compile` takes in a script that uses it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Compile {
    /// Whether the script compiles its model.
    pub is_used: bool,
    /// Seconds until the first step was compiled.
    pub seconds: Option<f64>,
    /// Seconds of compiling after the first step.
    pub again_seconds: Option<f64>,
}

/// What an earlier run logged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Logging {
    /// Values of metrics in a second.
    pub values_per_second: f64,
    /// Bytes of output in a second.
    pub output_bytes_per_second: f64,
}

/// What saves of an earlier run took, as means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaveTime {
    /// Seconds of the loop that a save costs.
    pub cost_seconds: f64,
    /// Seconds until it is committed.
    pub commit_seconds: f64,
    /// Seconds of work between two saves.
    pub interval_seconds: f64,
}

/// How often attempts like these ended from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interruptions {
    /// The mean time to such an end, in seconds; none with too few of them.
    pub mean_seconds: Option<f64>,
    /// How many there were.
    pub count: u64,
}

/// Parameters against rows.
pub(super) fn model_size(name: &str, config: &TrainingConfig) -> Answer {
    let measured = &config.measured;
    if measured.starts_trained {
        return not_applicable(name, "the run starts from trained weights");
    }
    let parameters = measured.trained_parameters.ok_or("the number of parameters is not known")?;
    let rows = measured
        .training_rows
        .filter(|rows| *rows > 0)
        .ok_or("the rows of the training data were not counted")?;
    let tokens = measured.tokens_per_row.unwrap_or(1).max(1);
    let per_row = parameters as f64 / rows as f64 / tokens as f64;
    let of_what = if tokens == 1 { "rows".to_owned() } else { format!("rows of {tokens} tokens") };
    let message =
        format!("{parameters} parameters are trained on {rows} {of_what}, {} for each", short(per_row));
    if per_row <= PARAMETERS_PER_ROW_MAX {
        return passed(name, message);
    }
    let action = "start from trained weights, use a smaller model, augment the data or regularise more, and compare with \
                  `trackway eval cross-validate`; for rows of many tokens set `training.sequence_length`";
    warned(name, "training.parameters", message, action)
}

fn short(number: f64) -> String {
    if number < 10.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

/// What compiling takes against what it saves.
pub(super) fn compile(name: &str, config: &TrainingConfig) -> Answer {
    let compile = config.measured.compile.ok_or("whether the script uses `torch.compile` is not known")?;
    let run = config.measured.step_seconds.zip(config.total_steps);
    if !compile.is_used {
        return match run {
            Some((seconds, steps))
                if seconds * steps as f64 >= COMPILE_SECONDS_MIN && !config.without_gpu() =>
            {
                let message = format!(
                    "the model is not compiled; `torch.compile` often saves 10 to 30 % of a step, and the run takes {}",
                    text::duration(seconds * steps as f64)
                );
                let note = Finding::new(name, Severity::Note, message).about("torch.compile");
                found(name, vec![note.action("try `model = torch.compile(model)`")])
            }
            _ => not_applicable(name, "the script does not use `torch.compile`"),
        };
    }
    let seconds = compile.seconds.ok_or("how long `torch.compile` takes was not measured")?;
    let mut findings = Vec::new();
    if let Some((step_seconds, steps)) = run
        && seconds > saved_at_best(step_seconds, steps)
    {
        let message = format!(
            "compiling takes {}, more than {steps} steps of {} can save ({} at 30 % of a step)",
            text::duration(seconds),
            text::duration(step_seconds),
            text::duration(saved_at_best(step_seconds, steps))
        );
        let action = "leave out `torch.compile` for so short a run, for rehearsals and for small rungs";
        findings.push(warning(name, "torch.compile", message, action));
    }
    if let Some(again) = compile.again_seconds.filter(|again| *again > RECOMPILE_FRACTION_MAX * seconds) {
        let message = format!(
            "the model is compiled again after its first step ({} after {}): shapes or values of the inputs change",
            text::duration(again),
            text::duration(seconds)
        );
        let action = "pad batches to a few lengths, drop the last one (`drop_last`), or use `torch.compile(dynamic=True)`; \
                      `TORCH_LOGS=recompiles` names the cause";
        findings.push(warning(name, "torch.compile", message, action));
    }
    let looked_at = format!("compiling takes {}", text::duration(seconds));
    found(name, findings).map(|result| result.because(looked_at))
}

/// Against steps that are not compiled, the fraction that is saved of them being the greatest.
fn saved_at_best(compiled_step_seconds: f64, steps: u64) -> f64 {
    compiled_step_seconds * COMPILE_GAIN_MAX / (1.0 - COMPILE_GAIN_MAX) * steps as f64
}

/// What an earlier run logged in a second.
pub(super) fn logging(name: &str, config: &TrainingConfig) -> Answer {
    let logging = config.measured.logging.ok_or("no earlier run of this name logged for long enough")?;
    let mut findings = Vec::new();
    let values = logging.values_per_second;
    if values > VALUES_PER_SECOND_MAX {
        let message = format!("the last run logged {values:.0} values of metrics a second");
        let action = "log every tenth step, and means over layers instead of each layer: each value waits for the device";
        findings.push(warning(name, "metrics", message, action));
    }
    let bytes = logging.output_bytes_per_second;
    if bytes > OUTPUT_BYTES_PER_SECOND_MAX {
        let message = format!("the last run printed {:.0} KiB a second", bytes / 1024.0);
        let action = "print every tenth step, or lower the level of the logger; the output is stored whole";
        findings.push(warning(name, "output", message, action));
    }
    let looked_at = format!("{values:.0} values of metrics and {:.1} KiB of output a second", bytes / 1024.0);
    found(name, findings).map(|result| result.because(looked_at))
}

/// What a save takes against its interval, the grace period and the time between two interruptions.
pub(super) fn checkpoint_time(name: &str, config: &TrainingConfig) -> Answer {
    if config.checkpointing != Some(true) {
        return not_applicable(name, "`checkpoint.every` is not set");
    }
    let Measurements { save, interruptions, grace_seconds, .. } = &config.measured;
    let interval = config.checkpoint_interval_seconds.or(save.map(|save| save.interval_seconds));
    let mut findings = Vec::new();
    if let (Some(save), Some(interval)) = (save, interval) {
        findings.extend(long_save(name, save, interval));
    }
    if let (Some(save), Some(grace)) = (save, grace_seconds)
        && save.commit_seconds > *grace
    {
        let message = format!(
            "a save takes {}, longer than the grace period of {}: none is finished when the machine is taken away",
            text::duration(save.commit_seconds),
            text::duration(*grace)
        );
        let action =
            "raise `supervise.grace` up to the notice of the provider, save less, or save more often";
        findings.push(warning(name, "supervise.grace", message, action));
    }
    let mean = interruptions.and_then(|it| it.mean_seconds);
    if let (Some(mean), Some(interval)) = (mean, interval)
        && interval > mean
    {
        let count = interruptions.map_or(0, |it| it.count);
        let message = format!(
            "checkpoints are due every {}, and attempts ended from outside every {} on average ({count} times): most of them save nothing",
            text::duration(interval),
            text::duration(mean)
        );
        let action =
            "save several times between two interruptions: `trackway explain` shows the best interval";
        findings.push(warning(name, "checkpoint.every", message, action));
    }
    match (save, mean, interval) {
        (None, None, _) => Err("neither saves nor interruptions of earlier runs were measured"),
        (_, _, None) if findings.is_empty() => Err("the interval between two saves is not known"),
        _ => found(name, findings).map(|result| result.because(looked_at(*save, mean))),
    }
}

fn long_save(check: &str, save: &SaveTime, interval: f64) -> Option<Finding> {
    let fraction = save.cost_seconds / interval;
    if fraction <= SAVE_FRACTION_MAX && save.commit_seconds <= interval {
        return None;
    }
    let message = format!(
        "a save costs {} and is committed after {}, and one is due every {}",
        text::duration(save.cost_seconds),
        text::duration(save.commit_seconds),
        text::duration(interval)
    );
    let action =
        "save less often (at most a tenth of the time), or less: `trackway explain` shows the best interval";
    Some(warning(check, "checkpoint.every", message, action))
}

fn looked_at(save: Option<SaveTime>, mean: Option<f64>) -> String {
    let save = save.map_or_else(
        || "saves were not measured".to_owned(),
        |save| format!("a save costs {}", text::duration(save.cost_seconds)),
    );
    let mean = mean.map_or_else(
        || "too few interruptions for a mean".to_owned(),
        |mean| format!("an interruption every {}", text::duration(mean)),
    );
    format!("{save}; {mean}")
}
