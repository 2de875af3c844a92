//! Proofs of how an end is read from a log that states it, names it inside another report, or is healthy.

use super::by_hand::raised;
use super::{ended, of_log, with_state};
use crate::classify::*;

fn reads(log: &str) -> (Reason, Confidence) {
    let verdict = classify(&of_log(log));
    (verdict.reason, verdict.confidence)
}

/// Proves that a trainer's or platform's statement of its normal end is heard where no exit is known, unless something failed after it,
/// a stop or a lost loss came before it, or training continued; and that an exit code, a signal or an engine's word outranks it.
#[test]
fn a_stated_end_counts_without_an_exit_code() {
    use Confidence::{Guess, Likely};
    let fit = "`Trainer.fit` stopped: `max_epochs=3` reached.\n";
    let steps = "step 8 loss 0.4 lr 0.1\nstep 9 loss 0.3 lr 0.1\n";
    let rows = [
        (fit.to_owned(), Reason::Completed, Likely),
        ("{'train_runtime': 66.3, 'train_loss': 0.298, 'epoch': 3.0}\n".into(), Reason::Completed, Likely),
        ("12 epochs completed in 1.223 hours.\n".into(), Reason::Completed, Likely),
        ("2026-01-01 Completed - Training job completed\n".into(), Reason::Completed, Likely),
        ("INFO: Training finished successfully\n".into(), Reason::Completed, Guess),
        (
            "wandb: Network error (TransientError), entering retry loop.\n".to_owned() + fit,
            Reason::Completed,
            Likely,
        ),
        ("ValueError: sample 3 is odd\n".to_owned() + fit, Reason::Completed, Likely),
        // what it does not speak of
        (format!("{fit}KeyError: 'accuracy'\n"), Reason::CodeError, Guess),
        (
            format!("{fit}OSError: [Errno 28] No space left on device\n"),
            Reason::StorageError,
            Confidence::Likely,
        ),
        (
            format!("{fit}torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"),
            Reason::Unknown,
            Guess,
        ),
        (format!("{fit}{steps}"), Reason::Unknown, Guess),
        (
            "early stopping at epoch 7\n8 epochs completed in 0.1 hours.\n".into(),
            Reason::EarlyStopped,
            Likely,
        ),
        ("KeyboardInterrupt\nTraining finished\n".into(), Reason::Cancelled, Likely),
        ("loss is nan, stopping training\nTraining finished\n".into(), Reason::NumericDivergence, Likely),
        ("{'train_runtime': 66.3, 'train_loss': nan}\n".into(), Reason::NumericDivergence, Guess),
        ("Epoch 3 training complete, validating\n".into(), Reason::Unknown, Guess),
        ("the run will stop when training is complete\n".into(), Reason::Unknown, Guess),
    ];
    for (log, reason, confidence) in rows {
        let found = reads(&log);
        assert_eq!(found.0, reason, "{log}");
        assert!(found.1 == confidence || reason != Reason::Completed, "{log}: {found:?}");
    }
    for known in [
        ended(Some(1), None, fit),
        ended(None, Some(9), fit),
        with_state(of_log(fit), "slurm", "FAILED", ""),
        TerminationEvidence { shim_lost: Some("no exit record".into()), ..of_log(fit) },
    ] {
        assert_ne!(classify(&known).reason, Reason::Completed, "{known:?}");
    }
}

/// Proves that exit code 0 stays certain beside what healthy runs print: a disabled scaler, tied weights, an error that training survived
/// to its stated end, a counter that did not reach its limit, a setting that names early stopping, a frame alone.
#[test]
fn healthy_runs_are_certainly_complete() {
    let long_path = "/very".repeat(50);
    let rows = [
        format!(
            "{long_path}/grad_scaler.py:136: UserWarning: torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.\n"
        ),
        "There were missing keys in the checkpoint model loaded: ['lm_head.weight'].\n".into(),
        "ConnectionError: upload failed\n7 epochs completed in 0.1 hours.\n".into(),
        "EarlyStopping counter: 3 out of 10\nEpoch 12/12 loss 0.1\n".into(),
        "EarlyStopping counter: 3 out of 10\nTraining complete.\n".into(),
        "early_stopping_patience: 10\n".into(),
        "  File \"/a/lr_scheduler.py\", line 562, in step\n".into(),
    ];
    for log in rows {
        let verdict = classify(&ended(Some(0), None, &log));
        assert_eq!((verdict.reason, verdict.confidence), (Reason::Completed, Confidence::Certain), "{log}");
        let also: Vec<_> = verdict.secondary.iter().filter(|it| it.reason == Reason::CodeError).collect();
        assert!(also.is_empty() || log.contains("epochs completed"), "{log}\n{also:?}");
    }
    let full = classify(&ended(Some(0), None, "EarlyStopping counter: 10 out of 10\n"));
    assert_eq!(full.reason, Reason::EarlyStopped);
}

