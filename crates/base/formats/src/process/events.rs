//! The kinds of events that Trackway itself writes. A script may record events of other kinds.

use trackway_core::closed_list;

closed_list!(
    /// The kind of an event; `docs/events.md` lists what writes each. Beside these there are the actions of Trackway on
    /// an attempt.
    EventKind, "kind of event", {
        /// A tag of the run: `name`, `value`.
        Tag = "tag",
        /// A file that was logged: `name`, `blake3`, `size_bytes`.
        Artifact = "artifact",
        /// A file that could not be logged, and why.
        ArtifactFailed = "artifact_failed",
        /// What a script of W&B says of the files that it logged: type, aliases and metadata.
        ArtifactDetails = "artifact_details",
        /// An alert of a script of W&B: title, text, level.
        Alert = "alert",
        /// The exit code with which a script of W&B finished its run.
        ReportedExitCode = "reported_exit_code",
        /// The status with which a script of MLflow ended its run, if it is not FINISHED.
        ReportedStatus = "reported_status",
        /// An exception that ended the script: `type`, `message`, `traceback`.
        Exception = "exception",
        /// The rank of the process that wrote the segment.
        Rank = "rank",
        /// Where the data loader is: `batch` and `epoch` of a step.
        DataCursor = "data_cursor",
        /// How much of the data the rung keeps: `rung`, `rows`, `rows_total`; `by`: `loader`, `indexes` or `keys`.
        RungCut = "rung_cut",
        /// The seed that the script took: `seed`.
        SeedTaken = "seed_taken",
        /// The script loaded the weights of the rung before: `step`, `manifest_sha256`.
        WarmStart = "warm_start",
        /// They could not be loaded, and why.
        WarmStartFailed = "warm_start_failed",
        /// A checkpoint that the script wrote itself was committed: `path`, `layout`, `complete` (what showed that it is),
        /// `step_from`, `shown_by` (what showed that the attempt wrote it), `bytes`, `seconds`.
        CheckpointAdopted = "checkpoint_adopted",
        /// The script, or a callback in it, has finished writing a checkpoint itself: `path`, absolute.
        CheckpointWritten = "checkpoint_written",
        /// One that was not committed: `path`, `why`.
        CheckpointNotAdopted = "checkpoint_not_adopted",
        /// One that is not shown to be the attempt's, and therefore neither committed nor moved: `path`, `owner`
        /// (`other` or `unknown`), `why`.
        CheckpointCandidate = "checkpoint_candidate",
        /// Whether the script read a checkpoint that was there when it was started: `path`; `by`: `attempt`, `unknown` (a process
        /// that was not identified) or `none`; `planned`: whether it is the one that the attempt was to continue from.
        CheckpointOpened = "checkpoint_opened",
        /// The script continued from another checkpoint than was planned, or from none: `path`, `planned_step`, `read`.
        CheckpointOtherResume = "checkpoint_other_resume",
        /// The first steps of the attempt show that it did not continue from its checkpoint; seen while it ran.
        WrongResume = "wrong_resume",
        /// Variables of the supervisor's environment are not those of the attempt before.
        VariablesChanged = "variables_changed",
        /// Before a launch it was put where the script looks for it: `path`, `step`.
        CheckpointPutBack = "checkpoint_put_back",
        /// Before a launch it was moved out of the script's way: `path`, `to`, `why`.
        CheckpointMovedAside = "checkpoint_moved_aside",
        /// A save was begun.
        CheckpointWriting = "checkpoint_writing",
        /// A checkpoint was committed.
        CheckpointCommitted = "checkpoint_committed",
        /// The script resumed from a checkpoint.
        CheckpointResumed = "checkpoint_resumed",
        /// A state of a checkpoint that a newer SDK wrote.
        CheckpointUnknown = "checkpoint_unknown",
        /// The first call that saves when a checkpoint is due; what decides: `cadence`.
        CheckpointAsked = "checkpoint_asked",
        /// How often the script asked so far whether to save (`asked`), and how often the answer was no: `not_due`, `no_time` (SIGKILL
        /// may come before the save ends), `busy` (the previous save was being written). At the second, fourth, eighth … question, and
        /// at the end of the record with `final`.
        CheckpointAsks = "checkpoint_asks",
        /// The cadence of the run file counts epochs and the script has not reported how many are finished: it saves as without a cadence.
        CheckpointEpochsUnknown = "checkpoint_epochs_unknown",
        /// The script asks at each step and the run file has no cadence: how often it saves, `interval_seconds`.
        CheckpointDefaultCadence = "checkpoint_default_cadence",
        /// A save has no value of the metric of `keep.best`: it was neither passed nor logged at its step. `metric`.
        CheckpointBestUnknown = "checkpoint_best_unknown",
        /// Why a checkpoint is saved: `reason`.
        CheckpointReason = "checkpoint_reason",
        /// A save that was not made, and why.
        CheckpointSkipped = "checkpoint_skipped",
        /// A save that was begun and given up.
        CheckpointAbandoned = "checkpoint_abandoned",
        /// A save that failed, and why.
        CheckpointFailed = "checkpoint_failed",
        /// A save that several ranks could not make together.
        CheckpointGivenUp = "checkpoint_given_up",
        /// A checkpoint that did not verify when it was loaded; an older one was taken.
        CheckpointFallback = "checkpoint_fallback",
        /// A save takes longer than the time between two saves.
        CheckpointCadenceTooShort = "checkpoint_cadence_too_short",
        /// A save takes longer than the grace period.
        CheckpointExceedsGrace = "checkpoint_exceeds_grace",
        /// No time is left for a last save.
        CheckpointDoesNotFit = "checkpoint_does_not_fit",
        /// A checkpoint without a place in the data was loaded.
        ResumeWithoutPlace = "resume_without_place",
        /// The script took the path of a data set from Trackway: `name`.
        DataPathTaken = "data_path_taken",
        /// Whether a data set was opened while the attempt ran: `data`; `by`: `attempt`, `unknown` (a process that was not
        /// identified) or `none`.
        DataOpened = "data_opened",
        /// A source file that was opened while an evaluator ran, with the bytes that it had then: `path`, `sha256`, `size_bytes`.
        CodeOpened = "code_opened",
        /// The script could not resume, and why.
        ResumeFailed = "resume_failed",
        /// Components of a checkpoint that the script did not load.
        ResumeLeftOut = "resume_left_out",
        /// The step at which all ranks do something together.
        StepAnnounced = "step_announced",
        /// A rank learned of that step after it had passed it.
        StepAnnouncedTooLate = "step_announced_too_late",
        /// The script received SIGTERM.
        SigtermNoticed = "sigterm_noticed",
        /// SIGTERM cannot be handled, and why.
        SigtermHandlerFailed = "sigterm_handler_failed",
        /// `TRACKWAY_SKIP_BATCHES` cannot be read.
        SkipBatchesUnreadable = "skip_batches_unreadable",
        /// A line of the control file cannot be read.
        ControlLineUnreadable = "control_line_unreadable",
        /// A request of the control file was carried out or refused.
        ControlAck = "control_ack",
        /// Frames that were not written, because the disk was too slow.
        FramesDropped = "frames_dropped",
        /// The script names too many metrics; values of further names are counted and not recorded: `names_max`, `name`
        /// (the first of them), `values`.
        MetricNamesFull = "metric_names_full",
        /// The script reached its maximum of steps and ended.
        MaxStepsReached = "max_steps_reached",
        /// The script waits in a save for a fault that is part of a rehearsal.
        HeldInSave = "held_in_save",
        /// The script takes part in a rehearsal.
        RehearsalHandshake = "rehearsal_handshake",
        /// What was observed in a rehearsal: `about`, `facts`.
        RehearsalFacts = "rehearsal_facts",
        /// The loss of a rehearsal reached its target.
        RehearsalTargetReached = "rehearsal_target_reached",
        /// Something of the framework could not be observed.
        RehearsalBlind = "rehearsal_blind",
        /// What a diagnosis observed: `about`, `facts`.
        DiagnosisFacts = "diagnosis_facts",
        /// A diagnosis could not observe something: `where`, `why`.
        DiagnosisBlind = "diagnosis_blind",
        /// The first value of a loss or gradient norm that is NaN or infinite: which parameters have such gradients.
        NonfiniteGradients = "nonfinite_gradients",
        /// Examples of progressive validation were trained on before.
        ProgressiveSeenBefore = "progressive_seen_before",
        /// A callback of the SDK failed; training continued.
        CallbackFailed = "callback_failed",
        /// What a scikit-learn model is fitted for.
        FitTask = "fit_task",
        /// A TensorBoard writer withdrew points: `names`, `step`.
        TensorboardRestart = "tensorboard_restart",
        /// A part of an event file or of a file of metrics was not recorded: `path`, `why`, and of damage `offset`, `bytes` and `damage`.
        EventFileSkipped = "event_file_skipped",
        /// Metrics or settings were read from a file that a framework wrote: `path`, `form`, `values`, `settings`, `shown_by`.
        MetricFileRead = "metric_file_read",
        /// Something of what the script printed was not read, is not in the log or was not shown: `kind`, `path` (the log; empty: both),
        /// `count`, `why`, and where it is known `line`.
        OutputLeftOut = "output_left_out",
        /// Something of a run of another tool was not imported: `kind`, `path`, `count`, `why`.
        ImportSkipped = "import_skipped",
        /// Something of a run of another tool is not here as it is there: `kind`, `path`, `count`, `why`.
        ImportChanged = "import_changed",
        /// The run was launched without pre-flight, and why.
        PreflightSkipped = "preflight_skipped",
        /// Pre-flight was repeated for a run that continues on something else than it began with: what blocks is in `found`.
        PreflightRepeated = "preflight_repeated",
        /// Pre-flight forbade the launch.
        PreflightBlocked = "preflight_blocked",
        /// The run was stopped before it was launched.
        PreflightStopped = "preflight_stopped",
        /// The run belongs to a group of runs: `group_id`, `kind`, `name`, `member` (from 1), `size`.
        Grouped = "grouped",
        /// The run waits for a place in its queue: `queue`, `at_most`, `running`, and `takes_turns`: it waits until no other runs.
        QueueJoined = "queue_joined",
        /// The run got a place in its queue: `queue`, `seconds` that it waited.
        QueuePlaceTaken = "queue_place_taken",
        /// The run was stopped while it waited for a place in its queue: `queue`.
        QueueLeft = "queue_left",
        /// The engine took an attempt that had started back into its queue, or started it again: `from`, `to`, `state`, `reason`.
        Requeued = "requeued",
        /// An attempt was not launched, and why; what a person does about it is in `next`.
        LaunchRefused = "launch_refused",
        /// What was fetched from the remote before the launch.
        CheckpointFetch = "checkpoint_fetch",
        /// The weights that a rung starts with.
        RungWarmStart = "rung_warm_start",
        /// A checkpoint was deleted from this disk before it was at the remote.
        UploadDropped = "upload_dropped",
        /// A checkpoint is suspect: it did not verify, or loading it ended several attempts.
        CheckpointSuspect = "checkpoint_suspect",
        /// What a checkpoint holds is most likely lost: `found_by`, `first_step`, `value`, `of`, `why`.
        CheckpointUnsafe = "checkpoint_unsafe",
        /// A person used an unsafe checkpoint, or decided that it is not unsafe: `use`, `why`.
        CheckpointAccepted = "checkpoint_accepted",
        /// The checkpoint log disagrees with the ledger, which keeps its rows.
        CheckpointLogDamaged = "checkpoint_log_damaged",
        /// The run went back to an earlier checkpoint.
        RolledBack = "rolled_back",
        /// Training data of the run file was not opened while the attempt ran.
        DataNotOpened = "data_not_opened",
        /// The samples of an update of the weights are not those of the attempt before: `before`, `now`.
        EffectiveBatchChanged = "effective_batch_changed",
        /// Files of the data changed after they were hashed.
        DataChanged = "data_changed",
        /// The record of the attempt has more than the ledger keeps of it, and what.
        RecordCut = "record_cut",
        /// Output that could not be stored: the disk was full.
        OutputLost = "output_lost",
        /// Processes that the script left behind were ended, and their names.
        ProcessesEnded = "processes_ended",
        /// The process was not launched by Trackway, it began the run itself: `pid`, `executable`.
        ProcessAttached = "process_attached",
        /// A notification did not reach its webhook, and why: `about`, `tries`.
        NotificationFailed = "notification_failed",
        /// An approval of a version of a model has ended: `approval_id`, `version`, `approver`.
        ApprovalExpired = "approval_expired",
        /// The time of a pin was over, and it was taken away: `pin`, `until`.
        PinExpired = "pin_expired",
        /// `trackway gc` deleted the records of the attempt.
        RecordsCleared = "records_cleared",
    }
);

