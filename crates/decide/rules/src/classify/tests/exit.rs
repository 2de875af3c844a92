//! Proofs of how a quiet exit is read beside what the log says, and of how the lines of one failure are joined.

use super::{ended, of_log};
use crate::classify::*;

fn reads(log: &str) -> Reason {
    classify(&of_log(log)).reason
}

/// Proves that exit code 0 does not hide a stop that was not the end of the plan, nor a loss that is NaN to the end, and that such a
/// reading is never certain.
#[test]
fn exit_code_0_does_not_hide_a_stop() {
    let rows = [
        (
            Reason::Cancelled,
            "w.py:25: UserWarning: Detected KeyboardInterrupt, attempting graceful shutdown...\nbye\n",
        ),
        (Reason::Cancelled, "Received SIGINT, saving and leaving\nsaved\n"),
        (Reason::Preempted, "Received SIGTERM: the spot instance is reclaimed. Saving.\nsaved\n"),
        (Reason::Timeout, "Time limit reached. Elapsed time is 3:30:00. Signaling Trainer to stop.\n"),
        (
            Reason::BudgetExhausted,
            "ERROR: the account has run out of credits, the instance will be stopped\n",
        ),
        (Reason::NumericDivergence, "step 1 loss 0.4\nstep 2 loss nan\nstep 3 loss nan\nmodel saved\n"),
        (Reason::NumericDivergence, "Batch 2: Invalid loss, terminating training\n"),
        (
            Reason::NumericDivergence,
            "t:1 WARNING: The gradients at all steps are invalid in this epoch. This training was stopped at 2epoch\n",
        ),
        (
            Reason::NumericDivergence,
            "{'loss': 0.0, 'grad_norm': nan}\n{'train_runtime': 8.2, 'train_loss': 0.0}\n",
        ),
    ];
    for (reason, log) in rows {
        let verdict = classify(&ended(Some(0), None, log));
        assert_eq!(verdict.reason, reason, "{log}\n{verdict:#?}");
        assert_ne!(verdict.confidence, Confidence::Certain, "{log}");
    }
    let mut recorded = ended(Some(0), None, "step 2 loss nan\nstep 3 loss nan\n");
    recorded.non_finite_loss =
        Some(NonFiniteLoss { metric: "loss".into(), from_step: 2, last_step: 3, count: 2, point_count: 3 });
    assert_eq!(classify(&recorded).rule, FactRule::LossNotFinite.into(), "the recorded metric counts first");
}

/// Proves that a stop which was followed by a normal end, or by many other lines, does not change exit code 0, that a
/// search's own budget of time is its plan, and that doubts and a count far from its total make the success less than
/// certain.
#[test]
fn exit_code_0_is_a_success_otherwise() {
    use Confidence::{Certain, Likely};
    let many = "saved a part\n".repeat(60);
    let rows = [
        ("step 1 loss 0.4\nstep 2 loss 0.3\n".to_owned(), Certain),
        ("Epoch 6/90 loss 0.4\nEpoch 7/90 loss 0.3\n".into(), Likely),
        ("Epoch 7/90 loss 0.3\n7 epochs completed in 0.1 hours.\n".into(), Certain),
        ("step 1 loss nan\nstep 2 loss 0.3\n".into(), Likely),
        ("Received SIGINT in a helper\nTraining finished\n".into(), Likely),
        (format!("Received SIGINT in a helper\n{many}"), Likely),
        ("search: reached time_budget of 60 s, stopping\n".into(), Likely),
        ("WARNING: NaN found in layer 3\n".into(), Likely),
        ("the error has not changed for 5 epochs, we stop here\n".into(), Likely),
        ("error: could not draw the figure\n".into(), Likely),
        ("OSError: [Errno 5] Input/output error\n7 epochs completed in 0.1 hours.\n".into(), Certain),
    ];
    for (log, confidence) in rows {
        let verdict = classify(&ended(Some(0), None, &log));
        assert_eq!((verdict.reason, verdict.confidence), (Reason::Completed, confidence), "{log}");
    }
}

