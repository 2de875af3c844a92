//! The health of an attempt that has ended: what its values show, beside how it ended. Curves, findings of detectors
//! and the losses that are not to be trusted in, one verdict with its evidence out. Pure.
//!
//! *ok*: something looked at its values to the end, and nothing was found. *suspect*: a warning was not over at its
//! end. *broken*: what it computed is most likely lost. *unknown*: nothing could be looked at.

mod curve;
mod guess;
mod level;
mod looks;
mod names;
mod regime;
mod scores;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use trackway_core::detect::{DetectionSeverity, Detector, Firing};
use trackway_core::{Health, HealthFinding, HealthReport, Step, TerminationReason};
use trackway_formats::rehearsal::loss_rank;

pub use curve::{Curve, Part};
pub use looks::EarlierEnd;
use names::{
    held_out_measure, is_accuracy, is_learning_rate, is_loss, is_part_of_loss, is_score, training_measure,
};

use crate::advice::lines::{Line, lines};
use crate::curves::loss_level::falls_while_learning;
use crate::curves::reinforcement::is_of_reinforcement;
use crate::symptom_of_detector;
use crate::trust::{CHANCE_LEVEL, LOSS_EXPLODED, LOSS_WENT_BACK, LossRecord, TENSORS};

/// Metrics whose curves are kept.
const CURVES_MAX: usize = 1024;
/// Metrics that a report names.
const NAMED_MAX: usize = 8;
/// Findings that a report holds.
const FINDINGS_MAX: usize = 32;
/// Curves of parts of a loss that are kept.
const PARTS_MAX: usize = 16;
/// The name of the finding that weights never changed.
const UNMOVED_WEIGHTS: &str = "unmoved_weights";
/// The metric of callbacks: updates since the first one that changed no parameter.
const UNMOVED_UPDATES: &str = "unmoved_updates";
/// So many are no warm-up that begins at a rate of 0, and no search for a loss scale.
const UNMOVED_UPDATES_MIN: f64 = 10.0;

/// The curves of an attempt by which it is judged: losses, accuracies and other scores, of the first rank that recorded each.
#[derive(Debug, Clone, Default)]
pub struct Curves {
    by_name: BTreeMap<String, (u32, Curve)>,
    /// Parts of a loss that are recorded beside it.
    parts: BTreeMap<String, (u32, Curve)>,
    /// A metric says that its losses need not fall.
    is_of_reinforcement: bool,
    /// The first learning rate that is recorded.
    rate: BTreeMap<String, (u32, Curve)>,
    /// Since which step the learning rate may be 0: it is, or was printed as a zero with decimals; none: it is not, or was not recorded.
    rate_is_zero_since: Option<Step>,
    /// Updates that changed no parameter; 0: they have changed, or nothing looked at them.
    unmoved_updates: f64,
    majority: Option<Majority>,
}

/// The largest class of the labels that a model is trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct Majority {
    /// The fraction of the labels that it has, 0 to 1.
    pub fraction: f64,
    /// The path of the data, as the run file has it.
    pub of: String,
}

/// What the level says by which something was found.
#[derive(Debug, Clone, PartialEq)]
enum Level {
    /// It is better while the model learns.
    Counts,
    /// It may get worse while the model learns.
    NeedNotHold,
    /// It cannot be compared with that of the beginning, for this reason.
    Unclear(String),
}

impl Curves {
    /// Takes a value.
    pub fn take(&mut self, rank: u32, metric: &str, step: Step, value: f64) {
        let is_judged = |metric: &str| is_loss(metric) || is_score(metric);
        take(&mut self.by_name, CURVES_MAX, is_judged, (rank, metric), (step, value));
        take(&mut self.parts, PARTS_MAX, is_part_of_loss, (rank, metric), (step, value));
        take(&mut self.rate, 1, is_learning_rate, (rank, metric), (step, value));
        self.is_of_reinforcement |= is_of_reinforcement(metric);
        if is_learning_rate(metric) {
            let since = self.rate_is_zero_since.unwrap_or(step);
            self.rate_is_zero_since = (value == 0.0).then_some(since);
        }
        if metric == UNMOVED_UPDATES {
            self.unmoved_updates = value;
        }
    }

