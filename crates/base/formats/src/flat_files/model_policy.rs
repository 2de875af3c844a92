//! The policy file of a model: what a version must show before it is promoted. TOML, without sections. Reading is pure: text in,
//! values or *all* mistakes out. A key that is absent has its default: the file is the whole policy.

use std::collections::BTreeSet;

use serde_json::Value;
use toml::de::DeValue;
use trackway_core::Rung;
use trackway_core::registry::{AttemptRequirement, BaselineRule, GateKind, HealthRule, ReceiptField};

use super::flat_file::{FlatFile, Mistake, count, flag, list, text};
use crate::runfile::{RunFileError, parse_duration};

/// A larger file is not a policy; it is refused before it is parsed.
pub const POLICY_BYTES_MAX: usize = 1 << 16;

/// Every key that a policy may hold; `docs/registry.md` describes each.
pub const KEYS: [&str; 13] = [
    "model", "approvals", "approval_lasts", "own_approval", "approvers", "gates", "baseline", "rung",
    "receipt", "test_set_uses_max", "test_sets", "health", "attempt",
];

/// What a policy file sets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelPolicyFile {
    /// The model it is for; any if absent.
    pub model: Option<String>,
    /// How many people must have approved a version.
    pub approvals: Option<u32>,
    /// How long an approval is valid.
    pub approval_seconds: Option<f64>,
    /// Whether the person who registered a version may approve it.
    pub own_approval: Option<bool>,
    /// Who may approve; any person if absent or empty.
    pub approvers: Option<BTreeSet<String>>,
    /// The kinds of gate that must be among those that were applied.
    pub gates: Option<BTreeSet<GateKind>>,
    /// Whether a gate must compare with the version in production.
    pub baseline: Option<BaselineRule>,
    /// The least fraction of the data on which it was trained.
    pub rung: Option<Rung>,
    /// What the evaluation's receipt must have.
    pub receipt: Option<BTreeSet<ReceiptField>>,
    /// How often its test set may have been used.
    pub test_set_uses_max: Option<u32>,
    /// Further test sets, by name, on which it must have been evaluated and its gates must pass.
    pub test_sets: Option<BTreeSet<String>>,
    /// What the health of the attempt that wrote it must be.
    pub health: Option<HealthRule>,
    /// What that attempt must show.
    pub attempt: Option<BTreeSet<AttemptRequirement>>,
}

/// Reads a policy file. `name` is the file's name in messages.
///
/// # Errors
/// Every mistake of the file, in order. A file that is too large, not UTF-8 or not TOML has that mistake alone.
pub fn parse(source: &[u8], name: &str) -> Result<ModelPolicyFile, Vec<RunFileError>> {
    let mut file = ModelPolicyFile::default();
    let kind = FlatFile { bytes_max: POLICY_BYTES_MAX, is: "a policy", key: "key", keys: &KEYS };
    kind.read(source, name, |key, value, _| file.set(key, value))?;
    Ok(file)
}

impl ModelPolicyFile {
    /// The file's text, from which [`parse`] reads the same values; what is not set is a comment.
    #[must_use]
    pub fn text(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let baseline = self.baseline.map(|rule| quoted(rule.as_str()));
        let health = self.health.map(|rule| quoted(rule.as_str()));
        let rung = self.rung.map(|rung| quoted(&rung.to_string()));
        let uses = self.test_set_uses_max.map(|uses| uses.to_string());
        let test_sets = self.test_sets.as_ref().map(listed);
        let approvals = self.approvals.map(|count| count.to_string());
        let approvers = self.approvers.as_ref().map(listed);
        let lasts = self.approval_seconds.map(|seconds| quoted(&duration_text(seconds)));
        let own = self.own_approval.map(|own| own.to_string());
        let lines = [
            ("model", self.model.as_deref().map(quoted), "the model it is for"),
            ("gates", self.gates.as_ref().map(listed), "kinds of gate that must be there"),
            ("baseline", baseline, "`required`: a gate must compare with the version in production"),
            ("rung", rung, "least fraction of the data it was trained on"),
            ("receipt", self.receipt.as_ref().map(listed), "what its evaluation must have recorded"),
            ("test_set_uses_max", uses, "how often its test set may have been used"),
            ("test_sets", test_sets, "further test sets it must pass"),
            ("health", health, "`not_broken`, `ok` or `any`: the health of the attempt that wrote it"),
            ("attempt", self.attempt.as_ref().map(listed), "what that attempt must show"),
            ("approvals", approvals, "people who must approve it"),
            ("approvers", approvers, "who may approve; any person if empty"),
            ("approval_lasts", lasts, "how long an approval is valid"),
            ("own_approval", own, "whether the person who registered it may approve it"),
        ];
        let line = |(key, value, doc): (&str, Option<String>, &str)| match value {
            Some(value) => format!("# {doc}\n{key} = {value}\n"),
            None => format!("# {doc}\n# {key} =\n"),
        };
        lines.map(line).concat()
    }

