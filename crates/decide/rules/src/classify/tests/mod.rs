mod by_hand;
mod by_name;
mod checkpoint_key;
mod content;
mod ending;
mod exit;
mod frame;
mod logged;
mod mistaken;
mod settings;
mod sibling;
mod systems;
mod traceback;
mod work;

use trackway_core::Timestamp;

use super::*;
use crate::scan::LogScanner;
use crate::signatures::{self, engine};

pub(super) fn of_log(log: &str) -> TerminationEvidence {
    let mut evidence = TerminationEvidence::new(LaunchKind::Train);
    evidence.logs.push(StreamLog { stream: Stream::Stderr, log: LogScanner::scan(log.as_bytes()) });
    evidence
}

pub(super) fn with_state(
    mut evidence: TerminationEvidence,
    source: &str,
    state: &str,
    reason: &str,
) -> TerminationEvidence {
    evidence.launcher =
        Some(LauncherState { source: source.into(), state: state.into(), reason: reason.into() });
    evidence
}

pub(super) fn ended(code: Option<i32>, signal: Option<i32>, log: &str) -> TerminationEvidence {
    TerminationEvidence { exit_code: code, signal, ..of_log(log) }
}

const OOM: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB\n";

/// Proves what exit codes, signals, launcher states and signatures mean alone and together: code × signal × launcher
/// × log, one row each.
#[test]
fn process_level_table() {
    use Confidence::{Certain, Guess, Likely};
    let slurm =
        |code, signal, state, reason, log| with_state(ended(code, signal, log), "slurm", state, reason);
    let pod = |code, reason, log| with_state(ended(code, None, log), "kubernetes", "Failed", reason);
    let rows = [
        // code and signal alone
        (ended(Some(0), None, ""), Reason::Completed, Certain),
        (ended(Some(1), None, ""), Reason::Unknown, Guess),
        (ended(Some(2), None, ""), Reason::CodeError, Guess),
        (ended(Some(7), None, ""), Reason::Unknown, Guess),
        (ended(Some(126), None, ""), Reason::CodeError, Likely),
        (ended(Some(127), None, ""), Reason::CodeError, Likely),
        (ended(Some(124), None, ""), Reason::Timeout, Guess),
        (ended(Some(130), None, ""), Reason::Cancelled, Guess),
        (ended(Some(137), None, ""), Reason::Unknown, Guess),
        (ended(Some(139), None, ""), Reason::CodeError, Guess),
        (ended(Some(143), None, ""), Reason::Unknown, Guess),
        (ended(Some(-9), None, ""), Reason::Unknown, Guess),
        (ended(None, Some(2), ""), Reason::Cancelled, Likely),
        (ended(None, Some(4), ""), Reason::CodeError, Likely),
        (ended(None, Some(6), ""), Reason::CodeError, Guess),
        (ended(None, Some(7), ""), Reason::HostOom, Guess),
        (ended(None, Some(8), ""), Reason::CodeError, Likely),
        (ended(None, Some(9), ""), Reason::Unknown, Guess),
        (ended(None, Some(9), "Killed\n"), Reason::Unknown, Guess),
        (ended(None, Some(9), "tcmalloc: large alloc 9663676416 bytes\nKilled\n"), Reason::HostOom, Guess),
        (ended(Some(1), None, "tcmalloc: large alloc 9663676416 bytes\n"), Reason::HostOom, Guess),
        (ended(None, Some(11), ""), Reason::CodeError, Likely),
        (ended(None, Some(15), ""), Reason::Unknown, Guess),
        (ended(None, Some(24), ""), Reason::Timeout, Likely),
        // the launcher outranks the exit code it produced
        (slurm(Some(0), None, "COMPLETED", "None", ""), Reason::Completed, Certain),
        (slurm(Some(7), None, "FAILED", "NonZeroExitCode", ""), Reason::Unknown, Guess),
        (slurm(None, Some(9), "FAILED", "JobLaunchFailure", ""), Reason::Unknown, Guess),
        (slurm(None, Some(15), "TIMEOUT", "TimeLimit", ""), Reason::Timeout, Certain),
        (slurm(None, Some(15), "PREEMPTED", "None", ""), Reason::Preempted, Certain),
        (slurm(None, Some(15), "CANCELLED", "None", ""), Reason::Cancelled, Likely),
        (slurm(None, None, "NODE_FAIL", "NodeDown", ""), Reason::NodeFailure, Certain),
        (slurm(None, None, "BOOT_FAIL", "", ""), Reason::NodeFailure, Certain),
        (slurm(Some(1), None, "OUT_OF_MEMORY", "OutOfMemory", ""), Reason::HostOom, Certain),
        (slurm(None, Some(15), "TIMEOUT", "TimeLimit", OOM), Reason::DeviceOom, Likely),
        (pod(Some(137), "OOMKilled", ""), Reason::HostOom, Certain),
        (pod(Some(0), "OOMKilled", ""), Reason::HostOom, Certain),
        (pod(Some(137), "Error", ""), Reason::Unknown, Guess),
        (pod(None, "DeadlineExceeded", ""), Reason::Timeout, Certain),
        (pod(None, "PreemptionByScheduler", ""), Reason::Preempted, Certain),
        (pod(None, "DeletionByTaintManager", ""), Reason::NodeFailure, Likely),
        (pod(None, "Evicted: The node was low on resource: memory", ""), Reason::HostOom, Certain),
        (
            pod(None, "Evicted: The node was low on resource: ephemeral-storage", ""),
            Reason::StorageError,
            Certain,
        ),
        (with_state(ended(None, None, ""), "ray", "STOPPED", ""), Reason::Cancelled, Likely),
        // the log beside the code
        (ended(Some(1), None, OOM), Reason::DeviceOom, Likely),
        (ended(Some(0), None, "Epoch 00009: early stopping\n"), Reason::EarlyStopped, Likely),
        (ended(Some(1), None, "TypeError: f() got no x\n"), Reason::CodeError, Likely),
        (ended(Some(0), None, OOM), Reason::Completed, Likely),
    ];
    for (index, (evidence, reason, confidence)) in rows.into_iter().enumerate() {
        let verdict = classify(&evidence);
        assert_eq!((verdict.reason, verdict.confidence), (reason, confidence), "row {index}: {verdict:#?}");
    }
}

