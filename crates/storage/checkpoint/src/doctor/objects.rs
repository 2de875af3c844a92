//! Reads the files of checkpoints, those that must be whole.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use trackway_formats::checkpoint_manifest::{MANIFEST_FILE_NAME, MAX_MANIFEST_BYTES, Manifest, ManifestFile};
use trackway_formats::sha256_hex;

use super::Sound;
use super::bytes::{FileFacts, MAX_SHA256_SEARCH_BYTES, appearance_of, changed_byte, read_facts};
use super::checked::{ExaminedCheckpoint, ManifestFault, manifest_path};
use super::finding::{Remedy, RootFinding};
use super::judge::WholeFiles;
use super::left_over::left_over;
use super::survey::{Folder, Survey};
use crate::error::Defect;
use crate::history::CommitRecord;
use crate::history::entry::CommitBody;
use crate::reading::verify::check_manifest;

/// What became of the checkpoints.
pub(super) struct Objects {
    pub findings: Vec<RootFinding>,
    /// Those that verify, newest first.
    pub sound: Vec<Sound>,
}

/// Reads every file of every checkpoint that is not deleted, each file once.
pub(super) fn check(survey: &Survey, progress: &dyn Fn(u64, u64)) -> Objects {
    let kept: Vec<_> = survey.history.commits().filter(|(_, record)| !record.retired).collect();
    let total_bytes = kept.iter().map(|(_, record)| record.body.size_bytes).sum();
    let reader =
        Reader { survey, progress, total_bytes, done_bytes: RefCell::default(), facts: RefCell::default() };
    let checked: Vec<_> = kept.iter().map(|(number, record)| reader.read(*number, record)).collect();
    let whole = WholeFiles::of(&checked);
    let mut findings: Vec<_> =
        checked.iter().flat_map(|checkpoint| checkpoint.findings(&whole, survey)).collect();
    findings.extend(left_over(survey));
    let sound = checked.iter().rev().filter(|it| it.is_sound());
    Objects { sound: sound.map(|it| Sound { number: it.number, step: it.body.step }).collect(), findings }
}

struct Reader<'a> {
    survey: &'a Survey,
    progress: &'a dyn Fn(u64, u64),
    total_bytes: u64,
    done_bytes: RefCell<u64>,
    /// What was read already, by inode: shared files are read once.
    facts: RefCell<BTreeMap<(u64, u64), FileFacts>>,
}

