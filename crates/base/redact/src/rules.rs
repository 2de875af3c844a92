//! Secrets that are recognised by what surrounds them: a name, a header, a URL, a command. A rule has cheap triggers
//! (literal strings, looked for in one pass) and a regex that is compiled and tried only on a line with a trigger.

use once_cell::race::OnceBox;
use regex::bytes::{Regex, RegexBuilder};

use super::shapes::DATA;
use super::value::{
    address, any, authorization, encoded_pair, has_pair, present, random, unlike_a_count, unlike_a_path,
    unlike_a_word,
};
use crate::racy::Racy;

/// One way in which a secret shows.
pub(super) struct Rule {
    /// The kind shown in `[redacted:kind]`.
    pub kind: &'static str,
    /// Strings of which one must be in the line, in any case.
    pub triggers: Vec<String>,
    /// How many lines it looks at, from that of the trigger on.
    pub lines: usize,
    /// The first group that took part is the secret; without groups the whole match is.
    pattern: String,
    /// A test of the secret beyond the regex.
    pub accept: fn(&[u8]) -> bool,
    compiled: OnceBox<Regex>,
}

impl Rule {
    fn new(
        kind: &'static str,
        triggers: &[&str],
        pattern: impl Into<String>,
        accept: fn(&[u8]) -> bool,
    ) -> Self {
        Self {
            kind,
            triggers: triggers.iter().map(|trigger| (*trigger).to_owned()).collect(),
            lines: 1,
            pattern: pattern.into(),
            accept,
            compiled: OnceBox::new(),
        }
    }

    pub fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| {
            let built = RegexBuilder::new(&self.pattern).unicode(false).build();
            Box::new(built.expect("every pattern of the table is compiled by a test"))
        })
    }
}

/// What may be between a name and its value: `=`, `:`, `=>`, with quotes around.
const SEPARATOR: &str = r#"s?(?:[_\-]?[0-9]{1,3})?\\?["']?\]?\s{0,4}(?:=>|:=|==|=|:)\s{0,4}"#;

/// A value: quoted up to the quote, or a run without blanks and brackets; after `b` or within `SecretStr(…)`, too.
const VALUE: &str = r#"(?:[A-Za-z_.]{1,24}\(\s{0,2})?(?:[bruBRU]{0,2}\\"([^"\\\n]{4,4096})|[bruBRU]{0,2}\\'([^'\\\n]{4,4096})|[bruBRU]{0,2}"((?:[^"\\\n]|\\[^\n]){4,4096})|[bruBRU]{0,2}'((?:[^'\\\n]|\\[^\n]){4,4096})|([^\s"'`&;<>{}()\[\]\\|]{4,4096}))"#;

/// The strong names that do, or do not, end in `token`: how many tokens there are is none.
fn strong(tokens: bool) -> impl Iterator<Item = &'static str> {
    DATA.names.strong.iter().map(String::as_str).filter(move |word| word.ends_with("token") == tokens)
}

fn names(tokens: bool) -> String {
    let words: Vec<String> = strong(tokens).map(|word| word.replace(' ', r"[ _\-]?")).collect();
    format!("(?:{})", words.join("|"))
}