/// Proves what the states of Slurm, Kubernetes with Kueue, and Ray mean, each in the words of its engine, and that the
/// rule names the engine.
#[test]
fn states_of_engines() {
    use Confidence::{Certain, Likely};
    let rows = [
        ("slurm", "OUT_OF_MEMORY", "", "slurm.out_of_memory", Reason::HostOom, Certain),
        ("slurm", "OUT_OF_ME+", "", "slurm.out_of_memory", Reason::HostOom, Certain),
        ("slurm", "NODE_FAIL", "", "slurm.node_fail", Reason::NodeFailure, Certain),
        ("slurm", "BOOT_FAIL", "", "slurm.boot_fail", Reason::NodeFailure, Certain),
        ("slurm", "PREEMPTED", "", "slurm.preempted", Reason::Preempted, Certain),
        ("slurm", "REVOKED", "", "slurm.revoked", Reason::Preempted, Likely),
        ("slurm", "TIMEOUT", "TimeLimit", "slurm.timeout", Reason::Timeout, Certain),
        ("slurm", "DEADLINE", "", "slurm.deadline", Reason::Timeout, Likely),
        ("slurm", "CANCELLED by 1000", "", "slurm.cancelled", Reason::Cancelled, Likely),
        ("slurm", "CANCELLED", "AssocGrpGRESMinutes", "slurm.quota", Reason::BudgetExhausted, Likely),
        ("kubernetes", "Failed", "OOMKilled", "kubernetes.oom_killed", Reason::HostOom, Certain),
        ("kubernetes", "Evicted", "", "kubernetes.evicted", Reason::Preempted, Likely),
        ("kubernetes", "Evicted", "Preempted", "kubernetes.preempted", Reason::Preempted, Certain),
        (
            "kubernetes",
            "Failed",
            "Evicted: The node was low on resource: memory",
            "kubernetes.evicted_for_memory",
            Reason::HostOom,
            Certain,
        ),
        (
            "kubernetes",
            "Failed",
            "DeadlineExceeded",
            "kubernetes.deadline_exceeded",
            Reason::Timeout,
            Certain,
        ),
        (
            "kubernetes",
            "Failed",
            "DeletionByTaintManager",
            "kubernetes.taint_manager",
            Reason::NodeFailure,
            Likely,
        ),
        ("kubernetes", "Pending", "ImagePullBackOff", "kubernetes.image", Reason::CodeError, Likely),
        ("ray", "STOPPED", "", "ray.stopped", Reason::Cancelled, Likely),
        ("ray", "FAILED", "JOB_SUPERVISOR_ACTOR_DIED", "ray.supervisor", Reason::NodeFailure, Likely),
        (
            "ray",
            "FAILED",
            "JOB_SUPERVISOR_ACTOR_START_TIMEOUT",
            "ray.supervisor",
            Reason::NodeFailure,
            Likely,
        ),
        ("ray", "FAILED", "RUNTIME_ENV_SETUP_FAILURE", "ray.runtime_environment", Reason::CodeError, Likely),
    ];
    for (engine, state, word, rule, reason, confidence) in rows {
        // The process of a job that its engine ends is killed, or its end is not recorded.
        for evidence in [ended(None, Some(9), ""), ended(None, None, "")] {
            let verdict = classify(&with_state(evidence, engine, state, word));
            assert_eq!((verdict.rule.as_str(), verdict.reason), (rule, reason), "{engine} {state} {word}");
            assert_eq!(verdict.confidence, confidence, "{engine} {state} {word}");
            let first = &verdict.evidence[0];
            assert_eq!(first.source, EvidenceSource::Launcher);
            assert!(first.text.starts_with(&format!("{engine} reports {state}")), "{}", first.text);
        }
    }
    for (engine, state) in [
        ("slurm", "COMPLETED"),
        ("slurm", "FAILED"),
        ("kubernetes", "Failed"),
        ("ray", "FAILED"),
        ("ray", "SUCCEEDED"),
    ] {
        let verdict = classify(&with_state(ended(Some(1), None, ""), engine, state, ""));
        assert_eq!(verdict.reason, Reason::Unknown, "{engine} {state} says nothing more than the exit code");
    }
}

