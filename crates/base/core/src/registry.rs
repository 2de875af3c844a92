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

closed_list!(
    /// What a gate is about.
    GateKind, "kind of gate", {
        /// A metric of all rows, such as accuracy.
        Quality = "quality",
        /// A curated slice.
        Slice = "slice",
        /// A blind spot that was found.
        BlindSpot = "blind_spot",
        /// What changed inputs do to predictions.
        Robustness = "robustness",
        /// A measure of fairness.
        Fairness = "fairness",
        /// Latency or throughput.
        Latency = "latency",
        /// Bytes of the model.
        Size = "size",
        /// Money or time of the training.
        Cost = "cost",
    }
);

closed_list!(
    /// What the receipt of an evaluation must have for a promotion.
    ReceiptField, "field of a receipt", {
        /// The digest of the evaluator's code.
        EvaluatorDigest = "evaluator_digest",
        /// The stored predictions or answers.
        Outputs = "outputs",
        /// At least one metric.
        Metrics = "metrics",
        /// The digest of the task set, by which its uses are counted.
        TaskSet = "task_set",
        /// The digest of the installed packages.
        Environment = "environment",
        /// Curated slices.
        Slices = "slices",
        /// Measures of fairness.
        Fairness = "fairness",
        /// The search for blind spots.
        BlindSpots = "blind_spots",
        /// Probes of the model with changed inputs.
        Probes = "probes",
        /// A comparison with another model on the same rows.
        Comparison = "comparison",
        /// The version of the task set.
        TaskSetVersion = "task_set_version",
        /// Parameters of decoding.
        Decoding = "decoding",
        /// The judge's model, and its rubric with its version or digest.
        Judge = "judge",
        /// A sample of the rows that it got wrong.
        Failures = "failures",
    }
);

closed_list!(
    /// What the health of the attempt that wrote a version must be.
    HealthRule, "rule about health", {
        /// Anything but broken; an attempt that could not be looked at passes.
        NotBroken = "not_broken",
        /// Ok: something looked at its values, and nothing was found.
        Ok = "ok",
        /// Anything.
        Any = "any",
    }
);

closed_list!(
    /// What the attempt that wrote a version must show for a promotion.
    AttemptRequirement, "requirement of an attempt", {
        /// It ended well: completed, or stopped early by a rule that counts as success.
        EndedWell = "ended_well",
        /// Pre-flight checked its run before the launch, and no check blocked or was skipped.
        Preflight = "preflight",
        /// Its data did not change while it ran.
        DataUnchanged = "data_unchanged",
        /// A resume of its config was proved to be equal.
        ResumeProved = "resume_proved",
        /// Its checkpoint has everything that a resume needs, beside the weights.
        WholeCheckpoint = "whole_checkpoint",
    }
);

closed_list!(
    /// Whether gates must compare a version with the one in production.
    BaselineRule, "rule about the baseline", {
        /// As soon as there is a version in production.
        Required = "required",
        /// Only if a gate does.
        Optional = "optional",
    }
);
