use std::fmt::Arguments;
use std::io::Write;
use std::time::Duration;

use candle_core::Tensor;
use trackway_core::{Clock, Step};
use trackway_recorder::Recorder;

use crate::{Adam, Cursor, DataOrder, JobError, Options, Parameters, Rehearsing, checkpoint};

/// Steps between two lines for people.
const LINE_STEPS: Step = 50;

/// How good the model is on data it was not trained on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Validation {
    /// Mean cross-entropy, in nats.
    pub loss: f64,
    /// Accuracy, 0 to 1.
    pub accuracy: f64,
}

/// What a job counts to report its speed.
#[derive(Debug, Clone, Copy)]
pub struct Throughput {
    /// Name of the metric, such as `tokens_per_second`.
    pub metric: &'static str,
    /// How many of them one item of the data holds.
    pub per_item: usize,
}

/// A model with its data: what differs between the example jobs.
pub trait Job {
    /// The name that checkpoints carry.
    fn name(&self) -> &'static str;
    /// The weights.
    fn parameters(&self) -> &Parameters;
    /// How many items the training part of the data has.
    fn item_count(&self) -> usize;
    /// BLAKE3 of all the data, in hexadecimal.
    fn data_blake3(&self) -> &str;
    /// What to count for speed.
    fn throughput(&self) -> Throughput;
    /// Mean loss over these training items, as a tensor to differentiate.
    ///
    /// # Errors
    /// When candle refuses an operation.
    fn loss(&self, items: &[u32]) -> Result<Tensor, JobError>;
    /// How many classes there are, and the true ones of these training items.
    ///
    /// # Errors
    /// When candle refuses an operation.
    fn labels(&self, items: &[u32]) -> Result<(u64, Vec<u32>), JobError>;
    /// Loss and accuracy on the validation part.
    ///
    /// # Errors
    /// When candle refuses an operation.
    fn validate(&self) -> Result<Validation, JobError>;
    /// A row for each item of the held-out data, as CSV with a header.
    ///
    /// # Errors
    /// When candle refuses an operation.
    fn predictions(&self) -> Result<String, JobError>;
}

/// How a launch of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All steps are done.
    Completed,
    /// It was asked to stop, and stopped after a checkpoint.
    Stopped,
}

/// Trains until all steps are done or a stop is requested; resumes from the newest committed checkpoint first.
///
/// `out` gets lines for people. Outside Trackway nothing is recorded or saved, and the weights come out the same.
///
/// # Errors
/// When the loss stops being finite, a checkpoint cannot be saved or is not this run's, or candle fails.
pub fn train(
    job: &dyn Job,
    options: &Options,
    run: &Recorder,
    clock: &dyn Clock,
    out: &mut dyn Write,
) -> Result<Ending, JobError> {
    let mut training = Training::start(job, options, run, out)?;
    while training.step < options.steps {
        training.advance(clock)?;
        let stopping = run.should_stop();
        if stopping || training.checkpoint_due() {
            training.save()?;
        }
        if stopping {
            let step = training.step;
            training.say(format_args!("stopping at step {step}, as asked"));
            run.event("stopped", Some(step), &[]);
            return Ok(Ending::Stopped);
        }
        std::thread::sleep(Duration::from_millis(options.step_millis));
    }
    training.conclude()?;
    Ok(Ending::Completed)
}

struct Training<'a> {
    job: &'a dyn Job,
    options: &'a Options,
    run: &'a Recorder,
    out: &'a mut dyn Write,
    adam: Adam,
    order: DataOrder,
    rehearsing: Rehearsing<'a>,
    step: Step,
    validated: Option<(Step, Validation)>,
}

impl<'a> Training<'a> {
    fn start(
        job: &'a dyn Job,
        options: &'a Options,
        run: &'a Recorder,
        out: &'a mut dyn Write,
    ) -> Result<Self, JobError> {
        let adam = Adam::new(job.parameters(), options.learning_rate)?;
        let order = DataOrder::new(options.seed, job.item_count(), options.batch);
        let rehearsing = Rehearsing::new(run);
        let mut training = Self { job, options, run, out, adam, order, rehearsing, step: 0, validated: None };
        training.introduce();
        if let Some(found) = run.resume()? {
            let expected = training.cursor_at(found.step);
            checkpoint::restore(&found, job.parameters(), &mut training.adam, &expected)?;
            training.step = found.step;
            training.say(format_args!("resumed from the checkpoint of step {}", found.step));
        }
        Ok(training)
    }

