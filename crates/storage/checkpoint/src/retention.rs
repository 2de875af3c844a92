//! What retention keeps and what it deletes. Pure: decided from the log alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use trackway_core::{CheckpointState, CheckpointUse, Step, Timestamp, closed_list};
use trackway_formats::Variable;

use crate::history::{CommitRecord, History, has_expired};

/// How many checkpoints retention keeps at the least.
pub const MIN_KEPT: usize = 2;
/// The most checkpoints that stay for the only reason that no second place has them: while a remote is out of reach, a
/// disk must not fill up with what no rule keeps. A resume needs none of the older ones: here it tries these, one after
/// the other, and then the newest that is at the remote; elsewhere that one at once.
pub const MAX_ONLY_COPIES: usize = 8;

/// The most checkpoints that stay only because they are spaced out.
pub const MAX_SPACED: usize = 6;

/// What to keep. What several rules want is kept once; what no rule wants may be deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct Retention {
    /// So many of the newest that a resume could reach; never fewer than [`MIN_KEPT`].
    pub last: usize,
    /// The first checkpoint at or after every multiple of so many steps.
    pub every_steps: Option<Step>,
    /// The best by a metric.
    pub best: Option<Best>,
    /// With a remote: what is newer than the newest that is there too stays, up to [`MAX_ONLY_COPIES`]. Older ones that
    /// no rule keeps are not needed there either.
    pub only_uploaded: bool,
    /// Beside the newest, some older ones whose distance doubles each time, and the oldest, up to six: what spoils a
    /// training is often found late, and then the newest are all unsafe.
    pub spaced: bool,
}

/// The best checkpoints by a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Best {
    /// The metric's name, as given to the save.
    pub metric: String,
    /// Whether more is better.
    pub more_is_better: bool,
    pub count: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self { last: MIN_KEPT, every_steps: None, best: None, only_uploaded: false, spaced: false }
    }
}

impl Retention {
    /// From `TRACKWAY_CHECKPOINT_KEEP_LAST`, `…_KEEP_EVERY_STEPS`, `…_KEEP_BEST` (`val_loss`, or `max accuracy`) and
    /// `TRACKWAY_CHECKPOINT_REMOTE`; `None` when none of the first three is set: then everything is kept.
    pub(crate) fn from_variables(variable: &impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number =
            |name| variable(name).and_then(|text| text.parse::<u64>().ok()).filter(|value| *value > 0);
        let last = number(Variable::CheckpointKeepLast.as_str());
        let every_steps = number(Variable::CheckpointKeepEverySteps.as_str());
        let best = variable(Variable::CheckpointKeepBest.as_str()).and_then(|text| Best::parse(&text));
        if last.is_none() && every_steps.is_none() && best.is_none() {
            return None;
        }
        let only_uploaded =
            variable(Variable::CheckpointRemote.as_str()).is_some_and(|text| !text.is_empty());
        let last = last.map_or(MIN_KEPT, |last| usize::try_from(last).unwrap_or(usize::MAX)).max(MIN_KEPT);
        Some(Self { last, every_steps, best, only_uploaded, spaced: false })
    }
}

impl Best {
    /// Reads `METRIC`, `min METRIC` or `max METRIC`; without either, less is better.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (more_is_better, metric) = match text.split_once(' ') {
            Some(("max", metric)) => (true, metric),
            Some(("min", metric)) => (false, metric),
            _ => (false, text),
        };
        let metric = metric.trim();
        (!metric.is_empty()).then(|| Self { metric: metric.into(), more_is_better, count: 1 })
    }
}

/// Why a checkpoint stays.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepReason {
    /// It is one of the newest.
    Last,
    /// It is the first after a multiple of steps.
    Every,
    /// It is one of some older ones, for the case that the newest turn out to be unsafe.
    Spaced,
    /// It is the best by the metric.
    Best,
    /// No checkpoint has a value of the metric that decides which one is the best.
    BestUnknown,
    /// A pin of that name holds it.
    Pinned(String),
    /// This disk may hold the only copy.
    NotUploaded,
    /// It is unsafe, and one of the newest that are: a person may decide that it is not.
    Unsafe,
    /// It is suspect or on a dead branch, and too young to be deleted.
    Recent,
    /// A newer attempt has not committed yet: no other process knows what it continues from.
    Unsettled,
    /// A log entry after it cannot be read, and may have been a pin.
    PerhapsPinned,
}

closed_list!(
    /// Why a checkpoint goes.
    RetireReason, "reason of a deletion", {
        /// No rule keeps it.
        Superseded = "superseded",
        /// It does not verify or cannot be loaded.
        Suspect = "suspect",
        /// What it holds is most likely lost, and newer ones of that kind stay.
        Unsafe = "unsafe",
        /// It was left behind: a resume never reaches it.
        DeadBranch = "dead_branch",
    }
);

/// What stays and what goes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RetentionPlan {
    /// Numbers of commits that stay, and why.
    pub keep: BTreeMap<u64, BTreeSet<KeepReason>>,
    /// Numbers of commits that go, and why.
    pub retire: BTreeMap<u64, RetireReason>,
}

impl RetentionPlan {
    fn keep(&mut self, number: u64, why: KeepReason) {
        self.keep.entry(number).or_default().insert(why);
    }
}

/// The rule of age: commits that a resume never reaches are deleted when they are older than this.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Age {
    pub now: Timestamp,
    pub older_than_seconds: f64,
}

impl Age {
    pub fn has_passed(&self, at: &str) -> bool {
        at.parse::<Timestamp>().is_ok_and(|at| self.now.seconds_since(at) >= self.older_than_seconds)
    }
}

