//! Which step a training had reached at a given time: for checkpoints that do not say their step.

use std::collections::VecDeque;

use trackway_core::Step;

/// The most steps that are remembered; the oldest are forgotten first.
const STEPS_MAX: usize = 65_536;
/// The time of a file is that of the kernel's last tick: up to so long before the time that other clocks show, where a second has 250
/// ticks. Steps that follow each other faster are not distinguished by it.
pub(crate) const TICK_NS: i64 = 4_000_000;
/// A step that is recorded within this time of a save may be the one that was saved, or have been printed before it: a
/// busy machine reads what is printed some milliseconds later.
pub(crate) const SOON_NS: i64 = 16_000_000;
/// So long after a file was written to all steps are recorded that decide which one it is of, in nanoseconds.
pub const DECIDED_NS: i64 = SOON_NS + TICK_NS;

/// The steps that a script recorded or printed, and when.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    reached: VecDeque<(i64, Step)>,
    /// The longest way from one to the next.
    gap: Step,
}

impl Steps {
    /// Remembers that a step was reached, at a time in nanoseconds since 1970. What was recorded is read later than what was printed, so
    /// that the times of several sources need not be in order.
    pub fn reached(&mut self, at_ns: i64, step: Step) {
        if self.reached.len() == STEPS_MAX {
            if self.reached.front().is_some_and(|(oldest, _)| at_ns < *oldest) {
                return;
            }
            self.reached.pop_front();
        }
        let later = self.reached.iter().rev().take_while(|(at, _)| *at > at_ns).count();
        let place = self.reached.len() - later;
        if let Some((_, before)) = place.checked_sub(1).and_then(|before| self.reached.get(before)) {
            self.gap = self.gap.max(step.saturating_sub(*before));
        }
        self.reached.insert(place, (at_ns, step));
    }

    /// Remembers that these steps were reached one after the other, as far as is known at one time: of more than two of
    /// one time the first and the last.
    pub fn all_reached(&mut self, at_ns: i64, steps: &[Step]) {
        for (place, step) in steps.iter().enumerate() {
            let last_two = self.reached.len().saturating_sub(2)..;
            let are_of_it = self.reached.range(last_two).filter(|(at, _)| *at == at_ns).count() == 2;
            let Some((_, last)) = self.reached.back_mut().filter(|_| are_of_it) else {
                self.reached(at_ns, *step);
                continue;
            };
            // So is each of the others.
            for step in &steps[place..] {
                self.gap = self.gap.max(step.saturating_sub(*last));
                *last = *step;
            }
            return;
        }
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reached.is_empty()
    }

    /// How far the steps may be behind those of the training: twice the longest way from one to the next.
    #[must_use]
    pub fn slack(&self) -> Step {
        self.gap.saturating_mul(2)
    }

    /// The last step that was reached before a file was written to; the first one if that was later.
    #[must_use]
    pub fn before_written(&self, modified_ns: i64) -> Option<Step> {
        self.when_written(modified_ns.saturating_sub(TICK_NS))
    }

    /// The last step that was reached when a file was written to; the first one if that was later.
    #[must_use]
    pub fn when_written(&self, modified_ns: i64) -> Option<Step> {
        let until_ns = modified_ns.saturating_add(TICK_NS);
        let before = self.reached.iter().rev().find(|(at_ns, _)| *at_ns <= until_ns);
        before.or(self.reached.front()).map(|(_, step)| *step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a file gets the step before it, not the last one known; that ticks of the kernel's clock do not matter; and that what
    /// is forgotten is the oldest.
    #[test]
    fn a_file_has_the_step_that_was_reached_when_it_was_written() {
        const MS: i64 = 1_000_000;
        let mut steps = Steps::default();
        assert_eq!(steps.when_written(5), None);
        for step in 1..=4 {
            steps.reached(100 * MS * step as i64, step);
        }
        let expected = [(0, 1), (100, 1), (250, 2), (295, 2), (296, 3), (300, 3), (950, 4)];
        for (at, step) in expected {
            assert_eq!(steps.when_written(at * MS), Some(step), "written at {at} ms");
        }
        for step in 5..5 + STEPS_MAX as u64 {
            steps.reached(1_000 * MS, step);
        }
        assert_eq!(steps.when_written(0), Some(5));
    }

    /// Proves that steps of one time, as those of many lines that were read at once, take the room of two, and that
    /// nothing else is different: neither the step of a file nor the longest way.
    #[test]
    fn steps_of_one_time_take_little_room() {
        let (mut each, mut together) = (Steps::default(), Steps::default());
        for (at, reached) in
            [(100, vec![1, 2, 9, 10]), (200, vec![]), (300, vec![12]), (400, (13..2_000).collect())]
        {
            reached.iter().for_each(|step| each.reached(at * TICK_NS, *step));
            together.all_reached(at * TICK_NS, &reached);
        }
        assert_eq!((together.reached.len(), together.slack()), (5, 14));
        assert_eq!(each.slack(), together.slack());
        for at in [0, 100, 250, 300, 350, 500] {
            assert_eq!(each.when_written(at * TICK_NS), together.when_written(at * TICK_NS), "{at}");
        }
    }

    /// Proves that steps of two sources are in the order of their times, whichever is read first, and that one which is older than all that
    /// are remembered displaces none.
    #[test]
    fn what_is_read_later_is_put_where_it_belongs() {
        const MS: i64 = 1_000_000;
        let mut steps = Steps::default();
        for (at, step) in [(100, 10), (400, 40), (200, 20), (300, 30)] {
            steps.reached(at * MS, step);
        }
        let expected = [(150, 10), (250, 20), (350, 30), (450, 40)];
        for (at, step) in expected {
            assert_eq!(steps.when_written(at * MS), Some(step), "written at {at} ms");
        }
        (0..STEPS_MAX).for_each(|_| steps.reached(1_000 * MS, 50));
        steps.reached(500 * MS, 45);
        assert_eq!(steps.when_written(0), Some(50));
    }
}
