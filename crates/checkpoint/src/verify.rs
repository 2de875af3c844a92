//! Whether a checkpoint's bytes are still those that were committed.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use trackway_formats::checkpoint_manifest::{
    MANIFEST_FILE_NAME, MAX_MANIFEST_BYTES, Manifest, ManifestError, ManifestFile, sha256_hex,
};

use crate::entry::CommitBody;

/// Bytes hashed at a time.
const HASH_CHUNK_BYTES: usize = 1 << 20;

/// How a checkpoint differs from what was committed.
#[derive(Debug, thiserror::Error)]
pub enum Defect {
    /// A file is gone.
    #[error("`{name}` is missing")]
    Missing {
        /// The file.
        name: String,
    },
    /// A file cannot be read just now; that says nothing about its bytes.
    #[error("`{name}` cannot be read: {source}")]
    Unreadable {
        /// The file.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file is longer or shorter.
    #[error("`{name}` has {found_bytes} bytes and was committed with {expected_bytes}")]
    Size {
        /// The file.
        name: String,
        /// As committed.
        expected_bytes: u64,
        /// As found.
        found_bytes: u64,
    },
    /// A file has other bytes.
    #[error("`{name}` has the hash {found} and was committed with {expected}")]
    Hash {
        /// The file.
        name: String,
        /// As committed.
        expected: String,
        /// As found.
        found: String,
    },
    /// The manifest is the committed one and still no manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Manifest and commit entry tell of different checkpoints.
    #[error("the manifest says {field} {found}, and the commit says {expected}")]
    Disagreement {
        /// The field in which they differ.
        field: &'static str,
        /// By the commit entry.
        expected: String,
        /// By the manifest.
        found: String,
    },
}

impl Defect {
    /// Whether the checkpoint itself is bad, rather than out of reach.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Unreadable { .. })
    }
}

/// Checks a checkpoint against its commit: the manifest's hash, then every size, then every hash; the cheap checks
/// come first so that a truncated file is found before gigabytes are read.
pub(crate) fn verify(root: &Path, commit: &CommitBody) -> Result<Manifest, Defect> {
    let folder = root.join(&commit.object_prefix);
    let manifest = verify_manifest(&folder, commit)?;
    for file in &manifest.files {
        verify_size(&folder, file)?;
    }
    for file in &manifest.files {
        verify_hash(&folder, file)?;
    }
    Ok(manifest)
}

fn verify_manifest(folder: &Path, commit: &CommitBody) -> Result<Manifest, Defect> {
    let mut bytes = Vec::new();
    open(folder, MANIFEST_FILE_NAME)?
        .take(MAX_MANIFEST_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| unreadable(MANIFEST_FILE_NAME, source))?;
    let found = sha256_hex(&bytes);
    if found != commit.manifest_sha256 {
        let expected = commit.manifest_sha256.clone();
        return Err(Defect::Hash { name: MANIFEST_FILE_NAME.into(), expected, found });
    }
    let manifest = Manifest::from_bytes(&bytes)?;
    agree("step", &commit.step, &manifest.step)?;
    agree("epoch", &commit.epoch, &manifest.epoch)?;
    agree("run", &commit.run_id, &manifest.run_id)?;
    agree("prefix", &commit.object_prefix, &manifest.object_prefix)?;
    agree("state digest", &commit.state_digest, &manifest.state_digest)?;
    Ok(manifest)
}

fn agree<T: PartialEq + ToString>(field: &'static str, expected: &T, found: &T) -> Result<(), Defect> {
    if expected == found {
        return Ok(());
    }
    Err(Defect::Disagreement { field, expected: expected.to_string(), found: found.to_string() })
}

fn verify_size(folder: &Path, file: &ManifestFile) -> Result<(), Defect> {
    let metadata = open(folder, &file.name)?.metadata().map_err(|source| unreadable(&file.name, source))?;
    check_size(file, metadata.len())
}

fn verify_hash(folder: &Path, file: &ManifestFile) -> Result<(), Defect> {
    let mut reader = open(folder, &file.name)?;
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; HASH_CHUNK_BYTES.min(file.size_bytes as usize).max(1)];
    loop {
        match reader.read(&mut chunk).map_err(|source| unreadable(&file.name, source))? {
            0 => break,
            count => hasher.update(&chunk[..count]),
        };
    }
    check_hash(file, &hasher.finalize())
}

/// Reads a file of a checkpoint and checks that it is still the committed one.
pub(crate) fn read_verified(folder: &Path, file: &ManifestFile) -> Result<Vec<u8>, Defect> {
    // The size first: what a manifest says must not make a reader allocate.
    verify_size(folder, file)?;
    let mut bytes = Vec::with_capacity(file.size_bytes as usize);
    open(folder, &file.name)?
        .take(file.size_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| unreadable(&file.name, source))?;
    check_size(file, bytes.len() as u64)?;
    check_hash(file, &blake3::hash(&bytes))?;
    Ok(bytes)
}

fn check_size(file: &ManifestFile, found_bytes: u64) -> Result<(), Defect> {
    if found_bytes == file.size_bytes {
        return Ok(());
    }
    Err(Defect::Size { name: file.name.clone(), expected_bytes: file.size_bytes, found_bytes })
}

fn check_hash(file: &ManifestFile, found: &blake3::Hash) -> Result<(), Defect> {
    let found = found.to_hex();
    if found.as_str() == file.blake3 {
        return Ok(());
    }
    Err(Defect::Hash { name: file.name.clone(), expected: file.blake3.clone(), found: found.to_string() })
}

fn open(folder: &Path, name: &str) -> Result<File, Defect> {
    File::open(folder.join(name)).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Defect::Missing { name: name.into() },
        _ => unreadable(name, source),
    })
}

fn unreadable(name: &str, source: io::Error) -> Defect {
    Defect::Unreadable { name: name.into(), source }
}