/// Proves that what healthy logs print now and then does not explain an unknown end.
#[test]
fn healthy_lines_are_no_reading() {
    for log in [
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n",
        "EarlyStopping counter: 3 out of 10\n",
        "Train until valid scores didn't improve in 50 rounds.\n",
        "EarlyStoppingCallback(early_stopping_patience=3) registered\n",
        "UserWarning: torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.\n",
        "E0101 cuda_driver.cc:152] failed call to cuInit: INTERNAL: CUDA error: UNKNOWN ERROR (303)\n",
        "  File \"/a/lr_scheduler.py\", line 562, in step\n",
        "Shared connection to 10.20.30.40 closed\n",
        "the task has failed, got preempted, or crashed\n",
        "Server is not up yet. Retrying in 2 seconds\nmodel loaded\n\n\n\nbatch 1\n",
        // an exception in a finalizer is printed and ignored, also where its announcement was cut off
        "  File \"/a/loader.py\", line 9, in __del__\n    self.stop()\n  File \"/a/loader.py\", line 3, in stop\nAssertionError: can only test a child process\n",
    ] {
        assert_eq!(reads(log).0, Reason::Unknown, "{log}");
    }
    let waiting = "Server is not up yet. Retrying in 2 seconds\n".repeat(3);
    assert_eq!(reads(&waiting), (Reason::NetworkError, Confidence::Guess));
    let skipped = "OVERFLOW! Rank 0 Skipping step.\n".repeat(4);
    assert_eq!(reads(&skipped).0, Reason::NumericDivergence);
}

/// Proves that a cause named inside another component's report is the cause, and that a file which is absent after an error is not.
#[test]
fn a_cause_inside_a_consequence_is_heard() {
    let rows = [
        (
            Reason::HostOom,
            "java.lang.InterruptedException: ExecutorLostFailure (executor 7 exited) Reason: Container killed by YARN for exceeding memory limits. 5 GB of 5 GB used\n",
        ),
        (
            Reason::Preempted,
            "The actor died because its node has died.\nthe actor's node was preempted: drain\n",
        ),
        (Reason::Timeout, "Job exceeded its walltime limit. Job was aborted\n"),
        (Reason::Timeout, "Job 7 deleted at request of root@head\nMOAB_INFO: job exceeded wallclock limit\n"),
        (
            Reason::CodeError,
            "AttributeError: no logger\nFileNotFoundError: 'out/steps.txt': No such file or directory: 'out/steps.txt'\n",
        ),
        (Reason::DataError, "FileNotFoundError: No such file or directory: 'data/train.csv'\n"),
        (Reason::CodeError, "failed (exitcode: -11) local_rank: 1 (pid: 4)\n"),
    ];
    for (reason, log) in rows {
        assert_eq!(reads(log).0, reason, "{log}");
    }
}

