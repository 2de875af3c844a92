//! Judges the files of checkpoints: those that must be whole, and those that should not be there.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use trackway_formats::checkpoint_manifest::{
    MANIFEST_FILE_NAME, MAX_MANIFEST_BYTES, Manifest, ManifestFile, sha256_hex,
};

use super::Sound;
use super::bytes::{
    FileFacts, MAX_SEARCH_BYTES, MAX_SHA256_SEARCH_BYTES, appearance_of, changed_byte, read_facts,
};
use super::finding::{Finding, Remedy};
use super::survey::{Folder, Survey};
use crate::entry::CommitBody;
use crate::history::CommitRecord;
use crate::verify::{Defect, check_manifest};

/// What became of the checkpoints.
pub(super) struct Objects {
    pub findings: Vec<Finding>,
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

/// A checkpoint as it was found.
struct Checked<'a> {
    number: u64,
    record: &'a CommitRecord,
    body: &'a CommitBody,
    manifest: Result<Manifest, ManifestFault>,
    files: Vec<(ManifestFile, io::Result<FileFacts>)>,
    extra: Vec<String>,
}

/// Why there is no manifest.
struct ManifestFault {
    check: &'static str,
    why: String,
    remedy: Option<Remedy>,
}

impl Reader<'_> {
    fn read<'a>(&self, number: u64, record: &'a CommitRecord) -> Checked<'a> {
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
        // Without a manifest nobody knows what belongs to it.
        let extra = if manifest.is_ok() { extra.into_iter().collect() } else { Vec::new() };
        Checked { number, record, body, manifest, files, extra }
    }

    fn manifest(&self, folder: &str, body: &CommitBody) -> Result<Manifest, ManifestFault> {
        let path = self.survey.root.join(folder).join(MANIFEST_FILE_NAME);
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => ManifestFault {
                check: "manifest_missing",
                why: "the manifest is missing: nobody knows which files belong to it".into(),
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
            let why =
                format!("the manifest has {size_bytes} bytes, and none has more than {MAX_MANIFEST_BYTES}");
            return Err(ManifestFault { check: "manifest_changed", why, remedy: None });
        }
        let bytes = std::fs::read(&path).map_err(unreadable)?;
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
            let why = format!("the manifest is the committed one and cannot be used: {defect}");
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
            let why = format!("{} bytes were added behind its end at byte {end}", bytes.len() - end);
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

fn manifest_path(folder: &str) -> String {
    format!("{folder}/{MANIFEST_FILE_NAME}")
}

fn names(folder: &Folder) -> BTreeSet<String> {
    folder.files.keys().cloned().collect()
}

/// Where the committed manifest ends, when bytes were added behind it: a manifest ends with a line feed.
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
        Some((field, found, expected)) => format!("it says {field} {found}, and the commit says {expected}"),
        None => "it tells of the same files, and something beside them was changed".into(),
    }
}

/// Files that are what a manifest says, by hash and size.
struct WholeFiles<'a> {
    /// By hash.
    copies: BTreeMap<String, Vec<Whole>>,
    /// Which file each content belongs to, whole or not: to recognise bytes in the wrong place.
    owners: BTreeMap<&'a str, Vec<(u64, &'a str)>>,
    steps: BTreeMap<u64, u64>,
    /// Paths by inode.
    names: BTreeMap<(u64, u64), Vec<String>>,
}

struct Whole {
    path: String,
    inode: (u64, u64),
}

