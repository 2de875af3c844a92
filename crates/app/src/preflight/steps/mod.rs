//! The steps of pre-flight: one line each in [`STEPS`], and a function that does the work.
//!
//! To add a step: write a function that answers a [`CheckResult`] for each of its checks, and a line in the table. A
//! function may fail; its checks then did not run, for the reason that the error tells.

mod data;
mod settings;
mod storage;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use trackway_core::Clock as _;
use trackway_core::checks::CheckResult;
use trackway_tower::cost::CostEstimate;
use trackway_tower::imbalance::ImbalanceReport;
use trackway_tower::memory::MemoryReport;

use super::Told;
use super::plan::{Facts, Planned};
use super::sets::{DataSets, Profiles};
use crate::App;
use crate::capture::Capture;
use crate::data::leakage::CHECKS as LEAKAGE_CHECKS;
use crate::error::AppError;
use crate::report::Reporter;
use crate::run::Job;

/// A step: what it answers, what it needs, when it applies, and how it is done.
pub struct StepSpec {
    /// Its name, by which others need it.
    pub name: &'static str,
    /// What it does, in words.
    pub title: &'static str,
    /// The checks it answers.
    pub checks: &'static [&'static str],
    /// Steps before it in the table that must have ended.
    pub needs: &'static [&'static str],
    /// How often it reads all data.
    pub readings: u64,
    /// Why it makes no sense for a run.
    pub applies: fn(&Facts<'_>) -> Result<(), String>,
    /// Does it.
    pub run: fn(&Work<'_>, &Looker<'_>) -> Result<Vec<CheckResult>, AppError>,
}

/// Every step, in the order in which its checks are shown.
pub const STEPS: &[StepSpec] = &[
    StepSpec {
        name: "read",
        title: "reading the data",
        checks: &["data.readable"],
        needs: &[],
        readings: 1,
        applies: data::has_tables,
        run: data::read,
    },
    StepSpec {
        name: "schema",
        title: "checking schema and rules",
        checks: &["data.schema"],
        needs: &[],
        readings: 1,
        applies: data::has_rules,
        run: data::schema,
    },
    StepSpec {
        name: "label",
        title: "comparing the label's values",
        checks: &["data.label"],
        needs: &["read"],
        readings: 0,
        applies: data::has_label,
        run: data::label,
    },
    StepSpec {
        name: "imbalance",
        title: "counting classes",
        checks: &["data.imbalance"],
        needs: &["read"],
        readings: 0,
        applies: data::has_label,
        run: data::imbalance,
    },
    StepSpec {
        name: "drift",
        title: "comparing distributions",
        checks: &["data.drift"],
        needs: &["read"],
        readings: 0,
        applies: data::has_reference,
        run: data::drift,
    },
    StepSpec {
        name: "leakage",
        title: "looking for leakage",
        checks: &LEAKAGE_CHECKS,
        needs: &[],
        readings: 1,
        applies: data::has_split,
        run: data::leakage,
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
            "config.loader",
            "config.strategy",
            "config.scaling",
            "memory",
            "cost",
        ],
        needs: &[],
        readings: 0,
        applies: |_| Ok(()),
        run: settings::settings,
    },
    StepSpec {
        name: "store",
        title: "trying out where checkpoints go",
        checks: &["checkpoint.store", "checkpoint.space"],
        needs: &["settings"],
        readings: 0,
        applies: storage::has_checkpoints,
        run: storage::storage,
    },
];

/// The names of all checks.
pub fn names() -> Vec<&'static str> {
    STEPS.iter().flat_map(|step| step.checks.iter().copied()).collect()
}

/// What a step works with.
pub struct Work<'w> {
    /// The use cases.
    pub app: &'w App,
    /// What is to be launched.
    pub job: &'w Job,
    /// Its surroundings.
    pub capture: &'w Capture,
    /// Its data.
    pub sets: &'w DataSets,
    /// What steps leave to one another.
    pub shared: &'w Shared,
    /// Set when somebody asked for a stop.
    pub cancelled: &'w AtomicBool,
    /// Who looks on.
    pub reporter: &'w dyn Reporter,
}

/// What steps leave to later ones and to the report.
#[derive(Default)]
pub struct Shared {
    /// Of every table.
    pub profiles: Profiles,
    /// The classes of the training set.
    pub imbalance: OnceLock<ImbalanceReport>,
    /// What the run needs of a device.
    pub memory: OnceLock<MemoryReport>,
    /// What it will cost.
    pub cost: OnceLock<CostEstimate>,
}

/// Tells how far a step has read.
pub struct Looker<'l> {
    title: &'static str,
    reporter: &'l dyn Reporter,
}

impl Looker<'_> {
    /// So many bytes are done of so many in all.
    pub fn at(&self, done_bytes: u64, total_bytes: u64) {
        self.reporter.preflight(&Told::Reading { title: self.title, done_bytes, total_bytes });
    }
}

/// Does a step and measures it. Whatever goes wrong is an answer too.
pub fn run(work: &Work<'_>, step: &Planned) -> Vec<CheckResult> {
    let spec = step.spec;
    let not_run =
        |why: &str| spec.checks.iter().map(|check| CheckResult::not_run(check, why)).collect::<Vec<_>>();
    if work.cancelled.load(Ordering::Relaxed) {
        return not_run("pre-flight was stopped");
    }
    work.reporter.preflight(&Told::Began { title: spec.title });
    let began = work.app.clock.monotonic_micros();
    let looker = Looker { title: spec.title, reporter: work.reporter };
    let mut results = (spec.run)(work, &looker).unwrap_or_else(|error| not_run(&error.message));
    let seconds = (work.app.clock.monotonic_micros() - began) as f64 / 1e6;
    for result in &mut results {
        result.seconds.get_or_insert(seconds);
    }
    work.reporter.preflight(&Told::Ended { title: spec.title, results: &results });
    results
}
