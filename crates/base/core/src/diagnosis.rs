//! Diagnoses by name: which short launch shows the cause of a symptom, and what it showed.

use crate::closed_list;

closed_list!(
    /// What a diagnosis observes in the launch that it makes.
    DiagnosisKind, "kind of diagnosis", {
        /// The first NaN or infinite value: its layer, operation, parameter and batch.
        Numeric = "numeric",
        /// What the time of a step is spent on.
        Throughput = "throughput",
        /// Where each process is when training makes no progress.
        Hang = "hang",
    }
);

closed_list!(
    /// What a diagnosis showed.
    DiagnosisVerdict, "verdict of a diagnosis", {
        /// The launch showed what was looked for; the finding names it.
        Found = "found",
        /// The launch passed the step of the symptom without it.
        NotReproduced = "not_reproduced",
        /// The launch ran, but nothing in it could be observed.
        NotObserved = "not_observed",
        /// The launch was stopped, or ended for another reason, before it showed anything.
        Incomplete = "incomplete",
    }
);
