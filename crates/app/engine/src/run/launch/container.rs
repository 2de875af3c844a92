//! The container of an attempt: whether Trackway starts one, with which engine, and whether its image is the one of the run file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use trackway_core::LaunchKind;
use trackway_formats::runfile::{ContainerEngine, ContainerSection};
use trackway_launch::{Container, ContainerStart, Engine, LaunchSpec, Offer};

use crate::Context;
use crate::capture::{Capture, ContainerSource, command};
use crate::error::{AppError, ErrorKind};
use crate::reporter::Reporter;
use crate::run::job::Job;
use crate::run::prepare::begin::Prepared;

/// How long an engine may take to say what it has.
const INSPECTION: Duration = Duration::from_secs(60);
/// How long an image may take to arrive.
const PULL: Duration = Duration::from_secs(3600);
/// Digests of one image are no longer.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Whether Trackway starts the container of a run: not where the run file says that something else does, and not inside of it.
#[must_use]
pub fn is_started(section: Option<&ContainerSection>, capture: &Capture) -> bool {
    let seen = match capture.container.source {
        Some(ContainerSource::Environment | ContainerSource::Containerenv) => &capture.container.digest,
        _ => &None,
    };
    section.is_some_and(|section| {
        section.engine != ContainerEngine::None && seen.as_ref() != Some(&section.digest)
    })
}

