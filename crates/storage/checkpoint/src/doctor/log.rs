//! Checks the log: entries that cannot be read, are missing, or could not have been written by a correct writer.

use std::collections::{BTreeMap, BTreeSet};

use trackway_core::text::first_few;
use trackway_core::{RunId, Timestamp};
use trackway_store::{Entry, Fold as _, Item};

use super::finding::{Remedy, RootFinding, RootSeverity};
use super::survey::{HINT_PATH, Survey, entry_path};
use crate::history::History;
use crate::history::entry::{Begin, Body, ClaimBody, CommitBody};
use crate::history::has_expired;

/// Checks everything but the files of checkpoints.
pub(super) fn check(survey: &Survey, now: Timestamp) -> Vec<RootFinding> {
    let mut findings = damaged(survey);
    findings.extend(unlisted(survey));
    findings.extend(gaps(survey));
    findings.extend(strangers(survey));
    findings.extend(hint(survey));
    findings.extend(Order::of(survey));
    findings.extend(summaries(survey));
    findings.extend(pins(survey, now));
    findings
}

fn damaged(survey: &Survey) -> Vec<RootFinding> {
    let unread =
        survey.log.iter().filter_map(|(number, file)| Some((number, file, file.read.as_ref().err()?)));
    let finding = |(number, file, unread): (&u64, &super::survey::LogFile, &super::survey::UnreadEntry)| {
        let message = format!("log entry {number} cannot be used: {}", unread.why);
        RootFinding::error("log_entry_damaged", &file.path, message)
            .about(*number)
            .remedy(unread.remedy.clone())
    };
    unread.map(finding).collect()
}

fn unlisted(survey: &Survey) -> Vec<RootFinding> {
    let finding = |(path, error): &(String, std::io::Error)| {
        let message = format!("the folder cannot be listed: {error}");
        RootFinding::error("not_readable", path, message).remedy(Remedy::Allow { path: path.clone() })
    };
    survey.unlisted.iter().map(finding).collect()
}

fn gaps(survey: &Survey) -> Vec<RootFinding> {
    if !survey.has_log {
        return no_log(survey);
    }
    let missing = (1..survey.last_number()).filter(|number| !survey.log.contains_key(number));
    let mut findings: Vec<_> = missing
        .take(MAX_GAP_FINDINGS)
        .map(|number| {
            let path = entry_path(number);
            let message = format!(
                "log entry {number} is missing although later ones exist: {}; the next write takes its number",
                behind(survey, number)
            );
            RootFinding::error("log_entry_missing", &path, message)
                .about(number)
                .remedy(Remedy::RestoreFile { path: path.clone() })
        })
        .collect();
    if survey.log.is_empty() && !survey.folders.is_empty() {
        findings.extend(no_log(survey));
    }
    findings
}

/// Most missing numbers that are reported one by one.
const MAX_GAP_FINDINGS: usize = 1_000;

/// Most steps that are named of those that no reader sees.
const STEPS_NAMED_MAX: usize = 10;

/// What readers do not see because they end at a gap.
fn behind(survey: &Survey, gap: u64) -> String {
    let unseen = survey.last_number() - gap;
    let steps: Vec<_> =
        survey.commits().filter(|(number, _)| *number > gap).map(|(_, body)| body.step.to_string()).collect();
    match steps.as_slice() {
        [] => format!("no reader sees the {unseen} numbers after it"),
        steps => format!(
            "no reader sees the {unseen} numbers after it, including the commits of step {}",
            first_few(steps, STEPS_NAMED_MAX)
        ),
    }
}

fn no_log(survey: &Survey) -> Vec<RootFinding> {
    if survey.folders.is_empty() {
        return Vec::new();
    }
    let message =
        "the log is missing: without it no checkpoint counts as committed, and the newest one is unknown"
            .into();
    vec![RootFinding::error("log_missing", "log", message).remedy(Remedy::RestoreFile { path: "log".into() })]
}

fn strangers(survey: &Survey) -> Vec<RootFinding> {
    let finding = |stranger: &super::survey::Stranger| {
        let (check, message) = if stranger.left_over {
            ("left_over_file", "left over from an interrupted write; no reader uses it")
        } else {
            ("foreign_file", "not written by Trackway; no reader uses it")
        };
        RootFinding::note(check, &stranger.path, message.into())
            .remedy(Remedy::Remove { path: stranger.path.clone() })
    };
    survey.strangers.iter().map(finding).collect()
}

