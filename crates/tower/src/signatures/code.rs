//! The program is wrong: exceptions of no other family, crashes, wrong arguments, missing code.

use trackway_core::TerminationReason::{CodeError, Unknown};

use super::{Role, Signature, cause, consequence, hint};

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        "code.kernel_image",
        CodeError,
        &["no kernel image", "invalid device function", "invaliddevicefunction", "cuda driver version is insufficient", "forward compatibility", "no cuda-capable device", "no cuda gpus", "not compiled with cuda", "invalid device ordinal", "ptx", "is not compatible with the current pytorch", "found no nvidia driver", "cuda unavailable", "cuda is not available", "cuda not available", "not compiled with"],
        r"no kernel image is available|invalid device function|cuda driver version is insufficient|forward compatibility was attempted|no cuda-capable device|no cuda gpus are available|not compiled with (cuda|gpu|nccl)|invalid device ordinal|unsupported ptx|ptx was compiled with|is not compatible with the current pytorch|found no nvidia driver|cuda is not available|not linked with support for",
    ),
    cause(
        "code.import",
        CodeError,
        &["modulenotfounderror", "importerror", "no module named", "cannot import name", "undefined symbol", "cannot open shared object", "dll load failed", "symbol not found", "version `glibc", "undefined reference"],
        r"ModuleNotFoundError|ImportError|no module named|cannot import name|undefined symbol|cannot open shared object|dll load failed|version `(glibc|glibcxx|cxxabi)",
    )
    .unless(r"^\s*(except|raise)\b|warning"),
    cause(
        "code.syntax",
        CodeError,
        &["syntaxerror", "indentationerror", "taberror", "syntax error"],
        r"SyntaxError|IndentationError|TabError|syntax error near",
    ),
    cause(
        "code.arguments",
        CodeError,
        &["unrecognized arguments", "the following arguments are required", "invalid choice", "no such option", "usage:", "missing option", "unexpected keyword", "positional argument", "configattributeerror", "hydra", "omegaconf", "could not override", "not in struct", "missing mandatory value", "validation error for", "interpolation"],
        r"unrecognized arguments|the following arguments are required|argument [^\n]*: (invalid|expected)|no such option|missing option|unexpected keyword argument|positional arguments? but|missing \d+ required|ConfigAttributeError|ConfigKeyError|ConfigCompositionException|MissingMandatoryValue|could not override|is not in struct|missing mandatory value|validation errors? for|InterpolationKeyError",
    ),
    cause(
        "code.shapes",
        CodeError,
        &["shapes cannot be multiplied", "size of tensor a", "must match the size of tensor", "shape mismatch", "incompatible shapes", "is invalid for input of size", "expected scalar type", "expected all tensors to be on the same device", "should be the same", "incompatible with the layer", "shapes must be", "dimension", "backward through the graph a second time", "does not require grad", "modified by an inplace", "marked as ready twice", "in the prior iteration", "sizes of tensors must match", "given groups=", "logits and labels", "incompatible", "not aligned", "could not be broadcast", "mat1 and mat2", "must have same dtype"],
        r"shapes cannot be multiplied|size of tensor a|incompatible shapes|is invalid for input of size|expected scalar type|expected all tensors to be on the same device|should be the same\b|incompatible with the layer|backward through the graph a second time|does not require grad and does not have|modified by an inplace operation|marked as ready (only once|twice)|finished reduction in the prior iteration|sizes of tensors must match|given groups=\d+|logits and labels must|not aligned|could not be broadcast together|must have (the )?same dtype|dimensions? must be equal|dimension out of range|target size .{0,60}input size|mat1 and mat2",
    ),
    cause(
        "code.gpu_fault",
        CodeError,
        &["illegal memory access", "illegaladdress", "illegal_address", "misaligned address", "illegal instruction", "memory access fault by gpu", "invalid device pointer", "invalid argument", "invalid program counter", "page not present", "invalid configuration argument", "invalid resource handle"],
        r"illegal memory access|CUDA_ERROR_ILLEGAL_ADDRESS|cudaErrorIllegalAddress|misaligned address|memory access fault by gpu|invalid device pointer|(cuda|hip)[^\n]{0,20}error: (invalid (argument|configuration argument|resource handle|program counter)|an illegal instruction)",
    ),
    cause(
        "code.crash",
        CodeError,
        &["segmentation fault", "sigsegv", "fatal python error", "core dumped", "double free", "corrupted size", "free(): invalid", "stack smashing", "illegal instruction", "sigill", "floating point exception", "sigfpe", "access violation", "exception_access_violation", "heap corruption", "munmap_chunk", "malloc(): ", "buffer overflow detected"],
        r"segmentation fault|\bSIGSEGV\b|fatal python error|core dumped|double free|corrupted size vs|free\(\): invalid|stack smashing|illegal instruction|\bSIGILL\b|floating point exception|\bSIGFPE\b|access violation|heap corruption|munmap_chunk|malloc\(\): \w+|buffer overflow detected",
    )
    .unless(r"potential root causes|\b(unexpected|or other)\b"),
    cause(
        "code.native_check",
        CodeError,
        &["check failed", "terminate called", "[fatal]", "panicked at", "internal assert", "assertion", "what():", "fatal error", "xgboosterror", "internal_error", "abort()", "cuda error", "goroutine", "dmlc::error", "std::runtime_error", "enforcenotmet", "check failure"],
        r"check failed[:.]|\[fatal\]|panicked at|internal assert|assertion [`'][^\n]*failed|\bwhat\(\):|XGBoostError|panic: |dmlc::Error|EnforceNotMet|\*\*\* check failure stack trace",
    )
    .unless(r"cancel|DistBackendError|nccl"),
    Signature {
        name: "code.exception",
        reason: CodeError,
        role: Role::Exception,
        conclusive: false,
        needles: &["error", "exception", "fault", "failure", "stopiteration", "systemexit", "notfound", "notimplemented"],
        pattern: r"(?:^|[\s\]:>|)(])(?-i:(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Fault|Failure|NotFound|StopIteration|Unavailable|DoesNotExist|Mismatch))\d*(?:: |:?\s*$|\()",
        unless: Some(r"^\s*(raise|except|return|if|elif|assert|from|import|class|def|with|#|//)\b|StopIteration\b.*dataset|ChildFailedError|ActorDiedError|CalledProcessError|RayTaskError|Warning: |error\.\w+ ?=|0 errors"),
    },
    Signature {
        name: "code.exception_other",
        reason: CodeError,
        role: Role::Exception,
        conclusive: false,
        needles: &["error: ", "exception in thread", "error in ", "uncaught", "unhandled", "fatal:", "fatal: ", "traceback", "loaderror", "command not found"],
        pattern: r"^\W{0,3}ERROR: (LoadError|MethodError|UndefVarError|ArgumentError|BoundsError|DimensionMismatch|TypeError)|exception in thread|^error in [\w.:]+\(|(uncaught|unhandled) (exception|error)|command not found|LoadError:|: not found$",
        unless: Some(r"interrupt|handled by"),
    },
    consequence(
        "code.async_context",
        Unknown,
        &["kernel errors might be", "for debugging consider"],
        r"kernel errors might be asynchronously",
    ),
    consequence(
        "code.cuda_error",
        CodeError,
        &["cuda error", "cudnn_status", "cublas_status", "hip error", "cuda failure", "cuda runtime error", "acceleratorerror"],
        r"cuda error|(cudnn|cublas)_status_(execution_failed|mapping_error|arch_mismatch)|hip error|cuda failure|cuda runtime error",
    )
    .unless(r"out of memory|launch_blocking"),
    consequence(
        "code.aborted",
        CodeError,
        &["aborted", "sigabrt", "signal 6", "terminate called"],
        r"\baborted\b( \(core dumped\))?\s*$|\bSIGABRT\b|signal 6\b|terminate called (after|without)",
    ),
    consequence(
        "process.killed",
        Unknown,
        &["killed", "sigkill", "signal 9", "signal: 9", "sigterm", "signal 15", "signal: 15", "signalexception", "terminated", "exit code 137", "code 137", "exit code 143", "death signal"],
        r"^\W*killed\W*$|\bkilled\b\s*$|\bSIG(KILL|TERM)\b|signal:? (9|15)\b|received 15 death signal|^\W*terminated\W*$|(exit )?code:? (137|143)\b",
    ),
    consequence(
        "process.possible_causes",
        Unknown,
        &["potential root causes", "possible causes", "may be due to", "could be due to", "might be due to", "this may be caused", "unknown reason", "reason unknown", "for unknown", "unexpectedly", "without error"],
        r"(potential|possible) (root )?(causes|reasons)|(may|could|might) be (due to|caused by)|unknown reasons?|reason (is )?unknown|no error message|disappeared|without (any )?(error|message|trace)|exited unexpectedly|died unexpectedly|unexpectedly (exit|stop|terminat|quit|clos|end)\w*",
    ),
    hint("code.python_exit", CodeError, &["traceback"], r"traceback \(most recent call last\)"),
    hint("code.log_error", CodeError, &["error", "fatal", "failed"], r"\b(error|fatal|failed)\b[:\]]"),
];
