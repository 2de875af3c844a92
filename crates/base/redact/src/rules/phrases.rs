//! Secrets in phrases: what a declaration, a command, a query, a sentence or a table says about them otherwise than by an assignment.

use super::rule::{ReadExtent, Rule};
use crate::value::{generated, like_a_password_or_key, said_in_words, unlike_a_word};

/// How a phrase is written: what must be in its line, how many lines it takes, its pattern with `NAME` for the name of
/// a secret and `VALUE` for its value, and which values are secret.
type Phrase = (&'static [&'static str], usize, &'static str, fn(&[u8]) -> bool);

/// A value between quotes or alone; as it is used, quotes are around.
const VALUE: &str = r#"([^\s"'`<>|,;(){}\[\]\\]{6,1024})"#;

/// Names and triggers for the pairs of configurations.
const PAIRS: [&str; 12] = [
    "name\"", "name'", "name: ", "key\": \"", "value\"", "value'", "value: ", "name=\"", "-name:", "env:",
    "{name:", "key: ",
];

/// With what a section of a configuration begins that has keys to a service.
const SECTIONS: [&str; 30] = [
    "api:", "api\"", "api'", "api]", "api =", "auth:", "auth\"", "auth'", "auth]", "auth =", "openai:",
    "openai\"", "openai]", "anthropic:", "anthropic\"", "anthropic]", "wandb:", "wandb\"", "wandb]",
    "azure:", "azure\"", "azure]", "cohere:", "cohere\"", "mistral:", "mistral\"", "comet:", "comet\"",
    "neptune:", "neptune\"",
];

