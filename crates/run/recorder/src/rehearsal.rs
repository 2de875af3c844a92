//! Rehearsals: launches of kind `one_batch` and `overfit`, in which a loop repeats its first batches until the loss is
//! at its target or the steps are spent. docs/formats/rehearsal.md specifies what it records.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use trackway_core::Step;
use trackway_formats::EventKind;
use trackway_formats::rehearsal::{Fact, Group, HONOURED_KINDS, Model, Updates};

use crate::process::ProcessSlot;
use crate::process::inner::Inner;
use crate::recorder::Recorder;
use crate::rehearsal_plan::RehearsalPlan;

impl Recorder {
    /// The plan of the loop if this launch is a rehearsal; none in training and outside an attempt.
    #[must_use]
    pub fn rehearsal(&self) -> Option<RehearsalPlan> {
        self.shared().and_then(|inner| inner.settings.rehearsal)
    }

    /// The step whose batch this step must train on: itself, but for a rehearsal, which repeats the first ones.
    #[must_use]
    pub fn step_of_batch(&self, step: Step) -> Step {
        self.rehearsal().map_or(step, |plan| plan.step_of_batch(step))
    }

    /// Reports a fact that is only known inside the training process. Does nothing but in a rehearsal.
    pub fn rehearsal_fact(&self, fact: &Fact) {
        if self.rehearsal().is_none() {
            return;
        }
        // Facts are plain numbers and strings, so this is always an object with both fields.
        let Ok(value) = serde_json::to_value(fact) else { return };
        let about = value["about"].as_str().unwrap_or_default();
        self.record_event(
            EventKind::RehearsalFacts,
            None,
            &[("about", about), ("facts", &value["facts"].to_string())],
        );
    }

    /// Reports the loss of the best constant prediction, which ignores the input: the target is measured from it when
    /// it is less than the loss at the beginning.
    pub fn rehearsal_baseline(&self, loss: f64) {
        if let Some(inner) = self.shared().filter(|inner| inner.settings.rehearsal.is_some()) {
            inner.slot().losses.get().baseline = Some(loss).filter(|loss| *loss > 0.0);
        }
    }

    /// Records that this recorder supports rehearsals, so that the script is not ended as one that does not.
    pub(crate) fn shake_hands(&self, sdk: &str) {
        if self.rehearsal().is_some() {
            let fields = [("sdk", sdk), ("version", env!("CARGO_PKG_VERSION")), ("honours", HONOURED_KINDS)];
            self.record_event(EventKind::RehearsalHandshake, None, &fields);
        }
    }
}

impl Inner {
    /// Ends the loop once the loss is at its target.
    pub(crate) fn watch_loss(&self, slot: &ProcessSlot, step: Step, values: &[(&str, f64)]) {
        let Some(plan) = self.settings.rehearsal else { return };
        let mut losses = slot.losses.get();
        values.iter().for_each(|(name, value)| losses.take(&plan, name, *value));
        if losses.reported {
            return;
        }
        let Some((mean, target)) = losses.reached(&plan) else { return };
        losses.reported = true;
        let fields = [("loss", &*mean.to_string()), ("target", &*target.to_string())];
        slot.record_event(EventKind::RehearsalTargetReached, Some(step), &fields);
        slot.stop_asked.store(true, Ordering::Relaxed);
        slot.stop_wants_checkpoint.store(true, Ordering::Relaxed);
    }
}

/// One parameter before and after an update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParameterUpdate<'a> {
    pub name: &'a str,
    /// Its numbers before.
    pub before: &'a [f32],
    /// Its numbers after; as many.
    pub after: &'a [f32],
    /// The norm of its gradient; none when it got none.
    pub gradient_norm: Option<f64>,
}

/// Follows the first updates of a training loop for a rehearsal, where the recorder cannot see them by itself.
///
/// Hand in every parameter that is to be trained, for a few updates; more only cost time.
#[derive(Debug, Default)]
pub struct UpdateWatch {
    parameters: BTreeMap<String, Parameter>,
    steps: u64,
    update_ratio: Option<f64>,
    gradient_norm: Option<f64>,
    learning_rate: Option<f64>,
}

#[derive(Debug, Default)]
struct Parameter {
    elements: u64,
    moved: bool,
    had_gradient: bool,
    nonzero: bool,
    nonfinite: bool,
}

