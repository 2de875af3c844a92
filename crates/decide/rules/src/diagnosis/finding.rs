//! What the observations of a diagnosis mean, as a verdict and a sentence.

use trackway_core::text::quoted_list;
use trackway_core::{DiagnosisKind, DiagnosisVerdict, Step, TerminationReason};

use super::facts::{Facts, FirstGradient, Growth, Numeric, Share, TensorFacts, Throughput};
use super::hang::{RankStack, hang_finding};
use super::{Plan, Symptom};

/// Parts and operations that a sentence names.
const NAMED_MAX: usize = 3;
/// Tensors of a batch or an input that a sentence describes.
const TENSORS_MAX: usize = 8;
/// From this on a gradient grew so much that it is worth naming: times its usual norm.
const GROWTH_MIN: f64 = 5.0;

/// What the launch of a diagnosis did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiagnosisLaunch {
    /// Why it ended.
    pub reason: Option<TerminationReason>,
    /// The most specific evidence of that.
    pub evidence: String,
    /// The last step it reported.
    pub last_step: Option<Step>,
    /// The step that it continued from, according to the script.
    pub resumed_from_step: Option<Step>,
    /// Whether the script used Trackway's recorder.
    pub has_sdk: bool,
    /// Whether a person stopped it.
    pub stopped: bool,
    /// What the script recorded.
    pub facts: Facts,
    /// Where each process was, at the last look.
    pub stacks: Vec<RankStack>,
    /// How often the stacks were looked at.
    pub looks: usize,
    /// Lines of a collective library.
    pub warnings: Vec<String>,
}

/// What a diagnosis showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub verdict: DiagnosisVerdict,
    pub sentence: String,
    pub step: Option<Step>,
    pub batch: Option<u64>,
}

impl Finding {
    fn new(verdict: DiagnosisVerdict, sentence: String) -> Self {
        Self { verdict, sentence, step: None, batch: None }
    }
}

/// What follows from the observations.
#[must_use]
pub fn finding(symptom: &Symptom, plan: &Plan, launched: &DiagnosisLaunch) -> Finding {
    let found = match symptom.kind {
        DiagnosisKind::Numeric => numeric(&launched.facts),
        DiagnosisKind::Throughput => throughput(launched),
        DiagnosisKind::Hang => hang(launched),
    };
    found.unwrap_or_else(|| without(symptom, plan, launched))
}

/// Nothing was found: because it did not happen, could not be seen, or the launch ended before.
fn without(symptom: &Symptom, plan: &Plan, launched: &DiagnosisLaunch) -> Finding {
    let ended = ending(launched);
    let blind = launched.facts.blind.join("; ");
    let blind = if blind.is_empty() { String::new() } else { format!(" ({blind})") };
    if launched.stopped {
        return Finding::new(DiagnosisVerdict::Incomplete, "the diagnosis was stopped".into());
    }
    if !launched.has_sdk && symptom.kind != DiagnosisKind::Hang {
        let why = format!(
            "the script never called Trackway's recorder, so nothing in it can be observed; it {ended}"
        );
        return Finding::new(DiagnosisVerdict::NotObserved, why);
    }
    if symptom.kind == DiagnosisKind::Numeric && launched.facts.observed.is_none() {
        let why = format!("only PyTorch can be observed, and the script did not use it{blind}; it {ended}");
        return Finding::new(DiagnosisVerdict::NotObserved, why);
    }
    let last = launched.last_step.unwrap_or(0);
    if symptom.kind == DiagnosisKind::Throughput {
        let why = format!("too few steps were made to profile them, up to step {last}{blind}; it {ended}");
        return Finding::new(DiagnosisVerdict::Incomplete, why);
    }
    let needed = symptom.step.unwrap_or(plan.until_step);
    if last < needed {
        let why = format!("the launch {ended} at step {last}, before step {needed}{blind}");
        return Finding::new(DiagnosisVerdict::Incomplete, why);
    }
    let grown = largest_growth(&launched.facts);
    let grown = grown.map(|growth| format!("; the largest growth: {}", growth_sentence(growth)));
    let why = format!(
        "the symptom did not come again up to step {last}{blind}: it may depend on what differs between launches, such as the order of \
         data, random numbers that are not restored, or the machine{}",
        grown.unwrap_or_default()
    );
    Finding::new(DiagnosisVerdict::NotReproduced, why)
}

fn ending(launched: &DiagnosisLaunch) -> String {
    let reason = launched.reason.unwrap_or(TerminationReason::Unknown);
    match reason.is_success() {
        true => "ended by itself".into(),
        false => format!("ended as `{reason}` ({})", launched.evidence),
    }
}

