use serde_json::Value as Json;
use trackway_core::{ProofId, RunId, Step, Timestamp};

use crate::value::{record, words};

words!(
    /// What a resume proof showed.
    ProofVerdict, "verdict of a proof", {
        /// Killed and resumed, the script ends in the very state of an undisturbed one.
        Equal = "equal",
        /// Two undisturbed launches end in the same state, and a resumed one in another.
        Different = "different",
        /// Two undisturbed launches end in different states already, so resuming cannot be tested.
        Nondeterministic = "nondeterministic",
        /// The script works with the recorder, but there was nothing to compare; `why` names what was missing.
        NotProved = "not_proved",
        /// The script never spoke to the recorder.
        NotApplicable = "not_applicable",
    }
);

record!(
    /// One resume proof (`trackway prove`): the same steps twice uninterrupted, and once killed and resumed.
    /// Append-only.
    ResumeProofRow, "resume_proofs", key ["proof_id"], {
        /// The proof.
        proof_id: ProofId,
        /// The name of the run file's run.
        name: String,
        /// The family it is counted with.
        model_family: Option<String>,
        /// equal, different, nondeterministic, not_proved or not_applicable.
        verdict: ProofVerdict,
        /// The reason, for every verdict but equal.
        why: Option<String>,
        /// The kinds of state that differ, separated by commas: weights, optimizer, scheduler, scaler, rng,
        /// data_cursor.
        differing_kinds: Option<String>,
        /// Number of steps of every launch.
        steps: Step,
        /// The step at or after which SIGKILL was sent; null when it was not sent.
        killed_at_step: Option<Step>,
        /// The committed step the killed launch was resumed from.
        resumed_from_step: Option<Step>,
        /// SHA-256 of the config.
        config_sha256: String,
        /// SHA-256 over the hashes of all data sets.
        data_sha256: Option<String>,
        /// The seed the script was given.
        seed: Option<u64>,
        /// The commit of the working directory.
        git_commit: Option<String>,
        /// Whether the working directory differed from the commit.
        git_dirty: Option<bool>,
        /// BLAKE3 of that difference, untracked files included.
        git_diff_blake3: Option<String>,
        /// SHA-256 of the environment's packages or lock file.
        environment_lock_sha256: Option<String>,
        /// The container image's digest.
        container_digest: Option<String>,
        /// The uninterrupted run.
        control_run_id: RunId,
        /// Its repetition.
        repeated_run_id: Option<RunId>,
        /// The run that was killed and resumed.
        resumed_run_id: Option<RunId>,
        /// The state digest of the control's last checkpoint.
        control_state_digest: Option<String>,
        /// The same for the repeated control.
        repeated_state_digest: Option<String>,
        /// The same for the resumed run.
        resumed_state_digest: Option<String>,
        /// When the proof began.
        started_at: Timestamp,
        /// When its verdict was reached.
        ended_at: Timestamp,
        /// Wall seconds of all its launches.
        wall_seconds: f64,
        /// GPUs allocated × wall seconds, over all its launches.
        gpu_seconds: f64,
        /// GPU seconds × price.
        cost_usd: Option<f64>,
        /// A digest per kind of state and run, as in `trackway prove --json`.
        digests_json: Option<Json>,
    }
);