/// Proves that the words of other accelerators, schedulers and libraries are known.
#[test]
fn words_of_other_vendors_are_known() {
    let rows = [
        (
            Reason::NodeFailure,
            "RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)\n",
        ),
        (Reason::NodeFailure, "amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=12\n"),
        (Reason::NodeFailure, "xe 0000:03:00.0: [drm] GT0: Engine reset: engine_class=ccs\n"),
        (Reason::NodeFailure, "Device[1] lost heartbeat.\n"),
        (Reason::NodeFailure, "habanalabs hl3: hard reset due to heartbeat failure\n"),
        (Reason::DeviceOom, "FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::52680 (50)MB\n"),
        (Reason::DeviceOom, "RuntimeError: synStatus=8 [Device not enough memory]\n"),
        (Reason::HostOom, "srun: error: n1: task 0: Out Of Memory\n"),
        (
            Reason::HostOom,
            "Task 'x' has 30 GiB worth of input dependencies, but worker tcp://a has memory_limit set to 14 GiB.\n",
        ),
        (Reason::Preempted, "PreemptionError: Nodes of this job got pre-empted.\n"),
        (Reason::Cancelled, "Job 70 deleted at request of alice@login1\n"),
        (Reason::Timeout, "stopped because it exceeded the max allowed execution duration\n"),
        (Reason::Hang, "rtDeviceSynchronize execute failed, reason=[stream sync timeout]\n"),
        (Reason::SchemaDrift, "LightGBMError: b'Wrong size of feature_names'\n"),
        (
            Reason::DataError,
            "HfHubHTTPError: 404 Client Error: Not Found for url: https://huggingface.co/api/datasets/q\n",
        ),
        (Reason::CodeError, "python: can't open file '/w/train.py': [Errno 2] No such file or directory\n"),
    ];
    for (reason, log) in rows {
        let found = reads(log);
        assert_eq!(found.0, reason, "{log}");
        assert!(
            reason != Reason::NodeFailure || found.1 != Confidence::Certain,
            "a program can hang a device: {log}"
        );
    }
}

/// Proves that exit code 0 does not hide a failure that a wrapper swallowed: a main program's traceback or a launcher's report at the very
/// end; but that a thread's, a task's, a child's or a logger's does not count, nor one before a stated end.
#[test]
fn a_swallowed_failure_is_heard() {
    let thrown = "Traceback (most recent call last):\n  File \"/a/t.py\", line 2, in go\nTypeError: no x\n";
    let full = "Traceback (most recent call last):\n  File \"/a/t.py\", line 2, in go\nOSError: [Errno 28] No space left on device\n";
    let rows = [
        (thrown.to_owned(), Reason::CodeError),
        (full.to_owned(), Reason::StorageError),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n".to_owned(), Reason::Unknown),
        (format!("Exception in thread Thread-5:\n{thrown}"), Reason::Completed),
        (format!("Process SpawnProcess-1:\n{thrown}"), Reason::Completed),
        (format!("Task exception was never retrieved\n{thrown}"), Reason::Completed),
        (format!("--- Logging error ---\n{thrown}"), Reason::Completed),
        (format!("Training finished\n{thrown}"), Reason::Completed),
        (format!("{thrown}{}", "saved\n".repeat(9)), Reason::Completed),
    ];
    for (log, reason) in rows {
        let verdict = classify(&ended(Some(0), None, &log));
        assert_eq!(verdict.reason, reason, "{log}\n{verdict:#?}");
        assert!(verdict.reason == Reason::Completed || verdict.confidence != Confidence::Certain, "{log}");
    }
}

/// Proves that the class of an exception says what it is about, in any library, with the weight of any exception.
#[test]
fn the_class_of_an_exception_is_read() {
    for (line, reason) in [
        ("storagelib.errors.BucketGoneError: b", Reason::StorageError),
        ("mylib.FleetTransportError: gone", Reason::NetworkError),
        ("ShardDecodeError: shard 3", Reason::DataError),
        ("mesh.CheckpointLayoutError: 8 parts", Reason::CheckpointError),
        ("rules.SchemaVersionError: 3", Reason::SchemaDrift),
        ("panel.JudgeReplyError: empty", Reason::EvaluatorError),
        ("pool.QuotaGoneError: 0 left", Reason::BudgetExhausted),
        ("pool.PreemptedError: slot given away", Reason::Preempted),
        ("pool.NodeLostError: n3", Reason::NodeFailure),
        ("mesh.BarrierBrokenError: 3 of 4", Reason::Hang),
        ("guard.NaNLossError: step 3", Reason::NumericDivergence),
        ("jobs.WallTimeExceeded: 2 h", Reason::Timeout),
        ("    raise FleetTransportError(host)", Reason::Unknown),
        ("registered FleetTransportError callback", Reason::Unknown),
    ] {
        let found = reads(&format!("{line}\n"));
        assert_eq!(found.0, reason, "{line}");
        assert_ne!(found.1, Confidence::Certain, "{line}");
    }
    let earlier = "TypeError: no x\nmylib.FleetTransportError: gone\n";
    assert_eq!(reads(earlier).0, Reason::CodeError);
}