/// Proves that an end with exit code 0 that no signal caused counts before a late word of the engine, and that it does not where a
/// signal came first or memory ran out.
#[test]
fn a_script_that_finished_first_has_finished() {
    for (state, was_signalled, reason) in [
        ("PREEMPTED", Some(false), Reason::Completed),
        ("TIMEOUT", Some(false), Reason::Completed),
        ("CANCELLED", Some(false), Reason::Completed),
        ("PREEMPTED", Some(true), Reason::Preempted),
        ("PREEMPTED", None, Reason::Preempted),
        ("OUT_OF_MEMORY", Some(false), Reason::HostOom),
    ] {
        let evidence = TerminationEvidence { was_signalled, ..ended(Some(0), None, "") };
        let verdict = classify(&with_state(evidence, "slurm", state, ""));
        assert_eq!(verdict.reason, reason, "{state} {was_signalled:?}");
        let is_secondary = verdict.secondary.iter().any(|other| other.text.contains(state));
        assert_eq!(is_secondary, reason == Reason::Completed, "{verdict:#?}");
    }
}

/// Proves that recorded actions outrank everything, the launcher and the log included.
#[test]
fn intent_outranks_all() {
    for (kind, reason) in [
        (ActionKind::StopRequested, Reason::Cancelled),
        (ActionKind::TimeoutKill, Reason::Timeout),
        (ActionKind::HangKill, Reason::Hang),
        (ActionKind::UnhealthyStop, Reason::Unhealthy),
        (ActionKind::BudgetStop, Reason::BudgetExhausted),
        (ActionKind::WrongResume, Reason::CheckpointError),
        (ActionKind::InjectedTerm, Reason::Preempted),
        (ActionKind::Superseded, Reason::Superseded),
        (ActionKind::Fenced, Reason::Fenced),
        (ActionKind::InjectedKill, Reason::NodeFailure),
    ] {
        let mut evidence = with_state(ended(None, Some(9), OOM), "slurm", "OUT_OF_MEMORY", "");
        let at = Timestamp::from_micros(1);
        evidence.own_actions.push(OwnAction { kind, at, kill_sent: true, why: "test".into() });
        let verdict = classify(&evidence);
        assert_eq!((verdict.reason, verdict.confidence), (reason, Confidence::Certain));
        assert_eq!(verdict.evidence[0].source, EvidenceSource::OwnAction);
    }
}

