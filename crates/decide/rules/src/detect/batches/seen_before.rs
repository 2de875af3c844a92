//! A batch of the first pass that came before: `progressive_loss` is then no loss on unseen data.
//!
//! Only batches at which a progressive loss is recorded count: from the second pass on, where every batch comes again, the
//! SDK records none. The digest of a batch has 32 bits, so that two of 100,000 different batches are likely to have the same
//! one; it fires when there are more repetitions than this explains. After a resume, steps that are void count no more.

use std::collections::HashMap;

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity::Warn;

use crate::detect::anomaly::{Anomaly, DetectorChange, Sample};
use crate::detect::rules::Rule;

/// Digests that are remembered at most, over all ranks. Of more batches a fraction is watched, chosen by digest: a
/// repeated pass shows in any fraction.
pub(in crate::detect) const DIGESTS_MAX: usize = 65_536;
const DIGEST_COUNT: f64 = 4_294_967_296.0;
/// The probability that different batches have as many equal digests.
const COINCIDENCE_PROBABILITY: f64 = 1e-6;
/// Spreads digests, so that those of any kind of batch are chosen alike (Fibonacci hashing, Knuth, TAOCP 3, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug, Default)]
pub(in crate::detect) struct SeenBefore {
    steps: HashMap<u64, Step>,
    /// Of a spread digest so many bits must be 0 for it to be watched.
    bits: u32,
    begins_again: bool,
    /// Repetitions at which no progressive loss was recorded yet: how many, and the step of the last.
    repeated: u32,
    first: Option<(Step, Step)>,
    last_step: Step,
    progressive_step: Option<Step>,
    is_reported: bool,
}

impl SeenBefore {
    /// Takes the digest of a batch.
    pub(in crate::detect) fn digest(&mut self, rule: Rule, sample: Sample) -> Option<DetectorChange> {
        if std::mem::take(&mut self.begins_again) {
            self.steps.retain(|_, step| *step < sample.step);
        }
        let digest = sample.value.to_bits().wrapping_mul(SPREAD);
        if self.is_reported || !self.watches(digest) {
            return None;
        }
        let known = self.steps.insert(digest, sample.step);
        if self.steps.len() > DIGESTS_MAX {
            self.bits += 1;
            let bits = self.bits;
            self.steps.retain(|digest, _| digest.leading_zeros() >= bits);
        }
        // Several ranks may be given one batch at one step: none of them has trained on it then.
        let before = known.filter(|step| *step != sample.step)?;
        self.repeated += 1;
        self.first = self.first.or(Some((before, sample.step)));
        self.last_step = sample.step;
        self.judge(rule)
    }

    /// Takes note that the loss of a batch from before it is trained on was recorded.
    pub(in crate::detect) fn progressive(&mut self, rule: Rule, step: Step) -> Option<DetectorChange> {
        self.progressive_step = self.progressive_step.max(Some(step));
        if self.is_reported || self.repeated == 0 { None } else { self.judge(rule) }
    }

    /// A resume: what comes from its first step on was not trained on.
    pub(in crate::detect) fn begins_again(&mut self) {
        self.begins_again = true;
    }

    fn watches(&self, digest: u64) -> bool {
        digest.leading_zeros() >= self.bits
    }

    fn judge(&mut self, rule: Rule) -> Option<DetectorChange> {
        let confirmed = self.progressive_step.is_some_and(|step| step >= self.last_step);
        if !confirmed || self.repeated < rule.patience || !self.more_than_collisions() {
            return None;
        }
        let (before, step) = self.first?;
        self.is_reported = true;
        let batches = self.steps.len() as u64 + u64::from(self.repeated);
        Some(DetectorChange::fires(Anomaly {
            severity: Warn,
            first_step: step,
            value: Some(f64::from(self.repeated)),
            threshold: rule.threshold,
            evidence: format!(
                "{} of {batches} batches were seen before: the batch of step {step} is that of step {before}; the progressive loss is no longer measured on unseen data",
                self.repeated
            ),
        }))
    }

    /// Whether different batches would hardly have so many equal digests: by Chernoff's bound for a Poisson number.
    fn more_than_collisions(&self) -> bool {
        let watched = self.steps.len() as f64;
        let expected = watched * watched * f64::from(self.bits).exp2() / 2.0 / DIGEST_COUNT;
        let repeated = f64::from(self.repeated);
        repeated > expected
            && repeated - expected - repeated * (repeated / expected).ln() < COINCIDENCE_PROBABILITY.ln()
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng as _, SplitMix64};

    use super::*;

    const RULE: Rule = Rule { enabled: true, threshold: 0.0, patience: 1 };

    /// The first step at which it fires; at each step a digest, and a progressive loss up to the step `until`.
    fn fired(steps: impl Iterator<Item = (Step, u64)>, until: Step) -> Option<Step> {
        let mut seen = SeenBefore::default();
        steps.into_iter().find_map(|(step, digest)| {
            let found = seen.digest(RULE, Sample { step, value: digest as f64 });
            let later = if step <= until { seen.progressive(RULE, step) } else { None };
            found.or(later).map(|_| step)
        })
    }

    fn digest_of(batch: u64) -> u64 {
        SplitMix64::new(batch).next_u64() >> 32
    }

    /// Proves that a repeated pass is reported within a few steps, however long it is, and that it is not once no
    /// progressive loss is recorded any more.
    #[test]
    fn a_second_pass_is_reported() {
        for batches in [5, 1_000, 300_000] {
            let passes = || (0..2 * batches).map(|step| (step, digest_of(step % batches)));
            let step = fired(passes(), Step::MAX).unwrap();
            assert!((batches..batches + 300).contains(&step), "{batches}: {step}");
            assert_eq!(fired(passes(), batches - 1), None, "{batches}");
        }
    }

    /// Proves that a million different batches are healthy, although hundreds of their digests are equal.
    #[test]
    fn equal_digests_by_collision_are_healthy() {
        assert_eq!(fired((0..1_000_000).map(|step| (step, digest_of(step))), Step::MAX), None);
        let mut seen = SeenBefore::default();
        (0..1_000_000).for_each(|step| {
            seen.digest(RULE, Sample { step, value: digest_of(step) as f64 });
        });
        assert!(seen.steps.len() <= DIGESTS_MAX && seen.bits >= 4, "{} {}", seen.steps.len(), seen.bits);
    }

    /// Proves that some batches among new ones are reported, and that steps which a resume repeats are not.
    #[test]
    fn repetitions_are_reported_and_resumes_are_not() {
        let some = (0..2_000).map(|step| (step, digest_of(if step % 50 == 49 { step - 30 } else { step })));
        assert!(fired(some, Step::MAX).unwrap() < 400);
        let mut seen = SeenBefore::default();
        for (from, to) in [(0, 100), (60, 200)] {
            seen.begins_again();
            for step in from..to {
                assert_eq!(
                    seen.digest(RULE, Sample { step, value: digest_of(step / 2 * 2 + step % 2) as f64 }),
                    None
                );
                assert_eq!(seen.progressive(RULE, step), None);
            }
        }
        // Another order after the resume: the void steps were not trained on.
        seen.begins_again();
        for step in 150..200 {
            assert_eq!(seen.digest(RULE, Sample { step, value: digest_of(349 - step) as f64 }), None);
            assert_eq!(seen.progressive(RULE, step), None);
        }
    }
}