/// Proves that a pod's eviction is read with its cause, and that what a sentence only supposes is not a hang.
#[test]
fn an_eviction_has_the_cause_that_its_message_names() {
    let evicted = "Reason:  Evicted\nMessage: The node was low on resource: ";
    assert_eq!(reads(&format!("{evicted}memory.\n")).0, Reason::HostOom);
    assert_eq!(reads(&format!("{evicted}ephemeral-storage.\n")).0, Reason::StorageError);
    assert_eq!(reads("1/8 workers are evicted\n").0, Reason::Preempted);
    assert_eq!(reads("an old kernel; this can cause the process to hang\n").0, Reason::Unknown);
    assert_eq!(reads("To stop training early press ctrl-c\n").0, Reason::Unknown);
}

/// Proves that rarer words of schedulers, stores, loaders and libraries are known.
#[test]
fn rarer_words_are_known() {
    let rows = [
        (Reason::HostOom, "job 12 exceeds job hard limit \"h_vmem\""),
        (Reason::HostOom, "Error: vector memory exhausted (limit reached?)"),
        (Reason::HostOom, "fatal error: runtime: out of memory"),
        (Reason::DeviceOom, "RuntimeError: Not enough memory on device 'mps:0'"),
        (Reason::NetworkError, "fsspec.exceptions.FSTimeoutError: slow"),
        (Reason::NetworkError, "CreateSession still waiting for response from worker: /job:ps/task:0"),
        (
            Reason::NetworkError,
            " [[Node: a/mul_4 = _Recv[client_terminated=false, recv_device=\"/job:ps\"]()]]",
        ),
        (Reason::StorageError, "OSError: [Errno 16] Please reduce your request rate."),
        (Reason::StorageError, "sqlite3.OperationalError: attempt to write a readonly database"),
        (Reason::StorageError, "RuntimeError: basic_ios::clear: iostream error"),
        (Reason::DataError, "RuntimeError: Audio file a.wav with offset 14.0 is empty!"),
        (Reason::DataError, "ValueError: mmap length is greater than file size"),
        (
            Reason::SchemaDrift,
            "ArrowInvalid: Could not convert 'x' with type str: tried to convert to double",
        ),
        (Reason::SchemaDrift, "CatBoostError: Invalid type for cat_feature[non-default value idx=1]=2.0"),
        (Reason::DataError, "CatBoostError: Invalid type for cat_feature[non-default value idx=1]=NaN"),
        (Reason::CheckpointError, "EOFError: Ran out of input"),
        (Reason::Preempted, "run failed: INTERRUPTED_BY_NO_CAPACITY"),
        (Reason::Preempted, "CapacityError: Unable to provision requested ML compute capacity."),
        (
            Reason::BudgetExhausted,
            "the subscription has a total vCPU quota of 4 and cannot accommodate a node",
        ),
        (Reason::Timeout, "=>> PBS: job killed: cput 3601 exceeded limit 3600"),
        (Reason::EarlyStopped, "Early stop!"),
        (Reason::CodeError, "slurmstepd: error: execve(): train.sh: Permission denied"),
        (
            Reason::Unknown,
            "Message:  PyTorchJob q has failed because 2 Worker replica(s) failed.\n    Failed:  2",
        ),
        (Reason::DeviceOom, "  what():  [10:00:00] src/storage/pool.h:107: cudaMalloc fail"),
        (Reason::Timeout, "Cell 2: Timeout of 90 seconds exceeded waiting for output."),
        (
            Reason::Timeout,
            "nbclient.exceptions.CellTimeoutError: A cell timed out while it was being executed, after 9 seconds.",
        ),
        (
            Reason::Cancelled,
            "2026-01-01 12:00:00,657 - wandb.wandb_agent - INFO - Agent received command: stop",
        ),
        (
            Reason::BudgetExhausted,
            "Error code: 402 - {'error': {'message': 'Credit limit exceeded.', 'type': 'credit_limit'}}",
        ),
        (Reason::CodeError, "GGML_ASSERT: src/ggml.c:104: ne0 == nb0"),
        (Reason::CodeError, "src/ggml.c:104: GGML_ASSERT(ne0 == nb0) failed"),
        (
            Reason::CheckpointError,
            "Global shape mismatch for loaded ((8, 4)) and expected ((4, 4)) tensor for key q",
        ),
        (Reason::Completed, "  train_runtime            = 0:41:12.33"),
        (Reason::Completed, "INFO: All epochs completed."),
    ];
    for (reason, line) in rows {
        assert_eq!(reads(&format!("{line}\n")).0, reason, "{line}");
    }
}

