//! The steps of pre-flight: one line each in [`STEPS`], and a function that does the work.
//!
//! To add a step: write a function that returns a [`CheckResult`] for each of its checks, and a line in the table. A
//! function may fail; its checks then did not run, for the reason in the error.

mod commands;
mod data;
mod drift;
mod evaluation;
mod integrity;
mod media;
mod offer;
mod rehearsal;
mod settings;
mod storage;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use trackway_api::runs::preflight::DriftComparison;
use trackway_core::Clock as _;
use trackway_core::checks::CheckResult;
use trackway_engine::Context;
use trackway_engine::capture::Capture;
use trackway_engine::error::AppError;
use trackway_engine::run::{Job, Start};
use trackway_rules::preflight::cost::CostEstimate;
use trackway_rules::preflight::imbalance::ImbalanceReport;
use trackway_rules::preflight::memory::MemoryReport;

pub use self::drift::{severity_of, severity_of_drift};
pub use self::rehearsal::{RehearsalResults, rehearses_one_batch};
use super::facts::{OFFER, PlanFacts};
use super::sets::{DataSets, GatheredEvidence};
use super::{PreflightEvent, PreflightReporter};
use crate::data::leakage::CHECKS as LEAKAGE_CHECKS;

/// A step: what it answers, what it needs, when it applies, and how it is done.
pub struct StepSpec {
    /// Its name, by which others need it.
    pub name: &'static str,
    /// What it does, as a phrase.
    pub title: &'static str,
    /// The checks it answers.
    pub checks: &'static [&'static str],
    /// Steps before it in the table whose work it uses: they are done for it.
    pub needs: &'static [&'static str],
    /// Steps before it in the table that it waits for where they are done anyway.
    pub after: &'static [&'static str],
    /// How often it reads all data.
    pub readings: u64,
    /// Why it makes no sense for a run.
    pub applies: fn(&PlanFacts<'_>) -> Result<(), String>,
    /// Does it.
    pub run: fn(&Work<'_>, &Looker<'_>) -> Result<Vec<CheckResult>, AppError>,
}

/// Every step, in the order in which its checks are shown.
pub const STEPS: &[StepSpec] = &[
    StepSpec {
        name: "commands",
        title: "looking for the files of the commands",
        checks: &["run.command", "evaluate.command"],
        run: commands::commands,
        ..PLAIN
    },
    StepSpec {
        name: "offer",
        title: "comparing requests with what the launcher has",
        checks: &[OFFER],
        applies: offer::has_request,
        run: offer::offer,
        ..PLAIN
    },
    StepSpec {
        name: "read",
        title: "reading the data",
        checks: &["data.values"],
        readings: 1,
        applies: data::has_tables,
        run: data::read,
        ..PLAIN
    },
    StepSpec {
        name: "schema",
        title: "checking schema and rules",
        checks: &["data.schema"],
        readings: 1,
        applies: data::has_rules,
        run: data::schema,
        ..PLAIN
    },
    StepSpec {
        name: "integrity",
        title: "checking data quality",
        checks: &["data.columns", "data.rows", "data.label", "data.personal", "data.representation"],
        needs: &["read"],
        applies: data::has_tables,
        run: integrity::integrity,
        ..PLAIN
    },
    StepSpec {
        name: "media",
        title: "reading images and texts",
        checks: &media::CHECKS,
        readings: 1,
        applies: media::has_media,
        run: media::media,
        ..PLAIN
    },
    StepSpec {
        name: "label_noise",
        title: "looking for wrong labels",
        checks: &["data.label_noise"],
        readings: 1,
        applies: data::label_noise_asked,
        run: data::label_noise,
        ..PLAIN
    },
    StepSpec {
        name: "imbalance",
        title: "counting classes",
        checks: &["data.imbalance"],
        needs: &["read"],
        applies: data::has_label,
        run: data::imbalance,
        ..PLAIN
    },
    StepSpec {
        name: "drift",
        title: "comparing distributions",
        checks: &["data.drift"],
        needs: &["read"],
        applies: data::has_tables,
        run: drift::drift,
        ..PLAIN
    },
    StepSpec {
        name: "leakage",
        title: "looking for leakage",
        checks: &LEAKAGE_CHECKS,
        readings: 2,
        applies: data::has_sides,
        run: data::leakage,
        ..PLAIN
    },
    StepSpec {
        name: "evaluation",
        title: "trying the evaluation",
        checks: &evaluation::CHECKS,
        readings: 1,
        applies: evaluation::has_evaluation,
        run: evaluation::evaluation,
        ..PLAIN
    },
    StepSpec {
        name: "one_batch",
        title: "rehearsing one batch",
        checks: &["rehearsal.one_batch"],
        after: &["read", "integrity", "leakage"],
        applies: rehearsal::one_batch_asked,
        run: rehearsal::one_batch,
        ..PLAIN
    },
    StepSpec {
        name: "overfit",
        title: "rehearsing a few batches",
        checks: &["rehearsal.overfit"],
        after: &["one_batch"],
        applies: rehearsal::overfit_asked,
        run: rehearsal::overfit,
        ..PLAIN
    },
    StepSpec {
        name: "settings",
        title: "checking settings, memory and cost",
        checks: &[
            "config.seed",
            "config.mixed_precision",
            "config.gradient_clipping",
            "config.warmup",
            "config.checkpointing",
            "config.checkpoint_time",
            "config.model_size",
            "config.compile",
            "config.logging",
            "config.loader",
            "memory",
            "config.strategy",
            "config.scaling",
            "cost",
        ],
        // The rows of the training data are counted by then; a rehearsal shows settings that the run file lacks, and measures.
        after: &["read", "one_batch", "overfit"],
        run: settings::settings,
        ..PLAIN
    },
    StepSpec {
        name: "store",
        title: "testing checkpoint storage",
        checks: &["checkpoint.store", "checkpoint.space"],
        after: &["settings"],
        applies: storage::has_checkpoints,
        run: storage::storage,
        ..PLAIN
    },
];