    fn set(&mut self, key: &str, value: &DeValue<'_>) -> Result<(), Mistake> {
        match key {
            "model" => self.model = Some(text(value)?),
            "approvals" => self.approvals = Some(people(value)?),
            "approval_lasts" => self.approval_seconds = Some(duration(value)?),
            "own_approval" => self.own_approval = Some(flag(value)?),
            "approvers" => self.approvers = Some(names(value)?),
            "gates" => self.gates = Some(words(value, "kinds of gate", GateKind::ALL)?),
            "baseline" => {
                let known = text(value).ok().and_then(|word| word.parse().ok());
                self.baseline = Some(known.ok_or_else(|| Mistake::value(one_of(BaselineRule::ALL)))?);
            }
            "rung" => {
                let known = text(value).ok().and_then(|text| text.parse().ok());
                let must_be = "a percentage above 0% and up to 100%, such as `\"100%\"`";
                self.rung = Some(known.ok_or_else(|| Mistake::value(must_be))?);
            }
            "receipt" => self.receipt = Some(words(value, "fields of a receipt", ReceiptField::ALL)?),
            "test_set_uses_max" => self.test_set_uses_max = Some(count(value)?),
            "test_sets" => self.test_sets = Some(names(value)?),
            "health" => {
                let known = text(value).ok().and_then(|word| word.parse().ok());
                self.health = Some(known.ok_or_else(|| Mistake::value(one_of(HealthRule::ALL)))?);
            }
            "attempt" => {
                self.attempt = Some(words(value, "requirements of an attempt", AttemptRequirement::ALL)?);
            }
            _ => return Err(Mistake::Key),
        }
        Ok(())
    }
}

/// A list of words, each quoted.
fn listed<T: std::fmt::Display>(words: &BTreeSet<T>) -> String {
    let words: Vec<String> = words.iter().map(|word| Value::from(word.to_string()).to_string()).collect();
    format!("[{}]", words.join(", "))
}

/// Whole units where it has them.
fn duration_text(seconds: f64) -> String {
    let units = [(86_400.0, "d"), (3_600.0, "h"), (60.0, "m")];
    match units.into_iter().find(|(unit, _)| seconds >= *unit && seconds % unit == 0.0) {
        Some((unit, name)) => format!("{}{name}", seconds / unit),
        None => format!("{seconds}s"),
    }
}

fn names(value: &DeValue<'_>) -> Result<BTreeSet<String>, Mistake> {
    list(value, "a list of names", |word| Some(word.to_owned()).filter(|word| !word.is_empty()))
}

/// The words of a closed list.
fn words<T: Copy + Ord + std::fmt::Display + std::str::FromStr>(
    value: &DeValue<'_>,
    what: &str,
    all: &[T],
) -> Result<BTreeSet<T>, Mistake> {
    let all: Vec<String> = all.iter().map(|word| format!("`\"{word}\"`")).collect();
    list(value, &format!("a list of {what}: {}", all.join(", ")), |word| word.parse().ok())
}

fn one_of<T: std::fmt::Display>(all: &[T]) -> String {
    all.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(" or ")
}

