use trackway_core::Timestamp;

use super::ended;
use crate::classify::*;
use crate::scan::LogScanner;

fn verdict(log: &str) -> TerminationVerdict {
    classify(&ended(Some(1), None, log))
}

const LOST_BY_RANK_0: &str = "step 7 loss 0.4\n\
    [rank0]:[E1 ProcessGroupNCCL.cpp:612] [Rank 0] async exception: NCCL error: remote process exited or there was a network error\n\
    ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n\
    [rank0]:[E1 ProcessGroupNCCL.cpp:23] [PG ID 0 Rank 0] PG status: last enqueued work: 64, last completed work: 62\n";

fn torchrun(rank: u32, code: i32) -> String {
    format!(
        "W1 torch/distributed/elastic/multiprocessing/api.py:10] Sending process 40 closing signal SIGTERM\n\
         E1 torch/distributed/elastic/multiprocessing/api.py:98] failed (exitcode: {code}) local_rank: {rank} (pid: 41) of binary: /p\n\
         Failures:\n[1]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : -15 (pid: 40)\n\
         Root Cause (first observed failure):\n[0]:\n  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: 41)\n"
    )
}

/// Proves that the rank which its launcher reports as the first failure decides, where the others only lost it, and that a rank which lost
/// its neighbour and then failed first is still a failure of the network.
#[test]
fn the_rank_that_failed_first_decides() {
    let rows = [
        (torchrun(1, -9), Reason::Unknown),
        (torchrun(1, -15), Reason::Unknown),
        (torchrun(1, -11), Reason::CodeError),
        (torchrun(1, -7), Reason::HostOom),
        (torchrun(1, -6), Reason::CodeError),
        (torchrun(1, 1), Reason::Unknown),
        (torchrun(0, 1), Reason::NetworkError),
        (torchrun(0, -6), Reason::NetworkError),
        (String::new(), Reason::NetworkError),
        ("[launch.py:325:sigkill_handler] ['python', 't.py'] exits with return code = -9\n".into(), Reason::Unknown),
        ("mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 11 (Segmentation fault).\n".into(), Reason::CodeError),
        ("ProcessExitedException: process 1 terminated with signal SIGKILL\n".into(), Reason::Unknown),
    ];
    for (report, reason) in rows {
        let found = verdict(&format!("{LOST_BY_RANK_0}{report}"));
        assert_eq!(found.reason, reason, "{report}");
        assert!(
            reason == Reason::NetworkError || found.secondary.is_empty(),
            "what its siblings printed is listed as another cause: {:#?}",
            found.secondary
        );
    }
    let raised = format!(
        "[rank1]: RuntimeError: CUDA out of memory. Tried to allocate 2 GiB.\n{LOST_BY_RANK_0}{}",
        torchrun(1, 1)
    );
    assert_eq!(verdict(&raised).reason, Reason::DeviceOom);
}

/// Proves that of a failure with no other trace the line with the exit code of the first child is the evidence, though
/// its siblings were ended before it was printed.
#[test]
fn the_exit_code_of_the_first_child_is_the_evidence() {
    let found = verdict(&format!("step 7 loss 0.4\n{}", torchrun(1, -9)));
    assert_eq!(found.reason, Reason::Unknown);
    assert!(found.evidence[0].text.contains("failed (exitcode: -9)"), "{:?}", found.evidence);
}

/// Proves that the code which a rank's traceback quotes is not taken for its message.
#[test]
fn quoted_code_of_a_rank_is_no_evidence() {
    let log = "[rank0]: Traceback (most recent call last):\n\
        [rank0]:   File \"t.py\", line 12, in evaluate\n\
        [rank0]:     if step == 50: raise ValueError('shapes (400,15) and (16,32) not aligned')\n\
        [rank0]:                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n\
        [rank0]: ValueError: shapes (400,15) and (16,32) not aligned\n";
    let found = verdict(log);
    assert_eq!(found.evidence[0].text, "[rank0]: ValueError: shapes (400,15) and (16,32) not aligned");
}

/// Proves that a reservation which the device refused and which was repeated with less is not the cause of what was thrown after it, unless
/// that speaks of the device too.
#[test]
fn a_smaller_reservation_is_no_end() {
    let refused = "E1 cuda_executor.cc:13] [0] Failed to allocate device memory of 60.00GiB: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\n\
                   E1 cuda_executor.cc:13] [0] Failed to allocate device memory of 54.00GiB: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\n";
    let rows = [
        (
            "TypeError: dot_general requires contracting dimensions to have the same shape, got (4,) and (5,).\n",
            Reason::CodeError,
        ),
        ("FloatingPointError: invalid value (nan) encountered in log\n", Reason::NumericDivergence),
        ("InternalError: Blas GEMM launch failed\n", Reason::DeviceOom),
        (
            "jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7 bytes.\n",
            Reason::DeviceOom,
        ),
        ("", Reason::DeviceOom),
    ];
    for (thrown, reason) in rows {
        assert_eq!(verdict(&format!("{refused}{thrown}")).reason, reason, "{thrown}");
    }
}

