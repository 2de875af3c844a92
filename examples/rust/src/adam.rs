use candle_core::backprop::GradStore;
use candle_core::{Tensor, Var};

use crate::parameters::{read_tensors, refuse_surplus, take, write_tensors};
use crate::{JobError, Parameters};

const DECAY_FIRST: f64 = 0.9;
const DECAY_SECOND: f64 = 0.999;
const EPSILON: f64 = 1e-8;
/// Gradients longer than this are shortened to it.
const GRADIENT_NORM_MAX: f64 = 1.0;
/// The learning rate rises over this many steps. It depends on the step alone, so that a run may be prolonged.
const WARM_UP_STEPS: u64 = 20;

/// Adam (Kingma and Ba 2015) whose whole state can be saved; candle's version keeps its moments private.
#[derive(Debug)]
pub struct Adam {
    moments: Vec<Moments>,
    learning_rate: f64,
}

#[derive(Debug)]
struct Moments {
    name: String,
    variable: Var,
    first: Tensor,
    second: Tensor,
}

impl Adam {
    /// An optimizer of `parameters` that has seen no gradient.
    ///
    /// # Errors
    /// When candle cannot make the moments.
    pub fn new(parameters: &Parameters, learning_rate: f64) -> Result<Self, JobError> {
        let moments = parameters
            .iter()
            .map(|(name, variable)| {
                let zero = variable.zeros_like()?;
                let (name, variable) = (name.to_owned(), variable.clone());
                Ok(Moments { name, variable, first: zero.clone(), second: zero })
            })
            .collect::<Result<_, JobError>>()?;
        Ok(Self { moments, learning_rate })
    }

    /// The learning rate of a step, counted from 1.
    #[must_use]
    pub fn learning_rate_at(&self, step: u64) -> f64 {
        self.learning_rate * (step.min(WARM_UP_STEPS) as f64 / WARM_UP_STEPS as f64)
    }

    /// Makes update number `step` (counted from 1); returns the norm of the gradient before it was shortened.
    ///
    /// # Errors
    /// When candle refuses an operation.
    pub fn update(&mut self, gradients: &GradStore, step: u64) -> Result<f64, JobError> {
        let norm = self.gradient_norm(gradients)?;
        let shorten = if norm > GRADIENT_NORM_MAX { GRADIENT_NORM_MAX / norm } else { 1.0 };
        let rate = self.learning_rate_at(step);
        let correction_first = 1.0 - DECAY_FIRST.powf(step as f64);
        let correction_second = 1.0 - DECAY_SECOND.powf(step as f64);
        for moments in &mut self.moments {
            let Some(gradient) = gradients.get(moments.variable.as_tensor()) else { continue };
            // Without this the moments would keep the graph of every step so far alive.
            let gradient = (gradient.detach() * shorten)?;
            moments.first = ((&moments.first * DECAY_FIRST)? + (&gradient * (1.0 - DECAY_FIRST))?)?;
            moments.second = ((&moments.second * DECAY_SECOND)? + (gradient.sqr()? * (1.0 - DECAY_SECOND))?)?;
            let scale = ((&moments.second / correction_second)?.sqrt()? + EPSILON)?;
            let change = ((&moments.first * (rate / correction_first))? / scale)?;
            moments.variable.set(&(moments.variable.as_tensor() - change)?)?;
        }
        Ok(norm)
    }

    fn gradient_norm(&self, gradients: &GradStore) -> Result<f64, JobError> {
        let mut sum = 0.0;
        for moments in &self.moments {
            if let Some(gradient) = gradients.get(moments.variable.as_tensor()) {
                sum += f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?);
            }
        }
        Ok(sum.sqrt())
    }

    /// Both moments of every weight as safetensors.
    ///
    /// # Errors
    /// When candle or safetensors refuse a tensor.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, JobError> {
        write_tensors(self.moments.iter().flat_map(|moments| {
            [
                (format!("first.{}", moments.name), &moments.first),
                (format!("second.{}", moments.name), &moments.second),
            ]
        }))
    }

    /// Sets all moments from safetensors.
    ///
    /// # Errors
    /// [`JobError::CheckpointContent`] when one of the moments is missing, surplus or of another shape.
    pub fn load_safetensors(&mut self, file: &'static str, bytes: &[u8]) -> Result<(), JobError> {
        let mut tensors = read_tensors(file, bytes)?;
        for moments in &mut self.moments {
            moments.first = take(&mut tensors, file, &format!("first.{}", moments.name), &moments.first)?;
            moments.second = take(&mut tensors, file, &format!("second.{}", moments.name), &moments.second)?;
        }
        refuse_surplus(file, &tensors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descend(parameters: &Parameters, adam: &mut Adam, steps: std::ops::RangeInclusive<u64>) -> f32 {
        let mut loss = f32::NAN;
        for step in steps {
            let (_, variable) = parameters.iter().next().unwrap();
            let value = (variable.as_tensor() - 3.0).unwrap().sqr().unwrap().sum_all().unwrap();
            adam.update(&value.backward().unwrap(), step).unwrap();
            loss = value.to_scalar().unwrap();
        }
        loss
    }

    fn start() -> (Parameters, Adam) {
        let mut parameters = Parameters::new(1);
        parameters.normal("x", &[4], 1.0).unwrap();
        let adam = Adam::new(&parameters, 0.1).unwrap();
        (parameters, adam)
    }

    /// Proves that the optimizer finds the bottom of a parabola, and that stopping in between, saving, and continuing
    /// in fresh objects gives the same bits; without the moments it would not.
    #[test]
    fn saved_moments_make_resuming_exact() {
        let (whole, mut adam) = start();
        assert!(descend(&whole, &mut adam, 1..=200) < 1e-2);

        let (half, mut adam) = start();
        descend(&half, &mut adam, 1..=90);
        let (resumed, mut fresh) = start();
        resumed.load_safetensors("w", &half.to_safetensors().unwrap()).unwrap();
        fresh.load_safetensors("o", &adam.to_safetensors().unwrap()).unwrap();
        descend(&resumed, &mut fresh, 91..=200);
        assert_eq!(resumed.digest().unwrap(), whole.digest().unwrap());

        let (forgetful, mut no_moments) = start();
        forgetful.load_safetensors("w", &half.to_safetensors().unwrap()).unwrap();
        descend(&forgetful, &mut no_moments, 91..=200);
        assert_ne!(forgetful.digest().unwrap(), whole.digest().unwrap());
    }
}
