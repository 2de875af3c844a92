use serde::{Deserialize, Serialize};

use super::{CommitRecord, History};

/// What all entries before a summary mean together, but for checkpoints whose files are gone: nothing that may still
/// happen depends on them. The parent of a commit that stays is its nearest ancestor that stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    history: History,
}

impl Summary {
    pub fn of(history: &History) -> Self {
        let mut kept = history.clone();
        kept.commits.retain(|_, record| !is_gone(record));
        kept.begun.retain(|_, record| !record.swept);
        for record in kept.commits.values_mut() {
            record.body.parent = nearest_that_stays(history, record.body.parent);
        }
        Self { history: kept }
    }

    pub fn history(&self) -> History {
        self.history.clone()
    }
}

fn is_gone(record: &CommitRecord) -> bool {
    record.retired && record.swept
}

fn nearest_that_stays(history: &History, mut parent: Option<u64>) -> Option<u64> {
    while let Some(number) = parent {
        match history.commit(number) {
            Some(record) if is_gone(record) => parent = record.body.parent.filter(|older| *older < number),
            _ => break,
        }
    }
    parent
}