/// Proves that an allocation of a size that no device has shows nothing about its memory: after a collective that timed
/// out it follows from that, alone it is an error of the code; a size that a device may have stays what it was.
#[test]
fn an_absurd_allocation_is_no_lack_of_memory() {
    let timeout = "[rank3]:[E513 ProcessGroupNCCL.cpp:523] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=31, \
                   OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800007 milliseconds before timing out.\n";
    let raised = |size: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"/app/train.py\", line 88, in <module>\n    main()\n\
             torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {size}.\n"
        )
    };
    for absurd in ["more than 1EB memory", "137438953472.00 GiB"] {
        assert_eq!(verdict(&format!("{timeout}{}", raised(absurd))).reason, Reason::Hang, "{absurd}");
        assert_eq!(verdict(&raised(absurd)).reason, Reason::CodeError, "{absurd}");
    }
    assert_eq!(verdict(&raised("2.00 GiB")).reason, Reason::DeviceOom);
    let thrown = |error: &str| {
        format!("Traceback (most recent call last):\n  File \"t.py\", line 8, in f\n    g()\n{error}\n")
    };
    let host = "RuntimeError: DefaultCPUAllocator: not enough memory: you tried to allocate";
    for (error, after_timeout, alone) in [
        (format!("{host} 7133701809754865664 bytes."), Reason::Hang, Reason::CodeError),
        (format!("{host} 68719476736 bytes."), Reason::HostOom, Reason::HostOom),
        (
            "RuntimeError: Storage size calculation overflowed with sizes=[7]".to_owned(),
            Reason::Hang,
            Reason::CodeError,
        ),
    ] {
        assert_eq!(verdict(&format!("{timeout}{}", thrown(&error))).reason, after_timeout, "{error}");
        assert_eq!(verdict(&thrown(&error)).reason, alone, "{error}");
    }
}

/// Proves that memory which could not be locked is the host's, and what the device's allocator could not give is the device's.
#[test]
fn locked_memory_is_the_hosts() {
    let raised = |call: &str, error: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    {call}\n{error}\n"
        )
    };
    let error = "torch.AcceleratorError: CUDA error: out of memory";
    assert_eq!(verdict(&raised("batch = batch.pin_memory()", error)).reason, Reason::HostOom);
    assert_eq!(verdict(&raised("batch = batch.cuda()", error)).reason, Reason::DeviceOom);
    let allocator = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB";
    assert_eq!(verdict(&raised("batch = batch.pin_memory()", allocator)).reason, Reason::DeviceOom);
}

/// Proves that types which an operation of the model does not accept, and a device that is not there, are errors of the code and neither a
/// changed schema nor an unreadable checkpoint.
#[test]
fn types_and_devices_of_a_model_are_code() {
    for error in [
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and Half",
        "RuntimeError: expected scalar type Half but found Float",
        "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
    ] {
        let read = verdict(&format!(
            "Traceback (most recent call last):\n  File \"/x/torch/serialization.py\", line 7, in load\n{error}\n"
        ));
        assert_eq!(read.reason, Reason::CodeError, "{error}: {read:#?}");
    }
    assert_eq!(
        verdict("ValueError: columns to merge must have the same dtype\n").reason,
        Reason::SchemaDrift
    );
}

/// Proves that what ranks print about each other after Trackway ended them is not another cause, that a watchdog heard
/// before is one, and that no line is listed twice.
#[test]
fn ranks_that_trackway_ended_lose_each_other() {
    let stuck = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\n";
    let listed = |log: &str, printed: i64| {
        let mut evidence = ended(Some(1), None, log);
        evidence.logs[0].log = LogScanner::scan(log.as_bytes());
        evidence.logs[0].log.set_times(|_| Some(Timestamp::from_micros(printed)));
        let at = Timestamp::from_micros(100);
        let action = OwnAction { kind: ActionKind::StopRequested, at, kill_sent: true, why: "why".into() };
        evidence.own_actions.push(action);
        classify(&evidence).secondary
    };
    assert!(listed(&format!("{LOST_BY_RANK_0}{stuck}"), 200).is_empty());
    assert_eq!(listed(stuck, 50).iter().map(|other| other.reason).collect::<Vec<_>>(), [Reason::Hang]);
    // The line is a cause and has a hint's words too.
    let both = listed("OSError: [Errno 28] No space left on device, or a network error\n", 50);
    assert_eq!(both.iter().map(|other| other.reason).collect::<Vec<_>>(), [Reason::StorageError]);
}