impl<'a> WholeFiles<'a> {
    fn of(checked: &'a [Checked<'_>]) -> Self {
        let mut whole = Self {
            copies: BTreeMap::new(),
            owners: BTreeMap::new(),
            steps: checked.iter().map(|it| (it.number, it.body.step)).collect(),
            names: BTreeMap::new(),
        };
        for checkpoint in checked {
            for (file, facts) in &checkpoint.files {
                whole.owners.entry(&file.blake3).or_default().push((checkpoint.number, &file.name));
                let Ok(facts) = facts else { continue };
                let path = checkpoint.path(&file.name);
                whole.names.entry(facts.inode).or_default().push(path.clone());
                if facts.blake3 == file.blake3 {
                    let copies = whole.copies.entry(file.blake3.clone()).or_default();
                    copies.push(Whole { path, inode: facts.inode });
                }
            }
        }
        whole
    }

    /// Another file with the bytes that this one should have.
    fn copy_of(&self, file: &ManifestFile, not: Option<(u64, u64)>) -> Option<&str> {
        let copies = self.copies.get(&file.blake3)?;
        copies.iter().find(|copy| Some(copy.inode) != not).map(|copy| copy.path.as_str())
    }

    /// To which file some bytes belong, said from the checkpoint `number`.
    fn owner(&self, blake3: &str, number: u64) -> Option<String> {
        let owners = self.owners.get(blake3)?;
        let (owner, name) = owners.iter().find(|(owner, _)| *owner == number).or_else(|| owners.last())?;
        Some(if *owner == number {
            format!("it has the bytes of `{name}` of the same checkpoint")
        } else {
            format!("it has the bytes of `{name}` of step {} (entry {owner})", self.steps.get(owner)?)
        })
    }

    /// The other names of a file, in a half-sentence.
    fn other_names(&self, inode: (u64, u64), path: &str) -> String {
        let others: Vec<_> =
            self.names.get(&inode).into_iter().flatten().filter(|name| *name != path).collect();
        match others.first() {
            None => String::new(),
            Some(first) => {
                let more =
                    if others.len() > 1 { format!(" and {} more", others.len() - 1) } else { String::new() };
                format!("; it is one file with `{first}`{more}, which is damaged with it")
            }
        }
    }
}

