//! From the tree to `[preflight]`, `[governance]` and `[training]`.

use std::collections::BTreeMap;

use trackway_core::SignOff;
use trackway_core::checks::Severity;

use super::{GovernanceSection, LoaderFacts, PreflightSection, SkippedCheck, TrainingSection};
use crate::runfile::keys::tree::{Node, Value};
use crate::runfile::keys::values::{amount, count, flag, list, one_of, positive_duration, text, whole};
use crate::runfile::keys::walker::{Fault, Problems, Scope};
use crate::runfile::training::{Attention, Loss, Master, Optimizer, Precision, Recompute, Strategy};

/// No run has more of anything that is counted in a step.
const MAX_COUNT: u64 = 1 << 24;
/// No model with more parameters has been trained.
const MAX_PARAMETERS: f64 = 1e15;
const MAX_RANK: u64 = 1024;

pub(crate) fn preflight(scope: &Scope, problems: &mut Problems) -> PreflightSection {
    PreflightSection {
        one_batch: scope.read("one_batch", problems, flag),
        overfit_batches: scope.read("overfit_batches", problems, count(1)),
        label_noise: scope.read("label_noise", problems, flag).unwrap_or(false),
        require: scope.read("require", problems, list(0, text)).unwrap_or_default(),
        skip: tables(
            scope,
            "skip",
            "preflight.skip",
            "{ check = \"data.drift\", why = \"…\" }",
            problems,
            skip,
        ),
        severity: scope.part("severity", problems, severities).unwrap_or_default(),
        rehearsal_timeout_seconds: scope.read("rehearsal_timeout", problems, positive_duration),
        target_loss: scope.read("target_loss", problems, amount(true)),
    }
}

fn skip(scope: &Scope, problems: &mut Problems) -> SkippedCheck {
    scope.require("check", "\"data.drift\"", problems);
    scope.require("why", "\"…\"", problems);
    SkippedCheck {
        check: scope.read("check", problems, text).unwrap_or_default(),
        why: scope.read("why", problems, text).unwrap_or_default(),
    }
}

fn severities(scope: &Scope, problems: &mut Problems) -> BTreeMap<String, Severity> {
    let mut severities = BTreeMap::new();
    for (name, _) in scope.entries() {
        let severity = scope.read(name, problems, one_of(Severity::WORDS));
        severities.extend(severity.map(|severity| (name.clone(), severity)));
    }
    severities
}

pub(crate) fn governance(scope: &Scope, problems: &mut Problems) -> GovernanceSection {
    let example = "{ column = \"email\", kinds = [\"email\"], approved_by = \"…\", why = \"…\" }";
    let personal_data =
        tables(scope, "personal_data", "governance.personal_data", example, problems, approval);
    GovernanceSection { personal_data }
}

fn approval(scope: &Scope, problems: &mut Problems) -> SignOff {
    for (key, example) in
        [("column", "\"email\""), ("kinds", "[\"email\"]"), ("approved_by", "\"…\""), ("why", "\"…\"")]
    {
        scope.require(key, example, problems);
    }
    SignOff {
        column: scope.read("column", problems, text).unwrap_or_default(),
        kinds: scope.read("kinds", problems, list(1, text)).unwrap_or_default(),
        approved_by: scope.read("approved_by", problems, text).unwrap_or_default(),
        why: scope.read("why", problems, text).unwrap_or_default(),
        until: scope.read("until", problems, day),
    }
}

/// A day as `YYYY-MM-DD`, so that days compare as their strings do.
fn day(node: &Node) -> Result<String, Fault> {
    let given = text(node)?;
    let digits = |at: std::ops::Range<usize>| {
        given.get(at).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<u32>().ok()
    };
    let bars = given.len() == 10 && given.get(4..5) == Some("-") && given.get(7..8) == Some("-");
    let fits = match (digits(0..4), digits(5..7), digits(8..10)) {
        (Some(_), Some(month), Some(day)) => (1..=12).contains(&month) && (1..=31).contains(&day),
        _ => false,
    };
    if bars && fits {
        Ok(given)
    } else {
        Err(node.fault(format!("must be a date, not `{given}`")).hint("such as `\"2027-01-31\"`"))
    }
}

/// A list of tables that all obey one schema.
pub(crate) fn tables<T>(
    scope: &Scope,
    key: &str,
    schema: &str,
    example: &str,
    problems: &mut Problems,
    read: impl Fn(&Scope, &mut Problems) -> T,
) -> Vec<T> {
    let Some(node) = scope.node(key) else { return Vec::new() };
    let Value::List(items) = &node.value else {
        scope.read(key, problems, |node| Err::<(), _>(node.not(&format!("a list such as `[{example}]`"))));
        return Vec::new();
    };
    let mut found = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{}[{index}]", scope.path_of(key));
        if let Some(entry) = Scope::open(item, schema, path, item.place.clone(), problems) {
            found.push(read(&entry, problems));
        }
    }
    found
}

pub(crate) fn training(scope: &Scope, problems: &mut Problems) -> TrainingSection {
    let counted = |key: &str, problems: &mut Problems| scope.read(key, problems, whole(1, MAX_COUNT));
    let number = |key: &str, problems: &mut Problems| scope.read(key, problems, amount(true));
    TrainingSection {
        parameters: scope.read("parameters", problems, parameters),
        model_config: scope.read("model_config", problems, text),
        precision: scope.read("precision", problems, one_of(Precision::WORDS)),
        loss_scaling: scope.read("loss_scaling", problems, flag),
        gradient_clip_norm: number("gradient_clip_norm", problems),
        warmup_steps: scope.read("warmup_steps", problems, whole(0, u64::MAX)),
        total_steps: scope.read("total_steps", problems, whole(1, u64::MAX)),
        strategy: scope.read("strategy", problems, one_of(Strategy::WORDS)),
        nodes: scope.read("nodes", problems, count(1)),
        preemptible: scope.read("preemptible", problems, flag),
        micro_batch: counted("micro_batch", problems),
        accumulate: counted("accumulate", problems),
        sequence_length: counted("sequence_length", problems),
        optimizer: scope.read("optimizer", problems, one_of(Optimizer::WORDS)),
        master_weights: scope.read("master_weights", problems, one_of(Master::WORDS)),
        recompute: scope.read("recompute", problems, one_of(Recompute::WORDS)),
        attention: scope.read("attention", problems, one_of(Attention::WORDS)),
        loss: scope.read("loss", problems, one_of(Loss::WORDS)),
        lora_rank: scope.read("lora_rank", problems, whole(1, MAX_RANK)),
        loader: scope.part("loader", problems, loader_facts),
        hours_expected: number("hours_expected", problems),
        stored_gb: number("stored_gb", problems),
        usd_per_stored_gb: number("usd_per_stored_gb", problems),
        moved_gb: number("moved_gb", problems),
        usd_per_moved_gb: number("usd_per_moved_gb", problems),
    }
}

/// A count that may be written as `7e9`.
fn parameters(node: &Node) -> Result<u64, Fault> {
    let given = amount(false)(node)?;
    if (1.0..=MAX_PARAMETERS).contains(&given) {
        Ok(given.round() as u64)
    } else {
        Err(node.fault(format!("must be a number from 1 to 1e15, not {given}")))
    }
}

fn loader_facts(scope: &Scope, problems: &mut Problems) -> LoaderFacts {
    LoaderFacts {
        workers: scope.read("workers", problems, count(0)),
        pin_memory: scope.read("pin_memory", problems, flag),
        prefetch: scope.read("prefetch", problems, count(0)),
        persistent_workers: scope.read("persistent_workers", problems, flag),
    }
}