/// Proves the process-level facts that are neither code nor log: a command that cannot start, the kernel's counter, a
/// lost shim, an error file, and an evaluation launch.
#[test]
fn other_sources_are_heard() {
    let mut evidence = TerminationEvidence::new(LaunchKind::Train);
    evidence.spawn_error = Some("No such file or directory (os error 2)".into());
    let verdict = classify(&evidence);
    assert_eq!((verdict.reason, verdict.domain), (Reason::CodeError, Domain::Operator));

    let mut evidence = ended(None, Some(9), "");
    evidence.oom_kill_delta = Some(1);
    assert_eq!(
        (classify(&evidence).reason, classify(&evidence).confidence),
        (Reason::HostOom, Confidence::Certain)
    );

    let mut evidence = TerminationEvidence::new(LaunchKind::Train);
    evidence.shim_lost = Some("no exit record".into());
    assert_eq!(classify(&evidence).reason, Reason::Unknown);
    evidence.rebooted = true;
    assert_eq!(classify(&evidence).reason, Reason::NodeFailure);

    let mut evidence = ended(Some(1), None, "RuntimeError: NCCL error, remote process exited\n");
    evidence.error_file = Some(ErrorFile {
        message: "KeyError: \"['age'] not in index\"".into(),
        traceback: String::new(),
        at: None,
    });
    assert_eq!(classify(&evidence).reason, Reason::SchemaDrift);

    let mut evidence = ended(Some(1), None, "ValueError: 3 answers could not be read\n");
    evidence.kind = LaunchKind::Evaluate;
    assert_eq!(classify(&evidence).reason, Reason::EvaluatorError);
}

/// Proves which errors of an evaluator another launch would meet again: those of its code, its arguments and its command, in a launch of
/// it and in its frames inside a training; not those that may come from what it asked, and not the same errors of a training.
#[test]
fn errors_of_an_evaluators_code_last() {
    use RetryOutlook::{DoNotRetry, Retry};
    let rows = [
        (2, "usage: score.py [-h]\nscore.py: error: unrecognized arguments: --bacth\n", DoNotRetry),
        (2, "", DoNotRetry),
        (127, "", DoNotRetry),
        (1, "AttributeError: 'Net' object has no attribute 'logits'\n", DoNotRetry),
        (1, "ModuleNotFoundError: No module named 'ragas'\n", DoNotRetry),
        (1, "  File \"score.py\", line 3\n    if x = 1:\nSyntaxError: invalid syntax\n", DoNotRetry),
        (1, "AttributeError: 'NoneType' object has no attribute 'text'\n", Retry),
        (1, "KeyError: 'answer'\n", Retry),
        (1, "openai.RateLimitError: Error code: 429\n", Retry),
        (1, "", Retry),
    ];
    for (code, log, outlook) in rows {
        let mut evidence = ended(Some(code), None, log);
        evidence.kind = LaunchKind::Evaluate;
        let verdict = classify(&evidence);
        assert_eq!(
            (verdict.reason, verdict.retry_outlook),
            (Reason::EvaluatorError, outlook),
            "{code} {log}"
        );
    }
    let inside = |error: &str| {
        let frame = "Traceback (most recent call last):\n  File \"/x/lm_eval/evaluator.py\", line 3, in simple_evaluate\n    t = f()\n";
        let verdict = classify(&of_log(&format!("{frame}{error}\n")));
        (verdict.reason, verdict.retry_outlook)
    };
    assert_eq!(inside("NameError: name 'x' is not defined"), (Reason::EvaluatorError, DoNotRetry));
    assert_eq!(inside("KeyError: 'doc'"), (Reason::EvaluatorError, Retry));
}

/// Proves that in a training that Trackway launched, an error of an evaluation in the script is the training's: of its code, of its data,
/// or of a service, and no other finding names an evaluator.
#[test]
fn an_evaluation_inside_the_training_is_part_of_it() {
    let in_evaluate = |error: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"t.py\", line 9, in <module>\n    evaluate(20)\n  File \"t.py\", line 4, in evaluate\n    raise f()\n{error}\n"
        )
    };
    let rows = [
        (Reason::CodeError, in_evaluate("ValueError: shapes (400,15) and (16,32) not aligned")),
        (
            Reason::CodeError,
            in_evaluate("ValueError: matmul: Input operand 1 has a mismatch in its core dimension 0"),
        ),
        (Reason::CodeError, in_evaluate("NameError: name 'x' is not defined")),
        (Reason::CodeError, "panel.JudgeReplyError: empty\n".to_owned()),
        (
            Reason::CodeError,
            "Traceback (most recent call last):\n  File \"t.py\", line 4, in evaluate\n".to_owned(),
        ),
        (Reason::NetworkError, "openai.RateLimitError: Error code: 429\n".to_owned()),
    ];
    for (reason, log) in rows {
        let mut evidence = ended(Some(1), None, &log);
        assert_eq!(classify(&evidence).reason, Reason::EvaluatorError, "of a log alone: {log}");
        evidence.is_launch = true;
        let verdict = classify(&evidence);
        assert_eq!(verdict.reason, reason, "{log}");
        assert_eq!(verdict.retry_outlook, super::outlook(reason, verdict.confidence), "{log}");
        assert!(verdict.secondary.iter().all(|other| other.reason != Reason::EvaluatorError), "{verdict:?}");
    }
}