/// The container of a training attempt, once its image is there and checked; none if Trackway starts none.
///
/// # Errors
/// [`ErrorKind::Usage`] where no engine is found or the image cannot be pulled; [`ErrorKind::Integrity`] where it is another one.
pub(super) fn container(
    context: &Context,
    prepared: &Prepared,
    (offer, gpus): (&Offer, bool),
    reporter: &dyn Reporter,
) -> Result<Option<Container>, AppError> {
    let section = prepared.job.plan.container.as_ref();
    let by_command = offer.container == ContainerStart::ByCommand && prepared.run.kind == LaunchKind::Train;
    let Some(section) = section.filter(|_| by_command && is_started(section, &prepared.capture)) else {
        return Ok(None);
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let (engine, program) = engine_in(&std::env::split_paths(&path).collect::<Vec<_>>(), section.engine)?;
    check_image(section, &program, reporter)?;
    let root = nix::unistd::geteuid().is_root();
    let user = (!root).then(|| (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw()));
    let container = Container {
        engine,
        program,
        image: section.image.clone(),
        gpus,
        writable: vec![absolute(&prepared.job.working_directory()), absolute(context.home.folder())],
        readable: data_outside(&prepared.job),
        user,
    };
    let places = container.writable.iter().chain(&container.readable);
    match places.map(|path| path.to_string_lossy()).find(|path| path.contains(':')) {
        Some(path) => {
            let message = format!("not launched: `{path}` has a `:`, and cannot be mounted in a container");
            Err(AppError::new(ErrorKind::Usage, message).hint("rename the folder"))
        }
        None => Ok(Some(container)),
    }
}

/// Makes a launch one of the engine's client. The script's variables are Trackway's own, those of the run file and the
/// ones that it passes on.
pub(super) fn run_in(container: Container, spec: &mut LaunchSpec, passed: &[String]) {
    let own = spec.script_environment();
    let visible = ["CUDA_VISIBLE_DEVICES".to_owned()];
    let inherited = passed.iter().chain(&visible).filter(|name| std::env::var_os(name).is_some());
    let names: BTreeSet<&str> = own.keys().chain(inherited).map(String::as_str).collect();
    spec.argv = container.command(spec.attempt_id, &absolute(&spec.working_directory), names, &spec.argv);
    spec.details.container = Some(container);
    // The engine's client would have it, and the script in the container would not.
    spec.terminal = None;
}

/// The path as outside, with its symbolic links: what the script is given begins with it.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The local data of a run that is not below its working directory.
fn data_outside(job: &Job) -> Vec<PathBuf> {
    let folder = absolute(&job.working_directory());
    let paths = job.plan.data.values().filter(|set| !set.path.contains("://"));
    let mut paths: Vec<PathBuf> = paths.map(|set| mounted(&absolute(&job.base.join(&set.path)))).collect();
    paths.retain(|path| !path.starts_with(&folder));
    paths.sort();
    paths.dedup();
    paths
}

/// A pattern of files is mounted by the folder that it begins with.
fn mounted(path: &Path) -> PathBuf {
    let is_pattern = |part: &Path| part.to_string_lossy().contains(['*', '?', '[', '{']);
    let plain = path.ancestors().find(|part| !is_pattern(part));
    plain.unwrap_or(Path::new("/")).to_owned()
}

/// The engine that the run file names, else Podman, else Docker.
fn engine_in(folders: &[PathBuf], wanted: ContainerEngine) -> Result<(Engine, PathBuf), AppError> {
    let engines: &[Engine] = match wanted {
        ContainerEngine::Podman => &[Engine::Podman],
        ContainerEngine::Docker => &[Engine::Docker],
        ContainerEngine::Auto | ContainerEngine::None => &[Engine::Podman, Engine::Docker],
    };
    let program = |engine: Engine| {
        let mut paths = folders.iter().map(|folder| folder.join(engine.as_str()));
        paths.find(|path| path.is_file()).map(|path| (engine, path))
    };
    engines.iter().find_map(|engine| program(*engine)).ok_or_else(|| {
        let names: Vec<&str> = engines.iter().map(|engine| engine.as_str()).collect();
        let message = format!("not launched: `[container]` names an image, and {} is not in the PATH", names.join(" or "));
        AppError::new(ErrorKind::Usage, message).hint(
            "install Podman or Docker, or set `container.engine = \"none\"` if the launcher starts the image and the digest is only recorded",
        )
    })
}

/// Pulls the image unless it is there, and compares its digest.
fn check_image(section: &ContainerSection, program: &Path, reporter: &dyn Reporter) -> Result<(), AppError> {
    let ask = |words: &[&str], limit| {
        let mut asked = Command::new(program);
        asked.args(words).arg(&section.image);
        command::output(asked, limit, ANSWER_BYTES_MAX)
    };
    let inspect = || ask(&["image", "inspect", "--format", "{{json .RepoDigests}}"], INSPECTION);
    let digests = inspect().or_else(|_| {
        reporter.note(format!("pulling the image {}", section.image));
        ask(&["pull", "--quiet"], PULL)?;
        inspect()
    });
    let digests = digests.map_err(|why| {
        let message = format!("not launched: cannot pull the image `{}`: {why}", section.image);
        AppError::new(ErrorKind::Usage, message)
            .hint("check `container.image`, and log in to its registry if it needs that")
    })?;
    let found = digests_in(&digests);
    if found.contains(&section.digest) {
        return Ok(());
    }
    let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    let message = format!(
        "not launched: the image `{}` has another digest on this machine: {found}, not {}",
        section.image, section.digest
    );
    Err(AppError::new(ErrorKind::Integrity, message).hint("pull it again, or correct `container.image`"))
}

/// The digests in `["repository@sha256:…"]`.
fn digests_in(answer: &[u8]) -> Vec<String> {
    let names: Vec<String> = serde_json::from_slice(answer).unwrap_or_default();
    names.iter().filter_map(|name| name.split_once('@')).map(|(_, digest)| digest.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which engine is taken, and that the error names what was looked for.
    #[test]
    fn an_engine_is_looked_for_in_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().join("absent"), folder.path().to_owned()];
        let error = engine_in(&folders, ContainerEngine::Auto).unwrap_err();
        assert!(error.to_string().contains("podman or docker is not in the PATH"), "{error}");
        std::fs::write(folder.path().join("docker"), "").unwrap();
        assert_eq!(engine_in(&folders, ContainerEngine::Auto).unwrap().0, Engine::Docker);
        assert!(
            engine_in(&folders, ContainerEngine::Podman).unwrap_err().to_string().contains("podman is not")
        );
        std::fs::write(folder.path().join("podman"), "").unwrap();
        assert_eq!(engine_in(&folders, ContainerEngine::Auto).unwrap().1, folder.path().join("podman"));
    }

    /// Proves that digests are read from the answer of an engine, and that nothing else is one.
    #[test]
    fn digests_are_read() {
        assert_eq!(digests_in(br#"["a/b@sha256:1","c@sha256:2"]"#), ["sha256:1", "sha256:2"]);
        assert!(digests_in(b"null").is_empty() && digests_in(b"[\"a:tag\"]").is_empty());
    }

    /// Proves that a pattern of files is mounted by its folder.
    #[test]
    fn patterns_are_mounted_by_their_folder() {
        assert_eq!(mounted(Path::new("/data/*/a.csv")), Path::new("/data"));
        assert_eq!(mounted(Path::new("/data/a.csv")), Path::new("/data/a.csv"));
    }
}
