//! `data.personal`: unapproved personal data.

use serde::Deserialize;
use trackway_core::checks::{CheckResult, Finding, Severity};
use trackway_core::{SignOff, Timestamp};
use trackway_results::integrity::PersonalColumn;
use trackway_tables::personal::{PersonalFinding, PersonalKind};

use super::people::of_people;
use super::{TableEvidence, about, answer, percent};

const NAME: &str = "data.personal";

/// Why a file of sign-offs cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("invalid sign-offs: {0}")]
pub struct SignOffFileError(#[from] toml::de::Error);

/// Reads the `[[personal]]` tables of a sign-off file.
///
/// # Errors
/// [`SignOffFileError`] for anything else in it.
pub fn sign_offs_from_toml(text: &str) -> Result<Vec<SignOff>, SignOffFileError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        personal: Vec<SignOff>,
    }
    Ok(toml::from_str::<File>(text)?.personal)
}

/// Personal data by column, with the sign-offs at this time.
#[must_use]
pub fn personal_columns(
    evidence: &TableEvidence,
    sign_offs: &[SignOff],
    now: Timestamp,
) -> Vec<PersonalColumn> {
    let found = found(evidence, now);
    let row = |(column, finding): (&str, PersonalFinding)| PersonalColumn {
        column: column.to_owned(),
        kind: finding.kind,
        count: finding.count,
        signed_off: standing(column, finding.kind, sign_offs, now).is_some(),
    };
    found.into_iter().map(row).collect()
}

/// Checks a table for personal data. What is found blocks, unless `sign_offs` names the column and the kind and is
/// valid at the time `now`.
#[must_use]
pub fn personal(evidence: &TableEvidence, sign_offs: &[SignOff], now: Timestamp) -> CheckResult {
    let mut findings = wrong_words(evidence, sign_offs);
    for (column, found) in found(evidence, now) {
        findings.push(judge(evidence, column, &found, sign_offs, now));
    }
    let columns = evidence.profile.columns.len();
    let looked_at = format!(
        "{} of {}, for {} kinds of personal data",
        crate::counted(columns as u64, "column"),
        crate::counted(evidence.profile.rows, "row"),
        PersonalKind::ALL.len()
    );
    answer(NAME, evidence.profile.rows, findings, looked_at)
}

fn found(evidence: &TableEvidence, now: Timestamp) -> Vec<(&str, PersonalFinding)> {
    let columns = evidence.facts.columns.iter().enumerate();
    let by_value = columns.flat_map(|(index, facts)| {
        facts.personal.findings().into_iter().map(move |finding| (index, finding))
    });
    let mut found: Vec<(usize, PersonalFinding)> = by_value.chain(of_people(evidence, now)).collect();
    found.sort_by_key(|(index, finding)| (*index, finding.kind));
    let name = |index: usize| evidence.profile.columns[index].name.as_str();
    found.into_iter().map(|(index, finding)| (name(index), finding)).collect()
}

fn names(sign_off: &SignOff, column: &str, kind: PersonalKind) -> bool {
    sign_off.column == column && sign_off.kinds.iter().any(|name| name == kind.as_str())
}

/// The sign-off that allows this kind in this column now.
fn standing<'s>(
    column: &str,
    kind: PersonalKind,
    sign_offs: &'s [SignOff],
    now: Timestamp,
) -> Option<&'s SignOff> {
    sign_offs.iter().find(|it| names(it, column, kind) && it.check(now).is_ok())
}

fn judge(
    evidence: &TableEvidence,
    column: &str,
    found: &PersonalFinding,
    sign_offs: &[SignOff],
    now: Timestamp,
) -> Finding {
    let what = format!(
        "`{column}` contains {} {} in {} rows ({} of its values)",
        found.count,
        found.kind.plural(),
        evidence.profile.rows,
        percent(found.per_value),
    );
    let finding = |severity, message: String, action: &str| {
        about("personal.found", severity, column, message, action).count(found.count)
    };
    if let Some(sign_off) = standing(column, found.kind, sign_offs, now) {
        let until = sign_off.until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
        let message = format!("{what}; {} signed for it{until}: {}", sign_off.approved_by, sign_off.why);
        return finding(Severity::Note, message, "check again when the reason no longer applies");
    }
    let about_it = sign_offs.iter().filter(|it| names(it, column, found.kind));
    let refused = about_it.filter_map(|it| it.check(now).err()).map(|error| error.to_string()).next();
    let refused = refused.map(|why| format!("; {why}")).unwrap_or_default();
    let action = "remove or mask it, or add a sign-off for this column and kind";
    finding(Severity::Block, format!("{what}{refused}"), action)
}

/// Sign-offs that can never count: for kinds or columns that do not exist.
fn wrong_words(evidence: &TableEvidence, sign_offs: &[SignOff]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for sign_off in sign_offs {
        let column = &sign_off.column;
        if evidence.profile.column(column).is_none() {
            let message = format!("there is a sign-off for `{column}`, but no such column");
            let action = "correct the name, or remove the sign-off";
            findings.push(about("personal.sign_off", Severity::Warn, column, message, action));
        }
        for kind in sign_off.kinds.iter().filter(|kind| kind.parse::<PersonalKind>().is_err()) {
            let known: Vec<&str> = PersonalKind::ALL.iter().map(|kind| kind.as_str()).collect();
            let message =
                format!("the sign-off for `{column}` names {kind:?}, which is not a kind of personal data");
            let action = format!("the kinds are {}", known.join(", "));
            findings.push(about("personal.sign_off", Severity::Warn, column, message, &action));
        }
    }
    findings
}