/// Proves that what runtimes, stores of models and services print of a failure is read.
#[test]
fn words_of_runtimes_and_services_are_known() {
    let rows = [
        (Reason::DeviceOom, "llama_model_load: error loading model: unable to allocate CUDA0 buffer"),
        (Reason::CheckpointError, "llama_model_load: error loading model: missing tensor 'output.weight'"),
        (
            Reason::CheckpointError,
            "tensor 'a.weight' is not within the file bounds, model is corrupted or incomplete",
        ),
        (
            Reason::CheckpointError,
            "ValueError: Received incompatible tensor with shape (3, 4) when attempting to restore variable with shape (4, 4)",
        ),
        (
            Reason::DataError,
            "[LightGBM] [Fatal] Cannot construct Dataset since there are not useful features.",
        ),
        (
            Reason::EvaluatorError,
            "ValueError: Only one class present in y_true. ROC AUC score is not defined in that case.",
        ),
        (
            Reason::EvaluatorError,
            "google.api_core.exceptions.ResourceExhausted: 429 Resource has been exhausted (e.g. check quota).",
        ),
        (Reason::NumericDivergence, "rerun_state_machine: Unexpected result nan on rank 0 at iteration #12"),
        (Reason::HostOom, "Memory limit of 512 MiB exceeded with 530 MiB used."),
        (Reason::HostOom, "fatal error: out of memory allocating heap arena metadata"),
        (Reason::Timeout, "The job timeout of 3600s was exceeded."),
        (Reason::Preempted, "[process=0][thread=MainThread] Reached preemption sync point, step=400"),
    ];
    for (reason, line) in rows {
        assert_eq!(reads(&format!("{line}\n")).0, reason, "{line}");
    }
}

