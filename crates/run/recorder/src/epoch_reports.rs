//! How a script reports its epochs.

use crate::recorder::Recorder;

impl Recorder {
    /// Reports how many epochs are finished, for the cadence `checkpoint.every = { epochs = N }`: before the first step the number
    /// of those that are done already, then at the end of each epoch, before [`Recorder::checkpoint_due`]. Every rank reports it.
    pub fn epochs_finished(&self, epochs: u64) {
        if let Some(inner) = self.shared() {
            let slot = inner.slot();
            slot.epochs.get().report(epochs, slot.has_made_no_step());
        }
    }

    /// Whether the cadence counts epochs and none was reported: it cannot be followed.
    #[must_use]
    pub fn lacks_epochs(&self) -> bool {
        self.shared().is_some_and(|inner| inner.lacks_epochs(inner.slot()))
    }
}
