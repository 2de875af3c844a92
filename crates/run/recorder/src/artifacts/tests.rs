//! Tags, artifacts and exceptions.

use std::fs;

use trackway_formats::EventKind;

use crate::process::keeper::ARTIFACTS_WAITING_MAX;
use crate::recorder::Recorder;
use crate::tests::Attempt;

fn attempt() -> Attempt {
    let mut attempt = Attempt::new();
    attempt.settings.artifact_folder = Some(attempt.folder.path().join("artifacts"));
    attempt
}

fn names_in(attempt: &Attempt) -> Vec<String> {
    let entries = fs::read_dir(attempt.settings.artifact_folder.as_ref().unwrap()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Proves that a file is kept under its hash as it was at the call although it is deleted right afterwards, once for
/// each content, and that a folder is kept file by file without following links.
#[test]
fn artifacts_are_kept_by_content() {
    let attempt = attempt();
    let run = attempt.attach();
    let place = attempt.folder.path().join("out");
    fs::create_dir_all(place.join("plots")).unwrap();
    fs::write(place.join("a.txt"), "same").unwrap();
    fs::write(place.join("plots/b.txt"), "same").unwrap();
    fs::write(place.join("plots/c.txt"), vec![7; 3 << 20]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.join("link")).unwrap();
    run.artifact("alone", &place.join("a.txt"), Some(3));
    fs::remove_file(place.join("a.txt")).unwrap();
    run.artifact("all", &place, None);
    run.finish();
    let reported = attempt.events(EventKind::Artifact.as_str());
    let kept: Vec<_> = reported.iter().map(|event| event.as_artifact().unwrap()).collect();
    let names: Vec<_> = kept.iter().map(|one| (one.name, one.size_bytes)).collect();
    assert_eq!(names, [("alone", 4), ("all/plots/b.txt", 4), ("all/plots/c.txt", 3 << 20)]);
    assert_eq!((reported[0].step, reported[1].step), (Some(3), None));
    assert_eq!(kept[0].blake3, blake3::hash(b"same").to_hex().as_str());
    assert_eq!(kept[0].blake3, kept[1].blake3);
    let mut expected = vec![kept[0].blake3, kept[2].blake3];
    expected.sort_unstable();
    assert_eq!(names_in(&attempt), expected);
    let folder = attempt.settings.artifact_folder.as_ref().unwrap();
    assert_eq!(fs::read(folder.join(kept[2].blake3)).unwrap(), vec![7; 3 << 20]);
    assert_eq!(attempt.events(EventKind::ArtifactFailed.as_str()).len(), 0);
}

/// Proves that what cannot be kept is an event with the reason: a file that is not there, a pipe, no folder to keep it
/// in.
#[test]
fn what_cannot_be_kept_is_reported() {
    let attempt = attempt();
    let run = attempt.attach();
    let pipe = attempt.folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    run.artifact("missing", &attempt.folder.path().join("nothing"), None);
    run.artifact("pipe", &pipe, None);
    run.finish();
    let mut reported = attempt.events(EventKind::ArtifactFailed.as_str());
    let mut without = Attempt::new();
    without.settings.artifact_folder = None;
    let run = without.attach();
    run.artifact("nowhere", &std::env::current_exe().unwrap(), None);
    run.finish();
    reported.extend(without.events(EventKind::ArtifactFailed.as_str()));
    let whys: Vec<_> = reported.iter().map(|event| event.field("why").unwrap()).collect();
    assert!(whys[0].contains("No such file"), "{whys:?}");
    assert!(whys[1].contains("neither a file"), "{whys:?}");
    assert!(whys[2].contains("TRACKWAY_ARTIFACTS"), "{whys:?}");
    assert_eq!(whys.len(), 3);
    Recorder::disabled().artifact("nothing", &pipe, None);
}

/// Proves that an empty path, which joined to a folder is all of the working directory, keeps nothing and is reported
/// with the reason.
#[test]
fn an_empty_path_is_no_artifact() {
    let attempt = attempt();
    let run = attempt.attach();
    run.artifact("", std::path::Path::new(""), None);
    run.artifact("plots", std::path::Path::new(""), Some(2));
    run.finish();
    let reported = attempt.events(EventKind::ArtifactFailed.as_str());
    let whys: Vec<_> = reported.iter().map(|event| event.field("why").unwrap()).collect();
    assert!(whys.len() == 2 && whys.iter().all(|why| why.contains("the path is empty")), "{whys:?}");
    assert_eq!(reported[1].field("name"), Some("plots"));
    assert_eq!(attempt.events(EventKind::Artifact.as_str()).len(), 0);
    assert!(!attempt.settings.artifact_folder.as_ref().unwrap().exists());
}

/// Proves that more artifacts than may wait are reported and never waited for, and that every one given is kept or
/// reported.
#[test]
fn too_many_artifacts_are_reported() {
    let attempt = attempt();
    let run = attempt.attach();
    let path = attempt.folder.path().join("large");
    fs::write(&path, vec![1; 8 << 20]).unwrap();
    let given = ARTIFACTS_WAITING_MAX + 30;
    (0..given).for_each(|number| run.artifact(&number.to_string(), &path, None));
    run.finish();
    let failed = attempt.events(EventKind::ArtifactFailed.as_str());
    assert!(!failed.is_empty() && failed.iter().all(|event| event.field("why").unwrap().contains("wait")));
    assert_eq!(attempt.events(EventKind::Artifact.as_str()).len() + failed.len(), given);
    assert_eq!(names_in(&attempt).len(), 1);
}

/// Proves that tags and exceptions are events that a reader parses, that the digest of an exception depends only on its
/// type and places, and that a message of any length is cut at a character.
#[test]
fn tags_and_exceptions_are_events() {
    let attempt = attempt();
    let run = attempt.attach();
    run.tag("team", "search");
    run.progressive(4, 0.5);
    for (kind, message, place) in [
        ("ValueError", "at 0x1", "a.py:1 f"),
        ("ValueError", "at 0x2", "a.py:1 f"),
        ("KeyError", "x", "a.py:1 f"),
    ] {
        run.exception(kind, message, &[place]);
    }
    run.exception("E", &"ü".repeat(5_000), &["a", "b"]);
    run.finish();
    assert_eq!(attempt.events(EventKind::Tag.as_str())[0].as_tag(), Some(("team", "search")));
    let reported = attempt.events(EventKind::Exception.as_str());
    let digests: Vec<_> = reported.iter().map(|event| event.field("digest").unwrap()).collect();
    assert!(digests[0] == digests[1] && digests[0] != digests[2] && digests[0].len() == 16);
    assert_eq!(reported[3].field("message").unwrap(), "ü".repeat(1_000));
    assert_eq!(reported[3].field("trace"), Some("a\nb"));
}