/// Proves that what kernels, notebooks, drivers of TPUs and NPUs, batch systems, R, Spark, Kaldi and Kubernetes print of an end is
/// read, and that a lack of other space than a disk's is not a storage error.
#[test]
fn words_of_kernels_notebooks_and_other_languages_are_known() {
    let killed = "Fatal error: The Python kernel is unresponsive.\nProcess exited with exit code 137 (SIGKILL: Killed).";
    let rows = [
        (
            Reason::CodeError,
            "[81.4] python3[22]: segfault at 8 ip 00007f2a sp 00007ffd error 4 in a.so[7f+8]",
        ),
        (Reason::CodeError, "traps: python[44] general protection fault ip:7f0c sp:7ffe error:0 in a.so"),
        (Reason::CodeError, "NVRM: Xid (PCI:0000:3b:00): 31, pid=81, name=python, Ch 00000008. MMU Fault"),
        (
            Reason::NodeFailure,
            "NVRM: Xid (PCI:0000:3b:00): 31, pid=81\nNVRM: Xid (PCI:0000:3b:00): 79, pid=81",
        ),
        (Reason::Unknown, "nbclient.exceptions.DeadKernelError: Kernel died"),
        (Reason::Unknown, killed),
        (Reason::CodeError, &killed.replace("137 (SIGKILL: Killed)", "134 (SIGABRT: Aborted)")),
        (Reason::DeviceOom, "EL0004: Failed to allocate memory.\n Possible Cause: memory is insufficient."),
        (Reason::DeviceOom, "Call rtMalloc fail, purpose: weights, size: 32"),
        (Reason::HostOom, "RuntimeError: cudaHostAlloc failed: out of memory"),
        (
            Reason::HostOom,
            "RuntimeError: CUDA error: out of memory while 8 MiB of pinned memory were allocated",
        ),
        (Reason::Completed, "Result for fit_7:\n  done: true\n  training_iteration: 30"),
        (Reason::Completed, " 9.1 seconds (Warm-up)\n 21.9 seconds (Total)"),
        (Reason::CodeError, "Error in value[[3L]](cond) : object 'y' not found"),
        (Reason::DataError, "Error in na.fail.default(d) : missing values in object"),
        (Reason::DataError, "Error: One or more factor levels in the outcome has no data: 'c'"),
        (Reason::DataError, "SparkException: Values to assemble cannot be null. Consider removing nulls."),
        (Reason::DataError, "OSError: Can't read data (inflate() failed)"),
        (
            Reason::DeviceOom,
            "poptorch.Error: In poplar: out_of_memory: Out of memory on tile 3: 7 bytes used",
        ),
        (
            Reason::DeviceOom,
            "BFCArena::AllocateRawInternal Available memory of 1 is smaller than requested bytes of 9",
        ),
        (
            Reason::CodeError,
            "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: CalledProcessError",
        ),
        (Reason::CodeError, "OutOfResources: out of resource: shared memory, Required: 9, Hardware limit: 7"),
        (
            Reason::CodeError,
            "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.",
        ),
        (Reason::NetworkError, "PMIX ERROR: PMIX_ERR_UNREACH in file client/a.c at line 7"),
        (Reason::CheckpointError, "AssertionError: Some ZeRO checkpoints are missing: ['zero_pp_rank_3']"),
        (Reason::NumericDivergence, "PhysicsError: Nan, Inf or huge value in QACC at DOF 5."),
        (
            Reason::Unknown,
            "0/4 nodes are available: 4 Insufficient nvidia.com/gpu. preemption: 0/4 nodes are available",
        ),
        (Reason::DataError, "Details: ERRR on field: _response: Response cannot be constant."),
        (Reason::CheckpointError, "ValueError: No checkpoint found at /runs/7"),
        (Reason::Unknown, "No checkpoint found at /runs/7, starting from scratch"),
        (Reason::CodeError, "Back-off pulling image \"train:v7\""),
        (Reason::Preempted, "pod deleted: node is being disrupted"),
        (Reason::CodeError, "AssertionError: Not enough space for replay buffer"),
        (Reason::StorageError, "OSError: Not enough free disk space to download the file"),
        (Reason::CodeError, "ERROR (gmm-est[5.5.1]:Read():io.cc:7) Error opening input stream exp/a.mat"),
        (
            Reason::HostOom,
            "12.0 Job in status 2 put on hold by SYSTEM_PERIODIC_HOLD due to memory usage 3100.",
        ),
        (
            Reason::HostOom,
            "The job attribute PeriodicHold expression '(MemoryUsage > 2 * RequestMemory)' evaluated to TRUE",
        ),
        (
            Reason::HostOom,
            "distributed.worker_memory - WARNING - Worker is at 84% memory usage. Pausing worker.  Process memory: 9 GiB",
        ),
        (Reason::NetworkError, "Error: null\nInternalServerError\nGET https://h.example/runs/7 500"),
        (
            Reason::StorageError,
            "[9:24:41] src/io/local.cc:39: Check failed: std::fwrite(p, 1, n, fp_) == n FileStream.Write incomplete",
        ),
        (Reason::CodeError, "F0000 00:17 90 client.cc:48] Non-OK-status: status status: INTERNAL: see above"),
        (
            Reason::CodeError,
            "E1224 22:35 26 real.cc:1] 0x0_TC0: *** Halt is unexpected, all pending programs will fail.",
        ),
        (Reason::CodeError, "Error in a$fit(x, substitute(y)) : \n  unable to find variable \"w\""),
        (Reason::Cancelled, "forrtl: error (200): program aborting due to control-C event"),
        (
            Reason::Hang,
            "EH9999: rtDeviceSynchronize execute failed, reason=[task timeout][FUNC:Reason][LINE:5]",
        ),
        (
            Reason::Hang,
            "RuntimeError: ACL stream synchronize failed.\nEI9999: hccl fftsplus task timeout occurred, stream_id:7",
        ),
        (
            Reason::NetworkError,
            "subprocess.CalledProcessError: Command 'ssh -p 9 10.0.0.7 hostname' returned non-zero exit status 255.",
        ),
    ];
    for (reason, lines) in rows {
        assert_eq!(reads(&format!("{lines}\n")).0, reason, "{lines}");
    }
}