impl EventKind {
    /// Whether the name of an event is this kind.
    #[must_use]
    pub fn is(self, kind: &str) -> bool {
        self.as_str() == kind
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn below(folder: &str, extension: &str) -> Vec<String> {
        let mut waiting = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)];
        let mut texts = Vec::new();
        while let Some(path) = waiting.pop() {
            if path.is_dir() {
                waiting.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|it| it == extension) {
                texts.push(std::fs::read_to_string(path).unwrap());
            }
        }
        texts
    }

    /// Proves that `docs/events.md` names every kind.
    #[test]
    fn every_kind_is_documented() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/events.md");
        let text = std::fs::read_to_string(path).unwrap();
        for kind in EventKind::ALL {
            assert!(text.contains(&format!("| `{kind}` |")), "docs/events.md has no row for `{kind}`");
        }
    }

    /// Proves that the Python package writes no event whose kind is not in the list.
    #[test]
    fn the_python_package_writes_known_kinds() {
        let mut seen = 0;
        for text in below("edges/python/python", "py") {
            for call in [".event(\"", "._event(\"", "_told.tell(\""] {
                for rest in text.split(call).skip(1) {
                    let kind = rest.split('"').next().unwrap();
                    kind.parse::<EventKind>().unwrap();
                    seen += 1;
                }
            }
        }
        assert!(seen >= 10, "the calls were not found: {seen}");
    }
}
