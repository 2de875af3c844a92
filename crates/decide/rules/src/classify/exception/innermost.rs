//! What the innermost frame of a traceback says with its statement, where the line of its exception is missing. Some
//! statements raise one kind of exception and hardly any other: a write, a wait, an allocation, a check of numbers.

use trackway_core::TerminationReason as Reason;

use crate::pattern::Pattern;

/// A frame with its statement that matches the pattern has this reason.
const fn row(reason: Reason, pattern: &'static str) -> (Reason, Pattern) {
    (reason, Pattern::new(pattern))
}

/// Statements that say more than what the frames around them were doing: a checkpoint is not wrong where its file cannot be written.
static FIRM: [(Reason, Pattern); 7] = [
    row(
        Reason::StorageError,
        r#"\.write_(record|end_of_file)\(|\._write_file\(|\bos\.(makedirs|mkdir|chmod|fsync|statvfs)\(|\bshutil\.(copy\w*|move)\(|\bopen\([^\n]{1,120}?, ?(mode ?= ?)?["'][wax]b?\+?b?["']|\bopen\(te?mp_\w+, mode\b|\b_?(writer|fp|file|fileobj|handle)\.(write|flush)\(|[/\\]triton[/\\]runtime[/\\]cache\.py[^\n]*\bin put\b|[/\\](s3fs|gcsfs|adlfs|s3transfer|boto3[/\\]s3|google[/\\]cloud[/\\]storage|azure[/\\]storage)[/\\]"#,
    ),
    row(
        Reason::HostOom,
        r"\b_error_if_any_worker_fails\(|\bos\.fork\(|\bfork_exec\(|\b_new_(using_fd|using_filename|shared)\w*\(|\b_share_(fd|filename)\w*\(",
    ),
    row(
        Reason::NumericDivergence,
        r"\bin (_detect_anomaly|_?check_?numerics\w*|detect_nan\w*|_?check_(nan|inf|overflow|special)\w*|assert_finite\w*)\b|loss_scaler\.py[^\n]*\bin update_scale\b|fp16_optimizer\.py[^\n]*\bin clip_grad_norm\b|\b_update_scale\(|\bmin_loss_scale\b|[/\\]torch[/\\]distributions[/\\]distribution\.py[^\n]*\bin __init__\b|\braise FloatingPointError\b",
    ),
    row(
        Reason::Cancelled,
        r"\btime\.sleep\(|\bwaiter\.acquire\(|\b_?(selector|poller|poll)\.(select|poll)\(|\bos\.waitpid\(|\b_wait_for_tstate_lock\b|\block\.acquire\(|\bsignal\.(pause|sigwait)\b",
    ),
    row(Reason::Hang, r"[/\\]distributed_c10d\.py[^\n]*\bin (monitored_)?barrier\b"),
    row(
        Reason::NetworkError,
        r"[/\\]distributed_c10d\.py[^\n]*\bin (all_reduce|all_gather\w*|all_to_all\w*|broadcast\w*|reduce_scatter\w*|i?send|i?recv)\b",
    ),
    row(
        Reason::NetworkError,
        r"[/\\]elastic[/\\]rendezvous[/\\]|\bTCPStore\(|\bin (_create_c10d_store|_create_tcp_store\w*|_store_based_barrier)\b",
    ),
];

/// Statements that are read where the frames around them say nothing.
static LOOSE: [(Reason, Pattern); 6] = [
    row(
        Reason::SchemaDrift,
        r"[/\\]pandas[/\\]core[/\\](frame\.py[^\n]*\bin __getitem__|generic\.py[^\n]*\bin __getattr__)\b|\b_set_features_order_data\w*|\bget_cat_factor_bytes_representation\b",
    ),
    row(
        Reason::EvaluatorError,
        r"\bjudges?\.\w+\(|\b(simple_evaluate|run_benchmark)\(|\blm_eval\.\w+|\bgraders?\.\w+\(",
    ),
    row(
        Reason::CheckpointError,
        r"\b\w*(load|restore|resume)\w*(checkpoint|ckpt|state_dict)\w*\(|\b_open_zipfile_reader\(|\bsafe_open\(",
    ),
    row(
        Reason::DataError,
        r"\b(Image\.open|cv2\.imread|imageio\.imread|sf\.read|soundfile\.read|librosa\.load|torchaudio\.load|pq\.read_table|pd\.read_\w+|gzip\.open|np\.load|h5py\.File|_?(read|decode|load)_(data|image|img|sample|audio|label|ann\w*|frame|video|record)s?)\(|\b(check_array|check_X_y|_?validate_data)\(|\btorch\.stack\(batch\b|\bjson\.loads\(line\b",
    ),
    // With a shape that is known, what an allocation lacks is memory.
    row(
        Reason::HostOom,
        r#"\btorch\.(zeros|ones|empty|full)(_like)?\([^\n]*device ?= ?["']cpu["']|\bnp\.(zeros|ones|empty|full)(_like)?\("#,
    ),
    row(
        Reason::DeviceOom,
        r"\btorch\.(zeros|ones|empty|full)(_like)?\(|\breturn t\.to\(|\.new_(zeros|ones|empty|full)\(|\btorch\.preserve_format\b|\bparam_applied = fn\(param\)",
    ),
];

/// Operations of a device: with the shapes of the steps before, what they lack is memory.
static OPERATION: Pattern = Pattern::new(
    r"\brun_backward\(|\bF\.(linear|conv\w+|softmax|log_softmax|gelu|layer_norm|scaled_dot_product_attention)\(|\btorch\.(matmul|bmm|cat|baddbmm|einsum)\(|\btorch\._C\._nn\.(linear|gelu|scaled_dot_product_attention)\(",
);

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
