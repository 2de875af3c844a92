//! What a checkpoint root needs of the machine: room, rights, and a file system that creates exclusively.

use std::path::Path;
use std::sync::Arc;

use nix::unistd::{AccessFlags, access};
use trackway_checkpoint::doctor::{Remedy, RootFinding, RootSeverity};
use trackway_core::{Clock, Ids};
use trackway_files::TempFolder;
use trackway_store::{LocalBackend, Outcome, Primitive, SelfTest, selftest};

/// A save needs its files, its manifest and entries of the log: a little more than the checkpoint itself.
const SPARE_BYTES: u64 = 16 << 20;

/// Looks at the place, not at the checkpoints.
pub fn check(
    root: &Path,
    next_save_bytes: Option<u64>,
    clock: &dyn Clock,
    ids: &Arc<dyn Ids>,
) -> Vec<RootFinding> {
    let mut findings = rights(root);
    if findings.is_empty() {
        findings.extend(file_system(root, clock, ids));
    }
    findings.extend(room(root, next_save_bytes.unwrap_or(0)));
    findings
}

fn file_system(root: &Path, clock: &dyn Clock, ids: &Arc<dyn Ids>) -> Vec<RootFinding> {
    judged(&try_out_file_system(root, clock, ids), "file_system", "file system", "such as ext4 or xfs")
}

/// Tries out in a scratch folder what the log needs of its file system, and removes it again.
pub fn try_out_file_system(root: &Path, clock: &dyn Clock, ids: &Arc<dyn Ids>) -> SelfTest {
    let scratch = root.join(format!(".doctor-{:032x}", ids.next_ulid()));
    // A folder that cannot be made is what the test reports; what cannot be removed, the next look reports as foreign.
    let _made = TempFolder::create(&scratch);
    selftest(&LocalBackend::new(&scratch, Arc::clone(ids)), clock, ids.as_ref())
}

/// What a storage cannot do, and which ones can.
pub fn judged(tested: &SelfTest, check: &'static str, storage: &str, such_as: &str) -> Vec<RootFinding> {
    let finding = |primitive: &Primitive| {
        let (severity, why) = match &primitive.outcome {
            Outcome::Holds => return None,
            Outcome::Fails { why } if primitive.required => (RootSeverity::Error, why),
            Outcome::Fails { why } | Outcome::NotTested { why, .. } => (RootSeverity::Warning, why),
        };
        let message =
            format!("this {storage} lacks {}, which the checkpoint log needs: {why}", primitive.name);
        let remedy = Remedy::UseAnother { what: format!("{storage}, {such_as}") };
        Some(RootFinding::new(severity, check, message).remedy(remedy))
    };
    tested.primitives.iter().filter_map(finding).collect()
}

fn room(root: &Path, next_save_bytes: u64) -> Option<RootFinding> {
    let found = nix::sys::statvfs::statvfs(root).ok()?;
    let free_bytes = found.blocks_available().saturating_mul(found.fragment_size());
    let needed_bytes = next_save_bytes.saturating_add(SPARE_BYTES);
    if free_bytes >= needed_bytes {
        return None;
    }
    let message =
        format!("the disk has {free_bytes} bytes left, and the next save needs about {needed_bytes}");
    let missing_bytes = needed_bytes - free_bytes;
    Some(
        RootFinding::new(RootSeverity::Warning, "free_space", message)
            .remedy(Remedy::MakeRoom { missing_bytes }),
    )
}

/// Saving needs to write in the root and in its log.
fn rights(root: &Path) -> Vec<RootFinding> {
    let folders = [".", "log"].into_iter().filter(|folder| root.join(folder).is_dir());
    let denied = folders.filter(|folder| {
        access(&root.join(folder), AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK).is_err()
    });
    let finding = |folder: &str| {
        let message = "this user has no write permission here, so its attempts cannot save".to_owned();
        RootFinding::new(RootSeverity::Warning, "not_writable", message)
            .remedy(Remedy::Allow { path: folder.into() })
    };
    denied.map(finding).collect()
}