impl UpdateWatch {
    /// Takes one update in.
    pub fn see(&mut self, learning_rate: f64, updates: &[ParameterUpdate<'_>]) {
        self.steps += 1;
        let (mut changed, mut size, mut gradient) = (0.0, 0.0, 0.0);
        for update in updates {
            let pairs =
                || update.before.iter().zip(update.after).map(|(was, is)| (f64::from(*was), f64::from(*is)));
            changed += pairs().map(|(was, is)| (is - was).powi(2)).sum::<f64>();
            size += pairs().map(|(was, _)| was.powi(2)).sum::<f64>();
            gradient += update.gradient_norm.unwrap_or(0.0).powi(2);
            let known = self.parameters.entry(update.name.into()).or_default();
            known.elements = update.after.len() as u64;
            known.moved |= pairs().any(|(was, is)| was.to_bits() != is.to_bits());
            known.had_gradient |= update.gradient_norm.is_some();
            known.nonzero |= update.gradient_norm.is_some_and(|norm| norm != 0.0);
            known.nonfinite |= update.gradient_norm.is_some_and(|norm| !norm.is_finite());
        }
        if size > 0.0 {
            let ratio = (changed / size).sqrt();
            self.update_ratio = Some(self.update_ratio.map_or(ratio, |most| most.max(ratio)));
        }
        self.gradient_norm = self.gradient_norm.or(Some(gradient.sqrt()));
        self.learning_rate = Some(self.learning_rate.map_or(learning_rate, |most| most.max(learning_rate)));
    }

    /// Updates taken in.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The facts to report with [`Recorder::rehearsal_fact`]; `class` names the model.
    #[must_use]
    pub fn facts(&self, class: &str) -> [Fact; 2] {
        let group = |chosen: fn(&Parameter) -> bool| {
            let mut group = Group::default();
            let found = self.parameters.iter().filter(|(_, parameter)| chosen(parameter));
            found.for_each(|(name, parameter)| group.add(name, parameter.elements));
            group
        };
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let updates = Updates {
            backward_count: self.steps,
            optimizer_steps: self.steps,
            optimized: group(|_| true),
            without_gradient: group(|parameter| !parameter.had_gradient),
            zero_gradient: group(|parameter| parameter.had_gradient && !parameter.nonzero),
            nonfinite_gradient: group(|parameter| parameter.nonfinite),
            unmoved: group(|parameter| !parameter.moved),
            gradient_norm: finite(self.gradient_norm),
            update_ratio: finite(self.update_ratio),
            learning_rate: self.learning_rate,
            ..Updates::default()
        };
        let model = Model { classes: vec![class.into()], parameters: group(|_| true), ..Model::default() };
        [Fact::Updates(updates), Fact::Model(model)]
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::LaunchKind;

    use super::*;
    use crate::tests::Attempt;

    fn attempt(kind: LaunchKind, batches: u64) -> Attempt {
        let mut attempt = Attempt::new();
        attempt.settings.rehearsal =
            Some(RehearsalPlan { kind, batches, target_share: Some(0.5), target_loss: None });
        attempt.settings.max_steps = Some(100);
        attempt.settings.at_steps = vec![100];
        attempt
    }

    /// Proves that a loop in a rehearsal gets the batches to repeat, and ends with a checkpoint once the mean loss over
    /// all of them is at the target, however early one of them was.
    #[test]
    fn a_rehearsal_ends_at_its_target() {
        let attempt = attempt(LaunchKind::Overfit, 2);
        let run = attempt.attach();
        assert_eq!([1, 2, 3, 4, 5].map(|step| run.step_of_batch(step)), [1, 2, 1, 2, 1]);
        for (step, loss) in [(1, 4.0), (2, 2.0), (3, 1.1), (4, 2.95), (5, 0.0)] {
            run.log(step, &[("loss", loss), ("val_loss", 0.0)]);
            let at_target = step == 5;
            assert_eq!((run.checkpoint_due(step), run.should_stop()), (at_target, at_target), "step {step}");
        }
        let reported = attempt.events(EventKind::RehearsalTargetReached.as_str());
        assert_eq!((reported.len(), reported[0].step), (1, Some(5)));
    }

    /// Proves that the target is measured from the best constant answer when the loss begins far above it, and that
    /// the loss the recorder saw counts only until the script names one.
    #[test]
    fn the_target_is_measured_from_the_baseline() {
        let attempt = attempt(LaunchKind::OneBatch, 1);
        let run = attempt.attach();
        run.rehearsal_baseline(2.0);
        run.log(1, &[("loss", 5_000.0)]);
        run.log(2, &[("loss", 1.5), (trackway_formats::rehearsal::SEEN_LOSS, 0.0)]);
        assert!(!run.should_stop());
        run.log(3, &[("loss", 0.9)]);
        assert!(run.checkpoint_due(3) && run.should_stop());

        let mut attempt = self::attempt(LaunchKind::OneBatch, 1);
        attempt.settings.rehearsal.as_mut().unwrap().target_loss = Some(0.25);
        let run = attempt.attach();
        run.log(1, &[("loss", 0.3)]);
        assert!(!run.should_stop());
        run.log(2, &[("loss", 0.25)]);
        assert!(run.checkpoint_due(2) && run.should_stop());
    }

    /// Proves what is made of updates: which parameter moved, which got no gradient, and the greatest relative change.
    #[test]
    fn updates_are_followed() {
        let mut watch = UpdateWatch::default();
        let update =
            |name, before, after, gradient_norm| ParameterUpdate { name, before, after, gradient_norm };
        watch
            .see(0.1, &[update("a", &[3.0, 4.0], &[3.0, 4.5], Some(2.0)), update("b", &[0.0], &[0.0], None)]);
        watch
            .see(0.2, &[update("a", &[3.0, 4.5], &[3.0, 4.5], Some(0.0)), update("b", &[0.0], &[0.0], None)]);
        let [Fact::Updates(updates), Fact::Model(model)] = watch.facts("Toy") else { panic!("other facts") };
        assert_eq!((updates.update_ratio, updates.gradient_norm), (Some(0.1), Some(2.0)));
        assert_eq!(
            (updates.unmoved.names, updates.without_gradient.names),
            (vec!["b".into()], vec!["b".into()])
        );
        assert_eq!(
            (model.parameters.elements, updates.zero_gradient.tensors, updates.learning_rate),
            (3, 0, Some(0.2))
        );
    }

    /// Proves that a training attempt is not affected by rehearsals: no batch is repeated, and nothing is recorded.
    #[test]
    fn training_is_not_touched() {
        let attempt = Attempt::new();
        let run = attempt.attach();
        run.shake_hands("rust");
        run.rehearsal_fact(&Fact::Inputs(Vec::new()));
        run.log(1, &[("loss", 0.0)]);
        assert_eq!((run.step_of_batch(7), run.rehearsal(), run.should_stop()), (7, None, false));
        assert!(
            attempt.events(EventKind::RehearsalFacts.as_str()).is_empty()
                && attempt.events(EventKind::RehearsalHandshake.as_str()).is_empty()
        );
    }
}
