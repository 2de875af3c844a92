//! The environment variables of Trackway, and what of each may be stored.

use trackway_core::closed_list;

closed_list!(
    /// What of a variable of the launching process is stored with an attempt.
    StoredPart, "part that is stored", {
        /// Its value, without secrets.
        Value = "value",
        /// Of an address only the host.
        Host = "host",
        /// Nothing.
        Nothing = "no",
    }
);

impl StoredPart {
    /// What is stored of a value; secrets in it are taken out elsewhere.
    #[must_use]
    pub fn of(self, value: &str) -> Option<String> {
        match (self, value.split_once("://")) {
            (Self::Nothing, _) => None,
            (Self::Value, _) => Some(value.to_owned()),
            (Self::Host, Some((scheme, rest))) => {
                let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
                let host = authority.rsplit('@').next().unwrap_or_default();
                // A password may have a slash in it: then the host is not known.
                (!path.contains('@')).then(|| format!("{scheme}://{host}"))
            }
            // A connection string; the path of a file stays.
            (Self::Host, None) if value.contains('=') => None,
            (Self::Host, None) => Some(value.to_owned()),
        }
    }
}

impl Variable {
    /// How the names of all of them begin.
    pub const PREFIX: &str = "TRACKWAY_";

    /// What of its value is stored where the launching process has it.
    #[must_use]
    pub fn stored_part(self) -> StoredPart {
        match self {
            // A secret, and a place that may be one.
            Self::Webhook => StoredPart::Host,
            Self::Ledger | Self::CheckpointRemote => StoredPart::Host,
            // Free text, and rows of data.
            Self::Data | Self::Decoding | Self::JudgeModel | Self::JudgeRubric | Self::ScoringColumns => {
                StoredPart::Nothing
            }
            _ => StoredPart::Value,
        }
    }
}

