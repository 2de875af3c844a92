//! Attempts in a container: the command that Podman or Docker gets for one, and its removal.
//!
//! The shim starts the engine's client in place of the script. The container sees the folders of the launch at the paths that they have on
//! this machine, so that the script finds its variables, checkpoints and data as outside, and uses the network and the shared memory of the
//! machine.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, closed_list};

/// How often, and for how many times, the end of an attempt looks whether the engine has removed the container: a minute.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_MAX: u32 = 1200;

closed_list!(
    /// What starts containers. The words are the names of their programs.
    Engine, "container engine", {
        /// Podman: the container's processes are those of the user.
        Podman = "podman",
        /// Docker: a daemon has them.
        Docker = "docker",
    }
);

/// The container of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// What starts it.
    pub engine: Engine,
    pub program: PathBuf,
    /// `repository@sha256:…`
    pub image: String,
    /// Whether it gets the machine's GPUs; `CUDA_VISIBLE_DEVICES` says which of them are used.
    pub gpus: bool,
    /// Folders that the script may write to, absolute.
    pub writable: Vec<PathBuf>,
    /// Files and folders that it only reads, absolute.
    pub readable: Vec<PathBuf>,
    /// The numbers of the user and the group as which it runs, so that what it writes is theirs; none: as the engine does it, for root.
    pub user: Option<(u32, u32)>,
}

impl Container {
    /// The name of the container of an attempt.
    #[must_use]
    pub fn name(attempt_id: AttemptId) -> String {
        format!("trackway-{attempt_id}")
    }

    /// The command that runs `argv` in it. The engine takes the values of these variables from its environment, so that no value is among
    /// its arguments.
    #[must_use]
    pub fn command<'v>(
        &self,
        attempt_id: AttemptId,
        working_directory: &Path,
        variables: impl IntoIterator<Item = &'v str>,
        argv: &[OsString],
    ) -> Vec<OsString> {
        let of = |parts: &[&OsStr]| parts.iter().copied().collect::<OsString>();
        let volume = |path: &PathBuf, end: &str| {
            of(&["--volume=".as_ref(), path.as_ref(), ":".as_ref(), path.as_ref(), end.as_ref()])
        };
        let mut words: Vec<OsString> = vec![self.program.clone().into()];
        let fixed = ["run", "--rm", "--init", "--pull=never", "--network=host", "--ipc=host"];
        words.extend(fixed.map(OsString::from));
        words.push("--security-opt=label=disable".into());
        words.push(format!("--name={}", Self::name(attempt_id)).into());
        words.extend(self.user.map(|(user, group)| match self.engine {
            Engine::Podman => "--userns=keep-id".into(),
            Engine::Docker => format!("--user={user}:{group}").into(),
        }));
        words.extend(self.gpus.then(|| match self.engine {
            Engine::Podman => "--device=nvidia.com/gpu=all".into(),
            Engine::Docker => "--gpus=all".into(),
        }));
        words.extend(self.writable.iter().map(|path| volume(path, "")));
        words.extend(self.readable.iter().map(|path| volume(path, ":ro")));
        words.extend(variables.into_iter().map(|name| format!("--env={name}").into()));
        words.push(of(&["--workdir=".as_ref(), working_directory.as_ref()]));
        words.push(self.image.clone().into());
        words.extend(argv.iter().cloned());
        words
    }

    /// Removes the container, if it is still there, with all of its processes: they outlive a SIGKILL of its client.
    pub(crate) fn remove(&self, attempt_id: AttemptId) {
        let mut command = Command::new(&self.program);
        command.args(["rm", "--force", "--volumes"]).arg(Self::name(attempt_id));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Ok(client) = command.spawn() {
            wait(client);
        }
    }
}

fn wait(mut client: Child) {
    for _ in 0..LOOKS_MAX {
        match client.try_wait() {
            Ok(None) => std::thread::sleep(LOOK),
            _ => return,
        }
    }
    client.kill().ok();
}

#[cfg(test)]
mod tests {
    use trackway_core::SequentialIds;

    use super::*;

    fn container(engine: Engine) -> Container {
        Container {
            engine,
            program: format!("/usr/bin/{}", engine.as_str()).into(),
            image: "nets@sha256:ab".into(),
            gpus: true,
            writable: vec!["/project".into(), "/home/me/.trackway".into()],
            readable: vec!["/data/rows.csv".into()],
            user: Some((1000, 100)),
        }
    }

    /// Proves what each engine is given: folders at their own paths, data read-only, names of variables without values,
    /// GPUs and the user in the way of the engine, and the command last.
    #[test]
    fn each_engine_gets_its_options() {
        let attempt_id = AttemptId::new(&SequentialIds::default());
        let words = |container: &Container| {
            let argv = ["python", "train.py", "--lr", "0.1"].map(OsString::from);
            let words = container.command(attempt_id, Path::new("/project"), ["TRACKWAY_RUN", "LR"], &argv);
            words.join(OsStr::new(" ")).into_string().unwrap()
        };
        let common = format!("--security-opt=label=disable --name=trackway-{attempt_id}");
        let rest = "--volume=/project:/project --volume=/home/me/.trackway:/home/me/.trackway --volume=/data/rows.csv:/data/rows.csv:ro \
                    --env=TRACKWAY_RUN --env=LR --workdir=/project nets@sha256:ab python train.py --lr 0.1";
        let begin = "run --rm --init --pull=never --network=host --ipc=host";
        assert_eq!(
            words(&container(Engine::Podman)),
            format!("/usr/bin/podman {begin} {common} --userns=keep-id --device=nvidia.com/gpu=all {rest}")
        );
        assert_eq!(
            words(&container(Engine::Docker)),
            format!("/usr/bin/docker {begin} {common} --user=1000:100 --gpus=all {rest}")
        );
        let plain = Container { gpus: false, user: None, ..container(Engine::Docker) };
        assert!(words(&plain).contains(&format!("{common} --volume=/project")));
    }
}
