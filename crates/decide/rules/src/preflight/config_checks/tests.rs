use trackway_core::checks::{Verdict, overall};

use super::*;
use crate::preflight::memory::{Architecture, Device};

/// The verdict of one check.
fn verdict(config: &TrainingConfig, name: &str) -> Verdict {
    let results = config_checks(config);
    let found: Vec<&CheckResult> = results.iter().filter(|result| result.name == name).collect();
    assert_eq!(found.len(), 1, "`{name}` answers once");
    found[0].verdict
}

fn healthy() -> TrainingConfig {
    let mut memory = MemorySpec::new(Architecture::of_parameters(300_000_000));
    memory.parallel.data = 8;
    TrainingConfig {
        seed: Some(17),
        gpus: Some(8),
        nodes: Some(1),
        precision: Some(Precision::Bf16),
        loss_scaling: None,
        gradient_clip_norm: Some(1.0),
        warmup_steps: Some(200),
        total_steps: Some(10_000),
        checkpointing: Some(true),
        asks_for_checkpoints: Some(true),
        checkpoint_interval_seconds: Some(900.0),
        ladder: None,
        preemptible: Some(true),
        loader: Some(Loader {
            workers: Some(4),
            cpus_per_gpu: Some(8),
            pin_memory: Some(true),
            prefetch: Some(2),
            persistent_workers: Some(true),
        }),
        strategy: Some(Strategy::DataParallel),
        memory: Some(memory),
        memory_correction: None,
        usable_bytes: Device::named("a100-80gb").map(Device::usable_bytes),
        throughput: Some(Throughput {
            samples_per_second: 720.0,
            samples_per_second_of_one: 100.0,
            nvlink: Some(true),
        }),
        cost: Some(CostPlan { gpus: 8.0, usd_per_gpu_hour: 1.10, hours: 4.0, ..CostPlan::default() }),
        budget_usd: Some(50.0),
        measured: Measurements {
            trained_parameters: Some(300_000_000),
            training_rows: Some(5_000_000),
            tokens_per_row: Some(512),
            starts_trained: false,
            step_seconds: Some(0.5),
            compile: Some(Compile { is_used: true, seconds: Some(60.0), again_seconds: Some(2.0) }),
            logging: Some(Logging { values_per_second: 20.0, output_bytes_per_second: 400.0 }),
            save: Some(SaveTime { cost_seconds: 5.0, commit_seconds: 20.0, interval_seconds: 900.0 }),
            interruptions: Some(Interruptions { mean_seconds: Some(7200.0), count: 4 }),
            grace_seconds: Some(30.0),
        },
    }
}

/// Proves that a healthy run passes every check, and that no settings pass none: a missing setting never counts as
/// good.
#[test]
fn healthy_passes_and_silence_does_not() {
    let healthy = config_checks(&healthy());
    assert!(healthy.iter().all(|result| result.verdict == Verdict::Pass), "{healthy:#?}");
    assert_eq!(overall(&healthy, &[]), Verdict::Pass);
    let silent = config_checks(&TrainingConfig::default());
    assert!(silent.iter().all(|result| result.verdict != Verdict::Pass), "{silent:#?}");
}

