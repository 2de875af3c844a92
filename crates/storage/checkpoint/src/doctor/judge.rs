//! Checks the files of checkpoints: how they differ from the committed ones, and where intact copies of the same bytes
//! are.

use std::collections::BTreeMap;
use std::io;

use trackway_formats::checkpoint_manifest::ManifestFile;

use super::bytes::{FileFacts, MAX_SEARCH_BYTES, changed_byte};
use super::checked::{ExaminedCheckpoint, manifest_path};
use super::finding::{Remedy, RootFinding};
use super::survey::Survey;
use crate::history::entry::CommitBody;

/// Files that match a manifest, by hash and size.
pub(super) struct WholeFiles<'a> {
    /// By hash.
    copies: BTreeMap<String, Vec<WholeFile>>,
    /// Which file each content belongs to, whole or not: to recognise bytes in the wrong place.
    owners: BTreeMap<&'a str, Vec<(u64, &'a str)>>,
    steps: BTreeMap<u64, u64>,
    /// Paths by inode.
    names: BTreeMap<(u64, u64), Vec<String>>,
}

struct WholeFile {
    path: String,
    inode: (u64, u64),
}

impl<'a> WholeFiles<'a> {
    pub fn of(checked: &'a [ExaminedCheckpoint<'_>]) -> Self {
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
                    copies.push(WholeFile { path, inode: facts.inode });
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

    /// The file to which some bytes belong, as a path relative to checkpoint `number`.
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
                format!("; it is hard-linked to `{first}`{more}, damaged as well")
            }
        }
    }
}

impl ExaminedCheckpoint<'_> {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.record.folder())
    }

    pub fn is_sound(&self) -> bool {
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

    pub fn findings(&self, whole: &WholeFiles<'_>, survey: &Survey) -> Vec<RootFinding> {
        let mut findings = Vec::new();
        if !survey.folders.contains_key(self.record.folder()) {
            return vec![self.folder_missing(survey)];
        }
        if let Err(fault) = &self.manifest {
            let message = format!("{}: {}", self.who(), fault.why);
            let path = manifest_path(self.record.folder());
            let remedy = fault.remedy.clone().unwrap_or_else(|| self.restore(&path));
            findings.push(RootFinding::error(fault.check, &path, message).remedy(remedy));
        }
        findings.extend(self.files.iter().filter_map(|(file, facts)| self.judge(file, facts, whole)));
        findings.extend(self.extra.iter().map(|name| self.extra_file(name)));
        findings.extend(self.suspect());
        findings.extend(self.is_unsafe());
        findings.into_iter().map(|finding| finding.of_commit(self.number, self.body)).collect()
    }

    fn folder_missing(&self, survey: &Survey) -> RootFinding {
        let path = self.record.folder();
        let (message, remedy) = match survey.moved(path) {
            Some(from) => {
                let message =
                    format!("{}: its folder was moved to `{from}`, where no reader looks", self.who());
                (message, Remedy::MoveTo { from: from.into(), to: path.into() })
            }
            None => (format!("{}: its folder is missing", self.who()), self.restore(path)),
        };
        let finding = RootFinding::error("checkpoint_missing", path, message).remedy(remedy);
        finding.of_commit(self.number, self.body)
    }

    /// Where else its bytes are available.
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
    ) -> Option<RootFinding> {
        let path = self.path(&file.name);
        let facts = match facts {
            Ok(facts) => facts,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("{}: `{}` is missing", self.who(), file.name);
                let remedy = self.copy_or_restore(file, None, whole);
                return Some(RootFinding::error("file_missing", &path, message).remedy(remedy));
            }
            Err(error) => {
                let message = format!("{}: `{}` cannot be read: {error}", self.who(), file.name);
                return Some(
                    RootFinding::error("not_readable", &path, message).remedy(Remedy::Allow { path }),
                );
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
        Some(RootFinding::error(check, &path, message).remedy(remedy))
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
            _ => format!("`{name}` has the committed size ({size_bytes} bytes), but other contents"),
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

    fn extra_file(&self, name: &str) -> RootFinding {
        let path = self.path(name);
        let message = format!(
            "`{name}` does not belong to the checkpoint of step {}; no reader uses it",
            self.body.step
        );
        RootFinding::note("extra_file", &path, message).remedy(Remedy::Remove { path: path.clone() })
    }

    /// Reports a mark of suspicion in the log.
    fn is_unsafe(&self) -> Option<RootFinding> {
        let why = self.record.unsafe_because().filter(|_| !self.record.retired)?;
        let message = format!("{} is marked unsafe: a resume skips it: {why}", self.who());
        Some(RootFinding::warning("unsafe", self.record.folder(), message))
    }

    fn suspect(&self) -> Option<RootFinding> {
        let why = self.record.suspect.as_ref()?;
        let message = if self.is_sound() {
            format!("{} is marked suspect although its bytes verify; a resume skips it: {why}", self.who())
        } else {
            format!("{} is marked suspect: a resume skips it", self.who())
        };
        Some(RootFinding::warning("suspect", self.record.folder(), message).remedy(Remedy::CollectGarbage))
    }
}
