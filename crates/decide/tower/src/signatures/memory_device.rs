//! An accelerator ran out of memory: CUDA, HIP, XPU, MPS, NPU, TPU, through every framework's own allocator.

use trackway_core::TerminationReason::DeviceOom;

use super::{Signature, cause, hint};

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        "device_oom.allocator",
        DeviceOom,
        r"\b(cuda|hip|xpu|npu|mlu|gcu|dcu|ipu|tpu|mps backend|mps|musa|hpu|vulkan|metal|gpu|device)( is| ran)? out of memory\b",
    )
    .unless(r"not a failure|oom.?kill|(cuda|hip)(hostalloc|hostmalloc|mallochost)|pinned (host )?memory"),
    cause(
        "device_oom.cuda_status",
        DeviceOom,
        r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory|\b(hip|cuda|musa|cn)_?error_?out_?of_?memory|HSA_STATUS_ERROR_OUT_OF_RESOURCES|failed to allocate [\d.]+ ?[kmgt]?i?b?[^\n]{0,40} from device\b|hipErrorMemoryAllocation|CU(BLAS|DNN|SPARSE|SOLVER|FFT)(_STATUS)?_ALLOC_FAILED|CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate|memory allocation error on worker|\bcnrtMalloc\w* fail|(HIPBLAS|ROCBLAS|MIOPEN)_STATUS_ALLOC_FAILED|ERROR_OUT_OF_DEVICE_MEMORY|PI_ERROR_OUT_OF_RESOURCES|CL_OUT_OF_RESOURCES|MEM_OBJECT_ALLOCATION_FAILURE|ErrorOutOfMemory|memory object allocation failure|synstatus[= ]\d+ \[device not enough memory|PT_DEVMEM[^\n]{0,30}allocation failed|nrt_tensor_allocate[^\n]{0,60}(allocation fail|no memory|not enough)|\b(cuda|hip)malloc\w* fail(ed)?\W*$|out_of_memory: (cuda|rmm)|out of memory allocating [\d,]+ bytes|\bEL0004\b|\brtmalloc\w*[^\n]{0,30} fail|(error code is|ret ?=) ?207001\b",
    ),
    cause(
        "device_oom.exception",
        DeviceOom,
        r"(torch\.(cuda\.)?|cupy\.cuda\.memory\.|accelerator\w*\.)OutOfMemoryError|(?-i:OutOfGPUMemoryError)",
    ),
    cause(
        "device_oom.cuda_error_2",
        DeviceOom,
        r"(cuda|cudnn|cublas|curand|thc\w*|nccl|gpu|\.cu\b|\.cuh\b|\bhip|ggml|rmm|thrust|nvrtc)[^\n]{0,160}out of memory|out of memory[^\n]{0,80}(\bcuda|\bgpu|\.cu\b|nvidia|device memory)|\(2 vs\. 0\)\s+out of memory",
    )
    .unless(r"not a failure|oom.?kill|(cuda|hip)(hostalloc|hostmalloc|mallochost)|pinned (host )?memory"),
    cause(
        "device_oom.resource_exhausted",
        DeviceOom,
        r"(resource.?exhausted)[^\n]*(out ?of memory|oom when|out\s*$|failed to allocate|ran out of memory|attempting to (reserve|allocate)|hbm|allocating|memory space)|xlaruntimeerror: resource_exhausted",
    )
    .unless(r"device:cpu|allocator (cpu|mklcpu)|\bhost memory|larger than max"),
    cause(
        "device_oom.tensor_allocation",
        DeviceOom,
        r"oom when allocating tensor|failed to allocate (memory for requested buffer of size|a memory region of)|BFCArena::AllocateRaw\w*[^\n]*(failed to allocate|is smaller than requested bytes)",
    )
    .unless(r"device:cpu|allocator (cpu|mklcpu)"),
    cause(
        "device_oom.hbm",
        DeviceOom,
        r"ran out of memory in memory space hbm|exceeded hbm capacity|used \S+ of \S+ hbm|out of memory[^\n]*hbm",
    )
    .conclusive(),
    cause(
        "device_oom.xla_allocation",
        DeviceOom,
        r"failed to allocate request for [^\n]* on device|out of memory while trying to allocate \d+ bytes|of memory while trying to allocate \d+ bytes",
    ),
    cause(
        "device_oom.gpu_wording",
        DeviceOom,
        r"(out of|insufficient|not enough|exhausted|exceed(s|ed|ing)?( the)?( available)?|no (free|available)|lack of|ran out of)( free| available| total)? (gpu|device|video)[ -]?(memory|ram)|(out of|insufficient|not enough|ran out of) vram|not enough memory on device|failed to allocate memory [^\n]{0,60}\bon (cuda|gpu)|out of memory error on gpu|cannot allocate [^\n]* memory on gpu|(could not|failed to|can'?t|unable to) allocate [^\n]{0,40}(gpu|device|cuda|video|rocm|vulkan|sycl)\d* ?(memory|buffer|tensor|ram)|gpu memory (is )?(exhausted|insufficient|not enough)|device not enough memory|bytes of device memory\b|out of memory on tile\b|device memory (allocation )?(is )?(exhausted|insufficient|failed)",
    ),
    cause(
        "device_oom.plain_exception",
        DeviceOom,
        r"(?-i:(^|[\s:])(RuntimeError|Exception|OutOfMemoryError)): out of memory\b|device[^\n]{0,20} memory (isn'?t|is not) enough",
    )
    .unless(r"\b(host|cpu|ram|java|arrow|worker|process|heap|container|killed|shared|exit code)\b"),
    cause(
        "device_oom.metal",
        DeviceOom,
        r"command buffer[^\n]*insufficient memory|kIOGPUCommandBufferCallbackErrorOutOfMemory",
    ),
    cause(
        "device_oom.cache_blocks",
        DeviceOom,
        r"no available memory for the cache blocks|free memory on device[^\n]*less than|larger than the available kv cache memory|not enough memory[^\n]{0,60}(mem[-_]fraction|gpu[-_]memory|prefill)|larger than the maximum number of tokens that can be stored in (the )?kv cache|not enough memory (is available )?(for|to)[^\n]{0,40}kv cache",
    ),
    cause(
        "device_oom.destination_tensor",
        DeviceOom,
        r"dst tensor is not initialized",
    ),
    hint(
        "device_oom.bfc_warning",
        DeviceOom,
        r"allocator \([^)]*\) ran out of memory|bfc_allocator[^\n]*\*{8}",
    )
    .unless(r"not a failure"),
    hint(
        "device_oom.cublas_handle",
        DeviceOom,
        r"(cublas|cudnn)_status_(not_initialized|internal_error)",
    ),
];