fn numeric(facts: &Facts) -> Option<Finding> {
    let first = facts.numeric.iter().min_by_key(|one| (one.step, one.rank));
    if let Some(first) = first {
        let sentence = numeric_sentence(first);
        return Some(Finding {
            verdict: DiagnosisVerdict::Found,
            sentence,
            step: first.step,
            batch: first.batch,
        });
    }
    let grown = largest_growth(facts)?;
    (ratio(grown) >= GROWTH_MIN).then(|| Finding {
        verdict: DiagnosisVerdict::Found,
        sentence: format!("every value stayed finite; {}", growth_sentence(grown)),
        step: grown.step,
        batch: grown.batch,
    })
}

fn largest_growth(facts: &Facts) -> Option<&Growth> {
    facts.growth.iter().max_by(|one, other| ratio(one).total_cmp(&ratio(other)))
}

fn ratio(growth: &Growth) -> f64 {
    match (growth.norm, growth.usual) {
        (Some(norm), Some(usual)) if usual > 0.0 => norm / usual,
        _ => 0.0,
    }
}

/// `the gradient of `head.weight` grew the most: 81 times its usual norm, in step 31 on batch 30`
fn growth_sentence(growth: &Growth) -> String {
    let parameter = growth.parameter.as_deref().unwrap_or("a parameter that is not known");
    let at = at(growth.step, growth.batch, growth.rank);
    let batch = tensors("the batch", &growth.batch_tensors);
    format!("the gradient of `{parameter}` grew to {:.3} times its usual norm{at}{batch}", ratio(growth))
}

/// Where a value came first, in which step and on which batch.
fn numeric_sentence(first: &Numeric) -> String {
    let value = first.value.as_deref().unwrap_or("NaN");
    let operation = first.operation.as_deref().map(|name| format!("`{name}`"));
    let source = first.source.as_deref().map(|line| format!(" at {line}")).unwrap_or_default();
    let layer = match (&first.layer, &first.layer_type) {
        (Some(name), Some(class)) => Some(format!("`{name}` ({class})")),
        (Some(name), None) => Some(format!("`{name}`")),
        (None, class) => class.as_deref().map(|class| format!("the model ({class})")),
    };
    let in_layer = layer.as_deref().map(|layer| format!(" in layer {layer}")).unwrap_or_default();
    let operation_or = |other: &str| operation.clone().unwrap_or_else(|| other.to_owned());
    let place = match first.place.as_deref() {
        Some("input") => format!("is in the input of {}", layer.as_deref().unwrap_or("the model")),
        Some("loss") => format!("is the result of {}{source}, outside all layers", operation_or("the loss")),
        Some("backward") => {
            format!("is a gradient: {} of the backward pass{in_layer}{source}", operation_or("an operation"))
        }
        Some("update") => {
            format!(
                "is in `{}` after an update with finite gradients",
                first.parameter.as_deref().unwrap_or("a parameter")
            )
        }
        Some("parameter") => format!(
            "is in the parameters before the first observed step: {}",
            quoted_list(first.bad_parameters.iter().take(NAMED_MAX))
        ),
        _ => format!("is the output of {}{in_layer}{source}", operation_or("an operation")),
    };
    let spoiled = match first.bad_parameters.first() {
        Some(name) if first.place.as_deref() != Some("parameter") => {
            format!(", whose `{name}` was not finite already")
        }
        _ => String::new(),
    };
    let inputs = tensors("its input", &first.inputs);
    let batch = tensors("the batch", &first.batch_tensors);
    let gradient = first.gradient.as_ref().map(gradient_sentence).unwrap_or_default();
    format!(
        "the first {value} {place}{spoiled}{}{inputs}{gradient}{batch}",
        at(first.step, first.batch, first.rank)
    )
}

fn at(step: Option<Step>, batch: Option<u64>, rank: u32) -> String {
    let step = step.map(|step| format!(", in step {step}")).unwrap_or_default();
    let batch = batch.map(|batch| format!(" on batch {batch}")).unwrap_or_default();
    let rank = if rank > 0 { format!(" of rank {rank}") } else { String::new() };
    format!("{step}{batch}{rank}")
}

fn gradient_sentence(gradient: &FirstGradient) -> String {
    let Some(parameter) = &gradient.parameter else { return String::new() };
    let count = match (gradient.nonfinite, gradient.of) {
        (Some(some), Some(all)) => format!(" ({some} of {all} parameters)"),
        _ => String::new(),
    };
    format!("; the first gradient that is not finite is that of `{parameter}`{count}")
}

