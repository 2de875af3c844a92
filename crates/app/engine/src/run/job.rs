//! What a run launches, kept twice: with its secrets in memory, and without them in `plan.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trackway_core::RunId;
use trackway_core::name::Name;
use trackway_data::DataManifest;
use trackway_formats::group::RunGroup;
use trackway_formats::path_text::text_of;
use trackway_formats::queue::QueueName;
use trackway_formats::runfile::{
    self, ContainerEngine, KeyPath, LaunchSection, PatchValue, Plan, PlanChange, PlanEntry, PlanPatch,
    ResourcesSection, canonical_json,
};
use trackway_formats::sha256_hex;
use trackway_formats::shell::quoted;
use trackway_launch::{ContainerStart, EngineRequest, GpuRequest, Offer, Refusal, Resources};
use trackway_ledger::RunRow;
use trackway_redact::Redactor;

use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::json_file;

/// What replaces a secret in what is stored begins with it.
pub(super) const REDACTED: &str = "[redacted";
/// The tables whose values are only recorded: a launch needs none of them.
const RECORDED_ONLY: [[&str; 2]; 2] = [["run", "parameters"], ["run", "tags"]];

/// Where the intent of a run comes from.
#[derive(Debug, Clone)]
pub enum RunSource {
    /// A run file and its changes.
    File {
        /// The run file.
        path: PathBuf,
        /// What is changed of it, in order.
        patch: PlanPatch,
    },
    /// A command without a run file.
    Command {
        /// The command.
        argv: Vec<String>,
        /// What to call the run; the script's name when absent.
        name: Option<Name>,
        /// Parameters to record, beside those of the command.
        parameters: BTreeMap<String, String>,
        /// Tags to record.
        tags: BTreeMap<String, String>,
    },
}

/// A run's plan, ready to be launched. It may hold secrets and has no stored form; see [`StoredJob`].
#[derive(Debug, Clone)]
pub struct Job {
    /// The plan as the user wrote it.
    pub plan: Plan,
    /// The plan without secrets: the one that is stored and hashed, so that a rotated password does not change the
    /// config.
    pub stored_plan: Plan,
    /// SHA-256 of what decides the result, from [`Self::stored_plan`].
    pub config_sha256: String,
    /// The folder that relative paths start from.
    pub base: PathBuf,
    /// The run file, absolute.
    pub run_file: Option<PathBuf>,
    /// What was changed of the run file.
    pub patch: PlanPatch,
    /// The queue in which it waits for its place.
    pub queue: Option<QueueName>,
    /// The group of runs that it belongs to.
    pub group: Option<RunGroup>,
    /// The run file as a person named it, and its text; none of a job that was planned before.
    file: Option<(String, String)>,
}

/// `plan.json` in a run's folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredJob {
    /// Of this format.
    pub version: u32,
    pub run_id: RunId,
    /// The plan without secrets.
    pub plan: Plan,
    /// Whether the plan had secrets, so that the stored one cannot be launched.
    pub has_secrets: bool,
    /// SHA-256 of what decides the result.
    pub config_sha256: String,
    /// The hash of the data manifest.
    pub data_sha256: Option<String>,
    /// The folder that relative paths start from.
    pub base: PathBuf,
    pub run_file: Option<PathBuf>,
    /// What was changed of the run file, without secrets.
    #[serde(alias = "overrides")]
    pub patch: PlanPatch,
    /// The queue in which it waits for its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    /// The group of runs that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<RunGroup>,
}

/// Refuses a path that is stored as it is in what a later command reads, where it is not UTF-8. Checkpoints of a script
/// may have such names.
pub(super) fn must_be_text(what: &str, path: &Path) -> Result<(), AppError> {
    if path.to_str().is_some() {
        return Ok(());
    }
    let message = format!(
        "not launched: {what} has a name that is not UTF-8, and no record could hold it: `{}`",
        text_of(path)
    );
    Err(AppError::new(ErrorKind::Usage, message)
        .hint("rename the folder or file whose name has the `\\x`, or work in another one"))
}