impl Checked<'_> {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.record.folder())
    }

    fn is_sound(&self) -> bool {
        let same = |(file, facts): &(ManifestFile, io::Result<FileFacts>)| {
            facts
                .as_ref()
                .is_ok_and(|facts| facts.size_bytes == file.size_bytes && facts.blake3 == file.blake3)
        };
        self.manifest.is_ok() && self.files.iter().all(same)
    }

    fn who(&self) -> String {
        let CommitBody { step, epoch, attempt_id, .. } = self.body;
        format!("step {step} (written by {attempt_id}, epoch {epoch})")
    }

    fn findings(&self, whole: &WholeFiles<'_>, survey: &Survey) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !survey.folders.contains_key(self.record.folder()) {
            return vec![self.folder_missing()];
        }
        if let Err(fault) = &self.manifest {
            let message = format!("{}: {}", self.who(), fault.why);
            let path = manifest_path(self.record.folder());
            let remedy = fault.remedy.clone().unwrap_or_else(|| self.restore(&path));
            findings.push(Finding::error(fault.check, &path, message).remedy(remedy));
        }
        findings.extend(self.files.iter().filter_map(|(file, facts)| self.judge(file, facts, whole)));
        findings.extend(self.extra.iter().map(|name| self.extra_file(name)));
        findings.extend(self.suspect());
        findings.into_iter().map(|finding| finding.of_commit(self.number, self.body)).collect()
    }

    fn folder_missing(&self) -> Finding {
        let path = self.record.folder();
        let message = format!("{}: its whole folder is missing", self.who());
        let finding = Finding::error("checkpoint_missing", path, message).remedy(self.restore(path));
        finding.of_commit(self.number, self.body)
    }

    /// Where else its bytes may be had.
    fn restore(&self, path: &str) -> Remedy {
        match &self.record.uploaded_to {
            Some(location) => Remedy::FetchFrom { location: location.clone() },
            None => Remedy::RestoreFile { path: path.into() },
        }
    }

    fn judge(
        &self,
        file: &ManifestFile,
        facts: &io::Result<FileFacts>,
        whole: &WholeFiles<'_>,
    ) -> Option<Finding> {
        let path = self.path(&file.name);
        let facts = match facts {
            Ok(facts) => facts,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("{}: `{}` is missing", self.who(), file.name);
                let remedy = self.copy_or_restore(file, None, whole);
                return Some(Finding::error("file_missing", &path, message).remedy(remedy));
            }
            Err(error) => {
                let message = format!("{}: `{}` cannot be read: {error}", self.who(), file.name);
                return Some(Finding::error("not_readable", &path, message).remedy(Remedy::Allow { path }));
            }
        };
        if facts.size_bytes == file.size_bytes && facts.blake3 == file.blake3 {
            return None;
        }
        let check = match facts.size_bytes {
            size if size < file.size_bytes => "file_short",
            size if size > file.size_bytes => "file_long",
            _ => "file_changed",
        };
        let (why, remedy) = self.difference(file, facts, &path, whole);
        let message = format!("{}: {why}{}", self.who(), whole.other_names(facts.inode, &path));
        Some(Finding::error(check, &path, message).remedy(remedy))
    }

    /// In what a file differs from the committed one, and what can be done about it.
    fn difference(
        &self,
        file: &ManifestFile,
        facts: &FileFacts,
        path: &str,
        whole: &WholeFiles<'_>,
    ) -> (String, Remedy) {
        let ManifestFile { name, size_bytes, .. } = file;
        let found = facts.size_bytes;
        let sizes = match found {
            _ if found < *size_bytes => format!(
                "`{name}` has {found} bytes and was committed with {size_bytes}: {} are missing at its end",
                size_bytes - found
            ),
            _ if found > *size_bytes => {
                format!("`{name}` has {found} bytes and was committed with {size_bytes}")
            }
            _ => format!("`{name}` has its {size_bytes} bytes, and they are not the committed ones"),
        };
        let copy = self.copy_or_restore(file, Some(facts.inode), whole);
        if facts.expected_part_blake3.as_deref() == Some(file.blake3.as_str()) {
            let why = format!("{sizes}: the first {size_bytes} are the committed ones, the rest was added");
            return (why, Remedy::CutTo { path: path.into(), size_bytes: *size_bytes });
        }
        if let Some(owner) = whole.owner(&facts.blake3, self.number) {
            return (format!("{sizes}: {owner}"), copy);
        }
        if let Some(looks) = facts.appearance() {
            return (format!("{sizes}: {looks}"), copy);
        }
        let small = facts.small.as_ref().filter(|_| found == *size_bytes);
        let is_expected = |bytes: &[u8]| blake3::hash(bytes).to_hex().as_str() == file.blake3;
        match small.and_then(|bytes| changed_byte(bytes, MAX_SEARCH_BYTES, is_expected)) {
            Some(byte) => {
                let remedy = Remedy::SetByte { path: path.into(), offset: byte.offset, byte: byte.expected };
                (format!("{sizes}: {}", byte.sentence()), remedy)
            }
            None => (sizes, copy),
        }
    }

    fn copy_or_restore(
        &self,
        file: &ManifestFile,
        not: Option<(u64, u64)>,
        whole: &WholeFiles<'_>,
    ) -> Remedy {
        let path = self.path(&file.name);
        match whole.copy_of(file, not) {
            Some(from) => Remedy::CopyFrom { from: from.into(), to: path },
            None => self.restore(&path),
        }
    }

    fn extra_file(&self, name: &str) -> Finding {
        let path = self.path(name);
        let message = format!(
            "`{name}` is no part of the checkpoint of step {}; no reader looks at it",
            self.body.step
        );
        Finding::note("extra_file", &path, message).remedy(Remedy::Remove { path: path.clone() })
    }

    /// A mark of suspicion in the log is worth a word of its own.
    fn suspect(&self) -> Option<Finding> {
        let why = self.record.suspect.as_ref()?;
        let message = if self.is_sound() {
            format!(
                "{} is marked suspect although its bytes verify, and no resume takes it: {why}",
                self.who()
            )
        } else {
            format!("{} is marked suspect: no resume takes it", self.who())
        };
        Some(Finding::warning("suspect", self.record.folder(), message).remedy(Remedy::CollectGarbage))
    }
}

