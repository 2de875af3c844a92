//! Secrets that are recognised by what surrounds them: a name, a header, a URL, a command. A rule has cheap triggers
//! (literal strings, looked for in one pass) and a regex that is compiled and tried only on a line with a trigger.

pub(super) mod assigned;
mod commands;
pub(super) mod ordinary;
mod phrases;
mod places;
pub(super) mod rule;

use std::sync::Arc;

use super::shapes::DATA;
use super::value::{
    any, generated, like_a_pass, like_a_token, like_credentials, present, random_beyond_words, said_in_words,
    unlike_a_count, unlike_a_path, unlike_a_word,
};
use crate::racy::Racy;
use commands::COMMANDS;
use places::PLACES;
use rule::{ReadExtent, Rule};

/// What may be between a name and its value: `=`, `:`, `=>`, with quotes around.
const SEPARATOR: &str = r#"s?(?:[_\-]?[0-9]{1,3})?\\?["']?\]?\s{0,4}(?:=>|:=|==|=|:|\xef\xbc\x9a)\s{0,4}"#;

/// A value: quoted up to the quote, or a run without blanks and brackets; after `b` or within `SecretStr(…)`, too.
const VALUE: &str = r#"(?:[A-Za-z_.]{1,24}\(\s{0,2})?(?:[bruBRU]{0,2}\\"([^"\\\n]{4,4096})|[bruBRU]{0,2}\\'([^'\\\n]{4,4096})|[bruBRU]{0,2}"((?:[^"\\\n]|\\[^\n]){4,4096})|[bruBRU]{0,2}'((?:[^'\\\n]|\\[^\n]){4,4096})|([^\s"'`&;<>{}()\[\]\\|]{4,4096}))"#;

/// The strong names that do, or do not, end in `token`: how many tokens there are is none.
fn strong(tokens: bool) -> impl Iterator<Item = &'static str> {
    DATA.names.strong.iter().map(String::as_str).filter(move |word| word.ends_with("token") == tokens)
}

fn names(tokens: bool) -> String {
    let words: Vec<String> = strong(tokens).map(|word| spelled(word).replace(' ', r"[ _\-]?")).collect();
    format!("(?:{})", words.join("|"))
}

/// A word for a regex over bytes, which knows no letters beyond ASCII.
fn spelled(word: &str) -> String {
    let spell =
        |byte: u8| if byte.is_ascii() { char::from(byte).to_string() } else { format!(r"\x{byte:02x}") };
    word.bytes().map(spell).collect()
}