fn named_triggers(tokens: bool) -> Vec<String> {
    let blanks = ["", "_", "-", " "];
    let mut all: Vec<String> =
        strong(tokens).flat_map(|word| blanks.map(|blank| word.replace(' ', blank))).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Every rule, the most specific kind first: where two rules match the same bytes the first one names them.
pub(super) static RULES: Racy<Vec<Rule>> = Racy::new(|| {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut rules = places();
    rules.extend(commands());
    rules.extend(named(&names(false), &named_triggers(false), present, unlike_a_word));
    rules.extend(named(&names(true), &named_triggers(true), unlike_a_count, unlike_a_word));
    let prose = format!("(?:{})", DATA.names.prose.join("|"));
    rules.extend(named(&prose, &DATA.names.prose, unlike_a_word, unlike_a_word));
    let parts = format!(r"[a-z0-9][_\-.](?:{})", DATA.names.parts.join("|"));
    let triggers = ["_pw", "-pw", ".pw", "_cred", "-cred", ".cred", "passcode", "_passwd", "-passwd"];
    rules.extend(named(&parts, &owned(&triggers), unlike_a_path, unlike_a_word));
    let weak = r"(?:\btoken|\bjwt|[a-z0-9][_\-.](?:token|key|jwt|pat|dsn|sas))";
    let triggers = [
        "token=", "token:", "token\"", "token'", "token =", "token :", "tokens=", "tokens:", "tokens\"",
        "tokens'", "_token", "-token", "_key=", "_key:", "_key =", "_key\"", "_key'", "_key ", "-key=",
        "-key ", "-key\"", "_keys=", "_keys:", "_keys\"", "_keys'", "jwt=", "jwt:", "jwt\"", "jwt'", "_pat=",
        "_pat\"", "_dsn", "_sas",
    ];
    rules.extend(named(weak, &owned(&triggers), random, random));
    rules
});

/// Names of one kind, with their values in every notation: `name=value`, a pair in a list, cells of a table, a flag,
/// and YAML with the value below. `accept` tests what is clearly a value, `accept_item` what may be the next item of a
/// list.
fn named(
    names: &str,
    triggers: &[String],
    accept: fn(&[u8]) -> bool,
    accept_item: fn(&[u8]) -> bool,
) -> Vec<Rule> {
    let pair =
        format!(r#"(?i){names}s?\\?["']\s{{0,2}},\s{{0,4}}[bruBRU]{{0,2}}\\?["']([^"'\\\n]{{4,4096}})"#);
    let cell = format!(r"(?i){names}s?\s{{0,60}}(?:\||\xe2\x94[\x82\x83])\s{{0,8}}([^\s|\xe2]{{4,4096}})");
    let flag = format!(
        r#"(?i)--?[A-Za-z0-9_.\-]{{0,40}}{names}s?(?:\s{{1,4}}|["'],\s{{0,4}}["'])(?:"([^"\n]{{4,4096}})|'([^'\n]{{4,4096}})|([^\s"'\-][^\s"']{{3,4095}}))"#
    );
    let below = format!(
        r#"(?i){names}s?["']?\s{{0,4}}:\s{{0,4}}(?:[|>][+\-]?)?[ \t\r]{{0,4}}\n[ \t]{{1,40}}(?:-\s)?["']?([^\s"'#:]{{4,4096}})["']?[ \t\r]{{0,4}}(?:\n|$)"#
    );
    let rule =
        |pattern, accept| Rule { triggers: triggers.to_vec(), ..Rule::new("secret", &[], pattern, accept) };
    vec![
        rule(format!("(?i){names}{SEPARATOR}{VALUE}"), accept),
        rule(pair, accept_item),
        rule(cell, accept_item),
        rule(flag, accept),
        Rule { lines: 2, ..rule(below, accept) },
    ]
}

/// Headers, URLs and signatures.
fn places() -> Vec<Rule> {
    // A user does not begin with a bracket: what was redacted before (`[redacted:url-password]`) is left as it is.
    let database = r#"(?i)\b(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|mssql|clickhouse)(?:\+[a-z0-9_]{1,20})?://(?:[^\s:/@"'<>\[][^\s:/@"'<>]{0,255})?:([^\s"'<>]{1,512})@"#;
    vec![
        Rule::new(
            "wandb-key",
            &["wandb login", "wandb.login", "wandb: paste", "api key", "api_key", "api-key", "apikey"],
            r"(?i)(?:wandb[ .]login|api[ _\-]?key)[^\n]{0,60}?\b([0-9a-f]{40})\b",
            any,
        ),
        Rule::new(
            "signature",
            &["sig=", "x-amz-signature", "x-amz-security-token", "x-goog-signature"],
            r"(?i)(?:[?&;]sig|x-amz-signature|x-amz-security-token|x-goog-signature)=([A-Za-z0-9%+/=_\-]{20,4096})",
            any,
        ),
        Rule::new(
            "authorization",
            &["authorization", "bearer ", "basic "],
            r#"(?i)\b(?:proxy-)?authorization\\?["']?\s{0,4}[=:]\s{0,4}[bu]?\\?["']?(?:(?:bearer|basic|token|digest|negotiate)\s{1,4})?([^\s"'\\,]{6,4096})|\b(?:bearer|basic)\s{1,4}([A-Za-z0-9._~+/\-]{16,4096}=*)"#,
            authorization,
        ),
        Rule::new(
            "cookie",
            &["cookie"],
            r#"(?i)\bcookie\\?["']?\s{0,4}[=:]\s{0,4}[bu]?\\?["']?([^\n"'\\]{8,4096})"#,
            has_pair,
        ),
        Rule::new("url-password", &["://"], database, present),
        Rule::new(
            "url-password",
            &["://"],
            r#"\b[A-Za-z][A-Za-z0-9+.\-]{1,20}://(?:[^\s:/?#@"'<>\[][^\s:/?#@"'<>]{0,255})?:([^\s/?#"'<>]{1,512})@"#,
            present,
        ),
        Rule::new(
            "url-password",
            &["://"],
            r#"\b[A-Za-z][A-Za-z0-9+.\-]{1,20}://([^\s:/?#@"'<>]{16,512})@"#,
            random,
        ),
        Rule::new(
            "registry-login",
            &["auth\"", "auth'", "auth\\", "_auth", "auth:", "auth="],
            r#"(?i)(?:\b|_)auth\\?["']?\s{0,4}[:=]\s{0,4}[bu]?\\?["']?([A-Za-z0-9+/_\-]{8,4096}={0,2})"#,
            encoded_pair,
        ),
        Rule::new(
            "webhook",
            &["webhook"],
            r#"(?i)webhook(?:[ _\-]?(?:url|uri|address))?\\?["']?\]?\s{0,4}(?:=>|:=|==|=|:|,|\s)\s{0,4}[bruf]?\\?["']?(https?://[^\s"'<>\\]{8,4096})"#,
            address,
        ),
        // `kaggle.json`
        Rule::new(
            "kaggle-key",
            &["username"],
            r#"(?i)\busername\\?["']?\s{0,4}[:=]\s{0,4}\\?["'][^"'\n]{1,64}["']\s{0,4},\s{0,4}\\?["']key\\?["']\s{0,4}:\s{0,4}\\?["']([0-9a-f]{32})\b"#,
            any,
        ),
        Rule::new("secret", &["pwd"], r#"(?i);\s?pwd\s?=\s?([^/\s;"'][^\s;"']{3,512})"#, present),
    ]
}

/// Commands that take a secret without a name.
fn commands() -> Vec<Rule> {
    vec![
        Rule::new(
            "secret",
            &["curl", "wget"],
            r#"(?i)\b(?:curl|wget)\b[^\n]{0,400}?\s(?:-u|--user|--proxy-user)[\s=]{0,2}["']?[^\s:"'\-]{1,128}:([^\s"']{1,256})"#,
            present,
        ),
        Rule::new(
            "secret",
            &["mysql", "mariadb"],
            r#"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^\n]{0,400}?\s-p["']?([^\s"']{3,256})"#,
            present,
        ),
        Rule::new(
            "secret",
            &["sshpass", "docker login", "podman login", "registry login"],
            r#"\b(?:sshpass|(?:docker|podman|registry)\s+login)\b[^\n]{0,400}?\s-p\s{0,2}["']?([^\s"']{3,256})"#,
            present,
        ),
        Rule::new(
            "secret",
            &["redis-cli"],
            r#"\bredis-cli\b[^\n]{0,400}?\s-a\s{1,2}["']?([^\s"']{3,256})"#,
            present,
        ),
        Rule::new(
            "secret",
            &["password"],
            r#"(?i)\b(?:login|account)\s{1,4}\S{1,128}[\s"',]{1,8}password\s{1,4}([^\s"']{3,256})|^[+\-]?\s{0,8}password[ \t]{1,4}([^\s"']{3,256})\s{0,4}$"#,
            present,
        ),
        // Behind what a logger puts before each line.
        Rule::new(
            "secret",
            &["password "],
            r#"(?i)\bpassword[ \t]{1,4}([^\s"'?!,;:()]{3,256})\s{0,4}$"#,
            unlike_a_word,
        ),
        Rule {
            lines: 2,
            ..Rule::new(
                "secret",
                &["login "],
                r#"(?i)\blogin[ \t]{1,4}\S{1,128}[ \t\r]{0,4}\n[^\n]{0,200}?\bpassword[ \t]{1,4}([^\s"']{3,256})"#,
                present,
            )
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that every pattern of the table compiles, so that the lazy compilation cannot fail in a shim.
    #[test]
    fn every_pattern_compiles() {
        for rule in RULES.iter() {
            assert!(!rule.regex().as_str().is_empty(), "{}", rule.kind);
            assert!(!rule.triggers.is_empty(), "{} would never be tried", rule.kind);
        }
    }
}