/// Proves that where no exit is known a complete count of epochs or steps is a normal end if nothing failed, and that a script's own words
/// close after a failure are not.
#[test]
fn a_complete_count_is_an_end() {
    let rows = [
        (Reason::Completed, "Epoch 9/9\n 78/78 [====] - 3s - loss: 0.1\n"),
        (Reason::Completed, "Study statistics:\n  Number of finished trials: 1\n"),
        (Reason::Completed, "accuracy: 0.9\nAll done.\n"),
        (Reason::Unknown, "Loading data\nDone.\n"),
        (Reason::Unknown, "wandb: Run summary:\nwandb: Synced 5 W&B file(s), 0 media file(s)\n"),
        (Reason::CodeError, "ValueError: odd\nEpoch 9/9, loss: 0.1\n"),
        (Reason::CodeError, "ValueError: odd\nDone\n"),
        (Reason::CodeError, "ValueError: odd\nINFO Training has ended.\n"),
        (Reason::CodeError, "ValueError: odd\nwandb: Synced 5 W&B file(s), 0 media file(s)\n"),
        (Reason::Unknown, "Done\n1\n2\n3\n4\n"),
        (Reason::Unknown, "Epoch 9/9\n"),
        (Reason::NumericDivergence, "step 8 loss nan\nstep 9 loss nan\nTraining has ended.\n"),
    ];
    for (reason, log) in rows {
        let verdict = classify(&of_log(log));
        assert_eq!(verdict.reason, reason, "{log}\n{verdict:#?}");
        assert!(reason != Reason::Completed || verdict.confidence != Confidence::Certain, "{log}");
    }
    assert_eq!(classify(&ended(Some(1), None, "Epoch 9/9, loss: 0.1\n")).reason, Reason::Unknown);
}

/// Proves that the statuses with which Windows ends a process are read from the exit code and from what a launcher prints of it.
#[test]
fn statuses_of_windows_are_read() {
    for (code, reason) in [
        (-1_073_741_819, Reason::CodeError),
        (-1_073_741_515, Reason::CodeError),
        (-1_073_741_510, Reason::Cancelled),
        (-1_073_741_801, Reason::HostOom),
        (-1_000, Reason::Unknown),
    ] {
        assert_eq!(classify(&ended(Some(code), None, "")).reason, reason, "{code}");
    }
    assert_eq!(reads("Process finished with exit code -1073741819 (0xC0000005)\n"), Reason::CodeError);
    assert_eq!(
        reads("CalledProcessError: 'x' returned non-zero exit status 3221225477.\n"),
        Reason::CodeError
    );
    assert_eq!(reads("Process finished with exit code 0\n"), Reason::Completed);
}

/// Proves that the line of code a frame quotes says what was called when the frames of the call are missing, and that a reader's exception
/// in a worker is the one that the runtime around it repeats.
#[test]
fn the_quoted_call_is_read() {
    let thrown = |code: &str, exception: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"t.py\", line 8, in main\n    {code}\n{exception}\n"
        )
    };
    let rows = [
        (Reason::EvaluatorError, thrown("m = self.compute_metrics(p)", "OverflowError: out of range")),
        (Reason::EvaluatorError, thrown("a = roc_auc_score(y, p)", "ValueError: y is odd")),
        (
            Reason::EvaluatorError,
            "Traceback (most recent call last):\n  File \"t.py\", line 8, in perform_final_validation\nRuntimeError: a worker is gone\n".into(),
        ),
        (Reason::CheckpointError, thrown("state = ckpt_manager.restore(3)", "ValueError: codec is odd")),
        (Reason::CheckpointError, thrown("torch.save(state, path)", "RuntimeError: cannot do that")),
        (Reason::CodeError, thrown("x = attention_score(q, k)", "ValueError: q is odd")),
        (Reason::CodeError, thrown("torch.save(state, path)", "TypeError: no path")),
        (
            Reason::DataError,
            "(0) Unknown: EOFError:\nRemoteTraceback:\nTraceback (most recent call last):\n  File \"/l/wave.py\", line 130, in initfp\n    raise EOFError\nEOFError\n".into(),
        ),
        (
            Reason::CheckpointError,
            "Traceback (most recent call last):\n  File \"/v/orbax/checkpoint/handlers.py\", line 8, in read\nValueError: 2 is not 64\n".into(),
        ),
    ];
    for (reason, log) in rows {
        assert_eq!(reads(&log), reason, "{log}");
    }
}

