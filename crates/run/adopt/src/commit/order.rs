//! Which of two checkpoints comes first in the log: a retry continues from the last one.

use std::cmp::Ordering;

use trackway_core::Step;

/// What is known of the order of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// Its step, if that is known.
    pub step: Option<Step>,
    /// When one of its files was last written to, in nanoseconds since 1970.
    pub modified_ns: i64,
}

impl Order {
    /// Whether it comes before the other: by the steps, else by the time at which they were finished.
    pub fn is_before(&self, other: &Self) -> bool {
        let by_step = self.step.zip(other.step).map_or(Ordering::Equal, |(own, other)| own.cmp(&other));
        by_step.then(self.modified_ns.cmp(&other.modified_ns)).is_lt()
    }

    /// Whether it comes before the other and was finished before it, too: a training that began again has lower steps, and later files.
    pub fn is_older(&self, other: &Self) -> bool {
        self.is_before(other) && self.modified_ns < other.modified_ns
    }
}

/// By the steps if all are known, else by the time at which they were finished: with some of both there may be no order.
pub(crate) fn put_in_order<T>(all: &mut [T], order: impl Fn(&T) -> Order) {
    let steps_are_known = all.iter().all(|one| order(one).step.is_some());
    all.sort_by_key(|one| {
        let Order { step, modified_ns } = order(one);
        (step.filter(|_| steps_are_known), modified_ns)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that steps decide where both are known, else the times, and that what was written later is not older.
    #[test]
    fn steps_decide_and_else_times() {
        let order = |step, modified_ns| Order { step, modified_ns };
        for (first, second, before, older) in [
            (order(Some(10), 1), order(Some(20), 2), true, true),
            (order(Some(10), 2), order(Some(20), 1), true, false),
            (order(Some(20), 1), order(Some(10), 2), false, false),
            (order(Some(10), 1), order(Some(10), 2), true, true),
            (order(None, 1), order(Some(10), 2), true, true),
            (order(Some(10), 2), order(None, 1), false, false),
            (order(None, 1), order(None, 1), false, false),
        ] {
            assert_eq!(first.is_before(&second), before, "{first:?} before {second:?}");
            assert_eq!(first.is_older(&second), older, "{first:?} older than {second:?}");
        }
        let sorted = |mut all: Vec<Order>| {
            put_in_order(&mut all, |order| *order);
            all.iter().map(|order| order.modified_ns).collect::<Vec<_>>()
        };
        assert_eq!(sorted(vec![order(Some(20), 1), order(Some(10), 3), order(Some(20), 0)]), [3, 0, 1]);
        assert_eq!(sorted(vec![order(Some(20), 1), order(Some(10), 3), order(None, 2)]), [1, 2, 3]);
    }
}