/// Decides about every commit that is not retired yet. Without `age`, those that a resume never reaches stay.
pub(crate) fn plan(history: &History, policy: &Retention, now: Timestamp, age: Option<Age>) -> RetentionPlan {
    plan_along(history, policy, now, age, &history.live_chain())
}

/// The same with the rules applied to some of the commits that a resume could take, newest first.
pub(crate) fn plan_along(
    history: &History,
    policy: &Retention,
    now: Timestamp,
    age: Option<Age>,
    chain: &[u64],
) -> RetentionPlan {
    let mut plan = RetentionPlan::default();
    for number in chain.iter().take(policy.last.max(MIN_KEPT)) {
        plan.keep(*number, KeepReason::Last);
    }
    for number in every(history, policy, chain) {
        plan.keep(number, KeepReason::Every);
    }
    for number in spaced(history, policy, chain) {
        plan.keep(number, KeepReason::Spaced);
    }
    let best = best(history, policy, chain);
    if policy.best.is_some() && best.is_empty() {
        // Without a value any of them may be the best.
        chain.iter().for_each(|number| plan.keep(*number, KeepReason::BestUnknown));
    }
    for number in best {
        plan.keep(number, KeepReason::Best);
    }
    for pin in history.pins().filter(|pin| !has_expired(pin.body.until.as_deref(), now)) {
        plan.keep(pin.body.commit, KeepReason::Pinned(pin.body.name.clone()));
    }
    for number in only_copies(history, policy, chain) {
        plan.keep(number, KeepReason::NotUploaded);
    }
    for number in history.unsafe_commits().into_iter().take(MIN_KEPT) {
        plan.keep(number, KeepReason::Unsafe);
    }
    let on_branch: BTreeSet<u64> = history.live_chain().into_iter().collect();
    let settled = history.newest_epoch_is_committed();
    for (number, record) in history.commits().filter(|(_, record)| !record.retired) {
        let why = reason_to_go(record, on_branch.contains(&number));
        let by_age = matches!(why, RetireReason::Suspect | RetireReason::DeadBranch);
        if by_age && !age.is_some_and(|age| age.has_passed(&record.at)) {
            plan.keep(number, KeepReason::Recent);
        }
        if history.damaged().range(number..).next().is_some() {
            plan.keep(number, KeepReason::PerhapsPinned);
        }
        if !settled {
            plan.keep(number, KeepReason::Unsettled);
        }
        if !plan.keep.contains_key(&number) {
            plan.retire.insert(number, why);
        }
    }
    // A pin may name a commit whose files are gone.
    plan.keep.retain(|number, _| history.commit(*number).is_some_and(|record| !record.retired));
    plan
}

fn reason_to_go(record: &CommitRecord, on_branch: bool) -> RetireReason {
    match (record.state(), on_branch) {
        (CheckpointState::Suspect, _) => RetireReason::Suspect,
        _ if !record.may_be_used_for(CheckpointUse::Keep) => RetireReason::Unsafe,
        (_, true) => RetireReason::Superseded,
        (_, false) => RetireReason::DeadBranch,
    }
}

/// The first checkpoint of every span of steps but the first span, which begins with nothing learned.
fn every(history: &History, policy: &Retention, chain: &[u64]) -> Vec<u64> {
    let Some(every) = policy.every_steps else { return Vec::new() };
    let mut first_of_span = BTreeMap::new();
    for number in chain.iter().rev() {
        let Some(step) = history.commit(*number).map(|record| record.body.step) else { continue };
        first_of_span.entry(step / every).or_insert(*number);
    }
    first_of_span.remove(&0);
    first_of_span.into_values().collect()
}

/// Of all that were ever committed each has a place, which does not change: one stays while fewer came after it than
/// twice the power of two that divides its place. So there is one for each power. The oldest that is left stays too.
fn spaced(history: &History, policy: &Retention, chain: &[u64]) -> Vec<u64> {
    if !policy.spaced {
        return Vec::new();
    }
    let places: BTreeMap<u64, u64> = history.commits().map(|(number, _)| number).zip(1..).collect();
    let newest = chain.first().and_then(|number| places.get(number)).copied().unwrap_or_default();
    let is_spaced = |number: &&u64| {
        if chain.last() == Some(*number) {
            return true;
        }
        let Some(place) = places.get(*number) else { return false };
        let power = 1_u64.checked_shl(place.trailing_zeros()).unwrap_or(u64::MAX);
        newest.saturating_sub(*place) < power.saturating_mul(2)
    };
    chain.iter().skip(MIN_KEPT).filter(is_spaced).take(MAX_SPACED).copied().collect()
}

fn best(history: &History, policy: &Retention, chain: &[u64]) -> Vec<u64> {
    let Some(best) = &policy.best else { return Vec::new() };
    let measured = |number: &u64| {
        let record = history.commit(*number).filter(|it| it.may_be_used_for(CheckpointUse::Best))?;
        let value = record.body.metrics.get(&best.metric)?;
        Some((if best.more_is_better { -value } else { *value }, *number))
    };
    // The chain begins with the newest, and the sort is stable: of equals the newest stays.
    let mut ranked: Vec<_> = chain.iter().filter_map(measured).collect();
    ranked.sort_by(|left, right| left.0.total_cmp(&right.0));
    ranked.into_iter().take(best.count).map(|(_, number)| number).collect()
}

fn only_copies(history: &History, policy: &Retention, chain: &[u64]) -> Vec<u64> {
    if !policy.only_uploaded {
        return Vec::new();
    }
    let nowhere_else =
        |number: &&u64| history.commit(**number).is_some_and(|record| record.uploaded_to.is_none());
    chain.iter().take_while(nowhere_else).take(MAX_ONLY_COPIES).copied().collect()
}