/// Proves that lines of one failure are joined: what a scheduler states after it cancelled, the last cause of a chain,
/// the numbers that were lost before an exception, and a failure after an early stop.
#[test]
fn lines_of_one_failure_are_joined() {
    let rows = [
        (
            Reason::Timeout,
            "The operation was canceled.\nThe job ran longer than the maximum time of 60 minutes.\n",
        ),
        (
            Reason::Timeout,
            "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nslurmstepd: error: *** JOB 5 ON n2 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
        ),
        (
            Reason::NetworkError,
            "Exception in thread \"main\" java.lang.RuntimeException: fit failed\n\tat q.Main\nCaused by: java.net.UnknownHostException: n1\n",
        ),
        (
            Reason::StorageError,
            "org.apache.spark.SparkException: Job aborted.\nCaused by: java.io.IOException: No space left on device\n",
        ),
        (Reason::NumericDivergence, "step 8 loss nan\nstep 9 loss nan\nValueError: sample is odd\n"),
        (Reason::CodeError, "step 8 loss 0.1\nstep 9 loss 0.1\nValueError: sample is odd\n"),
        (Reason::CodeError, "step 8 loss nan\nstep 9 loss nan\nTypeError: sample is odd\n"),
        (
            Reason::EarlyStopped,
            "| INFO | t | early stop since valid performance hasn't improved for last 5 runs\n| INFO | done training in 8.2 seconds\n",
        ),
        (
            Reason::Cancelled,
            "attempt 0 state PREEMPTED\nattempt 1 started\nstep 8 loss 0.3\nstep 9 loss 0.2\nattempt 1 state KILLED error=Terminated by user\n",
        ),
        (Reason::StorageError, "Early stopping at epoch 9\nOSError: [Errno 28] No space left on device\n"),
        (
            Reason::DeviceOom,
            "n1:7:9 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n2<5>\nn1:8:9 [1] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n",
        ),
        (
            Reason::HostOom,
            "DistBackendError: NCCL error in: a.cpp:20, unhandled system error, NCCL version 2.20.5\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\nError while creating shared memory segment /dev/shm/nccl-q (size 57)\n",
        ),
    ];
    for (reason, log) in rows {
        let verdict = classify(&of_log(log));
        assert_eq!(verdict.reason, reason, "{log}\n{verdict:#?}");
    }
}

/// Proves that an HDF5 file that a script opens itself is data, and the one from which Keras loads a model is a checkpoint.
#[test]
fn an_unreadable_hdf5_file_is_what_its_reader_makes_of_it() {
    let opened = "  File \"/v/h5py/_hl/files.py\", line 170, in make_fid\n    fid = h5f.open(name, flags, fapl=fapl)\n\
                  OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048)\n";
    for (reason, caller) in [
        (Reason::DataError, "  File \"train.py\", line 12, in rows\n    f = h5py.File(name, 'r')\n"),
        (
            Reason::CheckpointError,
            "  File \"/v/keras/engine/saving.py\", line 41, in load_model\n    f = h5py.File(name, 'r')\n",
        ),
    ] {
        let log = format!("Traceback (most recent call last):\n{caller}{opened}");
        assert_eq!(reads(&log), reason, "{log}");
    }
}

/// Proves that a log line behind `#` is read, which its time distinguishes from a comment in quoted code.
#[test]
fn a_log_behind_number_signs_is_read() {
    let line = "(fit pid=7) I 05-04 00:52:46 controller.py:100] The cluster is preempted.\n";
    assert_eq!(reads(&format!("# {line}")), Reason::Preempted);
    assert_eq!(reads("# The cluster is preempted.\n"), Reason::Unknown);
}

/// Proves that a possibility named in the midst of a line is not evidence, and that "could not" is.
#[test]
fn a_supposition_is_not_evidence() {
    for (reason, log) in [
        (Reason::Unknown, "The process ended. This may be due to an out of memory error.\n"),
        (Reason::Unknown, "The worker died, possibly because it ran out of memory\n"),
        (Reason::NetworkError, "ConnectionError: we could not reach the hub: connection refused\n"),
        (Reason::BudgetExhausted, "Could not fetch resource: Quota 'GPUS' exceeded. Limit: 1.0\n"),
    ] {
        assert_eq!(reads(log), reason, "{log}");
    }
}