/// `; the batch: 0 to 1, mean 0.5, 0 NaN`; of several tensors each with its place, counted from 1, and its name.
fn tensors(what: &str, all: &[TensorFacts]) -> String {
    let alone = all.len() == 1;
    let described = all.iter().take(TENSORS_MAX).enumerate().filter_map(|(place, one)| {
        let numbers = in_numbers(one)?;
        let name = one.name.as_deref().filter(|name| name.parse::<u64>().is_err());
        let name = name.map(|name| format!(" (`{name}`)")).unwrap_or_default();
        Some(if alone { numbers } else { format!("tensor {}{name}: {numbers}", place + 1) })
    });
    let mut parts: Vec<String> = described.collect();
    if parts.is_empty() {
        return String::new();
    }
    let more = all.len().saturating_sub(TENSORS_MAX);
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    format!("; {what}: {}", parts.join(", "))
}

/// A tensor in numbers; none where nothing is known of its values.
fn in_numbers(one: &TensorFacts) -> Option<String> {
    let mut parts = Vec::new();
    if let (Some(min), Some(max)) = (one.min, one.max) {
        parts.push(format!("{} to {}", short(min), short(max)));
    }
    parts.extend(one.mean.map(|mean| format!("mean {}", short(mean))));
    parts.extend(one.nan_count.map(|count| format!("{count} NaN")));
    parts.extend(one.infinite_count.filter(|count| *count > 0).map(|count| format!("{count} infinite")));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// A value with four significant digits, without trailing zeros.
fn short(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-3..1e6).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    let digits = if magnitude >= 100.0 { 1 } else { 4 };
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn throughput(launched: &DiagnosisLaunch) -> Option<Finding> {
    // The slowest rank is what the others wait for.
    let seconds = |one: &Throughput| one.step_seconds.unwrap_or(0.0);
    let slowest =
        launched.facts.throughput.iter().max_by(|one, other| seconds(one).total_cmp(&seconds(other)));
    if let Some(slowest) = slowest {
        return Some(Finding::new(DiagnosisVerdict::Found, throughput_sentence(slowest)));
    }
    let placed: Vec<String> = launched.stacks.iter().filter_map(RankStack::sentence).collect();
    if placed.is_empty() || launched.has_sdk || launched.stopped {
        return None;
    }
    let looks = launched.looks;
    let sentence = format!(
        "the script does not use Trackway's package, so only its stacks were looked at, {looks} times; at the last look: {}",
        placed.join("; ")
    );
    Some(Finding::new(DiagnosisVerdict::Found, sentence))
}

/// `a step takes 0.12 s (median of 10): 83 % data loading, 9 % forward; most in: …`
fn throughput_sentence(found: &Throughput) -> String {
    let seconds = found.step_seconds.map(|seconds| format!("a step takes {} s", short(seconds)));
    let seconds = seconds.unwrap_or_else(|| "the seconds of a step are not known".into());
    let parts = percents(&found.parts, usize::MAX);
    let parts = if parts.is_empty() { String::new() } else { format!(": {parts}") };
    let top = percents(&found.top, NAMED_MAX);
    let top = if top.is_empty() { String::new() } else { format!("; most in {top}") };
    let by = found.by.as_deref().map(|by| format!(" (by {by})")).unwrap_or_default();
    let rank = if found.rank > 0 { format!(" on rank {}", found.rank) } else { String::new() };
    let why = found.why.as_deref().map(|why| format!("; not seen: {why}")).unwrap_or_default();
    format!("{seconds}{rank}, median of {}{parts}{top}{by}{why}", found.steps)
}

fn percents(shares: &[Share], count: usize) -> String {
    let named = shares.iter().filter(|share| share.fraction >= 0.005).take(count);
    named
        .map(|share| format!("{} {:.0} %", share.name, share.fraction * 100.0))
        .collect::<Vec<_>>()
        .join(", ")
}

fn hang(launched: &DiagnosisLaunch) -> Option<Finding> {
    let hung = launched.reason == Some(TerminationReason::Hang);
    if launched.stopped || !hung && launched.warnings.is_empty() {
        return None;
    }
    let step = launched.last_step;
    let sentence = hang_finding(&launched.stacks, &launched.facts.collectives, &launched.warnings, step);
    Some(Finding { step, ..Finding::new(DiagnosisVerdict::Found, sentence) })
}