/// What a launch requests of its launcher: what the plan says, with the changes of its retries, and without these
/// machines too. The image is requested where the engine starts it.
pub(super) fn requested(
    plan: &Plan,
    in_force: &PlanEntry,
    without: &[String],
    offer: &Offer,
) -> EngineRequest {
    let container = plan.container.as_ref().filter(|_| offer.container == ContainerStart::ByEngine);
    let LaunchSection { on: _, engine: _, account, queue, priority, exclude_hosts, secrets, template } =
        &plan.launch;
    EngineRequest {
        resources: resources_of(&plan.resources.changed(&in_force.resources)),
        image: container.map(|container| container.image.clone()),
        account: account.clone(),
        queue: queue.clone(),
        priority: priority.clone(),
        exclude_hosts: exclude_hosts.iter().chain(without).cloned().collect(),
        secrets: secrets.clone(),
        template: template.clone(),
    }
}

/// What a launcher does not give of a launch with these changes, what of it is not known, and the keys that were compared.
pub(super) fn unmet(
    plan: &Plan,
    in_force: &PlanEntry,
    offer: &Offer,
) -> (Vec<Refusal>, Option<String>, Vec<&'static str>) {
    let request = requested(plan, in_force, &in_force.placement.exclude_hosts, offer);
    let mut refused = refused(plan, in_force, &request, offer);
    refused.extend(refused_client(plan, offer));
    (refused, offer.unknown(&request), offer.compared(&request))
}

/// What a launcher does not give of a request. GPUs are shown as they were written, and what each machine is to have of them.
pub(super) fn refused(
    plan: &Plan,
    in_force: &PlanEntry,
    request: &EngineRequest,
    offer: &Offer,
) -> Vec<Refusal> {
    let section = plan.resources.changed(&in_force.resources);
    let nodes = section.nodes.unwrap_or(1);
    let as_written = |refusal: Refusal| match refusal.key == "resources.gpus" && nodes > 1 {
        true => {
            let wanted = format!("{} on {nodes} nodes ({} each)", section.gpus, refusal.wanted);
            Refusal { wanted, ..refusal }
        }
        false => refusal,
    };
    offer.unmet(request).into_iter().map(as_written).collect()
}

/// The client of a container is of use where the command is started in it, and not where the engine starts it.
fn refused_client(plan: &Plan, offer: &Offer) -> Option<Refusal> {
    let wanted = match plan.container.as_ref().map(|container| container.engine)? {
        ContainerEngine::Podman => "podman",
        ContainerEngine::Docker => "docker",
        ContainerEngine::Auto | ContainerEngine::None => return None,
    };
    (offer.container == ContainerStart::ByEngine).then(|| Refusal {
        key: "container.engine".into(),
        wanted: wanted.into(),
        why: format!("the {} launcher starts the container itself", offer.launcher),
        instead: "leave it out".into(),
    })
}

/// What is requested of each machine. The GPUs of an attempt are divided among its machines.
fn resources_of(section: &ResourcesSection) -> Resources {
    let nodes = section.nodes.unwrap_or(1).max(1);
    let gpus = (section.gpus > 0).then(|| GpuRequest {
        count: section.gpus.div_ceil(nodes),
        kind: section.gpu.clone(),
        memory_bytes: section.gpu_memory_bytes,
    });
    Resources {
        nodes: section.nodes,
        processes_per_node: section.processes_per_node,
        gpus,
        cpus: section.cpus,
        memory_bytes: section.memory_bytes,
        disk_bytes: section.disk_bytes,
        time_limit_seconds: section.time_limit_seconds,
    }
}

impl Job {
    /// Reads a run file, or takes a command as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] with every mistake of the run file, and for what this version does not do.
    pub fn read(source: &RunSource, redactor: &Redactor) -> Result<Self, AppError> {
        match source {
            RunSource::File { path, patch } => Self::read_file(path, patch, redactor),
            RunSource::Command { argv, name, parameters, tags } => {
                let mut plan = Plan::for_command(argv);
                (plan.run.parameters, plan.run.tags) = (parameters.clone(), tags.clone());
                if let Some(name) = name {
                    plan.run.name = name.to_string();
                }
                let base =
                    std::env::current_dir().map_err(|error| AppError::file("find", Path::new("."), error))?;
                Self::new(plan, base, None, PlanPatch::default(), redactor)
            }
        }
    }