/// The hint may be wrong without harm: readers verify it.
fn hint(survey: &Survey) -> Option<RootFinding> {
    #[derive(serde::Deserialize)]
    struct Hint {
        summary: u64,
    }
    let bytes = survey.hint.as_ref()?;
    let why = match serde_json::from_slice::<Hint>(bytes) {
        Err(_) => "it cannot be parsed".to_owned(),
        Ok(Hint { summary }) => match survey.log.get(&summary).map(|file| &file.read) {
            Some(Ok(Entry { body: Body::Summary(_), .. })) => return None,
            _ => format!("it names entry {summary}, which is not a summary"),
        },
    };
    let message =
        format!("the hint cannot be used ({why}): readers read the whole log, with the same result");
    Some(
        RootFinding::warning("hint_wrong", HINT_PATH, message)
            .remedy(Remedy::Remove { path: HINT_PATH.into() }),
    )
}

/// Checks every entry against those before it.
#[derive(Default)]
struct Order {
    claims: BTreeMap<u64, ClaimBody>,
    epoch: u64,
    run_id: Option<RunId>,
    begun: BTreeMap<String, u64>,
    commits: BTreeSet<u64>,
    findings: Vec<RootFinding>,
}

impl Order {
    fn of(survey: &Survey) -> Vec<RootFinding> {
        let mut order = Self::default();
        for (number, entry) in survey.entries() {
            order.take(survey, number, &entry.body);
        }
        order.findings
    }

    fn take(&mut self, survey: &Survey, number: u64, body: &Body) {
        match body {
            Body::Claim(claim) => self.take_claim(number, claim),
            Body::Begin(begin) => self.take_begin(number, begin),
            Body::Commit(commit) => self.take_commit(survey, number, commit),
            Body::Adopt(adopt) => {
                self.commits.extend(adopt.commit.as_ref().map(|_| number));
            }
            Body::Suspect { commit, .. }
            | Body::Unsafe { commit, .. }
            | Body::Cleared { commit, .. }
            | Body::Uploaded { commit, .. } => {
                self.names(survey, number, &[*commit]);
            }
            Body::Pin(pin) => self.names(survey, number, &[pin.commit]),
            Body::Retire { commits, .. } => self.names(survey, number, commits),
            Body::Abandon { .. } | Body::Round(_) | Body::Unpin { .. } | Body::Summary(_) | Body::Unknown => {
            }
        }
    }

    fn error(&mut self, check: &'static str, number: u64, message: String) {
        self.findings.push(RootFinding::error(check, &entry_path(number), message).about(number));
    }

    fn take_claim(&mut self, number: u64, claim: &ClaimBody) {
        let ClaimBody { epoch, attempt_id, .. } = *claim;
        self.check_run(number, claim.run_id);
        if let Some(other) = self.claims.get(&epoch).filter(|other| other.attempt_id != attempt_id) {
            let message = format!(
                "epoch {epoch} is claimed twice, by {} and by {attempt_id}; the first claim counts",
                other.attempt_id
            );
            self.error("two_claims", number, message);
        } else if epoch < self.epoch {
            let message =
                format!("epoch {epoch} is claimed by {attempt_id} after the claim of epoch {}", self.epoch);
            self.error("claim_behind", number, message);
        }
        self.claims.entry(epoch).or_insert(*claim);
        self.epoch = self.epoch.max(epoch);
    }

    fn take_begin(&mut self, number: u64, begin: &Begin) {
        self.check_run(number, begin.run_id);
        if begin.epoch < self.epoch {
            let message = format!(
                "step {} is begun by {} of epoch {}, which epoch {} had fenced",
                begin.step, begin.attempt_id, begin.epoch, self.epoch
            );
            self.findings.push(
                RootFinding::error("fenced_writer", &entry_path(number), message).of_begin(number, begin),
            );
        }
        if let Some(earlier) = self.begun.insert(begin.object_prefix.clone(), number) {
            let message =
                format!("its prefix `{}` was begun by entry {earlier} already", begin.object_prefix);
            self.error("prefix_used_twice", number, message);
        }
    }

