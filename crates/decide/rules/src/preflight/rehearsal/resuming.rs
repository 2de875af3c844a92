//! Whether the checkpoint of a rehearsal is one that a second launch can continue from.

use trackway_core::{Confidence, LaunchKind};

use super::{Cause, Diagnosis, LaunchEvidence, Learned, Learning, RehearsalEvidence, Weight};

/// What is wrong with saving and resuming.
pub(super) fn of(evidence: &RehearsalEvidence, learning: &Learning) -> Vec<Cause> {
    let launch = &evidence.learned;
    if evidence.kind != LaunchKind::OneBatch
        || !launch.ending.in_order
        || learning.learned == Learned::NotFinite
    {
        return Vec::new();
    }
    let Some(step) = launch.committed_step else { return vec![not_saved(launch)] };
    let Some(resumed) = &evidence.resumed else { return Vec::new() };
    if !resumed.ending.in_order {
        let message = format!("the launch that was to resume from step {step} {}", resumed.ending.words);
        let action = "a run that cannot resume starts over after every interruption: fix the error that `trackway logs` shows";
        return vec![not_resumed(message, action)];
    }
    if resumed.resumed_from_step.is_none() {
        let message = format!("step {step} was committed, but the next launch started from the beginning");
        return vec![not_resumed(message, "call `run.resume(model=…, optimizer=…)` before the loop")];
    }
    restored(launch, resumed, learning)
}

fn not_resumed(message: String, action: &'static str) -> Cause {
    let (diagnosis, confidence) = (Diagnosis::NotResumed, Confidence::Certain);
    Cause { diagnosis, confidence, weight: Weight::Blocks, message, action }
}

fn not_saved(launch: &LaunchEvidence) -> Cause {
    let tried = launch.facts.saved.is_some();
    Cause {
        diagnosis: Diagnosis::NotSaved,
        confidence: Confidence::Certain,
        weight: Weight::Warns,
        message: if tried {
            "a checkpoint was started but not committed".into()
        } else {
            "no checkpoint was saved, so the run starts from the beginning after any failure".into()
        },
        action: "call `run.checkpoint(step)` at the end of each step",
    }
}

fn restored(launch: &LaunchEvidence, resumed: &LaunchEvidence, learning: &Learning) -> Vec<Cause> {
    let (saved, began) = (launch.facts.saved.as_ref(), resumed.facts.resumed.as_ref());
    let mut causes = Vec::new();
    if let Some((saved, began)) = saved.zip(began) {
        let differ = |left: &std::collections::BTreeMap<String, String>,
                      right: &std::collections::BTreeMap<_, _>| {
            left.iter()
                .find(|(name, digest)| right.get(*name).is_some_and(|found| found != *digest))
                .map(|(name, _)| name.clone())
        };
        if let Some(name) = differ(&saved.models, &began.models) {
            causes.push(not_restored(
                Diagnosis::ModelNotRestored,
                Confidence::Certain,
                &format!(
                    "`{name}` differs from what was saved at step {}; the components are {}",
                    saved.step,
                    listed(&saved.components)
                ),
            ));
        }
        if let Some(name) = differ(&saved.optimizers, &began.optimizers) {
            causes.push(not_restored(
                Diagnosis::OptimizerNotRestored,
                Confidence::Certain,
                &format!(
                    "the state of `{name}` differs from what was saved at step {}; the components are {}",
                    saved.step,
                    listed(&saved.components)
                ),
            ));
        }
    }
    let compared = began.is_some_and(|state| !state.models.is_empty());
    let first_loss =
        resumed.losses.values().filter_map(|values| values.first()).map(|(_, loss)| *loss).next();
    if let (false, Some(loss), Learned::ToTarget) = (compared, first_loss, learning.learned)
        && loss > (learning.first + learning.best) / 2.0
    {
        causes.push(not_restored(
            Diagnosis::ModelNotRestored,
            Confidence::Likely,
            &format!(
                "the loss was {} before the checkpoint and is {} after the resume",
                super::learning::number(learning.last),
                super::learning::number(loss)
            ),
        ));
    }
    causes
}

fn not_restored(diagnosis: Diagnosis, confidence: Confidence, message: &str) -> Cause {
    let model = diagnosis == Diagnosis::ModelNotRestored;
    Cause {
        diagnosis,
        confidence,
        weight: if model { Weight::Blocks } else { Weight::Warns },
        message: message.into(),
        action: if model {
            "pass the model to `run.resume(model=…)`, and do not create it again afterwards"
        } else {
            "pass the optimizer to `run.resume(optimizer=…)`: without its moments a resumed run diverges from an uninterrupted one"
        },
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
