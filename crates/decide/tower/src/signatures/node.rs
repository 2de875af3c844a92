//! A machine, an accelerator or the link between them broke.

use trackway_core::TerminationReason::NodeFailure;

use super::{RuleName, Signature, cause, hint, verdict};

/// A cluster lost a machine, whatever the cause.
pub(crate) const CLUSTER_LOST: RuleName = RuleName("node.cluster_lost");
/// A device reports that a kernel could not be launched.
pub(crate) const LAUNCH_FAILURE: RuleName = RuleName("node.launch_failure");

pub(super) const SIGNATURES: &[Signature] = &[
    // Xids that mean a broken device or link, from NVIDIA's Xid catalogue (48 double-bit ECC, 63/64 row remapping,
    // 74 NVLink, 79 off the bus, 92 ECC rate, 94/95 contained/uncontained ECC, 119/120 GSP, 121 C2C, 140 ECC, 154
    // recovery action). 13, 31 and 43 are usually the program's doing (`code.gpu_fault`); 45 follows from others.
    verdict(
        "node.xid",
        NodeFailure,
        r"\bxids?(['\x22]|_code| errors?| code)?( detected)?( \([^)\n]*\))?[:=#( ]{1,3}(46|48|61|62|63|64|74|79|92|94|95|119|120|121|136|140|143|149|154|155)\b",
    )
    .conclusive(),
    verdict(
        "node.gpu_lost",
        NodeFailure,
        r"(fallen|fell|dropped) off the (pcie? )?bus|gpu (is )?lost|unable to determine the device handle for gpu|gpu reset failed|\b(gpu|device)\b[^\n]{0,40}requires? (a )?reset|gpu requires reset|device wedged",
    )
    .conclusive(),
    cause(
        "node.ecc",
        NodeFailure,
        r"\buncorrect(able|ed)[^\n]{0,40}(ecc|error|nvlink|memory)|cuda error: uncorrectable|eccuncorrectable|double.bit (ecc|error)|row.?remap(ping|per)?[^\n]{0,20}fail|machine check (exception|error)|\bhardware error\b|mce: \[hardware|ecc error",
    )
    .unless(r"\b0 (uncorrect|ecc|errors)|ecc errors?: (0|none)"),
    cause(
        "node.link",
        NodeFailure,
        r"health compromised|nvlink[^\n]{0,60}(error|fatal|fail|down|inactive)|peer gpu memory over nvlink|pcie bus error: severity=uncorrected|surprise (link )?down|(nvswitch|sxid)[^\n]{0,40}(fatal|error)|fabric.?manager[^\n]{0,60}(not|fail|error)|system not yet initialized|\bport is down|link (is )?down",
    ),
    cause(
        "node.driver",
        NodeFailure,
        r"(failed to initialize )?nvml[^\n]{0,40}(unknown error|gpu is lost|driver/library version mismatch|driver not loaded)|couldn'?t communicate with the nvidia driver|RmInitAdapter failed|^\W*(nvidia-smi: )?no devices were found\W*$|UnexpectedAdmissionError|devices unavailable for nvidia|cuda-capable device\(s\) is/are busy or unavailable|cudaErrorDevicesUnavailable|hw exception by gpu|gsp[^\n]{0,20}(rpc )?timeout|nvidia-container-cli: [^\n]{0,60}(nvml|driver|device) error|(hardware stack error|CUDA_ERROR_HARDWARE_STACK_ERROR)",
    ),
    verdict(
        "node.scheduler_lost",
        NodeFailure,
        r"due to node failure|\bnode_fail\b|\bnode ?fail(ed|ure)\b|\bNodeLost\b|\bNodeDown\b|node(s)? [^\s,;]{1,60} (lost|unreachable|dead|not ?ready)\b|stopped posting node status|\blost host\b|due to host failure|mark(ed|ing)[^\n]{0,30} (as |it )?(dead|lost|unhealthy)\b|no healthy devices present|node(s)? \S* ?(was|has been|is|are|got) (lost|unreachable|down|dead|not ready|not responding)|NodeNotReady|NodeUnusable|\b(vm|instance) has crashed|NodeUnreachable|host[ _]?error|boot_fail|lost node\b|node lost|(node|host|instance|machine|worker|tpu|slice|vm|gpu)s?[^\n]{0,60}\bunhealthy|failed (\w+ )?status checks?|status checks? (has |have )?failed|(task ?manager|node|host|worker)[^\n]{0,60} no longer reachable|hardware (failure|fault)|node (down|unreachable|is not ready)|(node|imminent) .{0,20}shutdown|(nodes?|hosts?|machines?) \S+ (is )?not responding|\bmom failure|sister_eof|job reconnection failed|(host|machine) \S+ (is|was|are|has been) (lost|unreachable|down|dead)\b|execution (host|server) [^\n]{0,40}(unavailable|down|unreachable)|host went down|instance[_ ]?(is |was |became )?unreachable|\bCLOUD_FAILURE\b|kernel panic|soft lockup|the system is going down|\b(node|host|machine) (has |was |is )?(unexpectedly )?(rebooted|rebooting|crashed)\b",
    ),
    verdict(
        CLUSTER_LOST.as_str(),
        NodeFailure,
        r"node[^\n]{0,120}marked dead|its node has died|node has died|actor.?s node was terminated|node (was )?terminated unexpectedly|host ec2[^\n]{0,40}terminated|miss(ed|ing) too many heartbeats|DeletionByTaintManager|DeletionByPodGC|NodeDiedError|node (is dead|went down|died)|lost contact with (node|host|agent|worker)|ExecutorLostFailure|(slave|executor|worker) lost",
    ),
    cause(
        "node.power_heat",
        NodeFailure,
        r"(thermal|overheat|critical temperature)[^\n]{0,60}(shut|power|reset|critical|emergency)|power (loss|failure|supply fail)",
    ),
    cause(
        "node.accelerator",
        NodeFailure,
        r"\b(UR|ZE|PI)_RESULT_ERROR_DEVICE_LOST|\bPI_ERROR_DEVICE_LOST|\b(npu|gpu|xpu|hpu|mlu|gcu|device|card|chip)(\[\d+\]| \d+)?,? (is |was |has been |has |heart ?beat )?lost( heartbeat)?\b|reason=\[?lost heartbeat|device (reset detected|hang(ed)?\b)|device not found or invalid|error code is 50(7010|7053|7054|7055|7056|7899)\b|gpu hang\b|gpu is probably locked|gpu reset ?(\(\d+\) )?(begin|failed)|\b(asic|mode\d|bus) reset (has )?failed|vram is lost|\bunknown device error\b|reason=\[driver error|\b(npu|gpu|xpu|hpu|mlu|device|card) (fault|failure)\b|\bdriver (is )?(crashed|dead|gone)\b|amdgpu[^\n]{0,60}(ring \S+ timeout|unrecoverable state|issue a gpu reset)|\b(xe|i915) [^\n]{0,60}(engine reset|device coredump|gt reset|wedged|guc[^\n]{0,20}(fail|dead))|habanalabs[^\n]{0,60}(reset|heartbeat|failure|lost|error)|multi.?bit ecc|ecc[^\n]{0,12}(double|multi).?bit|(tpu|accelerator|chip|slice|neuron(core)?|ascend|npu|hbm)[^\n]{0,80}(hardware|health check (failed|error)|is lost|not (healthy|reachable|responding)|fatal|uncorrectable|halted|has been lost|lost heartbeat|initialization failed|driver (fail|error)|failed to initialize)|NRT_(EXEC_HW|UNCORRECTABLE|HW_ERR)\w*|tpu (driver|worker|node|vm)[^\n]{0,60}(crash|died|gone|lost|unreachable|terminated|error state)",
    )
    .unless(r"memory (isn|is not|not|exhaust)|out of memory|\balloc"),
    cause(
        LAUNCH_FAILURE.as_str(),
        NodeFailure,
        r"cuda(_| )?error:? (unspecified launch failure|unknown error)|unspecified launch failure",
    )
    .unless(r"incorrectly set up environment|failed call to cuinit"),
    cause(
        "node.peer_process",
        NodeFailure,
        r"orte (daemon|has lost)|daemon has unexpectedly failed|lost (communication|connection) with (a |one of its )?(remote )?daemon",
    ),
    cause(
        "node.platform_internal",
        NodeFailure,
        r"internalservererror: we encountered an internal error|internal error occurred for the current attempt|internal error (occurred|happened) (on|in|at) (the )?(platform|service|cluster|backend)",
    ),
    hint("node.internal", NodeFailure, r"internal server error"),
];