    /// The classes of the training data were counted.
    pub fn knows_majority(&mut self, majority: Option<Majority>) {
        self.majority = majority;
    }

    /// Values of this metric come from another writer from now on.
    pub fn forget(&mut self, metric: &str) {
        self.by_name.remove(metric);
        self.parts.remove(metric);
        self.rate.remove(metric);
    }

    /// The curve of the training loss: of several the one whose name is the likeliest; none of those that need not fall.
    #[must_use]
    pub fn training_loss(&self) -> Option<(&str, &Curve)> {
        let falls = |name: &str| loss_rank(name) > 0 && falls_while_learning(name);
        let losses = self.by_name.iter().filter(|(name, _)| !self.is_of_reinforcement && falls(name));
        losses
            .max_by_key(|(name, (_, curve))| (loss_rank(name), curve.count()))
            .map(|(name, (_, curve))| (&**name, curve))
    }

    /// From which step on the training loss has exploded, and its value there; none: it has not.
    #[must_use]
    pub fn exploded_from(&self) -> Option<(Step, f64)> {
        let (name, loss) = self.training_loss().filter(|_| !self.need_not_fall())?;
        looks::exploded(name, loss).filter(|_| regime::learns_again(loss, true).is_none())?;
        loss.rose
    }

    /// That a part of the loss is learned: where the whole of it rises, another part was given more weight.
    fn has_part_that_fell(&self) -> bool {
        self.parts.values().any(|(_, curve)| looks::fell(curve))
    }

    /// That the whole of the loss may rise while the model learns: what is made harder for the training alone, such as
    /// by mixing its examples, shows on held-out data, where the model is the best that it ever was.
    fn need_not_fall(&self) -> bool {
        self.is_of_reinforcement || self.has_part_that_fell() || self.held_out_ends_at_its_best(|_| true)
    }

    /// That a measure of held-out data of such a name ends next to its best value.
    fn held_out_ends_at_its_best(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        let held_out = |name: &str| held_out_measure(name).is_some() && is_meant(name);
        self.named().any(|(name, curve)| held_out(name) && regime::ends_at_its_best(curve, is_loss(name)))
    }

    fn level_of(&self, finding: &HealthFinding) -> Level {
        match &*finding.found_by {
            found_by if is_of_loss(found_by) => self.loss_level(),
            scores::WENT_BACK_NAME => self.score_level(),
            found_by if is_of_rate(found_by) => self.tested_range().map_or(Level::Counts, Level::Unclear),
            found_by if is_one_of(&[Detector::ValidationDivergence], found_by) => {
                let is_good = self.held_out_ends_at_its_best(is_score);
                if is_good { Level::NeedNotHold } else { Level::Counts }
            }
            _ => Level::Counts,
        }
    }

    fn loss_level(&self) -> Level {
        if self.need_not_fall() {
            return Level::NeedNotHold;
        }
        let changed = || regime::began_again(self.training_loss()?, true);
        self.tested_range().or_else(changed).map_or(Level::Counts, Level::Unclear)
    }

    fn tested_range(&self) -> Option<String> {
        self.rate.values().find_map(|(_, rate)| regime::tested_range(rate))
    }

    fn score_level(&self) -> Level {
        let went_back =
            |(name, curve): &NamedCurve<'_>| is_score(name) && scores::went_back(name, curve).is_some();
        let again: Option<Vec<String>> =
            self.named().filter(went_back).map(|score| regime::began_again(score, false)).collect();
        again.and_then(|all| all.into_iter().next()).map_or(Level::Counts, Level::Unclear)
    }

    /// That something was learned, by the loss or by a score.
    fn shows_learning(&self) -> bool {
        let has_risen = self.named().any(|(name, curve)| is_score(name) && scores::rose(curve));
        has_risen || self.training_loss().is_some_and(|(_, loss)| looks::fell(loss))
    }

    /// The first step of any curve.
    fn first_step(&self) -> Option<Step> {
        self.by_name.values().filter_map(|(_, curve)| Some(curve.first?.0)).min()
    }

    /// That the model guesses, by its training loss and its accuracies.
    #[must_use]
    pub fn chance_level(&self) -> Option<HealthFinding> {
        let accuracies: Vec<_> = self.named().filter(|(name, _)| is_accuracy(name)).collect();
        let loss = self.training_loss().filter(|_| !self.need_not_fall())?;
        guess::chance_level(loss, &accuracies, self.majority.as_ref())
    }