/// A whole number from 0.
fn people(value: &DeValue<'_>) -> Result<u32, Mistake> {
    match value {
        DeValue::Integer(integer) if integer.as_str() == "0" => Ok(0),
        _ => count(value).map_err(|_| Mistake::value("a whole number from 0 to 4294967295")),
    }
}

fn duration(value: &DeValue<'_>) -> Result<f64, Mistake> {
    let seconds = match value {
        DeValue::String(text) => parse_duration(text).filter(|seconds| *seconds > 0.0),
        _ => None,
    };
    seconds.ok_or_else(|| Mistake::value("a duration above 0, such as `\"3d\"`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that every key is read, and that the text of a policy is read as the same policy.
    #[test]
    fn every_key_is_read() {
        let text = "model = \"income\"\napprovals = 0\napproval_lasts = \"3d\"\nown_approval = true\n\
                    approvers = [\"ada\", \"ben\"]\ngates = [\"quality\", \"slice\", \"size\"]\n\
                    baseline = \"optional\"\nrung = \"10%\"\nreceipt = [\"task_set\"]\ntest_set_uses_max = 20\n\
                    test_sets = [\"rare\"]\nhealth = \"ok\"\nattempt = [\"ended_well\", \"preflight\"]\n";
        let expected = ModelPolicyFile {
            model: Some("income".into()),
            approvals: Some(0),
            approval_seconds: Some(3.0 * 86_400.0),
            own_approval: Some(true),
            approvers: Some(["ada".to_owned(), "ben".to_owned()].into()),
            gates: Some([GateKind::Quality, GateKind::Slice, GateKind::Size].into()),
            baseline: Some(BaselineRule::Optional),
            rung: Rung::new(0.1),
            receipt: Some([ReceiptField::TaskSet].into()),
            test_set_uses_max: Some(20),
            test_sets: Some(["rare".to_owned()].into()),
            health: Some(HealthRule::Ok),
            attempt: Some([AttemptRequirement::EndedWell, AttemptRequirement::Preflight].into()),
        };
        assert_eq!(parse(text.as_bytes(), "p.toml").unwrap(), expected);
        assert!(KEYS.iter().all(|key| text.contains(&format!("{key} = "))));
        assert_eq!(parse(b"", "p.toml").unwrap(), ModelPolicyFile::default());
        assert_eq!(parse(expected.text().as_bytes(), "p.toml").unwrap(), expected);
        let nothing = ModelPolicyFile::default().text();
        assert_eq!(parse(nothing.as_bytes(), "p.toml").unwrap(), ModelPolicyFile::default());
        assert_eq!([90.0, 7200.0, 0.5, 129_600.0].map(duration_text), ["90s", "2h", "0.5s", "36h"]);
    }

    /// Proves that all mistakes are shown at once, each with its place and what to write.
    #[test]
    fn mistakes_have_a_place_and_a_hint() {
        let text = "aprovals = 2\napproval_lasts = 3\ngates = [\"speed\"]\nbaseline = true\nrung = \"0%\"\n\
                    approvals = -1\napprovers = \"ada\"\n";
        let errors = parse(text.as_bytes(), "p.toml").unwrap_err();
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "p.toml:1:1: unknown key `aprovals` (hint: did you mean `approvals`?)",
                "p.toml:2:18: `approval_lasts` must be a duration above 0, such as `\"3d\"`",
                "p.toml:3:9: `gates` must be a list of kinds of gate: `\"quality\"`, `\"slice\"`, `\"blind_spot\"`, \
                 `\"robustness\"`, `\"fairness\"`, `\"latency\"`, `\"size\"`, `\"cost\"`",
                "p.toml:4:12: `baseline` must be `\"required\"` or `\"optional\"`",
                "p.toml:5:8: `rung` must be a percentage above 0% and up to 100%, such as `\"100%\"`",
                "p.toml:6:13: `approvals` must be a whole number from 0 to 4294967295",
                "p.toml:7:13: `approvers` must be a list of names",
            ]
        );
    }
}
