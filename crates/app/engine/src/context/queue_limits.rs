//! How many runs of each queue run at once. A run may wait for days while its settings file is changed: what the file has now counts.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use trackway_formats::queue::{QUEUE_AT_MOST, QueueName};

/// Reads the limits as they are now; none: they cannot be read.
type ReadLimits = Box<dyn Fn() -> Option<BTreeMap<QueueName, u32>> + Send + Sync>;

/// The limits of queues, read at each look. By default each is one.
#[derive(Default)]
pub struct QueueLimits {
    read: Option<ReadLimits>,
    last: Mutex<BTreeMap<QueueName, u32>>,
}

impl QueueLimits {
    /// Those that `read` gives at each look; while it gives none, those before, which are `first` at the beginning.
    #[must_use]
    pub fn new(
        first: BTreeMap<QueueName, u32>,
        read: impl Fn() -> Option<BTreeMap<QueueName, u32>> + Send + Sync + 'static,
    ) -> Self {
        Self { read: Some(Box::new(read)), last: Mutex::new(first) }
    }

    /// How many runs of a queue run at once, as of now.
    #[must_use]
    pub fn at_most(&self, queue: &QueueName) -> u32 {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(now) = self.read.as_ref().and_then(|read| read()) {
            *last = now;
        }
        last.get(queue).copied().unwrap_or(QUEUE_AT_MOST)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Proves that each look has the limit of now, and that limits which cannot be read are those before.
    #[test]
    fn each_look_has_the_limit_of_now() {
        let queue: QueueName = "gpu".parse().unwrap();
        let limits = |at_most: u32| BTreeMap::from([(queue.clone(), at_most)]);
        let written = Arc::new(Mutex::new(None::<BTreeMap<QueueName, u32>>));
        let read = Arc::clone(&written);
        let queues = QueueLimits::new(limits(3), move || read.lock().unwrap().clone());
        for (now, expected) in
            [(None, 3), (Some(limits(1)), 1), (None, 1), (Some(limits(2)), 2), (Some(BTreeMap::new()), 1)]
        {
            *written.lock().unwrap() = now;
            assert_eq!(queues.at_most(&queue), expected);
        }
        assert_eq!(QueueLimits::default().at_most(&queue), QUEUE_AT_MOST);
    }
}
