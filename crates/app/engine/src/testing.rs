//! What tests of use cases run in: a home, a manual clock and the fake engine, with real scripts and a real ledger.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use trackway_api::runs::RunOutcome;
use trackway_core::{AttemptId, Clock as _, LaunchKind, ManualClock, RunId, TerminationReason, Timestamp};
use trackway_formats::queue::{QUEUE_AT_MOST, QueueName};
use trackway_formats::runfile::PlanPatch;
use trackway_launch::testing::FakeEngine;
use trackway_ledger::{AttemptRow, AttemptState, DeliveryEnd, NoticeRow, RunRow, SubjectKind};
use trackway_system::{Cancel, SystemIds};
use trackway_tables::ReadContext;

use crate::home::Home;
use crate::reporter::{Notice, Reporter};
use crate::run::{Prepared, RunSource, begin, drive, read};
use crate::{Context, Dependencies, QueueLimits, Request};

/// 2026-01-01, in microseconds since 1970: when the clock of a [`World`] starts.
pub const NEW_YEAR_MICROS: i64 = 1_767_225_600_000_000;

/// Real time that a script gets to end at once, on a machine that does other things too.
pub const SETTLES: Duration = Duration::from_secs(5);

/// The engine that a [`World`] has beside the default one.
pub const NAMED_ENGINE: &str = "juwels";

/// A notice about a run.
#[must_use]
pub fn notice(run_id: RunId, key: &str) -> NoticeRow {
    NoticeRow {
        notice_id: format!("{run_id}:{key}"),
        subject_kind: SubjectKind::Run,
        subject_id: run_id.to_string(),
        project: None,
        at: run_id.created_at(),
        about: "end".into(),
        document_json: json!({ "text": "it ended" }),
    }
}

/// A notice about a run that the ledger has and that waits to be sent.
pub fn posted(context: &Context, run_id: RunId, key: &str) -> NoticeRow {
    let notice = notice(run_id, key);
    assert!(context.ledger_write(|ledger| ledger.post_notice(&notice)).unwrap());
    notice
}

/// Sends a notice that waits: it arrives.
pub fn arrived(context: &Context, notice: &NoticeRow) {
    let id = &notice.notice_id;
    assert!(context.ledger_write(|ledger| ledger.take_notice(id, 60.0)).unwrap());
    context.ledger_write(|ledger| ledger.end_notice(id, &DeliveryEnd::Delivered)).unwrap();
}

/// A separate home, engine and clock.
pub struct World {
    folder: PathBuf,
    /// The time of everything but the scripts themselves.
    pub clock: Arc<ManualClock>,
    /// Launches what is launched.
    pub engine: FakeEngine,
    /// Ends the use cases.
    pub cancel: Cancel,
    /// How many runs of the queue `gpu` run at once, as its settings have it now.
    pub gpu_runs: Arc<AtomicU32>,
    /// What a person would read.
    pub notes: Notes,
}

/// Keeps the notes that a person would read.
#[derive(Default)]
pub struct Notes(Mutex<Vec<String>>);

impl Notes {
    /// Every note so far.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Reporter for Notes {
    fn notice(&self, notice: &Notice) {
        if let Notice::Note { text } = notice {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.clone());
        }
    }
}

impl World {
    /// In an empty folder. `settles` is the real time that a script gets to end at once.
    #[must_use]
    pub fn new(folder: &Path, settles: Duration) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(NEW_YEAR_MICROS)));
        let engine = FakeEngine::on(clock.clone(), settles);
        Self {
            folder: folder.to_owned(),
            clock,
            engine,
            cancel: Cancel::default(),
            gpu_runs: Arc::new(AtomicU32::new(QUEUE_AT_MOST)),
            notes: Notes::default(),
        }
    }

    /// A supervisor that was just started.
    #[must_use]
    pub fn context(&self) -> Context {
        let launcher = || self.engine.launcher().in_place_of("local").polled_every(Duration::from_secs(10));
        let gpu_runs = Arc::clone(&self.gpu_runs);
        let gpu: QueueName = "gpu".parse().unwrap();
        let limits = move || Some(BTreeMap::from([(gpu.clone(), gpu_runs.load(Ordering::Relaxed))]));
        let dependencies = Dependencies {
            webhook: None,
            queues: QueueLimits::new(BTreeMap::new(), limits),
            clock: self.clock.clone(),
            ids: Arc::new(SystemIds),
            launchers: vec![Arc::new(launcher()), Arc::new(launcher().named(NAMED_ENGINE))],
            binary: "/no/such/program".into(),
            read_context: ReadContext::default(),
        };
        let request = Request { cancel: self.cancel.clone(), ..Request::of_local_user() };
        Context::open_with(Home::new(self.folder.join("home"), None), dependencies, request, true).unwrap()
    }

    /// A file in the folder.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A run file `run.toml` whose script is a command line of `sh`, with `more` behind its `[run]`.
    pub fn run_file(&self, script: &str, more: &str) -> PathBuf {
        let script = serde_json::to_string(script).unwrap();
        self.write("run.toml", &format!("[run]\nname = \"a\"\ncommand = [\"sh\", \"-c\", {script}]\n{more}"))
    }

    /// Begins a training run of a script; nothing of it is launched.
    pub fn begun(&self, context: &Context, script: &str, more: &str) -> Prepared {
        self.begun_in(None, context, script, more)
    }

    /// The same in a queue.
    pub fn begun_in(
        &self,
        queue: Option<QueueName>,
        context: &Context,
        script: &str,
        more: &str,
    ) -> Prepared {
        let source = RunSource::File { path: self.run_file(script, more), patch: PlanPatch::default() };
        let mut start = read(context, &source, false, &self.notes).unwrap();
        start.job.queue = queue;
        let prepared = begin(context, &start, LaunchKind::Train, &self.notes).unwrap();
        // A test may look at them.
        context.copies.finish();
        prepared
    }

    /// Runs a script to the end of its run.
    pub fn run(&self, context: &Context, script: &str, more: &str) -> RunOutcome {
        let prepared = self.begun(context, script, more);
        drive(context, prepared, None, &self.notes).unwrap()
    }

    /// Days pass.
    pub fn advance_days(&self, days: i64) {
        self.clock.advance_micros(days * 86_400_000_000);
    }

    /// Adds attempts to a run that have these numbers and are sealed, as `more` has them.
    pub fn add_sealed(
        context: &Context,
        run: &RunRow,
        numbers: Range<u32>,
        more: impl Fn(AttemptRow) -> AttemptRow,
    ) {
        let row = |number| {
            let attempt_id = AttemptId::new(&context.ids);
            let files = context.home.layout.attempt(attempt_id);
            more(AttemptRow {
                state: AttemptState::Sealed,
                sealed_at: Some(context.clock.now()),
                receipt_sha256: Some("0".repeat(64)),
                termination_reason: Some(TerminationReason::Preempted),
                log_directory: files.folder().to_string_lossy().into_owned(),
                ..AttemptRow::planned(attempt_id, number, LaunchKind::Train, run)
            })
        };
        let rows: Vec<AttemptRow> = numbers.map(row).collect();
        let added = context
            .ledger
            .backend()
            .transaction(false, |backend| rows.iter().try_for_each(|row| backend.insert(row)));
        added.unwrap();
    }
}