/// Proves that only an authority's statement or a thrown error is certain, and a time limit only if nothing was stuck before.
#[test]
fn certainty_needs_a_statement_or_an_exception() {
    use Confidence::{Certain, Likely};
    let limit = "slurmstepd: error: *** JOB 5 ON n2 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n";
    let rows = [
        ("OSError: [Errno 28] No space left on device\n".to_owned(), Reason::StorageError, Certain),
        ("cp: error writing '/a/b': No space left on device\n".into(), Reason::StorageError, Likely),
        ("tracker: Temporary failure in name resolution\n".into(), Reason::NetworkError, Likely),
        (limit.to_owned(), Reason::Timeout, Certain),
        (format!("Watchdog caught collective operation timeout\n{limit}"), Reason::Timeout, Likely),
    ];
    for (log, reason, confidence) in rows {
        assert_eq!(reads(&log), (reason, confidence), "{log}");
    }
}

/// Proves that a request that is still retried where the log ends is a failure of the network, and one with progress after it is not.
#[test]
fn a_request_retried_to_the_end_is_the_networks() {
    let retried = "'(MaxRetryError(\"HTTPSConnectionPool(host='h.example', port=443): Max retries exceeded\"))' thrown while \
                   requesting HEAD https://h.example/a.txt\nRetrying in 2s [Retry 2/5].\n";
    assert_eq!(reads(retried).0, Reason::NetworkError);
    let went_on: String = (0..60).map(|step| format!("step {step}: loss 0.5\n")).collect();
    assert_eq!(reads(&format!("{retried}{went_on}")).0, Reason::Unknown);
}

/// Proves that exit code 0 after a SIGTERM that the trainer wrote down is the end from outside that it was, a
/// preemption where the run file says so, and a completed training where it reached its end after all.
#[test]
fn exit_code_0_after_a_sigterm_is_no_completion() {
    let cut = "step 48 loss 0.5\nstep 49 loss 0.5\n[rank: 0] Received SIGTERM: 15\n";
    let judged = |log: &str, preempts: bool| {
        let mut evidence = ended(Some(0), None, log);
        evidence.sigterm_preempts = preempts;
        let verdict = classify(&evidence);
        (verdict.reason, verdict.evidence[0].text.clone())
    };
    assert_eq!(judged(cut, false), (Reason::Unknown, "[rank: 0] Received SIGTERM: 15".into()));
    assert_eq!(judged(cut, true).0, Reason::Preempted);
    let reached = format!("{cut}`Trainer.fit` stopped: `max_steps=60` reached.\n");
    assert_eq!(judged(&reached, true).0, Reason::Completed);
    let long_ago = format!("caught SIGTERM of a worker\n{}", "step 9 loss 0.5\n".repeat(60));
    assert_eq!(judged(&long_ago, false).0, Reason::Completed);
    assert_eq!(judged("SIGTERM handler is installed\nstep 9 loss 0.5\n", false).0, Reason::Completed);
}

/// Proves that a cancellation is not the cause of what had failed before it, unless the work continued in between; that
/// what follows a cancellation is not its cause; and that a line of Slurm is none of the code.
#[test]
fn a_cancellation_follows_from_what_had_failed() {
    let cancelled = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n";
    let stuck = "[rank0]:[E ProcessGroupNCCL.cpp:1] Watchdog caught collective operation timeout\n";
    let memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB\n";
    let odd = raised("f()", "ValueError: odd");
    let bar = " 40%|####  | 4/10 [00:01<00:01]\n";
    for (log, reason) in [
        (format!("{odd}{cancelled}"), Reason::CodeError),
        (format!("{stuck}{cancelled}"), Reason::Hang),
        (format!("{memory}{cancelled}"), Reason::DeviceOom),
        (format!("{cancelled}{odd}"), Reason::Cancelled),
        (format!("{odd}{bar}{cancelled}"), Reason::Cancelled),
        (cancelled.to_owned(), Reason::Cancelled),
        ("slurmstepd: error: TaskProlog failed status=1\n".to_owned(), Reason::Unknown),
    ] {
        assert_eq!(reads(&log).0, reason, "{log}");
    }
}