/// Proves that a bounded launch that ends by itself after its last step is complete, whatever code the script has for a
/// stop; but not when it failed on the way out, was killed, or never came that far.
#[test]
fn a_bounded_launch_completes_at_its_last_step() {
    let bounded = |evidence: TerminationEvidence| {
        let progress = Progress { reached_last_step: true, ..evidence.progress };
        classify(&TerminationEvidence { progress, ..evidence }).reason
    };
    assert_eq!(bounded(ended(Some(143), None, "")), Reason::Completed);
    assert_eq!(bounded(ended(Some(1), None, OOM)), Reason::DeviceOom);
    assert_eq!(bounded(ended(None, Some(9), "")), Reason::Unknown);
    assert_eq!(classify(&ended(Some(143), None, "")).reason, Reason::Unknown);
}

/// Proves on made-up hostile tails that causes are distinguished from consequences, and errors from handled errors.
#[test]
fn hostile_tails() {
    let rows = [
        // consequence after cause, and the other way round in the log's order
        (
            Reason::DeviceOom,
            "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9 GiB\n[rank0]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n[rank1]: ncclRemoteError: remote process exited\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n",
        ),
        (
            Reason::HostOom,
            "slurmstepd: error: Detected 3 oom_kill events in StepId=9.0\nslurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n",
        ),
        (
            Reason::CodeError,
            "Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\nAttributeError: 'NoneType' object has no attribute 'x'\n[rank1]: RuntimeError: [../gloo/transport/tcp/pair.cc:5] Connection closed by peer [10.0.0.1]\n",
        ),
        // a neighbour was killed, in the step of a Trainer: gloo only guesses at a hang
        (
            Reason::NetworkError,
            "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/v/transformers/trainer.py\", line 15, in _maybe_log_save_evaluate\n[rank1]: RuntimeError: [/g/gloo/transport/tcp/pair.cc:545] Read error [127.0.0.1]:17307: Connection reset by peer. This is typically caused by a remote worker hanging or bugs in the application. Check the logs of the remote worker before reporting an error.\n  traceback : Signal 9 (SIGKILL) received by PID 6\n",
        ),
        // a neighbour was killed, in a compiled model: its end is the reason, and SIGKILL does not say whose it is
        (
            Reason::Unknown,
            "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/v/torch/_dynamo/eval_frame.py\", line 15, in _fn\n[rank1]:   File \"/v/torch/distributed/c10d_logger.py\", line 8, in wrapper\n[rank1]: RuntimeError: [/g/gloo/transport/tcp/pair.cc:538] Read error [127.0.0.1]:49806: Connection reset by peer\nE1 torch/distributed/elastic/multiprocessing/api.py:10] failed (exitcode: -9) local_rank: 0 (pid: 6) of binary: /p\n  traceback : Signal 9 (SIGKILL) received by PID 6\n",
        ),
        (
            Reason::Preempted,
            "slurmstepd: error: *** JOB 5 ON n2 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***\nKeyboardInterrupt\n",
        ),
        (
            Reason::Timeout,
            "KeyboardInterrupt\nslurmstepd: error: *** JOB 5 ON n2 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
        ),
        // handled, then something else
        (
            Reason::CodeError,
            "| WARNING: ran out of memory, CUDA out of memory; skipping batch\nTraceback (most recent call last):\n  File \"t.py\", line 9, in go\nNameError: name 'grad' is not defined\n",
        ),
        (
            Reason::StorageError,
            "ConnectionError: hub unreachable\nRetrying in 1s [Retry 1/5].\nstep 100 loss 2.0 lr 0.1\nOSError: [Errno 28] No space left on device\n",
        ),
        (
            Reason::NumericDivergence,
            "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2, reducing to 1\nException: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n",
        ),
        // what the interpreter ignores at its end, and what a tracker retries, leave the cause alone
        (
            Reason::DataError,
            "_csv.Error\nValueError: could not convert string to float: 'x'\nException ignored in: <function Bar.__del__ at 0x7f>\nTraceback (most recent call last):\nAttributeError: 'Bar' object has no attribute 'n'\n",
        ),
        (
            Reason::CodeError,
            "Exception ignored in: <function Loader.__del__ at 0x7f>\nTraceback (most recent call last):\n  File \"/a/l.py\", line 2, in __del__\nRuntimeError: cannot join\nTypeError: step() takes no arguments\n",
        ),
        (Reason::CodeError, "TypeError: step() takes no arguments\nwandb: WARNING upload failed, retrying\n"),
        // a bus address is not an Xid, a fraction is not a zero
        (
            Reason::CodeError,
            "TypeError: no x\nNVRM: Xid (PCI:0000:61:00): 31, pid=4, MMU Fault\nloss scale = 0.5\n",
        ),
        (Reason::NodeFailure, "NVRM: Xid (PCI:0000:31:00): 79, pid=4\n"),
        (
            Reason::NumericDivergence,
            "RuntimeError: diverged after 20 skipped updates, non-finite gradients\n",
        ),
        // words that have another meaning here
        (
            Reason::Unknown,
            "The worker died. There are some possible causes: (1) OOM killer (2) SIGSEGV (3) preempted.\n",
        ),
        (Reason::StorageError, "OSError: [Errno 122] Disk quota exceeded: '/home/u/ckpt'\n"),
        (
            Reason::NetworkError,
            "requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded\n",
        ),
        (
            Reason::EarlyStopped,
            "Monitored metric val_loss did not improve in the last 3 records. Best score: 0.12. Signaling Trainer to stop.\n",
        ),
        (
            Reason::EvaluatorError,
            "Traceback (most recent call last):\n  File \"/x/lm_eval/evaluator.py\", line 3, in simple_evaluate\n    t = f()\nKeyError: 'doc'\n",
        ),
        (
            Reason::CheckpointError,
            "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: \"a.b\".\n",
        ),
        (
            Reason::Hang,
            "[rank0]:[E ProcessGroupNCCL.cpp:1] Watchdog caught collective operation timeout\nFatal Python error: Aborted\n",
        ),
        // a later line that explains the earlier one
        (
            Reason::EvaluatorError,
            "httpx.ConnectTimeout: connection timed out\n\nThe above exception was the direct cause of the following exception:\n\nopenai.APITimeoutError: no answer\n",
        ),
        (
            Reason::NodeFailure,
            "RuntimeError: CUDA error: an illegal memory access was encountered\nkernel: NVRM: Xid (PCI:0000:07:00): 94, pid=4, Contained\n",
        ),
        (Reason::NetworkError, "[Fatal] Check failed: link.ok\nSocket recv error, code: 104\n"),
        (
            Reason::Hang,
            "srun: error: n3: task 2: Aborted (core dumped)\n[rank2]:[E ProcessGroupNCCL.cpp:7] watchdog got stuck for 480 seconds\n",
        ),
        // where an unreadable archive was read determines whose it is
        (Reason::DataError, "RuntimeError: Caught UnpicklingError in DataLoader worker process 1.\n"),
        (
            Reason::DataError,
            "Traceback (most recent call last):\n  File \"/a/set.py\", line 7, in __getitem__\n_pickle.UnpicklingError: pickle data was truncated\n",
        ),
        (
            Reason::CheckpointError,
            "Traceback (most recent call last):\n  File \"/a/go.py\", line 7, in load_checkpoint\n_pickle.UnpicklingError: pickle data was truncated\n",
        ),
        // an abort by the framework is not a request
        (
            Reason::HostOom,
            "SparkException: Job aborted due to stage failure: Task 1 failed 4 times\nContainer killed by YARN for exceeding memory limits. 9 GB of 8 GB\n",
        ),
        (
            Reason::BudgetExhausted,
            "Job rejected: your organization has exceeded its monthly spending limit\n",
        ),
    ];
    for (reason, log) in rows {
        let verdict = classify(&of_log(log));
        assert_eq!(verdict.reason, reason, "{log}\n{verdict:#?}");
    }
}

