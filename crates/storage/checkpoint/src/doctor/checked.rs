//! A checkpoint as it was found on the disk.

use std::io;

use trackway_formats::checkpoint_manifest::{MANIFEST_FILE_NAME, Manifest, ManifestFile};

use super::bytes::FileFacts;
use super::finding::Remedy;
use crate::history::CommitRecord;
use crate::history::entry::CommitBody;

/// A checkpoint as it was found.
pub(super) struct ExaminedCheckpoint<'a> {
    pub number: u64,
    pub record: &'a CommitRecord,
    pub body: &'a CommitBody,
    pub manifest: Result<Manifest, ManifestFault>,
    pub files: Vec<(ManifestFile, io::Result<FileFacts>)>,
    pub extra: Vec<String>,
}

/// Why there is no manifest.
pub(super) struct ManifestFault {
    pub check: &'static str,
    pub why: String,
    pub remedy: Option<Remedy>,
}

pub(super) fn manifest_path(folder: &str) -> String {
    format!("{folder}/{MANIFEST_FILE_NAME}")
}
