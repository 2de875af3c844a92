//! The epochs of a training, as its script reports them, for a cadence that counts them.

/// Finished epochs: how many there are, and how many there were at the last save.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Epochs {
    finished: Option<u64>,
    saved: u64,
}

impl Epochs {
    /// Takes a report. Where no step was made since the last save it is of what that save holds, or of the position that training
    /// continues from; else the epoch that just ended is the first one that may have to be saved.
    pub fn report(&mut self, finished: u64, is_saved: bool) {
        if is_saved {
            self.saved = finished;
        } else if self.finished.is_none() {
            self.saved = finished.saturating_sub(1);
        }
        self.finished = Some(finished);
    }

    /// Whether a multiple of `every` epochs ended since the last save.
    pub fn is_due(self, every: u64) -> bool {
        self.finished.is_some_and(|finished| finished / every > self.saved / every)
    }

    pub fn is_reported(self) -> bool {
        self.finished.is_some()
    }

    pub fn saved(&mut self) {
        self.saved = self.finished.unwrap_or(self.saved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(reports: &[(u64, bool)]) -> Epochs {
        let mut epochs = Epochs::default();
        reports.iter().for_each(|(finished, is_saved)| epochs.report(*finished, *is_saved));
        epochs
    }

    /// Proves which reports make a checkpoint due: the end of a multiple of epochs since the last save, and neither the position that
    /// training continues from nor an epoch that was saved.
    #[test]
    fn ends_of_epochs_are_due() {
        assert!(!Epochs::default().is_due(1));
        assert!(!after(&[(0, true)]).is_due(1) && after(&[(0, true), (1, false)]).is_due(1));
        assert!(!after(&[(3, true)]).is_due(1) && after(&[(3, true), (4, false)]).is_due(2));
        assert!(!after(&[(1, true), (2, true)]).is_due(1), "a resume at the end of an epoch");
        assert!(after(&[(4, false)]).is_due(2) && !after(&[(3, false)]).is_due(2));
        let mut epochs = after(&[(0, true), (1, false)]);
        epochs.saved();
        assert!(!epochs.is_due(1));
        epochs.report(3, false);
        assert!(epochs.is_due(2));
    }
}