fn named_triggers(tokens: bool) -> Arc<[String]> {
    let blanks = ["", "_", "-", " "];
    let mut all: Vec<String> =
        strong(tokens).flat_map(|word| blanks.map(|blank| word.replace(' ', blank))).collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// Every rule, the most specific kind first: where two rules match the same bytes the first one names them.
pub(super) static RULES: Racy<Vec<Rule>> = Racy::new(|| {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Arc<[_]>>();
    let (strong, tokens) = ((names(false), named_triggers(false)), (names(true), named_triggers(true)));
    let mut rules: Vec<Rule> = PLACES.iter().chain(COMMANDS).map(Rule::of).collect();
    rules.extend(named(&strong.0, &strong.1, present, unlike_a_word));
    rules.extend(named(&tokens.0, &tokens.1, unlike_a_count, unlike_a_word));
    let prose = format!("(?:{})", DATA.names.prose.join("|"));
    rules.extend(named(&prose, &DATA.names.prose.clone().into(), unlike_a_word, unlike_a_word));
    let parts = format!(r"[a-z0-9][_\-.](?:{})", DATA.names.parts.join("|"));
    let triggers = ["_pw", "-pw", ".pw", "_passwd", "-passwd", "_psk", "-psk", ".psk"];
    rules.extend(named(&parts, &owned(&triggers), unlike_a_path, unlike_a_word));
    let held = r"(?:\bcred|[a-z0-9][_\-.]cred|(?-i:[a-z0-9]C)red)";
    let triggers = ["creds", "cred=", "cred:", "cred\"", "cred'", "cred ", "cred>", "_cred", "-cred"];
    rules.extend(named(held, &owned(&triggers), like_credentials, like_credentials));
    let weak = r"(?:\btoken|\bjwt|[a-z0-9][_\-.](?:token|key|jwt|pat|dsn|sas))";
    let triggers = [
        "token=", "token:", "token\"", "token'", "token =", "token :", "tokens=", "tokens:", "tokens\"",
        "tokens'", "_token", "-token", "_key=", "_key:", "_key =", "_key\"", "_key'", "_key ", "-key=",
        "-key ", "-key\"", "_keys=", "_keys:", "_keys\"", "_keys'", "jwt=", "jwt:", "jwt\"", "jwt'", "_pat=",
        "_pat\"", "_dsn", "_sas",
    ];
    rules.extend(named(weak, &owned(&triggers), random_beyond_words, random_beyond_words));
    rules.extend(options(&strong, &tokens));
    let of_strong: Arc<[String]> = strong.1.iter().chain(&*tokens.1).cloned().collect();
    rules.push(assigned(&longest_first(&of_strong), of_strong, true));
    rules.push(assigned(WEAK, owned(&WEAK_TRIGGERS), false));
    let name = format!(r"[A-Za-z0-9_.\-]{{0,40}}(?:{}|{}|{WEAK})s?[0-9]{{0,2}}", strong.0, tokens.0);
    rules.extend(phrases::rules(&name));
    rules.extend(in_grids());
    rules
});

/// Names whose value is secret where it was generated.
const WEAK: &str = concat!(
    r"(?:\b(?:token|jwt|pat|pass|pwd|pw|stringdata|credential|cred)",
    r"|[a-z0-9][_\-.](?:token|key|jwt|pat|pass|pwd|pw|dsn|sas|cred))",
);
/// These with what assigns.
const WEAK_TRIGGERS: [&str; 70] = [
    "token=", "token:", "token\"", "token'", "token`", "token*", "token =", "token :", "token <", "tokens=",
    "tokens:", "tokens\"", "tokens'", "tokens =", "jwt=", "jwt:", "jwt\"", "jwt'", "jwt =", "pass=", "pass:",
    "pass\"", "pass'", "pass =", "pass :", "pass*", "pwd=", "pwd:", "pwd\"", "pwd'", "pwd =", "pwd :", "pw=",
    "pw:", "pw\"", "pw'", "pw =", "pw :", "pw <", "stringdata", "_key=", "_key:", "_key\"", "_key'",
    "_key =", "_key <", "-key=", "-key:", "-key\"", "_keys=", "_keys:", "_keys\"", "_keys'", "_keys =",
    "_pat=", "_pat:", "_pat\"", "_pat =", "_dsn", "_sas", "credential", "? token", "creds", "_cred",
    "cred =", "pat=", "pat:", "pat\"", "pat'", "pat =",
];

/// Names of options whose value may be that of something else, too.
const OPTIONS: [&str; 10] =
    ["token", "tokens", "key", "keys", "pat", "jwt", "dsn", "sas", "cookie", "bearer"];
/// Those whose value is a password, or the number of passes.
const PASS_OPTIONS: [&str; 3] = ["pass", "keypass", "storepass"];
/// What is between the name of an option and its value.
const BEHIND_OPTION: &str = r#"(?:\s{1,4}|\s{0,2}=\s{0,2}|["'],\s{0,4}["'])"#;
/// The same where the value is in the next line: of a list, or behind the mark of a continued command.
const BELOW_OPTION: &str = r#"(?:["'`]?,?|[ \t]{0,4}\\)[ \t\r]{0,4}\n[ \t]{0,60}(?:-[ \t]{1,4})?"#;
/// The value of an option: between quotes, or up to a blank or a mark of the shell.
const OPTION_VALUE: &str = r#"(?:\$?"([^"\n]{6,4096})"|\$?'([^'\n]{6,4096})'|["']?([^\s"'`;|&<>(){}\[\]\\\-][^\s"'`;|&<>(){}\[\]\\]{5,4095}))"#;

/// Names in a pattern, and what triggers a rule with them.
type NamePattern = (String, Arc<[String]>);

/// The values of options on a command line and in a list of arguments, in the next line too.
fn options(strong: &NamePattern, tokens: &NamePattern) -> Vec<Rule> {
    let option = |names: &str, between: &str, triggers: Arc<[String]>, accept: fn(&[u8]) -> bool| {
        let pattern = format!(
            r"(?i)(?:^|[^A-Za-z0-9_.\-])--?(?:[A-Za-z0-9_.\-]{{0,40}}[_.\-])?{names}{between}{OPTION_VALUE}"
        );
        Rule { triggers, ..Rule::new("secret", &[], pattern, accept) }
    };
    let below = |names: &str, triggers: Arc<[String]>, accept: fn(&[u8]) -> bool| Rule {
        reading: ReadExtent::Lines(2),
        ..option(names, BELOW_OPTION, triggers, accept)
    };
    let (either, pass) = (one_of(&OPTIONS), one_of(&PASS_OPTIONS));
    vec![
        option(&either, BEHIND_OPTION, option_triggers(&OPTIONS), like_a_token),
        below(&either, option_triggers(&OPTIONS), like_a_token),
        option(&pass, BEHIND_OPTION, option_triggers(&PASS_OPTIONS), like_a_pass),
        below(&pass, option_triggers(&PASS_OPTIONS), like_a_pass),
        below(&format!("{}s?", strong.0), Arc::clone(&strong.1), said_in_words),
        below(&format!("{}s?", tokens.0), Arc::clone(&tokens.1), like_a_token),
        // Variables before a command.
        Rule::new(
            "secret",
            &["token=", "jwt=", "_key=", "_pat="],
            r#"(?:^|[\s;"',=:(])(?:[A-Z0-9_]{1,40}_(?:TOKEN|KEY|PAT|JWT)|TOKEN|JWT)=["']?([^\s"';|&$<>(){}]{8,4096})"#,
            like_a_token,
        ),
    ]
}

fn one_of(names: &[&str]) -> String {
    format!("(?:{})", names.join("|"))
}

/// The names of options as a command line or a list has them.
fn option_triggers(names: &[&str]) -> Arc<[String]> {
    let marked = names.iter().flat_map(|name| ["-", "_", "."].map(|mark| format!("{mark}{name}")));
    let ends = ["=", " ", "\t", "\"", "'", "\n", "\r"];
    marked.flat_map(|name| ends.map(|end| format!("{name}{end}"))).collect()
}

/// One of these names, and of two that begin alike the longer one.
fn longest_first(names: &[String]) -> String {
    let mut names: Vec<String> = names.iter().map(|name| spelled(name)).collect();
    names.sort_unstable_by_key(|name| std::cmp::Reverse(name.len()));
    format!("(?:{})", names.join("|"))
}

/// The values in tables with bars, below the names of secrets and of what was generated.
fn in_grids() -> [Rule; 2] {
    const STRONG: [&str; 9] = [
        "password", "passwd", "secret", "api key", "api_key", "apikey", "access key", "access_key",
        "passwort",
    ];
    let bars = |name: &&str| ["| {}", "{} |", "{}|"].map(|place| place.replace("{}", name));
    let of = |names: &[&str], accept| {
        let triggers = names.iter().flat_map(bars).collect();
        Rule { triggers, reading: ReadExtent::Grid, ..Rule::new("secret", &[], "^$", accept) }
    };
    [of(&STRONG, said_in_words), of(&["token", "pass", "pw"], generated)]
}

/// What is assigned to such names.
fn assigned(names: &str, triggers: Arc<[String]>, is_strong: bool) -> Rule {
    let pattern = format!(r"(?i)({names}s?(?:[_\-]?[0-9]{{1,3}})?)(?:[^A-Za-z0-9\-]|$)");
    Rule { triggers, reading: ReadExtent::Assigned { is_strong }, ..Rule::new("secret", &[], pattern, any) }
}

/// Names of one kind, with their values in every notation: `name=value`, a pair in a list, cells of a table, a flag,
/// and YAML with the value below. `accept` tests what is clearly a value, `accept_item` what may be the next item of a
/// list.
fn named(
    names: &str,
    triggers: &Arc<[String]>,
    accept: fn(&[u8]) -> bool,
    accept_item: fn(&[u8]) -> bool,
) -> Vec<Rule> {
    let pair =
        format!(r#"(?i){names}s?\\?["']\s{{0,2}},\s{{0,4}}[bruBRU]{{0,2}}\\?["']([^"'\\\n]{{4,4096}})"#);
    let cell = format!(r"(?i){names}s?\s{{0,60}}(?:\||\xe2\x94[\x82\x83])\s{{0,8}}([^\s|\xe2]{{4,4096}})");
    let flag = format!(
        r#"(?i)--?[A-Za-z0-9_.\-]{{0,40}}{names}s?(?:\s{{1,4}}|["'],\s{{0,4}}["'])(?:"([^"\n]{{4,4096}})|'([^'\n]{{4,4096}})|([^\s"'\-][^\s"']{{3,4095}}))"#
    );
    let element = format!(
        r"(?i)<(?:[A-Za-z0-9_.:\-]{{0,40}}[_.:\-]?){names}s?(?:\s[^<>\n]{{0,200}})?>\s{{0,4}}(?:<!\[CDATA\[)?([^<>\s][^<>\n]{{3,4095}})</"
    );
    let attribute = format!(
        r#"(?i){names}s?\\?["']\s{{1,8}}(?:value|content)\s{{0,2}}=\s{{0,2}}\\?["']([^"'\\\n]{{4,4096}})"#
    );
    let arrow = format!(
        r#"(?i){names}s?["']?[ \t]{{1,8}}(?:-{{1,3}}>|\xe2\x86\x92)[ \t]{{1,8}}["']?([^\s"'(){{}}\[\]]{{4,4096}})"#
    );
    let anchor = format!(
        r#"(?i){names}s?["']?\s{{0,4}}:[ \t]{{1,4}}(?:&[A-Za-z0-9_\-]{{1,40}}|!![a-z]{{1,10}})[ \t]{{1,4}}["']?([^\s"'<>(){{}}\[\],;]{{4,4096}})(?:["'][,}})\]]|["']?(?:\s|$))"#
    );
    let packed = format!(r"(?i){names}s?(?:{PACKED})([\x21-\x7e]{{5}}[\x20-\x7e]{{1,4096}})");
    let rule = |pattern, accept| Rule {
        triggers: Arc::clone(triggers),
        ..Rule::new("secret", &[], pattern, accept)
    };
    let lines = |count, pattern, accept| Rule { reading: ReadExtent::Lines(count), ..rule(pattern, accept) };
    vec![
        rule(format!("(?i){names}{SEPARATOR}{VALUE}"), accept),
        rule(pair, accept_item),
        rule(cell, accept_item),
        rule(flag, accept),
        rule(element, accept),
        rule(attribute, accept),
        rule(arrow, accept_item),
        rule(anchor, accept_item),
        lines(2 + ITEMS, below(names), accept),
        lines(3, opened(names), accept_item),
        Rule { reading: ReadExtent::Bytes(PACKED_BYTES), ..rule(packed, accept_item) },
        Rule {
            reading: ReadExtent::Column,
            triggers: column_triggers(triggers),
            ..rule("^$".into(), accept_item)
        },
    ]
}

/// What is between a name and a text behind it: in a pickle of each protocol (it remembers the name, then comes the
/// length), in MessagePack and in BSON. No more than that: in a program names are beside other texts, too.
const PACKED: &str = concat!(
    r"(?:\x94|q[\x00-\xff]|r[\x00-\xff]{4})?(?:\x8c[\x00-\xff]|X[\x00-\xff]{2}\x00\x00|\x8d[\x00-\xff]{5}\x00{3})",
    r"|(?:q[\x00-\xff]|r[\x00-\xff]{4})[UT][\x00-\xff](?:[\x00-\xff]\x00\x00)?",
    r"|'?\np[0-9]{1,6}\n[a-z0-9]{0,4}[VS]['\x22]?|[\xa0-\xbf]|\xd9[^\x80-\xbf]|\xda[\x00-\x03][\x00-\xff]|\x00[\x04-\xff][\x00-\x03]\x00\x00",
);
/// Behind a name its value begins in so many bytes.
const PACKED_BYTES: usize = 4096;
/// Of a list below a name so many more items are looked for.
const ITEMS: usize = 6;
/// The end of a line, in a notebook that of a string, too, and in a text of several lines that of a part of it.
const LINE_END: &str = r#"(?:\\n)?["']?,?[ \t]{0,2}[+\\]?[ \t\r]{0,4}(?:\n|$)"#;

/// YAML with the value below the name: alone, as a separate text, or as a list.
fn below(names: &str) -> String {
    // A text that is quoted ends with its quote.
    let end = format!(r#"(?:{LINE_END}|["'][,}})\]])"#);
    let item = r#"["']?([^\s"'#:][^\s"':]{3,4095})["']?"#;
    let first = format!(r#"(?i){names}s?["']?\s{{0,4}}:\s{{0,4}}(?:[|>][+\-]?[0-9]?)?{LINE_END}"#);
    let more = format!(r#"(?:[ \t]{{0,40}}["']?[ \t]{{0,40}}-\s{item}{end})?"#).repeat(ITEMS);
    format!(r#"{first}["']?[ \t]{{1,40}}(?:["'][ \t]{{0,40}})?(?:-\s)?{item}{end}{more}"#)
}

/// A value in the line below an opening bracket, three quotes or the mark of a continued line.
fn opened(names: &str) -> String {
    let opening =
        r#"(?:(?:[=:]|:=)\s{0,4}[bruf]?(?:\\?["']){3}|(?:[=:]|:=)\s{0,4}[(\[]|=\s{0,4}["']?\\{1,2})"#;
    format!(
        r#"(?i){names}s?["']?\]?\s{{0,4}}{opening}(?:\\n)?["']?,?[ \t\r]{{0,4}}\n[ \t]{{0,40}}["']?[ \t]{{0,40}}[bruf]?["']?([^\s"'()<\[\]{{}},][^\s"'()\[\]{{}},]{{3,4095}})["']?(?:[^(\[=.]|$)"#
    )
}

/// A name as a cell of a header begins or ends it.
fn column_triggers(names: &[String]) -> Arc<[String]> {
    let plain =
        names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_'));
    plain
        .flat_map(|name| {
            [",", ";", "\t"]
                .into_iter()
                .flat_map(move |mark| [format!("{mark}{name}"), format!("{name}{mark}")])
        })
        .collect()
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
