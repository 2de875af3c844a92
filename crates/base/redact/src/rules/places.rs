//! Secrets in headers, URLs and signatures, and in lines of configurations.

use super::rule::{ReadExtent, Row, row};
use crate::value::{
    address, any, authorization, encoded_text_pair, has_pair, like_a_password, of_network, present, random,
    random_case, registry_login, said_in_words,
};

/// A user does not begin with a bracket: what was redacted before (`[redacted:url-password]`) is left as it is.
const DATABASE: &str = r#"(?i)\b(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|mssql|clickhouse)(?:\+[a-z0-9_]{1,20})?://(?:[^\s:/@"'<>\[][^\s:/@"'<>]{0,255})?:([^\s"'<>]{1,512})@"#;

pub(super) const PLACES: &[Row] = &[
    row(
        "wandb-key",
        &["wandb login", "wandb.login", "wandb: paste", "api key", "api_key", "api-key", "apikey"],
        r"(?i)(?:wandb[ .]login|api[ _\-]?key)[^\n]{0,60}?\b([0-9a-f]{40})\b",
        any,
    ),
    row(
        "signature",
        &["sig=", "signature=", "x-amz-security-token"],
        r"(?i)(?:[?&;]sig|[?&;]signature|(?:x-(?:amz|goog|oss|tos|obs|cos)|q|cloudfront)-signature|x-amz-security-token)=([A-Za-z0-9%+/=_~\-]{20,4096})|\bsignedheaders=[^\s,]{1,400},\s{0,2}signature=([0-9a-f]{64})",
        any,
    ),
    row(
        "authorization",
        &["authorization", "bearer ", "basic ", "geniekey ", "ssws "],
        r#"(?i)\b(?:proxy-)?authorization\\?["']?\s{0,4}[=:]\s{0,4}[bu]?\\?["']?(?:(?:bearer|basic|token|digest|negotiate|geniekey|api-?key|key|ssws|splunk|bot|hmac|aws|sharedkey|ntlm|oauth|hawk)\s{1,4})?([^\s"'\\,]{6,4096})|\b(?:bearer|basic|geniekey|ssws)\s{1,4}([A-Za-z0-9._~+/\-]{16,4096}=*)"#,
        authorization,
    ),
    // Behind any other scheme.
    row(
        "authorization",
        &["authorization"],
        r#"(?i)\bauthorization\\?["']?\s{0,4}[=:]\s{0,4}[bu]?\\?["']?[A-Za-z][A-Za-z0-9\-]{1,24}\s{1,4}([A-Za-z0-9._~+/=\-]{16,4096})"#,
        random,
    ),
    row(
        "cookie",
        &["cookie"],
        r#"(?i)\bcookie\\?["']?\s{0,4}[=:]\s{0,4}[bu]?\\?["']?([^\n"'\\]{8,4096})"#,
        has_pair,
    ),
    row("url-password", &["://"], DATABASE, present),
    row(
        "url-password",
        &["://"],
        r#"\b[A-Za-z][A-Za-z0-9+.\-]{1,20}://(?:[^\s:/?#@"'<>\[][^\s:/?#@"'<>]{0,255})?:([^\s/?#"'<>]{1,512})@"#,
        present,
    ),
    row("url-password", &["://"], r#"\b[A-Za-z][A-Za-z0-9+.\-]{1,20}://([^\s:/?#@"'<>]{16,512})@"#, random),
    row(
        "registry-login",
        &["auth\"", "auth'", "auth\\", "_auth", "auth:", "auth="],
        r#"(?i)(?:\b|_)auth\\?["']?\s{0,4}[:=]\s{0,4}[bu]?\\?["']?([A-Za-z0-9+/_\-]{8,4096}={0,2})"#,
        registry_login,
    ),
    row(
        "authorization",
        &["basic "],
        r"(?i)\bbasic\s{1,4}([A-Za-z0-9+/_\-]{8,4096}={0,2})",
        encoded_text_pair,
    ),
    row("url-key", &["?key=", "&key="], r#"(?i)[?&]key=([^\s"'<>&#\\]{16,512})"#, random),
    row(
        "aws-key",
        &["akia", "asia"],
        r#"\bA(?:KI|SI)A[A-Z0-9]{16}["']?[\s,;:|/]{1,8}["']?([A-Za-z0-9+/]{40})(?:[^A-Za-z0-9+/=]|$)"#,
        random_case,
    ),
    // `.pgpass`: host, port, database, user, password.
    row(
        "secret",
        &[":5432:", ":5433:", ":6432:", ":6543:", ":*:"],
        r#"(?m)(?:^|[\s"'+\-#;=(])[A-Za-z0-9.*_\-]{1,253}:(?:[0-9]{2,5}|\*):[^\s:"'/]{1,64}:[^\s:"'/]{1,64}:([^\s"':]{4,256})\s{0,4}(?:$|["'\\,}])"#,
        present,
    ),
    row(
        "password-hash",
        &["$apr1$", "$1$", "$5$", "$6$", "$y$", "$2a$", "$2b$", "$2y$", "$argon2"],
        r"\$(?:apr1|[156y]|2[aby]|argon2[id]{1,2})\$(?:[a-z0-9=,]{1,60}\$){0,3}[./A-Za-z0-9]{0,64}\$?[./A-Za-z0-9+]{20,100}",
        any,
    ),
    // The words with which a purse of coins is restored.
    row(
        "secret",
        &["mnemonic", "seed phrase", "seed_phrase", "recovery phrase", "recovery_phrase"],
        r#"(?i)(?:mnemonic|(?:seed|recovery)[ _]phrase)[a-z_ ]{0,20}\\?["']?\s{0,4}(?:[=:]|is)\s{0,4}\\?["']?((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})"#,
        any,
    ),
    row(
        "webhook",
        &["webhook"],
        r#"(?i)webhook(?:[ _\-]?(?:url|uri|address))?\\?["']?\]?\s{0,4}(?:=>|:=|==|=|:|,|\s)\s{0,4}[bruf]?\\?["']?(https?://[^\s"'<>\\]{8,4096})"#,
        address,
    ),
    // `kaggle.json`
    row(
        "kaggle-key",
        &["username"],
        r#"(?i)\busername\\?["']?\s{0,4}[:=]\s{0,4}\\?["'][^"'\n]{1,64}["']\s{0,4},\s{0,4}\\?["']key\\?["']\s{0,4}:\s{0,4}\\?["']([0-9a-f]{32})\b"#,
        any,
    ),
    // `requests.get(url, auth=("user", "password"))`
    row(
        "secret",
        &["auth=(", "auth = (", "basicauth(", "basic_auth(", "digestauth("],
        r#"(?i)auth\\?["']?\s{0,2}[=:]?\s{0,2}\(\s{0,2}[bruf]?\\?["'][^"'\n]{0,128}["']\s{0,2},\s{0,2}[bruf]?\\?["']([^"'\\\n]{3,256})"#,
        present,
    ),
    row(
        "secret",
        &["pass =", "pass="],
        r#"(?i)(?:^|[\s"'+\-])pass\s{0,4}=\s{0,4}["']?([^\s"']{16,4096})"#,
        random,
    ),
    // A line or a pair of a configuration.
    row(
        "secret",
        &[
            "pass =", "pass=", "pass:", "pass :", "pass\"", "pass'", "pwd =", "pwd=", "pwd:", "pwd :",
            "pwd\"", "pwd'",
        ],
        r#"(?i)(?:^[ \t+\-]{0,80}|[{,;]\s{0,2})["']?(?:pass|pwd)["']?\s{0,4}[=:]\s{0,4}(?:["']([^"'\\\n]{8,256})["']|([^\s"',;(){}\[\]]{8,256})[,;]?\s{0,4}(?:$|[}#]))"#,
        like_a_password,
    ),
    row(
        "secret",
        &["psk=", "psk =", "psk:", "psk\"", "psk'"],
        r#"(?i)(?:^|[\s"'+\-{,;])psk["']?\s{0,4}[=:]\s{0,4}(?:["']([^"'\\\n]{8,64})["']|([^\s"',;(){}\[\]]{8,64}))"#,
        of_network,
    ),
    row(
        "secret",
        &["pw=", "auth=", "pass="],
        r#"(?:^|[\s;"'+\-])(?:PW|AUTH|PASS)=["']?([^\s"';$]{8,256})"#,
        said_in_words,
    ),
    Row {
        reading: ReadExtent::Lines(8),
        ..row(
            "secret",
            &["variable \"", "variable \\\""],
            r#"(?i)variable\s{1,4}\\?"[^"\n]{0,60}(?:password|passwd|passphrase|secret|token|api_?key|private_key|credential)[^"\n]{0,40}"\s{0,4}\{[^}]{0,600}?\bdefault\s{0,4}=\s{0,4}\\?"([^"\\\n]{4,512})"#,
            present,
        )
    },
    row("secret", &["pwd"], r#"(?i);\s?pwd\s?=\s?([^/\s;"'][^\s;"']{3,512})"#, present),
];
