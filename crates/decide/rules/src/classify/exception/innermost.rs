//! What the innermost frame of a traceback says with its statement, where the line of its exception is missing. Some
//! statements raise one kind of exception and hardly any other: a write, a wait, an allocation, a check of numbers.

use trackway_core::TerminationReason as Reason;

use crate::pattern::{Pattern, any_of, calls, in_folder, in_function};

/// A frame with its statement that matches the pattern has this reason.
const fn row(reason: Reason, pattern: &'static str) -> (Reason, Pattern) {
    (reason, Pattern::new(pattern))
}

/// Statements that say more than what the frames around them were doing: a checkpoint is not wrong where its file cannot be written.
static FIRM: [(Reason, Pattern); 7] = [
    row(
        Reason::StorageError,
        any_of![
            r"\.write_(record|end_of_file)\(",
            r"\._write_file\(",
            r"\bos\.(makedirs|mkdir|chmod|fsync|statvfs)\(",
            r"\bshutil\.(copy\w*|move)\(",
            r#"\bopen\([^\n]{1,120}?, ?(mode ?= ?)?["'][wax]b?\+?b?["']"#,
            r"\bopen\(te?mp_\w+, mode\b",
            r"\b_?(writer|fp|file|fileobj|handle)\.(write|flush)\(",
            r"[/\\]triton[/\\]runtime[/\\]cache\.py[^\n]*\bin put\b",
            in_folder! {
                "s3fs", "gcsfs", "adlfs", "s3transfer", r"boto3[/\\]s3", r"google[/\\]cloud[/\\]storage",
                r"azure[/\\]storage",
            },
        ],
    ),
    row(
        Reason::HostOom,
        any_of! {
            r"\b_error_if_any_worker_fails\(", r"\bos\.fork\(", r"\bfork_exec\(",
            r"\b_new_(using_fd|using_filename|shared)\w*\(", r"\b_share_(fd|filename)\w*\(",
        },
    ),
    row(
        Reason::NumericDivergence,
        any_of![
            in_function! {
                "_detect_anomaly", r"_?check_?numerics\w*", r"detect_nan\w*",
                r"_?check_(nan|inf|overflow|special)\w*", r"assert_finite\w*",
            },
            r"loss_scaler\.py[^\n]*\bin update_scale\b",
            r"fp16_optimizer\.py[^\n]*\bin clip_grad_norm\b",
            r"\b_update_scale\(",
            r"\bmin_loss_scale\b",
            r"[/\\]torch[/\\]distributions[/\\]distribution\.py[^\n]*\bin __init__\b",
            r"\braise FloatingPointError\b",
        ],
    ),
    row(
        Reason::Cancelled,
        any_of! {
            r"\btime\.sleep\(", r"\bwaiter\.acquire\(", r"\b_?(selector|poller|poll)\.(select|poll)\(",
            r"\bos\.waitpid\(", r"\b_wait_for_tstate_lock\b", r"\block\.acquire\(", r"\bsignal\.(pause|sigwait)\b",
        },
    ),
    row(Reason::Hang, r"[/\\]distributed_c10d\.py[^\n]*\bin (monitored_)?barrier\b"),
    row(
        Reason::NetworkError,
        r"[/\\]distributed_c10d\.py[^\n]*\bin (all_reduce|all_gather\w*|all_to_all\w*|broadcast\w*|reduce_scatter\w*|i?send|i?recv)\b",
    ),
    row(
        Reason::NetworkError,
        any_of![
            r"[/\\]elastic[/\\]rendezvous[/\\]",
            r"\bTCPStore\(",
            in_function!["_create_c10d_store", r"_create_tcp_store\w*", "_store_based_barrier"],
        ],
    ),
];

/// Statements that are read where the frames around them say nothing.
static LOOSE: [(Reason, Pattern); 6] = [
    row(
        Reason::SchemaDrift,
        any_of! {
            r"[/\\]pandas[/\\]core[/\\](frame\.py[^\n]*\bin __getitem__|generic\.py[^\n]*\bin __getattr__)\b",
            r"\b_set_features_order_data\w*", r"\bget_cat_factor_bytes_representation\b",
        },
    ),
    row(
        Reason::EvaluatorError,
        r"\bjudges?\.\w+\(|\b(simple_evaluate|run_benchmark)\(|\blm_eval\.\w+|\bgraders?\.\w+\(",
    ),
    row(
        Reason::CheckpointError,
        any_of! {
            r"\b\w*(load|restore|resume)\w*(checkpoint|ckpt|state_dict)\w*\(", r"\b_open_zipfile_reader\(",
            r"\bsafe_open\(",
        },
    ),
    row(
        Reason::DataError,
        any_of![
            calls! {
                r"Image\.open", r"cv2\.imread", r"imageio\.imread", r"sf\.read", r"soundfile\.read", r"librosa\.load",
                r"torchaudio\.load", r"pq\.read_table", r"pd\.read_\w+", r"gzip\.open", r"np\.load", r"h5py\.File",
                r"_?(read|decode|load)_(data|image|img|sample|audio|label|ann\w*|frame|video|record)s?",
            },
            calls!["check_array", "check_X_y", "_?validate_data"],
            r"\btorch\.stack\(batch\b",
            r"\bjson\.loads\(line\b",
        ],
    ),
    // With a shape that is known, what an allocation lacks is memory.
    row(
        Reason::HostOom,
        any_of![
            r#"\btorch\.(zeros|ones|empty|full)(_like)?\([^\n]*device ?= ?["']cpu["']"#,
            r"\bnp\.(zeros|ones|empty|full)(_like)?\(",
        ],
    ),
    row(
        Reason::DeviceOom,
        any_of! {
            r"\btorch\.(zeros|ones|empty|full)(_like)?\(", r"\breturn t\.to\(", r"\.new_(zeros|ones|empty|full)\(",
            r"\btorch\.preserve_format\b", r"\bparam_applied = fn\(param\)",
        },
    ),
];

/// Operations of a device: with the shapes of the steps before, what they lack is memory.
static OPERATION: Pattern = Pattern::new(any_of! {
    r"\brun_backward\(", r"\bF\.(linear|conv\w+|softmax|log_softmax|gelu|layer_norm|scaled_dot_product_attention)\(",
    r"\btorch\.(matmul|bmm|cat|baddbmm|einsum)\(", r"\btorch\._C\._nn\.(linear|gelu|scaled_dot_product_attention)\(",
});

/// The reason that the statement has whatever the frames around it were doing.
pub(super) fn firm(statement: &str) -> Option<Reason> {
    first_of(&FIRM, statement)
}

/// The reason that it has where they say nothing.
pub(super) fn loose(statement: &str, has_worked: bool) -> Option<Reason> {
    let of_operation = || (has_worked && OPERATION.is_match(statement)).then_some(Reason::DeviceOom);
    first_of(&LOOSE, statement).or_else(of_operation)
}

fn first_of(table: &[(Reason, Pattern)], statement: &str) -> Option<Reason> {
    table.iter().find(|(_, pattern)| pattern.is_match(statement)).map(|(reason, _)| *reason)
}
