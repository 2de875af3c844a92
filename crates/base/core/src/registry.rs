//! The states and verdicts of gates and of the model registry.

use crate::closed_list;

closed_list!(
    /// The verdict of a gate about a model; the worse, the earlier in the list.
    GateVerdict, "verdict of a gate", {
        /// It is not met.
        Fail = "fail",
        /// The evidence does not decide it.
        Inconclusive = "inconclusive",
        /// It is met.
        Pass = "pass",
    }
);

closed_list!(
    /// How far a version of a model has come.
    ModelStage, "stage of a model", {
        /// Registered, and nothing else.
        Candidate = "candidate",
        /// Tried out before it is released.
        Staging = "staging",
        /// The one in use. At most one version of a model is.
        Production = "production",
        /// No longer in use.
        Archived = "archived",
    }
);

closed_list!(
    /// What a row of a model's history did.
    ModelChange, "change of a model", {
        /// A version was registered, as a candidate.
        Register = "register",
        /// A version moved to another stage.
        Promote = "promote",
        /// Production went back to an earlier version.
        RollBack = "roll_back",
        /// A name points to a version from here on.
        SetAlias = "set_alias",
        /// A name points to nothing from here on.
        DropAlias = "drop_alias",
        /// The model's rules of promotion changed.
        Policy = "policy",
    }
);
