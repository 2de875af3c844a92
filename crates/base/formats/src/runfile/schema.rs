//! Every section and key that a run file may hold. The reader, the messages and the test of `docs/run-file.md`
//! all use this table.

use trackway_core::text::quoted_list;

/// The keys of one section.
#[derive(Debug)]
pub struct SectionSchema {
    /// The section's name; `*` means a name the user chooses. Empty for the top of the file.
    pub name: &'static str,
    /// The keys it may hold.
    pub keys: &'static [&'static str],
    /// Whether the user chooses the keys.
    pub free_keys: bool,
}

const fn section(name: &'static str, keys: &'static [&'static str]) -> SectionSchema {
    SectionSchema { name, keys, free_keys: false }
}

const fn free(name: &'static str) -> SectionSchema {
    SectionSchema { name, keys: &[], free_keys: true }
}

/// The whole schema, top of the file first.
pub const SCHEMA: &[SectionSchema] = &[
    section(
        "",
        &[
            "run", "resources", "container", "data", "preflight", "governance", "training", "ladder",
            "checkpoint", "retry", "supervise", "detect", "early_stop", "evaluate", "notify", "owner",
            "launch",
        ],
    ),
    section(
        "run",
        &[
            "name", "model_family", "project", "criticality", "command", "seed", "working_directory",
            "environment", "pass_environment", "start_from", "parameters", "tags",
        ],
    ),
    free("run.environment"),
    free("run.parameters"),
    free("run.tags"),
    section(
        "resources",
        &[
            "gpus", "gpu", "usd_per_gpu_hour", "cpus", "memory", "nodes", "processes_per_node", "gpu_memory",
            "disk", "time_limit",
        ],
    ),
    section("container", &["image", "engine"]),
    free("data"),
    section(
        "data.*",
        &[
            "path", "format", "label", "group", "time", "columns", "header", "delimiter", "comment",
            "skip_lines", "trailing_separator", "decimal", "missing", "rules", "schema", "reference",
            "group_by", "ignore", "role", "masks", "labels",
        ],
    ),
    section(
        "preflight",
        &[
            "one_batch", "overfit_batches", "label_noise", "require", "skip", "severity",
            "rehearsal_timeout", "target_loss",
        ],
    ),
    section("preflight.skip", &["check", "why"]),
    free("preflight.severity"),
    section("governance", &["personal_data"]),
    section("governance.personal_data", &["column", "kinds", "approved_by", "why", "until"]),
    section(
        "training",
        &[
            "parameters", "model_config", "precision", "loss_scaling", "gradient_clip_norm", "warmup_steps",
            "total_steps", "strategy", "nodes", "preemptible", "micro_batch", "accumulate",
            "sequence_length", "optimizer", "master_weights", "recompute", "attention", "loss", "lora_rank",
            "loader", "hours_expected", "stored_gb", "usd_per_stored_gb", "moved_gb", "usd_per_moved_gb",
        ],
    ),
    section("training.loader", &["workers", "pin_memory", "prefetch", "persistent_workers"]),
    section("ladder", &["rungs", "promote", "warm_start"]),
    section(
        "checkpoint",
        &["every", "keep", "remote", "upload_wait", "adopt", "resume", "on_wrong_resume", "safe_after"],
    ),
    section("checkpoint.resume", &["args", "environment"]),
    section("checkpoint.every", &["steps", "minutes", "epochs"]),
    section("checkpoint.keep", &["last", "every", "best"]),
    free("retry"),
    section("retry.*", &["attempts", "refill", "backoff", "plan", "max_usd", "max_gpu_hours"]),
    section("retry.*.plan", &["set", "resources", "placement", "launcher"]),
    section("retry.*.plan.placement", &["exclude_hosts"]),
    section("retry.*.plan.resources", &["gpus", "gpu", "cpus", "memory"]),
    section("supervise", &["grace", "timeout", "hang_after", "start_within", "on_data_change", "sigterm"]),
    section(
        "detect",
        &[
            "non_finite", "gradient_explosion", "gradient_vanishing", "loss_spike", "loss_shift", "plateau",
            "validation_divergence", "dead_input", "seen_before", "data_starvation", "throughput_drop",
            "straggler", "memory_creep", "hang", "learning_rate", "loss_scale_collapse", "rank_divergence",
            "roll_back_steps", "skip_batches",
        ],
    ),
    section("detect.*", &["policy", "threshold", "patience"]),
    section("notify", &["webhook", "on"]),
    section("early_stop", &["patience", "metric", "improvement", "progressive", "window"]),
    section(
        "evaluate",
        &[
            "command", "scorer", "rows", "features", "skip", "task_set", "task_set_version", "slices",
            "metric", "recall", "support_min", "width_max", "margin", "costs", "blind_spots", "probe_rows",
            "test_sets", "checkpoint", "gates", "label", "positive", "prediction", "score", "missing",
            "unmatched_tasks", "group", "fairness", "baseline", "decoding", "judge", "seed", "timeout",
            "retry", "after",
        ],
    ),
    free("evaluate.slices"),
    free("evaluate.costs"),
    free("evaluate.costs.*"),
    section("evaluate.slices.*", &["where", "metric", "support_min", "width_max"]),
    free("evaluate.test_sets"),
    section("evaluate.test_sets.*", &["rows", "task_set", "task_set_version", "slices", "gates"]),
    free("evaluate.test_sets.*.slices"),
    free("evaluate.decoding"),
    section("evaluate.judge", &["model", "rubric"]),
    section("evaluate.retry", &["attempts", "backoff"]),
    section("owner", &["name", "team"]),
    section(
        "launch",
        &["on", "engine", "account", "queue", "priority", "exclude_hosts", "secrets", "template"],
    ),
    section("launch.secrets", &["name", "from"]),
    section("launch.template", &["format", "text"]),
];

/// Sections and keys that had another name: the section they are in, the old name, the new one.
const RENAMED: &[(&str, &str, &str)] = &[("", "stages", "ladder"), ("ladder", "ladder", "rungs")];

/// How alike (Jaro–Winkler, 0 to 1) a known name must be to be offered for a mistyped one.
const LIKENESS_MIN: f64 = 0.75;

/// A shorter word is one typing error away from too many others.
const SLIP_LETTERS_MIN: usize = 3;

impl SectionSchema {
    /// Whether the section may hold this key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.free_keys || self.keys.contains(&key)
    }

    /// What to write instead of an unknown key: its new name, the nearest name, the section it belongs to, or all
    /// names.
    pub(super) fn advice_for(&self, key: &str) -> String {
        if let Some((_, _, new)) =
            RENAMED.iter().find(|(section, old, _)| (*section, *old) == (self.name, key))
        {
            return format!("`{key}` is now called `{new}`");
        }
        if let Some(nearest) = nearest(key, self.keys.iter().copied()) {
            return format!("did you mean `{nearest}`?");
        }
        let home = SCHEMA.iter().find(|section| !section.name.contains('*') && section.keys.contains(&key));
        match home {
            Some(home) if home.name.is_empty() => format!("`[{key}]` is a top-level section"),
            Some(home) => format!("`{key}` belongs in `[{}]`", home.name),
            None => format!("known here: {}", quoted_list(self.keys)),
        }
    }
}

/// The schema of a section by its name, with `*` where the user chooses.
pub(super) fn section_schema(name: &str) -> Option<&'static SectionSchema> {
    SCHEMA.iter().find(|section| section.name == name)
}

/// The known name most like `word` without regard to case, if any is similar enough: one typing error away, or alike in
/// its letters and their order.
#[must_use]
pub fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let word = word.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let one_slip = word.chars().count() >= SLIP_LETTERS_MIN && strsim::osa_distance(&word, &name) <= 1;
        strsim::jaro_winkler(&word, &name) + f64::from(u8::from(one_slip))
    };
    names
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name)
}
