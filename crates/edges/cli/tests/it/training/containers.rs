//! `[container]`: what the engine is given, the image that is checked, and the receipt. The engine is a program that
//! executes the command on this machine, with the folder and the variables that it was given and no others.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::harness::Home;

const ENGINE: &str = r#"#!/bin/sh
echo "$*" >> "$ENGINE/log"
case "$1" in
image) test -e "$ENGINE/there" || { echo 'Error: image not known' >&2; exit 125; }
  cat "$ENGINE/digests";;
pull) test -e "$ENGINE/digests" || { echo 'Error: denied: requested access to the resource' >&2; exit 125; }
  touch "$ENGINE/there";;
run) shift; names=
  while :; do
    case "$1" in
    --workdir=*) cd "${1#--workdir=}" || exit 125;;
    --env=*) names="$names ${1#--env=}";;
    --*) ;;
    *) break;;
    esac
    shift
  done
  shift
  for name in $names; do eval "value=\${$name}"; set -- "$name=$value" "$@"; done
  exec env -i PATH="$PATH" "$@";;
esac
"#;

/// 64 hexadecimal digits.
const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A home with an engine in the PATH, and the engine's folder: its log, and the digests of the image it can pull.
fn home(digests: Option<&str>) -> (Home, tempfile::TempDir) {
    let engine = tempfile::tempdir().unwrap();
    let program = engine.path().join("podman");
    std::fs::write(&program, ENGINE).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    if let Some(digests) = digests {
        std::fs::write(engine.path().join("digests"), digests).unwrap();
    }
    let folder = engine.path().to_str().unwrap().to_owned();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let variables = [("PATH", path), ("ENGINE", folder), ("OUTSIDE", "not passed".into())];
    let home = Home::with(&variables.map(|(name, value)| (name.to_owned(), value)));
    home.write("train.sh", "echo \"step 1: loss 0.5\"; echo \"$LR/$OUTSIDE/$TRACKWAY_ATTEMPT\" > seen\n");
    home.write("job.toml", &job("engine = \"podman\""));
    (home, engine)
}

fn job(engine: &str) -> String {
    format!(
        "[run]\nname = \"boxed\"\ncommand = [\"sh\", \"train.sh\"]\nseed = 1\nenvironment = {{ LR = \"0.1\" }}\n\
         [container]\nimage = \"nets@sha256:{DIGEST}\"\n{engine}\n"
    )
}

fn log(engine: &tempfile::TempDir) -> Vec<String> {
    let text = std::fs::read_to_string(engine.path().join("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Proves that a run with an image runs in a container of the engine: the image is pulled once and checked, the folders are those of the
/// run, only the run's variables are passed on, and the receipt has the metrics and the digest as those of any run,
/// without the packages of this machine.
#[test]
fn a_run_in_a_container_has_the_same_receipt() {
    let (home, engine) = home(Some(&format!("[\"nets@sha256:{DIGEST}\"]")));
    let run = home.json(&["run", "job.toml"]);
    assert_eq!(run["state"], "completed", "{run}");
    home.json(&["run", "job.toml"]);
    let log = log(&engine);
    let count = |word: &str| log.iter().filter(|line| line.starts_with(word)).count();
    assert_eq!((count("pull"), count("run"), count("rm --force")), (1, 2, 2), "{log:#?}");
    let started = log.iter().find(|line| line.starts_with("run")).unwrap();
    let folder = home.path().canonicalize().unwrap();
    for word in [
        format!("--volume={0}:{0}", folder.display()),
        format!("--volume={0}:{0}", folder.join("home").display()),
        format!("--workdir={}", folder.display()),
        "--env=TRACKWAY_RECORD".into(),
        format!("nets@sha256:{DIGEST} sh train.sh"),
    ] {
        assert!(started.contains(&word), "{word}: {started}");
    }
    assert!(!started.contains("0.1"), "a value of a variable is among the arguments: {started}");
    let rows = home.sql("select attempt_id, container_digest, environment_lock_sha256 from training_attempts order by started_at");
    assert_eq!(rows[0]["container_digest"], format!("sha256:{DIGEST}"), "{rows:?}");
    assert_eq!(rows[0]["environment_lock_sha256"], Value::Null, "{rows:?}");
    let seen = std::fs::read_to_string(home.path().join("seen")).unwrap();
    assert_eq!(seen.trim(), format!("0.1//{}", rows[1]["attempt_id"].as_str().unwrap()));
    let loss = home.sql("select name, value from metrics where name = 'loss'");
    assert_eq!((loss.len(), &loss[0]["value"]), (2, &json!(0.5)), "{loss:?}");
}

/// Proves that nothing is launched with another image, with one that cannot be had, without a digest, and without an
/// engine, and that each error says what to do; and that an image that something else starts is only recorded.
#[test]
fn what_is_wrong_with_an_image_is_said_before_a_launch() {
    let (changed, engine) = home(Some("[\"nets@sha256:beef\"]"));
    let (absent, _engine) = home(None);
    let (tagged, _engine2) = home(None);
    tagged.write("job.toml", &job("").replace(&format!("@sha256:{DIGEST}"), ":latest"));
    let (alone, _engine3) = home(None);
    alone.write("job.toml", &job("engine = \"docker\""));
    for (home, code, expected) in [
        (&changed, 7, "has another digest on this machine: sha256:beef, not sha256:0123"),
        (&absent, 2, "podman` failed (exit status: 125): Error: denied"),
        (&tagged, 2, "must name an image by its digest"),
    ] {
        let answer = home.trackway(&["run", "job.toml"]);
        assert_eq!(answer.code, code, "{}", answer.stderr);
        assert!(answer.stderr.contains(expected), "{expected}: {}", answer.stderr);
    }
    let without = alone.command(&["run", "job.toml"]).env("PATH", alone.path()).output().unwrap();
    let text = String::from_utf8_lossy(&without.stderr);
    assert!(without.status.code() == Some(2) && text.contains("docker is not in the PATH"), "{text}");
    assert!(text.contains("container.engine = \"none\""), "{text}");
    assert!(!log(&engine).iter().any(|line| line.starts_with("run")), "{:?}", log(&engine));
    assert_eq!(changed.json(&["runs"])[0]["state"], "failed");

    alone.write("job.toml", &job("engine = \"none\""));
    assert_eq!(alone.json(&["run", "job.toml"])["state"], "completed");
    let rows = alone.sql("select container_digest from training_attempts");
    assert_eq!(rows[0]["container_digest"], format!("sha256:{DIGEST}"));
}
