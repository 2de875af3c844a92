//! The program is wrong: exceptions of no other family, crashes, wrong arguments, missing code.

use trackway_core::TerminationReason::{CodeError, Unknown};

use super::{Role, RuleName, Signature, cause, consequence, hint};

/// A device reports a fault that a program can cause.
pub(crate) const GPU_FAULT: RuleName = RuleName("code.gpu_fault");
/// How a process dies of many causes.
pub(crate) const CRASH: RuleName = RuleName("code.crash");
/// The header of a traceback.
pub(crate) const PYTHON_EXIT: RuleName = RuleName("code.python_exit");
/// A process ended itself, whatever the cause.
pub(crate) const ABORTED: RuleName = RuleName("code.aborted");
/// A process was ended by a signal that says nothing of its cause.
pub(crate) const KILLED: RuleName = RuleName("process.killed");
/// A worker of a pool ended without a word, whatever the cause.
pub(crate) const WORKER_GONE: RuleName = RuleName("process.worker_gone");
/// A line that says "error" and nothing that is known.
pub(crate) const LOG_ERROR: RuleName = RuleName("code.log_error");
/// A check of native code failed, whatever the cause.
pub(crate) const NATIVE_CHECK: RuleName = RuleName("code.native_check");
/// Text that is not a program.
pub(crate) const SYNTAX: RuleName = RuleName("code.syntax");

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        "code.kernel_image",
        CodeError,
        r"no kernel image is available|invalid device function|named symbol not found|cuda driver version is insufficient|forward compatibility was attempted|no cuda-capable device|no cuda gpus are available|not compiled with (cuda|gpu|nccl)|invalid device ordinal|unsupported ptx|ptx was compiled with|is not compatible with the current pytorch|found no nvidia driver|cuda is not available|not linked with support for|attempting to deserialize object on",
    )
    .unless(r"gradscaler|autocast|disabling"),
    cause(
        "code.import",
        CodeError,
        r"ModuleNotFoundError|ImportError|no module named|cannot import name|undefined symbol|cannot open shared object|dll load failed|version `(glibc|glibcxx|cxxabi)",
    )
    .unless(r"^\s*(except|raise)\b|warning"),
    cause(
        "code.container",
        CodeError,
        r"error response from daemon|ErrImagePull|ImagePullBackOff|InvalidImageName|manifest (unknown|for \S+ not found)|CreateContainer(Config)?Error|runAsNonRoot|exec format error|executable file not found|RunContainerError|ContainerCannotRun|back-off pulling image|(fail\w*|unable|error)[^\n]{0,20} pull\w*[^\n]{0,30} image|FailedPullingImage|OCI runtime create failed",
    ),
    cause(
        "code.build",
        CodeError,
        r"ninja: build stopped|^cmake error|error: command \W?\S+ failed with exit|unable to locate package|undefined reference to|command \W{0,3}(ninja|nvcc|gcc|g\+\+|cmake|make)\b[^\n]{0,200} non-zero exit|error compiling objects|unable to compile cuda|nvcc fatal|fatal error: \S+\.h\w*: no such file|does not match the version torch was compiled|compiled with different cuda|error building extension|failed building wheel|(?-i:BackendCompilerFailed)|out of resource: shared memory",
    ),
    cause(
        SYNTAX.as_str(),
        CodeError,
        r"\bSyntaxError|IndentationError|TabError|syntax error near",
    ),
    cause(
        "code.arguments",
        CodeError,
        r"unrecognized arguments|execve\(\): [^\n]{0,80}(permission denied|no such file|format error)|can'?t open file '[^']*\.py'|\benv: \W?\w+\W{1,3} no such file|the following arguments are required|argument [^\n]*: (invalid|expected)|no such option|missing option|unexpected keyword argument|positional arguments? but|missing \d+ required|ConfigAttributeError|ConfigKeyError|ConfigCompositionException|MissingMandatoryValue|could not override|is not in struct|missing mandatory value|validation errors? for|InterpolationKeyError",
    ),
    cause(
        "code.shapes",
        CodeError,
        r"shapes cannot be multiplied|size of tensor a|incompatible shapes|is invalid for input of size|expected scalar type|expected all tensors to be on the same device|should be the same\b|incompatible with the layer|backward through the graph a second time|does not require grad and does not have|modified by an inplace operation|marked as ready (only once|twice)|finished reduction in the prior iteration|sizes of tensors must match|given groups=\d+|logits and labels must|not aligned|could not be broadcast together|(must|to) have (the )?same dtype|expected scalar type \w+ but|not implemented for '\w+'|found dtype \w+ but expected|can'?t be cast to the desired output type|destination dtypes match|dimensions? must be equal|dimension out of range|target size .{0,60}input size|mat1 and mat2",
    ),
    cause(
        GPU_FAULT.as_str(),
        CodeError,
        r"core halted unexpectedly|\bhalt is unexpected\b|illegal memory access|CUDA_ERROR_ILLEGAL_ADDRESS|cudaErrorIllegalAddress|misaligned address|memory access fault by gpu|invalid device pointer|(cuda|hip)[^\n]{0,20}error: (invalid (argument|configuration argument|resource handle|program counter)|an illegal instruction)|\bxid( \([^)\n]*\))?[:=]{1,2} ?(13|31|43)\b",
    ),
    cause(
        CRASH.as_str(),
        CodeError,
        r"segmentation fault|\bSIGSEGV\b|fatal python error|core dumped|double free|corrupted size vs|free\(\): invalid|stack smashing|illegal instruction|\bSIGILL\b|floating point exception|\bSIGFPE\b|exitcode ?:? -(4|8|11)\b|access violation|heap corruption|munmap_chunk|0xC0000(005|01D|0FD|374|409)\b|\b(3221225477|3221225725|3221226356|3221226505)\b|-107374(1819|1571|0940|0791)\b|malloc\(\): \w+|buffer overflow detected|segfault at [0-9a-f]+ ip\b|general protection fault|trap invalid opcode",
    )
    .unless(r"potential root causes|\b(unexpected|or other)\b"),
    cause(
        NATIVE_CHECK.as_str(),
        CodeError,
        r"check failed[:.]|\[fatal\]|panicked at|internal assert|assertion [`'][^\n]*failed|(?-i:\b[A-Z]+_(ASSERT|CHECK))(\([^\n]*\) failed|: \S+:\d+)|\bwhat\(\):|XGBoostError|panic: |dmlc::Error|EnforceNotMet|\*\*\* check failure stack trace|^OMP: Error #\d+|non-ok-status: |pthread_create failed",
    )
    .unless(r"cancel|DistBackendError|nccl|filestream\.write|consistency check"),
    Signature {
        name: RuleName("code.exception"),
        reason: CodeError,
        role: Role::Exception,
        conclusive: false,
        pattern: r"(?:^|[\s\]:>|)(])(?-i:(?:[A-Za-z_]\w*\.)*(?:Exception|Unsupported|[A-Z]\w*(?:Error|Exception|Fault|Failure|NotFound|StopIteration|Unavailable|DoesNotExist|Mismatch)))\d*(?:: |:?\s*$|\()",
        unless: Some(r"^\s*(raise|except|return|if|elif|assert|from|import|class|def|with|#|//)\b|StopIteration\b.*dataset|ChildFailedError|ActorDiedError|DeadKernelError|SignalException|CancelledError|CalledProcessError|RayTaskError|Warning: |acl stream synchronize|error\.\w+ ?=|0 errors|root error\(s\) found"),
    },
    Signature {
        name: RuleName("code.exception_other"),
        reason: CodeError,
        role: Role::Exception,
        conclusive: false,
        pattern: r"^\W{0,3}ERROR: (LoadError|MethodError|UndefVarError|ArgumentError|BoundsError|DimensionMismatch|TypeError)|exception in thread \x22|^([a-z_]\w*\.)+error: |\btrial \S+ failed,? (because|with)\b|^error in [\w.:\[\]]+\(|^error in [^\n]{1,200} :(\s|$)|object \x27[^\x27\n]+\x27 not found|(uncaught|unhandled) (exception|error)|command not found|^undefined (function|variable)|^error\[E\d+\]|(?-i:^ERROR \([\w.-]+(\[[^\]\n]*\])?:)|could not compile|LoadError:|: not found$",
        unless: Some(r"interrupt|handled by"),
    },
    consequence(
        "code.async_context",
        Unknown,
        r"kernel errors might be asynchronously",
    ),
    consequence(
        "code.cuda_error",
        CodeError,
        r"cuda error|(cudnn|cublas)_status_(execution_failed|mapping_error|arch_mismatch)|hip error|cuda failure|cuda runtime error",
    )
    .unless(r"out of memory|launch_blocking|failed call to cuinit"),
    consequence(
        ABORTED.as_str(),
        CodeError,
        r"\baborted\b( \(core dumped\))?\s*$|\bSIGABRT\b|signal 6\b|terminate called (after|without)",
    ),
    consequence(
        KILLED.as_str(),
        Unknown,
        r"^\W*killed\W*$|\bkilled\b\s*$|\bSIG(KILL|TERM)\b|signal:? (9|15)\b|received 15 death signal|^\W*terminated\W*$|(exit )?code:? (137|143)\b|\bkernel (appears to have |has |was )?(died|crashed|unresponsive)\b|kernel is unresponsive|(?-i:DeadKernelError)",
    )
    // A launcher that ends the siblings of a process which failed.
    .unless(r"terminating process \d+ via signal"),
    consequence(
        WORKER_GONE.as_str(),
        Unknown,
        r"BrokenProcessPool|terminated abruptly",
    ),
    consequence(
        "process.possible_causes",
        Unknown,
        r"(potential|possible) (root )?(causes|reasons)|(may|could|might) be (due to|caused by)|unknown reasons?|reason (is )?unknown|no error message|disappeared|without (any )?(error|message|trace)|exited unexpectedly|died unexpectedly|unexpectedly (exit|stop|terminat|quit|clos|end)\w*",
    ),
    hint(PYTHON_EXIT.as_str(), CodeError, r"traceback \(most recent call last\)"),
    hint(LOG_ERROR.as_str(), CodeError, r"\b(error|fatal|failed)\b[:\]]")
        .unless(r"^\W*(slurmstepd|srun|sbatch)\b|failed call to cuinit|\b(error|failed):\s*\d+\s*$|(exit|return)(ed)?( with)?( non-?zero)?( exit)? ?(code|status):? \d+\W*$"),
];
