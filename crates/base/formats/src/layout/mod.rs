//! Where everything is in a home (`docs/home.md`) and in the folder of an attempt (`docs/formats/attempt-folder.md`). Only paths: nothing
//! here looks at a disk. No other source spells these names.

mod row_copy;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use trackway_core::{AttemptId, LaunchKind, RunId};

use crate::flat_files::settings::SETTINGS_FILE;
use crate::runs::queue::QueueName;
use crate::sha256_hex;

pub use row_copy::{RowCopy, RowCopyKind};

/// The folder of a project in which its home and its settings file are.
pub const PROJECT_FOLDER: &str = ".trackway";

/// A name in a folder, and what has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The name of the file or folder.
    pub name: &'static str,
    /// What it is for, in a sentence.
    pub purpose: &'static str,
}

macro_rules! layout {
    ($(#[$doc:meta])* $layout:ident, {
        $($(#[doc = $purpose:literal])+ $method:ident = $name:expr),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $layout {
            folder: PathBuf,
        }

        impl $layout {
            /// Everything with a fixed name in the folder.
            pub const ENTRIES: &'static [Entry] = &[$(Entry { name: $name, purpose: concat!($($purpose),+) }),+];

            /// The layout of this folder, which need not exist.
            #[must_use]
            pub fn new(folder: impl Into<PathBuf>) -> Self {
                Self { folder: folder.into() }
            }

            /// The folder itself.
            #[must_use]
            pub fn folder(&self) -> &Path {
                &self.folder
            }

            /// A path below the folder as it is stored, so that the folder may be moved.
            #[must_use]
            pub fn below(&self, path: &Path) -> String {
                path.strip_prefix(&self.folder).unwrap_or(path).to_string_lossy().into_owned()
            }

            $(
                $(#[doc = $purpose])+
                #[must_use]
                pub fn $method(&self) -> PathBuf {
                    self.folder.join($name)
                }
            )+
        }
    };
}

layout!(
    /// The paths of a home.
    HomeLayout, {
        /// The ledger, where it is a SQLite file in its usual place; beside it SQLite's own files, and as
        /// `ledger.db.version-N` the copy from before it was migrated from version N.
        ledger_db = "ledger.db",
        /// The folders of attempts, by their ids.
        attempts = "attempts",
        /// The folders of runs, by their ids.
        runs = "runs",
        /// The checkpoint roots, by the ids of their runs.
        checkpoints = "checkpoints",
        /// The closed records of sealed attempts, as Parquet.
        records = "records",
        /// The folders of evaluations, by their ids, and the outputs of evaluators.
        evaluations = "evaluations",
        /// Snapshots of data, and the hashes of files that were read.
        data = "data",
        /// Copies of the ledger's rows about models, gates and approvals (`*.json`), and the folders that each model
        /// was deployed to (`deployed-*.txt`).
        registry = "registry",
        /// The places of queues and who waits for one, by host and queue.
        queues = "queues",
        /// Attempts and evaluations that could not be sealed, with the reason.
        set_aside = "set-aside",
        /// What attempts were made from beside their commit, by its hash: differences, scripts, packages. `trackway gc` keeps it.
        sources = "sources",
        /// The settings file of the project whose home it is, or else of the home.
        settings = SETTINGS_FILE,
        /// Written into a new home: git ignores everything in it but the settings file.
        gitignore = ".gitignore",
    }
);

layout!(
    /// The paths of the folder of data.
    DataLayout, {
        /// What data sets consisted of, by their hashes: files, columns and statistics.
        snapshots = "snapshots",
        /// Where the names of snapshots point, and pointed before.
        names = "names",
        /// Statistics of single files, for the next snapshot.
        profiles = "profiles",
        /// The bytes of files that snapshots keep, each content once, by its BLAKE3.
        objects = "objects",
        /// Statistics of the data that runs read, to compare the data of later runs with. `trackway gc` deletes those that are not needed.
        run_profiles = "run-profiles",
        /// The key with which personal data and secrets are masked in statistics, so that equal values stay equal.
        mask_key = "mask.key",
        /// Hashes of data files that did not change since they were last read.
        manifest_cache = "manifest-cache.json",
    }
);

layout!(
    /// The paths of a run's folder.
    RunLayout, {
        /// What the run launches, without secrets.
        plan_json = "plan.json",
        /// Locked by the supervisor of the run; the number of its process and the name of its machine.
        supervisor_lock = "supervisor.lock",
        /// What the supervisor of a detached run reports (`trackway run --detach`).
        supervisor_log = "supervisor.log",
        /// Asks the supervisor not to launch the next attempt.
        stop = "stop",
        /// The sizes and times of the data files when they were hashed.
        data_files_json = "data-files.json",
        /// The checkpoint of another run whose weights it starts with.
        start_from_json = "start-from.json",
        /// What is at the remote, as the supervisor last saw it.
        remote_json = "remote.json",
        /// How the steps that the script prints are counted, for the attempt that continues it.
        printed_steps_json = "printed-steps.json",
        /// What the launches of a rehearsal or proof wrote to the working directory, until it ends.
        isolated = "isolated",
        /// Copies of the ledger's rows about the run.
        row_copies = "ledger",
    }
);

layout!(
    /// The paths of an attempt's folder.
    AttemptLayout, {
        /// The launch as requested, without secrets. Written by the launcher before the shim starts.
        launch_json = "launch.json",
        /// What the attempt started from: code, packages, machine, and the part of the environment that may be stored.
        capture_json = "capture.json",
        /// Locked by the shim for as long as it lives.
        shim_lock = "shim.lock",
        /// Identities of the shim and the script. Written by the shim before the script starts.
        shim_json = "shim.json",
        /// The space reserved for the exit record while the script runs.
        exit_reserved = "exit.json.reserved",
        /// How the attempt ended. Written by the shim, once, at the very end.
        exit_json = "exit.json",
        /// What the script wrote to its standard output.
        stdout_log = "stdout.log",
        /// What the script wrote to its standard error.
        stderr_log = "stderr.log",
        /// When the lines of `stdout.log` began.
        stdout_times = "stdout.times",
        /// When the lines of `stderr.log` began.
        stderr_times = "stderr.times",
        /// The flight record's segments (`TRACKWAY_RECORD`).
        records = "records",
        /// Copies of files that the script gave as artifacts, under their hashes.
        artifacts = "artifacts",
        /// Files of the script that were in the way of a resume: damaged or half-written checkpoints.
        quarantine = "quarantine",
        /// Who wrote where the script has its checkpoints. Written by the shim.
        writers_json = "writers.json",
        /// What the processes did when the attempt made no progress (`TRACKWAY_STACKS`).
        stacks = "stacks",
        /// Requests to the script (`TRACKWAY_CONTROL`).
        control_jsonl = "control.jsonl",
        /// What supervisors did to the attempt.
        actions_jsonl = "actions.jsonl",
        /// That the attempt was ended to go back to an earlier checkpoint, and why.
        roll_back_json = "roll-back.json",
        /// The weights that a rung starts with.
        warm_start_json = "warm-start.json",
        /// What was fetched from the remote before the launch.
        fetch_json = "fetch.json",
        /// The last state of the job in the words of the engine that ran it.
        engine_json = "engine.json",
        /// Where torchelastic's `@record` leaves the error (`TORCHELASTIC_ERROR_FILE`).
        error_json = "error.json",
    }
);

layout!(
    /// The paths of an evaluation's folder.
    EvaluationLayout, {
        /// The checkpoint, where it had to be fetched from a remote.
        checkpoint = "checkpoint",
        /// Links to the files of a checkpoint that the script wrote itself, under the names it gave them.
        as_written = "as-written",
        /// What was made of the results of another tool.
        import = "import",
        /// A byte for each time that closing the evaluation was begun.
        finishes = "finishes",
    }
);

impl HomeLayout {
    /// Names that only a home has: any of them distinguishes it from another folder.
    pub const SIGNS: [&'static str; 4] = ["attempts", "runs", "evaluations", "ledger.db"];

    /// The folder of an attempt.
    #[must_use]
    pub fn attempt(&self, attempt_id: AttemptId) -> AttemptLayout {
        AttemptLayout::new(self.attempts().join(attempt_id.to_string()))
    }

    /// The folder of a run.
    #[must_use]
    pub fn run(&self, run_id: RunId) -> RunLayout {
        RunLayout::new(self.runs().join(run_id.to_string()))
    }

    /// The folder of an evaluation.
    #[must_use]
    pub fn evaluation(&self, evaluation_id: &str) -> EvaluationLayout {
        EvaluationLayout::new(self.evaluations().join(evaluation_id))
    }

    /// The places of a queue on a host.
    #[must_use]
    pub fn queue(&self, host: &str, queue: &QueueName) -> PathBuf {
        self.queues().join(host).join(queue.as_str())
    }

    /// What an attempt was made from, as the other files of `sources` have it.
    #[must_use]
    pub fn attempt_source(&self, attempt_id: AttemptId) -> PathBuf {
        self.sources().join(format!("{attempt_id}.json"))
    }

    /// The folder with the changes that were not committed, by the hash of those changes.
    #[must_use]
    pub fn changes_source(&self, blake3: &str) -> PathBuf {
        self.sources().join(format!("changes-{blake3}"))
    }

    /// A script or a run file, by its hash.
    #[must_use]
    pub fn file_source(&self, blake3: &str) -> PathBuf {
        self.sources().join(format!("file-{blake3}"))
    }

    /// A list of packages or a lock file, by its hash.
    #[must_use]
    pub fn environment_source(&self, sha256: &str) -> PathBuf {
        self.sources().join(format!("environment-{sha256}"))
    }

    /// Raw outputs of evaluators, under their hashes.
    #[must_use]
    pub fn evaluation_outputs(&self) -> PathBuf {
        self.evaluations().join("outputs")
    }

    /// The checkpoint roots of a run.
    #[must_use]
    pub fn checkpoints_of(&self, run_id: RunId) -> PathBuf {
        self.checkpoints().join(run_id.to_string())
    }

    /// One root per run, kind and rung, so that a run is never resumed from a rehearsal.
    #[must_use]
    pub fn checkpoint_root(&self, run_id: RunId, kind: LaunchKind, rung: &str) -> PathBuf {
        self.checkpoints_of(run_id).join(checkpoint_root_name(kind, rung))
    }

    /// The closed metrics of an attempt.
    #[must_use]
    pub fn metrics_parquet(&self, attempt_id: AttemptId) -> PathBuf {
        self.records().join(format!("{attempt_id}.parquet"))
    }

    /// The closed telemetry of an attempt.
    #[must_use]
    pub fn telemetry_parquet(&self, attempt_id: AttemptId) -> PathBuf {
        self.records().join(format!("{attempt_id}.telemetry.parquet"))
    }

    /// What is in the folder of data.
    #[must_use]
    pub fn data_layout(&self) -> DataLayout {
        DataLayout::new(self.data())
    }

    /// Hashes of data files that did not change since they were last read.
    #[must_use]
    pub fn data_cache(&self) -> PathBuf {
        self.data_layout().manifest_cache()
    }

    /// Why an attempt or an evaluation is not sealed.
    #[must_use]
    pub fn set_aside_file(&self, id: &str) -> PathBuf {
        self.set_aside().join(format!("{id}.json"))
    }

    /// Copies of rows about a model, a gate or an approval with this name, which may contain separators of paths.
    #[must_use]
    pub fn registry_file(&self, name: &str) -> PathBuf {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
        // Two names may look the same without their separators.
        let digest = sha256_hex(name.as_bytes());
        self.registry().join(format!("{plain}-{}.json", digest.get(..12).unwrap_or_default()))
    }

    /// The folders that a model was deployed to from this home, one a line. Promotions to production and rollbacks read
    /// it, to warn of those that serve another version still; no row of the ledger is in it, so that
    /// `trackway doctor rebuild` leaves it as it is.
    #[must_use]
    pub fn deployed_folders(&self, model: &str) -> PathBuf {
        self.registry_file(&format!("deployed-{model}")).with_extension("txt")
    }
}

impl RunLayout {
    /// A copy of the ledger's rows.
    #[must_use]
    pub fn row_copy(&self, copy: RowCopy<'_>) -> PathBuf {
        self.row_copies().join(copy.file_name())
    }
}

impl AttemptLayout {
    /// A dump of stacks, counted from 1.
    #[must_use]
    pub fn stack_dump(&self, number: usize) -> PathBuf {
        self.stacks().join(format!("dump-{number}.json"))
    }
}

impl EvaluationLayout {
    /// What the evaluator's launch of this number wrote, counted from 1.
    #[must_use]
    pub fn launch(&self, number: u32) -> PathBuf {
        self.folder.join(format!("launch-{number}"))
    }
}

/// The name of a checkpoint root in the folder of its run.
#[must_use]
pub fn checkpoint_root_name(kind: LaunchKind, rung: &str) -> String {
    format!("{}-{rung}", kind.as_str())
}