/// Proves each check on the settings it is there for, one change away from a healthy run.
#[test]
fn one_change_turns_one_verdict() {
    use Verdict::{Block, NotApplicable, NotRun, Pass, Warn};
    type Change = fn(&mut TrainingConfig);
    let table: &[(&str, Change, Verdict)] = &[
        ("config.seed", |it| it.seed = None, Warn),
        ("config.mixed_precision", |it| it.precision = Some(Precision::Fp32), Warn),
        ("config.mixed_precision", |it| it.precision = Some(Precision::Fp16), NotRun),
        (
            "config.mixed_precision",
            |it| (it.precision, it.loss_scaling) = (Some(Precision::Fp16), Some(false)),
            Block,
        ),
        (
            "config.mixed_precision",
            |it| (it.precision, it.loss_scaling) = (Some(Precision::Fp16), Some(true)),
            Pass,
        ),
        ("config.mixed_precision", |it| it.gpus = Some(0), NotApplicable),
        ("config.gradient_clipping", |it| it.gradient_clip_norm = Some(0.0), Warn),
        ("config.gradient_clipping", |it| it.gradient_clip_norm = Some(f64::NAN), Warn),
        ("config.gradient_clipping", |it| it.gradient_clip_norm = Some(1000.0), Warn),
        ("config.gradient_clipping", |it| it.gradient_clip_norm = None, NotRun),
        ("config.warmup", |it| it.warmup_steps = Some(0), Warn),
        ("config.warmup", |it| it.warmup_steps = Some(5_000), Warn),
        ("config.warmup", |it| it.warmup_steps = Some(10_000), Block),
        ("config.warmup", |it| (it.warmup_steps, it.total_steps) = (Some(0), Some(100)), NotApplicable),
        ("config.checkpointing", |it| it.checkpointing = Some(false), Block),
        ("config.checkpointing", |it| (it.checkpointing, it.preemptible) = (Some(false), Some(false)), Warn),
        ("config.checkpointing", |it| it.checkpoint_interval_seconds = Some(7200.0), Warn),
        ("config.checkpointing", |it| it.checkpoint_interval_seconds = None, Pass),
        ("config.checkpointing", |it| it.asks_for_checkpoints = Some(false), Warn),
        ("config.checkpointing", |it| it.asks_for_checkpoints = None, Pass),
        ("config.checkpoint_time", |it| it.checkpointing = None, NotApplicable),
        ("config.checkpoint_time", |it| it.checkpoint_interval_seconds = Some(40.0), Warn),
        ("config.checkpoint_time", |it| it.checkpoint_interval_seconds = Some(8000.0), Warn),
        ("config.checkpoint_time", |it| it.measured.grace_seconds = Some(10.0), Warn),
        ("config.checkpoint_time", |it| it.measured.interruptions = None, Pass),
        ("config.checkpoint_time", |it| it.measured.save = None, Pass),
        ("config.checkpoint_time", |it| (it.measured.save, it.measured.interruptions) = (None, None), NotRun),
        (
            "config.checkpoint_time",
            |it| (it.measured.save, it.checkpoint_interval_seconds) = (None, None),
            NotRun,
        ),
        ("config.model_size", |it| it.measured.training_rows = Some(500), Warn),
        ("config.model_size", |it| it.measured.training_rows = None, NotRun),
        ("config.model_size", |it| it.measured.trained_parameters = None, NotRun),
        ("config.model_size", |it| it.measured.starts_trained = true, NotApplicable),
        ("config.compile", |it| it.total_steps = Some(100), Warn),
        ("config.compile", |it| it.measured.compile.as_mut().unwrap().again_seconds = Some(40.0), Warn),
        ("config.compile", |it| it.measured.compile.as_mut().unwrap().seconds = None, NotRun),
        ("config.compile", |it| it.measured.compile = None, NotRun),
        ("config.compile", |it| it.measured.compile = Some(Compile::default()), Pass),
        (
            "config.compile",
            |it| (it.measured.compile, it.total_steps) = (Some(Compile::default()), Some(10)),
            NotApplicable,
        ),
        ("config.logging", |it| it.measured.logging.as_mut().unwrap().values_per_second = 5e3, Warn),
        ("config.logging", |it| it.measured.logging.as_mut().unwrap().output_bytes_per_second = 1e6, Warn),
        ("config.logging", |it| it.measured.logging = None, NotRun),
        ("config.loader", |it| it.loader.as_mut().unwrap().workers = Some(0), Warn),
        ("config.loader", |it| it.loader.as_mut().unwrap().workers = Some(64), Warn),
        ("config.loader", |it| it.loader.as_mut().unwrap().pin_memory = Some(false), Warn),
        ("config.loader", |it| it.loader.as_mut().unwrap().prefetch = Some(1), Warn),
        ("config.loader", |it| it.loader.as_mut().unwrap().prefetch = Some(100), Warn),
        ("config.loader", |it| it.loader.as_mut().unwrap().persistent_workers = Some(false), Warn),
        ("config.loader", |it| it.loader = Some(Loader::default()), NotRun),
        ("memory", |it| it.usable_bytes = Some(1 << 30), Block),
        ("memory", |it| it.memory = None, NotRun),
        ("config.strategy", |it| it.usable_bytes = Some(1 << 30), Block),
        ("config.strategy", |it| it.strategy = Some(Strategy::FullySharded), Warn),
        ("config.strategy", |it| it.strategy = Some(Strategy::Single), Block),
        ("config.strategy", |it| (it.gpus, it.strategy) = (Some(1), Some(Strategy::FullySharded)), Warn),
        ("config.scaling", |it| it.throughput.as_mut().unwrap().samples_per_second = 600.0, Warn),
        ("config.scaling", |it| it.throughput.as_mut().unwrap().samples_per_second = 900.0, NotRun),
        ("config.scaling", |it| it.nodes = Some(2), NotApplicable),
        ("config.scaling", |it| it.gpus = Some(1), NotApplicable),
        ("cost", |it| it.budget_usd = Some(40.0), Warn),
        ("cost", |it| it.budget_usd = Some(35.0), Block),
        ("cost", |it| it.budget_usd = None, NotApplicable),
    ];
    for (number, (name, change, expected)) in table.iter().enumerate() {
        let mut config = healthy();
        change(&mut config);
        assert_eq!(verdict(&config, name), *expected, "line {number}: {name}");
    }
}

