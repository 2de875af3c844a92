use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trackway_adopt::{PatternError, Patterns};
use trackway_core::{AttemptId, LaunchKind, RunId};
use trackway_formats::Variable;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::path_text::shown_word;
use trackway_redact::Redactor;

use crate::files::read_json;
use crate::{Container, EngineRequest, Isolation, Terminal};

/// The version of `launch.json` that this crate writes.
pub const LAUNCH_VERSION: u32 = 1;

/// One launch, with everything in it, secrets included. It has no serialised form on purpose: what is stored is a
/// [`StoredLaunch`].
#[derive(Debug, Clone)]
pub struct LaunchSpec {
    /// The attempt's folder, absolute. Made by the launcher.
    pub directory: PathBuf,
    /// The command: a program and its arguments, never a shell string. Must not be empty.
    pub argv: Vec<OsString>,
    /// Added to the environment of the launching process. These values win over it, and Trackway's own over these.
    pub environment: BTreeMap<String, OsString>,
    /// The terminals of the script, for a launcher on this machine; none: its outputs are pipes.
    pub terminal: Option<Arc<Terminal>>,
    /// Everything else.
    pub details: LaunchDetails,
}

/// A launch as `launch.json` holds it: the same, with argv, environment and requirements redacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredLaunch {
    /// The version of the format.
    pub version: u32,
    /// The command, redacted. What is not text in it has escapes ([`trackway_formats::path_text`]).
    pub argv: Vec<String>,
    /// What was added to the environment, redacted.
    pub environment: BTreeMap<String, String>,
    /// Everything else, at the same level as the other keys.
    #[serde(flatten)]
    pub details: LaunchDetails,
}

/// Which checkpoints of a script's own are committed once they are whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adopt {
    /// None.
    #[default]
    Nothing,
    /// Those below the working directory that are clearly the state of a training.
    Detected,
    /// Those that these globs name.
    Paths(Vec<String>),
}

impl Adopt {
    /// Where to look, for a script that runs in this folder; none if nothing is adopted.
    ///
    /// # Errors
    /// The first of the globs that is not a pattern.
    pub fn patterns(&self, working_directory: &Path, home: &Path) -> Result<Option<Patterns>, PatternError> {
        match self {
            Self::Nothing => Ok(None),
            Self::Detected => Ok(Some(Patterns::detecting(working_directory, home))),
            Self::Paths(paths) => Patterns::new(working_directory, paths, home).map(Some),
        }
    }
}

/// An adopted checkpoint that an attempt is to continue from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContinuesFrom {
    /// The number of its commit in the log: the parent of the first one that the attempt commits.
    pub number: u64,
    /// Where the script finds it, as a receipt shows it.
    pub path: String,
}

/// What is stored of a launch as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchDetails {
    pub run_id: RunId,
    /// The attempt. Launching the same attempt twice finds the first launch.
    pub attempt_id: AttemptId,
    /// 1 for the first attempt of the run.
    pub attempt_number: u32,
    /// What the launch is for.
    pub kind: LaunchKind,
    /// The rung of the data ladder, a fraction such as `1` or `0.01`.
    pub rung: String,
    /// The epoch that this attempt's checkpoints carry.
    pub epoch: u64,
    /// Where the script runs, absolute.
    pub working_directory: PathBuf,
    /// Seconds from a request to stop until SIGKILL, 0 or more.
    pub grace_seconds: f64,
    /// When the script's main process ended with code 0 and left processes that hold its output open, how many seconds
    /// they may continue at most; `None`: as long as they work.
    pub linger_seconds: Option<f64>,
    /// Where checkpoints of this run, kind and rung go, absolute.
    pub checkpoint_root: PathBuf,
    /// The run's seed.
    pub seed: Option<u64>,
    /// SHA-256 of the resolved configuration, lower-case hex.
    pub config_sha256: String,
    /// SHA-256 of the data manifest, lower-case hex; `None` when the run declares no data.
    pub data_sha256: Option<String>,
    /// The files of each data set of the run, or the folders of many, absolute: whether one is opened is recorded.
    #[serde(default)]
    pub data_files: BTreeMap<String, Vec<PathBuf>>,
    /// Which checkpoints that the script writes itself are committed.
    #[serde(default)]
    pub adopt: Adopt,
    /// Where its changes to the working directory go instead; none: it is not isolated.
    #[serde(default)]
    pub isolation: Option<Isolation>,
    /// The container that it runs in; none: it runs on the machine itself.
    #[serde(default)]
    pub container: Option<Container>,
    /// What the attempt continues from, of those that are adopted.
    #[serde(default)]
    pub continues_from: Option<ContinuesFrom>,
    /// A checkpoint is due after so many steps.
    pub checkpoint_every_steps: Option<u64>,
    /// A checkpoint is due after so many seconds.
    pub checkpoint_every_seconds: Option<f64>,
    /// A checkpoint is due after so many epochs.
    #[serde(default)]
    pub checkpoint_every_epochs: Option<u64>,
    /// The accelerators given to the attempt, as the launcher names them.
    pub devices: Vec<String>,
    /// The requirements on the engine.
    #[serde(default)]
    pub request: EngineRequest,
}

