//! Which names of variables, flags and settings mean a secret, and which variables of the environment may be kept.

use super::shapes::DATA;
use crate::racy::Racy;

/// Names whose value is secret whatever it looks like: a password, a secret, an API key.
pub(super) fn is_secret(name: &str) -> bool {
    let flat = flat(name);
    let parts: Vec<String> = parts(name).collect();
    let last = parts.len() > 1 && parts.last().is_some_and(|part| DATA.names.parts.contains(part));
    (last || STRONG.iter().any(|word| flat.contains(word))) && !points_to_a_file(&flat)
}

/// Whether a column of this name holds secrets, whatever they look like: a secret's name ends it, and no word for a measure, a count or a question is in it.
pub(super) fn is_secret_column(name: &str) -> bool {
    const MEASURES: [&str; 14] = [
        "has", "is", "use", "uses", "num", "n", "count", "length", "len", "strength", "score", "age",
        "reset", "type",
    ];
    let flat = flat(name);
    let flat = flat.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let flat = ["hash", "value", "text", "s"].iter().find_map(|end| flat.strip_suffix(end)).unwrap_or(flat);
    let ends = STRONG.iter().any(|word| flat.ends_with(word.trim_end_matches('s')));
    let last = parts(name).last().is_some_and(|part| DATA.names.parts.contains(&part));
    (ends || last || is_whole_name(name)) && !parts(name).any(|part| MEASURES.contains(&part.as_str()))
}

/// Names that often mean a secret (`token`, `key`) and sometimes an entry of a vocabulary or a column.
pub(super) fn may_be_secret(name: &str) -> bool {
    parts(name).any(|part| DATA.names.weak.contains(&part))
}

/// Whether the value of this variable of the launching process is searched for, literally, in all that is stored.
pub(super) fn is_secret_variable(name: &str) -> bool {
    const NOT_SECRET: [&str; 3] = ["PWD", "OLDPWD", "XDG_SESSION_COOKIE"];
    let lower = name.to_ascii_lowercase();
    let counts =
        parts(name).next().is_some_and(|part| matches!(part.as_str(), "max" | "min" | "num" | "n" | "total"));
    !NOT_SECRET.contains(&name)
        && !counts
        && !points_to_a_file(&flat(name))
        && (is_secret(name)
            || may_be_secret(name)
            || is_whole_name(name)
            || ["token", "_auth", "webhook", "webhook_url"].iter().any(|end| lower.ends_with(end)))
}

/// Names such as `AUTH` and `PW`, which are a secret's only as a whole.
pub(super) fn is_whole_name(name: &str) -> bool {
    DATA.names.whole.iter().any(|whole| whole.eq_ignore_ascii_case(name))
}

/// Whether a value under such a name is a mere count: `max_api_tokens=4096`.
pub(super) fn is_count(name: &str, value: &[u8]) -> bool {
    let plural = parts(name).last().is_some_and(|part| matches!(part.as_str(), "tokens" | "keys"));
    plural && value.iter().all(u8::is_ascii_digit)
}

/// The strong words without blanks.
static STRONG: Racy<Vec<String>> = Racy::new(|| {
    DATA.names.strong.iter().chain(&DATA.names.prose).map(|word| word.replace(' ', "")).collect()
});

fn flat(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>().to_lowercase()
}

fn parts(name: &str) -> impl Iterator<Item = String> {
    name.split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .map(str::to_ascii_lowercase)
}

fn points_to_a_file(flat: &str) -> bool {
    ["file", "path", "dir", "home"].iter().any(|end| flat.ends_with(end))
}

/// Variables that configure a training process and carry no secret by their meaning.
const ALLOWED: &[&str] = &[
    "PATH", "LANG", "LANGUAGE", "TZ", "HOME", "USER", "LOGNAME", "HOSTNAME", "SHELL", "PWD", "TERM",
    "TMPDIR", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "RUST_LOG", "RUST_BACKTRACE", "RAYON_NUM_THREADS", "NUMEXPR_MAX_THREADS", "RANK", "LOCAL_RANK",
    "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT",
    "TOKENIZERS_PARALLELISM", "HF_HOME", "HF_DATASETS_CACHE", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "WANDB_MODE",
    "WANDB_PROJECT", "WANDB_ENTITY", "WANDB_DIR", "CI",
];

/// Beginnings of such variables.
const ALLOWED_PREFIXES: &[&str] = &[
    "LC_", "CUDA_", "NVIDIA_", "NCCL_", "CUBLAS_", "CUDNN_", "GLOO_", "UCX_", "OMP_", "MKL_", "KMP_",
    "GOMP_", "OPENBLAS_", "VECLIB_", "PYTHON", "PYTORCH_", "TORCH", "TF_", "XLA_", "JAX_", "TRITON_",
    "TRANSFORMERS_", "ACCELERATE_", "DEEPSPEED_", "RAY_", "SLURM_", "SBATCH_", "PBS_", "LSB_", "FI_",
    "ROCR_", "HIP_", "HSA_", "MIOPEN_", "RCCL_", "MALLOC_", "OMPI_", "PMIX_", "PMI_",
];

/// Whether the variable may be kept in a receipt (its value is still checked by pattern).
pub(super) fn is_allowed(name: &str) -> bool {
    let listed = ALLOWED.contains(&name) || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    // What Terraform is given may be anything.
    listed && !name.starts_with("TF_VAR_") && (name == "PWD" || !is_secret_variable(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that names of secrets are distinguished from names that only look like them.
    #[test]
    fn secret_names_are_distinguished_from_others() {
        for name in [
            "OPENAI_API_KEY", "HF_TOKEN", "db.password", "--client-secret", "AWS_SECRET_ACCESS_KEY",
            "SLURM_JWT", "OPENAI_KEYS", "HF_TOKENS", "DB_CREDS", "DB_PW", "SLACK_WEBHOOK_URL",
            "TRACKWAY_WEBHOOK", "AUTH", "PW", "CONTRASEÑA", "Passwort",
        ] {
            assert!(is_secret_variable(name.trim_start_matches('-')), "{name}");
        }
        for name in [
            "PWD",
            "TOKENIZERS_PARALLELISM",
            "MAX_TOKENS",
            "MONKEY",
            "KEYBOARD",
            "GOOGLE_APPLICATION_CREDENTIALS_FILE",
            "SSH_AUTH_SOCK",
            "PASSIVE",
            "SECRETARY_HOME",
        ] {
            assert!(!is_secret_variable(name), "{name}");
        }
        assert!(
            is_allowed("SLURM_JOB_ID")
                && is_allowed("PWD")
                && !is_allowed("SLURM_JWT")
                && !is_allowed("TF_VAR_region")
                && !is_allowed("EDITOR")
                && !is_allowed("TRACKWAY_HOME")
        );
    }
}