/// Proves that findings contain what to do, about which setting.
#[test]
fn findings_say_what_to_do() {
    let bad =
        TrainingConfig { seed: None, gradient_clip_norm: Some(0.0), budget_usd: Some(1.0), ..healthy() };
    for finding in config_checks(&bad).iter().flat_map(|result| &result.findings) {
        assert!(
            finding.action.is_some() && finding.column.is_some() && !finding.message.is_empty(),
            "{finding:?}"
        );
    }
}

/// Proves that a rung which ends before a checkpoint is due blocks where the next one starts from it, and warns elsewhere; that
/// the last rung needs none, and that nothing is said of a length that is not known.
#[test]
fn a_rung_that_saves_nothing_is_found() {
    let of = |fractions: &[f64], every_steps, warm_start, total_steps| {
        let ladder = Some(Rungs { fractions: fractions.to_vec(), warm_start, every_steps });
        let config = TrainingConfig { ladder, total_steps, ..healthy() };
        let results = config_checks(&config);
        results.into_iter().find(|result| result.name == "config.checkpointing").unwrap()
    };
    let found = of(&[0.01, 0.1, 1.0], Some(50), true, Some(600));
    assert_eq!(found.verdict, Verdict::Block);
    let message = &found.findings[0].message;
    assert!(
        message.starts_with("the rung of 1% is about 6 steps, and a checkpoint is due after 50"),
        "{message}"
    );
    for (fractions, every_steps, warm_start, total_steps, verdict) in [
        (vec![0.01, 0.1, 1.0], Some(50), false, Some(600), Verdict::Warn),
        (vec![0.01, 0.1, 1.0], Some(6), true, Some(600), Verdict::Pass),
        (vec![0.01, 0.1, 1.0], Some(50), true, None, Verdict::Pass),
        (vec![1.0], Some(5_000), true, Some(600), Verdict::Pass),
        // 900 seconds are 1,800 steps.
        (vec![0.1, 1.0], None, true, Some(10_000), Verdict::Block),
        (vec![0.2, 1.0], None, true, Some(10_000), Verdict::Pass),
    ] {
        let found = of(&fractions, every_steps, warm_start, total_steps);
        assert_eq!(found.verdict, verdict, "{fractions:?} {every_steps:?}: {found:?}");
    }
}

/// Proves that a measured peak of such a run decides whether it fits, in either direction, and that the check says
/// where the numbers are from.
#[test]
fn a_measured_peak_decides_about_memory() {
    let expected = crate::preflight::memory::estimate(healthy().memory.as_ref().unwrap());
    for (share, verdict_expected) in [(2.0, Verdict::Block), (0.5, Verdict::Pass)] {
        let mut config = healthy();
        let modelled_bytes = expected.parts.modelled() as f64;
        // So much of the device is what the measured peak shows.
        let factor = share * config.usable_bytes.unwrap() as f64 / modelled_bytes;
        config.memory_correction = Some(Calibration { factor });
        assert_eq!(verdict(&config, "memory"), verdict_expected, "{share}");
        let results = config_checks(&config);
        let memory = results.iter().find(|it| it.name == "memory").unwrap();
        let said = memory.why.iter().cloned().chain(memory.findings.iter().map(|it| it.message.clone()));
        assert!(said.collect::<String>().contains("by a measured peak"), "{memory:?}");
    }
    let mut tight = healthy();
    tight.usable_bytes = Some(expected.low_bytes - 1);
    assert_eq!(verdict(&tight, "memory"), Verdict::Block);
    tight.memory_correction = Some(Calibration { factor: 0.1 });
    assert_ne!(verdict(&tight, "memory"), Verdict::Block, "less was measured than is expected");
}
