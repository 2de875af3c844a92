use std::collections::HashMap;

use candle_core::Tensor;
use candle_core::backprop::GradStore;
use trackway_recorder::facts::{Batches, Fact, LossFunction};
use trackway_recorder::{ParameterUpdate, Recorder, UpdateWatch};

use crate::{Job, JobError};

/// The first updates are followed, and then ever fewer: looking at all weights costs as much as an update.
const FIRST_UPDATES: u64 = 5;

/// What a rehearsal (`trackway rehearse`) reports: the labels, and what the first updates do to each weight. In training
/// it does nothing.
pub struct Rehearsing<'a> {
    run: &'a Recorder,
    watch: UpdateWatch,
    updates: u64,
    before: HashMap<String, Vec<f32>>,
}

impl<'a> Rehearsing<'a> {
    /// For the launch of this recorder.
    #[must_use]
    pub fn new(run: &'a Recorder) -> Self {
        Self { run, watch: UpdateWatch::default(), updates: 0, before: HashMap::new() }
    }

    fn follows(&self) -> bool {
        let sampled = self.updates <= FIRST_UPDATES || self.updates.is_power_of_two();
        sampled && self.run.rehearsal().is_some()
    }

    /// Before an update: the batch, its loss, and the weights as they are.
    ///
    /// # Errors
    /// When candle cannot read a tensor back.
    pub fn before_update(&mut self, job: &dyn Job, items: &[u32], loss: f64) -> Result<(), JobError> {
        self.updates += 1;
        if !self.follows() {
            return Ok(());
        }
        if self.updates == 1 {
            let (classes, labels) = job.labels(items)?;
            let function = LossFunction::cross_entropy(classes, &labels, loss);
            if let Some(baseline) = function.labels.best_constant_loss {
                self.run.rehearsal_baseline(baseline);
            }
            self.run.rehearsal_fact(&Fact::LossFunction(function));
            let taken = self.run.rehearsal().map_or(0, |plan| plan.batches);
            self.run.rehearsal_fact(&Fact::Batches(Batches { taken, ..Batches::default() }));
        }
        self.before = values_of(job)?;
        Ok(())
    }

    /// After it: what it did to them.
    ///
    /// # Errors
    /// When candle cannot read a tensor back.
    pub fn after_update(
        &mut self,
        job: &dyn Job,
        gradients: &GradStore,
        learning_rate: f64,
    ) -> Result<(), JobError> {
        if !self.follows() {
            return Ok(());
        }
        let (after, mut updates) = (values_of(job)?, Vec::new());
        for (name, variable) in job.parameters().iter() {
            let gradient_norm = gradients.get(variable.as_tensor()).map(norm).transpose()?;
            updates.push(ParameterUpdate {
                name,
                before: self.before.get(name).map_or(&[], Vec::as_slice),
                after: after.get(name).map_or(&[], Vec::as_slice),
                gradient_norm,
            });
        }
        self.watch.see(learning_rate, &updates);
        self.watch.facts(job.name()).iter().for_each(|fact| self.run.rehearsal_fact(fact));
        Ok(())
    }
}

fn norm(gradient: &Tensor) -> Result<f64, JobError> {
    Ok(f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?).sqrt())
}

fn values_of(job: &dyn Job) -> Result<HashMap<String, Vec<f32>>, JobError> {
    let named = job.parameters().iter();
    named.map(|(name, variable)| Ok((name.to_owned(), variable.flatten_all()?.to_vec1()?))).collect()
}