impl Reader<'_> {
    fn read<'a>(&self, number: u64, record: &'a CommitRecord) -> ExaminedCheckpoint<'a> {
        let body = &record.body;
        let folder = record.folder();
        let manifest = self.manifest(folder, body);
        let listed = manifest.as_ref().map(|manifest| manifest.files.clone()).unwrap_or_default();
        let mut extra: BTreeSet<String> = self.survey.folders.get(folder).map(names).unwrap_or_default();
        extra.remove(MANIFEST_FILE_NAME);
        let mut files = Vec::new();
        for file in listed {
            extra.remove(&file.name);
            let facts = self.facts(folder, &file);
            files.push((file, facts));
        }
        // Without a manifest it is not known what belongs to it.
        let extra = if manifest.is_ok() { extra.into_iter().collect() } else { Vec::new() };
        ExaminedCheckpoint { number, record, body, manifest, files, extra }
    }

    fn manifest(&self, folder: &str, body: &CommitBody) -> Result<Manifest, ManifestFault> {
        let path = self.survey.root.join(folder).join(MANIFEST_FILE_NAME);
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => ManifestFault {
                check: "manifest_missing",
                why: "the manifest is missing, so the files of the checkpoint are unknown".into(),
                remedy: None,
            },
            _ => ManifestFault {
                check: "not_readable",
                why: format!("the manifest cannot be read: {error}"),
                remedy: Some(Remedy::Allow { path: manifest_path(folder) }),
            },
        };
        let size_bytes = std::fs::metadata(&path).map_err(unreadable)?.len();
        if size_bytes > MAX_MANIFEST_BYTES as u64 {
            let why = format!("the manifest has {size_bytes} bytes (at most {MAX_MANIFEST_BYTES} are valid)");
            return Err(ManifestFault { check: "manifest_changed", why, remedy: None });
        }
        let bytes = trackway_files::read_regular(&path).map_err(unreadable)?;
        check_manifest(&bytes, body).map_err(|defect| self.manifest_fault(&bytes, folder, body, &defect))
    }

    fn manifest_fault(
        &self,
        bytes: &[u8],
        folder: &str,
        body: &CommitBody,
        defect: &Defect,
    ) -> ManifestFault {
        if !matches!(defect, Defect::Hash { .. }) {
            let why = format!("the manifest is the committed one, but cannot be used: {defect}");
            return ManifestFault { check: "manifest_disagrees", why, remedy: None };
        }
        let found = sha256_hex(bytes);
        let other = self.survey.commits().find(|(_, other)| other.manifest_sha256 == found);
        let byte = || {
            changed_byte(bytes, MAX_SHA256_SEARCH_BYTES, |bytes| sha256_hex(bytes) == body.manifest_sha256)
        };
        let (why, remedy) = if let Some((number, other)) = other {
            (format!("it is the manifest of step {} (entry {number})", other.step), None)
        } else if let Some(looks) = appearance_of(bytes) {
            (looks, None)
        } else if let Some(byte) = byte() {
            let path = manifest_path(folder);
            (byte.sentence(), Some(Remedy::SetByte { path, offset: byte.offset, byte: byte.expected }))
        } else if let Some(end) = added_behind(bytes, body) {
            let path = manifest_path(folder);
            let why = format!("{} bytes were added after its end at byte {end}", bytes.len() - end);
            (why, Some(Remedy::CutTo { path, size_bytes: end as u64 }))
        } else {
            (manifest_difference(bytes, body), None)
        };
        ManifestFault {
            check: "manifest_changed",
            why: format!("the manifest is not the committed one: {why}"),
            remedy,
        }
    }

    fn facts(&self, prefix: &str, file: &ManifestFile) -> io::Result<FileFacts> {
        use std::os::unix::fs::MetadataExt as _;
        let path = self.survey.root.join(prefix).join(&file.name);
        let metadata = std::fs::metadata(&path)?;
        let inode = (metadata.dev(), metadata.ino());
        let known = self.facts.borrow().get(&inode).cloned();
        if let Some(known) = known {
            self.advance(file.size_bytes);
            return Ok(known);
        }
        let facts = read_facts(&path, file.size_bytes, &mut |count| self.advance(count))?;
        self.facts.borrow_mut().insert(inode, facts.clone());
        Ok(facts)
    }

    fn advance(&self, count: u64) {
        let mut done = self.done_bytes.borrow_mut();
        *done = (*done + count).min(self.total_bytes);
        (self.progress)(*done, self.total_bytes);
    }
}

fn names(folder: &Folder) -> BTreeSet<String> {
    folder.files.keys().cloned().collect()
}

/// Where the committed manifest ends, when bytes were added after it: a manifest ends with a line feed.
fn added_behind(bytes: &[u8], body: &CommitBody) -> Option<usize> {
    let ends = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place + 1);
    ends.take(MAX_ENDS_TRIED).find(|end| sha256_hex(&bytes[..*end]) == body.manifest_sha256)
}

/// Most ends of a line that are tried as the end of a manifest.
const MAX_ENDS_TRIED: usize = 64;

/// In what a manifest that is not the committed one differs from its commit.
fn manifest_difference(bytes: &[u8], body: &CommitBody) -> String {
    let manifest = match Manifest::from_bytes(bytes) {
        Ok(manifest) => manifest,
        Err(error) => return format!("{error} ({} bytes)", bytes.len()),
    };
    let fields = [
        ("step", manifest.step.to_string(), body.step.to_string()),
        ("epoch", manifest.epoch.to_string(), body.epoch.to_string()),
        ("prefix", manifest.object_prefix, body.object_prefix.clone()),
        ("state digest", manifest.state_digest, body.state_digest.clone()),
    ];
    let differing = fields.into_iter().find(|(_, found, expected)| found != expected);
    match differing {
        Some((field, found, expected)) => format!("its {field} is {found}, and {expected} in the commit"),
        None => "it lists the same files, but another field was changed".into(),
    }
}