/// Proves that more words of vendors, schedulers and libraries are known.
#[test]
fn more_words_of_vendors_are_known() {
    let rows = [
        (Reason::NodeFailure, "amdgpu 0000:03:00.0: amdgpu: ASIC reset failed with error, -121"),
        (Reason::NodeFailure, "tsd client wait response fail. unknown device error."),
        (Reason::NodeFailure, "node gpu-3 unreachable, its jobs are requeued"),
        (Reason::NodeFailure, "Cluster 7 was terminated. Reason: INSTANCE_UNREACHABLE"),
        (Reason::Hang, "EI0006: Getting socket times out. The remote rank did not send the data in time."),
        (Reason::SchemaDrift, "CatBoostError: Feature size_b from pool must be size_a."),
        (Reason::SchemaDrift, "CatboostError: Feature #3 has name a in training data, but b in test dataset"),
        (Reason::SchemaDrift, "Error in predict: factor colour has new levels blue"),
        (Reason::DataError, "sndfile: unknown format or could not open file - a.flac"),
        (
            Reason::DataError,
            "XGBoostError: Check failed: mparam_.num_feature != 0 (0 vs. 0) : 0 feature is supplied.",
        ),
        (Reason::DataError, "FileNotFoundError: Dataset not found: train (/d/bin)"),
        (Reason::DataError, "ValueError: Unknown label type: 'continuous'"),
        (
            Reason::CheckpointError,
            "ValueError: FAILED_PRECONDITION: Error opening \"zarr\" driver: compressor differs",
        ),
        (
            Reason::CheckpointError,
            "RuntimeError: Some tensors share memory, this will lead to duplicates on disk",
        ),
        (Reason::NumericDivergence, "error: dynamic loss scaler rejected a non-finite update"),
        (Reason::NumericDivergence, "ValueError: The parameter loc has invalid values"),
        (
            Reason::DeviceOom,
            "rocm_driver.cc:606] failed to allocate 1.00GiB (1 bytes) from device: HIP_ERROR_OutOfMemory",
        ),
        (Reason::Unknown, "Per user-direction, the job has been aborted."),
        (Reason::Completed, "[LightGBM] [Info] Finish train"),
        (Reason::Completed, "***** eval metrics *****"),
        (Reason::HostOom, "TERM_SWAP: job killed after reaching LSF swap usage limit."),
        (Reason::HostOom, "Container killed due to memory usage"),
        (Reason::Cancelled, "qdel: u1 has registered the job 7 for deletion"),
        (Reason::Cancelled, "TERM_ADMIN: job killed by root or LSF administrator."),
        (Reason::Timeout, "ERROR: Job failed: execution took longer than 1h0m0s seconds"),
        (Reason::Timeout, "[exiting program after 230.5 minutes] datetime: 2026-01-01"),
        (Reason::Preempted, "the instance was outbid"),
        (Reason::Preempted, "worker exiting on preemption"),
        (Reason::Timeout, "Run 33 TIMEDOUT"),
        (Reason::NodeFailure, "Node g3 NotReady: Kubelet stopped posting node status."),
        (Reason::DataError, "RuntimeError: expected label in range [0, 9] but found 12"),
        (Reason::DataError, "decord: cannot find video stream in a.mp4"),
        (Reason::StorageError, "RuntimeError: write failed: file system quota reached on /home"),
        (Reason::HostOom, "worker killed: RSS 12 GB exceeded container limit 11 GB (OOM)"),
        (Reason::CheckpointError, "ValueError: other shape when restoring variable w"),
        (Reason::NetworkError, "Post https://t.example/graphql: context deadline exceeded"),
        (Reason::Unknown, "loss scale: 65536.0, overflow: False"),
        (Reason::Unknown, "Dropped 12 rows with NaN"),
        (Reason::StorageError, "RemoteException: File /c/x could only be written to 0 of the 1 nodes"),
        (Reason::EvaluatorError, "ERROR - The testing results of the whole dataset is empty."),
        (Reason::EarlyStopped, "Validation loss increased 3 times in a row. Stop training."),
        (Reason::Unknown, "There were missing keys in the checkpoint model loaded: ['head']."),
        (Reason::Unknown, "INFO:root:best loss 0.1 at the start of training"),
        (Reason::Unknown, "WARNING: the callback took longer than 5 s"),
        (Reason::Unknown, "Dataset cache not found, building it"),
        (Reason::Unknown, "preprocess.sh: its exit status was 0 after 3 tries"),
    ];
    for (reason, line) in rows {
        assert_eq!(reads(&format!("{line}\n")), reason, "{line}");
    }
}