const PHRASES: [Phrase; 16] = [
    // `api:` with `key: X` below it or in it.
    (
        &SECTIONS,
        4,
        r#"\b(?:api|auth|openai|anthropic|wandb|azure|cohere|mistral|comet|neptune)["']?\]?\s{0,4}(?:[:=]\s{0,40})?(?:\{\s{0,40})?(?:["']?[a-z_]{1,40}["']?\s{0,2}[:=][^\n{}]{0,80}[\n,]\s{0,40}){0,2}?["']?(?:key|keys|pass|pwd)["']?\s{0,2}[:=]\s{0,4}["']?VALUE["']?(?:\s|[,}]|$)"#,
        like_a_password_or_key,
    ),
    // `{"name": "DB_PASSWORD", "value": "X"}` of Kubernetes, Docker and Terraform, in either order.
    (
        &PAIRS,
        3,
        r#"\b(?:name|key)\\?["']?\s{0,2}[:=]\s{0,4}\\?["']?NAME\\?["']?\s{0,2},?\s{0,40}\\?["']?value\\?["']?\s{0,2}[:=]\s{0,4}\\?["']?VALUE"#,
        said_in_words,
    ),
    (
        &PAIRS,
        3,
        r#"\bvalue\\?["']?\s{0,2}[:=]\s{0,4}\\?["']?VALUE\\?["']?\s{0,2},?\s{0,40}\\?["']?(?:name|key)\\?["']?\s{0,2}[:=]\s{0,4}\\?["']?NAME\b"#,
        said_in_words,
    ),
    // The default of an option of a command.
    (
        &["argument(", "option(", "add_option"],
        6,
        r#"["']--?NAME["'][^()]{0,400}?\bdefault\s{0,2}=\s{0,2}[bruf]?["']([^"'\n]{4,1024})["']"#,
        said_in_words,
    ),
    (
        &["login(", "authenticate(", "set_token("],
        3,
        r#"\b(?:login|authenticate|set_token)\((?:[^()]{0,200}[,=\s])?\s{0,8}f?["']VALUE["']"#,
        generated,
    ),
    (
        &["login "],
        1,
        r#"\b[a-z\-]{2,20}\s{1,2}(?:auth\s{1,2})?login\s{1,2}(?:-{1,2}[a-z\-]{1,30}\s{1,2}){0,3}["']?VALUE"#,
        generated,
    ),
    // SQL
    (
        &["password '", "password \"", "identified "],
        1,
        r#"\b(?:password|identified\s{1,2}(?:with\s{1,2}\S{1,60}\s{1,2})?by(?:\s{1,2}password)?)\s{1,2}\\?["']([^"'\n\\]{4,512})"#,
        unlike_a_word,
    ),
    // Dockerfile, csh, Windows
    (
        &["env ", "arg ", "setx "],
        1,
        r#"\b(?:env|arg|setenv|setx)\s{1,4}NAME\s{1,4}["']?VALUE"#,
        said_in_words,
    ),
    (&["--from-literal"], 1, r#"--from-literal[=\s]["']?[A-Za-z0-9_.\-]{1,128}=["']?VALUE"#, said_in_words),
    (
        &[
            "token is", "token was", "key is", "key was", "secret is", "secret was", "password is",
            "password was", "pin is",
        ],
        1,
        r#"\b(?:token|key|secret|password|passcode|pin)s?\s{1,3}(?:is|was)(?:\s{1,3}now)?[ \t:]{1,3}["'`*]{0,3}VALUE"#,
        generated,
    ),
    (
        &["my token", "my key", "my secret", "my password", "our token"],
        1,
        r#"\b(?:my|our)\s(?:[a-z0-9]{1,20}\s){0,2}(?:token|key|secret|password)[ \t:=]{1,3}["'`*]{0,3}VALUE"#,
        generated,
    ),
    // HTML
    (
        &["</td>", "</th>", "</dt>", "</label>", "</b>", "</strong>"],
        2,
        r#"NAMEs?:?\s{0,4}(?:</[a-z0-9]{1,8}>[\s+\-]{0,40}){1,2}(?:<(?:td|dd|span|code|p)\b[^<>]{0,200}>\s{0,8}){1,2}([^<>\s][^<>\n]{3,1024})<"#,
        unlike_a_word,
    ),
    (
        &["<input"],
        1,
        r#"<input\b[^<>]{0,400}?\bvalue\s?=\s?["']([^"'<>\n]{4,1024})["'][^<>]{0,400}?\btype\s?=\s?["']?password"#,
        unlike_a_word,
    ),
    (
        &["<input"],
        1,
        r#"<input\b[^<>]{0,400}?\btype\s?=\s?["']?password\b[^<>]{0,400}?\bvalue\s?=\s?["']([^"'<>\n]{4,1024})["']"#,
        unlike_a_word,
    ),
    (
        &["<input"],
        1,
        r#"<input\b[^<>]{0,400}?\bname\s?=\s?["']?NAME\b[^<>]{0,400}?\bvalue\s?=\s?["']([^"'<>\n]{4,1024})["']"#,
        unlike_a_word,
    ),
    // JSON Web Keys: the private numbers.
    (
        &["\"kty", "'kty", "kty\\"],
        14,
        r#"\\?["'](?:d|p|q|dp|dq|qi|k)\\?["']\s{0,2}:\s{0,4}\\?["']([A-Za-z0-9_\-]{16,2048})\\?["']"#,
        generated,
    ),
];

/// Of several lines so many bytes each are read.
const LINE_BYTES: usize = 80;

/// The rules of the phrases for these names.
pub(super) fn rules(names: &str) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (triggers, lines, pattern, accept) in PHRASES {
        let pattern = format!("(?i){}", pattern.replace("NAME", names).replace("VALUE", VALUE));
        let readings = match lines {
            1 => vec![ReadExtent::Line],
            _ => vec![ReadExtent::Bytes(lines * LINE_BYTES), ReadExtent::Lines(lines)],
        };
        for reading in readings {
            let mut rule = Rule::new("secret", triggers, pattern.clone(), accept);
            rule.reading = reading;
            rules.push(rule);
        }
    }
    rules
}
