//! What a run has been through.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trackway_core::{Confidence, LaunchKind, RetryOutlook, Step, TerminationReason as Reason};

use super::PlanEntry;
use crate::checkpoints::roll_back::Back;

/// Infrastructure failures of different attempts that make a machine suspect: one alone may be a coincidence, or
/// another machine's.
const SUSPICION_FAILURES: usize = 2;
/// Attempts back from the last one that are looked at: a machine is repaired some day.
const SUSPICION_ATTEMPTS_MAX: usize = 20;

/// One ended attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastAttempt {
    /// What it was for.
    pub kind: LaunchKind,
    /// The rung of the ladder; each restarts the count of its steps and its checkpoints.
    #[serde(default = "full_rung")]
    pub rung: String,
    /// Why it ended.
    pub reason: Reason,
    /// The confidence of the reason.
    pub confidence: Confidence,
    /// Whether the same launch may do better; `None`: as its reason has it.
    #[serde(default)]
    pub retry_outlook: Option<RetryOutlook>,
    /// The root cause, comparable (see [`fingerprint`](crate::classify::fingerprint)); empty when unknown.
    pub fingerprint: String,
    /// The exception that ended it, with its message, where the same launch may raise it again (see [`thrown`](crate::classify::thrown)).
    #[serde(default)]
    pub exception: Option<String>,
    /// The newest committed step of the run's rung when it ended.
    pub last_committed_step: Option<Step>,
    pub resumed_from_step: Option<Step>,
    /// The last step it reported.
    #[serde(default)]
    pub last_step: Option<Step>,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: f64,
    /// What it cost, US dollars.
    pub cost_usd: f64,
    /// Wall seconds.
    pub seconds: f64,
    /// The entry of its reason's plan that it took as new, if it did.
    pub plan_index: Option<usize>,
    /// The reason whose plan it took an entry of.
    pub plan_reason: Option<Reason>,
    /// What it ran with beyond the run file.
    pub in_force: PlanEntry,
    /// The hash of its data manifest and schema contract.
    pub data_manifest: String,
    /// The machines that it ran on; empty where no other ones could have been had.
    #[serde(default)]
    pub hosts: Vec<String>,
}

impl PastAttempt {
    /// Whether it committed a step newer than the newest one `before` it in its rung, and than the one it continued from.
    fn made_progress(&self, before: Option<Step>) -> bool {
        self.last_committed_step > before.max(self.resumed_from_step)
    }

    /// The part of its wall seconds that brought newly committed steps; `before` is the newest step that was committed
    /// before it.
    fn committed_seconds(&self, before: Option<Step>) -> f64 {
        let before = before.max(self.resumed_from_step).unwrap_or(0);
        let Some(committed) = self.last_committed_step.filter(|committed| *committed > before) else {
            return 0.0;
        };
        let began = self.resumed_from_step.unwrap_or(0);
        let steps = self.last_step.unwrap_or(committed).max(committed) - began.min(committed);
        self.seconds * (committed - before) as f64 / steps.max(1) as f64
    }
}

fn full_rung() -> String {
    trackway_core::Rung::FULL.to_string()
}

/// The rung that follows, once the attempt before has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextRung {
    /// Its name.
    pub rung: String,
    /// Why the run may go there.
    pub why: String,
}

/// The attempts of a run, oldest first, and the data as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Ended attempts, oldest first.
    pub attempts: Vec<PastAttempt>,
    /// The hash of the data manifest and schema contract that a launch now would use.
    pub data_manifest_now: String,
    /// What evaluations, diagnoses and rehearsals of the run took.
    #[serde(default)]
    pub beside: Spent,
    /// The last attempt was ended to go back to an earlier checkpoint.
    #[serde(default)]
    pub roll_back: Option<RollBack>,
    /// The rung after that of the last attempt, when the ladder has one and its rule allows it.
    #[serde(default)]
    pub next_rung: Option<NextRung>,
}

/// What launches of a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// US dollars.
    pub cost_usd: f64,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: f64,
    /// Wall seconds.
    pub seconds: f64,
}

/// What is known of a roll back that is due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollBack {
    /// A user requested it: it spends no budget.
    pub by_person: bool,
    /// Roll backs by detectors that the run had before.
    pub spent: u32,
    /// A description of the finding or request.
    pub why: String,
    /// Where to, or why there is no such place.
    pub back: Result<Back, String>,
}

impl History {
    /// What all launches of the run took together.
    pub(super) fn spent(&self) -> Spent {
        self.attempts.iter().fold(self.beside, |spent, attempt| Spent {
            cost_usd: spent.cost_usd + attempt.cost_usd,
            gpu_seconds: spent.gpu_seconds + attempt.gpu_seconds,
            seconds: spent.seconds + attempt.seconds,
        })
    }

    /// US dollars and GPU seconds of the attempts that were launched after one that ended for any of these reasons.
    pub(super) fn spent_on(&self, reasons: &[Reason]) -> (f64, f64) {
        let retries = self.attempts.windows(2).filter(|pair| reasons.contains(&pair[0].reason));
        retries
            .fold((0.0, 0.0), |(usd, seconds), pair| (usd + pair[1].cost_usd, seconds + pair[1].gpu_seconds))
    }

    /// How many attempts ended for one of `reasons`.
    pub(super) fn count(&self, reasons: &[Reason]) -> u32 {
        self.attempts.iter().filter(|attempt| reasons.contains(&attempt.reason)).count() as u32
    }

