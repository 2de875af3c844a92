//! Launches the parts of a proof and finds the state each ended in.

use trackway_api::runs::rehearsal::{ProofLaunch, ProofPart};
use trackway_checkpoint::{CheckpointInfo, CheckpointState, ManifestFile};
use trackway_core::{LaunchKind, Rung, Step, TerminationReason, with_fields_of};
use trackway_engine::Context;
use trackway_engine::actions::{self, ActionKind};
use trackway_engine::checkpoints::view;
use trackway_engine::error::AppError;
use trackway_engine::reporter::{NotesOnly, Reporter};
use trackway_engine::run::seal::SealedAttempt;
use trackway_engine::run::{Fault, Injection, InjectionTime, Prepared, Rehearsal, Start, begin, rehearse};
use trackway_formats::Variable;
use trackway_ledger::{AttemptRow, ProofVerdict};

use super::ProveRequest;

/// Why the proof goes no further.
pub enum Halt {
    /// There is nothing to compare, for this reason.
    Short(ProofVerdict, String),
    /// A fault of Trackway's or of the machine.
    Fault(AppError),
}

impl From<AppError> for Halt {
    fn from(error: AppError) -> Self {
        Self::Fault(error)
    }
}

fn not_proved(why: impl Into<String>) -> Halt {
    Halt::Short(ProofVerdict::NotProved, why.into())
}

/// The training state of a run at the last step.
#[derive(Debug, Clone)]
pub struct SavedState {
    /// Over all files.
    pub digest: String,
    /// The files of the checkpoint.
    pub files: Vec<ManifestFile>,
}

/// One run of the proof.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// The run, once it began.
    pub run_id: Option<trackway_core::RunId>,
    /// The state it ended in.
    pub state: Option<SavedState>,
}

/// The launches of a proof, done so far.
pub struct Launches<'a> {
    context: &'a Context,
    start: &'a Start,
    request: &'a ProveRequest,
    reporter: NotesOnly<'a>,
    /// The undisturbed run.
    pub control: Part,
    /// The same once more.
    pub repeated: Part,
    /// The run that is killed and resumed.
    pub resumed: Part,
    /// The step at or after which it was killed.
    pub killed_at_step: Option<Step>,
    pub resumed_from_step: Option<Step>,
    /// In order.
    pub done: Vec<ProofLaunch>,
    pub gpu_seconds: f64,
    /// Of all launches, where there is a price.
    pub cost_usd: Option<f64>,
}

impl<'a> Launches<'a> {
    pub fn new(
        context: &'a Context,
        start: &'a Start,
        request: &'a ProveRequest,
        reporter: &'a dyn Reporter,
    ) -> Self {
        Self {
            context,
            start,
            request,
            reporter: NotesOnly(reporter),
            control: Part::default(),
            repeated: Part::default(),
            resumed: Part::default(),
            killed_at_step: None,
            resumed_from_step: None,
            done: Vec::new(),
            gpu_seconds: 0.0,
            cost_usd: None,
        }
    }

    fn half(&self) -> Step {
        self.request.steps / 2
    }

    /// In the middle between the checkpoint and the end, so that work is lost.
    fn kill_step(&self) -> Step {
        self.half() + ((self.request.steps - self.half()) / 2).max(1)
    }

    /// All steps from the beginning.
    pub fn control(&mut self) -> Result<SavedState, Halt> {
        let steps = self.request.steps;
        self.reporter.note(format!("proof, 1 of 3: {steps} steps, undisturbed"));
        let prepared = self.begin()?;
        self.control.run_id = Some(prepared.run.run_id);
        let sealed = self.launch(ProofPart::Control, &prepared, None, &self.bounded())?;
        let state = self.ended_in(&prepared, &sealed)?;
        self.committed(&prepared, self.half())?.ok_or_else(|| {
            not_proved(format!(
                "no checkpoint was committed at step {}: does the script save whenever `checkpoint_due` returns true?",
                self.half()
            ))
        })?;
        self.control.state = Some(state.clone());
        Ok(state)
    }

