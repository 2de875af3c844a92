//! The last resort: what the words of the last lines speak of, where no rule knows them. Never more than a guess.

use trackway_core::{Confidence, TerminationReason as Reason};

use super::evidence::TerminationEvidence;
use super::finding::{EvidenceItem, EvidenceSource, TerminationFinding};
use super::rule::FactRule;
use crate::scan::may_report;
use crate::signatures::wording::{OF_DEVICE, WORDINGS, Wording};

/// A line with more words is a text and no report.
const WORDS_MAX: usize = 60;

/// Two words that say what one word of the tables does.
const SAID_AS: &[(&str, &str)] = &[
    ("could not", "cannot"),
    ("can not", "cannot"),
    ("not able", "unable"),
    ("read only", "read-only"),
    ("time limit", "time-limit"),
];

/// The first of the last lines that speaks of a topic and of a trouble with it.
pub(super) fn read(evidence: &TerminationEvidence) -> Option<TerminationFinding> {
    let lines = evidence.logs.iter().flat_map(|log| {
        let first = log.log.line_count + 1 - log.log.last_lines.len() as u64;
        (first..).zip(&log.log.last_lines).map(|(number, line)| (log.stream, number, line))
    });
    let (reason, stream, number, line) = lines
        .filter(|(_, _, line)| may_report(line))
        .find_map(|(stream, number, line)| Some((spoken_of(line)?, stream, number, line)))?;
    let mut finding = TerminationFinding::new(reason, FactRule::Wording, Confidence::Guess);
    finding.items.push(EvidenceItem {
        source: EvidenceSource::Log,
        line_number: Some(number),
        stream: Some(stream),
        text: line.trim().to_owned(),
    });
    Some(finding)
}

/// The reason that the words of a line name.
pub(super) fn spoken_of(line: &str) -> Option<Reason> {
    let mut lower = line.to_ascii_lowercase();
    for (said, word) in SAID_AS {
        lower = lower.replace(said, word);
    }
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '\'');
    let words: Vec<&str> = lower.split(|letter| !is_part(letter)).filter(|word| !word.is_empty()).collect();
    if words.len() > WORDS_MAX {
        return None;
    }
    let has = |list: &[&str]| list.iter().any(|word| words.contains(word));
    let speaks = |row: &&Wording| {
        has(row.topics) && (row.troubles.is_empty() || row.troubles.iter().any(|list| has(list)))
    };
    let reason = WORDINGS.iter().find(speaks)?.reason;
    Some(if reason == Reason::HostOom && has(OF_DEVICE) { Reason::DeviceOom } else { reason })
}