    fn named(&self) -> impl Iterator<Item = (&str, &Curve)> {
        self.by_name.iter().map(|(name, (_, curve))| (&**name, curve))
    }
}

/// Takes a value into the curves of those metrics that are kept, of the first rank that recorded each.
fn take(
    curves: &mut BTreeMap<String, (u32, Curve)>,
    most: usize,
    is_kept: impl Fn(&str) -> bool,
    (rank, metric): (u32, &str),
    (step, value): (Step, f64),
) {
    if let Some((first, curve)) = curves.get_mut(metric) {
        if *first == rank {
            curve.take(step, value);
        }
    } else if curves.len() < most && is_kept(metric) {
        let mut curve = Curve::default();
        curve.take(step, value);
        curves.insert(metric.to_owned(), (rank, curve));
    }
}

/// Two checkpoints of an attempt that hold the same weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmoved {
    /// The step of the first one that is left.
    pub first_step: Step,
    /// That of the last one.
    pub last_step: Step,
}

/// What is known of an attempt that has ended.
#[derive(Debug, Clone)]
pub struct HealthEvidence<'a> {
    /// Why it ended.
    pub reason: TerminationReason,
    /// The last step that it reported.
    pub last_step: Option<Step>,
    /// Whether it began with nothing learned.
    pub from_the_beginning: bool,
    /// Whether it trained on all of its data: on a small part of it a model need not leave the level of a guess.
    pub on_all_data: bool,
    pub curves: &'a Curves,
    /// Its losses, as far as they are not to be trusted.
    pub losses: &'a LossRecord,
    /// What detectors found that was not over at the end.
    pub standing: &'a [Firing],
    /// Its first and its last checkpoint, where they hold the same weights.
    pub unmoved: Option<Unmoved>,
    /// Where earlier good runs of the name ended, by the same loss.
    pub earlier: &'a [EarlierEnd],
    /// What its record has not, in a sentence; none: it has all that was recorded and printed.
    pub not_kept: Option<&'a str>,
}

/// Judges an attempt.
#[must_use]
pub fn judge(evidence: &HealthEvidence<'_>) -> (Health, HealthReport) {
    let looked_at = looked_at(evidence.curves);
    let (mut findings, unclear) = findings(evidence);
    findings.sort_by_key(|finding| (finding.health != Health::Broken, finding.first_step));
    let mut known = BTreeSet::new();
    findings.retain(|finding| known.insert(finding.found_by.clone()));
    findings.truncate(FINDINGS_MAX);
    let health = match findings.first() {
        Some(gravest) => gravest.health,
        None if looked_at.is_empty() || unclear.is_some() => Health::Unknown,
        None => Health::Ok,
    };
    let mut missing = missing(evidence, looked_at.is_empty());
    missing.extend(unclear);
    (health, HealthReport { findings, looked_at, missing })
}

/// What was found, and why a level that would be held against the attempt cannot be judged.
fn findings(evidence: &HealthEvidence<'_>) -> (Vec<HealthFinding>, Option<String>) {
    let (mut found, mut unclear) = (Vec::new(), None);
    for finding in all_findings(evidence) {
        match evidence.curves.level_of(&finding) {
            Level::Counts => found.push(finding),
            Level::NeedNotHold => {}
            Level::Unclear(why) => unclear = unclear.or(Some(why)),
        }
    }
    (found, unclear)
}

fn all_findings(evidence: &HealthEvidence<'_>) -> Vec<HealthFinding> {
    let curves = evidence.curves;
    let mut found: Vec<HealthFinding> = evidence.standing.iter().map(of_firing).collect();
    found.extend(stopped(evidence));
    found.extend(unmoved(evidence));
    found.extend(unmoved_updates(evidence));
    if let Some(loss) = curves.training_loss() {
        if evidence.from_the_beginning {
            let guesses = curves.chance_level().map(|found| match evidence.on_all_data {
                true => found,
                false => HealthFinding { health: Health::Suspect, ..found },
            });
            found.extend(guesses.or_else(|| looks::unlearned(loss.0, loss.1)));
            let exploded = looks::exploded(loss.0, loss.1);
            found.extend(exploded.or_else(|| looks::began_exploded(loss.0, loss.1)));
            found.extend(looks::went_back(loss.0, loss.1));
        }
        found.extend(looks::unlike_earlier(loss.0, loss.1, evidence.earlier));
    }
    let of_scores: Vec<NamedCurve<'_>> = curves.named().filter(|(name, _)| is_score(name)).collect();
    found.extend(of_scores.iter().filter_map(|(name, curve)| scores::went_back(name, curve)));
    if evidence.from_the_beginning && evidence.on_all_data {
        found.extend(scores::unmoving(&of_scores));
    }
    found.extend(pairs(curves).filter_map(|(pair, is_loss)| looks::gap(pair, is_loss)));
    // What a look found already is not said twice.
    found.extend(lost(evidence));
    found
}

