//! The image that the script runs in, if known.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trackway_formats::Variable;

use crate::capture::CaptureInputs;

/// The variable in which a cluster passes the digest of the image it started.
const DIGEST_VARIABLE: &str = Variable::ContainerDigest.as_str();

/// The source of the digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerSource {
    /// The environment variable `TRACKWAY_CONTAINER_DIGEST`, set by what started the container.
    Environment,
    /// `/run/.containerenv`, written by Podman: the id of the image.
    Containerenv,
    /// The engine with which Trackway starts the container: its image has the digest of the run file.
    Engine,
    /// `[container]` of the run file: what the user declares, not what was seen.
    RunFile,
}

/// The container image.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Container {
    /// `sha256:…`
    pub digest: Option<String>,
    pub source: Option<ContainerSource>,
    /// Why it is not known.
    pub why_missing: Option<String>,
}

/// What was seen goes before what was declared.
pub(in crate::capture) fn capture(inputs: &CaptureInputs<'_>) -> Container {
    let from_environment =
        inputs.environment.get(DIGEST_VARIABLE).filter(|digest| !digest.is_empty()).cloned();
    let from_podman = || podman_image_id(&fs::read_to_string("/run/.containerenv").ok()?);
    let from_run_file = || inputs.container_image?.split_once('@').map(|(_, digest)| digest.to_owned());
    let found = from_environment
        .map(|digest| (digest, ContainerSource::Environment))
        .or_else(|| from_podman().map(|digest| (digest, ContainerSource::Containerenv)))
        .or_else(|| from_run_file().map(|digest| (digest, ContainerSource::RunFile)));
    match found {
        Some((digest, source)) => Container { digest: Some(digest), source: Some(source), why_missing: None },
        None => Container { why_missing: Some(why_missing()), ..Container::default() },
    }
}

/// `imageid="…"` of Podman's file; empty when the container is not privileged.
fn podman_image_id(text: &str) -> Option<String> {
    let id = text.lines().find_map(|line| line.strip_prefix("imageid="))?.trim_matches('"');
    (!id.is_empty()).then(|| format!("sha256:{}", id.trim_start_matches("sha256:")))
}

fn why_missing() -> String {
    let inside = ["/.dockerenv", "/run/.containerenv"].into_iter().any(|mark| Path::new(mark).exists());
    if inside {
        format!("the image of this container is not known; set {DIGEST_VARIABLE} when starting it")
    } else {
        "no container".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that Podman's file gives the image's id, and that its unprivileged, empty form gives nothing.
    #[test]
    fn podman_tells_the_image_id() {
        let text = "engine=\"podman-4.3.1\"\nimage=\"docker.io/library/python:3\"\nimageid=\"ab12\"\n";
        assert_eq!(podman_image_id(text).as_deref(), Some("sha256:ab12"));
        assert_eq!(podman_image_id(""), None);
    }
}
