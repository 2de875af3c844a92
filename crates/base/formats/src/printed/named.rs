use super::names::{self, Meaning};

/// What a line names.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Named {
    pub step: Option<u64>,
    pub epoch: Option<u64>,
    /// The epoch is written as one of so many, and so counted from 1.
    pub epoch_counted_from_one: bool,
    /// How far the epoch is.
    pub position: Option<u64>,
    /// How many positions an epoch has.
    pub total: Option<u64>,
    pub values: Vec<(String, f64)>,
    /// How many steps the training will make.
    pub total_steps: Option<u64>,
    /// A step of several words or in the plural, which alone may as well be a number of steps.
    pub plural_step: bool,
}

impl Named {
    pub fn take_step(&mut self, whole: Option<u64>, of: Option<u64>) {
        match of {
            Some(of) if self.position.is_none() => (self.position, self.total) = (whole, Some(of)),
            Some(_) => {}
            None => self.step = self.step.or(whole),
        }
    }

    /// Whether it says where the script is.
    pub fn has_place(&self) -> bool {
        self.step.is_some() || self.epoch.is_some() || self.position.is_some()
    }

    /// What the name with the strongest meaning means.
    pub fn meaning(&self) -> Option<Meaning> {
        self.values.iter().map(|(name, _)| names::meaning_of(&name.to_lowercase())).max()
    }
}