    fn introduce(&mut self) {
        let (items, scalars) = (self.job.item_count(), self.job.parameters().scalar_count());
        self.run.param("steps", &self.options.steps.to_string());
        self.run.param("seed", &self.options.seed.to_string());
        self.run.param("batch", &self.options.batch.to_string());
        self.run.param("lr", &self.options.learning_rate.to_string());
        self.run.param("parameters", &scalars.to_string());
        self.run.param("data_blake3", self.job.data_blake3());
        let name = self.job.name();
        self.say(format_args!("{name}: {items} training items, {scalars} parameters"));
    }

    /// Makes one update and records it.
    fn advance(&mut self, clock: &dyn Clock) -> Result<(), JobError> {
        let started_micros = clock.monotonic_micros();
        let step = self.step + 1;
        // A rehearsal repeats the batches of the first steps.
        let items = self.order.batch_after(self.run.step_of_batch(step) - 1);
        let item_count = items.len();
        let loss = self.job.loss(items)?;
        let loss_value = f64::from(loss.to_scalar::<f32>()?);
        if !loss_value.is_finite() {
            return Err(JobError::NotFinite { loss: loss_value, step });
        }
        self.rehearsing.before_update(self.job, items, loss_value)?;
        let gradients = loss.backward()?;
        let norm = self.adam.update(&gradients, step)?;
        self.step = step;
        let seconds = (clock.monotonic_micros() - started_micros).max(1) as f64 / 1e6;
        let counted = self.job.throughput();
        let rate = (item_count * counted.per_item) as f64 / seconds;
        let learning_rate = self.adam.learning_rate_at(step);
        self.rehearsing.after_update(self.job, &gradients, learning_rate)?;
        self.run.log(
            step,
            &[("loss", loss_value), ("lr", learning_rate), ("grad_norm", norm), (counted.metric, rate)],
        );
        if step.is_multiple_of(self.options.validate_every) {
            self.validate()?;
        }
        if step.is_multiple_of(LINE_STEPS) {
            self.report(loss_value);
        }
        Ok(())
    }

    fn report(&mut self, loss: f64) {
        let step = self.step;
        match self.validated {
            Some((at, validation)) if at == step => self.say(format_args!(
                "step {step} loss {loss:.4} val_loss {:.4} val_accuracy {:.4}",
                validation.loss, validation.accuracy
            )),
            _ => self.say(format_args!("step {step} loss {loss:.4}")),
        }
    }

    /// Validates at most once per step.
    fn validate(&mut self) -> Result<Validation, JobError> {
        if let Some((at, validation)) = self.validated
            && at == self.step
        {
            return Ok(validation);
        }
        let validation = self.job.validate()?;
        self.run.log(self.step, &[("val_loss", validation.loss), ("val_accuracy", validation.accuracy)]);
        self.validated = Some((self.step, validation));
        Ok(validation)
    }

    fn checkpoint_due(&self) -> bool {
        let every = self.options.checkpoint_every;
        let own_cadence = every > 0 && self.step.is_multiple_of(every);
        self.run.checkpoint_due(self.step) || own_cadence || self.step == self.options.steps
    }

    fn save(&mut self) -> Result<(), JobError> {
        if !self.run.enabled() {
            return Ok(());
        }
        let validation = self.validate()?;
        let cursor = self.cursor_at(self.step);
        checkpoint::save(self.run, self.job.parameters(), &self.adam, &cursor, validation)?;
        let step = self.step;
        self.say(format_args!("checkpoint at step {step}"));
        Ok(())
    }

    fn cursor_at(&self, step: Step) -> Cursor {
        let place = self.order.position_after(step);
        Cursor::new(self.job.name(), self.options, self.job.data_blake3(), step, place)
    }

    /// Prints the result. The digest is what two launches are compared by.
    fn conclude(&mut self) -> Result<(), JobError> {
        let validation = self.validate()?;
        let digest = self.job.parameters().digest()?;
        let (step, accuracy) = (self.step, format!("{:.4}", validation.accuracy));
        self.run.event("final", Some(step), &[("val_accuracy", &accuracy), ("weights_blake3", &digest)]);
        self.say(format_args!("final step={step} val_accuracy={accuracy} weights_blake3={digest}"));
        Ok(())
    }

    /// Writes a line for people. A reader that went away must not end the training.
    fn say(&mut self, line: Arguments<'_>) {
        let _ = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
    }
}