impl Deref for LaunchSpec {
    type Target = LaunchDetails;

    fn deref(&self) -> &LaunchDetails {
        &self.details
    }
}

impl Deref for StoredLaunch {
    type Target = LaunchDetails;

    fn deref(&self) -> &LaunchDetails {
        &self.details
    }
}

impl LaunchSpec {
    /// The launch as it may be stored.
    #[must_use]
    pub fn stored(&self, redactor: &Redactor) -> StoredLaunch {
        // A secret among the additions may be in the arguments as well.
        let environment = self.shown_environment();
        let redactor = redactor.extended(&environment);
        let request = self.request.redacted(&redactor);
        StoredLaunch {
            version: LAUNCH_VERSION,
            argv: redactor.argv(&self.argv.iter().map(shown_word).collect::<Vec<_>>()),
            environment: redactor.settings(&environment),
            details: LaunchDetails { request, ..self.details.clone() },
        }
    }

    /// The additions to the environment as text.
    #[must_use]
    pub fn shown_environment(&self) -> BTreeMap<String, String> {
        self.environment.iter().map(|(name, value)| (name.clone(), shown_word(value))).collect()
    }

    /// What the script finds in its environment besides what it inherits: the additions, then Trackway's variables.
    #[must_use]
    pub fn script_environment(&self) -> BTreeMap<String, OsString> {
        let files = AttemptLayout::new(&self.directory);
        let mut environment = self.environment.clone();
        environment.entry("PYTHONUNBUFFERED".into()).or_insert_with(|| "1".into());
        let mut set = |name: &str, value: OsString| environment.insert(name.to_owned(), value);
        set(Variable::Run.as_str(), self.run_id.to_string().into());
        set(Variable::Attempt.as_str(), self.attempt_id.to_string().into());
        set(Variable::Epoch.as_str(), self.epoch.to_string().into());
        set(Variable::Kind.as_str(), self.kind.as_str().into());
        set(Variable::Rung.as_str(), self.rung.clone().into());
        set(Variable::Record.as_str(), files.records().into());
        set(Variable::Artifacts.as_str(), files.artifacts().into());
        set(Variable::Stacks.as_str(), files.stacks().into());
        set(Variable::Control.as_str(), files.control_jsonl().into());
        set(Variable::Checkpoints.as_str(), self.checkpoint_root.clone().into());
        set(Variable::GraceSeconds.as_str(), self.grace_seconds.to_string().into());
        set("TORCHELASTIC_ERROR_FILE", files.error_json().into());
        set(Variable::ConfigSha256.as_str(), self.config_sha256.clone().into());
        let where_known = [
            (Variable::DataSha256, self.data_sha256.clone()),
            (Variable::Seed, self.seed.map(|seed| seed.to_string())),
            (Variable::CheckpointEverySteps, self.checkpoint_every_steps.map(|steps| steps.to_string())),
            (
                Variable::CheckpointEverySeconds,
                self.checkpoint_every_seconds.map(|seconds| seconds.to_string()),
            ),
            (Variable::CheckpointEveryEpochs, self.checkpoint_every_epochs.map(|epochs| epochs.to_string())),
        ];
        for (variable, value) in where_known {
            value.map(|value| set(variable.as_str(), value.into()));
        }
        environment
    }
}

impl StoredLaunch {
    /// Trackway's home: the root of a run's checkpoints is `HOME/checkpoints/RUN/ROOT`.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.checkpoint_root.ancestors().nth(3).unwrap_or(&self.checkpoint_root)
    }

    /// Reads `launch.json`; `None` when the attempt was never launched.
    ///
    /// # Errors
    /// The file cannot be read or is not a launch.
    pub fn read(directory: &Path) -> io::Result<Option<Self>> {
        read_json(&AttemptLayout::new(directory).launch_json())
    }
}