    /// The same once more.
    pub fn repeated(&mut self) -> Result<SavedState, Halt> {
        self.reporter.note(format!(
            "proof, 2 of 3: the same {} steps again, to see whether they repeat",
            self.request.steps
        ));
        let prepared = self.begin()?;
        self.repeated.run_id = Some(prepared.run.run_id);
        let sealed = self.launch(ProofPart::Repeated, &prepared, None, &self.bounded())?;
        let state = self.ended_in(&prepared, &sealed)?;
        self.repeated.state = Some(state.clone());
        Ok(state)
    }

    /// Killed after the checkpoint in the middle, resumed, and run to the end.
    pub fn resumed(&mut self) -> Result<SavedState, Halt> {
        let (half, kill_step, steps) = (self.half(), self.kill_step(), self.request.steps);
        self.reporter.note(format!(
            "proof, 3 of 3: {steps} steps, killed at step {kill_step} and resumed from step {half}"
        ));
        let prepared = self.begin()?;
        self.resumed.run_id = Some(prepared.run.run_id);
        let killed = self.launch(ProofPart::Killed, &prepared, None, &self.killing())?;
        if !self.was_killed(&killed.row)? {
            return Err(not_proved(format!(
                "the launch that was to be killed at step {kill_step} {} before",
                ending(&killed)
            )));
        }
        self.killed_at_step = killed.row.last_step.max(Some(kill_step));
        self.reporter.note(format!("killed; resuming, up to step {steps}"));
        let resumed = self.launch(ProofPart::Resumed, &prepared, Some(&killed.row), &self.bounded())?;
        self.resumed_from_step = resumed.row.resumed_from_step;
        let state = self.ended_in(&prepared, &resumed)?;
        went_on(&resumed.row, half)?;
        self.resumed.state = Some(state.clone());
        Ok(state)
    }

    fn begin(&self) -> Result<Prepared, AppError> {
        begin(self.context, self.start, LaunchKind::Prove, &self.reporter)
    }

    /// What bounds every launch: checkpoints in the middle and at the end, where it is asked to stop.
    fn bounded(&self) -> Rehearsal {
        let steps = self.request.steps;
        let environment = [
            (Variable::MaxSteps.as_str(), steps.to_string()),
            (Variable::CheckpointAtSteps.as_str(), format!("{},{steps}", self.half())),
        ];
        Rehearsal {
            environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            handshake_seconds: Some(self.request.handshake_seconds),
            ..Rehearsal::default()
        }
    }

    /// A fast loop would end before it could be killed, so it is held where it is to be killed.
    fn killing(&self) -> Rehearsal {
        let mut rehearsal = self.bounded();
        let step = self.kill_step();
        rehearsal.environment.insert(Variable::HoldAtStep.as_str().into(), step.to_string().into());
        rehearsal.injection = Some(Injection {
            fault: Fault::Kill,
            moment: InjectionTime::StepAfterCommit { step, committed: self.half() },
        });
        rehearsal
    }

    fn launch(
        &mut self,
        part: ProofPart,
        prepared: &Prepared,
        previous: Option<&AttemptRow>,
        rehearsal: &Rehearsal,
    ) -> Result<SealedAttempt, Halt> {
        let sealed = rehearse(self.context, prepared, previous, rehearsal, &self.reporter)?;
        let row = &sealed.row;
        self.gpu_seconds += row.gpu_seconds.unwrap_or(0.0);
        self.cost_usd = row.cost_usd.map(|usd| usd + self.cost_usd.unwrap_or(0.0)).or(self.cost_usd);
        self.done.push(with_fields_of!(
            ProofLaunch,
            &row,
            [
                run_id, attempt_id, termination_reason, resumed_from_step, last_step, last_committed_step,
                wall_seconds,
            ],
            part,
        ));
        if self.context.request.cancel.stop_requests() > 0 {
            return Err(not_proved(format!("stopped by {}", self.context.request.cancel.last_signal())));
        }
        self.spoke(row)?;
        Ok(sealed)
    }

    /// Nothing can be proved about a script without the recorder.
    fn spoke(&self, row: &AttemptRow) -> Result<(), Halt> {
        let segments = self.context.ledger_read(|ledger| ledger.segments_of(row.attempt_id))?;
        if segments.iter().any(|segment| segment.origin.as_deref() == Some("sdk")) {
            return Ok(());
        }
        let ended = match row.termination_reason {
            Some(TerminationReason::Timeout) => {
                format!("; it was ended after {} s", self.request.handshake_seconds)
            }
            Some(reason) if !reason.is_success() => format!("; it ended as `{reason}`"),
            _ => String::new(),
        };
        let why = format!("the script never spoke to the recorder{ended}");
        Err(Halt::Short(ProofVerdict::NotApplicable, why))
    }

