//! What frames of a traceback, and the code below them, are at work on.

use super::evidence::Phase;
use crate::pattern::{Pattern, any_of, calls, in_file, in_folder, in_function};

/// Frames that look like work that they are not: of `torch.compile`, of the step of a Trainer that may also log and save, of a spawned
/// process that calls what it was spawned for, and of a loader's handler that hears of a worker's end wherever the main program is.
pub(super) static NO_PHASE: Pattern = Pattern::new(any_of![
    r"[/\\]_utils[/\\]signal_handling\.py",
    r"[/\\]_dynamo[/\\]",
    r"\bin _maybe_log_save_evaluate\b",
    r#"[/\\]torch[/\\]multiprocessing[/\\]spawn\.py", line \d+, in _wrap\b"#,
]);

/// Frames that match the pattern are at work on this.
const fn phase(phase: Phase, pattern: &'static str) -> (Phase, Pattern) {
    (phase, Pattern::new(pattern))
}

pub(super) static PHASES: [(Phase, Pattern); 12] = [
    // Programs that evaluate. A library that computes a metric, or reads the annotations of one, is used in training too.
    phase(
        Phase::Evaluate,
        any_of![
            in_folder![
                "lm_eval", "evals", "eval_?harness", "lm-evaluation-harness", "lmms_eval", "lmms-eval",
                "opencompass", r"bigcode_eval\w*", "helm", "ragas", "deepeval", r"vlmeval\w*", "mteb",
                "evalplus", "inspect_ai", "langfuse", "alpaca_eval", "llm_judge", "simple-evals",
                "human_eval", "swebench", "lighteval", "promptfoo", "trulens",
            ],
            in_file![r"lm_eval\w*", r"\w*eval_?harness\w*"],
        ],
    ),
    phase(
        Phase::SaveCheckpoint,
        in_function! {
            r"_?save_\w*checkpoint\w*", r"_?save_model\w*", "save_pretrained", r"save_state\w*", "_save",
            "_legacy_save", r"save_sharded\w*", "dump_checkpoint", "save_weights", "_save_to_state_dict", "save_ckpt",
            "torch_save", "async_save", "save_checkpoint",
        },
    ),
    phase(
        Phase::LoadCheckpoint,
        any_of![
            in_function! {
                r"_?load_\w*checkpoint\w*", r"load_state_dict\w*", "load_from_checkpoint",
                r"_load_state_dict_into\w*", r"load_weights\w*", r"load_state\w*", r"restore\w*", r"_?resume\w*",
                r"load_or_resume\w*", "_legacy_load", "load_ckpt", "_load_ckpt", "_load_from_checkpoint",
                r"load_weights_from_hdf5\w*", r"_restore\w*",
            },
            r"[/\\]torch[/\\]serialization\.py",
            r"[/\\]orbax[/\\]",
            r"[/\\]tensorstore\b",
            r"[/\\]torch[/\\]distributed[/\\]checkpoint[/\\]",
            r"dist_checkpointing[/\\]",
            r"megatron[/\\]\S{0,40}checkpointing\.py",
            r"(fairseq|fvcore|detectron2|mmcv|mmengine)[/\\]\S{0,60}checkpoint\w*\.py",
            r"checkpoint_(utils|io|connector|engine|manager|saver|loader|handler)\w*\.py",
            r"hdf5_format\.py",
            r"saving_lib\.py",
            r"[/\\]keras[/\\][^\n]{0,80}\bin load_model\b",
        ],
    ),
    phase(
        Phase::LoadData,
        any_of![
            in_function! {
                "read_csv", "read_json", "read_parquet", "read_table", "load_dataset", r"load_data\w*",
                "_generate_tables", "_generate_examples", r"parse_\w+", r"decode_\w+", r"_read_\w+", r"read_\w+",
            },
            in_folder! {
                r"pandas[/\\]io", "PIL", "pyarrow", "webdataset", "librosa", "torchaudio", "audioread", "imageio",
                r"skimage[/\\]io", "h5py", "tifffile", "nibabel", "pydicom", "rasterio", "decord", "av", "lmdb",
            },
            in_file! {
                "wave", "chunk", "gzip", "bz2", "lzma", "zipfile", "tarfile", "csv", "aifc", "soundfile", "tifffile",
            },
        ],
    ),
    phase(
        Phase::LoadSample,
        r"\bin (__getitem__|\w*collate\w*|_?process_data|fetch|_worker_loop)\b[^/\\]*$|[/\\]torch[/\\]utils[/\\]data[/\\]",
    ),
    phase(
        Phase::CheckInput,
        r"\bin (check_array|check_X_y|_?assert_all_finite\w*|_validate_data|validate_data|_check_\w*sample\w*|column_or_1d)\b",
    ),
    phase(
        Phase::SelectColumns,
        any_of![
            in_function! {
                "_raise_if_missing", "_get_indexer_strict", "get_loc", "_validate_read_indexer", "_validate_features",
                "_check_feature_names", r"_validate_usecols\w*", r"pandas\._libs\.hashtable\S*", "_check_n_features",
                r"check_column\w*", "cast_table_to_schema", "table_cast",
            },
            r"[/\\]pandas[/\\]core[/\\]index",
            r"[/\\]datasets[/\\](formatting|table)",
        ],
    ),
    phase(
        Phase::LocalPeer,
        any_of! {
            r"[/\\]multiprocessing[/\\](connection|reductions?|resource_sharer|queues?|managers|popen\w*|spawn|resource_tracker|synchronize|heap|shared_memory|sharedctypes)\.py",
            r"[/\\]torch[/\\]multiprocessing[/\\]", r"_utils[/\\]pin_memory\.py",
        },
    ),
    phase(Phase::PinMemory, r"\bin _?pin_memory\w*\b|[/\\]_utils[/\\]pin_memory\.py"),
    phase(
        Phase::Request,
        any_of![
            r"(site|dist)-packages[/\\](requests|urllib3|httpx|httpcore|aiohttp|botocore|boto3|grpc|openai|anthropic|cohere|litellm|huggingface_hub|google|azure)[/\\]",
            r"[/\\]lib(64)?[/\\]python\d[^/\\]*[/\\](http[/\\]client|urllib[/\\]request|socket|ssl)\.py",
        ],
    ),
    phase(Phase::Finalizer, r"\bin (__del__|_run_exitfuncs|_exit_function|_run_finalizers)\b"),
    phase(
        Phase::Launcher,
        any_of! {
            r"[/\\]torch[/\\]distributed[/\\](run|launch|launcher|elastic)\b", r"[/\\]accelerate[/\\]commands",
            r"[/\\]deepspeed[/\\]launcher", r"bin[/\\](torchrun|accelerate|deepspeed|horovodrun)\b",
        },
    ),
];

