//! Commands and sentences that have a secret without a name that is assigned.

use super::rule::{ReadExtent, Row, row};
use crate::value::{present, random_case, said_in_words, unlike_a_word};

pub(super) const COMMANDS: &[Row] = &[
    row(
        "secret",
        &["curl", "wget"],
        r#"(?i)\b(?:curl|wget)\b[^\n]{0,400}?\s(?:-u|--user|--proxy-user)[\s=]{0,2}["']?[^\s:"'\-]{1,128}:([^\s"']{1,256})"#,
        present,
    ),
    row(
        "secret",
        &["mysql", "mariadb"],
        r#"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^\n]{0,400}?\s-p["']?([^\s"']{3,256})"#,
        present,
    ),
    row(
        "secret",
        &["sshpass", "docker login", "podman login", "registry login"],
        r#"\b(?:sshpass|(?:docker|podman|registry)\s+login)\b[^\n]{0,400}?\s-p\s{0,2}["']?([^\s"']{3,256})"#,
        present,
    ),
    row(
        "secret",
        &["unzip", "zip -", "sqlcmd", "bcp ", "tsql "],
        r#"\b(?:unzip|zip|sqlcmd|bcp|tsql)\b[^\n]{0,400}?[\s,]["']?-P["',\s]{0,6}([^\s"',]{3,256})"#,
        present,
    ),
    row(
        "secret",
        &["7z ", "7za ", "7zz ", "7zr ", "rar a ", "rar x ", "rar e "],
        r#"\b(?:7z[azr]?|unrar|rar)\s[^\n]{0,400}?\s-h?p["']?([^\s"']{3,256})"#,
        present,
    ),
    row(
        "secret",
        &["ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"],
        r#"\bldap[a-z]{3,10}\b[^\n]{0,400}?\s-w\s{0,2}["']?([^\s"']{3,256})"#,
        present,
    ),
    row(
        "secret",
        &["openssl enc", "openssl aes", "openssl des"],
        r#"\bopenssl\s[^\n]{0,400}?\s-[kK]\s{1,2}["']?([^\s"']{3,256})"#,
        present,
    ),
    row("secret", &["redis-cli"], r#"\bredis-cli\b[^\n]{0,400}?\s-a\s{1,2}["']?([^\s"']{3,256})"#, present),
    row(
        "secret",
        &["password"],
        r#"(?i)\b(?:login|account)\s{1,4}\S{1,128}[\s"',]{1,8}password\s{1,4}([^\s"']{3,256})|^[+\-]?\s{0,8}password[ \t]{1,4}([^\s"']{3,256})\s{0,4}$"#,
        present,
    ),
    row(
        "secret",
        &["pass:"],
        r#"(?i)-(?:pass|passin|passout|password)["',\s=]{1,8}pass:([^\s"',]{3,256})"#,
        present,
    ),
    row(
        "secret",
        &["sqlplus", "sqlldr", "expdp", "impdp", "rman target"],
        r#"(?i)\b(?:sqlplus|sqlldr|expdp|impdp|rman)\b[^\n]{0,200}?[\s"'=][A-Za-z0-9_$#]{1,64}/([^\s"'@/]{3,128})@"#,
        present,
    ),
    row(
        "secret",
        &["jdbc:oracle:"],
        r#"(?i)jdbc:oracle:[a-z0-9]{1,10}:[^\s/@:"']{1,64}/([^\s"'@]{1,128})@"#,
        present,
    ),
    // `aws configure set NAME X`, `pip config set NAME X`, `dvc remote modify REMOTE NAME X`
    row(
        "secret",
        &[
            "configure set", "config set", "configure\", \"set", "configure', 'set", "config\", \"set",
            "config', 'set", "remote modify", "remote\", \"modify", "remote', 'modify", "config create",
            "config update",
        ],
        r#"(?i)\b(?:config(?:ure)?["',\s]{1,6}set["',\s]{1,6}|(?:remote["',\s]{1,6}modify|config["',\s]{1,6}(?:create|update))["',\s]{1,6}(?:[^\s"']{1,60}["',\s]{1,6}){1,8}?)[^\s"']{0,120}(?:key|token|password|secret|_auth)["',\s]{1,6}([^\s"'\-][^\s"']{3,4095})"#,
        unlike_a_word,
    ),
    // `the password is X`, `password for ana: X`
    row(
        "secret",
        &["password", "passphrase", "passcode", "passwort", "pass phrase"],
        r#"(?i)(?:password|passphrase|passcode|passwort|pass phrase)s?[ \t]{1,3}(?:(?:is|was|ist|to)[ \t:]{1,3}|(?:for|of)[ \t]{1,3}[^\s:]{1,128}[ \t]{0,2}(?:[:=]|is)[ \t]{1,3})["'`]?([^\s"'`]{6,256})"#,
        said_in_words,
    ),
    row(
        "secret",
        &["passcode is", "passcode was"],
        r#"(?i)passcode[ \t]{1,3}(?:is|was)[ \t:]{1,3}["'`]?([0-9]{4,12})\b"#,
        present,
    ),
    row(
        "secret",
        &["secret is", "api key is", "access key is"],
        r#"(?i)(?:secret|api key|access key|secret key)[ \t]{1,3}is[ \t:]{1,3}["'`]?([^\s"'`]{16,4096})"#,
        random_case,
    ),
    row(
        "secret",
        &["credential", "creds"],
        r#"(?i)(?:credentials?|creds)[ \t]{0,2}[:=][ \t]{0,3}["']?[^\s/"']{1,64}[ \t]{1,3}/[ \t]{1,3}([^\s"']{4,256})"#,
        unlike_a_word,
    ),
    // Behind what a logger puts before each line.
    row(
        "secret",
        &["password "],
        r#"(?i)\bpassword[ \t]{1,4}([^\s"'?!,;:()]{3,256})\s{0,4}$"#,
        unlike_a_word,
    ),
    Row {
        reading: ReadExtent::Lines(2),
        ..row(
            "secret",
            &["login "],
            r#"(?i)\blogin[ \t]{1,4}\S{1,128}[ \t\r]{0,4}\n[^\n]{0,200}?\bpassword[ \t]{1,4}([^\s"']{3,256})"#,
            present,
        )
    },
];