    fn read_file(path: &Path, patch: &PlanPatch, redactor: &Redactor) -> Result<Self, AppError> {
        let bytes = std::fs::read(path).map_err(|error| {
            AppError::new(ErrorKind::Usage, format!("cannot read the run file `{}`", path.display()))
                .because(error)
                .hint("for a command without a run file: trackway run -- COMMAND …")
        })?;
        let name = path.to_string_lossy();
        let text = String::from_utf8_lossy(&bytes);
        let file = runfile::parse_bytes(&bytes, &name, patch.changes())
            .map_err(|errors| with_command(path, AppError::run_file(&errors, &text)))?;
        let unsupported = file.unsupported();
        if let Some(first) = unsupported.first() {
            let wanted: Vec<String> = unsupported.iter().map(|part| format!("`{}`", part.what)).collect();
            let message = format!(
                "{}: this version does not support {}: nothing was launched",
                first.at,
                wanted.join(", ")
            );
            let error = AppError::new(ErrorKind::Usage, message);
            return Err(unsupported.iter().fold(error, |error, part| error.hint(&part.hint)));
        }
        let absolute = std::path::absolute(path).map_err(|error| AppError::file("find", path, error))?;
        let base = absolute.parent().unwrap_or(Path::new("/")).to_path_buf();
        let job = Self::new(file.plan, base, Some(absolute), patch.clone(), redactor)?;
        Ok(Self { file: Some((name.into_owned(), text.into_owned())), ..job })
    }

    /// A plan from somewhere else than a run file.
    pub fn new(
        mut plan: Plan,
        base: PathBuf,
        run_file: Option<PathBuf>,
        patch: PlanPatch,
        redactor: &Redactor,
    ) -> Result<Self, AppError> {
        must_be_text("the folder of a run", run_file.as_deref().unwrap_or(&base))?;
        // What is only recorded never needs its secrets.
        plan.run.parameters = redactor.parameters(&plan.run.parameters);
        plan.run.tags = redactor.parameters(&plan.run.tags);
        let stored_plan = without_secrets(&plan, redactor)?;
        let config_sha256 = stored_plan.config_sha256();
        let (queue, group, file) = (None, None, None);
        Ok(Self { plan, stored_plan, config_sha256, base, run_file, patch, queue, group, file })
    }

    /// The run whose `plan.json` was stored, as it was requested.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the plan had secrets and cannot be read again from where it came.
    pub fn restore(stored: StoredJob, redactor: &Redactor) -> Result<Self, AppError> {
        let StoredJob { plan, base, run_file, patch, queue, group, config_sha256, has_secrets, .. } = stored;
        let restored = |job: Self| Self { queue, group, file: None, ..job };
        if !has_secrets {
            return Self::new(plan, base, run_file, patch, redactor).map(restored);
        }
        let Some(path) = run_file else {
            let message =
                "the command of this run held secrets, which are not stored: it cannot be launched again";
            return Err(AppError::new(ErrorKind::Usage, message).hint("run it again with its full command"));
        };
        let is_needed = |key: &KeyPath| !RECORDED_ONLY.iter().any(|table| key.is_in(table));
        let is_lost = |change: &&PlanChange| change.value.contains_text(REDACTED) && is_needed(&change.key);
        if let Some(change) = patch.changes().iter().find(is_lost) {
            let message = format!(
                "`{}` was given a secret, which is not stored: the run cannot be launched again",
                change.key
            );
            return Err(AppError::new(ErrorKind::Usage, message).hint("run it again with its full command"));
        }
        let job = Self::read_file(&path, &patch, redactor)?;
        if job.config_sha256 == config_sha256 {
            return Ok(restored(job));
        }
        let message = format!("`{}` is not the config of this run any more", path.display());
        Err(AppError::new(ErrorKind::Usage, message).hint("start a new run, or restore the run file"))
    }