closed_list!(
    /// A variable that Trackway reads or sets; `docs/environment.md` lists what sets each.
    Variable, "variable of Trackway", {
        /// The folder with Trackway's state.
        Home = "TRACKWAY_HOME",
        /// A SQLite file or a `postgres://` URL.
        Ledger = "TRACKWAY_LEDGER",
        /// The group that a new home is given to.
        HomeGroup = "TRACKWAY_HOME_GROUP",
        /// Columns of a table, distinct keys of JSON lines.
        ColumnsMax = "TRACKWAY_COLUMNS_MAX",
        /// Memory of the images and texts that are read at the same time, in MiB.
        MediaMibMax = "TRACKWAY_MEDIA_MIB_MAX",
        /// A page of a Parquet file, decoded, in MiB.
        PageMibMax = "TRACKWAY_PAGE_MIB_MAX",
        /// `1`: links that lead out of a data folder are followed.
        FollowLinks = "TRACKWAY_FOLLOW_LINKS",
        /// The address that notifications are sent to.
        Webhook = "TRACKWAY_WEBHOOK",
        /// Seconds that a supervisor waits for its ledger.
        LedgerPatience = "TRACKWAY_LEDGER_PATIENCE",
        /// Seconds that the lease of a supervisor is valid unless it is renewed.
        LeaseSeconds = "TRACKWAY_LEASE_SECONDS",
        /// Seconds for which a call to a remote that does not answer is repeated.
        RemoteRetrySeconds = "TRACKWAY_REMOTE_RETRY_SECONDS",
        /// The digest of the image that the command runs in, where it cannot be seen.
        ContainerDigest = "TRACKWAY_CONTAINER_DIGEST",
        /// Seconds that a rank waits for the others in a save.
        CheckpointWaitSeconds = "TRACKWAY_CHECKPOINT_WAIT_SECONDS",
        /// The id of the run.
        Run = "TRACKWAY_RUN",
        /// The id of the attempt.
        Attempt = "TRACKWAY_ATTEMPT",
        /// The number of the attempt, under which it writes.
        Epoch = "TRACKWAY_EPOCH",
        /// The kind of the launch: `train`, `one_batch`, `overfit`, `evaluate` and others.
        Kind = "TRACKWAY_KIND",
        /// The fraction of the data, where the run file has a ladder.
        Rung = "TRACKWAY_RUNG",
        /// The path of each data set by its name, as a JSON object.
        Data = "TRACKWAY_DATA",
        /// The seed of the run file.
        Seed = "TRACKWAY_SEED",
        /// The hash of what decides the result.
        ConfigSha256 = "TRACKWAY_CONFIG_SHA256",
        /// The hash of all data sets.
        DataSha256 = "TRACKWAY_DATA_SHA256",
        /// The folder of the flight record.
        Record = "TRACKWAY_RECORD",
        /// The folder for logged files.
        Artifacts = "TRACKWAY_ARTIFACTS",
        /// The folder for stacks of a process that hangs.
        Stacks = "TRACKWAY_STACKS",
        /// The control file, in which requests to the script are written.
        Control = "TRACKWAY_CONTROL",
        /// Seconds between SIGTERM and SIGKILL.
        GraceSeconds = "TRACKWAY_GRACE_SECONDS",
        /// The folder of the checkpoints.
        Checkpoints = "TRACKWAY_CHECKPOINTS",
        /// Save after so many steps.
        CheckpointEverySteps = "TRACKWAY_CHECKPOINT_EVERY_STEPS",
        /// Save after so many seconds.
        CheckpointEverySeconds = "TRACKWAY_CHECKPOINT_EVERY_SECONDS",
        /// Save after so many epochs.
        CheckpointEveryEpochs = "TRACKWAY_CHECKPOINT_EVERY_EPOCHS",
        /// Save at these steps.
        CheckpointAtSteps = "TRACKWAY_CHECKPOINT_AT_STEPS",
        /// How many of the newest checkpoints are kept.
        CheckpointKeepLast = "TRACKWAY_CHECKPOINT_KEEP_LAST",
        /// Every checkpoint of a multiple of so many steps is kept.
        CheckpointKeepEverySteps = "TRACKWAY_CHECKPOINT_KEEP_EVERY_STEPS",
        /// The best checkpoint by this metric is kept.
        CheckpointKeepBest = "TRACKWAY_CHECKPOINT_KEEP_BEST",
        /// The remote that checkpoints are uploaded to.
        CheckpointRemote = "TRACKWAY_CHECKPOINT_REMOTE",
        /// The folder of checkpoints with the weights that the script starts with.
        WarmStart = "TRACKWAY_WARM_START",
        /// Its number in the log there, if it isn't the newest.
        WarmStartNumber = "TRACKWAY_WARM_START_NUMBER",
        /// Batches to skip since the run was rolled back.
        SkipBatches = "TRACKWAY_SKIP_BATCHES",
        /// End after this step, in rehearsals and proofs.
        MaxSteps = "TRACKWAY_MAX_STEPS",
        /// Wait at this step for the fault of a proof.
        HoldAtStep = "TRACKWAY_HOLD_AT_STEP",
        /// Wait in the save of this step for an injected fault.
        HoldInSave = "TRACKWAY_HOLD_IN_SAVE",
        /// How many batches a rehearsal repeats.
        RehearsalBatches = "TRACKWAY_REHEARSAL_BATCHES",
        /// The fraction of the first loss at which a rehearsal ends.
        RehearsalTarget = "TRACKWAY_REHEARSAL_TARGET",
        /// The loss at which a rehearsal ends.
        RehearsalTargetLoss = "TRACKWAY_REHEARSAL_TARGET_LOSS",
        /// What a diagnosis observes: `numeric`, `throughput` or `hang`.
        Diagnosis = "TRACKWAY_DIAGNOSIS",
        /// The first step that a diagnosis observes.
        DiagnosisFromStep = "TRACKWAY_DIAGNOSIS_FROM_STEP",
        /// Seconds after which a collective operation fails in a diagnosis of a hang.
        DiagnosisBarrierSeconds = "TRACKWAY_DIAGNOSIS_BARRIER_SECONDS",
        /// The id of the evaluation.
        Evaluation = "TRACKWAY_EVALUATION",
        /// The folder for what the evaluator writes.
        EvaluationOut = "TRACKWAY_EVALUATION_OUT",
        /// The folder of the checkpoint.
        CheckpointDir = "TRACKWAY_CHECKPOINT_DIR",
        /// The checkpoint under the names with which the script wrote it: a folder, or the file if it is one.
        CheckpointPath = "TRACKWAY_CHECKPOINT_PATH",
        /// Its step.
        CheckpointStep = "TRACKWAY_CHECKPOINT_STEP",
        /// The hash of its manifest.
        CheckpointManifestSha256 = "TRACKWAY_CHECKPOINT_MANIFEST_SHA256",
        /// The file with the tasks.
        TaskSet = "TRACKWAY_TASK_SET",
        /// How answers are decoded, as JSON.
        Decoding = "TRACKWAY_DECODING",
        /// The judge model.
        JudgeModel = "TRACKWAY_JUDGE_MODEL",
        /// The rubric of the judge model.
        JudgeRubric = "TRACKWAY_JUDGE_RUBRIC",
        /// The columns it gets, as JSON.
        ScoringColumns = "TRACKWAY_SCORING_COLUMNS",
        /// `csv` or `arrow`.
        ScoringFormat = "TRACKWAY_SCORING_FORMAT",
        /// `1`: gradients are requested.
        ScoringGradients = "TRACKWAY_SCORING_GRADIENTS",
        /// The folder where the process that answers a query spills to disk.
        SqlSpillFolder = "TRACKWAY_SQL_SPILL_FOLDER",
    }
);

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "tests" && !name.starts_with('.') {
                    sources(&path, found);
                }
            } else if ["rs", "py"].iter().any(|extension| path.extension().is_some_and(|it| it == *extension))
            {
                found.push(path);
            }
        }
    }

    /// Proves that of an address no path, user or password is stored.
    #[test]
    fn of_an_address_only_the_host_is_stored() {
        for (value, stored) in [
            ("https://mm.example.org/hooks/s3cr3t", Some("https://mm.example.org")),
            ("https://host?token=s3cr3t", Some("https://host")),
            ("postgres://ana:p@ss/w@db:5432/runs", None),
            ("postgres://ana:pw@db:5432/runs", Some("postgres://db:5432")),
            ("host=db password=s3cr3t", None),
            ("/srv/ledger.db", Some("/srv/ledger.db")),
        ] {
            assert_eq!(StoredPart::Host.of(value).as_deref(), stored, "{value}");
        }
        assert_eq!(StoredPart::Nothing.of("x"), None);
    }

    /// Proves that `docs/environment.md` names every variable, and says what of it is stored.
    #[test]
    fn every_variable_is_documented() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/environment.md");
        let text = std::fs::read_to_string(path).unwrap();
        for variable in Variable::ALL {
            let row = text.lines().find(|line| line.starts_with(&format!("| `{variable}` |")));
            let row = row.unwrap_or_else(|| panic!("docs/environment.md has no row for `{variable}`"));
            let stored = format!("| {} |", variable.stored_part());
            assert!(row.ends_with(&stored), "docs/environment.md must say of `{variable}`: stored{stored}");
        }
    }

    /// Proves that no source names a variable that is not in the list; those of tests are left out.
    #[test]
    fn no_other_variable_is_used() {
        const OF_TESTS: [&str; 8] = [
            "TRACKWAY_BLESS", "TRACKWAY_FUZZ_KEEP", "TRACKWAY_FUZZ_MUTANTS", "TRACKWAY_KILLS",
            "TRACKWAY_SEEDS", "TRACKWAY_SHARED", "TRACKWAY_TEST_", "TRACKWAY_WRITE_VECTORS",
        ];
        let mut found = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), &mut found);
        assert!(found.len() > 500, "the sources were not found: {}", found.len());
        for path in found {
            let text = std::fs::read_to_string(&path).unwrap();
            for rest in text.split("\"TRACKWAY_").skip(1) {
                let end = rest.find(|letter: char| {
                    !letter.is_ascii_uppercase() && !letter.is_ascii_digit() && letter != '_'
                });
                let name = format!("TRACKWAY_{}", &rest[..end.unwrap_or(rest.len())]);
                let is_of_tests = OF_TESTS.iter().any(|known| name.starts_with(known));
                // A prefix alone, such as `TRACKWAY_`, is not a variable.
                let is_name = rest[end.unwrap_or(0)..].starts_with('"') && !name.ends_with('_');
                assert!(
                    !is_name || is_of_tests || name.parse::<Variable>().is_ok(),
                    "{}: `{name}`",
                    path.display()
                );
            }
        }
    }
}