    /// The state that a launch committed at the last step, every byte of it verified.
    fn ended_in(&self, prepared: &Prepared, sealed: &SealedAttempt) -> Result<SavedState, Halt> {
        let Some(info) = self.committed(prepared, self.request.steps)? else {
            return Err(not_proved(self.shortfall(sealed)));
        };
        let root = self.root(prepared);
        let loaded = view(&root)?.load(info.number).map_err(|error| not_proved(error.to_string()))?;
        let digest = loaded.manifest.state_digest.clone();
        if loaded.manifest.files.iter().all(|file| file.kind == trackway_checkpoint::Kind::Other) {
            return Err(not_proved(
                "the checkpoint contains no training state: every file is of kind `other`",
            ));
        }
        let took = sealed.row.wall_seconds.unwrap_or(0.0);
        let step = info.step;
        self.reporter.note(format!(
            "step {step} is committed after {took:.1} s, state {}",
            digest.get(..12).unwrap_or(&digest)
        ));
        Ok(SavedState { digest, files: loaded.manifest.files })
    }

    /// Why nothing was committed at the last step.
    fn shortfall(&self, sealed: &SealedAttempt) -> String {
        let (row, steps) = (&sealed.row, self.request.steps);
        let failed = row.termination_reason.is_none_or(|reason| !reason.is_success());
        let last = row.last_step.map_or("no step".into(), |step| format!("step {step}"));
        match (row.last_step, row.last_committed_step) {
            (last_step, _) if last_step < Some(steps) || failed => {
                format!("the script {} at {last}, but should have continued to step {steps}", ending(sealed))
            }
            (_, None) => format!("the script reached {last} and committed no checkpoint"),
            (_, Some(committed)) => format!(
                "the script reached {last}; its last checkpoint is of step {committed}, not {steps}: \
                 choose --steps so that it looks at `checkpoint_due` there"
            ),
        }
    }

    fn committed(&self, prepared: &Prepared, step: Step) -> Result<Option<CheckpointInfo>, AppError> {
        let readable = CheckpointState::is_whole;
        let mut found = view(&self.root(prepared))?.list();
        found.retain(|info| info.step == step && info.manifest_sha256.is_some());
        // Retention may have deleted the one in the middle; that it was committed is what counts there.
        found.sort_by_key(|info| readable(info.state));
        Ok(found.pop())
    }

    fn root(&self, prepared: &Prepared) -> std::path::PathBuf {
        self.context.home.layout.checkpoint_root(
            prepared.run.run_id,
            prepared.run.kind,
            &Rung::FULL.to_string(),
        )
    }

    fn was_killed(&self, row: &AttemptRow) -> Result<bool, AppError> {
        let files = self.context.home.layout.attempt(row.attempt_id);
        let done = actions::read(&files)?;
        Ok(done.iter().any(|action| action.kind == ActionKind::InjectedKill))
    }
}

/// Whether a launch continued from a checkpoint, and did not train everything once more.
fn went_on(row: &AttemptRow, half: Step) -> Result<(), Halt> {
    match (row.resumed_from_step, row.first_step) {
        (None, _) => Err(not_proved(format!(
            "step {half} was committed, but the next launch started from the beginning: does the script call `resume`?"
        ))),
        (Some(resumed), Some(first)) if first < resumed => Err(not_proved(format!(
            "the script resumed the checkpoint of step {resumed}, but trained from step {first}"
        ))),
        _ => Ok(()),
    }
}

/// `ended as `code_error` (…)`.
fn ending(sealed: &SealedAttempt) -> String {
    let reason = sealed.row.termination_reason.unwrap_or(TerminationReason::Unknown);
    if reason.is_success() {
        return "ended by itself".into();
    }
    let id = sealed.row.attempt_id;
    format!("ended as `{reason}` ({}; `trackway logs {id}`)", sealed.evidence)
}
