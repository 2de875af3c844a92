//! Which names of variables, flags and settings mean a secret, and which variables of the environment may be kept.

/// Names whose value is secret whatever it looks like: a password, a secret, an API key.
pub(super) fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 12] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "apikey",
        "accesskey",
        "privatekey",
        "accountkey",
        "credential",
        "accesstoken",
        "authtoken",
        "apitoken",
    ];
    let flat: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    WORDS.iter().any(|word| flat.contains(word)) && !points_to_a_file(&flat)
}

/// Names that often mean a secret (`token`, `key`) and sometimes a word of a vocabulary or a column.
pub(super) fn may_be_secret(name: &str) -> bool {
    name.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|segment| {
        let segment = segment.to_ascii_lowercase();
        matches!(
            segment.as_str(),
            "key" | "token" | "pass" | "pwd" | "jwt" | "cookie" | "sas" | "dsn" | "pat"
        )
    })
}

/// Whether the value of this variable of the launching process is searched for, literally, in all that is stored.
pub(super) fn is_secret_variable(name: &str) -> bool {
    const NOT_SECRET: [&str; 3] = ["PWD", "OLDPWD", "XDG_SESSION_COOKIE"];
    let flat = name.to_ascii_lowercase();
    !NOT_SECRET.contains(&name)
        && !points_to_a_file(&flat.replace('_', ""))
        && (is_secret(name) || may_be_secret(name) || flat.ends_with("token") || flat.ends_with("_auth"))
}

fn points_to_a_file(flat: &str) -> bool {
    ["file", "path", "dir", "home"].iter().any(|end| flat.ends_with(end))
}

/// Variables that say how a training process was set up and carry no secret by their meaning.
const ALLOWED: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "HOME",
    "USER",
    "LOGNAME",
    "HOSTNAME",
    "SHELL",
    "PWD",
    "TERM",
    "TMPDIR",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "RUST_LOG",
    "RUST_BACKTRACE",
    "RAYON_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TOKENIZERS_PARALLELISM",
    "HF_HOME",
    "HF_DATASETS_CACHE",
    "HF_HUB_OFFLINE",
    "HF_HUB_CACHE",
    "WANDB_MODE",
    "WANDB_PROJECT",
    "WANDB_ENTITY",
    "WANDB_DIR",
    "CI",
];

/// Beginnings of such variables.
const ALLOWED_PREFIXES: &[&str] = &[
    "LC_",
    "TRACKWAY_",
    "CUDA_",
    "NVIDIA_",
    "NCCL_",
    "CUBLAS_",
    "CUDNN_",
    "GLOO_",
    "UCX_",
    "OMP_",
    "MKL_",
    "KMP_",
    "GOMP_",
    "OPENBLAS_",
    "VECLIB_",
    "PYTHON",
    "PYTORCH_",
    "TORCH",
    "TF_",
    "XLA_",
    "JAX_",
    "TRITON_",
    "TRANSFORMERS_",
    "ACCELERATE_",
    "DEEPSPEED_",
    "RAY_",
    "SLURM_",
    "SBATCH_",
    "PBS_",
    "LSB_",
    "FI_",
    "ROCR_",
    "HIP_",
    "HSA_",
    "MIOPEN_",
    "RCCL_",
    "MALLOC_",
    "OMPI_",
    "PMIX_",
    "PMI_",
];

/// Whether the variable may be kept in a receipt (its value is still checked by pattern).
pub(super) fn is_allowed(name: &str) -> bool {
    let listed = ALLOWED.contains(&name) || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    listed && (name == "PWD" || !is_secret_variable(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that names of secrets are told from names that only look like them.
    #[test]
    fn secret_names_are_told_from_others() {
        for name in [
            "OPENAI_API_KEY",
            "HF_TOKEN",
            "db.password",
            "--client-secret",
            "AWS_SECRET_ACCESS_KEY",
            "SLURM_JWT",
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
                && !is_allowed("EDITOR")
        );
    }
}
