//! The agent as the shim of a real script. `TRACKWAY_TEST_AGENT` names the binary of `make agent`, which must be static and small;
//! without it the debug binary is tested.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use trackway_core::{AttemptId, LaunchKind, RunId};
use trackway_formats::layout::AttemptLayout;
use trackway_launch::{
    Adopt, EngineRequest, ExitRecord, LaunchDetails, LaunchSpec, Launcher, LocalLauncher, Observation,
};
use trackway_redact::Redactor;
use trackway_system::SystemIds;

/// The largest static binary.
const BYTES_MAX: u64 = 8_000_000;
/// A script of a few milliseconds has ended after so many waits of a second.
const WAITS_MAX: usize = 30;

/// The binary of `make agent`.
fn static_agent() -> Option<PathBuf> {
    std::env::var_os("TRACKWAY_TEST_AGENT").map(PathBuf::from)
}

fn agent() -> PathBuf {
    static_agent().unwrap_or_else(|| env!("CARGO_BIN_EXE_trackway-agent").into())
}

fn spec(directory: &Path, script: &str) -> LaunchSpec {
    LaunchSpec {
        directory: directory.to_owned(),
        argv: ["sh", "-c", script].map(Into::into).to_vec(),
        environment: BTreeMap::new(),
        terminal: None,
        details: LaunchDetails {
            run_id: RunId::new(&SystemIds),
            attempt_id: AttemptId::new(&SystemIds),
            attempt_number: 1,
            kind: LaunchKind::Train,
            rung: "1".into(),
            epoch: 1,
            working_directory: "/".into(),
            grace_seconds: 1.0,
            linger_seconds: None,
            checkpoint_root: directory.join("checkpoints"),
            seed: Some(17),
            config_sha256: String::new(),
            data_sha256: None,
            data_files: BTreeMap::new(),
            adopt: Adopt::Nothing,
            isolation: None,
            container: None,
            continues_from: None,
            checkpoint_every_steps: None,
            checkpoint_every_seconds: None,
            checkpoint_every_epochs: None,
            devices: Vec::new(),
            request: EngineRequest::default(),
        },
    }
}

/// Runs a script under the agent: its exit record and its files.
fn run(directory: &Path, script: &str) -> (ExitRecord, AttemptLayout) {
    let launcher = LocalLauncher::new(agent());
    let placement = launcher
        .launch(&spec(directory, script), &Redactor::from_own_environment())
        .expect("the agent starts");
    for _ in 0..WAITS_MAX {
        let seen = launcher.wait(&placement, Duration::from_secs(1)).unwrap();
        if let Observation::Exited(exit) = seen.state {
            return (*exit, AttemptLayout::new(directory));
        }
    }
    panic!("`{script}` did not end");
}

/// Proves that a script that runs under the agent leaves what it leaves under `trackway`: an exit record with its exit code, and
/// its output without secrets.
#[test]
fn a_script_leaves_its_exit_record() {
    let folder = tempfile::tempdir().unwrap();
    let (exit, files) = run(&folder.path().join("attempt"), "echo epoch 1; echo lost >&2; exit 7");
    assert_eq!((exit.exit_code, exit.signal), (Some(7), None));
    assert_eq!(std::fs::read_to_string(files.stdout_log()).unwrap(), "epoch 1\n");
    assert_eq!(std::fs::read_to_string(files.stderr_log()).unwrap(), "lost\n");
}

/// Proves that the binary of `make agent` needs no library of the machine and is small.
#[test]
fn the_static_binary_is_static_and_small() {
    let Some(agent) = static_agent() else {
        trackway_skip::skip!("TRACKWAY_TEST_AGENT names no binary (`make agent` builds and tests one)");
        return;
    };
    let said = Command::new("ldd").arg(&agent).output().expect("ldd");
    let said = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
    assert!(said.contains("statically linked") || said.contains("not a dynamic executable"), "{said}");
    let size_bytes = std::fs::metadata(&agent).unwrap().len();
    assert!(size_bytes < BYTES_MAX, "`{}` has {size_bytes} bytes", agent.display());
}
