//! The known facts of a run for planning.

use trackway_formats::runfile::{DataRole, DataSpec, Plan};

/// Why a check of settings does not apply where the run file has no `[training]`.
pub const NEEDS_SETTINGS: &str = "(checked only with a `[training]` section)";

/// The check of what the launcher can give; pre-flight of a run that continues leaves it out.
pub const OFFER: &str = "launch.offer";

/// Why a check does not apply before anything was measured.
pub const NEEDS_MEASUREMENT: &str = "(checked once a rehearsal or an earlier run measured it)";

/// The known facts for planning.
pub struct PlanFacts<'f> {
    /// The plan of the run.
    pub plan: &'f Plan,
    /// Its data sets.
    pub sets: Vec<SetFacts<'f>>,
    /// Why the script is not rehearsed with one batch.
    pub one_batch: Result<(), String>,
}

/// The known facts of a data set for planning.
#[derive(Debug, Clone, Copy)]
pub struct SetFacts<'f> {
    /// How the run file declares it.
    pub spec: &'f DataSpec,
    /// What it is for.
    pub role: Option<DataRole>,
    /// It is a table (which may turn out to be unreadable).
    pub is_table: bool,
    /// It is a folder of images or texts.
    pub is_media: bool,
}

impl PlanFacts<'_> {
    /// The tables.
    pub fn tables(&self) -> impl Iterator<Item = &SetFacts<'_>> {
        self.sets.iter().filter(|set| set.is_table)
    }

    /// Whether there are tables to train on and tables to evaluate on.
    pub fn has_split(&self) -> bool {
        self.has_split_of(|set| set.is_table)
    }

    /// Whether there are folders of images to train on and to evaluate on.
    pub fn has_media_split(&self) -> bool {
        self.has_split_of(|set| set.is_media)
    }

    fn has_split_of(&self, fits: fn(&SetFacts<'_>) -> bool) -> bool {
        let has = |wanted: fn(DataRole) -> bool| {
            self.sets.iter().any(|set| fits(set) && set.role.is_some_and(wanted))
        };
        has(|role| role == DataRole::Train) && has(|role| role != DataRole::Train)
    }

    /// Whether a training set has a label.
    pub fn has_label(&self) -> bool {
        self.tables().any(|set| set.spec.label.is_some())
    }
}
