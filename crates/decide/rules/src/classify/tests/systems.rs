use super::of_log;
use crate::classify::*;

/// Proves that fixed phrases of queues, stores, allocators, builders, readers, engines and trainers are read, none of which was before.
#[test]
fn phrases_of_systems_are_read() {
    let rows: &[(Reason, &[&str])] = &[
        (
            Reason::HostOom,
            &[
                "Error: Dummy run ended with StatusType.MEMOUT after 3072 MB",
                "arena_new: not enough space in the context's memory pool (needed 90, available 80)",
                "Caused by: org.apache.spark.memory.SparkOutOfMemoryError: Unable to acquire 4096 bytes of memory",
                "container trainer: memory usage exceeded its limit of 4Gi",
            ],
        ),
        (
            Reason::DeviceOom,
            &[
                "RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED",
                "onnx: RuntimeException: Failed to allocate memory for requested buffer of size 4096",
                "XGBoostError: device_helpers.cuh:431: Memory allocation error on worker 0: Caching allocator",
                "MemoryError: Error allocating 4096 bytes of device memory (CNMEM_STATUS_OUT_OF_MEMORY).",
                "step 4: MLU out of memory",
            ],
        ),
        (
            Reason::NetworkError,
            &[
                "OperationalError: server closed the connection unexpectedly",
                "OSError: Consistency check failed: file should be of size 90 but has size 17 (model.safetensors).",
                "ssl.SSLError: [SSL: DECRYPTION_FAILED_OR_BAD_RECORD_MAC] decryption failed or bad record mac",
                "urllib.error.ContentTooShortError: <urlopen error retrieval incomplete: got only 7 out of 9 bytes>",
                "rsync: connection unexpectedly closed (0 bytes received so far) [sender]",
                "Err:3 http://mirror.example  Temporary failure resolving 'mirror.example'",
                "[Info] Connecting to rank 3 failed",
            ],
        ),
        (
            Reason::StorageError,
            &[
                "OperationalError: unable to open database file",
                "DatabaseError: database disk image is malformed",
                "azure.core.exceptions.ResourceNotFoundError: The specified blob does not exist.",
                "errors_impl.PermissionDeniedError: /mnt/a; Permission denied",
                "ResponseStreamingError: An error occurred while reading from response stream",
                "BlockingIOError: [Errno 11] Resource temporarily unavailable: '/scratch/a.lock'",
            ],
        ),
        (
            Reason::CheckpointError,
            &[
                "qtext: model.bin has wrong file format!",
                "RuntimeError: Failed to load optimizer: groups differ",
                "MisconfigurationException: Trying to restore a state but checkpoint contains only the model.",
            ],
        ),
        (
            Reason::SchemaDrift,
            &[
                "pandas.errors.MergeError: No common columns to perform merge on",
                "schema check failed: `id` is a string",
                "reader: Unrecognized field 'ts' in a row",
            ],
        ),
        (
            Reason::DataError,
            &[
                "_lzma.LZMAError: Input format not supported by decoder",
                "XMLSyntaxError: Start tag expected, '<' not found, line 1, column 1",
                "ArrowInvalid: CSV parse error: Expected 12 columns, got 11: 1,2,3",
                "error: (-215:Assertion failed) !ssize.empty() in function 'resize'",
                "datasets.exceptions.DataFilesNotFoundError: No (supported) data files found in /d",
            ],
        ),
        (
            Reason::NumericDivergence,
            &["nan encountered in gradient of layer 4", "Overflow. Loss scale is 0. Giving back"],
        ),
        (
            Reason::NodeFailure,
            &[
                "UnexpectedAdmissionError: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu",
                "nvidia-smi: No devices were found",
                "mlx5_core 0000:1:0.0: device's health compromised - reached miss count",
                "GPU 4 is in a bad state: requires reset",
                "monitor: VM has crashed: HOST_ERROR",
                "pod was evicted: node n7 NotReady (NodeLost)",
                "job killed: received SISTER_EOF attempting to communicate with another MOM",
            ],
        ),
        (
            Reason::Timeout,
            &[
                "runner: maximum session lifetime reached",
                "job removed: AllowedExecuteDuration of 60 exceeded",
                "Trainer reached max_time 00:12:00:00. Signaling Trainer to stop.",
                "task reached the maximum timeout of 60 seconds",
                "run exceeded its time budget of 4 hours and was ended",
            ],
        ),
        (
            Reason::Hang,
            &[
                "rendezvous.cc:90] Termination timeout for `first call` of 40 seconds exceeded. Exiting to ensure a consistent program state.",
                "Missing ranks: 1, 2 - waiting",
            ],
        ),
        (Reason::Cancelled, &["pipeline 7: JOB_STATE_CANCELLED", "prefect.exceptions.CancelledRun"]),
        (Reason::BudgetExhausted, &["sbatch: error: QOSMaxGRESPerUser"]),
        (
            Reason::Preempted,
            &["sky.exceptions.ResourcesUnavailableError: Failed to acquire resources in all zones"],
        ),
        (Reason::EarlyStopped, &["Training stopped: Met validation criterion"]),
        (Reason::EvaluatorError, &["lm-eval: error: task 'a' not found"]),
        (
            Reason::CodeError,
            &[
                "CMake Error at CMakeLists.txt:7 (find_package):",
                "error: command 'gcc' failed with exit status 1",
                "CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.",
                "main.o: undefined reference to `f'",
                "FailedPullingImage: Unable to pull docker image",
                "[W] Trial 3 failed, because the value None could not be cast to float.",
                "Undefined function or variable 'a'.",
            ],
        ),
        (
            Reason::Unknown,
            &[
                "Exception in thread Thread-2 (loop):\nRuntimeError: One or more background workers are no longer alive.",
            ],
        ),
        (
            Reason::Completed,
            &[
                "wandb: Program ended successfully.",
                "Training is over, best checkpoint at step 900",
                "acc 0.8\nFinished. Final test accuracy: 0.93",
                "Saved final weights to a.safetensors.",
            ],
        ),
    ];
    for (reason, logs) in rows {
        for log in *logs {
            assert_eq!(classify(&of_log(&format!("{log}\n"))).reason, *reason, "{log}");
        }
    }
}

/// Proves that lines which only look like those phrases are not read as them.
#[test]
fn lookalikes_of_phrases_are_not_read() {
    let rows = [
        (Reason::CodeError, "IndexOutOfRangeException: index 7"),
        (Reason::Unknown, "gcsfuse mounted; starts downloading the model"),
        (Reason::Unknown, "see run.error for details"),
        (Reason::Unknown, "made 403 batches, 12 in a bucket"),
    ];
    for (reason, log) in rows {
        assert_eq!(classify(&of_log(&format!("{log}\n"))).reason, reason, "{log}");
    }
}
