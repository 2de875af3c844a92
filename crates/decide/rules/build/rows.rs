//! One table: how it is written as TOML, and as Rust.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::literals;

/// One table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    /// What lines of tracebacks have.
    #[serde(default)]
    pub(crate) traceback: Vec<String>,
    /// Alternatives that a phrase names as `{name}`.
    #[serde(default)]
    words: BTreeMap<String, Vec<String>>,
    pub(crate) signature: Vec<Row>,
}

/// One signature.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    name: String,
    reason: String,
    role: String,
    #[serde(default)]
    conclusive: bool,
    /// Each with a line in which it alone of this signature is.
    phrases: Vec<(String, String)>,
    /// What rules a line out, each with a line that it alone rules out.
    #[serde(default)]
    unless: Vec<(String, String)>,
    /// Lines like those that match, which do not.
    near: Vec<String>,
}

impl Row {
    pub(crate) fn phrases(&self) -> impl Iterator<Item = &str> {
        self.phrases.iter().map(|(phrase, _)| phrase.as_str())
    }
}

/// A table, with the words in its phrases.
pub(crate) fn read(text: &str) -> Result<Family, toml::de::Error> {
    let mut family: Family = toml::from_str(text)?;
    for row in &mut family.signature {
        for (phrase, _) in row.phrases.iter_mut().chain(&mut row.unless) {
            for (name, words) in &family.words {
                *phrase = phrase.replace(&format!("{{{name}}}"), &format!("(?:{})", words.join("|")));
            }
        }
    }
    Ok(family)
}

/// The signatures, and for each phrase the number of its signature.
pub(crate) fn as_rust(rows: &[Row]) -> String {
    let mut text = format!("static SIGNATURES: [Signature; {}] = [\n", rows.len());
    let mut signature_of = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let phrases: Vec<&str> = row.phrases().collect();
        let unless: Vec<String> = row.unless.iter().map(|(phrase, _)| exception(phrase)).collect();
        writeln!(
            text,
            "Signature {{ name: RuleName({:?}), reason: TerminationReason::{}, role: Role::{}, conclusive: {}, \
             first_phrase: {}, phrases: &{phrases:?}, unless: &[{}] }},",
            row.name,
            variant(&row.reason),
            variant(&row.role),
            row.conclusive,
            signature_of.len(),
            unless.join(", ")
        )
        .expect("text grows");
        signature_of.extend(std::iter::repeat_n(number, phrases.len()));
    }
    text + &format!("];\nstatic SIGNATURE_OF: [u16; {}] = {signature_of:?};\n", signature_of.len())
}

fn exception(phrase: &str) -> String {
    let literals: Vec<String> = literals::required(phrase)
        .unwrap_or_default()
        .into_iter()
        .map(|literal| format!("b\"{}\"", literal.escape_ascii()))
        .collect();
    format!("Exception {{ phrase: {phrase:?}, literals: &[{}] }}", literals.join(", "))
}

/// What is written beside the signatures for their readers and tests.
pub(crate) fn examples_as_rust(rows: &[Row]) -> String {
    let examples: Vec<String> = rows
        .iter()
        .map(|row| {
            let of = |pairs: &[(String, String)]| -> Vec<String> {
                pairs.iter().map(|(_, example)| example.clone()).collect()
            };
            format!(
                "Examples {{ phrases: &{:?}, unless: &{:?}, near: &{:?} }},\n",
                of(&row.phrases),
                of(&row.unless),
                row.near
            )
        })
        .collect();
    format!("static EXAMPLES: [Examples; {}] = [\n{}];\n", rows.len(), examples.concat())
}

/// `device_oom` → `DeviceOom`.
fn variant(word: &str) -> String {
    word.split('_').map(|part| part[..1].to_ascii_uppercase() + &part[1..]).collect()
}