/// Proves that the fingerprint of a cause met again is the same, whatever the rank, address, path or step.
#[test]
fn the_same_cause_has_the_same_fingerprint() {
    let one =
        classify(&of_log("[rank3]: OSError: [Errno 28] No space left on device: '/a/b/c-100.pt' 0x7f00\n"));
    let two =
        classify(&of_log("[rank0]: OSError: [Errno 28] No space left on device: '/x/y/c-200.pt' 0x7e11\n"));
    assert_eq!(one.fingerprint, two.fingerprint);
    assert_ne!(one.fingerprint, classify(&of_log(OOM)).fingerprint);
}

/// Proves that a refused rung is reported only for an attempt that ended well, with the numbers, and as what it was
/// besides.
#[test]
fn a_refused_rung_is_reported_of_a_good_end_only() {
    let mut evidence = TerminationEvidence::new(LaunchKind::Train);
    evidence.exit_code = Some(0);
    evidence.rung_refused = Some("at 10% of the data `val_loss < 1` is not met: val_loss is 2".into());
    let verdict = classify(&evidence);
    assert_eq!((verdict.reason, verdict.confidence), (Reason::RungRejected, Confidence::Certain));
    assert_eq!(verdict.evidence[0].text, evidence.rung_refused.clone().unwrap());
    assert_eq!(verdict.secondary[0].reason, Reason::Completed);
    evidence.exit_code = Some(1);
    assert_ne!(classify(&evidence).reason, Reason::RungRejected);
}