    fn take_commit(&mut self, survey: &Survey, number: u64, commit: &CommitBody) {
        self.check_run(number, commit.run_id);
        let path = entry_path(number);
        let CommitBody { step, epoch, attempt_id, .. } = commit;
        if *epoch < self.epoch {
            let message = format!(
                "step {step} is committed by {attempt_id} of epoch {epoch}, which epoch {} had fenced",
                self.epoch
            );
            self.findings.push(RootFinding::error("fenced_writer", &path, message).of_commit(number, commit));
        }
        if !self.begun.contains_key(&commit.object_prefix) && survey.is_whole_before(number) {
            let message =
                format!("step {step} is committed below `{}`, which no entry began", commit.object_prefix);
            self.findings
                .push(RootFinding::warning("commit_without_begin", &path, message).of_commit(number, commit));
        }
        if let Some(parent) = commit.parent.filter(|parent| !self.commits.contains(parent)) {
            let what = match survey.log.get(&parent) {
                _ if parent >= number => "which comes after it",
                None => "which is missing",
                Some(file) if file.read.is_err() => "which cannot be read",
                Some(_) => "which is not a commit",
            };
            let message = format!(
                "step {step} continues from entry {parent}, {what}: the chain of checkpoints ends here"
            );
            self.findings
                .push(RootFinding::error("parent_missing", &path, message).of_commit(number, commit));
        }
        self.commits.insert(number);
    }

    fn check_run(&mut self, number: u64, found: RunId) {
        let expected = *self.run_id.get_or_insert(found);
        if found != expected {
            let message = format!("it belongs to {found}, and this root to {expected}");
            self.error("wrong_run", number, message);
        }
    }

    /// An entry about commits that are none. Where entries are lost, the commit may have been among them.
    fn names(&mut self, survey: &Survey, number: u64, commits: &[u64]) {
        for commit in commits {
            let lost = survey.log.get(commit).is_none_or(|file| file.read.is_err());
            if !self.commits.contains(commit) && !lost {
                let message = format!("it names entry {commit}, which is not a commit: it has no effect");
                let finding = RootFinding::warning("entry_names_nothing", &entry_path(number), message);
                self.findings.push(finding.about(number));
            }
        }
    }
}

/// Every summary must mean what the entries before it mean.
fn summaries(survey: &Survey) -> Vec<RootFinding> {
    let mut findings = Vec::new();
    let mut history = History::default();
    for number in 1..=survey.tail {
        let Some(file) = survey.log.get(&number) else { break };
        let item = match &file.read {
            Ok(entry) => {
                if matches!(entry.body, Body::Summary(_)) && history.summary() != entry.body {
                    let message = format!(
                        "the summary in entry {number} contradicts the entries before it: readers that start from it decide differently"
                    );
                    let finding =
                        RootFinding::new(RootSeverity::Error, "summary_wrong", message).about(number);
                    findings.push(RootFinding { path: Some(file.path.clone()), ..finding });
                }
                Item::Entry(entry.clone())
            }
            Err(unread) => Item::Damaged { number, why: unread.why.clone() },
        };
        history.take(item);
    }
    findings
}

fn pins(survey: &Survey, now: Timestamp) -> Vec<RootFinding> {
    let finding = |pin: &crate::history::PinRecord| {
        let body = &pin.body;
        let path = entry_path(body.commit);
        let unpin = Remedy::Unpin { name: body.name.clone() };
        let record = survey.history.commit(body.commit);
        if record.is_none_or(|record| record.retired) {
            let message =
                format!("the pin `{}` holds entry {}, whose files are deleted", body.name, body.commit);
            return Some(
                RootFinding::warning("pin_on_nothing", &path, message).about(body.commit).remedy(unpin),
            );
        }
        let ended = body.until.as_deref().filter(|until| has_expired(Some(until), now))?;
        let message =
            format!("the pin `{}` on entry {} expired at {ended} and has no effect", body.name, body.commit);
        Some(RootFinding::note("pin_expired", &path, message).about(body.commit).remedy(unpin))
    };
    survey.history.pins().filter_map(finding).collect()
}