/// Folders that are no live checkpoint's.
fn left_over(survey: &Survey) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, record) in survey.history.begun() {
        let body = &record.body;
        let Some(folder) = survey.folders.get(&body.object_prefix).filter(|_| !record.swept) else {
            findings.extend(begun_without_folder(survey, number, record));
            continue;
        };
        let size_bytes: u64 = folder.files.values().sum();
        let what = format!("step {} was begun by {} (epoch {})", body.step, body.attempt_id, body.epoch);
        let finding = if survey.history.is_abandoned(record) {
            let message = format!("{what} and never committed: {size_bytes} bytes are left over");
            Finding::warning("begun_not_committed", &body.object_prefix, message)
                .remedy(Remedy::CollectGarbage)
        } else {
            let message = format!("{what} and is not committed yet{}{}", whole_in(folder), log_end(survey));
            Finding::note("begun_not_committed", &body.object_prefix, message)
        };
        findings.push(finding.of_begin(number, body));
    }
    for (number, record) in survey.history.commits().filter(|(_, record)| record.retired) {
        findings.extend(not_deleted(survey, number, record));
    }
    findings.extend(survey.orphans().map(|(prefix, folder)| orphan(survey, prefix, folder)));
    findings
}

fn whole_in(folder: &Folder) -> &'static str {
    if folder.files.contains_key(MANIFEST_FILE_NAME) { ", although its manifest is written" } else { "" }
}

/// The last entry may have been lost: its absence alone tells nobody.
fn log_end(survey: &Survey) -> String {
    format!("; the log ends before `{}`", super::survey::entry_path(survey.tail + 1))
}

fn begun_without_folder(
    survey: &Survey,
    number: u64,
    record: &crate::history::BeginRecord,
) -> Option<Finding> {
    let body = &record.body;
    if record.swept || survey.history.is_abandoned(record) {
        return None;
    }
    let what = format!("step {} was begun by {} (epoch {})", body.step, body.attempt_id, body.epoch);
    let message = format!("{what}, is not committed yet, and has no folder{}", log_end(survey));
    Some(Finding::note("begun_not_committed", &body.object_prefix, message).of_begin(number, body))
}

fn not_deleted(survey: &Survey, number: u64, record: &CommitRecord) -> Option<Finding> {
    let body = &record.body;
    let folder = survey.folders.get(record.folder())?;
    if folder.files.is_empty() || survey.history.prefix_is_live(record.folder()) {
        return None;
    }
    let size_bytes: u64 = folder.files.values().sum();
    let message = format!("step {} was retired, and {size_bytes} bytes of it are not deleted yet", body.step);
    let finding = Finding::warning("retired_not_deleted", record.folder(), message);
    Some(finding.remedy(Remedy::CollectGarbage).of_commit(number, body))
}

fn orphan(survey: &Survey, prefix: &str, folder: &Folder) -> Finding {
    let size_bytes: u64 = folder.files.values().sum();
    // Where entries are lost, it may have been one of theirs.
    let lost = !survey.history.damaged().is_empty() || survey.last_number() > survey.tail || !survey.has_log;
    let message = if lost {
        format!(
            "no entry of the log that can be read names this folder ({size_bytes} bytes); one that is lost may have"
        )
    } else {
        format!("no entry of the log names this folder ({size_bytes} bytes): nothing that Trackway wrote")
    };
    let remedy = if lost { Remedy::Nothing } else { Remedy::Remove { path: prefix.into() } };
    Finding::warning("orphan_folder", prefix, message).remedy(remedy)
}