/// The same of frames in code of the user alone: a trainer's function has such a name too.
pub(super) static OWN_PHASES: [(Phase, Pattern); 1] = [phase(
    Phase::Evaluate,
    any_of![
        in_function! {
            "evaluate", "evaluation_loop", "compute_metrics", "_?simple_evaluate", r"_evaluate\w*", r"run_eval\w*",
            r"eval_\w+", r"do_eval\w*", r"\w*judge\w*", r"score_\w+", r"benchmark\w*", r"cli_evaluate\w*",
            r"compute_score\w*", "run_benchmark", "get_score", r"grade\w*", r"evaluate_\w+", r"\w+_evaluate",
            "calc_metrics?", r"compute_metric\w*", "eval_model", "inference_on_dataset", "evalute",
            r"(run|perform|do|final|on)_\w*(validation|evaluation)\w*", "validation_epoch_end", "validation_loop",
        },
        in_folder!["evals?", "evaluate", "evaluation", "evaluators?"],
        r"[/\\]metrics\.py",
        in_file![r"eval\w*", r"\w+_eval", r"judge\w*", r"score\w*", r"benchmark\w*"],
    ],
)];

/// Libraries that decode files of data, and what of them reads.
pub(super) static DECODERS: Pattern = Pattern::new(any_of![
    in_folder! {
        r"pandas[/\\]io", "pyarrow", "webdataset", "librosa", "torchaudio", "audioread", "imageio", r"skimage[/\\]io",
        "nibabel", "pydicom", "rasterio", "decord", "av", "lmdb", r"datasets[/\\]packaged_modules", r"polars[/\\]io",
        r"torchvision[/\\]io", "torchcodec", r"xml[/\\]etree",
    },
    r"[/\\]PIL[/\\][^\n]{0,60}\bin (open|load\w*|_?read\w*|seek|decode\w*|getdata|verify|convert|i(16|32)(be|le))\b",
    r"pandas/_libs/(parsers|json)\b",
    in_file![
        "wave", "chunk", "gzip", "bz2", "lzma", "zipfile", "tarfile", "csv", "aifc", "soundfile", "tifffile",
        "codecs",
    ],
    r"[/\\]pycocotools[/\\]coco\.py[^\n]{0,20}\bin (createIndex|__init__|load(Imgs|Anns|Cats)|get\w+Ids|annTo\w+)\b",
]);

/// What the code line of a frame calls: a shortened traceback has no frame of what it called.
pub(super) static CALLS: [(Phase, Pattern); 5] = [
    phase(Phase::LookUp, r"\._nn\.(cross_entropy_loss|nll_loss\w*)\(|\btorch\.embedding\("),
    phase(
        Phase::PinMemory,
        r"\.pin_memory\(|\b(cuda|hip)(hostalloc|mallochost|hostmalloc|hostregister)\(|\balloc_pinned_memory\(",
    ),
    // A loader gives its sampler nothing but the data set, which may be empty.
    phase(Phase::CheckInput, r"\bsampler = RandomSampler\(dataset(, generator=generator)?\)"),
    phase(Phase::SaveCheckpoint, r"\b(torch\.save|save_checkpoint|save_pretrained)\("),
    phase(
        Phase::LoadCheckpoint,
        any_of![
            calls![
                r"torch\.load", "load_state_dict", "load_checkpoint", "load_weights", "load_from_checkpoint",
                "from_checkpoint",
            ],
            r"(ckpt|checkpoint|manager)\w*\.restore\(",
        ],
    ),
];

/// The same of the code of the user alone.
pub(super) static OWN_CALLS: [(Phase, Pattern); 1] = [phase(
    Phase::Evaluate,
    calls! {
        "compute_metrics", "evaluate",
        "(accuracy|f1|precision|recall|roc_auc|auc|r2|average_precision|balanced_accuracy|bleu|rouge|bert|meteor|jaccard|cohen_kappa|ndcg)_score",
        "load_metric", r"evaluate\.load", r"metrics?\.compute", "corpus_bleu", "loadRes",
    },
)];
