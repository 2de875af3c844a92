//! The same batch again and again.
//!
//! By its digest, where batches are recorded with one: equal digests in a row, after they had differed. A run that
//! trains on all its data at each step has one digest from the beginning on; that is reported as a note, after more of
//! them. Inputs have a separate digest (`input_digest`), since labels may keep changing when inputs do not. Without
//! digests, by the loss: two different batches do not have the same loss to the last bit, five times in a row, and
//! neither does the same batch while weights change. A loss of exactly 0 does not count, nor does one with so few digits that it
//! was rounded for a person: healthy noise printed as `0.31` repeats itself.

use trackway_core::detect::DetectionSeverity::{Note, Warn};

use crate::detect::anomaly::{DetectorChange, Sample, number};
use crate::detect::rules::Rule;
use crate::detect::series::streak::Streak;

/// Times the patience before a digest that never differed is reported.
const NEVER_DIFFERED_FACTOR: u32 = 4;
/// Times the patience for losses: scripts repeat a mean that they compute now and then.
const LOSS_FACTOR: u32 = 4;
/// Different values in a row after which it is over.
const CALM: u32 = 3;

/// What the values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::detect) enum Repeated {
    Digest,
    /// The digest of the model's inputs, where labels keep changing: inputs that became all zero, an image that could
    /// not be decoded.
    Inputs,
    Loss,
}

/// Whether a value has at most four significant digits. 0 has none.
fn is_rounded(value: f64) -> bool {
    format!("{value:.3e}").parse() == Ok(value)
}

#[derive(Debug, Clone, Default)]
pub(in crate::detect) struct DeadInput {
    last: Option<f64>,
    differed: bool,
    streak: Streak,
}

impl DeadInput {
    /// Takes a digest or a loss.
    pub(in crate::detect) fn take(
        &mut self,
        rule: Rule,
        sample: Sample,
        what: Repeated,
    ) -> Option<DetectorChange> {
        let last = self.last.replace(sample.value)?;
        let same =
            last.to_bits() == sample.value.to_bits() && !(what == Repeated::Loss && is_rounded(sample.value));
        self.differed |= !same;
        // Inputs that never differed may be intended: one prompt, one mask.
        let same = same && (self.differed || what != Repeated::Inputs);
        let patience = match what {
            Repeated::Inputs => rule.patience,
            Repeated::Loss => rule.patience * LOSS_FACTOR,
            Repeated::Digest if self.differed => rule.patience,
            Repeated::Digest => rule.patience * NEVER_DIFFERED_FACTOR,
        };
        let severity = if self.differed { Warn } else { Note };
        self.streak.take(same, sample.step, patience, CALM).change(severity, None, rule.threshold, || match what {
            Repeated::Inputs => {
                format!("the inputs of {patience} batches in a row are the same, though their labels are not")
            }
            Repeated::Digest if self.differed => {
                format!("{patience} batches in a row are the same as the one before")
            }
            Repeated::Digest => format!(
                "all {patience} batches so far are the same; training on all data at once looks like this too"
            ),
            Repeated::Loss => {
                format!("the loss is {} to the last bit, {patience} times in a row", number(sample.value))
            }
        })
    }
}
