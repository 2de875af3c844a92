//! The states of checkpoints.

use crate::closed_list;

closed_list!(
    /// The state of a checkpoint.
    CheckpointState, "state of a checkpoint", {
        /// Bytes may exist; no reader uses them.
        Writing = "writing",
        /// Writing given up, or by a writer that is fenced since: it can never be committed.
        Abandoned = "abandoned",
        /// The newest committed one: what a resume takes.
        Committed = "committed",
        /// Committed, and a newer one is too.
        Superseded = "superseded",
        /// Committed, and found not to verify, or not to be loadable.
        Suspect = "suspect",
        /// Its files are deleted.
        Retired = "retired",
    }
);