/// Whether something is found by the level of a training loss.
fn is_of_loss(found_by: &str) -> bool {
    let detectors = [Detector::LossSpike, Detector::LossShift, Detector::Plateau];
    [LOSS_EXPLODED, LOSS_WENT_BACK].contains(&found_by) || is_one_of(&detectors, found_by)
}

/// Whether something is found by a learning rate that is too high.
fn is_of_rate(found_by: &str) -> bool {
    is_one_of(&[Detector::LearningRate, Detector::GradientExplosion], found_by)
}

fn is_one_of(detectors: &[Detector], found_by: &str) -> bool {
    detectors.iter().any(|detector| detector.as_str() == found_by)
}

/// A finding that is not over: non-finite values and what is critical have spoiled the weights.
fn of_firing(firing: &Firing) -> HealthFinding {
    let is_broken = firing.severity == DetectionSeverity::Critical
        && !matches!(firing.detector, Detector::MemoryCreep | Detector::Hang | Detector::Straggler);
    HealthFinding {
        found_by: firing.detector.to_string(),
        health: if is_broken { Health::Broken } else { Health::Suspect },
        first_step: Some(firing.first_step),
        evidence: firing.evidence.clone(),
    }
}

/// Weights that did not change over most of the attempt never did. Over a part of it they may rest after they have
/// learned, or because the learning rate is 0.
fn unmoved(evidence: &HealthEvidence<'_>) -> Option<HealthFinding> {
    let (found, curves) = (evidence.unmoved?, evidence.curves);
    let begin = match evidence.from_the_beginning {
        true => curves.first_step().unwrap_or(0),
        false => curves.first_step().unwrap_or(found.first_step),
    };
    // The metrics may count epochs where checkpoints count steps.
    let all_steps = evidence.last_step.unwrap_or(0).max(found.last_step).saturating_sub(begin);
    let spans_most = (found.last_step - found.first_step).saturating_mul(2) >= all_steps;
    let rests = curves.rate_is_zero_since.is_some_and(|since| since <= found.last_step);
    if !spans_most && (rests || curves.shows_learning()) {
        return None;
    }
    let (first, last) = (found.first_step, found.last_step);
    let (health, seen) = match spans_most {
        true => (
            Health::Broken,
            format!("the weights in the checkpoints of step {first} and of step {last} are the same"),
        ),
        false => {
            (Health::Suspect, format!("the weights did not change between step {first} and step {last}"))
        }
    };
    let found_by = UNMOVED_WEIGHTS.into();
    Some(HealthFinding { found_by, health, first_step: None, evidence: seen })
}

/// Parameters that no update changed, as a callback saw them. Where something was learned, others are trained; what is
/// resumed at the end of its schedule may rest.
fn unmoved_updates(evidence: &HealthEvidence<'_>) -> Option<HealthFinding> {
    let (curves, begins) = (evidence.curves, evidence.from_the_beginning);
    let updates = curves.unmoved_updates;
    if updates < UNMOVED_UPDATES_MIN || !begins && curves.rate_is_zero_since.is_some() {
        return None;
    }
    let is_broken = begins && !curves.shows_learning();
    Some(HealthFinding {
        found_by: UNMOVED_WEIGHTS.into(),
        health: if is_broken { Health::Broken } else { Health::Suspect },
        first_step: None,
        evidence: format!("no trained parameter changed in {updates} updates"),
    })
}