    /// The form that may be stored.
    #[must_use]
    pub fn stored(&self, run_id: RunId, data_sha256: Option<String>, redactor: &Redactor) -> StoredJob {
        StoredJob {
            version: 1,
            run_id,
            plan: self.stored_plan.clone(),
            has_secrets: self.plan != self.stored_plan,
            config_sha256: self.config_sha256.clone(),
            data_sha256,
            base: self.base.clone(),
            run_file: self.run_file.clone(),
            patch: self.patch.with_values(|key, value| value_without_secrets(key, value, redactor)),
            queue: self.queue.clone(),
            group: self.group.clone(),
        }
    }

    /// Where the script runs.
    #[must_use]
    pub fn working_directory(&self) -> PathBuf {
        self.plan
            .run
            .working_directory
            .as_ref()
            .map_or_else(|| self.base.clone(), |folder| self.base.join(folder))
    }

    /// Looks whether the command can start at all, before anything is written or launched.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] naming what is missing.
    pub fn check_command(&self) -> Result<(), AppError> {
        let folder = self.working_directory();
        if !folder.is_dir() {
            let message = format!("the working directory `{}` does not exist", folder.display());
            return Err(AppError::new(ErrorKind::Usage, message).hint("see `run.working_directory`"));
        }
        // The command may be a file of the image.
        if self.plan.container.as_ref().is_some_and(|container| container.engine != ContainerEngine::None) {
            return Ok(());
        }
        let program = self.plan.run.command.first().map_or("", String::as_str);
        let is_there = match program.contains('/') {
            true => is_executable(&folder.join(program)),
            false => self.search_path().iter().any(|entry| is_executable(&entry.join(program))),
        };
        if is_there { Ok(()) } else { Err(no_program(program, &folder)) }
    }

    /// The same of the command of the run file, with the place of what is wrong there.
    ///
    /// # Errors
    /// As [`Self::check_command`].
    pub fn check_own_command(&self) -> Result<(), AppError> {
        let key = if self.working_directory().is_dir() { "command" } else { "working_directory" };
        self.check_command().map_err(|error| self.at_key(&["run", key], error))
    }

    /// An error about a value of the run file, with the place of that. What a change sets has none in the file.
    #[must_use]
    pub fn at_key(&self, keys: &[&str], error: AppError) -> AppError {
        // A change of a whole table sets what is in it too.
        let is_changed = self
            .patch
            .changes()
            .iter()
            .any(|change| change.key.parts().iter().zip(keys).all(|(part, key)| part == key));
        let place = self.file.as_ref().filter(|_| !is_changed).and_then(|(name, text)| {
            let (line, column) = runfile::place_of(text, keys)?;
            Some(format!("{name}:{line}:{column}"))
        });
        match place {
            Some(place) => error.within(place),
            None => error,
        }
    }

    /// The folders of the PATH that the script will have.
    pub(super) fn search_path(&self) -> Vec<PathBuf> {
        self.folders_in("PATH")
    }

    /// The folders that a variable lists, as the script will have it.
    pub(super) fn folders_in(&self, variable: &str) -> Vec<PathBuf> {
        let own = self.plan.run.environment.get(variable).map(Into::into);
        let list = own.or_else(|| std::env::var_os(variable)).unwrap_or_default();
        std::env::split_paths(&list).collect()
    }
}

/// The mistakes of a file that is a script in place of a run file: with how the script is run.
fn with_command(path: &Path, error: AppError) -> AppError {
    let program = match path.extension().and_then(|extension| extension.to_str()) {
        Some("py") => "python3",
        Some("sh") => "sh",
        _ => return error,
    };
    let script = quoted(&path.to_string_lossy());
    error.hint(format!(
        "a script is run with `trackway run -- {program} {script}`; `trackway init {script}` writes its run file"
    ))
}

