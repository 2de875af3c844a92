//! What a secret looks like. A rule has cheap triggers (literal words, looked for in one pass) and a regex that is
//! compiled and tried only on a line where a trigger stood.

use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

/// One shape of secret.
pub(super) struct Rule {
    /// The word shown in `[redacted:kind]`.
    pub kind: &'static str,
    /// Words of which one must stand in the line, in any case.
    pub triggers: &'static [&'static str],
    /// The first group that took part is the secret; without groups the whole match is.
    pattern: &'static str,
    /// What the regex cannot say about the secret.
    pub accept: fn(&[u8]) -> bool,
    compiled: OnceLock<Regex>,
}

impl Rule {
    const fn new(
        kind: &'static str,
        triggers: &'static [&'static str],
        pattern: &'static str,
        accept: fn(&[u8]) -> bool,
    ) -> Self {
        Self { kind, triggers, pattern, accept, compiled: OnceLock::new() }
    }

    pub fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| {
            RegexBuilder::new(self.pattern)
                .unicode(false)
                .build()
                .expect("every pattern of the table is compiled by a test")
        })
    }
}

fn any(_: &[u8]) -> bool {
    true
}

/// Letters and digits mixed: what a generated key has and a word or a number has not.
pub(super) fn mixed(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

/// Mixed and at least 16 bytes: for names such as `token`, which are not always secret.
pub(super) fn random(value: &[u8]) -> bool {
    value.len() >= 16 && mixed(value)
}

/// Not one of the words that stand for "no value".
pub(super) fn present(value: &[u8]) -> bool {
    const ABSENT: [&[u8]; 7] = [b"none", b"null", b"true", b"false", b"nil", b"undefined", b"redacted"];
    let stars = value.iter().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X'));
    !stars && !ABSENT.iter().any(|absent| value.eq_ignore_ascii_case(absent))
}

/// Upper case, lower case and a digit, or padding: base64 rather than a word.
fn base64(value: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    value.ends_with(b"=")
        || (has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase))
}

/// What may stand between a name and its value: `=`, `:`, `=>`, with quotes around.
macro_rules! separator {
    () => {
        r#"\\?["']?\s{0,4}(?:=>|:=|=|:)\s{0,4}"#
    };
}

/// A value: quoted up to the quote, or a run without blanks and brackets.
macro_rules! value {
    () => {
        r#"(?:\\?"([^"\\\n]{4,4096})|\\?'([^'\\\n]{4,4096})|([^\s"'`&;<>{}()\[\]\\|]{4,4096}))"#
    };
}

/// Names whose value is secret whatever it looks like.
macro_rules! names {
    () => {
        concat!(
            r"(?:password|passwd|passphrase|[_\-]pwd|secret|credentials?",
            r"|(?:api|access|private|account|storage|signing|encryption|subscription|secret|secret[_\-]?access)[ _\-]?key",
            r"|(?:auth|access|refresh|bearer|session|security|api|hub|personal[_\-]?access|hf|github|gitlab|slack)[ _\-]?token)"
        )
    };
}