/// Proves that updates which a scaler skipped are no reading once a finite loss and a finite gradient follow, and that the last ones are.
#[test]
fn skipped_updates_that_recover_are_no_reading() {
    let norm = |value: &str| format!("{{'loss': 1.2, 'grad_norm': {value}, 'epoch': 0.1}}\n");
    let skipped = "OVERFLOW! Rank 0 Skipping step.\n".repeat(4);
    let thrown = raised("f()", "RuntimeError: boom");
    for (log, reason) in [
        (norm("nan") + &norm("0.9"), Reason::Unknown),
        (norm("0.9") + &norm("nan"), Reason::NumericDivergence),
        (format!("{skipped}step 9 loss 0.3\n{thrown}"), Reason::CodeError),
        (format!("{skipped}{thrown}"), Reason::NumericDivergence),
    ] {
        assert_eq!(classify(&ended(Some(1), None, &log)).reason, reason, "{log}");
    }
}

/// Proves that the closing lines of a tracker are not an end of the work, neither after a count that falls short nor after an interrupt.
#[test]
fn the_closing_lines_of_a_tracker_are_no_end() {
    let lines = "wandb: Run summary:\nwandb:     loss 0.4\nwandb: Synced 5 W&B file(s), 0 media file(s)\n";
    for (before, reason) in [
        ("Epoch 31/99 - loss 0.4\n", Reason::Unknown),
        ("Epoch 99/99 - loss 0.4\n", Reason::Completed),
        ("KeyboardInterrupt\n", Reason::Cancelled),
    ] {
        assert_eq!(reads(&format!("{before}{lines}")).0, reason, "{before}");
    }
    let stopped = classify(&ended(Some(0), None, &format!("KeyboardInterrupt\n{lines}")));
    assert_eq!(stopped.reason, Reason::Cancelled, "{stopped:#?}");
}

/// Proves that exit code 0 is not certain where the log shows another end as well: a counter of an early stop, a bar
/// that is far from its end, only errors that were dealt with, or a last line that is cut; and that a count, words or a result settle it.
#[test]
fn an_end_that_may_be_another_one_is_not_certain() {
    let of = |log: &str| {
        let verdict = classify(&ended(Some(0), None, log));
        assert_eq!(verdict.reason, Reason::Completed, "{log}");
        verdict.confidence
    };
    for log in [
        "EarlyStopping counter: 3 out of 10\nepoch 12 loss 0.1\n",
        "Will train until valid-auc hasn't improved in 50 rounds.\n[12] valid-auc:0.81\n",
        "Epoch 00031: val_auc did not improve from 0.81220\n",
        "Epoch 41:  73%|######  | 1095/1500 [10:11<03:46,  1.79it/s, loss=1.21]\n",
        "WARNING skipping a.parquet: file is truncated\n",
        "step 3000/9000 loss 2.114\nstep 3200/90",
        "epoch 12 loss 0.1\nTraceback (most recent ca",
    ] {
        assert_eq!(of(log), Confidence::Likely, "{log}");
    }
    for log in [
        "epoch 12 loss 0.1\n",
        "Epoch 41: 100%|#######| 1500/1500 [10:11<00:00,  1.79it/s, loss=1.21]\n",
        "EarlyStopping counter: 3 out of 10\nfinal test accuracy 0.97\n",
        "WARNING skipping a.parquet: file is truncated\nepoch 12 loss 0.1\n",
    ] {
        assert_eq!(of(log), Confidence::Certain, "{log}");
    }
}

/// Proves that settings, counts of none and times that something may take are no errors, and that the same words with
/// another value, or as the message of an exception, are.
#[test]
fn settings_are_no_errors() {
    for line in [
        "corrupt files: 0",
        "| INFO | schema changed: false",
        "missing columns: []",
        "unknown categories: ignore",
        "retry on connection error: true",
        "watchdog timeout: 600 s",
        "walltime limit: 24h",
        "early stopping patience: 3",
        "state_dict has 80 tensors",
        "using no label smoothing in layer 3",
        "GPU hours used: 12.3",
        "preemption: enabled",
        "requests per minute: 60",
    ] {
        let verdict = classify(&of_log(&format!("{line}\n")));
        assert_eq!(verdict.reason, Reason::Unknown, "{line}: {verdict:#?}");
    }
    for (line, reason) in [
        ("KeyError: 0", Reason::CodeError),
        ("OOMKilled: true", Reason::HostOom),
        ("CUDA out of memory on device: 0", Reason::DeviceOom),
        ("watchdog timeout on rank: 3", Reason::Hang),
        ("corrupt file: a.csv", Reason::DataError),
    ] {
        assert_eq!(reads(&format!("{line}\n")).0, reason, "{line}");
    }
}
