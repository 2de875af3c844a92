//! The host or its container ran out of memory, shared memory included.

use trackway_core::TerminationReason::{HostOom, Unknown};

use super::{RuleName, Signature, cause, consequence, hint, verdict};

/// A worker of a loader was killed by a signal.
pub(crate) const LOADER_WORKER: RuleName = RuleName("host_oom.loader_worker");

pub(super) const SIGNATURES: &[Signature] = &[
    verdict(
        "host_oom.kernel",
        HostOom,
        r"out of memory: kill(ed)? process|oom-kill:constraint|oom_reaper: reaped|invoked oom-killer|memory cgroup out of memory|cgroup out of memory|killed process \d+ \([^)]*\)[^\n]*(total-vm|anon-rss)",
    )
    .conclusive(),
    verdict(
        "host_oom.slurm",
        HostOom,
        r"detected [1-9]\d* oom.?kill event|have been oom killed|(task|step|job)s?[^\n]{0,40}oom killed|srun: error: \S+: tasks? [^\n]{0,60}: out of memory|exceeded (job|step|virtual) memory limit|exceeded memory limit|(state|status)\W{1,4}out_of_me(mory\b|\+)|^\s*\d+(\.\S+)?\s+\S.*\bout_of_me(mory\b|\+)",
    )
    .conclusive()
    .unless(r"cuda|gpu|hip\b|device|hbm"),
    verdict(
        "host_oom.container",
        HostOom,
        r"\boom.?killed\b|\bSystemOOM\b|system oom encountered|oomkilling|low on resource: memory",
    ),
    verdict(
        "host_oom.resource_manager",
        HostOom,
        r"term_(memlimit|swap)|killed after reaching \S+ (memory|swap) (usage )?limit|clienterror: [^\n]{0,40}instance type with more memory|gone over (the )?memory limit|(killed|terminated|evicted|stopped|restarted|removed|\bheld|on hold)[^\n]{0,40}(due to|because of|for) (the |its |high |excessive |too much ){0,2}memory (usage|use|consumption)|running beyond (physical|virtual) memory limits|for exceeding memory limits|(mem|vmem|pmem|memory)\w* [^\n]{0,30}exceeded (limit|resource)|node running low on memory|exceeds the memory usage threshold|exceeded \d+% memory budget|after using all available ram|exceeded yarn memory|exceeded request_memory|periodic_?(hold|remove) expression[^\n]{0,80}memory[^\n]{0,60}\btrue|exceeds job (hard|soft) limit \W?h?_?(vmem|rss|mem)|memory limit (was )?(reached|exceeded)[^\n]{0,20}(kill|terminat)|tried to allocate more memory than is available|memory limit of [\d.]+ ?\w+ exceeded|systemd-oomd killed|\bMEMOUT\b|(job|container|pod|worker|process|kernel|instance|executor)\b[^\n]{0,40} memory usage (has )?exceed\w*|earlyoom[^\n]{0,40}sending sig|worth of input dependencies, but worker|ran out.of.memory and exited|replicas? low on memory|use an? (instance|machine|vm|node)( type)? with more memory|\bOutOfMemory: |(job|container|pod|worker|process|session|kernel|instance|driver)[^\n]{0,60}(exceeded|exceeding|over) (its|the|your)? ?(\w+ )?memory (limit|quota)",
    ),
    verdict(
        "host_oom.kill_statement",
        HostOom,
        r"(killed|terminated) by (the )?(linux |kernel |system )?oom.?killer|(system|machine|host|instance|node|container|pod|driver|worker|executor) (is |has |was )?(ran|run|running) out of (memory|ram)|out of (system|host|cpu) (memory|ram)|not enough (host|system|cpu) memory|killed[^\n]{0,30}\(?(oom|out of memory)\)?|(ran )?out of ram\b|\bkilled\b[^\n]{0,80}\((oom|out of memory)\)|\brss\b[^\n]{0,30} exceed\w* [^\n]{0,20}limit|\b(cpu|host|node|driver|executor|worker) oom\b|oom.?kill(ed)?\b[^\n]{0,30}(process|pid|container|task)|due to (high )?memory pressure",
    ),
    cause(
        "host_oom.ray",
        HostOom,
        r"ray\.exceptions\.OutOfMemoryError|killed due to the node running low on memory",
    )
    .conclusive(),
    cause(
        LOADER_WORKER.as_str(),
        HostOom,
        r"dataloader worker \(pid[^)]*\) is killed by signal: (killed|bus error)",
    ),
    cause(
        "host_oom.shared_memory",
        HostOom,
        r"out of shared memory|insufficient shared memory|unable to (open|write to|mmap|resize|allocate|create) (the )?(file|shared memory)[^\n]{0,60}(/torch_|/shm|shared memory)[^\n]*|/dev/shm[^\n]{0,80}(no space left|too small|is full|insufficient|not enough|cannot allocate)|no space left on device[^\n]{0,60}(/dev/shm|/torch_|shared memory)|shared memory[^\n]{0,60}(exhausted|full|too small|insufficient|no space|cannot allocate)|error while creating shared memory|ObjectStoreFullError|in object store because it is full",
    ),
    cause(
        "host_oom.bus_error",
        HostOom,
        r"\bbus error\b|\bSIGBUS\b",
    ),
    cause(
        "host_oom.cpu_allocator",
        HostOom,
        r"DefaultCPUAllocator: |not enough memory: you tried to allocate|alloc_cpu[^\n]*(fail|memory)",
    )
    .conclusive(),
    cause(
        "host_oom.memory_error",
        HostOom,
        r"(?-i:\b(_?ArrayMemoryError|MemoryError)\b)(:|\s*$|\(| in | while | when )|unable to allocate [\d.]+ ?[kmgtp]?i?b(ytes)?\b",
    )
    .unless(r"gpu|cuda|device memory|except "),
    cause(
        "host_oom.bad_alloc",
        HostOom,
        r"bad_?alloc|\bbad allocation\b",
    )
    .unless(r"cuda|out_of_memory|rmm|gpu|thrust"),
    cause(
        "host_oom.errno",
        HostOom,
        r"cannot allocate memory|errno 12\b|\bENOMEM\b|winerror 1455|paging file is too small|error code: 1455",
    )
    .unless(r"cuda|gpu|device|static tls"),
    cause(
        "host_oom.jvm",
        HostOom,
        r"java heap space|insufficient memory for the java|native memory allocation \(\w+\) failed|\bOutOfMemoryError\(\)|gc overhead limit exceeded|(java\.lang\.|Spark)OutOfMemoryError",
    ),
    cause(
        "host_oom.cpu_tensor",
        HostOom,
        r"(oom when allocating|resource.?exhausted)[^\n]*(device:cpu|allocator (cpu|mklcpu)|host memory)",
    ),
    cause(
        "host_oom.allocation_failed",
        HostOom,
        r"memory allocation of \d+ bytes failed|not enough space in the [^\n]{0,30}memory pool|cannot allocate vector of size|vector memory exhausted|failed to (m|re|c)?alloc(ate)? [^\n]{0,40}(host|cpu|pinned|bytes of memory)|could not allocate [^\n]{0,30}(host|cpu|ram|bytes)|\bmalloc[^\n]{0,30}(failed|out of memory)|(realloc|malloc) of [^\n]{0,30}failed|jemalloc: error in allocation|runtime: out of memory|out of memory allocating heap|polars[^\n]*out of memory",
    )
    .unless(r"gpu|cuda|device ordinal|hbm|nccl"),
    cause(
        "host_oom.pinned",
        HostOom,
        r"(cuda|hip)(hostalloc|hostmalloc|mallochost)\w*[^\n]{0,40}(fail|out of memory)|out of memory[^\n]{0,60}(cuda|hip)(hostalloc|hostmalloc|mallochost)|(fail|out of memory)[^\n]{0,60}pinned (host )?memory|pinned (host )?memory[^\n]{0,60}(fail|out of memory)",
    ),
    cause(
        "host_oom.plain_wording",
        HostOom,
        r"AlgorithmError[^\n]{0,40}out ?of ?memory|\bout_of_memory\b|0xC0000017|0xC000012D|(killed|terminated|crashed|died|exited|failed|evicted)[^\n]{0,60}\b(out of memory|out-of-memory|outofmemory)\b|(arrow|pyarrow|pandas|numpy|duckdb|sqlite|mmap|mremap|process|worker|dataloader|cpu|julia|java|spark|dask)[^\n]{0,60}out of memory",
    )
    .unless(r"gpu|cuda|cudnn|hip\b|hip_|device|nccl|skipping|\.cu\b|opencl|\bcl_|xla|hbm|npu|tensorrt|vulkan"),
    consequence(
        "host_oom.worker_gone",
        HostOom,
        r"KilledWorker|TerminatedWorkerError",
    ),
    consequence(
        "host_oom.loader_exited",
        Unknown,
        r"dataloader worker \(pid[^)]*\) exited unexpectedly",
    ),
    hint("host_oom.memory_warning", HostOom, r"exceeds \d+% of (free )?system memory|tcmalloc: large alloc|(system |ram |host )?memory usage (is )?(too )?(high|9\d(\D|$))|memory is low|running low on (memory|ram)|unmanaged memory use is high|at \d+% memory usage\W{1,3}pausing"),
];