    /// Retries of a budget in use after the last attempt: one for each end of `reasons`, less what committed training
    /// gave back.
    pub(super) fn in_use(&self, reasons: &[Reason], refill_hours: Option<f64>) -> f64 {
        let mut newest: BTreeMap<&str, Option<Step>> = BTreeMap::new();
        let mut in_use = 0.0_f64;
        for attempt in &self.attempts {
            let before = newest.entry(attempt.rung.as_str()).or_default();
            if let Some(hours) = refill_hours {
                in_use = (in_use - attempt.committed_seconds(*before) / 3600.0 / hours).max(0.0);
            }
            in_use += f64::from(u8::from(reasons.contains(&attempt.reason)));
            *before = (*before).max(attempt.last_committed_step);
        }
        in_use
    }

    /// The machines that the next attempt is better without: each was in several infrastructure failures of different
    /// attempts.
    ///
    /// A failure of many machines names all of them. So machines that were in equally many failures cannot be
    /// distinguished, and are left out together or not at all; and never are more left out than the run has had beyond
    /// those it needs, so that of one machine, or of the same ones every time, none is.
    pub(super) fn suspect_hosts(&self) -> Vec<String> {
        let Some(last) = self.attempts.last() else { return Vec::new() };
        let recent = &self.attempts[self.attempts.len().saturating_sub(SUSPICION_ATTEMPTS_MAX)..];
        let mut failures: BTreeMap<&str, usize> = BTreeMap::new();
        for attempt in recent {
            let failed = matches!(attempt.reason, Reason::NodeFailure | Reason::NetworkError);
            for host in attempt.hosts.iter().collect::<BTreeSet<_>>() {
                *failures.entry(host.as_str()).or_default() += usize::from(failed);
            }
        }
        let mut spares = failures.len().saturating_sub(last.hosts.len());
        let mut suspects = Vec::new();
        let counts: BTreeSet<usize> =
            failures.values().copied().filter(|count| *count >= SUSPICION_FAILURES).collect();
        for count in counts.into_iter().rev() {
            let alike: Vec<&str> =
                failures.iter().filter(|(_, found)| **found == count).map(|(host, _)| *host).collect();
            let Some(left) = spares.checked_sub(alike.len()) else { break };
            spares = left;
            suspects.extend(alike.into_iter().map(str::to_owned));
        }
        suspects.sort();
        suspects
    }

    /// The plan entries already taken for `reason`.
    pub(super) fn plans_used(&self, reason: Reason) -> Vec<usize> {
        let taken = self.attempts.iter().filter(|attempt| attempt.plan_reason == Some(reason));
        taken.filter_map(|attempt| attempt.plan_index).collect()
    }

    /// How many attempts at the end of its rung, `last` included, brought no newly committed step and ended like
    /// `last`: with the same fingerprint or the same reason, under the same settings. Preemptions in between do not
    /// break a series of failures, and failures do not break a series of preemptions.
    pub(super) fn trailing_without_progress(&self, last: &PastAttempt) -> u32 {
        let is_preempted = |attempt: &PastAttempt| attempt.reason == Reason::Preempted;
        let mut alike = 0;
        for (attempt, before) in self.attempts.iter().zip(self.committed_before_each(&last.rung)).rev() {
            if attempt.rung != last.rung || attempt.made_progress(before) {
                break;
            }
            if is_preempted(attempt) != is_preempted(last) {
                continue;
            }
            let same_cause = attempt.reason == last.reason
                || (!last.fingerprint.is_empty() && attempt.fingerprint == last.fingerprint);
            if !same_cause || attempt.in_force != last.in_force {
                break;
            }
            alike += 1;
        }
        alike
    }

    /// Whether the attempt before `last` ended with the same exception, under the same settings and on the same data, and `last` got no
    /// further: what it raised does not depend on the launch. Numbers, addresses and paths in the message are not compared. Preemptions in
    /// between say nothing.
    pub(super) fn repeats_exception(&self, last: &PastAttempt) -> bool {
        let (index, before) = match self.attempts.split_last() {
            Some((_, before)) if last.exception.is_some() => (before.len(), before),
            _ => return false,
        };
        let before = before.iter().rev().find(|attempt| attempt.reason != Reason::Preempted);
        !last.made_progress(self.committed_before(index))
            && before.is_some_and(|before| {
                before.exception.is_some()
                    && before.fingerprint == last.fingerprint
                    && before.rung == last.rung
                    && before.in_force == last.in_force
                    && before.data_manifest == last.data_manifest
                    && last.last_step <= before.last_step
            })
    }

    /// For each attempt the newest step that those before it committed in this rung.
    fn committed_before_each(&self, rung: &str) -> Vec<Option<Step>> {
        let mut newest = None;
        let of_rung = |attempt: &PastAttempt| attempt.last_committed_step.filter(|_| attempt.rung == rung);
        let each = self.attempts.iter().map(|attempt| {
            let before = newest;
            newest = newest.max(of_rung(attempt));
            before
        });
        each.collect()
    }

    /// The newest step that the attempts before it committed in its rung.
    fn committed_before(&self, index: usize) -> Option<Step> {
        let rung = &self.attempts[index].rung;
        let of_rung = self.attempts[..index].iter().filter(|before| before.rung == *rung);
        of_rung.filter_map(|before| before.last_committed_step).max()
    }
}
