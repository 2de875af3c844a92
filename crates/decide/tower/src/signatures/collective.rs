//! Collective operations that stopped moving, and what follows when one rank of many is gone.

use trackway_core::TerminationReason::{CodeError, Hang, NetworkError, NodeFailure, Unknown};

use super::{RuleName, Signature, cause, consequence, hint};

/// A launcher reports that a child failed.
pub(crate) const RANK_FAILED: RuleName = RuleName("collective.rank_failed");
/// A launcher reports how the child that failed first ended.
pub(crate) const FIRST_FAILED: RuleName = RuleName("collective.first_failed");
/// A rank lost its neighbour.
pub(crate) const NCCL_REMOTE: RuleName = RuleName("collective.nccl_remote");
/// The fabric or the system refused a collective.
pub(crate) const NCCL_TRANSPORT: RuleName = RuleName("collective.nccl_transport");

pub(super) const SIGNATURES: &[Signature] = &[
    consequence(
        "collective.watchdog",
        Hang,
        r"WorkNCCL::checkTimeout|ncclCommWatchdog|watchdogHandler|watchdog caught collective operation timeout|collective operation timeout|ran for \d+ milliseconds before timing out|watchdog thread[^\n]*(stuck|hang|heartbeat|terminated|got stuck)|heartbeat ?monitor[^\n]*|watchdog[^\n]{0,80}(timed? ?out|timeout|stuck|hang|hung)|stuck in (nccl|watchdog)|notify (register|wait)[^\n]{0,20}time|stream sync(hronize)? time ?-?out|reason=\[task time ?out\]|\bhccl[^\n]{0,30}task time ?out|\bEI000[26]\b|workers? (are|is) (stuck|hung)",
    ),
    consequence(
        "collective.barrier_timeout",
        Hang,
        r"gloo[^\n]*timed out waiting|timed out waiting \d+ms for (recv|send)|wait timeout( after \d+ ?ms|\s*$)|barrier[^\n]{0,80}(timed? ?out|timeout|deadline)|failed to (pass|reach) monitoredbarrier|(timed? ?out|timeout|deadline.exceeded)[^\n]{0,80}barrier|termination timeout for [^\n]{0,80} exceeded|exiting to ensure a consistent program state|waiting at (the )?barrier|ranks? [^\n]{0,40}never (arrived|reached|joined|responded)|ranks? [^\n]{0,40}did not (arrive|reach|join|respond)",
    ),
    consequence(
        "collective.stall",
        Hang,
        r"treat\w* [^\n]{0,30}as (hung|stuck|stalled)|stalled (ranks|tensor|ops|op)|\bops? (is |are )?stalled|missing ranks\b|one or more tensors were submitted to be reduced|(is|are|was|were|got|gets|seems?|appears?|detected|training|process(es)?|workers?|rank \d+|job|program|run|script|loader|it) (to be |to |a |has |have )?(stalled|deadlock(ed)?|hung|hang(s|ing)?|stuck|frozen|freez(es|ing)|unresponsive)|(hang|deadlock|stall) (detected|suspected)|no (progress|output|heartbeat|activity|log)[^\n]{0,40}(for|in|since|within|from)\b|task \S+ blocked for more than|heartbeat (timeout|timed out|missed|lost)|possible (hang|deadlock)|\bdeadlock (in|on|at|between)\b|dataloader timed out after|GetTimeoutError|engine iteration timed out|(rpc call to|execute_model|executor)[^\n]{0,40}timed out|no available shared memory broadcast block|^timeout \(\d+:\d\d:\d\d(\.\d+)?\)!|stuck (at|on|in|for|forever)|hang(s|ed)? (at|on|in|for|forever|indefinitely)",
    )
    .unless(r"handled|\bchange|wandb|typically caused by|kernel is unresponsive"),
    consequence(
        "collective.desync",
        Hang,
        r"desync|collective mismatch|last enqueued (nccl )?work|flight ?recorder",
    ),
    consequence(
        "collective.abort",
        Hang,
        r"to avoid data inconsistency|some nccl operations have failed or timed out|communicator was aborted|taking the entire process down",
    ),
    cause(
        "collective.nccl_usage",
        CodeError,
        r"detected mismatch between collectives|ncclInvalidUsage|duplicate gpu detected|nccl[^\n]*invalid (usage|argument)|ncclInvalidArgument",
    ),
    cause(
        NCCL_REMOTE.as_str(),
        NetworkError,
        r"ncclRemoteError|remote process exited or there was a network error|connection closed by (remote )?peer|\bclosed by remote",
    )
    // A rank that lost its neighbour: why that one is gone is written elsewhere.
    .unless(r"\bgloo\b"),
    cause(
        NCCL_TRANSPORT.as_str(),
        NetworkError,
        r"net/(ib|socket|ofi|plugin)[^\n]{0,60}(got completion|error|fail|timeout|unable|no )|ibv_\w+[^\n]{0,60}(fail|error|timed)|got completion (from peer|with)|ncclSystemError|unhandled system error|nccl[^\n]{0,20}warn (call to|net|bootstrap|socket)[^\n]*(fail|error|refused|timed|reset|closed)|bootstrap[^\n]{0,40}(no socket interface|fail|error|timed)|no socket interface found|call to \w+ (from|to) [^\n]*failed|(infiniband|mlx5|ucx|libfabric|\befa\b|rdma)[^\n]{0,80}(error|fail|timed|unreachable|reset)|local (protocol|length|QP) .{0,20}error|transport retry counter exceeded|unable to find (network )?interface",
    ),
    consequence(
        "collective.nccl_cuda",
        CodeError,
        r"ncclUnhandledCudaError|unhandled cuda error",
    ),
    consequence(
        "collective.nccl_other",
        NetworkError,
        r"nccl error|ncclInternalError|DistBackendError|(hccl|rccl|oneccl)[^\n]{0,40}(error|fail|timeout)",
    ),
    consequence(
        "collective.gloo",
        NetworkError,
        r"gloo[^\n]{0,120}(connect|connection (reset|closed|refused)|error|fail|unable)|connectfullmesh|application timeout caused pair closure",
    ),
    consequence(
        "collective.peer_gone",
        NetworkError,
        r"(tcpstore|c10d|socket)[^\n]{0,120}(broken pipe|connection reset|failed to recv|connection was likely closed|closed)|(sendbytes|recvbytes|recvvalue) failed|brokenpipeerror|connection (was )?(likely )?closed\. did the remote server|\[\[\{?\{?node[^\n]{0,120}_recv\[|socket closed",
    ),
    consequence(
        "collective.mpi_abort",
        Unknown,
        r"mpi_abort was invoked|mpirun (noticed|detected|has exited)|primary job +terminated|mpiexec[^\n]*(exit|abort)|prterun (noticed|detected)",
    ),
    consequence(
        RANK_FAILED.as_str(),
        Unknown,
        r"ChildFailedError|closing signal SIG\w+|terminating process \d+ via signal|(worker process|worker|actor)( has| was)? (died|killed)\b|(workers?|process(es)?) (is|are) (no longer|not) alive|actor is dead|ActorDiedError|RayActorError|WorkerCrashedError|ProcessExitedException|ProcessRaisedException|CalledProcessError|killing subprocess \d+|w&b process to finish\.\.\. \(failed|exited with exit code \d+|worker \S+ died|\b\d+ \w+ replica\(?s?\)? failed",
    ),
    consequence(
        FIRST_FAILED.as_str(),
        Unknown,
        r"failed \(exitcode: -?\d+\)|^\W*rank\s*: \d+ \(local_rank: \d+\)|exits with return code|process \d+ terminated with (signal|exit code)|child process with pid \d+ terminated with code|died with <signals\.",
    ),
    consequence(
        "collective.step_aborted",
        Unknown,
        r"force terminated|\*\*\* step \S+ on \S+ cancelled at|job step aborted|srun: error: \S+ tasks? [^\n]*: (terminated|killed|exited|aborted)",
    )
    .unless(r"due to "),
    consequence(
        "collective.coordination",
        NetworkError,
        r"coordination ?(service|agent)[^\n]{0,160}(error|fail|unavailable|heartbeat|deadline|lost|abort)|deadline_exceeded: (getkeyvalue|connect|failed|rpc)|task[^\n]{0,40}heartbeat (timeout|timed)",
    ),
    hint("collective.rank_left", NodeFailure, r"(worker|peer) is lost"),
];
