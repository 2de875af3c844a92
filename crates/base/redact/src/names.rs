//! Which names of variables, flags and settings mean a secret, and which variables of the environment may be kept.

use super::shapes::DATA;
use crate::racy::Racy;

/// What the name of a setting, an option or a variable says about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// A secret, whatever it looks like: `password`, `api_key`.
    Secret,
    /// Credentials, or which ones, or where they are: `creds`.
    Credentials,
    /// A password, or the number of passes: `pass`.
    Pass,
    /// A secret, or an entry of a vocabulary, a column, a pattern: `token`, `key`, `pat`.
    Either,
    /// Something about a secret or a key: `password_length`, `use_auth_token`, `key_type`.
    About,
    /// Nothing of the kind.
    Nothing,
}

/// What a name says, by its words in any case.
pub(super) fn says(name: &str) -> Says {
    let flat = LOOKALIKES.iter().fold(flat(name), |flat, word| flat.replace(word, ""));
    let parts: Vec<String> = parts(name).collect();
    let last = parts.last().map_or("", String::as_str);
    let numbered = last.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let has = |words: &[String]| words.iter().any(|word| is_within(word, &flat));
    let is_last = |words: &[String]| words.iter().any(|word| word == last);
    let is_strong = has(&STRONG) || parts.len() > 1 && is_last(&DATA.names.parts);
    let is_held = has(&DATA.names.prose) || is_last(&DATA.names.held) || name.ends_with("Creds");
    let is_weak = DATA.names.weak.iter().any(|word| word == numbered);
    if !is_strong && !is_held && !is_weak && !may_be_secret(name) {
        Says::Nothing
    } else if points_to_a_file(&flat) || is_about(&parts) {
        Says::About
    } else if is_strong {
        Says::Secret
    } else if is_held {
        Says::Credentials
    } else if numbered == "pass" {
        Says::Pass
    } else if is_weak {
        Says::Either
    } else {
        Says::About
    }
}

/// Whether a word is within a name: at each place it is compared, since to prepare a search takes longer than a name is.
fn is_within(word: &str, name: &str) -> bool {
    name.as_bytes().windows(word.len().max(1)).any(|part| part == word.as_bytes())
}

/// Names whose value is secret: a password, an API key, credentials.
pub(super) fn is_secret(name: &str) -> bool {
    matches!(says(name), Says::Secret | Says::Credentials)
}

/// Words that have the letters of a secret's name.
const LOOKALIKES: [&str; 4] = ["secretar", "secretion", "secretor", "passwordless"];
/// Before the name of a secret: whether, how many, and which pass.
const ABOUT_FIRST: [&str; 30] = [
    "has", "is", "use", "uses", "num", "n", "count", "min", "max", "total", "no", "require", "requires",
    "show", "hide", "without", "allow", "enable", "enabled", "disable", "disabled", "skip", "check",
    "validate", "forward", "backward", "first", "second", "single", "multi",
];
/// Behind the name of a secret: what of it a value is.
const ABOUT_LAST: [&str; 52] = [
    "name", "names", "type", "kind", "length", "len", "size", "count", "policy", "strength", "field",
    "fields", "column", "columns", "col", "env", "var", "variable", "header", "prefix", "manager",
    "provider", "backend", "hint", "prompt", "required", "enabled", "disabled", "expiry", "ttl", "age",
    "days", "rotation", "version", "alg", "algorithm", "bits", "dim", "stdin", "regex", "pattern", "score",
    "accuracy", "recall", "precision", "f1", "loss", "rate", "auc", "error", "problem", "rounds",
];

fn is_about(parts: &[String]) -> bool {
    let [first, .., last] = parts else { return false };
    ABOUT_FIRST.contains(&first.as_str()) || ABOUT_LAST.contains(&last.as_str())
}

/// Whether a column of this name holds secrets, whatever they look like: a secret's name ends it, and no word for a
/// measure, a count or a question is in it.
pub(super) fn is_secret_column(name: &str) -> bool {
    const MEASURES: [&str; 14] = [
        "has", "is", "use", "uses", "num", "n", "count", "length", "len", "strength", "score", "age",
        "reset", "type",
    ];
    let flat = flat(name);
    let flat = flat.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let flat = ["hash", "value", "text", "s"].iter().find_map(|end| flat.strip_suffix(end)).unwrap_or(flat);
    let words = STRONG.iter().chain(&DATA.names.prose);
    let ends = words.map(|word| word.trim_end_matches('s')).any(|word| flat.ends_with(word));
    let mut last_words = DATA.names.parts.iter().chain(&DATA.names.held);
    let last = parts(name).last().is_some_and(|part| last_words.any(|word| *word == part));
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
    const PLURALS: [&str; 5] = ["tokens", "keys", "passwords", "secrets", "credentials"];
    let plural = parts(name).last().is_some_and(|part| PLURALS.contains(&part.as_str()));
    plural && value.iter().all(u8::is_ascii_digit)
}

/// The strong words without blanks.
static STRONG: Racy<Vec<String>> =
    Racy::new(|| DATA.names.strong.iter().map(|word| word.replace(' ', "")).collect());

fn flat(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>().to_lowercase()
}

fn parts(name: &str) -> impl Iterator<Item = String> {
    name.split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .map(str::to_ascii_lowercase)
}

fn points_to_a_file(flat: &str) -> bool {
    ["file", "path", "dir", "home", "csv", "parquet"].iter().any(|end| flat.ends_with(end))
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

    /// Proves what names say: which of them are a secret's, which may be, which are about one, and that words with the
    /// same letters are none of them.
    #[test]
    fn names_say_what_their_values_are() {
        for (says_of, names) in [
            (
                Says::Secret,
                &["password", "db_passcode", "userPasscode", "passcodes", "api-key", "DB_PW", "hfToken"][..],
            ),
            (Says::Credentials, &["creds", "cred", "gcp_creds", "dbCreds", "X-Creds", "credentials"]),
            (Says::Pass, &["pass", "keystore-pass", "pass2"]),
            (Says::Either, &["token", "key", "pat", "tokens", "sort_key", "pad_token", "key2"]),
            (
                Says::About,
                &[
                    "password_length", "use_auth_token", "num_api_keys", "api_key_env", "secret_name",
                    "pass_k", "key_padding_mask", "token_type_ids", "password_file", "passcode_length",
                    "jwt_alg", "forward-pass", "secret_santa.csv",
                ],
            ),
            (
                Says::Nothing,
                &["lr", "monkey", "credits", "sacred_dir", "secretary_problem", "passes", "creds_path"],
            ),
        ] {
            for name in names {
                assert_eq!(says(name), says_of, "{name}");
            }
        }
    }

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