fn no_program(program: &str, folder: &Path) -> AppError {
    let message = if program.contains('/') {
        format!("the command `{program}` is not an executable file (looked in `{}`)", folder.display())
    } else {
        format!("the command `{program}` is not in the PATH")
    };
    AppError::new(ErrorKind::Usage, message)
        .hint("the command is an argument list, not a shell line: check its first word")
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The plan with every text passed through the redactor; the command and named settings by their own rules.
fn without_secrets(plan: &Plan, redactor: &Redactor) -> Result<Plan, AppError> {
    let failed = |error: serde_json::Error| AppError::fault("the plan could not be redacted", error);
    let mut clean = plan.clone();
    clean.run.command = redactor.argv(&plan.run.command);
    let mut value = serde_json::to_value(&clean).map_err(failed)?;
    redact_value("", &mut value, redactor);
    serde_json::from_value(value).map_err(failed)
}

/// The value of a change without secrets: by the name of its key, by its look, and as an argument of the command line.
fn value_without_secrets(key: &KeyPath, value: &PatchValue, redactor: &Redactor) -> PatchValue {
    let name = key.parts().last().map_or("", String::as_str);
    let Ok(mut clean) = serde_json::to_value(value) else { return value.clone() };
    redact_numbers(name, &mut clean, redactor);
    redactor.json(&mut clean);
    redact_value(name, &mut clean, redactor);
    if let Value::String(text) = &clean {
        let argument = format!("{key}={text}");
        let kept = redactor.argv(std::slice::from_ref(&argument)).concat();
        if kept != argument {
            clean = kept.split_once('=').map_or(kept.as_str(), |(_, value)| value).into();
        }
    }
    serde_json::from_value(clean).unwrap_or_else(|_| value.clone())
}

/// Replaces numbers that are secrets: what `--set` gives a variable is a number if it looks like one.
fn redact_numbers(name: &str, value: &mut Value, redactor: &Redactor) {
    match value {
        Value::Number(number) => {
            let text = number.to_string();
            let clean = redactor.value(name, &text);
            if clean != text {
                *value = Value::String(clean.into_owned());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_numbers(name, item, redactor)),
        Value::Object(members) => {
            members.iter_mut().for_each(|(member, value)| redact_numbers(member, value, redactor));
        }
        _ => {}
    }
}

fn redact_value(name: &str, value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            let clean = redactor.value(name, text).into_owned();
            *text = clean;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(name, item, redactor)),
        Value::Object(members) => {
            for (member, value) in members.iter_mut() {
                redact_value(member, value, redactor);
            }
        }
        _ => {}
    }
}

/// The hash of all data sets together: over each set's name and hash, in order of the names.
#[must_use]
pub fn data_sha256(sets: &[DataManifest]) -> Option<String> {
    let pairs: Vec<Value> = sets.iter().map(|set| serde_json::json!([set.name, set.data_sha256])).collect();
    (!pairs.is_empty()).then(|| sha256_hex(canonical_json(&Value::Array(pairs)).as_bytes()))
}