/// Proves that a loss that is NaN or infinite to the end does not count as a success, whatever the exit code and whatever ended it, and
/// that it changes no other end.
#[test]
fn a_loss_that_is_not_finite_is_no_result() {
    let loss = |count, point_count| {
        Some(NonFiniteLoss { metric: "loss".into(), from_step: 4, last_step: 399, count, point_count })
    };
    let verdict = |evidence: &TerminationEvidence| {
        let verdict = classify(evidence);
        (verdict.reason, verdict.confidence)
    };
    let mut evidence = ended(Some(0), None, "");
    evidence.non_finite_loss = loss(396, 399);
    let found = classify(&evidence);
    assert_eq!((found.reason, found.confidence), (Reason::NumericDivergence, Confidence::Certain));
    assert_eq!(found.rule, FactRule::LossNotFinite.into());
    let expected = "`loss` is NaN or infinite from step 4 to the end, step 399 (396 of 399 values)";
    assert_eq!((found.evidence[0].text.as_str(), found.secondary[0].reason), (expected, Reason::Completed));
    evidence.non_finite_loss = loss(1, 1);
    assert_eq!(verdict(&evidence), (Reason::NumericDivergence, Confidence::Certain));
    // It may be the one update that a loss scale skips.
    evidence.non_finite_loss = loss(1, 399);
    assert_eq!(verdict(&evidence), (Reason::NumericDivergence, Confidence::Likely));
    let at = Timestamp::from_micros(1);
    let early = OwnAction { kind: ActionKind::EarlyStop, at, kill_sent: false, why: "patience".into() };
    evidence.own_actions.push(early);
    assert_eq!(verdict(&evidence).0, Reason::NumericDivergence);
    evidence.own_actions[0].kind = ActionKind::StopRequested;
    assert_eq!(verdict(&evidence).0, Reason::Cancelled);
    let mut evidence = ended(Some(1), None, OOM);
    evidence.non_finite_loss = loss(396, 399);
    assert_eq!(verdict(&evidence).0, Reason::DeviceOom);
    evidence.logs.clear();
    assert_eq!(verdict(&evidence), (Reason::NumericDivergence, Confidence::Likely));
    evidence.exit_code = Some(0);
    evidence.kind = LaunchKind::Evaluate;
    assert_eq!(verdict(&evidence).0, Reason::Completed);
}

/// Proves that the names of rules are unique and are read back from their text.
#[test]
fn rules_have_names_of_their_own() {
    let mut seen = std::collections::BTreeSet::new();
    for rule in TerminationRule::all() {
        assert!(seen.insert(rule.as_str()), "two rules are called `{rule}`");
        assert_eq!(rule.as_str().parse::<TerminationRule>().unwrap(), rule);
    }
    assert!(seen.len() > 150, "{}", seen.len());
    assert!("slurm.cancelled.twice".parse::<TerminationRule>().is_err());
}