/// Losses at the last step that are not to be trusted.
fn lost(evidence: &HealthEvidence<'_>) -> Option<HealthFinding> {
    let found = evidence.losses.unsafe_at(evidence.last_step?)?;
    let (found_by, first_step) = (found.found_by, found.first_step);
    Some(HealthFinding { found_by, health: Health::Broken, first_step, evidence: found.why })
}

/// A policy ended it for what it computed.
fn stopped(evidence: &HealthEvidence<'_>) -> Option<HealthFinding> {
    let is_stopped =
        matches!(evidence.reason, TerminationReason::NumericDivergence | TerminationReason::Unhealthy);
    is_stopped.then(|| HealthFinding {
        found_by: evidence.reason.to_string(),
        health: Health::Broken,
        first_step: None,
        evidence: format!("it ended as `{}`", evidence.reason),
    })
}

/// The metrics that detectors saw to the end, the training loss first.
fn looked_at(curves: &Curves) -> Vec<String> {
    let main = curves.training_loss().map(|(name, _)| name);
    let others = curves.named().map(|(name, _)| name).filter(|name| Some(*name) != main);
    main.into_iter().chain(others.take(NAMED_MAX - 1)).map(str::to_owned).collect()
}

fn missing(evidence: &HealthEvidence<'_>, nothing: bool) -> Vec<String> {
    let mut missing = Vec::new();
    let lacks = |what: &str| match evidence.not_kept {
        Some(not_kept) => format!("{what} is in the record: {not_kept}"),
        None => format!("{what} was recorded or printed"),
    };
    if nothing {
        missing.push(lacks("no loss and no accuracy"));
    } else if evidence.curves.named().all(|(name, _)| loss_rank(name) == 0) {
        missing.push(lacks("no training loss"));
    } else if evidence.curves.training_loss().is_none() {
        missing.push("no whole curve was judged: its losses need not fall while a model learns".to_owned());
    }
    missing
}

/// A curve with its name.
type NamedCurve<'c> = (&'c str, &'c Curve);

/// Curves of training and of held-out data that are the same measure, and whether it is a loss.
fn pairs(curves: &Curves) -> impl Iterator<Item = ((NamedCurve<'_>, NamedCurve<'_>), bool)> {
    curves.named().filter_map(move |held_out| {
        let measure =
            held_out_measure(held_out.0).filter(|_| is_loss(held_out.0) || is_accuracy(held_out.0))?;
        let loss = measure == "loss";
        let train = match loss {
            true => curves.training_loss(),
            false => curves.named().find(|(name, _)| training_measure(name) == Some(measure)),
        }?;
        Some(((train, held_out), loss))
    })
}

/// What to try about a finding: of a detector what its runbook says.
#[must_use]
pub fn advice(found_by: &str) -> &'static [Line] {
    match found_by {
        CHANCE_LEVEL => lines! {
            "check that labels belong to their inputs, that the loss reaches the weights (a frozen layer, a detached tensor) and that the \
             learning rate is not next to nothing",
        },
        LOSS_EXPLODED | LOSS_WENT_BACK => lines! {
            "lower the learning rate, or clip gradients" [RateRaised],
            "look at the data of the step at which the loss rose" [DataNotFinite DataChanged],
        },
        "generalization_gap" => lines! {
            "it knows its examples by heart: stop earlier, take more data or regularize; check that both are prepared alike",
        },
        UNMOVED_WEIGHTS => lines! {
            "the optimizer holds other parameters than those that are saved, all are frozen, the learning rate is 0, or the updates are too \
             small for bfloat16: compare `model.parameters()` with its groups",
        },
        scores::WENT_BACK_NAME => lines! {
            "compare the checkpoint of its best step with the last one" if Checkpoint,
            "look at the data and the learning rate of the step from which on it is lower",
        },
        scores::UNMOVING => lines! {
            "see whether the model answers the same to every input, as one that always names the largest class, and whether the metric is \
             computed again each time",
        },
        "unlike_earlier_runs" => lines! { "see what changed since the last good run" },
        TENSORS => lines! {
            "look for the update that made the weights NaN or infinite: clip the gradients, leave an update out where they are not finite, \
             and print their norm",
        },
        _ => match found_by.parse::<Detector>() {
            Ok(detector) => symptom_of_detector(detector).try_first,
            Err(_) => lines! { "see why it was stopped" },
        },
    }
}