/// What a run launches, from its folder.
pub(super) fn planned_job(context: &Context, run: &RunRow) -> Result<Job, AppError> {
    Job::restore(json_file::read(&context.home.layout.run(run.run_id).plan_json())?, &context.redactor)
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng as _, SplitMix64};

    use super::*;

    fn job(argv: &[&str]) -> Job {
        let argv = argv.iter().map(|part| (*part).to_owned()).collect();
        let redactor = Redactor::from_environment(std::iter::empty::<(String, String)>());
        let (parameters, tags) = Default::default();
        Job::read(&RunSource::Command { argv, name: None, parameters, tags }, &redactor).unwrap()
    }

    /// Proves that given parameters and tags are neither hashed nor kept with their secrets, that ordinary values of
    /// names which may be a secret's are kept, and that a run with them can be launched again.
    #[test]
    fn given_parameters_are_only_recorded() {
        let argv = vec!["true".to_owned()];
        let redactor = Redactor::from_environment(std::iter::empty::<(String, String)>());
        let given = [("api_key", "correct-horse-battery"), ("lr", "0.1"), ("key", "user_id"), ("pat", "3")];
        let parameters = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let source = RunSource::Command { argv, name: None, parameters, tags: BTreeMap::new() };
        let with = Job::read(&source, &redactor).unwrap();
        assert_eq!(with.config_sha256, job(&["true"]).config_sha256);
        for (name, value) in &given[1..] {
            assert_eq!(with.plan.run.parameters[*name], *value, "{name}");
        }
        assert!(!with.plan.run.parameters["api_key"].contains("horse"));
        assert!(
            !with.stored(RunId::new(&trackway_core::SequentialIds::default()), None, &redactor).has_secrets
        );
    }

    /// Proves that a rotated secret does not change the config, that another argument does, and that no secret is
    /// stored.
    #[test]
    fn secrets_are_neither_hashed_nor_stored() {
        let first = job(&["python", "train.py", "--api-key", "sk-aaaaaaaaaaaaaaaaaaaaaaaa"]);
        let second = job(&["python", "train.py", "--api-key", "sk-bbbbbbbbbbbbbbbbbbbbbbbb"]);
        let other = job(&["python", "other.py", "--api-key", "sk-aaaaaaaaaaaaaaaaaaaaaaaa"]);
        assert_eq!(first.config_sha256, second.config_sha256);
        assert_ne!(first.config_sha256, other.config_sha256);
        assert!(!serde_json::to_string(&first.stored_plan).unwrap().contains("sk-a"));
        assert_eq!(first.plan.run.command[3], "sk-aaaaaaaaaaaaaaaaaaaaaaaa");
    }

    /// Proves that of a change with a secret only its key is stored, with what made it, and of every other the value.
    #[test]
    fn the_changes_of_a_run_file_are_stored_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        std::fs::write(&path, "[run]\nname = \"a\"\ncommand = [\"true\"]\n").unwrap();
        let redactor = Redactor::from_environment(std::iter::empty::<(String, String)>());
        let secret = "sk-aaaaaaaaaaaaaaaaaaaaaaaa";
        let given = [
            "run.seed=7".to_owned(),
            format!("run.environment.API_KEY={secret}"),
            "run.environment.DB_PASSWORD=84736251".to_owned(),
            format!("run.command=['python', 't.py', '--api-key', '{secret}']"),
        ];
        let patch = PlanPatch::of_command_line(&given).unwrap();
        let job = Job::read(&RunSource::File { path, patch }, &redactor).unwrap();
        let stored = job.stored(RunId::new(&trackway_core::SequentialIds::default()), None, &redactor);
        let text = serde_json::to_string(&stored).unwrap();
        assert!(stored.has_secrets && !text.contains("sk-a") && !text.contains("84736251"), "{text}");
        let again: StoredJob = serde_json::from_str(&text).unwrap();
        let keys: Vec<String> = again.patch.changes().iter().map(|change| change.key.to_string()).collect();
        assert_eq!(
            keys,
            ["run.seed", "run.environment.API_KEY", "run.environment.DB_PASSWORD", "run.command"]
        );
        assert_eq!(again.patch.changes()[0].value, PatchValue::from(7_i64));
        assert!(again.patch.contains_text("[redacted"), "{text}");
    }

    /// Proves that a folder or run file whose name is not UTF-8 is refused before a launch, with where it is and what to do.
    #[test]
    fn a_folder_must_have_a_name_that_is_text() {
        use std::os::unix::ffi::OsStrExt as _;
        let redactor = Redactor::from_environment(std::iter::empty::<(String, String)>());
        let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
        let read = |base: PathBuf, file| {
            Job::new(Plan::for_command(&["true".into()]), base, file, PlanPatch::default(), &redactor)
        };
        for (base, file) in [(path(b"/w\xe9"), None), (path(b"/w"), Some(path(b"/w/\xe9.toml")))] {
            let refused = read(base, file).unwrap_err();
            assert!(refused.to_string().contains("\\xe9") && refused.kind == ErrorKind::Usage, "{refused}");
        }
        read(path("/ä".as_bytes()), None).map(drop).unwrap();
    }

    /// Proves that a script in place of a run file is answered with how it is run, and that a mistake has its place where the
    /// file is at fault, and none where a change of it is.
    #[test]
    fn a_mistake_has_its_place_and_a_script_its_command() {
        let folder = tempfile::tempdir().unwrap();
        let redactor = Redactor::from_environment(std::iter::empty::<(String, String)>());
        let read = |name: &str, text: &str, set: &[String]| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let patch = PlanPatch::of_command_line(set).unwrap();
            Job::read(&RunSource::File { path, patch }, &redactor)
        };
        let script = read("train.py", "import sys\n", &[]).unwrap_err();
        assert!(script.hints.iter().any(|hint| hint.contains("trackway run -- python3 ")), "{script:?}");
        let file = "[run]\nname = \"x\"\ncommand = [\"no-such-program-here\"]\n";
        let placed = read("x.toml", file, &[]).unwrap().check_own_command().unwrap_err().to_string();
        assert!(placed.contains("x.toml:3:11: the command `no-such-program-here`"), "{placed}");
        let set = [r#"run.command=["nor-this-one"]"#.to_owned()];
        let changed = read("x.toml", file, &set).unwrap().check_own_command().unwrap_err().to_string();
        assert!(changed.starts_with("the command `nor-this-one`"), "{changed}");
    }

    /// Proves that a command that cannot start is reported before a launch.
    #[test]
    fn a_missing_command_is_reported() {
        job(&["sh"]).check_command().unwrap();
        assert!(job(&["no-such-program-here"]).check_command().unwrap_err().to_string().contains("PATH"));
        let refused = job(&["./no-such-file"]).check_command().unwrap_err().to_string();
        assert!(refused.contains("`./no-such-file` is not an executable file"), "{refused}");
    }

    /// Damaged plans by default; `TRACKWAY_FUZZ_MUTANTS` sets another number.
    const USUAL_MUTANTS: u64 = 500;

    /// Changes a good file in one to three places: bits, bytes, signs of JSON, pieces left out, doubled, and the end.
    fn mutate(good: &[u8], random: &mut SplitMix64) -> Vec<u8> {
        let mut bytes = good.to_vec();
        for _ in 0..=random.next_u64() % 3 {
            if bytes.is_empty() {
                break;
            }
            let at = random.next_u64() as usize % bytes.len();
            let to = (at + 1 + random.next_u64() as usize % 16).min(bytes.len());
            match random.next_u64() % 6 {
                0 => bytes[at] ^= 1 << (random.next_u64() % 8),
                1 => bytes[at] = random.next_u64() as u8,
                2 => bytes[at] = b"\"\n,:{}[]-0e9"[random.next_u64() as usize % 12],
                3 => drop(bytes.drain(at..to)),
                4 => bytes.extend_from_within(at..to),
                _ => bytes.truncate(at),
            }
        }
        bytes
    }

    /// Proves that a damaged `plan.json` is read or refused and makes nothing panic that reads it, and that what is read
    /// of one and written again is the same.
    #[test]
    fn mutants_of_plans_are_read_or_refused() {
        let given = std::env::var("TRACKWAY_FUZZ_MUTANTS").ok().and_then(|count| count.parse().ok());
        let mutants: u64 = given.unwrap_or(USUAL_MUTANTS);
        let redactor = Redactor::from_environment(std::iter::empty::<(String, String)>());
        let parameters = BTreeMap::from([("lr".to_owned(), "0.1".to_owned())]);
        let argv = ["python", "train.py", "--layers", "64"].map(str::to_owned).to_vec();
        let source = RunSource::Command { argv, name: None, parameters, tags: BTreeMap::new() };
        let job = Job::read(&source, &redactor).unwrap();
        let stored = job.stored(RunId::new(&trackway_core::SequentialIds::default()), None, &redactor);
        let good = serde_json::to_vec_pretty(&stored).unwrap();
        let (mut as_good, mut refused) = (0, 0);
        for seed in 0..mutants {
            let bytes = mutate(&good, &mut SplitMix64::new(seed));
            let Ok(read) = serde_json::from_slice::<StoredJob>(&bytes) else {
                refused += 1;
                continue;
            };
            let written = serde_json::to_vec_pretty(&read).unwrap();
            let again: StoredJob = serde_json::from_slice(&written).unwrap();
            assert_eq!(serde_json::to_vec_pretty(&again).unwrap(), written, "mutant {seed}");
            as_good += u64::from(written == good);
            drop(Job::restore(read, &redactor));
        }
        assert!(as_good > 0 && refused > 0, "mutants of plans damage too much or too little");
    }
}