/// Proves that `docs/termination-reasons.md` has every rule of terminations (`TRACKWAY_BLESS=1` writes the tables of states and lines).
#[test]
fn every_termination_rule_is_documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/termination-reasons.md");
    let text = std::fs::read_to_string(&path).unwrap();
    for rule in FactRule::ALL {
        assert!(
            text.contains(&format!("| `{rule}` |")),
            "docs/termination-reasons.md has no row for `{rule}`"
        );
    }
    let mut tables =
        "### States of engines\n| rule | reason | confidence | words |\n|---|---|---|---|\n".to_owned();
    for (_, state) in engine::all() {
        let confidence = if state.conclusive { Confidence::Certain } else { Confidence::Likely };
        tables += &format!(
            "| `{}` | {} | {confidence} | `{}` |\n",
            state.rule,
            state.reason,
            state.words.join("`, `")
        );
    }
    tables += "\n### Lines of logs\n| rule | reason | role |\n|---|---|---|\n";
    for line in signatures::all() {
        let role = serde_json::to_value(line.role).unwrap();
        tables += &format!("| `{}` | {} | {} |\n", line.name, line.reason, role.as_str().unwrap());
    }
    let (before, _) = text.split_once("### States of engines\n").expect("the heading of the tables");
    if std::env::var_os("TRACKWAY_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{tables}")).unwrap();
    } else {
        assert_eq!(text, format!("{before}{tables}"), "run with TRACKWAY_BLESS=1");
    }
}

/// Proves that what a script prints because Trackway ended it is not listed as another cause, whether it speaks of the signal, of other
/// processes or of an interrupt; that a watchdog's line is evidence of the hang; and that an earlier cause is still listed.
#[test]
fn what_follows_from_our_signal_is_not_another_cause() {
    let after = "W1 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 7 closing signal SIGTERM\n\
                 Traceback (most recent call last):\n  \
                 File \"/x/torch/distributed/launcher/api.py\", line 377, in launch_agent\n    result = agent.run()\n  \
                 File \"/x/torch/distributed/elastic/multiprocessing/api.py\", line 86, in _terminate_process_handler\n    \
                 raise SignalException(f\"Process {os.getpid()} got signal: {sigval}\", sigval=sigval)\n\
                 torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15\n\
                 KeyboardInterrupt\n\
                 [/x/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.1.1]:22105\nTerminated\n";
    let killed = |kind: ActionKind, log: &str| {
        let action = OwnAction { kind, at: Timestamp::from_micros(0), kill_sent: false, why: "why".into() };
        classify(&TerminationEvidence { own_actions: vec![action], ..ended(Some(1), None, log) })
    };
    for kind in
        [ActionKind::StopRequested, ActionKind::HangKill, ActionKind::TimeoutKill, ActionKind::BudgetStop]
    {
        let verdict = killed(kind, after);
        assert!(verdict.secondary.is_empty(), "{kind:?}: {:#?}", verdict.secondary);
    }
    let watchdog = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\n";
    let hung = killed(ActionKind::HangKill, &format!("{watchdog}{after}"));
    assert!(
        hung.secondary.is_empty() && hung.evidence.iter().any(|item| item.text.contains("SeqNum=3")),
        "{hung:#?}"
    );
    let full =
        killed(ActionKind::TimeoutKill, &format!("OSError: [Errno 28] No space left on device\n{after}"));
    assert_eq!(full.secondary.iter().map(|other| other.reason).collect::<Vec<_>>(), [Reason::StorageError]);
}

/// Proves that a traceback whose exception decided, and lines of the reason that was found, are not listed as other causes.
#[test]
fn the_decided_cause_is_not_another_one() {
    let raised = "Traceback (most recent call last):\n  File \"/x/train.py\", line 7, in <module>\n    step()\n\
                  RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
    let verdict = classify(&ended(Some(1), None, raised));
    assert_eq!((verdict.reason, verdict.secondary.len()), (Reason::DeviceOom, 0), "{verdict:#?}");
    let torn = classify(&ended(
        Some(1),
        None,
        "Traceback (most recent call last):\n  File \"/x/train.py\", line 7, in <module>\n",
    ));
    assert_eq!(torn.reason, Reason::CodeError);
}