/// Every rule, the most telling kind first: where two rules match the same bytes the first one names them.
pub(super) static RULES: [Rule; 28] = [
    Rule::new("aws-key", &["akia", "asia", "abia", "acca"], r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", any),
    Rule::new(
        "github-token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        r"\bgh[pousr]_[A-Za-z0-9]{30,255}",
        any,
    ),
    Rule::new("github-token", &["github_pat_"], r"\bgithub_pat_[A-Za-z0-9_]{22,255}", any),
    Rule::new(
        "gitlab-token",
        &["glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "gloas-"],
        r"\b(?:glpat|glptt|gldt|glrt|glcbt|gloas)-[A-Za-z0-9_\-]{20,300}",
        any,
    ),
    Rule::new("huggingface-token", &["hf_", "api_org_"], r"\b(?:hf_|api_org_)[A-Za-z0-9]{30,100}\b", any),
    Rule::new("anthropic-key", &["sk-ant-"], r"\bsk-ant-[A-Za-z0-9_\-]{20,300}", any),
    Rule::new("openai-key", &["sk-"], r"\bsk-[A-Za-z0-9_\-]{20,300}", mixed),
    Rule::new(
        "slack-token",
        &["xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"],
        r"\b(?:xox[abeoprs][\-.]|xapp-)[A-Za-z0-9\-.]{10,400}",
        any,
    ),
    Rule::new(
        "slack-webhook",
        &["hooks.slack.com/"],
        r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9_/\-]{20,200})",
        any,
    ),
    Rule::new("google-key", &["aiza"], r"\b(AIza[0-9A-Za-z_\-]{35})(?:[^0-9A-Za-z_\-]|$)", any),
    Rule::new("google-token", &["ya29.", "gocspx-"], r"\b(?:ya29\.|GOCSPX-)[0-9A-Za-z_\-.]{20,2048}", any),
    Rule::new(
        "wandb-key",
        &[
            "wandb_v1_",
            "wandb login",
            "wandb.login",
            "wandb: paste",
            "api key",
            "api_key",
            "api-key",
            "apikey",
        ],
        r"(?i)(?:wandb[ .]login|api[ _\-]?key)[^\n]{0,60}?\b([0-9a-f]{40})\b|\b(wandb_v1_[A-Za-z0-9_]{20,200})",
        any,
    ),
    Rule::new(
        "jwt",
        &["eyj"],
        r"\beyJ[A-Za-z0-9_\-]{8,4096}\.eyJ[A-Za-z0-9_\-]{8,8192}(?:\.[A-Za-z0-9_\-]{0,4096})?",
        any,
    ),
    Rule::new("npm-token", &["npm_"], r"\bnpm_[A-Za-z0-9]{36}\b", any),
    Rule::new("pypi-token", &["pypi-age"], r"\bpypi-AgE[A-Za-z0-9_\-]{20,1000}", any),
    Rule::new("databricks-token", &["dapi"], r"\bdapi[0-9a-f]{32}(?:-[0-9]+)?\b", any),
    Rule::new("nvidia-key", &["nvapi-"], r"\bnvapi-[A-Za-z0-9_\-]{20,200}", any),
    Rule::new(
        "stripe-key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        r"\b[sr]k_(?:live|test)_[0-9A-Za-z]{16,200}",
        any,
    ),
    Rule::new("replicate-token", &["r8_"], r"\br8_[A-Za-z0-9]{37}\b", any),
    Rule::new("groq-key", &["gsk_"], r"\bgsk_[A-Za-z0-9]{40,80}\b", any),
    Rule::new("sendgrid-key", &["sg."], r"\bSG\.[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,128}", any),
    Rule::new(
        "signature",
        &["sig=", "x-amz-signature", "x-amz-security-token", "x-goog-signature"],
        r"(?i)(?:[?&;]sig|x-amz-signature|x-amz-security-token|x-goog-signature)=([A-Za-z0-9%+/=_\-]{20,4096})",
        any,
    ),
    Rule::new(
        "authorization",
        &["authorization", "bearer ", "basic "],
        r#"(?i)\b(?:proxy-)?authorization\\?["']?\s{0,4}[=:]\s{0,4}\\?["']?(?:(?:bearer|basic|token|digest|negotiate)\s{1,4})?([^\s"'\\,]{6,4096})|\b(?:bearer|basic)\s{1,4}([A-Za-z0-9._~+/\-]{16,4096}=*)"#,
        authorization,
    ),
    Rule::new(
        "url-password",
        &["://"],
        r#"\b[A-Za-z][A-Za-z0-9+.\-]{1,20}://[^\s:/?#@"'<>]{0,256}:([^\s/?#"'<>]{1,512})@"#,
        present,
    ),
    Rule::new("secret", &["pwd"], r#"(?i);\s?pwd\s?=\s?([^/\s;"'][^\s;"']{3,512})"#, present),
    Rule::new("secret", NAMED_TRIGGERS, concat!("(?i)", names!(), separator!(), value!()), present),
    Rule::new(
        "secret",
        NAMED_TRIGGERS,
        concat!(
            "(?i)--?[A-Za-z0-9_.\\-]{0,40}",
            names!(),
            r#"(?:\s{1,4}|["'],\s{0,4}["'])([^\s"'\-][^\s"']{3,4095})"#
        ),
        present,
    ),
    Rule::new(
        "secret",
        &[
            "token=", "token:", "token\"", "token'", "token =", "token :", "_key=", "_key:", "_key =",
            "_key\"", "_key'", "-key=",
        ],
        concat!(r"(?i)(?:\btoken|[a-z0-9][_\-](?:token|key))", separator!(), value!()),
        random,
    ),
];

/// A header with a name is always secret; a bare `bearer` or `basic` may be prose.
fn authorization(value: &[u8]) -> bool {
    let scheme =
        ["bearer", "digest", "negotiate"].iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    !scheme && (value.len() < 16 || base64(value) || mixed(value))
}

const NAMED_TRIGGERS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "_pwd",
    "-pwd",
    "secret",
    "credential",
    "apikey",
    "api_key",
    "api-key",
    "api key",
    "accesskey",
    "access_key",
    "access-key",
    "access key",
    "privatekey",
    "private_key",
    "private-key",
    "private key",
    "accountkey",
    "account_key",
    "account-key",
    "account key",
    "storagekey",
    "storage_key",
    "storage-key",
    "storage key",
    "signingkey",
    "signing_key",
    "signing-key",
    "signing key",
    "encryptionkey",
    "encryption_key",
    "encryption-key",
    "encryption key",
    "subscriptionkey",
    "subscription_key",
    "subscription-key",
    "subscription key",
    "authtoken",
    "auth_token",
    "auth-token",
    "auth token",
    "accesstoken",
    "access_token",
    "access-token",
    "access token",
    "refreshtoken",
    "refresh_token",
    "refresh-token",
    "refresh token",
    "bearertoken",
    "bearer_token",
    "bearer-token",
    "bearer token",
    "sessiontoken",
    "session_token",
    "session-token",
    "session token",
    "securitytoken",
    "security_token",
    "security-token",
    "security token",
    "apitoken",
    "api_token",
    "api-token",
    "api token",
    "hubtoken",
    "hub_token",
    "hub-token",
    "hub token",
    "hftoken",
    "hf_token",
    "hf-token",
    "hf token",
    "githubtoken",
    "github_token",
    "github-token",
    "github token",
    "gitlabtoken",
    "gitlab_token",
    "gitlab-token",
    "gitlab token",
    "slacktoken",
    "slack_token",
    "slack-token",
    "slack token",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that every pattern of the table compiles, so that the lazy compilation cannot fail in a shim.
    #[test]
    fn every_pattern_compiles() {
        for rule in &RULES {
            assert!(!rule.regex().as_str().is_empty(), "{}", rule.kind);
            assert!(!rule.triggers.is_empty(), "{} would never be tried", rule.kind);
        }
    }
}
