use std::path::PathBuf;

use crate::JobError;

/// What a job trains with by default.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    /// Optimizer updates over the whole run.
    pub steps: u64,
    /// Examples per update.
    pub batch: usize,
    /// Learning rate after warm-up.
    pub learning_rate: f64,
}

/// The command line of an example job.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// `--steps`: optimizer updates over the whole run, attempts before this one included.
    pub steps: u64,
    /// `--seed`, or `TRACKWAY_SEED`, or 17: the only source of randomness.
    pub seed: u64,
    /// `--batch`: examples per update.
    pub batch: usize,
    /// `--lr`: learning rate after warm-up.
    pub learning_rate: f64,
    /// `--checkpoint-every`: steps between checkpoints of the job's own; 0 leaves the cadence to Trackway.
    pub checkpoint_every: u64,
    /// `--validate-every`: steps between validations.
    pub validate_every: u64,
    /// `--evaluate`: evaluate the checkpoint that `trackway eval run` gives, in place of training.
    pub evaluate: bool,
    /// `--step-millis`: sleep after each step, so that a demonstration can be watched.
    pub step_millis: u64,
    /// `--text`: files and folders to train on; empty means the project's own sources.
    pub text: Vec<PathBuf>,
}

impl Options {
    /// Reads `arguments` (without the program's name); `seed` is what `TRACKWAY_SEED` holds, if anything.
    ///
    /// # Errors
    /// [`JobError::Usage`] names the argument that is unknown, lacks its value or has one out of range.
    pub fn parse(
        arguments: impl IntoIterator<Item = String>,
        seed: Option<&str>,
        defaults: Defaults,
    ) -> Result<Self, JobError> {
        let mut options = Self {
            steps: defaults.steps,
            seed: seed.map_or(Ok(17), |text| number("TRACKWAY_SEED", text))?,
            batch: defaults.batch,
            learning_rate: defaults.learning_rate,
            checkpoint_every: 0,
            validate_every: 50,
            evaluate: false,
            step_millis: 0,
            text: Vec::new(),
        };
        let mut arguments = arguments.into_iter().peekable();
        while let Some(name) = arguments.next() {
            if name == "--text" {
                while let Some(path) = arguments.next_if(|next| !next.starts_with("--")) {
                    options.text.push(path.into());
                }
                continue;
            }
            if name == "--evaluate" {
                options.evaluate = true;
                continue;
            }
            let value = arguments.next();
            options.set(&name, value.as_deref())?;
        }
        options.check()
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), JobError> {
        let value = || value.ok_or_else(|| JobError::Usage(format!("`{name}` needs a value")));
        match name {
            "--steps" => self.steps = number(name, value()?)?,
            "--seed" => self.seed = number(name, value()?)?,
            "--batch" => self.batch = number(name, value()?)?,
            "--lr" => self.learning_rate = number(name, value()?)?,
            "--checkpoint-every" => self.checkpoint_every = number(name, value()?)?,
            "--validate-every" => self.validate_every = number(name, value()?)?,
            "--step-millis" => self.step_millis = number(name, value()?)?,
            _ => {
                return Err(JobError::Usage(format!(
                    "unknown argument `{name}`; known are --steps --seed --batch --lr --checkpoint-every \
                     --validate-every --evaluate --step-millis --text"
                )));
            }
        }
        Ok(())
    }

    fn check(self) -> Result<Self, JobError> {
        if self.batch == 0 || self.steps == 0 || self.validate_every == 0 {
            return Err(JobError::Usage("--batch, --steps and --validate-every must be at least 1".into()));
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return Err(JobError::Usage(format!("--lr must be above 0, not {}", self.learning_rate)));
        }
        Ok(self)
    }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, JobError> {
    text.parse().map_err(|_| JobError::Usage(format!("`{name}` needs a number, not `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Defaults = Defaults { steps: 600, batch: 64, learning_rate: 1e-3 };

    fn parse(line: &str) -> Result<Options, JobError> {
        Options::parse(line.split_whitespace().map(Into::into), None, DEFAULTS)
    }

    /// Proves that arguments override the defaults and that each kind of mistake is named.
    #[test]
    fn arguments_are_read_and_mistakes_are_named() {
        let options = parse("--steps 9 --text a b --lr 0.5").unwrap();
        assert_eq!((options.steps, options.batch, options.learning_rate), (9, 64, 0.5));
        assert!(!options.evaluate && parse("--evaluate --steps 9").unwrap().evaluate);
        assert_eq!(options.text, [PathBuf::from("a"), PathBuf::from("b")]);
        let said = |line| parse(line).unwrap_err().to_string();
        assert_eq!(said("--steps"), "`--steps` needs a value");
        assert_eq!(said("--steps ten"), "`--steps` needs a number, not `ten`");
        assert_eq!(said("--lr nan"), "--lr must be above 0, not NaN");
        assert!(said("--stpes 3").starts_with("unknown argument `--stpes`"));
    }

    /// Proves that the seed of the attempt is used unless the command line has its own.
    #[test]
    fn the_seed_of_the_attempt_is_the_default() {
        let seed_of = |line: &str| {
            Options::parse(line.split_whitespace().map(Into::into), Some("5"), DEFAULTS).unwrap().seed
        };
        assert_eq!((seed_of(""), seed_of("--seed 6")), (5, 6));
    }
}