/// A step that needs nothing, reads nothing, and applies to every run.
const PLAIN: StepSpec = StepSpec {
    name: "",
    title: "",
    checks: &[],
    needs: &[],
    after: &[],
    readings: 0,
    applies: |_| Ok(()),
    run: |_, _| Ok(Vec::new()),
};

/// The names of all checks.
pub fn names() -> Vec<&'static str> {
    STEPS.iter().flat_map(|step| step.checks.iter().copied()).collect()
}

/// What a step works with.
pub struct Work<'w> {
    /// The use cases.
    pub context: &'w Context,
    /// What is to be launched.
    pub job: &'w Job,
    /// Its surroundings.
    pub capture: &'w Capture,
    /// What a rehearsal starts from; none without a rehearsal.
    pub start: Option<&'w Start>,
    pub sets: &'w DataSets,
    /// What steps leave to one another.
    pub shared: &'w Shared,
    /// Set to stop.
    pub cancelled: &'w AtomicBool,
    /// The observer.
    pub reporter: &'w dyn PreflightReporter,
}

/// What steps leave to later ones and to the report.
#[derive(Default)]
pub struct Shared {
    /// Of every table.
    pub evidence: GatheredEvidence,
    /// What rehearsals showed of the script's settings, and measured.
    pub rehearsed: Mutex<RehearsalResults>,
    /// Data sets beside what they were compared with.
    pub drift: Mutex<Vec<DriftComparison>>,
    /// The classes of the training set.
    pub imbalance: OnceLock<ImbalanceReport>,
    /// What the run needs of a device.
    pub memory: OnceLock<MemoryReport>,
    /// What it will cost.
    pub cost: OnceLock<CostEstimate>,
}

/// Reports how far a step has read.
pub struct Looker<'l> {
    title: &'static str,
    reporter: &'l dyn PreflightReporter,
}

impl Looker<'_> {
    /// So many bytes are done of so many in all.
    pub fn at(&self, done_bytes: u64, total_bytes: u64) {
        self.reporter.preflight(&PreflightEvent::Reading { title: self.title, done_bytes, total_bytes });
    }
}

/// Does a step and measures it. Whatever goes wrong is an answer too.
pub fn run(work: &Work<'_>, spec: &StepSpec) -> Vec<CheckResult> {
    let not_run =
        |why: &str| spec.checks.iter().map(|check| CheckResult::not_run(check, why)).collect::<Vec<_>>();
    if work.cancelled.load(Ordering::Relaxed) {
        return not_run("pre-flight was stopped");
    }
    work.reporter.preflight(&PreflightEvent::Began { title: spec.title });
    let began = work.context.clock.monotonic_micros();
    let looker = Looker { title: spec.title, reporter: work.reporter };
    let mut results = (spec.run)(work, &looker).unwrap_or_else(|error| not_run(&error.to_string()));
    let seconds = (work.context.clock.monotonic_micros() - began) as f64 / 1e6;
    for result in &mut results {
        result.seconds.get_or_insert(seconds);
    }
    work.reporter.preflight(&PreflightEvent::Ended { title: spec.title, results: &results });
    results
}
